/* Guards whose server is away: each does what it was told to, says so, and recovers by itself.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet_support.h"

#include <pthread.h>

static void await_away(weir_guard *guard, bool away)
{
    weir_time end = patience();

    while (guard_stats(guard).away != away && weir_now() < end)
        weir_sleep(weir_in_ms(2));
    assert_int_equal(guard_stats(guard).away, away);
}

static void test_a_closed_guard_lets_no_caller_in_and_recovers(void)
{
    weir_store *store = store_of(NULL);
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
    server_again(&server); /* empty: the guard is made anew, by a client that knows it */
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    assert_int_equal(guard_stats(guard).away, false);
    assert_int_equal(guard_stats(guard).limit, 2);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* ---- what the client knows, and what callbacks are told ------------------------------------------- */

static _Atomic bool linger, lingers;

/* Keeps all other callbacks of its client waiting. */
static void stay(const weir_lost *lost, void *arg)
{
    (void)lost, (void)arg;
    lingers = true;
    while (linger)
        weir_sleep(weir_in_ms(1));
    lingers = false;
}

static void test_a_guard_says_that_its_server_is_away_before_callbacks_are_told(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(
        store, "untold", WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(3600000), .on_lost = stay));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_holder holder;
    weir_message text;

    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    assert_int_equal(weir_guard_holders(&holder, 1, guard), 1);
    linger = true;
    assert_int_equal(weir_guard_evict(guard, holder.id, "operator", ""), 0);
    AWAIT(lingers);
    server_kill(&server);
    assert_int_equal(weir_guard_enter(&q, guard, WEIR_NOW_OR_NEVER), WEIR_EAWAY);
    assert_int_equal(guard_stats(guard).away, true);
    assert_true(guard_stats(guard).away_ns > 0);
    assert_int_equal(weir_guard_describe(&text, guard), 0);
    assert_non_null(strstr(text.text, "the server has been unreachable for"));
    linger = false;
    server_again(&server);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_guard_says_that_its_server_is_back_before_callbacks_are_told(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(
        store, "untold", WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(300), .on_lost = stay));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_message text;

    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    linger = true;
    server_kill(&server);
    AWAIT(lingers); /* its lease could not be renewed; that the server is away was told before */
    server_again(&server); /* it answers, if only that none enters before old leases are over */
    AWAIT(weir_guard_enter(&q, guard, WEIR_NOW_OR_NEVER) != WEIR_EAWAY);
    assert_int_equal(guard_stats(guard).away, false);
    assert_int_equal(guard_stats(guard).away_ns, 0);
    assert_int_equal(weir_guard_describe(&text, guard), 0);
    assert_null(strstr(text.text, "unreachable"));
    linger = false;
    weir_guard_leave(&p, 0);
    weir_guard_leave(&q, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* ---- what they do meanwhile ------------------------------------------------------------------------ */

static void test_an_open_guard_lets_all_in_uncounted(void)
{
    weir_store *store = store_of(NULL);
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
    weir_store *store = store_of(NULL);
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

enum { RACES = 500, RACERS = 4 };

struct race {
    weir_guard *guard[RACES];
    pthread_barrier_t start;
};

static void *race_for_shares(void *race_arg)
{
    struct race *race = race_arg;

    for (int i = 0; i < RACES; i++) {
        weir_permit p = WEIR_PERMIT;
        pthread_barrier_wait(&race->start);
        CHECK_EQUAL(weir_guard_enter(&p, race->guard[i], WEIR_NOW_OR_NEVER), 0);
        weir_guard_leave(&p, 0);
    }
    return NULL;
}

/* Each of them makes it, and it is freed with its guard all the same. */
static void test_threads_that_need_a_share_at_once_share_one(void)
{
    weir_store *store = store_of(NULL);
    pthread_t thread[RACERS];
    struct race race;
    char name[32];

    for (int i = 0; i < RACES; i++) {
        snprintf(name, sizeof(name), "raced %d", i);
        race.guard[i] = guard_of(
            store, name,
            WEIR_CONCURRENCY(.limit = RACERS, .share = RACERS, .when_away = WEIR_AWAY_SHARE));
    }
    pthread_barrier_init(&race.start, NULL, RACERS);
    server_kill(&server);
    for (int i = 0; i < RACES; i++)
        await_away(race.guard[i], true);
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, race_for_shares, &race), 0);
    for (int i = 0; i < RACERS; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&race.start);
    server_again(&server);
    for (int i = 0; i < RACES; i++)
        weir_guard_unref(race.guard[i]);
    weir_store_free(store); /* asserts that no share is left */
}

