/* The ledger of domains; see ledger.h.
 * SPDX-License-Identifier: MIT */
#include "executor/ledger.h"

#include "base/assert.h"

static struct wr_loan *loan_at(const struct wr_ledger *l, uint32_t lender, uint32_t borrower)
{
    return &l->loan[lender * l->count + borrower];
}

uint32_t wr_ledger_free(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *s = &l->share[d];

    return s->limit - s->own - s->charged;
}

static uint32_t unmet(const struct wr_share *s)
{
    return s->released ? 0 : s->want - s->promised;
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

    return s->places_reserved && waiting > s->places_limit ? waiting - s->places_limit : 0;
}

/* Places of d that are taken, by its own tasks and by those that borrow. */
static uint64_t places_taken(const struct wr_ledger *l, uint32_t d)
{
    uint64_t taken = wr_ledger_waiting(&l->share[d]);

    for (uint32_t i = 1; d == WR_DEFAULT && i < l->count; i++)
        taken += wr_ledger_places_borrowed(&l->share[i]);
    return taken;
}

static bool places_suffice(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *s = &l->share[d];

    if (wr_ledger_places_borrowed(s))
        return places_taken(l, WR_DEFAULT) <= l->share[WR_DEFAULT].places_limit;
    return places_taken(l, d) <= s->places_limit;
}

/* ---- units ----------------------------------------------------------------------------------- */

static bool may_borrow(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *lender = &l->share[WR_DEFAULT];

    return d != WR_DEFAULT && l->share[d].slots_reserved && wr_ledger_free(l, WR_DEFAULT) > 0 &&
           !unmet(lender) && l->borrowed + l->floor < lender->limit;
}

bool wr_ledger_can_grant(const struct wr_ledger *l, uint32_t d)
{
    return !l->share[d].released && (wr_ledger_free(l, d) > 0 || may_borrow(l, d));
}

static void promise(struct wr_ledger *l, struct wr_share *s, uint32_t units)
{
    uint32_t used;

    s->promised += units;
    l->promised += units;
    used = s->own + s->borrowed + s->strays;
    s->peak = used > s->peak ? used : s->peak;
}

static void charge(struct wr_ledger *l, uint32_t d, int32_t borrowed)
{
    l->share[d].borrowed += (uint32_t)borrowed;
    l->share[WR_DEFAULT].charged += (uint32_t)borrowed;
    l->borrowed += (uint32_t)borrowed;
}

static void stray(struct wr_ledger *l, uint32_t d, int32_t strays)
{
    l->share[d].strays += (uint32_t)strays;
    l->share[l->share[d].receiver].charged += (uint32_t)strays;
}

/* One of d's units is free again. One that is recalled goes before any loan of our own, else a domain could
 * pay back and borrow again for ever while its lender waits. Then what is borrowed: units are
 * interchangeable, and the default domain is to have its own back early. */
static void drop_unit(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];

    if ((s->due && s->own) || !(s->borrowed || s->strays))
        s->own--;
    else if (s->borrowed)
        charge(l, d, -1);
    else
        stray(l, d, -1);
}

/* ---- settling -------------------------------------------------------------------------------- */

/* Promises that nobody needs any more. */
static bool shrink_promises(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];
    uint32_t needed = s->released ? 0 : s->want;
    bool changed = s->promised > needed;

    while (s->promised > needed) {
        s->promised--;
        l->promised--;
        drop_unit(l, d);
    }
    return changed;
}

/* Promises of a domain with its own workers on units that their owner needs: nothing runs on them yet, and
 * whether its workers come soon is not for others to wait for. */
static bool revoke_promises(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];
    const struct wr_share *lender = &l->share[WR_DEFAULT];

    if (!s->apart || !s->promised ||
        !(s->due || (s->borrowed && unmet(lender) && !wr_ledger_free(l, WR_DEFAULT))))
        return false;
    s->promised--;
    l->promised--;
    drop_unit(l, d);
    return true;
}

