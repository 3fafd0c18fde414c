/* The record of a server. See witness.h.
 * SPDX-License-Identifier: MIT */
#include "redis/witness.h"

#include "support/check.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static long long wall_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Scripts, and what changes permits and lines. */
static bool matters(const char *line, size_t size)
{
    static const char *const words[] = { " \"EVAL", " \"ZADD\"",  " \"ZREM\"", " \"DEL\"",
                                         " \"h ",   " \"grace\"", " \"PING\"" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (memmem(line, size, words[i], strlen(words[i])))
            return true;
    return memmem(line, size, " \"PEXPIRE\"", 10) &&
           (memmem(line, size, ":held\"", 6) || memmem(line, size, ":line\"", 6));
}

static void *listen_to(void *arg)
{
    struct witness *w = arg;
    redisReply *reply;

    while (redisGetReply(w->context, (void **)&reply) == REDIS_OK) {
        if (reply->type == REDIS_REPLY_STATUS && matters(reply->str, (size_t)reply->len))
            fprintf(w->out, "%s\n", reply->str);
        freeReplyObject(reply);
    }
    return NULL;
}

static void *ping(void *arg)
{
    struct witness *w = arg;
    redisReply *reply;

    while (!w->over && (reply = redisCommand(w->pulse_context, "PING"))) {
        freeReplyObject(reply);
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    return NULL;
}

void witness_open(struct witness *w, const char *path)
{
    memset(w, 0, sizeof(*w));
    signal(SIGPIPE, SIG_IGN); /* the server may be killed while it is pinged */
    w->out = fopen(path, "w");
    assert_non_null(w->out);
}

void witness_close(struct witness *w)
{
    fclose(w->out);
}

static redisContext *connect_to(struct server *server)
{
    redisContext *context = redisConnectUnix(server->socket);

    assert_true(context && !context->err);
    return context;
}

/* Until when the key lives. */
static void write_life(struct witness *w, redisContext *c, const char *guard, const char *kind)
{
    long long now = wall_us();
    redisReply *life = redisCommand(c, "PTTL weir:{%s}:%s", guard, kind);

    if (life && life->integer >= 0)
        fprintf(w->out, "%lld.%06lld \"known\" \"PEXPIRE\" \"weir:{%s}:%s\" \"%lld\"\n",
                now / 1000000, now % 1000000, guard, kind, life->integer);
    freeReplyObject(life);
}

/* The members of a set with scores, and what is said of them. */
static void write_known(struct witness *w, redisContext *c, const char *guard, const char *kind)
{
    long long now = wall_us();
    redisReply *set = redisCommand(c, "ZRANGE weir:{%s}:%s 0 -1 WITHSCORES", guard, kind);

    for (size_t i = 0; set && i + 1 < set->elements; i += 2) {
        const char *id = set->element[i]->str;
        redisReply *info = redisCommand(c, "HGET weir:{%s}:info %s", guard, id);

        fprintf(w->out, "%lld.%06lld \"known\" \"ZADD\" \"weir:{%s}:%s\" \"%s\" \"%s\"\n",
                now / 1000000, now % 1000000, guard, kind, set->element[i + 1]->str, id);
        if (info && info->type == REDIS_REPLY_STRING)
            fprintf(w->out, "%lld.%06lld \"known\" \"HSET\" \"weir:{%s}:info\" \"%s\" \"%s\"\n",
                    now / 1000000, now % 1000000, guard, id, info->str);
        freeReplyObject(info);
    }
    freeReplyObject(set);
    write_life(w, c, guard, kind);
}

void witness_begin(struct witness *w, struct server *server, const char *why,
                   const char *const *guards)
{
    redisContext *c = connect_to(server);
    redisReply *reply;

    w->context = connect_to(server);
    reply = redisCommand(w->context, "MONITOR");
    assert_non_null(reply);
    freeReplyObject(reply);
    fprintf(w->out, "# begin %lld %s\n", wall_us(), why);
    for (; *guards; guards++) {
        write_known(w, c, *guards, "held");
        write_known(w, c, *guards, "line");
    }
    fprintf(w->out, "# begun %lld\n", wall_us());
    redisFree(c);
    w->pulse_context = connect_to(server);
    w->over = false;
    assert_int_equal(pthread_create(&w->thread, NULL, listen_to, w), 0);
    assert_int_equal(pthread_create(&w->pulse, NULL, ping, w), 0);
}

void witness_end(struct witness *w)
{
    w->over = true;
    pthread_join(w->pulse, NULL);
    shutdown(w->context->fd, SHUT_RD);
    pthread_join(w->thread, NULL);
    fprintf(w->out, "# end %lld\n", wall_us());
    redisFree(w->context);
    redisFree(w->pulse_context);
}
