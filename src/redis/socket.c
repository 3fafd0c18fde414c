/* Sockets: names, addresses, connecting. The one file of this room that makes system calls.
 * SPDX-License-Identifier: MIT */
#include "redis/conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <weir/blocking.h>
#include <weir/error.h>
#include <weir/io.h>

/* A name to look up, where that may block. */
struct lookup {
    const struct wr_endpoint *endpoint;
    struct addrinfo *found;
    int flags;
};

static int look_up(void *arg)
{
    struct lookup *lookup = arg;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = lookup->flags | AI_NUMERICSERV };
    char port[8];

    snprintf(port, sizeof(port), "%u", (unsigned)lookup->endpoint->port);
    return getaddrinfo(lookup->endpoint->host, port, &hints, &lookup->found);
}

/* Addresses need no look-up; names may take a while, so they go to a thread. */
static int find_addresses(struct addrinfo **out, const struct wr_endpoint *endpoint,
                          weir_time deadline, weir_message *message)
{
    struct lookup lookup = { .endpoint = endpoint, .flags = AI_NUMERICHOST };
    int result = look_up(&lookup), rc;

    if (result) {
        lookup.flags = AI_ADDRCONFIG;
        rc = weir_blocking(&result, look_up, &lookup, deadline);
        if (rc)
            return wr_redis_fail(rc, message, "%s: looking up its address: %s", endpoint->host,
                                 weir_strerror(rc));
    }
    if (result)
        return wr_redis_fail(WEIR_EAWAY, message, "%s: %s", endpoint->host, gai_strerror(result));
    *out = lookup.found;
    return 0;
}

static void set(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof(value)); /* it works without, less well */
}

/* Small requests go at once; a peer that is gone without a word is found out also while nothing is asked. */
static void tune(int fd)
{
    enum { QUIET_S = 10, EVERY_S = 3, TIMES = 3, UNACKED_MS = 20000 };

    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, QUIET_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, EVERY_S);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, TIMES);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MS);
}

/* Answers a connected descriptor, or why not. */
static int connect_to(int family, const struct sockaddr *address, socklen_t length,
                      weir_time deadline)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;

    if (fd < 0)
        return -errno;
    if (family != AF_UNIX)
        tune(fd);
    rc = weir_connect(fd, address, length, deadline);
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

static int connect_path(const char *path, weir_time deadline)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(address.sun_path))
        return WEIR_EINVAL;
    memcpy(address.sun_path, path, strlen(path) + 1);
    return connect_to(AF_UNIX, (struct sockaddr *)&address, sizeof(address), deadline);
}

/* Tries one address after the other. The error of the first that failed is answered: it tells most. */
static int connect_host(const struct wr_endpoint *endpoint, weir_time deadline,
                        weir_message *message)
{
    struct addrinfo *found = NULL;
    int first = 0, rc = find_addresses(&found, endpoint, deadline, message);
    char where[300];

    if (rc)
        return rc;
    rc = WEIR_EAWAY;
    for (const struct addrinfo *a = found; a && rc < 0; a = a->ai_next) {
        rc = connect_to(a->ai_family, a->ai_addr, a->ai_addrlen, deadline);
        first = first ? first : rc;
        if (rc == WEIR_ETIMEDOUT || rc == WEIR_ECANCELED)
            break;
    }
    freeaddrinfo(found);
    if (rc >= 0)
        return rc;
    wr_endpoint_text(where, sizeof(where), endpoint);
    return wr_redis_fail(rc == WEIR_ECANCELED || rc == WEIR_ENOMEM ? rc : WEIR_EAWAY, message,
                         "%s: cannot connect: %s", where, weir_strerror(first));
}

int wr_socket_connect(const struct wr_endpoint *endpoint, weir_time deadline, weir_message *message)
{
    int rc;

    if (endpoint->port)
        return connect_host(endpoint, deadline, message);
    rc = connect_path(endpoint->host, deadline);
    if (rc >= 0)
        return rc;
    return wr_redis_fail(rc == WEIR_ECANCELED ? rc : WEIR_EAWAY, message, "%s: cannot connect: %s",
                         endpoint->host, weir_strerror(rc));
}

void wr_socket_shutdown(int fd)
{
    shutdown(fd, SHUT_RDWR);
}

void wr_socket_close(int fd)
{
    close(fd);
}
