/* The two roles of a link: writing and reading.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "redis/redis.h"

#include <weir/error.h>
#include <weir/io.h>

void wr_link_give_up(struct wr_link *link, int error, const weir_message *why)
{
    if (link->state != WR_REDIS_UP || link->broken)
        return;
    link->broken = true;
    link->away_since = wr_os_now();
    link->error = error;
    link->why = *why;
    wr_socket_shutdown(link->conn.fd); /* wakes the reader and the writer */
    if (link->body)
        weir_unpark(link->body);
    if (link->writer)
        weir_unpark(link->writer);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool has_bytes(const struct wr_link *link)
{
    return link->out.size || link->going.at < link->going.size;
}

void wr_link_poke(struct wr_link *link)
{
    if (link->poked || !link->writer)
        return;
    link->poked = true;
    weir_unpark(link->writer);
}

/* Called with the writing role and with the lock, which is released during system calls. Writes until all is out, or until
 * the socket takes no more; with `wait`, it waits for the socket then. */
static void write_out(struct wr_link *link, bool wait)
{
    struct wr_bytes *going = &link->going;

    while (!link->broken) {
        if (going->at == going->size) {
            struct wr_bytes empty = *going;
            if (!link->out.size)
                break;
            wr_bytes_clear(&empty);
            *going = link->out;
            link->out = empty;
        }
        wr_unlock(&link->lock);
        int64_t n = wr_os_write(link->conn.fd, going->data + going->at, going->size - going->at);
        int rc = n == -EAGAIN && wait ? weir_fd_wait(link->conn.fd, WEIR_WRITE, WEIR_FOREVER) : 0;
        wr_lock(&link->lock);
        if (n > 0) {
            going->at += (size_t)n;
            link->written += (uint64_t)n;
        } else if (n == -EAGAIN && rc >= 0) {
            if (!wait)
                break;
        } else if (n != -EINTR) {
            weir_message why;
            wr_redis_fail(0, &why, "sending: %s", weir_strerror(n == -EAGAIN ? rc : (int)n));
            wr_link_give_up(link, WEIR_ELOST, &why);
        }
    }
    if (going->at == going->size)
        wr_bytes_clear(going);
}

/* With the lock: gives the role back. */
static void end_writing(struct wr_link *link)
{
    link->writing = false;
    if (link->broken && link->body)
        weir_unpark(link->body); /* it waits for the roles to be free */
}

void wr_link_flush(struct wr_link *link)
{
    enum { FEW = 4 };

    if (link->writing || link->broken || !has_bytes(link))
        return; /* the thread that has the role writes these bytes, too */
    /* Many tasks of a worker come one after the other: one write for all of them is better than one each. */
    if (link->tail - link->head > FEW && weir_on_worker()) {
        wr_link_poke(link);
        return;
    }
    link->writing = true;
    write_out(link, false);
    end_writing(link);
    if (!link->broken && has_bytes(link))
        wr_link_poke(link);
}

void wr_link_writer(void *arg)
{
    struct wr_link *link = arg;
    weir_parker_room room;

    wr_lock(&link->lock);
    link->writer = weir_parker_self(&room);
    while (!link->closing) {
        link->poked = false;
        if (link->state == WR_REDIS_UP && !link->broken && !link->writing && has_bytes(link)) {
            link->writing = true;
            write_out(link, true);
            end_writing(link);
            continue;
        }
        wr_unlock(&link->lock);
        weir_park(link->writer, WEIR_FOREVER);
        wr_lock(&link->lock);
    }
    link->writer = NULL;
    wr_unlock(&link->lock);
    wr_teller_bodies(&link->redis->teller, -1);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* With the reading role, without the lock. */
static int take_in(struct wr_link *link, const char *data, size_t size, weir_message *why)
{
    int rc;

    if (!link->conn.tls)
        return wr_conn_receive(&link->conn, data, size, NULL, why);
    wr_lock(&link->lock);
    size_t before = link->out.size;
    rc = wr_conn_receive(&link->conn, data, size, &link->out, why);
    if (link->out.size != before) { /* TLS itself has bytes to send */
        link->queued += link->out.size - before;
        wr_link_poke(link);
    }
    wr_unlock(&link->lock);
    return rc;
}

/* With the lock: a reply has come, for the first request in the ring. */
static int match(struct wr_link *link, struct wr_reply *reply, const struct wr_request *self,
                 weir_message *why)
{
    struct wr_slot slot;

    if (link->head == link->tail) {
        wr_redis_fail(0, why, "the server sent a reply without a request%s%s",
                      reply->type == WR_REPLY_ERROR ? ": " : "",
                      reply->type == WR_REPLY_ERROR ? reply->text : "");
        wr_reply_free(reply);
        return WEIR_EPROTO;
    }
    slot = link->ring[link->head++ % link->ring_room];
    link->stats.replies++;
    wr_link_complete(link, slot.request, 0, reply, self);
    return 0;
}

/* With the reading role, without the lock. 0, or why the connection is of no use any more. */
static int read_some(struct wr_link *link, const struct wr_request *self, weir_message *why)
{
    char data[16384];
    struct wr_reply *reply;
    int64_t n;
    int rc = 0;

    n = wr_os_read(link->conn.fd, data, sizeof(data));
    if (n == -EAGAIN || n == -EINTR)
        return 0;
    if (n <= 0)
        return wr_redis_fail(WEIR_ELOST, why, "the server closed the connection%s%s", n ? ": " : "",
                             n ? weir_strerror((int)n) : "");
    rc = take_in(link, data, (size_t)n, why);
    while (!rc && (rc = wr_wire_next(&reply, &link->conn.wire, why)) == 1) {
        wr_lock(&link->lock);
        rc = match(link, reply, self, why);
        wr_unlock(&link->lock);
    }
    return rc;
}

int wr_link_read(struct wr_link *link, const struct wr_request *self, weir_time deadline)
{
    weir_message why;
    int rc, broken = 0;

    WR_ASSERT(!link->reading);
    link->reading = true;
    wr_unlock(&link->lock);
    rc = self ? weir_fd_wait(link->conn.fd, WEIR_READ, deadline) : 1;
    if (rc > 0)
        broken = read_some(link, self, &why);
    wr_lock(&link->lock);
    link->reading = false;
    if (rc > 0)
        link->last_read = wr_os_now_coarse();
    if (broken)
        wr_link_give_up(link, broken, &why);
    if (link->broken && link->body)
        weir_unpark(link->body);
    if (self)
        link->thread_reads++;
    return rc < 0 ? rc : 0;
}
