/* The hall: the ledger under its lock, and who pulls from which domain.
 * SPDX-License-Identifier: MIT */
#include "executor/hall.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"

#include <stddef.h>
#include <weir/error.h>

static struct wr_hall *hall_of(struct weir_group *group)
{
    return group->executor->hall;
}

/* intake->turn */
static uint32_t turn_domain(uint64_t turn)
{
    return (uint8_t)turn;
}

static uint64_t turn_left(uint64_t turn)
{
    return turn >> 8;
}

static uint64_t turn_of(uint32_t d, uint64_t left)
{
    return left << 8 | d;
}

/* ---- under the hall's lock -------------------------------------------------------------------- */

/* Places went to somebody: who waits for room there may try again. */
static void tell_of_room(struct weir_executor *ex)
{
    struct wr_ledger *l = &ex->hall->ledger;

    if (l->room) {
        l->room = false;
        wr_room_made(ex);
    }
}

/* An intake is refused permits of the executor's; or has got some, or needs none any more. */
static void ask(struct wr_hall *hall, struct wr_intake *intake, uint32_t cost)
{
    if (!intake->asked) {
        intake->asked = ++hall->asks;
        hall->asking++;
    }
    intake->owed = cost;
}

static void ask_no_more(struct wr_hall *hall, struct wr_intake *intake)
{
    if (intake->asked)
        hall->asking--;
    intake->asked = 0;
    intake->owed = 0;
}

static bool goes_before(const struct weir_executor *ex, const struct wr_intake *other,
                        const struct wr_intake *intake)
{
    return other != intake && other->asked && (!intake->asked || other->asked < intake->asked) &&
           other->owed <= wr_load(&ex->root.inflight_max, relaxed); /* else it waits for a resize */
}

/* Permits of the executor's that others asked for before this one did, and that it must leave to them: else a costly
 * task would wait for ever while small ones of other workers take each permit as it falls free. */
static uint64_t owed_before(const struct wr_intake *intake)
{
    struct weir_executor *ex = intake->executor;
    struct wr_hall *hall = ex->hall;
    uint64_t owed = 0;

    if (!hall->asking)
        return 0;
    if (goes_before(ex, &ex->intake, intake))
        owed += ex->intake.owed;
    for (uint32_t d = 0; d < hall->ledger.count; d++)
        if (goes_before(ex, &hall->domain[d].own, intake))
            owed += hall->domain[d].own.owed;
    return owed;
}

/* ---- ceded units ------------------------------------------------------------------------------ */

/* A worker has the group in its hands now, with a slot of which it is not known yet whether it is needed. Under the lock of
 * the ring. */
static void take_in_hands(struct weir_group *group, struct wr_domain *domain)
{
    wr_store(&group->in_hands, WR_HANDS_UNCOUNTED, relaxed);
    wr_add(&domain->in_hands, 1, relaxed);
}

/* By that worker, so nobody takes the group meanwhile. */
static void put_down(struct weir_group *group)
{
    if (wr_swap(&group->in_hands, WR_HANDS_NONE, relaxed) == WR_HANDS_UNCOUNTED)
        wr_sub(&hall_of(group)->domain[group->domain].in_hands, 1, relaxed);
}

/* Takes one for a group that a worker is about to have in its hands, or (false) there is none, or none is ceded. */
static bool take_ceded(struct weir_group *group, void *domain_arg)
{
    struct wr_domain *domain = domain_arg;
    uint64_t slots = wr_load(&domain->slots, relaxed);
    uint32_t used, peak;

    do {
        used = (uint32_t)slots;
        if (slots == WR_SLOTS_IN_LEDGER || used >= slots >> 32)
            return false;
    } while (!wr_cas(&domain->slots, &slots, slots + 1, acq_rel));
    peak = wr_load(&domain->peak, relaxed);
    while (used + 1 > peak && !wr_cas(&domain->peak, &peak, used + 1, acq_rel))
        ;
    take_in_hands(group, domain);
    return true;
}

/* Gives one back, or (false) the ledger must be told. Nobody waits for what is ceded, so nobody is woken. */
static bool give_ceded(struct wr_domain *domain)
{
    uint64_t slots = wr_load(&domain->slots, relaxed);

    do {
        if (slots == WR_SLOTS_IN_LEDGER)
            return false;
    } while (!wr_cas(&domain->slots, &slots, slots - 1, acq_rel));
    return true;
}

static void take_back(struct wr_hall *hall, uint32_t d)
{
    uint64_t slots = wr_swap(&hall->domain[d].slots, WR_SLOTS_IN_LEDGER, acq_rel);

    wr_ledger_uncede(&hall->ledger, d, (uint32_t)(slots >> 32) - (uint32_t)slots);
    hall->ceded &= ~wr_domain_bit(d);
}

