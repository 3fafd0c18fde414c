/* Runs of plain nodes, which turns end by plain stores as long as nothing else decides nodes (Note: calm runs, in
 * src/flow/run.h): by chance, with cancels, deadlines and failures at any moment, and a look at every node meanwhile. The
 * simulator treats flows of two nodes as large ones.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

enum { NODES = 24 };

/* What was seen of each node, and what it is to do. */
static struct plain {
    bool before[NODES]; /* which nodes it must have */
    int64_t ms;
    int error;
    bool has_drop;
    int ran, dropped;
} plain[NODES];
static uint32_t nodes;
static char plain_id[NODES][12];

static uint32_t chance(uint32_t below)
{
    return (uint32_t)(weir_sim_random() % below);
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
        CHECK(result.value == &plain[n]);
    }
    if (p->ms)
        weir_sleep(weir_now() + p->ms * MS); /* also if it is asked to end */
    *value = p;
    return p->error;
}

static void plain_drop(void *value)
{
    ((struct plain *)value)->dropped++;
}

/* Straight runs of nodes, with a fork or a join now and then. */
static weir_flow *draw_flow(void)
{
    weir_flow *flow = new_flow("calm");
    weir_node *node[NODES];

    memset(plain, 0, sizeof(plain));
    nodes = 2 + chance(NODES - 1);
    for (uint32_t n = 0; n < nodes; n++) {
        struct plain *p = &plain[n];
        snprintf(plain_id[n], sizeof(plain_id[n]), "%u", n);
        p->ms = chance(6) ? 0 : chance(3);
        p->error = chance(60) ? 0 : -EIO;
        p->has_drop = chance(2);
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
        CHECK(result[n].value == (result[n].outcome == WEIR_DONE ? p : NULL));
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
        CHECK_EQ(plain[n].dropped, plain[n].ran && plain[n].has_drop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_nodes_end_once_whatever_happens_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
