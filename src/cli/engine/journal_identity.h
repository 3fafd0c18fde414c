/* What a journal knows a task by.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_JOURNAL_IDENTITY_H
#define WR_CLI_ENGINE_JOURNAL_IDENTITY_H

#include "cli/plan.h"

#include <stdint.h>

/* Five parts, each a column of its own, and a hash of all. `env` and `cwd` are lent, and so is the plan's text. */
struct identity {
    struct span words, record, group, env, cwd;
    uint64_t hash[2];
    char *words_text, *record_text; /* owned */
};

/* 0, or WEIR_ENOMEM; to be ended in any case. */
int identity_of(struct identity *out, const struct plan *plan, struct span env, struct span cwd);
void identity_fini(struct identity *identity);

#endif
