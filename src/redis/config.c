/* Options: copied, checked, defaults filled in.
 * SPDX-License-Identifier: MIT */
#include "redis/config.h"

#include "base/options.h"
#include "base/os.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weir/error.h>

int wr_redis_fail(int rc, weir_message *message, const char *format, ...)
{
    va_list list;

    if (!message)
        return rc;
    va_start(list, format);
    vsnprintf(message->text, sizeof(message->text), format, list);
    va_end(list);
    return rc;
}

char *wr_text_copy(const char *text, size_t size)
{
    char *copy = wr_os_alloc(size + 1);

    if (copy && size)
        memcpy(copy, text, size);
    return copy;
}

bool wr_endpoint_same(const struct wr_endpoint *a, const struct wr_endpoint *b)
{
    return a->port == b->port && !strcmp(a->host, b->host);
}

void wr_endpoint_text(char *out, size_t size, const struct wr_endpoint *endpoint)
{
    const char *form = strchr(endpoint->host, ':') ? "[%s]:%u" : "%s:%u";

    if (endpoint->port)
        snprintf(out, size, form, endpoint->host, (unsigned)endpoint->port);
    else
        snprintf(out, size, "%s", endpoint->host);
}

/* The options that are texts. */
static const size_t texts[] = {
    offsetof(weir_redis_options, url),
    offsetof(weir_redis_options, user),
    offsetof(weir_redis_options, password),
    offsetof(weir_redis_options, sentinel_user),
    offsetof(weir_redis_options, sentinel_password),
    offsetof(weir_redis_options, tls_ca),
    offsetof(weir_redis_options, tls_cert),
    offsetof(weir_redis_options, tls_key),
    offsetof(weir_redis_options, tls_name),
    offsetof(weir_redis_options, name),
};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

static const char **text_field(weir_redis_options *opt, int i)
{
    return (const char **)((char *)opt + texts[i]);
}

void wr_redis_config_fini(struct wr_redis_config *config)
{
    for (int i = 0; i < TEXTS; i++)
        wr_os_free((void *)(uintptr_t)*text_field(&config->opt, i));
    wr_os_free(config->master);
    memset(config, 0, sizeof(*config));
}

/* The numbers, their ranges and what 0 stands for. */
static int check_numbers(weir_redis_options *opt, weir_message *message)
{
    const uint32_t hour_ms = 3600000;
    const struct {
        const char *name;
        uint32_t *value, most, usual;
    } numbers[] = {
        { "connections", &opt->connections, 16, 1 },
        { "connect_ms", &opt->connect_ms, hour_ms, 5000 },
        { "reply_ms", &opt->reply_ms, hour_ms, 5000 },
        { "backoff_ms", &opt->backoff_ms, hour_ms, 50 },
        { "backoff_max_ms", &opt->backoff_max_ms, hour_ms, 5000 },
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (!*numbers[i].value)
            *numbers[i].value = numbers[i].usual;
        if (*numbers[i].value > numbers[i].most)
            return wr_redis_fail(WEIR_EINVAL, message, "%s is %u: use 1 to %u", numbers[i].name,
                                 *numbers[i].value, numbers[i].most);
    }
    if (opt->backoff_max_ms < opt->backoff_ms)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "backoff_max_ms is %u, less than backoff_ms (%u)", opt->backoff_max_ms,
                             opt->backoff_ms);
    return 0;
}

/* Refuses options that make no sense together. */
static int check_together(const struct wr_redis_config *config, weir_message *message)
{
    const weir_redis_options *opt = &config->opt;

    if (opt->user && !opt->password)
        return wr_redis_fail(WEIR_EINVAL, message, "a user is given without a password");
    if (opt->sentinel_user && !opt->sentinel_password)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "sentinel_user is given without sentinel_password");
    if (opt->sentinel_password && config->kind != WR_REDIS_SENTINEL)
        return wr_redis_fail(WEIR_EINVAL, message,
                             "sentinel_password is given, but the URL names no sentinels");
    if (opt->database && config->kind == WR_REDIS_CLUSTER)
        return wr_redis_fail(WEIR_EINVAL, message, "a cluster has no database but 0");
    if (!config->tls && (opt->tls_ca || opt->tls_cert || opt->tls_key || opt->tls_name))
        return wr_redis_fail(WEIR_EINVAL, message,
                             "settings for TLS are given, but the URL is not one of rediss://");
    if (opt->tls_key && !opt->tls_cert)
        return wr_redis_fail(WEIR_EINVAL, message, "tls_key is given without tls_cert");
    for (const char *c = opt->name ? opt->name : ""; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return wr_redis_fail(WEIR_EINVAL, message,
                                 "name has a blank, or another byte that servers refuse");
    }
    return 0;
}

int wr_redis_config_init(struct wr_redis_config *config, const weir_redis_options *opt,
                         weir_message *message)
{
    weir_redis_options given;
    int rc = wr_options_load(&given, sizeof(given), opt);

    memset(config, 0, sizeof(*config));
    if (rc)
        return wr_redis_fail(rc, message, "weir_redis_options: %s", weir_strerror(rc));
    config->opt = given;
    for (int i = 0; i < TEXTS; i++)
        *text_field(&config->opt, i) = NULL;
    for (int i = 0; i < TEXTS && !rc; i++) {
        const char *text = *text_field(&given, i);
        if (text && !(*text_field(&config->opt, i) = wr_text_copy(text, strlen(text))))
            rc = WEIR_ENOMEM;
    }
    if (!rc)
        rc = wr_redis_url_read(config, given.url ? given.url : "redis://127.0.0.1", message);
    if (!rc)
        rc = check_numbers(&config->opt, message);
    if (!rc)
        rc = check_together(config, message);
    if (rc)
        wr_redis_config_fini(config);
    return rc;
}

int weir_redis_check(const weir_redis_options *opt, weir_message *message)
{
    struct wr_redis_config config;
    int rc = wr_redis_config_init(&config, opt, message);

    if (!rc)
        wr_redis_config_fini(&config);
    return rc;
}
