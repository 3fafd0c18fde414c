/* Berths: who may have a thread, and who waits for one; see berth.h.
 *
 * Lock order: group, berths. Whoever calls a group has taken it out of the line before, and holds no lock: the
 * group lives on, since it counts as awaiting a berth until it was called.
 * SPDX-License-Identifier: MIT */
#include "executor/berth.h"

#include "base/assert.h"
#include "executor/executor.h"
#include "executor/settle.h"

#include <weir/error.h>

/* ---- under the berths' lock -------------------------------------------------------------------- */

static bool is_valid(const struct wr_berths *berths)
{
    uint32_t length = 0;

    wr_list_each(node, &berths->line)
        length++;
    return length == wr_load(&berths->waiting, relaxed) &&
           berths->to_call == (length > 0 && berths->taken < berths->max);
}

/* After every change. Answers whether somebody is to be called. */
static bool publish(struct weir_executor *ex)
{
    struct wr_berths *berths = &ex->berths;
    bool to_call = !wr_list_empty(&berths->line) && berths->taken < berths->max;

    if (to_call && !berths->to_call)
        wr_add(&ex->chores, 1, seq_cst); /* pairs with a sleeper's look; see parking.md */
    else if (!to_call && berths->to_call)
        wr_sub(&ex->chores, 1, seq_cst);
    berths->to_call = to_call;
    WR_ASSERT_SLOW(is_valid(berths));
    return to_call;
}

static void enter_line(struct wr_berths *berths, struct weir_group *group)
{
    wr_list_append(&berths->line, &group->ring_link);
    wr_add(&berths->waiting, 1, relaxed);
}

static void leave_line(struct wr_berths *berths, struct weir_group *group)
{
    wr_list_remove(&group->ring_link);
    wr_sub(&berths->waiting, 1, relaxed);
}

/* ---- giving back --------------------------------------------------------------------------------- */

static bool give_back(struct weir_executor *ex)
{
    struct wr_berths *berths = &ex->berths;
    bool to_call;

    wr_lock(&berths->lock);
    WR_ASSERT(berths->taken > 0);
    berths->taken--;
    to_call = publish(ex);
    wr_unlock(&berths->lock);
    return to_call;
}

static void pass_on(struct weir_executor *ex)
{
    if (give_back(ex)) /* we may hold the lock of a group: a worker calls */
        wr_executor_wake_all(ex);
}

void wr_berths_lost(struct weir_executor *ex, bool lost)
{
    struct wr_berths *berths = &ex->berths;
    bool to_call;

    wr_runtime_lost(ex->intake.runtime, lost);
    wr_lock(&berths->lock);
    berths->max += lost ? 1 : (uint32_t)-1;
    to_call = publish(ex);
    wr_unlock(&berths->lock);
    if (to_call)
        wr_executor_wake_all(ex);
}

/* ---- for a group; under its lock ----------------------------------------------------------------- */

static void close_gate(struct weir_group *group, bool closed)
{
    uint16_t others = group->sums.closed & (uint16_t)~WR_NO_THREAD;

    wr_set_closed(&group->sums, &group->executor->root,
                  closed ? (uint16_t)(others | WR_NO_THREAD) : others);
}

/* Whether its first task could start if it had a thread, and needs one. */
static bool needs_berth(struct weir_group *group)
{
    return !group->evicted && group->carrier == WEIR_THREADS && group->sums.queued &&
           wr_lacks_only_thread(&group->sums, wr_cost_at(wr_group_first(group)));
}

/* What was kept is used, or goes to others. */
static void keep_no_more(struct weir_group *group)
{
    group->berth = WR_BERTH_NONE;
    if (group->executor->hall)
        wr_domain_unkeep(group);
}

bool wr_berth_take(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_berths *berths = &ex->berths;
    bool got;

    WR_ASSERT(group->berth != WR_BERTH_AWAITED && group->berth != WR_BERTH_TAKEN);
    if (group->berth == WR_BERTH_KEPT)
        return true;
    wr_lock(&berths->lock);
    got = wr_list_empty(&berths->line) && berths->taken < berths->max;
    if (got)
        berths->taken++;
    else
        enter_line(berths, group);
    publish(ex); /* if there is a berth for those before us, somebody calls already */
    wr_unlock(&berths->lock);
    group->berth = got ? WR_BERTH_TAKEN : WR_BERTH_AWAITED;
    if (!got)
        close_gate(group, true);
    return got;
}

void wr_berth_used(struct weir_group *group)
{
    if (group->berth == WR_BERTH_KEPT)
        keep_no_more(group);
    group->berth = WR_BERTH_NONE;
    if (group->executor->hall)
        group->rare->passed_over = false;
}

