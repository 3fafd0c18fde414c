/* One run of a workload: a child process, its RESULT lines, and what workloads need while they run.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A workload from which no figure comes for so long hangs: a stream of a million commands takes minutes. */
enum { HANG_S = 600, SAID_MAX = 64 << 10 };

/* ---- for workloads --------------------------------------------------------------------------- */

void bench_put(struct bench_out *out, const char *system, const char *metric, double value)
{
    fprintf(out->to, "RESULT %s %s %s=%.9g\n", out->workload, system, metric, value);
    fflush(out->to);
}

void bench_die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "weir-bench: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    _exit(1);
}

void bench_must(int rc, const char *call)
{
    if (rc < 0)
        bench_die("%s: %s", call, weir_strerror(rc));
}

weir_runtime *bench_runtime(const weir_runtime_options *opt)
{
    weir_runtime *rt;

    bench_must(weir_runtime_new(&rt, opt), "weir_runtime_new");
    return rt;
}

weir_executor *bench_executor(const weir_policy *policy)
{
    weir_executor *ex;
    weir_message message;

    if (weir_executor_new(&ex, policy, &message))
        bench_die("weir_executor_new: %s", message.text);
    return ex;
}

void bench_groups(weir_group **out, size_t count, weir_executor *ex)
{
    char key[32];

    for (size_t i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "g%zu", i);
        bench_must(weir_group_get(&out[i], ex, key), "weir_group_get");
    }
}

bool bench_program_path(char *path, size_t size, int up, const char *name)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);

    if (length < 0)
        return false;
    path[length] = '\0';
    for (int i = 0; i <= up; i++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    length = (ssize_t)strlen(path);
    return snprintf(path + length, size - (size_t)length, "/%s", name) <
           (int)(size - (size_t)length);
}

double bench_peak(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage))
        bench_die("getrusage does not work");
    return (double)usage.ru_maxrss * 1024;
}

double bench_rss(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kb = -1;

    while (file && kb < 0 && fgets(line, sizeof(line), file))
        sscanf(line, "Anonymous: %ld", &kb);
    if (kb < 0)
        bench_die("/proc/self/smaps_rollup cannot be read");
    fclose(file);
    return (double)kb * 1024;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof(values[0]), compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

uint64_t bench_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- RESULT lines ---------------------------------------------------------------------------- */

/* Names go into JSON and into a table as they are, so they must be plain. */
static bool name_is_plain(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_.+-");

    return length > 0 && length < BENCH_NAME_MAX && !name[length];
}

static struct bench_figure *figure_get(struct bench_results *results, const char *workload,
                                       const char *system, const char *metric)
{
    struct bench_figure *figure = results->figure;

    for (size_t i = 0; i < results->count; i++, figure++)
        if (strcmp(figure->workload, workload) == 0 && strcmp(figure->system, system) == 0 &&
            strcmp(figure->metric, metric) == 0)
            return figure;
    if (results->count == BENCH_FIGURES_MAX)
        return NULL;
    results->count++;
    snprintf(figure->workload, sizeof(figure->workload), "%s", workload);
    snprintf(figure->system, sizeof(figure->system), "%s", system);
    snprintf(figure->metric, sizeof(figure->metric), "%s", metric);
    return figure;
}

/* `text` is "metric=value". */
static bool figure_join(struct bench_results *results, const char *workload, const char *system,
                        char *text)
{
    char *equals = strchr(text, '='), *end;
    struct bench_figure *figure;
    double value;

    if (!equals)
        return false;
    *equals = '\0';
    value = strtod(equals + 1, &end);
    if (!name_is_plain(text) || end == equals + 1 || *end || !isfinite(value))
        return false;
    figure = figure_get(results, workload, system, text);
    if (!figure || figure->runs == BENCH_RUNS_MAX)
        return false;
    figure->value[figure->runs++] = value;
    return true;
}

/* Answers the number of figures in the line, or -1. */
static int line_join(struct bench_results *results, char *line)
{
    char *rest, *word = strtok_r(line, " ", &rest);
    const char *workload, *system;
    int count = 0;

    if (!word || strcmp(word, "RESULT") != 0)
        return 0;
    workload = strtok_r(NULL, " ", &rest);
    system = strtok_r(NULL, " ", &rest);
    if (!workload || !system || !name_is_plain(workload) || !name_is_plain(system))
        return -1;
    for (; (word = strtok_r(NULL, " ", &rest)); count++)
        if (!figure_join(results, workload, system, word))
            return -1;
    return count;
}

int bench_results_join(struct bench_results *results, char *text)
{
    char *rest;
    int all = 0;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char copy[128];
        int count;
        snprintf(copy, sizeof(copy), "%s", line);
        count = line_join(results, line);
        if (count < 0) {
            fprintf(stderr, "weir-bench: this makes no sense: %s\n", copy);
            return -1;
        }
        all += count;
    }
    return all;
}

