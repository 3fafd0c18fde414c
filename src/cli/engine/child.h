/* Child processes: each in its own process group, started without copying us.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_CHILD_H
#define WR_CLI_CHILD_H

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/types.h>

struct child_plan {
    /* What to execute; looked for in PATH if it has no slash */
    const char *file;
    char **argv, **envp;
    /* NULL: ours */
    const char *directory;
    int input, output,
        error;            /* become its descriptors 0, 1 and 2                                    */
    int extra;            /* becomes its descriptor 3; -1: none                                  */
    int terminal;         /* it gets the foreground of this terminal; -1: none                   */
    _Atomic pid_t *group; /* the child writes its process group here before anything can be lost */
};

struct child {
    pid_t pid;
    int fd; /* a pidfd: readable when it has ended */
};

/* Call once, before any signal is blocked: remembers the caller's signal mask, which children get. */
void child_setup(void);

/* Raises our limit of open descriptors, as far as we may; children get the one we were started with. */
void child_raise_descriptors(rlim_t wanted);

/* Starts the child. 0, or a negated errno: of exec (an error in the child is ours, too) or of a step before it. The
 * child gets SIGKILL if the calling thread ends; a task that waits for it keeps its thread. */
int child_start(struct child *child, const struct child_plan *plan);

/* The status of a child that has ended, as from waitpid(2); closes fd. */
int child_reap(struct child *child);

/* The file that execvp(3) would run: a path to be freed, or NULL with errno (ENOENT, EACCES). */
char *child_find(const char *command);

#endif
