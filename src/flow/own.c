/* Nodes that are tasks of their own, and sub-flows.
 *
 * The node is READY while its task waits, so that it can be skipped, and RUNNING from when its body begins. The task's
 * end is the node's; if the node was decided before, the task's end changes nothing.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "flow/run.h"

#include <weir/error.h>

static void submit_task(struct wr_own *own, bool last);

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

static bool is_decided(const struct wr_own *own)
{
    return wr_word_outcome(wr_load(&own->run->plan.word[own->node], acquire));
}

/* Something is about to be submitted for the node: a try, or the pause before it. What was submitted before has ended, so that
 * no other thread comes here; but one may be late to keep its handle. */
static uint32_t next_stage(struct wr_own *own)
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

/* Keeps the handle, unless that has ended already; if the node was decided meanwhile, the task is cancelled. */
static void keep_task(struct wr_own *own, weir_task *task, uint32_t stage)
{
    bool over;

    wr_lock(&own->run->lock);
    over = wr_load(&own->stage, relaxed) != stage;
    if (!over)
        wr_own_keep(own, task);
    wr_unlock(&own->run->lock);
    if (over)
        weir_task_unref(task);
    else if (is_decided(own))
        wr_own_cancel(own);
}

/* It has ended: its handle is given back, if it was kept. */
static void drop_task(struct wr_own *own)
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

/* A reference to what was submitted for it; NULL: there is none. */
static weir_task *ref_task(struct wr_own *own)
{
    weir_task *task;

    wr_lock(&own->run->lock);
    task = own->task ? weir_task_ref(own->task) : NULL;
    wr_unlock(&own->run->lock);
    return task;
}

void wr_own_cancel(struct wr_own *own)
{
    weir_task *task = ref_task(own);

    weir_task_cancel(task);
    weir_task_unref(task);
}

void wr_own_end_sub(struct wr_own *own)
{
    uint64_t closed = wr_load(&own->run->closed, acquire);
    weir_task *task = ref_task(own);

    if (task && wr_word_outcome(closed) == WEIR_TIMED_OUT)
        wr_whole_time_out(task, wr_word_reason(closed));
    else
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

/* The context of this thread goes on to the nodes that the end of this one makes ready. A body that runs on after its node has
 * ended may come here late, when that makes no difference any more. */
static void keep_locals(struct wr_own *own)
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
    keep_locals(own);
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

static int64_t backoff_of(const weir_node_options *o, uint32_t tries)
{
    int64_t most = o->backoff_max_ms ? o->backoff_max_ms : o->backoff_ms * 64, ms = o->backoff_ms;

    while (--tries && ms < most)
        ms *= 2;
    return ms < most ? ms : most;
}

/* A node's total deadline counts from when it is ready, over all its tries and the pauses between them. */
static void set_deadline(struct wr_own *own, int64_t total_ms)
{
    if (total_ms > 0 && total_ms <= WEIR_SPAN_MAX_MS)
        own->until = wr_os_now() + total_ms * 1000000;
}

/* How many milliseconds are left until then, at most `most`; 0: it has passed. Without a deadline, `most`. */
static int64_t left_of(const struct wr_own *own, int64_t most)
{
    int64_t ns = own->until - wr_os_now(), ms = ns > 0 ? (ns + 999999) / 1000000 : 0;

    return own->until && ms < most ? ms : most;
}

/* Another try sees what the first one saw. */
static void submit_again(struct wr_own *own)
{
    struct wr_locals *former = wr_locals_install(wr_locals_ref(own->sees));

    submit_task(own, false);
    wr_locals_release(wr_locals_install(former));
}

/* The pause before a try is over, or ended from outside. */
static void nap_ended(struct wr_whole *nap, weir_task *task, weir_outcome outcome,
                      weir_reason reason)
{
    struct wr_own *own = WR_CONTAINER(nap, struct wr_own, nap);
    struct wr_run *run = own->run;

    (void)reason;
    wr_run_ref(run);
    drop_task(own);
    wr_whole_over(task);
    if (outcome == WEIR_TIMED_OUT)
        submit_again(own);
    else if (wr_plan_decide(&own->run->plan, own->node, WEIR_FAILED, WEIR_REASON_NONE, own->error,
                            WR_NODE_NONE))
        wr_node_ended(own->run, own->node);
    wr_run_unref(run);
}

static bool nap_inside(struct wr_whole *nap, const weir_task *task)
{
    (void)nap;
    (void)task;
    return false;
}

/* It ends by itself. */
static void look_at_nothing(struct wr_whole *nap, void (*look)(struct weir_task *part, void *arg),
                            void *arg)
{
    (void)nap;
    (void)look;
    (void)arg;
}

static void nap_gone(struct wr_whole *nap)
{
    wr_run_unref(WR_CONTAINER(nap, struct wr_own, nap)->run);
}

/* Another try, now or after a pause. False: there is none. */
static bool try_again(struct wr_own *own, const weir_result *result)
{
    struct wr_run *run = own->run;
    const weir_node_options *o = wr_run_options(run, own->node);
    struct wr_moves moves = WR_NO_MOVES;
    int64_t ms = backoff_of(o, own->tries);
    uint32_t stage;
    weir_task *task;

    if (result->outcome != WEIR_FAILED || !wr_own_runs(own) || own->tries > o->retries ||
        is_decided(own))
        return false;
    ms = left_of(own, ms);
    own->error = result->error;
    wr_store(&own->began, false, relaxed);
    wr_plan_put_off(&run->plan, own->node, NULL, &moves);
    if (moves.ended.first != WR_NODE_NONE) { /* nothing needs it any more */
        wr_node_ended(run, own->node);
        return true;
    }
    if (!ms) {
        submit_again(own);
        return true;
    }
    own->nap = (struct wr_whole){ .ended = nap_ended,
                                  .inside = nap_inside,
                                  .look_at_sole_part = look_at_nothing,
                                  .gone = nap_gone };
    wr_run_ref(run);
    stage = next_stage(own);
    if (wr_submit_whole(&task, run->group, &own->nap, WEIR_TASK(.deadlines = { .total_ms = ms }))) {
        wr_run_unref(run);
        return false;
    }
    keep_task(own, task, stage);
    return true;
}

/* Callbacks of nodes are still part of the run, and must not wait for it: see wr_telling_task. */
static void tell_end(struct wr_own *own, weir_task *task)
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

    drop_task(own);
    if (try_again(own, result))
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
        tell_end(own, task);
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

static void submit_task(struct wr_own *own, bool last)
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
        options.deadlines.total_ms = left_of(own, o->deadlines.total_ms);
    if (own->until && !options.deadlines.total_ms) {
        end_late(own);
        return;
    }
    stage = next_stage(own);
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
        keep_task(own, task, stage);
    } else {
        wr_run_unref(run);
        if (wr_plan_decide(&run->plan, own->node, rc == WEIR_ECLOSED ? WEIR_REJECTED : WEIR_FAILED,
                           rc == WEIR_ECLOSED ? WEIR_REASON_SHUT_DOWN : WEIR_REASON_NONE, rc,
                           WR_NODE_NONE))
            wr_node_ended(run, own->node);
    }
    wr_run_unref(run);
}

