/* Domains: what a worker takes, and in whose turn; see domains.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "executor/domains_parts.h"

/* ---- permits of the executor's, across sets of workers ----------------------------------------- */

/* An intake is refused permits of the executor's: it is owed them from now on. */
static void ask(struct wr_domains *domains, struct wr_intake *intake, uint32_t cost)
{
    if (!intake->asked) {
        intake->asked = ++domains->asks;
        domains->asking++;
    }
    intake->owed = cost;
}

void wr_intake_ask_no_more(struct wr_domains *domains, struct wr_intake *intake)
{
    if (intake->asked)
        domains->asking--;
    intake->asked = 0;
    intake->owed = 0;
}

bool wr_intake_goes_before(const struct weir_executor *ex, const struct wr_intake *other,
                           const struct wr_intake *intake)
{
    return other != intake && other->asked && (!intake->asked || other->asked < intake->asked) &&
           other->owed <= wr_load(&ex->root.inflight_max, relaxed); /* else it waits for a resize */
}

uint64_t wr_intake_owed_before(const struct wr_intake *intake)
{
    struct weir_executor *ex = intake->executor;
    struct wr_domains *domains = ex->domains;
    uint64_t owed = 0;

    if (!domains->asking)
        return 0;
    if (wr_intake_goes_before(ex, &ex->intake, intake))
        owed += ex->intake.owed;
    for (uint32_t d = 0; d < domains->ledger.count; d++)
        if (wr_intake_goes_before(ex, &domains->domain[d].own, intake))
            owed += domains->domain[d].own.owed;
    return owed;
}

/* Whether the first group of a ring is within what is left of the executor's permits; if not, the intake is owed them,
 * after those who asked before it. */
static bool leaves_what_is_owed(struct wr_intake *intake, struct wr_ring *ring,
                                const struct wr_root *root, uint32_t reserved)
{
    uint64_t owed = wr_intake_owed_before(intake);
    uint32_t cost = owed ? wr_ring_first_cost(ring, false) : 0,
             more = cost > reserved ? cost - reserved : 0;

    if (!more ||
        wr_load(&root->held, seq_cst) + more + owed <= wr_load(&root->inflight_max, relaxed))
        return true;
    ask(intake->executor->domains, intake, cost);
    wr_store(&intake->needed, owed + cost < WR_INF ? (uint32_t)(owed + cost) : WR_INF, relaxed);
    return false;
}

/* ---- the first group of a domain --------------------------------------------------------------- */

/* The first group of a domain on a slot that is promised to it, which has each of its tasks counted. Under the lock. */
static struct weir_group *take_counted(struct wr_intake *intake, uint32_t d, struct wr_root *root,
                                       uint32_t *reserved, bool *stop)
{
    struct wr_domains *domains = intake->executor->domains;
    struct wr_domain *domain = &domains->domain[d];
    struct weir_group *group;

    if (!leaves_what_is_owed(intake, &domain->ring, root, *reserved)) {
        *stop = true;
        return NULL;
    }
    group = wr_ring_take(&domain->ring, root, reserved);
    if (!group) { /* somebody is about to put it back; or the executor's limit is reached */
        uint32_t needed = wr_load(&domain->ring.needed, relaxed);
        *stop = needed > 0;
        wr_store(&intake->needed, needed, relaxed);
        if (needed)
            ask(domains, intake, needed);
        return NULL;
    }
    wr_intake_ask_no_more(domains, intake);
    wr_ledger_take(&domains->ledger, d);
    WR_ASSERT(wr_load(&group->extras->want, relaxed) > 0);
    wr_store(&group->extras->want, wr_load(&group->extras->want, relaxed) - 1, relaxed);
    wr_store(&group->in_hands, WR_HANDS_COUNTED, relaxed);
    wr_domain_set_keeps(group, false); /* what was promised for it is taken */
    return group;
}

/* The same of a slot that is promised to the domain. Under the lock. */
static bool take_promised(struct weir_group *group, void *domains_arg)
{
    struct wr_domains *domains = domains_arg;
    struct wr_share *s = &domains->ledger.share[group->domain];

    if (!s->promised)
        return false;
    wr_ledger_take(&domains->ledger, group->domain);
    s->queued++; /* it does not know of that one */
    domains->domain[group->domain].asks = false;
    wr_domain_take_in_hands(group, &domains->domain[group->domain]);
    return true;
}

/* The first group of such a domain, on a slot that the ledger is asked for. Without one it is barred until there is. */
static struct weir_group *take_asking(struct weir_executor *ex, uint32_t d)
{
    struct wr_domains *domains = ex->domains;
    struct weir_group *group = NULL;

    wr_domains_lock(ex, wr_domain_bit(d) | wr_domain_bit(WR_DEFAULT));
    if (!wr_load(&domains->counts, relaxed)) { /* else it is to be taken in the other way */
        wr_domains_set_asks(domains, d, true);
        group = wr_ring_take_with(&domains->domain[d].ring, take_promised, domains);
        if (!group && domains->ledger.share[d].promised)
            wr_domains_set_asks(domains, d, false); /* another worker has taken the last group */
    }
    wr_domains_unlock(ex);
    return group;
}

/* The first group of a domain whose tasks are not counted, with a slot. */
static struct weir_group *take_uncounted(struct weir_executor *ex, uint32_t d)
{
    struct wr_domain *domain = &ex->domains->domain[d];
    struct weir_group *group = wr_ring_take_with(&domain->ring, wr_domain_take_ceded, domain);

    if (!group && wr_load(&ex->domains->ready, relaxed) & wr_domain_bit(d))
        group = take_asking(ex, d);
    return group;
}

/* ---- whose turn it is -------------------------------------------------------------------------- */

static uint64_t turn_left(uint64_t turn)
{
    return turn >> 8;
}

static uint64_t turn_of(uint32_t d, uint64_t left)
{
    return left << 8 | d;
}

/* Whose turn it is after `turn`, of a set that is not empty. */
static uint64_t turn_among(const struct wr_domains *domains, uint64_t turn, uint64_t set)
{
    uint32_t d = wr_turn_domain(turn);

    if (turn_left(turn) && set & wr_domain_bit(d))
        return turn;
    d = wr_domain_after(d, set);
    return turn_of(d, domains->ledger.share[d].weight);
}

struct weir_group *wr_domains_take(struct wr_intake *intake, struct wr_root *root,
                                   uint32_t *reserved)
{
    struct weir_executor *ex = intake->executor;
    bool counts = wr_load(&ex->domains->counts, acquire), stop = false;
    uint64_t untried = wr_domains_ready_for(ex->domains, intake);
    struct weir_group *group = NULL;

    if (!untried || wr_load(&ex->domains->counting, acquire))
        return NULL;
    if (counts) {
        wr_lock(&ex->domains->lock);
        untried = ex->domains->ledger.promising & intake->domains;
    }
    while (untried && !group && !stop) {
        uint64_t before = wr_load(&intake->turn, relaxed),
                 turn = turn_among(ex->domains, before, untried);
        uint32_t d = wr_turn_domain(turn);
        group = counts ? take_counted(intake, d, root, reserved, &stop) : take_uncounted(ex, d);
        if (group || stop) /* if it has changed meanwhile, another worker has moved it on */
            wr_cas(&intake->turn, &before, turn_of(d, turn_left(turn) - (group != NULL)), acq_rel);
        untried &= ~wr_domain_bit(d);
    }
    if (counts && group)
        wr_domains_publish(ex);
    if (counts)
        wr_unlock(&ex->domains->lock);
    return group;
}
