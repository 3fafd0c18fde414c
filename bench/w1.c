/* w1: what a task costs from submit to end: a million empty ones over 64 groups, submitted by one thread, by
 * two, and by one, fifty in a call; and over domains. Results, times and reasons are kept, as they always are; nobody asks for
 * a handle.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TASKS = 1000000,
    GROUPS = 64,
    LIMIT = 4,
    WARM_UPS = 1, /* rounds that do not count: peers have a heap to grow, too */
    ROUNDS = 3,
    DOMAINS_MAX = 64,
    RUN = 50, /* tasks per call, where there are several */
};

struct submitter {
    weir_group **group;
    int tasks;
    int first; /* group to begin with */
    int run;   /* tasks per call      */
};

static int empty(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return 0;
}

static void *submit(void *submitter_arg)
{
    struct submitter *s = submitter_arg;
    static void *args[RUN]; /* they have none */

    for (int i = 0; s->run == 1 && i < s->tasks; i++)
        bench_must(weir_submit(NULL, s->group[(s->first + i) % GROUPS], empty, NULL, NULL),
                   "weir_submit");
    for (int i = 0; s->run > 1 && i < s->tasks / s->run; i++)
        if (weir_submit_many(NULL, s->group[(s->first + i) % GROUPS], empty, args, (size_t)s->run,
                             NULL) != s->run)
            bench_die("w1: weir_submit_many did not take all");
    return NULL;
}

/* All tasks, from as many threads as there are submitters. Answers the time for one. */
static double round_ns(weir_executor *ex, struct submitter *submitter, int count)
{
    pthread_t thread[2];
    weir_time begin = weir_now();

    for (int i = 1; i < count; i++)
        if (pthread_create(&thread[i], NULL, submit, &submitter[i]))
            bench_die("no thread to submit from");
    submit(&submitter[0]);
    for (int i = 1; i < count; i++)
        pthread_join(thread[i], NULL);
    bench_must(weir_executor_drain(ex, WEIR_FOREVER), "weir_executor_drain");
    return (double)(weir_now() - begin) / TASKS;
}

static void check_counts(weir_executor *ex)
{
    weir_executor_stats stats = { .size = sizeof(stats) };

    bench_must(weir_executor_stats_get(&stats, ex), "weir_executor_stats_get");
    if (stats.succeeded != (uint64_t)(WARM_UPS + ROUNDS) * TASKS)
        bench_die("w1: %llu tasks succeeded", (unsigned long long)stats.succeeded);
}

/* How it is done this time. */
struct shape {
    int submitters;
    int run;     /* tasks per call                                               */
    int domains; /* 0: none; else every other one of them may borrow             */
};

static char domain_name[DOMAINS_MAX][8];

/* "g7" is of the domain 7 modulo their number; 0 is the default one. */
static int domain_for(const char **domain, const char *key, void *shape_arg)
{
    const struct shape *shape = shape_arg;
    unsigned long number = strtoul(key + 1, NULL, 10) % (unsigned long)shape->domains;

    if (number)
        *domain = domain_name[number];
    return 0;
}

static weir_executor *shaped_executor(struct shape *shape)
{
    weir_domain_policy domains[DOMAINS_MAX] = { { .name = NULL } };

    if (!shape->domains)
        return bench_executor(WEIR_POLICY(.group_limit = LIMIT));
    for (int i = 1; i < shape->domains; i++) {
        snprintf(domain_name[i], sizeof(domain_name[i]), "d%d", i);
        domains[i - 1] = (weir_domain_policy){ .name = domain_name[i],
                                               .slots = LIMIT,
                                               .slots_mode = i % 2 ? WEIR_RESERVED : WEIR_MAX };
    }
    return bench_executor(WEIR_POLICY(.group_limit = LIMIT, .domains = domains,
                                      .domain_count = (size_t)shape->domains - 1,
                                      .slots = (int64_t)shape->domains * LIMIT,
                                      .domain_for = domain_for, .domain_arg = shape));
}

static double ns_per_task(struct shape shape)
{
    weir_executor *ex = shaped_executor(&shape);
    weir_group *group[GROUPS];
    struct submitter submitter[2];
    double ns[ROUNDS];
    int count = shape.submitters;

    bench_groups(group, GROUPS, ex);
    for (int i = 0; i < count; i++)
        submitter[i] = (struct submitter){ group, TASKS / count, GROUPS / count * i, shape.run };
    for (int i = 0; i < WARM_UPS; i++)
        round_ns(ex, submitter, count);
    for (int i = 0; i < ROUNDS; i++)
        ns[i] = round_ns(ex, submitter, count);
    check_counts(ex);
    weir_executor_free(ex);
    return bench_median(ns, ROUNDS);
}

static void measure_one(struct bench_out *out)
{
    bench_put(out, BENCH_WEIR, "ns_per_task", ns_per_task((struct shape){ 1, 1, 0 }));
    bench_put(out, BENCH_WEIR, "peak_mb", bench_peak() / (1 << 20));
}

static void measure_two(struct bench_out *out)
{
    bench_put(out, BENCH_WEIR, "ns_per_task_2", ns_per_task((struct shape){ 2, 1, 0 }));
}

static void measure_many(struct bench_out *out)
{
    bench_put(out, BENCH_WEIR, "ns_per_task_many", ns_per_task((struct shape){ 1, RUN, 0 }));
}

static void measure_domains(struct bench_out *out)
{
    bench_put(out, BENCH_WEIR, "ns_per_task_4d", ns_per_task((struct shape){ 1, 1, 4 }));
    bench_put(out, BENCH_WEIR, "ns_per_task_60d", ns_per_task((struct shape){ 1, 1, 60 }));
}

void bench_w1(struct bench_out *out)
{
    bench_apart(out, measure_one);
    bench_apart(out, measure_two);
    bench_apart(out, measure_many);
    bench_apart(out, measure_domains);
    bench_apart(out, bench_w1_floor);
}
