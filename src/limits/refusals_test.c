/* Tests of counts by reason.
 * SPDX-License-Identifier: MIT */
#include "limits/refusals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_each_reason_is_counted_by_itself(void **state)
{
    struct wr_refusals refusals = { 0 };

    (void)state;
    for (int round = 0; round < 3; round++)
        for (int reason = 0; reason < 128; reason++)
            if (reason % 3 >= round)
                wr_refusals_add(&refusals, (weir_reason)reason);
    for (int reason = 0; reason < 128; reason++)
        assert_int_equal(wr_refusals_count(&refusals, (weir_reason)reason), reason % 3 + 1);
    assert_int_equal(refusals.total, 43 * 1 + 43 * 2 + 42 * 3);
    assert_int_equal(wr_refusals_count(&refusals, (weir_reason)128), 0);
    wr_refusals_fini(&refusals);
}

static void test_none_cost_no_memory(void **state)
{
    struct wr_refusals refusals = { 0 };

    (void)state;
    assert_int_equal(wr_refusals_count(&refusals, WEIR_REASON_NONE), 0);
    assert_null(refusals.entry);
    wr_refusals_fini(&refusals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_reason_is_counted_by_itself),
        cmocka_unit_test(test_none_cost_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
