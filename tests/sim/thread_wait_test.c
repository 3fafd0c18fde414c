/* Groups on threads when there are fewer threads than bodies: a task that waits for a thread waits in its queue, holds
 * nothing, and is served in order. SEMANTICS D-22: the pool never queues.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

static const weir_group_policy on_threads[] = { { .key = "a", .run_on = WEIR_THREADS },
                                                { .key = "b", .run_on = WEIR_THREADS },
                                                { .key = "c", .run_on = WEIR_THREADS },
                                                { .key = "d", .run_on = WEIR_THREADS } };
#define FOUR_ON_THREADS .groups = on_threads, .group_count = 4

static void check_all_and_free(weir_executor *ex)
{
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    let_start(); /* a body whose permits are back may be about to return */
    check_books(ex);
    weir_executor_free(ex);
}

static void check_waits_for_thread(weir_task *task, int64_t threads)
{
    weir_why why = { .size = sizeof(why) };

    CHECK(weir_task_why(&why, task) == 0);
    CHECK_EQ(why.reason, WEIR_REASON_NO_THREAD);
    CHECK(strcmp(why.node, "executor") == 0);
    CHECK_EQ(why.limit, threads);
    CHECK_EQ(why.held, threads);
}

static void check_timed_out_at(weir_task *task, weir_reason reason, int64_t ms)
{
    weir_result result = result_of(task);

    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    CHECK_EQ(result.reason, reason);
    CHECK_EQ(result.ended_at, at(ms));
}

/* ---- what it holds, and says ------------------------------------------------------------------- */

SIM_TEST(test_a_task_that_waits_for_a_thread_holds_nothing, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 3, .inflight_max = 2,
                                                 .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 50 }, quick = { .ms = 1 };
    weir_task *a[3], *other[5];

    for (int i = 0; i < 3; i++)
        a[i] = submit_blocking(ex, "a", &body);
    sleep_until(10);
    CHECK_EQ(stats_of(ex, "a").running, 1);
    CHECK_EQ(stats_of(ex, "a").waiting, 2);
    CHECK_EQ(stats_all(ex).inflight, 1);
    CHECK_EQ(stats_all(ex).threads, 1);
    check_waits_for_thread(a[1], 1);
    check_waits_for_thread(a[2], 1);
    for (int i = 0; i < 5; i++) { /* the executor's other permit is free for others */
        other[i] = submit(ex, "other", &quick);
        check_done_at(other[i], 10 + i, 11 + i);
    }
    for (int i = 0; i < 3; i++)
        check_done_at(a[i], i * 50, i * 50 + 50);
    check_all_and_free(ex);
}

SIM_TEST(test_a_task_that_waits_for_a_thread_has_no_slot_of_its_domain, 60)
{
    static weir_domain_policy domains[] = { { .name = "A", .slots = 2, .run_on = WEIR_THREADS },
                                            { .name = "B", .slots = 2, .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 5, WEIR_NO_LIMIT, .threads_max = 1));
    struct body body = { .ms = 50 };
    weir_task *a[2], *b;

    a[0] = submit_blocking(ex, "A", &body);
    sleep_until(5);
    a[1] = submit_blocking(ex, "A", &body);
    sleep_until(6);
    b = submit_blocking(ex, "B", &body);
    sleep_until(10);
    CHECK_DOMAIN(ex, "A", 1, 0, 1);
    CHECK_DOMAIN(ex, "B", 0, 0, 1);
    check_waits_for_thread(a[1], 1);
    check_waits_for_thread(b, 1);
    check_done_at(a[0], 0, 50);
    check_done_at(a[1], 50, 100);
    check_done_at(b, 100, 150);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_waiting_task_says_so_in_words, 5)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 50 };
    weir_task *a = submit_blocking(ex, "a", &body), *b = submit_blocking(ex, "b", &body);
    weir_why why = { .size = sizeof(why) };
    char text[200];

    sleep_until(10);
    weir_task *waits = why_of(a) == WEIR_REASON_RUNNING ? b : a;
    CHECK(weir_task_why(&why, waits) == 0);
    CHECK(weir_why_text(text, sizeof(text), &why) > 0);
    CHECK(strstr(text, "all threads are in use"));
    CHECK(strstr(text, " (executor: 1 of 1 in use)"));
    CHECK(strcmp(weir_reason_name(why.reason), "no_thread") == 0);
    check_done(a);
    check_done(b);
    check_all_and_free(ex);
}

