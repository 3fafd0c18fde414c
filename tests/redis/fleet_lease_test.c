/* Leases: kept while their process lives, told of in time when they cannot be, free again when it is gone.
 * SPDX-License-Identifier: MIT */
#include "redis/member.h"

#include <poll.h>

enum { LEASE_MS = 300 };

static _Atomic int losses;
static weir_lost last_loss;
static weir_time told_at;

static void note_loss(const weir_lost *lost, void *arg)
{
    (void)arg;
    last_loss = *lost;
    told_at = weir_now();
    atomic_fetch_add(&losses, 1);
}

static void test_a_lease_is_renewed_while_every_worker_is_busy(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "busy", WEIR_MUTEX(.lease_ns = MS(2000), .on_lost = note_loss));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_time until, end = patience();

    losses = 0;
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    until = weir_permit_until(&p);
    assert_true(until > weir_now() && until <= weir_in_ms(2000));
    while (weir_permit_until(&p) <= until && weir_now() < end)
        ; /* this thread waits for nothing */
    assert_true(weir_permit_until(&p) > until);
    assert_int_equal(weir_guard_enter(&q, guard, WEIR_NOW_OR_NEVER), WEIR_ELOCKED);
    assert_int_equal(losses, 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_an_idle_fleet_sends_nothing_and_a_holder_only_renewals(void)
{
    enum { KEPT_LEASE_MS = 3000 }; /* what is held here is kept, however busy the machine is */
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "idle", WEIR_CONCURRENCY(.limit = 3, .lease_ns = MS(KEPT_LEASE_MS)));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    long long before, sent;
    weir_time begin;

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&q, guard, WEIR_NOW_OR_NEVER), 0);
    before = scripts_run();
    begin = weir_now();
    AWAIT(scripts_run() > before);
    weir_sleep(weir_in_ms(KEPT_LEASE_MS));
    sent = scripts_run() - before;
    /* One per third of a lease, for both permits. */
    assert_in_range(sent, 2, (weir_now() - begin) / MS(KEPT_LEASE_MS / 3) + 2);
    weir_guard_leave(&p, 0);
    weir_guard_leave(&q, 0);
    await_number(0, "ZCARD weir:{idle}:held");
    await_silence(KEPT_LEASE_MS);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* One line of MONITOR. Commands of scripts are not sent. */
static void count_command(const char *line, int *renewals, int *others)
{
    bool renews =
        strstr(line, "\"EVALSHA\"") && strstr(line, "\"renew\"") && strstr(line, "weir:{held ");

    if (strstr(line, " lua] "))
        return;
    *renewals += renews;
    *others += !renews;
    if (!renews)
        printf("%s\n", line);
}

/* Commands that clients send while the server is watched for so long: how many renew permits of the guards "held ...", and how
 * many others. */
static void count_commands(int *renewals, int *others, int ms)
{
    redisContext *context = redisConnectUnix(server.socket);
    weir_time until;
    redisReply *reply;

    *renewals = *others = 0;
    reply = redisCommand(context, "MONITOR");
    freeReplyObject(reply);
    until = weir_in_ms(ms);
    while (weir_now() < until) {
        struct pollfd fd = { .fd = context->fd, .events = POLLIN };

        if (poll(&fd, 1, 20) == 1)
            assert_int_equal(redisBufferRead(context), REDIS_OK);
        for (;;) {
            assert_int_equal(redisGetReplyFromReader(context, (void **)&reply), REDIS_OK);
            if (!reply)
                break;
            count_command(reply->str, renewals, others);
            freeReplyObject(reply);
        }
    }
    redisFree(context);
}

static int nothing(void **value, void *arg)
{
    (void)value, (void)arg;
    return 0;
}

