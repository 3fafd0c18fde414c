/* Sentinels: the client finds the master through them, and follows when it changes.
 * SPDX-License-Identifier: MIT */
#include "redis/client_support.h"
#include "redis/formation.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

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

    /* The old one comes back, as a replica by and by: no client goes there. */
    server_again(&formation.master);
    assert_int_equal(call(redis, WR_COMMAND("INCR", "after")), 3);
    wr_redis_unsubscribe(subscription);
    wr_redis_close(redis);
}

/* An operator changes roles by hand: the server says READONLY, and the client looks for the master again. */
static void test_a_master_that_has_become_a_replica_is_left(void)
{
    struct server *master = sentinels_rest(&formation);
    struct server *other = master == &formation.master ? &formation.replica : &formation.master;
    struct wr_redis *redis;
    weir_message message;
    int rc;

    server_freeze(&formation.sentinels[1]); /* one alone answers, and changes nothing */
    server_freeze(&formation.sentinels[2]);
    server_do(other, "REPLICAOF 127.0.0.1 %d",
              master->port); /* the sentinels would do it, after a while */
    AWAIT(server_says(other, "INFO replication", "master_link_status:up"));
    redis = open_ready(WEIR_REDIS(.url = formation.url, .backoff_ms = 10, .backoff_max_ms = 100));
    assert_true(echoes(redis, "before"));
    /* Not by the sentinels, which would cut the connection: both servers still answer. */
    server_do(other, "REPLICAOF NO ONE");
    server_do(master, "REPLICAOF 127.0.0.1 %d", other->port);
    rc = call_fails(redis, WR_COMMAND("SET", "a", "1"), weir_in_ms(2000), &message);
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

/* ---- a sentinel of ours ------------------------------------------------------------------------ */

/* Names one server, and says "+switch-master" when the test wants it to. */
struct teller {
    int fd, port;
    _Atomic int names;    /* the port of that server                       */
    _Atomic int listener; /* the connection that subscribed; -1: none yet */
    pthread_t thread[2];
};

/* To the 3 commands of a client that asks or listens. */
static void *answer(void *arg)
{
    struct teller *teller = arg;
    char said[1024], text[160], port[8];
    ssize_t size;
    int fd = accept(teller->fd, NULL, NULL);

    while (fd >= 0) {
        size = read(fd, said, sizeof(said) - 1);
        said[size < 0 ? 0 : size] = '\0';
        snprintf(port, sizeof(port), "%d", teller->names);
        if (strstr(said, "SUBSCRIBE")) {
            snprintf(text, sizeof(text),
                     "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
            send(fd, text, strlen(text), MSG_NOSIGNAL);
            teller->listener = fd;
            fd = accept(teller->fd, NULL, NULL);
            continue;
        }
        if (size > 0) {
            snprintf(text, sizeof(text), "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n", strlen(port),
                     port);
            send(fd, text, strlen(text), MSG_NOSIGNAL);
            continue;
        }
        close(fd);
        fd = accept(teller->fd, NULL, NULL);
    }
    return NULL;
}

static void teller_start(struct teller *teller, const struct server *names)
{
    struct sockaddr_in address = { .sin_family = AF_INET };

    *teller = (struct teller){ .port = free_port(), .names = names->port, .listener = -1 };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)teller->port);
    teller->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(teller->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(teller->fd, 16), 0);
    for (int i = 0; i < 2; i++) /* one may be asked while it waits for the other to go on */
        assert_int_equal(pthread_create(&teller->thread[i], NULL, answer, teller), 0);
}

static void teller_switch(struct teller *teller, int from, int to)
{
    char text[128], all[256];

    teller->names = to;
    snprintf(text, sizeof(text), "main 127.0.0.1 %d 127.0.0.1 %d", from, to);
    snprintf(all, sizeof(all), "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$%zu\r\n%s\r\n",
             strlen(text), text);
    assert_int_equal(send(teller->listener, all, strlen(all), MSG_NOSIGNAL), strlen(all));
}

static void teller_stop(struct teller *teller)
{
    shutdown(teller->fd, SHUT_RDWR);
    for (int i = 0; i < 2; i++)
        pthread_join(teller->thread[i], NULL);
    close(teller->fd);
    close(teller->listener);
}

/* Sentinels learn of a fail-over one after the other: the client may have found the new master through another one long before. */
static void test_a_sentinel_that_hears_late_of_a_fail_over_cuts_no_connection(void)
{
    struct server first, second;
    struct wr_redis_stats stats;
    struct teller teller;
    struct wr_redis *redis;
    char url[96];

    server_start(&first, NULL);
    server_start(&second, NULL);
    teller_start(&teller, &first);
    snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d/main", teller.port);
    redis = open_ready(WEIR_REDIS(.url = url));
    AWAIT(teller.listener >= 0);
    teller_switch(&teller, second.port, first.port); /* where the client is */
    teller_switch(&teller, first.port, second.port);
    AWAIT((wr_redis_stats_get(&stats, redis), stats.connects) == 2);
    assert_int_equal(stats.losses, 1);
    assert_int_equal(call(redis, WR_COMMAND("SET", "moved", "1")), 2);
    assert_int_equal(server_do(&second, "GET moved"), 1);
    wr_redis_close(redis);
    teller_stop(&teller);
    server_stop(&first);
    server_stop(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_sentinels_name_the_master),
        TEST(test_one_sentinel_that_answers_is_enough),
        TEST(test_a_master_that_the_sentinels_do_not_know_is_said),
        TEST(test_a_fail_over_is_followed),
        TEST(test_a_master_that_has_become_a_replica_is_left),
        TEST(test_a_sentinel_that_hears_late_of_a_fail_over_cuts_no_connection),
    };

    return cmocka_run_group_tests(tests, start_formation, stop_formation);
}
