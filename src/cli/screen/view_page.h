/* Lines for a terminal: the view's output goes through here, so no line gets too wide.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_VIEW_PAGE_H
#define WR_CLI_VIEW_PAGE_H

#include "cli/screen/view.h"

struct page {
    struct view_text *out;
    bool color, utf8;
    int columns; /* of a line, at most   */
    int at;      /* columns written      */
    int left;    /* lines still to spare */
    bool failed; /* no memory            */
};

#define PLAIN  ""
#define BOLD   "1"
#define DIM    "2"
#define RED    "31"
#define GREEN  "32"
#define YELLOW "33"
#define CYAN   "36"

/* An empty text may have no memory yet; without memory it ends empty. */
void page_begin(struct page *page);
void page_finish(struct page *page);

/* Text between these two calls is shown in the style, if there are colours. */
void page_style(struct page *page, const char *style);
void page_unstyle(struct page *page, const char *style);

void page_spaces(struct page *page, int count);

/* One of our own characters of one column, `count` times. */
void page_mark(struct page *page, const char *mark, int count);

/* Any text, cleaned; stops where the line, or `columns`, would be exceeded. */
void page_text(struct page *page, const char *text, int columns);

/* Any text in at most `columns`. The middle is cut out if need be: names often differ at the end.
 * Sentences are cut at the end. */
void page_cut(struct page *page, const char *text, int columns, bool middle);

/* A text at the right of `width` columns. */
void page_right(struct page *page, const char *text, int width, const char *style);

void page_end_line(struct page *page);

static inline int smaller(int a, int b)
{
    return a < b ? a : b;
}

static inline int larger(int a, int b)
{
    return a > b ? a : b;
}

#endif
