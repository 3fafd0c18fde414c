/* Lists of tasks on real threads, while tasks start and end and their groups are evicted.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <pthread.h>
#include <string.h>

enum { SUBMITTERS = 2, TASKS = SANITIZED ? 4000 : 20000, KEYS = 5 };

static const char *const key_of[KEYS] = { "a", "b", "c", "d", "e" };
static weir_executor *ex;
static atomic_int submitters;
static _Atomic uint64_t listed;

static int nap_now_and_then(void **value, void *arg)
{
    (void)value;
    return (intptr_t)arg % 16 ? 0 : weir_sleep(weir_in_us(50));
}

static void *submit_and_evict(void *arg)
{
    uint32_t luck = (uint32_t)(uintptr_t)arg;

    /* And until the lister, which may be without a CPU, has seen some. */
    for (int i = 0; i < TASKS || !atomic_load(&listed); i++) {
        weir_task *task = NULL;
        luck = luck * 1664525 + 1013904223;
        const char *key = key_of[luck / 65536 % KEYS];
        CHECK_EQUAL(weir_submit_key(luck >> 31 ? &task : NULL, ex, key, nap_now_and_then,
                                    (void *)(intptr_t)i,
                                    luck >> 30 & 1 ? WEIR_TASK(.id = key) : NULL),
                    0);
        if (task && luck >> 29 & 1)
            weir_task_cancel(task);
        weir_task_unref(task);
        if (i % 8 == 0)
            weir_group_evict(ex, key, 0);
    }
    atomic_fetch_sub(&submitters, 1);
    return NULL;
}

static void test_lists_are_sound_under_traffic(void)
{
    pthread_t thread[SUBMITTERS];

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .group_limit = 4), NULL), 0);
    atomic_store(&submitters, SUBMITTERS);
    for (uintptr_t i = 0; i < SUBMITTERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, submit_and_evict, (void *)(i + 1)), 0);
    while (atomic_load(&submitters)) {
        weir_task_info **list = NULL;
        size_t count = 0;
        CHECK_EQUAL(weir_executor_tasks(&list, &count, ex, NULL), 0);
        for (size_t i = 0; i < count; i++)
            CHECK(strlen(list[i]->key) == 1 &&
                  (!list[i]->id[0] || strcmp(list[i]->id, list[i]->key) == 0));
        listed += count;
        free(list);
    }
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQUAL(weir_executor_drain(ex, patience()), 0);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lists_are_sound_under_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
