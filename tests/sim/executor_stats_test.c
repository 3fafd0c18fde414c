/* Statistics, and scenarios in which many things happen at once. SEMANTICS 6.3.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* ---- snapshots --------------------------------------------------------------------------------- */

/* S-01 */
SIM_TEST(test_a_group_tells_its_running_and_waiting_tasks, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .group_queue_max = 5));
    struct body gated = { .until_ms = 100 };
    weir_task *task[4];
    weir_group_stats stats;

    for (int i = 0; i < 4; i++)
        task[i] = submit(ex, "g", &gated);
    sleep_until(10);
    stats = stats_of(ex, "g");
    CHECK_EQ(stats.running, 2);
    CHECK_EQ(stats.inflight, 2);
    CHECK_EQ(stats.waiting, 2);
    CHECK_EQ(stats.limit, 2);
    CHECK_EQ(stats.queue_max, 5);
    CHECK_EQ(stats.submitted, 4);
    CHECK_EQ(stats.started, 2);
    for (int i = 0; i < 4; i++)
        check_done(task[i]);
    stats = stats_of(ex, "g");
    CHECK(stats.running == 0 && stats.waiting == 0 && stats.peak == 2);
    CHECK(stats.started == 4 && stats.succeeded == 4);
    CHECK_EQ(stats.waited_ns, 200 * MS);
    CHECK_EQ(stats.ran_ns, 200 * MS);
    weir_executor_free(ex);
}

/* S-02. weir counts what is in flight without a limit, too: 2, where the original shows 0. */
SIM_TEST(test_the_executor_sums_up_its_groups, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = 5));
    struct body gated = { .until_ms = 100 };
    weir_task *task[4];
    weir_executor_stats stats;

    for (int i = 0; i < 4; i++)
        task[i] = submit(ex, i % 2 ? "B" : "A", &gated);
    sleep_until(10);
    stats = stats_all(ex);
    CHECK_EQ(stats.groups, 2);
    CHECK_EQ(stats.running, 2);
    CHECK_EQ(stats.waiting, 2);
    CHECK_EQ(stats.inflight, 2);
    CHECK_EQ(stats.inflight_max, WEIR_NO_LIMIT);
    for (int i = 0; i < 4; i++)
        check_done(task[i]);
    check_books(ex);
    weir_executor_free(ex);
}

/* S-03 */
SIM_TEST(test_the_executor_tells_how_much_of_its_limit_is_used, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 5, .inflight_max = 10));
    struct body gated = { .until_ms = 100 };
    weir_task *task[3];

    for (int i = 0; i < 3; i++)
        task[i] = submit(ex, "g", &gated);
    sleep_until(10);
    CHECK_EQ(stats_all(ex).inflight, 3);
    CHECK_EQ(stats_all(ex).inflight_max, 10);
    for (int i = 0; i < 3; i++)
        check_done(task[i]);
    weir_executor_free(ex);
}

static size_t key_count(weir_executor *ex)
{
    size_t count = 99;
    char **keys = NULL;

    CHECK(weir_executor_keys(&keys, &count, ex) == 0);
    CHECK(keys && keys[count] == NULL);
    free(keys);
    return count;
}

/* S-04, S-08 */
SIM_TEST(test_after_closing_nothing_is_left_but_the_configuration, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 10));
    struct body gated = { .until_ms = 100 };
    weir_task *running = submit(ex, "g", &gated), *waiting = submit(ex, "g", &gated);
    weir_group_stats group = { .size = sizeof(group) };
    weir_executor_stats stats;

    sleep_until(10);
    CHECK_EQ(key_count(ex), 1);
    weir_executor_close(ex, 0);
    check_rejected(waiting, WEIR_REASON_SHUT_DOWN);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    stats = stats_all(ex);
    CHECK(stats.groups == 0 && stats.running == 0 && stats.waiting == 0 && stats.inflight == 0);
    CHECK_EQ(stats.inflight_max, 10);
    CHECK(weir_group_stats_get(&group, ex, "g") == WEIR_ENOGROUP);
    CHECK_EQ(key_count(ex), 0);
    check_cancelled(running); /* it was asked to end, and did */
    weir_executor_free(ex);
}

