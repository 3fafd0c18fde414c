/* Steering groups while they run: priority, cost, weight, pause, cool-down, pace, resizing.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* ---- priority and cost ----------------------------------------------------------------------------- */

SIM_TEST(test_urgent_tasks_go_first_and_equals_in_the_order_they_came, 200)
{
    uint8_t priority[] = { WEIR_LOW, WEIR_NORMAL, WEIR_IDLE, WEIR_URGENT,
                           0,        WEIR_LOW,    WEIR_IDLE, WEIR_URGENT };
    int order[] = { 5, 3, 7, 1, 4, 6, 8, 2 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    _Atomic int began = 0;
    struct body gated = { .until_ms = 50 }, body[8];
    weir_task *first = submit(ex, "g", &gated), *task[8];

    sleep_until(10);
    for (int i = 0; i < 8; i++) {
        body[i] = (struct body){ .began = &began, .ms = 1 };
        task[i] = submit_with(ex, "g", &body[i], WEIR_TASK(.priority = priority[i]));
    }
    check_done_at(first, 0, 50);
    for (int i = 0; i < 8; i++) {
        check_done_at(task[i], 49 + order[i], 50 + order[i]);
        CHECK_EQ(body[i].order, order[i]);
    }
    weir_executor_free(ex);
}

SIM_TEST(test_a_task_takes_as_many_permits_as_it_costs_and_is_not_overtaken, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));
    struct body body = { .ms = 50 };
    uint32_t cost[] = { 2, 2, 1, 3, 1, 1, 1 };
    int start[] = { 0, 50, 50, 100, 150, 150, 150 };
    weir_task *task[7];

    for (int i = 0; i < 7; i++)
        task[i] = submit_with(ex, "g", &body, WEIR_TASK(.cost = cost[i]));
    for (int i = 0; i < 7; i++)
        check_done_at(task[i], start[i], start[i] + 50);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_task_that_no_limit_allows_is_refused, 20)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = 3, .group_inflight_max = 4, .inflight_max = 2));
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, "g", work, NULL, WEIR_TASK(.cost = 3)) == WEIR_EINVAL);
    CHECK(weir_executor_resize(ex, 10, 0) == 0);
    CHECK(weir_submit_key(&task, ex, "g", work, NULL, WEIR_TASK(.cost = 4)) == WEIR_EINVAL);
    CHECK(weir_submit_key(&task, ex, "g", work, NULL, WEIR_TASK(.cost = UINT32_MAX)) ==
          WEIR_EINVAL);
    CHECK(!task);
    check_done(submit_with(ex, "g", NULL, WEIR_TASK(.cost = 3)));
    weir_executor_free(ex);
}

/* weir/executor.h: running counts bodies, whatever they cost. */
SIM_TEST(test_a_task_that_costs_more_than_a_lowered_limit_keeps_no_other_group_waiting, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3, .inflight_max = 3));
    struct body body = { .ms = 10 };
    weir_task *first = submit(ex, "a", &body), *other;
    weir_task *costly = submit_with(ex, "b", &body, WEIR_TASK(.cost = 3));

    sleep_until(5);
    CHECK(weir_executor_resize(ex, 2, 0) == 0);
    other = submit(ex, "c", &body);
    check_done_at(first, 0, 10);
    check_done_at(other, 5, 15);
    sleep_until(30);
    CHECK(!weir_task_done(costly));
    CHECK(weir_executor_resize(ex, 3, 0) == 0);
    check_done_at(costly, 30, 40);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_figures_count_bodies_not_permits, 20)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));
    struct body gated = { .until_ms = 50 };
    weir_task *task = submit_with(ex, "g", &gated, WEIR_TASK(.cost = 3));

    sleep_until(10);
    CHECK_EQ(stats_all(ex).running, 1);
    check_done_at(task, 0, 50);
    weir_executor_free(ex);
}

/* A9: a task owed the next permits is cancelled; a task behind it that needs less starts at once. */
SIM_TEST(test_a_cancelled_first_in_line_does_not_keep_the_others_waiting, 9000)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3, .inflight_max = 3));
    struct body gated = { .until_ms = 1000 };
    weir_task *inside = submit(ex, "X", &gated), *large, *small;

    sleep_until(10);
    large = submit_with(ex, "A", NULL, WEIR_TASK(.cost = 3));
    sleep_until(20);
    small = submit(ex, "B", NULL);
    sleep_until(30);
    CHECK(!weir_task_done(small)); /* it is not overtaken, however small the others are */
    CHECK(weir_task_cancel(large));
    check_cancelled(large);
    check_done_at(small, 30, 30);
    check_done_at(inside, 0, 1000);
    weir_executor_free(ex);
}

