/* The table of groups: shards, and walks over them.
 * SPDX-License-Identifier: MIT */
#include "executor/table.h"

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
        wr_map_init(&table->shard[i].present);
        wr_list_init(&table->shard[i].retired);
    }
    return table->shard ? 0 : WEIR_ENOMEM;
}

void wr_table_fini(struct wr_table *table)
{
    for (int i = 0; table->shard && i < WR_SHARDS; i++)
        wr_map_fini(&table->shard[i].present);
    wr_os_free(table->shard);
}

struct wr_key wr_table_key(const struct wr_table *table, const char *text)
{
    size_t length = strlen(text);

    return (struct wr_key){ text, length, (uint32_t)wr_hash(table->seed, text, length) };
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

struct weir_group *wr_shard_get(const struct wr_shard *shard, const struct wr_key *key)
{
    return wr_group_of(wr_map_get(&shard->present, key));
}

struct weir_group *wr_table_lock_group(struct wr_table *table, const char *text)
{
    struct wr_key key = wr_table_key(table, text);
    struct wr_shard *shard = wr_table_lock(table, key.hash);
    struct weir_group *group = wr_shard_get(shard, &key);

    if (group)
        wr_lock(&group->lock);
    wr_unlock(&shard->lock);
    return group;
}

/* ---- walks --------------------------------------------------------------------------------------- */

static struct weir_group *next_present(const struct wr_shard *shard, const struct weir_group *group)
{
    return wr_group_of(wr_map_next(&shard->present, group ? &group->in_table : NULL));
}

struct weir_group *wr_shard_next(const struct wr_shard *shard, const struct weir_group *group)
{
    bool retired = group && group->evicted;
    struct weir_group *present = retired ? NULL : next_present(shard, group);
    struct wr_list *next = retired ? group->retired.next : shard->retired.next;

    if (present || next == &shard->retired)
        return present;
    return WR_CONTAINER(next, struct weir_group, retired);
}

struct weir_group *wr_table_walk(struct wr_table *table, struct weir_group *group)
{
    struct wr_shard *shard = group ? wr_table_shard(table, group->hash) : table->shard;

    if (!group)
        wr_lock(&shard->lock);
    while (!(group = wr_shard_next(shard, group))) {
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

    while (!(group = next_present(shard, group)) && ++shard < table->shard + WR_SHARDS)
        ;
    return group;
}
