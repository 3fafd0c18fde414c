/* Leases: kept while their process lives, told of in time when they cannot be, free again when it is gone.
 * SPDX-License-Identifier: MIT */
#include "redis/member.h"

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
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "idle", WEIR_CONCURRENCY(.limit = 3, .lease_ns = MS(LEASE_MS)));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    long long before, sent;

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&q, guard, WEIR_NOW_OR_NEVER), 0);
    before = scripts_run();
    weir_sleep(weir_in_ms(4 * LEASE_MS));
    sent = scripts_run() - before;
    assert_true(sent >= 8 && sent <= 13); /* one per third of a lease, for both permits */
    weir_guard_leave(&p, 0);
    weir_guard_leave(&q, 0);
    await_number(0, "ZCARD weir:{idle}:held");
    weir_sleep(weir_in_ms(LEASE_MS / 2)); /* a renewal may be under way */
    before = scripts_run();
    weir_sleep(weir_in_ms(3 * LEASE_MS));
    assert_int_equal(scripts_run() - before, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_holder_that_cannot_renew_is_told_a_margin_before_its_lease_ends(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "margin",
                 WEIR_MUTEX(.lease_ns = MS(1000), .margin_ns = MS(400), .on_lost = note_loss));
    weir_permit p = WEIR_PERMIT;
    weir_time until, end = patience();

    losses = 0;
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    server_freeze(&server);
    until = weir_permit_until(&p);
    while (!atomic_load(&losses) && weir_now() < end)
        weir_sleep(weir_in_ms(1));
    assert_int_equal(losses, 1);
    assert_true(last_loss.token == p.token && last_loss.permits == 1 && !last_loss.task);
    assert_true(last_loss.until >= until && told_at >= last_loss.until - MS(400));
    assert_true(told_at < last_loss.until); /* unless this machine is slower than the margin */
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
        guard_of(store, "task", WEIR_CONCURRENCY(.limit = 2, .lease_ns = MS(LEASE_MS)));
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

    /* Listed: who, where, since, until. */
    assert_int_equal(weir_guard_holders(holder, 2, guard), 1);
    assert_string_equal(holder[0].host, "here");
    assert_string_equal(holder[0].task, "customer/7");
    assert_int_equal(holder[0].pid, getpid());
    assert_true(holder[0].since <= weir_now() && holder[0].until > weir_now() - MS(LEASE_MS));
    assert_string_equal(holder[1].id, "");
    assert_int_equal(weir_guard_describe(&text, guard), 0);
    assert_non_null(strstr(text.text, "1 of 2 permits in use, held by here process"));

    /* Audited. */
    assert_int_equal(weir_guard_audit(&audit, guard), 0);
    assert_true(audit.sound && audit.held == 1 && audit.limit == 2 && audit.orphans == 0);

    /* Taken away, with an entry of who did that. */
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
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "line", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    struct member member[3];
    struct ruler ruler;
    weir_time left;
    int64_t took;

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < 3; i++) {
        member_start(&member[i], "line", 1, LEASE_MS, "/dev/null", "hold", 0, 0);
        await_number(i + 1, "ZCARD weir:{line}:line");
    }
    for (int i = 0; i < 3; i++)
        member_kill(&member[i]);
    ruler_start(&ruler);
    left = weir_now();
    weir_guard_leave(&p, 0); /* goes to the first of the dead: with a lease, so it comes back */
    assert_int_equal(weir_guard_enter(&q, guard, patience()), 0);
    took = weir_now() - left;
    assert_true(took < MS(LEASE_MS + 1000) + ruler_end(&ruler));
    weir_guard_leave(&q, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static void test_a_stopped_holder_finds_its_lease_lost_and_its_token_outdated(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "stopped", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    struct member member;
    weir_permit p = WEIR_PERMIT;
    weir_holder holder;

    member_start(&member, "stopped", 1, LEASE_MS, "/dev/null", "hold", 0, 0);
    await_number(1, "ZCARD weir:{stopped}:held");
    assert_int_equal(weir_guard_holders(&holder, 1, guard), 1);
    kill(member.pid, SIGSTOP);
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    assert_true(p.token > holder.token); /* what checks tokens refuses the one that was stopped */
    kill(member.pid, SIGCONT);
    weir_sleep(weir_in_ms(2 * LEASE_MS)); /* its renewals come, and are refused */
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
        TEST(test_a_holder_that_cannot_renew_is_told_a_margin_before_its_lease_ends),
        TEST(test_the_task_of_a_lost_permit_is_cancelled),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
