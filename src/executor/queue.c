/* A group's queue; see queue.h.
 * SPDX-License-Identifier: MIT */
#include "executor/queue.h"

#include "base/assert.h"
#include "base/os.h"
#include "executor/settle.h"
#include "executor/state.h"

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

/* The smallest is a cell, and its last eight bytes are not used: they say that it is no record. */
static struct wr_chunk *chunk_new(struct weir_group *group, unsigned class)
{
    struct wr_cells *cells = &group->executor->cells;
    struct wr_chunk *chunk = class ? wr_os_alloc_raw(cells_of(class) * WR_CELL - sizeof(uint64_t))
                                   : wr_cell_take(cells, group->hash);

    if (!chunk)
        return NULL;
    if (class)
        wr_cells_count(cells, (int32_t)cells_of(class));
    chunk->next = class;
    return chunk;
}

static void chunk_free(struct weir_group *group, struct wr_chunk *chunk)
{
    struct wr_cells *cells = &group->executor->cells;
    unsigned class = class_of(chunk);

    if (!class) {
        wr_cell_give(cells, group->hash, chunk);
        return;
    }
    wr_cells_count(cells, -(int32_t)cells_of(class));
    wr_os_free(chunk);
}

/* ---- at the end -------------------------------------------------------------------------------- */

/* What is left of the last chunk cannot be used. */
static void fill_up(struct wr_queue *queue)
{
    while (queue->tail < wr_chunk_room(queue->last))
        queue->last->word[queue->tail++] = WR_PAD;
}

bool wr_queue_grow(struct weir_group *group, struct wr_queue *queue)
{
    struct wr_chunk *last = queue->last, *chunk;
    unsigned class = !last ? 0 : class_of(last) < CLASS_MAX ? class_of(last) + 1 : CLASS_MAX;

    chunk = chunk_new(group, class);
    if (!chunk)
        return false;
    if (last) {
        fill_up(queue);
        last->next |= (uintptr_t)chunk;
    } else {
        queue->first = chunk;
        queue->head = 0;
    }
    queue->last = chunk;
    queue->tail = 0;
    return true;
}

void wr_queue_put_record(struct wr_queue *queue, struct weir_task *task)
{
    uint64_t *word = &queue->last->word[queue->tail++];

    *word = (uint64_t)(uintptr_t)task;
    task->place = word;
}

/* ---- at the head -------------------------------------------------------------------------------- */

/* Nothing is left in the first chunk. */
static void drop_first(struct weir_group *group, struct wr_queue *queue)
{
    struct wr_chunk *first = queue->first;

    queue->first = next_of(first);
    queue->head = 0;
    chunk_free(group, first);
}

uint64_t *wr_queue_skip(struct weir_group *group, struct wr_queue *queue)
{
    for (;;) {
        if (queue->first == queue->last && queue->head == queue->tail) {
            queue->head = queue->tail = 0;
            return NULL;
        }
        if (queue->head == wr_chunk_room(queue->first)) {
            drop_first(group, queue);
            continue;
        }
        uint64_t *word = &queue->first->word[queue->head];
        if (wr_is_task(*word))
            return word;
        queue->head++;
        queue->gaps -= *word == WR_GAP;
    }
}

uint32_t wr_queue_copy_entries(const struct wr_queue *queue, uint64_t (*to)[WR_ENTRY_WORDS],
                               uint32_t most)
{
    const uint64_t *word = queue->first->word;
    unsigned at = queue->head, end;
    uint32_t count = 0;

    end = queue->first == queue->last ? queue->tail : wr_chunk_room(queue->first);
    for (; count < most && at + WR_ENTRY_WORDS <= end && wr_is_entry(word[at]); count++)
        at += WR_ENTRY_WORDS;
    memcpy(to, &word[queue->head], count * sizeof(to[0]));
    return count;
}

/* ---- in between --------------------------------------------------------------------------------- */

uint64_t *wr_queue_next(const struct wr_queue *queue, struct wr_queue_place *at)
{
    if (!at->chunk)
        *at = (struct wr_queue_place){ queue->first, queue->head };
    while (at->chunk) {
        unsigned end = at->chunk == queue->last ? queue->tail : wr_chunk_room(at->chunk);
        while (at->index < end) {
            uint64_t *word = &at->chunk->word[at->index];
            at->index += wr_is_entry(*word) ? WR_ENTRY_WORDS : WR_RECORD_WORDS;
            if (wr_is_task(*word))
                return word;
        }
        if (at->chunk == queue->last)
            return NULL;
        *at = (struct wr_queue_place){ next_of(at->chunk), 0 };
    }
    return NULL;
}

/* Where the next task is put while a queue is packed: never behind where it was. */
static void put_packed(struct wr_queue *to, const uint64_t *from)
{
    unsigned words = wr_is_entry(*from) ? WR_ENTRY_WORDS : WR_RECORD_WORDS;
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
        wr_record_at(word)->place = word;
}

/* All tasks move up, within the memory that is there; what is over is freed. */
static void pack(struct weir_group *group, struct wr_queue *queue)
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
        chunk_free(group, rest);
    }
}

void wr_queue_remove(struct weir_group *group, struct wr_queue *queue, struct weir_task *task)
{
    *task->place = WR_GAP;
    queue->gaps++;
    if (queue->gaps > group->sums.queued || queue->gaps == WR_GAPS_MAX)
        pack(group, queue);
}

struct weir_task *wr_queue_make_record(struct weir_group *group, struct wr_queue *queue,
                                       uint64_t *entry)
{
    struct weir_task *task = wr_task_alloc(group, 1);

    if (!task)
        return NULL;
    group->submitted++; /* as an entry it was counted by standing here */
    task->fn = wr_entry_fn(entry);
    task->u.arg = wr_entry_arg(entry);
    task->queued_at = wr_entry_time(entry);
    task->place = entry;
    wr_task_set_phase(task, WR_PHASE_QUEUED);
    entry[0] = (uint64_t)(uintptr_t)task;
    entry[1] = entry[2] = WR_PAD;
    queue->entries--;
    return task;
}

void wr_queue_fini(struct weir_group *group, struct wr_queue *queue)
{
    struct wr_chunk *chunk = queue->first, *next;

    for (; chunk; chunk = next) {
        next = next_of(chunk);
        chunk_free(group, chunk);
    }
    *queue = (struct wr_queue){ 0 };
}

bool wr_queue_is_valid(const struct wr_queue *queue, uint32_t *tasks)
{
    uint32_t gaps = 0, entries = 0;

    *tasks = 0;
    for (struct wr_chunk *chunk = queue->first; chunk; chunk = next_of(chunk)) {
        unsigned at = chunk == queue->first ? queue->head : 0;
        unsigned end = chunk == queue->last ? queue->tail : wr_chunk_room(chunk);
        while (at < end) {
            uint64_t *word = &chunk->word[at];
            gaps += *word == WR_GAP;
            entries += wr_is_entry(*word);
            *tasks += wr_is_task(*word);
            if (wr_is_task(*word) && !wr_is_entry(*word) && wr_record_at(word)->place != word)
                return false;
            at += wr_is_entry(*word) ? WR_ENTRY_WORDS : WR_RECORD_WORDS;
        }
        if (at != end || (!next_of(chunk) && chunk != queue->last))
            return false;
    }
    return gaps == queue->gaps && entries == queue->entries && !queue->first == !queue->last;
}
