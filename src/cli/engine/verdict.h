/* The end of a run: what is said, and the exit status.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_VERDICT_H
#define WR_CLI_ENGINE_VERDICT_H

#include "cli/engine/run.h"

/* As GNU parallel's: how many failed, up to 100; 101 for more; 255 if something else went wrong. A command that we ended
 * because others failed has not failed. */
int verdict_status(const struct engine *engine);

/* How many failed, the first of them, and what stopping early has cost; nothing if all is well. */
void verdict_say(const struct engine *engine);

#endif
