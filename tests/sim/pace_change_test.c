/* A pace that is set again while its group runs: what was spent of the burst stays spent.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

enum { MOST = 40 };

struct paced {
    weir_executor *ex;
    weir_group *group;
    weir_task *task[MOST];
    int count;
};

static void set_pace(struct paced *p, int64_t interval_ms, int64_t burst)
{
    CHECK(weir_group_pace(p->group, 1, interval_ms * MS, burst) == 0);
}

static void paced_init(struct paced *p, int count)
{
    p->ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT));
    p->group = group_of(p->ex, "g");
    p->count = count;
    weir_group_pause(p->group);
    for (int i = 0; i < count; i++)
        p->task[i] = submit(p->ex, "g", NULL);
}

/* In milliseconds, after as many at once as the burst. */
static void check_starts(struct paced *p, const int64_t *ms)
{
    for (int i = 0; i < p->count; i++)
        CHECK_EQ(result_of(p->task[i]).started_at, at(ms[i]));
    check_books(p->ex);
    weir_executor_free(p->ex);
}

SIM_TEST(test_the_same_pace_set_again_changes_nothing, 20)
{
    struct paced p;
    int64_t due[24];

    paced_init(&p, 24);
    set_pace(&p, 50, 5);
    weir_group_resume(p.group);
    for (int i = 0; i < 24; i++)
        due[i] = i < 5 ? 0 : (i - 4) * 50;
    for (int ms = 10; ms < 1000; ms += 10) {
        sleep_until(ms);
        set_pace(&p, 50, 5);
    }
    check_starts(&p, due);
}

SIM_TEST(test_a_larger_burst_has_to_be_earned, 20)
{
    static const int64_t due[] = { 0, 50, 100 };
    struct paced p;

    paced_init(&p, 3);
    set_pace(&p, 50, 1);
    weir_group_resume(p.group);
    sleep_until(10);
    set_pace(&p, 50, 10);
    check_starts(&p, due);
}

SIM_TEST(test_the_rest_of_a_burst_is_left_as_far_as_the_new_one_has_room, 20)
{
    static const int64_t due[] = { 0, 0, 10, 10, 60, 110 };
    struct paced p;

    paced_init(&p, 2);
    set_pace(&p, 50, 5);
    weir_group_resume(p.group);
    sleep_until(10); /* three are left, and a fifth of one more */
    weir_group_pause(p.group);
    for (; p.count < 6; p.count++)
        p.task[p.count] = submit(p.ex, "g", NULL);
    set_pace(&p, 50, 2);
    weir_group_resume(p.group);
    check_starts(&p, due);
}

SIM_TEST(test_a_faster_pace_holds_for_starts_still_to_be_earned, 20)
{
    static const int64_t due[] = { 0, 18, 28,
                                   38 }; /* a fifth was earned of the 50; 8 of 10 are left */
    struct paced p;

    paced_init(&p, 4);
    set_pace(&p, 50, 1);
    weir_group_resume(p.group);
    sleep_until(10);
    set_pace(&p, 10, 1);
    check_starts(&p, due);
}

SIM_TEST(test_a_slower_pace_holds_for_starts_still_to_be_earned, 20)
{
    static const int64_t due[] = { 0, 0, 90, 190 };
    struct paced p;

    paced_init(&p, 4);
    set_pace(&p, 50, 2);
    weir_group_resume(p.group);
    sleep_until(10);
    set_pace(&p, 100, 2);
    check_starts(&p, due);
}

SIM_TEST(test_changing_a_burst_to_and_fro_refills_nothing, 20)
{
    static const int64_t due[] = { 0, 0, 0, 50, 100 };
    struct paced p;

    paced_init(&p, 5);
    set_pace(&p, 50, 3);
    weir_group_resume(p.group);
    for (int ms = 5; ms < 100; ms += 5) {
        sleep_until(ms);
        set_pace(&p, 50, ms % 10 ? 1 : 3);
    }
    check_starts(&p, due);
}

SIM_TEST(test_a_pace_beyond_all_time_does_not_overflow, 5)
{
    struct paced p;

    paced_init(&p, 2);
    CHECK(weir_group_pace(p.group, 1, INT64_MAX, 1) == 0);
    weir_group_resume(p.group);
    sleep_until(10);
    CHECK(weir_group_pace(p.group, 1, INT64_MAX / 2, 2) == 0);
    CHECK(weir_group_pace(p.group, 1, 3, INT64_MAX / 3) == 0);
    CHECK(weir_group_pace(p.group, 0, 0, 0) == 0);
    CHECK(weir_group_pace(p.group, INT64_MAX, 1, 1) == 0);
    for (int i = 0; i < 2; i++)
        check_done(p.task[i]);
    weir_executor_free(p.ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_pace_set_again_changes_nothing),
        cmocka_unit_test(test_a_larger_burst_has_to_be_earned),
        cmocka_unit_test(test_the_rest_of_a_burst_is_left_as_far_as_the_new_one_has_room),
        cmocka_unit_test(test_a_faster_pace_holds_for_starts_still_to_be_earned),
        cmocka_unit_test(test_a_slower_pace_holds_for_starts_still_to_be_earned),
        cmocka_unit_test(test_changing_a_burst_to_and_fro_refills_nothing),
        cmocka_unit_test(test_a_pace_beyond_all_time_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
