/* Tasks without anything in a paced group: they start at their times, whatever call looks on (src/executor/beat.h).
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

#include <weir/sys/gate.h>

enum { TASKS = 40, STEP = 10 };

struct band;

struct note {
    struct band *band;
    weir_time began;
    int error;
    int64_t ms;   /* it parks so long, */
    int64_t busy; /* or keeps its worker so long */
    bool asks;    /* which task it is */
    bool pends;
};

struct band {
    weir_executor *ex;
    weir_group *group;
    struct note note[TASKS];
    _Atomic int began, now, peak, order_broken;
};

static int settle_at_once(weir_task *task)
{
    CHECK(weir_task_settle(task, 0, NULL) == 0);
    return WEIR_PENDING;
}

static int play(void **value, void *arg)
{
    struct note *note = arg;
    struct band *band = note->band;
    int now = ++band->now;

    (void)value;
    note->began = weir_now();
    band->order_broken += band->began++ != (int)(note - band->note);
    if (now > band->peak)
        band->peak = now;
    if (note->asks)
        CHECK(strcmp(weir_task_key(weir_task_self()), "g") == 0);
    if (note->ms)
        CHECK(weir_sleep(weir_now() + note->ms * MS) == 0);
    if (note->busy)
        weir_sim_busy(note->busy * MS);
    band->now--;
    return note->pends ? settle_at_once(weir_task_self()) : note->error;
}

/* Is none of the band. */
static int keep(void **value, void *arg)
{
    const struct note *note = arg;

    (void)value;
    weir_sim_busy(note->busy * MS);
    return 0;
}

static void band_init(struct band *band, const weir_policy *policy, int64_t burst)
{
    *band = (struct band){ .ex = new_executor(policy) };
    band->group = group_of(band->ex, "g");
    CHECK(weir_group_pace(band->group, 1, STEP * MS, burst) == 0);
    for (int i = 0; i < TASKS; i++)
        band->note[i].band = band;
}

static void submit_notes(struct band *band, int from, int to)
{
    for (int i = from; i < to; i++)
        CHECK(weir_submit(NULL, band->group, play, &band->note[i], NULL) == 0);
}

static void end(struct band *band)
{
    CHECK(weir_executor_drain(band->ex, WEIR_FOREVER) == 0);
    CHECK_EQ(band->order_broken, 0);
    check_books(band->ex);
    weir_executor_free(band->ex);
}

/* From `from` on they began one by one, the first of them then. */
static void check_steps(const struct band *band, int from, int to, int64_t first_ms)
{
    for (int i = from; i < to; i++)
        CHECK_EQ(band->note[i].began, at(first_ms + (i - from) * STEP));
}

/* ---- times --------------------------------------------------------------------------------------- */

SIM_TEST(test_each_starts_at_its_time, 100)
{
    struct band band;
    weir_group_stats stats;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4), 1);
    submit_notes(&band, 0, TASKS);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    check_steps(&band, 0, TASKS, 0);
    stats = stats_of(band.ex, "g");
    CHECK_EQ(stats.started, TASKS);
    CHECK_EQ(stats.succeeded, TASKS);
    CHECK_EQ(stats.peak, 1);
    CHECK_EQ(stats.waited_ns, STEP * MS * TASKS * (TASKS - 1) / 2);
    CHECK_EQ(stats.ran_ns, 0);
    end(&band);
}

SIM_TEST(test_a_burst_comes_first_and_is_earned_again, 50)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 1), 3);
    submit_notes(&band, 0, 20);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(band.note[i].began, at(0));
    check_steps(&band, 3, 20, STEP);
    sleep_until(1000);
    submit_notes(&band, 20, 30);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    for (int i = 20; i < 23; i++)
        CHECK_EQ(band.note[i].began, at(1000));
    check_steps(&band, 23, 30, 1000 + STEP);
    end(&band);
}

SIM_TEST(test_a_busy_worker_makes_one_late_and_all_after_it, 50)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 1, .group_limit = 4, .stall_after_ms = 1000), 1);
    band.note[3].busy = 25;
    submit_notes(&band, 0, 10);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    check_steps(&band, 0, 4, 0);
    check_steps(&band, 4, 10, 3 * STEP + 25); /* there is no burst: nothing is made up for */
    end(&band);
}

SIM_TEST(test_many_groups_keep_their_own_times, 20)
{
    struct band band[3];

    for (int b = 0; b < 3; b++) {
        band[b] = (struct band){ 0 };
        band[b].ex = b ? band[0].ex : new_executor(WEIR_POLICY(.workers = 2));
        band[b].group = group_of(band[b].ex, (const char *[]){ "a", "b", "c" }[b]);
        CHECK(weir_group_pace(band[b].group, 1, (b + 1) * MS, 1) == 0);
        for (int i = 0; i < TASKS; i++)
            band[b].note[i].band = &band[b];
        submit_notes(&band[b], 0, TASKS);
    }
    CHECK(weir_executor_drain(band[0].ex, WEIR_FOREVER) == 0);
    for (int b = 0; b < 3; b++)
        for (int i = 0; i < TASKS; i++)
            CHECK_EQ(band[b].note[i].began, at(i * (b + 1)));
    end(&band[0]);
}

