/* Forecasts, with exact times.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/forecast.h"

#include "support/check.h"

#include <stdlib.h>

#define S  INT64_C(1000000000)
#define MS INT64_C(1000000)

/* ---- rates ---------------------------------------------------------------------------------------- */

static void assert_rate(double rate, double expected)
{
    if (rate < expected * 0.999 || rate > expected * 1.001 + 1e-9)
        fail_msg("%g per second, not %g", rate, expected);
}

static void test_the_first_reading_is_taken_as_it_is(void)
{
    struct pace pace = { 0 };

    assert_rate(pace_get(&pace), 0);
    assert_rate(pace_read(&pace, 5, 50 * MS), 100); /* 5 in 50 ms */
}

static void test_a_steady_rate_is_told_from_the_beginning(void)
{
    struct pace pace = { 0 };

    for (uint64_t i = 1; i <= 200; i++)
        assert_rate(pace_read(&pace, 4 * i, 100 * MS), 40);
}

static void test_a_rate_fades_to_half_in_three_seconds(void)
{
    struct pace pace = { 0 };

    for (uint64_t i = 1; i <= 1000; i++)
        pace_read(&pace, 10 * i, 1 * S);
    assert_rate(pace_get(&pace), 10);
    assert_rate(pace_read(&pace, 10000, 3 * S), 5); /* nothing more ends */
}

static void test_two_readings_at_once_are_one(void)
{
    struct pace pace = { 0 };

    pace_read(&pace, 10, 1 * S);
    assert_rate(pace_read(&pace, 12, 0), 10); /* counted by the next one */
    assert_rate(pace_read(&pace, 20, 1 * S), 10);
}

/* ---- the rest by the rate ------------------------------------------------------------------------- */

static void test_the_rest_takes_as_long_as_the_work_before_it(void)
{
    assert_int_equal(forecast_by_rate(40, 0, 40, 10 * S), 10 * S);
    assert_int_equal(forecast_by_rate(4, 0, 40, 10 * S), 1 * S);
    assert_int_equal(forecast_by_rate(0, 0, 40, 10 * S), 0);
}

static void test_the_rest_is_not_known_before_one_has_ended(void)
{
    assert_int_equal(forecast_by_rate(4, 0, 0, 10 * S), -1);
}

/* Four at a time, ten seconds each: at 19 s one more second is left, though 4 of 8 have ended. */
static void test_running_tasks_count_as_far_as_they_have_come(void)
{
    struct work w = {
        .left = 4, .running = 4, .running_ns = 36 * S, .ended = 4, .busy_ns = 40 * S
    };
    double parts = forecast_parts(&w);

    assert_true(parts > 3.5999 && parts < 3.6001);
    assert_in_range(forecast_by_rate(4, parts, 4, 19 * S), S - 10, S + 10);
    w.running_ns = 100 * S; /* they are late */
    assert_int_equal(forecast_by_rate(4, forecast_parts(&w), 4, 40 * S), 0);
}

static void test_nothing_is_known_of_running_tasks_before_one_has_ended(void)
{
    assert_true(forecast_parts(&(struct work){ .running = 4, .running_ns = 9 * S }) == 0);
}

/* ---- the rest of a group -------------------------------------------------------------------------- */

static void test_a_group_is_no_faster_than_its_limit(void)
{
    struct work g = { .left = 30, .ended = 10, .busy_ns = 20 * S, .limit = 2 };

    assert_int_equal(forecast_at_least(&g), 30 * S); /* 2 s each, two at a time */
    g.running = 2;
    g.running_ns = 3 * S;
    assert_int_equal(forecast_at_least(&g), 28500 * MS);
    g.running_ns = 100 * S; /* longer than usual: they may end any moment */
    assert_int_equal(forecast_at_least(&g), 28 * S);
}

static void test_a_group_is_no_faster_than_its_pace(void)
{
    struct work g = { .left = 10, .running = 1, .per_start_ns = 500 * MS };

    assert_int_equal(forecast_at_least(&g), 4500 * MS);
    g.limit = 1;
    g.ended = 1;
    g.busy_ns = 1 * S;
    assert_int_equal(forecast_at_least(&g), 10 * S); /* here the limit is what binds */
}

static void test_a_group_without_limits_says_nothing(void)
{
    assert_int_equal(forecast_at_least(&(struct work){ .left = 10, .ended = 1, .busy_ns = 1 * S }),
                     0);
    assert_int_equal(forecast_at_least(&(struct work){ .left = 10, .limit = 1 }), 0);
}

