/* Messages: subscribing, hearing, and subscribing again after a loss.
 * SPDX-License-Identifier: MIT */
#include "redis/ear.h"

#include "base/assert.h"
#include "base/os.h"
#include "redis/redis.h"

#include <string.h>
#include <weir/error.h>
#include <weir/io.h>

struct wr_subscription {
    struct wr_list link; /* in ear->subscriptions */
    struct wr_ear *ear;
    wr_redis_listener *listener;
    void *arg;
    uint32_t refs;  /* its owner's, and one for each message on its way; under the ear's lock */
    bool gone;      /* unsubscribed */
    bool listening; /* the server has confirmed it on this connection */
    char channel[];
};

/* A message on its way to the teller. */
struct heard {
    struct wr_told told;
    struct wr_subscription *subscription;
    enum wr_redis_event event;
    size_t size;
    char text[];
};

/* ---- to the teller --------------------------------------------------------------------------- */

/* Under the lock. */
static void unref(struct wr_subscription *subscription)
{
    if (--subscription->refs == 0)
        wr_os_free(subscription);
}

static void tell_heard(struct wr_told *told)
{
    struct heard *heard = WR_CONTAINER(told, struct heard, told);
    struct wr_subscription *subscription = heard->subscription;
    struct wr_ear *ear = subscription->ear;

    wr_lock(&ear->lock);
    if (!subscription->gone) {
        wr_teller_calls(&ear->redis->teller, subscription);
        wr_unlock(&ear->lock);
        subscription->listener(heard->event, heard->text, heard->size, subscription->arg);
        wr_lock(&ear->lock);
    }
    unref(subscription);
    wr_unlock(&ear->lock);
    wr_os_free(heard);
}

/* Under the lock. False: no memory. */
static bool post(struct wr_subscription *subscription, enum wr_redis_event event, const char *text,
                 size_t size)
{
    struct heard *heard = wr_os_alloc_raw(sizeof(*heard) + size + 1);

    if (!heard)
        return false;
    heard->told.tell = tell_heard;
    heard->subscription = subscription;
    heard->event = event;
    heard->size = size;
    memcpy(heard->text, text, size);
    heard->text[size] = '\0';
    subscription->refs++;
    wr_teller_post(&subscription->ear->redis->teller, &heard->told);
    return true;
}

static struct wr_subscription *subscription_of(struct wr_list *link)
{
    return WR_CONTAINER(link, struct wr_subscription, link);
}

/* ---- hearing, under the lock ------------------------------------------------------------------- */

static bool is_text(const struct wr_reply *reply, const char *text)
{
    return reply && reply->type == WR_REPLY_STRING && !strcmp(reply->text, text);
}

/* 0, or why the connection is to be given up. */
static int hear(struct wr_ear *ear, const struct wr_reply *reply, weir_message *why)
{
    const struct wr_reply *channel, *text;
    bool confirmed, message;
    int rc = wr_reply_code(reply, why);

    if (rc)
        return rc;
    if (reply->type != WR_REPLY_ARRAY || reply->count < 3)
        return wr_redis_fail(WEIR_EPROTO, why, "the server sent something other than a message");
    channel = reply->items[1];
    text = reply->items[2];
    confirmed = is_text(reply->items[0], "subscribe");
    message = is_text(reply->items[0], "message") && text->type == WR_REPLY_STRING;
    ear->unanswered -= confirmed;
    if (!channel || channel->type != WR_REPLY_STRING || !(confirmed || message))
        return 0; /* the end of a subscription */
    wr_list_each(node, &ear->subscriptions) {
        struct wr_subscription *subscription = subscription_of(node);
        if (strcmp(subscription->channel, channel->text) != 0)
            continue;
        if (confirmed && !subscription->listening) {
            subscription->listening = true;
            rc = post(subscription, WR_REDIS_LISTENING, "", 0) ? 0 : WEIR_ENOMEM;
        } else if (message && subscription->listening) {
            rc = post(subscription, WR_REDIS_MESSAGE, text->text, text->size) ? 0 : WEIR_ENOMEM;
        }
        if (rc) /* break the connection, which listeners hear of, rather than lose a message */
            return wr_redis_fail(rc, why, "no memory for a message");
    }
    return 0;
}

