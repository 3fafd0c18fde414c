/* Child processes, by way of vfork: the child borrows our memory until it executes.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* execvpe builds a path there; and for a script without #! the shell's argv, as long as ours. */
enum { CHILD_STACK = 24 * 1024, WORDS_ON_STACK = 1024 };

static sigset_t mask;
static pid_t us;
static struct rlimit files;
static bool limit_raised;

void child_setup(void)
{
    sigprocmask(SIG_BLOCK, NULL, &mask);
    us = getpid();
}

void child_raise_descriptors(rlim_t wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= wanted)
        return;
    limit = files;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    limit_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

struct birth {
    const struct child_plan *plan;
    int error;        /* written by the child into our memory */
    sigset_t pending; /* likewise */
};

/* Moves three descriptors to 0, 1 and 2, whichever numbers they have now. They are close-on-exec, and above
 * 3 (see weir's main), so that none is overwritten before it has moved. */
static int take_descriptors(const struct child_plan *plan)
{
    if (dup2(plan->input, 0) < 0 || dup2(plan->output, 1) < 0 || dup2(plan->error, 2) < 0)
        return -1;
    return plan->extra < 0 ? 0 : dup2(plan->extra, 3);
}

/* Forgets the signals that the terminal sent to our parent's process group before we left that: they are the parent's
 * affair. A pending signal that is ignored for a moment is forgotten. */
static void forget_pending(sigset_t *pending)
{
    static const int sent[] = { SIGINT, SIGQUIT, SIGTSTP, SIGHUP, SIGTERM };

    if (sigpending(pending) < 0)
        return;
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
        if (sigismember(pending, sent[i]))
            signal(sent[i], signal(sent[i], SIG_IGN));
}

/* Runs on a stack of its own in the parent's memory, while the parent's thread waits: it may write to
 * nothing but `birth` and plan->group. */
static int be_born(void *arg)
{
    struct birth *birth = arg;
    const struct child_plan *plan = birth->plan;

    setpgid(0, 0);
    forget_pending(&birth->pending); /* from here on all that comes is meant for us */
    atomic_store(plan->group, getpid());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != us)
        _exit(127); /* too late for the signal */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGTTIN, SIG_IGN); /* reading from the terminal is an error, not a stop without end */
    signal(SIGTTOU, SIG_IGN);
    if (plan->terminal >= 0) {
        tcsetpgrp(plan->terminal, getpid());
        signal(SIGTTIN, SIG_DFL);
        signal(SIGTTOU, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (limit_raised)
        setrlimit(RLIMIT_NOFILE, &files);
    if (take_descriptors(plan) >= 0 && (!plan->directory || chdir(plan->directory) == 0))
        execvpe(plan->file, plan->argv, plan->envp);
    birth->error = errno;
    atomic_store(plan->group, 0);
    _exit(127);
}

static int start_on(char *stack_top, struct child *child, const struct child_plan *plan)
{
    struct birth birth = { .plan = plan };

    /* Our signals are blocked in all threads, so no handler of ours can run in the child. */
    child->pid = clone(be_born, stack_top, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &birth,
                       &child->fd);
    if (child->pid < 0)
        return -errno;
    if (!birth.error)
        return 0;
    child_reap(child);
    return -birth.error;
}

int child_start(struct child *child, const struct child_plan *plan)
{
    _Alignas(16) char stack[CHILD_STACK];
    size_t words = 0, size;
    char *larger;
    int rc;

    while (plan->argv[words])
        words++;
    if (words <= WORDS_ON_STACK)
        return start_on(stack + sizeof(stack), child, plan);
    size = (CHILD_STACK + words * sizeof(char *)) / 16 * 16;
    larger = malloc(size); /* aligned to 16 */
    if (!larger)
        return -ENOMEM;
    rc = start_on(larger + size, child, plan);
    free(larger);
    return rc;
}

int child_reap(struct child *child)
{
    int status = 0;

    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(child->fd);
    child->fd = -1;
    return status;
}

/* 0, or why it cannot be executed. */
static int executable(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

char *child_find(const char *command)
{
    const char *path = getenv("PATH"), *end;
    int error = ENOENT, found;
    char candidate[PATH_MAX];

    if (strchr(command, '/')) {
        errno = executable(command);
        return errno ? NULL : strdup(command);
    }
    if (!path)
        path = "/bin:/usr/bin";
    for (; *command; path = end + 1) {
        end = strchrnul(path, ':');
        snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)(end - path), path,
                 end > path ? "/" : "./", command);
        found = executable(candidate);
        if (!found)
            return strdup(candidate);
        if (found == EACCES)
            error = EACCES;
        if (!*end)
            break;
    }
    errno = error;
    return NULL;
}
