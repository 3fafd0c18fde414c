/* One connection to one server: a socket, TLS around it if asked for, and what comes in as replies.
 *
 * For one user at a time. Links (link.h) share one among many callers; to set it up, and to ask sentinels, one body has it
 * for itself and uses wr_conn_command.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_CONN_H
#define WR_REDIS_CONN_H

#include "redis/config.h"
#include "redis/wire.h"

struct wr_tls_context; /* what all connections of a client share: certificates, settings */
struct wr_tls;         /* one connection's                                                */

struct wr_conn {
    int fd; /* -1: none */
    struct wr_endpoint where;
    struct wr_tls *tls;
    struct wr_wire wire;
};

/* Who may use the server, and how: what is said first on a new connection. */
struct wr_login {
    const char *user, *password; /* NULL: nothing is said             */
    uint32_t database;           /* 0: nothing is said                */
    const char *name;            /* NULL: the connection has no name  */
};

/* Connects, TLS included, and logs in. What a failed call leaves needs no close. WEIR_EAWAY, WEIR_EDENIED, WEIR_EPROTO, WEIR_EREPLY,
 * WEIR_ETIMEDOUT, WEIR_ECANCELED, WEIR_ENOMEM; `message` says what is wrong and where. */
int wr_conn_open(struct wr_conn *conn, const struct wr_endpoint *endpoint,
                 struct wr_tls_context *tls, const struct wr_login *login, weir_time deadline,
                 weir_message *message) WEIR_PARKS;
void wr_conn_close(struct wr_conn *conn);

/* Sends all of `plain`, encrypted if need be. 0, or what went wrong. */
int wr_conn_write(struct wr_conn *conn, const struct wr_bytes *plain,
                  weir_time deadline) WEIR_PARKS;

/* The next reply, waiting for it. WEIR_ELOST: the server closed the connection. */
int wr_conn_next(struct wr_reply **out, struct wr_conn *conn, weir_time deadline,
                 weir_message *message) WEIR_PARKS;

/* Both: one command and its reply, errors included. */
int wr_conn_command(struct wr_reply **out, struct wr_conn *conn, const struct wr_command *command,
                    weir_time deadline, weir_message *message) WEIR_PARKS;

/* What a server's error means: WEIR_EDENIED or WEIR_EREPLY; 0 for another reply. `message` (may be NULL) gets its words. */
int wr_reply_code(const struct wr_reply *reply, weir_message *message);

/* Bytes from the socket into the wire, as many as there are; `reply` bytes of TLS's own go to `out`. */
int wr_conn_receive(struct wr_conn *conn, const char *data, size_t size, struct wr_bytes *out,
                    weir_message *message);

/* ---- socket.c: the one file of this room that makes system calls ------------------------------- */

/* Connects a socket: its descriptor, non-blocking and close-on-exec, or why not. */
int wr_socket_connect(const struct wr_endpoint *endpoint, weir_time deadline,
                      weir_message *message) WEIR_PARKS;

/* Makes both ends see the end: whoever waits for it wakes. The descriptor stays. */
void wr_socket_shutdown(int fd);
void wr_socket_close(int fd);

/* ---- tls.c ------------------------------------------------------------------------------------- */

/* WEIR_EINVAL: a file cannot be used; `message` says which and why. */
int wr_tls_context_new(struct wr_tls_context **out, const weir_redis_options *opt,
                       weir_message *message);
void wr_tls_context_free(struct wr_tls_context *context);

int wr_tls_new(struct wr_tls **out, struct wr_tls_context *context, const char *host);
void wr_tls_free(struct wr_tls *tls);

/* Goes on with the handshake. 1: it is done; 0: the server is to say more (wr_tls_put); WEIR_EAWAY: it failed, and why. */
int wr_tls_handshake(struct wr_tls *tls, weir_message *message);

/* Encrypts; and appends what is to be sent. */
int wr_tls_encrypt(struct wr_tls *tls, const char *plain, size_t size);
int wr_tls_take(struct wr_tls *tls, struct wr_bytes *out);

/* Gives it what came; and takes what that says, at most `size` bytes: how many, 0: no more, WEIR_ELOST: the server said good-bye or
 * what came is not TLS. */
int wr_tls_put(struct wr_tls *tls, const char *data, size_t size);
int wr_tls_decrypt(struct wr_tls *tls, char *plain, size_t size, weir_message *message);

#endif
