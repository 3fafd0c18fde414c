/* Functions that the files of the ledger share with each other, and with no other file.
 *
 *     ledger.c          events, and settling after each of them
 *     ledger_loans.c    lending by utilisation, recall and return, of slots and places alike
 *     ledger_orders.c   orders of an operator: release, restore, resize
 *     ledger_outlook.c  whether a slot may come some time
 *     ledger_check.c    the invariants
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_LEDGER_PARTS_H
#define WR_LIMITS_LEDGER_PARTS_H

#include "limits/ledger.h"

static inline struct wr_stock *wr_stock_of(const struct wr_ledger *l, enum wr_resource what,
                                           uint32_t d)
{
    struct wr_share *s = &l->share[d];

    return what == WR_SLOTS ? &s->slots : &s->places;
}

static inline struct wr_loan *wr_loan_at(const struct wr_ledger *l, enum wr_resource what,
                                         uint32_t lender, uint32_t borrower)
{
    return &l->loan[((size_t)what * l->count + lender) * l->count + borrower];
}

static inline uint32_t wr_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Whether a resource is divided at all. */
static inline bool wr_is_counted(const struct wr_ledger *l, enum wr_resource what)
{
    return what == WR_SLOTS || l->places_total != WR_INF;
}

/* ---- ledger.c ----------------------------------------------------------------------------------- */

/* `want` tasks more want a slot, and `promised` more are promised one; 0 and 0 after `released` has changed. */
void wr_ledger_count(struct wr_ledger *l, uint32_t d, int64_t want, int64_t promised);

/* Tasks that would start if they had a unit. */
uint32_t wr_ledger_unmet(const struct wr_share *s);

/* How many of d's slots or places are used, by its own tasks and by those of others. More places may be used than there are: an
 * accepted task stays. */
uint64_t wr_ledger_used(const struct wr_ledger *l, enum wr_resource what, uint32_t d);

/* How many of d's slots or places are left. */
uint32_t wr_ledger_idle(const struct wr_ledger *l, enum wr_resource what, uint32_t d);

/* How many units d's tasks have borrowed of the default domain's. */
uint32_t wr_ledger_borrowed(const struct wr_share *s, enum wr_resource what);

/* So many tasks of d more, or less, are strays. */
void wr_ledger_stray(struct wr_ledger *l, uint32_t d, int64_t strays);

/* So many tasks that stood on borrowed units stand on d's now, which the caller has brought. */
void wr_ledger_book_home(struct wr_ledger *l, uint32_t d, uint32_t borrowed);

/* Drops the promises that no task needs any more. True: there were some. */
bool wr_ledger_shrink_promises(struct wr_ledger *l, uint32_t d);

/* After a change: grants, recalls and returns until nothing moves any more. */
void wr_ledger_settle(struct wr_ledger *l);

/* ---- ledger_loans.c ----------------------------------------------------------------------------- */

/* Loans change here and nowhere else, so that rows and columns add up. */
void wr_loan_book(struct wr_ledger *l, enum wr_resource what, uint32_t lender, uint32_t borrower,
                  int64_t units, int64_t due);

/* Units move from one domain's limit to another's. */
void wr_ledger_move(struct wr_ledger *l, enum wr_resource what, uint32_t from, uint32_t to,
                    uint32_t units);

/* Recalls the whole loan. */
void wr_loan_recall(struct wr_ledger *l, enum wr_resource what, uint32_t lender, uint32_t borrower);

/* Gives back units of a loan that are recalled and idle. True: there were some. */
bool wr_loan_return(struct wr_ledger *l, enum wr_resource what, uint32_t lender, uint32_t borrower);

/* Recalls all units that d lent, if it needs any of them, or `owes` some to others. */
bool wr_loan_recall_if_needed(struct wr_ledger *l, enum wr_resource what, uint32_t d, bool owes);

/* Units of d's that a lender keeps free. */
uint32_t wr_loan_headroom(const struct wr_ledger *l, enum wr_resource what, uint32_t d);

/* ---- ledger_orders.c ---------------------------------------------------------------------------- */

/* Units of d's that its receiver has come back: those that d's own strays stand on, and idle ones. */
bool wr_ledger_take_back(struct wr_ledger *l, enum wr_resource what, uint32_t d);

#endif
