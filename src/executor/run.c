/* Running: what a free worker does for this executor, and what happens when a body has returned.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/local.h"
#include "executor/settle.h"

#include <stdio.h>
#include <weir/error.h>

enum {
    SLICE_NS = 8000,  /* how long a turn of weight 1 may go on if its tasks are short        */
    SLICE_TASKS = 32, /* and how many tasks of weight 1 it may run then                      */
    CHAIN_MAX = 32,   /* tasks run in a row before the worker looks around                    */
};

/* A worker's present turn; lives in its scratch words. */
struct turn {
    struct weir_group *group;
    uint64_t tasks;
    weir_time began;
    weir_time clock; /* the latest reading: a task starts when the one before it ended */
    void *arg; /* of the task that starts: by the time it is called, it may have been settled */
};

static_assert(sizeof(struct turn) <= WR_SCRATCH, "a turn fits into a worker's scratch");

static struct weir_executor *executor_of(struct wr_source *source)
{
    return WR_CONTAINER(source, struct weir_executor, source);
}

/* ---- pulling --------------------------------------------------------------------------------- */

/* Takes the first task, whose permits are taken, out of its queue. Under the lock. */
static void begin(struct weir_group *group, struct weir_task *task, struct turn *turn)
{
    weir_time now = turn->clock;

    turn->arg = wr_task_arg(task);
    if (now < task->queued_at) /* read on another CPU */
        now = task->queued_at;
    wr_list_remove(&task->link);
    wr_task_set_phase(task, WR_PHASE_RUNNING);
    task->started_at = now;
    task->runner = wr_parker_self(NULL); /* on a worker this is the fiber that will run it */
    group->started++;
    group->bodies++;
    group->waited_ns += now - task->queued_at;
    if (group->bodies > group->peak)
        group->peak = group->bodies;
    if (wr_group_gate(group))
        wr_gate_started(group, now);
}

/* The group's turn: its first task with its permits, or NULL. *stop: the executor's limit is reached. */
static struct weir_task *take_turn(struct weir_group *group, struct turn *turn, uint32_t *reserved,
                                   bool *stop)
{
    struct weir_executor *ex = group->executor;
    struct weir_task *task;
    weir_reason reason = WEIR_REASON_NO_WORKER;

    wr_lock(&group->lock);
    group->in_ring = false;
    task = group->evicted ? NULL : wr_group_first(group); /* what waits there is being refused */
    if (task)
        reason = wr_start(&group->sums, &ex->root, wr_task_cost(task), reserved);
    if (reason == WEIR_REASON_GLOBAL_INFLIGHT) {
        group->in_ring = true; /* and first: it is owed the next permit */
        wr_store(&group->ring_cost, wr_task_cost(task), relaxed);
        wr_ring_return(&ex->ring, group, wr_task_cost(task));
        *stop = true;
    } else {
        wr_ring_decided(&ex->ring);
    }
    if (reason) {
        wr_group_unlock_and_reap(group);
        return NULL;
    }
    turn->group = group;
    turn->tasks = 1;
    turn->began = turn->clock = wr_os_now();
    if (group->turn_left == 0)
        group->turn_left = group->weight;
    group->turn_left--;
    begin(group, task, turn);
    wr_group_refresh(group);
    wr_unlock(&group->lock);
    wr_room_made(ex);
    return task;
}

/* The executor's permit comes first, then the group whose turn it is: a worker that took a group and was then
 * refused, or only delayed, would make it miss turns that others take meanwhile. */
static void *pull(struct wr_source *source)
{
    struct weir_executor *ex = executor_of(source);
    struct turn *turn = wr_scratch();
    struct weir_task *task = NULL;
    struct weir_group *group;
    uint32_t reserved = 0;
    bool stop = false, refused_others;

    while (!task && !stop && (group = wr_ring_take(&ex->ring, &ex->root, &reserved)))
        task = take_turn(group, turn, &reserved, &stop);
    refused_others =
        reserved != 0; /* they found no permit, because we had one that we did not need */
    wr_unreserve(&ex->root, &reserved);
    if ((task || refused_others) && wr_load(&ex->ring.count, seq_cst))
        wr_runtime_wake(ex->runtime);
    return task;
}

