/* The demos of asyncTool 1.4, with exact times: what weir keeps of them, and what it does better. Those of 1.5 are in
 * flow_cases_test.c.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

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

SIM_TEST(test_the_deadline_hits_only_nodes_that_have_not_ended, 50)
{
    weir_flow *flow = chain_and_one(false);
    weir_result result = run_for(flow, 1500);

    check_settled(&result, WEIR_TIMED_OUT, 1500);
    check_ran("0", 0, 1000);
    check_ran("2", 0, 1000);
    check_told("1", WEIR_TIMED_OUT, 1500);
    weir_flow_free(flow);
}

/* They have ended one after the other. */
static void check_order(const char *first, const char *second, const char *third,
                        const char *fourth)
{
    CHECK_EQ(node_seen(first)->order, 1);
    CHECK_EQ(node_seen(second)->order, 2);
    CHECK_EQ(node_seen(third)->order, 3);
    CHECK_EQ(node_seen(fourth)->order, 4);
}

/* 0 -> {1, 2} -> 3, with the kinds of the edges to 3; declared from either end. */
static weir_flow *diamond_of(weir_need one, weir_need two, int64_t two_ms, int64_t three_ms,
                             bool from_the_other_end)
{
    int (*edge)(weir_node *, weir_node *, weir_need) =
        from_the_other_end ? weir_node_feeds : weir_node_needs;
    weir_flow *flow = new_flow("diamond");
    weir_node *node[4];

    forget_nodes();
    node[0] = add(flow, "0", 1000);
    node[1] = add(flow, "1", 1000);
    node[2] = add(flow, "2", two_ms);
    node[3] = add(flow, "3", three_ms);
    for (int i = 1; i < 3; i++) {
        weir_node *up = node[0], *down = node[i];
        CHECK_EQ(edge(from_the_other_end ? up : down, from_the_other_end ? down : up, WEIR_MUST),
                 0);
        up = node[i];
        down = node[3];
        CHECK_EQ(edge(from_the_other_end ? up : down, from_the_other_end ? down : up,
                      i == 1 ? one : two),
                 0);
    }
    return flow;
}

static weir_flow *diamond(int64_t two_ms)
{
    return diamond_of(WEIR_MUST, WEIR_MUST, two_ms, 1000, false);
}

SIM_TEST(test_a_join_waits_for_all_it_must, 50)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        weir_flow *flow = diamond_of(WEIR_MUST, WEIR_MUST, 1000, 1000, reverse);
        weir_time began = weir_now();
        weir_result result = run_for(flow, 3100);
        CHECK_EQ(result.outcome, WEIR_DONE);
        CHECK_EQ(result.ended_at - began, 3000 * MS);
        CHECK_EQ(node_seen("3")->started - began, 2000 * MS);
        weir_flow_free(flow);
        flow = diamond_of(WEIR_MUST, WEIR_MUST, 2000, 1000, reverse);
        began = weir_now();
        result = run_for(flow, 4100);
        CHECK_EQ(result.outcome, WEIR_DONE);
        CHECK_EQ(result.ended_at - began, 4000 * MS);
        CHECK_EQ(node_seen("3")->started - node_seen("2")->started, 2000 * MS);
        check_order("0", "1", "2", "3");
        weir_flow_free(flow);
    }
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

SIM_TEST(test_any_starts_with_the_first_that_succeeds, 50)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        weir_flow *flow = diamond_of(WEIR_OPTIONAL, WEIR_OPTIONAL, 500, 400, reverse);
        weir_time began = weir_now();
        weir_result result = run_for(flow, 0);
        CHECK_EQ(result.outcome, WEIR_DONE);
        CHECK_EQ(result.ended_at - began, 2000 * MS);
        CHECK_EQ(node_seen("3")->started - began, 1500 * MS);
        CHECK_EQ(node_seen("3")->ran, 1);
        check_node("1", WEIR_DONE); /* it had begun, and its result is recorded */
        check_order("0", "2", "3", "1");
        weir_flow_free(flow);
    }
}

