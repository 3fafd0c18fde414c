/* Events that the listener hears, in which order, and calls it may make. SEMANTICS 1.5, 1.11, S-16.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* ---- a log of events ----------------------------------------------------------------------------- */

struct log {
    char text[1024];
    weir_executor *ex;
};

__attribute__((format(printf, 2, 3))) static void note(struct log *log, const char *format, ...)
{
    size_t used = strlen(log->text);
    va_list args;

    va_start(args, format);
    vsnprintf(log->text + used, sizeof(log->text) - used, format, args);
    va_end(args);
}

static const char *outcome_name(weir_outcome outcome)
{
    static const char *const names[] = { "unsettled", "done", "failed", "cancelled", "rejected" };

    return names[outcome];
}

static void note_submitted(weir_task *task, void *arg)
{
    note(arg, "submitted %s;", weir_task_id(task));
}

static void note_started(weir_task *task, void *arg)
{
    note(arg, "started %s;", weir_task_id(task));
}

static void note_completed(weir_task *task, const weir_result *result, void *arg)
{
    CHECK(!weir_task_done(task)); /* before waiters wake */
    note(arg, "completed %s %s;", weir_task_id(task), outcome_name(result->outcome));
}

static void note_rejected(weir_task *task, weir_reason reason, void *arg)
{
    note(arg, "rejected %s %d;", weir_task_id(task), (int)reason);
}

#define LISTENER(log)                                                           \
    {                                                                           \
        note_submitted, note_started, note_completed, note_rejected, .arg = log \
    }

static void expect(struct log *log, const char *format, ...)
{
    char wanted[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(wanted, sizeof(wanted), format, args);
    va_end(args);
    if (strcmp(log->text, wanted) != 0)
        weir_sim_fail("events \"%s\", expected \"%s\"", log->text, wanted);
    log->text[0] = '\0';
}

static weir_task *submit_as(weir_executor *ex, const char *id, struct body *body)
{
    return submit_with(ex, "g", body, WEIR_TASK(.id = id));
}

/* ---- each path ----------------------------------------------------------------------------------- */

/* 1.11: normal, failed */
SIM_TEST(test_a_task_is_submitted_started_and_completed, 200)
{
    struct log log = { 0 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .listener = LISTENER(&log)));
    struct body ok = { .ms = 10 }, bad = { .error = -EIO }, gave_up = { .error = WEIR_ECANCELED };

    check_done(submit_as(ex, "a", &ok));
    expect(&log, "submitted a;started a;completed a done;");
    CHECK_EQ(result_of(submit_as(ex, "b", &bad)).outcome, WEIR_FAILED);
    expect(&log, "submitted b;started b;completed b failed;");
    CHECK_EQ(result_of(submit_as(ex, "c", &gave_up)).outcome, WEIR_CANCELLED);
    expect(&log, "submitted c;started c;completed c cancelled;");
    weir_executor_free(ex);
}

static int answers_done(weir_result *result, weir_task *task, weir_reason reason, void *arg)
{
    (void)task, (void)reason;
    note(arg, "handler;");
    result->outcome = WEIR_DONE;
    return 0;
}

static void check_rejected_path(weir_rejection rejection, weir_rejection_fn *fn, const char *then)
{
    struct log log = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection = rejection, .rejection_fn = fn, .rejection_arg = &log,
                                 .listener = LISTENER(&log)));
    struct body gated = { .until_ms = 100 }, overflow = { .ms = 10 };
    weir_task *first = submit_as(ex, "a", &gated), *second;

    sleep_until(5);
    expect(&log, "submitted a;started a;");
    second = submit_as(ex, "b", &overflow);
    expect(&log, "submitted b;rejected b %d;%s", (int)WEIR_REASON_GROUP_QUEUE_FULL, then);
    CHECK(weir_task_done(second));
    weir_task_unref(second);
    check_done_at(first, 0, 100);
    expect(&log, "completed a done;");
    weir_executor_free(ex);
}

/* 1.11: rejected by ABORT, DISCARD, a handler; CALLER_RUNS. S-16. */
SIM_TEST(test_a_rejected_task_is_submitted_and_rejected, 100)
{
    check_rejected_path(WEIR_ABORT, NULL, "");
}

