/* The table of groups by key: seeded hash, 64 shards with a lock each, chains that grow as they fill.
 * docs/internals/table.md says what a shard's lock is good for, and what needs them all.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_TABLE_H
#define WR_EXECUTOR_TABLE_H

#include "base/list.h"
#include "base/lock.h"
#include "executor/totals.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_group;

enum { WR_SHARDS = 64 };

/* All generations of some keys: a key stays in its shard. Under the lock:
 *     a group that is not evicted is in a bucket; count of those
 *     one that is evicted is in `retired` until it is freed; from then on its counts are in `gone`  */
struct wr_shard {
    struct wr_lock lock;
    size_t size, count; /* size is a power of two                        */
    struct weir_group **bucket;
    struct weir_group *first_bucket; /* the only one, as long as `size` is 1          */
    struct wr_list retired;          /* by link: they never stand in a ring again */
    struct wr_totals gone;
};

struct wr_table {
    uint64_t seed[2]; /* against keys chosen to collide */
    struct wr_shard *shard;
    _Atomic uint32_t generation; /* of the next group              */
    bool counted; /* whether new groups take part in the executor's sums; changed under all locks */
};

int wr_table_init(struct wr_table *table);
void wr_table_fini(struct wr_table *table);

/* Depends on the table's seed. */
uint32_t wr_table_hash(const struct wr_table *table, const char *key, size_t length);

static inline struct wr_shard *wr_table_shard(const struct wr_table *table, uint32_t hash)
{
    return &table->shard[hash / (UINT32_MAX / WR_SHARDS + 1)]; /* buckets go by the lower bits */
}

/* Locks the shard of that hash, and answers it. */
struct wr_shard *wr_table_lock(struct wr_table *table, uint32_t hash);

/* Locks the group of that key; NULL: there is none. The shard is locked until the group is, and not after. */
struct weir_group *wr_table_lock_group(struct wr_table *table, const char *key);

/* Locks all, one after the other; never while one of them is held. */
void wr_table_lock_all(struct wr_table *table);
void wr_table_unlock_all(struct wr_table *table);

/* ---- under the shard's lock ---------------------------------------------------------------------- */

struct weir_group *wr_shard_get(const struct wr_shard *shard, uint32_t hash, const char *key);
void wr_shard_put(struct wr_shard *shard, struct weir_group *group);

void wr_shard_remove(struct wr_shard *shard, struct weir_group *group);

/* The group after `group` (NULL: the first), in no particular order; or also those that are retired, after the others. */
struct weir_group *wr_shard_next(const struct wr_shard *shard, const struct weir_group *group);
struct weir_group *wr_shard_next_or_retired(const struct wr_shard *shard,
                                            const struct weir_group *group);

/* ---- the whole table ------------------------------------------------------------------------------ */

/* The same over all shards, retired groups too. The group's shard is locked until the next call; NULL: there are no more,
 * and nothing is. */
struct weir_group *wr_table_walk(struct wr_table *table, struct weir_group *group);

/* The same without those that are retired, under all locks. */
struct weir_group *wr_table_next(struct wr_table *table, struct weir_group *group);

#endif
