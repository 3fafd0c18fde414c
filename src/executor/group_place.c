/* Where a group stands: its first task, its place in the ring, and its permits.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"

struct wr_extras *wr_group_extras(struct weir_group *group)
{
    if (!group->extras)
        group->extras = wr_os_alloc(sizeof(*group->extras));
    return group->extras;
}

void wr_group_pop(struct weir_group *group, const uint64_t *first)
{
    const struct wr_side *side = wr_is_entry(*first) ? NULL : wr_task_side(wr_record_at(first));

    wr_queue_pop(wr_group_level(group, side ? side->level : WR_LEVEL_NORMAL), wr_words_at(first),
                 wr_is_entry(*first));
}

uint64_t *wr_group_next(struct weir_group *group, struct wr_group_walk *at)
{
    WR_ASSERT_SLOW(group);
    for (; at->level < WR_LEVELS; *at = (struct wr_group_walk){ .level = at->level + 1 }) {
        struct wr_queue *queue = wr_group_level(group, at->level);
        uint64_t *word = queue ? wr_queue_next(queue, &at->place) : NULL;
        if (word)
            return word;
    }
    return NULL;
}

bool wr_group_fits(const struct weir_group *group, uint32_t cost)
{
    return cost == 1 || cost <= wr_load(&group->executor->root.inflight_max, relaxed);
}

bool wr_group_is_ready(struct weir_group *group)
{
    uint32_t cost = group->sums.queued ? wr_cost_at(wr_group_first(group)) : 0;

    return cost && cost <= wr_free(&group->sums) && wr_group_fits(group, cost);
}

bool wr_group_note_first(struct weir_group *group)
{
    const uint64_t *first = wr_group_first(group);
    uint32_t cost = wr_cost_at(first), needs = cost < WR_COST_MAX ? cost : WR_COST_MAX;

    if (wr_is_timed_at(first))
        needs |= WR_TIMED;
    if (needs == wr_load(&group->stand.needs, relaxed))
        return false;
    wr_store(&group->stand.needs, needs, relaxed);
    return true;
}

void wr_group_note_closed(struct weir_group *group)
{
    enum wr_place at_rest = wr_group_place_at_rest(group);
    enum wr_closed closed = at_rest != WR_AT_REST                       ? WR_SHUT
                            : wr_group_place(group) == WR_AWAITS_THREAD ? WR_LACKS_THREAD
                                                                        : WR_OPEN;

    if (group->sums.closed != closed)
        wr_set_closed(&group->sums, &group->executor->root, closed);
    if (!wr_group_is_in_line(group) && wr_group_place(group) != at_rest)
        wr_store(&group->stand.place, (uint8_t)at_rest, relaxed);
}

/* Its first task may have changed while it stood in the ring. */
static inline bool refresh_in_ring(struct weir_group *group)
{
    struct wr_line *ring = wr_group_ring(group);

    if (!wr_group_is_ready(group)) { /* it would keep others waiting for a turn it cannot take */
        if (!wr_line_remove(ring, &group->stand))
            return false; /* a worker has it, and will see */
        wr_group_note_closed(group);
        if (group->executor->domains && !wr_group_is_counted(group))
            return wr_domain_sync(group);
        return wr_line_has_stands(ring); /* it may have been owed permits */
    }
    if (!wr_group_note_first(group))
        return false;
    wr_line_ask_again(ring, &group->stand);
    /* Also workers that are about to sleep until there are more permits. */
    if (group->executor->domains)
        wr_domain_ask_again(group);
    return true;
}

/* Puts a group that has become ready into its ring. */
static inline bool refresh_out_of_ring(struct weir_group *group)
{
    bool first;

    wr_group_note_closed(group);
    if (!wr_group_is_ready(group))
        return false;
    wr_group_note_first(group);
    /* A turn that was only interrupted, by the group's own limit or for want of a thread, goes on. */
    first = wr_line_enter(wr_group_ring(group), &group->stand, group->has_thread);
    if (first && group->executor->domains) /* it may need less than the former first */
        wr_domain_ask_again(group);
    return true;
}

/* Where the ledger counts: a group leaves its ring before it ceases to want a slot, and wants one before it enters, so
 * that one in a ring always wants something. */
static __attribute__((noinline)) bool refresh_in_domain(struct weir_group *group)
{
    bool ready,
        wake = !group->evicted && wr_group_place(group) == WR_READY && refresh_in_ring(group);

    ready = wr_domain_sync(group);
    if (!group->evicted && !wr_group_is_in_line(group))
        wake |= refresh_out_of_ring(group);
    return wake || ready;
}

bool wr_group_refresh(struct weir_group *group)
{
    if (group->sums.queued == 0)
        group->stand.turn_left = 0;
    if (WR_UNLIKELY(group->has_thread || wr_group_place(group) == WR_AWAITS_THREAD))
        wr_thread_refresh(group);
    if (WR_UNLIKELY(wr_group_is_counted(group)))
        return refresh_in_domain(group);
    if (group->evicted)
        return false;
    if (wr_group_place(group) == WR_READY)
        return refresh_in_ring(group);
    /* Else it is in line for a thread, and needs one still. */
    return !wr_group_is_in_line(group) && refresh_out_of_ring(group);
}

void wr_group_changed(struct weir_group *group)
{
    bool wake = wr_group_refresh(group);

    WR_ASSERT_SLOW(wr_group_is_valid(group));
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(group->executor);
    wr_room_made(group->executor);
}

void wr_group_refuse_count(struct weir_group *group, weir_reason reason)
{
    if (wr_group_extras(group)) /* without memory one is not counted; it is told all the same */
        wr_refusals_add(&group->extras->refused, reason);
}

/* ---- permits --------------------------------------------------------------------------------- */

static void discharge_heir(struct weir_group *group, uint32_t cost)
{
    struct weir_group *heir = wr_group_heir(group), *next;
    bool wake = false;

    for (; heir; heir = next) { /* which may have been evicted itself, and have charged its own */
        wr_group_lock(heir);
        WR_ASSERT(heir->sums.carried >= cost);
        wr_carry(&heir->sums, &group->executor->root, heir->sums.carried - cost);
        wake |= wr_group_refresh(heir);
        next = wr_group_heir(heir);
        wr_unlock(&heir->lock);
    }
    if (wake)
        wr_executor_wake(group->executor);
}

/* Permits are back. If all that are left are kept by tasks that wait, a costly one may be first in line in vain. */
static void given_back(struct weir_group *group, uint32_t cost)
{
    struct weir_executor *ex = group->executor;

    if (ex->domains)
        wr_domain_give(group);
    discharge_heir(group, cost);
    if (WR_UNLIKELY(wr_load(&ex->nested.count, relaxed)) && group->sums.counted &&
        wr_load(&ex->root.held, relaxed) <= wr_load(&ex->nested.parked, relaxed))
        wr_waits_suspect(ex);
}

void wr_group_finish(struct weir_group *group, uint32_t cost)
{
    wr_finish(&group->sums, &group->executor->root, cost);
    given_back(group, cost);
}

void wr_group_settle_pending(struct weir_group *group, uint32_t cost)
{
    wr_settle_pending(&group->sums, &group->executor->root, cost);
    given_back(group, cost);
}
