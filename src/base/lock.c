/* The slow path of wr_lock: spin a little, then sleep.
 * SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include "base/os.h"

enum {
    SPINS = 200, /* a few microseconds: sections are shorter, but a page fault may lie in one */
    PAUSE_MAX = 16,
    NAP_NS = 1000000, /* after that a sleeper looks by itself: see lock.h */
    CONVOY_NS = 500,  /* from lock to lock of a convoy, at most */
    CONVOY_ROW = 3,   /* so many after the first make one         */
};

/* Pauses grow: so one thread gets through several sections in a row, with the cache lines that it has, and the
 * lines do not travel with each section. With a single busy group that makes a task almost half as costly. */
static bool spin(struct wr_lock *lock, uint32_t held)
{
    for (int spins = 0, pause = 1; spins < SPINS; spins += pause) {
        uint32_t free = 0;
        if (wr_load(&lock->word, relaxed) == 0 && wr_cas(&lock->word, &free, held, acquire))
            return true;
        for (int i = 0; i < pause; i++)
            wr_os_relax();
        if (pause < PAUSE_MAX)
            pause++;
    }
    return false;
}

/* A thread that has slept takes the lock as MARKED, so that others that sleep are not forgotten. It spins again after
 * each sleep: one thread may take and release the lock all the time, and be faster than a wake-up each time. */
void wr_lock_contended(struct wr_lock *lock)
{
    if (spin(lock, WR_LOCK_HELD))
        return;
    while (wr_swap(&lock->word, WR_LOCK_MARKED, acquire) != 0) {
        wr_os_futex_wait(&lock->word, WR_LOCK_MARKED, wr_os_now() + NAP_NS);
        if (spin(lock, WR_LOCK_MARKED))
            return;
    }
}

void wr_lock_wake(struct wr_lock *lock)
{
    wr_os_futex_wake(&lock->word, 1);
}

/* Note: convoys. Two threads that go through many locks in the same order, for a moment each, as threads that submit to the same
 * groups do, stay together once one has caught up with the other: the one behind finds each lock held, and all memory that it
 * needs has just been written by another CPU. Two such threads get less done than one alone. So the one behind leaves its CPU to
 * other threads once, and by the time it goes on the other is far ahead. Threads that come to the same locks by other ways are met
 * now and then only.
 *
 * A lock that was found held is remembered as its time, whose lowest two bits say how many there were in a row before it. */
bool wr_lock_makes_convoy(void **met, weir_time now)
{
    uintptr_t row_mask = 3, time = (uintptr_t)now & ~row_mask, last = (uintptr_t)*met;
    uintptr_t row = time - (last & ~row_mask) < CONVOY_NS ? (last & row_mask) + 1 : 0;

    *met = (void *)(time | row % CONVOY_ROW);
    return row == CONVOY_ROW;
}

void wr_lock_contended_outermost(struct wr_lock *lock)
{
    if (wr_lock_makes_convoy(&wr_os_local()[WR_OS_LOCAL_MET], wr_os_now()))
        wr_os_yield();
    wr_lock_contended(lock);
}