/* ---- order -------------------------------------------------------------------------------------- */

/* First come, first served; and a group that comes just when a thread falls free comes last. */
SIM_TEST(test_threads_are_given_in_the_order_of_asking, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 50 };
    weir_task *a, *b, *c, *d;

    a = submit_blocking(ex, "a", &body);
    sleep_until(1);
    b = submit_blocking(ex, "b", &body);
    sleep_until(2);
    c = submit_blocking(ex, "c", &body);
    sleep_until(50);
    d = submit_blocking(ex, "d", &body);
    check_done_at(a, 0, 50);
    check_done_at(b, 50, 100);
    check_done_at(c, 100, 150);
    check_done_at(d, 150, 200);
    check_all_and_free(ex);
}

/* A group's turn on its thread ends when others wait for one, though it has more to do. */
SIM_TEST(test_a_turn_on_a_thread_ends_when_others_wait, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 10 };
    weir_task *b;

    for (int i = 0; i < 20; i++)
        CHECK(weir_submit_key(NULL, ex, "a", blocking, &body, NULL) == 0);
    sleep_until(5);
    b = submit_blocking(ex, "b", &body);
    check_done_at(b, 10, 20);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(210)); /* the thread was never idle */
    check_all_and_free(ex);
}

/* With no other group in line, the thread goes on with its group, also while that waits for a second one. */
SIM_TEST(test_a_group_that_waits_for_a_second_thread_goes_on_with_its_first, 60)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .group_limit = 2, .threads_max = 1, FOUR_ON_THREADS));
    struct gauge gauge = { 0 };
    struct body body = { .ms = 10, .gauge = &gauge };

    for (int i = 0; i < 100; i++)
        CHECK(weir_submit_key(NULL, ex, "a", blocking, &body, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(1000));
    CHECK_EQ(gauge.peak, 1);
    check_all_and_free(ex);
}

/* ---- groups that need none any more -------------------------------------------------------------- */

enum { PAUSED, EVICTED, CANCELLED, COOLED, MOVED, WAYS };

/* b waits first and then needs no thread: c has it at 50. */
static int way;

static void gives_up(void *arg)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 50 }, quick = { .ms = 1 };
    weir_task *a = submit_blocking(ex, "a", &body), *b, *c;

    (void)arg;
    sleep_until(1);
    b = submit(ex, "b", &quick);
    sleep_until(2);
    c = submit_blocking(ex, "c", &body);
    sleep_until(way % 2 ? 50 : 10); /* early, or just when its turn comes */
    switch (way / 2) {
    case PAUSED:
        weir_group_pause(group_of(ex, "b"));
        CHECK(why_of(b) == WEIR_REASON_PAUSED || way % 2);
        break;
    case EVICTED:
        CHECK(weir_group_evict(ex, "b", 0) == 0);
        CHECK(weir_task_done(b) || way % 2);
        break;
    case CANCELLED:
        CHECK(weir_task_cancel(b) || way % 2);
        break;
    case COOLED:
        CHECK(weir_group_cool_down(group_of(ex, "b"), at(500)) == 0);
        break;
    case MOVED:
        CHECK(weir_group_run_on(group_of(ex, "b"), WEIR_WORKERS) == 0);
        break;
    }
    check_done_at(a, 0, 50);
    weir_result r = result_of(c); /* if b was faster it ran for 1 ms */
    CHECK(r.started_at == at(50) || (way % 2 && r.started_at == at(51)));
    if (way == MOVED * 2)
        check_done_at(b, 10, 11); /* at once, on a worker */
    else {
        weir_group_resume(group_of(ex, "b"));
        result_of(b);
    }
    check_all_and_free(ex);
}

static void test_a_group_that_needs_no_thread_any_more_passes_it_on(void **state)
{
    (void)state;
    for (way = 0; way < WAYS * 2; way++)
        explore(100, WEIR_SIM_OPTIONS(.seed = 1), gives_up);
}

