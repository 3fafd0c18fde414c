/* timers: deadlines that are not needed in the end, as most are not: armed, and cancelled in another
 * order while a million of them are armed.
 * SPDX-License-Identifier: MIT */
#include "runtime/timer.h"

#include "bench.h"

#include <stdlib.h>

enum { TIMERS = 1000000 };

static const int64_t MINUTE_NS = 60000000000;

struct scene {
    struct wr_wheel wheel;
    struct wr_timer timer[TIMERS];
    weir_time deadline[TIMERS];
    struct wr_timer *cancel[TIMERS]; /* in this order */
};

static void scene_init(struct scene *scene)
{
    uint64_t luck = 42;
    weir_time now = weir_now();

    wr_wheel_init(&scene->wheel, now);
    for (size_t i = 0; i < TIMERS; i++) {
        size_t other = bench_random(&luck) % (i + 1);
        wr_timer_init(&scene->timer[i]);
        scene->deadline[i] = now + (weir_time)(bench_random(&luck) % (uint64_t)MINUTE_NS);
        scene->cancel[i] = scene->cancel[other];
        scene->cancel[other] = &scene->timer[i];
    }
}

void bench_timers(struct bench_out *out)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    weir_time begin;

    if (!scene)
        bench_die("no memory for %d timers", TIMERS);
    scene_init(scene);
    begin = weir_now();
    for (size_t i = 0; i < TIMERS; i++)
        wr_timer_arm(&scene->wheel, &scene->timer[i], scene->deadline[i]);
    for (size_t i = 0; i < TIMERS; i++)
        wr_timer_cancel(&scene->wheel, scene->cancel[i]);
    bench_put(out, BENCH_WEIR, "ns_each", (double)(weir_now() - begin) / TIMERS);
    if (wr_wheel_next(&scene->wheel) != WEIR_FOREVER)
        bench_die("a timer is still armed");
    free(scene);
}
