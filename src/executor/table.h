/* The table of groups by key: seeded hash, chains, grows as it fills.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_TABLE_H
#define WR_EXECUTOR_TABLE_H

#include "base/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_group;

struct wr_table {
    struct wr_lock lock;
    uint64_t seed[2]; /* against keys chosen to collide */
    struct weir_group **bucket;
    size_t size, count;  /* size is a power of two         */
    uint32_t generation; /* of the next group              */
    bool counted;        /* whether new groups take part in the executor's sums */
};

int wr_table_init(struct wr_table *table);
void wr_table_fini(struct wr_table *table);

/* Depends on the table's seed. */
uint64_t wr_table_hash(const struct wr_table *table, const char *key, size_t length);

/* All under the lock. */
struct weir_group *wr_table_get(struct wr_table *table, uint64_t hash, const char *key);
void wr_table_put(struct wr_table *table, struct weir_group *group);
void wr_table_remove(struct wr_table *table, struct weir_group *group);

/* A group at or after bucket *from, which moves on over empty ones: for emptying the table. */
struct weir_group *wr_table_first(struct wr_table *table, size_t *from);

/* The group after `group` (NULL: the first), in no particular order. */
struct weir_group *wr_table_next(struct wr_table *table, struct weir_group *group);

#endif
