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

WEIR_END_DECLS

#endif
