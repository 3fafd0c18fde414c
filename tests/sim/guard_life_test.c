/* Guards whose users go: references given back while callers wait, groups that are evicted while their tasks wait or run.
 * SPDX-License-Identifier: MIT */
#include "support/guard_support.h"

/* The result of the task; the handle is given back. */
static weir_result ends(weir_task *task, weir_outcome outcome)
{
    weir_result result = result_of(task);

    CHECK_EQ(result.outcome, outcome);
    return result;
}

/* ---- callers that wait keep the guard ------------------------------------------------------------- */

static int64_t wait_in_a_thread(struct caller *c)
{
    int64_t thread = weir_sim_thread(caller_body, c, "waits");

    sleep_until(10);
    CHECK_EQ(figures(c->guard).waiting, 1);
    return thread;
}

GUARD_TEST(test_a_waiter_of_a_guard_without_references_is_refused_at_its_deadline)
{
    weir_guard *g = guard_of("none", WEIR_BULKHEAD(.limit = WEIR_NO_CALLS));
    struct caller c = { .guard = g, .deadline = at(50) };
    int64_t thread = wait_in_a_thread(&c);

    weir_guard_unref(g);
    weir_sim_join(thread);
    CHECK_EQ(c.rc, WEIR_EFULL);
    CHECK_EQ(c.in_ms, 50);
}

GUARD_TEST(test_a_guard_that_is_taken_up_again_has_its_waiters)
{
    const weir_guard_options *opt = WEIR_BULKHEAD(.limit = WEIR_NO_CALLS);
    weir_guard *g = guard_of("none", opt), *again;
    struct caller c = { .guard = g, .deadline = WEIR_FOREVER };
    int64_t thread = wait_in_a_thread(&c);

    weir_guard_unref(g);
    sleep_until(20);
    again = guard_of("none", opt);
    CHECK_EQ(figures(again).waiting, 1);
    CHECK(weir_guard_change(again, WEIR_BULKHEAD(.limit = 1), NULL, NULL) == 0);
    weir_guard_unref(again);
    weir_sim_join(thread);
    CHECK_EQ(c.rc, 0);
    CHECK_EQ(c.in_ms, 20);
}

/* All that the table of guards has room for at first, each with something to remember for a while. */
GUARD_TEST(test_a_guard_is_found_though_it_came_when_all_others_went)
{
    const weir_guard_options *opt = WEIR_RATE(.limit = 2, .period_ns = 10 * MS);
    weir_guard *newest, *again;

    for (int i = 0; i < 16; i++) {
        weir_permit p = WEIR_PERMIT;
        char name[8];
        weir_guard *g;
        snprintf(name, sizeof(name), "r%d", i);
        g = guard_of(name, opt);
        CHECK(weir_guard_enter(&p, g, weir_now()) == 0);
        weir_guard_leave(&p, 0);
        weir_guard_unref(g);
    }
    sleep_until(100); /* they are whole again, and go when the next one comes */
    newest = guard_of("newest", opt);
    again = guard_of("newest", opt);
    CHECK(newest == again);
    weir_guard_unref(again);
    weir_guard_unref(newest);
}

/* The holder's permit, the last reference and the waiter: whatever goes first. */
GUARD_TEST(test_a_permit_is_handed_on_though_no_reference_is_left)
{
    weir_guard *g = guard_of("m", WEIR_MUTEX());
    struct caller c = { .guard = g, .deadline = WEIR_FOREVER, .ms = 5 };
    weir_permit p = WEIR_PERMIT;
    int64_t thread;

    CHECK_EQ(weir_guard_enter(&p, g, 0), 0);
    thread = wait_in_a_thread(&c);
    weir_guard_unref(g);
    sleep_until(30);
    CHECK_EQ(weir_guard_leave(&p, 0), 0);
    weir_sim_join(thread);
    CHECK_EQ(c.rc, 0);
    CHECK_EQ(c.in_ms, 30);
}

/* In the very moment at which the waiter is to enter there is nothing left for which the guard had to be kept but the waiter. */
static void unref_at(weir_guard *g, struct caller *c, int64_t ms)
{
    int64_t thread = wait_in_a_thread(c);

    sleep_until(ms);
    weir_guard_unref(g);
    weir_sim_join(thread);
    CHECK_EQ(c->rc, 0);
    CHECK_EQ(c->in_ms, 100);
}

