/* Threads: which task may have one, and which group waits for one; see threads.h.
 *
 * Lock order: group, threads. Whoever calls a group has taken it out of the line before, and holds no lock: the
 * group lives on, since it counts as awaiting a thread until it was called.
 * SPDX-License-Identifier: MIT */
#include "executor/threads.h"

#include "base/assert.h"
#include "executor/executor.h"
#include "executor/settle.h"

#include <weir/error.h>

/* ---- under the threads' lock -------------------------------------------------------------------- */

static bool is_valid(const struct wr_threads *threads)
{
    uint32_t length = 0;

    wr_list_each(node, &threads->line)
        length++;
    return length == wr_load(&threads->waiting, relaxed) &&
           threads->to_call == (length > 0 && threads->taken < threads->max);
}

/* After every change. Answers whether somebody is to be called. */
static bool publish(struct weir_executor *ex)
{
    struct wr_threads *threads = &ex->threads;
    bool to_call = !wr_list_empty(&threads->line) && threads->taken < threads->max;

    if (to_call && !threads->to_call)
        wr_add(&ex->chores, 1, seq_cst); /* pairs with a sleeper's look; see parking.md */
    else if (!to_call && threads->to_call)
        wr_sub(&ex->chores, 1, seq_cst);
    threads->to_call = to_call;
    WR_ASSERT_SLOW(is_valid(threads));
    return to_call;
}

static void enter_line(struct wr_threads *threads, struct weir_group *group)
{
    wr_list_append(&threads->line, &group->ring_link);
    wr_add(&threads->waiting, 1, relaxed);
}

static void leave_line(struct wr_threads *threads, struct weir_group *group)
{
    wr_list_remove(&group->ring_link);
    wr_sub(&threads->waiting, 1, relaxed);
}

/* ---- giving back --------------------------------------------------------------------------------- */

static bool give_back(struct weir_executor *ex)
{
    struct wr_threads *threads = &ex->threads;
    bool to_call;

    wr_lock(&threads->lock);
    WR_ASSERT(threads->taken > 0);
    threads->taken--;
    to_call = publish(ex);
    wr_unlock(&threads->lock);
    return to_call;
}

static void pass_on(struct weir_executor *ex)
{
    if (give_back(ex)) /* we may hold the lock of a group: a worker calls */
        wr_executor_wake_all(ex);
}

