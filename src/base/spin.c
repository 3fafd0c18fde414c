/* Backing off from a lock that is held.
 * SPDX-License-Identifier: MIT */
#include "base/spin.h"

#include "base/os.h"

enum { SPINS = 30, PAUSE_MAX = 24, YIELDS = 60, NAP_NS = 50000 };

void wr_spin_pause(unsigned *tries)
{
    _Atomic uint32_t never = 0;
    unsigned n = (*tries)++;

    if (n < SPINS) {
        for (unsigned i = 0; i <= n && i < PAUSE_MAX; i++)
            wr_os_relax();
    } else if (n < YIELDS) {
        wr_os_yield();
    } else { /* the owner does not run at all */
        wr_os_futex_wait(&never, 0, wr_os_now() + NAP_NS);
    }
}

void wr_spin_contended(struct wr_spin *spin, uint64_t owner)
{
    unsigned tries = 0;

    do
        wr_spin_pause(&tries);
    while (!wr_spin_try(spin, owner));
}
