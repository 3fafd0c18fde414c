/* Domains: slots of a group's tasks, why one does not start, and whether it will ever get a slot; see domains.h.
 * SPDX-License-Identifier: MIT */
#include "executor/settle.h"
#include "executor/state.h"

/* ---- tasks that wait, as far as the ledger is told --------------------------------------------- */

/* How many tasks the group is ready for, not counting one that a worker has in its hands. */
static uint32_t ready_tasks(struct weir_group *group)
{
    uint32_t cost = group->evicted || !group->sums.queued ? 0 : wr_cost_at(wr_group_first(group));
    uint32_t ready = cost && wr_group_fits(group, cost) ? wr_ready_tasks(&group->sums, cost) : 0;

    if (group->has_thread && ready > 1)
        ready = 1; /* there is one thread for it */
    if (ready && wr_group_is_in_hands(group))
        ready--;
    return ready;
}

/* Tells the ledger how many that are. Only if the group is counted; under the lock. */
static void set_want(struct weir_group *group)
{
    uint32_t ready = ready_tasks(group);
    int64_t more = (int64_t)ready - wr_load(&group->extras->want, relaxed);

    wr_store(&group->extras->want, ready, relaxed);
    if (more)
        wr_ledger_want(&wr_domains_of(group)->ledger, group->domain, more);
}

weir_reason wr_domain_admit(struct weir_group *group)
{
    uint32_t want, ready;
    weir_reason reason;

    if (group->extras->counted < WR_COUNTS_QUEUED)
        return wr_domain_is_released(group) ? WEIR_REASON_DOMAIN_RELEASED : WEIR_REASON_NONE;
    wr_domains_lock_near(group->executor, group->domain);
    want = wr_load(&group->extras->want, relaxed);
    ready = ready_tasks(group) > want;
    reason = wr_ledger_admit(&wr_domains_of(group)->ledger, group->domain, ready);
    if (!reason)
        wr_store(&group->extras->want, want + ready, relaxed);
    wr_domains_unlock(group->executor);
    return reason;
}

void wr_domain_queued(struct weir_group *group, int more)
{
    if (group->extras->counted < WR_COUNTS_QUEUED)
        return;
    wr_domains_lock_near(group->executor, group->domain);
    wr_ledger_queued(&wr_domains_of(group)->ledger, group->domain, more);
    wr_domains_unlock_unchanged(group->executor);
}

/* Without the lock `want` and WR_IN_HANDS may change under our eyes, but only by a worker that takes a task of the group, and
 * that worker comes here itself when it has the group's lock. */
bool wr_domain_sync(struct weir_group *group)
{
    if (!group->extras->counted) {
        wr_domains_ask_no_slot(group->executor, group->domain);
    } else if (ready_tasks(group) != wr_load(&group->extras->want, relaxed)) {
        wr_domains_lock_near(group->executor, group->domain);
        set_want(group);
        wr_domains_unlock(group->executor);
    }
    return wr_executor_has_ready(group->executor);
}

void wr_domain_ask_again(struct weir_group *group)
{
    if (!group->extras->counted)
        return;
    wr_lock(&wr_domains_of(group)->lock); /* a worker that found another first has said so by now */
    /* Pairs with a sleeper's look; see parking.md. */
    wr_store(&wr_group_domain(group)->crew->needed, 0, seq_cst);
    wr_unlock(&wr_domains_of(group)->lock);
}

bool wr_domain_is_released(const struct weir_group *group)
{
    return wr_load(&wr_group_domain(group)->released, acquire);
}

/* ---- a task's slot ----------------------------------------------------------------------------- */

void wr_domain_set_waits_with_thread(struct weir_group *group, bool waits)
{
    wr_group_domain(group)->with_thread += (uint32_t)waits - group->extras->waits_with_thread;
    group->extras->waits_with_thread = waits;
}

void wr_domain_untake(struct weir_group *group)
{
    struct wr_ledger *l = &wr_domains_of(group)->ledger;

    if (!group->extras->counted) {
        wr_domain_give(group);
        return;
    }
    wr_domains_lock_near(group->executor, group->domain);
    if (group->extras->counted == WR_COUNTS_QUEUED)
        wr_ledger_untake(l, group->domain);
    else
        wr_ledger_give(l, group->domain);
    set_want(group);
    wr_domain_set_waits_with_thread(group, group->has_thread);
    wr_domains_unlock(group->executor);
}

bool wr_domain_is_quiet(struct weir_group *group)
{
    return !group->extras->counted && wr_domains_are_calm(wr_domains_of(group));
}

