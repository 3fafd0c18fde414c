/* Rules by pattern: which limit, rate or weight a group has.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/rules.h"

#include "cli/opt/refuse.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* The largest weight that the executor takes, and more commands than any machine will ever run at once. */
enum { WEIGHT_MAX = 1000, LIMIT_MAX = 1000000000 };

static int parse_value(struct rule *rule, const char *value, weir_message *message)
{
    switch (rule->kind) {
    case RULE_LIMIT:
        if (quantity_count(&rule->count, value, 1, LIMIT_MAX))
            return 0;
        return refuse(message, "\"%.80s\": use a whole number, 1 or more", value);
    case RULE_WEIGHT:
        if (quantity_count(&rule->count, value, 1, WEIGHT_MAX))
            return 0;
        return refuse(message, "\"%.80s\": use a whole number from 1 to %d", value, WEIGHT_MAX);
    case RULE_RATE:
        if (quantity_rate(&rule->rate, value))
            return 0;
        break;
    }
    return refuse(message, "\"%.80s\": use a rate such as 10/s, or 100/m:20 for a burst of 20",
                  value);
}

static int add(struct rules *rules, const struct rule *rule)
{
    struct rule *larger = realloc(rules->rule, (rules->count + 1) * sizeof(*larger));

    if (!larger)
        return WEIR_ENOMEM;
    rules->rule = larger;
    rules->rule[rules->count++] = *rule;
    return 0;
}

int rules_add(struct rules *rules, enum rule_kind kind, const char *text, weir_message *message)
{
    const char *equals = strrchr(text, '=');
    struct rule rule = { .kind = kind };
    int rc = parse_value(&rule, equals ? equals + 1 : text, message);

    if (rc < 0)
        return rc;
    if (equals == text)
        return refuse(message, "\"%.80s\": write a pattern before the =", text);
    rule.pattern = equals ? strndup(text, (size_t)(equals - text)) : strdup("*");
    if (!rule.pattern)
        return WEIR_ENOMEM;
    rc = add(rules, &rule);
    if (rc < 0)
        free(rule.pattern);
    return rc;
}

const struct rule *rules_find(const struct rules *rules, enum rule_kind kind, const char *key)
{
    for (size_t i = rules->count; i-- > 0;) {
        const struct rule *rule = &rules->rule[i];
        if (rule->kind == kind && fnmatch(rule->pattern, key, 0) == 0)
            return rule;
    }
    return NULL;
}

void rules_fini(struct rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        free(rules->rule[i].pattern);
    free(rules->rule);
    *rules = (struct rules){ 0 };
}
