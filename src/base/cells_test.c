/* Unit tests of cells and spans: what comes back serves again, and not all of it is kept.
 * SPDX-License-Identifier: MIT */
#include "base/cells.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SHELF = 5, KEPT = 16, MORE = 20 };

static uint32_t lent(const struct wr_cells *cells)
{
    return wr_load(&cells->lent, relaxed);
}

static void test_a_cell_that_came_back_is_the_next_one(void **state)
{
    struct wr_cells cells = { 0 };
    void *first = wr_cell_take(&cells, SHELF), *second = wr_cell_take(&cells, SHELF);

    (void)state;
    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
    assert_int_equal((uintptr_t)first % WR_CELL, 0);
    wr_cell_give(&cells, SHELF, first);
    assert_ptr_equal(wr_cell_take(&cells, SHELF), first);
    wr_cells_fini(&cells);
}

static void test_a_span_that_came_back_is_the_next_one(void **state)
{
    struct wr_cells cells = { 0 };
    void *span = wr_span_take(&cells, SHELF), *other;

    (void)state;
    assert_non_null(span);
    memset(span, 1, WR_SPAN_CELLS * WR_CELL - 8); /* all of it is ours */
    assert_int_equal(lent(&cells), WR_SPAN_CELLS);
    wr_span_give(&cells, SHELF, span);
    assert_int_equal(lent(&cells), WR_SPAN_CELLS); /* it lies on the shelf */
    assert_ptr_equal(wr_span_take(&cells, SHELF + WR_SHELVES), span);
    other = wr_span_take(&cells, SHELF);
    assert_ptr_not_equal(other, span);
    wr_span_give(&cells, SHELF, span);
    wr_span_give(&cells, SHELF, other);
    wr_cells_fini(&cells); /* which frees both, as ASan sees */
}

static void test_a_shelf_keeps_some_spans_only(void **state)
{
    struct wr_cells cells = { 0 };
    void *span[MORE];

    (void)state;
    for (int i = 0; i < MORE; i++)
        assert_non_null(span[i] = wr_span_take(&cells, SHELF));
    for (int i = 0; i < MORE; i++)
        wr_span_give(&cells, SHELF, span[i]);
    assert_int_equal(lent(&cells), KEPT * WR_SPAN_CELLS);
    for (int i = 0; i < KEPT; i++)
        assert_non_null(span[i] = wr_span_take(&cells, SHELF));
    assert_int_equal(lent(&cells), KEPT * WR_SPAN_CELLS);
    for (int i = 0; i < KEPT; i++)
        wr_span_give(&cells, SHELF, span[i]);
    wr_cells_fini(&cells);
}

static void test_no_span_is_kept_while_cells_are_scarce(void **state)
{
    struct wr_cells cells = { 0 };
    void *span = wr_span_take(&cells, SHELF);

    (void)state;
    assert_non_null(span);
    wr_cells_count(&cells, WR_LENT_FREELY);
    wr_span_give(&cells, SHELF, span);
    assert_int_equal(lent(&cells), WR_LENT_FREELY);
    wr_cells_fini(&cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cell_that_came_back_is_the_next_one),
        cmocka_unit_test(test_a_span_that_came_back_is_the_next_one),
        cmocka_unit_test(test_a_shelf_keeps_some_spans_only),
        cmocka_unit_test(test_no_span_is_kept_while_cells_are_scarce),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
