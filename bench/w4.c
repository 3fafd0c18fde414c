/* w4: what a node of a flow costs: a chain of 100,000, and 1,000 layers of 100 with two edges each from the layer before;
 * built and frozen once, run many times on two workers. Beside it the floor: the same graphs in flat arrays with a counter
 * per node and one thread, which knows no limits, results, deadlines or callbacks. And what nodes cost that have more.
 * SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum {
    NODES = 100000,
    LAYERS = 1000,
    WIDTH = NODES / LAYERS,
    WARM_UPS = 2,
    ROUNDS = 9,
    WORKERS = 2,
};

/* ---- the graphs ------------------------------------------------------------------------------------- */

struct graph {
    int edges;
    int *from, *to; /* in the order of their targets */
};

static void edge_add(struct graph *graph, int from, int to)
{
    graph->from[graph->edges] = from;
    graph->to[graph->edges++] = to;
}

static struct graph graph_new(bool layered)
{
    struct graph graph = { .from = malloc(2 * NODES * sizeof(int)),
                           .to = malloc(2 * NODES * sizeof(int)) };
    uint64_t luck = 12345;

    if (!graph.from || !graph.to)
        bench_die("w4: no memory for a graph");
    for (int i = layered ? WIDTH : 1; i < NODES; i++) {
        int before = (i / WIDTH - 1) * WIDTH, x = (int)(bench_random(&luck) % WIDTH);
        int y = (x + 1 + (int)(bench_random(&luck) % (WIDTH - 1))) % WIDTH;
        edge_add(&graph, layered ? before + x : i - 1, i);
        if (layered)
            edge_add(&graph, before + y, i);
    }
    return graph;
}

static void graph_free(struct graph *graph)
{
    free(graph->from);
    free(graph->to);
}

/* ---- weir ------------------------------------------------------------------------------------------- */

static int empty(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    return 0;
}

static int begin(weir_step *step, void *arg)
{
    (void)step;
    (void)arg;
    return 0;
}

static void result(const weir_node_result *node, void *arg)
{
    (void)node;
    (void)arg;
}

/* *build_ns (may be NULL) gets the time for all of it, with the check. */
static weir_flow *flow_new(const struct graph *graph, const weir_node_options *opt,
                           double *build_ns)
{
    weir_node **node = malloc(NODES * sizeof(weir_node *));
    weir_time began = weir_now();
    weir_flow *flow;
    char id[16];

    bench_must(weir_flow_new(&flow, "w4"), "weir_flow_new");
    for (int i = 0; i < NODES; i++) {
        snprintf(id, sizeof(id), "%d", i);
        bench_must(weir_flow_node(&node[i], flow, id, empty, NULL, opt), "weir_flow_node");
    }
    for (int i = 0; i < graph->edges; i++)
        bench_must(weir_node_needs(node[graph->to[i]], node[graph->from[i]], WEIR_MUST),
                   "weir_node_needs");
    bench_must(weir_flow_check(NULL, flow), "weir_flow_check");
    if (build_ns)
        *build_ns = (double)(weir_now() - began);
    free(node);
    return flow;
}

static double run_ns(weir_flow *flow, weir_group *group, double *bytes)
{
    weir_run_stats stats = { .size = sizeof(stats) };
    weir_time began = weir_now();
    weir_task *run;
    double ns;

    bench_must(weir_flow_start(&run, flow, group, NULL, NULL), "weir_flow_start");
    bench_must(weir_task_wait(NULL, run, WEIR_FOREVER), "weir_task_wait");
    ns = (double)(weir_now() - began) / NODES;
    bench_must(weir_run_stats_get(&stats, run), "weir_run_stats_get");
    if (stats.succeeded != NODES)
        bench_die("w4: %llu nodes succeeded", (unsigned long long)stats.succeeded);
    if (bytes)
        *bytes = (double)stats.bytes / NODES;
    weir_task_unref(run);
    return ns;
}

/* The time for a node of the graph; the flow's nodes are as `opt` says. */
static double node_ns(bool layered, const weir_node_options *opt, double *bytes, double *edge_ns)
{
    weir_executor *ex =
        bench_executor(WEIR_POLICY(.workers = WORKERS, .group_limit = WEIR_NO_LIMIT));
    struct graph graph = graph_new(layered);
    weir_flow *flow = flow_new(&graph, opt, edge_ns);
    double ns[ROUNDS];
    weir_group *group;

    bench_groups(&group, 1, ex);
    for (int i = -WARM_UPS; i < ROUNDS; i++) {
        double took = run_ns(flow, group, bytes);
        if (i >= 0)
            ns[i] = took;
    }
    if (edge_ns)
        *edge_ns /= graph.edges;
    weir_flow_free(flow);
    graph_free(&graph);
    weir_executor_free(ex);
    return bench_median(ns, ROUNDS);
}

