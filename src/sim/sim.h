/* What the simulator's files share.
 *
 *     run.c     one run and many: options, luck, failure, report
 *     crash.c   the seed on stderr if the process dies in a run
 *     sched.c   which thread goes on: points, blocking, the clock, futexes
 *     thread.c  simulated threads: stacks, jumps between them, start and join
 *     memory.c  allocations and maps, counted and checked; counted-down faults
 *     fd.c      the table of descriptors: open, close, modes, waiting for one
 *     poller.c  waiting for many: watches and bells
 *     stream.c  where bytes flow: pipes and connected sockets, read and write
 *     socket.c  how sockets become connected: listen, connect, accept
 *     child.c   child processes
 *
 * A run lives on one OS thread. `wr_sim.current` is NULL outside of a run and on the home stack,
 * and the simulator's own code never passes a point halfway through a change, so nothing here is
 * atomic. SPDX-License-Identifier: MIT */
#ifndef WR_SIM_SIM_H
#define WR_SIM_SIM_H

#include "base/os.h"
#include "runtime/context.h"

#include <weir/sim.h>

enum { WR_SIM_THREADS_MAX = 1024, WR_SIM_NAME = 16 };

enum wr_sim_state {
    WR_SIM_READY,  /* in the ready set; the current thread is, too                       */
    WR_SIM_FUTEX,  /* on = the word, number = the value it must have                     */
    WR_SIM_POLLER, /* number = the poller's descriptor                                   */
    WR_SIM_FD,     /* number = the descriptor                                            */
    WR_SIM_JOIN,   /* number = the id of the thread waited for                           */
    WR_SIM_BUSY,
    WR_SIM_ENDED, /* to be joined                                                       */
};

struct wr_sim_thread {
    /* Where it stopped: on its own stack, or on one that the runtime switched to. */
    void *sp;
#ifdef WR_ASAN
    void *fake_stack;
    const void *bounds_low;
    size_t bounds_size;
#endif
    char *stack; /* its own; kept for the next thread */
    void (*main)(void *arg);
    void *arg;
    void *slot[WR_OS_LOCALS]; /* wr_os_local */
    char name[WR_SIM_NAME];
    uint64_t id; /* from 1 in every run; 1 is main */

    enum wr_sim_state state;
    const void *on;
    uint64_t number;
    weir_time deadline;   /* of the wait; WEIR_FOREVER for none             */
    int result;           /* of the wait                                    */
    uint64_t waits_since; /* its place among waiters: smaller came earlier  */
    unsigned ready_place; /* where it stands in the ready set               */
    struct wr_sim_thread *next_spare;
};

struct wr_sim {
    struct wr_sim_thread *current;
    weir_sim_options opt; /* defaults filled in */
    weir_sim_report report;
    bool failed;
    bool frozen; /* in a handler of a deadly signal: no other thread may run any more */
    bool trace;
    weir_time now;
    uint64_t jumps;
    uint64_t waits; /* numbers given to waiters */

    /* Independent sources, so that one more draw here does not change what comes there. */
    uint64_t schedule_luck, fault_luck, library_luck, test_luck;
};

extern struct wr_sim wr_sim;

/* ---- luck (splitmix64) ------------------------------------------------------------------------
 */

