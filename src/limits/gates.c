/* Gates: asking them, and what they let through; see gates.h.
 * SPDX-License-Identifier: MIT */
#include "limits/gates.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/os.h"
#include "limits/admit.h"

#include <weir/error.h>

enum { GRANT_MAX = 32 }; /* starts of one turn, or a few more than most turns have */

/* ---- the group's own: cool-down ------------------------------------------------------------------ */

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

void wr_gates_cool_down(struct wr_gates *gates, weir_time until, weir_time now)
{
    wr_gates_join(gates, &gates->cool_gate, true, now);
    gates->cool_until = until;
}

/* ---- the group's own: pace ----------------------------------------------------------------------- */

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

void wr_gates_set_pace(struct wr_gates *gates, const struct wr_pace *pace, weir_time now)
{
    wr_gates_join(gates, &gates->pace_gate, false, now); /* starts go back at the old pace */
    gates->pace_next = wr_pace_change(&gates->pace, pace, gates->pace_next, now);
    gates->pace = *pace;
}

/* ---- the list ------------------------------------------------------------------------------------ */

void wr_gates_init(struct wr_gates *gates)
{
    gates->cool_gate = (struct weir_gate){ .calls = cool_calls, .arg = gates };
    gates->pace_gate = (struct weir_gate){ .calls = pace_calls, .arg = gates };
}

void wr_gates_fini(struct wr_gates *gates)
{
    WR_ASSERT(!gates->first);
    wr_os_free(gates->pass);
}

static void take_back(struct weir_gate *first, const struct weir_gate *end, uint32_t count,
                      weir_time now)
{
    for (struct weir_gate *gate = first; count && gate != end; gate = gate->next)
        if (gate->calls.take_back)
            gate->calls.take_back(gate->arg, count, now);
}

bool wr_gates_return(struct wr_gates *gates, weir_time now)
{
    bool some = gates->granted > 0;

    take_back(gates->first, NULL, gates->granted, now);
    gates->granted = gates->share = 0;
    return some;
}

void wr_gates_join(struct wr_gates *gates, struct weir_gate *gate, bool first, weir_time now)
{
    struct weir_gate **at = &gates->first;

    wr_gates_return(gates, now);
    if (gate->among)
        return;
    while (*at && !first)
        at = &(*at)->next;
    gate->among = gates;
    gate->next = *at;
    *at = gate;
}

void wr_gates_leave(struct wr_gates *gates, struct weir_gate *gate, weir_time now)
{
    struct weir_gate **at = &gates->first;

    take_back(gate, gate->next, gates->granted, now);
    while (*at != gate)
        at = &(*at)->next;
    *at = gate->next;
    for (uint32_t i = gates->passes; i-- > 0;)
        if (gates->pass[i].gate == gate)
            gates->pass[i] = gates->pass[--gates->passes];
}

struct weir_gate *wr_gates_leave_all(struct wr_gates *gates)
{
    struct weir_gate **at = &gates->first, *first;

    while (*at)
        if (*at == &gates->cool_gate || *at == &gates->pace_gate)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    first = gates->first;
    gates->first = NULL;
    return first;
}

/* ---- asking -------------------------------------------------------------------------------------- */

bool wr_gates_judge(const struct wr_gates *gates)
{
    for (const struct weir_gate *gate = gates->first; gate; gate = gate->next)
        if (gate->calls.accept)
            return true;
    return false;
}

weir_reason wr_gates_accept(const struct wr_gates *gates, uint32_t cost, weir_time now)
{
    for (const struct weir_gate *gate = gates->first; gate; gate = gate->next) {
        weir_reason reason =
            gate->calls.accept ? gate->calls.accept(gate->arg, cost, now) : WEIR_REASON_NONE;
        if (reason)
            return reason;
    }
    return WEIR_REASON_NONE;
}

/* A group waits for one gate at a time: two groups, each of them in the line of a gate that the other one needs, would wait for ever. */
static void leave_lines(struct weir_gate *first, weir_time now)
{
    for (struct weir_gate *gate = first; gate; gate = gate->next)
        if (gate->calls.leave_line)
            gate->calls.leave_line(gate->arg, now);
}

/* How many of `count` starts all gates let through: the least of their answers. Starts that other gates have granted beyond that
 * go back. With count 0: 1 if all are open. */
