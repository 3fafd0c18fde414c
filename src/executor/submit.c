/* Submitting: admission, or what becomes of those who are not admitted.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/local.h"
#include "executor/reason.h"
#include "executor/settle.h"
#include "executor/tell.h"

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
    struct wr_side *side;       /* NULL: the task needs none; handed to the record on success */
    struct wr_watcher *on_done; /* NULL: none; handed to the record once it is sure to be told */
    struct wr_whole *whole;     /* NULL: it has a body */
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
    return o->id || o->cost > 1 || o->drop || o->drop_arg || o->on_done ||
           (o->priority && o->priority != WEIR_NORMAL);
}

/* `options` is filled with a copy of `opt` if there is any. */
static int entry_init(struct entry *entry, weir_task_options *options, struct weir_executor *ex,
                      weir_fn *fn, void *arg, const weir_task_options *opt, bool wants_handle,
                      struct wr_whole *whole)
{
    static const weir_task_options none = { .size = sizeof(none) };
    bool has_locals = *wr_context_slot() != NULL;
    bool watched = wr_load(&ex->policy.watched, relaxed);
    size_t id_size, watch_size;
    char *rest;
    int rc;

    *entry = (struct entry){
        .fn = fn, .arg = arg, .options = &none, .whole = whole, .wants_handle = wants_handle
    };
    if (!fn && !whole)
        return WEIR_EINVAL;
    if (!opt && !has_locals && !watched && !whole)
        return 0;
    rc = wr_options_load(options, sizeof(*options), opt);
    if (rc)
        return rc;
    entry->options = options;
    if (entry->options->priority > WEIR_IDLE || entry->options->cost > WEIR_LIMIT_MAX ||
        !is_span(entry->options->deadlines.wait_ms) || !is_span(entry->options->deadlines.run_ms) ||
        !is_span(entry->options->deadlines.total_ms))
        return WEIR_EINVAL;
    if (wr_has_deadlines(&entry->options->deadlines) && !watched) {
        watched = true;
        rc = wr_clock_start(ex);
        if (rc)
            return rc;
    }
    if (!needs_side(entry->options) && !has_locals && !watched && !whole)
        return 0;
    id_size = entry->options->id ? strnlen(entry->options->id, WEIR_ID_MAX + 1) + 1 : 0;
    if (id_size > WEIR_ID_MAX + 1)
        return WEIR_EINVAL;
    entry->watched = watched;
    watch_size = watched ? sizeof(struct wr_watch) : 0;
    if (options->on_done) {
        entry->on_done = wr_watcher_new(options->on_done, options->on_done_arg);
        if (!entry->on_done)
            return WEIR_ENOMEM;
    }
    entry->side = wr_os_alloc(sizeof(*entry->side) + watch_size + id_size);
    if (!entry->side)
        return WEIR_ENOMEM;
    entry->side->arg = arg;
    entry->side->cost = entry->options->cost ? entry->options->cost : 1;
    entry->side->level = entry->options->priority ? entry->options->priority - 1 : WR_LEVEL_NORMAL;
    entry->side->drop = entry->options->drop;
    entry->side->drop_arg = entry->options->drop_arg;
    entry->side->arg_holds = 1;
    entry->side->whole = whole;
    entry->side->locals = whole ? NULL : wr_locals_capture();
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
    wr_os_free(entry->on_done);
    entry->on_done = NULL;
    if (!entry->side)
        return;
    wr_locals_release(entry->side->locals);
    wr_os_free(entry->side);
    entry->side = NULL;
}

/* ---- into the queue --------------------------------------------------------------------------- */

/* The queue of a level, with room for so many words more; NULL without memory. */
static struct wr_queue *queue_of(struct weir_group *group, uint8_t level, unsigned words)
{
    struct wr_queue *queue;

    if (level != WR_LEVEL_NORMAL && !wr_group_rare(group))
        return NULL;
    queue = wr_group_level(group, level);
    return wr_queue_make_room(group, queue, words) ? queue : NULL;
}

/* Makes the record. Under the lock. */
static int make_task(struct weir_task **out, struct weir_group *group, struct entry *entry,
                     weir_time now)
{
    struct weir_task *task = wr_task_alloc(group, entry->wants_handle ? 2 : 1);

    if (!task)
        return WEIR_ENOMEM;
    task->fn = entry->fn;
    task->queued_at = now;
    if (entry->side) {
        wr_add(&task->word, WR_SIDE, relaxed);
        task->u.side = entry->side;
        if (entry->side->watch)
            wr_watch_init(entry->side->watch, task, &entry->options->deadlines);
        entry->side = NULL; /* the record's now */
    } else {
        task->u.arg = entry->arg;
    }
    *out = task;
    return 0;
}

