/* Circuit breaker: SEMANTICS 6.10 (K-) and 6.7.
 * SPDX-License-Identifier: MIT */
#include "support/guard_support.h"

#define S (1000 * MS)

static int permitted(weir_guard *g)
{
    return call_once(g, 0);
}

static void pass(int64_t ms)
{
    CHECK(weir_sleep(weir_now() + ms * MS) == 0);
}

static void set(weir_guard *g, weir_breaker_state to)
{
    CHECK_EQ(weir_guard_set_state(g, to, 0, (weir_breaker_state)0, NULL), 0);
}

#define CHECK_STATE(g, wanted)   CHECK_EQ(figures(g).state, wanted)
#define CHECK_FAILED(g, percent) CHECK(figures(g).failure_percent == (percent))
#define CHECK_WINDOW(g, stored_, bad_)            \
    do {                                          \
        CHECK_EQ(figures(g).stored, stored_);     \
        CHECK_EQ(figures(g).stored_failed, bad_); \
    } while (0)

/* */
GUARD_TEST(test_alternate_failures_open_it_and_half_open_decides)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.failure_percent = 50, .window = 10, .minimum = 10,
                                               .open_ns = 2 * S, .probes = 6));

    calls(g, "SFSFSFSFSF");
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    pass(1000);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    pass(1001);
    calls(g, "SFSFSF");
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    pass(2001);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(permitted(g), 0);
    CHECK_STATE(g, WEIR_CLOSED);
    weir_guard_unref(g);
}

/* 95 % of 100 by default; open for 60 s, lazily left; 10 probes */
GUARD_TEST(test_the_defaults)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER());

    calls(g, "SSSSS");
    for (int i = 0; i < 94; i++)
        calls(g, "F");
    CHECK_FAILED(g, -1);
    calls(g, "F");
    CHECK_FAILED(g, 95);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    pass(60000);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK(weir_sleep(weir_now() + 1) == 0);
    CHECK_STATE(g, WEIR_OPEN); /* until a caller asks */
    calls(g, "SSSSSSSSS");
    CHECK_STATE(g, WEIR_HALF_OPEN);
    calls(g, "S");
    CHECK_STATE(g, WEIR_CLOSED);
    CHECK_WINDOW(g, 0, 0);
    weir_guard_unref(g);
}

/* K-01 */
GUARD_TEST(test_open_and_forced_open_refuse)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER());

    set(g, WEIR_OPEN);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK_EQ(figures(g).not_permitted, 1);
    set(g, WEIR_FORCED_OPEN);
    CHECK_EQ(figures(g).not_permitted, 0);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK_EQ(figures(g).not_permitted, 1);
    weir_guard_unref(g);
}

/* K-02, K-03, K-04 */
GUARD_TEST(test_half_open_lets_so_many_start)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.probes = 4, .failure_percent = 50));
    weir_permit p[6];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 6; i++)
            p[i] = WEIR_PERMIT;
        set(g, WEIR_OPEN);
        set(g, WEIR_HALF_OPEN);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(weir_guard_enter(&p[i], g, 0), 0);
        CHECK_EQ(weir_guard_enter(&p[4], g, 0), WEIR_EBROKEN);
        CHECK_EQ(weir_guard_enter(&p[5], g, 0), WEIR_EBROKEN);
        CHECK_EQ(figures(g).not_permitted, 2);
        CHECK_EQ(figures(g).probes_out, 4);
        CHECK(weir_guard_release(&p[0]) == 0);
        CHECK_EQ(weir_guard_enter(&p[4], g, 0), 0);
        for (int i = 1; i < 5; i++)
            CHECK(weir_guard_leave(&p[i], -EIO) == 0);
        CHECK_STATE(g, WEIR_OPEN);
    }
    weir_guard_unref(g);
}

/* K-05 */
GUARD_TEST(test_it_opens_after_enough_calls_also_by_a_success)
{
    weir_guard *g = guard_of(
        "b", WEIR_BREAKER(.failure_percent = 50, .window = 10, .minimum = 5, .on_event = keep));

    kept.count = 0;
    calls(g, "FFFS");
    CHECK_STATE(g, WEIR_CLOSED);
    CHECK_FAILED(g, -1);
    calls(g, "S");
    CHECK_STATE(g, WEIR_OPEN);
    CHECK_FAILED(g, 60);
    CHECK_EQ(kept_of(WEIR_EVENT_TOO_MANY_FAILED), 1);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    weir_guard_unref(g);
}

