/* Ways in which other systems broke limits, locks and rates across machines, and what happens here.
 * SPDX-License-Identifier: MIT */
#include "redis/member.h"

#include <pthread.h>
#include <time.h>

enum { LEASE_MS = 200 };

/* Where a counter stands beside the list of holders, a holder whose description is gone is never counted down. */
static void test_a_killed_holder_without_a_description_blocks_no_caller(void)
{
    struct member member;
    weir_store *store = store_of(NULL);
    weir_guard *guard;
    weir_permit p = WEIR_PERMIT;

    member_start(&member, "trimmed", 1, LEASE_MS, "/dev/null", "hold", 0, 0);
    await_number(1, "ZCARD weir:{trimmed}:held");
    server_do(&server, "DEL weir:{trimmed}:info");
    member_kill(&member);
    guard = guard_of(store, "trimmed", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* Where there are several ways back for a permit, one of them forgets a list. */
static void test_permits_come_back_whole_by_every_way(void)
{
    enum {
        WAYS_LEASE_MS = 2000
    }; /* those that are held here are kept, however busy the machine is */
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "ways", WEIR_CONCURRENCY(.limit = 4, .lease_ns = MS(WAYS_LEASE_MS)));
    weir_permit p[4] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };
    weir_audit audit = { .size = sizeof(audit) };
    struct member member;
    weir_holder holder[4];

    member_start(&member, "ways", 4, WAYS_LEASE_MS, "/dev/null", "hold", 0, 0);
    await_number(1, "ZCARD weir:{ways}:held");
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_guard_enter(&p[i], guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&p[3], guard, WEIR_NOW_OR_NEVER), WEIR_EFULL);
    member_kill(&member);                            /* ends with its lease */
    assert_int_equal(weir_guard_leave(&p[0], 0), 0); /* leaves */
    assert_int_equal(weir_guard_release(&p[1]), 0);  /* was never made */
    while (weir_guard_holders(holder, 4, guard) > 1 && strcmp(holder[0].id, ""))
        weir_sleep(weir_in_ms(10));
    assert_int_equal(weir_guard_evict(guard, holder[0].id, "op", ""), 0); /* is taken away, */
    assert_int_equal(weir_guard_leave(&p[2], 0), 0);                      /* and leaves then */
    await_number(0, "ZCARD weir:{ways}:held");
    assert_int_equal(weir_guard_audit(&audit, guard), 0);
    assert_true(audit.sound && audit.held == 0 && audit.waiting == 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(weir_guard_enter(&p[i], guard, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < 4; i++)
        weir_guard_leave(&p[i], 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static _Atomic bool may_leave;

static void *wait_and_leave(void *arg)
{
    weir_permit p = WEIR_PERMIT;

    if (CHECK(weir_guard_enter(&p, arg, patience()) == 0)) {
        AWAIT(may_leave);
        weir_guard_leave(&p, 0);
    }
    return NULL;
}

static void *wait_and_go(void *arg)
{
    weir_permit p = WEIR_PERMIT;

    if (CHECK(weir_guard_enter(&p, arg, patience()) == 0))
        weir_guard_leave(&p, 0);
    return NULL;
}

static long long published(void)
{
    char *text = server_say(&server, "INFO commandstats");
    const char *at = strstr(text, "cmdstat_publish:calls=");
    long long calls = at ? strtoll(at + 22, NULL, 10) : 0;

    free(text);
    return calls;
}

/* Where all waiters are woken for one permit, they ask all at once. */
static void test_a_freed_permit_wakes_one_waiter(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "herd", WEIR_MUTEX());
    weir_permit p = WEIR_PERMIT;
    pthread_t thread[8];
    long long before, asked;

    may_leave = false;
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, wait_and_leave, guard);
    await_number(8, "ZCARD weir:{herd}:line");
    before = published();
    asked = scripts_run();
    weir_guard_leave(&p, 0);
    await_number(7, "ZCARD weir:{herd}:line");
    assert_int_equal(published() - before, 1);
    assert_true(scripts_run() - asked <= 2); /* the leave; a renewal, if this machine is slow */
    may_leave = true;
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(published() - before, 8);
    weir_guard_unref(guard);
    weir_store_free(store);
}

static _Atomic int done;

static int count_one(void **value, void *arg)
{
    (void)value, (void)arg;
    atomic_fetch_add(&done, 1);
    return 0;
}

/* Where the next job is taken before its limit is looked at, a full or a paced group at the head keeps all others waiting. */
static void test_a_group_that_the_fleet_holds_back_delays_no_other(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *full = guard_of(store, "head", WEIR_CONCURRENCY(.limit = 1));
    weir_guard *paced = guard_of(store, "pace", WEIR_RATE(.limit = 1, .period_ns = MS(3600000)));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_executor *ex;
    weir_group *group[3];
    weir_time end = patience();

    assert_int_equal(weir_guard_enter(&p, full, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_guard_enter(&q, paced, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .inflight_max = 2), NULL), 0);
    assert_int_equal(weir_group_get(&group[0], ex, "full"), 0);
    assert_int_equal(weir_group_get(&group[1], ex, "paced"), 0);
    assert_int_equal(weir_group_get(&group[2], ex, "free"), 0);
    assert_int_equal(weir_group_guard_add(NULL, group[0], full, 0), 0);
    assert_int_equal(weir_group_guard_add(NULL, group[1], paced, 0), 0);
    done = 0;
    for (int i = 0; i < 3000; i++)
        assert_int_equal(weir_submit(NULL, group[i % 3], count_one, NULL, NULL), 0);
    while (done < 1000 && weir_now() < end)
        weir_sleep(weir_in_ms(1));
    assert_int_equal(done, 1000);
    weir_executor_free(ex);
    weir_guard_leave(&p, 0);
    weir_guard_unref(full);
    weir_guard_unref(paced);
    weir_store_free(store);
}

/* Where the cap is read from another key than the one that counts, it is bypassed, and figures show nothing. */
static void test_figures_are_those_of_the_key_that_limits(void)
{
    static const char *const names[] = { "tenant:7", "tenant:7:{x}", "tenant" };
    weir_store *store = store_of(WEIR_FLEET(.application = "a{b}"));
    weir_guard *guard[3];
    weir_permit p[3];

    for (int i = 0; i < 3; i++) {
        guard[i] = guard_of(store, names[i], WEIR_CONCURRENCY(.limit = i + 1));
        p[i] = WEIR_PERMIT;
        assert_int_equal(weir_guard_enter_n(&p[i], guard[i], i + 1, WEIR_NOW_OR_NEVER), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(guard_stats(guard[i]).used, i + 1);
        assert_int_equal(guard_stats(guard[i]).available, 0);
        weir_guard_leave(&p[i], 0);
        weir_guard_unref(guard[i]);
    }
    weir_store_free(store);
}

/* Where a semaphore has a duration, work that lasts longer is not counted any more, and more run than the limit. */
static void test_work_that_outlasts_its_lease_keeps_its_permit(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "long", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(1000)));
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    weir_time first;

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    first = weir_permit_until(&p);
    AWAIT(weir_now() > first); /* the lease it began with is over */
    assert_int_equal(weir_guard_enter(&q, guard, WEIR_NOW_OR_NEVER), WEIR_EFULL);
    assert_true(weir_permit_until(&p) > first);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* Where those that are blocked are let go by the holder that finishes next, they stay blocked if none does. */
static void test_a_waiter_goes_on_when_a_dead_holder_s_lease_ends_though_no_holder_leaves(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "blocked", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    weir_permit p = WEIR_PERMIT;
    struct member member;
    pthread_t thread;

    member_start(&member, "blocked", 1, LEASE_MS, "/dev/null", "hold", 0, 0);
    await_number(1, "ZCARD weir:{blocked}:held");
    pthread_create(&thread, NULL, wait_and_go, guard);
    await_number(1, "ZCARD weir:{blocked}:line");
    member_kill(&member);
    pthread_join(thread, NULL); /* it checks that it entered */
    assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* Where each of many waiters looks at the one row again and again, the row is all that the server does. */
static void test_many_waiters_ask_the_server_no_more_than_one(void)
{
    enum { WAITERS = 50, WAIT_LEASE_MS = 2000 };
    weir_store *holder = store_of(NULL), *store = store_of(NULL);
    weir_guard *held = guard_of(holder, "row", WEIR_MUTEX(.lease_ns = MS(WAIT_LEASE_MS)));
    weir_guard *guard = guard_of(store, "row", WEIR_MUTEX(.lease_ns = MS(WAIT_LEASE_MS)));
    weir_permit p = WEIR_PERMIT;
    pthread_t thread[WAITERS];
    weir_time begin;
    long long before, sent, thirds;

    assert_int_equal(weir_guard_enter(&p, held, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < WAITERS; i++)
        pthread_create(&thread[i], NULL, wait_and_go, guard);
    await_number(WAITERS, "ZCARD weir:{row}:line");
    begin = weir_now();
    before = scripts_run();
    weir_sleep(weir_in_ms(2 * WAIT_LEASE_MS));
    sent = scripts_run() - before;
    thirds = (weir_now() - begin) / MS(WAIT_LEASE_MS / 3) + 2;
    /* Two processes, each of which renews all it has at once, and looks when a lease would have ended. */
    assert_true(sent <= 2 * 2 * thirds);
    weir_guard_leave(&p, 0);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(thread[i], NULL);
    weir_guard_unref(held);
    weir_guard_unref(guard);
    weir_store_free(holder);
    weir_store_free(store);
}

/* Where a window is found by the time of day, midnight begins it anew or never ends it. */
static void test_a_window_that_began_before_midnight_still_counts(void)
{
    const int64_t day_us = INT64_C(86400000000);
    weir_store *store = store_of(NULL);
    int64_t now_us = server_do(&server, "EVAL %s 0",
                               "local t = redis.call('TIME') return t[1] * 1000000 + t[2]");
    int64_t days = 13;
    weir_guard *guard;
    weir_permit p = WEIR_PERMIT;

    while (now_us % (days * day_us) <= day_us && days > 2)
        days--; /* one whose present window has a midnight in it */
    guard =
        guard_of(store, "midnight",
                 WEIR_FREQUENCY(.mode = WEIR_FIXED, .limit = 1, .period_ns = days * day_us * 1000));
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    assert_true(server_do(&server, "HGET weir:{midnight}:use begin") <= now_us - now_us % day_us);
    p = WEIR_PERMIT;
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), WEIR_ETOOFAST);
    assert_true(p.retry_at > weir_now());
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* Where overrides of limits are kept per group, they stay for ever. */
static void test_nothing_of_a_guard_that_is_not_used_stays(void)
{
    weir_store *store = store_of(WEIR_FLEET(.keep_ms = 1000));
    weir_guard *guard[3];
    weir_permit p[3] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };

    free(server_say(&server, "FLUSHALL"));
    guard[0] = guard_of(store, "gone", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(LEASE_MS)));
    guard[1] = guard_of(store, "gone too", WEIR_RATE(.limit = 1, .period_ns = MS(100)));
    guard[2] = guard_of(store, "and this", WEIR_FREQUENCY(.limit = 1, .period_ns = MS(100)));
    assert_int_equal(weir_guard_change(guard[0], WEIR_GUARD_OPTIONS(.limit = 7), NULL, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_guard_enter(&p[i], guard[i], WEIR_NOW_OR_NEVER), 0);
        weir_guard_leave(&p[i], 0);
        weir_guard_unref(guard[i]);
    }
    weir_store_free(store);
    assert_int_equal(server_do(&server, "EVAL %s 0",
                               "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do "
                               "if redis.call('PTTL', key) == -1 then n = n + 1 end end return n"),
                     0);
    await_number(0, "DBSIZE");
}

