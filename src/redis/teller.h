/* The teller: the one body from which all callbacks of a client come, one at a time, and its timers.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_TELLER_H
#define WR_REDIS_TELLER_H

#include "base/list.h"
#include "base/lock.h"
#include "redis/client.h"

#include <weir/sys/park.h>

/* Something to be told. Belongs to whoever posts it; in one queue at most. */
struct wr_told {
    struct wr_list link;
    void (*tell)(struct wr_told *told);
};

struct wr_teller {
    struct wr_lock lock; /* all below; taken after a link's */
    struct wr_list queue;
    struct wr_list timers;  /* soonest first                                   */
    struct wr_list waiting; /* those who wait until the present callback is over */
    weir_parker *who;       /* NULL until it has started                      */
    const void *busy_with;  /* the timer or subscription that is being called  */
    uint64_t told;          /* callbacks so far                                */
    bool asleep, closing;
    int bodies; /* others on the runtime: while there are any, there may be more to tell */
};

void wr_teller_init(struct wr_teller *teller);

/* The body. Returns once it is closing, no other body is left, and all is told. */
void wr_teller_main(void *arg);

void wr_teller_post(struct wr_teller *teller, struct wr_told *told);

/* A body of the runtime has been started, or is over. */
void wr_teller_bodies(struct wr_teller *teller, int change);
void wr_teller_close(struct wr_teller *teller);
bool wr_teller_is_closing(struct wr_teller *teller);

/* From `tell`: what is being called, for those who wait for its end. */
void wr_teller_calls(struct wr_teller *teller, const void *what);

/* Waits until `what` is not being called; at once in the teller itself. */
void wr_teller_await(struct wr_teller *teller, const void *what) WEIR_PARKS;

void wr_teller_timer_set(struct wr_teller *teller, struct wr_redis_timer *timer, weir_time when);
void wr_teller_timer_clear(struct wr_teller *teller, struct wr_redis_timer *timer);

#endif
