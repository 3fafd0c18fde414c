/* Bytes from anywhere as what a terminal may be sent: cleaned, and measured in columns.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_GLYPH_H
#define WR_CLI_GLYPH_H

#include <stdbool.h>
#include <stdint.h>

/* A character with the marks that combine with it. Never a control character, nor one that
 * reorders its neighbours or changes their width. */
struct glyph {
    char bytes[16]; /* ends with a zero */
    uint8_t length;
    uint8_t columns; /* 1 or 2 */
};

/* Takes the next glyph off *text; false at the end. What cannot be shown becomes a replacement of
 * one column: U+FFFD, or a question mark unless `utf8`. Widths are the locale's. */
bool glyph_next(struct glyph *glyph, const char **text, bool utf8);

/* Columns of a text that has been cleaned so. */
int glyph_columns(const char *text, bool utf8);

#endif
