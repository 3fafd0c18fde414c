/* A compiled regular expression: what regex_compile.c makes and regex.c runs.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_REGEX_PROGRAM_H
#define WR_CLI_INPUT_REGEX_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>
#include <wctype.h>

enum operation {
    OP_CHAR,   /* one character: `value`          */
    OP_ANY,    /* any character                   */
    OP_SET,    /* one of set `value`              */
    OP_SPLIT,  /* goes on at both, `next` first   */
    OP_JUMP,   /* goes on at `next`               */
    OP_SAVE,   /* notes the place as `value`      */
    OP_ASSERT, /* holds here: `value`             */
    OP_MATCH,
};

enum place { AT_BEGIN, AT_END, AT_WORD_EDGE, AT_NO_EDGE, AT_WORD_BEGIN, AT_WORD_END };

struct step {
    enum operation op;
    uint32_t value, next, other;
};

struct range {
    wint_t from, to;
};

struct set {
    struct range *range;
    wctype_t *class;
    size_t ranges, classes;
    bool negated;
};

struct regex {
    struct step *program;
    size_t length, size;
    struct set *sets;
    size_t set_count;
    size_t captures;
};

/* The next character and its length in bytes; what is no character of the locale is a byte of its own. */
size_t regex_next_character(wint_t *out, const char *text, size_t length);

#endif
