/* What a wait depends on; see outlook.h. docs/internals/waits.md says why each need is as it is.
 * SPDX-License-Identifier: MIT */
#include "executor/outlook.h"

#include "executor/deadlock.h"
#include "executor/executor.h"
#include "executor/record.h"
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
    struct wr_group_place at = { 0 };
    uint64_t *before;

    if (group->sums.queued_cost == group->sums.queued)
        return most; /* each costs 1 */
    while ((before = wr_group_next(group, &at)) && before != task->place)
        if (wr_cost_at(before) > most && !wr_is_timed_at(before))
            most = wr_cost_at(before);
    return most;
}

enum { ANY_DOMAIN = WR_DOMAINS_MAX };

/* How many groups of a domain the test holds for. One look may ask for another, of the same executor. */
static int64_t count_groups(struct weir_executor *ex, uint32_t domain,
                            bool (*test)(struct weir_group *group))
{
    struct weir_executor *outer = scanned;
    struct weir_group *group = NULL;
    int64_t count = 0;

    if (!outer)
        wr_table_lock_all(&ex->table);
    scanned = ex;
    while ((group = wr_table_next(&ex->table, group)))
        count += (domain == ANY_DOMAIN || group->domain == domain) && test(group);
    scanned = outer;
    if (!outer)
        wr_table_unlock_all(&ex->table);
    return count;
}

static bool has_thread(struct weir_group *group)
{
    bool keeps;

    wr_group_lock(group);
    keeps = group->has_thread;
    wr_unlock(&group->lock);
    return keeps;
}

/* Whether a thread will come free by itself: the group that is called for it then goes before others. */
static bool thread_comes_free(struct weir_executor *ex)
{
    int64_t most, taken;

    wr_threads_count(ex, &most, &taken);
    taken -= (int64_t)ex->nested.threads.stuck;
    return taken > 0 && taken > count_groups(ex, ANY_DOMAIN, has_thread);
}

/* Whether it goes on with its turn, before others, when its gate opens by itself. */
static bool has_a_turn_to_come(struct weir_group *group)
{
    bool has;

    wr_group_lock(group);
    has = wr_group_is_in_turn(group) && group->sums.queued && wr_gates_open_at(group);
    wr_unlock(&group->lock);
    return has;
}

/* Permits for another task that goes first: while anything else that holds some can end, or a group can go first instead, the
 * order may yet change. What is first is looked at last, since it may have changed in the meantime. */
static bool owed_may_come(const struct wr_need *need)
{
    struct weir_group *group = need->arg;
    struct weir_executor *ex = group->executor;
    uint32_t owed;

    if (wr_load(&ex->root.held, seq_cst) > need->node->stuck || thread_comes_free(ex) ||
        count_groups(ex, ANY_DOMAIN, has_a_turn_to_come))
        return true;
    wr_group_lock(group);
    owed = wr_permits_owed_first(group);
    wr_unlock(&group->lock);
    return need->node->stuck + owed <= need->limit;
}

static bool thread_may_come(const struct wr_need *need);
static bool slot_may_come(const struct wr_need *need);

/* What stands between a group's tasks and their start. Gates do not count: if nothing else is in the way, they open. */
static void look_at_path(struct wr_outlook *outlook, struct weir_group *group, uint32_t cost)
{
    struct weir_executor *ex = group->executor;
    const struct wr_sums *s = &group->sums;
    uint32_t limit = s->limit < s->inflight_max ? s->limit : s->inflight_max;
    struct wr_node *node = &ex->nested.node;

    if (group->evicted || (ex->domains && wr_domain_is_released(group)))
        return; /* what waits there is being refused */
    if (limit < cost || wr_load(&ex->root.inflight_max, relaxed) < cost)
        return; /* a limit was lowered: that is no circle, it waits until the limit is raised */
    if (limit != WR_INF && group->waits)
        wr_outlook_need(outlook, group->waits, cost, limit, "a permit");
    limit = wr_load(&ex->root.inflight_max, relaxed);
    if (limit != WR_INF)
        wr_outlook_need(outlook, node, cost, limit, "a permit");
    if (limit != WR_INF && wr_permits_owed_first(group))
        wr_outlook_ask(outlook, node, 1, limit, "a permit", owed_may_come, group);
    if (group->carrier == WEIR_THREADS && !group->has_thread)
        wr_outlook_ask(outlook, node, 1, 0, "a thread", thread_may_come, ex);
    if (ex->domains)
        wr_outlook_ask(outlook, node, 1, 0, "a slot", slot_may_come, group);
}

