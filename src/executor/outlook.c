/* What a wait depends on; docs/internals/waits.md says why each need is as it is.
 * SPDX-License-Identifier: MIT */
#include "executor/deadlock.h"
#include "executor/executor.h"
#include "executor/settle.h"
#include "executor/state.h"

/* Under the lock of all waits. */
static struct weir_executor *scanned; /* whose table is locked, for a look at its groups; or NULL */
static uint64_t asked_for_slots;      /* a set: the domains that are being looked at for a slot */

/* ---- what a task needs to start; under its group's lock --------------------------------------- */

/* The highest cost of a task and of all that start before it, but for those whose time may be up before. */
static uint32_t needed_before(struct weir_group *group, const struct weir_task *task)
{
    uint32_t most = wr_task_cost(task);
    struct wr_group_walk at = { 0 };
    uint64_t *before;

    if (group->sums.queued_cost == group->sums.queued)
        return most; /* each costs 1 */
    while ((before = wr_group_next(group, &at)) && before != task->queued.place)
        if (wr_cost_at(before) > most && !wr_is_timed_at(before))
            most = wr_cost_at(before);
    return most;
}

/* Groups whose needs are served, or never will be. */
struct prospects {
    int64_t served, in_vain;
};

/* Says what a group needs; false: it does not count. Under its lock. */
typedef bool look_fn(struct wr_outlook *outlook, struct weir_group *group);

/* Looks at the groups of a set of domains. One look may ask for another, of the same executor. */
static struct prospects look_at_groups(struct weir_executor *ex, uint64_t domains, look_fn *look)
{
    struct weir_executor *outer = scanned;
    struct prospects found = { 0, 0 };
    struct weir_group *group = NULL;

    if (!outer)
        wr_table_lock_all(&ex->table);
    scanned = ex;
    while ((group = wr_table_next(&ex->table, group))) {
        struct wr_outlook outlook = { 0 };
        bool counts;
        wr_group_lock(group); /* it may just be given its domain */
        counts = domains & wr_domain_bit(group->domain) && look(&outlook, group);
        wr_unlock(&group->lock);
        if (counts && wr_outlook_unserved(&outlook))
            found.in_vain++;
        else if (counts)
            found.served++;
    }
    scanned = outer;
    if (!outer)
        wr_table_unlock_all(&ex->table);
    return found;
}

static bool has_thread(struct wr_outlook *outlook, struct weir_group *group)
{
    (void)outlook;
    return group->has_thread;
}

/* Whether a thread will come free by itself: the group that is called for it then goes before others. */
static bool thread_comes_free(struct weir_executor *ex)
{
    int64_t most, taken;

    wr_threads_count(ex, &most, &taken);
    taken -= (int64_t)ex->nested.threads.stuck;
    return taken > 0 && taken > look_at_groups(ex, WR_ALL_DOMAINS, has_thread).served;
}

/* Whether it goes on with its turn, before others, when its gate opens by itself. */
static bool has_a_turn_to_come(struct wr_outlook *outlook, struct weir_group *group)
{
    (void)outlook;
    return wr_stand_is_in_turn(&group->stand) && group->sums.queued &&
           wr_group_gates_open_at(group);
}

/* Permits for another task that goes first: while anything else that holds some can end, or a group can go first instead, the
 * order may yet change. The first in line is looked at last, since it may have changed in the meantime. */
static bool owed_may_come(const struct wr_need *need)
{
    struct weir_group *group = need->arg;
    struct weir_executor *ex = group->executor;
    uint32_t owed;

    if (wr_load(&ex->root.held, seq_cst) > need->node->stuck || thread_comes_free(ex) ||
        look_at_groups(ex, WR_ALL_DOMAINS, has_a_turn_to_come).served)
        return true;
    wr_group_lock(group);
    owed = wr_permits_owed_first(group);
    wr_unlock(&group->lock);
    return need->node->stuck + owed <= need->limit;
}

static bool thread_may_come(const struct wr_need *need);
static bool slot_may_come(const struct wr_need *need);

