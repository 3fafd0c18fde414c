/* What the workloads, the harness and the report of weir-bench share.
 *
 * A workload runs in a process of its own and tells its figures as lines of text:
 *
 *     RESULT <workload> <system> <metric>=<value> ...
 *
 * Whoever prints such lines can be measured: a forked child of ours, or another program. Of every
 * metric less is better, but of those with "_per_s" in their name.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_H
#define WEIR_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <weir.h>

enum {
    BENCH_NAME_MAX = 32, /* of a workload, a system, a metric; with the final zero */
    BENCH_RUNS_MAX = 100,
    BENCH_FIGURES_MAX = 256,
};

#define BENCH_WEIR      "weir"
#define BENCH_REFERENCE "reference" /* what the machine itself can do, to compare with */
#define BENCH_BEST_PEER "best peer" /* in a target: the one of the other systems with the least */

/* ---- workloads ------------------------------------------------------------------------------- */

/* Where a running workload puts its figures. */
struct bench_out {
    const char *workload;
    FILE *to;
};

struct bench_workload {
    const char *name;
    const char *what;                   /* one line for --list */
    void (*run)(struct bench_out *out); /* one run, in a fresh process */
    const char *const *command; /* or, if there is no run: a program that prints the figures */
};

/* A median of weir's that should not be above a limit. The limit is a number, or a multiple of a median
 * from the same runs; if that one is missing, there is no verdict. */
struct bench_target {
    const char *workload;
    const char *metric;
    double at_most;
    double at_least;   /* or that it should not be below */
    const char *whose; /* at_most is a factor: of this system's; NULL: it is the limit itself */
    const char *of;    /* ... median of this metric; NULL: of the same                        */
};

/* Both end with an entry without a name. */
extern const struct bench_workload bench_workloads[];
extern const struct bench_target bench_targets[];

void bench_switch(struct bench_out *out);
void bench_spawn(struct bench_out *out);
void bench_sleepers(struct bench_out *out);
void bench_timers(struct bench_out *out);
void bench_idle(struct bench_out *out);
void bench_locks(struct bench_out *out);
void bench_w1(struct bench_out *out);
void bench_w1_floor(struct bench_out *out); /* a part of the former */
void bench_w2(struct bench_out *out);
void bench_w3(struct bench_out *out);
void bench_w3b(struct bench_out *out);
void bench_w4(struct bench_out *out);
void bench_w5(struct bench_out *out);
void bench_w6(struct bench_out *out); /* only with libweir-redis */
void bench_w7(struct bench_out *out);
void bench_w7_long(struct bench_out *out);
void bench_w7_stream(struct bench_out *out);
void bench_w8(struct bench_out *out);
void bench_recall(struct bench_out *out);
void bench_fairness(struct bench_out *out);
void bench_nested(struct bench_out *out);

/* ---- for workloads --------------------------------------------------------------------------- */

void bench_put(struct bench_out *out, const char *system, const char *metric, double value);

/* Ends this run as failed. From any thread of the child's. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends this run unless rc, what a call of weir's answered, is success. */
void bench_must(int rc, const char *call);

/* Runs part(out) in one more process, so that neither sees what the other did to its memory. Call it
 * while there is but one thread. */
void bench_apart(struct bench_out *out, void (*part)(struct bench_out *out));

weir_runtime *bench_runtime(const weir_runtime_options *opt);

weir_executor *bench_executor(const weir_policy *policy);

/* The first `count` of groups that are named by number. */
void bench_groups(weir_group **out, size_t count, weir_executor *ex);

/* Where a program lies: `name`, in the directory of this one, or `up` directories above that. False: not known. */
bool bench_program_path(char *path, size_t size, int up, const char *name);

/* Bytes of memory this process has in use, but for files that are mapped; and had at most. */
double bench_rss(void);
double bench_peak(void);

/* Sorts the values. The mean of the middle two if their count is even; 0 if there are none. */
double bench_median(double *values, size_t count);

/* A fixed sequence of numbers that look random; `state` must not be zero. */
uint64_t bench_random(uint64_t *state);

/* ---- a stream of empty tasks; for w1 and locks ------------------------------------------------- */

struct bench_shape {   /* zero asks for the default */
    int tasks;         /* of a round; default: a million                                        */
    int groups;        /* default and most: 64                                                  */
    int limit;         /* of each group; default 4                                              */
    int submitters;    /* threads that submit; default 1, at most 2                             */
    int run;           /* tasks per call, if more than 1                                        */
    int domains;       /* 0: none; else every other one of them may borrow                      */
    int64_t pace;      /* starts per second of each group; 0: as many as there are              */
    bool by_key;       /* submitted by weir_submit_key                                          */
    bool feeds_itself; /* each task submits the next                                          */
    bool on_threads;   /* WEIR_THREADS                                                        */
    bool guarded;      /* one bulkhead that never binds stands before all groups                */
};

struct bench_stream *bench_stream_new(const struct bench_shape *shape);

/* Submits the tasks of one round, waits for them, and answers the time for one, in ns. */
double bench_stream_round(struct bench_stream *stream);

weir_executor *bench_stream_executor(struct bench_stream *stream);

/* Checks that all tasks of all rounds succeeded. */
void bench_stream_free(struct bench_stream *stream);

/* ---- results --------------------------------------------------------------------------------- */

struct bench_figure {
    char workload[BENCH_NAME_MAX];
    char system[BENCH_NAME_MAX];
    char metric[BENCH_NAME_MAX];
    double value[BENCH_RUNS_MAX]; /* one per run */
    size_t runs;
};

struct bench_results {
    struct bench_figure figure[BENCH_FIGURES_MAX]; /* in the order in which they first came */
    size_t count;
};

/* Takes the figures out of the RESULT lines in `text`, which is cut up; other lines are skipped.
 * Answers how many there were, or -1 after showing the first line that makes no sense. */
int bench_results_join(struct bench_results *results, char *text);

/* Runs a workload once, in a child process and joins its figures. False, after saying so: the child
 * crashed or hung, and none were joined; or it told nothing that makes sense. */
bool bench_run(struct bench_results *results, const struct bench_workload *workload);

/* ---- peers ----------------------------------------------------------------------------------- */

/* Looks for the programs of other systems in build/peers, next to the directory of this one, and says
 * which are missing for the workload (NULL: for any). Without this call there are none. */
void bench_peers_find(const char *workload);

/* Runs every program that was found for the workload, once each. One that fails is reported and left out
 * from then on: it is not ours to mend. */
void bench_peers_run(struct bench_results *results, const char *workload);

/* ---- report ---------------------------------------------------------------------------------- */

void bench_table_print(const struct bench_results *results);

/* Writes one line of JSON per figure. With `only`, what the file holds of other workloads is kept.
 * 0, or a negated errno. */
int bench_json_write(const char *path, const struct bench_results *results, const char *only);

#endif
