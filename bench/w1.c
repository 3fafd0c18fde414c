/* w1: what a task costs from submit to end: a million empty ones over 64 groups, submitted by one thread, by
 * two, by one, fifty in a call, by key, and by tasks; over domains; and to a single group. Results, times and reasons
 * are kept, as they always are; nobody asks for a handle.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

enum {
    WARM_UPS = 1, /* rounds that do not count: peers have a heap to grow, too */
    ROUNDS = 3,
    RUN = 50, /* tasks per call, where there are several */
};

static void measure(struct bench_out *out, const char *metric, struct bench_shape shape)
{
    struct bench_stream *stream = bench_stream_new(&shape);
    double ns[ROUNDS];

    for (int i = 0; i < WARM_UPS; i++)
        bench_stream_round(stream);
    for (int i = 0; i < ROUNDS; i++)
        ns[i] = bench_stream_round(stream);
    bench_stream_free(stream);
    bench_put(out, BENCH_WEIR, metric, bench_median(ns, ROUNDS));
}

static void measure_one(struct bench_out *out)
{
    measure(out, "ns_per_task", (struct bench_shape){ 0 });
    bench_put(out, BENCH_WEIR, "peak_mb", bench_peak() / (1 << 20));
}

static void measure_guarded(struct bench_out *out)
{
    measure(out, "ns_per_task_guarded", (struct bench_shape){ .guarded = true });
}

static void measure_two(struct bench_out *out)
{
    measure(out, "ns_per_task_2", (struct bench_shape){ .submitters = 2 });
}

static void measure_many(struct bench_out *out)
{
    measure(out, "ns_per_task_many", (struct bench_shape){ .run = RUN });
}

static void measure_domains(struct bench_out *out)
{
    measure(out, "ns_per_task_4d", (struct bench_shape){ .domains = 4 });
    measure(out, "ns_per_task_60d", (struct bench_shape){ .domains = 60 });
}

static void measure_one_group(struct bench_out *out)
{
    measure(out, "ns_one_group_1", (struct bench_shape){ .groups = 1, .limit = 1 });
    measure(out, "ns_one_group_4", (struct bench_shape){ .groups = 1, .limit = 4 });
}

static void measure_self_feeding(struct bench_out *out)
{
    measure(out, "ns_self_feeding", (struct bench_shape){ .feeds_itself = true });
}

static void measure_by_key(struct bench_out *out)
{
    measure(out, "ns_by_key", (struct bench_shape){ .by_key = true });
}

void bench_w1(struct bench_out *out)
{
    bench_apart(out, measure_one);
    bench_apart(out, measure_guarded);
    bench_apart(out, measure_two);
    bench_apart(out, measure_many);
    bench_apart(out, measure_domains);
    bench_apart(out, measure_one_group);
    bench_apart(out, measure_self_feeding);
    bench_apart(out, measure_by_key);
    bench_apart(out, bench_w1_floor);
}
