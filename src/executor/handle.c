/* What a handle can do: wait, cancel, settle, ask for callbacks, take the value.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"

#include <weir/error.h>

/* ---- waiting --------------------------------------------------------------------------------- */

/* Joins the watchers; false if it is too late. */
static bool join(struct weir_task *task, struct wr_watcher *watcher)
{
    bool joined;

    wr_lock(&task->group->lock);
    watcher->next = wr_load(&task->watchers, relaxed);
    joined = watcher->next != WR_TOLD;
    if (joined)
        wr_store(&task->watchers, watcher, relaxed);
    wr_unlock(&task->group->lock);
    return joined;
}

/* Leaves the watchers. Whoever tells them does it under the lock, so afterwards nobody knows us. */
static void leave(struct weir_task *task, struct wr_watcher *watcher)
{
    struct wr_watcher *at, *before = NULL;

    wr_lock(&task->group->lock);
    at = wr_load(&task->watchers, relaxed);
    if (at != WR_TOLD) {
        for (; at != watcher; at = at->next)
            before = at;
        if (before)
            before->next = watcher->next;
        else
            wr_store(&task->watchers, watcher->next, relaxed);
    }
    wr_unlock(&task->group->lock);
}

/* The caller gives up when it is cancelled itself, unless it is only waiting for the telling to end. */
static int wait_until_told(struct weir_task *task, weir_time deadline, bool may_cancel)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);
    struct wr_watcher watcher = { .waiter = self };
    int rc = 0;

    if (weir_task_done(task) || !join(task, &watcher))
        return 0;
    while (!weir_task_done(task) && !rc)
        rc = may_cancel && weir_cancelled() ? WEIR_ECANCELED : wr_park(self, deadline);
    leave(task, &watcher);
    return weir_task_done(task) ? 0 : rc;
}

/* A task that waits for a task of the same executor might wait for ever; see deadlock.c. */
static int wait_nested(weir_task *self, weir_task *task, weir_time deadline, weir_message *why)
{
    struct wr_nested_wait nested;
    int rc;

    if (weir_task_done(task))
        return 0;
    rc = wr_nested_wait_enter(&nested, self, task, deadline, why);
    if (rc)
        return rc;
    rc = wait_until_told(task, deadline, true);
    wr_nested_wait_leave(&nested);
    return rc;
}

int weir_task_wait_or_say(weir_message *why, weir_result *out, weir_task *task, weir_time deadline)
{
    weir_task *self = weir_task_self();
    weir_result result;
    int rc;

    if (why)
        why->text[0] = '\0';
    if (!task)
        return WEIR_EINVAL;
    if (self && self->group->executor == task->group->executor)
        rc = wait_nested(self, task, deadline, why);
    else
        rc = wait_until_told(task, deadline, true);
    if (rc)
        return rc;
    if (out) {
        wr_task_result(&result, task);
        rc = wr_options_store(out, &result, sizeof(result));
        if (rc)
            return rc;
    }
    return wr_task_word(task) & WR_ABORTED ? WEIR_EREJECTED : 0;
}

void wr_task_wait_told(struct weir_task *task)
{
    wait_until_told(task, WEIR_FOREVER, false);
}

int weir_task_wait(weir_result *out, weir_task *task, weir_time deadline)
{
    return weir_task_wait_or_say(NULL, out, task, deadline);
}

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

const char *weir_task_id(const weir_task *task)
{
    struct wr_side *side = wr_task_side(task);

    return side && side->id ? side->id : "";
}
