/* The ledger of domains: its events, and settling after each; see ledger.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "limits/ledger_parts.h"

#include <string.h>

uint32_t wr_ledger_unmet(const struct wr_share *s)
{
    return s->released ? 0 : s->want - s->promised;
}

static void set_member(uint64_t *set, uint32_t d, bool is_in)
{
    *set = is_in ? *set | wr_domain_bit(d) : *set & ~wr_domain_bit(d);
}

void wr_ledger_count(struct wr_ledger *l, uint32_t d, int64_t want, int64_t promised)
{
    struct wr_share *s = &l->share[d];

    WR_ASSERT(s->want + want >= 0 && s->promised + promised >= 0);
    s->want = (uint32_t)(s->want + want);
    s->promised = (uint32_t)(s->promised + promised);
    l->promised = (uint32_t)(l->promised + promised);
    set_member(&l->wanting, d, s->want > 0);
    set_member(&l->hungry, d, wr_ledger_unmet(s) > 0);
    set_member(&l->promising, d, s->promised > 0);
}

/* ---- places ---------------------------------------------------------------------------------- */

uint32_t wr_ledger_waiting(const struct wr_share *s)
{
    int64_t waiting = s->queued - s->promised;

    return waiting > 0 ? (uint32_t)waiting : 0;
}

uint32_t wr_ledger_places_borrowed(const struct wr_share *s)
{
    uint32_t waiting = wr_ledger_waiting(s);

    return s->places_reserved && waiting > s->places.limit ? waiting - s->places.limit : 0;
}

/* Places of d that are taken, by its own tasks and by those that borrow. */
static uint64_t places_used(const struct wr_ledger *l, uint32_t d)
{
    uint64_t used = wr_ledger_waiting(&l->share[d]);

    for (uint64_t others = d == WR_DEFAULT ? l->place_borrowers : 0; others; others &= others - 1)
        used += wr_ledger_places_borrowed(&l->share[__builtin_ctzll(others)]);
    return used;
}

static bool places_suffice(const struct wr_ledger *l, uint32_t d)
{
    uint32_t whose = wr_ledger_places_borrowed(&l->share[d]) ? WR_DEFAULT : d;

    return places_used(l, whose) <= l->share[whose].places.limit;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static uint32_t free_slots(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *s = &l->share[d];

    return s->slots.limit - s->own - s->charged;
}

/* ---- both ------------------------------------------------------------------------------------ */

uint64_t wr_ledger_used(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_share *s = &l->share[d];

    return what == WR_SLOTS ? (uint64_t)s->own + s->charged : places_used(l, d);
}

uint32_t wr_ledger_idle(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    uint32_t limit = l->share[d].places.limit;
    uint64_t used;

    if (what == WR_SLOTS)
        return free_slots(l, d);
    used = places_used(l, d);
    return used < limit ? (uint32_t)(limit - used) : 0;
}

uint32_t wr_ledger_borrowed(const struct wr_share *s, enum wr_resource what)
{
    return what == WR_SLOTS ? s->borrowed : wr_ledger_places_borrowed(s);
}

/* ---- units ----------------------------------------------------------------------------------- */

static bool may_borrow(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *lender = &l->share[WR_DEFAULT];

    return d != WR_DEFAULT && l->share[d].slots_reserved && free_slots(l, WR_DEFAULT) > 0 &&
           !wr_ledger_unmet(lender) && l->borrowed + l->floor < lender->slots.limit;
}

bool wr_ledger_can_grant(const struct wr_ledger *l, uint32_t d)
{
    return !l->share[d].released && (free_slots(l, d) > 0 || may_borrow(l, d));
}

static void promise(struct wr_ledger *l, uint32_t d, uint32_t units)
{
    struct wr_share *s = &l->share[d];
    uint32_t used;

    wr_ledger_count(l, d, 0, units);
    used = s->own + s->borrowed + s->strays;
    s->peak = used > s->peak ? used : s->peak;
}

static void charge(struct wr_ledger *l, uint32_t d, int64_t borrowed)
{
    l->share[d].borrowed += (uint32_t)borrowed;
    l->share[WR_DEFAULT].charged += (uint32_t)borrowed;
    l->borrowed += (uint32_t)borrowed;
}

void wr_ledger_stray(struct wr_ledger *l, uint32_t d, int64_t strays)
{
    l->share[d].strays += (uint32_t)strays;
    l->share[l->share[d].receiver].charged += (uint32_t)strays;
}

void wr_ledger_book_home(struct wr_ledger *l, uint32_t d, uint32_t borrowed)
{
    charge(l, d, -(int64_t)borrowed);
    l->share[d].own += borrowed;
}

/* One of d's units is free again. A recalled unit goes back before a borrowed one, else a domain could
 * pay back and borrow again for ever while its lender waits. Then a borrowed unit: units are
 * interchangeable, and the default domain is to have its own back early. */
static void drop_unit(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];

    if ((s->slots.due && s->own) || !(s->borrowed || s->strays))
        s->own--;
    else if (s->borrowed)
        charge(l, d, -1);
    else
        wr_ledger_stray(l, d, -1);
}

