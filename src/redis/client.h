/* A client of Redis or Valkey, as the rest of this room sees it: commands, scripts, messages, time.
 *
 * A client keeps few connections, which all callers share: requests of many tasks and threads go out together, replies are
 * matched in order. A thread that is not a worker (weir_on_worker) writes and reads the socket itself if no other thread
 * does; a task on a worker parks, and bodies on the client's own small runtime do it. So nothing here depends on workers of
 * executors. docs/internals/redis.md says which thread reads, which writes, and which locks there are.
 *
 * All callbacks of one client come one at a time, from one body of its runtime. They may use all calls below, also those
 * that wait, but the next callback waits meanwhile: keep them short. The client holds no lock around them.
 *
 * Errors, besides those of weir/io.h:
 *     WEIR_EAWAY      the server cannot be reached: the command was not sent
 *     WEIR_ELOST      the connection broke before the reply: the command may have run, or not
 *     WEIR_ETIMEDOUT  the deadline passed before the reply: the same
 *     WEIR_ECANCELED  the task was cancelled: the same
 *     WEIR_EDENIED    the server refused the user, the password or the command (NOAUTH, WRONGPASS, NOPERM)
 *     WEIR_EREPLY     the server answered with another error; wr_reply_error tells which
 *     WEIR_EPROTO     what the server sent is not a reply; the connection is made anew
 *     WEIR_EAGAIN     too many requests are under way (WR_REDIS_PENDING_MAX)
 *     WEIR_ECLOSED    the client is being closed
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_CLIENT_H
#define WR_REDIS_CLIENT_H

#include "base/list.h"

#include <stdbool.h>
#include <weir/redis.h>
#include <weir/time.h>

struct wr_redis; /* owned: _open / _close */

enum { WR_REDIS_PENDING_MAX = 65536 }; /* requests under way on one connection */

/* ---- replies --------------------------------------------------------------------------------- */

enum wr_reply_type {
    WR_REPLY_NIL,
    WR_REPLY_STATUS,  /* text, size: "OK"                             */
    WR_REPLY_STRING,  /* text, size; any bytes, and a 0 behind them   */
    WR_REPLY_INTEGER, /* integer                                      */
    WR_REPLY_ARRAY,   /* items, count                                 */
    WR_REPLY_ERROR,   /* text, size: "WRONGTYPE Operation against..." */
};

struct wr_reply {
    enum wr_reply_type type;
    int64_t integer;
    char *text;
    size_t size;
    struct wr_reply **items;
    size_t count;
};

void wr_reply_free(struct wr_reply *reply); /* with all its items; NULL is fine */

/* Whether it is an error that begins with this word ("WRONGTYPE"). */
bool wr_reply_is_error(const struct wr_reply *reply, const char *word);

/* ---- life ------------------------------------------------------------------------------------ */

enum wr_redis_state {
    WR_REDIS_CONNECTING, /* an attempt is under way, the first or at once after a loss: requests wait for it */
    WR_REDIS_UP,
    WR_REDIS_DOWN, /* the latest attempt failed: requests are refused until a later one succeeds       */
};

struct wr_redis_calls { /* all may be NULL */
    /* The state has changed. `why` is a sentence about the cause of WR_REDIS_DOWN and CONNECTING, else "". With a cluster:
     * of a connection in that state, which is the worst of all; DOWN if any node of the slot table cannot be reached. */
    void (*on_state)(enum wr_redis_state state, const char *why, void *arg);
    void *arg;
};

/* Starts a client; does not wait for the server. `calls` may be NULL. WEIR_EINVAL, WEIR_EVERSION: the options, or the URL,
 * are not valid, or a certificate cannot be read: `message` (may be NULL) says what is wrong. WEIR_ENOMEM, WEIR_EAGAIN,
 * -errno. */
int wr_redis_open(struct wr_redis **out, const weir_redis_options *opt,
                  const struct wr_redis_calls *calls, weir_message *message);

/* Waits until the server can be used. WEIR_EAWAY, WEIR_EDENIED, WEIR_EPROTO...: the latest attempt failed, `message` (may be
 * NULL) says why, and attempts go on. WEIR_ETIMEDOUT, WEIR_ECANCELED. */
int wr_redis_ready(struct wr_redis *redis, weir_time deadline, weir_message *message) WEIR_PARKS;

/* Closes and frees the client. Waits up to a second for answers of a server that is up; requests still under way then end
 * with WEIR_ECLOSED, callbacks included. Not from a callback, nor while another thread is inside a call. NULL is fine. */
void wr_redis_close(struct wr_redis *redis) WEIR_PARKS;

/* The present state; `why` (may be NULL) as for on_state. From any thread; does not wait. */
enum wr_redis_state wr_redis_state(struct wr_redis *redis, weir_message *why);

/* Since when a connection that is wanted has not been UP; the present time if all are UP. */
weir_time wr_redis_away_since(struct wr_redis *redis);