/* Idle units of the borrower's that are recalled. */
static bool return_loan(struct wr_ledger *l, uint32_t lender, uint32_t borrower)
{
    struct wr_loan *loan = loan_at(l, lender, borrower);
    uint32_t idle = wr_ledger_free(l, borrower), units = loan->due < idle ? loan->due : idle;

    loan->due -= units;
    loan->units -= units;
    l->share[lender].limit += units;
    l->share[lender].lent -= units;
    l->share[borrower].limit -= units;
    l->share[borrower].taken -= units;
    l->share[borrower].due -= units;
    return units > 0;
}

static void recall(struct wr_ledger *l, uint32_t lender, uint32_t borrower)
{
    struct wr_loan *loan = loan_at(l, lender, borrower);
    uint32_t more = loan->units - loan->due;

    if (!more)
        return;
    loan->due += more;
    l->share[borrower].due += more;
    l->share[lender].recalls += more;
    loan->rest = l->lending.hold;
}

static uint32_t headroom_of(const struct wr_ledger *l, uint32_t d)
{
    return (uint32_t)(((uint64_t)l->share[d].slots * l->lending.headroom + 99) / 100);
}

/* A lender that has a waiter, too little left, or units of others to give back wants all of its own. */
static bool recall_if_needed(struct wr_ledger *l, uint32_t d, bool owes)
{
    struct wr_share *s = &l->share[d];
    uint64_t before = s->recalls;

    if (!s->lent || !(owes || unmet(s) || wr_ledger_free(l, d) < headroom_of(l, d)))
        return false;
    for (uint32_t b = 0; b < l->count; b++)
        recall(l, d, b);
    return s->recalls != before;
}

static bool restore_places(struct wr_ledger *l, struct wr_share *s)
{
    struct wr_share *r = &l->share[s->receiver];
    uint64_t taken = places_taken(l, s->receiver);
    uint64_t idle = r->places_limit > taken ? r->places_limit - taken : 0;
    uint32_t places = s->places_forced < idle ? s->places_forced : (uint32_t)idle;

    if (l->places_total == WR_INF) { /* nothing was taken from the receiver's either */
        s->places_limit = s->places;
        s->places_forced = 0;
        return false;
    }
    s->places_forced -= places;
    s->places_limit += places;
    r->places_limit -= places;
    return places > 0;
}

/* What the receiver has of d's comes back: first what d's own strays stand on, then what is idle. */
static bool restore_units(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d], *r = &l->share[s->receiver];
    bool changed = false;

    if (s->released)
        return false;
    while (s->forced && (s->strays || wr_ledger_free(l, s->receiver))) {
        if (s->strays) {
            stray(l, d, -1);
            s->own++;
        }
        r->limit--;
        s->limit++;
        s->forced--;
        changed = true;
    }
    if (s->forced)
        changed |= recall_if_needed(l, s->receiver, true);
    if (s->places_forced)
        changed |= restore_places(l, s);
    return changed;
}

static bool settle_moved(struct wr_ledger *l)
{
    bool changed = false, any = false;

    for (uint32_t d = 0; d < l->count; d++) {
        changed |= restore_units(l, d);
        any |= l->share[d].forced || l->share[d].places_forced || l->share[d].released;
        for (uint32_t b = 0; b < l->count && l->share[d].lent; b++)
            changed |= loan_at(l, d, b)->due && return_loan(l, d, b);
        any |= l->share[d].lent > 0;
    }
    l->moved = any;
    return changed;
}

/* Own units first: what stood on others' moves home. */
static bool move_home(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];
    bool changed = false;

    while ((s->strays || s->borrowed) && wr_ledger_free(l, d)) {
        if (s->strays)
            stray(l, d, -1);
        else
            charge(l, d, -1);
        s->own++;
        changed = true;
    }
    return changed;
}

static bool grant_own(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];
    uint32_t units = unmet(s), idle = units ? wr_ledger_free(l, d) : 0;

    if (units > idle)
        units = idle;
    s->own += units;
    if (units)
        promise(l, s, units);
    return units > 0;
}

