/* Luck for stress tests: one seed, printed, taken from WEIR_SEED if that is set.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_SEED_H
#define WR_TESTS_SEED_H

#include "support/soak.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/time.h>

static uint64_t seed;

static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline void seed_init(void)
{
    const char *given = getenv("WEIR_SEED");

    seed = given ? strtoull(given, NULL, 0) : mix((uint64_t)weir_now()) % 1000000000;
    printf("WEIR_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
}

/* One stream of numbers per actor, told apart by `number`. */
struct luck {
    uint64_t state;
};

static inline struct luck luck_of(uint64_t number)
{
    return (struct luck){ mix(seed ^ mix(number)) };
}

static inline uint64_t luck_next(struct luck *luck)
{
    return mix(luck->state++);
}

/* Below `limit`. */
static inline uint64_t luck_below(struct luck *luck, uint64_t limit)
{
    return luck_next(luck) % limit;
}

#endif