static void cede(struct wr_hall *hall, uint32_t d)
{
    struct wr_ledger *l = &hall->ledger;
    uint32_t idle, used;

    if (!wr_ledger_may_cede(l, d))
        return;
    idle = wr_ledger_cede(l, d);
    used = l->share[d].own - l->share[d].promised - idle;
    wr_store(&hall->domain[d].slots, wr_slots(used + idle, used), release);
    hall->ceded |= wr_domain_bit(d);
}

void wr_hall_lock(struct weir_executor *ex, uint64_t domains)
{
    struct wr_hall *hall = ex->hall;

    wr_lock(&hall->lock);
    hall->locked = domains & (~(uint64_t)0 >> (WR_DOMAINS_MAX - hall->ledger.count));
    for (domains &= hall->ceded; domains; domains &= domains - 1)
        take_back(hall, (uint32_t)__builtin_ctzll(domains));
}

/* What an event in a domain can concern at once: its own units, and the default domain's. */
static void lock_near(struct weir_group *group)
{
    wr_hall_lock(group->executor, wr_domain_bit(group->domain) | wr_domain_bit(WR_DEFAULT));
}

/* ---- after every change ------------------------------------------------------------------------ */

/* What is refused permits of the executor's is to ask again. */
static void publish_intake(struct wr_hall *hall, struct wr_intake *intake)
{
    if (!(hall->ledger.promising & intake->domains))
        ask_no_more(hall, intake);
    if (wr_load(&intake->needed, relaxed))
        wr_store(&intake->needed, 0, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

/* Domains that no worker need look at: none of their tasks has a slot; or, if the ledger does not know of each task, their
 * last worker was refused one. */
static uint64_t barred_domains(const struct wr_hall *hall)
{
    uint64_t barred = 0;

    if (wr_load(&hall->counts, relaxed))
        return ~hall->ledger.promising;
    for (uint64_t hungry = hall->ledger.hungry; hungry; hungry &= hungry - 1)
        if (hall->domain[__builtin_ctzll(hungry)].asks)
            barred |= hungry & -hungry;
    return barred;
}

static void publish(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;
    struct wr_ledger *l = &hall->ledger;
    uint64_t barred = barred_domains(hall);
    bool contested = wr_ledger_is_contested(l);

    for (uint64_t apart = l->apart; apart; apart &= apart - 1)
        publish_intake(hall, &hall->domain[__builtin_ctzll(apart)].own);
    publish_intake(hall, &ex->intake);
    if (contested != wr_load(&hall->contested, relaxed))
        wr_store(&hall->contested, contested, relaxed);
    if (barred != wr_load(&hall->barred, relaxed))
        wr_store(&hall->barred, barred, seq_cst); /* pairs with a sleeper's look; see parking.md */
    tell_of_room(ex);
    if (WR_UNLIKELY(l->shifted)) {
        l->shifted = false;
        wr_waits_suspect(ex);
    }
}

void wr_hall_unlock_unchanged(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;

    if (!wr_load(&hall->counts, relaxed))
        for (uint64_t domains = hall->locked; domains; domains &= domains - 1)
            cede(hall, (uint32_t)__builtin_ctzll(domains));
    wr_unlock(&hall->lock);
}

bool wr_hall_unlock(struct weir_executor *ex)
{
    publish(ex);
    wr_hall_unlock_unchanged(ex);
    return wr_executor_has_ready(ex);
}

/* A slot of the domain comes back, whoever had it. */
static void give_slot(struct weir_executor *ex, uint32_t d)
{
    if (give_ceded(&ex->hall->domain[d]))
        return;
    wr_hall_lock(ex, wr_domain_bit(d) | wr_domain_bit(WR_DEFAULT));
    wr_ledger_give(&ex->hall->ledger, d);
    wr_hall_unlock(ex);
}

/* ---- what waits, as far as the ledger is told --------------------------------------------------- */

/* How many tasks the group is ready for, not counting one that a worker has in its hands. */
static uint32_t ready_tasks(struct weir_group *group)
{
    uint32_t ready = group->evicted || !group->sums.queued
                         ? 0
                         : wr_ready_tasks(&group->sums, wr_cost_at(wr_group_first(group)));

    if (group->berth == WR_BERTH_KEPT && ready > 1)
        ready = 1; /* there is one thread for it */
    if (ready && wr_load(&group->in_hands, relaxed))
        ready--;
    return ready;
}

static void set_want(struct weir_group *group)
{
    struct wr_ledger *l = &hall_of(group)->ledger;
    uint32_t ready = ready_tasks(group);
    int64_t more = (int64_t)ready - wr_load(&group->rare->want, relaxed);

    wr_store(&group->rare->want, ready, relaxed);
    if (more)
        wr_ledger_want(l, group->domain, more);
}

/* Whether it waits for a slot, or for the worker to carry it, with a thread kept for it. */
static void set_keeps(struct weir_group *group, bool keeps)
{
    struct wr_domain *domain = &hall_of(group)->domain[group->domain];

    domain->kept += (uint32_t)keeps - (uint32_t)group->rare->keeps;
    group->rare->keeps = keeps;
}

/* Where tasks are not counted the ledger knows of one, and only while a worker that came for it found no slot. */
static void set_asks(struct wr_hall *hall, uint32_t d, bool asks)
{
    struct wr_domain *domain = &hall->domain[d];

    if (domain->asks == asks)
        return;
    domain->asks = asks;
    wr_ledger_want(&hall->ledger, d, asks ? 1 : -1);
}

/* ---- taking ------------------------------------------------------------------------------------ */

/* Whether the first group of a ring is within what is left of the executor's permits; if not, the intake is owed them,
 * after those who asked before it. */
static bool leaves_what_is_owed(struct wr_intake *intake, struct wr_ring *ring,
                                const struct wr_root *root, uint32_t reserved)
{
    uint64_t owed = owed_before(intake);
    uint32_t cost = owed ? wr_ring_first_cost(ring, false) : 0,
             more = cost > reserved ? cost - reserved : 0;

    if (!more ||
        wr_load(&root->held, seq_cst) + more + owed <= wr_load(&root->inflight_max, relaxed))
        return true;
    ask(intake->executor->hall, intake, cost);
    wr_store(&intake->needed, owed + cost < WR_INF ? (uint32_t)(owed + cost) : WR_INF, relaxed);
    return false;
}

/* The first group of a domain on a slot that is promised to it, which has each of its tasks counted. Under the lock. */
static struct weir_group *take_counted(struct wr_intake *intake, uint32_t d, struct wr_root *root,
                                       uint32_t *reserved, bool *stop)
{
    struct wr_hall *hall = intake->executor->hall;
    struct wr_domain *domain = &hall->domain[d];
    struct weir_group *group;

    if (!leaves_what_is_owed(intake, &domain->ring, root, *reserved)) {
        *stop = true;
        return NULL;
    }
    group = wr_ring_take(&domain->ring, root, reserved);
    if (!group) { /* somebody is about to put it back; or the executor's limit is reached */
        uint32_t needed = wr_load(&domain->ring.needed, relaxed);
        *stop = needed > 0;
        wr_store(&intake->needed, needed, relaxed);
        if (needed)
            ask(hall, intake, needed);
        return NULL;
    }
    ask_no_more(hall, intake);
    wr_ledger_take(&hall->ledger, d);
    WR_ASSERT(wr_load(&group->rare->want, relaxed) > 0);
    wr_store(&group->rare->want, wr_load(&group->rare->want, relaxed) - 1, relaxed);
    wr_store(&group->in_hands, WR_HANDS_COUNTED, relaxed);
    set_keeps(group, false); /* what was promised for it is taken */
    return group;
}

/* The same of a slot that is promised to the domain. Under the lock. */
static bool take_promised(struct weir_group *group, void *hall_arg)
{
    struct wr_hall *hall = hall_arg;
    struct wr_share *s = &hall->ledger.share[group->domain];

    if (!s->promised)
        return false;
    wr_ledger_take(&hall->ledger, group->domain);
    s->queued++; /* it does not know of that one */
    hall->domain[group->domain].asks = false;
    take_in_hands(group, &hall->domain[group->domain]);
    return true;
}

/* The first group of such a domain, on a slot that the ledger is asked for. Without one it is barred until there is. */
static struct weir_group *take_asking(struct weir_executor *ex, uint32_t d)
{
    struct wr_hall *hall = ex->hall;
    struct weir_group *group = NULL;

    wr_hall_lock(ex, wr_domain_bit(d) | wr_domain_bit(WR_DEFAULT));
    if (!wr_load(&hall->counts, relaxed)) { /* else it is to be taken in the other way */
        set_asks(hall, d, true);
        group = wr_ring_take_with(&hall->domain[d].ring, take_promised, hall);
        if (!group && hall->ledger.share[d].promised)
            set_asks(hall, d, false); /* another worker has taken the last group */
    }
    wr_hall_unlock(ex);
    return group;
}

/* The first group of a domain whose tasks are not counted, with a slot. */
static struct weir_group *take_uncounted(struct weir_executor *ex, uint32_t d)
{
    struct wr_domain *domain = &ex->hall->domain[d];
    struct weir_group *group = wr_ring_take_with(&domain->ring, take_ceded, domain);

    if (!group && wr_load(&ex->hall->ready, relaxed) & wr_domain_bit(d))
        group = take_asking(ex, d);
    return group;
}

/* The domain whose turn it is, of a set that is not empty. */
static uint32_t domain_in_turn(struct wr_intake *intake, uint64_t set)
{
    uint64_t turn = wr_load(&intake->turn, relaxed), next;
    uint32_t d = turn_domain(turn);

    if (turn_left(turn) && set & wr_domain_bit(d))
        return d;
    d = wr_domain_after(d, set);
    next = turn_of(d, intake->executor->hall->ledger.share[d].weight);
    wr_cas(&intake->turn, &turn, next, acq_rel); /* else another worker has moved it on */
    return d;
}

/* A task of the domain was taken. */
static void turn_goes_on(struct wr_intake *intake, uint32_t d)
{
    uint64_t turn = wr_load(&intake->turn, relaxed);

    if (turn_domain(turn) == d && turn_left(turn))
        wr_cas(&intake->turn, &turn, turn_of(d, turn_left(turn) - 1), acq_rel);
}

struct weir_group *wr_hall_take(struct wr_intake *intake, struct wr_root *root, uint32_t *reserved)
{
    struct weir_executor *ex = intake->executor;
    bool counts = wr_load(&ex->hall->counts, acquire), stop = false;
    uint64_t untried = wr_hall_ready_for(ex->hall, intake);
    struct weir_group *group = NULL;

    if (!untried || wr_load(&ex->hall->counting, acquire))
        return NULL;
    if (counts) {
        wr_lock(&ex->hall->lock);
        untried = ex->hall->ledger.promising & intake->domains;
    }
    while (untried && !group && !stop) {
        uint32_t d = domain_in_turn(intake, untried);
        group = counts ? take_counted(intake, d, root, reserved, &stop) : take_uncounted(ex, d);
        if (group)
            turn_goes_on(intake, d);
        untried &= ~wr_domain_bit(d);
    }
    if (counts && group)
        publish(ex);
    if (counts)
        wr_unlock(&ex->hall->lock);
    return group;
}

/* ---- for a group ------------------------------------------------------------------------------ */

weir_reason wr_domain_admit(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);
    weir_reason reason;
    bool ready;

    if (!group->rare->counted)
        return wr_domain_is_released(group) ? WEIR_REASON_DOMAIN_RELEASED : WEIR_REASON_NONE;
    lock_near(group);
    ready = ready_tasks(group) > wr_load(&group->rare->want, relaxed);
    reason = wr_ledger_admit(&hall->ledger, group->domain, ready);
    if (!reason)
        wr_store(&group->rare->want, wr_load(&group->rare->want, relaxed) + ready, relaxed);
    wr_hall_unlock(group->executor);
    return reason;
}

void wr_domain_withdraw(struct weir_group *group)
{
    if (!group->rare->counted)
        return;
    lock_near(group);
    wr_ledger_withdraw(&hall_of(group)->ledger, group->domain);
    wr_hall_unlock(group->executor);
}

/* A slot is not kept for a domain without a group that could have it. */
static void ask_no_slot(struct weir_group *group)
{
    uint64_t bit = wr_domain_bit(group->domain);
    struct wr_hall *hall = hall_of(group);

    if (wr_load(&hall->ready, seq_cst) & bit ||
        wr_load(&hall->domain[group->domain].slots, seq_cst) != WR_SLOTS_IN_LEDGER)
        return;
    lock_near(group);
    if (!(wr_load(&hall->ready, seq_cst) & bit) && !wr_load(&hall->counts, relaxed))
        set_asks(hall, group->domain, false);
    wr_hall_unlock(group->executor);
}

/* Without the lock `want` and `in_hands` may change under our eyes, but only by a worker that takes a task of the group, and
 * that will come here itself when it has the group's lock. */
bool wr_domain_sync(struct weir_group *group)
{
    if (!group->rare->counted) {
        ask_no_slot(group);
        return wr_executor_has_ready(group->executor);
    }
    if (ready_tasks(group) == wr_load(&group->rare->want, relaxed))
        return wr_executor_has_ready(group->executor);
    lock_near(group);
    set_want(group);
    return wr_hall_unlock(group->executor);
}

void wr_domain_ask_again(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    if (!group->rare->counted)
        return;
    wr_lock(&hall->lock); /* whoever found another first has said so by now */
    wr_store(&hall->domain[group->domain].intake->needed, 0,
             seq_cst); /* pairs with a sleeper's look; see parking.md */
    wr_unlock(&hall->lock);
}

bool wr_domain_is_released(const struct weir_group *group)
{
    return wr_load(&group->executor->hall->domain[group->domain].released, acquire);
}

void wr_domain_started(struct weir_group *group)
{
    put_down(group);
}

void wr_domain_untake(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    if (!group->rare->counted)
        give_slot(group->executor, group->domain);
    put_down(group);
    if (!group->rare->counted)
        return;
    lock_near(group);
    wr_ledger_untake(&hall->ledger, group->domain);
    set_want(group);
    set_keeps(group, group->berth == WR_BERTH_KEPT);
    wr_hall_unlock(group->executor);
}

void wr_domain_give(struct weir_group *group)
{
    give_slot(group->executor, group->domain);
}

bool wr_domain_is_quiet(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    return !group->rare->counted && !wr_load(&hall->contested, relaxed) &&
           !wr_domain_is_released(group);
}

bool wr_domain_hand_over(struct weir_group *group)
{
    bool may;

    if (!group->rare->counted)
        return wr_domain_is_quiet(group);
    lock_near(group);
    may = wr_ledger_hand_over(&hall_of(group)->ledger, group->domain);
    tell_of_room(group->executor); /* nothing else has changed */
    wr_hall_unlock_unchanged(group->executor);
    return may;
}

void wr_domain_hand_back(struct weir_group *group)
{
    if (!group->rare->counted)
        return;
    lock_near(group);
    wr_ledger_hand_back(&hall_of(group)->ledger, group->domain);
    tell_of_room(group->executor);
    wr_hall_unlock_unchanged(group->executor);
}

/* Whether a group of the domain may wait for a slot with a thread in hand. Somebody has to end who has a slot, other than
 * by way of that thread: bodies that wait for tasks may never. Units that are not its own, or not for long, do not
 * count. Under the hall's lock. Waits that begin later, and slots that are taken away, have it looked at again
 * (wr_berths_let_go). */
static bool slot_is_to_come(struct weir_executor *ex, uint32_t d)
{
    const struct wr_share *s = &ex->hall->ledger.share[d];
    uint64_t waits = wr_load(&ex->hall->domain[d].waits, seq_cst);

    return !wr_load(&ex->nested.count, seq_cst) || s->own > waits + s->slots.due;
}

bool wr_domain_keep(struct weir_group *group, bool insists)
{
    struct wr_hall *hall = hall_of(group);
    struct wr_domain *domain = &hall->domain[group->domain];
    bool keep;

    lock_near(group);
    set_want(group);
    publish(group->executor);
    insists = insists && slot_is_to_come(group->executor, group->domain);
    keep = domain->kept < hall->ledger.share[group->domain].promised + insists;
    if (keep)
        set_keeps(group, true);
    wr_hall_unlock_unchanged(group->executor);
    return keep;
}

void wr_domain_unkeep(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    wr_lock(&hall->lock);
    set_keeps(group, false);
    wr_unlock(&hall->lock);
}

/* Under the hall's lock. */
static bool keeps_in_vain(struct weir_executor *ex, uint32_t d)
{
    return ex->hall->domain[d].kept > ex->hall->ledger.share[d].promised && !slot_is_to_come(ex, d);
}

bool wr_domain_keeps_in_vain(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);
    bool in_vain;

    wr_lock(&hall->lock);
    in_vain = group->rare->keeps && keeps_in_vain(group->executor, group->domain);
    wr_unlock(&hall->lock);
    return in_vain;
}

