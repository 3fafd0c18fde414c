/* The simulator: weir's own code on simulated threads, with a simulated clock, kernel and random numbers.
 *
 * In libweir-sim every atomic operation and every system call is a point at which another simulated
 * thread may go on. All simulated threads share one OS thread, and the clock moves only when none of
 * them can run. A seed decides which thread goes on, and all random numbers and faults: the same
 * seed gives the same run, to the nanosecond.
 *
 *     static void scenario(void *arg)
 *     {
 *         ...                                     use weir as a program would
 *         WEIR_SIM_CHECK(weir_now() == start + 5000000);
 *     }
 *     weir_sim_explore(WEIR_SIM_OPTIONS(.eintr_per_256 = 8), 1000, scenario, NULL, NULL);
 *
 * A run fails if a check fails, if no thread can ever go on, if it passes points_max or jumps_max, or
 * if memory, threads or descriptors are left over when the scenario returns. The failure names the
 * seed; WEIR_SEED=<seed> in the environment repeats that run, WEIR_TRACE=1 prints each step.
 *
 * These calls exist only in libweir-sim, and only one OS thread of the process may use them.
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
                                  or 128, drawn from the seed                                  */
    uint64_t points_max;   /* a run with more points fails; default 20 million             */
    uint64_t jumps_max;    /* a run whose clock moves more often fails; default 200,000    */
    bool trace;            /* print switches and system calls to stderr; also WEIR_TRACE=1 */

    /* The n-th call of its kind fails, with what stands beside it; default: none. With `sticky` all later ones fail,
     * too. */
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
     * threads could run, as if all of them had been slow. Finds races between a deadline and the
     * call it bounds. Times are not exact then. Default 0. */
    uint32_t slip_per_65536;
    bool busy_computes; /* weir_sim_busy() uses the CPU; default: it blocks, as in a system call */
} weir_sim_options;
#define WEIR_SIM_OPTIONS(...) WEIR_SIZED(weir_sim_options, __VA_ARGS__)

typedef struct weir_sim_report { /* the caller sets `size`; see WEIR_SIM_REPORT */
    size_t size;
    bool ok;
    char message[1024]; /* "" if ok; else the failure, ending in "replay with WEIR_SEED=n" */
    uint64_t seed;
    uint64_t points;    /* points passed                                               */
    uint64_t switches;  /* times another thread went on                                */
    uint64_t trace;     /* a digest of the schedule: equal for equal runs              */
    weir_time ended_at; /* virtual time at the end                                     */

    /* How often the library made each kind of call, failed ones included. A test of every failure runs
     * once without any, then with fail_... = n for n = 1 up to the count. */
    uint64_t allocs, maps, guards, threads, pollers, watches;
    uint64_t reads, writes, futex_waits, futex_wakes, poller_waits;
    uint64_t faults;     /* calls that fail_... made fail                               */
    uint64_t interrupts; /* calls that were interrupted or woke for no reason           */
    uint64_t shorts;     /* reads and writes cut short                                  */
} weir_sim_report;
#ifdef __cplusplus
#define WEIR_SIM_REPORT (*WEIR_SIZED(weir_sim_report, ))
#else
#define WEIR_SIM_REPORT                 \
    {                                   \
        .size = sizeof(weir_sim_report) \
    }
#endif

/* Runs scenario(arg) once on a simulated thread named "main". `opt` may be NULL; so may `report`: a failure
 * is then printed to stderr.
 * 0: the run succeeded. WEIR_EDEADLK: it failed, and the report says why. WEIR_EINVAL, WEIR_EVERSION: bad
 * options, or called from inside a run. */
int weir_sim_run(weir_sim_report *report, const weir_sim_options *opt, void (*scenario)(void *arg),
                 void *arg);

/* Runs the scenario for `seeds` seeds, counting up from that of `base`; if the environment has WEIR_SEED, for
 * that seed only. Stops at the first failure, prints it to stderr and stores it in *first_failure (may be
 * NULL). Answers as weir_sim_run. */
int weir_sim_explore(const weir_sim_options *base, uint64_t seeds, void (*scenario)(void *arg),
                     void *arg, weir_sim_report *first_failure);

/* ---- for use inside a run, from any simulated thread or any body on one ------------------------ */

/* Ends the run as failed, with that message. Does not return. Inside a run use this or WEIR_SIM_CHECK: the
 * assertions of a test framework cannot leave a simulated thread. */
void weir_sim_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define WEIR_SIM_CHECK(condition) \
    ((condition) ? (void)0        \
                 : weir_sim_fail("%s:%d: check failed: %s", __FILE__, __LINE__, #condition))

/* The seed of this run. */
uint64_t weir_sim_seed(void);

/* A random number for the scenario, drawn from the seed. Does not change the schedule. */
uint64_t weir_sim_random(void);

/* Starts a simulated plain thread and answers its handle, which is positive and must be joined once.
 * WEIR_EAGAIN: there are too many threads. */
int64_t weir_sim_thread(void (*body)(void *arg), void *arg, const char *name);

/* Waits for a simulated thread to end. */
void weir_sim_join(int64_t handle);

/* Blocks the calling simulated thread, and with it a worker that runs on it, for `ns` of virtual time: a slow
 * system call, a computation, a descheduled thread. */
void weir_sim_busy(int64_t ns);

/* Lets another simulated thread go on, if one can. */
void weir_sim_pause(void);

/* Simulated descriptors, for all calls of weir that take one. They are in blocking mode at first. Each call
 * answers 0 or a descriptor, or -EMFILE. */
int weir_sim_pipe(int fds[2]);        /* fds[0] reads, fds[1] writes; holds 4096 bytes          */
int weir_sim_socketpair(int fds[2]);  /* two connected sockets                                  */
int weir_sim_socket(void);            /* to be connected to a listener                          */
int weir_sim_listener(uint16_t port); /* takes connections to any AF_INET address of that port  */
int weir_sim_file(void);              /* like a regular file: always ready, cannot be watched;
                                         reads as empty, swallows what is written               */
void weir_sim_close(int fd);

/* Sets non-blocking mode, as O_NONBLOCK would. */
void weir_sim_nonblocking(int fd, bool on);

/* Makes a child process that ends `ns` from now with a status as from waitpid(2), and answers its pid. */
pid_t weir_sim_child(int64_t ns, int status);

WEIR_END_DECLS

#endif
