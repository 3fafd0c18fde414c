/* A submission on its way in: what is asked for, where it goes, and what becomes of it.
 *
 *     submission.c   reads the options; makes the record
 *     submit.c       admission, and the calls
 *     refuse.c       what becomes of a task that is not admitted
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_SUBMISSION_H
#define WR_EXECUTOR_SUBMISSION_H

#include "executor/state.h"

/* What a caller asks for: tasks for the present generation of a key. */
struct wr_request {
    struct weir_executor *ex;
    const char *key;
    struct weir_group *group;  /* the latest that is known, and stays; NULL: only the key is   */
    struct weir_group *locked; /* found and locked already, but no hand is folded yet; or NULL */
    weir_fn *fn;
    const weir_task_options *opt;
    struct wr_whole *whole; /* NULL: it has a body                                          */
    size_t done;            /* tasks that have been dealt with                              */
    bool pinned;            /* `group` is to be unpinned                                    */
    bool last;              /* see wr_submit_last                                           */
};

/* One of these tasks. */
struct wr_submission {
    struct wr_request *ask;
    void *arg;
    weir_task **out; /* where its handle goes; NULL: none is wanted                         */
    weir_time now;
    const weir_task_options *options; /* our copy; NULL: none                                */
    struct weir_task *task;     /* its record; NULL: there is none yet, or it needs none       */
    struct wr_side *side;       /* NULL: the task needs none; handed to the record on success  */
    struct wr_watcher *on_done; /* NULL: none; handed to the record once it is sure to be told */
    weir_reason reason;         /* why it is not admitted; NONE: it stands in its queue        */
    bool watched;               /* it could have a deadline of its group's                     */
    bool wake;                  /* workers are to be woken, also if it is not admitted         */
};

/* Reads its options, and makes what its record needs. `options` is for our copy. To be discarded in any case. WEIR_EINVAL,
 * WEIR_ENOMEM. */
int wr_submission_prepare(struct wr_submission *sub, weir_task_options *options);

/* Frees what no record has taken over. */
void wr_submission_discard(struct wr_submission *sub);

/* ---- under the group's lock ---------------------------------------------------------------------- */

/* Makes the record. WEIR_ENOMEM. */
int wr_submission_record(struct wr_submission *sub, struct weir_group *group);

/* The task will be told of: its callback goes to it. */
void wr_submission_hand_on_done(struct wr_submission *sub);

/* Asks for admission of its record: sub->reason is the answer. WEIR_ENOMEM: there is no memory for its place. */
int wr_submission_enter(struct wr_submission *sub, struct weir_group *group);

/* It begins outside all limits; its phase is yet to be set: GUEST or ASIDE. */
void wr_task_begin_apart(struct weir_task *task, weir_time now);

/* ---- without it ------------------------------------------------------------------------------------ */

/* Its record was not admitted, or (`rc`) there is no memory: waits for room, if that is the policy, or deals with it
 * otherwise. 0, or an error: then there was no task. */
int wr_not_admitted(struct wr_submission *sub, int rc);

#endif
