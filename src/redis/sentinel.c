/* Sentinels: they know which server is the master, and say when that changes.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "redis/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

static struct wr_login sentinel_login(const struct wr_redis *redis)
{
    return (struct wr_login){ .user = redis->config.opt.sentinel_user,
                              .password = redis->config.opt.sentinel_password };
}

/* Asks one sentinel for the master's address. */
static int ask_one(struct wr_redis *redis, const struct wr_endpoint *sentinel,
                   struct wr_endpoint *out, weir_time deadline, weir_message *message)
{
    const char *master = redis->config.master;
    struct wr_login login = sentinel_login(redis);
    struct wr_reply *reply = NULL;
    struct wr_conn conn;
    char where[300];
    int rc = wr_conn_open(&conn, sentinel, redis->tls, &login, deadline, message);

    if (rc)
        return rc;
    rc = wr_conn_command(&reply, &conn, WR_COMMAND("SENTINEL", "get-master-addr-by-name", master),
                         deadline, message);
    wr_conn_close(&conn);
    if (!rc)
        rc = wr_reply_code(reply, message);
    wr_endpoint_text(where, sizeof(where), sentinel);
    if (!rc &&
        (reply->type != WR_REPLY_ARRAY || reply->count != 2 ||
         reply->items[0]->type != WR_REPLY_STRING || reply->items[1]->type != WR_REPLY_STRING ||
         reply->items[0]->size >= sizeof(out->host)))
        rc = wr_redis_fail(WEIR_EAWAY, message, "sentinel %s knows no master '%s'", where, master);
    if (!rc) {
        unsigned long port = strtoul(reply->items[1]->text, NULL, 10);
        if (port < 1 || port > 65535)
            rc = wr_redis_fail(WEIR_EPROTO, message, "sentinel %s names port '%s'", where,
                               reply->items[1]->text);
        memcpy(out->host, reply->items[0]->text, reply->items[0]->size + 1);
        out->port = (uint16_t)port;
    }
    wr_reply_free(reply);
    return rc;
}

/* Asks one sentinel after the other, beginning with the one that answered last; each has its share of the time that is left. */
int wr_sentinel_find(struct wr_redis *redis, struct wr_endpoint *out, weir_time deadline,
                     weir_message *message)
{
    uint32_t count = (uint32_t)redis->config.host_count;
    uint32_t first = wr_load(&redis->sentinel, relaxed);
    int rc = WEIR_EAWAY;

    for (uint32_t i = 0; i < count && rc && rc != WEIR_ECANCELED; i++) {
        uint32_t which = (first + i) % count;
        weir_time now = weir_now();
        int64_t left = deadline > now ? deadline - now : 0;
        rc = ask_one(redis, &redis->config.hosts[which], out, now + left / (count - i), message);
        if (!rc)
            wr_store(&redis->sentinel, which, relaxed);
    }
    return rc;
}

/* Just after a fail-over the sentinels may still name the old master, which has become a replica, or is about to. */
int wr_sentinel_check(struct wr_conn *conn, const struct wr_endpoint *endpoint, weir_time deadline,
                      weir_message *message)
{
    struct wr_reply *reply = NULL;
    char where[300];
    int rc = wr_conn_command(&reply, conn, WR_COMMAND("ROLE"), deadline, message);

    if (!rc)
        rc = wr_reply_code(reply, message);
    wr_endpoint_text(where, sizeof(where), endpoint);
    if (!rc &&
        (reply->type != WR_REPLY_ARRAY || !reply->count ||
         reply->items[0]->type != WR_REPLY_STRING || strcmp(reply->items[0]->text, "master") != 0))
        rc = wr_redis_fail(WEIR_EAWAY, message,
                           "%s: the sentinels name it as the master, but it is not one", where);
    wr_reply_free(reply);
    return rc;
}

/* ---- changes ----------------------------------------------------------------------------------- */

/* Where the ear for changes listens: the next sentinel each time it connects. */
static int find_sentinel(struct wr_redis *redis, struct wr_endpoint *out, struct wr_login *login,
                         weir_time deadline, weir_message *message)
{
    uint32_t which = wr_add(&redis->sentinel_ear, 1, relaxed);

    (void)deadline, (void)message;
    *out = redis->config.hosts[which % (uint32_t)redis->config.host_count];
    *login = sentinel_login(redis);
    return 0;
}

/* "+switch-master": name, old address, new address. The sentinel that says it may be the last to know: links that are connected
 * to the new address already stay. */
static void hear_switch(enum wr_redis_event event, const char *message, size_t size, void *arg)
{
    struct wr_redis *redis = arg;
    size_t length = strlen(redis->config.master);
    struct wr_endpoint to = { .port = 0 };

    if (event == WR_REDIS_MESSAGE && size > length && message[length] == ' ' &&
        !memcmp(message, redis->config.master, length) &&
        sscanf(message + length, " %*s %*s %255s %" SCNu16, to.host, &to.port) == 2)
        wr_redis_move(redis, &to, "the sentinels have named another master");
}

int wr_sentinel_start(struct wr_redis *redis)
{
    redis->switches.find = find_sentinel;
    return wr_ear_subscribe(&redis->switch_subscription, &redis->switches, "+switch-master",
                            hear_switch, redis);
}