/* What the first task of a group needs; false: there is none. Without its lock. */
static bool look_at_first(struct wr_outlook *outlook, struct weir_group *group)
{
    const uint64_t *first;

    wr_group_lock(group);
    first = wr_group_first(group);
    if (first && !wr_is_timed_at(first))
        look_at_path(outlook, group, wr_cost_at(first));
    wr_unlock(&group->lock);
    return first != NULL;
}

/* A thread that is kept for a group which never gets permits of the executor's is as good as held by a stuck wait. For
 * want of anything else it is not kept: see wr_thread_refresh and wr_threads_let_go. */
static bool reserves_in_vain(struct weir_group *group)
{
    struct wr_outlook outlook = { 0 };

    if (!has_thread(group))
        return false;
    look_at_first(&outlook, group);
    for (uint32_t i = 0; i < outlook.count; i++)
        if (outlook.need[i].node != group->waits && outlook.need[i].served != slot_may_come &&
            !wr_need_is_served(&outlook.need[i]))
            return true;
    return false;
}

static bool thread_may_come(const struct wr_need *need)
{
    struct weir_executor *ex = need->arg;
    int64_t most, taken, stuck = (int64_t)ex->nested.threads.stuck;

    wr_threads_count(ex, &most, &taken);
    return stuck < most &&
           (taken < most || stuck + count_groups(ex, ANY_DOMAIN, reserves_in_vain) < most);
}

static bool waits_in_vain(struct weir_group *group)
{
    struct wr_outlook outlook = { 0 };

    return look_at_first(&outlook, group) && wr_outlook_unserved(&outlook);
}

/* Only a domain without waiting tasks lends. */
static bool lends_some_time(struct weir_executor *ex, uint32_t domain)
{
    return count_groups(ex, domain, waits_in_vain) == 0;
}

static bool has_a_start_to_come(struct weir_group *group)
{
    struct wr_outlook outlook = { 0 };

    return look_at_first(&outlook, group) && !wr_outlook_unserved(&outlook);
}

static bool starts_some_time(struct weir_executor *ex, uint32_t domain)
{
    return count_groups(ex, domain, has_a_start_to_come) > 0;
}

/* Whether the test holds for any one of the domains. Those that are being looked at for the sake of others are left out. */
static bool any_domain(struct weir_executor *ex, uint64_t domains,
                       bool (*test)(struct weir_executor *ex, uint32_t domain))
{
    uint64_t outer = asked_for_slots;
    bool found = false;

    for (domains &= ~outer; domains && !found; domains &= domains - 1) {
        uint32_t domain = (uint32_t)__builtin_ctzll(domains);
        asked_for_slots = outer | wr_domain_bit(domain);
        found = test(ex, domain);
    }
    asked_for_slots = outer;
    return found;
}

static bool slot_may_come(const struct wr_need *need)
{
    struct weir_group *group = need->arg;
    struct wr_hopes hopes;
    bool may;

    wr_group_lock(group);
    may = wr_domain_may_get_slot(group, &hopes);
    wr_unlock(&group->lock);
    return may || any_domain(group->executor, hopes.lenders, lends_some_time) ||
           any_domain(group->executor, hopes.movers, starts_some_time);
}

/* ---- what a wait depends on -------------------------------------------------------------------- */

static void look_at_task(struct wr_outlook *outlook, struct weir_task *task);

static void look_at_part(struct weir_task *part, void *outlook)
{
    look_at_task(outlook, part);
}

static void look_at_task(struct wr_outlook *outlook, struct weir_task *task)
{
    struct weir_group *group = task->group;
    struct wr_whole *whole = wr_task_whole(task);
    uint32_t phase;

    if (whole) { /* with several parts one of them may go on */
        whole->look_at_sole_part(whole, look_at_part, outlook);
        return;
    }

    wr_group_lock(group);
    phase = wr_task_phase(task);
    if (wr_task_outcome(task) != WEIR_UNSETTLED)
        ; /* it is being told */
    else if (phase == WR_PHASE_QUEUED)
        look_at_path(outlook, group, needed_before(group, task));
    else if (wr_phase_has_body(phase) && task->runner && task->runner->wait)
        outlook->other = task->runner->wait;
    wr_unlock(&group->lock);
}

