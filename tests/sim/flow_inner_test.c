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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_input_outlives_bodies_of_sub_flows),
        cmocka_unit_test(test_a_value_outlives_bodies_that_have_it_as_their_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
