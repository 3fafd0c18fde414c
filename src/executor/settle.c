/* Results, and the one way in which tasks end; see settle.h.
 * SPDX-License-Identifier: MIT */
#include "executor/settle.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/state.h"
#include "executor/tell.h"

#include <weir/error.h>

enum { /* sets of phases */
       /* An end does not take the task out: its body runs on, or the submit has yet to let go of it */
       STAYS =
           1 << WR_PHASE_NEW | 1 << WR_PHASE_RUNNING | 1 << WR_PHASE_REFUSED | 1 << WR_PHASE_GUEST,
       STARTED = 1 << WR_PHASE_RUNNING | 1 << WR_PHASE_PENDING | 1 << WR_PHASE_GUEST |
                 1 << WR_PHASE_ASIDE,
};

void wr_task_drop_value(struct weir_task *task, void *value)
{
    struct wr_side *side = wr_task_side(task);

    if (value && side && side->drop)
        side->drop(value);
}

void wr_task_result(weir_result *result, struct weir_task *task)
{
    *result = (weir_result){
        .size = sizeof(*result),
        .outcome = wr_task_outcome(task),
        .error = wr_load(&task->error, relaxed),
        .reason = wr_task_reason(task),
        .queued_at = task->queued_at,
        .started_at = task->started_at,
        .ended_at = task->ended_at,
        .key = task->group->key,
        .id = weir_task_id(task),
    };
    if (!(wr_task_word(task) & WR_TAKEN) && result->outcome == WEIR_DONE)
        result->value = *wr_task_value(task);
}

bool weir_task_done(const weir_task *task)
{
    return wr_load(&task->word, acquire) & WR_DONE; /* pairs with publish */
}

void wr_count_ends(struct weir_group *group, weir_outcome outcome, uint32_t count)
{
    if (outcome == WEIR_DONE)
        group->succeeded += count;
    else if (outcome == WEIR_FAILED)
        group->failed += count;
    else if (outcome == WEIR_CANCELLED)
        group->cancelled += count;
}

static void count(struct weir_group *group, const struct wr_end *end)
{
    struct wr_domain *domain = wr_group_domain(group);

    wr_count_ends(group, end->outcome, 1);
    if (end->outcome == WEIR_REJECTED)
        wr_group_refuse_count(group, end->reason);
    if (end->outcome != WEIR_TIMED_OUT)
        return;
    if (wr_group_extras(group)) /* without memory one is not counted; it is told all the same */
        group->extras->timed_out++;
    if (domain)
        wr_add(&domain->timed_out, 1, relaxed);
}

/* A task waits no more, and has left its queue. */
static void withdraw(struct weir_group *group, uint32_t cost)
{
    wr_withdraw(&group->sums, &group->executor->root, cost);
    if (group->executor->domains)
        wr_domain_queued(group, -1);
}

void wr_task_pend(struct weir_task *task, uint32_t phase)
{
    struct weir_group *group = task->group;
    struct wr_side *side = wr_task_side(task);

    if (side)
        side->arg_holds++; /* the last reference's: the code that settles it may use the argument */
    wr_task_set_phase(task, phase);
    task->next = group->pending_first;
    task->before = &group->pending_first;
    if (task->next)
        task->next->before = &task->next;
    group->pending_first = task;
}

/* Takes a task from where it stands, and gives back all that it holds there. */
static void take_out(struct weir_group *group, struct weir_task *task, uint32_t phase,
                     const struct wr_end *end)
{
    const struct wr_side *side = wr_task_side(task);
    bool decided = wr_task_outcome(task) != WEIR_UNSETTLED, freed = wr_watch_over(task);
    uint32_t cost = wr_task_cost(task);

    if (STARTED >> phase & 1 && wr_group_gates(group)) /* those that let it through hear of it */
        wr_gates_ended(wr_group_gates(group), task,
                       decided ? wr_load(&task->error, relaxed) : end->error, task->started_at,
                       end->at);
    if (phase == WR_PHASE_PENDING || phase == WR_PHASE_ASIDE) {
        *task->before = task->next;
        if (task->next)
            task->next->before = task->before;
    }
    switch (phase) {
    case WR_PHASE_QUEUED:
        wr_queue_remove(wr_group_level(group, side ? side->level : WR_LEVEL_NORMAL), &task->queued,
                        group->sums.queued, &group->executor->cells, group->hash);
        withdraw(group, cost);
        break;
    case WR_PHASE_RUNNING:
        if (!freed) {
            group->bodies--;
            wr_group_finish(group, cost);
        }
        if (wr_group_gates(group))
            wr_group_gates_turn_over(group, wr_os_now());
        break;
    case WR_PHASE_PENDING:
        group->pending--;
        wr_group_settle_pending(group, cost);
        break;
    case WR_PHASE_GUEST:
    case WR_PHASE_ASIDE:
        group->telling--;
        break;
    default:
        break;
    }
}

