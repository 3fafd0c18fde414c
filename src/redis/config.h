/* Where the servers are and how they are spoken to: options and URL, read and checked once.
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_CONFIG_H
#define WR_REDIS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/redis.h>

enum wr_redis_kind {
    WR_REDIS_DIRECT,   /* hosts: one, the server                       */
    WR_REDIS_SENTINEL, /* hosts: the sentinels, which know the server  */
    WR_REDIS_CLUSTER,  /* hosts: some nodes, which know the others     */
};

/* Where a server listens: a path, or a host and a port. */
struct wr_endpoint {
    char host[256]; /* a name, an address without [], or a path */
    uint16_t port;  /* 0: host is a path                        */
};

enum { WR_REDIS_HOSTS = 32 }; /* most hosts of a URL */

struct wr_redis_config {
    enum wr_redis_kind kind;
    bool tls;
    struct wr_endpoint hosts[WR_REDIS_HOSTS];
    int host_count;
    weir_redis_options opt; /* defaults filled in; its texts are copies, or NULL */
    char *master;           /* of sentinels                                      */
};

/* Reads the options. After a failed call `config` needs no _fini. */
int wr_redis_config_init(struct wr_redis_config *config, const weir_redis_options *opt,
                         weir_message *message);
void wr_redis_config_fini(struct wr_redis_config *config);

bool wr_endpoint_same(const struct wr_endpoint *a, const struct wr_endpoint *b);

/* Writes "host:port", "[host]:port" or the path. */
void wr_endpoint_text(char *out, size_t size, const struct wr_endpoint *endpoint);

/* Fills `message` (may be NULL) and answers `rc`. */
int wr_redis_fail(int rc, weir_message *message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* url.c: reads opt.url into the rest. Values that are set already stay. */
int wr_redis_url_read(struct wr_redis_config *config, const char *url, weir_message *message);

/* A copy of `size` bytes of `text` and a 0; NULL without memory. Freed with wr_os_free. */
char *wr_text_copy(const char *text, size_t size);

#endif
