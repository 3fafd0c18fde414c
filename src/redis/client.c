/* A client: opened, looked at, closed.
 * SPDX-License-Identifier: MIT */
#include "redis/client.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/os.h"
#include "redis/job.h"
#include "redis/redis.h"

#include <string.h>
#include <weir/error.h>

/* ---- nodes ----------------------------------------------------------------------------------- */

int wr_redis_spawn(struct wr_redis *redis, weir_body *body, void *arg)
{
    int rc;

    wr_teller_bodies(&redis->teller, +1);
    rc = weir_spawn(redis->runtime, body, arg, WEIR_SPAWN(.name = "weir-redis"));
    if (rc)
        wr_teller_bodies(&redis->teller, -1);
    return rc;
}

/* Under the client's lock. */
static struct wr_node *node_add(struct wr_redis *redis, const struct wr_endpoint *endpoint)
{
    uint32_t count = redis->config.opt.connections;
    struct wr_node *node = wr_os_alloc(sizeof(*node) + count * sizeof(node->links[0]));

    if (!node)
        return NULL;
    node->endpoint = *endpoint;
    node->count = count;
    wr_store(&node->wanted, true, relaxed);
    for (uint32_t i = 0; i < count; i++)
        wr_link_init(&node->links[i], redis, node);
    wr_list_append(&redis->nodes, &node->link);
    return node;
}

/* Under the client's lock. */
static int node_start(struct wr_node *node)
{
    int rc = 0;

    for (uint32_t i = 0; i < node->count && !rc && !node->started; i++)
        rc = wr_link_start(&node->links[i]);
    node->started =
        true; /* one without bodies stays CONNECTING: its callers wait for nothing but their deadlines */
    return rc;
}

struct wr_node *wr_redis_node(struct wr_redis *redis, const struct wr_endpoint *endpoint)
{
    struct wr_node *node = NULL;

    wr_lock(&redis->lock);
    wr_list_each(link, &redis->nodes) {
        struct wr_node *known = WR_CONTAINER(link, struct wr_node, link);
        if (wr_endpoint_same(&known->endpoint, endpoint)) {
            node = known;
            break;
        }
    }
    if (!node && !redis->closing) {
        node = node_add(redis, endpoint);
        if (node && node_start(node))
            node = NULL;
    }
    wr_unlock(&redis->lock);
    return node;
}

struct wr_login wr_redis_login(const struct wr_redis *redis)
{
    const weir_redis_options *opt = &redis->config.opt;

    return (struct wr_login){ .user = opt->user,
                              .password = opt->password,
                              .database = opt->database,
                              .name = opt->name ? opt->name : "weir" };
}

void wr_redis_each_node(struct wr_redis *redis, bool (*look)(struct wr_node *node, void *arg),
                        void *arg)
{
    struct wr_list *link = &redis->nodes;

    for (;;) {
        wr_lock(&redis->lock); /* others may be added, none goes */
        link = link->next;
        wr_unlock(&redis->lock);
        if (link == &redis->nodes || look(WR_CONTAINER(link, struct wr_node, link), arg))
            return;
    }
}

void wr_node_want(struct wr_node *node, bool wanted)
{
    if (wr_swap(&node->wanted, wanted, relaxed) == wanted)
        return;
    for (uint32_t i = 0; i < node->count; i++)
        wr_link_hurry(&node->links[i]);
}

void wr_redis_move(struct wr_redis *redis, const struct wr_endpoint *to, const char *why)
{
    for (uint32_t i = 0; i < redis->home->count; i++)
        wr_link_move(&redis->home->links[i], to, why);
    wr_ear_move(&redis->ear, to);
}

/* In a cluster messages go to all nodes: any will do, another one each time. */
struct pick {
    uint32_t left;
    struct wr_node *node;
};

static bool pick(struct wr_node *node, void *arg)
{
    struct pick *p = arg;

    if (wr_load(&node->wanted, relaxed))
        p->node = node;
    return p->node && p->left-- == 0;
}