/* Fixes the result, and the value is the task's from now on; the phase is not changed. The telling has a reference of its own if
 * the body, or the submit, keeps the one it has: if the task is not `over`. */
static void decide(struct weir_task *task, uint32_t phase, const struct wr_end *end, bool over)
{
    struct wr_side *side = wr_task_side(task);
    weir_time started_at = end->started_at        ? end->started_at
                           : STARTED >> phase & 1 ? task->started_at
                                                  : end->at;
    bool aborted = end->outcome == WEIR_REJECTED && !end->handled &&
                   task->group->executor->policy.given.rejection == WEIR_ABORT;

    /* Readings of different threads' clocks, or from before a lock, may stand in the wrong order. */
    if (started_at < task->queued_at)
        started_at = task->queued_at;
    *wr_task_value(task) = end->value;
    wr_store(&task->error, end->error, relaxed);
    task->started_at = started_at;
    task->ended_at = end->at > started_at ? end->at : started_at;
    if (side && !over)
        side->arg_holds++;
    wr_add(&task->word,
           (uint32_t)end->outcome << WR_OUTCOME_SHIFT | (uint32_t)end->reason << WR_REASON_SHIFT |
               (aborted ? WR_ABORTED : 0) | (over ? 0 : WR_REF),
           release);
}

bool wr_task_end_locked(struct weir_task *task, const struct wr_end *end)
{
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor;
    uint32_t phase = wr_task_phase(task);
    bool decides = wr_task_outcome(task) == WEIR_UNSETTLED;
    bool over = end->body_over || !(STAYS >> phase & 1);
    const struct wr_side *side = wr_task_side(task);
    struct wr_parker *runner = NULL;

    /* One that is refused is ended by its submit. */
    if (!end->body_over &&
        (!decides || phase == WR_PHASE_REFUSED || (end->if_begun && !(STARTED >> phase & 1))))
        return false;
    if (!over && wr_phase_has_body(phase))
        runner = task->runner;
    wr_group_entered(group); /* first: a wait for quiet never misses it */
    group->telling++;
    if (over)
        take_out(group, task, phase, end);
    if (decides) {
        decide(task, phase, end, over);
        if (!end->uncounted)
            count(group, end);
    } else if (wr_task_outcome(task) != WEIR_DONE && !(side && side->drop)) {
        *wr_task_value(task) = end->value; /* for weir_execute_all; else it is dropped */
    }
    if (over && !end->handled)
        wr_task_set_phase(task, WR_PHASE_OVER);
    if (runner)
        wr_unpark(runner); /* it cannot end before we let go of the lock */
    if (wr_group_refresh(group) || wr_executor_has_ready(ex))
        wr_executor_wake(ex);
    WR_ASSERT_SLOW(wr_group_is_valid(group));
    wr_room_made(ex);
    return decides;
}

void wr_task_tell_end(struct weir_task *task, const struct wr_end *end, bool decided)
{
    if (decided) {
        wr_tell(task);
    } else {
        wr_task_drop_value(task, end->value);
        wr_waitq_wake_all(&task->group->executor->returned); /* see wr_task_wait_over */
        wr_task_told(task);
    }
}

bool wr_task_end(struct weir_task *task, const struct wr_end *end)
{
    struct weir_group *group = task->group;
    bool decided;

    wr_group_lock(group);
    decided = wr_task_end_locked(task, end);
    wr_unlock(&group->lock);
    if (decided || end->body_over)
        wr_task_tell_end(task, end, decided);
    return decided;
}

/* Why a body was asked to end, or its task was ended; GAVE_UP: neither happened, it ends by itself. Under the lock; without it
 * the answer may be wrong if another thread ends the task meanwhile. */
static weir_reason asked_by(const struct weir_task *task)
{
    const struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor;
    bool asked = wr_load(&task->error, relaxed) != (int32_t)wr_cancels(group);

    if (wr_task_outcome(task) != WEIR_UNSETTLED)
        return wr_task_reason(task) ? wr_task_reason(task) : WEIR_REASON_GAVE_UP;
    if (wr_load(&ex->cancel_all, acquire) || wr_load(&ex->freeing, acquire) ||
        (asked && wr_load(&ex->closed, acquire)))
        return WEIR_REASON_SHUT_DOWN;
    if (wr_load(&group->use, acquire) == WR_CANCELLED)
        return WEIR_REASON_EVICTED;
    return asked ? WEIR_REASON_DOMAIN_RELEASED : WEIR_REASON_GAVE_UP;
}

