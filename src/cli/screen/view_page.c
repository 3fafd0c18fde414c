/* A page of the view, line by line.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/view_page.h"

#include "cli/screen/glyph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct page *page, const char *bytes, size_t length)
{
    struct view_text *out = page->out;
    size_t need = out->length + length + 1;

    if (page->failed)
        return;
    if (need > out->size) {
        size_t size = need > 2 * out->size ? need + 1024 : 2 * out->size;
        char *text = realloc(out->text, size);
        if (!text) {
            page->failed = true;
            return;
        }
        out->text = text;
        out->size = size;
    }
    memcpy(out->text + out->length, bytes, length);
    out->length += length;
    out->text[out->length] = '\0';
}

void page_style(struct page *page, const char *style)
{
    char text[16];

    if (!page->color || !*style)
        return;
    snprintf(text, sizeof(text), "\033[%sm", style);
    put(page, text, strlen(text));
}

void page_unstyle(struct page *page, const char *style)
{
    if (page->color && *style)
        put(page, "\033[0m", 4);
}

void page_spaces(struct page *page, int count)
{
    for (; count > 0 && page->at < page->columns; count--, page->at++)
        put(page, " ", 1);
}

void page_mark(struct page *page, const char *mark, int count)
{
    for (; count > 0 && page->at < page->columns; count--, page->at++)
        put(page, mark, strlen(mark));
}

void page_text(struct page *page, const char *text, int columns)
{
    int end = page->at + smaller(columns, page->columns - page->at);
    struct glyph glyph;

    while (glyph_next(&glyph, &text, page->utf8) && page->at + glyph.columns <= end) {
        put(page, glyph.bytes, glyph.length);
        page->at += glyph.columns;
    }
}

static void put_ellipsis(struct page *page)
{
    if (page->utf8)
        page_mark(page, "…", 1);
    else
        page_mark(page, ".", 2);
}

void page_cut(struct page *page, const char *text, int columns, bool middle)
{
    int whole = glyph_columns(text, page->utf8);
    int dots = page->utf8 ? 1 : 2;
    int tail = middle ? (columns - dots) * 2 / 5 : 0;
    struct glyph glyph;

    columns = smaller(columns, page->columns - page->at);
    if (whole <= columns) {
        page_text(page, text, columns);
        return;
    }
    page_text(page, text, columns - dots - tail);
    put_ellipsis(page);
    while (whole > tail && glyph_next(&glyph, &text, page->utf8))
        whole -= glyph.columns;
    page_text(page, text, tail);
}

void page_end_line(struct page *page)
{
    put(page, "\n", 1);
    page->out->lines++;
    page->left--;
    page->at = 0;
}

void page_right(struct page *page, const char *text, int width, const char *style)
{
    page_spaces(page, width - glyph_columns(text, page->utf8));
    page_style(page, style);
    page_text(page, text, width);
    page_unstyle(page, style);
}

void page_begin(struct page *page)
{
    page->out->length = 0;
    page->out->lines = 0;
    put(page, "", 0);
}

void page_finish(struct page *page)
{
    if (!page->failed)
        return;
    page->out->length = 0;
    page->out->lines = 0;
}
