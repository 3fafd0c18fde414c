/* Tasks that wait for tasks, values that travel with them, and descriptors that tell of their end.
 * SPDX-License-Identifier: MIT */
#include "support/sim_support.h"

#include <string.h>

/* ---- waits that could never end ---------------------------------------------------------------- */

static int quick(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return 0;
}

struct nest {
    weir_executor *ex;
    weir_message why;
    int rc;
};

static int waits_for_own_group(void **value, void *arg)
{
    struct nest *nest = arg;
    weir_task *task;
    (void)value;
    CHECK(weir_submit_key(&task, nest->ex, "g", quick, NULL, WEIR_TASK(.id = "inner")) == 0);
    nest->rc = weir_task_wait_or_say(&nest->why, NULL, task, WEIR_FOREVER);
    weir_task_cancel(task);
    weir_task_unref(task);
    return 0;
}

static void own_group(void *arg)
{
    struct nest nest = { 0 };
    weir_task *task;
    (void)arg;
    CHECK(weir_executor_new(&nest.ex, WEIR_POLICY(.workers = 2, .group_limit = 1), NULL) == 0);
    CHECK(weir_submit_key(&task, nest.ex, "g", waits_for_own_group, &nest,
                          WEIR_TASK(.id = "outer")) == 0);
    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    CHECK(nest.rc == WEIR_EDEADLK);
    CHECK(strcmp(nest.why.text, "task \"outer\" of group \"g\" waits for task \"inner\" of group "
                                "\"g\", which needs a permit held by task \"outer\" of group "
                                "\"g\"") == 0);
    weir_task_unref(task);
    weir_executor_free(nest.ex);
}

static void test_waiting_for_a_task_that_needs_the_waiters_permit_is_refused(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), own_group);
}

/* ---- waits that end when a task's time is up ---------------------------------------------------- */

struct timely {
    weir_executor *ex;
    const char *key;
    int64_t after_ms;
    int rc;
};

static int waits_for_another(void **value, void *arg)
{
    struct timely *timely = arg;
    weir_task *task;
    (void)value;
    weir_sleep(weir_now() + timely->after_ms * 1000000);
    CHECK(weir_submit_key(&task, timely->ex, timely->key, quick, NULL, NULL) == 0);
    timely->rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_unref(task);
    return 0;
}

/* A costly task that cannot start is before the awaited one, but not for long. */
static void behind_a_costly_one(const char *costly_key, const char *key)
{
    struct timely timely = { .key = key, .after_ms = 2, .rc = 1 };
    weir_task *task;
    CHECK(weir_executor_new(&timely.ex,
                            WEIR_POLICY(.workers = 2, .group_limit = 3, .inflight_max = 3),
                            NULL) == 0);
    CHECK(weir_submit_key(&task, timely.ex, "g", waits_for_another, &timely, NULL) == 0);
    weir_sleep(weir_now() + 1000000);
    CHECK(weir_submit_key(NULL, timely.ex, costly_key, quick, NULL,
                          WEIR_TASK(.cost = 3, .deadlines = { .wait_ms = 10 })) == 0);
    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    CHECK(timely.rc == 0);
    weir_task_unref(task);
    weir_executor_free(timely.ex);
}

static void behind_a_costly_one_of_its_group(void *arg)
{
    (void)arg;
    behind_a_costly_one("g", "g");
}

static void behind_a_costly_one_elsewhere(void *arg)
{
    (void)arg;
    behind_a_costly_one("costly", "small");
}

static void test_a_task_behind_one_that_times_out_is_not_stuck(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), behind_a_costly_one_of_its_group);
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), behind_a_costly_one_elsewhere);
}

/* Each needs the other's permit, and one of them has a deadline: the other one gets it then. */
static void one_of_two_times_out(void *arg)
{
    struct timely timely[2] = { { .key = "b", .after_ms = 1, .rc = 1 },
                                { .key = "a", .after_ms = 2, .rc = 1 } };
    weir_executor *ex;
    weir_task *task[2];
    (void)arg;
    CHECK(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .group_limit = 1), NULL) == 0);
    timely[0].ex = timely[1].ex = ex;
    CHECK(weir_submit_key(&task[0], ex, "a", waits_for_another, &timely[0],
                          WEIR_TASK(.deadlines = { .run_ms = 10 })) == 0);
    CHECK(weir_submit_key(&task[1], ex, "b", waits_for_another, &timely[1], NULL) == 0);
    CHECK(weir_task_wait(NULL, task[1], WEIR_FOREVER) == 0);
    CHECK(timely[1].rc == 0);
    weir_task_unref(task[0]);
    weir_task_unref(task[1]);
    weir_executor_free(ex);
}

