/* Finding nodes of a run, and saying how they stand.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FLOW_LOOK_H
#define WR_FLOW_LOOK_H

#include "flow/run.h"

/* The node of that id, in a sub-run if it is a path: then *run becomes that one. */
bool wr_run_find(struct wr_run **run, uint32_t *n, const char *id);

#endif
