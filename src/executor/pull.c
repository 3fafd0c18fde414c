/* Pulling: what a free worker does for this executor. It takes the turn of a group, with all that its first task needs.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/slice.h"

#include <weir/error.h>

static struct wr_crew *crew_of(struct wr_source *source)
{
    return WR_CONTAINER(source, struct wr_crew, source);
}

/* What a worker that has a group in its hands has asked for, and got. */
struct ask {
    /* Its first task; NULL: none is to start */
    const uint64_t *first;
    uint32_t *reserved; /* permits of the executor's                                             */
    bool turn_over;     /* other workers may have ended it after this one had taken the group    */
    bool refuses;       /* what waits there is being refused                                     */
    bool has_thread;
    bool stop; /* the executor's limit is reached, or there is no memory: it stays first        */
};

/* Asks the nodes of the path, in this order, for all that the first task needs; the permits of the executor's and the slot are
 * taken, or reserved, already. Answers what is in the way, and then the group stands in the line of that node, or at rest. */
static weir_reason ask_nodes(struct weir_group *group, struct wr_slice *slice, struct ask *ask)
{
    uint32_t cost;

    if (!ask->first)
        return WEIR_REASON_NO_WORKER;
    cost = wr_cost_at(ask->first);
    if (!wr_slice_has_record(group, ask->first, slice)) {
        ask->stop = true; /* the next look may find memory */
        return WEIR_REASON_GLOBAL_INFLIGHT;
    }
    if (group->carrier == WEIR_THREADS && !(ask->has_thread = wr_thread_take(group)))
        return WEIR_REASON_NO_THREAD;
    if (wr_group_gates(group) && !wr_group_gates_grant(group, wr_os_now()))
        return WEIR_REASON_GATED;
    return wr_start(&group->sums, &group->executor->root, cost, ask->reserved);
}

/* The group is in the worker's hands no longer. If it stands by now with a node that was asked in vain, its place stays. */
static void put_down(struct weir_group *group, weir_reason reason)
{
    if (wr_group_place(group) == WR_READY)
        wr_store(&group->stand.place, WR_AT_REST, relaxed);
    /* Before the group is put back: a worker that finds it may take a slot. */
    if (reason && group->executor->domains)
        wr_domain_untake(group);
}

/* Nothing starts: what was taken goes back. Under the lock; unlocks. */
static void give_up(struct weir_group *group, struct ask *ask, weir_reason reason)
{
    struct weir_executor *ex = group->executor;
    struct wr_line *ring = wr_group_ring(group);
    bool returns = reason == WEIR_REASON_GLOBAL_INFLIGHT && wr_group_is_ready(group);

    if (returns) {
        bool no_memory = ask->stop;
        wr_group_note_first(group);
        wr_line_return(ring, &group->stand,
                       no_memory ? 0 : wr_cost_at(ask->first)); /* it is owed the next permit */
        ask->stop = true;
    }
    if (wr_group_gates(group))
        wr_group_gates_turn_over(group, wr_os_now());
    wr_thread_unused(group, ask->has_thread);
    /* A domain may be restored before all were refused; a gate that closed it since it came here may be open again; and a
     * group that was paused since then is not at rest. */
    if (ask->refuses || ask->turn_over || group->paused || wr_group_gates(group))
        wr_group_refresh(group);
    if (!returns)
        wr_line_decided(ring, &group->stand);
    wr_group_unlock_and_reap(group);
    if (reason == WEIR_REASON_NO_THREAD)
        wr_room_made(ex); /* it claims no permits any more */
}

/* The first task begins. Under the lock. */
static struct weir_task *start_slice(struct weir_group *group, struct wr_slice *slice,
                                     const uint64_t *first)
{
    struct weir_task *task;

    slice->tells = false;
    slice->on_thread = false;
    slice->to_thread = group->carrier == WEIR_THREADS;
    slice->group = group;
    slice->tasks = 1;
    slice->began = slice->clock = wr_os_now();
    group->stand.turn_left -=
        group->stand.turn_left > 0; /* it had become empty, and is not any more */
    task = wr_slice_begin(group, first, slice);
    if (slice->to_thread) {
        wr_thread_used(group);
        task->runner = NULL; /* until it is on its thread */
        wr_watch_carried(task, WR_TO_THREAD);
    }
    return task;
}

