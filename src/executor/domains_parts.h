/* What the files of domains share with each other, and with no other file.
 *
 *     domains.c         the lock, the units that are ceded, and what is published after every change
 *     domains_take.c    what a worker takes, and in whose turn
 *     domains_group.c   what becomes of a group's tasks
 *     domains_look.c    what keeps a task, and whether it will ever get a slot
 *     domains_life.c    making them as the policy says; counting what waits in them
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_DOMAINS_PARTS_H
#define WR_EXECUTOR_DOMAINS_PARTS_H

#include "executor/state.h"

static inline struct wr_domains *wr_domains_of(const struct weir_group *group)
{
    return group->executor->domains;
}

/* The domain of crew->turn; the rest of it is for how many tasks more. */
static inline uint32_t wr_turn_domain(uint64_t turn)
{
    return (uint8_t)turn;
}

/* ---- domains.c --------------------------------------------------------------------------------- */

/* A worker has the group in its hands now, with a slot of which it is not known yet whether it is needed. Under the lock of
 * the ring. */
void wr_domain_take_in_hands(struct weir_group *group, struct wr_domain *domain);

/* Takes a ceded slot of a domain (struct wr_domain) for a group that a worker is about to have in its hands; false: there is
 * none. As wr_line_pull calls it. */
bool wr_domain_take_ceded(struct weir_group *group, void *domain_arg);

/* Locks what an event in the group's domain can concern at once: its own units, and the default domain's. */
void wr_domains_lock_near(struct weir_group *group);

/* Places have changed hands: submits that wait for room there may try again. Under the lock. */
void wr_domains_tell_of_room(struct weir_executor *ex);

/* Domains that no worker need look at: none of their tasks has a slot; or, if the ledger does not know of each task, their
 * last worker was refused one. */
uint64_t wr_domains_barred(const struct wr_domains *domains);

/* After every change, under the lock: what workers may take, and whether there is room for submits that wait for it. */
void wr_domains_publish(struct weir_executor *ex);

/* A slot of the domain comes back, whoever had it. */
void wr_domains_give_slot(struct weir_executor *ex, uint32_t d);

/* How many tasks the group is ready for, not counting one that a worker has in its hands. */
uint32_t wr_domain_ready_tasks(struct weir_group *group);

/* Tells the ledger how many that are, of a group that counts. Under the lock. */
void wr_domain_set_want(struct weir_group *group);

/* Whether it waits for a slot, or for the worker to carry it, with a thread reserved for it. */
void wr_domain_set_waits_with_thread(struct weir_group *group, bool has);

/* Where tasks are not counted the ledger knows of one, and only while a worker that came for it found no slot. */
void wr_domains_set_asks(struct wr_domains *domains, uint32_t d, bool asks);

/* After a group has left the ring of a domain whose tasks are not counted: no slot is kept for one without a group there. Whoever
 * asks for one looks at the ring after that, so one of the two sees what the other has done. */
void wr_domains_ask_no_slot(struct weir_executor *ex, uint32_t d);

/* ---- domains_take.c ---------------------------------------------------------------------------- */

/* A crew that was refused permits of the executor's has got some, or needs none any more. */
void wr_crew_ask_no_more(struct wr_crew *crew);

/* Whether another crew was refused permits before this one was, and can get them. */
bool wr_crew_goes_before(const struct wr_crew *other, const struct wr_crew *crew);

/* Permits of the executor's that others asked for before this one did, and that it must leave to them: else a costly
 * task would wait for ever while small ones of other workers take each permit as it falls free. */
uint64_t wr_crew_owed_before(const struct wr_crew *crew);

#endif
