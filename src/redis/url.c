/* Reads the URL of a server, of sentinels or of a cluster.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "redis/config.h"

#include <ctype.h>
#include <string.h>
#include <weir/error.h>

/* A part of the URL. */
struct part {
    const char *at;
    size_t size;
};

struct scheme {
    const char *name;
    enum wr_redis_kind kind;
    bool tls, is_path;
    uint16_t port;
};

enum { REDIS_PORT = 6379, SENTINEL_PORT = 26379 };

static const struct scheme schemes[] = {
    { "redis://", WR_REDIS_DIRECT, false, false, REDIS_PORT },
    { "rediss://", WR_REDIS_DIRECT, true, false, REDIS_PORT },
    { "unix://", WR_REDIS_DIRECT, false, true, 0 },
    { "redis+sentinel://", WR_REDIS_SENTINEL, false, false, SENTINEL_PORT },
    { "rediss+sentinel://", WR_REDIS_SENTINEL, true, false, SENTINEL_PORT },
    { "redis+cluster://", WR_REDIS_CLUSTER, false, false, REDIS_PORT },
    { "rediss+cluster://", WR_REDIS_CLUSTER, true, false, REDIS_PORT },
};

/* Takes all before the first of `ends` out of `from`, and that one too; *end tells which it was, 0: the end of the text. */
static struct part take(struct part *from, const char *ends, char *end)
{
    struct part taken = { from->at, 0 };

    while (taken.size < from->size && !strchr(ends, from->at[taken.size]))
        taken.size++;
    *end = '\0';
    if (taken.size < from->size)
        *end = from->at[taken.size];
    from->at += taken.size + (*end != '\0');
    from->size -= taken.size + (*end != '\0');
    return taken;
}

static int hex(char digit)
{
    if (isdigit((unsigned char)digit))
        return digit - '0';
    if (isxdigit((unsigned char)digit))
        return tolower((unsigned char)digit) - 'a' + 10;
    return -1;
}

/* Puts the bytes that a part stands for into *out, in new memory. `what` names the part. */
static int decode(char **out, struct part part, const char *what, weir_message *message)
{
    char *text = wr_text_copy(part.at, part.size);
    size_t from = 0, to = 0;

    *out = NULL;
    if (!text)
        return WEIR_ENOMEM;
    for (; from < part.size; to++) {
        int value = (unsigned char)text[from++];
        if (value == '%') {
            int high = from < part.size ? hex(text[from]) : -1;
            int low = from + 1 < part.size ? hex(text[from + 1]) : -1;
            value = high * 16 + low;
            from += 2;
            if (high < 0 || low < 0 || value == 0) {
                wr_os_free(text);
                return wr_redis_fail(WEIR_EINVAL, message,
                                     "the URL's %s: after %% come two hexadecimal digits, not 00; "
                                     "write %% itself as %%25",
                                     what);
            }
        }
        text[to] = (char)value;
    }
    text[to] = '\0';
    *out = text;
    return 0;
}

/* A decimal number from `least` to `most`. */
static int number(uint32_t *out, struct part part, uint32_t least, uint32_t most, const char *what,
                  weir_message *message)
{
    uint64_t value = 0;
    size_t i = 0;

    for (; i < part.size && isdigit((unsigned char)part.at[i]) && value <= most; i++)
        value = value * 10 + (uint64_t)(part.at[i] - '0');
    if (!part.size || i < part.size || value < least || value > most)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "the URL's %s is '%.*s': not a number from %u to %u", what,
                             (int)(part.size < 40 ? part.size : 40), part.at, least, most);
    *out = (uint32_t)value;
    return 0;
}

/* Keeps what the URL says unless the caller's options say otherwise. */
static void keep(const char **field, char *value)
{
    if (*field)
        wr_os_free(value);
    else
        *field = value;
}

/* [user]:password */
static int read_login(struct wr_redis_config *config, struct part login, weir_message *message)
{
    char end, *user = NULL, *password = NULL;
    struct part name = take(&login, ":", &end);
    int rc;

    if (!end)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "the URL has a user without a password: write user:password@, or "
                             ":password@ for the default user");
    rc = name.size ? decode(&user, name, "user", message) : 0;
    if (!rc)
        rc = decode(&password, login, "password", message);
    if (rc) {
        wr_os_free(user);
        return rc;
    }
    keep(&config->opt.user, user);
    keep(&config->opt.password, password);
    return 0;
}

/* host, [host], either with :port */
static int read_host(struct wr_redis_config *config, struct part host, uint16_t port,
                     weir_message *message)
{
    struct wr_endpoint *endpoint = &config->hosts[config->host_count];
    struct part name, rest = host;
    uint32_t value = port;
    char end;
    int rc = 0;

    if (config->host_count == WR_REDIS_HOSTS)
        return wr_redis_fail(WEIR_EINVAL, message, "the URL has more than %d hosts",
                             WR_REDIS_HOSTS);
    if (rest.size && rest.at[0] == '[') {
        rest.at++, rest.size--;
        name = take(&rest, "]", &end);
        if (end != ']' || (rest.size && rest.at[0] != ':'))
            return wr_redis_fail(WEIR_EINVAL, message,
                                 "the URL's host '%.*s': an IPv6 address is written [::1] or "
                                 "[::1]:port",
                                 (int)host.size, host.at);
        end = rest.size ? ':' : '\0';
        if (end)
            rest.at++, rest.size--;
    } else {
        name = take(&rest, ":", &end);
        if (memchr(rest.at, ':', rest.size))
            return wr_redis_fail(WEIR_EINVAL, message,
                                 "the URL's host '%.*s' has several colons: write an IPv6 address "
                                 "in [ ]",
                                 (int)host.size, host.at);
    }
    if (!name.size)
        return wr_redis_fail(WEIR_EINVAL, message, "the URL has an empty host");
    if (name.size >= sizeof(endpoint->host))
        return wr_redis_fail(WEIR_EINVAL, message, "the URL has a host of more than %zu bytes",
                             sizeof(endpoint->host) - 1);
    if (end)
        rc = number(&value, rest, 1, 65535, "port", message);
    if (rc)
        return rc;
    memcpy(endpoint->host, name.at, name.size);
    endpoint->host[name.size] = '\0';
    endpoint->port = (uint16_t)value;
    config->host_count++;
    return 0;
}

