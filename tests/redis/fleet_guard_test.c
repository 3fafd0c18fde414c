/* Guards on a server: every kind does what it does in a process, for all processes at once.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet_support.h"
#include "redis/relay.h"

#include <pthread.h>

/* ---- permits ---------------------------------------------------------------------------------- */

static void test_two_stores_share_one_limit(void)
{
    weir_store *a = store_of(NULL), *b = store_of(NULL);
    weir_guard *ga = guard_of(a, "two", WEIR_CONCURRENCY(.limit = 2));
    weir_guard *gb = guard_of(b, "two", WEIR_CONCURRENCY(.limit = 2));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT, r = WEIR_PERMIT;

    assert_int_equal(weir_guard_enter(&p, ga, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&q, gb, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&r, ga, WEIR_NOW_OR_NEVER), WEIR_EFULL);
    assert_true(q.token > p.token && p.token > 0);
    assert_int_equal(guard_stats(gb).used, 2);
    assert_int_equal(weir_guard_leave(&p, 0), 0);
    assert_int_equal(weir_guard_leave(&p, 0), WEIR_EALREADY);
    assert_int_equal(weir_guard_enter(&r, gb, patience()), 0);
    assert_true(r.token > q.token);
    weir_guard_leave(&q, 0);
    weir_guard_leave(&r, 0);
    await_number(0, "ZCARD weir:{two}:held");
    await_number(0, "HLEN weir:{two}:info");
    weir_guard_unref(ga);
    weir_guard_unref(gb);
    weir_store_free(a);
    weir_store_free(b);
}

static void test_an_acquire_is_one_round_trip(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "trip", WEIR_CONCURRENCY(.limit = 2));
    weir_permit p = WEIR_PERMIT;
    long long before, sent = 0;

    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0); /* scripts are known then */
    weir_guard_leave(&p, 0);
    await_number(0, "ZCARD weir:{trip}:held");
    /* Once, when it begins to listen, and every third of a lease the client asks for all that it holds. */
    for (int round = 0; round < 10 && sent != 20; round++) {
        before = scripts_run();
        for (int i = 0; i < 10; i++) {
            assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
            weir_guard_leave(&p, 0);
        }
        await_number(0, "ZCARD weir:{trip}:held");
        sent = scripts_run() - before;
    }
    assert_int_equal(sent, 20);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_several_permits_come_together_or_not_at_all(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "several", WEIR_CONCURRENCY(.limit = 5));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;

    assert_int_equal(weir_guard_enter_n(&p, guard, 3, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter_n(&q, guard, 3, WEIR_NOW_OR_NEVER), WEIR_EFULL);
    assert_int_equal(server_do(&server, "ZCARD weir:{several}:held"), 3);
    assert_int_equal(weir_guard_enter_n(&q, guard, 2, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter_n(&q, guard, 1, WEIR_NOW_OR_NEVER), WEIR_EINVAL); /* in use */
    weir_guard_leave(&p, 0);
    weir_guard_leave(&q, 0);
    await_number(0, "ZCARD weir:{several}:held");
    assert_int_equal(weir_guard_enter_n(&q, guard, 6, WEIR_NOW_OR_NEVER), WEIR_EINVAL);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* Waiters note their order. */
struct waiter {
    weir_guard *guard;
    pthread_t thread;
    int order, rc;
    weir_time deadline;
};
static _Atomic int arrivals;

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    weir_permit p = WEIR_PERMIT;

    w->rc = weir_guard_enter(&p, w->guard, w->deadline);
    w->order = atomic_fetch_add(&arrivals, 1);
    if (!w->rc)
        weir_guard_leave(&p, 0);
    return NULL;
}

static void test_waiters_are_served_in_their_order_across_processes(void)
{
    weir_store *a = store_of(NULL), *b = store_of(NULL);
    weir_guard *ga = guard_of(a, "order", WEIR_MUTEX()), *gb = guard_of(b, "order", WEIR_MUTEX());
    weir_permit p = WEIR_PERMIT;
    struct waiter w[6];

    arrivals = 0;
    assert_int_equal(weir_guard_enter(&p, ga, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < 6; i++) {
        w[i] = (struct waiter){ .guard = i % 2 ? ga : gb, .deadline = patience() };
        pthread_create(&w[i].thread, NULL, wait_for_it, &w[i]);
        await_number(i + 1, "ZCARD weir:{order}:line");
    }
    assert_int_equal(guard_stats(ga).waiting, 6);
    weir_guard_leave(&p, 0);
    for (int i = 0; i < 6; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].rc, 0);
        assert_int_equal(w[i].order, i);
    }
    await_number(0, "ZCARD weir:{order}:held");
    assert_int_equal(server_do(&server, "HLEN weir:{order}:info"), 0);
    weir_guard_unref(ga);
    weir_guard_unref(gb);
    weir_store_free(a);
    weir_store_free(b);
}

