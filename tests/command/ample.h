/* Durations for tests of the command: enough for a shell to get going, on this machine and as busy as it
 * is now.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_AMPLE_H
#define WR_TESTS_AMPLE_H

#include "support/check.h"

/* Thirty times what a shell takes from its start to its end, the slowest of three; at least 300 ms. */
static inline int64_t ample_ns(void)
{
    int64_t slowest = 10000000;

    for (int i = 0; i < 3; i++) {
        weir_time began = weir_now();
        assert_int_equal(system(":"), 0);
        int64_t took = weir_now() - began;
        slowest = took > slowest ? took : slowest;
    }
    return 30 * slowest;
}

/* The same, as `weir map` reads it. Lent until the next call. */
static inline const char *ample(void)
{
    static char text[32];

    snprintf(text, sizeof(text), "%lldms", (long long)(ample_ns() / 1000000));
    return text;
}

#endif
