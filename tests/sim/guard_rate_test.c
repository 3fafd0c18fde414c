/* Rate and frequency: SEMANTICS 6.8 (L-) and 6.7.
 * SPDX-License-Identifier: MIT */
#include "support/guard_support.h"

#define P (250 * MS)

static weir_guard *rate(int64_t limit, int64_t patience)
{
    return guard_of("r", WEIR_RATE(.limit = limit, .period_ns = P, .on_event = keep,
                                   .wait_ns = patience ? patience : WEIR_NO_WAIT));
}

static int try_n(weir_guard *g, int64_t n)
{
    weir_permit p = WEIR_PERMIT;

    return weir_guard_enter_n(&p, g, n, WEIR_GUARD_WAIT);
}

static int64_t estimated(weir_guard *g)
{
    return figures(g).retry_at - weir_now();
}

static void sleep_to(int64_t ns)
{
    CHECK(weir_sleep(WEIR_SIM_START + ns) == 0);
}

/* L-01, L-02, L-04, L-05, L-15 */
GUARD_TEST(test_one_per_cycle_then_two_after_a_change)
{
    weir_guard *g = rate(1, 0), *other;

    kept.count = 0;
    CHECK_EQ(figures(g).available, 1);
    CHECK_EQ(figures(g).waiting, 0);
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(try_n(g, 1), WEIR_ETOOFAST);
    sleep_to(P);
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(try_n(g, 1), WEIR_ETOOFAST);
    CHECK_EQ(figures(g).available, 0);
    CHECK_EQ(estimated(g), P);
    CHECK_EQ(figures(g).cycle, 1);
    sleep_to(2 * P);
    CHECK_EQ(figures(g).available, 1);
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(try_n(g, 1), WEIR_ETOOFAST);
    CHECK_EQ(figures(g).available, 0);
    CHECK_EQ(estimated(g), P);
    CHECK_EQ(weir_guard_change(g, WEIR_RATE(.limit = 9), WEIR_RATE(.limit = 3), NULL),
             WEIR_EALREADY); /* */
    CHECK_EQ(figures(g).limit, 1);
    CHECK(weir_guard_change(g, WEIR_RATE(.limit = 2), WEIR_RATE(.limit = 1), NULL) == 0);
    sleep_to(3 * P);
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(try_n(g, 1), WEIR_ETOOFAST);
    sleep_to(3 * P + P / 2); /* another one has cycles of its own, from its own beginning */
    other = guard_of("other", WEIR_RATE(.limit = 1, .period_ns = P, .wait_ns = WEIR_NO_WAIT));
    CHECK_EQ(try_n(other, 1), 0);
    sleep_to(4 * P);
    CHECK_EQ(try_n(other, 1), WEIR_ETOOFAST);
    sleep_to(4 * P + P / 2);
    CHECK_EQ(try_n(other, 1), 0);
    CHECK_EQ(kept_of(WEIR_EVENT_ENTERED), 5); /* L-25 */
    CHECK_EQ(kept_of(WEIR_EVENT_REFUSED), 4);
    CHECK_EQ(kept.event[0].permits, 1);
    CHECK_EQ(kept.event[1].permits, 1);
    weir_guard_unref(g);
    weir_guard_unref(other);
}

