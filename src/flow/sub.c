/* Sub-flows: nodes that are runs of their own, and those that a body has added; see own.h.
 * SPDX-License-Identifier: MIT */
#include "flow/own.h"

#include <weir/error.h>

void wr_own_end_sub(struct wr_own *own)
{
    uint64_t closed = wr_load(&own->run->closed, acquire);
    weir_task *task = wr_own_ref_task(own);

    if (task && wr_word_outcome(closed) == WEIR_TIMED_OUT)
        wr_whole_time_out(task, wr_word_reason(closed));
    else
        weir_task_cancel(task);
    weir_task_unref(task);
}

/* The sub-run has ended. Its handle is kept all the same, since its values are the run's. */
static void end_sub(struct wr_own *own)
{
    wr_lock(&own->run->lock);
    own->ended = true;
    wr_list_remove(&own->link);
    wr_unlock(&own->run->lock);
}

/* The value of the only node that has no other after it; NULL: there are several such nodes. */
static void *value_of_run(struct wr_run *run)
{
    weir_node_result result;

    if (run->flow->sinks != 1)
        return NULL;
    wr_node_result(&result, run, run->flow->sink[0]);
    return result.value;
}

static void sub_done(weir_task *task, const weir_result *result, void *own_arg)
{
    struct wr_own *own = own_arg;
    struct wr_run *run = own->run;
    void *value = own->flow ? own->value : value_of_run(wr_run_of(task));
    bool decided;

    end_sub(own);
    if (result->outcome == WEIR_DONE)
        decided = wr_plan_finish(&run->plan, own->node, 0, value);
    else
        decided = wr_plan_decide(&run->plan, own->node, result->outcome, result->reason,
                                 result->error, WR_NODE_NONE);
    if (decided && result->outcome == WEIR_DONE)
        own->value = NULL; /* else bodies may still have it as their input */
    if (decided)
        wr_own_tell_end(own, task);
    wr_run_told(run, 1);
    wr_run_unref(run);
}

/* The sub-run's options: those of the run, as far as they are for all nodes, and those of the node. */
static weir_run_options options_of(struct wr_own *own, void *input)
{
    struct wr_run *run = own->run;
    const weir_node_options *o = wr_run_options(run, own->node);
    int64_t total_ms = o && o->deadlines.total_ms != WEIR_NO_LIMIT ? o->deadlines.total_ms : 0;

    if (own->flow && total_ms) { /* the body has had its part of it */
        total_ms = wr_own_time_left(wr_own_of(run, own->node), total_ms);
        total_ms = total_ms ? total_ms : 1;
    }

    return (weir_run_options){ .size = sizeof(weir_run_options),
                               .id = wr_flow_node(run->flow, own->node)->id,
                               .input = input,
                               .deadline_ms = total_ms,
                               .interrupt = run->plan.interrupt,
                               .times = run->times != NULL,
                               .skip = run->plan.skip,
                               .on_done = sub_done,
                               .on_done_arg = own };
}

/* True: the node was not decided, and from here on its run does not settle before the sub-run that is started now. */
static bool holds_run(struct wr_own *own)
{
    if (!wr_run_hold(own->run))
        return false;
    if (!wr_own_is_decided(own))
        return true;
    wr_run_told(own->run, 1);
    return false;
}

/* Starts a sub-run; does nothing if the node was decided meanwhile. */
static void start_sub(struct wr_own *own, struct weir_flow *flow, void *input)
{
    struct wr_run *run = own->run;
    const weir_node_options *o = own->flow ? NULL : wr_run_options(run, own->node);
    weir_run_options options = options_of(own, input);
    weir_group *group = run->group;
    int rc = o && o->group ? weir_group_get(&group, wr_group_executor(group), o->group) : 0;

    if (!holds_run(own))
        return;
    wr_own_keep_locals(own); /* those of nodes inside stay there */
    wr_run_ref(run);         /* for sub_done */
    wr_run_ref(run);         /* ours */
    if (!rc)
        rc = wr_run_start(NULL, flow, group, &options, own);
    if (!rc && wr_own_is_decided(own))
        wr_own_end_sub(own);
    if (rc) {
        wr_run_unref(run);
        if (wr_plan_decide(&run->plan, own->node, WEIR_FAILED, WEIR_REASON_NONE, rc, WR_NODE_NONE))
            wr_node_ended(run, own->node);
        wr_run_told(run, 1);
    }
    wr_run_unref(run);
}

void wr_own_start_added(struct wr_own *own, void *value)
{
    own->value = value;
    start_sub(own, own->flow, own->input);
}

void wr_own_begin_sub(struct wr_own *own)
{
    struct wr_run *run = own->run;
    struct weir_step step = { .run = run, .node = own->node };
    void *param = wr_node_param(run, own->node);
    int error = wr_node_call(&step, NULL);

    if (!error)
        start_sub(own, wr_run_options(run, own->node)->flow, param ? param : run->input);
    else if (wr_plan_finish(&run->plan, own->node, error, NULL))
        wr_node_ended(run, own->node);
}
