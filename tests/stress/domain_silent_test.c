/* Tasks without handles, of groups in several domains, on real threads: submits, hand-overs, evictions, pauses,
 * loans, releases and restores at once.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

#include <cmocka.h>

enum { SUBMITTERS = 3, TASKS = 20000, KEYS = 9 };

static weir_executor *ex;
static _Atomic int done, ran;

static int domain_for(const char **domain, const char *key, void *arg)
{
    static const char *const name[] = { "default", "A", "B" };

    (void)arg;
    *domain = name[(key[1] - '0') % 3];
    return 0;
}

static int body(void **value, void *arg)
{
    *value = NULL;
    ran++;
    if ((uintptr_t)arg % 64 == 0)
        weir_sleep(weir_now() + 20000);
    return 0;
}

static void *submitter(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;

    for (uintptr_t i = 0; i < TASKS; i++) {
        char key[] = "k0";
        key[1] = (char)('0' + rand_r(&seed) % KEYS);
        weir_task *task = NULL;
        unsigned r = (unsigned)rand_r(&seed);
        CHECK(weir_submit_key(r % 8 ? NULL : &task, ex, key, body, (void *)i,
                              r % 5 ? NULL
                                    : WEIR_TASK(.cost = 1 + r % 3, .priority = (uint8_t)(r % 5),
                                                .deadlines = { .wait_ms = 1 + r % 3,
                                                               .run_ms = 1 + r % 2 })) == 0);
        if (task && r % 3 == 0)
            weir_task_cancel(task);
        weir_task_unref(task);
    }
    done++;
    return NULL;
}

static void test_tasks_without_handles_all_come_to_an_end(void **state)
{
    weir_domain_policy domains[] = {
        { .name = "A", .slots = 2 },
        { .name = "B", .slots = 2, .slots_mode = WEIR_RESERVED, .workers = 1 },
        { .name = "default", .lend_max = 1 },
    };
    pthread_t thread[SUBMITTERS];
    unsigned seed = 7;

    (void)state;
    CHECK(weir_executor_new(
              &ex,
              WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 6, .inflight_max = 5,
                          .domains = domains, .domain_count = 3, .domain_for = domain_for,
                          .rejection = WEIR_DISCARD, .overdue = WEIR_RELEASE,
                          .lending = { .period_ms = 1, .hold = 1, .headroom_percent = WEIR_NONE }),
              NULL) == 0);
    for (uintptr_t i = 0; i < SUBMITTERS; i++)
        CHECK(pthread_create(&thread[i], NULL, submitter, (void *)(i + 1)) == 0);
    while (done < SUBMITTERS) {
        char key[] = "k0";
        const char *name = rand_r(&seed) % 2 ? "A" : "B";
        weir_group *group = NULL;
        key[1] = (char)('0' + rand_r(&seed) % KEYS);
        switch (rand_r(&seed) % 5) {
        case 0:
            weir_domain_release(ex, name, NULL, rand_r(&seed) % 2 ? WEIR_CANCEL_RUNNING : 0, NULL);
            break;
        case 1:
        case 2:
            weir_domain_restore(ex, name, NULL);
            break;
        case 3:
            CHECK(weir_group_evict(ex, key, rand_r(&seed) % 2 ? WEIR_CARRY_OVER : 0) == 0);
            break;
        default:
            CHECK(weir_group_get(&group, ex, key) == 0);
            weir_group_pause(group);
            weir_group_run_on(group, rand_r(&seed) % 2 ? WEIR_THREADS : WEIR_WORKERS);
            weir_group_resume(group);
        }
    }
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(thread[i], NULL);
    weir_domain_restore(ex, "A", NULL);
    weir_domain_restore(ex, "B", NULL);
    CHECK(weir_executor_drain(ex, patience()) == 0);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        test_tasks_without_handles_all_come_to_an_end) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
