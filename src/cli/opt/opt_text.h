/* Prose of option tables, taken apart for the code that prints it.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_OPT_TEXT_H
#define WR_CLI_OPT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A stretch of text that lives elsewhere. */
struct opt_piece {
    const char *text;
    size_t length;
    bool example; /* lines to be printed as they stand; else a paragraph, to be wrapped */
};

/* The next paragraph or example of *rest, which moves on. False: there is none. NULL is no text. */
bool opt_text_piece(struct opt_piece *piece, const char **rest);

/* The next line of an example, or the next word of a paragraph; `from` is what is left of it. */
bool opt_text_line(struct opt_piece *line, struct opt_piece *from);
bool opt_text_word(struct opt_piece *word, struct opt_piece *from);

/* The first sentence without its full stop, for where only one fits. */
struct opt_piece opt_text_sentence(const char *text);

/* How wide UTF-8 is on a terminal, if no character is wider than one column. */
int opt_text_columns(const char *text, size_t length);

#endif