static inline uint64_t wr_sim_draw(uint64_t *luck)
{
    uint64_t x = *luck += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A number below n; n is small, so the bias is of no concern. */
static inline uint32_t wr_sim_below(uint64_t *luck, uint32_t n)
{
    return (uint32_t)(((wr_sim_draw(luck) >> 32) * n) >> 32);
}

/* Draws whether a fault with this chance happens; no draw if it cannot. */
static inline bool wr_sim_chance(uint32_t per_256)
{
    return per_256 != 0 && (wr_sim_draw(&wr_sim.fault_luck) & 255) < per_256;
}

/* ---- run.c ------------------------------------------------------------------------------------
 */

#define WR_SIM_LOG(...) (wr_sim.trace ? wr_sim_log(__VA_ARGS__) : (void)0)
void wr_sim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Every simulated system call begins here: a point, and the proof that a run is on. */
void wr_sim_call(const char *name);

/* Draws whether an interruptible call is interrupted now. */
bool wr_sim_interrupted(void);

/* ---- crash.c ----------------------------------------------------------------------------------
 */

/* Around everything that runs simulated code. They nest. */
void wr_sim_crash_watch(void);
void wr_sim_crash_unwatch(void);
void wr_sim_crash_reset(void); /* after a run that was left by longjmp */

/* For assertions that are about to abort: tells stderr the seed, if there is a run. */
void wr_sim_note_panic(void);

/* ---- sched.c ----------------------------------------------------------------------------------
 */

/* Blocks the current thread until wr_sim_wake or the deadline: the result is what wr_sim_wake was
 * given, or -ETIMEDOUT. A deadline that has passed returns at once. */
int wr_sim_block(enum wr_sim_state state, const void *on, uint64_t number, weir_time deadline);
void wr_sim_wake(struct wr_sim_thread *thread, int result);

/* Takes the current thread, which ends, out of the schedule and goes on with another. */
_Noreturn void wr_sim_leave(void);

void wr_sim_ready_add(struct wr_sim_thread *thread);
void wr_sim_sched_reset(void);
bool wr_sim_has_passed(weir_time deadline);

/* Writes a line per thread: what it does or waits for. Answers the length. */
size_t wr_sim_describe(char *out, size_t size);

/* ---- thread.c ---------------------------------------------------------------------------------
 */

extern struct wr_sim_thread *wr_sim_threads[WR_SIM_THREADS_MAX]; /* not yet joined, oldest first */
extern unsigned wr_sim_thread_count;

struct wr_sim_thread *wr_sim_thread_new(const char *name, void (*main)(void *arg), void *arg);
void wr_sim_thread_join(uint64_t id);

/* Leaves the current stack and goes on with `to`. If `for_good`, no thread comes back to that stack. */
void wr_sim_jump(struct wr_sim_thread *to, bool for_good);
_Noreturn void wr_sim_go_home(void);

/* Starts the run's first thread; returns when a thread calls wr_sim_go_home. */
void wr_sim_leave_home(struct wr_sim_thread *main);

#ifdef WR_ASAN
/* The current simulated thread's own stack, for the context that the runtime makes of it. */
void wr_sim_stack_bounds(void **low, size_t *size);
#endif

/* Whether an address lies on a simulated thread's own stack. */
bool wr_sim_thread_owns(const void *address);
void wr_sim_threads_reset(void);

/* ---- memory.c ---------------------------------------------------------------------------------
 */

/* Counts a call and decides whether it is the one to fail. */
bool wr_sim_fault(uint64_t *count, uint64_t fail_at);

/* Forgets what was freed; answers the number of an allocation that was written to afterwards, or 0.
 */
uint64_t wr_sim_memory_spoilt(void);

/* Says what was not given back: nothing, or items in words. */
void wr_sim_memory_left(char *out, size_t size);
void wr_sim_memory_reset(void); /* gives everything back */

/* Whether an address lies in a map. */
bool wr_sim_memory_maps(const void *address);

/* Appends an item ("2 pollers") to a list in words. */
void wr_sim_list_add(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- fd.c -------------------------------------------------------------------------------------
 */

enum wr_sim_kind {
    WR_SIM_FREE,
    WR_SIM_PIPE,
    WR_SIM_SOCKET,
    WR_SIM_LISTENER,
    WR_SIM_FILE,
    WR_SIM_CHILD,
    WR_SIM_POLL,
};

/* Numbers start above those of the test program, so that none of them is taken for another. */
enum { WR_SIM_FD_FIRST = 100, WR_SIM_FDS_MAX = 4096, WR_SIM_BACKLOG_MAX = 32 };

struct wr_sim_fd {
    enum wr_sim_kind kind;
    bool nonblocking;
    uint64_t serial; /* never used twice, while numbers are              */

    /* pipe, connected socket: at least one is set */
    struct wr_sim_stream *in, *out;

    /* socket, listener */
    uint16_t port;
    weir_time connected_at; /* WEIR_FOREVER unless it is connecting             */
    int connect_error;      /* positive errno, to be fetched once               */
    struct wr_sim_stream *backlog_in[WR_SIM_BACKLOG_MAX], *backlog_out[WR_SIM_BACKLOG_MAX];
    unsigned backlog_count;

    pid_t pid; /* child                                            */

    /* poller */
    bool rung;
    struct wr_sim_watch *watches;
    unsigned watch_count, watch_room;
};

/* The open descriptor, or NULL. */
struct wr_sim_fd *wr_sim_fd_get(int number);

/* Opens the lowest free number; NULL if there is none. */
struct wr_sim_fd *wr_sim_fd_new(enum wr_sim_kind kind);
int wr_sim_fd_number(const struct wr_sim_fd *fd);

/* The open descriptor of that kind at or after *place, or NULL; *place is where to look next. */
struct wr_sim_fd *wr_sim_fd_next(enum wr_sim_kind kind, unsigned *place);

/* What a descriptor is ready for at this moment. */
int wr_sim_fd_ready(const struct wr_sim_fd *fd);

/* A descriptor may have become ready: wakes the threads that wait for it, and tells the pollers. NULL is fine. */
void wr_sim_fd_changed(const struct wr_sim_fd *fd);

/* Blocks until the descriptor changes or the deadline comes. -EBADF: it is closed by now. As in a
 * real kernel, closing it wakes no thread. */
int wr_sim_fd_block(struct wr_sim_fd *fd, weir_time deadline);

void wr_sim_fds_left(char *out, size_t size);
void wr_sim_fds_reset(void);

/* ---- poller.c ---------------------------------------------------------------------------------
 */

struct wr_sim_watch {
    int number;
    int events; /* 0: reported, not asked again */
    uint32_t tag;
};

/* A descriptor changed or is being closed. */
void wr_sim_pollers_changed(const struct wr_sim_fd *fd);
void wr_sim_pollers_forget(int number);

/* ---- stream.c, socket.c -----------------------------------------------------------------------
 */

struct wr_sim_stream *wr_sim_stream_new(void);
void wr_sim_stream_attach(struct wr_sim_fd *fd, struct wr_sim_stream *in,
                          struct wr_sim_stream *out);
void wr_sim_stream_close_reader(struct wr_sim_stream *stream); /* NULL is fine */
void wr_sim_stream_close_writer(struct wr_sim_stream *stream);
int wr_sim_stream_ready(const struct wr_sim_fd *fd);

void wr_sim_listener_close(struct wr_sim_fd *fd);
int wr_sim_socket_ready(const struct wr_sim_fd *fd); /* one that is not connected */

/* The next moment at which a connection is made. */
weir_time wr_sim_sockets_due(void);

/* Makes the connections whose moment has come. */
void wr_sim_sockets_tick(void);

/* ---- child.c ----------------------------------------------------------------------------------
 */

bool wr_sim_child_ended(pid_t pid);
weir_time wr_sim_children_due(void);
void wr_sim_children_tick(void);
void wr_sim_children_reset(void);

#endif
