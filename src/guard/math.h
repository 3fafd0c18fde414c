/* Sums that saturate, for spans of time and counts of any size.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_MATH_H
#define WR_GUARD_MATH_H

#include <stdint.h>

static inline int64_t wr_sum(int64_t a, int64_t b)
{
    int64_t sum;

    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t wr_product(int64_t a, int64_t b)
{
    int64_t product;

    if (!__builtin_mul_overflow(a, b, &product))
        return product;
    return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
}

static inline int64_t wr_clip(__int128 x)
{
    return x > INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x;
}

/* a / b, rounded up; a >= 0, b > 0. */
static inline __int128 wr_ceil_div(__int128 a, __int128 b)
{
    return a / b + (a % b != 0);
}

static inline int64_t wr_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t wr_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
