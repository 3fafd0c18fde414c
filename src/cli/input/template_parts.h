/* What templates are made of; for template*.c only.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_TEMPLATE_PARTS_H
#define WR_CLI_TEMPLATE_PARTS_H

#include "cli/input/template.h"

enum placeholder_kind {
    HOLDS_RECORD, /* {}            */
    HOLDS_FIELD,  /* {1}, {name}   */
    HOLDS_KEY,
    HOLDS_SEQ,  /* {seq}, {#}    */
    HOLDS_SLOT, /* {%}           */
};

/* Of the record or a field, taken as a path. */
enum path_part {
    PART_WHOLE,
    PART_STEM,      /* {.}  */
    PART_BASE,      /* {/}  */
    PART_DIRECTORY, /* {//} */
    PART_BASE_STEM, /* {/.} */
};

/* What stands in braces. */
struct held {
    enum placeholder_kind kind;
    enum path_part part;
    size_t name_length; /* HOLDS_FIELD: the name is behind the opening brace */
};

/* Each distinct one stands once in a template. */
struct placeholder {
    enum placeholder_kind kind;
    enum path_part part;
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
    char *text;       /* what pieces point into */
    bool nested_code; /* a value is part of a script for another shell */
};

/* Where a placeholder begins, at a brace: its length with both braces, and what it holds. 0: what is in braces is
 * none. */
size_t placeholder_at(struct held *held, const char *at, const char *end,
                      const struct record_syntax *syntax);

/* The longest ending of the text that names a part of a path; answers its length. */
size_t template_part_at_end(enum path_part *part, const char *text, size_t length);

bool template_is_text(const char *text, size_t length, const char *known);

/* Adds a placeholder that placeholder_at found, unless it is there; *index is its place. */
int template_add_placeholder(size_t *index, struct template *template, const struct held *held,
                             const char *at);

/* Words are added from their first piece to their last. */
int template_open_word(struct template *template);
int template_add_text(struct template *template, const char *text, size_t length);
int template_add_reference(struct template *template, size_t placeholder);

/* ---- template_unknown.c ------------------------------------------------------------------------------ */

/* The length of what a backslash before the brace at `at` makes text of: a placeholder, or what would be refused. 0: it
 * is neither. */
size_t template_escaped_at(const char *at, const char *end, const struct record_syntax *syntax);

/* Refuses what looks like a placeholder and is none: a name that no column has, or a form of GNU parallel's that is
 * written otherwise here. 0: it is no such thing. `from`: where the word or script begins. */
int template_refuse_unknown(const char *from, const char *at, const char *end,
                            const struct record_syntax *syntax, weir_message *message);

#endif
