/* Stacks: made in slabs, guarded, kept hot, trimmed when they were not needed for a while.
 * SPDX-License-Identifier: MIT */
#include "runtime/stack.h"

#include "base/assert.h"
#include "base/os.h"

#include <stddef.h>

enum {
    SLAB_FIRST = 8,
    SLAB_MAX = 1024,
    TRIM_BATCH = 32,
    GUARD_PAGES = 4, /* a frame that is larger than the guard could step over it */
    RUN_MAX = 64,
#ifdef WEIR_SIM
    BARE_FROM = 1,
#else
    BARE_FROM = SLAB_MAX, /* stacks of slabs this large are handed out bare */
#endif
};

/* Stacks are mapped many at a time: one map entry, one system call. The first slabs are small because
 * most programs wait a little; each is twice the one before because some wait a lot. */
struct wr_stack_slab {
    struct wr_stack_slab *next;
    char *memory;
    size_t count;
    struct wr_fiber fiber[];
};

void wr_stack_pool_init(struct wr_stack_pool *pool, size_t stack_size)
{
    size_t page = wr_os_page_size();

    *pool = (struct wr_stack_pool){ .guard_size = GUARD_PAGES * page, .slab_next = SLAB_FIRST };
    pool->stack_size = (stack_size + page - 1) / page * page + pool->guard_size;
}

static void slab_delete(struct wr_stack_pool *pool, struct wr_stack_slab *slab)
{
    for (size_t i = 0; i < slab->count; i++)
        wr_context_fini(&slab->fiber[i].context);
    wr_os_unmap(slab->memory, slab->count * pool->stack_size);
    wr_os_free(slab);
}

void wr_stack_pool_fini(struct wr_stack_pool *pool)
{
    WR_ASSERT(pool->hot_count + pool->cold_count == pool->total);
    while (pool->slabs) {
        struct wr_stack_slab *slab = pool->slabs;
        pool->slabs = slab->next;
        slab_delete(pool, slab);
    }
}

static void fiber_init(struct wr_stack_pool *pool, struct wr_fiber *fiber, char *low)
{
    wr_context_init_stack(&fiber->context, low + pool->guard_size,
                          pool->stack_size - pool->guard_size);
    wr_timer_init(&fiber->timer);
    wr_list_init(&fiber->link);
    fiber->state = WR_FIBER_FREE;
}

static void *guard_of(const struct wr_stack_pool *pool, const struct wr_fiber *fiber)
{
    return (char *)fiber->context.stack_low - pool->guard_size;
}

/* Guards all stacks of a slab, unless that can be put off: then answers that they are bare. */
static int slab_guard(const struct wr_stack_pool *pool, char *memory, size_t count, bool *bare)
{
    *bare = count >= BARE_FROM && wr_os_guard_light(memory, pool->guard_size, pool->stack_size, 1);
    return *bare ? 0 : wr_os_guard(memory, pool->guard_size, pool->stack_size, count);
}

/* Makes a slab of `count` stacks; half as many after each failure, because little memory is better than
 * none. NULL: not even one. */
static struct wr_stack_slab *slab_new(struct wr_stack_pool *pool, size_t count)
{
    struct wr_stack_slab *slab;
    bool bare;

    for (; count > 0; count /= 2) {
        slab = wr_os_alloc(sizeof(*slab) + count * sizeof(slab->fiber[0]));
        if (!slab)
            continue;
        slab->memory = wr_os_map(count * pool->stack_size);
        if (slab->memory && slab_guard(pool, slab->memory, count, &bare) == 0)
            break;
        if (slab->memory)
            wr_os_unmap(slab->memory, count * pool->stack_size);
        wr_os_free(slab);
    }
    if (!count)
        return NULL;
    slab->count = count;
    for (size_t i = 0; i < count; i++) {
        fiber_init(pool, &slab->fiber[i], slab->memory + i * pool->stack_size);
        slab->fiber[i].bare = bare;
    }
    return slab;
}

/* Adds a slab. The lock is let go meanwhile: mapping and guarding many stacks takes a while, and other
 * workers have stacks to give back, or slabs of their own to make. */
static void grow(struct wr_stack_pool *pool)
{
    size_t count = pool->slab_next;
    struct wr_stack_slab *slab;

    if (pool->slab_next < SLAB_MAX)
        pool->slab_next *= 2;
    wr_unlock(&pool->lock);
    slab = slab_new(pool, count);
    wr_lock(&pool->lock);
    if (!slab)
        return;
    slab->next = pool->slabs;
    pool->slabs = slab;
    for (size_t i = slab->count; i-- > 0;) {
        slab->fiber[i].next = pool->cold;
        pool->cold = &slab->fiber[i];
    }
    pool->cold_count += slab->count;
    pool->total += slab->count;
}

/* If light guards cannot be had any more, because the program locked its memory, map entries serve. Those fail
 * only for a lack of memory in which no body could touch its stack either. */
static void guard(const struct wr_stack_pool *pool, const struct wr_fiber *lowest, size_t count)
{
    void *first = guard_of(pool, lowest);

    if (!wr_os_guard_light(first, pool->guard_size, pool->stack_size, count))
        WR_ASSERT(wr_os_guard(first, pool->guard_size, pool->stack_size, count) == 0);
}