/* S-05, S-09 */
SIM_TEST(test_there_are_no_figures_of_an_unknown_group, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_group_stats stats = { .size = sizeof(stats) };

    CHECK(weir_group_stats_get(&stats, ex, "unknown") == WEIR_ENOGROUP);
    CHECK(weir_group_stats_get(&stats, ex, NULL) == WEIR_EINVAL);
    CHECK(weir_group_stats_get(&stats, NULL, "g") == WEIR_EINVAL);
    CHECK(weir_group_stats_get(NULL, ex, "g") == WEIR_EINVAL);
    CHECK_EQ(key_count(ex), 0); /* asking makes none */
    weir_executor_free(ex);
}

/* S-06, S-07 */
SIM_TEST(test_keys_are_those_of_groups_that_hold_state, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    char **keys = NULL;
    size_t count = 0;

    CHECK(weir_executor_keys(NULL, &count, ex) == WEIR_EINVAL);
    check_done(submit(ex, "alpha", NULL));
    check_done(submit(ex, "beta", NULL));
    CHECK(weir_executor_keys(&keys, &count, ex) == 0);
    CHECK_EQ(count, 2);
    int first = strcmp(keys[0], "alpha") == 0 ? 0 : 1;
    CHECK(strcmp(keys[first], "alpha") == 0 && strcmp(keys[!first], "beta") == 0 && !keys[2]);
    CHECK(weir_group_evict(ex, "alpha", 0) == 0);
    CHECK(strcmp(keys[first], "alpha") == 0); /* a snapshot */
    free(keys);
    CHECK(weir_executor_keys(&keys, NULL, ex) == 0);
    CHECK(strcmp(keys[0], "beta") == 0 && !keys[1]);
    free(keys);
    CHECK_EQ(stats_all(ex).evicted, 1);
    weir_executor_free(ex);
}

static void submit_one(void *arg)
{
    weir_executor *ex = arg;

    CHECK(weir_submit_key(NULL, ex, weir_sim_random() % 2 ? "A" : "B", work, NULL, NULL) == 0);
}

static void read_all(void *arg)
{
    weir_executor *ex = arg;
    weir_group_stats stats = { .size = sizeof(stats) };
    int rc = weir_group_stats_get(&stats, ex, "A");

    CHECK(rc == 0 || rc == WEIR_ENOGROUP);
    CHECK(rc || stats.running <= 1);
    CHECK(stats_all(ex).running <= 2);
    CHECK(key_count(ex) <= 2);
}

/* S-10 */
SIM_TEST(test_figures_can_be_read_while_tasks_are_submitted, 8)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    int64_t thread[400];

    for (int i = 0; i < 400; i++)
        thread[i] = weir_sim_thread(i % 2 ? read_all : submit_one, ex, "user");
    for (int i = 0; i < 400; i++)
        weir_sim_join(thread[i]);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(stats_all(ex).succeeded, 200);
    check_books(ex);
    weir_executor_free(ex);
}

/* ---- scenarios ----------------------------------------------------------------------------------- */

/* S-11 */
SIM_TEST(test_two_run_three_wait_and_three_are_rejected, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2,
                                                 .group_queue_max = 3, .rejection = WEIR_DISCARD));
    struct body slow = { .ms = 100 };
    weir_task *task[8];
    weir_group_stats stats;

    for (int i = 0; i < 8; i++)
        task[i] = submit(ex, "g", &slow);
    sleep_until(10);
    stats = stats_of(ex, "g");
    CHECK(stats.running == 2 && stats.waiting == 3 && stats.rejected == 3);
    CHECK_EQ(stats.rejected_by[WEIR_REASON_GROUP_QUEUE_FULL], 3);
    for (int i = 0; i < 5; i++)
        check_done_at(task[i], i / 2 * 100, (i / 2 + 1) * 100);
    for (int i = 5; i < 8; i++)
        check_rejected(task[i], WEIR_REASON_GROUP_QUEUE_FULL);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_rejections_are_counted_by_reason, 20)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .group_queue_max = 2, .rejection = WEIR_DISCARD));
    struct body slow = { .ms = 100 };
    weir_group *group = group_of(ex, "g");
    weir_task *task[8];
    uint64_t count = 99;

    weir_group_pause(group);
    for (int i = 0; i < 8; i++)
        task[i] = submit(ex, "g", &slow);
    CHECK(weir_group_rejections_get(&count, ex, "g", WEIR_REASON_GROUP_QUEUE_FULL) == 0);
    CHECK_EQ(count, 6);
    CHECK(weir_group_rejections_get(&count, ex, "g", WEIR_REASON_SHUT_DOWN) == 0);
    CHECK_EQ(count, 0);
    CHECK(weir_group_rejections_get(&count, ex, "g", (weir_reason)127) == 0);
    CHECK_EQ(count, 0);
    CHECK(weir_group_rejections_get(&count, ex, "none", WEIR_REASON_EVICTED) == WEIR_ENOGROUP);
    CHECK(weir_group_rejections_get(NULL, ex, "g", WEIR_REASON_EVICTED) == WEIR_EINVAL);
    CHECK(weir_group_rejections_get(&count, NULL, "g", WEIR_REASON_EVICTED) == WEIR_EINVAL);
    CHECK(weir_group_rejections_get(&count, ex, NULL, WEIR_REASON_EVICTED) == WEIR_EINVAL);
    CHECK_EQ(stats_of(ex, "g").rejected_by[WEIR_REASON_GROUP_QUEUE_FULL], 6);
    weir_group_resume(group);
    for (int i = 0; i < 8; i++)
        weir_task_unref(task[i]);
    weir_executor_free(ex);
}

