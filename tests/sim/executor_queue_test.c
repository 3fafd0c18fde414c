/* How many tasks may wait, and what becomes of those that may not. SEMANTICS 6.2.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* One of limit 1 and no queue, with a task inside until `ms`. */
static weir_executor *full_executor(weir_rejection rejection, struct body *body, weir_task **inside)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection = rejection));

    *inside = submit_with(ex, "g", body, WEIR_TASK(.id = "t-1"));
    return ex;
}

/* Submits n gated tasks to one group, or to one group each; the first `accepted` must run. */
static void check_first_run(weir_executor *ex, int n, int accepted, bool own_groups,
                            weir_reason reason)
{
    struct body gated = { .until_ms = 100 };
    weir_task *task[16];
    char key[16];

    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "g%d", own_groups ? i : 0);
        task[i] = submit(ex, key, &gated);
    }
    for (int i = accepted; i < n; i++) {
        CHECK(weir_task_done(task[i])); /* decided by submit */
        check_rejected(task[i], reason);
    }
    CHECK_EQ(weir_now(), at(0));
    for (int i = 0; i < accepted; i++)
        check_done(task[i]);
    CHECK_EQ(weir_now(), at(100));
    check_books(ex);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_limit_and_queue_bound_how_many_are_inside_a_group, 200)
{
    check_first_run(new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = 2,
                                             .rejection = WEIR_DISCARD)),
                    6, 3, false, WEIR_REASON_GROUP_QUEUE_FULL);
}

/* */
SIM_TEST(test_limit_and_queue_bound_how_many_are_inside_the_executor, 200)
{
    check_first_run(new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 1, .queue_max = 1,
                                             .rejection = WEIR_DISCARD)),
                    6, 2, true, WEIR_REASON_GLOBAL_QUEUE_FULL);
}

/* */
SIM_TEST(test_an_executor_without_queue_takes_only_tasks_that_can_start, 200)
{
    check_first_run(
        new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 1, .queue_max = WEIR_NO_QUEUE,
                                 .rejection = WEIR_DISCARD)),
        6, 1, true, WEIR_REASON_GLOBAL_QUEUE_FULL);
}

/* */
SIM_TEST(test_a_group_without_queue_takes_only_tasks_that_can_start, 200)
{
    check_first_run(
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection = WEIR_DISCARD)),
        2, 1, false, WEIR_REASON_GROUP_QUEUE_FULL);
}

/* B-19, B-21, B-22: a group in place of a thread pool with so many threads and so long a queue. */
static void check_pool(int64_t threads, int64_t queue, int n, int accepted)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 8, .group_limit = threads, .group_queue_max = queue,
                                 .rejection = WEIR_DISCARD));
    struct body body = { .ms = 10 };
    weir_group_stats s;
    weir_task *task[16];
    weir_time begin = weir_now();

    for (int i = 0; i < n; i++)
        task[i] = submit(ex, "pool", &body);
    CHECK(weir_sleep(begin + 5 * MS) == 0);
    s = stats_of(ex, "pool");
    CHECK_EQ(s.running, (uint64_t)threads);
    CHECK_EQ(s.waiting, (uint64_t)(accepted - threads));
    CHECK_EQ(s.rejected, (uint64_t)(n - accepted));
    for (int i = accepted; i < n; i++) {
        CHECK(strcmp(weir_task_key(task[i]), "pool") == 0);
        check_rejected(task[i], WEIR_REASON_GROUP_QUEUE_FULL);
    }
    for (int i = 0; i < accepted; i++)
        check_done(task[i]);
    CHECK_EQ(stats_of(ex, "pool").succeeded + s.rejected, (uint64_t)n);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_group_refuses_the_tasks_a_thread_pool_would, 100)
{
    check_pool(1, 1, 3, 2);
    check_pool(2, WEIR_NO_QUEUE, 3, 2);
    check_pool(5, 5, 15, 10);
}

/* ---- what becomes of them ------------------------------------------------------------------------ */

