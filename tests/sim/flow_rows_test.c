/* The cases of asyncTool's own tests and demos, version 1.4 and 1.5, with exact times: what weir keeps of them, and what
 * it does better.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

static weir_result run_for(weir_flow *flow, int64_t deadline_ms)
{
    return run_flow(flow, 2, 100, WEIR_RUN(.deadline_ms = deadline_ms));
}

static void check_settled(const weir_result *result, weir_outcome outcome, int64_t ms)
{
    CHECK_EQ(result->outcome, outcome);
    CHECK_EQ(result->ended_at, at(ms));
}

/* ---- 1.4 --------------------------------------------------------------------------------------------- */

static weir_flow *three_apart(void)
{
    weir_flow *flow = new_flow("three");

    forget_nodes();
    add(flow, "0", 1000);
    add(flow, "1", 1000);
    add(flow, "2", 1000);
    return flow;
}

SIM_TEST(test_independent_nodes_run_side_by_side, 50)
{
    weir_flow *flow = three_apart();
    weir_result result = run_for(flow, 1500);

    check_settled(&result, WEIR_DONE, 1000);
    check_ran("0", 0, 1000);
    check_ran("1", 0, 1000);
    check_ran("2", 0, 1000);
    weir_flow_free(flow);
}

SIM_TEST(test_nodes_that_run_at_the_deadline_time_out_with_their_fallback, 50)
{
    static int fallback;
    weir_flow *flow = new_flow("three");
    weir_result result;

    forget_nodes();
    add_with(flow, "0", 1000, WEIR_NODE(.fallback = &fallback));
    add(flow, "1", 1000);
    add(flow, "2", 1000);
    result = run_for(flow, 800);
    check_settled(&result, WEIR_TIMED_OUT, 800);
    CHECK_EQ(result.reason, WEIR_REASON_TOTAL_DEADLINE);
    check_told("0", WEIR_TIMED_OUT, 800);
    check_told("1", WEIR_TIMED_OUT, 800);
    check_told("2", WEIR_TIMED_OUT, 800);
    CHECK(node_seen("0")->result_value == &fallback);
    CHECK_EQ(node_seen("0")->result_error, WEIR_ETIMEDOUT);
    CHECK_EQ(node_seen("0")->ended, at(1000)); /* its body was not asked to end */
    CHECK(!node_seen("0")->saw_cancel);
    weir_flow_free(flow);
}

SIM_TEST(test_a_node_that_ends_with_the_deadline_has_one_result, 300)
{
    weir_flow *flow = three_apart();
    weir_result result = run_for(flow, 1000);

    CHECK(result.outcome == WEIR_DONE || result.outcome == WEIR_TIMED_OUT);
    weir_flow_free(flow);
}

static weir_flow *chain_and_one(bool from_the_other_end)
{
    weir_flow *flow = new_flow("multi");
    weir_node *zero, *one;

    forget_nodes();
    zero = add(flow, "0", 1000);
    one = add(flow, "1", 1000);
    add(flow, "2", 1000);
    if (from_the_other_end)
        CHECK_EQ(weir_node_feeds(zero, one, WEIR_MUST), 0);
    else
        must(one, zero);
    return flow;
}

SIM_TEST(test_an_edge_may_be_declared_from_either_end, 20)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        weir_flow *flow = chain_and_one(reverse);
        weir_time began = weir_now();
        weir_result result = run_for(flow, 2500);
        CHECK_EQ(result.outcome, WEIR_DONE);
        CHECK_EQ(result.ended_at - began, 2000 * MS);
        weir_flow_free(flow);
    }
}

SIM_TEST(test_the_deadline_hits_only_what_has_not_ended, 50)
{
    weir_flow *flow = chain_and_one(false);
    weir_result result = run_for(flow, 1500);

    check_settled(&result, WEIR_TIMED_OUT, 1500);
    check_ran("0", 0, 1000);
    check_ran("2", 0, 1000);
    check_told("1", WEIR_TIMED_OUT, 1500);
    weir_flow_free(flow);
}

