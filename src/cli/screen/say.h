/* Messages of ours on standard error: names and records in them may hold anything, so they are cleaned.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_SCREEN_SAY_H
#define WR_CLI_SCREEN_SAY_H

#include <stddef.h>

enum { SAY_WRONG = 255 }; /* the exit status of an error that is not a command's failure */

/* Replaces control characters, C1 among them, and what would reorder or hide its neighbours. In place. */
void say_clean(char *text, size_t size);

/* "weir: ", the text, and an end of line. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* What an errno means to a user, and for a limit also which one it is and how to raise it. */
void say_why(char *text, size_t size, int error);

/* "weir: WHAT: " and why. Answers SAY_WRONG. */
int say_wrong(const char *what, int error);

#endif
