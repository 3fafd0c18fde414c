/* Why a node has not ended: what it waits for, and what that waits for, down to the limit that holds the chain.
 * SPDX-License-Identifier: MIT */
#include "flow/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <weir/error.h>

enum { SHOWN_FIRST = 8, SHOWN_LAST = 4 }; /* of a long chain */

/* One node on the way down. */
struct at {
    struct wr_run *run;
    uint32_t node;
};

/* ---- the way down ------------------------------------------------------------------------------------ */

/* Whether its i-th edge is one that it waits for. */
static bool waits_for(const struct at *at, uint32_t i)
{
    const struct weir_flow *flow = at->run->flow;

    return wr_run_standing(at->run, flow->in[i]) != WR_STANDS_ENDED &&
           wr_plan_waits_for(&at->run->plan, at->node, flow->in_kind[i]);
}

/* Of the nodes that it waits for, one that says most: a ready one waits for a limit. */
static bool go_up(struct at *at)
{
    const struct weir_flow *flow = at->run->flow;
    uint32_t best = WR_NODE_NONE;
    int best_rank = -1;

    for (uint32_t i = flow->in_at[at->node]; i < flow->in_at[at->node + 1]; i++) {
        enum wr_standing standing = wr_run_standing(at->run, flow->in[i]);
        int rank = standing == WR_STANDS_READY ? 2 : standing == WR_STANDS_RUNNING ? 1 : 0;
        if (rank <= best_rank || !waits_for(at, i))
            continue;
        best = flow->in[i];
        best_rank = rank;
    }
    at->node = best;
    return best != WR_NODE_NONE;
}

/* A node at the end of the run that has not ended. */
static bool first_open(struct at *at)
{
    const struct weir_flow *flow = at->run->flow;

    for (uint32_t i = 0; i < flow->sinks; i++) {
        at->node = flow->sink[i];
        if (wr_run_standing(at->run, at->node) != WR_STANDS_ENDED)
            return true;
    }
    return false;
}

/* The next node to look at; false: this one says it all. */
static bool go_down(struct at *at)
{
    struct wr_run *sub;

    switch (wr_run_standing(at->run, at->node)) {
    case WR_STANDS_WAITING:
        return go_up(at);
    case WR_STANDS_RUNNING:
        sub = wr_run_sub(at->run, at->node);
        if (!sub)
            return false;
        at->run = sub;
        return first_open(at);
    default:
        return false;
    }
}

/* ---- sentences ---------------------------------------------------------------------------------------- */

static void say_waiting(struct wr_text *text, const struct at *at)
{
    const struct weir_flow *flow = at->run->flow;
    const char *between = "";

    wr_text_add(text, "node \"%s\" waits for", wr_flow_node(flow, at->node)->id);
    for (uint32_t i = flow->in_at[at->node]; i < flow->in_at[at->node + 1]; i++) {
        if (!waits_for(at, i))
            continue;
        wr_text_add(text, "%s %s \"%s\" (%s)", between, wr_need_name(flow->in_kind[i]),
                    wr_flow_node(flow, flow->in[i])->id, wr_standing_name(at->run, flow->in[i]));
        between = ",";
    }
    wr_text_add(text, "\n");
}

/* The task that a ready node waits with: its own, or the turn that is on its way. */
static weir_task *task_of(const struct at *at)
{
    struct wr_own *own = wr_own_of(at->run, at->node);
    weir_task *task;

    wr_lock(&at->run->lock);
    task = own ? own->task : at->run->latest;
    if (task)
        weir_task_ref(task);
    wr_unlock(&at->run->lock);
    return task;
}

static void say_ready(struct wr_text *text, const struct at *at)
{
    weir_task *task = task_of(at);
    weir_why why = { .size = sizeof(why) };
    char limit[256] = "other nodes of the run go first";

    if (task && !weir_task_done(task) && !weir_task_why(&why, task) &&
        why.reason != WEIR_REASON_RUNNING && why.reason != WEIR_REASON_FLOW)
        weir_why_text(limit, sizeof(limit), &why);
    else if (why.reason == WEIR_REASON_FLOW)
        snprintf(limit, sizeof(limit), "it is tried again after a pause");
    wr_text_add(text, "node \"%s\" is ready: %s\n", wr_flow_node(at->run->flow, at->node)->id,
                limit);
    weir_task_unref(task);
}

static void say_ended(struct wr_text *text, const struct at *at)
{
    weir_node_result result;

    wr_node_result(&result, at->run, at->node);
    wr_text_add(text, "node \"%s\" is %s", result.id, wr_standing_name(at->run, at->node));
    if (result.reason)
        wr_text_add(text, ": %s", weir_reason_text(result.reason));
    if (result.cause)
        wr_text_add(text, " (\"%s\")", result.cause);
    else if (result.outcome == WEIR_FAILED)
        wr_text_add(text, ": %s", weir_strerror(result.error));
    wr_text_add(text, "\n");
}

static void say(struct wr_text *text, const struct at *at)
{
    switch (wr_run_standing(at->run, at->node)) {
    case WR_STANDS_WAITING:
        say_waiting(text, at);
        break;
    case WR_STANDS_READY:
        say_ready(text, at);
        break;
    case WR_STANDS_RUNNING:
        wr_text_add(text, "node \"%s\" %s\n", wr_flow_node(at->run->flow, at->node)->id,
                    wr_run_sub(at->run, at->node) ? "runs its sub-flow" : "is running");
        break;
    default:
        say_ended(text, at);
    }
}

/* The whole way, without its middle if it is long. The run goes on meanwhile, so its length may change. */
static void say_all(struct wr_text *text, const struct at *first)
{
    struct at at = *first;
    uint64_t length = 1, i = 0;

    while (go_down(&at))
        length++;
    at = *first;
    do {
        if (i < SHOWN_FIRST || i + SHOWN_LAST >= length)
            say(text, &at);
        else if (i == SHOWN_FIRST)
            wr_text_add(text, "... and %llu nodes in between\n",
                        (unsigned long long)(length - SHOWN_FIRST - SHOWN_LAST));
        i++;
    } while (go_down(&at));
}

int weir_run_why(char **text, weir_task *task, const char *id)
{
    struct at at = { .run = wr_run_of(task) };
    struct wr_text all = { .text = NULL };
    bool open;

    if (!text || !at.run)
        return WEIR_EINVAL;
    *text = NULL;
    if (id && !wr_run_find(&at.run, &at.node, id))
        return WEIR_EINVAL;
    open = id || first_open(&at);
    if (open)
        say_all(&all, &at);
    else
        wr_text_add(&all, "every node of the run has ended\n");
    if (all.failed) {
        free(all.text);
        return WEIR_ENOMEM;
    }
    *text = all.text;
    return 0;
}
