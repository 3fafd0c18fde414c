/* Nodes that are tasks of their own; see own.h.
 * SPDX-License-Identifier: MIT */
#include "flow/own.h"

#include "base/os.h"

#include <weir/error.h>

struct wr_own *wr_own_of(struct wr_run *run, uint32_t n)
{
    return run->flow->hot[n].flags & WR_F_OWN ? &run->own[run->flow->hot[n].own] : NULL;
}

void wr_own_init(struct wr_own *own, struct wr_run *run, uint32_t n)
{
    *own = (struct wr_own){ .run = run, .node = n };
    wr_list_init(&own->link);
}

/* ---- the task -------------------------------------------------------------------------------------- */

uint32_t wr_own_next_stage(struct wr_own *own)
{
    wr_bump(&own->stage);
    return wr_load(&own->stage, relaxed);
}

void wr_own_keep(struct wr_own *own, weir_task *task)
{
    own->task = task;
    if (!own->ended)
        wr_list_append(&own->run->under_way, &own->link);
}

void wr_own_keep_task(struct wr_own *own, weir_task *task, uint32_t stage)
{
    bool over;

    wr_lock(&own->run->lock);
    over = wr_load(&own->stage, relaxed) != stage;
    if (!over)
        wr_own_keep(own, task);
    wr_unlock(&own->run->lock);
    if (over)
        weir_task_unref(task);
    else if (wr_own_is_decided(own))
        wr_own_cancel(own);
}

void wr_own_drop_task(struct wr_own *own)
{
    weir_task *task;

    wr_lock(&own->run->lock);
    task = own->task;
    own->task = NULL;
    wr_list_remove(&own->link);
    wr_bump(&own->stage);
    wr_unlock(&own->run->lock);
    weir_task_unref(task);
}

weir_task *wr_own_ref_task(struct wr_own *own)
{
    weir_task *task;

    wr_lock(&own->run->lock);
    task = own->task ? weir_task_ref(own->task) : NULL;
    wr_unlock(&own->run->lock);
    return task;
}

void wr_own_cancel(struct wr_own *own)
{
    weir_task *task = wr_own_ref_task(own);

    weir_task_cancel(task);
    weir_task_unref(task);
}

void wr_own_fini(struct wr_own *own)
{
    weir_task_unref(own->task);
    wr_node_drop_value(own->run, own->node, own->value);
    wr_locals_release(own->sees);
    wr_locals_release(wr_load(&own->leaves, acquire));
    wr_flow_unref(own->flow);
}

/* ---- task locals --------------------------------------------------------------------------------------- */

void wr_own_keep_locals(struct wr_own *own)
{
    struct wr_locals *locals = wr_locals_capture(), *former;

    if (locals == own->run->locals) {
        wr_locals_release(locals);
        locals = NULL;
    }
    former = wr_swap(&own->leaves, locals, acq_rel);
    wr_locals_release(former);
}

/* The node has ended; `with` is where its context was kept. */
static void end_with_locals(struct wr_own *with)
{
    struct wr_locals *locals = wr_swap(&with->leaves, NULL, acq_rel);

    wr_node_ended_with(with->run, with->node, locals);
    wr_locals_release(locals);
}

/* ---- one try --------------------------------------------------------------------------------------- */

static void set_runner(struct wr_own *own, weir_task *runner)
{
    wr_store(&own->runner, runner, relaxed);
}

static int own_body(void **value, void *own_arg)
{
    struct wr_own *own = own_arg;
    struct weir_step step = { .run = own->run, .node = own->node };
    void *locals;
    int error;

    wr_store(&own->began, true,
             relaxed); /* before the word says so: a close that finds it RUNNING knows */
    if (!wr_plan_begin(&own->run->plan, own->node, &locals))
        return WEIR_ECANCELED; /* decided in the meantime */
    set_runner(own, weir_task_self());
    error = wr_node_call(&step, value);
    wr_own_keep_locals(own);
    set_runner(own, NULL);
    own->adds = step.added;
    return error;
}

bool wr_own_runs(struct wr_own *own)
{
    return wr_load(&own->began, relaxed);
}

static void own_over(void *own_arg)
{
    wr_run_unref(((struct wr_own *)own_arg)->run);
}

/* A node's total deadline counts from when it is ready, over all its tries and the pauses between them. */
static void set_deadline(struct wr_own *own, int64_t total_ms)
{
    if (total_ms > 0 && total_ms <= WEIR_SPAN_MAX_MS)
        own->until = wr_os_now() + total_ms * 1000000;
}

int64_t wr_own_time_left(const struct wr_own *own, int64_t most)
{
    int64_t ns = own->until - wr_os_now(), ms = ns > 0 ? (ns + 999999) / 1000000 : 0;

    return own->until && ms < most ? ms : most;
}

