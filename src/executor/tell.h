/* Telling: the listener and callbacks hear of ends, and unwanted values and arguments are dropped, from a queue for each
 * stack, never nested. While a stack is inside of a telling, what happens there joins the queue: it is published at
 * once, so that waits end, and told when the present callback has returned. So a chain of callbacks of which each
 * ends the next task is as deep as one.
 *
 * Told of a task, in this order:
 *     the listener (completed or rejected), waiters, callbacks, oldest first; then drop_arg, if the body is over
 * of one that ended inside of a telling:
 *     waiters, and later: the listener, callbacks, drop_arg
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_TELL_H
#define WR_EXECUTOR_TELL_H

#include "executor/task.h"
#include "runtime/runtime.h"

/* On the stack of the thread that tells; frame->notes of the innermost frame leads to the telling that has the queues. Inside of
 * that, another telling has nothing in use. */
struct wr_telling {
    struct wr_frame frame;
    struct wr_fifo ended;   /* decided tasks; and those without references, to be deleted       */
    struct wr_fifo late;    /* callbacks of tasks that were told of before                      */
    struct weir_task *task; /* the task being told of; NULL: none, or it was told of before     */
};

/* Ends that are told in between wait until the telling is closed; if the stack was inside of another before, until that is. */
void wr_telling_open(struct wr_telling *telling);
void wr_telling_close(struct wr_telling *telling);

/* Tells of a decided task; wr_task_end_locked has left a reference for that. Deletes one that has no reference left. */
void wr_tell(struct weir_task *task);

/* The same under the group's lock, inside of a telling. */
void wr_tell_locked(struct weir_task *task);

/* Makes a decided task known to its waiters, which are woken, and answers the callbacks, oldest first, to be called without the
 * lock. From here on none joins. Under the lock. */
struct wr_watcher *wr_task_close_watchers(struct weir_task *task);

/* A task's telling is over, or its body, if it was decided before, or its alarm; the last of these drops the argument. Gives back
 * the reference, and its count in group->telling. */
void wr_task_told(struct weir_task *task);

/* Makes a callback; NULL without memory. */
struct wr_watcher *wr_watcher_new(void (*done)(weir_task *, const weir_result *, void *),
                                  void *arg);

/* The callback joins the watchers, or is called, now or after the present callback. Without the lock. */
void wr_watcher_attach(struct wr_watcher *watcher, struct weir_task *task);

/* The watcher joins the task's, unless (false) the task has been told of. Without the lock. */
bool wr_watcher_join(struct wr_watcher *watcher, struct weir_task *task);

/* The same with a task that has not settled, under the lock. */
void wr_watcher_add(struct wr_watcher *watcher, struct weir_task *task);

#endif