/* L-03, L-07, L-09, L-10, L-13 */
GUARD_TEST(test_reservations_say_how_long_they_wait)
{
    static const int64_t ms10 = 10 * MS;
    const int64_t waits[] = { 0, 0, 0, ms10 - 4, ms10 - 5, ms10 - 6, -1, -1, -1 };
    weir_guard *g = rate(1, 0), *three, *heavy;
    weir_permit p[9];

    for (int i = 0; i < 9; i++)
        p[i] = WEIR_PERMIT;
    CHECK_EQ(weir_guard_reserve(&p[0], g, 1, 0), 0);
    CHECK_EQ(weir_guard_reserve(&p[1], g, 1, 0), WEIR_ETOOFAST);
    CHECK_EQ(weir_guard_reserve(&p[1], g, 1, P), P);
    CHECK_EQ(weir_guard_reserve(&p[2], g, 1, P), WEIR_ETOOFAST);
    CHECK_EQ(p[2].retry_at, WEIR_SIM_START + 2 * P);
    CHECK_EQ(figures(g).available, -1);
    sleep_to(2 * P - 1);
    CHECK_EQ(estimated(g), 1);
    sleep_to(6 * P + 10);
    CHECK_EQ(figures(g).available, 1);
    CHECK_EQ(estimated(g), 0);
    heavy = guard_of("heavy", WEIR_RATE(.limit = 1, .period_ns = P));
    for (int i = 0; i < 9; i++)
        p[i] = WEIR_PERMIT;
    CHECK_EQ(weir_guard_reserve(&p[0], heavy, 3, 5 * P), 2 * P);
    three = guard_of("three", WEIR_RATE(.limit = 3, .period_ns = ms10));
    for (int i = 0; i < 9; i++) {
        int64_t start = WEIR_SIM_START + 6 * P + 10, wait;
        CHECK(weir_sleep(start + ms10 + 1 + i) == 0);
        p[i] = WEIR_PERMIT;
        wait = weir_guard_reserve(&p[i], three, 1, 12 * MS);
        CHECK_EQ(wait < 0 ? -1 : wait, waits[i]);
    }
    weir_guard_unref(g);
    weir_guard_unref(heavy);
    weir_guard_unref(three);
}

/* L-06, L-08, T01 */
GUARD_TEST(test_a_caller_sleeps_for_its_reservation_and_is_refused_at_once_if_it_cannot)
{
    weir_guard *g = rate(1, P);
    struct caller c = { .guard = g, .deadline = WEIR_GUARD_WAIT };
    weir_permit p = WEIR_PERMIT;
    int64_t thread;

    sleep_to(P);
    CHECK_EQ(try_n(g, 1), 0);
    thread = weir_sim_thread(caller_body, &c, "second");
    sleep_to(P + 1);
    CHECK_EQ(figures(g).available, -1);
    CHECK_EQ(figures(g).waiting, 1);
    CHECK_EQ(estimated(g), 2 * P - 1);
    CHECK_EQ(weir_guard_enter(&p, g, WEIR_GUARD_WAIT), WEIR_ETOOFAST);
    CHECK_EQ(weir_now(), WEIR_SIM_START + P + 1); /* it did not sleep for nothing */
    CHECK_EQ(p.retry_at, WEIR_SIM_START + 3 * P);
    CHECK_EQ(figures(g).available, -1);
    weir_sim_join(thread);
    CHECK_EQ(c.rc, 0);
    CHECK_EQ(weir_now(), WEIR_SIM_START + 2 * P);
    sleep_to(2 * P + 10);
    CHECK_EQ(figures(g).available, 0);
    CHECK_EQ(figures(g).waiting, 0);
    CHECK_EQ(estimated(g), P - 10);
    weir_guard_unref(g);
}

struct sleeper {
    weir_guard *guard;
    int rc;
    bool cancelled; /* what the task sees after that */
};

static int enters_late(void **value, void *arg)
{
    struct sleeper *s = arg;
    weir_permit p = WEIR_PERMIT;

    (void)value;
    s->rc = weir_guard_enter(&p, s->guard, WEIR_FOREVER);
    s->cancelled = weir_cancelled();
    return s->rc;
}

/* L-11, L-22, T02 */
GUARD_TEST(test_a_cancelled_sleeper_gives_its_reservation_back)
{
    weir_guard *g = rate(1, 0);
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct sleeper s = { .guard = g };
    weir_task *task;

    CHECK_EQ(try_n(g, 1), 0);
    CHECK(weir_submit_key(&task, ex, "k", enters_late, &s, NULL) == 0);
    sleep_to(10 * MS);
    CHECK_EQ(figures(g).available, -1);
    weir_task_cancel(task);
    sleep_to(11 * MS);
    CHECK_EQ(figures(g).available, 0);
    CHECK_EQ(figures(g).waiting, 0);
    CHECK_EQ(figures(g).cancelled, 1);
    CHECK_EQ(s.rc, WEIR_ECANCELED);
    CHECK(s.cancelled);
    weir_task_unref(task);
    weir_executor_free(ex);
    sleep_to(P);
    CHECK_EQ(try_n(g, 1), 0);
    weir_guard_unref(g);
}