/* ---- turns ------------------------------------------------------------------------------------------- */

/* 5-G03: with one permit in all, a lone task waits for one turn of the other group. */
SIM_TEST(test_a_lone_task_waits_for_one_turn_of_each_other_group, 100)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 10, .inflight_max = 1));
    struct body body = { .ms = 10 };
    weir_task *lone;

    for (int i = 0; i < 30; i++)
        CHECK(weir_submit_key(NULL, ex, i % 3 ? i % 3 == 1 ? "A" : "B" : "C", work, &body, NULL) ==
              0);
    sleep_until(15);
    lone = submit(ex, "lone", &body);
    weir_result result = result_of(lone);
    CHECK(result.started_at <= at(20 + 3 * 10));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(310));
    weir_executor_free(ex);
}

/* 5-G01: tasks that wait for their group hold no permit of the executor's. */
SIM_TEST(test_an_idle_group_starts_at_once_beside_one_that_is_full, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .inflight_max = 2));
    struct body body = { .ms = 300 };
    weir_task *task[3];

    for (int i = 0; i < 3; i++)
        task[i] = submit(ex, "busy", &body);
    sleep_until(50);
    check_done_at(submit(ex, "idle", NULL), 50, 50);
    for (int i = 0; i < 3; i++)
        check_done_at(task[i], i * 300, (i + 1) * 300);
    weir_executor_free(ex);
}

static int computes(void **value, void *arg)
{
    struct body *body = arg;

    (void)value;
    body->order = ++*body->began;
    weir_sim_busy(body->ms * MS);
    return 0;
}

/* Starts of "heavy" (weight 3) among the first 8 of both. */
static int heavy_share(weir_fn *fn, bool handles, int64_t limit)
{
    weir_group_policy groups[] = { { .key = "heavy", .weight = 3 } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .group_limit = limit, .inflight_max = 1,
                                 .groups = groups, .group_count = 1));
    _Atomic int began = 0;
    struct body gated = { .ms = 5 }, body[24];
    weir_task *task[24] = { 0 }, *gate = submit(ex, "gate", &gated);
    weir_time began_at = weir_now() + MS;
    int heavy = 0;

    CHECK(weir_sleep(began_at) == 0);
    for (int i = 0; i < 24; i++) {
        body[i] = (struct body){ .began = &began, .ms = 2 };
        CHECK(weir_submit_key(handles ? &task[i] : NULL, ex, i % 2 ? "heavy" : "light", fn,
                              &body[i], NULL) == 0);
    }
    check_done(gate);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), began_at + (4 + 24 * 2) * MS);
    for (int i = 0; i < 24; i++) {
        heavy += i % 2 && body[i].order <= 8;
        weir_task_unref(task[i]);
    }
    weir_executor_free(ex);
    return heavy;
}

static int sleeps(void **value, void *arg)
{
    struct body *body = arg;

    (void)value;
    body->order = ++*body->began;
    return weir_sleep(weir_now() + body->ms * MS);
}

SIM_TEST(test_turns_go_by_weight_for_bodies_that_compute, 50)
{
    CHECK_EQ(heavy_share(computes, false, 1), 6);
}

SIM_TEST(test_turns_go_by_weight_for_tasks_with_a_handle, 50)
{
    CHECK_EQ(heavy_share(computes, true, 1), 6);
}

SIM_TEST(test_turns_go_by_weight_for_bodies_that_wait, 50)
{
    CHECK_EQ(heavy_share(sleeps, false, 1), 6);
}

/* A group that could start more stands in the ring while its turn goes on by hand-over. */
SIM_TEST(test_turns_go_by_weight_for_groups_that_may_run_several, 50)
{
    CHECK_EQ(heavy_share(computes, false, 4), 6);
    CHECK_EQ(heavy_share(computes, true, 4), 6);
    CHECK_EQ(heavy_share(sleeps, false, 4), 6);
}

/* ---- pause and cool-down ------------------------------------------------------------------------------ */

