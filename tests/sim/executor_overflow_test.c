/* The executor's core, continued: the listener, what a policy refuses, overflow, hand-over, shutdown.
 * SEMANTICS 6.1 from G-27 on.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* ---- the listener ------------------------------------------------------------------------------ */

struct counts {
    _Atomic int submitted, started, completed, rejected;
    weir_outcome outcome;
};

static void count_submitted(weir_task *task, void *arg)
{
    (void)task;
    ((struct counts *)arg)->submitted++;
}

static void count_started(weir_task *task, void *arg)
{
    (void)task;
    ((struct counts *)arg)->started++;
}

static void count_completed(weir_task *task, const weir_result *result, void *arg)
{
    (void)task;
    ((struct counts *)arg)->completed++;
    ((struct counts *)arg)->outcome = result->outcome;
}

static void count_rejected(weir_task *task, weir_reason reason, void *arg)
{
    (void)task, (void)reason;
    ((struct counts *)arg)->rejected++;
}

/* G-27 */
SIM_TEST(test_the_listener_hears_of_each_step_once, 200)
{
    struct counts counts = { 0 };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .listener = { count_submitted, count_started, count_completed,
                                                count_rejected, .arg = &counts }));

    check_done(submit(ex, "g", NULL));
    CHECK_EQ(counts.submitted, 1);
    CHECK_EQ(counts.started, 1);
    CHECK_EQ(counts.completed, 1);
    CHECK_EQ(counts.rejected, 0);
    CHECK_EQ(counts.outcome, WEIR_DONE);
    weir_executor_free(ex);
}

/* Calls that fail, all of them, and a bad errno: the nearest that C has to a listener that throws. */
static void fail_at_everything(weir_task *task)
{
    CHECK(weir_task_settle(task, WEIR_PENDING, NULL) == WEIR_EINVAL);
    CHECK(weir_task_on_done(task, NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_submit(NULL, NULL, NULL, NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_group_evict(NULL, NULL, 0) == WEIR_EINVAL);
    errno = EIO;
}

static void fail_submitted(weir_task *task, void *arg)
{
    (void)arg;
    fail_at_everything(task);
}

static void fail_completed(weir_task *task, const weir_result *result, void *arg)
{
    (void)result, (void)arg;
    fail_at_everything(task);
}

static void fail_rejected(weir_task *task, weir_reason reason, void *arg)
{
    (void)reason, (void)arg;
    fail_at_everything(task);
}

/* G-28. A C listener answers nothing, so it cannot fail by throwing; what fails inside stays there. */
SIM_TEST(test_a_listener_that_fails_changes_nothing, 200)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_queue_max = WEIR_NO_QUEUE, .rejection = WEIR_DISCARD,
                    .listener = { fail_submitted, fail_submitted, fail_completed, fail_rejected,
                                  .arg = NULL }));
    struct body body = { .ms = 10 };
    weir_task *first = submit(ex, "g", &body);

    check_rejected(submit(ex, "g", NULL), WEIR_REASON_GROUP_QUEUE_FULL);
    check_done_at(first, 0, 10);
    check_books(ex);
    weir_executor_free(ex);
}

/* ---- what a policy refuses ----------------------------------------------------------------------- */

static void refused(const weir_policy *policy, const char *field, const char *value)
{
    weir_executor *ex = (weir_executor *)&ex;
    weir_message message;

    CHECK(weir_executor_new(&ex, policy, NULL) == WEIR_EINVAL && !ex);
    CHECK(weir_executor_new(&ex, policy, &message) == WEIR_EINVAL && !ex);
    if (!strstr(message.text, field) || !strstr(message.text, value))
        weir_sim_fail("\"%s\" lacks \"%s\" or \"%s\"", message.text, field, value);
}

static void refused_entry(weir_group_policy entry, const char *field, const char *value)
{
    entry.key = "g";
    refused(WEIR_POLICY(.groups = &entry, .group_count = 1), field, value);
    refused(WEIR_POLICY(.groups = &entry, .group_count = 1), "\"g\"", value);
}

/* G-29. Zero asks for a default in C, so what is refused are negative numbers, and an entry of `groups`
 * that sets nothing in place of "map g=0". */
