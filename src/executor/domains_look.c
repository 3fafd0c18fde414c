/* Domains: what keeps a task from starting, and whether it will ever get a slot; see domains.h.
 * SPDX-License-Identifier: MIT */
#include "executor/domains_parts.h"

struct wr_share wr_domains_look(struct weir_executor *ex, uint32_t d, int64_t *used)
{
    struct wr_domains *domains = ex->domains;
    struct wr_domain *domain = &domains->domain[d];
    struct wr_share s;

    wr_domains_lock(ex, WR_ALL_DOMAINS);
    wr_lock(&domain->ring.part->lock); /* a slot is taken and in hands at one moment */
    s = domains->ledger.share[d];
    if (wr_load(&domain->followed, relaxed) != WR_IN_LEDGER)
        s.queued -= (int64_t)wr_load(&domain->followed, relaxed);
    *used = (int64_t)s.own + s.borrowed + s.strays - wr_load(&domain->in_hands, relaxed);
    if (wr_load(&domain->asks, relaxed))
        *used -= s.promised; /* to a worker that has yet to see whether there is a task */
    wr_unlock(&domain->ring.part->lock);
    s.peak = wr_load(&domain->peak, relaxed) > s.peak ? wr_load(&domain->peak, relaxed) : s.peak;
    wr_domains_unlock_unchanged(ex);
    return s;
}

