/* Running: what a free worker does for this executor, and what happens when a body has returned.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/local.h"
#include "executor/settle.h"
#include "executor/stall.h"

#include <weir/error.h>

enum {
    SLICE_NS = 8000,  /* how long a turn of weight 1 may go on if its tasks are short        */
    SLICE_TASKS = 32, /* and how many tasks of weight 1 it may run then                      */
    CHAIN_MAX = 32,   /* tasks run in a row before the worker looks around                    */
};

/* A worker's present turn; lives in its scratch words, or, on a thread, on its stack. */
struct turn {
    struct weir_group *group;
    weir_time began;
    weir_time clock; /* the latest reading: a task starts when the one before it ended */
    weir_fn *fn; /* of the task that starts: by the time it is called, it may have been settled */
    void *arg;
    struct weir_task *record; /* at hand, for a task that waits without one */
    uint16_t tasks;           /* at most CHAIN_MAX + 1                    */
    bool to_thread : 1;       /* its first task is to run on a thread    */
    bool on_thread : 1;
    bool tells : 1; /* what was pulled is a task to be told of, not to be run; see watch.h */
    uint32_t asked; /* wr_asked before it was found that the task may start: a release in between
                       means it, too */
};

/* A task on its way to a thread. */
struct errand {
    struct wr_job job;
    struct weir_task *task;
    struct turn turn;
};

/* What a worker's scratch words are. */
struct scratch {
    struct turn turn;
    struct wr_hand hand;
    bool in_use; /* else they are all zero: the worker is new */
};

static_assert(sizeof(struct scratch) <= WR_SCRATCH, "it fits into a worker's scratch");

static struct scratch *scratch_of_worker(void)
{
    struct scratch *scratch = wr_scratch();

    if (WR_UNLIKELY(!scratch->in_use))
        wr_hand_init(&scratch->hand);
    scratch->in_use = true;
    return scratch;
}

static struct wr_intake *intake_of(struct wr_source *source)
{
    return WR_CONTAINER(source, struct wr_intake, source);
}

/* ---- pulling --------------------------------------------------------------------------------- */

/* A record for the group's first task, if that waits without one. False: there is no memory. Under the lock. */
static bool has_record(struct weir_group *group, const uint64_t *first, struct turn *turn)
{
    if (!wr_is_entry(*first) || turn->record)
        return true;
    turn->record = wr_cell_take(&group->executor->cells, group->hash);
    return turn->record != NULL;
}

/* Makes a record of the first entry of the queue, on the one at hand. */
static struct weir_task *make_record(struct weir_group *group, const uint64_t *entry,
                                     struct turn *turn)
{
    struct weir_task *task = turn->record;

    turn->record = NULL;
    group->records++;
    group->submitted++; /* until now it was counted by standing in the queue */
    __atomic_store_n(&task->group, group, __ATOMIC_RELEASE); /* the monitor may look */
    turn->fn = task->fn = wr_entry_fn(entry);
    turn->arg = task->u.arg = wr_entry_arg(entry);
    task->queued_at = wr_entry_time(entry);
    wr_store(&task->watchers, NULL, relaxed);
    /* Release: whoever finds the record in use finds its group; see tasks.c. */
    wr_store(&task->word, WR_PHASE_RUNNING | WR_REF, release);
    return task;
}

static struct weir_task *take_record(struct weir_task *task, struct turn *turn)
{
    turn->fn = task->fn;
    turn->arg = wr_task_arg(task);
    wr_task_set_phase(task, WR_PHASE_RUNNING);
    return task;
}

/* Takes the first task, whose permits are taken, out of its queue. Under the lock. */
static struct weir_task *begin(struct weir_group *group, const uint64_t *first, struct turn *turn)
{
    struct weir_task *task;
    weir_time now = turn->clock;

    wr_group_pop(group, first);
    task = wr_is_entry(*first) ? make_record(group, first, turn)
                               : take_record(wr_record_at(first), turn);
    if (now < task->queued_at) /* read on another CPU */
        now = task->queued_at;
    task->started_at = now;
    wr_store(&task->error, (int32_t)turn->asked, relaxed);
    task->runner = wr_parker_self(NULL); /* on a worker this is the fiber that will run it */
    group->started++;
    group->bodies++;
    group->waited_ns += now - task->queued_at;
    if (group->bodies > group->peak)
        group->peak = group->bodies;
    if (wr_group_gates(group))
        wr_gates_started(group, task, now);
    if (wr_task_watched(task)) {
        wr_watch_started(task, now);
        if (turn->on_thread)
            wr_watch_on_thread(task);
    }
    return task;
}