/* Whose turn it is to borrow; false: nobody wants to, or may. */
static bool next_borrower(struct wr_ledger *l)
{
    for (uint32_t i = 0; i <= l->count; i++) {
        uint32_t d = l->turn + i < l->count ? l->turn + i : l->turn + i - l->count;
        if ((i == 0 && !l->turn_left) || !unmet(&l->share[d]) || !may_borrow(l, d))
            continue;
        if (i)
            l->turn_left = l->share[d].weight;
        l->turn = d;
        return true;
    }
    return false;
}

/* The default domain's idle units, which it does not want itself, to those who may borrow: in turns, by
 * weight. */
static bool grant_borrowed(struct wr_ledger *l)
{
    bool changed = false;

    while (next_borrower(l)) {
        l->turn_left--;
        charge(l, l->turn, 1);
        promise(l, &l->share[l->turn], 1);
        changed = true;
    }
    return changed;
}

/* After a change: grants, recalls and returns until nothing moves any more. Each round moves units
 * nearer to their owners or gives them out, so there is an end. */
static void settle(struct wr_ledger *l)
{
    bool changed;

    do {
        changed = false;
        for (uint32_t d = 0; d < l->count; d++)
            changed |= shrink_promises(l, d);
        for (uint32_t d = 1; d < l->count; d++)
            changed |= revoke_promises(l, d);
        if (l->moved)
            changed |= settle_moved(l);
        for (uint32_t d = 0; d < l->count; d++)
            changed |= move_home(l, d);
        if (changed)
            continue; /* units that are owed go home before any are given out */
        for (uint32_t d = 0; d < l->count; d++)
            changed |= grant_own(l, d);
        if (wr_ledger_free(l, WR_DEFAULT))
            changed |= grant_borrowed(l);
        for (uint32_t d = 0; d < l->count && l->moved;
             d++) /* who has units of its own does not wait */
            changed |= recall_if_needed(l, d, false);
    } while (changed);
    WR_ASSERT_SLOW(wr_ledger_is_valid(l));
}

/* ---- events ---------------------------------------------------------------------------------- */

void wr_ledger_init(struct wr_ledger *l)
{
    uint64_t slots = 0, places = 0;

    for (uint32_t d = 1; d < l->count; d++) {
        slots += l->share[d].slots;
        places += l->places_total == WR_INF ? 0 : l->share[d].places;
    }
    WR_ASSERT(l->count && slots <= l->total && places <= l->places_total);
    l->share[WR_DEFAULT].slots = l->total - (uint32_t)slots;
    l->share[WR_DEFAULT].places =
        l->places_total == WR_INF ? WR_INF : l->places_total - (uint32_t)places;
    for (uint32_t d = 0; d < l->count; d++) {
        l->share[d].limit = l->share[d].slots;
        l->share[d].places_limit = l->share[d].places;
    }
    l->turn_left = l->share[WR_DEFAULT].weight;
}

weir_reason wr_ledger_admit(struct wr_ledger *l, uint32_t d, bool ready)
{
    struct wr_share *s = &l->share[d];
    uint32_t waited = wr_ledger_waiting(s);

    if (s->released)
        return WEIR_REASON_DOMAIN_RELEASED;
    s->queued++;
    s->want += ready;
    settle(l);
    if (wr_ledger_waiting(s) <= waited || places_suffice(l, d))
        return WEIR_REASON_NONE;
    s->queued--;
    s->want -= ready;
    settle(l);
    return WEIR_REASON_DOMAIN_QUEUE_FULL;
}

void wr_ledger_take(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];

    WR_ASSERT(s->promised > 0 && s->want > 0);
    s->promised--;
    l->promised--;
    s->want--;
    s->queued--;
    WR_ASSERT_SLOW(wr_ledger_is_valid(l));
}

void wr_ledger_untake(struct wr_ledger *l, uint32_t d)
{
    l->share[d].queued++;
    drop_unit(l, d);
    settle(l);
}

