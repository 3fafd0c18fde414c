/* Guards of a fleet on a cluster, and across a fail-over under sentinels.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet_support.h"
#include "redis/formation.h"

static weir_store *store_of_formation(const char *url)
{
    return store_at(
        WEIR_REDIS(.url = url, .backoff_ms = 10, .backoff_max_ms = 100, .reply_ms = ANSWER_MS),
        WEIR_FLEET(.look_ms = ANSWER_MS));
}

/* The keys of one guard lie in one slot, so its scripts run wherever that is. */
static void test_guards_of_a_cluster_work_wherever_their_slot_is(void)
{
    struct cluster cluster;
    weir_store *store;

    cluster_start(&cluster, false);
    store = store_of_formation(cluster.url);
    for (int i = 0; i < 12; i++) {
        weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT, r = WEIR_PERMIT;
        weir_guard *guard, *rate;
        char name[32];

        snprintf(name, sizeof(name), "guard %d", i);
        guard = guard_of(store, name, WEIR_MUTEX());
        snprintf(name, sizeof(name), "rate %d", i);
        rate = guard_of(store, name, WEIR_RATE(.limit = 1, .period_ns = MS(3600000)));
        assert_int_equal(weir_guard_enter(&p, guard, patience()), 0);
        assert_int_equal(weir_guard_enter(&q, guard, weir_in_ms(5)), WEIR_ELOCKED);
        assert_int_equal(weir_guard_leave(&p, 0), 0);
        assert_int_equal(weir_guard_enter(&q, guard, patience()), 0);
        weir_guard_leave(&q, 0);
        assert_int_equal(weir_guard_enter(&r, rate, patience()), 0);
        r = WEIR_PERMIT;
        assert_int_equal(weir_guard_enter(&r, rate, WEIR_NOW_OR_NEVER), WEIR_ETOOFAST);
        weir_guard_unref(guard);
        weir_guard_unref(rate);
    }
    weir_store_free(store);
    cluster_stop(&cluster);
}

static void test_limits_and_tokens_survive_a_fail_over(void)
{
    struct sentinels formation;
    weir_store *a, *b;
    weir_guard *ga, *gb;
    weir_permit p = WEIR_PERMIT, q = WEIR_PERMIT;
    uint64_t first;
    int rc;

    sentinels_start(&formation);
    a = store_of_formation(formation.url);
    b = store_of_formation(formation.url);
    /* A lease that is longer than the fail-over takes. */
    ga = guard_of(a, "over", WEIR_CONCURRENCY(.limit = 7, .lease_ns = MS(600000)));
    gb = guard_of(b, "over", WEIR_CONCURRENCY(.limit = 7, .lease_ns = MS(600000)));
    assert_int_equal(weir_guard_change(ga, WEIR_GUARD_OPTIONS(.limit = 1), NULL, NULL), 0);
    assert_int_equal(weir_guard_enter(&p, ga, patience()), 0);
    first = p.token;
    /* The replica has it: what it has not yet, a fail-over loses (docs/redis.md). */
    while (server_do(&formation.replica, "ZCARD weir:{over}:held") < 1)
        weir_sleep(weir_in_ms(5));
    server_kill(&formation.master);
    do
        rc = weir_guard_enter(&q, gb, weir_in_ms(200));
    while (rc == WEIR_EAWAY);
    assert_int_equal(rc, WEIR_EFULL); /* still held */
    assert_int_equal(guard_stats(gb).limit, 1);
    assert_int_equal(guard_stats(gb).version, 2);
    assert_true(weir_permit_until(&p) > weir_now());
    weir_guard_leave(&p, 0);
    assert_int_equal(weir_guard_enter(&q, gb, patience()), 0);
    assert_true(q.token > first);
    weir_guard_leave(&q, 0);
    weir_guard_unref(ga);
    weir_guard_unref(gb);
    weir_store_free(a);
    weir_store_free(b);
    sentinels_stop(&formation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_guards_of_a_cluster_work_wherever_their_slot_is),
        TEST(test_limits_and_tokens_survive_a_fail_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
