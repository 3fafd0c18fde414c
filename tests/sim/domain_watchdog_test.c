/* Deadlines, and what becomes of bodies that do not keep to them. SEMANTICS 2.6, X10, 6.4 (D-12 ... D-17).
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

static void check_timed_out(weir_task *task, weir_reason reason, int64_t started_ms, int64_t ms)
{
    weir_result result = result_of(task);

    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.error, WEIR_ETIMEDOUT);
    CHECK_EQ(result.reason, reason);
    CHECK_EQ(result.started_at, at(started_ms));
    CHECK_EQ(result.ended_at, at(ms));
    CHECK(result.value == NULL);
}

static void check_books_and_free(weir_executor *ex)
{
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    let_start(); /* a body whose permits are back may be about to return */
    check_books(ex);
    CHECK_EQ(stats_all(ex).overdue, 0);
    weir_executor_free(ex);
}

/* A body that is deaf for a while, and blocks its worker or thread meanwhile. */
static int stubborn(void **value, void *ms_arg)
{
    *value = NULL;
    weir_sim_busy(*(int64_t *)ms_arg * MS);
    return 0;
}

/* One that is deaf, but parks. */
static int deaf(void **value, void *until_arg)
{
    weir_time until = at(*(int64_t *)until_arg);

    *value = NULL;
    while (weir_now() < until)
        if (weir_sleep(until) == WEIR_ECANCELED)
            weir_sim_busy(until - weir_now());
    return 0;
}

/* X10, D-12: forced 5 s, domain 10 s; task 2 s, 20 s, none. */
SIM_TEST(test_the_nearest_deadline_counts_and_the_forced_one_caps_it, 40)
{
    weir_domain_policy domains[] = {
        { .name = "A", .slots = 8, .deadlines = { .run_ms = 10000 } }
    };
    weir_group_policy groups[] = { { .key = "A", .domain = "A" },
                                   { .key = "G", .domain = "A", .deadlines = { .run_ms = 3000 } } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 8, .domains = domains,
                    .domain_count = 1, .groups = groups, .group_count = 2,
                    .deadlines = { .run_ms = 1000 }, .deadlines_max = { .run_ms = 5000 }));
    struct body body = { .until_ms = 60000 };
    weir_task *two = submit_with(ex, "A", &body, WEIR_TASK(.deadlines.run_ms = 2000));
    weir_task *twenty = submit_with(ex, "A", &body, WEIR_TASK(.deadlines.run_ms = 20000));
    weir_task *none = submit(ex, "A", &body), *group = submit(ex, "G", &body);
    weir_task *never = submit_with(ex, "A", &body, WEIR_TASK(.deadlines.run_ms = WEIR_NO_LIMIT));

    check_timed_out(two, WEIR_REASON_RUN_DEADLINE, 0, 2000);
    check_timed_out(group, WEIR_REASON_RUN_DEADLINE, 0,
                    3000); /* the group's, before its domain's */
    check_timed_out(twenty, WEIR_REASON_RUN_DEADLINE, 0, 5000);
    check_timed_out(none, WEIR_REASON_RUN_DEADLINE, 0, 5000);
    check_timed_out(never, WEIR_REASON_RUN_DEADLINE, 0, 5000);
    CHECK_EQ(domain_of(ex, "A").timed_out, 5);
    CHECK_EQ(stats_of(ex, "G").timed_out, 1);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* The executor's own deadline, where nothing nearer has one; without domains, too. */
SIM_TEST(test_the_executors_deadline_is_the_last_resort, 40)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .deadlines = { .run_ms = 1000 }));
    struct body body = { .until_ms = 60000 };

    check_timed_out(submit(ex, "g", &body), WEIR_REASON_RUN_DEADLINE, 0, 1000);
    check_timed_out(submit_with(ex, "g", &body, WEIR_TASK(.deadlines.run_ms = 500)),
                    WEIR_REASON_RUN_DEADLINE, 1000, 1500);
    check_books_and_free(ex);
}

