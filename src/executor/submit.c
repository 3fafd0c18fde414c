/* Submitting: the calls, and the way into the queue. What becomes of tasks that are not admitted: refuse.c.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/submission.h"

#include <string.h>
#include <weir/error.h>

enum {
    RUN_MAX = 64, /* tasks that enter in one hold of their group's lock: a microsecond or so */
};

/* ---- into the queue --------------------------------------------------------------------------- */

/* Why the group takes no task now, whatever the limits are. */
static inline weir_reason shut_out(struct weir_group *group, uint32_t cost)
{
    const struct wr_gates *gates = wr_group_gates(group);
    struct weir_executor *ex = group->executor;

    if (wr_load(&ex->closed, seq_cst)) /* since we looked */
        return WEIR_REASON_SHUT_DOWN;
    /* Likewise, or while it waited for room; its record is of this generation. */
    if (group->evicted)
        return WEIR_REASON_EVICTED;
    if (!wr_can_ever(&group->sums, &ex->root, cost))
        return WEIR_REASON_GROUP_QUEUE_FULL; /* a limit was lowered since we looked */
    return gates ? wr_gates_accept(gates, cost, wr_os_now()) : WEIR_REASON_NONE;
}

/* The last word on a task that its group and the executor have admitted, and that stands in its queue: the domain's. */
static weir_reason ask_domain(struct wr_submission *sub, struct weir_group *group,
                              struct wr_queue *queue, unsigned words, uint32_t cost)
{
    /* It knows whether the group is ready, now that the task stands there. */
    weir_reason reason = wr_domain_admit(group);

    if (reason) {
        wr_queue_unput(queue, words);
        wr_withdraw(&group->sums, &group->executor->root, cost);
        /* Loans may have been recalled on its behalf. */
        sub->wake |= wr_executor_has_ready(group->executor);
    }
    return reason;
}

/* Its record stands in the queue. */
static void record_entered(struct wr_submission *sub, const struct wr_side *side)
{
    wr_task_set_phase(sub->task, WR_PHASE_QUEUED);
    wr_submission_hand_on_done(sub);
    if (!side)
        return;
    wr_watch_arm(sub->task, sub->task->queued_at, WEIR_REASON_WAIT_DEADLINE);
    if (side->cost > 1 || side->level < WR_LEVEL_NORMAL)
        wr_waits_suspect(sub->ask->ex); /* it goes before others, or needs more than they do */
}

/* Whether there are tasks of lower priority, which a task of normal priority goes before. Behind tasks of its own priority it
 * changes nothing: what keeps the first of them keeps it. */
static inline bool leaves_others_behind(const struct weir_group *group)
{
    const struct wr_extras *extras = group->extras;

    return extras &&
           (extras->levels[WR_LEVEL_NORMAL + 1].first || extras->levels[WR_LEVEL_NORMAL + 2].first);
}

/* A task with a record, or without: its function and its argument are all that waits then. */
static inline __attribute__((always_inline)) int enter(struct wr_submission *sub,
                                                       struct weir_group *group,
                                                       struct weir_task *task)
{
    const struct wr_side *side = task ? wr_task_side(task) : NULL;
    unsigned words = task ? WR_RECORD_WORDS : WR_ENTRY_WORDS;
    int level = side ? side->level : WR_LEVEL_NORMAL;
    uint32_t cost = side ? side->cost : 1;
    struct weir_executor *ex = group->executor;
    struct wr_queue *queue;

    /* Cancelled while the listener heard of it, or while it waited for room? */
    sub->reason = task && wr_task_outcome(task) != WEIR_UNSETTLED ? WEIR_REASON_CANCELLED
                                                                  : shut_out(group, cost);
    if (WR_UNLIKELY(sub->reason))
        return 0;
    if (level != WR_LEVEL_NORMAL)
        wr_group_extras(group);
    queue = wr_group_level(group, level);
    if (WR_UNLIKELY(!queue || !wr_group_make_room(group, queue, words))) {
        sub->reason = WEIR_REASON_GROUP_QUEUE_FULL; /* not as its limits have it */
        return WEIR_ENOMEM;
    }
    sub->reason = wr_admit(&group->sums, &ex->root, cost);
    if (WR_UNLIKELY(sub->reason))
        return 0;
    if (task)
        wr_queue_put_record(queue, &task->queued);
    else
        wr_entry_put(queue, sub->now, sub->ask->fn, sub->arg);
    if (ex->domains && (sub->reason = ask_domain(sub, group, queue, words, cost)))
        return 0;
    if (group->sums.queued == 1)
        wr_group_entered(group);
    if (task)
        record_entered(sub, side);
    if (task || group->sums.queued == 1 || leaves_others_behind(group) ||
        wr_group_is_counted(group))
        sub->wake |= wr_group_refresh(group);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
    return 0;
}

