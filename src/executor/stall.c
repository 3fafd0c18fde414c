/* Stalls joined to groups: which group blocks a worker, and what becomes of it.
 * SPDX-License-Identifier: MIT */
#include "executor/slice.h"

#include <string.h>

enum { NAME_SIZE = 32 };

/* Counts a stall against a group; from `stall_max` on, its later tasks run on threads if that is the policy.
 * Under the lock. */
static void count_stall(struct weir_group *group)
{
    const weir_policy *policy = &group->executor->policy.given;

    wr_add(&group->executor->stalls, 1, relaxed);
    if (wr_group_extras(group) && ++group->extras->stalls >= policy->stall_max &&
        policy->stall_policy == WEIR_STALL_TO_THREADS) {
        group->carrier = WEIR_THREADS;
        wr_waits_suspect(
            group->executor); /* a thread may be with a task that waits for one of these */
    }
}

/* The monitor asks about an item that may be over by now. Records are never unmapped while the runtime lives,
 * but its group may be gone. A group is freed only after the thread that does has held the lock of its shard, by which
 * time its last task's worker has moved on; so while we hold them all and that worker has not, the group is
 * there (and is the right one, since the record still is that task's). */
uint64_t wr_stall_describe(struct wr_source *source, void *item, char *name,
                           const struct wr_sighting *seen)
{
    struct weir_executor *ex = ((struct wr_crew *)source)->executor;
    struct weir_task *task = item;
    struct weir_group *group;

    memset(name, 0, NAME_SIZE);
    wr_table_lock_all(&ex->table);
    group = __atomic_load_n(&task->group, __ATOMIC_ACQUIRE);
    if (wr_still_there(seen)) {
        strncpy(name, group->key, NAME_SIZE - 1);
        wr_group_lock(group);
        count_stall(group);
        wr_unlock(&group->lock);
    }
    wr_table_unlock_all(&ex->table);
    return (uint64_t)(uintptr_t)item;
}

void wr_stall_identify(struct wr_source *source, void *item, const char *part[WR_NAME_PARTS])
{
    const char *id = weir_task_id(item);

    (void)source;
    part[0] = *id ? "task \"" : "a task";
    part[1] = id;
    part[2] = *id ? "\" of group \"" : " of group \"";
    part[3] = weir_task_key(item);
    part[4] = "\"";
}

void wr_stall_told(const weir_stall *stall, void *ex_arg)
{
    const weir_listener *listener = &((struct weir_executor *)ex_arg)->policy.given.listener;

    if (listener->stalled)
        listener->stalled(stall, listener->arg);
}
