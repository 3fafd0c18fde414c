/* How long commands usually take: the median of the latest that succeeded, for --timeout N%.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_MEDIAN_H
#define WR_CLI_ENGINE_MEDIAN_H

#include "base/lock.h"

#include <stdint.h>

enum { MEDIAN_OF = 255, MEDIAN_MIN = 3 };

/* Starts zeroed. */
struct median {
    struct wr_lock lock;
    uint32_t count, at;
    int64_t ns[MEDIAN_OF];
};

void median_add(struct median *median, int64_t ns);

/* 0: fewer than MEDIAN_MIN are known. */
int64_t median_get(struct median *median);

#endif
