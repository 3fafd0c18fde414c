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

/* How to reach the server. Texts are copied. A field that is set takes precedence over the same part of the URL. */
typedef struct weir_redis_options { /* zero in any field asks for its default */
    size_t size;

    /* Where the server is. Parts in brackets may be left out; user, password and path may have bytes as %XX.
     *     redis://[[user]:password@]host[:6379][/database]
     *     rediss://...                                          the same by TLS
     *     unix://[[user]:password@]/path/of/socket[?db=number]
     *     redis+sentinel://[[user]:password@]host[:26379][,host...]/master[/database]     rediss+sentinel: both by TLS
     *     redis+cluster://[[user]:password@]host[:6379][,host...]                         rediss+cluster: by TLS
     * A host is a name, an IPv4 address, or an IPv6 address in []. Default: redis://127.0.0.1:6379 */
    const char *url;

    const char *user;     /* of the server's access list; default: its user "default"           */
    const char *password; /* default: no password is sent                                       */
    uint32_t database;    /* default 0; a cluster has no other                                  */

    const char *sentinel_user, *sentinel_password; /* of the sentinels; default: none are sent  */

    const char *tls_ca;   /* file of certificates to trust; default: those of the system        */
    const char *tls_cert; /* file with the client's certificate, if the server asks for one     */
    const char *tls_key;  /* file with the key of that certificate; default: the same file      */
    const char *tls_name; /* the name that the server's certificate must have, also sent as SNI;
                             default: the host of the URL                                       */
    bool tls_unverified;  /* accept any certificate: an attacker on the way can then read and
                             change everything                                                  */

    uint32_t connections;    /* per server, 1 to 16; default 1. All requests for a key go through
                                the same one                                                    */
    uint32_t connect_ms;     /* how long an attempt to connect may take, 1 to 3600000; default
                                5000                                                            */
    uint32_t reply_ms;       /* how long a reply may take before the connection is closed and made
                                anew, 1 to 3600000; default 5000                                */
    uint32_t backoff_ms;     /* pause after the first failed attempt to connect, 1 to 3600000;
                                default 50. Doubles with each further one, and is by chance up
                                to half shorter                                                 */
    uint32_t backoff_max_ms; /* but not longer than this, 1 to 3600000; default 5000            */

    const char *name; /* of this client in the server's list (CLIENT SETNAME); default: "weir"  */
} weir_redis_options;
#define WEIR_REDIS(...) WEIR_SIZED(weir_redis_options, __VA_ARGS__)

/* Checks the options and the URL without connecting. 0, or WEIR_EINVAL, WEIR_EVERSION; then `message` (may be NULL) says
 * what is wrong. */
int weir_redis_check(const weir_redis_options *opt, weir_message *message);

/* ---- a store ----------------------------------------------------------------------------------- */

typedef struct weir_fleet_options { /* zero in any field asks for its default */
    size_t size;
    const char *application; /* names are shared by programs with the same application (scope
                                APPLICATION); default: by all programs that use the server (scope
                                GLOBAL)                                                         */
    const char *host;        /* the name of this machine in lists of holders; default: its host
                                name                                                            */
    uint32_t look_ms;        /* how long a call that does not wait (WEIR_NOW_OR_NEVER, stats) may
                                take until the reply, 1 to 3600000; default 1000                */
    int64_t keep_ms;         /* how long the server keeps the settings of a guard that no process
                                uses, 1000 or more; default 7 days                              */
    bool compatible;         /* mutexes and frequencies (but WEIR_EXACT) use the original's keys;
                                see docs/redis.md                                               */
} weir_fleet_options;
#define WEIR_FLEET(...) WEIR_SIZED(weir_fleet_options, __VA_ARGS__)

/* Makes a store on a server. weir_guard_new makes concurrency limits, bulkheads, mutexes, rates and frequencies in it,
 * which hold for all processes that use the same names there; other kinds: WEIR_EINVAL. The call does not wait for the
 * server. `server` and `opt` may be NULL. After fork(2) the child must make a store of its own.
 *
 * A permit is a lease: it is renewed as long as the process lives and can reach the server, and ends by itself otherwise.
 * If a lease cannot be renewed, its holder hears of it margin_ns before the end: on_lost is called, and the task that
 * holds the permit is cancelled.
 * WEIR_EINVAL, WEIR_EVERSION, WEIR_ENOMEM, WEIR_EAGAIN; `message` (may be NULL) says what is wrong. */
int weir_store_redis(weir_store **out, const weir_redis_options *server,
                     const weir_fleet_options *opt, weir_message *message);

/* When the lease of the permit ends, unless it is renewed before. The time counts from before the request was sent, so the
 * server keeps the lease at least that long. 0: the lease was lost. WEIR_FOREVER: the permit has no lease. */
weir_time weir_permit_until(const weir_permit *permit);

/* ---- holders ----------------------------------------------------------------------------------- */

/* A holder of a permit. */
typedef struct weir_holder {
    char id[64]; /* for weir_guard_evict */
    char host[64];
    int64_t pid;
    char task[128]; /* key/id of the task that entered; "-": a plain thread did */
    uint64_t token;
    weir_time since; /* estimated, by this machine's clock                    */
    weir_time until; /* the end of its lease, unless it is renewed            */
} weir_holder;

/* Lists the holders of the guard's permits, in the order in which their leases end. Fills at most `most` entries of `out`
 * and zeroes the rest. Answers how many holders there are. WEIR_EINVAL: not a guard on a server, or one of a kind without
 * holders. */
int64_t weir_guard_holders(weir_holder *out, size_t most, weir_guard *guard) WEIR_PARKS;

/* What the server keeps of a guard, checked. */
typedef struct weir_audit {
    size_t size;
    int64_t limit, held, waiting;
    int64_t overdue; /* leases that have ended; the next call clears them                     */
    int64_t orphans; /* entries without an owner, keys without a time to live: should be 0    */
    bool sound;      /* held <= limit (unless the limit was lowered), and no orphans          */
} weir_audit;

/* Checks what the server keeps of a guard. WEIR_EINVAL: as weir_guard_holders, or no size. */
int weir_guard_audit(weir_audit *out, weir_guard *guard) WEIR_PARKS;

/* Takes a permit away from its holder, which hears of it (on_lost), and records the operator's name and the reason,
 * neither with line breaks. `id` is that of weir_holder. WEIR_EALREADY: the permit is not held. WEIR_EINVAL. */
int weir_guard_evict(weir_guard *guard, const char *id, const char *operator_name,
                     const char *why) WEIR_PARKS;

typedef struct weir_eviction {
    int64_t at_us; /* microseconds since 1970, by the server's clock */
    char operator_name[64], why[128];
    char id[64], holder[192];
} weir_eviction;

/* Lists the latest evictions, newest first. The server keeps them for 30 days, at most 1000. Answers how many entries were
 * filled. */
int64_t weir_guard_evictions(weir_eviction *out, size_t most, weir_guard *guard) WEIR_PARKS;

/* Says in words why a task waits, as weir_task_why. `guard` stands before the task's group; if its limit holds the task
 * back, the text lists the holders and their machines. WEIR_EINVAL. */
int weir_fleet_why(weir_message *out, weir_task *task, weir_guard *guard) WEIR_PARKS;

WEIR_END_DECLS

#endif
