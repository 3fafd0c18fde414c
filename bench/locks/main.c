/* weir-bench-locks: how many locks a task passes from submit to end, and how many of them are the executor's own, which
 * all its tasks share. Those of the ring's parts, each of which some of the groups share, are shown besides. A program by itself, since its library counts what it locks (WEIR_COUNT_LOCKS).
 * SPDX-License-Identifier: MIT */
#include "bench.h"
#include "executor/state.h"
#include "runtime/worker.h"

#include <stdlib.h>

enum { PACED_TASKS = 100000, PACE = 100000 };

/* ---- counting ---------------------------------------------------------------------------------- */

/* Memory whose locks are executor-wide, what is inside before the whole. */
struct span {
    const char *name;
    _Atomic uintptr_t begin, end;
};

static struct span wide[] = { { .name = "parts" }, { .name = "cells" },  { .name = "threads" },
                              { .name = "clock" }, { .name = "others" }, { .name = "ledger" },
                              { .name = "pool" },  { .name = "runtime" } };

enum { PARTS, SPANS = sizeof(wide) / sizeof(wide[0]) }; /* the first is not executor-wide */

/* One thread's, written by it alone; outlives it. */
struct count {
    struct count *next;
    _Atomic uint64_t all, wide[SPANS];
};

struct sum {
    double all, wide[SPANS];
};

static _Atomic(struct count *) counts;
static _Thread_local struct count *own;

static struct count *own_count(void)
{
    struct count *head;

    if (own)
        return own;
    own = calloc(1, sizeof(*own));
    if (!own)
        bench_die("no memory");
    head = wr_load(&counts, relaxed);
    do
        own->next = head;
    while (!wr_cas(&counts, &head, own, release));
    return own;
}

static void add_one(_Atomic uint64_t *count)
{
    wr_store(count, wr_load(count, relaxed) + 1, relaxed);
}

void wr_lock_counted(const struct wr_lock *lock)
{
    struct count *count = own_count();
    uintptr_t at = (uintptr_t)lock;
    size_t i = 0;

    add_one(&count->all);
    while (i < SPANS &&
           (at < wr_load(&wide[i].begin, relaxed) || at >= wr_load(&wide[i].end, relaxed)))
        i++;
    if (i < SPANS)
        add_one(&count->wide[i]);
}

static void span_set(size_t *span, const void *begin, size_t size)
{
    wr_store(&wide[*span].begin, (uintptr_t)begin, relaxed);
    wr_store(&wide[*span].end, (uintptr_t)begin + size, relaxed);
    ++*span;
}

/* In the order of their names. Groups, domains and threads have locks of their own, which lie elsewhere. */
static void set_wide(const struct weir_executor *ex)
{
    const struct weir_runtime *rt = ex->crew.runtime;
    size_t span = 0;

    span_set(&span, &ex->ring, sizeof(ex->ring));
    span_set(&span, &ex->cells, sizeof(ex->cells));
    span_set(&span, &ex->threads, sizeof(ex->threads));
    span_set(&span, &ex->clock, sizeof(ex->clock));
    span_set(&span, ex, sizeof(*ex));
    span_set(&span, ex->domains, ex->domains ? sizeof(*ex->domains) : 0);
    span_set(&span, &rt->pool, sizeof(rt->pool));
    span_set(&span, rt, sizeof(*rt));
}

/* So far. Threads that have nothing to do may count one more at any time: near enough. */
static struct sum sum_up(void)
{
    struct sum sum = { 0 };

    for (struct count *c = wr_load(&counts, acquire); c; c = c->next) {
        sum.all += (double)wr_load(&c->all, relaxed);
        for (size_t i = 0; i < SPANS; i++)
            sum.wide[i] += (double)wr_load(&c->wide[i], relaxed);
    }
    return sum;
}

/* ---- measuring --------------------------------------------------------------------------------- */

/* Those that are executor-wide: in all, and which they are. */
static void put_wide(struct bench_out *out, const char *metric, const struct sum *before,
                     const struct sum *after, double tasks)
{
    char name[BENCH_NAME_MAX];
    double all = 0;

    for (size_t i = 0; i < SPANS; i++) {
        double per_task = (after->wide[i] - before->wide[i]) / tasks;
        all += i == PARTS ? 0 : per_task;
        snprintf(name, sizeof(name), "%s_%s", metric, wide[i].name);
        if (per_task > 0)
            bench_put(out, BENCH_WEIR, name, per_task);
    }
    snprintf(name, sizeof(name), "%s_wide", metric);
    bench_put(out, BENCH_WEIR, name, all);
}

static void measure(struct bench_out *out, const char *metric, struct bench_shape shape)
{
    struct bench_stream *stream = bench_stream_new(&shape);
    struct sum before, after;

    set_wide(bench_stream_executor(stream));
    bench_stream_round(stream); /* grows what grows with tasks */
    before = sum_up();
    bench_stream_round(stream);
    after = sum_up();
    bench_stream_free(stream);
    bench_put(out, BENCH_WEIR, metric, (after.all - before.all) / shape.tasks);
    put_wide(out, metric, &before, &after, shape.tasks);
}

int main(void)
{
    enum { TASKS = 1000000 };
    struct bench_out out = { .workload = "locks", .to = stdout };

    measure(&out, "handle", (struct bench_shape){ .tasks = TASKS });
    measure(&out, "by_key", (struct bench_shape){ TASKS, .by_key = true });
    measure(&out, "domains", (struct bench_shape){ TASKS, .domains = 4 });
    measure(&out, "threads", (struct bench_shape){ TASKS, .on_threads = true });
    measure(&out, "domains_threads",
            (struct bench_shape){ TASKS, .domains = 4, .on_threads = true });
    measure(&out, "paced", (struct bench_shape){ PACED_TASKS, .pace = PACE });
    return fflush(stdout) ? 1 : 0;
}
