/* Task locals that are set again: each task sees what was set when it was submitted, and each value is dropped
 * once, when no task and no thread can see it any more.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

enum { VALUES = 12 };

static int value[VALUES], dropped[VALUES];

static void drop_value(void *arg)
{
    dropped[(int *)arg - value]++;
}

static const weir_local first = WEIR_LOCAL(drop_value);
static const weir_local second = WEIR_LOCAL(NULL);

static void set(int i)
{
    CHECK(weir_local_set(&first, &value[i]) == 0);
}

SIM_TEST(test_setting_a_value_again_drops_the_one_before, 1)
{
    memset(dropped, 0, sizeof(dropped));
    CHECK(weir_local_set(&second, "stays") == 0);
    for (int i = 0; i < VALUES; i++) {
        set(i);
        CHECK(weir_local_get(&first) == &value[i]);
        CHECK_EQ(dropped[i], 0);
        if (i > 0)
            CHECK_EQ(dropped[i - 1], 1);
    }
    CHECK(strcmp(weir_local_get(&second), "stays") == 0);
    weir_local_clear();
    CHECK_EQ(dropped[VALUES - 1], 1);
    CHECK(weir_local_get(&first) == NULL && weir_local_get(&second) == NULL);
}

/* Sees what was set when it was submitted, before and after a wait; what it sets itself ends with it. */
static int see(void **out, void *arg)
{
    int i = (int)((int *)arg - value);

    (void)out;
    CHECK(weir_local_get(&first) == arg);
    CHECK(strcmp(weir_local_get(&second), "shared") == 0);
    weir_sleep(weir_now() + (i % 3) * MS); /* unless the executor is freed meanwhile */
    CHECK_EQ(dropped[i], 0);
    CHECK(weir_local_get(&first) == arg);
    if (i % 2)
        CHECK(weir_local_set(&second, "own") == 0);
    return 0;
}

SIM_TEST(test_tasks_submitted_before_see_the_value_of_their_time, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));

    memset(dropped, 0, sizeof(dropped));
    CHECK(weir_local_set(&second, "shared") == 0);
    for (int i = 0; i < VALUES; i++) {
        set(i);
        CHECK(weir_submit_key(NULL, ex, "g", see, &value[i], NULL) == 0);
        CHECK(weir_local_get(&first) == &value[i]);
    }
    weir_local_clear();
    weir_executor_free(ex); /* rejects those that wait */
    for (int i = 0; i < VALUES; i++)
        CHECK_EQ(dropped[i], 1);
}

SIM_TEST(test_a_value_lives_as_long_as_a_task_may_see_it, 20)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task *task = NULL;

    memset(dropped, 0, sizeof(dropped));
    CHECK(weir_local_set(&second, "shared") == 0);
    set(2); /* whose body sleeps for two milliseconds */
    CHECK(weir_submit_key(&task, ex, "g", see, &value[2], NULL) == 0);
    set(3);
    weir_local_clear();
    CHECK_EQ(dropped[3], 1);
    CHECK_EQ(dropped[2], 0);
    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    CHECK_EQ(dropped[2], 1);
    weir_task_unref(task);
    weir_executor_free(ex);
}

/* The n-th allocation fails: the value stays the caller's, and the old one is seen. */
static void set_without_memory(void *arg)
{
    (void)arg;
    memset(dropped, 0, sizeof(dropped));
    if (weir_local_set(&first, &value[0]) == 0) {
        int rc = weir_local_set(&second, "other");
        CHECK(rc == 0 || rc == WEIR_ENOMEM);
        rc = weir_local_set(&first, &value[1]);
        CHECK(rc == 0 || rc == WEIR_ENOMEM);
        CHECK(weir_local_get(&first) == &value[rc ? 0 : 1]);
        CHECK_EQ(dropped[0], rc ? 0 : 1);
        CHECK_EQ(dropped[1], 0);
    } else {
        CHECK(weir_local_get(&first) == NULL);
        CHECK_EQ(dropped[0], 0);
    }
    weir_local_clear();
}

static void test_without_memory_the_value_stays_the_callers(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 6; n++)
        explore(1, WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n), set_without_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_setting_a_value_again_drops_the_one_before),
        cmocka_unit_test(test_tasks_submitted_before_see_the_value_of_their_time),
        cmocka_unit_test(test_a_value_lives_as_long_as_a_task_may_see_it),
        cmocka_unit_test(test_without_memory_the_value_stays_the_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
