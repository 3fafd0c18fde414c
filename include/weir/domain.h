/* Domains: an executor's slots, divided among kinds of work.
 *
 *     executor     a number of slots and of queue places
 *       domain     a share of both: a ceiling (WEIR_MAX), or a floor (WEIR_RESERVED)
 *         group    belongs to one domain
 *
 * A slot is one task in flight, whatever its cost; a place is one task that waits. The default domain has what the
 * other domains leave. A domain with WEIR_RESERVED slots that uses all of its own may borrow idle slots of the default
 * domain. A borrowed slot that falls free goes back first, so tasks that wait in the default domain start before more
 * tasks of the borrower. An executor without domains counts no slots and pays nothing for them.
 *
 * With lending, a domain with idle slots and places lends some to a domain that has too few, and gets them back when it
 * needs them. docs/domains.md has an example of each.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_DOMAIN_H
#define WEIR_DOMAIN_H

#include <weir/runtime.h>
#include <weir/task.h>

WEIR_BEGIN_DECLS

/* The name of the domain that always exists. An entry of that name may set weight, lending, workers, run_on and
 * deadlines; no slots and no queue, because it has what the others leave; no WEIR_RESERVED, because it has no domain to
 * borrow from. */
#define WEIR_DEFAULT_DOMAIN "default"

enum { WEIR_DOMAINS_MAX = 63 }; /* most entries of weir_policy.domains */

#define WEIR_NONE INT64_MIN /* in lend_max, queue_lend_max and headroom_percent: none at all */

typedef enum weir_share {
    WEIR_MAX = 0,      /* that many and no more                                                 */
    WEIR_RESERVED = 1, /* that many kept free for it; more if the default domain has idle ones  */
} weir_share;

/* One domain. Zero in a field asks for its default; a name and slots are required. Later versions may add fields at the
 * end: see weir_policy.domain_size. */
typedef struct weir_domain_policy {
    const char *name;
    int64_t slots;
    weir_share slots_mode;
    int64_t queue; /* places; WEIR_NO_QUEUE: none. Required if queue_places is set; else no limit */
    weir_share queue_mode;
    int64_t weight;         /* share of turns among domains, and of borrowed slots, 1 to
                         WEIR_WEIGHT_MAX; default 1                                              */
    int64_t lend_max;       /* most slots it lends out; default: half of them, none for the default
                         domain; WEIR_NONE: none                                                 */
    int64_t queue_lend_max; /* most places it lends out; defaults as lend_max                    */
    uint32_t workers;       /* its own, apart from all others, at most 4096; default: it shares the
                         executor's                                                              */
    weir_carrier run_on;    /* WEIR_THREADS: its bodies run on threads                         */
    weir_deadlines deadlines; /* of its tasks, unless they or their group say otherwise          */
} weir_domain_policy;

/* Lending. Every period_ms the executor samples how much of its slots each domain uses.
 *
 * A domain that has used less than low_percent of its slots for `hold` samples, and has no task waiting, lends slots to
 * a domain that uses high_percent or more and has tasks waiting. It keeps headroom_percent of its configured slots
 * free. As soon as the lender has a task waiting, or less than the headroom free, all its slots are recalled: idle ones
 * at once, busy ones when their tasks end. The two domains do not lend to each other again for `hold` samples.
 *
 * Queue places are lent the same way if queue_places bounds them. A borrower gets at most as many places as it has
 * tasks waiting, so its room at most doubles with each sample. Places are recalled as soon as the lender has less than
 * the headroom free, or one of its tasks finds no place: free ones come back before that task is refused, others as
 * the borrower's queue gets shorter. Until then the borrower accepts only what fits into the places left to it.
 *
 * Percentages are 1 to 100, low_percent is below high_percent, `hold` is at most 1,000,000. */
typedef struct weir_lending {
    int64_t period_ms;                 /* default 0: no lending                             */
    int64_t low_percent, high_percent; /* default 30 and 90                                 */
    int64_t hold;                      /* default 3                                         */
    int64_t headroom_percent;          /* default 25; WEIR_NONE: 0                          */
    int64_t step;                      /* most per loan and sample; default: no limit       */
} weir_lending;

