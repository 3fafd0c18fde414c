/* Guards: limits on how many calls run, how often calls start, and whether any may start.
 *
 * A guard answers whether a call may go now, and if not, when. It stands around any code, in tasks and plain threads:
 *
 *     weir_guard *db;
 *     weir_guard_new(&db, NULL, "db", WEIR_BULKHEAD(.limit = 10), NULL);
 *     ...
 *     WEIR_SCOPED_PERMIT(permit);
 *     rc = weir_guard_enter(&permit, db, weir_in_ms(200));
 *     if (rc)
 *         return rc;                           refused; permit.retry_at says when to try again
 *     rc = query(...);
 *     weir_guard_leave(&permit, rc);           a breaker learns from rc
 *
 * All kinds of guards are used like this. A permit is left exactly once. Waiting callers enter in the order in which they
 * came; a task that waits parks, a thread blocks. docs/guards.md says which guard is for which problem.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_GUARD_H
#define WEIR_GUARD_H

#include <stdbool.h>
#include <weir/error.h>
#include <weir/task.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

/* Shared: one reference for each weir_guard_new, given back by weir_guard_unref. */
typedef struct weir_guard weir_guard;

/* Owned: where guards keep their counts; see "stores" below. */
typedef struct weir_store weir_store;

/* ---- settings -------------------------------------------------------------------------------- */

typedef enum weir_guard_kind {
    WEIR_GUARD_ANY = 0,     /* with weir_guard_new: the guard that has this name, of any kind    */
    WEIR_GUARD_BULKHEAD,    /* at most `limit` calls at a time                                  */
    WEIR_GUARD_CONCURRENCY, /* the same; `limit` has no default, and by default enter waits     */
    WEIR_GUARD_FREQUENCY,   /* at most `limit` calls per window of `period_ns`                  */
    WEIR_GUARD_RATE,        /* at most `limit` calls per cycle of `period_ns`; a caller may
                               reserve a place in a later cycle                                 */
    WEIR_GUARD_BREAKER,     /* no calls while too many of the latest ones failed or were slow   */
    WEIR_GUARD_MUTEX,       /* one holder at a time, with a fencing token                       */
    WEIR_GUARD_ADAPTIVE,    /* a limit of calls at a time that follows their latency            */
    WEIR_GUARD_BUDGET,      /* retries, at most a share of first calls; see weir_retry          */
} weir_guard_kind;

/* How a guard counts. 0: the first mode of its kind. */
typedef enum weir_guard_mode {
    WEIR_WEIGHTED = 1, /* frequency: the present window, and a share of the one before           */
    WEIR_FIXED,        /* frequency: windows that begin at multiples of the period               */
    WEIR_EXACT,        /* frequency: any window of that length; takes `limit` times 8 bytes      */
    WEIR_CYCLES,       /* rate: `limit` calls at any time of a cycle                             */
    WEIR_SMOOTH,       /* rate: one call every period_ns / limit, after a burst                  */
    WEIR_BY_COUNT,     /* breaker: counts the latest `window` calls                              */
    WEIR_BY_TIME,      /* breaker: counts the calls of the latest `window` seconds               */
    WEIR_GRADIENT,     /* adaptive: the limit follows the trend of latency                       */
    WEIR_AIMD,         /* adaptive: the limit grows by 1 while calls are fast, and is multiplied
                          by 0.9 when a call is slow or fails                                    */
} weir_guard_mode;

typedef enum weir_breaker_state {
    WEIR_CLOSED = 1,   /* all calls pass and are counted                                         */
    WEIR_OPEN,         /* no call passes until the wait is over                                  */
    WEIR_HALF_OPEN,    /* `probes` calls pass; their outcomes decide what comes next             */
    WEIR_DISABLED,     /* all calls pass, none is counted                                        */
    WEIR_METRICS_ONLY, /* all calls pass and are counted; the breaker never opens                */
    WEIR_FORCED_OPEN,  /* no call passes                                                         */
} weir_breaker_state;

/* What a breaker (and an adaptive guard) counts a call as that has ended. */
typedef enum weir_call_result { WEIR_SUCCESS = 1, WEIR_FAILURE, WEIR_IGNORE } weir_call_result;

