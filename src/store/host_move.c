/* A cell whose owner was stopped in the middle of a step goes on in another file.
 *
 * A stopped process (SIGSTOP, a debugger) may go on at any time, and then finishes the stores of its step. No store can be
 * made conditional on still owning a lock, but where it lands can be chosen: a process that waits for the lock marks it as
 * moved and copies the cell into the next file, and all processes go on there. What the stopped process still writes goes into
 * a file that no process reads any more. It finds out when it gives the lock back by compare and swap, which fails.
 *
 * A step that decided something does not count then, and is to be done again. Permits given back and places given up count:
 * they are carried over to the new file. All that a step may leave half done can be told apart, as after a death:
 * docs/internals/guards.md.
 *
 * The next file is complete before it has its name, and a name is given once: of several processes that copy, one is the
 * first, and a process that comes late, or was stopped here, finds that file. Files that were left stay until the guard's
 * file is removed.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "store/host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void wr_host_next_name(char name[WR_NEXT_NAME], const struct wr_host_header *header, uint64_t n)
{
    snprintf(name, WR_NEXT_NAME, "next-%016" PRIx64 "-%" PRIu64, header->birth, n);
}

bool wr_host_is_moved(const struct wr_host_cell *cell)
{
    return wr_load(&cell->file->lock.owner, acquire) & WR_HOST_MOVED;
}

/* ---- the copy ---------------------------------------------------------------------------------- */

/* The permits of a process; it may have the cell open twice. */
static int64_t held_by(const struct wr_host_file *file, uint64_t process)
{
    int64_t held = 0;

    for (int i = 0; i < WR_SEATS; i++)
        if (wr_load(&file->seat[i].process, relaxed) == process)
            held += wr_load(&file->seat[i].held, relaxed);
    return held;
}

/* The owner may have gone on and be writing. So words by which other data is found are copied first: that data was written
 * before them, and the one step under way takes nothing of it away. */
static void copy(struct wr_host_file *to, const struct wr_host_file *from, size_t stride)
{
    uint64_t active = wr_load(&from->active, acquire) & 1;

    wr_store(&to->active, active, relaxed);
    wr_store(&to->tail, wr_load(&from->tail, acquire), relaxed);
    wr_store(&to->head, wr_load(&from->head, acquire), relaxed);
    for (int i = 0; i < WR_SEATS; i++) {
        wr_store(&to->seat[i].process, wr_load(&from->seat[i].process, acquire), relaxed);
        wr_store(&to->seat[i].held, wr_load(&from->seat[i].held, acquire), relaxed);
    }
    for (int i = 0; i < WR_LINE; i++) {
        wr_store(&to->line[i], wr_load(&from->line[i], relaxed), relaxed);
        wr_store(&to->stamp[i], wr_load(&from->stamp[i], relaxed), relaxed);
    }
    memcpy(to->name, from->name, sizeof(to->name));
    memcpy(to->state + active * stride, from->state + active * stride, from->header.state_size);
    wr_host_recover(to);
}

static int make_next(struct wr_host_cell *cell, const char *name)
{
    const struct wr_host_file *from = cell->file;
    uint64_t owner = wr_load(&from->lock.owner, relaxed) & ~WR_HOST_MOVED;
    size_t size = (size_t)from->header.file_size;
    int fd = wr_os_file_make(cell->store->dir, size), rc;
    struct wr_host_file *to;

    if (fd < 0)
        return fd;
    to = wr_os_file_map(fd, size);
    if (!to) {
        wr_os_close(fd);
        return -ENOMEM;
    }
    copy(to, from, cell->stride);
    to->header = from->header;
    to->header.generation++;
    to->header.displaced_held = held_by(to, owner);
    to->header.displaced_active = wr_load(&to->active, relaxed);
    to->header.sum = wr_host_header_sum(to);
    rc = wr_os_file_name(fd, cell->store->dir, name);
    wr_os_unmap(to, size);
    wr_os_close(fd);
    return rc == -EEXIST ? 0 : rc;
}

/* ---- going on ---------------------------------------------------------------------------------- */

static bool is_next(const struct wr_host_file *next, const struct wr_host_header *h)
{
    return next->header.magic == WR_HOST_MAGIC && next->header.birth == h->birth &&
           next->header.generation == h->generation + 1 && next->header.file_size == h->file_size &&
           next->header.sum == wr_host_header_sum(next);
}

