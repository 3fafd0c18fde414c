/* The door to the kernel, Linux side: descriptors, pollers, children.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "base/os_shield.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/io.h>

/* Linux's, whatever the C library is. Its numbers of new system calls are the same everywhere. */
#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
enum { CORE_DUMPED = 0x80 }; /* in a child's status, as wait(2) has it */

/* The time that is left until `deadline`; 0 if it has passed, or is WEIR_FOREVER. */
static struct timespec time_left(weir_time deadline)
{
    weir_time left = deadline > 0 && deadline != WEIR_FOREVER ? deadline - wr_os_now() : 0;

    if (left < 0)
        left = 0;
    return (struct timespec){ .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
}

/* ---- pollers --------------------------------------------------------------------------------- */

int wr_os_poller_open(struct wr_os_poller *poller)
{
    WR_SHIELDED;
    /* Edge-triggered and never read: each ring is a new edge, and the counter may as well grow. */
    struct epoll_event bell = { .events = EPOLLIN | EPOLLET };
    int rc;

    poller->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->poll_fd < 0)
        return -errno;
    poller->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poller->bell_fd < 0) {
        rc = -errno;
        close(poller->poll_fd);
        return rc;
    }
    bell.data.u64 = (uint32_t)poller->bell_fd;
    if (epoll_ctl(poller->poll_fd, EPOLL_CTL_ADD, poller->bell_fd, &bell)) {
        rc = -errno;
        wr_os_poller_close(poller);
        return rc;
    }
    return 0;
}

void wr_os_poller_close(struct wr_os_poller *poller)
{
    WR_SHIELDED;

    close(poller->bell_fd);
    close(poller->poll_fd);
}