static void test_a_waiter_that_gives_up_leaves_the_line(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "gives-up", WEIR_CONCURRENCY(.limit = 1));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_time before = weir_now();

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&q, guard, weir_in_ms(30)), WEIR_EFULL);
    assert_true(weir_now() - before >= MS(30));
    await_number(0, "EXISTS weir:{gives-up}:line");
    weir_guard_leave(&p, 0);
    assert_int_equal(weir_guard_enter(&q, guard, patience()), 0);
    weir_guard_leave(&q, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_caller_that_gives_up_leaves_the_line_though_its_client_is_closed_at_once(void)
{
    const weir_guard_options *opt = WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000));
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "goes", opt);
    weir_permit p = WEIR_PERMIT;

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < 20; i++) {
        weir_store *other = store_of(NULL);
        struct waiter w = { .guard = guard_of(other, "goes", opt), .deadline = weir_in_ms(20) };

        wait_for_it(&w);
        assert_int_equal(w.rc, WEIR_EFULL);
        weir_guard_unref(w.guard);
        weir_store_free(other);
        await_number(0, "ZCARD weir:{goes}:line");
    }
    weir_guard_leave(&p, 0);
    await_number(0, "HLEN weir:{goes}:info");
    weir_guard_unref(guard);
    weir_store_free(store);
}

static int enter_and_say(void **value, void *arg)
{
    weir_permit p = WEIR_PERMIT;
    int rc = weir_guard_enter(&p, arg, WEIR_FOREVER);

    (void)value;
    if (!rc)
        weir_guard_leave(&p, 0);
    return rc;
}

