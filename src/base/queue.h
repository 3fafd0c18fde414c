/* A queue of words in chunks, in the order of arrival. There are no links: order is position.
 *
 * A queue holds these, told apart by their first word:
 *     an entry   three words, the first of them odd: an item by itself
 *     a record   one word: the address of a struct that begins with the address of that word
 *     a gap      one word, WR_GAP: where a record was that left
 *     padding    one word, WR_PAD: left over at the end of a chunk, or of an entry that became a record
 * Entries and records are items. A queue without chunks has room for one entry all the same: a lone entry lies in the queue's own
 * three words, the first of which is odd then (wr_queue_is_lone), until another item comes or the entry becomes a record. So a
 * queue that never has more than one entry needs no chunk.
 *
 * No threads: the caller serialises. At rest, unless it is lone (wr_queue_is_valid):
 *     entries == entries from head to tail
 *     gaps    == words WR_GAP from head to tail, fewer than WR_GAPS_MAX
 *     gaps    <= items that the caller names in wr_queue_remove: a queue with more is packed
 *     first == NULL  <=>  last == NULL: the queue has no memory
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_QUEUE_H
#define WR_BASE_QUEUE_H

#include "base/assert.h"
#include "base/cells.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum { WR_GAP = 2, WR_PAD = 4, WR_ENTRY_WORDS = 3, WR_RECORD_WORDS = 1, WR_GAPS_MAX = 16383 };

struct wr_chunk {
    uintptr_t next; /* and in the lowest bits: how large this one is, see wr_chunk_room */
    uint64_t word[];
};

