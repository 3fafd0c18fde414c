/* Timelines of runs.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FLOW_PICTURE_H
#define WR_FLOW_PICTURE_H

#include "flow/run.h"

/* Adds the timeline of a run that has times, as JSON for the viewers of Chrome and Perfetto. */
void wr_trace_draw(struct wr_text *text, struct wr_run *run);

#endif
