/* Blocking calls under load: each runs once or not at all, and the answer says which. Bodies that block their
 * workers are replaced, and the replacements end.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
    CALLERS = 60,
    CALLS = SANITIZED ? 150 : 1000,
    THREADS_MAX = 5,
    BODIES = SANITIZED ? 4000 : 20000,
    BURSTS = SANITIZED ? 40 : 150,
};

static _Atomic int inside, most_inside;

/* Notes how many are inside at once. */
static void enter(void)
{
    int now = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);

    while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
        ;
}

struct call {
    struct luck luck;
    int runs; /* handed from thread to thread by the library, so it needs no atomic */
};

static int block(void *arg)
{
    struct call *call = arg;

    enter();
    call->runs++;
    if (luck_below(&call->luck, 4) == 0)
        usleep((useconds_t)luck_below(&call->luck, 200));
    atomic_fetch_sub(&inside, 1);
    return call->runs;
}

static _Atomic uint64_t calls_run, calls_refused;

static void call_many(void *arg)
{
    struct luck luck = luck_of((uintptr_t)arg);

    for (int i = 0; i < CALLS; i++) {
        struct call call = { .luck = { luck_next(&luck) }, .runs = 41 };
        int result = 0;
        weir_time deadline =
            luck_below(&luck, 3) ? patience() : weir_in_us((int64_t)luck_below(&luck, 500));
        int rc = weir_blocking(&result, block, &call, deadline);
        if (rc == 0) {
            CHECK(call.runs == 42 && result == 42);
            atomic_fetch_add(&calls_run, 1);
        } else {
            CHECK_EQUAL(rc, WEIR_ETIMEDOUT);
            CHECK(weir_now() >= deadline);
            CHECK(call.runs == 41 && result == 0);
            atomic_fetch_add(&calls_refused, 1);
        }
        if (luck_below(&luck, 8) == 0)
            weir_sleep(
                weir_in_us((int64_t)luck_below(&luck, 1500))); /* threads get bored and end */
    }
}

static void test_every_call_runs_once_or_not_at_all(void)
{
    weir_runtime *rt =
        new_runtime(WEIR_RUNTIME(.workers = 2, .threads_max = THREADS_MAX, .thread_idle_ms = 1));

    atomic_store(&most_inside, 0);
    for (uintptr_t i = 0; i < CALLERS; i++)
        CHECK_EQUAL(weir_spawn(rt, call_many, (void *)i, NULL), 0);
    drain(rt);
    CHECK_EQUAL(atomic_load(&calls_run) + atomic_load(&calls_refused), CALLERS * CALLS);
    CHECK(atomic_load(&most_inside) <= THREADS_MAX);
    CHECK(atomic_load(&calls_run) > 0);
    AWAIT(stats_of(rt).threads == 0);
    weir_runtime_free(rt);
}

/* ---- bodies on threads ------------------------------------------------------------------------ */

static _Atomic uint32_t runs[BODIES];

static void run_once(void *arg)
{
    struct luck luck = luck_of(10000 + (uint64_t)((_Atomic uint32_t *)arg - runs));

    enter();
    atomic_fetch_add((_Atomic uint32_t *)arg, 1);
    if (luck_below(&luck, 16) == 0)
        CHECK_EQUAL(weir_sleep(weir_in_us((int64_t)luck_below(&luck, 100))), 0);
    atomic_fetch_sub(&inside, 1);
}

static void test_bodies_on_threads_run_exactly_once(void)
{
    weir_runtime *rt =
        new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = THREADS_MAX, .thread_idle_ms = 1));
    struct luck luck = luck_of(20000);

    atomic_store(&most_inside, 0);
    for (int i = 0; i < BODIES; i++) {
        CHECK_EQUAL(weir_spawn(rt, run_once, &runs[i], WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
        if (luck_below(&luck, 256) == 0)
            weir_sleep(weir_in_us((int64_t)luck_below(&luck, 3000)));
    }
    drain(rt);
    CHECK(atomic_load(&most_inside) <= THREADS_MAX);
    CHECK_EQUAL(stats_of(rt).ended, BODIES);
    weir_runtime_free(rt);
    for (int i = 0; i < BODIES; i++)
        CHECK_EQUAL(atomic_load(&runs[i]), 1);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static void call_until_cancelled(void *arg)
{
    struct luck luck = luck_of(30000 + (uintptr_t)arg);

    for (;;) {
        struct call call = { .luck = { luck_next(&luck) }, .runs = 0 };
        int rc = weir_blocking(NULL, block, &call, WEIR_FOREVER);
        if (rc) {
            CHECK_EQUAL(rc, WEIR_ECANCELED);
            CHECK_EQUAL(call.runs, 0);
            return;
        }
        CHECK_EQUAL(call.runs, 1);
    }
}

static void test_free_ends_calls_that_wait_for_a_thread(void)
{
    struct luck luck = luck_of(40000);

    for (int i = 0; i < BURSTS; i++) {
        weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2, .threads_max = 2));
        for (uintptr_t n = 0; n < 10; n++)
            CHECK_EQUAL(weir_spawn(rt, call_until_cancelled, (void *)n, NULL), 0);
        weir_sleep(weir_in_us((int64_t)luck_below(&luck, 2000)));
        weir_runtime_free(rt);
        CHECK_EQUAL(atomic_load(&inside), 0);
    }
}

/* ---- replacements ----------------------------------------------------------------------------- */

enum { STALLS = SANITIZED ? 600 : 3000 };

/* Blocks its worker, or waits on it, for about as long as a stall takes to be found and a replacement to end. */
static void block_the_worker(void *luck_arg)
{
    struct luck luck = luck_of((uintptr_t)luck_arg);

    if (luck_below(&luck, 4) == 0)
        weir_sleep(weir_in_us((int64_t)luck_below(&luck, 3000)));
    usleep((useconds_t)luck_below(&luck, 4000));
    atomic_fetch_add(&calls_run, 1);
}

static void test_replacements_come_and_go(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2, .stall_after_ms = 1,
                                                .thread_idle_ms = 1, .replacements_max = 20));
    struct luck luck = luck_of(50000);

    atomic_store(&calls_run, 0);
    for (uintptr_t i = 0; i < STALLS; i++) {
        CHECK_EQUAL(weir_spawn(rt, block_the_worker, (void *)(60000 + i), NULL), 0);
        if (luck_below(&luck, 8) == 0)
            weir_sleep(weir_in_us((int64_t)luck_below(&luck, 20000)));
    }
    drain(rt);
    CHECK_EQUAL(atomic_load(&calls_run), STALLS);
    CHECK(stats_of(rt).stalls > 0);
    AWAIT(stats_of(rt).workers_live == 2);
    weir_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_call_runs_once_or_not_at_all),
        TEST(test_bodies_on_threads_run_exactly_once),
        TEST(test_free_ends_calls_that_wait_for_a_thread),
        TEST(test_replacements_come_and_go),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
