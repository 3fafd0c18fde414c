/* A cell's pool: permits that this process has leased for its groups, all at once, so that most starts need no round trip.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_LEASED_H
#define WR_REDIS_LEASED_H

#include "redis/fleet.h"

#include <weir/sys/gate.h>

/* One per cell that stands before groups; lives with the cell. Under its lock, which comes after those of groups.
 *
 *     0 <= in_use;  free permits = units - in_use, if that is not negative (an operator took some, or the server was away)
 *     all units have numbers of this process and one lease, renewed together: `until` is the least of theirs. A renewal is
 *     for the units it names: those that come while it is under way keep their own (`added_until`)
 *     hungry: a gate was refused when it was last asked; asked == 0 if none is. At most one of asking, waiting is so */
struct wr_leased {
    struct wr_fleet_cell *cell;
    struct wr_lock lock;
    struct wr_list gates;
    int64_t *unit;
    int64_t units, room;
    int64_t in_use, peak; /* peak: since the last renewal */
    int64_t fresh;  /* units that came and were not offered to a group yet: they are not idle */
    int64_t asked;  /* tasks that were refused at the latest ask; 0: none is hungry */
    int64_t told;   /* what the server was told that is wanted: the target is no more than that */
    int64_t target; /* how many the server would have us use; -1: not known yet     */
    bool known;     /* the server has a want of ours written down                   */
    weir_time until, renew_at;
    weir_time added_until; /* of units that came since the latest renewal was sent  */
    uint64_t epoch;        /* of the lease: grows when it is lost                          */
    bool asking, waiting, renewing, again, closing;
    int64_t requested; /* units of the latest `enter`, from the waiter's number on        */
    weir_time sent;    /* of the latest `enter` that was answered; the server's clock then */
    int64_t clock;
    weir_time asked_at, renewed_at;
    weir_time ask_at; /* not before: the server gave nothing and no place in line */
    weir_time timer_at;
    struct wr_waiter waiter;
    struct wr_redis_timer timer;
};

/* One per group. */
struct wr_fleet_gate {
    struct wr_list link;
    struct wr_leased *pool;
    weir_guard *guard;
    weir_gate *gate;
    weir_gate_calls calls;
    int64_t in_use;
    bool hungry;
    int pins; /* threads that use it without the lock */
};

void wr_leased_init(struct wr_leased *pool, struct wr_fleet_cell *cell);

/* Gives all back, and waits until nothing of it is on its way but answers. */
void wr_leased_close(struct wr_leased *pool) WEIR_PARKS;

/* To be looked after soon, from the client's body. Under the lock. */
void wr_leased_kick(struct wr_leased *pool, weir_time when);

/* ---- between leased.c, leased_ask.c and leased_renew.c: under the lock --------------------------- */

int64_t wr_leased_capacity(const struct wr_leased *pool, weir_time now); /* how many may run now */
int64_t wr_leased_want(const struct wr_leased *pool); /* how many this process could use */
bool wr_leased_has_to_renew(const struct wr_leased *pool);
bool wr_leased_should_ask(const struct wr_leased *pool);

/* Units that the server gave; not kept if they are more than asked for, or there is no memory. */
void wr_leased_add(struct wr_leased *pool, int64_t number, int64_t count, weir_time until);
void wr_leased_give_back(struct wr_leased *pool, int64_t count);

/* Sends `enter`. Without the lock; `asking` is set. */
void wr_leased_ask(struct wr_leased *pool, int64_t wanted, int64_t have);

void wr_leased_want_nothing(struct wr_leased *pool); /* tells the server so */

/* These two give the lock back meanwhile. */
void wr_leased_renew(struct wr_leased *pool, weir_time now);
void wr_leased_lose(struct wr_leased *pool, int64_t permits, const char *why);

#endif
