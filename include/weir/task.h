/* Tasks: one submission each, and the handle to it.
 *
 * A handle stays valid until its last unref, also after its group was evicted and its executor freed.
 * A task settles exactly once; everyone who asks sees the same result.
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

/* A sentence for people. */
typedef struct weir_message {
    char text[512];
} weir_message;

/* A task's body. It may store a value, which then belongs to the task. 0: done. WEIR_PENDING: not yet,
 * weir_task_settle will follow. WEIR_ECANCELED: it gave up because it was asked to. Anything else:
 * failed, with that error. */
typedef int weir_fn(void **value, void *arg);

/* What became of a task; never an error code. */
typedef enum weir_outcome {
    WEIR_UNSETTLED = 0,
    WEIR_DONE,
    WEIR_FAILED,
    WEIR_CANCELLED,
    WEIR_REJECTED,
    WEIR_TIMED_OUT, /* a deadline of its own passed; the reason says which                      */
} weir_outcome;

#define WEIR_PENDING 1 /* what a body returns that is settled later */

/* How long a task may take: waiting for its start, running, and both together. 0: whatever the next one up
 * says: the task's group, its domain, the executor. WEIR_NO_LIMIT: as long as it likes; only the executor's
 * forced deadlines are stronger. Others: up to WEIR_SPAN_MAX_MS. A task whose time is up settles at once as WEIR_TIMED_OUT, with error
 * WEIR_ETIMEDOUT; if its body runs, it is asked to end, as by weir_task_cancel. */
typedef struct weir_deadlines {
    int64_t wait_ms, run_ms, total_ms;
} weir_deadlines;

typedef struct weir_result {
    size_t size;
    weir_outcome outcome;
    int error;           /* what the body returned, or why it never ran                       */
    weir_reason reason;  /* of a rejection, cancellation or time-out; else WEIR_REASON_NONE   */
    void *value;         /* a loan: the task's until its last unref; see weir_task_take       */
    weir_time queued_at; /* submitted                                                         */
    weir_time started_at, ended_at; /* around the body; equal if it never ran                 */
    const char *key, *id;           /* as weir_task_key and weir_task_id: loans from the task */
} weir_result;
#define WEIR_RESULT                 \
    {                               \
        .size = sizeof(weir_result) \
    }

typedef struct weir_task_options { /* zero in any field asks for its default */
    size_t size;
    const char *id;   /* a label for logs and reports, up to WEIR_ID_MAX; copied              */
    uint32_t cost;    /* how many permits it takes, of its group and of the executor; default 1.
                         Above a limit of either: WEIR_EINVAL, it could never run             */
    uint8_t priority; /* WEIR_URGENT first, WEIR_IDLE last; default WEIR_NORMAL               */
    void (*drop)(void *value); /* called for a value nobody took, when the task goes          */
    void (*on_done)(weir_task *task, const weir_result *result,
                    void *arg); /* as weir_task_on_done */
    void *on_done_arg;
    weir_time deadline; /* with WEIR_BLOCK: when submit stops waiting for room; default never */
    weir_deadlines deadlines;
} weir_task_options;
#define WEIR_TASK(...) (&(weir_task_options){ .size = sizeof(weir_task_options), __VA_ARGS__ })

enum {
    WEIR_URGENT = 1,
    WEIR_NORMAL = 2,
    WEIR_LOW = 3,
    WEIR_IDLE = 4
}; /* priorities; 0 asks for NORMAL */

/* Submits fn(&value, arg) to a group. *out gets a handle; NULL: nobody will ask (detached). Never blocks,
 * except as WEIR_CALLER_RUNS and WEIR_BLOCK say. A rejected task has a handle as well, and 0 is answered:
 * the handle tells. `opt` may be NULL.
 * WEIR_EINVAL: a NULL, a cost above a limit of the group or the executor, an id beyond WEIR_ID_MAX, an unknown
 * priority, a deadline out of range. WEIR_ENOMEM. WEIR_ECLOSED: the executor is closed. WEIR_ENODOMAIN: the group
 * was evicted, and is now to be in an unknown domain. WEIR_ETIMEDOUT, WEIR_ECANCELED: WEIR_BLOCK found no room.
 * WEIR_EDEADLK: nor would it ever, because the calling task itself holds what would have to come free. */
int weir_submit(weir_task **out, weir_group *group, weir_fn *fn, void *arg,
                const weir_task_options *opt) WEIR_PARKS;

/* The same by key, finding or making the group. Also WEIR_EINVAL: a key beyond WEIR_KEY_MAX. WEIR_ENODOMAIN: the group
 * is to be in an unknown domain. */
int weir_submit_key(weir_task **out, weir_executor *ex, const char *key, weir_fn *fn, void *arg,
                    const weir_task_options *opt) WEIR_PARKS;

/* Submits `count` tasks in order, arg[i] each, for less than as many calls cost; handles go to out[i] (out may be
 * NULL). Answers how many were submitted, or the error that stopped the very first, as weir_submit; the other
 * handles are NULL. */
int64_t weir_submit_many(weir_task **out, weir_group *group, weir_fn *fn, void *const *arg,
                         size_t count, const weir_task_options *opt) WEIR_PARKS;