/* K-06 */
GUARD_TEST(test_a_time_window_opens_at_half)
{
    weir_guard *g = guard_of(
        "b", WEIR_BREAKER(.mode = WEIR_BY_TIME, .failure_percent = 50, .window = 5, .minimum = 5));

    calls(g, "SSSFF");
    CHECK_STATE(g, WEIR_CLOSED);
    CHECK_FAILED(g, 40);
    calls(g, "F");
    CHECK_STATE(g, WEIR_OPEN);
    CHECK_FAILED(g, 50);
    weir_guard_unref(g);
}

/* K-07, K-12 */
static void fast_calls(weir_guard *g, int count)
{
    for (int i = 0; i < count; i++)
        CHECK_EQ(permitted(g), 0);
}

static void call_of_ns(weir_guard *g, int64_t ns, int error)
{
    weir_permit p = WEIR_PERMIT;

    CHECK_EQ(weir_guard_enter(&p, g, 0), 0);
    CHECK_EQ(weir_sleep(weir_now() + ns), 0);
    CHECK_EQ(weir_guard_leave(&p, error), 0);
}

/* Calls that come so fast that a pulse will do to time them, by count and by time. A pulse of the simulator is exact, and so must be
 * all that is made of it: of short and long calls, those that fail, and at the threshold. */
GUARD_TEST(test_calls_amid_very_fast_ones_are_timed)
{
    for (int mode = WEIR_BY_COUNT; mode <= WEIR_BY_TIME; mode++) {
        weir_guard *g = guard_of("b", WEIR_BREAKER(.mode = (weir_guard_mode)mode, .slow_ns = 2 * S,
                                                   .window = 1000, .minimum = 900));
        fast_calls(g, 600);
        CHECK_EQ(figures(g).stored_ns, 0);
        call_of_ns(g, 1, 0);
        call_of_ns(g, 500, -EIO);
        call_of_ns(g, 3 * MS, 0);
        fast_calls(g, 100);
        CHECK_EQ(figures(g).stored_ns, 3 * MS + 501);
        call_of_ns(g, 2 * S, 0); /* not longer than that */
        CHECK_EQ(figures(g).slow, 0);
        call_of_ns(g, 2 * S + 1, 0);
        CHECK_EQ(figures(g).slow, 1);
        CHECK_EQ(figures(g).stored_ns, 4 * S + 3 * MS + 502);
        CHECK_EQ(figures(g).stored, 705);
        CHECK_EQ(figures(g).stored_failed, 1);
        CHECK_EQ(figures(g).succeeded, 704);
        weir_guard_reset(g);
        weir_guard_unref(g);
    }
}

GUARD_TEST(test_slow_calls_open_it)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.slow_percent = 50, .slow_ns = 4 * S, .minimum = 5,
                                               .probes = 4, .on_event = keep));

    kept.count = 0;
    slow_call(g, 4000, 0); /* not longer than that */
    slow_call(g, 4001, 0);
    slow_call(g, 5000, 0);
    slow_call(g, 1, 0);
    CHECK_STATE(g, WEIR_CLOSED);
    slow_call(g, 6000, 0);
    CHECK_STATE(g, WEIR_OPEN);
    CHECK(figures(g).slow_percent == 60);
    CHECK_EQ(kept_of(WEIR_EVENT_TOO_MANY_SLOW), 1);
    CHECK_EQ(figures(g).slow, 3);
    set(g, WEIR_HALF_OPEN);
    for (int i = 0; i < 4; i++)
        slow_call(g, i ? 5000 : 10, 0);
    CHECK_STATE(g, WEIR_OPEN);
    CHECK_FAILED(g, 0);
    weir_guard_unref(g);
}

