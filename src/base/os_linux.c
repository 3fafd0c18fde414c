/* The door to the kernel, Linux side: memory, threads, futex. The clock is in os_clock.c, descriptors in
 * os_fd.c, the size of the machine in os_cpus.c.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "base/os_shield.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif
#ifndef PIDFD_SELF
#define PIDFD_SELF (-10000) /* Linux 6.14 */
#endif

#ifndef SYS_process_madvise
#define SYS_process_madvise 440 /* Linux 5.10; the same everywhere */
#endif

/* Linux's, whose headers not every C library comes with. */
enum {
    FUTEX_WAKE_PRIVATE = 1 | 128,
    FUTEX_WAIT_BITSET_PRIVATE = 9 | 128,
};
#define FUTEX_ANY_BIT UINT32_MAX
enum {
    MEMBARRIER_PRIVATE = 1 << 3, /* Linux 4.14 */
    MEMBARRIER_REGISTER_PRIVATE = 1 << 4,
};

enum { GUARD_BATCH = 128 };

_Thread_local void *wr_os_local_slot[WR_OS_LOCALS];

uint64_t wr_os_random(void)
{
    uint64_t value;
    WR_SHIELDED;

    if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
        value = (uint64_t)wr_os_now() * 0x9e3779b97f4a7c15u; /* no entropy yet: luck, not secrecy */
    return value;
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { SMALL = 1024 };

/* Small blocks come from the thread's own cache, which glibc's calloc does not look into; of large blocks calloc knows which
 * are zero already. */
void *wr_os_alloc(size_t size)
{
    void *memory = size <= SMALL ? malloc(size) : calloc(1, size);

    return memory && size <= SMALL ? memset(memory, 0, size) : memory;
}

void *wr_os_alloc_raw(size_t size)
{
    return malloc(size);
}

void wr_os_free(void *memory)
{
    free(memory);
}

size_t wr_os_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *wr_os_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, size, MADV_NOHUGEPAGE); /* one touched page must not cost two megabytes */
    return memory;
}

void wr_os_unmap(void *memory, size_t size)
{
    /* Taking one of several mappings that the kernel has merged may need one entry more than the process
     * may have. Then the addresses stay taken, but not the memory. */
    if (munmap(memory, size))
        madvise(memory, size, MADV_DONTNEED);
}

/* For kernels without MADV_GUARD_INSTALL: each guard then is a map entry of its own. */
static int guard_by_protection(char *first, size_t size, size_t stride, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mprotect(first + i * stride, size, PROT_NONE))
            return -errno;
    return 0;
}

/* Up to a batch of guards in one system call; false if the kernel cannot. */
static bool guard_batch(char *first, size_t size, size_t stride, size_t count)
{
    struct iovec range[GUARD_BATCH];

    for (size_t i = 0; i < count; i++)
        range[i] = (struct iovec){ .iov_base = first + i * stride, .iov_len = size };
    return syscall(SYS_process_madvise, PIDFD_SELF, range, count, MADV_GUARD_INSTALL, 0) ==
           (long)(count * size);
}

bool wr_os_guard_light(void *first, size_t size, size_t stride, size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t batch = count - done < GUARD_BATCH ? count - done : GUARD_BATCH;
        if (!guard_batch((char *)first + done * stride, size, stride, batch))
            return false;
        done += batch;
    }
    return true;
}

int wr_os_guard(void *first, size_t size, size_t stride, size_t count)
{
    return wr_os_guard_light(first, size, stride, count)
               ? 0
               : guard_by_protection(first, size, stride, count);
}

void wr_os_discard(void *memory, size_t size)
{
    madvise(memory, size, MADV_DONTNEED);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct thread_start {
    void (*main)(void *arg);
    void *arg;
    char name[16];
};

static void *thread_main(void *start_arg)
{
    struct thread_start start = *(struct thread_start *)start_arg;

    free(start_arg);
    wr_os_shield(); /* it carries other tasks than the one that it may be cancelled for */
    pthread_setname_np(pthread_self(), start.name);
    start.main(start.arg);
    return NULL;
}

int wr_os_thread_start(struct wr_os_thread *thread, void (*main)(void *arg), void *arg,
                       const char *name)
{
    struct thread_start *start = malloc(sizeof(*start));
    pthread_t id;
    int rc;

    if (!start)
        return -ENOMEM;
    start->main = main;
    start->arg = arg;
    memset(start->name, 0, sizeof(start->name));
    strncpy(start->name, name, sizeof(start->name) - 1);
    rc = pthread_create(&id, NULL, thread_main, start);
    if (rc) {
        free(start);
        return -rc;
    }
    thread->handle = (uintptr_t)id;
    return 0;
}

void wr_os_thread_join(struct wr_os_thread *thread)
{
    WR_SHIELDED;

    WR_ASSERT(pthread_join((pthread_t)thread->handle, NULL) == 0);
    thread->handle = 0;
}

uint32_t wr_os_thread_number(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

bool wr_os_thread_computes(uint32_t number)
{
    WR_SHIELDED;
    char path[64], line[128] = "";
    const char *name_end;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%u/stat", number);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    if (read(fd, line, sizeof(line) - 1) < 0)
        line[0] = '\0';
    close(fd);
    name_end = strrchr(line, ')'); /* "123 (name) R ...", and a name may hold anything */
    return !name_end || name_end[1] != ' ' || name_end[2] == 'R';
}

int wr_os_shield(void)
{
    int former;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former);
    return former;
}

void wr_os_unshield(int former)
{
    pthread_setcancelstate(former, NULL);
}

/* Neither wr_os_futex_wait nor wr_os_futex_wake is a cancellation point, because syscall is none. */
int wr_os_futex_wait(_Atomic uint32_t *word, uint32_t expected, weir_time deadline)
{
    weir_time until = deadline > 0 ? deadline : 0;
    struct timespec t = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };
    /* FUTEX_WAIT_BITSET takes an absolute, monotonic time. */
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
                      deadline == WEIR_FOREVER ? NULL : &t, NULL, FUTEX_ANY_BIT);

    return rc && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

void wr_os_futex_wake(_Atomic uint32_t *word, unsigned count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count > INT_MAX ? INT_MAX : (int)count, NULL, NULL,
            0);
}

bool wr_os_fence_heavy_ready(void)
{
    static _Atomic bool ready;

    if (!wr_load(&ready, relaxed)) /* once for each process, but harmless if done twice */
        wr_store(&ready, !syscall(SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE, 0, 0), relaxed);
    return wr_load(&ready, relaxed);
}

void wr_os_fence_heavy(void)
{
    long rc = syscall(SYS_membarrier, MEMBARRIER_PRIVATE, 0, 0);

    WR_ASSERT(rc == 0); /* it is registered */
}

void wr_os_yield(void)
{
    sched_yield();
}

void wr_os_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}
