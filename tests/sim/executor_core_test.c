/* The executor's core: limits of groups and of the whole, turns, handles, closing. SEMANTICS 6.1.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* ---- limits ---------------------------------------------------------------------------------- */

/* G-01 */
SIM_TEST(test_no_more_than_the_limit_of_a_group_run_at_once, 200)
{
    weir_group_policy groups[] = { { .key = "group-1", .limit = 2 } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 1));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 80 };
    weir_task *task[8];

    for (int i = 0; i < 8; i++)
        task[i] = submit(ex, "group-1", &body);
    for (int i = 0; i < 8; i++)
        check_done_at(task[i], i / 2 * 80, (i / 2 + 1) * 80);
    CHECK_EQ(gauge.peak, 2);
    CHECK_EQ(stats_of(ex, "group-1").peak, 2);
    check_books(ex);
    weir_executor_free(ex);
}

/* G-02 */
SIM_TEST(test_groups_run_beside_one_another, 200)
{
    weir_group_policy groups[] = { { .key = "A", .limit = 2 }, { .key = "B", .limit = 2 } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 2));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 100 };
    weir_task *task[4];

    for (int i = 0; i < 4; i++)
        task[i] = submit(ex, i % 2 ? "B" : "A", &body);
    for (int i = 0; i < 4; i++)
        check_done_at(task[i], 0, 100);
    CHECK_EQ(gauge.peak, 4);
    weir_executor_free(ex);
}

/* G-03 */
SIM_TEST(test_a_failing_task_does_not_disturb_its_batch, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct body ok = { .value = "ok" }, bad = { .error = -EIO }, ok2 = { .value = "ok-2" };
    weir_work batch[] = { { .key = "g", .id = "t-1", .fn = work, .arg = &ok },
                          { .key = "g", .id = "t-2", .fn = work, .arg = &bad },
                          { .key = "g", .id = "t-3", .fn = work, .arg = &ok2 } };
    weir_result result[3];

    CHECK(weir_execute_all(result, ex, batch, 3) == 0);
    CHECK(result[0].outcome == WEIR_DONE && strcmp(result[0].value, "ok") == 0);
    CHECK(result[1].outcome == WEIR_FAILED && result[1].error == -EIO && !result[1].value);
    CHECK(result[2].outcome == WEIR_DONE && strcmp(result[2].value, "ok-2") == 0);
    CHECK(weir_execute_all(NULL, ex, NULL, 0) == 0); /* none is fine, too */
    check_books(ex);
    weir_executor_free(ex);
}

static int four_for_vips(int64_t *limit, const char *key, void *arg)
{
    ++*(_Atomic int *)arg;
    *limit = strncmp(key, "vip:", 4) == 0 ? 4 : 1;
    return 0;
}

/* G-04 */
SIM_TEST(test_a_limit_can_be_asked_for, 200)
{
    _Atomic int asked = 0;
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .limit_for = four_for_vips, .limit_arg = (void *)&asked));
    struct gauge vip = { 0 }, plain = { 0 };
    struct body vip_body = { .gauge = &vip, .ms = 80 }, plain_body = { .gauge = &plain, .ms = 80 };
    weir_task *task[12];

    for (int i = 0; i < 12; i++)
        task[i] = i < 8 ? submit(ex, "vip:1", &vip_body) : submit(ex, "plain", &plain_body);
    for (int i = 0; i < 8; i++)
        check_done_at(task[i], i / 4 * 80, (i / 4 + 1) * 80);
    for (int i = 8; i < 12; i++)
        check_done_at(task[i], (i - 8) * 80, (i - 7) * 80);
    CHECK_EQ(vip.peak, 4);
    CHECK_EQ(plain.peak, 1);
    CHECK_EQ(asked, 2); /* once per group */
    weir_executor_free(ex);
}

/* G-05 */
SIM_TEST(test_a_smaller_inflight_limit_holds_a_group_back, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4, .group_inflight_max = 3));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 50 };
    weir_task *task[6];

    for (int i = 0; i < 6; i++)
        task[i] = submit(ex, "g", &body);
    for (int i = 0; i < 6; i++)
        check_done_at(task[i], i / 3 * 50, (i / 3 + 1) * 50);
    CHECK_EQ(gauge.peak, 3);
    weir_executor_free(ex);
}

