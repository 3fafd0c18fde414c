/* w5: what a guard costs when it admits: enter and leave, by one thread and by two that contend, beside the least that a
 * program could do by itself. Nanoseconds are wall time x threads / calls, so two threads that do not disturb each
 * other show the same figure as one.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT = 4, SLICES = 2000, CALLS = 2000 };

/* ---- references ---------------------------------------------------------------------------------- */

static _Alignas(128) _Atomic int64_t permits = LIMIT;
static _Alignas(128) _Atomic int64_t arrival;

/* Take by compare and swap below a limit, give by an addition: the permit alone. */
static void atomic_pair(weir_guard *unused)
{
    int64_t left = atomic_load_explicit(&permits, memory_order_relaxed);

    (void)unused;
    while (left > 0 && !atomic_compare_exchange_weak(&permits, &left, left - 1))
        ;
    atomic_fetch_add(&permits, 1);
}

/* The theoretical arrival time alone: 1e9 per second, a burst of one second. */
static void gcra(weir_guard *unused)
{
    struct timespec t;
    int64_t now, tat = atomic_load_explicit(&arrival, memory_order_relaxed), next;

    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &t);
    now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    do {
        next = (tat > now ? tat : now) + 1;
        if (next - now > 1000000000)
            return;
    } while (!atomic_compare_exchange_weak(&arrival, &tat, next));
}

/* What a call that is timed costs at least: the counter is read before and after, the cheapest clock there is. */
static void timed_pair(weir_guard *unused)
{
#if defined(__x86_64__)
    static _Atomic uint64_t spent;
    uint64_t begin = __builtin_ia32_rdtsc();

    atomic_pair(unused);
    atomic_store_explicit(&spent, __builtin_ia32_rdtsc() - begin, memory_order_relaxed);
#else
    weir_time begin = weir_now();
    static _Atomic int64_t spent;

    atomic_pair(unused);
    atomic_store_explicit(&spent, weir_now() - begin, memory_order_relaxed);
#endif
}

/* The same by the kernel's coarse clock, which reads no counter but knows the time only by its ticks (1 to 4 ms). */
static void coarse_pair(weir_guard *unused)
{
    static _Atomic int64_t spent;
    struct timespec begin, end;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &begin);
    atomic_pair(unused);
    clock_gettime(CLOCK_MONOTONIC_COARSE, &end);
    atomic_store_explicit(&spent,
                          (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec,
                          memory_order_relaxed);
}

/* How much of the core this machine gets: instructions that wait for nothing. Locked ones are as fast with a neighbour on
 * the same core as without; these are not, and neither are the instructions around a permit. */
static void hundred_nops(weir_guard *unused)
{
    (void)unused;
    __asm__ volatile(".rept 100\n nop\n .endr");
}

/* ---- guards -------------------------------------------------------------------------------------- */

static void through(weir_guard *guard)
{
    weir_permit permit;

    permit.guard = NULL;
    if (weir_guard_enter(&permit, guard, WEIR_NOW_OR_NEVER))
        bench_die("w5: a guard that should never bind refused a call");
    weir_guard_leave(&permit, 0);
}

static weir_guard *make(weir_store *store, const weir_guard_options *opt)
{
    weir_guard *guard;
    weir_message why;

    if (weir_guard_new(&guard, store, "w5", opt, &why))
        bench_die("w5: %s", why.text);
    return guard;
}

/* ---- measuring ----------------------------------------------------------------------------------- */

/* Short slices, of which the median counts: on a machine that does other things besides most of them are not interrupted. */
struct lane {
    void (*call)(weir_guard *guard);
    weir_guard *guard;
    int threads;
    _Atomic int ready;
    double other[SLICES], ns[SLICES]; /* of the second thread, and of the slower one            */
};

/* All threads begin a slice together. */
static double slice_ns(struct lane *lane, int slice)
{
    weir_time begin;

    atomic_fetch_add(&lane->ready, 1);
    while (atomic_load(&lane->ready) < lane->threads * (slice + 1))
        ;
    begin = weir_now();
    for (int i = 0; i < CALLS; i++)
        lane->call(lane->guard);
    return (double)(weir_now() - begin) / CALLS;
}

