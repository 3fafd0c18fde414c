/* The stall monitor: detects, compensates, reports.
 *
 * Every worker counts what it does in `epoch`. A worker that carries a body and whose epoch stands
 * still for stall_after_ms is stuck: another worker takes its place, so that bodies which have not
 * started find one. (Bodies that wait on the stuck worker stay with it; they cannot move.) When the
 * epoch moves again the replacement is benched: it takes no new work, but goes on carrying what it
 * has, and is there for the next stall.
 *
 * While all workers sleep, the monitor does too.
 * SPDX-License-Identifier: MIT */
#include "runtime/monitor.h"

#include "base/assert.h"
#include "base/os.h"
#include "runtime/worker.h"

#include <weir/error.h>

enum { TICKING, DOZING, STOPPED };

static const int64_t TRIM_NS = 1000000000; /* unused stacks give their memory back after this */

void wr_monitor_notice(struct wr_monitor *monitor)
{
    uint32_t dozing = DOZING;

    if (wr_load(&monitor->word, seq_cst) == DOZING &&
        wr_cas(&monitor->word, &dozing, TICKING, seq_cst))
        wr_os_futex_wake(&monitor->word, 1);
}

/* A worker to stand in, or NULL: one from the bench, or a new one. */
static struct wr_worker *replacement(weir_runtime *rt)
{
    uint32_t count = wr_load(&rt->worker_count, relaxed);

    for (uint32_t i = rt->options.workers; i < count; i++) {
        struct wr_worker *worker = rt->worker[i];
        if (wr_load(&worker->benched, relaxed) && !worker->watch.stalled) {
            wr_worker_bench(worker, false);
            return worker;
        }
    }
    if (count == rt->worker_slots || wr_worker_start(rt))
        return NULL;
    return rt->worker[count];
}

static void tell(weir_runtime *rt, struct wr_worker *worker, weir_time now)
{
    struct wr_stall_watch *watch = &worker->watch;
    weir_stall stall = {
        .worker = worker->number,
        .over = !watch->stalled,
        .name = watch->name,
        .tag = watch->tag,
        .stuck_ns = now - watch->since,
        .replaced = watch->replacement != NULL,
    };

    if (rt->options.on_stall)
        rt->options.on_stall(&stall, rt->options.on_stall_arg);
}

bool wr_still_there(const struct wr_sighting *seen)
{
    const struct wr_worker *worker = seen->worker;

    return wr_load(&worker->epoch, acquire) == seen->epoch;
}

static void stall_found(weir_runtime *rt, struct wr_worker *worker, void *item, weir_time now)
{
    struct wr_stall_watch *watch = &worker->watch;
    struct wr_sighting seen = { .worker = worker, .epoch = watch->epoch };

    watch->tag = rt->source->describe(rt->source, item, watch->name, &seen);
    if (!wr_still_there(&seen))
        return; /* it went on just now, and the name may be another's */
    watch->stalled = true;
    wr_add(&rt->monitor.stalls, 1, relaxed);
    watch->replacement = replacement(rt);
    tell(rt, worker, now);
}

static void stall_over(weir_runtime *rt, struct wr_worker *worker, weir_time now)
{
    struct wr_stall_watch *watch = &worker->watch;

    watch->stalled = false;
    tell(rt, worker, now);
    if (watch->replacement)
        wr_worker_bench(watch->replacement, true);
    watch->replacement = NULL;
}

/* Answers whether the worker needs watching. */
static bool inspect(weir_runtime *rt, struct wr_worker *worker, weir_time now)
{
    struct wr_stall_watch *watch = &worker->watch;
    struct wr_fiber *fiber = wr_load(&worker->current, acquire);
    void *item = fiber ? wr_load(&fiber->item, acquire) : NULL;
    uint64_t epoch = wr_load(&worker->epoch, acquire); /* last: not older than the item */

    if (!item || epoch != watch->epoch) {
        if (watch->stalled)
            stall_over(rt, worker, now);
        watch->epoch = epoch;
        watch->since = now;
    } else if (!watch->stalled) {
        if (now - watch->since >= (int64_t)rt->options.stall_after_ms * 1000000)
            stall_found(rt, worker, item, now);
    } else if (!watch->replacement) {
        watch->replacement = replacement(rt); /* there was none to be had; there may be now */
    }
    return item || !wr_load(&worker->asleep, seq_cst);
}

static bool inspect_all(weir_runtime *rt, weir_time now)
{
    uint32_t count = wr_load(&rt->worker_count, acquire);
    bool busy = false;

    for (uint32_t i = 0; i < count; i++)
        busy |= inspect(rt, rt->worker[i], now);
    return busy;
}

/* Whether some worker is awake. Pairs with the end of a worker's sleep: it stores `asleep`, then reads
 * our word; we store the word, then read `asleep`. */
static bool anyone_awake(weir_runtime *rt)
{
    uint32_t count = wr_load(&rt->worker_count, acquire);

    for (uint32_t i = 0; i < count; i++)
        if (!wr_load(&rt->worker[i]->asleep, seq_cst))
            return true;
    return false;
}

static void doze(weir_runtime *rt)
{
    struct wr_monitor *monitor = &rt->monitor;
    weir_time until = weir_in_ns(TRIM_NS);
    uint32_t word = TICKING;

    if (!wr_cas(&monitor->word, &word, DOZING, seq_cst))
        return;
    while (!anyone_awake(rt) && wr_load(&monitor->word, seq_cst) == DOZING) {
        if (wr_os_futex_wait(&monitor->word, DOZING, until)) {
            /* Still quiet: the second trim takes what was in use before the first. */
            wr_stack_trim(&rt->stacks);
            wr_stack_trim(&rt->stacks);
            until = WEIR_FOREVER;
        }
    }
    word = DOZING;
    wr_cas(&monitor->word, &word, TICKING, seq_cst);
}

static void monitor_main(void *rt_arg)
{
    weir_runtime *rt = rt_arg;
    int64_t tick = (int64_t)rt->options.stall_after_ms * 1000000 / 4;
    weir_time trim_at = weir_in_ns(TRIM_NS);

    while (wr_load(&rt->monitor.word, acquire) != STOPPED) {
        weir_time now = wr_os_now();
        if (now >= trim_at) {
            wr_stack_trim(&rt->stacks);
            trim_at = now + TRIM_NS;
        }
        if (inspect_all(rt, now))
            wr_os_futex_wait(&rt->monitor.word, TICKING, now + tick);
        else
            doze(rt);
    }
}

int wr_monitor_start(weir_runtime *rt)
{
    return wr_os_thread_start(&rt->monitor.thread, monitor_main, rt, "weir-monitor");
}

void wr_monitor_stop(weir_runtime *rt)
{
    wr_swap(&rt->monitor.word, STOPPED, seq_cst);
    wr_os_futex_wake(&rt->monitor.word, 1);
    wr_os_thread_join(&rt->monitor.thread);
}