static void test_a_waiting_task_parks_and_can_be_cancelled(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "cancel", WEIR_CONCURRENCY(.limit = 1));
    weir_executor *ex;
    weir_task *task, *other;
    weir_result result = WEIR_RESULT;
    weir_permit p = WEIR_PERMIT;

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .group_limit = 8), NULL), 0);
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_submit_key(&task, ex, "g", enter_and_say, guard, NULL), 0);
    await_number(1, "ZCARD weir:{cancel}:line");
    /* The only worker is free for others. */
    assert_int_equal(weir_submit_key(&other, ex, "h", enter_and_say, guard, NULL), 0);
    await_number(2, "ZCARD weir:{cancel}:line");
    weir_task_cancel(task);
    assert_int_equal(weir_task_wait(&result, task, patience()), 0);
    assert_int_equal(result.outcome, WEIR_CANCELLED);
    await_number(1, "ZCARD weir:{cancel}:line");
    weir_guard_leave(&p, 0);
    assert_int_equal(weir_task_wait(&result, other, patience()), 0);
    assert_int_equal(result.outcome, WEIR_DONE);
    weir_task_unref(task);
    weir_task_unref(other);
    weir_executor_free(ex);
    assert_int_equal(guard_stats(guard).cancelled, 1);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_mutex_has_growing_tokens_and_scopes(void)
{
    weir_store *all = store_of(NULL), *app = store_of(WEIR_FLEET(.application = "billing"));
    weir_store *other = store_of(WEIR_FLEET(.application = "shop"));
    weir_guard *g = guard_of(all, "m", WEIR_MUTEX()), *a = guard_of(app, "m", WEIR_MUTEX());
    weir_guard *o = guard_of(other, "m", WEIR_MUTEX());
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT, r = WEIR_PERMIT;
    uint64_t last = 0;

    for (int i = 0; i < 20; i++) {
        assert_int_equal(weir_guard_enter(&p, g, patience()), 0);
        assert_true(p.token > last);
        last = p.token;
        if (i < 19)
            weir_guard_leave(&p, 0);
    }
    assert_int_equal(weir_guard_enter(&q, a, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&r, o, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(server_do(&server, "ZCARD weir:{m}:held"), 1);
    assert_int_equal(server_do(&server, "ZCARD weir:{m-billing}:held"), 1);
    weir_guard_leave(&q, 0);
    weir_guard_leave(&r, 0);
    assert_int_equal(weir_guard_enter(&q, g, WEIR_NOW_OR_NEVER), WEIR_ELOCKED);
    weir_guard_leave(&p, 0);
    weir_guard_unref(g);
    weir_guard_unref(a);
    weir_guard_unref(o);
    weir_store_free(all);
    weir_store_free(app);
    weir_store_free(other);
}

/* ---- settings --------------------------------------------------------------------------------- */

static void test_an_old_client_cannot_bring_an_old_limit_back(void)
{
    weir_store *a = store_of(NULL), *b = store_of(NULL);
    weir_guard *ga = guard_of(a, "limits", WEIR_CONCURRENCY(.limit = 1)), *gb;
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_message message;

    assert_int_equal(weir_guard_change(ga, WEIR_GUARD_OPTIONS(.limit = 2), NULL, &message), 0);
    /* The options it was made with find it, and change nothing. */
    gb = guard_of(b, "limits", WEIR_CONCURRENCY(.limit = 1));
    assert_int_equal(guard_stats(gb).limit, 2);
    assert_int_equal(guard_stats(gb).version, 2);
    assert_int_equal(weir_guard_enter(&p, gb, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&q, gb, WEIR_NOW_OR_NEVER), 0);
    weir_guard_leave(&p, 0);
    weir_guard_leave(&q, 0);
    weir_guard_unref(gb);
    /* Anything else is refused. */
    assert_int_equal(weir_guard_new(&gb, b, "limits", WEIR_CONCURRENCY(.limit = 7), &message),
                     WEIR_EEXIST);
    assert_int_equal(weir_guard_new(&gb, b, "limits", WEIR_MUTEX(), &message), WEIR_EEXIST);
    gb = guard_of(b, "limits", NULL);
    assert_int_equal(weir_guard_change(gb, WEIR_GUARD_OPTIONS(.limit = 3),
                                       WEIR_GUARD_OPTIONS(.limit = 9), &message),
                     WEIR_EALREADY);
    assert_int_equal(guard_stats(ga).limit, 2);
    weir_guard_unref(ga);
    weir_guard_unref(gb);
    weir_store_free(a);
    weir_store_free(b);
}

static void test_a_raised_limit_lets_waiters_in(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "raised", WEIR_CONCURRENCY(.limit = 1));
    weir_permit p = WEIR_PERMIT;
    struct waiter w = { .guard = guard, .deadline = patience() };

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    pthread_create(&w.thread, NULL, wait_for_it, &w);
    await_number(1, "ZCARD weir:{raised}:line");
    assert_int_equal(weir_guard_change(guard, WEIR_GUARD_OPTIONS(.limit = 2), NULL, NULL), 0);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.rc, 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_odd_names_and_bad_settings(void)
{
    static const char *const names[] = {
        "}", "{}", "{a}b", "a{b", "%7D", "with space", "\xff\x01"
    };
    weir_store *store = store_of(NULL);
    weir_guard *guard = NULL;
    weir_message message;
    weir_permit p;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        guard = guard_of(store, names[i], WEIR_CONCURRENCY(.limit = 1));
        p = WEIR_PERMIT;
        assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
        assert_int_equal(weir_guard_leave(&p, 0), 0);
        weir_guard_unref(guard);
    }
    assert_int_equal(weir_guard_new(&guard, store, "x", WEIR_BREAKER(), &message), WEIR_EINVAL);
    assert_non_null(strstr(message.text, "breaker"));
    assert_int_equal(weir_guard_new(&guard, store, "x", WEIR_MUTEX(.lease_ns = 1), &message),
                     WEIR_EINVAL);
    assert_non_null(strstr(message.text, "lease_ns"));
    assert_int_equal(weir_guard_new(&guard, store, "x", WEIR_RATE(.period_ns = 1001), &message),
                     WEIR_EINVAL);
    assert_int_equal(weir_guard_new(&guard, store, "nothing", NULL, &message), WEIR_ENOGUARD);
    weir_store_free(store);
}

static void test_a_wrong_type_at_a_key_is_a_clear_error(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard;
    weir_message message;
    weir_permit p = WEIR_PERMIT;

    server_do(&server, "LPUSH weir:{wrong}:cfg 1");
    assert_int_equal(weir_guard_new(&guard, store, "wrong", WEIR_MUTEX(), &message), WEIR_EFOREIGN);
    guard = guard_of(store, "wrong2", WEIR_MUTEX());
    server_do(&server, "LPUSH weir:{wrong2}:held 1");
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), WEIR_EFOREIGN);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* ---- rates and frequencies ---------------------------------------------------------------------- */

