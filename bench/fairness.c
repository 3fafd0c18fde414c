/* fairness: groups of equal weight, one of which has a thousand times as many tasks as the others; and groups
 * of different weight. Who gets how many starts while all have something to do?
 *
 * The figures are distances, so that less is better: 1 - Jain's index, (sum x)^2 / (n sum x^2), and the
 * largest deviation of a group's share from its weight, in per cent.
 * SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "bench.h"

enum {
    GROUPS = 10,
    SKEW = 1000,
    LIGHT = 400, /* tasks of each light group; the heavy one has SKEW times as many, in stages */
    BURN_NS = 20000,
    WEIGHTS = 4,    /* groups of weight 1, 2, 3, 4                                            */
    WEIGHED = 4000, /* tasks of each                                                          */
};

struct scene {
    _Atomic uint64_t count[GROUPS];
    _Atomic bool over; /* a group has run dry: from here on it is no contest */
    uint64_t until;
    _Atomic bool open;
};

struct one {
    struct scene *scene;
    int group;
};

static int count_one(void **value, void *one_arg)
{
    struct one *one = one_arg;
    weir_time until = weir_now() + BURN_NS;

    (void)value;
    if (wr_load(&one->scene->over, relaxed))
        return 0;
    while (weir_now() < until)
        ;
    if (wr_add(&one->scene->count[one->group], 1, relaxed) + 1 == one->scene->until)
        wr_store(&one->scene->over, true, relaxed);
    return 0;
}

static int gate(void **value, void *scene_arg)
{
    struct scene *scene = scene_arg;

    (void)value;
    while (!wr_load(&scene->open, acquire))
        weir_sleep(weir_in_ms(1));
    return 0;
}

/* Fills all queues while the executor's permits are held, then lets them go. */
static void contest(struct scene *scene, const weir_group_policy *groups, int count,
                    const uint64_t *tasks, uint32_t workers)
{
    weir_executor *ex = bench_executor(WEIR_POLICY(.workers = workers, .inflight_max = workers,
                                                   .groups = groups, .group_count = (size_t)count));
    struct one one[GROUPS];

    for (uint32_t i = 0; i < workers; i++) {
        char key[] = { 'g', 'a', 't', 'e', (char)('0' + i), '\0' }; /* a group each */
        bench_must(weir_submit_key(NULL, ex, key, gate, scene, NULL), "weir_submit_key");
    }
    for (int g = 0; g < count; g++) {
        weir_group *group;
        one[g] = (struct one){ scene, g };
        bench_must(weir_group_get(&group, ex, groups[g].key), "weir_group_get");
        for (uint64_t i = 0; i < tasks[g]; i++)
            bench_must(weir_submit(NULL, group, count_one, &one[g], NULL), "weir_submit");
    }
    wr_store(&scene->open, true, release);
    while (!wr_load(&scene->over, relaxed))
        weir_sleep(weir_in_ms(1));
    weir_executor_free(ex); /* what is left is refused */
}

static void skewed(struct bench_out *out)
{
    static const char *const keys[GROUPS] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
    weir_group_policy groups[GROUPS];
    struct scene scene = { .until = LIGHT };
    uint64_t tasks[GROUPS];
    double sum = 0, squares = 0;

    for (int g = 0; g < GROUPS; g++) {
        groups[g] = (weir_group_policy){ .key = keys[g], .limit = 4 };
        tasks[g] = g ? LIGHT : (uint64_t)LIGHT * SKEW;
    }
    contest(&scene, groups, GROUPS, tasks, 1);
    for (int g = 0; g < GROUPS; g++) {
        double x = (double)wr_load(&scene.count[g], relaxed);
        sum += x;
        squares += x * x;
    }
    bench_put(out, BENCH_WEIR, "jain_distance", 1 - sum * sum / (GROUPS * squares));
}

static void weighed(struct bench_out *out, const char *metric, uint32_t workers)
{
    static const char *const keys[WEIGHTS] = { "a", "b", "c", "d" };
    weir_group_policy groups[WEIGHTS];
    struct scene scene = { .until = WEIGHED };
    uint64_t tasks[WEIGHTS];
    double sum = 0, weights = 0, worst = 0;

    for (int g = 0; g < WEIGHTS; g++) {
        groups[g] = (weir_group_policy){ .key = keys[g], .limit = 4, .weight = g + 1 };
        tasks[g] = WEIGHED;
        weights += g + 1;
    }
    contest(&scene, groups, WEIGHTS, tasks, workers);
    for (int g = 0; g < WEIGHTS; g++)
        sum += (double)wr_load(&scene.count[g], relaxed);
    for (int g = 0; g < WEIGHTS; g++) {
        double share = (double)wr_load(&scene.count[g], relaxed) / sum;
        double off = 100 * (share * weights / (g + 1) - 1);
        worst = off > worst ? off : -off > worst ? -off : worst;
    }
    bench_put(out, BENCH_WEIR, metric, worst);
}

void bench_fairness(struct bench_out *out)
{
    skewed(out);
    weighed(out, "weight_off_percent", 1);
    weighed(out, "weight_off_percent_2", 2);
}
