/* What completion scripts are made of; for opt_complete*.c only.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_OPT_COMPLETE_H
#define WR_CLI_OPT_COMPLETE_H

#include "cli/opt/opt.h"
#include "cli/opt/opt_text.h"

/* What a command's words are, besides options. */
enum complete_words { WORDS_NONE, WORDS_COMMAND, WORDS_CHOICE, WORDS_FILES, WORDS_SUBCOMMAND };
enum complete_words complete_words_of(const struct opt_command *command);

/* The words of WORDS_CHOICE, with blanks between. */
void complete_put_choices(FILE *out, const struct opt_command *command);

/* weir itself, then its subcommands; NULL after the last. */
const struct opt_command *complete_command_at(const struct opt_command *weir, size_t i);

const char *complete_name_of(const struct opt_command *command);

/* Text with a backslash before each of `special`, inside '...' that `quote` tells how to write. */
void complete_put_escaped(FILE *out, struct opt_piece text, const char *special, const char *quote);

/* The scripts, each in a file of its own. */
void complete_print_bash(FILE *out, const struct opt_command *weir);
void complete_print_zsh(FILE *out, const struct opt_command *weir);
void complete_print_fish(FILE *out, const struct opt_command *weir);

#endif
