/* Ends: of groups, of executors, and of what outlives them; and what happens without memory.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* ---- shutdown and drain ----------------------------------------------------------------------------- */

/* 1.10, 5-G06 */
SIM_TEST(test_shutdown_tells_the_truth, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 100 };
    weir_task *running = submit(ex, "g", &body), *waiting = submit(ex, "g", &body);

    CHECK(weir_executor_shutdown(ex, at(50)) == WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now(), at(50));
    check_rejected(waiting, WEIR_REASON_SHUT_DOWN);
    CHECK(weir_executor_shutdown(ex, at(60)) == 0); /* its sleep was cut short */
    CHECK_EQ(weir_now(), at(50));
    check_cancelled(running);
    weir_executor_free(ex);
}

static int ignores_everything(void **value, void *arg)
{
    (void)arg;
    while (weir_now() < at(200)) {
        weir_sim_busy(10 * MS);
        weir_yield();
    }
    *value = "done";
    return 0;
}

SIM_TEST(test_shutdown_does_not_count_on_bodies_that_obey, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, "g", ignores_everything, NULL, NULL) == 0);
    CHECK(weir_executor_shutdown(ex, at(50)) == WEIR_ETIMEDOUT);
    CHECK(weir_executor_shutdown(ex, at(100)) == WEIR_ETIMEDOUT);
    CHECK(!weir_task_done(task));
    CHECK(weir_executor_shutdown(ex, at(300)) == 0);
    CHECK_EQ(weir_now(), at(200));
    check_done_at(task, 0, 200);
    weir_executor_free(ex);
}

struct inside {
    weir_executor *ex;
    int shutdown, drain;
};

static int shuts_down_its_own(void **value, void *arg)
{
    struct inside *inside = arg;

    (void)value;
    inside->drain = weir_executor_drain(inside->ex, WEIR_FOREVER);
    inside->shutdown = weir_executor_shutdown(inside->ex, WEIR_FOREVER);
    return 0;
}

SIM_TEST(test_a_task_cannot_wait_for_its_own_executor_to_end, 100)
{
    struct inside inside = { .ex = new_executor(WEIR_POLICY(.workers = 2)) };
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, inside.ex, "g", shuts_down_its_own, &inside, NULL) == 0);
    check_done(task);
    CHECK(inside.drain == WEIR_EDEADLK && inside.shutdown == WEIR_EDEADLK);
    weir_executor_free(inside.ex);
}

SIM_TEST(test_drain_waits_without_closing, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 50 };

    CHECK(weir_executor_drain(ex, WEIR_NOW_OR_NEVER) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(weir_submit_key(NULL, ex, "g", work, &body, NULL) == 0);
    CHECK(weir_executor_drain(ex, at(70)) == WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now(), at(70));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(100));
    check_done(submit(ex, "g", NULL));
    weir_executor_free(ex);
}

struct gatecrash {
    weir_executor *ex;
    bool over;
    _Atomic int ran;
};

static int must_not_be_late(void **value, void *arg)
{
    struct gatecrash *crash = arg;

    (void)value;
    CHECK(!crash->over);
    crash->ran++;
    weir_yield();
    CHECK(!crash->over);
    return 0;
}

static void gatecrasher(void *arg)
{
    struct gatecrash *crash = arg;
    weir_task *task;

    for (int i = 0; i < 5; i++) {
        int rc =
            weir_submit_key(&task, crash->ex, i % 2 ? "g" : "h", must_not_be_late, crash, NULL);
        if (rc) {
            CHECK(rc == WEIR_ECLOSED && !task);
        } else {
            weir_result result = result_of(task);
            CHECK(result.outcome == WEIR_DONE || result.outcome == WEIR_CANCELLED ||
                  (result.outcome == WEIR_REJECTED && result.reason == WEIR_REASON_SHUT_DOWN));
        }
    }
}

