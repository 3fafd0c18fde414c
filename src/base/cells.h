/* Cells: memory of one cache line each; and spans, of sixty-four.
 *
 * Cells that come back lie on shelves, of which each caller names one, so that callers do not all meet at one lock; a full
 * shelf gives a batch to the common list, an empty one takes a batch from it. A free cell begins with the next one's address; the
 * first of a batch goes on with the next batch's. The last eight bytes of a cell are never written here, so its owner may leave a
 * mark in them for threads that walk over all cells at any time.
 *
 * Spans come from malloc. A shelf keeps some of those that are given back, since one thread allocates spans that another frees: in
 * malloc these threads would meet at its lock, and each time the heap becomes smaller, the system call holds up the thread that
 * frees.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_CELLS_H
#define WR_BASE_CELLS_H

#include "base/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_block;
struct wr_cell;

enum { WR_CELL = 64, WR_SHELVES = 8, WR_SPAN_CELLS = 64, WR_SPANS_KEPT = 16 };

struct wr_shelf {
    struct wr_lock lock;
    uint32_t count;
    struct wr_cell *first;
    char apart[WR_CELL - 16];
    _Atomic(void *) span[WR_SPANS_KEPT]; /* without the lock; NULL: a free place */
};

struct wr_cells {
    struct wr_shelf shelf[WR_SHELVES];
    struct wr_lock lock;
    struct wr_cell *batches;
    char *fresh; /* part of the newest block that was never used: its memory is not touched */
    size_t fresh_left;
    struct wr_block *blocks;
    /* Cells in use or on shelves, those of spans too, and those that wr_cells_count has added */
    _Atomic uint32_t lent;
};

/* Takes a cell; NULL without memory. Its contents are undefined, but for the last eight bytes: zero, or what they were when the
 * cell was given back. */
void *wr_cell_take(struct wr_cells *cells, uint32_t shelf);

void wr_cell_give(struct wr_cells *cells, uint32_t shelf, void *cell);

/* The same with spans: WR_SPAN_CELLS times as large, but for eight bytes that malloc keeps. All contents are undefined. */
void *wr_span_take(struct wr_cells *cells, uint32_t shelf);
void wr_span_give(struct wr_cells *cells, uint32_t shelf, void *span);

/* So many cells' worth of memory more, or less, is in use. */
static inline void wr_cells_count(struct wr_cells *cells, int32_t more)
{
    wr_add(&cells->lent, (uint32_t)more, relaxed);
}

/* A megabyte; beyond that, owners give back memory that they can do without. */
enum { WR_LENT_FREELY = 16384 };

static inline bool wr_cells_are_scarce(const struct wr_cells *cells)
{
    return wr_load(&cells->lent, relaxed) > WR_LENT_FREELY;
}

/* All cells that were ever used, a block at a time: `*at` is NULL at first and moves on. False: no more. They stay
 * readable for as long as `cells` lives. */
bool wr_cells_walk(struct wr_cells *cells, struct wr_block **at, void **first, size_t *count);

/* Frees all memory. The caller has given back all spans. */
void wr_cells_fini(struct wr_cells *cells);

#endif
