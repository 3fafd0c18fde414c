/* Harm that others may do to a guard's server: settings and keys that are not weir's, refusals, and replies that are none. Each is
 * a code and a sentence, nothing waits beyond its deadline, and other groups of the executor run on.
 * SPDX-License-Identifier: MIT */
#include "redis/member.h"
#include "redis/relay.h"
#include "support/soak.h"

enum { LEASE_MS = 300, TASKS = 200 };

static _Atomic int done, held_done;

static int count(void **value, void *arg)
{
    (void)value;
    atomic_fetch_add((_Atomic int *)arg, 1);
    return 0;
}

/* An executor with a group behind the guard, of which one task waits, and a group that has nothing to do with it. */
struct neighbours {
    weir_executor *ex;
    weir_group *held, *other;
    weir_task *task;
};

static void neighbours_start(struct neighbours *n, weir_guard *guard)
{
    assert_int_equal(weir_executor_new(&n->ex, WEIR_POLICY(.workers = 1), NULL), 0);
    assert_int_equal(weir_group_get(&n->held, n->ex, "held"), 0);
    assert_int_equal(weir_group_get(&n->other, n->ex, "other"), 0);
    assert_int_equal(weir_group_guard_add(NULL, n->held, guard, 0), 0);
    held_done = 0;
    assert_int_equal(weir_submit(&n->task, n->held, count, &held_done, NULL), 0);
}

/* The other group is not disturbed. */
static void neighbours_run(struct neighbours *n)
{
    done = 0;
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(weir_submit(NULL, n->other, count, &done, NULL), 0);
    AWAIT(done == TASKS);
    assert_int_equal(held_done, 0);
}

/* The fault is mended: the task that waited runs. */
static void neighbours_end(struct neighbours *n)
{
    assert_int_equal(weir_task_wait(NULL, n->task, patience()), 0);
    assert_int_equal(held_done, 1);
    weir_task_unref(n->task);
    weir_executor_free(n->ex);
}

static bool says(weir_guard *guard, int error, const char *words)
{
    weir_message text = { "" };
    int rc = weir_guard_describe(&text, guard);

    if (rc == error && strstr(text.text, words))
        return true;
    printf("%s: %s, without: %s\n", weir_errname(rc), text.text, words);
    return false;
}

/* ---- settings ------------------------------------------------------------------------------------- */

/* A guard whose field is set to that (NULL: deleted) is refused to callers that open, enter, or look, with the field's name. */
static void refuse_field(const char *name, const weir_guard_options *opt, const char *field,
                         const char *value)
{
    weir_store *knows = store_of(NULL), *comes = store_of(NULL);
    weir_guard *guard = guard_of(knows, name, opt), *none;
    weir_permit p = WEIR_PERMIT;
    weir_message message = { "" };
    char key[64], text[96];
    char *before;

    snprintf(key, sizeof(key), "weir:{%s}:cfg", name);
    snprintf(text, sizeof(text), "%s: field %s is ", key, field);
    before = server_say(&server, "HGET %s %s", key, field);
    if (value)
        server_do(&server, "HSET %s %s %s", key, field, value);
    else
        server_do(&server, "HDEL %s %s", key, field);
    assert_int_equal(weir_guard_new(&none, comes, name, NULL, &message), WEIR_EFOREIGN);
    if (!strstr(message.text, text))
        fail_msg("'%s', without '%s'", message.text, text);
    if (strcmp(field, "made") != 0 && strcmp(field, "kind") != 0) { /* read when it is opened */
        assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), WEIR_EFOREIGN);
        assert_int_equal(weir_guard_enter(&p, guard, WEIR_FOREVER), WEIR_EFOREIGN);
        assert_true(says(guard, WEIR_EFOREIGN, text));
    }
    server_do(&server, "HSET %s %s %s", key, field, before);
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    weir_guard_leave(&p, 0);
    assert_true(says(guard, 0, name));
    free(before);
    weir_guard_unref(guard);
    weir_store_free(knows);
    weir_store_free(comes);
}

