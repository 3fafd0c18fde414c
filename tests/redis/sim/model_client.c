/* Clients, and the network between them and the server. The teller is the real one.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "redis/fleet.h"
#include "redis/sim/model.h"
#include "redis/teller.h"
#include "redis/wire.h"
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/runtime.h>
#include <weir/sim.h>
#include <weir/wait.h>

enum kind { SEND, ASK, CALL };
enum progress { QUEUED, SENT, RUN };

/* On its way. In the order in which they were sent, they reach the server, and their answers come back. */
struct request {
    struct wr_list link; /* in its client */
    struct wr_told told;
    struct wr_redis *redis;
    struct wr_command *command;
    enum kind kind;
    enum progress progress;
    weir_time deadline, patience, due; /* due: at the server, or its answer here */
    wr_redis_done *done;
    void *arg;
    weir_parker *parker;
    bool over;
    int error;
    struct wr_reply *reply;
};

struct wr_subscription {
    struct wr_redis *redis;
    wr_redis_listener *listener;
    void *arg;
    char process[WR_FLEET_PROCESS];
    bool gone;
};

/* A message on its way; then in the teller's queue. */
struct heard {
    struct wr_list link;
    struct wr_told told;
    struct wr_subscription *bell;
    enum wr_redis_event event;
    weir_time due;
    char text[400];
};

struct wr_redis {
    struct wr_list link;
    struct wr_teller teller;
    struct wr_redis_calls calls;
    struct wr_told state_told;
    enum wr_redis_state state, told_state;
    bool state_posted;
    weir_time link_at, down_until; /* the next attempt to connect; it fails before that */
    struct wr_list requests;
    weir_time last_due[RUN]; /* nothing overtakes what goes the same way */

    struct wr_subscription *bell;
    struct wr_list messages;
    weir_time last_heard, ear_at, deaf_until;
    bool ear_up, listening; /* subscribed at the server; and it is known here */

    bool closing, closed, ended, paused;
};

/* To be done by the body of the network. */
struct order {
    struct wr_list link;
    struct wr_redis *redis; /* or NULL: something that befalls the server */
    void (*befall)(struct wr_redis *redis, int64_t down_us);
    enum model_order order;
    int64_t number;
};

static struct {
    struct model_weather weather;
    weir_runtime *runtime;
    struct wr_list clients, orders;
    weir_parker *parker; /* of the body that does all this */
    struct wr_lock lock; /* whether calls are over */
    bool stop, ended, idle;
} net;

static int64_t up_to(int64_t most)
{
    return most > 0 ? (int64_t)(weir_sim_random() % (uint64_t)(most + 1)) : 0;
}

static bool chance(uint32_t per_thousand)
{
    return weir_sim_random() % 1000 < per_thousand;
}

static void look_up(void)
{
    if (net.parker)
        weir_unpark(net.parker);
}

static weir_time later(weir_time *last)
{
    weir_time when = wr_sim.now + 1000 * up_to(net.weather.delay_us);

    if (when < *last)
        when = *last;
    *last = when;
    return when;
}

/* ---- the end of a request ---------------------------------------------------------------------- */

static void request_free(struct request *request)
{
    wr_reply_free(request->reply);
    wr_os_free(request->command);
    free(request);
}

static void tell_done(struct wr_told *told)
{
    struct request *request = WR_CONTAINER(told, struct request, told);
    struct wr_reply *reply = request->reply;

    request->reply = NULL;
    request->done(request->error, reply, request->arg);
    request_free(request);
}

/* The answer, or an error, gets to the caller that waits for it. */
static void end(struct request *request, int error, struct wr_reply *reply)
{
    bool gone;

    wr_list_remove(&request->link);
    if (reply && reply->type == WR_REPLY_ERROR)
        error = WEIR_EREPLY;
    request->error = error;
    request->reply = reply;
    if (request->kind == ASK) {
        request->told.tell = tell_done;
        wr_teller_post(&request->redis->teller, &request->told);
        return;
    }
    wr_lock(&net.lock);
    request->over = request->kind == CALL;
    if (request->over)
        weir_unpark(request->parker);
    gone = !request->over;
    wr_unlock(&net.lock);
    if (gone) /* else it is the caller's, which may have freed it */
        request_free(request);
}

