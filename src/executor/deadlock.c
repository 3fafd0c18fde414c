/* Waits of tasks: their begin and end, and circles in words; see deadlock.h.
 * SPDX-License-Identifier: MIT */
#include "executor/deadlock.h"

#include "base/say.h"
#include "executor/state.h"

#include <weir/error.h>

struct wr_lock wr_waits_lock;
static uint64_t waits_so_far; /* under the lock */

/* ---- in words -------------------------------------------------------------------------------- */

static void say_task(weir_message *message, const struct weir_task *task)
{
    const char *id = weir_task_id(task);

    wr_say(message, "%s%s%s of group \"%.32s\"", *id ? "task \"" : "a task", id, *id ? "\"" : "",
           task->group->key);
}

/* Follows the stuck waits from this one until one comes up twice, or the message is full. During a walk. */
static void say_circle(weir_message *message, struct wr_wait *wait)
{
    enum { STEPS_MAX = 8 };
    struct wr_wait *first = wait;

    message->text[0] = '\0';
    say_task(message, wr_nested_wait_of(wait)->waiter);
    for (int step = 0; wait && step < STEPS_MAX; step++) {
        const struct wr_nested_wait *nested = wr_nested_wait_of(wait);
        const struct wr_need *need = wr_outlook_unserved(wait->outlook);
        wr_say(message, step ? ", which waits for " : " waits for ");
        if (nested->room)
            wr_say(message, "room in group \"%.32s\"", nested->room->key);
        else
            say_task(message, nested->awaited[0]);
        wait = wait->outlook->other;
        if (!wait && need) {
            wait = wr_node_stuck_holder(need->node, first);
            wr_say(message, ", which needs %s held by ", need->what);
            if (wait)
                say_task(message, wr_nested_wait_of(wait)->waiter);
        }
        if (wait == first)
            return;
    }
}

/* ---- entering and leaving --------------------------------------------------------------------- */

/* The generation that is charged for the group's tasks: the last one, if it was evicted with WEIR_CARRY_OVER. */
static struct weir_group *charged_group(struct weir_group *group)
{
    for (struct weir_group *heir = group; heir;) {
        group = heir;
        wr_group_lock(group);
        heir = wr_group_heir(group);
        wr_unlock(&group->lock);
    }
    return group;
}

/* One wait more that events of its executors may concern, or (-1) one less. Pairs with wr_domain_reserve_thread. */
static void count_wait(const struct wr_nested_wait *nested, int more)
{
    struct wr_domain *domain = wr_group_domain(nested->waiter->group);

    if (domain)
        wr_add(&domain->waits, (uint32_t)more, seq_cst);
    for (uint32_t i = nested->executors; i < nested->wait.holds; i++) {
        const struct wr_hold *hold = &nested->wait.hold[i];
        struct wr_nested_waits *of = WR_CONTAINER(hold->fixed, struct wr_nested_waits, node);
        wr_add(&of->count, (uint32_t)more, seq_cst);
        wr_add(&of->parked, (uint64_t)(more * (int64_t)hold->permits), relaxed);
    }
}

static void hold_executor(struct wr_nested_wait *nested, struct weir_executor *ex, uint32_t permits)
{
    struct wr_wait *wait = &nested->wait;

    for (uint32_t i = nested->executors; i < wait->holds; i++)
        if (wait->hold[i].fixed == &ex->nested.node)
            return;
    /* Of more executors than there is room for, events go unnoticed. */
    if (wait->holds < WR_HOLDS_MAX)
        wr_wait_hold(wait, &ex->nested.node, permits);
}

