/* Where bytes flow: pipes and connected sockets, read and write.
 *
 * A stream is a ring of bytes with one end to read and one to write. A pipe is one stream, a
 * connection is two. Pipes keep Linux's promises for a pipe of one page: up to PIPE_BUF bytes are
 * written in one piece or not at all, and it polls as writable only if such a write would not wait.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weir/io.h>

enum { CAPACITY = 4096, PIECE = 4096 };

struct wr_sim_stream {
    bool reader_open, writer_open;
    int reader, writer; /* descriptors, -1 while there is none */
    size_t head, count; /* the first byte to read, and how many there are */
    unsigned char bytes[CAPACITY];
};

struct wr_sim_stream *wr_sim_stream_new(void)
{
    struct wr_sim_stream *stream = calloc(1, sizeof(*stream));

    WR_ASSERT(stream != NULL);
    stream->reader_open = stream->writer_open = true;
    stream->reader = stream->writer = -1;
    return stream;
}

void wr_sim_stream_attach(struct wr_sim_fd *fd, struct wr_sim_stream *in, struct wr_sim_stream *out)
{
    fd->in = in;
    fd->out = out;
    if (in)
        in->reader = wr_sim_fd_number(fd);
    if (out)
        out->writer = wr_sim_fd_number(fd);
}

static void stream_closed(struct wr_sim_stream *stream, int other_end)
{
    if (!stream->reader_open && !stream->writer_open)
        free(stream);
    else
        wr_sim_fd_changed(wr_sim_fd_get(other_end));
}

void wr_sim_stream_close_reader(struct wr_sim_stream *stream)
{
    if (!stream)
        return;
    stream->reader_open = false;
    stream->reader = -1;
    stream_closed(stream, stream->writer);
}

void wr_sim_stream_close_writer(struct wr_sim_stream *stream)
{
    if (!stream)
        return;
    stream->writer_open = false;
    stream->writer = -1;
    stream_closed(stream, stream->reader);
}

static bool can_write(const struct wr_sim_fd *fd)
{
    size_t room = CAPACITY - fd->out->count;

    return fd->kind == WR_SIM_PIPE ? room >= PIECE : room > 0;
}

/* As epoll tells it: the end of a pipe is a hang-up but not "readable", that of a socket is both.
 */
