/* Unit tests of the queue of words in chunks: order, gaps and memory, beside an array that does the same.
 * SPDX-License-Identifier: MIT */
#include "base/queue.h"

#include "support/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ITEMS_MAX = 4000, STEPS = 200000, SHELF = 3 };

struct record {
    struct wr_queued queued; /* first: all that the queue knows of it */
    uint64_t number;
};

/* A queue and what should stand in it, in order: numbers, and the record of those that have one. */
struct world {
    struct wr_cells cells;
    struct wr_queue queue;
    uint64_t number[ITEMS_MAX];
    struct record *record[ITEMS_MAX];
    uint32_t items;
    uint64_t next;
    struct luck luck;
};

static void put(struct world *w, bool entry)
{
    unsigned words = entry ? WR_ENTRY_WORDS : WR_RECORD_WORDS;
    struct record *record = NULL;

    if (w->items == ITEMS_MAX)
        return;
    if (!wr_queue_has_room(&w->queue, words))
        assert_true(wr_queue_grow(&w->queue, &w->cells, SHELF));
    if (entry) {
        wr_queue_put_entry(&w->queue, w->next << 1 | 1, w->next, ~w->next, 3);
    } else {
        record = calloc(1, sizeof(*record));
        assert_non_null(record);
        record->number = w->next;
        wr_queue_put_record(&w->queue, &record->queued);
    }
    w->number[w->items] = w->next++;
    w->record[w->items++] = record;
}

static uint64_t number_at(const uint64_t *word)
{
    return wr_is_entry(*word) ? word[1] : ((struct record *)(uintptr_t)*word)->number;
}

static void forget(struct world *w, uint32_t i)
{
    free(w->record[i]);
    w->items--;
    memmove(&w->number[i], &w->number[i + 1], (w->items - i) * sizeof(w->number[0]));
    memmove(&w->record[i], &w->record[i + 1], (w->items - i) * sizeof(w->record[0]));
}

static void pop(struct world *w)
{
    uint64_t *first = wr_queue_at_head(&w->queue);

    if (!first && !wr_queue_is_empty(&w->queue))
        first = wr_queue_skip(&w->queue, &w->cells, SHELF);
    assert_int_equal(first != NULL, w->items > 0);
    if (!first)
        return;
    assert_int_equal(number_at(first), w->number[0]);
    wr_queue_pop(&w->queue, wr_words_at(first), wr_is_entry(*first));
    forget(w, 0);
}

static void remove_one(struct world *w)
{
    uint32_t i = w->items ? (uint32_t)luck_below(&w->luck, w->items) : 0;

    if (!w->items || !w->record[i])
        return;
    wr_queue_remove(&w->queue, &w->record[i]->queued, w->items - 1, &w->cells, SHELF);
    forget(w, i);
}

/* The n-th item, if it is an entry, becomes a record. */
static void make_record(struct world *w)
{
    uint32_t i = w->items ? (uint32_t)luck_below(&w->luck, w->items) : 0;
    struct wr_queue_place at = { 0 };
    uint64_t *word = NULL;

    if (!w->items || w->record[i])
        return;
    for (uint32_t n = 0; n <= i; n++)
        word = wr_queue_next(&w->queue, &at);
    w->record[i] = calloc(1, sizeof(*w->record[i]));
    assert_non_null(w->record[i]);
    w->record[i]->number = number_at(word);
    if (wr_queue_is_lone(&w->queue)) {
        assert_true(wr_queue_grow(&w->queue, &w->cells, SHELF));
        word = wr_queue_at_head(&w->queue);
    }
    wr_queue_to_record(&w->queue, word, &w->record[i]->queued);
}

static void compare(struct world *w)
{
    struct wr_queue_place at = { 0 };
    uint32_t items, i = 0;
    uint64_t *word;

    assert_true(wr_queue_is_valid(&w->queue, &items));
    assert_int_equal(items, w->items);
    assert_true(wr_queue_is_lone(&w->queue) || w->queue.gaps <= w->items);
    for (; (word = wr_queue_next(&w->queue, &at)); i++)
        assert_int_equal(number_at(word), w->number[i]);
    assert_int_equal(i, w->items);
}

static void empty(struct world *w)
{
    while (w->items)
        pop(w);
    wr_queue_fini(&w->queue, &w->cells, SHELF);
    assert_null(w->queue.first);
    wr_cells_fini(&w->cells);
    free(w);
}

