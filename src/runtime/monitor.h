/* The stall monitor: a thread of its own that notices workers stuck in one body.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_MONITOR_H
#define WR_RUNTIME_MONITOR_H

#include "base/os.h"

#include <stdbool.h>
#include <stdint.h>
#include <weir/runtime.h>

struct wr_worker;

/* What the monitor remembers of one worker. Its own thread only.
 *     monitor.computing == number of watches that are stalled and compute                      */
struct wr_stall_watch {
    uint64_t epoch;  /* as last seen                                    */
    weir_time since; /* when that was first seen                        */
    bool stalled;
    bool computes;                 /* stalled, and does not block in the kernel                   */
    weir_time judge_at;            /* when to look again whether it does                          */
    struct wr_worker *replacement; /* at work in its place                            */
    char name[32];                 /* of the body that stalls                         */
    uint64_t tag;
};

struct wr_monitor {
    _Atomic uint32_t word; /* what it does; a futex                           */
    _Atomic uint64_t stalls;
    uint32_t computing; /* stuck workers that compute; its own thread only              */
    struct wr_os_thread thread;
};

int wr_monitor_start(weir_runtime *rt);

/* Stops it and waits for it. */
void wr_monitor_stop(weir_runtime *rt);

/* Called by a worker that woke up: the monitor must be awake, too. */
void wr_monitor_notice(struct wr_monitor *monitor);

#endif
