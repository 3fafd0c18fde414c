/* Limits of the system: what cannot be had is refused, and nothing is left behind. Each limit is set in
 * a child process, which alone suffers from it.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/child.h"

#include <pthread.h>
#include <sys/prctl.h>

enum { NOBODY = 65534 };

/* Threads and descriptors of this process, to see that nothing was left behind. */
struct belongings {
    int threads, descriptors;
};

static void *do_nothing(void *arg)
{
    return arg;
}

static struct belongings belongings(void)
{
    return (struct belongings){ thread_count(), descriptor_count() };
}

static void check_nothing_left(struct belongings before)
{
    CHECK_EQUAL(thread_count(), before.threads);
    CHECK_EQUAL(descriptor_count(), before.descriptors);
}

static void count_me(void *arg)
{
    weir_yield();
    atomic_fetch_add((_Atomic int *)arg, 1);
}

/* Has a sanitizer start what it starts with the first thread. */
static void warm_up(void)
{
    pthread_t thread;

    CHECK_EQUAL(pthread_create(&thread, NULL, do_nothing, NULL), 0);
    pthread_join(thread, NULL);
}

/* Makes a runtime, which may fail with one of two codes; if it does not, it must work. */
static int try_runtime(const weir_runtime_options *opt, int failure, int other_failure)
{
    struct belongings before = belongings();
    weir_runtime *rt = (weir_runtime *)&before;
    _Atomic int ran = 0;
    int rc = weir_runtime_new(&rt, opt);

    if (rc) {
        CHECK(rc == failure || rc == other_failure);
        CHECK(rt == NULL);
    } else {
        rc = weir_spawn(rt, count_me, &ran, NULL);
        CHECK(rc == 0 || rc == WEIR_ENOMEM);
        CHECK_EQUAL(weir_runtime_drain(rt, patience()), 0);
        CHECK_EQUAL(atomic_load(&ran), rc == 0);
        weir_runtime_free(rt);
        rc = 0;
    }
    check_nothing_left(before);
    return rc;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void run_out_of_descriptors(void)
{
    int failed = 0, open = descriptor_count() + 2; /* more or less the first number that is free */

    warm_up();
    for (int limit = open; limit < open + 12; limit++) {
        CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)limit, 4096 }), 0);
        failed += try_runtime(WEIR_RUNTIME(.workers = 3), -EMFILE, -EMFILE) != 0;
    }
    CHECK(failed > 0 && failed < 12);
}

static void test_too_few_descriptors_refuse_a_runtime(void)
{
    CHECK_EQUAL(in_child(run_out_of_descriptors), 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The superuser has no limit, so be another user. */
static void threads_max(int threads)
{
    if (getuid() == 0) {
        CHECK_EQUAL(setuid(NOBODY), 0);
        prctl(PR_SET_DUMPABLE, 1); /* to go on reading /proc/self */
    }
    CHECK_EQUAL(setrlimit(RLIMIT_NPROC, &(struct rlimit){ (rlim_t)threads, (rlim_t)threads }), 0);
}

static int threads_allowed;

static void run_out_of_threads(void)
{
    warm_up();
    threads_max(threads_allowed);
    try_runtime(WEIR_RUNTIME(.workers = 3), WEIR_EAGAIN, WEIR_EAGAIN);
}

static void run_with_one_thread(void)
{
    warm_up();
    threads_max(1);
    CHECK_EQUAL(try_runtime(WEIR_RUNTIME(.workers = 3), WEIR_EAGAIN, WEIR_EAGAIN), WEIR_EAGAIN);
}

/* The first worker cannot be had; or the second, the third, the monitor. */
static void test_too_few_threads_refuse_a_runtime(void)
{
    CHECK_EQUAL(in_child(run_with_one_thread), 0);
    for (threads_allowed = 1; threads_allowed <= 6; threads_allowed++)
        CHECK_EQUAL(in_child(run_out_of_threads), 0);
}

static int no_work(void *arg)
{
    (void)arg;
    return 0;
}

static void call_in_vain(void *arg)
{
    for (int i = 0; i < 3000 && !atomic_load(&checks_failed); i++)
        CHECK_EQUAL(weir_blocking(NULL, no_work, NULL, patience()), WEIR_EAGAIN);
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void use_pool_without_threads(void)
{
    weir_runtime *rt = NULL;
    _Atomic int done = 0;

    CHECK_EQUAL(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = 1)), 0);
    threads_max(1);
    CHECK_EQUAL(weir_spawn(rt, count_me, &done, WEIR_SPAWN(.run_on = WEIR_THREADS)), WEIR_EAGAIN);
    CHECK_EQUAL(weir_spawn(rt, call_in_vain, &done, NULL), 0);
    drain(rt);
    CHECK_EQUAL(atomic_load(&done), 1);
    CHECK_EQUAL(stats_of(rt).threads, 0);
    CHECK_EQUAL(stats_of(rt).accepted, 1);
    CHECK_EQUAL(stats_of(rt).ended, 1);
    weir_runtime_free(rt);
}

static void test_a_pool_that_gets_no_thread_says_so(void)
{
    CHECK_EQUAL(in_child(use_pool_without_threads), 0);
}

/* Two workers ask at the same time. Neither may be told to wait for the thread that the other will not
 * get either. */
static void use_pool_without_threads_twice(void)
{
    weir_runtime *rt = NULL;
    _Atomic int done = 0;

    CHECK_EQUAL(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = 2, .stall_after_ms = 60000)), 0);
    threads_max(1);
    for (int i = 0; i < 8; i++)
        CHECK_EQUAL(weir_spawn(rt, call_in_vain, &done, NULL), 0);
    drain(rt);
    CHECK_EQUAL(atomic_load(&done), 8);
    weir_runtime_free(rt);
}