/* Opens the next file, and makes it if there is none. Negative: not possible now. */
static int open_next(struct wr_host_cell *cell)
{
    char name[WR_NEXT_NAME];
    int fd;

    wr_host_next_name(name, &cell->file->header, cell->file->header.generation + 1);
    fd = wr_os_file_open(cell->store->dir, name);
    if (fd == -ENOENT && make_next(cell, name) == 0)
        fd = wr_os_file_open(cell->store->dir, name);
    return fd;
}

/* Finds out, in the file that is left, what of the step counts. If the copy has the state that the step wrote last, it has the
 * whole step. Else a step that decided something is taken back. In step->delta: how many of this process's permits the copy
 * lacks. */
static void leave_file(struct wr_host_cell *cell, struct wr_host_step *step,
                       const struct wr_host_header *next)
{
    bool whole = step->dirty && wr_load(&cell->file->active, relaxed) == next->displaced_active;

    step->took = (step->took || step->dirty) && !whole;
    if (step->took && step->joined) {
        wr_lock(&cell->store->waiters_lock);
        wr_list_remove(&step->joined->link);
        wr_unlock(&cell->store->waiters_lock);
    }
    step->delta = held_by(cell->file, cell->store->self) - (step->took ? step->delta : 0) -
                  next->displaced_held;
    /* Other handles of this process may leave it now, too. */
    wr_store(&cell->file->lock.owner, WR_HOST_MOVED, release);
}

/* With `moving`: maps the next file over the present one, so that all pointers into the cell stay good. A step of this
 * process is settled before that, while both files can be seen. */
static bool go_on(struct wr_host_cell *cell, struct wr_host_step *step)
{
    size_t size = (size_t)cell->file->header.file_size;
    struct wr_host_file *next = NULL;
    int fd = open_next(cell);
    bool done = false;

    if (fd < 0)
        return false;
    if (wr_os_file_size(fd) == (int64_t)size)
        next = wr_os_file_map(fd, size);
    if (next && is_next(next, &cell->file->header)) {
        if (step)
            leave_file(cell, step, &next->header);
        done = wr_os_file_map_over(next, size, cell->file);
        WR_ASSERT(done || !step);
    }
    if (next && !done)
        wr_os_unmap(next, size);
    wr_os_close(fd);
    return done;
}

/* Does not go past a step of this process, which only the thread that did it can settle. */
void wr_host_follow(struct wr_host_cell *cell)
{
    uint64_t word;

    wr_lock(&cell->store->moving);
    while ((word = wr_load(&cell->file->lock.owner, acquire)) & WR_HOST_MOVED &&
           (word & ~WR_HOST_MOVED) != cell->store->self && go_on(cell, NULL))
        ;
    wr_unlock(&cell->store->moving);
}

/* ---- being displaced --------------------------------------------------------------------------- */

/* Under the lock of the new file. */
static void settle(struct wr_host_cell *cell, int64_t more)
{
    struct wr_host_file *file = cell->file;

    if (cell->seat != UINT32_MAX &&
        wr_load(&file->seat[cell->seat].process, relaxed) == cell->store->self) {
        struct wr_seat *seat = &file->seat[cell->seat];
        wr_store(&seat->held, wr_load(&seat->held, relaxed) + more, relaxed);
        wr_store(&file->used, wr_load(&file->used, relaxed) + more, relaxed);
        wr_host_line_settle(cell);
    }
    wr_host_tell(&cell->base);
}

int wr_host_displaced(struct wr_host_cell *cell, struct wr_host_step *step)
{
    unsigned tries = 0;

    wr_lock(&cell->store->moving);
    while (!go_on(cell, step)) { /* no room for the file: try until there is */
        wr_unlock(&cell->store->moving);
        wr_spin_pause(&tries);
        wr_lock(&cell->store->moving);
    }
    wr_unlock(&cell->store->moving);
    /* Other threads may be at work there already. */
    if (!wr_host_lock(&cell->base)) {
        settle(cell, step->delta);
        wr_host_unlock(&cell->base);
    }
    return step->took ? WEIR_EAGAIN : 0;
}
