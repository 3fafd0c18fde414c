/* The sums of admission: pure arithmetic over one group and the executor's two counters.
 * No threads, no clock, no memory: the caller holds the group's lock. docs/internals/admission.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_ADMIT_H
#define WR_LIMITS_ADMIT_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>
#include <weir/reason.h>

#define WR_INF UINT32_MAX /* no limit */

/* The executor's own limits. held and claimed are sums over counted groups, in permits. */
struct wr_root {
    _Atomic uint32_t inflight_max; /* WR_INF: not counted              */
    _Atomic uint32_t queue_max;
    _Atomic uint64_t held; /* <= inflight_max, once drained    */
    _Atomic uint64_t claimed;
};

/* One group's, under its lock. At rest:
 *     running <= inflight
 *     queued == 0  <=>  queued_cost == 0
 *     counted  =>  its share of root.held is inflight, of root.claimed is wr_claims()             */
struct wr_sums {
    uint32_t limit, inflight_max, queue_max;
    uint32_t running, inflight;
    /* Permits that tasks of an evicted generation still hold: charged here, counted there */
    uint32_t carried;
    uint32_t queued;
    uint8_t closed; /* enum wr_closed */
    bool counted;
    uint64_t queued_cost;
};

/* Whether it starts anything for now, whatever its limits are. */
enum wr_closed {
    WR_OPEN,
    WR_LACKS_THREAD, /* no; but a turn that has a thread at hand may go on */
    WR_SHUT,         /* a pause or a gate keeps it                          */
};

/* Permits that tasks of the group could take now, as far as the group is concerned. */
uint32_t wr_free(const struct wr_sums *s);

/* Whether its first task, of that cost, has nothing of its group's in the way, but for want of a thread perhaps. */
bool wr_lacks_only_thread(const struct wr_sums *s, uint32_t cost);

/* How many of those that wait could start now, as far as the group is concerned; `first`: the cost of the
 * first one. With mixed costs it is 1 unless all can: after each start it is asked again. */
uint32_t wr_ready_tasks(const struct wr_sums *s, uint32_t first);

/* What the group asks of the executor. */
uint64_t wr_claims(const struct wr_sums *s);

/* Whether a task of that cost can ever run. */
bool wr_can_ever(const struct wr_sums *s, const struct wr_root *root, uint32_t cost);

/* Whether a task of that cost would find no place in the group's queue, and no permits; and whether it would find a place
 * in the executor's. */
bool wr_is_full(const struct wr_sums *s, uint32_t cost);
bool wr_has_room(const struct wr_root *root, uint32_t cost);

/* Whether any number of cost 1 may come in, since neither group nor executor bounds how many wait: the common case. False:
 * ask wr_admit. And: so many have. */
static inline bool wr_admits_freely(const struct wr_sums *s)
{
    return s->queue_max == WR_INF && !s->counted;
}

static inline void wr_admit_many(struct wr_sums *s, uint32_t tasks)
{
    s->queued += tasks;
    s->queued_cost += tasks;
}

/* Whether one that is over may be followed by the next, both of cost 1, with its permits, and nothing is counted but by the
 * group: the common case. False: ask wr_hand_over. */
static inline bool wr_may_follow(const struct wr_sums *s)
{
    return !s->closed && !s->counted && s->queue_max == WR_INF &&
           (uint64_t)s->running + s->carried <= s->limit &&
           (uint64_t)s->inflight + s->carried <= s->inflight_max;
}

/* One more wants in: takes a place and answers NONE, or takes nothing and answers why not. */
weir_reason wr_admit(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* The first in the queue, of that cost, wants to start: takes its permits and its place's end, and answers NONE;
 * or takes nothing and answers what is in the way. Permits of the executor's that the caller has reserved
 * before are used first; those not needed stay in *reserved. */
weir_reason wr_start(struct wr_sums *s, struct wr_root *root, uint32_t cost, uint32_t *reserved);

/* Brings *reserved up to `cost` permits of the executor's, if its limit is finite. False: there are not
 * enough, and nothing changed. */
bool wr_reserve(struct wr_root *root, uint32_t cost, uint32_t *reserved);
void wr_unreserve(struct wr_root *root, uint32_t *reserved);

/* One in the queue leaves it without starting. */
void wr_withdraw(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* A body has returned: it is pending now, or over. A pending task is over. */
void wr_pend(struct wr_sums *s, struct wr_root *root, uint32_t cost);
void wr_finish(struct wr_sums *s, struct wr_root *root, uint32_t cost);
void wr_settle_pending(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* One is over and another of the same cost starts in its place, if the group's limits allow. A group that waits for
 * a thread may go on: the one it is on is at hand. */
bool wr_hand_over(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* Permits of the former generation: charged at first, given back one by one. */
void wr_carry(struct wr_sums *s, struct wr_root *root, uint32_t carried);

/* Changes what decides about `free`; the sums follow. */
void wr_set_limits(struct wr_sums *s, struct wr_root *root, uint32_t limit, uint32_t inflight_max,
                   uint32_t queue_max);
void wr_set_closed(struct wr_sums *s, struct wr_root *root, enum wr_closed closed);

/* Joins or leaves the executor's sums. */
void wr_set_counted(struct wr_sums *s, struct wr_root *root, bool counted);

/* What keeps the first in the queue from starting; NONE: nothing but a worker. GATED: it is shut, the caller knows by what. */
weir_reason wr_blocked_by(const struct wr_sums *s, const struct wr_root *root, uint32_t cost);

#endif
