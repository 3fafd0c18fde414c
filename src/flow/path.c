/* The critical path: the chain of nodes that decided how long a run took.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "flow/look.h"

#include <stdlib.h>
#include <weir/error.h>

static weir_time started_at(const struct wr_run *run, uint32_t n)
{
    return wr_load(&run->times[n].started_at, relaxed);
}

static weir_time ended_at(const struct wr_run *run, uint32_t n, weir_time now)
{
    weir_time ended = wr_load(&run->times[n].ended_at, relaxed);

    return ended ? ended : now;
}

/* The node whose body ended last, or still runs. */
static uint32_t last_of(const struct wr_run *run, weir_time now)
{
    uint32_t last = WR_NODE_NONE;

    for (uint32_t n = 0; n < run->flow->count; n++)
        if (started_at(run, n) &&
            (last == WR_NODE_NONE || ended_at(run, n, now) > ended_at(run, last, now)))
            last = n;
    return last;
}

static size_t length_of(const struct wr_run *run, uint32_t last)
{
    size_t length = 0;

    for (; last != WR_NODE_NONE; last = run->plan.links[last].by)
        length++;
    return length;
}

int weir_run_critical_path(weir_critical_path *out, weir_task *task)
{
    struct wr_run *run = wr_run_of(task);
    weir_critical_path path = { .size = sizeof(path) };
    weir_time now = wr_os_now();
    uint32_t n;

    if (!out || !run || !run->times)
        return WEIR_EINVAL;
    n = last_of(run, now);
    path.count = length_of(run, n);
    path.id = path.memory = malloc((path.count + 1) * sizeof(path.id[0]));
    if (!path.memory)
        return WEIR_ENOMEM;
    path.id[path.count] = NULL;
    for (size_t i = path.count; i-- > 0; n = run->plan.links[n].by) {
        weir_time started = started_at(run, n);
        path.id[i] = wr_flow_node(run->flow, n)->id;
        path.waited_ns += started - wr_load(&run->times[n].ready_at, relaxed);
        path.ran_ns += ended_at(run, n, now) - started;
    }
    return wr_options_store(out, &path, sizeof(path));
}
