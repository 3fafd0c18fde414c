/* sleepers: 100,000 bodies that all sleep for the same second; next to it, the time the kernel needs
 * to hand out a page for each, which no system that gives every body a stack can beat.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "bench.h"

#include <pthread.h>
#include <sys/mman.h>

enum { BODIES = 100000, SLEEP_MS = 1000, POLL_MS = 2, STACK_SIZE = 128 << 10, TOUCHERS = 2 };

/* ---- touching as many pages ------------------------------------------------------------------ */

struct share {
    char *memory;
    size_t stacks;
};

/* The last page of each, where a stack begins. */
static void *touch(void *share_arg)
{
    struct share *share = share_arg;

    for (size_t i = 1; i <= share->stacks; i++)
        ((volatile char *)share->memory)[i * STACK_SIZE - 1] = 1;
    return NULL;
}

static void measure_touch(struct bench_out *out)
{
    const size_t size = (size_t)BODIES * STACK_SIZE;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct share share[TOUCHERS];
    pthread_t thread[TOUCHERS];
    weir_time begin;

    if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE))
        bench_die("no address space for %d stacks", BODIES);
    begin = weir_now();
    for (int i = 0; i < TOUCHERS; i++) {
        share[i] = (struct share){ memory + size / TOUCHERS * i, BODIES / TOUCHERS };
        if (pthread_create(&thread[i], NULL, touch, &share[i]))
            bench_die("no thread to touch pages with");
    }
    for (int i = 0; i < TOUCHERS; i++)
        pthread_join(thread[i], NULL);
    bench_put(out, BENCH_REFERENCE, "touch_s", (double)(weir_now() - begin) / 1e9);
}

/* ---- sleeping bodies ------------------------------------------------------------------------- */

struct night {
    _Atomic int begun;
    _Atomic int woken;
};

static void sleeper(void *night_arg)
{
    struct night *night = night_arg;

    wr_add(&night->begun, 1, relaxed);
    bench_must(weir_sleep(weir_in_ms(SLEEP_MS)), "weir_sleep");
    wr_add(&night->woken, 1, relaxed);
}

/* The memory in use while all sleep; 0 if there was no such moment. */
static double rss_asleep(struct night *night)
{
    double rss;

    while (wr_load(&night->begun, relaxed) < BODIES)
        weir_sleep(weir_in_ms(POLL_MS));
    weir_sleep(weir_in_ms(POLL_MS)); /* the last have begun, but do not sleep yet */
    rss = bench_rss();
    return wr_load(&night->woken, relaxed) ? 0 : rss;
}

static void measure_sleepers(struct bench_out *out)
{
    weir_runtime *rt = bench_runtime(NULL);
    struct night night = { 0 };
    double rss_before = bench_rss(), rss;
    weir_time begin = weir_now();

    for (int i = 0; i < BODIES; i++)
        bench_must(weir_spawn(rt, sleeper, &night, NULL), "weir_spawn");
    rss = rss_asleep(&night);
    bench_must(weir_runtime_drain(rt, WEIR_FOREVER), "weir_runtime_drain");
    bench_put(out, BENCH_WEIR, "wall_s", (double)(weir_now() - begin) / 1e9);
    if (wr_load(&night.woken, relaxed) != BODIES)
        bench_die("drained before all had woken");
    /* On a machine so slow that the first wake before the last have begun, stacks serve twice. */
    if (rss > 0)
        bench_put(out, BENCH_WEIR, "bytes_each", (rss - rss_before) / BODIES);
    weir_runtime_free(rt);
}

void bench_sleepers(struct bench_out *out)
{
    bench_apart(out, measure_touch);
    measure_sleepers(out);
}
