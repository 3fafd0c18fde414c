/* Pause, cool-down and pace. The last two are gates of the group's own; see gate.h.
 *
 * Pace is the generic cell rate algorithm: `pace_next` runs ahead of the clock by one interval per start; starts are
 * allowed while it is at most `pace.slack` ahead.
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

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

weir_time wr_pace_after(const struct wr_pace *pace, weir_time next, weir_time start)
{
    return add_capped(next > start ? next : start, pace->interval);
}

/* How many starts the pace allows at once, at most `most`. */
static uint32_t starts_allowed(const struct wr_gates *gates, uint32_t most, weir_time now)
{
    int64_t spent = gates->pace_next > now ? gates->pace_next - now : 0;
    int64_t left = gates->pace.slack - spent;

    if (left < 0)
        return 0;
    left = left / gates->pace.interval + 1;
    return left < most ? (uint32_t)left : most;
}

static uint32_t pace_ask(void *gates_arg, uint32_t count, weir_time now, weir_time *again)
{
    struct wr_gates *gates = gates_arg;
    uint32_t starts;

    if (!gates->pace.interval)
        return count ? count : 1;
    *again = gates->pace_next - gates->pace.slack;
    starts = starts_allowed(gates, count ? count : 1, now);
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

/* span * to / from, at most INT64_MAX. */
static int64_t scaled(int64_t span, int64_t from, int64_t to)
{
    int64_t whole, part;

    if (__builtin_mul_overflow(span / from, to, &whole))
        return INT64_MAX;
    if (__builtin_mul_overflow(span % from, to, &part)) /* intervals of years: near enough */
        return add_capped(whole, (int64_t)((double)(span % from) / (double)from * (double)to));
    return add_capped(whole, part / from);
}

/* Another pace, while the group is at it: what was left of the burst is left, as far as the new burst has room
 * for it, and what was spent has to be earned again. A group that has started nothing under a pace begins with
 * a whole burst. */
static void change_pace(struct wr_gates *gates, const struct wr_pace *to, weir_time now)
{
    struct wr_pace from = gates->pace;
    int64_t had = add_capped(from.slack, from.interval), most = add_capped(to->slack, to->interval);
    int64_t spent = gates->pace_next > now ? gates->pace_next - now : 0, left;

    gates->pace = *to;
    if (!from.interval || !gates->pace_next) {
        gates->pace_next = 0;
        return;
    }
    left = scaled(had > spent ? had - spent : 0, from.interval, to->interval);
    gates->pace_next = add_capped(now, left < most ? most - left : 0);
}

static void join_pace(struct wr_gates *gates)
{
    gates->pace_gate.calls = &pace_calls;
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
    uint16_t closed;

    if (!group)
        return;
    wr_group_lock(group);
    closed = (uint16_t)(paused ? group->sums.closed | WR_PAUSED : group->sums.closed & ~WR_PAUSED);
    wr_set_closed(&group->sums, &group->executor->root, closed);
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
    gates->cool_gate.calls = &cool_calls;
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
    change_pace(group->extras->gates, &pace, wr_os_now());
    join_pace(group->extras->gates);
    wr_gates_unlock(group);
    return 0;
}