/* 0 -> {1, 2} -> 3 */
static weir_flow *diamond(int64_t two_ms)
{
    weir_flow *flow = new_flow("diamond");
    weir_node *node[4];

    forget_nodes();
    node[0] = add(flow, "0", 1000);
    node[1] = add(flow, "1", 1000);
    node[2] = add(flow, "2", two_ms);
    node[3] = add(flow, "3", 1000);
    must(node[1], node[0]);
    must(node[2], node[0]);
    must(node[3], node[1]);
    must(node[3], node[2]);
    return flow;
}

SIM_TEST(test_a_join_waits_for_all_it_must, 50)
{
    weir_flow *flow = diamond(1000);
    weir_result result = run_for(flow, 3100);

    check_settled(&result, WEIR_DONE, 3000);
    check_ran("3", 2000, 3000);
    weir_flow_free(flow);
    flow = diamond(2000);
    result = run_flow(flow, 2, 100, NULL);
    CHECK_EQ(node_seen("3")->started - node_seen("2")->started, 2000 * MS);
    CHECK(node_seen("0")->order == 1 && node_seen("1")->order == 2 && node_seen("2")->order == 3);
    weir_flow_free(flow);
}

static void check_diamond(int64_t two_ms, int64_t deadline, weir_outcome two)
{
    weir_flow *flow = diamond(two_ms);
    weir_time began = weir_now();
    weir_result result = run_for(flow, deadline);

    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.ended_at - began, deadline * MS);
    check_node("0", WEIR_DONE);
    check_node("1", WEIR_DONE);
    check_node("2", two);
    check_node("3", WEIR_TIMED_OUT);
    weir_flow_free(flow);
}

SIM_TEST(test_the_deadline_of_a_run_reaches_waiting_nodes, 30)
{
    check_diamond(1000, 2100, WEIR_DONE);
    check_diamond(2000, 3100, WEIR_DONE);
    check_diamond(2000, 2900, WEIR_TIMED_OUT);
}

/* 0 -> {1, 2} -> 3 with other kinds of edges to 3 */
static weir_flow *diamond_of(weir_need one, weir_need two, int64_t three_ms)
{
    weir_flow *flow = new_flow("diamond");
    weir_node *node[4];

    forget_nodes();
    node[0] = add(flow, "0", 1000);
    node[1] = add(flow, "1", 1000);
    node[2] = add(flow, "2", 500);
    node[3] = add(flow, "3", three_ms);
    must(node[1], node[0]);
    must(node[2], node[0]);
    needs(node[3], node[1], one);
    needs(node[3], node[2], two);
    return flow;
}

SIM_TEST(test_any_starts_with_the_first_that_succeeds, 50)
{
    weir_flow *flow = diamond_of(WEIR_OPTIONAL, WEIR_OPTIONAL, 400);
    weir_result result = run_for(flow, 0);

    check_settled(&result, WEIR_DONE, 2000);
    check_ran("3", 1500, 1900);
    check_ran("1", 1000, 2000); /* it had begun, and its result is recorded */
    CHECK(node_seen("0")->order == 1 && node_seen("2")->order == 2 && node_seen("3")->order == 3 &&
          node_seen("1")->order == 4);
    weir_flow_free(flow);
}

SIM_TEST(test_optional_beside_must_does_not_count, 50)
{
    weir_flow *flow = diamond_of(WEIR_MUST, WEIR_OPTIONAL, 1000);
    weir_result result = run_for(flow, 0);

    check_settled(&result, WEIR_DONE, 3000);
    check_ran("3", 2000, 3000);
    weir_flow_free(flow);
}

SIM_TEST(test_two_branches_join, 30)
{
    weir_flow *flow = diamond(1000);
    weir_node *zero, *one, *two, *four;
    weir_result result;

    CHECK_EQ(weir_flow_edge(flow, "3", "4", WEIR_MUST), 0); /* before there is a 4 */
    zero = add(flow, "00", 1000);
    one = add(flow, "11", 1000);
    two = add(flow, "22", 1000);
    four = add(flow, "4", 1000);
    must(one, zero);
    must(two, one);
    must(four, two);
    result = run_for(flow, 0);
    check_settled(&result, WEIR_DONE, 4000);
    CHECK_EQ(node_seen("4")->order, 8);
    check_ran("4", 3000, 4000);
    weir_flow_free(flow);
}

