/* An ear: a connection of its own on which messages come, made anew whenever it breaks.
 *
 * The connection exists as long as there is a subscription. Messages go to the teller, which calls the listeners.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_EAR_H
#define WR_REDIS_EAR_H

#include "redis/conn.h"
#include "redis/teller.h"

struct wr_ear {
    struct wr_redis *redis; /* fixed */
    /* Says where to connect now, and with which login. Called in the ear's body. */
    int (*find)(struct wr_redis *redis, struct wr_endpoint *out, struct wr_login *login,
                weir_time deadline, weir_message *message);

    struct wr_lock lock; /* all below, conn.tls and conn.wire included; taken before the teller's */
    struct wr_list subscriptions;
    weir_parker *body; /* NULL: not running */
    struct wr_conn conn;
    bool started, up, closing;
    int unanswered; /* subscriptions sent and not confirmed */
    uint64_t connects;
};

void wr_ear_init(struct wr_ear *ear, struct wr_redis *redis,
                 int (*find)(struct wr_redis *, struct wr_endpoint *, struct wr_login *, weir_time,
                             weir_message *));
void wr_ear_move(struct wr_ear *ear, const struct wr_endpoint *to); /* as wr_link_move */
void wr_ear_stop(struct wr_ear *ear);
void wr_ear_fini(
    struct wr_ear *ear); /* after the runtime is freed; frees what is still subscribed */

int wr_ear_subscribe(struct wr_subscription **out, struct wr_ear *ear, const char *channel,
                     wr_redis_listener *listener, void *arg);

#endif
