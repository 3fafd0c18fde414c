/* Commands: started with pipes, watched until they and all their descendants are gone.
 * SPDX-License-Identifier: MIT */
#include "command/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct flow {
    int fd; /* -1: ended */
    char *text;
    size_t length, size;
};

static struct {
    struct command command;
    pid_t pid;
    int pidfd, input;
    size_t input_done;
    struct flow flow[2];
    double began, limit;
    bool late;
    struct ran ran;
} now = { .pidfd = -1, .input = -1 };

static void must(bool so, const char *what)
{
    if (so)
        return;
    perror(what);
    abort();
}

static double clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool step(void);

/* ---- scratch ------------------------------------------------------------------------------------- */

static char directory[64];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static pid_t owner;

static void remove_directory(void)
{
    if (getpid() == owner)
        nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];

    if (!directory[0]) {
        strcpy(directory, "/tmp/weir-test.XXXXXX");
        must(mkdtemp(directory) != NULL, "mkdtemp");
        owner = getpid();
        atexit(remove_directory);
    }
    snprintf(path, sizeof(paths[0]), "%s%s%s", directory, *name ? "/" : "", name);
    return path;
}

void scratch_write(const char *name, const char *text, size_t length)
{
    FILE *file = fopen(scratch(name), "we");

    must(file != NULL, name);
    if (!length)
        length = strlen(text);
    must(fwrite(text, 1, length, file) == length, name);
    must(fclose(file) == 0, name);
}

const char *scratch_read(const char *name)
{
    static char *text;
    FILE *file = fopen(scratch(name), "re");
    size_t size = 0, length = 0, n;

    if (!file)
        return NULL;
    do {
        size = size * 2 + 4096;
        text = realloc(text, size + 1);
        must(text != NULL, "realloc");
        n = fread(text + length, 1, size - length, file);
        length += n;
    } while (length == size);
    fclose(file);
    text[length] = 0;
    return text;
}

