/* CSV (RFC 4180): where a row ends, and what its fields are.
 *
 * A field that begins with a quote ends with one, and "" inside stands for one quote; such fields may hold
 * delimiters and line ends. A quote elsewhere is an ordinary character.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_CSV_H
#define WR_CLI_CSV_H

#include "cli/input/record.h"

/* Where in a row a scan stands; zero is the beginning of one. */
enum csv_place { CSV_FIELD_START, CSV_UNQUOTED, CSV_QUOTED, CSV_AFTER_QUOTE };

/* The separator that ends the row, or NULL if it is not in this piece of text: then *place tells where to go
 * on with the next piece. */
const char *csv_row_end(enum csv_place *place, const char *text, size_t length, char delimiter,
                        char separator);

/* Finds the fields of a row. As record_split. */
int csv_split(struct record *record, char delimiter, weir_message *message);

#endif