static void test_people_read_whole_seconds(void)
{
    assert_int_equal(forecast_seconds(0), 1 * S);
    assert_int_equal(forecast_seconds(999 * MS), 1 * S);
    assert_int_equal(forecast_seconds(61 * S + 1), 62 * S);
}

/* ---- whole runs ----------------------------------------------------------------------------------- */

enum { GROUPS_MAX = 300 };

/* A run in virtual time: groups take turns, each command takes a second. */
struct run {
    int groups, jobs, limit;
    int left[GROUPS_MAX]; /* to start */
    int ended[GROUPS_MAX], next;
};

static bool is_over(const struct run *run)
{
    for (int i = 0; i < run->groups; i++)
        if (run->left[i])
            return false;
    return true;
}

/* One second: as many start as may, in turns, and end. */
static void one_second(struct run *run)
{
    int started[GROUPS_MAX] = { 0 }, jobs = run->jobs, idle = 0;

    for (; jobs > 0 && idle < run->groups; run->next = (run->next + 1) % run->groups) {
        int g = run->next;
        if (!run->left[g] || started[g] == run->limit) {
            idle++;
            continue;
        }
        idle = 0;
        started[g]++;
        run->left[g]--;
        run->ended[g]++;
        jobs--;
    }
}

static int64_t forecast(const struct run *run, weir_time now)
{
    int64_t eta, least = 0;
    uint64_t left = 0, ended = 0;

    for (int i = 0; i < run->groups; i++) {
        struct work work = { .left = (uint64_t)run->left[i],
                             .ended = (uint64_t)run->ended[i],
                             .busy_ns = run->ended[i] * S,
                             .limit = run->limit };
        int64_t at_least = forecast_at_least(&work);
        least = at_least > least ? at_least : least;
        left += work.left;
        ended += work.ended;
    }
    eta = forecast_by_rate(left, 0, ended, now);
    return eta > least ? eta : least;
}

/* How far forecasts were off at their worst, in per cent of what was left; asked from a tenth of the run on. */
static int worst_forecast(struct run run)
{
    struct run whole = run;
    int total = 0, worst = 0;

    for (; !is_over(&whole); total++)
        one_second(&whole);
    for (int t = 1; t < total; t++) {
        int64_t rest = (total - t) * S, off;
        one_second(&run);
        if (t < total / 10)
            continue;
        off = llabs(forecast(&run, t * S) - rest) * 100 / rest;
        worst = (int)off > worst ? (int)off : worst;
    }
    return worst;
}

static void test_many_equal_groups_are_foretold(void)
{
    struct run run = { .groups = 300, .jobs = 4, .limit = 2 };

    for (int i = 0; i < run.groups; i++)
        run.left[i] = 10;
    assert_int_equal(worst_forecast(run), 0);
}

static void test_groups_of_different_sizes_are_foretold(void)
{
    struct run run = { .groups = 10, .jobs = 100, .limit = 1 };

    for (int i = 0; i < run.groups; i++)
        run.left[i] = i < 5 ? 10 : 20;
    assert_int_equal(worst_forecast(run), 0);
}

/* Off by a third at most: shortly before the small ones end, their rest and that of the large one do not add up. */
static void test_one_large_group_among_many_is_foretold(void)
{
    struct run run = { .groups = 300, .jobs = 4, .limit = 2 };

    for (int i = 0; i < run.groups; i++)
        run.left[i] = i == 7 ? 100 : 10;
    assert_in_range(worst_forecast(run), 0, 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_reading_is_taken_as_it_is),
        TEST(test_a_steady_rate_is_told_from_the_beginning),
        TEST(test_a_rate_fades_to_half_in_three_seconds),
        TEST(test_two_readings_at_once_are_one),
        TEST(test_the_rest_takes_as_long_as_the_work_before_it),
        TEST(test_the_rest_is_not_known_before_one_has_ended),
        TEST(test_running_tasks_count_as_far_as_they_have_come),
        TEST(test_nothing_is_known_of_running_tasks_before_one_has_ended),
        TEST(test_a_group_is_no_faster_than_its_limit),
        TEST(test_a_group_is_no_faster_than_its_pace),
        TEST(test_a_group_without_limits_says_nothing),
        TEST(test_people_read_whole_seconds),
        TEST(test_many_equal_groups_are_foretold),
        TEST(test_groups_of_different_sizes_are_foretold),
        TEST(test_one_large_group_among_many_is_foretold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
