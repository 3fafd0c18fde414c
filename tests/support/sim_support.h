/* Shared by simulator tests: exploring many seeds under cmocka.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_SIM_SUPPORT_H
#define WR_TESTS_SIM_SUPPORT_H

#include "support/sanitized.h"
#include "support/soak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <weir.h>
#include <weir/sim.h>

#include <cmocka.h>

#define MS               ((int64_t)1000000)
#define CHECK(condition) WEIR_SIM_CHECK(condition)

/* Long searches for a rare schedule are for builds without sanitizers, which are there to look for
 * something else and take ten times as long. */
enum { SANITIZED_SEEDS_MAX = 500 };

/* Runs the scenario under `seeds` different schedules, or more (see support/soak.h). The failing seed
 * is printed; run the test with WEIR_SEED set to it to see that schedule again. */
static inline void explore(uint64_t seeds, const weir_sim_options *opt, void (*scenario)(void *))
{
    weir_sim_report failure = WEIR_SIM_REPORT;
    weir_sim_options moved = *opt;

    moved.seed = soak_seed(opt->seed);
    if (SANITIZED && seeds > SANITIZED_SEEDS_MAX)
        seeds = SANITIZED_SEEDS_MAX;
    if (weir_sim_explore(&moved, soak_times(seeds), scenario, NULL, &failure))
        fail_msg("%s", failure.message);
}

static inline weir_runtime *new_runtime(const weir_runtime_options *opt)
{
    weir_runtime *rt = NULL;

    CHECK(weir_runtime_new(&rt, opt) == 0);
    return rt;
}

#endif
