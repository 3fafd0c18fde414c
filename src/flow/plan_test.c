/* Random graphs and schedules: after every step the plan stands as a naive evaluator says (support/flow_model.h).
 * SPDX-License-Identifier: MIT */
#include "flow/plan.h"

#include "support/check.h"
#include "support/flow_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = SANITIZED ? 20000 : 150000 };

/* ---- the graph, as a matrix ---------------------------------------------------------------------- */

static int body(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    return 0;
}

static weir_flow *flow_of(const struct matrix *m)
{
    weir_flow *flow = NULL;
    weir_node *node[NODES_MAX];
    char id[16];

    assert_int_equal(weir_flow_new(&flow, "random"), 0);
    for (uint32_t n = 0; n < m->nodes; n++) {
        snprintf(id, sizeof(id), "n%u", n);
        assert_int_equal(
            weir_flow_node(&node[n], flow, id, body, NULL,
                           WEIR_NODE(.at_least = m->at_least[n], .never_skip = m->keep[n],
                                     .interrupt = m->interrupt[n],
                                     .judge = m->quota[n] ? by_quota : NULL,
                                     .judge_arg = (void *)(uintptr_t)m->quota[n])),
            0);
    }
    for (uint32_t to = 0; to < m->nodes; to++)
        for (uint32_t from = 0; from < to; from++)
            if (m->edge[from][to])
                assert_int_equal(weir_node_needs(node[to], node[from], m->need[from][to]), 0);
    assert_int_equal(wr_flow_freeze(flow, NULL), 0);
    return flow;
}

/* ---- the naive evaluator --------------------------------------------------------------------------- */

static void end(struct model *x, uint32_t n, weir_outcome outcome)
{
    x->stand[n] = ENDED;
    x->outcome[n] = outcome;
}

static void drop_all_needless(struct model *x)
{
    for (uint32_t n = 0; n < x->m->nodes; n++) {
        if (x->m->keep[n] || x->stand[n] == ENDED || !needless(x, n))
            continue;
        if (x->stand[n] == WAITS || (x->stand[n] == IS_READY && !x->fresh[n]))
            end(x, n, WEIR_SKIPPED);
        else if (x->m->interrupt[n])
            end(x, n, WEIR_CANCELLED);
    }
}

/* One node after n hears of its end. */
static void hear_one(struct model *x, uint32_t n, uint32_t to)
{
    if (!x->m->edge[n][to] || x->stand[to] != WAITS)
        return;
    if (!x->m->quota[to] && need_of(x, n, to) == WEIR_OPTIONAL)
        return; /* does not count */
    switch (rule(x, to)) {
    case WEIR_JUDGE_START:
        x->stand[to] = IS_READY;
        x->left[to] = true;
        x->fresh[to] = true;
        drop_all_needless(x);
        break;
    case WEIR_JUDGE_FAIL:
        end(x, to, x->outcome[n] == WEIR_DONE ? WEIR_FAILED : x->outcome[n]);
        break;
    default:
        break;
    }
}

/* The nodes after n hear of its end, in order; those with judges after the others. */
static void hear(struct model *x, uint32_t n)
{
    CHECK(x->stand[n] == ENDED && !x->told[n]);
    x->told[n] = true;
    x->left[n] = true;
    drop_all_needless(x);
    for (int judges = 0; judges < 2; judges++)
        for (uint32_t to = 0; to < x->m->nodes; to++)
            if (!x->m->quota[to] == !judges)
                hear_one(x, n, to);
}

/* ---- both, side by side ------------------------------------------------------------------------------ */

struct pair {
    struct model x;
    struct wr_plan plan;
    _Atomic uint64_t word[NODES_MAX];
    union wr_slot slot[NODES_MAX];
    struct wr_links links[NODES_MAX];
    _Atomic uint32_t lost[NODES_MAX];
    struct wr_join join[NODES_MAX];
    struct luck luck;
    weir_outcome seen[NODES_MAX]; /* what was once decided stays */
    uint32_t begun[NODES_MAX], told[NODES_MAX];
    void *value[NODES_MAX]; /* what its body gave */
};

static enum stand stand_of(uint64_t word)
{
    if (word & WR_OUTCOME)
        return ENDED;
    if (word & WR_READY)
        return IS_READY;
    return word & WR_COUNTER ? WAITS : RUNS;
}