/* Where failures of many groups are each repaired by a look at all, the whole halts. */
static void test_many_guards_with_dead_holders_hold_up_no_other(void)
{
    enum { MANY = 200 };
    weir_store *dead = store_of(NULL), *store = store_of(NULL);
    weir_guard *guard;
    weir_permit p = WEIR_PERMIT;
    long long before;

    for (int i = 0; i < MANY; i++) { /* held by a process that is not there any more */
        char name[32];

        snprintf(name, sizeof(name), "many-%d", i);
        guard = guard_of(dead, name, WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(60000)));
        weir_guard_unref(guard);
        server_do(&server, "ZADD weir:{%s}:held 1 nobody:1", name);
        server_do(&server, "PEXPIRE weir:{%s}:held 60000", name);
    }
    guard = guard_of(store, "lively", WEIR_CONCURRENCY(.limit = 1));
    before = scripts_run();
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    assert_int_equal(scripts_run() - before, 1); /* the others are not looked at, */
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    guard = guard_of(store, "many-7", WEIR_CONCURRENCY(.limit = 1, .lease_ns = MS(60000)));
    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0); /* until they are used */
    weir_guard_leave(&p, 0);
    weir_guard_unref(guard);
    weir_store_free(dead);
    weir_store_free(store);
}

static _Atomic int inside, most;

