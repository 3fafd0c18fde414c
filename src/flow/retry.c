/* Another try of a node that has failed, now or after a pause; see own.h.
 * SPDX-License-Identifier: MIT */
#include "flow/own.h"

#include "base/assert.h"

static int64_t backoff_of(const weir_node_options *o, uint32_t tries)
{
    int64_t most = o->backoff_max_ms ? o->backoff_max_ms : o->backoff_ms * 64, ms = o->backoff_ms;

    while (--tries && ms < most)
        ms *= 2;
    return ms < most ? ms : most;
}

/* Another try sees what the first one saw. */
static void submit_again(struct wr_own *own)
{
    struct wr_locals *former = wr_locals_install(wr_locals_ref(own->sees));

    wr_own_submit(own, false);
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
    wr_own_drop_task(own);
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

/* A nap waits for no other task: it ends by itself. */
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

bool wr_own_try_again(struct wr_own *own, const weir_result *result)
{
    struct wr_run *run = own->run;
    const weir_node_options *o = wr_run_options(run, own->node);
    struct wr_moves moves = WR_NO_MOVES;
    int64_t ms = backoff_of(o, own->tries);
    uint32_t stage;
    weir_task *task;

    if (result->outcome != WEIR_FAILED || !wr_own_runs(own) || own->tries > o->retries ||
        wr_own_is_decided(own))
        return false;
    ms = wr_own_time_left(own, ms);
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
    stage = wr_own_next_stage(own);
    if (wr_submit_whole(&task, run->group, &own->nap, WEIR_TASK(.deadlines = { .total_ms = ms }))) {
        wr_run_unref(run);
        return false;
    }
    wr_own_keep_task(own, task, stage);
    return true;
}