static void test_a_rate_reserves_ahead_for_all_processes(void)
{
    weir_store *a = store_of(NULL), *b = store_of(NULL);
    const weir_guard_options *opt =
        WEIR_RATE(.mode = WEIR_CYCLES, .limit = 2, .period_ns = MS(60000));
    weir_guard *ga = guard_of(a, "rate", opt), *gb = guard_of(b, "rate", opt);
    weir_permit p[7];
    int64_t wait;

    for (int i = 0; i < 6; i++) {
        p[i] = WEIR_PERMIT;
        wait = weir_guard_reserve(&p[i], i % 2 ? ga : gb, 1, MS(250000));
        assert_true(wait <= MS(60000) * (i / 2) && wait > MS(60000) * (i / 2 - 1));
    }
    assert_int_equal(guard_stats(ga).available, -4);
    p[6] = WEIR_PERMIT;
    assert_int_equal(weir_guard_reserve(&p[6], ga, 1, MS(100000)), WEIR_ETOOFAST);
    assert_true(p[6].retry_at > weir_in_s(100) && p[6].retry_at < weir_in_s(190));
    /* One that is given back is the next one's; the order of the others stays. */
    assert_int_equal(weir_guard_release(&p[2]), 0);
    wait = weir_guard_reserve(&p[6], gb, 1, MS(100000));
    assert_true(wait > 0 && wait <= MS(60000));
    assert_int_equal(weir_guard_drain(ga), 0);
    weir_guard_unref(ga);
    weir_guard_unref(gb);
    weir_store_free(a);
    weir_store_free(b);
}

static void test_a_spread_rate_lets_a_burst_through_and_then_paces(void)
{
    weir_store *a = store_of(NULL), *b = store_of(NULL);
    const weir_guard_options *opt =
        WEIR_RATE(.mode = WEIR_SMOOTH, .limit = 6, .period_ns = MS(60000), .burst = 3);
    weir_guard *ga = guard_of(a, "gcra", opt), *gb = guard_of(b, "gcra", opt);
    weir_permit p[6];

    for (int i = 0; i < 6; i++) {
        int64_t wait, due = i < 3 ? 0 : MS(10000) * (i - 2); /* one every 10 s */

        p[i] = WEIR_PERMIT;
        wait = weir_guard_reserve(&p[i], i % 2 ? ga : gb, 1, MS(300000));
        if (wait > due || (i > 2 && wait < due - MS(9000)))
            fail_msg("call %d waits %lld ms of %lld", i, (long long)wait / 1000000,
                     (long long)due / 1000000);
    }
    p[0] = WEIR_PERMIT;
    assert_int_equal(weir_guard_enter(&p[0], ga, WEIR_NOW_OR_NEVER), WEIR_ETOOFAST);
    assert_true(p[0].retry_at > weir_in_s(20));
    /* The last one can be given back; one before it not, since others have reserved behind it. */
    assert_int_equal(weir_guard_release(&p[4]), 0);
    assert_int_equal(guard_stats(gb).available, -3); /* by the connection that gave it back */
    assert_int_equal(weir_guard_release(&p[5]), 0);
    assert_int_equal(guard_stats(ga).available, -2);
    assert_int_equal(weir_guard_enter_n(&p[5], ga, 4, WEIR_NOW_OR_NEVER), WEIR_EINVAL);
    weir_guard_unref(ga);
    weir_guard_unref(gb);
    weir_store_free(a);
    weir_store_free(b);
}

