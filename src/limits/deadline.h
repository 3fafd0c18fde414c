/* Deadlines of a task: which one comes next. Pure: the caller has the clock.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_DEADLINE_H
#define WR_LIMITS_DEADLINE_H

#include <weir/reason.h>
#include <weir/task.h>

struct wr_deadline {
    weir_time at; /* WEIR_FOREVER: there is none */
    weir_reason reason;
};

/* The next deadline of a task that was submitted at `queued_at`, and waits (WEIR_REASON_WAIT_DEADLINE) or runs
 * (WEIR_REASON_RUN_DEADLINE) since `since`. Of two at the same time it is the total one. Spans of 0 are none. */
struct wr_deadline wr_deadline_next(const weir_deadlines *of, weir_time queued_at, weir_time since,
                                    weir_reason reason);

#endif
