/* Output that has to wait: tails in memory, full pieces in an unlinked file.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/spool.h"

#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Memory that all tails together may take before they go to the file half full. */
static const int64_t MEMORY_MAX = 64 << 20;

struct spool_extent {
    uint32_t piece, length;
};

/* Under the lock:
 *     pieces == pieces that some extent has + free_count            */
struct spool {
    struct wr_lock lock;
    const char *directory;
    int fd; /* -1: not needed so far */
    uint32_t pieces;
    uint32_t *free;
    size_t free_count, free_size;
    _Atomic int64_t in_memory; /* sizes of all tails */
};

int spool_new(struct spool **out, const char *directory)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return -ENOMEM;
    (*out)->directory = directory;
    (*out)->fd = -1;
    return 0;
}

void spool_free(struct spool *spool)
{
    if (!spool)
        return;
    if (spool->fd >= 0)
        close(spool->fd);
    free(spool->free);
    free(spool);
}

static int open_unlinked(const char *directory)
{
    char name[4096];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0)
        return fd;
    /* Not every file system knows O_TMPFILE. */
    if (snprintf(name, sizeof(name), "%s/weir.XXXXXX", directory) >= (int)sizeof(name))
        return -ENAMETOOLONG;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(name);
    return fd;
}

/* A piece to write to, under the lock; or a negated errno. */
static int64_t take_piece(struct spool *spool)
{
    if (spool->fd < 0) {
        int fd = open_unlinked(spool->directory);
        if (fd < 0)
            return fd;
        spool->fd = fd;
    }
    if (spool->free_count)
        return spool->free[--spool->free_count];
    if (spool->pieces == spool->free_size) { /* so that giving back needs no memory */
        size_t size = spool->free_size ? spool->free_size * 2 : 64;
        uint32_t *larger = realloc(spool->free, size * sizeof(*larger));
        if (!larger)
            return -ENOMEM;
        spool->free = larger;
        spool->free_size = size;
    }
    return spool->pieces++;
}

static void give_piece(struct spool *spool, uint32_t piece)
{
    wr_lock(&spool->lock);
    spool->free[spool->free_count++] = piece;
    wr_unlock(&spool->lock);
}

static int write_all(int fd, const char *text, size_t length, off_t at)
{
    while (length) {
        ssize_t n = pwrite(fd, text, length, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : -ENOSPC;
        text += n;
        length -= (size_t)n;
        at += n;
    }
    return 0;
}

/* Moves the tail into the file. */
static int flush_tail(struct spooled *s, struct spool *spool)
{
    int64_t piece;
    int rc;

    if (s->extents == s->extents_size) {
        size_t size = s->extents_size ? s->extents_size * 2 : 4;
        struct spool_extent *larger = realloc(s->extent, size * sizeof(*larger));
        if (!larger)
            return -ENOMEM;
        s->extent = larger;
        s->extents_size = size;
    }
    wr_lock(&spool->lock);
    piece = take_piece(spool);
    wr_unlock(&spool->lock);
    if (piece < 0)
        return (int)piece;
    rc = write_all(spool->fd, s->tail, s->length, (off_t)piece * SPOOL_PIECE);
    if (rc) {
        give_piece(spool, (uint32_t)piece);
        return rc;
    }
    s->extent[s->extents++] = (struct spool_extent){ (uint32_t)piece, (uint32_t)s->length };
    s->length = 0;
    return 0;
}

/* Makes room for `more` bytes behind the tail. */
static int grow_tail(struct spooled *s, struct spool *spool, size_t more)
{
    size_t size = s->size ? s->size : 256;
    char *larger;

    while (size < s->length + more)
        size *= 2;
    if (size == s->size)
        return 0;
    larger = realloc(s->tail, size);
    if (!larger)
        return -ENOMEM;
    atomic_fetch_add(&spool->in_memory, (int64_t)(size - s->size));
    s->tail = larger;
    s->size = size;
    return 0;
}

static bool memory_is_short(const struct spool *spool, const struct spooled *s)
{
    enum { WORTH_A_WRITE = 4096 };

    return s->length >= WORTH_A_WRITE && atomic_load(&spool->in_memory) > MEMORY_MAX;
}

/* An empty tail gives its memory back. */
static void release_tail(struct spooled *s, struct spool *spool)
{
    atomic_fetch_sub(&spool->in_memory, (int64_t)s->size);
    free(s->tail);
    s->tail = NULL;
    s->size = 0;
}

bool spooled_fits(const struct spooled *s, const struct spool *spool, size_t length)
{
    return s->length + length <= SPOOL_PIECE && !memory_is_short(spool, s);
}

int spooled_add(struct spooled *s, struct spool *spool, const char *text, size_t length)
{
    bool is_short = memory_is_short(spool, s);
    int rc = 0;

    if (!spooled_fits(s, spool, length))
        rc = flush_tail(s, spool);
    if (!rc && is_short)
        release_tail(s, spool);
    if (!rc)
        rc = grow_tail(s, spool, length);
    if (rc)
        return rc;
    memcpy(s->tail + s->length, text, length);
    s->length += length;
    return 0;
}

void spooled_settle(struct spooled *s, struct spool *spool)
{
    if (memory_is_short(spool, s) && flush_tail(s, spool) == 0)
        release_tail(s, spool);
}

int64_t spooled_read(const struct spooled *s, struct spool *spool, char *buffer, size_t *position)
{
    size_t i = (*position)++;
    ssize_t n;

    if (i > s->extents)
        return 0;
    if (i == s->extents) {
        memcpy(buffer, s->tail ? s->tail : "", s->length);
        return (int64_t)s->length;
    }
    do {
        n = pread(spool->fd, buffer, s->extent[i].length, (off_t)s->extent[i].piece * SPOOL_PIECE);
    } while (n < 0 && errno == EINTR);
    if (n >= 0 && n != (ssize_t)s->extent[i].length)
        return -EIO;
    return n < 0 ? -errno : n;
}

void spooled_fini(struct spooled *s, struct spool *spool)
{
    for (size_t i = 0; i < s->extents; i++)
        give_piece(spool, s->extent[i].piece);
    release_tail(s, spool);
    free(s->extent);
    *s = (struct spooled){ 0 };
}