/* To throw is to answer WEIR_EREJECTED from every wait. */
SIM_TEST(test_abort_makes_every_wait_answer_rejected, 200)
{
    struct body gated = { .until_ms = 100 };
    weir_task *first, *second;
    weir_executor *ex = full_executor(WEIR_ABORT, &gated, &first);
    weir_result result = WEIR_RESULT;

    second = submit_with(ex, "g", NULL, WEIR_TASK(.id = "t-2")); /* answers 0 */
    for (int i = 0; i < 3; i++)
        CHECK(weir_task_wait(&result, second, WEIR_FOREVER) == WEIR_EREJECTED);
    CHECK_EQ(result.outcome, WEIR_REJECTED);
    CHECK_EQ(result.error, WEIR_EREJECTED);
    CHECK(strcmp(weir_task_key(second), "g") == 0 && strcmp(weir_task_id(second), "t-2") == 0);
    check_rejected(second, WEIR_REASON_GROUP_QUEUE_FULL);
    check_done_at(first, 0, 100);
    weir_executor_free(ex);
}

/* No error is what the wait answers; the result's `error` says why it never ran. */
SIM_TEST(test_discard_settles_as_rejected_without_an_error, 200)
{
    struct body gated = { .until_ms = 100 };
    weir_task *first, *second;
    weir_executor *ex = full_executor(WEIR_DISCARD, &gated, &first);
    weir_result result = WEIR_RESULT;

    second = submit(ex, "g", NULL);
    CHECK(weir_task_done(second));
    CHECK(weir_task_wait(&result, second, WEIR_FOREVER) == 0);
    CHECK(result.outcome == WEIR_REJECTED && !result.value);
    CHECK(result.started_at == at(0) && result.ended_at == at(0));
    weir_task_unref(second);
    check_done_at(first, 0, 100);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_a_caller_that_runs_the_overflow_gets_its_result, 200)
{
    struct body gated = { .until_ms = 100 }, overflow = { .ms = 20, .value = "caller-ran" };
    struct body failing = { .error = -EIO };
    weir_task *first;
    weir_executor *ex = full_executor(WEIR_CALLER_RUNS, &gated, &first);
    weir_result result;

    result = result_of(submit(ex, "g", &overflow));
    CHECK(result.outcome == WEIR_DONE && strcmp(result.value, "caller-ran") == 0);
    CHECK(result.started_at == at(0) && result.ended_at == at(20));
    result = result_of(submit(ex, "g", &failing));
    CHECK(result.outcome == WEIR_FAILED && result.error == -EIO);
    check_done_at(first, 0, 100);
    weir_executor_free(ex);
}

struct handler {
    int calls, rc;
    weir_outcome outcome;
    weir_reason reason;
    char who[16];
};

static int handle(weir_result *result, weir_task *task, weir_reason reason, void *arg)
{
    struct handler *handler = arg;

    CHECK(result->outcome == WEIR_REJECTED && !result->value);
    handler->calls++;
    handler->reason = reason;
    snprintf(handler->who, sizeof(handler->who), "%s/%s", weir_task_key(task), weir_task_id(task));
    result->outcome = handler->outcome;
    result->error = 0;
    result->value = handler->outcome == WEIR_DONE ? "fallback" : NULL;
    return handler->rc;
}

static weir_executor *handled_executor(struct handler *handler, weir_rejection rejection,
                                       struct body *body, weir_task **inside)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                    .rejection = rejection, .rejection_fn = handle, .rejection_arg = handler));

    *inside = submit(ex, "g", body);
    return ex;
}

