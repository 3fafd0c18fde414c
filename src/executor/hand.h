/* A hand: the right to start the next tasks of a group one after the other, without its lock.
 *
 * A worker whose turn lasts, and whose group's first tasks are entries (queue.h), is given a hand under the group's lock.
 * From then on it ends one task and starts the next with a single step of the hand's counter, all on one record, one
 * permit and one slot. The tasks stay where they are in the queue: nothing is taken ahead, nothing is hidden. Whoever else
 * locks the group (wr_group_lock) folds the hand first: the right is over, and all that happened by it is brought into
 * the group's sums, as if each step had been made under the lock. So order, pauses, limits, eviction and figures are
 * exact, and a long body strands nothing behind it.
 *
 * Only a submit that depends on none of these does not fold (submit.c): it looks at the end of the queue alone. To it more
 * tasks seem to wait than do, so it may find a group that has become empty not worth a look. That is right: such a group
 * is in its ring if its limits allow another task, and else the worker of the hand looks at the queue when its body ends.
 * With domains it also tells the ledger what the group is ready for, which may be too much by as many: a worker that comes
 * for it folds the hand and puts that right.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_HAND_H
#define WR_EXECUTOR_HAND_H

#include "base/atomic.h"
#include "executor/queue.h"

struct weir_group;
struct weir_task;

enum { WR_HAND_MAX = 32, WR_HAND_FOLDING = 1 << 16, WR_HAND_FOLDED = 1 << 17 };

/* A worker's: it has one at most. `next` is stepped by that worker and swapped for FOLDING by whoever folds, and then set to
 * FOLDED: until then the rest is read, and not the worker's to write. What stands before `next` was written before the step
 * that counted it. The entries are copies: as soon as a task has begun, a fold may have given its place in the queue to
 * another. */
struct wr_hand {
    _Atomic uint32_t next; /* tasks that began with it; or FOLDING, FOLDED: no more begin */
    uint32_t end;          /* how many may                                                */
    struct weir_group *group;
    struct weir_task *task;    /* the record that they run on                                  */
    weir_time at[WR_HAND_MAX]; /* when each began, and the one before ended                 */
    uint64_t entry[WR_HAND_MAX][WR_ENTRY_WORDS];
};

static inline void wr_hand_init(struct wr_hand *hand)
{
    wr_store(&hand->next, WR_HAND_FOLDED, relaxed);
    hand->end = 0;
}

/* Or being folded: what another thread reads of it is not ours to write yet. */
static inline bool wr_hand_is_out(const struct wr_hand *hand)
{
    return wr_load(&hand->next, acquire) != WR_HAND_FOLDED;
}

/* Makes sure that it is not out. By its worker; without any lock. */
void wr_hand_finish(struct wr_hand *hand);

/* Gives the worker that runs `task`, which nothing else knows of, a hand of at most `most` tasks. False: that is
 * none, or there is no entry to begin with. Under the lock; neither this hand nor another of the group's is out. */
bool wr_hand_give(struct wr_hand *hand, struct weir_group *group, struct weir_task *task,
                  uint32_t most);

/* The next task's entry: the one before has ended, without an error, and it begins. NULL: it does not; the hand is over. */
static inline const uint64_t *wr_hand_step(struct wr_hand *hand, weir_time now)
{
    uint32_t next = wr_load(&hand->next, relaxed);

    if (next >= hand->end)
        return NULL;
    hand->at[next] = now;
    if (!wr_cas(&hand->next, &next, next + 1, acq_rel)) /* pairs with the swap of a fold */
        return NULL;
    return hand->entry[next];
}

/* Ends the hand that is out. Under the lock. */
void wr_hand_fold(struct weir_group *group);

/* For folds: what the record says of the task that runs on it; and: so many entries have left the queue to run. */
void wr_entry_to_record(const uint64_t *entry, struct weir_task *task, weir_time started_at);
void wr_group_pop_entries(struct weir_group *group, uint32_t count);

#endif