/* A snapshot of one moment; timed_out and overdue may be newer. */
typedef struct weir_domain_stats {
    size_t size;
    const char *name; /* a loan from the executor                                                 */
    weir_share slots_mode, queue_mode;
    int64_t slots;       /* configured, or as resized                                             */
    int64_t limit;       /* now: slots - lent + taken, plus or minus what was released            */
    int64_t used;        /* tasks that have a slot                                                */
    int64_t borrowed;    /* of those, on slots of the default domain                              */
    int64_t overhang;    /* of those, on slots that were released to another domain               */
    int64_t charged;     /* its own slots that tasks of other domains are on                      */
    int64_t lent, taken; /* slots it has lent to other domains, and those it has on loan          */
    int64_t recalled;    /* of `taken`, those to be given back as soon as they are idle           */
    int64_t waiting;     /* tasks without a slot                                                  */
    int64_t queue, queue_limit, queue_borrowed; /* places; WEIR_NO_LIMIT: not counted             */
    bool released;
    const char *receiver; /* the domain that has its slots, while some are released; else NULL */
    int64_t peak;
    uint64_t slots_lent, slots_recalled; /* counted since the executor was made                */
    uint64_t timed_out, overdue; /* tasks so far; bodies that run beyond their deadline now    */
    int64_t queue_lent, queue_taken; /* places it has lent to other domains, and has on loan   */
    int64_t queue_recalled; /* of queue_taken, those to be given back as soon as they are free */
    uint64_t places_lent, places_recalled; /* counted since the executor was made              */
} weir_domain_stats;

/* Figures of one domain. WEIR_ENODOMAIN: an unknown domain. WEIR_EINVAL: NULL, or no size. */
int weir_domain_stats_get(weir_domain_stats *out, weir_executor *ex, const char *domain);

/* The name of the index-th domain, the default one first; NULL beyond the last. Belongs to the executor. */
const char *weir_domain_name(weir_executor *ex, size_t index);

/* The domain a group belongs to; "default" in an executor without domains. Belongs to the executor. */
const char *weir_group_domain(const weir_group *group);

/* The domain of a task's group. */
const char *weir_task_domain(const weir_task *task);

/* Gives all slots and places of a domain to `receiver` (NULL: the default domain) at once, say because its back end is
 * dead. Waiting tasks become REJECTED (WEIR_REASON_DOMAIN_RELEASED), new ones are refused for the same reason, running
 * ones keep their slots until they end (WEIR_CANCEL_RUNNING: and are asked to; pending ones then become CANCELLED).
 * WEIR_ENODOMAIN: an unknown name. WEIR_EALREADY: it is released already. WEIR_EINVAL: NULL; the default domain; the
 * receiver is the domain itself; or one of the two is part of a release that is not over yet. `message` (may be NULL)
 * says which. */
int weir_domain_release(weir_executor *ex, const char *domain, const char *receiver, int flags,
                        weir_message *message);

/* Ends a release: idle slots come back at once, busy ones as they fall free; the domain accepts tasks from now on.
 * WEIR_ENODOMAIN: an unknown name. WEIR_EALREADY: it is not released. WEIR_EINVAL: NULL, or the default domain. */
int weir_domain_restore(weir_executor *ex, const char *domain, weir_message *message);

/* Changes the slots and places of a domain while tasks run; 0 leaves one as it is, WEIR_NO_QUEUE in `queue`: no places.
 * The executor's sums stay: what the domain gains the default domain loses, and the other way round. Idle slots and
 * free places change hands at once, others when tasks end or leave the queue; no task that runs or waits is touched.
 * Until then the domain that loses them has them on loan (taken, recalled; queue_taken, queue_recalled), and uses none
 * that falls free. A lend_max that was left to its default stays half. The default domain may be left without slots,
 * so that its tasks wait until it has some again; default_floor prevents that.
 * WEIR_ENODOMAIN: an unknown name. WEIR_EINVAL: NULL; the default domain; negative; no slots at all; more than the
 * domain has and the default domain can give above its floor; WEIR_NO_LIMIT while queue_places is set; or the domain
 * is part of a release that is not over yet. Then nothing changes, and `message` (may be NULL) says what is wrong. */
int weir_domain_resize(weir_executor *ex, const char *domain, int64_t slots, int64_t queue,
                       weir_message *message);

WEIR_END_DECLS

#endif
