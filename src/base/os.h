/* The one door to the kernel. Nothing outside os_linux.c (or the simulator, which implements the same
 * header) makes a system call, reads a clock, starts a thread or allocates memory.
 *
 * Functions that can fail return 0 or more, or a negated errno. Deadlines are absolute.
 * SPDX-License-Identifier: MIT */
#ifndef WR_BASE_OS_H
#define WR_BASE_OS_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <weir/time.h>

/* ---- time, luck, size ------------------------------------------------------------------------ */

weir_time wr_os_now(void);
weir_time wr_os_now_coarse(void); /* a few milliseconds old at most, and cheaper */
uint64_t wr_os_random(void);

/* The processor's own counter, for spans: half the price of wr_os_now. Nanoseconds are `ticks * rate >> 32`; the rate is 0
 * as long as it is not known, which it may stay: then the counter is of no use. */
#if defined(__x86_64__) && !defined(WEIR_SIM)
static inline uint64_t wr_os_ticks(void)
{
    return __builtin_ia32_rdtsc();
}
uint64_t wr_os_tick_rate(void);
#else
static inline uint64_t wr_os_ticks(void)
{
    return (uint64_t)wr_os_now();
}
static inline uint64_t wr_os_tick_rate(void)
{
    return UINT64_C(1) << 32;
}
#endif

static inline int64_t wr_os_ticks_to_ns(uint64_t ticks, uint64_t rate)
{
    return (int64_t)(((unsigned __int128)ticks * rate) >> 32);
}

/* The time as of the last pulse, for the price of a load; 0: there is no pulse. A thread pulses about every millisecond while
 * frequent callers want that; it is late if it gets no CPU. The time read never runs back. */
enum { WR_OS_PULSE_NS = 1000000, WR_OS_PULSE_LATE_NS = 16 * WR_OS_PULSE_NS };
#ifdef WEIR_SIM
static inline weir_time wr_os_pulse(void)
{
    return wr_os_now();
}
#else
extern _Atomic weir_time wr_os_pulse_word __attribute__((visibility("hidden")));
static inline weir_time wr_os_pulse(void)
{
    return wr_load(&wr_os_pulse_word, relaxed);
}
#endif

/* The caller may want the pulse from now on. */
void wr_os_pulse_join(void);

/* The caller wants it no more. The thread ends when all that joined have parted. */
void wr_os_pulse_part(void);

/* The caller wants some pulses more. If the pulse is late, it ends until it is wanted again. */
void wr_os_pulse_want(weir_time now);

/* If the pulse was late after `pulse`: the latest moment at which wr_os_pulse may have answered that; else `pulse`. Only the last
 * time the pulse was late is known. */
weir_time wr_os_pulse_end(weir_time pulse);

/* CPUs this process may use: affinity mask cut by the cgroup's CPU quota, rounded up; at least 1. */
unsigned wr_os_cpus(void);

/* ---- memory ---------------------------------------------------------------------------------- */

void *wr_os_alloc(size_t size);     /* zero-filled; NULL if there is none */
void *wr_os_alloc_raw(size_t size); /* the same, not filled: for large blocks */
void wr_os_free(void *memory);      /* NULL is fine                       */

/* Address space that costs memory only where it is touched; NULL if there is none. Page-aligned. */
void *wr_os_map(size_t size);
void wr_os_unmap(void *memory, size_t size);

/* Makes `count` ranges of `size` bytes, `stride` apart, fault on any access. They need no map entry
 * each where the kernel can do that (MADV_GUARD_INSTALL). */
int wr_os_guard(void *first, size_t size, size_t stride, size_t count);

/* The same, but only in the way that needs no map entries: false if the kernel has none, or not for this
 * memory because it is locked. */
bool wr_os_guard_light(void *first, size_t size, size_t stride, size_t count);

/* Gives the memory behind a range back; it reads as zero afterwards. Guards in it stay. */
void wr_os_discard(void *memory, size_t size);

size_t wr_os_page_size(void);

/* ---- threads --------------------------------------------------------------------------------- */

