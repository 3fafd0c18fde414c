/* Many tasks in one call: the same as one after another, but for what it costs.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

enum { MANY = 150 }; /* more than enter in one hold of the lock, twice */

static void fill(void **arg, struct body *body, size_t count, struct body like)
{
    for (size_t i = 0; i < count; i++) {
        body[i] = like;
        arg[i] = &body[i];
    }
}

SIM_TEST(test_many_start_in_the_order_of_their_arguments, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    _Atomic int began = 0;
    struct body body[MANY];
    weir_task *task[MANY];
    void *args[MANY];

    fill(args, body, MANY, (struct body){ .began = &began });
    CHECK_EQ(weir_submit_many(task, group_of(ex, "g"), work, args, MANY, NULL), MANY);
    for (int i = 0; i < MANY; i++)
        check_done_at(task[i], 0, 0);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(body[i].order, i + 1);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_many_without_handles_are_all_run, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));
    struct gauge gauge = { 0 };
    struct body body[MANY];
    void *args[MANY];

    fill(args, body, MANY, (struct body){ .gauge = &gauge, .ms = 1 });
    CHECK_EQ(weir_submit_many(NULL, group_of(ex, "g"), work, args, MANY, NULL), MANY);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(gauge.ran, MANY);
    CHECK_EQ(gauge.peak, 3);
    CHECK_EQ(weir_now(), at(MANY / 3));
    CHECK_EQ(stats_of(ex, "g").submitted, MANY);
    check_books(ex);
    weir_executor_free(ex);
}

/* One thread submits as others do, so all workers that wait for work must hear of it. */
SIM_TEST(test_many_wake_as_many_workers_as_can_help, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 4, .group_limit = 4));
    struct body body[8];
    weir_task *task[8];
    void *args[8];

    fill(args, body, 8, (struct body){ .ms = 10 });
    CHECK_EQ(weir_submit_many(task, group_of(ex, "g"), work, args, 8, NULL), 8);
    for (int i = 0; i < 8; i++)
        check_done_at(task[i], i < 4 ? 0 : 10, i < 4 ? 10 : 20);
    weir_executor_free(ex);
}

SIM_TEST(test_some_of_many_find_no_room, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .group_queue_max = 3));
    struct body body[9];
    weir_task *task[9];
    void *args[9];

    fill(args, body, 9, (struct body){ .until_ms = 100 });
    CHECK_EQ(weir_submit_many(task, group_of(ex, "g"), work, args, 9, NULL), 9);
    for (int i = 5; i < 9; i++) {
        CHECK(weir_task_wait(NULL, task[i], WEIR_FOREVER) == WEIR_EREJECTED);
        check_rejected(task[i], WEIR_REASON_GROUP_QUEUE_FULL);
    }
    CHECK_EQ(weir_now(), at(0));
    for (int i = 0; i < 5; i++)
        check_done(task[i]);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_the_caller_runs_those_of_many_that_find_no_room, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection = WEIR_CALLER_RUNS));
    struct body body[4];
    weir_task *task[4];
    void *args[4];

    fill(args, body, 4, (struct body){ .ms = 10 });
    body[0].ms = 25;
    CHECK_EQ(weir_submit_many(task, group_of(ex, "g"), work, args, 4, NULL), 4);
    CHECK_EQ(weir_now(), at(30)); /* the first runs beside the next three */
    check_done_at(task[0], 0, 25);
    for (int i = 1; i < 4; i++)
        check_done_at(task[i], (i - 1) * 10, i * 10);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_many_wait_for_room_one_after_another, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection = WEIR_BLOCK));
    struct body body[4];
    weir_task *task[4];
    void *args[4];

    fill(args, body, 4, (struct body){ .ms = 10 });
    CHECK_EQ(weir_submit_many(task, group_of(ex, "g"), work, args, 4, NULL), 4);
    CHECK_EQ(weir_now(), at(30));
    for (int i = 0; i < 4; i++)
        check_done_at(task[i], i * 10, i * 10 + 10);
    check_books(ex);
    weir_executor_free(ex);
}

/* The answer is how many went in; a handle that stands for none of them is NULL. */
SIM_TEST(test_many_stop_at_the_first_that_fails, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection = WEIR_BLOCK));
    weir_group *group = group_of(ex, "g");
    struct body body[4];
    weir_task *task[4], *none[4];
    void *args[4];

    fill(args, body, 4, (struct body){ .ms = 10 });
    CHECK_EQ(weir_submit_many(task, group, work, args, 4, WEIR_TASK(.deadline = at(15))), 2);
    CHECK_EQ(weir_now(), at(15));
    CHECK(task[0] && task[1] && !task[2] && !task[3]);
    CHECK_EQ(weir_submit_many(none, group, work, args, 4, WEIR_TASK(.deadline = at(16))),
             WEIR_ETIMEDOUT);
    CHECK(!none[0] && !none[3]);
    check_done_at(task[0], 0, 10);
    check_done_at(task[1], 10, 20);
    check_books(ex);
    weir_executor_free(ex);
}

