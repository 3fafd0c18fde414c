/* Domains as the executor runs them: the ledger under its lock, and one ring of groups for each.
 *
 * An executor without domains has none of this (ex->domains == NULL), and every call below is then a test of that
 * pointer. While no other domain has a claim to them, the ledger cedes a domain's own units to it: then a slot is taken
 * and given back by one step of the domain's word, without the lock. A thread that locks the ledger first takes back the
 * idle ones, so under the lock its figures are exact. docs/internals/domains.md has the invariants and the lock order.
 *
 *     domains.c         the lock, ceded units, whose turn it is, and which group a worker takes
 *     domains_group.c   slots of a group's tasks, why one does not start, and whether it will ever get a slot
 *     domains_life.c    making domains, sampling, and telling the ledger more
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_DOMAINS_H
#define WR_EXECUTOR_DOMAINS_H

#include "base/list.h"
#include "base/lock.h"
#include "limits/circle.h"
#include "limits/debts.h"
#include "limits/ledger.h"
#include "limits/line.h"
#include "runtime/runtime.h"

struct weir_executor;
struct weir_group;
struct wr_worker_slice;

/* A crew: a set of workers that pulls tasks; the executor's, or those that a domain has for itself. */
struct wr_crew {
    struct wr_source source; /* first: the runtime knows only this                                */
    struct weir_executor *executor;
    struct wr_crew *next;  /* of the executor's crews, its own first; NULL: this is the last    */
    weir_runtime *runtime; /* NULL before it is started, and once it is deleted                 */
    uint32_t workers;
    _Atomic(struct wr_worker_slice *) lead; /* its worker that leads; see lead.h                 */
    uint64_t domains;        /* a set: the domains whose tasks its workers run                   */
    _Atomic uint64_t turn;   /* among the domains, task by task; see wr_ledger_turn              */
    _Atomic uint32_t needed; /* permits of the executor's that must be free for the next task     */
    struct wr_debt debt;     /* of the executor's permits; under the domains' lock              */
};

/* Makes the crew a source of work for a runtime. See pull.c. */
void wr_crew_init(struct wr_crew *crew, struct weir_executor *ex, uint32_t workers);

/* Starts the crew's runtime. */
int wr_crew_start(struct wr_crew *crew);

/* domain->slots: in the upper half, how many of the domain's own units the ledger has ceded to it; in the lower, how many of
 * these its tasks use. Or WR_IN_LEDGER: none is ceded, and the ledger is asked.
 *     ceded:  share.own == units in the upper half + promised, and share.borrowed == share.strays == 0 */
#define WR_IN_LEDGER UINT64_MAX

struct wr_domain {
    struct wr_line ring;
    _Atomic uint64_t slots;
    _Atomic uint32_t peak; /* most ceded units in use at once; written under the ring's lock      */
    struct wr_crew *crew;
    struct wr_crew own;   /* if it has workers of its own                                         */
    uint32_t with_thread; /* groups that wait with a thread reserved for them; under the lock     */
    _Atomic uint64_t timed_out, overdue;
    _Atomic bool released;    /* a copy of the ledger's, written under the lock                   */
    _Atomic uint32_t waits;   /* of its bodies for tasks; see deadlock.h                          */
    struct wr_node node;      /* the slots that these waits keep                                  */
    _Atomic uint32_t cancels; /* how often its bodies were asked to end; written under the lock   */
};

/* Under the lock: the ledger. As far as it is told (extras->counted, equal to `counts` in all groups, except while that changes):
 *     share[d].want   == sum of extras->want over the groups of d
 *     domain[d].with_thread == sum of extras->waits_with_thread over the groups of d
 *     share[d].queued == tasks in queues of groups of d, less those that a worker has just taken
 *     extras->want    == tasks the group is ready for, less one that a worker has just taken (at rest)
 *     a group with want > 0 stands in its domain's ring, or a worker has just taken it (at rest)     */
struct wr_domains {
    struct wr_lock lock;
    struct wr_ledger ledger;
    struct wr_ledger supposed; /* a copy, to try out events: wr_domain_may_get_slot              */
    uint64_t ceded;            /* a set: domains with ceded units; see wr_domain.slots           */
    uint64_t locked;           /* a set: domains whose units this hold of the lock took back     */
    struct wr_list refused;    /* debts of crews                                                  */
    _Atomic uint64_t ready;    /* a set: the domains with a group in their ring                  */
    _Atomic uint64_t barred;   /* a set: domains without a slot for now. Written under the lock  */
    /* A set, the ledger's `wanting`: the domains where a worker found no slot. For each the ledger counts one task. Written under
     * the lock. Empty if the ledger is told more; at rest a domain is in it only while there is a group in its ring. */
    _Atomic uint64_t asking;
    _Atomic uint8_t counts; /* enum wr_counts. It can only grow: see wr_domains_count            */
    _Atomic bool counting;  /* `counts` is changing: no worker takes a group meanwhile           */
    /* Another domain may have a claim to a slot that is in use, for example while a domain is released. Then a task that ends
     * gives its slot back, and the ledger decides where it goes. */
    _Atomic bool contested;
    struct wr_alarm sampling;
    weir_time sample_at;
    struct wr_domain domain[];
};

/* The domains of a crew whose tasks its workers can take now. */
static inline uint64_t wr_domains_ready_for(const struct wr_domains *domains,
                                            const struct wr_crew *crew)
{
    return wr_load(&domains->ready, seq_cst) & ~wr_load(&domains->barred, seq_cst) & crew->domains;
}

/* Whether a slot may pass from one task to the next, as far as is known without any lock. */
static inline bool wr_domains_are_calm(const struct wr_domains *domains)
{
    return !wr_load(&domains->contested, relaxed);
}

