/* The cases of asyncTool 1.5, with exact times: what weir keeps of them, and what it does better. Those of 1.4 are in
 * flow_rows_test.c.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

/* A->{B,C}->F(2 s), D->E->G, H after F and G, on one thread: F is asked to end at the deadline, H never runs. */
SIM_TEST(test_the_deadline_asks_bodies_to_end_if_that_is_wanted, 30)
{
    weir_flow *flow = new_flow("case1");
    weir_node *n[8];
    static const char *const id[] = { "A", "B", "C", "D", "E", "F", "G", "H" };
    weir_result result;

    forget_nodes();
    for (int i = 0; i < 8; i++)
        n[i] = add(flow, id[i], i == 5 ? 2000 : 0);
    must(n[1], n[0]);
    must(n[2], n[0]);
    must(n[5], n[1]);
    must(n[5], n[2]);
    must(n[4], n[3]);
    must(n[6], n[4]);
    needs(n[7], n[5], WEIR_AFTER);
    needs(n[7], n[6], WEIR_AFTER);
    result = run_flow(flow, 1, 100, WEIR_RUN(.deadline_ms = 1000, .interrupt = true));
    check_settled(&result, WEIR_TIMED_OUT, 1000);
    check_told("F", WEIR_TIMED_OUT, 1000);
    CHECK(node_seen("F")->saw_cancel);
    CHECK_EQ(node_seen("F")->ended, at(1000));
    CHECK_EQ(node_seen("H")->ran, 0);
    weir_flow_free(flow);
}

/* C1 all of {B1, B2}, C2 any of {B3, B4, B5}, two at a time: a B that has not begun when C2 did is skipped. */
SIM_TEST(test_ready_nodes_that_wait_for_a_limit_are_skipped, 50)
{
    static const char *const id[] = { "B1", "B2", "B3", "B4", "B5" };
    weir_flow *flow = new_flow("case3");
    weir_node *b[5], *c1, *c2;

    forget_nodes();
    for (int i = 0; i < 5; i++)
        b[i] = add(flow, id[i], i == 3 ? 15 : 10);
    c1 = add(flow, "C1", 10);
    c2 = add(flow, "C2", 10);
    must(c1, b[0]);
    must(c1, b[1]);
    for (int i = 2; i < 5; i++)
        needs(c2, b[i], WEIR_ANY);
    CHECK_EQ(run_flow(flow, 2, 2, NULL).outcome, WEIR_DONE);
    CHECK_EQ(node_seen("C1")->ran, 1);
    CHECK_EQ(node_seen("C2")->ran, 1);
    CHECK(node_seen("B3")->ran + node_seen("B4")->ran + node_seen("B5")->ran < 3);
    weir_flow_free(flow);
}

static weir_judgement more_than_three(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)step;
    (void)arg;
    CHECK_EQ(edges->total, 9);
    return edges->succeeded > 3 ? WEIR_JUDGE_START : WEIR_JUDGE_WAIT;
}

SIM_TEST(test_a_judge_decides_by_nodes_that_have_ended, 50)
{
    static const char *const id[] = { "B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9" };
    weir_flow *flow = new_flow("case4");
    weir_node *b[9], *c;

    forget_nodes();
    for (int i = 0; i < 9; i++)
        b[i] = add(flow, id[i], 10 * (i + 1));
    c = add_with(flow, "C", 5, WEIR_NODE(.judge = more_than_three));
    for (int i = 0; i < 9; i++)
        must(c, b[i]);
    run_for(flow, 0);
    check_ran("C", 40, 45);
    weir_flow_free(flow);
}

static weir_judgement never_again(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)step;
    (void)arg;
    (void)edges;
    return WEIR_JUDGE_WAIT;
}

static weir_judgement refuses(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)edges;
    (void)step;
    (void)arg;
    return WEIR_JUDGE_FAIL;
}

static weir_judgement starts(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)step;
    (void)arg;
    CHECK_EQ(edges->failed, 1);
    return WEIR_JUDGE_START;
}

