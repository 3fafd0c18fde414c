/* The executor: a table of groups, a ring of those whose turn comes, and a runtime that pulls.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_EXECUTOR_H
#define WR_EXECUTOR_EXECUTOR_H

#include "executor/cells.h"
#include "executor/clock.h"
#include "executor/deadlock.h"
#include "executor/domains.h"
#include "executor/group.h"
#include "executor/local.h"
#include "executor/policy.h"
#include "executor/ring.h"
#include "executor/table.h"
#include "executor/task.h"
#include "executor/threads.h"
#include "executor/totals.h"
#include "executor/watch.h"
#include "runtime/runtime.h"

/* Keeps what different threads write all the time in cache lines of its own. */
#define WR_APART(name) char apart_##name[64];

struct weir_executor {
    struct wr_intake intake; /* the workers that all domains share, but for those with their own */
    struct wr_policy policy;
    struct wr_domains *domains; /* NULL: there are no domains                               */
    _Atomic bool closed;        /* no submissions                                           */
    _Atomic bool finishing;     /* closed with WEIR_FINISH_WAITING                          */
    _Atomic bool freeing;       /* no body goes pending any more                            */
    _Atomic uint32_t chores; /* for workers, before they pull: threads.to_call + length of untold */
    _Atomic bool cancel_all; /* all bodies are asked to end, whenever they start         */
    _Atomic uint32_t cancels; /* how often those that ran were asked to end               */

    WR_APART(ring)
    struct wr_ring ring;
    WR_APART(root)
    struct wr_root root;
    WR_APART(cells)
    struct wr_cells cells;
    WR_APART(live)
    _Atomic uint64_t live; /* groups that have tasks: queued, running or pending    */

    WR_APART(table)
    struct wr_table table;
    struct wr_threads threads;
    struct wr_untold untold;
    struct wr_clock clock;
    struct wr_nested_waits nested; /* tasks that wait                                      */
    struct wr_waitq quiet;         /* those who wait for live == 0, or freed == 0, too         */
    struct wr_waitq guests;        /* bodies that WEIR_CALLER_RUNS has others run              */
    struct wr_waitq returned;      /* those who wait for bodies that were settled to return    */
    _Atomic uint32_t return_waiters;
    struct wr_waitq resolved; /* those who wait for somebody else to ask for a limit      */
    struct wr_waitq room;     /* those whom WEIR_BLOCK made wait for room                 */
    _Atomic uint32_t room_waiters;
    _Atomic uint64_t evicted;
    _Atomic uint32_t freed; /* overdue bodies that run on without their permits */
    _Atomic uint64_t stalls;
    struct wr_archive archive; /* what evicted groups had counted, by key, if the policy keeps it */
    _Atomic uint64_t references; /* the owner's, and one per group                           */
};

/* A source of work for a runtime; and the runtime. */
void wr_intake_init(struct wr_intake *intake, struct weir_executor *ex);
int wr_intake_start(struct wr_intake *intake, uint32_t workers);

/* How often bodies of the group's that ran were asked to end. One is asked if this has changed since its start: times
 * would not do, since a body may begin in the very instant of the call, before it or after. */
static inline uint32_t wr_asked(const struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    uint32_t asked = wr_load(&ex->cancels, acquire);

    return ex->domains ? asked + wr_load(&ex->domains->domain[group->domain].cancels, acquire)
                       : asked;
}

/* Whether a task whose body runs is asked to end, or is settled. */
bool wr_task_is_asked(const struct weir_task *task);

/* The task in whose body `task` is run by WEIR_CALLER_RUNS; NULL: in none's. So all tasks whose bodies are on the calling
 * stack are: weir_task_self(), and on from each with this until NULL. Only on that stack; the inner ones hold no
 * permits. */
struct weir_task *wr_task_outer(const struct weir_task *task);

/* Whose ring it stands in when it is ready. */
static inline struct wr_ring *wr_group_ring(const struct weir_group *group)
{
    struct weir_executor *ex = group->executor;

    return ex->domains ? &ex->domains->domain[group->domain].ring : &ex->ring;
}

/* Whether somebody waits for a worker, or is about to; a look without a lock. */
static inline bool wr_executor_has_ready(struct weir_executor *ex)
{
    if (ex->domains)
        return wr_load(&ex->domains->ready, relaxed) & ~wr_load(&ex->domains->barred, relaxed);
    return wr_load(&ex->ring.count, relaxed) > 0;
}

/* Call after work was made available. */
void wr_executor_wake_domains(struct weir_executor *ex);
static inline void wr_executor_wake(struct weir_executor *ex)
{
    if (ex->domains)
        wr_executor_wake_domains(ex);
    else
        wr_runtime_wake(ex->intake.runtime);
}

/* There is something that a worker of any set can do. */
void wr_executor_wake_all(struct weir_executor *ex);

/* Whether another group, that goes before this one, is owed more of the executor's permits than are free, and so keeps it
 * waiting; or it itself is. */
bool wr_permits_are_owed(struct weir_group *group);

/* How many of the executor's permits another task needs that starts before those of this group, and will wait for them
 * for ever; 0: none. */
uint32_t wr_permits_owed_first(struct weir_group *group);

/* Whether a worker has anything else to do than `own` of the group's waiting tasks: a look, which may be out of date by the
 * time it is answered. */
bool wr_group_has_rivals(struct weir_group *group, uint32_t own);

/* Deadlines of a task of the group that has none, or this one for all of its life; those that are forced on every task
 * do not apply to it. */
static inline weir_deadlines wr_group_no_deadlines(const struct weir_group *group, int64_t total_ms)
{
    bool watched = total_ms || wr_load(&group->executor->policy.watched, relaxed);
    int64_t none = watched ? WEIR_NO_LIMIT : 0;

    return (weir_deadlines){ none, none, total_ms ? total_ms : none };
}

/* Wakes every parked body, to look whether it is cancelled; also those that are run elsewhere. */
void wr_executor_sweep(struct weir_executor *ex);

/* Ends all pending tasks as cancelled; of one domain only, if `domain` is not negative. */
void wr_executor_end_pending(struct weir_executor *ex, int domain, weir_reason reason);

/* Makes a task that is a whole of parts; see task.h. Options as of weir_submit, but for cost, priority and those of
 * arguments and values. Errors as weir_submit. */
int wr_submit_whole(weir_task **out, struct weir_group *group, struct wr_whole *whole,
                    const weir_task_options *opt);

/* What a task is the whole of; NULL: it has a body. */
struct wr_whole *wr_task_whole(const struct weir_task *task);

/* All parts have ended: settles the whole, as weir_task_settle; if that is a cancellation, for that reason, unless
 * the executor or the domain has asked for it. And: it is decided, and no part is left, so it may be told of. */
int wr_whole_settle(struct weir_task *task, int error, weir_reason reason);
void wr_whole_over(struct weir_task *task);

/* Drops a reference; the last one frees the record. Everything else is gone by then. */
void wr_executor_unref(struct weir_executor *ex);

#endif