/* The group's turn: its first task with its permits, or NULL. *stop: the executor's limit is reached. */
static struct weir_task *take_turn(struct weir_group *group, struct turn *turn, uint32_t *reserved,
                                   bool *stop)
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
    refused = group->evicted || (ex->hall && wr_domain_is_released(group));
    first = refused ? NULL : wr_group_first(group); /* what waits there is being refused */
    if (first) {
        cost = wr_cost_at(first);
        has_memory = has_record(group, first, turn);
    }
    if (first && !has_memory)
        reason = WEIR_REASON_GLOBAL_INFLIGHT; /* stays first; the next look may find memory */
    else if (first && group->carrier == WEIR_THREADS && !wr_berth_take(group))
        reason = WEIR_REASON_NO_THREAD; /* it waits for one, and is out of the ring */
    else if (first && wr_group_gates(group) && !wr_gates_grant(group, wr_os_now()))
        reason = WEIR_REASON_GATED; /* likewise */
    else if (first)
        reason = wr_start(&group->sums, &ex->root, cost, reserved);
    if (ex->hall && reason)
        wr_domain_untake(
            group); /* before it is put back: who finds it in the ring may take a slot */
    else if (ex->hall)
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
        if (group->berth)
            wr_berth_unused(group);
        if (refused)
            wr_group_refresh(group); /* a domain may be restored before all were refused */
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
    task = begin(group, first, turn);
    if (turn->to_thread) {
        wr_berth_used(group);
        task->runner = NULL; /* until it is on its thread */
        wr_watch_on_way(task, true);
    }
    wr_group_refresh(group);
    wr_unlock(&group->lock);
    wr_room_made(ex);
    return task;
}

/* The executor's permit comes first, then the domain's slot, then the group whose turn it is: a worker that
 * took a group and was then refused, or only delayed, would make it miss turns that others take meanwhile. */
static struct weir_group *take_group(struct wr_intake *intake, uint32_t *reserved)
{
    struct weir_executor *ex = intake->executor;

    return ex->hall ? wr_hall_take(intake, &ex->root, reserved)
                    : wr_ring_take(&ex->ring, &ex->root, reserved);
}

/* What comes first. Answers a task to be told of, or NULL. */
static __attribute__((noinline)) struct weir_task *do_chores(struct weir_executor *ex,
                                                             struct turn *turn)
{
    struct weir_task *task = wr_watch_untold(ex);

    wr_berths_call(ex);
    if (wr_load(&ex->nested.suspect, relaxed))
        wr_waits_look_again(ex);
    turn->tells = task != NULL;
    return task;
}

/* Permits that the next task needs before this set of workers starts anything; 0: not known to be more than one. */
static uint32_t permits_needed(struct wr_intake *intake)
{
    struct weir_executor *ex = intake->executor;

    return ex->hall ? wr_load(&intake->needed, relaxed) : wr_load(&ex->ring.needed, relaxed);
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
    struct turn *turn = &scratch_of_worker()->turn;
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
    if ((ex->hall ? wr_load(&intake->ready, seq_cst) : wr_load(&ex->ring.count, seq_cst)) == 0)
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

    if (turn->group != group || chain >= CHAIN_MAX)
        return false;
    if (!turn->on_thread && (wr_body_has_parked() || group->carrier == WEIR_THREADS))
        return false;
    if (wr_load(&wr_group_ring(group)->count, relaxed) == 0 &&
        (!group->executor->hall || !wr_executor_has_ready(group->executor)) &&
        (!turn->on_thread || !wr_berth_others_wait(group)))
        return true; /* nobody else waits for a turn */
    return turn->tasks < weight || (turn->tasks < weight * SLICE_TASKS &&
                                    turn->clock - turn->began < (int64_t)weight * SLICE_NS);
}

