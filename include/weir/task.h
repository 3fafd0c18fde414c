/* Tasks: one submission each, and the handle to it.
 *
 * A handle stays valid until its last unref, also after its group was evicted and its executor freed.
 * A task settles exactly once: every wait and callback sees the same result.
 *
 * When a task settles, its permits are given back first; if its body still runs, they are given back when the body
 * returns. Then, in this order:
 *     1. the listener hears `completed` or `rejected`          weir/executor.h
 *     2. waits for the task end, and weir_task_done is true
 *     3. on_done and what weir_task_on_done has added are called, oldest first
 *     4. drop_arg is called, once the body cannot use its argument any more
 * `drop` is called with the last unref, for a value that was not taken.
 *
 * A wait may return before 3 and 4; weir_executor_drain, _shutdown and _free return after them.
 *
 * Callbacks are never nested. If a callback settles another task, say by cancelling it, the waits for that task end at
 * once, and its steps 1, 3 and 4 follow when the callback has returned. So a callback may wait for a task that it has
 * just settled, but not for that task's callbacks.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_TASK_H
#define WEIR_TASK_H

#include <stdbool.h>
#include <weir/reason.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_executor weir_executor; /* owned: _new / _free                       */
typedef struct weir_group weir_group;       /* shared: see weir/group.h                  */
typedef struct weir_task weir_task;         /* shared: the caller holds one reference    */

/* The longest key of a group and the longest id of a task, in bytes without the final zero. */
enum { WEIR_KEY_MAX = 4096, WEIR_ID_MAX = 4096 };

#define WEIR_SPAN_MAX_MS INT64_C(31536000000) /* the longest span of time in milliseconds: a year */

/* A sentence for a person to read, cut if it does not fit. */
typedef struct weir_message {
    char text[512];
} weir_message;

/* A task's body. It may store a value, which then belongs to the task. Returns
 *     0                  the task is WEIR_DONE
 *     WEIR_ECANCELED     WEIR_CANCELLED: the body gave up
 *     WEIR_PENDING       the task has not settled yet; weir_task_settle will settle it. For the thread that calls it
 *                        the body has taken a reference, weir_task_ref(weir_task_self()): a pending task can be
 *                        cancelled meanwhile, by any call that cancels running tasks
 *     anything else      WEIR_FAILED, with that error */
typedef int weir_fn(void **value, void *arg);

/* How a task ended. */
typedef enum weir_outcome {
    WEIR_UNSETTLED = 0,
    WEIR_DONE,
    WEIR_FAILED,
    WEIR_CANCELLED,
    WEIR_REJECTED,
    WEIR_TIMED_OUT, /* a deadline of its own passed; the reason says which                      */
    WEIR_SKIPPED,   /* of a node of a flow: nothing needs it any more; see weir/flow.h          */
} weir_outcome;

#define WEIR_PENDING 1 /* returned by a body: the task will be settled later, by weir_task_settle */

/* How long a task may wait for its start, how long it may run, and both together: 1 to WEIR_SPAN_MAX_MS. 0: the value
 * of its group, else of its domain, else of the executor. WEIR_NO_LIMIT: no deadline but the executor's forced ones
 * (weir_policy.deadlines_max). When a deadline passes, the task settles at once as WEIR_TIMED_OUT, with error
 * WEIR_ETIMEDOUT; if its body runs, the body is asked to end, as by weir_task_cancel. */
typedef struct weir_deadlines {
    int64_t wait_ms, run_ms, total_ms;
} weir_deadlines;

/* The result of a task. What it points to belongs to the task, and is valid until the task's last unref. */
typedef struct weir_result {
    size_t size;
    weir_outcome outcome;
    int error;           /* what the body returned; if it never ran, a WEIR_E... that says why  */
    weir_reason reason;  /* of a rejection, cancellation or time-out; else WEIR_REASON_NONE     */
    void *value;         /* stored by the body; to keep it, see weir_task_take                  */
    weir_time queued_at; /* when the task was submitted                                         */
    weir_time started_at, ended_at; /* of the body; equal if it never ran                       */
    const char *key, *id;           /* as weir_task_key and weir_task_id                        */
} weir_result;
#define WEIR_RESULT                 \
    {                               \
        .size = sizeof(weir_result) \
    }

typedef struct weir_task_options { /* zero in any field asks for its default */
    size_t size;
    const char *id;   /* a label for logs and reports, up to WEIR_ID_MAX; copied              */
    uint32_t cost;    /* how many permits it takes, of its group and of the executor; default 1.
                         Above a limit of either, or above WEIR_LIMIT_MAX: WEIR_EINVAL, it could
                         never run                                                            */
    uint8_t priority; /* WEIR_URGENT first, WEIR_IDLE last; default WEIR_NORMAL               */
    void (*drop)(void *value); /* called for a value that was not taken, after the last unref */
    void (*on_done)(weir_task *task, const weir_result *result,
                    void *arg); /* as weir_task_on_done */
    void *on_done_arg;
    weir_time deadline; /* with WEIR_BLOCK: when submit stops waiting for room; default never */
    weir_deadlines deadlines;
    /* Called once with the task's argument, when the body has returned or will never run. It is called after on_done,
     * which may still use the argument; see above. If the body returned WEIR_PENDING, it is called with the last
     * unref, so that the thread that settles the task may use the argument, too. If submit answers an error, it is not
     * called, and the caller still owns the argument. */
    void (*drop_arg)(void *arg);
} weir_task_options;
#define WEIR_TASK(...) WEIR_SIZED(weir_task_options, __VA_ARGS__)