GUARD_TEST(test_a_waiter_enters_in_the_moment_in_which_the_last_reference_goes)
{
    weir_guard *exact =
        guard_of("exact", WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 1, .period_ns = 100 * MS));

    CHECK_EQ(call_once(exact, 0), 0);
    unref_at(exact, &(struct caller){ .guard = exact, .deadline = WEIR_FOREVER }, 100);
}

GUARD_TEST(test_a_reservation_outlives_the_last_reference)
{
    weir_guard *rate = guard_of("rate", WEIR_RATE(.limit = 1, .period_ns = 100 * MS));

    CHECK_EQ(call_once(rate, 0), 0);
    unref_at(rate, &(struct caller){ .guard = rate, .deadline = WEIR_FOREVER }, 50);
}

/* It is closed and empty from then on, and the waiter has yet to wake up. */
GUARD_TEST(test_a_waiter_of_a_breaker_outlives_its_reset_and_the_last_reference)
{
    weir_guard *g =
        guard_of("b", WEIR_BREAKER(.window = 2, .failure_percent = 50, .open_ns = 1000 * MS));
    struct caller c = { .guard = g, .deadline = WEIR_FOREVER };
    int64_t thread;

    calls(g, "FF");
    thread = wait_in_a_thread(&c);
    sleep_until(100);
    CHECK_EQ(weir_guard_reset(g), 0);
    weir_guard_unref(g);
    weir_sim_join(thread);
    CHECK_EQ(c.rc, 0);
    CHECK_EQ(c.in_ms, 100);
}

/* ---- and so do those that have entered by then, until they leave --------------------------------------- */

/* So many guards come and go that all that can be forgotten are. */
static void make_many(void)
{
    weir_guard *many[64];
    char name[24];

    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "many-%d", i);
        many[i] = guard_of(name, WEIR_BULKHEAD());
    }
    for (int i = 0; i < 64; i++)
        weir_guard_unref(many[i]);
}

/* The last reference goes at 50 ms, the waiter enters at 100 ms and leaves at 1100 ms; at 1000 ms nothing else is left for
 * which the guard had to be kept. A name is found only if it was. */
static void keeps_it(const char *name, struct caller *c)
{
    int64_t thread = wait_in_a_thread(c);
    weir_guard *found;

    sleep_until(50);
    weir_guard_unref(c->guard);
    sleep_until(1000);
    make_many();
    CHECK_EQ(weir_guard_new(&found, store, name, NULL, NULL), 0);
    CHECK(found == c->guard);
    weir_sim_join(thread);
    CHECK_EQ(c->rc, 0);
    CHECK_EQ(c->in_ms, 100);
    CHECK_EQ(c->out_ms, 1100);
    weir_guard_unref(found);
    CHECK_EQ(weir_guard_new(&found, store, name, NULL, NULL), WEIR_ENOGUARD); /* and no longer */
}

GUARD_TEST(test_a_call_that_waited_for_a_rate_may_leave_though_no_reference_is_left)
{
    weir_guard *g = guard_of("rate", WEIR_RATE(.limit = 1, .period_ns = 100 * MS));

    CHECK_EQ(call_once(g, 0), 0);
    keeps_it("rate", &(struct caller){ .guard = g, .deadline = WEIR_FOREVER, .ms = 1000 });
}

GUARD_TEST(test_a_call_that_waited_for_a_window_may_leave_though_no_reference_is_left)
{
    weir_guard *g =
        guard_of("exact", WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 1, .period_ns = 100 * MS));

    CHECK_EQ(call_once(g, 0), 0);
    keeps_it("exact", &(struct caller){ .guard = g, .deadline = WEIR_FOREVER, .ms = 1000 });
}

struct reset {
    const char *name;
    int64_t at_ms;
};

static void reset_later(void *arg)
{
    const struct reset *reset = arg;
    weir_guard *g;

    sleep_until(reset->at_ms);
    g = guard_of(reset->name, NULL);
    CHECK_EQ(weir_guard_reset(g), 0);
    weir_guard_unref(g);
}