/* Its deadline: the caller hears of it, the request goes its way. */
static void abandon(struct request *request)
{
    struct request *rest = calloc(1, sizeof(*rest));

    WEIR_SIM_CHECK(rest != NULL);
    *rest = *request;
    request->command = NULL;
    rest->kind = SEND;
    rest->deadline = WEIR_FOREVER;
    rest->link.prev = &request->link; /* in its place */
    rest->link.next = request->link.next;
    request->link.next->prev = &rest->link;
    request->link.next = &rest->link;
    request->reply = NULL;
    end(request, WEIR_ETIMEDOUT, NULL);
}

/* ---- the connection for requests --------------------------------------------------------------- */

static void tell_state(struct wr_told *told)
{
    struct wr_redis *redis = WR_CONTAINER(told, struct wr_redis, state_told);
    enum wr_redis_state state = redis->state;

    redis->state_posted = false;
    if (state == redis->told_state || wr_teller_is_closing(&redis->teller))
        return;
    redis->told_state = state;
    if (redis->calls.on_state)
        redis->calls.on_state(state, "", redis->calls.arg);
}

static void change_state(struct wr_redis *redis, enum wr_redis_state state)
{
    redis->state = state;
    if (redis->state_posted)
        return;
    redis->state_posted = true;
    wr_teller_post(&redis->teller, &redis->state_told);
}

static struct request *request_of(struct wr_list *at)
{
    return WR_CONTAINER(at, struct request, link);
}

/* The first one that has got no further than that; NULL: there is none. */
static struct request *first_at(struct wr_redis *redis, enum progress progress)
{
    wr_list_each(at, &redis->requests) {
        if (request_of(at)->progress == progress)
            return request_of(at);
    }
    return NULL;
}

static void send_on(struct request *request)
{
    request->progress = SENT;
    request->due = later(&request->redis->last_due[0]);
}

static void connected(struct wr_redis *redis)
{
    struct request *request;

    redis->link_at = WEIR_FOREVER;
    while ((request = first_at(redis, QUEUED)))
        send_on(request);
    change_state(redis, WR_REDIS_UP);
}

static void not_connected(struct wr_redis *redis)
{
    struct request *refused;

    redis->link_at = redis->down_until;
    change_state(redis, WR_REDIS_DOWN);
    do {
        refused = NULL;
        wr_list_each(at, &redis->requests) {
            if (request_of(at)->progress == QUEUED && !request_of(at)->patience)
                refused = request_of(at);
        }
        if (refused)
            end(refused, WEIR_EAWAY, NULL);
    } while (refused);
}

/* Requests that were sent may have reached the server, or not. */
static void broken(struct wr_redis *redis, int64_t down_us)
{
    struct request *request;

    if (wr_sim.now + 1000 * down_us > redis->down_until)
        redis->down_until = wr_sim.now + 1000 * down_us;
    while ((request = first_at(redis, SENT))) {
        request->progress = RUN;
        if (chance(500))
            request->reply = model_run(request->command);
    }
    while ((request = first_at(redis, RUN))) {
        wr_reply_free(request->reply);
        end(request, WEIR_ELOST, NULL);
    }
    redis->last_due[0] = redis->last_due[1] = 0;
    redis->link_at = wr_sim.now + 1000 * up_to(net.weather.connect_us);
    change_state(redis, WR_REDIS_CONNECTING);
}

