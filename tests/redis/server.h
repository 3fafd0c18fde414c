/* Servers for tests: started in directories of their own, on free ports and sockets, gone with the test.
 *
 * Talks to them through connections of hiredis, so that tests have a second way to look. Every function here fails the
 * test (or ends the program, on other threads than the test's) if it cannot do what it says.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_REDIS_SERVER_H
#define WR_TESTS_REDIS_SERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/types.h>

enum { SERVER_ARGS = 64 };

struct server {
    pid_t pid;       /* 0: not running                            */
    int port;        /* on 127.0.0.1 and [::1], if it has them     */
    char dir[64];    /* its own; removed by server_stop            */
    char socket[96]; /* path of its socket                         */
    char url[128];   /* unix://...: of the socket                  */
    char tcp[64];    /* redis://127.0.0.1:port                     */
    char log[96];    /* what it said                               */
    char *args[SERVER_ARGS];
    int count;
};

/* Which program the tests start: redis-server, or what WEIR_REDIS_SERVER says, such as valkey-server. */
const char *server_program(void);

/* Starts it with these further words of configuration ("--requirepass", "x"), NULL-ended; `extra` may be NULL. It
 * answers when this returns. Nothing is saved to disk unless asked for. */
void server_start(struct server *server, const char *const *extra);

/* The same in steps, for other programs than redis-server: a directory, a port and a path for a socket; words of the command
 * line; and server_again starts it. */
void server_prepare(struct server *server);
void server_word(struct server *server, const char *word);

/* Ends it and removes its directory. Harmless if it is stopped. */
void server_stop(struct server *server);

/* kill -9; and starts it anew, with the same words, directory and port. */
void server_kill(struct server *server);
void server_again(struct server *server);

/* Stops it in its tracks, as a machine that hangs; and lets it go on. */
void server_freeze(struct server *server);
void server_thaw(struct server *server);

/* Sends a command (as of redisCommand, "SET %s 1") on a fresh connection to its socket. server_do answers an integer, a number
 * in a text, or the number of items; -1 for nil. server_say answers a text, for the caller to free. An error fails the test. */
long long server_do(struct server *server, const char *format, ...);
char *server_say(struct server *server, const char *format, ...);

/* Whether what it answers to a command has these words in it. */
bool server_says(struct server *server, const char *command, const char *words);

/* A port of 127.0.0.1 that was free a moment ago. */
int free_port(void);

/* Runs a program and waits for it; fails the test unless it ends with 0. NULL-ended. */
void run_program(const char *const *argv);

#endif
