/* Submitting: the calls, and the way into the queue. What becomes of tasks that are not admitted: refuse.c.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/executor.h"
#include "executor/group_check.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/submission.h"
#include "executor/tell.h"

#include <string.h>
#include <weir/error.h>

enum {
    RUN_MAX = 64, /* tasks that enter in one hold of their group's lock: a microsecond or so */
};

/* ---- into the queue --------------------------------------------------------------------------- */

/* The queue of a level, with room for so many words more; NULL without memory. */
static struct wr_queue *queue_of(struct weir_group *group, uint8_t level, unsigned words)
{
    struct wr_queue *queue;

    if (level != WR_LEVEL_NORMAL && !wr_group_extras(group))
        return NULL;
    queue = wr_group_level(group, level);
    return wr_queue_make_room(group, queue, words) ? queue : NULL;
}

/* What keeps any task out, whatever the limits are. */
static weir_reason shut_out(struct weir_group *group, uint32_t cost)
{
    struct weir_executor *ex = group->executor;

    if (wr_load(&ex->closed, seq_cst)) /* since we looked */
        return WEIR_REASON_SHUT_DOWN;
    /* Likewise, or while it waited for room; its record is of this generation. */
    if (group->evicted)
        return WEIR_REASON_EVICTED;
    if (!wr_can_ever(&group->sums, &ex->root, cost))
        return WEIR_REASON_GROUP_QUEUE_FULL; /* a limit was lowered since we looked */
    return wr_group_gates(group) ? wr_gates_accept(group, cost, wr_os_now()) : WEIR_REASON_NONE;
}

/* The last word on a task that its group and the executor have admitted, and that stands in its queue: the domain's. */
static weir_reason ask_domain(struct weir_group *group, struct wr_queue *queue, uint32_t cost,
                              unsigned words, bool *wake)
{
    struct weir_executor *ex = group->executor;
    weir_reason reason;

    if (!ex->domains)
        return WEIR_REASON_NONE;
    reason = wr_domain_admit(group); /* knows whether it is ready, now that it stands there */
    if (reason) {
        wr_queue_unput(queue, words);
        wr_withdraw(&group->sums, &ex->root, cost);
        *wake = wr_executor_has_ready(ex); /* loans may have been recalled on its behalf */
    }
    return reason;
}

int wr_submission_enter(struct weir_group *group, struct weir_task *task, struct wr_submission *sub,
                        weir_reason *reason, bool *wake)
{
    struct weir_executor *ex = group->executor;
    struct wr_side *side = wr_task_side(task);
    uint32_t cost = wr_task_cost(task);
    struct wr_queue *queue;

    /* Cancelled while the listener heard of it, or while it waited for room? */
    *reason =
        wr_task_outcome(task) != WEIR_UNSETTLED ? WEIR_REASON_CANCELLED : shut_out(group, cost);
    if (*reason)
        return 0;
    queue = queue_of(group, side ? side->level : WR_LEVEL_NORMAL, WR_RECORD_WORDS);
    if (!queue) {
        *reason = WEIR_REASON_GROUP_QUEUE_FULL; /* not as its limits have it */
        return WEIR_ENOMEM;
    }
    *reason = wr_admit(&group->sums, &ex->root, cost);
    if (*reason)
        return 0;
    wr_queue_put_record(queue, task);
    *reason = ask_domain(group, queue, cost, WR_RECORD_WORDS, wake);
    if (*reason)
        return 0;
    wr_task_set_phase(task, WR_PHASE_QUEUED);
    wr_submission_hand_on_done(task, sub);
    wr_group_entered(group);
    if (side)
        wr_watch_arm(task, task->queued_at, WEIR_REASON_WAIT_DEADLINE);
    if (side && (side->cost > 1 || side->level < WR_LEVEL_NORMAL))
        wr_waits_suspect(ex); /* it goes before others, or needs more than they do */
    *wake = wr_group_refresh(group);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
    return 0;
}

/* Whether there are tasks of lower priority, which one that comes last of its own goes before. Behind tasks of its own it
 * changes nothing: what keeps the first of them keeps it. */
static inline bool leaves_others_behind(const struct weir_group *group)
{
    const struct wr_extras *extras = group->extras;

    return extras &&
           (extras->levels[WR_LEVEL_NORMAL + 1].first || extras->levels[WR_LEVEL_NORMAL + 2].first);
}

