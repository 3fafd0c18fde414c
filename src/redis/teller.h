/* The teller: the one body from which all callbacks of a client come, one at a time, and its timers.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_TELLER_H
#define WR_REDIS_TELLER_H

#include "base/list.h"
#include "base/lock.h"
#include "redis/client.h"

#include <weir/sys/park.h>

/* A callback that is to be made. Its owner posts it; it is in one queue at most. */
struct wr_told {
    struct wr_list link;
    void (*tell)(struct wr_told *told);
};

struct wr_teller {
    struct wr_lock lock; /* all below; taken after a link's */
    struct wr_list queue;
    struct wr_list timers;  /* soonest first                                   */
    struct wr_list waiting; /* callers of wr_teller_await: woken after each callback */
    weir_parker *parker;    /* the body's; NULL while it does not run          */
    const void *busy_with;  /* the timer or subscription that is being called  */
    uint64_t told;          /* callbacks so far                                */
    bool asleep, closing;
    int bodies; /* other bodies on the runtime, which may still post callbacks */
};

void wr_teller_init(struct wr_teller *teller);

/* The teller's body. Returns when it is closing, no other body is left, and no callback is due. */
void wr_teller_main(void *arg);

void wr_teller_post(struct wr_teller *teller, struct wr_told *told);

/* Counts the other bodies of the runtime: +1 before one starts, -1 when it is over. */
void wr_teller_bodies(struct wr_teller *teller, int change);
void wr_teller_close(struct wr_teller *teller);
bool wr_teller_is_closing(struct wr_teller *teller);

/* Called by a `tell`: names the object whose callback runs, for wr_teller_await. */
void wr_teller_calls(struct wr_teller *teller, const void *what);

/* Waits until no callback of `what` runs. Returns at once if called in the teller's body. */
void wr_teller_await(struct wr_teller *teller, const void *what) WEIR_PARKS;

void wr_teller_timer_set(struct wr_teller *teller, struct wr_redis_timer *timer, weir_time when);
void wr_teller_timer_clear(struct wr_teller *teller, struct wr_redis_timer *timer);

#endif