SIM_TEST(test_a_waiting_deadline_counts_while_there_is_no_thread, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 50 }, quick = { .ms = 1 };
    weir_task *a = submit_blocking(ex, "a", &body), *b, *total, *c;

    sleep_until(1);
    b = submit_with(ex, "b", &quick, WEIR_TASK(.deadlines.wait_ms = 20));
    total = submit_with(ex, "b", &quick, WEIR_TASK(.deadlines.total_ms = 30));
    c = submit_with(ex, "c", &quick, WEIR_TASK(.deadlines = { .run_ms = 10, .wait_ms = 100 }));
    check_timed_out_at(b, WEIR_REASON_WAIT_DEADLINE, 21);
    check_timed_out_at(total, WEIR_REASON_TOTAL_DEADLINE, 31);
    check_done_at(a, 0, 50);
    check_done_at(c, 50, 51); /* its running deadline began with its start */
    check_all_and_free(ex);
}

SIM_TEST(test_a_cancelled_task_leaves_at_once, 60)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .group_limit = 3, .threads_max = 1, FOUR_ON_THREADS));
    struct gauge gauge = { 0 };
    struct body body = { .ms = 50, .gauge = &gauge };
    weir_task *a[3];

    for (int i = 0; i < 3; i++)
        a[i] = submit_blocking(ex, "a", &body);
    sleep_until(10);
    CHECK(weir_task_cancel(a[1]));
    check_cancelled(a[1]);
    CHECK_EQ(stats_of(ex, "a").waiting, 1);
    check_done_at(a[0], 0, 50);
    check_done_at(a[2], 50, 100);
    CHECK_EQ(gauge.ran, 2);
    check_all_and_free(ex);
}

/* A task that still waits for a thread when the executor is closed is turned away, or, if that was asked for, still runs. */
SIM_TEST(test_closing_turns_away_tasks_that_wait_for_a_thread, 200)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 50 };
    weir_task *a = submit_blocking(ex, "a", &body), *b, *c;

    sleep_until(1);
    b = submit_blocking(ex, "b", &body);
    c = submit_blocking(ex, "c", &body);
    sleep_until(50); /* just when the thread falls free */
    weir_executor_close(ex, 0);
    weir_executor_free(ex);
    check_done_at(a, 0, 50);
    weir_result rb = result_of(b), rc = result_of(c);
    CHECK(rb.outcome == WEIR_REJECTED || rc.outcome == WEIR_REJECTED);
    CHECK(rb.outcome == WEIR_REJECTED ? rb.reason == WEIR_REASON_SHUT_DOWN
                                      : rb.started_at == at(50));
}

SIM_TEST(test_finishing_lets_tasks_that_wait_for_a_thread_run, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 50 };
    weir_task *a = submit_blocking(ex, "a", &body), *b;

    sleep_until(1);
    b = submit_blocking(ex, "b", &body);
    sleep_until(10);
    weir_executor_close(ex, WEIR_FINISH_WAITING);
    check_done_at(a, 0, 50);
    check_done_at(b, 50, 100);
    check_all_and_free(ex);
}

/* ---- one cap ------------------------------------------------------------------------------------- */

SIM_TEST(test_domains_with_their_own_workers_share_the_cap_on_threads, 60)
{
    static weir_domain_policy domains[] = {
        { .name = "A", .slots = 3, .workers = 1, .run_on = WEIR_THREADS },
        { .name = "B", .slots = 3, .workers = 1, .run_on = WEIR_THREADS }
    };
    weir_executor *ex = new_executor(AB_POLICY(domains, 8, WEIR_NO_LIMIT, .threads_max = 2));
    struct gauge gauge = { 0 };
    struct body body = { .ms = 50, .gauge = &gauge };
    weir_task *task[6];

    for (int i = 0; i < 6; i++)
        task[i] = submit_blocking(ex, i % 2 ? "A" : "B", &body);
    sleep_until(10);
    CHECK_EQ(stats_all(ex).threads, 2);
    for (int i = 0; i < 6; i++)
        check_done(task[i]);
    CHECK_EQ(weir_now(), at(150));
    CHECK_EQ(gauge.peak, 2);
    CHECK_EQ(stats_all(ex).threads, 2);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static int stubborn(void **value, void *ms_arg)
{
    *value = NULL;
    weir_sim_busy(*(int64_t *)ms_arg * MS);
    return 0;
}

SIM_TEST(test_a_replaced_body_lets_a_waiting_group_go, 60)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .threads_max = 1, .overdue = WEIR_REPLACE, FOUR_ON_THREADS));
    struct body body = { .ms = 50 };
    int64_t ms = 500;
    weir_task *a = NULL, *b, *c;

    CHECK(weir_submit_key(&a, ex, "a", stubborn, &ms, WEIR_TASK(.deadlines.run_ms = 30)) == 0);
    sleep_until(1);
    b = submit_blocking(ex, "b", &body);
    sleep_until(2);
    c = submit_blocking(ex, "c", &body);
    check_timed_out_at(a, WEIR_REASON_RUN_DEADLINE, 30);
    check_done_at(b, 30, 80);
    check_done_at(c, 80, 130);
    sleep_until(600); /* and back it is: one body at a time again */
    b = submit_blocking(ex, "b", &body);
    sleep_until(601);
    c = submit_blocking(ex, "c", &body);
    check_done_at(b, 600, 650);
    check_done_at(c, 650, 700);
    check_all_and_free(ex);
}

