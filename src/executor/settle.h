/* The one way in which tasks end, but for a short form of it: a body that returns, and whose task nothing is told of, ends by
 * `finish` in run.c; or, if another task follows at once, by a step of a hand (hand.h). All are counted by wr_count_ends.
 *
 * Whatever else ends a task (its body, weir_task_settle, a cancel, a deadline, a refusal) comes to wr_task_end_locked:
 * the result is decided, once; it is counted; permits and places go back; all under one hold of the group's lock.
 * Then the end is published, so that waits end, and told to the listener and to callbacks, without any lock; see
 * tell.h. A task that is decided while its body runs comes here once more when the body has returned.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_SETTLE_H
#define WR_EXECUTOR_SETTLE_H

#include "executor/queue.h"
#include "executor/task.h"
#include "executor/watch.h"

#include <weir/error.h>

/* The cost of a task in a queue, given its first word there. */
static inline uint32_t wr_cost_at(const uint64_t *word)
{
    return wr_is_entry(*word) ? 1 : wr_task_cost(wr_record_at(word));
}

/* Whether that task has a deadline yet to come, and so will not wait for ever. */
static inline bool wr_is_timed_at(const uint64_t *word)
{
    return !wr_is_entry(*word) && wr_watch_is_armed(wr_record_at(word));
}

/* The body returned WEIR_PENDING: PENDING or ASIDE. It is found in group->pending_first from now on. Under the lock. */
void wr_task_pend(struct weir_task *task, uint32_t phase);

struct wr_end {
    weir_outcome outcome;
    int error;
    weir_reason reason;
    void *value; /* the task's if this decides the end; else it is dropped                     */
    weir_time started_at; /* 0: when its body started; if it never did, `at`                   */
    weir_time at;
    bool body_over; /* its body has returned, or the task is refused: no body runs on           */
    bool handled;   /* by rejection_fn                                                          */
    bool uncounted; /* the submit fails: there was no task                                      */
    bool if_begun;  /* only a task that has begun is ended                                      */
};

/* After a body has returned. */
struct wr_end wr_end_of_body(const struct weir_task *task, int error, void *value, weir_time now);

/* An end as CANCELLED, REJECTED or TIMED_OUT, now, whatever a body does. */
struct wr_end wr_end_without_body(weir_outcome outcome, weir_reason reason);

/* Ends a task. True: this decided how, and it has been told. False: it was decided before; with body_over, the body's
 * return is dealt with all the same, and the body's reference is gone. */
bool wr_task_end(struct weir_task *task, const struct wr_end *end);

/* The same in two steps: under the lock, and after it. The second is due if the first answers true, or with
 * body_over. In between a reference is held for it. */
bool wr_task_end_locked(struct weir_task *task, const struct wr_end *end);
void wr_task_tell_end(struct weir_task *task, const struct wr_end *end, bool decided);

/* A body has returned WEIR_PENDING, with a value that is dropped: its task will be settled from outside. If it was asked to
 * end, or the executor is being freed, it is cancelled at once. */
void wr_body_pends(struct weir_task *task, void *value);

/* Ends all pending tasks of a group as cancelled, inside of a telling that the caller has opened. */
void wr_group_end_pending(struct weir_group *group, weir_reason reason);

/* Refuses the first task in a group's queue, and tells of it. WEIR_REASON_DOMAIN_RELEASED: only while its domain is.
 * False: there is none to refuse. */
bool wr_reject_first(struct weir_group *group, weir_reason reason);

/* Fills a result from a decided task. */
void wr_task_result(weir_result *result, struct weir_task *task);

/* Drops a value that comes too late. */
void wr_task_drop_value(struct weir_task *task, void *value);

/* Calls the body, in the context in which it was submitted. */
int wr_task_call(struct weir_task *task, weir_fn *fn, void *arg, void **value);

/* What a body that has returned this makes of its task. */
static inline weir_outcome wr_outcome_of(int error)
{
    return error == 0 ? WEIR_DONE : error == WEIR_ECANCELED ? WEIR_CANCELLED : WEIR_FAILED;
}

/* So many tasks of the group have ended in that way. Under the lock. */
void wr_count_ends(struct weir_group *group, weir_outcome outcome, uint32_t count);

/* A task left: submits that WEIR_BLOCK keeps waiting may try again. */
void wr_room_made(struct weir_executor *ex);

/* The group has a task now. Under the group's lock. */
void wr_group_entered(struct weir_group *group);

/* The group may have no task left. Under the group's lock. */
void wr_group_left(struct weir_group *group);

#endif
