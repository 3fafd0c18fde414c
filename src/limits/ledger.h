/* The ledger of domains: how many slots and queue places each may use. Pure arithmetic: no threads, no
 * clock, no memory of its own; the caller serialises. docs/internals/domains.md says why it is as it is.
 *
 * A slot is one task in flight. A place is room for one task in the queues. A unit is a slot or a place. Domain 0 is the
 * default one. Slots are granted to a domain, not to a group or task: a `promised` one waits for a worker to take the next
 * task of the domain. So the submit or the release that makes a start possible decides that a task may start; which worker
 * takes it is decided later.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_LEDGER_H
#define WR_LIMITS_LEDGER_H

#include "limits/admit.h"

#include <stddef.h>
#include <weir/domain.h>

enum { WR_DEFAULT = 0, WR_DOMAINS_MAX = WEIR_DOMAINS_MAX + 1 };

/* Sets of domains are words, a bit for each. */
static inline uint64_t wr_domain_bit(uint32_t d)
{
    return (uint64_t)1 << d;
}

/* The domain that comes after d in a set that is not empty; after the last one, the first. */
static inline uint32_t wr_domain_after(uint32_t d, uint64_t set)
{
    uint64_t later = set & ~((wr_domain_bit(d) << 1) - 1);

    return (uint32_t)__builtin_ctzll(later ? later : set);
}

/* What the caller tells a ledger of. */
enum wr_counts {
    WR_COUNTS_SLOTS,  /* a slot that a worker did not find: as one task that waits in its domain */
    WR_COUNTS_READY,  /* each task that waits only for a slot. Nothing is ceded then             */
    WR_COUNTS_QUEUED, /* also each task in a queue: by these it decides about places and loans   */
};

enum wr_resource { WR_SLOTS, WR_PLACES, WR_RESOURCES };

/* What a domain has of one resource. The same rules hold for slots and for places. After every step
 * (wr_ledger_is_valid), unless places are not counted:
 *     sum of limit over all domains == total                               nothing is made or lost
 *     limit == amount - lent + received - forced + (what others were forced to give)
 *     limit >= received               what is received is there: its lender waits for tasks to end
 *     due > 0  =>  nothing of ours is idle                                 what is recalled goes back at once
 *     lent, owed, received and due are the sums of our row and our column of loans                     */
struct wr_stock {
    uint32_t amount;         /* as configured */
    uint32_t limit;          /* what the domain may use now */
    uint32_t lent, owed;     /* loans out; of these, those that are recalled */
    uint32_t received, due;  /* loans in; of these, those that are recalled */
    uint32_t forced;         /* what the receiver has of ours */
    uint32_t lend_max;       /* most that may be lent by utilisation */
    bool lends_half;         /* lend_max is half of the amount */
    uint32_t low;            /* samples in a row in which little was used */
    uint64_t loans, recalls; /* units, since ever */
};

/* One domain's part. After every step (wr_ledger_is_valid), of slots:
 *     own + charged <= limit            own: our tasks on our units; charged: others' tasks on our units
 *     charged == strays of those whose receiver we are (+ all that is borrowed, for the default one)
 *     borrowed + strays > 0   =>  own + charged == limit                  our own units come first
 *     promised <= want, and promised < want  =>  no unit can be had       no task waits beside a free one  */
struct wr_share {            /* what each settling looks at comes first */
    uint32_t want, promised; /* tasks that wait only for a slot; slots that wait for their worker */
    uint32_t own, borrowed, strays; /* units granted, by whose they are: ours, the default domain's,
                                       or once ours and now the receiver's */
    uint32_t charged;
    uint16_t weight;
    uint8_t receiver; /* a domain; valid while some of ours is forced, or while released */
    bool released;    /* starts nothing, accepts nothing */
    bool slots_reserved, places_reserved; /* may borrow from the default domain */
    struct wr_stock slots, places;
    int64_t queued; /* tasks in queues. -1 for a moment if one is cancelled as it is taken */
    uint32_t peak;
};

struct wr_loan {
    uint32_t units, due; /* due: recalled, and still busy          */
    uint32_t rest;       /* samples before this pair may lend again */
};

/* Lending by utilisation. */
struct wr_lending {
    bool on;
    uint32_t low, high; /* per cent of a limit: lenders are below, borrowers at or above */
    uint32_t hold;      /* samples that a lender is below before it lends, and a pair rests */
    uint32_t headroom;  /* per cent of its configured slots that a lender keeps free */
    uint32_t step;      /* most units per loan */
};

struct wr_ledger {
    uint32_t count, total, places_total; /* places_total WR_INF: not counted */
    uint32_t floor; /* units of the default domain that are not for borrowing */
    struct wr_lending lending;
    struct wr_share *share;
    struct wr_loan *loan; /* a matrix of lenders and borrowers for each resource; see wr_loan_at */
    uint32_t promised;    /* sum over domains */
    uint32_t borrowed;    /* sum over domains */

    /* Sets of domains, so that the cost of a task does not grow with their number. Domains `apart` have workers of their own:
     * idle workers of others cannot carry the tasks that these are promised slots for. */
    uint64_t apart, slot_borrowers, place_borrowers; /* as configured */
    uint64_t wanting;                                /* tasks wait in them only for a slot */
    uint64_t hungry;                                 /* they have tasks without a slot */
    uint64_t promising;                              /* they have slots without a worker */

    uint64_t turn;            /* the domain whose turn it is to borrow; see wr_ledger_turn */
    bool moved[WR_RESOURCES]; /* loans or forced units exist: settling must look at them */
    bool room;    /* a domain has got places; the caller clears it, and wakes waiting submits */
    bool shifted; /* slots changed hands or were recalled; the caller clears it */
};

