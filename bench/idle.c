/* idle: the CPU time of a runtime that has worked and now has nothing to do.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <sys/resource.h>

enum { BODIES = 100, IDLE_MS = 2000 };

static void body(void *arg)
{
    (void)arg;
    weir_sleep(weir_in_ms(1));
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Of all threads of this process, so far. */
static double cpu_s(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage))
        bench_die("getrusage does not work");
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void bench_idle(struct bench_out *out)
{
    weir_runtime *rt = bench_runtime(NULL);
    weir_time begin;
    double cpu;

    for (int i = 0; i < BODIES; i++)
        bench_must(weir_spawn(rt, body, NULL, NULL), "weir_spawn");
    bench_must(weir_runtime_drain(rt, WEIR_FOREVER), "weir_runtime_drain");
    begin = weir_now();
    cpu = cpu_s();
    weir_sleep(weir_in_ms(IDLE_MS));
    cpu = cpu_s() - cpu;
    bench_put(out, BENCH_WEIR, "cpu_percent", 100 * cpu / ((double)(weir_now() - begin) / 1e9));
    weir_runtime_free(rt);
}
