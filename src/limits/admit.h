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

/* Whether the group may start anything for now, whatever its limits are. */
enum wr_closed {
    WR_OPEN,
    WR_LACKS_THREAD, /* no; but a turn that has a thread at hand may go on */
    WR_SHUT,         /* no: a pause or a gate keeps it                      */
};

/* Permits that tasks of the group could take now, as far as the group is concerned. */
uint32_t wr_free(const struct wr_sums *s);

/* Whether the group lets its first task, of that cost, start, except that it may lack a thread. */
bool wr_lacks_only_thread(const struct wr_sums *s, uint32_t cost);

/* How many of the waiting tasks could start now, as far as the group is concerned; `first`: the cost of the
 * first one. With mixed costs it is 1 unless all can: the caller asks again after each start. */
uint32_t wr_ready_tasks(const struct wr_sums *s, uint32_t first);

/* Permits that the group claims of the executor: for tasks in flight, and for those that are ready. */
uint64_t wr_claims(const struct wr_sums *s);

/* Whether a task of that cost can ever run. */
bool wr_can_ever(const struct wr_sums *s, const struct wr_root *root, uint32_t cost);

/* Whether a task of that cost would find no place in the group's queue, and no permits. */
bool wr_is_full(const struct wr_sums *s, uint32_t cost);

/* Whether a task of that cost would find a place in the executor's queue. */
bool wr_has_room(const struct wr_root *root, uint32_t cost);

/* Whether any number of tasks of cost 1 may come in, since neither group nor executor bounds how many wait: the common case.
 * False: ask wr_admit. */
static inline bool wr_admits_freely(const struct wr_sums *s)
{
    return s->queue_max == WR_INF && !s->counted;
}

/* So many tasks of cost 1 come in, where wr_admits_freely. */
static inline void wr_admit_many(struct wr_sums *s, uint32_t tasks)
{
    s->queued += tasks;
    s->queued_cost += tasks;
}

/* Whether a task that is over may be followed by the next, both of cost 1, with its permits, and nothing is counted but by the
 * group: the common case. False: ask wr_hand_over. */
static inline bool wr_may_follow(const struct wr_sums *s)
{
    return !s->closed && !s->counted && s->queue_max == WR_INF &&
           (uint64_t)s->running + s->carried <= s->limit &&
           (uint64_t)s->inflight + s->carried <= s->inflight_max;
}

/* One more task comes: takes a place and answers NONE, or takes nothing and answers why not. */
weir_reason wr_admit(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* The first task in the queue, of that cost, wants to start: it takes its permits and leaves its place, and the answer is NONE;
 * or nothing changes, and the answer is what is in the way. Permits of the executor's that the caller has reserved
 * before are used first; those not needed stay in *reserved. */
weir_reason wr_start(struct wr_sums *s, struct wr_root *root, uint32_t cost, uint32_t *reserved);

/* Brings *reserved up to `cost` permits of the executor's, if its limit is finite. False: there are not
 * enough, and nothing changed. */
bool wr_reserve(struct wr_root *root, uint32_t cost, uint32_t *reserved);

/* Gives back all that is reserved. */
void wr_unreserve(struct wr_root *root, uint32_t *reserved);

/* A task in the queue leaves it without starting. */
void wr_withdraw(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* A body has returned, and its task is pending now. */
void wr_pend(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* A body has returned, and its task is over. */
void wr_finish(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* A pending task is over. */
void wr_settle_pending(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* A task is over and another of the same cost starts in its place, if the limits allow. A group that lacks a thread may go on:
 * the thread of the first task is at hand. */
bool wr_hand_over(struct wr_sums *s, struct wr_root *root, uint32_t cost);

/* Permits of the former generation: charged at first, given back one by one. */
void wr_carry(struct wr_sums *s, struct wr_root *root, uint32_t carried);

/* Change what wr_free depends on; the sums follow. */
void wr_set_limits(struct wr_sums *s, struct wr_root *root, uint32_t limit, uint32_t inflight_max,
                   uint32_t queue_max);
void wr_set_closed(struct wr_sums *s, struct wr_root *root, enum wr_closed closed);

/* The group joins or leaves the executor's sums. */
void wr_set_counted(struct wr_sums *s, struct wr_root *root, bool counted);

/* What keeps the first task in the queue, of that cost, from starting; NONE: nothing but a worker. GATED: the group is shut, and
 * the caller knows by what. */
weir_reason wr_blocked_by(const struct wr_sums *s, const struct wr_root *root, uint32_t cost);

#endif
