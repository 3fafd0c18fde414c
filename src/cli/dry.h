/* --dry-run: commands as a shell would take them.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_DRY_H
#define WR_CLI_DRY_H

#include "cli/map.h"

/* Prints one line per record; answers the exit status. */
int dry_run(struct map *map);

#endif
