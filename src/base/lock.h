/* A small lock for short critical sections: one word, a system call only under contention.
 * Never held across a switch, a callback or a wait.
 *
 * It is given back by a plain store. A locked instruction would wait there until all that was written under the lock has
 * left this CPU: half of what a submit costs while another CPU reads the queue. So giving back is a release and no more; code
 * whose stores another thread must see before it reads on uses seq_cst itself. A thread that marks the word between the holder's
 * look and its store is not woken, and looks again after a nap: tests/models/lock.pml. In the simulator the two are one step,
 * since a nap would move its clock.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_LOCK_H
#define WR_BASE_LOCK_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>
#include <weir/time.h>

enum { WR_LOCK_HELD = 1, WR_LOCK_MARKED = 3 };

struct wr_lock {
    _Atomic uint32_t word; /* 0 free, HELD, or MARKED: held, and a thread may be asleep */
};

#ifdef WEIR_COUNT_LOCKS
void wr_lock_counted(const struct wr_lock *lock); /* the program's: see bench/locks/main.c */
#else
#define wr_lock_counted(lock) ((void)0)
#endif

void wr_lock_contended(struct wr_lock *lock);
void wr_lock_contended_outermost(struct wr_lock *lock);
void wr_lock_wake(struct wr_lock *lock); /* after the lock was given back */

static inline void wr_lock(struct wr_lock *lock)
{
    /* Sets a bit, since that is a fifth cheaper than a compare and swap, and leaves a lock that is held as it is. */
    if (wr_or(&lock->word, WR_LOCK_HELD, acquire) & WR_LOCK_HELD)
        wr_lock_contended(lock);
    wr_lock_counted(lock);
}

/* One more lock was found held, at `now`. Answers whether it is the fourth in a row, each soon after the last: then this thread is
 * in a convoy. `*met` is what it remembers of such locks, NULL at first. Note: convoys. */
bool wr_lock_makes_convoy(void **met, weir_time now);

/* The same as wr_lock for a thread that holds no other lock: if it is in a convoy, it leaves its CPU once. */
static inline void wr_lock_outermost(struct wr_lock *lock)
{
    if (wr_or(&lock->word, WR_LOCK_HELD, acquire) & WR_LOCK_HELD)
        wr_lock_contended_outermost(lock);
    wr_lock_counted(lock);
}

static inline void wr_unlock(struct wr_lock *lock)
{
    uint32_t held = wr_load(&lock->word, relaxed);

    atomic_store_explicit(&lock->word, 0, memory_order_release); /* not wr_store: see above */
    if (held == WR_LOCK_MARKED)
        wr_lock_wake(lock);
}

#endif
