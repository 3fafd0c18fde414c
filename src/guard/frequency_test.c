/* Frequency arithmetic: worked numbers, and random arrivals against counting by hand.
 * SPDX-License-Identifier: MIT */
#include "guard/frequency.h"
#include "support/luck.h"

#include <string.h>

static struct wr_frequency *make(weir_guard_mode mode, int64_t limit, int64_t period, weir_time now)
{
    struct wr_frequency *f = calloc(1, wr_frequency_size(mode, limit));

    wr_frequency_init(f, mode, limit, period, now);
    return f;
}

static bool enter(struct wr_frequency *f, weir_time now, int64_t n)
{
    if (wr_frequency_when(f, now, n) > now)
        return false;
    wr_frequency_take(f, now, n);
    return true;
}

static void test_the_worked_example_of_two_windows(void **state)
{
    struct wr_frequency *f = make(WEIR_WEIGHTED, 10, 1000, 0);

    (void)state;
    for (int i = 0; i < 8; i++)
        assert_true(enter(f, i, 1));
    for (int i = 0; i < 4; i++)
        assert_true(enter(f, 1250, 1)); /* 6 carried */
    assert_false(enter(f, 1250, 1));
    for (int i = 0; i < 6; i++)
        assert_true(enter(f, 1900, 1)); /* 0.8 carried */
    assert_false(enter(f, 1900, 1));
    free(f);
}

static void test_refused_calls_do_not_count(void **state)
{
    static const weir_guard_mode modes[] = { WEIR_FIXED, WEIR_WEIGHTED, WEIR_EXACT };

    (void)state;
    for (int m = 0; m < 3; m++) {
        struct wr_frequency *f = make(modes[m], 2, 100, 0);
        assert_true(enter(f, 0, 1));
        assert_true(enter(f, 0, 1));
        for (int i = 0; i < 50; i++)
            assert_false(enter(f, 50, 1));
        assert_true(enter(f, 200, 2));
        free(f);
    }
}

/* ---- against a list of all that was admitted --------------------------------------------------------- */

enum { MOST = 400 };

static struct {
    weir_time at;
    int64_t n;
} went[MOST];
static int went_count;

static int64_t count_in(weir_time from, weir_time to) /* [from, to) */
{
    int64_t sum = 0;

    for (int i = 0; i < went_count; i++)
        sum += went[i].at >= from && went[i].at < to ? went[i].n : 0;
    return sum;
}

static bool allowed(weir_guard_mode mode, int64_t limit, int64_t d, weir_time now, int64_t n)
{
    weir_time begin = now - now % d;
    __int128 left;

    if (mode == WEIR_EXACT)
        return count_in(now - d + 1, now + 1) + n <= limit;
    if (mode == WEIR_FIXED)
        return count_in(begin, begin + d) + n <= limit;
    /* limit >= floor(cur + n + last (1 - e / d))  <=>  (limit + 1 - cur - n) d > last (d - e) */
    left = limit + 1 - count_in(begin, begin + d) - n;
    return left > 0 && left * d > (__int128)count_in(begin - d, begin) * (d - (now - begin));
}

static void life(weir_guard_mode mode)
{
    int64_t limit = between(1, 8), d = chance(90) ? between(1, 60) : between(1, INT64_MAX / 64);
    weir_time now = between(0, 1000);
    struct wr_frequency *f = make(mode, limit, d, now);

    went_count = 0;
    for (int i = 0; i < 40; i++) {
        int64_t n = chance(80) ? 1 : between(1, limit);
        weir_time when;

        now += chance(85) ? between(0, d / 4 + 1) : chance(80) ? between(0, 3 * d) : 0;
        if (went_count &&
            chance(10)) { /* a call that was not made after all: one that still counts */
            int k = (int)between(0, went_count - 1);
            wr_frequency_give(f, now, went[k].n, went[k].at);
            went[k] = went[--went_count];
            continue;
        }
        when = wr_frequency_when(f, now, n);
        MUST_BE(when <= now, allowed(mode, limit, d, now, n));
        if (when > now) { /* the very first moment at which it is allowed */
            MUST(!allowed(mode, limit, d, when - 1, n));
            MUST(allowed(mode, limit, d, when, n));
            continue;
        }
        wr_frequency_take(f, now, n);
        went[went_count].at = now;
        went[went_count++].n = n;
        MUST(mode != WEIR_EXACT || count_in(now - d + 1, now + 1) <= limit);
    }
    MUST(wr_frequency_available(f, now) == 0 || allowed(mode, limit, d, now, 1));
    free(f);
}

static void life_fixed(void)
{
    life(WEIR_FIXED);
}

static void life_weighted(void)
{
    life(WEIR_WEIGHTED);
}

static void life_exact(void)
{
    life(WEIR_EXACT);
}

static void test_fixed_windows_admit_what_the_rule_admits(void **state)
{
    (void)state;
    live(life_fixed);
}

static void test_weighted_windows_admit_what_the_rule_admits(void **state)
{
    (void)state;
    live(life_weighted);
}

static void test_exact_windows_admit_what_the_rule_admits(void **state)
{
    (void)state;
    live(life_exact);
}

/* The clock runs back: no mode admits more than the limit because of that. */
static void life_back(void)
{
    weir_guard_mode mode = (weir_guard_mode)between(WEIR_WEIGHTED, WEIR_EXACT);
    struct wr_frequency *f = make(mode, 3, 100, 1000);
    weir_time now = 1000;
    int64_t taken = 0;

    for (int i = 0; i < 40; i++) {
        now = between(1000, 1099);
        taken += enter(f, now, 1);
    }
    MUST(taken <= 3);
    free(f);
}

static void test_a_clock_that_runs_back_admits_no_more(void **state)
{
    (void)state;
    live(life_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_worked_example_of_two_windows),
        cmocka_unit_test(test_refused_calls_do_not_count),
        cmocka_unit_test(test_fixed_windows_admit_what_the_rule_admits),
        cmocka_unit_test(test_weighted_windows_admit_what_the_rule_admits),
        cmocka_unit_test(test_exact_windows_admit_what_the_rule_admits),
        cmocka_unit_test(test_a_clock_that_runs_back_admits_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