SIM_TEST(test_a_discarded_task_is_submitted_and_rejected, 100)
{
    check_rejected_path(WEIR_DISCARD, NULL, "");
}

SIM_TEST(test_a_handled_task_is_submitted_and_rejected, 100)
{
    check_rejected_path(WEIR_CALLER_RUNS, answers_done, "handler;");
}

SIM_TEST(test_a_task_its_caller_runs_is_rejected_started_and_completed, 100)
{
    check_rejected_path(WEIR_CALLER_RUNS, NULL, "started b;completed b done;");
}

/* 1.11: cancelled while waiting; cancelled while running */
SIM_TEST(test_a_cancelled_task_is_completed_as_cancelled_once, 300)
{
    struct log log = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .listener = LISTENER(&log)));
    struct body gated = { .until_ms = 100 };
    weir_task *first = submit_as(ex, "a", &gated), *second;

    sleep_until(5);
    second = submit_as(ex, "b", NULL);
    CHECK(weir_task_cancel(second) && !weir_task_cancel(second));
    expect(&log, "submitted a;started a;submitted b;completed b cancelled;");
    CHECK(weir_task_cancel(first) && !weir_task_cancel(first));
    expect(&log, "completed a cancelled;");
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    expect(&log, "%s", "");
    check_cancelled(first);
    check_cancelled(second);
    check_books(ex);
    weir_executor_free(ex);
}

/* 1.11: drained by evicting or closing */
SIM_TEST(test_a_drained_task_is_rejected, 200)
{
    struct log log = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .listener = LISTENER(&log)));
    struct body gated = { .until_ms = 100 };
    weir_task *task[4];

    task[0] = submit_as(ex, "a", &gated);
    sleep_until(5);
    task[1] = submit_as(ex, "b", NULL);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    expect(&log, "submitted a;started a;submitted b;rejected b %d;", (int)WEIR_REASON_EVICTED);
    task[2] = submit_as(ex, "c", &gated);
    sleep_until(10);
    task[3] = submit_as(ex, "d", NULL);
    weir_executor_close(ex, WEIR_LEAVE_RUNNING);
    expect(&log, "submitted c;started c;submitted d;rejected d %d;", (int)WEIR_REASON_SHUT_DOWN);
    check_done_at(task[0], 0, 100);
    check_rejected(task[1], WEIR_REASON_EVICTED);
    check_done_at(task[2], 5, 100);
    check_rejected(task[3], WEIR_REASON_SHUT_DOWN);
    weir_executor_free(ex);
}

/* 1.11: bad arguments, or closed */
SIM_TEST(test_the_listener_hears_nothing_of_bad_calls, 50)
{
    struct log log = { 0 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .listener = LISTENER(&log)));

    CHECK(weir_submit_key(NULL, ex, NULL, work, NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_submit_key(NULL, ex, "g", NULL, NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_submit_key(NULL, ex, "g", work, NULL, WEIR_TASK(.cost = 2)) == WEIR_EINVAL);
    CHECK(weir_submit_key(NULL, ex, "g", work, NULL, WEIR_TASK(.priority = 9)) == WEIR_EINVAL);
    weir_executor_close(ex, 0);
    CHECK(weir_submit_key(NULL, ex, "g", work, NULL, NULL) == WEIR_ECLOSED);
    expect(&log, "%s", "");
    weir_executor_free(ex);
}

static int pends(void **value, void *arg)
{
    (void)value, (void)arg;
    return WEIR_PENDING;
}

/* A pending task is completed when it is settled. */
SIM_TEST(test_a_pending_task_is_completed_when_it_is_settled, 200)
{
    struct log log = { 0 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .listener = LISTENER(&log)));
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, "g", pends, NULL, WEIR_TASK(.id = "a")) == 0);
    sleep_until(10);
    expect(&log, "submitted a;started a;");
    CHECK(weir_task_settle(task, 0, "late") == 0);
    expect(&log, "completed a done;");
    check_done_at(task, 0, 10);
    weir_executor_free(ex);
}

/* ---- the handler ----------------------------------------------------------------------------------- */

