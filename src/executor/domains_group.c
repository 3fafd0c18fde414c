/* Domains: what becomes of a group's tasks, and of threads that are reserved for them; see domains.h.
 * SPDX-License-Identifier: MIT */
#include "executor/domains_parts.h"
#include "executor/settle.h"

weir_reason wr_domain_admit(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    weir_reason reason;
    bool ready;

    if (!group->extras->counted)
        return wr_domain_is_released(group) ? WEIR_REASON_DOMAIN_RELEASED : WEIR_REASON_NONE;
    wr_domains_lock_near(group);
    ready = wr_domain_ready_tasks(group) > wr_load(&group->extras->want, relaxed);
    reason = wr_ledger_admit(&domains->ledger, group->domain, ready);
    if (!reason)
        wr_store(&group->extras->want, wr_load(&group->extras->want, relaxed) + ready, relaxed);
    wr_domains_unlock(group->executor);
    return reason;
}

void wr_domain_withdraw(struct weir_group *group)
{
    if (!group->extras->counted)
        return;
    wr_domains_lock_near(group);
    wr_ledger_withdraw(&wr_domains_of(group)->ledger, group->domain);
    wr_domains_unlock(group->executor);
}

void wr_domains_ask_no_slot(struct weir_executor *ex, uint32_t d)
{
    struct wr_domains *domains = ex->domains;
    uint64_t bit = wr_domain_bit(d);

    if (wr_load(&domains->ready, seq_cst) & bit || !wr_load(&domains->domain[d].asks, seq_cst))
        return;
    wr_domains_lock(ex, bit | wr_domain_bit(WR_DEFAULT));
    if (!(wr_load(&domains->ready, seq_cst) & bit) && !wr_load(&domains->counts, relaxed))
        wr_domains_set_asks(domains, d, false);
    wr_domains_unlock(ex);
}

/* Without the lock `want` and WR_IN_HANDS may change under our eyes, but only by a worker that takes a task of the group, and
 * that will come here itself when it has the group's lock. */
bool wr_domain_sync(struct weir_group *group)
{
    if (!group->extras->counted) {
        wr_domains_ask_no_slot(group->executor, group->domain);
        return wr_executor_has_ready(group->executor);
    }
    if (wr_domain_ready_tasks(group) == wr_load(&group->extras->want, relaxed))
        return wr_executor_has_ready(group->executor);
    wr_domains_lock_near(group);
    wr_domain_set_want(group);
    return wr_domains_unlock(group->executor);
}

void wr_domain_ask_again(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);

    if (!group->extras->counted)
        return;
    wr_lock(&domains->lock); /* whoever found another first has said so by now */
    wr_store(&wr_group_domain(group)->crew->needed, 0,
             seq_cst); /* pairs with a sleeper's look; see parking.md */
    wr_unlock(&domains->lock);
}

bool wr_domain_is_released(const struct weir_group *group)
{
    return wr_load(&wr_group_domain(group)->released, acquire);
}

void wr_domain_untake(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);

    if (!group->extras->counted)
        wr_domains_give_slot(group->executor, group->domain);
    wr_domain_put_down(group);
    if (!group->extras->counted)
        return;
    wr_domains_lock_near(group);
    wr_ledger_untake(&domains->ledger, group->domain);
    wr_domain_set_want(group);
    wr_domain_set_waits_with_thread(group, group->has_thread);
    wr_domains_unlock(group->executor);
}

void wr_domain_give(struct weir_group *group)
{
    wr_domains_give_slot(group->executor, group->domain);
}

bool wr_domain_is_quiet(struct weir_group *group)
{
    return !group->extras->counted &&
           wr_domain_is_calm(wr_domains_of(group), wr_group_domain(group));
}

