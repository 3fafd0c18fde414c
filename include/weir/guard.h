/* Guards: how many, how often, whether at all.
 *
 * A guard answers "may this call go now, and if not, when". It stands around any code, in tasks and plain threads:
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
 * All guards have this one shape. A permit leaves exactly once. Waiters of one guard are served first come, first
 * served; tasks park, threads block. docs/guards.md says which guard is for which problem.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_GUARD_H
#define WEIR_GUARD_H

#include <stdbool.h>
#include <weir/error.h>
#include <weir/task.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_guard
    weir_guard; /* shared: one reference per weir_guard_new, given back by _unref */
typedef struct weir_store
    weir_store; /* owned: where guards keep their counts; see below               */

/* ---- settings -------------------------------------------------------------------------------- */

typedef enum weir_guard_kind {
    WEIR_GUARD_ANY = 0,     /* with weir_guard_new: whatever has that name already              */
    WEIR_GUARD_BULKHEAD,    /* at most `limit` calls at a time                                  */
    WEIR_GUARD_CONCURRENCY, /* the same; `limit` has no default, and by default enter waits     */
    WEIR_GUARD_FREQUENCY,   /* at most `limit` calls per window of `period_ns`                  */
    WEIR_GUARD_RATE,     /* at most `limit` calls per cycle of `period_ns`; callers reserve ahead */
    WEIR_GUARD_BREAKER,  /* no calls while too many of the latest ones failed or were slow   */
    WEIR_GUARD_MUTEX,    /* one holder at a time, with a fencing token                       */
    WEIR_GUARD_ADAPTIVE, /* at most as many at a time as latency shows to be good            */
    WEIR_GUARD_BUDGET,   /* retries: a share of first calls; see weir_retry                  */
} weir_guard_kind;

typedef enum weir_guard_mode { /* 0: the first one of its kind */
                               WEIR_WEIGHTED =
                                   1, /* frequency: this window, and the last one by its share         */
                               WEIR_FIXED, /* frequency: windows that begin at multiples of the period      */
                               WEIR_EXACT, /* frequency: any window of that length; `limit` times 8 bytes   */
                               WEIR_CYCLES, /* rate: `limit` per cycle, whenever in it                       */
                               WEIR_SMOOTH, /* rate: one every period_ns / limit, after a burst              */
                               WEIR_BY_COUNT, /* breaker: the latest `window` calls                            */
                               WEIR_BY_TIME, /* breaker: the latest `window` seconds                          */
                               WEIR_GRADIENT, /* adaptive: follows the trend of latency                        */
                               WEIR_AIMD, /* adaptive: +1 while calls are fast, x 0.9 when one is slow or fails */
} weir_guard_mode;

typedef enum weir_breaker_state {
    WEIR_CLOSED = 1,   /* calls pass and are counted                                              */
    WEIR_OPEN,         /* none pass until the wait is over                                        */
    WEIR_HALF_OPEN,    /* `probes` calls pass; their outcomes decide                              */
    WEIR_DISABLED,     /* all pass, nothing is counted                                            */
    WEIR_METRICS_ONLY, /* all pass and are counted; it never opens                              */
    WEIR_FORCED_OPEN,  /* none pass                                                             */
} weir_breaker_state;

/* What a breaker (and an adaptive guard) makes of a call that ended. */
typedef enum weir_call_result { WEIR_SUCCESS = 1, WEIR_FAILURE, WEIR_IGNORE } weir_call_result;

/* What a guard on a server does while the server cannot be reached. */
typedef enum weir_when_away {
    WEIR_AWAY_CLOSED = 1, /* none enter: WEIR_EAWAY                                              */
    WEIR_AWAY_OPEN,       /* all enter, uncounted                                                */
    WEIR_AWAY_SHARE, /* at most `share` at a time (rates, frequencies: per period) of this process */
} weir_when_away;

