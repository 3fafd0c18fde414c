/* The executor's clock: a thread that wakes groups when their time has come. It starts with the first
 * timer; executors without pace, cool-down or idle eviction have none.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_CLOCK_H
#define WR_EXECUTOR_CLOCK_H

#include "base/lock.h"
#include "base/os.h"
#include "runtime/runtime.h"

struct wr_gate;
struct weir_executor;

struct wr_clock {
    struct wr_lock lock;
    struct wr_wheel *wheel; /* NULL: not started                                  */
    weir_time sleeps_until;
    bool stopping;
    _Atomic uint32_t bell;  /* counts rings; a futex                              */
    struct wr_gate *firing; /* whose time has come just now                       */
    weir_time sweep_at;     /* when to look for idle groups; WEIR_FOREVER: never  */
    struct wr_os_thread thread;
};

/* Makes sure it runs. WEIR_ENOMEM, WEIR_EAGAIN. */
int wr_clock_start(struct weir_executor *ex);

/* Has wr_gate_fired called at `when`, instead of any time asked for before. It must run. */
void wr_clock_set(struct weir_executor *ex, struct wr_gate *gate, weir_time when);

/* Forgets the gate: when this returns it does not fire, and will not. Not under the group's lock. */
void wr_clock_forget(struct weir_executor *ex, struct wr_gate *gate);

/* Starts looking for idle groups. */
int wr_clock_start_sweeping(struct weir_executor *ex);

void wr_clock_stop(struct weir_executor *ex);

#endif
