/* The limits of a group, changed while it runs.
 * SPDX-License-Identifier: MIT */
#include "executor/settle.h"
#include "executor/state.h"

#include <weir/error.h>

/* The highest cost of what waits. Under the lock. */
static uint32_t highest_cost(struct weir_group *group)
{
    uint32_t highest = group->sums.queued ? 1 : 0;
    struct wr_group_walk at = { 0 };
    uint64_t *word;

    if (group->sums.queued_cost == group->sums.queued)
        return highest; /* each costs 1 */
    while ((word = wr_group_next(group, &at)))
        highest = wr_cost_at(word) > highest ? wr_cost_at(word) : highest;
    return highest;
}

bool wr_group_never_finishes(struct weir_group *group, weir_time now)
{
    struct weir_executor *ex = group->executor;
    bool never;

    (void)now;
    wr_group_lock(group);
    never = group->paused || highest_cost(group) > wr_load(&ex->root.inflight_max, relaxed) ||
            (ex->domains && !wr_domain_has_slots(group));
    wr_unlock(&group->lock);
    return never;
}

/* Whatever depends on a group that was pinned, locked and changed is told. */
static void end_change(struct weir_group *group)
{
    wr_group_changed(group);
    wr_waits_suspect(group->executor);
    wr_group_unpin(group);
}

int weir_group_resize(weir_group *handle, int64_t limit, int64_t inflight_max, int64_t queue_max)
{
    uint32_t l = wr_limit_from(limit), f = wr_limit_from(inflight_max), q = 0, highest;
    struct weir_group *group;
    struct wr_sums *s;
    bool too_low;

    if (!handle || (limit && !l) || (inflight_max && !f) ||
        (queue_max && !wr_queue_from(&q, queue_max)))
        return WEIR_EINVAL;
    group = wr_group_current(handle);
    if (!group)
        return WEIR_ECLOSED;
    wr_group_lock(group);
    s = &group->sums;
    highest = highest_cost(group);
    too_low = (limit && l < highest) || (inflight_max && f < highest);
    if (!too_low)
        wr_set_limits(s, &group->executor->root, limit ? l : s->limit,
                      inflight_max ? f : s->inflight_max, queue_max ? q : s->queue_max);
    end_change(group);
    return too_low ? WEIR_EINVAL : 0;
}

int weir_group_run_on(weir_group *handle, weir_carrier carrier)
{
    struct weir_group *group;

    if (!handle || (unsigned)carrier > WEIR_THREADS)
        return WEIR_EINVAL;
    if (carrier == WEIR_THREADS)
        wr_domains_count(handle->executor, WR_COUNTS_READY);
    group = wr_group_current(handle);
    if (!group)
        return WEIR_ECLOSED;
    wr_group_lock(group);
    group->carrier = (uint8_t)carrier; /* it may have waited for a thread */
    end_change(group);
    return 0;
}

int weir_group_set_weight(weir_group *handle, int64_t weight)
{
    struct weir_group *group;

    if (!handle || weight < 1 || weight > WEIR_WEIGHT_MAX)
        return WEIR_EINVAL;
    group = wr_group_current(handle);
    if (!group)
        return WEIR_ECLOSED;
    wr_group_lock(group);
    wr_store(&group->stand.weight, (uint16_t)weight, relaxed);
    end_change(group);
    return 0;
}
