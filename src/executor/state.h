/* The executor: a table of groups, a ring of the ready ones, and a runtime that pulls. Other rooms see executor.h.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_STATE_H
#define WR_EXECUTOR_STATE_H

#include "base/cells.h"
#include "executor/deadlock.h"
#include "executor/domains.h"
#include "executor/group.h"
#include "executor/table.h"
#include "executor/task.h"
#include "executor/threads.h"
#include "executor/totals.h"
#include "executor/watch.h"
#include "policy/policy.h"
#include "runtime/runtime.h"

/* Keeps fields that different threads write all the time in cache lines of their own. */
#define WR_APART(name) char apart_##name[64];

struct weir_executor {
    struct wr_crew crew; /* the workers that all domains share, but for those with their own */
    struct wr_policy policy;
    struct wr_domains *domains; /* NULL: there are no domains                               */
    _Atomic bool closed;        /* no submissions                                           */
    _Atomic bool finishing;     /* closed with WEIR_FINISH_WAITING                          */
    _Atomic bool freeing;       /* no body goes pending any more                            */
    _Atomic uint32_t chores; /* for workers, before they pull: threads.to_call + length of untold */
    _Atomic bool cancel_all; /* all bodies are asked to end, whenever they start         */
    _Atomic uint32_t cancels; /* how often those that ran were asked to end               */

    WR_APART(ring)
    struct wr_line ring;
    _Atomic(struct wr_beats *) beats; /* NULL: there never were any */
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
    struct wr_clock
        clock; /* for gates, deadlines, samples of domains, and the search for idle groups */
    struct wr_alarm sweeping;      /* that search                                            */
    struct wr_nested_waits nested; /* tasks that wait                                      */
    struct wr_waitq quiet;         /* waits for live == 0, or freed == 0, too                  */
    struct wr_waitq guests;        /* bodies that WEIR_CALLER_RUNS runs in submitting threads  */
    struct wr_waitq returned;      /* waits for bodies of settled tasks to return              */
    struct wr_waitq resolved;      /* waits for another thread to ask the policy about a group */
    struct wr_waitq room;          /* submits that WEIR_BLOCK keeps waiting for room           */
    _Atomic uint64_t evicted;
    _Atomic uint32_t freed; /* overdue bodies that run on without their permits */
    _Atomic uint64_t stalls;
    struct wr_archive archive; /* what evicted groups had counted, by key, if the policy keeps it */
    _Atomic uint64_t references; /* the owner's, and one per group                           */
};

/* The domains of a group's executor; NULL: there are none. */
static inline struct wr_domains *wr_domains_of(const struct weir_group *group)
{
    return group->executor->domains;
}

static inline struct wr_domain *wr_group_domain(const struct weir_group *group)
{
    struct wr_domains *domains = group->executor->domains;

    return domains ? &domains->domain[group->domain] : NULL;
}

/* How often bodies of an executor, or of a domain of it, that ran were asked to end. A body is asked if this has changed since
 * its start: times would not do, since a body may begin in the very instant of the call, before it or after. */
static inline uint32_t wr_cancels_in(const struct weir_executor *ex, const struct wr_domain *domain)
{
    uint32_t cancels = wr_load(&ex->cancels, seq_cst); /* see struct wr_waitq */

    return domain ? cancels + wr_load(&domain->cancels, seq_cst) : cancels;
}

static inline uint32_t wr_cancels(const struct weir_group *group)
{
    return wr_cancels_in(group->executor, wr_group_domain(group));
}

/* Whether a task whose body runs is asked to end, or is settled. */
bool wr_task_is_asked_to_end(const struct weir_task *task);

/* The task in whose body `task` is run by WEIR_CALLER_RUNS; NULL: in no task's. So the tasks whose bodies are on the calling
 * stack are weir_task_self(), and from each one on the answer of this, until NULL. Only on that stack; the inner tasks hold
 * no permits. */
struct weir_task *wr_task_outer(const struct weir_task *task);

/* The ring in which the group stands when it is ready. */
static inline struct wr_line *wr_group_ring(const struct weir_group *group)
{
    struct wr_domain *domain = wr_group_domain(group);

    return domain ? &domain->ring : &group->executor->ring;
}

/* Whether a group waits for a worker, or is about to; a look without a lock. */
static inline bool wr_executor_has_ready(struct weir_executor *ex)
{
    if (ex->domains)
        return wr_load(&ex->domains->ready, relaxed) & ~wr_load(&ex->domains->barred, relaxed);
    return wr_line_has_stands(&ex->ring);
}

/* Call after work was made available. */
void wr_executor_wake_domains(struct weir_executor *ex);
static inline void wr_executor_wake(struct weir_executor *ex)
{
    if (ex->domains)
        wr_executor_wake_domains(ex);
    else
        wr_runtime_wake(ex->crew.runtime);
}

/* The same, as the last thing before the caller looks for work itself, if it is a worker; see wr_runtime_search. */
static inline void wr_executor_search(struct weir_executor *ex)
{
    if (ex->domains)
        wr_executor_wake_domains(ex);
    else
        wr_runtime_search(ex->crew.runtime);
}

/* Call after work was made available that a worker of any crew can do. */
void wr_executor_wake_all(struct weir_executor *ex);

/* Whether another group, that goes before this one, is owed more of the executor's permits than are free, and so keeps it
 * waiting; or this group itself is. */
bool wr_permits_are_owed(struct weir_group *group);

/* How many of the executor's permits another task needs that starts before those of this group, and will wait for them
 * for ever; 0: none. */
uint32_t wr_permits_owed_first(struct weir_group *group);

/* Wakes every parked body, to look whether it is cancelled; also those that are run elsewhere. */
void wr_executor_sweep(struct weir_executor *ex);

/* Ends all pending tasks as cancelled; of one domain only, if `domain` is not negative. */
void wr_executor_end_pending(struct weir_executor *ex, int domain, weir_reason reason);

/* Drops a reference; the last one frees the record. Everything else is gone by then. */
void wr_executor_unref(struct weir_executor *ex);

#endif