static int be_inside(void **value, void *arg)
{
    int now = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most);

    (void)value, (void)arg;
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
        ;
    weir_yield();
    atomic_fetch_sub(&inside, 1);
    atomic_fetch_add(&done, 1);
    return 0;
}

/* Where a limit is set in two places, for all groups and for this one, two run with a limit of one, and those that wait are in no list. */
static void test_a_limit_of_one_that_was_set_twice_lets_one_run_and_counts_waiting_tasks(void)
{
    enum { TASKS = 300 };
    weir_store *store[2] = { store_of(NULL), store_of(NULL) };
    weir_guard *guard[2];
    weir_permit p = WEIR_PERMIT;
    weir_group *group[2];
    weir_executor *ex[2];

    inside = most = done = 0;
    for (int i = 0; i < 2; i++) {
        weir_group_stats s = { .size = sizeof(s) };

        guard[i] = guard_of(store[i], "twice", WEIR_CONCURRENCY(.limit = 10));
        assert_int_equal(weir_guard_change(guard[i], WEIR_GUARD_OPTIONS(.limit = 1), NULL, NULL),
                         0);
        if (i == 0)
            assert_int_equal(weir_guard_enter(&p, guard[0], WEIR_NOW_OR_NEVER), 0);
        assert_int_equal(
            weir_executor_new(&ex[i], WEIR_POLICY(.workers = 2, .group_limit = 10), NULL), 0);
        assert_int_equal(weir_group_get(&group[i], ex[i], "customer"), 0);
        assert_int_equal(weir_group_guard_add(NULL, group[i], guard[i], 0), 0);
        for (int k = 0; k < TASKS; k++)
            assert_int_equal(weir_submit(NULL, group[i], be_inside, NULL, NULL), 0);
        assert_int_equal(weir_group_stats_get(&s, ex[i], "customer"), 0);
        assert_int_equal(s.waiting + s.running, TASKS);
    }
    assert_int_equal(most, 0); /* the one permit is out */
    weir_guard_leave(&p, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_executor_drain(ex[i], patience()), 0);
    assert_int_equal(done, 2 * TASKS);
    assert_int_equal(most, 1);
    for (int i = 0; i < 2; i++) {
        weir_executor_free(ex[i]);
        weir_guard_unref(guard[i]);
        weir_store_free(store[i]);
    }
}

