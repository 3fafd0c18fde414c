/* What becomes of a task that is not admitted: it is turned away, run by its caller, or waits for room. See submission.h.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "base/reason.h"
#include "executor/deadlock.h"
#include "executor/settle.h"
#include "executor/submission.h"
#include "executor/tell.h"

#include <weir/error.h>

/* The body that WEIR_CALLER_RUNS has begin here. Under the lock; `frame` is entered. */
static void begin_guest(struct weir_task *task, const struct wr_frame *frame, weir_time now)
{
    struct weir_group *group = task->group;

    wr_group_entered(group);
    group->telling++; /* until it is over: who waits for quiet waits for this body, too */
    wr_task_set_phase(task, WR_PHASE_GUEST);
    task->started_at = now;
    wr_store(&task->error, (int32_t)wr_cancels(group), relaxed);
    task->runner = frame->parker;
    if (wr_task_side(task))
        wr_watch_arm(task, now, WEIR_REASON_RUN_DEADLINE);
}

/* It has returned. */
static void end_guest(struct weir_task *task, int error, void *value)
{
    struct weir_group *group = task->group;
    struct wr_end end;
    bool decided;

    if (error == WEIR_PENDING)
        wr_task_drop_value(task, value);
    wr_group_lock(group);
    if (error == WEIR_PENDING && !wr_task_must_not_pend(task)) {
        wr_task_pend(task, WR_PHASE_ASIDE);
        wr_unlock(&group->lock);
        return;
    }
    end = error == WEIR_PENDING ? wr_end_of_body(task, WEIR_ECANCELED, NULL, wr_os_now())
                                : wr_end_of_body(task, error, value, wr_os_now());
    decided = wr_task_end_locked(task, &end);
    wr_unlock(&group->lock);
    wr_task_tell_end(task, &end, decided);
}

/* Runs the body in the submitting thread, outside all limits. */
static void run_here(struct weir_task *task)
{
    struct weir_executor *ex = task->group->executor;
    const weir_listener *listener = &ex->policy.given.listener;
    void *arg = wr_task_arg(task), *value = NULL;
    weir_fn *fn = task->fn;
    struct wr_frame frame = { 0 };
    struct wr_waiter guest;
    int error;

    wr_guest_enter(&frame, &ex->crew.source, task);
    wr_waitq_enter(&ex->guests, &guest, frame.parker);
    wr_group_lock(task->group);
    begin_guest(task, &frame, wr_os_now());
    wr_unlock(&task->group->lock);
    if (listener->started)
        listener->started(task, listener->arg);
    error = wr_task_call(task, fn, arg, &value);
    wr_waitq_leave(&ex->guests, &guest);
    wr_frame_leave(&frame);
    end_guest(task, error, value);
}

/* From here on it is not cancelled any more. False: it was, and that was told. */
static bool refuse(struct weir_task *task, struct wr_submission *sub)
{
    bool unsettled;

    wr_group_lock(task->group);
    unsettled = wr_task_outcome(task) == WEIR_UNSETTLED;
    if (unsettled) {
        wr_task_set_phase(task, WR_PHASE_REFUSED);
        wr_submission_hand_on_done(task, sub);
    }
    wr_unlock(&task->group->lock);
    return unsettled;
}

static struct wr_end end_refused(weir_reason reason)
{
    struct wr_end end = wr_end_without_body(WEIR_REJECTED, reason);

    end.body_over = true;
    return end;
}

/* What rejection_fn makes of it. */
static struct wr_end ask_handler(struct weir_task *task, weir_reason reason)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    struct wr_end end = end_refused(reason);
    weir_result result = { .size = sizeof(result),
                           .outcome = end.outcome,
                           .error = end.error,
                           .reason = reason,
                           .queued_at = task->queued_at,
                           .started_at = end.at,
                           .ended_at = end.at,
                           .key = task->group->key,
                           .id = weir_task_id(task) };
    int rc = policy->rejection_fn(&result, task, reason, policy->rejection_arg);

    if (!wr_reason_is_known(result.reason))
        result.reason = reason;
    if (rc || result.outcome == WEIR_UNSETTLED || (unsigned)result.outcome > WEIR_TIMED_OUT) {
        result.outcome = WEIR_REJECTED;
        result.error = rc ? rc : WEIR_EREJECTED;
    }
    return (struct wr_end){ .outcome = result.outcome,
                            .error = result.error,
                            .reason = result.reason,
                            .value = result.value,
                            .started_at = result.started_at,
                            .at = result.ended_at,
                            .body_over = true,
                            .handled = true };
}

