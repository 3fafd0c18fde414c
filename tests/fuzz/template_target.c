/* Fuzzing: commands with placeholders, as words and as scripts, filled from any record.
 * SPDX-License-Identifier: MIT */
#include "cli/input/template.h"
#include "fuzz/fuzz_target.h"

#include <stdlib.h>
#include <string.h>

const char *const fuzz_words[] = {
    "{}",    "{1}",  "{2/.}", "{name}",      "{name//}", "{#}",   "{%}",  "{key}", "{..}", "\\{",
    "}",     "'",    "\"",    "`",           "$(",       "$((",   "))",   "${x:",  "${a[", "[[ ",
    " -gt ", "let ", "\n",    "<<E\n",       "\nE\n",    "case ", " in ", ";;",    "esac", "sh -c ",
    "a[",    "]=1",  "|",     "declare -i ", " ",        "#",     NULL
};

static void fill_and_free(struct template *template, const struct template_values *values)
{
    weir_message message;
    char **words;

    if (template_fill(&words, template, values, &message) == 0)
        free(words);
    template_free(template);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *names[] = { "id", "name" };
    struct record_syntax syntax = { .form = FORM_CSV, .names = names, .name_count = 2 };
    struct span fields[2] = { { "a/b.c", 5 }, { "x y", 3 } };
    struct record record = {
        .text = "a/b.c,x y", .length = 9, .line = 1, .fields = fields, .field_count = 2
    };
    struct plan plan = { 0 };
    struct template_values values = {
        .record = &record, .syntax = &syntax, .key = "k", .seq = 7, .plan = &plan
    };
    char *word = fuzz_text(data, size);
    struct template *template;
    weir_message message;

    if (!word)
        return 0;
    if (template_new(&template, &word, 1, &syntax, true, &message) == 0)
        fill_and_free(template, &values);
    if (template_new_shell(&template, "sh", &word, 1, &syntax, &message) == 0)
        fill_and_free(template, &values);
    free(plan.hole);
    free(word);
    return 0;
}
