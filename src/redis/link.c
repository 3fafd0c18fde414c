/* A link as its users see it: requests in, replies out.
 * SPDX-License-Identifier: MIT */
#include "redis/link.h"

#include "base/assert.h"
#include "base/os.h"
#include "redis/job.h"
#include "redis/redis.h"

#include <string.h>
#include <weir/error.h>
#include <weir/runtime.h>
#include <weir/wait.h>

struct wr_link_waiter {
    struct wr_list link;
    weir_parker *parker;
};

/* ---- the ring, under the lock ------------------------------------------------------------------ */

static bool counts_as_other(const struct wr_request *request)
{
    return request && (request->kind == WR_CALL_WORKER || request->kind == WR_ASK);
}

static int make_room(struct wr_link *link, uint32_t places)
{
    enum { RING_FIRST = 64 };
    uint64_t used = link->tail - link->head;
    uint32_t room = link->ring_room ? link->ring_room * 2 : RING_FIRST;
    struct wr_slot *larger;

    if (used + places > WR_REDIS_PENDING_MAX)
        return WEIR_EAGAIN;
    if (used + places <= link->ring_room)
        return 0;
    larger = wr_os_alloc(room * sizeof(*larger));
    if (!larger)
        return WEIR_ENOMEM;
    for (uint64_t i = link->head; link->ring_room && i < link->tail; i++)
        larger[i % room] = link->ring[i % link->ring_room];
    wr_os_free(link->ring);
    link->ring = larger;
    link->ring_room = room;
    return 0;
}

static int append(struct wr_link *link, const struct wr_bytes *bytes)
{
    int rc;

    if (!link->conn.tls)
        return wr_bytes_append(&link->out, bytes->data, bytes->size);
    rc = link->out.size + bytes->size > WR_BYTES_MAX ? WEIR_EAGAIN : 0;
    if (rc)
        return rc;
    rc = wr_tls_encrypt(link->conn.tls, bytes->data, bytes->size);
    if (!rc)
        rc = wr_tls_take(link->conn.tls, &link->out);
    if (rc) { /* half a request may be under way */
        weir_message why;
        wr_redis_fail(0, &why, "TLS: %s", weir_strerror(rc));
        wr_link_give_up(link, WEIR_ELOST, &why);
    }
    return rc;
}

static void place(struct wr_link *link, struct wr_request *request, uint64_t start)
{
    struct wr_slot *slot = &link->ring[link->tail % link->ring_room];

    *slot = (struct wr_slot){ request, start, wr_os_now_coarse() };
    if (request)
        request->place = link->tail;
    link->others += counts_as_other(request);
    link->tail++;
}

int wr_link_push(struct wr_link *link, struct wr_request *request, const struct wr_bytes *bytes,
                 bool asking)
{
    size_t before = link->out.size;
    int rc = make_room(link, 2);

    if (!rc)
        rc = append(link, bytes);
    if (rc)
        return rc;
    if (asking)
        place(link, NULL, link->queued);
    place(link, request, link->queued);
    link->queued += link->out.size - before;
    link->stats.commands++;
    if (!link->watched) {
        link->watched = true;
        wr_teller_timer_set(&link->redis->teller, &link->watch,
                            weir_in_ms(link->redis->config.opt.reply_ms / 4 + 1));
    }
    if (link->standby && !link->reading && counts_as_other(request))
        weir_unpark(link->body);
    return 0;
}

/* Takes a request out of its slot of the ring; its reply will be dropped. */
static void forget(struct wr_link *link, struct wr_request *request)
{
    struct wr_slot *slot = &link->ring[request->place % link->ring_room];

    WR_ASSERT(!request->done && slot->request == request);
    link->others -= counts_as_other(request);
    slot->request = NULL;
    link->stats.abandoned++;
}

void wr_link_complete(struct wr_link *link, struct wr_request *request, int error,
                      struct wr_reply *reply, const struct wr_request *self)
{
    if (!request) {
        wr_reply_free(reply);
        return;
    }
    link->others -= counts_as_other(request);
    request->done = true;
    request->error = error;
    request->reply = reply;
    if (request->kind == WR_ASK || request->kind == WR_SEND)
        wr_job_done((struct wr_job *)request);
    else if (request != self)
        weir_unpark(request->parker);
}

/* ---- waiting for it to be up -------------------------------------------------------------------- */

/* Called with the lock, which is released while it waits. */
static int wait_up(struct wr_link *link, bool patient, weir_time deadline, weir_message *message)
{
    weir_parker_room room;
    struct wr_link_waiter waiter;
    int rc = 0;

    while (link->state != WR_REDIS_UP || link->broken) {
        if (link->closing)
            return wr_redis_fail(WEIR_ECLOSED, message, "the client is being closed");
        if (link->state == WR_REDIS_DOWN && !patient)
            return wr_redis_fail(link->error, message, "%s", link->why.text);
        if (rc)
            return link->why.text[0]
                       ? wr_redis_fail(rc, message, "no connection: %s", link->why.text)
                       : wr_redis_fail(rc, message, "no connection yet: %s", weir_strerror(rc));
        waiter.parker = weir_parker_self(&room);
        wr_list_append(&link->waiting, &waiter.link);
        wr_unlock(&link->lock);
        rc = weir_cancelled() ? WEIR_ECANCELED : weir_park(waiter.parker, deadline);
        wr_lock(&link->lock);
        wr_list_remove(&waiter.link);
    }
    return 0;
}

int wr_link_wait(struct wr_link *link, bool patient, weir_time deadline, weir_message *message)
{
    int rc;

    wr_lock(&link->lock);
    rc = wait_up(link, patient, deadline, message);
    wr_unlock(&link->lock);
    return rc;
}

