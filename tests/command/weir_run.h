/* The weir command for tests: in pipes or in a terminal, with commands that wait for leave to go on.
 *
 * Tests run in a directory of their own, which weir and its commands inherit. The test's process adopts
 * whatever loses its parent below it, so "nothing is left" can be said for certain: it has no children.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_WEIR_RUN_H
#define WR_TESTS_WEIR_RUN_H

#include "command/screen.h"
#include "support/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <locale.h>
#include <poll.h>
#include <pty.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Waits for a condition that another process brings about, doing `step` (which should take a moment) meanwhile. */
#define AWAIT_DOING(condition, step)                                       \
    for (weir_time until_ = patience(); !(condition);) {                   \
        if (weir_now() >= until_) {                                        \
            check_that(false, "in time: " #condition, __FILE__, __LINE__); \
            break;                                                         \
        }                                                                  \
        step;                                                              \
    }

static inline void moment(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
}

#define AWAIT_THAT(condition) AWAIT_DOING(condition, moment())

/* ---- a directory, files, gates ------------------------------------------------------------------- */

static char work_directory[] = "/tmp/weir-test-XXXXXX";

static inline int work_begin(void **state)
{
    (void)state;
    setlocale(LC_ALL, "C.UTF-8");
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    unsetenv("ENV");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    return mkdtemp(work_directory) && chdir(work_directory) == 0 ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static inline int work_end(void **state)
{
    (void)state;
    return chdir("/") == 0 ? nftw(work_directory, remove_one, 8, FTW_DEPTH | FTW_PHYS) : -1;
}

static inline void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* A file's content, cut to `size`. Lent until the next call. */
static inline const char *read_file(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

    text[n] = 0;
    if (file)
        fclose(file);
    return text;
}

static inline int count_lines_of(const char *path)
{
    int lines = 0;

    for (const char *at = read_file(path); (at = strchr(at, '\n')); at++)
        lines++;
    return lines;
}

/* A gate holds up `read x <PATH` until it is opened for one. */
static inline int gate_new(const char *path)
{
    int fd;

    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static inline void gate_open(int gate, int times)
{
    while (times-- > 0)
        CHECK_EQUAL(write(gate, "\n", 1), 1);
}

/* ---- processes ----------------------------------------------------------------------------------- */

/* The state letter of a process and its parent; 0: there is none. */
static inline char process_state(pid_t pid, pid_t *parent)
{
    char path[64], text[512];
    const char *after;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    after = strrchr(text, ')');
    if (!after || strlen(after) < 4)
        return 0;
    if (parent)
        *parent = (pid_t)atoi(after + 4);
    return after[2];
}

/* Children of a process, at most `max`. */
static inline int children_of(pid_t parent, pid_t *pids, int max)
{
    DIR *proc = opendir("/proc");
    int count = 0;

    assert_non_null(proc);
    for (struct dirent *e = readdir(proc); e; e = readdir(proc)) {
        pid_t pid = (pid_t)atoi(e->d_name), its_parent;
        if (pid > 0 && process_state(pid, &its_parent) && its_parent == parent && count < max)
            pids[count++] = pid;
    }
    closedir(proc);
    return count;
}

/* The process named in a file that a command wrote with `echo $$`; 0: not yet. */
static inline pid_t pid_in(const char *path)
{
    const char *text = read_file(path);

    return strchr(text, '\n') ? (pid_t)atoi(text) : 0;
}

static inline bool is_gone(pid_t pid)
{
    char state = process_state(pid, NULL);

    return state == 0 || state == 'Z';
}

static inline bool no_children(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    return pid < 0 && errno == ECHILD;
}

static inline void tell_children(void)
{
    pid_t pids[64];
    int n = children_of(getpid(), pids, 64);

    for (int i = 0; i < n; i++) {
        char path[64], *at;
        snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pids[i]);
        at = (char *)read_file(path);
        printf("left behind: %d %c %s\n", (int)pids[i], process_state(pids[i], NULL), at);
        kill(pids[i], SIGKILL); /* ours by adoption, so this is the one we mean */
    }
}

/* Nothing that descends from us is left. Killed processes may take a moment to be gone. */
static inline bool nothing_is_left(void)
{
    weir_time until = patience();

    while (!no_children()) {
        if (weir_now() >= until) {
            tell_children();
            check_that(false, "nothing is left", __FILE__, __LINE__);
            return false;
        }
        moment();
    }
    return true;
}

/* ---- in pipes ------------------------------------------------------------------------------------ */

#define WEIR(...) ((const char *const[]){ WEIR_COMMAND, __VA_ARGS__, NULL })

static inline void redirect(int to, const char *path)
{
    int fd = open(path, to == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || dup2(fd, to) < 0)
        _exit(126);
    close(fd);
}

/* Starts weir with files for input, output and error; in a process group of its own. */
static inline pid_t weir_start(const char *const *argv, const char *in, const char *out,
                               const char *err)
{
    pid_t pid;

    unlink("results"); /* of the run before, which --results would refuse */
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        setpgid(pid, pid);
        return pid;
    }
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    signal(SIGPIPE, SIG_DFL);
    redirect(0, in);
    redirect(1, out);
    redirect(2, err);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

/* The exit status, or 1000 and a signal's number; kills what takes too long. */
static inline int weir_end(pid_t pid)
{
    weir_time until = patience();
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (weir_now() >= until) {
            check_that(false, "weir ends in time", __FILE__, __LINE__);
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        moment();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline int weir_run(const char *const *argv, const char *in)
{
    return weir_end(weir_start(argv, in, "out", "err"));
}

/* ---- in a terminal ------------------------------------------------------------------------------- */

struct terminal_options {
    int cols, rows;
    bool background;            /* not the terminal's foreground          */
    const char *in, *out, *err; /* files; NULL: the terminal              */
    int ignore;                 /* a signal that is ignored from the start */
};

/* A terminal, and a shell in it that runs weir as a job. */
struct terminal {
    int master;
    struct screen *screen;
    char *raw; /* all that has come */
    size_t length, size;
    struct termios before;
    pid_t shell, weir;
    int orders, news; /* to the shell, and from it */
    bool stopped, ended;
    int status; /* as weir_end's */
};

struct news {
    enum { STARTED, STOPPED, ENDED } what;
    int value;
};

static inline void tell(int fd, int what, int value)
{
    struct news news = { .what = what, .value = value };

    if (write(fd, &news, sizeof(news)) != sizeof(news))
        _exit(125);
}

static inline void be_the_job(const struct terminal_options *opt, const char *const *argv)
{
    setpgid(0, 0);
    if (!opt->background)
        tcsetpgrp(0, getpgrp());
    signal(SIGTTOU, SIG_DFL);
    signal(SIGTTIN, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    if (opt->ignore)
        signal(opt->ignore, SIG_IGN);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    if (opt->in)
        redirect(0, opt->in);
    if (opt->out)
        redirect(1, opt->out);
    if (opt->err)
        redirect(2, opt->err);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

/* As a shell does it: the job has a process group and, unless in the background, the terminal. */
static inline void be_the_shell(const struct terminal_options *opt, const char *const *argv,
                                int orders, int news)
{
    int status;
    char order;
    pid_t job;

    signal(SIGTTOU, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    job = fork();
    if (job == 0) {
        signal(SIGTSTP, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        be_the_job(opt, argv);
    }
    setpgid(job, job);
    if (!opt->background)
        tcsetpgrp(0, job);
    tell(news, STARTED, job);
    for (;;) {
        if (waitpid(job, &status, WUNTRACED) < 0)
            _exit(124);
        if (!opt->background)
            tcsetpgrp(0, getpgrp());
        if (!WIFSTOPPED(status))
            break;
        tell(news, STOPPED, WSTOPSIG(status));
        if (read(orders, &order, 1) != 1)
            _exit(0);
        tcsetpgrp(0, job);
        kill(-job, SIGCONT);
    }
    tell(news, ENDED, WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
    while (read(orders, &order, 1) == 1)
        continue;
    _exit(0);
}

static inline void take_news(struct terminal *t)
{
    struct news news;

    if (read(t->news, &news, sizeof(news)) != sizeof(news))
        return;
    if (news.what == STARTED) {
        t->weir = news.value;
    } else if (news.what == STOPPED) {
        t->stopped = true;
    } else {
        t->ended = true;
        t->status = news.value;
    }
}

static inline void keep_raw(struct terminal *t, const char *bytes, size_t n)
{
    if (t->length + n + 1 > t->size) {
        t->size = 2 * (t->length + n + 1);
        t->raw = realloc(t->raw, t->size);
        assert_non_null(t->raw);
    }
    memcpy(t->raw + t->length, bytes, n);
    t->length += n;
    t->raw[t->length] = 0;
}

/* Takes what has come; waits a little if there is nothing. False: nothing came. */
static inline bool pump(struct terminal *t, int wait_ms)
{
    struct pollfd polled[] = { { .fd = t->master, .events = POLLIN },
                               { .fd = t->news, .events = POLLIN } };
    char bytes[65536];
    ssize_t n;

    if (poll(polled, 2, wait_ms) <= 0)
        return false;
    if (polled[1].revents & POLLIN)
        take_news(t);
    if (!(polled[0].revents & POLLIN))
        return (polled[1].revents & POLLIN) != 0;
    n = read(t->master, bytes, sizeof(bytes));
    if (n <= 0)
        return false;
    screen_feed(t->screen, bytes, (size_t)n);
    keep_raw(t, bytes, (size_t)n);
    return true;
}

#define SEE_THAT(t, condition)                                         \
    do {                                                               \
        int failed_ = atomic_load(&checks_failed);                     \
        AWAIT_DOING(condition, pump(t, 20));                           \
        if (atomic_load(&checks_failed) > failed_)                     \
            printf("the screen:\n%s----\n", screen_text((t)->screen)); \
    } while (0)

static inline bool shows(struct terminal *t, const char *text)
{
    return screen_find(t->screen, text) >= 0;
}

#define SEE(t, text)     SEE_THAT(t, shows(t, text))
#define SEE_NOT(t, text) SEE_THAT(t, !shows(t, text))

static inline void terminal_start(struct terminal *t, const struct terminal_options *opt,
                                  const char *const *argv)
{
    struct winsize size = { .ws_col = (unsigned short)opt->cols,
                            .ws_row = (unsigned short)opt->rows };
    int orders[2], news[2];

    unlink("results");
    *t = (struct terminal){ .screen = screen_new(opt->cols, opt->rows) };
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(news, O_CLOEXEC), 0);
    fflush(NULL);
    t->shell = forkpty(&t->master, NULL, NULL, &size);
    assert_true(t->shell >= 0);
    if (t->shell == 0) {
        close(orders[1]);
        close(news[0]);
        be_the_shell(opt, argv, orders[0], news[1]);
    }
    fcntl(t->master, F_SETFD, FD_CLOEXEC);
    close(orders[0]);
    close(news[1]);
    t->orders = orders[1];
    t->news = news[0];
    tcgetattr(t->master, &t->before); /* perhaps weir is faster: see ended_well */
    t->before.c_lflag |= ICANON | ECHO;
    SEE_THAT(t, t->weir > 0);
}

static inline void type(struct terminal *t, const char *keys)
{
    CHECK_EQUAL(write(t->master, keys, strlen(keys)), (ssize_t)strlen(keys));
}

static inline void resize(struct terminal *t, int cols, int rows)
{
    struct winsize size = { .ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows };

    while (pump(t, 0)) /* what was meant for the old size */
        continue;
    screen_resize(t->screen, cols, rows);
    CHECK_EQUAL(ioctl(t->master, TIOCSWINSZ, &size), 0);
}

static inline bool settings_are_back(struct terminal *t)
{
    struct termios now;

    return tcgetattr(t->master, &now) == 0 && now.c_lflag == t->before.c_lflag &&
           now.c_iflag == t->before.c_iflag && now.c_oflag == t->before.c_oflag &&
           now.c_cc[VMIN] == t->before.c_cc[VMIN];
}

static inline bool is_raw(struct terminal *t)
{
    struct termios now;

    return tcgetattr(t->master, &now) == 0 && !(now.c_lflag & (ICANON | ECHO));
}

/* Waits for weir's end, which leaves the terminal as it was, and nothing else. Answers the status. */
static inline int terminal_end(struct terminal *t)
{
    SEE_THAT(t, t->ended);
    while (pump(t, 0))
        continue;
    if (!t->ended)
        kill(t->weir, SIGKILL);
    CHECK(settings_are_back(t));
    CHECK(screen_cursor_visible(t->screen));
    CHECK_EQUAL(screen_unknown(t->screen), 0);
    close(t->orders);
    close(t->news);
    nothing_is_left();
    close(t->master);
    return t->status;
}

static inline void terminal_free(struct terminal *t)
{
    screen_free(t->screen);
    free(t->raw);
}

#endif
