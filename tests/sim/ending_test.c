/* How tasks end: pending ones that nothing settles, callbacks that end further tasks, bodies that their caller runs,
 * arguments, reasons, and submits that fail.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

enum { CHAIN = 100000 };

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

static void check_ended(weir_task *task, weir_outcome outcome, weir_reason reason)
{
    weir_result result = result_of(task);

    CHECK_EQ(result.outcome, outcome);
    CHECK_EQ(result.reason, reason);
}

/* ---- pending tasks that nothing settles ---------------------------------------------------------- */

SIM_TEST(test_free_cancels_pending_tasks, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_task *task = submit_fn(ex, "g", pends, NULL, NULL);

    CHECK(weir_submit_key(NULL, ex, "g", pends, NULL, NULL) == 0); /* detached */
    sleep_until(10);
    weir_executor_free(ex);
    CHECK_EQ(weir_now(), at(10));
    CHECK(weir_task_settle(task, 0, NULL) == WEIR_EALREADY);
    check_ended(task, WEIR_CANCELLED, WEIR_REASON_SHUT_DOWN);
}

SIM_TEST(test_close_cancels_pending_tasks_unless_they_are_to_be_left, 200)
{
    for (int flags = 0; flags <= (WEIR_FINISH_WAITING | WEIR_LEAVE_RUNNING); flags++) {
        weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
        weir_task *task = submit_fn(ex, "g", pends, NULL, NULL);

        while (why_of(task) != WEIR_REASON_PENDING)
            weir_yield();
        weir_executor_close(ex, flags);
        CHECK_EQ(weir_task_done(task), !(flags & WEIR_LEAVE_RUNNING));
        if (flags & WEIR_LEAVE_RUNNING) {
            CHECK(weir_task_settle(task, 0, NULL) == 0);
            check_done(task);
        } else {
            check_ended(task, WEIR_CANCELLED, WEIR_REASON_SHUT_DOWN);
        }
        check_books(ex);
        weir_executor_free(ex);
    }
}

static int pends_at_10(void **value, void *arg)
{
    (void)value, (void)arg;
    weir_sleep(at(10));
    return WEIR_PENDING;
}

/* A body that was asked to end does not go pending. */
SIM_TEST(test_a_body_that_pends_after_the_close_is_cancelled, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_task *task = submit_fn(ex, "g", pends_at_10, NULL, NULL);

    sleep_until(5);
    weir_executor_close(ex, 0);
    check_ended(task, WEIR_CANCELLED, WEIR_REASON_SHUT_DOWN);
    weir_executor_free(ex);
}

SIM_TEST(test_shutdown_leaves_no_pending_task_behind, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_task *task = submit_fn(ex, "g", pends, NULL, NULL);

    CHECK(weir_executor_shutdown(ex, at(20)) == WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now(), at(20));
    CHECK(weir_task_done(task));
    check_ended(task, WEIR_CANCELLED, WEIR_REASON_SHUT_DOWN);
    weir_executor_free(ex);
}

SIM_TEST(test_evicting_can_cancel_pending_tasks, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_task *task[2], *other;

    for (int i = 0; i < 2; i++)
        task[i] = submit_fn(ex, "g", pends, NULL, NULL);
    other = submit_fn(ex, "h", pends, NULL, NULL);
    sleep_until(1);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    CHECK(!weir_task_done(task[0])); /* of an evicted generation, as running ones are */
    CHECK(weir_task_settle(task[0], 0, NULL) == 0);
    check_done(task[0]);
    CHECK(weir_task_cancel(task[1]));
    check_cancelled(task[1]);
    task[0] = submit_fn(ex, "g", pends, NULL, NULL);
    sleep_until(2);
    CHECK(weir_group_evict(ex, "g", WEIR_CANCEL_RUNNING) == 0);
    check_ended(task[0], WEIR_CANCELLED, WEIR_REASON_EVICTED);
    CHECK(!weir_task_done(other));
    CHECK(weir_task_settle(other, 0, NULL) == 0);
    check_done(other);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_releasing_a_domain_can_cancel_pending_tasks, 200)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 2 } };
    weir_group_policy groups[] = { { .key = "a", .domain = "A" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .slots = 4, .domains = domains, .domain_count = 1,
                                 .groups = groups, .group_count = 1));
    weir_task *in = submit_fn(ex, "a", pends, NULL, NULL),
              *out = submit_fn(ex, "b", pends, NULL, NULL);

    sleep_until(1);
    CHECK(weir_domain_release(ex, "A", NULL, WEIR_CANCEL_RUNNING, NULL) == 0);
    check_ended(in, WEIR_CANCELLED, WEIR_REASON_DOMAIN_RELEASED);
    CHECK(!weir_task_done(out));
    CHECK(weir_task_settle(out, 0, NULL) == 0);
    check_done(out);
    check_books(ex);
    weir_executor_free(ex);
}

