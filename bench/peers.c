/* Other systems at the same workloads: the programs that bench/peers/build makes of bench/peers.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

struct peer {
    const char *program;  /* in build/peers                              */
    const char *workload; /* its first argument                          */
    const char *variant;  /* its second, if it has several ways to do it */
    bool present;
};

/* By program. Each puts its own name, with the variant, into its RESULT lines. */
static struct peer peers[] = {
    { "pool", "w1", .variant = NULL },        { "pool", "w2", .variant = NULL },
    { "pool", "w3", .variant = NULL },        { "tbb", "w1", .variant = "flow" },
    { "tbb", "w1", .variant = "arena" },      { "tbb", "w2", .variant = "flow" },
    { "tbb", "w2", .variant = "arena" },      { "tbb", "w3", .variant = "arena" },
    { "tbb", "w3", .variant = "prio" },       { "taskflow", "w1", .variant = NULL },
    { "taskflow", "w2", .variant = NULL },    { "go", "w1", .variant = "chan" },
    { "go", "w1", .variant = "chanout" },     { "go", "w1", .variant = "weighted" },
    { "go", "w1", .variant = "workers" },     { "go", "w1", .variant = "workers16k" },
    { "go", "w2", .variant = "chan" },        { "go", "w3", .variant = "chan" },
    { "go", "w3", .variant = "chanout" },     { "tokio", "w1", .variant = "out" },
    { "tokio", "w1", .variant = "in" },       { "tokio", "w1", .variant = "back" },
    { "tokio", "w1", .variant = "workers" },  { "tokio", "w2", .variant = NULL },
    { "java", "w1", .variant = NULL },        { "java", "w2", .variant = NULL },
    { "java", "w3", .variant = NULL },        { "tbb", "w4", .variant = "flow" },
    { "go", "w4", .variant = "counter" },     { "guards", "w5", .variant = NULL },
    { "go-guards", "w5", .variant = NULL },   { "go-rate", "w5", .variant = NULL },
    { "java-guards", "w5", .variant = NULL }, { .program = NULL },
};

static char directory[PATH_MAX]; /* empty: nobody looked */

static void program_path(char *path, size_t size, const struct peer *peer)
{
    snprintf(path, size, "%s/%s", directory, peer->program);
}

void bench_peers_find(const char *workload)
{
    char path[PATH_MAX + BENCH_NAME_MAX];
    const char *named = ""; /* the latest one that we said is missing */

    /* build/release/weir-bench looks in build/peers. */
    if (!bench_program_path(directory, sizeof(directory), 1, "peers"))
        return;
    for (struct peer *peer = peers; peer->program; peer++) {
        program_path(path, sizeof(path), peer);
        peer->present = access(path, X_OK) == 0;
        if (peer->present || (workload && strcmp(peer->workload, workload) != 0) ||
            strcmp(peer->program, named) == 0)
            continue;
        fprintf(stderr, "%s %s", *named ? "," : "weir-bench: not compared with", peer->program);
        named = peer->program;
    }
    if (*named)
        fprintf(stderr, ": bench/peers/build says what they need\n");
}

void bench_peers_run(struct bench_results *results, const char *workload)
{
    for (struct peer *peer = peers; peer->program; peer++) {
        char path[PATH_MAX + BENCH_NAME_MAX], name[4 * BENCH_NAME_MAX];
        const char *command[] = { path, peer->workload, peer->variant, NULL };
        struct bench_workload run = { .name = name, .command = command };
        if (!peer->present || strcmp(peer->workload, workload) != 0)
            continue;
        program_path(path, sizeof(path), peer);
        snprintf(name, sizeof(name), "%s of %s%s%s", peer->workload, peer->program,
                 peer->variant ? "-" : "", peer->variant ? peer->variant : "");
        peer->present = bench_run(results, &run);
    }
}