/* What a guard on a server does while the server cannot be reached. */
typedef enum weir_when_away {
    WEIR_AWAY_CLOSED = 1, /* no call enters: WEIR_EAWAY                                          */
    WEIR_AWAY_OPEN,       /* all calls enter, uncounted                                          */
    WEIR_AWAY_SHARE,      /* at most `share` calls of this process enter at a time (rate and
                             frequency: per period)                                              */
} weir_when_away;

/* A permit whose lease could not be kept. Lent to on_lost for the time of the call. on_lost must not wait: the thread that calls
 * it also renews the store's other leases and wakes callers that wait for its guards, who are held up meanwhile. */
typedef struct weir_lost {
    weir_guard *guard;
    uint64_t token;
    int64_t permits;
    weir_time until; /* when the lease ends, or ended: counted from before the request was sent  */
    struct weir_task *task; /* the task that entered; NULL: a plain thread did                   */
    const char *why;        /* why the lease could not be kept                                   */
} weir_lost;

#define WEIR_NO_CALLS    INT64_MIN           /* in `limit`: no call may enter                    */
#define WEIR_NO_WAIT     INT64_C(-1)         /* in `wait_ns`: look once                          */
#define WEIR_NO_WAITERS  INT64_C(-1)         /* in `waiters_max`: refuse instead of waiting      */
#define WEIR_GUARD_WAIT  ((weir_time)-2)     /* as a deadline: wait as long as `wait_ns` says    */
#define WEIR_PERMITS_MAX INT64_C(2147483647) /* the highest limit                                */

typedef struct weir_guard_event weir_guard_event;

/* Zero in any field asks for its default. A field that names a kind or a mode has no effect on others, but must be in range for
 * all. */
typedef struct weir_guard_options {
    size_t size;
    weir_guard_kind kind;
    weir_guard_mode mode;
    int64_t limit;       /* 1 to WEIR_PERMITS_MAX (WEIR_EXACT: to 1000000), or WEIR_NO_CALLS;
                            default: bulkhead 50, rate 100, adaptive 20 at first, budget 10
                            tokens. Concurrency and frequency have no default                    */
    int64_t period_ns;   /* default: rate 500 ms, frequency 1 h                                  */
    int64_t burst;       /* only WEIR_SMOOTH: calls that may come at once; default 1             */
    int64_t initial_ns;  /* WEIR_SMOOTH: how long after the guard was made the first call may
                            come; default 0                                                      */
    int64_t wait_ns;     /* how long WEIR_GUARD_WAIT waits; default: rate 5 s, concurrency for
                            ever, other kinds WEIR_NO_WAIT                                       */
    int64_t waiters_max; /* most callers that wait; further ones are refused; default: no limit  */

    /* Breaker. Calls are timed exactly; if they come at more than two million per second and slow_ns is 1 s or more, in steps
     * of about 1 ms, which is right on average. */
    double failure_percent; /* opens at this share of failures, above 0 up to 100; default 95    */
    double slow_percent;    /* or at this share of slow calls; default 100                       */
    int64_t slow_ns;        /* a call that takes longer is slow; default 60 s                    */
    int64_t window;         /* calls or seconds, 1 to 1000000 (by time: 86400); default 100      */
    int64_t minimum;        /* calls that must have been counted before the breaker may open;
                               default 100, by count at most `window`                            */
    int64_t probes;         /* calls that pass while it is half open; default 10                 */
    int64_t open_ns;        /* how long it stays open; at least 1 ms, default 60 s               */
    double open_growth;     /* how many times longer each further opening in a row lasts, 1 to
                               1000; default 1                                                   */
    int64_t open_max_ns;    /* but not longer than this; default one day                         */
    double open_jitter;     /* 0 to 1: an opening is by chance up to that share shorter or longer;
                               default 0                                                         */
    int64_t half_open_ns;   /* how long it stays half open before it becomes half_open_then; default
                               open_ns; WEIR_FOREVER: until the probes decide                    */
    weir_breaker_state half_open_then; /* WEIR_OPEN (default) or WEIR_CLOSED                     */
    weir_breaker_state initial;        /* default WEIR_CLOSED                                    */
    bool auto_half_open; /* it becomes half open when the wait is over; default: when the next call
                            comes after that                                                     */
    weir_call_result other_errors; /* what errors count as that are not failures; default
                                      WEIR_IGNORE                                                */

    /* adaptive */
    int64_t limit_min, limit_max; /* bounds of the limit; default 1 and 1000                     */
    int64_t latency_ns;           /* WEIR_AIMD: a call that takes longer is slow; default 1 s    */

    double budget_percent; /* budget: most retries per hundred first calls; default 20           */

    /* Guards on a server (weir/redis.h). All but the lease are of this handle's process only. */
    int64_t lease_ns;         /* a permit that is not renewed ends after this, 20 ms to a day;
                                 default 30 s                                                    */
    int64_t margin_ns;        /* how long before that its holder is asked to stop; default a tenth
                                 of the lease                                                    */
    weir_when_away when_away; /* default WEIR_AWAY_CLOSED                                        */
    int64_t share;            /* WEIR_AWAY_SHARE: most calls of this process; default 1          */
    bool keep_task;           /* do not cancel the task whose permit is lost                     */
    void (*on_lost)(const weir_lost *lost, void *arg); /* on a thread of the store's             */
    void *lost_arg;

    /* Functions and lists of this handle's process only. Functions are called with no lock held; lists are copied. */
    const int *failures;  /* breaker: the errors that are failures; default: all                 */
    size_t failure_count; /* at most 32                                                          */
    const int *ignored;   /* breaker: errors that are no failures, even if `failures` has them   */
    size_t ignored_count; /* at most 32                                                          */
    /* Breaker, adaptive: decides what a call counts as. 0: as it would without this function. */
    weir_call_result (*judge)(int error, const void *result, void *arg);
    void *judge_arg;
    /* Rate: whether a call that ended like this drains the guard. */
    bool (*drain_on)(int error, const void *result, void *arg);
    void *drain_arg;
    /* Breaker: how long the n-th opening in a row lasts, in place of open_ns. */
    int64_t (*open_for)(uint64_t attempt, void *arg);
    void *open_arg;
    void (*on_event)(const weir_guard_event *event, void *arg);
    void *event_arg;
} weir_guard_options;

