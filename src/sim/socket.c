/* How simulated sockets become connected: listen, connect, accept. An address is a port, nothing
 * more. SPDX-License-Identifier: MIT */
#include "sim/sim.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <weir/io.h>

enum { CONNECT_NS = 50000 }; /* what a connection takes if it is not made at once */

static struct wr_sim_fd *listener_at(uint16_t port)
{
    struct wr_sim_fd *fd;
    unsigned place = 0;

    while ((fd = wr_sim_fd_next(WR_SIM_LISTENER, &place)))
        if (fd->port == port)
            return fd;
    return NULL;
}

int weir_sim_socket(void)
{
    struct wr_sim_fd *fd;

    wr_sim_call("weir_sim_socket");
    fd = wr_sim_fd_new(WR_SIM_SOCKET);
    return fd ? wr_sim_fd_number(fd) : -EMFILE;
}

int weir_sim_listener(uint16_t port)
{
    struct wr_sim_fd *fd;

    wr_sim_call("weir_sim_listener");
    if (listener_at(port))
        return -EADDRINUSE;
    fd = wr_sim_fd_new(WR_SIM_LISTENER);
    if (!fd)
        return -EMFILE;
    fd->port = port;
    return wr_sim_fd_number(fd);
}

void wr_sim_listener_close(struct wr_sim_fd *fd)
{
    for (unsigned i = 0; i < fd->backlog_count; i++) {
        wr_sim_stream_close_reader(fd->backlog_in[i]);
        wr_sim_stream_close_writer(fd->backlog_out[i]);
    }
    fd->backlog_count = 0;
}

/* As Linux tells it: a socket that never tried to connect is writable and hung up; one that failed is readable, too. */
int wr_sim_socket_ready(const struct wr_sim_fd *fd)
{
    if (fd->connected_at != WEIR_FOREVER)
        return 0;
    return WEIR_WRITE | WEIR_HANGUP | (fd->connect_error ? WEIR_READ : 0);
}

/* ---- connect --------------------------------------------------------------------------------- */

/* Makes the connection, or answers why not. */
static int establish(struct wr_sim_fd *fd)
{
    struct wr_sim_fd *listener = listener_at(fd->port);
    struct wr_sim_stream *there, *back;

    if (!listener || listener->backlog_count == WR_SIM_BACKLOG_MAX)
        return -ECONNREFUSED;
    there = wr_sim_stream_new();
    back = wr_sim_stream_new();
    wr_sim_stream_attach(fd, back, there);
    listener->backlog_in[listener->backlog_count] = there;
    listener->backlog_out[listener->backlog_count++] = back;
    wr_sim_fd_changed(listener);
    return 0;
}

weir_time wr_sim_sockets_due(void)
{
    weir_time due = WEIR_FOREVER;
    struct wr_sim_fd *fd;
    unsigned place = 0;

    while ((fd = wr_sim_fd_next(WR_SIM_SOCKET, &place)))
        if (fd->connected_at < due)
            due = fd->connected_at;
    return due;
}

void wr_sim_sockets_tick(void)
{
    struct wr_sim_fd *fd;
    unsigned place = 0;

    while ((fd = wr_sim_fd_next(WR_SIM_SOCKET, &place))) {
        if (!wr_sim_has_passed(fd->connected_at))
            continue;
        fd->connected_at = WEIR_FOREVER;
        fd->connect_error = -establish(fd);
        wr_sim_fd_changed(fd);
    }
}

static int connect_refused(struct wr_sim_fd *fd, const struct sockaddr *address, socklen_t length)
{
    if (!fd)
        return -EBADF;
    if (fd->kind != WR_SIM_SOCKET)
        return -ENOTSOCK;
    if (length < sizeof(struct sockaddr_in) || address->sa_family != AF_INET)
        return -EAFNOSUPPORT;
    if (fd->in)
        return -EISCONN;
    if (fd->connected_at != WEIR_FOREVER)
        return -EALREADY;
    return 0;
}

int wr_os_connect(int number, const struct sockaddr *address, socklen_t length)
{
    struct wr_sim_fd *fd;
    struct sockaddr_in in;
    bool interrupted;
    int rc;

    wr_sim_call("connect");
    fd = wr_sim_fd_get(number);
    rc = connect_refused(fd, address, length);
    if (rc < 0)
        return rc;
    memcpy(&in, address, sizeof(in));
    fd->port = ntohs(in.sin_port);
    interrupted = wr_sim_interrupted();
    if (!interrupted && wr_sim_below(&wr_sim.schedule_luck, 2) == 0)
        return establish(fd);
    fd->connected_at = wr_sim.now + CONNECT_NS;
    if (interrupted)
        return -EINTR; /* the attempt goes on, as it does in Linux */
    if (fd->nonblocking)
        return -EINPROGRESS;
    while (fd->connected_at != WEIR_FOREVER)
        if (wr_sim_fd_block(fd, WEIR_FOREVER) == -EBADF)
            return -EBADF;
    return wr_os_connect_result(number);
}

int wr_os_connect_result(int number)
{
    struct wr_sim_fd *fd;
    int error;

    wr_sim_call("connect_result");
    fd = wr_sim_fd_get(number);
    if (!fd)
        return -EBADF;
    if (fd->kind != WR_SIM_SOCKET)
        return -ENOTSOCK;
    error = fd->connect_error;
    fd->connect_error = 0;
    return -error;
}

/* ---- accept ---------------------------------------------------------------------------------- */

static int accept_now(struct wr_sim_fd *fd)
{
    struct wr_sim_fd *connection;

    if (fd->backlog_count == 0)
        return -EAGAIN;
    connection = wr_sim_fd_new(WR_SIM_SOCKET);
    if (!connection)
        return -EMFILE;
    connection->nonblocking = true;
    wr_sim_stream_attach(connection, fd->backlog_in[0], fd->backlog_out[0]);
    fd->backlog_count--;
    memmove(fd->backlog_in, fd->backlog_in + 1, fd->backlog_count * sizeof(fd->backlog_in[0]));
    memmove(fd->backlog_out, fd->backlog_out + 1, fd->backlog_count * sizeof(fd->backlog_out[0]));
    return wr_sim_fd_number(connection);
}

int wr_os_accept(int number, struct sockaddr *address, socklen_t *length)
{
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct wr_sim_fd *fd;
    int rc;

    wr_sim_call("accept");
    fd = wr_sim_fd_get(number);
    if (!fd)
        return -EBADF;
    if (fd->kind != WR_SIM_LISTENER)
        return fd->kind == WR_SIM_SOCKET ? -EINVAL : -ENOTSOCK;
    if (wr_sim_interrupted())
        return -EINTR;
    while ((rc = accept_now(fd)) == -EAGAIN && !fd->nonblocking)
        if (wr_sim_fd_block(fd, WEIR_FOREVER) == -EBADF)
            return -EBADF;
    if (rc >= 0 && address && length) {
        memcpy(address, &peer, *length < sizeof(peer) ? *length : sizeof(peer));
        *length = sizeof(peer);
    }
    return rc;
}
