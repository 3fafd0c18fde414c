/* Threads for bodies, threads_max of them for the whole executor. A task whose group runs on threads starts only with the
 * right to one of them in hand, so the pool of threads never has a queue of ours: without it the group waits, and holds
 * nothing meanwhile.
 *
 * Groups wait in a line (line.h). A thread that falls free is reserved for the first of them, which is called: it enters
 * its ring at the head, and the worker that takes it finds the thread. What is reserved and not needed after all (the
 * group was paused, emptied, evicted) goes to the next. docs/internals/domains.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_THREADS_H
#define WR_EXECUTOR_THREADS_H

#include "limits/line.h"

struct weir_executor;
struct weir_group;

/* Under the line's lock:
 *     in_use == bodies on threads + on their way there + reserved (has_thread) + taken by workers + calls under way
 *     in_use <= max, but for a body that was given up as lost and is just coming back
 *     to_call  <=>  the line is not empty and in_use < max: it counts among the executor's chores      */
struct wr_threads {
    struct wr_line line;
    uint32_t max; /* threads_max, and one more for each body that is lost */
    uint32_t in_use;
    bool to_call;
};

void wr_threads_init(struct weir_executor *ex);

/* ---- under the group's lock -------------------------------------------------------------------- */

/* By the worker that has the group in its hands: whether its next task has a thread, the one that is reserved for it or
 * another. False: it waits in line now. One of the next two must follow: the task has started, and its thread will call
 * wr_thread_leave; or it has not (nor was one taken for it). */
bool wr_thread_take(struct weir_group *group);
void wr_thread_used(struct weir_group *group);
void wr_thread_unused(struct weir_group *group, bool taken);

/* The group waits in line, or one is reserved for it, and it may not need that; or it is evicted, before it comes to stand in
 * any other list. */
void wr_thread_refresh(struct weir_group *group);
void wr_thread_forget(struct weir_group *group);

/* How many there are, and are in use; and whether other groups than this one are in line. */
void wr_threads_count(struct weir_executor *ex, int64_t *max, int64_t *in_use);
bool wr_thread_others_wait(const struct weir_group *group);

/* A body on a thread is given up as lost, so that there is one thread more until it is back. */
void wr_threads_lost(struct weir_executor *ex, bool lost);

/* ---- without any lock -------------------------------------------------------------------------- */

/* Calls groups for as long as there are threads for them; and: a thread is done with bodies, so that there may be one. */
void wr_threads_call(struct weir_executor *ex);
void wr_thread_leave(struct weir_executor *ex);

/* A body has begun to wait for a task, which may need a thread, or slots were taken away while one waits: those that are
 * reserved for groups without a slot, which may have to wait for that body, go to others. */
void wr_threads_let_go(struct weir_executor *ex);

#endif