struct crowd {
    weir_executor *ex;
    struct gauge gauge;
    struct body quick, slow;
    int each;
};

static void submit_crowd(void *arg)
{
    struct crowd *crowd = arg;
    char key[16];

    for (int i = 0; i < crowd->each; i++) {
        snprintf(key, sizeof(key), "g%d", (int)(weir_sim_random() % 50));
        CHECK(weir_submit_key(NULL, crowd->ex, crowd->each > 100 ? key : "g", work,
                              i % 4 ? &crowd->quick : &crowd->slow, NULL) == 0);
    }
}

static void check_crowd(weir_executor *ex, int submitters, int each)
{
    struct crowd crowd = { .ex = ex, .each = each };
    int64_t thread[8];

    crowd.quick = (struct body){ .gauge = &crowd.gauge };
    crowd.slow = (struct body){ .gauge = &crowd.gauge, .ms = 1 };
    for (int i = 0; i < submitters; i++)
        thread[i] = weir_sim_thread(submit_crowd, &crowd, "crowd");
    for (int i = 0; i < submitters; i++)
        weir_sim_join(thread[i]);
    CHECK(weir_executor_drain(ex, weir_in_s(60)) == 0);
    CHECK_EQ(crowd.gauge.ran, submitters * each);
    CHECK_EQ(crowd.gauge.now, 0);
    CHECK_EQ(stats_all(ex).succeeded, submitters * each);
    check_books(ex);
    weir_executor_free(ex);
}

/* S-12 */
SIM_TEST(test_nothing_is_stranded_when_submits_race_with_endings, 200)
{
    check_crowd(new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1)), 4, 12);
}

/* S-12, with the executor's limit in the way as well */
SIM_TEST(test_nothing_is_stranded_under_a_limit_over_all_either, 200)
{
    check_crowd(new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .inflight_max = 1)), 4,
                12);
}

/* S-13 */
SIM_TEST(test_two_busy_groups_share_the_executors_limit, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 10, .inflight_max = 5));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 20 };
    weir_task *task[20];

    for (int i = 0; i < 20; i++)
        task[i] = submit(ex, i % 2 ? "B" : "A", &body);
    for (int i = 0; i < 20; i++)
        check_done(task[i]);
    CHECK_EQ(weir_now(), at(80));
    CHECK_EQ(gauge.peak, 5);
    weir_executor_free(ex);
}

/* S-14 */
SIM_TEST(test_closing_can_leave_running_tasks_alone, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 100 };
    weir_task *running = submit(ex, "g", &body), *waiting = submit(ex, "g", &body);

    sleep_until(10);
    weir_executor_close(ex, WEIR_LEAVE_RUNNING);
    check_rejected(waiting, WEIR_REASON_SHUT_DOWN);
    check_done_at(running, 0, 100);
    weir_executor_free(ex);
}

/* S-14: drained, by option */
SIM_TEST(test_closing_can_let_waiting_tasks_still_run, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 100 };
    weir_task *running = submit(ex, "g", &body), *waiting = submit(ex, "g", &body);
    weir_task *late = NULL;

    sleep_until(10);
    weir_executor_close(ex, WEIR_FINISH_WAITING | WEIR_LEAVE_RUNNING);
    CHECK(weir_submit_key(&late, ex, "g", work, NULL, NULL) == WEIR_ECLOSED && !late);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(200));
    check_done_at(running, 0, 100);
    check_done_at(waiting, 100, 200);
    weir_executor_free(ex);
}

