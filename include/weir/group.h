/* Groups: a key, its limits, and what waits for them.
 *
 * A group comes into being with its first use; its limits are resolved then, once. A handle is borrowed
 * from the executor: it is good until the executor is freed, also after the group was evicted, when it leads to
 * the new generation. Groups that somebody has a handle of are not evicted for being idle; those who use
 * keys without number submit by key.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_GROUP_H
#define WEIR_GROUP_H

#include <weir/executor.h>

WEIR_BEGIN_DECLS

/* The group of that key; made if need be. Keys are copied; "" is one. WEIR_EINVAL: NULL, or a key beyond
 * WEIR_KEY_MAX. WEIR_ENOMEM. WEIR_ECLOSED. WEIR_ENODOMAIN: it is to be in an unknown domain. */
int weir_group_get(weir_group **out, weir_executor *ex, const char *key);

const char *weir_group_key(const weir_group *group);

/* Changes limits while the group runs; 0 leaves one as it is. Raising starts waiting tasks at once,
 * lowering takes effect as tasks end; waiting tasks stay, also beyond a lowered queue_max.
 * WEIR_EINVAL: NULL, negative (but WEIR_NO_QUEUE), beyond WEIR_LIMIT_MAX, or below the cost of a task that waits.
 * WEIR_ECLOSED: the executor is closed. */
int weir_group_resize(weir_group *group, int64_t limit, int64_t inflight_max, int64_t queue_max);

/* Its share of turns from now on, 1 to WEIR_WEIGHT_MAX. WEIR_EINVAL: NULL, or out of range. WEIR_ECLOSED. */
int weir_group_set_weight(weir_group *group, int64_t weight);

/* Where tasks that start from now on run. WEIR_EINVAL: NULL, or an unknown carrier. WEIR_ECLOSED. */
int weir_group_run_on(weir_group *group, weir_carrier carrier);

/* Starts nothing more until resumed. Waiting tasks stay, new ones are accepted as limits allow. */
void weir_group_pause(weir_group *group);
void weir_group_resume(weir_group *group);

/* Starts nothing more until that time; the latest call counts, a time in the past ends it. */
int weir_group_cool_down(weir_group *group, weir_time until);

/* The same for the group of a task, most often the caller's own: nobody needs a handle of the group, so it is
 * forgotten for being idle like any other, but not before its time. Both: WEIR_EINVAL: NULL. WEIR_ECLOSED.
 * WEIR_ENOMEM, WEIR_EAGAIN: no memory, or no thread, for the clock. */
int weir_task_cool_down(weir_task *task, weir_time until);

/* Starts at most `starts` per `period_ns`, evenly spread, after at most `burst` at once (default 1).
 * 0 starts: no pace. Waiting tasks stay where they are. A group that has a pace keeps what is left of its burst, as far
 * as it fits into the new one: setting a pace again never lets a task start earlier than its rate does.
 * WEIR_EINVAL: NULL, negative values, no period, or a burst that would take longer than 292 years. Others as above. Groups without number get theirs by policy: weir_group_policy. */
int weir_group_pace(weir_group *group, int64_t starts, int64_t period_ns, int64_t burst);

/* Forgets the group at once: its waiting tasks become REJECTED (WEIR_REASON_EVICTED), running ones go on
 * and give their permits back to the generation they came from; the next submit makes a new one and
 * resolves its limits anew. With WEIR_CARRY_OVER the new generation starts with the old one's running
 * tasks charged, so that the limit holds over both. Unknown keys are fine. WEIR_EINVAL: NULL. WEIR_ENOMEM: only with
 * WEIR_CARRY_OVER, and nothing was done. */
enum { WEIR_CARRY_OVER = 1, WEIR_CANCEL_RUNNING = 2 };
int weir_group_evict(weir_executor *ex, const char *key, int flags);

typedef struct weir_group_stats { /* a snapshot */
    size_t size;
    uint64_t running, inflight, waiting;
    int64_t limit, inflight_max, queue_max; /* targets; running may be above limit for a while */
    uint64_t submitted, started, succeeded, failed, cancelled, rejected;
    uint64_t rejected_by[25];  /* for reasons below 25 only; use weir_group_rejections_get   */
    uint64_t peak;             /* most running at once                                       */
    int64_t waited_ns, ran_ns; /* in all                                                     */
    bool paused;
    uint64_t generation;
    uint64_t timed_out;
    uint64_t overdue;    /* bodies that run beyond their deadline, with permits or without  */
    uint64_t stalls;     /* times one of its bodies was found to block a worker             */
    weir_carrier run_on; /* where its next task will run                                    */
    const char *domain;  /* a loan from the executor                                        */
} weir_group_stats;

/* WEIR_ENOGROUP: no such group, or the executor is closed. WEIR_EINVAL: NULL. */
int weir_group_stats_get(weir_group_stats *out, weir_executor *ex, const char *key);

typedef struct weir_group_totals { /* over all generations of a key */
    size_t size;
    uint64_t generations; /* that the sum is over; those still there included */
    uint64_t submitted, started, succeeded, failed, cancelled, rejected, timed_out;
    int64_t waited_ns, ran_ns;
} weir_group_totals;

/* What the tasks of a key came to, over all generations of its group that are there, and those that are gone if the
 * policy has keep_totals. `key` NULL: the sum of those keys that there was no room for. Good until the executor is
 * freed. WEIR_ENOGROUP: nothing is known of that key. WEIR_EINVAL: NULL. */
int weir_group_totals_get(weir_group_totals *out, weir_executor *ex, const char *key);

/* How many tasks of the group were rejected for that reason. WEIR_ENOGROUP, WEIR_EINVAL: as above. */
int weir_group_rejections_get(uint64_t *count, weir_executor *ex, const char *key,
                              weir_reason reason);

WEIR_END_DECLS

#endif
