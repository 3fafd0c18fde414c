/* Groups on threads that are too few for them, on real threads: never more bodies than threads, no task is left
 * waiting, and nothing is lost, while tasks are cancelled and time out and groups are paused and evicted.
 * A cancel ends every wait of a body on a thread.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>

#if SANITIZED
enum { TASKS = 3000 };
#else
enum { TASKS = 30000 };
#endif
enum { GROUPS = 6, SUBMITTERS = 2, THREADS = 3 };

struct load {
    weir_executor *ex;
    _Atomic int running;
    _Atomic uint64_t began, submitted;
    unsigned seed;
    _Atomic unsigned submitters;
};

static const char *const names[] = { "default", "A", "own" };

static int domain_for(const char **domain, const char *key, void *arg)
{
    (void)arg;
    *domain = names[(key[1] - '0') % 3];
    return 0;
}

static int body(void **value, void *arg)
{
    struct load *load = arg;
    unsigned luck = (unsigned)atomic_fetch_add(&load->began, 1);
    struct timespec blink = { .tv_nsec = luck % 50000 };

    *value = NULL;
    CHECK(atomic_fetch_add(&load->running, 1) < THREADS);
    if (luck % 16 == 0)
        weir_sleep(weir_in_us(luck % 1000));
    else if (luck % 16 == 1)
        nanosleep(&blink, NULL);
    atomic_fetch_sub(&load->running, 1);
    return 0;
}

static void *submitter(void *arg)
{
    struct load *load = arg;
    unsigned luck = load->seed + 7919 * atomic_fetch_add(&load->submitters, 1);
    char key[8];

    for (int i = 0; i < TASKS / SUBMITTERS; i++) {
        unsigned kind = (unsigned)rand_r(&luck);
        weir_task *handle = NULL;
        weir_deadlines deadlines = { .wait_ms = kind % 3 == 0 ? 1 + kind % 5 : 0 };
        snprintf(key, sizeof(key), "g%u", (unsigned)rand_r(&luck) % GROUPS);
        if (kind % 2)
            CHECK(weir_submit_key(NULL, load->ex, key, body, load, NULL) == 0);
        else
            CHECK(weir_submit_key(&handle, load->ex, key, body, load,
                                  WEIR_TASK(.deadlines = deadlines)) == 0);
        atomic_fetch_add(&load->submitted, 1);
        if (handle && kind % 16 == 0)
            weir_task_cancel(handle);
        else if (handle && kind % 64 == 2)
            CHECK(weir_task_wait(NULL, handle, WEIR_FOREVER) == 0);
        weir_task_unref(handle);
    }
    return NULL;
}

static void *meddler(void *arg)
{
    struct load *load = arg;
    unsigned luck = load->seed * 31;
    weir_group *group = NULL;
    char key[8];

    while (atomic_load(&load->submitted) < TASKS / SUBMITTERS * SUBMITTERS) {
        snprintf(key, sizeof(key), "g%u", (unsigned)rand_r(&luck) % GROUPS);
        switch (rand_r(&luck) % 4) {
        case 0:
            CHECK(weir_group_get(&group, load->ex, key) == 0);
            weir_group_pause(group);
            weir_sleep(weir_in_us(rand_r(&luck) % 300));
            weir_group_resume(group);
            break;
        case 1:
            CHECK(weir_group_evict(load->ex, key, rand_r(&luck) % 2 ? WEIR_CARRY_OVER : 0) == 0);
            break;
        case 2:
            CHECK(weir_group_get(&group, load->ex, key) == 0);
            CHECK(weir_group_cool_down(group, weir_in_us(rand_r(&luck) % 300)) == 0);
            break;
        default:
            CHECK(weir_executor_resize(load->ex, rand_r(&luck) % 2 ? 4 : WEIR_NO_LIMIT, 0) == 0);
        }
        weir_sleep(weir_in_us(rand_r(&luck) % 500));
    }
    return NULL;
}

static void run_load(const weir_policy *policy)
{
    struct load load = { .seed = (unsigned)seed };
    pthread_t thread[SUBMITTERS + 1];
    weir_executor_stats s = { .size = sizeof(s) };

    CHECK(weir_executor_new(&load.ex, policy, NULL) == 0);
    for (int i = 0; i < SUBMITTERS; i++)
        CHECK(pthread_create(&thread[i], NULL, submitter, &load) == 0);
    CHECK(pthread_create(&thread[SUBMITTERS], NULL, meddler, &load) == 0);
    for (int i = 0; i <= SUBMITTERS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK(weir_executor_drain(load.ex, patience()) == 0);
    CHECK(weir_executor_stats_get(&s, load.ex) == 0);
    CHECK(s.submitted == TASKS / SUBMITTERS * SUBMITTERS);
    CHECK(s.submitted == s.succeeded + s.failed + s.cancelled + s.rejected + s.timed_out);
    weir_executor_free(load.ex);
}

static void test_without_domains(void **state)
{
    weir_group_policy groups[GROUPS] = { { .key = NULL } };
    char key[GROUPS][16];

    (void)state;
    for (int i = 0; i < GROUPS; i++) {
        snprintf(key[i], sizeof(key[i]), "g%d", i);
        groups[i] =
            (weir_group_policy){ .key = key[i], .run_on = WEIR_THREADS, .limit = 1 + i % 3 };
    }
    run_load(WEIR_POLICY(.workers = 2, .groups = groups, .group_count = GROUPS,
                         .threads_max = THREADS, .rejection = WEIR_DISCARD));
}

static void test_with_domains(void **state)
{
    weir_domain_policy domains[] = {
        { .name = "default", .run_on = WEIR_THREADS },
        { .name = "A", .slots = 2, .slots_mode = WEIR_RESERVED, .run_on = WEIR_THREADS },
        { .name = "own", .slots = 2, .workers = 1, .run_on = WEIR_THREADS },
    };

    (void)state;
    run_load(WEIR_POLICY(.workers = 2, .group_limit = 3, .slots = 7, .domains = domains,
                         .domain_count = 3, .domain_for = domain_for, .threads_max = THREADS,
                         .rejection = WEIR_DISCARD));
}

/* ---- waits for descriptors ---------------------------------------------------------------------- */

