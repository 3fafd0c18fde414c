/* Bulkhead, concurrency, mutex: SEMANTICS 6.7 and 6.9 (B-).
 * SPDX-License-Identifier: MIT */
#include "support/guard_support.h"

#include <stdatomic.h>
#include <weir/sys/store.h>

/* */
GUARD_TEST(test_ten_of_fifteen_enter_and_all_if_they_wait)
{
    weir_guard *g = guard_of("db", WEIR_BULKHEAD(.limit = 10));
    struct caller c[15];

    for (int i = 0; i < 15; i++)
        c[i] = (struct caller){ .guard = g, .ms = 10 };
    side_by_side(c, 10, 0);
    CHECK_EQ(let_in(c, 10), 10);
    side_by_side(c, 15, 0);
    CHECK_EQ(let_in(c, 15), 10);
    for (int i = 0; i < 15; i++) {
        CHECK(c[i].rc == 0 || c[i].rc == WEIR_EFULL);
        c[i].deadline = WEIR_GUARD_WAIT;
    }
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.wait_ns = 100 * MS), NULL, NULL) == 0);
    side_by_side(c, 15, 0);
    CHECK_EQ(let_in(c, 15), 15);
    CHECK_EQ(figures(g).used, 0);
    CHECK_EQ(figures(g).entered, 35);
    CHECK_EQ(figures(g).left, 35);
    CHECK_EQ(figures(g).refused, 5);
    weir_guard_unref(g);
}

/* */
GUARD_TEST(test_concurrency_refuses_five_of_ten_or_blocks)
{
    weir_guard *g = guard_of("five", WEIR_CONCURRENCY(.limit = 5));
    struct caller c[10];

    for (int i = 0; i < 10; i++)
        c[i] = (struct caller){ .guard = g, .ms = 100 };
    side_by_side(c, 10, 0);
    CHECK_EQ(let_in(c, 10), 5);
    for (int i = 0; i < 10; i++)
        c[i].deadline = WEIR_GUARD_WAIT; /* a concurrency guard waits for ever */
    side_by_side(c, 10, 0);
    CHECK_EQ(let_in(c, 10), 10);
    weir_guard_unref(g);
}

/* and fencing */
GUARD_TEST(test_a_mutex_has_one_holder_and_tokens_that_grow)
{
    weir_guard *g = guard_of("m", WEIR_MUTEX());
    weir_permit a = WEIR_PERMIT, b = WEIR_PERMIT;
    struct caller c[20];
    uint64_t first;

    CHECK(weir_guard_enter(&a, g, WEIR_GUARD_WAIT) == 0);
    CHECK_EQ(weir_guard_enter(&b, g, WEIR_GUARD_WAIT), WEIR_ELOCKED);
    CHECK_EQ(weir_guard_enter_n(&b, g, 2, WEIR_FOREVER), WEIR_EINVAL);
    first = a.token;
    CHECK(weir_guard_leave(&a, 0) == 0);
    CHECK(weir_guard_enter(&b, g, WEIR_GUARD_WAIT) == 0);
    CHECK(b.token > first);
    CHECK(weir_guard_leave(&b, 0) == 0);
    for (int i = 0; i < 20; i++)
        c[i] = (struct caller){ .guard = g, .ms = 10, .deadline = WEIR_FOREVER };
    side_by_side(c, 20, 0);
    CHECK_EQ(let_in(c, 20), 20);
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < i; k++)
            CHECK(c[i].out_ms <= c[k].in_ms || c[k].out_ms <= c[i].in_ms);
    weir_guard_unref(g);
}

