/* Orders of an operator: to release a domain, to restore it, to resize it; see ledger.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "limits/ledger_parts.h"

static bool has_forced(const struct wr_share *s)
{
    return s->slots.forced || s->places.forced;
}

bool wr_ledger_in_release(const struct wr_ledger *l, uint32_t d)
{
    if (l->share[d].released || has_forced(&l->share[d]))
        return true;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct wr_share *s = &l->share[i];
        if ((s->released || has_forced(s)) && s->receiver == d)
            return true; /* it holds units that another has to get back */
    }
    return false;
}

bool wr_ledger_can_release(const struct wr_ledger *l, uint32_t d, uint32_t r)
{
    return d != WR_DEFAULT && d != r && !wr_ledger_in_release(l, d) && !l->share[r].released &&
           !l->share[r].slots.forced;
}

/* Loans to r are r's own now; those to others are r's loans, and recalled; so are those from others. */
static void release_loans(struct wr_ledger *l, enum wr_resource what, uint32_t d, uint32_t r)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct wr_loan out = *wr_loan_at(l, what, d, i);
        if (i == d)
            continue;
        wr_loan_recall(l, what, i, d);
        if (!out.units)
            continue;
        wr_loan_book(l, what, d, i, -(int64_t)out.units, -(int64_t)out.due);
        wr_stock_of(l, what, d)->forced += out.units;
        if (i == r)
            continue;
        wr_loan_book(l, what, r, i, out.units, out.due);
        wr_loan_recall(l, what, r, i);
    }
}

/* All units go to r, but those that go back to lenders. */
static void release_stock(struct wr_ledger *l, enum wr_resource what, uint32_t d, uint32_t r)
{
    struct wr_stock *stock = wr_stock_of(l, what, d);
    uint32_t units;

    release_loans(l, what, d, r);
    units = stock->limit - stock->received;
    stock->forced += units;
    if (wr_is_counted(l, what))
        wr_ledger_move(l, what, d, r, units);
    else
        stock->limit = 0; /* no domain has less than it wants */
    l->moved[what] = true;
}

void wr_ledger_release(struct wr_ledger *l, uint32_t d, uint32_t r)
{
    struct wr_share *s = &l->share[d];
    uint32_t strays;

    WR_ASSERT(wr_ledger_can_release(l, d, r));
    s->released = true;
    s->receiver = (uint8_t)r;
    wr_ledger_count(l, d, 0, 0);
    wr_ledger_shrink_promises(l, d);
    release_stock(l, WR_SLOTS, d, r);
    release_stock(l, WR_PLACES, d, r);
    strays = s->own > s->slots.limit ? s->own - s->slots.limit : 0;
    s->own -= strays;
    wr_ledger_stray(l, d, strays);
    wr_ledger_settle(l);
}

void wr_ledger_restore(struct wr_ledger *l, uint32_t d)
{
    WR_ASSERT(l->share[d].released);
    l->share[d].released = false;
    wr_ledger_count(l, d, 0, 0);
    wr_ledger_settle(l);
}

/* Units that others lent to the receiver are not for d. */
bool wr_ledger_take_back(struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    struct wr_share *s = &l->share[d];
    struct wr_stock *stock = wr_stock_of(l, what, d), *from = wr_stock_of(l, what, s->receiver);
    uint32_t home, units;

    if (s->released || !stock->forced)
        return false;
    if (!wr_is_counted(l, what)) { /* nothing was given to the receiver either */
        stock->limit = stock->amount;
        stock->forced = 0;
        return false;
    }
    units = wr_least(stock->forced, from->limit - from->received);
    home = what == WR_SLOTS ? wr_least(s->strays, units) : 0;
    units = home + wr_least(units - home, wr_ledger_idle(l, what, s->receiver));
    if (!units)
        return wr_loan_recall_if_needed(l, what, s->receiver, true);
    wr_ledger_move(l, what, s->receiver, d, units);
    stock->forced -= units;
    wr_ledger_stray(l, d, -(int64_t)home);
    s->own += home;
    return true;
}

/* ---- resizing --------------------------------------------------------------------------------- */

uint32_t wr_ledger_most(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    uint32_t spare = wr_stock_of(l, what, WR_DEFAULT)->amount;

    if (!wr_is_counted(l, what))
        return WR_INF;
    return wr_stock_of(l, what, d)->amount + spare - (what == WR_SLOTS ? l->floor : 0);
}

/* Ends a loan, or a part of it, recalled units first; the units stay where they are. Answers how many they are. */
static uint32_t end_loan(struct wr_ledger *l, enum wr_resource what, uint32_t lender,
                         uint32_t borrower, uint32_t most)
{
    const struct wr_loan *loan = wr_loan_at(l, what, lender, borrower);
    uint32_t units = wr_least(loan->units, most), due = wr_least(loan->due, units);

    wr_loan_book(l, what, lender, borrower, -(int64_t)units, -(int64_t)due);
    return units;
}

/* So many units of `from` belong to `to` from now on. No unit moves yet: `to` keeps units that it has on loan from `from`. Units
 * that are with `from` become a loan to it that is recalled, and come back as such. Units that `from` has lent to others they owe
 * to `to` now, but only if need be: no domain can give back more than it has. */
static void reassign(struct wr_ledger *l, enum wr_resource what, uint32_t from, uint32_t to,
                     uint32_t units)
{
    struct wr_stock *less = wr_stock_of(l, what, from);
    uint32_t there = less->limit - less->received;

    less->amount -= units;
    wr_stock_of(l, what, to)->amount += units;
    units -= end_loan(l, what, from, to, units);
    for (uint32_t i = 0; i < l->count && units > there; i++) {
        uint32_t passed;
        wr_loan_recall(l, what, from, i);
        passed = end_loan(l, what, from, i, units - there);
        wr_loan_book(l, what, to, i, passed, passed);
        units -= passed;
    }
    WR_ASSERT(units <= there);
    wr_loan_book(l, what, to, from, units, units);
}

void wr_ledger_resize(struct wr_ledger *l, enum wr_resource what, uint32_t d, uint32_t amount)
{
    struct wr_stock *stock = wr_stock_of(l, what, d);

    WR_ASSERT(d != WR_DEFAULT && !wr_ledger_in_release(l, d) &&
              amount <= wr_ledger_most(l, what, d));
    if (!wr_is_counted(l, what))
        stock->amount = stock->limit = amount;
    else if (amount < stock->amount)
        reassign(l, what, d, WR_DEFAULT, stock->amount - amount);
    else
        reassign(l, what, WR_DEFAULT, d, amount - stock->amount);
    if (stock->lends_half)
        stock->lend_max = amount / 2;
    wr_ledger_settle(l);
}
