/* Guards, inside the room: a kind of arithmetic on a cell of a store. See docs/internals/guards.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_GUARD_H
#define WR_GUARD_GUARD_H

#include "base/atomic.h"
#include "base/list.h"
#include "base/map.h"
#include "guard/adaptive.h"
#include "guard/backoff.h"
#include "guard/breaker.h"
#include "guard/frequency.h"
#include "guard/rate.h"
#include "guard/settings.h"

#include <weir/sys/store.h>

/* The state in a cell. `made` are the settings it was made with: a caller may open it with these, or with the present ones. */
struct wr_state {
    struct wr_settings made, set;
    uint64_t token; /* mutex: of the latest holder                                              */
    union {
        struct wr_rate rate;
        struct wr_adaptive adaptive;
        struct wr_budget budget;
    } as;
};

/* States whose length depends on settings stand in place of `as`. */
static inline struct wr_frequency *wr_state_frequency(const struct wr_state *state)
{
    return (struct wr_frequency *)&state->as;
}

static inline struct wr_breaker *wr_state_breaker(const struct wr_state *state)
{
    return (struct wr_breaker *)&state->as;
}

/* Events that are told after the lock was given back. */
struct wr_news {
    struct wr_breaker_news breaker;
    uint64_t attempt, epoch; /* of an opening                                                   */
    int64_t drained;
};

/* One call that enters, or leaves. */
struct wr_call {
    struct weir_guard *guard;
    weir_permit *permit;
    int64_t n;
    weir_time now;
    int64_t patience; /* rate: how far ahead it may reserve                                  */
    int64_t wait;     /* rate: how long it has to wait                                       */
    bool failed, counted, slow; /* when it ends; not counted: ignored                            */
    int64_t ns;
    struct wr_news news;
};

/* All functions under the cell's lock. */
struct wr_kind {
    const char *name;
    int rank;   /* order among several                                                          */
    int error;  /* of a refusal                                                                 */
    bool fast;  /* permits may be taken by the word alone                                       */
    bool holds; /* takes permits of the cell, which are given back                              */
    bool timed; /* looks at how long calls take                                                 */
    size_t (*size)(const struct wr_settings *set);
    void (*init)(struct wr_state *state, weir_time now);
    /* From when on the call could enter: <= now if now, WEIR_FOREVER if that is not known. Does not look at the line. */
    weir_time (*when)(const struct wr_state *state, const struct wr_call *call);
    void (*take)(struct wr_state *state,
                 struct wr_call *call); /* if `when` said now (rate: in time)   */
    void (*end)(struct wr_state *state,
                struct wr_call *call); /* NULL: nothing to do              */
    void (*undo)(struct wr_state *state,
                 struct wr_call *call); /* NULL: nothing to do             */
    void (*change)(struct wr_state *state, const struct wr_settings *to, weir_time now);
    bool (*is_whole)(const struct wr_state *state, weir_time now);
    bool (*is_sound)(const struct wr_state *state, size_t size);
    void (*stats)(weir_guard_stats *out, struct wr_state *state, weir_time now);
};

const struct wr_kind *wr_kind_of(weir_guard_kind kind);
extern const struct wr_kind wr_kind_bulkhead, wr_kind_concurrency, wr_kind_mutex, wr_kind_adaptive,
    wr_kind_rate, wr_kind_frequency, wr_kind_breaker, wr_kind_budget;

/* Counts of calls. Written under the cell's lock, except `entered` of fast permits, which are in the word. */
struct wr_counts {
    _Atomic uint64_t entered, refused, left, released, cancelled, succeeded, failed, ignored, slow;
};

/* A guard. References, and whether it is known by name: under the registry's lock. All else is fixed while it is open. */
struct weir_guard {
    _Atomic uint64_t *fast; /* the word, if calls may enter by it alone; else NULL                */
    _Atomic int32_t limit;  /* for `fast`                                                        */
    _Atomic uint64_t pass; /* breaker: the token of a usual call, 0: go the long way              */
    /* Rate, breaker: a book of usual calls, see quick.h; else NULL */
    struct wr_quick *quick;
    _Atomic(struct wr_quick *) spread; /* breaker: several books                                  */
    _Atomic uint64_t *hint; /* breaker: epoch << 3 | state                              */
    const struct wr_kind *kind;
    weir_direct direct; /* permits in shared memory: parts of the cell used directly; else zero  */
    /* How often threads were in each other's way */
    _Atomic uint32_t crowd;
    /* Breaker: it has wanted the pulse (wr_os_pulse_join) */
    _Atomic bool pulses;
    struct { /* breaker, under the lock: calls that came out of its books since then  */
        uint64_t calls;
        weir_time since;
        bool fast; /* as of the last count                                                       */
    } pace;
    const weir_store_ops *ops;
    weir_cell *cell;
    struct wr_remote *remote; /* of a store on a server, whose calls are in remote.h; else NULL   */
    void (*on_event)(const weir_guard_event *event, void *arg);
    void *event_arg;
    weir_call_result (*judge)(int error, const void *result, void *arg);
    void *judge_arg;
    bool (*drain_on)(int error, const void *result, void *arg);
    void *drain_arg;
    int64_t (*open_for)(uint64_t attempt, void *arg);
    void *open_arg;
    weir_call_result other_errors;
    int failure_count, ignored_count;
    int failures[32], ignored[32];
    _Atomic int64_t sleeping; /* rate: callers that wait for what they have reserved              */
    /* Callers that wait, and permits of callers that waited: the guard stays for them */
    _Atomic int64_t pins;
    struct wr_counts counts;

