/* Guards and groups of a fleet, on a Redis or Valkey server: libweir-redis.
 *
 * Not part of <weir.h>: include it, and link weir-redis beside weir. docs/redis.md says how to connect, which keys and
 * scripts there are, and what a fail-over can lose.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_H
#define WEIR_REDIS_H

#include <stdbool.h>
#include <weir/guard.h>
#include <weir/task.h>

WEIR_BEGIN_DECLS

/* How to reach the server. Texts are copied. What is set here goes before what the URL says. */
typedef struct weir_redis_options { /* zero in any field asks for its default */
    size_t size;

    /* Where. Parts in brackets may be left out; user, password and path may have bytes as %XX.
     *     redis://[[user]:password@]host[:6379][/database]
     *     rediss://...                                          the same by TLS
     *     unix://[[user]:password@]/path/of/socket[?db=number]
     *     redis+sentinel://[[user]:password@]host[:26379][,host...]/master[/database]     rediss+sentinel: both by TLS
     *     redis+cluster://[[user]:password@]host[:6379][,host...]                         rediss+cluster: by TLS
     * A host is a name, an IPv4 address, or an IPv6 address in []. Default: redis://127.0.0.1:6379 */
    const char *url;

    const char *user;     /* of the server's access list; default: the one it calls "default"  */
    const char *password; /* default: none is sent                                            */
    uint32_t database;    /* default 0; in a cluster there is no other                          */

    const char *sentinel_user, *sentinel_password; /* of the sentinels; default: none is sent   */

    const char *tls_ca;   /* file of certificates to trust; default: those of the system        */
    const char *tls_cert; /* file with our own certificate, if the server asks for one          */
    const char *tls_key;  /* file with its key; default: the same file                          */
    const char *tls_name; /* whose certificate the server must show, and is asked for (SNI);
                             default: the host of the URL                                       */
    bool
        tls_unverified; /* take any certificate. Whoever is in between can then read and change all */

    uint32_t connections; /* per server, 1 to 16; default 1. Requests for one key share one  */
    uint32_t connect_ms;  /* how long an attempt to connect may take, 1 to 3600000; default 5000 */
    uint32_t reply_ms;    /* a server that owes a reply for so long is given up: the connection
                                is made anew, 1 to 3600000; default 5000                        */
    uint32_t backoff_ms;  /* pause after the first failed attempt, 1 to 3600000; doubles with each,
                                by chance up to half shorter; default 50                        */
    uint32_t backoff_max_ms; /* but not longer than this, 1 to 3600000; default 5000            */

    const char *name; /* what the server lists this client as (CLIENT SETNAME); default: "weir" */
} weir_redis_options;
#define WEIR_REDIS(...) WEIR_SIZED(weir_redis_options, __VA_ARGS__)

/* Whether options and URL make sense, without connecting. 0, or WEIR_EINVAL, WEIR_EVERSION; `message` (may be NULL) says what is
 * wrong. */
int weir_redis_check(const weir_redis_options *opt, weir_message *message);

/* ---- a store ----------------------------------------------------------------------------------- */

typedef struct weir_fleet_options { /* zero in any field asks for its default */
    size_t size;
    const char *
        application; /* scope APPLICATION: names are those of programs with the same application. Default: scope
                                GLOBAL, all that use the server                                 */
    const char *host; /* what this machine is called in lists of holders; default: its name     */
    uint32_t
        look_ms; /* how long a call that does not wait (WEIR_NOW_OR_NEVER, stats) waits for the reply, 1 to 3600000;
                         default 1000                                                           */
    int64_t
        keep_ms; /* settings of a guard that no process uses are forgotten after this, 1000 or more; default 7 days */
    bool
        compatible; /* mutexes and frequencies (but WEIR_EXACT) use the original's keys; see docs/redis.md */
} weir_fleet_options;
#define WEIR_FLEET(...) WEIR_SIZED(weir_fleet_options, __VA_ARGS__)

/* A store on a server: weir_guard_new makes concurrency limits, bulkheads, mutexes, rates and frequencies in it, which hold for
 * all processes that use the same names there. Other kinds: WEIR_EINVAL. Does not wait for the server. `server` and
 * `opt` may be NULL. After fork(2) the child opens a store of its own.
 *
 * A permit is a lease: it is renewed as long as the process lives and the server can be reached, and ends by itself otherwise. A holder
 * that cannot renew is told a margin before (on_lost; its task is cancelled). Guards of such a store cannot be part of weir_guards_enter.
 * WEIR_EINVAL, WEIR_EVERSION, WEIR_ENOMEM, WEIR_EAGAIN; `message` (may be NULL) says what is wrong. */
int weir_store_redis(weir_store **out, const weir_redis_options *server,
                     const weir_fleet_options *opt, weir_message *message);

/* When the lease of this permit ends, unless it is renewed before; 0: it was lost. WEIR_FOREVER: it has none. Counted from before
 * the request was sent, so the server keeps it at least that long. */
weir_time weir_permit_until(const weir_permit *permit);

/* ---- who holds what ---------------------------------------------------------------------------- */

/* One permit. */
typedef struct weir_holder {
    char id[64]; /* for weir_guard_evict */
    char host[64];
    int64_t pid;
    char task[128]; /* key/id of the task that entered; "-": a plain thread  */
    uint64_t token;
    weir_time since; /* by this machine's clock, as far as that can be known  */
    weir_time until; /* the end of its lease, if it is not renewed            */
} weir_holder;

/* Fills out[0..most) with holders of the guard's permits, those whose lease ends first before others; the rest is zeroed. Answers how
 * many there are in all. WEIR_EINVAL: not a guard of such a store, or one without holders. */
int64_t weir_guard_holders(weir_holder *out, size_t most, weir_guard *guard) WEIR_PARKS;

/* What the server keeps of a guard, looked through. */
typedef struct weir_audit {
    size_t size;
    int64_t limit, held, waiting;
    int64_t overdue; /* leases that are over and not yet cleared: the next call does that     */
    int64_t orphans; /* entries that nothing refers to, keys without a time to live: never any */
    bool sound;      /* held <= limit (unless it was lowered), and no orphans                  */
} weir_audit;

/* WEIR_EINVAL as above. */
int weir_guard_audit(weir_audit *out, weir_guard *guard) WEIR_PARKS;

/* Takes a permit away from its holder, who is told (on_lost), and writes down who did that and why (no line breaks).
 * WEIR_EALREADY: nobody holds it. WEIR_EINVAL. */
int weir_guard_evict(weir_guard *guard, const char *id, const char *operator_name,
                     const char *why) WEIR_PARKS;

typedef struct weir_eviction {
    int64_t at_us; /* microseconds since 1970, by the server's clock */
    char operator_name[64], why[128];
    char id[64], holder[192];
} weir_eviction;

/* The latest ones, newest first; kept for 30 days, at most 1000. Answers how many were filled in. */
int64_t weir_guard_evictions(weir_eviction *out, size_t most, weir_guard *guard) WEIR_PARKS;

/* weir_task_why in words, for a task of a group that `guard` stands before; if the fleet's limit holds it back, with who holds
 * it where. WEIR_EINVAL. */
int weir_fleet_why(weir_message *out, weir_task *task, weir_guard *guard) WEIR_PARKS;

WEIR_END_DECLS

#endif
