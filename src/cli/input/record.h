/* One record of the input: a line, a row, or an object, and its fields.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_RECORD_H
#define WR_CLI_RECORD_H

#include "cli/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir.h>

enum record_form {
    FORM_LINES, /* a record is a line; fields are what blanks separate, or the delimiter      */
    FORM_CSV,   /* RFC 4180, with any one-byte delimiter; a record may span lines             */
    FORM_TSV,   /* tabs, no quotes; \t \n \r \\ stand for themselves                          */
    FORM_JSONL, /* one object per line; fields have names only, a.b leads inside              */
};

/* How records look; fixed before the first one is read. */
struct record_syntax {
    enum record_form form;
    char delimiter; /* between fields; 0: the form's own (blanks, ',', tab)                   */
    const char *delimiter_text; /* FORM_LINES: of several bytes; NULL: none                   */
    char **names; /* of columns, from the header; NULL: columns have numbers only           */
    size_t name_count;
    bool names_lost; /* the input ended before its header: any name might have been there     */
};

struct record {
    char *text; /* as read, without its end-of-line; owned; followed by a zero byte           */
    size_t length;
    uint64_t line; /* number of its first line, from 1, for messages                          */
    bool is_cut;   /* the input ended without the end of this record                          */
    struct span *fields; /* FORM_LINES/CSV/TSV: decoded columns. Filled by record_split        */
    size_t field_count;
    bool is_split; /* the fields did not come from the text: record_split leaves them alone   */
    char *decoded; /* what fields point into, where they differ from text; owned, or NULL     */
};

enum { RECORD_FIELDS_MAX = 100000 }; /* more are refused: each takes memory */

/* Finds the fields. 0, or WEIR_EINVAL with a sentence ("line 7: a quote is never closed"), or
 * WEIR_ENOMEM. A record of FORM_JSONL is checked to be an object. */
int record_split(struct record *record, const struct record_syntax *syntax, weir_message *message);

/* Refuses a record of more than RECORD_FIELDS_MAX columns. */
int record_too_wide(const struct record *record, weir_message *message);

/* Looks up a field of a record that was split: by a header's name, by column number from 1 ("3"), or, in JSON,
 * by a member's name, a.b for nested ones, a.0 for the first element of an array. Strings come decoded,
 * numbers and nested values as their JSON text, null as "".
 * The span points into the record, or into *owned, which the caller frees.
 * 0; WEIR_EINVAL with a sentence if the record has no such field; WEIR_ENOMEM. */
int record_field(struct span *out, char **owned, const struct record *record,
                 const struct record_syntax *syntax, const char *name, weir_message *message);

/* Whether `name` could be a field of such records: what is in braces in a command is left alone
 * otherwise. Column numbers always; names if in the header, or, for FORM_JSONL, if it looks like
 * one: letters, digits, _ . - and not a digit first. */
bool record_may_have(const struct record_syntax *syntax, const char *name, size_t length);

/* Takes the columns of a header row, which was split, as the names. Those without name have numbers only.
 * WEIR_EINVAL with a sentence: two have the same. WEIR_ENOMEM. */
int record_syntax_set_names(struct record_syntax *syntax, const struct record *header,
                            weir_message *message);
void record_syntax_fini(struct record_syntax *syntax);

void record_fini(struct record *record);

#endif
