/* Domains: their lock, ceded units, whose turn it is, and which group a worker takes; see domains.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "executor/settle.h"
#include "executor/state.h"

/* ---- ceded units ------------------------------------------------------------------------------- */

/* Takes a ceded slot of a domain (struct wr_domain); false: there is none. wr_line_pull calls it, under the ring's lock, which
 * protects `peak` as well. */
static bool take_ceded(struct wr_stand *stand, void *domain_arg)
{
    struct wr_domain *domain = domain_arg;
    uint64_t slots = wr_load(&domain->slots, relaxed);
    uint32_t used;

    (void)stand;
    do {
        used = (uint32_t)slots;
        if (slots == WR_IN_LEDGER || used >= slots >> 32)
            return false;
    } while (!wr_cas(&domain->slots, &slots, slots + 1, acq_rel));
    if (used + 1 > wr_load(&domain->peak, relaxed))
        wr_store(&domain->peak, used + 1, relaxed);
    return true;
}

/* No worker waits for a ceded slot, so none is woken. */
void wr_domain_give(struct weir_group *group)
{
    struct wr_domain *domain = wr_group_domain(group);
    uint64_t slots = wr_load(&domain->slots, relaxed);

    while (slots != WR_IN_LEDGER)
        if (wr_cas(&domain->slots, &slots, slots - 1, acq_rel))
            return;
    wr_domains_lock_near(group->executor, group->domain);
    wr_ledger_give(&wr_domains_of(group)->ledger, group->domain);
    wr_domains_unlock(group->executor);
}

static void take_back(struct wr_domains *domains, uint32_t d)
{
    uint64_t slots = wr_swap(&domains->domain[d].slots, WR_IN_LEDGER, acq_rel);

    wr_ledger_uncede(&domains->ledger, d, (uint32_t)(slots >> 32) - (uint32_t)slots);
    domains->ceded &= ~wr_domain_bit(d);
}

static void cede(struct wr_domains *domains, uint32_t d)
{
    const struct wr_share *s = &domains->ledger.share[d];
    uint32_t units, idle;

    if (!wr_ledger_may_cede(&domains->ledger, d))
        return;
    idle = wr_ledger_cede(&domains->ledger, d);
    units = s->own - s->promised;
    wr_store(&domains->domain[d].slots, (uint64_t)units << 32 | (units - idle), release);
    domains->ceded |= wr_domain_bit(d);
}

/* ---- the lock ---------------------------------------------------------------------------------- */

