/* Telling from a queue; see tell.h.
 * SPDX-License-Identifier: MIT */
#include "executor/tell.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"

#include <weir/error.h>

/* ---- watchers -------------------------------------------------------------------------------- */

void wr_task_publish(struct weir_task *task)
{
    struct wr_watcher *watcher = wr_load(&task->watchers, relaxed);

    if (wr_task_word(task) & WR_DONE)
        return;
    wr_add(&task->word, WR_DONE, release); /* pairs with weir_task_done */
    for (; watcher; watcher = watcher->next)
        if (watcher->waiter)
            wr_unpark(watcher->waiter);
}

struct wr_watcher *wr_task_close_watchers(struct weir_task *task)
{
    struct wr_watcher *watcher, *next, *callbacks = NULL;

    wr_task_publish(task);
    for (watcher = wr_load(&task->watchers, relaxed); watcher; watcher = next) {
        next = watcher->next;
        if (watcher->waiter)
            continue;
        watcher->next = callbacks;
        callbacks = watcher;
    }
    wr_store(&task->watchers, WR_TOLD, release); /* last: waiters may be gone then; see leave */
    return callbacks;
}

struct wr_watcher *wr_watcher_new(void (*done)(weir_task *task, const weir_result *result,
                                               void *arg),
                                  void *arg)
{
    struct wr_watcher *watcher = wr_os_alloc(sizeof(*watcher));

    if (watcher) {
        watcher->done = done;
        watcher->arg = arg;
    }
    return watcher;
}

bool wr_watcher_join(struct wr_watcher *watcher, struct weir_task *task)
{
    struct wr_watcher *first = wr_load(&task->watchers, relaxed);

    if (first == WR_TOLD)
        return false;
    watcher->next = first;
    wr_store(&task->watchers, watcher, relaxed);
    return true;
}

/* ---- one at a time --------------------------------------------------------------------------- */

static void tell_listener(struct weir_task *task, const weir_result *result)
{
    const weir_listener *listener = &task->group->executor->policy.given.listener;

    if (wr_task_phase(task) == WR_PHASE_REFUSED)
        return; /* it has heard of it */
    if (result->outcome == WEIR_REJECTED && listener->rejected)
        listener->rejected(task, result->reason, listener->arg);
    else if (result->outcome != WEIR_REJECTED && listener->completed)
        listener->completed(task, result, listener->arg);
}

/* Whether it is a whole whose parts have yet to be ended. */
static bool has_parts(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side && side->whole && !side->parts_over;
}

static void tell_task(struct weir_task *task)
{
    struct wr_watcher *watcher, *next;
    weir_result result;

    wr_task_result(&result, task);
    if (has_parts(task)) {
        task->u.side->whole->ended(task->u.side->whole, task, result.outcome, result.reason);
        return; /* wr_whole_over tells */
    }
    tell_listener(task, &result);
    wr_group_lock(task->group);
    watcher = wr_task_close_watchers(task);
    wr_unlock(&task->group->lock);
    for (; watcher; watcher = next) {
        next = watcher->next;
        watcher->done(task, &result, watcher->arg);
        wr_os_free(watcher);
        if (next)
            wr_search_pass_on(); /* see wr_submit_last */
    }
    wr_task_told(task);
}

