/* Guards before groups: tasks wait in the queue, start as the guard allows, and teach it by their outcomes.
 * SPDX-License-Identifier: MIT */
#include "support/guard_support.h"

#include <weir/sys/gate.h>

enum { TASKS = 12 };

static void guard_add(weir_executor *ex, const char *key, weir_guard *g, int flags)
{
    CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, key), g, flags), 0);
}

/* The result of the task, without giving it back. */
static weir_result seen(weir_task *task)
{
    weir_result result = WEIR_RESULT;
    int rc = weir_task_wait(&result, task, WEIR_FOREVER);

    CHECK(rc == 0 || rc == WEIR_EREJECTED);
    return result;
}

static int64_t started_ms(weir_task *task)
{
    return (seen(task).started_at - WEIR_SIM_START) / MS;
}

/* The next token starts the next task, to the nanosecond; nothing but the queue holds those that wait. */
GUARD_TEST(test_tasks_of_a_rate_limited_group_wait_for_the_next_token)
{
    weir_guard *g = guard_of("api", WEIR_RATE(.limit = 3, .period_ns = 100 * MS));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    weir_task *task[TASKS];
    struct body body = { .ms = 0 };

    guard_add(ex, "k", g, 0);
    for (int i = 0; i < TASKS; i++)
        task[i] = submit(ex, "k", &body);
    for (int i = 0; i < TASKS; i++) {
        CHECK_EQ(started_ms(task[i]), i / 3 * 100);
        weir_task_unref(task[i]);
    }
    CHECK_EQ(figures(g).entered, TASKS + figures(g).released);
    weir_executor_free(ex);
    weir_guard_unref(g);
}

GUARD_TEST(test_smooth_rates_and_windows_pace_a_group)
{
    weir_guard *s =
        guard_of("s", WEIR_RATE(.mode = WEIR_SMOOTH, .limit = 10, .period_ns = 1000 * MS));
    weir_guard *f =
        guard_of("f", WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 2, .period_ns = 300 * MS));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    weir_task *task[6], *other[6];
    struct body body = { .ms = 0 };

    guard_add(ex, "s", s, 0);
    guard_add(ex, "f", f, 0);
    for (int i = 0; i < 6; i++) {
        task[i] = submit(ex, "s", &body);
        other[i] = submit(ex, "f", &body);
    }
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(started_ms(task[i]), i * 100);
        CHECK_EQ(started_ms(other[i]), i / 2 * 300);
        weir_task_unref(task[i]);
        weir_task_unref(other[i]);
    }
    weir_executor_free(ex);
    weir_guard_unref(s);
    weir_guard_unref(f);
}

/* One bulkhead for two groups and a plain thread; why names it, and its figures. */
GUARD_TEST(test_groups_and_others_share_a_bulkhead)
{
    weir_guard *g = guard_of("db", WEIR_BULKHEAD(.limit = 2));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 8));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 10 };
    weir_permit p = WEIR_PERMIT;
    weir_task *task[TASKS];
    weir_why why = { .size = sizeof(why) };
    char text[400];

    guard_add(ex, "a", g, 0);
    guard_add(ex, "b", g, 0);
    CHECK(weir_guard_enter_n(&p, g, 2, 0) == 0);
    for (int i = 0; i < TASKS; i++)
        task[i] = submit(ex, i % 2 ? "a" : "b", &body);
    sleep_until(50);
    CHECK_EQ(gauge.ran + gauge.now, 0);
    CHECK(weir_task_why(&why, task[0]) == 0);
    CHECK_EQ(why.reason, WEIR_REASON_GUARDED);
    CHECK(strcmp(why.key, "db") == 0);
    CHECK_EQ(why.limit, 2);
    CHECK(strcmp(why.holders, "callers (2)") == 0);
    CHECK(weir_guard_leave(&p, 0) == 0);
    sleep_until(55); /* two run, of either group or of both */
    CHECK(weir_task_why(&why, task[TASKS - 1]) == 0);
    CHECK(strstr(why.holders, "group \"a\" (") || strstr(why.holders, "group \"b\" ("));
    CHECK(!strstr(why.holders, "callers"));
    CHECK(weir_why_text(text, sizeof(text), &why) > 0);
    CHECK(strstr(text, "(gate \"db\": 2 of 2 in use), held by group"));
    for (int i = 0; i < TASKS; i++) {
        CHECK_EQ(seen(task[i]).outcome, WEIR_DONE);
        weir_task_unref(task[i]);
    }
    CHECK_EQ(gauge.peak, 2);
    CHECK_EQ(weir_now(), at(50 + 10 * TASKS / 2)); /* no permit lay idle */
    weir_executor_free(ex);
    CHECK_EQ(figures(g).used, 0);
    CHECK_EQ(figures(g).waiting, 0);
    weir_guard_unref(g);
}

