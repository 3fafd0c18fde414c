/* A small lock for short critical sections: one word, a system call only under contention.
 * Never held across a switch, a callback or a wait.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_LOCK_H
#define WR_BASE_LOCK_H

#include "base/atomic.h"

#include <stdint.h>

struct wr_lock {
    _Atomic uint32_t word; /* 0 free, 1 held, 2 held and somebody may be asleep */
};

#ifdef WEIR_COUNT_LOCKS
void wr_lock_counted(const struct wr_lock *lock); /* the program's: see bench/locks/main.c */
#else
#define wr_lock_counted(lock) ((void)0)
#endif

void wr_lock_contended(struct wr_lock *lock);
void wr_lock_wake(struct wr_lock *lock);

static inline void wr_lock(struct wr_lock *lock)
{
    uint32_t free = 0;

    if (!wr_cas(&lock->word, &free, 1, acquire))
        wr_lock_contended(lock);
    wr_lock_counted(lock);
}

static inline void wr_unlock(struct wr_lock *lock)
{
    if (wr_swap(&lock->word, 0, release) == 2)
        wr_lock_wake(lock);
}

#endif