static void test_settings_that_are_not_weir_s_are_named(void)
{
    static const char *const nonsense[] = { "many", "",       "-1",
                                            "1.5",  "0x10",   "99999999999999999999",
                                            "nan",  "\r\n+OK" };
    const weir_guard_options *permits = WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(LEASE_MS));

    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
        refuse_field("odd", permits, "limit", nonsense[i]);
    refuse_field("odd", permits, "limit", NULL);
    refuse_field("odd", permits, "lease", "soon");
    refuse_field("odd", permits, "lease", "0");
    refuse_field("odd", permits, "lease", NULL);
    refuse_field("odd", permits, "waiters", "x");
    refuse_field("odd", permits, "keep", "0");
    refuse_field("odd", permits, "version", "new");
    refuse_field("odd", permits, "kind", "7");
    refuse_field("odd", permits, "made", "by hand");
    refuse_field("odd mutex", WEIR_MUTEX(.lease_ns = MS(LEASE_MS)), "lease", "1");
    refuse_field("odd rate", WEIR_RATE(.limit = 1000, .period_ns = MS(1000)), "limit", "0");
    refuse_field("odd rate", WEIR_RATE(.limit = 1000, .period_ns = MS(1000)), "period", "0");
    refuse_field("odd often", WEIR_FREQUENCY(.limit = 1000, .period_ns = MS(1000)), "limit", "x");
    refuse_field("odd often", WEIR_FREQUENCY(.limit = 1000, .period_ns = MS(1000)), "period", NULL);
}

struct waiter {
    weir_guard *guard;
    int rc;
};

static void *wait_for_ever(void *arg)
{
    struct waiter *w = arg;
    weir_permit p = WEIR_PERMIT;

    w->rc = weir_guard_enter(&p, w->guard, WEIR_FOREVER);
    if (!w->rc)
        weir_guard_leave(&p, 0);
    return NULL;
}

static void test_a_caller_in_line_hears_that_the_settings_are_not_weir_s(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "in line", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(2000)));
    struct waiter w = { .guard = guard };
    weir_permit p = WEIR_PERMIT;
    pthread_t thread;

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    pthread_create(&thread, NULL, wait_for_ever, &w);
    AWAIT(server_do(&server, "ZCARD %s", "weir:{in line}:line") == 1);
    server_do(&server, "HSET %s limit many", "weir:{in line}:cfg");
    pthread_join(thread, NULL);
    assert_int_equal(w.rc, WEIR_EFOREIGN);
    AWAIT(weir_permit_until(&p) == 0); /* its holder hears, too: its lease cannot be renewed */
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_group_whose_guard_s_settings_are_not_weir_s_says_why(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard[2] = {
        guard_of(store, "group", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS))),
        guard_of(store, "paced", WEIR_RATE(.limit = 1000, .period_ns = MS(1000))),
    };
    weir_message text = { "" };
    struct neighbours n;

    server_do(&server, "HSET weir:{group}:cfg limit many");
    neighbours_start(&n, guard[0]);
    AWAIT(weir_fleet_why(&text, n.task, guard[0]) == 0 &&
          strstr(text.text, "the server refuses: weir:{group}:cfg: field limit is 'many'"));
    neighbours_run(&n);
    server_do(&server, "HSET weir:{group}:cfg limit 1");
    neighbours_end(&n);

    server_do(&server, "HSET weir:{paced}:cfg limit 0");
    neighbours_start(&n, guard[1]);
    AWAIT(says(guard[1], WEIR_EFOREIGN, "weir:{paced}:cfg: field limit is '0'"));
    neighbours_run(&n);
    server_do(&server, "HSET weir:{paced}:cfg limit 1000");
    neighbours_end(&n);
    weir_guard_unref(guard[0]);
    weir_guard_unref(guard[1]);
    weir_store_free(store);
}

/* ---- keys ------------------------------------------------------------------------------------------ */

static void test_a_wrong_type_at_any_key_is_named(void)
{
    static const char *const keys[] = { "held", "info", "line" };
    weir_store *store = store_of(NULL);
    weir_message message = { "" };
    weir_guard *guard;
    struct neighbours n;

    server_do(&server, "LPUSH weir:{types}:cfg 1");
    assert_int_equal(weir_guard_new(&guard, store, "types", WEIR_MUTEX(), &message), WEIR_EFOREIGN);
    assert_non_null(strstr(message.text, "weir:{types}:"));
    assert_non_null(strstr(message.text, "WRONGTYPE"));
    server_do(&server, "DEL weir:{types}:cfg");
    guard = guard_of(store, "types", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        weir_permit p = WEIR_PERMIT;

        await_number(0, "ZCARD weir:{types}:held"); /* a group would still run with what it has */
        AWAIT(server_do(&server, "EXISTS weir:{types}:%s", keys[i]) == 0);
        server_do(&server, "SET weir:{types}:%s 1", keys[i]);
        assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), WEIR_EFOREIGN);
        assert_int_equal(weir_guard_enter(&p, guard, WEIR_FOREVER), WEIR_EFOREIGN);
        neighbours_start(&n, guard);
        AWAIT(weir_fleet_why(&message, n.task, guard) == 0 &&
              strstr(message.text,
                     "the server refuses: weir:{types}:* is not all weir's: WRONGTYPE"));
        neighbours_run(&n);
        server_do(&server, "DEL weir:{types}:%s", keys[i]);
        neighbours_end(&n);
    }
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* ---- refusals -------------------------------------------------------------------------------------- */

