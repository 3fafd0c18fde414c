/* One picture of a run: counts of all groups, at one moment, as the display wants them.
 * SPDX-License-Identifier: MIT */
#ifndef WR_CLI_ENGINE_PICTURE_H
#define WR_CLI_ENGINE_PICTURE_H

#include "cli/engine/run.h"
#include "cli/engine/tally.h"
#include "cli/screen/view.h"

enum { PICTURE_ROWS_MAX = 200, PICTURE_WHY_MAX = 12 };

/* What is remembered from one picture to the next. */
struct film {
    weir_time began, seen_at; /* seen_at: of the last picture */
    struct pace pace;
};

struct picture_wish {
    size_t rows; /* for groups, at most */
    bool last;   /* the whole run's rates, and no forecast */
    bool why;    /* also what waits, and why */
};

struct picture; /* view is valid until it is freed */

/* The picture of this moment; NULL without memory. `phase`: a sentence for what is special, or NULL. */
struct picture *picture_new(struct engine *engine, struct film *film,
                            const struct picture_wish *wish, weir_time now, const char *phase);
const struct view *picture_view(const struct picture *picture);
void picture_free(struct picture *picture);

#endif