/* L-12, L-14 */
GUARD_TEST(test_another_limit_keeps_the_debt)
{
    weir_guard *g = rate(1, 3 * MS);
    weir_permit p = WEIR_PERMIT;

    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(weir_guard_reserve(&p, g, 1, P), P);
    CHECK(weir_guard_change(g, WEIR_RATE(.limit = 2), NULL, NULL) == 0);
    CHECK_EQ(figures(g).available, -1);
    CHECK_EQ(estimated(g), P);
    sleep_to(P);
    CHECK_EQ(figures(g).available, 1);
    /* Only that field has changed, and only this one does. */
    CHECK(weir_guard_change(g, WEIR_RATE(.wait_ns = 7 * MS),
                            WEIR_RATE(.limit = 2, .period_ns = P, .wait_ns = 3 * MS), NULL) == 0);
    CHECK(weir_guard_change(g, WEIR_RATE(.wait_ns = 7 * MS),
                            WEIR_RATE(.limit = 2, .period_ns = P, .wait_ns = 7 * MS), NULL) == 0);
    CHECK_EQ(figures(g).limit, 2);
    weir_guard_unref(g);
}

/* L-16, L-17 */
GUARD_TEST(test_many_permits_at_once)
{
    weir_guard *g = rate(10, 0);

    CHECK_EQ(try_n(g, 5), 0);
    CHECK_EQ(try_n(g, 5), 0);
    CHECK_EQ(try_n(g, 1), WEIR_ETOOFAST);
    sleep_to(P);
    CHECK_EQ(try_n(g, 1), 0);
    sleep_to(2 * P - 1);
    CHECK_EQ(try_n(g, 5), 0);
    CHECK_EQ(try_n(g, 5), WEIR_ETOOFAST);
    CHECK_EQ(figures(g).available, 4);
    sleep_to(2 * P);
    CHECK_EQ(try_n(g, 5), 0);
    weir_guard_unref(g);
}

static bool on_busy(int error, const void *result, void *arg)
{
    (void)arg;
    return error == -EBUSY || (result && *(const int *)result == 7);
}

/* L-18, L-19, L-20, L-26 */
GUARD_TEST(test_drain_takes_the_rest_and_no_debt_away)
{
    weir_guard *g = rate(5, 0);
    weir_guard *on = guard_of("on", WEIR_RATE(.limit = 3, .period_ns = P, .drain_on = on_busy));
    weir_permit p = WEIR_PERMIT;
    int seven = 7, eight = 8;

    kept.count = 0;
    CHECK_EQ(weir_guard_drain(g), 5);
    CHECK_EQ(try_n(g, 1), WEIR_ETOOFAST);
    CHECK_EQ(weir_guard_drain(g), 0);
    CHECK_EQ(kept_of(WEIR_EVENT_DRAINED), 2);
    CHECK_EQ(kept.event[0].permits, 5);
    CHECK_EQ(kept.event[2].type, WEIR_EVENT_DRAINED);
    CHECK_EQ(kept.event[2].permits, 0);
    CHECK_EQ(weir_guard_reserve(&p, g, 3, P), P);
    CHECK_EQ(weir_guard_drain(g), 0);
    CHECK_EQ(figures(g).available, -3);
    p = WEIR_PERMIT;
    CHECK(weir_guard_enter(&p, on, 0) == 0 && weir_guard_leave(&p, -EIO) == 0);
    CHECK_EQ(figures(on).available, 2);
    CHECK(weir_guard_enter(&p, on, 0) == 0 && weir_guard_leave(&p, -EBUSY) == 0);
    CHECK_EQ(figures(on).available, 0);
    sleep_to(P);
    CHECK_EQ(figures(g).available, 2);
    CHECK(weir_guard_enter(&p, on, 0) == 0 && weir_guard_leave_with(&p, 0, &eight) == 0);
    CHECK_EQ(figures(on).available, 2);
    CHECK(weir_guard_enter(&p, on, 0) == 0 && weir_guard_leave_with(&p, 0, &seven) == 0);
    CHECK_EQ(figures(on).available, 0);
    weir_guard_unref(g);
    weir_guard_unref(on);
}