int wr_redis_find(struct wr_redis *redis, struct wr_endpoint *out, struct wr_login *login,
                  weir_time deadline, weir_message *message)
{
    struct pick any = { .left = (uint32_t)(wr_os_random() % 8), .node = NULL };

    *login = wr_redis_login(redis);
    if (redis->config.kind == WR_REDIS_SENTINEL)
        return wr_sentinel_find(redis, out, deadline, message);
    *out = redis->config.hosts[0];
    if (redis->config.kind == WR_REDIS_CLUSTER) {
        wr_redis_each_node(redis, pick, &any);
        if (any.node)
            *out = any.node->endpoint;
    }
    return 0;
}

weir_time wr_redis_pause(const struct wr_redis *redis, uint32_t failures)
{
    const weir_redis_options *opt = &redis->config.opt;
    int64_t pause = weir_backoff(
        failures, wr_os_random(),
        WEIR_RETRY(.attempts = UINT32_MAX, .first_ns = (int64_t)opt->backoff_ms * 1000000,
                   .max_ns = (int64_t)opt->backoff_max_ms * 1000000, .jitter = 0.5));

    return weir_in_ns(pause > 0 ? pause : 1000000);
}

int wr_redis_subscribe(struct wr_subscription **out, struct wr_redis *redis, const char *channel,
                       wr_redis_listener *listener, void *arg)
{
    return wr_ear_subscribe(out, &redis->ear, channel, listener, arg);
}

struct wr_link *wr_redis_link(struct wr_redis *redis, struct wr_node *node, const char *key,
                              size_t size)
{
    if (node->count == 1)
        return &node->links[0];
    return &node->links[key ? wr_hash(redis->seed, key, size) % node->count : 0];
}

struct wr_link *wr_redis_route(struct wr_redis *redis, const struct wr_command *command)
{
    struct wr_node *node = redis->home;
    size_t size = 0;
    const char *key = NULL;

    if (redis->cluster.slots || node->count > 1)
        key = wr_command_key(command, &size);
    if (redis->cluster.slots)
        node = wr_cluster_node(redis, key, size);
    return wr_redis_link(redis, node, key, size);
}

/* ---- state ----------------------------------------------------------------------------------- */

static enum wr_redis_state worse(enum wr_redis_state a, enum wr_redis_state b)
{
    if (a == WR_REDIS_DOWN || b == WR_REDIS_DOWN)
        return WR_REDIS_DOWN;
    return a == WR_REDIS_CONNECTING || b == WR_REDIS_CONNECTING ? WR_REDIS_CONNECTING : WR_REDIS_UP;
}

/* Looks at every connection that is wanted, under its lock. */
static void each_link(struct wr_redis *redis, void (*look)(const struct wr_link *link, void *arg),
                      void *arg)
{
    wr_lock(&redis->lock);
    wr_list_each(node_link, &redis->nodes) {
        struct wr_node *node = WR_CONTAINER(node_link, struct wr_node, link);
        for (uint32_t i = 0; i < node->count && wr_load(&node->wanted, relaxed); i++) {
            wr_lock(&node->links[i].lock);
            look(&node->links[i], arg);
            wr_unlock(&node->links[i].lock);
        }
    }
    wr_unlock(&redis->lock);
}

struct worst {
    enum wr_redis_state state;
    weir_message *why; /* may be NULL */
};

static void look_at_state(const struct wr_link *link, void *arg)
{
    struct worst *worst = arg;
    enum wr_redis_state was = worst->state;

    worst->state = worse(was, link->broken ? WR_REDIS_CONNECTING : link->state);
    if (worst->why && worst->state != was)
        *worst->why = link->why;
}

enum wr_redis_state wr_redis_state(struct wr_redis *redis, weir_message *why)
{
    struct worst worst = { WR_REDIS_UP, why };

