/* Fuzzing: URLs. Each is taken or refused with a sentence, and what is taken makes sense.
 * SPDX-License-Identifier: MIT */
#include "fuzz/fuzz_target.h"
#include "redis/config.h"

const char *const fuzz_words[] = { "redis://",
                                   "rediss://",
                                   "unix://",
                                   "redis+sentinel://",
                                   "redis+cluster://",
                                   "user:pw@",
                                   ":pw@",
                                   "localhost",
                                   "127.0.0.1",
                                   "[::1]",
                                   ":6379",
                                   "/3",
                                   "/main",
                                   ",",
                                   "?db=2",
                                   "%41",
                                   "%",
                                   "%00",
                                   "@",
                                   "/",
                                   ":",
                                   "[",
                                   "]",
                                   "99999",
                                   "/run/redis.sock",
                                   NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wr_redis_config config;
    weir_message message = { "" };
    char *url = fuzz_text(data, size), where[300];

    if (!url)
        return 0;
    int rc = wr_redis_config_init(&config, WEIR_REDIS(.url = url), &message);
    if (rc && (rc != WEIR_EINVAL || !message.text[0]))
        abort();
    if (!rc) {
        if (config.host_count < 1 || config.host_count > WR_REDIS_HOSTS ||
            (config.kind == WR_REDIS_SENTINEL) != (config.master != NULL))
            abort();
        for (int i = 0; i < config.host_count; i++) {
            wr_endpoint_text(where, sizeof(where), &config.hosts[i]);
            if (!where[0])
                abort();
        }
        wr_redis_config_fini(&config);
    }
    free(url);
    return 0;
}