/* ---- close, then free ------------------------------------------------------------------------------ */

SIM_TEST(test_free_lets_accepted_tasks_finish_if_close_said_so, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct gauge gauge = { 0 };
    struct body body = { .ms = 10, .gauge = &gauge };

    for (int i = 0; i < 5; i++)
        CHECK(weir_submit_key(NULL, ex, "g", work, &body, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "h", pends_at_10, NULL, NULL) == 0);
    weir_executor_close(ex, WEIR_FINISH_WAITING | WEIR_LEAVE_RUNNING);
    weir_executor_free(ex);
    CHECK_EQ(gauge.ran, 5);
    CHECK_EQ(weir_now(), at(50));
}

/* A paused group will not be resumed any more. */
SIM_TEST(test_free_does_not_wait_for_a_paused_group, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_task *task;

    weir_group_pause(group_of(ex, "g"));
    task = submit(ex, "g", NULL);
    weir_executor_close(ex, WEIR_FINISH_WAITING);
    weir_executor_free(ex);
    check_rejected(task, WEIR_REASON_SHUT_DOWN);
}

static int stubborn(void **value, void *ms)
{
    (void)value;
    weir_sim_busy(*(int64_t *)ms * MS);
    return 0;
}

SIM_TEST(test_shutdown_does_not_answer_0_while_an_overdue_body_runs, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .overdue = WEIR_RELEASE));
    int64_t ms = 500;
    weir_task *task = submit_fn(ex, "g", stubborn, &ms, WEIR_TASK(.deadlines.run_ms = 50));

    check_ended(task, WEIR_TIMED_OUT, WEIR_REASON_RUN_DEADLINE);
    CHECK(weir_executor_shutdown(ex, at(100)) == WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now(), at(100));
    CHECK(weir_executor_shutdown(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(500));
    weir_executor_free(ex);
}

/* ---- reasons and counts ------------------------------------------------------------------------------ */

static int gives_up(void **value, void *arg)
{
    (void)value, (void)arg;
    return weir_cancelled() ? -EIO : WEIR_ECANCELED;
}

SIM_TEST(test_every_cancelled_task_has_a_reason, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body slow = { .until_ms = 100 };
    weir_task *task[3];

    check_ended(submit_fn(ex, "g", gives_up, NULL, NULL), WEIR_CANCELLED, WEIR_REASON_GAVE_UP);
    CHECK(strcmp(weir_reason_name(WEIR_REASON_GAVE_UP), "gave_up") == 0);
    task[0] = submit(ex, "evicted", &slow);
    task[1] = submit(ex, "closed", &slow);
    task[2] = submit_fn(ex, "settled", pends, NULL, NULL);
    sleep_until(10);
    CHECK(weir_task_settle(task[2], WEIR_ECANCELED, NULL) == 0);
    check_ended(task[2], WEIR_CANCELLED, WEIR_REASON_GAVE_UP);
    CHECK(weir_group_evict(ex, "evicted", WEIR_CANCEL_RUNNING) == 0);
    check_ended(task[0], WEIR_CANCELLED, WEIR_REASON_EVICTED);
    weir_executor_close(ex, 0);
    check_ended(task[1], WEIR_CANCELLED, WEIR_REASON_SHUT_DOWN);
    weir_executor_free(ex);
}

static int times_out(weir_result *result, weir_task *task, weir_reason reason, void *arg)
{
    (void)task, (void)reason, (void)arg;
    result->outcome = WEIR_TIMED_OUT;
    return 0;
}

SIM_TEST(test_whatever_a_rejection_function_answers_is_counted, 100)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE,
                                 .rejection_fn = times_out));
    struct body body = { .ms = 10 };
    weir_task *first = submit(ex, "g", &body), *second = submit(ex, "g", &body);

    CHECK_EQ(result_of(second).outcome, WEIR_TIMED_OUT);
    CHECK_EQ(stats_of(ex, "g").timed_out, 1);
    check_done(first);
    check_books(ex);
    weir_executor_free(ex);
}

