/* A store that processes of one machine share: cells in files that all of them map.
 * SPDX-License-Identifier: MIT */
#include "store/host.h"

#include "base/assert.h"
#include "base/options.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(struct wr_host_place) <= sizeof(weir_place), "a place has room for ours");

/* Failed attempts: after LOOK_AFTER, the last of which yields, it is time to see whether the owner lives; PATIENCE is some
 * 20 ms. */
enum { LOOK_AFTER = 45, PATIENCE = 400 };

/* ---- the lock -------------------------------------------------------------------------------- */

/* The owner did not finish its step, which does not count. Computes again what is derived. */
void wr_host_recover(struct wr_host_file *file)
{
    int64_t used = 0;

    for (int i = 0; i < WR_SEATS; i++)
        used += wr_load(&file->seat[i].held, relaxed);
    wr_store(&file->used, used, relaxed);
    wr_store(&file->hint, 0, relaxed);
}

static bool is_dead(uint64_t process)
{
    int fd = wr_os_process_open(process);

    if (fd >= 0)
        wr_os_close(fd);
    return fd == -ESRCH;
}

/* Another process has had the lock for too long. True: it is ours now. */
static bool take_over(struct wr_host_cell *cell, uint64_t owner)
{
    _Atomic uint64_t *lock = &cell->file->lock.owner;

    if (is_dead(owner)) {
        if (!wr_cas(lock, &owner, cell->store->self, acquire))
            return false;
        wr_host_recover(cell->file);
        return true;
    }
    if (wr_os_process_is_stopped(owner))
        wr_cas(lock, &owner, owner | WR_HOST_MOVED, acq_rel);
    return false;
}

static __attribute__((noinline)) void lock_contended(struct wr_host_cell *cell)
{
    struct wr_spin *lock = &cell->file->lock;
    uint64_t self = cell->store->self, owner;
    unsigned tries = 0;

    for (;;) {
        wr_spin_pause(&tries);
        if (wr_spin_try(lock, self))
            return;
        owner = wr_load(&lock->owner, relaxed);
        if (owner & WR_HOST_MOVED)
            wr_host_follow(cell);
        else if (tries % LOOK_AFTER == 0 && owner && owner != self && take_over(cell, owner))
            return;
    }
}

int wr_host_lock(weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);
    uint64_t free = 0;

    if (WR_UNLIKELY(wr_load(&wr_os_fork_count, relaxed) != cell->store->forks))
        return WEIR_ECLOSED; /* the seat is our parent's */
    if (!wr_cas(&cell->file->lock.owner, &free, cell->store->self, acquire))
        lock_contended(cell);
    return 0;
}

static __attribute__((noinline)) void ring(struct wr_host_cell *cell, uint64_t process)
{
    char name[WR_BELL_NAME];
    int rc;

    wr_host_bell_name(name, process);
    rc = wr_os_bell_ring(cell->store->dir, name);
    /* If the process has ended, the sweep tells the next. If it lives, it has no bell yet, and looks once it has one. */
    if ((rc == -ENXIO || rc == -ENOENT) && is_dead(process))
        wr_host_sweep(&cell->base);
}

int wr_host_unlock(weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);
    uint64_t process = cell->step.ring, self = cell->store->self;
    struct wr_host_step step = cell->step;

    if (step.dirty)
        wr_store(&cell->file->active, !wr_load(&cell->file->active, relaxed), release);
    cell->step = (struct wr_host_step){ 0 };
    if (WR_UNLIKELY(!wr_cas(&cell->file->lock.owner, &self, 0, release)))
        return wr_host_displaced(cell, &step);
    if (WR_UNLIKELY(process))
        ring(cell, process);
    return 0;
}

/* ---- state and permits; under the lock --------------------------------------------------------- */

static void *copy_of(struct wr_host_cell *cell, bool other)
{
    bool second = (wr_load(&cell->file->active, relaxed) != 0) != other;

    return cell->file->state + (second ? cell->stride : 0);
}

static const void *host_read(weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);

    return copy_of(cell, cell->step.dirty);
}