/* D-13 */
SIM_TEST(test_the_running_deadline_begins_with_the_start, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body first = { .ms = 200 }, second = { .ms = 50 };
    weir_task *before = submit(ex, "g", &first);
    weir_task *task = submit_with(ex, "g", &second, WEIR_TASK(.deadlines.run_ms = 100));

    check_done_at(before, 0, 200);
    check_done_at(task, 200, 250);
    check_books_and_free(ex);
}

/* D-14: a polite body; its permit is back when it returns, at once. */
SIM_TEST(test_a_polite_body_ends_at_its_deadline, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 5000 }, brief = { .ms = 1 };
    weir_task *task = submit_with(ex, "g", &body, WEIR_TASK(.deadlines.run_ms = 50));
    weir_task *next = submit(ex, "g", &brief);

    check_timed_out(task, WEIR_REASON_RUN_DEADLINE, 0, 50);
    check_done_at(next, 50, 51);
    CHECK_EQ(stats_of(ex, "g").timed_out, 1);
    CHECK_EQ(stats_of(ex, "g").cancelled, 0);
    check_books_and_free(ex);
}

/* D-15: HOLD. The handle is over at 50, the permit back at 500, once. */
SIM_TEST(test_a_stubborn_body_keeps_its_permit_until_it_returns, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    int64_t ms = 500;
    struct body brief = { .ms = 1 };
    weir_task *task, *next;

    CHECK(weir_submit_key(&task, ex, "g", stubborn, &ms, WEIR_TASK(.deadlines.run_ms = 50)) == 0);
    next = submit(ex, "g", &brief);
    check_timed_out(task, WEIR_REASON_RUN_DEADLINE, 0, 50);
    CHECK_EQ(weir_now(), at(50));
    CHECK_EQ(stats_of(ex, "g").overdue, 1);
    CHECK_EQ(stats_of(ex, "g").running, 1);
    check_done_at(next, 500, 501);
    CHECK_EQ(stats_of(ex, "g").overdue, 0);
    check_books_and_free(ex);
}

/* RELEASE: the permit is back at 50; the slot of the domain, too. */
SIM_TEST(test_a_released_permit_lets_the_next_start_at_the_deadline, 60)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "g", .domain = "A" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .slots = 1, .domains = domains, .domain_count = 1,
                                 .groups = groups, .group_count = 1, .overdue = WEIR_RELEASE));
    int64_t ms = 500;
    struct body brief = { .ms = 1 };
    weir_task *task, *next;

    CHECK(weir_submit_key(&task, ex, "g", stubborn, &ms, WEIR_TASK(.deadlines.run_ms = 50)) == 0);
    next = submit(ex, "g", &brief);
    check_timed_out(task, WEIR_REASON_RUN_DEADLINE, 0, 50);
    check_done_at(next, 50, 51);
    CHECK_EQ(stats_of(ex, "g").overdue, 1);
    CHECK_EQ(stats_of(ex, "g").running, 0);
    CHECK_EQ(stats_all(ex).overdue, 1);
    CHECK_EQ(domain_of(ex, "A").overdue, 1);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0); /* no accepted task is left */
    CHECK_EQ(weir_now(), at(51));
    sleep_until(501);
    CHECK_EQ(stats_all(ex).overdue, 0);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Stragglers are capped: beyond that, permits are held. */
SIM_TEST(test_only_so_many_stragglers_go_without_permits, 40)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3, .overdue_max = 2,
                                 .overdue = WEIR_RELEASE, .deadlines = { .run_ms = 10 }));
    int64_t until = 500;
    weir_task *task[3];

    for (int i = 0; i < 3; i++)
        CHECK(weir_submit_key(&task[i], ex, "g", deaf, &until, NULL) == 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(result_of(task[i]).outcome, WEIR_TIMED_OUT);
    CHECK_EQ(stats_all(ex).overdue, 2);
    CHECK_EQ(stats_of(ex, "g").overdue, 3);
    CHECK_EQ(stats_of(ex, "g").running, 1);
    sleep_until(2000);
    check_books_and_free(ex);
}

