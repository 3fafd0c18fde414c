/* Whether a domain gets a slot some time, if some tasks never give theirs back; see ledger.h.
 * SPDX-License-Identifier: MIT */
#include "limits/ledger_parts.h"

bool wr_ledger_has_slots(const struct wr_ledger *l, uint32_t d)
{
    return l->share[d].slots.amount ||
           (l->share[d].slots_reserved && l->share[WR_DEFAULT].slots.amount > l->floor);
}

/* A set: the domains that have lent slots and not recalled them, since they may recall them for a task, and lend them anew; and
 * the domain that has yet to give back slots of d's, since it may be lent some for a task of its own. */
static uint64_t movers(const struct wr_ledger *l, uint32_t d)
{
    uint64_t set = l->share[d].slots.forced ? wr_domain_bit(l->share[d].receiver) : 0;

    for (uint32_t i = 0; i < l->count; i++)
        if (l->share[i].slots.lent > l->share[i].slots.owed)
            set |= wr_domain_bit(i);
    return l->lending.on ? set & ~wr_domain_bit(d) : 0;
}

/* No task waits in d, and all but `stuck` of its tasks end: first those on units that are recalled, then those on borrowed ones,
 * in the order in which they would end one by one. The caller settles when all domains are done. */
static void leave_only(struct wr_ledger *l, uint32_t d, uint64_t stuck)
{
    struct wr_share *s = &l->share[d];
    uint64_t used = (uint64_t)s->own + s->borrowed + s->strays;
    uint32_t less = used > stuck ? (uint32_t)(used - stuck) : 0,
             recalled = wr_least(less, wr_least(s->slots.due, s->own)),
             borrowed = wr_least(less - recalled, s->borrowed),
             strays = wr_least(less - recalled - borrowed, s->strays);

    wr_ledger_count(l, d, -(int64_t)s->want, -(int64_t)s->promised);
    wr_ledger_stray(l, d, -(int64_t)strays);
    wr_ledger_book_home(l, d, borrowed);
    s->own -= less - strays;
}

bool wr_ledger_may_get_slot(const struct wr_ledger *l, struct wr_ledger *copy, uint32_t d,
                            const uint64_t *stuck, struct wr_hopes *hopes)
{
    const struct wr_share *s = &l->share[d];

    *hopes = (struct wr_hopes){ .movers = movers(l, d) };
    /* Tasks that wait in d are being refused; or d waits until it is given slots; or a slot is there: it may be recalled, but goes
     * back when a task was on it. */
    if (s->released || !wr_ledger_has_slots(l, d) || s->promised)
        return true;
    wr_ledger_copy(copy, l);
    for (uint32_t i = 0; i < copy->count; i++)
        leave_only(copy, i, stuck[i]);
    wr_ledger_settle(copy);
    wr_ledger_want(copy, d, 1);
    hopes->lenders = wr_ledger_lenders(copy, d);
    return copy->share[d].promised;
}