static void *host_write(weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);

    if (!cell->step.dirty)
        memcpy(copy_of(cell, true), copy_of(cell, false), cell->file->header.state_size);
    cell->step.dirty = true;
    return copy_of(cell, true);
}

static int64_t host_used(weir_cell *handle)
{
    return wr_load(&wr_host_cell_of(handle)->file->used, relaxed);
}

static int64_t host_held(weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);

    return wr_load(&cell->file->seat[cell->seat].held, relaxed);
}

static void add(struct wr_host_cell *cell, int64_t permits)
{
    struct wr_seat *seat = &cell->file->seat[cell->seat];

    wr_store(&seat->held, wr_load(&seat->held, relaxed) + permits,
             relaxed); /* this is what counts */
    wr_store(&cell->file->used, wr_load(&cell->file->used, relaxed) + permits, relaxed);
    cell->step.delta += permits;
}

static void host_take(weir_cell *handle, int64_t permits)
{
    wr_host_cell_of(handle)->step.took = true;
    add(wr_host_cell_of(handle), permits);
}

static void host_give(weir_cell *handle, int64_t permits)
{
    add(wr_host_cell_of(handle), -permits);
}

static uint64_t *host_word(weir_cell *handle)
{
    (void)handle;
    return NULL;
}

static uint64_t *host_hint(weir_cell *handle)
{
    return (uint64_t *)&wr_host_cell_of(handle)->file->hint;
}

static bool host_direct(weir_direct *out, weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);
    struct wr_host_file *file = cell->file;

    *out = (weir_direct){ .lock = (uint64_t *)&file->lock.owner,
                          .owner = cell->store->self,
                          .used = (int64_t *)&file->used,
                          .held = (int64_t *)&file->seat[cell->seat].held,
                          .head = (const uint64_t *)&file->head,
                          .tail = (const uint64_t *)&file->tail,
                          .active = (const uint64_t *)&file->active,
                          .copies = file->state,
                          .stride = cell->stride,
                          .forks = cell->store->forks };
    return true;
}

static bool host_holder(weir_cell *handle, size_t at, int64_t *pid, int64_t *permits)
{
    struct wr_host_file *file = wr_host_cell_of(handle)->file;

    for (size_t i = 0; i < WR_SEATS; i++) {
        *permits = wr_load(&file->seat[i].held, relaxed);
        if (*permits == 0 || at-- > 0)
            continue;
        *pid = (int64_t)(uint32_t)wr_load(&file->seat[i].process, relaxed);
        return true;
    }
    return false;
}

/* ---- seats ----------------------------------------------------------------------------------- */

/* Under the lock: clears a seat whose process ended, or leaves. In this order: if the process that clears it dies in between,
 * the seat is still that of a dead process, and is cleared once more. */
static void clear_seat(struct wr_host_cell *cell, uint32_t i)
{
    struct wr_host_file *file = cell->file;
    int64_t held = wr_load(&file->seat[i].held, relaxed);

    wr_host_line_forget(cell, i);
    wr_store(&file->seat[i].held, 0, relaxed);
    wr_store(&file->used, wr_load(&file->used, relaxed) - held, relaxed);
    wr_store(&file->seat[i].process, 0, release);
}

static void remove_bell(struct wr_host_store *store, uint64_t process)
{
    char name[WR_BELL_NAME];

    wr_host_bell_name(name, process);
    wr_os_file_remove(store->dir, name);
}

/* Looks without the lock, since that takes system calls, and clears with it. */
bool wr_host_sweep(weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);
    bool any = false;

    for (uint32_t i = 0; i < WR_SEATS; i++) {
        uint64_t process = wr_load(&cell->file->seat[i].process, acquire);
        if (!process || process == cell->store->self || !is_dead(process))
            continue;
        if (wr_host_lock(handle))
            return any;
        if (wr_load(&cell->file->seat[i].process, relaxed) == process) {
            clear_seat(cell, i);
            remove_bell(cell->store, process);
            any = cell->step.took = true;
        }
        if (wr_host_unlock(handle))
            i--; /* once more */
    }
    if (wr_host_lock(handle))
        return any;
    wr_host_tell(handle);
    wr_host_unlock(handle);
    wr_host_pass_over(cell);
    return any;
}

