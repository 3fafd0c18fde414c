/* Workers: OS threads that carry fibers. Private to the runtime.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_WORKER_H
#define WR_RUNTIME_WORKER_H

#include "base/assert.h"
#include "base/os.h"
#include "runtime/fiber.h"
#include "runtime/monitor.h"
#include "runtime/pool.h"
#include "runtime/reactor.h"
#include "runtime/runtime.h"
#include "runtime/spawn.h"
#include "runtime/stack.h"
#include "runtime/timer.h"

/* A thread of a runtime, a worker or one of its pool: its thread-local slot points to this. */
struct wr_member {
    weir_runtime *runtime;
    struct wr_parker *parker; /* a pool thread's own; NULL on a worker, whose fibers are parkers */
    void *item;               /* a pool thread's: what the source gave, if it carries any        */
};

struct wr_fiber_queue {
    struct wr_fiber *head;
    struct wr_fiber *tail; /* meaningless while head is NULL */
};

/* Only the monitor sends a worker to the bench and calls it back. A worker on the bench ends its thread itself. */
enum wr_bench {
    WR_TAKES_WORK,
    WR_BENCHED, /* a replacement whose stall is over                                           */
    WR_GONE,    /* its thread has ended, or is about to; the record stays for the next stall     */
};

struct wr_worker {
    struct wr_member member; /* first: the thread-local slot points here */

    /* Its own thread only. At rest:
     *     spare != NULL while a body runs: so a park never fails for want of a stack
     *     current runs on this thread; exactly one of all fibers does                           */
    struct wr_fiber *spare; /* a loop to go on with when the body parks: suspended, or, without
                               a stack pointer, not begun                                     */
    struct wr_fiber_queue ready;
    unsigned turn;           /* switches left before the loop looks whether bodies wait to start */
    unsigned turns;          /* turns left, if none does, before it looks around                */
    bool new_first;          /* the next thing to start is a new body, not a ready fiber       */
    bool searching;          /* counted in runtime->searching                                  */
    uint8_t feeds;           /* its bodies make work for workers; 0: they did not lately       */
    uint32_t swept;          /* runtime->sweeps as of its latest sweep */
    uint32_t attempts;       /* reads and writes that did not have to wait; see io.c */
    struct wr_fiber *stacks; /* free ones at hand, hottest first                               */
    size_t stack_count;
    struct wr_list waiting; /* fibers whose body has parked at least once                     */
    _Alignas(16) char scratch[WR_SCRATCH];
    struct wr_wheel wheel;
    struct wr_reactor reactor;
    struct wr_fiber home; /* the thread's own stack: where the loop starts and ends         */
    uint64_t idle_epoch;  /* a replacement on the bench has had nothing to do since this epoch */
    weir_time idle_since; /* and since this moment,                                            */
    weir_time retire_at;  /* so its thread ends at this one; else WEIR_FOREVER                 */

    /* Shared. */
    _Atomic(struct wr_fiber *) current; /* written by its own thread, read by the monitor        */
    _Atomic uint64_t epoch; /* counts switches and bodies; one writer                         */
    _Atomic(struct wr_fiber *) inbox; /* posted fibers, pushed by anyone                         */
    _Atomic bool asleep;        /* in the poller, or about to be                                  */
    _Atomic uint32_t bench;     /* enum wr_bench                                                  */
    _Atomic uint32_t os_number; /* of its thread; see wr_os_thread_computes                      */
    struct wr_os_poller poller;
    struct wr_os_thread thread;
    uint32_t number;
    struct wr_stall_watch watch; /* the monitor's own notes                                      */
};

#define WR_IDLE_WORDS(workers) (((size_t)(workers) + 63) / 64)

struct weir_runtime {
    weir_runtime_options options;
    struct wr_source *source;
    struct wr_spawn spawn; /* the source that weir_spawn feeds                               */

    _Atomic bool closing;  /* every body is cancelled, no new ones are accepted              */
    _Atomic uint64_t live; /* bodies accepted and not ended                                  */
    _Atomic uint64_t stack_waits;
    _Atomic uint32_t sweeps; /* how many were asked for: each wakes every parked body once */
    struct wr_waitq drained; /* the parkers that wait for live == 0                            */

    /* Sleeping workers, a bit for each; see "Idle workers and new work" in parking.md. */
    _Atomic uint64_t *idle;
    _Atomic uint32_t searching;

    struct wr_stack_pool stacks;
    struct wr_pool pool;
    struct wr_monitor monitor;

    uint32_t worker_slots; /* workers + replacements_max                                     */
    _Atomic uint32_t worker_count; /* started so far; only the monitor adds, once it runs        */
    struct wr_worker *worker[];
};

/* The calling thread's worker, or NULL. */
static inline struct wr_worker *wr_worker_self(void)
{
    struct wr_member *member = *wr_os_local();

    return member && !member->parker ? (struct wr_worker *)member : NULL;
}

