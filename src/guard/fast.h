/* The usual cases without calls through the store: a permit is there, a closed breaker's call went well. Whatever else is
 * the case, they answer false and have changed nothing.
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

static inline void wr_direct_unlock(const weir_direct *direct)
{
    wr_store((_Atomic uint64_t *)direct->lock, 0, release);
}

/* ---- process memory ----------------------------------------------------------------------------- */

static inline bool wr_fast_rate(weir_permit *permit, struct weir_guard *guard)
{
    const weir_direct *direct = &guard->direct;
    struct wr_rate *rate = &((struct wr_state *)direct->state)->as.rate;
    weir_time now = wr_os_now();
    bool usual;

    if (!wr_direct_lock(direct))
        return false;
    usual = now < rate->cycle_end && rate->available > 0 && !rate->smooth && !rate->hole[0].n;
    if (usual) {
        permit->token = (uint64_t)rate->available--;
        permit->since = rate->cycle;
        permit->retry_at = rate->era;
        wr_bump(&guard->counts.entered);
    }
    wr_direct_unlock(direct);
    if (usual)
        wr_permit_fill(permit, guard, 1);
    return usual;
}

/* A call of a closed breaker that went well, with a window in which all did. */
static inline bool wr_fast_breaker_end(weir_permit *permit, struct weir_guard *guard)
{
    const weir_direct *direct = &guard->direct;
    struct wr_breaker *b = wr_state_breaker(direct->state);
    weir_time now = wr_os_now();
    int64_t ns = now - permit->since;
    bool usual;

    if (!wr_direct_lock(direct))
        return false;
    usual = b->state == WEIR_CLOSED && permit->token == b->filling && ns <= b->set.slow_ns &&
            !b->outcomes.sum.failed && !b->outcomes.sum.slow;
    if (usual) {
        wr_outcomes_add(&b->outcomes, now, 0, ns);
        wr_bump(&guard->counts.entered);
        wr_bump(&guard->counts.left);
        wr_bump(&guard->counts.succeeded);
    }
    wr_direct_unlock(direct);
    if (usual)
        permit->guard = NULL;
    return usual;
}

/* ---- shared memory ------------------------------------------------------------------------------ */

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
    wr_direct_unlock(d);
    return usual;
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
    wr_direct_unlock(d);
    return usual;
}

#endif