static void test_a_task_that_waits_for_one_that_times_out_is_not_stuck(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), one_of_two_times_out);
}

/* With room for both the same wait is fine. */
static void own_group_with_room(void *arg)
{
    struct nest nest = { .rc = 1 };
    (void)arg;
    CHECK(weir_executor_new(&nest.ex, WEIR_POLICY(.workers = 1, .group_limit = 2), NULL) == 0);
    CHECK(weir_submit_key(NULL, nest.ex, "g", waits_for_own_group, &nest, NULL) == 0);
    CHECK(weir_executor_drain(nest.ex, WEIR_FOREVER) == 0);
    CHECK(nest.rc == 0);
    weir_executor_free(nest.ex);
}

static void test_a_nested_wait_with_room_goes_through_on_one_worker(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), own_group_with_room);
}

/* Two groups of limit 1, each with a task that waits for one in the other's queue. */
struct crossing {
    weir_executor *ex;
    int refused;
};

static int waits_across(struct crossing *crossing, const char *other)
{
    weir_task *task;
    int rc;
    CHECK(weir_sleep(weir_now() + MS) == 0); /* both hold their permits by then */
    CHECK(weir_submit_key(&task, crossing->ex, other, quick, NULL, NULL) == 0);
    rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    CHECK(rc == 0 || rc == WEIR_EDEADLK);
    crossing->refused += rc == WEIR_EDEADLK;
    weir_task_unref(task);
    return 0;
}

static int from_a(void **value, void *arg)
{
    (void)value;
    return waits_across(arg, "b");
}

static int from_b(void **value, void *arg)
{
    (void)value;
    return waits_across(arg, "a");
}

static void crossing(void *arg)
{
    struct crossing c = { 0 };
    (void)arg;
    CHECK(weir_executor_new(&c.ex, WEIR_POLICY(.workers = 2, .group_limit = 1), NULL) == 0);
    CHECK(weir_submit_key(NULL, c.ex, "a", from_a, &c, NULL) == 0);
    CHECK(weir_submit_key(NULL, c.ex, "b", from_b, &c, NULL) == 0);
    CHECK(weir_executor_drain(c.ex, WEIR_FOREVER) == 0); /* one gave way, so both end */
    CHECK(c.refused == 1);
    weir_executor_free(c.ex);
}

static void test_of_two_that_wait_for_each_others_groups_one_is_refused(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), crossing);
}

/* The executor's own limit closes circles, too. */
static void global_circle(void *arg)
{
    struct nest nest = { 0 };
    (void)arg;
    CHECK(weir_executor_new(
              &nest.ex, WEIR_POLICY(.workers = 2, .group_limit = 9, .inflight_max = 1), NULL) == 0);
    CHECK(weir_submit_key(NULL, nest.ex, "g", waits_for_own_group, &nest, NULL) == 0);
    CHECK(weir_executor_drain(nest.ex, WEIR_FOREVER) == 0);
    CHECK(nest.rc == WEIR_EDEADLK);
    weir_executor_free(nest.ex);
}

static void test_a_circle_through_the_executors_limit_is_found(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), global_circle);
}

/* ---- a circle that is found while its wait ends otherwise ------------------------------------------ */

struct late {
    weir_task *inner;
    int rc;
    weir_message why;
};

static int waits_late(void **value, void *arg)
{
    struct late *late = arg;
    (void)value;
    CHECK(weir_sleep(weir_now() + 2 * MS) == 0);
    late->rc = weir_task_wait_or_say(&late->why, NULL, late->inner, WEIR_FOREVER);
    return 0;
}

/* Limit 1 closes the circle, and right afterwards the waiting task is cancelled. */
static void circle_and_cancel(void *arg)
{
    struct late late = { 0 };
    weir_executor *ex;
    weir_group *group;
    weir_task *outer;
    (void)arg;
    CHECK(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .group_limit = 2), NULL) == 0);
    CHECK(weir_group_get(&group, ex, "g") == 0);
    CHECK(weir_group_run_on(group, WEIR_THREADS) == 0);
    CHECK(weir_submit(&outer, group, waits_late, &late, NULL) == 0);
    CHECK(weir_sleep(weir_now() + MS) == 0);
    weir_group_pause(group);
    CHECK(weir_submit(&late.inner, group, quick, NULL, NULL) == 0);
    CHECK(weir_sleep(weir_now() + 2 * MS) == 0);
    CHECK(weir_group_resize(group, 1, 0, 0) == 0);
    weir_task_cancel(outer);
    weir_group_resume(group);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(late.rc == WEIR_EDEADLK || late.rc == WEIR_ECANCELED);
    CHECK((late.rc == WEIR_EDEADLK) == (late.why.text[0] != '\0'));
    weir_task_unref(outer);
    weir_task_unref(late.inner);
    weir_executor_free(ex);
}

