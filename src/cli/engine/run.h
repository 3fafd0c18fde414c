/* What the parts of the engine share. One file each:
 *
 *     window.c   takes plans from the source, makes tasks of them, and waits when enough are under way
 *     task.c     a task from start to end: attempts, retries, cooling down, results
 *     attempt.c  one attempt: starts the command, reads what it writes, ends it in time
 *     printer.c  puts outputs onto standard output and error, in order, never mixed
 *     tally.c    counts per group, for the display
 *     results.c  one line of JSON per task
 *     journal.c  what became of tasks, for later runs
 *     loop.c     the main thread: signals, keys, display, printing, retries that are due
 *     notice.c   what other threads have for it: messages, and when to stop
 *
 * Threads: main (loop), the reader (window), and the executor's workers (tasks). Locks never nest.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_RUN_H
#define WR_CLI_ENGINE_RUN_H

#include "base/list.h"
#include "cli/engine/engine.h"
#include "cli/engine/median.h"
#include "cli/engine/slots.h"
#include "cli/engine/spool.h"
#include "cli/engine/suspend.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

/* How a task ended. */
#define OUTCOMES(X)                                                                  \
    X(DONE, "done")     /* exit 0                                */                  \
    X(FAILED, "failed") /* another exit, or a signal             */                  \
    X(TIMED_OUT, "timed_out")                                                        \
    X(CANNOT_RUN, "cannot_run")     /* not found, not executable, too long   */      \
    X(BAD_INPUT, "bad_input")       /* the record has no such field, ...       */    \
    X(OUTPUT_LOST, "output_lost")   /* no room to keep what it wrote         */      \
    X(NOT_RECORDED, "not_recorded") /* done, but the journal could not be written */ \
    X(SKIPPED, "skipped")           /* an earlier run has done it            */      \
    X(HALTED, "halted")             /* ended by us before it was done        */      \
    X(NOT_RUN, "not_run")           /* never started, since we stopped first */

enum outcome {
#define OUTCOME_ENUM(name, label) OUTCOME_##name,
    OUTCOMES(OUTCOME_ENUM)
#undef OUTCOME_ENUM
};
const char *outcome_name(enum outcome outcome);

static inline bool outcome_is_failure(enum outcome outcome)
{
    return outcome != OUTCOME_DONE && outcome != OUTCOME_NOT_RUN && outcome != OUTCOME_HALTED &&
           outcome != OUTCOME_SKIPPED;
}

struct tally; /* a group's counts */

enum task_state {
    TASK_NEW,
    TASK_WAITS,
    TASK_RUNS,
    TASK_RETRIES, /* between two attempts                                      */
    TASK_RECORDS, /* it has run, but its row in the journal is not committed */
    TASK_ENDED,
    TASK_NOT_RUN,
    TASK_STATES
};

/* One plan and what becomes of it. It belongs to one part at a time: the reader, the executor, the retries, the printer. */
struct task {
    struct engine *engine;
    struct wr_list link; /* among its tally's waiting tasks, the retries, or the printer's queue */
    enum task_state state; /* under the tallies' lock                                             */
    uint64_t seq;          /* from 1                                                              */
    struct plan plan;
    struct tally *tally;
    weir_task *handle; /* in TASK_WAITS; the tallies' lock                                        */
    weir_time retry_at;
    int64_t attempts, cooled;
    weir_time queued_at, started_at, ended_at; /* of the last attempt; 0: none */
    weir_time runs_since;                      /* in TASK_RUNS; the tallies' lock */
    enum outcome outcome;
    int status;         /* as from waitpid; -1: it never ran */
    int exec_error;     /* an errno: why it cannot run      */
    int output_error;   /* an errno: why its output is lost  */
    bool no_files;      /* --files: its files could not be created, so it was not run */
    bool again;         /* run it once more                  */
    bool counted;       /* among the tasks that have ended */
    bool handed_over;   /* its body has passed it on to be told */
    int64_t journal_id; /* its row; 0: none */
    void (*tell)(struct task *task); /* called when that is committed */
    /* How many hold it: the executor, and the part that tells of it */
    _Atomic int holders;
    /* A JSON array, for results; NULL: none */
    char *failed_attempts;
    struct spooled stream[2];
    size_t earlier[2]; /* bytes in them of attempts before, with --show-retries */
    bool amid_line[2]; /* --line-buffer: what was printed last has no newline */
};

enum phase {
    PHASE_RUNNING,
    PHASE_DRAINING, /* nothing more is started */
    PHASE_ENDING,   /* what runs is being ended */
};

/* Tasks under way, from the reader to the printer; under the lock. */
struct window {
    pthread_mutex_t lock;
    pthread_cond_t room;
    uint64_t under_way;
    size_t bytes;
    bool input_over;
};

