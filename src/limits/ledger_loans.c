/* Loans: lending by utilisation, recall and return, of slots and places alike; see ledger.h.
 *
 * A lender gives units that are idle and takes back units that it needs, whatever the resource. Only the meaning of "used"
 * and "wanted" differs: a slot is used by a task that has it, a place by one that waits.
 * SPDX-License-Identifier: MIT */
#include "limits/ledger_parts.h"

void wr_loan_book(struct wr_ledger *l, enum wr_resource what, uint32_t lender, uint32_t borrower,
                  int64_t units, int64_t due)
{
    struct wr_stock *from = wr_stock_of(l, what, lender), *to = wr_stock_of(l, what, borrower);
    struct wr_loan *loan = wr_loan_at(l, what, lender, borrower);

    loan->units += (uint32_t)units;
    loan->due += (uint32_t)due;
    from->lent += (uint32_t)units;
    from->owed += (uint32_t)due;
    to->received += (uint32_t)units;
    to->due += (uint32_t)due;
    l->moved[what] = true;
    l->shifted |= what == WR_SLOTS;
}

void wr_ledger_move(struct wr_ledger *l, enum wr_resource what, uint32_t from, uint32_t to,
                    uint32_t units)
{
    wr_stock_of(l, what, from)->limit -= units;
    wr_stock_of(l, what, to)->limit += units;
    l->room |= what == WR_PLACES && units;
    l->shifted |= what == WR_SLOTS && units;
}

/* ---- recall and return ------------------------------------------------------------------------ */

/* Idle units go back; and of those that the default domain owes, the ones that the lender's own tasks stand on: these tasks need
 * not end first. */
bool wr_loan_return(struct wr_ledger *l, enum wr_resource what, uint32_t lender, uint32_t borrower)
{
    uint32_t due = wr_loan_at(l, what, lender, borrower)->due, home = 0, units;

    if (borrower == WR_DEFAULT)
        home = wr_least(due, wr_ledger_borrowed(&l->share[lender], what));
    units = home + wr_least(due - home, wr_ledger_idle(l, what, borrower));
    if (!units)
        return false;
    if (what == WR_SLOTS)
        wr_ledger_book_home(l, lender, home);
    wr_loan_book(l, what, lender, borrower, -(int64_t)units, -(int64_t)units);
    wr_ledger_move(l, what, borrower, lender, units);
    return true;
}

void wr_loan_recall(struct wr_ledger *l, enum wr_resource what, uint32_t lender, uint32_t borrower)
{
    struct wr_loan *loan = wr_loan_at(l, what, lender, borrower);
    uint32_t more = loan->units - loan->due;

    if (!more)
        return;
    wr_loan_book(l, what, lender, borrower, 0, more);
    wr_stock_of(l, what, lender)->recalls += more;
    loan->rest = l->lending.hold;
}

uint32_t wr_loan_headroom(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    uint64_t amount = wr_stock_of(l, what, d)->amount;

    return (uint32_t)((amount * l->lending.headroom + 99) / 100);
}

/* Whether a task of d has no slot, or no place within the limit. */
static bool is_short(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    return what == WR_SLOTS ? wr_ledger_unmet(&l->share[d]) > 0
                            : wr_ledger_used(l, what, d) > wr_stock_of(l, what, d)->limit;
}

/* Whether d has to give back units itself, may not lend so much since it was resized, or has too little left. */
static bool needs_what_it_lent(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);

    return stock->due || stock->lent - stock->owed > stock->lend_max || is_short(l, what, d) ||
           wr_ledger_idle(l, what, d) < wr_loan_headroom(l, what, d);
}

bool wr_loan_recall_if_needed(struct wr_ledger *l, enum wr_resource what, uint32_t d, bool owes)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);

    if (stock->lent == stock->owed || !(owes || needs_what_it_lent(l, what, d)))
        return false;
    for (uint32_t b = 0; b < l->count; b++)
        wr_loan_recall(l, what, d, b);
    return true;
}

/* ---- lending ---------------------------------------------------------------------------------- */

static uint64_t per_cent_used(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    uint32_t limit = wr_stock_of(l, what, d)->limit;

    return limit ? wr_ledger_used(l, what, d) * 100 / limit : 100;
}

