/* Tasks in the queue of a group; see base/queue.h. A task without handle, options, locals or deadline is no more than an entry
 * until it starts: when it was submitted, times two, plus one; the function; the argument. All others are records.
 *
 * All under the group's lock. Gaps never outnumber the tasks that wait in the group.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_QUEUE_H
#define WR_EXECUTOR_QUEUE_H

#include "base/queue.h"

#include <weir/task.h>

struct weir_group;
struct weir_task;

/* NULL: it is an entry. */
static inline struct weir_task *wr_record_at(const uint64_t *word)
{
    return wr_is_entry(*word) ? NULL : (struct weir_task *)(uintptr_t)*word;
}

static inline weir_time wr_entry_time(const uint64_t *word)
{
    return (weir_time)(word[0] >> 1);
}

static inline weir_fn *wr_entry_fn(const uint64_t *word)
{
    return (weir_fn *)(uintptr_t)word[1];
}

static inline void *wr_entry_arg(const uint64_t *word)
{
    return (void *)(uintptr_t)word[2];
}

/* Appends an entry. There must be room. */
static inline void wr_entry_put(struct wr_queue *queue, weir_time now, weir_fn *fn, void *arg)
{
    enum {
        AT_ONCE_NS = 60
    }; /* after each other, one thread submits to no other group in between */

    wr_queue_put_entry(queue, (uint64_t)now << 1 | 1, (uint64_t)(uintptr_t)fn,
                       (uint64_t)(uintptr_t)arg, AT_ONCE_NS << 1);
}

/* Makes sure that so many words can be put. False: there is no memory. */
bool wr_group_grow_queue(struct weir_group *group, struct wr_queue *queue);
static inline bool wr_group_make_room(struct weir_group *group, struct wr_queue *queue,
                                      unsigned words)
{
    return wr_queue_has_room(queue, words) || wr_group_grow_queue(group, queue);
}

/* The first task of one of the group's queues; NULL: there is none. */
uint64_t *wr_group_skip_gaps(struct weir_group *group, struct wr_queue *queue);
static inline uint64_t *wr_group_first_in(struct weir_group *group, struct wr_queue *queue)
{
    uint64_t *first = wr_queue_at_head(queue);

    return first || wr_queue_is_empty(queue) ? first : wr_group_skip_gaps(group, queue);
}

/* Makes an entry of group->queue a record; NULL without memory. */
struct weir_task *wr_group_make_record(struct weir_group *group, uint64_t *entry);

/* Gives back the memory of an empty queue. */
void wr_group_empty_queue(struct weir_group *group, struct wr_queue *queue);

#endif