/* A crew that was refused permits of the executor's is to ask again. */
static void publish_crew(struct wr_domains *domains, struct wr_crew *crew)
{
    if (!(domains->ledger.promising & crew->domains))
        wr_debt_end(&crew->debt);
    if (wr_load(&crew->needed, relaxed))
        wr_store(&crew->needed, 0, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

/* Publishes, if the ledger is told only of slots, in which domains a task waits for one. */
static void publish_asking(struct wr_domains *domains)
{
    uint64_t asking = wr_load(&domains->counts, relaxed) ? 0 : domains->ledger.wanting;

    if (asking != wr_load(&domains->asking, relaxed))
        wr_store(&domains->asking, asking, seq_cst); /* pairs with wr_domains_ask_no_slot */
}

/* Publishes, after every change, what workers may take. A domain is barred if it has no slot for any of its tasks; if the ledger
 * does not know of each task, only once a worker was refused a slot there. */
static void publish(struct weir_executor *ex)
{
    struct wr_domains *domains = ex->domains;
    struct wr_ledger *l = &domains->ledger;
    bool contested = wr_ledger_is_contested(l);
    uint64_t barred = ~l->promising;

    publish_asking(domains);
    if (!wr_load(&domains->counts, relaxed))
        barred &= l->wanting;
    for (struct wr_crew *crew = &ex->crew; crew; crew = crew->next)
        publish_crew(domains, crew);
    if (contested != wr_load(&domains->contested, relaxed))
        wr_store(&domains->contested, contested, relaxed);
    if (barred != wr_load(&domains->barred, relaxed))
        wr_store(&domains->barred, barred, seq_cst); /* pairs with a sleeper's look, likewise */
    if (WR_UNLIKELY(l->shifted)) {
        l->shifted = false;
        wr_waits_suspect(ex);
    }
}

void wr_domains_lock(struct weir_executor *ex, uint64_t set)
{
    struct wr_domains *domains = ex->domains;

    wr_lock(&domains->lock);
    domains->locked = set & (~(uint64_t)0 >> (WR_DOMAINS_MAX - domains->ledger.count));
    for (set &= domains->ceded; set; set &= set - 1)
        take_back(domains, (uint32_t)__builtin_ctzll(set));
}

void wr_domains_unlock_unchanged(struct weir_executor *ex)
{
    struct wr_domains *domains = ex->domains;

    if (domains->ledger.room) { /* places have changed hands: submits that wait may try again */
        domains->ledger.room = false;
        wr_room_made(ex);
    }
    if (!wr_load(&domains->counts, relaxed))
        for (uint64_t set = domains->locked; set; set &= set - 1)
            cede(domains, (uint32_t)__builtin_ctzll(set));
    wr_unlock(&domains->lock);
}

void wr_domains_unlock(struct weir_executor *ex)
{
    publish(ex);
    wr_domains_unlock_unchanged(ex);
}

/* ---- asking for a slot ------------------------------------------------------------------------- */

void wr_domains_set_asks(struct wr_domains *domains, uint32_t d, bool asks)
{
    int64_t more = (int64_t)asks - domains->ledger.share[d].want;

    if (wr_load(&domains->counts, relaxed) || !more)
        return;
    wr_ledger_want(&domains->ledger, d, more);
    publish_asking(domains);
}

static bool ring_is_empty(const struct wr_domains *domains, uint32_t d)
{
    return !(wr_load(&domains->ready, seq_cst) & wr_domain_bit(d));
}

void wr_domains_ask_no_slot(struct weir_executor *ex, uint32_t d)
{
    struct wr_domains *domains = ex->domains;

    if (!ring_is_empty(domains, d) || !(wr_load(&domains->asking, seq_cst) & wr_domain_bit(d)))
        return;
    wr_domains_lock_near(ex, d);
    if (ring_is_empty(domains, d))
        wr_domains_set_asks(domains, d, false);
    wr_domains_unlock(ex);
}

/* ---- permits of the executor's, across sets of workers ----------------------------------------- */

/* Permits that other crews were refused before this one was. */
static uint64_t owed_before(const struct wr_crew *crew)
{
    const struct weir_executor *ex = crew->executor;

    return wr_debts_before(&ex->domains->refused, &crew->debt,
                           wr_load(&ex->root.inflight_max, relaxed));
}

/* The ring whose turn it is, if there is a slot for it; NULL: there is none. */
static struct wr_line *ring_in_turn(const struct wr_crew *crew)
{
    struct wr_domains *domains = crew->executor->domains;
    uint32_t d = wr_turn_domain(wr_load(&crew->turn, relaxed));

    if (!(domains->ledger.promising & crew->domains & wr_domain_bit(d)))
        return NULL;
    return &domains->domain[d].ring;
}

uint32_t wr_domain_owed(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    const struct wr_crew *crew = wr_group_domain(group)->crew;
    const struct wr_line *ring;
    uint32_t needed;
    uint64_t owed;

    wr_lock(&domains->lock);
    ring = ring_in_turn(crew);
    needed = ring ? wr_load(&ring->needed, relaxed) : 0;
    owed = owed_before(crew);
    wr_unlock(&domains->lock);
    owed += owed > 0; /* and at least one for its own */
    owed = needed > owed ? needed : owed;
    return owed < WR_INF ? (uint32_t)owed : WR_INF;
}

/* What the first group in line of a crew needs now, if it will wait for ever. It may not be the one that was refused. */
static uint32_t first_needs(const struct wr_crew *crew)
{
    struct wr_line *ring = ring_in_turn(crew);

    return ring ? wr_line_first_cost(ring, true) : 0;
}

uint32_t wr_domain_most_owed(struct weir_group *group)
{
    struct wr_domains *domains = wr_domains_of(group);
    const struct wr_crew *crew = wr_group_domain(group)->crew;
    uint32_t all = wr_load(&group->executor->root.inflight_max, relaxed), most = 0, needs;
    const struct wr_debt *other = NULL;
    struct wr_line *ring;

    wr_lock(&domains->lock);
    ring = ring_in_turn(crew);
    /* A group that is yet to be called for a thread will go before all others in its ring. */
    if (ring && wr_load(&ring->needed, relaxed) &&
        !(wr_group_place(group) == WR_AWAITS_THREAD && wr_group_ring(group) == ring))
        most = first_needs(crew);
    while ((other = wr_debt_before(&domains->refused, &crew->debt, other, all))) {
        needs = first_needs(WR_CONTAINER(other, struct wr_crew, debt));
        most = needs > most ? needs : most;
    }
    wr_unlock(&domains->lock);
    return most;
}

/* ---- the first group of a domain --------------------------------------------------------------- */

/* Takes the first group of a ring, if the crews that asked before this one leave the permits for it; if not, this crew is owed
 * them, too. Under the lock. */
static struct weir_group *take_first(struct wr_crew *crew, struct wr_line *ring, uint32_t *reserved)
{
    struct wr_root *root = &crew->executor->root;
    uint64_t owed = owed_before(crew);
    uint32_t cost = owed ? wr_line_first_cost(ring, false) : 0,
             more = cost > *reserved ? cost - *reserved : 0;
    struct weir_group *group = NULL;

    if (!more ||
        wr_load(&root->held, seq_cst) + more + owed <= wr_load(&root->inflight_max, relaxed)) {
        group = wr_group_at(wr_line_pull(ring, root, reserved, NULL, NULL));
        owed = 0;
        cost = wr_load(&ring->needed, relaxed); /* 0: a worker is about to put it back */
    }
    if (group) {
        wr_debt_end(&crew->debt);
        return group;
    }
    if (cost)
        wr_debt_note(&crew->executor->domains->refused, &crew->debt, cost);
    wr_store(&crew->needed, owed + cost < WR_INF ? (uint32_t)(owed + cost) : WR_INF, relaxed);
    return NULL;
}

/* Takes the first group of a domain on a slot that is promised to the domain. *stop: the crew's other domains must wait, too.
 * Under the lock. */
static struct weir_group *take_promised(struct wr_crew *crew, uint32_t d, uint32_t *reserved,
                                        bool *stop)
{
    struct wr_domains *domains = crew->executor->domains;
    struct weir_group *group;
    struct wr_extras *extras;

    if (!domains->ledger.share[d].promised)
        return NULL;
    group = take_first(crew, &domains->domain[d].ring, reserved);
    *stop = !group && wr_load(&crew->needed, relaxed);
    if (!group)
        return NULL;
    extras = group->extras;
    wr_ledger_take(&domains->ledger, d);
    domains->ledger.share[d].queued += extras->counted < WR_COUNTS_QUEUED; /* it knows of none */
    if (!extras->counted)
        return group;
    WR_ASSERT(wr_load(&extras->want, relaxed) > 0);
    wr_store(&extras->want, wr_load(&extras->want, relaxed) - 1, relaxed);
    wr_domain_set_waits_with_thread(group, false); /* what was promised for it is taken */
    return group;
}

/* The same where the ledger counts only slots: on a ceded slot, or on one that the ledger is asked for. Without a slot the domain
 * is barred until there is one. Without the lock. */
static struct weir_group *take_uncounted(struct wr_crew *crew, uint32_t d, uint32_t *reserved,
                                         bool *stop)
{
    struct wr_domains *domains = crew->executor->domains;
    struct wr_domain *domain = &domains->domain[d];
    struct weir_group *group = wr_group_at(
        wr_line_pull(&domain->ring, &crew->executor->root, reserved, take_ceded, domain));

    if (group)
        wr_domains_ask_no_slot(crew->executor, d); /* another slot may be kept for it */
    if (group || ring_is_empty(domains, d) || wr_load(&domain->ring.deciding, relaxed))
        return group;
    wr_domains_lock_near(crew->executor, d);
    if (!wr_load(&domains->counts, relaxed)) { /* else it is to be taken in the other way */
        wr_domains_set_asks(domains, d, true);
        group = take_promised(crew, d, reserved, stop);
        /* Another worker may have taken the last group, with the slot or before there was one: then no slot is to be kept
         * for it. If a group leaves the ring after this look, wr_domain_sync sees to that later. */
        if (!group && (domains->ledger.share[d].promised || ring_is_empty(domains, d)))
            wr_domains_set_asks(domains, d, false);
    }
    wr_domains_unlock(crew->executor);
    return group;
}

/* ---- whose turn it is -------------------------------------------------------------------------- */

/* Claims the next turn of those domains, before it is known whether anything can be taken: no two workers take the same turn. */
static uint64_t claim_turn(struct wr_crew *crew, uint64_t untried)
{
    const struct wr_ledger *ledger = &crew->executor->domains->ledger;
    uint64_t before = wr_load(&crew->turn, relaxed), turn;

    do
        turn = wr_ledger_turn(ledger, before, untried);
    while (!wr_cas(&crew->turn, &before, turn - WR_ONE_TURN, acq_rel));
    return turn;
}

/* Nothing was taken: the turn is as it was, unless another worker has claimed one meanwhile. */
static void unclaim_turn(struct wr_crew *crew, uint64_t claimed, uint64_t turn)
{
    claimed -= WR_ONE_TURN;
    wr_cas(&crew->turn, &claimed, turn, acq_rel);
}

struct weir_group *wr_domains_take(struct wr_crew *crew, uint32_t *reserved)
{
    struct wr_domains *domains = crew->executor->domains;
    bool counts = wr_load(&domains->counts, acquire), stop = false;
    uint64_t untried = wr_domains_ready_for(domains, crew), before, turn = 0;
    struct weir_group *group = NULL;

    if (!untried || wr_load(&domains->counting, acquire))
        return NULL;
    if (counts) {
        wr_domains_lock(crew->executor, 0);
        untried = domains->ledger.promising & crew->domains;
    }
    before = wr_load(&crew->turn, relaxed);
    while (untried && !group && !stop) {
        turn = claim_turn(crew, untried);
        group =
            (counts ? take_promised : take_uncounted)(crew, wr_turn_domain(turn), reserved, &stop);
        untried &= ~wr_domain_bit(wr_turn_domain(turn));
    }
    if (!group && turn)
        unclaim_turn(crew, turn, stop ? turn : before);
    if (counts && group)
        wr_domains_unlock(crew->executor);
    else if (counts)
        wr_domains_unlock_unchanged(crew->executor); /* a refused crew does not ask again */
    return group;
}
