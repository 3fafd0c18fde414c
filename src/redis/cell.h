/* Between the files of a guard of a fleet: cell.c, cell_keys.c, cell_settings.c, cell_look.c.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_CELL_H
#define WR_REDIS_CELL_H

#include "redis/fleet.h"

enum { WR_LEASE_MIN_MS = 20 };

/* Makes the names of the keys, from the guard's name and kind. Called again once the kind is known. False: no memory. */
bool wr_cell_make_keys(struct wr_fleet_cell *cell, const char *name);

/* Gives settings of 0 the names that options have for nothing: a limit of 0 becomes WEIR_NO_CALLS. */
void wr_settings_name_nothing(weir_guard_options *o);

/* The script of its kind, and how many keys that has. */
const struct wr_script *wr_cell_script(const struct wr_fleet_cell *cell, int *keys);

#endif