    if (why)
        why->text[0] = '\0';
    if (redis->cluster.slots && !wr_load(&redis->cluster.known, acquire)) {
        wr_lock(&redis->cluster.lock);
        worst.state = redis->cluster.error ? WR_REDIS_DOWN : WR_REDIS_CONNECTING;
        if (why)
            *why = redis->cluster.why;
        wr_unlock(&redis->cluster.lock);
    }
    each_link(redis, look_at_state, &worst);
    return worst.state;
}

static void look_at_away(const struct wr_link *link, void *arg)
{
    weir_time *since = arg;

    if ((link->broken || link->state != WR_REDIS_UP) && link->away_since < *since)
        *since = link->away_since;
}

weir_time wr_redis_away_since(struct wr_redis *redis)
{
    weir_time since = wr_os_now();

    each_link(redis, look_at_away, &since);
    return since;
}

/* In the teller. Several changes since the last call are told as one. */
static void tell_state(struct wr_told *told)
{
    struct wr_redis *redis = WR_CONTAINER(told, struct wr_redis, state_told);
    enum wr_redis_state state;
    weir_message why;

    wr_lock(&redis->state_lock);
    redis->state_posted = false;
    wr_unlock(&redis->state_lock);
    state = wr_redis_state(redis, &why);
    if (state == redis->told_state || wr_teller_is_closing(&redis->teller))
        return;
    redis->told_state = state;
    redis->calls.on_state(state, why.text, redis->calls.arg);
}

void wr_redis_changed(struct wr_redis *redis)
{
    bool post;

    if (!redis->calls.on_state)
        return;
    wr_lock(&redis->state_lock);
    post = !redis->state_posted;
    redis->state_posted = true;
    wr_unlock(&redis->state_lock);
    if (post)
        wr_teller_post(&redis->teller, &redis->state_told);
}

struct ready {
    weir_time deadline;
    weir_message *message;
    int rc;
};

static bool await_node(struct wr_node *node, void *arg)
{
    struct ready *ready = arg;

    for (uint32_t i = 0; i < node->count && !ready->rc && wr_load(&node->wanted, relaxed); i++)
        ready->rc = wr_link_wait(&node->links[i], false, ready->deadline, ready->message);
    return ready->rc != 0;
}

int wr_redis_ready(struct wr_redis *redis, weir_time deadline, weir_message *message)
{
    struct ready ready = { deadline, message, 0 };

    ready.rc = wr_cluster_wait(&redis->cluster, deadline, message);
    if (!ready.rc)
        wr_redis_each_node(redis, await_node, &ready);
    return ready.rc;
}

void wr_redis_stats_get(struct wr_redis_stats *out, struct wr_redis *redis)
{
    *out = (struct wr_redis_stats){ .dropped = wr_load(&redis->dropped, relaxed) };
    wr_lock(&redis->lock);
    wr_list_each(node_link, &redis->nodes) {
        struct wr_node *node = WR_CONTAINER(node_link, struct wr_node, link);
        for (uint32_t i = 0; i < node->count; i++) {
            struct wr_link *link = &node->links[i];
            wr_lock(&link->lock);
            out->commands += link->stats.commands;
            out->unsent += link->queued - link->written;
            out->replies += link->stats.replies;
            out->connects += link->stats.connects;
            out->losses += link->stats.losses;
            out->abandoned += link->stats.abandoned;
            wr_unlock(&link->lock);
        }
    }
    wr_unlock(&redis->lock);
}

/* ---- time ------------------------------------------------------------------------------------ */

void wr_redis_timer_set(struct wr_redis *redis, struct wr_redis_timer *timer, weir_time when)
{
    wr_teller_timer_set(&redis->teller, timer, when);
}

