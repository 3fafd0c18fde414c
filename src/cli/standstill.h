/* Standstills: while we are stopped (Ctrl-Z) our commands are, too, so that time counts for none of them.
 *
 *     deadline = now + span          with  before = standstill_ns(), taken at the same moment
 *     it is over at                  deadline + standstill_ns() - before
 *
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_STANDSTILL_H
#define WR_CLI_STANDSTILL_H

#include "base/lock.h"

#include <weir.h>

struct standstill {
    struct wr_lock lock;
    weir_time since; /* 0: there is none at present */
    int64_t ns;      /* all that are over           */
};

/* Around being stopped. The end answers how long it was. */
void standstill_begin(struct standstill *standstill);
int64_t standstill_end(struct standstill *standstill);

/* How long we have been stopped in all. Right also for a thread that goes on before whoever is to call
 * standstill_end. */
int64_t standstill_ns(struct standstill *standstill);

#endif
