/* Counts per group, for the display and for what waits and why.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_TALLY_H
#define WR_CLI_TALLY_H

#include "cli/engine/run.h"

/* How fast tasks end: smoothed, and corrected for how short the time was that it was smoothed over. */
struct pace {
    double rate, weight;
    uint64_t before;
};

/* Under the tallies' lock. Each task under way is in exactly one state:
 *     tasks in states WAITS, RUNS, RETRIES == in[WAITS] + in[RUNS] + in[RETRIES]
 *     length of `tasks` == in[WAITS]                                                              */
struct tally {
    char *key;
    uint64_t in[TASK_STATES];
    uint64_t failed;      /* of in[TASK_ENDED] */
    struct wr_list tasks; /* those that wait, in order of submission                             */
    int64_t limit;        /* 0: none of its own                                                  */
    bool paced;
    weir_time first_start; /* of a command of its; 0: none so far                              */
    weir_time cools_until;
    struct pace pace;    /* the loop's                                                            */
    struct wr_list link; /* in the order of appearance                                          */
    struct wr_list idle; /* among those that may be forgotten                                   */
    uint64_t references; /* tasks under way                                                      */
};

int tallies_new(struct tallies **out, struct engine *engine);
void tallies_free(struct tallies *tallies);

/* The group of that key with a reference for one task; NULL without memory. The key is copied. */
struct tally *tally_get(struct tallies *tallies, const char *key);

/* tally_submits goes before a task's submission, which is announced to tally_submitted, the executor's
 * listener: from then on the task waits, and its tally may ask its task why. */
void tally_submits(struct task *task);
void tally_submitted(weir_task *task, void *arg);

/* The task goes from its state to that one. */
void tally_moves(struct task *task, enum task_state to);
void tally_leaves(
    struct task *task); /* gives the reference back: the tally may be gone after this */

/* Its group is to cool down until then; answers when that is over, given what others have asked for. */
weir_time tally_cools(struct task *task, weir_time until);

/* A task without a group has ended, since its record is not valid. */
void tally_bad(struct tallies *tallies);

/* A task was not run, since an earlier run has done it. */
void tally_skips(struct tallies *tallies);

/* What groups had that are forgotten, and tasks without a group. */
struct tally_sums {
    uint64_t ended, failed, not_run, skipped;
};
struct tally_sums tallies_others(struct tallies *tallies);

/* Calls `see` for each group in the order of appearance, under the lock. */
void tallies_each(struct tallies *tallies, void (*see)(struct tally *tally, void *arg), void *arg);

#endif
