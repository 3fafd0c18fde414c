/* The ledger of domains: how many slots and queue places each may use. Pure arithmetic: no threads, no
 * clock, no memory of its own; the caller serialises. docs/internals/domains.md says why it is as it is.
 *
 * A slot is one task in flight. Domain 0 is the default one. Slots are granted to a domain, not to a
 * group or task: `promised` ones wait for a worker to take the next task of the domain. So
 * that a task may start is decided by the submit or the release that makes it possible; which worker takes it, later.
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

/* The next one of a set that is not empty, in turn. */
static inline uint32_t wr_domain_after(uint32_t d, uint64_t set)
{
    uint64_t later = set & ~((wr_domain_bit(d) << 1) - 1);

    return (uint32_t)__builtin_ctzll(later ? later : set);
}

/* What a ledger is told of. */
enum wr_counts {
    WR_COUNTS_SLOTS,  /* a slot that a worker did not find: as one task that waits in its domain */
    WR_COUNTS_READY,  /* each task that waits only for a slot. Nothing is ceded then             */
    WR_COUNTS_QUEUED, /* and each in a queue: by these it decides of places and loans            */
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
    bool lends_half;         /* that is half of the amount */
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
    uint8_t receiver; /* means something while some of ours is forced, or while released */
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

    /* Sets, so that what a task costs does not grow with the number of domains. Those `apart` have workers of their own:
     * idle ones of others cannot carry what they are promised. */
    uint64_t apart, slot_borrowers, place_borrowers; /* as configured */
    uint64_t wanting;                                /* tasks wait in them only for a slot */
    uint64_t hungry;                                 /* they have tasks without a slot */
    uint64_t promising;                              /* they have slots without a worker */

    uint64_t turn;            /* whose it is to borrow; see wr_ledger_turn */
    bool moved[WR_RESOURCES]; /* loans or forced units exist: settling must look at them */
    bool room;    /* a domain has got places; the caller clears it when it has told submits */
    bool shifted; /* slots changed hands or were recalled; the caller clears it */
};

/* Turns among domains, by weight: whose it is, in one word with how many times more, each WR_ONE_TURN. And whose it is after
 * that, of a set that is not empty. */
#define WR_ONE_TURN ((uint64_t)1 << 8)
static inline uint32_t wr_turn_domain(uint64_t turn)
{
    return (uint8_t)turn;
}
uint64_t wr_ledger_turn(const struct wr_ledger *l, uint64_t turn, uint64_t set);

/* Gives a ledger its count and its arrays: so many bytes for so many domains, which are zero. */
size_t wr_ledger_size(uint32_t count);
void wr_ledger_place(struct wr_ledger *l, uint32_t count, void *arrays);

/* With count, total, floor, lending and each share's configured part filled in, and all else zero: the
 * default domain gets what is left. The sums must fit. */
void wr_ledger_init(struct wr_ledger *l);

/* Makes `to`, whose arrays are as large, the same as `from`. */
void wr_ledger_copy(struct wr_ledger *to, const struct wr_ledger *from);

/* One more task comes; `ready`: its group would let it start. NONE: it is in, perhaps with a slot promised.
 * Else nothing changed (but for loans that were recalled on its behalf). */
weir_reason wr_ledger_admit(struct wr_ledger *l, uint32_t d, bool ready);

/* A worker takes a task on a promised slot. Or has taken, and puts it back: the task, if any, waits on. */
void wr_ledger_take(struct wr_ledger *l, uint32_t d);
void wr_ledger_untake(struct wr_ledger *l, uint32_t d);

/* The domain's groups have become ready for so many tasks more, or less. */
void wr_ledger_want(struct wr_ledger *l, uint32_t d, int64_t more);

/* A task has left the queue without being taken (-1), or is back there (1). */
void wr_ledger_queued(struct wr_ledger *l, uint32_t d, int more);

/* A slot comes back. */
void wr_ledger_give(struct wr_ledger *l, uint32_t d);

/* A slot would come back and another task of the domain would get it: keep it. False: the claim of
 * another comes first. If the task cannot start after all, it is back in the queue. */
bool wr_ledger_hand_over(struct wr_ledger *l, uint32_t d);

/* Whether that could be the answer in any domain. */
bool wr_ledger_is_contested(const struct wr_ledger *l);

/* Whether no other domain has a claim to d's own units, and d has tasks on no others: then those that are idle can be
 * ceded to it, i.e. count as used by it in advance, so that it need not ask. Ceding answers how many they are; those that
 * it has not used come back by wr_ledger_uncede, before anything else happens in d or to its units. */
bool wr_ledger_may_cede(const struct wr_ledger *l, uint32_t d);
uint32_t wr_ledger_cede(struct wr_ledger *l, uint32_t d);
void wr_ledger_uncede(struct wr_ledger *l, uint32_t d, uint32_t units);

/* A sampling period has passed. */
void wr_ledger_sample(struct wr_ledger *l);

/* All of d's units go to r, which must be another, not released; neither may d hold what others released.
 * False: not possible. Restoring brings the configured amounts back, idle units at once, busy ones as
 * they fall free. */
bool wr_ledger_can_release(const struct wr_ledger *l, uint32_t d, uint32_t r);
void wr_ledger_release(struct wr_ledger *l, uint32_t d, uint32_t r);
void wr_ledger_restore(struct wr_ledger *l, uint32_t d);

/* Whether d, or what it holds, is part of a release that is not over. */
bool wr_ledger_in_release(const struct wr_ledger *l, uint32_t d);

/* The configured amount of d, which must not be the default domain nor in a release, changes: by what the default
 * domain gets or gives, idle units at once, busy ones as they fall free. And the most that d can have. */
void wr_ledger_resize(struct wr_ledger *l, enum wr_resource what, uint32_t d, uint32_t amount);
uint32_t wr_ledger_most(const struct wr_ledger *l, enum wr_resource what, uint32_t d);

/* Tasks that take up places. */
uint32_t wr_ledger_waiting(const struct wr_share *s);

/* Of those, how many stand on the default domain's places. */
uint32_t wr_ledger_places_borrowed(const struct wr_share *s);

/* Whether d could be given a unit now. */
bool wr_ledger_can_grant(const struct wr_ledger *l, uint32_t d);

/* A set: the domains of which a sample to come may bring d a loan, if nothing else changes and no task waits in them. */
uint64_t wr_ledger_lenders(const struct wr_ledger *l, uint32_t d);

/* Whether d has slots of its own, or may borrow some. */
bool wr_ledger_has_slots(const struct wr_ledger *l, uint32_t d);

/* Sets of domains from which a slot may come some time. */
struct wr_hopes {
    uint64_t lenders; /* they would lend one if they had no task waiting                          */
    uint64_t movers;  /* if they start a task, slots change hands, and one may be left over then  */
};

/* Whether d, in which a task waits, gets a slot for it if stuck[i] tasks of each domain never end, and all others do. Else
 * *hopes says what that depends on: each sample is an event, so that it is asked again. It is tried out in `copy`, whose
 * arrays are as large. */
bool wr_ledger_may_get_slot(const struct wr_ledger *l, struct wr_ledger *copy, uint32_t d,
                            const uint64_t *stuck, struct wr_hopes *hopes);

bool wr_ledger_is_valid(const struct wr_ledger *l);

#endif
