/* Domains: an executor's slots, divided among kinds of work.
 *
 *     executor     slots in all, queue places in all
 *       domain     so many of each: at most (WEIR_MAX), or always (WEIR_RESERVED)
 *         group    belongs to one domain
 *
 * A slot is one task in flight, whatever its cost; a place is one task that waits. The default domain has
 * what the others leave. A domain with WEIR_RESERVED slots that has used all of its own may borrow idle ones
 * of the default domain; it pays back first, and tasks that wait in the default domain go before those
 * of a borrower. An executor without domains has no slots to count and pays nothing for them.
 *
 * With lending, idle slots and places of a domain go to one that is swamped, and come back when they are needed.
 * docs/domains.md has an example of each.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_DOMAIN_H
#define WEIR_DOMAIN_H

#include <weir/runtime.h>
#include <weir/task.h>

WEIR_BEGIN_DECLS

/* The name of the domain that is always there. An entry of that name may set what is said of it below, but no
 * slots and no queue: it has the rest; and no WEIR_RESERVED: it has nobody to borrow from. */
#define WEIR_DEFAULT_DOMAIN "default"

enum { WEIR_DOMAINS_MAX = 63 }; /* most entries of weir_policy.domains */

#define WEIR_NONE INT64_MIN /* in lend_max, queue_lend_max and headroom_percent: none at all */

typedef enum weir_share {
    WEIR_MAX = 0,      /* so many and no more                                                   */
    WEIR_RESERVED = 1, /* so many, kept free for it; more if the default domain has idle ones   */
} weir_share;

/* Later versions may add fields at the end: see weir_policy.domain_size. */
typedef struct weir_domain_policy { /* zero asks for the default, but a name and slots are needed */
    const char *name;
    int64_t slots;
    weir_share slots_mode;
    int64_t queue; /* places; WEIR_NO_QUEUE: none; default: no limit, if queue_places has none   */
    weir_share queue_mode;
    int64_t weight;   /* share of turns among domains, and of what is borrowed; default 1        */
    int64_t lend_max; /* most slots it may lend out; default half of them (none for the default
                         domain), WEIR_NONE: none                                                */
    int64_t queue_lend_max; /* the same for places                                               */
    uint32_t workers;       /* its own, apart from all others, at most 4096; default: it shares the
                         executor's                                                              */
    weir_carrier run_on;    /* WEIR_THREADS: its bodies run on threads                         */
    weir_deadlines deadlines; /* of its tasks, unless they or their group say otherwise          */
} weir_domain_policy;

/* Percentages are 1 to 100, low_percent below high_percent; `hold` is at most 1,000,000.
 *
 * Every period_ms the use of each domain is looked at. Who has used less than low_percent of its slots for
 * `hold` samples, and has nobody waiting, lends to one that uses high_percent or more and has tasks
 * waiting, but keeps headroom_percent of its configured slots free. As soon as it has a task waiting, or
 * less than that free, all it lent is recalled: idle slots at once, busy ones when their tasks end. The pair
 * does not lend again for `hold` samples.
 *
 * Then the same with queue places, if queue_places bounds them. Who has used less than low_percent of its
 * places lends to one that uses high_percent or more: at most as many as that has waiting, so its room at most
 * doubles with each sample. They are recalled as soon as less than the headroom is free, or a task
 * finds none: free ones come back before that task is refused, others as the borrower's queue gets shorter,
 * and until then the borrower accepts no more than what is left to it. */
typedef struct weir_lending {
    int64_t period_ms;                 /* default 0: no lending                             */
    int64_t low_percent, high_percent; /* default 30 and 90                                 */
    int64_t hold;                      /* default 3                                         */
    int64_t headroom_percent;          /* default 25; WEIR_NONE: 0                          */
    int64_t step;                      /* most per loan and sample; default: no limit       */
} weir_lending;

