/* Turns and tasks of nodes that are turned away or cancelled, and what becomes of the nodes.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

/* ---- a rejection_fn -------------------------------------------------------------------------------------- */

static struct answer {
    weir_outcome outcome;
    int error;
    void *value;
    bool cancels; /* the run, first */
    weir_task *run;
    int asked, dropped;
} answer;

static int value_of_a;

static int answers(weir_result *result, weir_task *task, weir_reason reason, void *arg)
{
    (void)task;
    (void)arg;
    CHECK_EQ(reason, WEIR_REASON_GROUP_QUEUE_FULL);
    answer.asked++;
    if (answer.cancels)
        CHECK(weir_task_cancel(answer.run));
    result->outcome = answer.outcome;
    result->error = answer.error;
    result->value = answer.value;
    return 0;
}

static void drop_value(void *value)
{
    CHECK(value == &value_of_a);
    answer.dropped++;
}

static int keep_param(void **value, void *arg, weir_step *step)
{
    (void)value;
    *(void **)weir_step_input(step) = arg;
    return 0;
}

/* No room in "full" until its body has ended; the rejection_fn answers for what comes meanwhile. */
static weir_executor *new_full(struct body *body)
{
    const weir_group_policy full = { .key = "full", .limit = 1, .queue_max = WEIR_NO_QUEUE };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .groups = &full, .group_count = 1,
                                                 .group_limit = 2, .rejection_fn = answers));

    weir_task_unref(submit(ex, "full", body));
    return ex;
}

/* `a` in a group without room, and `b` after it, which keeps its parameter in the run's input. */
static weir_flow *bound_pair(const weir_node_options *options)
{
    weir_flow *flow = new_flow("bound");
    weir_node *a, *b;

    forget_nodes();
    a = add_with(flow, "a", 10, options);
    CHECK_EQ(
        weir_flow_node(&b, flow, "b", keep_param, NULL, WEIR_NODE(.param_of = "a", .group = "b")),
        0);
    must(b, a);
    return flow;
}

/* The answers of a rejection_fn, and the outcome of a node that is a task of its own. */
static const struct answer answers_of_tasks[] = {
    { .outcome = WEIR_DONE, .value = &value_of_a },
    { .outcome = WEIR_DONE },
    { .outcome = WEIR_FAILED, .error = -EIO },
    { .outcome = WEIR_CANCELLED, .error = WEIR_ECANCELED },
    { .outcome = WEIR_TIMED_OUT, .error = WEIR_ETIMEDOUT },
    { .outcome = WEIR_REJECTED, .error = WEIR_EREJECTED },
};

static void check_answer_to_a_task(const struct answer *said)
{
    weir_flow *flow = bound_pair(WEIR_NODE(.group = "full", .drop = drop_value, .retries = 3));
    struct body body = { .ms = 50 };
    weir_executor *ex = new_full(&body);
    void *none = &none, *param = none;
    weir_task *run;

    answer = *said;
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.input = &param));
    CHECK_EQ(weir_task_wait(NULL, run, weir_in_ms(40)), 0);
    CHECK_EQ(answer.asked, 1); /* no body has failed: there is nothing to try again */
    CHECK(seen[0].began == 0 && seen[0].ran == 0 && seen[0].results == 1);
    check_node("a", said->outcome);
    CHECK_EQ(seen[0].result_error, said->error);
    CHECK(seen[0].result_value == said->value);
    CHECK_EQ(result_in(run, "b").outcome, said->outcome);
    CHECK(param == (said->outcome == WEIR_DONE ? said->value : none));
    CHECK_EQ(answer.dropped, 0);
    weir_task_unref(run);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK_EQ(answer.dropped, said->value != NULL);
    check_books(ex);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_a_node_that_is_a_task_takes_the_result_that_a_rejection_fn_made, 30)
{
    for (size_t i = 0; i < sizeof(answers_of_tasks) / sizeof(answers_of_tasks[0]); i++)
        check_answer_to_a_task(&answers_of_tasks[i]);
}

static weir_task *root_task;

