/* weir map: what its parts share. One file each:
 *
 *     intake.c   reads records, makes jobs, submits them, and waits when enough are under way
 *     job.c      a job from start to end: attempts, retries, cooling down, results
 *     attempt.c  one attempt: starts the command, reads what it writes, ends it in time
 *     printer.c  puts outputs onto standard output and error, in order, never mixed
 *     tally.c    counts per group, for the display
 *     results.c  one line of JSON per job
 *     front.c    the main thread: signals, keys, display, printing, retries that are due
 *
 * Threads: main (front), the reader (intake), and the executor's workers (jobs). Locks are taken one at a time,
 * except that printer and tally may be called with none held.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_MAP_H
#define WR_CLI_MAP_H

#include "base/list.h"
#include "cli/halt.h"
#include "cli/key.h"
#include "cli/quantity.h"
#include "cli/record.h"
#include "cli/rules.h"
#include "cli/slots.h"
#include "cli/spool.h"
#include "cli/standstill.h"
#include "cli/template.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir.h>

enum output_mode {
    OUTPUT_GROUPED, /* a job's output in one piece, when it has ended   */
    OUTPUT_LINES,   /* whole lines as they come                         */
    OUTPUT_FILES,   /* each into files of its own                       */
};

enum progress_mode { PROGRESS_AUTO, PROGRESS_NEVER, PROGRESS_ALWAYS };

struct map_options {   /* as given, with defaults filled in */
    const char *input; /* a file; NULL: standard input       */
    char separator;    /* of records: '\n' or 0               */
    bool header;       /* the first row has names             */
    bool shell, dry_run, keep_order, to_stdin, no_append;
    int64_t jobs, per_group;
    struct rules rules;
    int64_t max_wait; /* records under way beyond those that run */
    int64_t timeout_ns, grace_ns, delay_ns;
    int64_t retries, backoff_ns, backoff_max_ns;
    int64_t cool_code; /* -1: none */
    int64_t cool_ns;
    struct halt_rule halt;
    enum output_mode output;
    const char *files_directory, *results_path, *temporary;
    const char *group_by, *tag, *directory; /* a specification, and templates; NULL: none */
    bool tagged;
    enum progress_mode progress;
};

/* How a job ended. */
#define OUTCOMES(X)                                                             \
    X(DONE, "done")     /* exit 0                                */             \
    X(FAILED, "failed") /* another exit, or a signal             */             \
    X(TIMED_OUT, "timed_out")                                                   \
    X(CANNOT_RUN, "cannot_run")   /* not found, not executable, too long   */   \
    X(BAD_INPUT, "bad_input")     /* the record has no such field, …       */ \
    X(OUTPUT_LOST, "output_lost") /* no room to keep what it wrote         */   \
    X(HALTED, "halted")           /* ended by us before it was done        */   \
    X(NOT_RUN, "not_run")         /* never started, since we stopped first */

enum outcome {
#define OUTCOME_ENUM(name, label) OUTCOME_##name,
    OUTCOMES(OUTCOME_ENUM)
#undef OUTCOME_ENUM
};
const char *outcome_name(enum outcome outcome);

static inline bool outcome_is_failure(enum outcome outcome)
{
    return outcome != OUTCOME_DONE && outcome != OUTCOME_NOT_RUN && outcome != OUTCOME_HALTED;
}

struct tally; /* a group's counts */

enum job_state { JOB_NEW, JOB_WAITS, JOB_RUNS, JOB_RETRIES, JOB_ENDED, JOB_NOT_RUN, JOB_STATES };

/* One record's command. Owned by whoever works on it: the reader, its task, the retries, the printer. */
struct job {
    struct map *map;
    struct wr_list link; /* among its tally's waiting jobs, the retries, or the printer's queue   */
    enum job_state state; /* under the tallies' lock                                              */
    uint64_t seq;         /* from 1                                                               */
    size_t weight; /* bytes it counts for in the window                                          */
    struct tally *tally;
    weir_task *task; /* in JOB_WAITS; the tallies' lock                                          */
    char **argv;
    char *directory, *tag; /* NULL: none */
    struct record input;   /* with --stdin */
    weir_time retry_at;
    int64_t attempts, cooled;
    weir_time queued_at, started_at, ended_at; /* of the last attempt; 0: none */
    enum outcome outcome;
    int status;       /* as from waitpid; -1: it never ran */
    int exec_error;   /* an errno: why it cannot run      */
    int output_error; /* an errno: why its output is lost  */
    bool again;       /* run it once more                  */
    bool counted;     /* among those that have ended */
    struct spooled stream[2];
    bool amid_line[2]; /* --line-buffer: what was printed last has no newline */
};

