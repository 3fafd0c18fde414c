/* All workloads, and what is expected of them. A new one is a file and a line here.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

const struct bench_workload bench_workloads[] = {
    { "switch", "two tasks wake each other, on one worker and across two", bench_switch },
    { "spawn", "a million empty bodies, spawned by one thread", bench_spawn },
    { "sleepers", "100,000 bodies asleep at once", bench_sleepers },
    { "timers", "a million timers armed, then cancelled in another order", bench_timers },
    { "idle", "a runtime with nothing to do", bench_idle },
    { NULL, NULL, NULL },
};

const struct bench_target bench_targets[] = {
    { "switch", "same_worker_ratio", .at_most = 2 },
    { "spawn", "spawn_finish_ns", .below = "futex_wake_ns" },
    { "sleepers", "wall_s", .at_most = 1.15 },
    { "sleepers", "bytes_each", .at_most = 4400 },
    /* Nothing at all, but for the process that measures it. */
    { "idle", "cpu_percent", .at_most = 0.05 },
    { NULL, NULL, 0, NULL },
};
