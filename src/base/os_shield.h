/* For the Linux side of the door: keeps system calls that are cancellation points from being so.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_OS_SHIELD_H
#define WR_BASE_OS_SHIELD_H

#include "base/os.h"

static inline void wr_os_shield_end(int *former)
{
    wr_os_unshield(*former);
}

/* At the head of a block: wr_os_shield until its end. errno stays as it is. */
#define WR_SHIELDED \
    int shielded_ __attribute__((cleanup(wr_os_shield_end), unused)) = wr_os_shield()

#endif