SIM_TEST(test_optional_beside_must_does_not_count, 50)
{
    weir_flow *flow = diamond_of(WEIR_MUST, WEIR_OPTIONAL, 500, 1000, false);
    weir_result result = run_for(flow, 0);

    check_settled(&result, WEIR_DONE, 3000);
    check_ran("3", 2000, 3000);
    check_order("0", "2", "1", "3");
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

/* Reads o1, which is done, and o2, which is not and so reads as its fallback. */
static int reads_what_is_there(void **value, void *fallback, weir_step *step)
{
    weir_node_result o1 = WEIR_NODE_RESULT, o2 = WEIR_NODE_RESULT;

    *value = NULL;
    CHECK_EQ(weir_now(), at(300)); /* right after the last must */
    CHECK_EQ(weir_step_result(&o1, step, "o1"), 0);
    CHECK_EQ(weir_step_result(&o2, step, "o2"), 0);
    CHECK(o1.outcome == WEIR_DONE && o1.value == &seen_count);
    CHECK(o2.outcome == WEIR_UNSETTLED && o2.value == fallback);
    return 0;
}

/* Five before it, three of them musts. */
SIM_TEST(test_three_musts_of_five, 20)
{
    static const char *const id[] = { "m1", "m2", "m3", "o1", "o2" };
    static int fallback;
    weir_flow *flow = new_flow("five");
    weir_node *node[5], *last;
    weir_result result;

    forget_nodes();
    for (int i = 0; i < 5; i++)
        node[i] = add_with(flow, id[i],
                           i < 3    ? 100 * (i + 1)
                           : i == 3 ? 50
                                    : 900,
                           WEIR_NODE(.fallback = &fallback));
    node_seen("o1")->value = &seen_count;
    CHECK_EQ(weir_flow_node(&last, flow, "last", reads_what_is_there, &fallback, NULL), 0);
    for (int i = 0; i < 5; i++)
        needs(last, node[i], i < 3 ? WEIR_MUST : WEIR_OPTIONAL);
    result = run_for(flow, 0);
    check_settled(&result, WEIR_DONE, 900); /* o2 had begun */
    weir_flow_free(flow);
}

/* a -> {b -> c, d -> e -> f} -> g */
SIM_TEST(test_branches_of_different_length_join, 50)
{
    static const char *const id[] = { "a", "b", "c", "d", "e", "f", "g" };
    static const char *const edge[] = { "ab", "bc", "cg", "ad", "de", "ef", "fg" };
    weir_flow *flow = new_flow("branches");
    weir_result result;

    forget_nodes();
    for (int i = 0; i < 7; i++)
        add(flow, id[i], 1000);
    for (int i = 0; i < 7; i++)
        CHECK_EQ(weir_flow_edge(flow, (char[]){ edge[i][0], '\0' }, (char[]){ edge[i][1], '\0' },
                                WEIR_MUST),
                 0);
    result = run_for(flow, 0);
    check_settled(&result, WEIR_DONE, 5000);
    check_ran("b", 1000, 2000);
    check_ran("c", 2000, 3000);
    check_ran("d", 1000, 2000);
    check_ran("e", 2000, 3000);
    check_ran("f", 3000, 4000);
    check_ran("g", 4000, 5000);
    weir_flow_free(flow);
}

/* any(a, b -> c, d -> e -> f) -> g */
SIM_TEST(test_the_short_circuit_skips_nodes_that_have_not_begun, 50)
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

SIM_TEST(test_a_failure_fails_nodes_that_must_have_it_with_the_same_cause, 50)
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

static int reads_the_fallback(void **value, void *fallback, weir_step *step)
{
    weir_node_result one = WEIR_NODE_RESULT;

    *value = NULL;
    CHECK_EQ(weir_step_result(&one, step, "one"), 0);
    CHECK(one.outcome == WEIR_FAILED && one.value == fallback);
    return 0;
}

SIM_TEST(test_a_node_after_a_failed_one_reads_its_fallback, 30)
{
    static int fallback;
    weir_flow *flow = new_flow("default");
    weir_node *one, *reads;

    forget_nodes();
    one = add_with(flow, "one", 10, WEIR_NODE(.fallback = &fallback));
    node_seen("one")->error = -EIO;
    CHECK_EQ(weir_flow_node(&reads, flow, "reads", reads_the_fallback, &fallback, NULL), 0);
    needs(reads, one, WEIR_AFTER);
    CHECK_EQ(run_for(flow, 0).outcome, WEIR_DONE);
    CHECK(node_seen("one")->result_value == &fallback);
    weir_flow_free(flow);
}

SIM_TEST(test_all_optional_waits_for_a_success, 50)
{
    for (int both = 0; both < 2; both++) {
        weir_flow *flow = diamond_of(WEIR_OPTIONAL, WEIR_OPTIONAL, 500, 100, false);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_independent_nodes_run_side_by_side),
        cmocka_unit_test(test_nodes_that_run_at_the_deadline_time_out_with_their_fallback),
        cmocka_unit_test(test_a_node_that_ends_with_the_deadline_has_one_result),
        cmocka_unit_test(test_an_edge_may_be_declared_from_either_end),
        cmocka_unit_test(test_the_deadline_hits_only_nodes_that_have_not_ended),
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
        cmocka_unit_test(test_branches_of_different_length_join),
        cmocka_unit_test(test_a_node_after_a_failed_one_reads_its_fallback),
        cmocka_unit_test(test_the_short_circuit_skips_nodes_that_have_not_begun),
        cmocka_unit_test(test_a_failure_fails_nodes_that_must_have_it_with_the_same_cause),
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
        cmocka_unit_test(test_login_and_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