static int hear_all(struct wr_ear *ear, const char *data, size_t size, weir_message *why)
{
    struct wr_bytes out = { 0 };
    struct wr_reply *reply;
    int rc = wr_conn_receive(&ear->conn, data, size, &out, why);

    if (!rc && out.size && wr_os_write(ear->conn.fd, out.data, out.size) != (int64_t)out.size)
        rc = wr_redis_fail(WEIR_ELOST, why, "the socket accepts no more data");
    wr_bytes_free(&out);
    while (!rc && (rc = wr_wire_next(&reply, &ear->conn.wire, why)) == 1) {
        rc = hear(ear, reply, why);
        wr_reply_free(reply);
    }
    return rc;
}

/* ---- asking, under the lock -------------------------------------------------------------------- */

/* Sends a small command on a socket that carries little else. A socket that does not take it at once counts as broken: on
 * the next connection the ear subscribes to everything anyway. */
static void say(struct wr_ear *ear, const char *verb, const char *channel)
{
    struct wr_bytes bytes = { 0 }, cipher = { 0 }, *out = &bytes;
    int rc = wr_command_format(&bytes, WR_COMMAND(verb, channel), false, false);

    if (!rc && ear->conn.tls) {
        out = &cipher;
        rc = wr_tls_encrypt(ear->conn.tls, bytes.data, bytes.size);
        if (!rc)
            rc = wr_tls_take(ear->conn.tls, &cipher);
    }
    if (rc || wr_os_write(ear->conn.fd, out->data, out->size) != (int64_t)out->size)
        wr_socket_shutdown(ear->conn.fd);
    wr_bytes_free(&bytes);
    wr_bytes_free(&cipher);
}

static void ask_for(struct wr_ear *ear, struct wr_subscription *subscription)
{
    ear->unanswered++;
    say(ear, "SUBSCRIBE", subscription->channel);
}

/* ---- the body -------------------------------------------------------------------------------- */

/* Called with the lock, which is released while it waits. Returns when the connection is of no use any more; `why` says why. */
static void listen_on(struct wr_ear *ear, weir_message *why)
{
    char data[8192];
    int rc = 0;

    wr_list_each(node, &ear->subscriptions)
        ask_for(ear, subscription_of(node));
    while (!rc && !ear->closing && !wr_list_empty(&ear->subscriptions)) {
        weir_time until =
            ear->unanswered ? weir_in_ms(ear->redis->config.opt.reply_ms) : WEIR_FOREVER;
        wr_unlock(&ear->lock);
        int64_t n = weir_fd_wait(ear->conn.fd, WEIR_READ, until);
        if (n >= 0)
            n = wr_os_read(ear->conn.fd, data, sizeof(data));
        wr_lock(&ear->lock);
        if (n > 0)
            rc = hear_all(ear, data, (size_t)n, why);
        else if (n != -EAGAIN && n != -EINTR)
            rc = wr_redis_fail(WEIR_ELOST, why, "the connection for messages broke: %s",
                               n ? weir_strerror((int)n) : "the server closed it");
    }
}

static void be_deaf(struct wr_ear *ear, const weir_message *why)
{
    ear->up = false;
    wr_conn_close(&ear->conn);
    wr_list_each(node, &ear->subscriptions) {
        struct wr_subscription *subscription = subscription_of(node);
        if (subscription->listening &&
            !ear->closing) /* without memory the listener learns it from the next confirmation */
            post(subscription, WR_REDIS_DEAF, why->text, strlen(why->text));
        subscription->listening = false;
    }
}

static int connect_ear(struct wr_ear *ear, struct wr_conn *conn, weir_message *why)
{
    weir_time deadline = weir_in_ms(ear->redis->config.opt.connect_ms);
    struct wr_endpoint endpoint;
    struct wr_login login;
    int rc = ear->find(ear->redis, &endpoint, &login, deadline, why);

    return rc ? rc : wr_conn_open(conn, &endpoint, ear->redis->tls, &login, deadline, why);
}

