/* Records, results, and telling the world; see settle.h.
 * SPDX-License-Identifier: MIT */
#include "executor/settle.h"

#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/local.h"

#include <string.h>
#include <weir/error.h>

enum {
    BATCH_MAX = 32,
    UNUSED_MAX = 64,
    LENT_FREELY = 16384, /* a megabyte of records; beyond that, idle groups keep none */
};

/* ---- records --------------------------------------------------------------------------------- */

struct weir_task *wr_task_alloc(struct weir_group *group, uint32_t references)
{
    struct weir_task *task = group->unused;

    if (!task && group->freed) { /* apart, so that they have left the caches of who freed them */
        task = group->unused = group->freed;
        group->freed = NULL;
    }
    if (!task) { /* many groups get few at a time, unless they are busy */
        bool few = wr_load(&group->executor->tasks.lent, relaxed) > LENT_FREELY;
        uint32_t want = few && group->sums.queued < BATCH_MAX ? group->sums.queued + 1 : BATCH_MAX;
        group->unused = wr_task_pool_take(&group->executor->tasks, want, &group->unused_count);
        task = group->unused;
        if (!task)
            return NULL;
    }
    group->unused = *wr_task_next_unused(task);
    __builtin_prefetch(group->unused, 1); /* the next submit to this group writes there */
    group->unused_count--;
    group->records++;
    __atomic_store_n(&task->group, group, __ATOMIC_RELEASE); /* the monitor may look; see run.c */
    atomic_init(&task->error, 0);
    atomic_init(&task->watchers, NULL);
    /* Release: whoever finds the record in use finds its group; see tasks.c. */
    wr_store(&task->word, WR_PHASE_NEW | references * WR_REF, release);
    return task;
}

/* Cuts up to `count` records off a list, for the pool. */
static uint32_t give_from(struct weir_group *group, struct weir_task **list, uint32_t count)
{
    struct weir_task *first = *list, *last = first;
    uint32_t given = 1;

    if (!first || !count)
        return 0;
    for (; given < count && *wr_task_next_unused(last); given++)
        last = *wr_task_next_unused(last);
    *list = *wr_task_next_unused(last);
    wr_task_pool_give(&group->executor->tasks, first, last, given);
    return given;
}

void wr_task_unused_return(struct weir_group *group, uint32_t keep)
{
    uint32_t surplus = group->unused_count > keep ? group->unused_count - keep : 0;

    surplus -= give_from(group, &group->freed, surplus);
    give_from(group, &group->unused, surplus);
    if (group->unused_count > keep)
        group->unused_count = keep;
}

void wr_task_recycle(struct weir_group *group, struct weir_task *task)
{
    wr_store(&task->word, WR_PHASE_OVER, relaxed); /* no references: not in use */
    *wr_task_next_unused(task) = group->freed;
    group->freed = task;
    group->unused_count++;
    group->records--;
    if (group->unused_count > UNUSED_MAX)
        wr_task_unused_return(group, UNUSED_MAX / 2);
}

weir_task *weir_task_ref(weir_task *task)
{
    uint32_t before = wr_add(&task->word, WR_REF, relaxed);

    WR_ASSERT(before / WR_REF < UINT16_MAX); /* 65,535 references are a leak */
    return task;
}

/* What the record owns, apart from itself. */
static void release_side(struct weir_task *task)
{
    struct wr_side *side = wr_task_side(task);

    if (!side)
        return;
    if (side->drop && side->value && !(wr_task_word(task) & WR_TAKEN))
        side->drop(side->value);
    wr_locals_release(side->locals); /* of a body that never ran */
    wr_os_free(side);
}

void weir_task_unref(weir_task *task)
{
    struct weir_group *group;

    if (!task)
        return;
    group = task->group;
    if (wr_sub(&task->word, WR_REF, acq_rel) / WR_REF > 1)
        return;
    release_side(task);
    wr_lock(&group->lock);
    wr_task_recycle(group, task);
    wr_group_unlock_and_reap(group);
}

