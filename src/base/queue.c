/* Words in chunks; see queue.h.
 * SPDX-License-Identifier: MIT */
#include "base/queue.h"

#include "base/os.h"

#include <assert.h>
#include <string.h>

/* ---- chunks ------------------------------------------------------------------------------------ */

enum { CLASS_MASK = 3, CLASS_MAX = 3 };

static unsigned class_of(const struct wr_chunk *chunk)
{
    return chunk->next & CLASS_MASK;
}

static struct wr_chunk *next_of(const struct wr_chunk *chunk)
{
    return (struct wr_chunk *)(chunk->next & ~(uintptr_t)CLASS_MASK);
}

static size_t cells_of(unsigned class)
{
    return (size_t)1 << 2 * class;
}
static_assert((1 << 2 * CLASS_MAX) == WR_SPAN_CELLS, "the largest chunk is a span");

/* The smallest is a cell, of which the last eight bytes are not used; the largest is a span. */
static struct wr_chunk *chunk_new(struct wr_cells *cells, uint32_t shelf, unsigned class)
{
    size_t size = cells_of(class) * WR_CELL - sizeof(uint64_t);
    struct wr_chunk *chunk = class == CLASS_MAX ? wr_span_take(cells, shelf)
                             : class            ? wr_os_alloc_raw(size)
                                                : wr_cell_take(cells, shelf);

    if (!chunk)
        return NULL;
    if (class && class < CLASS_MAX)
        wr_cells_count(cells, (int32_t)cells_of(class));
    chunk->next = class;
    return chunk;
}

static void chunk_free(struct wr_chunk *chunk, struct wr_cells *cells, uint32_t shelf)
{
    unsigned class = class_of(chunk);

    if (class == CLASS_MAX) {
        wr_span_give(cells, shelf, chunk);
    } else if (class) {
        wr_cells_count(cells, -(int32_t)cells_of(class));
        wr_os_free(chunk);
    } else {
        wr_cell_give(cells, shelf, chunk);
    }
}

/* ---- at the end -------------------------------------------------------------------------------- */

/* Fills the rest of the last chunk, which cannot be used, with padding. */
static void fill_up(struct wr_queue *queue)
{
    while (queue->tail < wr_chunk_room(queue->last))
        queue->last->word[queue->tail++] = WR_PAD;
}

bool wr_queue_grow(struct wr_queue *queue, struct wr_cells *cells, uint32_t shelf)
{
    struct wr_queue was = *queue;
    struct wr_chunk *last = wr_queue_is_lone(queue) ? NULL : queue->last, *chunk;
    unsigned class = !last ? 0 : class_of(last) < CLASS_MAX ? class_of(last) + 1 : CLASS_MAX;

    chunk = chunk_new(cells, shelf, class);
    if (!chunk)
        return false;
    if (last) {
        fill_up(queue);
        last->next |= (uintptr_t)chunk;
    } else {
        *queue = (struct wr_queue){ .first = chunk };
    }
    queue->last = chunk;
    queue->tail = 0;
    if (wr_queue_is_lone(&was))
        wr_queue_put_entry(queue, was.lone[0], was.lone[1], was.lone[2], 0);
    return true;
}

/* ---- at the head -------------------------------------------------------------------------------- */

/* Frees the first chunk, in which no item is left. */
static void drop_first(struct wr_queue *queue, struct wr_cells *cells, uint32_t shelf)
{
    struct wr_chunk *first = queue->first;

    queue->first = next_of(first);
    queue->head = 0;
    chunk_free(first, cells, shelf);
}

uint64_t *wr_queue_skip(struct wr_queue *queue, struct wr_cells *cells, uint32_t shelf)
{
    for (;;) {
        if (wr_queue_is_empty(queue)) {
            queue->head = queue->tail = 0;
            return NULL;
        }
        if (queue->head == wr_chunk_room(queue->first)) {
            drop_first(queue, cells, shelf);
            continue;
        }
        uint64_t *word = &queue->first->word[queue->head];
        if (wr_is_item(*word))
            return word;
        queue->head++;
        queue->gaps -= *word == WR_GAP;
    }
}

uint32_t wr_queue_copy_entries(const struct wr_queue *queue, uint64_t (*to)[WR_ENTRY_WORDS],
                               uint32_t most)
{
    const uint64_t *word;
    unsigned at = queue->head, end;
    uint32_t count = 0;

    if (wr_queue_is_lone(queue)) {
        memcpy(to, queue->lone, sizeof(to[0]));
        return 1;
    }
    word = queue->first->word;
    end = queue->first == queue->last ? queue->tail : wr_chunk_room(queue->first);
    for (; count < most && at + WR_ENTRY_WORDS <= end && wr_is_entry(word[at]); count++)
        at += WR_ENTRY_WORDS;
    memcpy(to, &word[queue->head], count * sizeof(to[0]));
    return count;
}