/* A task that follows another on its slot leaves the queue, and nothing else changes. */
bool wr_domain_hand_over(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    bool may;

    if (group->extras->counted < WR_COUNTS_QUEUED)
        return wr_domains_are_calm(domains);
    wr_domains_lock_near(group->executor, group->domain);
    may = wr_ledger_hand_over(&domains->ledger, group->domain);
    wr_domains_unlock_unchanged(group->executor);
    return may;
}

/* ---- a thread that is reserved ----------------------------------------------------------------- */

/* Whether a group of the domain may wait for a slot with a thread reserved for it. A task that has a slot must be able to end
 * without that thread: bodies that wait for tasks may never end. Units that are not the domain's own, or not for long, do not
 * count. Under the domains' lock. Waits that begin later, and slots that are taken away, cause another look
 * (wr_threads_let_go). */
static bool slot_is_to_come(struct weir_executor *ex, uint32_t d)
{
    const struct wr_share *s = &ex->domains->ledger.share[d];
    uint64_t waits = wr_load(&ex->domains->domain[d].waits, seq_cst);

    return !wr_load(&ex->nested.count, seq_cst) || s->own > waits + s->slots.due;
}

bool wr_domain_reserve_thread(struct weir_group *group)
{
    const struct wr_share *s = &wr_domains_of(group)->ledger.share[group->domain];
    bool insists, keep;

    wr_domains_lock_near(group->executor, group->domain);
    set_want(group);
    insists = group->extras->was_passed_over && slot_is_to_come(group->executor, group->domain);
    keep = wr_group_domain(group)->with_thread < s->promised + insists;
    if (keep)
        wr_domain_set_waits_with_thread(group, true);
    else
        group->extras->was_passed_over = true;
    wr_domains_unlock(group->executor);
    return keep;
}

void wr_domain_unreserve_thread(struct weir_group *group)
{
    wr_lock(&wr_domains_of(group)->lock);
    wr_domain_set_waits_with_thread(group, false);
    wr_unlock(&wr_domains_of(group)->lock);
}

uint64_t wr_domains_reserving_in_vain(struct weir_executor *ex)
{
    struct wr_domains *domains = ex->domains;
    uint64_t set = 0;

    wr_lock(&domains->lock);
    for (uint32_t d = 0; d < domains->ledger.count; d++)
        if (domains->domain[d].with_thread > domains->ledger.share[d].promised &&
            !slot_is_to_come(ex, d))
            set |= wr_domain_bit(d);
    wr_unlock(&domains->lock);
    return set;
}

/* ---- why a task does not start ----------------------------------------------------------------- */

weir_reason wr_domain_blocked_by(struct weir_group *group, int64_t *limit, int64_t *held)
{
    struct wr_domains *domains = wr_domains_of(group);
    const struct wr_share *s = &domains->ledger.share[group->domain];
    bool blocked;

    wr_domains_lock_near(group->executor, group->domain);
    blocked = s->promised == 0 &&
              (group->extras->counted || !wr_ledger_can_grant(&domains->ledger, group->domain));
    if (blocked) {
        int64_t elsewhere = (int64_t)s->borrowed + s->strays;
        *limit = s->slots.limit + elsewhere;
        *held = (int64_t)s->own + s->charged + elsewhere;
    }
    wr_domains_unlock_unchanged(group->executor);
    return blocked ? WEIR_REASON_DOMAIN_SLOTS : WEIR_REASON_NONE;
}

/* ---- whether a slot may come ------------------------------------------------------------------- */

bool wr_domain_has_slots(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    bool has;

    wr_lock(&domains->lock);
    has = wr_ledger_has_slots(&domains->ledger, group->domain);
    wr_unlock(&domains->lock);
    return has;
}

bool wr_domain_may_get_slot(struct weir_group *group, struct wr_hopes *hopes)
{
    struct wr_domains *domains = wr_domains_of(group);
    uint64_t stuck[WR_DOMAINS_MAX];
    bool may;

    for (uint32_t d = 0; d < domains->ledger.count; d++)
        stuck[d] = domains->domain[d].node.stuck;
    wr_domains_lock(group->executor, WR_ALL_DOMAINS);
    may = wr_ledger_may_get_slot(&domains->ledger, &domains->supposed, group->domain, stuck, hopes);
    may |= wr_group_is_in_hands(group); /* with a slot */
    wr_domains_unlock_unchanged(group->executor);
    return may;
}