static void *run_other(void *lane_arg)
{
    struct lane *lane = lane_arg;

    for (int i = 0; i < SLICES; i++)
        lane->other[i] = slice_ns(lane, i);
    return NULL;
}

static double ns_each(void (*call)(weir_guard *), weir_guard *guard, int threads)
{
    struct lane *lane = calloc(1, sizeof(*lane));
    pthread_t thread;
    double median;

    if (!lane)
        bench_die("no memory");
    lane->call = call;
    lane->guard = guard;
    lane->threads = threads;
    if (threads == 2 && pthread_create(&thread, NULL, run_other, lane))
        bench_die("no thread to contend with");
    for (int i = 0; i < SLICES; i++)
        lane->ns[i] = slice_ns(lane, i);
    if (threads == 2)
        pthread_join(thread, NULL);
    for (int i = 0; i < SLICES; i++)
        lane->ns[i] = lane->other[i] > lane->ns[i] ? lane->other[i] : lane->ns[i];
    median = bench_median(lane->ns, SLICES);
    free(lane);
    return median;
}

static void put(struct bench_out *out, const char *system, const char *name,
                void (*call)(weir_guard *), weir_guard *guard, int threads)
{
    char metric[BENCH_NAME_MAX];

    snprintf(metric, sizeof(metric), "%s_ns_%d", name, threads);
    bench_put(out, system, metric, ns_each(call, guard, threads));
}

/* Each in a process of its own, references in turn with guards. */
static void measure_permits(struct bench_out *out)
{
    weir_guard *guard = make(NULL, WEIR_BULKHEAD(.limit = LIMIT));

    put(out, BENCH_REFERENCE, "hundred_nops", hundred_nops, NULL, 1);
    for (int threads = 1; threads <= 2; threads++) {
        put(out, BENCH_REFERENCE, "atomic_pair", atomic_pair, NULL, threads);
        put(out, BENCH_WEIR, "bulkhead", through, guard, threads);
    }
}

static void measure_rate(struct bench_out *out)
{
    weir_guard *guard = make(NULL, WEIR_RATE(.limit = WEIR_PERMITS_MAX, .period_ns = 1000000000));

    for (int threads = 1; threads <= 2; threads++) {
        put(out, BENCH_REFERENCE, "gcra", gcra, NULL, threads);
        put(out, BENCH_WEIR, "rate", through, guard, threads);
    }
}

static void measure_breaker(struct bench_out *out)
{
    weir_guard *guard = make(NULL, WEIR_BREAKER());

    put(out, BENCH_REFERENCE, "coarse_pair", coarse_pair, NULL, 1);
    for (int threads = 1; threads <= 2; threads++) {
        put(out, BENCH_REFERENCE, "timed_pair", timed_pair, NULL, threads);
        put(out, BENCH_WEIR, "breaker", through, guard, threads);
    }
}

static void measure_breaker_time(struct bench_out *out)
{
    weir_guard *guard = make(NULL, WEIR_BREAKER(.mode = WEIR_BY_TIME));

    for (int threads = 1; threads <= 2; threads++)
        put(out, BENCH_WEIR, "breaker_time", through, guard, threads);
}

/* One process and nobody else, in a directory of its own. */
static void measure_host(struct bench_out *out)
{
    char directory[64];
    weir_store *store;
    weir_message why;
    weir_guard *guard;

    snprintf(directory, sizeof(directory), "/dev/shm/weir-bench-%d", (int)getpid());
    if (weir_store_host(&store, WEIR_HOST(.directory = directory), &why))
        bench_die("w5: %s", why.text);
    guard = make(store, WEIR_BULKHEAD(.limit = LIMIT));
    put(out, BENCH_WEIR, "host", through, guard, 1);
    weir_guard_unref(guard);
    weir_store_free(store);
    rmdir(directory);
}

void bench_w5(struct bench_out *out)
{
    bench_apart(out, measure_permits);
    bench_apart(out, measure_rate);
    bench_apart(out, measure_breaker);
    bench_apart(out, measure_breaker_time);
    bench_apart(out, measure_host);
}
