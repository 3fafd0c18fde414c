/* Writes down what a server does, by its own clock: what MONITOR shows, as far as tests/redis/history.py needs it.
 *
 *     # begin <us> <why>      a server begins to be watched: the first, the same emptied, or a replica in its place (fail-over)
 *     <s>.<us> "known" ...    what it has then, as commands that would make it so
 *     # begun <us>
 *     <s>.<us> [...] "..."    a script, and then the changes that it makes
 *     # end <us>
 *
 * It pings the server every few milliseconds: where the log shows no ping, this machine ran nothing of the test.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_WITNESS_H
#define WR_TESTS_REDIS_WITNESS_H

#include "redis/server.h"

#include <pthread.h>
#include <stdio.h>

struct witness {
    FILE *out;
    redisContext *context, *pulse_context;
    pthread_t thread, pulse;
    _Atomic bool over;
};

/* Opens the log. */
void witness_open(struct witness *w, const char *path);
void witness_close(struct witness *w);

/* From here on nothing is missed. No client may use the server before it returns. `guards` are names, NULL-ended. */
void witness_begin(struct witness *w, struct server *server, const char *why,
                   const char *const *guards);

/* The server is gone, or is not to be watched any more. */
void witness_end(struct witness *w);

#endif