/* Bodies that never come back do not take capacity with them. A thousand seconds stand for ever. */
SIM_TEST(test_capacity_stays_when_bodies_on_threads_never_return, 30)
{
    weir_group_policy groups[] = { { .key = "bad", .limit = 2, .run_on = WEIR_THREADS } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .groups = groups, .group_count = 1, .threads_max = 2,
                                 .overdue = WEIR_REPLACE, .deadlines = { .run_ms = 10 }));
    int64_t ever = 1000000;
    struct body brief = { .ms = 1 };
    weir_task *task[8];

    for (int i = 0; i < 8;
         i++) /* two at a time, each gives its permit and its thread up after 10 ms */
        CHECK(weir_submit_key(&task[i], ex, "bad", stubborn, &ever, NULL) == 0);
    for (int i = 0; i < 8; i++)
        check_timed_out(task[i], WEIR_REASON_RUN_DEADLINE, i / 2 * 10, i / 2 * 10 + 10);
    CHECK_EQ(stats_all(ex).overdue, 8);
    CHECK_EQ(stats_all(ex).threads, 8);
    check_done_at(submit(ex, "bad", &brief), 40, 41);
    check_done_at(submit(ex, "good", &brief), 41, 42);
    sleep_until(1001000); /* they return after all, and the surplus of threads ends */
    CHECK_EQ(stats_all(ex).overdue, 0);
    CHECK(stats_all(ex).threads <= 2);
    check_books_and_free(ex);
}

/* The same on workers: the stall monitor has replacements for as many as there are workers. */
SIM_TEST(test_capacity_stays_when_bodies_on_workers_never_return, 30)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .overdue = WEIR_RELEASE,
                                 .deadlines = { .run_ms = 30 }));
    int64_t ever = 100000;
    struct body brief = { .ms = 1 };
    weir_task *task[2];

    for (int i = 0; i < 2; i++)
        CHECK(weir_submit_key(&task[i], ex, "bad", stubborn, &ever, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(result_of(task[i]).outcome, WEIR_TIMED_OUT);
    check_done_at(submit(ex, "bad", &brief), 30, 31);
    check_done_at(submit(ex, "good", &brief), 31, 32);
    sleep_until(101000);
    check_books_and_free(ex);
}

/* A straggler without permits returns while the executor is freed, and wakes others' workers for the last time. */
SIM_TEST(test_stragglers_return_while_the_executor_is_freed, 200)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 2, .workers = 1 },
                                     { .name = "B", .slots = 2, .workers = 1 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 5, WEIR_NO_LIMIT, .overdue = WEIR_RELEASE,
                                               .deadlines = { .run_ms = 10 }));
    int64_t ms[3] = { 50, 50, 40 };

    CHECK(weir_submit_key(NULL, ex, "A", stubborn, &ms[0], NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "B", stubborn, &ms[1], NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "D", stubborn, &ms[2], NULL) == 0);
    sleep_until(20);
    CHECK(weir_executor_shutdown(ex, WEIR_FOREVER) == 0);
    weir_executor_free(ex);
    CHECK_EQ(weir_now(), at(50));
}

/* 2.6, 5.2 D06 */
SIM_TEST(test_a_task_that_waits_too_long_never_runs, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_queue_max = 1));
    struct body body = { .ms = 100 };
    weir_task *first = submit(ex, "g", &body);
    weir_task *late = submit_with(ex, "g", &body, WEIR_TASK(.deadlines.wait_ms = 30));
    weir_task *refused = submit(ex, "g", &body), *next;

    check_timed_out(late, WEIR_REASON_WAIT_DEADLINE, 30, 30);
    next = submit(ex, "g", &body); /* its place is free */
    check_rejected(refused, WEIR_REASON_GROUP_QUEUE_FULL);
    check_done_at(first, 0, 100);
    check_done_at(next, 100, 200);
    CHECK_EQ(stats_of(ex, "g").started, 2);
    check_books_and_free(ex);
}