/* K-08, K-09 */
GUARD_TEST(test_half_open_comes_strictly_after_the_wait)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.open_ns = 5 * S));
    weir_permit p = WEIR_PERMIT;

    set(g, WEIR_OPEN);
    pass(3000);
    CHECK_EQ(weir_guard_enter(&p, g, 0), WEIR_EBROKEN);
    CHECK_EQ(p.retry_at, at(5000) + 1);
    pass(2000);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    pass(1000);
    CHECK_EQ(weir_guard_enter(&p, g, 0), 0);
    CHECK_STATE(g, WEIR_HALF_OPEN);
    CHECK_WINDOW(g, 0, 0);
    CHECK(weir_guard_leave(&p, 0) == 0);
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, weir_now() + 7200 * S, (weir_breaker_state)0, NULL),
             0);
    pass(7200000);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK(weir_sleep(weir_now() + 1) == 0);
    CHECK_EQ(permitted(g), 0);
    weir_guard_unref(g);
}

/* A caller that may wait is let in when the breaker becomes half open. */
GUARD_TEST(test_a_caller_that_may_wait_becomes_a_probe)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.open_ns = 5 * S));
    weir_permit p = WEIR_PERMIT;

    set(g, WEIR_OPEN);
    CHECK_EQ(weir_guard_enter(&p, g, at(4999)), WEIR_EBROKEN);
    CHECK_EQ(weir_now(), at(0)); /* refused at once: it is known to be too late */
    CHECK_EQ(weir_guard_enter(&p, g, at(6000)), 0);
    CHECK_EQ(weir_now(), at(5000) + 1);
    CHECK(weir_guard_leave(&p, 0) == 0);
    weir_guard_unref(g);
}

static int64_t by_attempt(uint64_t attempt, void *arg)
{
    (void)arg;
    return (int64_t)attempt * 3 * S;
}

/* K-10, K-40 */
GUARD_TEST(test_waits_grow_with_each_opening_in_a_row)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.open_ns = 5 * S, .open_growth = 1.5, .probes = 1,
                                               .window = 1, .failure_percent = 50));
    weir_guard *f = guard_of(
        "f", WEIR_BREAKER(.probes = 1, .window = 1, .failure_percent = 50, .open_for = by_attempt));

    calls(g, "F");
    calls(f, "F");
    CHECK_EQ(figures(g).retry_at, at(5000) + 1);
    CHECK_EQ(figures(f).retry_at, at(3000) + 1);
    pass(5001);
    calls(g, "F");
    calls(f, "F");
    CHECK_EQ(figures(g).attempt, 2);
    CHECK_EQ(figures(g).retry_at, weir_now() + 7500 * MS + 1);
    CHECK_EQ(figures(f).retry_at, weir_now() + 6000 * MS + 1);
    pass(7501);
    calls(g, "S");
    CHECK_EQ(figures(g).attempt, 0);
    calls(g, "F");
    CHECK_EQ(figures(g).retry_at, weir_now() + 5 * S + 1);
    weir_guard_unref(g);
    weir_guard_unref(f);
}

/* K-11, K-13 */
GUARD_TEST(test_half_open_goes_back_or_closes)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.failure_percent = 50, .probes = 4));

    set(g, WEIR_OPEN);
    set(g, WEIR_HALF_OPEN);
    calls(g, "FFSF");
    CHECK_STATE(g, WEIR_OPEN);
    CHECK_FAILED(g, 75);
    set(g, WEIR_HALF_OPEN);
    calls(g, "FSSS");
    CHECK_STATE(g, WEIR_CLOSED);
    CHECK_WINDOW(g, 0, 0);
    weir_guard_unref(g);
}

