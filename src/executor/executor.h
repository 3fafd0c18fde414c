/* The executor's door: what other rooms may use of this one. Everything in here works on opaque records; who is inside of the
 * room includes the header of what it touches, and state.h.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_EXECUTOR_H
#define WR_EXECUTOR_EXECUTOR_H

#include "runtime/runtime.h"

#include <weir/executor.h>
#include <weir/group.h>
#include <weir/task.h>

/* ---- wholes ---------------------------------------------------------------------------------------- */

/* A task that is a whole of parts: it has no body and holds nothing, and goes on until it is settled from inside, or ended
 * from outside like any pending task. Whatever decides its end, the parts are ended before that is published. Calls come
 * without any lock, but for one. */
struct wr_whole {
    /* Its end is decided, once. Whoever finds that no part is left calls wr_whole_over, now or later. */
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

/* Makes one. Options as of weir_submit, but for cost, priority and those of
 * arguments and values. Errors as weir_submit. */
int wr_submit_whole(weir_task **out, struct weir_group *group, struct wr_whole *whole,
                    const weir_task_options *opt);

/* As weir_submit, or with a key weir_submit_key, from the on_done of a task, as the last thing that it does: if that is called
 * on a worker when its body has returned, no other worker is woken, since this one is about to look. */
int wr_submit_last(weir_task **out, struct weir_group *group, const char *key, weir_fn *fn,
                   void *arg, const weir_task_options *opt);

/* What a task is the whole of; NULL: it has a body. */
struct wr_whole *wr_task_whole(const struct weir_task *task);

/* All parts have ended: settles the whole, as weir_task_settle; if that is a cancellation, for that reason, unless
 * the executor or the domain has asked for it. And: it is decided, and no part is left, so it may be told of. */
int wr_whole_settle(struct weir_task *task, int error, weir_reason reason);
void wr_whole_over(struct weir_task *task);

/* Ends the whole from outside, as if a deadline of its own had passed: that of another whole has, whose part it is. */
void wr_whole_time_out(struct weir_task *task, weir_reason reason);

/* ---- ends ------------------------------------------------------------------------------------------ */

/* Waits for a task that is decided to be published, and (`body`) for its body to have returned, whatever happens to the caller. */
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

/* Deadlines of a task of the group that has none, or this one for all of its life; those that are forced on every task
 * do not apply to it. */
weir_deadlines wr_group_no_deadlines(const struct weir_group *group, int64_t total_ms);

/* What the body of a task has been asked to end for, by the executor or by a cancel; WEIR_REASON_GAVE_UP: nothing has. Only
 * before it has returned. */
weir_reason wr_task_asked_by(struct weir_task *task);

/* The task whose end the calling stack is telling of; NULL: of none. */
struct weir_task *wr_telling_task(void);

#endif
