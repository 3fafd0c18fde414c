/* Blocking calls and bodies on threads: the elastic pool as users meet it.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* Calls that stay inside until the gate opens. */
struct gate {
    _Atomic int inside, most, passed, open;
};

static int pass_gate(void *arg)
{
    struct gate *gate = arg;
    int now = atomic_fetch_add(&gate->inside, 1) + 1, most = atomic_load(&gate->most);

    while (now > most && !atomic_compare_exchange_weak(&gate->most, &most, now))
        ;
    for (weir_time limit = patience(); !atomic_load(&gate->open) && weir_now() < limit;)
        poll(NULL, 0, 1); /* as code that knows nothing of weir would */
    atomic_fetch_sub(&gate->inside, 1);
    return atomic_fetch_add(&gate->passed, 1);
}

struct caller {
    struct gate *gate;
    weir_time deadline;
    int wanted;
    _Atomic int begun, done;
};

static void call_gate(void *arg)
{
    struct caller *caller = arg;
    int result = -1;

    atomic_store(&caller->begun, 1);
    CHECK_EQUAL(weir_blocking(&result, pass_gate, caller->gate, caller->deadline), caller->wanted);
    CHECK_EQUAL(result >= 0, caller->wanted == 0);
    atomic_store(&caller->done, 1);
}

static void spawn_caller(weir_runtime *rt, struct caller *caller, struct gate *gate,
                         weir_time deadline, int wanted)
{
    caller->gate = gate;
    caller->deadline = deadline;
    caller->wanted = wanted;
    atomic_store(&caller->begun, 0);
    atomic_store(&caller->done, 0);
    CHECK_EQUAL(weir_spawn(rt, call_gate, caller, NULL), 0);
}

/* ---- elastic --------------------------------------------------------------------------------- */

static void test_calls_run_at_once_each_on_a_thread(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    struct gate gate = { .open = 0 };
    struct caller caller[20];

    CHECK_EQUAL(stats_of(rt).threads, 0);
    for (int i = 0; i < 20; i++)
        spawn_caller(rt, &caller[i], &gate, WEIR_FOREVER, 0);
    AWAIT(atomic_load(&gate.inside) == 20);
    CHECK_EQUAL(stats_of(rt).threads, 20);
    atomic_store(&gate.open, 1);
    drain(rt);
    CHECK_EQUAL(atomic_load(&gate.passed), 20);
    weir_runtime_free(rt);
}

static void test_calls_beyond_the_limit_wait_their_turn(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 3));
    struct gate gate = { .open = 0 };
    struct caller caller[10];

    for (int i = 0; i < 10; i++)
        spawn_caller(rt, &caller[i], &gate, WEIR_FOREVER, 0);
    for (int i = 0; i < 10; i++)
        AWAIT(atomic_load(&caller[i].begun));
    AWAIT(atomic_load(&gate.inside) == 3);
    CHECK_EQUAL(stats_of(rt).threads, 3);
    atomic_store(&gate.open, 1);
    drain(rt);
    CHECK_EQUAL(atomic_load(&gate.passed), 10);
    CHECK_EQUAL(atomic_load(&gate.most), 3);
    weir_runtime_free(rt);
}

static void test_a_thread_that_is_free_is_used_again(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .thread_idle_ms = 60000));
    struct gate gate = { .open = 1 };
    struct caller caller;

    for (int i = 0; i < 20; i++) {
        uint64_t before = stats_of(rt).threads;
        spawn_caller(rt, &caller, &gate, WEIR_FOREVER, 0);
        drain(rt);
        /* A call that comes before the last one's thread is idle again may start another. */
        CHECK(stats_of(rt).threads <= before + 1);
    }
    CHECK(stats_of(rt).threads < 20);
    weir_runtime_free(rt);
}

static void test_threads_with_nothing_to_do_end(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .thread_idle_ms = 5));
    struct caller caller[5];

    for (int round = 0; round < 3; round++) {
        struct gate gate = { .open = 0 };
        for (int i = 0; i < 5; i++)
            spawn_caller(rt, &caller[i], &gate, WEIR_FOREVER, 0);
        AWAIT(atomic_load(&gate.inside) == 5);
        CHECK_EQUAL(stats_of(rt).threads, 5);
        atomic_store(&gate.open, 1);
        drain(rt);
        AWAIT(stats_of(rt).threads == 0);
    }
    weir_runtime_free(rt);
}