/* The same for a task that needs no record while it waits. */
static int enter_plain(struct weir_group *group, weir_fn *fn, void *arg, weir_time now,
                       weir_reason *reason, bool *wake)
{
    struct weir_executor *ex = group->executor;

    *reason = shut_out(group, 1);
    if (WR_UNLIKELY(*reason))
        return 0;
    if (WR_UNLIKELY(!wr_queue_make_room(group, &group->queue, WR_ENTRY_WORDS)))
        return WEIR_ENOMEM;
    *reason = wr_admit(&group->sums, &ex->root, 1);
    if (WR_UNLIKELY(*reason))
        return 0;
    wr_queue_put_entry(&group->queue, now, fn, arg);
    if (ex->domains && (*reason = ask_domain(group, &group->queue, 1, WR_ENTRY_WORDS, wake)))
        return 0;
    if (group->sums.queued == 1)
        wr_group_entered(group);
    if (group->sums.queued == 1 || leaves_others_behind(group) || wr_group_is_counted(group))
        *wake = wr_group_refresh(group);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
    return 0;
}

/* ---- the way in -------------------------------------------------------------------------------- */

/* Finds the present generation, or makes it. */
static int find_present(struct wr_target *target)
{
    struct weir_group *group = NULL;
    int rc = wr_group_find(&group, target->ex, target->key);

    wr_target_fini(target);
    target->pinned = target->group = rc ? NULL : group;
    return rc;
}

/* The latest group that is known; NULL: there is none yet. */
static struct weir_group *lock_latest(struct wr_target *target)
{
    struct weir_group *group = target->locked;

    target->locked = NULL;
    if (group)
        return group;
    if (!target->group)
        return wr_group_lock_by_key(target->ex, target->key);
    wr_lock(&target->group->lock);
    return target->group;
}

int wr_target_lock(struct weir_group **out, struct wr_target *target)
{
    int rc = 0;

    while (!rc) {
        struct weir_group *group = lock_latest(target);
        bool closed = wr_load(&target->ex->closed, acquire);
        if (group)
            wr_group_locked(group);
        *out = group;
        if (WR_LIKELY(group && !group->evicted && !closed))
            return 0;
        if (group)
            wr_unlock(&group->lock);
        rc = closed ? WEIR_ECLOSED : find_present(target);
    }
    return rc;
}

/* Under the lock at first; unlocks. */
static int admit_or_turn_away(struct weir_group *group, struct weir_task *task,
                              struct wr_submission *sub)
{
    struct weir_executor *ex = group->executor;
    const weir_listener *listener = &ex->policy.given.listener;
    weir_reason reason;
    bool wake = false;
    int rc;

    if (listener->submitted) {
        struct wr_frame frame = { 0 };
        wr_unlock(&group->lock);
        wr_frame_enter(&frame);
        listener->submitted(task, listener->arg);
        wr_frame_leave(&frame);
        wr_group_lock(group);
    }
    group->submitted++;
    rc = wr_submission_enter(group, task, sub, &reason, &wake);
    wr_unlock(&group->lock);
    if (wake && sub->last)
        wr_executor_search(ex);
    else if (wake)
        wr_executor_wake(ex);
    if (rc) /* no memory */
        return wr_unsubmit(task, sub, reason) ? rc : 0;
    return reason ? wr_not_admitted(task, sub, reason) : 0;
}

/* A record for it, which enters, or is dealt with otherwise. Under the lock; unlocks. */
static int submit_record(weir_task **out, struct weir_group *group, struct wr_submission *sub,
                         weir_time now)
{
    uint32_t cost = sub->side ? sub->side->cost : 1;
    struct weir_task *task;
    weir_task *handle;
    int rc = wr_can_ever(&group->sums, &group->executor->root, cost)
                 ? wr_submission_record(&task, group, sub, now)
                 : WEIR_EINVAL;

    if (rc) {
        wr_unlock(&group->lock);
        return rc;
    }
    handle = sub->wants_handle ? task : NULL;
    rc = admit_or_turn_away(group, task, sub);
    if (rc)
        weir_task_unref(handle);
    else if (out)
        *out = handle;
    return rc;
}
/* ---- bodies ----------------------------------------------------------------------------------- */

