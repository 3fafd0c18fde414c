/* How many tasks a group has rejected, by reason.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_REFUSALS_H
#define WR_LIMITS_REFUSALS_H

#include <stdint.h>
#include <weir/reason.h>

struct wr_refusal {
    weir_reason reason;
    uint64_t count;
};

/* Zero is empty. One entry per reason that ever came up, in the order in which they did.
 *     total == the sum of all counts, and those that there was no memory for */
struct wr_refusals {
    struct wr_refusal *entry;
    uint32_t entries, room;
    uint64_t total;
};

void wr_refusals_fini(struct wr_refusals *refusals);

/* Counts one more task that was rejected for this reason. */
void wr_refusals_add(struct wr_refusals *refusals, weir_reason reason);

uint64_t wr_refusals_count(const struct wr_refusals *refusals, weir_reason reason);

#endif
