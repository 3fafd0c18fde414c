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

static int64_t count_in(__int128 from, __int128 to) /* [from, to) */
{
    int64_t sum = 0;

    for (int i = 0; i < went_count; i++)
        sum += went[i].at >= from && went[i].at < to ? went[i].n : 0;
    return sum;
}

/* Settings, and the moment before which the clock cannot fall any more: where the latest window that was used begins, or
 * the latest moment that still counts. */
struct rule {
    weir_guard_mode mode;
    int64_t limit, d;
    weir_time floor;
};

static weir_time counts_at(const struct rule *r, weir_time now)
{
    return now > r->floor ? now : r->floor;
}

static bool allowed(const struct rule *r, weir_time when, int64_t n)
{
    __int128 now = r->mode == WEIR_EXACT ? when : counts_at(r, when), d = r->d;
    __int128 begin = now - now % d, left;

    if (r->mode == WEIR_EXACT)
        return count_in(now - d + 1, (__int128)INT64_MAX + 1) + n <= r->limit;
    if (r->mode == WEIR_FIXED)
        return count_in(begin, begin + d) + n <= r->limit;
    /* limit >= floor(cur + n + last (1 - e / d))  <=>  (limit + 1 - cur - n) d > last (d - e) */
    left = r->limit + 1 - count_in(begin, begin + d) - n;
    return left > 0 && left * d > (__int128)count_in(begin - d, begin) * (d - (now - begin));
}

/* Time goes on: a little, by windows, by years; it stands still; and it runs back. */
static weir_time pass(weir_time now, int64_t d)
{
    if (chance(85))
        return now + between(0, d / 4 + 1);
    if (chance(80))
        return now + between(0, d < INT64_MAX / 64 ? 3 * d : d / 64);
    if (chance(40))
        return now + (between(0, INT64_MAX / 64) >> between(0, 40));
    return chance(50) ? now : between(now / 2, now);
}

static void life(weir_guard_mode mode)
{
    struct rule r = { mode,
                      chance(80) || mode == WEIR_EXACT ? between(1, 8) : between(1, 2147483647),
                      chance(90) ? between(1, 60) : between(1, INT64_MAX) >> between(0, 40), 0 };
    weir_time now = between(0, 1000);
    struct wr_frequency *f = make(mode, r.limit, r.d, now);

    r.floor = mode == WEIR_EXACT ? 0 : now - now % r.d;
    went_count = 0;
    for (int i = 0; i < 40; i++) {
        int64_t n = chance(80) && r.limit <= 8 ? 1 : between(1, r.limit);
        weir_time when;

        now = pass(now, r.d);
        if (now < 0 || now > INT64_MAX / 2)
            break;
        if (went_count &&
            chance(10)) { /* a call that was not made after all: one that still counts */
            int k = (int)between(0, went_count - 1);
            wr_frequency_give(f, now, went[k].n, went[k].at);
            went[k] = went[--went_count];
            if (mode != WEIR_EXACT)
                r.floor = counts_at(&r, now) / r.d * r.d;
            continue;
        }
        when = wr_frequency_when(f, now, n);
        MUST_BE(when <= now, allowed(&r, now, n));
        if (when > now) { /* the very first moment at which it is allowed */
            MUST(!allowed(&r, when - 1, n));
            MUST(when == INT64_MAX || allowed(&r, when, n));
            continue;
        }
        wr_frequency_take(f, now, n);
        if (mode == WEIR_EXACT) { /* in order, as long as something counts */
            r.floor = 0;
            for (int k = went_count - 1; k >= 0; k--)
                if ((__int128)went[k].at + r.d <= now) /* forgotten, also if the clock runs back */
                    went[k] = went[--went_count];
                else if (went[k].at > r.floor)
                    r.floor = went[k].at;
        } else {
            r.floor = counts_at(&r, now) / r.d * r.d;
        }
        went[went_count].at = counts_at(&r, now);
        went[went_count++].n = n;
        MUST(mode != WEIR_EXACT || count_in((__int128)now - r.d + 1, (__int128)now + 1) <= r.limit);
    }
    MUST(wr_frequency_available(f, now) == 0 || allowed(&r, now, 1));
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

static void test_fixed_windows_admit_the_calls_the_rule_admits(void **state)
{
    (void)state;
    live(life_fixed);
}

static void test_weighted_windows_admit_the_calls_the_rule_admits(void **state)
{
    (void)state;
    live(life_weighted);
}

static void test_exact_windows_admit_the_calls_the_rule_admits(void **state)
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
        cmocka_unit_test(test_fixed_windows_admit_the_calls_the_rule_admits),
        cmocka_unit_test(test_weighted_windows_admit_the_calls_the_rule_admits),
        cmocka_unit_test(test_exact_windows_admit_the_calls_the_rule_admits),
        cmocka_unit_test(test_a_clock_that_runs_back_admits_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
