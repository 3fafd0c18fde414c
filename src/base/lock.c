/* The slow path of wr_lock: spin a little, then sleep.
 * SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include "base/os.h"

enum {
    SPINS = 200
}; /* a few microseconds: sections are shorter, but a page fault may lie in one */

void wr_lock_contended(struct wr_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t free = 0;
        if (wr_load(&lock->word, relaxed) == 0 && wr_cas(&lock->word, &free, 1, acquire))
            return;
        wr_os_relax();
    }
    /* From here on take it as "held, somebody asleep": whoever sleeps beside us is not forgotten. */
    while (wr_swap(&lock->word, 2, acquire) != 0)
        wr_os_futex_wait(&lock->word, 2, WEIR_FOREVER);
}

void wr_lock_wake(struct wr_lock *lock)
{
    wr_os_futex_wake(&lock->word, 1);
}
