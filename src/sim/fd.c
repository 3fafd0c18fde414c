/* The table of simulated descriptors: open, close, modes, waiting for one of them.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <weir/io.h>

static struct wr_sim_fd table[WR_SIM_FDS_MAX];
static unsigned table_end; /* nothing at or after this place was ever used in this run */
static uint64_t serials;

struct wr_sim_fd *wr_sim_fd_get(int number)
{
    int place = number - WR_SIM_FD_FIRST;

    if (place < 0 || place >= (int)table_end || table[place].kind == WR_SIM_FREE)
        return NULL;
    return &table[place];
}

struct wr_sim_fd *wr_sim_fd_new(enum wr_sim_kind kind)
{
    unsigned place = 0;

    while (place < table_end && table[place].kind != WR_SIM_FREE)
        place++;
    if (place == WR_SIM_FDS_MAX)
        return NULL;
    if (place == table_end)
        table_end++;
    table[place] =
        (struct wr_sim_fd){ .kind = kind, .serial = ++serials, .connected_at = WEIR_FOREVER };
    return &table[place];
}

int wr_sim_fd_number(const struct wr_sim_fd *fd)
{
    return WR_SIM_FD_FIRST + (int)(fd - table);
}

struct wr_sim_fd *wr_sim_fd_next(enum wr_sim_kind kind, unsigned *place)
{
    while (*place < table_end) {
        struct wr_sim_fd *fd = &table[(*place)++];

        if (fd->kind == kind)
            return fd;
    }
    return NULL;
}

/* ---- waiting --------------------------------------------------------------------------------- */

int wr_sim_fd_ready(const struct wr_sim_fd *fd)
{
    switch (fd->kind) {
    case WR_SIM_PIPE:
        return wr_sim_stream_ready(fd);
    case WR_SIM_SOCKET:
        return fd->in ? wr_sim_stream_ready(fd) : wr_sim_socket_ready(fd);
    case WR_SIM_LISTENER:
        return fd->backlog_count > 0 ? WEIR_READ : 0;
    case WR_SIM_CHILD:
        return wr_sim_child_ended(fd->pid) ? WEIR_READ : 0;
    case WR_SIM_FILE:
        return WEIR_READ | WEIR_WRITE;
    case WR_SIM_POLL:
    case WR_SIM_FREE:
        break;
    }
    return 0;
}

void wr_sim_fd_changed(const struct wr_sim_fd *fd)
{
    if (!fd)
        return;
    for (unsigned i = 0; i < wr_sim_thread_count; i++) {
        struct wr_sim_thread *thread = wr_sim_threads[i];

        if (thread->state == WR_SIM_FD && (uintptr_t)thread->on == fd->serial)
            wr_sim_wake(thread, 0);
    }
    wr_sim_pollers_changed(fd);
}

int wr_sim_fd_block(struct wr_sim_fd *fd, weir_time deadline)
{
    uint64_t serial = fd->serial;
    int rc = wr_sim_block(WR_SIM_FD, (const void *)(uintptr_t)serial,
                          (uint64_t)wr_sim_fd_number(fd), deadline);

    return fd->kind == WR_SIM_FREE || fd->serial != serial ? -EBADF : rc;
}

int wr_os_fd_poll(int number, int events, weir_time deadline)
{
    struct wr_sim_fd *fd;
    int found, rc = 0;

    wr_sim_call("fd_poll");
    fd = wr_sim_fd_get(number);
    if (!fd)
        return -EBADF;
    for (;;) {
        found = wr_sim_fd_ready(fd) & (events | WEIR_HANGUP);
        if (found || rc)
            return found ? found : rc;
        if (wr_sim_interrupted())
            return -EINTR;
        WR_SIM_LOG("polls descriptor %d", number);
        rc = wr_sim_fd_block(fd, deadline);
        if (rc == -EBADF)
            return rc;
    }
}

/* ---- modes and closing ----------------------------------------------------------------------- */

int wr_os_set_nonblocking(int number, bool on)
{
    struct wr_sim_fd *fd;
    bool before;

    wr_sim_call("set_nonblocking");
    fd = wr_sim_fd_get(number);
    if (!fd)
        return -EBADF;
    before = fd->nonblocking;
    fd->nonblocking = on;
    return before;
}

static void fd_release(struct wr_sim_fd *fd)
{
    struct wr_sim_stream *in = fd->in, *out = fd->out;

    if (fd->kind == WR_SIM_LISTENER)
        wr_sim_listener_close(fd);
    free(fd->watches);
    *fd = (struct wr_sim_fd){ .kind = WR_SIM_FREE };
    wr_sim_stream_close_reader(in);
    wr_sim_stream_close_writer(out);
}

void wr_os_close(int number)
{
    struct wr_sim_fd *fd;

    wr_sim_call("close");
    WR_SIM_LOG("closes descriptor %d", number);
    fd = wr_sim_fd_get(number);
    if (!fd)
        weir_sim_fail("close of descriptor %d, which is not open", number);
    wr_sim_pollers_forget(number);
    fd_release(fd);
}

void weir_sim_close(int number)
{
    wr_os_close(number);
}

void weir_sim_nonblocking(int number, bool on)
{
    if (wr_os_set_nonblocking(number, on) < 0)
        weir_sim_fail("descriptor %d is not open", number);
}

int weir_sim_file(void)
{
    struct wr_sim_fd *fd;

    wr_sim_call("weir_sim_file");
    fd = wr_sim_fd_new(WR_SIM_FILE);
    return fd ? wr_sim_fd_number(fd) : -EMFILE;
}

/* ---- the end of a run ------------------------------------------------------------------------ */

void wr_sim_fds_left(char *out, size_t size)
{
    unsigned pollers = 0, others = 0;
    int first = -1;

    for (unsigned i = 0; i < table_end; i++) {
        pollers += table[i].kind == WR_SIM_POLL;
        if (table[i].kind == WR_SIM_FREE || table[i].kind == WR_SIM_POLL)
            continue;
        first = others++ == 0 ? WR_SIM_FD_FIRST + (int)i : first;
    }
    if (others > 0)
        wr_sim_list_add(out, size, "%u descriptor%s (first: %d)", others, others == 1 ? "" : "s",
                        first);
    if (pollers > 0)
        wr_sim_list_add(out, size, "%u poller%s", pollers, pollers == 1 ? "" : "s");
}

void wr_sim_fds_reset(void)
{
    for (unsigned i = 0; i < table_end; i++)
        if (table[i].kind != WR_SIM_FREE)
            fd_release(&table[i]);
    table_end = 0;
    serials = 0;
}
