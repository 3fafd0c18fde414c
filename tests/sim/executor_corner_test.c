/* Corners of the executor: ends that race, generations that pile up, circles that are and that are not.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

static int nothing(void **value, void *arg)
{
    (void)value, (void)arg;
    return 0;
}

static int naps(void **value, void *arg)
{
    (void)value;
    return weir_sleep(weir_now() + (intptr_t)arg * MS);
}

/* ---- ends that race ------------------------------------------------------------------------------- */

static void drops_the_last_handle(void *arg)
{
    weir_task_unref(arg);
}

SIM_TEST(test_the_last_handle_may_go_while_the_executor_does, 3000)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task *task = NULL;
    int64_t thread;

    CHECK(weir_submit_key(&task, ex, "g", nothing, NULL, NULL) == 0);
    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    thread = weir_sim_thread(drops_the_last_handle, task, "holder");
    weir_executor_free(ex);
    weir_sim_join(thread);
}

static weir_task *_Atomic pending_task;
static _Atomic bool evicted;

static int becomes_pending(void **value, void *arg)
{
    (void)value, (void)arg;
    pending_task = weir_task_ref(weir_task_self());
    while (!evicted)
        weir_sim_pause();
    return WEIR_PENDING;
}

static void settles_when_pending(void *arg)
{
    while (!pending_task)
        weir_sim_pause();
    CHECK(weir_group_evict(arg, "g", 0) == 0);
    evicted = true;
    while (why_of(pending_task) != WEIR_REASON_PENDING)
        weir_sim_pause();
    CHECK(weir_task_settle(pending_task, 0, NULL) == 0);
    weir_task_unref(pending_task);
}

SIM_TEST(test_a_pending_task_may_be_the_last_of_an_evicted_group, 1000)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    int64_t thread;

    pending_task = NULL;
    evicted = false;
    thread = weir_sim_thread(settles_when_pending, ex, "settler");
    CHECK(weir_submit_key(NULL, ex, "g", becomes_pending, NULL, NULL) == 0);
    weir_sim_join(thread);
    weir_executor_free(ex);
}

/* ---- generations ------------------------------------------------------------------------------------ */

SIM_TEST(test_any_number_of_generations_can_be_charged_for_one_task, 2)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));

    CHECK(weir_submit_key(NULL, ex, "g", naps, (void *)50, NULL) == 0);
    sleep_until(10);
    for (int i = 0; i < 5000; i++)
        CHECK(weir_group_evict(ex, "g", WEIR_CARRY_OVER) == 0);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(50));
    weir_executor_free(ex);
}

SIM_TEST(test_permits_that_were_carried_over_count_as_held, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_why why = { .size = sizeof(why) };
    weir_task *waits = NULL;
    char text[200];

    for (int i = 0; i < 2; i++)
        CHECK(weir_submit_key(NULL, ex, "g", naps, (void *)50, NULL) == 0);
    sleep_until(10);
    CHECK(weir_group_evict(ex, "g", WEIR_CARRY_OVER) == 0);
    CHECK(weir_submit_key(&waits, ex, "g", nothing, NULL, NULL) == 0);
    CHECK(weir_task_why(&why, waits) == 0);
    CHECK_EQ(why.reason, WEIR_REASON_GROUP_LIMIT);
    CHECK_EQ(why.held, 2);
    weir_why_text(text, sizeof(text), &why);
    CHECK(strcmp(text, "the group is at its limit (group \"g\": 2 of 2 in use)") == 0);
    check_done_at(waits, 50, 50);
    weir_executor_free(ex);
}

static int waits_for(void **value, void *arg)
{
    (void)value;
    return weir_task_wait(NULL, *(weir_task **)arg, WEIR_FOREVER);
}

SIM_TEST(test_waiting_for_the_heir_of_a_running_task_is_no_circle, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    weir_task *heir = NULL, *waiter = NULL;

    CHECK(weir_submit_key(NULL, ex, "g", naps, (void *)50, NULL) == 0);
    sleep_until(10);
    CHECK(weir_group_evict(ex, "g", WEIR_CARRY_OVER) == 0);
    CHECK(weir_submit_key(&heir, ex, "g", nothing, NULL, NULL) == 0);
    CHECK(weir_submit_key(&waiter, ex, "h", waits_for, &heir, NULL) == 0);
    check_done_at(waiter, 10, 50);
    check_done_at(heir, 50, 50);
    weir_executor_free(ex);
}

/* ---- circles ----------------------------------------------------------------------------------------- */

struct circle {
    weir_task *awaited;
    int rc;
};

static int closes_the_circle(void **value, void *arg)
{
    struct circle *circle = arg;

    (void)value;
    sleep_until(5);
    circle->rc = weir_task_wait(NULL, circle->awaited, WEIR_FOREVER);
    weir_task_cancel(circle->awaited);
    return 0;
}