/* How many tasks there were: read == ended + not_run + skipped + those under way. failed and halted are among the ended. */
struct totals {
    _Atomic uint64_t read, ended, not_run;
    _Atomic uint64_t failed, halted, succeeded;
    _Atomic uint64_t skipped;       /* not ended: an earlier run has done them */
    _Atomic uint64_t failed_before; /* of the skipped */
    _Atomic bool all_read;   /* the input's end was reached                                     */
    _Atomic bool first_told; /* the thread that sets it writes first_failure                    */
    char first_failure[256]; /* for the last words                                              */
};

struct printer;
struct journal;
struct results;
struct tallies;
struct retries;
struct strays;

struct engine {
    const struct engine_options *opt;
    const struct source *source;
    weir_executor *executor;
    struct slots *slots;
    struct spool *spool;
    struct printer *printer;
    struct results *results; /* NULL: none wanted */
    struct journal *journal; /* NULL: none wanted */
    struct tallies *tallies;
    struct retries *retries;
    struct window window;
    struct totals totals;
    struct suspend suspend;
    struct gate gate;
    struct median median; /* of what commands took */
    _Atomic int64_t jobs; /* -j, as it is now; the loop changes it */
    int null_fd, directory_fd;
    int tty_fd;            /* --tty; else -1 */
    char *files_directory; /* of --files, or the name that was found free */
    char run_id[40];       /* in $WEIR_RUN of every command: processes they leave are known by it */
    struct strays *strays;

    int stop_fd; /* readable: the reader stops */
    int wake_fd; /* readable: the loop has something to do */
    _Atomic bool woken;
    _Atomic int phase;
    _Atomic bool wrong; /* something of our own failed: exit status 255 */
    _Atomic bool interrupted;
    _Atomic bool short_told;      /* of processes or descriptors, once */
    _Atomic int asked;            /* enum halt_when: what failures ask the loop to do */
    _Atomic uint64_t input_bytes; /* of the input consumed                                        */
    _Atomic weir_time next_start; /* --delay */
    char **environment;           /* ours, less what we set                                       */
    size_t environment_count;
};

/* ---- window.c ------------------------------------------------------------------------------------ */

/* Starts the reader's thread; to be joined when the input is over. */
int supply_start(pthread_t *thread, struct engine *engine);

/* Asks the reader to stop reading. */
void supply_stop(struct engine *engine);

/* A task is over and printed. */
void window_leave(struct engine *engine, size_t weight);

/* Whether the window is full: no further task may be under way. */
bool window_is_full(struct engine *engine);

/* Whether it is full, with so many tasks under way. */
bool window_is_full_of(struct engine *engine, uint64_t tasks);

/* No more of the input will be read. */
bool window_input_is_over(struct engine *engine);

/* Nothing is under way, and the input is over. */
bool window_is_closed(struct engine *engine);

/* ---- task.c -------------------------------------------------------------------------------------- */

/* Submits a task, for the first time or again. If that fails, the task is over. */
void task_submit(struct task *task);

/* The end of a task, with outcome and status set: counts, result line, output to the printer. */
void task_end(struct task *task);

/* Ends a task that an earlier run has done. */
void task_skip(struct task *task);

/* A holder is done with the task; the last one frees it. */
void task_release(struct task *task);

/* ---- attempt.c ----------------------------------------------------------------------------------- */

/* Runs the command once; sets outcome, status, times, and cool_ns if it asked for a pause (else -1). In
 * a task: parks. */
void attempt_run(struct task *task, int64_t *cool_ns);

/* ---- retries (retry.c) ----------------------------------------------------------------------------- */

int retries_new(struct retries **out);
void retries_add(struct retries *retries, struct task *task);
/* Takes out the first task whose time has come, or NULL; *next is when to look again. */
struct task *retries_due(struct retries *retries, weir_time now, weir_time *next);
/* Takes out any task; NULL if there is none. */
struct task *retries_any(struct retries *retries);
void retries_free(struct retries *retries);

/* ---- loop.c -------------------------------------------------------------------------------------- */

/* Runs until everything is done; answers the exit status. */
int loop_run(struct engine *engine);
/* The signals that come to the loop; the others keep their actions. */
void loop_signals(sigset_t *set);
void engine_wake(struct engine *engine);

/* Says something on standard error, without disturbing the display. From any thread. */
__attribute__((format(printf, 2, 3))) void engine_say(struct engine *engine, const char *format,
                                                      ...);

/* Asks the loop to stop starting commands, or to end those that run. From any thread. */
void engine_ask(struct engine *engine, enum halt_when when);

/* The same about an error of our own that makes going on useless: nothing more is started. */
__attribute__((format(printf, 2, 3))) void engine_fail(struct engine *engine, const char *format,
                                                       ...);

#endif
