/* Asking for turns, when nodes wait for one; and asking bodies to end.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "flow/run.h"

#include <weir/error.h>

/* ---- asking for one ------------------------------------------------------------------------------------ */

/* No turn can be had. If the run has none, the nodes that wait are refused. */
static void refuse(struct wr_run *run, struct wr_turn *turn, const weir_result *result)
{
    struct wr_work work = { .run = run, .moves = WR_NO_MOVES, .next = WR_NODE_NONE };
    struct wr_row waiting = { WR_NODE_NONE, WR_NODE_NONE };
    uint32_t n;

    wr_lock(&run->lock);
    wr_list_remove(&turn->link);
    if (wr_list_empty(&run->turns)) {
        waiting = run->ready;
        run->ready.first = WR_NODE_NONE;
        wr_store(&run->waiting, 0, seq_cst);
    }
    wr_store(&run->refused, true, relaxed);
    wr_unlock(&run->lock);
    wr_sub(&run->coming, WR_COMING, seq_cst);
    while ((n = wr_plan_next_ready(&run->plan, &waiting)) != WR_NODE_NONE)
        if (wr_plan_decide(&run->plan, n, result->outcome, result->reason, result->error,
                           WR_NODE_NONE))
            wr_work_ended(&work, n);
    wr_work_settle(&work);
    wr_run_told(run, work.told);
}

/* The turn is over, or was cancelled while its body runs, which then ends soon. A turn is no task of the user's: whatever a
 * rejection_fn has made of a turn that did not begin, no node has run in it. */
static void turn_done(weir_task *task, const weir_result *result, void *turn_arg)
{
    struct wr_turn *turn = turn_arg;
    weir_result rejected = *result;
    bool began;

    (void)task;
    wr_lock(&turn->run->lock);
    began = turn->began;
    wr_store(&turn->asked, true, relaxed);
    if (began)
        wr_turn_expect(turn);
    wr_unlock(&turn->run->lock);
    if (began)
        return;
    if (result->outcome != WEIR_REJECTED) {
        rejected.outcome = WEIR_REJECTED;
        rejected.error = WEIR_EREJECTED;
    }
    refuse(turn->run, turn, &rejected);
    wr_turn_ask(turn->run); /* what follows may be ready */
}

static void turn_over(void *turn_arg)
{
    struct wr_turn *turn = turn_arg;

    wr_run_unref(turn->run);
    wr_os_free(turn);
}

/* Keeps a turn's handle, for weir_run_why. By the time it is kept, the turn may have come, or be over. */
static void keep_handle(struct wr_run *run, weir_task *handle)
{
    weir_task *former;

    wr_lock(&run->lock);
    former = run->latest;
    run->latest = handle;
    wr_unlock(&run->lock);
    weir_task_unref(former);
}

static int submit_turn(struct wr_run *run, struct wr_turn *turn)
{
    struct wr_locals *former;
    weir_task *handle = NULL;
    int rc;

    wr_run_ref(run);
    wr_lock(&run->lock);
    wr_list_append(&run->turns, &turn->link);
    wr_unlock(&run->lock);
    former = wr_locals_install(NULL); /* the turn installs the run's */
    rc = weir_submit(&handle, run->group, wr_turn_run, turn,
                     WEIR_TASK(.on_done = turn_done, .on_done_arg = turn, .drop_arg = turn_over,
                               .deadlines = wr_group_no_deadlines(run->group, 0)));
    wr_locals_install(former);
    if (!rc)
        keep_handle(run, handle);
    return rc;
}

static void ask_once(struct wr_run *run)
{
    struct wr_turn *turn = wr_os_alloc(sizeof(*turn)), none;
    weir_result failed = { .outcome = WEIR_FAILED, .error = WEIR_ENOMEM };

    if (!turn) {
        wr_list_init(&none.link);
        refuse(run, &none, &failed);
        return;
    }
    turn->run = run;
    failed.error = submit_turn(run, turn);
    if (!failed.error)
        return;
    if (failed.error == WEIR_ECLOSED) {
        failed.outcome = WEIR_REJECTED;
        failed.reason = WEIR_REASON_SHUT_DOWN;
    }
    refuse(run, turn, &failed);
    turn_over(turn);
}

static bool wants_turn(struct wr_run *run)
{
    bool wants = wr_load(&run->waiting, seq_cst) > 0, others = false;

    /* Written to, not only read: a turn that is not coming any more after that sees what was pushed before. */
    if (wr_add(&run->coming, 0, acq_rel) || wr_load(&run->closed, relaxed))
        return false;
    wr_lock(&run->lock);
    wr_list_each(link, &run->turns) {
        struct wr_turn *turn = WR_CONTAINER(link, struct wr_turn, link);
        wants = wants || wr_deque_length(&turn->deque);
        others = true;
    }
    wr_unlock(&run->lock);
    return wants && !(others && wr_load(&run->refused, relaxed));
}

/* One thread at a time asks, so that a turn which its submitter runs (WEIR_CALLER_RUNS) submits no further turns inside of
 * it. */
void wr_turn_ask(struct wr_run *run)
{
    bool asking;

    while (wants_turn(run)) {
        asking = false;
        if (!wr_cas(&run->asking, &asking, true, seq_cst))
            return; /* the thread that is asking looks again */
        if (wants_turn(run)) {
            wr_add(&run->coming, WR_COMING, seq_cst);
            ask_once(run);
        }
        wr_store(&run->asking, false, seq_cst);
    }
}

/* ---- asking bodies to end -------------------------------------------------------------------------------- */

/* Whether the body that the turn runs is meant; if so, it is asked once. Under the lock. */
static bool is_meant(struct wr_run *run, struct wr_turn *turn, uint32_t n, bool all)
{
    uint32_t current = wr_load(&turn->current, acquire);

    if (!turn->began || current == WR_ASKED)
        return false;
    if (all)
        return wr_swap(&turn->current, WR_ASKED, acq_rel) != WR_ASKED;
    if (current == WR_NODE_NONE || (n != WR_NODE_NONE && current != n))
        return false;
    return (n == current || run->plan.interrupt ||
            run->flow->hot[current].flags & WR_F_INTERRUPT) &&
           wr_cas(&turn->current, &current, WR_ASKED, acq_rel);
}

/* A reference to a turn whose body is to be asked; NULL: there is none. */
static weir_task *next_meant(struct wr_run *run, uint32_t n, bool all)
{
    weir_task *task = NULL;

    wr_lock(&run->lock);
    wr_list_each(link, &run->turns) {
        struct wr_turn *turn = WR_CONTAINER(link, struct wr_turn, link);
        if (is_meant(run, turn, n, all)) {
            task = weir_task_ref(turn->task);
            break;
        }
    }
    wr_unlock(&run->lock);
    return task;
}

void wr_turn_interrupt(struct wr_run *run, uint32_t n, bool all)
{
    weir_task *task;

    while ((task = next_meant(run, n, all))) {
        weir_task_cancel(task);
        weir_task_unref(task);
    }
}
