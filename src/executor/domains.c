/* Domains: their lock, the units that are ceded to them, and what is published after every change; see domains.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "executor/domains_parts.h"
#include "executor/settle.h"

/* ---- ceded units ------------------------------------------------------------------------------- */

void wr_domain_take_in_hands(struct weir_group *group, struct wr_domain *domain)
{
    WR_ASSERT(!group->extras->counted);
    wr_add(&domain->in_hands, 1, relaxed);
}

void wr_domain_put_down(struct weir_group *group)
{
    if (!group->extras->counted)
        wr_sub(&wr_group_domain(group)->in_hands, 1, relaxed);
}

bool wr_domain_take_ceded(struct weir_group *group, void *domain_arg)
{
    struct wr_domain *domain = domain_arg;
    uint64_t slots = wr_load(&domain->slots, relaxed);
    uint32_t used, peak;

    do {
        used = (uint32_t)slots;
        if (slots == WR_IN_LEDGER || used >= slots >> 32)
            return false;
    } while (!wr_cas(&domain->slots, &slots, slots + 1, acq_rel));
    peak = wr_load(&domain->peak, relaxed);
    while (used + 1 > peak && !wr_cas(&domain->peak, &peak, used + 1, acq_rel))
        ;
    wr_domain_take_in_hands(group, domain);
    return true;
}

/* Gives one back, or (false) the ledger must be told. Nobody waits for what is ceded, so nobody is woken. */
static bool give_ceded(struct wr_domain *domain)
{
    uint64_t slots = wr_load(&domain->slots, relaxed);

    do {
        if (slots == WR_IN_LEDGER)
            return false;
    } while (!wr_cas(&domain->slots, &slots, slots - 1, acq_rel));
    return true;
}

static void take_back(struct wr_domains *domains, uint32_t d)
{
    uint64_t slots = wr_swap(&domains->domain[d].slots, WR_IN_LEDGER, acq_rel);

    wr_ledger_uncede(&domains->ledger, d, (uint32_t)(slots >> 32) - (uint32_t)slots);
    domains->ceded &= ~wr_domain_bit(d);
}

static void cede(struct wr_domains *domains, uint32_t d)
{
    struct wr_ledger *l = &domains->ledger;
    uint32_t idle, used;

    if (!wr_ledger_may_cede(l, d))
        return;
    idle = wr_ledger_cede(l, d);
    used = l->share[d].own - l->share[d].promised - idle;
    wr_store(&domains->domain[d].slots, wr_slots(used + idle, used), release);
    domains->ceded |= wr_domain_bit(d);
}

/* ---- the lock ---------------------------------------------------------------------------------- */

void wr_domains_lock(struct weir_executor *ex, uint64_t set)
{
    struct wr_domains *domains = ex->domains;

    wr_lock(&domains->lock);
    domains->locked = set & (~(uint64_t)0 >> (WR_DOMAINS_MAX - domains->ledger.count));
    for (set &= domains->ceded; set; set &= set - 1)
        take_back(domains, (uint32_t)__builtin_ctzll(set));
}

void wr_domains_lock_near(struct weir_group *group)
{
    wr_domains_lock(group->executor, wr_domain_bit(group->domain) | wr_domain_bit(WR_DEFAULT));
}

void wr_domains_tell_of_room(struct weir_executor *ex)
{
    struct wr_ledger *l = &ex->domains->ledger;

    if (l->room) {
        l->room = false;
        wr_room_made(ex);
    }
}

