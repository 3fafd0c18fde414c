/* Domains: what a worker takes, and in whose turn; see domains.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "executor/domains_parts.h"

/* ---- permits of the executor's, across sets of workers ----------------------------------------- */

/* A crew is refused permits of the executor's: it is owed them from now on. */
static void ask(struct wr_domains *domains, struct wr_crew *crew, uint32_t cost)
{
    if (!crew->owed)
        wr_list_append(&domains->refused, &crew->link);
    crew->owed = cost;
}

void wr_crew_ask_no_more(struct wr_crew *crew)
{
    if (crew->owed)
        wr_list_remove(&crew->link);
    crew->owed = 0;
}

/* What those before it are owed, `only` or all. Who is owed more than there are permits waits for a resize. */
static uint64_t owed_before(const struct wr_crew *crew, const struct wr_crew *only)
{
    const struct weir_executor *ex = crew->executor;
    uint64_t owed = 0;

    wr_list_each(node, &ex->domains->refused) {
        const struct wr_crew *other = WR_CONTAINER(node, struct wr_crew, link);
        if (other == crew)
            break;
        if ((!only || other == only) && other->owed <= wr_load(&ex->root.inflight_max, relaxed))
            owed += other->owed;
    }
    return owed;
}

bool wr_crew_goes_before(const struct wr_crew *other, const struct wr_crew *crew)
{
    return owed_before(crew, other) > 0;
}

uint64_t wr_crew_owed_before(const struct wr_crew *crew)
{
    return owed_before(crew, NULL);
}

/* Whether the first group of a ring is within what is left of the executor's permits; if not, the crew is owed them,
 * after those who asked before it. */
static bool leaves_what_is_owed(struct wr_crew *crew, struct wr_line *ring,
                                const struct wr_root *root, uint32_t reserved)
{
    uint64_t owed = wr_crew_owed_before(crew);
    uint32_t cost = owed ? wr_line_first_cost(ring, false) : 0,
             more = cost > reserved ? cost - reserved : 0;

    if (!more ||
        wr_load(&root->held, seq_cst) + more + owed <= wr_load(&root->inflight_max, relaxed))
        return true;
    ask(crew->executor->domains, crew, cost);
    wr_store(&crew->needed, owed + cost < WR_INF ? (uint32_t)(owed + cost) : WR_INF, relaxed);
    return false;
}

/* ---- the first group of a domain --------------------------------------------------------------- */

/* The first group of a domain on a slot that is promised to it, which has each of its tasks counted. Under the lock. */
static struct weir_group *take_counted(struct wr_crew *crew, uint32_t d, struct wr_root *root,
                                       uint32_t *reserved, bool *stop)
{
    struct wr_domains *domains = crew->executor->domains;
    struct wr_domain *domain = &domains->domain[d];
    struct weir_group *group;

    if (!leaves_what_is_owed(crew, &domain->ring, root, *reserved)) {
        *stop = true;
        return NULL;
    }
    group = wr_line_pull_with_permits(&domain->ring, root, reserved, NULL);
    if (!group) { /* somebody is about to put it back; or the executor's limit is reached */
        uint32_t needed = wr_load(&domain->ring.needed, relaxed);
        *stop = needed > 0;
        wr_store(&crew->needed, needed, relaxed);
        if (needed)
            ask(domains, crew, needed);
        return NULL;
    }
    wr_crew_ask_no_more(crew);
    wr_ledger_take(&domains->ledger, d);
    WR_ASSERT(wr_load(&group->extras->want, relaxed) > 0);
    wr_store(&group->extras->want, wr_load(&group->extras->want, relaxed) - 1, relaxed);
    wr_domain_set_waits_with_thread(group, false); /* what was promised for it is taken */
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
    wr_store(&wr_group_domain(group)->asks, false, relaxed);
    wr_domain_take_in_hands(group, wr_group_domain(group));
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
        group = wr_line_pull(&domains->domain[d].ring, take_promised, domains);
        /* Another worker may have taken the last group, with the slot or before there was one: then none is to be kept
         * for it. If one leaves the ring after this look, wr_domain_sync comes here later. */
        if (!group && (domains->ledger.share[d].promised ||
                       !(wr_load(&domains->ready, seq_cst) & wr_domain_bit(d))))
            wr_domains_set_asks(domains, d, false);
    }
    wr_domains_unlock(ex);
    return group;
}

/* The first group of a domain whose tasks are not counted, with a slot. */
static struct weir_group *take_uncounted(struct weir_executor *ex, uint32_t d)
{
    struct wr_domain *domain = &ex->domains->domain[d];
    struct weir_group *group = wr_line_pull(&domain->ring, wr_domain_take_ceded, domain);

    if (group)
        wr_domains_ask_no_slot(ex, d); /* another slot may be kept for it */
    else if (wr_load(&ex->domains->ready, relaxed) & wr_domain_bit(d) &&
             !wr_load(&domain->ring.deciding, relaxed))
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

struct weir_group *wr_domains_take(struct wr_crew *crew, struct wr_root *root, uint32_t *reserved)
{
    struct weir_executor *ex = crew->executor;
    bool counts = wr_load(&ex->domains->counts, acquire), stop = false;
    uint64_t untried = wr_domains_ready_for(ex->domains, crew);
    struct weir_group *group = NULL;

    if (!untried || wr_load(&ex->domains->counting, acquire))
        return NULL;
    if (counts) {
        wr_lock(&ex->domains->lock);
        untried = ex->domains->ledger.promising & crew->domains;
    }
    while (untried && !group && !stop) {
        uint64_t before = wr_load(&crew->turn, relaxed),
                 turn = turn_among(ex->domains, before, untried);
        uint32_t d = wr_turn_domain(turn);
        group = counts ? take_counted(crew, d, root, reserved, &stop) : take_uncounted(ex, d);
        if (group || stop) /* if it has changed meanwhile, another worker has moved it on */
            wr_cas(&crew->turn, &before, turn_of(d, turn_left(turn) - (group != NULL)), acq_rel);
        untried &= ~wr_domain_bit(d);
    }
    if (counts && group)
        wr_domains_publish(ex);
    if (counts)
        wr_unlock(&ex->domains->lock);
    return group;
}
