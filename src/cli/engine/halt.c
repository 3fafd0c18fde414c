/* When to stop early.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/halt.h"

#include "cli/opt/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(weir_message *message, const char *text)
{
    snprintf(message->text, sizeof(message->text),
             "--halt %s: use never, soon,fail=N, now,fail=N, or a share such as soon,fail=10%%; "
             "success=N counts successes",
             text);
    return WEIR_EINVAL;
}

static bool parse_share(double *share, const char *text)
{
    char *end;

    *share = strtod(text, &end) / 100;
    return end > text && !strcmp(end, "%") && *share > 0 && *share <= 1;
}

/* fail= or success=; answers what follows, NULL: none of them. */
static const char *parse_what(enum halt_on *on, const char *text)
{
    static const char *const names[] = { "fail=", "success=" };

    for (int i = 0; i < 2; i++)
        if (!strncmp(text, names[i], strlen(names[i]))) {
            *on = (enum halt_on)i;
            return text + strlen(names[i]);
        }
    return NULL;
}

int halt_parse(struct halt_rule *rule, const char *text, weir_message *message)
{
    const char *comma = strchr(text, ','), *value;
    size_t length = comma ? (size_t)(comma - text) : strlen(text);
    int64_t count;

    *rule = (struct halt_rule){ .count = 1 };
    if (!strcmp(text, "never"))
        return 0;
    if (length == 4 && !strncmp(text, "soon", 4))
        rule->when = HALT_SOON;
    else if (length == 3 && !strncmp(text, "now", 3))
        rule->when = HALT_NOW;
    else
        return complain(message, text);
    if (!comma)
        return 0;
    value = parse_what(&rule->on, comma + 1);
    if (!value)
        return complain(message, text);
    if (quantity_count(&count, value, 1, INT64_MAX)) {
        rule->count = (uint64_t)count;
        return 0;
    }
    rule->count = 0;
    return parse_share(&rule->share, value) ? 0 : complain(message, text);
}

enum halt_when halt_judge(const struct halt_rule *rule, uint64_t failed, uint64_t succeeded,
                          uint64_t ended)
{
    uint64_t counted = rule->on == HALT_ON_FAIL ? failed : succeeded;
    bool reached;

    if (rule->when == HALT_NEVER)
        return HALT_NEVER;
    if (rule->count)
        reached = counted >= rule->count;
    else
        reached = counted >= HALT_SHARE_MIN && (double)counted >= rule->share * (double)ended;
    return reached ? rule->when : HALT_NEVER;
}