/* What is refused permits of the executor's is to ask again. */
static void publish_crew(struct wr_domains *domains, struct wr_crew *crew)
{
    if (!(domains->ledger.promising & crew->domains))
        wr_crew_ask_no_more(crew);
    if (wr_load(&crew->needed, relaxed))
        wr_store(&crew->needed, 0, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

uint64_t wr_domains_barred(const struct wr_domains *domains)
{
    uint64_t barred = 0;

    if (wr_load(&domains->counts, relaxed))
        return ~domains->ledger.promising;
    for (uint32_t d = 0; d < domains->ledger.count; d++)
        if (wr_load(&domains->domain[d].asks, relaxed) && !domains->ledger.share[d].promised)
            barred |= wr_domain_bit(d);
    return barred;
}

void wr_domains_publish(struct weir_executor *ex)
{
    struct wr_domains *domains = ex->domains;
    struct wr_ledger *l = &domains->ledger;
    uint64_t barred = wr_domains_barred(domains);
    bool contested = wr_ledger_is_contested(l);

    for (uint64_t apart = l->apart; apart; apart &= apart - 1)
        publish_crew(domains, &domains->domain[__builtin_ctzll(apart)].own);
    publish_crew(domains, &ex->crew);
    if (contested != wr_load(&domains->contested, relaxed))
        wr_store(&domains->contested, contested, relaxed);
    if (barred != wr_load(&domains->barred, relaxed))
        wr_store(&domains->barred, barred,
                 seq_cst); /* pairs with a sleeper's look; see parking.md */
    wr_domains_tell_of_room(ex);
    if (WR_UNLIKELY(l->shifted)) {
        l->shifted = false;
        wr_waits_suspect(ex);
    }
}

void wr_domains_unlock_unchanged(struct weir_executor *ex)
{
    struct wr_domains *domains = ex->domains;

    if (!wr_load(&domains->counts, relaxed))
        for (uint64_t set = domains->locked; set; set &= set - 1)
            cede(domains, (uint32_t)__builtin_ctzll(set));
    wr_unlock(&domains->lock);
}

bool wr_domains_unlock(struct weir_executor *ex)
{
    wr_domains_publish(ex);
    wr_domains_unlock_unchanged(ex);
    return wr_executor_has_ready(ex);
}

void wr_domains_give_slot(struct weir_executor *ex, uint32_t d)
{
    if (give_ceded(&ex->domains->domain[d]))
        return;
    wr_domains_lock(ex, wr_domain_bit(d) | wr_domain_bit(WR_DEFAULT));
    wr_ledger_give(&ex->domains->ledger, d);
    wr_domains_unlock(ex);
}

/* ---- what waits, as far as the ledger is told -------------------------------------------------- */

uint32_t wr_domain_ready_tasks(struct weir_group *group)
{
    uint32_t cost = group->evicted || !group->sums.queued ? 0 : wr_cost_at(wr_group_first(group));
    uint32_t ready = cost && wr_group_fits(group, cost) ? wr_ready_tasks(&group->sums, cost) : 0;

    if (group->has_thread && ready > 1)
        ready = 1; /* there is one thread for it */
    if (ready && wr_group_is_in_hands(group))
        ready--;
    return ready;
}

void wr_domain_set_want(struct weir_group *group)
{
    struct wr_ledger *l = &wr_domains_of(group)->ledger;
    uint32_t ready = wr_domain_ready_tasks(group);
    int64_t more = (int64_t)ready - wr_load(&group->extras->want, relaxed);

    wr_store(&group->extras->want, ready, relaxed);
    if (more)
        wr_ledger_want(l, group->domain, more);
}

void wr_domain_set_waits_with_thread(struct weir_group *group, bool has)
{
    struct wr_domain *domain = wr_group_domain(group);

    domain->with_thread += (uint32_t)has - (uint32_t)group->extras->waits_with_thread;
    group->extras->waits_with_thread = has;
}

void wr_domains_set_asks(struct wr_domains *domains, uint32_t d, bool asks)
{
    struct wr_domain *domain = &domains->domain[d];

    if (wr_load(&domain->asks, relaxed) == asks)
        return;
    wr_store(&domain->asks, asks, seq_cst); /* pairs with wr_domains_ask_no_slot */
    wr_ledger_want(&domains->ledger, d, asks ? 1 : -1);
}