/* The failure; waiting for nothing; and the start that WEIR_MUST would forbid. */
SIM_TEST(test_a_judge_replaces_all_kinds, 20)
{
    static weir_judge_fn *const judge[] = { never_again, refuses, starts };

    for (int i = 0; i < 3; i++) {
        weir_flow *flow = new_flow("judged");
        weir_node *a, *b;
        bool runs = judge[i] == starts;
        forget_nodes();
        a = add(flow, "a", 10);
        b = add_with(flow, "b", 10, WEIR_NODE(.judge = judge[i]));
        node_seen("a")->error = runs ? -EIO : 0;
        must(b, a);
        CHECK_EQ(run_flow(flow, 2, 4, NULL).outcome, runs ? WEIR_DONE : WEIR_FAILED);
        check_node("b", runs ? WEIR_DONE : WEIR_FAILED);
        CHECK_EQ(node_seen("b")->ran, runs);
        weir_flow_free(flow);
    }
}

/* a fails, so that c may start; but so does b, and with it d, the only node that needs c. */
SIM_TEST(test_a_node_that_loses_its_only_user_before_it_begins_is_skipped, 30)
{
    weir_flow *flow = new_flow("late loss");
    weir_node *a, *b, *c, *d;

    forget_nodes();
    a = add(flow, "a", 0);
    b = add(flow, "b", 10);
    c = add(flow, "c", 10);
    d = add(flow, "d", 10);
    node_seen("a")->error = -EIO;
    must(b, a);
    needs(c, a, WEIR_AFTER);
    must(d, b);
    needs(d, c, WEIR_ANY);
    run_flow(flow, 1, 4, NULL);
    check_told("c", WEIR_SKIPPED, 0);
    CHECK_EQ(node_seen("c")->began, 0);
    weir_flow_free(flow);
}

/* must {A3, A4} of ten, the others optional: those that have not begun are skipped. */
SIM_TEST(test_optional_nodes_that_have_not_begun_are_skipped, 30)
{
    static const char *const id[] = { "A0", "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9" };
    weir_flow *flow = new_flow("case5");
    weir_node *a[10], *b;
    int skipped = 0;

    forget_nodes();
    for (int i = 0; i < 10; i++)
        a[i] = add(flow, id[i], 10);
    b = add(flow, "B", 10);
    for (int i = 0; i < 10; i++)
        needs(b, a[i], i == 3 || i == 4 ? WEIR_MUST : WEIR_OPTIONAL);
    CHECK_EQ(run_flow(flow, 2, 3, NULL).outcome, WEIR_DONE);
    CHECK_EQ(node_seen("B")->ran, 1);
    for (int i = 0; i < 10; i++)
        skipped += seen[i].outcome == WEIR_SKIPPED;
    CHECK(skipped > 0 && skipped <= 4); /* six have begun when both musts are done */
    weir_flow_free(flow);
}

/* A->{B(10)->C, E(5)}->D any */
static weir_flow *case7(void)
{
    weir_flow *flow = new_flow("case7");
    weir_node *a, *b, *c, *d, *e;

    forget_nodes();
    a = add(flow, "A", 0);
    b = add(flow, "B", 10);
    c = add(flow, "C", 5);
    d = add(flow, "D", 1);
    e = add(flow, "E", 5);
    must(b, a);
    must(e, a);
    must(c, b);
    needs(d, c, WEIR_ANY);
    needs(d, e, WEIR_ANY);
    return flow;
}

SIM_TEST(test_skipping_can_be_switched_off, 30)
{
    weir_flow *flow = case7();

    run_flow(flow, 2, 4, NULL);
    check_told("C", WEIR_SKIPPED, 5);
    check_ran("D", 5, 6);
    check_node("B", WEIR_DONE);
    forget_run();
    run_flow(flow, 2, 4, WEIR_RUN(.skip = WEIR_SKIP_NEVER));
    check_node("C", WEIR_DONE);
    forget_run();
    run_flow(flow, 2, 4, WEIR_RUN(.skip = WEIR_SKIP_CHAIN));
    check_node("C", WEIR_SKIPPED);
    forget_run();
    run_flow(flow, 2, 4, WEIR_RUN(.skip = WEIR_SKIP_ONE_LEVEL));
    check_node("C", WEIR_SKIPPED); /* D has ended before B */
    weir_flow_free(flow);
}

SIM_TEST(test_a_deadline_in_the_middle_leaves_one_result_for_each, 100)
{
    weir_flow *flow = new_flow("case8");
    weir_node *a, *b, *c;

    forget_nodes();
    a = add(flow, "A", 0);
    b = add(flow, "B", 10);
    c = add(flow, "C", 20);
    must(b, a);
    must(c, b);
    CHECK_EQ(run_for(flow, 20).outcome, WEIR_TIMED_OUT);
    check_node("B", WEIR_DONE);
    check_node("C", WEIR_TIMED_OUT);
    weir_flow_free(flow);
}