/* B-01, B-17 */
GUARD_TEST(test_two_enter_the_third_is_refused_and_each_is_told)
{
    weir_guard *g = guard_of("b", WEIR_BULKHEAD(.limit = 2, .on_event = keep));
    weir_permit p[3] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };
    static const weir_guard_event_type told[] = { WEIR_EVENT_ENTERED, WEIR_EVENT_ENTERED,
                                                  WEIR_EVENT_REFUSED, WEIR_EVENT_LEFT,
                                                  WEIR_EVENT_LEFT,    WEIR_EVENT_ENTERED };

    kept.count = 0;
    CHECK(weir_guard_enter(&p[0], g, 0) == 0);
    CHECK(weir_guard_enter(&p[1], g, 0) == 0);
    CHECK_EQ(weir_guard_enter(&p[2], g, 0), WEIR_EFULL);
    CHECK_EQ(p[2].retry_at, WEIR_FOREVER);
    CHECK(weir_guard_leave(&p[0], 0) == 0);
    CHECK(weir_guard_leave(&p[1], 0) == 0);
    CHECK_EQ(figures(g).available, 2);
    CHECK(weir_guard_enter(&p[2], g, 0) == 0);
    CHECK_EQ(kept.count, 6);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(kept.event[i].type, told[i]);
    CHECK_EQ(kept.event[2].error, WEIR_EFULL);
    CHECK(strcmp(kept.event[2].name, "b") == 0);
    CHECK(weir_guard_release(&p[2]) == 0);
    CHECK_EQ(kept.count, 6); /* a call that was never made is not told of */
    weir_guard_unref(g);
}

/* B-03, B-07 */
GUARD_TEST(test_a_waiter_is_refused_at_its_deadline_exactly)
{
    weir_guard *g = guard_of("one", WEIR_BULKHEAD(.limit = 1, .wait_ns = 50 * MS));
    weir_permit held = WEIR_PERMIT;
    struct caller c[2] = { { .guard = g, .deadline = WEIR_GUARD_WAIT },
                           { .guard = g, .deadline = WEIR_GUARD_WAIT } };

    CHECK(weir_guard_enter(&held, g, 0) == 0);
    side_by_side(c, 2, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(c[i].rc, WEIR_EFULL);
        CHECK_EQ(c[i].in_ms, 50);
    }
    CHECK(weir_guard_leave(&held, 0) == 0);
    CHECK_EQ(figures(g).waiting, 0);
    CHECK_EQ(call_once(g, 0), 0);
    weir_guard_unref(g);
}

struct waiting {
    weir_guard *guard;
    int rc;
    bool cancelled; /* what the task sees after that */
};

static int waits_in_a_task(void **value, void *arg)
{
    struct waiting *w = arg;
    weir_permit p = WEIR_PERMIT;

    (void)value;
    w->rc = weir_guard_enter(&p, w->guard, WEIR_FOREVER);
    w->cancelled = weir_cancelled();
    return w->rc;
}

/* B-04, B-05 */
GUARD_TEST(test_a_cancelled_waiter_says_so_and_the_next_is_not_forgotten)
{
    weir_guard *g = guard_of("one", WEIR_BULKHEAD(.limit = 1));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_permit held = WEIR_PERMIT;
    weir_result result = WEIR_RESULT;
    weir_task *task;
    struct waiting w = { .guard = g };
    struct caller c = { .guard = g, .deadline = WEIR_FOREVER };
    int64_t behind;

    CHECK(weir_guard_enter(&held, g, 0) == 0);
    CHECK(weir_submit_key(&task, ex, "k", waits_in_a_task, &w, NULL) == 0);
    sleep_until(10);
    behind = weir_sim_thread(caller_body, &c, "behind");
    sleep_until(20);
    CHECK_EQ(figures(g).waiting, 2);
    weir_task_cancel(task);
    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0);
    CHECK_EQ(result.outcome, WEIR_CANCELLED);
    sleep_until(21); /* a cancelled task has settled before its body has returned */
    CHECK_EQ(w.rc, WEIR_ECANCELED);
    CHECK(w.cancelled);
    CHECK_EQ(figures(g).waiting, 1);
    CHECK_EQ(figures(g).cancelled, 1);
    CHECK(weir_guard_leave(&held, 0) == 0);
    weir_sim_join(behind);
    CHECK_EQ(c.rc, 0);
    weir_task_unref(task);
    weir_executor_free(ex);
    CHECK_EQ(figures(g).used, 0);
    weir_guard_unref(g);
}