SIM_TEST(test_a_total_deadline_counts_waiting_and_running, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 100 };
    weir_task *first = submit(ex, "g", &body);
    weir_task *second = submit_with(
        ex, "g", &body, WEIR_TASK(.deadlines = { .wait_ms = 110, .run_ms = 90, .total_ms = 150 }));
    weir_task *third = submit_with(ex, "g", &body, WEIR_TASK(.deadlines.total_ms = 120));

    check_done_at(first, 0, 100);
    check_timed_out(third, WEIR_REASON_TOTAL_DEADLINE, 120, 120);
    check_timed_out(second, WEIR_REASON_TOTAL_DEADLINE, 100, 150);
    check_books_and_free(ex);
}

static int comes_later(void **value, void *arg)
{
    (void)arg;
    *value = NULL;
    return WEIR_PENDING;
}

SIM_TEST(test_a_pending_task_has_a_deadline_as_well, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_inflight_max = 1));
    struct body brief = { .ms = 1 };
    weir_task *task, *next;

    CHECK(weir_submit_key(&task, ex, "g", comes_later, NULL, WEIR_TASK(.deadlines.run_ms = 40)) ==
          0);
    next = submit(ex, "g", &brief);
    weir_task_ref(task);
    check_timed_out(task, WEIR_REASON_RUN_DEADLINE, 0, 40);
    CHECK(weir_task_settle(task, 0, NULL) == WEIR_EALREADY);
    weir_task_unref(task);
    check_done_at(next, 40, 41);
    check_books_and_free(ex);
}

struct witness {
    _Atomic int told;
    weir_time at[1000];
};

static void told(weir_task *task, const weir_result *result, void *witness_arg)
{
    struct witness *witness = witness_arg;

    (void)task;
    CHECK_EQ(result->outcome, WEIR_TIMED_OUT);
    witness->at[witness->told++] = result->ended_at;
}

/* D-16: a thousand deadlines over three domains: each fires once, in order. */
SIM_TEST(test_one_watchdog_serves_all_domains_in_order, 3)
{
    static struct witness witness;
    weir_domain_policy domains[] = { { .name = "A", .slots = 1, .queue = 2000 },
                                     { .name = "B", .slots = 1, .queue = 2000 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 3, 6000, .inflight_max = 0));
    const char *keys[] = { "A", "B", "D" };
    struct body stop = { .until_ms = 5000 };

    witness = (struct witness){ 0 };
    CHECK(weir_group_resize(group_of(ex, "D"), 1, 0, 0) == 0);
    for (int i = 0; i < 3; i++)
        weir_task_unref(submit(ex, keys[i], &stop));
    let_start();
    for (int i = 0; i < 1000; i++)
        CHECK(weir_submit_key(NULL, ex, keys[i % 3], work, NULL,
                              WEIR_TASK(.deadlines.wait_ms = 1 + (i * 7) % 1000, .on_done = told,
                                        .on_done_arg = &witness)) == 0);
    sleep_until(1500);
    CHECK_EQ(witness.told, 1000);
    for (int i = 1; i < 1000; i++)
        CHECK(witness.at[i - 1] <= witness.at[i]);
    CHECK_EQ(domain_of(ex, "A").timed_out + domain_of(ex, "B").timed_out +
                 domain_of(ex, "default").timed_out,
             1000);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* D-17 */
SIM_TEST(test_a_task_without_a_deadline_runs_as_long_as_it_likes, 20)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .deadlines = { .wait_ms = 50 }));
    struct body body = { .ms = 86400000 };

    check_done_at(submit(ex, "g", &body), 0, 86400000);
    check_books_and_free(ex);
}

/* 2.6, 5.2 D07: one that ends in time disarms its entry: the clock has nothing left to wait for. */
SIM_TEST(test_a_task_that_ends_in_time_leaves_nothing_behind, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .deadlines = { .run_ms = 50 }));
    struct body body = { .ms = 50 }; /* exactly: the first of both wins, the other does nothing */
    weir_result result = result_of(submit(ex, "g", &body));

    CHECK(result.outcome == WEIR_DONE || result.outcome == WEIR_TIMED_OUT);
    CHECK_EQ(result.ended_at, at(50));
    check_done_at(submit_with(ex, "g", &body, WEIR_TASK(.deadlines.run_ms = 60)), 50, 100);
    check_books_and_free(ex);
}