/* How many units more d could use. For places this is not known, since tasks that find none are turned away; so it is as many as
 * are used, and if that was too little, again as many in the next sample. */
static uint32_t wanted(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_share *s = &l->share[d];

    if (what == WR_SLOTS)
        return wr_ledger_unmet(s);
    return s->released ? 0 : wr_ledger_waiting(s);
}

static bool uses_little(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    bool none_waits = !wr_ledger_unmet(&l->share[d]) && !wr_ledger_waiting(&l->share[d]);

    return per_cent_used(l, what, d) < l->lending.low && (none_waits || what == WR_PLACES);
}

/* A lender does not borrow, unless all it lent is on its way back. */
static bool may_take(const struct wr_ledger *l, enum wr_resource what, uint32_t d)
{
    const struct wr_stock *stock = wr_stock_of(l, what, d);

    return wanted(l, what, d) && per_cent_used(l, what, d) >= l->lending.high &&
           stock->lent == stock->owed && !stock->forced;
}

/* How many units `lender` could lend to `borrower` if it had used little for long enough. A domain does not lend units that
 * others lent it. */
static uint32_t can_spare(const struct wr_ledger *l, enum wr_resource what, uint32_t lender,
                          uint32_t borrower)
{
    const struct wr_stock *stock = wr_stock_of(l, what, lender);
    uint32_t idle = wr_ledger_idle(l, what, lender), keep = wr_loan_headroom(l, what, lender);

    if (lender == WR_DEFAULT && what == WR_SLOTS)
        keep += l->floor;
    if (lender == borrower || l->share[lender].released || stock->forced || stock->received ||
        idle <= keep || stock->lend_max <= stock->lent)
        return 0;
    return wr_least(idle - keep, stock->lend_max - stock->lent);
}

/* How many units `lender` may lend to `borrower` now. */
static uint32_t lendable(const struct wr_ledger *l, enum wr_resource what, uint32_t lender,
                         uint32_t borrower)
{
    if (wr_stock_of(l, what, lender)->low < l->lending.hold ||
        wr_loan_at(l, what, lender, borrower)->rest)
        return 0;
    return can_spare(l, what, lender, borrower);
}

/* One loan per sample, from the domain that can spare most, of no more units than the borrower can use. */
static void lend_to(struct wr_ledger *l, enum wr_resource what, uint32_t borrower)
{
    uint32_t best = 0, from = 0, units;

    for (uint32_t d = 0; d < l->count; d++) {
        uint32_t can = lendable(l, what, d, borrower);
        if (can > best) {
            best = can;
            from = d;
        }
    }
    units = wr_least(wr_least(wanted(l, what, borrower), best), l->lending.step);
    if (!units)
        return;
    wr_loan_book(l, what, from, borrower, units, 0);
    wr_ledger_move(l, what, from, borrower, units);
    wr_stock_of(l, what, from)->loans += units;
}

uint64_t wr_ledger_lenders(const struct wr_ledger *l, uint32_t d)
{
    const struct wr_share *s = &l->share[d];
    uint64_t set = 0;

    if (!l->lending.on || s->released || s->slots.forced)
        return 0;
    for (uint32_t i = 0; i < l->count; i++)
        if (can_spare(l, WR_SLOTS, i, d) && per_cent_used(l, WR_SLOTS, i) < l->lending.low)
            set |= wr_domain_bit(i);
    return set;
}

static void sample(struct wr_ledger *l, enum wr_resource what)
{
    for (uint32_t d = 0; d < l->count; d++) {
        struct wr_stock *stock = wr_stock_of(l, what, d);
        if (!uses_little(l, what, d))
            stock->low = 0;
        else if (stock->low < UINT32_MAX)
            stock->low++;
    }
    for (uint32_t b = 0; b < l->count; b++)
        if (may_take(l, what, b))
            lend_to(l, what, b);
    for (uint32_t i = 0; i < l->count; i++)
        for (uint32_t j = 0; j < l->count; j++)
            wr_loan_at(l, what, i, j)->rest -= wr_loan_at(l, what, i, j)->rest > 0;
    wr_ledger_settle(l);
}

void wr_ledger_sample(struct wr_ledger *l)
{
    sample(l, WR_SLOTS);
    if (wr_is_counted(l, WR_PLACES)) /* after that: a task with a slot needs no place */
        sample(l, WR_PLACES);
}
