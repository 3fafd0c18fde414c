/* Finding nodes of a run, and saying how they stand.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FLOW_LOOK_H
#define WR_FLOW_LOOK_H

#include "flow/run.h"

/* The node of that id, in a sub-run if it is a path: then *run becomes that one. */
bool wr_run_find(struct wr_run **run, uint32_t *n, const char *id);

/* The sub-run that a node has started; NULL: none, or not yet. It is there as long as the run is. */
struct wr_run *wr_run_sub(struct wr_run *run, uint32_t n);

/* How a node stands, for callers that look from outside of the run. */
enum wr_standing { WR_STANDS_WAITING, WR_STANDS_READY, WR_STANDS_RUNNING, WR_STANDS_ENDED };
enum wr_standing wr_run_standing(struct wr_run *run, uint32_t n);

/* "done", "failed" and so on; "waiting", "ready" or "running" if it has not ended. */
const char *wr_standing_name(struct wr_run *run, uint32_t n);

/* "must", "any" and so on. */
const char *wr_need_name(uint8_t kind);

#endif