/* ---- settling -------------------------------------------------------------------------------- */

bool wr_ledger_shrink_promises(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];
    uint32_t needed = s->released ? 0 : s->want;
    bool changed = s->promised > needed;

    while (s->promised > needed) {
        wr_ledger_count(l, d, 0, -1);
        drop_unit(l, d);
    }
    return changed;
}

/* Whether d, a domain with its own workers, has a promise on a unit that the unit's owner needs: no task runs on it yet, and
 * the owner need not wait for those workers to come. A promise on a borrowed unit is no use to a lender. */
static bool is_in_the_way(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *s = &l->share[d];
    bool lender_waits = s->slots.due && s->promised > s->borrowed + s->strays;
    bool default_waits =
        s->borrowed && wr_ledger_unmet(&l->share[WR_DEFAULT]) && !free_slots(l, WR_DEFAULT);

    return s->promised && (lender_waits || default_waits);
}

/* Takes one such promise back; its unit goes to its owner before another is looked for. */
static bool revoke_promise(struct wr_ledger *l)
{
    for (uint64_t set = l->apart & l->promising; set; set &= set - 1) {
        uint32_t d = (uint32_t)__builtin_ctzll(set);
        if (!is_in_the_way(l, d))
            continue;
        wr_ledger_count(l, d, 0, -1);
        drop_unit(l, d);
        return true;
    }
    return false;
}

/* Own units first: tasks that stood on others' units move home. */
static bool move_home(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];
    bool changed = false;

    while ((s->strays || s->borrowed) && free_slots(l, d)) {
        if (s->strays) {
            wr_ledger_stray(l, d, -1);
            s->own++;
        } else {
            wr_ledger_book_home(l, d, 1);
        }
        changed = true;
    }
    return changed;
}

static bool grant_own(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];
    uint32_t units = wr_ledger_unmet(s);

    if (units)
        units = wr_least(units, free_slots(l, d));
    if (!units)
        return false;
    s->own += units;
    promise(l, d, units);
    return true;
}

uint64_t wr_ledger_turn(const struct wr_ledger *l, uint64_t turn, uint64_t set)
{
    uint32_t d = wr_turn_domain(turn);

    if (turn >= WR_ONE_TURN && set & wr_domain_bit(d))
        return turn;
    d = wr_domain_after(d, set);
    return l->share[d].weight * WR_ONE_TURN + d;
}

/* Finds the domain whose turn it is to borrow; false: none wants to, or may. */
static bool next_borrower(struct wr_ledger *l)
{
    uint64_t hungry = l->hungry & l->slot_borrowers;

    if (!hungry || !may_borrow(l, (uint32_t)__builtin_ctzll(hungry))) /* if one may, all may */
        return false;
    l->turn = wr_ledger_turn(l, l->turn, hungry);
    return true;
}

/* The default domain's idle units, which it does not want itself, to domains that may borrow: in turns, by
 * weight. */
static bool grant_borrowed(struct wr_ledger *l)
{
    bool changed = false;

    while (free_slots(l, WR_DEFAULT) && next_borrower(l)) {
        l->turn -= WR_ONE_TURN;
        charge(l, wr_turn_domain(l->turn), 1);
        promise(l, wr_turn_domain(l->turn), 1);
        changed = true;
    }
    return changed;
}

