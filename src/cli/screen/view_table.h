/* The view's table: which columns there are, and how wide.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_VIEW_TABLE_H
#define WR_CLI_VIEW_TABLE_H

#include "cli/screen/view_row.h"

enum column { NAME, BAR, DONE, RUNNING, WAITING, FAILED, RATE, STATE, COLUMNS };

/* Enough for 1m15s · eta 3m08s, so these do not have to be cut. */
enum { BAR_COLUMNS = 8, STATE_COLUMNS = 18 };

struct table {
    int width[COLUMNS]; /* 0: not shown */
    int gap;
    uint64_t full_max;
    bool wide; /* room for whole words */
};

/* A table for the first `shown` groups and the total, as wide as the terminal. */
struct table table_for(const struct view *view, const struct view_look *look, size_t shown,
                       const struct row *total);

/* The text of a cell that holds a figure; empty if there is nothing to say. */
void table_show_cell(char out[48], const struct table *table, const struct row *row,
                     enum column column);

void table_put_header(struct page *page, const struct table *table);
void table_put_row(struct page *page, const struct table *table, const struct row *row);

#endif
