/* Commands as a shell would take them.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/quote.h"

#include <stdbool.h>
#include <string.h>

/* Whether nothing in the word has a meaning for a shell. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./-_";

    return *word && !word[strspn(word, plain)];
}

/* Whether the word has control characters, which a terminal would obey, also those that UTF-8 spells in two bytes. Tabs and
 * ends of lines, which only move the cursor, do not count. */
static bool has_controls(const char *word)
{
    for (const unsigned char *at = (const unsigned char *)word; *at; at++)
        if ((*at < 0x20 && *at != '\n' && *at != '\t') || *at == 0x7f ||
            (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0))
            return true;
    return false;
}

/* $'...', as bash, zsh and ksh have it. */
static void quote_controls(FILE *out, const char *word)
{
    fputs("$'", out);
    for (const unsigned char *at = (const unsigned char *)word; *at; at++) {
        if (*at < 0x20 || *at >= 0x7f)
            fprintf(out, "\\%03o", *at);
        else if (*at == '\'' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else
            putc(*at, out);
    }
    putc('\'', out);
}

static void quote_word(FILE *out, const char *word)
{
    if (is_plain(word)) {
        fputs(word, out);
        return;
    }
    if (has_controls(word)) {
        quote_controls(out, word);
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
