/* The critical path: the chain of nodes that decided how long a run took.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "flow/look.h"

#include <stdlib.h>
#include <weir/error.h>

static weir_time ready_at(const struct wr_run *run, uint32_t n, weir_time now)
{
    return wr_times_get(&run->times[n].ready_at, now);
}

static weir_time ended_at(const struct wr_run *run, uint32_t n, weir_time now)
{
    weir_time ended = wr_times_get(&run->times[n].ended_at, now);

    return ended ? ended : now;
}

/* A node that nothing but limits held back, or that has run; but not one that the run did not wait for. */
static bool may_be_last(const struct wr_run *run, uint32_t n, weir_time now)
{
    return ready_at(run, n, now) &&
           wr_word_outcome(wr_load(&run->plan.word[n], acquire)) != WEIR_SKIPPED;
}

/* The one of these nodes that ended last, or has not ended. */
static uint32_t last_of(const struct wr_run *run, weir_time now)
{
    uint32_t last = WR_NODE_NONE;

    for (uint32_t n = 0; n < run->flow->count; n++)
        if (may_be_last(run, n, now) &&
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

/* Adds the times of a node on the path. A node that failed before it was ready took no time; one that ended before its body
 * began only waited. */
static void add_times(weir_critical_path *path, const struct wr_run *run, uint32_t n, weir_time now)
{
    weir_time ready = ready_at(run, n, now), ended = ended_at(run, n, now);
    weir_time started = wr_times_get(&run->times[n].started_at, ended);

    if (!ready)
        return;
    path->waited_ns += (started ? started : ended) - ready;
    path->ran_ns += started ? ended - started : 0;
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
        path.id[i] = wr_flow_node(run->flow, n)->id;
        add_times(&path, run, n, now);
    }
    return wr_options_store(out, &path, sizeof(path));
}
