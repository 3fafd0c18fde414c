/* A server and the way to it, for the simulator: the half of libweir-redis that keeps limits (src/redis/fleet.h) runs on them as it is.
 *
 *     model_server.c  what the scripts of src/redis/scripts do, written in C from docs/redis.md
 *     model_client.c  redis/client.h, on a network in which requests, answers and messages take their time and get lost
 *
 * One body does all that happens between the clients and the server, and no thread is interrupted here but where the library is
 * called, so little has a lock: functions for tests leave the body an order, and time is read without a call (wr_sim.now). Only one run at
 * a time. SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_MODEL_H
#define WR_TESTS_REDIS_MODEL_H

#include "redis/client.h"

#include <stdint.h>
#include <weir/guard.h>

/* ---- the network ------------------------------------------------------------------------------- */

/* How things go from now on. Times are in us; chances in 1000ths. */
struct model_weather {
    int64_t delay_us;   /* of requests, answers and messages: up to that, each */
    int64_t connect_us; /* how long a connection takes: up to that             */
    uint32_t errors;    /* the server refuses a script                         */
    uint32_t link_loss; /* with a request, its connection breaks               */
    uint32_t ear_loss;  /* with a message, its connection breaks               */
};

void model_start(const struct model_weather *weather);
void model_weather(const struct model_weather *weather);

/* After all clients are closed. */
void model_stop(void) WEIR_PARKS;

/* The client of a store. */
struct wr_redis *model_client(weir_store *store);

void model_break_link(struct wr_redis *redis, int64_t down_us); /* requests: away for so long     */
void model_break_ear(struct wr_redis *redis, int64_t down_us);  /* messages                       */
void model_pause(struct wr_redis *redis, int64_t us);           /* its callbacks wait for so long */

bool model_is_paused(const struct wr_redis *redis);

/* Whether nothing happens just now, neither here nor in a callback. */
bool model_at_rest(void);

/* ---- the server -------------------------------------------------------------------------------- */

enum model_order {
    MODEL_DOWN,     /* number: for so many us                                       */
    MODEL_FORGET,   /* it comes back empty                                          */
    MODEL_SAVE,     /* what it knows now ...                                        */
    MODEL_RESTORE,  /* ... is what it comes back with                               */
    MODEL_EVICT,    /* number: which of the permits that are held, from any on      */
    MODEL_LIMIT,    /* number: the new limit                                        */
    MODEL_STRANGER, /* a process that dies at once takes `number` permits           */
};

/* To be done soon, by the server. */
void model_order(enum model_order order, int64_t number);

/* Runs a command as the server would; from the body of the network. NULL: no memory for the answer. */
struct wr_reply *model_run(const struct wr_command *command);
void model_obey(enum model_order order, int64_t number);
void model_publish(const char *process, const char *text); /* of model_client.c */
int64_t model_clock(void);                                 /* the server's, us  */
void model_server_init(void);

/* Figures of the server's one guard of permits. */
int64_t model_limit(void);
int64_t model_held(void); /* permits whose lease lasts        */
int64_t model_line(
    bool all); /* waiters; not all: those of which the server has heard for a lease */
int64_t model_wants(bool all); /* processes that want permits; likewise */
int64_t model_end(const char *process,
                  int64_t number); /* of a permit's lease, by weir_now; 0: it is not held */
int64_t model_orphans(
    void); /* permits and waiters whose description is missing, or another one's */
uint64_t model_commands(void); /* scripts that ran so far          */

#endif
