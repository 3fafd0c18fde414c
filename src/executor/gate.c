/* Gates: asking them, and what they let through; see gate.h.
 * SPDX-License-Identifier: MIT */
#include "executor/gate.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/slice.h"

#include <string.h>
#include <weir/error.h>

enum { GRANT_MAX = 32 }; /* starts of one turn, or a few more than most turns have */

static void gates_fired(struct wr_alarm *alarm, weir_time now);

struct wr_gates *wr_gates_of(struct weir_group *group)
{
    struct wr_extras *extras = wr_group_extras(group);

    if (!extras || extras->gates)
        return extras ? extras->gates : NULL;
    extras->gates = wr_os_alloc(sizeof(*extras->gates));
    if (extras->gates) {
        extras->gates->group = group;
        wr_alarm_init(&extras->gates->alarm, gates_fired);
    }
    return extras->gates;
}

/* After their list has changed. */
static void note_kinds(struct wr_gates *gates)
{
    gates->group->asks_gates = gates->by_turn = false;
    for (const struct weir_gate *gate = gates->first; gate; gate = gate->next) {
        gates->group->asks_gates |= gate->calls.accept != NULL;
        gates->by_turn |= gate->calls.went_on != NULL;
    }
}

static void take_back(struct weir_gate *first, const struct weir_gate *end, uint32_t count,
                      weir_time now)
{
    for (struct weir_gate *gate = first; count && gate != end; gate = gate->next)
        if (gate->calls.take_back)
            gate->calls.take_back(gate->arg, count, now);
}

void wr_gate_join(struct wr_gates *gates, struct weir_gate *gate, bool first)
{
    struct weir_gate **at = &gates->first;

    for (struct weir_gate *other = gates->first; other; other = other->next)
        if (other == gate)
            return;
    if (gates->granted) { /* it was not asked for these starts */
        take_back(gates->first, NULL, gates->granted, wr_os_now());
        gates->granted = 0;
    }
    while (*at && !first)
        at = &(*at)->next;
    gate->group = gates->group;
    gate->next = *at;
    *at = gate;
    note_kinds(gates);
}

/* ---- asking -------------------------------------------------------------------------------------- */

/* How many of `count` all gates let through: the least of their answers. What other gates have granted beyond that goes
 * back. With count 0: 1 if all are open. */
static uint32_t ask_all(struct wr_gates *gates, uint32_t count, weir_time now)
{
    uint32_t granted = count;

    gates->refused = NULL;
    for (struct weir_gate *gate = gates->first; gate; gate = gate->next) {
        weir_time again = WEIR_FOREVER;
        uint32_t some = gate->calls.ask(gate->arg, granted, now, &again);
        if (!some) {
            take_back(gates->first, gate, granted, now);
            gates->refused = gate;
            gates->again = again;
            return 0;
        }
        if (granted)
            take_back(gates->first, gate, granted - some, now);
        granted = granted ? some : 0;
    }
    return count ? granted : 1;
}

/* Brings the group's sums in line with the last answer, and the clock with that. */
static void close_or_open(struct wr_gates *gates)
{
    struct weir_group *group = gates->group;
    weir_time wake = gates->refused && gates->again != WEIR_FOREVER ? gates->again : 0;

    if (wake && wake != gates->armed_for)
        wr_clock_set(&group->executor->clock, &gates->alarm, wake);
    gates->armed_for = wake;
    wr_group_note_closed(group);
}

void wr_gates_disarm(struct weir_group *group)
{
    struct wr_gates *gates = group->extras->gates;

    if (gates->armed_for)
        wr_clock_cancel(&group->executor->clock, &gates->alarm);
    gates->armed_for = 0;
}

void wr_gates_look(struct weir_group *group, weir_time now)
{
    struct wr_gates *gates = group->extras->gates;

    if (gates->granted)
        return;
    ask_all(gates, 0, now);
    close_or_open(gates);
}

static void return_grants(struct wr_gates *gates, weir_time now)
{
    take_back(gates->first, NULL, gates->granted, now);
    gates->granted = 0;
    gates->share = 0;
}

bool wr_gates_grant(struct weir_group *group, weir_time now)
{
    struct wr_gates *gates = group->extras->gates;
    uint32_t count;

    if (gates->granted && now - gates->granted_at < WR_SLICE_NS)
        return true;
    /* A long body kept them from being used. A pace has earned a burst since, and they must not come on top of it. */
    if (gates->granted)
        return_grants(gates, now);
    gates->share = !gates->share ? 1 : gates->share < GRANT_MAX ? 2 * gates->share : GRANT_MAX;
    count = group->sums.queued < gates->share ? group->sums.queued : gates->share;
    if (gates->by_turn)
        count = 1;
    gates->granted = ask_all(gates, count, now);
    gates->granted_at = now;
    if (!gates->granted)
        close_or_open(gates);
    return gates->granted > 0;
}

