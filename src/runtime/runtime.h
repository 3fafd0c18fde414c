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

/* The largest values in weir_runtime_options. WR_MS_MAX is a day, so that sums of nanoseconds stay small. */
enum { WR_WORKERS_MAX = 4096, WR_THREADS_MAX = 65536, WR_MS_MAX = 86400000 };

enum { WR_STACK_MIN = 16 << 10, WR_STACK_MAX = 1 << 30 }; /* bytes */

/* Defaults: the values of options that are left zero. */
enum { WR_THREADS_DEFAULT = 256, WR_STACK_DEFAULT = 128 << 10, WR_STALL_MS_DEFAULT = 10 };

/* The default of replacements_max for so many workers (0: weir_cpus()), plus `more`; at most WR_WORKERS_MAX. */
uint32_t wr_replacements(int64_t more, uint32_t workers);

/* Work for a thread of the pool. It belongs to the code that submitted it; in one list at most. */
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

/* Whether the worker's epoch is still that of the sighting: then it still does what it did. */
bool wr_still_there(const struct wr_sighting *seen);

/* Where workers get their work. All calls come from workers (describe: from the monitor), several
 * at a time, with no lock of the runtime's held. */
struct wr_source {
    /* An item to run, or NULL. The caller must run an item that it got. */
    void *(*pull)(struct wr_source *source);
    /* Whether pull might answer something now. Read in one total order (seq_cst) with whatever
     * precedes wr_runtime_wake. */
    bool (*pending)(struct wr_source *source);
    /* Runs the item, on the worker's stack; it may park. Must call wr_body_over() when the body has returned,
     * before it gives up or reuses the item. */
    void (*run)(struct wr_source *source, void *item);
    /* Names a body that stalls: fills name (32 bytes) and answers the tag. The item may end meanwhile: its memory
     * must still be readable, atomically and with acquire; name and tag are then ignored. While
     * wr_still_there(seen), the item has not ended. */
    uint64_t (*describe)(struct wr_source *source, void *item, char *name,
                         const struct wr_sighting *seen);
    /* Names the body that ran off its stack: points the first of `part`, all NULL, to texts that last as long as
     * the body: one after the other they name it. From the body itself, in a signal handler: no locks, no memory. */
    void (*identify)(struct wr_source *source, void *item, const char *part[WR_NAME_PARTS]);
    /* Whether the body was asked to end. From the body itself; NULL: never. */
    bool (*cancelled)(struct wr_source *source, void *item);
};

/* As weir_runtime_new, with workers that pull from `source`, which must outlive the runtime. weir_spawn
 * then answers WEIR_EINVAL for WEIR_WORKERS. */
int wr_runtime_new(weir_runtime **out, const weir_runtime_options *opt, struct wr_source *source);

/* weir_runtime_free in two steps, for a caller with several runtimes. It stops all of them first, since a body that
 * still runs in one may wake another; then nothing runs, and it deletes them. NULL is fine. */
void wr_runtime_stop(weir_runtime *rt);
void wr_runtime_delete(weir_runtime *rt);

/* Wakes every parked body, so that it looks whether it is cancelled. */
void wr_runtime_sweep(weir_runtime *rt);

/* Call after work was made available: wakes an idle worker, unless one searches for work already. */
void wr_runtime_wake(weir_runtime *rt);

/* The same, for a caller that does this as the last thing before it returns to its loop. If the caller is a worker of the
 * runtime that runs no body, it searches itself, and no other worker is woken. */
void wr_runtime_search(weir_runtime *rt);

/* After wr_runtime_search, if the caller does something else first, which may take long: it stops searching, and another
 * worker searches if there is still work. */
void wr_search_pass_on(void);

/* Notes that the calling thread has made work for workers. From any thread. */
void wr_worker_note_feeding(void);

/* Whether bodies of the calling worker have made work for workers within some dozens of calls of this function. */
bool wr_worker_feeds(void);

/* Called by a worker that runs no body: gives up its CPU to other threads, or (nap_ns > 0) sleeps for so long. False: it does
 * neither, since a body waits that can go on only on this worker, or since this worker is the one that searches for work. */
bool wr_worker_give_way(int64_t nap_ns);

/* When a job gets a thread. */
enum wr_job_turn {
    WR_JOB_IN_TURN, /* within the cap on threads, after the jobs that came before */
    WR_JOB_AT_ONCE, /* at once, beyond the cap if need be; never queued, since threads may be busy for long */
};

/* Has job->run called on a thread of the pool. WEIR_ENOMEM, WEIR_EAGAIN: there is no thread for it, and none can be started;
 * the job was not taken. */
int wr_runtime_job(weir_runtime *rt, struct wr_job *job, enum wr_job_turn turn);