/* B-02, B-06, B-14, R-23 */
GUARD_TEST(test_no_calls_refuses_everything_and_defaults_are_as_noted)
{
    weir_guard *none = guard_of("none", WEIR_BULKHEAD(.limit = WEIR_NO_CALLS));
    weir_guard *usual = guard_of("usual", WEIR_BULKHEAD());
    weir_permit all = WEIR_PERMIT, p = WEIR_PERMIT;

    for (int i = 0; i < 5; i++)
        CHECK_EQ(call_once(none, 0), WEIR_EFULL);
    CHECK_EQ(figures(none).limit, 0);
    CHECK_EQ(figures(usual).limit, 50);
    CHECK_EQ(weir_guard_enter_n(&all, usual, 50, 0), 0);
    CHECK_EQ(weir_guard_enter(&p, usual, WEIR_GUARD_WAIT), WEIR_EFULL);
    CHECK_EQ(weir_now(), at(0)); /* it did not wait */
    CHECK_EQ(weir_guard_leave(&all, 0), 0);
    weir_guard_unref(none);
    weir_guard_unref(usual);
}

/* B-08, B-09, R-25 */
GUARD_TEST(test_settings_change_if_they_are_the_expected_ones)
{
    weir_guard *g = guard_of("c", WEIR_BULKHEAD(.limit = 3, .wait_ns = 5000 * MS));
    weir_message why;

    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.limit = 5), WEIR_BULKHEAD(.limit = 3), NULL) == 0);
    CHECK_EQ(figures(g).limit, 5);
    CHECK_EQ(weir_guard_change(g, WEIR_BULKHEAD(.limit = 9), WEIR_BULKHEAD(.limit = 3), &why),
             WEIR_EALREADY);
    CHECK(strstr(why.text, "expected"));
    CHECK_EQ(figures(g).limit, 5);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.limit = 2), NULL, NULL) == 0);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.limit = 2), NULL, NULL) == 0);
    CHECK_EQ(figures(g).available, 2);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.wait_ns = 3000 * MS),
                            WEIR_BULKHEAD(.wait_ns = 5000 * MS), NULL) == 0);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.wait_ns = 7000 * MS),
                            WEIR_BULKHEAD(.wait_ns = 3000 * MS), NULL) == 0);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.wait_ns = WEIR_NO_WAIT),
                            WEIR_BULKHEAD(.limit = 2, .wait_ns = 7000 * MS), NULL) == 0);
    CHECK_EQ(figures(g).limit, 2);
    CHECK_EQ(weir_guard_change(g, WEIR_BULKHEAD(.limit = 4), WEIR_MUTEX(), NULL), WEIR_EALREADY);
    CHECK_EQ(weir_guard_change(g, WEIR_BULKHEAD(.limit = 4),
                               WEIR_BULKHEAD(.waiters_max = WEIR_NO_WAITERS), NULL),
             WEIR_EALREADY);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.waiters_max = WEIR_NO_WAITERS), NULL, NULL) == 0);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.waiters_max = 7),
                            WEIR_BULKHEAD(.waiters_max = WEIR_NO_WAITERS), NULL) == 0);
    CHECK_EQ(figures(g).limit, 2);
    weir_guard_unref(g);
}

/* B-10 */
GUARD_TEST(test_a_lowered_limit_takes_effect_as_calls_leave)
{
    weir_guard *g = guard_of("c", WEIR_BULKHEAD(.limit = 1));
    weir_permit p[3] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };

    CHECK(weir_guard_enter(&p[0], g, 0) == 0);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.limit = 2), NULL, NULL) == 0);
    CHECK_EQ(figures(g).available, 1);
    CHECK(weir_guard_enter(&p[1], g, 0) == 0);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.limit = 1), NULL, NULL) == 0); /* at once */
    CHECK_EQ(figures(g).limit, 1);
    CHECK_EQ(figures(g).available, -1);
    CHECK(weir_guard_leave(&p[0], 0) == 0);
    CHECK_EQ(weir_guard_enter(&p[2], g, 0), WEIR_EFULL);
    CHECK(weir_guard_leave(&p[1], 0) == 0);
    CHECK(weir_guard_enter(&p[2], g, 0) == 0);
    CHECK(weir_guard_leave(&p[2], 0) == 0);
    weir_guard_unref(g);
}