static int waits_to_be_settled(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    root_task = weir_task_ref(weir_task_self());
    return WEIR_PENDING;
}

/* The run is cancelled while the rejection_fn is asked. */
SIM_TEST(test_a_value_that_comes_too_late_from_a_rejection_fn_is_dropped_once, 30)
{
    weir_flow *flow = new_flow("late");
    struct body body = { .ms = 50 };
    weir_executor *ex = new_full(&body);
    weir_node *root, *a;

    forget_nodes();
    CHECK_EQ(
        weir_flow_node(&root, flow, "root", waits_to_be_settled, NULL, WEIR_NODE(.task = true)), 0);
    a = add_with(flow, "a", 10, WEIR_NODE(.group = "full", .drop = drop_value));
    must(a, root);
    answer = (struct answer){ .outcome = WEIR_DONE, .value = &value_of_a, .cancels = true };
    answer.run = start(flow, group_of(ex, "g"), NULL);
    sleep_until(10);
    CHECK_EQ(weir_task_settle(root_task, 0, NULL), 0);
    weir_task_unref(root_task);
    CHECK_EQ(weir_task_wait(NULL, answer.run, weir_in_ms(40)), 0);
    check_node("a", WEIR_CANCELLED);
    check_results(answer.run);
    weir_task_unref(answer.run);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK(answer.asked == 1 && answer.dropped == 1);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_nodes_without_a_turn_are_rejected_whatever_a_rejection_fn_answers, 30)
{
    for (size_t i = 0; i < sizeof(answers_of_tasks) / sizeof(answers_of_tasks[0]); i++) {
        weir_flow *flow = bound_pair(WEIR_NODE(.drop = drop_value));
        struct body body = { .ms = 50 };
        weir_executor *ex = new_full(&body);
        void *none = &none, *param = none;
        weir_task *run;
        answer = answers_of_tasks[i];
        run = start(flow, group_of(ex, "full"), WEIR_RUN(.input = &param));
        CHECK_EQ(weir_task_wait(NULL, run, weir_in_ms(40)), 0);
        CHECK_EQ(answer.asked, 1);
        check_node("a", WEIR_REJECTED);
        CHECK_EQ(seen[0].result_error, WEIR_EREJECTED);
        CHECK_EQ(seen[0].reason, WEIR_REASON_GROUP_QUEUE_FULL);
        CHECK_EQ(result_in(run, "b").outcome, WEIR_REJECTED);
        CHECK(param == none);
        check_results(run);
        weir_task_unref(run);
        CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
        CHECK_EQ(answer.dropped, 0);
        weir_executor_free(ex);
        weir_flow_free(flow);
    }
}

/* ---- cancelled turns ------------------------------------------------------------------------------------- */

static int cancels_itself(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)step;
    CHECK(weir_task_cancel(weir_task_self()));
    CHECK(weir_cancelled());
    return arg ? WEIR_ECANCELED : 0;
}

static int is_not_cancelled(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    return weir_cancelled() ? WEIR_ECANCELED : weir_sleep(weir_in_ms(1));
}

/* `a` cancels the turn that it runs in, and `b` comes after it; three others have nothing to do with it. */
static weir_flow *flow_that_cancels(bool gives_up, const weir_node_options *options)
{
    static const char *const id[] = { "0", "1", "2" };
    weir_flow *flow = new_flow("cancels");
    weir_node *a, *b;

    forget_nodes();
    CHECK_EQ(weir_flow_node(&a, flow, "a", cancels_itself, gives_up ? &seen : NULL, options), 0);
    CHECK_EQ(weir_flow_node(&b, flow, "b", is_not_cancelled, NULL, options), 0);
    must(b, a);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(weir_flow_node(NULL, flow, id[i], is_not_cancelled, NULL, options), 0);
    return flow;
}