/* ---- bodies that take their time ------------------------------------------------------------------ */

SIM_TEST(test_bodies_that_last_overlap_as_far_as_the_limit_allows, 100)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 2), 1);
    for (int i = 0; i < TASKS; i++)
        band.note[i].ms = i < 10 ? 15 : 30;
    submit_notes(&band, 0, 20);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    check_steps(&band, 0, 11, 0);
    for (int i = 12; i < 20; i++)
        CHECK(band.note[i].began - band.note[i - 2].began >= 30 * MS);
    CHECK_EQ(band.peak, 2);
    CHECK_EQ(stats_of(band.ex, "g").peak, 2);
    end(&band);
}

SIM_TEST(test_a_body_that_keeps_its_worker_keeps_no_other_from_its_time, 50)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4), 1);
    band.note[5].busy = 5 * STEP;
    submit_notes(&band, 0, 20);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    check_steps(&band, 0, 20, 0);
    end(&band);
}

SIM_TEST(test_bodies_may_fail_pend_or_ask_which_task_they_are, 100)
{
    struct band band;
    weir_group_stats stats;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4), 1);
    for (int i = 0; i < TASKS; i++) {
        band.note[i].error = i % 7 == 3 ? -1000 : 0;
        band.note[i].asks = i % 5 == 2;
        band.note[i].pends = i % 11 == 4;
    }
    submit_notes(&band, 0, TASKS);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    check_steps(&band, 0, TASKS, 0);
    stats = stats_of(band.ex, "g");
    CHECK_EQ(stats.failed, 6); /* 3, 10, .., 38 */
    CHECK_EQ(stats.succeeded, TASKS - stats.failed);
    end(&band);
}

/* ---- other calls look on --------------------------------------------------------------------------- */

SIM_TEST(test_figures_are_those_of_the_moment, 50)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4), 1);
    submit_notes(&band, 0, TASKS);
    for (int i = 0; i < TASKS; i++) {
        sleep_until(i * STEP + STEP / 2);
        if (i % 3)
            continue;
        weir_group_stats stats = stats_of(band.ex, "g");
        CHECK_EQ(stats.started, i + 1);
        CHECK_EQ(stats.succeeded, i + 1);
        CHECK_EQ(stats.waiting, TASKS - i - 1);
        CHECK_EQ(stats.running, 0);
    }
    check_steps(&band, 0, TASKS, 0);
    end(&band);
}

static int say_when(void **value, void *arg)
{
    (void)value;
    *(weir_time *)arg = weir_now();
    weir_sim_busy(5 * MS);
    return 0;
}

/* Its time has come while the worker is busy, and another group became ready after that. */
SIM_TEST(test_looking_at_a_group_that_is_due_does_not_cost_it_its_place, 50)
{
    struct note busy = { .busy = 30 };
    weir_time other = 0;
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 1, .stall_after_ms = 1000), 1);
    submit_notes(&band, 0, 5);
    sleep_until(12);
    CHECK(weir_submit_key(NULL, band.ex, "busy", keep, &busy, NULL) == 0);
    sleep_until(25);
    CHECK(weir_submit_key(NULL, band.ex, "other", say_when, &other, NULL) == 0);
    sleep_until(26);
    CHECK_EQ(stats_of(band.ex, "g").started, 2);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    CHECK_EQ(band.note[2].began, at(42));
    CHECK_EQ(other, at(42));
    end(&band);
}

SIM_TEST(test_a_body_is_listed_while_it_runs, 50)
{
    struct band band;
    weir_task_info **info;
    size_t count;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4), 1);
    band.note[5].ms = band.note[8].busy = STEP / 2;
    submit_notes(&band, 0, 12);
    for (int i = 0; i < 12; i++) {
        sleep_until(i * STEP + 1);
        CHECK(weir_executor_tasks(&info, &count, band.ex,
                                  &(weir_tasks_query){ .size = sizeof(weir_tasks_query),
                                                       .states = WEIR_TASK_RUNNING }) == 0);
        CHECK_EQ(count, i == 5 || i == 8);
        if (count)
            CHECK_EQ(info[0]->since, at(i * STEP));
        free(info);
    }
    end(&band);
}

/* ---- changes ---------------------------------------------------------------------------------------- */