#define WEIR_GUARD_OPTIONS(...) WEIR_SIZED(weir_guard_options, __VA_ARGS__)
#define WEIR_BULKHEAD(...)      WEIR_GUARD_OPTIONS(.kind = WEIR_GUARD_BULKHEAD, __VA_ARGS__)
#define WEIR_CONCURRENCY(...)   WEIR_GUARD_OPTIONS(.kind = WEIR_GUARD_CONCURRENCY, __VA_ARGS__)
#define WEIR_FREQUENCY(...)     WEIR_GUARD_OPTIONS(.kind = WEIR_GUARD_FREQUENCY, __VA_ARGS__)
#define WEIR_RATE(...)          WEIR_GUARD_OPTIONS(.kind = WEIR_GUARD_RATE, __VA_ARGS__)
#define WEIR_BREAKER(...)       WEIR_GUARD_OPTIONS(.kind = WEIR_GUARD_BREAKER, __VA_ARGS__)
#define WEIR_MUTEX(...)         WEIR_GUARD_OPTIONS(.kind = WEIR_GUARD_MUTEX, __VA_ARGS__)
#define WEIR_ADAPTIVE(...)      WEIR_GUARD_OPTIONS(.kind = WEIR_GUARD_ADAPTIVE, __VA_ARGS__)
#define WEIR_BUDGET(...)        WEIR_GUARD_OPTIONS(.kind = WEIR_GUARD_BUDGET, __VA_ARGS__)

/* ---- making and finding ---------------------------------------------------------------------- */

/* Makes the guard of that name in `store` (NULL: weir_store_default), or finds it: the same name and store give the same
 * guard. The name is copied; it has 1 to WEIR_KEY_MAX bytes, of any value but zero. `opt` NULL, or of kind
 * WEIR_GUARD_ANY: only finds a guard. Functions in `opt` take effect only if this call makes the guard, or is the first
 * of this process to open it.
 * WEIR_EEXIST: the guard exists with other settings. WEIR_EINVAL: a setting is out of range.
 * WEIR_ENOGUARD: there is no guard of that name. WEIR_EVERSION: an option this library does not know. WEIR_EFOREIGN: the
 * store's entry of that name is not a guard, is damaged, or is of another version of weir. WEIR_ENOMEM; -errno of the
 * file system. `message` (may be NULL) says what is wrong. */
int weir_guard_new(weir_guard **out, weir_store *store, const char *name,
                   const weir_guard_options *opt, weir_message *message);

/* Takes one more reference, and answers the guard. */
weir_guard *weir_guard_ref(weir_guard *guard);

