/* A runtime: a few worker threads that carry any number of waiting bodies.
 *
 * A body is a plain C function. It runs directly on a worker's stack; when it waits in a call marked
 * WEIR_PARKS, the worker leaves that stack to it and goes on with other work on another one. A body
 * that never waits costs no switch and no stack, one that waits costs exactly its own. A body that
 * has started stays on its thread, so the address of thread-local storage and the owner of a pthread mutex
 * are the same after a wait. But other bodies run on that thread in between: errno, and whatever else they
 * change in thread-local storage or of the thread (its signal mask, say), may differ afterwards. Do not wait
 * while you hold a mutex that other bodies lock: one on the same thread would block it, and you with it.
 *
 * Code that blocks a thread (a slow library, disk I/O) is best sent to WEIR_THREADS or wrapped in
 * weir_blocking(). If a body blocks its worker all the same, the stall monitor notices after stall_after_ms,
 * starts a replacement worker that takes new bodies in its place, and names the body. Bodies that wait on the
 * blocked worker wait until it is free again.
 *
 * Workers have the signal mask of the thread that made the runtime, threads of the pool that of the thread
 * whose call started them; processes that bodies start inherit it. No thread survives fork(2): the child
 * must not use the runtime, not even free it.
 *
 * Calls may come from any thread. Leaving a body by longjmp or a C++ exception is undefined.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_RUNTIME_H
#define WEIR_RUNTIME_H

#include <stdbool.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_runtime weir_runtime; /* owned: _new / _free */

/* How many CPUs this process may use: its affinity mask, cut by the CPU quota of its cgroup, rounded up; at
 * least 1, at most 4096. The default number of workers. Each call looks anew. */
uint32_t weir_cpus(void);

typedef void weir_body(void *arg);

/* Where a body runs. */
typedef enum weir_carrier {
    WEIR_WORKERS = 0, /* on a worker, parking when it waits                                     */
    WEIR_THREADS = 1, /* on an OS thread of the runtime's elastic pool; it may block as it likes */
} weir_carrier;

/* What the stall monitor found. Handed out as a loan for the duration of the call. */
typedef struct weir_stall {
    uint32_t worker;  /* number of the worker that is stuck, as in its thread's name      */
    bool over;        /* false: found just now, still stuck; true: the same stall ended   */
    const char *name; /* the body's name, "" if it has none                               */
    uint64_t tag;     /* the body's tag, as given at spawn                                */
    int64_t stuck_ns; /* for how long; exact to a quarter of stall_after_ms               */
    bool replaced;    /* a replacement worker is at work in its place                     */
} weir_stall;

typedef struct weir_runtime_options { /* zero in any field asks for its default */
    size_t size;
    uint32_t workers;          /* 1 to 4096; default: weir_cpus()                                */
    uint32_t threads_max;      /* most OS threads for blocking work, 1 to 65536; default 256     */
    uint32_t thread_idle_ms;   /* one of those that is idle, or an idle replacement worker, ends
                                  after this, 1 to 86400000 (a day); default 5000                */
    size_t stack_size;         /* of a body, 16 KiB to 1 GiB; default 128 KiB. Address space: memory
                                  is committed page by page as it is used                        */
    uint32_t stall_after_ms;   /* a body on a worker this long without a wait is a stall; 1 to
                                  86400000 (a day), default 10                                   */
    uint32_t replacements_max; /* most replacement workers at a time, 1 to 4096; default: one per
                                  worker and 64. Bodies that compute are replaced once per worker
                                  at most, because more threads would only share the same CPUs   */
    bool report_overflow;      /* when a body runs off a worker's stack, name it on standard error
                                  before the process dies. Installs a SIGSEGV handler, once per
                                  process, which passes the signal on to the one that was there
                                  before. (An executor reports unless told not to.)             */
    void (*on_stall)(const weir_stall *stall, void *arg); /* on the monitor's thread; must not
                                                             free the runtime                    */
    void *on_stall_arg;
} weir_runtime_options;
#define WEIR_RUNTIME(...) WEIR_SIZED(weir_runtime_options, __VA_ARGS__)

/* Starts the workers. `opt` may be NULL for all defaults.
 * WEIR_EINVAL: a field is out of range. WEIR_EVERSION: the caller set a field this library does not
 * know. WEIR_ENOMEM, WEIR_EAGAIN, or -EMFILE and the like: no memory, no threads, no
 * descriptors; nothing is left behind. */
int weir_runtime_new(weir_runtime **out, const weir_runtime_options *opt);

/* Waits until every accepted body has ended. More may be accepted meanwhile, also by bodies.
 * WEIR_ETIMEDOUT: some are left; nothing changed. WEIR_EDEADLK: called by one of its own bodies. */
int weir_runtime_drain(weir_runtime *rt, weir_time deadline) WEIR_PARKS;

/* Refuses new bodies, cancels the accepted ones (their waits answer WEIR_ECANCELED; those that had
 * not started still run, so that each can release what it owns), waits for all of them and for the
 * threads. A body that never returns keeps this call waiting: drain with a deadline first if that
 * can happen. Not to be called by a body of this runtime, nor while another thread is inside a call that
 * uses it. NULL is fine. */
void weir_runtime_free(weir_runtime *rt) WEIR_PARKS;

typedef struct weir_spawn_options { /* zero in any field asks for its default */
    size_t size;
    weir_carrier run_on; /* default: WEIR_WORKERS                                            */
    const char *name;    /* for stall and overflow reports; copied, cut after 31 bytes       */
    uint64_t tag;        /* anything; handed back in reports                                 */
} weir_spawn_options;
#define WEIR_SPAWN(...) WEIR_SIZED(weir_spawn_options, __VA_ARGS__)

/* Runs body(arg) once, as soon as a worker (or thread) is free. First come, first served. `opt` may
 * be NULL. WEIR_ENOMEM, or for WEIR_THREADS also WEIR_EAGAIN: not accepted. WEIR_ECLOSED: the runtime is
 * being freed. WEIR_EINVAL, WEIR_EVERSION: bad arguments. */
int weir_spawn(weir_runtime *rt, weir_body *body, void *arg, const weir_spawn_options *opt);

/* True in a body that was asked to end. A body that never waits should look now and then. */
bool weir_cancelled(void);

typedef struct weir_runtime_stats { /* a snapshot; figures may be a moment apart */
    size_t size;
    uint32_t workers;      /* configured                                                    */
    uint32_t workers_live; /* worker threads that exist, replacements included              */
    uint32_t workers_idle; /* asleep, and ready to take new work                            */
    uint32_t threads;      /* OS threads for blocking work                                  */
    uint64_t accepted;     /* bodies accepted so far                                        */
    uint64_t ended;        /* bodies ended so far                                           */
    uint64_t stalls;       /* stalls found so far                                           */
    uint64_t stacks;       /* stacks that exist                                             */
    uint64_t stacks_free;  /* of those, in the shared pool                                  */
    uint64_t stack_waits;  /* times a worker could not start a body for want of a stack     */
} weir_runtime_stats;

/* Fills `out`, of which the caller set `size`. WEIR_EINVAL: NULL, or no size. */
int weir_runtime_stats_get(weir_runtime_stats *out, weir_runtime *rt);

WEIR_END_DECLS

#endif
