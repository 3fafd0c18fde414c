/* Child processes for tests: where something may die, hang, or use up what it has.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_CHILD_H
#define WR_TESTS_CHILD_H

#include "support/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Waits for a child; kills it when it takes too long, so that it dies of SIGKILL then. */
static inline int child_end(pid_t pid)
{
    weir_time limit = patience();
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (weir_now() >= limit) {
            printf("the child did not end\n");
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
    }
    return status;
}

/* Runs a function in a child, which ends with 0 if all its checks held. Answers how it ended. */
static inline int in_child(void (*run)(void))
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        atomic_store(&checks_failed, 0);
        run();
        fflush(NULL);
        _exit(atomic_load(&checks_failed) ? 1 : 0);
    }
    return child_end(pid);
}

/* Starts this very program again with one argument. Answers how it ended, and what it said on stderr,
 * cut to `size`. */
static inline int in_new_program(const char *mode, char *said, size_t size)
{
    size_t length = 0;
    ssize_t n;
    int fd[2];
    pid_t pid;

    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        dup2(fd[1], STDERR_FILENO);
        execl("/proc/self/exe", "self", mode, (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    while (length < size - 1 && (n = read(fd[0], said + length, size - 1 - length)) > 0)
        length += (size_t)n;
    said[length] = '\0';
    close(fd[0]);
    return child_end(pid);
}

/* Whether a thread of this process is there and not on its way out, in which state one that has been joined may be
 * listed for a while; and whether it has that name, unless `name` is NULL. */
static inline bool thread_lives(const char *number, const char *name)
{
    enum {
        PF_EXITING = 4
    }; /* set before the kernel lets a joiner go on; its <linux/sched.h> is not for programs */
    char path[300], stat[512] = "", *begin, *end;
    unsigned flags = PF_EXITING;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%s/stat", number);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return !CHECK(errno == ENOENT);
    if (read(fd, stat, sizeof(stat) - 1) <= 0)
        stat[0] = '\0'; /* it went meanwhile */
    close(fd);
    begin = strchr(stat, '(');
    end = strrchr(stat, ')');
    if (!begin || !end || !CHECK_EQUAL(sscanf(end, ") %*c %*d %*d %*d %*d %*d %u", &flags), 1))
        return false;
    *end = '\0';
    return !(flags & PF_EXITING) && (!name || strcmp(begin + 1, name) == 0);
}

/* How many threads of this process have that name; NULL counts them all. */
static inline int threads_called(const char *name)
{
    DIR *d = opendir("/proc/self/task");
    int count = 0;

    if (!CHECK(d))
        return -1;
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        count += e->d_name[0] != '.' && thread_lives(e->d_name, name);
    closedir(d);
    return count;
}

static inline int thread_count(void)
{
    return threads_called(NULL);
}

/* With the one that reads the list. */
static inline int descriptor_count(void)
{
    DIR *d = opendir("/proc/self/fd");
    int count = 0;

    if (!d)
        return -1;
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

#endif