/* Permits of the whole path, or none. The domain's slot is kept: nobody else has a claim to it. */
static bool hand_over(struct weir_group *group, struct turn *turn, uint32_t cost)
{
    struct wr_root *root = &group->executor->root;

    turn->asked = wr_asked(group);
    if (!group->executor->hall)
        return wr_hand_over(&group->sums, root, cost);
    if (!wr_domain_hand_over(group))
        return false;
    if (wr_hand_over(&group->sums, root, cost))
        return true;
    wr_domain_hand_back(group);
    return false;
}

/* Gives the permits of a finished task to the next of its group, or back. Answers the next. */
static struct weir_task *pass_on(struct weir_group *group, struct turn *turn, uint32_t cost,
                                 unsigned chain)
{
    const uint64_t *first = group->sums.queued && !group->evicted ? wr_group_first(group) : NULL;
    struct wr_gates *gates = wr_group_gates(group);
    struct weir_task *next;

    if (first && wr_cost_at(first) == cost && turn_lasts(turn, group, chain) &&
        has_record(group, first, turn) &&
        (!gates || (!group->sums.closed && wr_gates_grant(group, turn->clock))) &&
        hand_over(group, turn, cost)) {
        turn->tasks++;
        /* While its turn lasts a group that may run several stands first in the ring. */
        if (group->turn_left && --group->turn_left == 0 && group->in_ring)
            wr_ring_to_end(wr_group_ring(group), group);
        next = begin(group, first, turn);
        /* It may want less now, and must then leave the ring; a slot promised to `next` goes to others. */
        if (group->executor->hall && wr_group_refresh(group))
            wr_executor_wake(group->executor);
        return next;
    }
    wr_group_finish(group, cost);
    if (gates)
        wr_gates_turn_over(group, turn->clock);
    /* This worker may have ready fibers to run before it pulls. */
    if (wr_group_refresh(group) || wr_executor_has_ready(group->executor))
        wr_executor_wake(group->executor);
    return NULL;
}

/* Nobody holds the task but us, and nobody wants to hear of it: the common end. */
static bool is_silent(const struct weir_group *group, const struct weir_task *task)
{
    uint32_t word =
        wr_load(&task->word, acquire); /* pairs with whoever gave up a handle just now */

    return word / WR_REF == 1 && !(word & (WR_SIDE | WR_OUTCOME_MASK)) &&
           !wr_load(&task->watchers, relaxed) && !group->executor->policy.given.listener.completed;
}

/* The record of a task that is over, and that nothing points to: kept at hand for the next. Under the lock. */
static void put_record(struct weir_group *group, struct weir_task *task, struct turn *turn)
{
    if (turn->record) {
        wr_task_recycle(group, task);
        return;
    }
    wr_store(&task->word, WR_PHASE_OVER, relaxed); /* no references: not in use */
    turn->record = task;
    group->records--;
}

/* A body has returned; answers the task to run next on this stack, if any. */
static struct weir_task *finish(struct weir_task *task, int error, void *value, struct turn *turn,
                                unsigned chain)
{
    struct weir_group *group = task->group;
    struct weir_task *next = NULL;
    struct wr_end end;
    bool silent, decided = false;

    turn->clock = wr_os_now();
    wr_group_lock(group);
    group->ran_ns += turn->clock - task->started_at;
    silent = is_silent(group, task);
    if (silent) {
        group->bodies--;
        wr_count_outcome(group, wr_outcome_of(error));
        if (wr_group_gates(group))
            wr_gates_ended(group, task, error, turn->clock);
        put_record(group, task, turn);
        next = pass_on(group, turn, 1, chain); /* what costs more has a side record */
        wr_room_made(group->executor);
        wr_group_left(group);
    } else {
        /* Callbacks may take their time, so nothing is handed to us while they run. */
        end = wr_end_of_body(task, error, value, turn->clock);
        decided = wr_task_end_locked(task, &end);
    }
    wr_group_unlock_and_reap(group);
    if (!silent)
        wr_task_tell_end(task, &end, decided);
    return next;
}

