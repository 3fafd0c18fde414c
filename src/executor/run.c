/* Running: the tasks of a turn, one after the other; what happens when a body has returned, and what goes on from there.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/slice.h"

#include <weir/error.h>

enum {
    SLICE_TASKS = 128, /* how many short tasks a slice may have, before the worker looks around */
    HAND_FIRST = 4,    /* tasks of a slice's first hand: whether they are short is not known yet */
};

/* ---- a task begins -------------------------------------------------------------------------------- */

bool wr_slice_has_record(struct weir_group *group, const uint64_t *first, struct wr_slice *slice)
{
    if (!wr_is_entry(*first) || slice->record)
        return true;
    slice->record = wr_cell_take(&group->executor->cells, group->hash);
    return slice->record != NULL;
}

/* Makes a record of the first entry of the queue, on the one at hand. */
static struct weir_task *make_record(struct weir_group *group, const uint64_t *entry,
                                     struct wr_slice *slice)
{
    struct weir_task *task = wr_slice_use_record(group, slice);

    group->submitted++; /* until now it was counted by standing in the queue */
    wr_task_read_entry(task, entry);
    slice->fn = task->fn;
    slice->arg = task->u.arg;
    return task;
}

static struct weir_task *take_record(struct weir_task *task, struct wr_slice *slice)
{
    slice->fn = task->fn;
    slice->arg = wr_task_arg(task);
    wr_task_set_phase(task, WR_PHASE_RUNNING);
    return task;
}

struct weir_task *wr_slice_begin(struct weir_group *group, const uint64_t *first,
                                 struct wr_slice *slice)
{
    struct weir_task *task;
    weir_time now = slice->clock;

    task = wr_is_entry(*first) ? make_record(group, first, slice)
                               : take_record(wr_record_at(first), slice);
    wr_group_pop(group, first); /* with what it says */
    if (now < task->queued_at)  /* read on another CPU */
        now = task->queued_at;
    task->started_at = now;
    wr_store(&task->error, (int32_t)slice->cancels, relaxed);
    task->runner = wr_parker_self(NULL); /* on a worker this is the fiber that will run it */
    group->started++;
    group->bodies++;
    slice->waited = now - task->queued_at;
    group->waited_ns += slice->waited;
    if (group->bodies > group->peak)
        group->peak = group->bodies;
    if (wr_group_gates(group))
        wr_group_gates_started(group, task, now);
    slice->closed = group->sums.closed != WR_OPEN;
    if (wr_task_side(task)) {
        wr_watch_arm(task, now, WEIR_REASON_RUN_DEADLINE);
        if (slice->on_thread)
            wr_watch_carried(task, WR_BY_THREAD);
    }
    return task;
}

/* ---- its body is over ------------------------------------------------------------------------------- */

bool wr_group_has_rivals(struct weir_group *group, uint32_t own)
{
    struct weir_executor *ex = group->executor;
    uint32_t itself;
    bool more;

    wr_group_lock(group);
    itself = wr_group_stands_at(group, WR_READY);
    more = group->sums.queued > own;
    wr_unlock(&group->lock);
    if (ex->domains)
        return more || wr_executor_has_ready(ex);
    return more || wr_line_count(&ex->ring) > itself;
}

/* Whether this worker, or thread, may go on with another task of the group at all. */
static bool stays(const struct wr_slice *slice, const struct weir_group *group, unsigned chain)
{
    if (slice->group != group || chain >= SLICE_TASKS)
        return false;
    if (slice->on_thread) /* unless weir_group_run_on said meanwhile where its next task runs */
        return group->carrier == WEIR_THREADS;
    return !wr_body_has_parked() && group->carrier == WEIR_WORKERS;
}

/* Whether the next task belongs to the same slice. */
static bool slice_lasts(const struct wr_slice *slice, const struct weir_group *group)
{
    if (slice->tasks >= SLICE_TASKS)
        return false;
    if (slice->clock - slice->began < WR_SLICE_NS)
        return true;
    return !wr_line_has_stands(wr_group_ring(group)) && /* no other group waits for a turn */
           (!group->executor->domains || !wr_executor_has_ready(group->executor)) &&
           (!slice->on_thread || !wr_thread_others_wait(group));
}

/* Its next turn comes after all others in the line that it stands in. */
static void end_turn(struct weir_group *group)
{
    struct wr_line *line = NULL;

    if (wr_group_place(group) == WR_READY)
        line = wr_group_ring(group);
    else if (wr_group_place(group) == WR_AWAITS_THREAD)
        line = &group->executor->threads.line;
    if (line)
        wr_line_to_end(line, &group->stand);
}

static void begin_slice(struct wr_slice *slice, struct weir_group *group)
{
    slice->began = slice->clock;
    slice->tasks = 0;
    if (--group->stand.turn_left == 0)
        end_turn(group);
}