/* Notes all that the waiter keeps, and the executors whose events may concern it. */
static void hold_all(struct wr_nested_wait *nested)
{
    struct weir_group *group = nested->waiter->group;
    struct weir_executor *ex = group->executor;
    bool holds_permits = wr_task_phase(nested->waiter) != WR_PHASE_GUEST; /* no caller runs it */
    uint32_t cost = holds_permits ? wr_task_cost(nested->waiter) : 0;

    wr_wait_hold_at(&nested->wait, &charged_group(group)->waits, cost);
    if (ex->domains && holds_permits)
        wr_wait_hold(&nested->wait, &ex->domains->domain[group->domain].node, 1);
    if (wr_on_pool_thread() && holds_permits)
        wr_wait_hold(&nested->wait, &ex->nested.threads, 1);
    nested->executors = nested->wait.holds;
    hold_executor(nested, ex, cost);
    if (nested->room)
        hold_executor(nested, nested->room->executor, 0);
    for (size_t i = 0; i < nested->count; i++)
        hold_executor(nested, nested->awaited[i]->group->executor, 0);
    count_wait(nested, 1);
}

static void refuse(struct wr_wait *wait)
{
    struct wr_nested_wait *nested = wr_nested_wait_of(wait);

    if (nested->message)
        say_circle(nested->message, wait);
    wr_store(&wait->refused, true, release); /* pairs with wait_until_told */
    if (wait->begun)
        wr_unpark(nested->parker);
}

static void begin_wait(struct wr_nested_wait *nested)
{
    nested->wait.outlooks = nested->room ? 1 : nested->count;
    if (!nested->wait.outlook)
        nested->wait.outlook = &nested->outlook;
    nested->wait.number = ++waits_so_far;
    nested->frame = wr_frame_innermost();
    nested->parker = wr_parker_self(NULL);
    hold_all(nested);
    nested->parker->wait = &nested->wait; /* its waiter may be awaited itself */
}

/* Which task is first in line for the executor's permits may not be known just now: a worker that pulls finds out. */
static void wait_begun(struct weir_executor *ex)
{
    wr_threads_let_go(ex);
    if (wr_load(&ex->root.inflight_max, relaxed) != WR_INF && wr_executor_has_ready(ex))
        wr_executor_wake(ex);
}

int wr_nested_wait_look(struct wr_nested_wait *nested, weir_reason reason)
{
    struct wr_wait *wait = &nested->wait;
    bool begins = !wait->begun, stuck;

    for (struct weir_task *task = weir_task_self(); task && begins; task = wr_task_outer(task))
        nested->waiter = task;
    if (!nested->waiter)
        return 0;
    wr_lock(&wr_waits_lock);
    if (begins)
        begin_wait(nested);
    nested->reason = reason;
    stuck = wr_load(&wait->refused, relaxed) || wr_wait_is_stuck(wait, wr_outlook_fill, refuse);
    wait->begun = true;
    wr_unlock(&wr_waits_lock);
    if (begins && !stuck)
        wait_begun(nested->waiter->group->executor);
    return stuck ? WEIR_EDEADLK : 0;
}

void wr_nested_wait_leave(struct wr_nested_wait *nested)
{
    if (!nested->waiter)
        return;
    wr_lock(&wr_waits_lock);
    count_wait(nested, -1);
    wr_wait_let_go(&nested->wait);
    nested->parker->wait = NULL;
    wr_unlock(&wr_waits_lock);
}

/* ---- events ------------------------------------------------------------------------------------- */

void wr_waits_suspect(struct weir_executor *ex)
{
    if (!wr_load(&ex->nested.count, seq_cst) || wr_swap(&ex->nested.suspect, true, seq_cst))
        return;
    wr_add(&ex->chores, 1, seq_cst); /* pairs with a sleeper's look; see parking.md */
    wr_executor_wake_all(ex);
}

void wr_waits_look_again(struct weir_executor *ex)
{
    wr_lock(&wr_waits_lock);
    if (wr_swap(&ex->nested.suspect, false, seq_cst))
        wr_sub(&ex->chores, 1, seq_cst);
    wr_node_break_circles(&ex->nested.node, wr_outlook_fill, refuse);
    wr_unlock(&wr_waits_lock);
    wr_threads_let_go(ex); /* the slots that some were kept for may have been taken away */
}
