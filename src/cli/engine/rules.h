/* Rules by pattern: --limit 'api-*=4', --rate 'slow=1/s', --weight 'vip=3'. The last that matches counts.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_RULES_H
#define WR_CLI_RULES_H

#include "cli/opt/quantity.h"

#include <stddef.h>
#include <weir.h>

enum rule_kind { RULE_LIMIT, RULE_RATE, RULE_WEIGHT };

struct rule {
    enum rule_kind kind;
    char *pattern; /* as fnmatch(3) has it; "*" if the option gave none */
    int64_t count; /* limit, weight */
    struct quantity_rate rate;
};

struct rules {
    struct rule *rule;
    size_t count;
};

/* Adds one from the option's text, PATTERN=VALUE or VALUE alone; the last = separates. WEIR_EINVAL with a
 * sentence. */
int rules_add(struct rules *rules, enum rule_kind kind, const char *text, weir_message *message);

/* The rule of that kind for a key; NULL: none. */
const struct rule *rules_find(const struct rules *rules, enum rule_kind kind, const char *key);

void rules_fini(struct rules *rules);

#endif
