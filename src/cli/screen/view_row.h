/* A group, or all of them: figures and a bar.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_VIEW_ROW_H
#define WR_CLI_VIEW_ROW_H

#include "cli/screen/view_page.h"

struct row {
    const char *name;
    const struct view_group *counts;
    uint64_t of; /* how many there are to do; 0: not known */
    bool estimate;
    const char *state;
    bool total;
};

struct row row_of_group(const struct view_group *group);
struct row row_of_total(const struct view *view, const char *state);

/* "12%"; 100% is said only when nothing is left. Empty if there is no telling. */
void row_show_percent(char out[8], const struct row *row);

/* Up to `full_max` all digits, beyond it 12k, 3.45M: cut, not rounded, so 999999 is not yet 1M. */
void row_show_count(char *out, size_t size, uint64_t n, uint64_t full_max);

/* Per second, or per minute or hour where that would show nothing but zeros; "0/s" for none. */
void row_show_rate(char *out, size_t size, double per_second);

/* Whole seconds: fractions would only flicker. */
void row_show_seconds(char out[16], int64_t ns);

/* Heavy for what has ended (the last of it red for what has failed), light for what runs, dotted for
 * what waits. */
void row_put_bar(struct page *page, const struct row *row, int cells);

#endif
