/* spawn: what an empty body costs from spawn to end; next to it, what it costs to wake a thread, since
 * a runtime that did so for every body could not be faster.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FUTEX_WAIT_PRIVATE = 0 | 128, FUTEX_WAKE_PRIVATE = 1 | 128 }; /* Linux's */

enum {
    BODIES = 1000000,
    WAKES = 3000,
    FALL_ASLEEP_NS = 20000, /* from the announcement of a nap to sleep, amply */
};

static void empty_body(void *arg)
{
    (void)arg;
}

static void measure_spawn(struct bench_out *out)
{
    weir_runtime *rt = bench_runtime(NULL);
    weir_time begin = weir_now();

    for (int i = 0; i < BODIES; i++)
        bench_must(weir_spawn(rt, empty_body, NULL, NULL), "weir_spawn");
    bench_must(weir_runtime_drain(rt, WEIR_FOREVER), "weir_runtime_drain");
    bench_put(out, BENCH_WEIR, "spawn_finish_ns", (double)(weir_now() - begin) / BODIES);
    weir_runtime_free(rt);
}

/* ---- waking a thread ------------------------------------------------------------------------- */

struct bed {
    _Atomic uint32_t word; /* how often the sleeper was to wake; it sleeps until this changes */
    _Atomic uint32_t naps; /* how often it went to sleep */
};

static void *sleeper(void *bed_arg)
{
    struct bed *bed = bed_arg;
    uint32_t word;

    while ((word = wr_load(&bed->word, acquire)) < WAKES) {
        wr_add(&bed->naps, 1, release);
        while (wr_load(&bed->word, acquire) == word)
            syscall(SYS_futex, &bed->word, FUTEX_WAIT_PRIVATE, word, NULL, NULL, 0);
    }
    return NULL;
}

/* Nothing but time tells that a thread is off its CPU; the answer of the wake tells at least that it
 * was queued. The waker stays awake meanwhile: coming from sleep itself, it would be slower. */
static void wait_until_asleep(struct bed *bed, uint32_t naps)
{
    weir_time until;

    while (wr_load(&bed->naps, acquire) < naps)
        sched_yield();
    until = weir_in_ns(FALL_ASLEEP_NS);
    while (weir_now() < until)
        sched_yield();
}

/* What the waker pays for one wake, or -1 if nobody slept. */
static double wake_ns(struct bed *bed)
{
    weir_time begin, end;
    long woken;

    wr_add(&bed->word, 1, seq_cst);
    begin = weir_now();
    woken = syscall(SYS_futex, &bed->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    end = weir_now();
    return woken == 1 ? (double)(end - begin) : -1;
}

static double clock_ns(void)
{
    weir_time begin = weir_now();

    for (int i = 1; i < WAKES; i++)
        weir_now();
    return (double)(weir_now() - begin) / WAKES;
}

static void measure_wake(struct bench_out *out)
{
    static double ns[WAKES];
    struct bed bed = { 0 };
    pthread_t thread;
    size_t count = 0;

    if (pthread_create(&thread, NULL, sleeper, &bed))
        bench_die("no thread to wake");
    for (uint32_t i = 1; i <= WAKES; i++) {
        wait_until_asleep(&bed, i);
        ns[count] = wake_ns(&bed);
        count += ns[count] >= 0;
    }
    pthread_join(thread, NULL);
    if (count < WAKES / 2)
        bench_die("the thread to wake was awake more often than not");
    bench_put(out, BENCH_REFERENCE, "futex_wake_ns", bench_median(ns, count) - clock_ns());
}

void bench_spawn(struct bench_out *out)
{
    measure_spawn(out);
    measure_wake(out);
}
