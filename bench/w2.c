/* w2: the memory of a task that waits. A million stand behind a group of limit 1 whose first task holds
 * the permit; each has a handle and can be asked, cancelled and waited for.
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

/* Once the first task runs, everything is there that does not grow with the number of tasks. The array
 * of handles is the caller's affair, so its pages are touched before. */
static void scene_init(struct scene *scene)
{
    *scene = (struct scene){ .task = malloc(TASKS * sizeof(scene->task[0])) };
    if (!scene->task)
        bench_die("no memory for %d handles", TASKS);
    memset(scene->task, 0xff, TASKS * sizeof(scene->task[0]));
    scene->ex = bench_executor(WEIR_POLICY(.group_limit = 1));
    bench_groups(&scene->group, 1, scene->ex);
    bench_must(weir_submit(NULL, scene->group, hold, scene, NULL), "weir_submit");
    while (!wr_load(&scene->holding, acquire))
        weir_sleep(weir_in_ms(POLL_MS));
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

static void scene_fini(struct scene *scene)
{
    weir_result result = WEIR_RESULT;

    wr_store(&scene->open, true, release);
    bench_must(weir_executor_drain(scene->ex, WEIR_FOREVER), "weir_executor_drain");
    bench_must(weir_task_wait(&result, scene->task[1], WEIR_FOREVER), "weir_task_wait");
    if (result.outcome != WEIR_DONE)
        bench_die("w2: a task has outcome %d", (int)result.outcome);
    for (int i = 0; i < TASKS; i++)
        weir_task_unref(scene->task[i]);
    weir_executor_free(scene->ex);
    free(scene->task);
}

void bench_w2(struct bench_out *out)
{
    struct scene scene;
    double rss;

    scene_init(&scene);
    rss = bench_rss();
    for (int i = 0; i < TASKS; i++)
        bench_must(weir_submit(&scene.task[i], scene.group, empty, NULL, NULL), "weir_submit");
    rss = bench_rss() - rss;
    /* To a tenth of a byte: what else a process touches in the meantime is below that. */
    bench_put(out, BENCH_WEIR, "bytes_each", (double)(long)(rss / TASKS * 10 + 0.5) / 10);
    check_waiting(scene.task[0]);
    check_waiting(scene.task[TASKS / 2]);
    check_waiting(scene.task[TASKS - 1]);
    scene_fini(&scene);
}