SIM_TEST(test_two_that_end_together_start_the_next_once, 200)
{
    weir_flow *flow = new_flow("together");
    weir_node *a1, *a2, *b, *c;
    weir_result result;

    forget_nodes();
    a1 = add(flow, "a1", 1005);
    a2 = add(flow, "a2", 1005);
    b = add(flow, "b", 3000);
    c = add(flow, "c", 1000);
    must(b, a1);
    must(b, a2);
    must(c, b);
    result = run_for(flow, 0);
    check_settled(&result, WEIR_DONE, 5005);
    weir_flow_free(flow);
}

/* w -> last; w1 -> w2 -> w3 -> last */
static weir_flow *race(weir_need w_need, weir_need w3_need, bool keep)
{
    weir_flow *flow = new_flow("race");
    weir_node *w, *w1, *w2, *w3, *last;

    forget_nodes();
    w = add(flow, "w", 1000);
    w1 = add(flow, "w1", 1100);
    w2 = add_with(flow, "w2", 1000, WEIR_NODE(.never_skip = keep));
    w3 = add_with(flow, "w3", 1000, WEIR_NODE(.never_skip = keep));
    last = add(flow, "last", 1000);
    must(w2, w1);
    must(w3, w2);
    needs(last, w, w_need);
    needs(last, w3, w3_need);
    return flow;
}

static void check_race(weir_need w_need, weir_need w3_need)
{
    weir_flow *flow = race(w_need, w3_need, false);
    weir_time began = weir_now();
    weir_result result = run_for(flow, 0);

    CHECK_EQ(result.outcome, WEIR_DONE);
    CHECK_EQ(result.ended_at - began, 2000 * MS);
    CHECK_EQ(node_seen("last")->started - began, 1000 * MS);
    check_node("w1", WEIR_DONE);
    check_node("w2", WEIR_SKIPPED);
    check_node("w3", WEIR_SKIPPED);
    CHECK_EQ(node_seen("w3")->reason, WEIR_REASON_NOT_NEEDED);
    CHECK(strcmp(node_seen("w3")->cause, "last") == 0);
    weir_flow_free(flow);
}

SIM_TEST(test_a_branch_that_lost_is_skipped, 50)
{
    check_race(WEIR_ANY, WEIR_ANY);
    check_race(WEIR_MUST, WEIR_OPTIONAL);
}

SIM_TEST(test_a_branch_that_lost_runs_if_it_is_never_skipped, 20)
{
    weir_flow *flow = race(WEIR_ANY, WEIR_ANY, true);
    weir_result result = run_for(flow, 0);

    check_settled(&result, WEIR_DONE, 3100);
    check_ran("w2", 1100, 2100);
    check_ran("w3", 2100, 3100);
    weir_flow_free(flow);
}

static weir_flow *sequence(int64_t ms)
{
    weir_flow *flow = new_flow("sequence");
    weir_node *node[3];

    forget_nodes();
    node[0] = add(flow, "0", ms);
    node[1] = add(flow, "1", ms);
    node[2] = add(flow, "2", ms);
    must(node[1], node[0]);
    must(node[2], node[1]);
    return flow;
}

SIM_TEST(test_a_sequence_and_its_deadlines, 30)
{
    weir_flow *flow = sequence(1000);
    weir_result result = run_for(flow, 3500);

    check_settled(&result, WEIR_DONE, 3000);
    forget_run();
    result = run_for(flow, 2500); /* the same flow once more */
    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.ended_at, at(3000 + 2500));
    check_node("0", WEIR_DONE);
    check_node("1", WEIR_DONE);
    check_node("2", WEIR_TIMED_OUT);
    forget_run();
    result = run_for(flow, 900);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(seen[i].outcome, WEIR_TIMED_OUT);
        CHECK_EQ(seen[i].began, i == 0);
    }
    weir_flow_free(flow);
}

static int append(void **value, void *param, weir_step *step)
{
    char *text = malloc(64);

    (void)step;
    snprintf(text, 64, "%s%s", param ? (char *)param : "user", param ? "+" : "");
    *value = text;
    return 0;
}