/* Guards of every kind are open, groups have run and are idle, and permits are held here and in other processes. */
static void test_an_idle_fleet_of_processes_sends_nothing_but_renewals_of_held_permits(void)
{
    enum { STORES = 3, KINDS = 4, MEMBERS = 2, QUIET_LEASE_MS = 3000, LOOK_MS = 4500 };
    static const char *const kinds[KINDS] = { "idle permits", "idle mutex", "idle rate",
                                              "idle window" };
    const weir_guard_options *opt[KINDS] = {
        WEIR_CONCURRENCY(.limit = 8, .lease_ns = MS(LEASE_MS)),
        WEIR_MUTEX(.lease_ns = MS(LEASE_MS)),
        WEIR_RATE(.limit = 1000, .period_ns = MS(10)),
        WEIR_FREQUENCY(.limit = 1000, .period_ns = MS(10)),
    };
    weir_store *store[STORES];
    weir_guard *guard[STORES][KINDS], *held;
    struct member member[MEMBERS];
    weir_permit p = WEIR_PERMIT;
    weir_executor *ex[STORES];
    int renewals, others;
    weir_time begin, end;
    int64_t thirds;

    for (int i = 0; i < STORES; i++) {
        store[i] = store_of(NULL);
        assert_int_equal(weir_executor_new(&ex[i], WEIR_POLICY(.workers = 1), NULL), 0);
        for (int k = 0; k < KINDS; k++) {
            weir_group *group;

            guard[i][k] = guard_of(store[i], kinds[k], opt[k]);
            assert_int_equal(weir_group_get(&group, ex[i], kinds[k]), 0);
            assert_int_equal(weir_group_guard_add(NULL, group, guard[i][k], 0), 0);
            for (int task = 0; task < 20; task++)
                assert_int_equal(weir_submit(NULL, group, nothing, NULL, NULL), 0);
        }
        assert_int_equal(weir_executor_drain(ex[i], patience()), 0);
    }
    for (int i = 0; i < MEMBERS; i++)
        member_start(&member[i], "held there", MEMBERS, QUIET_LEASE_MS, "/dev/null", "hold", 0, 0);
    AWAIT(server_do(&server, "ZCARD %s", "weir:{held there}:held") == MEMBERS);
    held = guard_of(store[0], "held here",
                    WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(QUIET_LEASE_MS)));
    assert_int_equal(weir_guard_enter(&p, held, WEIR_NOW_OR_NEVER), 0);
    AWAIT(server_do(&server, "HLEN %s", "weir:{idle permits}:wants") == 0 &&
          server_do(&server, "HLEN %s", "weir:{idle mutex}:wants") == 0);
    end = patience();
    do { /* what was sent before may still be on its way */
        begin = weir_now();
        count_commands(&renewals, &others, LOOK_MS);
        thirds = (weir_now() - begin) / MS(QUIET_LEASE_MS / 3);
        printf("%d renewals, %d other commands\n", renewals, others);
    } while (others && weir_now() < end);
    assert_int_equal(others, 0);
    /* Each of three processes once per third of a lease. */
    assert_in_range(renewals, 3, 3 * (thirds + 2));
    weir_guard_leave(&p, 0);
    weir_guard_unref(held);
    for (int i = 0; i < MEMBERS; i++)
        member_kill(&member[i]);
    for (int i = 0; i < STORES; i++) {
        weir_executor_free(ex[i]);
        for (int k = 0; k < KINDS; k++)
            weir_guard_unref(guard[i][k]);
        weir_store_free(store[i]);
    }
}

static void test_a_holder_that_cannot_renew_is_told_a_margin_before_its_lease_ends(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "margin",
                 WEIR_MUTEX(.lease_ns = MS(1000), .margin_ns = MS(400), .on_lost = note_loss));
    weir_permit p = WEIR_PERMIT;
    weir_time until, end = patience();
    struct ruler ruler;

    losses = 0;
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    server_freeze(&server);
    ruler_start(&ruler);
    until = weir_permit_until(&p);
    while (!atomic_load(&losses) && weir_now() < end)
        weir_sleep(weir_in_ms(1));
    assert_int_equal(losses, 1);
    assert_true(last_loss.token == p.token && last_loss.permits == 1 && !last_loss.task);
    assert_true(last_loss.until >= until && told_at >= last_loss.until - MS(400));
    assert_true(told_at < last_loss.until + ruler_end(&ruler));
    assert_int_equal(weir_permit_until(&p), 0);
    server_thaw(&server);
    assert_int_equal(weir_guard_leave(&p, 0), 0);
    assert_int_equal(guard_stats(guard).lost, 1);
    await_number(0, "ZCARD weir:{margin}:held");
    weir_guard_unref(guard);
    weir_store_free(store);
}

static int hold_until_cancelled(void **value, void *arg)
{
    weir_permit p = WEIR_PERMIT;
    int rc = weir_guard_enter(&p, arg, patience());

    (void)value;
    if (rc)
        return rc;
    rc = weir_sleep(patience());
    weir_guard_leave(&p, 0);
    return rc;
}

