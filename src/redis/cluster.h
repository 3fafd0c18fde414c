/* A cluster: which node has which slot, as far as we know.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_CLUSTER_H
#define WR_REDIS_CLUSTER_H

#include "redis/conn.h"
#include "redis/teller.h"

struct wr_node;

enum { WR_SLOTS = 16384 };

struct wr_cluster {
    _Atomic(struct wr_node *) *slots; /* NULL: not a cluster. An entry that is NULL is not known */
    _Atomic bool known;               /* the table was read once; written under the lock         */

    struct wr_lock lock; /* all below */
    weir_parker *body;   /* of the body that reads the table, while it runs */
    bool wanted, closing;
    int error; /* why the latest attempt failed; 0: it did not */
    weir_message why;
    struct wr_list waiting; /* callers that wait for the table */
};

/* The slot of a key. If there is text between the first { and the next }, only that text counts. */
uint32_t wr_slot_of(const char *key, size_t size);

int wr_cluster_init(struct wr_cluster *cluster);
int wr_cluster_start(struct wr_redis *redis);
void wr_cluster_stop(struct wr_cluster *cluster);
void wr_cluster_fini(struct wr_cluster *cluster);

/* The node of a key (NULL: of any); the first node of the URL if the slot's node is not known yet. */
struct wr_node *wr_cluster_node(struct wr_redis *redis, const char *key, size_t size);

/* The node that an error "MOVED 3999 127.0.0.1:6381", or ASK, names; `from` is the node that sent it. NULL: it names none.
 * MOVED is remembered in the table. */
struct wr_node *wr_cluster_redirect(struct wr_redis *redis, const char *error,
                                    const struct wr_node *from);

/* Has the table read again, soon. */
void wr_cluster_refresh(struct wr_redis *redis);

/* Waits until the table was read once; the error of a failed attempt is answered at once. 0 at once without a cluster. */
int wr_cluster_wait(struct wr_cluster *cluster, weir_time deadline,
                    weir_message *message) WEIR_PARKS;

#endif
