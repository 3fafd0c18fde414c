/* Unit tests of leads.
 * SPDX-License-Identifier: MIT */
#include "limits/lead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A worker that looks at a lead every `ns`, in which that takes `slices` of so many tasks and so much time. */
struct scene {
    struct wr_lead_done lead;
    struct wr_lead_look look;
    weir_time now;
};

static enum wr_lead_step look_again(struct scene *scene, int64_t ns, int slices, uint32_t tasks,
                                    int64_t slice_ns, int64_t waited_ns)
{
    for (int i = 0; i < slices; i++)
        wr_lead_count(&scene->lead, tasks, slice_ns, waited_ns);
    scene->now += ns;
    return wr_lead_look(&scene->look, &scene->lead, scene->now, waited_ns);
}

/* The step it takes at its second look: the first only shows it where the lead is. */
static enum wr_lead_step step_after(int64_t ns, int slices, uint32_t tasks, int64_t slice_ns,
                                    int64_t waited_ns)
{
    struct scene scene = { .now = 100 };

    look_again(&scene, ns, slices, tasks, slice_ns, waited_ns);
    return look_again(&scene, ns, slices, tasks, slice_ns, waited_ns);
}

static void test_a_worker_leads_if_none_does(void **state)
{
    struct wr_lead_look look = { 0 };

    (void)state;
    assert_int_equal(wr_lead_look(&look, NULL, 100, 0), WR_LEAD_LEAD);
}

/* It is in a long body, or has no CPU itself. */
static void test_a_lead_that_does_not_get_on_is_one_no_more(void **state)
{
    struct scene scene = { .now = 100 };

    (void)state;
    assert_int_equal(look_again(&scene, 50000, 7, 1, 100, 0), WR_LEAD_YIELD);
    assert_int_equal(look_again(&scene, 50000, 0, 0, 0, 0), WR_LEAD_LEAD);
}

static void test_another_lead_is_not_measured_by_the_slices_of_the_former(void **state)
{
    struct scene scene = { .now = 100 };
    struct wr_lead_done other = { .slices = 7 };

    (void)state;
    look_again(&scene, 50000, 7, 1, 100, 0);
    assert_int_equal(wr_lead_look(&scene.look, &other, scene.now + 50000, 0), WR_LEAD_YIELD);
}

static void test_others_give_way_while_the_lead_gets_on(void **state)
{
    struct scene scene = { .now = 100 };

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(look_again(&scene, 50000, 6, 2, 8000, 0), WR_LEAD_YIELD);
}

static void test_others_sleep_while_the_lead_starts_a_task_each_microsecond(void **state)
{
    (void)state;
    assert_int_equal(step_after(50000, 6, 8, 8000, 0), WR_LEAD_YIELD); /* 48 tasks */
    assert_int_equal(step_after(50000, 6, 9, 8000, 0), WR_LEAD_REST);
    assert_int_equal(step_after(50000, 6, 9, 8000, WR_AT_ONCE_NS), WR_LEAD_YIELD);
}

/* The worker that looks may have slept since its own last slice. */
static void test_the_lead_knows_how_long_tasks_wait(void **state)
{
    struct scene scene = { .now = 100 };

    (void)state;
    look_again(&scene, 50000, 60, 1, 100, 0);
    wr_lead_count(&scene.lead, 60, 6000, WR_AT_ONCE_NS - 1);
    scene.now += 50000;
    assert_int_equal(wr_lead_look(&scene.look, &scene.lead, scene.now, WR_IN_TIME_NS),
                     WR_LEAD_REST);
    wr_lead_count(&scene.lead, 60, 6000, WR_AT_ONCE_NS);
    scene.now += 50000;
    assert_int_equal(wr_lead_look(&scene.look, &scene.lead, scene.now, 0), WR_LEAD_YIELD);
}

static void test_others_sleep_while_more_time_goes_elsewhere_than_into_tasks(void **state)
{
    (void)state;
    assert_int_equal(step_after(50000, 25, 1, 1000, WR_IN_TIME_NS), WR_LEAD_NAP);
    assert_int_equal(step_after(50000, 25, 1, 1001, WR_IN_TIME_NS), WR_LEAD_WORK);
    assert_int_equal(step_after(50000, 24, 1, 500, WR_IN_TIME_NS), WR_LEAD_WORK);
}

