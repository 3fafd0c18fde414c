/* w7: what it costs to run a command: /bin/true, four at a time, by `weir map` with groups, a timeout and results, the
 * same with a journal, by the tools people use today, and by bare loops around vfork and posix_spawn, of which the
 * faster is the floor. All run it without arguments: with one it looks up the locale, which takes as long again.
 * What is compared within five per cent takes turns in slices, since a machine changes its pace within seconds.
 * Also 100 commands of 1,000 records each, next to xargs -n 1000.
 *
 * w7_long: 100,000 tasks. w7_stream: the memory that 1,000,000 tasks take beside 100,000, with a journal and without.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 5000, SLICES = 7, SLICE = 1000, AT_ONCE = 4, MANY = 100000 };
enum { FEW_LINES = 100000, MANY_LINES = 1000000 };

extern char **environ;

static char *const command[] = { "/bin/true", NULL };

/* ---- bare loops ---------------------------------------------------------------------------------- */

static pid_t start_vfork(void)
{
    pid_t pid = vfork();

    if (pid == 0) {
        execve(command[0], command, environ);
        _exit(127);
    }
    return pid;
}

static pid_t start_posix_spawn(void)
{
    pid_t pid;

    return posix_spawn(&pid, command[0], NULL, NULL, command, environ) ? -1 : pid;
}

/* Microseconds per job. */
static double loop(pid_t (*start)(void), int jobs)
{
    weir_time began = weir_now();
    int started = 0, status;

    for (int ended = 0; ended < jobs; ended++) {
        for (; started < jobs && started < ended + AT_ONCE; started++) {
            if (start() < 0)
                bench_die("w7: cannot start %s: %s", command[0], strerror(errno));
        }
        if (wait(&status) < 0 || status)
            bench_die("w7: %s failed", command[0]);
    }
    return (double)(weir_now() - began) / 1e3 / jobs;
}

/* ---- other tools --------------------------------------------------------------------------------- */

static bool present(const char *tool)
{
    char text[64];

    snprintf(text, sizeof(text), "command -v %s >/dev/null 2>&1", tool);
    return system(text) == 0;
}

/* Microseconds per job. */
static double timed(const char *script, int jobs)
{
    weir_time began = weir_now();
    int status = system(script);

    if (status)
        bench_die("w7: `%s` failed (%d)", script, status);
    return (double)(weir_now() - began) / 1e3 / jobs;
}

static void numbers(const char *path, int count)
{
    FILE *file = fopen(path, "w");

    if (!file)
        bench_die("w7: cannot write to the temporary directory: %s", strerror(errno));
    for (int i = 0; i < count; i++)
        fprintf(file, "%d\n", i);
    if (fclose(file))
        bench_die("w7: cannot write to the temporary directory: %s", strerror(errno));
}

/* A line of input, a target of make's and one of ninja's for each job. */
static void write_inputs(void)
{
    FILE *make = fopen("Makefile", "w"), *ninja = fopen("build.ninja", "w");

    if (!make || !ninja)
        bench_die("w7: cannot write to the temporary directory: %s", strerror(errno));
    fputs("all:", make);
    for (int i = 0; i < JOBS; i++)
        fprintf(make, " t%d", i);
    fputs("\n.PHONY: all", make);
    for (int i = 0; i < JOBS; i++)
        fprintf(make, " t%d", i);
    fputs("\n", make);
    fputs("rule t\n  command = /bin/true\n", ninja);
    for (int i = 0; i < JOBS; i++) {
        fprintf(make, "t%d:\n\t@/bin/true\n", i);
        fprintf(ninja, "build o%d: t\n", i);
    }
    if (fclose(make) | fclose(ninja))
        bench_die("w7: cannot write to the temporary directory: %s", strerror(errno));
    numbers("in", JOBS);
    numbers("slice", SLICE);
}

/* The command lies where this program does. */
static const char *weir_path(void)
{
    static char path[PATH_MAX];

    if (!bench_program_path(path, sizeof(path), 0, "weir"))
        bench_die("w7: cannot tell where the weir command is");
    return path;
}

/* Microseconds per job of `weir map` with groups, a timeout and results, and with more options. */
static double weir_map(const char *input, int jobs, const char *more)
{
    char script[PATH_MAX + 300];

    snprintf(script, sizeof(script),
             "rm -f results journal*; '%s' map -a %s -j%d --group-by '/(.)$/' --timeout 60s "
             "--results results %s -N -- /bin/true",
             weir_path(), input, AT_ONCE, more);
    return timed(script, jobs);
}

/* ---- slices --------------------------------------------------------------------------------------- */

enum { BY_VFORK, BY_POSIX_SPAWN, BY_WEIR, BY_WEIR_WITH_JOURNAL, WAYS };

static double slice(int way)
{
    switch (way) {
    case BY_VFORK:
        return loop(start_vfork, SLICE);
    case BY_POSIX_SPAWN:
        return loop(start_posix_spawn, SLICE);
    case BY_WEIR:
        return weir_map("slice", SLICE, "");
    default:
        return weir_map("slice", SLICE, "--journal journal");
    }
}

/* The median slice of each way, in microseconds per job. */
static void take_turns(double median[WAYS])
{
    double took[WAYS][SLICES];

    for (int i = 0; i < SLICES; i++)
        for (int way = 0; way < WAYS; way++)
            took[way][i] = slice(way);
    for (int way = 0; way < WAYS; way++)
        median[way] = bench_median(took[way], SLICES);
}

