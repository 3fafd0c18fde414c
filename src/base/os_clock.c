/* The door to the kernel, Linux side: the clock.
 *
 * Reading the monotonic clock takes 25 ns or so, the processor's own counter less than half. So each
 * thread reads the kernel's clock every few microseconds and counts on from there. The rate is measured between two
 * readings that happen to be some milliseconds apart, and again whenever eight times as much has passed: a reading is off by
 * a few microseconds at most, so that the error is about a thousandth at first and soon below a millionth, for callers that
 * measure longer spans by it. Where the counter is not known to run evenly, and before the rate is known, each call asks the
 * kernel.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"

#include <time.h>

static weir_time kernel_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (weir_time)t.tv_sec * 1000000000 + t.tv_nsec;
}

weir_time wr_os_now_coarse(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (weir_time)t.tv_sec * 1000000000 + t.tv_nsec;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>

enum { SHIFT = 32, STRETCH_NS = 16000, MEASURE_NS = 5000000, READING_TICKS = 10000 };

/* Nanoseconds per tick, times 2^32. 0: not known yet; UINT64_MAX: do not use the counter. */
static _Atomic uint64_t rate;
static _Atomic uint64_t first_tick, first_ns; /* where the measurement began */
static _Atomic int64_t measure_at;            /* when the next one is worth it */

uint64_t wr_os_tick_rate(void)
{
    uint64_t now_rate = wr_load(&rate, relaxed);

    return now_rate == UINT64_MAX ? 0 : now_rate;
}

static _Thread_local struct {
    uint64_t tick; /* the last reading of the kernel's clock, and the counter's at that time */
    weir_time ns;
    weir_time last;   /* so that time never runs back                                        */
    uint64_t stretch; /* ticks before the kernel is asked again; 0: the rate is not known    */
    uint64_t rate;
} here __attribute__((tls_model("initial-exec")));

static bool counter_is_even(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8));
}

/* Learns the rate once enough time has passed since the first reading. */
static __attribute__((noinline)) void measure(uint64_t tick, weir_time ns)
{
    uint64_t none = 0, old = wr_load(&rate, relaxed), ticks, passed, found;

    if (wr_load(&first_tick, acquire) == 0) {
        if (!counter_is_even()) {
            wr_store(&rate, UINT64_MAX, relaxed);
        } else if (wr_cas(&first_ns, &none, (uint64_t)ns, acq_rel)) {
            wr_store(&first_tick, tick, release);
        }
        return;
    }
    ticks = tick - wr_load(&first_tick, relaxed);
    passed = (uint64_t)ns - wr_load(&first_ns, relaxed);
    if ((int64_t)passed < MEASURE_NS || ticks == 0)
        return;
    found = (uint64_t)(((unsigned __int128)passed << SHIFT) / ticks);
    if (old && (found > old + old / 512 || found < old - old / 512)) {
        wr_store(&first_ns, (uint64_t)ns, relaxed); /* the machine slept meanwhile: begin anew */
        wr_store(&first_tick, tick, relaxed);
        passed = MEASURE_NS;
    } else {
        wr_store(&rate, found, relaxed);
    }
    wr_store(&measure_at, ns + 7 * (int64_t)passed, relaxed);
}

/* Reads the kernel's clock, to count on from there. */
static __attribute__((noinline)) weir_time read_kernel(uint64_t tick)
{
    uint64_t now_rate = wr_load(&rate, relaxed);
    weir_time now = kernel_now();

    if (now_rate != UINT64_MAX) {
        here.tick = tick;
        here.ns = now;
        here.rate = now_rate;
        here.stretch = now_rate ? ((uint64_t)STRETCH_NS << SHIFT) / now_rate : 0;
        /* Not if this thread was interrupted between the two readings. */
        if ((!now_rate || now >= wr_load(&measure_at, relaxed)) && __rdtsc() - tick < READING_TICKS)
            measure(tick, now);
    }
    if (now > here.last)
        here.last = now;
    return here.last;
}

weir_time wr_os_now(void)
{
    uint64_t tick = __rdtsc(), passed = tick - here.tick;
    weir_time now;

    if (WR_UNLIKELY(passed >= here.stretch))
        return read_kernel(tick);
    now = here.ns + (weir_time)((passed * here.rate) >> SHIFT); /* at most STRETCH_NS << SHIFT */
    if (now > here.last)
        here.last = now;
    return here.last;
}
#else
weir_time wr_os_now(void)
{
    return kernel_now();
}
#endif
