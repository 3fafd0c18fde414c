/* w8: whether a task costs more the more groups there are, and what a group costs that does nothing, or has one task
 * that waits: one group next to a million.
 * SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { GROUPS = 1000000, TASKS = GROUPS, LIMIT = 4, SIP = 1000 };

static int empty(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return 0;
}

static void drain(weir_executor *ex)
{
    bench_must(weir_executor_drain(ex, WEIR_FOREVER), "weir_executor_drain");
}

/* Task i goes to group i. */
static double pass_ns(weir_executor *ex, weir_group **group)
{
    weir_time begin = weir_now();

    for (int i = 0; i < TASKS; i++)
        bench_must(weir_submit(NULL, group[i], empty, NULL, NULL), "weir_submit");
    drain(ex);
    return (double)(weir_now() - begin) / TASKS;
}

/* The same, but so few at a time that their records do not count. */
static void pass_in_sips(weir_executor *ex, weir_group **group)
{
    for (int i = 0; i < TASKS; i++) {
        bench_must(weir_submit(NULL, group[i], empty, NULL, NULL), "weir_submit");
        if (i % SIP == 0)
            drain(ex);
    }
    drain(ex);
}

static void shuffle(weir_group **group)
{
    uint64_t luck = 42;

    for (size_t i = GROUPS - 1; i > 0; i--) {
        size_t other = bench_random(&luck) % (i + 1);
        weir_group *held = group[i];
        group[i] = group[other];
        group[other] = held;
    }
}

/* Handles belong to the caller: their pages are touched before anything is measured. */
static weir_group **handles_new(void)
{
    weir_group **group = malloc(GROUPS * sizeof(weir_group *));

    if (!group)
        bench_die("no memory for %d handles", GROUPS);
    memset(group, 0xff, GROUPS * sizeof(weir_group *));
    return group;
}

static void measure_one(struct bench_out *out)
{
    weir_executor *ex = bench_executor(WEIR_POLICY(.group_limit = LIMIT));
    weir_group **group = handles_new();

    bench_groups(&group[0], 1, ex);
    for (size_t i = 1; i < GROUPS; i++)
        group[i] = group[0];
    pass_ns(ex, group); /* grows what grows with tasks */
    bench_put(out, BENCH_WEIR, "ns_per_task_1", pass_ns(ex, group));
    weir_executor_free(ex);
    free(group);
}

static void measure_million(struct bench_out *out)
{
    weir_executor *ex = bench_executor(WEIR_POLICY(.group_limit = LIMIT));
    weir_group **group = handles_new();
    double rss = bench_rss();

    bench_groups(group, GROUPS, ex);
    pass_in_sips(ex, group);
    bench_put(out, BENCH_WEIR, "bytes_per_idle_group", (bench_rss() - rss) / GROUPS);
    pass_ns(ex, group);
    bench_put(out, BENCH_WEIR, "ns_per_task_1m", pass_ns(ex, group));
    shuffle(group);
    bench_put(out, BENCH_WEIR, "ns_per_task_1m_random", pass_ns(ex, group));
    weir_executor_free(ex);
    free(group);
}

static int hold(void **value, void *open_arg)
{
    const _Atomic bool *open = open_arg;

    (void)value;
    while (!wr_load(open, acquire))
        weir_sleep(weir_in_ms(1));
    return 0;
}

/* A task holds the executor's only permit until every group has one that waits. */
static void measure_one_waiting(struct bench_out *out)
{
    weir_executor *ex = bench_executor(WEIR_POLICY(.group_limit = LIMIT, .inflight_max = 1));
    weir_group **group = handles_new();
    _Atomic bool open = false;
    double rss;

    bench_must(weir_submit_key(NULL, ex, "holder", hold, &open, NULL), "weir_submit_key");
    rss = bench_rss();
    bench_groups(group, GROUPS, ex);
    for (int i = 0; i < TASKS; i++)
        bench_must(weir_submit(NULL, group[i], empty, NULL, NULL), "weir_submit");
    bench_put(out, BENCH_WEIR, "bytes_per_group_one_waiting", (bench_rss() - rss) / GROUPS);
    wr_store(&open, true, release);
    drain(ex);
    weir_executor_free(ex);
    free(group);
}

void bench_w8(struct bench_out *out)
{
    bench_apart(out, measure_one);
    bench_apart(out, measure_million);
    bench_apart(out, measure_one_waiting);
}
