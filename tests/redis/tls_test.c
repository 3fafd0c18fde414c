/* TLS: certificates are checked unless one says otherwise, and all else works as without it.
 * SPDX-License-Identifier: MIT */
#include "redis/client_support.h"
#include "redis/formation.h"

#include <pthread.h>

static struct certificates certificates;
static struct server server, asking; /* the second wants to see a certificate */
static char url[64], address_url[64], asking_url[64];

static int start_servers(void **state)
{
    int port;

    (void)state;
    certificates_make(&certificates);
    server_start_tls(&server, &port, &certificates, false);
    snprintf(url, sizeof(url), "rediss://localhost:%d", port);
    snprintf(address_url, sizeof(address_url), "rediss://127.0.0.1:%d", port);
    server_start_tls(&asking, &port, &certificates, true);
    snprintf(asking_url, sizeof(asking_url), "rediss://localhost:%d", port);
    return 0;
}

static int stop_servers(void **state)
{
    (void)state;
    server_stop(&server);
    server_stop(&asking);
    certificates_remove(&certificates);
    return 0;
}

static void test_a_name_and_an_address_that_the_certificate_has_are_taken(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = url, .tls_ca = certificates.ca));

    assert_int_equal(call(redis, WR_COMMAND("SET", "a", "1")), 2);
    assert_true(echoes(redis, "by TLS"));
    wr_redis_close(redis);
    redis = open_ready(WEIR_REDIS(.url = address_url, .tls_ca = certificates.ca));
    assert_true(echoes(redis, "by TLS"));
    wr_redis_close(redis);
    assert_int_equal(server_do(&server, "GET a"), 1);
}

static void refuses(const weir_redis_options *opt, const char *words)
{
    struct wr_redis *redis = open_client(opt);
    weir_message message;

    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EAWAY);
    if (!CHECK(strstr(message.text, words)))
        printf("%s\n", message.text);
    wr_redis_close(redis);
}

static void test_a_certificate_that_no_trusted_authority_has_signed_is_refused(void)
{
    refuses(WEIR_REDIS(.url = url, .tls_ca = certificates.other_ca), "certificate");
    refuses(WEIR_REDIS(.url = url), "certificate"); /* the system's know nothing of it either */
}

static void test_a_certificate_of_another_host_is_refused(void)
{
    refuses(WEIR_REDIS(.url = url, .tls_ca = certificates.ca, .tls_name = "example.org"),
            "ostname mismatch");
}

static void test_any_certificate_is_taken_if_one_says_so(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = url, .tls_unverified = true));

    assert_true(echoes(redis, "unverified"));
    wr_redis_close(redis);
}

static void test_a_server_that_asks_for_a_certificate_gets_ours(void)
{
    struct wr_redis *redis = open_client(WEIR_REDIS(.url = asking_url, .tls_ca = certificates.ca));
    weir_message message;

    assert_int_equal(wr_redis_ready(redis, patience(), &message), WEIR_EAWAY);
    wr_redis_close(redis);
    redis =
        open_ready(WEIR_REDIS(.url = asking_url, .tls_ca = certificates.ca,
                              .tls_cert = certificates.client, .tls_key = certificates.client_key));
    assert_true(echoes(redis, "known"));
    wr_redis_close(redis);
}

static void test_files_that_cannot_be_used_are_named(void)
{
    struct wr_redis *redis;
    weir_message message;

    assert_int_equal(
        wr_redis_open(&redis, WEIR_REDIS(.url = url, .tls_ca = "/no/such/ca"), NULL, &message),
        WEIR_EINVAL);
    assert_non_null(strstr(message.text, "tls_ca: /no/such/ca"));
    assert_int_equal(wr_redis_open(&redis,
                                   WEIR_REDIS(.url = url, .tls_cert = certificates.client,
                                              .tls_key = certificates.server_key),
                                   NULL, &message),
                     WEIR_EINVAL);
    assert_non_null(strstr(message.text, "tls_key: "));
    assert_null(redis);
}

static void test_tls_to_a_server_that_speaks_none_fails_in_time_and_the_other_way_round(void)
{
    char plain[64];
    struct wr_redis *redis;
    weir_message message;

    snprintf(plain, sizeof(plain), "rediss://127.0.0.1:%d", server.port);
    refuses(WEIR_REDIS(.url = plain, .tls_ca = certificates.ca), "TLS: ");
    snprintf(plain, sizeof(plain), "redis%s", strchr(address_url, ':'));
    redis = open_client(WEIR_REDIS(.url = plain, .connect_ms = 500));
    assert_true(wr_redis_ready(redis, patience(), &message) < 0);
    wr_redis_close(redis);
}

/* Threads and tasks at once, small words and large ones. */
enum { CALLERS = 8, CALLS = 60 };

static void call_often(void *arg)
{
    char *large = malloc(40001);

    memset(large, 'a' + (int)(intptr_t)arg % 26, 40000);
    large[40000] = '\0';
    for (int i = 0; i < CALLS; i++)
        CHECK(echoes(*(struct wr_redis **)arg, i % 5 ? "small" : large));
    free(large);
}

static void *call_in_thread(void *arg)
{
    call_often(arg);
    return NULL;
}

static void test_many_callers_share_one_encrypted_connection(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = url, .tls_ca = certificates.ca));
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    pthread_t threads[CALLERS];
    struct wr_redis_stats stats;

    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_in_thread, &redis), 0);
        assert_int_equal(weir_spawn(rt, call_often, &redis, NULL), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    drain(rt);
    wr_redis_stats_get(&stats, redis);
    assert_int_equal(stats.connects, 1);
    assert_int_equal(stats.replies, 2 * CALLERS * CALLS);
    weir_runtime_free(rt);
    wr_redis_close(redis);
}

static void note_message(enum wr_redis_event event, const char *message, size_t size, void *arg)
{
    (void)message, (void)size;
    atomic_fetch_add((_Atomic int *)arg, event == WR_REDIS_MESSAGE ? 100 : 1);
}

static void test_messages_come_by_tls_too(void)
{
    struct wr_redis *redis = open_client(WEIR_REDIS(.url = url, .tls_ca = certificates.ca));
    struct wr_subscription *subscription;
    _Atomic int heard = 0;

    assert_int_equal(wr_redis_subscribe(&subscription, redis, "c", note_message, &heard), 0);
    AWAIT(atomic_load(&heard) == 1);
    server_do(&server, "PUBLISH c x");
    AWAIT(atomic_load(&heard) == 101);
    wr_redis_unsubscribe(subscription);
    wr_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_name_and_an_address_that_the_certificate_has_are_taken),
        TEST(test_a_certificate_that_no_trusted_authority_has_signed_is_refused),
        TEST(test_a_certificate_of_another_host_is_refused),
        TEST(test_any_certificate_is_taken_if_one_says_so),
        TEST(test_a_server_that_asks_for_a_certificate_gets_ours),
        TEST(test_files_that_cannot_be_used_are_named),
        TEST(test_tls_to_a_server_that_speaks_none_fails_in_time_and_the_other_way_round),
        TEST(test_many_callers_share_one_encrypted_connection),
        TEST(test_messages_come_by_tls_too),
    };

    return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
