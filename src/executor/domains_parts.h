/* What the files of domains share with each other, and with no other file.
 *
 *     domains.c         the lock, the units that are ceded, and what a worker takes, in whose turn
 *     domains_group.c   what becomes of a group's tasks, what keeps them, and whether they will ever get a slot
 *     domains_life.c    making domains as the policy says, telling the ledger more, and their end
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_DOMAINS_PARTS_H
#define WR_EXECUTOR_DOMAINS_PARTS_H

#include "executor/state.h"

static inline struct wr_domains *wr_domains_of(const struct weir_group *group)
{
    return group->executor->domains;
}

/* Locks what an event in a domain can concern at once: its own units, and the default domain's. */
static inline void wr_domains_lock_near(struct weir_executor *ex, uint32_t d)
{
    wr_domains_lock(ex, wr_domain_bit(d) | wr_domain_bit(WR_DEFAULT));
}

/* ---- under the lock ------------------------------------------------------------------------------ */

/* Whether the group waits, in no worker's hands, with a thread reserved for it. */
void wr_domain_set_waits_with_thread(struct weir_group *group, bool waits);

/* Where it is told only of slots the ledger counts one task, and only while a worker that came for it found no slot. */
void wr_domains_set_asks(struct wr_domains *domains, uint32_t d, bool asks);

/* ---- without it ---------------------------------------------------------------------------------- */

/* After a group has left the ring of such a domain: no slot is kept for one without a group there. Whoever asks for one looks
 * at the ring after that, so one of the two sees what the other has done. */
void wr_domains_ask_no_slot(struct weir_executor *ex, uint32_t d);

#endif
