/* Submitting: admission, or what becomes of those who are not admitted.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/local.h"
#include "executor/reason.h"
#include "executor/settle.h"

#include <string.h>
#include <weir/error.h>

enum {
    RUN_MAX = 64, /* tasks that enter in one hold of their group's lock: a microsecond or so */
};

/* Answered by submit: deadlines have turned up since the entry was made, so it must be made anew. */
enum { LACKS_WATCH = 1 };

/* A submission on its way in. */
struct entry {
    weir_fn *fn;
    void *arg;
    const weir_task_options *options;
    struct wr_side *side; /* NULL: the task needs none; handed to the record on success */
    bool wants_handle;
    bool watched; /* it could have a deadline of its group's */
};

/* ---- options --------------------------------------------------------------------------------- */

static bool is_span(int64_t ms)
{
    return ms >= 0 && (ms <= WEIR_SPAN_MAX_MS || ms == WEIR_NO_LIMIT);
}

static bool needs_side(const weir_task_options *o)
{
    return o->id || o->cost > 1 || o->drop || o->on_done ||
           (o->priority && o->priority != WEIR_NORMAL);
}

/* `options` is filled with a copy of `opt` if there is any. */
static int entry_init(struct entry *entry, weir_task_options *options, struct weir_executor *ex,
                      weir_fn *fn, void *arg, const weir_task_options *opt, bool wants_handle)
{
    static const weir_task_options none = { .size = sizeof(none) };
    bool has_locals = *wr_context_slot() != NULL;
    bool watched = wr_load(&ex->policy.watched, relaxed);
    size_t id_size, watch_size;
    char *rest;
    int rc;

    *entry = (struct entry){ .fn = fn, .arg = arg, .options = &none, .wants_handle = wants_handle };
    if (!fn)
        return WEIR_EINVAL;
    if (!opt && !has_locals && !watched)
        return 0;
    rc = wr_options_load(options, sizeof(*options), opt);
    if (rc)
        return rc;
    entry->options = options;
    if (entry->options->priority > WEIR_IDLE || !is_span(entry->options->deadlines.wait_ms) ||
        !is_span(entry->options->deadlines.run_ms) || !is_span(entry->options->deadlines.total_ms))
        return WEIR_EINVAL;
    if (wr_has_deadlines(&entry->options->deadlines) && !watched) {
        watched = true;
        rc = wr_clock_start(ex);
        if (rc)
            return rc;
    }
    if (!needs_side(entry->options) && !has_locals && !watched)
        return 0;
    id_size = entry->options->id ? strnlen(entry->options->id, WEIR_ID_MAX + 1) + 1 : 0;
    if (id_size > WEIR_ID_MAX + 1)
        return WEIR_EINVAL;
    entry->watched = watched;
    watch_size = watched ? sizeof(struct wr_watch) : 0;
    entry->side = wr_os_alloc(sizeof(*entry->side) + watch_size + id_size);
    if (!entry->side)
        return WEIR_ENOMEM;
    entry->side->arg = arg;
    entry->side->cost = entry->options->cost ? entry->options->cost : 1;
    entry->side->level = entry->options->priority ? entry->options->priority - 1 : WR_LEVEL_NORMAL;
    entry->side->drop = entry->options->drop;
    entry->side->locals = wr_locals_capture();
    rest = (char *)(entry->side + 1);
    if (watched)
        entry->side->watch = (struct wr_watch *)(void *)rest;
    if (id_size)
        entry->side->id = memcpy(rest + watch_size, entry->options->id, id_size);
    return 0;
}

/* What no record has taken over. */
static void entry_discard(struct entry *entry)
{
    if (!entry->side)
        return;
    wr_locals_release(entry->side->locals);
    wr_os_free(entry->side);
    entry->side = NULL;
}

/* ---- into the queue --------------------------------------------------------------------------- */

/* The queue of a level; NULL without memory for it. */
static struct wr_list *queue_of(struct weir_group *group, uint8_t level)
{
    if (level != WR_LEVEL_NORMAL && !wr_group_rare(group))
        return NULL;
    return wr_group_level(group, level);
}