/* S-15 */
SIM_TEST(test_generations_of_a_group_do_not_share_permits, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct gauge gauge = { 0 };
    struct body old_body = { .gauge = &gauge, .until_ms = 100 };
    struct body new_body = { .gauge = &gauge, .until_ms = 200 };
    weir_task *old = submit(ex, "g", &old_body), *task[2];

    sleep_until(10);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    for (int i = 0; i < 2; i++)
        task[i] = submit(ex, "g", &new_body);
    sleep_until(20);
    CHECK_EQ(gauge.now, 2); /* one of each */
    check_done_at(old, 0, 100);
    sleep_until(110);
    CHECK_EQ(stats_of(ex, "g").running, 1); /* the old permit did not come here */
    CHECK_EQ(stats_of(ex, "g").waiting, 1);
    check_done_at(task[0], 10, 200);
    check_done_at(task[1], 200, 200);
    check_books(ex);
    weir_executor_free(ex);
}

/* S-17 */
SIM_TEST(test_a_thousand_tasks_from_many_sides_are_all_run, 6)
{
    check_crowd(new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .inflight_max = 20)), 4,
                260);
}

/* ---- cancelling and measuring -------------------------------------------------------------------- */

/* S-18 */
SIM_TEST(test_a_task_can_be_cancelled_wherever_it_waits, 300)
{
    weir_group_policy groups[] = { { .key = "limit", .limit = 1 },
                                   { .key = "flight", .limit = 2, .inflight_max = 1 },
                                   { .key = "global", .limit = 5 } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 3, .inflight_max = 3));
    struct gauge gauge = { 0 };
    struct body gated = { .until_ms = 100 }, never = { .gauge = &gauge };
    weir_reason why[] = { WEIR_REASON_GROUP_LIMIT, WEIR_REASON_GROUP_INFLIGHT,
                          WEIR_REASON_GLOBAL_INFLIGHT };
    weir_task *inside[3], *waiting[3];

    for (int i = 0; i < 3; i++)
        inside[i] = submit(ex, groups[i].key, &gated);
    sleep_until(10);
    for (int i = 0; i < 3; i++)
        waiting[i] = submit(ex, groups[i].key, &never);
    sleep_until(20);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(why_of(waiting[i]), why[i]);
        CHECK(weir_task_cancel(waiting[i]));
        weir_result result = result_of(waiting[i]);
        CHECK_EQ(result.outcome, WEIR_CANCELLED);
        CHECK(result.started_at == at(20) && result.ended_at == at(20));
    }
    CHECK_EQ(stats_all(ex).inflight, 3); /* nothing that others hold was given back */
    CHECK_EQ(stats_all(ex).waiting, 0);
    for (int i = 0; i < 3; i++)
        check_done_at(inside[i], 0, 100);
    CHECK_EQ(gauge.ran, 0);
    for (int i = 0; i < 3; i++) /* and nothing is missing */
        inside[i] = submit(ex, "global", NULL);
    for (int i = 0; i < 3; i++)
        check_done_at(inside[i], 100, 100);
    check_books(ex);
    weir_executor_free(ex);
}

struct batch {
    weir_executor *ex;
    weir_work work[4];
    weir_result result[4];
    int rc;
    bool still_cancelled;
};

static int runs_a_batch(void **value, void *arg)
{
    struct batch *batch = arg;

    (void)value;
    batch->rc = weir_execute_all(batch->result, batch->ex, batch->work, 4);
    batch->still_cancelled = weir_cancelled();
    return batch->rc;
}