SIM_TEST(test_a_pause_a_cool_down_and_another_pace_hold_at_once, 100)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 1), 1);
    submit_notes(&band, 0, TASKS);
    sleep_until(55);
    weir_group_pause(band.group);
    sleep_until(103);
    weir_group_resume(band.group);
    sleep_until(130);
    CHECK(weir_group_cool_down(band.group, at(200)) == 0);
    sleep_until(245);
    CHECK(weir_group_pace(band.group, 1, 1 * MS, 1) == 0);
    sleep_until(255);
    CHECK(weir_group_pace(band.group, 0, 0, 0) == 0);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    check_steps(&band, 0, 6, 0);     /* until 50 */
    check_steps(&band, 6, 9, 103);   /* until 123 */
    check_steps(&band, 9, 14, 200);  /* until 240 */
    for (int i = 14; i < TASKS; i++) /* half an interval was spent: it is half of the new one */
        CHECK(band.note[i].began > at(245) && band.note[i].began <= at(255));
    end(&band);
}

SIM_TEST(test_more_tasks_come_while_the_last_ones_start, 100)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4), 1);
    submit_notes(&band, 0, 4);
    for (int i = 4; i < TASKS; i++) {
        sleep_until((i - 3) * STEP);
        submit_notes(&band, i, i + 1);
    }
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    check_steps(&band, 0, TASKS, 0);
    end(&band);
}

SIM_TEST(test_an_urgent_task_and_one_with_a_handle_take_their_place, 100)
{
    struct band band;
    weir_task *last, *urgent;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4), 1);
    submit_notes(&band, 0, 10);
    last = submit(band.ex, "g", NULL);
    sleep_until(45);
    urgent = submit_with(band.ex, "g", NULL, WEIR_TASK(.priority = WEIR_URGENT));
    check_done_at(urgent, 50, 50);
    check_done_at(last, 110, 110);
    check_steps(&band, 0, 5, 0);
    check_steps(&band, 5, 10, 60);
    end(&band);
}

/* Its time has come, but the worker is busy: it waits for that, and another task joins it. */
SIM_TEST(test_a_task_that_goes_before_others_keeps_no_group_from_its_time, 50)
{
    struct band band;
    struct note other = { .band = &band, .busy = 10 };
    weir_task *low;

    band_init(&band, WEIR_POLICY(.workers = 1, .group_limit = 4, .stall_after_ms = 1000), 1);
    submit_notes(&band, 0, 3);
    CHECK(weir_submit(&low, band.group, play, &band.note[4], WEIR_TASK(.priority = WEIR_LOW)) == 0);
    sleep_until(5);
    CHECK(weir_submit_key(NULL, band.ex, "other", keep, &other, NULL) == 0);
    sleep_until(12);
    submit_notes(&band, 3, 4);
    check_done(low);
    CHECK_EQ(band.note[0].began, at(0));
    check_steps(&band, 1, 5, 15);
    end(&band);
}

SIM_TEST(test_an_evicted_group_starts_no_more, 100)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4, .keep_totals = true), 1);
    band.note[4].ms = 50;
    submit_notes(&band, 0, 20);
    sleep_until(45);
    CHECK(weir_group_evict(band.ex, "g", 0) == 0);
    CHECK(weir_executor_drain(band.ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(90));
    CHECK_EQ(band.began, 5);
    CHECK_EQ(stats_all(band.ex).rejected, 15);
    end(&band);
}

SIM_TEST(test_an_executor_that_is_freed_waits_for_the_body_alone, 50)
{
    struct band band;

    band_init(&band, WEIR_POLICY(.workers = 2, .group_limit = 4), 1);
    band.note[4].busy = 50;
    submit_notes(&band, 0, 20);
    sleep_until(45);
    weir_executor_free(band.ex);
    CHECK_EQ(weir_now(), at(90));
    CHECK_EQ(band.began, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_starts_at_its_time),
        cmocka_unit_test(test_a_burst_comes_first_and_is_earned_again),
        cmocka_unit_test(test_a_busy_worker_makes_one_late_and_all_after_it),
        cmocka_unit_test(test_many_groups_keep_their_own_times),
        cmocka_unit_test(test_bodies_that_last_overlap_as_far_as_the_limit_allows),
        cmocka_unit_test(test_a_body_that_keeps_its_worker_keeps_no_other_from_its_time),
        cmocka_unit_test(test_bodies_may_fail_pend_or_ask_which_task_they_are),
        cmocka_unit_test(test_figures_are_those_of_the_moment),
        cmocka_unit_test(test_looking_at_a_group_that_is_due_does_not_cost_it_its_place),
        cmocka_unit_test(test_a_body_is_listed_while_it_runs),
        cmocka_unit_test(test_a_pause_a_cool_down_and_another_pace_hold_at_once),
        cmocka_unit_test(test_more_tasks_come_while_the_last_ones_start),
        cmocka_unit_test(test_an_urgent_task_and_one_with_a_handle_take_their_place),
        cmocka_unit_test(test_a_task_that_goes_before_others_keeps_no_group_from_its_time),
        cmocka_unit_test(test_an_evicted_group_starts_no_more),
        cmocka_unit_test(test_an_executor_that_is_freed_waits_for_the_body_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
