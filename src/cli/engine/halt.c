/* When to stop because of failures.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/halt.h"

#include "cli/opt/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(weir_message *message, const char *text)
{
    snprintf(message->text, sizeof(message->text),
             "--halt %s: use never, soon,fail=N, now,fail=N, or a share such as soon,fail=10%%",
             text);
    return WEIR_EINVAL;
}

static bool parse_share(double *share, const char *text)
{
    char *end;

    *share = strtod(text, &end) / 100;
    return end > text && !strcmp(end, "%") && *share > 0 && *share <= 1;
}

int halt_parse(struct halt_rule *rule, const char *text, weir_message *message)
{
    const char *comma = strchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : strlen(text);
    int64_t failures;

    *rule = (struct halt_rule){ .failures = 1 };
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
    if (strncmp(comma, ",fail=", 6) != 0)
        return complain(message, text);
    if (quantity_count(&failures, comma + 6, 1, INT64_MAX)) {
        rule->failures = (uint64_t)failures;
        return 0;
    }
    rule->failures = 0;
    return parse_share(&rule->share, comma + 6) ? 0 : complain(message, text);
}

enum halt_when halt_judge(const struct halt_rule *rule, uint64_t failed, uint64_t ended)
{
    bool reached;

    if (rule->when == HALT_NEVER)
        return HALT_NEVER;
    if (rule->failures)
        reached = failed >= rule->failures;
    else
        reached = failed >= HALT_SHARE_MIN && (double)failed >= rule->share * (double)ended;
    return reached ? rule->when : HALT_NEVER;
}
