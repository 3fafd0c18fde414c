/* The table of groups: shards, chains, doubling.
 * SPDX-License-Identifier: MIT */
#include "executor/table.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/os.h"
#include "executor/group.h"

#include <string.h>
#include <weir/error.h>

int wr_table_init(struct wr_table *table)
{
    table->seed[0] = wr_os_random();
    table->seed[1] = wr_os_random();
    table->shard = wr_os_alloc(WR_SHARDS * sizeof(table->shard[0]));
    for (int i = 0; table->shard && i < WR_SHARDS; i++) {
        struct wr_shard *shard = &table->shard[i];
        shard->bucket = &shard->first_bucket;
        shard->size = 1;
        wr_list_init(&shard->retired);
    }
    return table->shard ? 0 : WEIR_ENOMEM;
}

static void free_buckets(struct wr_shard *shard)
{
    if (shard->bucket != &shard->first_bucket)
        wr_os_free(shard->bucket);
}

void wr_table_fini(struct wr_table *table)
{
    for (int i = 0; table->shard && i < WR_SHARDS; i++)
        free_buckets(&table->shard[i]);
    wr_os_free(table->shard);
}

uint32_t wr_table_hash(const struct wr_table *table, const char *key, size_t length)
{
    return (uint32_t)wr_hash(table->seed, key, length);
}

struct wr_shard *wr_table_lock(struct wr_table *table, uint32_t hash)
{
    struct wr_shard *shard = wr_table_shard(table, hash);

    wr_lock(&shard->lock);
    return shard;
}

void wr_table_lock_all(struct wr_table *table)
{
    for (int i = 0; i < WR_SHARDS; i++)
        wr_lock(&table->shard[i].lock);
}

void wr_table_unlock_all(struct wr_table *table)
{
    for (int i = 0; i < WR_SHARDS; i++)
        wr_unlock(&table->shard[i].lock);
}

/* ---- one shard ----------------------------------------------------------------------------------- */

static struct weir_group **bucket_of(const struct wr_shard *shard, uint32_t hash)
{
    return &shard->bucket[hash & (shard->size - 1)];
}

struct weir_group *wr_shard_get(const struct wr_shard *shard, uint32_t hash, const char *key)
{
    struct weir_group *group = *bucket_of(shard, hash);

    while (group && (group->hash != hash || strcmp(group->key, key) != 0))
        group = group->table_next;
    return group;
}

struct weir_group *wr_table_lock_group(struct wr_table *table, const char *key)
{
    uint32_t hash = wr_table_hash(table, key, strlen(key));
    struct wr_shard *shard = wr_table_lock(table, hash);
    struct weir_group *group = wr_shard_get(shard, hash, key);

    if (group)
        wr_lock(&group->lock);
    wr_unlock(&shard->lock);
    return group;
}

static void hang(struct wr_shard *shard, struct weir_group *group)
{
    struct weir_group **bucket = bucket_of(shard, group->hash);

    group->table_next = *bucket;
    *bucket = group;
}

/* Twice the buckets; without memory the chains just get longer. */
static void grow(struct wr_shard *shard)
{
    struct wr_shard larger = { .size = 2 * shard->size };

    larger.bucket = wr_os_alloc(larger.size * sizeof(larger.bucket[0]));
    if (!larger.bucket)
        return;
    for (size_t i = 0; i < shard->size; i++)
        for (struct weir_group *group = shard->bucket[i], *next; group; group = next) {
            next = group->table_next;
            hang(&larger, group);
        }
    free_buckets(shard);
    shard->bucket = larger.bucket;
    shard->size = larger.size;
}

void wr_shard_put(struct wr_shard *shard, struct weir_group *group)
{
    if (shard->count >= shard->size)
        grow(shard);
    hang(shard, group);
    shard->count++;
}

void wr_shard_remove(struct wr_shard *shard, struct weir_group *group)
{
    struct weir_group **at = bucket_of(shard, group->hash);

    while (*at != group)
        at = &(*at)->table_next;
    *at = group->table_next;
    shard->count--;
}

struct weir_group *wr_shard_next(const struct wr_shard *shard, const struct weir_group *group)
{
    size_t i = group ? (group->hash & (shard->size - 1)) + 1 : 0;

    if (group && group->table_next)
        return group->table_next;
    while (i < shard->size && !shard->bucket[i])
        i++;
    return i < shard->size ? shard->bucket[i] : NULL;
}

struct weir_group *wr_shard_next_or_retired(const struct wr_shard *shard,
                                            const struct weir_group *group)
{
    bool retired = group && group->evicted;
    struct weir_group *present = retired ? NULL : wr_shard_next(shard, group);
    struct wr_list *next = retired ? group->link.next : shard->retired.next;

    if (present || next == &shard->retired)
        return present;
    return WR_CONTAINER(next, struct weir_group, link);
}

/* ---- all groups ---------------------------------------------------------------------------------- */

struct weir_group *wr_table_walk(struct wr_table *table, struct weir_group *group)
{
    struct wr_shard *shard = group ? wr_table_shard(table, group->hash) : table->shard;

    if (!group)
        wr_lock(&shard->lock);
    while (!(group = wr_shard_next_or_retired(shard, group))) {
        wr_unlock(&shard->lock);
        if (++shard == table->shard + WR_SHARDS)
            return NULL;
        wr_lock(&shard->lock);
    }
    return group;
}

struct weir_group *wr_table_next(struct wr_table *table, struct weir_group *group)
{
    struct wr_shard *shard = group ? wr_table_shard(table, group->hash) : table->shard;

    while (!(group = wr_shard_next(shard, group)) && ++shard < table->shard + WR_SHARDS)
        ;
    return group;
}