int wr_sim_stream_ready(const struct wr_sim_fd *fd)
{
    bool socket = fd->kind == WR_SIM_SOCKET;
    int ready = 0;

    if (fd->in && fd->in->count > 0)
        ready |= WEIR_READ;
    if (fd->in && !fd->in->writer_open)
        ready |= WEIR_HANGUP | (socket ? WEIR_READ : 0);
    if (fd->out && can_write(fd))
        ready |= WEIR_WRITE;
    if (fd->out && !fd->out->reader_open)
        ready |= WEIR_HANGUP | (socket ? WEIR_WRITE : 0);
    return ready;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* How much of n bytes to move this time. */
static size_t cut_short(size_t n)
{
    if (n < 2 || !wr_sim_chance(wr_sim.opt.short_per_256))
        return n;
    wr_sim.report.shorts++;
    return 1 + wr_sim_below(&wr_sim.fault_luck, (uint32_t)(n - 1));
}

static void stream_take(struct wr_sim_stream *stream, unsigned char *to, size_t n)
{
    size_t straight = n < CAPACITY - stream->head ? n : CAPACITY - stream->head;

    memcpy(to, stream->bytes + stream->head, straight);
    memcpy(to + straight, stream->bytes, n - straight);
    stream->head = (stream->head + n) % CAPACITY;
    stream->count -= n;
    wr_sim_fd_changed(wr_sim_fd_get(stream->writer));
}

static void stream_give(struct wr_sim_stream *stream, const unsigned char *from, size_t n)
{
    size_t tail = (stream->head + stream->count) % CAPACITY;
    size_t straight = n < CAPACITY - tail ? n : CAPACITY - tail;

    memcpy(stream->bytes + tail, from, straight);
    memcpy(stream->bytes, from + straight, n - straight);
    stream->count += n;
    wr_sim_fd_changed(wr_sim_fd_get(stream->reader));
}

static int64_t read_now(struct wr_sim_fd *fd, void *buffer, size_t size)
{
    size_t n;

    if (fd->kind == WR_SIM_FILE)
        return 0;
    if (fd->kind != WR_SIM_PIPE && fd->kind != WR_SIM_SOCKET)
        return -EINVAL;
    if (!fd->in)
        return fd->kind == WR_SIM_PIPE ? -EBADF : -ENOTCONN;
    if (size == 0 || (fd->in->count == 0 && !fd->in->writer_open))
        return 0;
    if (fd->in->count == 0)
        return -EAGAIN;
    n = cut_short(size < fd->in->count ? size : fd->in->count);
    stream_take(fd->in, buffer, n);
    return (int64_t)n;
}

/* A pipe in blocking mode is only written to when that is sure not to wait. */
static size_t room_needed(const struct wr_sim_fd *fd, size_t size)
{
    if (fd->kind == WR_SIM_SOCKET)
        return 1;
    if (!fd->nonblocking)
        return PIECE;
    return size <= PIECE ? size : 1;
}

static int64_t write_now(struct wr_sim_fd *fd, const void *buffer, size_t size)
{
    size_t room, n;

    if (fd->kind == WR_SIM_FILE)
        return (int64_t)size;
    if (fd->kind != WR_SIM_PIPE && fd->kind != WR_SIM_SOCKET)
        return -EINVAL;
    if (!fd->out)
        return fd->kind == WR_SIM_PIPE ? -EBADF : -ENOTCONN;
    if (!fd->out->reader_open)
        return -EPIPE;
    room = CAPACITY - fd->out->count;
    if (size > 0 && room < room_needed(fd, size))
        return -EAGAIN;
    n = cut_short(size < room ? size : room);
    stream_give(fd->out, buffer, n);
    return (int64_t)n;
}

int64_t wr_os_read(int number, void *buffer, size_t size)
{
    struct wr_sim_fd *fd;
    int64_t n;

    wr_sim_call("read");
    wr_sim.report.reads++;
    fd = wr_sim_fd_get(number);
    if (!fd || wr_sim_interrupted())
        return fd ? -EINTR : -EBADF;
    n = read_now(fd, buffer, size);
    WR_SIM_LOG("reads descriptor %d: %lld", number, (long long)n);
    return n;
}

int64_t wr_os_write(int number, const void *buffer, size_t size)
{
    struct wr_sim_fd *fd;
    int64_t n;

    wr_sim_call("write");
    wr_sim.report.writes++;
    fd = wr_sim_fd_get(number);
    if (!fd || wr_sim_interrupted())
        return fd ? -EINTR : -EBADF;
    n = write_now(fd, buffer, size);
    WR_SIM_LOG("writes descriptor %d: %lld", number, (long long)n);
    return n;
}

/* ---- making them ----------------------------------------------------------------------------- */

static int pair_new(struct wr_sim_fd *ends[2], enum wr_sim_kind kind, int fds[2])
{
    wr_sim_call("weir_sim_pipe");
    ends[0] = wr_sim_fd_new(kind);
    ends[1] = ends[0] ? wr_sim_fd_new(kind) : NULL;
    if (!ends[1]) {
        if (ends[0])
            ends[0]->kind = WR_SIM_FREE;
        return -EMFILE;
    }
    fds[0] = wr_sim_fd_number(ends[0]);
    fds[1] = wr_sim_fd_number(ends[1]);
    return 0;
}

int weir_sim_pipe(int fds[2])
{
    struct wr_sim_stream *stream;
    struct wr_sim_fd *ends[2];
    int rc = pair_new(ends, WR_SIM_PIPE, fds);

    if (rc < 0)
        return rc;
    stream = wr_sim_stream_new();
    wr_sim_stream_attach(ends[0], stream, NULL);
    wr_sim_stream_attach(ends[1], NULL, stream);
    return 0;
}

int weir_sim_socketpair(int fds[2])
{
    struct wr_sim_stream *there, *back;
    struct wr_sim_fd *ends[2];
    int rc = pair_new(ends, WR_SIM_SOCKET, fds);

    if (rc < 0)
        return rc;
    there = wr_sim_stream_new();
    back = wr_sim_stream_new();
    wr_sim_stream_attach(ends[0], back, there);
    wr_sim_stream_attach(ends[1], there, back);
    return 0;
}

int wr_os_pipe(int fds[2])
{
    return weir_sim_pipe(fds);
}
