/* What templates are made of; for template*.c only.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_TEMPLATE_PARTS_H
#define WR_CLI_TEMPLATE_PARTS_H

#include "cli/input/template.h"

enum placeholder_kind {
    HOLDS_RECORD,    /* {}   */
    HOLDS_STEM,      /* {.}  */
    HOLDS_BASE,      /* {/}  */
    HOLDS_DIRECTORY, /* {//} */
    HOLDS_BASE_STEM, /* {/.} */
    HOLDS_FIELD,
    HOLDS_KEY,
    HOLDS_SEQ,
};

/* Each distinct one stands once in a template. */
struct placeholder {
    enum placeholder_kind kind;
    char *name;   /* of a field; owned */
    bool numeric; /* used in arithmetic: only a number may stand here */
};

/* Literal text, or one placeholder's value. */
struct piece {
    const char *text; /* NULL: a placeholder */
    size_t length;
    size_t placeholder;
};

/* Word w is made of pieces word_start[w] up to word_start[w + 1]. */
struct template
{
    struct placeholder *placeholders;
    struct piece *pieces;
    size_t *word_start;
    size_t placeholder_count, piece_count, word_count;
    char *text; /* what pieces point into */
};

/* Where a placeholder begins, at a brace: its length with both braces, its kind, its name in between. 0: what
 * is in braces is none. */
size_t placeholder_at(enum placeholder_kind *kind, const char *at, const char *end,
                      const struct record_syntax *syntax);

/* The same for a name: a placeholder's, or what would be one if the header had it. A backslash before the brace
 * makes text of it. 0: what is in braces is no name, or means nothing here. */
size_t template_name_at(const char *at, const char *end, const struct record_syntax *syntax);

/* Refuses such a name that the header lacks: most likely it is misspelt. 0: it is none. */
int template_refuse_unknown(const char *at, const char *end, const struct record_syntax *syntax,
                            weir_message *message);

/* Adds a placeholder that placeholder_at found, unless it is there; *index is its place. */
int template_add_placeholder(size_t *index, struct template *template, enum placeholder_kind kind,
                             const char *at, size_t length);

/* Words are added from their first piece to their last. */
int template_open_word(struct template *template);
int template_add_text(struct template *template, const char *text, size_t length);
int template_add_reference(struct template *template, size_t placeholder);

#endif
