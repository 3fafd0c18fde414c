// oneTBB: a group is a task_arena, or a function_node of a flow graph.
// usage: tbb w1|w2 flow|arena, tbb w3 arena|prio, tbb w4 flow
// SPDX-License-Identifier: MIT
#include "common.h"

#include <atomic>
#include <memory>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <string>
#include <vector>

using namespace oneapi::tbb;

// What one queued task carries: a function and its argument.
struct Task {
    void (*fn)(void *);
    void *arg;
};

using Node = flow::function_node<Task>;

static flow::continue_msg run(const Task &task)
{
    task.fn(task.arg);
    return {};
}

static std::atomic<bool> open_{ false };
static uint64_t burn_steps;

static void empty(void *)
{
    __asm__ volatile("");
}

static void hold(void *)
{
    while (!open_)
        usleep(1000);
}

static void flood(void *)
{
    burn(burn_steps);
}

static void neighbour(void *sample)
{
    static_cast<struct sample *>(sample)->started = now_ns();
}

// ---- w1 -------------------------------------------------------------------------------------------

static double w1_flow()
{
    flow::graph graph;
    std::vector<std::unique_ptr<Node>> node;

    for (int i = 0; i < GROUPS; i++)
        node.emplace_back(new Node(graph, LIMIT, run));
    uint64_t begin = now_ns();
    for (int i = 0; i < TASKS; i++)
        node[i % GROUPS]->try_put(Task{ empty, nullptr });
    graph.wait_for_all();
    return double(now_ns() - begin) / double(TASKS);
}

static double w1_arena()
{
    std::vector<std::unique_ptr<task_arena>> arena;
    std::vector<std::unique_ptr<task_group>> group;

    for (int i = 0; i < GROUPS; i++) {
        arena.emplace_back(new task_arena(LIMIT, 0));
        arena.back()->initialize();
        group.emplace_back(new task_group);
    }
    uint64_t begin = now_ns();
    for (int i = 0; i < TASKS; i++) {
        Task task{ empty, nullptr };
        arena[i % GROUPS]->enqueue(group[i % GROUPS]->defer([task] { run(task); }));
    }
    for (int i = 0; i < GROUPS; i++)
        arena[i]->execute([&] { group[i]->wait(); });
    return double(now_ns() - begin) / double(TASKS);
}

static void w1(const std::string &variant)
{
    double ns[ROUNDS];

    for (int round = -WARM_UPS; round < ROUNDS; round++) {
        double took = variant == "flow" ? w1_flow() : w1_arena();
        if (round >= 0)
            ns[round] = took;
    }
    print_w1(("tbb-" + variant).c_str(), ns);
}

// ---- w2 -------------------------------------------------------------------------------------------

static void w2_flow()
{
    flow::graph graph;
    Node node(graph, 1, run);
    double before = status_kb("VmRSS");

    for (int i = 0; i <= TASKS; i++)
        node.try_put(Task{ i ? empty : hold, nullptr });
    print_w2("tbb-flow", before);
    open_ = true;
    graph.wait_for_all();
}

static void w2_arena()
{
    task_arena arena(1, 0);
    task_group group;

    arena.initialize();
    double before = status_kb("VmRSS");
    for (int i = 0; i <= TASKS; i++) {
        Task task{ i ? empty : hold, nullptr };
        arena.enqueue(group.defer([task] { run(task); }));
    }
    print_w2("tbb-arena", before);
    open_ = true;
    arena.execute([&] { group.wait(); });
}

// ---- w3 -------------------------------------------------------------------------------------------

static struct sample sample[TICKS];

template <class Submit> static void submit_neighbours(Submit submit)
{
    uint64_t tick = now_ns();

    for (int i = 0; i < TICKS; i++) {
        tick += TICK_NS;
        sleep_until(tick);
        sample[i].tick = tick;
        sample[i].submitted = now_ns();
        submit(Task{ neighbour, &sample[i] });
    }
}

// A flow graph is not measured: there the neighbour waited for the whole flood.
static void w3(const std::string &variant)
{
    using priority = task_arena::priority;
    // Two workers; the submitting thread only submits.
    global_control control(global_control::max_allowed_parallelism, 3);
    task_arena a(FLOOD_LIMIT, 0);
    task_arena b(FLOOD_LIMIT, 0, variant == "prio" ? priority::high : priority::normal);
    task_group in_a, in_b;

    burn_steps = burn_calibrate();
    a.initialize();
    b.initialize();
    for (int i = 0; i < FLOOD; i++)
        a.enqueue(in_a.defer([] { flood(nullptr); }));
    submit_neighbours([&](Task task) { b.enqueue(in_b.defer([task] { run(task); })); });
    b.execute([&] { in_b.wait(); });
    print_w3(("tbb-" + variant).c_str(), sample);
    leave();
}

// ---- w4 -------------------------------------------------------------------------------------------

// A node per node of the graph, made once and run many times.
static double w4_run(bool layered, double *edge_ns)
{
    using Step = flow::continue_node<flow::continue_msg>;
    global_control control(global_control::max_allowed_parallelism, FLOW_WORKERS);
    flow::graph graph;
    flow::broadcast_node<flow::continue_msg> start(graph);
    std::vector<std::unique_ptr<Step>> node;
    double ns[FLOW_ROUNDS];
    uint64_t begin = now_ns(), luck = 12345, edges = 0;

    for (int i = 0; i < FLOW_NODES; i++) {
        node.emplace_back(new Step(graph, [](const flow::continue_msg &m) {
            empty(nullptr);
            return m;
        }));
        int up[2], count = flow_edges(up, i, layered, &luck);
        for (int k = 0; k < count; k++, edges++)
            flow::make_edge(*node[up[k]], *node[i]);
        if (!count)
            flow::make_edge(start, *node[i]);
    }
    *edge_ns = double(now_ns() - begin) / double(edges);
    for (int round = -FLOW_WARM_UPS; round < FLOW_ROUNDS; round++) {
        begin = now_ns();
        start.try_put(flow::continue_msg());
        graph.wait_for_all();
        if (round >= 0)
            ns[round] = double(now_ns() - begin) / FLOW_NODES;
    }
    qsort(ns, FLOW_ROUNDS, sizeof(ns[0]), compare_double);
    return ns[FLOW_ROUNDS / 2];
}

static void w4()
{
    double edge_ns, chain = w4_run(false, &edge_ns), layered = w4_run(true, &edge_ns);

    printf("RESULT w4 tbb-flow chain_ns=%.1f layered_ns=%.1f build_ns_per_edge=%.1f\n", chain,
           layered, edge_ns);
}

int main(int argc, char **argv)
{
    std::string workload = argc > 1 ? argv[1] : "", variant = argc > 2 ? argv[2] : "";

    if (workload == "w1")
        w1(variant);
    else if (workload == "w2" && variant == "flow")
        w2_flow();
    else if (workload == "w2")
        w2_arena();
    else if (workload == "w3")
        w3(variant);
    else if (workload == "w4")
        w4();
    else
        return 2;
    leave();
}