/* A thread of the pool that tells on behalf of the watchdog takes no body's place. */
static void tells_slowly(weir_task *task, const weir_result *result, void *arg)
{
    (void)task;
    (void)result;
    (void)arg;
    weir_sim_busy(100 * MS);
}

SIM_TEST(test_callbacks_on_threads_take_no_bodys_place, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .threads_max = 1, FOUR_ON_THREADS));
    struct body body = { .ms = 50 };
    weir_task *a, *b;

    weir_group_pause(group_of(ex, "w"));
    CHECK(weir_submit_key(NULL, ex, "w", work, NULL,
                          WEIR_TASK(.deadlines.wait_ms = 10, .on_done = tells_slowly)) == 0);
    sleep_until(20);
    a = submit_blocking(ex, "a", &body);
    sleep_until(21);
    b = submit_blocking(ex, "b", &body);
    check_done_at(a, 20, 70);
    check_done_at(b, 70, 120);
    check_all_and_free(ex);
}

/* ---- threads and slots both scarce ---------------------------------------------------------------- */

static weir_group_policy mixed_groups[] = {
    { .key = "x", .run_on = WEIR_THREADS },
    { .key = "at", .domain = "A", .run_on = WEIR_THREADS },
    { .key = "aw", .domain = "A" },
    { .key = "bt", .domain = "B", .run_on = WEIR_THREADS },
};
static weir_domain_policy mixed_domains[] = { { .name = "A", .slots = 1 },
                                              { .name = "B", .slots = 1 } };
#define MIXED_POLICY(...)                                                              \
    WEIR_POLICY(.workers = 2, .slots = 4, .domains = mixed_domains, .domain_count = 2, \
                .groups = mixed_groups, .group_count = 4, .threads_max = 1,            \
                .stall_after_ms = 10000, __VA_ARGS__)

/* A thread does not stand idle for a group whose domain is full. */
SIM_TEST(test_a_thread_is_not_kept_for_a_full_domain, 60)
{
    weir_executor *ex = new_executor(MIXED_POLICY());
    struct body body = { .ms = 50 }, long_one = { .until_ms = 500 };
    weir_task *x = submit_blocking(ex, "x", &body), *at_, *aw, *bt;

    sleep_until(10);
    at_ = submit_blocking(ex, "at", &body);
    sleep_until(20);
    CHECK_EQ(why_of(at_), WEIR_REASON_NO_THREAD);
    aw = submit(ex, "aw", &long_one); /* has the slot that at_ does not hold */
    sleep_until(30);
    CHECK_EQ(why_of(aw), WEIR_REASON_RUNNING);
    bt = submit_blocking(ex, "bt", &body);
    check_done_at(x, 0, 50);
    check_done_at(bt, 50, 100);
    CHECK_EQ(why_of(at_), WEIR_REASON_DOMAIN_SLOTS);
    check_done_at(aw, 20, 500);
    check_done_at(at_, 500, 550);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Both never fall free at the same moment: all the same it gets them. */
SIM_TEST(test_a_task_that_needs_thread_and_slot_gets_both_in_the_end, 60)
{
    weir_executor *ex = new_executor(MIXED_POLICY());
    struct body body = { .ms = 10 }, other = { .ms = 7 };
    weir_task *at_;
    weir_result r;

    for (int i = 0; i < 100; i++) {
        CHECK(weir_submit_key(NULL, ex, "x", blocking, &body, NULL) == 0);
        CHECK(weir_submit_key(NULL, ex, "bt", blocking, &body, NULL) == 0);
        CHECK(weir_submit_key(NULL, ex, "aw", work, &other, NULL) == 0);
    }
    sleep_until(3);
    at_ = submit_blocking(ex, "at", &body);
    r = result_of(at_);
    CHECK_EQ(r.outcome, WEIR_DONE);
    CHECK(r.started_at <= at(100));
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* The same for the executor's permits. */
SIM_TEST(test_a_task_that_needs_thread_and_permit_gets_both_in_the_end, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, .inflight_max = 2,
                                                 FOUR_ON_THREADS, .stall_after_ms = 10000));
    struct body body = { .ms = 10 }, other = { .ms = 7 };
    weir_task *c;
    weir_result r;

    for (int i = 0; i < 100; i++) {
        CHECK(weir_submit_key(NULL, ex, "a", blocking, &body, NULL) == 0);
        CHECK(weir_submit_key(NULL, ex, "b", blocking, &body, NULL) == 0);
        CHECK(weir_submit_key(NULL, ex, "w", work, &other, NULL) == 0);
    }
    sleep_until(3);
    c = submit_blocking(ex, "c", &body);
    r = result_of(c);
    CHECK_EQ(r.outcome, WEIR_DONE);
    CHECK(r.started_at <= at(100));
    check_all_and_free(ex);
}

