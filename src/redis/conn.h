/* One connection to one server: a socket, TLS around it if asked for, and a parser for the replies.
 *
 * One caller uses it at a time. Links (link.h) share one among many callers; to set it up, and to ask sentinels, one body
 * has it to itself and uses wr_conn_command.
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

/* The login: the first commands on a new connection. */
struct wr_login {
    const char *user, *password; /* password NULL: no AUTH is sent    */
    uint32_t database;           /* 0: no SELECT is sent              */
    const char *name;            /* NULL: the connection has no name  */
};

/* Connects, TLS included, and logs in. After a failed call there is nothing to close. WEIR_EAWAY, WEIR_EDENIED, WEIR_EPROTO,
 * WEIR_EREPLY, WEIR_ETIMEDOUT, WEIR_ECANCELED, WEIR_ENOMEM; `message` says what is wrong and where. */
int wr_conn_open(struct wr_conn *conn, const struct wr_endpoint *endpoint,
                 struct wr_tls_context *tls, const struct wr_login *login, weir_time deadline,
                 weir_message *message) WEIR_PARKS;
void wr_conn_close(struct wr_conn *conn);

/* Sends all of `plain`, encrypted if the connection has TLS. 0, or what went wrong. */
int wr_conn_write(struct wr_conn *conn, const struct wr_bytes *plain,
                  weir_time deadline) WEIR_PARKS;

/* The next reply, waiting for it. WEIR_ELOST: the server closed the connection. */
int wr_conn_next(struct wr_reply **out, struct wr_conn *conn, weir_time deadline,
                 weir_message *message) WEIR_PARKS;

/* Sends one command and waits for its reply, which may be an error. */
int wr_conn_command(struct wr_reply **out, struct wr_conn *conn, const struct wr_command *command,
                    weir_time deadline, weir_message *message) WEIR_PARKS;

/* The code of an error reply: WEIR_EDENIED or WEIR_EREPLY; 0 for any other reply. `message` (may be NULL) gets its text. */
int wr_reply_code(const struct wr_reply *reply, weir_message *message);

/* Feeds bytes from the socket to the parser, decrypted if the connection has TLS. Bytes that TLS itself has to send are
 * appended to `out`. */
int wr_conn_receive(struct wr_conn *conn, const char *data, size_t size, struct wr_bytes *out,
                    weir_message *message);

/* ---- socket.c: the one file of this room that makes system calls ------------------------------- */

/* Connects a socket. Answers its descriptor, non-blocking and close-on-exec, or an error. */
int wr_socket_connect(const struct wr_endpoint *endpoint, weir_time deadline,
                      weir_message *message) WEIR_PARKS;

/* Ends the connection in both directions: a thread or task that waits for the descriptor wakes. The descriptor stays. */
void wr_socket_shutdown(int fd);
void wr_socket_close(int fd);

/* ---- tls.c ------------------------------------------------------------------------------------- */

/* WEIR_EINVAL: a file cannot be used; `message` says which and why. */
int wr_tls_context_new(struct wr_tls_context **out, const weir_redis_options *opt,
                       weir_message *message);
void wr_tls_context_free(struct wr_tls_context *context);

int wr_tls_new(struct wr_tls **out, struct wr_tls_context *context, const char *host);
void wr_tls_free(struct wr_tls *tls);

/* Goes on with the handshake. 1: it is done; 0: it needs more bytes of the server (wr_tls_put); WEIR_EAWAY: it failed,
 * `message` says why. */
int wr_tls_handshake(struct wr_tls *tls, weir_message *message);

/* Encrypts bytes; wr_tls_take gives the result. */
int wr_tls_encrypt(struct wr_tls *tls, const char *plain, size_t size);

/* Appends the encrypted bytes that are to be sent. */
int wr_tls_take(struct wr_tls *tls, struct wr_bytes *out);

/* Hands over bytes that came from the server. */
int wr_tls_put(struct wr_tls *tls, const char *data, size_t size);

/* Decrypts at most `size` of the bytes that came. Answers how many; 0: no more; WEIR_ELOST: the server closed the connection,
 * or its bytes are not TLS. */
int wr_tls_decrypt(struct wr_tls *tls, char *plain, size_t size, weir_message *message);

#endif