SIM_TEST(test_parameters_are_the_values_of_other_nodes, 20)
{
    weir_flow *flow = new_flow("bound");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_node *node[3];
    weir_task *run;

    CHECK_EQ(weir_flow_node(&node[0], flow, "first", append, NULL, WEIR_NODE(.drop = free)), 0);
    CHECK_EQ(weir_flow_node(&node[1], flow, "second", append, NULL,
                            WEIR_NODE(.drop = free, .param_of = "first")),
             0);
    CHECK_EQ(weir_flow_node(&node[2], flow, "third", append, NULL,
                            WEIR_NODE(.drop = free, .param_of = "second")),
             0);
    must(node[1], node[0]);
    must(node[2], node[1]);
    run = start(flow, group_of(ex, "g"),
                WEIR_RUN(.params = (weir_param[]){ { "first", "me" } }, .param_count = 1));
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK(strcmp(result_in(run, "third").value, "me+++") == 0);
    weir_task_unref(run);
    run = start(flow, group_of(ex, "g"), NULL);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK(strcmp(result_in(run, "third").value, "user++") == 0);
    weir_task_unref(run);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

/* Reads "first" and "second" out of the run, by id; and the input. */
static int read_others(void **value, void *param, weir_step *step)
{
    weir_node_result first = WEIR_NODE_RESULT, second = WEIR_NODE_RESULT, later = WEIR_NODE_RESULT;
    char *text = malloc(64);

    (void)param;
    CHECK_EQ(weir_step_result(&first, step, "first"), 0);
    CHECK_EQ(weir_step_result(&second, step, "second"), 0);
    CHECK_EQ(weir_step_result(&later, step, "later"), 0);
    CHECK_EQ(weir_step_result(&later, step, "nothing"), WEIR_EINVAL);
    CHECK_EQ(later.outcome, WEIR_UNSETTLED);
    CHECK(weir_step_input(step) == &seen_count);
    snprintf(text, 64, "%s %s", (char *)first.value, (char *)second.value);
    *value = text;
    return 0;
}

SIM_TEST(test_a_body_reads_any_other_node_and_the_input, 20)
{
    weir_flow *flow = new_flow("read");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_node *node[4];
    weir_task *run;

    forget_nodes();
    CHECK_EQ(weir_flow_node(&node[0], flow, "first", append, "a", WEIR_NODE(.drop = free)), 0);
    CHECK_EQ(weir_flow_node(&node[1], flow, "second", append, "b", WEIR_NODE(.drop = free)), 0);
    CHECK_EQ(weir_flow_node(&node[2], flow, "third", read_others, NULL, WEIR_NODE(.drop = free)),
             0);
    CHECK_EQ(weir_flow_node(&node[3], flow, "later", append, NULL, WEIR_NODE(.drop = free)), 0);
    must(node[1], node[0]);
    must(node[2], node[1]);
    must(node[3], node[2]);
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.input = &seen_count));
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK(strcmp(result_in(run, "third").value, "a+ b+") == 0);
    weir_task_unref(run);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

/* Five before it, three of them musts. */
SIM_TEST(test_three_musts_of_five, 20)
{
    static const char *const id[] = { "m1", "m2", "m3", "o1", "o2" };
    weir_flow *flow = new_flow("five");
    weir_node *node[5], *last;
    weir_result result;

    forget_nodes();
    for (int i = 0; i < 5; i++)
        node[i] = add(flow, id[i], i < 3 ? 100 * (i + 1) : i == 3 ? 50 : 900);
    last = add(flow, "last", 100);
    for (int i = 0; i < 5; i++)
        needs(last, node[i], i < 3 ? WEIR_MUST : WEIR_OPTIONAL);
    result = run_for(flow, 0);
    check_settled(&result, WEIR_DONE, 900); /* o2 had begun */
    check_ran("last", 300, 400);
    weir_flow_free(flow);
}