/* Outcomes are recorded by themselves; an open breaker holds tasks, or rejects them with its reason. */
GUARD_TEST(test_an_open_breaker_holds_or_rejects)
{
    weir_guard *hold = guard_of(
        "hold", WEIR_BREAKER(.window = 4, .failure_percent = 50, .probes = 2, .open_ns = 100 * MS));
    weir_guard *reject = guard_of("reject", WEIR_BREAKER(.window = 4, .failure_percent = 50,
                                                         .probes = 2, .open_ns = 100 * MS));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .rejection = WEIR_DISCARD));
    struct body bad = { .error = -EIO }, good = { .ms = 1 };
    weir_why why = { .size = sizeof(why) };
    weir_task *task, *late;

    guard_add(ex, "h", hold, WEIR_HOLD_WHEN_OPEN);
    guard_add(ex, "r", reject, WEIR_REJECT_WHEN_OPEN);
    for (int i = 0; i < 4; i++) {
        task = submit(ex, "h", &bad);
        CHECK_EQ(seen(task).outcome, WEIR_FAILED);
        weir_task_unref(task);
        task = submit(ex, "r", &bad);
        CHECK_EQ(seen(task).outcome, WEIR_FAILED);
        weir_task_unref(task);
    }
    CHECK_EQ(figures(hold).state, WEIR_OPEN);
    CHECK_EQ(figures(hold).failed, 4);
    task = submit(ex, "r", &good);
    CHECK_EQ(seen(task).outcome, WEIR_REJECTED);
    CHECK_EQ(seen(task).reason, WEIR_REASON_BREAKER_OPEN);
    weir_task_unref(task);
    task = submit(ex, "h", &good);
    late = submit(ex, "h", &good);
    weir_sleep(weir_now() + 10 * MS);
    CHECK(weir_task_why(&why, task) == 0);
    CHECK_EQ(why.reason, WEIR_REASON_BREAKER_OPEN);
    CHECK(strcmp(why.key, "hold") == 0);
    CHECK_EQ(why.earliest, at(100) + 1);
    CHECK_EQ(started_ms(task), 100); /* a probe */
    CHECK_EQ(seen(late).outcome, WEIR_DONE);
    weir_sleep(weir_now() + 1 * MS);
    CHECK_EQ(figures(hold).state, WEIR_CLOSED);
    weir_task_unref(task);
    weir_task_unref(late);
    weir_executor_free(ex);
    weir_guard_unref(hold);
    weir_guard_unref(reject);
}

static weir_call_result teapots_fail(int error, const void *result, void *arg)
{
    CHECK(!result);
    (*(int *)arg)++;
    return error == -418 ? WEIR_FAILURE : error ? WEIR_IGNORE : (weir_call_result)0;
}

