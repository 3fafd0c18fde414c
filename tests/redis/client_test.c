/* The client against a plain server: commands, scripts, many callers at once, results later, time.
 * SPDX-License-Identifier: MIT */
#include "redis/client_support.h"
#include "redis/one_server.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

/* ---- ways to the server ---------------------------------------------------------------------- */

static void test_a_path_an_address_and_a_name_lead_to_the_server(void)
{
    char urls[4][128];

    snprintf(urls[0], sizeof(urls[0]), "%s", server.url);
    snprintf(urls[1], sizeof(urls[1]), "redis://127.0.0.1:%d", server.port);
    snprintf(urls[2], sizeof(urls[2]), "redis://localhost:%d/3", server.port);
    snprintf(urls[3], sizeof(urls[3]), "redis://[::1]:%d", server.port);
    for (int i = 0; i < 4; i++) {
        bool has_ipv6 = access("/proc/net/if_inet6", F_OK) == 0;
        if (i == 3 && !has_ipv6)
            continue;
        struct wr_redis *redis = open_ready(WEIR_REDIS(.url = urls[i]));
        assert_int_equal(wr_redis_state(redis, NULL), WR_REDIS_UP);
        assert_int_equal(call(redis, WR_COMMAND("SET", urls[i], "1")), 2);
        wr_redis_close(redis);
    }
    assert_int_equal(server_do(&server, "EXISTS %s %s", urls[0], urls[1]), 2);
    assert_int_equal(server_do(&server, "EXISTS %s", urls[2]), 0); /* it is in database 3 */
}

static void test_the_server_lists_the_client_by_its_name(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url, .name = "till-7"));
    char *list = server_say(&server, "CLIENT LIST");

    assert_non_null(strstr(list, " name=till-7 "));
    free(list);
    wr_redis_close(redis);
}

/* ---- replies ----------------------------------------------------------------------------------- */

static void test_an_error_of_the_server_is_told_in_its_own_words(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url));
    weir_message message;
    struct wr_reply *reply;

    call(redis, WR_COMMAND("SET", "text", "x"));
    assert_int_equal(
        wr_redis_call(&reply, redis, WR_COMMAND("LPUSH", "text", "y"), patience(), &message),
        WEIR_EREPLY);
    assert_true(wr_reply_is_error(reply, "WRONGTYPE"));
    assert_non_null(strstr(message.text, "the server answered: WRONGTYPE "));
    wr_reply_free(reply);
    assert_true(echoes(redis, "still in step"));
    wr_redis_close(redis);
}

static void test_any_bytes_go_and_come_back(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url));
    const size_t size = 3 << 20;
    char *bytes = malloc(size);
    struct wr_reply *reply;

    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 7);
    struct wr_command set = { .count = 3,
                              .words = (const char *[]){ "SET", "bytes", bytes },
                              .sizes = (size_t[]){ 3, 5, size },
                              .key = 1 };
    assert_int_equal(call(redis, &set), 2);
    assert_int_equal(wr_redis_call(&reply, redis, WR_COMMAND("GET", "bytes"), patience(), NULL), 0);
    assert_int_equal(reply->size, size);
    assert_memory_equal(reply->text, bytes, size);
    wr_reply_free(reply);
    call(redis, WR_COMMAND("DEL", "bytes"));
    free(bytes);
    wr_redis_close(redis);
}

/* ---- scripts ----------------------------------------------------------------------------------- */

static void test_a_script_that_the_server_does_not_know_is_sent_in_full(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url));
    struct wr_script script;
    struct wr_command command = {
        .script = &script, .keys = 1, .count = 2, .words = (const char *[]){ "counter", "5" }
    };

    wr_script_init(&script, "return redis.call('INCRBY', KEYS[1], ARGV[1])");
    server_do(&server, "SCRIPT FLUSH");
    assert_int_equal(call(redis, &command), 5);
    assert_int_equal(call(redis, &command), 10);
    server_do(&server, "SCRIPT FLUSH");
    assert_int_equal(call(redis, &command), 15);
    server_do(&server, "SCRIPT FLUSH");
    assert_int_equal(wr_redis_send(redis, &command), 0); /* no caller waits: it runs all the same */
    AWAIT(server_do(&server, "GET counter") == 20);
    wr_redis_close(redis);
}

static void test_commands_sent_without_waiting_go_before_later_calls(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url));

    call(redis, WR_COMMAND("DEL", "sent"));
    for (int i = 1; i <= 200; i++) {
        assert_int_equal(wr_redis_send(redis, WR_COMMAND("INCR", "sent")), 0);
        assert_int_equal(call(redis, WR_COMMAND("INCRBY", "sent", "0")), i);
    }
    wr_redis_close(redis);
}

