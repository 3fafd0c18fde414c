/* Groups and their limits in virtual time.
 * SPDX-License-Identifier: MIT */
#include "support/sim_support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static weir_executor *new_executor(const weir_policy *policy)
{
    weir_executor *ex = NULL;
    weir_message why;
    if (weir_executor_new(&ex, policy, &why))
        weir_sim_fail("executor: %s", why.text);
    return ex;
}

static weir_group *group_of(weir_executor *ex, const char *key)
{
    weir_group *group;
    CHECK(weir_group_get(&group, ex, key) == 0);
    return group;
}

struct gauge {
    _Atomic int now, peak, ran;
};

static int nap(void **value, void *arg)
{
    struct gauge *gauge = arg;
    int now = atomic_fetch_add(&gauge->now, 1) + 1;
    if (now > atomic_load(&gauge->peak))
        atomic_store(&gauge->peak, now);
    CHECK(weir_sleep(weir_now() + 80 * MS) == 0);
    atomic_fetch_sub(&gauge->now, 1);
    atomic_fetch_add(&gauge->ran, 1);
    *value = NULL;
    return 0;
}

static void limit_holds(void *arg)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_group *group = group_of(ex, "group-1");
    struct gauge gauge = { 0 };
    weir_task *task[8];
    weir_time start = weir_now();
    (void)arg;
    for (int i = 0; i < 8; i++)
        CHECK(weir_submit(&task[i], group, nap, &gauge, NULL) == 0);
    for (int i = 0; i < 8; i++) {
        weir_result result = WEIR_RESULT;
        CHECK(weir_task_wait(&result, task[i], WEIR_FOREVER) == 0);
        CHECK(result.outcome == WEIR_DONE);
        CHECK(result.queued_at == start);
        CHECK(result.started_at == start + i / 2 * 80 * MS);
        CHECK(result.ended_at == start + (i / 2 + 1) * 80 * MS);
        weir_task_unref(task[i]);
    }
    CHECK(gauge.peak == 2 && gauge.ran == 8);
    weir_executor_free(ex);
}

static void test_no_more_than_the_limit_run_at_once(void **state)
{
    (void)state;
    explore(1000, WEIR_SIM_OPTIONS(.seed = 1), limit_holds);
}

static int count_up(void **value, void *arg)
{
    (void)value;
    atomic_fetch_add((_Atomic int *)arg, 1);
    return 0;
}

static void detached(void *arg)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    _Atomic int ran = 0;
    char key[8];
    (void)arg;
    for (int i = 0; i < 60; i++) {
        snprintf(key, sizeof(key), "g%d", i % 5);
        CHECK(weir_submit_key(NULL, ex, key, count_up, &ran, NULL) == 0);
    }
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(ran == 60);
    weir_executor_free(ex);
}

static void test_detached_tasks_all_run(void **state)
{
    (void)state;
    explore(1000, WEIR_SIM_OPTIONS(.seed = 1), detached);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_more_than_the_limit_run_at_once),
        cmocka_unit_test(test_detached_tasks_all_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
