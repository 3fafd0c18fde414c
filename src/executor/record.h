/* A task's record, from allocation to its last reference: what its word says, and where its parts are.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_RECORD_H
#define WR_EXECUTOR_RECORD_H

#include "executor/queue.h"
#include "executor/task.h"

static inline uint32_t wr_task_word(const struct weir_task *task)
{
    return wr_load(&task->word, relaxed);
}

static inline uint32_t wr_task_phase(const struct weir_task *task)
{
    return wr_task_word(task) & WR_PHASE_MASK;
}

/* Under the group's lock. References may change at any time, phases not. */
static inline void wr_task_set_phase(struct weir_task *task, uint32_t phase)
{
    wr_add(&task->word, phase - wr_task_phase(task), relaxed);
}

/* Whether the body of a task in that phase executes. */
static inline bool wr_phase_has_body(uint32_t phase)
{
    return phase == WR_PHASE_RUNNING || phase == WR_PHASE_GUEST;
}

static inline weir_outcome wr_task_outcome(const struct weir_task *task)
{
    return (weir_outcome)((wr_task_word(task) & WR_OUTCOME_MASK) >> WR_OUTCOME_SHIFT);
}

static inline weir_reason wr_task_reason(const struct weir_task *task)
{
    return (weir_reason)((wr_task_word(task) & WR_REASON_MASK) >> WR_REASON_SHIFT);
}

static inline struct wr_side *wr_task_side(const struct weir_task *task)
{
    return wr_task_word(task) & WR_SIDE ? task->u.side : NULL;
}

static inline uint32_t wr_task_cost(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side ? side->cost : 1;
}

/* Whether a value that nothing takes is given to a function of the user's. */
static inline bool wr_task_drops_values(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side && side->drop;
}

/* What its body is given. Not once it may have settled: the value takes the same place. */
static inline void *wr_task_arg(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side ? side->arg : task->u.arg;
}

/* Where its end leaves its value, which may have another owner by now. */
static inline void **wr_task_value(struct weir_task *task)
{
    struct wr_side *side = wr_task_side(task);

    return side ? &side->value : &task->u.value;
}

/* What its entry says of it. */
static inline void wr_task_read_entry(struct weir_task *task, const uint64_t *entry)
{
    task->fn = wr_entry_fn(entry);
    task->u.arg = wr_entry_arg(entry);
    task->queued_at = wr_entry_time(entry);
}

/* A record with one reference per holder, counted in group->records; NULL without memory. Under the group's lock. */
struct weir_task *wr_task_alloc(struct weir_group *group, uint32_t references);

/* The last reference is gone, or there never was another. Under the lock. */
void wr_task_recycle(struct weir_group *group, struct weir_task *task);

/* The same without any lock, with what it has; the drop of a value is code of the user's. */
void wr_task_delete(struct weir_task *task);

#endif
