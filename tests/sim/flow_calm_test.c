/* Runs of plain nodes, which turns end by plain stores as long as nothing else decides nodes (Note: calm runs, in
 * src/flow/run.h): by chance, with cancels, deadlines and failures at any moment, and a look at every node meanwhile. Some
 * bodies have no value, some change their context, some add nodes. The simulator treats flows of two nodes as large ones.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

enum { FEW = 24, NODES = 96, QUICK = 64, NAPS_US = 50 + 100 };

/* The record of each node, and its orders. */
static struct plain {
    bool before[NODES]; /* which nodes it must have */
    int64_t ms;
    int error;
    bool has_drop;
    bool has_none; /* no value */
    bool changes;  /* its context */
    bool adds;     /* a node */
    int ran, dropped;
} plain[NODES];
static const weir_local context = WEIR_LOCAL(NULL);
static uint32_t nodes;
static char plain_id[NODES][12];

static uint32_t chance(uint32_t below)
{
    return (uint32_t)(weir_sim_random() % below);
}

static int gives_nothing(void **value, void *arg, weir_step *step)
{
    (void)arg;
    (void)step;
    *value = NULL;
    return 0;
}

static void add_a_node(weir_step *step)
{
    weir_flow *flow = new_flow("added");

    CHECK_EQ(weir_flow_node(NULL, flow, "added", gives_nothing, NULL, NULL), 0);
    CHECK_EQ(weir_step_expand(step, flow, NULL, NULL), 0);
}

static void *value_of(const struct plain *p)
{
    return p->has_none ? NULL : (void *)p;
}

static int plain_body(void **value, void *arg, weir_step *step)
{
    struct plain *p = arg;
    weir_node_result result = WEIR_NODE_RESULT;

    CHECK_EQ(p->ran++, 0);
    for (uint32_t n = 0; n < nodes; n++) {
        if (!p->before[n])
            continue;
        CHECK_EQ(weir_step_result(&result, step, plain_id[n]), 0);
        CHECK_EQ(result.outcome, WEIR_DONE);
        CHECK(result.value == value_of(&plain[n]));
    }
    if (p->ms)
        weir_sleep(weir_now() + p->ms * MS); /* also if it is asked to end */
    if (p->changes)
        CHECK_EQ(weir_local_set(&context, p), 0);
    if (p->adds)
        add_a_node(step);
    if (!p->has_none)
        *value = p;
    return p->error;
}

static void plain_drop(void *value)
{
    ((struct plain *)value)->dropped++;
}

/* Straight runs of nodes, with a fork or a join now and then. Some begin with so many short bodies that one turn goes on
 * alone (Note: brisk turns, in the same place). */
static weir_flow *draw_flow(void)
{
    weir_flow *flow = new_flow("calm");
    weir_node *node[NODES];
    uint32_t quick = chance(3) ? 0 : QUICK;

    memset(plain, 0, sizeof(plain));
    nodes = quick + 2 + chance((quick ? NODES - QUICK : FEW) - 1);
    for (uint32_t n = 0; n < nodes; n++) {
        struct plain *p = &plain[n];
        snprintf(plain_id[n], sizeof(plain_id[n]), "%u", n);
        p->ms = n < quick || chance(6) ? 0 : chance(3);
        p->error = n < quick || chance(60) ? 0 : -EIO;
        p->has_drop = chance(2);
        p->has_none = chance(2);
        p->changes = chance(20) == 0;
        p->adds = n >= quick && chance(30) == 0;
        CHECK_EQ(weir_flow_node(&node[n], flow, plain_id[n], plain_body, p,
                                WEIR_NODE(.drop = p->has_drop ? plain_drop : NULL)),
                 0);
        for (uint32_t joins = chance(5) ? 1 : chance(4); n && joins; joins--)
            p->before[chance(3) ? n - 1 : chance(n)] = true;
        for (uint32_t up = 0; up < n; up++)
            if (p->before[up])
                must(node[n], node[up]);
    }
    return flow;
}

/* How every node stands; the same again if nothing may change any more. */
static void look(weir_task *run, weir_node_result result[NODES], bool again)
{
    for (uint32_t n = 0; n < nodes; n++) {
        weir_node_result now = result_in(run, plain_id[n]);
        if (result[n].outcome != WEIR_UNSETTLED || again) {
            CHECK_EQ(now.outcome, result[n].outcome);
            CHECK_EQ(now.error, result[n].error);
            CHECK(now.value == result[n].value);
        }
        result[n] = now;
    }
}

