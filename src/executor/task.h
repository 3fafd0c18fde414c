/* A task's record, from allocation to its last reference: one cache line, and what more some tasks need.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_TASK_H
#define WR_EXECUTOR_TASK_H

#include "base/atomic.h"
#include "base/list.h"
#include "executor/queue.h"
#include "runtime/runtime.h"

#include <assert.h>
#include <weir/task.h>

struct weir_group;
struct weir_task;
struct wr_watch;
struct wr_whole;

/* task->word: one word says it all.
 *
 *     bits 0-2   phase: where the record is in its life; changed under the group's lock
 *     bits 3-5   outcome, WEIR_UNSETTLED until it settles; changed once, under the group's lock
 *     bits 6-12  reason of a rejection, cancellation or time-out
 *     bit  13    SIDE: task->u.side is in use
 *     bit  14    ABORTED: rejected under WEIR_ABORT, waits answer WEIR_EREJECTED
 *     bit  15    TAKEN: the value has an owner elsewhere
 *     bit  16    DONE: published, waits for it end
 *     bits 17-31 references                                                                       */
enum {
    WR_PHASE_NEW = 4,     /* not in the queue yet, or never                                */
    WR_PHASE_QUEUED = 0,  /* in its group's queue                                          */
    WR_PHASE_RUNNING = 1, /* the body executes                                             */
    WR_PHASE_PENDING = 2, /* the body returned WEIR_PENDING                                */
    WR_PHASE_OVER = 3,    /* holds nothing any more                                        */
    WR_PHASE_REFUSED =
        5,              /* not admitted: the refusing submit settles it. Settled and still REFUSED:
                             by rejection_fn, and the listener has heard its last word      */
    WR_PHASE_GUEST = 6, /* the body executes in the submitting thread, and holds nothing */
    WR_PHASE_ASIDE = 7, /* such a body returned WEIR_PENDING                             */
    WR_PHASE_MASK = 7,
    WR_OUTCOME_SHIFT = 3,
    WR_OUTCOME_MASK = 7 << WR_OUTCOME_SHIFT,
    WR_REASON_SHIFT = 6,
    WR_REASON_MAX = 127,
    WR_REASON_MASK = WR_REASON_MAX << WR_REASON_SHIFT,
    WR_SIDE = 1 << 13,
    WR_ABORTED = 1 << 14,
    WR_TAKEN = 1 << 15,
    WR_DONE = 1 << 16,
    WR_REF = 1 << 17,
};

/* A watcher is told when a task settles: a waiter, on its own stack, or a callback, on the heap. task->watchers is the
 * list of them, newest first, under the group's lock; WR_TOLD: it is too late to join. */
struct wr_watcher {
    union {
        struct wr_watcher *next;
        struct wr_fifo_node late; /* of a callback that came too late to join; see tell.h */
    };
    struct wr_parker *waiter;
    struct weir_task *task; /* of a late callback */
    void (*done)(struct weir_task *task, const weir_result *result, void *arg);
    void *arg;
};
#define WR_TOLD ((struct wr_watcher *)1)

/* Fields that only tasks with options have. */
struct wr_side {
    void *arg, *value;
    char *id; /* in the same allocation */
    uint32_t cost;
    uint8_t level;     /* priority, 0 first      */
    uint8_t arg_holds; /* how many may use the argument yet, or are told first; see wr_task_told */
    bool parts_over;   /* of a whole                                                             */
    void (*drop)(void *value);
    void (*drop_arg)(void *arg);
    struct wr_locals *locals;
    struct wr_watch *watch; /* in the same allocation; NULL: it has no deadline */
    struct wr_whole *whole; /* NULL: the task has a body                        */
};