bool wr_hall_keeps_in_vain(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;
    bool in_vain = false;

    wr_lock(&hall->lock);
    for (uint32_t d = 0; d < hall->ledger.count; d++)
        in_vain |= keeps_in_vain(ex, d);
    wr_unlock(&hall->lock);
    return in_vain;
}

weir_reason wr_domain_blocked_by(struct weir_group *group, int64_t *limit, int64_t *held)
{
    struct wr_hall *hall = hall_of(group);
    const struct wr_share *s = &hall->ledger.share[group->domain];
    bool blocked;

    lock_near(group);
    blocked = s->promised == 0 &&
              (group->rare->counted || !wr_ledger_can_grant(&hall->ledger, group->domain));
    if (blocked) {
        int64_t elsewhere = (int64_t)s->borrowed + s->strays;
        *limit = s->slots.limit + elsewhere;
        *held = (int64_t)s->own + s->charged + elsewhere;
    }
    wr_hall_unlock_unchanged(group->executor);
    return blocked ? WEIR_REASON_DOMAIN_SLOTS : WEIR_REASON_NONE;
}

/* Stuck tasks of d that stand on units of the default domain's, having used up their own. */
static uint64_t stuck_on_default(const struct wr_hall *hall, uint32_t d)
{
    uint64_t stuck = hall->domain[d].node.stuck, own = hall->ledger.share[d].slots.limit;

    return d != WR_DEFAULT && stuck > own ? stuck - own : 0;
}