/* The judge decides about tasks, too, and before the next one starts: after two failures of four the rest waits. */
GUARD_TEST(test_judges_decide_what_tasks_count_as)
{
    int judged = 0;
    weir_guard *g = guard_of("b", WEIR_BREAKER(.window = 4, .failure_percent = 50, .probes = 2,
                                               .open_ns = 100 * MS, .judge = teapots_fail,
                                               .judge_arg = &judged));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body bad = { .error = -418 }, other = { .error = -EIO }, good = { .ms = 0 };
    struct body *bodies[] = { &bad, &other, &good, &other, &bad, &good, &good, &good };
    weir_task *task[8];

    guard_add(ex, "k", g, WEIR_HOLD_WHEN_OPEN);
    for (int i = 0; i < 8; i++)
        task[i] = submit(ex, "k", bodies[i]);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(started_ms(task[i]), i < 6 ? 0 : 100); /* the sixth is the fourth that counts */
        weir_task_unref(task[i]);
    }
    weir_executor_free(ex);
    CHECK_EQ(judged, 8);
    CHECK_EQ(figures(g).failed, 2);
    CHECK_EQ(figures(g).ignored, 2);
    CHECK_EQ(figures(g).succeeded, 4);
    CHECK_EQ(figures(g).state, WEIR_CLOSED);
    weir_guard_unref(g);
}

/* Names of the events that were kept, in order; forgets them. */
static void expect_kept(const char *wanted)
{
    char names[400] = "";

    for (int i = 0; i < kept.count; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? " " : "",
                 weir_guard_event_name(kept.event[i].type));
    kept.count = 0;
    if (strcmp(names, wanted) != 0)
        weir_sim_fail("told: %s; wanted: %s", names, wanted);
}

/* Listeners hear of tasks as they do of calls, in order, with no lock held: they may ask the guard itself. */
GUARD_TEST(test_events_tell_of_tasks)
{
    weir_guard *g = guard_of("b", WEIR_BREAKER(.window = 2, .failure_percent = 100, .probes = 1,
                                               .open_ns = 100 * MS, .on_event = keep));
    weir_guard *m = guard_of("m", WEIR_BULKHEAD(.limit = 1, .on_event = keep));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .rejection = WEIR_DISCARD));
    struct body bad = { .error = -EIO }, good = { .ms = 1 };
    weir_task *task;

    guard_add(ex, "k", g, WEIR_REJECT_WHEN_OPEN);
    for (int i = 0; i < 2; i++) {
        task = submit(ex, "k", &bad);
        CHECK_EQ(seen(task).outcome, WEIR_FAILED);
        weir_task_unref(task);
    }
    task = submit(ex, "k", &good);
    CHECK_EQ(seen(task).outcome, WEIR_REJECTED);
    weir_task_unref(task);
    sleep_until(50);
    expect_kept("failed failed too_many_failed transition refused");
    sleep_until(150);
    task = submit(ex, "k", &good);
    CHECK_EQ(seen(task).outcome, WEIR_DONE);
    weir_task_unref(task);
    sleep_until(200);
    expect_kept("transition succeeded transition");
    guard_add(ex, "m", m, 0);
    task = submit(ex, "m", &good);
    CHECK_EQ(seen(task).outcome, WEIR_DONE);
    weir_task_unref(task);
    weir_executor_free(ex); /* tells what is left */
    expect_kept("entered left");
    weir_guard_unref(g);
    weir_guard_unref(m);
}

static bool drains(int error, const void *result, void *arg)
{
    (void)result, (void)arg;
    return error == -EBUSY;
}

/* A server that says "too many" costs the rest of the cycle, also if a task heard it. */
GUARD_TEST(test_a_task_may_drain_its_rate)
{
    weir_guard *g =
        guard_of("r", WEIR_RATE(.limit = 10, .period_ns = 100 * MS, .drain_on = drains));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body busy = { .error = -EBUSY };
    weir_task *task;

    guard_add(ex, "k", g, 0);
    task = submit(ex, "k", &busy);
    CHECK_EQ(seen(task).outcome, WEIR_FAILED);
    weir_task_unref(task);
    sleep_until(50);
    CHECK_EQ(figures(g).available, 0);
    weir_executor_free(ex);
    weir_guard_unref(g);
}