static int submit(weir_task **out, struct wr_target *target, struct wr_submission *sub)
{
    struct weir_group *group;
    weir_time now = wr_os_now();
    int rc = wr_target_lock(&group, target);

    if (!rc && wr_lacks_watch(group, sub)) {
        wr_unlock(&group->lock);
        rc = WR_LACKS_WATCH;
    }
    return rc ? rc : submit_record(out, group, sub, now);
}

/* ---- tasks without anything ---------------------------------------------------------------------- */

/* Whether a task that says nothing itself needs a record while it waits: it has locals or perhaps a deadline, or a
 * listener is shown it. */
static bool needs_record(struct weir_executor *ex)
{
    return ex->policy.given.listener.submitted || wr_load(&ex->policy.watched, relaxed) ||
           *wr_context_slot() != NULL;
}

/* Not admitted as it is: it gets a record, and another try with that. Under the lock; unlocks. */
static int submit_refused(struct weir_group *group, weir_fn *fn, void *arg, weir_time now)
{
    static const weir_task_options none = { .size = sizeof(none) };
    struct wr_submission sub = { .fn = fn, .arg = arg, .options = &none };

    return submit_record(NULL, group, &sub, now);
}

/* Some of the tasks: those that can be dealt with in one hold of the group's lock, sharing one look at the clock and one
 * wake-up. *done: how many. */
static int submit_plain(struct wr_target *target, weir_fn *fn, void *const *arg, size_t count,
                        size_t *done)
{
    struct weir_group *group;
    weir_reason reason = WEIR_REASON_NONE;
    weir_time now = wr_os_now();
    bool wake = false, wakes = false;
    int rc = wr_target_lock(&group, target);
    size_t i = 0;

    *done = 0;
    if (rc)
        return rc;
    if (wr_load(&target->ex->policy.watched, relaxed)) /* this generation has deadlines */
        rc = WR_LACKS_WATCH;
    for (; !rc && !reason && i < count && i < RUN_MAX; i++) {
        rc = enter_plain(group, fn, arg[i], now, &reason, &wakes);
        wake |= wakes;
    }
    i -= rc == WEIR_ENOMEM || reason;
    if (reason && !i) { /* else it is tried again, alone */
        rc = submit_refused(group, fn, arg[0], now);
        i = rc == 0;
    } else {
        wr_unlock(&group->lock);
    }
    if (wake)
        wr_executor_wake(target->ex);
    *done = i;
    return i ? 0 : rc;
}

/* Whether nothing but its own limits stands between a task without anything and the group's queue, and these count it only
 * when it starts. */
static inline bool admits_freely(struct weir_executor *ex, const struct weir_group *group)
{
    return !group->evicted && !wr_load(&ex->closed, seq_cst) && !group->asks_gates &&
           !wr_load(&ex->policy.watched, relaxed) && !wr_group_is_counted(group) &&
           !(ex->domains && wr_domain_is_released(group)) && wr_admits_freely(&group->sums);
}

/* The common case, with nothing else to it: answers how many of the tasks have entered; 0: not this way. Under the lock;
 * unlocks if some have. */
static inline size_t submit_freely(struct weir_executor *ex, struct weir_group *group, weir_fn *fn,
                                   void *const *arg, size_t count, weir_time now)
{
    struct wr_queue *queue = &group->queue;
    bool wake = false, first = group->sums.queued == 0;
    size_t i = 0;

    if (WR_LIKELY(admits_freely(ex, group)))
        while (i < count && wr_queue_make_room(group, queue, WR_ENTRY_WORDS))
            wr_queue_put_entry(queue, now, fn, arg[i++]);
    if (WR_UNLIKELY(!i))
        return 0;
    wr_admit_many(&group->sums, (uint32_t)i);
    if (first)
        wr_group_entered(group);
    /* A beat that is out has tasks before it, and a place in the ring that is not ours to change. */
    if (first || (leaves_others_behind(group) && !wr_group_has_beat(group)))
        wake = wr_group_refresh(group);
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(ex);
    return i;
}

/* As many as enter without a look at limits. Leaves the group locked if that is not all. */
static size_t submit_run(struct wr_target *target, weir_fn *fn, void *const *arg, size_t count)
{
    struct weir_group *group = target->group;
    size_t submitted = 0, run, done;

    do {
        weir_time now = wr_os_now();
        run = count - submitted < RUN_MAX ? count - submitted : RUN_MAX;
        wr_lock(&group->lock);
        done = submit_freely(target->ex, group, fn, &arg[submitted], run, now);
        submitted += done;
    } while (done && submitted < count);
    target->locked = done ? NULL : group;
    return submitted;
}

