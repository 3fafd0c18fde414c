/* The runtime as the rooms above see it: workers that pull work from a source, and ways to wait.
 * It knows bodies and fibers; it knows nothing of tasks, groups or limits.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_RUNTIME_H
#define WR_RUNTIME_RUNTIME_H

#include "base/list.h"
#include "base/lock.h"
#include "runtime/clock.h"
#include "runtime/fiber.h"
#include "runtime/local.h"

#include <weir/runtime.h>

/* What weir_runtime_options may ask for; a day keeps nanosecond sums small. */
enum { WR_WORKERS_MAX = 4096, WR_THREADS_MAX = 65536, WR_MS_MAX = 86400000 };

enum { WR_STACK_MIN = 16 << 10, WR_STACK_MAX = 1 << 30 }; /* bytes */

/* What it gets that does not ask. */
enum { WR_THREADS_DEFAULT = 256, WR_STACK_DEFAULT = 128 << 10, WR_STALL_MS_DEFAULT = 10 };

/* The default of replacements_max, and so many more. */
uint32_t wr_replacements(int64_t more, uint32_t workers);

/* Something for a thread of the pool to run. Belongs to whoever submitted it; in one list at most. */
struct wr_job {
    struct wr_list link;
    void (*run)(struct wr_job *job);
};

enum { WR_NAME_PARTS = 5 }; /* see wr_source.identify */

/* A worker as the monitor has seen it. */
struct wr_sighting {
    const void *worker;
    uint64_t epoch;
};

/* Whether it still does what it did then. */
bool wr_still_there(const struct wr_sighting *seen);

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
    /* Who is it that stalls? Fills name (32 bytes) and answers the tag. The item may be over meanwhile: its memory
     * must still be readable, atomically and with acquire; what is told of it is then ignored. While
     * wr_still_there(seen), it is not over. */
    uint64_t (*describe)(struct wr_source *source, void *item, char *name,
                         const struct wr_sighting *seen);
    /* Who ran off its stack? Points the first of `part`, all NULL, to texts that last as long as the body: one
     * after the other they name it. From the body itself, in a signal handler: no locks, no memory. */
    void (*identify)(struct wr_source *source, void *item, const char *part[WR_NAME_PARTS]);
    /* Whether the body was asked to end. From the body itself; NULL: never. */
    bool (*cancelled)(struct wr_source *source, void *item);
};

/* As weir_runtime_new, with workers that pull from `source`, which must outlive the runtime. weir_spawn
 * then answers WEIR_EINVAL for WEIR_WORKERS. */
int wr_runtime_new(weir_runtime **out, const weir_runtime_options *opt, struct wr_source *source);

/* weir_runtime_free in two steps, for those who have several: first all are stopped, so that what still runs in
 * one may wake another; then none does. NULL is fine. */
void wr_runtime_stop(weir_runtime *rt);
void wr_runtime_delete(weir_runtime *rt);

/* Wakes every body that is parked, for no other reason than to look whether it is cancelled. */
void wr_runtime_sweep(weir_runtime *rt);

/* Call after work was made available: wakes a worker if one sleeps and none is looking. */
void wr_runtime_wake(weir_runtime *rt);

/* The same as the last thing before the caller returns to its loop, if it is a worker of the runtime and runs no body: then
 * it itself looks, and no other is woken. */
void wr_runtime_search(weir_runtime *rt);

/* It was not the last thing: what comes next may take its time, so another worker looks, if there is still work. */
void wr_search_pass_on(void);

/* The calling thread, which may be any, has made work for workers. And: whether bodies of the calling worker have, as long ago as
 * some dozens of these questions. */
void wr_worker_note_feeding(void);
bool wr_worker_feeds(void);

/* By a worker that runs no body: lets other threads have its CPU, or (nap_ns > 0) sleeps for so long, unless a body waits that can
 * go on nowhere else, or others rely on this worker to look for work. */
void wr_worker_give_way(int64_t nap_ns);

/* When a job may have a thread. */
enum wr_job_turn {
    WR_JOB_IN_TURN, /* within the cap on threads, after those that came before                      */
    WR_JOB_AT_ONCE, /* beyond the cap, if need be; or not at all: those there are may be busy for long */
};

/* Has job->run called on a thread of the pool. WEIR_ENOMEM, WEIR_EAGAIN: there is none, nor can one be started; the job
 * was not taken. */
int wr_runtime_job(weir_runtime *rt, struct wr_job *job, enum wr_job_turn turn);

