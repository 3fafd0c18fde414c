/* A hand: the right to start the next tasks of a group one after the other, without its lock. There are two kinds:
 *
 *     a worker's own   the turn of its group lasts, and it goes on from task to task at once
 *     a beat's         tasks of a paced group start one by one, each at its time, by whichever worker comes; see beat.h
 *
 * A group whose first tasks are entries (queue.h) gives a hand under its lock. From then on a single step of the hand's
 * word starts the next task, all on one record, one permit and one slot. The tasks stay where they are in the queue:
 * nothing is taken ahead, nothing is hidden. Every thread that locks the group (wr_group_lock) folds the hand first: the right
 * is over, and all that happened by it is brought into the group's sums, as if each step had been made under the lock. So
 * order, pauses, limits, eviction and figures are exact, and a long body strands nothing behind it.
 *
 * Only a submit that depends on none of these does not fold (submit.c): it looks at the end of the queue alone. It sees
 * tasks that have begun by the hand as waiting, so it may pass over a group that has become empty. That is right: such a
 * group is in its ring if its limits allow another task, and else the worker of the hand looks at the queue when its body
 * ends. With domains it also tells the ledger how many tasks the group is ready for, which may be too many by those: a worker
 * that comes for one folds the hand and puts that right.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_HAND_H
#define WR_EXECUTOR_HAND_H

#include "base/atomic.h"
#include "executor/queue.h"

struct weir_group;
struct weir_task;

/* A hand's word: how many tasks have begun by it, and whether the last of them runs; or that no more begin. */
enum {
    WR_HAND_RUNS = 0,
    WR_HAND_IDLE = 1 << 15,    /* of a beat only: a worker is never between two tasks of its hand */
    WR_HAND_FOLDING = 1 << 16, /* what happened is being read                                     */
    WR_HAND_FOLDED = 1 << 17
};

/* In group->pending_first, with the address of the hand that is out: there is no pending task then. */
enum { WR_HAND_OUT = 1, WR_HAND_OF_BEAT = 2 };

enum { WR_HAND_MAX = 64 };

/* The word is stepped by the worker whose hand it is, or, a beat's, under the ring's lock. The thread that folds swaps it for
 * FOLDING. began[] of a task is written before the step that counts it. From FOLDING until FOLDED that thread reads the rest of
 * the hand, and no other may write it; a worker whose step was counted goes on with that task's entry. The entries are copies:
 * as soon as a task has begun, a fold may have given its place in the queue to another.
 *     out  <=>  its address stands in group->pending_first, marked; there is one at most
 *     while it is out, of `began` tasks:
 *         wr_queue_entries(queue), sums.queued are too high, submitted and started too low by `began`
 *         succeeded is too low by those that ended: `began`, since by the first step of a worker's hand the task ended that
 *         was running when it was given; of a beat all that began but the one that runs
 *         bodies, and permits, are those of when it was given: one on a worker's record, none on a beat's */
struct wr_hand {
    _Atomic uint32_t word;
    uint32_t end; /* how many may begin                                             */
    struct weir_group *group;
    struct weir_task *task;       /* the record that they run on                                  */
    weir_time began[WR_HAND_MAX]; /* when; by a worker's hand, the one before ended then         */
    uint64_t entry[WR_HAND_MAX][WR_ENTRY_WORDS];
};

/* The times may be different CPUs'. */
static inline int64_t wr_span(weir_time from, weir_time to)
{
    return to > from ? to - from : 0;
}

static inline void wr_hand_init(struct wr_hand *hand)
{
    wr_store(&hand->word, WR_HAND_FOLDED, relaxed);
    hand->end = 0;
}

/* Whether it is out, or is being folded: then another thread reads it, and its worker must not write it yet. */
static inline bool wr_hand_is_out(const struct wr_hand *hand)
{
    return wr_load(&hand->word, acquire) != WR_HAND_FOLDED;
}

/* Makes sure that it is not out. By its worker; without any lock. */
void wr_hand_finish(struct wr_hand *hand);

/* Gives a hand of at most `most` tasks on that record, which nothing else knows of: to the worker that runs it (RUNS), or to a
 * beat (IDLE). False: none is given, because `most` is 0, the first task is no entry, or a task is pending. Under the lock;
 * neither this hand nor another of the group's is out. */
bool wr_hand_give(struct wr_hand *hand, struct weir_group *group, struct weir_task *task,
                  uint32_t most, uint32_t runs_or_idle);

/* The next task begins, and the one before has ended, without an error; until now the hand RUNS, or is IDLE. Answers the entry
 * of the task that begins. NULL: none does, because the hand is over, or its task still runs. */
static inline const uint64_t *wr_hand_step(struct wr_hand *hand, uint32_t runs_or_idle,
                                           weir_time now)
{
    uint32_t word = wr_load(&hand->word, relaxed), next = word - runs_or_idle;

    if (next >= hand->end)
        return NULL;
    hand->began[next] = now;
    if (!wr_cas(&hand->word, &word, next + 1, acq_rel)) /* pairs with the swap of a fold */
        return NULL;
    return hand->entry[next];
}

/* Ends the hand that is out. Under the lock. */
void wr_hand_fold(struct weir_group *group);

#endif