static void check_cancel_from_inside(bool gives_up, int64_t limit, const weir_node_options *options)
{
    weir_flow *flow = flow_that_cancels(gives_up, options);
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = limit));
    weir_task *run = start(flow, group_of(ex, "g"), NULL);
    weir_outcome expected = gives_up ? WEIR_CANCELLED : WEIR_DONE;

    CHECK_EQ(weir_task_wait(NULL, run, weir_in_ms(100)), 0);
    CHECK_EQ(result_in(run, "a").outcome, expected);
    CHECK_EQ(result_in(run, "a").reason, gives_up ? WEIR_REASON_CANCELLED : WEIR_REASON_NONE);
    CHECK_EQ(result_in(run, "b").outcome, expected);
    CHECK_EQ(result_in(run, "0").outcome, WEIR_DONE);
    CHECK_EQ(result_in(run, "1").outcome, WEIR_DONE);
    CHECK_EQ(result_in(run, "2").outcome, WEIR_DONE);
    weir_task_unref(run);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    check_books(ex);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

/* Without options nodes are as plain as can be, and run in a calm run. */
SIM_TEST(test_a_body_that_cancels_its_turn_cancels_no_other_node, 100)
{
    for (int gives_up = 0; gives_up < 2; gives_up++)
        for (int64_t limit = 1; limit < 3; limit++) {
            check_cancel_from_inside(gives_up, limit, NULL);
            check_cancel_from_inside(gives_up, limit, WEIR_NODE(.interrupt = true));
        }
}

static bool was_cancelled;

static void cancel_first(weir_task *task, void *arg)
{
    (void)arg;
    if (was_cancelled)
        return;
    was_cancelled = true; /* first: the next turn may start meanwhile */
    CHECK(weir_task_cancel(task));
}

/* A listener cancels the first turn before that runs any node. Nodes after those are left to the next one. */
SIM_TEST(test_nodes_whose_turn_is_cancelled_before_it_runs_any_are_rejected, 50)
{
    weir_flow *flow = new_flow("listener");
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = 2, .listener = { .started = cancel_first }));
    weir_node *a, *b, *c;
    weir_task *run;

    was_cancelled = false;
    forget_nodes();
    a = add(flow, "a", 1);
    b = add(flow, "b", 1);
    c = add(flow, "c", 1);
    needs(b, a, WEIR_AFTER);
    needs(c, a, WEIR_AFTER);
    run = start(flow, group_of(ex, "g"), NULL);
    CHECK_EQ(weir_task_wait(NULL, run, weir_in_ms(100)), 0);
    check_node("a", WEIR_REJECTED);
    check_node("b", WEIR_DONE);
    check_node("c", WEIR_DONE);
    check_results(run);
    weir_task_unref(run);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

/* Whether the run's end or the body's comes first. */
SIM_TEST(test_a_node_is_cancelled_for_the_reason_its_body_was_asked_to_end, 300)
{
    for (int tasks = 0; tasks < 2; tasks++) {
        weir_flow *flow = new_flow("evicted");
        weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
        weir_task *run;
        forget_nodes();
        add_with(flow, "a", 8, WEIR_NODE(.task = tasks));
        run = start(flow, group_of(ex, "g"), NULL);
        CHECK_EQ(weir_sleep(weir_in_ms(3)), 0);
        CHECK_EQ(weir_group_evict(ex, "g", WEIR_CANCEL_RUNNING), 0);
        CHECK_EQ(weir_task_wait(NULL, run, weir_in_ms(3)), 0);
        check_node("a", WEIR_CANCELLED);
        CHECK_EQ(seen[0].reason, WEIR_REASON_EVICTED);
        check_results(run);
        weir_task_unref(run);
        weir_executor_free(ex);
        weir_flow_free(flow);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_that_is_a_task_takes_the_result_that_a_rejection_fn_made),
        cmocka_unit_test(test_a_value_that_comes_too_late_from_a_rejection_fn_is_dropped_once),
        cmocka_unit_test(test_nodes_without_a_turn_are_rejected_whatever_a_rejection_fn_answers),
        cmocka_unit_test(test_a_body_that_cancels_its_turn_cancels_no_other_node),
        cmocka_unit_test(test_nodes_whose_turn_is_cancelled_before_it_runs_any_are_rejected),
        cmocka_unit_test(test_a_node_is_cancelled_for_the_reason_its_body_was_asked_to_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
