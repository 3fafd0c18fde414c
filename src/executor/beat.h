/* A beat: the hand (hand.h) by which the next tasks of a paced group start one by one, each at its time.
 *
 * A group whose pace allows no start for now, and whose first tasks are entries (queue.h), is given a beat: a hand, and a
 * place in a wheel of the ring's, by the time of the next start. Whoever takes from the ring brings groups whose time has
 * come to its end; the clock's thread does if all workers sleep. The worker whose turn it is steps the beat under the
 * ring's lock: the task begins, the group goes back into the wheel until the next one's time, and when the body has
 * returned, one more change of the hand's word says so. So a paced start passes two locks: the group's when it is
 * submitted, and the ring's.
 *
 * A beat holds nothing while no task runs by it. Only groups that are simple have one: no domains, no counted limits, no
 * threads, nothing but the pace in the way.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_BEAT_H
#define WR_EXECUTOR_BEAT_H

#include "executor/hand.h"
#include "limits/line.h"
#include "runtime/runtime.h"

struct wr_slice;

/* In stand.needs, under the ring's lock: it starts by a beat. */
#define WR_HAS_BEAT WR_OWNERS

enum { WR_BEAT_MAX = 16 };

/* Written under the group's lock while it is not out; then by steps, under the ring's lock. A beat that is folded while a
 * task runs by it belongs to the worker that runs it, which may be about to say that it is over; the group gets another.
 *     it is out  =>  it stands in the wheel, or its group in the ring; or a worker has just taken the group, and will look */
struct wr_beat {
    struct wr_timer timer; /* under the ring's lock        */
    weir_time next;        /* as gates.pace_next; likewise */
    int64_t ran_ns[2]; /* of the first n tasks, in the place n % 2: who ends one writes the other */
    struct wr_hand hand; /* allocated as far as its first WR_BEAT_MAX entries */
};

/* Of a ring: beats by the time of their next start. Under its lock, but for `first`. */
struct wr_beats {
    struct wr_wheel wheel;
    _Atomic weir_time first; /* no later than the first of them; also read without the lock */
    struct wr_alarm alarm;   /* set for no later than that                                   */
    weir_time alarm_at;
    struct weir_executor *executor;
};

/* Gives a group whose turn is over a beat, on the worker's record. False: it is not such a group. Under its lock; no
 * hand is out. */
bool wr_beat_give(struct weir_group *group, struct wr_slice *slice);

/* What a fold does besides: out of the wheel, and the last task has its permits if it runs on. Under the group's lock. */
void wr_beat_fold(struct wr_beat *beat, uint32_t began, bool runs);

/* Groups whose time has come enter the ring, as the last. Without any lock. */
void wr_beats_bring(struct wr_beats *beats);

/* If the group has a beat, its next task begins, as the only one of the slice (struct wr_slice); or it cannot by the beat, which may
 * have been folded, and it is taken like any other. Always true: as wr_line_pull calls it, under the ring's lock. */
bool wr_beat_grant(struct wr_stand *stand, void *slice);

/* The task that began as the `step`th is over, without an error. False: somebody has folded the beat, or it was the last:
 * the task ends like any other, which folds it; then the caller frees the beat. Without any lock. */
bool wr_beat_over(struct wr_beat *beat, uint32_t step, weir_time now);

#endif