/* An operator with only its name closes it meanwhile. */
GUARD_TEST(test_a_call_that_waited_for_a_breaker_may_leave_though_no_reference_is_left)
{
    weir_guard *g = guard_of("breaker", WEIR_BREAKER(.window = 2, .failure_percent = 50));
    struct reset reset = { "breaker", 500 };
    int64_t operator;

    calls(g, "FF");
    CHECK_EQ(weir_guard_set_state(g, WEIR_OPEN, at(100) - 1, WEIR_OPEN, NULL), 0);
    operator= weir_sim_thread(reset_later, &reset, "operator");
    keeps_it("breaker", &(struct caller){ .guard = g, .deadline = WEIR_FOREVER, .ms = 1000 });
    weir_sim_join(operator);
}

static void reset_and_part(void *arg)
{
    sleep_until(100);
    CHECK_EQ(weir_guard_reset(arg), 0);
    weir_guard_unref(arg);
}

/* A caller that gives the last reference back cannot know whether the waiter has entered by then. */
GUARD_TEST(test_a_waiter_may_leave_if_it_entered_just_before_the_last_reference_went)
{
    weir_guard *g = guard_of("breaker", WEIR_BREAKER(.window = 2, .failure_percent = 50));
    struct caller c = { .guard = g, .deadline = WEIR_FOREVER, .ms = 5 };
    int64_t thread, other;
    weir_guard *found;

    calls(g, "FF");
    thread = wait_in_a_thread(&c);
    other = weir_sim_thread(reset_and_part, weir_guard_ref(g), "other");
    sleep_until(102);
    weir_guard_unref(g);
    weir_sim_join(other);
    weir_sim_join(thread);
    CHECK_EQ(c.rc, 0);
    CHECK_EQ(c.in_ms, 100);
    make_many();
    CHECK_EQ(weir_guard_new(&found, store, "breaker", NULL, NULL), WEIR_ENOGUARD);
}

/* The same with a permit that goes to another variable, and with one that is given back unused. */
static void moves_and_releases(void *arg)
{
    struct caller *c = arg;
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT, copy;

    c->rc = weir_guard_enter(&p, c->guard, WEIR_FOREVER);
    sleep_until(200);
    CHECK_EQ(weir_guard_enter(&p, c->guard, 0), WEIR_EINVAL); /* it holds something */
    copy = p;
    CHECK_EQ(weir_guard_leave(&copy, 0), WEIR_EINVAL);
    CHECK_EQ(weir_permit_move(&q, &p), 0);
    CHECK_EQ(weir_guard_leave(&p, 0), WEIR_EALREADY);
    make_many();
    CHECK_EQ(c->n ? weir_guard_release(&q) : weir_guard_leave_with(&q, 0, NULL), 0);
    CHECK_EQ(weir_guard_leave(&q, 0), WEIR_EALREADY);
    CHECK_EQ(weir_guard_release(&q), WEIR_EALREADY);
}

GUARD_TEST(test_a_permit_of_a_waiter_is_moved_and_released_though_no_reference_is_left)
{
    for (int i = 0; i < 2; i++) {
        weir_guard *g = guard_of("m", WEIR_MUTEX()), *found;
        struct caller c = { .guard = g, .n = i };
        weir_permit held = WEIR_PERMIT;
        int64_t thread;

        CHECK_EQ(weir_guard_enter(&held, g, 0), 0);
        thread = weir_sim_thread(moves_and_releases, &c, "waits");
        while (figures(g).waiting == 0)
            CHECK(weir_sleep(weir_now() + MS) == 0);
        weir_guard_unref(g);
        CHECK_EQ(weir_guard_leave(&held, 0), 0);
        weir_sim_join(thread);
        CHECK_EQ(c.rc, 0);
        CHECK_EQ(weir_guard_new(&found, store, "m", NULL, NULL), 0);
        CHECK_EQ(figures(found).used, 0);
        CHECK_EQ(figures(found).released, i);
        weir_guard_unref(found);
        CHECK_EQ(weir_guard_new(&found, store, "m", NULL, NULL), WEIR_ENOGUARD);
    }
}

struct both {
    weir_guard *guard[2];
    int rc;
    int64_t in_ms;
};

static void enter_both(void *arg)
{
    struct both *b = arg;
    weir_permit permit[2] = { WEIR_PERMIT, WEIR_PERMIT };

    b->rc = weir_guards_enter(permit, b->guard, 2, at(100));
    b->in_ms = (weir_now() - WEIR_SIM_START) / MS;
    weir_guards_leave(permit, 2, 0);
}