/* Where nothing but slots is counted, and no other domain has a claim to this one. */
static bool follows(const struct wr_domains *domains, struct wr_domain *domain)
{
    uint64_t count = wr_load(&domain->followed, relaxed);

    while (count != WR_IN_LEDGER && wr_domain_is_calm(domains, domain))
        if (wr_cas(&domain->followed, &count, count + 1, acq_rel))
            return true;
    return false;
}

void wr_domains_follow_no_more(struct wr_domains *domains)
{
    for (uint32_t d = 0; d < domains->ledger.count; d++) {
        uint64_t count = wr_swap(&domains->domain[d].followed, WR_IN_LEDGER, acq_rel);
        if (count != WR_IN_LEDGER)
            domains->ledger.share[d].queued -= (int64_t)count;
    }
}

bool wr_domain_hand_over(struct weir_group *group)
{
    bool may;

    if (!group->extras->counted)
        return wr_domain_is_quiet(group);
    if (follows(wr_domains_of(group), wr_group_domain(group)))
        return true;
    wr_domains_lock_near(group);
    may = wr_ledger_hand_over(&wr_domains_of(group)->ledger, group->domain);
    wr_domains_tell_of_room(group->executor); /* nothing else has changed */
    wr_domains_unlock_unchanged(group->executor);
    return may;
}

void wr_domain_hand_back(struct weir_group *group)
{
    if (!group->extras->counted)
        return;
    wr_domains_lock_near(group);
    wr_ledger_hand_back(&wr_domains_of(group)->ledger, group->domain);
    wr_domains_tell_of_room(group->executor);
    wr_domains_unlock_unchanged(group->executor);
}

/* ---- a thread that is reserved ----------------------------------------------------------------- */

/* Whether a group of the domain may wait for a slot with a thread in hand. Somebody has to end who has a slot, other than
 * by way of that thread: bodies that wait for tasks may never. Units that are not its own, or not for long, do not
 * count. Under the domains' lock. Waits that begin later, and slots that are taken away, have it looked at again
 * (wr_threads_let_go). */
static bool slot_is_to_come(struct weir_executor *ex, uint32_t d)
{
    const struct wr_share *s = &ex->domains->ledger.share[d];
    uint64_t waits = wr_load(&ex->domains->domain[d].waits, seq_cst);

    return !wr_load(&ex->nested.count, seq_cst) || s->own > waits + s->slots.due;
}

bool wr_domain_reserve_thread(struct weir_group *group, bool insists)
{
    struct wr_domains *domains = wr_domains_of(group);
    struct wr_domain *domain = wr_group_domain(group);
    bool keep;

    wr_domains_lock_near(group);
    wr_domain_set_want(group);
    wr_domains_publish(group->executor);
    insists = insists && slot_is_to_come(group->executor, group->domain);
    keep = domain->with_thread < domains->ledger.share[group->domain].promised + insists;
    if (keep)
        wr_domain_set_waits_with_thread(group, true);
    wr_domains_unlock_unchanged(group->executor);
    return keep;
}

void wr_domain_unreserve_thread(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);

    wr_lock(&domains->lock);
    wr_domain_set_waits_with_thread(group, false);
    wr_unlock(&domains->lock);
}

/* Under the domains' lock. */
static bool reserves_in_vain(struct weir_executor *ex, uint32_t d)
{
    return ex->domains->domain[d].with_thread > ex->domains->ledger.share[d].promised &&
           !slot_is_to_come(ex, d);
}

bool wr_domain_reserves_in_vain(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    bool in_vain;

    wr_lock(&domains->lock);
    in_vain = group->extras->waits_with_thread && reserves_in_vain(group->executor, group->domain);
    wr_unlock(&domains->lock);
    return in_vain;
}

bool wr_domains_reserve_in_vain(struct weir_executor *ex)
{
    struct wr_domains *domains = ex->domains;
    bool in_vain = false;

    wr_lock(&domains->lock);
    for (uint32_t d = 0; d < domains->ledger.count; d++)
        in_vain |= reserves_in_vain(ex, d);
    wr_unlock(&domains->lock);
    return in_vain;
}
