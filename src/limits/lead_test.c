/* Unit tests of leads.
 * SPDX-License-Identifier: MIT */
#include "limits/lead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_a_worker_leads_if_none_does(void **state)
{
    struct wr_lead_look look = { 0 };

    (void)state;
    assert_false(wr_lead_gets_on(&look, 100, false, 0));
}

static void test_others_give_way_while_the_lead_gets_on(void **state)
{
    struct wr_lead_look look = { 0 };

    (void)state;
    for (uint32_t taken = 1; taken < 10; taken++)
        assert_true(wr_lead_gets_on(&look, 100 * taken, true, taken));
}

/* It is in a long body, or has no CPU itself. */
static void test_a_lead_that_does_not_get_on_is_one_no_more(void **state)
{
    struct wr_lead_look look = { 0 };

    (void)state;
    assert_true(wr_lead_gets_on(&look, 100, true, 7));
    assert_false(wr_lead_gets_on(&look, 200, true, 7));
}

/* What a worker does that takes a slice of `slice_ns` all the time, out of a queue in which tasks wait for `waited_ns`: how often
 * it looks in a millisecond. */
static int looks(int64_t slice_ns, int64_t waited_ns)
{
    struct wr_lead_look look = { 0 };
    int count = 0;

    for (weir_time now = slice_ns; now <= 1000000; now += slice_ns)
        if (wr_lead_is_due(&look, now, slice_ns, waited_ns)) {
            wr_lead_gets_on(&look, now, true, (uint32_t)now);
            count++;
        }
    return count;
}

static void test_a_worker_looks_now_and_then(void **state)
{
    (void)state;
    assert_int_equal(looks(100, 0), 20);  /* every 50 us */
    assert_int_equal(looks(8000, 0), 18); /* after seven slices, which is every 56 us */
}

static void test_long_slices_do_not_give_way(void **state)
{
    (void)state;
    assert_int_equal(looks(WR_BRIEF_NS, 0), 0);
    assert_int_equal(looks(50000, 0), 0);
}

static void test_nothing_gives_way_where_tasks_are_late(void **state)
{
    (void)state;
    assert_int_equal(looks(100, WR_IN_TIME_NS - 1), 20);
    assert_int_equal(looks(100, WR_IN_TIME_NS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_leads_if_none_does),
        cmocka_unit_test(test_others_give_way_while_the_lead_gets_on),
        cmocka_unit_test(test_a_lead_that_does_not_get_on_is_one_no_more),
        cmocka_unit_test(test_a_worker_looks_now_and_then),
        cmocka_unit_test(test_long_slices_do_not_give_way),
        cmocka_unit_test(test_nothing_gives_way_where_tasks_are_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