/* ---- nested waits --------------------------------------------------------------------------------- */

struct nested {
    weir_executor *ex;
    int rc;
};

static int waits_for_another(void **value, void *nested_arg)
{
    struct nested *nested = nested_arg;
    weir_task *task = submit(nested->ex, "b", NULL);

    *value = NULL;
    nested->rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_cancel(task);
    weir_task_unref(task);
    return 0;
}

SIM_TEST(test_waiting_on_the_last_thread_for_one_that_needs_it_is_refused, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .threads_max = 1, FOUR_ON_THREADS));
    struct nested nested = { .ex = ex };
    weir_task *task;

    CHECK(weir_submit_key(&task, ex, "a", waits_for_another, &nested, NULL) == 0);
    check_done(task);
    CHECK_EQ(nested.rc, WEIR_EDEADLK);
    check_all_and_free(ex);
}

/* ---- at random ------------------------------------------------------------------------------------ */

enum { GROUPS = 5, TASKS = 40, MEDDLINGS = 25 };
static const char *const key_of[GROUPS] = { "g0", "g1", "g2", "g3", "g4" };

struct life {
    weir_executor *ex;
    struct gauge gauge;
    uint32_t threads;
    _Atomic int submitters;
};

static uint32_t pick(uint32_t below)
{
    return (uint32_t)(weir_sim_random() % below);
}

static int some_body(void **value, void *life_arg)
{
    struct life *life = life_arg;
    int64_t ns = pick(3) ? pick(5) * MS : 0;

    *value = NULL;
    gauge_enter(&life->gauge);
    CHECK(life->gauge.now <= (int)life->threads);
    if (pick(2))
        weir_sim_busy(ns);
    else
        weir_sleep(weir_now() + ns);
    gauge_leave(&life->gauge);
    return 0;
}

static void submits(void *life_arg)
{
    struct life *life = life_arg;

    for (int i = 0; i < TASKS; i++) {
        weir_task *task = NULL;
        bool keeps = pick(2);
        weir_submit_key(keeps ? &task : NULL, life->ex, key_of[pick(GROUPS)], some_body, life,
                        pick(3) ? NULL
                                : WEIR_TASK(.deadlines.wait_ms = 1 + pick(8), .cost = 1 + pick(2)));
        if (pick(3) == 0)
            weir_sleep(weir_now() + pick(4) * MS);
        if (task && pick(3) == 0)
            weir_task_cancel(task);
        weir_task_unref(task);
    }
    life->submitters--;
}

static void meddles(struct life *life)
{
    weir_group *group = group_of(life->ex, key_of[pick(GROUPS)]);

    switch (pick(5)) {
    case 0:
        weir_group_pause(group);
        if (pick(2))
            weir_sleep(weir_now() + pick(4) * MS);
        weir_group_resume(group);
        break;
    case 1:
        CHECK(weir_group_evict(life->ex, key_of[pick(GROUPS)], pick(2) ? WEIR_CARRY_OVER : 0) == 0);
        break;
    case 2:
        CHECK(weir_group_cool_down(group, weir_now() + pick(3) * MS) == 0);
        break;
    case 3:
        weir_group_resize(group, 2 + pick(3), 0, 0);
        break;
    default:
        weir_executor_resize(life->ex, pick(2) ? 2 + pick(4) : WEIR_NO_LIMIT, 0);
    }
}

