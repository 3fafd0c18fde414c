/* What a command is started with: its words and its environment.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_COMMAND_H
#define WR_CLI_ENGINE_COMMAND_H

#include "cli/engine/run.h"

/* The plan's words with the slot's number in its holes; they are the plan's own if it has none, else to be freed. NULL
 * without memory. */
char **command_words(const struct plan *plan, uint32_t slot);

/* Our environment and what the command may want to know, in one allocation; NULL without memory. Call it in the task's
 * body. cool_fd: where it may write how long to pause; -1: nowhere. */
char **command_environment(const struct engine *engine, const struct task *task, uint32_t slot,
                           int cool_fd);

#endif
