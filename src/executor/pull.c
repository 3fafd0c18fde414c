/* Pulling: what a free worker does for this executor. It takes the turn of a group, with all that its first task needs.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/group_check.h"
#include "executor/settle.h"
#include "executor/stall.h"
#include "executor/turn.h"

#include <weir/error.h>

static struct wr_intake *intake_of(struct wr_source *source)
{
    return WR_CONTAINER(source, struct wr_intake, source);
}

/* The group's turn: its first task with its permits, or NULL. *stop: the executor's limit is reached. */
static struct weir_task *take_turn(struct weir_group *group, struct wr_group_turn *turn,
                                   uint32_t *reserved, bool *stop)
{
    struct weir_executor *ex = group->executor;
    struct wr_ring *ring = wr_group_ring(group);
    struct weir_task *task;
    const uint64_t *first;
    weir_reason reason = WEIR_REASON_NO_WORKER;
    uint32_t cost = 0;
    bool refused, has_memory = true;

    wr_group_lock(group);
    group->in_ring = false;
    turn->asked = wr_asked(group);
    refused = group->evicted || (ex->domains && wr_domain_is_released(group));
    first = refused ? NULL : wr_group_first(group); /* what waits there is being refused */
    if (first) {
        cost = wr_cost_at(first);
        has_memory = wr_group_turn_has_record(group, first, turn);
    }
    if (first && !has_memory)
        reason = WEIR_REASON_GLOBAL_INFLIGHT; /* stays first; the next look may find memory */
    else if (first && group->carrier == WEIR_THREADS && !wr_thread_take(group))
        reason = WEIR_REASON_NO_THREAD; /* it waits for one, and is out of the ring */
    else if (first && wr_group_gates(group) && !wr_gates_grant(group, wr_os_now()))
        reason = WEIR_REASON_GATED; /* likewise */
    else if (first)
        reason = wr_start(&group->sums, &ex->root, cost, reserved);
    if (ex->domains && reason)
        wr_domain_untake(
            group); /* before it is put back: who finds it in the ring may take a slot */
    else if (ex->domains)
        wr_domain_started(group);
    if (reason == WEIR_REASON_GLOBAL_INFLIGHT) {
        group->in_ring = true; /* and first: it is owed the next permit */
        wr_group_note_first(group);
        wr_ring_return(ring, group, has_memory ? cost : 0);
        *stop = true;
    } else {
        wr_ring_decided(ring);
    }
    if (reason) {
        if (wr_group_gates(group))
            wr_gates_turn_over(group, wr_os_now());
        if (group->thread)
            wr_thread_unused(group);
        /* A domain may be restored before all were refused; a gate that closed it since it came here may be open again. */
        if (refused || wr_group_gates(group))
            wr_group_refresh(group);
        wr_group_unlock_and_reap(group);
        if (reason == WEIR_REASON_NO_THREAD)
            wr_room_made(ex); /* it claims no permits any more */
        return NULL;
    }
    turn->tells = false;
    turn->on_thread = false;
    turn->to_thread = group->carrier == WEIR_THREADS;
    turn->group = group;
    turn->tasks = 1;
    turn->began = turn->clock = wr_os_now();
    if (group->turn_left == 0)
        group->turn_left = group->weight;
    group->turn_left--;
    task = wr_group_turn_begin(group, first, turn);
    if (turn->to_thread) {
        wr_thread_used(group);
        task->runner = NULL; /* until it is on its thread */
        wr_watch_on_way(task, true);
    }
    wr_group_refresh(group);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
    wr_unlock(&group->lock);
    wr_room_made(ex);
    return task;
}

/* The executor's permit comes first, then the domain's slot, then the group whose turn it is: a worker that
 * took a group and was then refused, or only delayed, would make it miss turns that others take meanwhile. */
static struct weir_group *take_group(struct wr_intake *intake, uint32_t *reserved)
{
    struct weir_executor *ex = intake->executor;

    return ex->domains ? wr_domains_take(intake, &ex->root, reserved)
                       : wr_ring_take(&ex->ring, &ex->root, reserved);
}

/* What comes first. Answers a task to be told of, or NULL. */
static __attribute__((noinline)) struct weir_task *do_chores(struct weir_executor *ex,
                                                             struct wr_group_turn *turn)
{
    struct weir_task *task = wr_watch_untold(ex);

    wr_threads_call(ex);
    if (wr_load(&ex->nested.suspect, relaxed))
        wr_waits_look_again(ex);
    turn->tells = task != NULL;
    return task;
}

/* Permits that the next task needs before this set of workers starts anything; 0: not known to be more than one. */
static uint32_t permits_needed(struct wr_intake *intake)
{
    struct weir_executor *ex = intake->executor;

    return ex->domains ? wr_load(&intake->needed, seq_cst) : wr_load(&ex->ring.needed, seq_cst);
}

/* A costly task may be first in line now for permits that waiting tasks keep. */
static __attribute__((noinline)) void look_for_circle(struct wr_intake *intake)
{
    struct weir_executor *ex = intake->executor;
    uint32_t needed = permits_needed(intake);
    uint64_t parked = wr_load(&ex->nested.parked, relaxed);

    if (needed && parked + needed > wr_load(&ex->root.inflight_max, relaxed) &&
        wr_load(&ex->root.held, relaxed) <= parked) /* else something ends, and we look then */
        wr_waits_look_again(ex);
}