void wr_gates_turn_over(struct weir_group *group, weir_time now)
{
    struct wr_gates *gates = group->extras->gates;
    uint32_t unspent = gates->granted;

    return_grants(gates, now);
    if (unspent)
        wr_gates_look(group, now);
}

uint32_t wr_gates_follow(const struct weir_group *group)
{
    const struct wr_gates *gates = group->extras->gates;
    uint32_t most = WR_INF;

    for (const struct weir_gate *gate = gates->first; gate; gate = gate->next)
        if (!gate->calls.started)
            most = gates->granted;
        else if (!gate->calls.went_on)
            return 0;
    return most;
}

void wr_gates_went_on(struct weir_group *group, const struct weir_task *task, uint32_t count,
                      weir_time now)
{
    struct wr_gates *gates = group->extras->gates;

    for (uint32_t i = 0; i < gates->passes; i++) {
        const struct wr_pass *pass = &gates->pass[i];
        if (pass->task == task && pass->gate->calls.went_on)
            pass->gate->calls.went_on(pass->gate->arg, pass->word, count, now);
    }
    gates->granted -= gates->granted < count ? gates->granted : count;
    wr_gates_look(group, now);
}

weir_reason wr_gates_accept(struct weir_group *group, uint32_t cost, weir_time now)
{
    for (struct weir_gate *gate = group->extras->gates->first; gate; gate = gate->next) {
        weir_reason reason =
            gate->calls.accept ? gate->calls.accept(gate->arg, cost, now) : WEIR_REASON_NONE;
        if (reason)
            return reason;
    }
    return WEIR_REASON_NONE;
}

static void gates_fired(struct wr_alarm *alarm, weir_time now)
{
    struct wr_gates *gates = WR_CONTAINER(alarm, struct wr_gates, alarm);

    wr_group_lock(gates->group);
    gates->armed_for = 0;
    wr_gates_look(gates->group, now);
    wr_waits_suspect(gates->group->executor); /* it has come to its turn, or has none */
    wr_group_changed(gates->group);
}

/* ---- passes -------------------------------------------------------------------------------------- */

/* Room for one more; without memory the gate hears of an end that has no word. */
static struct wr_pass *add_pass(struct wr_gates *gates)
{
    gates->room =
        (uint32_t)wr_array_grow(&gates->pass, gates->room, gates->passes, sizeof(gates->pass[0]));
    return gates->passes < gates->room ? &gates->pass[gates->passes++] : NULL;
}

void wr_gates_started(struct weir_group *group, struct weir_task *task, weir_time now)
{
    struct wr_gates *gates = group->extras->gates;

    for (struct weir_gate *gate = gates->first; gate; gate = gate->next) {
        struct wr_pass *pass;
        uint64_t word;
        if (!gate->calls.started)
            continue;
        word = gate->calls.started(gate->arg, task, now);
        pass = add_pass(gates);
        if (pass)
            *pass = (struct wr_pass){ task, gate, word };
        else if (gate->calls.ended) /* it is not kept from anybody else for ever */
            gate->calls.ended(gate->arg, word, WEIR_ENOMEM, 0, now);
    }
    WR_ASSERT(gates->granted > 0);
    gates->granted--;
    wr_gates_look(group, now);
}

void wr_gates_ended(struct weir_group *group, struct weir_task *task, int error, weir_time now)
{
    struct wr_gates *gates = group->extras->gates;
    int64_t ran = now > task->started_at ? now - task->started_at : 0;

    for (uint32_t i = gates->passes; i-- > 0;) {
        struct wr_pass pass = gates->pass[i];
        if (pass.task != task)
            continue;
        gates->pass[i] = gates->pass[--gates->passes];
        if (pass.gate->calls.ended)
            pass.gate->calls.ended(pass.gate->arg, pass.word, error, ran, now);
    }
}