/* ---- submits that wait for room ---------------------------------------------------------------------- */

struct heard {
    int submitted, rejected, completed, done, dropped;
};

static void hears_submitted(weir_task *task, void *arg)
{
    (void)task;
    ((struct heard *)arg)->submitted++;
}

static void hears_completed(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result;
    ((struct heard *)arg)->completed++;
}

static void hears_rejected(weir_task *task, weir_reason reason, void *arg)
{
    (void)task, (void)reason;
    ((struct heard *)arg)->rejected++;
}

static void hears_done(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result;
    ((struct heard *)arg)->done++;
}

static void hears_drop(void *arg)
{
    ((struct heard *)arg)->dropped++;
}

static int sleeps_10(void **value, void *arg)
{
    (void)value, (void)arg;
    return weir_sleep(weir_now() + 10 * MS);
}

SIM_TEST(test_a_submit_that_fails_was_no_task, 200)
{
    for (int listens = 0; listens < 2; listens++) {
        struct heard heard = { 0 };
        weir_listener listener = { .completed = hears_completed,
                                   .rejected = hears_rejected,
                                   .arg = &heard };
        weir_task *first, *second = NULL;
        weir_executor *ex;

        if (listens)
            listener.submitted = hears_submitted;
        ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .rejection = WEIR_BLOCK,
                                      .group_queue_max = WEIR_NO_QUEUE, .listener = listener));
        first = submit_fn(ex, "g", sleeps_10, NULL, NULL);
        CHECK(weir_submit_key(&second, ex, "g", sleeps_10, &heard,
                              WEIR_TASK(.deadline = weir_now() + 5 * MS, .on_done = hears_done,
                                        .on_done_arg = &heard, .drop_arg = hears_drop)) ==
              WEIR_ETIMEDOUT);
        CHECK(!second);
        check_done(first);
        CHECK_EQ(stats_of(ex, "g").submitted, 1);
        CHECK_EQ(stats_of(ex, "g").rejected, 0);
        check_books(ex);
        CHECK_EQ(heard.done, 0);
        CHECK_EQ(heard.dropped, 0); /* the argument is the caller's */
        CHECK_EQ(heard.completed, 1);
        CHECK_EQ(heard.submitted, 2 * listens); /* listeners told of it hear the last word */
        CHECK_EQ(heard.rejected, listens);
        weir_executor_free(ex);
    }
}

static void evict_at_5(void *ex)
{
    CHECK(weir_sleep(at(5)) == 0);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
}

SIM_TEST(test_a_submit_that_waits_for_room_in_an_evicted_group_is_told_so, 200)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .rejection = WEIR_BLOCK,
                                 .group_queue_max = WEIR_NO_QUEUE));
    weir_task *first = submit_fn(ex, "g", sleeps_10, NULL, NULL), *second;
    int64_t thread = weir_sim_thread(evict_at_5, ex, "evictor");

    second = submit_fn(ex, "g", sleeps_10, NULL, NULL);
    CHECK_EQ(weir_now(), at(5));
    check_rejected(second, WEIR_REASON_EVICTED);
    check_done_at(first, 0, 10);
    weir_sim_join(thread);
    weir_executor_free(ex);
}

/* ---- hand-over ------------------------------------------------------------------------------------------ */

static int pace_body(void **value, void *arg)
{
    (void)value, (void)arg;
    return 0;
}

/* Pacing stays exact: a start per 10 ms, whatever hands over. */
SIM_TEST(test_a_pace_is_exact_after_a_cool_down, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_group *group = group_of(ex, "g");
    weir_task *task[4];

    CHECK(weir_group_cool_down(group, at(5)) == 0);
    CHECK(weir_group_pace(group, 1, 10 * MS, 1) == 0);
    for (int i = 0; i < 4; i++)
        task[i] = submit_fn(ex, "g", pace_body, NULL, NULL);
    for (int i = 0; i < 4; i++)
        check_done_at(task[i], 5 + i * 10, 5 + i * 10);
    weir_executor_free(ex);
}

struct turns {
    const char *last; /* key of the group that ran last */
    int changes;
};

