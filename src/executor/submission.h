/* A submission on its way in: what was asked for, and where it goes.
 *
 *     submission.c   reads the options; makes the record
 *     submit.c       admission, and the calls
 *     refuse.c       what becomes of a task that is not admitted
 *     whole.c        tasks that are wholes of parts
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_SUBMISSION_H
#define WR_EXECUTOR_SUBMISSION_H

#include "executor/state.h"

/* Answered by calls that enter: deadlines have turned up since the submission was made, so it must be made anew. */
enum { WR_LACKS_WATCH = 1 };

struct wr_submission {
    weir_fn *fn;
    void *arg;
    const weir_task_options *options;
    struct wr_side *side;       /* NULL: the task needs none; handed to the record on success */
    struct wr_watcher *on_done; /* NULL: none; handed to the record once it is sure to be told */
    struct wr_whole *whole;     /* NULL: it has a body */
    bool wants_handle;
    bool watched; /* it could have a deadline of its group's */
    bool last;    /* see wr_submit_last                      */
};

/* Fills it in; `options` gets a copy of `opt`, if there is any. To be discarded in any case. WEIR_EINVAL, WEIR_ENOMEM. */
int wr_submission_init(struct wr_submission *sub, weir_task_options *options,
                       struct weir_executor *ex, weir_fn *fn, void *arg,
                       const weir_task_options *opt, bool wants_handle, struct wr_whole *whole);

/* Frees what no record has taken over. */
void wr_submission_discard(struct wr_submission *sub);

/* ---- under the group's lock ---------------------------------------------------------------------- */

/* Whether its group may give it a deadline, and it has no room for one. */
static inline bool wr_lacks_watch(const struct weir_group *group, const struct wr_submission *sub)
{
    return !sub->watched && wr_load(&group->executor->policy.watched, relaxed);
}

/* Makes the record. WEIR_ENOMEM. */
int wr_submission_record(struct weir_task **out, struct weir_group *group,
                         struct wr_submission *sub, weir_time now);

/* The task will be told of: its callback goes to it. */
void wr_submission_hand_on_done(struct weir_task *task, struct wr_submission *sub);

/* Asks for admission; on success the task stands in its queue. *wake: workers are to be woken, also if it does not. WEIR_ENOMEM:
 * there is no memory for its place. */
int wr_submission_enter(struct weir_group *group, struct weir_task *task, struct wr_submission *sub,
                        weir_reason *reason, bool *wake);

/* ---- without it ------------------------------------------------------------------------------------ */

/* It was not admitted: waits for room, if that is the policy, or deals with it otherwise. 0, or an error: then there was no
 * task. */
int wr_not_admitted(struct weir_task *task, struct wr_submission *sub, weir_reason reason);

/* The submit fails, so there was no task: it is not counted, its argument stays the caller's, and its options' callback
 * is not called. But a listener that was told of it, and whoever it has shown the task to, hear of a rejection.
 * False: it was cancelled meanwhile, and so it was one. */
bool wr_unsubmit(struct weir_task *task, struct wr_submission *sub, weir_reason reason);

/* Where a task goes: to the present generation of a key. */
struct wr_target {
    struct weir_executor *ex;
    const char *key;
    struct weir_group *group;  /* the latest that is known, and stays; NULL: only the key is */
    struct weir_group *pinned; /* the same, if it is to be unpinned                          */
    struct weir_group *locked; /* found and locked already, but no hand is folded yet; or NULL */
};

/* Locks the group that a task goes to. If it was found by its key it may be gone as soon as it is unlocked, unless there is
 * a task of ours in it. WEIR_ECLOSED, WEIR_ENOMEM, WEIR_ENODOMAIN. */
int wr_target_lock(struct weir_group **out, struct wr_target *target);

static inline void wr_target_fini(struct wr_target *target)
{
    if (WR_UNLIKELY(target->pinned != NULL))
        wr_group_unpin(target->pinned);
}

#endif
