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

/* Under the lock. */
static void group_snapshot(weir_group_stats *s, const struct weir_group *group)
{
    const struct wr_extras *extras = group->extras;
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
                             .overdue = extras ? extras->overdue : 0,
                             .stalls = extras ? extras->stalls : 0,
                             WR_FIGURES(FROM_TOTALS) };
    for (uint32_t i = 0; extras && i < sizeof(s->rejected_by) / sizeof(s->rejected_by[0]); i++)
        s->rejected_by[i] = wr_refusals_count(&extras->refused, (weir_reason)i);
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
    group_snapshot(&stats, group);
    wr_unlock(&group->lock);
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
    *count = group->extras ? wr_refusals_count(&group->extras->refused, reason) : 0;
    wr_unlock(&group->lock);
    return 0;
}

/* Under the shard's lock. Without those that are as good as gone: they are evicted and have no tasks, though their records
 * may be there for a moment yet. */
static void add_group(struct wr_totals *totals, struct weir_group *group, bool without_gone)
{
    wr_group_lock(group);
    if (!without_gone || !group->evicted || !group->idle)
        wr_totals_add_group(totals, group);
    wr_unlock(&group->lock);
}

/* All generations of a key: in one hold of the shard's lock, since one of them may go meanwhile. */
static void add_generations(struct wr_totals *totals, struct weir_executor *ex, const char *text)
{
    struct wr_key key = wr_table_key(&ex->table, text);
    struct wr_shard *shard = wr_table_lock(&ex->table, key.hash);
    struct weir_group *present = wr_shard_get(shard, &key);

    wr_archive_sum(totals, &ex->archive, &key);
    if (present)
        add_group(totals, present, false);
    wr_list_each(node, &shard->retired) {
        struct weir_group *group = WR_CONTAINER(node, struct weir_group, retired);
        if (group->hash == key.hash && wr_key_is(&key, group->key))
            add_group(totals, group, !ex->archive.max);
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
        wr_archive_sum(&t, &ex->archive, NULL);
    totals = (weir_group_totals){ .size = sizeof(totals),
                                  .generations = t.generations,
                                  WR_COUNTERS(FROM_TOTALS) };
    return key && !t.generations ? WEIR_ENOGROUP : wr_options_store(out, &totals, sizeof(totals));
}

static uint64_t threads_of(struct weir_executor *ex)
{
    weir_runtime_stats stats = { .size = sizeof(stats) };
    uint64_t threads = 0;

    for (const struct wr_crew *crew = &ex->crew; crew; crew = crew->next)
        if (weir_runtime_stats_get(&stats, crew->runtime) == 0)
            threads += stats.threads;
    return threads;
}

int weir_executor_stats_get(weir_executor_stats *out, weir_executor *ex)
{
    weir_executor_stats s;
    struct weir_group *group = NULL;
    struct wr_totals t = { 0 };
    uint64_t groups = 0;

    if (!out || !ex)
        return WEIR_EINVAL;
    for (struct wr_shard *shard = ex->table.shard; shard < ex->table.shard + WR_SHARDS; shard++) {
        wr_lock(&shard->lock);
        groups += shard->present.count;
        wr_totals_add(&t, &shard->gone);
        while ((group = wr_shard_next(shard, group)))
            add_group(&t, group, false);
        wr_unlock(&shard->lock);
    }
    s = (weir_executor_stats){ .size = sizeof(s),
                               .groups = groups,
                               .evicted = wr_load(&ex->evicted, relaxed),
                               .overdue = wr_load(&ex->freed, relaxed),
                               .stalls = wr_load(&ex->stalls, relaxed),
                               .threads = threads_of(ex),
                               .inflight_max =
                                   wr_limit_to(wr_load(&ex->root.inflight_max, relaxed)),
                               .queue_max = wr_queue_to(wr_load(&ex->root.queue_max, relaxed)),
                               WR_TASK_GAUGES(FROM_TOTALS) WR_TASK_COUNTERS(FROM_TOTALS) };
    return wr_options_store(out, &s, sizeof(s));
}

int weir_executor_keys(char ***out, size_t *count_out, weir_executor *ex)
{
    struct weir_group *group = NULL;
    size_t count = 0, size = 0, i = 0;
    char **keys, *at;

    if (!out || !ex)
        return WEIR_EINVAL;
    wr_table_lock_all(&ex->table); /* both walks find the same groups */
    for (; (group = wr_table_next(&ex->table, group)); count++)
        size += strlen(group->key) + 1;
    *out = keys = malloc((count + 1) * sizeof(keys[0]) + size); /* the caller calls free(3) */
    at = keys ? (char *)&keys[count + 1] : NULL;
    while (keys && (group = wr_table_next(&ex->table, group))) {
        keys[i++] = at;
        at = stpcpy(at, group->key) + 1;
    }
    wr_table_unlock_all(&ex->table);
    if (!keys)
        return WEIR_ENOMEM;
    keys[count] = NULL;
    if (count_out)
        *count_out = count;
    return 0;
}
