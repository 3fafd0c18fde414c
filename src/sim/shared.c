/* A simulated machine has one process, and nothing to share: stores of the host are refused there.
 * SPDX-License-Identifier: MIT */
#include "sim/sim.h"

#include <errno.h>
#include <string.h>

uint32_t wr_os_user(void)
{
    return 0;
}

int wr_os_private_dir(const char *path)
{
    (void)path;
    return -ENOSYS;
}

int wr_os_file_open(int dir, const char *name)
{
    (void)dir;
    (void)name;
    return -ENOSYS;
}

int wr_os_file_make(int dir, size_t size)
{
    (void)dir;
    (void)size;
    return -ENOSYS;
}

int wr_os_file_name(int fd, int dir, const char *name)
{
    (void)fd;
    (void)dir;
    (void)name;
    return -ENOSYS;
}

void wr_os_file_remove(int dir, const char *name)
{
    (void)dir;
    (void)name;
}

int wr_os_file_lock(int fd, bool alone)
{
    (void)fd;
    (void)alone;
    return -ENOSYS;
}

bool wr_os_file_try_lock(int fd)
{
    (void)fd;
    return false;
}

void wr_os_file_unlock(int fd)
{
    (void)fd;
}

int64_t wr_os_file_size(int fd)
{
    (void)fd;
    return -ENOSYS;
}

bool wr_os_file_has_name(int fd)
{
    (void)fd;
    return false;
}

void *wr_os_file_map(int fd, size_t size)
{
    (void)fd;
    (void)size;
    return NULL;
}

uint64_t wr_os_process_self(void)
{
    return 1;
}

_Atomic uint32_t wr_os_fork_count;

uint32_t wr_os_forks(void)
{
    return 0;
}

bool wr_os_file_map_over(void *from, size_t size, void *to)
{
    (void)from;
    (void)size;
    (void)to;
    return false;
}

bool wr_os_process_is_stopped(uint64_t process)
{
    (void)process;
    return false;
}

int wr_os_process_open(uint64_t process)
{
    (void)process;
    return -ENOSYS;
}

bool wr_os_machine(unsigned char id[WR_OS_MACHINE])
{
    memset(id, 0, WR_OS_MACHINE);
    return true;
}

int wr_os_bell_open(int dir, const char *name)
{
    (void)dir;
    (void)name;
    return -ENOSYS;
}

int wr_os_bell_ring(int dir, const char *name)
{
    (void)dir;
    (void)name;
    return -ENOSYS;
}
