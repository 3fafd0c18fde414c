/* Turns on threads: a worker sends the first task, a thread of the pool goes on with the turn.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/settle.h"
#include "executor/slice.h"

/* A task on its way to a thread. */
struct sent_task {
    struct wr_job job;
    struct weir_task *task;
    struct wr_slice slice;
};

/* Whether a task was settled on its way here, by a cancel or its deadline: then it is not run. Else it is carried from here. */
static bool is_settled(struct weir_task *task, enum wr_carried carried)
{
    bool settled;

    wr_group_lock(task->group);
    settled = wr_task_outcome(task) != WEIR_UNSETTLED;
    if (!settled) { /* else ended_at stands there */
        task->runner = wr_parker_self(NULL);
        wr_watch_carried(task, carried);
    }
    wr_unlock(&task->group->lock);
    return settled;
}

/* On the thread. */
static void run_sent(struct wr_job *job)
{
    struct sent_task *sent = WR_CONTAINER(job, struct sent_task, job);
    struct weir_task *task = sent->task;
    struct weir_executor *ex = task->group->executor;
    struct wr_slice slice = sent->slice;

    wr_os_free(sent);
    slice.on_thread = true;
    wr_run_slice(ex, task, &slice, is_settled(task, WR_BY_THREAD));
    if (slice.record)
        wr_cell_give(&ex->cells, 0, slice.record);
    wr_thread_rests(); /* before a group may count on it */
    wr_thread_leave(ex);
}

/* Sends a task, which has the right to one, to a thread. All bodies on threads share the pool of the executor's own workers:
 * one cap, and no idle threads elsewhere. False: no thread can be started, and it runs here. */
static bool send_to_thread(struct weir_task *task, const struct wr_slice *slice)
{
    struct weir_executor *ex = task->group->executor;
    struct sent_task *sent = wr_os_alloc(sizeof(*sent));

    if (!sent)
        return false;
    *sent = (struct sent_task){ .job.run = run_sent, .task = task, .slice = *slice };
    sent->slice.record = NULL; /* the worker's */
    if (wr_runtime_job(ex->crew.runtime, &sent->job, WR_JOB_AT_ONCE) == 0)
        return true;
    wr_os_free(sent);
    return false;
}

/* Without a thread for it the body runs here after all, unless it is settled; then it is on this fiber. */
bool wr_slice_sent_to_thread(struct weir_task *task, const struct wr_slice *slice, bool *settled)
{
    wr_body_over(); /* a record that is on its way is not ours any more, nor the monitor's */
    if (send_to_thread(task, slice))
        return true;
    wr_thread_leave(task->group->executor);
    *settled = is_settled(task, WR_BY_WORKER);
    wr_body_begins(task);
    return false;
}