/* It was cancelled before it was admitted, which was told. Its reference goes. */
static void found_cancelled(struct weir_task *task, struct wr_submission *sub)
{
    struct wr_end end = end_refused(WEIR_REASON_CANCELLED);

    if (sub->on_done)
        wr_watcher_attach(sub->on_done, task);
    sub->on_done = NULL;
    wr_task_end(task, &end);
}

/* Permits and places are back: only the task itself is left to deal with. */
static void turn_away(struct weir_task *task, struct wr_submission *sub, weir_reason reason)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    bool runs_here = !policy->rejection_fn && policy->rejection == WEIR_CALLER_RUNS &&
                     reason != WEIR_REASON_SHUT_DOWN;
    struct wr_end end = end_refused(reason);
    struct wr_frame frame = { 0 };

    if (!refuse(task, sub)) {
        found_cancelled(task, sub);
        return;
    }
    wr_frame_enter(&frame);
    if ((runs_here || policy->rejection_fn) && policy->listener.rejected)
        policy->listener.rejected(task, reason, policy->listener.arg); /* else told at its end */
    if (policy->rejection_fn)
        end = ask_handler(task, reason);
    if (runs_here)
        run_here(task);
    else
        wr_task_end(task, &end);
    wr_frame_leave(&frame);
}

/* ---- waiting for room -------------------------------------------------------------------------- */

/* Whether there is no use in waiting any longer, or no need. */
static bool is_final(weir_reason reason)
{
    return reason == WEIR_REASON_NONE || reason == WEIR_REASON_SHUT_DOWN ||
           reason == WEIR_REASON_EVICTED || reason == WEIR_REASON_CANCELLED;
}

/* WEIR_BLOCK: tries again whenever somebody has left. 0: it is decided, *reason says how. */
static int wait_for_room(struct weir_task *task, struct wr_submission *sub, weir_reason *reason)
{
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor;
    weir_time deadline = sub->options->deadline ? sub->options->deadline : WEIR_FOREVER;
    struct wr_parker storage, *self = wr_parker_self(&storage);
    struct wr_nested_wait nested;
    struct wr_waiter waiter;
    bool wake = false;
    int rc;

    wr_nested_wait_for_room(&nested, group, wr_task_cost(task), *reason);
    rc = wr_nested_wait_enter(&nested, deadline, NULL);
    if (rc)
        return rc;
    wr_group_lock(group);
    group->pins++; /* once the task is in, it may end and its group go, before the wait is left */
    wr_unlock(&group->lock);
    wr_waitq_enter(&ex->room, &waiter, self);
    for (;;) {
        wr_group_lock(group);
        if (wr_submission_enter(group, task, sub, reason, &wake))
            rc = WEIR_ENOMEM;
        else if (!wr_can_ever(&group->sums, &ex->root, wr_task_cost(task)))
            rc = WEIR_EINVAL; /* a limit was lowered: there will be no room */
        wr_unlock(&group->lock);
        if (wake) /* also if it is not in: slots may have moved on its behalf */
            wr_executor_wake(ex);
        wake = false;
        if (is_final(*reason) || rc)
            break;
        rc = weir_cancelled() ? WEIR_ECANCELED : wr_nested_wait_again(&nested, *reason);
        if (!rc)
            rc = wr_park(self, deadline);
    }
    wr_waitq_leave(&ex->room, &waiter);
    wr_nested_wait_leave(&nested);
    wr_group_unpin(group);
    return is_final(*reason) ? 0 : rc;
}

/* ---- both ---------------------------------------------------------------------------------------- */

bool wr_unsubmit(struct weir_task *task, struct wr_submission *sub, weir_reason reason)
{
    struct weir_group *group = task->group;
    struct wr_side *side = wr_task_side(task);
    struct wr_end end = end_refused(reason);
    bool unsettled;

    end.uncounted = true;
    end.handled = !group->executor->policy.given.listener.submitted;
    wr_group_lock(group);
    unsettled = wr_task_outcome(task) == WEIR_UNSETTLED;
    if (unsettled) {
        group->submitted--;
        wr_task_set_phase(task, WR_PHASE_REFUSED);
        if (side)
            side->drop_arg = NULL;
    }
    wr_unlock(&group->lock);
    if (unsettled)
        wr_task_end(task, &end);
    else
        found_cancelled(task, sub);
    return unsettled;
}

int wr_not_admitted(struct weir_task *task, struct wr_submission *sub, weir_reason reason)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    int rc = 0;

    if (policy->rejection == WEIR_BLOCK && !policy->rejection_fn && !is_final(reason))
        rc = wait_for_room(task, sub, &reason);
    if (rc)
        return wr_unsubmit(task, sub, reason) ? rc : 0;
    if (reason == WEIR_REASON_CANCELLED)
        found_cancelled(task, sub);
    else if (reason)
        turn_away(task, sub, reason);
    return 0;
}