void wr_own_tell_end(struct wr_own *own, weir_task *task)
{
    set_runner(own, task);
    end_with_locals(own);
    set_runner(own, NULL);
}

/* The task is WEIR_DONE, and so is the node; also if its body has not begun: a rejection_fn has made a result in its place. */
static bool finish(struct wr_own *own, void *value)
{
    struct wr_plan *plan = &own->run->plan;
    void *locals;

    if (!wr_own_runs(own) && !wr_plan_begin(plan, own->node, &locals))
        return false;
    return wr_plan_finish(plan, own->node, 0, value);
}

/* The nodes that its body has added see what the body has left. */
static void start_added(struct wr_own *own, void *value)
{
    struct wr_locals *locals = wr_swap(&own->leaves, NULL, acq_rel), *former;

    former = wr_locals_install(locals ? locals : wr_locals_ref(own->run->locals));
    wr_own_start_added(own->adds, value);
    wr_locals_release(wr_locals_install(former));
}

static void own_done(weir_task *task, const weir_result *result, void *own_arg)
{
    struct wr_own *own = own_arg;
    struct wr_run *run = own->run;
    uint32_t n = own->node;
    void *value = result->outcome == WEIR_DONE ? weir_task_take(task) : NULL;
    bool decided;

    wr_own_drop_task(own);
    if (wr_own_try_again(own, result))
        return;
    if (result->outcome == WEIR_DONE && own->adds && wr_own_runs(own)) {
        start_added(own, value); /* the node goes on */
        return;
    }
    if (result->outcome == WEIR_DONE)
        decided = finish(own, value);
    else
        decided = wr_plan_decide(&run->plan, n, result->outcome, result->reason, result->error,
                                 WR_NODE_NONE);
    if (decided)
        wr_own_tell_end(own, task);
    else
        wr_node_drop_value(run, n, value);
}

/* Its total deadline has passed before the next try. */
static void end_late(struct wr_own *own)
{
    if (wr_plan_decide(&own->run->plan, own->node, WEIR_TIMED_OUT, WEIR_REASON_TOTAL_DEADLINE,
                       WEIR_ETIMEDOUT, WR_NODE_NONE))
        wr_node_ended(own->run, own->node);
}

void wr_own_submit(struct wr_own *own, bool last)
{
    struct wr_run *run = own->run;
    const weir_node_options *o = wr_run_options(run, own->node);
    weir_task_options options = { .size = sizeof(options),
                                  .id = wr_flow_node(run->flow, own->node)->id,
                                  .cost = o->cost,
                                  .priority = o->priority,
                                  .drop = o->drop,
                                  .deadlines = o->deadlines,
                                  .on_done = own_done,
                                  .on_done_arg = own,
                                  .drop_arg = own_over };
    weir_task *task = NULL;
    uint32_t stage;
    int rc;

    if (!own->tries++)
        set_deadline(own, o->deadlines.total_ms);
    else if (own->until)
        options.deadlines.total_ms = wr_own_time_left(own, o->deadlines.total_ms);
    if (own->until && !options.deadlines.total_ms) {
        end_late(own);
        return;
    }
    stage = wr_own_next_stage(own);
    wr_run_ref(run);
    wr_run_ref(run); /* until the handle is kept */
    if (last)
        rc = wr_submit_last(&task, run->group, o->group, own_body, own, &options);
    else if (o->group)
        rc = weir_submit_key(&task, wr_group_executor(run->group), o->group, own_body, own,
                             &options);
    else
        rc = weir_submit(&task, run->group, own_body, own, &options);
    if (!rc) {
        wr_own_keep_task(own, task, stage);
    } else {
        wr_run_unref(run);
        if (wr_plan_decide(&run->plan, own->node, rc == WEIR_ECLOSED ? WEIR_REJECTED : WEIR_FAILED,
                           rc == WEIR_ECLOSED ? WEIR_REASON_SHUT_DOWN : WEIR_REASON_NONE, rc,
                           WR_NODE_NONE))
            wr_node_ended(run, own->node);
    }
    wr_run_unref(run);
}

void wr_own_start(struct wr_work *work, uint32_t n, bool last)
{
    struct wr_run *run = work->run;
    struct wr_own *own = wr_own_of(run, n);
    struct wr_locals *locals = work->locals ? work->locals : run->locals, *former;

    former = wr_locals_install(wr_locals_ref(locals));
    if (run->flow->body[n].fn) {
        if (wr_run_options(run, n)->retries)
            own->sees = wr_locals_ref(locals);
        wr_plan_put_off(&run->plan, n, NULL, &work->moves);
        wr_own_submit(own, last && work->moves.ended.first == WR_NODE_NONE);
    } else {
        wr_own_begin_sub(own);
    }
    wr_locals_release(wr_locals_install(former));
}
