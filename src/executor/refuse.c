/* What becomes of a task that is not admitted: it is turned away, run by its caller, or waits for room. See submission.h.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "base/reason.h"
#include "executor/settle.h"
#include "executor/submission.h"
#include "executor/tell.h"

#include <weir/error.h>

/* Runs the body in the submitting thread, outside all limits. */
static void run_here(struct weir_task *task)
{
    struct weir_executor *ex = task->group->executor;
    const weir_listener *listener = &ex->policy.given.listener;
    void *arg = wr_task_arg(task), *value = NULL;
    weir_fn *fn = task->fn;
    struct wr_frame frame = { 0 };
    struct wr_waiter guest;
    struct wr_end end;
    int error;

    wr_guest_enter(&frame, &ex->crew.source, task);
    wr_waitq_enter(&ex->guests, &guest, frame.parker);
    wr_group_lock(task->group);
    wr_task_begin_apart(task, wr_os_now());
    wr_task_set_phase(task, WR_PHASE_GUEST);
    task->runner = frame.parker;
    wr_unlock(&task->group->lock);
    if (listener->started)
        listener->started(task, listener->arg);
    error = wr_task_call(task, fn, arg, &value);
    wr_waitq_leave(&ex->guests, &guest);
    wr_frame_leave(&frame);
    if (error == WEIR_PENDING) {
        wr_body_pends(task, value);
        return;
    }
    end = wr_end_of_body(task, error, value, wr_os_now());
    wr_task_end(task, &end);
}

/* Asks rejection_fn how the task ends. */
static void ask_handler(struct weir_task *task, struct wr_end *end)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    weir_result result;
    int rc;

    wr_task_result(&result, task); /* of which it has no end yet */
    result.outcome = end->outcome;
    result.error = end->error;
    result.reason = end->reason;
    result.started_at = result.ended_at = end->at;
    rc = policy->rejection_fn(&result, task, end->reason, policy->rejection_arg);
    if (wr_reason_is_known(result.reason))
        end->reason = result.reason;
    if (rc) {
        end->error = rc;
    } else if (result.outcome != WEIR_UNSETTLED && (unsigned)result.outcome <= WEIR_TIMED_OUT) {
        end->outcome = result.outcome;
        end->error = result.error;
    }
    end->value = result.value;
    end->started_at = result.started_at;
    end->at = result.ended_at;
    end->handled = true;
}

/* Permits and places are back: only the task itself is left to deal with. If the submit `fails` there was none: it is not
 * counted, its argument stays the caller's, and its options' callback is not called. But a listener that was told of it,
 * and watchers that have joined since, hear of a rejection. */
static void turn_away(struct weir_task *task, weir_reason reason, bool fails)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    bool asks = policy->rejection_fn && !fails;
    bool runs_here = !policy->rejection_fn && !fails && policy->rejection == WEIR_CALLER_RUNS &&
                     reason != WEIR_REASON_SHUT_DOWN;
    struct wr_end end = wr_end_without_body(WEIR_REJECTED, reason);
    struct wr_frame frame = { 0 };

    end.body_over = true;
    end.handled = fails && !policy->listener.submitted;
    end.uncounted = fails;
    wr_frame_enter(&frame);
    if ((runs_here || asks) && policy->listener.rejected)
        policy->listener.rejected(task, reason, policy->listener.arg); /* else told at its end */
    if (asks)
        ask_handler(task, &end);
    if (runs_here)
        run_here(task);
    else
        wr_task_end(task, &end);
    wr_frame_leave(&frame);
}

/* From here on the task cannot be cancelled any more. `fails`: nor was it ever submitted. False: it was cancelled before, which
 * was told, and its reference is gone. */
static bool refuse(struct wr_submission *sub, bool fails)
{
    struct weir_task *task = sub->task;
    struct weir_group *group = task->group;
    struct wr_side *side = wr_task_side(task);
    struct wr_end end;
    bool unsettled;

    wr_group_lock(group);
    unsettled = wr_task_outcome(task) == WEIR_UNSETTLED;
    if (unsettled) {
        wr_task_set_phase(task, WR_PHASE_REFUSED);
        group->submitted -= fails;
        if (!fails)
            wr_submission_hand_on_done(sub);
        else if (side)
            side->drop_arg = NULL;
    }
    wr_unlock(&group->lock);
    if (unsettled)
        return true;
    if (sub->on_done)
        wr_watcher_attach(sub->on_done, task);
    sub->on_done = NULL;
    end = wr_end_without_body(WEIR_CANCELLED, WEIR_REASON_CANCELLED);
    end.body_over = true;
    wr_task_end(task, &end);
    return false;
}

/* Whether there is no use in waiting any longer, or no need. */
static bool is_final(weir_reason reason)
{
    return reason == WEIR_REASON_NONE || reason == WEIR_REASON_SHUT_DOWN ||
           reason == WEIR_REASON_EVICTED || reason == WEIR_REASON_CANCELLED;
}

/* WEIR_BLOCK: tries again whenever a task has left. 0: it is decided, sub->reason says how. */
static int wait_for_room(struct wr_submission *sub)
{
    struct weir_group *group = sub->task->group;
    struct weir_executor *ex = group->executor;
    uint32_t cost = wr_task_cost(sub->task);
    weir_time given = sub->options ? sub->options->deadline : 0;
    weir_time deadline = given ? given : WEIR_FOREVER;
    struct wr_parker storage, *self = wr_parker_self(&storage);
    struct wr_nested_wait nested = { .room = group,
                                     .cost = cost,
                                     .bounded = deadline != WEIR_FOREVER };
    struct wr_waiter waiter;
    int rc = 0;

    wr_group_lock(group);
    group->pins++; /* once the task is in, it may end and its group go, before the wait is left */
    wr_unlock(&group->lock);
    wr_waitq_enter(&ex->room, &waiter, self);
    for (;;) {
        wr_group_lock(group);
        if (wr_submission_enter(sub, group))
            rc = WEIR_ENOMEM;
        else if (!wr_can_ever(&group->sums, &ex->root, cost))
            rc = WEIR_EINVAL; /* a limit was lowered: there will be no room */
        wr_unlock(&group->lock);
        if (sub->wake) /* also if it is not in: slots may have moved on its behalf */
            wr_executor_wake(ex);
        sub->wake = false;
        if (is_final(sub->reason) || rc)
            break;
        rc = weir_cancelled() ? WEIR_ECANCELED : wr_nested_wait_look(&nested, sub->reason);
        if (!rc)
            rc = wr_park(self, deadline);
    }
    wr_waitq_leave(&ex->room, &waiter);
    wr_nested_wait_leave(&nested);
    wr_group_unpin(group);
    return is_final(sub->reason) ? 0 : rc;
}

int wr_not_admitted(struct wr_submission *sub, int rc)
{
    const weir_policy *policy = &sub->ask->ex->policy.given;

    if (!rc && policy->rejection == WEIR_BLOCK && !policy->rejection_fn && !is_final(sub->reason))
        rc = wait_for_room(sub);
    if ((!rc && !sub->reason) || !refuse(sub, rc != 0))
        return 0;
    turn_away(sub->task, sub->reason, rc != 0);
    return rc;
}
