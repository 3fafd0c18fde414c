/* What the peers in C and C++ share: clock, memory, calibrated work, and the lines they print; see
 * bench/bench.h for those.
 * SPDX-License-Identifier: MIT */
#ifndef PEERS_COMMON_H
#define PEERS_COMMON_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The workloads; as in bench/w1.c, w2.c, w3.c and w4.c. */
enum {
    TASKS = 1000000,
    GROUPS = 64,
    LIMIT = 4,
    WARM_UPS = 1,
    ROUNDS = 3,
    FLOOD = 200000,
    FLOOD_LIMIT = 2,
    TICKS = 1000,
    TICK_NS = 2000000,
    FLOW_NODES = 100000,
    FLOW_WIDTH = 100,
    FLOW_WARM_UPS = 2,
    FLOW_ROUNDS = 9,
    FLOW_WORKERS = 2,
};

static inline uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sleep_until(uint64_t ns)
{
    struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* "VmRSS" or "VmHWM", in KiB. */
static inline double status_kb(const char *key)
{
    FILE *file = fopen("/proc/self/status", "r");
    size_t length = strlen(key);
    char line[256];
    double kb = 0;

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, key, length) == 0)
            kb = atof(line + length + 1);
    if (file)
        fclose(file);
    return kb;
}

/* CPU time, not wall time: one who is interrupted still owes the rest. */
static inline void burn(uint64_t steps)
{
    uint64_t x = steps | 1;

    for (uint64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
}

/* Steps that take 50 us. */
static inline uint64_t burn_calibrate(void)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < 40; i++) {
        uint64_t took = now_ns();
        burn(200000);
        took = now_ns() - took;
        best = took < best ? took : best;
    }
    return 200000u * UINT64_C(50000) / best;
}

/* ---- results --------------------------------------------------------------------------------- */

static inline int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of the rounds that count. */
static inline void print_w1(const char *peer, double *ns)
{
    qsort(ns, ROUNDS, sizeof(ns[0]), compare_double);
    printf("RESULT w1 %s ns_per_task=%.1f peak_mb=%.1f\n", peer, ns[ROUNDS / 2],
           status_kb("VmHWM") / 1024);
}

static inline void print_w2(const char *peer, double rss_kb_before)
{
    printf("RESULT w2 %s bytes_each=%.1f\n", peer,
           (status_kb("VmRSS") - rss_kb_before) * 1024 / (double)TASKS);
}

/* The nodes before node i of w4, and how many there are. */
static inline int flow_edges(int up[2], int i, int layered, uint64_t *luck)
{
    int before = (i / FLOW_WIDTH - 1) * FLOW_WIDTH, x;

    if (!layered) {
        up[0] = i - 1;
        return i > 0;
    }
    if (i < FLOW_WIDTH)
        return 0;
    *luck = *luck * 6364136223846793005u + 1442695040888963407u;
    x = (int)((*luck >> 33) % FLOW_WIDTH);
    *luck = *luck * 6364136223846793005u + 1442695040888963407u;
    up[0] = before + x;
    up[1] = before + (x + 1 + (int)((*luck >> 33) % (FLOW_WIDTH - 1))) % FLOW_WIDTH;
    return 2;
}

/* One of the neighbour's tasks. */
struct sample {
    uint64_t tick, submitted, started;
};

static inline void print_w3(const char *peer, const struct sample *sample)
{
    static double us[TICKS], tick_us[TICKS];

    for (int i = 0; i < TICKS; i++) {
        us[i] = (double)(sample[i].started - sample[i].submitted) / 1e3;
        tick_us[i] = (double)(sample[i].started - sample[i].tick) / 1e3;
    }
    qsort(us, TICKS, sizeof(us[0]), compare_double);
    qsort(tick_us, TICKS, sizeof(tick_us[0]), compare_double);
    printf("RESULT w3 %s p50_us=%.1f p99_us=%.1f max_us=%.1f tick_p99_us=%.1f\n", peer,
           us[TICKS / 2], us[TICKS * 99 / 100], us[TICKS - 1], tick_us[TICKS * 99 / 100]);
}

/* The flood may go on: leaves without waiting for it. */
static inline void leave(void)
{
    fflush(stdout);
    _exit(0);
}

#endif