/* While every unit is with its owner: our own units first, then idle ones of the default domain's. */
static bool slot_is_left(const struct wr_hall *hall, uint32_t d)
{
    const struct wr_ledger *l = &hall->ledger;
    uint64_t borrowed = 0, most = l->share[WR_DEFAULT].slots.limit;

    if (d != WR_DEFAULT && hall->domain[d].node.stuck < l->share[d].slots.limit)
        return true;
    if (d != WR_DEFAULT && !l->share[d].slots_reserved)
        return false;
    for (uint32_t i = 0; i < l->count; i++)
        borrowed += stuck_on_default(hall, i);
    return hall->domain[WR_DEFAULT].node.stuck + borrowed < most &&
           (d == WR_DEFAULT || borrowed + l->floor < most);
}

/* Otherwise in a copy of the ledger, in which all but stuck tasks give their slots back, and only d wants one. */
static bool slot_is_left_in_copy(struct wr_hall *hall, uint32_t d, uint64_t *lenders)
{
    struct wr_ledger *copy = &hall->supposed;

    wr_ledger_copy(copy, &hall->ledger);
    for (uint32_t i = 0; i < copy->count; i++)
        wr_ledger_want(copy, i, -(int64_t)copy->share[i].want);
    for (uint32_t i = 0; i < copy->count; i++) {
        const struct wr_share *s = &copy->share[i];
        while ((uint64_t)s->own + s->borrowed + s->strays > hall->domain[i].node.stuck)
            wr_ledger_give(copy, i);
    }
    wr_ledger_want(copy, d, 1);
    *lenders = wr_ledger_lenders(copy, d);
    return copy->share[d].promised;
}