/* Where the first so many by some order count as inside, one that came early and sorts late is not counted, and others come on top. */
static void test_as_many_are_inside_as_permits_in_whatever_order_they_came_and_sort(void)
{
    enum { CLIENTS = 8, LIMIT = 2, ROUNDS = 200 };
    weir_permit p[CLIENTS];
    weir_store *store[CLIENTS];
    weir_guard *guard[CLIENTS];
    bool in[CLIENTS] = { false };
    uint64_t seed = (uint64_t)getpid();
    int count = 0;

    for (int i = 0; i < CLIENTS; i++) { /* ids by chance: they sort in another order */
        store[i] = store_of(NULL);
        guard[i] = guard_of(store[i], "sorted", WEIR_CONCURRENCY(.limit = LIMIT));
        p[i] = WEIR_PERMIT;
    }
    for (int round = 0; round < ROUNDS; round++) {
        int i;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        i = (int)((seed >> 33) % CLIENTS);
        if (in[i]) {
            weir_guard_leave(&p[i], 0);
            await_number(--count, "ZCARD weir:{sorted}:held");
        } else {
            int rc = weir_guard_enter(&p[i], guard[i], WEIR_NOW_OR_NEVER);
            assert_int_equal(rc, count < LIMIT ? 0 : WEIR_EFULL);
            count += rc == 0;
        }
        in[i] = !in[i] && p[i].guard;
        assert_int_equal(server_do(&server, "ZCARD weir:{sorted}:held"), count);
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (in[i])
            weir_guard_leave(&p[i], 0);
        weir_guard_unref(guard[i]);
        weir_store_free(store[i]);
    }
}

static int64_t processor_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Some microseconds of work. */
static int work(void **value, void *arg)
{
    uint64_t sum = (uint64_t)(uintptr_t)arg;

    for (int i = 0; i < 5000; i++)
        sum = sum * 6364136223846793005u + 1442695040888963407u;
    *value = (void *)(uintptr_t)sum;
    return 0;
}

