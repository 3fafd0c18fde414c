/* Park and unpark under thousands of schedules: no wake-up is lost, deadlines are exact.
 * SPDX-License-Identifier: MIT */
#include "runtime/runtime.h"
#include "support/sim_support.h"

enum { SCHEDULES = 2500 };

/* ---- one waits for another ------------------------------------------------------------------- */

/* A flag, its waiter, and the lock that keeps the waiter alive while it is unparked. */
struct flag {
    struct wr_lock lock;
    bool set;
    struct wr_parker *waiter;
};

static bool flag_is_set(struct flag *flag, struct wr_parker *waiter)
{
    bool set;

    wr_lock(&flag->lock);
    set = flag->set;
    flag->waiter = set ? NULL : waiter;
    wr_unlock(&flag->lock);
    return set;
}

static void flag_raise(struct flag *flag)
{
    wr_lock(&flag->lock);
    flag->set = true;
    if (flag->waiter)
        wr_unpark(flag->waiter);
    wr_unlock(&flag->lock);
}

static void wait_for(struct flag *flag)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);

    while (!flag_is_set(flag, self))
        wr_park(self, WEIR_FOREVER);
}

struct pair {
    struct flag ping[8], pong[8];
};

static void pinger(void *arg)
{
    struct pair *pair = arg;
    for (int i = 0; i < 8; i++) {
        flag_raise(&pair->ping[i]);
        wait_for(&pair->pong[i]);
    }
}

static void ponger(void *arg)
{
    struct pair *pair = arg;
    for (int i = 0; i < 8; i++) {
        wait_for(&pair->ping[i]);
        flag_raise(&pair->pong[i]);
    }
}

static void two_tasks(void *arg)
{
    struct pair pair = { 0 };
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    (void)arg;
    CHECK(weir_spawn(rt, pinger, &pair, NULL) == 0);
    CHECK(weir_spawn(rt, ponger, &pair, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
}

static void test_two_tasks_wake_each_other_on_any_workers(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), two_tasks);
}

static void task_and_thread(void *arg)
{
    struct pair pair = { 0 };
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    (void)arg;
    CHECK(weir_spawn(rt, ponger, &pair, NULL) == 0);
    pinger(&pair); /* this plain thread */
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
}

static void test_a_task_and_a_thread_wake_each_other(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), task_and_thread);
}

/* ---- many wakers, stacks reused -------------------------------------------------------------- */

enum { WAITERS = 4, WAKERS = 3 };

struct crowd {
    weir_runtime *rt;
    struct flag flag[WAITERS];
    _Atomic int woken;
};

struct crowd_member {
    struct crowd *crowd;
    int number;
};

static void crowd_waiter(void *arg)
{
    struct crowd_member *me = arg;
    struct wr_parker storage, *self = wr_parker_self(&storage);
    /* The deadline races with the wakers: the body may end while it stands in an inbox. */
    weir_time deadline = weir_in_ns((int64_t)(weir_sim_random() % 3));
    while (!flag_is_set(&me->crowd->flag[me->number], self))
        if (wr_park(self, deadline) == WEIR_ETIMEDOUT)
            deadline = WEIR_FOREVER;
    atomic_fetch_add(&me->crowd->woken, 1);
}

static void crowd_waker(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < WAITERS; i++)
        flag_raise(&crowd->flag[(i + (int)(weir_sim_random() % WAITERS)) % WAITERS]);
    for (int i = 0; i < WAITERS; i++)
        flag_raise(&crowd->flag[i]);
}

/* Gives up at its deadline, so that it may end, and its stack serve another, while still posted. */
static void impatient_waiter(void *arg)
{
    struct crowd_member *me = arg;
    struct flag *flag = &me->crowd->flag[me->number];
    struct wr_parker storage, *self = wr_parker_self(&storage);
    weir_time deadline = weir_in_ns((int64_t)(weir_sim_random() % 300));
    while (!flag_is_set(flag, self))
        if (wr_park(self, deadline) == WEIR_ETIMEDOUT)
            break;
    wr_lock(&flag->lock);
    flag->waiter = NULL;
    wr_unlock(&flag->lock);
    atomic_fetch_add(&me->crowd->woken, 1);
}

static void impatient_crowd(void *arg)
{
    enum { ROUNDS = 3 };
    struct crowd c = { .rt = new_runtime(WEIR_RUNTIME(.workers = 2)) };
    struct crowd_member member[WAITERS];
    int64_t thread[WAKERS];
    (void)arg;
    for (int i = 0; i < WAITERS; i++)
        member[i] = (struct crowd_member){ &c, i };
    for (int i = 0; i < WAKERS; i++)
        thread[i] = weir_sim_thread(crowd_waker, &c, "waker");
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WAITERS; i++)
            CHECK(weir_spawn(c.rt, impatient_waiter, &member[i], NULL) == 0);
        CHECK(weir_runtime_drain(c.rt, WEIR_FOREVER) == 0);
    }
    CHECK(atomic_load(&c.woken) == ROUNDS * WAITERS);
    weir_runtime_free(c.rt);
    for (int i = 0; i < WAKERS; i++)
        weir_sim_join(thread[i]);
}