weir_reason wr_domain_blocked_by(struct weir_group *group, int64_t *limit, int64_t *held)
{
    struct wr_domains *domains = wr_domains_of(group);
    const struct wr_share *s = &domains->ledger.share[group->domain];
    bool blocked;

    wr_domains_lock_near(group);
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

/* Stuck tasks of d that stand on units of the default domain's, having used up their own. */
static uint64_t stuck_on_default(const struct wr_domains *domains, uint32_t d)
{
    uint64_t stuck = domains->domain[d].node.stuck, own = domains->ledger.share[d].slots.limit;

    return d != WR_DEFAULT && stuck > own ? stuck - own : 0;
}

/* While every unit is with its owner: our own units first, then idle ones of the default domain's. */
static bool slot_is_left(const struct wr_domains *domains, uint32_t d)
{
    const struct wr_ledger *l = &domains->ledger;
    uint64_t borrowed = 0, most = l->share[WR_DEFAULT].slots.limit;

    if (d != WR_DEFAULT && domains->domain[d].node.stuck < l->share[d].slots.limit)
        return true;
    if (d != WR_DEFAULT && !l->share[d].slots_reserved)
        return false;
    for (uint32_t i = 0; i < l->count; i++)
        borrowed += stuck_on_default(domains, i);
    return domains->domain[WR_DEFAULT].node.stuck + borrowed < most &&
           (d == WR_DEFAULT || borrowed + l->floor < most);
}

/* Otherwise in a copy of the ledger, in which all but stuck tasks give their slots back, and only d wants one. */
static bool slot_is_left_in_copy(struct wr_domains *domains, uint32_t d, uint64_t *lenders)
{
    struct wr_ledger *copy = &domains->supposed;

    wr_ledger_copy(copy, &domains->ledger);
    for (uint32_t i = 0; i < copy->count; i++)
        wr_ledger_want(copy, i, -(int64_t)copy->share[i].want);
    for (uint32_t i = 0; i < copy->count; i++) {
        const struct wr_share *s = &copy->share[i];
        while ((uint64_t)s->own + s->borrowed + s->strays > domains->domain[i].node.stuck)
            wr_ledger_give(copy, i);
    }
    wr_ledger_want(copy, d, 1);
    *lenders = wr_ledger_lenders(copy, d);
    return copy->share[d].promised;
}

/* A set: the domains that have lent slots and not recalled them, since they may do so for a task, and lend them anew; and the
 * one that has yet to give back d's, since it may be lent some for a task of its own. Each sample is an event, so that waits are
 * looked at again. */
static uint64_t slot_movers(const struct wr_ledger *l, uint32_t d)
{
    uint64_t movers = l->share[d].slots.forced ? wr_domain_bit(l->share[d].receiver) : 0;

    for (uint32_t i = 0; i < l->count; i++)
        if (l->share[i].slots.lent > l->share[i].slots.owed)
            movers |= wr_domain_bit(i);
    return l->lending.on ? movers & ~wr_domain_bit(d) : 0;
}

static bool has_slots(const struct wr_ledger *l, uint32_t d)
{
    return l->share[d].slots.amount ||
           (l->share[d].slots_reserved && l->share[WR_DEFAULT].slots.amount > l->floor);
}

bool wr_domain_has_slots(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    bool has;

    wr_lock(&domains->lock);
    has = has_slots(&domains->ledger, group->domain);
    wr_unlock(&domains->lock);
    return has;
}

bool wr_domain_may_get_slot(struct weir_group *group, struct wr_hopes *hopes)
{
    struct wr_domains *domains = wr_domains_of(group);
    const struct wr_share *s = &domains->ledger.share[group->domain];
    bool may;

    wr_domains_lock(group->executor, WR_ALL_DOMAINS);
    *hopes = (struct wr_hopes){ .movers = slot_movers(&domains->ledger, group->domain) };
    /* What waits there is being refused; or waits until it is given some; or one is there: it may be recalled, but goes
     * back when a task was on it. */
    if (s->released || !has_slots(&domains->ledger, group->domain) || s->promised ||
        wr_group_is_in_hands(group))
        may = true;
    else if (domains->ledger.moved[WR_SLOTS] || domains->ledger.lending.on)
        may = slot_is_left_in_copy(domains, group->domain, &hopes->lenders);
    else
        may = slot_is_left(domains, group->domain);
    wr_domains_unlock_unchanged(group->executor);
    return may;
}

/* ---- who goes first ---------------------------------------------------------------------------- */

uint32_t wr_domain_owed(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    struct wr_crew *crew = wr_group_domain(group)->crew;
    uint64_t owed;

    wr_lock(&domains->lock);
    owed = wr_crew_owed_before(crew);
    owed += owed > 0; /* and at least one for its own */
    for (uint32_t d = 0; d < domains->ledger.count; d++) {
        uint32_t needed = wr_load(&domains->domain[d].ring.needed, relaxed);
        if (domains->domain[d].crew == crew && domains->ledger.share[d].promised && needed > owed)
            owed = needed;
    }
    wr_unlock(&domains->lock);
    return owed < WR_INF ? (uint32_t)owed : WR_INF;
}

/* What the first in line of a crew needs now: it may be another than when it was refused. Under the domains' lock. */
static uint32_t first_needs(const struct wr_crew *crew)
{
    struct wr_domains *domains = crew->executor->domains;
    uint32_t d = wr_turn_domain(wr_load(&crew->turn, relaxed));

    if (!(domains->ledger.promising & crew->domains & wr_domain_bit(d)))
        return 0;
    return wr_line_first_cost(&domains->domain[d].ring, true);
}

/* Whether the domain whose turn it is was refused permits. If it is the group's own, and the group is yet to be called for a
 * thread, it will go before all others there. Under the domains' lock. */
static bool is_held_up(const struct wr_crew *crew, const struct weir_group *group)
{
    struct wr_domains *domains = crew->executor->domains;
    uint32_t d = wr_turn_domain(wr_load(&crew->turn, relaxed));

    return wr_load(&domains->domain[d].ring.needed, relaxed) &&
           !(wr_group_place(group) == WR_AWAITS_THREAD && group->domain == d);
}

uint32_t wr_domain_most_owed(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    struct wr_crew *crew = wr_group_domain(group)->crew;
    uint32_t most = 0;

    wr_lock(&domains->lock);
    for (uint32_t d = 0; d < domains->ledger.count; d++) {
        struct wr_crew *other = domains->domain[d].crew;
        uint32_t needs;
        if (other != crew && !wr_crew_goes_before(other, crew))
            continue;
        if (other == crew && !is_held_up(crew, group))
            continue;
        needs = first_needs(other);
        most = needs > most ? needs : most;
    }
    wr_unlock(&domains->lock);
    return most;
}