/* Takes permits of the whole path, or none. The domain's slot is kept: no other domain has a claim to it. */
static bool hand_over(struct weir_group *group, struct wr_slice *slice, uint32_t cost)
{
    struct wr_root *root = &group->executor->root;

    slice->cancels = wr_cancels(group);
    if (!group->executor->domains)
        return wr_hand_over(&group->sums, root, cost);
    if (!wr_domain_hand_over(group))
        return false;
    if (wr_hand_over(&group->sums, root, cost))
        return true;
    wr_domain_queued(group, 1);
    return false;
}

/* Gives the permits of a finished task to the next of its group, or back. Answers the next task, or NULL. */
static struct weir_task *pass_on(struct weir_group *group, struct wr_slice *slice, uint32_t cost,
                                 unsigned chain)
{
    const uint64_t *first = group->sums.queued && !group->evicted ? wr_group_first(group) : NULL;
    struct wr_gates *gates = wr_group_gates(group);
    struct weir_task *next;
    bool lasts = slice_lasts(slice, group);

    if (first && wr_cost_at(first) == cost && stays(slice, group, chain) &&
        (lasts || wr_stand_is_in_turn(&group->stand)) && wr_slice_has_record(group, first, slice) &&
        (!gates || (!group->sums.closed && wr_group_gates_grant(group, slice->clock))) &&
        hand_over(group, slice, cost)) {
        if (!lasts)
            begin_slice(slice, group);
        slice->tasks++;
        next = wr_slice_begin(group, first, slice);
        /* The group may want less now, and must then leave the ring; a slot promised to `next` goes to others. */
        if (wr_group_is_counted(group) && wr_group_refresh(group))
            wr_executor_wake(group->executor);
        return next;
    }
    wr_group_finish(group, cost);
    if (gates)
        wr_group_gates_turn_over(group, slice->clock);
    /* This worker pulls next, and has another one woken if it has ready fibers to run first, or if there is more. */
    if ((!(gates && wr_beat_give(group, slice)) && wr_group_refresh(group)) ||
        wr_executor_has_ready(group->executor))
        wr_executor_search(group->executor);
    return NULL;
}

/* Whether only this worker holds the task, and no listener or watcher is told of its end: the common case. */
static bool is_silent(const struct weir_group *group, const struct weir_task *task)
{
    uint32_t word =
        wr_load(&task->word, acquire); /* pairs with a thread that gave up a handle just now */

    return word / WR_REF == 1 && !(word & (WR_SIDE | WR_OUTCOME_MASK)) &&
           !wr_load(&task->watchers, relaxed) && !group->executor->policy.given.listener.completed;
}

/* The record of a task that is over, and that nothing points to: kept at hand for the next. Under the lock. */
static void put_record(struct weir_group *group, struct weir_task *task, struct wr_slice *slice)
{
    if (slice->record) {
        wr_task_recycle(group, task);
        return;
    }
    wr_store(&task->word, WR_PHASE_OVER, relaxed); /* no references: not in use */
    slice->record = task;
    group->records--;
}

/* A body has returned; answers the task to run next on this stack, if any. */
static struct weir_task *finish(struct weir_task *task, int error, void *value,
                                struct wr_slice *slice, unsigned chain)
{
    struct weir_group *group = task->group;
    struct weir_task *next = NULL;
    struct wr_end end;
    bool silent, decided = false;

    slice->clock = wr_os_now();
    wr_group_lock(group);
    group->ran_ns += slice->clock - task->started_at;
    silent = is_silent(group, task);
    if (silent) {
        group->bodies--;
        wr_count_ends(group, wr_outcome_of(error), 1);
        if (wr_group_gates(group))
            wr_gates_ended(wr_group_gates(group), task, error, task->started_at, slice->clock);
        put_record(group, task, slice);
        next = pass_on(group, slice, 1, chain); /* what costs more has a side record */
        wr_room_made(group->executor);
        wr_group_left(group);
    } else {
        /* Callbacks may take their time, so nothing is handed to us while they run. */
        end = wr_end_of_body(task, error, value, slice->clock);
        decided = wr_task_end_locked(task, &end);
    }
    WR_ASSERT_SLOW(wr_group_is_valid(group));
    wr_group_unlock_and_reap(group);
    if (!silent)
        wr_task_tell_end(task, &end, decided);
    return next;
}

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

/* Tasks that have nothing but a body, each followed by another of its group: they run one after the other on one record,
 * by a hand. All other ends are left to finish(). */

/* Whether the task has nothing but its body, so that another may go on with its record. */
static bool is_plain(const struct weir_task *task)
{
    return wr_load(&task->word, acquire) == (WR_PHASE_RUNNING | WR_REF) && /* see is_silent */
           !wr_load(&task->watchers, relaxed);
}

/* How many tasks may follow this one with its permits: none if anything is in the way. Under the lock. */
static uint32_t may_follow(struct weir_group *group, const struct weir_task *task,
                           const struct wr_slice *slice)
{
    const struct wr_extras *extras = group->extras;
    uint32_t most = SLICE_TASKS - slice->tasks, follow;

    if (!is_plain(task) || group->evicted || group->carrier != WEIR_WORKERS ||
        slice->group != group || !wr_may_follow(&group->sums) ||
        !wr_group_first_in(group, &group->queue))
        return 0;
    if (!extras)
        return most;
    if (extras->levels[0].first || (group->executor->domains && !wr_domain_is_quiet(group)))
        return 0;
    follow = extras->gates ? wr_gates_follow(wr_group_gates(group)) : most;
    return follow < most ? follow : most;
}