/* It will be told of its end. Under the lock. */
static void hand_on_done(struct weir_task *task, struct entry *entry)
{
    if (!entry->on_done)
        return;
    wr_watcher_join(entry->on_done, task);
    entry->on_done = NULL;
}

/* What keeps any task out, whatever the limits are. */
static weir_reason shut_out(struct weir_group *group, uint32_t cost)
{
    struct weir_executor *ex = group->executor;

    if (wr_load(&ex->closed, seq_cst)) /* since we looked */
        return WEIR_REASON_SHUT_DOWN;
    if (group
            ->evicted) /* likewise, or while it waited for room; its record is of this generation */
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

    if (!ex->hall)
        return WEIR_REASON_NONE;
    reason = wr_domain_admit(group); /* knows whether it is ready, now that it stands there */
    if (reason) {
        wr_queue_unput(queue, words);
        wr_withdraw(&group->sums, &ex->root, cost);
        *wake = wr_executor_has_ready(ex); /* loans may have been recalled on its behalf */
    }
    return reason;
}

/* Asks for admission; on success the task stands in its queue. WEIR_ENOMEM: there is no memory for its place.
 * Under the lock. */
static int enter(struct weir_group *group, struct weir_task *task, struct entry *entry,
                 weir_reason *reason, bool *wake)
{
    struct weir_executor *ex = group->executor;
    struct wr_side *side = wr_task_side(task);
    uint32_t cost = wr_task_cost(task);
    struct wr_queue *queue;

    *reason =
        wr_task_outcome(task) != WEIR_UNSETTLED
            ? WEIR_REASON_CANCELLED /* while the listener heard of it, or it waited for room */
            : shut_out(group, cost);
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
    hand_on_done(task, entry);
    wr_group_entered(group);
    if (side)
        wr_watch_queued(task);
    if (side && (side->cost > 1 || side->level < WR_LEVEL_NORMAL))
        wr_waits_suspect(ex); /* it goes before others, or needs more than they do */
    *wake = wr_group_refresh(group);
    return 0;
}

/* Whether a task of cost 1 that has just come last in its queue may be the next to start. Behind others it changes nothing:
 * what keeps the first of them keeps it. But those of lower priority it leaves behind. */
static inline bool may_be_first(const struct weir_group *group)
{
    const struct wr_rare *rare = group->rare;

    return group->sums.queued == 1 || (rare && (rare->levels[WR_LEVEL_NORMAL + 1].first ||
                                                rare->levels[WR_LEVEL_NORMAL + 2].first));
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
    *reason =
        wr_admit_freely(&group->sums) ? WEIR_REASON_NONE : wr_admit(&group->sums, &ex->root, 1);
    if (WR_UNLIKELY(*reason))
        return 0;
    wr_queue_put_entry(&group->queue, now, fn, arg);
    if (ex->hall && (*reason = ask_domain(group, &group->queue, 1, WR_ENTRY_WORDS, wake)))
        return 0;
    if (group->sums.queued == 1)
        wr_group_entered(group);
    if (may_be_first(group) || ex->hall)
        *wake = wr_group_refresh(group);
    return 0;
}

/* ---- not admitted ----------------------------------------------------------------------------- */