/* A slice of the group's turn: its first task with its permits, or NULL. *stop: nothing else can be had either. */
static struct weir_task *take_slice(struct weir_group *group, struct wr_slice *slice,
                                    uint32_t *reserved, bool *stop)
{
    struct weir_executor *ex = group->executor;
    struct ask ask = { .reserved = reserved };
    struct weir_task *task;
    weir_reason reason;

    wr_group_lock(group);
    slice->cancels = wr_cancels(group);
    ask.refuses = group->evicted || (ex->domains && wr_domain_is_released(group));
    ask.turn_over = !group->stand.turn_left && wr_load(&group->stand.weight, relaxed) > 1;
    ask.first = ask.refuses || ask.turn_over ? NULL : wr_group_first(group);
    reason = ask_nodes(group, slice, &ask);
    put_down(group, reason);
    if (reason) {
        give_up(group, &ask, reason);
        *stop = ask.stop;
        return NULL;
    }
    task = start_slice(group, slice, ask.first);
    wr_group_refresh(group);
    /* Last: a group that waits for its next turn is never nowhere. */
    wr_line_decided(wr_group_ring(group), &group->stand);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
    wr_slice_give_hand(group, task, slice);
    wr_unlock(&group->lock);
    wr_room_made(ex);
    return task;
}

/* The executor's permit and the domain's slot come before the group whose turn it is: a worker that
 * took a group and was then refused, or only delayed, would make it miss turns that others take meanwhile. */
static struct weir_group *take_group(struct wr_crew *crew, uint32_t *reserved,
                                     struct wr_slice *slice)
{
    struct weir_executor *ex = crew->executor;
    struct wr_beats *beats;

    slice->beat = NULL;
    if (ex->domains)
        return wr_domains_take(crew, reserved);
    beats = wr_load(&ex->beats, acquire); /* pairs with the first group that is given one */
    if (beats)
        wr_beats_bring(beats);
    return wr_group_at(
        wr_line_pull(&ex->ring, &ex->root, reserved, beats ? wr_beat_grant : NULL, slice));
}

/* Does the chores, which come before all tasks. Answers a task to be told of, or NULL. */
static __attribute__((noinline)) struct weir_task *do_chores(struct weir_executor *ex,
                                                             struct wr_slice *slice)
{
    struct weir_task *task = wr_watch_untold(ex);

    wr_threads_call(ex);
    if (wr_load(&ex->nested.suspect, relaxed))
        wr_waits_look_again(ex);
    slice->tells = task != NULL;
    return task;
}

/* Permits that the next task needs before this set of workers starts anything; 0: not known to be more than one. */
static uint32_t permits_needed(struct wr_crew *crew)
{
    struct weir_executor *ex = crew->executor;

    return ex->domains ? wr_load(&crew->needed, seq_cst) : wr_load(&ex->ring.needed, seq_cst);
}

/* A costly task may be first in line now for permits that waiting tasks keep. */
static __attribute__((noinline)) void look_for_circle(struct wr_crew *crew)
{
    struct weir_executor *ex = crew->executor;
    uint32_t needed = permits_needed(crew);
    uint64_t parked = wr_load(&ex->nested.parked, relaxed);

    if (needed && parked + needed > wr_load(&ex->root.inflight_max, relaxed) &&
        wr_load(&ex->root.held, relaxed) <= parked) /* else something ends, and we look then */
        wr_waits_look_again(ex);
}

/* A look at the lead of the crew, and what follows from it. Answers whether this worker is to look again at once. */
static bool look_at_lead(struct wr_crew *crew, struct wr_worker_slice *own, weir_time now)
{
    /* It is there as long as the crew's workers are. */
    struct wr_worker_slice *lead = wr_load(&crew->lead, acquire);

    if (lead == own)
        return false;
    switch (wr_lead_look(&own->look, lead ? &lead->done : NULL, now, own->slice.waited)) {
    case WR_LEAD_LEAD:
        wr_store(&crew->lead, own, release);
        break;
    case WR_LEAD_YIELD:
        wr_worker_give_way(0);
        break;
    case WR_LEAD_NAP:
        wr_worker_give_way(WR_LEAD_NAP_NS);
        break;
    case WR_LEAD_REST:
        return wr_worker_give_way(WR_LEAD_NAP_NS);
    case WR_LEAD_WORK:
        break;
    }
    return false;
}

/* What a worker does between two slices if they are brief: it leaves its CPU to other threads, or the work to the lead of its
 * crew, now and then; see lead.h. */
static void give_way(struct wr_crew *crew, struct wr_worker_slice *own)
{
    struct wr_slice *slice = &own->slice;
    int64_t slice_ns = slice->clock - slice->began;
    weir_time now = slice->clock;

    if (slice->tasks) /* it has run one since it came here last */
        wr_lead_count(&own->done, slice->tasks, slice_ns, slice->waited);
    if (wr_slice_was_hasty(slice->tasks, slice_ns, slice->waited) && !wr_worker_feeds())
        wr_worker_give_way(0);
    slice->tasks = 0;
    if (!wr_lead_is_due(&own->look, now, slice_ns))
        return;
    while (look_at_lead(crew, own, now) && !wr_load(&crew->executor->chores, relaxed))
        now = wr_os_now();
}

