/* A task's record from allocation to its last reference, and the one moment at which it settles.
 *
 * Settling is two steps. wr_task_decide fixes the result, once, under the group's lock; permits go back
 * under the same hold. wr_task_publish then tells the listener, wakes who waits, and runs callbacks,
 * without any lock; from then on the task is done for everyone to see.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_SETTLE_H
#define WR_EXECUTOR_SETTLE_H

#include "executor/executor.h"
#include "executor/watch.h"

static inline uint32_t wr_task_word(const struct weir_task *task)
{
    return wr_load(&task->word, relaxed);
}

static inline weir_outcome wr_task_outcome(const struct weir_task *task)
{
    return (weir_outcome)((wr_task_word(task) & WR_OUTCOME_MASK) >> WR_OUTCOME_SHIFT);
}

static inline struct wr_side *wr_task_side(const struct weir_task *task)
{
    return wr_task_word(task) & WR_SIDE ? task->u.side : NULL;
}

static inline uint32_t wr_task_cost(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side ? side->cost : 1;
}

/* What its body is given. Not once somebody may have settled it: the value takes the same place. */
static inline void *wr_task_arg(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side ? side->arg : task->u.arg;
}

/* Whether it may have a deadline. */
static inline bool wr_task_watched(const struct weir_task *task)
{
    return wr_task_word(task) & WR_SIDE;
}

/* ---- records; under the group's lock ---------------------------------------------------------- */

/* A record with one reference per holder, counted in group->records; NULL without memory. */
struct weir_task *wr_task_alloc(struct weir_group *group, uint32_t references);

/* Nobody holds it any more. */
void wr_task_recycle(struct weir_group *group, struct weir_task *task);

/* Gives records at hand back to the executor's pool, but for `keep`. */
void wr_task_unused_return(struct weir_group *group, uint32_t keep);

/* ---- phases; under the group's lock ------------------------------------------------------------ */

void wr_task_set_phase(struct weir_task *task, uint32_t phase);

/* Fixes the result unless it is fixed already. The phase is not changed. */
bool wr_task_decide(struct weir_task *task, weir_outcome outcome, int error, weir_reason reason,
                    weir_time started_at, weir_time ended_at);

/* ---- without any lock -------------------------------------------------------------------------- */

/* Makes a decided task known. The caller holds a reference; `completed` says whether the listener hears
 * of completion (it has heard of a rejection already, otherwise). */
void wr_task_publish(struct weir_task *task, bool completed);

/* Waits for a decided task to be published, whatever happens to the caller. */
void wr_task_wait_told(struct weir_task *task);

/* Fills a result from a decided task. */
void wr_task_result(weir_result *result, const struct weir_task *task);

/* Stores or drops a value that a body left. */
void wr_task_set_value(struct weir_task *task, void *value);
void wr_task_drop_value(struct weir_task *task, void *value);

/* A decided task whose permits are back has been told of: the group may be at rest. Drops a reference. */
void wr_task_told(struct weir_task *task);

/* The same, if that runs no code of the user's, as the drop of a value does; else false, and nothing is done. */
bool wr_task_told_quietly(struct weir_task *task);

/* Makes a decided task known to those who wait for it: they are woken, under the lock that they take before they leave.
 * Answers the callbacks, oldest first, to be called without it. From here on nobody joins. Under the lock. */
struct wr_watcher *wr_task_close_watchers(struct weir_task *task);

/* Has done(task, result, arg) called when the task is published. Under the lock. WEIR_ENOMEM. */
int wr_task_watch(struct weir_task *task,
                  void (*done)(weir_task *task, const weir_result *result, void *arg), void *arg);

/* Calls the body, in the context in which it was submitted. */
int wr_task_call(struct weir_task *task, void *arg, void **value);

weir_outcome wr_outcome_of(int error);
void wr_count_outcome(struct weir_group *group, weir_outcome outcome);

/* Takes a task out of its queue, with its place; it will not start. Under the lock. */
void wr_group_withdraw(struct weir_group *group, struct weir_task *task);

/* Refuses the first in a group's queue, and tells everyone. WEIR_REASON_DOMAIN_RELEASED: only while its domain is.
 * False: there is none to refuse. */
bool wr_reject_first(struct weir_group *group, weir_reason reason);

/* Somebody left: those whom WEIR_BLOCK keeps waiting may try again. */
void wr_room_made(struct weir_executor *ex);

/* The group has a task, or may have none left. Under the group's lock. */
void wr_group_entered(struct weir_group *group);
void wr_group_left(struct weir_group *group);

#endif
