/* A cluster: each key at its node, moves and hand-overs followed, a node that dies replaced.
 * SPDX-License-Identifier: MIT */
#include "redis/client_support.h"
#include "redis/cluster.h"
#include "redis/formation.h"

#include <pthread.h>

static struct cluster cluster;

static int start_cluster(void **state)
{
    (void)state;
    cluster_start(&cluster, true);
    return 0;
}

static int stop_cluster(void **state)
{
    (void)state;
    cluster_stop(&cluster);
    return 0;
}

static void test_slots_are_those_of_the_specification(void)
{
    static const char *const keys[] = { "123456789", "foo",  "{user1000}.following",
                                        "{}x",       "a{b}", "a{b",
                                        "{a}{b}",    "",     "x{{y}}z" };

    assert_int_equal(wr_slot_of("123456789", 9), 0x31c3 % WR_SLOTS);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        CHECK_EQUAL(wr_slot_of(keys[i], strlen(keys[i])),
                    server_do(&cluster.masters[0], "CLUSTER KEYSLOT %b", keys[i], strlen(keys[i])));
}

static void test_every_key_goes_to_its_node_without_a_detour(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = cluster.url));
    struct wr_redis_stats stats;
    long long keys = 0;
    char key[32];

    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        assert_int_equal(call(redis, WR_COMMAND("SET", key, "1")), 2);
        assert_int_equal(wr_redis_send(redis, WR_COMMAND("INCR", key)), 0);
        assert_int_equal(call(redis, WR_COMMAND("GET", key)), 1);
    }
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        keys += server_do(&cluster.masters[i], "DBSIZE");
        assert_true(server_do(&cluster.masters[i], "DBSIZE") > 50);
    }
    assert_int_equal(keys, 300);
    wr_redis_stats_get(&stats, redis);
    assert_int_equal(stats.commands, 900);
    assert_int_equal(stats.connects, 3);
    wr_redis_close(redis);
}

static void test_scripts_go_where_their_first_key_is(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = cluster.url));
    struct wr_script script;

    wr_script_init(&script, "redis.call('SET', KEYS[2], 'x') return redis.call('INCR', KEYS[1])");
    for (int i = 0; i < 30; i++) {
        char one[32], two[32];
        struct wr_command command = {
            .script = &script, .keys = 2, .count = 2, .words = (const char *[]){ one, two }
        };
        snprintf(one, sizeof(one), "{tag-%d}a", i); /* hash tags keep them together */
        snprintf(two, sizeof(two), "{tag-%d}b", i);
        assert_int_equal(call(redis, &command), 1);
    }
    wr_redis_close(redis);
}

/* The slot of "moving" goes from one node to another while it is used. */
static void test_a_slot_that_has_moved_is_followed(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = cluster.url));
    int slot = (int)wr_slot_of("moving", 6), from = slot * CLUSTER_MASTERS / 16384;
    int to = (from + 1) % CLUSTER_MASTERS;
    struct wr_redis_stats before, after;

    assert_int_equal(call(redis, WR_COMMAND("EXISTS", "moving")), 0);
    cluster_move_slot(&cluster, slot, from, to);
    assert_int_equal(call(redis, WR_COMMAND("SET", "moving", "1")), 2);
    assert_int_equal(server_do(&cluster.masters[to], "GET moving"), 1);
    wr_redis_stats_get(&before, redis);
    for (int i = 0; i < 20; i++)
        assert_int_equal(call(redis, WR_COMMAND("EXISTS", "moving")), 1);
    wr_redis_stats_get(&after, redis);
    assert_int_equal(after.commands - before.commands, 20); /* it is remembered */
    call(redis, WR_COMMAND("DEL", "moving"));

    cluster_move_slot(&cluster, slot, to, from); /* and one without a waiter finds its way back */
    assert_int_equal(wr_redis_send(redis, WR_COMMAND("SET", "moving", "2")), 0);
    AWAIT(server_do(&cluster.masters[from], "EXISTS moving") == 1);
    call(redis, WR_COMMAND("DEL", "moving"));
    wr_redis_close(redis);
}