static void ear_main(void *arg)
{
    struct wr_ear *ear = arg;
    weir_parker_room room;
    uint32_t failures = 0;

    wr_lock(&ear->lock);
    ear->body = weir_parker_self(&room);
    while (!ear->closing) {
        weir_message why = { "" };
        struct wr_conn conn;
        if (wr_list_empty(&ear->subscriptions)) {
            wr_unlock(&ear->lock);
            weir_park(ear->body, WEIR_FOREVER);
            wr_lock(&ear->lock);
            continue;
        }
        wr_unlock(&ear->lock);
        int rc = connect_ear(ear, &conn, &why);
        wr_lock(&ear->lock);
        if (!rc) {
            weir_time since = weir_now();
            ear->conn = conn;
            ear->up = true;
            ear->connects++;
            ear->unanswered = 0;
            listen_on(ear, &why);
            be_deaf(ear, &why);
            if (weir_now() - since > WR_REDIS_STEADY_NS)
                failures = 0;
        }
        weir_time until = wr_redis_pause(ear->redis, ++failures);
        while (!ear->closing && failures > 1 && weir_now() < until) {
            wr_unlock(&ear->lock);
            weir_park(ear->body, until);
            wr_lock(&ear->lock);
        }
    }
    ear->body = NULL;
    wr_unlock(&ear->lock);
    wr_teller_bodies(&ear->redis->teller, -1);
}

/* ---- from outside ------------------------------------------------------------------------------ */

void wr_ear_init(struct wr_ear *ear, struct wr_redis *redis,
                 int (*find)(struct wr_redis *, struct wr_endpoint *, struct wr_login *, weir_time,
                             weir_message *))
{
    *ear = (struct wr_ear){ .redis = redis, .find = find, .conn.fd = -1 };
    wr_list_init(&ear->subscriptions);
}

/* Under the lock: wakes the body, also if it waits for the socket. */
static void wake(struct wr_ear *ear)
{
    if (ear->up)
        wr_socket_shutdown(ear->conn.fd);
    if (ear->body)
        weir_unpark(ear->body);
}

void wr_ear_move(struct wr_ear *ear, const struct wr_endpoint *to)
{
    wr_lock(&ear->lock);
    if (!ear->up || !wr_endpoint_same(&ear->conn.where, to))
        wake(ear);
    wr_unlock(&ear->lock);
}

void wr_ear_stop(struct wr_ear *ear)
{
    wr_lock(&ear->lock);
    ear->closing = true;
    wake(ear);
    wr_unlock(&ear->lock);
}

void wr_ear_fini(struct wr_ear *ear)
{
    wr_list_each_safe(node, &ear->subscriptions)
        unref(subscription_of(node));
}

int wr_ear_subscribe(struct wr_subscription **out, struct wr_ear *ear, const char *channel,
                     wr_redis_listener *listener, void *arg)
{
    size_t size = strlen(channel) + 1;
    struct wr_subscription *subscription = wr_os_alloc(sizeof(*subscription) + size);
    int rc = 0;

    *out = NULL;
    if (!subscription)
        return WEIR_ENOMEM;
    subscription->ear = ear;
    subscription->listener = listener;
    subscription->arg = arg;
    subscription->refs = 1;
    memcpy(subscription->channel, channel, size);
    wr_lock(&ear->lock);
    if (ear->closing)
        rc = WEIR_ECLOSED;
    else if (!ear->started)
        rc = wr_redis_spawn(ear->redis, ear_main, ear);
    if (rc) {
        wr_os_free(subscription);
    } else {
        ear->started = true;
        wr_list_append(&ear->subscriptions, &subscription->link);
        if (ear->up) /* also for a known channel: the confirmation is for this subscription, too */
            ask_for(ear, subscription);
        else if (ear->body)
            weir_unpark(ear->body);
        *out = subscription;
    }
    wr_unlock(&ear->lock);
    return rc;
}

static bool is_wanted(const struct wr_ear *ear, const char *channel)
{
    wr_list_each(node, &ear->subscriptions) {
        if (!strcmp(subscription_of(node)->channel, channel))
            return true;
    }
    return false;
}

void wr_redis_unsubscribe(struct wr_subscription *subscription)
{
    struct wr_ear *ear;

    if (!subscription)
        return;
    ear = subscription->ear;
    wr_lock(&ear->lock);
    subscription->gone = true;
    wr_list_remove(&subscription->link);
    if (ear->up && wr_list_empty(&ear->subscriptions))
        wake(ear);
    else if (ear->up && !is_wanted(ear, subscription->channel))
        say(ear, "UNSUBSCRIBE", subscription->channel);
    wr_unlock(&ear->lock);
    wr_teller_await(&ear->redis->teller, subscription);
    wr_lock(&ear->lock);
    unref(subscription);
    wr_unlock(&ear->lock);
}