/* The body will be settled from outside; or was already, or never will be. */
static void pend(struct weir_task *task)
{
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor; /* once it is pending, anybody may end it */
    struct wr_end end;
    bool over, decided = false, wake = false;

    wr_group_lock(group);
    over = wr_task_must_not_pend(task);
    if (over) {
        end = wr_end_of_body(task, WEIR_ECANCELED, NULL, wr_os_now());
        decided = wr_task_end_locked(task, &end);
    } else {
        group->bodies--;
        group->pending++;
        wr_pend(&group->sums, &ex->root, wr_task_cost(task));
        wr_task_pend(task, WR_PHASE_PENDING);
        if (wr_group_gates(group)) /* its turn is over */
            wr_gates_turn_over(group, wr_os_now());
        wake = wr_group_refresh(group);
    }
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(ex);
    if (over)
        wr_task_tell_end(task, &end, decided);
    else
        wr_room_made(ex);
}

/* ---- running ----------------------------------------------------------------------------------- */

int wr_task_call(struct weir_task *task, weir_fn *fn, void *arg, void **value)
{
    struct wr_side *side = wr_task_side(task);
    struct wr_locals *former = wr_locals_install(side ? side->locals : NULL);
    int error;

    if (side)
        side->locals = NULL;
    error = fn(value, arg);
    wr_locals_release(wr_locals_install(former)); /* with what the body has set itself */
    return error;
}

/* ---- the common case ---------------------------------------------------------------------------- */

/* Tasks without anything, of which each is followed by another of its group: they run one after the other on one record,
 * by a hand. Whatever is out of the ordinary is left to finish(). */

/* Whether the task has nothing but its body, so that another may go on with its record. */
static bool is_plain(const struct weir_task *task)
{
    return wr_load(&task->word, acquire) == (WR_PHASE_RUNNING | WR_REF) && /* see is_silent */
           !wr_load(&task->watchers, relaxed);
}

/* How many tasks may follow this one with its permits: none if anything is in the way. Under the lock. */
static uint32_t may_follow(struct weir_group *group, const struct weir_task *task,
                           const struct turn *turn)
{
    const struct wr_rare *rare = group->rare;
    uint32_t most = CHAIN_MAX - turn->tasks;

    if (!is_plain(task) || group->evicted || group->carrier != WEIR_WORKERS ||
        turn->group != group || !wr_may_follow(&group->sums) ||
        !wr_queue_first(group, &group->queue))
        return 0;
    if (!rare)
        return most;
    if (rare->levels[0].first || (group->executor->hall && !wr_domain_is_quiet(group)))
        return 0;
    if (rare->gates && wr_gates_follow(group) < most)
        return wr_gates_follow(group);
    return most;
}

/* A hand for the rest of the turn, or (false) none. */
static bool take_hand(struct wr_hand *hand, struct weir_group *group, struct weir_task *task,
                      const struct turn *turn)
{
    bool given;

    if (!is_plain(task))
        return false;
    wr_hand_finish(hand);
    wr_group_lock(group);
    given = wr_hand_give(hand, group, task, may_follow(group, task, turn));
    wr_unlock(&group->lock);
    return given;
}

/* The next task, which begins where the one before it ended; NULL: none follows. */
static const uint64_t *go_on(struct wr_hand *hand, struct weir_group *group, struct weir_task *task,
                             struct turn *turn)
{
    const struct wr_hall *hall = group->executor->hall;
    const uint64_t *entry;

    turn->clock = wr_os_now();
    if (turn->tasks >= CHAIN_MAX ||
        turn->clock - turn->began >= (int64_t)group->weight * SLICE_NS ||
        turn->asked != wr_asked(group) || (hall && !wr_hall_is_calm(hall, group->domain)))
        return NULL;
    entry = wr_hand_step(hand, turn->clock);
    if (!entry && take_hand(hand, group, task, turn))
        entry = wr_hand_step(hand, turn->clock);
    turn->tasks += entry != NULL;
    return entry;
}

/* Runs a task, and those that follow it. Answers what the last one did. */
static int run_plain(struct weir_task *task, struct turn *turn, struct wr_hand *hand, void **value)
{
    struct weir_group *group = task->group;
    int error = wr_task_call(task, turn->fn, turn->arg, value);
    void **context = wr_context_slot(), *former = *context;
    const uint64_t *entry;

    *context = NULL;
    while (error == 0 && wr_body_next() && (entry = go_on(hand, group, task, turn))) {
        *value = NULL;
        error = wr_entry_fn(entry)(value, wr_entry_arg(entry));
        if (WR_UNLIKELY(*context != NULL)) /* what the body has set itself */
            wr_locals_release(wr_locals_install(NULL));
    }
    *context = former;
    return error;
}

