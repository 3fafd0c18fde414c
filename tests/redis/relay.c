/* SPDX-License-Identifier: MIT */
#include "redis/relay.h"

#include "support/check.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAIRS = 16, LOOK_MS = 1 };

/* One client's connection, and the relay's own to the server for it. */
struct pair {
    int client, server;
    bool subscribed;
};

static int unix_socket(struct sockaddr_un *address, const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
    return fd;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address;
    int fd = unix_socket(&address, path);

    CHECK_EQUAL(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static uint64_t chance(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* Every fourth piece of what the server says. False: the connection is to be closed. */
static bool meddle(struct relay *relay, char *data, ssize_t *size)
{
    static const char likely[] = "0123456789-+:$*\r\n";
    uint64_t at = chance(&relay->seed, (uint64_t)*size), what = chance(&relay->seed, 8);

    if (chance(&relay->seed, 4))
        return true;
    relay->changes++;
    if (what == 0)
        *size = (ssize_t)at;
    else if (what == 1)
        data[at] = (char)chance(&relay->seed, 256);
    else if (what > 2)
        data[at] = likely[chance(&relay->seed, sizeof(likely) - 1)];
    return what != 2;
}

static void put_in_line(struct relay *relay, char *data, ssize_t size)
{
    char *state = memmem(data, (size_t)size, "\r\n:0\r\n", 6);

    if (!state)
        return;
    relay->changes++;
    state[3] = '2';
}

static bool serve(struct relay *relay, struct pair *pair, const struct pollfd *client,
                  const struct pollfd *server)
{
    char data[65536];
    ssize_t size;

    if (client->revents) {
        size = read(pair->client, data, sizeof(data));
        if (size <= 0 || send(pair->server, data, (size_t)size, MSG_NOSIGNAL) != size)
            return false;
        if (memmem(data, (size_t)size, "SUBSCRIBE", 9))
            pair->subscribed = true;
    }
    if (!server->revents)
        return true;
    size = read(pair->server, data, sizeof(data));
    if (size > 0 && relay->puts_in_line)
        put_in_line(relay, data, size);
    if (size <= 0 || (relay->meddle && !meddle(relay, data, &size)))
        return false;
    return size == 0 || send(pair->client, data, (size_t)size, MSG_NOSIGNAL) == size;
}

static void *relay_main(void *arg)
{
    struct relay *relay = arg;
    struct pair pair[PAIRS];
    int count = 0;

    while (!relay->stop) {
        struct pollfd fd[2 * PAIRS + 1] = { { .fd = relay->listener, .events = POLLIN } };

        for (int i = 0; i < count; i++) {
            bool held = relay->hold && !pair[i].subscribed;
            fd[1 + 2 * i] = (struct pollfd){ .fd = pair[i].client, .events = POLLIN };
            fd[2 + 2 * i] = (struct pollfd){ .fd = held ? -1 : pair[i].server, .events = POLLIN };
        }
        poll(fd, (nfds_t)(1 + 2 * count), LOOK_MS);
        for (int i = count - 1; i >= 0; i--) {
            if (serve(relay, &pair[i], &fd[1 + 2 * i], &fd[2 + 2 * i]))
                continue;
            close(pair[i].client);
            close(pair[i].server);
            pair[i] = pair[--count];
        }
        if (fd[0].revents && count < PAIRS)
            pair[count++] = (struct pair){ .client = accept(relay->listener, NULL, NULL),
                                           .server = connect_to(relay->server->socket) };
    }
    for (int i = 0; i < count; i++) {
        close(pair[i].client);
        close(pair[i].server);
    }
    return NULL;
}

void relay_start(struct relay *relay, const struct server *server)
{
    struct sockaddr_un address;

    *relay = (struct relay){ .server = server };
    snprintf(relay->path, sizeof(relay->path), "%.60s/relay", server->dir);
    snprintf(relay->url, sizeof(relay->url), "unix://%s", relay->path);
    relay->listener = unix_socket(&address, relay->path);
    unlink(relay->path);
    assert_int_equal(bind(relay->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(relay->listener, PAIRS), 0);
    assert_int_equal(pthread_create(&relay->thread, NULL, relay_main, relay), 0);
}

void relay_stop(struct relay *relay)
{
    relay->stop = true;
    assert_int_equal(pthread_join(relay->thread, NULL), 0);
    close(relay->listener);
    unlink(relay->path);
}
