/* Descriptors and children: the same calls for tasks, which park, and threads, which block.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "runtime/worker.h"

#include <weir/error.h>
#include <weir/io.h>
#include <weir/wait.h>

int weir_fd_wait(int fd, int events, weir_time deadline)
{
    struct wr_worker *worker = wr_worker_self();
    int rc;

    if (fd < 0)
        return WEIR_EBADF;
    if (!events || events & ~(WEIR_READ | WEIR_WRITE))
        return WEIR_EINVAL;
    if (weir_cancelled())
        return WEIR_ECANCELED;
    if (worker)
        return wr_reactor_wait(worker, wr_load(&worker->current, relaxed), fd, events, deadline);
    if (*wr_os_local())
        return wr_pool_fd_wait(*wr_os_local(), fd, events, deadline);
    do {
        rc = wr_os_fd_poll(fd, events, deadline);
    } while (rc == -EINTR);
    return rc < 0 ? rc : wr_fd_found(rc, events);
}

/* After an attempt that succeeded without a wait: now and then let others run, because a descriptor that
 * is always ready would otherwise keep the worker to itself. */
static void breathe(void)
{
    enum { ATTEMPTS = 64 };
    struct wr_worker *worker = wr_worker_self();

    if (worker && ++worker->attempts % ATTEMPTS == 0)
        weir_yield();
}

/* After a failed attempt: 0 to try again, or why not. */
static int wait_if_again(int64_t failure, int fd, int events, weir_time deadline)
{
    int rc;

    if (failure == -EINTR)
        return 0;
    if (failure != -EAGAIN)
        return (int)failure;
    rc = weir_fd_wait(fd, events, deadline);
    return rc < 0 ? rc : 0;
}

int64_t weir_read(int fd, void *buffer, size_t size, weir_time deadline)
{
    int64_t n;
    int rc = 0;

    if (fd < 0)
        return WEIR_EBADF;
    if (!buffer || (int64_t)size < 0)
        return WEIR_EINVAL;
    while (!rc) {
        if (weir_cancelled())
            return WEIR_ECANCELED;
        n = wr_os_read(fd, buffer, size);
        if (n >= 0) {
            breathe();
            return n;
        }
        rc = wait_if_again(n, fd, WEIR_READ, deadline);
    }
    return rc;
}

int64_t weir_write(int fd, const void *buffer, size_t size, weir_time deadline)
{
    int64_t n, done = 0;
    int rc = 0;

    if (fd < 0)
        return WEIR_EBADF;
    if (!buffer || (int64_t)size < 0)
        return WEIR_EINVAL;
    do {
        if (weir_cancelled()) {
            rc = WEIR_ECANCELED;
            break;
        }
        n = wr_os_write(fd, (const char *)buffer + done, size - (size_t)done);
        if (n >= 0) {
            done += n;
            breathe();
        } else {
            rc = wait_if_again(n, fd, WEIR_WRITE, deadline);
        }
    } while (!rc && done < (int64_t)size);
    return done || !rc ? done : rc;
}

int weir_accept(int fd, struct sockaddr *address, socklen_t *length, weir_time deadline)
{
    int rc;

    if (fd < 0)
        return WEIR_EBADF;
    rc = wr_os_set_nonblocking(fd, true);
    while (rc >= 0) {
        if (weir_cancelled())
            return WEIR_ECANCELED;
        rc = wr_os_accept(fd, address, length);
        if (rc >= 0 || rc == -ECONNABORTED) {
            if (rc >= 0)
                return rc;
            rc = 0; /* that connection vanished while it queued; there may be others */
        } else {
            rc = wait_if_again(rc, fd, WEIR_READ, deadline);
        }
    }
    return rc;
}

/* The attempt is under way: waits for its end and answers its result. */
static int connect_end(int fd, weir_time deadline)
{
    int rc = weir_fd_wait(fd, WEIR_WRITE, deadline);

    return rc < 0 ? rc : wr_os_connect_result(fd);
}

static int connect_nonblocking(int fd, const struct sockaddr *address, socklen_t length,
                               weir_time deadline)
{
    const int64_t retry_ns = 1000000;

    for (;;) {
        int rc = wr_os_connect(fd, address, length);
        if (rc == -EINPROGRESS || rc == -EINTR)
            return connect_end(fd, deadline);
        if (rc != -EAGAIN)
            return rc;
        /* A local socket whose listener's queue is full; nothing tells when there is room. */
        weir_time retry = weir_in_ns(retry_ns);
        rc = weir_sleep(retry < deadline ? retry : deadline);
        if (rc)
            return rc;
        if (weir_now() >= deadline)
            return WEIR_ETIMEDOUT;
    }
}

int weir_connect(int fd, const struct sockaddr *address, socklen_t length, weir_time deadline)
{
    int was_nonblocking, rc;

    if (fd < 0)
        return WEIR_EBADF;
    if (!address)
        return WEIR_EINVAL;
    if (weir_cancelled())
        return WEIR_ECANCELED;
    was_nonblocking = wr_os_set_nonblocking(fd, true);
    if (was_nonblocking < 0)
        return was_nonblocking;
    rc = connect_nonblocking(fd, address, length, deadline);
    if (!was_nonblocking)
        wr_os_set_nonblocking(fd, false);
    return rc;
}

int weir_child_wait(int *status, pid_t pid, weir_time deadline)
{
    int fd, rc, found = 0;

    if (pid <= 0)
        return WEIR_EINVAL;
    if (weir_cancelled())
        return WEIR_ECANCELED;
    fd = wr_os_child_open(pid);
    if (fd < 0)
        return fd;
    while ((rc = wr_os_child_reap(&found, fd)) == -EAGAIN) {
        rc = weir_fd_wait(fd, WEIR_READ, deadline);
        if (rc < 0)
            break;
    }
    wr_os_close(fd);
    if (!rc && status)
        *status = found;
    return rc;
}
