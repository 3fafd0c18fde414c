/* Permits in shared memory without calls through the store: nobody waits, and one is there. Whatever else is the case, these
 * answer false and have changed nothing.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_FAST_H
#define WR_GUARD_FAST_H

#include "base/os.h"
#include "guard/guard.h"

/* Backs off a little longer on each failed attempt, for a microsecond or so; who has not got the lock then goes the usual
 * way, which also finds out whether its owner lives. */
bool wr_direct_contended(const weir_direct *direct);

static inline bool wr_direct_lock(const weir_direct *direct)
{
    uint64_t free = 0;

    return wr_cas((_Atomic uint64_t *)direct->lock, &free, direct->owner, acquire) ||
           wr_direct_contended(direct);
}

/* False: another process has taken the lock over. */
static inline bool wr_direct_unlock(const weir_direct *direct)
{
    uint64_t owner = direct->owner;

    return WR_LIKELY(wr_cas((_Atomic uint64_t *)direct->lock, &owner, 0, release));
}

/* Under the lock: what is held counts, what is used follows from it. */
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

/* Entering did not count: it is taken back, and to be done the long way. */
bool wr_direct_displaced(struct weir_guard *guard, bool entered);

static inline bool wr_host_enter(struct weir_guard *guard)
{
    const weir_direct *d = &guard->direct;
    const struct wr_state *state = d->copies;
    bool usual;

    if (wr_load(&wr_os_fork_count, relaxed) != d->forks || !wr_direct_lock(d))
        return false;
    if (wr_load((const _Atomic uint64_t *)d->active, relaxed))
        state = (const struct wr_state *)((const char *)d->copies + d->stride);
    usual = wr_host_line_is_empty(d) &&
            wr_load((_Atomic int64_t *)d->used, relaxed) + 1 <= state->set.limit;
    if (usual) {
        wr_host_add(d, 1);
        wr_bump(&guard->counts.entered);
    }
    if (wr_direct_unlock(d))
        return usual;
    return wr_direct_displaced(guard, usual);
}

static inline bool wr_host_leave(struct weir_guard *guard, int64_t n)
{
    const weir_direct *d = &guard->direct;
    bool usual;

    if (wr_load(&wr_os_fork_count, relaxed) != d->forks || !wr_direct_lock(d))
        return false;
    usual = wr_host_line_is_empty(d);
    if (usual) {
        wr_host_add(d, -n);
        wr_bump(&guard->counts.left);
    }
    if (!wr_direct_unlock(d))
        guard->ops->unlock(guard->cell); /* what was given counts */
    return usual;
}

#endif
