/* Nodes inside of nodes: what bodies of sub-flows and of added nodes can count on, and what their run can, when it ends while
 * they run.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

/* ---- what bodies use ----------------------------------------------------------------------------------- */

static int thing, drops, bodies;

static void drop_thing(void *value)
{
    CHECK(value == &thing);
    drops++;
}

static int uses_thing(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    CHECK(weir_step_input(step) == &thing);
    CHECK_EQ(drops, 0);
    weir_sim_busy(50 * MS);
    CHECK_EQ(drops, 0);
    bodies++;
    return 0;
}

static int makes_thing(void **value, void *arg, weir_step *step)
{
    (void)arg;
    (void)step;
    *value = &thing;
    return 0;
}

static int expand_with(weir_step *step, void *input)
{
    weir_flow *flow = new_flow("added");

    CHECK_EQ(weir_flow_node(NULL, flow, "uses", uses_thing, NULL, NULL), 0);
    return weir_step_expand(step, flow, input, NULL);
}

static int expands_with_input(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    return expand_with(step, weir_step_input(step));
}

static int expands_with_param(void **value, void *param, weir_step *step)
{
    (void)value;
    return expand_with(step, param);
}

static int expands_with_value(void **value, void *arg, weir_step *step)
{
    (void)arg;
    *value = &thing;
    return expand_with(step, &thing);
}

/* Cancelled while the body inside runs, and without a reference: the body has what it uses until it returns. */
static void check_kept(weir_flow *flow, const weir_run_options *options)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .stall_after_ms = 1000));
    weir_task *run;

    drops = bodies = 0;
    run = start(flow, group_of(ex, "g"), options);
    weir_flow_free(flow);
    weir_sleep(weir_now() + 10 * MS);
    weir_task_cancel(run);
    weir_task_unref(run);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK_EQ(bodies, 1);
    weir_executor_free(ex);
    CHECK_EQ(drops, 1);
}

/* A flow whose only node is the sub-flow, which is given up. */
static weir_flow *around(weir_flow *inner)
{
    weir_flow *flow = new_flow("around");

    CHECK_EQ(weir_flow_node(NULL, flow, "sub", NULL, NULL, WEIR_NODE(.flow = inner)), 0);
    weir_flow_free(inner);
    return flow;
}

static weir_flow *one_node(weir_node_fn *body, const weir_node_options *options)
{
    weir_flow *flow = new_flow("one");

    CHECK_EQ(weir_flow_node(NULL, flow, "one", body, NULL, options), 0);
    return flow;
}

SIM_TEST(test_the_input_outlives_bodies_of_sub_flows, 50)
{
    const weir_run_options options = { .size = sizeof(options),
                                       .input = &thing,
                                       .drop_input = drop_thing };

    check_kept(around(one_node(uses_thing, NULL)), &options);
    check_kept(around(one_node(uses_thing, WEIR_NODE(.task = true))), &options);
    check_kept(around(around(one_node(uses_thing, NULL))), &options);
    check_kept(one_node(expands_with_input, NULL), &options);
    check_kept(around(one_node(expands_with_input, WEIR_NODE(.task = true))), &options);
}

/* `made` has the value, and `user` gets it as its parameter. */
static weir_flow *maker_and(weir_node_fn *body, weir_flow *inner)
{
    weir_flow *flow = new_flow("maker");
    weir_node *made, *user;

    CHECK_EQ(weir_flow_node(&made, flow, "made", makes_thing, NULL, WEIR_NODE(.drop = drop_thing)),
             0);
    CHECK_EQ(weir_flow_node(&user, flow, "user", body, NULL,
                            WEIR_NODE(.flow = inner, .param_of = "made")),
             0);
    must(user, made);
    weir_flow_free(inner);
    return flow;
}

SIM_TEST(test_a_value_outlives_bodies_that_have_it_as_their_input, 50)
{
    check_kept(maker_and(NULL, one_node(uses_thing, NULL)), NULL);
    check_kept(maker_and(expands_with_param, NULL), NULL);
    check_kept(one_node(expands_with_value, WEIR_NODE(.drop = drop_thing)), NULL);
}

