/* A stream of empty tasks over some groups, in one of several shapes: what w1 times and locks counts.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TASKS = 1000000,
    GROUPS = 64,
    LIMIT = 4,
    SUBMITTERS_MAX = 2,
    DOMAINS_MAX = 64,
    RUN_MAX = 64,
};

/* Tasks of a stream that feeds itself: each submits the next one, to the next group. */
struct chain {
    struct bench_stream *stream;
    int at, left;
};

struct submitter {
    struct bench_stream *stream;
    int tasks;
    int first; /* group to begin with */
};

struct bench_stream {
    struct bench_shape shape; /* with its defaults filled in */
    weir_executor *ex;
    weir_group *group[GROUPS];
    char key[GROUPS][8];
    char domain[DOMAINS_MAX][8];
    struct chain chain[GROUPS];
    int rounds;
};

/* ---- submitting -------------------------------------------------------------------------------- */

static int empty(void **value, void *arg)
{
    (void)value;
    (void)arg;
    return 0;
}

static int feed(void **value, void *chain_arg)
{
    struct chain *chain = chain_arg;
    struct bench_stream *s = chain->stream;

    (void)value;
    if (--chain->left > 0)
        bench_must(weir_submit(NULL, s->group[++chain->at % s->shape.groups], feed, chain, NULL),
                   "weir_submit");
    return 0;
}

static void submit_chains(struct bench_stream *s)
{
    for (int i = 0; i < s->shape.groups; i++) {
        s->chain[i] = (struct chain){ s, i, s->shape.tasks / s->shape.groups };
        bench_must(weir_submit(NULL, s->group[i], feed, &s->chain[i], NULL), "weir_submit");
    }
}

static void submit_runs(struct bench_stream *s, int tasks, int first)
{
    static void *args[RUN_MAX]; /* they have none */
    int run = s->shape.run;

    for (int i = 0; i < tasks / run; i++)
        if (weir_submit_many(NULL, s->group[(first + i) % s->shape.groups], empty, args,
                             (size_t)run, NULL) != run)
            bench_die("weir_submit_many did not take all");
}

static void *submit(void *submitter_arg)
{
    struct submitter *submitter = submitter_arg;
    struct bench_stream *s = submitter->stream;
    int groups = s->shape.groups, first = submitter->first;

    if (s->shape.feeds_itself)
        submit_chains(s);
    else if (s->shape.run > 1)
        submit_runs(s, submitter->tasks, first);
    else if (s->shape.by_key)
        for (int i = 0; i < submitter->tasks; i++)
            bench_must(
                weir_submit_key(NULL, s->ex, s->key[(first + i) % groups], empty, NULL, NULL),
                "weir_submit_key");
    else
        for (int i = 0; i < submitter->tasks; i++)
            bench_must(weir_submit(NULL, s->group[(first + i) % groups], empty, NULL, NULL),
                       "weir_submit");
    return NULL;
}

double bench_stream_round(struct bench_stream *s)
{
    struct submitter submitter[SUBMITTERS_MAX];
    pthread_t thread[SUBMITTERS_MAX];
    int count = s->shape.submitters;
    weir_time begin = weir_now();

    for (int i = 0; i < count; i++)
        submitter[i] = (struct submitter){ s, s->shape.tasks / count, s->shape.groups / count * i };
    for (int i = 1; i < count; i++)
        if (pthread_create(&thread[i], NULL, submit, &submitter[i]))
            bench_die("no thread to submit from");
    submit(&submitter[0]);
    for (int i = 1; i < count; i++)
        pthread_join(thread[i], NULL);
    bench_must(weir_executor_drain(s->ex, WEIR_FOREVER), "weir_executor_drain");
    s->rounds++;
    return (double)(weir_now() - begin) / s->shape.tasks;
}

/* ---- making one -------------------------------------------------------------------------------- */

/* "g7" is of the domain 7 modulo their number; 0 is the default one. */
static int domain_for(const char **domain, const char *key, void *stream_arg)
{
    const struct bench_stream *s = stream_arg;
    unsigned long number = strtoul(key + 1, NULL, 10) % (unsigned long)s->shape.domains;

    if (number)
        *domain = s->domain[number];
    return 0;
}

static weir_executor *executor_new(struct bench_stream *s)
{
    weir_domain_policy domains[DOMAINS_MAX] = { { .name = NULL } };
    int count = s->shape.domains, limit = s->shape.limit;

    if (!count)
        return bench_executor(WEIR_POLICY(.group_limit = limit));
    for (int i = 1; i < count; i++) {
        snprintf(s->domain[i], sizeof(s->domain[i]), "d%d", i);
        domains[i - 1] = (weir_domain_policy){ .name = s->domain[i],
                                               .slots = limit,
                                               .slots_mode = i % 2 ? WEIR_RESERVED : WEIR_MAX };
    }
    return bench_executor(
        WEIR_POLICY(.group_limit = limit, .domains = domains, .domain_count = (size_t)count - 1,
                    .slots = (int64_t)count * limit, .domain_for = domain_for, .domain_arg = s));
}

static int given_or(int given, int otherwise)
{
    return given ? given : otherwise;
}

static void guard_all(struct bench_stream *s)
{
    weir_guard *guard;

    bench_must(
        weir_guard_new(&guard, NULL, "never binds", WEIR_BULKHEAD(.limit = WEIR_PERMITS_MAX), NULL),
        "weir_guard_new");
    for (int i = 0; i < s->shape.groups; i++)
        bench_must(weir_group_guard_add(NULL, s->group[i], guard, 0), "weir_group_guard_add");
    weir_guard_unref(guard);
}

struct bench_stream *bench_stream_new(const struct bench_shape *shape)
{
    struct bench_stream *s = calloc(1, sizeof(*s));

    if (!s)
        bench_die("no memory");
    s->shape = *shape;
    s->shape.tasks = given_or(shape->tasks, TASKS);
    s->shape.groups = given_or(shape->groups, GROUPS);
    s->shape.limit = given_or(shape->limit, LIMIT);
    s->shape.submitters = given_or(shape->submitters, 1);
    s->ex = executor_new(s);
    bench_groups(s->group, (size_t)s->shape.groups, s->ex);
    if (shape->guarded)
        guard_all(s);
    for (int i = 0; i < s->shape.groups; i++) {
        strcpy(s->key[i], weir_group_key(s->group[i]));
        if (shape->on_threads)
            bench_must(weir_group_run_on(s->group[i], WEIR_THREADS), "weir_group_run_on");
        if (shape->pace)
            bench_must(weir_group_pace(s->group[i], shape->pace, 1000000000, 1), "weir_group_pace");
    }
    return s;
}

weir_executor *bench_stream_executor(struct bench_stream *s)
{
    return s->ex;
}

void bench_stream_free(struct bench_stream *s)
{
    weir_executor_stats stats = { .size = sizeof(stats) };
    int in_chains = s->shape.tasks / s->shape.groups * s->shape.groups;
    int tasks = s->shape.feeds_itself ? in_chains : s->shape.tasks;

    bench_must(weir_executor_stats_get(&stats, s->ex), "weir_executor_stats_get");
    if (stats.succeeded != (uint64_t)s->rounds * (uint64_t)tasks)
        bench_die("%llu tasks succeeded", (unsigned long long)stats.succeeded);
    weir_executor_free(s->ex);
    free(s);
}