/* ---- the calls ------------------------------------------------------------------------------------ */

/* With whatever it may have. */
static int submit_with_options(weir_task **out, struct wr_target *target, weir_fn *fn, void *arg,
                               const weir_task_options *opt, bool last)
{
    weir_task_options options;
    struct wr_submission sub;
    int rc;

    do {
        rc = wr_submission_init(&sub, &options, target->ex, fn, arg, opt, out != NULL, NULL);
        sub.last = last;
        if (!rc)
            rc = submit(out, target, &sub);
        wr_submission_discard(&sub);
    } while (rc == WR_LACKS_WATCH);
    return rc;
}

static __attribute__((noinline)) int submit_one(weir_task **out, struct wr_target target,
                                                weir_fn *fn, void *arg,
                                                const weir_task_options *opt)
{
    size_t done;
    int rc = WR_LACKS_WATCH;

    if (target.locked || (!out && !opt && fn && !needs_record(target.ex)))
        rc = submit_plain(&target, fn, &arg, 1, &done);
    if (rc == WR_LACKS_WATCH)
        rc = submit_with_options(out, &target, fn, arg, opt, false);
    wr_target_fini(&target);
    return rc;
}

int weir_submit(weir_task **out, weir_group *group, weir_fn *fn, void *arg,
                const weir_task_options *opt)
{
    struct weir_group *locked = NULL;

    if (WR_LIKELY(group && !out && !opt && fn && !needs_record(group->executor))) {
        weir_time now = wr_os_now();
        wr_lock(&group->lock);
        if (WR_LIKELY(submit_freely(group->executor, group, fn, &arg, 1, now)))
            return 0;
        locked = group;
    }
    if (out)
        *out = NULL;
    if (!group)
        return WEIR_EINVAL;
    if (!locked && wr_load(&group->executor->closed, acquire))
        return WEIR_ECLOSED;
    return submit_one(
        out,
        (struct wr_target){
            .ex = group->executor, .key = group->key, .group = group, .locked = locked },
        fn, arg, opt);
}

int wr_submit_last(weir_task **out, struct weir_group *group, const char *key, weir_fn *fn,
                   void *arg, const weir_task_options *opt)
{
    struct wr_target target = { .ex = group->executor,
                                .key = key ? key : group->key,
                                .group = key ? NULL : group };
    int rc = WEIR_ECLOSED;

    if (!wr_load(&target.ex->closed, acquire))
        rc = submit_with_options(out, &target, fn, arg, opt, true);
    wr_target_fini(&target);
    return rc;
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
    if (!key || !fn)
        return WEIR_EINVAL;
    if (!out && !opt && !needs_record(ex)) {
        weir_time now = wr_os_now();
        locked = wr_group_lock_by_key(ex, key);
        if (locked && submit_freely(ex, locked, fn, &arg, 1, now))
            return 0;
    }
    return submit_one(out, (struct wr_target){ .ex = ex, .key = key, .locked = locked }, fn, arg,
                      opt);
}

int64_t weir_submit_many(weir_task **out, weir_group *group, weir_fn *fn, void *const *arg,
                         size_t count, const weir_task_options *opt)
{
    struct wr_target target;
    size_t submitted = 0, done;
    bool plain;
    int rc = 0;

    if (!group || !fn || (count && !arg))
        return WEIR_EINVAL;
    if (out && count)
        memset(out, 0, count * sizeof(out[0]));
    if (wr_load(&group->executor->closed, acquire))
        return WEIR_ECLOSED;
    target = (struct wr_target){ .ex = group->executor, .key = group->key, .group = group };
    plain = !out && !opt && !needs_record(target.ex);
    if (plain && count)
        submitted = submit_run(&target, fn, arg, count);
    while (!rc && submitted < count) {
        if (plain)
            rc = submit_plain(&target, fn, &arg[submitted], count - submitted, &done);
        else
            rc = submit_with_options(out ? &out[submitted] : NULL, &target, fn, arg[submitted], opt,
                                     false);
        if (plain)
            submitted += done;
        else if (!rc)
            submitted++;
        if (rc == WR_LACKS_WATCH) {
            plain = false;
            rc = 0;
        }
    }
    wr_target_fini(&target);
    return submitted || !rc ? (int64_t)submitted : rc;
}