bool scratch_await(const char *name, const char *text)
{
    double limit = clock_now() + PATIENCE_S;

    for (;;) {
        const char *found = scratch_read(name);
        if (found && strstr(found, text))
            return true;
        if (clock_now() > limit)
            return false;
        if (now.pidfd < 0 || !step())
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}

/* ---- start --------------------------------------------------------------------------------------- */

static void become(const int fds[3])
{
    const struct command *c = &now.command;
    char path[4096];

    for (int i = 0; i < 3; i++)
        dup2(fds[i], i);
    syscall(SYS_close_range, 3, ~0U, 0);
    signal(SIGPIPE, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    if (chdir(c->directory ? c->directory : scratch("")) < 0)
        _exit(125);
    snprintf(path, sizeof(path), "%.*s:%s", (int)(strrchr(WEIR_COMMAND, '/') - WEIR_COMMAND),
             WEIR_COMMAND, getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    setenv("PATH", path, 1);
    setenv("CHILD", MAP_CHILD, 1);
    for (const char *const *env = c->env; env && *env; env++)
        putenv((char *)*env);
    execv(c->argv[0], (char *const *)c->argv);
    _exit(125);
}

static void forget(void)
{
    for (int i = 0; i < 2; i++) {
        free(now.flow[i].text);
        now.flow[i] = (struct flow){ .fd = -1 };
    }
    now.ran = (struct ran){ 0 };
}

void command_start(const struct command *command)
{
    int in[2], out[2], err[2];

    forget();
    scratch("");
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* a process that loses its parent comes to us */
    signal(SIGPIPE, SIG_IGN);
    now.command = *command;
    if (!command->input_length && command->input)
        now.command.input_length = strlen(command->input);
    must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0,
         "pipe");
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    fflush(NULL);
    now.began = clock_now();
    now.limit = now.began + PATIENCE_S;
    now.late = false;
    now.pid = fork();
    must(now.pid >= 0, "fork");
    if (now.pid == 0)
        become((int[]){ in[0], out[1], err[1] });
    close(in[0]);
    close(out[1]);
    close(err[1]);
    now.pidfd = (int)syscall(SYS_pidfd_open, now.pid, 0);
    must(now.pidfd >= 0, "pidfd_open");
    now.input = in[1];
    now.input_done = 0;
    now.flow[0].fd = out[0];
    now.flow[1].fd = err[0];
}

pid_t command_pid(void)
{
    return now.pid;
}

/* ---- while it runs ------------------------------------------------------------------------------- */

void command_end_input(void)
{
    if (now.input >= 0)
        close(now.input);
    now.input = -1;
}

static void feed(void)
{
    size_t left = now.command.input_length - now.input_done;
    ssize_t n = left ? write(now.input, now.command.input + now.input_done, left) : 0;

    if (n > 0)
        now.input_done += (size_t)n;
    else if (n < 0 && errno == EPIPE) /* it wants no more */
        now.input_done = now.command.input_length;
    if (now.input_done == now.command.input_length && !now.command.input_stays)
        command_end_input();
}

static void take(struct flow *flow, bool keep)
{
    static char buffer[1 << 16];
    ssize_t n = read(flow->fd, buffer, sizeof(buffer));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close(flow->fd);
        flow->fd = -1;
        return;
    }
    if (keep) {
        if (flow->length + (size_t)n >= flow->size) {
            flow->size = (flow->length + (size_t)n) * 2;
            flow->text = realloc(flow->text, flow->size);
            must(flow->text != NULL, "realloc");
        }
        memcpy(flow->text + flow->length, buffer, (size_t)n);
        flow->text[flow->length + (size_t)n] = 0;
    }
    flow->length += (size_t)n;
    now.limit = clock_now() + PATIENCE_S; /* it is late only if nothing comes */
}

/* One step; false: the command has ended, or is late. */
static bool step(void)
{
    bool more = now.input >= 0 && now.input_done < now.command.input_length;
    struct pollfd polled[] = {
        { .fd = now.pidfd, .events = POLLIN },
        { .fd = now.flow[0].fd, .events = POLLIN },
        { .fd = now.flow[1].fd, .events = POLLIN },
        { .fd = more ? now.input : -1, .events = POLLOUT },
    };

    if (now.input >= 0 && !more && !now.command.input_stays)
        command_end_input();
    poll(polled, 4, 5);
    for (int i = 0; i < 2; i++)
        if (polled[1 + i].revents)
            take(&now.flow[i], i == 1 || !now.command.count_only);
    if (polled[3].revents)
        feed();
    now.late = clock_now() > now.limit;
    return !polled[0].revents && !now.late;
}

void command_say(const char *text)
{
    must(write(now.input, text, strlen(text)) == (ssize_t)strlen(text), "input");
}

static bool await_text(const struct flow *flow, const char *text)
{
    bool runs = true;

    while (!flow->text || !strstr(flow->text, text)) {
        if (!runs)
            return false;
        runs = step();
    }
    return true;
}

bool command_await_output(const char *text)
{
    return await_text(&now.flow[0], text);
}

bool command_await_message(const char *text)
{
    return await_text(&now.flow[1], text);
}

/* ---- its end ------------------------------------------------------------------------------------- */

/* Processes that are our children now; `signal` 0 only counts them. */
static int each_child(int signal)
{
    char path[64], text[4096];
    FILE *file;
    int count = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    file = fopen(path, "re");
    while (file && fscanf(file, "%31s", text) == 1) {
        pid_t pid = (pid_t)atoi(text);
        siginfo_t info = { 0 };
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG) == 0 && info.si_pid == pid)
            continue; /* it was over, and is reaped now */
        count++;
        if (signal)
            kill(pid, signal);
    }
    if (file)
        fclose(file);
    return count;
}

/* Processes that were left are ours; they have a moment to end by themselves. */
static int count_left(void)
{
    double limit = clock_now() + (now.command.leaves || now.late ? 0 : PATIENCE_S);
    int left;

    while ((left = each_child(0)) && clock_now() < limit)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    while (each_child(SIGKILL))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return left;
}

const struct ran *command_finish(void)
{
    struct ran *ran = &now.ran;
    struct rusage usage = { 0 };
    int status = 0;

    while (step())
        ;
    if (now.late)
        kill(now.pid, SIGKILL);
    while (wait4(now.pid, &status, 0, &usage) < 0 && errno == EINTR)
        ;
    ran->seconds = clock_now() - now.began;
    ran->late = now.late;
    ran->left = count_left(); /* before the pipes are read: a process that held them is gone then */
    for (int i = 0; i < 2; i++) {
        while (now.flow[i].fd >= 0)
            take(&now.flow[i], i == 1 || !now.command.count_only);
        if (!now.flow[i].text)
            now.flow[i].text = strdup("");
    }
    command_end_input();
    close(now.pidfd);
    now.pidfd = -1;
    ran->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    ran->out = now.flow[0].text;
    ran->out_length = now.flow[0].length;
    ran->err = now.flow[1].text;
    ran->err_length = now.flow[1].length;
    ran->peak_kb = usage.ru_maxrss;
    return ran;
}

const struct ran *command_run(const struct command *command)
{
    command_start(command);
    return command_finish();
}