void wr_ledger_want(struct wr_ledger *l, uint32_t d, int64_t more)
{
    WR_ASSERT(l->share[d].want + more >= 0);
    l->share[d].want = (uint32_t)(l->share[d].want + more);
    settle(l);
}

void wr_ledger_withdraw(struct wr_ledger *l, uint32_t d)
{
    l->share[d].queued--;
    if (l->moved)
        settle(l); /* a place that is to go back */
}

void wr_ledger_give(struct wr_ledger *l, uint32_t d)
{
    drop_unit(l, d);
    settle(l);
}

/* Whether anybody but d waits for a unit of the default domain's. */
static bool others_want_to_borrow(const struct wr_ledger *l, uint32_t d)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (i != d && (i == WR_DEFAULT || l->share[i].slots_reserved) && unmet(&l->share[i]))
            return true;
    return false;
}

bool wr_ledger_hand_over(struct wr_ledger *l, uint32_t d)
{
    struct wr_share *s = &l->share[d];

    if (s->due || s->strays || s->released || l->moved)
        return false;
    if (s->borrowed && others_want_to_borrow(l, d)) /* else it would be borrowed again at once */
        return false;
    s->queued--;
    return true;
}

/* ---- lending --------------------------------------------------------------------------------- */

static uint32_t per_cent_used(const struct wr_share *s)
{
    uint64_t used = (uint64_t)s->own + s->charged;

    return s->limit ? (uint32_t)(used * 100 / s->limit) : 100;
}

/* How many units `lender` could lend to `borrower` now. */
static uint32_t lendable(const struct wr_ledger *l, uint32_t lender, uint32_t borrower)
{
    const struct wr_share *s = &l->share[lender];
    uint32_t idle = wr_ledger_free(l, lender), keep = headroom_of(l, lender);

    if (lender == WR_DEFAULT)
        keep += l->floor;
    /* What others lent it is not its own to lend. */
    if (lender == borrower || s->released || s->forced || s->taken || s->low < l->lending.hold ||
        loan_at(l, lender, borrower)->rest || idle <= keep || s->lend_max <= s->lent)
        return 0;
    idle -= keep;
    return idle < s->lend_max - s->lent ? idle : s->lend_max - s->lent;
}

static void lend(struct wr_ledger *l, uint32_t lender, uint32_t borrower, uint32_t units)
{
    loan_at(l, lender, borrower)->units += units;
    l->share[lender].limit -= units;
    l->share[lender].lent += units;
    l->share[lender].loans += units;
    l->share[borrower].limit += units;
    l->share[borrower].taken += units;
    l->moved = true;
}

/* One loan per sample, from whoever can spare most, of no more than can be used. */
static void lend_to(struct wr_ledger *l, uint32_t borrower)
{
    uint32_t best = 0, from = 0, units = unmet(&l->share[borrower]);

    for (uint32_t d = 0; d < l->count; d++) {
        uint32_t can = lendable(l, d, borrower);
        if (can > best) {
            best = can;
            from = d;
        }
    }
    units = units < best ? units : best;
    units = units < l->lending.step ? units : l->lending.step;
    if (units)
        lend(l, from, borrower, units);
}

void wr_ledger_sample(struct wr_ledger *l)
{
    for (uint32_t d = 0; d < l->count; d++) {
        struct wr_share *s = &l->share[d];
        bool low = per_cent_used(s) < l->lending.low && !unmet(s) && !wr_ledger_waiting(s);
        s->low = low ? s->low + (s->low < UINT32_MAX) : 0;
    }
    for (uint32_t b = 0; b < l->count; b++) {
        const struct wr_share *s = &l->share[b];
        if (unmet(s) && per_cent_used(s) >= l->lending.high && !s->lent && !s->forced)
            lend_to(l, b);
    }
    for (uint32_t i = 0; i < l->count * l->count; i++)
        l->loan[i].rest -= l->loan[i].rest > 0;
    settle(l);
}

/* ---- forced release --------------------------------------------------------------------------- */