/* 1.10, 5-G07: shutdown has answered 0, so nothing runs, and nothing starts. */
SIM_TEST(test_nothing_runs_after_shutdown_said_so, 6000)
{
    struct gatecrash crash = { .ex = new_executor(WEIR_POLICY(.workers = 2)) };
    int64_t thread[2];

    for (int i = 0; i < 2; i++)
        thread[i] = weir_sim_thread(gatecrasher, &crash, "crasher");
    for (uint64_t i = weir_sim_random() % 40; i > 0; i--)
        weir_sim_pause();
    CHECK(weir_executor_shutdown(crash.ex, weir_in_s(5)) == 0);
    crash.over = true;
    for (int i = 0; i < 2; i++)
        weir_sim_join(thread[i]);
    weir_executor_free(crash.ex);
}

/* weir/executor.h: those that run are asked to end, those that wait still run: as if nothing was. */
SIM_TEST(test_tasks_that_may_still_run_are_not_asked_to_end, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 100 };
    weir_task *running = submit(ex, "g", &body), *waiting = submit(ex, "g", &body);

    sleep_until(10);
    weir_executor_close(ex, WEIR_FINISH_WAITING);
    CHECK_EQ(result_of(running).outcome, WEIR_CANCELLED);
    check_done_at(waiting, 10, 110);
    weir_executor_free(ex);
}

/* ---- groups ------------------------------------------------------------------------------------------ */

SIM_TEST(test_evicting_can_ask_running_tasks_to_end, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 100 };
    weir_task *old = submit(ex, "g", &body), *other = submit(ex, "h", &body), *task;

    sleep_until(10);
    CHECK(weir_group_evict(ex, "g", WEIR_CANCEL_RUNNING) == 0);
    task = submit(ex, "g", &body);
    weir_result result = result_of(old);
    CHECK(result.outcome == WEIR_CANCELLED && result.ended_at == at(10));
    check_done_at(task, 10, 110); /* the new generation is not meant */
    check_done_at(other, 0, 100);
    weir_executor_free(ex);
}

/* 5-G14 */
SIM_TEST(test_a_limit_can_hold_over_both_generations, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct gauge gauge = { 0 };
    struct body old_body = { .gauge = &gauge, .until_ms = 100 };
    struct body body = { .gauge = &gauge, .ms = 50 };
    weir_task *old[2], *task[2];

    for (int i = 0; i < 2; i++)
        old[i] = submit(ex, "g", &old_body);
    sleep_until(10);
    CHECK(weir_group_evict(ex, "g", WEIR_CARRY_OVER) == 0);
    for (int i = 0; i < 2; i++)
        task[i] = submit(ex, "g", &body);
    for (int i = 0; i < 2; i++)
        check_done_at(old[i], 0, 100);
    for (int i = 0; i < 2; i++)
        check_done_at(task[i], 100, 150);
    CHECK_EQ(gauge.peak, 2);
    check_books(ex);
    weir_executor_free(ex);
}

/* 5-G16: looked for every 50, forgotten at the first look after 100 of idleness. */
SIM_TEST(test_an_idle_group_is_forgotten, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .idle_evict_ms = 100));
    weir_group *kept = group_of(ex, "kept");
    struct body body = { .ms = 30 }, slow = { .ms = 400 };
    weir_group_stats stats = { .size = sizeof(stats) };
    weir_task *busy = submit(ex, "busy", &slow);

    check_done(submit(ex, "idle", &body));
    sleep_until(125);
    CHECK_EQ(stats_all(ex).groups, 3);
    sleep_until(181);
    CHECK(weir_group_stats_get(&stats, ex, "idle") == WEIR_ENOGROUP);
    CHECK_EQ(stats_all(ex).groups, 2);
    CHECK_EQ(stats_all(ex).evicted, 1);
    check_done_at(busy, 0, 400);
    CHECK(weir_submit(NULL, kept, work, NULL, NULL) == 0); /* not those with a handle */
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    sleep_until(600);
    CHECK_EQ(stats_all(ex).groups, 1);
    check_done_at(submit(ex, "idle", NULL), 600, 600);
    CHECK_EQ(stats_all(ex).submitted, 4); /* the books stay */
    check_books(ex);
    weir_executor_free(ex);
}

