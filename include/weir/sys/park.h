/* Parking, for programs that build waiting calls of their own, say clients of servers.
 *
 * A parker stands for a caller that waits: a task, a body or a plain thread. The caller passes its parker to the thread that
 * will call weir_unpark, and parks until its condition holds:
 *
 *     weir_parker_room room;
 *     request->parker = weir_parker_self(&room);
 *     ... send the request; the thread that completes it sets `done` and unparks `parker` under a lock ...
 *     while (!done && !rc)                                 read under the same lock
 *         rc = weir_cancelled() ? WEIR_ECANCELED : weir_park(request->parker, deadline);
 *
 * A task that parks leaves its worker to others, a thread blocks. This interface may change sooner than others.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_SYS_PARK_H
#define WEIR_SYS_PARK_H

#include <stdbool.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_parker weir_parker;

/* Room for the parker of a plain thread, on its stack. */
typedef struct weir_parker_room {
    uint64_t room[4];
} weir_parker_room;

/* The caller's parker; valid until the function that owns `room` returns. */
weir_parker *weir_parker_self(weir_parker_room *room);

/* Waits until weir_unpark is called for `self`; returns at once if that happened since the last park. It may also return
 * for no reason, and returns when the task is cancelled, so call it in a loop around your own condition. 0, or
 * WEIR_ETIMEDOUT. */
int weir_park(weir_parker *self, weir_time deadline) WEIR_PARKS;

/* Wakes a parker, from any thread. The parker must stay valid until the call returns: unpark it under a lock that its
 * owner takes before it goes on. */
void weir_unpark(weir_parker *parker);

/* Whether the caller runs on a worker. If it computes for long, other tasks of that worker wait, so it should not do work
 * that other callers depend on. False for tasks on WEIR_THREADS and plain threads. */
bool weir_on_worker(void);

WEIR_END_DECLS

#endif