/* At the server. */
static void arrive(struct request *request)
{
    struct wr_redis *redis = request->redis;
    static struct wr_reply refusal = { .type = WR_REPLY_ERROR };
    struct wr_reply *reply;

    request->progress = RUN;
    request->due = later(&redis->last_due[1]);
    if (chance(net.weather.errors)) {
        reply = wr_os_alloc(sizeof(*reply) + 16);
        if (reply) {
            *reply = refusal;
            reply->text = strcpy((char *)(reply + 1), "OOM no memory");
            reply->size = strlen(reply->text);
        }
    } else {
        reply = model_run(request->command);
    }
    request->reply = reply;
    if (!reply || chance(net.weather.link_loss))
        broken(redis, 0);
}

/* Something that is due on the connection. False: nothing is. */
static bool link_step(struct wr_redis *redis, weir_time now, weir_time *next)
{
    struct request *sent = first_at(redis, SENT), *run = first_at(redis, RUN);

    if (now >= redis->link_at) {
        if (now >= redis->down_until)
            connected(redis);
        else
            not_connected(redis);
        return true;
    }
    if (run && now >= run->due) {
        end(run, 0, run->reply);
        return true;
    }
    if (sent && now >= sent->due) {
        arrive(sent);
        return true;
    }
    wr_list_each(at, &redis->requests) {
        struct request *request = request_of(at);
        if (request->kind == ASK && now >= request->deadline) {
            abandon(request);
            return true;
        }
        if (request->kind == ASK && request->deadline < *next)
            *next = request->deadline;
    }
    if (redis->link_at < *next)
        *next = redis->link_at;
    if (run && run->due < *next)
        *next = run->due;
    if (sent && sent->due < *next)
        *next = sent->due;
    return false;
}

/* ---- messages ---------------------------------------------------------------------------------- */

static void tell_heard(struct wr_told *told)
{
    struct heard *heard = WR_CONTAINER(told, struct heard, told);
    struct wr_subscription *bell = heard->bell;

    if (!bell->gone) {
        wr_teller_calls(&bell->redis->teller, bell);
        bell->listener(heard->event, heard->text, strlen(heard->text), bell->arg);
    }
    free(heard);
}

static struct heard *heard_new(struct wr_redis *redis, enum wr_redis_event event, const char *text)
{
    struct heard *heard = calloc(1, sizeof(*heard));

    WEIR_SIM_CHECK(heard != NULL);
    heard->bell = redis->bell;
    heard->event = event;
    heard->told.tell = tell_heard;
    snprintf(heard->text, sizeof(heard->text), "%s", text);
    return heard;
}

static void deaf(struct wr_redis *redis, int64_t down_us)
{
    if (wr_sim.now + 1000 * down_us > redis->deaf_until)
        redis->deaf_until = wr_sim.now + 1000 * down_us;
    if (!redis->bell)
        return;
    wr_list_each_safe(at, &redis->messages) {
        wr_list_remove(at);
        free(WR_CONTAINER(at, struct heard, link));
    }
    if (redis->listening)
        wr_teller_post(&redis->teller, &heard_new(redis, WR_REDIS_DEAF, "")->told);
    redis->ear_up = redis->listening = false;
    redis->last_heard = 0;
    redis->ear_at = wr_sim.now + 1000 * up_to(net.weather.connect_us);
}

static void put_message(struct wr_redis *redis, enum wr_redis_event event, const char *text)
{
    struct heard *heard = heard_new(redis, event, text);

    heard->due = later(&redis->last_heard);
    wr_list_append(&redis->messages, &heard->link);
}

void model_publish(const char *process, const char *text)
{
    wr_list_each(at, &net.clients) {
        struct wr_redis *redis = WR_CONTAINER(at, struct wr_redis, link);
        if (!redis->ear_up || strcmp(redis->bell->process, process) != 0)
            continue;
        if (chance(net.weather.ear_loss))
            deaf(redis, 0);
        else
            put_message(redis, WR_REDIS_MESSAGE, text);
    }
}

