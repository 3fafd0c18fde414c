/* Records of tasks: chunks of them, shared by all groups of an executor.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_POOL_H
#define WR_EXECUTOR_POOL_H

#include "base/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_task;
struct wr_chunk;

/* Groups keep a few records at hand under their own locks (weir_group.unused) and trade with this pool in
 * batches, which stay together: neither side walks through records that the other has in its cache. A free
 * record begins with the next one's address; the first of a batch goes on with the next batch's, and how
 * many it has. */
struct wr_task_pool {
    struct wr_lock lock;
    struct wr_batch *batches;
    char *fresh; /* part of the newest chunk that was never used: its memory is not touched */
    size_t fresh_left;
    struct wr_chunk *chunks;
    _Atomic uint32_t lent; /* records that groups have, used or at hand; written under the lock */
};

/* Takes a batch that somebody gave back, or up to `want` fresh records, as a list; NULL: there are none. */
struct weir_task *wr_task_pool_take(struct wr_task_pool *pool, uint32_t want, uint32_t *got);

/* Gives back a list of `count`, of which the caller knows the last. */
void wr_task_pool_give(struct wr_task_pool *pool, struct weir_task *first, struct weir_task *last,
                       uint32_t count);

/* All records that were ever used, a block at a time: `*at` is NULL at first and moves on. False: no more. Records may
 * be in use or not; they stay readable for as long as the pool lives. */
bool wr_task_pool_walk(struct wr_task_pool *pool, struct wr_chunk **at, struct weir_task **first,
                       size_t *count);

void wr_task_pool_fini(struct wr_task_pool *pool);

static inline struct weir_task **wr_task_next_unused(struct weir_task *task)
{
    return (struct weir_task **)task;
}

#endif
