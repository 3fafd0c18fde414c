/* Records of tasks in chunks that are mapped, aligned and only touched as they are used.
 * SPDX-License-Identifier: MIT */
#include "executor/pool.h"

#include "base/os.h"
#include "executor/task.h"

enum { CHUNK = 1 << 20 };

struct wr_chunk {
    struct wr_chunk *next;
    void *memory;
};

static bool grow(struct wr_task_pool *pool)
{
    struct wr_chunk *chunk = wr_os_alloc(sizeof(*chunk));

    if (!chunk)
        return false;
    chunk->memory = wr_os_map(CHUNK); /* page-aligned, hence a record is one cache line */
    if (!chunk->memory) {
        wr_os_free(chunk);
        return false;
    }
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    pool->fresh = chunk->memory;
    pool->fresh_left = CHUNK / sizeof(struct weir_task);
    return true;
}

/* A free record that stands for its batch. */
struct wr_batch {
    struct weir_task *next_record;
    struct wr_batch *next_batch;
    uint32_t count;
};

static struct weir_task *take_fresh(struct wr_task_pool *pool)
{
    struct weir_task *task;

    if (!pool->fresh_left && !grow(pool))
        return NULL;
    task = (struct weir_task *)(void *)pool->fresh;
    pool->fresh += sizeof(*task);
    pool->fresh_left--;
    return task;
}

struct weir_task *wr_task_pool_take(struct wr_task_pool *pool, uint32_t want, uint32_t *got)
{
    struct weir_task *list = NULL, *task;

    *got = 0;
    wr_lock(&pool->lock);
    if (pool->batches) {
        struct wr_batch *batch = pool->batches;
        pool->batches = batch->next_batch;
        *got = batch->count;
        list = (struct weir_task *)(void *)batch;
    } else {
        while (*got < want && (task = take_fresh(pool))) {
            *wr_task_next_unused(task) = list;
            list = task;
            *got += 1;
        }
    }
    wr_store(&pool->lent, wr_load(&pool->lent, relaxed) + *got, relaxed);
    wr_unlock(&pool->lock);
    return list;
}

void wr_task_pool_give(struct wr_task_pool *pool, struct weir_task *first, struct weir_task *last,
                       uint32_t count)
{
    struct wr_batch *batch = (struct wr_batch *)(void *)first;

    *wr_task_next_unused(last) = NULL;
    batch->count = count;
    wr_lock(&pool->lock);
    batch->next_batch = pool->batches;
    pool->batches = batch;
    wr_store(&pool->lent, wr_load(&pool->lent, relaxed) - count, relaxed);
    wr_unlock(&pool->lock);
}

bool wr_task_pool_walk(struct wr_task_pool *pool, struct wr_chunk **at, struct weir_task **first,
                       size_t *count)
{
    wr_lock(&pool->lock);
    *at = *at ? (*at)->next : pool->chunks;
    if (*at) {
        *first = (*at)->memory;
        *count = CHUNK / sizeof(**first) - (*at == pool->chunks ? pool->fresh_left : 0);
    }
    wr_unlock(&pool->lock);
    return *at != NULL;
}

void wr_task_pool_fini(struct wr_task_pool *pool)
{
    while (pool->chunks) {
        struct wr_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        wr_os_unmap(chunk->memory, CHUNK);
        wr_os_free(chunk);
    }
}