void wr_stack_guard(const struct wr_stack_pool *pool, struct wr_fiber *fiber)
{
    struct wr_fiber *lowest = fiber - fiber->below;
    size_t count = (size_t)fiber->below + fiber->above;

    guard(pool, lowest + 1, count);
    for (size_t i = 1; i <= count; i++)
        lowest[i].bare = false;
}

bool wr_stack_is_safe(const struct wr_fiber *fiber)
{
    for (size_t i = 1; fiber->bare && i <= fiber->below; i++)
        if (fiber[-(ptrdiff_t)i].context.sp)
            return false;
    return true;
}

void wr_stack_die(const struct wr_stack_pool *pool, const struct wr_fiber *fiber)
{
    if (fiber->bare)
        guard(pool, fiber, 1);
    *((volatile char *)fiber->context.stack_low - 1) = 0;
}

/* Divides the stacks that were taken, highest first, into runs. The lowest stack of each run gets its guard. */
static void make_runs(const struct wr_stack_pool *pool, struct wr_fiber *list)
{
    struct wr_fiber *highest, *lowest;

    for (highest = list; highest; highest = lowest->next) {
        lowest = highest;
        if (!highest->bare)
            continue;
        while (lowest->next == lowest - 1 && lowest->next->bare && highest - lowest < RUN_MAX - 1)
            lowest = lowest->next;
        for (ptrdiff_t i = 0; i <= highest - lowest; i++) {
            lowest[i].below = (uint8_t)i;
            lowest[i].above = (uint8_t)(highest - lowest - i);
        }
        guard(pool, lowest, 1);
        lowest->bare = false;
    }
}

struct wr_fiber *wr_stack_take(struct wr_stack_pool *pool, size_t want, size_t *got)
{
    struct wr_fiber *list = NULL;

    *got = 0;
    wr_lock(&pool->lock);
    if (!pool->hot && !pool->cold)
        grow(pool);
    while (*got < want && (pool->hot || pool->cold)) {
        struct wr_fiber **from = pool->hot ? &pool->hot : &pool->cold;
        struct wr_fiber *fiber = *from;
        *(pool->hot ? &pool->hot_count : &pool->cold_count) -= 1;
        *from = fiber->next;
        fiber->next = list;
        list = fiber;
        *got += 1;
    }
    if (pool->hot_count < pool->idle_low)
        pool->idle_low = pool->hot_count;
    wr_unlock(&pool->lock);
    make_runs(pool, list);
    return list;
}

void wr_stack_give(struct wr_stack_pool *pool, struct wr_fiber *list, size_t count)
{
    for (struct wr_fiber *fiber = list; fiber; fiber = fiber->next)
        if (fiber->bare)
            wr_stack_guard(pool, fiber);
    wr_lock(&pool->lock);
    while (list) {
        struct wr_fiber *fiber = list;
        WR_ASSERT(fiber->state == WR_FIBER_FREE);
        WR_ASSERT_SLOW(wr_load(&fiber->parker.word, relaxed) == 0);
        list = fiber->next;
        fiber->next = pool->hot;
        pool->hot = fiber;
    }
    pool->hot_count += count;
    wr_unlock(&pool->lock);
}

/* The hot list is last in, first out, so the stacks that were not needed since the last trim are its last
 * `idle_low` entries. They are cut off under the lock and given up without it, a batch at a time. */
static struct wr_fiber *cut_unneeded(struct wr_stack_pool *pool, size_t *count)
{
    struct wr_fiber **at = &pool->hot;
    struct wr_fiber *unneeded;

    wr_lock(&pool->lock);
    for (size_t keep = pool->hot_count - pool->idle_low; keep > 0; keep--)
        at = &(*at)->next;
    unneeded = *at;
    *at = NULL;
    *count = pool->idle_low;
    pool->hot_count -= pool->idle_low;
    pool->idle_low = pool->hot_count;
    wr_unlock(&pool->lock);
    return unneeded;
}

size_t wr_stack_trim(struct wr_stack_pool *pool)
{
    size_t count;
    struct wr_fiber *list = cut_unneeded(pool, &count);

    for (size_t left = count; left > 0;) {
        struct wr_fiber *last = list, *first = list;
        size_t batch = left < TRIM_BATCH ? left : TRIM_BATCH;
        for (size_t i = 0; i < batch; i++) {
            last = list;
            wr_os_discard(list->context.stack_low, list->context.stack_size);
            list = list->next;
        }
        wr_lock(&pool->lock);
        last->next = pool->cold;
        pool->cold = first;
        pool->cold_count += batch;
        wr_unlock(&pool->lock);
        left -= batch;
    }
    return count;
}

void wr_stack_count(struct wr_stack_pool *pool, uint64_t *total, uint64_t *free)
{
    wr_lock(&pool->lock);
    *total = pool->total;
    *free = pool->hot_count + pool->cold_count;
    wr_unlock(&pool->lock);
}

void *wr_stack_top(const struct wr_fiber *fiber)
{
    return (char *)fiber->context.stack_low + fiber->context.stack_size;
}

bool wr_stack_overflowed(const struct wr_stack_pool *pool, const struct wr_fiber *fiber,
                         const void *address)
{
    const struct wr_fiber *end = fiber->bare ? fiber - fiber->below : fiber;

    return (const char *)address >= (const char *)guard_of(pool, end) &&
           (const char *)address < (const char *)fiber->context.stack_low;
}