/* K-14, K-22, K-35 */
GUARD_TEST(test_reset_closes_and_empties)
{
    weir_guard *g =
        guard_of("b", WEIR_BREAKER(.failure_percent = 50, .window = 4, .on_event = keep));

    kept.count = 0;
    calls(g, "SF");
    CHECK(weir_guard_reset(g) == 0);
    CHECK_WINDOW(g, 0, 0);
    CHECK_EQ(kept_of(WEIR_EVENT_TRANSITION), 0);
    CHECK_EQ(kept_of(WEIR_EVENT_RESET), 1);
    set(g, WEIR_OPEN);
    set(g, WEIR_OPEN);
    CHECK_EQ(kept_of(WEIR_EVENT_TRANSITION), 1);
    CHECK(weir_guard_reset(g) == 0);
    CHECK_STATE(g, WEIR_CLOSED);
    CHECK_EQ(kept_of(WEIR_EVENT_TRANSITION), 2);
    calls(g, "FFFF");
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK_EQ(kept_of(WEIR_EVENT_SUCCEEDED), 1);
    CHECK_EQ(kept_of(WEIR_EVENT_FAILED), 5);
    CHECK_EQ(kept_of(WEIR_EVENT_REFUSED), 1);
    CHECK_EQ(kept_of(WEIR_EVENT_TOO_MANY_FAILED), 1);
    weir_guard_unref(g);
}

/* K-35: each kind of event, with what belongs to it. */
GUARD_TEST(test_each_event_is_told_once_with_its_figures)
{
    weir_guard *g =
        guard_of("b", WEIR_BREAKER(.failure_percent = 50, .slow_percent = 50, .slow_ns = 10 * MS,
                                   .window = 3, .on_event = keep,
                                   .ignored = (const int[]){ -ENOENT }, .ignored_count = 1));
    static const weir_guard_event_type told[] = {
        WEIR_EVENT_SUCCEEDED,  WEIR_EVENT_IGNORED,         WEIR_EVENT_FAILED,
        WEIR_EVENT_FAILED,     WEIR_EVENT_TOO_MANY_FAILED, WEIR_EVENT_TOO_MANY_SLOW,
        WEIR_EVENT_TRANSITION, WEIR_EVENT_REFUSED,         WEIR_EVENT_TRANSITION,
        WEIR_EVENT_RESET
    };

    kept.count = 0;
    slow_call(g, 3, 0);
    slow_call(g, 4, -ENOENT);
    slow_call(g, 11, -EIO);
    slow_call(g, 12, -EPIPE);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK(weir_guard_reset(g) == 0);
    CHECK_EQ(kept.count, 10);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(kept.event[i].type, told[i]);
    CHECK_EQ(kept.event[0].duration_ns, 3 * MS);
    CHECK_EQ(kept.event[1].duration_ns, 4 * MS);
    CHECK_EQ(kept.event[1].error, -ENOENT);
    CHECK_EQ(kept.event[3].error, -EPIPE);
    CHECK_EQ(kept.event[6].from, WEIR_CLOSED);
    CHECK_EQ(kept.event[6].to, WEIR_OPEN);
    CHECK_EQ(kept.event[7].error, WEIR_EBROKEN);
    CHECK_EQ(kept.event[7].retry_at, weir_now() + 60 * S + 1);
    CHECK_EQ(kept.event[8].to, WEIR_CLOSED);
    weir_guard_unref(g);
}

/* K-15, K-16, K-20, K-21, K-24, K-36 */
GUARD_TEST(test_the_operators_states)
{
    weir_guard *g =
        guard_of("b", WEIR_BREAKER(.failure_percent = 50, .window = 4, .slow_percent = 50,
                                   .slow_ns = 10 * MS, .on_event = keep));
    weir_guard *opened = guard_of("o", WEIR_BREAKER(.initial = WEIR_OPEN));
    weir_guard *watched = guard_of("m", WEIR_BREAKER(.initial = WEIR_METRICS_ONLY));

    CHECK_EQ(permitted(opened), WEIR_EBROKEN);
    CHECK_STATE(watched, WEIR_METRICS_ONLY);
    set(g, WEIR_DISABLED);
    kept.count = 0;
    calls(g, "FFFFFFFF");
    CHECK_WINDOW(g, 0, 0);
    CHECK_EQ(kept.count, 0);
    set(g, WEIR_FORCED_OPEN);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    pass(100000);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK_STATE(g, WEIR_FORCED_OPEN);
    set(g, WEIR_METRICS_ONLY);
    kept.count = 0;
    calls(g, "FFFFFFFF");
    slow_call(g, 11, 0);
    slow_call(g, 11, 0);
    slow_call(g, 11, 0);
    CHECK_STATE(g, WEIR_METRICS_ONLY);
    CHECK_WINDOW(g, 4, 1);
    CHECK_EQ(kept_of(WEIR_EVENT_TOO_MANY_FAILED), 1);
    CHECK_EQ(kept_of(WEIR_EVENT_TOO_MANY_SLOW), 1);
    set(g, WEIR_METRICS_ONLY);
    for (int from = WEIR_CLOSED; from <= WEIR_FORCED_OPEN; from++) {
        if (from == WEIR_HALF_OPEN)
            set(g, WEIR_OPEN);
        set(g, (weir_breaker_state)from);
        set(g, (weir_breaker_state)from);
        set(g, WEIR_METRICS_ONLY);
        CHECK_WINDOW(g, 0, 0);
        set(g, WEIR_CLOSED);
    }
    weir_guard_unref(g);
    weir_guard_unref(opened);
    weir_guard_unref(watched);
}