static int domain_for(const char **domain, const char *key, void *arg)
{
    (void)arg;
    *domain = key[1] < '2' ? "A" : key[1] < '4' ? "B" : "default";
    return 0;
}

/* All groups are on threads: never more bodies than threads, and all come to an end. */
static void some_life(void *arg)
{
    weir_domain_policy domains[] = {
        { .name = "A", .slots = 1 + pick(2), .run_on = WEIR_THREADS, .workers = pick(2) },
        { .name = "B", .slots = 1 + pick(2), .slots_mode = WEIR_RESERVED, .run_on = WEIR_THREADS },
        { .name = "default", .run_on = WEIR_THREADS },
    };
    weir_group_policy groups[GROUPS];
    struct life life = { .threads = 1 + pick(3), .submitters = 2 };
    bool with_domains = pick(2);
    int64_t thread[2];

    (void)arg;
    for (int i = 0; i < GROUPS; i++)
        groups[i] = (weir_group_policy){ .key = key_of[i], .run_on = WEIR_THREADS };
    life.ex =
        with_domains
            ? new_executor(WEIR_POLICY(.workers = 1 + pick(2), .group_limit = 3, .slots = 6,
                                       .domains = domains, .domain_count = 3,
                                       .domain_for = domain_for, .threads_max = life.threads))
            : new_executor(WEIR_POLICY(.workers = 1 + pick(2), .group_limit = 3, .groups = groups,
                                       .group_count = GROUPS, .threads_max = life.threads));
    for (int i = 0; i < 2; i++)
        thread[i] = weir_sim_thread(submits, &life, i ? "second" : "first");
    for (int i = 0; i < MEDDLINGS && life.submitters; i++) {
        weir_sleep(weir_now() + pick(3) * MS);
        meddles(&life);
    }
    for (int i = 0; i < 2; i++)
        weir_sim_join(thread[i]);
    CHECK(weir_executor_drain(life.ex, weir_now() + 10000 * MS) == 0);
    if (with_domains)
        check_domain_books(life.ex);
    check_all_and_free(life.ex);
}

static void test_never_more_bodies_than_threads_whatever_happens(void **state)
{
    (void)state;
    explore(400, WEIR_SIM_OPTIONS(.seed = 1), some_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_that_waits_for_a_thread_holds_nothing),
        cmocka_unit_test(test_a_task_that_waits_for_a_thread_has_no_slot_of_its_domain),
        cmocka_unit_test(test_a_waiting_task_says_so_in_words),
        cmocka_unit_test(test_threads_are_given_in_the_order_of_asking),
        cmocka_unit_test(test_a_turn_on_a_thread_ends_when_others_wait),
        cmocka_unit_test(test_a_group_that_waits_for_a_second_thread_goes_on_with_its_first),
        cmocka_unit_test(test_a_group_that_needs_no_thread_any_more_passes_it_on),
        cmocka_unit_test(test_a_waiting_deadline_counts_while_there_is_no_thread),
        cmocka_unit_test(test_a_cancelled_task_leaves_at_once),
        cmocka_unit_test(test_closing_turns_away_tasks_that_wait_for_a_thread),
        cmocka_unit_test(test_finishing_lets_tasks_that_wait_for_a_thread_run),
        cmocka_unit_test(test_domains_with_their_own_workers_share_the_cap_on_threads),
        cmocka_unit_test(test_a_replaced_body_lets_a_waiting_group_go),
        cmocka_unit_test(test_callbacks_on_threads_take_no_bodys_place),
        cmocka_unit_test(test_a_thread_is_not_kept_for_a_full_domain),
        cmocka_unit_test(test_a_task_that_needs_thread_and_slot_gets_both_in_the_end),
        cmocka_unit_test(test_a_task_that_needs_thread_and_permit_gets_both_in_the_end),
        cmocka_unit_test(test_waiting_on_the_last_thread_for_one_that_needs_it_is_refused),
        cmocka_unit_test(test_never_more_bodies_than_threads_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
