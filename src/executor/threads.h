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

/* By the worker that has the group in its hands. True: its next task has a thread, the one that is reserved for it or another.
 * False: the group waits in line now. One of the next two must follow. */
bool wr_thread_take(struct weir_group *group);

/* The task has started: its thread will call wr_thread_leave. */
void wr_thread_used(struct weir_group *group);

/* No task has started. `taken`: wr_thread_take answered true, and a thread that was not reserved goes back. */
void wr_thread_unused(struct weir_group *group, bool taken);

/* The group may have ceased to need a thread: then wr_thread_forget. */
void wr_thread_refresh(struct weir_group *group);

/* The group leaves the line, or gives back the thread that is reserved for it. An evicted group does before it comes to stand in
 * any other list. */
void wr_thread_forget(struct weir_group *group);

/* How many threads there are, and how many of them are in use. */
void wr_threads_count(struct weir_executor *ex, int64_t *max, int64_t *in_use);

/* Whether other groups than this one are in line. */
bool wr_thread_others_wait(const struct weir_group *group);

/* A body on a thread is given up as lost, so that there is one thread more; or (false) it is back. */
void wr_threads_lost(struct weir_executor *ex, bool lost);

/* ---- without any lock -------------------------------------------------------------------------- */

/* Calls groups from the line for as long as there are threads for them. */
void wr_threads_call(struct weir_executor *ex);

/* A thread is done with bodies: a group in line may have it. */
void wr_thread_leave(struct weir_executor *ex);

/* A body has begun to wait for a task, which may need a thread, or slots were taken away while a body waits: threads that are
 * reserved for groups without a slot, which may have to wait for that body, go to other groups. */
void wr_threads_let_go(struct weir_executor *ex);

#endif