enum { FEW_NODES = 27 };

static void no_result(const weir_node_result *result, void *arg)
{
    (void)result;
    (void)arg;
}

/* A body that does not end before the run does, after others of its turn. */
static void check_settles_beside_a_body(int nodes, const weir_node_options *options, bool cancelled)
{
    static char id[FEW_NODES][12];
    weir_flow *flow = new_flow("busy");
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .stall_after_ms = 1000));
    weir_time began = weir_now();
    weir_node *node[FEW_NODES];
    weir_result result = WEIR_RESULT;
    weir_task *run;

    forget_nodes();
    for (int i = 0; i < nodes; i++) {
        struct seen *s;
        snprintf(id[i], sizeof(id[i]), "%d", i);
        s = new_seen(id[i], i == nodes - 1 ? 50 : 0);
        s->busy = true;
        CHECK_EQ(weir_flow_node(&node[i], flow, id[i], node_body, s, options), 0);
        if (i)
            must(node[i], node[i - 1]);
    }
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.deadline_ms = cancelled ? 0 : 10));
    if (cancelled) {
        CHECK_EQ(weir_sleep(began + 10 * MS), 0);
        CHECK(weir_task_cancel(run));
        CHECK(weir_task_done(run));
    }
    CHECK_EQ(weir_task_wait(&result, run, WEIR_FOREVER), 0);
    CHECK_EQ(weir_now(), began + 10 * MS);
    CHECK_EQ(result.outcome, cancelled ? WEIR_CANCELLED : WEIR_TIMED_OUT);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_a_run_settles_though_a_body_goes_on, 40)
{
    for (int cancelled = 0; cancelled < 2; cancelled++)
        for (int nodes = 1; nodes <= FEW_NODES; nodes *= 3) {
            check_settles_beside_a_body(nodes, NULL, cancelled);
            check_settles_beside_a_body(nodes, WEIR_NODE(.result = no_result), cancelled);
            check_settles_beside_a_body(nodes, WEIR_NODE(.task = true), cancelled);
        }
}

SIM_TEST(test_a_cancelled_run_settles_at_once, 100)
{
    weir_flow *flow = sequence(10);
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_task *run = start(flow, group_of(ex, "g"), NULL);
    weir_result result = WEIR_RESULT;

    sleep_until(25);
    CHECK(weir_task_cancel(run));
    CHECK_EQ(weir_task_wait(&result, run, WEIR_NOW_OR_NEVER), 0);
    CHECK_EQ(result.outcome, WEIR_CANCELLED);
    CHECK(!weir_task_cancel(run));
    check_results(run);
    check_ran("0", 0, 10);
    check_ran("1", 10, 20);
    check_told("2", WEIR_CANCELLED, 25);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK(node_seen("2")->saw_cancel);
    CHECK_EQ(node_seen("2")->ended, at(25));
    weir_task_unref(run);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

/* C starts after any three of ten. */
SIM_TEST(test_at_least_three_of_ten, 50)
{
    static const char *const id[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
    weir_flow *flow = new_flow("three of ten");
    weir_node *node[10], *c;

    forget_nodes();
    for (int i = 0; i < 10; i++)
        node[i] = add(flow, id[i], 10 * (i + 1));
    c = add_with(flow, "C", 5, WEIR_NODE(.at_least = 3));
    for (int i = 0; i < 10; i++)
        needs(c, node[i], WEIR_AT_LEAST);
    seen[0].error = -EIO;
    run_for(flow, 0);
    check_ran("C", 40, 45); /* 1, 2 and 3 */
    forget_run();
    for (int i = 0; i < 8; i++)
        seen[i].error = -EIO;
    weir_time began = weir_now();
    CHECK_EQ(run_for(flow, 0).outcome, WEIR_FAILED);
    CHECK_EQ(node_seen("C")->told - began, 80 * MS); /* when three can no longer be had */
    weir_flow_free(flow);
}

SIM_TEST(test_a_thousand_independent_nodes, 2)
{
    weir_flow *flow = new_flow("thousand");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT));
    char id[16];

    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof(id), "%d", i);
        CHECK_EQ(weir_flow_node(NULL, flow, id, gives, NULL, NULL), 0);
    }
    check_done(start(flow, group_of(ex, "g"), WEIR_RUN(.deadline_ms = 100)));
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