static void *pull(struct wr_source *source)
{
    struct wr_crew *crew = crew_of(source);
    struct weir_executor *ex = crew->executor;
    struct wr_worker_slice *own = wr_worker_slice();
    struct wr_slice *slice = &own->slice;
    struct weir_task *task = NULL;
    struct weir_group *group;
    uint32_t reserved = 0;
    bool stop = false, took = false;

    wr_hand_finish(&own->hand); /* a body that has parked may have left it out */
    give_way(crew, own);
    if (WR_UNLIKELY(wr_load(&ex->chores, relaxed)) && (task = do_chores(ex, slice)))
        return task;
    while (!task && !stop && (group = take_group(crew, &reserved, slice))) {
        took = true;
        task = slice->beat ? slice->beat->hand.task : take_slice(group, slice, &reserved, &stop);
    }
    took |= reserved != 0; /* others found no permit, because we had one that we did not need */
    wr_unreserve(&ex->root, &reserved);
    /* Others may have more to do; also if what we took and gave back can be had by others now. */
    if (took && wr_executor_has_ready(ex))
        wr_executor_wake(ex);
    if (WR_UNLIKELY(wr_load(&ex->nested.count, relaxed)) && !task)
        look_for_circle(crew);
    return task;
}

static bool pending(struct wr_source *source)
{
    struct wr_crew *crew = crew_of(source);
    struct weir_executor *ex = crew->executor;
    uint32_t needed;

    if (wr_load(&ex->chores, seq_cst))
        return true;
    if (ex->domains ? !wr_domains_ready_for(ex->domains, crew) : !wr_line_has_stands(&ex->ring))
        return false;
    needed = permits_needed(crew);
    return wr_load(&ex->root.held, seq_cst) + (needed ? needed : 1) <=
           wr_load(&ex->root.inflight_max, relaxed);
}

bool wr_task_is_asked_to_end(const struct weir_task *task)
{
    const struct weir_group *group = task->group;

    /* If it is settled just now its error stands there already; then either answer will do. */
    return wr_task_outcome(task) != WEIR_UNSETTLED ||
           wr_load(&group->use, seq_cst) == WR_CANCELLED ||
           wr_load(&group->executor->cancel_all, seq_cst) ||
           wr_load(&task->error, relaxed) != (int32_t)wr_cancels(group);
}

static bool cancelled(struct wr_source *source, void *item)
{
    (void)source;
    return wr_task_is_asked_to_end(item);
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
    struct wr_crew *crew = crew_of(source);
    struct wr_slice *slice = &wr_worker_slice()->slice;
    bool settled = false;

    if (slice->tells) {
        wr_body_over(); /* no body runs here */
        wr_watch_tell(item);
    } else if (!slice->to_thread || !wr_slice_sent_to_thread(item, slice, &settled)) {
        wr_run_slice(crew->executor, item, slice, settled);
    }
}

void wr_crew_init(struct wr_crew *crew, struct weir_executor *ex, uint32_t workers)
{
    crew->source = (struct wr_source){ .pull = pull,
                                       .pending = pending,
                                       .run = run,
                                       .describe = wr_stall_describe,
                                       .identify = wr_stall_identify,
                                       .cancelled = cancelled };
    crew->executor = ex;
    crew->workers = workers;
}

/* Overdue bodies that run on without their permits may each keep a worker: there are to be replacements for all,
 * and as many as usual for those that only stall. */
static uint32_t replacements_for(const weir_policy *policy, uint32_t workers)
{
    if (policy->replacements_max)
        return policy->replacements_max;
    return wr_replacements(policy->overdue == WEIR_HOLD ? 0 : policy->overdue_max, workers);
}

int wr_crew_start(struct wr_crew *crew)
{
    const weir_policy *policy = &crew->executor->policy.given;

    return wr_runtime_new(&crew->runtime,
                          WEIR_RUNTIME(.workers = crew->workers, .threads_max = policy->threads_max,
                                       .replacements_max = replacements_for(policy, crew->workers),
                                       .stall_after_ms = policy->stall_after_ms,
                                       .stack_size = policy->stack_size,
                                       .report_overflow = !policy->no_overflow_report,
                                       .on_stall = wr_stall_told, .on_stall_arg = crew->executor),
                          &crew->source);
}