/* */
SIM_TEST(test_the_answer_of_a_handler_is_the_result, 200)
{
    struct handler handler = { .outcome = WEIR_DONE };
    struct body gated = { .until_ms = 100 };
    weir_task *first, *second;
    weir_executor *ex = handled_executor(&handler, WEIR_ABORT, &gated, &first);
    weir_result result = WEIR_RESULT;

    second = submit_with(ex, "g", NULL, WEIR_TASK(.id = "t-2"));
    CHECK(weir_task_done(second));
    CHECK(weir_task_wait(&result, second, WEIR_FOREVER) == 0);
    CHECK(result.outcome == WEIR_DONE && strcmp(result.value, "fallback") == 0);
    CHECK(handler.calls == 1 && strcmp(handler.who, "g/t-2") == 0);
    CHECK_EQ(handler.reason, WEIR_REASON_GROUP_QUEUE_FULL);
    weir_task_unref(second);
    check_done_at(first, 0, 100);
    check_books(ex);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_a_handler_takes_precedence_over_the_policy, 200)
{
    struct handler handler = { .outcome = WEIR_REJECTED };
    struct gauge gauge = { 0 };
    struct body gated = { .until_ms = 100 }, overflow = { .gauge = &gauge };
    weir_task *first, *second;
    weir_executor *ex = handled_executor(&handler, WEIR_CALLER_RUNS, &gated, &first);

    second = submit(ex, "g", &overflow);
    CHECK(weir_task_wait(NULL, second, WEIR_FOREVER) == 0); /* not aborted either */
    check_rejected(second, WEIR_REASON_GROUP_QUEUE_FULL);
    CHECK_EQ(handler.calls, 1);
    CHECK_EQ(gauge.ran, 0);
    check_done_at(first, 0, 100);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_a_batch_collects_its_rejections, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE));
    struct body body = { .ms = 200 };
    weir_work batch[10];
    weir_result result[10];

    for (int i = 0; i < 10; i++)
        batch[i] = (weir_work){ .key = "g", .fn = work, .arg = &body };
    CHECK(weir_execute_all(result, ex, batch, 10) == 0);
    CHECK_EQ(result[0].outcome, WEIR_DONE);
    CHECK(result[0].started_at == at(0) && result[0].ended_at == at(200));
    for (int i = 1; i < 10; i++)
        CHECK_EQ(result[i].outcome, WEIR_REJECTED);
    check_books(ex);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_without_thresholds_no_task_is_rejected, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct body gated = { .until_ms = 100 };
    weir_task *task[6];

    for (int i = 0; i < 6; i++)
        task[i] = submit(ex, "g", &gated);
    CHECK_EQ(stats_all(ex).queue_max, WEIR_NO_LIMIT);
    CHECK_EQ(stats_of(ex, "g").queue_max, WEIR_NO_LIMIT);
    for (int i = 0; i < 6; i++)
        check_done_at(task[i], i < 2 ? 0 : 100, 100);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_a_group_can_have_a_queue_of_its_own_size, 200)
{
    weir_group_policy groups[] = { { .key = "restricted", .queue_max = WEIR_NO_QUEUE } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = 10,
                                 .groups = groups, .group_count = 1, .rejection = WEIR_DISCARD));
    struct body gated = { .until_ms = 100 };
    weir_task *inside[2] = { submit(ex, "restricted", &gated), submit(ex, "other", &gated) };
    weir_task *waits = submit(ex, "other", NULL);

    check_rejected(submit(ex, "restricted", NULL), WEIR_REASON_GROUP_QUEUE_FULL);
    check_done_at(waits, 100, 100);
    check_done_at(inside[0], 0, 100);
    check_done_at(inside[1], 0, 100);
    CHECK_EQ(stats_of(ex, "restricted").queue_max, WEIR_NO_QUEUE);
    CHECK_EQ(stats_of(ex, "other").queue_max, 10);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_a_place_in_the_queue_is_free_again_after_its_task, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1,
                                                 .group_queue_max = 1, .rejection = WEIR_DISCARD));
    struct body body = { .ms = 10 };
    weir_task *first = submit(ex, "g", &body), *second = submit(ex, "g", &body), *third, *fourth;

    check_done_at(first, 0, 10);
    third = submit(ex, "g", &body); /* the second has left its place at 10 */
    check_done_at(second, 10, 20);
    check_done_at(third, 20, 30);
    fourth = submit(ex, "g", &body);
    check_done_at(fourth, 30, 40);
    weir_executor_free(ex);
}

struct refusal {
    int calls;
    char who[16];
    weir_reason reason;
};

static void note_refusal(weir_task *task, weir_reason reason, void *arg)
{
    struct refusal *refusal = arg;

    refusal->calls++;
    refusal->reason = reason;
    snprintf(refusal->who, sizeof(refusal->who), "%s/%s", weir_task_key(task), weir_task_id(task));
}