static void refuse_all(weir_guard *guard, const char *command, const char *back, int error,
                       const char *words)
{
    weir_permit p = WEIR_PERMIT;
    weir_message text = { "" };
    struct neighbours n;

    free(server_say(&server, command));
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), error);
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_FOREVER), error); /* at once */
    neighbours_start(&n, guard);
    AWAIT(weir_fleet_why(&text, n.task, guard) == 0 && strstr(text.text, words));
    neighbours_run(&n);
    free(server_say(&server, back));
    neighbours_end(&n);
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    weir_guard_leave(&p, 0);
    assert_true(says(guard, 0, "refused: "));
}

static void test_a_full_server_and_a_read_only_one_hold_back_their_group_alone(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "refused", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));

    refuse_all(guard, "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", WEIR_EREPLY,
               "the server refuses: OOM");
    refuse_all(guard, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", WEIR_EREPLY,
               "the server refuses: READONLY");
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_wrong_password_is_said_and_recovery_comes_by_itself(void)
{
    weir_store *store, *other;
    weir_permit p = WEIR_PERMIT;
    weir_message message = { "" };
    weir_guard *guard, *none;
    struct neighbours n;

    free(server_say(&server, "ACL SETUSER worker on >right ~* &* +@all"));
    assert_int_equal(
        weir_store_redis(&store,
                         WEIR_REDIS(.url = server.url, .user = "worker", .password = "right",
                                    .backoff_ms = 5, .backoff_max_ms = 50),
                         NULL, &message),
        0);
    guard = guard_of(store, "password", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    assert_int_equal(
        weir_store_redis(&other,
                         WEIR_REDIS(.url = server.url, .user = "worker", .password = "left"), NULL,
                         &message),
        0);
    assert_int_equal(weir_guard_new(&none, other, "password", NULL, &message), WEIR_EDENIED);
    assert_non_null(strstr(message.text, "WRONGPASS"));
    weir_store_free(other);

    free(server_say(&server, "ACL SETUSER worker resetpass >changed"));
    server_do(&server, "CLIENT KILL USER worker");
    AWAIT(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER) == WEIR_EDENIED);
    assert_true(says(guard, 0, "WRONGPASS"));
    neighbours_start(&n, guard);
    neighbours_run(&n);
    free(server_say(&server, "ACL SETUSER worker >right"));
    neighbours_end(&n);
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* ---- replies that are none ------------------------------------------------------------------------- */

/* Whatever comes, a call answers by its deadline with a code of weir's, and all is well once the server speaks clearly. */
static void meddle_with(weir_guard *guard, struct relay *relay, int calls)
{
    struct neighbours n;

    neighbours_start(&n, guard);
    relay->meddle = true;
    for (int i = 0; i < calls; i++) {
        weir_permit p = WEIR_PERMIT;
        weir_time deadline = i % 3 ? weir_in_ms(i % 7) : WEIR_NOW_OR_NEVER;
        int rc = weir_guard_enter(&p, guard, deadline);

        assert_true(rc <= 0);
        assert_true(weir_now() < deadline + MS(10000) || deadline == WEIR_NOW_OR_NEVER);
        if (!rc)
            weir_guard_leave(&p, 0);
        if (i % 10 == 0) {
            weir_guard_stats s = { .size = sizeof(s) };
            weir_message text;
            weir_holder holder[4];

            assert_true(weir_guard_stats_get(&s, guard) <= 0);
            assert_true(weir_guard_describe(&text, guard) <= 0);
            weir_guard_holders(holder, 4, guard);
        }
    }
    done = 0;
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(weir_submit(NULL, n.other, count, &done, NULL), 0);
    AWAIT(done == TASKS);
    relay->meddle = false;
    neighbours_end(&n);
}

static void test_replies_that_are_changed_on_the_way_are_errors_and_never_a_hang(void)
{
    uint64_t seed = getenv("WEIR_SEED") ? strtoull(getenv("WEIR_SEED"), NULL, 10)
                                        : (uint64_t)weir_now() % 1000000;
    weir_message message = { "" };
    weir_permit p = WEIR_PERMIT;
    weir_guard *guard[3];
    struct relay relay;
    weir_store *store;

    printf("WEIR_SEED=%llu\n", (unsigned long long)seed);
    relay_start(&relay, &server);
    relay.seed = seed;
    assert_int_equal(
        weir_store_redis(&store,
                         WEIR_REDIS(.url = relay.url, .backoff_ms = 1, .backoff_max_ms = 5,
                                    .reply_ms = 50, .connect_ms = 100),
                         WEIR_FLEET(.look_ms = 50), &message),
        0);
    guard[0] = guard_of(store, "meddled", WEIR_CONCURRENCY(.limit = 4, .lease_ns = MS(LEASE_MS)));
    guard[1] = guard_of(store, "meddled rate", WEIR_RATE(.limit = 100, .period_ns = MS(100)));
    guard[2] = guard_of(store, "meddled often", WEIR_FREQUENCY(.limit = 100, .period_ns = MS(100)));
    for (int i = 0; i < 3; i++) {
        meddle_with(guard[i], &relay, (int)soak_times(150));
        AWAIT(weir_guard_enter(&p, guard[i], patience()) ==
              0); /* the last changes are on their way */
        weir_guard_leave(&p, 0);
        p = WEIR_PERMIT;
    }
    assert_true(relay.changes > 10);
    for (int i = 0; i < 3; i++)
        weir_guard_unref(guard[i]);
    weir_store_free(store);
    relay_stop(&relay);
}

/* It is not known to the fleet's waiters, so nothing could ever call it. */
static void test_a_caller_that_does_not_wait_is_not_put_in_line_by_an_answer(void)
{
    weir_message message = { "" };
    weir_permit held = WEIR_PERMIT, p = WEIR_PERMIT;
    struct relay relay;
    weir_store *store;
    weir_guard *guard;

    relay_start(&relay, &server);
    assert_int_equal(weir_store_redis(&store, WEIR_REDIS(.url = relay.url), NULL, &message), 0);
    guard = guard_of(store, "forged", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    assert_int_equal(weir_guard_enter(&held, guard, patience()), 0);
    relay.puts_in_line = true;
    /* Unless another answer, of a renewal perhaps, came in one piece with it and was changed instead. */
    AWAIT(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER) == WEIR_EAWAY);
    assert_true(relay.changes > 0);
    relay.puts_in_line = false;
    weir_guard_leave(&held, 0);
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
    relay_stop(&relay);
}

/* ---- scripts that are gone ------------------------------------------------------------------------- */

static _Atomic bool enough;

static void *flush_scripts(void *arg)
{
    int *times = arg;

    for (; !enough; ++*times)
        free(server_say(&server, "SCRIPT FLUSH"));
    return NULL;
}

static void count_loss(const weir_lost *lost, void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, (int)lost->permits);
}