/* Under the lock. */
static bool find_seat(struct wr_host_cell *cell)
{
    if (cell->seat != UINT32_MAX && /* taken by a step that did not count, except for the seat */
        wr_load(&cell->file->seat[cell->seat].process, relaxed) == cell->store->self)
        return true;
    for (uint32_t i = 0; i < WR_SEATS; i++)
        if (wr_load(&cell->file->seat[i].process, relaxed) == 0) {
            wr_store(&cell->file->seat[i].held, 0, relaxed);
            wr_store(&cell->file->seat[i].process, cell->store->self, release);
            cell->seat = i;
            return true;
        }
    return false;
}

/* Under `opening`: if two threads of a process did this at a time, their seats could not be told apart. */
static bool take_seat(struct wr_host_cell *cell)
{
    bool found;

    do {
        if (wr_host_lock(&cell->base))
            return false;
        found = find_seat(cell);
        cell->step.took = true;
    } while (wr_host_unlock(&cell->base));
    return found;
}

/* ---- opening and closing ----------------------------------------------------------------------- */

static struct wr_lock opening; /* one per process; taken before all other locks of the stores */

static int host_open(weir_cell **out, weir_store *store, const weir_cell_spec *spec,
                     weir_message *message)
{
    struct wr_host_cell *cell = wr_os_alloc(sizeof(*cell));
    bool seated;
    int rc;

    if (!cell)
        return WEIR_ENOMEM;
    cell->base.ops = store->ops;
    cell->store = (struct wr_host_store *)store;
    cell->is_whole = spec->is_whole;
    cell->seat = UINT32_MAX;
    rc =
        wr_os_forks() == cell->store->forks ? wr_host_file_open(cell, spec, message) : WEIR_ECLOSED;
    if (!rc) {
        wr_host_sweep(&cell->base); /* also takes over a lock whose owner is dead */
        wr_lock(&opening);
        seated = take_seat(cell);
        wr_unlock(&opening);
        if (!seated) {
            wr_host_say(message, "%s: %d processes use the guard, and there is no room for more",
                        cell->file_name, WR_SEATS);
            rc = WEIR_EAGAIN;
        }
        wr_os_file_unlock(cell->fd);
        if (!rc) {
            *out = &cell->base;
            return 0;
        }
        wr_host_file_close(cell);
    }
    wr_os_free(cell);
    return rc;
}

/* Under the lock: whether no process has the cell open, and it is as good as new. */
static bool can_be_removed(struct wr_host_cell *cell)
{
    for (int i = 0; i < WR_SEATS; i++)
        if (wr_load(&cell->file->seat[i].process, relaxed))
            return false;
    return cell->is_whole(host_read(&cell->base), wr_os_now());
}

/* Removes the file with the guard's name, and those that came after it. */
static void remove_files(struct wr_host_cell *cell)
{
    const struct wr_host_header *h = &cell->file->header;
    char name[WR_NEXT_NAME];

    wr_os_file_remove(cell->store->dir, cell->file_name);
    for (uint64_t n = 1; n <= h->generation; n++) {
        wr_host_next_name(name, h, n);
        wr_os_file_remove(cell->store->dir, name);
    }
}

/* Frees this process's seat. True: the files can be removed. */
static bool leave_seat(struct wr_host_cell *cell)
{
    bool last;

    wr_host_sweep(&cell->base);
    do {
        if (wr_host_lock(&cell->base))
            return false;
        clear_seat(cell, cell->seat);
        last = can_be_removed(cell);
        wr_host_tell(&cell->base);
        cell->step.took = true;
    } while (wr_host_unlock(&cell->base));
    cell->seat = UINT32_MAX;
    return last;
}

/* Removes the files, but not if a process is about to open them: that process removes them later. It may be stopped, so this
 * waits for it, but not for long. */
