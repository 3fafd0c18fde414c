/* One connection: connect, log in, send commands and read replies.
 * SPDX-License-Identifier: MIT */
#include "redis/conn.h"

#include <stdio.h>
#include <string.h>
#include <weir/error.h>
#include <weir/io.h>

int wr_reply_code(const struct wr_reply *reply, weir_message *message)
{
    bool denied;

    if (!reply || reply->type != WR_REPLY_ERROR)
        return 0;
    denied = wr_reply_is_error(reply, "NOAUTH") || wr_reply_is_error(reply, "WRONGPASS") ||
             wr_reply_is_error(reply, "NOPERM") || wr_reply_is_error(reply, "DENIED") ||
             /* a password where none is asked for; a wrong one, before there were users */
             !strncmp(reply->text, "ERR AUTH ", 9) ||
             !strncmp(reply->text, "ERR Client sent AUTH", 20) ||
             !strncmp(reply->text, "ERR invalid password", 20);
    return wr_redis_fail(denied ? WEIR_EDENIED : WEIR_EREPLY, message, "the server answered: %s",
                         reply->text);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t size, weir_time deadline)
{
    int64_t n = size ? weir_write(fd, data, size, deadline) : 0;

    if (n < 0)
        return n == WEIR_ETIMEDOUT || n == WEIR_ECANCELED ? (int)n : WEIR_ELOST;
    return (size_t)n == size ? 0 : WEIR_ETIMEDOUT;
}

int wr_conn_write(struct wr_conn *conn, const struct wr_bytes *plain, weir_time deadline)
{
    struct wr_bytes cipher = { 0 };
    int rc;

    if (!conn->tls)
        return write_all(conn->fd, plain->data, plain->size, deadline);
    rc = wr_tls_encrypt(conn->tls, plain->data, plain->size);
    if (!rc)
        rc = wr_tls_take(conn->tls, &cipher);
    if (!rc)
        rc = write_all(conn->fd, cipher.data, cipher.size, deadline);
    wr_bytes_free(&cipher);
    return rc;
}

int wr_conn_receive(struct wr_conn *conn, const char *data, size_t size, struct wr_bytes *out,
                    weir_message *message)
{
    char plain[4096];
    int n, rc;

    if (!conn->tls) {
        rc = wr_wire_feed(&conn->wire, data, size);
    } else {
        rc = wr_tls_put(conn->tls, data, size);
        while (!rc && (n = wr_tls_decrypt(conn->tls, plain, sizeof(plain), message)) != 0)
            rc = n < 0 ? n : wr_wire_feed(&conn->wire, plain, (size_t)n);
        if (!rc)
            rc = wr_tls_take(conn->tls, out);
    }
    if (rc == WEIR_EPROTO)
        wr_redis_fail(rc, message, "a reply of more than %d MiB", WR_BYTES_MAX >> 20);
    return rc;
}

/* Waits for bytes and feeds them to the parser. */
static int receive(struct wr_conn *conn, weir_time deadline, weir_message *message)
{
    struct wr_bytes out = { 0 };
    char data[8192];
    int64_t n = weir_read(conn->fd, data, sizeof(data), deadline);
    int rc;

    if (n == WEIR_ETIMEDOUT || n == WEIR_ECANCELED)
        return wr_redis_fail((int)n, message, "no answer: %s", weir_strerror((int)n));
    if (n <= 0)
        return wr_redis_fail(WEIR_ELOST, message, "the server closed the connection%s%s",
                             n ? ": " : "", n ? weir_strerror((int)n) : "");
    rc = wr_conn_receive(conn, data, (size_t)n, &out, message);
    if (!rc)
        rc = write_all(conn->fd, out.data, out.size, deadline);
    wr_bytes_free(&out);
    return rc;
}

int wr_conn_next(struct wr_reply **out, struct wr_conn *conn, weir_time deadline,
                 weir_message *message)
{
    int rc;

    while ((rc = wr_wire_next(out, &conn->wire, message)) == 0) {
        rc = receive(conn, deadline, message);
        if (rc)
            return rc;
    }
    return rc < 0 ? rc : 0;
}

int wr_conn_command(struct wr_reply **out, struct wr_conn *conn, const struct wr_command *command,
                    weir_time deadline, weir_message *message)
{
    struct wr_bytes bytes = { 0 };
    int rc = wr_command_format(&bytes, command, false, false);

    *out = NULL;
    if (!rc)
        rc = wr_conn_write(conn, &bytes, deadline);
    wr_bytes_free(&bytes);
    return rc ? wr_redis_fail(rc, message, "sending: %s", weir_strerror(rc))
              : wr_conn_next(out, conn, deadline, message);
}

