/* The shares of the domains of a policy: the ledger as it is at first.
 * SPDX-License-Identifier: MIT */
#include "policy/policy.h"

static struct wr_lending lending_of(const weir_lending *given)
{
    return (struct wr_lending){ .on = given->period_ms > 0,
                                .low = (uint32_t)given->low_percent,
                                .high = (uint32_t)given->high_percent,
                                .hold = (uint32_t)given->hold,
                                .headroom = (uint32_t)given->headroom_percent,
                                .step = (uint32_t)given->step };
}

static struct wr_share share_of(const weir_domain_policy *given)
{
    struct wr_share s = { .slots.lends_half = !given->lend_max,
                          .places.lends_half = !given->queue_lend_max,
                          .weight = (uint16_t)given->weight,
                          .slots_reserved = given->slots_mode == WEIR_RESERVED,
                          .places_reserved = given->queue_mode == WEIR_RESERVED };

    wr_queue_from(&s.slots.amount, given->slots);
    wr_queue_from(&s.slots.lend_max, given->lend_max);
    wr_queue_from(&s.places.amount, given->queue);
    wr_queue_from(&s.places.lend_max, given->queue_lend_max);
    return s;
}

/* With places or lending the ledger has to know how many tasks stand in queues; if more than slots is limited, how many wait for
 * a slot. */
static enum wr_counts must_count(const struct wr_policy *policy, const struct wr_ledger *l)
{
    bool queued = l->lending.on, ready = policy->given.stall_policy == WEIR_STALL_TO_THREADS ||
                                         wr_limit_from(policy->given.inflight_max) != WR_INF;

    for (uint32_t d = 0; d < l->count; d++) {
        queued |= l->share[d].places.amount != WR_INF;
        ready |= policy->domain[d].run_on == WEIR_THREADS;
    }
    return queued ? WR_COUNTS_QUEUED : ready ? WR_COUNTS_READY : WR_COUNTS_SLOTS;
}

enum wr_counts wr_policy_fill_ledger(const struct wr_policy *policy, struct wr_ledger *l)
{
    l->total = (uint32_t)policy->given.slots;
    wr_queue_from(&l->places_total, policy->given.queue_places);
    l->floor = (uint32_t)policy->given.default_floor;
    l->lending = lending_of(&policy->given.lending);
    for (uint32_t d = 0; d < l->count; d++) {
        l->share[d] = share_of(&policy->domain[d]);
        l->apart |= policy->domain[d].workers ? wr_domain_bit(d) : 0;
    }
    wr_ledger_init(l);
    return must_count(policy, l);
}