/* It stands in the line of one of them, and will look at both. */
GUARD_TEST(test_a_caller_of_several_keeps_them_all)
{
    struct both b = { .guard = { guard_of("none", WEIR_BULKHEAD(.limit = WEIR_NO_CALLS)),
                                 guard_of("free", WEIR_BULKHEAD(.limit = 1)) } };
    int64_t thread = weir_sim_thread(enter_both, &b, "both");

    sleep_until(10);
    CHECK_EQ(figures(b.guard[0]).waiting, 1);
    weir_guard_unref(b.guard[1]);
    weir_guard_unref(b.guard[0]);
    weir_sim_join(thread);
    CHECK_EQ(b.rc, WEIR_EFULL);
    CHECK_EQ(b.in_ms, 100);
}

GUARD_TEST(test_a_group_keeps_the_guard_it_waits_for)
{
    weir_guard *g = guard_of("m", WEIR_MUTEX());
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .ms = 1 };
    weir_permit p = WEIR_PERMIT;
    weir_task *task;

    CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, "k"), g, 0), 0);
    CHECK_EQ(weir_guard_enter(&p, g, 0), 0);
    weir_guard_unref(g);
    task = submit(ex, "k", &body);
    sleep_until(30);
    CHECK_EQ(weir_guard_leave(&p, 0), 0);
    CHECK_EQ(ends(task, WEIR_DONE).started_at, at(30));
    weir_executor_free(ex);
}

/* ---- groups that are evicted ---------------------------------------------------------------------- */

/* One permit is a caller's, one a task's that runs until 100 ms; a second task of the group stands in line, and behind it
 * a caller. */
struct eviction {
    weir_guard *guard;
    weir_executor *ex;
    struct body body;
    weir_permit permit;
    weir_task *running, *waiting;
    struct caller behind;
    int64_t thread;
};

static void eviction_begin(struct eviction *e, const weir_guard_options *opt)
{
    *e = (struct eviction){ .guard = guard_of("two", opt), .body = { .until_ms = 100 } };
    e->ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .rejection = WEIR_DISCARD));
    e->behind = (struct caller){ .guard = e->guard, .deadline = WEIR_FOREVER };
    CHECK_EQ(weir_group_guard_add(NULL, group_of(e->ex, "k"), e->guard, 0), 0);
    CHECK_EQ(weir_guard_enter(&e->permit, e->guard, 0), 0);
    e->running = submit(e->ex, "k", &e->body);
    sleep_until(5);
    e->waiting = submit(e->ex, "k", &e->body);
    sleep_until(10);
    e->thread = weir_sim_thread(caller_body, &e->behind, "behind");
    sleep_until(15);
    CHECK_EQ(figures(e->guard).used, 2);
    CHECK_EQ(figures(e->guard).waiting, 2);
}

static void eviction_end(struct eviction *e)
{
    weir_executor_free(e->ex);
    CHECK_EQ(figures(e->guard).used, 0);
    CHECK_EQ(figures(e->guard).waiting, 0);
    weir_guard_unref(e->guard);
}

/* Tasks that wait are rejected at once; the one behind them enters as soon as a permit is there; the one that runs gives its
 * permit back when it ends. */
GUARD_TEST(test_an_evicted_group_keeps_no_caller_waiting_and_its_permits_until_its_tasks_end)
{
    struct eviction e;

    eviction_begin(&e, WEIR_BULKHEAD(.limit = 2));
    sleep_until(20);
    CHECK_EQ(weir_group_evict(e.ex, "k", 0), 0);
    check_rejected(e.waiting, WEIR_REASON_EVICTED);
    sleep_until(30);
    CHECK_EQ(figures(e.guard).used, 2);
    CHECK_EQ(weir_guard_leave(&e.permit, 0), 0);
    weir_sim_join(e.thread);
    CHECK_EQ(e.behind.rc, 0);
    CHECK_EQ(e.behind.in_ms, 30);
    CHECK_EQ(figures(e.guard).used, 1);
    CHECK_EQ(ends(e.running, WEIR_DONE).ended_at, at(100));
    CHECK_EQ(figures(e.guard).used, 0);
    eviction_end(&e);
}

