/* Finding waits that can never end.
 *
 * A task that waits for another keeps its permits. If the other needs those permits to start, perhaps by
 * way of further waits, nobody will ever move. All waits of tasks for tasks stand in one list. To begin with all
 * count as stuck; a wait is not if what it waits for can move on: it runs and waits for nobody, or waits in
 * a way that is not stuck, or waits for permits of which somebody holds some who is not stuck. Nor are those
 * stuck who were asked to end, or whose time will be up; to refuse a wait that would have ended is worse than
 * to miss one that would not, so what is not known counts as able to move. When no more
 * can be freed in this way, those left are stuck for good. The wait that closes the circle is the one
 * that is refused. (A circle that is closed otherwise, say by a costly task that goes ahead of an awaited one
 * later, is not found.)
 *
 * Lock order: the list's lock, then a group's. Only waits inside of tasks pay for any of this.
 * SPDX-License-Identifier: MIT */
#include "executor/deadlock.h"

#include "base/assert.h"
#include "executor/executor.h"
#include "executor/settle.h"

#include <stdarg.h>
#include <stdio.h>
#include <weir/error.h>

static struct wr_nested_wait *wait_at(struct wr_list *node)
{
    return WR_CONTAINER(node, struct wr_nested_wait, link);
}

static struct wr_nested_wait *wait_of(struct wr_nested_waits *all, const struct weir_task *waiter)
{
    wr_list_each(node, &all->waits)
        if (wait_at(node)->waiter == waiter)
            return wait_at(node);
    return NULL;
}

/* Permits held by tasks that are stuck; of one group, or (NULL) of all. */
static uint64_t stuck_permits(struct wr_nested_waits *all, const struct weir_group *group)
{
    uint64_t sum = 0;

    wr_list_each(node, &all->waits) {
        struct wr_nested_wait *wait = wait_at(node);
        if (wait->stuck && (!group || wait->waiter->group == group))
            sum += wr_task_cost(wait->waiter);
    }
    return sum;
}

/* Tasks that are stuck and hold slots of a set of domains. */
static uint64_t stuck_slots(struct wr_nested_waits *all, uint64_t domains)
{
    uint64_t sum = 0;

    wr_list_each(node, &all->waits) {
        struct wr_nested_wait *wait = wait_at(node);
        sum += wait->stuck && domains & wr_domain_bit(wait->waiter->group->domain);
    }
    return sum;
}

static uint64_t stuck_on_threads(struct wr_nested_waits *all)
{
    uint64_t sum = 0;

    wr_list_each(node, &all->waits)
        sum += wait_at(node)->stuck && wait_at(node)->on_thread;
    return sum;
}

static bool may_get_slot(struct wr_nested_waits *all, struct weir_group *group)
{
    uint64_t sources;

    if (!group->executor->hall)
        return true;
    sources = wr_domain_sources(group);
    return wr_domain_may_get_slot(group, stuck_slots(all, wr_domain_bit(group->domain)), sources,
                                  stuck_slots(all, sources));
}

/* Whether those to whom the free permits of the executor's are owed first may start yet. */
static bool others_may_start(struct wr_nested_waits *all, struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    uint32_t owed = ex->hall ? wr_domain_most_owed(group) : wr_load(&ex->ring.needed, relaxed);
    uint64_t held = wr_load(&ex->root.held, seq_cst);

    return held + owed <= wr_load(&ex->root.inflight_max, relaxed) ||
           held > stuck_permits(all, NULL) ||
           wr_load(&all->timed, relaxed); /* then one of them may time out: which is not known */
}

/* Whether a task that waits for permits may get them yet: the first in line must, before it can. Under its
 * group's lock. */
static bool may_start(struct wr_nested_waits *all, struct weir_task *task)
{
    struct weir_group *group = task->group;
    struct weir_executor *ex = group->executor;
    struct wr_sums sums = group->sums;

    sums.closed &= (uint16_t)~WR_NO_THREAD; /* a thread alone is not all it needs */
    if (wr_group_first(group) != task && wr_watch_is_armed(wr_group_first(group)))
        return true; /* who is before it may time out */
    if (group->sums.carried)
        return true; /* an evicted generation holds some; whether it is stuck is not looked at */
    if (!wr_berth_may_come(group, stuck_on_threads(all)))
        return false;
    switch (wr_blocked_by(&sums, &ex->root, wr_task_cost(wr_group_first(group)))) {
    case WEIR_REASON_GROUP_LIMIT:
        return group->sums.running > stuck_permits(all, group);
    case WEIR_REASON_GROUP_INFLIGHT:
        return group->sums.inflight > stuck_permits(all, group);
    case WEIR_REASON_GLOBAL_INFLIGHT:
        return wr_load(&ex->root.held, seq_cst) > stuck_permits(all, NULL) &&
               may_get_slot(all, group);
    case WEIR_REASON_NONE:
        return may_get_slot(all, group) && others_may_start(all, group);
    default: /* closed by somebody who can open it */
        return true;
    }
}

