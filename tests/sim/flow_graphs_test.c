/* The rules of flows on graphs by chance, run by the library as users run it: each callback and each body is judged by what a
 * naive evaluator (support/flow_model.h) makes of the callbacks before it.
 *
 *   F1 a body runs at most once                      F5 one worker is enough for any graph
 *   F2 none before its rule holds                    F6 a sole successor runs on the stack of the node before it
 *   F3 one result for each node                      F7 nothing changes once the run has ended
 *   F4 ... in the same frame, however long the row   F8 begin, body, result, then the begin of what comes after it
 * SPDX-License-Identifier: MIT */
#include "support/flow_model.h"
#include "support/flow_support.h"

enum {
    SEEDS = 2500,
    GRAPHS_PER_SEED = 40,
    RUNS_MAX = 2,
    NAP_MAX_MS = 3,
    LONGEST_MS = 1000,
    FRAMES_MAX = 512
};

/* ---- a run, as it is seen ---------------------------------------------------------------------------- */

enum phase { NOT_BEGUN, BEGUN, IN_BODY, OUT_OF_BODY };

struct shape {
    struct matrix m;
    weir_flow *flow;
    bool is_task[NODES_MAX];
    bool sleepy; /* some bodies sleep */
    /* Nodes without callbacks, which take the short ways: only their bodies and what can be read afterwards are judged. */
    bool silent;
};

/* The model knows the nodes whose results were told of. */
struct watched {
    const struct shape *shape;
    struct model x;
    weir_task *task;
    /* One worker, and nothing from outside: what was told first has been heard first. */
    bool exact;
    bool from_outside; /* the run was cancelled, or has a deadline */
    bool interrupt;    /* any node */
    bool settled;
    struct watched_node {
        enum phase phase;
        int begin_error, body_error;
        int64_t nap_ms;
        int results;
        /* The first word of the rule; with more workers, any word it said once. */
        bool could_start, could_not;
        const char *frame; /* of the body of the first node in its row of sole successors */
    } node[NODES_MAX];
};

static struct watched watched[RUNS_MAX];
static char id_of[NODES_MAX][4];
static uint64_t graphs, skipped, sole_successors; /* over all seeds */

/* A rule that holds may be overtaken on several workers only by the failure of a node that was to be NONE_FAILED. */
static bool may_start(const struct watched *w, uint32_t n)
{
    struct model without = w->x;
    struct matrix m = *w->x.m;

    if (w->node[n].could_start)
        return true;
    if (w->exact)
        return false;
    for (uint32_t i = 0; i < m.nodes; i++)
        if (m.need[i][n] == WEIR_NONE_FAILED && is_failed(w->x.outcome[i], w->x.told[i]))
            without.outcome[i] = WEIR_DONE;
    without.m = &m;
    return rule(&without, n) == WEIR_JUDGE_START;
}

/* After each result: what has been decided by it. */
static void learn(struct watched *w)
{
    for (uint32_t n = 0; n < w->x.m->nodes; n++) {
        struct watched_node *node = &w->node[n];
        weir_judgement says = rule(&w->x, n);
        if (says == WEIR_JUDGE_START && !(w->exact && node->could_not))
            node->could_start = true;
        if (may_start(w, n))
            w->x.left[n] = true;
        if (says == WEIR_JUDGE_FAIL && !(w->exact && node->could_start))
            node->could_not = true;
        /* Its judge may have heard of the failures before the successes. */
        if (!w->exact && w->x.m->quota[n] && count(&w->x, n, -1, is_failed) > 1)
            node->could_not = true;
    }
}

static bool is_needless(const struct watched *w, uint32_t n)
{
    return !w->x.m->keep[n] && needless(&w->x, n);
}

/* A thread that has taken it up need not have called its `begin`. */
static bool may_be_interrupted(const struct watched *w, uint32_t n)
{
    return (w->interrupt || w->x.m->interrupt[n]) && is_needless(w, n);
}

/* ---- callbacks and bodies ------------------------------------------------------------------------------ */