/* Units that are owed go home: to domains that were released, then to lenders. One step at a time, since a unit that comes to
 * one domain may be owed to the next. */
static bool send_home(struct wr_ledger *l, enum wr_resource what)
{
    bool any = false;

    if (!l->moved[what])
        return false;
    for (uint32_t d = 0; d < l->count; d++)
        if (wr_ledger_take_back(l, what, d))
            return true;
    for (uint32_t d = 0; d < l->count; d++) {
        const struct wr_stock *stock = wr_stock_of(l, what, d);
        for (uint32_t b = 0; b < l->count && stock->owed; b++)
            if (wr_loan_return(l, what, d, b))
                return true;
        any |= stock->lent || stock->forced || l->share[d].released;
    }
    l->moved[what] = any;
    return false;
}

static bool recall_what_is_needed(struct wr_ledger *l, enum wr_resource what)
{
    bool changed = false;

    for (uint32_t d = 0; d < l->count && l->moved[what]; d++)
        changed |= wr_loan_recall_if_needed(l, what, d, false);
    return changed;
}

static bool for_each(struct wr_ledger *l, uint64_t set,
                     bool (*rule)(struct wr_ledger *l, uint32_t d))
{
    bool changed = false;

    for (; set; set &= set - 1)
        changed |= rule(l, (uint32_t)__builtin_ctzll(set));
    return changed;
}

/* The first rule that applies, again and again. The order matters: units that are owed go home before any are given
 * out, and no domain recalls a loan while it has units of its own. Each step moves units nearer to their owners or
 * gives them out, so there is an end. `set`: domains that may have changed. */
static void settle_slots(struct wr_ledger *l, uint64_t set)
{
    while (for_each(l, set, wr_ledger_shrink_promises) || send_home(l, WR_SLOTS) ||
           for_each(l, set, move_home) || revoke_promise(l) || for_each(l, set, grant_own) ||
           grant_borrowed(l) || recall_what_is_needed(l, WR_SLOTS))
        ;
}

/* A task that has a slot needs no place: so these come after all slots are given out, and no slot depends on them. */
static void settle_places(struct wr_ledger *l)
{
    while (send_home(l, WR_PLACES) || recall_what_is_needed(l, WR_PLACES))
        ;
}

void wr_ledger_settle(struct wr_ledger *l)
{
    settle_slots(l, ~(uint64_t)0 >> (WR_DOMAINS_MAX - l->count));
    settle_places(l);
    WR_ASSERT_SLOW(wr_ledger_is_valid(l));
}

/* After an event in d. While nothing is lent or forced, it concerns only d, the default domain and the domains that borrow from
 * that. */
static void settle_near(struct wr_ledger *l, uint32_t d)
{
    if (l->moved[WR_SLOTS]) {
        wr_ledger_settle(l);
        return;
    }
    settle_slots(l, wr_domain_bit(d) | wr_domain_bit(WR_DEFAULT));
    settle_places(l);
    WR_ASSERT_SLOW(wr_ledger_is_valid(l));
}

/* ---- events ---------------------------------------------------------------------------------- */

static void init_stock(struct wr_stock *stock)
{
    stock->limit = stock->amount;
    if (stock->lends_half)
        stock->lend_max = stock->amount / 2;
}

void wr_ledger_init(struct wr_ledger *l)
{
    struct wr_share *rest = &l->share[WR_DEFAULT];
    uint64_t slots = 0, places = 0;

    for (uint32_t d = 1; d < l->count; d++) {
        slots += l->share[d].slots.amount;
        places += l->places_total == WR_INF ? 0 : l->share[d].places.amount;
    }
    WR_ASSERT(l->count && slots <= l->total && places <= l->places_total);
    rest->slots.amount = l->total - (uint32_t)slots;
    rest->places.amount = l->places_total == WR_INF ? WR_INF : l->places_total - (uint32_t)places;
    for (uint32_t d = 0; d < l->count; d++) {
        struct wr_share *s = &l->share[d];
        init_stock(&s->slots);
        init_stock(&s->places);
        set_member(&l->slot_borrowers, d, s->slots_reserved && d != WR_DEFAULT);
        set_member(&l->place_borrowers, d, s->places_reserved && d != WR_DEFAULT);
    }
    l->turn = rest->weight * WR_ONE_TURN + WR_DEFAULT;
}