/* A permit whose lease could not be kept. A loan for the time of the call. */
typedef struct weir_lost {
    weir_guard *guard;
    uint64_t token;
    int64_t permits;
    weir_time until; /* when the lease ends, or ended: counted from before the request was sent */
    struct weir_task
        *task; /* the task that entered; NULL: a plain thread did                       */
    const char *why;
} weir_lost;

#define WEIR_NO_CALLS    INT64_MIN           /* in `limit`: none may enter                       */
#define WEIR_NO_WAIT     INT64_C(-1)         /* in `wait_ns`: look once                          */
#define WEIR_NO_WAITERS  INT64_C(-1)         /* in `waiters_max`: refuse instead of waiting      */
#define WEIR_GUARD_WAIT  ((weir_time)-2)     /* as a deadline: wait as long as `wait_ns` says    */
#define WEIR_PERMITS_MAX INT64_C(2147483647) /* the highest limit                             */

typedef struct weir_guard_event weir_guard_event;

typedef struct weir_guard_options { /* zero in any field asks for its default */
    size_t size;
    weir_guard_kind kind;
    weir_guard_mode mode;
    int64_t
        limit; /* bulkhead 50, rate 100, adaptive 20 to begin with, budget 10 tokens; concurrency and
                            frequency: to be given. 1 to WEIR_PERMITS_MAX (WEIR_EXACT: 1000000), WEIR_NO_CALLS  */
    int64_t
        period_ns; /* rate 500 ms, frequency 1 h                                                         */
    int64_t
        burst; /* WEIR_SMOOTH: calls that may come at once; default 1                                */
    int64_t
        initial_ns; /* WEIR_SMOOTH: the first call comes not before that; default 0                       */
    int64_t
        wait_ns; /* how long WEIR_GUARD_WAIT waits: default rate 5 s, concurrency for ever, others
                            WEIR_NO_WAIT                                                                       */
    int64_t
        waiters_max; /* most waiters at a time, beyond which callers are refused; default no limit         */

    /* breaker */
    double
        failure_percent; /* opens at this share of failures, above 0 up to 100; default 95                  */
    double
        slow_percent; /* or at this share of slow calls; default 100                                     */
    int64_t
        slow_ns; /* a call that takes longer is slow; default 60 s                                  */
    int64_t
        window; /* calls or seconds, 1 to 1000000 (by time: 86400); default 100                    */
    int64_t
        minimum; /* calls before a share means anything; default 100, by count at most `window`     */
    int64_t
        probes; /* calls that pass while half open; default 10                                     */
    int64_t
        open_ns; /* stays open for so long; at least 1 ms, default 60 s                             */
    double
        open_growth; /* each further opening in a row lasts so many times longer, 1 to 1000; default 1  */
    int64_t
        open_max_ns; /* but not longer than that; default one day                                       */
    double
        open_jitter; /* 0 to 1: by chance that share shorter or longer; default 0                       */
    int64_t
        half_open_ns; /* stays half open for so long, then becomes half_open_then; default open_ns,
                               WEIR_FOREVER: without end                                                       */
    weir_breaker_state
        half_open_then; /* WEIR_OPEN (default) or WEIR_CLOSED                                   */
    weir_breaker_state
        initial; /* default WEIR_CLOSED                                                  */
    bool
        auto_half_open; /* the state reads half open once the wait is over; else a call must come */
    weir_call_result
        other_errors; /* of errors that are not failures; default WEIR_IGNORE                 */

    /* adaptive */
    int64_t limit_min,
        limit_max; /* bounds of the limit; default 1 and 1000                                   */
    int64_t
        latency_ns; /* WEIR_AIMD: a call that takes longer is slow; default 1 s                  */

    double
        budget_percent; /* budget: so many retries per hundred first calls; default 20                      */

    /* guards on a server (weir/redis.h); of this handle's process only, but for the lease */
    int64_t
        lease_ns; /* a permit that is not renewed ends after this, 20 ms to a day; default 30 s   */
    int64_t
        margin_ns; /* so long before that its holder is asked to stop; default a tenth of the lease */
    weir_when_away
        when_away;  /* default WEIR_AWAY_CLOSED                                             */
    int64_t share;  /* WEIR_AWAY_SHARE: so many in this process; default 1                  */
    bool keep_task; /* do not cancel the task whose permit is lost                          */
    void (*on_lost)(const weir_lost *lost,
                    void *arg); /* from a thread of the store's               */
    void *lost_arg;

    /* Functions, of this handle's process only. They are called with no lock held. */
    const int
        *failures; /* breaker: only these errors are failures; default: all. Copied            */
    size_t
        failure_count; /* at most 32                                                               */
    const int
        *ignored; /* breaker: these never are; beats `failures`. Copied                       */
    size_t
        ignored_count; /* at most 32                                                               */
    weir_call_result (*judge)(int error, const void *result,
                              void *arg); /* breaker, adaptive: decides instead; 0: as usual */
    void *judge_arg;
    bool (*drain_on)(int error, const void *result,
                     void *arg); /* rate: drains when a call ends so   */
    void *drain_arg;
    int64_t (*open_for)(uint64_t attempt,
                        void *arg); /* breaker: how long the n-th opening in a row lasts, in
                                                         place of open_ns                              */
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

/* Makes the guard of that name in `store` (NULL: a store of this process that is always there), or finds it: the same
 * name and store give the same guard. The name is copied; it has 1 to WEIR_KEY_MAX bytes, of any value but zero.
 * `opt` NULL, or of kind WEIR_GUARD_ANY: finds only. Functions in `opt` count only where the guard is made, or where this
 * process opens it first.
 * WEIR_EEXIST: it is there with other settings. WEIR_EINVAL: a setting is out of range. WEIR_ENOGUARD: there is none to
 * be found. WEIR_EVERSION: an option this library does not know. WEIR_EFOREIGN: what the store holds under that name is no
 * guard, is damaged, or is of another version of weir. WEIR_ENOMEM; -errno of the file system. `message` (may be
 * NULL) says what is wrong. */
int weir_guard_new(weir_guard **out, weir_store *store, const char *name,
                   const weir_guard_options *opt, weir_message *message);

/* One more reference; answers `guard`. */
weir_guard *weir_guard_ref(weir_guard *guard);

/* Gives a reference back; NULL is fine. Leave all permits before the last one goes. Without references a guard is
 * forgotten as soon as that makes no difference: no permit is out, no window or debt is left, a breaker is closed and its
 * window has no failure and no slow call. */
void weir_guard_unref(weir_guard *guard);

/* Its name; good as long as the reference. */
const char *weir_guard_name(const weir_guard *guard);

/* Changes settings while calls are under way, for all who use the guard. Fields of `to` that are zero stay as they are;
 * kind, mode, window, functions, error lists and `initial` cannot change, nor can an exact window's limit be raised. Never blocks:
 * a lowered limit takes effect as calls leave, waiters that wait keep their deadlines. What was spent stays spent.
 * `expected` (may be NULL): only if the fields that are not zero there have these values now.
 * WEIR_EALREADY: they have not; nothing changed. WEIR_EINVAL: out of range, or not to be changed. */
int weir_guard_change(weir_guard *guard, const weir_guard_options *to,
                      const weir_guard_options *expected, weir_message *message);

/* ---- entering and leaving -------------------------------------------------------------------- */

/* What a caller that was let in holds. The caller gives it a place, empty at first (WEIR_PERMIT), and leaves it there: a
 * copy is not a permit, use weir_permit_move. Only retry_at, permits and token are for reading. */
typedef struct weir_permit {
    weir_guard *guard; /* NULL: empty                                                           */
    const void *place;
    int64_t permits; /* how many were taken                                                  */
    uint64_t
        token; /* mutex, and permits on a server: grows with each holder, so that a resource can refuse an earlier one */
    weir_time since;
    weir_time retry_at; /* after a refusal: not before that, WEIR_FOREVER: not known             */
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

/* Enters: waits for its turn until the deadline; WEIR_NOW_OR_NEVER looks once, WEIR_GUARD_WAIT waits as long as the
 * guard's wait_ns says. A call that could not enter before the deadline anyway is refused at once, if that is known.
 * 0: entered; the caller leaves later.
 * WEIR_EFULL: no permit (bulkhead, concurrency, adaptive, budget), or too many wait. WEIR_ELOCKED: the mutex is held.
 * WEIR_ETOOFAST: rate, frequency. WEIR_EBROKEN: the breaker is open. WEIR_ECANCELED: the waiting task was cancelled;
 * what it had reserved goes back. WEIR_EINVAL: NULL, or the permit is not empty. */
int weir_guard_enter(weir_permit *out, weir_guard *guard, weir_time deadline) WEIR_PARKS;

/* The same for several permits at once, 1 to WEIR_PERMITS_MAX; breakers, mutexes and budgets: 1. WEIR_EINVAL: out of range, or
 * more than the limit can ever be (bulkhead, concurrency, frequency, a rate's burst). */
int weir_guard_enter_n(weir_permit *out, weir_guard *guard, int64_t permits,
                       weir_time deadline) WEIR_PARKS;

/* Reserves without waiting: answers after how many nanoseconds the caller may go on (0: now), at most patience_ns, and
 * the permits are taken. Negative: refused, or errors as weir_guard_enter_n. Only a rate says more than 0. */
int64_t weir_guard_reserve(weir_permit *out, weir_guard *guard, int64_t permits,
                           int64_t patience_ns);

/* Leaves. A rate's or frequency's permit may simply be forgotten instead. `error` is how the call ended, 0 or negative; breakers and adaptive guards learn from it. Empties the permit.
 * WEIR_EALREADY: the permit is empty; it was left before, or never given. WEIR_EINVAL: NULL, or not a permit. */
int weir_guard_leave(weir_permit *permit, int error);

/* The same, with a result for `judge` and `drain_on` to look at. */
int weir_guard_leave_with(weir_permit *permit, int error, const void *result);

/* Gives the permit back as if the call had never been made: nothing is counted, a reservation ahead, a place in a
 * window or a breaker's permission is free again, as far as their time has not passed. Errors as weir_guard_leave. */
int weir_guard_release(weir_permit *permit);

/* Moves a permit to another place, which must be empty. */
int weir_permit_move(weir_permit *to, weir_permit *from);

/* A permit that is released at the end of the block, if it still holds something then. */
#define WEIR_SCOPED_PERMIT(name) \
    weir_permit name __attribute__((cleanup(weir_permit_end))) = WEIR_PERMIT
void weir_permit_end(weir_permit *permit);

/* ---- several as one step --------------------------------------------------------------------- */

/* Enters all of `count` guards (at most WEIR_TOGETHER_MAX) or none, in one step: no other caller sees some of them
 * taken. permits[i] is that of guards[i]; the order does not matter. Refused: the error is that of the first guard that
 * refuses, in the order breaker, rate, frequency, bulkhead and its like, mutex, budget; retry_at of every permit is the
 * moment from which on all could admit it, as far as is known, and nothing is taken or counted but the refusal. A rate does not reserve ahead
 * here. While it waits the caller holds nothing, and stands in the line of the guard that refused last.
 * Errors as weir_guard_enter. WEIR_EINVAL: also the same guard twice. */
enum { WEIR_TOGETHER_MAX = 16 };
int weir_guards_enter(weir_permit *permits, weir_guard *const *guards, size_t count,
                      weir_time deadline) WEIR_PARKS;

/* Leaves all that are not empty, last guard first. */
void weir_guards_leave(weir_permit *permits, size_t count, int error);

/* ---- groups ---------------------------------------------------------------------------------- */

/* What becomes of a task that is submitted while the group's breaker is open. */
enum {
    WEIR_HOLD_WHEN_OPEN = 0,   /* it waits in the queue                                          */
    WEIR_REJECT_WHEN_OPEN = 1, /* it is rejected: WEIR_REASON_BREAKER_OPEN                       */
};

struct weir_gate;

/* Puts the guard before the group's tasks: they start only as it allows, and wait in the queue meanwhile, without a stack or
 * a thread. Outcomes are recorded by themselves: the task's error counts as the call's, a cancelled task is ignored. `judge`,
 * drain_on, open_for and on_event are called for tasks, too: in order, with no lock held, on a thread of weir's own, so soon
 * after; with NULL as result. While a breaker's judge has not decided about a task of the group, no other one of it
 * starts. They may remove the gate, but not free the executor. A guard may stand before several groups, and be used by others
 * besides; callers that wait in its line go first, groups share what is left by their turns. weir_task_why names the guard, its figures
 * and those who hold it.
 * `out` (may be NULL) gets what weir_gate_remove of weir/sys/gate.h takes away again; else it stays as long as the
 * group, which keeps a reference to the guard.
 * WEIR_EINVAL: NULL, unknown flags, or a budget. Others as weir_group_gate_add. */
int weir_group_guard_add(struct weir_gate **out, weir_group *group, weir_guard *guard, int flags);

/* ---- seeing ---------------------------------------------------------------------------------- */

typedef struct weir_guard_stats { /* a snapshot, of one moment */
    size_t size;
    weir_guard_kind kind;
    weir_guard_mode mode;
    int64_t limit;      /* now; an adaptive guard's moves                                   */
    int64_t used;       /* permits held, in the whole scope                                 */
    int64_t available;  /* permits that could be had now; a rate's debt is negative         */
    int64_t waiting;    /* callers that wait                                                */
    weir_time retry_at; /* from when on one more call could enter: now, or as in a permit   */
    int64_t cycle;      /* rate: number of the present one                                  */
    /* calls through this process's handle, since it was opened. A breaker counts a call as entered when it ends; rates
     * and frequencies do not count those that leave */
    uint64_t entered, refused, left, released, cancelled;
    uint64_t succeeded, failed, ignored, slow; /* of those that left: breaker, adaptive         */
    /* breaker: the present window */
    weir_breaker_state state;
    uint64_t epoch;         /* grows with each state                                          */
    uint64_t attempt;       /* openings in a row                                              */
    uint64_t not_permitted; /* refused in this state                                          */
    int64_t stored, stored_failed, stored_slow, stored_slow_failed;
    int64_t stored_ns;      /* sum of their durations                                         */
    double failure_percent; /* -1: too few calls                                              */
    double slow_percent;
    int64_t probes_out; /* half open: calls that passed and have not ended                */
    /* guards on a server */
    bool away;          /* it cannot be reached; limit, used, waiting are as last seen      */
    int64_t away_ns;    /* for how long                                                     */
    uint64_t uncounted; /* calls that entered while it was away                             */
    uint64_t lost;      /* permits whose lease ended, or that were taken away               */
    uint64_t version;   /* of the settings; grows with each change                          */
} weir_guard_stats;

/* Fills `out`, whose size the caller set. Reserves and counts nothing. WEIR_EINVAL: NULL, or no size. */
int weir_guard_stats_get(weir_guard_stats *out, weir_guard *guard);

/* The guard in one sentence: "bulkhead db: 10 of 10 permits in use, 3 callers wait". WEIR_EINVAL: NULL. */
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

/* A loan for the time of the call, which comes from the thread that caused it, with no lock held; so events of two
 * threads may come in any order. Disabled and forced-open breakers tell of transitions and resets only. */
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

/* Rate: takes away what is left of the present cycle (smooth: of the burst). Debts stay. Answers how many permits that
 * were. WEIR_EINVAL: not a rate. */
int64_t weir_guard_drain(weir_guard *guard);

/* Breaker: sets its state. `until`: for WEIR_OPEN, when the wait is over; 0: after open_ns. `expected`: only from
 * that state; 0: from any. Setting the state it has changes nothing and tells of nothing, except that WEIR_OPEN with an `until`
 * replaces the wait.
 * WEIR_EALREADY: it is not in the expected state, or there is no way from there: half open comes only after open, and from
 * WEIR_METRICS_ONLY to neither of the two. WEIR_EINVAL: not a breaker, or not a state. `message` (may be NULL) names both. */
int weir_guard_set_state(weir_guard *guard, weir_breaker_state to, weir_time until,
                         weir_breaker_state expected, weir_message *message);

/* Breaker: closed, with an empty window. WEIR_EINVAL: not a breaker. */
int weir_guard_reset(weir_guard *guard);

/* "closed" and the like; "?" for a number that is not in the table. Static storage. */
const char *weir_breaker_state_name(weir_breaker_state state);

/* ---- trying again ---------------------------------------------------------------------------- */

typedef struct weir_retry_options { /* zero in any field asks for its default */
    size_t size;
    uint32_t attempts; /* in all, at least 1; default 3                                        */
    int64_t first_ns;  /* pause before the second; default 100 ms                              */
    double growth;     /* each pause so many times the one before, 1 to 1000; default 2        */
    int64_t max_ns;    /* but not longer than that; default 30 s                               */
    double jitter;     /* 0 to 1: by chance that share shorter; default 0: none                */
    weir_guard
        *budget; /* of kind WEIR_GUARD_BUDGET; each attempt but the first takes one of its tokens,
                           each first one earns budget_percent / 100; default: none             */
    bool (*again)(int error,
                  void *arg); /* whether that error is worth another attempt; default: all
                                            but WEIR_ECANCELED, WEIR_EINVAL and WEIR_ECLOSED    */
    void *again_arg;
} weir_retry_options;
#define WEIR_RETRY(...) WEIR_SIZED(weir_retry_options, __VA_ARGS__)

/* Calls fn(arg) until it answers 0 or more, the attempts or the budget are used up, or the next attempt would come after
 * the deadline. Answers what the last call answered. `attempts` (may be NULL): how many calls were made.
 * WEIR_EINVAL, WEIR_EVERSION: bad options; no call was made. If the caller is cancelled in a pause: WEIR_ECANCELED. */
int weir_retry(uint32_t *attempts, int (*fn)(void *arg), void *arg, weir_time deadline,
               const weir_retry_options *opt) WEIR_PARKS;

/* The pause after the n-th failed attempt, n from 1, in nanoseconds; `luck` is any number by chance.
 * WEIR_EINVAL: n is 0, or bad options. */
int64_t weir_backoff(uint32_t attempt, uint64_t luck, const weir_retry_options *opt);

/* ---- stores ---------------------------------------------------------------------------------- */

/* The store that NULL stands for: of this process, and always there. Not to be freed. */
weir_store *weir_store_default(void);

/* Another store of this process: names of their own. WEIR_EINVAL: NULL. WEIR_ENOMEM. */
int weir_store_local(weir_store **out);

typedef struct weir_host_options { /* zero in any field asks for its default */
    size_t size;
    const char *
        directory; /* default: /dev/shm/weir-<effective user id>. Made with mode 0700 if it is missing; must belong to
                              the user and be closed to others                                  */
} weir_host_options;
#define WEIR_HOST(...) WEIR_SIZED(weir_host_options, __VA_ARGS__)

/* A store that all processes of this user on this machine share, without any server. A process that ends, in whatever
 * way, gives its permits back. What rates, windows and breakers have counted outlives processes until it is whole again,
 * but no reboot. At most 1024 processes (WEIR_EAGAIN beyond) and
 * 4096 waiters (beyond, callers are refused) per guard. After fork(2) the child opens a store of its own.
 * WEIR_EINVAL, WEIR_EVERSION: bad options, or the directory is not private. -errno of the file system; `message` (may be NULL) says what
 * is wrong; -ENOSYS in the simulator, which has one process. */
int weir_store_host(weir_store **out, const weir_host_options *opt, weir_message *message);

/* Frees the store; NULL is fine. All its guards are to be given back before. */
void weir_store_free(weir_store *store);

WEIR_END_DECLS

#endif