/* Makes the record. Under the lock. */
static int make_task(struct weir_task **out, struct weir_group *group, struct entry *entry)
{
    struct weir_task *task;

    if (entry->side && !queue_of(group, entry->side->level))
        return WEIR_ENOMEM;
    task = wr_task_alloc(group, entry->wants_handle ? 2 : 1);
    if (!task)
        return WEIR_ENOMEM;
    task->fn = entry->fn;
    if (entry->side) {
        wr_add(&task->word, WR_SIDE, relaxed);
        task->u.side = entry->side;
        if (entry->side->watch)
            wr_watch_init(entry->side->watch, task, &entry->options->deadlines);
    } else {
        task->u.arg = entry->arg;
    }
    *out = task;
    return 0;
}

/* Asks for admission; on success the task stands in its queue. Under the lock. */
static weir_reason enter(struct weir_group *group, struct weir_task *task, bool *wake)
{
    struct weir_executor *ex = group->executor;
    struct wr_side *side = wr_task_side(task);
    weir_reason reason;

    if (wr_task_outcome(task) != WEIR_UNSETTLED)
        return WEIR_REASON_CANCELLED; /* while the listener heard of it, or while it waited for room */
    if (group->evicted || wr_load(&ex->closed, seq_cst))
        return WEIR_REASON_SHUT_DOWN; /* since we looked */
    if (!wr_can_ever(&group->sums, &ex->root, wr_task_cost(task)))
        return WEIR_REASON_GROUP_QUEUE_FULL; /* a limit was lowered since we looked */
    reason = wr_admit(&group->sums, &ex->root, wr_task_cost(task));
    if (reason)
        return reason;
    wr_list_append(side ? queue_of(group, side->level) : &group->queue, &task->link);
    if (ex->hall)
        reason = wr_domain_admit(group); /* knows whether it is ready, now that it stands there */
    if (reason) {
        wr_list_remove(&task->link);
        wr_withdraw(&group->sums, &ex->root, wr_task_cost(task));
        *wake = wr_executor_has_ready(ex); /* loans may have been recalled on its behalf */
        return reason;
    }
    wr_task_set_phase(task, WR_PHASE_QUEUED);
    wr_group_entered(group);
    if (side)
        wr_watch_queued(task);
    if (side && (side->cost > 1 || side->level < WR_LEVEL_NORMAL))
        wr_waits_suspect(ex); /* it goes before others, or needs more than they do */
    *wake = wr_group_refresh(group);
    return WEIR_REASON_NONE;
}

/* ---- not admitted ----------------------------------------------------------------------------- */

/* Fixes the result of a task that was never in a queue, tells, and drops the queue's reference. */
static void settle_outside(struct weir_task *task, const weir_result *result, bool aborted,
                           bool completed)
{
    struct weir_group *group = task->group;
    bool decided;

    wr_lock(&group->lock);
    decided = wr_task_decide(task, result->outcome, result->error, result->reason,
                             result->started_at, result->ended_at);
    wr_task_set_phase(task, WR_PHASE_OVER);
    if (decided) {
        wr_task_set_value(task, result->value);
        if (result->outcome == WEIR_REJECTED)
            wr_group_refuse_count(group, result->reason);
        else
            wr_count_outcome(group, result->outcome);
        if (aborted)
            wr_add(&task->word, WR_ABORTED, relaxed);
    }
    wr_unlock(&group->lock);
    if (decided)
        wr_task_publish(task, completed);
    else /* cancelled meanwhile, which was told already */
        wr_task_drop_value(task, result->value);
    weir_task_unref(task);
}

/* Runs the body in the submitting thread, outside all limits. */
static void run_here(struct weir_task *task)
{
    struct weir_group *group = task->group;
    const weir_listener *listener = &group->executor->policy.given.listener;
    weir_result result = { .size = sizeof(result) };
    void *arg = wr_task_arg(task);
    bool settled;

    if (listener->started)
        listener->started(task, listener->arg);
    result.started_at = wr_os_now();
    wr_lock(&group->lock);
    settled = wr_task_outcome(task) != WEIR_UNSETTLED; /* by the listener */
    if (!settled) {
        wr_task_set_phase(task, WR_PHASE_RUNNING);
        task->started_at = result.started_at;
        task->runner = NULL;
    }
    wr_unlock(&group->lock);
    if (!settled)
        result.error = wr_task_call(task, arg, &result.value);
    result.ended_at = wr_os_now();
    result.outcome = wr_outcome_of(result.error);
    if (result.error != WEIR_PENDING) {
        settle_outside(task, &result, false, true);
        return;
    }
    wr_task_drop_value(task, result.value);
    wr_lock(&group->lock);
    settled = wr_task_outcome(task) != WEIR_UNSETTLED;
    wr_task_set_phase(task, WR_PHASE_OVER); /* it holds nothing; weir_task_settle ends it */
    wr_unlock(&group->lock);
    if (settled)
        weir_task_unref(task);
}

