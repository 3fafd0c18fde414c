/* The engine: runs commands under an executor, and tells what became of them. It knows nothing of the command that
 * gives it work: a source answers one plan after the other, the engine makes a task of each.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_ENGINE_H
#define WR_CLI_ENGINE_ENGINE_H

#include "cli/engine/gate.h"
#include "cli/engine/halt.h"
#include "cli/engine/rules.h"
#include "cli/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir.h>

enum output_mode {
    OUTPUT_GROUPED, /* a task's output in one piece, when it has ended  */
    OUTPUT_LINES,   /* whole lines as they come                         */
    OUTPUT_FILES,   /* each into files of its own                       */
};

enum progress_mode { PROGRESS_AUTO, PROGRESS_NEVER, PROGRESS_ALWAYS };

/* What to do if a file or directory that a run would write to has content already. */
enum exists_mode { EXISTS_REFUSE, EXISTS_APPEND, EXISTS_NEW };

/* Which file a descriptor or a path leads to. */
struct file_id {
    uint64_t device, inode;
};

struct engine_options { /* as given, with defaults filled in */
    bool keep_order, grouped;
    bool typed_input; /* the input may be typed at the terminal, which then cannot be a display */
    int64_t jobs, per_group;
    struct rules rules;
    int64_t max_wait;      /* tasks under way beyond those that run */
    const char *jobs_file; /* where -j is read from while it runs; NULL: it stays */
    struct gate_limits gate;
    bool trace;       /* -t: print commands as they start */
    bool tty;         /* commands have the terminal, one at a time */
    char *const *env; /* NAME=VALUE for commands, and NAME for the journal */
    size_t env_count;
    int64_t timeout_ns, grace_ns, delay_ns;
    int64_t timeout_percent; /* of what commands usually take; 0: none */
    int64_t retries, backoff_ns, backoff_max_ns;
    int64_t cool_code; /* -1: none */
    int64_t cool_ns;
    struct halt_rule halt;
    enum output_mode output;
    const char *files_directory, *results_path, *temporary;
    const char *journal_path; /* NULL: none */
    bool resume, retry_failed;
    enum exists_mode if_exists;
    bool show_retries;            /* print the output of attempts that failed and were retried */
    const struct file_id *inputs; /* files that must not be written to */
    size_t input_count;
    enum progress_mode progress;
    const char *resolved; /* path of a command that is the same for all; NULL: it varies */
};

/* Where plans come from. Called by one thread of the engine's. */
struct source {
    /* The next plan: 1; 0: there are no more. A plan without a command comes with a sentence that says why. A
     * negative code, with a sentence or none: the input ends here. WEIR_ECANCELED: stop_fd became readable.
     * `seq` is the number that the task will have, from 1. */
    int (*next)(struct plan *out, void *arg, uint64_t seq, weir_message *message);
    /* Bytes of the input that the plans so far took, of `size`; 0: not known. */
    uint64_t (*position)(void *arg);
    int64_t size;
    /* Whether all of the input is known to have become plans, though `next` has not said so yet. */
    bool (*is_used_up)(void *arg);
    void *arg;
};

/* Runs the source's plans until there are no more; answers the exit status. stop_fd is an eventfd that the source waits
 * for, too; it stays the caller's. */
int engine_run(const struct engine_options *opt, const struct source *source, int stop_fd);

#endif