static void test_a_caller_of_a_rate_sleeps_until_its_turn(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "turns", WEIR_RATE(.limit = 1, .period_ns = MS(60)));
    weir_time begin = weir_now();

    for (int i = 0; i < 4; i++) {
        weir_permit p = WEIR_PERMIT;
        assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    }
    assert_true(weir_now() - begin >= MS(179));
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_windows_count_calls_that_are_let_in_and_nothing_else(void)
{
    static const weir_guard_mode modes[] = { WEIR_WEIGHTED, WEIR_FIXED, WEIR_EXACT };
    weir_store *a = store_of(NULL), *b = store_of(NULL);

    for (size_t m = 0; m < 3; m++) {
        char name[16];
        weir_guard *ga, *gb;
        weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;

        snprintf(name, sizeof(name), "window %zu", m);
        ga = guard_of(a, name,
                      WEIR_FREQUENCY(.mode = modes[m], .limit = 3, .period_ns = MS(3600000)));
        gb = guard_of(b, name,
                      WEIR_FREQUENCY(.mode = modes[m], .limit = 3, .period_ns = MS(3600000)));
        assert_int_equal(weir_guard_enter(&p, ga, WEIR_NOW_OR_NEVER), 0);
        assert_int_equal(weir_guard_enter_n(&q, gb, 2, WEIR_NOW_OR_NEVER), 0);
        for (int i = 0; i < 5; i++) {
            weir_permit r = WEIR_PERMIT;
            assert_int_equal(weir_guard_enter(&r, ga, WEIR_NOW_OR_NEVER), WEIR_ETOOFAST);
            assert_true(r.retry_at > weir_now() && r.retry_at < weir_in_s(2 * 3600));
        }
        assert_int_equal(guard_stats(gb).available, 0);
        /* A call that was never made does not count either. */
        assert_int_equal(weir_guard_release(&p), 0);
        assert_int_equal(weir_guard_enter(&p, ga, patience()), 0);
        weir_guard_unref(ga);
        weir_guard_unref(gb);
    }
    weir_store_free(a);
    weir_store_free(b);
}

static int enter_for_ever(void **value, void *arg)
{
    weir_permit p = WEIR_PERMIT;

    (void)value;
    return weir_guard_enter(&p, arg, WEIR_FOREVER);
}

/* Which of the two processes has the first turn, the second... 'a' and 'b'. */
static void turns_of(char *out, const char *set)
{
    redisContext *c = redisConnectUnix(server.socket);
    redisReply *list = redisCommand(c, "ZRANGE %s 0 -1", set);
    const char *first = NULL;

    for (size_t i = 0; i < list->elements; i++) {
        if (!first)
            first = list->element[i]->str;
        *out++ = strncmp(first, list->element[i]->str, 16) ? 'b' : 'a';
    }
    *out = '\0';
    freeReplyObject(list);
    redisFree(c);
}