/* ---- the end of the run around them ---------------------------------------------------------------------- */

static weir_task *top;
static int told_of;

static void told_in_time(const weir_node_result *result, void *arg)
{
    (void)result;
    (void)arg;
    CHECK(!weir_task_done(top));
    CHECK_EQ(weir_task_wait(NULL, top, WEIR_FOREVER), WEIR_EDEADLK);
    told_of++;
}

/* Does not look whether it was asked to end. */
static int is_busy(void **value, void *ms, weir_step *step)
{
    (void)value;
    (void)step;
    weir_sim_busy((intptr_t)ms * MS);
    return 0;
}

static int sleeps(void **value, void *ms, weir_step *step)
{
    (void)value;
    (void)step;
    return weir_sleep(weir_now() + (intptr_t)ms * MS);
}

/* One after the other, of 50 ms each. */
static weir_flow *two_nodes(weir_node_fn *body)
{
    weir_flow *flow = new_flow("two");
    weir_node *first, *second;

    CHECK_EQ(
        weir_flow_node(&first, flow, "first", body, (void *)50, WEIR_NODE(.result = told_in_time)),
        0);
    CHECK_EQ(weir_flow_node(&second, flow, "second", body, (void *)50,
                            WEIR_NODE(.result = told_in_time)),
             0);
    must(second, first);
    return flow;
}

static int expands_at_once(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    return weir_step_expand(step, two_nodes(is_busy), NULL, NULL);
}

static int expands_to_sleep(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    return weir_step_expand(step, two_nodes(sleeps), NULL, NULL);
}

static void check_all_told(void *arg)
{
    (void)arg;
    CHECK_EQ(weir_task_wait(NULL, top, WEIR_FOREVER), 0);
    CHECK_EQ(told_of, 2);
}

/* The inner nodes are below `path`. The run ends after 30 ms. */
static void check_told_before(weir_flow *flow, const char *path, bool cancels)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4, .stall_after_ms = 1000));
    weir_outcome first, second;
    char id[40];
    int64_t waiter;

    told_of = 0;
    top = start(flow, group_of(ex, "g"), WEIR_RUN(.deadline_ms = cancels ? 0 : 30));
    weir_flow_free(flow);
    waiter = weir_sim_thread(check_all_told, NULL, "waiter");
    if (cancels) {
        weir_sleep(weir_now() + 30 * MS);
        weir_task_cancel(top);
    }
    weir_sim_join(waiter);
    snprintf(id, sizeof(id), "%s/first", path);
    first = result_in(top, id).outcome;
    snprintf(id, sizeof(id), "%s/second", path);
    second = result_in(top, id).outcome;
    CHECK(first != WEIR_UNSETTLED && first != WEIR_DONE && second == first);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK_EQ(told_of, 2);
    CHECK_EQ(result_in(top, id).outcome, second);
    weir_task_unref(top);
    weir_executor_free(ex);
}

SIM_TEST(test_inner_nodes_are_told_of_before_the_run_settles, 50)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        check_told_before(around(two_nodes(is_busy)), "sub", cancels);
        check_told_before(around(around(two_nodes(is_busy))), "sub/sub", cancels);
        check_told_before(one_node(expands_at_once, NULL), "one", cancels);
        check_told_before(one_node(expands_at_once, WEIR_NODE(.task = true)), "one", cancels);
    }
}

static int expands_and_is_busy(void **value, void *arg, weir_step *step)
{
    int rc = expands_at_once(value, arg, step);

    weir_sim_busy(50 * MS);
    return rc;
}

SIM_TEST(test_a_body_whose_run_has_ended_adds_nothing, 50)
{
    for (int tasks = 0; tasks < 2; tasks++) {
        weir_executor *ex =
            new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4, .stall_after_ms = 1000));
        weir_flow *flow = one_node(expands_and_is_busy, WEIR_NODE(.task = tasks));
        weir_node_result result = WEIR_NODE_RESULT;
        told_of = 0;
        top = start(flow, group_of(ex, "g"), NULL);
        weir_flow_free(flow);
        weir_sleep(weir_now() + 10 * MS);
        weir_task_cancel(top);
        CHECK_EQ(weir_task_wait(NULL, top, WEIR_FOREVER), 0);
        CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
        CHECK_EQ(told_of, 0);
        CHECK(weir_run_result(&result, top, "one/first") != 0);
        weir_task_unref(top);
        weir_executor_free(ex);
    }
}

