/* An executor: runs tasks by group, each group under its own limits, all groups under common ones.
 *
 *     executor     at most inflight_max tasks in flight; at most queue_max that wait only for that
 *       domain     if there are any: a share of the executor's slots and places (weir/domain.h)
 *       group      at most `limit` tasks running, inflight_max in flight, queue_max waiting
 *         task     first in, first out within its group and priority
 *
 * A waiting task holds no thread, no stack and no permit. In its group's queue it takes 24 bytes if it is detached and has
 * no options, task locals or deadlines, else 72 bytes and what its options need. A free worker takes the group whose turn
 * it is, takes all permits of that group's first task in one step, and runs it. Groups take turns by weight, so the first task of a group waits for at most one
 * turn of each other group that is ready, however long their queues are.
 *
 * A task in flight runs (its body has started and not returned; it may be parked) or is pending (its body returned
 * WEIR_PENDING; weir_task_settle ends it). A group's `limit` counts those that run.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_EXECUTOR_H
#define WEIR_EXECUTOR_H

#include <weir/domain.h>
#include <weir/reason.h>
#include <weir/runtime.h>
#include <weir/task.h>

WEIR_BEGIN_DECLS

#define WEIR_NO_LIMIT INT64_MAX /* in a limit: none                                          */
#define WEIR_NO_QUEUE INT64_MIN /* in a queue_max: a task that cannot start at once is rejected */

#define WEIR_LIMIT_MAX INT64_C(4294967294) /* the highest limit, queue_max or number of slots */

enum { WEIR_WEIGHT_MAX = 1000 }; /* of a group or domain; the lowest is 1 */

/* What becomes of a task that finds no room. */
typedef enum weir_rejection {
    WEIR_ABORT = 0,   /* the handle's wait answers WEIR_EREJECTED                            */
    WEIR_DISCARD,     /* the handle settles as WEIR_REJECTED, its wait answers 0             */
    WEIR_CALLER_RUNS, /* the body runs in the submitting thread, outside all limits          */
    WEIR_BLOCK,       /* submit waits for room, until the submit option's deadline           */
} weir_rejection;

/* WEIR_CALLER_RUNS: the body is that of a task like any other: weir_task_self, run and total deadlines and cancels work
 * in it. If a body submitted it, weir_cancelled() is true in it as soon as either of the two was asked to end. A cancel
 * does not wake a plain thread that waits for a descriptor in it.
 *
 * WEIR_BLOCK: if the group is evicted meanwhile, the task is rejected for that reason. If submit fails after all, a
 * listener that has heard `submitted` hears `rejected`. */

/* Decides about a rejected task in place of weir_rejection. `result` comes with outcome WEIR_REJECTED and no value; the
 * function may change it, and it becomes the task's result. Non-zero: rejected, with that error. */
typedef int weir_rejection_fn(weir_result *result, weir_task *task, weir_reason reason, void *arg);

/* Functions that the executor calls at each step of each task. Each may be NULL. They are called with no lock of the
 * executor held, so they may call anything; but they must not wait for the task they are called about, nor drain, shut
 * down or free the executor: these calls wait for the listener to return. weir/task.h has the order of calls when a
 * task settles.
 *
 * The last call for a task is either completed or rejected, once. But under WEIR_CALLER_RUNS rejected comes before the
 * body runs, and completed after it. */
typedef struct weir_listener {
    void (*submitted)(weir_task *task,
                      void *arg);                /* in the submitting thread, before any decision */
    void (*started)(weir_task *task, void *arg); /* permits held, before the body                 */
    void (*completed)(weir_task *task, const weir_result *result,
                      void *arg); /* before waiters wake */
    void (*rejected)(weir_task *task, weir_reason reason, void *arg);
    void *arg;
    /* A body blocks its worker, or has just ceased to. `name` in `stall` is the group's key, cut after 31 bytes. Called
     * on the stall monitor's thread: return soon. */
    void (*stalled)(const weir_stall *stall, void *arg);
} weir_listener;

/* How often a group starts tasks: at most `starts` per period, evenly spread, after at most `burst` at once. */
typedef struct weir_pace {
    int64_t starts;    /* 0: no pace                                                         */
    int64_t period_ns; /* default: a second                                                  */
    int64_t burst;     /* default 1                                                          */
} weir_pace;

/* What one group is like. Zero asks for the policy's default; an entry of `groups` must set something. Later
 * versions may add fields at the end: weir_policy.group_size tells the library which the program knows. */