struct weir_task {
    union {
        struct wr_queued queued; /* QUEUED: its place in the group's queue                 */
        struct {
            weir_time started_at;
            union {
                struct wr_parker *runner;  /* RUNNING, GUEST: its fiber or thread, under the lock */
                struct weir_task **before; /* PENDING, ASIDE: what points to it               */
                weir_time ended_at;        /* settled                                           */
            };
        };
    };
    union {
        weir_fn *fn;               /* until the body begins, or the task settles                  */
        struct weir_task *next;    /* PENDING, ASIDE: in group->pending_first                     */
        struct wr_fifo_node ended; /* settled: in a telling's queue; see tell.h                   */
    };
    union {
        void *arg;   /* before the body has returned */
        void *value; /* after                        */
        struct wr_side *side;
    } u;
    struct weir_group *group;
    weir_time queued_at;
    _Atomic(struct wr_watcher *) watchers;
    _Atomic uint32_t word;
    /* Settled: what the body returned; RUNNING: wr_cancels() at its start */
    _Atomic int32_t error;
};

static_assert(sizeof(void *) != 8 || sizeof(struct weir_task) == 64, "a task is one cache line");

#define WR_FITS(name, number, label, text) \
    static_assert((number) <= WR_REASON_MAX, "a reason has its place in a task's word");
WEIR_REASONS(WR_FITS)
#undef WR_FITS

/* ---- what it says ------------------------------------------------------------------------------- */

static inline uint32_t wr_task_word(const struct weir_task *task)
{
    return wr_load(&task->word, relaxed);
}

static inline uint32_t wr_task_phase(const struct weir_task *task)
{
    return wr_task_word(task) & WR_PHASE_MASK;
}

/* Under the group's lock. References may change at any time, phases not. */
static inline void wr_task_set_phase(struct weir_task *task, uint32_t phase)
{
    wr_add(&task->word, phase - wr_task_phase(task), relaxed);
}

/* Whether the body of a task in that phase executes. */
static inline bool wr_phase_has_body(uint32_t phase)
{
    return phase == WR_PHASE_RUNNING || phase == WR_PHASE_GUEST;
}

static inline weir_outcome wr_task_outcome(const struct weir_task *task)
{
    return (weir_outcome)((wr_task_word(task) & WR_OUTCOME_MASK) >> WR_OUTCOME_SHIFT);
}

static inline weir_reason wr_task_reason(const struct weir_task *task)
{
    return (weir_reason)((wr_task_word(task) & WR_REASON_MASK) >> WR_REASON_SHIFT);
}

static inline struct wr_side *wr_task_side(const struct weir_task *task)
{
    return wr_task_word(task) & WR_SIDE ? task->u.side : NULL;
}

static inline uint32_t wr_task_cost(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side ? side->cost : 1;
}

/* The argument of its body. Not once it may have settled: the value takes the same place. */
static inline void *wr_task_arg(const struct weir_task *task)
{
    const struct wr_side *side = wr_task_side(task);

    return side ? side->arg : task->u.arg;
}

/* Where its end leaves its value, which may have another owner by now. */
static inline void **wr_task_value(struct weir_task *task)
{
    struct wr_side *side = wr_task_side(task);

    return side ? &side->value : &task->u.value;
}

/* Fills a record with what the task's entry says. */
static inline void wr_task_read_entry(struct weir_task *task, const uint64_t *entry)
{
    task->fn = wr_entry_fn(entry);
    task->u.arg = wr_entry_arg(entry);
    task->queued_at = wr_entry_time(entry);
}

/* ---- its life ------------------------------------------------------------------------------------ */

/* A record with one reference per holder, counted in group->records; NULL without memory. Under the group's lock. */
struct weir_task *wr_task_alloc(struct weir_group *group, uint32_t references);

/* The last reference is gone, or there never was another. Under the lock. */
void wr_task_recycle(struct weir_group *group, struct weir_task *task);

/* The same without any lock, with all that the task has; the drop of a value is code of the user's. */
void wr_task_delete(struct weir_task *task);

/* As weir_task_why. `ahead` is counted only if asked for, else 0: that takes as long as the queue is. Under the
 * group's lock. */
void wr_task_explain(weir_why *why, struct weir_task *task, bool count_ahead);

#endif
