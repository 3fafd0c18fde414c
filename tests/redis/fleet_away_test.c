/* Guards whose server is away: each does what it was told to, says so, and recovers by itself.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet_support.h"

/* How long an answer may take where the server is busy, not away: tests of what is away do not depend on it. */
enum { PATIENCE_MS = 60000 };

static void await_away(weir_guard *guard, bool away)
{
    weir_time end = patience();

    while (guard_stats(guard).away != away && weir_now() < end)
        weir_sleep(weir_in_ms(2));
    assert_int_equal(guard_stats(guard).away, away);
}

static void test_a_closed_guard_lets_nobody_in_and_recovers(void)
{
    weir_store *store = store_of(WEIR_FLEET(.look_ms = PATIENCE_MS));
    weir_guard *guard =
        guard_of(store, "closed", WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(200)));
    weir_permit p = WEIR_PERMIT;
    weir_message text;

    server_kill(&server);
    await_away(guard, true);
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), WEIR_EAWAY);
    assert_int_equal(weir_guard_enter(&p, guard, weir_in_ms(50)), WEIR_EAWAY);
    assert_true(guard_stats(guard).away_ns > 0);
    assert_int_equal(weir_guard_describe(&text, guard), 0);
    assert_non_null(strstr(text.text, "the server has been unreachable for"));
    assert_non_null(strstr(text.text, "closed"));
    server_again(&server); /* empty: the guard is made anew, by whoever knows it */
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    assert_int_equal(guard_stats(guard).away, false);
    assert_int_equal(guard_stats(guard).limit, 2);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_an_open_guard_lets_all_in_uncounted(void)
{
    weir_store *store = store_of(WEIR_FLEET(.look_ms = PATIENCE_MS));
    weir_guard *guard =
        guard_of(store, "open",
                 WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(200), .when_away = WEIR_AWAY_OPEN));
    weir_guard *rate =
        guard_of(store, "open rate",
                 WEIR_RATE(.limit = 1, .period_ns = MS(3600000), .when_away = WEIR_AWAY_OPEN));
    weir_permit p[3], q = WEIR_PERMIT;

    server_kill(&server);
    await_away(guard, true);
    for (int i = 0; i < 3; i++) {
        p[i] = WEIR_PERMIT;
        assert_int_equal(weir_guard_enter(&p[i], guard, WEIR_NOW_OR_NEVER), 0);
        q = WEIR_PERMIT;
        assert_int_equal(weir_guard_enter(&q, rate, WEIR_NOW_OR_NEVER), 0);
        assert_int_equal(weir_permit_until(&p[i]), WEIR_FOREVER);
    }
    assert_int_equal(guard_stats(guard).uncounted, 3);
    server_again(&server);
    await_away(guard, false);
    q = WEIR_PERMIT;
    assert_int_equal(weir_guard_enter(&q, guard, patience()), 0);
    assert_true(q.token > 0); /* counted again, from nothing */
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_guard_leave(&p[i], 0), 0);
    weir_guard_leave(&q, 0);
    weir_guard_unref(guard);
    weir_guard_unref(rate);
    weir_store_free(store);
}

static void test_a_share_is_a_limit_of_the_process_s_own(void)
{
    weir_store *store = store_of(WEIR_FLEET(.look_ms = PATIENCE_MS));
    weir_guard *guard = guard_of(
        store, "share", WEIR_CONCURRENCY(.limit = 10, .when_away = WEIR_AWAY_SHARE, .share = 2));
    weir_guard *often = guard_of(store, "share often",
                                 WEIR_FREQUENCY(.limit = 10, .period_ns = MS(3600000),
                                                .when_away = WEIR_AWAY_SHARE, .share = 1));
    weir_permit p[3] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };

    server_kill(&server);
    await_away(guard, true);
    assert_int_equal(weir_guard_enter(&p[0], guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&p[1], guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&p[2], guard, WEIR_NOW_OR_NEVER), WEIR_EFULL);
    weir_guard_leave(&p[0], 0);
    assert_int_equal(weir_guard_enter(&p[2], guard, patience()), 0);
    p[0] = WEIR_PERMIT;
    assert_int_equal(weir_guard_enter(&p[0], often, WEIR_NOW_OR_NEVER), 0);
    p[0] = WEIR_PERMIT;
    assert_int_equal(weir_guard_enter(&p[0], often, WEIR_NOW_OR_NEVER), WEIR_ETOOFAST);
    server_again(&server);
    weir_guard_leave(&p[1], 0);
    weir_guard_leave(&p[2], 0);
    await_away(guard, false);
    weir_guard_unref(guard);
    weir_guard_unref(often);
    weir_store_free(store);
}

