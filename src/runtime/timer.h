/* Timers of one worker: a hierarchical wheel with a slot width of one nanosecond.
 *
 * Level l has 64 slots, each 64^l ns wide; eleven levels span the whole clock. Invariants:
 *     now_ <= deadline                      of every armed timer (late ones are armed as of now_)
 *     level(t) == highest six-bit digit in which deadline and now_ differ (0 if none)
 *     slot(t)  == that digit of deadline,  >= that digit of now_
 *     bit s of occupied[l] set  <=>  slot[l][s] is not empty
 * So all timers of a level expire before all of the next, slots of a level expire in order, and
 * timers with equal deadlines always share a slot, in the order in which they were armed.
 *
 * One thread owns a wheel. Arming and cancelling are O(1) and need no memory.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_TIMER_H
#define WR_RUNTIME_TIMER_H

#include "base/list.h"

#include <stdint.h>
#include <weir/time.h>

enum { WR_WHEEL_LEVELS = 11, WR_WHEEL_SLOTS = 64 };

struct wr_timer {
    struct wr_list link; /* unlinked: not armed */
    weir_time deadline;
};

struct wr_wheel {
    weir_time now_; /* how far the wheel has turned */
    uint64_t occupied[WR_WHEEL_LEVELS];
    struct wr_list slot[WR_WHEEL_LEVELS][WR_WHEEL_SLOTS];
};

void wr_wheel_init(struct wr_wheel *wheel, weir_time now);

static inline void wr_timer_init(struct wr_timer *timer)
{
    wr_list_init(&timer->link);
}

/* `timer` must not be armed. */
void wr_timer_arm(struct wr_wheel *wheel, struct wr_timer *timer, weir_time deadline);

/* Harmless if it is not armed. */
void wr_timer_cancel(struct wr_wheel *wheel, struct wr_timer *timer);

/* Turns the wheel up to `now` and takes out the first timer that is due; NULL when none is left. */
struct wr_timer *wr_wheel_expire(struct wr_wheel *wheel, weir_time now);

/* When to look again: never later than the first deadline, and exactly that unless more than a
 * handful of timers lie close together. WEIR_FOREVER if none is armed. */
weir_time wr_wheel_next(const struct wr_wheel *wheel);

#endif