size_t weir_gate_cancel(weir_gate *gate, uint64_t word)
{
    struct weir_group *group = gate->group;
    struct wr_gates *gates = group->extras->gates;
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

/* ---- what they say ------------------------------------------------------------------------------- */

const char *wr_gates_describe(struct weir_group *group, weir_gate_state *state)
{
    struct wr_gates *gates = group->extras->gates;
    struct weir_gate *gate = gates->refused;
    weir_time earliest = gates->again == WEIR_FOREVER ? 0 : gates->again;

    *state = (weir_gate_state){ .size = sizeof(*state),
                                .reason = WEIR_REASON_GATED,
                                .earliest = earliest };
    if (gate->calls.describe)
        gate->calls.describe(gate->arg, state, wr_os_now());
    return gate->calls.name ? gate->calls.name : "";
}

weir_time wr_gates_open_at(struct weir_group *group)
{
    struct wr_gates *gates = group->extras ? group->extras->gates : NULL;
    weir_time latest = 0, now = wr_os_now();

    if (!gates || !gates->refused || group->paused)
        return 0;
    for (struct weir_gate *gate = gates->first; gate; gate = gate->next) {
        weir_time again = 0;
        if (!gate->calls.ask(gate->arg, 0, now, &again) && again == WEIR_FOREVER)
            return 0;
        latest = again > latest ? again : latest;
    }
    return latest;
}

bool wr_gates_are_at_rest(const struct weir_group *group, weir_time now)
{
    struct wr_gates *gates = group->extras ? group->extras->gates : NULL;

    if (group->paused)
        return false;
    for (struct weir_gate *gate = gates ? gates->first : NULL; gate; gate = gate->next)
        if (gate->calls.at_rest && !gate->calls.at_rest(gate->arg, now))
            return false;
    return true;
}

/* ---- life ---------------------------------------------------------------------------------------- */

/* A gate that was taken out of the list. Those of the group's own are part of its record. */
static void gate_delete(const struct wr_gates *gates, struct weir_gate *gate)
{
    if (gate == &gates->cool_gate || gate == &gates->pace_gate)
        return;
    if (gate->calls.drop)
        gate->calls.drop(gate->arg);
    wr_os_free(gate);
}

void wr_gates_free(struct weir_group *group)
{
    struct wr_gates *gates = group->extras ? group->extras->gates : NULL;
    struct weir_gate *gate, *next;

    if (!gates)
        return;
    wr_group_lock(group);
    gate = gates->first;
    gates->first = NULL; /* an alarm that still fires finds none */
    wr_unlock(&group->lock);
    for (; gate; gate = next) {
        next = gate->next;
        gate_delete(gates, gate);
    }
    wr_clock_forget(&group->executor->clock,
                    &gates->alarm); /* until it was dropped, a gate could be opened */
    wr_os_free(gates->beat);
    wr_os_free(gates->pass);
    wr_os_free(gates);
    group->extras->gates = NULL;
}

int wr_gates_lock(struct weir_group *group)
{
    int rc;

    if (!group)
        return WEIR_ECLOSED;
    rc = wr_clock_start(&group->executor->clock);
    if (!rc) {
        wr_group_lock(group);
        if (wr_gates_of(group))
            return 0;
        wr_unlock(&group->lock);
        rc = WEIR_ENOMEM;
    }
    wr_group_unpin(group);
    return rc;
}

void wr_gates_unlock(struct weir_group *group)
{
    wr_gates_look(group, wr_os_now());
    wr_group_changed(group);
    wr_group_unpin(group);
}

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
        rc = wr_gates_lock(group);
    }
    if (rc) {
        wr_os_free(gate);
        return rc;
    }
    gate->arg = arg;
    wr_gate_join(group->extras->gates, gate, false);
    *out = gate;
    wr_gates_unlock(group);
    return 0;
}

void weir_gate_remove(weir_gate *gate)
{
    struct weir_group *group;
    struct wr_gates *gates;
    struct weir_gate **at;

    if (!gate)
        return;
    group = gate->group;
    wr_group_lock(group);
    gates = group->extras->gates;
    if (gates->granted && gate->calls.take_back)
        gate->calls.take_back(gate->arg, gates->granted, wr_os_now());
    for (at = &gates->first; *at != gate; at = &(*at)->next)
        ;
    *at = gate->next;
    note_kinds(gates);
    for (uint32_t i = gates->passes; i-- > 0;)
        if (gates->pass[i].gate == gate)
            gates->pass[i] = gates->pass[--gates->passes];
    wr_gates_look(group, wr_os_now());
    wr_group_changed(group);
    gate_delete(gates, gate);
}

void weir_gate_open(weir_gate *gate)
{
    struct weir_group *group = gate->group;

    wr_clock_set(&group->executor->clock, &group->extras->gates->alarm, 1); /* long past: at once */
}
