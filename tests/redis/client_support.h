/* Shared by tests of the client.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_CLIENT_SUPPORT_H
#define WR_TESTS_REDIS_CLIENT_SUPPORT_H

#include "redis/client.h"
#include "redis/server.h"
#include "support/check.h"

#include <string.h>

static inline struct wr_redis *open_client(const weir_redis_options *opt)
{
    weir_message message = { "" };
    struct wr_redis *redis = NULL;
    int rc = wr_redis_open(&redis, opt, NULL, &message);

    if (rc)
        printf("%s: %s\n", weir_errname(rc), message.text);
    assert_int_equal(rc, 0);
    return redis;
}

static inline struct wr_redis *open_ready(const weir_redis_options *opt)
{
    struct wr_redis *redis = open_client(opt);
    weir_message message = { "" };
    weir_time end = patience();
    int rc;

    do /* a slow machine takes its time to connect */
        rc = wr_redis_ready(redis, end, &message);
    while (rc == WEIR_EAWAY && weir_now() < end);
    if (rc)
        printf("%s: %s\n", weir_errname(rc), message.text);
    assert_int_equal(rc, 0);
    return redis;
}

/* A call that must succeed: its integer, the length of its text, or its number of items; -1 for nil. From any thread. */
static inline long long call(struct wr_redis *redis, const struct wr_command *command)
{
    weir_message message = { "" };
    struct wr_reply *reply = NULL;
    long long answer = -1;
    int rc = wr_redis_call(&reply, redis, command, patience(), &message);

    if (!CHECK_EQUAL(rc, 0)) {
        printf("%s %s: %s\n", command->words[0], weir_errname(rc), message.text);
        wr_reply_free(reply);
        return -2;
    }
    if (reply->type == WR_REPLY_INTEGER)
        answer = reply->integer;
    else if (reply->type == WR_REPLY_ARRAY)
        answer = (long long)reply->count;
    else if (reply->type != WR_REPLY_NIL)
        answer = (long long)reply->size;
    wr_reply_free(reply);
    return answer;
}

/* A call that must fail: its code. */
static inline int call_fails(struct wr_redis *redis, const struct wr_command *command,
                             weir_time deadline, weir_message *message)
{
    struct wr_reply *reply = NULL;
    int rc = wr_redis_call(&reply, redis, command, deadline, message);

    CHECK(rc < 0);
    wr_reply_free(reply);
    return rc;
}

/* Whether ECHO comes back with the very words it was given: else replies and requests are out of step. */
static inline bool echoes(struct wr_redis *redis, const char *text)
{
    struct wr_reply *reply = NULL;
    int rc = wr_redis_call(&reply, redis, WR_COMMAND("ECHO", text), patience(), NULL);
    bool same = CHECK_EQUAL(rc, 0) && CHECK(reply->type == WR_REPLY_STRING) &&
                CHECK(!strcmp(reply->text, text));

    wr_reply_free(reply);
    return same;
}

#endif
