/* The table of slots: read from any node that answers, corrected by redirects (MOVED).
 * SPDX-License-Identifier: MIT */
#include "redis/cluster.h"

#include "base/assert.h"
#include "base/os.h"
#include "redis/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>
#include <weir/runtime.h>

struct waiter {
    struct wr_list link;
    weir_parker *parker;
};

/* ---- slots ------------------------------------------------------------------------------------- */

/* CRC-16/XMODEM, as the cluster's specification has it. */
static uint16_t crc16(const char *bytes, size_t size)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < size; i++) {
        crc ^= (uint16_t)((unsigned char)bytes[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1);
    }
    return crc;
}

uint32_t wr_slot_of(const char *key, size_t size)
{
    const char *open = memchr(key, '{', size);
    const char *close = open ? memchr(open, '}', size - (size_t)(open - key)) : NULL;

    if (close && close > open + 1)
        return crc16(open + 1, (size_t)(close - open - 1)) % WR_SLOTS;
    return crc16(key, size) % WR_SLOTS;
}

struct wr_node *wr_cluster_node(struct wr_redis *redis, const char *key, size_t size)
{
    uint32_t slot = key ? wr_slot_of(key, size) : 0;
    struct wr_node *node = wr_load(&redis->cluster.slots[slot], acquire);

    return node ? node : redis->home;
}

/* Reads host:port. The host may be missing: then it is that of `from`, the node that sent the text. */
static bool read_address(struct wr_endpoint *out, const char *text, size_t size,
                         const struct wr_endpoint *from)
{
    const char *colon = NULL;
    unsigned long port;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == ':')
            colon = text + i;
    }
    if (!colon || (size_t)(colon - text) >= sizeof(out->host))
        return false;
    port = strtoul(colon + 1, NULL, 10);
    if (port < 1 || port > 65535)
        return false;
    *out = *from;
    if (colon > text)
        snprintf(out->host, sizeof(out->host), "%.*s", (int)(colon - text), text);
    out->port = (uint16_t)port;
    return true;
}

struct wr_node *wr_cluster_redirect(struct wr_redis *redis, const char *error,
                                    const struct wr_node *from)
{
    const char *slot_text = strchr(error, ' ');
    const char *where = slot_text ? strchr(slot_text + 1, ' ') : NULL;
    struct wr_endpoint endpoint;
    struct wr_node *node;
    unsigned long slot;

    if (!where || !read_address(&endpoint, where + 1, strcspn(where + 1, " "), &from->endpoint))
        return NULL;
    node = wr_redis_node(redis, &endpoint);
    slot = strtoul(slot_text + 1, NULL, 10);
    if (node && slot < WR_SLOTS && !strncmp(error, "MOVED", 5)) {
        wr_node_want(node, true);
        wr_store(&redis->cluster.slots[slot], node, release);
        wr_cluster_refresh(redis);
    }
    return node;
}

/* ---- reading the table --------------------------------------------------------------------------- */

/* One row: first slot, last slot, the master's host and port, replicas. */
static bool read_row(struct wr_redis *redis, const struct wr_reply *row,
                     const struct wr_endpoint *from)
{
    const struct wr_reply *master;
    struct wr_endpoint endpoint = *from;
    struct wr_node *node;

    if (row->type != WR_REPLY_ARRAY || row->count < 3 || row->items[0]->type != WR_REPLY_INTEGER ||
        row->items[1]->type != WR_REPLY_INTEGER || row->items[2]->type != WR_REPLY_ARRAY ||
        row->items[2]->count < 2)
        return false;
    master = row->items[2];
    int64_t first = row->items[0]->integer, last = row->items[1]->integer;
    if (first < 0 || last >= WR_SLOTS || first > last ||
        master->items[1]->type != WR_REPLY_INTEGER || master->items[1]->integer < 1 ||
        master->items[1]->integer > 65535)
        return false;
    if (master->items[0]->type == WR_REPLY_STRING && master->items[0]->size &&
        master->items[0]->size < sizeof(endpoint.host) && master->items[0]->text[0] != '?')
        memcpy(endpoint.host, master->items[0]->text, master->items[0]->size + 1);
    endpoint.port = (uint16_t)master->items[1]->integer;
    node = wr_redis_node(redis, &endpoint);
    if (!node)
        return false;
    for (int64_t slot = first; slot <= last; slot++)
        wr_store(&redis->cluster.slots[slot], node, release);
    return true;
}

