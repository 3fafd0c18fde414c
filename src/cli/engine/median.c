/* How long commands usually take.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/median.h"

#include <stdlib.h>
#include <string.h>

void median_add(struct median *median, int64_t ns)
{
    wr_lock(&median->lock);
    median->ns[median->at] = ns;
    median->at = (median->at + 1) % MEDIAN_OF;
    median->count += median->count < MEDIAN_OF;
    wr_unlock(&median->lock);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int64_t median_get(struct median *median)
{
    int64_t sorted[MEDIAN_OF];
    uint32_t count;

    wr_lock(&median->lock);
    count = median->count;
    memcpy(sorted, median->ns, count * sizeof(*sorted));
    wr_unlock(&median->lock);
    if (count < MEDIAN_MIN)
        return 0;
    qsort(sorted, count, sizeof(*sorted), by_time);
    return sorted[count / 2];
}
