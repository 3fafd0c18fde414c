/* w3: the noisy neighbour. Group A floods the executor, group B submits one task every 2 ms: how long do
 * B's tasks wait for their start? A's tasks burn CPU time in w3; in w3b they block in the kernel, and the
 * policy moves a group to threads once it is known to block: B's first ticks, while A is being found out, are
 * told apart, and so is B without any neighbour.
 * SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "bench.h"

#include <stdlib.h>
#include <time.h>

enum {
    FLOOD = 200000, /* more than can be done while B is measured */
    FLOOD_BLOCKING = 1000,
    LIMIT = 2,
    WORKERS = 2, /* as many as A may keep busy; with one more there would be no noise */
    BURN_NS = 50000,
    BLOCK_MS = 20,
    TICKS = 1000,
    FOUND_OUT = 100, /* of B's while A is being found out: 200 ms */
    TICK_NS = 2000000,
    POLL_MS = 1,
};

struct sample {
    struct scene *scene;
    weir_time tick, submitted, started;
};

struct scene {
    weir_group *a, *b;
    uint64_t burn_steps;
    int flood;
    _Atomic int a_done, b_done;
    struct sample sample[TICKS];
};

/* ---- tasks ----------------------------------------------------------------------------------- */

/* CPU time, not wall time: one who is interrupted still owes the rest. */
static void burn(uint64_t steps)
{
    uint64_t x = steps | 1;

    for (uint64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
}

static uint64_t burn_calibrate(void)
{
    enum { STEPS = 200000, TRIES = 40 };
    weir_time best = WEIR_FOREVER;

    for (int i = 0; i < TRIES; i++) {
        weir_time begin = weir_now(), took;
        burn(STEPS);
        took = weir_now() - begin;
        best = took < best ? took : best;
    }
    return (uint64_t)STEPS * BURN_NS / (uint64_t)best;
}

static int flood_burning(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;

    (void)value;
    burn(scene->burn_steps);
    wr_add(&scene->a_done, 1, relaxed);
    return 0;
}

/* A file of a slow disk, or a library that knows nothing of weir. */
static int flood_blocking(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;
    struct timespec time = { .tv_nsec = BLOCK_MS * 1000000 };

    (void)value;
    nanosleep(&time, NULL);
    wr_add(&scene->a_done, 1, relaxed);
    return 0;
}

static int neighbour(void **value, void *sample_arg)
{
    struct sample *sample = sample_arg;

    (void)value;
    sample->started = weir_now();
    wr_add(&sample->scene->b_done, 1, release);
    return 0;
}

/* ---- the scene ------------------------------------------------------------------------------- */

static void sleep_until(weir_time when)
{
    struct timespec time = { .tv_sec = when / 1000000000, .tv_nsec = when % 1000000000 };

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void submit_neighbours(struct scene *of, int ticks)
{
    weir_time tick = weir_now();

    wr_store(&of->b_done, 0, relaxed);
    for (int i = 0; i < ticks; i++) {
        struct sample *sample = &of->sample[i];
        tick += TICK_NS;
        sleep_until(tick);
        *sample = (struct sample){ .scene = of, .tick = tick, .submitted = weir_now() };
        bench_must(weir_submit(NULL, of->b, neighbour, sample, NULL), "weir_submit");
    }
    while (wr_load(&of->b_done, acquire) < ticks)
        weir_sleep(weir_in_ms(POLL_MS));
    if (of->flood && wr_load(&of->a_done, relaxed) == of->flood)
        bench_die("w3: the flood was over before the neighbour was");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* From the submit; and the 99th percentile from the tick, which shows what the former hides if the
 * submitter itself gets no CPU. */
static void report(struct bench_out *out, const struct scene *of)
{
    double us[TICKS], tick_us[TICKS];

    for (int i = 0; i < TICKS; i++) {
        us[i] = (double)(of->sample[i].started - of->sample[i].submitted) / 1e3;
        tick_us[i] = (double)(of->sample[i].started - of->sample[i].tick) / 1e3;
    }
    qsort(us, TICKS, sizeof(us[0]), compare);
    qsort(tick_us, TICKS, sizeof(tick_us[0]), compare);
    bench_put(out, BENCH_WEIR, "p50_us", us[TICKS / 2]);
    bench_put(out, BENCH_WEIR, "p99_us", us[TICKS * 99 / 100]);
    bench_put(out, BENCH_WEIR, "max_us", us[TICKS - 1]);
    bench_put(out, BENCH_WEIR, "tick_p99_us", tick_us[TICKS * 99 / 100]);
}

static struct scene scene;

static weir_executor *scene_init(weir_stall_policy stall_policy)
{
    weir_executor *ex = bench_executor(
        WEIR_POLICY(.workers = WORKERS, .group_limit = LIMIT, .stall_policy = stall_policy));
    weir_group *group[2];

    bench_groups(group, 2, ex);
    scene = (struct scene){ .a = group[0], .b = group[1], .burn_steps = burn_calibrate() };
    return ex;
}

static void flood_with(weir_fn *flood, int tasks)
{
    scene.flood = tasks;
    for (int i = 0; i < tasks; i++)
        bench_must(weir_submit(NULL, scene.a, flood, &scene, NULL), "weir_submit");
}

void bench_w3(struct bench_out *out)
{
    weir_executor *ex = scene_init(WEIR_STALL_COUNT);

    flood_with(flood_burning, FLOOD);
    submit_neighbours(&scene, TICKS);
    report(out, &scene);
    weir_executor_free(ex); /* what is left of the flood is refused */
}

static double slowest_us(const struct scene *of, int ticks)
{
    double slowest = 0;

    for (int i = 0; i < ticks; i++) {
        double us = (double)(of->sample[i].started - of->sample[i].submitted) / 1e3;
        slowest = us > slowest ? us : slowest;
    }
    return slowest;
}

static double p99_us(const struct scene *of)
{
    double us[TICKS];

    for (int i = 0; i < TICKS; i++)
        us[i] = (double)(of->sample[i].started - of->sample[i].submitted) / 1e3;
    qsort(us, TICKS, sizeof(us[0]), compare);
    return us[TICKS * 99 / 100];
}

static void w3b_alone(struct bench_out *out)
{
    weir_executor *ex = scene_init(WEIR_STALL_TO_THREADS);

    submit_neighbours(&scene, TICKS);
    bench_put(out, BENCH_WEIR, "alone_p99_us", p99_us(&scene));
    weir_executor_free(ex);
}

static void w3b_beside(struct bench_out *out)
{
    weir_executor *ex = scene_init(WEIR_STALL_TO_THREADS);
    weir_group_stats stats = { .size = sizeof(stats) };

    flood_with(flood_blocking, FLOOD_BLOCKING); /* at once, so that B is there from the start */
    submit_neighbours(&scene, FOUND_OUT);
    bench_put(out, BENCH_WEIR, "found_out_max_us", slowest_us(&scene, FOUND_OUT));
    bench_must(weir_group_stats_get(&stats, ex, weir_group_key(scene.a)), "weir_group_stats_get");
    if (stats.run_on != WEIR_THREADS)
        bench_die("w3b: the flood was not found to block");
    submit_neighbours(&scene, TICKS);
    report(out, &scene);
    weir_executor_free(ex);
}

void bench_w3b(struct bench_out *out)
{
    bench_apart(out, w3b_alone);
    w3b_beside(out);
}