/* One task of a batch. */
typedef struct weir_work {
    const char *key;
    const char *id;
    weir_fn *fn;
    void *arg;
} weir_work;

/* Submits all, waits for all: result[i] belongs to work[i], whatever became of it. Values come to the
 * caller; key and id of a result are those of its work[i], not copies. If the calling task is cancelled, what is left is cancelled too and WEIR_ECANCELED answered;
 * likewise WEIR_EDEADLK, if waiting for one could never end. Results are complete all the same. WEIR_EINVAL: a
 * NULL, or work without key or fn; WEIR_ECLOSED, WEIR_ENOMEM: then nothing was submitted. */
int weir_execute_all(weir_result *result, weir_executor *ex, const weir_work *work,
                     size_t count) WEIR_PARKS;

/* Waits for the task to settle. *out (may be NULL) gets the result; the caller set its size.
 * 0: settled, whatever the outcome. WEIR_EREJECTED: settled as rejected, under WEIR_ABORT.
 * WEIR_ETIMEDOUT: not yet; the task goes on. WEIR_ECANCELED: the waiting task is cancelled.
 * WEIR_EDEADLK: it could never settle, because it waits for permits that those who wait for it hold.
 * WEIR_EINVAL: no task, or a result without its size. */
int weir_task_wait(weir_result *out, weir_task *task, weir_time deadline) WEIR_PARKS;

/* The same, and puts the circle of waits in words if there is one: *why (may be NULL) is "" otherwise. */
int weir_task_wait_or_say(weir_message *why, weir_result *out, weir_task *task,
                          weir_time deadline) WEIR_PARKS;

/* Waits until all `count` tasks have settled, or any one of them has; NULLs in the array are passed over. *index (may be NULL)
 * gets the place of a task that has settled, the first if there are several. The deadline is for the whole call.
 * 0: settled, whatever the outcomes. WEIR_ETIMEDOUT, WEIR_ECANCELED, WEIR_EDEADLK: as weir_task_wait.
 * WEIR_EINVAL: no array; of wait_any: no task. WEIR_ENOMEM: wait_any only. */
int weir_task_wait_all(weir_task *const *task, size_t count, weir_time deadline) WEIR_PARKS;
int weir_task_wait_any(size_t *index, weir_task *const *task, size_t count,
                       weir_time deadline) WEIR_PARKS;

/* Whether it has settled. */
bool weir_task_done(const weir_task *task);

/* Asks it to end. A waiting task settles at once and never runs. A running one settles at once, too: its
 * body finds weir_cancelled(), a wait it is parked in answers WEIR_ECANCELED, and whatever it still
 * returns is dropped; its permits stay taken until it does return. True: this call settled it. */
bool weir_task_cancel(weir_task *task);

/* Settles a task whose body returned (or will return) WEIR_PENDING; from any thread. 0; WEIR_EINVAL: no task, or
 * `error` is WEIR_PENDING; WEIR_EALREADY if it has settled, or has not started: the value is then
 * dropped. */
int weir_task_settle(weir_task *task, int error, void *value);

/* Has done(task, result, arg) called once, when the task has settled and its permits are back (those of a
 * body that was cancelled while it ran return when it does): by the thread that settles it, or right here
 * if it has. Any number of times. What holds for a listener holds for `done`. WEIR_EINVAL: NULL. WEIR_ENOMEM. */
int weir_task_on_done(weir_task *task,
                      void (*done)(weir_task *task, const weir_result *result, void *arg),
                      void *arg);

/* A descriptor for event loops: becomes readable (end of file) when the task has settled. It is the
 * caller's to close, at any time. Negative: WEIR_EINVAL: no task; WEIR_ENOMEM; or what the kernel said. */
int weir_task_fd(weir_task *task);

/* Takes the value out of a settled task: the first who asks gets it, and it is his. NULL otherwise. */
void *weir_task_take(weir_task *task);

/* The task the caller runs in; NULL outside. A loan. */
weir_task *weir_task_self(void);

const char *weir_task_key(const weir_task *task); /* its group's, a loan    */
const char *weir_task_id(const weir_task *task);  /* "" if it has none      */

/* The argument it was submitted with; NULL once the task has settled. */
void *weir_task_arg(const weir_task *task);

weir_task *weir_task_ref(weir_task *task);
void weir_task_unref(weir_task *task); /* NULL is fine */

/* Why it waits, or what became of it. */
typedef struct weir_why {
    size_t size;
    weir_reason reason;
    const char *node;   /* "executor", "domain" or "group": who refuses                      */
    const char *key;    /* of the group, or the domain's name; a loan from the task          */
    int64_t limit;      /* the limit that holds it back, if one does                         */
    int64_t held;       /* how many permits of it are taken; those of an evicted generation
                           that were carried over count                                      */
    uint64_t ahead;     /* tasks of its group that go first                                  */
    weir_time earliest; /* when it can start at the earliest, if that is known; else 0       */
} weir_why;

/* WEIR_EINVAL: NULL, or no size. */
int weir_task_why(weir_why *out, weir_task *task);

/* The same as a sentence, at most `size` bytes with the final zero. Answers its length as snprintf. */
int weir_why_text(char *text, size_t size, const weir_why *why);

WEIR_END_DECLS

#endif
