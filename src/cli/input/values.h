/* Values on the command line: ::: a b, several lists as their product, :::+ linked to the list before, :::: files.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_VALUES_H
#define WR_CLI_INPUT_VALUES_H

#include "cli/input/record.h"

struct values;

/* Whether a word opens a list. */
bool values_open(const char *word);

/* words: from the first one that opens a list, NULL-ended; they must outlive it. `separator` ends the lines of files.
 * WEIR_EINVAL with a sentence, or another negative code. */
int values_new(struct values **out, char **words, char separator, weir_message *message);
void values_free(struct values *values);

/* The next combination, the last list fastest: 1, and the caller owns it; 0: there are no more; WEIR_ENOMEM. A record
 * has one field per list, and as its text these with blanks between. */
int values_next(struct record *out, struct values *values);

/* How many combinations there are. */
uint64_t values_total(const struct values *values);

/* How many were taken. */
uint64_t values_taken(const struct values *values);

/* Starts again. */
void values_rewind(struct values *values);

#endif