/* From here on it is not cancelled any more. False: it was, and that was told. */
static bool refuse(struct weir_task *task)
{
    bool unsettled;

    wr_lock(&task->group->lock);
    unsettled = wr_task_outcome(task) == WEIR_UNSETTLED;
    if (unsettled)
        wr_task_set_phase(task, WR_PHASE_REFUSED);
    wr_unlock(&task->group->lock);
    return unsettled;
}

/* Permits and places are back: only the task itself is left to deal with. */
static void turn_away(struct weir_task *task, weir_reason reason)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    weir_time now = wr_os_now();
    weir_result result = { .size = sizeof(result),
                           .outcome = WEIR_REJECTED,
                           .error = WEIR_EREJECTED,
                           .reason = reason,
                           .queued_at = task->queued_at,
                           .started_at = now,
                           .ended_at = now,
                           .key = task->group->key,
                           .id = weir_task_id(task) };
    int rc;

    if (!refuse(task)) {
        weir_task_unref(task);
        return;
    }
    if (policy->listener.rejected)
        policy->listener.rejected(task, reason, policy->listener.arg);
    if (policy->rejection_fn) {
        rc = policy->rejection_fn(&result, task, reason, policy->rejection_arg);
        if (!wr_reason_is_known(result.reason))
            result.reason = reason;
        if (rc || result.outcome == WEIR_UNSETTLED || (unsigned)result.outcome > WEIR_TIMED_OUT) {
            result.outcome = WEIR_REJECTED;
            result.error = rc ? rc : WEIR_EREJECTED;
        }
        settle_outside(task, &result, false, false);
    } else if (policy->rejection == WEIR_CALLER_RUNS && reason != WEIR_REASON_SHUT_DOWN) {
        run_here(task);
    } else {
        settle_outside(task, &result, policy->rejection == WEIR_ABORT, false);
    }
}

/* ---- waiting for room -------------------------------------------------------------------------- */

/* WEIR_BLOCK: tries again whenever somebody has left. 0: admitted. */
static int wait_for_room(struct weir_task *task, weir_time deadline, weir_reason *reason)
{
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor;
    struct wr_parker storage, *self = wr_parker_self(&storage);
    struct wr_nested_wait nested;
    struct wr_waiter waiter;
    bool wake = false;
    int rc;

    wr_nested_wait_for_room(&nested, group, wr_task_cost(task));
    rc = wr_nested_wait_enter(&nested, deadline, NULL);
    if (rc)
        return rc;
    wr_add(&ex->room_waiters, 1, seq_cst);
    wr_waitq_enter(&ex->room, &waiter, self);
    for (;;) {
        wr_lock(&group->lock);
        *reason = enter(group, task, &wake);
        if (!wr_can_ever(&group->sums, &ex->root, wr_task_cost(task)))
            rc = WEIR_EINVAL; /* a limit was lowered: there will be no room */
        wr_unlock(&group->lock);
        if (wake) /* also if it is not in: slots may have moved on its behalf */
            wr_executor_wake(ex);
        wake = false;
        if (*reason == WEIR_REASON_NONE || *reason == WEIR_REASON_SHUT_DOWN ||
            *reason == WEIR_REASON_CANCELLED || rc)
            break;
        rc = weir_cancelled() ? WEIR_ECANCELED : wr_nested_wait_again(&nested);
        if (!rc)
            rc = wr_park(self, deadline);
    }
    wr_waitq_leave(&ex->room, &waiter);
    wr_sub(&ex->room_waiters, 1, seq_cst);
    wr_nested_wait_leave(&nested);
    return *reason == WEIR_REASON_NONE || *reason == WEIR_REASON_SHUT_DOWN ||
                   *reason == WEIR_REASON_CANCELLED
               ? 0
               : rc;
}