static void test_guards_can_be_made_while_the_server_is_away(void)
{
    weir_store *store;
    weir_guard *guard, *none;
    weir_permit p = WEIR_PERMIT;
    weir_message message;

    server_kill(&server);
    store = store_of(WEIR_FLEET(.look_ms = PATIENCE_MS));
    assert_int_equal(weir_guard_new(&none, store, "later", WEIR_MUTEX(), &message), WEIR_EAWAY);
    guard =
        guard_of(store, "later",
                 WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(300), .when_away = WEIR_AWAY_OPEN));
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    weir_guard_leave(&p, 0);
    server_again(&server);
    await_away(guard, false);
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    assert_int_equal(server_do(&server, "HGET weir:{later}:cfg limit"), 1);
    assert_true(p.token > 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_server_that_forgot_lets_nobody_in_before_old_leases_are_over(void)
{
    weir_store *a = store_of(NULL), *b = store_of(NULL);
    /* A lease that is longer than it takes a server to start. */
    weir_guard *ga = guard_of(a, "forgot", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(60000)));
    weir_guard *gb = guard_of(b, "forgot", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(60000)));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;

    assert_int_equal(weir_guard_enter(&p, ga, WEIR_NOW_OR_NEVER), 0);
    server_kill(&server);
    server_again(&server); /* knows nothing */
    await_away(gb, false);
    assert_int_equal(weir_guard_enter(&q, gb, WEIR_NOW_OR_NEVER), WEIR_EFULL);
    await_number(1, "ZCARD weir:{forgot}:held"); /* the holder is there again, by itself */
    assert_true(weir_permit_until(&p) > weir_now());
    assert_int_equal(guard_stats(ga).lost, 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(ga);
    weir_guard_unref(gb);
    weir_store_free(a);
    weir_store_free(b);
}

/* Connections stand, and nothing comes. */
static void test_a_server_that_does_not_answer_is_away(void)
{
    weir_store *store = store_of(WEIR_FLEET(.look_ms = 50));
    weir_guard *guard;
    weir_message message;

    server_freeze(&server);
    assert_int_equal(weir_guard_new(&guard, store, "frozen", WEIR_MUTEX(), &message), WEIR_EAWAY);
    server_thaw(&server);
    weir_store_free(store);
}

static void test_a_full_server_and_a_read_only_one_are_clear_errors(void)
{
    weir_store *store = store_of(WEIR_FLEET(.look_ms = PATIENCE_MS));
    weir_guard *guard = guard_of(store, "memory", WEIR_MUTEX());
    weir_permit p = WEIR_PERMIT;

    free(server_say(&server, "CONFIG SET maxmemory 1"));
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), WEIR_EREPLY);
    free(server_say(&server, "CONFIG SET maxmemory 0"));
    free(server_say(&server, "REPLICAOF 127.0.0.1 1"));
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), WEIR_EREPLY);
    assert_int_equal(weir_guard_enter(&p, guard, patience()), WEIR_EREPLY); /* at once */
    free(server_say(&server, "REPLICAOF NO ONE"));
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_closed_guard_lets_nobody_in_and_recovers),
        TEST(test_an_open_guard_lets_all_in_uncounted),
        TEST(test_a_share_is_a_limit_of_the_process_s_own),
        TEST(test_guards_can_be_made_while_the_server_is_away),
        TEST(test_a_server_that_forgot_lets_nobody_in_before_old_leases_are_over),
        TEST(test_a_server_that_does_not_answer_is_away),
        TEST(test_a_full_server_and_a_read_only_one_are_clear_errors),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