/* The next generation has no guard, until it is given one. Then what runs of the old one counts in both. */
static void carried(bool guarded)
{
    struct body next = { .ms = 1 };
    struct eviction e;
    weir_task *task;

    eviction_begin(&e, WEIR_BULKHEAD(.limit = 2));
    CHECK_EQ(weir_group_evict(e.ex, "k", WEIR_CARRY_OVER), 0);
    check_rejected(e.waiting, WEIR_REASON_EVICTED);
    if (guarded)
        CHECK_EQ(weir_group_guard_add(NULL, group_of(e.ex, "k"), e.guard, 0), 0);
    sleep_until(20);
    task = submit(e.ex, "k", &next);
    sleep_until(30);
    CHECK_EQ(weir_guard_leave(&e.permit, 0), 0);
    weir_sim_join(e.thread);
    CHECK_EQ(e.behind.in_ms, 30);
    CHECK_EQ(ends(task, WEIR_DONE).started_at, guarded ? at(30) : at(20));
    task = submit(e.ex, "k", &e.body);
    sleep_until(40);
    CHECK_EQ(figures(e.guard).used, guarded ? 2 : 1);
    CHECK_EQ(ends(e.running, WEIR_DONE).ended_at, at(100));
    CHECK_EQ(ends(task, WEIR_DONE).ended_at, at(100));
    eviction_end(&e);
}

GUARD_TEST(test_carried_over_tasks_keep_the_permits_of_the_old_generation)
{
    carried(false);
}

GUARD_TEST(test_a_guard_may_be_given_to_the_next_generation)
{
    carried(true);
}

/* The limit of one and the guard's permit hold over both generations: the next task starts when the last one ends. */
GUARD_TEST(test_limit_and_guard_hold_over_both_generations)
{
    weir_guard *g = guard_of("m", WEIR_MUTEX());
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 50 };
    weir_task *first, *second;

    CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, "k"), g, 0), 0);
    first = submit(ex, "k", &body);
    sleep_until(10);
    CHECK_EQ(weir_group_evict(ex, "k", WEIR_CARRY_OVER), 0);
    CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, "k"), g, 0), 0);
    second = submit(ex, "k", &body);
    CHECK_EQ(ends(second, WEIR_DONE).started_at, at(50));
    CHECK_EQ(ends(first, WEIR_DONE).ended_at, at(50));
    CHECK_EQ(figures(g).used, 0);
    weir_executor_free(ex);
    weir_guard_unref(g);
}

GUARD_TEST(test_cancelled_by_an_eviction_gives_the_permit_back_at_once)
{
    struct eviction e;

    eviction_begin(&e, WEIR_ADAPTIVE(.limit = 2, .limit_max = 2));
    CHECK_EQ(weir_group_evict(e.ex, "k", WEIR_CANCEL_RUNNING), 0);
    weir_sim_join(e.thread);
    CHECK_EQ(e.behind.in_ms, 15);
    CHECK_EQ(ends(e.running, WEIR_CANCELLED).ended_at, at(15));
    check_rejected(e.waiting, WEIR_REASON_EVICTED);
    CHECK_EQ(figures(e.guard).used, 1);
    CHECK_EQ(figures(e.guard).ignored, 1);
    CHECK_EQ(weir_guard_leave(&e.permit, 0), 0);
    eviction_end(&e);
}

/* The outcome of a task of an evicted generation still counts. */
GUARD_TEST(test_a_breaker_learns_from_the_tasks_of_an_evicted_group)
{
    weir_guard *g =
        guard_of("b", WEIR_BREAKER(.window = 2, .failure_percent = 100, .open_ns = 100 * MS));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct body bad = { .until_ms = 50, .error = -EIO }, good = { .ms = 1 };
    weir_task *task[2], *next;

    CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, "k"), g, 0), 0);
    for (int i = 0; i < 2; i++)
        task[i] = submit(ex, "k", &bad);
    sleep_until(10);
    CHECK_EQ(weir_group_evict(ex, "k", WEIR_CARRY_OVER), 0);
    CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, "k"), g, WEIR_HOLD_WHEN_OPEN), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(ends(task[i], WEIR_FAILED).ended_at, at(50));
    CHECK_EQ(figures(g).state, WEIR_OPEN);
    next = submit(ex, "k", &good);
    CHECK_EQ(ends(next, WEIR_DONE).started_at, at(150) + 1);
    weir_executor_free(ex);
    weir_guard_unref(g);
}

/* ---- by chance ------------------------------------------------------------------------------------ */

