/* Bodies that WEIR_CALLER_RUNS has their submitter run: whose they are, how they are asked to end, and how they end.
 * SPDX-License-Identifier: MIT */
#include "executor/state.h"
#include "support/executor_support.h"

static const weir_policy *guest_policy(weir_policy *policy)
{
    *policy = (weir_policy){ .size = sizeof(*policy),
                             .workers = 1,
                             .group_limit = 1,
                             .group_queue_max = WEIR_NO_QUEUE,
                             .rejection = WEIR_CALLER_RUNS };
    return policy;
}

/* An executor in which "full" has one task, until 100 ms, and no room for another. */
static weir_executor *full_executor(weir_task **task)
{
    static struct body gated = { .until_ms = 100 };
    weir_policy policy;
    weir_executor *ex = new_executor(guest_policy(&policy));

    *task = submit(ex, "full", &gated);
    return ex;
}

static weir_task *run_as_guest(weir_executor *ex, weir_fn *fn, void *arg,
                               const weir_task_options *opt)
{
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, "full", fn, arg, opt) == 0 && task);
    return task;
}

/* ---- whose it is -------------------------------------------------------------------------------------- */

static int is_guest(void **value, void *arg)
{
    weir_task *self = weir_task_self();

    (void)value;
    CHECK(self && strcmp(weir_task_id(self), "guest") == 0);
    CHECK_EQ(why_of(self), WEIR_REASON_RUNNING);
    CHECK(wr_task_outer(self) == arg);
    return 0;
}

/* One inside of another, inside of a task, or of a plain thread. */
static int has_guest(void **value, void *ex)
{
    weir_task *self = weir_task_self(), *guest;

    (void)value;
    CHECK(self != NULL);
    guest = run_as_guest(ex, is_guest, self, WEIR_TASK(.id = "guest"));
    CHECK(weir_task_self() == self && !weir_cancelled());
    check_done(guest);
    return 0;
}

SIM_TEST(test_a_body_run_by_its_caller_is_its_own_task, 200)
{
    weir_task *first, *outer;
    weir_executor *ex = full_executor(&first);

    CHECK(weir_task_self() == NULL);
    check_done(run_as_guest(ex, is_guest, NULL, WEIR_TASK(.id = "guest")));
    check_done(run_as_guest(ex, has_guest, ex, NULL));
    CHECK(weir_submit_key(&outer, ex, "other", has_guest, ex, NULL) == 0);
    check_done(outer);
    CHECK(weir_task_self() == NULL);
    check_done(first);
    check_books(ex);
    weir_executor_free(ex);
}

static void *spawned_self;

static void looks_for_self(void *arg)
{
    (void)arg;
    spawned_self = weir_task_self();
}