static void test_errors_of_commands_sent_without_waiting_are_counted(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url));
    struct wr_redis_stats stats;

    assert_int_equal(wr_redis_send(redis, WR_COMMAND("NO-SUCH-COMMAND")), 0);
    AWAIT((wr_redis_stats_get(&stats, redis), stats.dropped) == 1);
    wr_redis_close(redis);
}

/* ---- many callers ------------------------------------------------------------------------------ */

enum { CALLERS = 16, CALLS = 300 };

struct caller {
    struct wr_redis *redis;
    int number;
    _Atomic int *left;
};

static void call_often(struct caller *caller)
{
    char text[64];

    for (int i = 0; i < CALLS; i++) {
        snprintf(text, sizeof(text), "%d of %d", i, caller->number);
        if (!echoes(caller->redis, text))
            break;
        if (i % 3 == 0)
            CHECK_EQUAL(wr_redis_send(caller->redis, WR_COMMAND("INCR", "seen")), 0);
    }
    atomic_fetch_sub(caller->left, 1);
}

static void *call_in_thread(void *arg)
{
    call_often(arg);
    return NULL;
}

static void call_in_body(void *arg)
{
    call_often(arg);
}

/* Threads and tasks share one connection, or a few; each gets its own replies. */
static void check_many_callers(uint32_t connections, int threads, int bodies)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url, .connections = connections));
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    struct caller callers[2 * CALLERS];
    pthread_t ids[2 * CALLERS];
    _Atomic int left = threads + bodies;

    server_do(&server, "DEL seen");
    for (int i = 0; i < threads + bodies; i++)
        callers[i] = (struct caller){ redis, i, &left };
    for (int i = 0; i < bodies; i++)
        assert_int_equal(weir_spawn(rt, call_in_body, &callers[threads + i], NULL), 0);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, call_in_thread, &callers[i]), 0);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    drain(rt);
    assert_int_equal(atomic_load(&left), 0);
    AWAIT(server_do(&server, "GET seen") == (threads + bodies) * CALLS / 3);
    weir_runtime_free(rt);
    wr_redis_close(redis);
}

static void test_one_thread_gets_its_replies(void)
{
    check_many_callers(1, 1, 0);
}

static void test_many_threads_get_their_own_replies(void)
{
    check_many_callers(1, CALLERS, 0);
}

static void test_many_tasks_get_their_own_replies(void)
{
    check_many_callers(1, 0, CALLERS);
}

static void test_threads_and_tasks_get_their_own_replies_over_few_connections(void)
{
    check_many_callers(3, CALLERS, CALLERS);
}

/* ---- results later, and time ------------------------------------------------------------------- */

struct result {
    _Atomic int told;
    int error;
    long long integer;
    struct wr_redis *redis;
    int inside; /* callbacks come one at a time */
};

static void note(int error, struct wr_reply *reply, void *arg)
{
    struct result *result = arg;

    CHECK_EQUAL(result->inside++, 0);
    result->error = error;
    result->integer = reply ? reply->integer : 0;
    wr_reply_free(reply);
    result->inside--;
    atomic_fetch_add(&result->told, 1);
}

static void test_results_are_told_later_from_the_client_itself(void)
{
    struct wr_redis *redis = open_client(WEIR_REDIS(.url = server.url)); /* it may not be up yet */
    struct result result = { 0 };

    server_do(&server, "DEL asked");
    for (int i = 0; i < 100; i++)
        assert_int_equal(
            wr_redis_ask(redis, WR_COMMAND("INCR", "asked"), patience(), note, &result), 0);
    AWAIT(atomic_load(&result.told) == 100);
    assert_int_equal(result.error, 0);
    assert_int_equal(result.integer, 100);
    wr_redis_close(redis);
}

/* A callback may call, and ask again. */
static void note_and_call(int error, struct wr_reply *reply, void *arg)
{
    struct result *result = arg;

    CHECK_EQUAL(error, 0);
    wr_reply_free(reply);
    CHECK(echoes(result->redis, "from a callback"));
    CHECK_EQUAL(wr_redis_ask(result->redis, WR_COMMAND("INCR", "again"), patience(), note, result),
                0);
}

static void test_callbacks_may_use_the_client(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url));
    struct result result = { .redis = redis };

    server_do(&server, "DEL again");
    assert_int_equal(wr_redis_ask(redis, WR_COMMAND("PING"), patience(), note_and_call, &result),
                     0);
    AWAIT(atomic_load(&result.told) == 1);
    assert_int_equal(result.integer, 1);
    wr_redis_close(redis);
}

