/* Suspends: while we are stopped (Ctrl-Z) our commands are, too, so that time counts for none of them.
 *
 *     deadline = now + span          with  before = suspend_ns(), taken at the same moment
 *     it is over at                  deadline + suspend_ns() - before
 *
 * A command that is being started shares our memory, and the thread that starts it cannot stop before it has
 * executed. So there is no suspend while one is, and none is started in a suspend.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_SUSPEND_H
#define WR_CLI_SUSPEND_H

#include "base/lock.h"

#include <stdbool.h>
#include <weir.h>

struct suspend {
    struct wr_lock lock;
    weir_time since;   /* when the suspend began; 0: there is none at present */
    int64_t ns;        /* of all suspends that are over */
    uint32_t starting; /* commands that are being started */
};

/* Call before we are stopped. False: a command takes so long to start that we cannot be stopped; suspend_end is to be
 * called all the same. */
bool suspend_begin(struct suspend *suspend);

/* Call after we were stopped. Answers how long that was. */
int64_t suspend_end(struct suspend *suspend);

/* Call before a command is started. Waits for the end of a suspend. */
void suspend_hold_off(struct suspend *suspend);

/* Call after a command was started. */
void suspend_allow(struct suspend *suspend);

/* How long we have been stopped in all. Right also for a thread that goes on before the main thread calls
 * suspend_end. */
int64_t suspend_ns(struct suspend *suspend);

#endif
