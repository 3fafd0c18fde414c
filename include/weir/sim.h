/* The simulator: weir's own code on simulated threads, with a simulated clock, luck and kernel.
 *
 * In libweir-sim every atomic operation and every system call is a point at which another simulated
 * thread may go on. Who does is decided by one seed, and so is everything else: all threads share
 * one OS thread, time moves only when nobody can run, random numbers and faults are drawn from the
 * seed. The same seed gives the same run, to the nanosecond.
 *
 *     static void scenario(void *arg)
 *     {
 *         ...                                     use weir as a program would
 *         WEIR_SIM_CHECK(weir_now() == start + 5000000);
 *     }
 *     weir_sim_explore(WEIR_SIM_OPTIONS(.eintr_per_256 = 8), 1000, scenario, NULL, NULL);
 *
 * A run fails if a check fails, if no thread can ever go on, if it does not come to an end, or if
 * something is left over when the scenario returns: memory, threads, descriptors. The failure names
 * the seed; WEIR_SEED=<seed> in the environment repeats it, WEIR_TRACE=1 prints what happens.
 *
 * Only in libweir-sim, and only from one OS thread of the process.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_SIM_H
#define WEIR_SIM_H

#include <stdbool.h>
#include <sys/types.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

#define WEIR_SIM_NEVER UINT32_MAX              /* in a field whose zero asks for a default     */
#define WEIR_SIM_START ((weir_time)1000000000) /* what the clock shows when a run begins       */

typedef struct weir_sim_options { /* zero in any field asks for its default */
    size_t size;
    uint64_t seed;         /* default: WEIR_SEED of the environment, or 1                  */
    uint32_t cpus;         /* what the library takes for the number of CPUs; default 2     */
    uint32_t switch_every; /* on average, points between two preemptions; default: 2, 8, 32
                                  or 128, as the seed says                                     */
    uint64_t points_max;   /* a run with more is a livelock; default 20 million            */
    uint64_t jumps_max;    /* the same for moves of the clock; default 200 000             */
    bool trace;            /* print switches and system calls to stderr; also WEIR_TRACE=1 */

    /* The n-th such call of the run fails; default: none does. With `sticky` all later ones, too. */
    uint64_t fail_alloc;  /* NULL    */
    uint64_t fail_map;    /* NULL    */
    uint64_t fail_guard;  /* -ENOMEM */
    uint64_t fail_thread; /* -EAGAIN */
    uint64_t fail_poller; /* -EMFILE */
    uint64_t fail_watch;  /* -ENOMEM */
    bool sticky;

    /* Chances, in 256ths. */
    uint32_t eintr_per_256; /* read, write, accept, connect and poll are interrupted; default 0 */
    uint32_t short_per_256; /* reads and writes move less than they could; default 0        */
    uint32_t spurious_per_256; /* futex and poller wake for no reason; default 4; WEIR_SIM_NEVER */

    /* Chance, in 65536ths and at every point, that the clock jumps to the next deadline although
     * threads could run, as if they had all been slow. Finds races between a deadline and what it
     * bounds; times are not exact then. Default 0. */
    uint32_t slip_per_65536;
    bool busy_computes; /* weir_sim_busy() uses the CPU; default: it blocks, as in a system call */
} weir_sim_options;
#define WEIR_SIM_OPTIONS(...) (&(weir_sim_options){ .size = sizeof(weir_sim_options), __VA_ARGS__ })

typedef struct weir_sim_report { /* the caller sets `size`; see WEIR_SIM_REPORT */
    size_t size;
    bool ok;
    char message[1024]; /* "" if ok; else why not, ending in "replay with WEIR_SEED=n" */
    uint64_t seed;
    uint64_t points;    /* points passed                                               */
    uint64_t switches;  /* times another thread went on                                */
    uint64_t trace;     /* a digest of the schedule: equal for equal runs              */
    weir_time ended_at; /* virtual time at the end                                     */

    /* How often the library asked for each; failed attempts count. A test of every failure runs
     * once without, then for n = 1 up to the count with fail_... = n. */
    uint64_t allocs, maps, guards, threads, pollers, watches;
    uint64_t reads, writes, futex_waits, futex_wakes, poller_waits;
    uint64_t faults;     /* calls that fail_... made fail                               */
    uint64_t interrupts; /* calls that were interrupted or woke for no reason           */
    uint64_t shorts;     /* reads and writes cut short                                  */
} weir_sim_report;
#define WEIR_SIM_REPORT                 \
    {                                   \
        .size = sizeof(weir_sim_report) \
    }

/* Runs scenario(arg) once on a simulated thread named "main". `report` may be NULL (a failure is then
 * printed to stderr), and so may `opt`.
 * 0: the run was fine. WEIR_EDEADLK: it failed, the report says why. WEIR_EINVAL, WEIR_EVERSION: bad
 * options, or called from inside a run. */
int weir_sim_run(weir_sim_report *report, const weir_sim_options *opt, void (*scenario)(void *arg),
                 void *arg);

/* Runs it for `seeds` seeds, counting up from the one in `base`; or, if the environment has
 * WEIR_SEED, for that one only. Stops at the first failure, prints it to stderr and stores it in
 * *first_failure (may be NULL). Answers as weir_sim_run does. */
int weir_sim_explore(const weir_sim_options *base, uint64_t seeds, void (*scenario)(void *arg),
                     void *arg, weir_sim_report *first_failure);

/* ---- for use inside a run, from any simulated thread or any body on one ------------------------ */

/* Ends the run as failed. Does not return; everything in the run is abandoned. A test framework's own
 * assertions do not know the way out of a run: use this or WEIR_SIM_CHECK. */
void weir_sim_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define WEIR_SIM_CHECK(condition) \
    ((condition) ? (void)0        \
                 : weir_sim_fail("%s:%d: check failed: %s", __FILE__, __LINE__, #condition))

uint64_t weir_sim_seed(void);
uint64_t weir_sim_random(
    void); /* the scenario's own luck; drawing it does not disturb the schedule */

/* Starts a simulated plain thread; answers its handle, positive. It must be joined, once.
 * WEIR_EAGAIN: there are too many. */
int64_t weir_sim_thread(void (*body)(void *arg), void *arg, const char *name);
void weir_sim_join(int64_t handle);

/* Blocks the calling thread, and whatever runtime lives on it, for `ns` of virtual time: a slow
 * system call, a computation, a descheduled thread. */
void weir_sim_busy(int64_t ns);

/* Lets another thread go on, if there is one that can. */
void weir_sim_pause(void);

/* Simulated descriptors; weir's calls take them wherever they take a descriptor. All are in blocking
 * mode at first. They answer 0 or a descriptor, or -EMFILE. */
int weir_sim_pipe(int fds[2]);        /* fds[0] reads, fds[1] writes; holds 4096 bytes          */
int weir_sim_socketpair(int fds[2]);  /* two connected sockets                                  */
int weir_sim_socket(void);            /* to be connected to a listener                          */
int weir_sim_listener(uint16_t port); /* takes connections to any AF_INET address of that port  */
int weir_sim_file(void);              /* like a regular file: always ready, cannot be watched;
                                         reads as empty, swallows what is written               */
void weir_sim_close(int fd);

/* Sets non-blocking mode, as O_NONBLOCK would. */
void weir_sim_nonblocking(int fd, bool on);

/* A child process that ends `ns` from now with a status as from waitpid(2). Answers its pid. */
pid_t weir_sim_child(int64_t ns, int status);

WEIR_END_DECLS

#endif