static int watch_begin(weir_step *step, void *n_arg)
{
    struct watched *w = weir_step_input(step);
    uint32_t n = (uint32_t)(uintptr_t)n_arg;
    struct watched_node *node = &w->node[n];

    CHECK(!w->settled && node->phase == NOT_BEGUN && node->results == 0);
    CHECK(may_start(w, n));
    if (w->exact)
        CHECK(!is_needless(w, n));
    w->x.left[n] = true;
    node->phase = BEGUN;
    return node->begin_error;
}

/* Values that the nodes before it left behind are there to be read. */
static void read_those_before(const struct watched *w, uint32_t n, weir_step *step)
{
    for (uint32_t i = 0; i < n; i++) {
        weir_node_result before = WEIR_NODE_RESULT;
        if (!w->x.m->edge[i][n] || !(w->x.told[i] || w->shape->silent))
            continue;
        CHECK_EQ(weir_step_result(&before, step, id_of[i]), 0);
        CHECK_EQ(before.outcome, w->shape->silent ? WEIR_DONE : w->x.outcome[i]);
        CHECK(before.value == (before.outcome == WEIR_DONE ? id_of[i] : NULL));
    }
}

/* The only node before n, if n is the only one after that; else n itself. */
static uint32_t sole_predecessor(const struct watched *w, uint32_t n)
{
    uint32_t found = n, number = 0;

    for (uint32_t i = 0; i < n; i++)
        if (w->x.m->edge[i][n]) {
            found = i;
            number++;
        }
    return number == 1 && out_degree(&w->x, found) == 1 ? found : n;
}

/* The same depth as where its row began, give or take the ways there are to call a body. */
static void check_frame(struct watched *w, uint32_t n)
{
    uint32_t before = sole_predecessor(w, n);
    ptrdiff_t distance;

    if (before == n || w->shape->is_task[n] || w->shape->is_task[before] || w->shape->sleepy)
        return;
    if (w->node[before].phase != OUT_OF_BODY || w->node[before].body_error ||
        (!w->shape->silent && w->x.outcome[before] != WEIR_DONE))
        return;
    distance = w->node[n].frame - w->node[before].frame;
    CHECK(distance > -FRAMES_MAX && distance < FRAMES_MAX);
    w->node[n].frame = w->node[before].frame;
    sole_successors++;
}

static int watch_body(void **value, void *n_arg, weir_step *step)
{
    struct watched *w = weir_step_input(step);
    uint32_t n = (uint32_t)(uintptr_t)n_arg;
    struct watched_node *node = &w->node[n];

    CHECK(node->phase == (w->shape->silent ? NOT_BEGUN : BEGUN));
    node->phase = IN_BODY;
    node->frame = __builtin_frame_address(0);
    check_frame(w, n);
    read_those_before(w, n, step);
    *value = id_of[n];
    if (node->nap_ms)
        weir_sleep(weir_now() + node->nap_ms * MS);
    node->phase = OUT_OF_BODY;
    return node->body_error;
}

static weir_outcome outcome_of(int error)
{
    return error == 0 ? WEIR_DONE : error == WEIR_ECANCELED ? WEIR_CANCELLED : WEIR_FAILED;
}

/* Whether a node may end like that now. */
static bool is_plausible(const struct watched *w, uint32_t n, weir_outcome outcome)
{
    const struct watched_node *node = &w->node[n];

    if (w->from_outside && (outcome == WEIR_CANCELLED || outcome == WEIR_TIMED_OUT))
        return true;
    switch (node->phase) {
    case NOT_BEGUN:
        if (outcome == WEIR_SKIPPED)
            return is_needless(w, n);
        if (outcome != WEIR_DONE && node->could_not)
            return true;
        break;
    case BEGUN:
        if (node->begin_error && outcome == WEIR_FAILED)
            return true;
        break;
    case OUT_OF_BODY:
        if (outcome == outcome_of(node->body_error))
            return true;
        break;
    case IN_BODY:
        break;
    }
    return outcome == WEIR_CANCELLED && may_be_interrupted(w, n);
}

static void watch_result(const weir_node_result *result, void *n_arg)
{
    uint32_t n = (uint32_t)(uintptr_t)n_arg;
    struct watched *w = watched;

    while (w->task && w->task != result->run) /* not known yet: it is being started */
        w++;
    CHECK(!w->settled && w->node[n].results == 0);
    w->node[n].results++;
    if (!is_plausible(w, n, result->outcome))
        weir_sim_fail(
            "%s: outcome %d, phase %d, could start: %d, could not: %d, needless: %d, exact: %d",
            id_of[n], result->outcome, w->node[n].phase, w->node[n].could_start,
            w->node[n].could_not, is_needless(w, n), w->exact);
    skipped += result->outcome == WEIR_SKIPPED;
    w->x.stand[n] = ENDED;
    w->x.outcome[n] = result->outcome;
    w->x.told[n] = w->x.left[n] = true;
    learn(w);
}