int wr_submission_enter(struct wr_submission *sub, struct weir_group *group)
{
    return enter(sub, group, sub->task);
}

/* ---- the way in -------------------------------------------------------------------------------- */

/* Finds the present generation, or makes it. */
static int find_present(struct wr_request *ask)
{
    struct weir_group *group = NULL;
    int rc = wr_group_find(&group, ask->ex, ask->key);

    if (ask->pinned)
        wr_group_unpin(ask->group);
    ask->group = rc ? NULL : group;
    ask->pinned = !rc;
    return rc;
}

/* The latest group that is known; NULL: there is none yet. */
static struct weir_group *lock_latest(struct wr_request *ask)
{
    struct weir_group *group = ask->locked ? ask->locked : ask->group;

    if (!group)
        return wr_group_lock_by_key(ask->ex, ask->key);
    if (!ask->locked)
        wr_lock_outermost(&group->lock);
    ask->locked = NULL;
    return group;
}

/* Locks the group that a task goes to. If it was found by its key it may be gone as soon as it is unlocked, unless there is
 * a task of ours in it. NULL: *rc says why (WEIR_ECLOSED, WEIR_ENOMEM, WEIR_ENODOMAIN); or 0: its group may give it a
 * deadline, so it must be made anew. */
static struct weir_group *lock_present(struct wr_submission *sub, int *rc)
{
    struct weir_executor *ex = sub->ask->ex;

    sub->now = wr_os_now();
    for (*rc = 0; !*rc;) {
        struct weir_group *group = lock_latest(sub->ask);
        bool closed = wr_load(&ex->closed, seq_cst), evicted = false;
        if (group) {
            wr_group_locked(group);
            evicted = group->evicted;
            if (WR_LIKELY(!closed && !evicted &&
                          (sub->watched || !wr_load(&ex->policy.watched, relaxed))))
                return group;
            wr_unlock(&group->lock);
            if (!closed && !evicted)
                return NULL;
        }
        *rc = closed ? WEIR_ECLOSED : find_present(sub->ask);
    }
    return NULL;
}

/* By a thread that has submitted something, which may be a worker. */
static void made_work(struct weir_executor *ex)
{
    wr_worker_note_feeding();
    wr_executor_wake(ex);
}

static void unlock_and_wake(struct wr_submission *sub, struct weir_group *group)
{
    struct weir_executor *ex = sub->ask->ex;

    wr_unlock(&group->lock);
    if (sub->wake && sub->ask->last)
        wr_executor_search(ex);
    else if (sub->wake)
        made_work(ex);
    sub->wake = false;
}

void wr_task_begin_apart(struct weir_task *task, weir_time now)
{
    struct weir_group *group = task->group;

    wr_group_entered(group);
    group->telling++; /* until it is over: a wait for quiet waits for it, too */
    task->started_at = now;
    wr_store(&task->error, (int32_t)wr_cancels(group), relaxed);
    wr_watch_arm(task, now, WEIR_REASON_RUN_DEADLINE);
}

/* A whole has no body, and so nothing to wait for: it is pending at once, and holds nothing. Under the lock; unlocks. */
static void begin_whole(struct wr_submission *sub, struct weir_group *group)
{
    const weir_listener *listener = &group->executor->policy.given.listener;

    wr_submission_hand_on_done(sub);
    group->submitted++;
    wr_task_begin_apart(sub->task, sub->now);
    wr_task_pend(sub->task, WR_PHASE_ASIDE);
    wr_unlock(&group->lock);
    if (listener->submitted)
        listener->submitted(sub->task, listener->arg);
}

/* Under the lock at first; unlocks. */
static int admit_or_turn_away(struct wr_submission *sub, struct weir_group *group)
{
    const weir_listener *listener = &group->executor->policy.given.listener;
    int rc;

    if (listener->submitted) {
        struct wr_frame frame = { 0 };
        wr_unlock(&group->lock);
        wr_frame_enter(&frame);
        listener->submitted(sub->task, listener->arg);
        wr_frame_leave(&frame);
        wr_group_lock(group);
    }
    group->submitted++;
    rc = wr_submission_enter(sub, group);
    unlock_and_wake(sub, group);
    return sub->reason ? wr_not_admitted(sub, rc) : 0;
}