static void test_items_keep_their_order_whatever_leaves_in_between(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    (void)state;
    assert_non_null(w);
    w->luck = luck_of(1);
    for (int step = 0; step < STEPS; step++) {
        bool empties = step / 5000 % 2; /* it fills, and empties again */
        switch (luck_below(&w->luck, 8)) {
        case 0:
        case 1:
            put(w, true);
            break;
        case 2:
            put(w, false);
            break;
        case 3:
            remove_one(w);
            break;
        case 4:
            make_record(w);
            break;
        default:
            if (empties)
                pop(w);
        }
        if (step % 97 == 0)
            compare(w);
    }
    compare(w);
    empty(w);
}

static void test_entries_are_copied_as_far_as_they_stand_together(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    uint64_t copies[8][WR_ENTRY_WORDS];

    (void)state;
    assert_non_null(w);
    put(w, true);
    put(w, true);
    assert_int_equal(wr_queue_copy_entries(&w->queue, copies, 8), 2); /* a cell has room for two */
    assert_int_equal(copies[1][1], 1);
    assert_int_equal(wr_queue_copy_entries(&w->queue, copies, 1), 1);
    for (int i = 0; i < 3; i++)
        put(w, true);
    assert_int_equal(wr_queue_copy_entries(&w->queue, copies, 8), 2);
    pop(w);
    pop(w);
    assert_non_null(wr_queue_skip(&w->queue, &w->cells, SHELF));
    put(w, false);
    put(w, true);
    assert_int_equal(wr_queue_copy_entries(&w->queue, copies, 8), 3);
    assert_int_equal(copies[0][1], 2);
    empty(w);
}

static void test_an_entry_that_is_unput_leaves_no_trace(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    uint32_t items;

    (void)state;
    assert_non_null(w);
    put(w, true);
    wr_queue_unput(&w->queue, WR_ENTRY_WORDS);
    assert_true(wr_queue_is_valid(&w->queue, &items));
    assert_int_equal(items, 0);
    w->items = 0;
    empty(w);
}

/* As the queue of a group whose tasks come one by one. */
static void test_one_entry_needs_no_memory(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    uint64_t copies[8][WR_ENTRY_WORDS];

    (void)state;
    assert_non_null(w);
    for (int i = 0; i < 100; i++) {
        put(w, true);
        compare(w);
        assert_int_equal(wr_queue_entries(&w->queue), 1);
        assert_int_equal(wr_queue_copy_entries(&w->queue, copies, 8), 1);
        assert_int_equal(copies[0][1], i);
        pop(w);
        assert_true(wr_queue_is_empty(&w->queue));
        assert_int_equal(wr_queue_entries(&w->queue), 0);
    }
    assert_int_equal(atomic_load(&w->cells.lent), 0);
    put(w, true);
    put(w, true); /* which has both in a chunk */
    compare(w);
    assert_int_equal(wr_queue_entries(&w->queue), 2);
    assert_int_not_equal(atomic_load(&w->cells.lent), 0);
    empty(w);
}

static void test_a_record_stands_in_a_chunk_also_if_it_is_the_first(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    (void)state;
    assert_non_null(w);
    put(w, false);
    put(w, true);
    compare(w);
    empty(w);
}

/* A walk makes records of the entries that it passes. */
static void test_a_lone_entry_that_becomes_a_record_is_passed_once(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct wr_queue_place at = { 0 };

    (void)state;
    assert_non_null(w);
    w->luck = luck_of(1);
    put(w, true);
    assert_non_null(wr_queue_next(&w->queue, &at));
    make_record(w);
    assert_null(wr_queue_next(&w->queue, &at));
    compare(w);
    at = (struct wr_queue_place){ 0 };
    pop(w);
    wr_queue_fini(&w->queue, &w->cells, SHELF);
    put(w, true);
    assert_non_null(wr_queue_next(&w->queue, &at));
    make_record(w);
    put(w, true);
    assert_int_equal(number_at(wr_queue_next(&w->queue, &at)), w->number[1]);
    assert_null(wr_queue_next(&w->queue, &at));
    empty(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_keep_their_order_whatever_leaves_in_between),
        cmocka_unit_test(test_entries_are_copied_as_far_as_they_stand_together),
        cmocka_unit_test(test_an_entry_that_is_unput_leaves_no_trace),
        cmocka_unit_test(test_one_entry_needs_no_memory),
        cmocka_unit_test(test_a_record_stands_in_a_chunk_also_if_it_is_the_first),
        cmocka_unit_test(test_a_lone_entry_that_becomes_a_record_is_passed_once),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
