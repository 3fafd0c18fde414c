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

static void publish_intake(struct wr_hall *hall, struct wr_intake *intake, uint32_t ready)
{
    if (!ready)
        ask_no_more(hall, intake);
    if (ready == wr_load(&intake->ready, relaxed) && !wr_load(&intake->needed, relaxed))
        return;
    wr_store(&intake->needed, 0, relaxed);    /* it is to be asked again */
    wr_store(&intake->ready, ready, seq_cst); /* pairs with a sleeper's look; see parking.md */
}

/* After every change: what each set of workers may pull, and whether there is room for those who wait for it.
 * Answers whether anything is to be pulled. */
bool wr_hall_publish(struct weir_executor *ex)
{
    struct wr_hall *hall = ex->hall;
    struct wr_ledger *l = &hall->ledger;
    uint32_t shared = l->promised;

    for (uint64_t apart = l->apart; apart; apart &= apart - 1) {
        uint32_t d = (uint32_t)__builtin_ctzll(apart);
        publish_intake(hall, &hall->domain[d].own, l->share[d].promised);
        shared -= l->share[d].promised;
    }
    publish_intake(hall, &ex->intake, shared);
    bool contested = wr_ledger_is_contested(l);
    if (contested != wr_load(&hall->contested, relaxed))
        wr_store(&hall->contested, contested, relaxed);
    if (l->promised != wr_load(&hall->ledger_promised, relaxed))
        wr_store(&hall->ledger_promised, l->promised, seq_cst);
    tell_of_room(ex);
    if (WR_UNLIKELY(l->shifted)) {
        l->shifted = false;
        wr_waits_suspect(ex);
    }
    return l->promised > 0;
}

/* How many tasks the group is ready for, not counting one that a worker has in its hands. */
static uint32_t ready_tasks(struct weir_group *group)
{
    uint32_t ready = group->evicted || !group->sums.queued
                         ? 0
                         : wr_ready_tasks(&group->sums, wr_cost_at(wr_group_first(group)));

    if (group->berth == WR_BERTH_KEPT && ready > 1)
        ready = 1; /* there is one thread for it */
    bool taken = wr_load(&group->taken, relaxed);
    return ready > taken ? ready - taken : 0;
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

static struct weir_group *take_from(struct wr_intake *intake, struct wr_root *root,
                                    uint32_t *reserved, bool *stop)
{
    struct wr_hall *hall = intake->executor->hall;
    uint32_t d = intake->turn;
    struct wr_domain *domain = &hall->domain[d];
    struct weir_group *group = NULL;

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
    hall->ledger.share[d].queued += !group->rare->counted;
    WR_ASSERT(wr_load(&group->rare->want, relaxed) > 0);
    wr_store(&group->rare->want, wr_load(&group->rare->want, relaxed) - 1, relaxed);
    wr_store(&group->taken, true, relaxed);
    set_keeps(group, false); /* what was promised for it is taken */
    intake->turn_left--;
    return group;
}

/* Domains of an intake that have slots for its workers. */
static uint64_t promising_for(const struct wr_intake *intake)
{
    return intake->executor->hall->ledger.promising & intake->domains;
}

/* The domain whose turn it is, of a set that is not empty. */
static void next_turn(struct wr_intake *intake, uint64_t set)
{
    if (intake->turn_left && set & wr_domain_bit(intake->turn))
        return;
    intake->turn = wr_domain_after(intake->turn, set);
    intake->turn_left = intake->executor->hall->ledger.share[intake->turn].weight;
}

struct weir_group *wr_hall_take(struct wr_intake *intake, struct wr_root *root, uint32_t *reserved)
{
    struct weir_executor *ex = intake->executor;
    struct wr_hall *hall = ex->hall;
    struct weir_group *group = NULL;
    uint64_t untried;
    bool stop = false;

    if (wr_load(&intake->ready, relaxed) == 0)
        return NULL;
    wr_lock(&hall->lock);
    for (untried = promising_for(intake); untried && !group && !stop;) {
        next_turn(intake, untried);
        group = take_from(intake, root, reserved, &stop);
        untried &= ~wr_domain_bit(intake->turn);
    }
    if (group)
        wr_hall_publish(ex);
    wr_unlock(&hall->lock);
    return group;
}

/* ---- for a group ------------------------------------------------------------------------------ */

weir_reason wr_domain_admit(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);
    weir_reason reason;
    bool ready;

    if (!group->rare
             ->counted) /* what it is ready for is told with everything else: wr_domain_sync */
        return wr_domain_is_released(group) ? WEIR_REASON_DOMAIN_RELEASED : WEIR_REASON_NONE;
    wr_lock(&hall->lock);
    ready = ready_tasks(group) > wr_load(&group->rare->want, relaxed);
    reason = wr_ledger_admit(&hall->ledger, group->domain, ready);
    if (!reason)
        wr_store(&group->rare->want, wr_load(&group->rare->want, relaxed) + ready, relaxed);
    wr_hall_publish(group->executor);
    wr_unlock(&hall->lock);
    return reason;
}

void wr_domain_withdraw(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    if (!group->rare->counted)
        return;
    wr_lock(&hall->lock);
    wr_ledger_withdraw(&hall->ledger, group->domain);
    wr_hall_publish(group->executor);
    wr_unlock(&hall->lock);
}

/* Without the lock `want` and `taken` may change under our eyes, but only by a worker that takes a task of the group, and
 * that will come here itself when it has the group's lock. */