void wr_redis_timer_stop(struct wr_redis *redis, struct wr_redis_timer *timer)
{
    wr_teller_timer_clear(&redis->teller, timer);
    wr_teller_await(&redis->teller, timer);
    wr_teller_timer_clear(&redis->teller, timer); /* should it have set itself anew meanwhile */
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Only if no body runs on the runtime, or after all have ended. */
static void redis_delete(struct wr_redis *redis)
{
    wr_list_each_safe(node_link, &redis->nodes) {
        struct wr_node *node = WR_CONTAINER(node_link, struct wr_node, link);
        for (uint32_t i = 0; i < node->count; i++)
            wr_link_fini(&node->links[i]);
        wr_os_free(node);
    }
    wr_ear_fini(&redis->ear);
    wr_ear_fini(&redis->switches);
    wr_cluster_fini(&redis->cluster);
    wr_tls_context_free(redis->tls);
    wr_redis_config_fini(&redis->config);
    wr_os_free(redis);
}

/* How long to wait for requests sent without waiting to arrive: a permit that was given back just before would stay out for
 * a lease. A server that does not answer is not waited for longer. */
enum { FINISH_MS = 1000 };

void wr_redis_close(struct wr_redis *redis)
{
    weir_time deadline = weir_in_ms(FINISH_MS);

    if (!redis)
        return;
    wr_lock(&redis->lock);
    redis->closing = true;
    wr_unlock(&redis->lock);
    wr_list_each(node_link, &redis->nodes) /* no more come */
    {
        struct wr_node *node = WR_CONTAINER(node_link, struct wr_node, link);
        for (uint32_t i = 0; i < node->count; i++) {
            wr_link_finish(&node->links[i], deadline);
            wr_link_stop(&node->links[i]);
        }
    }
    wr_ear_stop(&redis->ear);
    if (redis->config.kind == WR_REDIS_SENTINEL)
        wr_ear_stop(&redis->switches);
    wr_cluster_stop(&redis->cluster);
    wr_teller_close(&redis->teller);
    weir_runtime_free(redis->runtime);
    redis_delete(redis);
}

/* The runtime carries a few bodies that wait nearly always: one worker is enough. */
static int start(struct wr_redis *redis)
{
    int rc = weir_runtime_new(&redis->runtime, WEIR_RUNTIME(.workers = 1));

    if (!rc)
        rc = weir_spawn(redis->runtime, wr_teller_main, &redis->teller,
                        WEIR_SPAWN(.name = "weir-redis"));
    if (rc)
        return rc;
    redis->home = wr_redis_node(redis, &redis->config.hosts[0]);
    if (!redis->home)
        return WEIR_ENOMEM;
    if (redis->config.kind == WR_REDIS_SENTINEL)
        rc = wr_sentinel_start(redis);
    else if (redis->config.kind == WR_REDIS_CLUSTER)
        rc = wr_cluster_start(redis);
    return rc;
}

int wr_redis_open(struct wr_redis **out, const weir_redis_options *opt,
                  const struct wr_redis_calls *calls, weir_message *message)
{
    struct wr_redis *redis = wr_os_alloc(sizeof(*redis));
    int rc;

    *out = NULL;
    if (!redis)
        return WEIR_ENOMEM;
    wr_list_init(&redis->nodes);
    wr_teller_init(&redis->teller);
    wr_ear_init(&redis->ear, redis, wr_redis_find);
    wr_ear_init(&redis->switches, redis, wr_redis_find);
    redis->state_told.tell = tell_state;
    redis->told_state = WR_REDIS_CONNECTING;
    redis->seed[0] = wr_os_random();
    redis->seed[1] = wr_os_random();
    if (calls)
        redis->calls = *calls;
    rc = wr_redis_config_init(&redis->config, opt, message);
    if (!rc && redis->config.tls)
        rc = wr_tls_context_new(&redis->tls, &redis->config.opt, message);
    if (!rc && redis->config.kind == WR_REDIS_CLUSTER)
        rc = wr_cluster_init(&redis->cluster);
    if (rc) {
        redis_delete(redis);
        return rc;
    }
    rc = start(redis);
    if (rc)
        wr_redis_close(redis);
    else
        *out = redis;
    return rc;
}