/* A group whose tasks were all cancelled does not keep others from what it waited for. */
GUARD_TEST(test_a_group_without_tasks_keeps_no_caller_waiting)
{
    weir_guard *g = guard_of("m", WEIR_MUTEX());
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 1 };
    struct caller c = { .guard = g, .deadline = WEIR_FOREVER };
    weir_permit p = WEIR_PERMIT;
    weir_task *task;
    int64_t thread;

    guard_add(ex, "k", g, 0);
    CHECK(weir_guard_enter(&p, g, 0) == 0);
    task = submit(ex, "k", &body);
    sleep_until(5);
    thread = weir_sim_thread(caller_body, &c, "behind");
    sleep_until(10);
    weir_task_cancel(task);
    sleep_until(15);
    CHECK(weir_guard_leave(&p, 0) == 0);
    weir_sim_join(thread);
    CHECK_EQ(c.rc, 0);
    CHECK_EQ(c.in_ms, 15);
    weir_task_unref(task);
    weir_executor_free(ex);
    weir_guard_unref(g);
}

GUARD_TEST(test_a_guard_can_be_taken_away_again)
{
    weir_guard *g = guard_of("none", WEIR_BULKHEAD(.limit = WEIR_NO_CALLS));
    weir_guard *budget = guard_of("budget", WEIR_BUDGET());
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 1 };
    weir_gate *gate = NULL;
    weir_task *task;

    CHECK_EQ(weir_group_guard_add(&gate, group_of(ex, "k"), g, 0), 0);
    CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, "k"), budget, 0), WEIR_EINVAL);
    CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, "k"), g, 8), WEIR_EINVAL);
    CHECK_EQ(weir_group_guard_add(NULL, NULL, g, 0), WEIR_EINVAL);
    task = submit(ex, "k", &body);
    sleep_until(10);
    CHECK(!weir_task_done(task));
    weir_gate_remove(gate);
    CHECK_EQ(started_ms(task), 10);
    CHECK_EQ(figures(g).waiting, 0);
    weir_task_unref(task);
    weir_executor_free(ex);
    weir_guard_unref(g);
    weir_guard_unref(budget);
}

static int nothing(void **value, void *arg)
{
    (void)value, (void)arg;
    return 0;
}

/* Tasks without handles follow each other on one permit; each is a call that entered and left, also when their groups are gone. */
GUARD_TEST(test_tasks_that_follow_each_other_are_calls)
{
    weir_guard *g = guard_of("some", WEIR_BULKHEAD(.limit = 3));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    const char *const key[] = { "a", "b" };
    weir_gate *gate = NULL;

    CHECK_EQ(weir_group_guard_add(&gate, group_of(ex, "a"), g, 0), 0);
    guard_add(ex, "b", g, 0);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(weir_submit_key(NULL, ex, key[i % 2], nothing, NULL, NULL), 0);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK_EQ(figures(g).entered, 200 + figures(g).released);
    CHECK_EQ(figures(g).left, 200);
    weir_gate_remove(gate);
    CHECK_EQ(figures(g).left, 200);
    weir_executor_free(ex);
    CHECK_EQ(figures(g).entered, 200 + figures(g).released);
    CHECK_EQ(figures(g).left, 200);
    weir_guard_unref(g);
}

static int sleep_a_little(void **value, void *arg)
{
    (void)value, (void)arg;
    return weir_sleep(weir_in_us(50));
}

static void enter_one_by_one(void *guards_arg)
{
    weir_guard **g = guards_arg;

    for (int i = 0; i < 20; i++) {
        weir_permit p = WEIR_PERMIT;
        CHECK_EQ(weir_guard_enter(&p, g[i % 2], WEIR_FOREVER), 0);
        weir_sleep(weir_in_us(30));
        weir_guard_leave(&p, 0);
    }
}

/* A group in two lines, first in neither, would keep another one waiting that is in the same lines, and that one it. */
GUARD_TEST(test_groups_with_the_same_guards_in_another_order_do_not_wait_for_each_other)
{
    weir_guard *g[2] = { guard_of("b0", WEIR_BULKHEAD(.limit = 2)),
                         guard_of("b1", WEIR_BULKHEAD(.limit = 2)) };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT));
    const char *const key[] = { "a", "b" };
    int64_t thread[2];

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++)
            guard_add(ex, key[k], g[i ^ k], 0);
    for (int i = 0; i < 2; i++)
        thread[i] = weir_sim_thread(enter_one_by_one, g, "caller");
    for (int i = 0; i < 80; i++)
        CHECK_EQ(weir_submit_key(NULL, ex, key[i % 2], sleep_a_little, NULL, NULL), 0);
    for (int i = 0; i < 2; i++)
        weir_sim_join(thread[i]);
    CHECK_EQ(weir_executor_drain(ex, weir_in_s(60)), 0);
    weir_executor_free(ex);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(figures(g[i]).used, 0);
        CHECK_EQ(figures(g[i]).waiting, 0);
        weir_guard_unref(g[i]);
    }
}