enum {
    WEIR_URGENT = 1,
    WEIR_NORMAL = 2,
    WEIR_LOW = 3,
    WEIR_IDLE = 4
}; /* priorities; 0 asks for NORMAL */

/* Submits fn(&value, arg) to a group. *out gets a handle; if `out` is NULL, the task is detached. `opt` may be NULL.
 * Does not wait, except under WEIR_CALLER_RUNS and WEIR_BLOCK. If the task is rejected, submit still answers 0 and
 * gives a handle, whose result says so.
 *
 * WEIR_EINVAL: a NULL, a cost above a limit of the group or the executor, an id beyond WEIR_ID_MAX, an unknown
 * priority, a deadline out of range. WEIR_ENOMEM. WEIR_ECLOSED: the executor is closed. WEIR_ENODOMAIN: the group
 * was evicted, and the policy now puts it into an unknown domain. Under WEIR_BLOCK also WEIR_ETIMEDOUT: there was no
 * room until the deadline; WEIR_ECANCELED: the calling task was cancelled; WEIR_EDEADLK: there could never be room,
 * because the calling task itself holds the permits that would have to come free. After an error there is no task:
 * none is counted, and on_done and drop_arg are not called. */
int weir_submit(weir_task **out, weir_group *group, weir_fn *fn, void *arg,
                const weir_task_options *opt) WEIR_PARKS;

/* As weir_submit, for the group of that key, which is made if there is none. Also WEIR_EINVAL: a key beyond
 * WEIR_KEY_MAX. WEIR_ENODOMAIN: the policy puts the group into an unknown domain. */
int weir_submit_key(weir_task **out, weir_executor *ex, const char *key, weir_fn *fn, void *arg,
                    const weir_task_options *opt) WEIR_PARKS;

/* Submits fn with each arg[i], in order; cheaper than `count` calls of weir_submit. out[i] gets the handle (`out` may
 * be NULL). Answers how many tasks were submitted; handles beyond that are NULL. If the very first one failed: its
 * error, as weir_submit. */
int64_t weir_submit_many(weir_task **out, weir_group *group, weir_fn *fn, void *const *arg,
                         size_t count, const weir_task_options *opt) WEIR_PARKS;

/* One task of a batch. */
typedef struct weir_work {
    const char *key;
    const char *id;
    weir_fn *fn;
    void *arg;
} weir_work;

typedef struct weir_execute_options { /* zero in any field asks for its default */
    size_t size;
    weir_time deadline;            /* when to stop waiting; default never                       */
    const weir_task_options *task; /* of every task; a work's own id comes before this one's    */
} weir_execute_options;
#define WEIR_EXECUTE(...) WEIR_SIZED(weir_execute_options, __VA_ARGS__)

/* Submits a task for each work[i] and waits for all of them. result[i] gets the result of work[i], whatever the
 * outcome. `opt` may be NULL. WEIR_ETIMEDOUT: the deadline passed. WEIR_ECANCELED: the calling task was cancelled.
 * WEIR_EDEADLK: the wait for one of the tasks could never end. In these three cases the tasks that are left are
 * cancelled, and the results are complete all the same.
 *
 * Returns when no body uses its argument any more, so it also waits for bodies that were cancelled or timed out; but
 * not if the tasks have drop_arg. The caller owns all values; if the tasks have `drop`, only those of tasks that are
 * WEIR_DONE, and the others are dropped. Key and id of a result are those of its work[i], not copies.
 *
 * WEIR_EINVAL: a NULL, or work without key or fn; WEIR_EVERSION, WEIR_ECLOSED, WEIR_ENOMEM: then nothing was
 * submitted. */
int weir_execute(weir_result *result, weir_executor *ex, const weir_work *work, size_t count,
                 const weir_execute_options *opt) WEIR_PARKS;

/* As weir_execute, without options. */
int weir_execute_all(weir_result *result, weir_executor *ex, const weir_work *work,
                     size_t count) WEIR_PARKS;

/* Waits for the task to settle. *out (may be NULL; else the caller has set its size, see WEIR_RESULT) gets the result.
 * 0: it has settled, whatever the outcome. WEIR_EREJECTED: it was rejected, under WEIR_ABORT. WEIR_ETIMEDOUT: it has
 * not settled yet, and goes on. WEIR_ECANCELED: the calling task was cancelled. WEIR_EDEADLK: the wait could never
 * end, because the task needs permits of tasks that wait for it. WEIR_EINVAL: no task, or *out has no size. */
int weir_task_wait(weir_result *out, weir_task *task, weir_time deadline) WEIR_PARKS;

