/* Pace: the generic cell rate algorithm. Pure: the caller has the clock.
 *
 * `next` is when the next start is due, were there no burst: it runs ahead of the clock by one interval per start, and starts
 * are allowed while it is at most `slack` ahead. 0: nothing has started yet.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_PACE_H
#define WR_LIMITS_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/executor.h>

struct wr_pace {
    int64_t interval; /* ns; 0: no pace          */
    int64_t slack;    /* (burst - 1) intervals   */
};

/* Converts a pace as users write it, without zeros, or none. False: the burst is too large, and slack is INT64_MAX. */
bool wr_pace_from(struct wr_pace *out, const weir_pace *pace);

/* `next` after a start at that time. */
weir_time wr_pace_after(const struct wr_pace *pace, weir_time next, weir_time start);

/* How many starts the pace allows at once, at most `most`. */
uint32_t wr_pace_allows(const struct wr_pace *pace, weir_time next, uint32_t most, weir_time now);

/* `next` under another pace. The part of the burst that was left is left, as far as the new burst has room for it, and the part
 * that was spent has to be earned again. */
weir_time wr_pace_change(const struct wr_pace *from, const struct wr_pace *to, weir_time next,
                         weir_time now);

#endif
