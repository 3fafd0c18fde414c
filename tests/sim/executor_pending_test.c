/* Tasks that are settled from outside, values, cancelling twice, and submits that wait for room.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* ---- pending --------------------------------------------------------------------------------------- */

static int pends(void **value, void *arg)
{
    (void)value, (void)arg;
    return WEIR_PENDING;
}

static weir_task *submit_fn(weir_executor *ex, const char *key, weir_fn *fn, void *arg,
                            const weir_task_options *opt)
{
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, key, fn, arg, opt) == 0 && task);
    return task;
}

static void settle_at_50(void *arg)
{
    CHECK(weir_sleep(at(50)) == 0);
    CHECK(weir_task_settle(arg, 0, "late") == 0);
    CHECK(weir_task_settle(arg, -EIO, "later") == WEIR_EALREADY);
    CHECK(!weir_task_cancel(arg));
}

SIM_TEST(test_a_pending_task_is_in_flight_but_does_not_run, 200)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = 1, .group_inflight_max = 2, .inflight_max = 10));
    struct body body = { .ms = 10 };
    weir_task *pending = submit_fn(ex, "g", pends, NULL, NULL), *task[3];
    int64_t thread = weir_sim_thread(settle_at_50, pending, "settler");

    for (int i = 0; i < 3; i++)
        task[i] = submit(ex, "g", &body);
    sleep_until(5);
    CHECK_EQ(stats_of(ex, "g").running, 1);  /* the first of the others */
    CHECK_EQ(stats_of(ex, "g").inflight, 2); /* and the pending one     */
    CHECK_EQ(stats_of(ex, "g").waiting, 2);
    CHECK_EQ(why_of(pending), WEIR_REASON_PENDING);
    check_done_at(task[0], 0, 10);
    check_done_at(task[1], 10, 20);
    check_done_at(task[2], 20, 30);
    CHECK_EQ(stats_all(ex).inflight, 1);
    CHECK_EQ(stats_all(ex).running, 0);
    CHECK(weir_executor_drain(ex, at(40)) == WEIR_ETIMEDOUT); /* it is still there */
    weir_result result = WEIR_RESULT;
    CHECK(weir_task_wait(&result, pending, WEIR_FOREVER) == 0);
    CHECK(result.outcome == WEIR_DONE && strcmp(result.value, "late") == 0);
    CHECK(result.started_at == at(0) && result.ended_at == at(50));
    weir_sim_join(thread);
    weir_task_unref(pending);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_pending_task_holds_its_groups_inflight_permit, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .group_inflight_max = 1));
    weir_task *pending = submit_fn(ex, "g", pends, NULL, NULL), *next = submit(ex, "g", NULL);
    int64_t thread = weir_sim_thread(settle_at_50, pending, "settler");

    sleep_until(5);
    CHECK_EQ(why_of(next), WEIR_REASON_GROUP_INFLIGHT);
    check_done_at(next, 50, 50);
    weir_sim_join(thread);
    check_done_at(pending, 0, 50);
    weir_executor_free(ex);
}

SIM_TEST(test_a_pending_task_holds_its_executors_permit, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 1));
    weir_task *pending = submit_fn(ex, "g", pends, NULL, NULL), *next;
    int64_t thread = weir_sim_thread(settle_at_50, pending, "settler");

    sleep_until(5);
    next = submit(ex, "other", NULL);
    sleep_until(6);
    CHECK_EQ(why_of(next), WEIR_REASON_GLOBAL_INFLIGHT);
    check_done_at(next, 50, 50);
    weir_sim_join(thread);
    check_done_at(pending, 0, 50);
    check_books(ex);
    weir_executor_free(ex);
}

static int settles_itself(void **value, void *arg)
{
    (void)value;
    CHECK(weir_task_settle(weir_task_self(), 0, arg) == 0);
    CHECK(weir_sleep(weir_now() + 10 * MS) == WEIR_ECANCELED ||
          weir_now() == at(10)); /* settled is settled; the permit is held until it returns */
    return WEIR_PENDING;
}

