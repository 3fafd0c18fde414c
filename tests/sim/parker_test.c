/* Parking for those outside the library: a body waits for a thread's word and the other way round, under many schedules.
 * SPDX-License-Identifier: MIT */
#include "base/lock.h"
#include "support/sim_support.h"

#include <weir/sys/park.h>

/* A flag, its waiter, and the lock that keeps the waiter there while it is unparked. */
struct flag {
    struct wr_lock lock;
    bool set;
    weir_parker *waiter;
};

static void flag_raise(struct flag *flag)
{
    wr_lock(&flag->lock);
    flag->set = true;
    if (flag->waiter)
        weir_unpark(flag->waiter);
    wr_unlock(&flag->lock);
}

static int flag_wait(struct flag *flag, weir_time deadline)
{
    weir_parker_room room;
    int rc = 0;

    wr_lock(&flag->lock);
    flag->waiter = weir_parker_self(&room);
    while (!flag->set && !rc) {
        wr_unlock(&flag->lock);
        rc = weir_park(flag->waiter, deadline);
        wr_lock(&flag->lock);
    }
    flag->waiter = NULL;
    wr_unlock(&flag->lock);
    return flag->set ? 0 : rc;
}

struct meeting {
    struct flag there, back;
};

static void meet(void *arg)
{
    struct meeting *meeting = arg;

    CHECK(weir_on_worker());
    CHECK(flag_wait(&meeting->there, WEIR_FOREVER) == 0);
    flag_raise(&meeting->back);
}

static void body_and_thread(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    struct meeting meeting = { 0 };
    struct flag never = { 0 };
    weir_time deadline;

    (void)arg;
    CHECK(!weir_on_worker());
    CHECK(weir_spawn(rt, meet, &meeting, NULL) == 0);
    flag_raise(&meeting.there);
    CHECK(flag_wait(&meeting.back, WEIR_FOREVER) == 0);
    deadline = weir_in_ms(7);
    CHECK(flag_wait(&never, deadline) == WEIR_ETIMEDOUT);
    CHECK(weir_now() >= deadline);
    weir_runtime_free(rt);
}

static void on_threads(void *arg)
{
    CHECK(!weir_on_worker());
    flag_raise(arg);
}

static void a_thread_of_the_pool_is_no_worker(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    struct flag flag = { 0 };

    (void)arg;
    CHECK(weir_spawn(rt, on_threads, &flag, WEIR_SPAWN(.run_on = WEIR_THREADS)) == 0);
    CHECK(flag_wait(&flag, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
}

static void test_a_body_and_a_thread_wait_for_each_other(void **state)
{
    (void)state;
    explore(500, WEIR_SIM_OPTIONS(.seed = 1), body_and_thread);
}

static void test_a_thread_of_the_pool_is_no_worker(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), a_thread_of_the_pool_is_no_worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_body_and_a_thread_wait_for_each_other),
        cmocka_unit_test(test_a_thread_of_the_pool_is_no_worker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
