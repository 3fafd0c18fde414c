/* What the live display shows, as text: pure, from a snapshot to lines of a terminal.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_VIEW_H
#define WR_CLI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view_group {
    const char *key; /* any bytes; "" is shown as (none) */
    uint64_t done;   /* ended, failed ones included */
    uint64_t failed;
    uint64_t running, waiting;
    uint64_t not_run;  /* given up: they count for the bar, which is not full then */
    double per_second; /* ended lately */
    int64_t limit;     /* 0: none worth showing */
    const char *state; /* "eta 12s", "cooling down 12s", "paced"; NULL: nothing to say */
    bool is_special;   /* the state is worth a look                                      */
};

struct view {
    const struct view_group *groups; /* active ones, in the order to show */
    size_t count;
    size_t others;           /* active groups that are not among them */
    bool grouped;            /* false: there is only the one group of all, show the total alone */
    struct view_group total; /* key and state unused */
    uint64_t expected;       /* how many there will be in all; 0: not known yet */
    bool expected_is_estimate;
    int64_t elapsed_ns;
    int64_t eta_ns;         /* -1: not known */
    const char *phase;      /* NULL, or "draining: Ctrl-C again ends 3 running" */
    const char *const *why; /* what waits and why, one sentence each; shown if any */
    size_t why_count;
    size_t why_others; /* groups that wait and are not among them */
};

struct view_look {
    int width, height; /* of the terminal; the display takes at most height - 1 lines */
    bool color, utf8;
    bool keys; /* key presses reach us, so a hint at them is of use */
};

/* A text that grows; starts zeroed, text is freed by its owner. Ends with a zero once rendered to; without
 * memory it is left empty. */
struct view_text {
    char *text;
    size_t length, size;
    int lines; /* how many lines view_render has put there */
};

/* Renders into `out` (emptied first): `lines` lines, each ended by "\n", none wider than width - 1 columns,
 * without cursor movement: the terminal part puts it in place. Keys, states, phase and reasons may hold any bytes;
 * what is not fit for a terminal is replaced. Widths of characters are the locale's (LC_CTYPE). */
void view_render(struct view_text *out, const struct view *view, const struct view_look *look);

/* One plain line for logs: "weir: 120 of 400 done, 3 failed, 8 running, 269 waiting, 4.2/s, eta 1m04s\n". The eta
 * only if known; "; " and the phase last, if any. */
void view_render_plain(struct view_text *out, const struct view *view);

#endif