/* Groups come and go with and without their running tasks, while others wait for the same permits. */
static void evictions(UNUSED void *arg)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .rejection = WEIR_DISCARD));
    static const int flags[] = { 0, WEIR_CARRY_OVER, WEIR_CANCEL_RUNNING,
                                 WEIR_CARRY_OVER | WEIR_CANCEL_RUNNING };
    static const char *const key[] = { "a", "b" };
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 2 };
    weir_guard *two, *rate;
    weir_task *task[40];
    struct caller c[4];

    CHECK(weir_store_local(&store) == 0);
    two = guard_of("two", WEIR_BULKHEAD(.limit = 2));
    rate = guard_of("rate", WEIR_RATE(.limit = 4, .period_ns = 2 * MS));
    for (int i = 0; i < 40; i++) {
        const char *k = key[weir_sim_random() % 2];
        if (i % 4 == 0) {
            CHECK_EQ(weir_group_evict(ex, k, flags[weir_sim_random() % 4]), 0);
            CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, k), two, 0), 0);
            CHECK_EQ(weir_group_guard_add(NULL, group_of(ex, k), rate, 0), 0);
        }
        task[i] = submit(ex, k, &body);
        if (weir_sim_random() % 4 == 0)
            CHECK(weir_sleep(weir_now() + MS) == 0);
    }
    for (int i = 0; i < 4; i++)
        c[i] = (struct caller){ .guard = two, .ms = 1, .deadline = WEIR_FOREVER };
    side_by_side(c, 4, 0);
    CHECK_EQ(let_in(c, 4), 4);
    for (int i = 0; i < 40; i++) {
        weir_result result = WEIR_RESULT;
        int rc = weir_task_wait(&result, task[i], WEIR_FOREVER);
        CHECK(rc == 0 || rc == WEIR_EREJECTED);
        weir_task_unref(task[i]);
    }
    weir_executor_free(ex);
    CHECK_EQ(figures(two).used, 0);
    CHECK_EQ(figures(two).waiting, 0);
    CHECK(call_once(two, 0) == 0);
    weir_guard_unref(two);
    weir_guard_unref(rate);
    weir_store_free(store);
}

static void test_no_permit_is_lost_by_any_eviction(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), evictions);
    explore(100, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 200), evictions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_waiter_of_a_guard_without_references_is_refused_at_its_deadline),
        cmocka_unit_test(test_a_guard_that_is_taken_up_again_has_its_waiters),
        cmocka_unit_test(test_a_guard_is_found_though_it_came_when_all_others_went),
        cmocka_unit_test(test_a_permit_is_handed_on_though_no_reference_is_left),
        cmocka_unit_test(test_a_waiter_enters_in_the_moment_in_which_the_last_reference_goes),
        cmocka_unit_test(test_a_reservation_outlives_the_last_reference),
        cmocka_unit_test(test_a_waiter_of_a_breaker_outlives_its_reset_and_the_last_reference),
        cmocka_unit_test(test_a_call_that_waited_for_a_rate_may_leave_though_no_reference_is_left),
        cmocka_unit_test(
            test_a_call_that_waited_for_a_window_may_leave_though_no_reference_is_left),
        cmocka_unit_test(
            test_a_call_that_waited_for_a_breaker_may_leave_though_no_reference_is_left),
        cmocka_unit_test(test_a_waiter_may_leave_if_it_entered_just_before_the_last_reference_went),
        cmocka_unit_test(
            test_a_permit_of_a_waiter_is_moved_and_released_though_no_reference_is_left),
        cmocka_unit_test(test_a_caller_of_several_keeps_them_all),
        cmocka_unit_test(test_a_group_keeps_the_guard_it_waits_for),
        cmocka_unit_test(
            test_an_evicted_group_keeps_no_caller_waiting_and_its_permits_until_its_tasks_end),
        cmocka_unit_test(test_carried_over_tasks_keep_the_permits_of_the_old_generation),
        cmocka_unit_test(test_a_guard_may_be_given_to_the_next_generation),
        cmocka_unit_test(test_limit_and_guard_hold_over_both_generations),
        cmocka_unit_test(test_cancelled_by_an_eviction_gives_the_permit_back_at_once),
        cmocka_unit_test(test_a_breaker_learns_from_the_tasks_of_an_evicted_group),
        cmocka_unit_test(test_no_permit_is_lost_by_any_eviction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