static bool ear_step(struct wr_redis *redis, weir_time now, weir_time *next)
{
    struct heard *first = wr_list_empty(&redis->messages)
                              ? NULL
                              : WR_CONTAINER(redis->messages.next, struct heard, link);

    if (redis->bell && !redis->ear_up && now >= redis->ear_at) {
        if (now < redis->deaf_until) {
            redis->ear_at = redis->deaf_until;
            return true;
        }
        redis->ear_up = true;
        redis->ear_at = WEIR_FOREVER;
        put_message(redis, WR_REDIS_LISTENING, "");
        return true;
    }
    if (first && now >= first->due) {
        redis->listening = redis->listening || first->event == WR_REDIS_LISTENING;
        wr_list_remove(&first->link);
        wr_teller_post(&redis->teller, &first->told);
        return true;
    }
    if (redis->bell && redis->ear_at < *next)
        *next = redis->ear_at;
    if (first && first->due < *next)
        *next = first->due;
    return false;
}

/* ---- the body ---------------------------------------------------------------------------------- */

static void close_client(struct wr_redis *redis)
{
    struct request *request;

    while ((request = first_at(redis, SENT))) {
        wr_reply_free(model_run(request->command));
        request->progress = RUN;
    }
    while (!wr_list_empty(&redis->requests)) {
        request = request_of(redis->requests.next);
        wr_reply_free(request->reply);
        end(request, WEIR_ECLOSED, NULL);
    }
    wr_list_each_safe(at, &redis->messages) {
        wr_list_remove(at);
        free(WR_CONTAINER(at, struct heard, link));
    }
    wr_list_remove(&redis->link);
    wr_teller_close(&redis->teller);
    redis->closed = true;
}

static void each_client(void (*what)(struct wr_redis *redis, int64_t down_us), int64_t down_us)
{
    wr_list_each(at, &net.clients)
        what(WR_CONTAINER(at, struct wr_redis, link), down_us);
}

static void obey(struct order *order)
{
    bool restarts = order->order == MODEL_FORGET || order->order == MODEL_RESTORE;

    if (order->redis) {
        order->befall(order->redis, order->number);
        return;
    }
    if (order->order == MODEL_DOWN || restarts) {
        each_client(broken, order->order == MODEL_DOWN ? order->number : 1);
        each_client(deaf, order->order == MODEL_DOWN ? order->number : 1);
    }
    model_obey(order->order, order->number);
}

/* Does one thing that is due. False: nothing is, and *next is when something will be. */
static bool step(weir_time *next)
{
    weir_time now = wr_sim.now;

    *next = WEIR_FOREVER;
    if (!wr_list_empty(&net.orders)) {
        struct order *order = WR_CONTAINER(net.orders.next, struct order, link);
        wr_list_remove(&order->link);
        obey(order);
        free(order);
        return true;
    }
    wr_list_each(at, &net.clients) {
        struct wr_redis *redis = WR_CONTAINER(at, struct wr_redis, link);
        if (redis->closing) {
            close_client(redis);
            return true;
        }
        if (link_step(redis, now, next) || ear_step(redis, now, next))
            return true;
    }
    return false;
}

static void net_main(void *unused)
{
    weir_parker_room room;
    weir_time next;

    (void)unused;
    net.parker = weir_parker_self(&room);
    while (!net.stop) {
        net.idle = false;
        while (step(&next))
            ;
        net.idle = true;
        weir_park(net.parker, next);
    }
    net.parker = NULL;
    net.ended = true;
}

bool model_at_rest(void)
{
    wr_list_each(at, &net.clients) {
        const struct wr_redis *redis = WR_CONTAINER(at, struct wr_redis, link);
        if (!redis->teller.asleep && !redis->paused)
            return false;
    }
    return net.idle;
}

void model_start(const struct model_weather *weather)
{
    memset(&net, 0, sizeof(net));
    net.weather = *weather;
    wr_list_init(&net.clients);
    wr_list_init(&net.orders);
    model_server_init();
    WEIR_SIM_CHECK(weir_runtime_new(&net.runtime, WEIR_RUNTIME(.workers = 1)) == 0);
    WEIR_SIM_CHECK(weir_spawn(net.runtime, net_main, NULL, NULL) == 0);
}