/* Called by a job a few instructions before it returns: from here on its thread can be given another job. */
void wr_thread_rests(void);

/* Whether the caller is on a thread of a pool. */
bool wr_on_pool_thread(void);

/* lost: a body on a thread of the pool is given up as lost, and another thread may be started in its place. Not lost: such
 * a body is back. */
void wr_runtime_lost(weir_runtime *rt, bool lost);

/* Called by a job: its thread carries a body of the source's from now on, or (NULL) none any more. */
void wr_thread_carries(void *item);

/* Called by a source's run: the body has returned, and the monitor need not look at the item any more. */
void wr_body_over(void);

/* Called by a source's run: another body begins, in the same call of run. */
void wr_body_begins(void *item);

/* Both, for another body of the same item. False: a body has parked since this call of run began; nothing is done. */
bool wr_body_next(void);

/* Called by a source's run: whether a body has parked since this call of run began. Then other work has run on
 * this worker in between, and it is time to return to the loop. */
bool wr_body_has_parked(void);

/* Where the calling body's context is kept, or the plain thread's: one pointer that stays with it across
 * waits. The code that sets it puts the former value back. */
void **wr_context_slot(void);

/* An entry in the list of what a stack carries besides the body that the runtime began there; the innermost frame is the
 * first, and each lies on that very stack. A frame with an item is a guest: a body that another body, or a plain thread,
 * calls. While the guest lasts it is the calling body. weir_cancelled asks about the guest and about all bodies around it,
 * since those cannot end before the guest does. */
struct wr_frame {
    struct wr_frame *outer;
    struct wr_source *source; /* of a guest                                                     */
    void *item;
    struct wr_parker *parker; /* of a plain thread that carries a guest; else NULL. Inherited   */
    struct wr_parker storage;
    void *notes;    /* of the room that entered the frame; inherited by frames further in */
    int unshielded; /* see wr_os_shield                                                         */
};

/* The innermost frame of the calling stack; NULL: none. */
struct wr_frame *wr_frame_innermost(void);

/* `frame` is zero, but for what its room has set. Leave frames in reverse order. In between, the thread is not cancelled
 * (pthread_cancel): it calls code of the user's, and has something to finish after that. */
void wr_frame_enter(struct wr_frame *frame);
void wr_frame_leave(struct wr_frame *frame);

/* Enters a guest: the parker that wakes it is frame->parker, until it leaves. */
void wr_guest_enter(struct wr_frame *frame, struct wr_source *source, void *item);

/* The item of the calling body, and the source that gave it; NULL outside of bodies. */
void *wr_current_item(struct wr_source **source);

/* The same of the body that the runtime began on the calling stack, around all guests. */
void *wr_carried_item(struct wr_source **source);

/* Memory of the calling worker that belongs to its source; zero at first. */
enum { WR_SCRATCH = 2304 };
void *wr_scratch(void);

/* ---- waiting --------------------------------------------------------------------------------- */

/* The calling fiber's or pool thread's parker; for any other thread `storage`, made ready. */
struct wr_parker *wr_parker_self(struct wr_parker *storage);

/* Waits until wr_unpark(self) is called, or returns at once if it was already. Also returns for no reason, so loop
 * around your own condition. 0, or WEIR_ETIMEDOUT. WEIR_FOREVER costs nothing. */
int wr_park(struct wr_parker *self, weir_time deadline) WEIR_PARKS;

/* The parker must not be able to end before this returns; see Note: which parkers may be unparked. */
void wr_unpark(struct wr_parker *parker);

/* The parkers that wait for one condition. A waiter enters, then looks whether the condition holds; a waker makes it hold,
 * then calls wr_waitq_wake_all, under no lock of its own. All four steps are in one total order, so a waker that finds no
 * waiter takes no lock. */
struct wr_waitq {
    struct wr_lock lock;
    struct wr_list waiters;
    _Atomic uint32_t count; /* of waiters; written under the lock */
};

struct wr_waiter {
    struct wr_list link;
    struct wr_parker *parker;
};

void wr_waitq_init(struct wr_waitq *queue);
void wr_waitq_enter(struct wr_waitq *queue, struct wr_waiter *waiter, struct wr_parker *parker);
void wr_waitq_leave(struct wr_waitq *queue, struct wr_waiter *waiter);
void wr_waitq_wake_all(struct wr_waitq *queue);

/* Waits for the condition, over(arg), which is read seq_cst or under a lock that the waker takes. 0: it holds. Else it does
 * not hold yet: WEIR_ETIMEDOUT; WEIR_ECANCELED, only if `may_cancel`. */
int wr_waitq_wait(struct wr_waitq *queue, bool (*over)(void *arg), void *arg, weir_time deadline,
                  bool may_cancel) WEIR_PARKS;

#endif
