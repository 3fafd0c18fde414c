/* The watchdog: what happens when a task's time is up. It runs on the clock's thread, never on the workers it
 * polices, and calls none of the user's code there: listener and callbacks are told of the end by a thread of
 * the pool's, or, if there is none to be had, by a worker.
 *
 * Arming takes a reference, which the thread that disarms gives back; if the alarm is about to fire, the firing
 * does. So no thread waits for another.
 * SPDX-License-Identifier: MIT */
#include "executor/watch.h"

#include "base/assert.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/tell.h"

#include <stddef.h>
#include <weir/error.h>

static const int64_t NS_PER_MS = 1000000;

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
    watch->own = *own;
}

/* ---- arming ------------------------------------------------------------------------------------ */

static void disarm(struct wr_watch *watch)
{
    watch->due = 0;
    if (wr_clock_cancel(&watch->task->group->executor->clock, &watch->alarm))
        wr_sub(&watch->task->word, WR_REF, relaxed); /* not the last: the caller has one */
}

static weir_time later(weir_time when, int64_t ns)
{
    return ns == 0 || when > WEIR_FOREVER - ns ? WEIR_FOREVER : when + ns;
}

/* For `reason` after that time, or the end of all its time, whichever comes first. */
static void arm(struct wr_watch *watch, weir_time from, int64_t ns, weir_reason reason)
{
    weir_time when = later(from, ns);
    bool total = watch->total_at <= when;

    watch->due = total ? watch->total_at : when;
    watch->reason = total ? WEIR_REASON_TOTAL_DEADLINE : reason;
    if (watch->due == WEIR_FOREVER)
        disarm(watch);
    else if (wr_clock_set(&watch->task->group->executor->clock, &watch->alarm, watch->due))
        wr_add(&watch->task->word, WR_REF, relaxed); /* it fires under the group's lock: not yet */
}

/* Answers how long it may wait. */
static int64_t resolve(struct wr_watch *watch)
{
    struct weir_task *task = watch->task;
    const struct wr_extras *extras = task->group->extras;
    weir_deadlines d = wr_policy_deadlines(&task->group->executor->policy, &watch->own,
                                           extras ? &extras->deadlines : NULL);

    watch->run_ns = d.run_ms * NS_PER_MS;
    watch->total_at = later(task->queued_at, d.total_ms * NS_PER_MS);
    return d.wait_ms * NS_PER_MS;
}

void wr_watch_queued(struct weir_task *task)
{
    struct wr_watch *watch = watch_of(task);

    if (watch)
        arm(watch, task->queued_at, resolve(watch), WEIR_REASON_WAIT_DEADLINE);
}

void wr_watch_started(struct weir_task *task, weir_time now)
{
    struct wr_watch *watch = watch_of(task);

    if (!watch)
        return;
    if (!watch->total_at) /* it has not waited */
        resolve(watch);
    arm(watch, now, watch->run_ns, WEIR_REASON_RUN_DEADLINE);
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

    return watch && watch->due;
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

/* The permits of a task go back before its body is over. */
static void free_permits(struct wr_watch *watch)
{
    struct weir_group *group = watch->task->group;

    watch->freed = true;
    group->bodies--;
    wr_group_finish(group, wr_task_cost(watch->task));
    if (wr_group_refresh(group) || wr_executor_has_ready(group->executor))
        wr_executor_wake(group->executor);
    wr_room_made(group->executor);
}

/* The body runs on; what becomes of its permits is the policy's to say. */
static void overdue(struct wr_watch *watch)
{
    struct weir_task *task = watch->task;
    struct weir_executor *ex = task->group->executor;

    if (watch->late || watch->freed)
        return;
    if (watch->carried == WR_TO_THREAD) { /* no body runs on, and none will */
        free_permits(watch);
        return;
    }
    watch->late = true;
    count_overdue(task->group, 1);
    if (wr_task_phase(task) == WR_PHASE_GUEST || !may_free(ex))
        return; /* a guest has none */
    free_permits(watch);
    watch->lost = ex->policy.given.overdue == WEIR_REPLACE && watch->carried == WR_BY_THREAD;
    if (watch->lost)
        wr_threads_lost(ex, true);
}

bool wr_watch_over(struct weir_task *task)
{
    struct wr_watch *watch = watch_of(task);
    struct weir_executor *ex = task->group->executor;

    if (!watch)
        return false;
    disarm(watch);
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
    struct wr_end end = wr_end_without_body(WEIR_TIMED_OUT, watch->reason);

    watch->due = 0;
    if (wr_phase_has_body(wr_task_phase(watch->task)))
        overdue(watch); /* first: a waiter that is told finds the permits back, if they come back */
    return wr_task_end_locked(watch->task, &end);
}

static void tell(struct wr_job *job)
{
    wr_tell(WR_CONTAINER(job, struct wr_watch, job)->task);
}

static void drop(struct wr_job *job)
{
    struct weir_task *task = WR_CONTAINER(job, struct wr_watch, job)->task;
    struct weir_group *group = task->group;

    weir_task_unref(task);
    wr_group_told(group);
}

/* Has it done on a thread of the pool's; if there is none and none can be started, by a worker. */
static void leave_to_others(struct wr_watch *watch, void (*run)(struct wr_job *job))
{
    struct weir_executor *ex = watch->task->group->executor;
    struct wr_untold *untold = &ex->untold;

    watch->job.run = run;
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

void wr_watch_tell(struct weir_task *task)
{
    struct wr_watch *watch = watch_of(task);

    watch->job.run(&watch->job);
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

/* Gives the alarm's reference back, unless (false) it is the last one; then nothing changes any more. */
static bool unref_unless_last(struct weir_task *task)
{
    uint32_t word = wr_load(&task->word, acquire);

    while (word / WR_REF > 1)
        if (wr_cas(&task->word, &word, word - WR_REF, acq_rel))
            return true;
    return false;
}

static void fired(struct wr_alarm *alarm, weir_time now)
{
    struct wr_watch *watch = WR_CONTAINER(alarm, struct wr_watch, alarm);
    struct weir_task *task = watch->task;
    struct weir_group *group = task->group;
    bool due, won, last, users;

    wr_group_lock(group);
    due =
        watch->due && watch->due <= now; /* else it was moved on, or disarmed, since it went off */
    won = due && expire(watch);
    last = !unref_unless_last(task); /* never if it won: the telling has one */
    users = won ? users_are_told(task) : last && !wr_task_goes_quietly(task);
    if (won && !users) { /* under this hold of the lock: no callback joins in between */
        struct wr_watcher *callbacks = wr_task_close_watchers(task);
        WR_ASSERT(!callbacks);
    }
    if (last) { /* a drain waits for it, too: it may keep a value */
        wr_group_entered(group);
        group->telling++;
    }
    wr_unlock(&group->lock);
    if (users)
        leave_to_others(watch, won ? tell : drop);
    else if (won)
        wr_task_told(task);
    else if (last)
        drop(&watch->job);
}
