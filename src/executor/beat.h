/* A beat: the hand (hand.h) by which the next tasks of a paced group start one by one, each at its time.
 *
 * A group whose pace allows no start for now, and whose first tasks are entries (queue.h), is given a beat: a hand, and a
 * place in a wheel of the ring's, by the time of the next start. A worker that takes from the ring first moves groups whose
 * time has come to the ring's end; if all workers sleep, the clock's thread does. The worker that then takes the group steps
 * the beat under the ring's lock: the task begins, and the group goes back into the wheel until the next task's time. When
 * the body has returned, the worker changes the hand's word once more to say so. So a paced start passes two locks: the
 * group's when the task is submitted, and the ring's.
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

/* In stand.needs, under the ring's lock: the group's next task starts by a beat. */
#define WR_HAS_BEAT WR_OWNERS

enum { WR_BEAT_MAX = 16 };

/* Written under the group's lock while the beat is not out, and by steps, under the ring's lock, while it is. If it is folded
 * while a task runs by it, it belongs to the worker that runs the task, which may be about to call wr_beat_over; the group
 * gets another beat.
 *     it is out  =>  it stands in the wheel, or its group in the ring; or a worker has just taken the group, and will look */
struct wr_beat {
    struct wr_timer timer; /* under the ring's lock        */
    weir_time next;        /* as gates.pace_next; likewise */
    /* How long the first n tasks ran, at n % 2: the worker that ends the n-th writes it, from the other place. */
    int64_t ran_ns[2];
    struct wr_hand hand; /* allocated as far as its first WR_BEAT_MAX entries */
};

/* The beats of a ring, by the time of their next start. Under the ring's lock, except `first`. */
struct wr_beats {
    struct wr_wheel wheel;
    _Atomic weir_time first; /* no later than the first of them; also read without the lock */
    struct wr_alarm alarm;   /* set for no later than `first`                                */
    weir_time alarm_at;
    struct weir_executor *executor;
};

/* Gives a group whose turn is over a beat, on the slice's record. False: the group is not of the kind that has one, or there is
 * no memory. Under the group's lock; no hand is out. */
bool wr_beat_give(struct weir_group *group, struct wr_slice *slice);

/* The beat's part of a fold: leaves the wheel, and counts the permits of the last task if that still `runs`. Under the group's
 * lock. */
void wr_beat_fold(struct wr_beat *beat, uint32_t began, bool runs);

/* Moves groups whose time has come to the end of the ring. Call it without any lock. */
void wr_beats_bring(struct wr_beats *beats);

/* If the group has a beat, its next task begins by it, as the only one of the slice (struct wr_slice). If it cannot, because the
 * beat was folded for example, the group is taken like any other. Always true. wr_line_pull calls it, under the ring's lock. */
bool wr_beat_grant(struct wr_stand *stand, void *slice);

/* The task that began as the `step`th is over, without an error. False: another thread has folded the beat, or this was its last
 * task: then the task ends like any other, which folds the beat, and the caller frees the beat. Call it without any lock. */
bool wr_beat_over(struct wr_beat *beat, uint32_t step, weir_time now);

#endif
