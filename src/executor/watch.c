/* The watchdog: what happens when a task's time is up. It runs on the clock's thread, never on the workers it
 * polices, and calls none of the user's code there: listener and callbacks are told of the end by a thread of
 * the pool's, or, if there is none to be had, by a worker.
 *
 * The watch's reference is given back when the task is over; if the alarm is about to fire, by the firing. So no thread
 * waits for another.
 * SPDX-License-Identifier: MIT */
#include "executor/watch.h"

#include "base/assert.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/tell.h"

#include <stddef.h>

static struct wr_watch *watch_of(const struct weir_task *task)
{
    struct wr_side *side = wr_task_side(task);

    return side ? side->watch : NULL;
}

static void fired(struct wr_alarm *alarm, weir_time now);

void wr_watch_init(struct wr_watch *watch, struct weir_task *task, const weir_deadlines *own)
{
    wr_alarm_init(&watch->alarm, fired);
    watch->task = task;
    watch->deadlines = *own;
    watch->next.at = WEIR_FOREVER;
    wr_add(&task->word, WR_REF, relaxed);
}

/* ---- arming ------------------------------------------------------------------------------------ */

static void disarm(struct wr_watch *watch)
{
    if (wr_clock_cancel(&watch->task->group->executor->clock, &watch->alarm))
        watch->alarms--;
    watch->next.at = WEIR_FOREVER;
}

/* The deadlines that apply are found out once: those of the group's that change later are for other tasks. */
void wr_watch_arm(struct weir_task *task, weir_time from, weir_reason reason)
{
    struct wr_watch *watch = watch_of(task);
    const struct weir_group *group = task->group;

    if (!watch)
        return;
    if (!watch->resolved)
        watch->deadlines = wr_policy_deadlines(&group->executor->policy, &watch->deadlines,
                                               group->extras ? &group->extras->deadlines : NULL);
    watch->resolved = true;
    watch->next = wr_deadline_next(&watch->deadlines, task->queued_at, from, reason);
    if (watch->next.at == WEIR_FOREVER)
        disarm(watch);
    else if (wr_clock_set(&group->executor->clock, &watch->alarm, watch->next.at))
        watch->alarms++; /* it fires under the group's lock: not yet */
}

void wr_watch_carried(struct weir_task *task, enum wr_carried carried)
{
    struct wr_watch *watch = watch_of(task);

    if (watch)
        watch->carried = carried;
}

bool wr_watch_is_armed(const struct weir_task *task)
{
    const struct wr_watch *watch = watch_of(task);

    return watch && watch->next.at != WEIR_FOREVER;
}

weir_deadlines wr_group_no_deadlines(const struct weir_group *group, int64_t total_ms)
{
    bool watched = total_ms || wr_load(&group->executor->policy.watched, relaxed);
    int64_t none = watched ? WEIR_NO_LIMIT : 0;

    return (weir_deadlines){ none, none, total_ms ? total_ms : none };
}

/* ---- firing ------------------------------------------------------------------------------------ */

/* One body more that is overdue, or (-1) one less. */
static void count_overdue(struct weir_group *group, int more)
{
    struct wr_domain *domain = wr_group_domain(group);

    if (wr_group_extras(group) &&
        (more > 0 || group->extras->overdue)) /* without memory, not counted */
        group->extras->overdue += (uint32_t)more;
    if (domain)
        wr_add(&domain->overdue, (uint64_t)(int64_t)more, relaxed);
}

/* Whether the permits of one more overdue body may go back while it runs on. */
static bool may_free(struct weir_executor *ex)
{
    uint32_t freed = wr_load(&ex->freed, relaxed);

    if (ex->policy.given.overdue == WEIR_HOLD)
        return false;
    do {
        if (freed >= (uint64_t)ex->policy.given.overdue_max)
            return false;
    } while (!wr_cas(&ex->freed, &freed, freed + 1, acquire));
    return true;
}

/* The time of a body is up, and it runs on; what becomes of its permits is the policy's to say. */
static void overdue(struct wr_watch *watch)
{
    struct weir_task *task = watch->task;
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor;

    watch->late = watch->carried != WR_TO_THREAD; /* else no body runs on, and none will */
    if (watch->late)
        count_overdue(group, 1);
    if (wr_task_phase(task) == WR_PHASE_GUEST || (watch->late && !may_free(ex)))
        return; /* a guest has none */
    watch->freed = true;
    group->bodies--;
    wr_group_finish(group, wr_task_cost(task));
    watch->lost = ex->policy.given.overdue == WEIR_REPLACE && watch->carried == WR_BY_THREAD;
    if (watch->lost)
        wr_threads_lost(ex, true);
    if (wr_group_refresh(group) || wr_executor_has_ready(ex))
        wr_executor_wake(ex);
    wr_room_made(ex);
}

