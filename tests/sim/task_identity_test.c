/* Which task it was: key and id in results, wherever a program gets one; and its argument.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

static int seen;

/* Every result that a program is shown belongs to task "one" of group "g". */
static void check_named(const weir_result *result)
{
    CHECK(strcmp(result->key, "g") == 0);
    CHECK(strcmp(result->id, "one") == 0);
    seen++;
}

static void sees_done(weir_task *task, const weir_result *result, void *arg)
{
    (void)arg;
    check_named(result);
    CHECK(result->key == weir_task_key(task) && result->id == weir_task_id(task));
}

static int sees_rejection(weir_result *result, weir_task *task, weir_reason reason, void *arg)
{
    (void)task;
    (void)reason;
    (void)arg;
    check_named(result);
    return 0;
}

SIM_TEST(test_a_result_names_its_task, 50)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .listener = { .completed = sees_done }));
    weir_result result = WEIR_RESULT;
    weir_task *task;

    seen = 0;
    task = submit_with(ex, "g", NULL, WEIR_TASK(.id = "one", .on_done = sees_done));
    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0);
    check_named(&result);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(seen, 3);
    weir_task_unref(task);
    weir_executor_free(ex);
}

SIM_TEST(test_without_an_id_it_is_empty, 5)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task *task = submit(ex, "g", NULL);
    weir_result result = WEIR_RESULT;

    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0);
    CHECK(strcmp(result.key, "g") == 0 && strcmp(result.id, "") == 0);
    weir_task_unref(task);
    weir_executor_free(ex);
}

SIM_TEST(test_a_rejected_task_is_named_to_the_policy, 5)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_queue_max = WEIR_NO_QUEUE,
                                                 .rejection_fn = sees_rejection));
    weir_group *group = group_of(ex, "g");

    seen = 0;
    weir_group_pause(group);
    check_rejected(submit_with(ex, "g", NULL, WEIR_TASK(.id = "one")),
                   WEIR_REASON_GROUP_QUEUE_FULL);
    CHECK_EQ(seen, 1);
    weir_executor_free(ex);
}

/* Their tasks are gone, so these are the caller's own strings. */
SIM_TEST(test_results_of_a_batch_have_the_names_of_their_work, 20)
{
    static char long_key[4098];
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_work batch[] = { { .key = "a", .id = "first", .fn = work },
                          { .key = "b", .fn = work },
                          { .key = long_key, .id = "refused", .fn = work } };
    weir_result result[3];

    memset(long_key, 'k', sizeof(long_key) - 1);
    CHECK(weir_execute_all(result, ex, batch, 3) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(result[i].key == batch[i].key);
    CHECK(result[0].id == batch[0].id);
    CHECK(strcmp(result[1].id, "") == 0);
    CHECK(result[2].id == batch[2].id && result[2].error == WEIR_EINVAL);
    weir_executor_free(ex);
}

/* A program that knows a shorter result gets what it knows, and no more. */
SIM_TEST(test_a_shorter_result_is_not_written_beyond, 5)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task *task = submit(ex, "g", NULL);
    weir_result result = { .size = offsetof(weir_result, key), .key = "mine", .id = "too" };

    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0);
    CHECK(strcmp(result.key, "mine") == 0 && strcmp(result.id, "too") == 0);
    CHECK_EQ(result.outcome, WEIR_DONE);
    weir_task_unref(task);
    weir_executor_free(ex);
}

/* ---- the argument ---------------------------------------------------------------------------------- */

static int token;

static int leaves_a_value(void **value, void *arg)
{
    CHECK(arg == &token);
    CHECK(weir_task_arg(weir_task_self()) == &token);
    *value = &seen;
    return 0;
}

static int settles_itself(void **value, void *arg)
{
    (void)value;
    CHECK(weir_task_settle(weir_task_self(), 0, arg) == 0);
    CHECK(weir_task_arg(weir_task_self()) == NULL);
    return WEIR_PENDING;
}

static weir_task *submit_token(weir_executor *ex, weir_fn *fn, const weir_task_options *opt)
{
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, "g", fn, &token, opt) == 0);
    return task;
}

/* The value may stand where the argument was: it is never taken for that. */
static void check_settled(weir_task *task)
{
    weir_task_wait(NULL, task, WEIR_FOREVER);
    CHECK(weir_task_arg(task) == NULL);
    weir_task_unref(task);
}

SIM_TEST(test_a_task_has_its_argument_until_it_settles, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_group *group = group_of(ex, "g");
    const weir_task_options *options[] = { NULL, WEIR_TASK(.id = "x") };

    for (int i = 0; i < 2; i++) {
        weir_task *task;
        weir_group_pause(group);
        task = submit_token(ex, leaves_a_value, options[i]);
        CHECK(weir_task_arg(task) == &token);
        weir_group_resume(group);
        check_settled(task);
        check_settled(submit_token(ex, settles_itself, options[i]));
    }
    weir_executor_free(ex);
}

SIM_TEST(test_a_task_that_never_ran_has_no_argument_once_it_is_settled, 20)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .group_queue_max = 1, .rejection = WEIR_DISCARD));
    weir_task *queued;

    weir_group_pause(group_of(ex, "g"));
    queued = submit_token(ex, leaves_a_value, NULL);
    check_settled(submit_token(ex, leaves_a_value, NULL));
    CHECK(weir_task_arg(queued) == &token);
    CHECK(weir_task_cancel(queued));
    check_settled(queued);
    queued = submit_token(ex, leaves_a_value, NULL);
    weir_executor_free(ex);
    check_settled(queued); /* the handle outlives the executor */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_result_names_its_task),
        cmocka_unit_test(test_without_an_id_it_is_empty),
        cmocka_unit_test(test_a_rejected_task_is_named_to_the_policy),
        cmocka_unit_test(test_results_of_a_batch_have_the_names_of_their_work),
        cmocka_unit_test(test_a_shorter_result_is_not_written_beyond),
        cmocka_unit_test(test_a_task_has_its_argument_until_it_settles),
        cmocka_unit_test(test_a_task_that_never_ran_has_no_argument_once_it_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