/* Gives a reference back; NULL is fine. Leave all permits before the last reference goes. Callers that wait need none: they go
 * on waiting, enter or are refused, and leave as if there were a reference, also those that entered just before; callers
 * that come later need one. A guard without references is forgotten as soon as that makes no difference: no permit is held,
 * nobody waits, no window or debt is left, a breaker is closed and its window has no failure and no slow call, and no
 * setting was changed. */
void weir_guard_unref(weir_guard *guard);

/* The guard's name; valid as long as the reference. */
const char *weir_guard_name(const weir_guard *guard);

/* Changes settings while calls are under way, for all users of the guard. Fields of `to` that are zero stay as they are;
 * kind, mode, window, functions, error lists and `initial` cannot be changed, and the limit of WEIR_EXACT cannot be
 * raised. Does not wait: a lowered limit takes effect as calls leave, and waiting callers keep their deadlines. A change
 * gives no spent permits back. `expected` (may be NULL): change only if the settings have the values of its fields that
 * are not zero. WEIR_EALREADY: they have others; nothing changed. WEIR_EINVAL: a value is out of range, or a setting
 * cannot be changed; `message` (may be NULL) says which. */
int weir_guard_change(weir_guard *guard, const weir_guard_options *to,
                      const weir_guard_options *expected, weir_message *message);

/* ---- entering and leaving -------------------------------------------------------------------- */

/* The permit of a caller that has entered. It is a variable of the caller's, empty at first (WEIR_PERMIT), and belongs to
 * its address: a copy is not a permit, use weir_permit_move. Programs may read retry_at, permits and token only. */
typedef struct weir_permit {
    weir_guard *guard; /* NULL: empty                                                            */
    const void *place;
    int64_t permits; /* how many were taken                                                      */
    uint64_t token;  /* mutex, and guards on a server: grows with each holder, so that a resource
                        can refuse an earlier one                                                */
    weir_time since;
    weir_time retry_at; /* after a refusal: the earliest time at which a call could enter;
                           WEIR_FOREVER: not known                                               */
} weir_permit;
#ifdef __cplusplus
#define WEIR_PERMIT weir_permit()
#else
#define WEIR_PERMIT   \
    (weir_permit)     \
    {                 \
        .guard = NULL \
    }
#endif

/* Enters a guard. Waits until the deadline; WEIR_NOW_OR_NEVER looks once, WEIR_GUARD_WAIT waits as long as the guard's
 * wait_ns says. A call that is known to come too late is refused at once.
 * 0: entered; weir_guard_leave must follow. WEIR_EFULL: no permit (bulkhead, concurrency, adaptive, budget), or
 * waiters_max callers wait. WEIR_ELOCKED: the mutex is held. WEIR_ETOOFAST: a rate or frequency allows no more calls
 * yet. WEIR_EBROKEN: the breaker is open. WEIR_ECANCELED: the calling task was cancelled; its reservation was given
 * back. WEIR_EINVAL: NULL, or the permit is not empty. */
int weir_guard_enter(weir_permit *out, weir_guard *guard, weir_time deadline) WEIR_PARKS;

/* As weir_guard_enter, for several permits at once: 1 to WEIR_PERMITS_MAX; breakers, mutexes and budgets: 1.
 * WEIR_EINVAL: also a number out of range, or above the limit (bulkhead, concurrency, frequency) or burst (rate). */
int weir_guard_enter_n(weir_permit *out, weir_guard *guard, int64_t permits,
                       weir_time deadline) WEIR_PARKS;

/* Takes permits without waiting. Answers after how many nanoseconds the caller may go on: 0 is now, and the longest is
 * patience_ns. Only a rate answers more than 0. Negative: errors as weir_guard_enter_n, and no permit was taken. */
int64_t weir_guard_reserve(weir_permit *out, weir_guard *guard, int64_t permits,
                           int64_t patience_ns);

/* Gives the permit back and empties it. `error` is how the call ended, 0 or negative; breakers and adaptive guards learn
 * from it. A permit of a rate or frequency need not be left.
 * WEIR_EALREADY: the permit is empty; it was left before, or never given. WEIR_EINVAL: NULL, or not a permit. */
int weir_guard_leave(weir_permit *permit, int error);

/* As weir_guard_leave, with a result for `judge` and `drain_on` to look at. */
int weir_guard_leave_with(weir_permit *permit, int error, const void *result);

