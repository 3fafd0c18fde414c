/* Permits in shared memory, without calls through the store. Here is the usual case: no caller waits, and a permit is free. All
 * other cases are left to functions that are called last, so that the usual way saves no registers.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_FAST_H
#define WR_GUARD_FAST_H

#include "base/os.h"
#include "guard/guard.h"

/* What became of a step. Displaced: another process has taken the lock over; the step was a usual one (WR_DISPLACED_USUAL), or
 * changed nothing (WR_DISPLACED). */
enum wr_step { WR_DISPLACED_USUAL, WR_DISPLACED, WR_UNUSUAL, WR_USUAL };

/* One attempt. */
static inline bool wr_direct_lock(const weir_direct *direct)
{
    uint64_t free = 0;

    return WR_LIKELY(wr_load(&wr_os_fork_count, relaxed) == direct->forks) &&
           WR_LIKELY(wr_cas((_Atomic uint64_t *)direct->lock, &free, direct->owner, acquire));
}

/* Backs off a little longer on each failed attempt, for a microsecond or so. False: take the lock through the store, which also
 * finds out whether its owner lives. */
bool wr_direct_contended(const weir_direct *direct);

static inline enum wr_step wr_direct_unlock(const weir_direct *direct, bool usual)
{
    uint64_t owner = direct->owner;

    if (WR_LIKELY(wr_cas((_Atomic uint64_t *)direct->lock, &owner, 0, release)))
        return usual ? WR_USUAL : WR_UNUSUAL;
    return usual ? WR_DISPLACED_USUAL : WR_DISPLACED;
}

/* Under the lock: `held` is what counts, `used` is derived from it. */
static inline void wr_host_add(const weir_direct *d, int64_t n)
{
    _Atomic int64_t *held = (_Atomic int64_t *)d->held, *used = (_Atomic int64_t *)d->used;

    wr_store(held, wr_load(held, relaxed) + n, relaxed);
    wr_store(used, wr_load(used, relaxed) + n, relaxed);
}

static inline bool wr_host_line_is_empty(const weir_direct *d)
{
    return wr_load((const _Atomic uint64_t *)d->head, relaxed) ==
           wr_load((const _Atomic uint64_t *)d->tail, relaxed);
}

/* With the lock, which it gives back. */
static inline enum wr_step wr_host_enter(struct weir_guard *guard)
{
    const weir_direct *d = &guard->direct;
    const struct wr_state *state = d->copies;
    bool usual;

    if (wr_load((const _Atomic uint64_t *)d->active, relaxed))
        state = (const struct wr_state *)((const char *)d->copies + d->stride);
    usual =
        wr_host_line_is_empty(d) && wr_load((_Atomic int64_t *)d->used, relaxed) < state->set.limit;
    if (WR_LIKELY(usual)) {
        wr_host_add(d, 1);
        wr_bump(&guard->counts.entered);
    }
    return wr_direct_unlock(d, usual);
}

static inline enum wr_step wr_host_leave(struct weir_guard *guard, int64_t n)
{
    const weir_direct *d = &guard->direct;
    bool usual = wr_host_line_is_empty(d);

    if (WR_LIKELY(usual)) {
        wr_host_add(d, -n);
        wr_bump(&guard->counts.left);
    }
    return wr_direct_unlock(d, usual);
}

#endif