/* G-06 */
SIM_TEST(test_no_more_are_in_flight_than_the_group_allows, 100)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 20, .group_inflight_max = 5));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 50 };
    weir_task *task[20];

    for (int i = 0; i < 20; i++)
        task[i] = submit(ex, "g", &body);
    for (int round = 0; round < 4; round++) {
        sleep_until(round * 50 + 25);
        CHECK_EQ(stats_of(ex, "g").inflight, 5);
        CHECK_EQ(stats_of(ex, "g").waiting, 15 - round * 5);
    }
    for (int i = 0; i < 20; i++)
        check_done_at(task[i], i / 5 * 50, (i / 5 + 1) * 50);
    CHECK_EQ(gauge.peak, 5);
    weir_executor_free(ex);
}

/* G-07 */
SIM_TEST(test_all_groups_together_keep_to_the_executors_limit, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 10, .inflight_max = 4));
    const char *keys[] = { "A", "B", "C" };
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 60 };
    weir_task *task[12];
    int starts[3] = { 0 };

    for (int i = 0; i < 12; i++)
        task[i] = submit(ex, keys[i / 4], &body);
    for (int i = 0; i < 12; i++) {
        weir_result result = result_of(task[i]);
        int64_t turn = (result.started_at - at(0)) / (60 * MS);
        CHECK_EQ(result.outcome, WEIR_DONE);
        CHECK(turn >= 0 && turn < 3 && result.started_at == at(turn * 60));
        starts[turn]++;
    }
    CHECK(starts[0] == 4 && starts[1] == 4 && starts[2] == 4);
    CHECK_EQ(gauge.peak, 4);
    weir_executor_free(ex);
}

/* G-08 */
SIM_TEST(test_a_flooding_group_delays_another_by_one_turn_at_most, 100)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 10, .inflight_max = 2));
    struct body body = { .ms = 10 };
    weir_task *flood[100], *lone[2];
    weir_result result;

    for (int i = 0; i < 100; i++)
        flood[i] = submit(ex, "A", &body);
    for (int i = 0; i < 2; i++)
        lone[i] = submit(ex, "B", &body);
    for (int i = 0; i < 2; i++) {
        result = result_of(lone[i]);
        CHECK_EQ(result.outcome, WEIR_DONE);
        CHECK(result.started_at <= at((i + 1) * 10));
    }
    for (int i = 0; i < 100; i++) {
        result = result_of(flood[i]);
        CHECK_EQ(result.outcome, WEIR_DONE);
    }
    CHECK_EQ(weir_now(), at(510)); /* nothing stood idle meanwhile */
    weir_executor_free(ex);
}

/* G-09 */
SIM_TEST(test_without_a_global_queue_a_task_that_cannot_start_is_rejected, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 10, .inflight_max = 4,
                                 .queue_max = WEIR_NO_QUEUE, .rejection = WEIR_DISCARD));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .until_ms = 100 };
    weir_task *task[12];

    for (int i = 0; i < 12; i++)
        task[i] = submit(ex, "g", &body);
    for (int i = 0; i < 4; i++)
        check_done_at(task[i], 0, 100);
    for (int i = 4; i < 12; i++)
        check_rejected(task[i], WEIR_REASON_GLOBAL_QUEUE_FULL);
    CHECK_EQ(gauge.peak, 4);
    check_books(ex);
    weir_executor_free(ex);
}

/* ---- evicting a group; shutdownGroup of the originals is the same ------------------------------ */

/* G-10 */
SIM_TEST(test_evicting_a_group_leaves_the_others_alone, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body gated = { .until_ms = 50 };
    weir_task *a = submit(ex, "A", &gated);

    check_done(submit(ex, "B", NULL));
    CHECK(weir_group_evict(ex, "B", 0) == 0);
    CHECK(!weir_task_done(a));
    check_done_at(a, 0, 50);
    check_done_at(submit(ex, "B", NULL), 50, 50);
    CHECK(weir_group_evict(ex, "unknown", 0) == 0);
    CHECK(weir_group_evict(ex, NULL, 0) == WEIR_EINVAL);
    weir_executor_free(ex);
}

/* G-11 */
SIM_TEST(test_evicting_rejects_waiting_tasks_and_leaves_running_ones, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = 10));
    struct body gated = { .until_ms = 100 }, quick = { .value = "new" };
    weir_task *running = submit(ex, "g", &gated), *waiting[2];

    sleep_until(10);
    for (int i = 0; i < 2; i++)
        waiting[i] = submit(ex, "g", &quick);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(weir_task_done(waiting[i])); /* before evict returned */
        CHECK(weir_task_wait(NULL, waiting[i], WEIR_NOW_OR_NEVER) == WEIR_EREJECTED);
        check_rejected(waiting[i], WEIR_REASON_EVICTED);
    }
    CHECK(!weir_task_done(running));
    check_done_at(submit(ex, "g", &quick), 10, 10); /* the new generation has its own permit */
    check_done_at(running, 0, 100);
    check_books(ex);
    weir_executor_free(ex);
}