struct wr_os_thread {
    uintptr_t handle;
};

/* Starts a thread named `name` (at most 15 bytes). It has the signal mask of the caller. */
int wr_os_thread_start(struct wr_os_thread *thread, void (*main)(void *arg), void *arg,
                       const char *name);
void wr_os_thread_join(struct wr_os_thread *thread);

/* The calling thread's number. */
uint32_t wr_os_thread_number(void);

/* Whether the thread of this process with that number is running or wants to run, rather than asleep in the kernel. True also if
 * that cannot be found out. */
bool wr_os_thread_computes(uint32_t number);

/* A few words per thread, zero at first: [0] is the runtime's, [1] the context and [2] the frames of a thread that carries no
 * fibers; [WR_OS_LOCAL_MET] is what lock.c remembers. The compiler may not keep their address across a switch of stacks, but
 * bodies never change threads. */
enum { WR_OS_LOCAL_MET = 3, WR_OS_LOCALS };
#ifdef WEIR_SIM
void **wr_os_local(void);
#else
extern _Thread_local void *wr_os_local_slot[WR_OS_LOCALS]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline void **wr_os_local(void)
{
    return wr_os_local_slot;
}
#endif

/* Between the two calls the calling thread is not cancelled (pthread_cancel); the answer of the first is the argument of the
 * second. No call of this header is a cancellation point, and threads that it starts are never cancelled. */
int wr_os_shield(void);
void wr_os_unshield(int former);

/* Sleeps while *word == expected. 0: woken, changed, or for no reason. -ETIMEDOUT: deadline. */
int wr_os_futex_wait(_Atomic uint32_t *word, uint32_t expected, weir_time deadline);
void wr_os_futex_wake(_Atomic uint32_t *word, unsigned count);

/* Whether the kernel has the fence of wr_os_fence_heavy. The first call may take some ten milliseconds. */
bool wr_os_fence_heavy_ready(void);

/* A fence that all threads of this process pass before it returns, so that threads that do their part often need no fence
 * (wr_fence_light). Takes microseconds. Only once wr_os_fence_heavy_ready has answered true. */
void wr_os_fence_heavy(void);

/* A short pause in a spin. */
void wr_os_relax(void);

/* Lets other threads have the CPU. */
void wr_os_yield(void);

/* ---- readiness ------------------------------------------------------------------------------- */

/* A poller: where a worker sleeps for descriptors, for a moment in time, and for its bell. */
struct wr_os_poller {
    int poll_fd;
    int bell_fd;
};

struct wr_os_ready {
    int fd;
    uint32_t tag; /* of the request that this answers     */
    int events;   /* WEIR_READ | WEIR_WRITE | WEIR_HANGUP */
};

int wr_os_poller_open(struct wr_os_poller *poller);
void wr_os_poller_close(struct wr_os_poller *poller);

/* Asks for one report of `events` on `fd`, in place of what was asked before; 0 events ask for none. The
 * tag comes back with the report: a file that was closed here and lives on elsewhere may still answer
 * an old request, under a number that belongs to another file by now.
 * -EPERM: this kind of descriptor is always ready. -EBADF: it is not open. */
int wr_os_poller_watch(struct wr_os_poller *poller, int fd, int events, uint32_t tag);

/* Sleeps until something is ready, the bell rings or the deadline comes; 0 or past: just looks.
 * Answers the number of reports; the bell is heard but not reported. May return 0 for no reason. */
int wr_os_poller_wait(struct wr_os_poller *poller, struct wr_os_ready *ready, int max,
                      weir_time deadline);

/* Wakes the poller's sleeper, or keeps its next sleep from sleeping. From any thread. */
void wr_os_poller_ring(struct wr_os_poller *poller);

/* Blocks the calling thread until `fd` is ready: events as above, -ETIMEDOUT, -EBADF, -EINTR. */
int wr_os_fd_poll(int fd, int events, weir_time deadline);

/* ---- descriptors ----------------------------------------------------------------------------- */

/* One attempt each that never blocks, whatever the descriptor's mode: -EINTR, -EAGAIN and short counts
 * are the caller's to deal with. (accept and connect: only if set to non-blocking.) */
