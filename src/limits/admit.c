/* The sums of admission; see admit.h.
 * SPDX-License-Identifier: MIT */
#include "limits/admit.h"

#include "base/assert.h"

/* What is left of a limit, of which the group's own tasks have taken so much. */
static uint32_t left(const struct wr_sums *s, uint32_t limit, uint32_t taken)
{
    uint64_t charged = (uint64_t)taken + s->carried;

    if (limit == WR_INF)
        return WR_INF;
    return charged < limit ? (uint32_t)(limit - charged) : 0;
}

/* The same, were it not closed. */
static uint32_t free_if_open(const struct wr_sums *s)
{
    uint32_t run = left(s, s->limit, s->running), fly = left(s, s->inflight_max, s->inflight);

    return run < fly ? run : fly;
}

uint32_t wr_free(const struct wr_sums *s)
{
    return s->closed ? 0 : free_if_open(s);
}

bool wr_lacks_only_thread(const struct wr_sums *s, uint32_t cost)
{
    return s->closed != WR_SHUT && cost <= free_if_open(s);
}

uint32_t wr_ready_tasks(const struct wr_sums *s, uint32_t first)
{
    uint32_t free = wr_free(s);

    if (!s->queued || first > free)
        return 0;
    if (s->queued_cost <= free)
        return s->queued;
    return s->queued_cost == s->queued ? free : 1;
}

static uint64_t ready_cost(const struct wr_sums *s)
{
    uint32_t free = wr_free(s);

    return s->queued_cost < free ? s->queued_cost : free;
}

uint64_t wr_claims(const struct wr_sums *s)
{
    return s->inflight + ready_cost(s);
}

/* Tasks that take up places of the group's queue. Those that are ready do not; with mixed costs the
 * queue counts as ready only as a whole. */
static uint32_t places_taken(const struct wr_sums *s)
{
    uint32_t free = wr_free(s);

    if (s->queued_cost <= free)
        return 0;
    return s->queued_cost == s->queued ? s->queued - free : s->queued;
}

static bool limited(const struct wr_root *root)
{
    return wr_load(&root->inflight_max, relaxed) != WR_INF;
}

bool wr_can_ever(const struct wr_sums *s, const struct wr_root *root, uint32_t cost)
{
    return cost <= s->limit && cost <= s->inflight_max &&
           cost <= wr_load(&root->inflight_max, relaxed);
}

/* Each change begins with claims_before and ends with reclaim, which brings the group's share of `claimed` to what it is now.
 * Without a limit of the executor's no group is counted. */
static uint64_t claims_before(const struct wr_sums *s)
{
    return s->counted ? wr_claims(s) : 0;
}

static void reclaim(struct wr_sums *s, struct wr_root *root, uint64_t before)
{
    uint64_t now = claims_before(s);

    if (now != before)
        wr_add(&root->claimed, now - before, seq_cst); /* wraps around when it shrinks */
}

/* The most permits that tasks in flight and waiting ones may claim together. */
static uint64_t room_in_all(const struct wr_root *root)
{
    uint32_t queue_max = wr_load(&root->queue_max, relaxed);

    return queue_max == WR_INF ? UINT64_MAX
                               : (uint64_t)wr_load(&root->inflight_max, relaxed) + queue_max;
}

bool wr_has_room(const struct wr_root *root, uint32_t cost)
{
    return wr_load(&root->claimed, seq_cst) + cost <= room_in_all(root);
}

bool wr_is_full(const struct wr_sums *s, uint32_t cost)
{
    return s->queued_cost + cost > wr_free(s) && s->queue_max != WR_INF &&
           places_taken(s) >= s->queue_max;
}

/* Adds a claim of `cost` if it leaves `claimed` within what may run and wait. */
static bool claim(struct wr_root *root, uint32_t cost)
{
    uint64_t claimed = wr_load(&root->claimed, relaxed);
    uint64_t room = room_in_all(root);

    do {
        if (claimed + cost > room)
            return false;
    } while (!wr_cas(&root->claimed, &claimed, claimed + cost, seq_cst));
    return true;
}

weir_reason wr_admit(struct wr_sums *s, struct wr_root *root, uint32_t cost)
{
    if (s->queued_cost + cost <= wr_free(s)) { /* only the executor can be in the way */
        if (s->counted && !claim(root, cost))
            return WEIR_REASON_GLOBAL_QUEUE_FULL;
        s->queued++;
        s->queued_cost += cost;
        return WEIR_REASON_NONE;
    }
    if (wr_is_full(s, cost))
        return left(s, s->inflight_max, s->inflight) < left(s, s->limit, s->running)
                   ? WEIR_REASON_GROUP_INFLIGHT_QUEUE_FULL
                   : WEIR_REASON_GROUP_QUEUE_FULL;
    uint64_t before = claims_before(s);
    s->queued++;
    s->queued_cost += cost;
    reclaim(s, root, before);
    return WEIR_REASON_NONE;
}

static bool hold(struct wr_root *root, uint32_t cost)
{
    uint64_t held = wr_load(&root->held, seq_cst);

    do {
        if (held + cost > wr_load(&root->inflight_max, relaxed))
            return false;
    } while (!wr_cas(&root->held, &held, held + cost, seq_cst));
    return true;
}