static void call_late(struct wr_watcher *watcher)
{
    weir_result result;

    wr_task_result(&result, watcher->task);
    watcher->done(watcher->task, &result, watcher->arg);
    weir_task_unref(watcher->task);
    wr_os_free(watcher);
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* What the calling stack is inside of; NULL: of none. */
static struct wr_telling *present(void)
{
    struct wr_frame *frame = wr_frame_innermost();

    return frame ? frame->notes : NULL;
}

struct weir_task *wr_telling_task(void)
{
    struct wr_telling *telling = present();

    return telling ? telling->task : NULL;
}

static void append(struct wr_telling *telling, struct weir_task *task)
{
    task->next = NULL;
    *telling->last = task;
    telling->last = &task->next;
}

static struct weir_task *first_task(struct wr_telling *telling)
{
    struct weir_task *task = telling->first;

    if (!task)
        return NULL;
    telling->first = task->next;
    if (!telling->first)
        telling->last = &telling->first;
    return task;
}

static struct wr_watcher *first_late(struct wr_telling *telling)
{
    struct wr_watcher *watcher = telling->late;

    if (!watcher)
        return NULL;
    telling->late = watcher->next;
    if (!telling->late)
        telling->late_last = &telling->late;
    return watcher;
}

/* False: there was nothing to tell. */
static bool tell_next(struct wr_telling *telling)
{
    struct weir_task *task = first_task(telling);
    struct wr_watcher *watcher = task ? NULL : first_late(telling);

    telling->task = task;
    if (task || watcher)
        wr_search_pass_on(); /* see wr_submit_last */
    if (task && wr_task_word(task) < WR_REF)
        wr_task_delete(task);
    else if (task)
        tell_task(task);
    else if (watcher)
        call_late(watcher);
    return task || watcher;
}

void wr_telling_open(struct wr_telling *telling)
{
    telling->inside = present() != NULL;
    if (telling->inside)
        return;
    telling->frame = (struct wr_frame){ .notes = telling };
    telling->task = NULL;
    telling->first = NULL;
    telling->last = &telling->first;
    telling->late = NULL;
    telling->late_last = &telling->late;
    wr_frame_enter(&telling->frame);
}

void wr_telling_close(struct wr_telling *telling)
{
    if (telling->inside)
        return;
    while (tell_next(telling))
        ;
    wr_frame_leave(&telling->frame);
}

void wr_tell_locked(struct weir_task *task)
{
    if (!has_parts(task))
        wr_task_publish(task);
    append(present(), task);
}

void wr_tell(struct weir_task *task)
{
    struct wr_telling telling;

    if (present()) {
        wr_group_lock(task->group);
        wr_tell_locked(task);
        wr_unlock(&task->group->lock);
        return;
    }
    wr_telling_open(&telling);
    telling.task = task;
    tell_task(task);
    wr_telling_close(&telling);
}

void wr_whole_over(struct weir_task *task)
{
    task->u.side->parts_over = true;
    wr_tell(task);
}

void wr_tell_gone(struct weir_task *task)
{
    struct wr_telling telling;

    wr_telling_open(&telling);
    append(present(), task);
    wr_telling_close(&telling);
}

void wr_watcher_attach(struct wr_watcher *watcher, struct weir_task *task)
{
    struct wr_telling telling, *around;
    bool joined;

    wr_group_lock(task->group);
    joined = wr_watcher_join(watcher, task);
    wr_unlock(&task->group->lock);
    if (joined)
        return;
    wr_telling_open(&telling);
    around = present();
    watcher->task = weir_task_ref(task);
    *around->late_last = watcher;
    around->late_last = &watcher->next;
    wr_telling_close(&telling);
}

/* ---- and after ------------------------------------------------------------------------------- */

/* Pins the group of a task, and lets go of the argument, if there is a `side`. Answers that if it was the last holder. */
static struct wr_side *pin(struct weir_task *task, struct wr_side *side)
{
    bool last;

    wr_group_lock(task->group);
    task->group->pins++;
    last = side && --side->arg_holds == 0;
    wr_unlock(&task->group->lock);
    return last ? side : NULL;
}

static void told_and_unpin(struct weir_group *group)
{
    wr_group_lock(group);
    group->telling--;
    wr_group_left(group);
    wr_unlock(&group->lock);
    wr_group_unpin(group);
}

/* Lets go of the argument, if there is a `side`, and of a reference; of the record with it at once: a thread that waits
 * for quiet finds unwanted values dropped. */
static void put(struct weir_task *task, struct wr_side *side)
{
    struct weir_group *group = task->group;
    struct wr_telling telling;

    wr_telling_open(&telling);
    side = pin(task, side);
    if (side && side->drop_arg)
        side->drop_arg(side->arg);
    if (wr_sub(&task->word, WR_REF, acq_rel) / WR_REF == 1)
        wr_task_delete(task);
    told_and_unpin(group);
    wr_telling_close(&telling);
}

void wr_task_told(struct weir_task *task)
{
    put(task, wr_task_side(task));
}

void wr_task_put(struct weir_task *task)
{
    put(task, NULL);
}

/* Drops a reference, unless that would run code of the user's. */
static bool unref_quietly(struct weir_task *task)
{
    uint32_t word = wr_load(&task->word, acquire);

    while (word / WR_REF > 1)
        if (wr_cas(&task->word, &word, word - WR_REF, acq_rel))
            return true;
    if (!wr_task_goes_quietly(task)) /* ours is the last one: nothing changes any more */
        return false;
    weir_task_unref(task);
    return true;
}

bool wr_task_put_quietly(struct weir_task *task)
{
    struct weir_group *group = task->group;

    pin(task, NULL);
    if (unref_quietly(task)) {
        told_and_unpin(group);
        return true;
    }
    wr_group_unpin(group);
    return false;
}