SIM_TEST(test_a_paused_group_starts_nothing_until_it_is_resumed, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2,
                                                 .group_queue_max = 3, .rejection = WEIR_DISCARD));
    weir_group *group = group_of(ex, "g");
    struct body body = { .ms = 30 };
    weir_task *running = submit(ex, "g", &body), *task[3];

    sleep_until(10);
    weir_group_pause(group);
    weir_group_pause(group); /* once more is fine */
    for (int i = 0; i < 3; i++)
        task[i] = submit(ex, "g", &body);
    check_rejected(submit(ex, "g", NULL), WEIR_REASON_GROUP_QUEUE_FULL);
    check_done(submit(ex, "other", NULL)); /* no other group minds */
    check_done_at(running, 0, 30);
    sleep_until(100);
    CHECK_EQ(why_of(task[0]), WEIR_REASON_PAUSED);
    CHECK(stats_of(ex, "g").paused && stats_of(ex, "g").waiting == 3);
    weir_group_resume(group);
    check_done_at(task[0], 100, 130);
    check_done_at(task[1], 100, 130);
    check_done_at(task[2], 130, 160);
    CHECK(!stats_of(ex, "g").paused);
    weir_group_resume(group);
    weir_executor_free(ex);
}

/* The library checks after each step where the group stands. */
SIM_TEST(test_a_group_may_be_paused_while_a_worker_takes_its_turn, 1000)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 8));
    weir_group *group = group_of(ex, "g");

    for (int i = 0; i < 4; i++)
        CHECK(weir_submit(NULL, group, work, NULL, NULL) == 0);
    weir_group_pause(group);
    for (int i = 0; i < 4; i++)
        CHECK(weir_submit(NULL, group, work, NULL, NULL) == 0);
    CHECK(stats_of(ex, "g").paused);
    weir_group_resume(group);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(stats_of(ex, "g").succeeded, 8);
    weir_executor_free(ex);
}

SIM_TEST(test_a_group_cools_down_until_its_time, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_group *group = group_of(ex, "g");
    weir_why why = { .size = sizeof(why) };
    weir_task *task;

    CHECK(weir_group_cool_down(group, at(100)) == 0);
    CHECK(weir_group_cool_down(group, at(50)) == 0); /* the latest counts */
    task = submit(ex, "g", NULL);
    sleep_until(10);
    CHECK(weir_task_why(&why, task) == 0);
    CHECK_EQ(why.reason, WEIR_REASON_COOLING_DOWN);
    CHECK_EQ(why.earliest, at(50));
    check_done_at(task, 50, 50);
    CHECK(weir_group_cool_down(group, at(500)) == 0);
    task = submit(ex, "g", NULL);
    sleep_until(60);
    CHECK(weir_group_cool_down(group, at(1)) == 0); /* a time in the past ends it */
    check_done_at(task, 60, 60);
    CHECK(weir_group_cool_down(NULL, at(1)) == WEIR_EINVAL);
    weir_executor_free(ex);
}

SIM_TEST(test_a_group_that_is_paused_and_cooling_needs_both_to_end, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_group *group = group_of(ex, "g");
    weir_task *task[2];

    weir_group_pause(group);
    CHECK(weir_group_cool_down(group, at(50)) == 0);
    task[0] = submit(ex, "g", NULL);
    sleep_until(70);
    CHECK(!weir_task_done(task[0]));
    weir_group_resume(group);
    check_done_at(task[0], 70, 70);
    weir_group_pause(group);
    CHECK(weir_group_cool_down(group, at(120)) == 0);
    task[1] = submit(ex, "g", NULL);
    sleep_until(80);
    weir_group_resume(group);
    check_done_at(task[1], 120, 120);
    weir_executor_free(ex);
}

/* ---- pace --------------------------------------------------------------------------------------------- */

SIM_TEST(test_a_paced_group_starts_evenly, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 10));
    weir_group *group = group_of(ex, "g");
    weir_why why = { .size = sizeof(why) };
    weir_task *task[5], *later;

    CHECK(weir_group_pace(group, 10, 100 * MS, 0) == 0);
    for (int i = 0; i < 5; i++)
        task[i] = submit(ex, "g", NULL);
    sleep_until(5);
    CHECK(weir_task_why(&why, task[1]) == 0);
    CHECK_EQ(why.reason, WEIR_REASON_PACED);
    CHECK_EQ(why.earliest, at(10));
    for (int i = 0; i < 5; i++)
        check_done_at(task[i], i * 10, i * 10);
    sleep_until(45);
    later = submit(ex, "g", NULL);
    check_done_at(later, 50, 50);
    sleep_until(77);
    check_done_at(submit(ex, "g", NULL), 77, 77); /* after a rest there is no debt */
    check_done_at(submit(ex, "g", NULL), 87, 87);
    CHECK(weir_group_pace(group, 0, 0, 0) == 0); /* none */
    for (int i = 0; i < 3; i++)
        check_done_at(submit(ex, "g", NULL), 87, 87);
    CHECK(weir_group_pace(group, -1, 1, 1) == WEIR_EINVAL);
    CHECK(weir_group_pace(group, 1, -1, 1) == WEIR_EINVAL);
    CHECK(weir_group_pace(group, 1, 1, -1) == WEIR_EINVAL);
    CHECK(weir_group_pace(NULL, 1, 1, 1) == WEIR_EINVAL);
    weir_executor_free(ex);
}

