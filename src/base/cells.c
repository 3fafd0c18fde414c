/* Cells in blocks that are mapped, aligned and only touched as they are used; and spans. See cells.h.
 * SPDX-License-Identifier: MIT */
#include "base/cells.h"

#include "base/os.h"

enum { BLOCK = 1 << 20, BATCH = 32, FRESH = 16, SHELF_MAX = 2 * BATCH };

struct wr_block {
    struct wr_block *next;
    void *memory;
};

/* A free cell. */
struct wr_cell {
    struct wr_cell *next;
    struct wr_cell *next_batch; /* of the first of a batch */
};

static bool grow(struct wr_cells *cells)
{
    struct wr_block *block = wr_os_alloc(sizeof(*block));

    if (!block)
        return false;
    block->memory = wr_os_map(BLOCK); /* page-aligned, hence a cell is one cache line */
    if (!block->memory) {
        wr_os_free(block);
        return false;
    }
    block->next = cells->blocks;
    cells->blocks = block;
    cells->fresh = block->memory;
    cells->fresh_left = BLOCK / WR_CELL;
    return true;
}

static struct wr_cell *take_fresh(struct wr_cells *cells)
{
    struct wr_cell *cell;

    if (!cells->fresh_left && !grow(cells))
        return NULL;
    cell = (struct wr_cell *)(void *)cells->fresh;
    cells->fresh += WR_CELL;
    cells->fresh_left--;
    return cell;
}

/* Fills an empty shelf with a batch that was given back, or with some fresh cells. Under the shelf's lock. */
static void fill(struct wr_cells *cells, struct wr_shelf *shelf)
{
    struct wr_cell *cell;

    wr_lock(&cells->lock);
    if ((cell = cells->batches)) {
        cells->batches = cell->next_batch;
        shelf->first = cell;
        shelf->count = BATCH;
    }
    while (shelf->count < FRESH && (cell = take_fresh(cells))) {
        cell->next = shelf->first;
        shelf->first = cell;
        shelf->count++;
    }
    wr_unlock(&cells->lock);
    wr_cells_count(cells, (int32_t)shelf->count);
}

void *wr_cell_take(struct wr_cells *cells, uint32_t which)
{
    struct wr_shelf *shelf = &cells->shelf[which % WR_SHELVES];
    struct wr_cell *cell;

    wr_lock(&shelf->lock);
    if (!shelf->first)
        fill(cells, shelf);
    cell = shelf->first;
    if (cell) {
        shelf->first = cell->next;
        shelf->count--;
        wr_prefetch_to_write(shelf->first);
    }
    wr_unlock(&shelf->lock);
    return cell;
}

/* Gives half of a full shelf, as a batch, to the common list. Under the shelf's lock. */
static void empty(struct wr_cells *cells, struct wr_shelf *shelf)
{
    struct wr_cell *batch = shelf->first, *last = batch;

    for (int i = 1; i < BATCH; i++)
        last = last->next;
    shelf->first = last->next;
    shelf->count -= BATCH;
    last->next = NULL;
    wr_lock(&cells->lock);
    batch->next_batch = cells->batches;
    cells->batches = batch;
    wr_unlock(&cells->lock);
    wr_cells_count(cells, -BATCH);
}

void wr_cell_give(struct wr_cells *cells, uint32_t which, void *given)
{
    struct wr_shelf *shelf = &cells->shelf[which % WR_SHELVES];
    struct wr_cell *cell = given;

    wr_lock(&shelf->lock);
    cell->next = shelf->first;
    shelf->first = cell;
    if (++shelf->count == SHELF_MAX)
        empty(cells, shelf);
    wr_unlock(&shelf->lock);
}

/* ---- spans --------------------------------------------------------------------------------------- */

void *wr_span_take(struct wr_cells *cells, uint32_t which)
{
    struct wr_shelf *shelf = &cells->shelf[which % WR_SHELVES];
    void *span;

    for (int i = 0; i < WR_SPANS_KEPT; i++)
        if (wr_load(&shelf->span[i], relaxed) &&
            (span = wr_swap(&shelf->span[i], NULL, acquire))) /* pairs with wr_span_give */
            return span;
    span = wr_os_alloc_raw((size_t)WR_SPAN_CELLS * WR_CELL - sizeof(uint64_t));
    if (span)
        wr_cells_count(cells, WR_SPAN_CELLS);
    return span;
}

void wr_span_give(struct wr_cells *cells, uint32_t which, void *span)
{
    struct wr_shelf *shelf = &cells->shelf[which % WR_SHELVES];

    for (int i = 0; i < WR_SPANS_KEPT && !wr_cells_are_scarce(cells); i++) {
        void *none = NULL;
        if (!wr_load(&shelf->span[i], relaxed) && wr_cas(&shelf->span[i], &none, span, acq_rel))
            return;
    }
    wr_cells_count(cells, -WR_SPAN_CELLS);
    wr_os_free(span);
}

/* ---- all of them --------------------------------------------------------------------------------- */

bool wr_cells_walk(struct wr_cells *cells, struct wr_block **at, void **first, size_t *count)
{
    wr_lock(&cells->lock);
    *at = *at ? (*at)->next : cells->blocks;
    if (*at) {
        *first = (*at)->memory;
        *count = BLOCK / WR_CELL - (*at == cells->blocks ? cells->fresh_left : 0);
    }
    wr_unlock(&cells->lock);
    return *at != NULL;
}

void wr_cells_fini(struct wr_cells *cells)
{
    for (int i = 0; i < WR_SHELVES * WR_SPANS_KEPT; i++)
        wr_os_free(wr_load(&cells->shelf[i / WR_SPANS_KEPT].span[i % WR_SPANS_KEPT], relaxed));
    while (cells->blocks) {
        struct wr_block *block = cells->blocks;
        cells->blocks = block->next;
        wr_os_unmap(block->memory, BLOCK);
        wr_os_free(block);
    }
}