    struct wr_group_guard *groups; /* the first one it stands before; under a lock of group.c     */
    weir_store *store;
    /* Under the registry's lock, but for looks at refs */
    _Atomic uint32_t refs;
    struct wr_map_node in_registry;
    char name[]; /* of wr_key_room bytes                                                          */
};
WR_KEY_LIES_BEHIND(struct weir_guard, in_registry, name);

/* ---- cells ----------------------------------------------------------------------------------- */

void wr_quick_fold(struct weir_guard *guard);
void wr_quick_arm(struct weir_guard *guard);

static inline int wr_guard_lock(struct weir_guard *guard)
{
    int rc = guard->ops->lock(guard->cell);

    if (guard->quick && !rc)
        wr_quick_fold(guard);
    return rc;
}

/* Publishes what other threads may read without the lock, and gives the lock back. False: nothing since wr_guard_lock counts,
 * and the step is to be done again if it decided anything (weir_store_ops.unlock). */
bool wr_guard_unlock(struct weir_guard *guard);

/* The same, and counts the call if the step counts. */
bool wr_guard_unlock_counted(struct weir_guard *guard, _Atomic uint64_t *count);

static inline const struct wr_state *wr_guard_read(struct weir_guard *guard)
{
    return guard->ops->read(guard->cell);
}

static inline struct wr_state *wr_guard_write(struct weir_guard *guard)
{
    return guard->ops->write(guard->cell);
}

/* Under the lock: takes what `when` of its kind said can be had, and fills the permit. */
void wr_guard_take(struct wr_call *call);

/* Under the lock: changes a breaker's state if its time has come. */
void wr_guard_refresh(struct wr_call *call);

/* Counts and events of calls that entered, were refused, ended. */
void wr_guard_count(_Atomic uint64_t *count);
void wr_guard_tell(struct weir_guard *guard, const weir_guard_event *event);
void wr_guard_tell_news(struct weir_guard *guard, const struct wr_news *news, weir_time now);

/* What a call that ended with this error counts as, without asking the user. */
weir_call_result wr_guard_verdict(const struct weir_guard *guard, int error);

/* The same, but asks the user's `judge` first. */
weir_call_result wr_guard_judge(struct weir_guard *guard, int error, const void *result);

/* The call is over. WEIR_ECLOSED. `silent`: no event is to tell of it. */
int wr_guard_end(struct wr_call *call, weir_call_result verdict, bool *silent);

/* After wr_guard_end, without the lock: tells the event. */
void wr_guard_tell_end(struct wr_call *call, weir_call_result verdict, int error, bool silent);

/* Gives back what the call took, as if it had not been made, and adds one to `count`. WEIR_ECLOSED. */
int wr_guard_undo(struct wr_call *call, _Atomic uint64_t *count);

/* Writes the holders of its permits: "group \"a\" (2), callers (1)"; empty if they are not known. */
void wr_guard_holders(char *text, size_t size, struct weir_guard *guard);

/* Writes how many of the `used` permits each group holds that the guard stands before, and other callers: group.c. */
void wr_group_holders(char *text, size_t size, struct weir_guard *guard, int64_t used);

/* Has groups that a rate stands before ask it again: it keeps no line of those that wait. */
void wr_groups_ask_again(struct weir_guard *guard);

/* Calls that entered, as far as they are not counted by the guard's word: among them tasks that followed on another task's permit. */
uint64_t wr_groups_entered(struct weir_guard *guard);

/* Checks that are the same for all calls that enter. */
int wr_permit_check(const weir_permit *permit, const struct weir_guard *guard, int64_t n);