/* Waits for one report of the calling pool thread's poller, or an unpark. Answers how many reports came; also
 * returns for no reason. */
int wr_park_polling(struct wr_thread_parker *self, struct wr_os_ready *ready, weir_time deadline);

/* Starts worker number `runtime->worker_count`. */
int wr_worker_start(weir_runtime *rt);

/* Joins the thread of a worker whose runtime is closing. */
void wr_worker_join(struct wr_worker *worker);

/* Frees the worker's record, when no thread can wake it any more. */
void wr_worker_delete(struct wr_worker *worker);

static inline bool wr_worker_is_benched(const struct wr_worker *worker)
{
    return wr_load(&worker->bench, seq_cst) != WR_TAKES_WORK;
}

static inline bool wr_worker_is_gone(const struct wr_worker *worker)
{
    return wr_load(&worker->bench, acquire) == WR_GONE; /* pairs with retire */
}

/* Makes a worker look around if it sleeps. From any thread. */
void wr_worker_wake(struct wr_worker *worker);

/* How many workers sleep, ready for work. */
uint32_t wr_idle_count(const weir_runtime *rt);

/* Sends a worker to the bench, where it takes no new work. Only the monitor does. */
void wr_worker_bench(struct wr_worker *worker);

/* Calls a worker back from the bench, with a new thread if it is gone. Only the monitor does. */
int wr_worker_call_back(struct wr_worker *worker);

/* Joins the worker's thread, if it has one. While the runtime runs only the monitor does, for a worker that is gone. */
void wr_worker_bury(struct wr_worker *worker);

/* Puts a fiber of this worker last in the ready queue. Own thread only. */
static inline void wr_worker_ready(struct wr_worker *worker, struct wr_fiber *fiber)
{
    fiber->state = WR_FIBER_READY;
    fiber->next = NULL;
    if (worker->ready.head)
        worker->ready.tail->next = fiber;
    else
        worker->ready.head = fiber;
    worker->ready.tail = fiber;
}

/* Guards the stack of a fiber and makes it ready. */
void wr_worker_ready_bare(struct wr_worker *worker, struct wr_fiber *fiber);

/* Unparks a fiber of the calling worker. */
static inline void wr_unpark_local(struct wr_worker *worker, struct wr_fiber *fiber)
{
    if (fiber->state == WR_FIBER_PARKED)
        wr_worker_ready(worker, fiber);
    else if (fiber->state == WR_FIBER_RUNNING)
        fiber->token = true;
    else if (fiber->state == WR_FIBER_PARKED_BARE)
        wr_worker_ready_bare(worker, fiber);
}

/* Takes the first of the ready queue, which must not be empty. */
static inline struct wr_fiber *wr_worker_next(struct wr_worker *worker)
{
    struct wr_fiber *fiber = worker->ready.head;

    worker->ready.head = fiber->next;
    WR_ASSERT(fiber->state == WR_FIBER_READY);
    WR_ASSERT_SLOW(!fiber->bare);
    fiber->state = WR_FIBER_RUNNING;
    return fiber;
}

/* Leaves `from`, goes on with `to`. The monitor sees the epoch move. */
static inline void wr_worker_go(struct wr_worker *worker, struct wr_fiber *from,
                                struct wr_fiber *to)
{
    wr_bump(&worker->epoch);
    wr_store(&worker->current, to, release); /* pairs with the monitor's acquire */
    wr_context_switch(&from->context, &to->context);
}

/* From one fiber to the first of the ready queue, which may be the same. */
static inline void wr_worker_go_to_ready(struct wr_worker *worker, struct wr_fiber *self)
{
    struct wr_fiber *next = wr_worker_next(worker);

    worker->turn--;
    if (next != self)
        wr_worker_go(worker, self, next);
    else
        wr_bump(&worker->epoch);
}

/* Leaves `self`, whose state the caller has set, and runs the next fiber or body. Returns when `self` runs
 * again. Straight to a ready fiber if there is one; through the loop when nothing is ready, when a new
 * body is to come first or it is time to look around, and on a body's first park, which is when it joins
 * `waiting`. All but the common case is apart, so that a park saves few registers. */
void wr_worker_suspend_apart(struct wr_worker *worker, struct wr_fiber *self);

static inline void wr_worker_suspend(struct wr_worker *worker, struct wr_fiber *self)
{
    WR_ASSERT_SLOW(self == wr_load(&worker->current, relaxed));
    if (WR_LIKELY(worker->ready.head && worker->turn && !wr_list_empty(&self->link)))
        wr_worker_go_to_ready(worker, self);
    else
        wr_worker_suspend_apart(worker, self);
}

/* Counts the end of a body; wakes the parkers in `drained` when it was the last. */
void wr_runtime_ended(weir_runtime *rt);

#endif