SIM_TEST(test_a_spawned_body_is_no_task, 50)
{
    weir_runtime *rt = NULL;

    spawned_self = &rt;
    CHECK(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = 1)) == 0);
    CHECK(weir_spawn(rt, looks_for_self, NULL, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(spawned_self == NULL);
    weir_runtime_free(rt);
}

static int cools_down(void **value, void *arg)
{
    (void)value, (void)arg;
    return weir_task_cool_down(weir_task_self(), at(200));
}

static int runs_guest_that_cools_down(void **value, void *ex)
{
    (void)value;
    check_done(run_as_guest(ex, cools_down, NULL, NULL));
    return 0;
}

SIM_TEST(test_a_guest_cools_down_its_own_group, 100)
{
    weir_task *first, *outer, *next;
    weir_executor *ex = full_executor(&first);

    CHECK(weir_submit_key(&outer, ex, "other", runs_guest_that_cools_down, ex, NULL) == 0);
    check_done(outer);
    check_done_at(submit(ex, "other", NULL), 0, 0);
    check_done_at(first, 0, 100);
    CHECK(weir_group_resize(group_of(ex, "full"), 0, 0, 1) == 0);
    next = submit(ex, "full", NULL);
    CHECK_EQ(why_of(next), WEIR_REASON_COOLING_DOWN);
    check_done_at(next, 200, 200);
    weir_executor_free(ex);
}

/* ---- asked to end ------------------------------------------------------------------------------------- */

struct shown {
    weir_task *task;
    weir_time woken;
    int rc;
};

static int shows_itself_and_sleeps(void **value, void *arg)
{
    struct shown *shown = arg;

    (void)value;
    shown->task = weir_task_ref(weir_task_self());
    shown->rc = weir_sleep(at(50));
    shown->woken = weir_now();
    return shown->rc;
}

static void cancel_at_10(void *arg)
{
    struct shown *shown = arg;

    CHECK(weir_sleep(at(10)) == 0);
    CHECK(weir_task_cancel(shown->task));
}

static void check_woken_at_10(struct shown *shown)
{
    CHECK_EQ(shown->rc, WEIR_ECANCELED);
    CHECK_EQ(shown->woken, at(10));
    weir_task_unref(shown->task);
}

SIM_TEST(test_a_cancel_wakes_a_guest_of_a_thread, 200)
{
    struct shown shown = { 0 };
    weir_task *first;
    weir_executor *ex = full_executor(&first);
    int64_t thread = weir_sim_thread(cancel_at_10, &shown, "canceller");
    weir_task *task = run_as_guest(ex, shows_itself_and_sleeps, &shown, NULL);

    check_woken_at_10(&shown);
    check_cancelled(task);
    weir_sim_join(thread);
    check_done(first);
    check_books(ex);
    weir_executor_free(ex);
}

struct outer {
    weir_executor *ex;
    struct shown guest;
    const weir_task_options *opt;
    weir_task *task; /* the guest, when its submit has returned */
    bool cancelled;  /* the outer one is, then                  */
};

static int runs_sleeper(void **value, void *arg)
{
    struct outer *outer = arg;

    (void)value;
    outer->task = run_as_guest(outer->ex, shows_itself_and_sleeps, &outer->guest, outer->opt);
    outer->cancelled = weir_cancelled();
    return 0;
}

static void check_guest_in_task(bool cancels_outer, bool on_thread)
{
    weir_task *first, *task;
    struct outer outer = { .ex = full_executor(&first) };

    if (on_thread)
        CHECK(weir_group_run_on(group_of(outer.ex, "other"), WEIR_THREADS) == 0);
    CHECK(weir_submit_key(&task, outer.ex, "other", runs_sleeper, &outer, NULL) == 0);
    sleep_until(10);
    CHECK(weir_task_cancel(cancels_outer ? task : outer.guest.task));
    CHECK(weir_executor_drain(outer.ex, WEIR_FOREVER) == 0);
    check_woken_at_10(&outer.guest);
    CHECK_EQ(outer.cancelled, cancels_outer);
    check_cancelled(outer.task);
    weir_task_unref(task);
    weir_task_unref(first);
    check_books(outer.ex);
    weir_executor_free(outer.ex);
}

SIM_TEST(test_a_cancel_wakes_a_guest_of_a_task, 200)
{
    check_guest_in_task(false, false);
}

SIM_TEST(test_a_cancel_wakes_a_guest_of_a_task_on_a_thread, 200)
{
    check_guest_in_task(false, true);
}

/* It keeps its host from ending. */
SIM_TEST(test_a_guest_is_asked_to_end_with_its_host, 200)
{
    check_guest_in_task(true, false);
}

static void close_at_10(void *ex)
{
    CHECK(weir_sleep(at(10)) == 0);
    weir_executor_close(ex, 0);
}

SIM_TEST(test_closing_wakes_guests, 200)
{
    struct shown shown = { 0 };
    weir_task *first, *task;
    weir_executor *ex = full_executor(&first);
    int64_t thread = weir_sim_thread(close_at_10, ex, "closer");
    weir_result result;

    task = run_as_guest(ex, shows_itself_and_sleeps, &shown, NULL);
    check_woken_at_10(&shown);
    result = result_of(task);
    CHECK_EQ(result.outcome, WEIR_CANCELLED);
    CHECK_EQ(result.reason, WEIR_REASON_SHUT_DOWN);
    weir_sim_join(thread);
    check_cancelled(first);
    weir_executor_free(ex);
}

/* ---- deadlines ---------------------------------------------------------------------------------------- */

static void check_deadline(weir_deadlines deadlines, weir_reason reason)
{
    struct shown shown = { 0 };
    weir_task *first, *task;
    weir_executor *ex = full_executor(&first);
    weir_result result;

    task = run_as_guest(ex, shows_itself_and_sleeps, &shown, WEIR_TASK(.deadlines = deadlines));
    CHECK_EQ(weir_now(), at(10));
    check_woken_at_10(&shown);
    result = result_of(task);
    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.reason, reason);
    CHECK_EQ(result.ended_at, at(10));
    CHECK_EQ(stats_of(ex, "full").timed_out, 1);
    CHECK_EQ(stats_of(ex, "full").overdue, 0);
    check_done(first);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_the_run_deadline_of_a_guest_holds, 100)
{
    check_deadline((weir_deadlines){ .run_ms = 10 }, WEIR_REASON_RUN_DEADLINE);
}

SIM_TEST(test_the_total_deadline_of_a_guest_holds, 100)
{
    check_deadline((weir_deadlines){ .total_ms = 10 }, WEIR_REASON_TOTAL_DEADLINE);
}

/* Its host has a deadline, too; each is settled by its own. */
SIM_TEST(test_the_deadline_of_a_guest_is_not_its_hosts, 100)
{
    weir_task *first, *task;
    struct outer outer = { .ex = full_executor(&first), .opt = WEIR_TASK(.deadlines.run_ms = 10) };

    CHECK(weir_submit_key(&task, outer.ex, "other", runs_sleeper, &outer,
                          WEIR_TASK(.deadlines.run_ms = 90)) == 0);
    check_done_at(task, 0, 10);
    check_woken_at_10(&outer.guest);
    CHECK(!outer.cancelled);
    CHECK_EQ(result_of(outer.task).outcome, WEIR_TIMED_OUT);
    check_done(first);
    weir_executor_free(outer.ex);
}