static void count_one(weir_task *task, void *arg)
{
    (void)task;
    ++*(_Atomic int *)arg;
}

static void count_done(weir_task *task, const weir_result *result, void *arg)
{
    (void)result;
    count_one(task, arg);
}

SIM_TEST(test_a_listener_hears_of_each_of_many, 200)
{
    _Atomic int heard = 0;
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .listener = { .submitted = count_one, .arg = &heard }));
    struct body body[5];
    void *args[5];

    fill(args, body, 5, (struct body){ .ms = 1 });
    CHECK_EQ(weir_submit_many(NULL, group_of(ex, "g"), work, args, 5, NULL), 5);
    CHECK_EQ(heard, 5);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_options_are_those_of_each_of_many, 200)
{
    _Atomic int told = 0;
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 4, .group_limit = 4));
    struct gauge gauge = { 0 };
    struct body body[4];
    weir_task *task[4];
    void *args[4];

    fill(args, body, 4, (struct body){ .gauge = &gauge, .ms = 10 });
    CHECK_EQ(weir_submit_many(
                 task, group_of(ex, "g"), work, args, 4,
                 WEIR_TASK(.id = "same", .cost = 2, .on_done = count_done, .on_done_arg = &told)),
             4);
    for (int i = 0; i < 4; i++) {
        CHECK(strcmp(weir_task_id(task[i]), "same") == 0);
        check_done_at(task[i], i / 2 * 10, i / 2 * 10 + 10);
    }
    CHECK_EQ(gauge.peak, 2);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(told, 4);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_many_reach_the_group_that_follows_an_evicted_one, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    weir_group *group = group_of(ex, "g");
    void *args[3] = { NULL, NULL, NULL };
    weir_task *task[3];

    CHECK_EQ(weir_submit_many(NULL, group, work, args, 3, NULL), 3);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    CHECK_EQ(weir_submit_many(task, group, work, args, 3, NULL), 3);
    for (int i = 0; i < 3; i++)
        check_done(task[i]);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_many_into_a_closed_executor_are_none, 50)
{
    weir_executor *ex = new_executor(NULL);
    weir_group *group = group_of(ex, "g");
    void *args[2] = { NULL, NULL };
    weir_task *task[2] = { (weir_task *)args, (weir_task *)args };

    weir_executor_close(ex, 0);
    CHECK_EQ(weir_submit_many(task, group, work, args, 2, NULL), WEIR_ECLOSED);
    CHECK(!task[0] && !task[1]);
    weir_executor_free(ex);
}

SIM_TEST(test_bad_input_for_many_is_refused, 1)
{
    weir_executor *ex = new_executor(NULL);
    weir_group *group = group_of(ex, "g");
    void *args[1] = { NULL };
    weir_task *task[1];

    CHECK_EQ(weir_submit_many(task, NULL, work, args, 1, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_submit_many(task, group, NULL, args, 1, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_submit_many(task, group, work, NULL, 1, NULL), WEIR_EINVAL);
    CHECK_EQ(weir_submit_many(task, group, work, args, 1, WEIR_TASK(.cost = 2)), WEIR_EINVAL);
    CHECK(!task[0]);
    CHECK_EQ(weir_submit_many(task, group, work, args, 1, WEIR_TASK(.priority = 77)), WEIR_EINVAL);
    CHECK_EQ(weir_submit_many(NULL, group, work, NULL, 0, NULL), 0);
    check_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_start_in_the_order_of_their_arguments),
        cmocka_unit_test(test_many_without_handles_are_all_run),
        cmocka_unit_test(test_many_wake_as_many_workers_as_can_help),
        cmocka_unit_test(test_some_of_many_find_no_room),
        cmocka_unit_test(test_the_caller_runs_those_of_many_that_find_no_room),
        cmocka_unit_test(test_many_wait_for_room_one_after_another),
        cmocka_unit_test(test_many_stop_at_the_first_that_fails),
        cmocka_unit_test(test_a_listener_hears_of_each_of_many),
        cmocka_unit_test(test_options_are_those_of_each_of_many),
        cmocka_unit_test(test_many_reach_the_group_that_follows_an_evicted_one),
        cmocka_unit_test(test_many_into_a_closed_executor_are_none),
        cmocka_unit_test(test_bad_input_for_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
