/* Domains as the executor runs them: the ledger under its lock, and one ring of groups for each.
 *
 * An executor without domains has none of this (ex->domains == NULL), and every call below is then a test of that
 * pointer. While no other domain has a claim to them, the ledger cedes a domain's own units to it: then a slot is taken
 * and given back by one step of the domain's word, without the lock. Whoever locks the ledger takes back first what is
 * idle of them, so under the lock its figures are exact. docs/internals/domains.md has the invariants and the lock order.
 *
 *     domains.c         the lock, the units that are ceded, and what a worker takes, in whose turn
 *     domains_group.c   what becomes of a group's tasks, what keeps them, and whether they will ever get a slot
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
    struct wr_crew *next;  /* all of an executor's, from its own one on; NULL: the last         */
    weir_runtime *runtime; /* NULL before it is started, and once it is deleted                 */
    uint32_t workers;
    _Atomic(struct wr_worker_slice *) lead; /* its worker that leads; see lead.h                 */
    uint64_t domains;        /* a set: whose tasks its workers carry                             */
    _Atomic uint64_t turn;   /* among the domains, task by task; see wr_ledger_turn              */
    _Atomic uint32_t needed; /* permits of the executor's that must be free for the next task     */
    struct wr_debt debt;     /* of the executor's permits; under the domains' lock              */
};

/* A source of work for a runtime; and the runtime. See pull.c. */
void wr_crew_init(struct wr_crew *crew, struct weir_executor *ex, uint32_t workers);
int wr_crew_start(struct wr_crew *crew);

/* domain->slots: the units of its own that the ledger has ceded to it, and how many of them its tasks have. Or
 * WR_IN_LEDGER: none is ceded, and the ledger is asked.
 *     ceded:  share.own == units in `slots` + promised, and share.borrowed == share.strays == 0 */
#define WR_IN_LEDGER UINT64_MAX

struct wr_domain {
    struct wr_line ring;
    _Atomic uint64_t slots;
    _Atomic uint32_t peak; /* of what was used of ceded units; written under the ring's lock      */
    struct wr_crew *crew;
    struct wr_crew own;   /* if it has workers of its own                                         */
    uint32_t with_thread; /* groups that wait with a thread reserved for them; under the lock     */
    _Atomic uint64_t timed_out, overdue;
    _Atomic bool released;    /* a copy of the ledger's, written under the lock                   */
    _Atomic uint32_t waits;   /* of its bodies for tasks; see deadlock.h                          */
    struct wr_node node;      /* the slots that these keep; likewise                              */
    _Atomic uint32_t cancels; /* how often its bodies were asked to end; likewise                 */
};

/* Under the lock: the ledger; and, as far as it is told (extras->counted, which is `counts` of all groups but while that changes):
 *     share[d].want   == sum of extras->want over the groups of d, and domain[d].with_thread of extras->waits_with_thread
 *     share[d].queued == tasks in queues of groups of d, less those that a worker has just taken
 *     extras->want    == tasks the group is ready for, less one that a worker has just taken (at rest)
 *     a group with want > 0 stands in its domain's ring, or a worker has just taken it (at rest)     */