/* ---- the workloads -------------------------------------------------------------------------------- */

static char directory[] = "/tmp/weir-w7.XXXXXX";

static void enter_directory(void)
{
    if (!mkdtemp(directory) || chdir(directory) < 0)
        bench_die("w7: %s: %s", directory, strerror(errno));
}

static void leave_directory(void)
{
    char remove[64];

    snprintf(remove, sizeof(remove), "rm -rf '%s'", directory);
    if (chdir("/") < 0 || system(remove))
        bench_die("w7: cannot remove %s", directory);
}

/* Milliseconds for 100,000 records, 1,000 per command. */
static double batches(const char *tool)
{
    char script[PATH_MAX + 100];

    snprintf(script, sizeof(script), "seq 100000 | %s /bin/true", tool);
    return timed(script, 1) / 1e3;
}

static void compare_batches(struct bench_out *out)
{
    char tool[PATH_MAX + 60];
    double ours[SLICES], theirs[SLICES];

    snprintf(tool, sizeof(tool), "'%s' map -j4 -n 1000 --", weir_path());
    for (int i = 0; i < SLICES; i++) {
        ours[i] = batches(tool);
        theirs[i] = batches("xargs -P4 -n 1000");
    }
    bench_put(out, BENCH_WEIR, "ms_batches", bench_median(ours, SLICES));
    bench_put(out, "xargs", "ms_batches", bench_median(theirs, SLICES));
}

void bench_w7(struct bench_out *out)
{
    static const struct {
        const char *tool, *script;
    } peers[] = {
        { "xargs", "xargs -P4 -I{} /bin/true <in" },
        { "make", "make -s -j4 all" },
        { "ninja", "rm -f .ninja_log .ninja_deps; ninja -j4 >/dev/null" },
        { "parallel", "parallel --will-cite -j4 -N0 /bin/true <in" },
    };
    double median[WAYS];

    enter_directory();
    write_inputs();
    take_turns(median);
    bench_put(out, BENCH_WEIR, "us_per_job", median[BY_WEIR]);
    bench_put(out, BENCH_WEIR, "us_per_job_journal", median[BY_WEIR_WITH_JOURNAL]);
    bench_put(out, "vfork", "us_per_job", median[BY_VFORK]);
    bench_put(out, "posix_spawn", "us_per_job", median[BY_POSIX_SPAWN]);
    bench_put(out, "floor", "us_per_job",
              median[BY_VFORK] < median[BY_POSIX_SPAWN] ? median[BY_VFORK]
                                                        : median[BY_POSIX_SPAWN]);
    compare_batches(out);
    for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++) {
        if (present(peers[i].tool))
            bench_put(out, peers[i].tool, "us_per_job", timed(peers[i].script, JOBS));
        else
            fprintf(stderr, "weir-bench: not compared with %s: tools/deps bench installs it\n",
                    peers[i].tool);
    }
    leave_directory();
}

/* The most memory, in KB, that `weir map` took for that many lines from a pipe, each a task. The command ends at once:
 * a million times /bin/true would take ten minutes. */
static double peak_of_stream(int lines, const char *option, const char *value)
{
    char script[40], nothing[PATH_MAX];
    struct rusage usage;
    int status;
    FILE *stream;
    pid_t pid;

    remove("journal");
    if (!bench_program_path(nothing, sizeof(nothing), 0, "weir-bench-nothing"))
        bench_die("w7_long: cannot tell where weir-bench-nothing is");
    snprintf(script, sizeof(script), "seq %d", lines);
    stream = popen(script, "r");
    pid = stream ? fork() : -1;
    if (pid == 0) {
        dup2(fileno(stream), 0);
        execl(weir_path(), "weir", "map", "-j4", "--group-by", "/(.)$/", "--timeout", "60s", option,
              value, "--", nothing, NULL);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status || pclose(stream))
        bench_die("w7_long: `%s | weir map` failed", script);
    return (double)usage.ru_maxrss;
}

void bench_w7_stream(struct bench_out *out)
{
    enter_directory();
    bench_put(out, BENCH_WEIR, "stream_rss_kb_100k",
              peak_of_stream(FEW_LINES, "--results", "/dev/null"));
    bench_put(out, BENCH_WEIR, "stream_rss_kb_1m",
              peak_of_stream(MANY_LINES, "--results", "/dev/null"));
    bench_put(out, BENCH_WEIR, "stream_rss_kb_100k_journal",
              peak_of_stream(FEW_LINES, "--journal", "journal"));
    bench_put(out, BENCH_WEIR, "stream_rss_kb_1m_journal",
              peak_of_stream(MANY_LINES, "--journal", "journal"));
    leave_directory();
}

void bench_w7_long(struct bench_out *out)
{
    double floor;

    enter_directory();
    numbers("in", MANY);
    floor = loop(start_vfork, MANY / 10);
    bench_put(out, BENCH_WEIR, "us_per_job", weir_map("in", MANY, ""));
    floor += loop(start_vfork, MANY / 10);
    bench_put(out, BENCH_WEIR, "us_per_job_journal", weir_map("in", MANY, "--journal journal"));
    floor += loop(start_vfork, MANY / 10);
    bench_put(out, "floor", "us_per_job", floor / 3);
    leave_directory();
}