SIM_TEST(test_a_task_may_be_settled_before_its_body_returns, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_task *task = submit_fn(ex, "g", settles_itself, "early", NULL);
    weir_result result = result_of(task);

    CHECK(result.outcome == WEIR_DONE && result.ended_at == at(0));
    check_done(submit(ex, "g", NULL));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

/* On a thread, which pulls no work itself. */
static int pends_at_10(void **value, void *arg)
{
    (void)value, (void)arg;
    weir_sim_busy(10 * MS);
    return WEIR_PENDING;
}

SIM_TEST(test_the_permit_of_a_settled_task_that_pends_on_a_thread_starts_another_group, 100)
{
    weir_group_policy groups[] = { { .key = "threads", .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .inflight_max = 1, .groups = groups, .group_count = 1));
    weir_task *first = submit_fn(ex, "threads", pends_at_10, NULL, NULL);

    sleep_until(5);
    weir_task *second = submit(ex, "workers", NULL);
    CHECK(weir_task_cancel(first));
    check_done_at(second, 10, 10);
    weir_task_unref(first);
    weir_executor_free(ex);
}

SIM_TEST(test_a_pending_task_can_fail_or_be_cancelled, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_inflight_max = 1));
    weir_task *task[3];
    weir_result result;

    for (int i = 0; i < 3; i++) {
        task[i] = submit_fn(ex, "g", pends, NULL, NULL);
        sleep_until(i + 1);
        CHECK_EQ(stats_of(ex, "g").inflight, 1);
        if (i == 0)
            CHECK(weir_task_settle(task[i], -EIO, NULL) == 0);
        else if (i == 1)
            CHECK(weir_task_settle(task[i], WEIR_ECANCELED, NULL) == 0);
        else
            CHECK(weir_task_cancel(task[i]));
        CHECK(weir_task_settle(task[i], 0, NULL) == WEIR_EALREADY);
        CHECK(weir_task_settle(task[i], WEIR_PENDING, NULL) == WEIR_EINVAL);
        CHECK_EQ(stats_of(ex, "g").inflight, 0);
    }
    result = result_of(task[0]);
    CHECK(result.outcome == WEIR_FAILED && result.error == -EIO && result.ended_at == at(1));
    check_cancelled(task[1]);
    check_cancelled(task[2]);
    check_books(ex);
    weir_executor_free(ex);
}

struct race {
    weir_task *task;
    _Atomic int won;
};

static void race_cancel(void *arg)
{
    struct race *race = arg;

    race->won += weir_task_cancel(race->task);
}

static void race_settle(void *arg)
{
    struct race *race = arg;
    int rc = weir_task_settle(race->task, 0, "settled");

    CHECK(rc == 0 || rc == WEIR_EALREADY);
    race->won += rc == 0;
}

/* I5: many ends, one wins, and all callers see the same. */
SIM_TEST(test_of_many_threads_that_end_a_task_one_wins, 500)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 1));
    struct race race = { .task = submit_fn(ex, "g", pends, NULL, NULL) };
    weir_result one = WEIR_RESULT, two = WEIR_RESULT;
    int64_t thread[4];

    sleep_until(1);
    for (int i = 0; i < 4; i++)
        thread[i] = weir_sim_thread(i % 2 ? race_cancel : race_settle, &race, "ender");
    CHECK(weir_task_wait(&one, race.task, WEIR_FOREVER) == 0);
    for (int i = 0; i < 4; i++)
        weir_sim_join(thread[i]);
    CHECK(weir_task_wait(&two, race.task, WEIR_FOREVER) == 0);
    CHECK_EQ(race.won, 1);
    CHECK(one.outcome == two.outcome && one.ended_at == two.ended_at && one.value == two.value);
    weir_task_unref(race.task);
    check_done_at(submit(ex, "h", NULL), 1, 1); /* the permit came back, once */
    check_books(ex);
    weir_executor_free(ex);
}