SIM_TEST(test_a_burst_is_allowed_before_the_pace_holds, 200)
{
    int start[] = { 0, 0, 0, 10, 20, 30 };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 10));
    weir_group *group = group_of(ex, "g");
    weir_task *task[6];

    CHECK(weir_group_pace(group, 1, 10 * MS, 3) == 0);
    for (int round = 0; round < 2; round++) {
        int64_t begin = round * 100; /* by then the burst is whole again */
        sleep_until(begin);
        for (int i = 0; i < 6; i++)
            task[i] = submit(ex, "g", NULL);
        for (int i = 0; i < 6; i++)
            check_done_at(task[i], begin + start[i], begin + start[i]);
    }
    weir_executor_free(ex);
}

struct spell {
    int64_t ms; /* it keeps its worker so long */
    weir_time began;
};

static int keep_worker(void **value, void *spell_arg)
{
    struct spell *spell = spell_arg;

    (void)value;
    spell->began = weir_now();
    weir_sim_busy(spell->ms * MS);
    return 0;
}

/* Starts that a pace has granted to a turn, and a long body keeps from being used, are not there beside a new burst. */
SIM_TEST(test_a_long_body_adds_nothing_to_the_burst_after_it, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .stall_after_ms = 1000));
    weir_group *group = group_of(ex, "g");
    struct spell spell[12] = { [1].ms = 200 };

    CHECK(weir_group_pace(group, 1, 10 * MS, 4) == 0);
    weir_group_pause(group);
    for (int i = 0; i < 12; i++)
        CHECK(weir_submit(NULL, group, keep_worker, &spell[i], NULL) == 0);
    weir_group_resume(group);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(spell[1].began, at(0));
    for (int i = 2; i < 12; i++)
        CHECK_EQ(spell[i].began, at(i < 6 ? 200 : 200 + (i - 5) * 10));
    weir_executor_free(ex);
}

/* ---- resizing ------------------------------------------------------------------------------------------ */

SIM_TEST(test_a_raised_limit_starts_waiting_tasks_at_once, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    weir_group *group = group_of(ex, "g");
    struct body body = { .ms = 100 };
    weir_task *task[4];

    for (int i = 0; i < 4; i++)
        task[i] = submit(ex, "g", &body);
    sleep_until(10);
    CHECK(weir_group_resize(group, 3, 0, 0) == 0);
    CHECK_EQ(stats_of(ex, "g").limit, 3);
    check_done_at(task[0], 0, 100);
    check_done_at(task[1], 10, 110);
    check_done_at(task[2], 10, 110);
    check_done_at(task[3], 100, 200);
    CHECK(weir_group_resize(group, -1, 0, 0) == WEIR_EINVAL);
    CHECK(weir_group_resize(group, 0, -1, 0) == WEIR_EINVAL);
    CHECK(weir_group_resize(group, 0, 0, -1) == WEIR_EINVAL);
    CHECK(weir_group_resize(NULL, 1, 1, 1) == WEIR_EINVAL);
    weir_executor_free(ex);
}

SIM_TEST(test_a_lowered_limit_holds_as_tasks_end, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));
    weir_group *group = group_of(ex, "g");
    struct body body[5];
    weir_task *task[5];

    for (int i = 0; i < 5; i++) {
        body[i] = (struct body){ .ms = (i + 1) * 10 }; /* 10 20 30, 40 50 */
        task[i] = submit(ex, "g", &body[i]);
    }
    sleep_until(5);
    CHECK(weir_group_resize(group, 1, 0, WEIR_NO_QUEUE) == 0); /* waiting tasks stay */
    CHECK(stats_of(ex, "g").running == 3 && stats_of(ex, "g").waiting == 2);
    check_done_at(task[2], 0, 30);
    check_done_at(task[3], 30, 70);
    check_done_at(task[4], 70, 120);
    check_done_at(task[0], 0, 10);
    check_done_at(task[1], 0, 20);
    weir_executor_free(ex);
}

/* weir/group.h: WEIR_EINVAL if it is below the cost of a task that waits; it could never run. */
SIM_TEST(test_a_limit_is_not_lowered_below_the_cost_of_a_waiting_task, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));
    weir_group *group = group_of(ex, "g");
    struct body body = { .ms = 50 };
    weir_task *first = submit(ex, "g", &body),
              *waiting = submit_with(ex, "g", &body, WEIR_TASK(.cost = 3));

    sleep_until(10);
    CHECK(weir_group_resize(group, 2, 0, 0) == WEIR_EINVAL);
    CHECK(weir_group_resize(group, 0, 2, 0) == WEIR_EINVAL);
    check_done_at(first, 0, 50);
    check_done_at(waiting, 50, 100);
    CHECK(weir_group_resize(group, 2, 0, 0) == 0); /* nothing waits any more */
    weir_executor_free(ex);
}

