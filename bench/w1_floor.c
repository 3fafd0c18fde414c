/* The floor of w1: what is left of a task if nothing is done but to hand it over. A record of one cache line, a queue
 * per group under a lock of its own, a look at the clock on either side; one thread submits, one runs what it finds.
 * There are no limits, turns, sleepers, results or reasons. An executor that keeps a record and the times of
 * each task cannot be faster; with its second worker, on two CPUs, even this is slower.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/os.h"
#include "bench.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    TASKS = 1000000,
    GROUPS = 64,
    BATCH = 32, /* records made at once; and tasks that are run in a row */
    WARM_UPS = 1,
    ROUNDS = 3,
};

struct record {
    struct wr_list link;
    int (*fn)(void **value, void *arg);
    void *arg, *value;
    weir_time queued_at, started_at, ended_at;
};

static_assert(sizeof(struct record) == 64, "as large as a task of weir's");

struct group {
    _Alignas(64) struct wr_lock lock;
    _Atomic uint32_t queued; /* also read without the lock */
    struct wr_list queue;
    struct wr_list *freed, *unused; /* stacks of records, by link.next */
    int64_t waited_ns, ran_ns;
};

static struct group groups[GROUPS];
static _Atomic uint64_t ended;
static _Atomic bool over;

static int empty(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return 0;
}

/* ---- one side -------------------------------------------------------------------------------- */

static void push(struct wr_list **stack, struct record *record)
{
    record->link.next = *stack;
    *stack = &record->link;
}

/* Records that ran are used again after those at hand, as in weir. Under the lock. */
static struct record *unused_record(struct group *group)
{
    struct wr_list *first;

    if (!group->unused) {
        group->unused = group->freed;
        group->freed = NULL;
    }
    if (!group->unused) {
        struct record *more = aligned_alloc(64, BATCH * sizeof(*more));
        if (!more)
            bench_die("no memory for records");
        for (int i = 0; i < BATCH; i++)
            push(&group->unused, &more[i]);
    }
    first = group->unused;
    group->unused = first->next;
    __builtin_prefetch(group->unused, 1);
    return WR_CONTAINER(first, struct record, link);
}

static void submit(struct group *group)
{
    weir_time now = wr_os_now();
    struct record *record;

    wr_lock(&group->lock);
    record = unused_record(group);
    record->fn = empty;
    record->arg = NULL;
    record->queued_at = now;
    wr_list_append(&group->queue, &record->link);
    wr_store(&group->queued, wr_load(&group->queued, relaxed) + 1, relaxed);
    wr_unlock(&group->lock);
}

/* ---- the other ------------------------------------------------------------------------------- */

/* One has ended, if any; answers the next, if any. */
static struct record *next_record(struct group *group, struct record *last, weir_time now,
                                  bool goes_on)
{
    struct record *next = NULL;

    wr_lock(&group->lock);
    if (last) {
        last->ended_at = now;
        group->ran_ns += now - last->started_at;
        push(&group->freed, last);
    }
    if (goes_on && !wr_list_empty(&group->queue)) {
        next = WR_CONTAINER(group->queue.next, struct record, link);
        wr_list_remove(&next->link);
        wr_store(&group->queued, wr_load(&group->queued, relaxed) - 1, relaxed);
        next->started_at = now;
        group->waited_ns += now - next->queued_at;
    }
    wr_unlock(&group->lock);
    return next;
}

static uint64_t run_some(struct group *group)
{
    weir_time now = wr_os_now();
    struct record *record = next_record(group, NULL, now, true);
    uint64_t count = 0;

    while (record) {
        record->fn(&record->value, record->arg);
        now = wr_os_now();
        record = next_record(group, record, now, ++count < BATCH);
    }
    return count;
}

static void *run(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !wr_load(&over, relaxed); i++) {
        struct group *group = &groups[i % GROUPS];
        if (wr_load(&group->queued, relaxed))
            wr_add(&ended, run_some(group), release);
    }
    return NULL;
}

static double round_ns(uint64_t until)
{
    weir_time begin = weir_now();

    for (int i = 0; i < TASKS; i++)
        submit(&groups[i % GROUPS]);
    while (wr_load(&ended, acquire) < until)
        wr_os_relax();
    return (double)(weir_now() - begin) / TASKS;
}

void bench_w1_floor(struct bench_out *out)
{
    double ns[ROUNDS];
    pthread_t thread;

    for (int i = 0; i < GROUPS; i++)
        wr_list_init(&groups[i].queue);
    if (pthread_create(&thread, NULL, run, NULL))
        bench_die("no thread to run tasks on");
    for (int i = -WARM_UPS; i < ROUNDS; i++) {
        double took = round_ns((uint64_t)(WARM_UPS + i + 1) * TASKS);
        if (i >= 0)
            ns[i] = took;
    }
    wr_store(&over, true, relaxed);
    pthread_join(thread, NULL);
    bench_put(out, BENCH_REFERENCE, "hand_over_ns", bench_median(ns, ROUNDS));
}