int64_t wr_os_read(int fd, void *buffer, size_t size);
int64_t wr_os_write(int fd, const void *buffer, size_t size);
int wr_os_accept(int fd, struct sockaddr *address, socklen_t *length);
int wr_os_connect(int fd, const struct sockaddr *address, socklen_t length);
int wr_os_connect_result(int fd);

int wr_os_set_nonblocking(int fd, bool on); /* answers whether it was on before */

int wr_os_child_open(pid_t pid);                 /* a descriptor readable when the child ends */
int wr_os_child_reap(int *status, int child_fd); /* -EAGAIN while it runs                     */
int wr_os_pipe(int fds[2]);                      /* fds[0] reads, fds[1] writes                */
void wr_os_close(int fd);

/* ---- other processes of this machine ---------------------------------------------------------- */

/* Opens a directory that is closed to other users, and makes it if it is missing. -EPERM: it is another user's, or
 * open to others. */
int wr_os_private_dir(const char *path);
uint32_t wr_os_user(void); /* the effective one */

/* Opens a file of such a directory, which must be a plain file of the user's (-EPERM: it is not). */
int wr_os_file_open(int dir, const char *name);

/* Makes a file without a name, of that size, zero-filled. */
int wr_os_file_make(int dir, size_t size);

/* Gives a file a name. -EEXIST: there is one of that name. */
int wr_os_file_name(int fd, int dir, const char *name);

/* Takes a name away. */
void wr_os_file_remove(int dir, const char *name);

/* Locks a file, until it is unlocked or closed. `alone`: no other lock can be held at the same time; else locks that are not
 * `alone` can. */
int wr_os_file_lock(int fd, bool alone);

/* Locks it alone, if that is possible at once. */
bool wr_os_file_try_lock(int fd);
void wr_os_file_unlock(int fd);

/* The file's size, or -errno. */
int64_t wr_os_file_size(int fd);

/* Whether the file still has a name. */
bool wr_os_file_has_name(int fd);

/* The file's bytes, shared with other processes, until wr_os_unmap. NULL: no memory. */
void *wr_os_file_map(int fd, size_t size);

/* Moves the mapping of a file over that of another one of the same size, in one step for all threads. */
bool wr_os_file_map_over(void *from, size_t size, void *to);

/* An identity of the calling process, different from that of any other of this boot, also of a later one with the same number. The
 * lower half is that number. 0: cannot be found out. */
uint64_t wr_os_process_self(void);

/* Grows by one in each child of fork, from the first call of wr_os_forks on. */
extern _Atomic uint32_t wr_os_fork_count __attribute__((visibility("hidden")));
uint32_t wr_os_forks(void);

/* A descriptor that becomes readable when that process ends. -ESRCH: it has. Other errors: it may be alive. */
int wr_os_process_open(uint64_t process);

/* Whether it is alive, and stands still until it is told to go on (SIGSTOP, a debugger). */
bool wr_os_process_is_stopped(uint64_t process);

/* An identity of this boot and its numbering of processes. False: cannot be found out. */
enum { WR_OS_MACHINE = 32 };
bool wr_os_machine(unsigned char id[WR_OS_MACHINE]);

/* Makes a bell in such a directory: a descriptor that becomes readable when another process rings it. wr_os_read hears it,
 * wr_os_file_remove takes it away. */
int wr_os_bell_open(int dir, const char *name);

/* Rings another process's bell. -ENXIO, -ENOENT: that process is gone. */
int wr_os_bell_ring(int dir, const char *name);

/* ---- faults ---------------------------------------------------------------------------------- */

/* Has `handler` called, in signal context, when a thread touches memory it must not; afterwards the
 * fault takes its usual course. Once per process; later calls change nothing. */
int wr_os_on_fault(void (*handler)(const void *address));

/* Gives the calling thread a separate stack for such a handler, or takes it away again. */
void wr_os_fault_stack(bool wanted);

/* Writes to standard error, also from signal context. */
void wr_os_say(const char *text, size_t size);

#endif
