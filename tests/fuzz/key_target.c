/* Fuzzing: --group-by, any specification on any record. The specification ends at the first end of line.
 * SPDX-License-Identifier: MIT */
#include "cli/input/key.h"
#include "fuzz/fuzz_target.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const fuzz_words[] = {
    "/",        "(",     ")",  "*",    "+",      "?",   "|",   "[a-c]",
    "[^x]",     "{2,3}", "^",  "$",    ".",      "\\b", "\\w", "[[:alpha:]]",
    "a",        "b",     "\n", "host", "host:1", "{1}", "2",   "http://u@h:1/",
    "\xc3\xa9", NULL
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    size_t length = end ? (size_t)(end - data) : size;
    struct record_syntax syntax = { .form = FORM_LINES };
    bool regex = length && data[0] & 1; /* or expressions would be rare */
    char *spec = NULL, *key = NULL;
    struct record record = { .line = 1 };
    struct key_rule *rule;
    weir_message message;

    if (asprintf(&spec, regex ? "/%.*s/" : "%.*s", (int)length, (const char *)data) < 0)
        return 0;
    record.length = end ? size - length - 1 : 0;
    record.text = malloc(record.length + 1);
    if (spec && record.text && spec[0]) {
        memcpy(record.text, end ? end + 1 : data, record.length);
        record.text[record.length] = 0;
        if (key_rule_new(&rule, spec, &syntax, -1, &message) == 0) {
            if (record_split(&record, &syntax, &message) == 0 &&
                key_of(&key, rule, &record, &syntax, &message) == 0)
                free(key);
            key_rule_free(rule);
        }
    }
    record_fini(&record);
    free(spec);
    return 0;
}