static int note_start(void **value, void *arg)
{
    (void)value;
    atomic_fetch_add((_Atomic int *)arg, 1);
    return 0;
}

static void check_waiting_group_starts_without_the_server(const char *name,
                                                          const weir_guard_options *opt)
{
    weir_store *store = store_of(NULL), *other = store_of(NULL);
    weir_guard *guard = guard_of(store, name, opt), *theirs = guard_of(other, name, opt);
    weir_permit p = WEIR_PERMIT;
    _Atomic int starts = 0;
    weir_executor *ex;
    weir_group *group;
    char line[64];

    assert_int_equal(weir_guard_enter(&p, theirs, patience()), 0);
    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
    assert_int_equal(weir_group_get(&group, ex, "waits"), 0);
    assert_int_equal(weir_group_guard_add(NULL, group, guard, 0), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_submit(NULL, group, note_start, &starts, NULL), 0);
    snprintf(line, sizeof(line), "ZCARD weir:{%s}:line", name);
    await_number(1, line);
    assert_int_equal(starts, 0);
    server_kill(&server);
    assert_int_equal(weir_executor_drain(ex, patience()), 0);
    assert_int_equal(starts, 3);
    server_again(&server);
    weir_executor_free(ex);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_guard_unref(theirs);
    weir_store_free(store);
    weir_store_free(other);
}

/* The next renewal is twenty minutes away. */
static void test_groups_that_stand_in_line_start_when_the_server_goes_away_if_their_guard_says_so(
    void)
{
    check_waiting_group_starts_without_the_server(
        "open_group",
        WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000), .when_away = WEIR_AWAY_OPEN));
    check_waiting_group_starts_without_the_server(
        "share_group", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000),
                                        .when_away = WEIR_AWAY_SHARE, .share = 1));
}

static void test_guards_can_be_made_while_the_server_is_away(void)
{
    weir_store *store;
    weir_guard *guard, *none;
    weir_permit p = WEIR_PERMIT;
    weir_message message;

    server_kill(&server);
    store = store_of(NULL);
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

static void test_a_server_that_forgot_lets_no_caller_in_before_old_leases_are_over(void)
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

/* A process that finds the server by a name of its own, so that the test says when it does. */
struct apart {
    char path[96], url[128];
    weir_store *store;
    weir_guard *guard;
    weir_permit permit;
    pthread_t thread;
    int answer;
};

static void show_server_to(struct apart *it)
{
    assert_int_equal(symlink(server.socket, it->path), 0);
}

static void join_from(struct apart *it, const char *name, const char *guard,
                      const weir_guard_options *opt)
{
    snprintf(it->path, sizeof(it->path), "%s/%s", server.dir, name);
    snprintf(it->url, sizeof(it->url), "unix://%s", it->path);
    show_server_to(it);
    it->store = store_at(
        WEIR_REDIS(.url = it->url, .backoff_ms = 5, .backoff_max_ms = 50, .reply_ms = ANSWER_MS),
        WEIR_FLEET(.look_ms = ANSWER_MS));
    it->guard = guard_of(it->store, guard, opt);
    it->permit = WEIR_PERMIT;
}

static void part_from(struct apart *it)
{
    weir_guard_unref(it->guard);
    weir_store_free(it->store);
    unlink(it->path);
}

static void *enter_in_time(void *arg)
{
    struct apart *it = arg;

    it->answer = weir_guard_enter(&it->permit, it->guard, patience());
    return NULL;
}

static void test_a_forgotten_guard_is_closed_by_the_first_old_process_also_if_that_only_waits(void)
{
    const weir_guard_options *opt = WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(60000));
    struct apart holder, waiter, newcomer;

    join_from(&holder, "holder", "apart", opt);
    join_from(&waiter, "waiter", "apart", opt);
    assert_int_equal(weir_guard_enter(&holder.permit, holder.guard, WEIR_NOW_OR_NEVER), 0);
    pthread_create(&waiter.thread, NULL, enter_in_time, &waiter);
    await_number(1, "ZCARD weir:{apart}:line");
    unlink(holder.path);
    unlink(waiter.path);
    server_kill(&server);
    server_again(&server); /* knows nothing */
    join_from(&newcomer, "newcomer", "apart", opt);
    assert_int_equal(weir_guard_enter(&newcomer.permit, newcomer.guard, WEIR_NOW_OR_NEVER), 0);
    weir_guard_leave(&newcomer.permit, 0); /* it could not know of the holder */
    await_number(0, "ZCARD weir:{apart}:held");
    show_server_to(&waiter);
    AWAIT(server_do(&server, "ZCARD weir:{apart}:line") ||
          server_do(&server, "ZCARD weir:{apart}:held"));
    assert_int_equal(server_do(&server, "ZCARD weir:{apart}:held"), 0);
    assert_int_equal(weir_guard_enter(&newcomer.permit, newcomer.guard, WEIR_NOW_OR_NEVER),
                     WEIR_EFULL);
    show_server_to(&holder);
    await_number(1, "ZCARD weir:{apart}:held");
    assert_int_equal(guard_stats(holder.guard).lost, 0);
    server_do(&server, "HSET weir:{apart}:cfg grace 0"); /* as if the lease's time were over */
    weir_guard_leave(&holder.permit, 0);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.answer, 0);
    weir_guard_leave(&waiter.permit, 0);
    part_from(&holder);
    part_from(&waiter);
    part_from(&newcomer);
}

