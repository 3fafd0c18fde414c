/* Regular expressions whose work grows with the text and never faster: POSIX extended ones, without back-references.
 *
 * All ways to match are followed at once, a character at a time, so a text of n bytes takes n steps of at most as
 * many moves as the expression has parts. The leftmost match counts, of those the longest; parentheses hold what the
 * first way to that match gave them.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_INPUT_REGEX_H
#define WR_CLI_INPUT_REGEX_H

#include "cli/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <weir.h>

enum { REGEX_CAPTURES_MAX = 9 };

struct regex;

/* WEIR_EINVAL with a sentence; WEIR_ENOMEM. */
int regex_new(struct regex **out, const char *pattern, weir_message *message);
void regex_free(struct regex *regex);

/* How many parentheses it has, up to REGEX_CAPTURES_MAX. */
size_t regex_captures(const struct regex *regex);

/* 1: it matches, and found[0] is where, found[i] what parentheses i hold (text NULL: they took no part).
 * 0: it does not. WEIR_ENOMEM. WEIR_ECANCELED: `stop_fd` became readable meanwhile; -1: none. */
int regex_match(const struct regex *regex, struct span found[1 + REGEX_CAPTURES_MAX],
                const char *text, size_t length, int stop_fd);

#endif