typedef struct weir_group_policy {
    const char *key;      /* up to WEIR_KEY_MAX                                               */
    int64_t limit;        /* most tasks (permits) running                                    */
    int64_t inflight_max; /* most running or pending                                         */
    int64_t queue_max;    /* most waiting; WEIR_NO_QUEUE: none                               */
    int64_t weight;       /* share of turns, up to WEIR_WEIGHT_MAX; default 1                */
    const char *domain;   /* by name; default: domain_for is asked                           */
    weir_deadlines deadlines;
    weir_carrier run_on; /* WEIR_THREADS: its bodies run on threads, and may block           */
    weir_pace pace;
} weir_group_policy;

/* What becomes of the permits (and the slot) of a body that still runs after its deadline. */
typedef enum weir_overdue {
    WEIR_HOLD = 0, /* they are held until the body returns                                        */
    WEIR_RELEASE,  /* they are free at once, for at most overdue_max bodies at a time             */
    WEIR_REPLACE,  /* as WEIR_RELEASE; if the body is on a thread, another one may be started     */
} weir_overdue;

/* What becomes of a group whose bodies block workers. */
typedef enum weir_stall_policy {
    WEIR_STALL_COUNT = 0,  /* stalls are counted; see weir_group_stats and the listener           */
    WEIR_STALL_TO_THREADS, /* after stall_max stalls its later tasks run on threads               */
} weir_stall_policy;

/* Limits go up to WEIR_LIMIT_MAX, or are WEIR_NO_LIMIT; spans of time up to WEIR_SPAN_MAX_MS. */
typedef struct weir_policy { /* zero in any field asks for its default; all of it is copied */
    size_t size;
    uint32_t workers;           /* 1 to 4096; default: weir_cpus(), one per CPU                 */
    int64_t inflight_max;       /* most in flight over all groups; default WEIR_NO_LIMIT        */
    int64_t queue_max;          /* most waiting only for inflight_max; default WEIR_NO_LIMIT    */
    int64_t group_limit;        /* default 1                                                    */
    int64_t group_inflight_max; /* default WEIR_NO_LIMIT                                     */
    int64_t group_queue_max;    /* default WEIR_NO_LIMIT: bound it, or a flood fills the memory */
    const weir_group_policy *groups; /* groups by key; group_for is not called for these     */
    size_t group_count;
    /* Called once for each new group that is not in `groups`, with no lock held. `out` comes with the key and zeros,
     * and is at least group_size bytes; the function fills in any of its fields. A field left at zero has its default;
     * limit and domain are asked of limit_for and domain_for first. If the function returns non-zero, `out` is
     * ignored. The domain's name must be valid until the next call. The function must not use the group it is asked
     * about.
     *
     * A value out of range cannot be refused, so the nearest one in range is taken: at least a limit of 1,
     * WEIR_NO_QUEUE, a weight of 1, one start, one nanosecond or millisecond; WEIR_NO_LIMIT for a limit or a span of
     * time beyond the highest. An unknown run_on counts as WEIR_WORKERS; an unknown domain as
     * unknown_domain_is_default says. */
    int (*group_for)(weir_group_policy *out, const char *key, void *arg);
    void *group_arg;
    /* Called once for each new group whose limit neither `groups` nor group_for sets. Below 1 counts as 1. If it
     * returns non-zero, the limit is group_limit. */
    int (*limit_for)(int64_t *limit, const char *key, void *arg);
    void *limit_arg;
    weir_rejection rejection; /* default: WEIR_ABORT                                         */
    weir_rejection_fn *rejection_fn; /* called instead of `rejection`                        */
    void *rejection_arg;
    weir_listener listener;
    /* Evicts a group that was idle for this long; default: never. A group that is paused, cools down or has not earned
     * its whole burst is not evicted, so that it does not start more by coming back. */
    int64_t idle_evict_ms;

    /* Domains. Their slots and places must add up to no more than slots and queue_places. */
    const weir_domain_policy *domains; /* default: none, and no slots are counted            */
    size_t domain_count;   /* at most WEIR_DOMAINS_MAX                                       */
    int64_t slots;         /* of all domains together; required if there are domains         */
    int64_t queue_places;  /* of all domains together; default WEIR_NO_LIMIT                 */
    int64_t default_floor; /* slots of the default domain that cannot be borrowed; default 0 */
    weir_lending lending;
    /* Called once for each new group whose domain neither `groups` nor group_for sets. Stores the name of a domain,
     * which must be valid until the next call; NULL, or a non-zero return value: the default domain. */
    int (*domain_for)(const char **domain, const char *key, void *arg);
    void *domain_arg;
    /* An unknown domain from group_for or domain_for is the default domain; else calls that need the group answer
     * WEIR_ENODOMAIN. */
    bool unknown_domain_is_default;

    /* Time. */
    weir_deadlines deadlines;     /* of tasks whose group and domain have none                */
    weir_deadlines deadlines_max; /* forced on every task: it has none longer than these      */
    weir_overdue overdue;
    int64_t overdue_max; /* default 64; at most 2147483647                                    */

    /* Bodies that block. */
    uint32_t threads_max; /* most bodies on OS threads at a time, over all domains, 1 to 65536;
                             default 256. Tasks that find no thread wait, and hold nothing    */
    weir_stall_policy stall_policy;
    int64_t stall_max;       /* default 1                                                     */
    uint32_t stall_after_ms; /* a body on a worker for this long without a wait is a stall, and its
                                worker is replaced; 1 to 86400000 (a day), default 10         */

    /* The workers. Those that a domain has of its own are like the executor's. */
    size_t stack_size;         /* bytes of a body's stack, 16384 to 1073741824 (1 GiB); default 128
                                  KiB. Address space: memory is committed page by page as a body
                                  uses it                                                       */
    uint32_t replacements_max; /* most replacement workers at a time, 1 to 4096; default: one per
                                  worker and 64, and overdue_max more unless overdue is WEIR_HOLD.
                                  See weir_runtime_options                                      */
    bool no_overflow_report;   /* do not name the task that runs off its stack before the process
                                  dies of it. The report needs a SIGSEGV handler, installed once
                                  per process by the first executor that reports; it passes the
                                  signal on to the handler that was there before. One that the
                                  program installs later takes its place                        */

    /* The size of an entry of `groups`, which is also that of the struct group_for fills, and the size of an entry of
     * `domains`. WEIR_POLICY sets both. 0: the size in version 0.1. */
    size_t group_size, domain_size;

    /* Keeps the totals of evicted groups by key, for weir_group_totals_get: of at most totals_max keys (default 1000,
     * at most 10,000,000). If there are more, those of the keys evicted first are added to one sum without a key. */
    bool keep_totals;
    int64_t totals_max;
} weir_policy;
#ifdef __cplusplus /* where designated fields cannot stand out of order */
extern "C++" inline const weir_policy *weir_temporary(weir_policy &&policy)
{
    policy.group_size = sizeof(weir_group_policy);
    policy.domain_size = sizeof(weir_domain_policy);
    return &policy;
}
#define WEIR_POLICY(...) WEIR_SIZED(weir_policy, __VA_ARGS__)
#else
#define WEIR_POLICY(...)                                             \
    WEIR_SIZED(weir_policy, .group_size = sizeof(weir_group_policy), \
               .domain_size = sizeof(weir_domain_policy), __VA_ARGS__)