struct wr_domains {
    struct wr_lock lock;
    struct wr_ledger ledger;
    struct wr_ledger supposed; /* a copy, to try out what would be: wr_domain_may_get_slot       */
    uint64_t ceded;            /* a set: whose own units are; see wr_domain.slots                */
    uint64_t locked;           /* a set: whose units this hold of the lock has taken back        */
    struct wr_list refused;    /* debts of crews                                                  */
    _Atomic uint64_t ready;    /* a set: the domains with a group in their ring                  */
    _Atomic uint64_t barred;   /* a set: no slot for their tasks now. Written under the lock     */
    /* A set, the ledger's `wanting`: it counts one task for those that wait there, since a worker found no slot. Written
     * under the lock. None in an executor that counts more, nor (at rest) without a group in the ring. */
    _Atomic uint64_t asking;
    _Atomic uint8_t counts; /* enum wr_counts. It can only become more: see wr_domains_count     */
    _Atomic bool counting;  /* that changes: nothing is taken meanwhile                          */
    /* Another domain may have a claim to a slot that is in use, as while one is released: whoever ends gives it back, and the
     * ledger decides */
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

/* Whether whoever has a slot may keep it for the next task, as far as is known without any lock. */
static inline bool wr_domains_are_calm(const struct wr_domains *domains)
{
    return !wr_load(&domains->contested, relaxed);
}

int wr_domains_new(struct weir_executor *ex);   /* one piece of memory, at ex->domains */
int wr_domains_start(struct weir_executor *ex); /* their sampling, if there are any    */

/* Locks the ledger and takes back what is ceded and idle of a set of domains; and: publishes what has changed, cedes
 * what no other domain has a claim to, and unlocks. */
#define WR_ALL_DOMAINS UINT64_MAX
void wr_domains_lock(struct weir_executor *ex, uint64_t domains);
void wr_domains_unlock(struct weir_executor *ex);
void wr_domains_unlock_unchanged(struct weir_executor *ex); /* but for places */

/* The next group whose domain has a slot for it, with the slot taken, and with permits of the executor's as
 * wr_line_pull has them; or NULL. */
struct weir_group *wr_domains_take(struct wr_crew *crew, uint32_t *reserved);

/* Has the ledger told of so much from now on: more than slots is about to be limited. Without any lock. */
void wr_domains_count(struct weir_executor *ex, enum wr_counts counts);

/* A set: the domains in which a thread is reserved in vain. There are more groups with one than slots for them, and those who
 * have the slots may wait for a thread. */
uint64_t wr_domains_reserving_in_vain(struct weir_executor *ex);

/* ---- for a group; under its lock, and only if there are domains --------------------------------- */

/* Its domain is known from now on. */
void wr_domain_join(struct weir_group *group);

/* One more task stands in its queue: may it? */
weir_reason wr_domain_admit(struct weir_group *group);

/* One has left its queue without starting (-1), or is back there (1): its permits could not be had after all. */
void wr_domain_queued(struct weir_group *group, int more);

/* After its place in the ring has changed: tells the ledger how many tasks the group is ready for, if it counts those.
 * True: there is something for a worker. */
bool wr_domain_sync(struct weir_group *group);

/* It has come to be the first of its ring: what its workers were refused permits for is not what they would get. */
void wr_domain_ask_again(struct weir_group *group);

/* Whether its domain is released. Then what waits in it came before that: nothing that comes later gets in. */
bool wr_domain_is_released(const struct weir_group *group);

/* The worker that took it starts no task: the slot goes back. Before it is put back, so that no other takes it meanwhile. */
void wr_domain_untake(struct weir_group *group);

/* A task is over. And: the next one of the group may have its slot; where the domain is quiet, that is all there is to
 * it. */
void wr_domain_give(struct weir_group *group);
bool wr_domain_is_quiet(struct weir_group *group);
bool wr_domain_hand_over(struct weir_group *group);

/* Its turn for a thread has come: whether it shall have it. It has a slot to go with it, not counting slots for others that have
 * a thread reserved for them: threads are not to stand idle for a domain that is full. One that was passed over for that is not
 * passed over again, as long as it is the only one that has a thread and no slot: else it might never find both free at the
 * same moment. But not if those who have the slots may wait for the thread. And: it has no such thread any more. */
bool wr_domain_reserve_thread(struct weir_group *group);
void wr_domain_unreserve_thread(struct weir_group *group);

/* What keeps the group's first task, which its group and executor would let start: NONE, or the domain, with
 * how many slots it may use, of its own and others', and how many of them are taken, by whomever. */
weir_reason wr_domain_blocked_by(struct weir_group *group, int64_t *limit, int64_t *held);

/* Whether its domain has slots of its own, or may borrow some. */
bool wr_domain_has_slots(struct weir_group *group);

/* Whether it gets a slot if the waits that are stuck (wr_domain.node) never end, and everything else does. Else *hopes says
 * what that depends on. During a walk; see deadlock.h. */
bool wr_domain_may_get_slot(struct weir_group *group, struct wr_hopes *hopes);

/* Permits of the executor's that must be free before its workers take anything, because the first in line, or one of
 * other workers' that asked earlier, was found to need them; 0: none. */
uint32_t wr_domain_owed(struct weir_group *group);

/* The most that any one of those needs that will wait for ever: they start one after the other, and end. */
uint32_t wr_domain_most_owed(struct weir_group *group);

/* ---- among the files of domains ------------------------------------------------------------------ */

/* Locks what an event in a domain can concern at once: its own units, and the default domain's. */
static inline void wr_domains_lock_near(struct weir_executor *ex, uint32_t d)
{
    wr_domains_lock(ex, wr_domain_bit(d) | wr_domain_bit(WR_DEFAULT));
}

/* Whether the group waits, in no worker's hands, with a thread reserved for it. Under the lock. */
void wr_domain_set_waits_with_thread(struct weir_group *group, bool waits);

/* Where it is told only of slots (else nothing is done) the ledger counts one task, and only while a worker that came for it found
 * no slot. Under the lock. And: after a group has left the ring no slot is kept for a domain without one. Whoever asks for a slot looks at the ring
 * after that, so one of the two sees what the other has done. */
void wr_domains_set_asks(struct wr_domains *domains, uint32_t d, bool asks);
void wr_domains_ask_no_slot(struct weir_executor *ex, uint32_t d);

#endif