/* S-19. The caller is interrupted by cancelling the task that called. */
SIM_TEST(test_a_cancelled_batch_cancels_the_rest_and_keeps_finished_tasks, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct gauge gauge = { 0 };
    struct body first = { .ms = 10, .value = "first" }, second = { .gauge = &gauge, .ms = 1000 };
    struct body third = { .ms = 20, .value = "third" }, fourth = { .gauge = &gauge };
    struct batch batch = { .ex = ex,
                           .work = { { .key = "a", .fn = work, .arg = &first },
                                     { .key = "b", .fn = work, .arg = &second },
                                     { .key = "c", .fn = work, .arg = &third },
                                     { .key = "b", .fn = work, .arg = &fourth } } };
    weir_task *caller = NULL;

    CHECK(weir_submit_key(&caller, ex, "caller", runs_a_batch, &batch, NULL) == 0);
    sleep_until(50);
    CHECK(weir_task_cancel(caller));
    check_cancelled(caller);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(50)); /* no body sleeps on */
    CHECK_EQ(batch.rc, WEIR_ECANCELED);
    CHECK(batch.still_cancelled);
    CHECK_EQ(batch.result[0].outcome, WEIR_DONE);
    CHECK(batch.result[0].value && strcmp(batch.result[0].value, "first") == 0);
    CHECK_EQ(batch.result[1].outcome, WEIR_CANCELLED);
    CHECK_EQ(batch.result[1].ended_at, at(50));
    CHECK_EQ(batch.result[2].outcome, WEIR_DONE); /* finished before, keeps its result */
    CHECK(batch.result[2].value && strcmp(batch.result[2].value, "third") == 0);
    CHECK_EQ(batch.result[3].outcome, WEIR_CANCELLED);
    CHECK_EQ(gauge.ran, 1); /* the fourth never ran */
    check_books(ex);
    weir_executor_free(ex);
}

/* S-19: one that ends at the very moment keeps its value with its result. */
SIM_TEST(test_a_batch_cancelled_as_a_task_ends_loses_no_value, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body[4];
    struct batch batch = { .ex = ex };
    const char *keys[] = { "a", "b", "c", "d" };
    weir_task *caller = NULL;

    for (int i = 0; i < 4; i++) {
        body[i] = (struct body){ .until_ms = 50, .value = &body[i] };
        batch.work[i] = (weir_work){ .key = keys[i], .fn = work, .arg = &body[i] };
    }
    CHECK(weir_submit_key(&caller, ex, "caller", runs_a_batch, &batch, NULL) == 0);
    sleep_until(50);
    weir_task_cancel(caller);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    weir_task_unref(caller);
    for (int i = 0; i < 4; i++)
        if (batch.result[i].outcome == WEIR_DONE)
            CHECK(batch.result[i].value == &body[i]);
        else /* what it left all the same is not lost either */
            CHECK(batch.result[i].outcome == WEIR_CANCELLED &&
                  (!batch.result[i].value || batch.result[i].value == &body[i]));
    weir_executor_free(ex);
}

/* S-20 */
SIM_TEST(test_the_time_a_task_ran_does_not_include_its_waiting, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 100 };
    weir_task *first = submit(ex, "g", &body), *second = submit(ex, "g", &body);
    weir_result result = result_of(second);

    CHECK_EQ(result.ended_at - result.started_at, 100 * MS);
    CHECK_EQ(result.started_at - result.queued_at, 100 * MS);
    check_done_at(first, 0, 100);
    CHECK_EQ(stats_of(ex, "g").ran_ns, 200 * MS);
    CHECK_EQ(stats_of(ex, "g").waited_ns, 100 * MS);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_tells_its_running_and_waiting_tasks),
        cmocka_unit_test(test_the_executor_sums_up_its_groups),
        cmocka_unit_test(test_the_executor_tells_how_much_of_its_limit_is_used),
        cmocka_unit_test(test_after_closing_nothing_is_left_but_the_configuration),
        cmocka_unit_test(test_there_are_no_figures_of_an_unknown_group),
        cmocka_unit_test(test_keys_are_those_of_groups_that_hold_state),
        cmocka_unit_test(test_figures_can_be_read_while_tasks_are_submitted),
        cmocka_unit_test(test_two_run_three_wait_and_three_are_rejected),
        cmocka_unit_test(test_rejections_are_counted_by_reason),
        cmocka_unit_test(test_nothing_is_stranded_when_submits_race_with_endings),
        cmocka_unit_test(test_nothing_is_stranded_under_a_limit_over_all_either),
        cmocka_unit_test(test_two_busy_groups_share_the_executors_limit),
        cmocka_unit_test(test_closing_can_leave_running_tasks_alone),
        cmocka_unit_test(test_closing_can_let_waiting_tasks_still_run),
        cmocka_unit_test(test_generations_of_a_group_do_not_share_permits),
        cmocka_unit_test(test_a_thousand_tasks_from_many_sides_are_all_run),
        cmocka_unit_test(test_a_task_can_be_cancelled_wherever_it_waits),
        cmocka_unit_test(test_a_cancelled_batch_cancels_the_rest_and_keeps_finished_tasks),
        cmocka_unit_test(test_a_batch_cancelled_as_a_task_ends_loses_no_value),
        cmocka_unit_test(test_the_time_a_task_ran_does_not_include_its_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