weir_reason wr_blocked_by(const struct wr_sums *s, const struct wr_root *root, uint32_t cost)
{
    if (s->closed)
        return s->closed == WR_SHUT ? WEIR_REASON_GATED : WEIR_REASON_NO_THREAD;
    if ((uint64_t)s->running + s->carried + cost > s->limit)
        return WEIR_REASON_GROUP_LIMIT;
    if ((uint64_t)s->inflight + s->carried + cost > s->inflight_max)
        return WEIR_REASON_GROUP_INFLIGHT;
    if (limited(root) &&
        wr_load(&root->held, seq_cst) + cost > wr_load(&root->inflight_max, relaxed))
        return WEIR_REASON_GLOBAL_INFLIGHT;
    return WEIR_REASON_NONE;
}

bool wr_reserve(struct wr_root *root, uint32_t cost, uint32_t *reserved)
{
    if (!limited(root) || cost <= *reserved)
        return true;
    if (!hold(root, cost - *reserved))
        return false;
    *reserved = cost;
    return true;
}

void wr_unreserve(struct wr_root *root, uint32_t *reserved)
{
    if (*reserved)
        wr_sub(&root->held, *reserved, seq_cst);
    *reserved = 0;
}

weir_reason wr_start(struct wr_sums *s, struct wr_root *root, uint32_t cost, uint32_t *reserved)
{
    if (s->closed || (uint64_t)s->running + s->carried + cost > s->limit ||
        (uint64_t)s->inflight + s->carried + cost > s->inflight_max)
        return wr_blocked_by(s, root, cost);
    if (s->counted) {
        uint32_t had = *reserved < cost ? *reserved : cost;
        if (cost > had && !hold(root, cost - had))
            return WEIR_REASON_GLOBAL_INFLIGHT;
        *reserved -= had;
    }
    uint64_t before = claims_before(s);
    WR_ASSERT(s->queued > 0);
    s->queued--;
    s->queued_cost -= cost;
    s->running += cost;
    s->inflight += cost;
    reclaim(s, root, before);
    return WEIR_REASON_NONE;
}

void wr_withdraw(struct wr_sums *s, struct wr_root *root, uint32_t cost)
{
    uint64_t before = claims_before(s);

    WR_ASSERT(s->queued > 0);
    s->queued--;
    s->queued_cost -= cost;
    reclaim(s, root, before);
}

void wr_pend(struct wr_sums *s, struct wr_root *root, uint32_t cost)
{
    uint64_t before = claims_before(s);

    WR_ASSERT(s->running >= cost);
    s->running -= cost;
    reclaim(s, root, before);
}

void wr_settle_pending(struct wr_sums *s, struct wr_root *root, uint32_t cost)
{
    uint64_t before = claims_before(s);

    WR_ASSERT(s->inflight >= cost);
    s->inflight -= cost;
    if (s->counted)
        wr_sub(&root->held, cost, seq_cst);
    reclaim(s, root, before);
}

void wr_finish(struct wr_sums *s, struct wr_root *root, uint32_t cost)
{
    uint64_t before = claims_before(s);

    WR_ASSERT(s->running >= cost && s->inflight >= cost);
    s->running -= cost;
    s->inflight -= cost;
    if (s->counted)
        wr_sub(&root->held, cost, seq_cst);
    reclaim(s, root, before);
}

bool wr_hand_over(struct wr_sums *s, struct wr_root *root, uint32_t cost)
{
    uint64_t before = claims_before(s);

    if (s->closed == WR_SHUT || (uint64_t)s->running + s->carried > s->limit ||
        (uint64_t)s->inflight + s->carried > s->inflight_max)
        return false; /* a lowered limit drains */
    if (s->counted && wr_load(&root->held, seq_cst) > wr_load(&root->inflight_max, relaxed))
        return false;
    WR_ASSERT(s->queued > 0 && s->queued_cost >= cost);
    s->queued--;
    s->queued_cost -= cost;
    reclaim(s, root, before);
    return true;
}

void wr_carry(struct wr_sums *s, struct wr_root *root, uint32_t carried)
{
    uint64_t before = claims_before(s);

    s->carried = carried;
    reclaim(s, root, before);
}

void wr_set_limits(struct wr_sums *s, struct wr_root *root, uint32_t limit, uint32_t inflight_max,
                   uint32_t queue_max)
{
    uint64_t before = claims_before(s);

    s->limit = limit;
    s->inflight_max = inflight_max;
    s->queue_max = queue_max;
    reclaim(s, root, before);
}

void wr_set_closed(struct wr_sums *s, struct wr_root *root, enum wr_closed closed)
{
    uint64_t before = claims_before(s);

    s->closed = (uint8_t)closed;
    reclaim(s, root, before);
}

void wr_set_counted(struct wr_sums *s, struct wr_root *root, bool counted)
{
    if (s->counted == counted)
        return;
    s->counted = counted;
    if (counted) {
        wr_add(&root->held, s->inflight, seq_cst);
        wr_add(&root->claimed, wr_claims(s), seq_cst);
    } else {
        wr_sub(&root->held, s->inflight, seq_cst);
        wr_sub(&root->claimed, wr_claims(s), seq_cst);
    }
}