static void submit_once(void *arg)
{
    CHECK(weir_submit_key(NULL, arg, "idle", work, NULL, NULL) == 0);
}

/* Forgetting races with a new task: it runs, in one generation or the other. */
SIM_TEST(test_a_task_that_comes_as_its_group_is_forgotten_runs, 1000)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .idle_evict_ms = 10));
    int64_t thread;

    check_done(submit(ex, "idle", NULL));
    sleep_until(10);
    thread = weir_sim_thread(submit_once, ex, "late");
    weir_sim_join(thread);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(stats_all(ex).succeeded, 2);
    check_books(ex);
    weir_executor_free(ex);
}

struct asked {
    weir_executor *ex;
    _Atomic int times;
};

static int asks(int64_t *limit, const char *key, void *arg)
{
    struct asked *asked = arg;

    *limit = 1;
    if (strcmp(key, "inner") == 0)
        return 0;
    asked->times++;
    if (asked->ex) /* 5-G19: no lock is held, so it may submit */
        CHECK(weir_submit_key(NULL, asked->ex, "inner", work, NULL, NULL) == 0);
    return 0;
}

static void submit_g(void *arg)
{
    CHECK(weir_submit_key(NULL, arg, "g", work, NULL, NULL) == 0);
}

/* I10: limit_for is asked once for each generation, also when two come first at once. */
SIM_TEST(test_a_limit_is_asked_for_once_per_generation, 300)
{
    struct asked asked = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .limit_for = asks, .limit_arg = &asked));
    int64_t thread[2];

    for (int i = 0; i < 2; i++)
        thread[i] = weir_sim_thread(submit_g, ex, "user");
    for (int i = 0; i < 2; i++)
        weir_sim_join(thread[i]);
    CHECK_EQ(asked.times, 1);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    submit_g(ex);
    CHECK_EQ(asked.times, 2);
    weir_executor_free(ex);
}

SIM_TEST(test_a_function_asked_for_a_limit_may_submit, 200)
{
    struct asked asked = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .limit_for = asks, .limit_arg = &asked));

    asked.ex = ex;
    check_done(submit(ex, "g", NULL));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(stats_all(ex).succeeded, 2);
    weir_executor_free(ex);
}

/* ---- what outlives an executor ------------------------------------------------------------------------- */

static void count_call(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result;
    ++*(int *)arg;
}

SIM_TEST(test_handles_are_good_after_their_executor_is_gone, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body done = { .value = "done" }, slow = { .ms = 100 };
    weir_task *task[3] = { submit_with(ex, "g", &done, WEIR_TASK(.id = "t-1")) };
    int calls = 0;

    CHECK(weir_task_wait(NULL, task[0], WEIR_FOREVER) == 0);
    task[1] = submit(ex, "g", &slow);
    task[2] = submit(ex, "g", &slow);
    sleep_until(10);
    weir_executor_free(ex);
    CHECK_EQ(weir_now(), at(10));
    for (int i = 0; i < 3; i++) {
        CHECK(weir_task_done(task[i]) && !weir_task_cancel(task[i]));
        CHECK(weir_task_settle(task[i], 0, NULL) == WEIR_EALREADY);
        CHECK(weir_task_on_done(task[i], count_call, &calls) == 0);
        CHECK(strcmp(weir_task_key(task[i]), "g") == 0);
        CHECK(why_of(task[i]) != WEIR_REASON_NONE);
        weir_task_unref(weir_task_ref(task[i]));
    }
    CHECK_EQ(calls, 3);
    CHECK(strcmp(weir_task_id(task[0]), "t-1") == 0);
    CHECK(strcmp(weir_task_take(task[0]), "done") == 0);
    check_done_at(task[0], 0, 0);
    check_cancelled(task[1]);
    check_rejected(task[2], WEIR_REASON_SHUT_DOWN);
}