void wr_threads_lost(struct weir_executor *ex, bool lost)
{
    struct wr_threads *threads = &ex->threads;
    bool to_call;

    wr_runtime_lost(ex->intake.runtime, lost);
    wr_lock(&threads->lock);
    threads->max += lost ? 1 : (uint32_t)-1;
    to_call = publish(ex);
    wr_unlock(&threads->lock);
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
static bool needs_thread(struct weir_group *group)
{
    return !group->evicted && group->carrier == WEIR_THREADS && group->sums.queued &&
           wr_lacks_only_thread(&group->sums, wr_cost_at(wr_group_first(group)));
}

/* What was kept is used, or goes to others. */
static void keep_no_more(struct weir_group *group)
{
    group->thread = WR_THREAD_NONE;
    if (group->executor->domains)
        wr_domain_unkeep(group);
}

bool wr_thread_take(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_threads *threads = &ex->threads;
    bool got;

    WR_ASSERT(group->thread != WR_THREAD_AWAITED && group->thread != WR_THREAD_TAKEN);
    if (group->thread == WR_THREAD_KEPT)
        return true;
    wr_lock(&threads->lock);
    got = wr_list_empty(&threads->line) && threads->taken < threads->max;
    if (got)
        threads->taken++;
    else
        enter_line(threads, group);
    publish(ex); /* if there is a thread for those before us, somebody calls already */
    wr_unlock(&threads->lock);
    group->thread = got ? WR_THREAD_TAKEN : WR_THREAD_AWAITED;
    if (!got)
        close_gate(group, true);
    return got;
}

void wr_thread_used(struct weir_group *group)
{
    if (group->thread == WR_THREAD_KEPT)
        keep_no_more(group);
    group->thread = WR_THREAD_NONE;
    if (group->executor->domains)
        group->extras->passed_over = false;
}

void wr_thread_unused(struct weir_group *group)
{
    if (group->thread == WR_THREAD_TAKEN) {
        group->thread = WR_THREAD_NONE;
        pass_on(group->executor);
    } else {
        wr_thread_refresh(group);
    }
}

/* Leaves the line, unless somebody is about to call it: then he will see. */
static void await_no_more(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_threads *threads = &ex->threads;
    bool in_line;

    wr_lock(&threads->lock);
    in_line = !wr_list_empty(&group->ring_link);
    if (in_line) {
        leave_line(threads, group);
        publish(ex);
    }
    wr_unlock(&threads->lock);
    if (!in_line)
        return;
    group->thread = WR_THREAD_NONE;
    close_gate(group, false);
}

void wr_thread_refresh(struct weir_group *group)
{
    if (group->evicted || needs_thread(group))
        return;
    if (group->thread == WR_THREAD_AWAITED) {
        await_no_more(group);
    } else if (group->thread == WR_THREAD_KEPT) {
        keep_no_more(group);
        pass_on(group->executor);
    }
}

void wr_thread_forget(struct weir_group *group)
{
    if (group->thread == WR_THREAD_AWAITED) {
        await_no_more(group);
    } else if (group->thread == WR_THREAD_KEPT) {
        keep_no_more(group);
        pass_on(group->executor);
    }
}

void wr_threads_count(struct weir_executor *ex, int64_t *max, int64_t *taken)
{
    wr_lock(&ex->threads.lock);
    *max = ex->threads.max;
    *taken = ex->threads.taken;
    wr_unlock(&ex->threads.lock);
}

bool wr_thread_others_wait(const struct weir_group *group)
{
    return wr_load(&group->executor->threads.waiting, relaxed) >
           (group->thread == WR_THREAD_AWAITED ? 1 : 0);
}

/* ---- calling; without any lock ------------------------------------------------------------------- */

/* The first in line, out of it, with a thread; or NULL. */
static struct weir_group *first_in_line(struct weir_executor *ex)
{
    struct wr_threads *threads = &ex->threads;
    struct weir_group *group = NULL;

    wr_lock(&threads->lock);
    if (!wr_list_empty(&threads->line) && threads->taken < threads->max) {
        group = WR_CONTAINER(threads->line.next, struct weir_group, ring_link);
        leave_line(threads, group);
        threads->taken++;
        publish(ex);
    }
    wr_unlock(&threads->lock);
    return group;
}

/* Whether it shall have the thread. It needs it still; and its domain has a slot to go with it: threads are not to
 * stand idle for a domain that is full. One that was passed over for that is not passed over again, as long as
 * it is the only one of its domain: else it might never find slot and thread free at the same moment. */
static bool is_to_keep(struct weir_group *group)
{
    if (!needs_thread(group))
        return false;
    if (!group->executor->domains || wr_domain_keep(group, group->extras->passed_over))
        return true;
    group->extras->passed_over = true;
    return false;
}

static void call(struct weir_executor *ex, struct weir_group *group)
{
    bool wake;

    wr_group_lock(group);
    WR_ASSERT(group->thread == WR_THREAD_AWAITED);
    group->thread = WR_THREAD_KEPT;
    close_gate(group, false);
    if (!is_to_keep(group)) {
        group->thread = WR_THREAD_NONE;
        give_back(ex); /* we call the next one */
    }
    wake = wr_group_refresh(group);
    wr_group_unlock_and_reap(group);
    if (wake)
        wr_executor_wake(ex);
    wr_room_made(ex); /* what is ready needs no place any more */
}

void wr_threads_call(struct weir_executor *ex)
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
    if (group->thread == WR_THREAD_KEPT && wr_domain_keeps_in_vain(group)) {
        keep_no_more(group);
        pass_on(group->executor);
        wake = wr_group_refresh(group); /* it is not held to one task any more */
    }
    wr_unlock(&group->lock);
    return wake;
}

void wr_threads_let_go(struct weir_executor *ex)
{
    struct weir_group *group = NULL;
    bool wake = false;

    if (!ex->domains || !wr_domains_keeps_in_vain(ex))
        return;
    while ((group = wr_table_walk(&ex->table, group)))
        wake |= let_go(group);
    if (wake)
        wr_executor_wake(ex);
}

void wr_thread_leave(struct weir_executor *ex)
{
    if (give_back(ex))
        wr_threads_call(ex);
    wr_waits_suspect(ex); /* no other group is called before those in the rings any more */
}

void wr_threads_init(struct weir_executor *ex)
{
    wr_list_init(&ex->threads.line);
    ex->threads.max = ex->policy.given.threads_max;
}