/* ---- the way in -------------------------------------------------------------------------------- */

/* Locks the present generation behind `group`. *pinned gets what must be unpinned afterwards. */
static int lock_current(struct weir_group **group, struct weir_group **pinned)
{
    int rc;

    for (;;) {
        if (wr_load(&(*group)->executor->closed, acquire))
            return WEIR_ECLOSED;
        wr_lock(&(*group)->lock);
        if (!(*group)->evicted)
            return 0;
        wr_unlock(&(*group)->lock);
        struct weir_group *next;
        rc = wr_group_find(&next, (*group)->executor, (*group)->key);
        if (*pinned)
            wr_group_unpin(*pinned);
        *pinned = rc ? NULL : next;
        if (rc)
            return rc;
        *group = next;
    }
}

/* It was not admitted: waits for room, if that is the policy, or deals with it otherwise. */
static int not_admitted(struct weir_task *task, weir_reason reason, weir_time deadline)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    int rc = 0;

    if (policy->rejection == WEIR_BLOCK && !policy->rejection_fn &&
        reason != WEIR_REASON_SHUT_DOWN && reason != WEIR_REASON_CANCELLED)
        rc = wait_for_room(task, deadline ? deadline : WEIR_FOREVER, &reason);
    if (reason == WEIR_REASON_CANCELLED)
        weir_task_unref(task);
    else if (reason)
        turn_away(task, reason);
    return rc;
}

/* Under the lock at first; unlocks. */
static int admit_or_turn_away(struct weir_group *group, struct weir_task *task,
                              const struct entry *entry)
{
    struct weir_executor *ex = group->executor;
    const weir_listener *listener = &ex->policy.given.listener;
    weir_reason reason;
    bool wake = false;

    if (listener->submitted) {
        wr_unlock(&group->lock);
        listener->submitted(task, listener->arg);
        wr_lock(&group->lock);
    }
    group->submitted++;
    reason = enter(group, task, &wake);
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(ex);
    return reason ? not_admitted(task, reason, entry->options->deadline) : 0;
}

static bool lacks_watch(const struct weir_group *group, const struct entry *entry)
{
    return !entry->watched && wr_load(&group->executor->policy.watched, relaxed);
}

static int submit(weir_task **out, struct weir_group *group, struct entry *entry)
{
    struct weir_group *pinned = NULL;
    struct weir_task *task = NULL;
    weir_time now = wr_os_now();
    int rc = lock_current(&group, &pinned);

    if (!rc && lacks_watch(group, entry)) {
        wr_unlock(&group->lock);
        rc = LACKS_WATCH;
    }
    if (!rc) {
        uint32_t cost = entry->side ? entry->side->cost : 1;
        rc = wr_can_ever(&group->sums, &group->executor->root, cost)
                 ? make_task(&task, group, entry)
                 : WEIR_EINVAL;
        if (rc)
            wr_unlock(&group->lock);
    }
    if (!rc) {
        task->queued_at = now;
        if (entry->options->on_done)
            rc = wr_task_watch(task, entry->options->on_done, entry->options->on_done_arg);
        if (rc) {
            entry->side = wr_task_side(task); /* and back */
            wr_task_recycle(group, task);
            wr_unlock(&group->lock);
        } else {
            entry->side = NULL; /* the record's now */
            weir_task *handle = entry->wants_handle ? task : NULL;
            rc = admit_or_turn_away(group, task, entry);
            if (rc)
                weir_task_unref(handle);
            else if (out)
                *out = handle;
        }
    }
    if (pinned)
        wr_group_unpin(pinned);
    return rc;
}

/* ---- many ------------------------------------------------------------------------------------- */

/* Under the lock: the tasks of a run, until one is not admitted, which is answered with why. *count: how many
 * there are to be, and then how many there were. */
