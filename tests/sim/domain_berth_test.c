/* Groups that wait for a thread, and those who must not wait for them.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

static void check_all_and_free(weir_executor *ex)
{
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

/* A group that comes to wait for a thread claims no permits any more: who waits for room has it. */
SIM_TEST(test_a_group_that_waits_for_a_thread_makes_room, 300)
{
    weir_group_policy groups[] = { { .key = "t1", .run_on = WEIR_THREADS },
                                   { .key = "t2", .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .threads_max = 1, .inflight_max = 2, .queue_max = WEIR_NO_QUEUE,
                    .rejection = WEIR_BLOCK, .groups = groups, .group_count = 2));
    struct body slow = { .ms = 50 }, quick = { .ms = 1 };
    weir_task *t1 = submit(ex, "t1", &slow), *t2 = submit(ex, "t2", &quick), *w;

    w = submit(ex, "w", &quick);
    CHECK_EQ(weir_now(), at(0));
    check_done_at(w, 0, 1);
    check_done_at(t1, 0, 50);
    check_done_at(t2, 50, 51);
    check_all_and_free(ex);
}

/* ---- without threads ---------------------------------------------------------------------------- */

static int busy(void **value, void *arg)
{
    (void)arg;
    *value = NULL;
    weir_sim_busy(1000 * MS);
    return 0;
}

static void told(weir_task *task, const weir_result *result, void *at_arg)
{
    (void)task;
    CHECK_EQ(result->outcome, WEIR_TIMED_OUT);
    *(weir_time *)at_arg = weir_now();
}

/* No thread can be started but the one that the body keeps: a worker tells of its end. */
static void late_without_threads(void *arg)
{
    weir_group_policy groups[] = { { .key = "t", .run_on = WEIR_THREADS } };
    weir_executor *ex = NULL;
    weir_task *task;
    weir_time when = 0;

    (void)arg;
    if (weir_executor_new(
            &ex,
            WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 1, .deadlines.run_ms = 10),
            NULL))
        return;
    CHECK(weir_submit_key(&task, ex, "t", busy, NULL,
                          WEIR_TASK(.on_done = told, .on_done_arg = &when)) == 0);
    CHECK(weir_task_wait(NULL, task, at(500)) == 0);
    CHECK_EQ(weir_now(), at(10));
    weir_task_unref(task);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(when, at(10));
    check_books(ex);
    weir_executor_free(ex);
}

static void test_who_is_late_is_told_of_without_a_thread_to_spare(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 10; n++)
        explore(10, WEIR_SIM_OPTIONS(.seed = n, .fail_thread = n, .sticky = true),
                late_without_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_that_waits_for_a_thread_makes_room),
        cmocka_unit_test(test_who_is_late_is_told_of_without_a_thread_to_spare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