SIM_TEST(test_a_circle_through_the_first_in_line_is_found, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct circle circle = { 0 };

    CHECK(weir_submit_key(NULL, ex, "g", closes_the_circle, &circle, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "g", nothing, NULL, WEIR_TASK(.cost = 2)) == 0);
    CHECK(weir_submit_key(&circle.awaited, ex, "g", nothing, NULL, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(circle.rc, WEIR_EDEADLK);
    weir_task_unref(circle.awaited);
    weir_executor_free(ex);
}

SIM_TEST(test_a_circle_through_the_group_that_is_owed_permits_is_found, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 5, .group_limit = 5));
    struct circle circle = { 0 };

    CHECK(weir_submit_key(NULL, ex, "g", closes_the_circle, &circle, NULL) == 0);
    sleep_until(1);
    CHECK(weir_submit_key(NULL, ex, "h", nothing, NULL, WEIR_TASK(.cost = 5)) == 0);
    CHECK(weir_submit_key(&circle.awaited, ex, "k", nothing, NULL, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(circle.rc, WEIR_EDEADLK);
    weir_task_unref(circle.awaited);
    weir_executor_free(ex);
}

/* ---- wake-ups and bounds ------------------------------------------------------------------------------ */

static int computes_for_3ms(void **value, void *arg)
{
    (void)value, (void)arg;
    weir_sim_busy(3 * MS);
    return 0;
}

static int sleeps_then_computes(void **value, void *arg)
{
    (void)value;
    if (weir_sleep(at((intptr_t)arg)) == 0)
        weir_sim_busy(5 * MS);
    else
        weir_sim_busy(500 * MS); /* cancelled, and in no hurry */
    return 0;
}

static int marks(void **value, void *arg)
{
    (void)value;
    *(weir_time *)arg = weir_now();
    return 0;
}

/* The worker that frees a permit has a fiber to run that computes; another must take the permit. */
SIM_TEST(test_a_permit_that_a_busy_worker_frees_is_used_by_another, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 3));
    weir_task *slow = NULL;
    weir_time started = 0;

    CHECK(weir_submit_key(NULL, ex, "b", computes_for_3ms, NULL, NULL) == 0);
    sleep_until(1);
    CHECK(weir_submit_key(&slow, ex, "x", sleeps_then_computes, (void *)5000, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "y", sleeps_then_computes, (void *)5, NULL) == 0);
    sleep_until(4);
    CHECK(weir_executor_resize(ex, 2, 0) == 0);
    CHECK(weir_submit_key(NULL, ex, "z", marks, &started, NULL) == 0);
    sleep_until(7);
    CHECK(weir_task_cancel(slow));
    weir_task_unref(slow);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(started == at(10)); /* when y ends */
    weir_executor_free(ex);
}

SIM_TEST(test_a_pace_beyond_all_measure_starts_one, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 10));
    weir_group *group = NULL;
    weir_task *task[2] = { 0 };

    CHECK(weir_group_get(&group, ex, "g") == 0);
    CHECK(weir_group_pace(group, 1, INT64_MAX, 1) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(weir_submit(&task[i], group, nothing, NULL, NULL) == 0);
    sleep_until(10);
    CHECK(weir_task_done(task[0]) && !weir_task_done(task[1]));
    for (int i = 0; i < 2; i++)
        weir_task_unref(task[i]);
    weir_executor_free(ex);
}

SIM_TEST(test_an_idle_time_beyond_all_measure_is_refused, 1)
{
    weir_executor *ex = NULL;
    weir_message why;

    CHECK(weir_executor_new(&ex, WEIR_POLICY(.idle_evict_ms = WEIR_NO_LIMIT), &why) == WEIR_EINVAL);
    CHECK(strncmp(why.text, "idle_evict_ms is", 16) == 0 && !ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_handle_may_go_while_the_executor_does),
        cmocka_unit_test(test_a_pending_task_may_be_the_last_of_an_evicted_group),
        cmocka_unit_test(test_any_number_of_generations_can_be_charged_for_one_task),
        cmocka_unit_test(test_permits_that_were_carried_over_count_as_held),
        cmocka_unit_test(test_waiting_for_the_heir_of_a_running_task_is_no_circle),
        cmocka_unit_test(test_a_circle_through_the_first_in_line_is_found),
        cmocka_unit_test(test_a_circle_through_the_group_that_is_owed_permits_is_found),
        cmocka_unit_test(test_a_permit_that_a_busy_worker_frees_is_used_by_another),
        cmocka_unit_test(test_a_pace_beyond_all_measure_starts_one),
        cmocka_unit_test(test_an_idle_time_beyond_all_measure_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
