/* --results: one line of JSON per task.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_RESULTS_H
#define WR_CLI_RESULTS_H

#include "cli/engine/run.h"

/* Opens the file that opt->results_path names, or says why not, and answers an exit status. A file that has content is
 * refused unless opt->if_exists says what to do; so is one that another weir writes to. "-" is standard output. */
int results_open(struct results **out, struct engine *engine);

/* Writes a line, from any thread, in one piece: it is there when this returns. */
void results_add(struct results *results, const struct task *task);

/* An attempt has failed, and there will be another: its exit and what it wrote are kept for the task's line. */
void results_note_attempt(struct task *task);

/* 0, or a negated errno. */
int results_close(struct results *results);

#endif