/* A callback of the user's that blocks does not keep the watchdog from its work. */
static void slow_to_hear(weir_task *task, const weir_result *result, void *arg)
{
    (void)task;
    (void)result;
    (void)arg;
    weir_sim_busy(100 * MS);
}

SIM_TEST(test_users_code_does_not_hold_up_the_watchdog, 60)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .deadlines = { .run_ms = 10 }));
    struct body body = { .ms = 5000 };
    weir_task *slow = submit_with(ex, "g", &body, WEIR_TASK(.on_done = slow_to_hear));
    weir_task *other = submit_with(ex, "g", &body, WEIR_TASK(.deadlines.run_ms = 20));

    check_timed_out(other, WEIR_REASON_RUN_DEADLINE, 0, 20);
    CHECK_EQ(weir_now(), at(20));
    check_timed_out(slow, WEIR_REASON_RUN_DEADLINE, 0, 10);
    check_books_and_free(ex);
}

/* A deadline that passes while a task is cancelled, settled, or ends: one outcome, all books right. */
static void settle_it(void *task_arg)
{
    weir_sleep(at(10));
    if (weir_sim_random() % 2)
        weir_task_cancel(task_arg);
    else
        weir_task_settle(task_arg, 0, NULL);
}

SIM_TEST(test_a_deadline_races_with_a_cancel_and_a_settle, 400)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .overdue = weir_sim_seed() % 2 ? WEIR_RELEASE : WEIR_HOLD));
    struct body body = { .until_ms = 10 + (int64_t)(weir_sim_seed() % 3) - 1 };
    weir_task *first = submit_with(ex, "g", &body, WEIR_TASK(.deadlines.run_ms = 10));
    weir_task *second = submit_with(ex, "g", &body, WEIR_TASK(.deadlines.total_ms = 10));
    weir_task *third = submit_with(ex, "g", &body, WEIR_TASK(.deadlines.wait_ms = 10));
    int64_t thread[3] = { weir_sim_thread(settle_it, first, "one"),
                          weir_sim_thread(settle_it, second, "two"),
                          weir_sim_thread(settle_it, third, "three") };

    for (int i = 0; i < 3; i++)
        weir_sim_join(thread[i]);
    result_of(first);
    result_of(second);
    result_of(third);
    sleep_until(20); /* settled from outside, a body is not woken: it returns in its own time */
    check_books_and_free(ex);
}

/* ---- nothing of the user's runs on the clock thread ---------------------------------------------- */

/* A callback that keeps the clock thread makes this one late. */
static weir_task *due_at_20(weir_executor *ex)
{
    weir_group_pause(group_of(ex, "late"));
    return submit_with(ex, "late", NULL, WEIR_TASK(.deadlines.wait_ms = 20));
}

static void tells_slowly(weir_task *task, const weir_result *result, void *count)
{
    (void)task;
    (void)result;
    weir_sim_busy(100 * MS);
    ++*(_Atomic int *)count;
}

struct registers {
    weir_task *task;
    _Atomic int count;
};

static void registers_at_10(void *registers_arg)
{
    struct registers *r = registers_arg;

    sleep_until(10);
    CHECK(weir_task_on_done(r->task, tells_slowly, (void *)&r->count) == 0);
}

SIM_TEST(test_a_callback_that_comes_with_the_deadline_does_not_keep_the_clock, 3000)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    struct registers r = { .count = 0 };
    weir_task *other = due_at_20(ex);
    int64_t thread;

    weir_group_pause(group_of(ex, "g"));
    r.task = submit_with(ex, "g", NULL, WEIR_TASK(.deadlines.wait_ms = 10));
    thread = weir_sim_thread(registers_at_10, &r, "registers");
    check_timed_out(other, WEIR_REASON_WAIT_DEADLINE, 20, 20);
    weir_sim_join(thread);
    check_timed_out(r.task, WEIR_REASON_WAIT_DEADLINE, 10, 10);
    check_books_and_free(ex);
    CHECK_EQ(r.count, 1);
}