static void test_a_body_may_end_while_it_stands_in_an_inbox(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 2000), impatient_crowd);
}

static void crowd(void *arg)
{
    struct crowd c = { .rt = new_runtime(WEIR_RUNTIME(.workers = 2)) };
    struct crowd_member member[WAITERS];
    int64_t thread[WAKERS];
    (void)arg;
    for (int i = 0; i < WAITERS; i++) {
        member[i] = (struct crowd_member){ &c, i };
        CHECK(weir_spawn(c.rt, crowd_waiter, &member[i], NULL) == 0);
    }
    for (int i = 0; i < WAKERS; i++)
        thread[i] = weir_sim_thread(crowd_waker, &c, "waker");
    CHECK(weir_runtime_drain(c.rt, WEIR_FOREVER) == 0);
    CHECK(atomic_load(&c.woken) == WAITERS);
    for (int i = 0; i < WAKERS; i++)
        weir_sim_join(thread[i]);
    weir_runtime_free(c.rt);
}

static void test_no_wake_up_is_lost_among_many_wakers_and_deadlines(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), crowd);
}

static void test_no_wake_up_is_lost_while_the_clock_slips(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 500, .spurious_per_256 = 32),
            crowd);
}

/* ---- new work and idle workers ----------------------------------------------------------------
 */

static void count_one(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

struct burst {
    weir_runtime *rt;
    _Atomic int ran;
};

static void spawn_some(void *arg)
{
    struct burst *burst = arg;
    for (int i = 0; i < 6; i++) {
        CHECK(weir_spawn(burst->rt, count_one, &burst->ran, NULL) == 0);
        if (weir_sim_random() % 2)
            weir_sim_busy((int64_t)(weir_sim_random() % 2000)); /* workers fall asleep meanwhile */
    }
}

static void bursts(void *arg)
{
    struct burst burst = { .rt = new_runtime(WEIR_RUNTIME(.workers = 3)) };
    int64_t thread[2];
    (void)arg;
    for (int i = 0; i < 2; i++)
        thread[i] = weir_sim_thread(spawn_some, &burst, "spawner");
    for (int i = 0; i < 2; i++)
        weir_sim_join(thread[i]);
    CHECK(weir_runtime_drain(burst.rt, WEIR_FOREVER) == 0);
    CHECK(atomic_load(&burst.ran) == 12);
    weir_runtime_free(burst.rt);
}

static void test_spawned_bodies_always_find_a_worker(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), bursts);
}

/* Work conservation: a second body must not wait behind one that holds its worker. */
static void hold_worker(void *arg)
{
    (void)arg;
    weir_sim_busy(5 * MS);
}

static void two_at_once(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    weir_time start = weir_now();
    (void)arg;
    CHECK(weir_spawn(rt, hold_worker, NULL, NULL) == 0);
    CHECK(weir_spawn(rt, hold_worker, NULL, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(weir_now() == start + 5 * MS);
    weir_runtime_free(rt);
}

static void test_no_worker_sleeps_while_a_body_waits_to_start(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), two_at_once);
}

/* Many bodies are woken at once, on the only worker there is; each then takes a while. */
enum { WOKEN = 12 };

struct crowd_woken {
    struct flag flag[WOKEN];
    weir_time newcomer_began;
};

static void takes_a_while(void *flag)
{
    wait_for(flag);
    weir_sim_busy(1 * MS);
}

static void newcomer(void *arg)
{
    ((struct crowd_woken *)arg)->newcomer_began = weir_now();
}

static void one_comes_after_many_were_woken(void *arg)
{
    struct crowd_woken crowd = { 0 };
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    weir_time woken;
    (void)arg;
    for (int i = 0; i < WOKEN; i++)
        CHECK(weir_spawn(rt, takes_a_while, &crowd.flag[i], NULL) == 0);
    weir_sleep(weir_in_ms(1)); /* all wait */
    woken = weir_now();
    for (int i = 0; i < WOKEN; i++)
        flag_raise(&crowd.flag[i]);
    weir_sleep(woken + 4 * MS + MS / 2);
    CHECK(weir_spawn(rt, newcomer, &crowd, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(crowd.newcomer_began == woken + 5 * MS); /* when the one that ran just then had ended */
    weir_runtime_free(rt);
}

static void test_a_new_body_does_not_wait_for_all_that_were_woken_before_it(void **state)
{
    (void)state;
    explore(SCHEDULES / 10, WEIR_SIM_OPTIONS(.seed = 1), one_comes_after_many_were_woken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_tasks_wake_each_other_on_any_workers),
        cmocka_unit_test(test_a_task_and_a_thread_wake_each_other),
        cmocka_unit_test(test_no_wake_up_is_lost_among_many_wakers_and_deadlines),
        cmocka_unit_test(test_no_wake_up_is_lost_while_the_clock_slips),
        cmocka_unit_test(test_a_body_may_end_while_it_stands_in_an_inbox),
        cmocka_unit_test(test_spawned_bodies_always_find_a_worker),
        cmocka_unit_test(test_no_worker_sleeps_while_a_body_waits_to_start),
        cmocka_unit_test(test_a_new_body_does_not_wait_for_all_that_were_woken_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
