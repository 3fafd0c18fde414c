/* A C++ program that uses each macro that makes options: compiled and run by tools/headers, once with the
 * library and once with the simulator.
 * SPDX-License-Identifier: MIT */
#include <atomic>
#include <cstdio>
#include <weir.h>
#include <weir/sim.h>

#define CHECK(condition) \
    ((condition) ? (void)0 : (std::printf("%d: not so: %s\n", __LINE__, #condition), (void)failed++))

static int failed;
static std::atomic<int> ran;

static int work(void **, void *)
{
    ran++;
    return 0;
}

static int node(void **, void *, weir_step *step)
{
    ran += weir_step_input(step) == &ran;
    return 0;
}

static void body(void *)
{
    ran++;
}

static bool is_sized(const weir_task_options *opt, int cost)
{
    return opt->size == sizeof(*opt) && opt->cost == (uint32_t)cost;
}

static void use_guards();

static void use_all(void *)
{
    weir_executor *ex = nullptr;
    weir_runtime *rt = nullptr;
    weir_task *task = nullptr;
    weir_message message;
    weir_result result = {};

    result.size = sizeof(result);
    CHECK(is_sized(WEIR_TASK(), 0));
    CHECK(is_sized(WEIR_TASK(.cost = 2), 2));

    CHECK(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .group_limit = 2), &message) == 0);
    CHECK(weir_submit_key(&task, ex, "a", work, nullptr, WEIR_TASK(.cost = 2)) == 0);
    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0);
    CHECK(result.outcome == WEIR_DONE);
    weir_task_unref(task);

    weir_flow *flow = nullptr;
    weir_group *group = nullptr;
    CHECK(weir_group_get(&group, ex, "a") == 0);
    CHECK(weir_flow_new(&flow, "flow") == 0);
    CHECK(weir_flow_node(nullptr, flow, "node", node, nullptr, WEIR_NODE(.cost = 1)) == 0);
    CHECK(weir_flow_start(&task, flow, group, WEIR_RUN(.input = &ran), &message) == 0);
    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0);
    CHECK(result.outcome == WEIR_DONE);
    weir_task_unref(task);
    weir_flow_free(flow);
    weir_executor_free(ex);

    CHECK(weir_runtime_new(&rt, WEIR_RUNTIME(.workers = 1)) == 0);
    CHECK(weir_spawn(rt, body, nullptr, WEIR_SPAWN(.run_on = WEIR_THREADS)) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);

    CHECK(ran == 3);
    use_guards();
}

static int guarded(weir_guard *guard)
{
    WEIR_SCOPED_PERMIT(permit);
    int rc = weir_guard_enter(&permit, guard, WEIR_NOW_OR_NEVER);

    return rc ? rc : permit.guard == guard ? 0 : -1;
}

static void use_guards()
{
    weir_guard *guard = nullptr;

    CHECK(weir_guard_new(&guard, nullptr, "c++", WEIR_BULKHEAD(.limit = 1), nullptr) == 0);
    CHECK(guarded(guard) == 0);
    CHECK(guarded(guard) == 0); /* the first one has left */
    weir_guard_unref(guard);
    CHECK(weir_backoff(2, 0, WEIR_RETRY(.first_ns = 5)) == 10);
}

#ifdef SIMULATED
int main()
{
    weir_sim_report report = WEIR_SIM_REPORT;

    CHECK(weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 3), use_all, nullptr) == 0);
    CHECK(report.size == sizeof(report) && report.seed == 3);
    return failed != 0;
}
#else
int main()
{
    use_all(nullptr);
    return failed != 0;
}
#endif
