/* Threads for bodies, threads_max of them for the whole executor. A task whose group runs on threads starts only with the
 * right to one of them in hand, so the pool of threads never has a queue of ours: without it the group waits, and holds
 * nothing meanwhile.
 *
 * Groups wait in line, first come, first served. A thread that falls free is kept for the first of them, which is
 * called: it enters its ring at the head, and the worker that takes it finds the thread. What is kept and not
 * needed after all (the group was paused, emptied, evicted) goes to the next. docs/internals/domains.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_THREADS_H
#define WR_EXECUTOR_THREADS_H

#include "base/list.h"
#include "base/lock.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_executor;
struct weir_group;

/* group->thread; under the group's lock. */
enum wr_thread {
    WR_THREAD_NONE = 0,
    WR_THREAD_AWAITED, /* closed by WR_NO_THREAD; in line, or out of it because it is being called    */
    WR_THREAD_KEPT, /* called; it stands in its ring, or a worker has just taken it from there      */
    WR_THREAD_TAKEN, /* by the worker that is about to start its next task; only while it is locked  */
};

/* Under the lock:
 *     taken == bodies on threads + on their way there + kept + taken + calls under way
 *     taken <= max, but for a body that was given up as lost and is just coming back
 *     to_call  <=>  line is not empty and taken < max: it counts among the executor's chores
 *     waiting  ==   length of line                                                               */
struct wr_threads {
    struct wr_lock lock;
    uint32_t
        max; /* threads_max, and one more for each body that is lost                             */
    uint32_t taken;
    struct wr_list
        line; /* groups, by ring_link: who is in line is in no ring                        */
    _Atomic uint32_t
        waiting; /* also read without the lock                                           */
    bool to_call;
};

void wr_threads_init(struct weir_executor *ex);

/* ---- under the group's lock -------------------------------------------------------------------- */

/* By the worker that has the group in its hands: gets its next task a thread. False: it waits in line now. One of
 * the next two must follow: the task has started, and its thread will call wr_thread_leave; or it has not. */
bool wr_thread_take(struct weir_group *group);
void wr_thread_used(struct weir_group *group);
void wr_thread_unused(struct weir_group *group);

/* The group may not need what it waits for, or was kept for it. If it has neither, this is not called. */
void wr_thread_refresh(struct weir_group *group);

/* It is evicted. Before it comes to stand in any other list. */
void wr_thread_forget(struct weir_group *group);

/* How many there are, and are taken. */
void wr_threads_count(struct weir_executor *ex, int64_t *max, int64_t *taken);

/* Whether other groups than this one are in line. */
bool wr_thread_others_wait(const struct weir_group *group);

/* A body on a thread is given up as lost, so that there is one thread more until it is back. */
void wr_threads_lost(struct weir_executor *ex, bool lost);

/* ---- without any lock -------------------------------------------------------------------------- */

/* A thread is done with bodies: calls who is first in line. */
void wr_thread_leave(struct weir_executor *ex);

/* A body has begun to wait for a task, which may need a thread, or slots were taken away while one waits: those that are
 * kept for groups without a slot, which may have to wait for that body, go to others. */
void wr_threads_let_go(struct weir_executor *ex);

/* Calls groups for as long as there are threads for them. */
void wr_threads_call(struct weir_executor *ex);

#endif
