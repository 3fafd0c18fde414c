/* Tests of deadlines.
 * SPDX-License-Identifier: MIT */
#include "limits/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MS = 1000000 };

static void check(const weir_deadlines *of, weir_time since, weir_reason reason, weir_time at,
                  weir_reason which)
{
    struct wr_deadline next = wr_deadline_next(of, 100, since, reason);

    assert_int_equal(next.at, at);
    if (at != WEIR_FOREVER)
        assert_int_equal(next.reason, which);
}

static void test_a_task_without_deadlines_has_none(void **state)
{
    const weir_deadlines none = { 0 }, waits = { .wait_ms = 1 }, runs = { .run_ms = 1 };

    (void)state;
    check(&none, 100, WEIR_REASON_WAIT_DEADLINE, WEIR_FOREVER, WEIR_REASON_NONE);
    check(&none, 100, WEIR_REASON_RUN_DEADLINE, WEIR_FOREVER, WEIR_REASON_NONE);
    check(&waits, 100, WEIR_REASON_RUN_DEADLINE, WEIR_FOREVER, WEIR_REASON_NONE);
    check(&runs, 100, WEIR_REASON_WAIT_DEADLINE, WEIR_FOREVER, WEIR_REASON_NONE);
}

static void test_waiting_and_running_have_their_own(void **state)
{
    const weir_deadlines both = { .wait_ms = 2, .run_ms = 3 };

    (void)state;
    check(&both, 100, WEIR_REASON_WAIT_DEADLINE, 100 + 2 * MS, WEIR_REASON_WAIT_DEADLINE);
    check(&both, 500, WEIR_REASON_RUN_DEADLINE, 500 + 3 * MS, WEIR_REASON_RUN_DEADLINE);
}

static void test_the_total_one_counts_from_the_submit(void **state)
{
    const weir_deadlines all = { .wait_ms = 5, .run_ms = 3, .total_ms = 5 };

    (void)state;
    check(&all, 100, WEIR_REASON_WAIT_DEADLINE, 100 + 5 * MS, WEIR_REASON_TOTAL_DEADLINE);
    check(&all, 100 + 1 * MS, WEIR_REASON_RUN_DEADLINE, 100 + 4 * MS, WEIR_REASON_RUN_DEADLINE);
    check(&all, 100 + 2 * MS, WEIR_REASON_RUN_DEADLINE, 100 + 5 * MS, WEIR_REASON_TOTAL_DEADLINE);
    check(&all, 100 + 9 * MS, WEIR_REASON_RUN_DEADLINE, 100 + 5 * MS, WEIR_REASON_TOTAL_DEADLINE);
}

static void test_a_deadline_beyond_all_time_never_comes(void **state)
{
    const weir_deadlines runs = { .run_ms = 1 };

    (void)state;
    check(&runs, WEIR_FOREVER - MS, WEIR_REASON_RUN_DEADLINE, WEIR_FOREVER, WEIR_REASON_NONE);
    check(&runs, WEIR_FOREVER - MS + 1, WEIR_REASON_RUN_DEADLINE, WEIR_FOREVER, WEIR_REASON_NONE);
    check(&runs, WEIR_FOREVER - MS - 1, WEIR_REASON_RUN_DEADLINE, WEIR_FOREVER - 1,
          WEIR_REASON_RUN_DEADLINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_without_deadlines_has_none),
        cmocka_unit_test(test_waiting_and_running_have_their_own),
        cmocka_unit_test(test_the_total_one_counts_from_the_submit),
        cmocka_unit_test(test_a_deadline_beyond_all_time_never_comes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