/* B-11, B-12 */
GUARD_TEST(test_changes_reach_waiters_as_they_should)
{
    weir_guard *g = guard_of("c", WEIR_BULKHEAD(.limit = 1, .wait_ns = 500 * MS));
    weir_permit held = WEIR_PERMIT;
    struct caller old = { .guard = g, .deadline = WEIR_GUARD_WAIT }, newcomer = old;
    int64_t a, b;

    CHECK(weir_guard_enter(&held, g, 0) == 0);
    a = weir_sim_thread(caller_body, &old, "old");
    sleep_until(10);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.wait_ns = WEIR_NO_WAIT), NULL, NULL) == 0);
    b = weir_sim_thread(caller_body, &newcomer, "new");
    weir_sim_join(b);
    CHECK_EQ(newcomer.rc, WEIR_EFULL);
    CHECK_EQ(newcomer.in_ms, 10);
    sleep_until(20);
    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.limit = 2), NULL, NULL) == 0);
    weir_sim_join(a);
    CHECK_EQ(old.rc, 0);
    CHECK_EQ(old.in_ms, 20);
    CHECK(weir_guard_leave(&held, 0) == 0);
    weir_guard_unref(g);
}

static void changes_limit(void *arg)
{
    CHECK(weir_guard_change(arg, WEIR_BULKHEAD(.limit = 7), NULL, NULL) == 0);
}

/* B-13 */
GUARD_TEST(test_of_two_changes_one_is_the_last)
{
    weir_guard *g = guard_of("c", WEIR_BULKHEAD(.limit = 3));
    int64_t other = weir_sim_thread(changes_limit, g, "other");

    CHECK(weir_guard_change(g, WEIR_BULKHEAD(.limit = 4), NULL, NULL) == 0);
    weir_sim_join(other);
    CHECK(figures(g).limit == 4 || figures(g).limit == 7);
    weir_guard_unref(g);
}

/* B-18 */
GUARD_TEST(test_two_callers_of_one_permit)
{
    weir_guard *g = guard_of("one", WEIR_BULKHEAD(.limit = 1, .on_event = keep));
    struct caller c[2] = { { .guard = g }, { .guard = g } };
    int refused;

    side_by_side(c, 2, 0);
    refused = 2 - let_in(c, 2);
    CHECK(refused == 0 || refused == 1);
    CHECK_EQ(kept_of(WEIR_EVENT_REFUSED), refused);
    CHECK_EQ(kept_of(WEIR_EVENT_LEFT), 2 - refused);
    CHECK_EQ(figures(g).available, 1);
    weir_guard_unref(g);
}

/* First come, first served, tasks and threads alike, and no caller overtakes the line. */
GUARD_TEST(test_waiters_are_served_in_the_order_they_came)
{
    weir_guard *g = guard_of("f", WEIR_BULKHEAD(.limit = 2));
    struct caller c[12];

    for (int i = 0; i < 12; i++)
        c[i] = (struct caller){ .guard = g, .ms = 30, .deadline = WEIR_FOREVER };
    side_by_side(c, 12, 1);
    for (int i = 0; i < 12; i++) {
        CHECK_EQ(c[i].rc, 0);
        CHECK_EQ(c[i].order, i + 1);
        CHECK_EQ(c[i].in_ms, i % 2 + i / 2 * 30); /* a permit never lies idle */
    }
    weir_guard_unref(g);
}

/* ---- no herd ------------------------------------------------------------------------------------ */

static int row; /* how many wait */