struct wr_queue {
    union {
        struct { /* fields that putting an item writes come first */
            struct wr_chunk *last;
            uint32_t tail : 9, head : 9; /* in the last chunk, and in the first */
            uint32_t gaps : 14;
            uint32_t entries;
            struct wr_chunk *first;
        };
        uint64_t lone[WR_ENTRY_WORDS];
    };
};
static_assert(sizeof(struct wr_queue) == WR_ENTRY_WORDS * sizeof(uint64_t), "an entry fits in");
static_assert(sizeof(void *) == 8 || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the lowest bit of `last` is that of the first word");

/* A record as a queue knows it. */
struct wr_queued {
    uint64_t *place; /* its word */
};

static inline bool wr_is_entry(uint64_t word)
{
    return word & 1;
}

static inline bool wr_is_item(uint64_t word)
{
    return word != WR_GAP && word != WR_PAD;
}

static inline unsigned wr_words_at(const uint64_t *item)
{
    return wr_is_entry(*item) ? WR_ENTRY_WORDS : WR_RECORD_WORDS;
}

/* How many words a chunk has: whole entries only. With its first word, and the one that malloc keeps, or that a cell's owner
 * may mark, it takes 64, 256, 1024 or 4096 bytes. The first chunk of a queue is a cell, each further one larger. */
static inline unsigned wr_chunk_room(const struct wr_chunk *chunk)
{
    static const uint16_t room[] = { 6, 30, 126, 510 };

    return room[chunk->next & 3];
}

/* Whether a single entry stands in it, without a chunk. */
static inline bool wr_queue_is_lone(const struct wr_queue *queue)
{
    return wr_is_entry(queue->lone[0]);
}

/* How many entries stand in it. */
static inline uint32_t wr_queue_entries(const struct wr_queue *queue)
{
    return wr_queue_is_lone(queue) ? 1 : queue->entries;
}

/* ---- at the end -------------------------------------------------------------------------------- */

/* Whether so many words can be put; if not, wr_queue_grow must make room. */
static inline bool wr_queue_has_room(const struct wr_queue *queue, unsigned words)
{
    if (WR_UNLIKELY(!queue->last || wr_queue_is_lone(queue)))
        return !queue->last && words == WR_ENTRY_WORDS;
    return queue->tail + words <= wr_chunk_room(queue->last);
}

/* Adds a chunk; a lone entry moves into it. False: no memory. */
bool wr_queue_grow(struct wr_queue *queue, struct wr_cells *cells, uint32_t shelf);

/* A chunk's cache lines were last read by another CPU, so putting an entry asks for the line of a later one: of the third
 * from it, or, as long as entries come at once after each other, of the sixteenth. */
enum { WR_QUEUE_AHEAD = 3, WR_QUEUE_FAR_AHEAD = 16 };

static inline void wr_queue_ask_ahead(struct wr_queue *queue, uint64_t *word, unsigned entries)
{
    if (queue->tail + (entries - 1) * WR_ENTRY_WORDS <= wr_chunk_room(queue->last))
        wr_prefetch_to_write(&word[entries * WR_ENTRY_WORDS - 1]);
}

/* Puts an entry; there is room. `first` is odd; if it is less than `at_once` more than that of the entry just before, the two come
 * at once. */
static inline void wr_queue_put_entry(struct wr_queue *queue, uint64_t first, uint64_t second,
                                      uint64_t third, uint64_t at_once)
{
    bool lone = !queue->last, runs;
    uint64_t *word = WR_UNLIKELY(lone) ? queue->lone : &queue->last->word[queue->tail];

    word[0] = first;
    word[1] = second;
    word[2] = third;
    if (WR_UNLIKELY(lone))
        return;
    runs = queue->tail >= WR_ENTRY_WORDS && first - word[-WR_ENTRY_WORDS] < at_once;
    queue->tail += WR_ENTRY_WORDS;
    wr_queue_ask_ahead(queue, word, runs ? WR_QUEUE_FAR_AHEAD : WR_QUEUE_AHEAD);
    queue->entries++;
}

/* Puts a record; there is room. */
static inline void wr_queue_put_record(struct wr_queue *queue, struct wr_queued *record)
{
    record->place = &queue->last->word[queue->tail++];
    *record->place = (uint64_t)(uintptr_t)record;
}

/* Takes back the item that was put last, which has so many words. */
static inline void wr_queue_unput(struct wr_queue *queue, unsigned words)
{
    if (wr_queue_is_lone(queue)) {
        *queue = (struct wr_queue){ 0 };
        return;
    }
    queue->tail -= words;
    queue->entries -= words == WR_ENTRY_WORDS;
}

/* ---- at the head -------------------------------------------------------------------------------- */

/* The first item, if it is where the queue begins; NULL: there is none, or gaps and used chunks are to be skipped. */
static inline uint64_t *wr_queue_at_head(struct wr_queue *queue)
{
    struct wr_chunk *first = queue->first;
    unsigned end;

    if (WR_UNLIKELY(wr_queue_is_lone(queue)))
        return queue->lone;
    if (!first)
        return NULL;
    end = first == queue->last ? queue->tail : wr_chunk_room(first);
    if (WR_LIKELY(queue->head < end && wr_is_item(first->word[queue->head])))
        return &first->word[queue->head];
    return NULL;
}

static inline bool wr_queue_is_empty(const struct wr_queue *queue)
{
    return !wr_queue_is_lone(queue) && queue->first == queue->last && queue->head == queue->tail;
}

/* The first item, after gaps and used chunks are skipped; NULL: the queue is empty. */
uint64_t *wr_queue_skip(struct wr_queue *queue, struct wr_cells *cells, uint32_t shelf);

/* So many items leave, all of them where the queue begins and in its first chunk: that many words. */
static inline void wr_queue_pop(struct wr_queue *queue, unsigned words, uint32_t entries)
{
    if (WR_UNLIKELY(wr_queue_is_lone(queue))) {
        *queue = (struct wr_queue){ 0 };
        return;
    }
    queue->head += words;
    queue->entries -= entries;
    if (wr_queue_is_empty(queue))
        queue->head = queue->tail = 0;
}

/* Copies entries that stand first, at most so many, and as far as they are in the first chunk. Answers how many. */
uint32_t wr_queue_copy_entries(const struct wr_queue *queue, uint64_t (*to)[WR_ENTRY_WORDS],
                               uint32_t most);

/* ---- in between --------------------------------------------------------------------------------- */

/* A record leaves, wherever it stands. `items` are left in this queue and those that it shares its memory with. */
void wr_queue_remove(struct wr_queue *queue, struct wr_queued *record, uint32_t items,
                     struct wr_cells *cells, uint32_t shelf);

/* An entry, which is not lone, becomes a record in its place. */
void wr_queue_to_record(struct wr_queue *queue, uint64_t *entry, struct wr_queued *record);

/* Walks over all items in order: `at` is zero at first. NULL: no more items. A lone entry that was passed may become a record. */
struct wr_queue_place {
    struct wr_chunk *chunk;
    unsigned index;
};
uint64_t *wr_queue_next(struct wr_queue *queue, struct wr_queue_place *at);

/* Gives back the memory of an empty queue. */
void wr_queue_fini(struct wr_queue *queue, struct wr_cells *cells, uint32_t shelf);

/* Whether the equations above hold; *items: how many items there are. Slow. */
bool wr_queue_is_valid(const struct wr_queue *queue, uint32_t *items);

#endif
