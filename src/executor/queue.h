/* A group's queue: words in chunks, in the order of arrival. There are no links: order is position.
 *
 * What stands there, from its first word on:
 *     an entry   three words: when it was submitted, times two, plus one; the function; the argument. A task without
 *                handle, options, locals or deadline is no more than this until it starts.
 *     a record   one word: the address of the task's record, which knows where that word is
 *     a gap      one word, WR_GAP: where a record was that left
 *     padding    one word, WR_PAD: what is left over at the end of a chunk, or of an entry that became a record
 *
 * All under the group's lock. At rest:
 *     entries == entries from head to tail
 *     gaps    == words WR_GAP from head to tail, fewer than WR_GAPS_MAX
 *     gaps    <= tasks that wait in the group: a queue with more is packed
 *     first == NULL  <=>  last == NULL: the queue has no memory
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_QUEUE_H
#define WR_EXECUTOR_QUEUE_H

#include "base/assert.h"

#include <stdbool.h>
#include <stdint.h>
#include <weir/task.h>

struct weir_group;
struct weir_task;

enum { WR_GAP = 2, WR_PAD = 4, WR_ENTRY_WORDS = 3, WR_RECORD_WORDS = 1, WR_GAPS_MAX = 16383 };

struct wr_chunk {
    uintptr_t next; /* and in the lowest bits: how large this one is, see wr_chunk_room */
    uint64_t word[];
};

struct wr_queue { /* in the order of use: see struct weir_group */
    struct wr_chunk *last;
    uint32_t tail : 9, head : 9; /* in the last chunk, and in the first */
    uint32_t gaps : 14;
    uint32_t entries;
    struct wr_chunk *first;
};

static inline bool wr_is_entry(uint64_t word)
{
    return word & 1;
}

static inline bool wr_is_task(uint64_t word)
{
    return word != WR_GAP && word != WR_PAD;
}

static inline struct weir_task *wr_record_at(const uint64_t *word)
{
    return wr_is_entry(*word) ? NULL : (struct weir_task *)(uintptr_t)*word;
}

static inline weir_time wr_entry_time(const uint64_t *word)
{
    return (weir_time)(word[0] >> 1);
}

static inline weir_fn *wr_entry_fn(const uint64_t *word)
{
    return (weir_fn *)(uintptr_t)word[1];
}

static inline void *wr_entry_arg(const uint64_t *word)
{
    return (void *)(uintptr_t)word[2];
}

/* How many words a chunk has: whole entries only. With its first word, and the one that malloc keeps, or that says of a cell
 * that it is no record, it takes 64, 256, 1024 or 4096 bytes. */
static inline unsigned wr_chunk_room(const struct wr_chunk *chunk)
{
    static const uint16_t room[] = { 6, 30, 126, 510 };

    return room[chunk->next & 3];
}

/* ---- at the end -------------------------------------------------------------------------------- */

bool wr_queue_grow(struct weir_group *group, struct wr_queue *queue);

/* Makes sure that so many words can be put. False: there is no memory. */
static inline bool wr_queue_make_room(struct weir_group *group, struct wr_queue *queue,
                                      unsigned words)
{
    return (WR_LIKELY(queue->last != NULL) && queue->tail + words <= wr_chunk_room(queue->last)) ||
           wr_queue_grow(group, queue);
}

/* There is room. */
static inline void wr_queue_put_entry(struct wr_queue *queue, weir_time now, weir_fn *fn, void *arg)
{
    uint64_t *word = &queue->last->word[queue->tail];

    word[0] = (uint64_t)now << 1 | 1;
    word[1] = (uint64_t)(uintptr_t)fn;
    word[2] = (uint64_t)(uintptr_t)arg;
    queue->tail += WR_ENTRY_WORDS;
    queue->entries++;
}

void wr_queue_put_record(struct wr_queue *queue, struct weir_task *task);

/* What was put last, and is of so many words, was not put. */
static inline void wr_queue_unput(struct wr_queue *queue, unsigned words)
{
    queue->tail -= words;
    queue->entries -= words == WR_ENTRY_WORDS;
}

/* ---- at the head -------------------------------------------------------------------------------- */

uint64_t *wr_queue_skip(struct weir_group *group, struct wr_queue *queue);

/* The first task's first word; NULL: there is none. */
static inline uint64_t *wr_queue_first(struct weir_group *group, struct wr_queue *queue)
{
    struct wr_chunk *first = queue->first;
    bool only = first == queue->last;
    unsigned end;

    if (!first)
        return NULL;
    end = only ? queue->tail : wr_chunk_room(first);
    if (WR_LIKELY(queue->head < end && wr_is_task(first->word[queue->head])))
        return &first->word[queue->head];
    return only && queue->head == end ? NULL : wr_queue_skip(group, queue);
}

/* The first task leaves, whose word that is; or so many entries, all of them in the first chunk. */
static inline void wr_queue_pop_words(struct wr_queue *queue, unsigned words, uint32_t entries)
{
    queue->head += words;
    queue->entries -= entries;
    if (queue->head == queue->tail && queue->first == queue->last)
        queue->head = queue->tail = 0;
}

static inline void wr_queue_pop(struct wr_queue *queue, const uint64_t *first)
{
    bool entry = wr_is_entry(*first);

    wr_queue_pop_words(queue, entry ? WR_ENTRY_WORDS : WR_RECORD_WORDS, entry);
}

static inline void wr_queue_pop_entries(struct wr_queue *queue, uint32_t count)
{
    wr_queue_pop_words(queue, count * WR_ENTRY_WORDS, count);
}

/* Copies entries that stand first, at most so many, and as far as they are in the first chunk. Answers how many. */
uint32_t wr_queue_copy_entries(const struct wr_queue *queue, uint64_t (*to)[WR_ENTRY_WORDS],
                               uint32_t most);

/* ---- in between --------------------------------------------------------------------------------- */

/* A record leaves from wherever it stands. */
void wr_queue_remove(struct weir_group *group, struct wr_queue *queue, struct weir_task *task);

/* Makes an entry a record; NULL without memory. */
struct weir_task *wr_queue_make_record(struct weir_group *group, struct wr_queue *queue,
                                       uint64_t *entry);

/* All tasks in order: `at` is zero at first. NULL: that was the last. */
struct wr_queue_place {
    struct wr_chunk *chunk;
    unsigned index;
};
uint64_t *wr_queue_next(const struct wr_queue *queue, struct wr_queue_place *at);

/* Gives back the memory of an empty queue. */
void wr_queue_fini(struct weir_group *group, struct wr_queue *queue);

/* The equations above; slow. */
bool wr_queue_is_valid(const struct wr_queue *queue, uint32_t *tasks);

#endif