/* The body that WEIR_CALLER_RUNS has begin here. Under the lock; `frame` is entered. */
static void begin_guest(struct weir_task *task, const struct wr_frame *frame, weir_time now)
{
    struct weir_group *group = task->group;

    wr_group_entered(group);
    group->telling++; /* until it is over: who waits for quiet waits for this body, too */
    wr_task_set_phase(task, WR_PHASE_GUEST);
    task->started_at = now;
    wr_store(&task->error, (int32_t)wr_asked(group), relaxed);
    task->runner = frame->parker;
    if (wr_task_watched(task))
        wr_watch_guest(task, now);
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

    wr_guest_enter(&frame, &ex->intake.source, task);
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
static bool refuse(struct weir_task *task, struct entry *entry)
{
    bool unsettled;

    wr_group_lock(task->group);
    unsettled = wr_task_outcome(task) == WEIR_UNSETTLED;
    if (unsettled) {
        wr_task_set_phase(task, WR_PHASE_REFUSED);
        hand_on_done(task, entry);
    }
    wr_unlock(&task->group->lock);
    return unsettled;
}

static struct wr_end end_refused(weir_reason reason)
{
    return (struct wr_end){ .outcome = WEIR_REJECTED,
                            .error = WEIR_EREJECTED,
                            .reason = reason,
                            .at = wr_os_now(),
                            .body_over = true };
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
static void find_cancelled(struct weir_task *task, struct entry *entry)
{
    if (entry->on_done)
        wr_watcher_attach(entry->on_done, task);
    entry->on_done = NULL;
    wr_task_found_ended(task);
}

/* Permits and places are back: only the task itself is left to deal with. */
static void turn_away(struct weir_task *task, struct entry *entry, weir_reason reason)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    bool runs_here = !policy->rejection_fn && policy->rejection == WEIR_CALLER_RUNS &&
                     reason != WEIR_REASON_SHUT_DOWN;
    struct wr_end end = end_refused(reason);
    struct wr_frame frame = { 0 };

    if (!refuse(task, entry)) {
        find_cancelled(task, entry);
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
static int wait_for_room(struct weir_task *task, struct entry *entry, weir_reason *reason)
{
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor;
    weir_time deadline = entry->options->deadline ? entry->options->deadline : WEIR_FOREVER;
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
    wr_add(&ex->room_waiters, 1, seq_cst);
    wr_waitq_enter(&ex->room, &waiter, self);
    for (;;) {
        wr_group_lock(group);
        if (enter(group, task, entry, reason, &wake))
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
    wr_sub(&ex->room_waiters, 1, seq_cst);
    wr_nested_wait_leave(&nested);
    wr_group_unpin(group);
    return is_final(*reason) ? 0 : rc;
}

/* The submit fails, so there was no task: it is not counted, its argument stays the caller's, and its options' callback
 * is not called. But a listener that was told of it, and whoever it has shown the task to, hear of a rejection.
 * False: it was cancelled meanwhile, and so it was one. */
static __attribute__((noinline)) bool unsubmit(struct weir_task *task, struct entry *entry,
                                               weir_reason reason)
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
        find_cancelled(task, entry);
    return unsettled;
}

/* ---- the way in -------------------------------------------------------------------------------- */

/* Where a task goes: to the present generation of a key. */
struct target {
    struct weir_executor *ex;
    const char *key;
    struct weir_group *group;  /* the latest that is known, and stays; NULL: only the key is */
    struct weir_group *pinned; /* the same, if it is to be unpinned                          */
};

static void target_fini(struct target *target)
{
    if (WR_UNLIKELY(target->pinned != NULL))
        wr_group_unpin(target->pinned);
}

/* Finds the present generation, or makes it. */
static int find_present(struct target *target)
{
    struct weir_group *group = NULL;
    int rc = wr_group_find(&group, target->ex, target->key);

    target_fini(target);
    target->pinned = target->group = rc ? NULL : group;
    return rc;
}

/* Locks the group that a task goes to. If it was found by its key it may be gone as soon as it is unlocked, unless there is
 * a task of ours in it. */
static int lock_present(struct weir_group **out, struct target *target)
{
    int rc = 0;

    while (!rc) {
        struct weir_group *group = target->group;
        if (wr_load(&target->ex->closed, acquire))
            return WEIR_ECLOSED;
        if (group)
            wr_lock(&group->lock);
        else
            group = wr_group_lock_by_key(target->ex, target->key);
        if (group)
            wr_group_locked(group);
        *out = group;
        if (WR_LIKELY(group && !group->evicted))
            return 0;
        if (group)
            wr_unlock(&group->lock);
        rc = find_present(target);
    }
    return rc;
}

/* It was not admitted: waits for room, if that is the policy, or deals with it otherwise. Not part of its caller, whose frame
 * is there while a listener hears of the task, which may submit others. */
static __attribute__((noinline)) int not_admitted(struct weir_task *task, struct entry *entry,
                                                  weir_reason reason)
{
    const weir_policy *policy = &task->group->executor->policy.given;
    int rc = 0;

    if (policy->rejection == WEIR_BLOCK && !policy->rejection_fn && !is_final(reason))
        rc = wait_for_room(task, entry, &reason);
    if (rc)
        return unsubmit(task, entry, reason) ? rc : 0;
    if (reason == WEIR_REASON_CANCELLED)
        find_cancelled(task, entry);
    else if (reason)
        turn_away(task, entry, reason);
    return 0;
}

/* Under the lock at first; unlocks. */
static int admit_or_turn_away(struct weir_group *group, struct weir_task *task, struct entry *entry)
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
    rc = enter(group, task, entry, &reason, &wake);
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(ex);
    if (rc) /* no memory */
        return unsubmit(task, entry, reason) ? rc : 0;
    return reason ? not_admitted(task, entry, reason) : 0;
}

static bool lacks_watch(const struct weir_group *group, const struct entry *entry)
{
    return !entry->watched && wr_load(&group->executor->policy.watched, relaxed);
}

/* A record for it, which enters, or is dealt with otherwise. Under the lock; unlocks. */
static int submit_record(weir_task **out, struct weir_group *group, struct entry *entry,
                         weir_time now)
{
    uint32_t cost = entry->side ? entry->side->cost : 1;
    struct weir_task *task;
    weir_task *handle;
    int rc = wr_can_ever(&group->sums, &group->executor->root, cost)
                 ? make_task(&task, group, entry, now)
                 : WEIR_EINVAL;

    if (rc) {
        wr_unlock(&group->lock);
        return rc;
    }
    handle = entry->wants_handle ? task : NULL;
    rc = admit_or_turn_away(group, task, entry);
    if (rc)
        weir_task_unref(handle);
    else if (out)
        *out = handle;
    return rc;
}

/* ---- wholes ----------------------------------------------------------------------------------- */

/* It has no body, and so nothing to wait for: it is pending at once, and holds nothing. Under the lock. */
static void begin_whole(struct weir_group *group, struct weir_task *task, struct entry *entry,
                        weir_time now)
{
    hand_on_done(task, entry);
    group->submitted++;
    wr_group_entered(group);
    group->telling++; /* until it is over: who waits for quiet waits for it, too */
    task->started_at = now;
    wr_store(&task->error, (int32_t)wr_asked(group), relaxed);
    wr_task_pend(task, WR_PHASE_ASIDE);
    wr_watch_guest(task, now);
}

static int enter_whole(weir_task **out, struct target *target, struct entry *entry)
{
    const weir_listener *listener = &target->ex->policy.given.listener;
    struct weir_task *task;
    struct weir_group *group;
    weir_time now = wr_os_now();
    int rc = lock_present(&group, target);

    if (rc)
        return rc;
    if (lacks_watch(group, entry))
        rc = LACKS_WATCH;
    else if (wr_load(&target->ex->closed, seq_cst))
        rc = WEIR_ECLOSED; /* since we looked: nothing would end it */
    else
        rc = make_task(&task, group, entry, now);
    if (!rc)
        begin_whole(group, task, entry, now);
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
    struct target target = { .ex = group->executor, .key = group->key, .group = group };
    weir_task_options options;
    struct entry entry;
    int rc;

    do {
        rc = entry_init(&entry, &options, group->executor, NULL, NULL, opt, true, whole);
        if (!rc)
            rc = enter_whole(out, &target, &entry);
        entry_discard(&entry);
    } while (rc == LACKS_WATCH);
    target_fini(&target);
    return rc;
}

/* ---- bodies ----------------------------------------------------------------------------------- */

static int submit(weir_task **out, struct target *target, struct entry *entry)
{
    struct weir_group *group;
    weir_time now = wr_os_now();
    int rc = lock_present(&group, target);

    if (!rc && lacks_watch(group, entry)) {
        wr_unlock(&group->lock);
        rc = LACKS_WATCH;
    }
    return rc ? rc : submit_record(out, group, entry, now);
}

/* ---- tasks without anything ---------------------------------------------------------------------- */

/* Whether a task that says nothing itself needs a record while it waits: it has locals or perhaps a deadline, or a
 * listener is shown it. */
static bool needs_record(struct weir_executor *ex)
{
    return ex->policy.given.listener.submitted || wr_load(&ex->policy.watched, relaxed) ||
           *wr_context_slot() != NULL;
}

/* Whether it may enter as nothing but a function and its argument, if its group has room. */
static inline bool goes_freely(struct weir_executor *ex)
{
    return !ex->hall && !needs_record(ex);
}

/* Not admitted as it is: it gets a record, and another try with that. Under the lock; unlocks. */
static int submit_refused(struct weir_group *group, weir_fn *fn, void *arg, weir_time now)
{
    static const weir_task_options none = { .size = sizeof(none) };
    struct entry entry = { .fn = fn, .arg = arg, .options = &none };

    return submit_record(NULL, group, &entry, now);
}

/* Some of the tasks: those that can be dealt with in one hold of the group's lock, sharing one look at the clock and one
 * wake-up. *done: how many. */
static int submit_plain(struct target *target, weir_fn *fn, void *const *arg, size_t count,
                        size_t *done)
{
    struct weir_group *group;
    weir_reason reason = WEIR_REASON_NONE;
    weir_time now = wr_os_now();
    bool wake = false, wakes = false;
    int rc = lock_present(&group, target);
    size_t i = 0;

    *done = 0;
    if (rc)
        return rc;
    if (wr_load(&target->ex->policy.watched, relaxed)) /* this generation has deadlines */
        rc = LACKS_WATCH;
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

/* The same for one, and in the common case with nothing else to it. False: not this way. Under the lock; unlocks. */
static inline bool submit_freely(struct weir_executor *ex, struct weir_group *group, weir_fn *fn,
                                 void *arg, weir_time now)
{
    bool fits, wake = false;

    fits = !group->evicted && !wr_load(&ex->closed, seq_cst) &&
           !(group->rare && group->rare->gates && group->rare->gates->accepts) &&
           !wr_load(&ex->policy.watched, relaxed) &&
           wr_queue_make_room(group, &group->queue, WR_ENTRY_WORDS) &&
           wr_admit_freely(&group->sums);
    if (fits) {
        wr_queue_put_entry(&group->queue, now, fn, arg);
        if (group->sums.queued == 1)
            wr_group_entered(group);
        if (may_be_first(group))
            wake = wr_group_refresh(group);
    }
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(ex);
    return fits;
}

/* ---- the calls ------------------------------------------------------------------------------------ */

/* With whatever it may have. */
static int submit_whole(weir_task **out, struct target *target, weir_fn *fn, void *arg,
                        const weir_task_options *opt)
{
    weir_task_options options;
    struct entry entry;
    int rc;

    do {
        rc = entry_init(&entry, &options, target->ex, fn, arg, opt, out != NULL, NULL);
        if (!rc)
            rc = submit(out, target, &entry);
        entry_discard(&entry);
    } while (rc == LACKS_WATCH);
    return rc;
}

static __attribute__((noinline)) int submit_one(weir_task **out, struct target target, weir_fn *fn,
                                                void *arg, const weir_task_options *opt)
{
    size_t done;
    int rc = LACKS_WATCH;

    if (!out && !opt && fn && !needs_record(target.ex))
        rc = submit_plain(&target, fn, &arg, 1, &done);
    if (rc == LACKS_WATCH)
        rc = submit_whole(out, &target, fn, arg, opt);
    target_fini(&target);
    return rc;
}

int weir_submit(weir_task **out, weir_group *group, weir_fn *fn, void *arg,
                const weir_task_options *opt)
{
    if (WR_LIKELY(group && !out && !opt && fn && goes_freely(group->executor))) {
        weir_time now = wr_os_now();
        wr_lock(&group->lock);
        if (WR_LIKELY(submit_freely(group->executor, group, fn, arg, now)))
            return 0;
    }
    if (out)
        *out = NULL;
    if (!group)
        return WEIR_EINVAL;
    if (wr_load(&group->executor->closed, acquire))
        return WEIR_ECLOSED;
    return submit_one(out, (struct target){ group->executor, group->key, group, NULL }, fn, arg,
                      opt);
}

int weir_submit_key(weir_task **out, weir_executor *ex, const char *key, weir_fn *fn, void *arg,
                    const weir_task_options *opt)
{
    if (out)
        *out = NULL;
    if (!ex)
        return WEIR_EINVAL;
    if (wr_load(&ex->closed, acquire))
        return WEIR_ECLOSED;
    if (!key || !fn)
        return WEIR_EINVAL;
    if (!out && !opt && goes_freely(ex)) {
        weir_time now = wr_os_now();
        struct weir_group *group = wr_group_lock_by_key(ex, key);
        if (group && submit_freely(ex, group, fn, arg, now))
            return 0;
    }
    return submit_one(out, (struct target){ ex, key, NULL, NULL }, fn, arg, opt);
}

int64_t weir_submit_many(weir_task **out, weir_group *group, weir_fn *fn, void *const *arg,
                         size_t count, const weir_task_options *opt)
{
    struct target target;
    size_t submitted = 0, done;
    bool plain;
    int rc = 0;

    if (!group || !fn || (count && !arg))
        return WEIR_EINVAL;
    if (out && count)
        memset(out, 0, count * sizeof(out[0]));
    if (wr_load(&group->executor->closed, acquire))
        return WEIR_ECLOSED;
    target = (struct target){ group->executor, group->key, group, NULL };
    plain = !out && !opt && !needs_record(target.ex);
    while (!rc && submitted < count) {
        if (plain)
            rc = submit_plain(&target, fn, &arg[submitted], count - submitted, &done);
        else
            rc = submit_whole(out ? &out[submitted] : NULL, &target, fn, arg[submitted], opt);
        if (plain)
            submitted += done;
        else if (!rc)
            submitted++;
        if (rc == LACKS_WATCH) {
            plain = false;
            rc = 0;
        }
    }
    target_fini(&target);
    return submitted || !rc ? (int64_t)submitted : rc;
}