/* A set: the domains that have lent slots and not recalled them, since they may do so for a task, and lend them anew; and the
 * one that has yet to give back d's, since it may be lent some for a task of its own. Each sample is an event, so that waits are
 * looked at again. */
static uint64_t slot_movers(const struct wr_ledger *l, uint32_t d)
{
    uint64_t movers = l->share[d].slots.forced ? wr_domain_bit(l->share[d].receiver) : 0;

    for (uint32_t i = 0; i < l->count; i++)
        if (l->share[i].slots.lent > l->share[i].slots.owed)
            movers |= wr_domain_bit(i);
    return l->lending.on ? movers & ~wr_domain_bit(d) : 0;
}

static bool has_slots(const struct wr_ledger *l, uint32_t d)
{
    return l->share[d].slots.amount ||
           (l->share[d].slots_reserved && l->share[WR_DEFAULT].slots.amount > l->floor);
}

struct wr_share wr_hall_look(struct weir_executor *ex, uint32_t d, int64_t *used)
{
    struct wr_hall *hall = ex->hall;
    struct wr_domain *domain = &hall->domain[d];
    struct wr_share s;

    wr_hall_lock(ex, WR_ALL_DOMAINS);
    wr_lock(&domain->ring.lock); /* a slot is taken and in hands at one moment */
    s = hall->ledger.share[d];
    *used = (int64_t)s.own + s.borrowed + s.strays - wr_load(&domain->in_hands, relaxed);
    if (domain->asks)
        *used -= s.promised; /* to a worker that has yet to see whether there is a task */
    wr_unlock(&domain->ring.lock);
    s.peak = wr_load(&domain->peak, relaxed) > s.peak ? wr_load(&domain->peak, relaxed) : s.peak;
    wr_hall_unlock_unchanged(ex);
    return s;
}

