/* Why a task waits.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"

#include <string.h>
#include <weir/error.h>

/* The answer of the gate that refused the group; a gate of the user's is named. */
static void why_gated(weir_why *why, struct weir_group *group)
{
    weir_gate_state state;
    const char *name = wr_gates_describe(wr_group_gates(group), &state, wr_os_now());

    why->reason = state.reason;
    why->limit = state.limit;
    why->held = state.held;
    if (state.earliest > why->earliest)
        why->earliest = state.earliest;
    if (state.reason == WEIR_REASON_COOLING_DOWN || state.reason == WEIR_REASON_PACED)
        return;
    why->node = "gate";
    why->key = name;
    memcpy(why->holders, state.holders, sizeof(why->holders));
}

/* What the group's next task waits for: its place says so, and if that is the ring or none, the limits do. A worker that has it
 * in hands will find it paused, or its gate closed. */
static weir_reason reason_by_place(weir_why *why, struct weir_group *group)
{
    weir_reason reason;

    switch (wr_group_is_in_hands(group) ? wr_group_place_at_rest(group) : wr_group_place(group)) {
    case WR_PAUSED:
        return WEIR_REASON_PAUSED;
    case WR_GATED:
        return WEIR_REASON_GATED;
    case WR_AWAITS_THREAD:
        return WEIR_REASON_NO_THREAD;
    case WR_KEEPS_TIME:
        return WEIR_REASON_PACED;
    case WR_AT_REST:
    case WR_READY:
        break;
    }
    reason = wr_blocked_by(&group->sums, &group->executor->root, wr_cost_at(wr_group_first(group)));
    if (reason == WEIR_REASON_NONE && group->executor->domains)
        reason = wr_domain_blocked_by(group, &why->limit, &why->held);
    if (reason == WEIR_REASON_NONE && wr_permits_are_owed(group))
        reason = WEIR_REASON_GLOBAL_INFLIGHT; /* another group is owed those that are free */
    return reason;
}

/* Under the lock. */
static void why_waiting(weir_why *why, struct weir_group *group, struct weir_task *task)
{
    struct wr_root *root = &group->executor->root;
    struct wr_sums *s = &group->sums;

    why->earliest = wr_group_gates_open_at(group);
    why->reason = reason_by_place(why, group);
    why->node = "group";
    switch (why->reason) {
    case WEIR_REASON_GROUP_LIMIT:
        why->limit = wr_limit_to(s->limit);
        why->held = (int64_t)s->running + s->carried;
        break;
    case WEIR_REASON_GROUP_INFLIGHT:
        why->limit = wr_limit_to(s->inflight_max);
        why->held = (int64_t)s->inflight + s->carried;
        break;
    case WEIR_REASON_GLOBAL_INFLIGHT:
        why->node = "executor";
        why->limit = wr_limit_to(wr_load(&root->inflight_max, relaxed));
        why->held = (int64_t)wr_load(&root->held, relaxed);
        break;
    case WEIR_REASON_DOMAIN_SLOTS:
        why->node = "domain";
        why->key = weir_group_domain(group);
        break;
    case WEIR_REASON_NO_THREAD:
        why->node = "executor";
        wr_threads_count(group->executor, &why->limit, &why->held);
        break;
    case WEIR_REASON_GATED:
        why_gated(why, group);
        break;
    case WEIR_REASON_NONE:
        why->reason = wr_group_first(group) == task->queued.place ? WEIR_REASON_NO_WORKER
                                                                  : WEIR_REASON_BEHIND_OTHERS;
        break;
    default:
        break;
    }
}

void wr_task_explain(weir_why *why, struct weir_task *task, bool count_ahead)
{
    struct weir_group *group = task->group;
    uint32_t phase = wr_task_phase(task);

    *why = (weir_why){ .size = sizeof(*why), .node = "", .key = group->key };
    if (wr_task_outcome(task) != WEIR_UNSETTLED) {
        why->reason = wr_task_reason(task) ? wr_task_reason(task) : WEIR_REASON_SETTLED;
    } else if (phase == WR_PHASE_QUEUED) {
        struct wr_group_walk at = { 0 };
        uint64_t *before;
        why_waiting(why, group, task);
        while (count_ahead && (before = wr_group_next(group, &at)) && before != task->queued.place)
            why->ahead++;
    } else {
        why->reason = wr_task_whole(task)        ? WEIR_REASON_FLOW
                      : wr_phase_has_body(phase) ? WEIR_REASON_RUNNING
                                                 : WEIR_REASON_PENDING;
    }
}

int weir_task_why(weir_why *out, weir_task *task)
{
    weir_why why;

    if (!out || !task)
        return WEIR_EINVAL;
    wr_group_lock(task->group);
    wr_task_explain(&why, task, true);
    wr_unlock(&task->group->lock);
    return wr_options_store(out, &why, sizeof(why));
}
