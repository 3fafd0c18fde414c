/* What a journal knows a task by: its words, record, group, environment and directory.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/journal_identity.h"

#include <string.h>
#include <weir.h>

static void mix(uint64_t hash[2], struct span part)
{
    uint64_t a = hash[0] ^ part.length, b = hash[1] + part.length * UINT64_C(0x9e3779b97f4a7c15);

    for (size_t i = 0; i < part.length; i++) {
        a = (a ^ (unsigned char)part.text[i]) * UINT64_C(0x100000001b3);
        b = (b + (unsigned char)part.text[i]) * UINT64_C(0xff51afd7ed558ccd);
        b ^= b >> 32;
    }
    hash[0] = a ^ a >> 29;
    hash[1] = b;
}

/* Words, each with its final zero. */
static char *join_words(size_t *length, char *const *words)
{
    size_t size = 0;
    char *text, *at;

    for (char *const *word = words; *word; word++)
        size += strlen(*word) + 1;
    text = at = malloc(size + 1);
    for (char *const *word = words; text && *word; word++)
        at = stpcpy(at, *word) + 1;
    *length = size;
    return text;
}

/* Records of a batch, with an end of line behind each but the last. */
static char *join_records(size_t *length, const struct plan *plan)
{
    size_t size = 0, used = 0;
    char *text;

    for (size_t i = 0; i < plan->record_count; i++)
        size += plan->record[i].length + 1;
    text = malloc(size + 1);
    for (size_t i = 0; text && i < plan->record_count; i++) {
        memcpy(text + used, plan->record[i].text, plan->record[i].length);
        used += plan->record[i].length;
        text[used++] = '\n';
    }
    *length = used ? used - 1 : 0;
    return text;
}

int identity_of(struct identity *out, const struct plan *plan, struct span env, struct span cwd)
{
    *out = (struct identity){ .env = env, .cwd = cwd };
    out->words_text = join_words(&out->words.length, plan->known_as ? plan->known_as : plan->argv);
    out->record_text = join_records(&out->record.length, plan);
    if (!out->words_text || !out->record_text)
        return WEIR_ENOMEM;
    out->words.text = out->words_text;
    out->record.text = out->record_text;
    out->group = (struct span){ plan->key ? plan->key : "", plan->key ? strlen(plan->key) : 0 };
    if (plan->directory)
        out->cwd = (struct span){ plan->directory, strlen(plan->directory) };
    out->hash[0] = UINT64_C(0xcbf29ce484222325);
    out->hash[1] = UINT64_C(0x2545f4914f6cdd1d);
    mix(out->hash, out->words);
    mix(out->hash, out->record);
    mix(out->hash, out->group);
    mix(out->hash, out->env);
    mix(out->hash, out->cwd);
    return 0;
}

void identity_fini(struct identity *identity)
{
    free(identity->words_text);
    free(identity->record_text);
}