static void set_flag(void *arg)
{
    atomic_store((_Atomic int *)arg, 1);
}

static void test_a_worker_is_free_while_its_body_blocks_elsewhere(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    struct gate gate = { .open = 0 };
    struct caller caller;
    _Atomic int flag = 0;

    spawn_caller(rt, &caller, &gate, WEIR_FOREVER, 0);
    AWAIT(atomic_load(&gate.inside) == 1);
    CHECK_EQUAL(weir_spawn(rt, set_flag, &flag, NULL), 0);
    AWAIT(atomic_load(&flag));
    CHECK(!atomic_load(&caller.done));
    atomic_store(&gate.open, 1);
    drain(rt);
    weir_runtime_free(rt);
}

/* ---- deadlines and the end ------------------------------------------------------------------- */

static void test_a_deadline_passes_while_no_thread_is_free(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 1));
    struct gate gate = { .open = 0 };
    struct caller first, late, never;

    spawn_caller(rt, &first, &gate, WEIR_FOREVER, 0);
    AWAIT(atomic_load(&gate.inside) == 1);
    spawn_caller(rt, &late, &gate, weir_in_ms(5), WEIR_ETIMEDOUT);
    spawn_caller(rt, &never, &gate, WEIR_NOW_OR_NEVER, WEIR_ETIMEDOUT);
    AWAIT(atomic_load(&late.done) && atomic_load(&never.done));
    CHECK(weir_now() >= late.deadline);
    atomic_store(&gate.open, 1);
    drain(rt);
    CHECK_EQUAL(atomic_load(&gate.passed), 1); /* those two never ran */
    weir_runtime_free(rt);
}

static void test_a_call_that_has_begun_is_waited_for_beyond_its_deadline(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 1));
    struct gate gate = { .open = 0 };
    struct caller caller;
    _Atomic int flag = 0;

    spawn_caller(rt, &caller, &gate, WEIR_NOW_OR_NEVER, 0); /* a free thread needs no wait */
    AWAIT(atomic_load(&gate.inside) == 1);
    CHECK_EQUAL(weir_spawn(rt, set_flag, &flag, NULL), 0);
    AWAIT(atomic_load(&flag));
    CHECK(!atomic_load(&caller.done));
    atomic_store(&gate.open, 1);
    drain(rt);
    CHECK_EQUAL(atomic_load(&caller.done), 1);
    weir_runtime_free(rt);
}

static void *open_later(void *arg)
{
    struct caller *queued = arg;

    AWAIT(atomic_load(&queued->done)); /* cancelled: so the runtime is being freed */
    CHECK_EQUAL(atomic_load(&queued->gate->inside), 1);
    atomic_store(&queued->gate->open, 1);
    return NULL;
}

static void test_free_waits_for_calls_that_have_begun_and_drops_the_others(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 1));
    struct gate gate = { .open = 0 };
    struct caller begun, queued;
    pthread_t opener;

    spawn_caller(rt, &begun, &gate, WEIR_FOREVER, 0);
    AWAIT(atomic_load(&gate.inside) == 1);
    spawn_caller(rt, &queued, &gate, WEIR_FOREVER, WEIR_ECANCELED);
    AWAIT(atomic_load(&queued.begun));
    assert_int_equal(pthread_create(&opener, NULL, open_later, &queued), 0);
    weir_runtime_free(rt);
    pthread_join(opener, NULL);
    CHECK_EQUAL(atomic_load(&begun.done), 1);
    CHECK_EQUAL(atomic_load(&gate.passed), 1);
}

/* ---- from elsewhere -------------------------------------------------------------------------- */

static int note_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    return 5;
}

static void call_inline(void *arg)
{
    pthread_t thread;
    int result = 0;

    CHECK_EQUAL(weir_blocking(&result, note_thread, &thread, WEIR_NOW_OR_NEVER), 0);
    CHECK_EQUAL(result, 5);
    CHECK(pthread_equal(thread, pthread_self()));
    if (arg)
        set_flag(arg);
}