/* Fills in all that a group's tasks need to start. Gates do not count: if nothing else is in the way, they open. */
static void look_at_path(struct wr_outlook *outlook, struct weir_group *group, uint32_t cost)
{
    struct weir_executor *ex = group->executor;
    const struct wr_sums *s = &group->sums;
    uint32_t limit = s->limit < s->inflight_max ? s->limit : s->inflight_max;
    uint32_t most = wr_load(&ex->root.inflight_max, relaxed);
    struct wr_node *node = &ex->nested.node;

    if (group->evicted || (ex->domains && wr_domain_is_released(group)))
        return; /* what waits there is being refused */
    if (limit < cost || most < cost)
        return; /* a limit was lowered: that is no circle, it waits until the limit is raised */
    if (limit != WR_INF && group->waits)
        wr_outlook_need(outlook, group->waits, cost, limit, "a permit");
    if (most != WR_INF)
        wr_outlook_need(outlook, node, cost, most, "a permit");
    if (most != WR_INF && wr_permits_owed_first(group))
        wr_outlook_ask(outlook, node, 1, most, "a permit", owed_may_come, group);
    if (group->carrier == WEIR_THREADS && !group->has_thread)
        wr_outlook_ask(outlook, node, 1, 0, "a thread", thread_may_come, ex);
    if (ex->domains)
        wr_outlook_ask(outlook, node, 1, 0, "a slot", slot_may_come, group);
}

/* Fills in the needs of a group's first task; false: there is none. */
static bool look_at_first(struct wr_outlook *outlook, struct weir_group *group)
{
    const uint64_t *first = wr_group_first(group);

    if (first && !wr_is_timed_at(first))
        look_at_path(outlook, group, wr_cost_at(first));
    return first != NULL;
}

/* ---- what may come; without any group's lock ---------------------------------------------------- */

/* A thread that is kept for a group which never gets permits of the executor's is as good as held by a stuck wait. For
 * want of anything else it is not kept: see wr_thread_refresh and wr_threads_let_go. */
static bool look_at_reserved(struct wr_outlook *outlook, struct weir_group *group)
{
    struct wr_outlook all = { 0 };

    if (group->has_thread)
        look_at_first(&all, group);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.need[i].node != group->waits && all.need[i].served != slot_may_come)
            outlook->need[outlook->count++] = all.need[i];
    return group->has_thread;
}

static bool thread_may_come(const struct wr_need *need)
{
    struct weir_executor *ex = need->arg;
    int64_t most, taken, stuck = (int64_t)ex->nested.threads.stuck;

    wr_threads_count(ex, &most, &taken);
    return stuck < most &&
           (taken < most ||
            stuck + look_at_groups(ex, WR_ALL_DOMAINS, look_at_reserved).in_vain < most);
}

/* A domain without waiting tasks may lend one, and one that starts a task may have one over. Domains that are being looked at
 * for the sake of others are left out. */
static bool slot_may_come(const struct wr_need *need)
{
    struct weir_group *group = need->arg;
    uint64_t outer = asked_for_slots, left, bit;
    struct wr_hopes hopes;
    bool may;

    wr_group_lock(group);
    may = wr_domain_may_get_slot(group, &hopes);
    wr_unlock(&group->lock);
    for (left = (hopes.lenders | hopes.movers) & ~outer; left && !may; left &= ~bit) {
        struct prospects of;
        bit = left & -left;
        asked_for_slots = outer | bit;
        of = look_at_groups(group->executor, bit, look_at_first);
        may = (hopes.lenders & bit && !of.in_vain) || (hopes.movers & bit && of.served);
    }
    asked_for_slots = outer;
    return may;
}

/* The executor's queue gets shorter when a task ends that it counts: one that holds permits, or that can start. */
static bool executor_room_may_come(const struct wr_need *need)
{
    struct weir_executor *ex = need->arg;

    return wr_has_room(&ex->root, (uint32_t)need->permits) ||
           wr_load(&ex->root.held, seq_cst) > need->node->stuck ||
           look_at_groups(ex, WR_ALL_DOMAINS, look_at_first).served;
}