/* A -> {B1, B2} -> {C1, C2} on two threads that are blocked by what they run. */
SIM_TEST(test_a_pool_that_is_as_small_as_the_fork_is_enough, 50)
{
    weir_flow *flow = new_flow("v14");
    weir_node *a, *b1, *b2, *c1, *c2;

    forget_nodes();
    a = add(flow, "A", 10);
    b1 = add(flow, "B1", 10);
    b2 = add(flow, "B2", 10);
    c1 = add(flow, "C1", 10);
    c2 = add(flow, "C2", 10);
    for (int i = 0; i < seen_count; i++)
        seen[i].busy = true;
    must(b1, a);
    must(b2, a);
    must(c1, b1);
    must(c2, b2);
    CHECK_EQ(run_flow(flow, 2, 4, WEIR_RUN(.deadline_ms = 100)).outcome, WEIR_DONE);
    CHECK_EQ(node_seen("C1")->ended, at(30));
    CHECK_EQ(node_seen("C2")->ended, at(30));
    weir_flow_free(flow);
}

/* Run 200: B1 (100 of 150) and B2 are done; B3 (200 of 150) passes its own deadline, B4 and B5 (250) the run's; B6 is
 * cancelled, since it may be. */
SIM_TEST(test_deadlines_of_nodes_and_of_the_run, 50)
{
    weir_flow *flow = new_flow("time-outs");
    weir_result result;

    forget_nodes();
    add_with(flow, "B1", 100, WEIR_NODE(.deadlines = { .run_ms = 150 }));
    add(flow, "B2", 100);
    add_with(flow, "B3", 200, WEIR_NODE(.deadlines = { .run_ms = 150 }));
    add(flow, "B4", 250);
    add_with(flow, "B5", 250, WEIR_NODE(.task = true));
    add_with(flow, "B6", 250, WEIR_NODE(.interrupt = true));
    result = run_for(flow, 200);
    check_settled(&result, WEIR_TIMED_OUT, 200);
    check_told("B1", WEIR_DONE, 100);
    check_told("B2", WEIR_DONE, 100);
    check_told("B3", WEIR_TIMED_OUT, 150);
    CHECK_EQ(node_seen("B3")->reason, WEIR_REASON_RUN_DEADLINE);
    check_told("B4", WEIR_TIMED_OUT, 200);
    CHECK_EQ(node_seen("B4")->reason, WEIR_REASON_TOTAL_DEADLINE);
    CHECK_EQ(node_seen("B4")->ended, at(250));
    check_told("B5", WEIR_TIMED_OUT, 200);
    CHECK_EQ(node_seen("B5")->ended, at(250));
    check_told("B6", WEIR_TIMED_OUT, 200);
    CHECK_EQ(node_seen("B6")->ended, at(200));
    CHECK(node_seen("B6")->saw_cancel);
    weir_flow_free(flow);
}

/* A mixed graph: E1 comes after C1, which must have B1 and B2, and C2, for which any of B3 and B4 will do. */
SIM_TEST(test_all_and_any_in_one_graph, 30)
{
    static const char *const id[] = { "A", "B1", "B2", "B3", "B4", "C1", "C2", "E1" };
    weir_flow *flow = new_flow("mixed");
    weir_node *n[8];

    forget_nodes();
    for (int i = 0; i < 8; i++)
        n[i] = add(flow, id[i], 10 + i);
    for (int i = 1; i < 5; i++)
        must(n[i], n[0]);
    must(n[5], n[1]);
    must(n[5], n[2]);
    needs(n[6], n[3], WEIR_ANY);
    needs(n[6], n[4], WEIR_ANY);
    must(n[7], n[5]);
    must(n[7], n[6]);
    CHECK_EQ(run_for(flow, 0).outcome, WEIR_DONE);
    check_ran("C1", 22, 37);
    check_ran("C2", 23, 39);
    check_ran("E1", 39, 56);
    weir_flow_free(flow);
}

static int cancels_its_run(void **value, void *param, weir_step *step)
{
    (void)param;
    *value = NULL;
    CHECK(weir_task_cancel(weir_step_run(step)));
    return 0;
}

/* A node for which there is no going on ends the run itself. */
SIM_TEST(test_a_body_cancels_its_own_run, 50)
{
    weir_flow *flow = new_flow("case15");
    weir_node *fatal, *h;
    weir_result result;

    forget_nodes();
    h = add(flow, "H", 10);
    add(flow, "beside", 1000);
    CHECK_EQ(weir_flow_node(&fatal, flow, "fatal", cancels_its_run, NULL, NULL), 0);
    must(h, fatal);
    result = run_for(flow, 5000);
    check_settled(&result, WEIR_CANCELLED, 0);
    check_node("H", WEIR_CANCELLED);
    CHECK_EQ(node_seen("H")->ran, 0);
    weir_flow_free(flow);
}