static void passes_one_permit_on(UNUSED void *arg)
{
    struct caller c[24];
    int64_t thread[24];
    weir_permit held = WEIR_PERMIT;
    weir_guard *g;

    CHECK(weir_store_local(&store) == 0);
    g = guard_of("one", WEIR_BULKHEAD(.limit = 1));
    CHECK(weir_guard_enter(&held, g, 0) == 0);
    for (int i = 0; i < row; i++) {
        c[i] = (struct caller){ .guard = g, .ms = 1, .deadline = WEIR_FOREVER };
        thread[i] = weir_sim_thread(caller_body, &c[i], "caller");
    }
    CHECK(weir_sleep(at(10)) == 0);
    CHECK_EQ(figures(g).waiting, row);
    CHECK(weir_guard_leave(&held, 0) == 0);
    for (int i = 0; i < row; i++)
        weir_sim_join(thread[i]);
    weir_guard_unref(g);
    weir_store_free(store);
}

static uint64_t wakes_of(int waiters)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    row = waiters;
    if (weir_sim_run(&report, NULL, passes_one_permit_on, NULL))
        fail_msg("%s", report.message);
    return report.futex_wakes;
}

/* A permit that goes from one to the next wakes one waiter each time, however many wait. */
static void test_only_the_first_in_line_is_woken(void **state)
{
    (void)state;
    assert_int_equal(wakes_of(24) - wakes_of(8), 16);
}

/* One that wants more than is free holds back those behind it: no caller waits for ever. */
GUARD_TEST(test_a_large_caller_is_not_outrun_by_small_ones)
{
    weir_guard *g = guard_of("f", WEIR_BULKHEAD(.limit = 4));
    struct caller c[4] = { { .guard = g, .ms = 100, .n = 3, .deadline = WEIR_FOREVER },
                           { .guard = g, .ms = 10, .n = 4, .deadline = WEIR_FOREVER },
                           { .guard = g, .ms = 10, .n = 1, .deadline = WEIR_FOREVER },
                           { .guard = g, .ms = 10, .n = 1, .deadline = WEIR_NOW_OR_NEVER } };

    side_by_side(c, 4, 1);
    CHECK_EQ(c[1].in_ms, 100);
    CHECK_EQ(c[2].in_ms, 110);
    CHECK_EQ(c[3].rc, WEIR_EFULL); /* one is free, but others came first */
    weir_guard_unref(g);
}

GUARD_TEST(test_at_most_so_many_wait)
{
    weir_guard *g = guard_of("w", WEIR_BULKHEAD(.limit = 1, .waiters_max = 2));
    struct caller c[5];

    for (int i = 0; i < 5; i++)
        c[i] = (struct caller){ .guard = g, .ms = 100, .deadline = WEIR_FOREVER };
    side_by_side(c, 5, 1);
    CHECK_EQ(let_in(c, 5), 3);
    CHECK_EQ(c[3].rc, WEIR_EFULL);
    CHECK_EQ(c[3].in_ms, 3); /* at once */
    weir_guard_unref(g);
}

/* R-24, T29 */
GUARD_TEST(test_a_name_stands_for_one_guard_and_other_settings_are_told)
{
    weir_guard *a = guard_of("same", WEIR_BULKHEAD(.limit = 3)), *b, *c;
    weir_store *other;
    weir_message why;

    b = guard_of("same", WEIR_BULKHEAD(.limit = 3));
    CHECK(a == b);
    CHECK_EQ(weir_guard_new(&c, store, "same", WEIR_BULKHEAD(.limit = 4), &why), WEIR_EEXIST);
    CHECK(strstr(why.text, "other settings: limit 3, asked for: bulkhead, limit 4"));
    CHECK_EQ(weir_guard_new(&c, store, "same", WEIR_MUTEX(), &why), WEIR_EEXIST);
    CHECK(weir_guard_new(&c, store, "same", NULL, NULL) == 0 && c == a);
    CHECK_EQ(weir_guard_new(&c, store, "none", NULL, &why), WEIR_ENOGUARD);
    CHECK(weir_guard_change(a, WEIR_BULKHEAD(.limit = 9), NULL, NULL) == 0);
    CHECK(guard_of("same", WEIR_BULKHEAD(.limit = 3)) == a); /* as it was made */
    CHECK(guard_of("same", WEIR_BULKHEAD(.limit = 9)) == a); /* as it is */
    CHECK(weir_store_local(&other) == 0);
    CHECK(weir_guard_new(&c, other, "same", WEIR_MUTEX(), NULL) == 0 && c != a);
    weir_guard_unref(c);
    weir_store_free(other);
    for (int i = 0; i < 5; i++)
        weir_guard_unref(a);
}