/* */
SIM_TEST(test_the_listener_hears_which_task_was_rejected_and_why, 200)
{
    struct refusal refusal = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection = WEIR_DISCARD,
                                 .listener = { .rejected = note_refusal, .arg = &refusal }));
    struct body gated = { .until_ms = 100 };
    weir_task *first = submit_with(ex, "g", &gated, WEIR_TASK(.id = "t-1"));

    check_rejected(submit_with(ex, "g", NULL, WEIR_TASK(.id = "t-2")),
                   WEIR_REASON_GROUP_QUEUE_FULL);
    CHECK(refusal.calls == 1 && strcmp(refusal.who, "g/t-2") == 0);
    CHECK_EQ(refusal.reason, WEIR_REASON_GROUP_QUEUE_FULL);
    check_done_at(first, 0, 100);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_evicting_a_full_group_makes_room, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1,
                                                 .group_queue_max = 1, .rejection = WEIR_DISCARD));
    struct body gated = { .until_ms = 100 };
    weir_task *first = submit(ex, "g", &gated), *second = submit(ex, "g", NULL);

    check_rejected(submit(ex, "g", NULL), WEIR_REASON_GROUP_QUEUE_FULL);
    sleep_until(10);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    check_rejected(second, WEIR_REASON_EVICTED);
    check_done_at(submit(ex, "g", NULL), 10, 10);
    check_done_at(first, 0, 100);
    CHECK(weir_group_evict(ex, "g", 0) == 0); /* after use, too */
    check_done_at(submit(ex, "g", NULL), 100, 100);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_sizes_of_queues_are_copied, 50)
{
    weir_group_policy groups[] = { { .key = "g1", .queue_max = 5 } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 1));

    groups[0] = (weir_group_policy){ .key = "g2", .queue_max = 7 };
    check_done(submit(ex, "g1", NULL));
    check_done(submit(ex, "g2", NULL));
    CHECK_EQ(stats_of(ex, "g1").queue_max, 5);
    CHECK_EQ(stats_of(ex, "g2").queue_max, WEIR_NO_LIMIT);
    weir_executor_free(ex);
}

/* ---- a place is held from admission to the start -------------------------------------------------- */

/* */
SIM_TEST(test_a_waiter_keeps_its_place_until_it_starts, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_inflight_max = 2,
                                 .group_queue_max = 1, .rejection = WEIR_DISCARD));
    struct body body = { .ms = 50 };
    weir_task *t1 = submit(ex, "g", &body), *t2 = submit(ex, "g", &body);

    sleep_until(10);
    check_rejected(submit(ex, "g", &body), WEIR_REASON_GROUP_QUEUE_FULL);
    check_done_at(t1, 0, 50);
    check_done_at(t2, 50, 100);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_the_queue_is_counted_exactly_beside_an_inflight_limit, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_inflight_max = 3,
                                 .group_queue_max = 2, .rejection = WEIR_DISCARD));
    struct body body = { .ms = 50 };
    weir_task *task[4];

    for (int i = 0; i < 4; i++)
        task[i] = submit(ex, "g", &body);
    check_rejected(task[3], WEIR_REASON_GROUP_QUEUE_FULL);
    for (int i = 0; i < 3; i++)
        check_done_at(task[i], i * 50, (i + 1) * 50);
    weir_executor_free(ex);
}

/* */
SIM_TEST(test_tasks_of_a_group_run_in_the_order_they_came, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    _Atomic int began = 0;
    struct body body[5];
    weir_task *task[5];

    for (int i = 0; i < 5; i++) {
        body[i] = (struct body){ .began = &began, .ms = i % 2 ? 10 : 0 };
        task[i] = submit(ex, "g", &body[i]);
    }
    for (int i = 0; i < 5; i++) {
        check_done(task[i]);
        CHECK_EQ(body[i].order, i + 1);
    }
    weir_executor_free(ex);
}

static void check_second_round(const weir_policy *policy)
{
    weir_executor *ex = new_executor(policy);
    struct body body = { .ms = 50 };
    weir_task *t1 = submit(ex, "g", &body), *t2 = submit(ex, "g", &body), *t3, *t4;

    check_done_at(t1, 0, 50);
    check_done_at(t2, 50, 100);
    t3 = submit(ex, "g", &body);
    t4 = submit(ex, "g", &body);
    check_rejected(submit(ex, "g", &body), WEIR_REASON_GROUP_QUEUE_FULL);
    check_done_at(t3, 100, 150);
    check_done_at(t4, 150, 200);
    check_books(ex);
    weir_executor_free(ex);
}