/* From a job, as its last act but for a few instructions: its thread can be given another already. */
void wr_thread_rests(void);

/* Whether the caller is on a thread of a pool. */
bool wr_on_pool_thread(void);

/* A body on a thread of the pool is given up as lost: another thread may be started for it. And: it is back. */
void wr_runtime_lost(weir_runtime *rt, bool lost);

/* From a job: the thread carries a body of the source's, or (NULL) none any more. */
void wr_thread_carries(void *item);

/* From a source's run: the monitor need not look at the item any more; and: another body begins, in the
 * same call of run. */
void wr_body_over(void);
void wr_body_begins(void *item);

/* Both, for another body of the same item. False: a body has parked since this call of run began; nothing is done. */
bool wr_body_next(void);

/* From a source's run: whether a body has parked since this call of run began. Then other work has run on
 * this worker in between, and it is time to return to the loop. */
bool wr_body_has_parked(void);

/* Where the calling body's context is kept, or the plain thread's: one pointer that stays with it across
 * waits. Whoever sets it puts the former value back. */
void **wr_context_slot(void);

/* What a stack carries besides the body that the runtime began there; innermost first, each on that very stack. A
 * frame with an item is a guest: a body that another body, or a plain thread, calls. It is the calling body while
 * it lasts: it is asked whether it is to end, and so are all around it, which cannot end before it does. */
struct wr_frame {
    struct wr_frame *outer;
    struct wr_source *source; /* of a guest                                                     */
    void *item;
    struct wr_parker *parker; /* of a plain thread that carries a guest; else NULL. Inherited   */
    struct wr_parker storage;
    void *notes; /* the room's that entered it, inherited by frames further in                   */
    int unshielded; /* see wr_os_shield                                                         */
};

/* The innermost one of the calling stack; NULL: none. */
struct wr_frame *wr_frame_innermost(void);

/* `frame` is zero, but for what its room knows. Leave in reverse order. In between, the thread is not cancelled: it calls
 * code of the user's, and has something to finish after that. */
void wr_frame_enter(struct wr_frame *frame);
void wr_frame_leave(struct wr_frame *frame);

/* Enters a guest: the parker that wakes it is frame->parker, until it leaves. */
void wr_guest_enter(struct wr_frame *frame, struct wr_source *source, void *item);

/* What the calling body's source gave for it, and the source; NULL outside of bodies. */
void *wr_current_item(struct wr_source **source);

/* The body that the runtime began on the calling stack, around all guests. */
void *wr_carried_item(struct wr_source **source);

/* A few words of each worker's that belong to its source; zero at first. */
enum { WR_SCRATCH = 2304 };
void *wr_scratch(void);

/* ---- waiting --------------------------------------------------------------------------------- */

/* The calling fiber's or pool thread's parker; for any other thread `storage`, made ready. */
struct wr_parker *wr_parker_self(struct wr_parker *storage);

/* Waits until somebody unparks, or already has. Also returns for no reason, so loop around your own
 * condition. 0, or WEIR_ETIMEDOUT. WEIR_FOREVER costs nothing. */
int wr_park(struct wr_parker *self, weir_time deadline) WEIR_PARKS;

/* The parker must not be able to end before this returns; see Note: who may be unparked. */
void wr_unpark(struct wr_parker *who);

/* Those who wait for one thing. A waiter enters, then looks whether it is there; a waker makes it so, then calls
 * wr_waitq_wake_all, under no lock of its own. All four in one total order, so a waker that finds nobody passes no lock. */
struct wr_waitq {
    struct wr_lock lock;
    struct wr_list waiters;
    _Atomic uint32_t count; /* of them; written under the lock */
};

struct wr_waiter {
    struct wr_list link;
    struct wr_parker *who;
};

void wr_waitq_init(struct wr_waitq *queue);
void wr_waitq_enter(struct wr_waitq *queue, struct wr_waiter *waiter, struct wr_parker *who);
void wr_waitq_leave(struct wr_waitq *queue, struct wr_waiter *waiter);
void wr_waitq_wake_all(struct wr_waitq *queue);

/* Waits for the one thing: until over(arg), which is read seq_cst or under a lock that the waker takes. 0; or it is not so
 * yet: WEIR_ETIMEDOUT; WEIR_ECANCELED, only if `may_cancel`. */
int wr_waitq_wait(struct wr_waitq *queue, bool (*over)(void *arg), void *arg, weir_time deadline,
                  bool may_cancel) WEIR_PARKS;

#endif
