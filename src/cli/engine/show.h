/* What is shown while we run: a display, plain lines, or nothing.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_SHOW_H
#define WR_CLI_SHOW_H

#include "cli/engine/picture.h"
#include "cli/screen/term.h"

/* The display, or plain lines, or nothing. */
struct show {
    struct engine *engine;
    bool live, plain; /* at most one */
    bool with_why;
    bool closing; /* the last picture */
    struct term term;
    struct view_text text;
    struct film film;
    weir_time next;
    int64_t period_ns;
};

int show_open(struct show *show, struct engine *engine);

/* Draws if it is time; with `regardless` a display is drawn now. `phase`: a sentence for what is special, or NULL. */
void show_update(struct show *show, bool regardless, const char *phase);

/* Makes way for output on the terminal; the next update draws again. */
void show_make_way(struct show *show);

void show_key(struct show *show, int key);

/* The last picture stays on the screen. */
void show_close(struct show *show);

#endif
