/* Gates: pause, cool-down and pace. A group whose gate is closed leaves the ring; its tasks stay, and a
 * call or the clock brings it back.
 *
 * Pace is the generic cell rate algorithm: `pace_next` runs ahead of the clock by one interval per
 * start; starts are allowed while it is at most `pace.slack` ahead.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"

#include <weir/error.h>

static void gate_fired(struct wr_alarm *alarm, weir_time now);

static struct wr_gate *gate_of(struct weir_group *group)
{
    struct wr_rare *rare = wr_group_rare(group);

    if (!rare || rare->gate)
        return rare ? rare->gate : NULL;
    rare->gate = wr_os_alloc(sizeof(*rare->gate));
    if (rare->gate) {
        rare->gate->group = group;
        wr_alarm_init(&rare->gate->alarm, gate_fired);
    }
    return rare->gate;
}

void wr_gate_free(struct weir_group *group)
{
    struct wr_gate *gate = wr_group_gate(group);

    if (!gate)
        return;
    wr_clock_forget(group->executor, &gate->alarm);
    wr_os_free(gate);
    group->rare->gate = NULL;
}

static weir_time paced_until(const struct wr_gate *gate)
{
    return gate->pace.interval ? gate->pace_next - gate->pace.slack : 0;
}

bool wr_gate_is_at_rest(const struct weir_group *group, weir_time now)
{
    const struct wr_gate *gate = wr_group_gate(group);

    if (group->sums.closed & WR_PAUSED)
        return false;
    return !gate || (gate->cool_until <= now && (!gate->pace.interval || gate->pace_next <= now));
}

bool wr_gate_is_paced(const struct weir_group *group)
{
    const struct wr_gate *gate = wr_group_gate(group);

    return gate && gate->pace.interval;
}

int wr_gate_pace(struct weir_group *group, const struct wr_pace *pace)
{
    struct wr_gate *gate = gate_of(group);

    if (!gate)
        return WEIR_ENOMEM;
    gate->pace = *pace;
    return 0;
}

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

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
static void change_pace(struct wr_gate *gate, const struct wr_pace *to, weir_time now)
{
    struct wr_pace from = gate->pace;
    int64_t had = add_capped(from.slack, from.interval), most = add_capped(to->slack, to->interval);
    int64_t spent = gate->pace_next > now ? gate->pace_next - now : 0, left;

    gate->pace = *to;
    if (!from.interval || !gate->pace_next) {
        gate->pace_next = 0;
        return;
    }
    left = scaled(had > spent ? had - spent : 0, from.interval, to->interval);
    gate->pace_next = add_capped(now, left < most ? most - left : 0);
}

weir_time wr_gate_opens_at(const struct weir_group *group)
{
    const struct wr_gate *gate = wr_group_gate(group);
    uint16_t closed = group->sums.closed;
    weir_time opens = 0;

    if (!gate || closed & WR_PAUSED)
        return 0;
    if (closed & WR_COOLING)
        opens = gate->cool_until;
    if (closed & WR_OUT_OF_PACE && paced_until(gate) > opens)
        opens = paced_until(gate);
    return opens;
}

/* Brings `closed` in line with the time, and the clock with `closed`. Under the group's lock. */
static void settle_gate(struct weir_group *group, weir_time now)
{
    struct wr_gate *gate = wr_group_gate(group);
    uint16_t closed = group->sums.closed & (WR_PAUSED | WR_NO_THREAD);
    weir_time wake = WEIR_FOREVER;

    if (gate->cool_until > now) {
        closed |= WR_COOLING;
        wake = gate->cool_until;
    }
    if (paced_until(gate) > now) {
        closed |= WR_OUT_OF_PACE;
        if (paced_until(gate) < wake)
            wake = paced_until(gate);
    }
    if (wake != WEIR_FOREVER && wake != gate->wake_at)
        wr_clock_set(group->executor, &gate->alarm, wake);
    gate->wake_at = wake == WEIR_FOREVER ? 0 : wake;
    wr_set_closed(&group->sums, &group->executor->root, closed);
}

void wr_gate_started(struct weir_group *group, weir_time now)
{
    struct wr_gate *gate = wr_group_gate(group);

    if (!gate->pace.interval)
        return;
    if (gate->pace_next < now)
        gate->pace_next = now;
    if (__builtin_add_overflow(gate->pace_next, gate->pace.interval, &gate->pace_next))
        gate->pace_next = WEIR_FOREVER;
    settle_gate(group, now);
}

static void refresh_and_unlock(struct weir_group *group)
{
    bool wake = wr_group_refresh(group);

    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(group->executor);
    wr_room_made(group->executor);
}

static void gate_fired(struct wr_alarm *alarm, weir_time now)
{
    struct wr_gate *gate = WR_CONTAINER(alarm, struct wr_gate, alarm);
    struct weir_group *group = gate->group;

    wr_lock(&group->lock);
    gate->wake_at = 0;
    settle_gate(group, now);
    refresh_and_unlock(group);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static void set_paused(struct weir_group *group, bool paused)
{
    uint16_t closed;

    wr_lock(&group->lock);
    closed = (uint16_t)(paused ? group->sums.closed | WR_PAUSED : group->sums.closed & ~WR_PAUSED);
    wr_set_closed(&group->sums, &group->executor->root, closed);
    refresh_and_unlock(group);
}

void weir_group_pause(weir_group *handle)
{
    struct weir_group *group = handle ? wr_group_current(handle) : NULL;

    if (group) {
        set_paused(group, true);
        wr_group_unpin(group);
    }
}

void weir_group_resume(weir_group *handle)
{
    struct weir_group *group = handle ? wr_group_current(handle) : NULL;

    if (group) {
        set_paused(group, false);
        wr_group_unpin(group);
    }
}

/* A group that was pinned for us (NULL: it could not be), with a gate and a clock that runs, and locked; or an
 * error. */
static int with_gate(struct weir_group *group)
{
    int rc;

    if (!group)
        return WEIR_ECLOSED;
    rc = wr_clock_start(group->executor);
    if (!rc) {
        wr_lock(&group->lock);
        if (gate_of(group))
            return 0;
        wr_unlock(&group->lock);
        rc = WEIR_ENOMEM;
    }
    wr_group_unpin(group);
    return rc;
}

static void done_with_gate(struct weir_group *group)
{
    settle_gate(group, wr_os_now());
    refresh_and_unlock(group);
    wr_group_unpin(group);
}

static int cool_down(struct weir_group *group, weir_time until)
{
    int rc = with_gate(group);

    if (rc)
        return rc;
    wr_group_gate(group)->cool_until = until;
    done_with_gate(group);
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
    rc = with_gate(group);
    if (rc)
        return rc;
    change_pace(wr_group_gate(group), &pace, wr_os_now());
    done_with_gate(group);
    return 0;
}
