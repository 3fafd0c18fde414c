/* Tasks that have nothing but a body, on real threads: some park in the middle of a turn, so that their worker begins a turn
 * of another group, while others look at both.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <pthread.h>

enum { GROUPS = 3, LOOKERS = 2, TASKS = SANITIZED ? 10000 : 50000 };

static const char *const key_of[GROUPS] = { "a", "b", "c" };
static weir_executor *ex;
static atomic_int running[GROUPS], ran[GROUPS], over;

static int sleep_now_and_then(void **value, void *group_arg)
{
    int g = (int)(intptr_t)group_arg;

    (void)value;
    CHECK_EQUAL(atomic_fetch_add(&running[g], 1), 0); /* the limit is 1 */
    if (atomic_fetch_add(&ran[g], 1) % 8 == 3)
        CHECK_EQUAL(weir_sleep(weir_in_us(20)), 0);
    atomic_fetch_sub(&running[g], 1);
    return 0;
}

static void *look(void *arg)
{
    (void)arg;
    while (!atomic_load(&over))
        for (int g = 0; g < GROUPS; g++) {
            weir_group_stats stats = { .size = sizeof(stats) };
            CHECK_EQUAL(weir_group_stats_get(&stats, ex, key_of[g]), 0);
            CHECK(stats.running <= 1 && stats.started <= TASKS);
            CHECK_EQUAL(stats.succeeded + stats.inflight + stats.waiting, stats.submitted);
        }
    return NULL;
}

static void test_turns_are_not_mixed_up(void)
{
    pthread_t thread[LOOKERS];
    weir_group *group[GROUPS];

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 2), NULL), 0);
    for (int g = 0; g < GROUPS; g++)
        assert_int_equal(weir_group_get(&group[g], ex, key_of[g]), 0);
    for (int i = 0; i < LOOKERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, look, NULL), 0);
    for (int i = 0; i < TASKS; i++)
        for (intptr_t g = 0; g < GROUPS; g++)
            CHECK_EQUAL(weir_submit(NULL, group[g], sleep_now_and_then, (void *)g, NULL), 0);
    assert_int_equal(weir_executor_drain(ex, patience()), 0);
    atomic_store(&over, 1);
    for (int i = 0; i < LOOKERS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int g = 0; g < GROUPS; g++)
        assert_int_equal(atomic_load(&ran[g]), TASKS);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(test_turns_are_not_mixed_up) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