bool wr_domain_has_slots(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);
    bool has;

    wr_lock(&hall->lock);
    has = has_slots(&hall->ledger, group->domain);
    wr_unlock(&hall->lock);
    return has;
}

bool wr_domain_may_get_slot(struct weir_group *group, struct wr_hopes *hopes)
{
    struct wr_hall *hall = hall_of(group);
    const struct wr_share *s = &hall->ledger.share[group->domain];
    bool may;

    wr_hall_lock(group->executor, WR_ALL_DOMAINS);
    *hopes = (struct wr_hopes){ .movers = slot_movers(&hall->ledger, group->domain) };
    /* What waits there is being refused; or waits until it is given some; or one is there: it may be recalled, but goes
     * back when a task was on it. */
    if (s->released || !has_slots(&hall->ledger, group->domain) || s->promised || group->in_hands)
        may = true;
    else if (hall->ledger.moved[WR_SLOTS] || hall->ledger.lending.on)
        may = slot_is_left_in_copy(hall, group->domain, &hopes->lenders);
    else
        may = slot_is_left(hall, group->domain);
    wr_hall_unlock_unchanged(group->executor);
    return may;
}

uint32_t wr_domain_owed(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);
    struct wr_intake *intake = hall->domain[group->domain].intake;
    uint64_t owed;

    wr_lock(&hall->lock);
    owed = owed_before(intake);
    owed += owed > 0; /* and at least one for its own */
    for (uint32_t d = 0; d < hall->ledger.count; d++) {
        uint32_t needed = wr_load(&hall->domain[d].ring.needed, relaxed);
        if (hall->domain[d].intake == intake && hall->ledger.share[d].promised && needed > owed)
            owed = needed;
    }
    wr_unlock(&hall->lock);
    return owed < WR_INF ? (uint32_t)owed : WR_INF;
}

/* What the first in line of an intake needs now: it may be another than when it was refused. Under the hall's lock. */
static uint32_t first_needs(const struct wr_intake *intake)
{
    struct wr_hall *hall = intake->executor->hall;
    uint32_t d = turn_domain(wr_load(&intake->turn, relaxed));

    if (!(hall->ledger.promising & intake->domains & wr_domain_bit(d)))
        return 0;
    return wr_ring_first_cost(&hall->domain[d].ring, true);
}

