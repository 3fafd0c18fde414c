/* Standstills: while we are stopped (Ctrl-Z) our commands are, too, so that time counts for none of them.
 *
 *     deadline = now + span          with  before = standstill_ns(), taken at the same moment
 *     it is over at                  deadline + standstill_ns() - before
 *
 * A command that is being started shares our memory, and the thread that starts it cannot stop before it has
 * executed. So there is no standstill while one is, and none is started in a standstill.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_STANDSTILL_H
#define WR_CLI_STANDSTILL_H

#include "base/lock.h"

#include <stdbool.h>
#include <weir.h>

struct standstill {
    struct wr_lock lock;
    weir_time since;   /* 0: there is none at present    */
    int64_t ns;        /* all that are over              */
    uint32_t starting; /* commands that are being started */
};

/* Around being stopped. The end answers how long it was. The beginning answers false if a command takes so long to
 * start that we cannot be stopped; it is to be ended all the same. */
bool standstill_begin(struct standstill *standstill);
int64_t standstill_end(struct standstill *standstill);

/* Around starting a command; the first waits for the end of a standstill. */
void standstill_hold_off(struct standstill *standstill);
void standstill_allow(struct standstill *standstill);

/* How long we have been stopped in all. Right also for a thread that goes on before whoever is to call
 * standstill_end. */
int64_t standstill_ns(struct standstill *standstill);

#endif