static void test_calls_that_get_no_thread_at_the_same_time_all_hear_of_it(void)
{
    CHECK_EQUAL(in_child(use_pool_without_threads_twice), 0);
}

struct crowd {
    _Atomic int begun, open, done;
};

static int wait_in_crowd(void *arg)
{
    struct crowd *crowd = arg;

    atomic_fetch_add(&crowd->begun, 1);
    for (weir_time limit = patience(); !atomic_load(&crowd->open) && weir_now() < limit;)
        usleep(1000);
    return 0;
}

static void join_crowd(void *arg)
{
    struct crowd *crowd = arg;

    CHECK_EQUAL(weir_blocking(NULL, wait_in_crowd, crowd, WEIR_FOREVER), 0);
    atomic_fetch_add(&crowd->done, 1);
}

/* As long as one thread lives, calls wait for it. */
static void use_pool_with_few_threads(void)
{
    struct crowd crowd = { .open = 0 };
    weir_runtime *rt = NULL;

    CHECK_EQUAL(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = 1)), 0);
    CHECK_EQUAL(weir_spawn(rt, join_crowd, &crowd, NULL), 0);
    AWAIT(atomic_load(&crowd.begun) == 1);
    threads_max(1);
    for (int i = 0; i < 9; i++)
        CHECK_EQUAL(weir_spawn(rt, join_crowd, &crowd, NULL), 0);
    AWAIT(stats_of(rt).workers_idle == 1);
    CHECK_EQUAL(atomic_load(&crowd.begun), 1);
    atomic_store(&crowd.open, 1);
    drain(rt);
    CHECK_EQUAL(atomic_load(&crowd.done), 10);
    weir_runtime_free(rt);
}

static void test_a_pool_with_one_thread_lets_the_others_wait_for_it(void)
{
    CHECK_EQUAL(in_child(use_pool_with_few_threads), 0);
}

/* A stall that cannot be compensated is still reported, and nothing breaks. */
static void stall_without_threads(void)
{
    struct crowd crowd = { .open = 0 };
    weir_runtime *rt = NULL;

    CHECK_EQUAL(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = 1)), 0);
    threads_max(1);
    CHECK_EQUAL(weir_spawn(rt, (weir_body *)(void (*)(void))wait_in_crowd, &crowd, NULL), 0);
    AWAIT(stats_of(rt).stalls == 1);
    CHECK_EQUAL(stats_of(rt).workers_live, 1);
    atomic_store(&crowd.open, 1);
    drain(rt);
    weir_runtime_free(rt);
}

static void test_a_stall_without_a_replacement_breaks_nothing(void)
{
    CHECK_EQUAL(in_child(stall_without_threads), 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

#if !SANITIZED /* a sanitizer's shadow takes more address space than any limit leaves */

/* Address space in use, and `more`. */
static void space_max(size_t more)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    CHECK(f && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &(struct rlimit){ pages * 4096 + more, RLIM_INFINITY }), 0);
}

static void run_out_of_space(void)
{
    int failed = 0, tries = 0;

    free(malloc(100000)); /* the heap and stdio have what they need */
    for (size_t more = 0; more < (size_t)64 << 20; more += 1 << 20, tries++) {
        space_max(more);
        failed += try_runtime(WEIR_RUNTIME(.workers = 3, .stack_size = 1 << 20), WEIR_ENOMEM,
                              WEIR_EAGAIN) != 0;
    }
    CHECK(failed > 0 && failed < tries);
}

static void test_too_little_address_space_refuses_a_runtime(void)
{
    CHECK_EQUAL(in_child(run_out_of_space), 0);
}

struct patient {
    _Atomic int begun, open, done;
};

static void wait_patiently(void *arg)
{
    struct patient *p = arg;

    atomic_fetch_add(&p->begun, 1);
    while (!atomic_load(&p->open))
        CHECK_EQUAL(weir_sleep(weir_in_ms(1)), 0);
    atomic_fetch_add(&p->done, 1);
}

/* Bodies that find no stack to begin on wait for one; those that have begun are not disturbed. */
static void run_out_of_stacks(void)
{
    enum { STACK = 32 << 20, BODIES = 40 };
    struct patient p = { .open = 0 };
    weir_runtime *rt = NULL;

    space_max((size_t)1 << 30);
    CHECK_EQUAL(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = 1, .stack_size = STACK)), 0);
    space_max((size_t)STACK * 3);
    for (int i = 0; i < BODIES; i++)
        CHECK_EQUAL(weir_spawn(rt, wait_patiently, &p, NULL), 0);
    AWAIT(stats_of(rt).stack_waits > 0);
    CHECK(atomic_load(&p.begun) > 0 && atomic_load(&p.begun) < BODIES);
    atomic_store(&p.open, 1);
    drain(rt);
    CHECK_EQUAL(atomic_load(&p.done), BODIES);
    weir_runtime_free(rt);
}

static void test_bodies_wait_for_a_stack_when_there_is_none(void)
{
    CHECK_EQUAL(in_child(run_out_of_stacks), 0);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_too_few_descriptors_refuse_a_runtime),
        TEST(test_too_few_threads_refuse_a_runtime),
        TEST(test_a_pool_that_gets_no_thread_says_so),
        TEST(test_calls_that_get_no_thread_at_the_same_time_all_hear_of_it),
        TEST(test_a_pool_with_one_thread_lets_the_others_wait_for_it),
        TEST(test_a_stall_without_a_replacement_breaks_nothing),
#if !SANITIZED
        TEST(test_too_little_address_space_refuses_a_runtime),
        TEST(test_bodies_wait_for_a_stack_when_there_is_none),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
