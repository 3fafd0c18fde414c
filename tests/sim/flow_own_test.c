/* Every case of the table of callbacks; tasks of nodes, and their further tries.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

/* ---- callbacks --------------------------------------------------------------------------------------- */

static int begin_fails(weir_step *step, void *arg)
{
    (void)step;
    ((struct seen *)arg)->began++;
    return -EPERM;
}

SIM_TEST(test_a_begin_that_fails_counts_as_called_and_fails_the_node, 20)
{
    weir_flow *flow = new_flow("begin");
    struct seen *s;

    forget_nodes();
    s = new_seen("a", 10);
    CHECK_EQ(
        weir_flow_node(NULL, flow, "a", node_body, s,
                       WEIR_NODE(.begin = begin_fails, .result = node_result, .callback_arg = s)),
        0);
    CHECK_EQ(run_flow(flow, 2, 4, NULL).outcome, WEIR_FAILED);
    CHECK(s->began == 1 && s->ran == 0 && s->results == 1 && s->result_error == -EPERM);
    weir_flow_free(flow);
}

static int slow_begin(weir_step *step, void *arg)
{
    struct seen *s = arg;

    (void)step;
    s->began++;
    weir_sim_busy(10 * MS);
    CHECK_EQ(s->results, 0);
    return 0;
}

/* The run ends meanwhile: the node is told of, and the run settles, when `begin` has returned. */
SIM_TEST(test_a_result_comes_after_a_begin_that_is_under_way, 50)
{
    for (int tasks = 0; tasks < 2; tasks++) {
        weir_flow *flow = new_flow("begin");
        weir_time began = weir_now();
        weir_result result;
        struct seen *s;
        forget_nodes();
        s = new_seen("a", 10);
        CHECK_EQ(weir_flow_node(NULL, flow, "a", node_body, s,
                                WEIR_NODE(.begin = slow_begin, .result = node_result,
                                          .callback_arg = s, .task = tasks)),
                 0);
        result = run_flow(flow, 2, 4, WEIR_RUN(.deadline_ms = 5));
        CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
        CHECK(s->began == 1 && s->ran == 0 && s->results == 1);
        CHECK_EQ(s->outcome, WEIR_TIMED_OUT);
        CHECK_EQ(s->told - began, 10 * MS);
        weir_flow_free(flow);
    }
}

/* Each row: what `a` does, and the run's deadline; then begin, body and outcome of a and b. */
static const struct row {
    int64_t a_ms;
    int a_error;
    int64_t deadline_ms;
    int a_began, a_ran;
    weir_outcome a;
    int b_began;
    weir_outcome b;
} table[] = {
    { 10, 0, 0, 1, 1, WEIR_DONE, 1, WEIR_DONE },
    { 10, -EIO, 0, 1, 1, WEIR_FAILED, 0, WEIR_FAILED },
    { 10, WEIR_ECANCELED, 0, 1, 1, WEIR_CANCELLED, 0, WEIR_CANCELLED },
    { 10, 0, 5, 1, 1, WEIR_TIMED_OUT, 0, WEIR_TIMED_OUT },
    { 10, 0, 15, 1, 1, WEIR_DONE, 1, WEIR_TIMED_OUT },
};

static void check_row(const struct row *row, bool tasks)
{
    weir_flow *flow = pair_of(WEIR_NODE(.task = tasks), WEIR_NODE(.task = tasks));

    seen[0].ms = row->a_ms;
    seen[0].error = row->a_error;
    run_flow(flow, 2, 4, WEIR_RUN(.deadline_ms = row->deadline_ms));
    CHECK_EQ(seen[0].began, row->a_began);
    CHECK_EQ(seen[0].ran, row->a_ran);
    CHECK_EQ(seen[0].outcome, row->a);
    CHECK_EQ(seen[1].began, row->b_began);
    CHECK_EQ(seen[1].outcome, row->b);
    weir_flow_free(flow);
}

SIM_TEST(test_each_case_has_its_callbacks, 40)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        check_row(&table[i], false);
        check_row(&table[i], true);
    }
}

/* ---- tasks of their own -------------------------------------------------------------------------------- */

SIM_TEST(test_a_node_with_a_group_runs_under_its_limit, 30)
{
    static const char *const id[] = { "0", "1", "2", "3" };
    weir_flow *flow = new_flow("groups");

    forget_nodes();
    for (int i = 0; i < 4; i++)
        add_with(flow, id[i], 10, WEIR_NODE(.group = i < 3 ? "one" : NULL));
    const weir_group_policy one = { .key = "one", .limit = 1 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4, .groups = &one, .group_count = 1));
    weir_task *run = start(flow, group_of(ex, "g"), WEIR_RUN(.times = true));
    check_done(weir_task_ref(run));
    check_results(run);
    CHECK_EQ(result_in(run, "2").ended_at, at(30));
    CHECK_EQ(result_in(run, "2").ready_at, at(0));
    CHECK_EQ(result_in(run, "2").started_at, at(20));
    CHECK_EQ(result_in(run, "3").ended_at, at(10));
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

static struct flaky {
    int failures, tried;
    weir_time at[8];
} flaky;

