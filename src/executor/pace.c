/* Pause, cool-down and pace. The last two are gates of the group's own; see gate.h.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/gate.h"
#include "executor/state.h"

#include <weir/error.h>

/* ---- cool-down ------------------------------------------------------------------------------------- */

static uint32_t cool_ask(void *gates_arg, uint32_t count, weir_time now, weir_time *again)
{
    const struct wr_gates *gates = gates_arg;

    *again = gates->cool_until;
    return gates->cool_until > now ? 0 : count ? count : 1;
}

static void cool_describe(void *gates_arg, weir_gate_state *out, weir_time now)
{
    (void)gates_arg, (void)now;
    out->reason = WEIR_REASON_COOLING_DOWN;
}

static bool cool_at_rest(void *gates_arg, weir_time now)
{
    return ((const struct wr_gates *)gates_arg)->cool_until <= now;
}

static const weir_gate_calls cool_calls = { .size = sizeof(cool_calls),
                                            .name = "cool-down",
                                            .ask = cool_ask,
                                            .describe = cool_describe,
                                            .at_rest = cool_at_rest };

/* ---- pace ------------------------------------------------------------------------------------------ */

static uint32_t pace_ask(void *gates_arg, uint32_t count, weir_time now, weir_time *again)
{
    struct wr_gates *gates = gates_arg;
    uint32_t starts;

    if (!gates->pace.interval)
        return count ? count : 1;
    *again = gates->pace_next - gates->pace.slack;
    starts = wr_pace_allows(&gates->pace, gates->pace_next, count ? count : 1, now);
    if (!count || !starts)
        return starts;
    for (uint32_t i = 0; i < starts; i++)
        gates->pace_next = wr_pace_after(&gates->pace, gates->pace_next, now);
    return starts;
}

static void pace_take_back(void *gates_arg, uint32_t count, weir_time now)
{
    struct wr_gates *gates = gates_arg;

    (void)now;
    if (gates->pace_next < WEIR_FOREVER) /* else it never was to start again */
        gates->pace_next -= count * gates->pace.interval;
}

static void pace_describe(void *gates_arg, weir_gate_state *out, weir_time now)
{
    (void)gates_arg, (void)now;
    out->reason = WEIR_REASON_PACED;
}

static bool pace_at_rest(void *gates_arg, weir_time now)
{
    const struct wr_gates *gates = gates_arg;

    return !gates->pace.interval || gates->pace_next <= now;
}

static const weir_gate_calls pace_calls = { .size = sizeof(pace_calls),
                                            .name = "pace",
                                            .ask = pace_ask,
                                            .take_back = pace_take_back,
                                            .describe = pace_describe,
                                            .at_rest = pace_at_rest };

static void join_pace(struct wr_gates *gates)
{
    gates->pace_gate.calls = pace_calls;
    gates->pace_gate.arg = gates;
    wr_gate_join(gates, &gates->pace_gate, false);
}

int wr_pace_begin(struct weir_group *group, const struct wr_pace *pace)
{
    struct wr_gates *gates = wr_gates_of(group);

    if (!gates)
        return WEIR_ENOMEM;
    gates->pace = *pace;
    join_pace(gates);
    return 0;
}

/* ---- the calls ------------------------------------------------------------------------------------- */

static void set_paused(weir_group *handle, bool paused)
{
    struct weir_group *group = handle ? wr_group_current(handle) : NULL;

    if (!group)
        return;
    wr_group_lock(group);
    group->paused = paused;
    wr_group_note_closed(group);
    wr_group_changed(group);
    wr_group_unpin(group);
}

void weir_group_pause(weir_group *handle)
{
    set_paused(handle, true);
}

void weir_group_resume(weir_group *handle)
{
    set_paused(handle, false);
}

static int cool_down(struct weir_group *group, weir_time until)
{
    int rc = wr_gates_lock(group);
    struct wr_gates *gates;

    if (rc)
        return rc;
    gates = group->extras->gates;
    gates->cool_until = until;
    gates->cool_gate.calls = cool_calls;
    gates->cool_gate.arg = gates;
    wr_gates_turn_over(group, wr_os_now()); /* what was granted is to be asked for again */
    wr_gate_join(gates, &gates->cool_gate, true);
    wr_gates_unlock(group);
    return 0;
}

int weir_group_cool_down(weir_group *handle, weir_time until)
{
    return handle ? cool_down(wr_group_current(handle), until) : WEIR_EINVAL;
}

int weir_task_cool_down(weir_task *task, weir_time until)
{
    return task ? cool_down(wr_group_present(task->group), until) : WEIR_EINVAL;
}

int weir_group_pace(weir_group *handle, int64_t starts, int64_t period_ns, int64_t burst)
{
    struct weir_group *group;
    struct wr_gates *gates;
    struct wr_pace pace;
    int rc;

    if (!handle || starts < 0 || period_ns < 0 || burst < 0 || (starts && !period_ns) ||
        !wr_pace_from(&pace, &(weir_pace){ starts, period_ns, burst }))
        return WEIR_EINVAL;
    group = wr_group_current(handle);
    rc = wr_gates_lock(group);
    if (rc)
        return rc;
    wr_gates_turn_over(group, wr_os_now());
    gates = group->extras->gates;
    gates->pace_next = wr_pace_change(&gates->pace, &pace, gates->pace_next, wr_os_now());
    gates->pace = pace;
    join_pace(gates);
    wr_gates_unlock(group);
    return 0;
}