/* One runs, one waits: the fourth is accepted, always. */
SIM_TEST(test_a_second_round_finds_every_place_free, 200)
{
    check_second_round(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_inflight_max = 2,
                                   .group_queue_max = 1, .rejection = WEIR_DISCARD));
}

/* */
SIM_TEST(test_a_second_round_finds_every_place_free_without_an_inflight_limit, 200)
{
    check_second_round(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = 1,
                                   .rejection = WEIR_DISCARD));
}

/* */
SIM_TEST(test_a_rejected_task_holds_nothing, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 1,
                                 .group_queue_max = WEIR_NO_QUEUE, .rejection = WEIR_DISCARD));
    struct body gated = { .until_ms = 100 };
    weir_task *first = submit(ex, "g", &gated), *other;

    sleep_until(5);
    check_rejected(submit(ex, "g", NULL), WEIR_REASON_GROUP_QUEUE_FULL);
    other = submit(ex, "other", NULL); /* waits for the executor only */
    sleep_until(10);
    CHECK_EQ(why_of(other), WEIR_REASON_GLOBAL_INFLIGHT);
    check_done_at(other, 100, 100);
    check_done_at(first, 0, 100);
    check_books(ex);
    weir_executor_free(ex);
}

/* A costly task of low priority cannot start yet; a small one without handle or options goes before it. */
SIM_TEST(test_a_plain_task_starts_before_a_costly_one_of_lower_priority, 20)
{
    struct body holds = { .until_ms = 10 };
    struct gauge gauge = { 0 };
    struct body small = { .gauge = &gauge, .until_ms = 5 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_task *first = submit(ex, "g", &holds), *low;

    sleep_until(1);
    low = submit_with(ex, "g", NULL, WEIR_TASK(.cost = 2, .priority = WEIR_LOW));
    CHECK(weir_submit(NULL, group_of(ex, "g"), work, &small, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "g", work, &small, NULL) == 0);
    sleep_until(2);
    CHECK_EQ(gauge.now, 1);
    CHECK_EQ(result_of(low).started_at, at(10));
    CHECK_EQ(gauge.ran, 2);
    weir_task_unref(first);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_task_starts_before_a_costly_one_of_lower_priority),
        cmocka_unit_test(test_limit_and_queue_bound_how_many_are_inside_a_group),
        cmocka_unit_test(test_limit_and_queue_bound_how_many_are_inside_the_executor),
        cmocka_unit_test(test_an_executor_without_queue_takes_only_tasks_that_can_start),
        cmocka_unit_test(test_a_group_without_queue_takes_only_tasks_that_can_start),
        cmocka_unit_test(test_a_group_refuses_the_tasks_a_thread_pool_would),
        cmocka_unit_test(test_abort_makes_every_wait_answer_rejected),
        cmocka_unit_test(test_discard_settles_as_rejected_without_an_error),
        cmocka_unit_test(test_a_caller_that_runs_the_overflow_gets_its_result),
        cmocka_unit_test(test_the_answer_of_a_handler_is_the_result),
        cmocka_unit_test(test_a_handler_takes_precedence_over_the_policy),
        cmocka_unit_test(test_a_batch_collects_its_rejections),
        cmocka_unit_test(test_without_thresholds_no_task_is_rejected),
        cmocka_unit_test(test_a_group_can_have_a_queue_of_its_own_size),
        cmocka_unit_test(test_a_place_in_the_queue_is_free_again_after_its_task),
        cmocka_unit_test(test_the_listener_hears_which_task_was_rejected_and_why),
        cmocka_unit_test(test_evicting_a_full_group_makes_room),
        cmocka_unit_test(test_sizes_of_queues_are_copied),
        cmocka_unit_test(test_a_waiter_keeps_its_place_until_it_starts),
        cmocka_unit_test(test_the_queue_is_counted_exactly_beside_an_inflight_limit),
        cmocka_unit_test(test_tasks_of_a_group_run_in_the_order_they_came),
        cmocka_unit_test(test_a_second_round_finds_every_place_free),
        cmocka_unit_test(test_a_second_round_finds_every_place_free_without_an_inflight_limit),
        cmocka_unit_test(test_a_rejected_task_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