/* K-19, R-25 */
GUARD_TEST(test_there_is_no_way_from_closed_to_half_open)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER());
    weir_message why;

    CHECK_EQ(weir_guard_set_state(g, WEIR_HALF_OPEN, 0, (weir_breaker_state)0, &why),
             WEIR_EALREADY);
    CHECK(strstr(why.text, "closed") && strstr(why.text, "half open"));
    CHECK_STATE(g, WEIR_CLOSED);
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, 0, WEIR_DISABLED, &why), WEIR_EALREADY);
    CHECK(strstr(why.text, "disabled"));
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, 0, WEIR_CLOSED, NULL), 0);
    set(g, WEIR_METRICS_ONLY);
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, 0, (weir_breaker_state)0, NULL), WEIR_EALREADY);
    CHECK_EQ(weir_guard_set_state(g, (weir_breaker_state)9, 0, (weir_breaker_state)0, NULL),
             WEIR_EINVAL);
    weir_guard_unref(g);
}

static weir_call_result seven_is_bad(int error, const void *result, void *arg)
{
    (void)arg;
    if (error == -EAGAIN)
        return WEIR_IGNORE;
    return result && *(const int *)result == 7 ? WEIR_FAILURE : (weir_call_result)0;
}

/* K-17, K-18, K-26, K-27, T12 */
GUARD_TEST(test_errors_are_failures_successes_or_nothing)
{
    static const int bad[] = { -EIO, -EPIPE }, never[] = { -EPIPE };
    weir_guard *g =
        guard_of("b", WEIR_BREAKER(.failure_percent = 50, .probes = 4, .failures = bad,
                                   .failure_count = 2, .ignored = never, .ignored_count = 1));
    weir_guard *lax = guard_of(
        "lax", WEIR_BREAKER(.failures = bad, .failure_count = 1, .other_errors = WEIR_SUCCESS));
    weir_guard *judged = guard_of("judged", WEIR_BREAKER(.judge = seven_is_bad));
    weir_permit p = WEIR_PERMIT;
    int seven = 7;

    CHECK_EQ(call_once(g, -EPIPE), 0);
    CHECK_EQ(call_once(g, -ENOENT), 0);
    CHECK_WINDOW(g, 0, 0);
    CHECK_EQ(figures(g).ignored, 2);
    CHECK_EQ(call_once(g, -EIO), 0);
    CHECK_WINDOW(g, 1, 1);
    CHECK_EQ(call_once(lax, -ENOENT), 0);
    CHECK_WINDOW(lax, 1, 0);
    CHECK(weir_guard_enter(&p, judged, 0) == 0 && weir_guard_leave_with(&p, 0, &seven) == 0);
    CHECK_WINDOW(judged, 1, 1);
    CHECK_EQ(call_once(judged, -EAGAIN), 0);
    CHECK_WINDOW(judged, 1, 1);
    set(g, WEIR_OPEN);
    set(g, WEIR_HALF_OPEN);
    calls(g, "SSS");
    CHECK_EQ(call_once(g, -ENOENT), 0);
    CHECK_STATE(g, WEIR_HALF_OPEN);
    calls(g, "F");
    CHECK_STATE(g, WEIR_CLOSED); /* at 25 % */
    set(g, WEIR_OPEN);
    set(g, WEIR_HALF_OPEN);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(call_once(g, -ENOENT), 0);
    CHECK_STATE(g, WEIR_HALF_OPEN);
    calls(g, "SSSS");
    CHECK_STATE(g, WEIR_CLOSED);
    weir_guard_unref(g);
    weir_guard_unref(lax);
    weir_guard_unref(judged);
}

