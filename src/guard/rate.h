/* Rate: so many per cycle, with reservations ahead; or evenly spread. Pure: time is an argument.
 * The tape of positions: docs/internals/guards.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_RATE_H
#define WR_GUARD_RATE_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/time.h>

enum { WR_HOLES_MAX = 8 };

/* Positions at, at - 1, .. at - n + 1 of the tape, which were given back. */
struct wr_hole {
    int64_t at, n;
};

/* At rest, after a refresh to the present cycle:
 *     available <= limit;   a hole's positions are above `available`; holes that are used come first
 *     smooth:  next + next_part / limit is the theoretical arrival time, 0 <= next_part < limit */
struct wr_rate {
    int64_t limit, period, burst; /* burst: smooth mode only                                    */
    bool smooth;
    uint32_t era;        /* grows when positions are numbered anew: limit or period changed      */
    weir_time start;     /* where cycle 0 begins                                                 */
    int64_t cycle;       /* as of the latest refresh                                             */
    weir_time cycle_end; /* saves a division while the cycle lasts                              */
    int64_t available;
    struct wr_hole hole[WR_HOLES_MAX];
    weir_time next;
    int64_t next_part;
};

/* A caller's reservation. */
struct wr_reserved {
    int64_t wait; /* until it may go on                                                         */
    int64_t at;   /* its first position, counted as in that cycle; smooth: the time before      */
    int64_t part; /* the cycle; smooth: the fraction                                            */
    uint32_t era;
};

void wr_rate_init(struct wr_rate *rate, int64_t limit, int64_t period, int64_t burst, bool smooth,
                  weir_time now);

/* Smooth: the first call comes not before `first`. */
void wr_rate_delay(struct wr_rate *rate, weir_time first);

/* How long n permits would have to wait. Changes nothing. */
int64_t wr_rate_wait(const struct wr_rate *rate, weir_time now, int64_t n);

/* Takes n permits if they come within `patience`: true, and *reserved says when. Else only refreshes, and
 * reserved->wait says how long it would be. */
bool wr_rate_take(struct wr_rate *rate, weir_time now, int64_t n, int64_t patience,
                  struct wr_reserved *reserved);

/* Gives a reservation back, unless the cycle it was for is over. (Smooth: unless its time has come, or others have
 * reserved after it.) */
void wr_rate_give(struct wr_rate *rate, weir_time now, int64_t n,
                  const struct wr_reserved *reserved);

/* Takes all permits that are left now; answers how many. */
int64_t wr_rate_drain(struct wr_rate *rate, weir_time now);

/* Another limit, period or burst; credit and debt stay, in permits. */
void wr_rate_change(struct wr_rate *rate, weir_time now, int64_t limit, int64_t period,
                    int64_t burst);

/* Permits that could be had now; negative: reserved beyond the present cycle. */
int64_t wr_rate_available(const struct wr_rate *rate, weir_time now);

/* Whether it is as if nothing had ever been taken. */
bool wr_rate_is_whole(const struct wr_rate *rate, weir_time now);

#endif
