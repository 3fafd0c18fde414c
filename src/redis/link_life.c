/* The life of a link: connect, serve, lose, pause, connect again.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "redis/job.h"
#include "redis/redis.h"

#include <weir/error.h>
#include <weir/guard.h>
#include <weir/io.h>

/* How long the body leaves reading to threads before it looks whether they still do. */
enum { STANDBY_MS = 20 };

/* ---- the watch ------------------------------------------------------------------------------- */

/* The timer `watch`, which fires in the teller: gives up a server that owes a reply for too long. It is set only while
 * requests are under way, so idle links cost nothing. */
static void look_after(struct wr_redis_timer *timer, void *arg)
{
    struct wr_link *link = arg;
    int64_t most_ns = (int64_t)link->redis->config.opt.reply_ms * 1000000;
    weir_message why;

    wr_lock(&link->lock);
    link->watched = link->head != link->tail && !link->broken && !link->closing;
    if (link->watched) {
        weir_time since = link->ring[link->head % link->ring_room].since;
        if (since < link->last_read)
            since = link->last_read;
        if (weir_now() - since > most_ns) {
            wr_redis_fail(0, &why, "the server has not answered for %u ms",
                          link->redis->config.opt.reply_ms);
            wr_link_give_up(link, WEIR_ELOST, &why);
        }
        wr_teller_timer_set(&link->redis->teller, timer, weir_in_ns(most_ns / 4));
    }
    wr_unlock(&link->lock);
}

/* ---- serving ---------------------------------------------------------------------------------- */

/* With the lock: leaves reading to threads, until they stop, or a task or the teller waits for a reply (`others`). */
static void stand_by(struct wr_link *link)
{
    uint64_t seen;

    link->standby = true;
    do {
        seen = link->thread_reads;
        wr_unlock(&link->lock);
        weir_park(link->body, weir_in_ms(STANDBY_MS));
        wr_lock(&link->lock);
    } while (!link->broken && !link->closing &&
             (link->reading || (link->thread_reads != seen && !link->others)));
    link->standby = false;
}

/* With the lock: reads whenever there are bytes and no thread reads, until the link breaks. */
static void serve(struct wr_link *link)
{
    while (!link->broken && !link->closing) {
        uint64_t seen = link->thread_reads;
        wr_unlock(&link->lock);
        weir_fd_wait(link->conn.fd, WEIR_READ, WEIR_FOREVER);
        wr_lock(&link->lock);
        if (link->broken || link->closing)
            break;
        if (link->reading || (link->thread_reads != seen && !link->others))
            stand_by(link);
        else
            wr_link_read(link, NULL, 0);
    }
}

/* ---- up and down -------------------------------------------------------------------------------- */

/* With the lock: requests under way are lost; requests not sent yet may be sent again, or to another node. */
static void fail_requests(struct wr_link *link)
{
    while (link->head != link->tail) {
        struct wr_slot slot = link->ring[link->head++ % link->ring_room];
        int error = link->closing ? WEIR_ECLOSED : WEIR_ELOST;
        if (slot.request && !link->closing && slot.start >= link->written) {
            slot.request->unsent = true;
            error = WEIR_EAWAY;
        }
        wr_link_complete(link, slot.request, error, NULL, NULL);
    }
}

/* With the lock: fails the jobs that came while the link was connecting. */
static void fail_held(struct wr_link *link, int error)
{
    wr_list_each_safe(node, &link->held) {
        struct wr_job *job = WR_CONTAINER(node, struct wr_job, link);
        wr_list_remove(node);
        job->held = false;
        job->request.unsent = true;
        link->others += job->request.kind == WR_ASK; /* as if it came from the ring */
        wr_link_complete(link, &job->request, error, NULL, NULL);
    }
}

static void send_held(struct wr_link *link)
{
    struct wr_bytes bytes = { 0 };

    wr_list_each_safe(node, &link->held) {
        struct wr_job *job = WR_CONTAINER(node, struct wr_job, link);
        int rc = wr_command_format(&bytes, job->command, job->attempt.full, job->attempt.asking);
        wr_list_remove(node);
        job->held = false;
        if (!rc)
            rc = wr_link_push(link, &job->request, &bytes, job->attempt.asking);
        if (rc) {
            link->others += job->request.kind == WR_ASK;
            wr_link_complete(link, &job->request, rc, NULL, NULL);
        }
        wr_bytes_clear(&bytes);
    }
    wr_bytes_free(&bytes);
}

/* With the lock: the connection is of no use any more. Closes it once both roles are free. */
static void take_down(struct wr_link *link)
{
    while (link->reading || link->writing) {
        wr_unlock(&link->lock);
        weir_park(link->body, WEIR_FOREVER);
        wr_lock(&link->lock);
    }
    link->lost = link->why;
    fail_requests(link);
    wr_conn_close(&link->conn);
    wr_bytes_clear(&link->out);
    wr_bytes_clear(&link->going);
    link->queued = link->written = 0;
    link->broken = false;
    link->stats.losses++;
    link->state = WR_REDIS_CONNECTING;
    wr_link_changed(link);
}