weir_reason wr_task_asked_by(struct weir_task *task)
{
    weir_reason reason;

    wr_group_lock(task->group);
    reason = asked_by(task);
    wr_unlock(&task->group->lock);
    return reason;
}

struct wr_end wr_end_of_body(const struct weir_task *task, int error, void *value, weir_time now)
{
    return (struct wr_end){ .outcome = wr_outcome_of(error),
                            .error = error,
                            .reason = error == WEIR_ECANCELED ? asked_by(task) : WEIR_REASON_NONE,
                            .value = value,
                            .at = now,
                            .body_over = true };
}

struct wr_end wr_end_without_body(weir_outcome outcome, weir_reason reason)
{
    static const int error[] = { [WEIR_CANCELLED] = WEIR_ECANCELED,
                                 [WEIR_REJECTED] = WEIR_EREJECTED,
                                 [WEIR_TIMED_OUT] = WEIR_ETIMEDOUT };

    return (struct wr_end){
        .outcome = outcome, .error = error[outcome], .reason = reason, .at = wr_os_now()
    };
}

/* Its permits are those of a pending task from now on; a guest has none. Answers whether a worker should be woken. */
static bool pend(struct weir_group *group, struct weir_task *task)
{
    if (wr_task_phase(task) == WR_PHASE_GUEST) {
        wr_task_pend(task, WR_PHASE_ASIDE);
        return false;
    }
    group->bodies--;
    group->pending++;
    wr_pend(&group->sums, &group->executor->root, wr_task_cost(task));
    wr_task_pend(task, WR_PHASE_PENDING);
    if (wr_group_gates(group)) /* its turn is over */
        wr_group_gates_turn_over(group, wr_os_now());
    return wr_group_refresh(group);
}

void wr_body_pends(struct weir_task *task, void *value)
{
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor; /* once it is pending, any thread may end it */
    struct wr_end end;
    bool over, wake;

    wr_task_drop_value(task, value);
    wr_group_lock(group);
    over = wr_task_is_asked_to_end(task) || wr_load(&ex->freeing, acquire);
    wake = !over && pend(group, task);
    wr_unlock(&group->lock);
    if (wake)
        wr_executor_wake(ex);
    wr_room_made(ex);
    if (over) {
        end = wr_end_of_body(task, WEIR_ECANCELED, NULL, wr_os_now());
        wr_task_end(task, &end);
    }
}

void wr_group_end_pending(struct weir_group *group, weir_reason reason)
{
    struct wr_end end = wr_end_without_body(WEIR_CANCELLED, reason);

    wr_group_lock(group);
    while (group->pending_first) {
        struct weir_task *task = group->pending_first;
        wr_task_end_locked(task, &end);
        wr_tell_locked(task);
    }
    wr_unlock(&group->lock);
}

/* Without memory for a record the listener is not told of it; there is nothing else to tell. */
static void drop_first_entry(struct weir_group *group, const struct wr_end *end)
{
    wr_group_pop(group, wr_group_first(group));
    withdraw(group, 1);
    group->submitted++; /* as an entry it was counted by standing there */
    count(group, end);
    wr_group_left(group);
}

bool wr_reject_first(struct weir_group *group, weir_reason reason)
{
    struct wr_end end = wr_end_without_body(WEIR_REJECTED, reason);
    struct weir_task *task = NULL;
    uint64_t *first;

    wr_group_lock(group);
    first = wr_group_first(group);
    if (reason == WEIR_REASON_DOMAIN_RELEASED && !wr_domain_is_released(group))
        first = NULL; /* it was restored, and this one may have come since */
    if (first)
        task = wr_is_entry(*first) ? wr_group_make_record(group, first) : wr_record_at(first);
    if (task)
        wr_task_end_locked(task, &end);
    else if (first)
        drop_first_entry(group, &end);
    wr_unlock(&group->lock);
    if (task)
        wr_task_tell_end(task, &end, true);
    return first != NULL;
}

void wr_group_entered(struct weir_group *group)
{
    if (group->idle) {
        group->idle = false;
        wr_add(&group->executor->live, 1, relaxed);
    }
}

void wr_group_left(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;

    if (group->idle || group->sums.queued || group->sums.inflight || group->telling)
        return;
    group->idle = true;
    group->idle_since = wr_idle_ms(wr_os_now_coarse());
    if (WR_UNLIKELY(wr_cells_are_scarce(&ex->cells)))
        wr_group_empty_queue(group, &group->queue);
    if (wr_sub(&ex->live, 1, seq_cst) == 1)
        wr_waitq_wake_all(&ex->quiet);
}

void wr_room_made(struct weir_executor *ex)
{
    wr_waitq_wake_all(&ex->room);
}
