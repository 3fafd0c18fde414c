/* The equations of a group; see struct weir_group and struct wr_sums.
 * SPDX-License-Identifier: MIT */
#include "executor/group.h"
#include "executor/settle.h"
#include "executor/threads.h"

enum { WALKED_MAX = 64 }; /* tasks of a list that are looked at */

static bool sums_are_valid(const struct wr_sums *s)
{
    return s->running <= s->inflight && s->queued <= s->queued_cost &&
           !s->queued == !s->queued_cost;
}

/* *tasks and *entries that stand in all queues of the group. */
static bool queues_are_valid(struct weir_group *group, uint32_t *tasks, uint32_t *entries)
{
    *tasks = *entries = 0;
    for (int level = 0; level < WR_LEVELS; level++) {
        const struct wr_queue *queue = wr_group_level(group, level);
        uint32_t here = 0;
        if (queue && !wr_queue_is_valid(queue, &here))
            return false;
        *tasks += here;
        *entries += queue ? wr_queue_entries(queue) : 0;
    }
    return *entries == wr_queue_entries(&group->queue); /* those of other priorities are records */
}

static bool tasks_are_counted(struct weir_group *group)
{
    uint32_t tasks, entries;

    if (group->sums.queued > WALKED_MAX)
        return true;
    return queues_are_valid(group, &tasks, &entries) && tasks == group->sums.queued &&
           group->records >= tasks - entries + group->bodies + group->pending &&
           wr_group_submitted(group) >= group->sums.queued + group->started;
}

static bool pending_are_counted(const struct weir_group *group)
{
    uint32_t pending = 0, aside = 0;

    if ((uintptr_t)group->pending_first & WR_HAND_OUT)
        return !group->pending;
    if (group->pending + group->telling > WALKED_MAX)
        return true;
    for (struct weir_task *task = group->pending_first; task; task = task->next) {
        uint32_t phase = wr_task_phase(task);
        if (phase != WR_PHASE_PENDING && phase != WR_PHASE_ASIDE)
            return false;
        pending += phase == WR_PHASE_PENDING;
        aside += phase == WR_PHASE_ASIDE;
    }
    return pending == group->pending && aside <= group->telling;
}

/* Whether it is where its next task can be found; while a beat is out, only the ring knows that. One whose first task costs more
 * than 1 may have become ready just now, because the executor's limit was raised, and is about to be told so (executor.c). */
static bool stands_right(struct weir_group *group)
{
    enum wr_place place = wr_group_place(group);
    bool ready = wr_group_is_ready(group) && wr_cost_at(wr_group_first(group)) == 1;
    enum wr_place at_rest = wr_group_place_at_rest(group);

    return (group->sums.closed == WR_SHUT) == (at_rest != WR_AT_REST) &&
           (place == WR_AWAITS_THREAD || group->sums.closed != WR_LACKS_THREAD) &&
           (wr_group_is_in_line(group) || group->evicted || place == at_rest) &&
           (!group->has_thread || place == WR_READY) &&
           (place != WR_AT_REST || group->evicted || !ready);
}

/* Whether the group lives while anything holds it cannot be seen here: the thread that has its lock may be the last holder. */
static bool presence_is_right(const struct weir_group *group)
{
    return !group->idle || !(group->sums.queued || group->sums.inflight || group->telling);
}

bool wr_group_is_valid(struct weir_group *group)
{
    const struct wr_gates *gates = wr_group_gates(group);

    return sums_are_valid(&group->sums) && tasks_are_counted(group) && pending_are_counted(group) &&
           (wr_group_has_beat(group) || stands_right(group)) && presence_is_right(group) &&
           (!gates || wr_gates_are_valid(gates));
}