/* */
GUARD_TEST(test_the_defaults_let_a_hundred_pass_per_half_second)
{
    weir_guard *g = guard_of("d", WEIR_RATE());
    weir_permit ahead = WEIR_PERMIT;

    for (int i = 0; i < 100; i++) {
        weir_permit p = WEIR_PERMIT;
        CHECK_EQ(weir_guard_enter(&p, g, WEIR_NOW_OR_NEVER), 0);
    }
    CHECK_EQ(call_once(g, 0), WEIR_ETOOFAST);
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(weir_now(), at(500));
    CHECK_EQ(figures(g).limit, 100);
    CHECK_EQ(weir_guard_reserve(&ahead, g, 99 + 999, 5000 * MS), 5000 * MS);
    CHECK_EQ(try_n(g, 2),
             WEIR_ETOOFAST); /* its usual patience is 5 s: to the tenth cycle from now */
    CHECK_EQ(weir_now(), at(500));
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(weir_now(), at(5500));
    weir_guard_unref(g);
}

/* R-16, with its numbers: a hundred and one calls that wait for 600 ms at most. */
GUARD_TEST(test_a_timeout_longer_than_a_cycle_lets_one_more_pass)
{
    weir_guard *g = guard_of("t", WEIR_RATE(.wait_ns = 600 * MS));

    for (int i = 0; i < 101; i++)
        CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(weir_now(), at(500));
    CHECK_EQ(figures(g).entered, 101);
    weir_guard_unref(g);
}

/* pacing with at most one waiter. */
GUARD_TEST(test_a_pace_has_one_waiter_at_most)
{
    weir_guard *g = guard_of("test", WEIR_RATE(.mode = WEIR_SMOOTH, .limit = 1,
                                               .period_ns = 2000 * MS, .initial_ns = 1000 * MS,
                                               .wait_ns = 30000 * MS, .waiters_max = 1));
    struct caller c[2] = { { .guard = g, .deadline = WEIR_GUARD_WAIT },
                           { .guard = g, .deadline = WEIR_GUARD_WAIT } };

    side_by_side(c, 2, 1);
    CHECK_EQ(c[0].rc, 0);
    CHECK_EQ(c[0].in_ms, 1000);
    CHECK_EQ(c[1].rc, WEIR_ETOOFAST);
    CHECK_EQ(c[1].in_ms, 1);
    CHECK_EQ(try_n(g, 1), 0); /* the pass began the interval */
    CHECK_EQ(weir_now(), at(3000));
    weir_guard_unref(g);
}

