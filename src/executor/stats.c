/* Snapshots: of a group, of the executor, of the keys.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"

#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

/* For a struct that has the counters under their names. */
#define FROM_TOTALS(type, name, ...) .name = t.name,

/* The reasons that the struct has room for. */
static void fill_rejected_by(weir_group_stats *s, const struct wr_refusals *refused)
{
    for (uint32_t i = 0; i < sizeof(s->rejected_by) / sizeof(s->rejected_by[0]); i++)
        s->rejected_by[i] = wr_refusals_count(refused, (weir_reason)i);
}

/* Under the lock. */
static void group_snapshot(weir_group_stats *s, const struct weir_group *group)
{
    struct wr_totals t = { 0 };

    wr_totals_add_group(&t, group);
    *s = (weir_group_stats){ .size = sizeof(*s),
                             .limit = wr_limit_to(group->sums.limit),
                             .inflight_max = wr_limit_to(group->sums.inflight_max),
                             .queue_max = wr_queue_to(group->sums.queue_max),
                             .peak = group->peak,
                             .paused = group->paused,
                             .generation = group->generation,
                             .run_on = (weir_carrier)group->carrier,
                             .domain = weir_group_domain(group),
                             WR_FIGURES(FROM_TOTALS) };
    if (group->extras) {
        s->overdue = group->extras->overdue;
        s->stalls = group->extras->stalls;
        fill_rejected_by(s, &group->extras->refused);
    }
}

int weir_group_stats_get(weir_group_stats *out, weir_executor *ex, const char *key)
{
    weir_group_stats stats;
    struct weir_group *group;

    if (!out || !ex || !key)
        return WEIR_EINVAL;
    group = wr_group_look_up(ex, key);
    if (!group)
        return WEIR_ENOGROUP;
    wr_group_lock(group);
    group_snapshot(&stats, group);
    wr_unlock(&group->lock);
    wr_group_unpin(group);
    return wr_options_store(out, &stats, sizeof(stats));
}

int weir_group_rejections_get(uint64_t *count, weir_executor *ex, const char *key,
                              weir_reason reason)
{
    struct weir_group *group;

    if (!count || !ex || !key)
        return WEIR_EINVAL;
    group = wr_group_look_up(ex, key);
    if (!group)
        return WEIR_ENOGROUP;
    wr_group_lock(group);
    *count = group->extras ? wr_refusals_count(&group->extras->refused, reason) : 0;
    wr_unlock(&group->lock);
    wr_group_unpin(group);
    return 0;
}

/* Under the shard's lock. */
static void add_living(struct wr_totals *totals, struct weir_group *group)
{
    wr_group_lock(group);
    wr_totals_add_group(totals, group);
    wr_unlock(&group->lock);
}

/* Without tasks it is as good as gone, though its record may be there for a moment yet. */
static void add_retired(struct wr_totals *totals, struct weir_group *group)
{
    wr_group_lock(group);
    if (!group->idle || group->executor->archive.max)
        wr_totals_add_group(totals, group);
    wr_unlock(&group->lock);
}

/* What is archived of a key, or (NULL) of those that had to go. */
static void add_archived(struct wr_totals *totals, struct wr_archive *archive, uint32_t hash,
                         const char *key)
{
    const struct wr_totals *archived;

    wr_lock(&archive->lock);
    archived = key ? wr_archive_get(archive, hash, key) : &archive->other;
    if (archived)
        wr_totals_add(totals, archived);
    wr_unlock(&archive->lock);
}

/* All generations of a key: in one hold of the shard's lock, since one of them may go meanwhile. */
static void add_generations(struct wr_totals *totals, struct weir_executor *ex, const char *key)
{
    uint32_t hash = wr_table_hash(&ex->table, key, strlen(key));
    struct wr_shard *shard = wr_table_lock(&ex->table, hash);
    struct weir_group *present = wr_shard_get(shard, hash, key);

    add_archived(totals, &ex->archive, hash, key);
    if (present)
        add_living(totals, present);
    wr_list_each(node, &shard->retired) {
        struct weir_group *group = WR_CONTAINER(node, struct weir_group, link);
        if (group->hash == hash && strcmp(group->key, key) == 0)
            add_retired(totals, group);
    }
    wr_unlock(&shard->lock);
}

