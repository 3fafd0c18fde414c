/* The journal: what became of each task, in an SQLite file, so that a later run can go on where this one ended.
 *
 * A task is known by its content: its words, record, group, declared environment and directory, each in a column of
 * its own; equal tasks are told apart by count. So the input may grow, shrink or be reordered between runs.
 * A success is told only after its row is committed. Rows that are there at the same time are committed together.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_JOURNAL_H
#define WR_CLI_ENGINE_JOURNAL_H

#include "cli/engine/run.h"

/* What an earlier run says of a task. */
enum journal_verdict {
    JOURNAL_RUN,    /* it is to be run                                        */
    JOURNAL_DONE,   /* it has succeeded                                       */
    JOURNAL_FAILED, /* it has failed, and is not to be run again              */
};

/* Opens opt->journal_path, or says why not, and answers an exit status. Starts the thread that commits. */
int journal_open(struct journal **out, struct engine *engine);

/* Finds the task among those of earlier runs, or adds it. From the reader's thread. A negative code: the journal cannot
 * be written, as was said. */
int journal_meet(enum journal_verdict *verdict, struct task *task);

/* Writes down what became of a task, and calls tell(task) when that is committed; from any thread. If it cannot be
 * written, that was said, and the task's outcome is NOT_RECORDED. */
void journal_add(struct journal *journal, struct task *task, void (*tell)(struct task *task));

/* Commits what is left and closes. */
void journal_close(struct journal *journal);

#endif
