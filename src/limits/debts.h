/* Who is owed permits: those that were refused some, in the order of refusals. Whoever takes permits leaves those of all who
 * asked before: else one that needs many would wait for ever, while others take each as it falls free. Pure; the caller
 * serialises.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_DEBTS_H
#define WR_LIMITS_DEBTS_H

#include "base/list.h"

#include <stdint.h>

/* Of one that may be refused. Zero at first. */
struct wr_debt {
    struct wr_list link; /* among the debts                        */
    uint32_t permits;    /* 0: it is owed none, and not among them */
};

/* It is refused so many, which are not 0: it keeps its place if it was refused before. Or: it has got some, or needs none. */
void wr_debt_note(struct wr_list *debts, struct wr_debt *debt, uint32_t permits);
void wr_debt_end(struct wr_debt *debt);

/* The next one after `last` (NULL: the first) that asked before `debt` did; NULL: there is none. Who is owed more than `most`,
 * which is all there are, waits for that to change, and keeps nobody waiting. */
struct wr_debt *wr_debt_before(const struct wr_list *debts, const struct wr_debt *debt,
                               const struct wr_debt *last, uint32_t most);

/* What all these are owed. */
uint64_t wr_debts_before(const struct wr_list *debts, const struct wr_debt *debt, uint32_t most);

#endif
