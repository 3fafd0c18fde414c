/* weir-bench: the command line, and the order of the runs.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, FAILED = 1, MISUSED = 2, RUNS_DEFAULT = 5 };

struct choice {
    const struct bench_workload *only; /* NULL: all */
    const char *json;                  /* NULL: none is written */
    long runs;
    bool list, peers;
};

static void usage(FILE *to)
{
    fprintf(to, "usage: weir-bench [--only NAME] [--runs N] [--json FILE] [--no-peers] [--list]\n");
}

static void list_workloads(FILE *to)
{
    for (const struct bench_workload *w = bench_workloads; w->name; w++)
        fprintf(to, "  %-10s %s\n", w->name, w->what);
}

/* ---- command line ---------------------------------------------------------------------------- */

static const struct bench_workload *workload_find(const char *name)
{
    for (const struct bench_workload *w = bench_workloads; w->name; w++)
        if (strcmp(w->name, name) == 0)
            return w;
    fprintf(stderr, "weir-bench: there is no workload '%s'; there are:\n", name);
    list_workloads(stderr);
    exit(MISUSED);
}

static long runs_read(const char *text)
{
    char *end;
    long runs = strtol(text, &end, 10);

    if (end == text || *end || runs < 1 || runs > BENCH_RUNS_MAX) {
        fprintf(stderr, "weir-bench: --runs takes a number from 1 to %d, not '%s'\n",
                BENCH_RUNS_MAX, text);
        exit(MISUSED);
    }
    return runs;
}

static struct choice choice_read(int argc, char **argv)
{
    static const struct option options[] = {
        { "only", required_argument, NULL, 'o' },
        { "runs", required_argument, NULL, 'r' },
        { "json", required_argument, NULL, 'j' },
        { "no-peers", no_argument, NULL, 'n' },
        { "list", no_argument, NULL, 'l' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct choice choice = { .runs = RUNS_DEFAULT, .peers = true };
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'o':
            choice.only = workload_find(optarg);
            break;
        case 'r':
            choice.runs = runs_read(optarg);
            break;
        case 'j':
            choice.json = optarg;
            break;
        case 'n':
            choice.peers = false;
            break;
        case 'l':
            choice.list = true;
            break;
        case 'h':
            usage(stdout);
            exit(OK);
        default:
            usage(stderr);
            exit(MISUSED);
        }
    }
    if (optind < argc) {
        usage(stderr);
        exit(MISUSED);
    }
    return choice;
}

/* Better to hear of a bad path now than after a minute of measuring. */
static bool json_writable(const char *path)
{
    FILE *file = fopen(path, "a");

    if (file && fclose(file) == 0)
        return true;
    fprintf(stderr, "weir-bench: %s: %s\n", path, strerror(errno));
    return false;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* For those who wait: what is being measured, wiped away in the end. */
static void progress(const char *name, long run, long runs)
{
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K");
    if (name)
        fprintf(stderr, "%s %ld/%ld", name, run, runs);
}

/* Every workload once, with the other systems' right after it, then every workload again: a minute in which the machine is busy with something
 * else then spoils one run of each, which a median forgives, and not all runs of one. A workload that
 * failed is not tried again, since it might take its full minute each time. */
static bool run_all(struct bench_results *results, const struct choice *choice)
{
    bool failed[BENCH_FIGURES_MAX] = { false }; /* there are no more workloads than figures */
    bool good = true;

    for (long run = 1; run <= choice->runs; run++)
        for (size_t i = 0; bench_workloads[i].name; i++) {
            const struct bench_workload *w = &bench_workloads[i];
            if (failed[i] || (choice->only && choice->only != w))
                continue;
            progress(w->name, run, choice->runs);
            failed[i] = !bench_run(results, w);
            good = good && !failed[i];
            bench_peers_run(results, w->name);
        }
    progress(NULL, 0, 0);
    return good;
}

int main(int argc, char **argv)
{
    static struct bench_results results;
    struct choice choice = choice_read(argc, argv);
    bool good;
    int rc;

    if (choice.list) {
        list_workloads(stdout);
        return OK;
    }
    if (choice.json && !json_writable(choice.json))
        return FAILED;
    if (choice.peers)
        bench_peers_find(choice.only ? choice.only->name : NULL);
    good = run_all(&results, &choice);
    bench_table_print(&results);
    if (choice.json) {
        rc = bench_json_write(choice.json, &results, choice.only ? choice.only->name : NULL);
        if (rc) {
            fprintf(stderr, "weir-bench: %s: %s\n", choice.json, strerror(-rc));
            good = false;
        }
    }
    return good ? OK : FAILED;
}