/* ---- in between --------------------------------------------------------------------------------- */

uint64_t *wr_queue_next(struct wr_queue *queue, struct wr_queue_place *at)
{
    bool passed = !at->chunk && at->index; /* the first item, when it was a lone entry */

    if (wr_queue_is_lone(queue)) {
        at->index = WR_ENTRY_WORDS;
        return passed ? NULL : queue->lone;
    }
    if (!at->chunk)
        *at = (struct wr_queue_place){ queue->first, queue->head };
    if (passed && at->chunk)
        at->index += wr_words_at(&at->chunk->word[at->index]);
    while (at->chunk) {
        unsigned end = at->chunk == queue->last ? queue->tail : wr_chunk_room(at->chunk);
        while (at->index < end) {
            uint64_t *word = &at->chunk->word[at->index];
            at->index += wr_words_at(word);
            if (wr_is_item(*word))
                return word;
        }
        if (at->chunk == queue->last)
            return NULL;
        *at = (struct wr_queue_place){ next_of(at->chunk), 0 };
    }
    return NULL;
}

static struct wr_queued *record_at(const uint64_t *word)
{
    return (struct wr_queued *)(uintptr_t)*word;
}

/* Puts the next item while a queue is packed: never behind where it was. */
static void put_packed(struct wr_queue *to, const uint64_t *from)
{
    unsigned words = wr_words_at(from);
    uint64_t *word;

    if (to->tail + words > wr_chunk_room(to->last)) {
        fill_up(to);
        to->last = next_of(to->last);
        to->tail = 0;
    }
    word = &to->last->word[to->tail];
    for (unsigned i = 0; i < words; i++)
        word[i] = from[i];
    to->tail += words;
    to->entries += words == WR_ENTRY_WORDS;
    if (words == WR_RECORD_WORDS)
        record_at(word)->place = word;
}

/* Moves all items up, within the memory that is there; chunks that are left over are freed. */
static void pack(struct wr_queue *queue, struct wr_cells *cells, uint32_t shelf)
{
    struct wr_queue packed = { .first = queue->first, .last = queue->first };
    struct wr_queue_place at = { 0 };
    struct wr_chunk *rest, *next;
    uint64_t *word;

    while ((word = wr_queue_next(queue, &at)))
        put_packed(&packed, word);
    rest = packed.last == queue->last ? NULL : next_of(packed.last);
    packed.last->next &= CLASS_MASK;
    *queue = packed;
    for (; rest; rest = next) {
        next = next_of(rest);
        chunk_free(rest, cells, shelf);
    }
}

void wr_queue_remove(struct wr_queue *queue, struct wr_queued *record, uint32_t items,
                     struct wr_cells *cells, uint32_t shelf)
{
    *record->place = WR_GAP;
    queue->gaps++;
    if (queue->gaps > items || queue->gaps == WR_GAPS_MAX)
        pack(queue, cells, shelf);
}

void wr_queue_to_record(struct wr_queue *queue, uint64_t *entry, struct wr_queued *record)
{
    record->place = entry;
    entry[0] = (uint64_t)(uintptr_t)record;
    entry[1] = entry[2] = WR_PAD;
    queue->entries--;
}

void wr_queue_fini(struct wr_queue *queue, struct wr_cells *cells, uint32_t shelf)
{
    struct wr_chunk *chunk = queue->first, *next;

    WR_ASSERT(!wr_queue_is_lone(queue));
    for (; chunk; chunk = next) {
        next = next_of(chunk);
        chunk_free(chunk, cells, shelf);
    }
    *queue = (struct wr_queue){ 0 };
}

bool wr_queue_is_valid(const struct wr_queue *queue, uint32_t *items)
{
    uint32_t gaps = 0, entries = 0;

    *items = wr_queue_is_lone(queue);
    if (*items)
        return true;
    for (struct wr_chunk *chunk = queue->first; chunk; chunk = next_of(chunk)) {
        unsigned at = chunk == queue->first ? queue->head : 0;
        unsigned end = chunk == queue->last ? queue->tail : wr_chunk_room(chunk);
        while (at < end) {
            uint64_t *word = &chunk->word[at];
            gaps += *word == WR_GAP;
            entries += wr_is_entry(*word);
            *items += wr_is_item(*word);
            if (wr_is_item(*word) && !wr_is_entry(*word) && record_at(word)->place != word)
                return false;
            at += wr_words_at(word);
        }
        if (at != end || (!next_of(chunk) && chunk != queue->last))
            return false;
    }
    return gaps == queue->gaps && entries == queue->entries && !queue->first == !queue->last;
}