static int fails_at_first(void **value, void *arg, weir_step *step)
{
    (void)arg;
    (void)step;
    *value = &flaky;
    flaky.at[flaky.tried] = weir_now();
    return flaky.tried++ < flaky.failures ? -EAGAIN : 0;
}

static weir_flow *flaky_flow(uint32_t retries, int failures)
{
    weir_flow *flow = new_flow("flaky");
    struct seen *s;

    forget_nodes();
    flaky = (struct flaky){ .failures = failures };
    s = new_seen("a", 0);
    CHECK_EQ(weir_flow_node(NULL, flow, "a", fails_at_first, s,
                            WEIR_NODE(.begin = node_begin, .result = node_result, .callback_arg = s,
                                      .retries = retries, .backoff_ms = 10, .backoff_max_ms = 25)),
             0);
    return flow;
}

SIM_TEST(test_a_failed_body_is_tried_again_after_a_pause, 30)
{
    weir_flow *flow = flaky_flow(4, 3);
    weir_result result = run_flow(flow, 2, 4, NULL);

    CHECK_EQ(result.outcome, WEIR_DONE);
    CHECK_EQ(flaky.tried, 4);
    CHECK(flaky.at[1] == at(10) && flaky.at[2] == at(30) && flaky.at[3] == at(55));
    CHECK_EQ(seen[0].began, 1);
    weir_flow_free(flow);
    flow = flaky_flow(1, 3);
    CHECK_EQ(run_flow(flow, 2, 4, NULL).error, -EAGAIN);
    CHECK_EQ(flaky.tried, 2);
    weir_flow_free(flow);
}

SIM_TEST(test_a_pause_before_a_retry_ends_with_the_run, 30)
{
    weir_flow *flow = flaky_flow(4, 8);
    weir_result result = run_flow(flow, 2, 4, WEIR_RUN(.deadline_ms = 20));

    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.ended_at, at(20));
    CHECK_EQ(flaky.tried, 2);
    check_node("a", WEIR_TIMED_OUT);
    weir_flow_free(flow);
}

static weir_task *pending_task;

static int pends(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    pending_task = weir_task_ref(weir_task_self());
    return WEIR_PENDING;
}

SIM_TEST(test_a_node_that_is_a_task_may_be_settled_later, 20)
{
    weir_flow *flow = new_flow("pending");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_task *run;

    CHECK_EQ(weir_flow_node(NULL, flow, "a", pends, NULL, WEIR_NODE(.task = true)), 0);
    run = start(flow, group_of(ex, "g"), NULL);
    sleep_until(10);
    CHECK_EQ(weir_task_settle(run, 0, NULL), WEIR_EINVAL); /* the run is not to be settled */
    CHECK_EQ(weir_task_settle(pending_task, 0, &seen_count), 0);
    weir_task_unref(pending_task);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK(result_in(run, "a").value == &seen_count);
    weir_task_unref(run);
    weir_flow_free(flow);
    flow = new_flow("plain");
    CHECK_EQ(weir_flow_node(NULL, flow, "a", pends, NULL, NULL), 0);
    run = start(flow, group_of(ex, "g"), NULL);
    CHECK_EQ(result_of(run).error, WEIR_EINVAL); /* a plain node cannot */
    weir_task_unref(pending_task);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

SIM_TEST(test_losers_are_cancelled_if_they_may_be, 50)
{
    weir_flow *flow = new_flow("losers");
    weir_node *fast, *slow, *task, *kept, *last;

    forget_nodes();
    fast = add(flow, "fast", 10);
    slow = add_with(flow, "slow", 100, WEIR_NODE(.interrupt = true));
    task = add_with(flow, "task", 100, WEIR_NODE(.interrupt = true, .task = true));
    kept = add(flow, "kept", 50);
    last = add(flow, "last", 10);
    needs(last, fast, WEIR_ANY);
    needs(last, slow, WEIR_ANY);
    needs(last, task, WEIR_ANY);
    needs(last, kept, WEIR_ANY);
    CHECK_EQ(run_flow(flow, 2, 8, NULL).ended_at, at(50));
    check_told("slow", WEIR_CANCELLED, 10);
    check_told("task", WEIR_CANCELLED, 10);
    CHECK_EQ(node_seen("slow")->reason, WEIR_REASON_NOT_NEEDED);
    CHECK(node_seen("slow")->saw_cancel && node_seen("slow")->ended == at(10));
    CHECK(node_seen("task")->saw_cancel && node_seen("task")->ended == at(10));
    check_ran("kept", 0, 50);
    check_ran("last", 10, 20);
    weir_flow_free(flow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_begin_that_fails_counts_as_called_and_fails_the_node),
        cmocka_unit_test(test_a_result_comes_after_a_begin_that_is_under_way),
        cmocka_unit_test(test_each_case_has_its_callbacks),
        cmocka_unit_test(test_a_node_with_a_group_runs_under_its_limit),
        cmocka_unit_test(test_a_failed_body_is_tried_again_after_a_pause),
        cmocka_unit_test(test_a_pause_before_a_retry_ends_with_the_run),
        cmocka_unit_test(test_a_node_that_is_a_task_may_be_settled_later),
        cmocka_unit_test(test_losers_are_cancelled_if_they_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