static int counts_turns(void **value, void *arg)
{
    struct turns *turns = arg;
    const char *key = weir_task_key(weir_task_self());

    (void)value;
    turns->changes += turns->last && strcmp(turns->last, key) != 0;
    turns->last = key;
    return 0;
}

/* Twenty short tasks are less than a turn: with permits handed over, a group runs them in one go. */
SIM_TEST(test_a_group_that_was_cooled_down_hands_permits_over_again, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .stall_after_ms = 1000));
    weir_group *group[] = { group_of(ex, "g"), group_of(ex, "h") };
    struct turns turns = { 0 };
    struct body busy = { .ms = 10 };
    weir_task *first;

    for (int g = 0; g < 2; g++)
        CHECK(weir_group_cool_down(group[g], at(5)) == 0);
    sleep_until(10);
    for (int g = 0; g < 2; g++) {
        weir_group_pause(group[g]);
        for (int i = 0; i < 20; i++)
            CHECK(weir_submit(NULL, group[g], counts_turns, &turns, NULL) == 0);
    }
    first = submit_blocking(ex, "busy", &busy);
    sleep_until(15); /* the worker is busy: both are in the ring before either runs */
    for (int g = 0; g < 2; g++)
        weir_group_resume(group[g]);
    check_done(first);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(turns.changes, 1);
    weir_executor_free(ex);
}

/* ---- callbacks that end further tasks ---------------------------------------------------------------------- */

struct chain {
    weir_task **task;
    int next, depth, deepest;
};

/* Ends the next task, by turns in each way that there is. */
static void ends_next(weir_task *task, const weir_result *result, void *arg)
{
    struct chain *chain = arg;
    int next = ++chain->next;

    (void)result;
    CHECK(weir_task_done(task));
    chain->depth++;
    if (chain->depth > chain->deepest)
        chain->deepest = chain->depth;
    if (next < CHAIN) {
        if (next % 2)
            CHECK(weir_task_settle(chain->task[next], 0, NULL) == 0);
        else
            CHECK(weir_task_cancel(chain->task[next]));
        CHECK(weir_task_done(chain->task[next])); /* published, told later */
        CHECK(weir_task_wait(NULL, chain->task[next], WEIR_FOREVER) == 0);
    }
    chain->depth--;
}

/* All pending but those that are to be cancelled, which wait. */
static struct chain chain_new(weir_executor *ex, const weir_task_options *first)
{
    struct chain chain = { .task = malloc(CHAIN * sizeof(chain.task[0])) };
    weir_group *go = group_of(ex, "go"), *waits = group_of(ex, "waits");

    weir_group_pause(waits);
    for (int i = 0; i < CHAIN; i++)
        CHECK(weir_submit(&chain.task[i], i % 2 || !i ? go : waits, pends, NULL,
                          i ? NULL : first) == 0);
    while (stats_of(ex, "go").inflight < CHAIN / 2 + 1)
        CHECK(weir_sleep(weir_now() + MS) == 0);
    return chain;
}

static void chain_free(struct chain *chain)
{
    for (int i = 0; i < CHAIN; i++)
        weir_task_unref(chain->task[i]);
    free(chain->task);
}

static void chain_watch(struct chain *chain)
{
    for (int i = 0; i < CHAIN; i++)
        CHECK(weir_task_on_done(chain->task[i], ends_next, chain) == 0);
}

static int settles_first(void **value, void *arg)
{
    struct chain *chain = arg;

    (void)value;
    CHECK(weir_task_settle(chain->task[0], 0, NULL) == 0);
    CHECK_EQ(chain->next, CHAIN); /* all were told before this call returned */
    return 0;
}

static weir_executor *chain_executor(void)
{
    return new_executor(WEIR_POLICY(.workers = 1, .group_limit = WEIR_NO_LIMIT));
}