void model_weather(const struct model_weather *weather)
{
    net.weather = *weather;
}

void model_stop(void)
{
    net.stop = true;
    look_up();
    while (!net.ended)
        weir_sleep(weir_in_ms(1));
    weir_runtime_free(net.runtime);
}

static void give_order(struct order order)
{
    struct order *it = calloc(1, sizeof(*it));

    WEIR_SIM_CHECK(it != NULL);
    *it = order;
    wr_list_append(&net.orders, &it->link);
    look_up();
}

void model_order(enum model_order order, int64_t number)
{
    give_order((struct order){ .order = order, .number = number });
}

struct wr_redis *model_client(weir_store *store)
{
    return wr_fleet_of(store)->redis;
}

/* ---- what befalls a client --------------------------------------------------------------------- */

void model_break_link(struct wr_redis *redis, int64_t down_us)
{
    give_order((struct order){ .redis = redis, .befall = broken, .number = down_us });
}

void model_break_ear(struct wr_redis *redis, int64_t down_us)
{
    give_order((struct order){ .redis = redis, .befall = deaf, .number = down_us });
}

struct pause {
    struct wr_told told;
    struct wr_redis *redis;
    int64_t us;
};

static void tell_pause(struct wr_told *told)
{
    struct pause *pause = WR_CONTAINER(told, struct pause, told);

    pause->redis->paused = true;
    weir_sleep(weir_in_us(pause->us));
    pause->redis->paused = false;
    free(pause);
}

bool model_is_paused(const struct wr_redis *redis)
{
    return redis->paused;
}

void model_pause(struct wr_redis *redis, int64_t us)
{
    struct pause *pause = calloc(1, sizeof(*pause));

    WEIR_SIM_CHECK(pause != NULL);
    *pause = (struct pause){ .told.tell = tell_pause, .redis = redis, .us = us };
    wr_teller_post(&redis->teller, &pause->told);
}

/* ---- redis/client.h ---------------------------------------------------------------------------- */

static void teller_main(void *arg)
{
    struct wr_redis *redis = arg;

    wr_teller_main(&redis->teller);
    redis->ended = true;
}

int wr_redis_open(struct wr_redis **out, const weir_redis_options *opt,
                  const struct wr_redis_calls *calls, weir_message *message)
{
    struct wr_redis *redis = calloc(1, sizeof(*redis));

    (void)opt, (void)message;
    WEIR_SIM_CHECK(redis != NULL);
    wr_teller_init(&redis->teller);
    redis->calls = *calls;
    redis->state_told.tell = tell_state;
    redis->link_at = wr_sim.now + 1000 * up_to(net.weather.connect_us);
    wr_list_init(&redis->requests);
    wr_list_init(&redis->messages);
    WEIR_SIM_CHECK(weir_spawn(net.runtime, teller_main, redis, NULL) == 0);
    wr_list_append(&net.clients, &redis->link);
    look_up();
    *out = redis;
    return 0;
}

void wr_redis_close(struct wr_redis *redis)
{
    enum { FINISH_MS = 1000 };

    if (!redis)
        return;
    for (int i = 0; i < FINISH_MS && redis->state == WR_REDIS_UP; i++) {
        if (wr_list_empty(&redis->requests))
            break;
        weir_sleep(weir_in_ms(1));
    }
    redis->closing = true;
    look_up();
    while (!redis->closed || !redis->ended)
        weir_sleep(weir_in_ms(1));
    free(redis->bell);
    free(redis);
}

enum wr_redis_state wr_redis_state(struct wr_redis *redis, weir_message *why)
{
    if (why)
        why->text[0] = '\0';
    return redis->state;
}

weir_time wr_redis_away_since(struct wr_redis *redis)
{
    (void)redis;
    return wr_sim.now;
}

static int submit(struct request **out, struct wr_redis *redis, const struct wr_command *command,
                  enum kind kind, weir_time deadline)
{
    struct wr_command *copy = wr_command_copy(command);
    struct request *request;

