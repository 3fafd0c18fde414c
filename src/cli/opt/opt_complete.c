/* Completion scripts: what all of them know of the tables, and which one is printed.
 *
 * Each script walks over the words before the cursor as opt_next would, so that it knows whose options
 * may stand there and where the options have ended.
 * SPDX-License-Identifier: MIT */
#include "cli/opt/opt_complete.h"

#include <ctype.h>
#include <string.h>

/* ---- what the tables say --------------------------------------------------------------------- */

/* Where the words of bash|zsh|fish begin; NULL: there are none. */
static const char *choices_of(const struct opt_command *command)
{
    const char *begin = command->synopsis ? strchr(command->synopsis, '|') : NULL;

    while (begin && begin > command->synopsis && isalnum((unsigned char)begin[-1]))
        begin--;
    return begin && islower((unsigned char)*begin) &&
                   (begin == command->synopsis || begin[-1] != '-')
               ? begin
               : NULL;
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && strncmp(text, word, length) == 0;
}

enum complete_words complete_words_of(const struct opt_command *command)
{
    bool named = false;
    size_t length;

    if (command->subcommands)
        return WORDS_SUBCOMMAND;
    for (const char *at = command->synopsis; at && *at; at += length ? length : 1) {
        for (length = 0; isupper((unsigned char)at[length]); length++)
            continue;
        if (is_word(at, length, "COMMAND"))
            return WORDS_COMMAND;
        named |= length && !is_word(at, length, "OPTION");
    }
    return choices_of(command) ? WORDS_CHOICE : named ? WORDS_FILES : WORDS_NONE;
}

void complete_put_choices(FILE *out, const struct opt_command *command)
{
    for (const char *at = choices_of(command); isalnum((unsigned char)*at) || *at == '|'; at++)
        fputc(*at == '|' ? ' ' : *at, out);
}

const struct opt_command *complete_command_at(const struct opt_command *weir, size_t i)
{
    return i == 0 ? weir : weir->subcommands ? weir->subcommands[i - 1] : NULL;
}

const char *complete_name_of(const struct opt_command *command)
{
    return command->name[0] ? command->name : "weir";
}

void complete_put_escaped(FILE *out, struct opt_piece text, const char *special, const char *quote)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.text[i] == '\n' ? ' ' : text.text[i];
        if (c == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(special, c))
            fputc('\\', out);
        fputc(c, out);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

bool opt_print_completion(FILE *out, const struct opt_command *weir, const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(FILE *out, const struct opt_command *weir);
    } shells[] = { { "bash", complete_print_bash },
                   { "zsh", complete_print_zsh },
                   { "fish", complete_print_fish } };

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print(out, weir);
            return true;
        }
    return false;
}
