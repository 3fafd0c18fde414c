/* Records of tasks: from allocation to the last reference.
 * SPDX-License-Identifier: MIT */
#include "executor/record.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/state.h"
#include "executor/tell.h"

enum { REFERENCES_MAX = 32767 }; /* more are a leak */

struct weir_task *wr_task_alloc(struct weir_group *group, uint32_t references)
{
    struct weir_task *task = wr_cell_take(&group->executor->cells, group->hash);

    if (!task)
        return NULL;
    group->records++;
    __atomic_store_n(&task->group, group, __ATOMIC_RELEASE); /* the monitor may look; see run.c */
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