/* An unbounded set of names: guards that are as good as new are forgotten, others stay. */
GUARD_TEST(test_guards_that_are_not_needed_are_forgotten_when_they_are_whole)
{
    weir_guard *spent = guard_of("spent", WEIR_RATE(.limit = 1, .period_ns = 1000 * MS));
    weir_permit p = WEIR_PERMIT;
    char name[32];

    CHECK(weir_guard_enter(&p, spent, 0) == 0);
    weir_guard_unref(spent);
    for (int i = 0; i < 100; i++) {
        weir_guard *g;
        snprintf(name, sizeof(name), "key %d", i);
        g = guard_of(name, WEIR_BULKHEAD());
        CHECK_EQ(call_once(g, 0), 0);
        weir_guard_unref(g);
    }
    spent = guard_of("spent", WEIR_RATE(.limit = 1, .period_ns = 1000 * MS));
    p = WEIR_PERMIT;
    CHECK_EQ(weir_guard_enter(&p, spent, 0), WEIR_ETOOFAST); /* no burst bought anew */
    CHECK_EQ(p.retry_at, at(1000));
    weir_guard_unref(spent);
}

static int guarded(weir_guard *g, int early)
{
    WEIR_SCOPED_PERMIT(permit);
    int rc = weir_guard_enter(&permit, g, WEIR_NOW_OR_NEVER);

    if (rc)
        return rc;
    if (early)
        return -EIO;
    return weir_guard_leave(&permit, 0);
}

GUARD_TEST(test_return_cannot_leak_a_permit)
{
    weir_guard *g = guard_of("s", WEIR_BULKHEAD(.limit = 1));

    CHECK_EQ(guarded(g, 1), -EIO);
    CHECK_EQ(guarded(g, 1), -EIO);
    CHECK_EQ(guarded(g, 0), 0);
    CHECK_EQ(figures(g).used, 0);
    CHECK_EQ(figures(g).released, 2);
    weir_guard_unref(g);
}

/* T19: a permit leaves once, and a copy is not a permit. */
GUARD_TEST(test_a_permit_leaves_once)
{
    weir_guard *g = guard_of("l", WEIR_BULKHEAD(.limit = 2));
    weir_permit p = WEIR_PERMIT, copy, moved = WEIR_PERMIT;

    CHECK(weir_guard_enter(&p, g, 0) == 0);
    CHECK_EQ(weir_guard_enter(&p, g, 0), WEIR_EINVAL); /* it holds something */
    copy = p;
    CHECK_EQ(weir_guard_leave(&copy, 0), WEIR_EINVAL);
    CHECK_EQ(weir_guard_release(&copy), WEIR_EINVAL);
    CHECK_EQ(figures(g).used, 1);
    CHECK(weir_permit_move(&moved, &p) == 0);
    CHECK_EQ(weir_guard_leave(&p, 0), WEIR_EALREADY);
    CHECK_EQ(weir_permit_move(&p, &p), WEIR_EALREADY);
    CHECK(weir_guard_leave(&moved, 0) == 0);
    CHECK_EQ(weir_guard_leave(&moved, 0), WEIR_EALREADY);
    CHECK_EQ(weir_guard_release(&moved), WEIR_EALREADY);
    CHECK_EQ(weir_guard_leave(NULL, 0), WEIR_EINVAL);
    CHECK_EQ(figures(g).used, 0);
    weir_guard_unref(g);
}

