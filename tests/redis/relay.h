/* A relay between clients and a server that can hold back answers, so that a test says what a client hears first.
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
};

void relay_start(struct relay *relay, const struct server *server);
void relay_stop(struct relay *relay);

#endif
