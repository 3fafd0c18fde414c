/* Messages: heard by all subscribers, and by no other client; heard again after a loss, which is told.
 * SPDX-License-Identifier: MIT */
#include "redis/client_support.h"
#include "redis/one_server.h"

/* A listener, and the events it has heard. */
struct ear {
    _Atomic int listening, messages, deaf, sum;
    struct wr_subscription *subscription;
};

static void hear(enum wr_redis_event event, const char *message, size_t size, void *arg)
{
    struct ear *ear = arg;

    if (event == WR_REDIS_LISTENING) {
        CHECK_EQUAL(size, 0);
        atomic_fetch_add(&ear->listening, 1);
    } else if (event == WR_REDIS_MESSAGE) {
        CHECK_EQUAL(strlen(message), size);
        atomic_fetch_add(&ear->sum, atoi(message));
        atomic_fetch_add(&ear->messages, 1);
    } else {
        CHECK(size > 0);
        atomic_fetch_add(&ear->deaf, 1);
    }
}

static void listen_to(struct wr_redis *redis, struct ear *ear, const char *channel)
{
    int before = atomic_load(&ear->listening);

    assert_int_equal(wr_redis_subscribe(&ear->subscription, redis, channel, hear, ear), 0);
    AWAIT(atomic_load(&ear->listening) > before);
}

static void test_messages_are_heard_on_their_channel_by_all_subscribers(void)
{
    struct wr_redis *redis = open_client(WEIR_REDIS(.url = server.url));
    struct ear a = { 0 }, b = { 0 }, other = { 0 };

    listen_to(redis, &a, "news");
    listen_to(redis, &other, "sports");
    listen_to(redis, &b, "news");
    for (int i = 1; i <= 100; i++)
        server_do(&server, "PUBLISH news %d", i);
    AWAIT(atomic_load(&a.messages) == 100 && atomic_load(&b.messages) == 100);
    assert_int_equal(a.sum, 5050);
    assert_int_equal(b.sum, 5050);
    assert_int_equal(other.messages, 0);

    wr_redis_unsubscribe(a.subscription); /* the other one goes on */
    server_do(&server, "PUBLISH news 1");
    AWAIT(atomic_load(&b.messages) == 101);
    assert_int_equal(a.messages, 100);
    wr_redis_unsubscribe(b.subscription);
    AWAIT(server_do(&server, "PUBLISH news 1") == 0);
    wr_redis_unsubscribe(other.subscription);
    assert_int_equal(a.listening, 1);
    assert_int_equal(b.listening, 1);
    wr_redis_close(redis);
}

static void test_the_connection_for_messages_lasts_as_long_as_a_listener(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url, .name = "listener"));
    struct ear ear = { 0 };
    char *list;
    bool there;

    for (int round = 0; round < 3; round++) {
        listen_to(redis, &ear, "a");
        wr_redis_unsubscribe(ear.subscription);
        do { /* only the link is left */
            list = server_say(&server, "CLIENT LIST TYPE pubsub");
            there = strstr(list, "listener") != NULL;
            free(list);
        } while (there);
    }
    wr_redis_close(redis);
}

static void test_a_loss_is_told_and_messages_are_heard_again_after_it(void)
{
    struct wr_redis *redis = open_client(WEIR_REDIS(.url = server.url, .backoff_ms = 5));
    struct ear a = { 0 }, b = { 0 };

    listen_to(redis, &a, "a");
    listen_to(redis, &b, "b");
    server_kill(&server);
    AWAIT(atomic_load(&a.deaf) == 1 && atomic_load(&b.deaf) == 1);
    server_again(&server);
    AWAIT(atomic_load(&a.listening) == 2 && atomic_load(&b.listening) == 2);
    server_do(&server, "PUBLISH a 1");
    server_do(&server, "PUBLISH b 2");
    AWAIT(atomic_load(&a.sum) == 1 && atomic_load(&b.sum) == 2);

    server_do(&server, "CLIENT KILL TYPE pubsub"); /* only this connection */
    AWAIT(atomic_load(&a.listening) == 3 && atomic_load(&b.listening) == 3);
    assert_int_equal(a.deaf, 2);
    server_do(&server, "PUBLISH a 1");
    AWAIT(atomic_load(&a.sum) == 2);
    wr_redis_unsubscribe(b.subscription);
    wr_redis_close(redis); /* with one that is still subscribed */
}

/* A listener ends its own subscription: that is the last it hears. */
static void hear_once(enum wr_redis_event event, const char *message, size_t size, void *arg)
{
    struct ear *ear = arg;

    (void)message, (void)size;
    if (event == WR_REDIS_LISTENING)
        atomic_fetch_add(&ear->listening, 1);
    if (event != WR_REDIS_MESSAGE)
        return;
    wr_redis_unsubscribe(ear->subscription);
    atomic_fetch_add(&ear->messages, 1);
}

static void test_a_listener_may_unsubscribe_itself(void)
{
    struct wr_redis *redis = open_client(WEIR_REDIS(.url = server.url));
    struct ear once = { 0 }, all = { 0 };

    assert_int_equal(wr_redis_subscribe(&once.subscription, redis, "c", hear_once, &once), 0);
    AWAIT(atomic_load(&once.listening) == 1);
    listen_to(redis, &all, "c");
    for (int i = 0; i < 50; i++)
        server_do(&server, "PUBLISH c 1");
    AWAIT(atomic_load(&all.messages) == 50);
    assert_int_equal(once.messages, 1);
    wr_redis_unsubscribe(all.subscription);
    wr_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_messages_are_heard_on_their_channel_by_all_subscribers),
        TEST(test_the_connection_for_messages_lasts_as_long_as_a_listener),
        TEST(test_a_loss_is_told_and_messages_are_heard_again_after_it),
        TEST(test_a_listener_may_unsubscribe_itself),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