/* ---- setting up ------------------------------------------------------------------------------ */

static int shake_hands(struct wr_conn *conn, weir_time deadline, weir_message *message)
{
    struct wr_bytes out = { 0 };
    char data[8192];
    int64_t n;
    int rc;

    while ((rc = wr_tls_handshake(conn->tls, message)) >= 0) {
        bool done = rc == 1;
        rc = wr_tls_take(conn->tls, &out);
        if (!rc)
            rc = write_all(conn->fd, out.data, out.size, deadline);
        wr_bytes_clear(&out);
        if (rc || done)
            break;
        n = weir_read(conn->fd, data, sizeof(data), deadline);
        if (n <= 0) {
            rc = n == WEIR_ETIMEDOUT || n == WEIR_ECANCELED ? (int)n : WEIR_EAWAY;
            wr_redis_fail(rc, message, "TLS: %s",
                          n ? weir_strerror((int)n) : "the server closed the connection");
            break;
        }
        rc = wr_tls_put(conn->tls, data, (size_t)n);
        if (rc)
            break;
    }
    wr_bytes_free(&out);
    return rc;
}

/* Sends a command of the login, whose reply must be no error. */
static int say(struct wr_conn *conn, const struct wr_command *command, weir_time deadline,
               weir_message *message)
{
    struct wr_reply *reply;
    int rc = wr_conn_command(&reply, conn, command, deadline, message);

    if (!rc)
        rc = wr_reply_code(reply, message);
    wr_reply_free(reply);
    return rc;
}

static int log_in(struct wr_conn *conn, const struct wr_login *login, weir_time deadline,
                  weir_message *message)
{
    char number[16];
    int rc = 0;

    if (login->password && login->user)
        rc = say(conn, WR_COMMAND("AUTH", login->user, login->password), deadline, message);
    else if (login->password)
        rc = say(conn, WR_COMMAND("AUTH", login->password), deadline, message);
    if (!rc && login->database) {
        snprintf(number, sizeof(number), "%u", login->database);
        rc = say(conn, WR_COMMAND("SELECT", number), deadline, message);
    }
    if (!rc && login->name) {
        rc = say(conn, WR_COMMAND("CLIENT", "SETNAME", login->name), deadline, message);
        /* A user without the right to name connections may still use the server. */
        if (rc == WEIR_EREPLY || (rc == WEIR_EDENIED && message && strstr(message->text, "NOPERM")))
            rc = 0;
    }
    return rc;
}

/* Refuses a server that sent a reply too many: it would be taken for that of a later request. */
static int expect_silence(struct wr_conn *conn, weir_message *message)
{
    struct wr_reply *reply;
    int rc = wr_wire_next(&reply, &conn->wire, message);

    if (rc <= 0)
        return rc;
    wr_reply_free(reply);
    return wr_redis_fail(WEIR_EPROTO, message, "the server sent a reply without a request");
}

void wr_conn_close(struct wr_conn *conn)
{
    if (conn->fd >= 0)
        wr_socket_close(conn->fd);
    wr_tls_free(conn->tls);
    wr_wire_fini(&conn->wire);
    *conn = (struct wr_conn){ .fd = -1 };
}

int wr_conn_open(struct wr_conn *conn, const struct wr_endpoint *endpoint,
                 struct wr_tls_context *tls, const struct wr_login *login, weir_time deadline,
                 weir_message *message)
{
    weir_message why = { "" };
    char where[300];
    int rc;

    *conn = (struct wr_conn){ .fd = -1, .where = *endpoint };
    rc = wr_socket_connect(endpoint, deadline, message);
    if (rc < 0)
        return rc;
    conn->fd = rc;
    rc = wr_wire_init(&conn->wire);
    if (!rc && tls)
        rc = wr_tls_new(&conn->tls, tls, endpoint->host);
    if (!rc && tls)
        rc = shake_hands(conn, deadline, &why);
    if (!rc)
        rc = log_in(conn, login, deadline, &why);
    if (!rc)
        rc = expect_silence(conn, &why);
    if (!rc)
        return 0;
    wr_conn_close(conn);
    wr_endpoint_text(where, sizeof(where), endpoint);
    return wr_redis_fail(rc == WEIR_ELOST ? WEIR_EAWAY : rc, message, "%s: %s", where,
                         why.text[0] ? why.text : weir_strerror(rc));
}