static _Atomic int dropped;

static void drops_slowly(void *value)
{
    CHECK(value == &dropped);
    weir_sim_busy(100 * MS);
    dropped++;
}

static int ends_at_10(void **value, void *arg)
{
    (void)arg;
    *value = &dropped;
    while (weir_now() < at(10))
        weir_sleep(at(10));
    return 0;
}

SIM_TEST(test_a_value_that_is_dropped_at_the_deadline_does_not_keep_the_clock, 3000)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task *other = due_at_20(ex), *task = NULL;

    dropped = 0;
    CHECK(weir_submit_key(&task, ex, "g", ends_at_10, NULL,
                          WEIR_TASK(.deadlines.run_ms = 10, .drop = drops_slowly)) == 0);
    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    weir_task_unref(task);
    check_timed_out(other, WEIR_REASON_WAIT_DEADLINE, 20, 20);
    check_books_and_free(ex);
    CHECK_EQ(dropped, 1);
}

/* Not even if no thread can be started to tell them. */
static void tells_without_threads(void *arg)
{
    weir_executor *ex = NULL;
    _Atomic int count = 0;
    weir_task *other = NULL;

    (void)arg;
    if (weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .stall_after_ms = 10000), NULL))
        return;
    weir_group_pause(group_of(ex, "late"));
    if (weir_submit_key(&other, ex, "late", work, NULL, WEIR_TASK(.deadlines.wait_ms = 20))) {
        weir_executor_free(ex); /* there is no clock thread */
        return;
    }
    for (int i = 0; i < 3; i++)
        CHECK(weir_submit_key(NULL, ex, "late", work, NULL,
                              WEIR_TASK(.deadlines.wait_ms = 10 + i, .on_done = tells_slowly,
                                        .on_done_arg = (void *)&count)) == 0);
    check_timed_out(other, WEIR_REASON_WAIT_DEADLINE, 20, 20);
    check_books_and_free(ex);
    CHECK_EQ(count, 3);
}

static void test_a_callback_told_without_a_thread_does_not_keep_the_clock(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 9; n++)
        explore(30, WEIR_SIM_OPTIONS(.seed = n * 100, .fail_thread = n, .sticky = true),
                tells_without_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_callback_that_comes_with_the_deadline_does_not_keep_the_clock),
        cmocka_unit_test(test_a_value_that_is_dropped_at_the_deadline_does_not_keep_the_clock),
        cmocka_unit_test(test_a_callback_told_without_a_thread_does_not_keep_the_clock),
        cmocka_unit_test(test_the_nearest_deadline_counts_and_the_forced_one_caps_it),
        cmocka_unit_test(test_the_executors_deadline_is_the_last_resort),
        cmocka_unit_test(test_the_running_deadline_begins_with_the_start),
        cmocka_unit_test(test_a_polite_body_ends_at_its_deadline),
        cmocka_unit_test(test_a_stubborn_body_keeps_its_permit_until_it_returns),
        cmocka_unit_test(test_a_released_permit_lets_the_next_start_at_the_deadline),
        cmocka_unit_test(test_only_so_many_stragglers_go_without_permits),
        cmocka_unit_test(test_capacity_stays_when_bodies_on_threads_never_return),
        cmocka_unit_test(test_capacity_stays_when_bodies_on_workers_never_return),
        cmocka_unit_test(test_stragglers_return_while_the_executor_is_freed),
        cmocka_unit_test(test_a_task_that_waits_too_long_never_runs),
        cmocka_unit_test(test_a_total_deadline_counts_waiting_and_running),
        cmocka_unit_test(test_a_pending_task_has_a_deadline_as_well),
        cmocka_unit_test(test_one_watchdog_serves_all_domains_in_order),
        cmocka_unit_test(test_a_task_without_a_deadline_runs_as_long_as_it_likes),
        cmocka_unit_test(test_a_task_that_ends_in_time_leaves_nothing_behind),
        cmocka_unit_test(test_users_code_does_not_hold_up_the_watchdog),
        cmocka_unit_test(test_a_deadline_races_with_a_cancel_and_a_settle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
