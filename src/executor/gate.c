/* Gates of a group: when they are asked, and what follows from their answers; see gate.h.
 * SPDX-License-Identifier: MIT */
#include "executor/gate.h"

#include "base/options.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/slice.h"

#include <weir/error.h>

static struct wr_group_gates *bound(struct wr_gates *gates)
{
    return WR_CONTAINER(gates, struct wr_group_gates, gates);
}

/* ---- under the lock ------------------------------------------------------------------------------ */

/* Brings the group's sums, and its alarm, in line with the gates' last answer. */
static void heed(struct weir_group *group)
{
    struct wr_group_gates *own = group->extras->gates;
    const struct wr_gates *gates = &own->gates;
    weir_time wake = gates->refused && gates->again != WEIR_FOREVER ? gates->again : 0;

    if (wake && wake != own->armed_for)
        wr_clock_set(&group->executor->clock, &own->alarm, wake);
    own->armed_for = wake;
    wr_group_note_closed(group);
}

void wr_group_gates_disarm(struct weir_group *group)
{
    struct wr_group_gates *own = group->extras->gates;

    if (own->armed_for)
        wr_clock_cancel(&group->executor->clock, &own->alarm);
    own->armed_for = 0;
}

bool wr_group_gates_grant(struct weir_group *group, weir_time now)
{
    bool granted = wr_gates_grant(wr_group_gates(group), group->sums.queued, WR_SLICE_NS, now);

    if (!granted)
        heed(group);
    return granted;
}

void wr_group_gates_look(struct weir_group *group, weir_time now)
{
    wr_gates_look(wr_group_gates(group), now);
    heed(group);
}

void wr_group_gates_turn_over(struct weir_group *group, weir_time now)
{
    if (wr_gates_return(wr_group_gates(group), now))
        wr_group_gates_look(group, now);
}

void wr_group_gates_started(struct weir_group *group, struct weir_task *task, weir_time now)
{
    wr_gates_started(wr_group_gates(group), task, now);
    heed(group);
}

void wr_group_gates_went_on(struct weir_group *group, const struct weir_task *task, uint32_t count,
                            weir_time now)
{
    wr_gates_went_on(wr_group_gates(group), task, count, now);
    heed(group);
}

weir_time wr_group_gates_open_at(const struct weir_group *group)
{
    const struct wr_gates *gates = wr_group_gates(group);

    return gates && !group->paused ? wr_gates_open_at(gates, wr_os_now()) : 0;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void look_again(struct wr_alarm *alarm, weir_time now)
{
    struct wr_group_gates *own = WR_CONTAINER(alarm, struct wr_group_gates, alarm);

    wr_group_lock(own->group);
    own->armed_for = 0;
    wr_group_gates_look(own->group, now);
    wr_waits_suspect(own->group->executor); /* it has come to its turn, or has none */
    wr_group_changed(own->group);
}

struct wr_gates *wr_group_make_gates(struct weir_group *group)
{
    struct wr_extras *extras = wr_group_extras(group);

    if (extras && !extras->gates && (extras->gates = wr_os_alloc(sizeof(*extras->gates)))) {
        wr_gates_init(&extras->gates->gates);
        wr_alarm_init(&extras->gates->alarm, look_again);
        extras->gates->group = group;
    }
    return wr_group_gates(group);
}

/* Frees a gate that has left its group. */
static void gate_free(struct weir_gate *gate)
{
    if (gate->calls.drop)
        gate->calls.drop(gate->arg);
    wr_os_free(gate);
}

void wr_group_free_gates(struct weir_group *group)
{
    struct wr_group_gates *own = group->extras ? group->extras->gates : NULL;
    struct weir_gate *gate, *next;

    if (!own)
        return;
    wr_group_lock(group); /* an alarm that still fires finds none */
    gate = wr_gates_leave_all(&own->gates);
    wr_unlock(&group->lock);
    for (; gate; gate = next) {
        next = gate->next;
        gate_free(gate);
    }
    /* Until it was dropped, a gate could be opened. */
    wr_clock_forget(&group->executor->clock, &own->alarm);
    wr_gates_fini(&own->gates);
    wr_os_free(own->beat);
    wr_os_free(own);
    group->extras->gates = NULL;
}

int wr_group_lock_gates(struct weir_group *group)
{
    int rc;

    if (!group)
        return WEIR_ECLOSED;
    rc = wr_clock_start(&group->executor->clock);
    if (!rc) {
        wr_group_lock(group);
        if (wr_group_make_gates(group))
            return 0;
        wr_unlock(&group->lock);
        rc = WEIR_ENOMEM;
    }
    wr_group_unpin(group);
    return rc;
}

void wr_group_unlock_gates(struct weir_group *group)
{
    wr_group_gates_look(group, wr_os_now());
    wr_group_changed(group);
    wr_group_unpin(group);
}

/* ---- the calls ----------------------------------------------------------------------------------- */

int weir_group_gate_add(weir_gate **out, weir_group *handle, const weir_gate_calls *calls,
                        void *arg)
{
    struct weir_group *group = NULL;
    struct weir_gate *gate;
    int rc;

    if (!out || !handle || !calls)
        return WEIR_EINVAL;
    *out = NULL;
    gate = wr_os_alloc(sizeof(*gate));
    rc = gate ? wr_options_load(&gate->calls, sizeof(gate->calls), calls) : WEIR_ENOMEM;
    if (!rc && !gate->calls.ask)
        rc = WEIR_EINVAL;
    if (!rc) {
        group = wr_group_current(handle);
        rc = wr_group_lock_gates(group);
    }
    if (rc) {
        wr_os_free(gate);
        return rc;
    }
    gate->arg = arg;
    wr_gates_join(wr_group_gates(group), gate, false, wr_os_now());
    group->asks_gates = wr_gates_judge(wr_group_gates(group));
    *out = gate;
    wr_group_unlock_gates(group);
    return 0;
}

void weir_gate_remove(weir_gate *gate)
{
    struct weir_group *group;

    if (!gate)
        return;
    group = bound(gate->among)->group;
    wr_group_lock(group);
    wr_gates_leave(gate->among, gate, wr_os_now());
    group->asks_gates = wr_gates_judge(gate->among);
    wr_group_gates_look(group, wr_os_now());
    wr_group_changed(group);
    gate_free(gate);
}

void weir_gate_open(weir_gate *gate)
{
    struct wr_group_gates *own = bound(gate->among);

    wr_clock_set(&own->group->executor->clock, &own->alarm, 1); /* long past: at once */
}

size_t weir_gate_cancel(weir_gate *gate, uint64_t word)
{
    const struct wr_gates *gates = gate->among;
    struct weir_group *group = bound(gate->among)->group;
    struct weir_task *task;
    size_t cancelled = 0;

    do { /* one at a time: an end is told without the lock */
        task = NULL;
        wr_group_lock(group);
        for (uint32_t i = 0; i < gates->passes && !task; i++)
            if (gates->pass[i].gate == gate && gates->pass[i].word == word &&
                wr_task_outcome(gates->pass[i].task) == WEIR_UNSETTLED)
                task = weir_task_ref(gates->pass[i].task);
        wr_unlock(&group->lock);
        cancelled += weir_task_cancel(task);
        weir_task_unref(task);
    } while (task);
    return cancelled;
}