/* The same while it may be waiting, starting, running or over. */
SIM_TEST(test_a_cancel_races_with_start_and_end, 500)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 1));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge };
    struct race race = { .task = submit(ex, "g", &body) };
    int64_t thread[2];

    for (int i = 0; i < 2; i++)
        thread[i] = weir_sim_thread(race_cancel, &race, "canceller");
    weir_result result = WEIR_RESULT;
    CHECK(weir_task_wait(&result, race.task, WEIR_FOREVER) == 0);
    for (int i = 0; i < 2; i++)
        weir_sim_join(thread[i]);
    CHECK_EQ(race.won, result.outcome == WEIR_CANCELLED);
    CHECK(result.outcome == WEIR_CANCELLED || gauge.ran == 1);
    weir_task_unref(race.task);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

/* ---- values ------------------------------------------------------------------------------------------- */

static _Atomic int dropped;

static void drop(void *value)
{
    dropped += *(int *)value;
}

SIM_TEST(test_a_value_is_taken_once_or_dropped_once, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    int value[] = { 1, 10, 100, 1000 };
    struct body taken = { .value = &value[0] }, left = { .value = &value[1] };
    struct body late = { .until_ms = 50, .value = &value[2] };
    weir_task *task;

    dropped = 0;
    task = submit_with(ex, "g", &taken, WEIR_TASK(.drop = drop));
    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    CHECK(weir_task_take(task) == &value[0]);
    CHECK(weir_task_take(task) == NULL);
    weir_result result = WEIR_RESULT;
    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0 && !result.value);
    weir_task_unref(task);
    CHECK_EQ(dropped, 0);

    check_done(submit_with(ex, "g", &left, WEIR_TASK(.drop = drop)));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(dropped, 10);

    task =
        submit_with(ex, "g", &late, WEIR_TASK(.drop = drop)); /* cancelled; its late value goes */
    sleep_until(10);
    CHECK(weir_task_take(task) == NULL);
    CHECK(weir_task_cancel(task));
    check_cancelled(task);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(dropped, 110);

    task = submit_fn(ex, "g", pends, NULL, WEIR_TASK(.drop = drop));
    sleep_until(60);
    CHECK(weir_task_cancel(task));
    CHECK(weir_task_settle(task, 0, &value[3]) == WEIR_EALREADY); /* dropped at once */
    CHECK_EQ(dropped, 1110);
    check_cancelled(task);
    weir_executor_free(ex);
}

/* ---- WEIR_BLOCK ---------------------------------------------------------------------------------------- */

static weir_executor *blocking_executor(void)
{
    return new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1,
                                    .group_queue_max = WEIR_NO_QUEUE, .rejection = WEIR_BLOCK));
}

SIM_TEST(test_a_blocked_submit_goes_on_when_there_is_room, 300)
{
    weir_executor *ex = blocking_executor();
    struct body body = { .ms = 50 };
    weir_task *first = submit(ex, "g", &body), *second = submit(ex, "g", &body);

    CHECK_EQ(weir_now(), at(50));
    check_done_at(submit(ex, "other", NULL), 50, 50);
    check_done_at(first, 0, 50);
    weir_result result = result_of(second);
    CHECK(result.started_at == at(50) && result.ended_at == at(100) && result.queued_at == at(0));
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_blocked_submit_gives_up_at_its_deadline, 300)
{
    weir_executor *ex = blocking_executor();
    struct body body = { .ms = 50 };
    weir_task *first = submit(ex, "g", &body), *second = first;

    CHECK(weir_submit_key(&second, ex, "g", work, NULL, WEIR_TASK(.deadline = at(20))) ==
          WEIR_ETIMEDOUT);
    CHECK(!second);
    CHECK_EQ(weir_now(), at(20));
    CHECK(weir_submit_key(NULL, ex, "g", work, NULL, WEIR_TASK(.deadline = at(1))) ==
          WEIR_ETIMEDOUT);
    check_done_at(first, 0, 50);
    check_books(ex);
    weir_executor_free(ex);
}

static int submits_to_full(void **value, void *arg)
{
    (void)value;
    return weir_submit_key(NULL, arg, "g", work, NULL, NULL);
}