/* Nodes of a silent flow must have all those before them. */
static void judge_silent(const struct watched *w, uint32_t n, weir_outcome outcome)
{
    const struct watched_node *node = &w->node[n];
    bool all_done = true;

    for (uint32_t i = 0; i < n; i++)
        all_done = all_done && (!w->x.m->edge[i][n] || w->x.outcome[i] == WEIR_DONE);
    if (w->from_outside && (outcome == WEIR_CANCELLED || outcome == WEIR_TIMED_OUT))
        return;
    if (node->phase != NOT_BEGUN)
        CHECK(all_done && (outcome == outcome_of(node->body_error) ||
                           (outcome == WEIR_CANCELLED && (w->interrupt || w->x.m->interrupt[n]))));
    else if (outcome == WEIR_SKIPPED)
        CHECK(w->x.m->skip != WEIR_SKIP_NEVER && !w->x.m->keep[n] && out_degree(&w->x, n));
    else
        CHECK(outcome != WEIR_DONE && (!all_done || w->interrupt || w->x.m->interrupt[n]));
}

/* ---- graphs, and their runs ---------------------------------------------------------------------------- */

static bool has_musts_only(const struct matrix *m)
{
    for (uint32_t to = 0; to < m->nodes; to++)
        for (uint32_t from = 0; from < to; from++)
            if (m->quota[to] || (m->edge[from][to] && m->need[from][to] != WEIR_MUST))
                return false;
    return true;
}

static void build(struct shape *shape, struct luck *luck)
{
    weir_node *node[NODES_MAX];

    draw(&shape->m, luck);
    shape->silent = has_musts_only(&shape->m) && luck_below(luck, 2);
    shape->flow = new_flow("graph");
    shape->sleepy = luck_below(luck, 2);
    for (uint32_t n = 0; n < shape->m.nodes; n++) {
        shape->is_task[n] = luck_below(luck, shape->silent ? 40 : 8) == 0;
        CHECK_EQ(weir_flow_node(&node[n], shape->flow, id_of[n], watch_body, (void *)(uintptr_t)n,
                                WEIR_NODE(.begin = shape->silent ? NULL : watch_begin,
                                          .result = shape->silent ? NULL : watch_result,
                                          .callback_arg = (void *)(uintptr_t)n,
                                          .at_least = shape->m.at_least[n],
                                          .never_skip = shape->m.keep[n],
                                          .interrupt = shape->m.interrupt[n],
                                          .judge = shape->m.quota[n] ? by_quota : NULL,
                                          .judge_arg = (void *)(uintptr_t)shape->m.quota[n],
                                          .group = shape->is_task[n] ? "other" : NULL)),
                 0);
        for (uint32_t i = 0; i < n; i++)
            if (shape->m.edge[i][n])
                needs(node[n], node[i], shape->m.need[i][n]);
    }
}

static void start_watched(struct watched *w, const struct shape *shape, weir_group *group,
                          struct luck *luck, bool exact)
{
    int64_t deadline_ms = exact || luck_below(luck, 3) ? 0 : 1 + (int64_t)luck_below(luck, 6);

    memset(w, 0, sizeof(*w));
    w->shape = shape;
    w->x.m = &shape->m;
    w->exact = exact;
    w->from_outside = deadline_ms;
    w->interrupt = luck_below(luck, 4) == 0;
    for (uint32_t n = 0; n < shape->m.nodes; n++) {
        struct watched_node *node = &w->node[n];
        node->begin_error = luck_below(luck, 24) ? 0 : -EPERM;
        node->body_error = luck_below(luck, 5) ? 0 : luck_below(luck, 3) ? -EIO : WEIR_ECANCELED;
        node->nap_ms = shape->sleepy ? (int64_t)luck_below(luck, NAP_MAX_MS + 1) : 0;
        if (count(&w->x, n, -1, is_any) == 0)
            node->could_start = w->x.left[n] = true;
    }
    CHECK_EQ(weir_flow_start(&w->task, shape->flow, group,
                             WEIR_RUN(.input = w, .skip = shape->m.skip, .deadline_ms = deadline_ms,
                                      .interrupt = w->interrupt, .times = luck_below(luck, 2)),
                             NULL),
             0);
}

