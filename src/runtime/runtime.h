/* The runtime as the rooms above see it: workers that pull work from a source, and ways to wait.
 * It knows bodies and fibers; it knows nothing of tasks, groups or limits.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_RUNTIME_H
#define WR_RUNTIME_RUNTIME_H

#include "base/list.h"
#include "base/lock.h"
#include "runtime/fiber.h"

#include <weir/runtime.h>

/* Where workers get their work. All calls come from workers (describe: from the monitor), several
 * at a time, with no lock of the runtime's held. */
struct wr_source {
    /* Something to run, or NULL. What it answers must be run. */
    void *(*pull)(struct wr_source *source);
    /* Whether pull might answer something now. Read in one total order (seq_cst) with whatever
     * precedes wr_runtime_wake. */
    bool (*pending)(struct wr_source *source);
    /* Runs it, on the worker's stack; it may park. Must call wr_body_over() when the body has returned,
     * before it gives up or reuses the item. */
    void (*run)(struct wr_source *source, void *item);
    /* Who is it? Fills name (32 bytes) and answers the tag. The item may be over meanwhile: its memory
     * must still be readable, atomically and with acquire; what is told of it is then ignored. */
    uint64_t (*describe)(struct wr_source *source, void *item, char *name);
};

/* Call after work was made available: wakes a worker if one sleeps and none is looking. */
void wr_runtime_wake(weir_runtime *rt);

/* From a source's run: the monitor need not look at the item any more. */
void wr_body_over(void);

/* ---- waiting --------------------------------------------------------------------------------- */

/* The calling fiber's or pool thread's parker; for any other thread `storage`, made ready. */
struct wr_parker *wr_parker_self(struct wr_parker *storage);

/* Waits until somebody unparks, or already has. Also returns for no reason, so loop around your own
 * condition. 0, or WEIR_ETIMEDOUT. WEIR_FOREVER costs nothing. */
int wr_park(struct wr_parker *self, weir_time deadline) WEIR_PARKS;

/* The parker must not be able to end before this returns; see Note: who may be unparked. */
void wr_unpark(struct wr_parker *who);

/* Those who wait for one thing. Wakers call wr_waitq_wake_all under no lock of their own. */
struct wr_waitq {
    struct wr_lock lock;
    struct wr_list waiters;
};

struct wr_waiter {
    struct wr_list link;
    struct wr_parker *who;
};

void wr_waitq_init(struct wr_waitq *queue);
void wr_waitq_enter(struct wr_waitq *queue, struct wr_waiter *waiter, struct wr_parker *who);
void wr_waitq_leave(struct wr_waitq *queue, struct wr_waiter *waiter);
void wr_waitq_wake_all(struct wr_waitq *queue);

#endif