/* ---- circles ------------------------------------------------------------------------------------------- */

/* It waits for its host, which cannot go on before it ends. */
static int awaits_host(void **value, void *host)
{
    (void)value;
    CHECK(weir_task_wait(NULL, host, WEIR_FOREVER) == WEIR_EDEADLK);
    return 0;
}

static int hosts_waiter(void **value, void *ex)
{
    (void)value;
    check_done(run_as_guest(ex, awaits_host, weir_task_self(), NULL));
    return 0;
}

/* It needs a permit that its host holds. */
static int awaits_second_of_group(void **value, void *ex)
{
    weir_task *task = submit(ex, "other", NULL);

    (void)value;
    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == WEIR_EDEADLK);
    weir_task_unref(task);
    return 0;
}

static int hosts_submitter(void **value, void *ex)
{
    (void)value;
    check_done(run_as_guest(ex, awaits_second_of_group, ex, NULL));
    return 0;
}

SIM_TEST(test_a_guest_that_waits_for_a_permit_its_host_keeps_is_refused, 100)
{
    weir_fn *const hosts[] = { hosts_waiter, hosts_submitter };
    weir_task *first, *host;
    weir_executor *ex = full_executor(&first);

    CHECK(weir_group_resize(group_of(ex, "other"), 0, 0, 1) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(weir_submit_key(&host, ex, "other", hosts[i], ex, NULL) == 0);
        check_done_at(host, 0, 0);
    }
    check_done(first);
    weir_executor_free(ex);
}

/* A guest of a plain thread, and a task: each waits for the other. */
struct pair {
    weir_executor *ex;
    struct shown guest;
    weir_task *task;
    int rc[2];
};

static int awaits_task(void **value, void *arg)
{
    struct pair *pair = arg;

    (void)value;
    pair->guest.task = weir_task_ref(weir_task_self());
    pair->rc[0] = weir_task_wait(NULL, pair->task, WEIR_FOREVER);
    return 0;
}

static int awaits_guest(void **value, void *arg)
{
    struct pair *pair = arg;

    (void)value;
    CHECK(weir_sleep(at(10)) == 0);
    pair->rc[1] = weir_task_wait(NULL, pair->guest.task, WEIR_FOREVER);
    return 0;
}

SIM_TEST(test_a_circle_through_a_guest_of_a_thread_is_found, 100)
{
    weir_task *first, *guest;
    struct pair pair = { .ex = full_executor(&first) };

    CHECK(weir_submit_key(&pair.task, pair.ex, "other", awaits_guest, &pair, NULL) == 0);
    guest = run_as_guest(pair.ex, awaits_task, &pair, NULL);
    CHECK_EQ(weir_now(), at(10));
    CHECK_EQ(pair.rc[0], 0);
    CHECK_EQ(pair.rc[1], WEIR_EDEADLK);
    weir_task_unref(pair.guest.task);
    check_done(guest);
    check_done(pair.task);
    check_done(first);
    weir_executor_free(pair.ex);
}

/* ---- pending guests ------------------------------------------------------------------------------------- */

static int pends(void **value, void *arg)
{
    (void)value, (void)arg;
    return WEIR_PENDING;
}

SIM_TEST(test_a_guest_may_stay_pending, 100)
{
    weir_task *first, *task[3];
    weir_executor *ex = full_executor(&first);

    for (int i = 0; i < 3; i++) {
        task[i] = run_as_guest(ex, pends, NULL, i ? NULL : WEIR_TASK(.deadlines.total_ms = 20));
        CHECK_EQ(why_of(task[i]), WEIR_REASON_PENDING);
    }
    CHECK(weir_task_settle(task[1], 0, NULL) == 0);
    check_done(task[1]);
    CHECK_EQ(result_of(task[0]).outcome, WEIR_TIMED_OUT);
    CHECK_EQ(weir_now(), at(20));
    check_done(first);
    weir_executor_free(ex);
    check_cancelled(task[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_body_run_by_its_caller_is_its_own_task),
        cmocka_unit_test(test_a_spawned_body_is_no_task),
        cmocka_unit_test(test_a_guest_cools_down_its_own_group),
        cmocka_unit_test(test_a_cancel_wakes_a_guest_of_a_thread),
        cmocka_unit_test(test_a_cancel_wakes_a_guest_of_a_task),
        cmocka_unit_test(test_a_cancel_wakes_a_guest_of_a_task_on_a_thread),
        cmocka_unit_test(test_a_guest_is_asked_to_end_with_its_host),
        cmocka_unit_test(test_closing_wakes_guests),
        cmocka_unit_test(test_the_run_deadline_of_a_guest_holds),
        cmocka_unit_test(test_the_total_deadline_of_a_guest_holds),
        cmocka_unit_test(test_the_deadline_of_a_guest_is_not_its_hosts),
        cmocka_unit_test(test_a_guest_that_waits_for_a_permit_its_host_keeps_is_refused),
        cmocka_unit_test(test_a_circle_through_a_guest_of_a_thread_is_found),
        cmocka_unit_test(test_a_guest_may_stay_pending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