static bool pending(struct wr_source *source)
{
    struct weir_executor *ex = executor_of(source);
    uint32_t needed;

    if (wr_load(&ex->ring.count, seq_cst) == 0)
        return false;
    needed = wr_load(&ex->ring.needed, relaxed);
    return wr_load(&ex->root.held, seq_cst) + (needed ? needed : 1) <=
           wr_load(&ex->root.inflight_max, relaxed);
}

static bool cancelled(struct wr_source *source, void *item)
{
    struct weir_task *task = item;

    return wr_task_outcome(task) != WEIR_UNSETTLED || wr_load(&task->group->cancel_all, acquire) ||
           task->started_at < wr_load(&executor_of(source)->cancel_before, acquire);
}

/* The monitor asks about an item that may be over by now. Records are never unmapped while the runtime
 * lives, but its group may be gone, so the record's address must do. */
static uint64_t describe(struct wr_source *source, void *item, char *name)
{
    (void)source;
    snprintf(name, 32, "task %p", item);
    return (uint64_t)(uintptr_t)item;
}

/* ---- after the body ---------------------------------------------------------------------------- */

weir_outcome wr_outcome_of(int error)
{
    return error == 0 ? WEIR_DONE : error == WEIR_ECANCELED ? WEIR_CANCELLED : WEIR_FAILED;
}

void wr_count_outcome(struct weir_group *group, weir_outcome outcome)
{
    group->succeeded += outcome == WEIR_DONE;
    group->failed += outcome == WEIR_FAILED;
    group->cancelled += outcome == WEIR_CANCELLED;
}

/* Whether the turn may go on with another task of the group. */
static bool turn_lasts(const struct turn *turn, const struct weir_group *group, unsigned chain)
{
    uint64_t weight = group->weight;

    if (turn->group != group || chain >= CHAIN_MAX || wr_body_has_parked())
        return false;
    if (wr_load(&group->executor->ring.count, relaxed) == 0)
        return true; /* nobody else waits for a turn */
    return turn->tasks < weight || (turn->tasks < weight * SLICE_TASKS &&
                                    turn->clock - turn->began < (int64_t)weight * SLICE_NS);
}

/* Gives the permits of a finished task to the next of its group, or back. Answers the next. */
static struct weir_task *pass_on(struct weir_group *group, struct turn *turn, uint32_t cost,
                                 unsigned chain)
{
    struct wr_root *root = &group->executor->root;
    struct weir_task *next = group->sums.queued && !group->evicted ? wr_group_first(group) : NULL;

    if (next && !wr_group_gate(group) && wr_task_cost(next) == cost &&
        turn_lasts(turn, group, chain) && wr_hand_over(&group->sums, root, cost)) {
        turn->tasks++;
        group->turn_left -= group->turn_left > 0;
        begin(group, next, turn);
        return next;
    }
    wr_group_finish(group, cost);
    /* This worker may have ready fibers to run before it pulls. */
    if (wr_group_refresh(group) || wr_load(&group->executor->ring.count, relaxed))
        wr_runtime_wake(group->executor->runtime);
    return NULL;
}

/* Nobody holds the task but us, and nobody wants to hear of it: the common end. */
static bool is_silent(const struct weir_group *group, const struct weir_task *task)
{
    uint32_t word = wr_task_word(task);

    return word / WR_REF == 1 && !(word & (WR_SIDE | WR_OUTCOME_MASK)) &&
           !wr_load(&task->watchers, relaxed) && !group->executor->policy.given.listener.completed;
}

