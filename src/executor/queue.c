/* Tasks in the queue of a group; see queue.h. Chunks and records lie in the executor's cells, by group.
 * SPDX-License-Identifier: MIT */
#include "executor/queue.h"

#include "executor/state.h"

bool wr_group_grow_queue(struct weir_group *group, struct wr_queue *queue)
{
    return wr_queue_grow(queue, &group->executor->cells, group->hash);
}

uint64_t *wr_group_skip_gaps(struct weir_group *group, struct wr_queue *queue)
{
    return wr_queue_skip(queue, &group->executor->cells, group->hash);
}

struct weir_task *wr_group_make_record(struct weir_group *group, uint64_t *entry)
{
    struct weir_task *task;

    if (wr_queue_is_lone(&group->queue)) { /* a record does not stand there without a chunk */
        if (!wr_group_grow_queue(group, &group->queue))
            return NULL;
        entry = wr_queue_at_head(&group->queue);
    }
    task = wr_task_alloc(group, 1);
    if (!task)
        return NULL;
    group->submitted++; /* as an entry it was counted by standing there */
    wr_task_read_entry(task, entry);
    wr_task_set_phase(task, WR_PHASE_QUEUED);
    wr_queue_to_record(&group->queue, entry, &task->queued);
    return task;
}

void wr_group_empty_queue(struct weir_group *group, struct wr_queue *queue)
{
    wr_queue_fini(queue, &group->executor->cells, group->hash);
}