SIM_TEST(test_a_policy_with_an_illegal_number_is_refused_by_name_and_value, 5)
{
    refused(WEIR_POLICY(.group_limit = -1), "group_limit", "-1");
    refused(WEIR_POLICY(.group_limit = INT64_MIN), "group_limit", "-9223372036854775808");
    refused(WEIR_POLICY(.inflight_max = -2), "inflight_max", "-2");
    refused(WEIR_POLICY(.group_inflight_max = -3), "group_inflight_max", "-3");
    refused(WEIR_POLICY(.queue_max = -1), "queue_max", "-1");
    refused(WEIR_POLICY(.group_queue_max = -1), "group_queue_max", "-1");
    refused_entry((weir_group_policy){ 0 }, "limit", "0");
    refused_entry((weir_group_policy){ .limit = -1 }, "limit", "-1");
    refused_entry((weir_group_policy){ .inflight_max = -1 }, "inflight_max", "-1");
    refused_entry((weir_group_policy){ .queue_max = -1 }, "queue_max", "-1");
    refused_entry((weir_group_policy){ .weight = -1 }, "weight", "-1");
    refused(WEIR_POLICY(.idle_evict_ms = -4), "idle_evict_ms", "-4");
    refused(WEIR_POLICY(.group_count = 1), "group_count", "1");
    refused(WEIR_POLICY(.groups = &(weir_group_policy){ .limit = 1 }, .group_count = 1), "key", "");
}

/* G-29: zero is the default. */
SIM_TEST(test_zero_in_a_policy_asks_for_the_default, 20)
{
    weir_executor *ex = new_executor(NULL);

    check_done(submit(ex, "g", NULL));
    CHECK_EQ(stats_of(ex, "g").limit, 1);
    CHECK_EQ(stats_of(ex, "g").queue_max, WEIR_NO_LIMIT);
    weir_executor_free(ex);
}

/* G-30. There is no null among enumerators; there are numbers that are none of them. */
SIM_TEST(test_an_unknown_rejection_policy_is_refused, 5)
{
    refused(WEIR_POLICY(.rejection = (weir_rejection)9), "rejection", "9");
}

/* ---- overflow ---------------------------------------------------------------------------------- */

/* G-31 */
SIM_TEST(test_waiting_for_the_inflight_limit_needs_a_place_too, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .group_inflight_max = 1,
                                 .group_queue_max = WEIR_NO_QUEUE, .rejection = WEIR_DISCARD));
    struct body gated = { .until_ms = 100 };
    weir_task *first = submit(ex, "g", &gated);

    sleep_until(10);
    check_rejected(submit(ex, "g", NULL), WEIR_REASON_GROUP_INFLIGHT_QUEUE_FULL);
    check_done_at(first, 0, 100);
    weir_executor_free(ex);
}

/* G-31: it is the same layer that refuses, whether or not a worker has got round to the first. */
SIM_TEST(test_the_reason_does_not_depend_on_how_fast_a_worker_was, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .group_inflight_max = 1,
                                 .group_queue_max = WEIR_NO_QUEUE, .rejection = WEIR_DISCARD));
    struct body gated = { .until_ms = 100 };
    weir_task *first = submit(ex, "g", &gated);

    check_rejected(submit(ex, "g", NULL), WEIR_REASON_GROUP_INFLIGHT_QUEUE_FULL);
    check_done_at(first, 0, 100);
    weir_executor_free(ex);
}

struct overflow {
    weir_executor *ex;
    bool ran;
};

static int submits_to_another(void **value, void *arg)
{
    struct overflow *overflow = arg;

    CHECK_EQ(stats_all(overflow->ex).running, 1); /* the first only */
    check_done_at(submit(overflow->ex, "other", NULL), 10, 10);
    overflow->ran = true;
    *value = "caller-ran";
    return 0;
}

