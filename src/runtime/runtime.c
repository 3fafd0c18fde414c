/* weir_runtime: making one, draining it, freeing it.
 * SPDX-License-Identifier: MIT */
#include "runtime/runtime.h"

#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"
#include "runtime/overflow.h"
#include "runtime/worker.h"

#include <weir/error.h>

enum {
    THREAD_IDLE_MS_DEFAULT = 5000,
    REPLACEMENTS_DEFAULT = 64,
};

uint32_t wr_replacements(int64_t more, uint32_t workers)
{
    int64_t most = more + (workers ? workers : weir_cpus()) + REPLACEMENTS_DEFAULT;

    return most < WR_WORKERS_MAX ? (uint32_t)most : WR_WORKERS_MAX;
}

static int set_defaults(weir_runtime_options *o)
{
    if (!o->workers)
        o->workers = weir_cpus();
    if (!o->threads_max)
        o->threads_max = WR_THREADS_DEFAULT;
    if (!o->thread_idle_ms)
        o->thread_idle_ms = THREAD_IDLE_MS_DEFAULT;
    if (!o->stack_size)
        o->stack_size = WR_STACK_DEFAULT;
    if (!o->stall_after_ms)
        o->stall_after_ms = WR_STALL_MS_DEFAULT;
    if (!o->replacements_max)
        o->replacements_max = wr_replacements(0, o->workers);
    if (o->workers > WR_WORKERS_MAX || o->replacements_max > WR_WORKERS_MAX ||
        o->threads_max > WR_THREADS_MAX || o->stack_size < WR_STACK_MIN ||
        o->stack_size > WR_STACK_MAX || o->thread_idle_ms > WR_MS_MAX ||
        o->stall_after_ms > WR_MS_MAX)
        return WEIR_EINVAL;
    return 0;
}

uint32_t weir_cpus(void)
{
    unsigned cpus = wr_os_cpus();

    return cpus < WR_WORKERS_MAX ? cpus : WR_WORKERS_MAX;
}

static weir_runtime *runtime_alloc(const weir_runtime_options *o)
{
    uint32_t slots = o->workers + o->replacements_max;
    size_t workers = slots * sizeof(struct wr_worker *),
           idle = WR_IDLE_WORDS(slots) * sizeof(uint64_t);
    weir_runtime *rt = wr_os_alloc(sizeof(*rt) + workers + idle);

    if (!rt)
        return NULL;
    rt->options = *o;
    rt->worker_slots = slots;
    rt->source = &rt->spawn.source;
    rt->idle = (_Atomic uint64_t *)&rt->worker[slots];
    wr_waitq_init(&rt->drained);
    wr_spawn_init(&rt->spawn, rt);
    wr_stack_pool_init(&rt->stacks, o->stack_size);
    wr_pool_init(&rt->pool, rt);
    return rt;
}

/* Ends all threads; no body is left but on threads of the pool, for which this waits. */
static void runtime_join(weir_runtime *rt)
{
    uint32_t count = wr_load(&rt->worker_count, acquire);

    for (uint32_t i = 0; i < count; i++)
        wr_worker_join(rt->worker[i]);
    wr_pool_fini(&rt->pool);
}

static void runtime_delete(weir_runtime *rt)
{
    uint32_t count = wr_load(&rt->worker_count, acquire);

    for (uint32_t i = 0; i < count; i++)
        wr_worker_delete(rt->worker[i]);
    wr_stack_pool_fini(&rt->stacks);
    wr_spawn_fini(&rt->spawn);
    wr_os_free(rt);
}

void wr_runtime_sweep(weir_runtime *rt)
{
    uint32_t count;

    wr_add(&rt->sweeps, 1, seq_cst); /* pairs with the sleeper's look, and wr_worker_start */
    count = wr_load(&rt->worker_count, seq_cst);
    for (uint32_t i = 0; i < count; i++)
        wr_worker_wake(rt->worker[i]);
    wr_pool_wake_all(&rt->pool);
}

/* Refuses new bodies and wakes every body that waits: each finds the runtime closing. */
static void begin_closing(weir_runtime *rt)
{
    wr_spawn_close(&rt->spawn);
    wr_store(&rt->closing, true, seq_cst);
    wr_runtime_sweep(rt);
}

int weir_runtime_new(weir_runtime **out, const weir_runtime_options *opt)
{
    return wr_runtime_new(out, opt, NULL);
}