/* any(a, b -> c, d -> e -> f) -> g */
SIM_TEST(test_the_short_circuit_skips_what_has_not_begun, 50)
{
    weir_flow *flow = new_flow("short");
    weir_node *a, *b, *c, *d, *e, *f, *g;
    weir_result result;

    forget_nodes();
    a = add(flow, "a", 100);
    b = add(flow, "b", 150);
    c = add(flow, "c", 100);
    d = add(flow, "d", 30);
    e = add(flow, "e", 200);
    f = add(flow, "f", 100);
    g = add(flow, "g", 100);
    must(c, b);
    must(e, d);
    must(f, e);
    needs(g, a, WEIR_ANY);
    needs(g, c, WEIR_ANY);
    needs(g, f, WEIR_ANY);
    result = run_for(flow, 0);
    check_settled(&result, WEIR_DONE, 230);
    check_ran("g", 100, 200);
    check_ran("b", 0, 150);
    check_ran("e", 30, 230);
    check_told("c", WEIR_SKIPPED, 100); /* at once, not when its turn comes */
    check_told("f", WEIR_SKIPPED, 100);
    weir_flow_free(flow);
}

SIM_TEST(test_a_failure_fails_what_must_have_it_with_the_same_cause, 50)
{
    static int fallback;
    weir_flow *flow = new_flow("failing");
    weir_result result;

    forget_nodes();
    weir_node *a = add_with(flow, "a", 10, WEIR_NODE(.fallback = &fallback));
    weir_node *b = add(flow, "b", 10), *c = add(flow, "c", 10);
    node_seen("a")->error = -EIO;
    must(b, a);
    must(c, b);
    result = run_for(flow, 0);
    check_settled(&result, WEIR_FAILED, 10);
    CHECK_EQ(result.error, -EIO);
    check_told("a", WEIR_FAILED, 10);
    CHECK(node_seen("a")->result_value == &fallback);
    for (int i = 1; i < 3; i++) {
        CHECK_EQ(seen[i].outcome, WEIR_FAILED);
        CHECK_EQ(seen[i].began + seen[i].ran, 0);
        CHECK_EQ(seen[i].result_error, -EIO);
        CHECK_EQ(seen[i].reason, WEIR_REASON_DEPENDENCY);
        CHECK(strcmp(seen[i].cause, "a") == 0);
    }
    weir_flow_free(flow);
}

/* The second result would be the body's own, long after the run has settled. */
SIM_TEST(test_a_late_body_changes_nothing, 50)
{
    weir_flow *flow = new_flow("late");
    weir_result result;

    forget_nodes();
    add(flow, "a", 500);
    result = run_for(flow, 100);
    check_settled(&result, WEIR_TIMED_OUT, 100);
    CHECK_EQ(node_seen("a")->ended, at(500));
    CHECK_EQ(node_seen("a")->results, 1);
    weir_flow_free(flow);
}

static int both_there(void **value, void *param, weir_step *step)
{
    weir_node_result a = WEIR_NODE_RESULT, b = WEIR_NODE_RESULT;

    (void)value;
    (void)param;
    CHECK_EQ(weir_step_result(&a, step, "a"), 0);
    CHECK_EQ(weir_step_result(&b, step, "b"), 0);
    CHECK(a.outcome == WEIR_DONE && b.outcome == WEIR_DONE && a.value && b.value);
    return 0;
}

static int gives(void **value, void *param, weir_step *step)
{
    (void)step;
    *value = param;
    return 0;
}

SIM_TEST(test_a_join_reads_the_values_of_all_it_waited_for, 2000)
{
    weir_flow *flow = new_flow("join");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_node *a, *b, *c;

    CHECK_EQ(weir_flow_node(&a, flow, "a", gives, &seen_count, NULL), 0);
    CHECK_EQ(weir_flow_node(&b, flow, "b", gives, &seen_count, NULL), 0);
    CHECK_EQ(weir_flow_node(&c, flow, "c", both_there, NULL, NULL), 0);
    must(c, a);
    must(c, b);
    check_done(start(flow, group_of(ex, "g"), NULL));
    weir_flow_free(flow);
    weir_executor_free(ex);
}

SIM_TEST(test_a_single_successor_runs_on_the_stack_of_the_one_before, 50)
{
    weir_flow *flow = sequence(0);

    CHECK_EQ(run_flow(flow, 2, 4, NULL).outcome, WEIR_DONE);
    CHECK(seen[0].stack == seen[1].stack && seen[1].stack == seen[2].stack);
    weir_flow_free(flow);
}