SIM_TEST(test_a_blocked_submit_of_a_cancelled_task_gives_up, 300)
{
    weir_executor *ex = blocking_executor();
    struct body body = { .ms = 50 };
    weir_task *first = submit(ex, "g", &body), *caller;

    sleep_until(1);
    caller = submit_fn(ex, "caller", submits_to_full, ex, NULL);
    sleep_until(20);
    CHECK(weir_task_cancel(caller));
    check_cancelled(caller);
    check_done_at(first, 0, 50);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(50));
    check_books(ex);
    weir_executor_free(ex);
}

struct blocked {
    weir_executor *ex;
    weir_task *task;
    int rc;
    weir_time when;
};

static void submit_blocked(void *arg)
{
    struct blocked *blocked = arg;

    blocked->rc = weir_submit_key(&blocked->task, blocked->ex, "g", work, NULL, NULL);
    blocked->when = weir_now();
}

static int pends_at_30(void **value, void *arg)
{
    (void)value, (void)arg;
    CHECK(weir_sleep(at(30)) == 0);
    return WEIR_PENDING;
}

/* A task that becomes pending makes room: it runs no longer. */
SIM_TEST(test_a_task_that_becomes_pending_makes_room_for_a_blocked_submit, 200)
{
    struct blocked blocked = { .ex = blocking_executor() };
    weir_task *first = submit_fn(blocked.ex, "g", pends_at_30, NULL, NULL);
    int64_t thread = weir_sim_thread(submit_blocked, &blocked, "blocked");

    sleep_until(60);
    CHECK(weir_task_settle(first, 0, NULL) == 0);
    weir_sim_join(thread);
    CHECK_EQ(blocked.rc, 0);
    CHECK_EQ(blocked.when, at(30));
    check_done_at(blocked.task, 30, 30);
    check_done_at(first, 0, 60);
    weir_executor_free(blocked.ex);
}

/* So do resuming and resizing. */
SIM_TEST(test_resuming_makes_room_for_a_blocked_submit, 200)
{
    struct blocked blocked = { .ex = blocking_executor() };
    weir_group *group = group_of(blocked.ex, "g");

    weir_group_pause(group);
    int64_t thread = weir_sim_thread(submit_blocked, &blocked, "blocked");
    sleep_until(20);
    weir_group_resume(group);
    weir_sim_join(thread);
    CHECK_EQ(blocked.rc, 0);
    CHECK_EQ(blocked.when, at(20));
    check_done_at(blocked.task, 20, 20);
    weir_executor_free(blocked.ex);
}

SIM_TEST(test_resizing_makes_room_for_a_blocked_submit, 200)
{
    struct blocked blocked = { .ex = blocking_executor() };
    struct body body = { .until_ms = 50 };
    weir_task *first = submit(blocked.ex, "g", &body);
    int64_t thread = weir_sim_thread(submit_blocked, &blocked, "blocked");

    sleep_until(20);
    CHECK(weir_group_resize(group_of(blocked.ex, "g"), 2, 0, 0) == 0);
    weir_sim_join(thread);
    CHECK_EQ(blocked.when, at(20));
    check_done_at(blocked.task, 20, 20);
    check_done_at(first, 0, 50);
    weir_executor_free(blocked.ex);
}

/* 1.10: closing closes intake, for callers that wait at the door as well. */
SIM_TEST(test_a_blocked_submit_is_turned_away_when_the_executor_closes, 300)
{
    struct blocked blocked = { .ex = blocking_executor() };
    struct body body = { .until_ms = 50 };
    weir_task *first = submit(blocked.ex, "g", &body);
    int64_t thread = weir_sim_thread(submit_blocked, &blocked, "blocked");

    sleep_until(20);
    CHECK(weir_executor_shutdown(blocked.ex, at(1000)) == 0);
    CHECK_EQ(weir_now(), at(50));
    weir_sim_join(thread);
    CHECK_EQ(blocked.when, at(20));
    CHECK(blocked.rc == WEIR_ECLOSED || blocked.rc == 0);
    if (blocked.rc == 0)
        check_rejected(blocked.task, WEIR_REASON_SHUT_DOWN);
    check_done_at(first, 0, 50);
    weir_executor_free(blocked.ex);
}

