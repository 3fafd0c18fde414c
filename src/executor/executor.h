/* The executor's door: all that other rooms may use of this one. It works on opaque records. The files of this room include
 * state.h, and the headers of the records that they touch.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_EXECUTOR_H
#define WR_EXECUTOR_EXECUTOR_H

#include "runtime/runtime.h"

#include <weir/executor.h>
#include <weir/group.h>
#include <weir/task.h>

/* ---- wholes ---------------------------------------------------------------------------------------- */

/* A task that is a whole of parts: it has no body and holds nothing, and goes on until it is settled from inside, or ended
 * from outside like any pending task. Whatever decides its end, the parts are ended before that is published. All
 * functions but one are called without any lock. */
struct wr_whole {
    /* Its end is decided, once. The thread that finds that no part is left calls wr_whole_over, now or later. */
    void (*ended)(struct wr_whole *whole, struct weir_task *task, weir_outcome outcome,
                  weir_reason reason);
    /* Whether the task is one of the parts, so that it must not wait for the whole. */
    bool (*inside)(struct wr_whole *whole, const struct weir_task *task);
    /* If there is but one part that can go on, calls look(part, arg); see deadlock.c. Under the lock of all waits: no other
     * lock of the executor's is held, and groups' locks may be taken. */
    void (*look_at_sole_part)(struct wr_whole *whole,
                              void (*look)(struct weir_task *part, void *arg), void *arg);
    /* The last reference to the task is gone. */
    void (*gone)(struct wr_whole *whole);
};

/* Submits a whole. Options as of weir_submit, but for cost, priority and those of
 * arguments and values. Errors as weir_submit. */
int wr_submit_whole(weir_task **out, struct weir_group *group, struct wr_whole *whole,
                    const weir_task_options *opt);

/* As weir_submit, or with a key weir_submit_key. Call it from the on_done of a task, as the last thing that on_done does: if that
 * runs on a worker whose body has returned, no other worker is woken, since this one is about to look. */
int wr_submit_last(weir_task **out, struct weir_group *group, const char *key, weir_fn *fn,
                   void *arg, const weir_task_options *opt);

/* The whole that a task is; NULL: the task has a body. */
struct wr_whole *wr_task_whole(const struct weir_task *task);

/* All parts have ended: settles the whole, as weir_task_settle. A cancellation has that reason, unless the executor or
 * the domain has asked for it. */
int wr_whole_settle(struct weir_task *task, int error, weir_reason reason);

/* The whole's end is decided, and no part is left: its end may be told. */
void wr_whole_over(struct weir_task *task);

/* Ends the whole from outside, as if a deadline of its own had passed: it is part of another whole, whose deadline has. */
void wr_whole_time_out(struct weir_task *task, weir_reason reason);

/* ---- ends ------------------------------------------------------------------------------------------ */

/* Waits until the end of a decided task is published and (`body`) its body has returned, even if the caller is asked to end. */
void wr_task_wait_over(struct weir_task *task, bool body);

/* The value becomes the caller's; NULL: it has another owner. The task is decided, and its body has returned. */
void *wr_task_take_value(struct weir_task *task);

/* ---- questions -------------------------------------------------------------------------------------- */

weir_executor *wr_group_executor(const struct weir_group *group);

/* Whether it takes no submissions any more. */
bool wr_executor_is_closed(const weir_executor *ex);

/* Whether a worker has anything else to do than `own` of the group's waiting tasks: a look, which may be out of date by the
 * time it is answered. */
bool wr_group_has_rivals(struct weir_group *group, uint32_t own);

/* Deadlines for a task of the group that is to have none, or (total_ms is not 0) only that for all of its life. The policy's
 * `deadlines_max` still bounds them. */
weir_deadlines wr_group_no_deadlines(const struct weir_group *group, int64_t total_ms);

/* Why the body of a task was asked to end, by the executor or by a cancel; WEIR_REASON_GAVE_UP: it was not asked. Only before it
 * has returned. */
weir_reason wr_task_asked_by(struct weir_task *task);

/* The task whose end the calling stack is telling of; NULL: of none. */
struct weir_task *wr_telling_task(void);

#endif
