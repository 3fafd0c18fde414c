/* Ways in which other systems broke limits, locks and rates across machines, and what happens here.
 * SPDX-License-Identifier: MIT */
#include "redis/member.h"

#include <pthread.h>

enum { LEASE_MS = 200 };

/* Where a counter stands beside the list of holders, a holder whose description is gone is never counted down. */
static void test_a_killed_holder_without_a_description_blocks_nobody(void)
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
    weir_store *store = store_of(NULL);
    weir_guard *guard =
        guard_of(store, "ways", WEIR_CONCURRENCY(.limit = 4, .lease_ns = MS(LEASE_MS)));
    weir_permit p[4] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };
    weir_audit audit = { .size = sizeof(audit) };
    struct member member;
    weir_holder holder[4];

    member_start(&member, "ways", 4, LEASE_MS, "/dev/null", "hold", 0, 0);
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

static void *wait_and_leave(void *arg)
{
    weir_permit p = WEIR_PERMIT;

    if (CHECK(weir_guard_enter(&p, arg, patience()) == 0)) {
        weir_sleep(weir_in_ms(50));
        weir_guard_leave(&p, 0);
    }
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

    assert_int_equal(weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER), 0);
    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, wait_and_leave, guard);
    await_number(8, "ZCARD weir:{herd}:line");
    before = published();
    asked = scripts_run();
    weir_guard_leave(&p, 0);
    await_number(7, "ZCARD weir:{herd}:line");
    assert_int_equal(published() - before, 1);
    assert_true(scripts_run() - asked <=
                2); /* the leave; the next one's, if this machine is slow */
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
        TEST(test_a_killed_holder_without_a_description_blocks_nobody),
        TEST(test_permits_come_back_whole_by_every_way),
        TEST(test_a_freed_permit_wakes_one_waiter),
        TEST(test_a_group_that_the_fleet_holds_back_delays_no_other),
        TEST(test_figures_are_those_of_the_key_that_limits),
        TEST(test_a_python_client_shares_a_limit_with_weir),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
