/* Gates of a group: how they are asked, and what they let through; see weir/sys/gate.h. Cool-down and pace are two of them
 * (pace.c).
 *
 * Gates are asked per turn, at first for one start, and for twice as many each time: a long body keeps nothing from others.
 * What they grant and is not spent when the turn is over, or after a long body, goes back. A group that a gate refuses
 * leaves the ring (WR_GATED); the gate's time, or weir_gate_open, has the clock's thread look again.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_GATE_H
#define WR_EXECUTOR_GATE_H

#include "policy/policy.h"
#include "runtime/runtime.h"

#include <weir/sys/gate.h>

struct weir_group;
struct weir_task;
struct wr_beat;

struct weir_gate {
    struct weir_gate *next; /* asked after this one */
    struct weir_group *group;
    weir_gate_calls calls; /* a copy: the user's struct may be an older one */
    void *arg;
};

/* A task that a gate keeps a word of. */
struct wr_pass {
    struct weir_task *task;
    struct weir_gate *gate;
    uint64_t word;
};

/* Of those groups only that have gates; under the group's lock, except the alarm, which is the clock's.
 *     granted  == starts that every gate has let through and that have not happened
 *     refused  =>  granted == 0; it has answered that none can start, and is asked again at `again`
 *     passes   == (task, gate) that have started and not ended, of gates that keep words             */
struct wr_gates {
    struct weir_group *group;
    struct weir_gate *first;
    uint32_t granted;
    weir_time granted_at;
    uint32_t share; /* how many are asked for next: more, the longer the turn lasts            */
    bool by_turn;   /* one of them serves a turn with one start (went_on)                       */
    struct weir_gate *refused; /* NULL: none of them keeps the group */
    weir_time again;
    struct wr_alarm alarm;
    weir_time armed_for; /* 0: it is not armed */
    struct wr_pass *pass;
    uint32_t passes, room;

    /* The group's own, in the list while they are in force. */
    struct weir_gate cool_gate, pace_gate;
    weir_time cool_until;
    struct wr_pace pace;
    weir_time pace_next;  /* see limits/pace.h                                                  */
    struct wr_beat *beat; /* NULL: it had none yet; see beat.h                                  */
};

/* ---- under the group's lock ---------------------------------------------------------------------- */

/* Whether the next task may start: it is granted, or the gates are asked for the rest of a turn. */
bool wr_gates_grant(struct weir_group *group, weir_time now);

/* How many tasks may follow one that has started, in the same turn, without asking; and: so many have. */
uint32_t wr_gates_follow(const struct weir_group *group);
void wr_gates_went_on(struct weir_group *group, const struct weir_task *task, uint32_t count,
                      weir_time now);

/* It starts; and: the turn is over. */
void wr_gates_started(struct weir_group *group, struct weir_task *task, weir_time now);
void wr_gates_turn_over(struct weir_group *group, weir_time now);

/* A task that has started is over. */
void wr_gates_ended(struct weir_group *group, struct weir_task *task, int error, weir_time now);

/* Whether a task of that cost is let in. */
weir_reason wr_gates_accept(struct weir_group *group, uint32_t cost, weir_time now);

/* Looks at the gates, after one has changed. */
void wr_gates_look(struct weir_group *group, weir_time now);

/* No alarm opens a gate from now on: somebody else looks when it is time. */
void wr_gates_disarm(struct weir_group *group);

/* What `refused` says of itself; and when the last of its gates opens by itself, 0: not known. */
const char *wr_gates_describe(struct weir_group *group, weir_gate_state *state);
weir_time wr_gates_open_at(struct weir_group *group);

/* Whether the group may be forgotten, as far as its gates are concerned, and is not paused. */
bool wr_gates_are_at_rest(const struct weir_group *group, weir_time now);

/* Made if need be; NULL without memory. */
struct wr_gates *wr_gates_of(struct weir_group *group);

/* A gate is asked from now on, before others (`first`) or after them; if it is not in the list already. */
void wr_gate_join(struct wr_gates *gates, struct weir_gate *gate, bool first);

/* Gives a group that nobody has started anything in its pace. WEIR_ENOMEM. The clock runs. */
int wr_pace_begin(struct weir_group *group, const struct wr_pace *pace);

/* ---- without it ------------------------------------------------------------------------------------ */

/* The group goes. */
void wr_gates_free(struct weir_group *group);

/* A pinned group (NULL: it could not be had), with gates and a clock that runs, and locked; or an error, and it is not pinned
 * any more. And: looks at the gates, unlocks, and unpins. */
int wr_gates_lock(struct weir_group *group);
void wr_gates_unlock(struct weir_group *group);

#endif
