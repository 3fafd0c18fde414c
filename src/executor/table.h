/* The table of groups by key: seeded hash, 64 shards with a lock each.
 * docs/internals/table.md says what a shard's lock is good for, and what needs them all.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_TABLE_H
#define WR_EXECUTOR_TABLE_H

#include "base/list.h"
#include "base/lock.h"
#include "base/map.h"
#include "executor/totals.h"

struct weir_group;

enum { WR_SHARDS = 64 };

/* All generations of some keys: a key stays in its shard. Under the lock:
 *     a group that is not evicted is in `present`
 *     one that is evicted is in `retired` until it is freed; from then on its counts are in `gone`  */
struct wr_shard {
    struct wr_lock lock;
    struct wr_map present;
    struct wr_list retired; /* by link: they never stand in a ring again */
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

/* The key of a text; its hash depends on the table's seed. */
struct wr_key wr_table_key(const struct wr_table *table, const char *text);

static inline struct wr_shard *wr_table_shard(const struct wr_table *table, uint32_t hash)
{
    return &table->shard[hash / (UINT32_MAX / WR_SHARDS + 1)]; /* chains go by the lower bits */
}

/* Locks the shard of that hash, and answers it. */
struct wr_shard *wr_table_lock(struct wr_table *table, uint32_t hash);

/* Locks the group of that key; NULL: there is none. The shard is locked until the group is, and not after. */
struct weir_group *wr_table_lock_group(struct wr_table *table, const char *text);

/* Locks all, one after the other; never while one of them is held. */
void wr_table_lock_all(struct wr_table *table);
void wr_table_unlock_all(struct wr_table *table);

/* The group of that key; NULL: there is none. Under the shard's lock. */
struct weir_group *wr_shard_get(const struct wr_shard *shard, const struct wr_key *key);

/* The group after `group` (NULL: the first), in no particular order, but those that are retired come last. Under the
 * shard's lock. */
struct weir_group *wr_shard_next(const struct wr_shard *shard, const struct weir_group *group);

/* The same over all shards. The group's shard is locked until the next call; NULL: there are no more, and nothing is. */
struct weir_group *wr_table_walk(struct wr_table *table, struct weir_group *group);

/* The same without those that are retired, under all locks. */
struct weir_group *wr_table_next(struct wr_table *table, struct weir_group *group);

#endif