/* A record for it, which enters, or is dealt with otherwise. 1, or an error. Under the lock; unlocks. */
static int submit_record(struct wr_submission *sub, struct weir_group *group)
{
    uint32_t cost = sub->side ? sub->side->cost : 1;
    bool fits = sub->ask->whole || wr_can_ever(&group->sums, &group->executor->root, cost);
    int rc = fits ? wr_submission_record(sub, group) : WEIR_EINVAL;

    if (rc) {
        unlock_and_wake(sub, group);
        return rc;
    }
    if (sub->ask->whole)
        begin_whole(sub, group);
    else
        rc = admit_or_turn_away(sub, group);
    if (sub->out && !rc)
        *sub->out = sub->task;
    else if (sub->out)
        weir_task_unref(sub->task);
    return rc ? rc : 1;
}

static int submit_with_record(struct wr_submission *sub)
{
    weir_task_options options;
    int rc = wr_submission_prepare(sub, &options);
    struct weir_group *group = rc ? NULL : lock_present(sub, &rc);

    if (group)
        rc = submit_record(sub, group);
    wr_submission_discard(sub);
    return rc;
}

/* ---- plain tasks --------------------------------------------------------------------------------- */

/* Whether a task is no more than a function and its argument while it waits: without handle, options, locals or perhaps a
 * deadline, and no listener is shown it. */
static inline bool is_plain(struct weir_executor *ex, weir_task **out, weir_fn *fn,
                            const weir_task_options *opt)
{
    return !out && !opt && fn && !ex->policy.given.listener.submitted &&
           !wr_load(&ex->policy.watched, relaxed) && *wr_context_slot() == NULL;
}

/* Some of the tasks: those that enter in one hold of the group's lock, sharing one look at the clock and one wake-up. If the
 * first is not admitted as it is, it gets a record, and another try with that. How many, or an error. */
static int submit_plain(struct wr_submission *sub, void *const *arg, size_t count)
{
    size_t entered = 0;
    int rc;
    struct weir_group *group = lock_present(sub, &rc);

    if (!group)
        return rc;
    do {
        sub->arg = arg[entered];
        rc = enter(sub, group, NULL);
    } while (!sub->reason && ++entered < count && entered < RUN_MAX);
    if (!entered && !rc)
        return submit_record(sub, group);
    unlock_and_wake(sub, group);
    return entered ? (int)entered : rc;
}

/* Whether nothing but the group's own limits stands between a plain task and the queue, and these count a task only when it
 * starts. */
static inline bool admits_freely(struct weir_executor *ex, const struct weir_group *group)
{
    return !group->evicted && !wr_load(&ex->closed, seq_cst) && !group->asks_gates &&
           !wr_load(&ex->policy.watched, relaxed) && !wr_group_is_counted(group) &&
           !(ex->domains && wr_domain_is_released(group)) && wr_admits_freely(&group->sums);
}

/* The common case: answers how many of the tasks have entered; 0: they must in another way. Under the lock;
 * unlocks if some have. */
static inline __attribute__((always_inline)) size_t submit_freely(struct weir_executor *ex,
                                                                  struct weir_group *group,
                                                                  weir_fn *fn, void *const *arg,
                                                                  size_t count, weir_time now)
{
    struct wr_queue *queue = &group->queue;
    bool wake = false, first = group->sums.queued == 0;
    size_t i = 0;

    if (WR_LIKELY(admits_freely(ex, group)))
        while (i < count && i < RUN_MAX && wr_group_make_room(group, queue, WR_ENTRY_WORDS))
            wr_entry_put(queue, now, fn, arg[i++]);
    if (WR_UNLIKELY(!i))
        return 0;
    wr_admit_many(&group->sums, (uint32_t)i);
    if (first)
        wr_group_entered(group);
    /* A beat that is out has tasks before it, and a place in the ring that is not ours to change. */
    if (first || (leaves_others_behind(group) && !wr_group_has_beat(group)))
        wake = wr_group_refresh(group);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
    wr_unlock(&group->lock);
    if (wake)
        made_work(ex);
    return i;
}

/* ---- the calls ------------------------------------------------------------------------------------ */

