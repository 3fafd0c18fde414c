/* Waiting for file descriptors and child processes.
 *
 * Any descriptor will do, blocking or not: on pipes, sockets, terminals and the like these calls never block
 * the worker of a task that waits. A regular file counts as ready; reading or writing it may wait for the
 * disk and blocks the worker meanwhile, unless it is done in weir_blocking() or on WEIR_THREADS.
 * Descriptors stay the caller's. Do not close one while a task waits for it: the wait would go on until
 * its deadline or a cancel, or answer for another file that got the same number. Where the kernel cannot
 * read a pipe without waiting (RWF_NOWAIT), give one with several readers O_NONBLOCK.
 *
 * All answer WEIR_ETIMEDOUT when the deadline passes first, WEIR_EBADF for a descriptor that is not open,
 * WEIR_EINVAL for another argument that makes no sense, and otherwise what the kernel said as a negated
 * errno. Interrupted system calls are resumed. A cancelled task is woken at once and gets WEIR_ECANCELED,
 * on a worker as on a thread of the pool (WEIR_THREADS). A plain thread cannot be cancelled: there only
 * the descriptor or the deadline ends the wait.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_IO_H
#define WEIR_IO_H

#include <sys/socket.h>
#include <sys/types.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

enum {
    WEIR_READ = 1,   /* something to read, a connection to accept, or end of file */
    WEIR_WRITE = 2,  /* room to write, or a connection made                       */
    WEIR_HANGUP = 4, /* only ever answered: error, or the other end is gone      */
};

/* Waits until `fd` is ready for one of `events`; answers which, positive. Regular files are always
 * ready. */
int weir_fd_wait(int fd, int events, weir_time deadline) WEIR_PARKS;

/* Reads what is there, at most `size` bytes, waiting for the first. 0 is end of file. */
int64_t weir_read(int fd, void *buffer, size_t size, weir_time deadline) WEIR_PARKS;

/* Writes all of it. Answers `size`; or, if something stopped it after the first byte, how many bytes
 * went out. A closed reader is WEIR_EPIPE; sockets raise no SIGPIPE. */
int64_t weir_write(int fd, const void *buffer, size_t size, weir_time deadline) WEIR_PARKS;

/* Accepts one connection; answers its descriptor, close-on-exec and non-blocking. Makes `fd` itself
 * non-blocking, since a connection may vanish between readiness and acceptance. `address` and
 * `length` are as in accept(2) and may be NULL. */
int weir_accept(int fd, struct sockaddr *address, socklen_t *length, weir_time deadline) WEIR_PARKS;

/* Connects `fd`. 0, or why not. After a failed or abandoned attempt the socket is fit for close only. */
int weir_connect(int fd, const struct sockaddr *address, socklen_t length,
                 weir_time deadline) WEIR_PARKS;

/* Waits for the end of a child of this process and reaps it. *status (may be NULL) is as from
 * waitpid(2). WEIR_ECHILD: `pid` is no child of ours, or was reaped. */
int weir_child_wait(int *status, pid_t pid, weir_time deadline) WEIR_PARKS;

WEIR_END_DECLS

#endif
