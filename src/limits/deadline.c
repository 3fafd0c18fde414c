/* Deadlines of a task; see deadline.h.
 * SPDX-License-Identifier: MIT */
#include "limits/deadline.h"

static weir_time later(weir_time when, int64_t ms)
{
    int64_t ns = ms * 1000000;

    return ns == 0 || when > WEIR_FOREVER - ns ? WEIR_FOREVER : when + ns;
}

struct wr_deadline wr_deadline_next(const weir_deadlines *of, weir_time queued_at, weir_time since,
                                    weir_reason reason)
{
    bool waits = reason == WEIR_REASON_WAIT_DEADLINE;
    weir_time at = later(since, waits ? of->wait_ms : of->run_ms);
    weir_time total_at = later(queued_at, of->total_ms);

    if (total_at <= at)
        return (struct wr_deadline){ total_at, WEIR_REASON_TOTAL_DEADLINE };
    return (struct wr_deadline){ at, reason };
}