/* B-18: many callers on few names, all kinds of ways in; never too many inside. */
static _Atomic int inside[4];

static void hammers(void *arg)
{
    weir_guard **g = arg;

    for (int i = 0; i < 20; i++) {
        int k = (int)(weir_sim_random() % 4);
        weir_permit p = WEIR_PERMIT;
        weir_time deadline = i % 3 == 0   ? WEIR_NOW_OR_NEVER
                             : i % 3 == 1 ? WEIR_FOREVER
                                          : weir_now() + (int64_t)(weir_sim_random() % 2000);
        if (weir_guard_enter(&p, g[k], deadline))
            continue;
        CHECK(++inside[k] <= k + 1);
        if (i % 2)
            weir_sleep(weir_now() + (int64_t)(weir_sim_random() % 1000));
        inside[k]--;
        CHECK(weir_guard_leave(&p, 0) == 0);
    }
}

/* The word counts calls beside permits. It has room for 2^30 of them before the next call moves them elsewhere; here it is
 * told that it has seen nearly as many. */
GUARD_TEST(test_the_count_of_calls_never_runs_into_the_permits)
{
    const uint64_t nearly = (UINT64_C(1) << 30) - 3;
    weir_guard *g = guard_of("busy", WEIR_BULKHEAD(.limit = 3));
    weir_permit held[4] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };
    weir_cell *cell = weir_guard_cell(g);

    for (int round = 1; round <= 5; round++) {
        uint64_t before = figures(g).entered;

        atomic_fetch_add((_Atomic uint64_t *)cell->ops->word(cell),
                         (nearly - before % (UINT64_C(1) << 30)) * WEIR_WORD_ENTERED);
        before = figures(g).entered;
        for (int i = 0; i < 3; i++)
            CHECK_EQ(weir_guard_enter(&held[i], g, 0), 0);
        CHECK_EQ(weir_guard_enter(&held[3], g, 0), WEIR_EFULL);
        CHECK_EQ(figures(g).used, 3);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(weir_guard_leave(&held[i], 0), 0);
        for (int i = 0; i < 10; i++)
            CHECK_EQ(call_once(g, 0), 0);
        CHECK_EQ(figures(g).used, 0);
        CHECK_EQ(figures(g).entered, before + 13);
        CHECK_EQ(figures(g).left, before + 13);
    }
    CHECK(figures(g).entered > UINT64_C(5) << 30);
    weir_guard_unref(g);
}

/* ---- a hundred threads, ten locks ---------------------------------------------------------------- */

enum { LOCKS = 10, LOCKERS = 100 };

static struct {
    weir_guard *lock[LOCKS];
    _Atomic int inside[LOCKS], held;
    int times;
    weir_time deadline; /* an answer at once, or for ever */
} locks;

static void locks_one(UNUSED void *arg)
{
    for (int i = 0; i < locks.times; i++) {
        int k = (int)(weir_sim_random() % LOCKS);
        weir_permit p = WEIR_PERMIT;
        int rc = weir_guard_enter(&p, locks.lock[k], locks.deadline);

        CHECK(rc == 0 || (rc == WEIR_ELOCKED && locks.deadline == WEIR_NOW_OR_NEVER));
        if (rc)
            continue;
        CHECK_EQ(++locks.inside[k], 1);
        weir_sleep(weir_now() + (int64_t)(weir_sim_random() % 100));
        locks.inside[k]--;
        locks.held++;
        CHECK(weir_guard_leave(&p, 0) == 0);
    }
}

static int lock_side_by_side(int times, weir_time deadline)
{
    int64_t thread[LOCKERS];

    locks.times = times;
    locks.deadline = deadline;
    locks.held = 0;
    for (int i = 0; i < LOCKERS; i++)
        thread[i] = weir_sim_thread(locks_one, NULL, "locker");
    for (int i = 0; i < LOCKERS; i++)
        weir_sim_join(thread[i]);
    return locks.held;
}