/* ---- bodies run by their caller ------------------------------------------------------------------------ */

struct shown {
    _Atomic(weir_task *) task;
    int end; /* 'c': cancel it, 's': settle it */
    int answer;
};

static void show(weir_task *task, void *arg)
{
    struct shown *shown = arg;

    if (strcmp(weir_task_id(task), "overflow") == 0)
        shown->task = weir_task_ref(task);
}

static void end_shown(void *arg)
{
    struct shown *shown = arg;

    CHECK(weir_sleep(at(20)) == 0);
    shown->answer = shown->end == 'c' ? weir_task_cancel(shown->task)
                                      : weir_task_settle(shown->task, 0, "settled");
    weir_task_unref(shown->task);
}

static int pends_after_30(void **value, void *arg)
{
    (void)value, (void)arg;
    weir_sleep(at(30));
    return WEIR_PENDING;
}

static void check_caller_run(int end)
{
    struct shown shown = { .end = end };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                    .rejection = WEIR_CALLER_RUNS, .listener = { .started = show, .arg = &shown }));
    struct body gated = { .until_ms = 50 };
    weir_task *first = submit(ex, "g", &gated), *second;
    int64_t thread = weir_sim_thread(end_shown, &shown, "ender");
    weir_result result;

    sleep_until(10);
    second = submit_fn(ex, "g", pends_after_30, NULL, WEIR_TASK(.id = "overflow"));
    weir_sim_join(thread);
    result = result_of(second);
    CHECK_EQ(shown.answer, end == 'c' ? true : 0);
    CHECK_EQ(result.outcome, end == 'c' ? WEIR_CANCELLED : WEIR_DONE);
    CHECK_EQ(result.ended_at, at(20));
    check_done_at(first, 0, 50);
    check_books(ex);
    weir_executor_free(ex);
}

/* Settled or cancelled while the caller still runs it: as anywhere else. */
SIM_TEST(test_a_body_its_caller_runs_can_be_settled_from_outside, 100)
{
    check_caller_run('s');
}

SIM_TEST(test_a_body_its_caller_runs_can_be_cancelled, 100)
{
    check_caller_run('c');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pending_task_is_in_flight_but_does_not_run),
        cmocka_unit_test(test_a_pending_task_holds_its_groups_inflight_permit),
        cmocka_unit_test(test_a_pending_task_holds_its_executors_permit),
        cmocka_unit_test(test_a_task_may_be_settled_before_its_body_returns),
        cmocka_unit_test(
            test_the_permit_of_a_settled_task_that_pends_on_a_thread_starts_another_group),
        cmocka_unit_test(test_a_pending_task_can_fail_or_be_cancelled),
        cmocka_unit_test(test_of_many_threads_that_end_a_task_one_wins),
        cmocka_unit_test(test_a_cancel_races_with_start_and_end),
        cmocka_unit_test(test_a_value_is_taken_once_or_dropped_once),
        cmocka_unit_test(test_a_blocked_submit_goes_on_when_there_is_room),
        cmocka_unit_test(test_a_blocked_submit_gives_up_at_its_deadline),
        cmocka_unit_test(test_a_blocked_submit_of_a_cancelled_task_gives_up),
        cmocka_unit_test(test_a_task_that_becomes_pending_makes_room_for_a_blocked_submit),
        cmocka_unit_test(test_resuming_makes_room_for_a_blocked_submit),
        cmocka_unit_test(test_resizing_makes_room_for_a_blocked_submit),
        cmocka_unit_test(test_a_blocked_submit_is_turned_away_when_the_executor_closes),
        cmocka_unit_test(test_a_body_its_caller_runs_can_be_settled_from_outside),
        cmocka_unit_test(test_a_body_its_caller_runs_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
