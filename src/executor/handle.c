/* What a handle can do: cancel, settle, ask for callbacks, take the value. Waiting is in wait.c.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"

#include <weir/error.h>

/* ---- being told ------------------------------------------------------------------------------- */

int weir_task_on_done(weir_task *task,
                      void (*done)(weir_task *task, const weir_result *result, void *arg),
                      void *arg)
{
    weir_result result;
    bool told;
    int rc = 0;

    if (!task || !done)
        return WEIR_EINVAL;
    wr_lock(&task->group->lock);
    told = weir_task_done(task);
    if (!told)
        rc = wr_task_watch(task, done, arg);
    wr_unlock(&task->group->lock);
    if (told) {
        wr_task_result(&result, task);
        done(task, &result, arg);
    }
    return rc;
}

/* The writing end closes, and the reading end tells. */
static void close_pipe(weir_task *task, const weir_result *result, void *arg)
{
    (void)task;
    (void)result;
    wr_os_close((int)(intptr_t)arg);
}

int weir_task_fd(weir_task *task)
{
    int fds[2], rc;

    if (!task)
        return WEIR_EINVAL;
    rc = wr_os_pipe(fds);
    if (rc)
        return rc;
    rc = weir_task_on_done(task, close_pipe, (void *)(intptr_t)fds[1]);
    if (!rc)
        return fds[0];
    wr_os_close(fds[0]);
    wr_os_close(fds[1]);
    return rc;
}

/* ---- ending it ------------------------------------------------------------------------------- */

/* Decides a task as cancelled. Under the lock. */
static bool decide_cancelled(struct weir_task *task, weir_time started_at, weir_time now)
{
    if (!wr_task_decide(task, WEIR_CANCELLED, WEIR_ECANCELED, WEIR_REASON_CANCELLED, started_at,
                        now))
        return false;
    task->group->cancelled++;
    task->group->telling++;
    return true;
}

bool weir_task_cancel(weir_task *task)
{
    struct weir_group *group;
    struct weir_executor *ex;
    weir_time now = wr_os_now();
    bool won = false, wake = false, over = false;

    if (!task)
        return false;
    group = task->group;
    ex = group->executor;
    weir_task_ref(task); /* for the telling */
    wr_lock(&group->lock);
    if (wr_task_outcome(task) == WEIR_UNSETTLED) {
        switch (wr_task_word(task) & WR_PHASE_MASK) {
        case WR_PHASE_QUEUED:
            wr_group_withdraw(group, task);
            won = decide_cancelled(task, now, now);
            over = true;
            break;
        case WR_PHASE_RUNNING: {
            struct wr_parker *runner = task->runner;
            weir_time started_at = task->started_at;
            won = decide_cancelled(task, started_at, now);
            if (runner)            /* not where the caller runs it */
                wr_unpark(runner); /* it cannot end before we let go of the lock */
            break;
        }
        case WR_PHASE_PENDING:
            group->pending--;
            wr_watch_over(task);
            wr_group_settle_pending(group, wr_task_cost(task));
            won = decide_cancelled(task, task->started_at, now);
            over = true;
            break;
        case WR_PHASE_REFUSED:
            break;
        case WR_PHASE_NEW: /* whoever brings it in will find it settled */
            won = decide_cancelled(task, now, now);
            break;
        default: /* a caller-run body that is pending holds nothing */
            won = decide_cancelled(task, task->started_at, now);
            over = true;
            break;
        }
        if (over)
            wr_task_set_phase(task, WR_PHASE_OVER);
        wake = wr_group_refresh(group) || (over && wr_executor_has_ready(ex));
    }
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(ex);
    if (!won) {
        weir_task_unref(task);
        return false;
    }
    wr_room_made(ex);
    wr_task_publish(task, true);
    if (over)
        weir_task_unref(task); /* the queue's, or the pending body's */
    wr_task_told(task);
    return true;
}

int weir_task_settle(weir_task *task, int error, void *value)
{
    struct weir_group *group;
    struct weir_executor *ex;
    weir_time now = wr_os_now();
    bool won, wake = false, over = false;
    uint32_t phase;

    if (!task || error == WEIR_PENDING)
        return WEIR_EINVAL;
    group = task->group;
    ex = group->executor;
    weir_task_ref(task);
    wr_lock(&group->lock);
    phase = wr_task_word(task) & WR_PHASE_MASK;
    won =
        phase != WR_PHASE_QUEUED && phase != WR_PHASE_NEW && phase != WR_PHASE_REFUSED &&
        wr_task_decide(task, wr_outcome_of(error), error, WEIR_REASON_NONE, task->started_at, now);
    if (won) {
        wr_task_set_value(task, value);
        wr_count_outcome(group, wr_outcome_of(error));
        group->telling++;
        over = phase != WR_PHASE_RUNNING; /* else its body returns later, and ends it */
        if (phase == WR_PHASE_PENDING) {
            group->pending--;
            wr_watch_over(task);
            wr_group_settle_pending(group, wr_task_cost(task));
            wr_task_set_phase(task, WR_PHASE_OVER);
            wake = wr_group_refresh(group) || wr_executor_has_ready(ex);
        }
    }
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(ex);
    if (!won) {
        wr_task_drop_value(task, value);
        weir_task_unref(task);
        return WEIR_EALREADY;
    }
    wr_room_made(ex);
    wr_task_publish(task, true);
    if (over)
        weir_task_unref(task);
    wr_task_told(task);
    return 0;
}

/* ---- looking --------------------------------------------------------------------------------- */

void *weir_task_take(weir_task *task)
{
    struct wr_side *side = wr_task_side(task);
    void *value = NULL;

    if (!weir_task_done(task))
        return NULL;
    wr_lock(&task->group->lock);
    if (wr_task_outcome(task) == WEIR_DONE && !(wr_task_word(task) & WR_TAKEN)) {
        value = side ? side->value : task->u.value;
        wr_add(&task->word, WR_TAKEN, relaxed);
    }
    wr_unlock(&task->group->lock);
    return value;
}

weir_task *weir_task_self(void)
{
    return wr_current_item();
}

const char *weir_task_key(const weir_task *task)
{
    return task->group->key;
}

void *weir_task_arg(const weir_task *task)
{
    void *arg;

    wr_lock(&task->group->lock);
    arg = wr_task_outcome(task) == WEIR_UNSETTLED ? wr_task_arg(task) : NULL;
    wr_unlock(&task->group->lock);
    return arg;
}

const char *weir_task_id(const weir_task *task)
{
    struct wr_side *side = wr_task_side(task);

    return side && side->id ? side->id : "";
}
