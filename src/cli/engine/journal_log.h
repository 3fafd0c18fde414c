/* What a journal says: for weir log.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_JOURNAL_LOG_H
#define WR_CLI_ENGINE_JOURNAL_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_form { LOG_TEXT, LOG_JSONL, LOG_CSV };

struct journal_log_options {
    const char *path;
    bool failed;     /* only tasks that failed                        */
    bool by_group;   /* a line per group instead of one per task      */
    bool why_rerun;  /* why the last run ran what it ran              */
    int64_t slowest; /* this many, the slowest first; 0: all, in order */
    enum log_form form;
};

/* Prints it to standard output; answers an exit status. The journal is only read: no write access is needed. */
int journal_log(const struct journal_log_options *opt);

#endif