static size_t loans_among(uint32_t count)
{
    return (size_t)WR_RESOURCES * count * count;
}

size_t wr_ledger_size(uint32_t count)
{
    return count * sizeof(struct wr_share) + loans_among(count) * sizeof(struct wr_loan);
}

void wr_ledger_place(struct wr_ledger *l, uint32_t count, void *arrays)
{
    l->count = count;
    l->share = arrays;
    l->loan = (struct wr_loan *)(l->share + count);
}

void wr_ledger_copy(struct wr_ledger *to, const struct wr_ledger *from)
{
    struct wr_share *share = to->share;
    struct wr_loan *loan = to->loan;

    *to = *from;
    to->share = memcpy(share, from->share, from->count * sizeof(share[0]));
    to->loan = memcpy(loan, from->loan, loans_among(from->count) * sizeof(loan[0]));
}

weir_reason wr_ledger_admit(struct wr_ledger *l, uint32_t d, bool ready)
{
    struct wr_share *s = &l->share[d];
    uint32_t waited = wr_ledger_waiting(s);

    if (s->released)
        return WEIR_REASON_DOMAIN_RELEASED;
    s->queued++;
    wr_ledger_count(l, d, ready, 0);
    settle_near(l, d);
    if (wr_ledger_waiting(s) <= waited || places_suffice(l, d))
        return WEIR_REASON_NONE;
    s->queued--;
    wr_ledger_count(l, d, -(int64_t)ready, 0);
    settle_near(l, d);
    return WEIR_REASON_DOMAIN_QUEUE_FULL;
}

void wr_ledger_take(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];

    WR_ASSERT(s->promised > 0 && s->want > 0);
    wr_ledger_count(l, d, -1, -1);
    s->queued--;
    WR_ASSERT_SLOW(wr_ledger_is_valid(l));
}

void wr_ledger_untake(struct wr_ledger *l, uint32_t d)
{
    l->share[d].queued++;
    drop_unit(l, d);
    settle_near(l, d);
}

void wr_ledger_want(struct wr_ledger *l, uint32_t d, int64_t more)
{
    wr_ledger_count(l, d, more, 0);
    settle_near(l, d);
}

void wr_ledger_queued(struct wr_ledger *l, uint32_t d, int more)
{
    l->share[d].queued += more;
    settle_places(l); /* its place may have to go back */
}

void wr_ledger_give(struct wr_ledger *l, uint32_t d)
{
    drop_unit(l, d);
    settle_near(l, d);
}

/* Whether another domain than d waits for a unit of the default domain's. */
static bool others_want_to_borrow(const struct wr_ledger *l, uint32_t d)
{
    uint64_t others = (l->slot_borrowers | wr_domain_bit(WR_DEFAULT)) & ~wr_domain_bit(d);

    return l->hungry & others;
}

bool wr_ledger_is_contested(const struct wr_ledger *l)
{
    return l->moved[WR_SLOTS] ||
           (l->borrowed && l->hungry & (l->slot_borrowers | wr_domain_bit(WR_DEFAULT)));
}

bool wr_ledger_hand_over(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];

    if (s->slots.due || s->strays || s->released || l->moved[WR_SLOTS])
        return false;
    if (s->borrowed && others_want_to_borrow(l, d)) /* else it would be borrowed again at once */
        return false;
    wr_ledger_queued(l, d, -1);
    return true;
}

bool wr_ledger_may_cede(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *s = &l->share[d];
    uint64_t rivals = wr_domain_bit(d) | (d == WR_DEFAULT ? l->slot_borrowers : 0);

    return !l->moved[WR_SLOTS] && !s->released && !s->borrowed && !s->charged &&
           !(l->hungry & rivals);
}

uint32_t wr_ledger_cede(struct wr_ledger *l, uint32_t d)
{
    uint32_t idle = free_slots(l, d);

    WR_ASSERT(wr_ledger_may_cede(l, d));
    l->share[d].own += idle;
    return idle;
}

void wr_ledger_uncede(struct wr_ledger *l, uint32_t d, uint32_t units)
{
    WR_ASSERT(l->share[d].own >= units);
    l->share[d].own -= units;
}
