/* Parking, for those who build waiting calls of their own: clients of servers, say.
 *
 * A parker is whoever waits: a task, a body or a plain thread. It gives its own to somebody who will call weir_unpark, and
 * parks until its condition holds:
 *
 *     weir_parker_room room;
 *     request->who = weir_parker_self(&room);
 *     ... send the request; whoever completes it sets `done` and unparks `who` under the lock ...
 *     while (!done && !rc)                                 read under the same lock
 *         rc = weir_cancelled() ? WEIR_ECANCELED : weir_park(request->who, deadline);
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

/* The caller as a parker: good until the function that owns `room` returns. */
weir_parker *weir_parker_self(weir_parker_room *room);

/* Waits until somebody unparks `self`, or has done so since it last parked; also returns for no reason, a cancel among
 * them, so loop around your own condition. 0, or WEIR_ETIMEDOUT. */
int weir_park(weir_parker *self, weir_time deadline) WEIR_PARKS;

/* From any thread. `who` must not be able to end before this returns: unpark it under a lock that it takes before it
 * leaves. */
void weir_unpark(weir_parker *who);

/* Whether the caller is on a worker, whose other tasks wait while it computes: then it should not be the one on whom
 * others depend. Tasks on WEIR_THREADS and plain threads are not. */
bool weir_on_worker(void);

WEIR_END_DECLS

#endif