/* Callers, waiters, renewals and a leased group, while the server forgets all scripts again and again. */
static void test_scripts_that_are_flushed_are_sent_again_and_no_caller_notices(void)
{
    enum { CALLS = 300 };
    static _Atomic int lost;
    weir_store *store = store_of(NULL);
    const weir_guard_options *few = WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(6000),
                                                     .on_lost = count_loss, .lost_arg = &lost);
    weir_guard *guard = guard_of(store, "flushed", few), *mutex, *rate, *often, *leased;
    weir_permit held = WEIR_PERMIT, p = WEIR_PERMIT;
    weir_time first;
    weir_executor *ex;
    weir_group *group;
    pthread_t thread;
    int flushes = 0;

    mutex = guard_of(store, "flushed mutex", WEIR_MUTEX());
    rate = guard_of(store, "flushed rate", WEIR_RATE(.limit = 1000000, .period_ns = MS(1000)));
    often =
        guard_of(store, "flushed often", WEIR_FREQUENCY(.limit = 1000000, .period_ns = MS(1000)));
    leased = guard_of(store, "flushed group", few);
    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .group_limit = 8), NULL), 0);
    assert_int_equal(weir_group_get(&group, ex, "leased"), 0);
    assert_int_equal(weir_group_guard_add(NULL, group, leased, 0), 0);
    assert_int_equal(weir_guard_enter(&held, guard, WEIR_NOW_OR_NEVER), 0);
    first = weir_permit_until(&held);
    done = 0;
    enough = false;
    pthread_create(&thread, NULL, flush_scripts, &flushes);
    for (int i = 0; i < CALLS || weir_permit_until(&held) <= first; i++) {
        weir_guard *const all[] = { guard, mutex, rate, often };

        assert_int_equal(weir_guard_enter(&p, all[i % 4], patience()), 0);
        weir_guard_leave(&p, 0);
        p = WEIR_PERMIT;
        if (i < CALLS)
            assert_int_equal(weir_submit(NULL, group, count, &done, NULL), 0);
    }
    assert_int_equal(weir_executor_drain(ex, patience()), 0);
    enough = true;
    pthread_join(thread, NULL);
    assert_int_equal(done, CALLS);
    assert_int_equal(lost, 0);
    assert_true(flushes > 10);
    weir_guard_leave(&held, 0);
    weir_executor_free(ex);
    AWAIT(server_do(&server, "ZCARD weir:{flushed}:held") == 0);
    AWAIT(server_do(&server, "ZCARD %s", "weir:{flushed group}:held") == 0);
    weir_guard_unref(guard);
    weir_guard_unref(mutex);
    weir_guard_unref(rate);
    weir_guard_unref(often);
    weir_guard_unref(leased);
    weir_store_free(store);
}

