/* Orphans: processes that commands have left behind come to us when we are the first process (in a container), or a child
 * subreaper. Once such a process has ended, only we can take it off the list of processes.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ORPHANS_H
#define WR_CLI_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

bool orphans_come_to_us(void);

/* Takes an orphan that has ended off the list; 0: there is none. Only from the main thread, which orphans are given
 * to: children that other threads have started are theirs, and not touched. So the main thread must not start commands. */
pid_t orphans_reap_one(void);

#endif