static bool can_move(struct wr_nested_waits *all, struct weir_task *task)
{
    struct wr_nested_wait *own;
    bool can = true;

    wr_lock(&task->group->lock);
    if (wr_task_outcome(task) == WEIR_UNSETTLED) {
        uint32_t phase = wr_task_word(task) & WR_PHASE_MASK;
        if (phase == WR_PHASE_QUEUED)
            can = may_start(all, task);
        else if (phase == WR_PHASE_RUNNING && (own = wait_of(all, task)))
            can = !own->stuck;
    }
    wr_unlock(&task->group->lock);
    return can;
}

static bool has_deadline(struct weir_task *task)
{
    bool armed;

    if (!wr_load(&task->group->executor->nested.timed, relaxed))
        return false;
    wr_lock(&task->group->lock);
    armed = wr_watch_is_armed(task);
    wr_unlock(&task->group->lock);
    return armed;
}

/* Its waiter was asked to end, or will not wait for ever, or the other will not live for ever. Of the wait that is about
 * to begin deadlines do not count: if nothing else would end it, better to say so at once. */
static bool will_end_by_itself(const struct wr_nested_wait *wait)
{
    return (wait->begun &&
            (wait->bounded || has_deadline(wait->waiter) || has_deadline(wait->awaited))) ||
           wr_task_is_asked(wait->waiter);
}

static void free_all_that_can_move(struct wr_nested_waits *all)
{
    bool changed;

    wr_list_each(node, &all->waits)
        wait_at(node)->stuck = !will_end_by_itself(wait_at(node));
    do {
        changed = false;
        wr_list_each(node, &all->waits) {
            struct wr_nested_wait *wait = wait_at(node);
            if (wait->stuck && can_move(all, wait->awaited)) {
                wait->stuck = false;
                changed = true;
            }
        }
    } while (changed);
}

/* ---- in words -------------------------------------------------------------------------------- */

static __attribute__((format(printf, 2, 3))) void say(weir_message *message, const char *format,
                                                      ...)
{
    size_t length = 0;
    va_list arguments;

    while (length < sizeof(message->text) - 1 && message->text[length])
        length++;
    va_start(arguments, format);
    vsnprintf(message->text + length, sizeof(message->text) - length, format, arguments);
    va_end(arguments);
}

static void say_task(weir_message *message, const struct weir_task *task)
{
    const char *id = weir_task_id(task);

    say(message, "%s%s%s of group \"%.32s\"", *id ? "task \"" : "a task", *id ? id : "",
        *id ? "\"" : "", task->group->key);
}

/* Somebody stuck who holds permits that `task` needs. */
static struct wr_nested_wait *holder(struct wr_nested_waits *all, const struct weir_task *task)
{
    struct wr_nested_wait *other = NULL;

    wr_list_each(node, &all->waits) {
        struct wr_nested_wait *wait = wait_at(node);
        if (!wait->stuck)
            continue;
        if (wait->waiter->group == task->group)
            return wait;
        other = wait;
    }
    return other;
}

static void say_cycle(weir_message *message, struct wr_nested_waits *all,
                      struct wr_nested_wait *wait)
{
    message->text[0] = '\0';
    wr_list_each(node, &all->waits)
        wait_at(node)->visited = false;
    say_task(message, wait->waiter);
    while (wait && !wait->visited) {
        struct wr_nested_wait *next = wait_of(all, wait->awaited);
        wait->visited = true;
        say(message, " waits for ");
        say_task(message, wait->awaited);
        if (!next) {
            next = holder(all, wait->awaited);
            say(message, ", which needs a permit held by ");
            if (next)
                say_task(message, next->waiter);
        }
        wait = next;
    }
}

/* ---- entering and leaving --------------------------------------------------------------------- */

/* One wait more, or (-1) less. Pairs with wr_domain_keep. */
static void count_wait(const struct wr_nested_wait *wait, int more)
{
    const struct weir_group *group = wait->waiter->group;
    struct wr_hall *hall = group->executor->hall;

    if (hall)
        wr_add(&hall->domain[group->domain].waits, (uint32_t)more, seq_cst);
    wr_add(&group->executor->nested.count, (uint32_t)more, seq_cst);
}

static void remove_wait(struct wr_nested_wait *wait)
{
    wr_list_remove(&wait->link);
    count_wait(wait, -1);
}

int wr_nested_wait_enter(struct wr_nested_wait *wait, struct weir_task *waiter,
                         struct weir_task *awaited, weir_time deadline, weir_message *message)
{
    struct wr_nested_waits *all = &waiter->group->executor->nested;
    int rc = 0;

    wait->waiter = waiter;
    wait->awaited = awaited;
    wait->on_thread = wr_on_pool_thread();
    wait->bounded = deadline != WEIR_FOREVER;
    wait->begun = false;
    wr_lock(&all->lock);
    wr_list_append(&all->waits, &wait->link);
    count_wait(wait, 1);
    free_all_that_can_move(all);
    if (wait->stuck) {
        rc = WEIR_EDEADLK;
        if (message)
            say_cycle(message, all, wait);
        remove_wait(wait);
    }
    wait->begun = true;
    wr_unlock(&all->lock);
    if (!rc)
        wr_berths_let_go(waiter->group->executor);
    return rc;
}

void wr_nested_wait_leave(struct wr_nested_wait *wait)
{
    struct wr_nested_waits *all = &wait->waiter->group->executor->nested;

    wr_lock(&all->lock);
    remove_wait(wait);
    wr_unlock(&all->lock);
}
