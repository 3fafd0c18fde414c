/* A cell's pool: permits that this process has leased for its groups, all at once, so that most starts need no round trip.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_LEASED_H
#define WR_REDIS_LEASED_H

#include "redis/fleet.h"

#include <weir/sys/gate.h>

/* One per cell that stands before groups; lives as long as the cell. Under its lock, which is taken after those of groups.
 *
 *     0 <= in_use;  free permits = units - in_use, if that is not negative (an operator took some, or the server was away)
 *     all units have numbers of this process and one lease, renewed together: `until` is the earliest end. A renewal is
 *     for the units it names: units that come while it is under way keep their own end (`added_until`)
 *     hungry: a gate was refused when it was last asked; asked == 0 if no gate is. At most one of asking, waiting is true */
struct wr_leased {
    struct wr_fleet_cell *cell;
    struct wr_lock lock;
    struct wr_list gates;
    int64_t *unit;
    int64_t units, room;
    int64_t in_use, peak; /* peak: since the last renewal */
    int64_t fresh;  /* units that came and were not offered to a group yet: they are not idle */
    int64_t asked;  /* tasks that were refused at the latest ask; 0: no gate is hungry */
    int64_t told;   /* the want that the server was told: the target is no more than that */
    int64_t target; /* how many units the server lets this process have; -1: not known yet */
    bool known;     /* the server has noted a want of this process                  */
    weir_time until, renew_at;
    weir_time added_until; /* of units that came since the latest renewal was sent  */
    uint64_t epoch;        /* of the lease: grows when it is lost                          */
    bool asking, waiting, renewing, again, closing;
    int64_t requested; /* units of the latest `enter`, from the waiter's number on        */
    weir_time sent;    /* of the latest `enter` that was answered; the server's clock then */
    int64_t clock;
    weir_time asked_at, renewed_at;
    weir_time ask_at; /* no ask before: the server gave nothing and no place in line */
    weir_time timer_at;
    struct wr_waiter waiter;
    struct wr_redis_timer timer;
};

/* A group whose tasks take units of the pool. */
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

/* Gives all units back, and waits until only answers of the server are still under way. */
void wr_leased_close(struct wr_leased *pool) WEIR_PARKS;

/* Has the pool's timer fire at `when` at the latest, in the client's body. Under the lock. */
void wr_leased_kick(struct wr_leased *pool, weir_time when);

/* ---- between leased.c, leased_ask.c and leased_renew.c: under the lock --------------------------- */

int64_t wr_leased_capacity(const struct wr_leased *pool, weir_time now); /* how many may run now */
int64_t wr_leased_want(const struct wr_leased *pool); /* how many this process could use */
bool wr_leased_has_to_renew(const struct wr_leased *pool);
bool wr_leased_should_ask(const struct wr_leased *pool);

/* Adds units that the server gave. They are not kept if they are more than asked for, or there is no memory. */
void wr_leased_add(struct wr_leased *pool, int64_t number, int64_t count, weir_time until);

/* Gives `count` units back to the server. */
void wr_leased_give_back(struct wr_leased *pool, int64_t count);

/* Sends `enter`. Without the lock; the caller has set `asking`. */
void wr_leased_ask(struct wr_leased *pool, int64_t wanted, int64_t have);

/* Tells the server that this process wants no units. */
void wr_leased_want_nothing(struct wr_leased *pool);

/* Sends a renewal. Releases the lock meanwhile. */
void wr_leased_renew(struct wr_leased *pool, weir_time now);

/* So many units are lost: tells the user, and cancels tasks if too many run. Releases the lock meanwhile. */
void wr_leased_lose(struct wr_leased *pool, int64_t permits, const char *why);

#endif