SIM_TEST(test_a_fork_does_not_hold_the_thread_of_its_first_node, 50)
{
    weir_flow *flow = diamond(1000);
    weir_result result;

    seen[1].busy = seen[2].busy = true; /* each blocks a worker */
    result = run_flow(flow, 2, 100, NULL);
    check_settled(&result, WEIR_DONE, 3000);
    weir_flow_free(flow);
}

static void on_done(weir_task *run, const weir_result *result, void *outcome)
{
    CHECK(weir_task_done(run));
    *(weir_outcome *)outcome = result->outcome;
}

SIM_TEST(test_a_run_tells_of_its_end_by_callback, 50)
{
    weir_outcome outcome = WEIR_UNSETTLED;
    weir_flow *flow = sequence(100);

    run_flow(flow, 2, 4, WEIR_RUN(.on_done = on_done, .on_done_arg = &outcome));
    CHECK_EQ(outcome, WEIR_DONE);
    forget_run();
    run_flow(flow, 2, 4, WEIR_RUN(.deadline_ms = 50, .on_done = on_done, .on_done_arg = &outcome));
    CHECK_EQ(outcome, WEIR_TIMED_OUT);
    weir_flow_free(flow);
}

SIM_TEST(test_an_empty_flow_is_done_at_once, 20)
{
    weir_flow *flow = new_flow("empty");
    weir_result result;

    forget_nodes();
    result = run_for(flow, 10);
    check_settled(&result, WEIR_DONE, 0);
    weir_flow_free(flow);
}

static const weir_local trace = WEIR_LOCAL(NULL);

static int sees(void **value, void *expected, weir_step *step)
{
    (void)value;
    (void)step;
    CHECK(weir_local_get(&trace) == expected);
    return 0;
}

static int changes(void **value, void *to, weir_step *step)
{
    (void)value;
    (void)step;
    CHECK_EQ(weir_local_set(&trace, to), 0);
    return 0;
}

SIM_TEST(test_locals_travel_from_the_start_and_along_edges, 100)
{
    static char one, two, own;
    weir_flow *flow = new_flow("locals");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_node *root, *left, *right, *after, *task;

    CHECK_EQ(weir_flow_node(&root, flow, "root", sees, &one, NULL), 0);
    CHECK_EQ(weir_flow_node(&left, flow, "left", changes, &two, NULL), 0);
    CHECK_EQ(weir_flow_node(&right, flow, "right", sees, &one, NULL), 0);
    CHECK_EQ(weir_flow_node(&after, flow, "after", sees, &two, NULL), 0);
    CHECK_EQ(weir_flow_node(&task, flow, "task", sees, &two, WEIR_NODE(.task = true)), 0);
    must(left, root);
    must(right, root);
    must(after, left);
    must(task, after);
    CHECK_EQ(weir_local_set(&trace, &one), 0);
    weir_task *run = start(flow, group_of(ex, "g"), NULL);
    CHECK_EQ(weir_local_set(&trace, &own), 0);
    check_done(run);
    CHECK(weir_local_get(&trace) == &own);
    weir_local_clear();
    weir_flow_free(flow);
    weir_executor_free(ex);
}

static int sees_and_sleeps(void **value, void *expected, weir_step *step)
{
    sees(value, expected, step);
    return weir_sleep(weir_now() + MS);
}

/* The turn is over after each of them, and lays down those that are left. */
SIM_TEST(test_nodes_that_are_laid_down_keep_their_locals, 20)
{
    static const char *const id[] = { "1", "2", "3", "4" };
    static char two;
    weir_flow *flow = new_flow("locals");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_node *root, *node;

    CHECK_EQ(weir_flow_node(&root, flow, "root", changes, &two, NULL), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(weir_flow_node(&node, flow, id[i], sees_and_sleeps, &two, NULL), 0);
        must(node, root);
    }
    check_done(start(flow, group_of(ex, "g"), NULL));
    weir_flow_free(flow);
    weir_executor_free(ex);
}

/* one -> last, of a kind; whatever one does */
static weir_result run_pair(weir_need need, int error)
{
    weir_flow *flow = new_flow("pair");
    weir_node *one, *last;
    weir_result result;

    forget_nodes();
    one = add(flow, "one", 10);
    last = add(flow, "last", 10);
    needs(last, one, need);
    node_seen("one")->error = error;
    result = run_flow(flow, 2, 4, NULL);
    weir_flow_free(flow);
    return result;
}

