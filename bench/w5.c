/* w5: what a guard costs when it admits: enter and leave, by one thread and by two that contend, beside the least that a
 * program could do by itself. Nanoseconds are wall time x threads / calls, so two threads that do not disturb each
 * other show the same figure as one.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT = 4, RACERS_MAX = 6, SLICES = 2000, CALLS = 500 };

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

static weir_guard *make(weir_store *store, const char *name, const weir_guard_options *opt)
{
    weir_guard *guard;
    weir_message why;

    if (weir_guard_new(&guard, store, name, opt, &why))
        bench_die("w5: %s", why.text);
    return guard;
}

/* ---- measuring ----------------------------------------------------------------------------------- */

/* Something to be called. */
struct racer {
    const char *system, *name;
    void (*call)(weir_guard *guard);
    weir_guard *guard;
    int threads_max;
};

/* What is compared takes turns, slice by slice: on a machine that does other things besides the speed of the core changes from one
 * moment to the next, and figures of different moments have no ratio. Slices are short, and their median counts, so that
 * most are not interrupted. */
struct race {
    const struct racer *racer;
    int count, threads;
    _Atomic int ready;
    double ns[RACERS_MAX][SLICES],
        other[RACERS_MAX][SLICES]; /* of the first, the second thread   */
};

/* All threads begin a slice together. */
static double slice_ns(struct race *race, const struct racer *racer, int number)
{
    weir_time begin;

    atomic_fetch_add(&race->ready, 1);
    while (atomic_load(&race->ready) < race->threads * (number + 1))
        ;
    begin = weir_now();
    for (int i = 0; i < CALLS; i++)
        racer->call(racer->guard);
    return (double)(weir_now() - begin) / CALLS;
}

/* Two threads contend only if they run at a time, each on a processor of its own: the kernel of a busy machine may keep both on one,
 * in turns. Does nothing if there are too few processors. */
static void run_on(int number)
{
    cpu_set_t all, one;

    if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) <= number)
        return;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && number-- == 0)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

static void run(struct race *race, double (*ns)[SLICES])
{
    for (int i = 0; i < SLICES; i++)
        for (int k = 0; k < race->count; k++)
            ns[k][i] = slice_ns(race, &race->racer[k], i * race->count + k);
}

static void *run_other(void *race_arg)
{
    struct race *race = race_arg;

    run_on(1);
    run(race, race->other);
    return NULL;
}

/* The slower thread's slices. */
static double median_of(struct race *race, int k)
{
    for (int i = 0; i < SLICES; i++)
        if (race->other[k][i] > race->ns[k][i])
            race->ns[k][i] = race->other[k][i];
    return bench_median(race->ns[k], SLICES);
}

static void race_run(struct bench_out *out, struct race *race)
{
    char metric[BENCH_NAME_MAX];
    pthread_t thread;

    if (race->threads == 2) {
        if (pthread_create(&thread, NULL, run_other, race))
            bench_die("no thread to contend with");
        run_on(0);
    }
    run(race, race->ns);
    if (race->threads == 2)
        pthread_join(thread, NULL);
    for (int k = 0; k < race->count; k++) {
        snprintf(metric, sizeof(metric), "%s_ns_%d", race->racer[k].name, race->threads);
        bench_put(out, race->racer[k].system, metric, median_of(race, k));
    }
}

/* By one thread, then by two. Those for one thread only come last. */
static void compare(struct bench_out *out, const struct racer *racer, int count)
{
    for (int threads = 1; threads <= 2; threads++) {
        struct race *race = calloc(1, sizeof(*race));

        if (!race)
            bench_die("no memory");
        race->racer = racer;
        race->threads = threads;
        while (race->count < count && racer[race->count].threads_max >= threads)
            race->count++;
        race_run(out, race);
        free(race);
    }
}

/* A store of the machine's that no other process uses. */
static weir_store *host_open(char directory[64])
{
    weir_store *store;
    weir_message why;

    snprintf(directory, 64, "/dev/shm/weir-bench-%d", (int)getpid());
    if (weir_store_host(&store, WEIR_HOST(.directory = directory), &why))
        bench_die("w5: %s", why.text);
    return store;
}

/* Permits and breakers are judged by the pair, and by each other. */
static void measure_permits(struct bench_out *out)
{
    char directory[64];
    weir_store *host = host_open(directory);
    weir_guard *guard[] = { make(NULL, "bulkhead", WEIR_BULKHEAD(.limit = LIMIT)),
                            make(NULL, "breaker", WEIR_BREAKER()),
                            make(NULL, "time", WEIR_BREAKER(.mode = WEIR_BY_TIME)),
                            make(host, "bulkhead", WEIR_BULKHEAD(.limit = LIMIT)) };
    const struct racer racer[] = {
        { BENCH_REFERENCE, "atomic_pair", atomic_pair, NULL, 2 },
        { BENCH_WEIR, "bulkhead", through, guard[0], 2 },
        { BENCH_WEIR, "breaker", through, guard[1], 2 },
        { BENCH_WEIR, "breaker_time", through, guard[2], 2 },
        { BENCH_WEIR, "host", through, guard[3], 1 },
        { BENCH_REFERENCE, "hundred_nops", hundred_nops, NULL, 1 },
    };

    compare(out, racer, sizeof(racer) / sizeof(racer[0]));
    for (int i = 0; i < 4; i++)
        weir_guard_unref(guard[i]);
    weir_store_free(host);
    rmdir(directory);
}

static void measure_rate(struct bench_out *out)
{
    weir_guard *guard =
        make(NULL, "rate", WEIR_RATE(.limit = WEIR_PERMITS_MAX, .period_ns = 1000000000));
    const struct racer racer[] = { { BENCH_REFERENCE, "gcra", gcra, NULL, 2 },
                                   { BENCH_WEIR, "rate", through, guard, 2 } };

    compare(out, racer, 2);
    weir_guard_unref(guard);
}

/* No target compares with these. */
static void measure_clocks(struct bench_out *out)
{
    const struct racer racer[] = { { BENCH_REFERENCE, "timed_pair", timed_pair, NULL, 2 },
                                   { BENCH_REFERENCE, "coarse_pair", coarse_pair, NULL, 1 } };

    compare(out, racer, 2);
}

void bench_w5(struct bench_out *out)
{
    bench_apart(out, measure_permits);
    bench_apart(out, measure_rate);
    bench_apart(out, measure_clocks);
}