/* ---- sub-flows --------------------------------------------------------------------------------------- */

/* Its handle is kept all the same, since its values are the run's. */
static void end_sub(struct wr_own *own)
{
    wr_lock(&own->run->lock);
    own->ended = true;
    wr_list_remove(&own->link);
    wr_unlock(&own->run->lock);
}

/* The value of the only node that has none after it. */
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
        tell_end(own, task);
    wr_run_told(run, 1);
    wr_run_unref(run);
}

/* The options of the run, as far as they are for all nodes, and those of the node. */
static weir_run_options options_of(struct wr_own *own, void *input)
{
    struct wr_run *run = own->run;
    const weir_node_options *o = wr_run_options(run, own->node);
    int64_t total_ms = o && o->deadlines.total_ms != WEIR_NO_LIMIT ? o->deadlines.total_ms : 0;

    if (own->flow && total_ms) { /* the body has had its part of it */
        total_ms = left_of(wr_own_of(run, own->node), total_ms);
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

/* The node was not decided, and from here on its run does not settle before what is started now. */
static bool holds_run(struct wr_own *own)
{
    if (!wr_run_hold(own->run))
        return false;
    if (!is_decided(own))
        return true;
    wr_run_told(own->run, 1);
    return false;
}

/* Nothing, if the node was decided meanwhile. */
static void start_sub(struct wr_own *own, struct weir_flow *flow, void *input)
{
    struct wr_run *run = own->run;
    const weir_node_options *o = own->flow ? NULL : wr_run_options(run, own->node);
    weir_run_options options = options_of(own, input);
    weir_group *group = run->group;
    int rc = o && o->group ? weir_group_get(&group, wr_group_executor(group), o->group) : 0;

    if (!holds_run(own))
        return;
    keep_locals(own); /* those of nodes inside stay there */
    wr_run_ref(run);  /* for sub_done */
    wr_run_ref(run);  /* ours */
    if (!rc)
        rc = wr_run_start(NULL, flow, group, &options, own);
    if (!rc && is_decided(own))
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

/* `begin` comes before the sub-flow; there is no body. */
static void begin_sub(struct wr_own *own)
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
        submit_task(own, last && work->moves.ended.first == WR_NODE_NONE);
    } else {
        begin_sub(own);
    }
    wr_locals_release(wr_locals_install(former));
}