int wr_domains_new(struct weir_executor *ex);   /* one piece of memory, at ex->domains */
int wr_domains_start(struct weir_executor *ex); /* their sampling, if there are any    */

#define WR_ALL_DOMAINS UINT64_MAX

/* Locks the ledger and takes back the idle ceded units of a set of domains. */
void wr_domains_lock(struct weir_executor *ex, uint64_t domains);

/* Publishes the changes, cedes units of that set to which no other domain has a claim, and unlocks. */
void wr_domains_unlock(struct weir_executor *ex);

/* The same if nothing has changed but places: publishes nothing. */
void wr_domains_unlock_unchanged(struct weir_executor *ex);

/* Takes the next group whose domain has a slot for it, with that slot, and with permits of the executor's in *reserved, as
 * wr_line_pull does; NULL: there is none to take. */
struct weir_group *wr_domains_take(struct wr_crew *crew, uint32_t *reserved);

/* From now on the ledger is told at least so much: more than slots is about to be limited. Call it without any lock. */
void wr_domains_count(struct weir_executor *ex, enum wr_counts counts);

/* A set: the domains in which a thread is reserved in vain. There are more groups with one than slots for them, and the tasks
 * that have the slots may wait for a thread. */
uint64_t wr_domains_reserving_in_vain(struct weir_executor *ex);

/* ---- for a group; under its lock, and only if there are domains --------------------------------- */

/* The group enters the table: from now on the ledger is told as much of it as of all others. */
void wr_domain_join(struct weir_group *group);

/* One more task stands in the group's queue. NONE: the domain admits it; else why not. */
weir_reason wr_domain_admit(struct weir_group *group);

/* One task has left the group's queue without starting (-1), or is back there (1) because its permits could not be had. */
void wr_domain_queued(struct weir_group *group, int more);

/* Call it after the group's place in the ring has changed: tells the ledger how many tasks the group is ready for, if it counts
 * those. True: there is something for a worker. */
bool wr_domain_sync(struct weir_group *group);

/* The group has become the first of its ring. Its crew was refused permits for another one, and is to ask again. */
void wr_domain_ask_again(struct weir_group *group);

/* Whether its domain is released. Then all tasks that wait in the group came before that: no later one gets in. */
bool wr_domain_is_released(const struct weir_group *group);

/* The worker that took the group starts no task of it: the slot goes back. Call it before the group is put back, so that no other
 * worker takes it meanwhile. */
void wr_domain_untake(struct weir_group *group);

/* A task is over: its slot goes back. */
void wr_domain_give(struct weir_group *group);

/* Whether a slot may pass from one task of the group to the next, and the ledger is told nothing of either. */
bool wr_domain_is_quiet(struct weir_group *group);

/* A task is over. True: the next one of the group, which leaves the queue, has its slot now. */
bool wr_domain_hand_over(struct weir_group *group);

/* The group's turn for a thread has come. True: the thread is reserved for it. For that there must be a slot for the group, not
 * counting slots for others with a reserved thread: threads are not to stand idle for a domain that is full. A group that was
 * passed over for that gets the next thread without a slot, as long as no other of its domain has a thread and no slot: else it
 * might never find both free at the same moment. But not if the tasks that have the slots may wait for the thread. */
bool wr_domain_reserve_thread(struct weir_group *group);

/* No thread is reserved for the group any more. */
void wr_domain_unreserve_thread(struct weir_group *group);

/* Why the group's first task does not start, if the group and the executor would let it: NONE, or the domain. Then *limit is how
 * many slots the domain may use, of its own and others', and *held how many of them are in use, by tasks of any domain. */
weir_reason wr_domain_blocked_by(struct weir_group *group, int64_t *limit, int64_t *held);

/* Whether its domain has slots of its own, or may borrow some. */
bool wr_domain_has_slots(struct weir_group *group);

/* Whether the group gets a slot if the waits that are stuck (wr_domain.node) never end, and everything else does. Else *hopes
 * says which domains that depends on. During a walk; see deadlock.h. */
bool wr_domain_may_get_slot(struct weir_group *group, struct wr_hopes *hopes);

/* Permits of the executor's that must be free before the crew of the group's domain takes anything, because its first group in
 * line, or that of a crew that asked earlier, was found to need them; 0: none. */
uint32_t wr_domain_owed(struct weir_group *group);

/* The most that any one of these groups needs, if it will wait for ever: not the sum, since they start one after the
 * other, and end. */
uint32_t wr_domain_most_owed(struct weir_group *group);

/* ---- among the files of domains ------------------------------------------------------------------ */

/* Locks the ledger for an event in a domain, which can concern at once its own units and the default domain's. */
static inline void wr_domains_lock_near(struct weir_executor *ex, uint32_t d)
{
    wr_domains_lock(ex, wr_domain_bit(d) | wr_domain_bit(WR_DEFAULT));
}

/* Notes whether the group waits, in no worker's hands, with a thread reserved for it. Under the lock. */
void wr_domain_set_waits_with_thread(struct weir_group *group, bool waits);

/* Tells a ledger that is told only of slots (else nothing is done) that one task wants a slot of the domain, because a worker
 * found none, or that none does. Under the lock. */
void wr_domains_set_asks(struct wr_domains *domains, uint32_t d, bool asks);

/* Call it after a group has left the ring: no slot is kept for a domain whose ring is empty. A worker that asks for a slot looks
 * at the ring after that, so one of the two sees what the other has done. Without the lock. */
void wr_domains_ask_no_slot(struct weir_executor *ex, uint32_t d);

#endif