/* Processor time of this process for so many tasks, of the client's own threads, too. */
static int64_t spend(weir_executor *ex, weir_group *group)
{
    int64_t begin = processor_ns();

    for (int i = 0; i < 5000; i++)
        assert_int_equal(weir_submit(NULL, group, work, NULL, NULL), 0);
    assert_int_equal(weir_executor_drain(ex, patience()), 0);
    return processor_ns() - begin;
}

/* Where every start asks the database, a limit that never binds halves the throughput. Both in turns, the best of each counts. */
static void test_a_limit_that_never_binds_costs_no_more_than_a_twentieth(void)
{
    weir_store *store = store_of(NULL);
    weir_guard *guard = guard_of(store, "ample", WEIR_CONCURRENCY(.limit = 1000000));
    int64_t with = INT64_MAX, without = INT64_MAX;
    weir_group *limited, *free_one;
    weir_executor *ex;
    long long sent;

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .group_limit = 1000), NULL),
                     0);
    assert_int_equal(weir_group_get(&limited, ex, "limited"), 0);
    assert_int_equal(weir_group_get(&free_one, ex, "free"), 0);
    assert_int_equal(weir_group_guard_add(NULL, limited, guard, 0), 0);
    sent = scripts_run();
    for (int round = 0; round < 60; round++) {
        int64_t one = spend(ex, limited), other = spend(ex, free_one);

        with = one < with ? one : with;
        without = other < without ? other : without;
        if (round >= 4 && (SANITIZED || with <= without + without / 20))
            break;
    }
    sent = scripts_run() - sent;
    printf("5000 tasks: %lld us with the limit, %lld us without; %lld scripts in all\n",
           (long long)with / 1000, (long long)without / 1000, sent);
    if (!SANITIZED) /* instrumentation costs what it costs */
        assert_true(with <= without + without / 20);
    assert_true(sent < 1000);
    weir_executor_free(ex);
    weir_guard_unref(guard);
    weir_store_free(store);
}

/* ---- another language ------------------------------------------------------------------------------- */

static void test_a_python_client_shares_a_limit_with_weir(void)
{
    char log[3][160], command[1024];
    struct member member[2], python;
    char *argv[] = { (char *)"/usr/bin/python3",
                     (char *)WEIR_SOURCE "/examples/fleet_client.py",
                     server.socket,
                     (char *)WEIR_SOURCE "/src/redis/scripts",
                     (char *)"both",
                     (char *)"2",
                     (char *)"300",
                     (char *)"150",
                     log[2],
                     NULL };

    for (int i = 0; i < 3; i++)
        snprintf(log[i], sizeof(log[i]), "%s/both%d", server.dir, i);
    for (int i = 0; i < 2; i++)
        member_start(&member[i], "both", 2, 300, log[i], "work", (uint64_t)i + 1, 0);
    member_run(&python, argv);
    close(python.in);
    while (read(python.out, command, sizeof(command)) > 0)
        ; /* until it is done */
    assert_int_equal(member_reap(&python), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(member_end(&member[i]), 0);
    fflush(stdout);
    snprintf(command, sizeof(command),
             "/usr/bin/python3 %s/tests/redis/history.py 300 both=2 - %s %s %s", WEIR_SOURCE,
             log[0], log[1], log[2]);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_killed_holder_without_a_description_blocks_no_caller),
        TEST(test_permits_come_back_whole_by_every_way),
        TEST(test_a_freed_permit_wakes_one_waiter),
        TEST(test_a_group_that_the_fleet_holds_back_delays_no_other),
        TEST(test_figures_are_those_of_the_key_that_limits),
        TEST(test_work_that_outlasts_its_lease_keeps_its_permit),
        TEST(test_a_waiter_goes_on_when_a_dead_holder_s_lease_ends_though_no_holder_leaves),
        TEST(test_many_waiters_ask_the_server_no_more_than_one),
        TEST(test_a_window_that_began_before_midnight_still_counts),
        TEST(test_nothing_of_a_guard_that_is_not_used_stays),
        TEST(test_many_guards_with_dead_holders_hold_up_no_other),
        TEST(test_a_limit_of_one_that_was_set_twice_lets_one_run_and_counts_waiting_tasks),
        TEST(test_as_many_are_inside_as_permits_in_whatever_order_they_came_and_sort),
        TEST(test_a_limit_that_never_binds_costs_no_more_than_a_twentieth),
        TEST(test_a_python_client_shares_a_limit_with_weir),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
