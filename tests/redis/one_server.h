/* A program whose tests share one server: setup and teardown of the group.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_ONE_SERVER_H
#define WR_TESTS_REDIS_ONE_SERVER_H

#include "redis/server.h"

static struct server server;

static inline int start_server(void **state)
{
    (void)state;
    server_start(&server, NULL);
    return 0;
}

static inline int stop_server(void **state)
{
    (void)state;
    server_stop(&server);
    return 0;
}

#endif