struct wr_redis_stats {
    uint64_t commands;  /* sent by requests, retries included; not what sets up connections */
    uint64_t unsent;    /* bytes of these that no socket has taken yet                       */
    uint64_t replies;   /* received                                                        */
    uint64_t connects;  /* connections made so far                                         */
    uint64_t losses;    /* connections lost so far                                         */
    uint64_t abandoned; /* requests whose waiter gave up before the reply                  */
    uint64_t dropped; /* requests sent without waiting that were lost, or answered with an error */
};
void wr_redis_stats_get(struct wr_redis_stats *out, struct wr_redis *redis);

/* ---- requests -------------------------------------------------------------------------------- */

/* A script. Sent by its hash; in full where the server does not know it. Static, or at least longer lived than the client. */
struct wr_script {
    const char *text;
    char sha[41]; /* filled in by wr_script_init */
};
void wr_script_init(struct wr_script *script, const char *text);

/* A command to send. What must outlive the call is copied. */
struct wr_command {
    /* NULL: words is the whole command */
    const struct wr_script *script;
    int keys; /* with a script: how many of the words, from the first, are keys */
    int count;
    const char *const *words;
    /* Of the words, in bytes; NULL: they are strings */
    const size_t *sizes;
    int key; /* without a script: which word is the key that says which node of a cluster is asked; 0: any */
    /* If the server is down, wait for it until then, rather than WEIR_EAWAY; 0: do not */
    weir_time patience;
};
#define WR_COMMAND(                                                                    \
    ...) /* of strings: wr_redis_call(&reply, redis, WR_COMMAND("GET", "x"), ...) */   \
    (&(struct wr_command){                                                             \
        .words = (const char *const[]){ __VA_ARGS__ },                                 \
        .count = (int)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *)), \
        .key = 1 })

/* Sends a command and waits for its reply, which the caller frees (wr_reply_free). WEIR_EREPLY and WEIR_EDENIED come with
 * a reply, too; with other errors *out is NULL. `message` (may be NULL) says what is wrong. Never waits beyond the deadline.
 * NOSCRIPT, MOVED, ASK, TRYAGAIN, and while the deadline allows LOADING, READONLY and CLUSTERDOWN are dealt with here. */
int wr_redis_call(struct wr_reply **out, struct wr_redis *redis, const struct wr_command *command,
                  weir_time deadline, weir_message *message) WEIR_PARKS;

/* Sends a command and drops its reply. The command goes out before later requests for the same key. Does not wait: what the
 * socket does not take at once, the client writes later. If the connection breaks, the command is lost; stats.dropped counts
 * that. NOSCRIPT, MOVED and ASK are dealt with. WEIR_EAWAY, WEIR_ENOMEM, WEIR_EAGAIN: not sent. */
int wr_redis_send(struct wr_redis *redis, const struct wr_command *command);

/* As wr_redis_call, but does not wait: `done` is called with the result, exactly once, unless wr_redis_ask answers an error.
 * `done` frees `reply`. */
typedef void wr_redis_done(int error, struct wr_reply *reply, void *arg);
int wr_redis_ask(struct wr_redis *redis, const struct wr_command *command, weir_time deadline,
                 wr_redis_done *done, void *arg);

/* ---- messages -------------------------------------------------------------------------------- */

struct wr_subscription; /* owned: _subscribe / _unsubscribe */

enum wr_redis_event {
    WR_REDIS_LISTENING, /* messages published from now on will be seen; after a loss: look again what happened meanwhile */
    WR_REDIS_MESSAGE,
    WR_REDIS_DEAF, /* the connection is lost: messages are missed until WR_REDIS_LISTENING comes      */
};
typedef void wr_redis_listener(enum wr_redis_event event, const char *message, size_t size,
                               void *arg);

/* Subscribes to a channel. All subscriptions share one connection, which only they use and which lasts as long as there is
 * one. */
int wr_redis_subscribe(struct wr_subscription **out, struct wr_redis *redis, const char *channel,
                       wr_redis_listener *listener, void *arg);

/* When it returns, the listener is not called any more; if called from a callback of the client, not after that callback.
 * NULL is fine. */
void wr_redis_unsubscribe(struct wr_subscription *subscription) WEIR_PARKS;

/* ---- time ------------------------------------------------------------------------------------ */

/* Calls `fire` at a time, from the client's body. The caller owns the timer, sets fire and arg, and leaves the rest zero; it
 * must not free the timer while it is set. */
struct wr_redis_timer {
    void (*fire)(struct wr_redis_timer *timer, void *arg);
    void *arg;
    weir_time when;
    struct wr_list link; /* this and all further: the client's */
    bool set, at_close;
};

/* Sets the timer, or sets it to another time. From any thread and from callbacks, its own included. */
void wr_redis_timer_set(struct wr_redis *redis, struct wr_redis_timer *timer, weir_time when);

/* When it returns, `fire` is not called any more, and does not run. Called from `fire` itself: the present call goes on. */
void wr_redis_timer_stop(struct wr_redis *redis, struct wr_redis_timer *timer) WEIR_PARKS;

#endif
