/* A slice: the tasks of one group that a worker, or a thread, runs one after the other: a single one, or as many short ones
 * as fit into a few microseconds. A group's turn is as many slices as its weight says, whichever workers run them.
 *
 *     pull.c        a free worker takes the next turn
 *     run.c         runs its tasks, and ends them
 *     to_thread.c   sends its first task to a thread, which goes on with it
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_SLICE_H
#define WR_EXECUTOR_SLICE_H

#include "executor/state.h"
#include "limits/lead.h"

enum { WR_SLICE_NS = 8000 }; /* how long a slice may go on if its tasks are short */

/* A worker's present slice; lives in its scratch words, or, on a thread, on its stack. */
struct wr_slice {
    struct weir_group *group;
    weir_time began;
    weir_time clock; /* the latest reading: a task starts when the one before it ended */
    int64_t waited;  /* how long its first task had waited                              */
    weir_fn *fn; /* of the task that starts: by the time it is called, it may have been settled */
    void *arg;
    struct weir_task *record; /* at hand, for a task that waits without one */
    struct wr_beat *beat; /* by which its task began, as the `step`th; NULL: by none, see beat.h */
    uint16_t tasks;       /* at most SLICE_TASKS + 1; 0: it is over, and counted (lead.h) */
    bool to_thread : 1;   /* its first task is to run on a thread    */
    bool on_thread : 1;
    bool closed : 1; /* when its latest task had begun, its group would have started no other */
    bool tells : 1;  /* what was pulled is a task to be told of, not to be run; see watch.h */
    uint16_t step;
    /* wr_cancels before it was found that the task may start: a release in between means it, too */
    uint32_t cancels;
};

/* The contents of a worker's scratch words. */
struct wr_worker_slice {
    struct wr_slice slice;
    struct wr_hand hand;
    bool in_use;              /* else they are all zero: the worker is new */
    struct wr_lead_done done; /* also read by other workers of the crew                      */
    struct wr_lead_look look;
};

static_assert(sizeof(struct wr_worker_slice) <= WR_SCRATCH, "it fits into a worker's scratch");

/* The calling worker's. */
static inline struct wr_worker_slice *wr_worker_slice(void)
{
    struct wr_worker_slice *own = wr_scratch();

    if (WR_UNLIKELY(!own->in_use))
        wr_hand_init(&own->hand);
    own->in_use = true;
    return own;
}

/* ---- under the group's lock ---------------------------------------------------------------------- */

/* A record for the group's first task, if that waits without one. False: there is no memory. */
bool wr_slice_has_record(struct weir_group *group, const uint64_t *first, struct wr_slice *slice);

/* The slice's record becomes one of the group's, of a task that runs. */
static inline struct weir_task *wr_slice_use_record(struct weir_group *group,
                                                    struct wr_slice *slice)
{
    struct weir_task *task = slice->record;

    slice->record = NULL;
    group->records++;
    __atomic_store_n(&task->group, group, __ATOMIC_RELEASE); /* the monitor may look */
    wr_store(&task->watchers, NULL, relaxed);
    /* Release: a thread that finds the record in use finds its group; see tasks.c. */
    wr_store(&task->word, WR_PHASE_RUNNING | WR_REF, release);
    return task;
}

/* Takes the first task, whose permits are taken, out of its queue: it begins. */
struct weir_task *wr_slice_begin(struct weir_group *group, const uint64_t *first,
                                 struct wr_slice *slice);

/* Gives the worker a hand for the tasks that follow the first one of a slice, which has begun. It has none that is out. */
void wr_slice_give_hand(struct weir_group *group, struct weir_task *task,
                        const struct wr_slice *slice);

/* ---- without it ------------------------------------------------------------------------------------ */

/* Runs a task (but not if it was settled on its way here) and those that follow it in its turn. */
void wr_run_slice(struct weir_executor *ex, struct weir_task *task, struct wr_slice *slice,
                  bool settled);

/* Sends the first task of a turn to a thread. False: there is none, and it runs here, unless it is *settled. */
bool wr_slice_sent_to_thread(struct weir_task *task, const struct wr_slice *slice, bool *settled);

/* ---- bodies that stall, or overflow --------------------------------------------------------------- */

/* As wr_source.describe; counts the stall against the group whose body it is. */
uint64_t wr_stall_describe(struct wr_source *source, void *item, char *name,
                           const struct wr_sighting *seen);

/* As wr_source.identify. */
void wr_stall_identify(struct wr_source *source, void *item, const char *part[WR_NAME_PARTS]);

/* As weir_runtime_options.on_stall. */
void wr_stall_told(const weir_stall *stall, void *ex);

#endif