int wr_runtime_new(weir_runtime **out, const weir_runtime_options *opt, struct wr_source *source)
{
    weir_runtime_options o;
    weir_runtime *rt;
    int rc = wr_options_load(&o, sizeof(o), opt);

    if (!out)
        return WEIR_EINVAL;
    *out = NULL;
    if (!rc)
        rc = set_defaults(&o);
    if (rc)
        return rc;
    rt = runtime_alloc(&o);
    if (!rt)
        return WEIR_ENOMEM;
    if (source)
        rt->source = source;
    rc = wr_overflow_install(rt);
    while (!rc && wr_load(&rt->worker_count, relaxed) < o.workers)
        rc = wr_worker_start(rt);
    if (!rc)
        rc = wr_monitor_start(rt);
    if (rc) {
        begin_closing(rt);
        runtime_join(rt);
        runtime_delete(rt);
        return rc;
    }
    *out = rt;
    return 0;
}

static bool called_by_own_body(const weir_runtime *rt)
{
    const struct wr_member *member = *wr_os_local();

    return member && member->runtime == rt;
}

void wr_runtime_ended(weir_runtime *rt)
{
    if (wr_sub(&rt->live, 1, seq_cst) == 1)
        wr_waitq_wake_all(&rt->drained);
}

static bool is_drained(void *rt)
{
    return wr_load(&((weir_runtime *)rt)->live, seq_cst) == 0;
}

int weir_runtime_drain(weir_runtime *rt, weir_time deadline)
{
    if (!rt)
        return WEIR_EINVAL;
    if (called_by_own_body(rt))
        return WEIR_EDEADLK;
    return wr_waitq_wait(&rt->drained, is_drained, rt, deadline, true);
}

void wr_runtime_stop(weir_runtime *rt)
{
    if (!rt)
        return;
    WR_ASSERT(!called_by_own_body(rt));
    begin_closing(rt);
    wr_waitq_wait(&rt->drained, is_drained, rt, WEIR_FOREVER, false);
    wr_monitor_stop(rt);
    runtime_join(rt);
}

void wr_runtime_delete(weir_runtime *rt)
{
    if (rt)
        runtime_delete(rt);
}

void weir_runtime_free(weir_runtime *rt)
{
    wr_runtime_stop(rt);
    wr_runtime_delete(rt);
}

int wr_runtime_job(weir_runtime *rt, struct wr_job *job, enum wr_job_turn turn)
{
    return wr_pool_submit(&rt->pool, job, turn);
}

void wr_runtime_lost(weir_runtime *rt, bool lost)
{
    wr_pool_lost(&rt->pool, lost);
}

static bool is_asked(struct wr_source *source, void *item)
{
    return item && source->cancelled && source->cancelled(source, item);
}

bool weir_cancelled(void)
{
    const struct wr_member *member = *wr_os_local();
    struct wr_source *source = NULL;
    void *item;

    if (member && wr_load(&member->runtime->closing, acquire))
        return true;
    for (struct wr_frame *frame = wr_frame_innermost(); frame; frame = frame->outer)
        if (is_asked(frame->source, frame->item))
            return true;
    item = member ? wr_carried_item(&source) : NULL;
    return is_asked(source, item);
}

static uint32_t workers_live(const weir_runtime *rt)
{
    uint32_t count = wr_load(&rt->worker_count, acquire), live = 0;

    for (uint32_t i = 0; i < count; i++)
        live += !wr_worker_is_gone(rt->worker[i]);
    return live;
}

int weir_runtime_stats_get(weir_runtime_stats *out, weir_runtime *rt)
{
    weir_runtime_stats s = { .size = sizeof(s) };

    if (!rt || !out)
        return WEIR_EINVAL;
    s.workers = rt->options.workers;
    s.workers_live = workers_live(rt);
    s.workers_idle = wr_idle_count(rt);
    wr_spawn_count(&rt->spawn, &s.accepted, &s.ended);
    s.stalls = wr_load(&rt->monitor.stalls, relaxed);
    s.stack_waits = wr_load(&rt->stack_waits, relaxed);
    s.threads = wr_pool_threads(&rt->pool);
    wr_stack_count(&rt->stacks, &s.stacks, &s.stacks_free);
    return wr_options_store(out, &s, sizeof(s));
}