    if (!copy)
        return WEIR_ENOMEM;
    if (redis->closed || (redis->state == WR_REDIS_DOWN && !command->patience)) {
        wr_os_free(copy);
        return redis->closed ? WEIR_ECLOSED : WEIR_EAWAY;
    }
    request = calloc(1, sizeof(*request));
    WEIR_SIM_CHECK(request != NULL);
    *request = (struct request){ .redis = redis,
                                 .command = copy,
                                 .kind = kind,
                                 .deadline = deadline,
                                 .patience = command->patience };
    *out = request;
    return 0;
}

static void put(struct request *request)
{
    wr_list_append(&request->redis->requests, &request->link);
    if (request->redis->state == WR_REDIS_UP)
        send_on(request);
    look_up();
}

int wr_redis_send(struct wr_redis *redis, const struct wr_command *command)
{
    struct request *request;
    int rc = submit(&request, redis, command, SEND, WEIR_FOREVER);

    if (!rc)
        put(request);
    return rc;
}

int wr_redis_ask(struct wr_redis *redis, const struct wr_command *command, weir_time deadline,
                 wr_redis_done *done, void *arg)
{
    struct request *request;
    int rc = submit(&request, redis, command, ASK, deadline);

    if (rc)
        return rc;
    request->done = done;
    request->arg = arg;
    put(request);
    return 0;
}

static bool is_over(struct request *request)
{
    bool over;

    wr_lock(&net.lock);
    over = request->over;
    wr_unlock(&net.lock);
    return over;
}

/* False: in the last moment there is an answer. */
static bool gives_up(struct request *request)
{
    bool over;

    wr_lock(&net.lock);
    over = request->over;
    if (!over)
        request->kind = SEND;
    wr_unlock(&net.lock);
    return !over;
}

int wr_redis_call(struct wr_reply **out, struct wr_redis *redis, const struct wr_command *command,
                  weir_time deadline, weir_message *message)
{
    weir_parker_room room;
    struct request *request;
    int rc = submit(&request, redis, command, CALL, WEIR_FOREVER), waited = 0;

    *out = NULL;
    if (message)
        message->text[0] = '\0';
    if (rc)
        return rc;
    request->parker = weir_parker_self(&room);
    put(request);
    while (!is_over(request) && !waited)
        waited = weir_cancelled() ? WEIR_ECANCELED : weir_park(request->parker, deadline);
    if (gives_up(request))
        return waited;
    rc = request->error;
    *out = request->reply;
    request->reply = NULL;
    request_free(request);
    return rc;
}

int wr_redis_subscribe(struct wr_subscription **out, struct wr_redis *redis, const char *channel,
                       wr_redis_listener *listener, void *arg)
{
    struct wr_subscription *bell = calloc(1, sizeof(*bell));

    WEIR_SIM_CHECK(bell && !redis->bell);
    *bell = (struct wr_subscription){ .redis = redis, .listener = listener, .arg = arg };
    snprintf(bell->process, sizeof(bell->process), "%s", strrchr(channel, ':') + 1);
    redis->ear_at = wr_sim.now + 1000 * up_to(net.weather.connect_us);
    redis->bell = bell;
    *out = bell;
    look_up();
    return 0;
}

void wr_redis_unsubscribe(struct wr_subscription *bell)
{
    if (!bell)
        return;
    bell->gone = true;
    wr_teller_await(&bell->redis->teller, bell);
}

void wr_redis_timer_set(struct wr_redis *redis, struct wr_redis_timer *timer, weir_time when)
{
    wr_teller_timer_set(&redis->teller, timer, when);
}

void wr_redis_timer_stop(struct wr_redis *redis, struct wr_redis_timer *timer)
{
    wr_teller_timer_clear(&redis->teller, timer);
    wr_teller_await(&redis->teller, timer);
    wr_teller_timer_clear(&redis->teller, timer);
}