/* G-32 */
SIM_TEST(test_an_overflow_run_by_its_caller_holds_no_permit, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 2,
                                 .group_queue_max = WEIR_NO_QUEUE, .rejection = WEIR_CALLER_RUNS));
    struct overflow overflow = { .ex = ex };
    struct body gated = { .until_ms = 100 };
    weir_task *first = submit(ex, "g", &gated), *second = NULL;

    sleep_until(10);
    CHECK(weir_submit_key(&second, ex, "g", submits_to_another, &overflow, NULL) == 0);
    CHECK(overflow.ran && weir_task_done(second));
    CHECK(strcmp(result_of(second).value, "caller-ran") == 0);
    check_done_at(first, 0, 100);
    check_books(ex);
    weir_executor_free(ex);
}

/* G-33 */
SIM_TEST(test_shutdown_of_an_idle_executor_is_immediate, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));

    check_done(submit(ex, "g", NULL));
    CHECK(weir_executor_shutdown(ex, weir_in_s(5)) == 0);
    CHECK_EQ(weir_now(), at(0));
    weir_executor_free(ex);
}

/* G-34 */
SIM_TEST(test_a_full_queue_rejects, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1,
                                                 .group_queue_max = 1, .rejection = WEIR_DISCARD));
    struct body body = { .ms = 50 };
    weir_task *task[3];

    for (int i = 0; i < 3; i++)
        task[i] = submit(ex, "g", &body);
    CHECK(weir_task_done(task[2]));
    check_done_at(task[0], 0, 50);
    check_done_at(task[1], 50, 100);
    check_rejected(task[2], WEIR_REASON_GROUP_QUEUE_FULL);
    weir_executor_free(ex);
}

/* ---- one after the other ------------------------------------------------------------------------ */

/* G-35 */
SIM_TEST(test_a_waiting_task_starts_when_the_one_before_it_ends, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body gated = { .until_ms = 70 };
    weir_task *first = submit(ex, "g", &gated), *second = submit(ex, "g", NULL);

    sleep_until(10);
    CHECK_EQ(why_of(first), WEIR_REASON_RUNNING);
    CHECK_EQ(why_of(second), WEIR_REASON_GROUP_LIMIT);
    check_done_at(second, 70, 70);
    check_done_at(first, 0, 70);
    weir_executor_free(ex);
}

struct where {
    char *submitter; /* a frame of its    */
    bool there;      /* with the submitter */
};

static int looks_around(void **value, void *arg)
{
    struct where *where = arg;

    where->there = on_stack_of(where->submitter);
    CHECK(weir_task_self() != NULL);
    CHECK(weir_sleep(weir_now() + 5 * MS) == 0);
    *value = NULL;
    return 0;
}

/* G-36 */
SIM_TEST(test_the_caller_runs_the_overflow_itself, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection = WEIR_CALLER_RUNS));
    char *here = __builtin_frame_address(0);
    struct where first_where = { here, true }, second_where = { here, false };
    weir_task *first = NULL, *second = NULL;

    CHECK(weir_submit_key(&first, ex, "g", looks_around, &first_where, NULL) == 0);
    CHECK(weir_submit_key(&second, ex, "g", looks_around, &second_where, NULL) == 0);
    CHECK(weir_task_done(second));
    CHECK_EQ(weir_now(), at(5));
    CHECK(second_where.there);
    check_done_at(second, 0, 5);
    check_done_at(first, 0, 5);
    CHECK(!first_where.there);
    check_books(ex);
    weir_executor_free(ex);
}

/* G-37 */
SIM_TEST(test_a_cancelled_waiter_never_runs_and_the_next_moves_up, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct gauge gauge = { 0 };
    struct body gated = { .until_ms = 50 }, second = { .gauge = &gauge }, third = { .ms = 10 };
    weir_task *t1 = submit(ex, "g", &gated), *t2 = submit(ex, "g", &second),
              *t3 = submit(ex, "g", &third);

    sleep_until(10);
    CHECK(weir_task_cancel(t2));
    CHECK_EQ(stats_of(ex, "g").waiting, 1); /* its place is free at once */
    check_cancelled(t2);
    check_done_at(t1, 0, 50);
    check_done_at(t3, 50, 60);
    CHECK_EQ(gauge.ran, 0);
    check_books(ex);
    weir_executor_free(ex);
}

