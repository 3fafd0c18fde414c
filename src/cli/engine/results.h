/* --results: one line of JSON per task.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_RESULTS_H
#define WR_CLI_RESULTS_H

#include "cli/engine/run.h"

/* 0, or a negated errno. */
int results_open(struct results **out, const char *path);

/* From any thread. What cannot be written is found out by results_flush. */
void results_add(struct results *results, const struct task *task);

/* Brings everything to the file. 0, or a negated errno, once. */
int results_flush(struct results *results);
int results_close(struct results *results);

#endif