static bool compare(struct pair *p)
{
    for (uint32_t n = 0; n < p->x.m->nodes; n++) {
        uint64_t word = p->word[n];
        enum stand stand = stand_of(word);
        if (!CHECK_EQUAL(stand, p->x.stand[n]) ||
            !CHECK_EQUAL(wr_word_outcome(word), p->x.outcome[n]))
            return false;
        if (p->seen[n] && !CHECK_EQUAL(wr_word_outcome(word), p->seen[n]))
            return false;
        p->seen[n] = wr_word_outcome(word);
    }
    return true;
}

/* Nodes that are ready begin now, or are put off. */
static void take_ready(struct pair *p, struct wr_moves *moves)
{
    uint32_t n;

    while ((n = wr_plan_next_ready(&p->plan, &moves->ready)) != WR_NODE_NONE) {
        p->x.fresh[n] = false;
        drop_all_needless(&p->x);
        if (!wr_plan_is_needed(&p->plan, n, moves))
            continue;
        if (wr_word_outcome(p->word[n]))
            continue; /* cancelled, since nothing needs it */
        if (luck_below(&p->luck, 2)) {
            wr_plan_put_off(&p->plan, n, NULL, moves);
        } else {
            p->x.stand[n] = RUNS;
            p->begun[n]++;
        }
    }
}

static void ask_judges(struct pair *p, struct wr_moves *moves)
{
    weir_edges edges;
    uint32_t n;

    while ((n = wr_plan_next_ready(&p->plan, &moves->to_judge)) != WR_NODE_NONE)
        do
            wr_plan_edges(&p->plan, n, &edges);
        while (wr_plan_judged(&p->plan, n,
                              by_quota(&edges, NULL, (void *)(uintptr_t)p->x.m->quota[n]), &edges,
                              moves));
}

/* Until nothing follows any more. */
static void settle(struct pair *p, struct wr_moves *moves)
{
    uint32_t n;

    while ((n = wr_plan_next_ended(&p->plan, &moves->ended)) != WR_NODE_NONE) {
        p->told[n]++;
        wr_plan_tell(&p->plan, n, moves);
        ask_judges(p, moves);
        hear(&p->x, n);
        if (moves->ready.first != WR_NODE_NONE)
            take_ready(p, moves);
        for (uint32_t i = 0; i < p->x.m->nodes; i++)
            p->x.fresh[i] = false;
    }
}

static void end_one(struct pair *p, uint32_t n)
{
    int error = luck_below(&p->luck, 4) ? 0 : luck_below(&p->luck, 3) ? -EIO : WEIR_ECANCELED;
    struct wr_moves moves = WR_NO_MOVES;

    p->value[n] = !error && luck_below(&p->luck, 2) ? &p->value[n] : NULL;
    CHECK(wr_plan_finish(&p->plan, n, error, p->value[n]));
    end(&p->x, n, error == 0 ? WEIR_DONE : error == WEIR_ECANCELED ? WEIR_CANCELLED : WEIR_FAILED);
    wr_plan_add_ended(&p->plan, &moves.ended, n);
    settle(p, &moves);
}

/* One step by chance; false: nothing is left to do. */
static bool step(struct pair *p)
{
    uint32_t able[NODES_MAX], number = 0, n;
    void *locals;

    for (n = 0; n < p->x.m->nodes; n++)
        if (p->x.stand[n] == IS_READY || p->x.stand[n] == RUNS)
            able[number++] = n;
    if (!number)
        return false;
    n = able[luck_below(&p->luck, number)];
    if (p->x.stand[n] == IS_READY) {
        CHECK(wr_plan_begin(&p->plan, n, &locals));
        p->x.stand[n] = RUNS;
        p->begun[n]++;
    } else {
        end_one(p, n);
    }
    return true;
}

static bool life(uint64_t number)
{
    struct pair p = { .luck = luck_of(number) };
    struct matrix m;
    weir_flow *flow;
    bool good = true;

    memset((void *)p.lost, 0xff, sizeof(p.lost)); /* as memory of a run may be */
    memset(p.slot, 0xff, sizeof(p.slot));
    draw(&m, &p.luck);
    flow = flow_of(&m);
    p.x.m = &m;
    p.plan = (struct wr_plan){ .flow = flow,
                               .word = p.word,
                               .slot = p.slot,
                               .links = p.links,
                               .lost = p.lost,
                               .join = p.join,
                               .skip = m.skip };
    wr_plan_init(&p.plan);
    for (uint32_t n = 0; n < m.nodes; n++)
        if (count(&p.x, n, -1, is_any) == 0) {
            p.x.stand[n] = IS_READY;
            p.x.left[n] = true;
        }
    do
        good = compare(&p);
    while (good && step(&p));
    for (uint32_t n = 0; good && n < m.nodes; n++) {
        good = CHECK_EQUAL(stand_of(p.word[n]), ENDED); /* whatever happened, all end */
        CHECK(p.begun[n] <= 1);
        CHECK_EQUAL(p.told[n], 1);
        CHECK(wr_plan_value(&p.plan, n, p.word[n]) == p.value[n]);
    }
    if (!good)
        printf("graph %llu of WEIR_SEED=%llu\n", (unsigned long long)number,
               (unsigned long long)seed);
    weir_flow_free(flow);
    return good;
}

