/* Leads: which of several workers gets on while the others leave their CPUs to any thread that wants them.
 *
 * Where tasks take nanoseconds a second worker is little help to the first, since what both of them write travels from one CPU
 * to the other; and if there are more threads than CPUs, the CPU it takes is that of a thread that submits. So the workers of a
 * set agree on one, the lead. Each of the others looks now and then how much the lead has done since its last look:
 *
 *     nothing                 it leads from then on
 *     all there is to do      it sleeps for a moment, and looks again: the lead starts a task each microsecond, and none waits for
 *                             long
 *     mostly turns            it sleeps for a moment, and takes one slice: at most half of the lead's time goes into the tasks, so
 *                             two workers would mostly wait for each other
 *     less                    it gives way, once; or goes on at once if tasks are late
 *
 * It looks only between slices, and only as long as its own are brief, and nothing is held meanwhile: so work that one worker
 * cannot do in time is done by all.
 *
 * A worker that runs tiny tasks faster than they are submitted comes back to each group for a few of them, and each time the
 * group's memory travels to its CPU and back to the submitter's. That costs the submitter more than the submits themselves, and
 * so keeps the queues short. After a slice of only a few tiny tasks a worker, the lead or not, therefore gives way once
 * (wr_slice_was_hasty): there will be more of them when it comes again. Not if the tasks were late; nor, as the caller has to
 * see to, if it is this worker's own bodies that submit.
 *
 * No threads, no clock: the caller says what the time is.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_LEAD_H
#define WR_LIMITS_LEAD_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>
#include <weir/time.h>

enum {
    WR_BRIEF_NS = 10000, /* a slice of tasks that follow each other takes less */
    WR_TINY_NS = 250,    /* a task that takes less is cheaper than its turn is */
    WR_FEW_TASKS = 64,   /* fewer of those are not worth a turn, if more come  */

    WR_IN_TIME_NS = 1000000, /* a task that waited for longer was late         */
    WR_AT_ONCE_NS = 100000,  /* one that waited for less hardly waited         */

    WR_LEAD_LATE_NS = 400000, /* if a task waits for longer, no worker gives way to the lead */
    WR_LEAD_LOOK_NS = 50000,  /* between two looks                              */
    WR_LEAD_NAP_NS = 50000,   /* a sleep; the kernel adds as much               */
    WR_LEAD_TASK_NS = 1000,   /* a lead that does all starts a task within this */
    WR_LEAD_SLICE_NS = 2000,  /* or takes a slice within this, mostly in vain   */
};

/* What a worker has done so far, slice by slice, and how long the first task of the latest had waited: its own to write, read by
 * the others of its set. The first three wrap around. */
struct wr_lead_done {
    _Atomic uint32_t slices, tasks, busy_ns;
    _Atomic int64_t waited_ns;
};

/* A worker's latest look: at which lead, when, and how much that lead had done by then. */
struct wr_lead_look {
    const struct wr_lead_done *lead;
    weir_time at, next; /* next: when it looks again                                   */
    uint32_t slices, tasks, busy_ns;
};

/* NAP: sleep, and take one slice; REST: sleep, and look again. */
enum wr_lead_step { WR_LEAD_WORK, WR_LEAD_LEAD, WR_LEAD_YIELD, WR_LEAD_NAP, WR_LEAD_REST };

/* The worker has done one more slice, of so many tasks. */
static inline void wr_lead_count(struct wr_lead_done *own, uint32_t tasks, int64_t slice_ns,
                                 int64_t waited_ns)
{
    wr_store(&own->waited_ns, waited_ns, relaxed);
    wr_bump(&own->slices);
    wr_store(&own->tasks, wr_load(&own->tasks, relaxed) + tasks, relaxed);
    wr_store(&own->busy_ns, wr_load(&own->busy_ns, relaxed) + (uint32_t)slice_ns, relaxed);
}

/* Whether a slice of so many tasks, the first of which had waited so long, came too early. A single task tells nothing of tasks
 * that may follow. */
static inline bool wr_slice_was_hasty(uint32_t tasks, int64_t slice_ns, int64_t waited_ns)
{
    return tasks > 1 && tasks < WR_FEW_TASKS && slice_ns < (int64_t)tasks * WR_TINY_NS &&
           waited_ns < WR_IN_TIME_NS;
}

/* Whether it is time for a look, after a slice that took so long. */
static inline bool wr_lead_is_due(const struct wr_lead_look *look, weir_time now, int64_t slice_ns)
{
    return now >= look->next && slice_ns < WR_BRIEF_NS;
}

/* What follows from all that the lead has done between two looks; WORK: nothing of note. */
static inline enum wr_lead_step wr_lead_compare(const struct wr_lead_look *last,
                                                const struct wr_lead_look *look, int64_t waited_ns)
{
    uint64_t ns = (uint64_t)(look->at - last->at);
    uint64_t slices = (uint32_t)(look->slices - last->slices);
    uint64_t tasks = (uint32_t)(look->tasks - last->tasks);
    uint64_t busy_ns = (uint32_t)(look->busy_ns - last->busy_ns);

    if (!slices)
        return WR_LEAD_LEAD;
    if (waited_ns < WR_AT_ONCE_NS && tasks * WR_LEAD_TASK_NS >= ns)
        return WR_LEAD_REST;
    if (slices * WR_LEAD_SLICE_NS >= ns && busy_ns * 2 <= ns)
        return WR_LEAD_NAP;
    return WR_LEAD_WORK;
}

/* A look at the lead (NULL: there is none), and what to do then. The first task of this worker's latest slice had waited so long;
 * how long tasks wait while this worker sleeps, the lead knows. */
static inline enum wr_lead_step wr_lead_look(struct wr_lead_look *look,
                                             const struct wr_lead_done *lead, weir_time now,
                                             int64_t waited_ns)
{
    struct wr_lead_look last = *look;
    enum wr_lead_step step = WR_LEAD_WORK;

    *look = (struct wr_lead_look){ .lead = lead, .at = now, .next = now + WR_LEAD_LOOK_NS };
    if (!lead)
        return WR_LEAD_LEAD;
    look->slices = wr_load(&lead->slices, relaxed);
    look->tasks = wr_load(&lead->tasks, relaxed);
    look->busy_ns = wr_load(&lead->busy_ns, relaxed);
    if (lead == last.lead)
        step = wr_lead_compare(&last, look, wr_load(&lead->waited_ns, relaxed));
    if (step == WR_LEAD_NAP || step == WR_LEAD_REST)
        look->next = now; /* when it has slept */
    return step == WR_LEAD_WORK && waited_ns < WR_LEAD_LATE_NS ? WR_LEAD_YIELD : step;
}

#endif