/* K-23, K-44, T07 */
GUARD_TEST(test_probes_that_hang_do_not_keep_it_half_open)
{
    weir_guard *o =
        guard_of("o", WEIR_BREAKER(.probes = 2, .half_open_ns = 1 * S, .open_ns = 5 * S));
    weir_guard *c = guard_of(
        "c", WEIR_BREAKER(.probes = 2, .half_open_ns = 1 * S, .half_open_then = WEIR_CLOSED));
    weir_guard *usual = guard_of("u", WEIR_BREAKER(.probes = 2, .open_ns = 5 * S));
    weir_guard *g[3] = { o, c, usual };
    weir_permit p[6];

    for (int i = 0; i < 6; i++)
        p[i] = WEIR_PERMIT;
    for (int i = 0; i < 3; i++) {
        set(g[i], WEIR_OPEN);
        set(g[i], WEIR_HALF_OPEN);
        CHECK_EQ(weir_guard_enter(&p[2 * i], g[i], 0), 0);
        CHECK_EQ(weir_guard_enter(&p[2 * i + 1], g[i], 0), 0);
        CHECK_EQ(permitted(g[i]), WEIR_EBROKEN);
    }
    pass(999);
    CHECK_STATE(o, WEIR_HALF_OPEN);
    pass(1);
    CHECK_STATE(o, WEIR_OPEN);
    CHECK_EQ(figures(o).attempt, 2);
    CHECK_STATE(c, WEIR_CLOSED);
    CHECK_EQ(permitted(c), 0);
    pass(4000);
    CHECK_STATE(usual, WEIR_OPEN); /* on by default */
    pass(5001);
    CHECK_EQ(permitted(usual), 0);
    for (int i = 0; i < 6; i++)
        CHECK(weir_guard_leave(&p[i], -EIO) == 0); /* late, of an earlier epoch: no matter */
    CHECK_STATE(usual, WEIR_HALF_OPEN);
    CHECK_WINDOW(usual, 1, 0);
    for (int i = 0; i < 3; i++)
        weir_guard_unref(g[i]);
}

/* K-25, T09: no timer to be armed, cancelled or to fire late */
GUARD_TEST(test_open_ends_by_itself_if_asked_to)
{
    weir_guard *g =
        guard_of("b", WEIR_BREAKER(.open_ns = 5 * S, .auto_half_open = true, .on_event = keep));

    kept.count = 0;
    set(g, WEIR_OPEN);
    pass(5000);
    CHECK_STATE(g, WEIR_OPEN);
    CHECK(weir_sleep(weir_now() + 1) == 0);
    CHECK_STATE(g, WEIR_HALF_OPEN);
    CHECK_EQ(kept_of(WEIR_EVENT_TRANSITION), 2);
    set(g, WEIR_OPEN);
    pass(3000);
    CHECK(weir_guard_reset(g) == 0);
    set(g, WEIR_OPEN);
    pass(4000); /* the first wait would be over by now */
    CHECK_STATE(g, WEIR_OPEN);
    weir_guard_unref(g);
}

