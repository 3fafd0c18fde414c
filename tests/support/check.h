/* Shared by tests with real threads: checks that may fail anywhere, and waiting for a condition.
 *
 * cmocka leaves a failed assertion by longjmp, which only the thread that runs the test may do. A
 * CHECK may fail in any body, on any thread; the test then fails when it returns.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_CHECK_H
#define WR_TESTS_CHECK_H

#include "support/sanitized.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

#include <cmocka.h>

static _Atomic int checks_failed;

static inline bool check_that(bool so, const char *what, const char *file, int line)
{
    if (!so && atomic_fetch_add(&checks_failed, 1) < 20) { /* no flood */
        printf("%s:%d: not so: %s\n", file, line, what);
        fflush(stdout);
    }
    return so;
}

/* Answers whether it holds. */
#define CHECK(condition) check_that(!!(condition), #condition, __FILE__, __LINE__)

/* Both sides are numbers; a failure shows them. */
#define CHECK_EQUAL(got, wanted) \
    check_equal((int64_t)(got), (int64_t)(wanted), #got " == " #wanted, __FILE__, __LINE__)

static inline bool check_equal(int64_t got, int64_t wanted, const char *what, const char *file,
                               int line)
{
    char text[256];

    if (got == wanted)
        return true;
    snprintf(text, sizeof(text), "%s (%lld, not %lld)", what, (long long)got, (long long)wanted);
    return check_that(false, text, file, line);
}

/* How long a test waits for something that must happen. On a quiet machine it takes milliseconds; on a
 * busy one there is no telling, so this only tells a hang from a delay. */
enum { PATIENCE_S = 300 };

static inline weir_time patience(void)
{
    return weir_in_s(PATIENCE_S);
}

/* Waits for a condition that another thread or process makes true. On a fiber, others run meanwhile. */
#define AWAIT(condition)                                                                 \
    for (weir_time await_until_ = patience(); !(condition); weir_sleep(weir_in_us(100))) \
        if (weir_now() >= await_until_) {                                                \
            check_that(false, "in time: " #condition, __FILE__, __LINE__);               \
            break;                                                                       \
        }

/* cmocka catches faults, which it can only survive on the test's own thread; elsewhere it ends the
 * program without a word. The handler that was there before, a sanitizer's or none, has more to say. */
static const int fault_signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
static struct sigaction fault_actions[4];

static __attribute__((constructor)) void remember_fault_actions(void)
{
    for (int i = 0; i < 4; i++)
        sigaction(fault_signals[i], NULL, &fault_actions[i]);
}

static inline void restore_fault_actions(void)
{
    for (int i = 0; i < 4; i++)
        sigaction(fault_signals[i], &fault_actions[i], NULL);
}

/* Tests are `static void test_...(void)`, and listed as TEST(test_...). */
#define TEST(test)                                             \
    {                                                          \
#test, test_run, NULL, NULL, (void *)(uintptr_t)(test) \
    }

static inline void test_run(void **state)
{
    void (*test)(void) = (void (*)(void))(uintptr_t)*state;

    restore_fault_actions();
    atomic_store(&checks_failed, 0);
    test();
    assert_int_equal(atomic_load(&checks_failed), 0);
}

/* On the test's own thread only, as is all that asserts. */
static inline weir_runtime *new_runtime(const weir_runtime_options *opt)
{
    weir_runtime *rt = NULL;

    assert_int_equal(weir_runtime_new(&rt, opt), 0);
    assert_non_null(rt);
    return rt;
}

static inline void drain(weir_runtime *rt)
{
    CHECK_EQUAL(weir_runtime_drain(rt, patience()), 0);
}

static inline weir_runtime_stats stats_of(weir_runtime *rt)
{
    weir_runtime_stats stats = { .size = sizeof(stats) };

    CHECK_EQUAL(weir_runtime_stats_get(&stats, rt), 0);
    return stats;
}

#endif
