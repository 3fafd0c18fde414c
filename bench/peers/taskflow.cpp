// Taskflow: a group is a semaphore that tasks of a graph acquire. usage: taskflow w1|w2
// SPDX-License-Identifier: MIT
#include "common.h"

#include <atomic>
#include <memory>
#include <string>
#include <taskflow/taskflow.hpp>
#include <vector>

enum { WORKERS = 2, SETTLE_US = 1500000 };

static void empty()
{
    __asm__ volatile("");
}

static double w1_round(tf::Executor &executor)
{
    std::vector<std::unique_ptr<tf::Semaphore>> group;
    tf::Taskflow flow;

    for (int i = 0; i < GROUPS; i++)
        group.emplace_back(new tf::Semaphore(size_t(LIMIT)));
    uint64_t begin = now_ns();
    for (int i = 0; i < TASKS; i++) {
        tf::Task task = flow.emplace([] { empty(); });
        task.acquire(*group[i % GROUPS]);
        task.release(*group[i % GROUPS]);
    }
    executor.run(flow).wait();
    return double(now_ns() - begin) / double(TASKS);
}

static void w1()
{
    tf::Executor executor(WORKERS);
    double ns[ROUNDS];

    for (int round = -WARM_UPS; round < ROUNDS; round++) {
        double took = w1_round(executor);
        if (round >= 0)
            ns[round] = took;
    }
    print_w1("taskflow", ns);
}

// Every release wakes all waiters, so the queue is not drained in the end: that would be quadratic.
static void w2()
{
    static std::atomic<bool> open{ false };
    tf::Executor executor(WORKERS);
    tf::Semaphore group(1);
    tf::Taskflow flow;
    double before = status_kb("VmRSS");

    for (int i = 0; i <= TASKS; i++) {
        tf::Task task = flow.emplace([i] {
            while (i == 0 && !open)
                usleep(1000);
        });
        task.acquire(group);
        task.release(group);
    }
    auto future = executor.run(flow);
    usleep(SETTLE_US);
    print_w2("taskflow", before);
    leave();
}

int main(int argc, char **argv)
{
    std::string workload = argc > 1 ? argv[1] : "";

    if (workload == "w1")
        w1();
    else if (workload == "w2")
        w2();
    else
        return 2;
    leave();
}