bool wr_ledger_can_release(const struct wr_ledger *l, uint32_t d, uint32_t r)
{
    if (d == WR_DEFAULT || d == r || l->share[d].released || l->share[r].released ||
        l->share[d].forced || l->share[d].places_forced || l->share[r].forced)
        return false;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct wr_share *s = &l->share[i];
        if ((s->released || s->forced || s->places_forced) && s->receiver == d)
            return false; /* it holds what another has to get back */
    }
    return true;
}

/* Loans to r are r's own now; those to others are r's loans, and recalled; so are those from others. */
static void release_loans(struct wr_ledger *l, uint32_t d, uint32_t r)
{
    struct wr_share *s = &l->share[d], *to = &l->share[r];

    for (uint32_t i = 0; i < l->count; i++) {
        struct wr_loan *out = loan_at(l, d, i), *now = loan_at(l, r, i);
        if (i == d)
            continue;
        recall(l, i, d);
        if (!out->units)
            continue;
        if (i == r) {
            to->taken -= out->units;
            to->due -= out->due;
        } else {
            now->units += out->units;
            now->due += out->due;
            to->lent += out->units;
            recall(l, r, i);
        }
        s->forced += out->units;
        s->lent -= out->units;
        out->units = out->due = 0;
    }
}

void wr_ledger_release(struct wr_ledger *l, uint32_t d, uint32_t r)
{
    struct wr_share *s = &l->share[d], *to = &l->share[r];
    uint32_t units, strays;

    WR_ASSERT(wr_ledger_can_release(l, d, r));
    s->released = true;
    s->receiver = (uint8_t)r;
    l->moved = true;
    shrink_promises(l, d);
    release_loans(l, d, r);
    units = s->limit - s->taken; /* loans go back to their lenders */
    s->limit -= units;
    s->forced += units;
    to->limit += units;
    strays = s->own > s->limit ? s->own - s->limit : 0;
    s->own -= strays;
    stray(l, d, (int32_t)strays);
    s->places_forced = s->places_limit;
    s->places_limit = 0;
    if (l->places_total != WR_INF)
        to->places_limit += s->places_forced;
    settle(l);
}

void wr_ledger_restore(struct wr_ledger *l, uint32_t d)
{
    WR_ASSERT(l->share[d].released);
    l->share[d].released = false;
    settle(l);
}

/* ---- validity -------------------------------------------------------------------------------- */

static bool share_is_valid(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *s = &l->share[d];
    uint64_t lent = 0, taken = 0, due = 0, charged = d == WR_DEFAULT ? l->borrowed : 0, given = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        const struct wr_share *other = &l->share[i];
        lent += loan_at(l, d, i)->units;
        taken += loan_at(l, i, d)->units;
        due += loan_at(l, i, d)->due;
        if (i != d && other->receiver == d && other->forced) {
            charged += other->strays;
            given += other->forced;
        }
    }
    return s->lent == lent && s->taken == taken && s->due == due && s->charged == charged &&
           s->limit + lent + s->forced == s->slots + taken + given &&
           (uint64_t)s->own + s->charged <= s->limit && s->strays <= s->forced &&
           s->promised <= s->want && s->promised <= s->own + s->borrowed + s->strays &&
           (!(s->borrowed || s->strays) || wr_ledger_free(l, d) == 0) &&
           (!s->due || wr_ledger_free(l, d) == 0) && (!s->released || !s->promised) &&
           !(unmet(s) && wr_ledger_can_grant(l, d)) &&
           (s->released || !s->forced || wr_ledger_free(l, s->receiver) == 0);
}

bool wr_ledger_is_valid(const struct wr_ledger *l)
{
    uint64_t limits = 0, places = 0, borrowed = 0, promised = 0;

    for (uint32_t d = 0; d < l->count; d++) {
        if (!share_is_valid(l, d))
            return false;
        limits += l->share[d].limit;
        places += l->share[d].places_limit;
        borrowed += l->share[d].borrowed;
        promised += l->share[d].promised;
    }
    return limits == l->total && borrowed == l->borrowed && promised == l->promised &&
           (l->places_total == WR_INF || places == l->places_total);
}