static void *pull(struct wr_source *source)
{
    struct wr_intake *intake = intake_of(source);
    struct weir_executor *ex = intake->executor;
    struct wr_group_turn *turn = &wr_worker_turn()->turn;
    struct weir_task *task = NULL;
    struct weir_group *group;
    uint32_t reserved = 0;
    bool stop = false, took = false;

    if (WR_UNLIKELY(wr_load(&ex->chores, relaxed)) && (task = do_chores(ex, turn)))
        return task;
    while (!task && !stop && (group = take_group(intake, &reserved))) {
        took = true;
        task = take_turn(group, turn, &reserved, &stop);
    }
    took |= reserved != 0; /* others found no permit, because we had one that we did not need */
    wr_unreserve(&ex->root, &reserved);
    /* Others may have more to do; also if what we took and gave back can be had by others now. */
    if (took && wr_executor_has_ready(ex))
        wr_executor_wake(ex);
    if (WR_UNLIKELY(wr_load(&ex->nested.count, relaxed)) && !task)
        look_for_circle(intake);
    return task;
}

static bool pending(struct wr_source *source)
{
    struct wr_intake *intake = intake_of(source);
    struct weir_executor *ex = intake->executor;
    uint32_t needed;

    if (wr_load(&ex->chores, seq_cst))
        return true;
    if (ex->domains ? !wr_domains_ready_for(ex->domains, intake)
                    : !wr_load(&ex->ring.count, seq_cst))
        return false;
    needed = permits_needed(intake);
    return wr_load(&ex->root.held, seq_cst) + (needed ? needed : 1) <=
           wr_load(&ex->root.inflight_max, relaxed);
}

bool wr_task_is_asked(const struct weir_task *task)
{
    const struct weir_group *group = task->group;

    /* If it is settled just now its error stands there already; then either answer will do. */
    return wr_task_outcome(task) != WEIR_UNSETTLED || wr_load(&group->cancel_all, acquire) ||
           wr_load(&group->executor->cancel_all, acquire) ||
           wr_load(&task->error, relaxed) != (int32_t)wr_asked(group);
}

static bool cancelled(struct wr_source *source, void *item)
{
    (void)source;
    return wr_task_is_asked(item);
}

weir_task *weir_task_self(void)
{
    struct wr_source *source;
    struct weir_task *item = wr_current_item(&source);

    if (!item || source->pull != pull)
        return NULL;            /* a plain thread, or a body of weir_spawn */
    wr_group_lock(item->group); /* which folds: from now on the record may be looked at */
    wr_unlock(&item->group->lock);
    return item;
}

struct weir_task *wr_task_outer(const struct weir_task *task)
{
    struct wr_frame *frame = wr_frame_innermost();
    struct wr_source *source;
    void *item;

    while (frame && frame->item != task)
        frame = frame->outer;
    if (!frame)
        return NULL; /* the stack is its own */
    for (frame = frame->outer; frame; frame = frame->outer)
        if (frame->item)
            return frame->item;
    item = wr_carried_item(&source);
    return item && source->pull == pull ? item : NULL;
}

static void run(struct wr_source *source, void *item)
{
    struct wr_intake *intake = intake_of(source);
    struct wr_group_turn *turn = &wr_worker_turn()->turn;
    bool settled = false;

    if (turn->tells) {
        wr_body_over(); /* it is nobody's body */
        wr_watch_tell(item);
    } else if (!turn->to_thread || !wr_group_turn_sent_to_thread(item, turn, &settled)) {
        wr_run_turn(intake->executor, item, turn, settled);
    }
}

void wr_intake_init(struct wr_intake *intake, struct weir_executor *ex)
{
    intake->source = (struct wr_source){ .pull = pull,
                                         .pending = pending,
                                         .run = run,
                                         .describe = wr_stall_describe,
                                         .identify = wr_stall_identify,
                                         .cancelled = cancelled };
    intake->executor = ex;
}

/* Overdue bodies that run on without their permits may each keep a worker: there are to be replacements for all,
 * and as many as usual for those that only stall. */
static uint32_t replacements_for(const weir_policy *policy, uint32_t workers)
{
    if (policy->replacements_max)
        return policy->replacements_max;
    return wr_replacements(policy->overdue == WEIR_HOLD ? 0 : policy->overdue_max, workers);
}

int wr_intake_start(struct wr_intake *intake, uint32_t workers)
{
    const weir_policy *policy = &intake->executor->policy.given;

    return wr_runtime_new(&intake->runtime,
                          WEIR_RUNTIME(.workers = workers, .threads_max = policy->threads_max,
                                       .replacements_max = replacements_for(policy, workers),
                                       .stall_after_ms = policy->stall_after_ms,
                                       .stack_size = policy->stack_size,
                                       .report_overflow = !policy->no_overflow_report,
                                       .on_stall = wr_stall_told, .on_stall_arg = intake->executor),
                          &intake->source);
}