static struct weir_task *enter_run(weir_task **out, struct weir_group *group, struct entry *entry,
                                   void *const *arg, size_t *count, weir_reason *reason, bool *wake)
{
    weir_time now = wr_os_now();
    struct weir_task *task;
    bool wakes = false;
    size_t i;

    *reason = WEIR_REASON_NONE;
    for (i = 0; i < *count && !*reason; i++) {
        entry->arg = arg[i];
        if (make_task(&task, group, entry))
            break;
        task->queued_at = now;
        if (out)
            out[i] = task;
        group->submitted++;
        *reason = enter(group, task, &wakes);
        *wake |= wakes;
    }
    *count = i;
    return *reason ? task : NULL;
}

/* Submits some of the tasks: those that can be dealt with in one hold of the group's lock, sharing one look at the
 * clock and one wake-up. *done: how many. */
static int submit_run(weir_task **out, struct weir_group *group, struct entry *entry,
                      void *const *arg, size_t count, size_t *done)
{
    struct weir_group *pinned = NULL;
    struct weir_task *refused;
    weir_reason reason;
    bool wake = false;
    int rc = lock_current(&group, &pinned);

    *done = 0;
    if (!rc && lacks_watch(group, entry)) {
        wr_unlock(&group->lock);
        rc = LACKS_WATCH;
    }
    if (!rc) {
        *done = count < RUN_MAX ? count : RUN_MAX;
        refused = enter_run(out, group, entry, arg, done, &reason, &wake);
        wr_unlock(&group->lock);
        if (wake)
            wr_executor_wake(group->executor);
        if (refused)
            rc = not_admitted(refused, reason, entry->options->deadline);
        else if (!*done)
            rc = WEIR_ENOMEM;
        if (refused && rc) { /* it was none of them after all */
            *done -= 1;
            if (out) {
                weir_task_unref(out[*done]);
                out[*done] = NULL;
            }
        }
    }
    if (pinned)
        wr_group_unpin(pinned);
    return rc;
}

int weir_submit(weir_task **out, weir_group *group, weir_fn *fn, void *arg,
                const weir_task_options *opt)
{
    weir_task_options options;
    struct entry entry;
    int rc;

    if (out)
        *out = NULL;
    if (!group)
        return WEIR_EINVAL;
    if (wr_load(&group->executor->closed, acquire))
        return WEIR_ECLOSED;
    do {
        rc = entry_init(&entry, &options, group->executor, fn, arg, opt, out != NULL);
        if (!rc)
            rc = submit(out, group, &entry);
        entry_discard(&entry);
    } while (rc == LACKS_WATCH);
    return rc;
}

int weir_submit_key(weir_task **out, weir_executor *ex, const char *key, weir_fn *fn, void *arg,
                    const weir_task_options *opt)
{
    struct weir_group *group;
    int rc;

    if (out)
        *out = NULL;
    if (!ex)
        return WEIR_EINVAL;
    if (wr_load(&ex->closed, acquire))
        return WEIR_ECLOSED;
    if (!key || !fn)
        return WEIR_EINVAL;
    rc = wr_group_find(&group, ex, key);
    if (rc)
        return rc;
    rc = weir_submit(out, group, fn, arg, opt);
    wr_group_unpin(group);
    return rc;
}

int64_t weir_submit_many(weir_task **out, weir_group *group, weir_fn *fn, void *const *arg,
                         size_t count, const weir_task_options *opt)
{
    weir_task_options options;
    struct entry entry;
    size_t submitted = 0, done = 1;
    bool apart;
    int rc;

    if (!group || !fn || (count && !arg))
        return WEIR_EINVAL;
    if (out && count)
        memset(out, 0, count * sizeof(out[0]));
    if (wr_load(&group->executor->closed, acquire))
        return WEIR_ECLOSED;
    rc = entry_init(&entry, &options, group->executor, fn, NULL, opt, out != NULL);
    /* A task with a record of its own, or one that a listener hears of first, goes in alone. */
    apart = entry.side || group->executor->policy.given.listener.submitted;
    entry_discard(&entry);
    while (!rc && submitted < count) {
        weir_task **handle = out ? &out[submitted] : NULL;
        if (apart)
            rc = weir_submit(handle, group, fn, arg[submitted], opt);
        else
            rc = submit_run(handle, group, &entry, &arg[submitted], count - submitted, &done);
        if (!apart || !rc)
            submitted += done;
        if (rc == LACKS_WATCH) {
            apart = true;
            done = 1;
            rc = 0;
        }
    }
    return submitted || !rc ? (int64_t)submitted : rc;
}