static void measure_plain(struct bench_out *out)
{
    double bytes, edge_ns;

    bench_put(out, BENCH_WEIR, "chain_ns", node_ns(false, NULL, NULL, NULL));
    bench_put(out, BENCH_WEIR, "layered_ns", node_ns(true, NULL, &bytes, &edge_ns));
    bench_put(out, BENCH_WEIR, "bytes_per_node", bytes);
    bench_put(out, BENCH_WEIR, "build_ns_per_edge", edge_ns);
}

static void measure_more(struct bench_out *out)
{
    bench_put(out, BENCH_WEIR, "callbacks_ns",
              node_ns(false, WEIR_NODE(.begin = begin, .result = result), NULL, NULL));
    bench_put(out, BENCH_WEIR, "own_task_ns", node_ns(false, WEIR_NODE(.task = true), NULL, NULL));
    bench_put(out, BENCH_WEIR, "own_group_ns",
              node_ns(false, WEIR_NODE(.group = "other"), NULL, NULL));
    bench_put(out, BENCH_WEIR, "deadline_ns",
              node_ns(false, WEIR_NODE(.deadlines = { .run_ms = 60000 }), NULL, NULL));
}

/* ---- the floor -------------------------------------------------------------------------------------- */

struct floor_node {
    int (*fn)(void **value, void *arg, weir_step *step);
    void *arg;
};

struct floor {
    struct floor_node *node;
    int *first, *target, *degree, *ready;
    _Atomic int *left;
};

static struct floor floor_new(const struct graph *graph)
{
    struct floor f = { .node = calloc(NODES, sizeof(*f.node)),
                       .first = calloc(NODES + 2, sizeof(int)),
                       .target = calloc((size_t)graph->edges, sizeof(int)),
                       .degree = calloc(NODES, sizeof(int)),
                       .ready = calloc(NODES, sizeof(int)),
                       .left = calloc(NODES, sizeof(int)) };

    for (int i = 0; i < graph->edges; i++) {
        f.first[graph->from[i] + 2]++;
        f.degree[graph->to[i]]++;
    }
    for (int i = 1; i <= NODES; i++)
        f.first[i + 1] += f.first[i];
    for (int i = 0; i < graph->edges; i++)
        f.target[f.first[graph->from[i] + 1]++] = graph->to[i];
    for (int i = 0; i < NODES; i++)
        f.node[i] = (struct floor_node){ empty, NULL };
    return f;
}

static double floor_run_ns(struct floor *f)
{
    weir_time began = weir_now();
    int count = 0, done = 0;
    void *value;

    memcpy((void *)f->left, f->degree, NODES * sizeof(int));
    for (int i = 0; i < NODES && !f->degree[i]; i++)
        f->ready[count++] = i;
    while (count) {
        int i = f->ready[--count];
        f->node[i].fn(&value, f->node[i].arg, NULL);
        done++;
        for (int k = f->first[i]; k < f->first[i + 1]; k++)
            if (wr_sub(&f->left[f->target[k]], 1, acq_rel) == 1)
                f->ready[count++] = f->target[k];
    }
    if (done != NODES)
        bench_die("w4: the floor ran %d nodes", done);
    return (double)(weir_now() - began) / NODES;
}

static double floor_ns(bool layered)
{
    struct graph graph = graph_new(layered);
    struct floor f = floor_new(&graph);
    double ns[ROUNDS];

    for (int i = -WARM_UPS; i < ROUNDS; i++) {
        double took = floor_run_ns(&f);
        if (i >= 0)
            ns[i] = took;
    }
    graph_free(&graph);
    free(f.node);
    free(f.first);
    free(f.target);
    free(f.degree);
    free(f.ready);
    free((void *)f.left);
    return bench_median(ns, ROUNDS);
}

static void measure_floor(struct bench_out *out)
{
    bench_put(out, "floor", "chain_ns", floor_ns(false));
    bench_put(out, "floor", "layered_ns", floor_ns(true));
}

void bench_w4(struct bench_out *out)
{
    bench_apart(out, measure_plain);
    bench_apart(out, measure_more);
    bench_apart(out, measure_floor);
}