/* A rate keeps no line, and a group would sleep until the time that it was told first. */
GUARD_TEST(test_a_group_behind_a_rate_hears_of_a_change_and_of_a_permit_that_comes_back)
{
    weir_guard *g = guard_of("slow", WEIR_RATE(.limit = 1, .period_ns = 60000 * MS));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    struct body body = { .ms = 0 };
    weir_permit p = WEIR_PERMIT;
    weir_task *task;

    guard_add(ex, "k", g, 0);
    CHECK_EQ(weir_guard_enter(&p, g, 0), 0);
    task = submit(ex, "k", &body);
    sleep_until(10);
    CHECK_EQ(weir_guard_release(&p), 0);
    CHECK_EQ(started_ms(task), 10);
    weir_task_unref(task);
    task = submit(ex, "k", &body);
    sleep_until(20);
    CHECK_EQ(weir_guard_change(g, WEIR_RATE(.limit = 1000, .period_ns = MS), NULL, NULL), 0);
    CHECK(started_ms(task) <= 21);
    weir_task_unref(task);
    weir_executor_free(ex);
    weir_guard_unref(g);
}

struct asked {
    weir_task *task;
    bool over;
};

static void ask_why(void *asked_arg)
{
    struct asked *asked = asked_arg;

    while (!asked->over) {
        weir_why why = { .size = sizeof(why) };
        CHECK_EQ(weir_task_why(&why, asked->task), 0);
        weir_sim_busy(1);
    }
}

/* Asked just when a permit comes back, but before the first in line is told, the gate must not take that for its turn. */
GUARD_TEST(test_why_does_not_make_a_group_miss_its_turn)
{
    weir_guard *g = guard_of("one", WEIR_BULKHEAD(.limit = 1));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    struct body body = { .ms = 0 };

    guard_add(ex, "k", g, 0);
    for (int i = 0; i < 20; i++) {
        weir_permit p = WEIR_PERMIT;
        struct asked asked = { .over = false };
        int64_t thread;
        CHECK_EQ(weir_guard_enter(&p, g, weir_in_s(10)), 0); /* the group may be in line yet */
        asked.task = submit(ex, "k", &body);
        sleep_until(weir_now() / MS - WEIR_SIM_START / MS + 1);
        thread = weir_sim_thread(ask_why, &asked, "why");
        weir_sim_busy(weir_sim_random() % 20);
        weir_guard_leave(&p, 0);
        CHECK_EQ(weir_task_wait(NULL, asked.task, weir_in_s(10)), 0);
        asked.over = true;
        weir_sim_join(thread);
        weir_task_unref(asked.task);
    }
    weir_executor_free(ex);
    weir_guard_unref(g);
}

/* Nine groups of three domains, one of which has a worker of its own: a group that is called and comes for its permit finds
 * others in line that came after it. If it went to the end of the line for them, none of them would ever start. */