SIM_TEST(test_a_sole_optional_edge_counts_as_any_and_after_runs_regardless, 30)
{
    CHECK_EQ(run_pair(WEIR_OPTIONAL, -EIO).outcome, WEIR_FAILED);
    check_node("last", WEIR_FAILED);
    CHECK_EQ(node_seen("last")->ran, 0);
    CHECK_EQ(run_pair(WEIR_AFTER, -EIO).outcome, WEIR_DONE);
    CHECK_EQ(node_seen("last")->ran, 1);
    CHECK_EQ(run_pair(WEIR_NONE_FAILED, -EIO).outcome, WEIR_FAILED);
    CHECK_EQ(run_pair(WEIR_NONE_FAILED, 0).outcome, WEIR_DONE);
}

SIM_TEST(test_all_optional_waits_for_a_success, 50)
{
    for (int both = 0; both < 2; both++) {
        weir_flow *flow = diamond_of(WEIR_OPTIONAL, WEIR_OPTIONAL, 100);
        weir_time began = weir_now();
        node_seen("2")->error = -EIO; /* the first to end */
        node_seen("1")->error = both ? -EBADF : 0;
        run_flow(flow, 2, 4, NULL);
        check_node("3", both ? WEIR_FAILED : WEIR_DONE);
        CHECK_EQ(node_seen("3")->ran, !both);
        CHECK_EQ(node_seen("3")->told - began, (both ? 2000 : 2100) * MS);
        weir_flow_free(flow);
    }
}

/* X any(A, B) -> Y1, Y2; X is slow, A and B end while it runs. */
SIM_TEST(test_a_second_trigger_starts_nothing_before_its_time, 100)
{
    weir_flow *flow = new_flow("double");
    weir_node *a, *b, *x, *y1, *y2;

    forget_nodes();
    a = add(flow, "A", 10);
    b = add(flow, "B", 20);
    x = add(flow, "X", 300);
    y1 = add(flow, "Y1", 10);
    y2 = add(flow, "Y2", 10);
    needs(x, a, WEIR_ANY);
    needs(x, b, WEIR_ANY);
    must(y1, x);
    must(y2, x);
    run_for(flow, 0);
    check_ran("X", 10, 310);
    check_ran("Y1", 310, 320);
    check_ran("Y2", 310, 320);
    weir_flow_free(flow);
}

/* ---- 1.5 --------------------------------------------------------------------------------------------- */

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

SIM_TEST(test_a_judge_decides_by_what_has_ended, 50)
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