/* ---- child processes ------------------------------------------------------------------------- */

/* In the child. It must not outlive its parent, which may be killed or interrupted. */
_Noreturn static void child_main(struct bench_out *out, void (*run)(struct bench_out *out))
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run(out);
    if (fflush(out->to))
        bench_die("%s: the figures are lost: %s", out->workload, strerror(errno));
    _exit(0);
}

/* Reaps a child and answers whether it ended well. */
static bool child_reap(pid_t pid, const char *name)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (WIFSIGNALED(status))
        fprintf(stderr, "weir-bench: %s crashed: %s\n", name, strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        fprintf(stderr, "weir-bench: %s failed\n", name);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void bench_apart(struct bench_out *out, void (*part)(struct bench_out *out))
{
    pid_t pid;

    fflush(out->to); /* what lies in the buffer must not go out twice */
    pid = fork();
    if (pid < 0)
        bench_die("fork: %s", strerror(errno));
    if (pid == 0)
        child_main(out, part);
    if (!child_reap(pid, out->workload))
        _exit(1);
}

/* In the child: becomes the other program, whose figures go to `fd`. What else it says is not for us. */
_Noreturn static void child_become(const char *const *command, int fd)
{
    int nothing = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(fd, STDOUT_FILENO) < 0 || dup2(nothing, STDIN_FILENO) < 0)
        bench_die("dup2: %s", strerror(errno));
    dup2(nothing, STDERR_FILENO);
    execv(command[0], (char *const *)command);
    _exit(127);
}

/* Starts a child and answers where its words come from, or -1. */
static int child_start(pid_t *pid, const struct bench_workload *workload)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC))
        return -1;
    fflush(NULL); /* or the child would say again what we have said */
    *pid = fork();
    if (*pid == 0) {
        struct bench_out out = { .workload = workload->name };
        if (!workload->run)
            child_become(workload->command, fds[1]);
        close(fds[0]);
        out.to = fdopen(fds[1], "w");
        if (!out.to)
            bench_die("fdopen: %s", strerror(errno));
        child_main(&out, workload->run);
    }
    close(fds[1]);
    if (*pid > 0)
        return fds[0];
    close(fds[0]);
    return -1;
}

/* Reads all that comes from `fd` and ends it with a zero. NULL, or why that was not possible. */
static const char *hear(int fd, char *said, size_t size)
{
    weir_time deadline = weir_in_s(HANG_S);
    size_t used = 0;

    for (;;) {
        struct pollfd wanted = { .fd = fd, .events = POLLIN };
        int64_t left_ms = (deadline - weir_now()) / 1000000;
        ssize_t got;
        if (left_ms <= 0)
            return "hung";
        if (poll(&wanted, 1, (int)left_ms) <= 0)
            continue;
        got = read(fd, said + used, size - 1 - used);
        if (got < 0 && errno != EINTR)
            return "cannot be heard";
        if (got == 0) {
            said[used] = '\0';
            return used == size - 1 ? "said too much" : NULL;
        }
        used += got > 0 ? (size_t)got : 0;
        deadline = weir_in_s(HANG_S);
    }
}

bool bench_run(struct bench_results *results, const struct bench_workload *workload)
{
    static char said[SAID_MAX];
    const char *trouble;
    pid_t pid;
    int fd = child_start(&pid, workload);

    if (fd < 0) {
        fprintf(stderr, "weir-bench: no child process: %s\n", strerror(errno));
        return false;
    }
    trouble = hear(fd, said, sizeof(said));
    close(fd);
    if (trouble) {
        fprintf(stderr, "weir-bench: %s %s; it was killed\n", workload->name, trouble);
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return false;
    }
    if (!child_reap(pid, workload->name))
        return false;
    switch (bench_results_join(results, said)) {
    case -1:
        return false;
    case 0:
        fprintf(stderr, "weir-bench: %s gave no figures\n", workload->name);
        return false;
    default:
        return true;
    }
}
