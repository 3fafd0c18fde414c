/* Telling from a queue; see tell.h.
 * SPDX-License-Identifier: MIT */
#include "executor/tell.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"

/* Makes a decided task known to its waiters, which are woken. Under the lock. */
static void publish(struct weir_task *task)
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

    publish(task);
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

struct wr_watcher *wr_watcher_new(void (*done)(weir_task *, const weir_result *, void *), void *arg)
{
    struct wr_watcher *watcher = wr_os_alloc(sizeof(*watcher));

    if (watcher) {
        watcher->done = done;
        watcher->arg = arg;
    }
    return watcher;
}

void wr_watcher_add(struct wr_watcher *watcher, struct weir_task *task)
{
    watcher->next = wr_load(&task->watchers, relaxed);
    wr_store(&task->watchers, watcher, relaxed);
}

bool wr_watcher_join(struct wr_watcher *watcher, struct weir_task *task)
{
    bool joins;

    wr_group_lock(task->group);
    joins = wr_load(&task->watchers, relaxed) != WR_TOLD;
    if (joins)
        wr_watcher_add(watcher, task);
    wr_unlock(&task->group->lock);
    return joins;
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

    if (wr_task_word(task) < WR_REF) {
        wr_task_delete(task);
        return;
    }
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

/* The telling that the calling stack is inside of; NULL: none. */
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

/* False: there was nothing to tell. */
static bool tell_next(struct wr_telling *telling)
{
    struct wr_fifo_node *ended = wr_fifo_take(&telling->ended);
    struct wr_fifo_node *late = ended ? NULL : wr_fifo_take(&telling->late);

    telling->task = ended ? WR_CONTAINER(ended, struct weir_task, ended) : NULL;
    if (ended || late)
        wr_search_pass_on(); /* see wr_submit_last */
    if (late)
        call_late(WR_CONTAINER(late, struct wr_watcher, late));
    else if (ended)
        tell_task(telling->task);
    return ended || late;
}

void wr_telling_open(struct wr_telling *telling)
{
    if (present())
        return;
    *telling = (struct wr_telling){ .frame.notes = telling };
    wr_frame_enter(&telling->frame);
}

void wr_telling_close(struct wr_telling *telling)
{
    if (present() != telling)
        return; /* inside of another, which has the queues */
    while (tell_next(telling))
        ;
    wr_frame_leave(&telling->frame);
}

void wr_tell_locked(struct weir_task *task)
{
    if (!has_parts(task))
        publish(task);
    wr_fifo_append(&present()->ended, &task->ended);
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

void wr_watcher_attach(struct wr_watcher *watcher, struct weir_task *task)
{
    struct wr_telling telling;

    if (wr_watcher_join(watcher, task))
        return;
    watcher->task = weir_task_ref(task);
    wr_telling_open(&telling);
    wr_fifo_append(&present()->late, &watcher->late);
    wr_telling_close(&telling);
}

void wr_task_told(struct weir_task *task)
{
    struct weir_group *group = task->group;
    struct wr_side *side = wr_task_side(task);
    struct wr_telling telling;
    bool last = false;

    wr_telling_open(&telling);
    if (side) {
        wr_group_lock(group);
        last = --side->arg_holds == 0;
        wr_unlock(&group->lock);
    }
    if (last && side->drop_arg)
        side->drop_arg(side->arg);
    /* The record goes at once: a thread that waits for quiet finds unwanted values dropped. */
    if (wr_sub(&task->word, WR_REF, acq_rel) / WR_REF == 1)
        wr_task_delete(task);
    wr_group_lock(group);
    group->telling--;
    wr_group_left(group);
    wr_group_unlock_and_reap(group);
    wr_telling_close(&telling);
}