typedef struct weir_domain_stats { /* a snapshot of the ledger, all figures of one moment */
    size_t size;
    const char *name; /* a loan from the executor                                                 */
    weir_share slots_mode, queue_mode;
    int64_t slots;       /* configured, or as resized                                             */
    int64_t limit;       /* now: slots - lent + taken, and what was released                      */
    int64_t used;        /* tasks that have a slot                                                */
    int64_t borrowed;    /* of those, on slots of the default domain                              */
    int64_t overhang;    /* of those, on slots that were released to another domain               */
    int64_t charged;     /* slots of ours that tasks of other domains are on                      */
    int64_t lent, taken; /* loans out and in                                                      */
    int64_t recalled;    /* of the latter, those to be given back as soon as they are idle        */
    int64_t waiting;     /* tasks without a slot                                                  */
    int64_t queue, queue_limit, queue_borrowed; /* places; WEIR_NO_LIMIT: not counted             */
    bool released;
    const char *receiver; /* who has its slots, while some are away by force; else NULL        */
    int64_t peak;
    uint64_t slots_lent, slots_recalled; /* since ever                                         */
    uint64_t timed_out, overdue;         /* tasks so far; and bodies that still run beyond     */
    int64_t queue_lent, queue_taken;     /* loans of places, out and in                        */
    int64_t queue_recalled; /* of the latter, those to be given back as soon as they are free  */
    uint64_t places_lent, places_recalled; /* since ever                                       */
} weir_domain_stats;

/* WEIR_ENODOMAIN: no such domain; an executor without domains has none. WEIR_EINVAL: NULL, or no size. */
int weir_domain_stats_get(weir_domain_stats *out, weir_executor *ex, const char *domain);

/* The name of the n-th domain, the default one first; NULL beyond the last. */
const char *weir_domain_name(weir_executor *ex, size_t index);

/* The domain a group belongs to; "default" in an executor without domains. A loan. */
const char *weir_group_domain(const weir_group *group);
const char *weir_task_domain(const weir_task *task);

/* Its back end is dead: gives all its slots and places to `receiver` (NULL: the default domain), at once.
 * Waiting tasks become REJECTED (WEIR_REASON_DOMAIN_RELEASED), new ones are refused for the same reason,
 * running ones keep their slots until they end (WEIR_CANCEL_RUNNING: and are asked to).
 * WEIR_ENODOMAIN. WEIR_EALREADY: it is released. WEIR_EINVAL: the default domain, or the receiver itself, or
 * one of the two is part of a release that is not over yet. `message` (may be NULL) says which. */
int weir_domain_release(weir_executor *ex, const char *domain, const char *receiver, int flags,
                        weir_message *message);

/* Takes back what was released: idle slots at once, busy ones as they fall free; the domain accepts tasks
 * from now on. WEIR_ENODOMAIN. WEIR_EALREADY: it is not released. WEIR_EINVAL: the default domain. */
int weir_domain_restore(weir_executor *ex, const char *domain, weir_message *message);

/* Changes what a domain has, while it runs; 0 leaves one as it is, WEIR_NO_QUEUE in `queue`: no places. The totals
 * stay: what it gains the default domain loses, and the other way round. Idle slots and free places change hands
 * at once, others when tasks end or leave the queue; nothing that runs or waits is touched. Until then the one that
 * loses has them on loan (taken, recalled; queue_taken, queue_recalled), and starts and accepts nothing on
 * what falls free. A lend_max that was left to its default stays half. The default domain may be left with
 * nothing, and what waits there then waits; default_floor prevents that.
 * WEIR_ENODOMAIN. WEIR_EINVAL: the default domain; negative; no slots at all; more than it has and the default
 * domain can give, whose floor stays; WEIR_NO_LIMIT, unless queue_places has none either; or it is part of a
 * release that is not over yet. Then nothing changes, and `message` (may be NULL) says what is wrong. */
int weir_domain_resize(weir_executor *ex, const char *domain, int64_t slots, int64_t queue,
                       weir_message *message);

WEIR_END_DECLS

#endif
