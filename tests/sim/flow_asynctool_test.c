/* Differences for users that come from asyncTool: rows of the table in docs/flow.md that no other test has.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

/* c needs a and b; a fails. Answers how the run ended. */
static weir_result run_pair(int64_t a_ms, int64_t b_ms, int b_error, weir_need need)
{
    weir_flow *flow = new_flow("pair");
    weir_node *a, *b, *c;
    weir_result result;

    forget_nodes();
    a = add(flow, "a", a_ms);
    b = add(flow, "b", b_ms);
    c = add(flow, "c", 5);
    node_seen("a")->error = -EIO;
    node_seen("b")->error = b_error;
    needs(c, a, need);
    needs(c, b, need);
    result = run_flow(flow, 1, 4, NULL);
    weir_flow_free(flow);
    return result;
}

SIM_TEST(test_the_first_failure_fails_a_node_whatever_the_order, 50)
{
    run_pair(10, 30, 0, WEIR_MUST);
    check_told("c", WEIR_FAILED, 10);
    check_ran("b", 0, 30);
    run_pair(30, 10, 0, WEIR_MUST); /* begins at 30, when the one before it is over */
    check_told("c", WEIR_FAILED, 60);
    CHECK_EQ(node_seen("c")->ran, 0);
}

SIM_TEST(test_any_fails_when_all_have_failed_and_not_before, 50)
{
    static const weir_need kinds[] = { WEIR_ANY, WEIR_OPTIONAL };

    for (int i = 0; i < 2; i++) { /* one after the other: 35 and 30 ms */
        run_pair(10, 30, 0, kinds[i]);
        check_ran("c", 65 * i + 30, 65 * i + 35);
        run_pair(10, 30, -EPIPE, kinds[i]);
        check_told("c", WEIR_FAILED, 65 * i + 65);
    }
}

SIM_TEST(test_a_run_has_the_outcome_of_its_last_nodes, 50)
{
    weir_result result = run_pair(10, 30, -EPIPE, WEIR_AFTER);

    CHECK_EQ(result.outcome, WEIR_DONE); /* c ran, and is the last one */
    check_ran("c", 30, 35);
    result = run_pair(10, 30, 0, WEIR_MUST);
    CHECK_EQ(result.outcome, WEIR_FAILED);
    CHECK_EQ(result.error, -EIO);
}

SIM_TEST(test_a_runs_descriptor_becomes_readable_when_it_ends, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_flow *flow = new_flow("f");
    weir_task *run;
    int fd;

    forget_nodes();
    add(flow, "a", 5);
    run = start(flow, group_of(ex, "g"), NULL);
    fd = weir_task_fd(run);
    CHECK_EQ(weir_fd_wait(fd, WEIR_READ, at(4)), WEIR_ETIMEDOUT);
    CHECK(weir_fd_wait(fd, WEIR_READ, WEIR_FOREVER) > 0);
    CHECK_EQ(weir_now(), at(5));
    weir_sim_close(fd);
    weir_task_unref(run);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_failure_fails_a_node_whatever_the_order),
        cmocka_unit_test(test_any_fails_when_all_have_failed_and_not_before),
        cmocka_unit_test(test_a_run_has_the_outcome_of_its_last_nodes),
        cmocka_unit_test(test_a_runs_descriptor_becomes_readable_when_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