/* ---- without memory -------------------------------------------------------------------------------------- */

static void with_failures(void *arg)
{
    weir_executor *ex = NULL;
    weir_group *group = NULL;
    weir_task *task[4] = { 0 };
    int calls = 0, rc, expected = 0;
    int *ran = arg;

    rc = weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .inflight_max = 2), NULL);
    if (rc) {
        CHECK(!ex);
        return;
    }
    rc = weir_group_get(&group, ex, "g");
    CHECK(rc == 0 || rc == WEIR_ENOMEM);
    for (int i = 0; i < 4; i++) {
        rc = weir_submit_key(&task[i], ex, i < 2 ? "g" : "h", work, NULL,
                             i % 2 ? WEIR_TASK(.id = "id", .priority = WEIR_LOW,
                                               .on_done = count_call, .on_done_arg = &calls)
                                   : NULL);
        CHECK(rc == WEIR_ENOMEM ? !task[i] : rc == 0 && task[i]);
        expected += i % 2 && !rc;
    }
    if (group)
        weir_group_cool_down(group, at(5));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    for (int i = 0; i < 4; i++)
        if (task[i])
            check_done(task[i]);
    CHECK_EQ(calls, expected);
    check_books(ex);
    weir_executor_free(ex);
    ++*ran;
}

static void test_without_memory_a_submit_answers_so_and_leaks_nothing(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;
    uint64_t allocs, maps;
    int ran = 0;

    (void)state;
    assert_int_equal(weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 1), with_failures, &ran), 0);
    allocs = report.allocs;
    maps = report.maps;
    for (uint64_t n = 1; n <= allocs + maps; n++) {
        const weir_sim_options *opt = n <= allocs
                                          ? WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n)
                                          : WEIR_SIM_OPTIONS(.seed = 1, .fail_map = n - allocs);
        if (weir_sim_run(&report, opt, with_failures, &ran))
            fail_msg("failure %d of %d: %s", (int)n, (int)(allocs + maps), report.message);
    }
    assert_true(ran > 1);
}

/* Bodies that began before the call are asked, also in its very instant; those that begin later are not, also then. */
SIM_TEST(test_closing_asks_those_that_began_in_the_same_instant, 300)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .until_ms = 100 };
    weir_task *before = submit(ex, "g", &body), *after = submit(ex, "g", &body);

    while (why_of(before) != WEIR_REASON_RUNNING)
        weir_yield();
    weir_executor_close(ex, WEIR_FINISH_WAITING);
    CHECK_EQ(weir_now(), at(0));
    check_cancelled(before);
    CHECK_EQ(weir_now(), at(0));
    check_done_at(after, 0, 100);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closing_asks_those_that_began_in_the_same_instant),
        cmocka_unit_test(test_shutdown_tells_the_truth),
        cmocka_unit_test(test_shutdown_does_not_count_on_bodies_that_obey),
        cmocka_unit_test(test_a_task_cannot_wait_for_its_own_executor_to_end),
        cmocka_unit_test(test_drain_waits_without_closing),
        cmocka_unit_test(test_nothing_runs_after_shutdown_said_so),
        cmocka_unit_test(test_tasks_that_may_still_run_are_not_asked_to_end),
        cmocka_unit_test(test_evicting_can_ask_running_tasks_to_end),
        cmocka_unit_test(test_a_limit_can_hold_over_both_generations),
        cmocka_unit_test(test_an_idle_group_is_forgotten),
        cmocka_unit_test(test_a_task_that_comes_as_its_group_is_forgotten_runs),
        cmocka_unit_test(test_a_limit_is_asked_for_once_per_generation),
        cmocka_unit_test(test_a_function_asked_for_a_limit_may_submit),
        cmocka_unit_test(test_handles_are_good_after_their_executor_is_gone),
        cmocka_unit_test(test_without_memory_a_submit_answers_so_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