static void check_end(const weir_result *run, const weir_node_result result[NODES])
{
    for (uint32_t n = 0; n < nodes; n++) {
        const struct plain *p = &plain[n];
        bool all_done = true;
        CHECK(result[n].outcome != WEIR_UNSETTLED);
        CHECK(result[n].value == (result[n].outcome == WEIR_DONE ? value_of(p) : NULL));
        for (uint32_t up = 0; up < n; up++)
            all_done = all_done && (!p->before[up] || result[up].outcome == WEIR_DONE);
        if (result[n].outcome == WEIR_DONE)
            CHECK(p->ran == 1 && !p->error && all_done);
        if (p->ran)
            CHECK(all_done);
        if (run->outcome == WEIR_DONE)
            CHECK_EQ(result[n].outcome, WEIR_DONE);
        if (run->outcome == WEIR_FAILED && all_done && !p->error)
            CHECK(result[n].outcome == WEIR_DONE || result[n].outcome == WEIR_SKIPPED);
    }
}

SIM_TEST(test_plain_nodes_end_once_whatever_happens_meanwhile, 1500)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1 + chance(3), .group_limit = 1 + chance(4)));
    weir_flow *flow = draw_flow();
    int64_t deadline_ms = chance(3) ? 0 : 1 + chance(6);
    weir_task *run = start(flow, group_of(ex, "g"), WEIR_RUN(.deadline_ms = deadline_ms));
    weir_node_result result[NODES] = { { .size = 0 } };
    weir_result end = WEIR_RESULT;

    if (chance(2)) {
        for (uint32_t looks = chance(3); looks; looks--) {
            if (chance(2))
                weir_sleep(weir_now() + chance(3) * MS);
            look(run, result, false);
        }
        for (uint32_t moments = chance(100); moments; moments--)
            weir_sim_pause();
        weir_task_cancel(run);
    }
    CHECK_EQ(weir_task_wait(&end, run, WEIR_FOREVER), 0);
    look(run, result, false);
    check_end(&end, result);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    look(run, result, true);
    check_books(ex);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
    for (uint32_t n = 0; n < nodes; n++)
        CHECK_EQ(plain[n].dropped, plain[n].ran && plain[n].has_drop && !plain[n].has_none);
}

/* ---- brisk turns ----------------------------------------------------------------------------------------- */

/* Short bodies, then two long ones that can run at the same time. */
static weir_flow *quick_then_long(void)
{
    weir_flow *flow = new_flow("brisk");
    weir_node *node[NODES];

    memset(plain, 0, sizeof(plain));
    nodes = QUICK + 2;
    for (uint32_t n = 0; n < nodes; n++) {
        snprintf(plain_id[n], sizeof(plain_id[n]), "%u", n);
        plain[n].ms = n < QUICK ? 0 : 10;
        CHECK_EQ(weir_flow_node(&node[n], flow, plain_id[n], plain_body, &plain[n], NULL), 0);
        if (n > 1)
            must(node[n], node[n < QUICK ? n - 2 : n % 2]);
        if (n >= QUICK)
            for (uint32_t up = 2; up < QUICK; up++)
                must(node[n], node[up]);
    }
    return flow;
}

SIM_TEST(test_a_long_body_after_many_short_ones_keeps_no_other_waiting, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_flow *flow = quick_then_long();
    weir_time began = weir_now();
    weir_task *run = start(flow, group_of(ex, "g"), NULL);

    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK(weir_now() - began >= 10 * MS);
    CHECK(weir_now() - began <=
          10 * MS + NAPS_US * MS / 1000); /* that is when the other turn saw it */
    weir_task_unref(run);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    check_books(ex);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

static int note_time(void **value, void *arg)
{
    (void)value;
    *(weir_time *)arg = weir_now();
    return 0;
}

SIM_TEST(test_a_turn_that_stands_by_lets_other_tasks_go_first, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_flow *flow = quick_then_long();
    weir_time began = weir_now(), ran[4] = { 0 };
    weir_task *run = start(flow, group_of(ex, "g"), NULL);

    for (uint32_t moments = chance(200); moments; moments--)
        weir_sim_pause();
    for (int i = 0; i < 4; i++)
        CHECK_EQ(weir_submit(NULL, group_of(ex, "g"), note_time, &ran[i], NULL), 0);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    for (int i = 0; i < 4; i++)
        CHECK(ran[i] && ran[i] - began <= 10 * MS + NAPS_US * MS / 1000);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_nodes_end_once_whatever_happens_meanwhile),
        cmocka_unit_test(test_a_long_body_after_many_short_ones_keeps_no_other_waiting),
        cmocka_unit_test(test_a_turn_that_stands_by_lets_other_tasks_go_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