int weir_group_totals_get(weir_group_totals *out, weir_executor *ex, const char *key)
{
    struct wr_totals t = { 0 };
    weir_group_totals totals;

    if (!out || !ex)
        return WEIR_EINVAL;
    if (key)
        add_generations(&t, ex, key);
    else
        add_archived(&t, &ex->archive, 0, NULL);
    totals = (weir_group_totals){ .size = sizeof(totals),
                                  .generations = t.generations,
                                  WR_COUNTERS(FROM_TOTALS) };
    return key && !t.generations ? WEIR_ENOGROUP : wr_options_store(out, &totals, sizeof(totals));
}

/* Adds the figures of a shard's groups. Answers how many are not evicted. */
static uint64_t add_shard(struct wr_totals *totals, struct wr_shard *shard)
{
    struct weir_group *group = NULL;
    uint64_t count;

    wr_lock(&shard->lock);
    count = shard->count;
    wr_totals_add(totals, &shard->gone);
    while ((group = wr_shard_next_or_retired(shard, group)))
        add_living(totals, group);
    wr_unlock(&shard->lock);
    return count;
}

static uint64_t threads_of(struct weir_executor *ex)
{
    weir_runtime_stats stats = { .size = sizeof(stats) };
    uint64_t threads;

    weir_runtime_stats_get(&stats, ex->crew.runtime);
    threads = stats.threads;
    for (uint32_t d = 0; ex->domains && d < ex->domains->ledger.count; d++)
        if (ex->domains->domain[d].own.runtime &&
            weir_runtime_stats_get(&stats, ex->domains->domain[d].own.runtime) == 0)
            threads += stats.threads;
    return threads;
}

int weir_executor_stats_get(weir_executor_stats *out, weir_executor *ex)
{
    weir_executor_stats s = { .size = sizeof(s) };
    struct wr_totals t = { 0 };

    if (!out || !ex)
        return WEIR_EINVAL;
    for (int i = 0; i < WR_SHARDS; i++)
        s.groups += add_shard(&t, &ex->table.shard[i]);
#define SET(type, name, ...) s.name = t.name;
    WR_TASK_GAUGES(SET)
    WR_TASK_COUNTERS(SET)
#undef SET
    s.evicted = wr_load(&ex->evicted, relaxed);
    s.overdue = wr_load(&ex->freed, relaxed);
    s.stalls = wr_load(&ex->stalls, relaxed);
    s.threads = threads_of(ex);
    s.inflight_max = wr_limit_to(wr_load(&ex->root.inflight_max, relaxed));
    s.queue_max = wr_queue_to(wr_load(&ex->root.queue_max, relaxed));
    return wr_options_store(out, &s, sizeof(s));
}

/* How much room the keys take; and the keys. Under the table's locks. */
static size_t measure_keys(struct weir_executor *ex, size_t *count)
{
    struct weir_group *group = NULL;
    size_t size = 0;

    *count = 0;
    while ((group = wr_table_next(&ex->table, group))) {
        size += strlen(group->key) + 1;
        *count += 1;
    }
    return size;
}

int weir_executor_keys(char ***out, size_t *count_out, weir_executor *ex)
{
    struct weir_group *group = NULL;
    size_t count, size, i = 0;
    char **keys, *at;

    if (!out || !ex)
        return WEIR_EINVAL;
    *out = NULL;
    wr_table_lock_all(&ex->table);
    size = measure_keys(ex, &count);
    keys = malloc((count + 1) * sizeof(keys[0]) + size); /* the caller frees it with free(3) */
    if (!keys) {
        wr_table_unlock_all(&ex->table);
        return WEIR_ENOMEM;
    }
    at = (char *)&keys[count + 1];
    while ((group = wr_table_next(&ex->table, group))) {
        keys[i++] = at;
        at = stpcpy(at, group->key) + 1;
    }
    keys[i] = NULL;
    wr_table_unlock_all(&ex->table);
    *out = keys;
    if (count_out)
        *count_out = count;
    return 0;
}