static void test_a_circle_is_told_of_only_if_the_wait_is_refused_for_it(void **state)
{
    (void)state;
    explore(1000, WEIR_SIM_OPTIONS(.seed = 1), circle_and_cancel);
}

/* ---- a wait of a body that has lost its permits ----------------------------------------------------- */

static int waits_for(void **value, void *arg)
{
    (void)value;
    return weir_task_wait(NULL, arg, WEIR_FOREVER);
}

static int pends(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return WEIR_PENDING;
}

static int blocks(void **value, void *arg)
{
    (void)value;
    (void)arg;
    weir_sim_busy(30 * MS);
    return 0;
}

/* The waiting body is overdue after 5 ms, but its worker is not free before 30: what it goes back to then must not be a
 * generation that came and went meanwhile. */
static void overdue_wait(void *arg)
{
    weir_executor *ex;
    weir_task *task;
    (void)arg;
    CHECK(weir_executor_new(&ex,
                            WEIR_POLICY(.workers = 1, .overdue = WEIR_RELEASE, .idle_evict_ms = 2),
                            NULL) == 0);
    CHECK(weir_submit_key(&task, ex, "pending", pends, NULL, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "g", waits_for, task,
                          WEIR_TASK(.deadlines = { .run_ms = 5 })) == 0);
    CHECK(weir_sleep(weir_now() + MS) == 0);
    CHECK(weir_submit_key(NULL, ex, "blocks", blocks, NULL, NULL) == 0);
    CHECK(weir_sleep(weir_now() + 6 * MS) == 0);
    CHECK(weir_group_evict(ex, "g", WEIR_CARRY_OVER) == 0);
    CHECK(weir_sleep(weir_now() + 50 * MS) == 0);
    CHECK(weir_task_settle(task, 0, NULL) == 0);
    weir_task_unref(task);
    weir_executor_free(ex);
}

static void test_a_wait_without_permits_is_not_carried_over(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), overdue_wait);
}

/* ---- a circle that is closed when a group is moved to threads --------------------------------------- */

/* The body on the only thread waits for a task behind one that blocks its worker. After 10 ms that is a stall, and
 * the task needs the thread itself. */
static void stalled_circle(void *arg)
{
    static const weir_group_policy groups[] = { { .key = "threads", .run_on = WEIR_THREADS } };
    weir_result result = WEIR_RESULT;
    weir_task *waiter, *task;
    weir_executor *ex;
    (void)arg;
    CHECK(weir_executor_new(&ex,
                            WEIR_POLICY(.workers = 2, .threads_max = 1, .groups = groups,
                                        .group_count = 1, .stall_policy = WEIR_STALL_TO_THREADS),
                            NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "blocks", blocks, NULL, NULL) == 0);
    CHECK(weir_submit_key(&task, ex, "blocks", quick, NULL, NULL) == 0);
    CHECK(weir_submit_key(&waiter, ex, "threads", waits_for, task, NULL) == 0);
    CHECK(weir_task_wait(&result, waiter, WEIR_FOREVER) == 0);
    CHECK(result.outcome == WEIR_FAILED && result.error == WEIR_EDEADLK);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    weir_task_unref(waiter);
    weir_task_unref(task);
    weir_executor_free(ex);
}

static void test_a_circle_is_found_that_a_stall_has_closed(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), stalled_circle);
}

/* ---- locals -------------------------------------------------------------------------------------- */

static int dropped;

static void count_drop(void *value)
{
    dropped += *(int *)value;
}

static const weir_local tenant = WEIR_LOCAL(NULL);
static const weir_local counted = WEIR_LOCAL(count_drop);

struct seen {
    weir_executor *ex;
    const char *at_start, *in_child, *after_child;
};

static int look(void **value, void *arg)
{
    (void)value;
    *(const char **)arg = weir_local_get(&tenant);
    return 0;
}

static int look_and_set(void **value, void *arg)
{
    struct seen *seen = arg;
    static int one = 1;
    (void)value;
    seen->at_start = weir_local_get(&tenant);
    CHECK(weir_local_set(&tenant, "inner") == 0);
    CHECK(weir_local_set(&counted, &one) == 0);
    CHECK(weir_submit_key(NULL, seen->ex, "other", look, &seen->in_child, NULL) == 0);
    CHECK(weir_sleep(weir_now() + MS) == 0); /* others run on this worker meanwhile */
    seen->after_child = weir_local_get(&tenant);
    return 0;
}