bool wr_domain_sync(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);
    bool ready;

    if (ready_tasks(group) == wr_load(&group->rare->want, relaxed))
        return wr_load(&hall->ledger_promised, relaxed) > 0;
    wr_lock(&hall->lock);
    set_want(group);
    ready = wr_hall_publish(group->executor);
    wr_unlock(&hall->lock);
    return ready;
}

void wr_domain_ask_again(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

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
    wr_store(&group->taken, false,
             relaxed); /* by the worker that took it, so nobody takes it meanwhile */
}

void wr_domain_untake(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    wr_lock(&hall->lock);
    wr_store(&group->taken, false, relaxed);
    wr_ledger_untake(&hall->ledger, group->domain);
    hall->ledger.share[group->domain].queued -= !group->rare->counted;
    set_want(group);
    set_keeps(group, group->berth == WR_BERTH_KEPT);
    wr_hall_publish(group->executor);
    wr_unlock(&hall->lock);
}

void wr_domain_give(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    wr_lock(&hall->lock);
    wr_ledger_give(&hall->ledger, group->domain);
    wr_hall_publish(group->executor);
    wr_unlock(&hall->lock);
}

bool wr_domain_is_quiet(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    return !group->rare->counted && !wr_load(&hall->contested, relaxed) &&
           !wr_domain_is_released(group);
}

bool wr_domain_hand_over(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);
    bool may;

    if (!group->rare->counted)
        return wr_domain_is_quiet(group);
    wr_lock(&hall->lock);
    may = wr_ledger_hand_over(&hall->ledger, group->domain);
    tell_of_room(group->executor); /* nothing else has changed */
    wr_unlock(&hall->lock);
    return may;
}

void wr_domain_hand_back(struct weir_group *group)
{
    struct wr_hall *hall = hall_of(group);

    if (!group->rare->counted)
        return;
    wr_lock(&hall->lock);
    wr_ledger_hand_back(&hall->ledger, group->domain);
    tell_of_room(group->executor);
    wr_unlock(&hall->lock);
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

    wr_lock(&hall->lock);
    set_want(group);
    wr_hall_publish(group->executor);
    insists = insists && slot_is_to_come(group->executor, group->domain);
    keep = domain->kept < hall->ledger.share[group->domain].promised + insists;
    if (keep)
        set_keeps(group, true);
    wr_unlock(&hall->lock);
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

    wr_lock(&hall->lock);
    blocked = s->promised == 0;
    if (blocked) {
        int64_t elsewhere = (int64_t)s->borrowed + s->strays;
        *limit = s->slots.limit + elsewhere;
        *held = (int64_t)s->own + s->charged + elsewhere;
    }
    wr_unlock(&hall->lock);
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

    wr_lock(&hall->lock);
    *hopes = (struct wr_hopes){ .movers = slot_movers(&hall->ledger, group->domain) };
    /* What waits there is being refused; or waits until it is given some; or one is there: it may be recalled, but goes
     * back when a task was on it. */
    if (s->released || !has_slots(&hall->ledger, group->domain) || s->promised || group->taken)
        may = true;
    else if (hall->ledger.moved[WR_SLOTS] || hall->ledger.lending.on)
        may = slot_is_left_in_copy(hall, group->domain, &hopes->lenders);
    else
        may = slot_is_left(hall, group->domain);
    wr_unlock(&hall->lock);
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

    if (!(promising_for(intake) & wr_domain_bit(intake->turn)))
        return 0;
    return wr_ring_first_cost(&hall->domain[intake->turn].ring, true);
}

/* Whether the domain whose turn it is was refused permits. If it is the group's own, and the group is yet to be called for a
 * thread, it will go before all others there. Under the hall's lock. */
static bool is_held_up(const struct wr_intake *intake, const struct weir_group *group)
{
    struct wr_hall *hall = intake->executor->hall;

    return wr_load(&hall->domain[intake->turn].ring.needed, relaxed) &&
           !(group->berth == WR_BERTH_AWAITED && group->domain == intake->turn);
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

    wr_lock(&hall->lock);
    wr_ledger_sample(&hall->ledger);
    wr_hall_publish(ex);
    wr_unlock(&hall->lock);
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

/* The ledger is told of the group's tasks from now on. Under the group's lock and the hall's. */
static void count_group(struct weir_group *group)
{
    uint32_t taken = wr_load(&group->taken, relaxed);

    if (!group->rare->counted)
        hall_of(group)->ledger.share[group->domain].queued += (int64_t)group->sums.queued - taken;
    group->rare->counted = true;
}

void wr_hall_count(struct weir_executor *ex)
{
    struct weir_group *group = NULL;

    if (wr_swap(&ex->hall->counts, true, seq_cst))
        return;
    while ((group = wr_table_walk(&ex->table, group))) {
        wr_group_lock(group);
        wr_lock(&ex->hall->lock);
        if (!group->evicted)
            count_group(group);
        wr_unlock(&ex->hall->lock);
        wr_unlock(&group->lock);
    }
}

void wr_domain_join(struct weir_group *group)
{
    wr_lock(&hall_of(group)->lock);
    group->rare->counted = wr_load(&hall_of(group)->counts, seq_cst);
    wr_unlock(&hall_of(group)->lock);
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
    wr_store(&hall->counts, places_are_limited(&hall->ledger) || hall->ledger.lending.on, relaxed);
    for (uint32_t d = 0; d < count; d++) {
        struct wr_domain *domain = &hall->domain[d];
        wr_ring_init(&domain->ring);
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
