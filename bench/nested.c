/* nested: bodies that each submit a task and wait for it.
 *
 * Pairs: a child ends only when all parents wait, so all waits stand there at once. Chain: each body submits the next
 * and waits for it; the last ends only when all others wait. And a light task now and then, alone and beside pairs.
 * SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "bench.h"

#include <stdlib.h>

enum { PAIRS_FEW = 1000, PAIRS_MANY = 10000, CHAIN = 2000, LIGHT_TASKS = 1500 };

struct scene {
    weir_executor *ex;
    weir_group *parents, *children;
    uint64_t count;           /* parents, or links of the chain    */
    _Atomic uint64_t waits;   /* bodies that are about to wait     */
    _Atomic uint64_t links;   /* of the chain that have begun      */
    _Atomic uint64_t begun;   /* children                          */
    _Atomic uint64_t pending; /* of these, those in `child`        */
    _Atomic uint64_t ended;   /* parents, or links of the chain    */
    _Atomic bool over;        /* no more pairs                     */
    weir_task **child;        /* those that are to be settled      */
};

static struct scene *scene_new(uint64_t count)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    if (!scene || !(scene->child = calloc(count, sizeof(scene->child[0]))))
        bench_die("no memory");
    scene->ex = bench_executor(WEIR_POLICY(.group_limit = WEIR_NO_LIMIT));
    bench_must(weir_group_get(&scene->parents, scene->ex, "parents"), "weir_group_get");
    bench_must(weir_group_get(&scene->children, scene->ex, "children"), "weir_group_get");
    scene->count = count;
    return scene;
}

static void scene_free(struct scene *scene)
{
    weir_executor_free(scene->ex);
    free(scene->child);
    free(scene);
}

/* Is settled by let_go. */
static int pends(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;

    (void)value;
    scene->child[wr_add(&scene->begun, 1, relaxed)] = weir_task_ref(weir_task_self());
    wr_add(&scene->pending, 1, release);
    return WEIR_PENDING;
}

static int wait_for(struct scene *scene, weir_group *group, weir_fn *fn)
{
    weir_task *task;
    int rc;

    bench_must(weir_submit(&task, group, fn, scene, NULL), "weir_submit");
    wr_add(&scene->waits, 1, acq_rel);
    rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_unref(task);
    wr_add(&scene->ended, 1, release);
    return rc;
}

static int parent(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;

    (void)value;
    return wait_for(scene, scene->children, pends);
}

static int link_of_chain(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;
    bool last = wr_add(&scene->links, 1, relaxed) + 1 == scene->count;

    return last ? pends(value, scene_arg) : wait_for(scene, scene->parents, link_of_chain);
}

/* Ends the children when so many bodies wait. */
static void let_go(struct scene *scene, uint64_t waits, uint64_t children)
{
    while (wr_load(&scene->waits, acquire) < waits || wr_load(&scene->pending, acquire) < children)
        weir_sleep(weir_in_us(50));
    for (uint64_t i = 0; i < children; i++) {
        bench_must(weir_task_settle(scene->child[i], 0, NULL), "weir_task_settle");
        weir_task_unref(scene->child[i]);
    }
    while (wr_load(&scene->ended, acquire) < waits)
        weir_sleep(weir_in_us(50));
}

static void run_pairs(struct scene *scene)
{
    wr_store(&scene->waits, 0, relaxed);
    wr_store(&scene->begun, 0, relaxed);
    wr_store(&scene->ended, 0, relaxed);
    wr_store(&scene->pending, 0, relaxed);
    for (uint64_t i = 0; i < scene->count; i++)
        bench_must(weir_submit(NULL, scene->parents, parent, scene, NULL), "weir_submit");
    let_go(scene, scene->count, scene->count);
}

static double ms_since(weir_time began)
{
    return (double)(weir_now() - began) / 1e6;
}

static double pairs_ms(uint64_t count)
{
    struct scene *scene = scene_new(count);
    weir_time began = weir_now();
    double ms;

    run_pairs(scene);
    ms = ms_since(began);
    scene_free(scene);
    return ms;
}

static double chain_ms(void)
{
    struct scene *scene = scene_new(CHAIN);
    weir_time began = weir_now();
    double ms;

    bench_must(weir_submit(NULL, scene->parents, link_of_chain, scene, NULL), "weir_submit");
    let_go(scene, CHAIN - 1, 1);
    ms = ms_since(began);
    scene_free(scene);
    return ms;
}

/* ---- a light task ------------------------------------------------------------------------------- */

static int light(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* From its submission to its start, one every millisecond. */
static double light_p99_us(weir_executor *ex)
{
    static double us[LIGHT_TASKS];

    for (int i = 0; i < LIGHT_TASKS; i++) {
        weir_result result = WEIR_RESULT;
        weir_task *task;
        weir_sleep(weir_in_ms(1));
        bench_must(weir_submit_key(&task, ex, "light", light, NULL, NULL), "weir_submit_key");
        bench_must(weir_task_wait(&result, task, WEIR_FOREVER), "weir_task_wait");
        us[i] = (double)(result.started_at - result.queued_at) / 1e3;
        weir_task_unref(task);
    }
    qsort(us, LIGHT_TASKS, sizeof(us[0]), by_value);
    return us[LIGHT_TASKS * 99 / 100];
}

/* Pairs come and go for as long as light tasks are measured. A task sees to that, so that no thread of ours competes
 * with the workers for CPUs. */
static int feeds(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;

    (void)value;
    while (!wr_load(&scene->over, relaxed))
        run_pairs(scene);
    return 0;
}

static double light_beside_pairs_us(struct scene *scene)
{
    weir_task *feeder;
    double us;

    bench_must(weir_submit_key(&feeder, scene->ex, "feeder", feeds, scene, NULL),
               "weir_submit_key");
    us = light_p99_us(scene->ex);
    wr_store(&scene->over, true, relaxed);
    bench_must(weir_task_wait(NULL, feeder, WEIR_FOREVER), "weir_task_wait");
    weir_task_unref(feeder);
    return us;
}

static void light_tasks(struct bench_out *out)
{
    struct scene *scene = scene_new(PAIRS_FEW);

    bench_put(out, BENCH_WEIR, "light_alone_p99_us", light_p99_us(scene->ex));
    bench_put(out, BENCH_WEIR, "light_p99_us", light_beside_pairs_us(scene));
    scene_free(scene);
}

void bench_nested(struct bench_out *out)
{
    bench_put(out, BENCH_WEIR, "pairs_1000_ms", pairs_ms(PAIRS_FEW));
    bench_put(out, BENCH_WEIR, "pairs_10000_ms", pairs_ms(PAIRS_MANY));
    bench_put(out, BENCH_WEIR, "chain_2000_ms", chain_ms());
    light_tasks(out);
}