void wr_slice_give_hand(struct weir_group *group, struct weir_task *task,
                        const struct wr_slice *slice)
{
    const weir_listener *listener = &group->executor->policy.given.listener;
    uint32_t most;

    if (listener->started || listener->completed || slice->to_thread)
        return;
    most = may_follow(group, task, slice);
    wr_hand_give(&wr_worker_slice()->hand, group, task, most < HAND_FIRST ? most : HAND_FIRST,
                 WR_HAND_RUNS);
}

/* A hand for the rest of the slice, or (false) none. */
static bool take_hand(struct wr_hand *hand, struct weir_group *group, struct weir_task *task,
                      const struct wr_slice *slice)
{
    bool given;

    if (!is_plain(task))
        return false;
    wr_group_lock(group); /* which folds the one before, if that is out */
    given = wr_hand_give(hand, group, task, may_follow(group, task, slice), WR_HAND_RUNS);
    wr_unlock(&group->lock);
    return given;
}

/* Records that may keep a turn from going on. They are read for each task, and do not lie in the group's memory, which submits
 * write to all the time. */
struct surroundings {
    const struct weir_executor *executor;
    const struct wr_domain *domain;
};

/* Whether the next task may begin without a look at the group, as far as the slice and its surroundings are concerned. */
static bool goes_on(const struct wr_slice *slice, const struct surroundings *around)
{
    const struct wr_domains *domains = around->executor->domains;

    return slice->tasks < SLICE_TASKS && !slice->closed &&
           slice->clock - slice->began < WR_SLICE_NS &&
           slice->cancels == wr_cancels_in(around->executor, around->domain) &&
           (!domains || wr_domains_are_calm(domains));
}

/* The next task, which begins where the one before it ended; NULL: none follows. */
static const uint64_t *go_on(struct wr_hand *hand, struct weir_task *task, struct wr_slice *slice,
                             const struct surroundings *around)
{
    const uint64_t *entry;

    slice->clock = wr_os_now();
    if (!goes_on(slice, around))
        return NULL;
    WR_ASSERT(hand->task == task || !wr_hand_is_out(hand)); /* see pull */
    entry = wr_hand_step(hand, WR_HAND_RUNS, slice->clock);
    if (!entry && take_hand(hand, task->group, task, slice))
        entry = wr_hand_step(hand, WR_HAND_RUNS, slice->clock);
    slice->tasks += entry != NULL;
    return entry;
}

/* Runs a task, and those that follow it. Answers the error of the last one. */
static int run_plain(struct weir_task *task, struct wr_slice *slice, struct wr_hand *hand,
                     void **value)
{
    struct surroundings around = { task->group->executor, wr_group_domain(task->group) };
    int error = wr_task_call(task, slice->fn, slice->arg, value);
    void **context = wr_context_slot(), *former = *context;
    const uint64_t *entry;

    *context = NULL;
    while (error == 0 && wr_body_next() && (entry = go_on(hand, task, slice, &around))) {
        *value = NULL;
        error = wr_entry_fn(entry)(value, wr_entry_arg(entry));
        if (WR_UNLIKELY(*context != NULL)) /* what the body has set itself */
            wr_locals_release(wr_locals_install(NULL));
    }
    *context = former;
    return error;
}

/* ---- running ----------------------------------------------------------------------------------- */

void wr_run_slice(struct weir_executor *ex, struct weir_task *task, struct wr_slice *slice,
                  bool settled)
{
    const weir_listener *listener = &ex->policy.given.listener;
    bool on_thread = slice->on_thread;
    bool plain = !on_thread && !listener->started && !listener->completed;
    struct wr_hand *hand = plain ? &wr_worker_slice()->hand : NULL;
    struct wr_beat *beat = on_thread ? NULL : slice->beat;
    uint32_t step = slice->step;

    for (unsigned chain = 0; task; chain++) {
        void *value = NULL, *arg = slice->arg;
        weir_fn *fn = slice->fn;
        int error;

        if (on_thread)
            wr_thread_carries(task);
        else if (chain)
            wr_body_begins(task);
        if (settled) {
            error = WEIR_ECANCELED;
        } else if (plain) {
            error = run_plain(task, slice, hand, &value);
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
            wr_body_pends(task, value);
            task = NULL;
        } else if (beat && !error && !wr_body_has_parked() &&
                   wr_beat_over(beat, step, slice->clock)) {
            task = NULL;
            beat = NULL; /* it stays the group's */
        } else {
            task = finish(task, error, value, slice, chain);
        }
        if (WR_UNLIKELY(beat != NULL)) /* it was folded while its task ran */
            wr_os_free(beat);
        beat = NULL;
    }
}
