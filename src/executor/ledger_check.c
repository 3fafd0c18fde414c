/* The invariants of the ledger; see ledger.h.
 * SPDX-License-Identifier: MIT */
#include "executor/ledger_parts.h"

/* What others were forced to give to d. */
static uint64_t given_to(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    uint64_t given = 0;

    for (uint32_t i = 0; i < l->count; i++)
        if (i != d && l->share[i].receiver == d)
            given += wr_stock_of(l, what, i)->forced;
    return given;
}

static bool loans_add_up(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);
    const struct wr_loan *row = wr_loan_at(l, what, d, 0), *column = wr_loan_at(l, what, 0, d);
    uint64_t lent = 0, owed = 0, taken = 0, due = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        const struct wr_loan *out = &row[i], *in = &column[(size_t)i * l->count];
        if (out->due > out->units)
            return false;
        lent += out->units;
        owed += out->due;
        taken += in->units;
        due += in->due;
    }
    return stock->lent == lent && stock->owed == owed && stock->taken == taken && stock->due == due;
}

/* What d's receiver could give back now. */
static uint32_t can_come_back(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_share *s = &l->share[d];
    const struct wr_stock *from = wr_stock_of(l, what, s->receiver);
    uint32_t strays = what == WR_SLOTS ? s->strays : 0;

    if (s->released || !wr_stock_of(l, what, d)->forced)
        return 0;
    return wr_least(from->limit - from->taken, strays + wr_ledger_idle(l, what, s->receiver));
}

/* What is lent stays so only while its lender has enough without it. */
static bool lends_what_it_needs(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);

    return stock->lent > stock->owed && wr_ledger_idle(l, what, d) < wr_loan_headroom(l, what, d);
}

static bool stock_is_valid(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);

    return loans_add_up(l, what, d) && stock->limit >= stock->taken &&
           (uint64_t)stock->limit + stock->lent + stock->forced ==
               (uint64_t)stock->amount + stock->taken + given_to(l, what, d) &&
           !(stock->due && wr_ledger_idle(l, what, d)) && !can_come_back(l, what, d) &&
           !lends_what_it_needs(l, what, d);
}

static bool share_is_valid(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *s = &l->share[d];
    uint64_t charged = d == WR_DEFAULT ? l->borrowed : 0;
    uint32_t idle = s->slots.limit - s->own - s->charged;

    for (uint32_t i = 0; i < l->count; i++)
        if (i != d && l->share[i].receiver == d && l->share[i].slots.forced)
            charged += l->share[i].strays;
    return s->charged == charged && (uint64_t)s->own + s->charged <= s->slots.limit &&
           s->strays <= s->slots.forced && s->promised <= s->want &&
           s->promised <= s->own + s->borrowed + s->strays &&
           (!(s->borrowed || s->strays) || !idle) && (!s->released || !s->promised) &&
           !(wr_ledger_unmet(s) && wr_ledger_can_grant(l, d));
}

static bool is_counted_right(const struct wr_ledger *l, enum wr_resource what, uint32_t total)
{
    uint64_t limits = 0;

    for (uint32_t d = 0; d < l->count; d++) {
        if (!stock_is_valid(l, what, d))
            return false;
        limits += wr_stock_of(l, what, d)->limit;
    }
    return limits == total;
}

bool wr_ledger_is_valid(const struct wr_ledger *l)
{
    uint64_t borrowed = 0, promised = 0;

    for (uint32_t d = 0; d < l->count; d++) {
        if (!share_is_valid(l, d))
            return false;
        borrowed += l->share[d].borrowed;
        promised += l->share[d].promised;
    }
    return borrowed == l->borrowed && promised == l->promised &&
           is_counted_right(l, WR_SLOTS, l->total) &&
           (!wr_is_counted(l, WR_PLACES) || is_counted_right(l, WR_PLACES, l->places_total));
}
