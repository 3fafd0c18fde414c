/* Sentinels: the client finds the master through them, and follows when it changes.
 * SPDX-License-Identifier: MIT */
#include "redis/client_support.h"
#include "redis/formation.h"

static struct sentinels formation;

static int start_formation(void **state)
{
    (void)state;
    sentinels_start(&formation);
    return 0;
}

static int stop_formation(void **state)
{
    (void)state;
    sentinels_stop(&formation);
    return 0;
}

static void test_the_sentinels_name_the_master(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = formation.url));

    assert_int_equal(call(redis, WR_COMMAND("SET", "through", "1")), 2);
    assert_int_equal(server_do(&formation.master, "GET through"), 1);
    wr_redis_close(redis);
}

static void test_one_sentinel_that_answers_is_enough(void)
{
    char url[160];
    struct wr_redis *redis;

    snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/main", free_port(),
             formation.sentinels[2].port);
    redis = open_ready(WEIR_REDIS(.url = url));
    assert_true(echoes(redis, "found"));
    wr_redis_close(redis);
}

static void test_a_master_that_the_sentinels_do_not_know_is_said(void)
{
    char url[160];
    struct wr_redis *redis;
    weir_message message;

    snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/other", formation.sentinels[0].port);
    redis = open_client(WEIR_REDIS(.url = url));
    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EAWAY);
    assert_non_null(strstr(message.text, "knows no master 'other'"));
    wr_redis_close(redis);
}

static void note_message(enum wr_redis_event event, const char *message, size_t size, void *arg)
{
    (void)message, (void)size;
    atomic_fetch_add((_Atomic int *)arg,
                     event == WR_REDIS_MESSAGE ? 1000 : event == WR_REDIS_LISTENING);
}

/* The master dies; calls go to the new one as soon as there is one, and messages come again. */
static void test_a_fail_over_is_followed(void)
{
    struct wr_redis *redis =
        open_ready(WEIR_REDIS(.url = formation.url, .backoff_ms = 10, .backoff_max_ms = 100));
    struct wr_command set = *WR_COMMAND("SET", "after", "2");
    struct wr_subscription *subscription;
    struct wr_reply *reply = NULL;
    _Atomic int heard = 0;
    int rc;

    assert_int_equal(wr_redis_subscribe(&subscription, redis, "c", note_message, &heard), 0);
    AWAIT(atomic_load(&heard) == 1);
    set.patience = WEIR_FOREVER;
    server_kill(&formation.master);
    do { /* what was under way when it died is lost; everything after that waits */
        rc = wr_redis_call(&reply, redis, &set, patience(), NULL);
        wr_reply_free(reply);
    } while (rc == WEIR_ELOST);
    assert_int_equal(rc, 0);
    assert_int_equal(server_do(&formation.replica, "GET after"), 2);
    AWAIT(atomic_load(&heard) >= 2);
    /* The sentinels may cut connections to the new master once more, and a message with them: until one comes through. */
    AWAIT(server_do(&formation.replica, "PUBLISH c x") >= 0 && atomic_load(&heard) >= 1000);

    /* The old one comes back, as a replica by and by: nobody goes there. */
    server_again(&formation.master);
    assert_int_equal(call(redis, WR_COMMAND("INCR", "after")), 3);
    wr_redis_unsubscribe(subscription);
    wr_redis_close(redis);
}

/* Somebody changes roles by hand: the server says READONLY, and the client looks for the master again. */
static void test_a_master_that_has_become_a_replica_is_left(void)
{
    struct server *master = &formation.replica, *other = &formation.master;
    struct wr_redis *redis;
    weir_message message;
    char settled[80];
    int rc;

    snprintf(settled, sizeof(settled), "status=ok,address=127.0.0.1:%d,slaves=1,sentinels=3",
             master->port);
    for (int i = 0; i < SENTINELS; i++) /* the fail-over of the test before is over */
        AWAIT(server_says(&formation.sentinels[i], "INFO sentinel", settled));
    server_freeze(&formation.sentinels[1]); /* one alone answers, and changes nothing */
    server_freeze(&formation.sentinels[2]);
    server_do(other, "REPLICAOF 127.0.0.1 %d",
              master->port); /* the sentinels would do it, after a while */
    AWAIT(server_says(other, "INFO replication", "master_link_status:up"));
    redis = open_client(WEIR_REDIS(.url = formation.url, .backoff_ms = 10, .backoff_max_ms = 100));
    AWAIT(wr_redis_state(redis, NULL) == WR_REDIS_UP); /* roles may still change for a moment */
    assert_true(echoes(redis, "before"));
    /* Not by the sentinels, who would cut the connection: both servers still answer. */
    server_do(other, "REPLICAOF NO ONE");
    server_do(master, "REPLICAOF 127.0.0.1 %d", other->port);
    rc = call_fails(redis, WR_COMMAND("SET", "a", "1"), weir_in_ms(300), &message);
    assert_true(rc == WEIR_EREPLY || rc == WEIR_EAWAY || rc == WEIR_ELOST);
    assert_true(strstr(message.text, "READONLY") || strstr(message.text, "not one") ||
                strstr(message.text, "no master any more"));
    server_do(master,
              "REPLICAOF NO ONE"); /* and back again: what the sentinels say is true once more */
    AWAIT(wr_redis_state(redis, NULL) == WR_REDIS_UP);
    assert_int_equal(call(redis, WR_COMMAND("SET", "a", "1")), 2);
    assert_int_equal(server_do(master, "GET a"), 1);
    wr_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_sentinels_name_the_master),
        TEST(test_one_sentinel_that_answers_is_enough),
        TEST(test_a_master_that_the_sentinels_do_not_know_is_said),
        TEST(test_a_fail_over_is_followed),
        TEST(test_a_master_that_has_become_a_replica_is_left),
    };

    return cmocka_run_group_tests(tests, start_formation, stop_formation);
}