/* ---- freed while tasks wait ------------------------------------------------------------------------ */

/* Executor, guard and store are freed while tasks of the group wait for the server, and a permit comes back at that moment: nothing
 * of them is left there. */
static void test_objects_freed_while_tasks_wait_leave_nothing_behind(void)
{
    weir_store *keeps = store_of(NULL);
    const weir_guard_options *one = WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(3600000));
    weir_guard *kept = guard_of(keeps, "freed", one);

    for (int round = 0; round < 20; round++) {
        weir_store *store = store_of(NULL);
        weir_guard *guard = guard_of(store, "freed", one);
        weir_guard *paced =
            guard_of(store, "freed rate", WEIR_RATE(.limit = 1, .period_ns = MS(3600000)));
        weir_permit p = WEIR_PERMIT;
        weir_group *group[2];
        weir_executor *ex;

        assert_int_equal(weir_guard_enter(&p, kept, patience()), 0);
        assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
        assert_int_equal(weir_group_get(&group[0], ex, "permits"), 0);
        assert_int_equal(weir_group_get(&group[1], ex, "paced"), 0);
        assert_int_equal(weir_group_guard_add(NULL, group[0], guard, 0), 0);
        assert_int_equal(weir_group_guard_add(NULL, group[1], paced, 0), 0);
        for (int i = 0; i < 10; i++)
            assert_int_equal(weir_submit(NULL, group[i % 2], count, &done, NULL), 0);
        if (round % 4)
            await_number(1, "ZCARD weir:{freed}:line");
        if (round % 2)
            weir_guard_leave(&p, 0);
        weir_executor_free(ex);
        weir_guard_unref(guard);
        weir_guard_unref(paced);
        weir_store_free(store);
        if (round % 2 == 0)
            weir_guard_leave(&p, 0);
        await_number(0, "ZCARD weir:{freed}:line");
        await_number(0, "ZCARD weir:{freed}:held");
    }
    weir_guard_unref(kept);
    weir_store_free(keeps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_settings_that_are_not_weir_s_are_named),
        TEST(test_a_caller_in_line_hears_that_the_settings_are_not_weir_s),
        TEST(test_a_group_whose_guard_s_settings_are_not_weir_s_says_why),
        TEST(test_a_wrong_type_at_any_key_is_named),
        TEST(test_a_full_server_and_a_read_only_one_hold_back_their_group_alone),
        TEST(test_a_wrong_password_is_said_and_recovery_comes_by_itself),
        TEST(test_replies_that_are_changed_on_the_way_are_errors_and_never_a_hang),
        TEST(test_a_caller_that_does_not_wait_is_not_put_in_line_by_an_answer),
        TEST(test_scripts_that_are_flushed_are_sent_again_and_no_caller_notices),
        TEST(test_objects_freed_while_tasks_wait_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
