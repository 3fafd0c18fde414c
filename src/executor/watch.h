/* Deadlines of tasks: armed, moved on and disarmed as the task goes its way. Only tasks that have one pay.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_WATCH_H
#define WR_EXECUTOR_WATCH_H

#include "limits/deadline.h"
#include "runtime/runtime.h"

#include <weir/task.h>

struct weir_executor;
struct weir_group;
struct weir_task;

/* Where the body of a task runs, or will. */
enum wr_carried { WR_BY_WORKER, WR_TO_THREAD, WR_BY_THREAD };

/* In the allocation of the task's side record; under the group's lock, except the alarm's timer and the job. It holds a
 * reference of the task until that is over. If the alarm just goes off then (`parting`) it has what a telling has: the
 * reference, a hold of the argument, and a count in group->telling, and gives all of them back. */
struct wr_watch {
    struct wr_alarm alarm;
    struct wr_job job; /* tells of the end on another thread: users' code must not keep the clock */
    struct weir_task *task;
    weir_deadlines deadlines; /* of its own; once resolved, those that apply; 0: none */
    struct wr_deadline next;  /* what it is armed for */
    uint8_t alarms;           /* one while it is armed, one while it goes off */
    enum wr_carried carried;
    bool resolved;
    bool won;   /* it has settled the task, and tells of it */
    bool late;  /* its body runs on beyond it */
    bool freed; /* its permits are back */
    bool lost;  /* and so is its thread */
    bool parting;
};

/* Ends for whose telling no thread can be had, so that a worker tells them: each is one of the executor's chores. */
struct wr_untold {
    struct wr_lock lock;
    struct wr_list jobs;
};

/* Takes the next of these, as the task that has ended; NULL: there is none. To be followed, where users' code may run, by
 * wr_watch_tell. */
struct weir_task *wr_watch_untold(struct weir_executor *ex);

/* Tells of the task's end, or gives back what its alarm held. Without any lock. */
void wr_watch_tell(struct weir_task *task);

void wr_watch_init(struct wr_watch *watch, struct weir_task *task, const weir_deadlines *own);

/* ---- under the group's lock; without a side record a task has no watch --------------------------- */

/* The task waits, or runs, since `from`: WEIR_REASON_WAIT_DEADLINE or RUN_DEADLINE is next, if not the total one. */
void wr_watch_arm(struct weir_task *task, weir_time from, weir_reason reason);

/* The place where its body runs, or will, has changed. */
void wr_watch_carried(struct weir_task *task, enum wr_carried carried);

/* The task is over, and its body has returned if it has begun. True: its permits are back already. */
bool wr_watch_over(struct weir_task *task);

/* Whether it has a deadline yet to come. */
bool wr_watch_is_armed(const struct weir_task *task);

#endif