/* Gives the permit back as if the call had never been made: no outcome is counted, and a reservation, a place in a window
 * or a breaker's probe is free again unless its time has passed. A WEIR_SMOOTH rate that has let another call in meanwhile keeps
 * what is given back, also by the turn of a group that did not need it. Errors as weir_guard_leave. */
int weir_guard_release(weir_permit *permit);

/* Moves a permit to another variable, which must be empty. Errors as weir_guard_leave; WEIR_EINVAL also if `to` is not
 * empty. */
int weir_permit_move(weir_permit *to, weir_permit *from);

/* Declares an empty permit that is released (weir_guard_release) at the end of the block, unless it is empty then. */
#define WEIR_SCOPED_PERMIT(name) \
    weir_permit name __attribute__((cleanup(weir_permit_end))) = WEIR_PERMIT
void weir_permit_end(weir_permit *permit);

/* ---- several as one step --------------------------------------------------------------------- */

/* Enters all of `count` guards (at most WEIR_TOGETHER_MAX) or none, in one step: no other caller sees only some of them
 * entered. permits[i] is that of guards[i]; the order does not matter. A refused call takes nothing and counts as nothing
 * but a refusal: the error is that of the first guard that refuses, in the order breaker, rate, frequency, bulkhead and
 * its like, mutex, budget; retry_at of every permit is the earliest time at which all guards could admit the call, if
 * known. A rate makes no reservations here. While the call waits it holds nothing, and stands in the line of the guard
 * that refused it last. Errors as weir_guard_enter. WEIR_EINVAL: also the same guard twice.
 *
 * With guards on servers (weir/redis.h) it is still all or none, and holds nothing while it waits, but not one step: guards
 * are entered one after the other, and given back (weir_guard_release) if a later one refuses, so other callers may be
 * refused meanwhile. Error and retry_at are those of the guard that refused. A WEIR_SMOOTH rate that has let another
 * call in meanwhile keeps what was given back. */
enum { WEIR_TOGETHER_MAX = 16 };
int weir_guards_enter(weir_permit *permits, weir_guard *const *guards, size_t count,
                      weir_time deadline) WEIR_PARKS;

/* Leaves all permits that are not empty, the last guard first. */
void weir_guards_leave(weir_permit *permits, size_t count, int error);

/* ---- groups ---------------------------------------------------------------------------------- */

/* What becomes of a task that is submitted while the group's breaker is open. */
enum {
    WEIR_HOLD_WHEN_OPEN = 0,   /* the task waits in the queue                                    */
    WEIR_REJECT_WHEN_OPEN = 1, /* the task is rejected: WEIR_REASON_BREAKER_OPEN                 */
};

struct weir_gate;

/* Puts the guard before the group's tasks: each task enters the guard before it starts and leaves it when it ends, and
 * waits in the group's queue meanwhile, without a stack or a thread. The task's error counts as that of the call; a
 * cancelled task is ignored. A guard may stand before several groups and be entered by other callers: callers that wait
 * go first, groups take turns for the rest. weir_task_why names the guard, its figures and its holders.
 *
 * judge, drain_on, open_for and on_event are called for tasks soon after they end: in order, with no lock held, on a
 * thread of weir's own, with NULL as `result`. The group starts no task while a breaker's judge has yet to decide about
 * one of its tasks. These functions may remove the gate, but must not free the executor.
 *
 * *out (`out` may be NULL) gets the gate, for weir_gate_remove (weir/sys/gate.h), with which the permits of its running
 * tasks come back. Unless it is removed, it stays as long as the group, and keeps a reference to the guard. Add a guard to a
 * group once: added twice, each task has to enter it twice. WEIR_EINVAL: NULL, unknown flags, or a budget. Others as
 * weir_group_gate_add. */
int weir_group_guard_add(struct weir_gate **out, weir_group *group, weir_guard *guard, int flags);

/* ---- seeing ---------------------------------------------------------------------------------- */

