/* Threads: which task may have one, and which group waits for one; see threads.h.
 *
 * Lock order: group, the threads' line. A thread that calls a group has taken it out of the line before, and holds no lock: the
 * group lives on, since it counts as awaiting a thread until it was called.
 * SPDX-License-Identifier: MIT */
#include "executor/threads.h"

#include "base/assert.h"
#include "executor/settle.h"
#include "executor/state.h"

/* ---- the line's lock ----------------------------------------------------------------------------- */

static struct wr_threads *lock_line(struct weir_executor *ex)
{
    wr_lock(&ex->threads.line.part->lock);
    return &ex->threads;
}

/* After every change. Answers whether a group is to be called. */
static bool unlock_line(struct weir_executor *ex)
{
    struct wr_threads *threads = &ex->threads;
    bool to_call = !wr_list_empty(&threads->line.part->stands) && threads->in_use < threads->max;

    if (to_call != threads->to_call) /* pairs with a sleeper's look; see parking.md */
        wr_add(&ex->chores, to_call ? 1 : (uint32_t)-1, seq_cst);
    threads->to_call = to_call;
    wr_unlock(&threads->line.part->lock);
    return to_call;
}

/* ---- giving back --------------------------------------------------------------------------------- */

static bool give_back(struct weir_executor *ex)
{
    struct wr_threads *threads = lock_line(ex);

    WR_ASSERT(threads->in_use > 0);
    threads->in_use--;
    return unlock_line(ex);
}

static void pass_on(struct weir_executor *ex)
{
    if (give_back(ex)) /* we may hold the lock of a group: a worker calls */
        wr_executor_wake_all(ex);
}

void wr_threads_lost(struct weir_executor *ex, bool lost)
{
    wr_runtime_lost(ex->crew.runtime, lost);
    lock_line(ex)->max += lost ? 1 : (uint32_t)-1;
    if (unlock_line(ex))
        wr_executor_wake_all(ex);
}

/* ---- for a group; under its lock ----------------------------------------------------------------- */

/* Whether its first task could start if it had a thread, and needs one. */
static bool needs_thread(struct weir_group *group)
{
    uint32_t cost;

    if (group->evicted || group->carrier != WEIR_THREADS || !group->sums.queued)
        return false;
    cost = wr_cost_at(wr_group_first(group));
    return wr_lacks_only_thread(&group->sums, cost) && wr_group_fits(group, cost);
}

bool wr_thread_take(struct weir_group *group)
{
    struct wr_threads *threads;
    bool got;

    if (group->has_thread)
        return true;
    threads = lock_line(group->executor);
    got = wr_list_empty(&threads->line.part->stands) && threads->in_use < threads->max;
    if (got)
        threads->in_use++;
    else
        wr_line_add(&threads->line, &group->stand, false);
    unlock_line(group->executor); /* a thread for those before it: they are being called */
    if (!got)
        wr_group_note_closed(group);
    return got;
}

void wr_thread_used(struct weir_group *group)
{
    group->has_thread = false;
    if (group->executor->domains)
        group->extras->was_passed_over = false;
}

void wr_thread_unused(struct weir_group *group, bool taken)
{
    if (taken && !group->has_thread)
        pass_on(group->executor);
    else
        wr_thread_refresh(group); /* it may need neither what is reserved nor what it waits for */
}

void wr_thread_forget(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    bool in_line = false;

    if (group->has_thread) {
        group->has_thread = false;
        if (ex->domains)
            wr_domain_unreserve_thread(group);
        pass_on(ex);
    } else if (wr_group_place(group) == WR_AWAITS_THREAD) {
        in_line = wr_line_drop(&lock_line(ex)->line, &group->stand);
        unlock_line(ex); /* not in line: a thread is about to call it, and will see then */
    }
    if (in_line)
        wr_group_note_closed(group);
}

void wr_thread_refresh(struct weir_group *group)
{
    if (!group->evicted && !needs_thread(group))
        wr_thread_forget(group);
}

void wr_threads_count(struct weir_executor *ex, int64_t *max, int64_t *in_use)
{
    const struct wr_threads *threads = lock_line(ex);

    *max = threads->max;
    *in_use = threads->in_use;
    unlock_line(ex);
}

bool wr_thread_others_wait(const struct weir_group *group)
{
    return wr_line_count(&group->executor->threads.line) >
           wr_group_stands_at(group, WR_AWAITS_THREAD);
}

/* ---- calling; without any lock ------------------------------------------------------------------- */

/* The first in line, out of it, with a thread; or NULL. */
static struct weir_group *first_in_line(struct weir_executor *ex)
{
    struct wr_threads *threads = lock_line(ex);
    struct wr_stand *stand = threads->in_use < threads->max ? wr_line_take(&threads->line) : NULL;

    threads->in_use += stand != NULL;
    unlock_line(ex);
    if (!stand)
        wr_line_give_way(&threads->line);
    return wr_group_at(stand);
}

static void call(struct weir_executor *ex, struct weir_group *group)
{
    bool wake;

    wr_group_lock(group);
    WR_ASSERT(wr_group_place(group) == WR_AWAITS_THREAD);
    wr_store(&group->stand.place, WR_AT_REST, relaxed);
    group->has_thread = true;
    wr_group_note_closed(group);
    if (!needs_thread(group) || (ex->domains && !wr_domain_reserve_thread(group))) {
        group->has_thread = false;
        give_back(ex); /* we call the next one */
    }
    wake = wr_group_refresh(group);
    wr_line_decided(&ex->threads.line,
                    &group->stand); /* it counts in its ring now, if it is ready */
    wr_group_unlock_and_reap(group);
    if (wake)
        wr_executor_wake(ex);
    wr_room_made(ex); /* a ready task needs no place any more */
}

void wr_threads_call(struct weir_executor *ex)
{
    struct weir_group *group;

    while ((group = first_in_line(ex)))
        call(ex, group);
}

void wr_threads_let_go(struct weir_executor *ex)
{
    struct weir_group *group = NULL;
    bool wake = false;

    if (!ex->domains || !wr_domains_reserving_in_vain(ex))
        return;
    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group);
        if (group->has_thread && !wr_group_is_in_hands(group) && /* else it has a slot */
            wr_domains_reserving_in_vain(ex) & wr_domain_bit(group->domain)) {
            wr_thread_forget(group);
            wake |= wr_group_refresh(group); /* it is not held to one task any more */
        }
        wr_unlock(&group->lock);
    }
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
    wr_line_init(&ex->threads.line, WR_AWAITS_THREAD, 1, NULL, 0);
    ex->threads.max = ex->policy.given.threads_max;
}