/* G-12 */
SIM_TEST(test_unset_limits_are_none, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 30 };
    weir_task *task[6];

    for (int i = 0; i < 6; i++)
        task[i] = submit(ex, "g", &body);
    CHECK_EQ(stats_all(ex).inflight_max, WEIR_NO_LIMIT);
    CHECK_EQ(stats_all(ex).queue_max, WEIR_NO_LIMIT);
    CHECK_EQ(stats_of(ex, "g").inflight_max, WEIR_NO_LIMIT);
    CHECK_EQ(stats_of(ex, "g").queue_max, WEIR_NO_LIMIT);
    CHECK_EQ(stats_of(ex, "g").limit, 2);
    for (int i = 0; i < 6; i++)
        check_done_at(task[i], i / 2 * 30, (i / 2 + 1) * 30);
    CHECK_EQ(gauge.peak, 2);
    weir_executor_free(ex);
}

/* ---- closed ------------------------------------------------------------------------------------ */

/* G-13, G-14 */
SIM_TEST(test_a_closed_executor_takes_nothing, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_group *group = group_of(ex, "g"), *other;
    weir_work batch[] = { { .key = "g", .fn = work } };
    weir_result result[1];
    weir_task *task = NULL;

    weir_executor_close(ex, 0);
    CHECK(weir_submit(&task, group, work, NULL, NULL) == WEIR_ECLOSED && !task);
    CHECK(weir_submit_key(&task, ex, "g", work, NULL, NULL) == WEIR_ECLOSED && !task);
    CHECK(weir_submit_key(&task, ex, NULL, NULL, NULL, NULL) ==
          WEIR_ECLOSED); /* that comes first */
    CHECK(weir_group_get(&other, ex, "g") == WEIR_ECLOSED);
    CHECK(weir_execute_all(result, ex, batch, 1) == WEIR_ECLOSED);
    weir_executor_free(ex);
}

/* G-15 */
SIM_TEST(test_closing_again_changes_nothing, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));

    check_done(submit(ex, "g", NULL));
    for (int i = 0; i < 3; i++)
        weir_executor_close(ex, 0);
    CHECK(weir_executor_shutdown(ex, WEIR_FOREVER) == 0);
    CHECK(weir_executor_shutdown(ex, WEIR_NOW_OR_NEVER) == 0);
    weir_executor_free(ex);
    weir_executor_free(NULL);
}

struct witness {
    int slept;
    bool saw;
};

static int sleeps_ten_seconds(void **value, void *arg)
{
    struct witness *witness = arg;

    (void)value;
    witness->slept = weir_sleep(weir_in_s(10));
    witness->saw = weir_cancelled();
    return witness->slept;
}

/* G-16. To interrupt is to cancel: the body's wait answers WEIR_ECANCELED. */
SIM_TEST(test_a_cancelled_body_is_woken_and_told, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct witness witness = { 0 };
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, "g", sleeps_ten_seconds, &witness, NULL) == 0);
    sleep_until(5);
    CHECK(weir_task_cancel(task));
    CHECK(weir_task_done(task));
    CHECK(!weir_task_cancel(task));
    weir_result result = result_of(task);
    CHECK_EQ(result.outcome, WEIR_CANCELLED);
    CHECK_EQ(result.reason, WEIR_REASON_CANCELLED);
    CHECK(result.started_at == at(0) && result.ended_at == at(5));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(5));
    CHECK(witness.saw && witness.slept == WEIR_ECANCELED);
    check_books(ex);
    weir_executor_free(ex);
}

/* ---- limits that are asked for ------------------------------------------------------------------ */

static int says(int64_t *limit, const char *key, void *arg)
{
    (void)key;
    *limit = *(int64_t *)arg;
    return 0;
}

static int has_no_opinion(int64_t *limit, const char *key, void *arg)
{
    (void)key, (void)arg;
    *limit = 9;
    return -EIO;
}

