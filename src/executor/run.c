/* Running: the tasks of a turn, one after the other; what happens when a body has returned, and what goes on from there.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "executor/group_check.h"
#include "executor/local.h"
#include "executor/settle.h"
#include "executor/turn.h"

#include <weir/error.h>

enum {
    SLICE_NS = 8000,  /* how long a turn of weight 1 may go on if its tasks are short        */
    SLICE_TASKS = 32, /* and how many tasks of weight 1 it may run then                      */
    CHAIN_MAX = 32,   /* tasks run in a row before the worker looks around                    */
};

/* ---- a task begins -------------------------------------------------------------------------------- */

bool wr_group_turn_has_record(struct weir_group *group, const uint64_t *first,
                              struct wr_group_turn *turn)
{
    if (!wr_is_entry(*first) || turn->record)
        return true;
    turn->record = wr_cell_take(&group->executor->cells, group->hash);
    return turn->record != NULL;
}

/* Makes a record of the first entry of the queue, on the one at hand. */
static struct weir_task *make_record(struct weir_group *group, const uint64_t *entry,
                                     struct wr_group_turn *turn)
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

static struct weir_task *take_record(struct weir_task *task, struct wr_group_turn *turn)
{
    turn->fn = task->fn;
    turn->arg = wr_task_arg(task);
    wr_task_set_phase(task, WR_PHASE_RUNNING);
    return task;
}

struct weir_task *wr_group_turn_begin(struct weir_group *group, const uint64_t *first,
                                      struct wr_group_turn *turn)
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
    turn->closed = group->sums.closed != 0;
    if (wr_task_watched(task)) {
        wr_watch_started(task, now);
        if (turn->on_thread)
            wr_watch_on_thread(task);
    }
    return task;
}

/* ---- its body is over ------------------------------------------------------------------------------- */

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

bool wr_group_has_rivals(struct weir_group *group, uint32_t own)
{
    struct weir_executor *ex = group->executor;
    uint32_t itself;
    bool more;

    wr_group_lock(group);
    itself = group->in_ring ? 1 : 0;
    more = group->sums.queued > own;
    wr_unlock(&group->lock);
    if (ex->domains)
        return more || wr_executor_has_ready(ex);
    return more || wr_load(&ex->ring.count, relaxed) > itself;
}

/* Whether the turn may go on with another task of the group. */
static bool turn_lasts(const struct wr_group_turn *turn, const struct weir_group *group,
                       unsigned chain)
{
    uint64_t weight = group->weight;

    if (turn->group != group || chain >= CHAIN_MAX || turn->tasks >= CHAIN_MAX)
        return false;
    if (!turn->on_thread && (wr_body_has_parked() || group->carrier == WEIR_THREADS))
        return false;
    if (wr_load(&wr_group_ring(group)->count, relaxed) == 0 &&
        (!group->executor->domains || !wr_executor_has_ready(group->executor)) &&
        (!turn->on_thread || !wr_thread_others_wait(group)))
        return true; /* nobody else waits for a turn */
    return turn->tasks < weight || (turn->tasks < weight * SLICE_TASKS &&
                                    turn->clock - turn->began < (int64_t)weight * SLICE_NS);
}

/* Permits of the whole path, or none. The domain's slot is kept: nobody else has a claim to it. */
static bool hand_over(struct weir_group *group, struct wr_group_turn *turn, uint32_t cost)
{
    struct wr_root *root = &group->executor->root;

    turn->asked = wr_asked(group);
    if (!group->executor->domains)
        return wr_hand_over(&group->sums, root, cost);
    if (!wr_domain_hand_over(group))
        return false;
    if (wr_hand_over(&group->sums, root, cost))
        return true;
    wr_domain_hand_back(group);
    return false;
}

/* Gives the permits of a finished task to the next of its group, or back. Answers the next. */
static struct weir_task *pass_on(struct weir_group *group, struct wr_group_turn *turn,
                                 uint32_t cost, unsigned chain)
{
    const uint64_t *first = group->sums.queued && !group->evicted ? wr_group_first(group) : NULL;
    struct wr_gates *gates = wr_group_gates(group);
    struct weir_task *next;

    if (first && wr_cost_at(first) == cost && turn_lasts(turn, group, chain) &&
        wr_group_turn_has_record(group, first, turn) &&
        (!gates || (!group->sums.closed && wr_gates_grant(group, turn->clock))) &&
        hand_over(group, turn, cost)) {
        turn->tasks++;
        /* While its turn lasts a group that may run several stands first in the ring. */
        if (group->turn_left && --group->turn_left == 0 && group->in_ring)
            wr_ring_to_end(wr_group_ring(group), group);
        next = wr_group_turn_begin(group, first, turn);
        /* It may want less now, and must then leave the ring; a slot promised to `next` goes to others. */
        if (wr_group_is_counted(group) && wr_group_refresh(group))
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
static void put_record(struct weir_group *group, struct weir_task *task, struct wr_group_turn *turn)
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
static struct weir_task *finish(struct weir_task *task, int error, void *value,
                                struct wr_group_turn *turn, unsigned chain)
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
    WR_ASSERT_SLOW(wr_group_is_valid(group));
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
                           const struct wr_group_turn *turn)
{
    const struct wr_extras *extras = group->extras;
    uint32_t most = CHAIN_MAX - turn->tasks;

    if (!is_plain(task) || group->evicted || group->carrier != WEIR_WORKERS ||
        turn->group != group || !wr_may_follow(&group->sums) ||
        !wr_queue_first(group, &group->queue))
        return 0;
    if (!extras)
        return most;
    if (extras->levels[0].first || (group->executor->domains && !wr_domain_is_quiet(group)))
        return 0;
    if (extras->gates && wr_gates_follow(group) < most)
        return wr_gates_follow(group);
    return most;
}

/* A hand for the rest of the turn, or (false) none. */
static bool take_hand(struct wr_hand *hand, struct weir_group *group, struct weir_task *task,
                      const struct wr_group_turn *turn)
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
                             struct wr_group_turn *turn)
{
    const struct wr_domains *domains = group->executor->domains;
    const uint64_t *entry;

    turn->clock = wr_os_now();
    if (turn->tasks >= CHAIN_MAX || turn->closed ||
        turn->clock - turn->began >= (int64_t)group->weight * SLICE_NS ||
        turn->asked != wr_asked(group) || (domains && !wr_domains_is_calm(domains, group->domain)))
        return NULL;
    entry = wr_hand_step(hand, turn->clock);
    if (!entry && take_hand(hand, group, task, turn))
        entry = wr_hand_step(hand, turn->clock);
    turn->tasks += entry != NULL;
    return entry;
}

/* Runs a task, and those that follow it. Answers what the last one did. */
static int run_plain(struct weir_task *task, struct wr_group_turn *turn, struct wr_hand *hand,
                     void **value)
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

void wr_run_turn(struct weir_executor *ex, struct weir_task *task, struct wr_group_turn *turn,
                 bool settled)
{
    const weir_listener *listener = &ex->policy.given.listener;
    bool on_thread = turn->on_thread;
    bool plain = !on_thread && !listener->started && !listener->completed;
    struct wr_hand *hand = plain ? &wr_worker_turn()->hand : NULL;
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