SIM_TEST(test_the_executors_limit_can_be_changed_and_lifted, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 1));
    struct body body = { .ms = 100 };
    const char *keys[] = { "A", "B", "C", "D", "E", "F" };
    weir_task *task[6];

    for (int i = 0; i < 6; i++) {
        task[i] = submit(ex, keys[i], &body);
        sleep_until(i + 1);
    }
    sleep_until(10);
    CHECK(weir_executor_resize(ex, 2, 0) == 0);
    check_done_at(task[0], 0, 100);
    check_done_at(task[1], 10, 110);
    sleep_until(120);
    CHECK_EQ(stats_all(ex).inflight, 2);
    CHECK(weir_executor_resize(ex, WEIR_NO_LIMIT, 0) == 0);
    check_done_at(task[2], 100, 200);
    check_done_at(task[3], 110, 210);
    check_done_at(task[4], 120, 220);
    check_done_at(task[5], 120, 220);
    CHECK(weir_executor_resize(ex, 1, WEIR_NO_QUEUE) == 0); /* counted again */
    task[0] = submit(ex, "A", &body);
    check_rejected(submit(ex, "B", &body), WEIR_REASON_GLOBAL_QUEUE_FULL);
    check_done_at(task[0], 220, 320);
    CHECK(weir_executor_resize(ex, -1, 0) == WEIR_EINVAL);
    CHECK(weir_executor_resize(ex, 0, -1) == WEIR_EINVAL);
    check_books(ex);
    weir_executor_free(ex);
}

/* weir/reason.h: "group_limit" and the like. */
SIM_TEST(test_reasons_have_names_for_logs, 1)
{
    CHECK(strcmp(weir_reason_name(WEIR_REASON_GROUP_LIMIT), "group_limit") == 0);
    CHECK(strcmp(weir_reason_name(WEIR_REASON_CANCELLED), "cancelled") == 0);
    CHECK(strcmp(weir_reason_text(WEIR_REASON_PAUSED), "the group is paused") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urgent_tasks_go_first_and_equals_in_the_order_they_came),
        cmocka_unit_test(test_a_task_takes_as_many_permits_as_it_costs_and_is_not_overtaken),
        cmocka_unit_test(test_a_task_that_no_limit_allows_is_refused),
        cmocka_unit_test(
            test_a_task_that_costs_more_than_a_lowered_limit_keeps_no_other_group_waiting),
        cmocka_unit_test(test_figures_count_bodies_not_permits),
        cmocka_unit_test(test_a_cancelled_first_in_line_does_not_keep_the_others_waiting),
        cmocka_unit_test(test_a_lone_task_waits_for_one_turn_of_each_other_group),
        cmocka_unit_test(test_an_idle_group_starts_at_once_beside_one_that_is_full),
        cmocka_unit_test(test_turns_go_by_weight_for_bodies_that_compute),
        cmocka_unit_test(test_turns_go_by_weight_for_tasks_with_a_handle),
        cmocka_unit_test(test_turns_go_by_weight_for_bodies_that_wait),
        cmocka_unit_test(test_turns_go_by_weight_for_groups_that_may_run_several),
        cmocka_unit_test(test_a_paused_group_starts_nothing_until_it_is_resumed),
        cmocka_unit_test(test_a_group_may_be_paused_while_a_worker_takes_its_turn),
        cmocka_unit_test(test_a_group_cools_down_until_its_time),
        cmocka_unit_test(test_a_group_that_is_paused_and_cooling_needs_both_to_end),
        cmocka_unit_test(test_a_paced_group_starts_evenly),
        cmocka_unit_test(test_a_burst_is_allowed_before_the_pace_holds),
        cmocka_unit_test(test_a_long_body_adds_nothing_to_the_burst_after_it),
        cmocka_unit_test(test_a_raised_limit_starts_waiting_tasks_at_once),
        cmocka_unit_test(test_a_lowered_limit_holds_as_tasks_end),
        cmocka_unit_test(test_a_limit_is_not_lowered_below_the_cost_of_a_waiting_task),
        cmocka_unit_test(test_the_executors_limit_can_be_changed_and_lifted),
        cmocka_unit_test(test_reasons_have_names_for_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