static void test_a_plain_thread_runs_the_call_itself(void)
{
    call_inline(NULL);
}

static void test_a_body_on_a_thread_runs_the_call_itself(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 1));
    _Atomic int done = 0;

    CHECK_EQUAL(weir_spawn(rt, call_inline, &done, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    drain(rt);
    CHECK_EQUAL(atomic_load(&done), 1);
    weir_runtime_free(rt);
}

static void call_elsewhere(void *arg)
{
    pthread_t thread = pthread_self();

    CHECK_EQUAL(weir_blocking(NULL, note_thread, &thread, WEIR_FOREVER), 0);
    CHECK(!pthread_equal(thread, pthread_self()));
    CHECK_EQUAL(weir_blocking(NULL, NULL, NULL, WEIR_FOREVER), WEIR_EINVAL);
    set_flag(arg);
}

static void test_a_task_has_the_call_run_on_another_thread(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    _Atomic int done = 0;

    CHECK_EQUAL(weir_spawn(rt, call_elsewhere, &done, NULL), 0);
    drain(rt);
    CHECK_EQUAL(atomic_load(&done), 1);
    weir_runtime_free(rt);
    CHECK_EQUAL(weir_blocking(NULL, NULL, NULL, WEIR_FOREVER), WEIR_EINVAL);
}

/* ---- bodies on threads ------------------------------------------------------------------------ */

static void body_in_gate(void *arg)
{
    char name[32] = "";

    CHECK_EQUAL(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
    CHECK(strncmp(name, "weir-t", 6) == 0);
    CHECK_EQUAL(weir_sleep(weir_in_us(100)), 0);
    CHECK_EQUAL(weir_yield(), 0);
    pass_gate(arg);
}

static void test_bodies_on_threads_may_block_as_they_like(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 4));
    struct gate gate = { .open = 0 };
    _Atomic int flag = 0;

    for (int i = 0; i < 12; i++)
        CHECK_EQUAL(weir_spawn(rt, body_in_gate, &gate, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    AWAIT(atomic_load(&gate.inside) == 4);
    CHECK_EQUAL(weir_spawn(rt, set_flag, &flag, NULL),
                0); /* the worker has nothing to do with it */
    AWAIT(atomic_load(&flag));
    CHECK_EQUAL(weir_runtime_drain(rt, WEIR_NOW_OR_NEVER), WEIR_ETIMEDOUT);
    atomic_store(&gate.open, 1);
    drain(rt);
    CHECK_EQUAL(atomic_load(&gate.passed), 12);
    CHECK_EQUAL(atomic_load(&gate.most), 4);
    CHECK_EQUAL(stats_of(rt).ended, 13);
    weir_runtime_free(rt);
}

struct place {
    _Atomic int *next;
    int number;
};

static void take_place(void *arg)
{
    struct place *place = arg;

    CHECK_EQUAL(atomic_fetch_add(place->next, 1), place->number);
}

static void test_bodies_that_wait_for_a_thread_start_in_order(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .threads_max = 1));
    struct place place[100];
    _Atomic int next = 0;

    for (int i = 0; i < 100; i++) {
        place[i] = (struct place){ &next, i };
        CHECK_EQUAL(weir_spawn(rt, take_place, &place[i], WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    }
    drain(rt);
    CHECK_EQUAL(atomic_load(&next), 100);
    weir_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_calls_run_at_once_each_on_a_thread),
        TEST(test_calls_beyond_the_limit_wait_their_turn),
        TEST(test_a_thread_that_is_free_is_used_again),
        TEST(test_threads_with_nothing_to_do_end),
        TEST(test_a_worker_is_free_while_its_body_blocks_elsewhere),
        TEST(test_a_deadline_passes_while_no_thread_is_free),
        TEST(test_a_call_that_has_begun_is_waited_for_beyond_its_deadline),
        TEST(test_free_waits_for_calls_that_have_begun_and_drops_the_others),
        TEST(test_a_plain_thread_runs_the_call_itself),
        TEST(test_a_body_on_a_thread_runs_the_call_itself),
        TEST(test_a_task_has_the_call_run_on_another_thread),
        TEST(test_bodies_on_threads_may_block_as_they_like),
        TEST(test_bodies_that_wait_for_a_thread_start_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
