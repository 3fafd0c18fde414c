/* Bodies that wait for each other's tasks, over two executors, on real threads: whatever circles they close, all ends.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

enum { EXECUTORS = 2, GROUPS = 6, ROUNDS = SANITIZED ? 60 : 300, TASKS = 40, DEPTH = 3 };

static weir_executor *executor[EXECUTORS];
static _Atomic uint64_t luck_of_body, refused, waited;

static const char *const group_name[GROUPS] = { "a", "b", "c", "d", "e", "f" };

static int waits(void **value, void *depth_arg);

/* NULL: there was no room, or waiting for some would have closed a circle. */
static weir_task *submit_some(struct luck *luck, uintptr_t depth)
{
    weir_task *task = NULL;
    int rc = weir_submit_key(&task, executor[luck_below(luck, EXECUTORS)],
                             group_name[luck_below(luck, GROUPS)], waits, (void *)depth,
                             WEIR_TASK(.cost = 1 + (uint32_t)luck_below(luck, 2),
                                       .priority = (uint8_t)luck_below(luck, 4)));

    CHECK(rc == 0 || rc == WEIR_EDEADLK);
    refused += rc == WEIR_EDEADLK;
    return task;
}

static void count_wait(int rc)
{
    CHECK(rc == 0 || rc == WEIR_EREJECTED || rc == WEIR_EDEADLK);
    refused += rc == WEIR_EDEADLK;
    waited++;
}

static int waits(void **value, void *depth_arg)
{
    struct luck luck = luck_of(luck_of_body++);
    uintptr_t depth = (uintptr_t)depth_arg;
    weir_task *task[2] = { NULL, NULL };

    *value = NULL;
    if (!depth)
        return luck_below(&luck, 2) ? weir_yield() : 0;
    task[0] = submit_some(&luck, depth - 1);
    task[1] = submit_some(&luck, depth - 1);
    if (luck_below(&luck, 4) == 0 && (task[0] || task[1]))
        count_wait(weir_task_wait_any(NULL, task, 2, WEIR_FOREVER));
    else
        count_wait(weir_task_wait_all(task, 2, WEIR_FOREVER));
    weir_task_unref(task[0]);
    weir_task_unref(task[1]);
    return 0;
}

static void one_round(uint64_t round)
{
    struct luck luck = luck_of(~round);

    for (int i = 0; i < EXECUTORS; i++) {
        bool blocks = luck_below(&luck, 2);
        CHECK(weir_executor_new(&executor[i],
                                WEIR_POLICY(.workers = 2,
                                            .group_limit = 2 + (int64_t)luck_below(&luck, 3),
                                            .inflight_max = luck_below(&luck, 2) ? 0 : 4,
                                            .group_queue_max = blocks ? 4 : 0,
                                            .rejection = blocks ? WEIR_BLOCK : WEIR_ABORT),
                                NULL) == 0);
    }
    for (int i = 0; i < TASKS; i++)
        CHECK(weir_submit_key(NULL, executor[luck_below(&luck, EXECUTORS)],
                              group_name[luck_below(&luck, GROUPS)], waits,
                              (void *)(uintptr_t)DEPTH, NULL) == 0);
    for (int depth = 0; depth <= DEPTH; depth++) /* one executor's tasks submit to the other's */
        for (int i = 0; i < EXECUTORS; i++)
            CHECK(weir_executor_drain(executor[i], WEIR_FOREVER) == 0);
    for (int i = 0; i < EXECUTORS; i++)
        weir_executor_free(executor[i]);
}

static void test_whatever_waits_close_circles_all_tasks_end(void)
{
    for (uint64_t round = 0; round < ROUNDS; round++)
        one_round(round);
    printf("%llu waits, %llu refused\n", (unsigned long long)waited, (unsigned long long)refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_whatever_waits_close_circles_all_tasks_end),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