static uint32_t ask_all(struct wr_gates *gates, uint32_t count, weir_time now)
{
    uint32_t granted = count;

    gates->refused = NULL;
    for (struct weir_gate *gate = gates->first; gate; gate = gate->next) {
        weir_time again = WEIR_FOREVER;
        uint32_t some = gate->calls.ask(gate->arg, granted, now, &again);
        if (!some) {
            take_back(gates->first, gate, granted, now);
            leave_lines(gate->next, now);
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

/* Whether one of the gates serves a turn with one start (went_on). */
static bool has_one_by_turn(const struct wr_gates *gates)
{
    for (const struct weir_gate *gate = gates->first; gate; gate = gate->next)
        if (gate->calls.went_on)
            return true;
    return false;
}

bool wr_gates_grant(struct wr_gates *gates, uint32_t queued, int64_t lasts_ns, weir_time now)
{
    uint32_t share = gates->share;

    if (gates->granted && now - gates->granted_at < lasts_ns)
        return true;
    /* A long body kept the granted starts from being used. A pace has earned a burst since, and they must not come on top. */
    if (wr_gates_return(gates, now))
        share = 0;
    gates->share = !share ? 1 : share < GRANT_MAX ? 2 * share : GRANT_MAX;
    share = queued < gates->share ? queued : gates->share;
    gates->granted = ask_all(gates, has_one_by_turn(gates) ? 1 : share, now);
    gates->granted_at = now;
    return gates->granted > 0;
}

void wr_gates_look(struct wr_gates *gates, weir_time now)
{
    if (!gates->granted)
        ask_all(gates, 0, now);
}

/* ---- passes -------------------------------------------------------------------------------------- */

/* Room for one more; without memory the gate hears of an end that has no word. */
static struct wr_pass *add_pass(struct wr_gates *gates)
{
    gates->room =
        (uint32_t)wr_array_grow(&gates->pass, gates->room, gates->passes, sizeof(gates->pass[0]));
    return gates->passes < gates->room ? &gates->pass[gates->passes++] : NULL;
}

void wr_gates_started(struct wr_gates *gates, weir_task *task, weir_time now)
{
    for (struct weir_gate *gate = gates->first; gate; gate = gate->next) {
        struct wr_pass *pass;
        uint64_t word;
        if (!gate->calls.started)
            continue;
        word = gate->calls.started(gate->arg, task, now);
        pass = add_pass(gates);
        if (pass)
            *pass = (struct wr_pass){ task, gate, word };
        else if (gate->calls.ended) /* else the gate would hold this start for ever */
            gate->calls.ended(gate->arg, word, WEIR_ENOMEM, 0, now);
    }
    WR_ASSERT(gates->granted > 0);
    gates->granted--;
    wr_gates_look(gates, now);
}

uint32_t wr_gates_follow(const struct wr_gates *gates)
{
    uint32_t most = WR_INF;

    for (const struct weir_gate *gate = gates->first; gate; gate = gate->next)
        if (!gate->calls.started)
            most = gates->granted;
        else if (!gate->calls.went_on)
            return 0;
    return most;
}

void wr_gates_went_on(struct wr_gates *gates, const weir_task *task, uint32_t count, weir_time now)
{
    for (uint32_t i = 0; i < gates->passes; i++) {
        const struct wr_pass *pass = &gates->pass[i];
        if (pass->task == task && pass->gate->calls.went_on)
            pass->gate->calls.went_on(pass->gate->arg, pass->word, count, now);
    }
    if (!gates->granted && !gates->refused)
        return; /* nothing was let through for them, so what the gates answered last still holds */
    gates->granted -= gates->granted < count ? gates->granted : count;
    wr_gates_look(gates, now);
}

void wr_gates_ended(struct wr_gates *gates, const weir_task *task, int error, weir_time started_at,
                    weir_time now)
{
    int64_t ran = now > started_at ? now - started_at : 0;

    for (uint32_t i = gates->passes; i-- > 0;) {
        struct wr_pass pass = gates->pass[i];
        if (pass.task != task)
            continue;
        gates->pass[i] = gates->pass[--gates->passes];
        if (pass.gate->calls.ended)
            pass.gate->calls.ended(pass.gate->arg, pass.word, error, ran, now);
    }
}

bool wr_gates_wait_for_pace(const struct wr_gates *gates)
{
    return gates->refused == &gates->pace_gate && !gates->pace_gate.next &&
           (gates->first == &gates->pace_gate || gates->first == &gates->cool_gate) &&
           gates->pace_next != WEIR_FOREVER;
}

/* ---- state --------------------------------------------------------------------------------------- */

const char *wr_gates_describe(const struct wr_gates *gates, weir_gate_state *state, weir_time now)
{
    const struct weir_gate *gate = gates->refused;
    weir_time earliest = gates->again == WEIR_FOREVER ? 0 : gates->again;

    *state = (weir_gate_state){ .size = sizeof(*state),
                                .reason = WEIR_REASON_GATED,
                                .earliest = earliest };
    if (gate->calls.describe)
        gate->calls.describe(gate->arg, state, now);
    return gate->calls.name ? gate->calls.name : "";
}

/* When the gate opens by itself; `now` or earlier: it is open; FOREVER: not known. A gate that keeps lines is not asked, since
 * only a group that wants to start may be moved in a line. */
static weir_time opens_at(const struct weir_gate *gate, weir_time now)
{
    weir_gate_state state = { .size = sizeof(state) };
    weir_time again = WEIR_FOREVER;

    if (!gate->calls.leave_line || !gate->calls.describe)
        return gate->calls.ask(gate->arg, 0, now, &again) ? now : again;
    gate->calls.describe(gate->arg, &state, now);
    return state.earliest ? state.earliest : WEIR_FOREVER;
}

weir_time wr_gates_open_at(const struct wr_gates *gates, weir_time now)
{
    weir_time latest = now;

    if (!gates->refused)
        return 0;
    for (const struct weir_gate *gate = gates->first; gate; gate = gate->next) {
        weir_time at = opens_at(gate, now);
        latest = at > latest ? at : latest;
    }
    return latest == now || latest == WEIR_FOREVER ? 0 : latest;
}

bool wr_gates_are_at_rest(const struct wr_gates *gates, weir_time now)
{
    for (const struct weir_gate *gate = gates->first; gate; gate = gate->next)
        if (gate->calls.at_rest && !gate->calls.at_rest(gate->arg, now))
            return false;
    return true;
}

static bool has_gate(const struct wr_gates *gates, const struct weir_gate *wanted)
{
    const struct weir_gate *gate = gates->first;

    while (gate && gate != wanted)
        gate = gate->next;
    return gate != NULL;
}

bool wr_gates_are_valid(const struct wr_gates *gates)
{
    for (uint32_t i = 0; i < gates->passes; i++)
        if (!has_gate(gates, gates->pass[i].gate) || !gates->pass[i].gate->calls.started)
            return false;
    return gates->passes <= gates->room &&
           (!gates->refused || (has_gate(gates, gates->refused) && !gates->granted));
}