static void go_up(struct wr_link *link, const struct wr_conn *conn)
{
    link->conn = *conn;
    link->last_read = wr_os_now_coarse();
    link->state = WR_REDIS_UP;
    link->why.text[0] = '\0';
    link->stats.connects++;
    send_held(link);
    wr_link_flush(link);
    wr_link_changed(link);
}

static void go_down(struct wr_link *link, int error, const weir_message *why)
{
    bool known = error == WEIR_EDENIED || error == WEIR_EPROTO || error == WEIR_ENOMEM;

    link->state = WR_REDIS_DOWN;
    link->error = known ? error : WEIR_EAWAY;
    link->why = *why;
    fail_held(link, link->error);
    wr_link_changed(link);
    wr_cluster_refresh(link->redis); /* another node may have its slots by now */
}

/* With the lock: waits before the next attempt, unless `hurry` is set. A node that is not wanted waits until it is. */
static void pause_before(struct wr_link *link, uint32_t failures)
{
    weir_time until = wr_redis_pause(link->redis, failures);

    while (!link->closing && !link->hurry) {
        bool wanted = wr_load(&link->node->wanted, relaxed);
        if (wanted && weir_now() >= until)
            break;
        wr_unlock(&link->lock);
        weir_park(link->body, wanted ? until : WEIR_FOREVER);
        wr_lock(&link->lock);
    }
}

static int connect_link(struct wr_link *link, struct wr_conn *conn, weir_message *why)
{
    struct wr_redis *redis = link->redis;
    struct wr_endpoint endpoint = link->node->endpoint;
    struct wr_login login = wr_redis_login(redis);
    weir_time deadline = weir_in_ms(redis->config.opt.connect_ms);
    int rc = 0;

    if (redis->config.kind != WR_REDIS_CLUSTER)
        rc = wr_redis_find(redis, &endpoint, &login, deadline, why);
    if (!rc)
        rc = wr_conn_open(conn, &endpoint, redis->tls, &login, deadline, why);
    if (!rc && redis->config.kind == WR_REDIS_SENTINEL) {
        rc = wr_sentinel_check(conn, &endpoint, deadline, why);
        if (rc)
            wr_conn_close(conn);
    }
    return rc;
}

void wr_link_main(void *arg)
{
    struct wr_link *link = arg;
    weir_parker_room room;
    struct wr_conn conn;
    uint32_t failures = 0;

    wr_lock(&link->lock);
    link->body = weir_parker_self(&room);
    while (!link->closing) {
        weir_message why = { "" };
        link->hurry = false;
        wr_unlock(&link->lock);
        int rc = connect_link(link, &conn, &why);
        wr_lock(&link->lock);
        if (rc) {
            if (link->closing)
                break;
            go_down(link, rc, &why);
            pause_before(link, ++failures);
            continue;
        }
        weir_time since = weir_now();
        go_up(link, &conn);
        serve(link);
        take_down(link);
        if (weir_now() - since >= WR_REDIS_STEADY_NS) {
            failures = 0;
        } else if (++failures > 1 && !link->closing) { /* the first one may be bad luck */
            go_down(link, WEIR_EAWAY, &link->lost);
            pause_before(link, failures);
        }
    }
    fail_held(link, WEIR_ECLOSED);
    link->state = WR_REDIS_DOWN;
    link->error = WEIR_ECLOSED;
    wr_link_changed(link);
    link->body = NULL;
    wr_unlock(&link->lock);
    wr_teller_bodies(&link->redis->teller, -1);
}

/* ---- from outside ------------------------------------------------------------------------------ */

void wr_link_init(struct wr_link *link, struct wr_redis *redis, struct wr_node *node)
{
    link->redis = redis;
    link->node = node;
    link->state = WR_REDIS_CONNECTING;
    link->away_since = wr_os_now();
    link->conn.fd = -1;
    link->watch.fire = look_after;
    link->watch.arg = link;
    wr_list_init(&link->waiting);
    wr_list_init(&link->held);
}

int wr_link_start(struct wr_link *link)
{
    int rc = wr_redis_spawn(link->redis, wr_link_writer, link);

    return rc ? rc : wr_redis_spawn(link->redis, wr_link_main, link);
}

void wr_link_stop(struct wr_link *link)
{
    wr_lock(&link->lock);
    link->closing = true;
    wr_link_give_up(link, WEIR_ECLOSED, &(weir_message){ "the client is being closed" });
    if (link->body)
        weir_unpark(link->body);
    if (link->writer)
        weir_unpark(link->writer);
    wr_unlock(&link->lock);
}

void wr_link_fini(struct wr_link *link)
{
    WR_ASSERT(link->head == link->tail && wr_list_empty(&link->held));
    wr_bytes_free(&link->out);
    wr_bytes_free(&link->going);
    wr_os_free(link->ring);
}