static void remove_if_unused(struct wr_host_cell *cell)
{
    unsigned tries = 0;

    while (!wr_os_file_try_lock(cell->fd)) {
        wr_spin_pause(&tries);
        if (tries == PATIENCE)
            return;
    }
    do {
        if (wr_host_lock(&cell->base))
            break;
        if (can_be_removed(cell) && wr_os_file_has_name(cell->fd))
            remove_files(cell);
        cell->step.took = true;
    } while (wr_host_unlock(&cell->base));
    wr_os_file_unlock(cell->fd);
}

static void host_close(weir_cell *handle)
{
    struct wr_host_cell *cell = wr_host_cell_of(handle);

    wr_lock(&cell->store->watching); /* the watcher may be looking at it */
    wr_unlock(&cell->store->watching);
    if (wr_os_forks() == cell->store->forks && leave_seat(cell))
        remove_if_unused(cell);
    wr_host_file_close(cell);
    wr_os_free(cell);
}

static void host_watch(weir_cell *handle)
{
    wr_host_watch(wr_host_cell_of(handle));
}

/* ---- the store --------------------------------------------------------------------------------- */

static void host_free(weir_store *handle)
{
    struct wr_host_store *store = (struct wr_host_store *)handle;

    if (wr_os_forks() == store->forks)
        wr_host_watch_end(store);
    wr_os_close(store->dir);
    wr_os_free(store);
}

static const weir_store_ops host_ops = {
    .size = sizeof(host_ops),
    .free_store = host_free,
    .open = host_open,
    .close = host_close,
    .lock = wr_host_lock,
    .unlock = wr_host_unlock,
    .read = host_read,
    .write = host_write,
    .used = host_used,
    .take = host_take,
    .give = host_give,
    .join = wr_host_join,
    .is_first = wr_host_is_first,
    .is_before = wr_host_is_before,
    .part = wr_host_part,
    .waiting = wr_host_waiting,
    .tell = wr_host_tell,
    .wait = wr_host_wait,
    .watch = host_watch,
    .sweep = wr_host_sweep,
    .word = host_word,
    .hint = host_hint,
    .direct = host_direct,
    .holder = host_holder,
    .held = host_held,
};

static int store_init(struct wr_host_store *store, const char *directory, weir_message *message)
{
    store->base.ops = &host_ops;
    store->bell = -1;
    wr_list_init(&store->waiters);
    if (directory)
        snprintf(store->path, sizeof(store->path), "%s", directory);
    else
        snprintf(store->path, sizeof(store->path), "/dev/shm/weir-%u", wr_os_user());
    store->forks = wr_os_forks();
    store->self = wr_os_process_self();
    if (!store->self || !wr_os_machine(store->machine)) {
        wr_host_say(message, "/proc cannot be read: guards of the host need it");
        return WEIR_EINVAL;
    }
    store->dir = wr_os_private_dir(store->path);
    if (store->dir == -EPERM)
        wr_host_say(
            message,
            "%s: the directory must belong to this user and be closed to others (chmod 700)",
            store->path);
    else if (store->dir < 0)
        wr_host_say(message, "%s: %s", store->path, weir_strerror(store->dir));
    return store->dir == -EPERM ? WEIR_EINVAL : store->dir < 0 ? store->dir : 0;
}

int weir_store_host(weir_store **out, const weir_host_options *options, weir_message *message)
{
    struct wr_host_store *store;
    weir_host_options opt;
    int rc = wr_options_load(&opt, sizeof(opt), options);

    if (message)
        message->text[0] = '\0';
    if (!out)
        rc = WEIR_EINVAL;
    if (!rc && opt.directory && (!*opt.directory || strlen(opt.directory) >= sizeof(store->path))) {
        wr_host_say(message, "the directory's name has %s: use 1 to %zu bytes",
                    *opt.directory ? "too many bytes" : "no bytes", sizeof(store->path) - 1);
        return WEIR_EINVAL;
    }
    if (rc) {
        wr_host_say(message, "%s", weir_strerror(rc));
        return rc;
    }
    store = wr_os_alloc(sizeof(*store));
    if (!store)
        return WEIR_ENOMEM;
    rc = store_init(store, opt.directory, message);
    if (rc) {
        wr_os_free(store);
        return rc;
    }
    *out = &store->base;
    return 0;
}
