/* What a command is started with: its words and its environment.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char **command_words(const struct plan *plan, uint32_t slot)
{
    size_t words = 0, size = 0, hole = 0;
    char number[16], **argv, *text;

    if (!plan->holes)
        return plan->argv;
    snprintf(number, sizeof(number), "%u", slot);
    for (; plan->argv[words]; words++)
        size += strlen(plan->argv[words]) + 1;
    argv = malloc((words + 1) * sizeof(*argv) + size + plan->holes * strlen(number));
    if (!argv)
        return NULL;
    text = (char *)(argv + words + 1);
    for (size_t w = 0; w < words; w++) {
        size_t done = 0;
        argv[w] = text;
        for (; hole < plan->holes && plan->hole[hole].word == w; hole++) {
            text = mempcpy(text, plan->argv[w] + done, plan->hole[hole].offset - done);
            text = stpcpy(text, number);
            done = plan->hole[hole].offset;
        }
        text = stpcpy(text, plan->argv[w] + done) + 1;
    }
    argv[words] = NULL;
    return argv;
}

enum { OUR_VARIABLES = 6 };

char **command_environment(const struct engine *engine, const struct task *task, uint32_t slot,
                           int cool_fd)
{
    const char *key = weir_task_key(weir_task_self());
    size_t count = engine->environment_count, text = strlen(key) + 220;
    char **env = malloc((count + OUR_VARIABLES + 1) * sizeof(*env) + text), *at, *end;

    if (!env)
        return NULL;
    at = (char *)(env + count + OUR_VARIABLES + 1);
    end = at + text;
    memcpy(env, engine->environment, count * sizeof(*env));
#define SET(...)                                                 \
    do {                                                         \
        env[count++] = at;                                       \
        at += snprintf(at, (size_t)(end - at), __VA_ARGS__) + 1; \
    } while (0)
    SET("WEIR_KEY=%s", key);
    SET("WEIR_SEQ=%llu", (unsigned long long)task->seq);
    SET("WEIR_RUN=%s", engine->run_id);
    SET("WEIR_SLOT=%u", slot);
    SET("WEIR_ATTEMPT=%lld", (long long)task->attempts);
    if (cool_fd >= 0)
        SET("WEIR_COOL_FD=%d", cool_fd);
#undef SET
    env[count] = NULL;
    return env;
}