/* A slot in the middle of its move: keys that are there are answered there, others by the next node if asked properly. */
static void test_a_slot_that_is_on_the_move_is_asked_for_at_both_ends(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = cluster.url));
    int slot = (int)wr_slot_of("{m}", 3), from = slot * CLUSTER_MASTERS / 16384;
    int to = (from + 1) % CLUSTER_MASTERS;
    char from_id[41], to_id[41];
    struct wr_redis_stats before, after;

    assert_int_equal(call(redis, WR_COMMAND("SET", "{m}stays", "1")), 2);
    cluster_node_id(&cluster.masters[from], from_id);
    cluster_node_id(&cluster.masters[to], to_id);
    server_do(&cluster.masters[to], "CLUSTER SETSLOT %d IMPORTING %s", slot, from_id);
    server_do(&cluster.masters[from], "CLUSTER SETSLOT %d MIGRATING %s", slot, to_id);
    wr_redis_stats_get(&before, redis);
    assert_int_equal(call(redis, WR_COMMAND("SET", "{m}new", "1")), 2); /* ASK */
    assert_int_equal(call(redis, WR_COMMAND("EXISTS", "{m}new")), 1);
    assert_int_equal(call(redis, WR_COMMAND("EXISTS", "{m}stays")), 1);
    assert_int_equal(wr_redis_send(redis, WR_COMMAND("INCR", "{m}new")), 0);
    assert_true(echoes(redis, "in step"));
    wr_redis_stats_get(&after, redis);
    assert_true(after.commands - before.commands >= 7); /* nothing is remembered of it */
    server_do(&cluster.masters[to], "CLUSTER SETSLOT %d STABLE", slot);
    server_do(&cluster.masters[from], "CLUSTER SETSLOT %d STABLE", slot);
    server_do(&cluster.masters[to], "FLUSHALL");
    server_do(&cluster.masters[from], "FLUSHALL");
    wr_redis_close(redis);
}

static void test_a_first_host_that_is_gone_does_not_matter(void)
{
    char url[128];
    struct wr_redis *redis;

    snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%d,127.0.0.1:%d", free_port(),
             cluster.masters[2].port);
    redis = open_client(WEIR_REDIS(.url = url));
    AWAIT(wr_redis_state(redis, NULL) == WR_REDIS_UP);
    for (int i = 0; i < 20; i++) {
        char key[32];
        snprintf(key, sizeof(key), "there-%d", i);
        assert_int_equal(call(redis, WR_COMMAND("SET", key, "1")), 2);
    }
    wr_redis_close(redis);
}

static void test_a_server_that_is_no_cluster_is_said(void)
{
    struct server plain;
    struct wr_redis *redis;
    weir_message message;
    char url[64];

    server_start(&plain, NULL);
    snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%d", plain.port);
    redis = open_client(WEIR_REDIS(.url = url));
    assert_true(wr_redis_ready(redis, patience(), &message) < 0);
    assert_non_null(strstr(message.text, "cluster support disabled"));
    assert_true(call_fails(redis, WR_COMMAND("GET", "a"), patience(), &message) < 0);
    wr_redis_close(redis);
    server_stop(&plain);
}

static void note_message(enum wr_redis_event event, const char *message, size_t size, void *arg)
{
    (void)message, (void)size;
    atomic_fetch_add((_Atomic int *)arg,
                     event == WR_REDIS_MESSAGE ? 1000 : event == WR_REDIS_LISTENING);
}

static void test_messages_reach_subscribers_at_any_node(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = cluster.url));
    struct wr_subscription *subscription;
    _Atomic int heard = 0;

    assert_int_equal(wr_redis_subscribe(&subscription, redis, "c", note_message, &heard), 0);
    AWAIT(atomic_load(&heard) == 1);
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        server_do(&cluster.masters[i], "PUBLISH c x");
    AWAIT(atomic_load(&heard) == 3001);
    wr_redis_unsubscribe(subscription);
    wr_redis_close(redis);
}

/* The last one, since the cluster is not the same afterwards. */
static void test_a_node_that_dies_is_replaced_by_its_replica(void)
{
    struct wr_redis *redis =
        open_ready(WEIR_REDIS(.url = cluster.url, .backoff_ms = 10, .backoff_max_ms = 100));
    char key[32];
    int number = 0, rc;
    weir_time limit = patience();

    do
        snprintf(key, sizeof(key), "k%d", number++);
    while (wr_slot_of(key, strlen(key)) >= 16384 / CLUSTER_MASTERS);
    assert_int_equal(call(redis, WR_COMMAND("SET", key, "1")), 2);
    server_kill(&cluster.masters[0]);
    do { /* away, lost, down: until the others have agreed */
        struct wr_reply *reply = NULL;
        rc = wr_redis_call(&reply, redis, WR_COMMAND("SET", key, "2"), weir_in_ms(500), NULL);
        wr_reply_free(reply);
        weir_sleep(weir_in_ms(10));
    } while (rc && weir_now() < limit);
    assert_int_equal(rc, 0);
    assert_int_equal(server_do(&cluster.replica, "GET %s", key), 2);
    AWAIT(wr_redis_state(redis, NULL) == WR_REDIS_UP); /* the dead one is not wanted any more */
    wr_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_slots_are_those_of_the_specification),
        TEST(test_every_key_goes_to_its_node_without_a_detour),
        TEST(test_scripts_go_where_their_first_key_is),
        TEST(test_a_slot_that_has_moved_is_followed),
        TEST(test_a_slot_that_is_on_the_move_is_asked_for_at_both_ends),
        TEST(test_a_first_host_that_is_gone_does_not_matter),
        TEST(test_a_server_that_is_no_cluster_is_said),
        TEST(test_messages_reach_subscribers_at_any_node),
        TEST(test_a_node_that_dies_is_replaced_by_its_replica),
    };

    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
