/* Frequency: at most so many calls per window of time. Pure: time is an argument.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_FREQUENCY_H
#define WR_GUARD_FREQUENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/guard.h>

/* begin <= now < begin + period after a refresh (FIXED, WEIGHTED), unless the clock ran back.
 * EXACT: moment[first .. first + count) modulo room are the admitted permits of (now - period, now], oldest first. */
struct wr_frequency {
    int64_t limit, period;
    weir_guard_mode mode;
    weir_time begin;       /* of the present window                                             */
    int64_t current, last; /* permits in it, and in the one before                             */
    uint32_t room, first, count;
    weir_time moment[];
};

size_t wr_frequency_size(weir_guard_mode mode, int64_t limit);
void wr_frequency_init(struct wr_frequency *f, weir_guard_mode mode, int64_t limit, int64_t period,
                       weir_time now);

/* From when on n permits could be had, if no call takes any meanwhile: at most `now` if they can be had now. WEIR_FOREVER:
 * never. */
weir_time wr_frequency_when(const struct wr_frequency *f, weir_time now, int64_t n);

/* Takes n permits, of which wr_frequency_when said that they can be had. */
void wr_frequency_take(struct wr_frequency *f, weir_time now, int64_t n);

/* Gives n permits back that were taken at `when`. */
void wr_frequency_give(struct wr_frequency *f, weir_time now, int64_t n, weir_time when);

/* Permits that could be had now, one by one. */
int64_t wr_frequency_available(const struct wr_frequency *f, weir_time now);

bool wr_frequency_is_whole(const struct wr_frequency *f, weir_time now);

#endif