/* K-28, K-29, K-30 */
GUARD_TEST(test_windows_hold_the_latest_calls)
{
    weir_guard *g =
        guard_of("b", WEIR_BREAKER(.window = 10, .minimum = 10, .failure_percent = 100));
    weir_guard *four = guard_of("4", WEIR_BREAKER(.window = 4, .failure_percent = 100));
    weir_guard *seconds = guard_of(
        "t", WEIR_BREAKER(.mode = WEIR_BY_TIME, .window = 5, .minimum = 1, .failure_percent = 100));

    calls(g, "SSFF");
    CHECK_FAILED(g, -1);
    calls(g, "FSFSFSFS");
    CHECK_WINDOW(g, 10, 6);
    CHECK_FAILED(g, 60);
    calls(g, "SSS");
    CHECK_FAILED(g, 30);
    slow_call(four, 10, -EIO);
    for (int i = 0; i < 3; i++)
        slow_call(four, 20, 0);
    CHECK_FAILED(four, 25);
    CHECK_EQ(figures(four).stored_ns, 70 * MS);
    slow_call(four, 20, 0);
    CHECK_FAILED(four, 0);
    CHECK_EQ(figures(four).stored_ns / figures(four).stored, 20 * MS);
    CHECK(weir_sleep(at(1000)) == 0);
    calls(seconds, "SF");
    pass(1000);
    calls(seconds, "S");
    pass(3000);
    CHECK_WINDOW(seconds, 3, 1);
    pass(1000);
    CHECK_WINDOW(seconds, 1, 0);
    pass(1000);
    CHECK_WINDOW(seconds, 0, 0);
    weir_guard_unref(g);
    weir_guard_unref(four);
    weir_guard_unref(seconds);
}

static void fails_every_other(void *arg)
{
    for (int i = 0; i < 250; i++)
        CHECK_EQ(call_once(arg, i % 2 ? -EIO : 0), 0);
}

/* K-37: a ring holds the latest so many, also of callers side by side; what is kept when it opens are the newest. */
GUARD_TEST(test_a_ring_holds_the_newest_outcomes)
{
    weir_guard *four = guard_of("4", WEIR_BREAKER(.window = 4, .failure_percent = 100));
    weir_guard *many = guard_of("m", WEIR_BREAKER(.window = 1000, .failure_percent = 100));
    int64_t thread[4];

    calls(four, "FSFF");
    CHECK_WINDOW(four, 4, 3);
    calls(four, "SS");
    CHECK_WINDOW(four, 4, 2);
    set(four, WEIR_OPEN);
    CHECK_WINDOW(four, 4, 2);
    for (int i = 0; i < 4; i++)
        thread[i] = weir_sim_thread(fails_every_other, many, "caller");
    for (int i = 0; i < 4; i++)
        weir_sim_join(thread[i]);
    CHECK_WINDOW(many, 1000, 500);
    weir_guard_unref(four);
    weir_guard_unref(many);
}

/* K-33: an outcome that opens it at once, for as long as it says; only a closed one. */
GUARD_TEST(test_one_outcome_may_open_it_for_a_given_time)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER());
    weir_permit p = WEIR_PERMIT, late = WEIR_PERMIT;

    CHECK_EQ(weir_guard_enter(&p, g, 0), 0);
    CHECK_EQ(weir_guard_enter(&late, g, 0), 0);
    CHECK(weir_guard_leave(&p, -EBUSY) == 0);
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, weir_now() + 3 * S, WEIR_CLOSED, NULL), 0);
    CHECK(weir_guard_leave(&late, -EBUSY) == 0);
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, weir_now() + 9 * S, WEIR_CLOSED, NULL),
             WEIR_EALREADY);
    pass(3000);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK(weir_sleep(weir_now() + 1) == 0);
    CHECK_EQ(permitted(g), 0);
    weir_guard_unref(g);
}

/* K-38 (FN/R0 machine with a fresh window instead of copied bits) */
GUARD_TEST(test_the_older_machine)
{
    weir_guard *g = guard_of(
        "b", WEIR_BREAKER(.failure_percent = 50, .window = 5, .probes = 3, .open_ns = 1 * S,
                          .ignored = (const int[]){ -ENOENT }, .ignored_count = 1));

    calls(g, "FFFSS");
    CHECK_STATE(g, WEIR_OPEN);
    pass(500);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    pass(800);
    calls(g, "F");
    CHECK_STATE(g, WEIR_HALF_OPEN);
    calls(g, "FS");
    CHECK_STATE(g, WEIR_OPEN);
    pass(1300);
    calls(g, "F");
    CHECK_EQ(call_once(g, -ENOENT), 0);
    calls(g, "SS");
    CHECK_STATE(g, WEIR_CLOSED);
    weir_guard_unref(g);
}