enum { READERS = THREADS, ROUNDS = TASKS / 30 };

static int reads_for_ever(void **value, void *fd_arg)
{
    char byte;

    *value = NULL;
    return (int)weir_read(*(int *)fd_arg, &byte, 1, WEIR_FOREVER);
}

/* Cancelled on its way to the thread, before its wait, in it, or when its deadline passes as well. */
static void test_a_cancel_wakes_a_wait_for_a_descriptor(void **state)
{
    weir_group_policy groups[] = { { .key = "io", .limit = READERS, .run_on = WEIR_THREADS } };
    unsigned luck = (unsigned)seed;
    weir_task *task[READERS];
    weir_executor *ex;
    int fds[2];

    (void)state;
    CHECK(pipe(fds) == 0);
    CHECK(weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .groups = groups, .group_count = 1),
                            NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < READERS; i++)
            CHECK(weir_submit_key(&task[i], ex, "io", reads_for_ever, &fds[0],
                                  WEIR_TASK(.deadlines.run_ms = i ? 0 : 1)) == 0);
        weir_sleep(weir_in_us(rand_r(&luck) % 1100));
        for (int i = 0; i < READERS; i++) {
            weir_task_cancel(task[i]);
            weir_task_unref(task[i]);
        }
        CHECK(weir_executor_drain(ex, patience()) == 0);
    }
    weir_executor_free(ex);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_domains),
        cmocka_unit_test(test_with_domains),
        cmocka_unit_test(test_a_cancel_wakes_a_wait_for_a_descriptor),
    };
    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
