/* Sub-flows, and nodes that a body adds.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

static int adds_one(void **value, void *arg, weir_step *step)
{
    (void)arg;
    *value = (char *)weir_step_input(step) + 1;
    return 0;
}

SIM_TEST(test_a_sub_flow_is_a_node, 30)
{
    weir_flow *inner = new_flow("inner"), *outer = new_flow("outer");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_node *x, *y, *sub, *last;
    static char text[8];
    weir_task *run;

    forget_nodes();
    CHECK_EQ(weir_flow_node(&x, inner, "x", adds_one, NULL, NULL), 0);
    CHECK_EQ(weir_flow_node(&y, inner, "y", adds_one, NULL, NULL), 0);
    must(y, x);
    CHECK_EQ(weir_flow_node(&sub, outer, "sub", NULL, NULL, WEIR_NODE(.flow = inner)), 0);
    CHECK_EQ(weir_flow_node(&last, outer, "last", adds_one, NULL, WEIR_NODE(.param_of = "sub")), 0);
    must(last, sub);
    CHECK_EQ(weir_flow_node(NULL, inner, "z", adds_one, NULL, NULL), WEIR_EALREADY);
    weir_flow_free(inner);
    run = start(outer, group_of(ex, "g"), WEIR_RUN(.input = text));
    weir_flow_free(outer);
    sleep_until(20);
    CHECK(weir_task_done(run));
    CHECK(result_in(run, "sub").value == text + 1);
    CHECK(result_in(run, "sub/x").value == text + 1);
    CHECK_EQ(result_in(run, "sub/y").outcome, WEIR_DONE);
    weir_task_unref(run);
    weir_executor_free(ex);
}

static int fans_out(void **value, void *count_arg, weir_step *step)
{
    weir_flow *flow = new_flow("fan");
    char id[16];

    for (int i = 0; i < (int)(intptr_t)count_arg; i++) {
        snprintf(id, sizeof(id), "%d", i);
        CHECK_EQ(weir_flow_node(NULL, flow, id, node_body, &seen[i + 1], NULL), 0);
        seen[i + 1].ms = 10 + i;
    }
    *value = &seen_count;
    CHECK_EQ(weir_step_expand(step, flow, NULL, NULL), 0);
    CHECK_EQ(weir_step_expand(step, flow, NULL, NULL), WEIR_EALREADY);
    return 0;
}

static void check_fan_out(bool task)
{
    weir_flow *flow = new_flow("fan-out");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_time began = weir_now();
    weir_node *fan, *last;
    weir_task *run;

    forget_nodes();
    last = add(flow, "last", 10);
    CHECK_EQ(weir_flow_node(&fan, flow, "fan", fans_out, (void *)3, WEIR_NODE(.task = task)), 0);
    must(last, fan);
    run = start(flow, group_of(ex, "g"), NULL);
    weir_flow_free(flow);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK_EQ(node_seen("last")->started - began, 12 * MS); /* after the longest of those added */
    CHECK(result_in(run, "fan").value == &seen_count);
    CHECK_EQ(result_in(run, "fan/2").outcome, WEIR_DONE);
    weir_task_unref(run);
    weir_executor_free(ex);
}

SIM_TEST(test_a_body_adds_nodes_that_those_after_it_wait_for, 30)
{
    check_fan_out(false);
    check_fan_out(true);
}

static int adds_and_fails(void **value, void *arg, weir_step *step)
{
    weir_flow *flow = new_flow("never");

    (void)value;
    (void)arg;
    CHECK_EQ(weir_flow_node(NULL, flow, "never", node_body, &seen[0], NULL), 0);
    CHECK_EQ(weir_step_expand(step, flow, NULL, NULL), 0);
    return -EIO;
}

/* Nor are they taken for those of a body that runs on the same worker after it. */
SIM_TEST(test_nodes_that_a_failed_body_has_added_never_start, 30)
{
    weir_flow *flow = new_flow("adds and fails");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_node *fails, *after, *fan;
    weir_task *run;

    forget_nodes();
    new_seen("never", 10);
    CHECK_EQ(weir_flow_node(&fails, flow, "fails", adds_and_fails, NULL, NULL), 0);
    CHECK_EQ(weir_flow_node(&after, flow, "after", does_nothing, NULL, NULL), 0);
    CHECK_EQ(weir_flow_node(&fan, flow, "fan", fans_out, (void *)3, NULL), 0);
    needs(after, fails, WEIR_AFTER);
    needs(fan, after, WEIR_MUST);
    run = start(flow, group_of(ex, "g"), NULL);
    weir_flow_free(flow);
    CHECK_EQ(weir_task_wait(NULL, run, at(1000)), 0);
    CHECK_EQ(seen[0].ran, 0);
    CHECK_EQ(result_in(run, "fails").error, -EIO);
    CHECK_EQ(result_in(run, "after").outcome, WEIR_DONE);
    CHECK_EQ(result_in(run, "fan/2").outcome, WEIR_DONE);
    weir_task_unref(run);
    weir_executor_free(ex);
}

/* Fails the first time it is called, but adds nodes each time. */
static int adds_again(void **value, void *tries, weir_step *step)
{
    int rc = fans_out(value, (void *)2, step);

    return rc ? rc : ++*(int *)tries == 1 ? -EIO : 0;
}

SIM_TEST(test_the_nodes_that_the_last_try_has_added_are_found, 30)
{
    weir_flow *flow = new_flow("tries");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task *run;
    int tries = 0;

    forget_nodes();
    CHECK_EQ(weir_flow_node(NULL, flow, "fan", adds_again, &tries, WEIR_NODE(.retries = 1)), 0);
    run = start(flow, group_of(ex, "g"), NULL);
    weir_flow_free(flow);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK_EQ(tries, 2);
    CHECK_EQ(result_in(run, "fan").outcome, WEIR_DONE);
    CHECK_EQ(result_in(run, "fan/1").outcome, WEIR_DONE);
    weir_task_unref(run);
    weir_executor_free(ex);
}

SIM_TEST(test_the_failure_of_a_sub_flow_is_its_nodes, 20)
{
    weir_flow *inner = new_flow("inner"), *outer = new_flow("outer");
    weir_node *sub, *last;

    forget_nodes();
    CHECK_EQ(weir_flow_node(NULL, inner, "x", node_body, new_seen("x", 10), NULL), 0);
    seen[0].error = -EIO;
    CHECK_EQ(weir_flow_node(&sub, outer, "sub", NULL, NULL, WEIR_NODE(.flow = inner)), 0);
    last = add(outer, "last", 10);
    must(last, sub);
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_task *run = start(outer, group_of(ex, "g"), NULL);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK_EQ(result_in(run, "sub").error, -EIO);
    CHECK_EQ(result_in(run, "last").outcome, WEIR_FAILED);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(inner);
    weir_flow_free(outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sub_flow_is_a_node),
        cmocka_unit_test(test_a_body_adds_nodes_that_those_after_it_wait_for),
        cmocka_unit_test(test_nodes_that_a_failed_body_has_added_never_start),
        cmocka_unit_test(test_the_nodes_that_the_last_try_has_added_are_found),
        cmocka_unit_test(test_the_failure_of_a_sub_flow_is_its_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