static int read_table(struct wr_redis *redis, const struct wr_endpoint *endpoint,
                      weir_time deadline, weir_message *message)
{
    struct wr_login login = wr_redis_login(redis);
    struct wr_reply *reply = NULL;
    struct wr_conn conn;
    char where[300];
    int rc = wr_conn_open(&conn, endpoint, redis->tls, &login, deadline, message);

    if (rc)
        return rc;
    rc = wr_conn_command(&reply, &conn, WR_COMMAND("CLUSTER", "SLOTS"), deadline, message);
    wr_conn_close(&conn);
    if (!rc)
        rc = wr_reply_code(reply, message);
    wr_endpoint_text(where, sizeof(where), endpoint);
    if (!rc && (reply->type != WR_REPLY_ARRAY || !reply->count))
        rc = wr_redis_fail(WEIR_EAWAY, message, "%s: the cluster has no slots yet", where);
    for (size_t i = 0; !rc && i < reply->count; i++) {
        if (!read_row(redis, reply->items[i], endpoint))
            rc = wr_redis_fail(WEIR_EPROTO, message, "%s: not a table of slots", where);
    }
    wr_reply_free(reply);
    return rc;
}

static bool unmark(struct wr_node *node, void *arg)
{
    (void)arg;
    node->marked = false;
    return false;
}

static bool decide(struct wr_node *node, void *arg)
{
    (void)arg;
    wr_node_want(node, node->marked);
    return false;
}

/* Nodes that have a slot are wanted; others rest. */
static void sort_nodes(struct wr_redis *redis)
{
    wr_redis_each_node(redis, unmark, NULL);
    for (uint32_t slot = 0; slot < WR_SLOTS; slot++) {
        struct wr_node *node = wr_load(&redis->cluster.slots[slot], acquire);
        if (node)
            node->marked = true;
    }
    wr_redis_each_node(redis, decide, NULL);
}

/* The search for a node that answers: known nodes first, then those of the URL. */
struct search {
    struct wr_redis *redis;
    weir_time deadline;
    int rc;
    weir_message *message;
};

static bool ask_node(struct wr_node *node, void *arg)
{
    struct search *search = arg;

    search->rc = read_table(search->redis, &node->endpoint, search->deadline, search->message);
    return search->rc == 0 || search->rc == WEIR_ECANCELED;
}

static int ask_anybody(struct wr_redis *redis, weir_message *message)
{
    struct search search = { redis, weir_in_ms(redis->config.opt.connect_ms), WEIR_EAWAY, message };

    wr_redis_each_node(redis, ask_node, &search);
    for (int i = 0; i < redis->config.host_count && search.rc; i++) {
        search.deadline = weir_in_ms(redis->config.opt.connect_ms);
        search.rc = read_table(redis, &redis->config.hosts[i], search.deadline, message);
    }
    if (!search.rc)
        sort_nodes(redis);
    return search.rc;
}

/* ---- the body -------------------------------------------------------------------------------- */

/* With the lock. */
static void tell(struct wr_redis *redis, int error, const weir_message *why)
{
    struct wr_cluster *cluster = &redis->cluster;

    if (!error)
        wr_store(&cluster->known, true, release);
    cluster->error = error;
    cluster->why = *why;
    wr_list_each(node, &cluster->waiting)
        weir_unpark(WR_CONTAINER(node, struct waiter, link)->parker);
    wr_redis_changed(redis);
}

