/* A lock for sections of some dozen instructions: one locked instruction to take it, a plain store to give it back.
 * No thread sleeps on it for long, so none has to be woken: a thread backs off a little longer on each failed attempt.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_SPIN_H
#define WR_BASE_SPIN_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

struct wr_spin {
    _Atomic uint64_t owner; /* 0: free */
};

/* One more failed attempt: pauses, then yields, then sleeps 50 us. `tries` counts them, from 0. */
void wr_spin_pause(unsigned *tries);

static inline bool wr_spin_try(struct wr_spin *spin, uint64_t owner)
{
    uint64_t free = 0;

    return wr_load(&spin->owner, relaxed) == 0 && wr_cas(&spin->owner, &free, owner, acquire);
}

void wr_spin_contended(struct wr_spin *spin, uint64_t owner);

static inline void wr_spin_lock(struct wr_spin *spin, uint64_t owner)
{
    uint64_t free = 0;

    if (!wr_cas(&spin->owner, &free, owner, acquire))
        wr_spin_contended(spin, owner);
}

static inline void wr_spin_unlock(struct wr_spin *spin)
{
    wr_store(&spin->owner, 0, release);
}

#endif
