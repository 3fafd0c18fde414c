/* Commands as a shell would take them, for people to read.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_SCREEN_QUOTE_H
#define WR_CLI_SCREEN_QUOTE_H

#include <stdio.h>

/* The words with blanks between, each quoted if it has to be. */
void quote_command(FILE *out, char *const *argv);

#endif
