/* Debts: permits owed to askers (sets of workers) that were refused some, in the order of refusals. An asker that takes permits
 * leaves those of all that asked before it: else one that needs many would wait for ever, while others take each as it falls
 * free. Pure; the caller serialises.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_DEBTS_H
#define WR_LIMITS_DEBTS_H

#include "base/list.h"

#include <stdint.h>

/* The debt to one asker. Zero at first. */
struct wr_debt {
    struct wr_list link; /* among the debts                              */
    uint32_t permits;    /* 0: nothing is owed, and it is not among them */
};

/* The asker is refused so many permits, which are not 0: it keeps its place if it was refused before. */
void wr_debt_note(struct wr_list *debts, struct wr_debt *debt, uint32_t permits);

/* The asker has got some permits, or needs none. */
void wr_debt_end(struct wr_debt *debt);

/* The next debt after `last` (NULL: the first) whose asker came before that of `debt`; NULL: there is none. `most` is all permits
 * there are: an asker that is owed more waits for that to change, and keeps no other waiting. */
struct wr_debt *wr_debt_before(const struct wr_list *debts, const struct wr_debt *debt,
                               const struct wr_debt *last, uint32_t most);

/* The permits of all these debts together. */
uint64_t wr_debts_before(const struct wr_list *debts, const struct wr_debt *debt, uint32_t most);

#endif