SIM_TEST(test_a_chain_of_callbacks_from_a_task_is_not_nested, 1)
{
    weir_executor *ex = chain_executor();
    struct chain chain = chain_new(ex, NULL);

    chain_watch(&chain);
    check_done(submit_fn(ex, "task", settles_first, &chain, NULL));
    CHECK_EQ(chain.deepest, 1);
    chain_free(&chain);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_chain_of_callbacks_from_a_thread_is_not_nested, 1)
{
    weir_executor *ex = chain_executor();
    struct chain chain = chain_new(ex, NULL);

    chain_watch(&chain);
    settles_first(NULL, &chain);
    CHECK_EQ(chain.deepest, 1);
    chain_free(&chain);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_chain_of_callbacks_from_a_deadline_is_not_nested, 1)
{
    weir_executor *ex = chain_executor();
    struct chain chain = chain_new(ex, WEIR_TASK(.deadlines.total_ms = 1000));

    chain_watch(&chain);
    check_ended(weir_task_ref(chain.task[0]), WEIR_TIMED_OUT, WEIR_REASON_TOTAL_DEADLINE);
    while (stats_of(ex, "go").inflight || stats_of(ex, "waits").waiting)
        CHECK(weir_sleep(weir_now() + MS) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(chain.next, CHAIN);
    CHECK_EQ(chain.deepest, 1);
    chain_free(&chain);
    weir_executor_free(ex);
}

/* The same with callbacks that are registered when their task has settled. */
static void registers_next(weir_task *task, const weir_result *result, void *arg)
{
    struct chain *chain = arg;

    (void)result;
    chain->depth++;
    if (chain->depth > chain->deepest)
        chain->deepest = chain->depth;
    if (++chain->next < CHAIN)
        CHECK(weir_task_on_done(task, registers_next, chain) == 0);
    chain->depth--;
}

SIM_TEST(test_late_callbacks_are_not_nested, 1)
{
    weir_executor *ex = chain_executor();
    weir_task *task = submit(ex, "g", NULL);
    struct chain chain = { 0 };

    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    CHECK(weir_task_on_done(task, registers_next, &chain) == 0);
    CHECK_EQ(chain.next, CHAIN);
    CHECK_EQ(chain.deepest, 1);
    weir_task_unref(task);
    weir_executor_free(ex);
}

/* The same with values, of which each holds the next task. */
static int holds(void **value, void *arg)
{
    *value = arg;
    return 0;
}

static void drops_next(void *task)
{
    weir_task_unref(task);
}

/* Each link is a task of its own that is waited for: some 200 points. */
SIM_TEST_WITH(test_a_chain_of_drops_is_not_nested, 1, .seed = 1, .points_max = 400 * CHAIN)
{
    weir_executor *ex = chain_executor();
    weir_task *before = submit(ex, "g", NULL), *task;
    weir_group *group;

    CHECK(weir_group_get(&group, ex, "g") == 0);
    for (int i = 0; i < CHAIN; i++) {
        CHECK(weir_submit(&task, group, holds, before, WEIR_TASK(.drop = drops_next)) == 0);
        CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
        before = task;
    }
    weir_task_unref(before);
    weir_executor_free(ex);
}

/* A callback that parks: what others do on its worker meanwhile is told at once. */
static void sleeps_to_20(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result, (void)arg;
    CHECK(weir_sleep(at(20)) == 0);
}

static void notes_time(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result;
    *(weir_time *)arg = weir_now();
}

SIM_TEST(test_a_callback_that_parks_keeps_only_its_own_stack_waiting, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 2));
    weir_time when = 0;
    weir_task *slow = submit_with(ex, "g", NULL, WEIR_TASK(.on_done = sleeps_to_20));
    weir_task *quick =
        submit_with(ex, "g", NULL, WEIR_TASK(.on_done = notes_time, .on_done_arg = &when));

    check_done(quick);
    check_done(slow);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(when, at(0));
    CHECK_EQ(weir_now(), at(20));
    weir_executor_free(ex);
}

/* ---- eviction with callbacks that use the key ------------------------------------------------------------ */

struct resubmits {
    weir_executor *ex;
    int count;
};

static void resubmits(weir_task *task, const weir_result *result, void *arg)
{
    struct resubmits *r = arg;

    (void)task;
    CHECK_EQ(result->outcome, WEIR_REJECTED);
    r->count++;
    check_done(submit(r->ex, "g", NULL));
}

static void resubmits_rejected(weir_task *task, weir_reason reason, void *arg)
{
    (void)task, (void)reason;
    check_done(submit(((struct resubmits *)arg)->ex, "g", NULL));
}