/* G-17, G-18 */
SIM_TEST(test_a_limit_below_one_that_was_asked_for_is_one, 50)
{
    int64_t answers[] = { 0, -5 };

    for (int i = 0; i < 2; i++) {
        weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3,
                                                     .limit_for = says, .limit_arg = &answers[i]));
        check_done(submit(ex, "g", NULL));
        CHECK_EQ(stats_of(ex, "g").limit, 1);
        weir_executor_free(ex);
    }
}

/* G-19. A resolver throws by answering an error. */
SIM_TEST(test_without_an_opinion_on_a_limit_the_default_is_taken, 50)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3, .limit_for = has_no_opinion));

    check_done(submit(ex, "g", NULL));
    CHECK_EQ(stats_of(ex, "g").limit, 3);
    weir_executor_free(ex);
}

/* G-20. In C a task needs no id; it has none then. */
SIM_TEST(test_a_task_needs_a_key_and_a_body, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_group *group = group_of(ex, "g");
    weir_work no_key = { .fn = work }, no_body = { .key = "g" };
    weir_result result[1];
    weir_task *task;

    CHECK(weir_submit_key(&task, ex, NULL, work, NULL, NULL) == WEIR_EINVAL && !task);
    CHECK(weir_submit_key(&task, ex, "g", NULL, NULL, NULL) == WEIR_EINVAL && !task);
    CHECK(weir_submit_key(&task, NULL, "g", work, NULL, NULL) == WEIR_EINVAL && !task);
    CHECK(weir_submit(&task, group, NULL, NULL, NULL) == WEIR_EINVAL && !task);
    CHECK(weir_submit(&task, NULL, work, NULL, NULL) == WEIR_EINVAL && !task);
    CHECK(weir_execute_all(result, ex, &no_key, 1) == WEIR_EINVAL);
    CHECK(weir_execute_all(result, ex, &no_body, 1) == WEIR_EINVAL);
    CHECK(weir_execute_all(result, ex, NULL, 1) == WEIR_EINVAL);
    task = submit(ex, "", NULL); /* an empty key is one */
    CHECK(strcmp(weir_task_id(task), "") == 0 && strcmp(weir_task_key(task), "") == 0);
    check_done(task);
    check_books(ex);
    weir_executor_free(ex);
}

/* G-21 */
SIM_TEST(test_a_policy_is_copied, 50)
{
    char first[] = "g1", second[] = "xx";
    weir_group_policy groups[] = { { .key = first, .limit = 3 }, { .key = second, .limit = 7 } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 2));

    groups[0].limit = 999;
    groups[1] = (weir_group_policy){ .key = "g2", .limit = 5 };
    strcpy(first, "zz");
    check_done(submit(ex, "g1", NULL));
    check_done(submit(ex, "g2", NULL));
    CHECK_EQ(stats_of(ex, "g1").limit, 3);
    CHECK_EQ(stats_of(ex, "g2").limit, 1);
    weir_executor_free(ex);
}

/* G-22 */
SIM_TEST(test_a_thousand_tasks_of_ten_groups_all_run, 10)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 5));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 1 };
    weir_task *task[1000];
    char key[16];

    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "g%d", i % 10);
        task[i] = submit(ex, key, &body);
    }
    for (int i = 0; i < 1000; i++)
        check_done_at(task[i], i / 50, i / 50 + 1);
    CHECK_EQ(gauge.ran, 1000);
    CHECK_EQ(gauge.peak, 50);
    check_books(ex);
    weir_executor_free(ex);
}

/* ---- waiting for a task -------------------------------------------------------------------------- */

/* G-23. The timeout is the waiter's, not the task's. */
SIM_TEST(test_a_wait_that_times_out_leaves_the_task_alone, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 5000 };
    weir_result result = WEIR_RESULT;
    weir_task *task = submit(ex, "g", &body);

    CHECK(weir_task_wait(&result, task, at(50)) == WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now(), at(50));
    CHECK(!weir_task_done(task));
    CHECK_EQ(result.outcome, WEIR_UNSETTLED);
    CHECK(weir_task_wait(NULL, task, WEIR_NOW_OR_NEVER) == WEIR_ETIMEDOUT);
    CHECK_EQ(stats_of(ex, "g").running, 1);
    check_done_at(task, 0, 5000);
    weir_executor_free(ex);
}

static int waits_fifty(void **value, void *arg)
{
    (void)value;
    return weir_task_wait(NULL, arg, at(50));
}