static void wait_in_order(weir_guard_mode mode, const char *name, const char *kind)
{
    enum { CALLERS = 6 };
    weir_store *store[2] = { store_of(NULL), store_of(NULL) };
    char set[64], look[80], turns[16];
    weir_task *task[CALLERS];
    weir_guard *guard[2];
    weir_permit p = WEIR_PERMIT;
    weir_executor *ex;
    weir_group *group;
    long long before;
    int had = mode == WEIR_EXACT;

    snprintf(set, sizeof(set), "weir:{%s}:%s", name, kind);
    snprintf(look, sizeof(look), "ZCARD %s", set);
    for (int i = 0; i < 2; i++)
        guard[i] = guard_of(store[i], name,
                            WEIR_FREQUENCY(.mode = mode, .limit = 1, .period_ns = MS(3600000)));
    assert_int_equal(
        weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .group_limit = CALLERS), NULL), 0);
    assert_int_equal(weir_group_get(&group, ex, "callers"), 0);
    assert_int_equal(weir_guard_enter(&p, guard[0], WEIR_NOW_OR_NEVER), 0);
    before = scripts_run();
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(weir_submit(&task[i], group, enter_for_ever, guard[i % 2], NULL), 0);
        await_number(had + i + 1, look);
    }
    turns_of(turns, set);
    assert_string_equal(turns, had ? "aababab" : "ababab");
    p = WEIR_PERMIT;
    assert_int_equal(weir_guard_enter(&p, guard[1], WEIR_NOW_OR_NEVER), WEIR_ETOOFAST);
    assert_true(p.retry_at > weir_in_s(5 * 3600));         /* behind all of them */
    assert_int_equal(scripts_run() - before, CALLERS + 1); /* one round trip each */
    for (int i = 0; i < CALLERS; i++) {
        weir_result result = WEIR_RESULT;

        weir_task_cancel(task[i]);
        assert_int_equal(weir_task_wait(&result, task[i], patience()), 0);
        assert_int_equal(result.error, WEIR_ECANCELED);
        weir_task_unref(task[i]);
    }
    await_number(had, look); /* they gave their turns back */
    p = WEIR_PERMIT;
    assert_int_equal(weir_guard_enter(&p, guard[1], WEIR_NOW_OR_NEVER), WEIR_ETOOFAST);
    assert_true(p.retry_at <= weir_in_s(2 * 3600));
    weir_executor_free(ex);
    for (int i = 0; i < 2; i++) {
        weir_guard_unref(guard[i]);
        weir_store_free(store[i]);
    }
}

static void test_callers_of_a_window_have_their_turns_in_order_across_processes(void)
{
    wait_in_order(WEIR_EXACT, "turns-exact", "log");
    wait_in_order(WEIR_FIXED, "turns-fixed", "line");
    wait_in_order(WEIR_WEIGHTED, "turns-weighted", "line");
}

static void cancel_unheard(weir_guard_mode mode, const char *name, const char *kind)
{
    const weir_guard_options *opt =
        WEIR_FREQUENCY(.mode = mode, .limit = 1, .period_ns = MS(3600000));
    weir_result result = WEIR_RESULT;
    weir_permit p = WEIR_PERMIT;
    int had = mode == WEIR_EXACT;
    struct relay relay;
    weir_store *store;
    weir_guard *guard;
    weir_executor *ex;
    weir_task *task;
    char look[80];

    snprintf(look, sizeof(look), "ZCARD weir:{%s}:%s", name, kind);
    relay_start(&relay, &server);
    store = store_at(WEIR_REDIS(.url = relay.url, .reply_ms = 600000),
                     WEIR_FLEET(.look_ms = ANSWER_MS));
    guard = guard_of(store, name, opt);
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
    relay.hold = true;
    assert_int_equal(weir_submit_key(&task, ex, "g", enter_for_ever, guard, NULL), 0);
    await_number(had + 1, look);
    weir_task_cancel(task);
    assert_int_equal(weir_task_wait(&result, task, patience()), 0);
    assert_int_equal(result.error, WEIR_ECANCELED);
    await_number(had, look);
    relay.hold = false;
    weir_task_unref(task);
    weir_executor_free(ex);
    weir_guard_unref(guard);
    weir_store_free(store);
    relay_stop(&relay);
}

static void test_a_caller_that_is_cancelled_before_it_hears_of_its_turn_gives_it_back(void)
{
    cancel_unheard(WEIR_EXACT, "unheard-exact", "log");
    cancel_unheard(WEIR_FIXED, "unheard-fixed", "line");
    cancel_unheard(WEIR_WEIGHTED, "unheard-weighted", "line");
}

static void test_a_caller_of_an_exact_window_waits_for_its_room(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(
        store, "exact", WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 2, .period_ns = MS(150)));
    weir_time entered[6];

    for (int i = 0; i < 6; i++) {
        weir_permit p = WEIR_PERMIT;
        assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
        entered[i] = weir_now();
    }
    /* Any window: the server counted at most 2 in 150 ms; the answers come a little later each. */
    assert_true(entered[5] - entered[0] >= MS(290));
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* ---- the original's names ----------------------------------------------------------------------- */

