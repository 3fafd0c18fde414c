/* Guards in the memory of a process that forks: the child goes on with a copy, and with no thread of its parent's.
 * SPDX-License-Identifier: MIT */
#include "support/child.h"

static weir_guard *breaker;
static weir_permit held = { .guard = NULL };
static int threads; /* without that of the pulse */

static weir_guard_stats figures(void)
{
    weir_guard_stats s = { .size = sizeof(s) };

    CHECK_EQUAL(weir_guard_stats_get(&s, breaker), 0);
    return s;
}

/* Fast calls, until the thread is there that they are timed by. */
static void call_until_it_pulses(void)
{
    weir_time until = patience();

    do
        for (int i = 0; i < 1000; i++) {
            weir_permit p = WEIR_PERMIT;
            CHECK_EQUAL(weir_guard_enter(&p, breaker, 0), 0);
            CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
        }
    while (CHECK(weir_now() < until) && thread_count() == threads);
}

static void goes_on_by_itself(void)
{
    weir_guard_stats before = figures();

    CHECK_EQUAL(thread_count(), 1);
    CHECK_EQUAL(weir_guard_leave(&held, 0), 0);
    CHECK_EQUAL(figures().succeeded, before.succeeded + 1);
    CHECK_EQUAL(figures().slow, 0);
    threads = 1;
    call_until_it_pulses();
    CHECK_EQUAL(thread_count(), 2);
    CHECK_EQUAL(figures().stored, 100);
    weir_guard_unref(breaker);
    CHECK_EQUAL(thread_count(), 1);
}

static void test_a_breaker_of_fast_calls_goes_on_in_a_child_of_fork(void)
{
    threads = thread_count();
    CHECK_EQUAL(weir_guard_new(&breaker, NULL, "b", WEIR_BREAKER(), NULL), 0);
    call_until_it_pulses();
    CHECK_EQUAL(weir_guard_enter(&held, breaker, 0), 0);
    CHECK_EQUAL(in_child(goes_on_by_itself), 0);
    CHECK_EQUAL(weir_guard_leave(&held, 0), 0);
    call_until_it_pulses();
    weir_guard_unref(breaker);
    CHECK_EQUAL(thread_count(), threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_breaker_of_fast_calls_goes_on_in_a_child_of_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
