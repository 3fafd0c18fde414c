/* A relay between clients and a server that can hold back answers, so that a test says what a client hears first, and change them by
 * chance.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_RELAY_H
#define WR_TESTS_REDIS_RELAY_H

#include "redis/server.h"

#include <pthread.h>

struct relay {
    char url[128]; /* where clients find it */
    char path[96];
    const struct server *server;
    pthread_t thread;
    int listener;
    _Atomic bool stop;
    /* Answers wait in the relay; messages of connections that have subscribed to something pass. */
    _Atomic bool hold;
    /* The server's replies are changed: another byte, the rest left out, or the connection closed. */
    _Atomic bool meddle;
    _Atomic int changes; /* so far */
    uint64_t seed;       /* set before `meddle` */
    /* An answer whose first number is 0 has 2 there, as if a caller that was refused stood in line. */
    _Atomic bool puts_in_line;
};

void relay_start(struct relay *relay, const struct server *server);
void relay_stop(struct relay *relay);

#endif