/* G-38 */
SIM_TEST(test_shutdown_lets_accepted_tasks_go_on_until_its_deadline, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 100 };
    weir_task *first = submit(ex, "g", &body), *second = submit(ex, "g", &body);

    CHECK(weir_executor_shutdown(ex, weir_in_s(5)) == 0);
    CHECK_EQ(weir_now(), at(200));
    check_done_at(first, 0, 100);
    check_done_at(second, 100, 200);
    weir_executor_free(ex);
}

/* G-38 */
SIM_TEST(test_closing_rejects_waiting_tasks, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 100 };
    weir_task *first = submit(ex, "g", &body), *second = submit(ex, "g", &body),
              *third = submit(ex, "g", &body);

    check_done_at(first, 0, 100);
    sleep_until(110);
    weir_executor_close(ex, WEIR_LEAVE_RUNNING);
    CHECK(weir_task_done(third));
    check_rejected(third, WEIR_REASON_SHUT_DOWN);
    check_done_at(second, 100, 200);
    weir_executor_free(ex);
}

/* G-39. A second task of a busy group waits for its group, not for the executor, so no place of the
 * executor's queue is asked for: all four of a round run. */
SIM_TEST(test_global_permits_come_back_round_after_round, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 2,
                                 .queue_max = WEIR_NO_QUEUE, .rejection = WEIR_DISCARD));
    struct body body = { .ms = 10 };
    weir_task *task[4];

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++)
            task[i] = submit(ex, i % 2 ? "B" : "A", &body);
        for (int i = 0; i < 4; i++)
            check_done_at(task[i], round * 20 + i / 2 * 10, round * 20 + (i / 2 + 1) * 10);
    }
    check_books(ex);
    weir_executor_free(ex);
}

/* G-40 */
SIM_TEST(test_global_permits_handed_from_task_to_task_all_come_back, 200)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = 5, .inflight_max = 3));
    struct body body = { .ms = 10 };
    weir_task *task[3];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            task[i] = submit(ex, "g", &body);
        for (int i = 0; i < 3; i++)
            check_done_at(task[i], (round * 3 + i) * 10, (round * 3 + i + 1) * 10);
    }
    CHECK_EQ(stats_all(ex).inflight, 0);
    weir_executor_free(ex);
}

/* G-41 */
SIM_TEST(test_every_waiting_task_runs_and_gives_its_own_value, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct body body[10];
    weir_task *task[10];

    for (int i = 0; i < 10; i++) {
        body[i] = (struct body){ .ms = 10, .value = &body[i] };
        task[i] = submit(ex, "g", &body[i]);
    }
    for (int i = 0; i < 10; i++) {
        weir_result result = result_of(task[i]);
        CHECK_EQ(result.outcome, WEIR_DONE);
        CHECK(result.value == &body[i]);
        CHECK_EQ(result.started_at, at(i / 2 * 10));
    }
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_listener_hears_of_each_step_once),
        cmocka_unit_test(test_a_listener_that_fails_changes_nothing),
        cmocka_unit_test(test_a_policy_with_an_illegal_number_is_refused_by_name_and_value),
        cmocka_unit_test(test_zero_in_a_policy_asks_for_the_default),
        cmocka_unit_test(test_an_unknown_rejection_policy_is_refused),
        cmocka_unit_test(test_waiting_for_the_inflight_limit_needs_a_place_too),
        cmocka_unit_test(test_the_reason_does_not_depend_on_how_fast_a_worker_was),
        cmocka_unit_test(test_an_overflow_run_by_its_caller_holds_no_permit),
        cmocka_unit_test(test_shutdown_of_an_idle_executor_is_immediate),
        cmocka_unit_test(test_a_full_queue_rejects),
        cmocka_unit_test(test_a_waiting_task_starts_when_the_one_before_it_ends),
        cmocka_unit_test(test_the_caller_runs_the_overflow_itself),
        cmocka_unit_test(test_a_cancelled_waiter_never_runs_and_the_next_moves_up),
        cmocka_unit_test(test_shutdown_lets_accepted_tasks_go_on_until_its_deadline),
        cmocka_unit_test(test_closing_rejects_waiting_tasks),
        cmocka_unit_test(test_global_permits_come_back_round_after_round),
        cmocka_unit_test(test_global_permits_handed_from_task_to_task_all_come_back),
        cmocka_unit_test(test_every_waiting_task_runs_and_gives_its_own_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
