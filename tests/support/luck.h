/* Random schedules for tests of pure code: many short lives, each from a seed of its own that a failure names.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_LUCK_H
#define WR_TESTS_LUCK_H

#include "support/sanitized.h"
#include "support/soak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t life_seed; /* of the life that is being lived */
static uint64_t life_state;

static inline uint64_t draw(void)
{
    uint64_t x = life_state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* From `low` to `high`, both included. */
static inline int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(draw() % (uint64_t)(high - low + 1));
}

static inline bool chance(int percent)
{
    return between(1, 100) <= percent;
}

#define MUST_BE(got, wanted)                                                                  \
    do {                                                                                      \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                     \
        if (got_ != wanted_)                                                                  \
            fail_msg("%s:%d: %s is %lld, not %s = %lld (WEIR_SEED=%llu)", __FILE__, __LINE__, \
                     #got, got_, #wanted, wanted_, (unsigned long long)life_seed);            \
    } while (0)
#define MUST(condition)                                                                    \
    do {                                                                                   \
        if (!(condition))                                                                  \
            fail_msg("%s:%d: not so: %s (WEIR_SEED=%llu)", __FILE__, __LINE__, #condition, \
                     (unsigned long long)life_seed);                                       \
    } while (0)

enum { LIVES = SANITIZED ? 10000 : 100000 };

/* Lives `life` for each of LIVES seeds, or only for WEIR_SEED. */
static inline void live(void (*life)(void))
{
    const char *only = getenv("WEIR_SEED");
    uint64_t first = only ? strtoull(only, NULL, 0) : soak_seed(1);
    uint64_t count = only ? 1 : soak_times(LIVES);

    for (life_seed = first; life_seed < first + count; life_seed++) {
        life_state = life_seed * 0x2545f4914f6cdd1du;
        life();
    }
}

#endif
