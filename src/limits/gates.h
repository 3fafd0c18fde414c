/* Gates of a group: which starts all of them let through together; see weir/sys/gate.h. Pure: the caller has the clock and the
 * lock.
 *
 * Gates are asked per turn, at first for one start, and for twice as many each time: a long body keeps nothing from others.
 * Granted starts that are not spent when the turn is over, or after a long body, go back. Cool-down and pace are gates like
 * any other, which a group has of its own.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_GATES_H
#define WR_LIMITS_GATES_H

#include "limits/pace.h"

#include <weir/sys/gate.h>

struct weir_gate {
    struct weir_gate *next; /* asked after this one                                        */
    struct wr_gates *among; /* NULL: in no list yet. Stays when it leaves: it may be opened yet */
    weir_gate_calls calls;  /* a copy: the user's struct may be an older one               */
    void *arg;
};

/* A task that a gate keeps a word of. */
struct wr_pass {
    weir_task *task;
    struct weir_gate *gate;
    uint64_t word;
};

/* After every step (wr_gates_are_valid; but `granted` is known to the gates alone):
 *     granted  == starts that every gate has let through and that have not happened
 *     refused  =>  it is one of them, and granted == 0; it has answered that none can start, and is asked again at `again`
 *     passes   == (task, gate) that have started and not ended, of gates of the list that keep words  */
struct wr_gates {
    struct weir_gate *first;
    uint32_t granted;
    weir_time granted_at;
    uint32_t share;            /* how many were asked for: more, the longer the turn lasts */
    struct weir_gate *refused; /* NULL: none of them keeps the group */
    weir_time again;
    struct wr_pass *pass;
    uint32_t passes, room;

    /* The group's own gates, asked once they were set. */
    struct weir_gate cool_gate, pace_gate;
    weir_time cool_until;
    struct wr_pace pace;
    weir_time pace_next; /* see limits/pace.h */
};

/* Prepares gates of zeros. */
void wr_gates_init(struct wr_gates *gates);

/* All gates have left. */
void wr_gates_fini(struct wr_gates *gates);

/* Adds a gate, unless it is in a list: it is asked from now on, before others (`first`) or after them. Granted starts go back. */
void wr_gates_join(struct wr_gates *gates, struct weir_gate *gate, bool first, weir_time now);

/* The gate is asked no more, and hears of no more ends. */
void wr_gates_leave(struct wr_gates *gates, struct weir_gate *gate, weir_time now);

/* All gates leave, for good. Answers the first of those that are not the group's own; the others follow by `next`. */
struct weir_gate *wr_gates_leave_all(struct wr_gates *gates);

/* Nothing starts before `until`. wr_gates_look must follow. */
void wr_gates_cool_down(struct wr_gates *gates, weir_time until, weir_time now);

/* Sets another pace. wr_gates_look must follow. */
void wr_gates_set_pace(struct wr_gates *gates, const struct wr_pace *pace, weir_time now);

/* Whether one of the gates decides about tasks that are submitted. */
bool wr_gates_judge(const struct wr_gates *gates);

/* Why a gate refuses a task of that cost; NONE: all gates accept it. */
weir_reason wr_gates_accept(const struct wr_gates *gates, uint32_t cost, weir_time now);

/* Whether the next of `queued` tasks may start: it was granted less than `lasts_ns` ago, or the gates, asked again, grant it. */
bool wr_gates_grant(struct wr_gates *gates, uint32_t queued, int64_t lasts_ns, weir_time now);

/* The turn is over: granted starts go back to the gates. True: there were some. */
bool wr_gates_return(struct wr_gates *gates, weir_time now);

/* Asks the gates whether a task could start, unless a start is granted. */
void wr_gates_look(struct wr_gates *gates, weir_time now);

/* A task that was granted starts. */
void wr_gates_started(struct wr_gates *gates, weir_task *task, weir_time now);

/* How many tasks may follow one that has started, in the same turn, without asking the gates. */
uint32_t wr_gates_follow(const struct wr_gates *gates);

/* So many tasks have followed `task`. */
void wr_gates_went_on(struct wr_gates *gates, const weir_task *task, uint32_t count, weir_time now);

/* A task that has started is over. */
void wr_gates_ended(struct wr_gates *gates, const weir_task *task, int error, weir_time started_at,
                    weir_time now);

/* Whether the pace alone keeps the group, until a time, and no gate but the group's own is asked. */
bool wr_gates_wait_for_pace(const struct wr_gates *gates);

/* Fills in what the gate `refused` says of itself. Answers its name. */
const char *wr_gates_describe(const struct wr_gates *gates, weir_gate_state *state, weir_time now);

/* When the last of the gates opens by itself; 0: all are open, or that is not known. */
weir_time wr_gates_open_at(const struct wr_gates *gates, weir_time now);

/* Whether the equations above hold. */
bool wr_gates_are_valid(const struct wr_gates *gates);

/* Whether the gates would behave the same if they were made anew. */
bool wr_gates_are_at_rest(const struct wr_gates *gates, weir_time now);

#endif