typedef struct weir_guard_stats { /* a snapshot of one moment */
    size_t size;
    weir_guard_kind kind;
    weir_guard_mode mode;
    int64_t limit;      /* the present one: an adaptive guard's changes                     */
    int64_t used;       /* permits held, in the whole store                                 */
    int64_t available;  /* permits that are free now; negative: reservations of a rate      */
    int64_t waiting;    /* callers that wait                                                */
    weir_time retry_at; /* when one more call could enter: now, or as in a permit           */
    int64_t cycle;      /* rate: the number of the present cycle                            */
    /* Calls of this process, since it opened the guard. A breaker counts a call as entered when it ends; rates and
     * frequencies do not count calls that leave. Permits that the turn of a group has taken, and did not need, count as entered
     * and released. */
    uint64_t entered, refused, left, released, cancelled;
    uint64_t succeeded, failed, ignored, slow; /* breaker, adaptive: calls that left            */
    /* Breaker: the present window. */
    weir_breaker_state state;
    uint64_t epoch;         /* grows with each change of the state                            */
    uint64_t attempt;       /* openings in a row                                              */
    uint64_t not_permitted; /* refused in this state                                          */
    int64_t stored, stored_failed, stored_slow, stored_slow_failed;
    int64_t stored_ns;      /* sum of the durations of stored calls                           */
    double failure_percent; /* -1: too few calls                                              */
    double slow_percent;
    int64_t probes_out; /* half open: calls that passed and have not ended                */
    /* Guards on a server. */
    bool away;          /* the server cannot be reached; limit, used, waiting are as last seen */
    int64_t away_ns;    /* for how long                                                     */
    uint64_t uncounted; /* calls that entered while it was away                             */
    uint64_t lost;      /* permits whose lease ended, or that were taken away               */
    uint64_t version;   /* of the settings; grows with each change                          */
} weir_guard_stats;

/* Fills `out`, whose size the caller has set. Takes no permit and counts no call. WEIR_EINVAL: NULL, or no size. */
int weir_guard_stats_get(weir_guard_stats *out, weir_guard *guard);

/* Describes the guard in one sentence: "bulkhead db: 10 of 10 permits in use, 3 callers wait". WEIR_EINVAL: NULL. A guard
 * on a server: errors of the server's, with its words in `out`. */
int weir_guard_describe(weir_message *out, weir_guard *guard);

/* Name, number, label. Numbers are ABI. */
#define WEIR_GUARD_EVENTS(X)                  \
    X(ENTERED, 1, "entered")                  \
    X(REFUSED, 2, "refused")                  \
    X(LEFT, 3, "left")                        \
    X(CANCELLED, 4, "cancelled")              \
    X(SUCCEEDED, 5, "succeeded")              \
    X(FAILED, 6, "failed")                    \
    X(IGNORED, 7, "ignored")                  \
    X(DRAINED, 8, "drained")                  \
    X(TRANSITION, 9, "transition")            \
    X(RESET, 10, "reset")                     \
    X(TOO_MANY_FAILED, 11, "too_many_failed") \
    X(TOO_MANY_SLOW, 12, "too_many_slow")     \
    X(CHANGED, 13, "changed")

typedef enum weir_guard_event_type {
#define WEIR_GUARD_EVENT_ENUM_(name, number, label) WEIR_EVENT_##name = (number),
    WEIR_GUARD_EVENTS(WEIR_GUARD_EVENT_ENUM_)
#undef WEIR_GUARD_EVENT_ENUM_
} weir_guard_event_type;

/* Lent to on_event for the time of the call. The thread that causes an event calls on_event, with no lock held, so events
 * of two threads may come in any order. Disabled and forced-open breakers report transitions and resets only. */
struct weir_guard_event {
    weir_guard_event_type type;
    weir_guard *guard;
    const char *name;
    weir_time at;
    int64_t permits;             /* entered, refused, left, drained: how many                 */
    int error;                   /* refused: why; failed, ignored: as given to leave          */
    int64_t duration_ns;         /* succeeded, failed, ignored                                */
    weir_time retry_at;          /* refused                                                   */
    weir_breaker_state from, to; /* transition                                                */
};

/* "entered" and the like; "?" for a number that is not in the table. Static storage. */
const char *weir_guard_event_name(weir_guard_event_type type);

/* ---- calls for one kind ---------------------------------------------------------------------- */

/* Rate: takes away the permits left in the present cycle (WEIR_SMOOTH: in the burst). Reservations stay. Answers how many
 * permits were taken away. WEIR_EINVAL: not a rate. */
int64_t weir_guard_drain(weir_guard *guard);