int wr_os_poller_watch(struct wr_os_poller *poller, int fd, int events, uint32_t tag)
{
    /* A descriptor that reported stays in the set, disarmed, until the kernel drops it on close: the
     * next wait for it then takes one call instead of two. */
    struct epoll_event event = { .events = EPOLLONESHOT,
                                 .data.u64 = (uint64_t)tag << 32 | (uint32_t)fd };

    event.events |= events & WEIR_READ ? EPOLLIN | EPOLLRDHUP : 0;
    event.events |= events & WEIR_WRITE ? EPOLLOUT : 0;
    if (!events)
        return epoll_ctl(poller->poll_fd, EPOLL_CTL_DEL, fd, &event) ? -errno : 0;
    if (epoll_ctl(poller->poll_fd, EPOLL_CTL_MOD, fd, &event) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    return epoll_ctl(poller->poll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int events_from_epoll(uint32_t events)
{
    return (events & (EPOLLIN | EPOLLRDHUP) ? WEIR_READ : 0) |
           (events & EPOLLOUT ? WEIR_WRITE : 0) |
           (events & (EPOLLERR | EPOLLHUP) ? WEIR_HANGUP : 0);
}

/* epoll_pwait2 has nanoseconds; kernels before 5.11 only have the one that counts milliseconds, where
 * we round up so that a deadline is never early. */
static int epoll_wait_until(int poll_fd, struct epoll_event *events, int max, weir_time deadline)
{
    static _Atomic bool missing; /* learnt once */
    struct timespec left = time_left(deadline);
    int64_t ms;
    int n;

    if (!wr_load(&missing, relaxed)) {
        n = (int)syscall(SYS_epoll_pwait2, poll_fd, events, max,
                         deadline == WEIR_FOREVER ? NULL : &left, NULL, 0);
        if (n >= 0 || errno != ENOSYS)
            return n;
        wr_store(&missing, true, relaxed);
    }
    ms =
        left.tv_sec > 1000000 ? 1000000000 : left.tv_sec * 1000 + (left.tv_nsec + 999999) / 1000000;
    return epoll_wait(poll_fd, events, max, deadline == WEIR_FOREVER ? -1 : (int)ms);
}

int wr_os_poller_wait(struct wr_os_poller *poller, struct wr_os_ready *ready, int max,
                      weir_time deadline)
{
    WR_SHIELDED; /* epoll_wait, on older kernels */
    struct epoll_event events[64];
    int n, reports = 0;

    WR_ASSERT(max > 0);
    n = epoll_wait_until(poller->poll_fd, events, max < 64 ? max : 64, deadline);
    for (int i = 0; i < n; i++) {
        int fd = (int)(uint32_t)events[i].data.u64;
        if (fd == poller->bell_fd)
            continue;
        ready[reports].fd = fd;
        ready[reports].tag = (uint32_t)(events[i].data.u64 >> 32);
        ready[reports].events = events_from_epoll(events[i].events);
        reports++;
    }
    return reports;
}

void wr_os_poller_ring(struct wr_os_poller *poller)
{
    WR_SHIELDED;
    uint64_t one = 1;
    ssize_t n = write(poller->bell_fd, &one, sizeof(one));

    (void)n; /* a full counter is a ringing bell, too */
}

int wr_os_fd_poll(int fd, int events, weir_time deadline)
{
    WR_SHIELDED;
    struct pollfd p = { .fd = fd };
    struct timespec left = time_left(deadline);
    int n, found = 0;

    p.events = (short)((events & WEIR_READ ? POLLIN | POLLRDHUP : 0) |
                       (events & WEIR_WRITE ? POLLOUT : 0));
    n = ppoll(&p, 1, deadline == WEIR_FOREVER ? NULL : &left, NULL);
    if (n < 0)
        return -errno;
    if (n == 0)
        return -ETIMEDOUT;
    if (p.revents & POLLNVAL)
        return -EBADF;
    found |= p.revents & (POLLIN | POLLRDHUP) ? WEIR_READ : 0;
    found |= p.revents & POLLOUT ? WEIR_WRITE : 0;
    found |= p.revents & (POLLERR | POLLHUP) ? WEIR_HANGUP : 0;
    return found;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* For descriptors that are no sockets: whether an attempt would return at once. */
static int attempt_may_go(int fd, short wanted)
{
    int flags = fcntl(fd, F_GETFL);
    struct pollfd p = { .fd = fd, .events = wanted };

    if (flags < 0)
        return -errno;
    return flags & O_NONBLOCK || poll(&p, 1, 0) > 0 ? 0 : -EAGAIN;
}

static bool is_regular(int fd)
{
    struct stat s;

    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}

/* After an attempt with RWF_NOWAIT that failed: 0 if a plain one may follow, else why not. A regular file answers EAGAIN
 * when its pages are not in memory; then a plain attempt reads them. For kernels and files that do
 * not know the flag poll is asked first; there, two readers of one blocking pipe can still collide. */
static int after_nowait(int fd, short wanted)
{
    if (errno == EAGAIN)
        return is_regular(fd) ? 0 : -EAGAIN;
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == ESPIPE)
        return attempt_may_go(fd, wanted);
    return -errno;
}

/* preadv2 and pwritev2 at the file's own offset; not every C library has them. */
static ssize_t without_waiting(long call, int fd, void *buffer, size_t size)
{
    struct iovec part = { .iov_base = buffer, .iov_len = size };

    return syscall(call, fd, &part, 1L, -1L, -1L, RWF_NOWAIT);
}

int64_t wr_os_read(int fd, void *buffer, size_t size)
{
    WR_SHIELDED;
    ssize_t n = recv(fd, buffer, size, MSG_DONTWAIT);

    if (n < 0 && errno == ENOTSOCK) {
        n = without_waiting(SYS_preadv2, fd, buffer, size);
        if (n < 0) {
            int rc = after_nowait(fd, POLLIN);
            if (rc)
                return rc;
            n = read(fd, buffer, size);
        }
    }
    return n < 0 ? -errno : n;
}

int64_t wr_os_write(int fd, const void *buffer, size_t size)
{
    WR_SHIELDED;
    ssize_t n = send(fd, buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno == ENOTSOCK) {
        n = without_waiting(SYS_pwritev2, fd, (void *)(uintptr_t)buffer, size);
        if (n < 0) {
            int rc = after_nowait(fd, POLLOUT);
            if (rc)
                return rc;
            /* A blocking pipe that is ready has room for this much, and may wait for more. */
            n = write(fd, buffer, size < PIPE_BUF || is_regular(fd) ? size : PIPE_BUF);
        }
    }
    return n < 0 ? -errno : n;
}

int wr_os_set_nonblocking(int fd, bool on)
{
    WR_SHIELDED;
    int flags = fcntl(fd, F_GETFL);
    int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;

    if (flags < 0)
        return -errno;
    if (wanted != flags && fcntl(fd, F_SETFL, wanted))
        return -errno;
    return (flags & O_NONBLOCK) != 0;
}

int wr_os_accept(int fd, struct sockaddr *address, socklen_t *length)
{
    WR_SHIELDED;
    int connection = accept4(fd, address, length, SOCK_CLOEXEC | SOCK_NONBLOCK);

    return connection < 0 ? -errno : connection;
}

int wr_os_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    WR_SHIELDED;

    return connect(fd, address, length) ? -errno : 0;
}

int wr_os_connect_result(int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
        return -errno;
    return -error;
}

int wr_os_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC) ? -errno : 0;
}

void wr_os_close(int fd)
{
    WR_SHIELDED;

    close(fd);
}

/* ---- children -------------------------------------------------------------------------------- */

int wr_os_child_open(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd >= 0)
        return fd;
    /* EINVAL and ENOENT: the number is that of a thread. */
    return errno == ESRCH || errno == EINVAL || errno == ENOENT ? -ECHILD : -errno;
}

int wr_os_child_reap(int *status, int child_fd)
{
    WR_SHIELDED;
    siginfo_t info = { .si_pid = 0 };

    if (waitid((idtype_t)P_PIDFD, (id_t)child_fd, &info, WEXITED | WNOHANG))
        return -errno;
    if (!info.si_pid)
        return -EAGAIN;
    if (info.si_code == CLD_EXITED)
        *status = info.si_status << 8;
    else
        *status = info.si_status | (info.si_code == CLD_DUMPED ? CORE_DUMPED : 0);
    return 0;
}
