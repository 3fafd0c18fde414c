/* Shared by tests of guards on a server: a server, a store, guards with short leases.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_FLEET_SUPPORT_H
#define WR_TESTS_REDIS_FLEET_SUPPORT_H

#include "redis/one_server.h"
#include "support/check.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <weir/redis.h>

#define MS(n) ((int64_t)(n)*1000000)

static inline weir_store *store_at(const weir_redis_options *where, const weir_fleet_options *opt)
{
    weir_message message;
    weir_store *store = NULL;
    int rc = weir_store_redis(&store, where, opt, &message);

    if (rc)
        fail_msg("weir_store_redis: %d %s", rc, message.text);
    return store;
}

/* How long an answer may take where the server is busy, not away: a test of what is away does not depend on it. */
enum { ANSWER_MS = 60000 };

static inline weir_store *store_of(const weir_fleet_options *opt)
{
    weir_fleet_options fleet = opt ? *opt : *WEIR_FLEET(.look_ms = ANSWER_MS);

    if (!fleet.look_ms) /* the caller says other things */
        fleet.look_ms = ANSWER_MS;
    return store_at(
        WEIR_REDIS(.url = server.url, .backoff_ms = 5, .backoff_max_ms = 50, .reply_ms = ANSWER_MS),
        &fleet);
}

static inline weir_guard *guard_of(weir_store *store, const char *name,
                                   const weir_guard_options *opt)
{
    weir_message message;
    weir_guard *guard = NULL;
    weir_time end = patience();
    int rc;

    do /* a slow machine takes its time to connect, and to answer */
        rc = weir_guard_new(&guard, store, name, opt, &message);
    while (rc == WEIR_EAWAY && weir_now() < end);
    if (rc)
        fail_msg("weir_guard_new(%s): %d %s", name, rc, message.text);
    return guard;
}

static inline weir_guard_stats guard_stats(weir_guard *guard)
{
    weir_guard_stats s = { .size = sizeof(s) };

    assert_int_equal(weir_guard_stats_get(&s, guard), 0);
    return s;
}

/* Measures for how long a thread of this machine was kept from running, so that a bound on a span of time says something
 * about weir and not about the machine's other work. */
struct ruler {
    pthread_t thread;
    _Atomic bool stop;
    int64_t late_ns;
};

static inline void *ruler_main(void *arg)
{
    struct ruler *ruler = arg;

    while (!ruler->stop) {
        weir_time until = weir_in_ms(5);
        weir_sleep(until);
        ruler->late_ns += weir_now() - until;
    }
    return NULL;
}

static inline void ruler_start(struct ruler *ruler)
{
    *ruler = (struct ruler){ .stop = false };
    assert_int_equal(pthread_create(&ruler->thread, NULL, ruler_main, ruler), 0);
}

/* How late its sleeps were, all together. */
static inline int64_t ruler_end(struct ruler *ruler)
{
    ruler->stop = true;
    assert_int_equal(pthread_join(ruler->thread, NULL), 0);
    return ruler->late_ns;
}

/* Asks the server until it answers `wanted`: what was sent without waiting is on its way. */
static inline void await_number(long long wanted, const char *command)
{
    weir_time end = patience();
    long long got = server_do(&server, command);

    while (got != wanted && weir_now() < end) {
        weir_sleep(weir_in_ms(1));
        got = server_do(&server, command);
    }
    assert_int_equal(got, wanted);
}

/* Waits until so many stores hear messages. Messages sent before are asked for by renewals, whose answers a test may hold back. */
static inline void await_listeners(int count)
{
    await_number(count, "PUBSUB CHANNELS weir:bell:*");
}

/* How many commands the server has seen, without those of this look and of connections. */
static inline long long scripts_run(void)
{
    char *text = server_say(&server, "INFO commandstats");
    long long sum = 0;

    for (const char *at = text; (at = strstr(at, "cmdstat_eval")); at++) {
        const char *calls = strstr(at, "calls=");
        sum += calls ? strtoll(calls + 6, NULL, 10) : 0;
    }
    free(text);
    return sum;
}

/* Waits until no script runs for so long: what was sent before may still be on its way. */
static inline void await_silence(int ms)
{
    weir_time end = patience();
    long long before;

    do {
        before = scripts_run();
        weir_sleep(weir_in_ms(ms));
    } while (scripts_run() != before && weir_now() < end);
    assert_true(weir_now() < end);
}

#endif
