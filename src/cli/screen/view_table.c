/* Laying out and writing the table.
 * SPDX-License-Identifier: MIT */
#include "cli/screen/view_table.h"

#include "cli/screen/glyph.h"

#include <stdio.h>
#include <string.h>

static const char *label_of(const struct table *table, enum column column)
{
    static const char *const words[COLUMNS] = { "group",   "",       "done", "running",
                                                "waiting", "failed", "rate", "" };
    static const char *const short_words[COLUMNS] = { "group", "",     "done", "run",
                                                      "wait",  "fail", "rate", "" };

    return table->wide ? words[column] : short_words[column];
}

void table_show_cell(char out[48], const struct table *table, const struct row *row,
                     enum column column)
{
    const struct view_group *counts = row->counts;
    char first[22], second[22]; /* 20 digits are the most */
    uint64_t n = column == RUNNING   ? counts->running
                 : column == WAITING ? counts->waiting
                 : column == FAILED  ? counts->failed
                                     : counts->done;

    out[0] = '\0';
    row_show_count(first, sizeof(first), n, table->full_max);
    if (column == RATE) {
        row_show_rate(out, 48, counts->per_second);
        if (strcmp(out, "0/s") == 0)
            out[0] = '\0';
    } else if (column == DONE && row->of > 0) {
        row_show_count(second, sizeof(second), row->of, table->full_max);
        snprintf(out, 48, "%s/%s%s", first, row->estimate ? "~" : "", second);
    } else if (column == RUNNING && counts->limit > 0) {
        row_show_count(second, sizeof(second), (uint64_t)counts->limit, table->full_max);
        snprintf(out, 48, "%s/%s", first, second);
    } else if (column == DONE || n > 0) {
        snprintf(out, 48, "%s", first);
    }
}

static const char *style_of(const struct row *row, enum column column)
{
    switch (column) {
    case NAME:
    case DONE:
        return row->total ? BOLD : PLAIN;
    case RUNNING:
        return row->counts->running > 0 ? CYAN : DIM;
    case FAILED:
        return RED;
    case STATE:
        return row->total || !row->counts->is_special ? PLAIN : YELLOW;
    default:
        return PLAIN;
    }
}

static void measure_row(struct table *table, const struct row *row)
{
    char text[48];

    for (enum column column = DONE; column < STATE; column++) {
        table_show_cell(text, table, row, column);
        table->width[column] = larger(table->width[column], (int)strlen(text));
    }
}

/* Widths to be had depend on what is shown as little as possible: a table that jumps about cannot be
 * read. So names and states are rounded up, and figures are at least as wide as their heading. */
static int rounded(int columns)
{
    return (columns + 3) / 4 * 4;
}

static void grow(int *left, int *width, int wanted)
{
    int more = smaller(wanted - *width, *left);

    if (*width > 0 && more > 0) {
        *width += more;
        *left -= more;
    }
}

/* Takes columns in the order of their worth while they fit, then widens them. */
static void fit_columns(struct table *table, int columns, int name, int state)
{
    static const enum column by_worth[] = { DONE, FAILED, BAR, RUNNING, WAITING, STATE, RATE };
    int needed[COLUMNS], left;

    memcpy(needed, table->width, sizeof(needed));
    memset(table->width, 0, sizeof(table->width));
    needed[BAR] = BAR_COLUMNS;
    needed[STATE] = STATE_COLUMNS;
    table->width[NAME] = smaller(larger(smaller(columns * 3 / 10, 12), 6), columns);
    left = columns - table->width[NAME];
    for (size_t i = 0; i < sizeof(by_worth) / sizeof(by_worth[0]); i++) {
        enum column column = by_worth[i];
        int spare = column == RATE ? smaller(name, 16) - table->width[NAME] : 0;
        if (needed[column] + table->gap + spare > left)
            continue; /* or for the rate, which is worth less than the names */
        table->width[column] = needed[column];
        left -= needed[column] + table->gap;
    }
    grow(&left, &table->width[NAME], smaller(name, 16));
    grow(&left, &table->width[BAR], 12);
    grow(&left, &table->width[NAME], smaller(name, 20));
    grow(&left, &table->width[STATE], larger(smaller(state, 24), 20));
    grow(&left, &table->width[BAR], 24);
    grow(&left, &table->width[NAME], smaller(name, 48));
    grow(&left, &table->width[STATE], smaller(state, 60));
    grow(&left, &table->width[BAR], 40);
}

struct table table_for(const struct view *view, const struct view_look *look, size_t shown,
                       const struct row *total)
{
    int columns = look->width - 1, name = 12, state = glyph_columns(total->state, look->utf8);
    struct table table = { .gap = columns < 32 ? 1 : 2,
                           .full_max = columns < 56   ? 9999
                                       : columns < 96 ? 99999
                                                      : 9999999,
                           .wide = columns >= 108 };
    struct row row;

    for (enum column column = DONE; column < STATE; column++)
        table.width[column] = (int)strlen(label_of(&table, column));
    table.width[RATE] = 6;
    for (size_t i = 0; i < shown; i++) {
        row = row_of_group(&view->groups[i]);
        measure_row(&table, &row);
        name = larger(name, glyph_columns(row.name, look->utf8));
        state = larger(state, glyph_columns(row.state, look->utf8));
    }
    measure_row(&table, total);
    fit_columns(&table, columns, rounded(name), rounded(state));
    return table;
}

static void put_name(struct page *page, const struct row *row, int width)
{
    char percent[8] = "";
    int end = page->at + width, room;

    if (row->total)
        row_show_percent(percent, row);
    room = width - (*percent ? (int)strlen(percent) + 1 : 0);
    if (room < 5) {
        percent[0] = '\0';
        room = width;
    }
    page_style(page, style_of(row, NAME));
    page_cut(page, row->name, room, true);
    page_unstyle(page, style_of(row, NAME));
    page_spaces(page, end - page->at - (int)strlen(percent));
    page_text(page, percent, width);
}

void table_put_row(struct page *page, const struct table *table, const struct row *row)
{
    char text[48];

    put_name(page, row, table->width[NAME]);
    for (enum column column = BAR; column < COLUMNS; column++) {
        int width = table->width[column];
        if (width == 0 || (column == STATE && !*row->state))
            continue;
        page_spaces(page, table->gap);
        if (column == BAR && row->of > 0) {
            row_put_bar(page, row, width);
        } else if (column == BAR) {
            page_spaces(page, width);
        } else if (column == STATE) {
            page_style(page, style_of(row, column));
            page_cut(page, row->state, width, false);
            page_unstyle(page, style_of(row, column));
        } else {
            table_show_cell(text, table, row, column);
            if (*text)
                page_right(page, text, width, style_of(row, column));
            else
                page_right(page, page->utf8 ? "·" : "-", width, DIM);
        }
    }
    page_end_line(page);
}

void table_put_header(struct page *page, const struct table *table)
{
    page_style(page, DIM);
    page_text(page, label_of(table, NAME), table->width[NAME]);
    page_spaces(page, table->width[NAME] - page->at);
    for (enum column column = BAR; column < STATE; column++) {
        if (table->width[column] == 0)
            continue;
        page_spaces(page, table->gap);
        page_right(page, label_of(table, column), table->width[column], PLAIN);
    }
    page_unstyle(page, DIM);
    page_end_line(page);
}
