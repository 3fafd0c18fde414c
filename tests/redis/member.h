/* Processes of a fleet that a test starts: tests/redis/holder.c.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_MEMBER_H
#define WR_TESTS_REDIS_MEMBER_H

#include "redis/fleet_support.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

struct member {
    pid_t pid; /* 0: none                         */
    int in;    /* its standard input: it ends with it */
    int out;   /* its standard output             */
};

extern char **environ;

/* argv[0] is the program. */
static inline void member_run(struct member *m, char *const *argv)
{
    posix_spawn_file_actions_t files;
    int in[2], out[2];

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    assert_int_equal(posix_spawnp(&m->pid, argv[0], &files, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    m->in = in[1];
    m->out = out[0];
}

static inline void member_start(struct member *m, const char *name, int64_t limit, int64_t lease_ms,
                                const char *log, const char *mode, uint64_t seed, long tasks)
{
    char limit_text[24], lease_text[24], seed_text[24], tasks_text[24];
    char *argv[] = { HOLDER,      server.url,   (char *)name, limit_text, lease_text,
                     (char *)log, (char *)mode, seed_text,    tasks_text, NULL };

    snprintf(limit_text, sizeof(limit_text), "%lld", (long long)limit);
    snprintf(lease_text, sizeof(lease_text), "%lld", (long long)lease_ms);
    snprintf(seed_text, sizeof(seed_text), "%llu", (unsigned long long)seed);
    snprintf(tasks_text, sizeof(tasks_text), "%ld", tasks);
    member_run(m, argv);
}

static inline int member_reap(struct member *m)
{
    int status = 0;

    close(m->out);
    waitpid(m->pid, &status, 0);
    m->pid = 0;
    return status;
}

static inline void member_kill(struct member *m)
{
    kill(m->pid, SIGKILL);
    close(m->in);
    member_reap(m);
}

/* Asks it to end; answers its status. */
static inline int member_end(struct member *m)
{
    close(m->in);
    return member_reap(m);
}

#endif