SIM_TEST(test_callbacks_of_an_eviction_that_carries_over_may_use_the_key, 200)
{
    struct resubmits r = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2,
                                 .listener = { .rejected = resubmits_rejected, .arg = &r }));
    struct body gated = { .until_ms = 50 };
    weir_task *task[3];

    r.ex = ex;
    for (int i = 0; i < 3; i++)
        task[i] =
            submit_with(ex, "g", &gated,
                        i ? WEIR_TASK(.cost = 2, .on_done = resubmits, .on_done_arg = &r) : NULL);
    sleep_until(5);
    CHECK(weir_group_evict(ex, "g", WEIR_CARRY_OVER) == 0);
    CHECK_EQ(r.count, 2);
    check_rejected(task[1], WEIR_REASON_EVICTED);
    check_rejected(task[2], WEIR_REASON_EVICTED);
    check_done_at(task[0], 0, 50);
    check_books(ex);
    weir_executor_free(ex);
}

/* After close(FINISH_WAITING), free runs what can run, and rejects what would wait for a call that cannot come. */
SIM_TEST(test_free_does_not_wait_for_tasks_that_only_another_call_could_start, 50)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .group_limit = 9, .inflight_max = 4));
    struct body until_5 = { .until_ms = 5 };
    weir_task *runs = submit(ex, "a", &until_5), *costly, *paused;

    weir_group_pause(group_of(ex, "c"));
    CHECK(weir_submit_key(&costly, ex, "b", work, NULL, WEIR_TASK(.cost = 4)) == 0);
    paused = submit(ex, "c", NULL);
    CHECK(weir_executor_resize(ex, 3, 0) == 0);
    weir_executor_close(ex, WEIR_FINISH_WAITING | WEIR_LEAVE_RUNNING);
    weir_executor_free(ex);
    CHECK_EQ(weir_now(), at(5));
    check_done(runs);
    check_rejected(costly, WEIR_REASON_SHUT_DOWN);
    check_rejected(paused, WEIR_REASON_SHUT_DOWN);
}

SIM_TEST(test_free_does_not_wait_for_tasks_of_a_domain_without_slots, 50)
{
    weir_domain_policy domain = { .name = "all", .slots = 2 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .slots = 3, .domains = &domain, .domain_count = 1));
    weir_task *task;

    CHECK(weir_domain_resize(ex, "all", 3, 0, NULL) == 0); /* the default domain has none left */
    task = submit(ex, "a", NULL);
    weir_executor_close(ex, WEIR_FINISH_WAITING);
    weir_executor_free(ex);
    check_rejected(task, WEIR_REASON_SHUT_DOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_does_not_wait_for_tasks_that_only_another_call_could_start),
        cmocka_unit_test(test_free_does_not_wait_for_tasks_of_a_domain_without_slots),
        cmocka_unit_test(test_free_cancels_pending_tasks),
        cmocka_unit_test(test_close_cancels_pending_tasks_unless_they_are_to_be_left),
        cmocka_unit_test(test_a_body_that_pends_after_the_close_is_cancelled),
        cmocka_unit_test(test_shutdown_leaves_no_pending_task_behind),
        cmocka_unit_test(test_evicting_can_cancel_pending_tasks),
        cmocka_unit_test(test_releasing_a_domain_can_cancel_pending_tasks),
        cmocka_unit_test(test_free_lets_accepted_tasks_finish_if_close_said_so),
        cmocka_unit_test(test_free_does_not_wait_for_a_paused_group),
        cmocka_unit_test(test_shutdown_does_not_answer_0_while_an_overdue_body_runs),
        cmocka_unit_test(test_every_cancelled_task_has_a_reason),
        cmocka_unit_test(test_whatever_a_rejection_function_answers_is_counted),
        cmocka_unit_test(test_a_submit_that_fails_was_no_task),
        cmocka_unit_test(test_a_submit_that_waits_for_room_in_an_evicted_group_is_told_so),
        cmocka_unit_test(test_a_pace_is_exact_after_a_cool_down),
        cmocka_unit_test(test_a_group_that_was_cooled_down_hands_permits_over_again),
        cmocka_unit_test(test_a_chain_of_callbacks_from_a_task_is_not_nested),
        cmocka_unit_test(test_a_chain_of_callbacks_from_a_thread_is_not_nested),
        cmocka_unit_test(test_a_chain_of_callbacks_from_a_deadline_is_not_nested),
        cmocka_unit_test(test_late_callbacks_are_not_nested),
        cmocka_unit_test(test_a_chain_of_drops_is_not_nested),
        cmocka_unit_test(test_a_callback_that_parks_keeps_only_its_own_stack_waiting),
        cmocka_unit_test(test_callbacks_of_an_eviction_that_carries_over_may_use_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
