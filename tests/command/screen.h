/* A terminal's screen in memory: what a person would see of the bytes a program has sent.
 *
 *     struct screen *screen = screen_new(80, 24);
 *     screen_feed(screen, bytes, n);                   what read() from the pseudo-terminal gave
 *     assert_string_equal(screen_line(screen, 0), "hello");
 *     screen_free(screen);
 *
 * Knows printable UTF-8 (width by wcwidth, so call setlocale first), \r \n \b \t, wrapping, scrolling,
 * cursor movement (CSI A B C D E F G H), erasing (CSI J, K), and ignores colours (CSI m) and modes but
 * for the cursor's visibility. Whatever else arrives is counted as unknown, so that a test can say
 * there was none. Resizing rewraps long lines, as most terminals do. Rows and columns count from 0.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_SCREEN_H
#define WR_TESTS_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

struct screen;

struct screen *screen_new(int cols, int rows);
void screen_free(struct screen *screen);
void screen_feed(struct screen *screen, const char *bytes, size_t n);

/* Lines are joined where they had wrapped and wrapped anew; the bottom stays in view. */
void screen_resize(struct screen *screen, int cols, int rows);

/* The text of a row without trailing spaces; "" outside of the screen. Lent until the next call. */
const char *screen_line(struct screen *screen, int row);

/* Everything: what has scrolled out at the top, then the screen to its last line that is not empty.
 * One line per row, each ended by "\n". Lent until the next call. */
const char *screen_text(struct screen *screen);

/* The first row that contains `text`, or -1. */
int screen_find(struct screen *screen, const char *text);

int screen_cursor_row(const struct screen *screen);
int screen_cursor_col(const struct screen *screen);
bool screen_cursor_visible(const struct screen *screen);

/* Control characters and sequences that are not in the list above. */
int screen_unknown(const struct screen *screen);

#endif
