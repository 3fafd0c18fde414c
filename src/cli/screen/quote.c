/* Commands as a shell would take them.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/quote.h"

#include <stdbool.h>
#include <string.h>

/* Nothing in it that a shell would look at twice. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./-_";

    return *word && !word[strspn(word, plain)];
}

static void quote_word(FILE *out, const char *word)
{
    if (is_plain(word)) {
        fputs(word, out);
        return;
    }
    putc('\'', out);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", out);
        else
            putc(*word, out);
    }
    putc('\'', out);
}

void quote_command(FILE *out, char *const *argv)
{
    for (char *const *word = argv; *word; word++) {
        if (word != argv)
            putc(' ', out);
        quote_word(out, *word);
    }
}