/* ---- the result ------------------------------------------------------------------------------ */

void wr_task_set_phase(struct weir_task *task, uint32_t phase)
{
    uint32_t now = wr_task_word(task) & WR_PHASE_MASK;

    wr_add(&task->word, phase - now, relaxed); /* references may change at any time, phases not */
}

bool wr_task_decide(struct weir_task *task, weir_outcome outcome, int error, weir_reason reason,
                    weir_time started_at, weir_time ended_at)
{
    if (wr_task_outcome(task) != WEIR_UNSETTLED)
        return false;
    /* Readings of different threads' clocks, or from before a lock, may stand in the wrong order. */
    if (started_at < task->queued_at)
        started_at = task->queued_at;
    if (ended_at < started_at)
        ended_at = started_at;
    wr_store(&task->error, error, relaxed);
    if (task->started_at != started_at) /* a begun body may be reading its own (run.c, cancelled) */
        task->started_at = started_at;
    task->ended_at = ended_at;
    wr_add(&task->word, (uint32_t)outcome << WR_OUTCOME_SHIFT | (uint32_t)reason << WR_REASON_SHIFT,
           release);
    return true;
}

void wr_task_set_value(struct weir_task *task, void *value)
{
    struct wr_side *side = wr_task_side(task);

    if (side)
        side->value = value;
    else
        task->u.value = value;
}

void wr_task_drop_value(struct weir_task *task, void *value)
{
    struct wr_side *side = wr_task_side(task);

    if (value && side && side->drop)
        side->drop(value);
}

void wr_task_result(weir_result *result, const struct weir_task *task)
{
    uint32_t word = wr_task_word(task);
    const struct wr_side *side = wr_task_side(task);

    *result = (weir_result){
        .size = sizeof(*result),
        .outcome = wr_task_outcome(task),
        .error = wr_load(&task->error, relaxed),
        .reason = (weir_reason)((word & WR_REASON_MASK) >> WR_REASON_SHIFT),
        .queued_at = task->queued_at,
        .started_at = task->started_at,
        .ended_at = task->ended_at,
        .key = task->group->key,
        .id = weir_task_id(task),
    };
    if (!(word & WR_TAKEN) && result->outcome == WEIR_DONE)
        result->value = side ? side->value : task->u.value;
}

/* ---- telling --------------------------------------------------------------------------------- */

struct wr_watcher *wr_task_close_watchers(struct weir_task *task)
{
    struct wr_watcher *watcher, *next, *callbacks = NULL;

    watcher = wr_swap(&task->watchers, WR_TOLD, acq_rel); /* pairs with weir_task_done */
    for (; watcher; watcher = next) {
        next = watcher->next;
        if (watcher->waiter) {
            wr_unpark(watcher->waiter);
        } else {
            watcher->next = callbacks;
            callbacks = watcher;
        }
    }
    return callbacks;
}

void wr_task_publish(struct weir_task *task, bool completed)
{
    const weir_listener *listener = &task->group->executor->policy.given.listener;
    struct wr_watcher *watcher, *next;
    weir_result result;

    wr_task_result(&result, task);
    if (completed && listener->completed)
        listener->completed(task, &result, listener->arg);
    wr_lock(&task->group->lock);
    watcher = wr_task_close_watchers(task);
    wr_unlock(&task->group->lock);
    for (; watcher; watcher = next) {
        next = watcher->next;
        watcher->done(task, &result, watcher->arg);
        wr_os_free(watcher);
    }
}

static void pin(struct weir_group *group)
{
    wr_lock(&group->lock);
    group->pins++;
    wr_unlock(&group->lock);
}

static void told_and_unpin(struct weir_group *group)
{
    wr_lock(&group->lock);
    group->telling--;
    wr_group_left(group);
    wr_unlock(&group->lock);
    wr_group_unpin(group);
}

