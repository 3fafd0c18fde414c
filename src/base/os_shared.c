/* The door to the kernel, Linux side: files, processes and bells that processes of one machine share.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "base/os_shield.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* Linux 5.3; the same everywhere */
#endif

uint32_t wr_os_user(void)
{
    return (uint32_t)geteuid();
}

/* ---- files ----------------------------------------------------------------------------------- */

int wr_os_private_dir(const char *path)
{
    WR_SHIELDED;
    struct stat st;
    int fd;

    if (mkdir(path, 0700) && errno != EEXIST)
        return -errno;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP ? -EPERM : -errno;
    if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077))
        return fd;
    close(fd);
    return -EPERM;
}

int wr_os_file_open(int dir, const char *name)
{
    WR_SHIELDED;
    int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return errno == ELOOP || errno == EISDIR ? -EPERM : -errno;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        return fd;
    close(fd);
    return -EPERM;
}

int wr_os_file_make(int dir, size_t size)
{
    WR_SHIELDED;
    int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), rc;

    if (fd < 0)
        return -errno;
    rc = posix_fallocate(fd, 0, (off_t)size); /* no room is an error now, not a fault later */
    if (!rc)
        return fd;
    close(fd);
    return -rc;
}

int wr_os_file_name(int fd, int dir, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

void wr_os_file_remove(int dir, const char *name)
{
    unlinkat(dir, name, 0);
}

bool wr_os_file_try_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

int wr_os_file_lock(int fd, bool alone)
{
    WR_SHIELDED;

    while (flock(fd, alone ? LOCK_EX : LOCK_SH))
        if (errno != EINTR)
            return -errno;
    return 0;
}

void wr_os_file_unlock(int fd)
{
    flock(fd, LOCK_UN);
}

int64_t wr_os_file_size(int fd)
{
    struct stat st;

    return fstat(fd, &st) ? -errno : (int64_t)st.st_size;
}

bool wr_os_file_has_name(int fd)
{
    struct stat st;

    return !fstat(fd, &st) && st.st_nlink > 0;
}

void *wr_os_file_map(int fd, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return NULL;
    return memory;
}

bool wr_os_file_map_over(void *from, size_t size, void *to)
{
    return mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

/* ---- processes ------------------------------------------------------------------------------- */

static int read_small(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    if (n < 0)
        return -1;
    text[n] = '\0';
    return 0;
}

/* The state of a process, a letter, and when it began, in ticks since the boot: the third and the 22nd word of its line; the
 * name in the second may hold anything. */
static bool life_of(uint32_t pid, char *state, uint64_t *start)
{
    char path[64], line[1024];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    if (read_small(path, line, sizeof(line)) || !(at = strrchr(line, ')')))
        return false;
    for (int word = 2; word < 22; word++) {
        if (!(at = strchr(at + 1, ' ')))
            return false;
        if (word == 2)
            *state = at[1];
    }
    *start = strtoull(at + 1, NULL, 10);
    return true;
}

static bool start_of(uint32_t pid, uint64_t *start)
{
    char state;

    return life_of(pid, &state, start);
}

static uint64_t identity(uint32_t pid, uint64_t start)
{
    return start << 32 | pid;
}

uint64_t wr_os_process_self(void)
{
    WR_SHIELDED;
    uint64_t start;

    return start_of((uint32_t)getpid(), &start) ? identity((uint32_t)getpid(), start) : 0;
}

int wr_os_process_open(uint64_t process)
{
    WR_SHIELDED;
    uint32_t pid = (uint32_t)process;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    struct pollfd ended = { .fd = fd, .events = POLLIN };
    uint64_t start;

    if (fd < 0)
        return errno == EINVAL || errno == ENOENT ? -ESRCH : -errno;
    if ((start_of(pid, &start) && identity(pid, start) != process) || poll(&ended, 1, 0) > 0) {
        close(fd);
        return -ESRCH;
    }
    return fd;
}

bool wr_os_process_is_stopped(uint64_t process)
{
    WR_SHIELDED;
    uint64_t start;
    char state;

    return life_of((uint32_t)process, &state, &start) &&
           identity((uint32_t)process, start) == process && (state == 'T' || state == 't');
}

_Atomic uint32_t wr_os_fork_count;
static pthread_once_t watch_forks_once = PTHREAD_ONCE_INIT;

static void forked(void)
{
    wr_add(&wr_os_fork_count, 1, relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

uint32_t wr_os_forks(void)
{
    pthread_once(&watch_forks_once, watch_forks);
    return wr_load(&wr_os_fork_count, relaxed);
}

bool wr_os_machine(unsigned char id[WR_OS_MACHINE])
{
    WR_SHIELDED;
    char boot[64];
    struct stat ns;

    memset(id, 0, WR_OS_MACHINE);
    if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) || strlen(boot) < 36 ||
        stat("/proc/self/ns/pid", &ns))
        return false;
    for (int i = 0, at = 0; i < 36 && at < 16; i++)
        if (boot[i] != '-') {
            unsigned byte;
            if (sscanf(boot + i++, "%2x", &byte) != 1)
                return false;
            id[at++] = (unsigned char)byte;
        }
    memcpy(id + 16, &ns.st_ino, sizeof(ns.st_ino));
    return true;
}

/* ---- bells ----------------------------------------------------------------------------------- */

int wr_os_bell_open(int dir, const char *name)
{
    WR_SHIELDED;
    int fd;

    unlinkat(dir, name, 0); /* of a process that had our number and time: there is none */
    if (mkfifoat(dir, name, 0600))
        return -errno;
    fd = openat(dir, name,
                O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC); /* with a writer, it never ends */
    if (fd < 0)
        return -errno;
    return fd;
}

/* The bell's owner may end between open and write: that is an error here, and no signal. */
static int ring(int fd)
{
    sigset_t pipe, before, pending;
    int rc = 0;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    sigpending(&pending);
    if (write(fd, "", 1) < 0 && errno != EAGAIN) /* full: it has been rung often enough */
        rc = errno == EPIPE ? -ENXIO : -errno;
    if (rc == -ENXIO && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe, NULL, &(struct timespec){ 0 });
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int wr_os_bell_ring(int dir, const char *name)
{
    WR_SHIELDED;
    int fd = openat(dir, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC), rc;

    if (fd < 0)
        return -errno;
    rc = ring(fd);
    close(fd);
    return rc;
}
