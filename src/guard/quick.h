/* Quick books: the usual calls of rates and closed breakers in process memory, without the cell's lock.
 *
 * A quick book is a cache line or a few beside the cell, with a lock of its own, in which usual calls are noted: so many permits
 * of this cycle were taken, these calls went well. A thread that locks the guard (wr_guard_lock) locks its books too and carries
 * over what they say, so that under the lock the cell has it all; unlocking opens them again if the next calls are expected
 * to be usual ones. A call that is not usual is refused here, changes nothing, and goes the long way.
 *
 * A breaker on which threads get in each other's way has several books: each thread uses its own. A rate has one, since a
 * permit that one thread does not take is for any other thread.
 *
 * Lock order: the cell, its books one after the other.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_QUICK_H
#define WR_GUARD_QUICK_H

#include "base/assert.h"
#include "base/os.h"
#include "base/spin.h"
#include "guard/guard.h"

enum { WR_QUICK_ROOM = 240, WR_QUICK_SPREAD = 8 };

/* In a breaker's token: `since` is in ticks of the counter; or as of the last pulse (wr_os_pulse), where that is good enough. */
#define WR_SINCE_TICKS (UINT64_C(1) << 63)
#define WR_SINCE_PULSE (UINT64_C(1) << 62)

/* Which calls of a breaker are usual. */
struct wr_quick_terms {
    uint64_t rate, slow,
        until;       /* the last two in ticks; calls that take longer are not usual         */
    int64_t slow_ns; /* the same two, for calls that are timed in nanoseconds               */
    weir_time until_ns;
};

/* Under its lock, which the thread that has locked the guard holds, too:
 *     pass == 0                  the book is closed, and says nothing
 *     breaker:  pass == epoch of the calls that belong here, which went well: ns[0 .. count); | WR_SINCE_PULSE if that will do
 *     rate:     available permits are left until `until`, of that cycle and era; so many calls have entered */
struct wr_quick {
    struct wr_spin lock;
    uint64_t pass;
    union {
        struct {
            struct wr_quick_terms terms;
            _Atomic uint64_t count; /* written with the lock */
            uint32_t ns[WR_QUICK_ROOM];
        } breaker;
        struct {
            weir_time until;
            int64_t available, cycle;
            uint32_t era;
            uint64_t entered;
        } rate;
    } as;
};

/* Gives the guard a book, if its kind and functions allow that. Without memory it has none. */
void wr_quick_init(struct weir_guard *guard);
void wr_quick_free(struct weir_guard *guard);

/* Another thread has the book: backs off for a microsecond or so. False: go the long way. */
bool wr_quick_contended(struct weir_guard *guard, struct wr_quick *quick);

/* This thread's number among those that use several books; 0: it has none yet. */
extern _Thread_local unsigned wr_quick_thread __attribute__((tls_model("initial-exec")));

static inline struct wr_quick *wr_quick_mine(struct weir_guard *guard)
{
    struct wr_quick *spread = wr_load(&guard->spread, acquire);

    return WR_UNLIKELY(spread != NULL) ? &spread[wr_quick_thread % WR_QUICK_SPREAD] : guard->quick;
}

static inline bool wr_quick_try(struct wr_quick *quick)
{
    return wr_swap(&quick->lock.owner, 1, acquire) == 0;
}

static inline bool wr_quick_lock(struct weir_guard *guard, struct wr_quick *quick)
{
    return wr_quick_try(quick) || wr_quick_contended(guard, quick);
}

/* ---- rates --------------------------------------------------------------------------------------- */

static inline bool wr_quick_rate(weir_permit *permit, struct weir_guard *guard)
{
    struct wr_quick *quick = guard->quick;
    weir_time now = wr_os_now();
    bool usual;

    if (!wr_quick_lock(guard, quick))
        return false;
    usual = quick->pass && now < quick->as.rate.until && quick->as.rate.available > 0;
    if (usual) {
        permit->token = (uint64_t)quick->as.rate.available--;
        permit->since = quick->as.rate.cycle;
        permit->retry_at = quick->as.rate.era;
        quick->as.rate.entered++;
    }
    wr_spin_unlock(&quick->lock);
    if (usual)
        wr_permit_fill(permit, guard, 1);
    return usual;
}

/* ---- breakers ------------------------------------------------------------------------------------ */

/* `pass` is guard->pass, and not 0. */
static inline void wr_quick_pass(weir_permit *permit, struct weir_guard *guard, uint64_t pass)
{
    weir_time pulse = wr_os_pulse();

    wr_permit_fill(permit, guard, 1);
    if (WR_LIKELY(pass & WR_SINCE_PULSE && pulse)) {
        permit->token = pass;
        permit->since = pulse;
    } else {
        permit->token = (pass & ~WR_SINCE_PULSE) | WR_SINCE_TICKS;
        permit->since = (weir_time)wr_os_ticks();
    }
}

/* With the book's lock, which it gives back: notes a call, if it is a usual one. */
static inline bool wr_quick_note(struct wr_quick *quick, bool usual, uint64_t ns)
{
    uint64_t at = wr_load(&quick->as.breaker.count, relaxed);

    usual = usual && at < WR_QUICK_ROOM;
    if (WR_LIKELY(usual)) {
        quick->as.breaker.ns[at] = (uint32_t)ns;
        wr_store(&quick->as.breaker.count, at + 1, relaxed);
    }
    wr_spin_unlock(&quick->lock);
    return usual;
}

/* A call that went well ends, with the token of its permit. False: the call goes the long way. */
static inline bool wr_quick_end_ticks(const weir_permit *permit, struct wr_quick *quick,
                                      uint64_t token)
{
    const struct wr_quick_terms *terms = &quick->as.breaker.terms;
    uint64_t now = wr_os_ticks(), ticks = now - (uint64_t)permit->since;

    return wr_quick_try(quick) &&
           wr_quick_note(quick,
                         ((quick->pass & ~WR_SINCE_PULSE) | WR_SINCE_TICKS) == token &&
                             ticks <= terms->slow && now < terms->until,
                         (ticks * terms->rate) >> 32);
}

/* The same if it began and ended between two pulses. */
static inline bool wr_quick_end_pulse(const weir_permit *permit, struct wr_quick *quick,
                                      uint64_t token)
{
    weir_time pulse = wr_os_pulse();

    return WR_LIKELY(pulse == permit->since) && WR_LIKELY(wr_quick_try(quick)) &&
           wr_quick_note(quick, quick->pass == token && pulse < quick->as.breaker.terms.until_ns,
                         0);
}

/* Whether a breaker's book is full: only locking the guard helps. A guess: the book is not locked. */
static inline bool wr_quick_is_full(struct wr_quick *quick)
{
    return wr_load(&quick->as.breaker.count, relaxed) == WR_QUICK_ROOM;
}

/* Carries over a book that is full. */
void wr_quick_empty(struct weir_guard *guard);

/* Notes a call that went well. `token` has no bits of a clock; `ns` is how long the call took. False: the call goes the long
 * way. */
bool wr_quick_ended(struct weir_guard *guard, uint64_t token, int64_t ns, weir_time now);

/* Makes a permit one of the long way: `since` is in nanoseconds, and `token` has no bits of a clock. */
void wr_permit_settle(weir_permit *permit);

#endif