void wr_link_changed(struct wr_link *link)
{
    wr_list_each(node, &link->waiting)
        weir_unpark(WR_CONTAINER(node, struct wr_link_waiter, link)->parker);
    wr_redis_changed(link->redis);
}

/* ---- calls --------------------------------------------------------------------------------------- */

/* Under the lock: a thread has its reply, or gives up. If no thread reads now, the next reader is woken: the body if a task
 * or the teller waits for a reply (`others`), else the thread whose reply comes first. Replies that will be dropped can wait
 * for the body's next look. */
static void pass_on(struct wr_link *link)
{
    if (link->reading || link->broken || link->state != WR_REDIS_UP)
        return;
    if (link->others) {
        if (link->standby)
            weir_unpark(link->body);
        return;
    }
    for (uint64_t i = link->head; i < link->tail; i++) {
        struct wr_request *request = link->ring[i % link->ring_room].request;
        if (request && request->kind == WR_CALL_THREAD) {
            weir_unpark(request->parker);
            return;
        }
    }
}

/* Waits until the request is done. Called with the lock, which is released while it waits. */
static int await(struct wr_link *link, struct wr_request *request, weir_time deadline)
{
    int rc = 0;

    while (!request->done && !rc) {
        if (request->kind == WR_CALL_THREAD && !link->reading && !link->broken) {
            rc = wr_link_read(link, request, deadline);
        } else {
            wr_unlock(&link->lock);
            rc = weir_cancelled() ? WEIR_ECANCELED : weir_park(request->parker, deadline);
            wr_lock(&link->lock);
        }
    }
    if (request->done)
        return request->error;
    forget(link, request);
    return rc;
}

int wr_link_call(struct wr_link *link, struct wr_request *request, const struct wr_bytes *bytes,
                 bool asking, weir_time patience, weir_time deadline, weir_message *message)
{
    weir_time up_by = patience && patience < deadline ? patience : deadline;
    weir_parker_room room;
    bool by_thread = !weir_on_worker();
    int rc;

    *request = (struct wr_request){ .kind = by_thread ? WR_CALL_THREAD : WR_CALL_WORKER };
    wr_lock(&link->lock);
    rc = link->state == WR_REDIS_UP && !link->broken ? 0 : wait_up(link, patience, up_by, message);
    if (rc) {
        wr_unlock(&link->lock);
        request->unsent = true;
        return rc;
    }
    request->parker = weir_parker_self(&room);
    rc = wr_link_push(link, request, bytes, asking);
    if (!rc) {
        wr_link_flush(link);
        rc = await(link, request, deadline);
        if (by_thread)
            pass_on(link);
        if (rc)
            wr_redis_fail(rc, message, "%s",
                          rc == WEIR_ELOST ? link->lost.text : weir_strerror(rc));
    } else {
        request->unsent = true;
        wr_redis_fail(rc, message, "not sent: %s", weir_strerror(rc));
    }
    wr_unlock(&link->lock);
    return rc;
}

/* ---- jobs ---------------------------------------------------------------------------------------- */

int wr_link_submit(struct wr_link *link, struct wr_job *job, const struct wr_bytes *bytes,
                   bool asking)
{
    int rc;

    wr_lock(&link->lock);
    job->request.done = false;
    job->held = false;
    if (link->closing) {
        rc = WEIR_ECLOSED;
    } else if (link->state == WR_REDIS_DOWN) {
        rc = link->error;
    } else if (link->state == WR_REDIS_CONNECTING || link->broken) {
        job->held = true;
        wr_list_append(&link->held, &job->link);
        rc = 0;
    } else {
        rc = wr_link_push(link, &job->request, bytes, asking);
    }
    if (!rc) {
        wr_job_sent(job); /* before it can be done */
        wr_link_flush(link);
    }
    wr_unlock(&link->lock);
    return rc;
}

bool wr_link_abandon(struct wr_link *link, struct wr_job *job)
{
    bool ours;

    wr_lock(&link->lock);
    ours = !job->request.done;
    if (ours && job->held)
        wr_list_remove(&job->link);
    else if (ours)
        forget(link, &job->request);
    wr_unlock(&link->lock);
    return ours;
}

void wr_link_finish(struct wr_link *link, weir_time deadline)
{
    int rc = 0;

    wr_lock(&link->lock);
    while (!rc && link->state == WR_REDIS_UP && !link->broken && link->head != link->tail &&
           weir_now() < deadline) {
        wr_link_flush(link);
        if (link->standby && link->body)
            weir_unpark(link->body); /* no thread reads any more */
        wr_unlock(&link->lock);
        rc = weir_sleep(weir_in_us(200));
        wr_lock(&link->lock);
    }
    wr_unlock(&link->lock);
}

void wr_link_hurry(struct wr_link *link)
{
    wr_lock(&link->lock);
    link->hurry = true;
    if (link->body)
        weir_unpark(link->body);
    wr_unlock(&link->lock);
}

/* Under the lock. */
static void break_now(struct wr_link *link, int error, const char *why)
{
    weir_message message;

    wr_redis_fail(error, &message, "%s", why);
    link->hurry = true;
    wr_link_give_up(link, error, &message);
    if (link->body)
        weir_unpark(link->body);
}

void wr_link_break(struct wr_link *link, int error, const char *why)
{
    wr_lock(&link->lock);
    break_now(link, error, why);
    wr_unlock(&link->lock);
}

void wr_link_move(struct wr_link *link, const struct wr_endpoint *to, const char *why)
{
    wr_lock(&link->lock);
    if (link->state != WR_REDIS_UP || !wr_endpoint_same(&link->conn.where, to))
        break_now(link, WEIR_ELOST, why);
    wr_unlock(&link->lock);
}