static void cluster_main(void *arg)
{
    enum { APART_MS = 50 }; /* a burst of moves is one look at the table */
    struct wr_redis *redis = arg;
    struct wr_cluster *cluster = &redis->cluster;
    weir_parker_room room;
    uint32_t failures = 0;

    wr_lock(&cluster->lock);
    cluster->body = weir_parker_self(&room);
    while (!cluster->closing) {
        weir_message why = { "" };
        weir_time until;
        int rc;
        if (!cluster->wanted) {
            wr_unlock(&cluster->lock);
            weir_park(cluster->body, WEIR_FOREVER);
            wr_lock(&cluster->lock);
            continue;
        }
        cluster->wanted = false;
        wr_unlock(&cluster->lock);
        rc = ask_anybody(redis, &why);
        wr_lock(&cluster->lock);
        tell(redis, rc, &why);
        failures = rc ? failures + 1 : 0;
        cluster->wanted = cluster->wanted || rc;
        until = rc ? wr_redis_pause(redis, failures) : weir_in_ms(APART_MS);
        while (!cluster->closing && weir_now() < until) {
            wr_unlock(&cluster->lock);
            weir_park(cluster->body, until);
            wr_lock(&cluster->lock);
        }
    }
    tell(redis, WEIR_ECLOSED, &(weir_message){ "the client is being closed" });
    cluster->body = NULL;
    wr_unlock(&cluster->lock);
    wr_teller_bodies(&redis->teller, -1);
}

/* ---- from outside ------------------------------------------------------------------------------ */

int wr_cluster_init(struct wr_cluster *cluster)
{
    wr_list_init(&cluster->waiting);
    cluster->slots = wr_os_alloc(WR_SLOTS * sizeof(cluster->slots[0]));
    return cluster->slots ? 0 : WEIR_ENOMEM;
}

int wr_cluster_start(struct wr_redis *redis)
{
    redis->cluster.wanted = true;
    return wr_redis_spawn(redis, cluster_main, redis);
}

void wr_cluster_stop(struct wr_cluster *cluster)
{
    wr_lock(&cluster->lock);
    cluster->closing = true;
    if (cluster->body)
        weir_unpark(cluster->body);
    wr_unlock(&cluster->lock);
}

void wr_cluster_fini(struct wr_cluster *cluster)
{
    wr_os_free((void *)cluster->slots);
}

void wr_cluster_refresh(struct wr_redis *redis)
{
    struct wr_cluster *cluster = &redis->cluster;

    if (!cluster->slots)
        return;
    wr_lock(&cluster->lock);
    if (!cluster->wanted) {
        cluster->wanted = true;
        if (cluster->body)
            weir_unpark(cluster->body);
    }
    wr_unlock(&cluster->lock);
}

int wr_cluster_wait(struct wr_cluster *cluster, weir_time deadline, weir_message *message)
{
    weir_parker_room room;
    struct waiter me;
    int rc = 0;

    if (!cluster->slots || wr_load(&cluster->known, acquire))
        return 0;
    wr_lock(&cluster->lock);
    while (!wr_load(&cluster->known, acquire)) {
        if (cluster->error) {
            rc = wr_redis_fail(cluster->error, message, "%s", cluster->why.text);
            break;
        }
        if (rc) {
            wr_redis_fail(rc, message, "no node of the cluster has answered yet");
            break;
        }
        me.parker = weir_parker_self(&room);
        wr_list_append(&cluster->waiting, &me.link);
        wr_unlock(&cluster->lock);
        rc = weir_cancelled() ? WEIR_ECANCELED : weir_park(me.parker, deadline);
        wr_lock(&cluster->lock);
        wr_list_remove(&me.link);
    }
    rc = wr_load(&cluster->known, acquire) ? 0 : rc;
    wr_unlock(&cluster->lock);
    return rc;
}
