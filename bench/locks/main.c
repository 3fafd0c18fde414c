/* weir-bench-locks: how many locks a task passes from submit to end, and how many of them are the executor's own, which
 * all its tasks share. A program by itself, since its library counts what it locks (WEIR_COUNT_LOCKS).
 * SPDX-License-Identifier: MIT */
#include "bench.h"
#include "executor/state.h"
#include "runtime/worker.h"

#include <stdlib.h>

enum { PACED_TASKS = 100000, PACE = 100000 };

/* ---- counting ---------------------------------------------------------------------------------- */

/* One thread's, written by it alone; outlives it. */
struct count {
    struct count *next;
    _Atomic uint64_t all, wide;
};

/* Memory whose locks are executor-wide. */
struct span {
    _Atomic uintptr_t begin, end;
};

static _Atomic(struct count *) counts;
static _Thread_local struct count *own;
static struct span wide[3];

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

static bool is_wide(const struct wr_lock *lock)
{
    uintptr_t at = (uintptr_t)lock;

    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
        if (at >= wr_load(&wide[i].begin, relaxed) && at < wr_load(&wide[i].end, relaxed))
            return true;
    return false;
}

void wr_lock_counted(const struct wr_lock *lock)
{
    struct count *count = own_count();

    wr_store(&count->all, wr_load(&count->all, relaxed) + 1, relaxed);
    if (is_wide(lock))
        wr_store(&count->wide, wr_load(&count->wide, relaxed) + 1, relaxed);
}

static void span_set(struct span *span, const void *begin, size_t size)
{
    wr_store(&span->begin, (uintptr_t)begin, relaxed);
    wr_store(&span->end, (uintptr_t)begin + size, relaxed);
}

/* Groups, domains and threads have locks of their own, which lie elsewhere. */
static void set_wide(const struct weir_executor *ex)
{
    span_set(&wide[0], ex, sizeof(*ex));
    span_set(&wide[1], ex->domains, ex->domains ? sizeof(*ex->domains) : 0);
    span_set(&wide[2], ex->crew.runtime, sizeof(*ex->crew.runtime));
}

/* So far. Threads that have nothing to do may count one more at any time: near enough. */
static void sum_up(double *all, double *of_executor)
{
    *all = *of_executor = 0;
    for (struct count *c = wr_load(&counts, acquire); c; c = c->next) {
        *all += (double)wr_load(&c->all, relaxed);
        *of_executor += (double)wr_load(&c->wide, relaxed);
    }
}

/* ---- measuring --------------------------------------------------------------------------------- */

static void measure(struct bench_out *out, const char *metric, struct bench_shape shape)
{
    struct bench_stream *stream = bench_stream_new(&shape);
    double all, of_executor, all_before, of_executor_before, tasks = shape.tasks;
    char name[BENCH_NAME_MAX];

    set_wide(bench_stream_executor(stream));
    bench_stream_round(stream); /* grows what grows with tasks */
    sum_up(&all_before, &of_executor_before);
    bench_stream_round(stream);
    sum_up(&all, &of_executor);
    bench_stream_free(stream);
    bench_put(out, BENCH_WEIR, metric, (all - all_before) / tasks);
    snprintf(name, sizeof(name), "%s_wide", metric);
    bench_put(out, BENCH_WEIR, name, (of_executor - of_executor_before) / tasks);
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