/* Whether the domain whose turn it is was refused permits. If it is the group's own, and the group is yet to be called for a
 * thread, it will go before all others there. Under the hall's lock. */
static bool is_held_up(const struct wr_intake *intake, const struct weir_group *group)
{
    struct wr_hall *hall = intake->executor->hall;
    uint32_t d = turn_domain(wr_load(&intake->turn, relaxed));

    return wr_load(&hall->domain[d].ring.needed, relaxed) &&
           !(group->berth == WR_BERTH_AWAITED && group->domain == d);
}

uint32_t wr_domain_most_owed(struct weir_group *group)
{
    struct weir_executor *ex = group->executor;
    struct wr_hall *hall = hall_of(group);
    struct wr_intake *intake = hall->domain[group->domain].intake;
    uint32_t most = 0;

    wr_lock(&hall->lock);
    for (uint32_t d = 0; d < hall->ledger.count; d++) {
        struct wr_intake *other = hall->domain[d].intake;
        uint32_t needs;
        if (other != intake && !goes_before(ex, other, intake))
            continue;
        if (other == intake && !is_held_up(intake, group))
            continue;
        needs = first_needs(other);
        most = needs > most ? needs : most;
    }
    wr_unlock(&hall->lock);
    return most;
}

/* ---- life -------------------------------------------------------------------------------------- */

static uint32_t count_from(int64_t amount)
{
    uint32_t count = 0;

    wr_queue_from(&count, amount);
    return count;
}

static void sample(struct wr_alarm *alarm, weir_time now)
{
    struct wr_hall *hall = WR_CONTAINER(alarm, struct wr_hall, sampling);
    struct weir_executor *ex = hall->domain[WR_DEFAULT].intake->executor;
    int64_t period = ex->policy.given.lending.period_ms * 1000000;

    wr_hall_lock(ex, WR_ALL_DOMAINS);
    wr_ledger_sample(&hall->ledger);
    wr_hall_unlock(ex);
    wr_executor_wake(ex);
    wr_waits_suspect(ex);          /* a loan that was hoped for may not have come */
    wr_room_made(ex);              /* who has a slot now needs no place any more */
    while (hall->sample_at <= now) /* a late look does not make the next one late */
        hall->sample_at += period;
    wr_clock_set(ex, &hall->sampling, hall->sample_at);
}

static struct wr_stock stock_from(int64_t amount, int64_t lend_max)
{
    return (struct wr_stock){ .amount = count_from(amount),
                              .lend_max = count_from(lend_max),
                              .lends_half = !lend_max };
}

static void fill_ledger(struct wr_ledger *l, const struct wr_policy *policy)
{
    const weir_policy *given = &policy->given;
    const weir_lending *lending = &given->lending;

    l->total = (uint32_t)given->slots;
    wr_queue_from(&l->places_total, given->queue_places);
    l->floor = (uint32_t)given->default_floor;
    l->lending = (struct wr_lending){ .on = lending->period_ms > 0,
                                      .low = (uint32_t)lending->low_percent,
                                      .high = (uint32_t)lending->high_percent,
                                      .hold = (uint32_t)lending->hold,
                                      .headroom = (uint32_t)lending->headroom_percent,
                                      .step = (uint32_t)lending->step };
    for (uint32_t d = 0; d < l->count; d++) {
        const weir_domain_policy *from = &policy->domain[d];
        l->share[d] = (struct wr_share){ .slots = stock_from(from->slots, from->lend_max),
                                         .places = stock_from(from->queue, from->queue_lend_max),
                                         .weight = (uint16_t)from->weight,
                                         .slots_reserved = from->slots_mode == WEIR_RESERVED,
                                         .places_reserved = from->queue_mode == WEIR_RESERVED };
        l->apart |= from->workers ? wr_domain_bit(d) : 0;
    }
    wr_ledger_init(l);
}

static bool places_are_limited(const struct wr_ledger *l)
{
    bool limited = l->places_total != WR_INF;

    for (uint32_t d = 0; d < l->count; d++)
        limited |= l->share[d].places.amount != WR_INF;
    return limited;
}

/* The ledger is told of the group's tasks from now on, but for one that a worker has in its hands. Under its lock. */
static void count_group(struct weir_group *group)
{
    struct wr_ring *ring = wr_group_ring(group);

    lock_near(group);
    wr_lock(&ring->lock); /* a slot is taken, and its group out of the ring, at one moment */
    if (!group->rare->counted) {
        uint8_t uncounted = WR_HANDS_UNCOUNTED;
        bool taken = wr_cas(&group->in_hands, &uncounted, WR_HANDS_COUNTED, acq_rel);
        if (taken)
            wr_sub(&hall_of(group)->domain[group->domain].in_hands, 1, relaxed);
        hall_of(group)->ledger.share[group->domain].queued += (int64_t)group->sums.queued - taken;
        group->rare->counted = true;
    }
    wr_unlock(&ring->lock);
    set_want(group);
    wr_hall_unlock(group->executor);
}

