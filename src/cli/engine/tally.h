/* Counts per group, for the display and for what waits and why.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_TALLY_H
#define WR_CLI_TALLY_H

#include "cli/engine/forecast.h"
#include "cli/engine/run.h"

/* Under the tallies' lock. Each task under way is in exactly one state:
 *     references == in[WAITS] + in[RUNS] + in[RETRIES] + in[RECORDS] + tasks that are told, but not printed
 *     length of `tasks` == in[WAITS]
 *     in[RUNS] <= -j, since a command that has ended leaves RUNS with its permit held              */
struct tally {
    char *key;
    uint64_t in[TASK_STATES];
    uint64_t failed;       /* of in[TASK_ENDED] */
    struct wr_list tasks;  /* tasks that wait, in order of submission                             */
    int64_t limit;         /* 0: none of its own                                                  */
    int64_t per_start_ns;  /* of its pace: between two starts; 0: none                            */
    weir_time first_start; /* of its first command; 0: none so far                              */
    uint64_t attempts;     /* that have ended                                                  */
    int64_t busy_ns;       /* how long those took, together                                    */
    int64_t started_sum_ns; /* of those that run: the sum of when they started                  */
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

/* Call before a task is submitted. */
void tally_submits(struct task *task);

/* The executor's listener, which hears of the submission: from then on the task waits, and its tally may ask the
 * executor's task why. */
void tally_submitted(weir_task *task, void *arg);

/* The task goes from its state to that one; to TASK_ENDED with task->outcome. */
void tally_moves(struct task *task, enum task_state to);
void tally_leaves(
    struct task *task); /* gives the reference back: the tally may be gone after this */

/* The task's group is to cool down until then; answers when that is over, given what other tasks have asked for. */
weir_time tally_cools(struct task *task, weir_time until);

/* A task without a group has ended, since its record is not valid. */
void tally_bad(struct tallies *tallies);

/* A task was not run, since an earlier run has done it. */
void tally_skips(struct tallies *tallies);

/* The counts of groups that are forgotten, and of tasks without a group. */
struct tally_sums {
    uint64_t ended, failed, not_run, skipped;
};
struct tally_sums tallies_others(const struct tallies *tallies); /* hold them */

/* Takes the lock: until tallies_let_go nothing changes, so what is read meanwhile fits together. */
void tallies_hold(struct tallies *tallies);
void tallies_let_go(struct tallies *tallies);

/* Calls `see` for each group in the order of appearance. Hold them. */
void tallies_each(struct tallies *tallies, void (*see)(struct tally *tally, void *arg), void *arg);

#endif