static void test_every_step_is_as_the_naive_evaluator_says(void)
{
    uint64_t graphs = soak_times(GRAPHS);

    for (uint64_t i = 0; i < graphs; i++)
        if (!life(i))
            break;
}

/* ---- the table of rules for skipping ----------------------------------------------------------------------- */

/* The node n (0) needs a trigger (1); what comes after n, of nodes 2 to 5, each of which may also be started by a node 6, so
 * that it works while n waits. */
static const struct skip_row {
    const char *edges;  /* pairs of nodes */
    const char *works;  /* nodes that have started before n is triggered */
    bool chain, demand; /* whether n is skipped */
} rows[] = {
    { "02", "2", true, true },       /* n -> s(working) */
    { "02", "", false, false },      /* n -> s(init, last) */
    { "0223", "2", true, true },     /* n -> s(working) -> t(init) */
    { "0223", "3", true, true },     /* n -> c(init) -> g(working) */
    { "0203", "23", false, true },   /* n -> {s1(working), s2(working)} */
    { "0203", "2", false, false },   /* n -> {s1(working), s2(init, last)} */
    { "022324", "34", false, true }, /* n -> s(init) -> {t1, t2 both working} */
    { "", "", false, false },        /* n last node */
};

static weir_flow *row_flow(const struct skip_row *row)
{
    weir_flow *flow = NULL;
    weir_node *node[7];

    assert_int_equal(weir_flow_new(&flow, "row"), 0);
    for (int i = 0; i < 7; i++)
        assert_int_equal(
            weir_flow_node(&node[i], flow, (char[]){ (char)('0' + i), '\0' }, body, NULL, NULL), 0);
    assert_int_equal(weir_node_needs(node[0], node[1], WEIR_MUST), 0);
    for (const char *e = row->edges; *e; e += 2)
        assert_int_equal(weir_node_needs(node[e[1] - '0'], node[e[0] - '0'], WEIR_ANY), 0);
    for (const char *w = row->works; *w; w++)
        assert_int_equal(weir_node_needs(node[*w - '0'], node[6], WEIR_ANY), 0);
    assert_int_equal(wr_flow_freeze(flow, NULL), 0);
    return flow;
}

static void end_in_row(struct wr_plan *plan, uint32_t n)
{
    struct wr_moves moves = WR_NO_MOVES;

    CHECK(wr_plan_finish(plan, n, 0, NULL));
    wr_plan_add_ended(plan, &moves.ended, n);
    while ((n = wr_plan_next_ended(plan, &moves.ended)) != WR_NODE_NONE)
        wr_plan_tell(plan, n, &moves);
}

static void check_skip_row(const struct skip_row *row, weir_skip skip, bool skipped)
{
    weir_flow *flow = row_flow(row);
    struct pair p = { .plan = { .flow = flow, .skip = skip } };
    void *locals;

    p.plan.word = p.word;
    p.plan.slot = p.slot;
    p.plan.links = p.links;
    p.plan.lost = p.lost;
    p.plan.join = p.join;
    wr_plan_init(&p.plan);
    CHECK(wr_plan_begin(&p.plan, 6, &locals));
    CHECK(wr_plan_begin(&p.plan, 1, &locals)); /* before, or it would be skipped as well */
    end_in_row(&p.plan, 6);
    end_in_row(&p.plan, 1);
    CHECK_EQUAL(wr_word_outcome(p.word[0]), skipped ? WEIR_SKIPPED : WEIR_UNSETTLED);
    for (const char *w = row->works; *w; w++)
        CHECK_EQUAL(stand_of(p.word[*w - '0']), RUNS);
    weir_flow_free(flow);
}

static void test_each_row_of_the_rules_for_skipping(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_skip_row(&rows[i], WEIR_SKIP_DEMAND, rows[i].demand);
        check_skip_row(&rows[i], WEIR_SKIP_CHAIN, rows[i].chain);
        check_skip_row(&rows[i], WEIR_SKIP_NEVER, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_step_is_as_the_naive_evaluator_says),
        TEST(test_each_row_of_the_rules_for_skipping),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
