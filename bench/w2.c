/* w2: the memory of a task that waits. A million stand behind a group of limit 1 whose first task holds
 * the permit; each has a handle and can be asked, cancelled and waited for. And the same of tasks without handles.
 * SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { TASKS = 1000000, POLL_MS = 1 };

struct scene {
    _Atomic bool holding; /* the first task has the permit */
    _Atomic bool open;    /* and may give it back          */
    weir_executor *ex;
    weir_group *group;
    weir_task **task;
};

static int hold(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;

    (void)value;
    wr_store(&scene->holding, true, release);
    while (!wr_load(&scene->open, acquire))
        weir_sleep(weir_in_ms(POLL_MS));
    return 0;
}

static int empty(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return 0;
}

/* Once the first task runs, everything is there that does not grow with the number of tasks. */
static void scene_init(struct scene *scene)
{
    *scene = (struct scene){ .ex = bench_executor(WEIR_POLICY(.group_limit = 1)) };
    bench_groups(&scene->group, 1, scene->ex);
    bench_must(weir_submit(NULL, scene->group, hold, scene, NULL), "weir_submit");
    while (!wr_load(&scene->holding, acquire))
        weir_sleep(weir_in_ms(POLL_MS));
}

/* The array of handles is the caller's affair, so its pages are touched before. */
static void make_room_for_handles(struct scene *scene)
{
    scene->task = malloc(TASKS * sizeof(scene->task[0]));
    if (!scene->task)
        bench_die("no memory for %d handles", TASKS);
    memset(scene->task, 0xff, TASKS * sizeof(scene->task[0]));
}

/* Submits the tasks and puts how much memory each takes, to a tenth of a byte: what else a process touches in the
 * meantime is below that. */
static void submit_all(struct bench_out *out, const char *metric, struct scene *scene)
{
    double rss = bench_rss();

    for (int i = 0; i < TASKS; i++)
        bench_must(
            weir_submit(scene->task ? &scene->task[i] : NULL, scene->group, empty, NULL, NULL),
            "weir_submit");
    rss = bench_rss() - rss;
    bench_put(out, BENCH_WEIR, metric, (double)(long)(rss / TASKS * 10 + 0.5) / 10);
}

/* The figure is worth something only if the task can do what tasks can. */
static void check_waiting(weir_task *task)
{
    weir_why why = { .size = sizeof(why) };
    weir_result result = WEIR_RESULT;

    bench_must(weir_task_why(&why, task), "weir_task_why");
    if (why.reason != WEIR_REASON_GROUP_LIMIT || why.limit != 1 || why.held != 1)
        bench_die("w2: a task does not know what it waits for");
    if (weir_task_done(task) || !weir_task_cancel(task))
        bench_die("w2: a waiting task could not be cancelled");
    bench_must(weir_task_wait(&result, task, WEIR_FOREVER), "weir_task_wait");
    if (result.outcome != WEIR_CANCELLED)
        bench_die("w2: a cancelled task has outcome %d", (int)result.outcome);
}

/* Lets all tasks run, and checks that as many as are expected succeeded. */
static void run_all(struct scene *scene, uint64_t expected)
{
    weir_executor_stats stats = { .size = sizeof(stats) };

    wr_store(&scene->open, true, release);
    bench_must(weir_executor_drain(scene->ex, WEIR_FOREVER), "weir_executor_drain");
    bench_must(weir_executor_stats_get(&stats, scene->ex), "weir_executor_stats_get");
    if (stats.succeeded != expected)
        bench_die("w2: %llu tasks succeeded", (unsigned long long)stats.succeeded);
}

static void measure_handles(struct bench_out *out)
{
    static const int looked_at[] = { 0, TASKS / 2, TASKS - 1 };
    enum { LOOKED_AT = sizeof(looked_at) / sizeof(looked_at[0]) };
    struct scene scene;

    scene_init(&scene);
    make_room_for_handles(&scene);
    submit_all(out, "bytes_each", &scene);
    for (int i = 0; i < LOOKED_AT; i++)
        check_waiting(scene.task[looked_at[i]]);
    run_all(&scene, 1 + TASKS - LOOKED_AT);
    for (int i = 0; i < TASKS; i++)
        weir_task_unref(scene.task[i]);
    weir_executor_free(scene.ex);
    free(scene.task);
}

static void measure_detached(struct bench_out *out)
{
    struct scene scene;

    scene_init(&scene);
    submit_all(out, "bytes_detached", &scene);
    run_all(&scene, 1 + TASKS);
    weir_executor_free(scene.ex);
}

void bench_w2(struct bench_out *out)
{
    bench_apart(out, measure_handles);
    bench_apart(out, measure_detached);
}
