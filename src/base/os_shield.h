/* For the Linux side of the door: system calls that are cancellation points, and shall not be.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_OS_SHIELD_H
#define WR_BASE_OS_SHIELD_H

#include "base/os.h"

static inline void wr_os_shield_end(int *former)
{
    wr_os_unshield(*former);
}

/* At the head of a block: until its end. errno stays as it is. */
#define WR_SHIELDED \
    int shielded_ __attribute__((cleanup(wr_os_shield_end), unused)) = wr_os_shield()

#endif
