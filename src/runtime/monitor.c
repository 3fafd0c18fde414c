/* The stall monitor: detects, compensates, reports.
 *
 * Every worker counts what it does in `epoch`. A worker that carries a body and whose epoch stands
 * still for stall_after_ms is stuck: another worker takes its place, so that bodies which have not
 * started find one. (Bodies that wait on the stuck worker stay with it; they cannot move.) When the
 * epoch moves again the replacement is benched: it takes no new work, but goes on carrying what it
 * has, and is there for the next stall. If none comes, its thread ends after thread_idle_ms.
 *
 * Bodies that block in the kernel get a replacement each, up to replacements_max. Bodies that compute get as
 * many as there are workers: that lets others in, and more threads would only share the same CPUs.
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

/* A worker on the bench whose thread is gone, or (not `gone`) is there; NULL: there is none. */
static struct wr_worker *on_the_bench(weir_runtime *rt, bool gone)
{
    uint32_t count = wr_load(&rt->worker_count, relaxed);

    for (uint32_t i = rt->options.workers; i < count; i++) {
        struct wr_worker *worker = rt->worker[i];
        if (wr_load(&worker->bench, acquire) == (gone ? WR_GONE : WR_BENCHED) &&
            !worker->watch.stalled)
            return worker;
    }
    return NULL;
}

/* A worker to stand in, or NULL: one from the bench, or a new one. */
static struct wr_worker *replacement(weir_runtime *rt)
{
    uint32_t count = wr_load(&rt->worker_count, relaxed);
    struct wr_worker *worker = on_the_bench(rt, false);

    if (!worker)
        worker = on_the_bench(rt, true);
    if (worker)
        return wr_worker_call_back(worker) ? NULL : worker;
    if (count == rt->worker_slots || wr_worker_start(rt))
        return NULL;
    return rt->worker[count];
}

/* Finds out whether a stuck worker computes. */
static void judge(weir_runtime *rt, struct wr_worker *worker, weir_time now)
{
    struct wr_stall_watch *watch = &worker->watch;
    bool computes = wr_os_thread_computes(wr_load(&worker->os_number, relaxed));

    rt->monitor.computing += computes;
    rt->monitor.computing -= watch->computes;
    watch->computes = computes;
    watch->judge_at = now + (int64_t)rt->options.stall_after_ms * 1000000;
}

/* Has a stuck worker replaced, if that helps and can be done. A worker on the bench takes no work, so it needs no
 * replacement. */
static void replace(weir_runtime *rt, struct wr_worker *worker, weir_time now)
{
    struct wr_stall_watch *watch = &worker->watch;

    if (wr_worker_is_benched(worker))
        return;
    if (now >= watch->judge_at)
        judge(rt, worker, now);
    if (!watch->computes || rt->monitor.computing <= rt->options.workers)
        watch->replacement = replacement(rt);
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
        return; /* the worker went on just now, and the name may be another body's */
    watch->stalled = true;
    wr_add(&rt->monitor.stalls, 1, relaxed);
    judge(rt, worker, now);
    replace(rt, worker, now);
    tell(rt, worker, now);
}

/* Sends the replacement of a worker to the bench. If the replacement has one itself, since it is stuck, that one goes
 * to the bench, too, and so on: a worker on the bench takes no work, so it needs no replacement. */
static void dismiss(struct wr_worker *worker)
{
    struct wr_worker *next;

    for (; worker->watch.replacement; worker = next) {
        next = worker->watch.replacement;
        worker->watch.replacement = NULL;
        wr_worker_bench(next);
    }
}

static void stall_over(weir_runtime *rt, struct wr_worker *worker, weir_time now)
{
    struct wr_stall_watch *watch = &worker->watch;

    watch->stalled = false;
    tell(rt, worker, now);
    dismiss(worker);
    rt->monitor.computing -= watch->computes;
    watch->computes = false;
}

/* Answers whether the worker needs watching. */
static bool inspect(weir_runtime *rt, struct wr_worker *worker, weir_time now)
{
    struct wr_stall_watch *watch = &worker->watch;
    struct wr_fiber *fiber = wr_load(&worker->current, acquire);
    void *item = fiber ? wr_load(&fiber->item, acquire) : NULL;
    uint64_t epoch = wr_load(&worker->epoch, acquire); /* last: not older than the item */
    bool gone = wr_worker_is_gone(worker);

    if (!item || epoch != watch->epoch) {
        if (watch->stalled)
            stall_over(rt, worker, now);
        watch->epoch = epoch;
        watch->since = now;
    } else if (!watch->stalled) {
        if (now - watch->since >= (int64_t)rt->options.stall_after_ms * 1000000)
            stall_found(rt, worker, item, now);
    } else if (!watch->replacement) {
        replace(rt, worker, now); /* no replacement was to be had; there may be one now */
    }
    if (gone)
        wr_worker_bury(worker);
    return !gone && (item || !wr_load(&worker->asleep, seq_cst));
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
        if (!wr_load(&rt->worker[i]->asleep, seq_cst) && !wr_worker_is_gone(rt->worker[i]))
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
