/* Rate arithmetic: the worked numbers, and random arrivals against exact references.
 * SPDX-License-Identifier: MIT */
#include "guard/rate.h"
#include "support/luck.h"

#include <string.h>

static int64_t take(struct wr_rate *rate, weir_time now, int64_t n, int64_t patience)
{
    struct wr_reserved r;

    return wr_rate_take(rate, now, n, patience, &r) ? r.wait : -1;
}

static void test_the_worked_example_of_two_per_hundred(void **state)
{
    static const int64_t waits[] = { 0, 0, 100, 100, 200, 200, -1 };
    static const int64_t left[] = { 1, 0, -1, -2, -3, -4, -4 };
    struct wr_rate rate;

    (void)state;
    wr_rate_init(&rate, 2, 100, 1, false, 5000);
    assert_int_equal(wr_rate_available(&rate, 5000), 2);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(take(&rate, 5000, 1, 250), waits[i]);
        assert_int_equal(wr_rate_available(&rate, 5000), left[i]);
    }
    assert_int_equal(wr_rate_available(&rate, 5130), -2);
    assert_int_equal(take(&rate, 5130, 1, 250), 170);
    assert_int_equal(wr_rate_available(&rate, 5130), -3);
    assert_int_equal(take(&rate, 5130, 1, 250), 170);
    assert_int_equal(wr_rate_available(&rate, 5130), -4);
}

