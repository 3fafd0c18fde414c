/* All workloads, and what is expected of them. A new one is a file and a line here.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

const struct bench_workload bench_workloads[] = {
    { "switch", "two tasks wake each other, on one worker and across two", .run = bench_switch },
    { "spawn", "a million empty bodies, spawned by one thread", .run = bench_spawn },
    { "sleepers", "100,000 bodies asleep at once", .run = bench_sleepers },
    { "timers", "a million timers armed, then cancelled in another order", .run = bench_timers },
    { "idle", "a runtime with nothing to do", .run = bench_idle },
    { "w1", "a million empty tasks over 64 groups of limit 4", .run = bench_w1 },
    { "w2", "a million tasks that wait behind a limit of 1", .run = bench_w2 },
    { "w3", "a quiet group next to one that floods the executor with CPU work", .run = bench_w3 },
    { "w3b", "the same, but the flood blocks in the kernel", .run = bench_w3b },
    { "w7", "5,000 commands, four at a time", .run = bench_w7 },
    { "w8", "a million groups", .run = bench_w8 },
    { "recall", "a lender bursts while its slots are lent", .run = bench_recall },
    { "fairness", "starts by weight, while one group has a thousand times the tasks",
      .run = bench_fairness },
    { "nested", "bodies that each submit a task and wait for it", .run = bench_nested },
    { .name = NULL },
};

const struct bench_target bench_targets[] = {
    { "switch", "same_worker_ratio", .at_most = 2 },
    { "spawn", "spawn_finish_ns", .at_most = 1, .whose = BENCH_REFERENCE, .of = "futex_wake_ns" },
    { "sleepers", "wall_s", .at_most = 1.15 },
    { "sleepers", "bytes_each", .at_most = 4400 },
    /* Nothing at all, but for the process that measures it. */
    { "idle", "cpu_percent", .at_most = 0.05 },
    { "w1", "ns_per_task", .at_most = 0.7, .whose = BENCH_BEST_PEER },
    { "w1", "ns_per_task_2", .at_most = 1, .whose = BENCH_WEIR, .of = "ns_per_task" },
    { "w1", "ns_per_task_60d", .at_most = 2, .whose = BENCH_WEIR, .of = "ns_per_task_4d" },
    { "w2", "bytes_each", .at_most = 64 },
    { "w3", "p99_us", .at_most = 1, .whose = "tbb-arena" },
    { "w3", "max_us", .at_most = 1000 },
    { "w7", "us_per_job", .at_most = 1.15, .whose = "floor" },
    { "w7", "us_per_job", .at_most = 1, .whose = "make" },
    { "w7", "us_per_job", .at_most = 1, .whose = "xargs" },
    { "w7", "us_per_job", .at_most = 1, .whose = "ninja" },
    { "w7", "us_per_job", .at_most = 1, .whose = "parallel" },
    { "w8", "ns_per_task_1m", .at_most = 2, .whose = BENCH_WEIR, .of = "ns_per_task_1" },
    { "w8", "bytes_per_idle_group", .at_most = 256 },
    { "w3b", "p99_us", .at_most = 2, .whose = BENCH_WEIR, .of = "alone_p99_us" },
    { "w3b", "found_out_max_us", .at_most = 50000 },
    { "recall", "worst_start_ms", .at_most = 1, .whose = BENCH_REFERENCE, .of = "longest_body_ms" },
    { "fairness", "jain_distance", .at_most = 0.01 },
    { "fairness", "weight_off_percent", .at_most = 2 },
    { "nested", "pairs_10000_ms", .at_most = 1000 },
    { "nested", "pairs_10000_ms", .at_most = 20, .whose = BENCH_WEIR, .of = "pairs_1000_ms" },
    { "nested", "chain_2000_ms", .at_most = 200 },
    { "nested", "light_p99_us", .at_most = 2, .whose = BENCH_WEIR, .of = "light_alone_p99_us" },
    { .workload = NULL },
};