static void test_the_task_of_a_lost_permit_is_cancelled(void)
{
    weir_store *store = store_of(WEIR_FLEET(.host = "here"));
    weir_guard *guard =
        guard_of(store, "task", WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(3600000)));
    weir_holder holder[2];
    weir_eviction eviction[2];
    weir_executor *ex;
    weir_task *task;
    weir_result result = WEIR_RESULT;
    weir_audit audit = { .size = sizeof(audit) };
    weir_message text;

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
    assert_int_equal(
        weir_submit_key(&task, ex, "customer", hold_until_cancelled, guard, WEIR_TASK(.id = "7")),
        0);
    await_number(1, "ZCARD weir:{task}:held");

    /* Listed: holder, host, since, until. */
    assert_int_equal(weir_guard_holders(holder, 2, guard), 1);
    assert_string_equal(holder[0].host, "here");
    assert_string_equal(holder[0].task, "customer/7");
    assert_int_equal(holder[0].pid, getpid());
    assert_true(holder[0].since <= weir_now() && holder[0].until > weir_now());
    assert_string_equal(holder[1].id, "");
    assert_int_equal(weir_guard_describe(&text, guard), 0);
    assert_non_null(strstr(text.text, "1 of 2 permits in use, held by here process"));

    /* Audited. */
    assert_int_equal(weir_guard_audit(&audit, guard), 0);
    assert_true(audit.sound && audit.held == 1 && audit.limit == 2 && audit.orphans == 0);

    /* Taken away, with an entry of the operator. */
    assert_int_equal(weir_guard_evict(guard, "nobody:1", "op", "x"), WEIR_EALREADY);
    assert_int_equal(weir_guard_evict(guard, holder[0].id, "alice", "stuck since noon"), 0);
    assert_int_equal(weir_guard_evict(guard, holder[0].id, "alice", "again"), WEIR_EALREADY);
    assert_int_equal(weir_task_wait(&result, task, patience()), 0);
    assert_int_equal(result.outcome, WEIR_CANCELLED);
    assert_int_equal(weir_guard_evictions(eviction, 2, guard), 1);
    assert_string_equal(eviction[0].operator_name, "alice");
    assert_string_equal(eviction[0].why, "stuck since noon");
    assert_string_equal(eviction[0].id, holder[0].id);
    assert_non_null(strstr(eviction[0].holder, "here"));
    weir_task_unref(task);
    weir_executor_free(ex);
    assert_int_equal(guard_stats(guard).lost, 1);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_killed_holder_s_permit_is_free_after_its_lease(void)
{
    struct member member;
    weir_store *store;
    weir_guard *guard;
    weir_permit p = WEIR_PERMIT;
    struct ruler ruler;
    weir_time killed;
    int64_t took;

    member_start(&member, "killed", 1, LEASE_MS, "/dev/null", "hold", 0, 0);
    await_number(1, "ZCARD weir:{killed}:held");
    member_kill(&member);
    ruler_start(&ruler);
    killed = weir_now();
    store = store_of(NULL);
    guard = guard_of(store, "killed", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    /* No other call is made: the waiting one itself knows when to look. */
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    took = weir_now() - killed;
    assert_true(took < MS(LEASE_MS + 1000) + ruler_end(&ruler));
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_killed_waiter_does_not_keep_the_line_waiting(void)
{
    enum { KEPT_LEASE_MS = 1500 }; /* what is held here is kept, however busy the machine is */
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "line", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(KEPT_LEASE_MS)));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    struct member member[3];
    struct ruler ruler;
    weir_time left;
    int64_t took;

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < 3; i++) {
        member_start(&member[i], "line", 1, KEPT_LEASE_MS, "/dev/null", "hold", 0, 0);
        await_number(i + 1, "ZCARD weir:{line}:line");
    }
    for (int i = 0; i < 3; i++)
        member_kill(&member[i]);
    ruler_start(&ruler);
    left = weir_now();
    weir_guard_leave(&p, 0); /* goes to the first of the dead: with a lease, so it comes back */
    assert_int_equal(weir_guard_enter(&q, guard, patience()), 0);
    took = weir_now() - left;
    assert_true(took < MS(KEPT_LEASE_MS + 1000) + ruler_end(&ruler));
    weir_guard_leave(&q, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_stopped_holder_finds_its_lease_lost_and_its_token_outdated(void)
{
    enum { KEPT_LEASE_MS = 1500 }; /* what is held here is kept, however busy the machine is */
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "stopped", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(KEPT_LEASE_MS)));
    struct member member;
    weir_permit p = WEIR_PERMIT;
    weir_holder holder;

    member_start(&member, "stopped", 1, KEPT_LEASE_MS, "/dev/null", "hold", 0, 0);
    await_number(1, "ZCARD weir:{stopped}:held");
    assert_int_equal(weir_guard_holders(&holder, 1, guard), 1);
    kill(member.pid, SIGSTOP);
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    assert_true(p.token > holder.token); /* what checks tokens refuses the one that was stopped */
    kill(member.pid, SIGCONT);
    weir_sleep(weir_in_ms(2 * KEPT_LEASE_MS)); /* its renewals come, and are refused */
    assert_int_equal(server_do(&server, "ZCARD weir:{stopped}:held"), 1);
    assert_true(weir_permit_until(&p) > weir_now());
    member_kill(&member);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_killed_holder_s_permit_is_free_after_its_lease),
        TEST(test_a_killed_waiter_does_not_keep_the_line_waiting),
        TEST(test_a_stopped_holder_finds_its_lease_lost_and_its_token_outdated),
        TEST(test_a_lease_is_renewed_while_every_worker_is_busy),
        TEST(test_an_idle_fleet_sends_nothing_and_a_holder_only_renewals),
        TEST(test_an_idle_fleet_of_processes_sends_nothing_but_renewals_of_held_permits),
        TEST(test_a_holder_that_cannot_renew_is_told_a_margin_before_its_lease_ends),
        TEST(test_the_task_of_a_lost_permit_is_cancelled),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