struct ticks {
    struct wr_redis *redis;
    _Atomic int fired;
    _Atomic int wanted;
};

static void tick(struct wr_redis_timer *timer, void *arg)
{
    struct ticks *ticks = arg;

    CHECK(weir_now() >= timer->when);
    if (atomic_fetch_add(&ticks->fired, 1) + 1 < ticks->wanted)
        wr_redis_timer_set(ticks->redis, timer, weir_in_ms(1));
}

static void test_timers_fire_at_their_time_and_not_after_they_are_stopped(void)
{
    struct wr_redis *redis = open_client(WEIR_REDIS(.url = server.url));
    struct ticks ticks = { .redis = redis, .wanted = 5 };
    struct wr_redis_timer timer = { .fire = tick, .arg = &ticks };
    struct wr_redis_timer never = { .fire = tick, .arg = &ticks };

    wr_redis_timer_set(redis, &never, weir_in_s(1000));
    wr_redis_timer_set(redis, &timer, weir_in_ms(2));
    AWAIT(atomic_load(&ticks.fired) == 5);
    atomic_store(&ticks.wanted, 1 << 30);
    wr_redis_timer_set(redis, &timer, 0);
    AWAIT(atomic_load(&ticks.fired) >= 7);
    wr_redis_timer_stop(redis, &timer);
    int fired = atomic_load(&ticks.fired);
    assert_false(timer.set);
    assert_int_equal(call(redis, WR_COMMAND("PING")), 4);
    assert_true(atomic_load(&ticks.fired) == fired);
    wr_redis_timer_stop(redis, &never);
    wr_redis_close(redis);
}

static void test_closing_tells_requests_under_way_that_it_is_closed(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url));
    struct result result = { 0 };

    server_freeze(&server);
    assert_int_equal(wr_redis_ask(redis, WR_COMMAND("PING"), WEIR_FOREVER, note, &result), 0);
    assert_int_equal(wr_redis_ask(redis, WR_COMMAND("PING"), patience(), note, &result), 0);
    wr_redis_close(redis);
    server_thaw(&server);
    assert_int_equal(atomic_load(&result.told), 2);
    assert_int_equal(result.error, WEIR_ECLOSED);
}

static int64_t processor_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

static void test_an_idle_client_sends_nothing_and_uses_no_processor(void)
{
    struct wr_redis *redis = open_ready(WEIR_REDIS(.url = server.url, .reply_ms = 1000));
    struct wr_redis_stats stats;
    long long before, after;
    int64_t used_ns;

    call(redis, WR_COMMAND("PING"));
    before = server_do(
        &server, "EVAL %s 0",
        "return tonumber(redis.call('INFO','stats'):match('total_commands_processed:(%d+)'))");
    used_ns = processor_ns();
    weir_sleep(weir_in_ms(300));
    used_ns = processor_ns() - used_ns;
    after = server_do(
        &server, "EVAL %s 0",
        "return tonumber(redis.call('INFO','stats'):match('total_commands_processed:(%d+)'))");
    assert_true(after - before <= 2); /* these two */
    wr_redis_stats_get(&stats, redis);
    assert_int_equal(stats.commands, 1);
    assert_int_equal(stats.losses, 0);
    assert_true(used_ns < 20000000);
    wr_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_path_an_address_and_a_name_lead_to_the_server),
        TEST(test_the_server_lists_the_client_by_its_name),
        TEST(test_an_error_of_the_server_is_told_in_its_own_words),
        TEST(test_any_bytes_go_and_come_back),
        TEST(test_a_script_that_the_server_does_not_know_is_sent_in_full),
        TEST(test_commands_sent_without_waiting_go_before_later_calls),
        TEST(test_errors_of_commands_sent_without_waiting_are_counted),
        TEST(test_one_thread_gets_its_replies),
        TEST(test_many_threads_get_their_own_replies),
        TEST(test_many_tasks_get_their_own_replies),
        TEST(test_threads_and_tasks_get_their_own_replies_over_few_connections),
        TEST(test_results_are_told_later_from_the_client_itself),
        TEST(test_callbacks_may_use_the_client),
        TEST(test_timers_fire_at_their_time_and_not_after_they_are_stopped),
        TEST(test_closing_tells_requests_under_way_that_it_is_closed),
        TEST(test_an_idle_client_sends_nothing_and_uses_no_processor),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