/* A node without which all else is of no use: its failure cancels the run, long before the deadline would. */
SIM_TEST(test_the_failure_of_a_fatal_node_cancels_the_run_at_once, 100)
{
    weir_flow *flow = new_flow("case15");
    weir_node *fatal, *h;
    weir_result result;

    forget_nodes();
    fatal = add_with(flow, "fatal", 10, WEIR_NODE(.fatal = true));
    node_seen("fatal")->error = -EIO;
    h = add(flow, "H", 10);
    must(h, fatal);
    must(h, add(flow, "beside", 1000));
    add(flow, "apart", 1000);
    result = run_for(flow, 5000);
    check_settled(&result, WEIR_CANCELLED, 10);
    CHECK_EQ(result.reason, WEIR_REASON_DEPENDENCY);
    check_node("fatal", WEIR_FAILED);
    CHECK_EQ(node_seen("fatal")->result_error, -EIO);
    check_node("H", WEIR_CANCELLED);
    check_node("beside", WEIR_CANCELLED);
    check_node("apart", WEIR_CANCELLED);
    CHECK_EQ(node_seen("H")->ran, 0);
    CHECK(strcmp(node_seen("H")->cause, "fatal") == 0);
    weir_flow_free(flow);
}

SIM_TEST(test_a_fatal_node_that_succeeds_or_is_skipped_ends_nothing, 50)
{
    weir_flow *flow = new_flow("fatal");
    weir_node *last;
    weir_result result;

    forget_nodes();
    last = add(flow, "last", 10);
    needs(last, add_with(flow, "first", 10, WEIR_NODE(.fatal = true)), WEIR_ANY);
    needs(last, add_with(flow, "late", 20, WEIR_NODE(.fatal = true, .interrupt = true)), WEIR_ANY);
    needs(last, add_with(flow, "later", 20, WEIR_NODE(.fatal = true)), WEIR_ANY);
    result = run_flow(flow, 2, 2, NULL);
    check_settled(&result, WEIR_DONE, 20);
    check_node("first", WEIR_DONE);
    check_node("late", WEIR_CANCELLED);
    check_node("later", WEIR_SKIPPED);
    weir_flow_free(flow);
}

static int fails_in_10_ms(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)step;
    ++*(int *)arg;
    weir_sleep(weir_now() + 10 * MS);
    return -EIO;
}

SIM_TEST(test_a_fatal_node_is_tried_again_before_it_ends_the_run, 50)
{
    weir_flow *flow = new_flow("fatal");
    weir_result result;
    int tries = 0;

    forget_nodes();
    add(flow, "beside", 1000);
    CHECK_EQ(weir_flow_node(NULL, flow, "fatal", fails_in_10_ms, &tries,
                            WEIR_NODE(.fatal = true, .retries = 1, .backoff_ms = 5)),
             0);
    result = run_for(flow, 0);
    check_settled(&result, WEIR_CANCELLED, 10 + 5 + 10);
    CHECK_EQ(tries, 2);
    check_told("beside", WEIR_CANCELLED, 25);
    weir_flow_free(flow);
}

/* A directed graph: add, relate, remove, query; what is left runs. */
SIM_TEST(test_a_flow_is_changed_until_its_first_start, 20)
{
    weir_flow *flow = new_flow("graph");
    weir_node *a, *b, *c, *extra = NULL;
    weir_result result;

    forget_nodes();
    a = add(flow, "a", 10);
    b = add(flow, "b", 20);
    c = add(flow, "c", 30);
    CHECK_EQ(weir_flow_node(&extra, flow, "extra", node_body, NULL, NULL), 0);
    must(b, a);
    must(c, b);
    must(a, extra);
    needs(c, a, WEIR_AFTER);
    CHECK(weir_flow_find(flow, "extra") == extra);
    CHECK_EQ(weir_node_remove(extra), 0);
    CHECK_EQ(weir_flow_edge_remove(flow, "b", "c"), 0);
    CHECK(!weir_flow_find(flow, "extra") && !weir_flow_edge_get(NULL, flow, "b", "c"));
    result = run_for(flow, 0);
    check_settled(&result, WEIR_DONE, 40);
    check_ran("a", 0, 10);
    check_ran("b", 10, 30);
    check_ran("c", 10, 40);
    CHECK_EQ(weir_node_remove(c), WEIR_EALREADY);
    weir_flow_free(flow);
}

