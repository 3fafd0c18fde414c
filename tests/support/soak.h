/* More of the same: how often tests that go by chance do what they do.
 *
 * `make test` looks at a few lives of each kind, `make soak` and `make chaos` at others, for as long as
 * they are given time: WEIR_SOAK multiplies how many, WEIR_SOAK_SEED says where seeds that are
 * counted up begin.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_SOAK_H
#define WR_TESTS_SOAK_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t soak_number(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);

    return given && *given ? strtoull(given, NULL, 0) : otherwise;
}

static inline uint64_t soak_times(uint64_t times)
{
    return times * soak_number("WEIR_SOAK", 1);
}

/* The seed from which on to count, if `first` is the usual one. */
static inline uint64_t soak_seed(uint64_t first)
{
    return first + soak_number("WEIR_SOAK_SEED", 0);
}

#endif