/* As with a sub-flow: what it was going on with is cancelled with it. */
SIM_TEST(test_a_loser_takes_the_nodes_it_has_added_with_it, 50)
{
    for (int tasks = 0; tasks < 2; tasks++) {
        weir_flow *flow = new_flow("race");
        weir_executor *ex =
            new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4, .stall_after_ms = 1000));
        weir_node *loser, *winner, *last;
        told_of = 0;
        forget_nodes();
        CHECK_EQ(weir_flow_node(&loser, flow, "loser", expands_to_sleep, NULL,
                                WEIR_NODE(.interrupt = true, .task = tasks)),
                 0);
        winner = add(flow, "winner", 5);
        last = add(flow, "last", 1);
        needs(last, loser, WEIR_ANY);
        needs(last, winner, WEIR_ANY);
        top = start(flow, group_of(ex, "g"), NULL);
        weir_flow_free(flow);
        CHECK_EQ(weir_task_wait(NULL, top, WEIR_FOREVER), 0);
        CHECK_EQ(told_of, 2);
        CHECK_EQ(result_in(top, "loser").outcome, WEIR_CANCELLED);
        CHECK_EQ(result_in(top, "loser/first").outcome, WEIR_CANCELLED);
        CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
        CHECK_EQ(told_of, 2);
        weir_task_unref(top);
        weir_executor_free(ex);
    }
}

static int notes_sleep(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)step;
    *(int *)arg = weir_sleep(weir_now() + 50 * MS);
    return 0;
}

static int expands_to_arg(void **value, void *arg, weir_step *step)
{
    weir_flow *flow = new_flow("added");

    (void)value;
    CHECK_EQ(weir_flow_node(NULL, flow, "inner", notes_sleep, arg, NULL), 0);
    return weir_step_expand(step, flow, NULL, NULL);
}

/* As those of other nodes: if the node or the run says so. */
static void check_deadline(bool expands, bool node_may, bool run_may)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_flow *inner = new_flow("inner"), *flow = new_flow("outer");
    int slept = 1;

    CHECK_EQ(weir_flow_node(NULL, inner, "inner", notes_sleep, &slept, NULL), 0);
    CHECK_EQ(weir_flow_node(NULL, flow, "node", expands ? expands_to_arg : NULL,
                            expands ? &slept : NULL,
                            WEIR_NODE(.flow = expands ? NULL : inner, .interrupt = node_may)),
             0);
    top = start(flow, group_of(ex, "g"), WEIR_RUN(.deadline_ms = 10, .interrupt = run_may));
    CHECK_EQ(weir_task_wait(NULL, top, WEIR_FOREVER), 0);
    CHECK_EQ(result_in(top, "node").outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result_in(top, "node/inner").outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result_in(top, "node/inner").reason, WEIR_REASON_TOTAL_DEADLINE);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK_EQ(slept, node_may || run_may ? WEIR_ECANCELED : 0);
    weir_task_unref(top);
    weir_flow_free(inner);
    weir_flow_free(flow);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_deadline_asks_inner_bodies_that_may_be_asked, 30)
{
    for (int i = 0; i < 8; i++)
        check_deadline(i & 1, i & 2, i & 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_input_outlives_bodies_of_sub_flows),
        cmocka_unit_test(test_a_value_outlives_bodies_that_have_it_as_their_input),
        cmocka_unit_test(test_inner_nodes_are_told_of_before_the_run_settles),
        cmocka_unit_test(test_a_body_whose_run_has_ended_adds_nothing),
        cmocka_unit_test(test_a_loser_takes_the_nodes_it_has_added_with_it),
        cmocka_unit_test(test_a_deadline_asks_inner_bodies_that_may_be_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