static int fails(weir_result *result, weir_task *task, weir_reason reason, void *arg)
{
    (void)task, (void)reason, (void)arg;
    result->outcome = WEIR_DONE;
    return -EIO;
}

static int answers_nothing(weir_result *result, weir_task *task, weir_reason reason, void *arg)
{
    (void)task, (void)reason, (void)arg;
    result->outcome = WEIR_UNSETTLED;
    return 0;
}

/* 1.5, 5-G12: submit answers 0, the rejection stands, and a batch goes on. */
SIM_TEST(test_a_handler_that_fails_leaves_a_rejection_with_its_error, 100)
{
    for (int i = 0; i < 2; i++) {
        weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1,
                                                     .group_queue_max = WEIR_NO_QUEUE,
                                                     .rejection_fn = i ? answers_nothing : fails));
        struct body body = { .ms = 10 };
        weir_work batch[3];
        weir_result result[3];

        for (int k = 0; k < 3; k++)
            batch[k] = (weir_work){ .key = "g", .fn = work, .arg = &body };
        CHECK(weir_execute_all(result, ex, batch, 3) == 0);
        CHECK_EQ(result[0].outcome, WEIR_DONE);
        for (int k = 1; k < 3; k++) {
            CHECK_EQ(result[k].outcome, WEIR_REJECTED);
            CHECK_EQ(result[k].error, i ? WEIR_EREJECTED : -EIO);
            CHECK_EQ(result[k].reason, WEIR_REASON_GROUP_QUEUE_FULL);
        }
        check_books(ex);
        weir_executor_free(ex);
    }
}

/* ---- callbacks may call anything --------------------------------------------------------------------- */

struct reentrant {
    weir_executor *ex;
    _Atomic int more, ran;
};

static void reenter(weir_task *task, void *arg)
{
    struct reentrant *r = arg;
    weir_group_stats stats = { .size = sizeof(stats) };

    CHECK(strcmp(weir_task_key(task), "g") == 0 || strcmp(weir_task_key(task), "h") == 0);
    CHECK(stats_all(r->ex).groups <= 2);
    weir_group_stats_get(&stats, r->ex, weir_task_key(task));
    if (r->more > 0 && --r->more >= 0)
        CHECK(weir_submit_key(NULL, r->ex, r->more % 2 ? "g" : "h", work, NULL, NULL) == 0);
}

static void reenter_completed(weir_task *task, const weir_result *result, void *arg)
{
    struct reentrant *r = arg;

    (void)result;
    reenter(task, arg);
    if (r->ran++ % 4 == 3)
        CHECK(weir_group_evict(r->ex, weir_task_key(task), 0) == 0);
}

static void reenter_rejected(weir_task *task, weir_reason reason, void *arg)
{
    (void)reason;
    reenter_completed(task, NULL, arg);
}

/* 1.11: no lock is held, so a listener may submit, read figures, and evict. */
SIM_TEST(test_a_listener_may_submit_read_and_evict, 300)
{
    struct reentrant r = { .more = 20 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 2,
                                                 .listener = { reenter, reenter, reenter_completed,
                                                               reenter_rejected, .arg = &r }));

    r.ex = ex;
    for (int i = 0; i < 4; i++)
        CHECK(weir_submit_key(NULL, ex, i % 2 ? "g" : "h", work, NULL, NULL) == 0);
    CHECK(weir_executor_drain(ex, weir_in_s(10)) == 0);
    CHECK_EQ(r.ran, 24); /* each ended exactly once */
    check_books(ex);
    weir_executor_free(ex);
}

static void cancel_it(weir_task *task, void *arg)
{
    note(arg, "submitted %s;", weir_task_id(task));
    CHECK(weir_task_cancel(task));
}

/* "It may call anything": also cancel the task it is told of, before anything was decided. */
SIM_TEST(test_a_listener_may_cancel_a_task_that_is_being_submitted, 100)
{
    struct log log = { 0 };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .listener = { cancel_it, note_started, note_completed,
                                                note_rejected, .arg = &log }));
    weir_task *task = submit_as(ex, "a", NULL);

    check_cancelled(task);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    expect(&log, "submitted a;completed a cancelled;");
    check_books(ex);
    weir_executor_free(ex);
}

