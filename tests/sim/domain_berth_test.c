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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_that_waits_for_a_thread_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
