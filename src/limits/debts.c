/* Permits owed to askers that were refused some; see debts.h.
 * SPDX-License-Identifier: MIT */
#include "limits/debts.h"

#include "base/assert.h"

void wr_debt_note(struct wr_list *debts, struct wr_debt *debt, uint32_t permits)
{
    WR_ASSERT(permits > 0);
    if (!debt->permits)
        wr_list_append(debts, &debt->link);
    debt->permits = permits;
}

void wr_debt_end(struct wr_debt *debt)
{
    if (debt->permits)
        wr_list_remove(&debt->link);
    debt->permits = 0;
}

struct wr_debt *wr_debt_before(const struct wr_list *debts, const struct wr_debt *debt,
                               const struct wr_debt *last, uint32_t most)
{
    const struct wr_list *node = last ? last->link.next : debts->next;

    for (; node != debts && node != &debt->link; node = node->next) {
        struct wr_debt *other = WR_CONTAINER(node, struct wr_debt, link);
        if (other->permits <= most)
            return other;
    }
    return NULL;
}

uint64_t wr_debts_before(const struct wr_list *debts, const struct wr_debt *debt, uint32_t most)
{
    uint64_t owed = 0;

    for (const struct wr_debt *other = NULL; (other = wr_debt_before(debts, debt, other, most));)
        owed += other->permits;
    return owed;
}
