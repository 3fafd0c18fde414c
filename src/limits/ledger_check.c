/* The invariants of the ledger; see ledger.h.
 * SPDX-License-Identifier: MIT */
#include "limits/ledger_parts.h"

static bool loans_add_up(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);
    const struct wr_loan *out = wr_loan_at(l, what, d, 0), *in = wr_loan_at(l, what, 0, d);
    uint64_t lent = 0, owed = 0, taken = 0, due = 0;

    if (out[WR_DEFAULT].due && wr_ledger_borrowed(&l->share[d], what))
        return false; /* it stands on what it waits for */
    for (uint32_t i = 0; i < l->count; i++, in += l->count) {
        if (out[i].due > out[i].units)
            return false;
        lent += out[i].units;
        owed += out[i].due;
        taken += in->units;
        due += in->due;
    }
    return stock->lent == lent && stock->owed == owed && stock->received == taken &&
           stock->due == due;
}

/* Whether d's receiver could give back some of the units that d was forced to give, but has not. */
static bool is_kept_from(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_share *s = &l->share[d];
    const struct wr_stock *from = wr_stock_of(l, what, s->receiver);
    bool there = (what == WR_SLOTS && s->strays) || wr_ledger_idle(l, what, s->receiver);

    return !s->released && there && from->limit > from->received;
}

/* Whether d must have recalled all units that it lent: it has to give back some itself, lent more than it may, or has too little
 * left. */
static bool lends_what_it_needs(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);

    return stock->due || stock->lent - stock->owed > stock->lend_max ||
           wr_ledger_idle(l, what, d) < wr_loan_headroom(l, what, d) ||
           (what == WR_PLACES && wr_ledger_used(l, what, d) > stock->limit);
}

/* `given`: units that others were forced to give to d. */
static bool stock_is_valid(const struct wr_ledger *l, enum wr_resource what, uint32_t d,
                           uint64_t given)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);

    return stock->limit >= stock->received &&
           (uint64_t)stock->limit + stock->lent + stock->forced ==
               stock->amount + stock->received + given &&
           loans_add_up(l, what, d) && !(stock->due && wr_ledger_idle(l, what, d)) &&
           !(stock->forced && is_kept_from(l, what, d)) &&
           !(stock->lent > stock->owed && lends_what_it_needs(l, what, d));
}

static bool is_divided_right(const struct wr_ledger *l, enum wr_resource what, uint32_t total)
{
    uint64_t limits = 0, given[WR_DOMAINS_MAX] = { 0 };

    for (uint32_t d = 0; d < l->count; d++)
        given[l->share[d].receiver] += wr_stock_of(l, what, d)->forced;
    for (uint32_t d = 0; d < l->count; d++) {
        if (!stock_is_valid(l, what, d, given[d]))
            return false;
        limits += wr_stock_of(l, what, d)->limit;
    }
    return limits == total;
}

static bool share_is_valid(const struct wr_ledger *l, uint32_t d, uint64_t charged)
{
    const struct wr_share *s = &l->share[d];
    uint32_t idle = s->slots.limit - s->own - s->charged;

    return s->charged == charged && (uint64_t)s->own + s->charged <= s->slots.limit &&
           s->strays <= s->slots.forced && s->promised <= s->want &&
           s->promised <= s->own + s->borrowed + s->strays &&
           (!(s->borrowed || s->strays) || !idle) && (!s->released || !s->promised) &&
           !(wr_ledger_unmet(s) && wr_ledger_can_grant(l, d));
}

static bool sets_are_right(const struct wr_ledger *l)
{
    uint64_t wanting = 0, hungry = 0, promising = 0;

    for (uint32_t d = 0; d < l->count; d++) {
        wanting |= l->share[d].want ? wr_domain_bit(d) : 0;
        hungry |= wr_ledger_unmet(&l->share[d]) ? wr_domain_bit(d) : 0;
        promising |= l->share[d].promised ? wr_domain_bit(d) : 0;
    }
    return l->wanting == wanting && l->hungry == hungry && l->promising == promising;
}

bool wr_ledger_is_valid(const struct wr_ledger *l)
{
    uint64_t borrowed = 0, promised = 0, charged[WR_DOMAINS_MAX] = { [WR_DEFAULT] = l->borrowed };

    for (uint32_t d = 0; d < l->count; d++)
        charged[l->share[d].receiver] += l->share[d].strays;
    for (uint32_t d = 0; d < l->count; d++) {
        if (!share_is_valid(l, d, charged[d]))
            return false;
        borrowed += l->share[d].borrowed;
        promised += l->share[d].promised;
    }
    return borrowed == l->borrowed && promised == l->promised && sets_are_right(l) &&
           is_divided_right(l, WR_SLOTS, l->total) &&
           (!wr_is_counted(l, WR_PLACES) || is_divided_right(l, WR_PLACES, l->places_total));
}