/* The start that another rule would forbid; the failure; and waiting for nothing. */
SIM_TEST(test_a_judge_replaces_all_kinds, 20)
{
    static weir_judge_fn *const judge[] = { never_again, refuses };

    for (int i = 0; i < 2; i++) {
        weir_flow *flow = new_flow("judged");
        weir_node *a, *b;
        forget_nodes();
        a = add(flow, "a", 10);
        b = add_with(flow, "b", 10, WEIR_NODE(.judge = judge[i]));
        must(b, a);
        CHECK_EQ(run_flow(flow, 2, 4, NULL).outcome, WEIR_FAILED);
        check_node("b", WEIR_FAILED);
        CHECK_EQ(node_seen("b")->ran, 0);
        weir_flow_free(flow);
    }
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

/* any of three lookups lets the next step run; 45 items in five lots, all of which must be done, or at least four. */
SIM_TEST(test_login_and_batch, 20)
{
    static const char *const lot[] = { "lot 0", "lot 1", "lot 2", "lot 3", "lot 4" };
    weir_flow *flow = new_flow("login");
    weir_node *next, *node;

    forget_nodes();
    next = add(flow, "next", 10);
    for (int i = 0; i < 3; i++) {
        node = add(flow, lot[i], 10 * (i + 1));
        seen[seen_count - 1].error = i == 0 ? -EACCES : 0;
        needs(next, node, WEIR_ANY);
    }
    run_for(flow, 0);
    check_ran("next", 20, 30);
    weir_flow_free(flow);
    for (int must_all = 0; must_all < 2; must_all++) {
        flow = new_flow("batch");
        forget_nodes();
        next = add_with(flow, "sum", 5, WEIR_NODE(.at_least = must_all ? 0 : 4));
        for (int i = 0; i < 5; i++) {
            node = add(flow, lot[i], 9 * 10);
            seen[seen_count - 1].error = i == 4 ? -EIO : 0;
            needs(next, node, must_all ? WEIR_MUST : WEIR_AT_LEAST);
        }
        run_for(flow, 0);
        check_node("sum", must_all ? WEIR_FAILED : WEIR_DONE);
        weir_flow_free(flow);
    }
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
        cmocka_unit_test(test_independent_nodes_run_side_by_side),
        cmocka_unit_test(test_nodes_that_run_at_the_deadline_time_out_with_their_fallback),
        cmocka_unit_test(test_a_node_that_ends_with_the_deadline_has_one_result),
        cmocka_unit_test(test_an_edge_may_be_declared_from_either_end),
        cmocka_unit_test(test_the_deadline_hits_only_what_has_not_ended),
        cmocka_unit_test(test_a_join_waits_for_all_it_must),
        cmocka_unit_test(test_the_deadline_of_a_run_reaches_waiting_nodes),
        cmocka_unit_test(test_any_starts_with_the_first_that_succeeds),
        cmocka_unit_test(test_optional_beside_must_does_not_count),
        cmocka_unit_test(test_two_branches_join),
        cmocka_unit_test(test_two_that_end_together_start_the_next_once),
        cmocka_unit_test(test_a_branch_that_lost_is_skipped),
        cmocka_unit_test(test_a_branch_that_lost_runs_if_it_is_never_skipped),
        cmocka_unit_test(test_a_sequence_and_its_deadlines),
        cmocka_unit_test(test_parameters_are_the_values_of_other_nodes),
        cmocka_unit_test(test_a_body_reads_any_other_node_and_the_input),
        cmocka_unit_test(test_three_musts_of_five),
        cmocka_unit_test(test_the_short_circuit_skips_what_has_not_begun),
        cmocka_unit_test(test_a_failure_fails_what_must_have_it_with_the_same_cause),
        cmocka_unit_test(test_a_late_body_changes_nothing),
        cmocka_unit_test(test_a_join_reads_the_values_of_all_it_waited_for),
        cmocka_unit_test(test_a_single_successor_runs_on_the_stack_of_the_one_before),
        cmocka_unit_test(test_a_fork_does_not_hold_the_thread_of_its_first_node),
        cmocka_unit_test(test_a_run_tells_of_its_end_by_callback),
        cmocka_unit_test(test_an_empty_flow_is_done_at_once),
        cmocka_unit_test(test_locals_travel_from_the_start_and_along_edges),
        cmocka_unit_test(test_nodes_that_are_laid_down_keep_their_locals),
        cmocka_unit_test(test_a_sole_optional_edge_counts_as_any_and_after_runs_regardless),
        cmocka_unit_test(test_all_optional_waits_for_a_success),
        cmocka_unit_test(test_a_second_trigger_starts_nothing_before_its_time),
        cmocka_unit_test(test_the_deadline_asks_bodies_to_end_if_that_is_wanted),
        cmocka_unit_test(test_ready_nodes_that_wait_for_a_limit_are_skipped),
        cmocka_unit_test(test_a_judge_decides_by_what_has_ended),
        cmocka_unit_test(test_a_judge_replaces_all_kinds),
        cmocka_unit_test(test_optional_nodes_that_have_not_begun_are_skipped),
        cmocka_unit_test(test_skipping_can_be_switched_off),
        cmocka_unit_test(test_a_deadline_in_the_middle_leaves_one_result_for_each),
        cmocka_unit_test(test_a_cancelled_run_settles_at_once),
        cmocka_unit_test(test_at_least_three_of_ten),
        cmocka_unit_test(test_a_thousand_independent_nodes),
        cmocka_unit_test(test_a_pool_that_is_as_small_as_the_fork_is_enough),
        cmocka_unit_test(test_deadlines_of_nodes_and_of_the_run),
        cmocka_unit_test(test_login_and_batch),
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