static int cancels_it(weir_result *result, weir_task *task, weir_reason reason, void *arg)
{
    (void)result, (void)reason, (void)arg;
    weir_task_cancel(task);
    return 0;
}

/* The same for a handler; whichever stands, it settles once. */
SIM_TEST(test_a_handler_may_cancel_a_task_that_was_rejected, 100)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection_fn = cancels_it));
    struct body gated = { .until_ms = 50 };
    weir_task *first = submit(ex, "g", &gated);
    weir_result result = result_of(submit(ex, "g", NULL));

    CHECK(result.outcome == WEIR_CANCELLED || result.outcome == WEIR_REJECTED);
    check_done_at(first, 0, 50);
    check_books(ex);
    weir_executor_free(ex);
}

static void is_busy(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result, (void)arg;
    weir_sim_busy(5 * MS);
}

/* 1.11: permits are back and the next is dispatched before any callback is told, in other groups too. */
SIM_TEST(test_a_slow_callback_does_not_keep_another_group_waiting, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 1));
    struct body body = { .until_ms = 50 };
    weir_task *first = submit_with(ex, "A", &body, WEIR_TASK(.on_done = is_busy)), *second;

    sleep_until(10);
    second = submit(ex, "B", NULL);
    check_done_at(second, 50, 50);
    check_done_at(first, 0, 50);
    weir_executor_free(ex);
}

/* The same within the group. */
SIM_TEST(test_a_slow_callback_does_not_keep_its_own_group_waiting, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .until_ms = 50 };
    weir_task *first = submit_with(ex, "A", &body, WEIR_TASK(.on_done = is_busy)), *second;

    sleep_until(10);
    second = submit(ex, "A", NULL);
    check_done_at(second, 50, 50);
    check_done_at(first, 0, 50);
    weir_executor_free(ex);
}

struct again {
    weir_executor *ex;
    weir_task *second;
};

static void submit_again(weir_task *task, const weir_result *result, void *arg)
{
    struct again *again = arg;

    (void)task, (void)result;
    again->second = submit(again->ex, "g", NULL);
}

/* 5-G20: a callback that hears of the end finds the permit free, even without a queue. */
SIM_TEST(test_a_callback_that_submits_again_finds_room, 300)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 1,
                                 .queue_max = WEIR_NO_QUEUE, .group_queue_max = WEIR_NO_QUEUE));
    struct again again = { .ex = ex };
    struct body body = { .ms = 10 };
    weir_task *first =
        submit_with(ex, "g", &body, WEIR_TASK(.on_done = submit_again, .on_done_arg = &again));

    check_done_at(first, 0, 10);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_done_at(again.second, 10, 10);
    for (int i = 0; i < 5; i++) /* and so does a caller that waits */
        check_done_at(submit(ex, "g", NULL), 10, 10);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_is_submitted_started_and_completed),
        cmocka_unit_test(test_a_rejected_task_is_submitted_and_rejected),
        cmocka_unit_test(test_a_discarded_task_is_submitted_and_rejected),
        cmocka_unit_test(test_a_handled_task_is_submitted_and_rejected),
        cmocka_unit_test(test_a_task_its_caller_runs_is_rejected_started_and_completed),
        cmocka_unit_test(test_a_cancelled_task_is_completed_as_cancelled_once),
        cmocka_unit_test(test_a_drained_task_is_rejected),
        cmocka_unit_test(test_the_listener_hears_nothing_of_bad_calls),
        cmocka_unit_test(test_a_pending_task_is_completed_when_it_is_settled),
        cmocka_unit_test(test_a_handler_that_fails_leaves_a_rejection_with_its_error),
        cmocka_unit_test(test_a_listener_may_submit_read_and_evict),
        cmocka_unit_test(test_a_slow_callback_does_not_keep_another_group_waiting),
        cmocka_unit_test(test_a_slow_callback_does_not_keep_its_own_group_waiting),
        cmocka_unit_test(test_a_callback_that_submits_again_finds_room),
        cmocka_unit_test(test_a_listener_may_cancel_a_task_that_is_being_submitted),
        cmocka_unit_test(test_a_handler_may_cancel_a_task_that_was_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