/* The tasks that are left, until one fails. */
static int submit_rest(struct wr_request *ask, weir_task **out, void *const *arg, size_t count)
{
    struct wr_submission sub = { .ask = ask };
    int rc = !ask->locked && wr_load(&ask->ex->closed, acquire) ? WEIR_ECLOSED : 0;

    while (rc >= 0 && ask->done < count) {
        sub.arg = arg[ask->done];
        sub.out = out ? &out[ask->done] : NULL;
        if (ask->locked || is_plain(ask->ex, out, ask->fn, ask->opt))
            rc = submit_plain(&sub, &arg[ask->done], count - ask->done);
        else
            rc = submit_with_record(&sub);
        ask->done += rc > 0 ? (size_t)rc : 0;
    }
    if (ask->pinned)
        wr_group_unpin(ask->group);
    return rc < 0 ? rc : 0;
}

/* A task that does not enter freely. */
static __attribute__((noinline)) int submit_one(weir_task **out, struct weir_executor *ex,
                                                const char *key, struct weir_group *group,
                                                struct weir_group *locked, weir_fn *fn, void *arg,
                                                const weir_task_options *opt)
{
    struct wr_request ask = { ex, key, group, locked, .fn = fn, .opt = opt };

    return submit_rest(&ask, out, &arg, 1);
}

int weir_submit(weir_task **out, weir_group *group, weir_fn *fn, void *arg,
                const weir_task_options *opt)
{
    struct weir_group *locked = NULL;

    if (WR_LIKELY(group && is_plain(group->executor, out, fn, opt))) {
        weir_time now = wr_os_now();
        wr_lock_outermost(&group->lock);
        if (WR_LIKELY(submit_freely(group->executor, group, fn, &arg, 1, now)))
            return 0;
        locked = group;
    }
    if (out)
        *out = NULL;
    if (!group)
        return WEIR_EINVAL;
    return submit_one(out, group->executor, group->key, group, locked, fn, arg, opt);
}

int weir_submit_key(weir_task **out, weir_executor *ex, const char *key, weir_fn *fn, void *arg,
                    const weir_task_options *opt)
{
    struct weir_group *locked = NULL;

    if (out)
        *out = NULL;
    if (!ex)
        return WEIR_EINVAL;
    if (wr_load(&ex->closed, acquire))
        return WEIR_ECLOSED;
    if (!key)
        return WEIR_EINVAL;
    if (is_plain(ex, out, fn, opt)) {
        weir_time now = wr_os_now();
        locked = wr_group_lock_by_key(ex, key);
        if (locked && submit_freely(ex, locked, fn, &arg, 1, now))
            return 0;
    }
    return submit_one(out, ex, key, NULL, locked, fn, arg, opt);
}

int64_t weir_submit_many(weir_task **out, weir_group *group, weir_fn *fn, void *const *arg,
                         size_t count, const weir_task_options *opt)
{
    struct wr_request ask;
    int rc;

    if (!group || !fn || (count && !arg))
        return WEIR_EINVAL;
    if (out && count)
        memset(out, 0, count * sizeof(out[0]));
    ask = (struct wr_request){ group->executor, group->key, group, .fn = fn, .opt = opt };
    while (ask.done < count && !ask.locked && is_plain(ask.ex, out, fn, opt)) {
        weir_time now = wr_os_now();
        size_t entered;
        wr_lock_outermost(&group->lock);
        entered = submit_freely(ask.ex, group, fn, &arg[ask.done], count - ask.done, now);
        ask.done += entered;
        ask.locked = entered ? NULL : group;
    }
    rc = submit_rest(&ask, out, arg, count);
    return ask.done || !rc ? (int64_t)ask.done : rc;
}

int wr_submit_last(weir_task **out, struct weir_group *group, const char *key, weir_fn *fn,
                   void *arg, const weir_task_options *opt)
{
    struct wr_request ask = { group->executor, group->key, group, .fn = fn, .opt = opt };

    ask.last = true;
    if (key) {
        ask.key = key;
        ask.group = NULL;
    }
    return submit_rest(&ask, out, &arg, 1);
}

int wr_submit_whole(weir_task **out, struct weir_group *group, struct wr_whole *whole,
                    const weir_task_options *opt)
{
    struct wr_request ask = { group->executor, group->key, group, .opt = opt, .whole = whole };
    void *none = NULL;

    return submit_rest(&ask, out, &none, 1);
}