static void locals(void *arg)
{
    struct seen seen = { 0 };
    const char *plain = "?";
    (void)arg;
    dropped = 0;
    CHECK(weir_executor_new(&seen.ex, WEIR_POLICY(.workers = 1), NULL) == 0);
    CHECK(weir_submit_key(NULL, seen.ex, "plain", look, &plain, NULL) == 0);
    CHECK(weir_local_set(&tenant, "outer") == 0);
    CHECK(weir_submit_key(NULL, seen.ex, "g", look_and_set, &seen, NULL) == 0);
    CHECK(weir_executor_drain(seen.ex, WEIR_FOREVER) == 0);
    CHECK(plain == NULL); /* submitted before anything was set */
    CHECK(strcmp(seen.at_start, "outer") == 0);
    CHECK(strcmp(seen.in_child, "inner") == 0);
    CHECK(strcmp(seen.after_child, "inner") == 0);
    CHECK(strcmp(weir_local_get(&tenant), "outer") == 0);
    CHECK(weir_submit_key(NULL, seen.ex, "plain", look, &plain, NULL) == 0);
    CHECK(weir_executor_drain(seen.ex, WEIR_FOREVER) == 0);
    CHECK(strcmp(plain, "outer") == 0); /* and not what the other task had set */
    weir_local_clear();
    CHECK(weir_local_get(&tenant) == NULL);
    weir_executor_free(seen.ex);
    CHECK(dropped == 1);
}

static void test_locals_travel_with_tasks_and_end_with_them(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), locals);
}

static int set_counted(void **value, void *arg)
{
    static int one = 1;
    (void)value;
    (void)arg;
    CHECK(weir_local_get(&counted) == NULL);
    return weir_local_set(&counted, &one);
}

/* Neither task has options, nor does its submitter have locals: there is nothing to bring along. */
static void locals_of_plain_tasks(void *arg)
{
    weir_executor *ex;
    (void)arg;
    dropped = 0;
    CHECK(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "g", set_counted, NULL, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "g", set_counted, NULL, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(dropped == 2);
    weir_executor_free(ex);
}

static void test_locals_of_a_task_are_not_seen_by_the_next_on_its_worker(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), locals_of_plain_tasks);
}

/* ---- descriptors --------------------------------------------------------------------------------- */

static int nap(void **value, void *arg)
{
    (void)value;
    return weir_sleep(weir_now() + *(int64_t *)arg);
}

static void descriptor(void *arg)
{
    weir_executor *ex;
    weir_task *task;
    weir_time start = weir_now();
    int64_t ns = 5 * MS;
    int fd, late;
    (void)arg;
    CHECK(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL) == 0);
    CHECK(weir_submit_key(&task, ex, "g", nap, &ns, NULL) == 0);
    fd = weir_task_fd(task);
    CHECK(fd >= 0);
    CHECK(weir_fd_wait(fd, WEIR_READ, start + 4 * MS) == WEIR_ETIMEDOUT);
    CHECK(weir_fd_wait(fd, WEIR_READ, WEIR_FOREVER) > 0);
    CHECK(weir_now() == start + 5 * MS);
    late = weir_task_fd(task); /* settled already: readable at once */
    CHECK(weir_fd_wait(late, WEIR_READ, WEIR_NOW_OR_NEVER) > 0);
    weir_sim_close(fd);
    weir_sim_close(late);
    weir_task_unref(task);
    weir_executor_free(ex);
}

static void test_a_tasks_descriptor_becomes_readable_when_it_settles(void **state)
{
    (void)state;
    explore(200, WEIR_SIM_OPTIONS(.seed = 1), descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_for_a_task_that_needs_the_waiters_permit_is_refused),
        cmocka_unit_test(test_a_task_behind_one_that_times_out_is_not_stuck),
        cmocka_unit_test(test_a_task_that_waits_for_one_that_times_out_is_not_stuck),
        cmocka_unit_test(test_a_nested_wait_with_room_goes_through_on_one_worker),
        cmocka_unit_test(test_of_two_that_wait_for_each_others_groups_one_is_refused),
        cmocka_unit_test(test_a_circle_through_the_executors_limit_is_found),
        cmocka_unit_test(test_a_circle_is_told_of_only_if_the_wait_is_refused_for_it),
        cmocka_unit_test(test_a_wait_without_permits_is_not_carried_over),
        cmocka_unit_test(test_a_circle_is_found_that_a_stall_has_closed),
        cmocka_unit_test(test_locals_travel_with_tasks_and_end_with_them),
        cmocka_unit_test(test_locals_of_a_task_are_not_seen_by_the_next_on_its_worker),
        cmocka_unit_test(test_a_tasks_descriptor_becomes_readable_when_it_settles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
