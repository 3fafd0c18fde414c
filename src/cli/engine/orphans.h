/* Orphans: what commands have left behind comes to us when we are the first process (in a container), or a child
 * subreaper. Once it has ended, only we can take it off the list of processes.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ORPHANS_H
#define WR_CLI_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

bool orphans_come_to_us(void);

/* Takes one that has ended off the list; 0: there is none. Only from the main thread, which orphans are given
 * to: what other threads have started is theirs, and not touched. So commands must not be started there. */
pid_t orphans_reap_one(void);

#endif
