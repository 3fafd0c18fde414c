/* Orphans that were given to us.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

bool orphans_come_to_us(void)
{
    int subreaper = 0;

    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper);
}

/* The kernel gives orphans to the first living thread of a process: this one. */
pid_t orphans_reap_one(void)
{
    pid_t pid = waitpid(-1, NULL, WNOHANG | __WNOTHREAD);

    return pid > 0 ? pid : 0;
}