/* T03 */
GUARD_TEST(test_smooth_calls_are_spread_after_a_burst)
{
    weir_guard *g =
        guard_of("s", WEIR_RATE(.mode = WEIR_SMOOTH, .limit = 10, .period_ns = 1000 * MS,
                                .burst = 3, .wait_ns = 1000 * MS));
    struct caller c[6];

    for (int i = 0; i < 6; i++)
        c[i] = (struct caller){ .guard = g, .deadline = WEIR_GUARD_WAIT };
    CHECK_EQ(figures(g).available, 3);
    side_by_side(c, 3, 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(c[i].in_ms, 0);
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(weir_now(), at(100));
    CHECK_EQ(try_n(g, 1), 0);
    CHECK_EQ(weir_now(), at(200));
    CHECK_EQ(try_n(g, 4), WEIR_EINVAL); /* never that many at once */
    weir_guard_unref(g);
}

/* ---- frequency --------------------------------------------------------------------------------- */

static weir_guard *frequency(weir_guard_mode mode)
{
    return guard_of("f", WEIR_FREQUENCY(.mode = mode, .limit = 5, .period_ns = 2000 * MS));
}

/* in every mode; the run begins in the middle of a window, so that windows matter. */
static void frequency_rows(weir_guard_mode mode)
{
    weir_guard *g = frequency(mode);
    struct caller c[6];

    for (int i = 0; i < 5; i++)
        CHECK_EQ(call_once(g, 0), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(call_once(g, 0), WEIR_ETOOFAST);
    CHECK(weir_sleep(weir_now() + 5000 * MS) == 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(call_once(g, 0), 0);
        CHECK(weir_sleep(weir_now() + 450 * MS) == 0);
    }
    CHECK(weir_sleep(weir_now() + 5000 * MS) == 0);
    for (int i = 0; i < 6; i++)
        c[i] = (struct caller){ .guard = g };
    side_by_side(c, 6, 0);
    CHECK_EQ(let_in(c, 6), 5);
    CHECK(weir_sleep(weir_now() + 3000 * MS) == 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(call_once(g, 0), 0);
    weir_guard_unref(g);
}

/* a window is an hour long, and a caller looks once. */
GUARD_TEST(test_a_window_is_an_hour_by_default)
{
    const int64_t hour = 3600 * 1000 * MS;
    weir_guard *fixed = guard_of("h", WEIR_FREQUENCY(.limit = 1, .mode = WEIR_FIXED));
    weir_guard *usual = guard_of("w", WEIR_FREQUENCY(.limit = 1));
    weir_permit p = WEIR_PERMIT;

    CHECK_EQ(call_once(fixed, 0), 0);
    CHECK_EQ(weir_guard_enter(&p, fixed, WEIR_GUARD_WAIT), WEIR_ETOOFAST);
    CHECK_EQ(p.retry_at, (weir_now() / hour + 1) * hour);
    CHECK_EQ(figures(usual).mode, WEIR_WEIGHTED);
    weir_guard_unref(fixed);
    weir_guard_unref(usual);
}

GUARD_TEST(test_fixed_windows)
{
    frequency_rows(WEIR_FIXED);
}

GUARD_TEST(test_weighted_windows)
{
    frequency_rows(WEIR_WEIGHTED);
}

GUARD_TEST(test_exact_windows)
{
    frequency_rows(WEIR_EXACT);
}

GUARD_TEST(test_a_caller_that_waits_for_a_window_enters_when_it_opens_and_in_turn)
{
    weir_guard *g = frequency(WEIR_EXACT);
    struct caller c[4];

    for (int i = 0; i < 5; i++) {
        CHECK_EQ(call_once(g, 0), 0);
        CHECK(weir_sleep(weir_now() + 100 * MS) == 0);
    }
    for (int i = 0; i < 4; i++)
        c[i] = (struct caller){ .guard = g, .deadline = at(i == 3 ? 2150 : 10000) };
    side_by_side(c, 4, 1);
    CHECK_EQ(c[0].in_ms, 2000);
    CHECK_EQ(c[1].in_ms, 2100);
    CHECK_EQ(c[2].in_ms, 2200);
    CHECK_EQ(c[3].rc, WEIR_ETOOFAST);
    weir_guard_unref(g);
}

/* A call that is not made after all does not count. */
GUARD_TEST(test_a_released_place_is_free_again)
{
    weir_guard *g = frequency(WEIR_WEIGHTED);
    weir_permit p = WEIR_PERMIT;

    for (int i = 0; i < 4; i++)
        CHECK_EQ(call_once(g, 0), 0);
    CHECK(weir_guard_enter(&p, g, 0) == 0);
    CHECK_EQ(call_once(g, 0), WEIR_ETOOFAST);
    CHECK(weir_guard_release(&p) == 0);
    CHECK_EQ(call_once(g, 0), 0);
    weir_guard_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_per_cycle_then_two_after_a_change),
        cmocka_unit_test(test_reservations_say_how_long_they_wait),
        cmocka_unit_test(
            test_a_caller_sleeps_for_its_reservation_and_is_refused_at_once_if_it_cannot),
        cmocka_unit_test(test_a_cancelled_sleeper_gives_its_reservation_back),
        cmocka_unit_test(test_another_limit_keeps_the_debt),
        cmocka_unit_test(test_many_permits_at_once),
        cmocka_unit_test(test_drain_takes_the_rest_and_no_debt_away),
        cmocka_unit_test(test_the_defaults_let_a_hundred_pass_per_half_second),
        cmocka_unit_test(test_a_timeout_longer_than_a_cycle_lets_one_more_pass),
        cmocka_unit_test(test_a_pace_has_one_waiter_at_most),
        cmocka_unit_test(test_smooth_calls_are_spread_after_a_burst),
        cmocka_unit_test(test_a_window_is_an_hour_by_default),
        cmocka_unit_test(test_fixed_windows),
        cmocka_unit_test(test_weighted_windows),
        cmocka_unit_test(test_exact_windows),
        cmocka_unit_test(test_a_caller_that_waits_for_a_window_enters_when_it_opens_and_in_turn),
        cmocka_unit_test(test_a_released_place_is_free_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
