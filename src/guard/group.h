/* A guard before a group, inside: its gate, what it has to tell, what it holds.
 *
 *     group.c        the gate's calls
 *     group_tell.c   user code: `judge`, `drain_on` and events, on the teller's thread
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_GROUP_H
#define WR_GUARD_GROUP_H

#include "base/spin.h"
#include "guard/guard.h"
#include "guard/teller.h"

#include <weir/sys/gate.h>

/* A note for the teller: a task started, ended or was refused, or the breaker changed. */
struct wr_note {
    enum { WR_NOTE_STARTED = 1, WR_NOTE_ENDED, WR_NOTE_REFUSED, WR_NOTE_NEWS } type;
    int error;
    bool judged, silent; /* ended: its verdict is counted already                               */
    weir_call_result verdict;
    uint64_t word;
    int64_t ns;
    weir_time now;
    struct wr_news news;
};

/* Under the group's lock; `place` also under the cell's; other threads read `held` and `followed`; notes under their lock.
 *     permit, taken: what the latest ask took; tasks may not have started with all of it yet  */
struct wr_group_guard {
    weir_place place; /* first */
    weir_gate *gate;
    struct weir_guard *guard;
    weir_gate_calls calls;
    bool in_line, watches;
    int flags;
    weir_permit permit; /* what the latest ask took, as a permit remembers it                     */
    int64_t taken;      /* how many permits that ask took                                         */

    /* Permits of the cell that the group's tasks have */
    _Atomic int64_t held;
    /* Tasks that ran on the permit of another one, which they followed */
    _Atomic uint64_t followed;
    const char *key;
    /* The latest ask was refused; written under the cell's lock, so a thread that has changed the cell since then sees it */
    _Atomic bool refused;
    /* The next group that the guard stands before */
    struct wr_group_guard *next;

    /* The guard has user functions that are called for tasks */
    bool tells;
    struct wr_teller_job job;
    struct wr_spin notes_lock;
    struct wr_note *note;
    uint32_t notes, room;
    /* Ended tasks whose verdict is to come: no task starts before that */
    _Atomic uint32_t unjudged;
    bool gone; /* there is no gate to open any more                                */
};

int wr_group_tell_init(struct wr_group_guard *g);

/* Without any lock: tells what is left, on this thread. */
void wr_group_tell_fini(struct wr_group_guard *g);

/* Under the group's lock. False: there is no memory, and the note is lost. */
bool wr_group_note(struct wr_group_guard *g, const struct wr_note *note);

#endif
