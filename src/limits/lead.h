/* Leads: which of several workers gets on while the others leave their CPUs to any thread that wants them.
 *
 * Where tasks take nanoseconds a second worker is little help to the first, since what both of them write travels from one CPU
 * to the other; and if there are more threads than CPUs, the CPU it takes is that of a thread that submits. So the workers of a
 * set agree on one, the lead. Each of the others looks now and then whether the lead has taken slices since it looked last. If
 * so, it gives way, once; if not, it leads from then on. It looks only between slices, and only as long as these are brief and
 * nothing has to wait for long: so work that one worker cannot do in time is done by all, and nothing is held meanwhile.
 * No threads, no clock: the caller says what the time is.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_LEAD_H
#define WR_LIMITS_LEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/time.h>

enum {
    WR_BRIEF_NS = 10000,     /* a slice of tasks that follow each other takes less              */
    WR_IN_TIME_NS = 1000000, /* a task that waited for longer was late                          */
    WR_LEAD_LOOK_NS = 50000, /* between two looks                                               */
};

/* A worker's own. */
struct wr_lead_look {
    weir_time next; /* when it looks again                                */
    uint32_t taken; /* slices that the lead had taken at the last look     */
};

/* Whether it is time for a look: its latest slice took so long, and the first task of that had waited so long. */
static inline bool wr_lead_is_due(const struct wr_lead_look *look, weir_time now, int64_t slice_ns,
                                  int64_t waited_ns)
{
    return now >= look->next && slice_ns < WR_BRIEF_NS && waited_ns < WR_IN_TIME_NS;
}

/* A look: whether there is a lead that has taken slices since the last one, of which it has taken so many by now; then this worker
 * gives way. If not, it leads. */
static inline bool wr_lead_gets_on(struct wr_lead_look *look, weir_time now, bool there_is_one,
                                   uint32_t taken)
{
    bool gets_on = there_is_one && taken != look->taken;

    look->next = now + WR_LEAD_LOOK_NS;
    look->taken = taken;
    return gets_on;
}

#endif
