/* Unit tests of cells and spans: what comes back serves again, and not all of it is kept.
 * SPDX-License-Identifier: MIT */
#include "base/cells.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

enum { SHELF = 5, KEPT = WR_SPANS_KEPT, MORE = KEPT + 4 };

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

/* Takes spans, marks them from end to end, and gives them back: no other thread has them meanwhile. */
static void *mark_spans(void *cells_arg)
{
    struct wr_cells *cells = cells_arg;
    const size_t words = WR_SPAN_CELLS * WR_CELL / sizeof(uintptr_t) - 1;
    uintptr_t *span[3], mark = (uintptr_t)&mark;

    for (int times = 0; times < 3000; times++) {
        for (int i = 0; i < 3; i++) {
            span[i] = wr_span_take(cells, SHELF);
            span[i][0] = span[i][words - 1] = mark + (uintptr_t)i;
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(span[i][0], mark + (uintptr_t)i);
            assert_int_equal(span[i][words - 1], mark + (uintptr_t)i);
            wr_span_give(cells, SHELF, span[i]);
        }
    }
    return NULL;
}

static void test_no_two_threads_have_the_same_span(void **state)
{
    struct wr_cells cells = { 0 };
    pthread_t thread[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, mark_spans, &cells), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_true(lent(&cells) <= 4 * 3 * WR_SPAN_CELLS);
    wr_cells_fini(&cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cell_that_came_back_is_the_next_one),
        cmocka_unit_test(test_a_span_that_came_back_is_the_next_one),
        cmocka_unit_test(test_a_shelf_keeps_some_spans_only),
        cmocka_unit_test(test_no_span_is_kept_while_cells_are_scarce),
        cmocka_unit_test(test_no_two_threads_have_the_same_span),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