/* From rows of an adjacency matrix, by id. */
SIM_TEST(test_edges_by_id, 10)
{
    static const bool edge[3][3] = { { 0, 1, 1 }, { 0, 0, 1 }, { 0, 0, 0 } };
    static const char *const id[] = { "1", "2", "3" };
    weir_flow *flow = new_flow("case9");

    forget_nodes();
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            if (edge[i][k])
                CHECK_EQ(weir_flow_edge(flow, id[i], id[k], WEIR_MUST), 0);
    for (int i = 0; i < 3; i++)
        add(flow, id[i], 10);
    run_for(flow, 0);
    check_ran("1", 0, 10);
    check_ran("2", 10, 20);
    check_ran("3", 20, 30);
    weir_flow_free(flow);
}

static int endless(void **value, void *param, weir_step *step)
{
    (void)param;
    (void)step;
    *value = NULL;
    return weir_sleep(WEIR_FOREVER);
}

/* 40 runs of 23 nodes with one that never ends, a small queue, and overflow that the caller runs: all runs end. */
SIM_TEST(test_many_runs_in_a_crowded_group_all_end, 3)
{
    const weir_group_policy apart = { .key = "endless", .limit = WEIR_NO_LIMIT };
    weir_flow *flow = new_flow("crowd");
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = 20, .group_queue_max = 10,
                    .rejection = WEIR_CALLER_RUNS, .groups = &apart, .group_count = 1));
    weir_task *run[40];
    weir_node *node[23];
    char id[16];

    for (int i = 0; i < 23; i++) {
        snprintf(id, sizeof(id), "%d", i);
        CHECK_EQ(weir_flow_node(&node[i], flow, id, gives, NULL, NULL), 0);
        if (i > 1)
            must(node[i], node[i / 2]);
    }
    CHECK_EQ(weir_flow_node(NULL, flow, "endless", endless, NULL,
                            WEIR_NODE(.interrupt = true, .task = true, .group = "endless")),
             0);
    for (int i = 0; i < 40; i++)
        run[i] = start(flow, group_of(ex, "g"), WEIR_RUN(.deadline_ms = 10000));
    CHECK_EQ(weir_now(), at(0)); /* what the caller ran did not keep it */
    for (int i = 0; i < 40; i++)
        CHECK_EQ(result_of(run[i]).outcome, WEIR_TIMED_OUT);
    CHECK(weir_now() == at(10000));
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    check_books(ex);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_deadline_asks_bodies_to_end_if_that_is_wanted),
        cmocka_unit_test(test_ready_nodes_that_wait_for_a_limit_are_skipped),
        cmocka_unit_test(test_a_judge_decides_by_nodes_that_have_ended),
        cmocka_unit_test(test_a_judge_replaces_all_kinds),
        cmocka_unit_test(test_a_node_that_loses_its_only_user_before_it_begins_is_skipped),
        cmocka_unit_test(test_optional_nodes_that_have_not_begun_are_skipped),
        cmocka_unit_test(test_skipping_can_be_switched_off),
        cmocka_unit_test(test_a_deadline_in_the_middle_leaves_one_result_for_each),
        cmocka_unit_test(test_a_run_settles_though_a_body_goes_on),
        cmocka_unit_test(test_a_cancelled_run_settles_at_once),
        cmocka_unit_test(test_at_least_three_of_ten),
        cmocka_unit_test(test_a_thousand_independent_nodes),
        cmocka_unit_test(test_a_pool_that_is_as_small_as_the_fork_is_enough),
        cmocka_unit_test(test_deadlines_of_nodes_and_of_the_run),
        cmocka_unit_test(test_all_and_any_in_one_graph),
        cmocka_unit_test(test_a_body_cancels_its_own_run),
        cmocka_unit_test(test_the_failure_of_a_fatal_node_cancels_the_run_at_once),
        cmocka_unit_test(test_a_fatal_node_that_succeeds_or_is_skipped_ends_nothing),
        cmocka_unit_test(test_a_fatal_node_is_tried_again_before_it_ends_the_run),
        cmocka_unit_test(test_a_flow_is_changed_until_its_first_start),
        cmocka_unit_test(test_edges_by_id),
        cmocka_unit_test(test_many_runs_in_a_crowded_group_all_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