/* Turns among domains, by weight, in one word: the domain whose turn it is, and how many times more, each WR_ONE_TURN. */
#define WR_ONE_TURN ((uint64_t)1 << 8)
static inline uint32_t wr_turn_domain(uint64_t turn)
{
    return (uint8_t)turn;
}

/* The next turn among the domains of a set that is not empty: `turn`, if it has times left and its domain is in the set, else the
 * next domain's. */
uint64_t wr_ledger_turn(const struct wr_ledger *l, uint64_t turn, uint64_t set);

/* How many bytes the arrays of a ledger of so many domains take. */
size_t wr_ledger_size(uint32_t count);

/* Gives a ledger its count and its arrays, which are zero. */
void wr_ledger_place(struct wr_ledger *l, uint32_t count, void *arrays);

/* Prepares a ledger in which count, total, floor, lending and each share's configured part are filled in, and all else is zero:
 * the default domain gets the units that are left. The sums must fit. */
void wr_ledger_init(struct wr_ledger *l);

/* Makes `to`, whose arrays are as large, the same as `from`. */
void wr_ledger_copy(struct wr_ledger *to, const struct wr_ledger *from);

/* One more task comes; `ready`: its group would let it start. NONE: it is in, perhaps with a slot promised.
 * Else nothing changed (but for loans that were recalled on its behalf). */
weir_reason wr_ledger_admit(struct wr_ledger *l, uint32_t d, bool ready);

/* A worker takes a task on a promised slot. */
void wr_ledger_take(struct wr_ledger *l, uint32_t d);

/* A worker that took a slot gives it back: the task, if any, waits on. */
void wr_ledger_untake(struct wr_ledger *l, uint32_t d);

/* The domain's groups have become ready for so many tasks more, or less. */
void wr_ledger_want(struct wr_ledger *l, uint32_t d, int64_t more);

/* A task has left the queue without being taken (-1), or is back there (1). */
void wr_ledger_queued(struct wr_ledger *l, uint32_t d, int more);

/* A slot comes back. */
void wr_ledger_give(struct wr_ledger *l, uint32_t d);

/* A task leaves its slot to the next task of the domain. False: the claim of another domain to the slot comes first. If the next
 * task cannot start after all, it is back in the queue. */
bool wr_ledger_hand_over(struct wr_ledger *l, uint32_t d);

/* Whether wr_ledger_hand_over could answer false in any domain. */
bool wr_ledger_is_contested(const struct wr_ledger *l);

/* Whether no other domain has a claim to d's own units, and d has tasks on no others: then its idle units can be
 * ceded to it, i.e. count as used by it in advance, so that it need not ask. */
bool wr_ledger_may_cede(const struct wr_ledger *l, uint32_t d);

/* Cedes d its idle units, and answers how many they are. */
uint32_t wr_ledger_cede(struct wr_ledger *l, uint32_t d);

/* Ceded units that d has not used come back. To be called before anything else happens in d or to its units. */
void wr_ledger_uncede(struct wr_ledger *l, uint32_t d, uint32_t units);

/* A sampling period has passed. */
void wr_ledger_sample(struct wr_ledger *l);

/* Whether d can be released to r. d must not be the default domain, nor in a release, nor hold units that others released; r must be
 * another domain, neither released nor yet to get slots back. */
bool wr_ledger_can_release(const struct wr_ledger *l, uint32_t d, uint32_t r);

/* All of d's units go to r. Only if wr_ledger_can_release. */
void wr_ledger_release(struct wr_ledger *l, uint32_t d, uint32_t r);

/* Brings the configured amounts of a released domain back: idle units at once, busy ones as they fall free. */
void wr_ledger_restore(struct wr_ledger *l, uint32_t d);

/* Whether d, or a unit that it holds, is part of a release that is not over. */
bool wr_ledger_in_release(const struct wr_ledger *l, uint32_t d);

/* Changes the configured amount of d, which must not be the default domain nor in a release. The default domain gets or gives
 * the difference: idle units at once, busy ones as they fall free. */
void wr_ledger_resize(struct wr_ledger *l, enum wr_resource what, uint32_t d, uint32_t amount);

/* The most that d can be resized to. */
uint32_t wr_ledger_most(const struct wr_ledger *l, enum wr_resource what, uint32_t d);

/* How many tasks take up places. */
uint32_t wr_ledger_waiting(const struct wr_share *s);

/* How many of the tasks that take up places stand on the default domain's. */
uint32_t wr_ledger_places_borrowed(const struct wr_share *s);

/* Whether d could be given a unit now. */
bool wr_ledger_can_grant(const struct wr_ledger *l, uint32_t d);

/* A set: the domains that may lend d slots at a later sample, if nothing else changes and no task waits in them. */
uint64_t wr_ledger_lenders(const struct wr_ledger *l, uint32_t d);

/* Whether d has slots of its own, or may borrow some. */
bool wr_ledger_has_slots(const struct wr_ledger *l, uint32_t d);

/* Sets of domains from which a slot may come some time. */
struct wr_hopes {
    uint64_t lenders; /* they would lend one if they had no task waiting                          */
    uint64_t movers;  /* if they start a task, slots change hands, and one may be left over then  */
};

/* Whether d, in which a task waits, gets a slot for it if stuck[i] tasks of each domain never end, and all others do. Else
 * *hopes has the domains that this depends on: each sample is an event, so that the caller asks again. The ledger is tried
 * out in `copy`, whose arrays are as large. */
bool wr_ledger_may_get_slot(const struct wr_ledger *l, struct wr_ledger *copy, uint32_t d,
                            const uint64_t *stuck, struct wr_hopes *hopes);

bool wr_ledger_is_valid(const struct wr_ledger *l);

#endif