/* The executor's queue gets shorter when a task ends that it counts: one that holds permits, or that can start. */
static bool executor_room_may_come(const struct wr_need *need)
{
    struct weir_executor *ex = need->arg;

    return wr_has_room(&ex->root, (uint32_t)need->permits) ||
           wr_load(&ex->root.held, seq_cst) > need->node->stuck || starts_some_time(ex, ANY_DOMAIN);
}

/* Whether a task of that cost, which is not in the queue, could start at once. Nothing is lent for its sake. */
static bool starts_without_place(struct weir_group *group, uint32_t cost)
{
    uint64_t outer = asked_for_slots;
    struct wr_outlook outlook = { 0 };
    bool queued, may;

    wr_group_lock(group);
    queued = group->sums.queued > 0;
    look_at_path(&outlook, group, cost);
    wr_unlock(&group->lock);
    asked_for_slots = UINT64_MAX;
    may = !queued && !wr_outlook_unserved(&outlook);
    asked_for_slots = outer;
    return may;
}

/* A domain's queue gets shorter when any of its tasks starts. */
static bool domain_room_may_come(const struct wr_need *need)
{
    struct weir_group *group = need->arg;

    return starts_some_time(group->executor, group->domain) ||
           starts_without_place(group, (uint32_t)need->permits);
}

/* There is room, unless there is already, when the first in the queue starts; or, if there is no queue, when the task
 * could. */
static void look_at_room(struct wr_outlook *outlook, const struct wr_nested_wait *nested)
{
    struct weir_group *group = nested->room;
    struct weir_executor *ex = group->executor;
    struct wr_node *node = &ex->nested.node;
    uint32_t cost = nested->cost;
    const uint64_t *first;

    if (nested->reason == WEIR_REASON_GLOBAL_QUEUE_FULL) {
        wr_outlook_ask(outlook, node, cost, 0, "a permit", executor_room_may_come, ex);
        return;
    }
    if (nested->reason == WEIR_REASON_DOMAIN_QUEUE_FULL) {
        wr_outlook_ask(outlook, node, cost, 0, "a place", domain_room_may_come, group);
        return;
    }
    wr_group_lock(group);
    first = wr_group_first(group);
    if (wr_is_full(&group->sums, cost) && (!first || !wr_is_timed_at(first)))
        look_at_path(outlook, group, first ? wr_cost_at(first) : cost);
    wr_unlock(&group->lock);
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

static bool awaits_deadline(const struct wr_nested_wait *nested)
{
    for (size_t i = 0; i < nested->count; i++)
        if (has_deadline(nested->awaited[i]))
            return true;
    return false;
}

/* One of the bodies on the stack was asked to end, or, if deadlines count, will be. */
static bool body_ends_by_itself(const struct wr_nested_wait *nested)
{
    bool timed = nested->wait.begun;

    for (const struct wr_frame *frame = nested->frame; frame; frame = frame->outer)
        if (frame->item &&
            (wr_task_is_asked_to_end(frame->item) || (timed && has_deadline(frame->item))))
            return true;
    return wr_task_is_asked_to_end(nested->waiter) || (timed && has_deadline(nested->waiter));
}

/* Its waiter was asked to end, or will not wait for ever, or an awaited task will not live for ever. Of the wait that is
 * about to begin deadlines do not count: if nothing else would end it, better to say so at once. */
static bool will_end_by_itself(const struct wr_nested_wait *nested)
{
    return body_ends_by_itself(nested) ||
           (nested->wait.begun && (nested->bounded || awaits_deadline(nested)));
}

void wr_outlook_fill(struct wr_wait *wait)
{
    struct wr_nested_wait *nested = wr_nested_wait_of(wait);

    if (will_end_by_itself(nested))
        return;
    if (nested->room)
        look_at_room(wait->outlook, nested);
    for (size_t i = 0; i < nested->count; i++)
        look_at_task(&wait->outlook[i], nested->awaited[i]);
}