static void read_all(struct watched *w, weir_node_result result[NODES_MAX])
{
    for (uint32_t n = 0; n < w->x.m->nodes; n++) {
        result[n] = result_in(w->task, id_of[n]);
        CHECK_EQ(w->node[n].results, !w->shape->silent);
        if (w->shape->silent)
            w->x.outcome[n] = result[n].outcome;
        CHECK_EQ(result[n].outcome, w->x.outcome[n]);
    }
}

/* The run comes to an end, and nothing changes after that. */
static void judge_end(struct watched *w, weir_executor *ex)
{
    weir_node_result then[NODES_MAX], later[NODES_MAX];

    CHECK_EQ(weir_task_wait(NULL, w->task, weir_now() + LONGEST_MS * MS), 0);
    w->settled = true;
    memset(then, 0, sizeof(then));
    memset(later, 0, sizeof(later));
    read_all(w, then);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0); /* also bodies that no caller waits for */
    read_all(w, later);
    for (uint32_t n = 0; n < w->x.m->nodes; n++)
        if (memcmp(&then[n], &later[n], sizeof(then[n])) != 0)
            weir_sim_fail("%s changed after its run had ended", id_of[n]);
    for (uint32_t n = 0; n < w->x.m->nodes && w->shape->silent; n++)
        judge_silent(w, n, w->x.outcome[n]);
}

static void try_graph(weir_executor *ex, struct luck *luck, bool one_worker)
{
    bool exact = one_worker && luck_below(luck, 4);
    int runs = exact ? 1 : 1 + (int)luck_below(luck, RUNS_MAX);
    struct shape shape;

    memset(&shape, 0, sizeof(shape));
    build(&shape, luck);
    for (int i = 0; i < RUNS_MAX; i++)
        watched[i].task = NULL;
    for (int i = 0; i < runs; i++)
        start_watched(&watched[i], &shape, group_of(ex, "g"), luck, exact);
    if (!exact && luck_below(luck, 4) == 0) {
        weir_sleep(weir_now() + (int64_t)luck_below(luck, 4) * MS);
        watched[0].from_outside = true;
        weir_task_cancel(watched[0].task);
    }
    for (int i = 0; i < runs; i++)
        judge_end(&watched[i], ex);
    for (int i = 0; i < runs; i++)
        weir_task_unref(watched[i].task);
    weir_flow_free(shape.flow);
    graphs++;
}

SIM_TEST(test_graphs_by_chance_run_by_the_rules, SEEDS)
{
    struct luck luck = { weir_sim_random() };
    bool one_worker = luck_below(&luck, 2);
    const weir_group_policy other = { .key = "other", .limit = 1 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = one_worker ? 1 : 2 + (uint32_t)luck_below(&luck, 2),
                                 .group_limit = 1 + (int64_t)luck_below(&luck, 4), .groups = &other,
                                 .group_count = 1));

    for (uint32_t n = 0; n < NODES_MAX; n++)
        snprintf(id_of[n], sizeof(id_of[n]), "n%u", n);
    for (int i = 0; i < GRAPHS_PER_SEED; i++)
        try_graph(ex, &luck, one_worker);
    check_books(ex);
    weir_executor_free(ex);
}

/* The search above would show nothing if it found no such cases. */
static void test_the_graphs_were_many_and_of_all_kinds(void **state)
{
    (void)state;
    printf("%llu graphs, %llu nodes skipped, %llu sole successors\n", (unsigned long long)graphs,
           (unsigned long long)skipped, (unsigned long long)sole_successors);
    if (getenv("WEIR_SEED"))
        return;
    assert_true(graphs >= (SANITIZED ? 20000 : 100000));
    assert_true(skipped >= graphs / 10 && sole_successors >= graphs / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs_by_chance_run_by_the_rules),
        cmocka_unit_test(test_the_graphs_were_many_and_of_all_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
