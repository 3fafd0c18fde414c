/* The client's inside, as its files share it.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_REDIS_H
#define WR_REDIS_REDIS_H

#include "redis/cluster.h"
#include "redis/config.h"
#include "redis/ear.h"
#include "redis/link.h"

#include <weir/runtime.h>

/* A server, and our links to it. Nodes stay until the client is closed. */
struct wr_node {
    struct wr_list link; /* in redis->nodes */
    struct wr_endpoint endpoint;
    bool started;
    bool marked; /* used by the cluster's body only */
    /* It has a slot, or there is no cluster: if it is lost, it is to be found again */
    _Atomic bool wanted;
    uint32_t count;
    struct wr_link links[];
};

struct wr_redis {
    struct wr_redis_config config; /* fixed */
    struct wr_tls_context *tls;
    struct wr_redis_calls calls;
    weir_runtime *runtime;
    uint64_t seed[2];

    struct wr_teller teller;
    struct wr_ear ear; /* for subscriptions of this client's user */
    struct wr_cluster cluster;

    /* with sentinels */
    _Atomic uint32_t sentinel, sentinel_ear; /* which to ask next; which to listen to next   */
    struct wr_ear switches;                  /* on which they say that the master has changed */
    struct wr_subscription *switch_subscription;
    _Atomic uint64_t dropped; /* see wr_redis_stats */

    struct wr_lock lock; /* all below; taken before a link's */
    struct wr_list nodes;
    struct wr_node *home; /* the server, unless there is a cluster; fixed */
    bool closing;

    struct wr_lock state_lock; /* the innermost                              */
    struct wr_told state_told; /* that the state may have changed            */
    bool state_posted;
    enum wr_redis_state told_state; /* what on_state was told last; used in the teller only */
};

/* A link's state, or what is known of the cluster, has changed. Under its lock. */
void wr_redis_changed(struct wr_redis *redis);

/* Starts a body on the client's runtime, which calls wr_teller_bodies(-1) as its last act. */
int wr_redis_spawn(struct wr_redis *redis, weir_body *body, void *arg);

/* The link that this command takes. */
struct wr_link *wr_redis_route(struct wr_redis *redis, const struct wr_command *command);

/* The link that requests for this key take to this node. */
struct wr_link *wr_redis_link(struct wr_redis *redis, struct wr_node *node, const char *key,
                              size_t size);

/* The node with that address, made if it is new. NULL: no memory, or it could not be started. */
struct wr_node *wr_redis_node(struct wr_redis *redis, const struct wr_endpoint *endpoint);

/* Where the server is now that a link or an ear should connect to, and how to log in there. */
int wr_redis_find(struct wr_redis *redis, struct wr_endpoint *out, struct wr_login *login,
                  weir_time deadline, weir_message *message) WEIR_PARKS;
struct wr_login wr_redis_login(const struct wr_redis *redis);

/* The server is now at `to`: links, and the ear, that are connected to another address connect again. */
void wr_redis_move(struct wr_redis *redis, const struct wr_endpoint *to, const char *why);

/* Calls `look` for each node until it answers true. Without a lock: nodes stay. */
void wr_redis_each_node(struct wr_redis *redis, bool (*look)(struct wr_node *node, void *arg),
                        void *arg);
void wr_node_want(struct wr_node *node, bool wanted);

/* sentinel.c */
int wr_sentinel_start(struct wr_redis *redis);
int wr_sentinel_find(struct wr_redis *redis, struct wr_endpoint *out, weir_time deadline,
                     weir_message *message) WEIR_PARKS;
int wr_sentinel_check(struct wr_conn *conn, const struct wr_endpoint *endpoint, weir_time deadline,
                      weir_message *message) WEIR_PARKS;

/* When to try again after so many failures. */
weir_time wr_redis_pause(const struct wr_redis *redis, uint32_t failures);

/* A connection that lasts this long makes earlier failures forgotten. */
#define WR_REDIS_STEADY_NS INT64_C(1000000000)

#endif