static void test_the_worked_example_of_three_per_ten_ms(void **state)
{
    const int64_t P = 10000000;
    const int64_t waits[] = { 0, 0, 0, P - 4, P - 5, P - 6, -1, -1, -1 };
    struct wr_rate rate;

    (void)state;
    wr_rate_init(&rate, 3, P, 1, false, 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(take(&rate, P + 1 + i, 1, 12000000), waits[i]);
}

static void test_three_permits_of_one_per_cycle_take_two_more_cycles(void **state)
{
    struct wr_rate rate;

    (void)state;
    wr_rate_init(&rate, 1, 250, 1, false, 0);
    assert_int_equal(take(&rate, 250, 3, 5 * 250), 500);
    assert_int_equal(wr_rate_available(&rate, 250), -2);
}

static void test_drain_keeps_debts_and_takes_permits_of_idle_cycles(void **state)
{
    struct wr_rate rate;

    (void)state;
    wr_rate_init(&rate, 2, 100, 1, false, 0);
    for (int i = 0; i < 5; i++)
        take(&rate, 0, 1, 1000);
    assert_int_equal(wr_rate_drain(&rate, 0), 0);
    assert_int_equal(wr_rate_available(&rate, 0), -3);
    wr_rate_init(&rate, 10, 100, 1, false, 0);
    take(&rate, 0, 8, 0);
    assert_int_equal(wr_rate_drain(&rate, 100), 10);
    assert_int_equal(wr_rate_available(&rate, 100), 0);
    assert_int_equal(wr_rate_drain(&rate, 100), 0);
}

static void test_a_changed_limit_keeps_the_debt(void **state)
{
    struct wr_rate rate;

    (void)state;
    wr_rate_init(&rate, 1, 100, 1, false, 0);
    take(&rate, 0, 1, 0);
    take(&rate, 0, 1, 100);
    wr_rate_change(&rate, 0, 2, 100, 1);
    assert_int_equal(wr_rate_available(&rate, 0), -1);
    assert_int_equal(wr_rate_wait(&rate, 0, 1), 100);
    assert_int_equal(wr_rate_available(&rate, 100), 1);
}

static void test_a_reservation_that_is_given_back_goes_to_the_next(void **state)
{
    struct wr_reserved a, b, c;
    struct wr_rate rate;

    (void)state;
    wr_rate_init(&rate, 1, 100, 1, false, 0);
    take(&rate, 0, 1, 0);
    assert_true(wr_rate_take(&rate, 0, 1, 1000, &a));
    assert_true(wr_rate_take(&rate, 0, 1, 1000, &b));
    assert_int_equal(b.wait, 200);
    wr_rate_give(&rate, 10, 1, &a);
    assert_int_equal(wr_rate_available(&rate, 10), -1);
    assert_true(wr_rate_take(&rate, 10, 1, 1000, &c));
    assert_int_equal(c.wait, 90); /* a's cycle, not b's */
    wr_rate_give(&rate, 10, 1, &c);
    wr_rate_give(&rate, 10, 1, &b);
    assert_int_equal(wr_rate_available(&rate, 10), 0);
}

/* ---- single calls, some given back: first free place of the first cycle that has one ---------------- */

enum { CYCLES = 4000, OUT = 64 };

static void life_of_single_calls(void)
{
    static uint8_t used[CYCLES];
    struct {
        struct wr_reserved r;
        int cycle;
    } out[OUT];
    int64_t L = between(1, 4), P = between(1, 50), patience = between(0, 5 * P);
    int outs = 0, holes = 0;
    struct wr_rate rate;
    weir_time start = between(0, 1000), now = start, seen = start;

    memset(used, 0, sizeof(used));
    wr_rate_init(&rate, L, P, 1, false, start);
    for (int i = 0; i < 40; i++) {
        int64_t c, j, wait;
        struct wr_reserved r;
        bool went;

        now += chance(20) ? between(0, 3 * P) : between(0, 2);
        if (chance(3) && now > start)
            now = between(start, now); /* the clock runs back; what was, stays */
        seen = now > seen ? now : seen;
        c = (seen - start) / P;
        if (outs && chance(15) && holes < WR_HOLES_MAX) {
            int k = (int)between(0, outs - 1);
            if (out[k].cycle >= c)
                used[out[k].cycle]--, holes++;
            wr_rate_give(&rate, now, 1, &out[k].r);
            out[k] = out[--outs];
            continue;
        }
        for (j = c; used[j] == L; j++)
            ;
        wait = j == c ? 0 : (j * P + start) - (now > c * P + start ? now : c * P + start);
        MUST_BE(wr_rate_wait(&rate, now, 1), wait);
        went = wr_rate_take(&rate, now, 1, patience, &r);
        MUST_BE(went, wait <= patience);
        MUST_BE(r.wait, wait);
        if (went) {
            used[j]++;
            MUST(used[j] <= L);
            if (outs < OUT)
                out[outs].r = r, out[outs++].cycle = (int)j;
        }
    }
}

static void test_single_calls_get_the_first_free_place(void **state)
{
    (void)state;
    live(life_of_single_calls);
}

/* ---- n permits, any size of setting: the five steps of the catalogue in 128 bits -------------------- */

static int64_t huge(int64_t usual)
{
    return chance(80) ? between(1, usual) : between(1, INT64_MAX - 1) >> between(0, 62);
}

static void life_of_many_permits(void)
{
    int64_t L = huge(5) % 2147483647 + 1, P = huge(40) | 1;
    __int128 cycle = 0, available = L, t;
    struct wr_rate rate;
    weir_time start = between(0, INT64_MAX / 4), now = start;

    wr_rate_init(&rate, L, P, 1, false, start);
    for (int i = 0; i < 30; i++) {
        int64_t n = chance(70) ? between(1, 6) : huge(2000000000) % 2147483647 + 1;
        int64_t patience = chance(70) ? between(0, 300) : huge(100000);
        __int128 c, wait;
        bool went;

        now += chance(90) ? between(0, 100) : huge(1000000) / 8;
        if (now < 0)
            return; /* the end of time */
        t = now - start;
        c = t / P;
        if (chance(5)) {
            __int128 a = available + (c - cycle) * L > L ? L : available + (c - cycle) * L;
            MUST_BE(wr_rate_drain(&rate, now), a > 0 ? (int64_t)a : 0);
            cycle = c;
            available = a > 0 ? 0 : a;
        }
        available = available + (c - cycle) * L > L ? L : available + (c - cycle) * L;
        cycle = c;
        wait = available >= n ? 0
                              : ((c + 1) * P - t) + (__int128)P * ((n - available + L - 1) / L - 1);
        if (available < INT64_MIN / 4)
            return; /* debts beyond what can be told apart */
        went = take(&rate, now, n, patience) >= 0;
        if (wait < INT64_MAX / 2)
            MUST_BE(went, wait <= patience);
        else if (patience < INT64_MAX / 2)
            MUST(!went);
        else
            return; /* both beyond what can be told apart */
        if (went)
            available -= n;
        MUST_BE(wr_rate_available(&rate, now), (int64_t)available);
    }
}

static void test_many_permits_follow_the_five_steps(void **state)
{
    (void)state;
    live(life_of_many_permits);
}

/* ---- smooth: a bucket that leaks `limit` per period, in whole numbers ------------------------------- */

static void life_of_smooth(void)
{
    int64_t L = huge(20) % 2147483647 + 1, P = huge(1000), B = between(1, 6), went_at[40];
    __int128 level = 0; /* calls x P, at the moment of the latest call that went */
    struct wr_rate rate;
    weir_time now = between(0, INT64_MAX / 4), latest = 0;
    bool jumps = chance(20);
    int went = 0;

    if ((__int128)(B + 1) * P / L > INT64_MAX / 4)
        return; /* refused when the guard is made */
    wr_rate_init(&rate, L, P, B, true, now);
    for (int i = 0; i < 40; i++) {
        int64_t n = chance(80) ? 1 : between(1, B);
        __int128 left, over;

        if (now > INT64_MAX / 4)
            return;
        now += chance(80) ? between(0, P / L + 2) : huge(100000) / 8;
        if (jumps && chance(10)) /* the clock runs back: it only takes longer */
            now -= between(0, now < 100000 ? now : 100000);
        if (now < 0 || now > INT64_MAX / 2)
            return;
        left = level - (__int128)(now - latest) * L;
        left = left < 0 ? 0 : left;
        over = left + (__int128)n * P - (__int128)B * P;
        MUST_BE(wr_rate_wait(&rate, now, n), over <= 0 ? 0 : (int64_t)((over + L - 1) / L));
        MUST_BE(take(&rate, now, n, 0) >= 0, over <= 0);
        if (over > 0)
            continue;
        level = left + (__int128)n * P;
        latest = now;
        for (int64_t k = 0; k < n && went < 40; k++)
            went_at[went++] = now;
    }
    /* Never more than L + burst in any stretch of one period. */
    for (int from = 0, to = 0; from < went && !jumps; from++) {
        while (to < went && went_at[to] - went_at[from] < P)
            to++;
        MUST(to - from <= L + B);
    }
}

static void test_smooth_calls_follow_a_leaking_bucket(void **state)
{
    (void)state;
    live(life_of_smooth);
}

/* A change never brings back what was spent: right after it, no more fit than were left before. */
static void life_of_changes(void)
{
    bool smooth = chance(50);
    struct wr_rate rate;
    weir_time now = between(0, 1000000);

    wr_rate_init(&rate, between(1, 10), between(1, 100), between(1, 10), smooth, now);
    for (int i = 0; i < 20; i++) {
        int64_t left;
        now += between(0, 30);
        take(&rate, now, 1, chance(30) ? 50 : 0);
        left = wr_rate_available(&rate, now);
        if (!chance(30) || wr_rate_is_whole(&rate, now))
            continue;
        wr_rate_change(&rate, now, between(1, 10), between(1, 100), between(1, 10));
        MUST(wr_rate_available(&rate, now) <= left);
    }
}

static void test_a_change_never_refills(void **state)
{
    (void)state;
    live(life_of_changes);
}

static void test_idle_years_bring_one_cycle_not_more(void **state)
{
    struct wr_rate rate;
    const int64_t year = INT64_C(31536000000000000);

    (void)state;
    wr_rate_init(&rate, 2147483647, 1, 1, false, 1);
    assert_int_equal(take(&rate, 1, 2147483647, 0), 0);
    assert_int_equal(wr_rate_available(&rate, 100 * year), 2147483647);
    assert_int_equal(take(&rate, 100 * year, 2147483647, 0), 0);
    assert_int_equal(take(&rate, 100 * year, 1, 0), -1);
    wr_rate_init(&rate, 3, 3 * year, 1, true, 1);
    assert_int_equal(take(&rate, 1, 1, 0), 0);
    assert_int_equal(wr_rate_wait(&rate, 1, 1), year);
    assert_int_equal(take(&rate, 1 + year, 1, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_worked_example_of_two_per_hundred),
        cmocka_unit_test(test_the_worked_example_of_three_per_ten_ms),
        cmocka_unit_test(test_three_permits_of_one_per_cycle_take_two_more_cycles),
        cmocka_unit_test(test_drain_keeps_debts_and_takes_permits_of_idle_cycles),
        cmocka_unit_test(test_a_changed_limit_keeps_the_debt),
        cmocka_unit_test(test_a_reservation_that_is_given_back_goes_to_the_next),
        cmocka_unit_test(test_single_calls_get_the_first_free_place),
        cmocka_unit_test(test_many_permits_follow_the_five_steps),
        cmocka_unit_test(test_smooth_calls_follow_a_leaking_bucket),
        cmocka_unit_test(test_a_change_never_refills),
        cmocka_unit_test(test_idle_years_bring_one_cycle_not_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
