/* A turn: the tasks of one group that a worker, or a thread, runs one after the other.
 *
 *     pull.c        a free worker takes the next turn
 *     run.c         runs its tasks, and ends them
 *     to_thread.c   sends its first task to a thread, which goes on with it
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_TURN_H
#define WR_EXECUTOR_TURN_H

#include "executor/executor.h"

/* A worker's present turn; lives in its scratch words, or, on a thread, on its stack. */
struct wr_group_turn {
    struct weir_group *group;
    weir_time began;
    weir_time clock; /* the latest reading: a task starts when the one before it ended */
    weir_fn *fn; /* of the task that starts: by the time it is called, it may have been settled */
    void *arg;
    struct weir_task *record; /* at hand, for a task that waits without one */
    uint16_t tasks;           /* at most CHAIN_MAX + 1                    */
    bool to_thread : 1;       /* its first task is to run on a thread    */
    bool on_thread : 1;
    bool closed : 1; /* when its latest task had begun, its group would have started no other */
    bool tells : 1;  /* what was pulled is a task to be told of, not to be run; see watch.h */
    uint32_t asked;  /* wr_asked before it was found that the task may start: a release in between
                       means it, too */
};

/* What a worker's scratch words are. */
struct wr_worker_turn {
    struct wr_group_turn turn;
    struct wr_hand hand;
    bool in_use; /* else they are all zero: the worker is new */
};

static_assert(sizeof(struct wr_worker_turn) <= WR_SCRATCH, "it fits into a worker's scratch");

/* The calling worker's. */
static inline struct wr_worker_turn *wr_worker_turn(void)
{
    struct wr_worker_turn *own = wr_scratch();

    if (WR_UNLIKELY(!own->in_use))
        wr_hand_init(&own->hand);
    own->in_use = true;
    return own;
}

/* ---- under the group's lock ---------------------------------------------------------------------- */

/* A record for the group's first task, if that waits without one. False: there is no memory. */
bool wr_group_turn_has_record(struct weir_group *group, const uint64_t *first,
                              struct wr_group_turn *turn);

/* Takes the first task, whose permits are taken, out of its queue: it begins. */
struct weir_task *wr_group_turn_begin(struct weir_group *group, const uint64_t *first,
                                      struct wr_group_turn *turn);

/* ---- without it ------------------------------------------------------------------------------------ */

/* Runs a task (but not if it was settled on its way here) and those that follow it in its turn. */
void wr_run_turn(struct weir_executor *ex, struct weir_task *task, struct wr_group_turn *turn,
                 bool settled);

/* Sends the first task of a turn to a thread. False: there is none, and it runs here, unless it is *settled. */
bool wr_group_turn_sent_to_thread(struct weir_task *task, const struct wr_group_turn *turn,
                                  bool *settled);

#endif