static void lock_scenario(UNUSED void *arg)
{
    char name[] = "0";

    CHECK(weir_store_local(&store) == 0);
    for (int k = 0; k < LOCKS; k++, name[0]++)
        locks.lock[k] = guard_of(name, WEIR_MUTEX());
    CHECK(lock_side_by_side(1000, WEIR_NOW_OR_NEVER) >= 1);
    CHECK_EQ(lock_side_by_side(10, WEIR_FOREVER), 1000);
    for (int k = 0; k < LOCKS; k++) {
        CHECK_EQ(figures(locks.lock[k]).used, 0);
        weir_guard_unref(locks.lock[k]);
    }
    weir_store_free(store);
}

/* with their numbers: 100 threads that try 1000 times each; 1000 locks that are waited for. */
static void test_a_hundred_threads_share_ten_locks(void **state)
{
    (void)state;
    explore(3, WEIR_SIM_OPTIONS(.seed = 1), lock_scenario);
}

/* ---- never too many ------------------------------------------------------------------------------ */

static void hammer_scenario(UNUSED void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    int64_t thread[4];
    weir_guard *g[4];

    CHECK(weir_store_local(&store) == 0);
    g[0] = guard_of("0", WEIR_MUTEX());
    for (int k = 1; k < 4; k++)
        g[k] = guard_of(k == 1 ? "1" : k == 2 ? "2" : "3", WEIR_BULKHEAD(.limit = k + 1));
    for (int i = 0; i < 4; i++)
        thread[i] = weir_sim_thread(hammers, g, "hammer");
    for (int i = 0; i < 4; i++)
        CHECK(weir_spawn(rt, hammers, g, NULL) == 0);
    for (int i = 0; i < 4; i++)
        weir_sim_join(thread[i]);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
    for (int k = 0; k < 4; k++) {
        CHECK_EQ(figures(g[k]).used, 0);
        CHECK_EQ(figures(g[k]).waiting, 0);
        weir_guard_unref(g[k]);
    }
    weir_store_free(store);
}

static void test_never_too_many_inside(void **state)
{
    (void)state;
    explore(1500, WEIR_SIM_OPTIONS(.seed = 1), hammer_scenario);
    explore(500, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 400), hammer_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_of_fifteen_enter_and_all_if_they_wait),
        cmocka_unit_test(test_concurrency_refuses_five_of_ten_or_blocks),
        cmocka_unit_test(test_a_mutex_has_one_holder_and_tokens_that_grow),
        cmocka_unit_test(test_two_enter_the_third_is_refused_and_each_is_told),
        cmocka_unit_test(test_a_waiter_is_refused_at_its_deadline_exactly),
        cmocka_unit_test(test_a_cancelled_waiter_says_so_and_the_next_is_not_forgotten),
        cmocka_unit_test(test_no_calls_refuses_everything_and_defaults_are_as_noted),
        cmocka_unit_test(test_settings_change_if_they_are_the_expected_ones),
        cmocka_unit_test(test_a_lowered_limit_takes_effect_as_calls_leave),
        cmocka_unit_test(test_changes_reach_waiters_as_they_should),
        cmocka_unit_test(test_of_two_changes_one_is_the_last),
        cmocka_unit_test(test_two_callers_of_one_permit),
        cmocka_unit_test(test_waiters_are_served_in_the_order_they_came),
        cmocka_unit_test(test_only_the_first_in_line_is_woken),
        cmocka_unit_test(test_a_large_caller_is_not_outrun_by_small_ones),
        cmocka_unit_test(test_at_most_so_many_wait),
        cmocka_unit_test(test_a_name_stands_for_one_guard_and_other_settings_are_told),
        cmocka_unit_test(test_guards_that_are_not_needed_are_forgotten_when_they_are_whole),
        cmocka_unit_test(test_return_cannot_leak_a_permit),
        cmocka_unit_test(test_a_permit_leaves_once),
        cmocka_unit_test(test_the_count_of_calls_never_runs_into_the_permits),
        cmocka_unit_test(test_a_hundred_threads_share_ten_locks),
        cmocka_unit_test(test_never_too_many_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