/* A body has returned; answers the task to run next on this stack, if any. */
static struct weir_task *finish(struct weir_task *task, int error, void *value, unsigned chain)
{
    struct weir_group *group = task->group;
    struct turn *turn = wr_scratch();
    struct weir_task *next = NULL;
    weir_outcome outcome = wr_outcome_of(error);
    uint32_t cost = wr_task_cost(task);
    bool silent, decided = false;

    turn->clock = wr_os_now();
    wr_lock(&group->lock);
    group->bodies--;
    group->ran_ns += turn->clock - task->started_at;
    silent = is_silent(group, task);
    if (silent) {
        next = pass_on(group, turn, cost, chain);
        wr_count_outcome(group, outcome);
        wr_task_recycle(group, task);
    } else {
        /* Callbacks may take their time, so nothing is handed to us while they run. */
        wr_group_finish(group, cost);
        decided =
            wr_task_decide(task, outcome, error, WEIR_REASON_NONE, task->started_at, turn->clock);
        if (decided) {
            wr_task_set_value(task, value);
            wr_count_outcome(group, outcome);
        }
        wr_task_set_phase(task, WR_PHASE_OVER);
        group->telling++;
        if (wr_group_refresh(group) || wr_load(&group->executor->ring.count, relaxed))
            wr_runtime_wake(group->executor->runtime);
    }
    wr_room_made(group->executor);
    if (silent)
        wr_group_left(group);
    wr_group_unlock_and_reap(group);
    if (silent)
        return next;
    if (decided)
        wr_task_publish(task, true);
    else
        wr_task_drop_value(task, value);
    wr_task_told(task);
    return NULL;
}

/* The body will be settled from outside, or was already. */
static void pend(struct weir_task *task)
{
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor; /* once it is pending, anybody may end it */
    bool settled, wake;

    wr_lock(&group->lock);
    group->bodies--;
    settled = wr_task_outcome(task) != WEIR_UNSETTLED;
    if (settled) {
        wr_group_finish(group, wr_task_cost(task));
        wr_task_set_phase(task, WR_PHASE_OVER);
        group->telling++;
    } else {
        wr_pend(&group->sums, &group->executor->root, wr_task_cost(task));
        wr_task_set_phase(task, WR_PHASE_PENDING);
        group->pending++;
    }
    wake = wr_group_refresh(group);
    wr_unlock(&group->lock);
    if (wake)
        wr_runtime_wake(ex->runtime);
    wr_room_made(ex);
    if (settled)
        wr_task_told(task);
}

int wr_task_call(struct weir_task *task, void *arg, void **value)
{
    struct wr_side *side = wr_task_side(task);
    struct wr_locals *former;
    int error;

    if (!side)
        return task->fn(value, arg);
    former = wr_locals_install(side->locals);
    side->locals = NULL;
    error = task->fn(value, arg);
    wr_locals_release(wr_locals_install(former)); /* with what the body has set itself */
    return error;
}

/* ---- running ----------------------------------------------------------------------------------- */

static void run(struct wr_source *source, void *item)
{
    struct weir_executor *ex = executor_of(source);
    const weir_listener *listener = &ex->policy.given.listener;
    struct weir_task *task = item;

    for (unsigned chain = 0; task; chain++) {
        void *value = NULL, *arg = ((struct turn *)wr_scratch())->arg;
        int error;

        if (chain)
            wr_body_begins(task);
        if (listener->started)
            listener->started(task, listener->arg);
        error = wr_task_call(task, arg, &value);
        wr_body_over();
        if (error == WEIR_PENDING) {
            wr_task_drop_value(task, value);
            pend(task);
            task = NULL;
        } else {
            task = finish(task, error, value, chain);
        }
    }
}

void wr_executor_source_init(struct weir_executor *ex)
{
    ex->source = (struct wr_source){
        .pull = pull, .pending = pending, .run = run, .describe = describe, .cancelled = cancelled
    };
}