static void test_nothing_gives_way_where_tasks_are_late(void **state)
{
    (void)state;
    assert_int_equal(step_after(50000, 6, 2, 8000, WR_LEAD_LATE_NS - 1), WR_LEAD_YIELD);
    assert_int_equal(step_after(50000, 6, 2, 8000, WR_LEAD_LATE_NS), WR_LEAD_WORK);
}

static void test_a_worker_that_has_slept_looks_again_at_once(void **state)
{
    struct scene scene = { .now = 100 };

    (void)state;
    look_again(&scene, 50000, 60, 1, 100, 0);
    assert_false(wr_lead_is_due(&scene.look, scene.now + WR_LEAD_LOOK_NS - 1, 100));
    assert_int_equal(look_again(&scene, 50000, 60, 1, 100, 0), WR_LEAD_REST);
    assert_true(wr_lead_is_due(&scene.look, scene.now, 100));
    assert_int_equal(look_again(&scene, 100000, 120, 1, 100, 0), WR_LEAD_REST);
    assert_int_equal(look_again(&scene, 100000, 60, 1, 100, WR_AT_ONCE_NS), WR_LEAD_NAP);
    assert_true(wr_lead_is_due(&scene.look, scene.now, 100));
}

/* How often a worker looks in a millisecond that takes slices of `slice_ns` all the time. */
static int looks(int64_t slice_ns)
{
    struct scene scene = { .now = 0 };
    int count = 0;

    for (weir_time now = slice_ns; now <= 1000000; now += slice_ns)
        if (wr_lead_is_due(&scene.look, now, slice_ns)) {
            look_again(&scene, now - scene.now, 1, 1, 8000, 0);
            count++;
        }
    return count;
}

static void test_a_worker_looks_now_and_then(void **state)
{
    (void)state;
    assert_int_equal(looks(100), 20);  /* every 50 us */
    assert_int_equal(looks(8000), 18); /* after seven slices, which is every 56 us */
}

static void test_a_worker_with_long_slices_goes_on(void **state)
{
    (void)state;
    assert_int_equal(looks(WR_BRIEF_NS), 0);
    assert_int_equal(looks(50000), 0);
}

/* Twenty tasks of a stream that one worker keeps up with: there will be more of them in a moment. */
static void test_a_few_tiny_tasks_were_taken_in_haste(void **state)
{
    (void)state;
    assert_true(wr_slice_was_hasty(20, 20 * 30, 40000));
    assert_true(wr_slice_was_hasty(WR_FEW_TASKS - 1, 2000, 40000));
    assert_false(wr_slice_was_hasty(WR_FEW_TASKS, 2000, 40000));  /* that is worth a turn       */
    assert_false(wr_slice_was_hasty(20, 20 * WR_TINY_NS, 40000)); /* the tasks themselves cost  */
    assert_false(wr_slice_was_hasty(20, 20 * 30, WR_IN_TIME_NS)); /* they were late             */
    assert_false(wr_slice_was_hasty(1, 30, 40000));               /* its group may get no other */
    assert_false(wr_slice_was_hasty(0, 0, 0));                    /* nothing was taken          */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_leads_if_none_does),
        cmocka_unit_test(test_a_lead_that_does_not_get_on_is_one_no_more),
        cmocka_unit_test(test_another_lead_is_not_measured_by_the_slices_of_the_former),
        cmocka_unit_test(test_others_give_way_while_the_lead_gets_on),
        cmocka_unit_test(test_others_sleep_while_the_lead_starts_a_task_each_microsecond),
        cmocka_unit_test(test_the_lead_knows_how_long_tasks_wait),
        cmocka_unit_test(test_others_sleep_while_more_time_goes_elsewhere_than_into_tasks),
        cmocka_unit_test(test_nothing_gives_way_where_tasks_are_late),
        cmocka_unit_test(test_a_worker_that_has_slept_looks_again_at_once),
        cmocka_unit_test(test_a_worker_looks_now_and_then),
        cmocka_unit_test(test_a_worker_with_long_slices_goes_on),
        cmocka_unit_test(test_a_few_tiny_tasks_were_taken_in_haste),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