#endif

/* Makes an executor. `policy` may be NULL: all defaults. On WEIR_EINVAL `message` (may be NULL) names the wrong field,
 * its value, and what to use instead; on any other error it says why; on success it is empty. Errors as
 * weir_runtime_new. */
int weir_executor_new(weir_executor **out, const weir_policy *policy, weir_message *message);

/* Closes the executor: it accepts no more tasks. Does not wait. Waiting tasks become REJECTED (WEIR_REASON_SHUT_DOWN);
 * with WEIR_FINISH_WAITING they still run. Running tasks are asked to end, and pending ones become CANCELLED (for the
 * same reason); with WEIR_LEAVE_RUNNING both go on. May be called again; the latest call counts. */
enum { WEIR_FINISH_WAITING = 1, WEIR_LEAVE_RUNNING = 2 };
void weir_executor_close(weir_executor *ex, int flags);

/* Accepts no more tasks, lets accepted ones go on until the deadline, then closes as weir_executor_close(ex, 0).
 * 0: no accepted task and no overdue body is left. WEIR_ETIMEDOUT: some are left. WEIR_ECANCELED: the calling task was
 * cancelled. WEIR_EDEADLK: the caller is a task of this executor. WEIR_EINVAL: NULL. */
int weir_executor_shutdown(weir_executor *ex, weir_time deadline) WEIR_PARKS;

/* Waits until no accepted task is left; the executor stays open. Does not wait for overdue bodies that hold no permits
 * any more. Errors as weir_executor_shutdown. */
int weir_executor_drain(weir_executor *ex, weir_time deadline) WEIR_PARKS;