GUARD_TEST(test_a_group_that_was_called_keeps_its_turn_in_line)
{
    static const char *const key[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
    weir_group_policy groups[9] = { { .key = NULL } };
    weir_domain_policy domains[] = { { .name = "A", .slots = 2, .workers = 1 },
                                     { .name = "B", .slots = 2 } };
    weir_guard *g = guard_of("b", WEIR_BULKHEAD(.limit = 2));
    weir_executor *ex;

    for (int k = 0; k < 9; k++)
        groups[k] = (weir_group_policy){ .key = key[k],
                                         .limit = k % 4 ? 1 : WEIR_NO_LIMIT,
                                         .domain = k % 3 < 2 ? domains[k % 3].name : NULL,
                                         .weight = 1 + k % 2 };
    ex = new_executor(WEIR_POLICY(.workers = 3, .groups = groups, .group_count = 9,
                                  .domains = domains, .domain_count = 2, .slots = 7));
    for (int k = 0; k < 9; k++)
        guard_add(ex, key[k], g, 0);
    for (int i = 0; i < 270; i++)
        CHECK_EQ(
            weir_submit_key(NULL, ex, key[i % 9], i / 9 % 6 ? nothing : sleep_a_little, NULL, NULL),
            0);
    CHECK_EQ(weir_executor_drain(ex, weir_in_s(60)), 0);
    CHECK_EQ(figures(g).left, 270);
    CHECK_EQ(figures(g).entered, 270 + figures(g).released);
    weir_executor_free(ex);
    weir_guard_unref(g);
}

/* Tasks that it let in run on, but it does not hear of their ends any more: what they had is free at once. */
static void permits_come_back(const weir_guard_options *opt)
{
    weir_guard *g = guard_of("one", opt);
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 20 };
    weir_gate *gate = NULL;
    weir_task *task;

    CHECK_EQ(weir_group_guard_add(&gate, group_of(ex, "k"), g, 0), 0);
    task = submit(ex, "k", &body);
    CHECK(weir_sleep(weir_now() + 5 * MS) == 0);
    CHECK_EQ(call_once(g, 0), opt->kind == WEIR_GUARD_MUTEX ? WEIR_ELOCKED : WEIR_EFULL);
    weir_gate_remove(gate);
    CHECK_EQ(figures(g).used, 0);
    CHECK_EQ(call_once(g, 0), 0);
    CHECK(!weir_task_done(task));
    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    CHECK_EQ(figures(g).used, 0);
    weir_task_unref(task);
    weir_executor_free(ex);
    weir_guard_unref(g);
}

GUARD_TEST(test_permits_of_running_tasks_come_back_when_a_guard_is_taken_away)
{
    permits_come_back(WEIR_BULKHEAD(.limit = 1));
    permits_come_back(WEIR_BULKHEAD(.limit = 1, .on_event = keep));
    permits_come_back(WEIR_ADAPTIVE(.limit = 1, .limit_max = 1));
    permits_come_back(WEIR_MUTEX());
}

struct adding {
    weir_executor *ex;
    weir_guard *later;
    int ran;
};

static int adds_a_guard(void **value, void *arg)
{
    struct adding *a = arg;

    (void)value;
    if (++a->ran == 2) /* in the middle of a turn, for which others have granted more starts */
        CHECK_EQ(weir_group_guard_add(NULL, group_of(a->ex, "k"), a->later, 0), 0);
    return 0;
}

GUARD_TEST(test_a_guard_that_comes_in_the_middle_of_a_turn_gets_its_permits_back)
{
    weir_guard *first = guard_of("first", WEIR_RATE(.limit = 1000, .on_event = keep));
    struct adding a = { .ex = new_executor(WEIR_POLICY(.workers = 1)),
                        .later = guard_of("later", WEIR_BULKHEAD(.limit = 3)) };

    CHECK_EQ(weir_group_guard_add(NULL, group_of(a.ex, "k"), first, 0), 0);
    weir_group_pause(group_of(a.ex, "k"));
    for (int i = 0; i < 12; i++)
        CHECK(weir_submit_key(NULL, a.ex, "k", adds_a_guard, &a, NULL) == 0);
    weir_group_resume(group_of(a.ex, "k"));
    CHECK(weir_executor_drain(a.ex, WEIR_FOREVER) == 0);
    CHECK_EQ(a.ran, 12);
    CHECK_EQ(figures(a.later).used, 0);
    CHECK_EQ(figures(first).available, 1000 - 12);
    weir_executor_free(a.ex);
    CHECK_EQ(figures(a.later).used, 0);
    weir_guard_unref(a.later);
    weir_guard_unref(first);
}