/* When a call with this deadline gives up: WEIR_GUARD_WAIT stands for the guard's wait_ns. Under the lock. */
weir_time wr_guard_deadline(struct weir_guard *guard, weir_time deadline, weir_time now);

/* A caller begins to wait, and keeps the guard from then on: its reference may be given back meanwhile. */
static inline void wr_guard_pin(struct weir_guard *guard)
{
    wr_add(&guard->pins, 1, relaxed);
}

/* The caller, or its permit, is done with all that concerns the guard, which may be gone after that. */
static inline void wr_guard_unpin(struct weir_guard *guard)
{
    wr_sub(&guard->pins, 1, release); /* pairs with registry.c, can_go */
}

/* Whether a permit that is held keeps the guard. */
static inline bool wr_permit_pins(const weir_permit *permit)
{
    return permit->place != permit;
}

/* A caller that waited returns. If it has entered, its permit keeps the guard from then on, until the permit is left. Permits
 * that need not be left (rates, windows) do so only if there is no reference: else calls that were over long ago would keep
 * the guard. */
static inline void wr_guard_waited(struct weir_guard *guard, weir_permit *permit, bool entered)
{
    bool must_leave = guard->kind->holds || guard->kind->timed;

    if (entered && !wr_permit_pins(permit) && (must_leave || !wr_load(&guard->refs, relaxed)))
        permit->place = (const char *)permit + 1;
    else
        wr_guard_unpin(guard);
}

/* The stamp of a place in a line: when its owner came. */
uint64_t wr_guard_stamp(void);

/* Fills the permit. */
static inline void wr_permit_fill(weir_permit *permit, struct weir_guard *guard, int64_t n)
{
    permit->guard = guard;
    permit->place = permit;
    permit->permits = n;
}

/* The same for fast permits, except `guard`, which is set once the permit is held. The permit remembers the word, so that
 * leaving need not read the guard first to find it. */
static inline void wr_permit_prepare(weir_permit *permit, _Atomic uint64_t *fast, int64_t n)
{
    permit->since = (weir_time)(uintptr_t)fast;
    permit->place = permit;
    permit->permits = n;
}

/* ---- fast permits ---------------------------------------------------------------------------- */

/* The top bit of the word's count of calls: once it is set, the next call folds it into `entered`. */
#define WR_WORD_MANY (UINT64_C(1) << 62)

/* `fast` is guard->fast, which the caller has read once. The permit is empty, and filled before the word is looked at: a locked
 * instruction waits for all stores before it, and stores between enter's and leave's make the whole call slower by an
 * eighth. */
static inline bool wr_fast_enter(weir_permit *permit, struct weir_guard *guard,
                                 _Atomic uint64_t *fast, int64_t n)
{
    uint64_t word;

    wr_permit_prepare(permit, fast, n);
    word = wr_load(fast, relaxed);
    /* Slow also if the count of calls is about to overflow. */
    while (word < WR_WORD_MANY && (int32_t)word <= wr_load(&guard->limit, relaxed) - (int32_t)n)
        if (wr_cas(fast, &word, word + WEIR_WORD_ENTERED + (uint64_t)n, acquire)) {
            permit->guard = guard;
            return true;
        }
    return false;
}

/* Whether a permit is free. False: none is, or the word alone cannot tell. */
static inline bool wr_fast_has_some(struct weir_guard *guard)
{
    uint64_t word = wr_load(guard->fast, acquire);

    return !(word & WEIR_WORD_SLOW) &&
           (int64_t)(word & WEIR_WORD_USED) < wr_load(&guard->limit, relaxed);
}

/* Takes as many of `count` permits as are free. 0: none is, or the word alone cannot tell. */
static inline int64_t wr_fast_enter_some(struct weir_guard *guard, int64_t count)
{
    uint64_t word = wr_load(guard->fast, relaxed);
    int64_t n;

    do {
        n = wr_load(&guard->limit, relaxed) - (int64_t)(word & WEIR_WORD_USED);
        n = n < count ? n : count;
        if (n <= 0 || word >= WR_WORD_MANY)
            return 0;
    } while (!wr_cas(guard->fast, &word, word + (uint64_t)n * (WEIR_WORD_ENTERED + 1), acquire));
    return n;
}

/* The word was SLOW: a caller may wait, or have read how many permits are used. Tells the first in line; answers 0. */
int wr_guard_tell_first(struct weir_guard *guard);

/* Under the lock, after permits were taken or a place was left: has the first in line look whether there are more. */
void wr_guard_tell_next(struct weir_guard *guard, weir_time now);

/* Under the lock: keeps the count of calls in the word small. */
void wr_fast_fold(struct weir_guard *guard);

#endif