void wr_hall_count(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;
    struct weir_group *group = NULL;

    if (!hall || wr_load(&hall->counts, acquire))
        return;
    wr_hall_lock(ex, WR_ALL_DOMAINS);
    wr_store(&hall->counting, true, seq_cst);
    wr_store(&hall->counts, true, seq_cst);
    for (uint32_t d = 0; d < hall->ledger.count; d++)
        set_asks(hall, d, false);
    wr_hall_unlock(ex);
    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group);
        if (!group->evicted)
            count_group(group);
        wr_unlock(&group->lock);
    }
    wr_store(&hall->counting, false, seq_cst);
    wr_executor_wake(ex);
}

void wr_domain_join(struct weir_group *group)
{
    wr_lock(&hall_of(group)->lock);
    group->rare->counted = wr_load(&hall_of(group)->counts, seq_cst);
    wr_unlock(&hall_of(group)->lock);
}

/* Whether more than slots is limited, so that the ledger has to know of each task that waits. */
static bool must_count(const struct wr_hall *hall, const struct wr_policy *policy)
{
    bool on_threads = policy->given.stall_policy == WEIR_STALL_TO_THREADS;

    for (uint32_t d = 0; d < hall->ledger.count; d++)
        on_threads |= policy->domain[d].run_on == WEIR_THREADS;
    return on_threads || places_are_limited(&hall->ledger) || hall->ledger.lending.on ||
           wr_limit_from(policy->given.inflight_max) != WR_INF;
}

int wr_hall_new(struct weir_executor *ex)
{
    uint32_t count = ex->policy.domain_count;
    struct wr_hall *hall = wr_os_alloc(sizeof(*hall));

    if (!hall)
        return WEIR_ENOMEM;
    hall->ledger.count = count;
    hall->ledger.share = wr_os_alloc(count * sizeof(hall->ledger.share[0]));
    hall->ledger.loan = wr_os_alloc(wr_ledger_loans(count) * sizeof(hall->ledger.loan[0]));
    hall->supposed.share = wr_os_alloc(count * sizeof(hall->ledger.share[0]));
    hall->supposed.loan = wr_os_alloc(wr_ledger_loans(count) * sizeof(hall->ledger.loan[0]));
    hall->domain = wr_os_alloc(count * sizeof(hall->domain[0]));
    ex->hall = hall;
    if (!hall->ledger.share || !hall->ledger.loan || !hall->supposed.share ||
        !hall->supposed.loan || !hall->domain) {
        wr_hall_delete(ex);
        return WEIR_ENOMEM;
    }
    fill_ledger(&hall->ledger, &ex->policy);
    wr_store(&hall->counts, must_count(hall, &ex->policy), relaxed);
    wr_store(&hall->barred, barred_domains(hall), relaxed);
    for (uint32_t d = 0; d < count; d++) {
        struct wr_domain *domain = &hall->domain[d];
        wr_ring_init(&domain->ring, &hall->ready, wr_domain_bit(d));
        wr_store(&domain->slots, WR_SLOTS_IN_LEDGER, relaxed);
        domain->intake = ex->policy.domain[d].workers ? &domain->own : &ex->intake;
        if (domain->intake == &domain->own)
            wr_intake_init(&domain->own, ex);
        domain->intake->domains |= wr_domain_bit(d);
    }
    wr_alarm_init(&hall->sampling, sample);
    return 0;
}

void wr_hall_delete(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;

    if (!hall)
        return;
    wr_os_free(hall->ledger.share);
    wr_os_free(hall->ledger.loan);
    wr_os_free(hall->supposed.share);
    wr_os_free(hall->supposed.loan);
    wr_os_free(hall->domain);
    wr_os_free(hall);
    ex->hall = NULL;
}

int wr_hall_start(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;
    int rc = 0;

    for (uint32_t d = 0; hall && d < hall->ledger.count && !rc; d++)
        if (hall->domain[d].intake == &hall->domain[d].own)
            rc = wr_intake_start(&hall->domain[d].own, ex->policy.domain[d].workers);
    if (!rc && hall && hall->ledger.lending.on)
        rc = wr_clock_start(ex);
    if (!rc && hall && hall->ledger.lending.on) {
        hall->sample_at = wr_os_now() + ex->policy.given.lending.period_ms * 1000000;
        wr_clock_set(ex, &hall->sampling, hall->sample_at);
    }
    return rc;
}

void wr_hall_stop(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;

    for (uint32_t d = 0; hall && d < hall->ledger.count; d++)
        wr_runtime_stop(hall->domain[d].own.runtime);
}

void wr_hall_delete_runtimes(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;

    for (uint32_t d = 0; hall && d < hall->ledger.count; d++) {
        struct wr_intake *own = &hall->domain[d].own;
        wr_runtime_delete(own->runtime);
        own->runtime = NULL;
    }
}