static int read_hosts(struct wr_redis_config *config, struct part hosts, uint16_t port,
                      weir_message *message)
{
    char end;

    do {
        struct part host = take(&hosts, ",", &end);
        int rc = read_host(config, host, port, message);
        if (rc)
            return rc;
    } while (end);
    if (config->kind == WR_REDIS_DIRECT && config->host_count > 1)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "the URL has several hosts: write redis+sentinel:// or "
                             "redis+cluster://, or one host");
    return 0;
}

static int read_database(struct wr_redis_config *config, struct part text, weir_message *message)
{
    uint32_t value = 0;
    int rc = number(&value, text, 0, INT32_MAX, "database", message);

    if (!rc && !config->opt.database)
        config->opt.database = value;
    return rc;
}

/* master[/database] */
static int read_master(struct wr_redis_config *config, struct part path, weir_message *message)
{
    char end;
    struct part master = take(&path, "/", &end);

    if (!master.size)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "the URL lacks the name under which the sentinels know the server: "
                             "redis+sentinel://host:port/NAME");
    int rc = decode(&config->master, master, "master", message);
    return rc || !path.size ? rc : read_database(config, path, message);
}

/* A path, and ?db=number. */
static int read_path(struct wr_redis_config *config, struct part rest, weir_message *message)
{
    struct wr_endpoint *endpoint = &config->hosts[0];
    char end, *text = NULL;
    struct part path = take(&rest, "?", &end);
    int rc;

    if (!path.size || path.at[0] != '/')
        return wr_redis_fail(WEIR_EINVAL, message,
                             "the URL's path begins with /: unix:///run/redis.sock");
    rc = decode(&text, path, "path", message);
    if (rc || !text)
        return rc;
    if (strlen(text) >= 108) { /* sun_path */
        wr_os_free(text);
        return wr_redis_fail(WEIR_EINVAL, message, "the path of a socket has at most 107 bytes");
    }
    memcpy(endpoint->host, text, strlen(text) + 1);
    wr_os_free(text);
    config->host_count = 1;
    if (!end)
        return 0;
    if (rest.size < 3 || memcmp(rest.at, "db=", 3) != 0)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "the URL's '?%.*s' is not known: only ?db=number is", (int)rest.size,
                             rest.at);
    return read_database(config, (struct part){ rest.at + 3, rest.size - 3 }, message);
}

static int read_network(struct wr_redis_config *config, struct part rest, uint16_t port,
                        weir_message *message)
{
    char end;
    struct part hosts = take(&rest, "/?", &end);
    int rc = read_hosts(config, hosts, port, message);

    if (rc)
        return rc;
    if (end == '?' || memchr(rest.at, '?', rest.size))
        return wr_redis_fail(WEIR_EINVAL, message,
                             "the URL has a '?': settings go into weir_redis_options, the database "
                             "behind a '/'");
    if (config->kind == WR_REDIS_SENTINEL)
        return read_master(config, rest, message);
    if (!rest.size)
        return 0;
    if (config->kind == WR_REDIS_CLUSTER)
        return wr_redis_fail(WEIR_EINVAL, message, "a cluster has no databases: leave out '/%.*s'",
                             (int)rest.size, rest.at);
    return read_database(config, rest, message);
}

static const struct scheme *scheme_of(const char *url)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (!strncmp(url, schemes[i].name, strlen(schemes[i].name)))
            return &schemes[i];
    }
    return NULL;
}

int wr_redis_url_read(struct wr_redis_config *config, const char *url, weir_message *message)
{
    const struct scheme *scheme = scheme_of(url);
    struct part rest, login = { 0 };
    size_t length, at = 0;
    int rc = 0;

    if (!scheme)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "the URL begins with none of redis://, rediss://, unix://, "
                             "redis+sentinel://, rediss+sentinel://, redis+cluster://, "
                             "rediss+cluster://");
    config->kind = scheme->kind;
    config->tls = scheme->tls;
    rest = (struct part){ url + strlen(scheme->name), strlen(url) - strlen(scheme->name) };
    length = strcspn(rest.at, "/?"); /* a password with one of these has it as %XX */
    for (size_t i = 0; i < length; i++) {
        if (rest.at[i] == '@')
            at = i + 1;
    }
    if (at) {
        login = (struct part){ rest.at, at - 1 };
        rest.at += at, rest.size -= at;
        rc = read_login(config, login, message);
    }
    if (rc)
        return rc;
    return scheme->is_path ? read_path(config, rest, message)
                           : read_network(config, rest, scheme->port, message);
}
