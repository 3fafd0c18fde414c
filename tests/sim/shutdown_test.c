/* Freeing a runtime at any moment: every accepted body runs once, nothing is left, nothing hangs.
 * SPDX-License-Identifier: MIT */
#include "support/sim_support.h"

#include <stdatomic.h>

enum { SCHEDULES = 2000 };

struct tally {
    weir_runtime *rt;
    _Atomic int accepted, ran, cancelled;
};

static void waits_in_some_way(void *arg)
{
    struct tally *tally = arg;
    int rc = 0;
    switch (weir_sim_random() % 4) {
    case 0:
        rc = weir_sleep(WEIR_FOREVER);
        break;
    case 1:
        rc = weir_yield();
        break;
    case 2:
        rc = weir_sleep(weir_now() + (int64_t)(weir_sim_random() % 3000));
        break;
    default:
        break;
    }
    CHECK(rc == 0 || rc == WEIR_ECANCELED);
    if (rc == WEIR_ECANCELED) {
        CHECK(weir_cancelled());
        CHECK(weir_sleep(weir_now() + MS) == WEIR_ECANCELED); /* and so does every later wait */
        atomic_fetch_add(&tally->cancelled, 1);
    }
    atomic_fetch_add(&tally->ran, 1);
}

static void spawner(void *arg)
{
    struct tally *tally = arg;
    for (int i = 0; i < 6; i++) {
        weir_carrier where = weir_sim_random() % 4 ? WEIR_WORKERS : WEIR_THREADS;
        int rc = weir_spawn(tally->rt, waits_in_some_way, tally, WEIR_SPAWN(.run_on = where));
        CHECK(rc == 0 || rc == WEIR_ECLOSED);
        if (rc == 0)
            atomic_fetch_add(&tally->accepted, 1);
    }
}

/* A body that spawns more, so that spawning races with the shutdown; a thread could not, since it
 * must not use a runtime that may be gone. */
static void free_under_load(void *arg)
{
    struct tally tally = { .rt = new_runtime(WEIR_RUNTIME(.workers = 2)) };
    (void)arg;
    CHECK(weir_spawn(tally.rt, spawner, &tally, NULL) == 0);
    CHECK(weir_spawn(tally.rt, spawner, &tally, WEIR_SPAWN(.run_on = WEIR_THREADS)) == 0);
    if (weir_sim_random() % 2)
        weir_sim_busy((int64_t)(weir_sim_random() % 4000));
    weir_runtime_free(tally.rt);
    CHECK(atomic_load(&tally.ran) == atomic_load(&tally.accepted));
}

static void test_every_accepted_body_runs_once_whenever_the_runtime_is_freed(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), free_under_load);
}

static void test_the_same_while_the_clock_slips(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 300), free_under_load);
}

static void sleep_forever(void *arg)
{
    int *rc = arg;
    *rc = weir_sleep(WEIR_FOREVER);
}

static void wait_for_pipe(void *arg)
{
    int *io = arg; /* in: descriptor; out: code */
    *io = weir_fd_wait(*io, WEIR_READ, WEIR_FOREVER);
}

static int busy_call(void *arg)
{
    weir_sim_busy(*(int64_t *)arg);
    return 42;
}

struct blocking {
    int64_t ns;
    int rc, result;
};

static void blocks(void *arg)
{
    struct blocking *b = arg;
    b->rc = weir_blocking(&b->result, busy_call, &b->ns, WEIR_FOREVER);
}

static void free_wakes_waiters(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    int sleeper = 1, thread_sleeper = 1, io, thread_io, pipe_fd[2];
    struct blocking b = { .ns = 5 * MS };
    weir_time start = weir_now();
    (void)arg;
    CHECK(weir_sim_pipe(pipe_fd) == 0);
    io = thread_io = pipe_fd[0];
    CHECK(weir_spawn(rt, sleep_forever, &sleeper, NULL) == 0);
    CHECK(weir_spawn(rt, sleep_forever, &thread_sleeper, WEIR_SPAWN(.run_on = WEIR_THREADS)) == 0);
    CHECK(weir_spawn(rt, wait_for_pipe, &io, NULL) == 0);
    CHECK(weir_spawn(rt, wait_for_pipe, &thread_io, WEIR_SPAWN(.run_on = WEIR_THREADS)) == 0);
    CHECK(weir_spawn(rt, blocks, &b, NULL) == 0);
    weir_sim_busy(1 * MS);
    weir_runtime_free(rt);
    CHECK(sleeper == WEIR_ECANCELED);
    CHECK(thread_sleeper == WEIR_ECANCELED);
    CHECK(io == WEIR_ECANCELED);
    CHECK(thread_io == WEIR_ECANCELED);
    /* A blocking call that has begun is waited for: it may use the body's stack. */
    CHECK(b.rc == 0 && b.result == 42);
    CHECK(weir_now() == start + 5 * MS);
    weir_sim_close(pipe_fd[0]);
    weir_sim_close(pipe_fd[1]);
}

static void test_free_wakes_all_kinds_of_waiters_and_waits_for_blocking_calls(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), free_wakes_waiters);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void born_and_gone(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 3));
    (void)arg;
    if (weir_sim_random() % 2)
        CHECK(weir_spawn(rt, nothing, NULL, NULL) == 0);
    weir_runtime_free(rt);
}

static void test_a_runtime_can_be_freed_while_its_workers_still_start(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), born_and_gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_accepted_body_runs_once_whenever_the_runtime_is_freed),
        cmocka_unit_test(test_the_same_while_the_clock_slips),
        cmocka_unit_test(test_free_wakes_all_kinds_of_waiters_and_waits_for_blocking_calls),
        cmocka_unit_test(test_a_runtime_can_be_freed_while_its_workers_still_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
