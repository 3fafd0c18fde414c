/* Binds gates (limits/gates.h) to a group: its lock, an alarm, and where the group stands.
 *
 * A group that a gate refuses leaves the ring (WR_GATED); the gate's time, or weir_gate_open, has the clock's thread look
 * again.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_GATE_H
#define WR_EXECUTOR_GATE_H

#include "limits/gates.h"
#include "runtime/runtime.h"

struct weir_group;
struct wr_beat;

/* Only groups with gates have one. Under the group's lock, except the alarm, which is the clock's. */
struct wr_group_gates {
    struct wr_gates gates;
    struct weir_group *group;
    struct wr_alarm alarm;
    weir_time armed_for;  /* 0: it is not armed                 */
    struct wr_beat *beat; /* NULL: it had none yet; see beat.h  */
};

/* ---- under the lock of a group that has gates: as in limits/gates.h, and the group's sums follow --- */

bool wr_group_gates_grant(struct weir_group *group, weir_time now);
void wr_group_gates_turn_over(struct weir_group *group, weir_time now);
void wr_group_gates_started(struct weir_group *group, struct weir_task *task, weir_time now);
void wr_group_gates_went_on(struct weir_group *group, const struct weir_task *task, uint32_t count,
                            weir_time now);
void wr_group_gates_look(struct weir_group *group, weir_time now);

/* No alarm opens a gate from now on: the group's beat looks when it is time. */
void wr_group_gates_disarm(struct weir_group *group);

/* ---- under its lock, with gates or without ---------------------------------------------------------- */

/* When the last of its gates opens by itself; 0: that is not known, or no gate is closed. */
weir_time wr_group_gates_open_at(const struct weir_group *group);

/* Made if need be; NULL without memory. */
struct wr_gates *wr_group_make_gates(struct weir_group *group);

/* ---- without it ------------------------------------------------------------------------------------ */

/* Frees the gates of a group that goes. */
void wr_group_free_gates(struct weir_group *group);

/* Locks a pinned group, makes its gates if need be, and starts the clock. An error: the group is neither locked nor pinned any
 * more. NULL: there is no group; WEIR_ECLOSED. */
int wr_group_lock_gates(struct weir_group *group);

/* Looks at the gates, unlocks the group, and unpins it. */
void wr_group_unlock_gates(struct weir_group *group);

#endif