void wr_task_told(struct weir_task *task)
{
    struct weir_group *group = task->group;

    pin(group);            /* until we are through */
    weir_task_unref(task); /* whoever waits for quiet finds unwanted values dropped */
    told_and_unpin(group);
}

/* Drops a reference, unless that would run code of the user's. */
static bool unref_quietly(struct weir_task *task)
{
    uint32_t word = wr_load(&task->word, acquire);
    const struct wr_side *side;

    while (word / WR_REF > 1)
        if (wr_cas(&task->word, &word, word - WR_REF, acq_rel))
            return true;
    side = wr_task_side(task); /* ours is the last one: nobody else changes anything */
    if (side && (side->locals || (side->drop && side->value && !(word & WR_TAKEN))))
        return false;
    weir_task_unref(task);
    return true;
}

bool wr_task_told_quietly(struct weir_task *task)
{
    struct weir_group *group = task->group;

    pin(group);
    if (unref_quietly(task)) {
        told_and_unpin(group);
        return true;
    }
    wr_group_unpin(group);
    return false;
}

int wr_task_watch(struct weir_task *task,
                  void (*done)(weir_task *task, const weir_result *result, void *arg), void *arg)
{
    struct wr_watcher *watcher = wr_os_alloc(sizeof(*watcher));

    if (!watcher)
        return WEIR_ENOMEM;
    watcher->done = done;
    watcher->arg = arg;
    watcher->next = wr_load(&task->watchers, relaxed);
    wr_store(&task->watchers, watcher, relaxed);
    return 0;
}

bool weir_task_done(const weir_task *task)
{
    return wr_load(&task->watchers, acquire) == WR_TOLD;
}

void wr_group_withdraw(struct weir_group *group, struct weir_task *task)
{
    wr_list_remove(&task->link);
    wr_withdraw(&group->sums, &group->executor->root, wr_task_cost(task));
    if (group->executor->hall)
        wr_domain_withdraw(group);
    wr_watch_over(task);
}

bool wr_reject_first(struct weir_group *group, weir_reason reason)
{
    const weir_policy *policy = &group->executor->policy.given;
    weir_time now = wr_os_now();
    struct weir_task *task;

    wr_lock(&group->lock);
    task = wr_group_first(group);
    if (reason == WEIR_REASON_DOMAIN_RELEASED && !wr_domain_is_released(group))
        task = NULL; /* it was restored, and this one may have come since */
    if (task) {
        wr_group_withdraw(group, task);
        wr_task_decide(task, WEIR_REJECTED, WEIR_EREJECTED, reason, now, now);
        wr_task_set_phase(task, WR_PHASE_OVER);
        if (policy->rejection == WEIR_ABORT)
            wr_add(&task->word, WR_ABORTED, relaxed);
        wr_group_refuse_count(group, reason);
        group->telling++;
        if (!group->evicted)
            wr_group_refresh(group);
    }
    wr_unlock(&group->lock);
    if (!task)
        return false;
    if (policy->listener.rejected)
        policy->listener.rejected(task, reason, policy->listener.arg);
    wr_task_publish(task, false);
    wr_task_told(task);
    return true;
}

/* ---- presence -------------------------------------------------------------------------------- */

void wr_group_entered(struct weir_group *group)
{
    if (group->idle_since) {
        group->idle_since = 0;
        wr_add(&group->executor->live, 1, relaxed);
    }
}

void wr_group_left(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;

    if (group->idle_since || group->sums.queued || group->sums.inflight || group->telling)
        return;
    group->idle_since = wr_os_now_coarse();
    if (wr_load(&ex->tasks.lent, relaxed) > LENT_FREELY)
        wr_task_unused_return(group, 0);
    if (wr_sub(&ex->live, 1, seq_cst) == 1)
        wr_waitq_wake_all(&ex->quiet);
}

void wr_room_made(struct weir_executor *ex)
{
    if (wr_load(&ex->room_waiters, seq_cst))
        wr_waitq_wake_all(&ex->room);
}