static int enter_for_ever(void **value, void *arg)
{
    struct apart *it = arg;

    (void)value;
    return weir_guard_enter(&it->permit, it->guard, WEIR_FOREVER);
}

/* It cannot say so: the server still has it in line, and hands the permit to it if its turn comes. */
static void test_a_caller_that_is_gone_unheard_keeps_the_line_waiting_for_its_lease_only(void)
{
    const weir_guard_options *opt = WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(2000));
    struct apart holder, gone, behind;
    weir_executor *ex;
    weir_task *task;

    join_from(&holder, "holder", "unheard", opt);
    join_from(&gone, "gone", "unheard", opt);
    join_from(&behind, "behind", "unheard", opt);
    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
    assert_int_equal(weir_guard_enter(&holder.permit, holder.guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_submit_key(&task, ex, "g", enter_for_ever, &gone, NULL), 0);
    await_number(1, "ZCARD weir:{unheard}:line");
    pthread_create(&behind.thread, NULL, enter_in_time, &behind);
    await_number(2, "ZCARD weir:{unheard}:line");
    unlink(gone.path);
    server_do(&server, "CLIENT KILL TYPE normal");
    server_do(&server, "CLIENT KILL TYPE pubsub");
    await_away(gone.guard, true);
    weir_task_cancel(task);
    weir_task_unref(task);
    weir_executor_free(ex);
    part_from(&gone);
    weir_guard_leave(&holder.permit, 0);
    pthread_join(behind.thread, NULL);
    assert_int_equal(behind.answer, 0);
    assert_int_equal(server_do(&server, "ZCARD weir:{unheard}:line"), 0);
    weir_guard_leave(&behind.permit, 0);
    await_number(0, "HLEN weir:{unheard}:info");
    part_from(&holder);
    part_from(&behind);
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
    weir_store *store = store_of(NULL);
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
        TEST(test_a_closed_guard_lets_no_caller_in_and_recovers),
        TEST(test_a_guard_says_that_its_server_is_away_before_callbacks_are_told),
        TEST(test_a_guard_says_that_its_server_is_back_before_callbacks_are_told),
        TEST(test_an_open_guard_lets_all_in_uncounted),
        TEST(test_a_share_is_a_limit_of_the_process_s_own),
        TEST(test_threads_that_need_a_share_at_once_share_one),
        TEST(test_groups_that_stand_in_line_start_when_the_server_goes_away_if_their_guard_says_so),
        TEST(test_guards_can_be_made_while_the_server_is_away),
        TEST(test_a_server_that_forgot_lets_no_caller_in_before_old_leases_are_over),
        TEST(test_a_forgotten_guard_is_closed_by_the_first_old_process_also_if_that_only_waits),
        TEST(test_a_caller_that_is_gone_unheard_keeps_the_line_waiting_for_its_lease_only),
        TEST(test_a_server_that_does_not_answer_is_away),
        TEST(test_a_full_server_and_a_read_only_one_are_clear_errors),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
