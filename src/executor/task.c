/* Records of tasks, from allocation to the last reference; and what a handle can do: cancel, settle, ask for callbacks, take the
 * value. Waiting is in wait.c.
 * SPDX-License-Identifier: MIT */
#include "executor/task.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"
#include "executor/tell.h"

#include <weir/error.h>

enum { REFERENCES_MAX = 32767 }; /* more are a leak */

struct weir_task *wr_task_alloc(struct weir_group *group, uint32_t references)
{
    struct weir_task *task = wr_cell_take(&group->executor->cells, group->hash);

    if (!task)
        return NULL;
    group->records++;
    __atomic_store_n(&task->group, group, __ATOMIC_RELEASE); /* the monitor may look; see stall.c */
    atomic_init(&task->error, 0);
    atomic_init(&task->watchers, NULL);
    /* Release: a thread that finds the record in use finds its group; see tasks.c. */
    wr_store(&task->word, WR_PHASE_NEW | references * WR_REF, release);
    return task;
}

void wr_task_recycle(struct weir_group *group, struct weir_task *task)
{
    wr_store(&task->word, WR_PHASE_OVER, relaxed); /* no references: not in use */
    wr_cell_give(&group->executor->cells, group->hash, task);
    group->records--;
}

weir_task *weir_task_ref(weir_task *task)
{
    uint32_t before = wr_add(&task->word, WR_REF, relaxed);

    WR_ASSERT(before / WR_REF < REFERENCES_MAX);
    return task;
}

void wr_task_delete(struct weir_task *task)
{
    struct weir_group *group = task->group;
    struct wr_side *side = wr_task_side(task);

    if (side) {
        if (side->drop && side->value && !(wr_task_word(task) & WR_TAKEN))
            side->drop(side->value);
        if (side->drop_arg && side->arg_holds)
            side->drop_arg(side->arg);
        if (side->whole)
            side->whole->gone(side->whole);
        wr_locals_release(side->locals); /* of a body that never ran */
        wr_os_free(side);
    }
    wr_group_lock(group);
    wr_task_recycle(group, task);
    wr_group_unlock_and_reap(group);
}

void weir_task_unref(weir_task *task)
{
    const struct wr_side *side;

    if (!task || wr_sub(&task->word, WR_REF, acq_rel) / WR_REF > 1)
        return;
    side = wr_task_side(task);
    if (side && (side->drop || side->drop_arg || side->whole || side->locals))
        wr_tell(task); /* which runs code of the user's from its queue */
    else
        wr_task_delete(task);
}

/* ---- handles ------------------------------------------------------------------------------------- */

int weir_task_on_done(weir_task *task,
                      void (*done)(weir_task *task, const weir_result *result, void *arg),
                      void *arg)
{
    struct wr_watcher *watcher;

    if (!task || !done)
        return WEIR_EINVAL;
    watcher = wr_watcher_new(done, arg);
    if (!watcher)
        return WEIR_ENOMEM;
    wr_watcher_attach(watcher, task);
    return 0;
}

/* The writing end closes, and the reading end tells. */
static void close_pipe(weir_task *task, const weir_result *result, void *arg)
{
    (void)task;
    (void)result;
    wr_os_close((int)(intptr_t)arg);
}

int weir_task_fd(weir_task *task)
{
    int fds[2], rc;

    if (!task)
        return WEIR_EINVAL;
    rc = wr_os_pipe(fds);
    if (rc)
        return rc;
    rc = weir_task_on_done(task, close_pipe, (void *)(intptr_t)fds[1]);
    if (!rc)
        return fds[0];
    wr_os_close(fds[0]);
    wr_os_close(fds[1]);
    return rc;
}

bool weir_task_cancel(weir_task *task)
{
    struct wr_end end = wr_end_without_body(WEIR_CANCELLED, WEIR_REASON_CANCELLED);

    return task && wr_task_end(task, &end);
}

static int settle(struct weir_task *task, int error, weir_reason reason, void *value)
{
    struct wr_end end = { .outcome = wr_outcome_of(error),
                          .error = error,
                          .reason = error == WEIR_ECANCELED ? reason : WEIR_REASON_NONE,
                          .value = value,
                          .at = wr_os_now(),
                          .if_begun = true };

    if (wr_task_end(task, &end))
        return 0;
    wr_task_drop_value(task, value);
    return WEIR_EALREADY;
}

int weir_task_settle(weir_task *task, int error, void *value)
{
    if (!task || error == WEIR_PENDING || wr_task_whole(task))
        return WEIR_EINVAL;
    return settle(task, error, WEIR_REASON_GAVE_UP, value);
}

int wr_whole_settle(struct weir_task *task, int error, weir_reason reason)
{
    weir_reason asked = error == WEIR_ECANCELED ? wr_task_asked_by(task) : WEIR_REASON_GAVE_UP;

    return settle(task, error, asked == WEIR_REASON_GAVE_UP ? reason : asked, NULL);
}

void wr_whole_time_out(struct weir_task *task, weir_reason reason)
{
    struct wr_end end = wr_end_without_body(WEIR_TIMED_OUT, reason);

    wr_task_end(task, &end);
}

struct wr_whole *wr_task_whole(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side ? side->whole : NULL;
}

void *wr_task_take_value(struct weir_task *task)
{
    void *value = NULL;

    wr_group_lock(task->group);
    if (!(wr_task_word(task) & WR_TAKEN)) {
        value = *wr_task_value(task);
        wr_add(&task->word, WR_TAKEN, relaxed);
    }
    wr_unlock(&task->group->lock);
    return value;
}

void *weir_task_take(weir_task *task)
{
    return weir_task_done(task) && wr_task_outcome(task) == WEIR_DONE ? wr_task_take_value(task)
                                                                      : NULL;
}

const char *weir_task_key(const weir_task *task)
{
    return task->group->key;
}

void *weir_task_arg(const weir_task *task)
{
    void *arg;

    wr_group_lock(task->group);
    arg = wr_task_outcome(task) == WEIR_UNSETTLED ? wr_task_arg(task) : NULL;
    wr_unlock(&task->group->lock);
    return arg;
}

const char *weir_task_id(const weir_task *task)
{
    struct wr_side *side = wr_task_side(task);

    return side && side->id ? side->id : "";
}
