/* Waits of tasks: for tasks, and for room to submit; and whether one of them can never end.
 *
 * All waits of the process stand under one lock, so that circles over several executors are found, too. It is taken when
 * a task begins and ends to wait, never for a task that does not. Lock order: this one, then the table's, a group's, and
 * what comes after that. docs/internals/waits.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_DEADLOCK_H
#define WR_EXECUTOR_DEADLOCK_H

#include "base/assert.h"
#include "base/lock.h"
#include "executor/task.h"
#include "limits/circle.h"

#include <weir/executor.h>

extern struct wr_lock wr_waits_lock;

/* An executor's part in it. */
struct wr_nested_waits {
    struct wr_node node;     /* its permits: all waits of or for its tasks hold some, or none */
    struct wr_node threads;  /* threads, of threads_max */
    _Atomic uint32_t count;  /* waits of or for its tasks; also read without the lock */
    _Atomic uint64_t parked; /* permits that its waiting tasks keep; likewise */
    _Atomic bool suspect;    /* a worker is to look for circles: one of the executor's chores */
};

/* One wait; lives on the waiter's stack. It is for any one of `count` tasks, or for room in a group. The caller fills in the
 * first part, and wait.outlook with an entry for each task, if there are several. */
struct wr_nested_wait {
    struct weir_task *const *awaited;
    size_t count;
    struct weir_group *room; /* what WEIR_BLOCK waits for, with a task of that cost             */
    uint32_t cost;
    bool bounded;          /* it has a deadline                                                  */
    weir_message *message; /* where a circle is put in words; may be NULL                        */

    struct wr_wait wait;
    struct wr_outlook outlook;
    struct weir_task *waiter;     /* the outermost of the stack, whose permits are kept         */
    const struct wr_frame *frame; /* leads to guests on the same stack, which wait along */
    struct wr_parker *parker;
    weir_reason reason; /* why there was no room                                               */
    uint32_t executors; /* index of the first executor in wait.hold                            */
};

static inline struct wr_nested_wait *wr_nested_wait_of(struct wr_wait *wait)
{
    return WR_CONTAINER(wait, struct wr_nested_wait, wait);
}

/* Begins the wait, unless it has begun, and looks whether it can end: 0, or WEIR_EDEADLK, with the circle in words. `reason` says
 * whose queue is full. Later events may set wait.refused, and unpark the waiter. Does nothing outside of tasks, where nothing is
 * held. */
int wr_nested_wait_look(struct wr_nested_wait *wait, weir_reason reason);

/* Ends the wait. To be called in either case after a look. */
void wr_nested_wait_leave(struct wr_nested_wait *wait);

/* Call it when something has become scarcer, or a task that needs more is first: a worker will look whether that closes a circle.
 * Under any lock, or none. */
void wr_waits_suspect(struct weir_executor *ex);

/* Looks for circles now. Without any lock. */
void wr_waits_look_again(struct weir_executor *ex);

/* Fills in the outlooks of a wait: the task it is for needs permits, a thread or a slot, or waits itself. Under the lock of
 * all waits; takes the locks of tables and groups. */
wr_look_fn wr_outlook_fill;

#endif
