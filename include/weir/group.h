/* Groups: a key, its limits, and the tasks that wait for them.
 *
 * A group is made when its key is first used; the policy is asked for its limits then, once. A handle belongs to the
 * executor and is good until the executor is freed. After an eviction the same handle leads to the next group of that
 * key, the next generation. A group with a handle is never evicted for being idle: a program with an unbounded set of
 * keys submits by key (weir_submit_key) and takes no handles.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_GROUP_H
#define WEIR_GROUP_H

#include <weir/executor.h>

WEIR_BEGIN_DECLS

/* A handle of the key's group, which is made if there is none. The key is copied and may be "".
 * WEIR_EINVAL: NULL, or a key beyond WEIR_KEY_MAX. WEIR_ENOMEM. WEIR_ECLOSED: the executor is closed.
 * WEIR_ENODOMAIN: the policy puts the group into an unknown domain. */
int weir_group_get(weir_group **out, weir_executor *ex, const char *key);

/* The group's key; valid as long as the handle. */
const char *weir_group_key(const weir_group *group);

/* Changes limits while tasks run; 0 leaves a limit as it is. A raised limit starts waiting tasks at once. A lowered one
 * takes effect as tasks end; tasks that wait stay in the queue, even if queue_max is now lower.
 * WEIR_EINVAL: NULL, negative (but WEIR_NO_QUEUE), beyond WEIR_LIMIT_MAX, or below the cost of a task that waits.
 * WEIR_ECLOSED: the executor is closed. */
int weir_group_resize(weir_group *group, int64_t limit, int64_t inflight_max, int64_t queue_max);

/* Sets the group's share of turns, 1 to WEIR_WEIGHT_MAX. WEIR_EINVAL: NULL, or out of range. WEIR_ECLOSED. */
int weir_group_set_weight(weir_group *group, int64_t weight);

/* Says where tasks of the group that start from now on run. WEIR_EINVAL: NULL, or an unknown carrier. WEIR_ECLOSED. */
int weir_group_run_on(weir_group *group, weir_carrier carrier);

/* Starts no task of the group until weir_group_resume. Waiting tasks stay, new ones are accepted as limits allow. */
void weir_group_pause(weir_group *group);

/* Ends a pause. */
void weir_group_resume(weir_group *group);

/* Starts no task of the group until that time. A later call replaces the time; one in the past ends the cool-down.
 * WEIR_EINVAL: NULL. WEIR_ECLOSED. WEIR_ENOMEM, WEIR_EAGAIN: no memory, or no thread, for the clock. */
int weir_group_cool_down(weir_group *group, weir_time until);

/* Cools down the group of a task, most often the caller's own. No handle is taken, so the group is still evicted when
 * idle, but not before `until`. Errors as weir_group_cool_down. */
int weir_task_cool_down(weir_task *task, weir_time until);

/* Starts at most `starts` tasks per `period_ns`, evenly spread, after at most `burst` at once (default 1). 0 starts: no
 * pace. Waiting tasks stay in the queue. If the group has a pace already, what is left of its burst stays, as far as
 * it fits into the new one, and the rest is earned at the new pace: a call never refills a burst. (A group that has
 * started no task at its pace yet may have a whole burst of the new one.)
 * Programs with an unbounded set of keys set paces in the policy instead: weir_group_policy.
 * WEIR_EINVAL: NULL, negative values, no period, or a burst that would take longer than 292 years. Others as
 * weir_group_cool_down. */
int weir_group_pace(weir_group *group, int64_t starts, int64_t period_ns, int64_t burst);

/* Forgets the group at once: its waiting tasks become REJECTED (WEIR_REASON_EVICTED), running ones go on
 * and give their permits back to the generation they came from; the next submit makes a new one and
 * resolves its limits anew. With WEIR_CARRY_OVER the new generation starts with the old one's tasks in flight
 * charged, so that limit and inflight_max hold over both; to both of them, so a pending one counts there as if it
 * ran. With WEIR_CANCEL_RUNNING running tasks are asked to end, and
 * pending ones become CANCELLED (WEIR_REASON_EVICTED). Unknown keys are fine. WEIR_EINVAL: NULL. Only with
 * WEIR_CARRY_OVER, and nothing was done: WEIR_ENOMEM; WEIR_ENODOMAIN: the policy has an unknown domain for the new
 * generation. */
enum { WEIR_CARRY_OVER = 1, WEIR_CANCEL_RUNNING = 2 };
int weir_group_evict(weir_executor *ex, const char *key, int flags);

typedef struct weir_group_stats { /* a snapshot, all figures of one moment */
    size_t size;
    uint64_t running, inflight, waiting;
    int64_t limit, inflight_max, queue_max; /* targets; running may be above limit for a while */
    /* started: with those that were settled on their way to a thread, whose body was not called */
    uint64_t submitted, started, succeeded, failed, cancelled, rejected;
    uint64_t rejected_by[25];  /* for reasons below 25 only; use weir_group_rejections_get   */
    uint64_t peak;             /* most running at once                                       */
    int64_t waited_ns, ran_ns; /* sums: of tasks that started, of bodies that have returned  */
    bool paused;
    uint64_t generation;
    uint64_t timed_out;
    uint64_t overdue;    /* bodies that run beyond their deadline, with permits or without  */
    uint64_t stalls;     /* times one of its bodies was found to block a worker             */
    weir_carrier run_on; /* where its next task will run                                    */
    const char *domain;  /* a loan from the executor                                        */
} weir_group_stats;

/* Figures of the key's present group. WEIR_ENOGROUP: there is none, or the executor is closed. WEIR_EINVAL: NULL, or
 * no size. */
int weir_group_stats_get(weir_group_stats *out, weir_executor *ex, const char *key);

typedef struct weir_group_totals { /* over all generations of a key */
    size_t size;
    uint64_t generations; /* groups that the sums are over, the present one included */
    uint64_t submitted, started, succeeded, failed, cancelled, rejected, timed_out;
    int64_t waited_ns, ran_ns;
} weir_group_totals;

/* Adds up the figures of all groups a key has had: those that still have tasks and, if the policy has keep_totals,
 * those that are gone. `key` NULL: the sum over keys that were dropped because there were more than totals_max. Also
 * works on a closed executor. WEIR_ENOGROUP: nothing is known of the key. WEIR_EINVAL: NULL, or no size. */
int weir_group_totals_get(weir_group_totals *out, weir_executor *ex, const char *key);

/* Counts the tasks of the key's present group that were rejected for that reason. Errors as weir_group_stats_get. */
int weir_group_rejections_get(uint64_t *count, weir_executor *ex, const char *key,
                              weir_reason reason);

WEIR_END_DECLS

#endif
