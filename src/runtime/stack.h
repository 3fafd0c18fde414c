/* The pool of stacks that all workers of a runtime share; docs/internals/stacks.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_STACK_H
#define WR_RUNTIME_STACK_H

#include "base/lock.h"
#include "runtime/fiber.h"

/* Under the lock:
 *     total == hot_count + cold_count + (in use or at hand with a worker)
 *     idle_low <= hot_count                                                                     */
struct wr_stack_pool {
    struct wr_lock lock;
    struct wr_fiber *hot;  /* free, used before and still holding memory; last in, first out */
    struct wr_fiber *cold; /* free, holding none                                            */
    size_t hot_count, cold_count;
    size_t idle_low; /* fewest hot ones since the last trim                           */
    size_t total;
    size_t stack_size, guard_size;
    struct wr_stack_slab *slabs;
    size_t slab_next; /* how many stacks the next slab gets                            */
};

void wr_stack_pool_init(struct wr_stack_pool *pool, size_t stack_size);

/* All stacks must be back. */
void wr_stack_pool_fini(struct wr_stack_pool *pool);

/* Takes up to `want` stacks, as a list; at least one, or NULL if there is no memory for any. Some may be
 * bare: they are to be used in the order of the list, and guarded as docs/internals/stacks.md says. */
struct wr_fiber *wr_stack_take(struct wr_stack_pool *pool, size_t want, size_t *got);

/* Gives a list of `count` back; bare ones get their guards. None of them may be posted. */
void wr_stack_give(struct wr_stack_pool *pool, struct wr_fiber *list, size_t count);

/* Guards a bare stack, and with it all of its run. Called by the thread that has taken them. */
void wr_stack_guard(const struct wr_stack_pool *pool, struct wr_fiber *fiber);

/* Whether a body may run on the stack: it has a guard, or nothing is in use between it and the guard at
 * the end of its run. */
bool wr_stack_is_safe(const struct wr_fiber *fiber);

/* For a body that runs outside of its stack: the process dies as it would have at the guard. */
void wr_stack_die(const struct wr_stack_pool *pool, const struct wr_fiber *fiber);

/* Returns the memory of stacks that were free ever since the last trim. Answers how many. */
size_t wr_stack_trim(struct wr_stack_pool *pool);

/* Stacks that exist, and those of them that are free. */
void wr_stack_count(struct wr_stack_pool *pool, uint64_t *total, uint64_t *free);

/* Where a body's first frame goes. */
void *wr_stack_top(const struct wr_fiber *fiber);

/* Whether `address` lies in the guard below the stack; if that is bare, between it and the run's end. */
bool wr_stack_overflowed(const struct wr_stack_pool *pool, const struct wr_fiber *fiber,
                         const void *address);

#endif