/* K-43, T08 */
GUARD_TEST(test_a_call_of_an_earlier_state_does_not_decide)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.probes = 1, .failure_percent = 50));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQ(weir_guard_enter(&p, g, 0), 0);
    set(g, WEIR_OPEN);
    set(g, WEIR_HALF_OPEN);
    CHECK(weir_guard_leave(&p, -EIO) == 0);
    CHECK_STATE(g, WEIR_HALF_OPEN);
    CHECK_WINDOW(g, 0, 0);
    calls(g, "S");
    CHECK_STATE(g, WEIR_CLOSED);
    CHECK_EQ(weir_guard_enter(&p, g, 0),
             0); /* late outcomes still land in the window that open keeps */
    set(g, WEIR_OPEN);
    CHECK(weir_guard_leave(&p, -EIO) == 0);
    CHECK_WINDOW(g, 1, 1);
    weir_guard_unref(g);
}

/* T28: open, then half open and full: refused once, told once */
GUARD_TEST(test_a_refusal_is_told_once)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.probes = 1, .open_ns = 1 * S,
                                               .half_open_ns = WEIR_FOREVER, .on_event = keep));
    weir_permit p = WEIR_PERMIT;

    set(g, WEIR_OPEN);
    pass(1001);
    CHECK_EQ(weir_guard_enter(&p, g, 0), 0);
    kept.count = 0;
    CHECK_EQ(permitted(g), WEIR_EBROKEN);
    CHECK_EQ(kept.count, 1);
    CHECK(weir_guard_leave(&p, 0) == 0);
    weir_guard_unref(g);
}

static void records(void *arg)
{
    for (int i = 0; i < 25; i++)
        CHECK_EQ(call_once(arg, i % 5 ? 0 : -EIO), 0);
}

/* K-31: many at a time, totals are right */
GUARD_TEST(test_all_outcomes_of_many_callers_are_counted)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.window = 200));
    int64_t thread[4];

    for (int i = 0; i < 4; i++)
        thread[i] = weir_sim_thread(records, g, "caller");
    for (int i = 0; i < 4; i++)
        weir_sim_join(thread[i]);
    CHECK_WINDOW(g, 100, 20);
    CHECK_EQ(figures(g).succeeded, 80);
    CHECK_EQ(figures(g).failed, 20);
    CHECK_EQ(figures(g).entered, 100);
    weir_guard_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alternate_failures_open_it_and_half_open_decides),
        cmocka_unit_test(test_the_defaults),
        cmocka_unit_test(test_open_and_forced_open_refuse),
        cmocka_unit_test(test_half_open_lets_so_many_start),
        cmocka_unit_test(test_it_opens_after_enough_calls_also_by_a_success),
        cmocka_unit_test(test_a_time_window_opens_at_half),
        cmocka_unit_test(test_slow_calls_open_it),
        cmocka_unit_test(test_calls_amid_very_fast_ones_are_timed),
        cmocka_unit_test(test_half_open_comes_strictly_after_the_wait),
        cmocka_unit_test(test_a_caller_that_may_wait_becomes_a_probe),
        cmocka_unit_test(test_waits_grow_with_each_opening_in_a_row),
        cmocka_unit_test(test_half_open_goes_back_or_closes),
        cmocka_unit_test(test_reset_closes_and_empties),
        cmocka_unit_test(test_each_event_is_told_once_with_its_figures),
        cmocka_unit_test(test_the_operators_states),
        cmocka_unit_test(test_there_is_no_way_from_closed_to_half_open),
        cmocka_unit_test(test_errors_are_failures_successes_or_nothing),
        cmocka_unit_test(test_probes_that_hang_do_not_keep_it_half_open),
        cmocka_unit_test(test_open_ends_by_itself_if_asked_to),
        cmocka_unit_test(test_windows_hold_the_latest_calls),
        cmocka_unit_test(test_a_ring_holds_the_newest_outcomes),
        cmocka_unit_test(test_one_outcome_may_open_it_for_a_given_time),
        cmocka_unit_test(test_the_older_machine),
        cmocka_unit_test(test_a_call_of_an_earlier_state_does_not_decide),
        cmocka_unit_test(test_a_refusal_is_told_once),
        cmocka_unit_test(test_all_outcomes_of_many_callers_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
