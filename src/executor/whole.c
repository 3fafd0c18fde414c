/* Submitting wholes: tasks that have no body and hold nothing, of which others are the parts; see task.h.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/submission.h"
#include "executor/tell.h"

#include <weir/error.h>

/* It has no body, and so nothing to wait for: it is pending at once, and holds nothing. Under the lock. */
static void begin_whole(struct weir_group *group, struct weir_task *task, struct wr_submission *sub,
                        weir_time now)
{
    wr_submission_hand_on_done(task, sub);
    group->submitted++;
    wr_group_entered(group);
    group->telling++; /* until it is over: who waits for quiet waits for it, too */
    task->started_at = now;
    wr_store(&task->error, (int32_t)wr_cancels(group), relaxed);
    wr_task_pend(task, WR_PHASE_ASIDE);
    wr_watch_arm(task, now, WEIR_REASON_RUN_DEADLINE);
}

static int enter_whole(weir_task **out, struct wr_target *target, struct wr_submission *sub)
{
    const weir_listener *listener = &target->ex->policy.given.listener;
    struct weir_task *task;
    struct weir_group *group;
    weir_time now = wr_os_now();
    int rc = wr_target_lock(&group, target);

    if (rc)
        return rc;
    if (wr_lacks_watch(group, sub))
        rc = WR_LACKS_WATCH;
    else if (wr_load(&target->ex->closed, seq_cst))
        rc = WEIR_ECLOSED; /* since we looked: nothing would end it */
    else
        rc = wr_submission_record(&task, group, sub, now);
    if (!rc)
        begin_whole(group, task, sub, now);
    wr_unlock(&group->lock);
    if (rc)
        return rc;
    *out = task;
    if (listener->submitted)
        listener->submitted(task, listener->arg);
    return 0;
}

int wr_submit_whole(weir_task **out, struct weir_group *group, struct wr_whole *whole,
                    const weir_task_options *opt)
{
    struct wr_target target = { .ex = group->executor, .key = group->key, .group = group };
    weir_task_options options;
    struct wr_submission sub;
    int rc;

    do {
        rc = wr_submission_init(&sub, &options, group->executor, NULL, NULL, opt, true, whole);
        if (!rc)
            rc = enter_whole(out, &target, &sub);
        wr_submission_discard(&sub);
    } while (rc == WR_LACKS_WATCH);
    wr_target_fini(&target);
    return rc;
}