bool wr_watch_over(struct weir_task *task)
{
    struct wr_watch *watch = watch_of(task);
    struct weir_executor *ex = task->group->executor;

    if (!watch)
        return false;
    disarm(watch);
    watch->parting = watch->alarms > 0;
    if (watch->parting) {
        task->group->telling++;
        wr_task_side(task)->arg_holds++;
    } else {
        wr_sub(&task->word, WR_REF, relaxed); /* not the last: the caller has one */
    }
    if (watch->late) {
        count_overdue(task->group, -1);
        if (watch->lost)
            wr_threads_lost(ex, false);
        if (watch->freed && wr_sub(&ex->freed, 1, seq_cst) == 1)
            wr_waitq_wake_all(&ex->quiet);
    }
    return watch->freed;
}

/* Under the lock. True: this settled the task. If it was cancelled before, its body may be overdue all the same. */
static bool expire(struct wr_watch *watch)
{
    struct wr_end end = wr_end_without_body(WEIR_TIMED_OUT, watch->next.reason);

    disarm(watch); /* it may have been moved on while it went off, and be due again */
    if (wr_phase_has_body(wr_task_phase(watch->task)))
        overdue(watch); /* first: a waiter that is told finds the permits back, if they come back */
    return wr_task_end_locked(watch->task, &end);
}

void wr_watch_tell(struct weir_task *task)
{
    if (watch_of(task)->won)
        wr_tell(task);
    else
        wr_task_told(task);
}

static void run_job(struct wr_job *job)
{
    wr_watch_tell(WR_CONTAINER(job, struct wr_watch, job)->task);
}

/* Has it told on a thread of the pool's; if there is none and none can be started, by a worker. */
static void leave_to_others(struct wr_watch *watch)
{
    struct weir_executor *ex = watch->task->group->executor;
    struct wr_untold *untold = &ex->untold;

    watch->job.run = run_job;
    if (wr_runtime_job(ex->crew.runtime, &watch->job, WR_JOB_AT_ONCE) == 0)
        return;
    wr_lock(&untold->lock);
    wr_list_append(&untold->jobs, &watch->job.link);
    wr_add(&ex->chores, 1, seq_cst); /* pairs with a sleeper's look; see parking.md */
    wr_unlock(&untold->lock);
    wr_executor_wake_all(ex);
}

struct weir_task *wr_watch_untold(struct weir_executor *ex)
{
    struct wr_untold *untold = &ex->untold;
    struct wr_list *first;
    struct weir_task *task = NULL;

    wr_lock(&untold->lock);
    first = untold->jobs.next;
    if (first != &untold->jobs) {
        task = WR_CONTAINER(first, struct wr_watch, job.link)->task;
        wr_list_remove(first);
        wr_sub(&ex->chores, 1, seq_cst);
    }
    wr_unlock(&untold->lock);
    return task;
}

/* Whether telling would run code of the user's. Under the lock. The locals are a running body's own. */
static bool users_are_told(const struct weir_task *task)
{
    const struct wr_watcher *watcher = wr_load(&task->watchers, relaxed);
    const struct wr_side *side = wr_task_side(task);
    bool over = wr_task_phase(task) == WR_PHASE_OVER;

    for (; watcher && watcher != WR_TOLD; watcher = watcher->next)
        if (!watcher->waiter)
            return true;
    return task->group->executor->policy.given.listener.completed || side->whole || side->drop ||
           side->drop_arg || (over && side->locals);
}

static void fired(struct wr_alarm *alarm, weir_time now)
{
    struct wr_watch *watch = WR_CONTAINER(alarm, struct wr_watch, alarm);
    struct weir_task *task = watch->task;
    struct weir_group *group = task->group;
    bool tells, users;

    wr_group_lock(group);
    watch->alarms--;
    watch->won = watch->next.at <= now && expire(watch); /* else it was moved on */
    tells = watch->won || watch->parting;
    users = tells && users_are_told(task);
    if (watch->won && !users) { /* under this hold of the lock: no callback joins in between */
        struct wr_watcher *callbacks = wr_task_close_watchers(task);
        WR_ASSERT(!callbacks);
    }
    wr_unlock(&group->lock);
    if (users)
        leave_to_others(watch);
    else if (tells)
        wr_task_told(task);
}