/* ---- running ----------------------------------------------------------------------------------- */

/* Runs a task (but not if it was settled on its way here) and those that are handed its permits. */
static void run_chain(struct weir_executor *ex, struct weir_task *task, struct turn *turn,
                      bool settled)
{
    const weir_listener *listener = &ex->policy.given.listener;
    bool on_thread = turn->on_thread;
    bool plain = !on_thread && !listener->started && !listener->completed;
    struct wr_hand *hand = plain ? &scratch_of_worker()->hand : NULL;
    for (unsigned chain = 0; task; chain++) {
        void *value = NULL, *arg = turn->arg;
        weir_fn *fn = turn->fn;
        int error;

        if (on_thread)
            wr_thread_carries(task);
        else if (chain)
            wr_body_begins(task);
        if (settled) {
            error = WEIR_ECANCELED;
        } else if (plain) {
            error = run_plain(task, turn, hand, &value);
        } else {
            if (listener->started)
                listener->started(task, listener->arg);
            error = wr_task_call(task, fn, arg, &value);
        }
        settled = false;
        if (on_thread)
            wr_thread_carries(NULL);
        else
            wr_body_over();
        if (error == WEIR_PENDING) {
            wr_task_drop_value(task, value);
            pend(task);
            task = NULL;
        } else {
            task = finish(task, error, value, turn, chain);
        }
    }
}

/* On the thread. A task that was settled on its way here, by a cancel or its deadline, is not run. */
static void run_errand(struct wr_job *job)
{
    struct errand *errand = WR_CONTAINER(job, struct errand, job);
    struct weir_task *task = errand->task;
    struct weir_executor *ex = task->group->executor;
    struct turn turn = errand->turn;
    bool settled;

    wr_os_free(errand);
    turn.on_thread = true;
    wr_group_lock(task->group);
    settled = wr_task_outcome(task) != WEIR_UNSETTLED;
    if (!settled) {
        task->runner = wr_parker_self(NULL);
        wr_watch_on_thread(task);
        wr_watch_on_way(task, false);
    }
    wr_unlock(&task->group->lock);
    run_chain(ex, task, &turn, settled);
    if (turn.record)
        wr_cell_give(&ex->cells, 0, turn.record);
    wr_thread_rests(); /* before anybody may count on it */
    wr_berth_leave(ex);
}

/* Sends a task, which has its berth, to a thread. All bodies on threads share the pool of the executor's own workers:
 * one cap, and no idle threads elsewhere. False: no thread can be started, and it runs here. */
static bool send_to_thread(struct weir_task *task, const struct turn *turn)
{
    struct weir_executor *ex = task->group->executor;
    struct errand *errand = wr_os_alloc(sizeof(*errand));

    if (!errand)
        return false;
    *errand = (struct errand){ .job.run = run_errand, .task = task, .turn = *turn };
    errand->turn.record = NULL; /* the worker's */
    if (wr_runtime_job(ex->intake.runtime, &errand->job, WR_JOB_AT_ONCE) == 0)
        return true;
    wr_os_free(errand);
    return false;
}

/* Without a thread for it the body runs here after all, unless it is settled; then it is on this fiber. */
static bool sent_to_thread(struct weir_task *task, const struct turn *turn, bool *settled)
{
    wr_body_over(); /* a record that is on its way is not ours any more, nor the monitor's */
    if (send_to_thread(task, turn))
        return true;
    wr_berth_leave(task->group->executor);
    wr_group_lock(task->group);
    *settled = wr_task_outcome(task) != WEIR_UNSETTLED;
    if (!*settled) /* else ended_at stands there */
        task->runner = wr_parker_self(NULL);
    wr_watch_on_way(task, false);
    wr_unlock(&task->group->lock);
    wr_body_begins(task);
    return false;
}

static void run(struct wr_source *source, void *item)
{
    struct wr_intake *intake = intake_of(source);
    struct turn *turn = &scratch_of_worker()->turn;
    bool settled = false;

    if (turn->tells) {
        wr_body_over(); /* it is nobody's body */
        wr_watch_tell(item);
    } else if (!turn->to_thread || !sent_to_thread(item, turn, &settled)) {
        run_chain(intake->executor, item, turn, settled);
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
