/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include "base/os.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { THREADS = 4, TIMES = 50000 };

static struct wr_lock lock;
static uint64_t counter; /* under the lock; not atomic, so that a hole in it shows */
static _Atomic int inside, overlaps;

static int setup(void **state)
{
    (void)state;
    lock = (struct wr_lock){ 0 };
    counter = 0;
    atomic_store(&inside, 0);
    atomic_store(&overlaps, 0);
    return 0;
}

static void run_threads(void *(*main)(void *arg))
{
    pthread_t thread[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, main, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&lock.word), 0);
    assert_int_equal(atomic_load(&overlaps), 0);
}

static void enter(void)
{
    wr_lock(&lock);
    if (atomic_fetch_add(&inside, 1) != 0)
        atomic_fetch_add(&overlaps, 1);
}

static void leave(void)
{
    atomic_fetch_sub(&inside, 1);
    wr_unlock(&lock);
}

static void test_a_free_lock_is_taken_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        wr_lock(&lock);
        assert_int_equal(atomic_load(&lock.word), 1);
        wr_unlock(&lock);
        assert_int_equal(atomic_load(&lock.word), 0);
    }
}

static void *count(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        enter();
        counter++;
        leave();
    }
    return NULL;
}

static void test_short_sections_exclude_each_other(void **state)
{
    (void)state;
    run_threads(count);
    assert_int_equal(counter, THREADS * TIMES);
}

/* Sections long enough for the others to give up spinning and sleep; all of them wake again. */
static void *hold(void *arg)
{
    (void)arg;
    for (int i = 0; i < 200; i++) {
        enter();
        counter++;
        for (weir_time until = wr_os_now() + 20000; wr_os_now() < until;)
            wr_os_yield();
        leave();
    }
    return NULL;
}

static void test_no_thread_sleeps_for_ever_beside_a_free_lock(void **state)
{
    (void)state;
    run_threads(hold);
    assert_int_equal(counter, THREADS * 200);
}

static void *wait_for_it(void *arg)
{
    wr_lock(&lock);
    counter++;
    wr_unlock(&lock);
    return arg;
}

static void test_a_sleeper_gets_the_lock_when_it_is_let_go(void **state)
{
    pthread_t thread[THREADS];
    (void)state;
    wr_lock(&lock);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, wait_for_it, NULL), 0);
    while (atomic_load(&lock.word) != WR_LOCK_MARKED) /* a thread has given up spinning */
        wr_os_yield();
    assert_int_equal(counter, 0);
    wr_unlock(&lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(counter, THREADS);
    assert_int_equal(atomic_load(&lock.word), 0);
}

/* ---- convoys -------------------------------------------------------------------------------------- */

/* How many of some meetings, `ns` apart, until one makes a convoy; 0: none does. */
static int meetings_until_convoy(void **met, weir_time *now, int64_t ns)
{
    for (int i = 1; i <= 100; i++) {
        *now += ns;
        if (wr_lock_makes_convoy(met, *now))
            return i;
    }
    return 0;
}

static void test_the_fourth_lock_in_a_row_that_is_held_makes_a_convoy(void **state)
{
    void *met = NULL;
    weir_time now = 1000000;

    (void)state;
    assert_int_equal(meetings_until_convoy(&met, &now, 100), 4);
    assert_int_equal(meetings_until_convoy(&met, &now, 100),
                     3); /* it is still there: that was the first of these */
    now += 1000000;
    assert_int_equal(meetings_until_convoy(&met, &now, 100), 4);
}

static void test_locks_that_are_held_now_and_then_make_no_convoy(void **state)
{
    void *met = NULL;
    weir_time now = 1000000;

    (void)state;
    assert_int_equal(meetings_until_convoy(&met, &now, 600), 0);
    for (int i = 0; i < 100; i++) {
        now += 600;
        for (int row = 0; row < 3; row++)
            assert_false(wr_lock_makes_convoy(&met, now += 100));
    }
}

enum { MEETINGS = 8 };
static _Atomic int asked, passed;

static void *pass_when_asked(void *arg)
{
    for (int i = 1; i <= MEETINGS; i++) {
        while (atomic_load(&asked) < i)
            wr_os_yield();
        wr_lock_outermost(&lock);
        counter++;
        wr_unlock(&lock);
        atomic_store(&passed, i);
    }
    return arg;
}

static void test_a_thread_that_meets_another_at_each_lock_gets_them_all(void **state)
{
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, pass_when_asked, NULL), 0);
    for (int i = 1; i <= MEETINGS; i++) {
        wr_lock(&lock);
        atomic_store(&asked, i);
        while (atomic_load(&lock.word) != WR_LOCK_MARKED) /* it has met us, and given up spinning */
            wr_os_yield();
        assert_int_equal(counter, i - 1);
        wr_unlock(&lock);
        while (atomic_load(&passed) < i)
            wr_os_yield();
    }
    pthread_join(thread, NULL);
    assert_int_equal(counter, MEETINGS);
    assert_int_equal(atomic_load(&lock.word), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_free_lock_is_taken_at_once, setup),
        cmocka_unit_test_setup(test_short_sections_exclude_each_other, setup),
        cmocka_unit_test_setup(test_no_thread_sleeps_for_ever_beside_a_free_lock, setup),
        cmocka_unit_test_setup(test_a_sleeper_gets_the_lock_when_it_is_let_go, setup),
        cmocka_unit_test(test_the_fourth_lock_in_a_row_that_is_held_makes_a_convoy),
        cmocka_unit_test(test_locks_that_are_held_now_and_then_make_no_convoy),
        cmocka_unit_test_setup(test_a_thread_that_meets_another_at_each_lock_gets_them_all, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