/* As weir_task_wait. With WEIR_EDEADLK *why (may be NULL) gets the circle of waits in words, else "". */
int weir_task_wait_or_say(weir_message *why, weir_result *out, weir_task *task,
                          weir_time deadline) WEIR_PARKS;

/* Waits until all `count` tasks have settled, whatever the outcomes; NULLs in the array are passed over. The deadline
 * is for the whole call. WEIR_ETIMEDOUT, WEIR_ECANCELED, WEIR_EDEADLK: as weir_task_wait. WEIR_EINVAL: no array. */
int weir_task_wait_all(weir_task *const *task, size_t count, weir_time deadline) WEIR_PARKS;

/* Waits until any of `count` tasks has settled, whatever the outcome; NULLs in the array are passed over. *index (may
 * be NULL) gets its place in the array, the first if several have settled. Errors as weir_task_wait_all; WEIR_EINVAL
 * also if there is no task in the array. WEIR_ENOMEM. */
int weir_task_wait_any(size_t *index, weir_task *const *task, size_t count,
                       weir_time deadline) WEIR_PARKS;

/* Whether the task has settled. */
bool weir_task_done(const weir_task *task);

/* Cancels a task: it settles at once. A waiting task never runs. The body of a running task is asked to end:
 * weir_cancelled() is true in it, and a wait that it is parked in answers WEIR_ECANCELED. The body keeps its permits
 * and its argument until it returns; what it returns then is dropped. True: this call settled the task. Inside of a
 * callback, the call returns before the task's own callbacks are called. */
bool weir_task_cancel(weir_task *task);

/* Settles a task whose body has returned, or will return, WEIR_PENDING. `error` is read as the return value of a body.
 * Any thread that has a reference may call it. WEIR_EALREADY: the task has settled (it may have been cancelled, or its
 * executor closed), or has not started; the value is dropped. WEIR_EINVAL: no task, a run of a flow, or `error` is
 * WEIR_PENDING. Inside of a callback, the call returns before the task's own callbacks are called. */
int weir_task_settle(weir_task *task, int error, void *value);

/* Calls done(task, result, arg) once, when the task has settled and has given its permits back. If the task was
 * cancelled while its body ran, that body may still run, hold its permits and use its argument.
 *
 * The thread that settles the task calls `done`. If the task has settled already, this call does so itself; inside of a
 * callback, when that callback has returned. A task may have any number of these callbacks. They may do what a
 * listener may do (weir/executor.h). WEIR_EINVAL: NULL. WEIR_ENOMEM. */
int weir_task_on_done(weir_task *task,
                      void (*done)(weir_task *task, const weir_result *result, void *arg),
                      void *arg);

/* Makes a descriptor for event loops, which becomes readable (end of file) when the task has settled. The caller
 * closes it, at any time. Negative: WEIR_EINVAL: no task; WEIR_ENOMEM; or what the kernel said. */
int weir_task_fd(weir_task *task);

/* Takes the value out of a settled task: the first caller owns it from now on. NULL: the task has not settled, has no
 * value, or the value was taken before. */
void *weir_task_take(weir_task *task);

/* The task that the caller runs in; NULL outside of tasks. No reference is taken. Under WEIR_CALLER_RUNS this is the
 * task whose body runs, also if it was submitted by another one. */
weir_task *weir_task_self(void);

/* The key of the task's group; valid until the task's last unref. */
const char *weir_task_key(const weir_task *task);

/* The id the task was submitted with; "" if it has none. Valid until the task's last unref. */
const char *weir_task_id(const weir_task *task);

/* The argument the task was submitted with; NULL once the task has settled. */
void *weir_task_arg(const weir_task *task);

/* Takes one more reference, and answers the task. */
weir_task *weir_task_ref(weir_task *task);

/* Gives a reference back; the handle must not be used after the last one. NULL is fine. */
void weir_task_unref(weir_task *task);

enum { WEIR_HOLDERS_MAX = 160 }; /* bytes of weir_why.holders */

/* Why a task waits, or how it ended. */
typedef struct weir_why {
    size_t size;
    weir_reason reason;
    const char *node; /* whose limit holds the task back: "executor", "domain" or "group"; "" if it
                           does not wait                                                     */
    const char *key;  /* the group's key, or the domain's name; valid as weir_task_key     */
    int64_t limit;    /* the limit that holds it back; 0: none does                        */
    int64_t held;     /* permits of that limit in use, those included that an evicted group
                           has carried over                                                  */
    uint64_t ahead;   /* tasks of its group that go first                                  */
    weir_time earliest; /* the earliest time at which it can start, if known; else 0         */
    /* The holders of a guard's permits, cut if they do not fit: "group \"a\" (2), callers (1)"; "" if not known. */
    char holders[WEIR_HOLDERS_MAX];
} weir_why;

/* Says why a task waits, or how it ended. WEIR_EINVAL: NULL, or no size. */
int weir_task_why(weir_why *out, weir_task *task);

/* Puts a weir_why into a sentence, at most `size` bytes with the final zero. Answers its length, as snprintf. */
int weir_why_text(char *text, size_t size, const weir_why *why);

WEIR_END_DECLS

#endif