enum map_phase {
    MAP_RUNNING,
    MAP_DRAINING, /* nothing more is started */
    MAP_ENDING,   /* what runs is being ended */
};

struct printer;
struct reader;
struct results;
struct tallies;
struct retries;

struct map {
    const struct map_options *opt;
    struct record_syntax syntax;
    struct reader *reader;
    weir_executor *executor;
    struct slots *slots;
    struct spool *spool;
    struct printer *printer;
    struct results *results; /* NULL: none wanted */
    struct tallies *tallies;
    struct retries *retries;
    struct template *command, *tag, *directory;
    bool needs_fields; /* somebody looks at columns, or the form is to be checked */
    struct key_rule *key_rule;
    char *resolved; /* path of a command that is the same for all; NULL: it varies */
    int null_fd, directory_fd;
    bool no_rows; /* not even a header, so that no name can be looked for */

    int stop_fd; /* readable: the reader stops */
    int wake_fd; /* readable: the front has something to do */
    _Atomic bool woken;
    _Atomic int phase;
    _Atomic bool wrong; /* something of our own failed: exit status 255 */
    _Atomic bool interrupted;
    _Atomic bool short_told; /* of processes or descriptors, once */
    _Atomic int asked;       /* enum halt_when: what failures ask the front to do */

    /* Jobs under way, from the reader to the printer. */
    pthread_mutex_t window_lock;
    pthread_cond_t window_room;
    uint64_t under_way;
    size_t under_way_bytes;
    bool input_over;
    _Atomic bool all_read;        /* the input's end was reached                          */
    _Atomic uint64_t read;        /* jobs made so far                                     */
    _Atomic uint64_t input_bytes; /* of the input consumed                                */
    int64_t input_size;           /* of a regular file; 0: not known                      */

    _Atomic uint64_t ended; /* of these: */
    _Atomic uint64_t failed, halted;
    _Atomic uint64_t not_run;
    _Atomic weir_time next_start; /* --delay */
    struct standstill standstill;
    _Atomic bool first_told;
    char first_failure[256]; /* for the last words; written once, see first_told          */
    char **environment;      /* ours, less what we set                                     */
    size_t environment_count;
};

/* Runs it all; answers the exit status. */
int map_run(const struct map_options *opt, const struct record_syntax *syntax, char **words);

/* ---- intake.c ------------------------------------------------------------------------------------ */

/* Starts the reader's thread; to be joined when the input is over. */
int intake_start(pthread_t *thread, struct map *map);

/* Asks it to stop reading. */
void intake_stop(struct map *map);

/* A job is over and printed. */
void window_leave(struct map *map, size_t weight);

/* Nothing is under way, and the input is over. */
bool window_is_closed(struct map *map);

/* ---- job.c --------------------------------------------------------------------------------------- */

/* Submits a job, for the first time or again. If that fails, the job is over. */
void job_submit(struct job *job);

/* Its end, with outcome and status set: counts, result line, output to the printer. */
void job_end(struct job *job);
void job_free(struct job *job);

/* ---- attempt.c ----------------------------------------------------------------------------------- */

/* Runs the command once; sets outcome, status, times, and cool_ns if it asked for a pause (else -1). In
 * a task: parks. */
void attempt_run(struct job *job, int64_t *cool_ns);

/* ---- retries (retry.c) ----------------------------------------------------------------------------- */

int retries_new(struct retries **out);
void retries_add(struct retries *retries, struct job *job);
/* The first whose time has come, or NULL; *next is when to look again. */
struct job *retries_due(struct retries *retries, weir_time now, weir_time *next);
/* Any; NULL if there is none. */
struct job *retries_any(struct retries *retries);
void retries_free(struct retries *retries);

/* ---- front.c ------------------------------------------------------------------------------------- */

/* Runs until everything is done; answers the exit status. */
int front_run(struct map *map);
/* Those that come to the front; the others are what they are. */
void front_signals(sigset_t *set);
void front_wake(struct map *map);

/* Says something on standard error, without disturbing the display. From any thread. */
__attribute__((format(printf, 2, 3))) void map_say(struct map *map, const char *format, ...);

#endif