void wr_berth_unused(struct weir_group *group)
{
    if (group->berth == WR_BERTH_TAKEN) {
        group->berth = WR_BERTH_NONE;
        pass_on(group->executor);
    } else {
        wr_berth_refresh(group);
    }
}

/* Leaves the line, unless somebody is about to call it: then he will see. */
static void await_no_more(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_berths *berths = &ex->berths;
    bool in_line;

    wr_lock(&berths->lock);
    in_line = !wr_list_empty(&group->ring_link);
    if (in_line) {
        leave_line(berths, group);
        publish(ex);
    }
    wr_unlock(&berths->lock);
    if (!in_line)
        return;
    group->berth = WR_BERTH_NONE;
    close_gate(group, false);
}

void wr_berth_refresh(struct weir_group *group)
{
    if (group->evicted || needs_berth(group))
        return;
    if (group->berth == WR_BERTH_AWAITED) {
        await_no_more(group);
    } else if (group->berth == WR_BERTH_KEPT) {
        keep_no_more(group);
        pass_on(group->executor);
    }
}

void wr_berth_forget(struct weir_group *group)
{
    if (group->berth == WR_BERTH_AWAITED) {
        await_no_more(group);
    } else if (group->berth == WR_BERTH_KEPT) {
        keep_no_more(group);
        pass_on(group->executor);
    }
}

void wr_berths_count(struct weir_executor *ex, int64_t *max, int64_t *taken)
{
    wr_lock(&ex->berths.lock);
    *max = ex->berths.max;
    *taken = ex->berths.taken;
    wr_unlock(&ex->berths.lock);
}

bool wr_berth_others_wait(const struct weir_group *group)
{
    return wr_load(&group->executor->berths.waiting, relaxed) >
           (group->berth == WR_BERTH_AWAITED ? 1 : 0);
}

/* ---- calling; without any lock ------------------------------------------------------------------- */

/* The first in line, out of it, with a berth; or NULL. */
static struct weir_group *first_in_line(struct weir_executor *ex)
{
    struct wr_berths *berths = &ex->berths;
    struct weir_group *group = NULL;

    wr_lock(&berths->lock);
    if (!wr_list_empty(&berths->line) && berths->taken < berths->max) {
        group = WR_CONTAINER(berths->line.next, struct weir_group, ring_link);
        leave_line(berths, group);
        berths->taken++;
        publish(ex);
    }
    wr_unlock(&berths->lock);
    return group;
}

/* Whether it shall have the berth. It needs it still; and its domain has a slot to go with it: threads are not to
 * stand idle for a domain that is full. One that was passed over for that is not passed over again, as long as
 * it is the only one of its domain: else it might never find slot and thread free at the same moment. */
static bool is_to_keep(struct weir_group *group)
{
    if (!needs_berth(group))
        return false;
    if (!group->executor->hall || wr_domain_keep(group, group->rare->passed_over))
        return true;
    group->rare->passed_over = true;
    return false;
}

static void call(struct weir_executor *ex, struct weir_group *group)
{
    bool wake;

    wr_group_lock(group);
    WR_ASSERT(group->berth == WR_BERTH_AWAITED);
    group->berth = WR_BERTH_KEPT;
    close_gate(group, false);
    if (!is_to_keep(group)) {
        group->berth = WR_BERTH_NONE;
        give_back(ex); /* we call the next one */
    }
    wake = wr_group_refresh(group);
    wr_group_unlock_and_reap(group);
    if (wake)
        wr_executor_wake(ex);
    wr_room_made(ex); /* what is ready needs no place any more */
}

void wr_berths_call(struct weir_executor *ex)
{
    struct weir_group *group;

    while ((group = first_in_line(ex)))
        call(ex, group);
}

/* Whether it had one that it may wait in vain for a slot with. */
static bool let_go(struct weir_group *group)
{
    bool wake = false;

    wr_group_lock(group);
    if (group->berth == WR_BERTH_KEPT && wr_domain_keeps_in_vain(group)) {
        keep_no_more(group);
        pass_on(group->executor);
        wake = wr_group_refresh(group); /* it is not held to one task any more */
    }
    wr_unlock(&group->lock);
    return wake;
}

void wr_berths_let_go(struct weir_executor *ex)
{
    struct weir_group *group = NULL;
    bool wake = false;

    if (!ex->hall || !wr_hall_keeps_in_vain(ex))
        return;
    while ((group = wr_table_walk(&ex->table, group)))
        wake |= let_go(group);
    if (wake)
        wr_executor_wake(ex);
}

void wr_berth_leave(struct weir_executor *ex)
{
    if (give_back(ex))
        wr_berths_call(ex);
    wr_waits_suspect(ex); /* no other group is called before those in the rings any more */
}

void wr_berths_init(struct weir_executor *ex)
{
    wr_list_init(&ex->berths.line);
    ex->berths.max = ex->policy.given.threads_max;
}
