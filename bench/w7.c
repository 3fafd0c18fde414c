/* w7: what it costs to run a command. 5,000 times /bin/true, four at a time, by `weir map` with groups, a timeout
 * and results, the same with a journal, 100 commands of 1,000 records each (next to xargs -n 1000), by the tools people use today, and by bare loops around vfork and posix_spawn, of which the
 * faster is the floor. All run it without arguments: with one it looks up the locale, which takes as long again.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 5000, AT_ONCE = 4 };

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

static double loop(pid_t (*start)(void))
{
    weir_time began = weir_now();
    int started = 0, status;

    for (int ended = 0; ended < JOBS; ended++) {
        for (; started < JOBS && started < ended + AT_ONCE; started++) {
            if (start() < 0)
                bench_die("w7: cannot start %s: %s", command[0], strerror(errno));
        }
        if (wait(&status) < 0 || status)
            bench_die("w7: %s failed", command[0]);
    }
    return (double)(weir_now() - began) / 1e3 / JOBS;
}

/* ---- other tools --------------------------------------------------------------------------------- */

static bool present(const char *tool)
{
    char text[64];

    snprintf(text, sizeof(text), "command -v %s >/dev/null 2>&1", tool);
    return system(text) == 0;
}

static double timed(const char *script)
{
    weir_time began = weir_now();
    int status = system(script);

    if (status)
        bench_die("w7: `%s` failed (%d)", script, status);
    return (double)(weir_now() - began) / 1e3 / JOBS;
}

/* A line of input, a target of make's and one of ninja's for each job. */
static void write_inputs(void)
{
    FILE *in = fopen("in", "w"), *make = fopen("Makefile", "w"), *ninja = fopen("build.ninja", "w");

    if (!in || !make || !ninja)
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
        fprintf(in, "%d\n", i);
        fprintf(make, "t%d:\n\t@/bin/true\n", i);
        fprintf(ninja, "build o%d: t\n", i);
    }
    if (fclose(in) | fclose(make) | fclose(ninja))
        bench_die("w7: cannot write to the temporary directory: %s", strerror(errno));
}

/* The command lies where this program does. */
static const char *weir_path(void)
{
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 10);

    path[length < 0 ? 0 : length] = 0;
    strcpy(strrchr(path, '/'), "/weir");
    return path;
}

/* Time per job of `weir map` with groups, a timeout and results, and with more options. */
static double weir_map(const char *more)
{
    char script[PATH_MAX + 300];

    snprintf(
        script, sizeof(script),
        "rm -f results; '%s' map -a in -j%d --group-by '/(.)$/' --timeout 60s --results results "
        "%s -N -- /bin/true",
        weir_path(), AT_ONCE, more);
    return timed(script);
}

/* Milliseconds for 100,000 records, 1,000 per command. */
static double batches(const char *tool)
{
    char script[PATH_MAX + 100];

    snprintf(script, sizeof(script), "seq 100000 | %s /bin/true", tool);
    return timed(script) * JOBS / 1e3;
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
    char directory[] = "/tmp/weir-w7.XXXXXX", tool[PATH_MAX + 60], remove[64];
    double by_vfork, by_posix_spawn;

    if (!mkdtemp(directory) || chdir(directory) < 0)
        bench_die("w7: %s: %s", directory, strerror(errno));
    write_inputs();
    bench_put(out, BENCH_WEIR, "us_per_job", weir_map(""));
    bench_put(out, BENCH_WEIR, "us_per_job_journal", weir_map("--journal journal"));
    snprintf(tool, sizeof(tool), "'%s' map -j4 -n 1000 --", weir_path());
    bench_put(out, BENCH_WEIR, "ms_batches", batches(tool));
    bench_put(out, "xargs", "ms_batches", batches("xargs -P4 -n 1000"));
    by_vfork = loop(start_vfork);
    by_posix_spawn = loop(start_posix_spawn);
    bench_put(out, "vfork", "us_per_job", by_vfork);
    bench_put(out, "posix_spawn", "us_per_job", by_posix_spawn);
    bench_put(out, "floor", "us_per_job", by_vfork < by_posix_spawn ? by_vfork : by_posix_spawn);
    for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++) {
        if (present(peers[i].tool))
            bench_put(out, peers[i].tool, "us_per_job", timed(peers[i].script));
        else
            fprintf(stderr, "weir-bench: not compared with %s: tools/deps bench installs it\n",
                    peers[i].tool);
    }
    snprintf(remove, sizeof(remove), "rm -rf '%s'", directory);
    if (chdir("/") < 0 || system(remove))
        bench_die("w7: cannot remove %s", directory);
}