/* Whether the time that a key has left is more than it was at the last look. */
static bool is_extended(const char *look, long long *left)
{
    long long before = *left;

    *left = server_do(&server, look);
    return *left > before;
}

static void test_names_of_the_original_are_shared_with_it(void)
{
    weir_store *store = store_of(WEIR_FLEET(.compatible = true, .application = "app"));
    weir_guard *lock = guard_of(store, "job", WEIR_MUTEX(.lease_ns = MS(3000)));
    weir_guard *often = guard_of(
        store, "api", WEIR_FREQUENCY(.mode = WEIR_FIXED, .limit = 2, .period_ns = MS(86400000)));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT, r = WEIR_PERMIT;
    long long left;
    char *keys;

    /* Held by a program of the original: set if absent, with an owner. */
    free(server_say(&server, "SET lock:job-app instance$1 NX PX 30000"));
    assert_int_equal(weir_guard_enter(&p, lock, WEIR_NOW_OR_NEVER), WEIR_ELOCKED);
    server_do(&server, "DEL lock:job-app");
    assert_int_equal(weir_guard_enter(&p, lock, WEIR_NOW_OR_NEVER), 0);
    left = server_do(&server, "PTTL lock:job-app");
    assert_in_range(left, 1, 3000);
    AWAIT(is_extended("PTTL lock:job-app", &left));
    weir_guard_leave(&p, 0);
    await_number(0, "EXISTS lock:job-app");
    assert_int_equal(weir_guard_enter(&q, often, WEIR_NOW_OR_NEVER), 0);
    q = WEIR_PERMIT;
    keys = server_say(&server, "EVAL %s 0", "return redis.call('KEYS','api-app:*')[1]");
    assert_int_equal(server_do(&server, "INCR %s", keys), 2); /* the original counts, too */
    assert_int_equal(weir_guard_enter(&r, often, WEIR_NOW_OR_NEVER), WEIR_ETOOFAST);
    free(keys);
    weir_guard_unref(lock);
    weir_guard_unref(often);
    weir_store_free(store);
}

static void test_every_key_has_a_time_to_live(void)
{
    assert_int_equal(server_do(&server, "EVAL %s 0",
                               "local n = 0 for _, k in ipairs(redis.call('KEYS', 'weir:*')) do "
                               "if redis.call('PTTL', k) < 0 and not string.find(k, 'wrong') then "
                               "n = n + 1 end end return n"),
                     0);
    assert_true(server_do(&server, "DBSIZE") > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_stores_share_one_limit),
        TEST(test_an_acquire_is_one_round_trip),
        TEST(test_several_permits_come_together_or_not_at_all),
        TEST(test_waiters_are_served_in_their_order_across_processes),
        TEST(test_a_waiter_that_gives_up_leaves_the_line),
        TEST(test_a_caller_that_gives_up_leaves_the_line_though_its_client_is_closed_at_once),
        TEST(test_a_waiting_task_parks_and_can_be_cancelled),
        TEST(test_a_mutex_has_growing_tokens_and_scopes),
        TEST(test_an_old_client_cannot_bring_an_old_limit_back),
        TEST(test_a_raised_limit_lets_waiters_in),
        TEST(test_odd_names_and_bad_settings),
        TEST(test_a_wrong_type_at_a_key_is_a_clear_error),
        TEST(test_a_rate_reserves_ahead_for_all_processes),
        TEST(test_a_spread_rate_lets_a_burst_through_and_then_paces),
        TEST(test_a_caller_of_a_rate_sleeps_until_its_turn),
        TEST(test_windows_count_calls_that_are_let_in_and_nothing_else),
        TEST(test_callers_of_a_window_have_their_turns_in_order_across_processes),
        TEST(test_a_caller_that_is_cancelled_before_it_hears_of_its_turn_gives_it_back),
        TEST(test_a_caller_of_an_exact_window_waits_for_its_room),
        TEST(test_names_of_the_original_are_shared_with_it),
        TEST(test_every_key_has_a_time_to_live),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