/* Breaker: sets its state. `until`: with WEIR_OPEN, when the wait is over; 0: after open_ns. `expected`: set it only if
 * the breaker is in that state; 0: in any. Setting the present state changes nothing and causes no event, except that
 * WEIR_OPEN with an `until` replaces the end of the wait.
 * WEIR_EALREADY: the breaker is in another state than `expected`, or this change is not allowed: WEIR_HALF_OPEN follows
 * only WEIR_OPEN, and neither of the two follows WEIR_METRICS_ONLY. `message` (may be NULL) names both states.
 * WEIR_EINVAL: not a breaker, or an unknown state; `message` says which. */
int weir_guard_set_state(weir_guard *guard, weir_breaker_state to, weir_time until,
                         weir_breaker_state expected, weir_message *message);

/* Breaker: closes it and empties its window. WEIR_EINVAL: not a breaker. */
int weir_guard_reset(weir_guard *guard);

/* "closed" and the like; "?" for a number that is not in the table. Static storage. */
const char *weir_breaker_state_name(weir_breaker_state state);

/* ---- trying again ---------------------------------------------------------------------------- */

typedef struct weir_retry_options { /* zero in any field asks for its default */
    size_t size;
    uint32_t attempts;  /* most calls, the first one included; default 3                        */
    int64_t first_ns;   /* pause before the second attempt; default 100 ms                      */
    double growth;      /* how many times longer each further pause is, 1 to 1000; default 2    */
    int64_t max_ns;     /* but not longer than this; default 30 s                               */
    double jitter;      /* 0 to 1: a pause is by chance up to that share shorter; default 0     */
    weir_guard *budget; /* of kind WEIR_GUARD_BUDGET: each attempt but the first takes one of its
                           tokens, each first attempt earns budget_percent / 100; default: none */
    /* Whether that error is worth another attempt; default: all but WEIR_ECANCELED, WEIR_EINVAL and WEIR_ECLOSED. */
    bool (*again)(int error, void *arg);
    void *again_arg;
} weir_retry_options;
#define WEIR_RETRY(...) WEIR_SIZED(weir_retry_options, __VA_ARGS__)

/* Calls fn(arg) until it answers 0 or more, the attempts or the budget are used up, or the next attempt would come after
 * the deadline. Returns the answer of the last call. *attempts (may be NULL) gets the number of calls.
 * WEIR_ECANCELED: the calling task was cancelled during a pause. WEIR_EINVAL, WEIR_EVERSION: bad options; fn was not
 * called. */
int weir_retry(uint32_t *attempts, int (*fn)(void *arg), void *arg, weir_time deadline,
               const weir_retry_options *opt) WEIR_PARKS;

/* The pause after a failed attempt, in nanoseconds; attempts count from 1. `luck` is a random number, for the jitter.
 * WEIR_EINVAL: attempt 0, or bad options. */
int64_t weir_backoff(uint32_t attempt, uint64_t luck, const weir_retry_options *opt);

/* ---- stores ---------------------------------------------------------------------------------- */

/* The store that NULL stands for. It is in the memory of this process, exists from the start, and is not to be freed. */
weir_store *weir_store_default(void);

/* Makes another store in the memory of this process, with its own set of names. WEIR_EINVAL: NULL. WEIR_ENOMEM. */
int weir_store_local(weir_store **out);

typedef struct weir_host_options { /* zero in any field asks for its default */
    size_t size;
    const char *directory; /* default: /dev/shm/weir-<effective user id>. Made with mode 0700 if it
                              is missing; must belong to the user and be closed to others       */
} weir_host_options;
#define WEIR_HOST(...) WEIR_SIZED(weir_host_options, __VA_ARGS__)

/* Opens a store that all processes of this user on this machine share; no server is needed. The permits of a process
 * come back when it ends, even if it is killed. The counts of rates, windows and breakers outlive processes, but not a
 * reboot. A guard has at most 1024 processes (further ones: WEIR_EAGAIN) and 4096 waiters (further callers are
 * refused). After fork(2) the child must open the store anew.
 * WEIR_EINVAL, WEIR_EVERSION: bad options, or other users can reach the directory. -errno of the file system. -ENOSYS in
 * the simulator, which has one process. `message` (may be NULL) says what is wrong. */
int weir_store_host(weir_store **out, const weir_host_options *opt, weir_message *message);

/* Frees the store; NULL is fine. Give back all references to its guards first. */
void weir_store_free(weir_store *store);

WEIR_END_DECLS

#endif