/* Several kinds before several groups, tasks that fail, are cancelled, and plain callers beside: books add up. */
static void mixed(UNUSED void *arg)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));
    struct gauge gauge = { 0 };
    struct body body[3] = { { .gauge = &gauge, .ms = 2 }, { .error = -EIO }, { .gauge = &gauge } };
    static const char *const key[] = { "a", "b", "c" };
    weir_guard *three, *rate, *breaker, *adaptive;
    weir_task *task[40];
    struct caller c[4];

    CHECK(weir_store_local(&store) == 0);
    three = guard_of("three", WEIR_BULKHEAD(.limit = 3));
    rate = guard_of("rate", WEIR_RATE(.limit = 5, .period_ns = 3 * MS));
    breaker =
        guard_of("breaker", WEIR_BREAKER(.window = 10, .failure_percent = 90, .open_ns = 2 * MS));
    adaptive = guard_of("adaptive", WEIR_ADAPTIVE(.mode = WEIR_AIMD, .limit = 4));
    for (int i = 0; i < 3; i++)
        guard_add(ex, key[i], three, 0);
    guard_add(ex, "a", rate, 0);
    guard_add(ex, "b", breaker, 0);
    guard_add(ex, "c", adaptive, 0);
    for (int i = 0; i < 40; i++)
        task[i] = submit(ex, key[weir_sim_random() % 3], &body[weir_sim_random() % 3]);
    for (int i = 0; i < 4; i++)
        c[i] = (struct caller){ .guard = three, .ms = 3, .deadline = WEIR_FOREVER };
    side_by_side(c, 4, 1);
    for (int i = 0; i < 40; i += 7)
        weir_task_cancel(task[i]);
    for (int i = 0; i < 40; i++) {
        weir_result result = WEIR_RESULT;
        CHECK(weir_task_wait(&result, task[i], WEIR_FOREVER) == 0);
        weir_task_unref(task[i]);
    }
    CHECK_EQ(let_in(c, 4), 4);
    CHECK(gauge.peak <= 3);
    weir_executor_free(ex);
    CHECK_EQ(figures(three).used, 0);
    CHECK_EQ(figures(adaptive).used, 0);
    CHECK_EQ(figures(three).waiting, 0);
    weir_guard_unref(three);
    weir_guard_unref(rate);
    weir_guard_unref(breaker);
    weir_guard_unref(adaptive);
    weir_store_free(store);
}

static void test_books_add_up_in_any_mixture(void **state)
{
    (void)state;
    explore(400, WEIR_SIM_OPTIONS(.seed = 1), mixed);
    explore(100, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 200), mixed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_of_a_rate_limited_group_wait_for_the_next_token),
        cmocka_unit_test(test_smooth_rates_and_windows_pace_a_group),
        cmocka_unit_test(test_groups_and_others_share_a_bulkhead),
        cmocka_unit_test(test_an_open_breaker_holds_or_rejects),
        cmocka_unit_test(test_judges_decide_what_tasks_count_as),
        cmocka_unit_test(test_events_tell_of_tasks),
        cmocka_unit_test(test_a_task_may_drain_its_rate),
        cmocka_unit_test(test_a_group_without_tasks_keeps_no_caller_waiting),
        cmocka_unit_test(test_a_guard_can_be_taken_away_again),
        cmocka_unit_test(test_tasks_that_follow_each_other_are_calls),
        cmocka_unit_test(
            test_groups_with_the_same_guards_in_another_order_do_not_wait_for_each_other),
        cmocka_unit_test(test_why_does_not_make_a_group_miss_its_turn),
        cmocka_unit_test(
            test_a_group_behind_a_rate_hears_of_a_change_and_of_a_permit_that_comes_back),
        cmocka_unit_test(test_a_group_that_was_called_keeps_its_turn_in_line),
        cmocka_unit_test(test_permits_of_running_tasks_come_back_when_a_guard_is_taken_away),
        cmocka_unit_test(test_a_guard_that_comes_in_the_middle_of_a_turn_gets_its_permits_back),
        cmocka_unit_test(test_books_add_up_in_any_mixture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