/* Closes the executor, waits for running bodies, and frees it. Pending tasks become CANCELLED. NULL is fine. A task of
 * this executor must not call it. Handles of tasks stay valid, handles of groups do not.
 *
 * If the executor was closed with WEIR_FINISH_WAITING, waiting tasks run first, and running ones are not asked to end.
 * Waiting tasks that only another call could start are rejected: those of a group that is paused, that is in a domain
 * without slots, or that has a task which costs more than inflight_max was lowered to. */
void weir_executor_free(weir_executor *ex) WEIR_PARKS;

/* Changes the executor's own limits while tasks run; 0 leaves a limit as it is. A lowered limit takes effect as tasks
 * end; a waiting task that costs more than the new limit waits until the limit is raised, and keeps no other group
 * waiting. WEIR_EINVAL: NULL, negative (but
 * WEIR_NO_QUEUE), or beyond WEIR_LIMIT_MAX. */
int weir_executor_resize(weir_executor *ex, int64_t inflight_max, int64_t queue_max);

typedef struct weir_executor_stats { /* a snapshot; figures may be a moment apart */
    size_t size;
    uint64_t groups;   /* groups that were not evicted                                 */
    uint64_t running;  /* bodies that have started and not returned; without those that
                          WEIR_CALLER_RUNS runs                                        */
    uint64_t inflight; /* running or pending                                           */
    uint64_t waiting;
    int64_t inflight_max, queue_max;
    uint64_t submitted, started, succeeded, failed, cancelled, rejected, evicted;
    uint64_t timed_out;
    uint64_t overdue; /* bodies that run beyond their deadline and hold no permits any more */
    uint64_t threads; /* OS threads of the pool, busy or idle                               */
    uint64_t stalls;
} weir_executor_stats;

/* Figures of the whole executor. WEIR_EINVAL: NULL, or no size. */
int weir_executor_stats_get(weir_executor_stats *out, weir_executor *ex);

/* Where a task is in its life. */
typedef enum weir_task_state {
    WEIR_TASK_WAITING = 1, /* in its group's queue                                               */
    WEIR_TASK_RUNNING =
        2, /* its body has started and not returned; also where WEIR_CALLER_RUNS runs it */
    WEIR_TASK_PENDING = 4, /* its body returned WEIR_PENDING                                     */
} weir_task_state;

typedef struct weir_tasks_query { /* zero in any field asks for its default */
    size_t size;
    const char *key; /* only tasks of that group; default: of all                                */
    uint32_t states; /* a sum of weir_task_state; default: all three                             */
    size_t max;      /* most tasks to list; default 1000                                         */
} weir_tasks_query;
#define WEIR_TASKS(...) (&(weir_tasks_query){ .size = sizeof(weir_tasks_query), __VA_ARGS__ })

/* One task in a list. All it points to lies in the list's own memory, but for the names of domains in `why`, which
 * are the executor's. */
typedef struct weir_task_info {
    const char *key, *id; /* as weir_task_key and weir_task_id                                   */
    weir_task_state state;
    weir_outcome outcome; /* WEIR_UNSETTLED; or of a running task that was cancelled or timed out,
                             whose body has yet to return                                        */
    weir_time since;      /* when it was submitted, if it waits; else when its body started      */
    const weir_why *why;  /* as weir_task_why, but `ahead` is not counted                        */
} weir_task_info;

/* Lists tasks that wait, run or are pending, say those that a shutdown could not wait for. *out gets an array of
 * pointers, ended by NULL, all in one allocation, to be freed with free(3): running tasks first, then pending,
 * then waiting ones, each the oldest first. If there are more than `max`, it is open which of the last state that
 * fits are missing. *count (may be NULL) gets the length. `query` may be NULL.
 *
 * Tasks go on meanwhile: each entry is true of one moment, and a task that starts or ends during the call may be
 * missing. The call looks at every record the executor has, which takes about a millisecond per 100,000 of
 * them, and keeps no lock for long. WEIR_EINVAL: NULL, an unknown state. WEIR_ENOMEM. */
int weir_executor_tasks(weir_task_info ***out, size_t *count, weir_executor *ex,
                        const weir_tasks_query *query);

/* Lists the keys of all groups that exist and were not evicted: an array of strings, ended by NULL, all in one
 * allocation to be freed with free(3). *count (may be NULL) gets their number. WEIR_EINVAL: NULL. WEIR_ENOMEM. */
int weir_executor_keys(char ***out, size_t *count, weir_executor *ex);

WEIR_END_DECLS

#endif