/* G-24. join is the same wait, here by another task. */
SIM_TEST(test_a_task_that_waits_can_time_out_as_well, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 5000 };
    weir_task *task = submit(ex, "g", &body), *waiter = NULL;

    CHECK(weir_submit_key(&waiter, ex, "h", waits_fifty, task, NULL) == 0);
    weir_result result = result_of(waiter);
    CHECK(result.outcome == WEIR_FAILED && result.error == WEIR_ETIMEDOUT);
    CHECK_EQ(result.ended_at, at(50));
    CHECK(!weir_task_done(task));
    check_done_at(task, 0, 5000);
    weir_executor_free(ex);
}

struct heard {
    _Atomic int times;
    weir_time when;
    weir_result result;
};

static void hear(weir_task *task, const weir_result *result, void *arg)
{
    struct heard *heard = arg;

    CHECK(weir_task_done(task));
    heard->times++;
    heard->when = weir_now();
    heard->result = *result;
}

/* G-25. The completion object is a callback. */
SIM_TEST(test_callbacks_hear_of_the_result_once_each, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 20, .value = "hello" };
    struct heard heard[3] = { 0 };
    weir_task *task =
        submit_with(ex, "g", &body, WEIR_TASK(.on_done = hear, .on_done_arg = &heard[0]));

    CHECK(weir_task_on_done(task, hear, &heard[1]) == 0);
    CHECK(weir_task_wait(NULL, task, at(5000)) == 0);
    CHECK_EQ(weir_now(), at(20));
    CHECK(weir_task_on_done(task, hear, &heard[2]) == 0); /* at once */
    CHECK_EQ(heard[2].times, 1);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(heard[i].times, 1);
        CHECK_EQ(heard[i].when, at(20));
        CHECK(heard[i].result.outcome == WEIR_DONE);
        CHECK(strcmp(heard[i].result.value, "hello") == 0);
    }
    weir_task_unref(task);
    weir_executor_free(ex);
}

/* G-26 */
SIM_TEST(test_an_evicted_group_comes_back_with_the_next_task, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_group *handle = group_of(ex, "g");
    struct body first = { .value = "first" }, second = { .value = "second" };
    weir_task *task = NULL;

    CHECK(strcmp(result_of(submit(ex, "g", &first)).value, "first") == 0);
    uint64_t generation = stats_of(ex, "g").generation;
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    CHECK(weir_submit(&task, handle, work, &second, NULL) == 0); /* a handle leads there, too */
    CHECK(strcmp(result_of(task).value, "second") == 0);
    CHECK(stats_of(ex, "g").generation != generation);
    check_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_more_than_the_limit_of_a_group_run_at_once),
        cmocka_unit_test(test_groups_run_beside_one_another),
        cmocka_unit_test(test_a_failing_task_does_not_disturb_its_batch),
        cmocka_unit_test(test_a_limit_can_be_asked_for),
        cmocka_unit_test(test_a_smaller_inflight_limit_holds_a_group_back),
        cmocka_unit_test(test_no_more_are_in_flight_than_the_group_allows),
        cmocka_unit_test(test_all_groups_together_keep_to_the_executors_limit),
        cmocka_unit_test(test_a_flooding_group_delays_another_by_one_turn_at_most),
        cmocka_unit_test(test_without_a_global_queue_a_task_that_cannot_start_is_rejected),
        cmocka_unit_test(test_evicting_a_group_leaves_the_others_alone),
        cmocka_unit_test(test_evicting_rejects_waiting_tasks_and_leaves_running_ones),
        cmocka_unit_test(test_unset_limits_are_none),
        cmocka_unit_test(test_a_closed_executor_takes_nothing),
        cmocka_unit_test(test_closing_again_changes_nothing),
        cmocka_unit_test(test_a_cancelled_body_is_woken_and_told),
        cmocka_unit_test(test_a_limit_below_one_that_was_asked_for_is_one),
        cmocka_unit_test(test_without_an_opinion_on_a_limit_the_default_is_taken),
        cmocka_unit_test(test_a_task_needs_a_key_and_a_body),
        cmocka_unit_test(test_a_policy_is_copied),
        cmocka_unit_test(test_a_thousand_tasks_of_ten_groups_all_run),
        cmocka_unit_test(test_a_wait_that_times_out_leaves_the_task_alone),
        cmocka_unit_test(test_a_task_that_waits_can_time_out_as_well),
        cmocka_unit_test(test_callbacks_hear_of_the_result_once_each),
        cmocka_unit_test(test_an_evicted_group_comes_back_with_the_next_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