/* A domain's queue gets shorter when any of its tasks starts; or the task, which is not in the queue, could start at once.
 * Nothing is lent for its sake. */
static bool domain_room_may_come(const struct wr_need *need)
{
    struct weir_group *group = need->arg;
    uint64_t outer = asked_for_slots;
    struct wr_outlook outlook = { 0 };
    bool may;

    if (look_at_groups(group->executor, wr_domain_bit(group->domain), look_at_first).served)
        return true;
    wr_group_lock(group);
    may = !group->sums.queued;
    look_at_path(&outlook, group, (uint32_t)need->permits);
    wr_unlock(&group->lock);
    asked_for_slots = WR_ALL_DOMAINS;
    may = may && !wr_outlook_unserved(&outlook);
    asked_for_slots = outer;
    return may;
}

/* ---- what a wait depends on -------------------------------------------------------------------- */

static void look_at_task(struct weir_task *task, void *outlook_arg)
{
    struct weir_group *group = task->group;
    struct wr_whole *whole = wr_task_whole(task);
    struct wr_outlook *outlook = outlook_arg;
    uint32_t phase;

    if (whole) { /* with several parts one of them may go on */
        whole->look_at_sole_part(whole, look_at_task, outlook);
        return;
    }
    wr_group_lock(group);
    phase = wr_task_phase(task);
    if (wr_task_outcome(task) != WEIR_UNSETTLED)
        ; /* it is being told */
    else if (phase == WR_PHASE_QUEUED)
        look_at_path(outlook, group, needed_before(group, task));
    else if (wr_phase_has_body(phase) && task->runner)
        outlook->other = task->runner->wait;
    wr_unlock(&group->lock);
}

/* Room comes, unless it is there already, when the first in the queue starts; or, without a queue, when the task could. */
static void look_at_room(struct wr_outlook *outlook, const struct wr_nested_wait *nested)
{
    struct weir_group *group = nested->room;
    struct weir_executor *ex = group->executor;
    struct wr_node *node = &ex->nested.node;
    uint32_t cost = nested->cost;

    if (nested->reason == WEIR_REASON_GLOBAL_QUEUE_FULL) {
        wr_outlook_ask(outlook, node, cost, 0, "a permit", executor_room_may_come, ex);
    } else if (nested->reason == WEIR_REASON_DOMAIN_QUEUE_FULL) {
        wr_outlook_ask(outlook, node, cost, 0, "a place", domain_room_may_come, group);
    } else {
        wr_group_lock(group);
        if (wr_is_full(&group->sums, cost) && !look_at_first(outlook, group))
            look_at_path(outlook, group, cost);
        wr_unlock(&group->lock);
    }
}

static bool has_deadline(struct weir_task *task)
{
    bool armed;

    if (!wr_task_side(task))
        return false;
    wr_group_lock(task->group);
    armed = wr_watch_is_armed(task);
    wr_unlock(&task->group->lock);
    return armed;
}

/* Whether a body was asked to end, or, if deadlines count, will be. */
static bool ends_by_itself(struct weir_task *task, bool timed)
{
    return wr_task_is_asked_to_end(task) || (timed && has_deadline(task));
}

/* A wait ends by itself if a body on its stack does, or it has a deadline, or an awaited task has. Of the wait that is about to
 * begin deadlines do not count: if nothing else would end it, better to say so at once. */
void wr_outlook_fill(struct wr_wait *wait)
{
    struct wr_nested_wait *nested = wr_nested_wait_of(wait);
    bool timed = wait->begun;

    if ((timed && nested->bounded) || ends_by_itself(nested->waiter, timed))
        return;
    for (const struct wr_frame *frame = nested->frame; frame; frame = frame->outer)
        if (frame->item && ends_by_itself(frame->item, timed))
            return;
    if (nested->room)
        look_at_room(wait->outlook, nested);
    for (size_t i = 0; i < nested->count; i++)
        if (!timed || !has_deadline(nested->awaited[i]))
            look_at_task(nested->awaited[i], &wait->outlook[i]);
}
