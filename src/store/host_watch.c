/* The watcher, a thread of a process that waits for guards of the host: it hears the bell, and notices when a process ends on
 * which waiters depend.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "store/host.h"

#include <errno.h>
#include <stdio.h>
#include <weir/io.h>

enum { READY_MAX = 16, LOOK_NS = 200000000 };

void wr_host_bell_name(char name[WR_BELL_NAME], uint64_t process)
{
    snprintf(name, WR_BELL_NAME, "bell-%016llx", (unsigned long long)process);
}

/* Wakes the waiters that are first in their lines, or have lost their places. */
static void wake_first(struct wr_host_store *store)
{
    wr_lock(&store->waiters_lock);
    wr_list_each(node, &store->waiters) {
        struct wr_host_place *p = WR_CONTAINER(node, struct wr_host_place, link);
        if (wr_load(&p->cell->file->head, acquire) == p->ticket || wr_host_lost_place(p))
            wr_host_wake(p);
    }
    wr_unlock(&store->waiters_lock);
}

/* The n-th of the cells that have waiters, each counted once. Under `watching`, so that it stays open. */
static struct wr_host_cell *waited_for(struct wr_host_store *store, size_t n)
{
    struct wr_host_cell *cell = NULL;

    wr_lock(&store->waiters_lock);
    wr_list_each(node, &store->waiters) {
        struct wr_host_place *p = WR_CONTAINER(node, struct wr_host_place, link);
        bool seen = false;
        for (struct wr_list *before = store->waiters.next; before != node; before = before->next)
            seen |= WR_CONTAINER(before, struct wr_host_place, link)->cell == p->cell;
        if (!seen && n-- == 0) {
            cell = p->cell;
            break;
        }
    }
    wr_unlock(&store->waiters_lock);
    return cell;
}

/* Cells that went on in another file are looked at there. */
static void follow_all(struct wr_host_store *store)
{
    struct wr_host_cell *cell;

    for (size_t n = 0; (cell = waited_for(store, n)); n++)
        if (wr_host_is_moved(cell))
            wr_host_follow(cell);
}

static void forget_watched(struct wr_host_store *store, int fd)
{
    for (size_t i = 0; i < store->watched_count; i++)
        if (store->watched[i].fd == fd) {
            wr_os_poller_watch(&store->poller, fd, 0, 0);
            wr_os_close(fd);
            store->watched[i] = store->watched[--store->watched_count];
            return;
        }
}

static void process_ended(struct wr_host_store *store, int fd)
{
    struct wr_host_cell *cell;

    forget_watched(store, fd);
    for (size_t n = 0; (cell = waited_for(store, n)); n++)
        wr_host_sweep(&cell->base);
}

static void bell_rung(struct wr_host_store *store)
{
    char bytes[64];

    while (wr_os_read(store->bell, bytes, sizeof(bytes)) > 0)
        ;
    wr_os_poller_watch(&store->poller, store->bell, WEIR_READ, 0);
}

/* No process is told that another one was stopped: the watcher looks now and then whether the first in a line is. */
static void look_around(struct wr_host_store *store)
{
    struct wr_host_cell *cell;

    for (size_t n = 0; (cell = waited_for(store, n)); n++)
        wr_host_pass_over(cell);
}

/* Until when to sleep if nothing happens. A waiter that comes while it dozes wakes it. */
static weir_time until_when(struct wr_host_store *store)
{
    bool waiters;

    wr_lock(&store->waiters_lock);
    waiters = store->waiters.next != &store->waiters;
    wr_store(&store->dozing, !waiters, seq_cst);
    wr_unlock(&store->waiters_lock);
    return waiters ? wr_os_now() + LOOK_NS : WEIR_FOREVER;
}

static void watch_main(void *store_arg)
{
    struct wr_host_store *store = store_arg;
    struct wr_os_ready ready[READY_MAX];

    while (!wr_load(&store->over, acquire)) {
        int count = wr_os_poller_wait(&store->poller, ready, READY_MAX, until_when(store));

        wr_lock(&store->watching);
        if (count == 0)
            look_around(store);
        for (int i = 0; i < count; i++)
            if (ready[i].fd == store->bell)
                bell_rung(store);
            else
                process_ended(store, ready[i].fd);
        follow_all(store);
        wake_first(store);
        wr_unlock(&store->watching);
    }
}

/* ---- beginning and end ------------------------------------------------------------------------- */

/* Under `watching`. */
static bool start(struct wr_host_store *store)
{
    char name[WR_BELL_NAME];

    if (store->started)
        return true;
    wr_host_bell_name(name, store->self);
    if (wr_os_poller_open(&store->poller))
        return false;
    store->bell = wr_os_bell_open(store->dir, name);
    if (store->bell >= 0 && !wr_os_poller_watch(&store->poller, store->bell, WEIR_READ, 0) &&
        !wr_os_thread_start(&store->thread, watch_main, store, "weir-host")) {
        store->started = true;
        return true;
    }
    if (store->bell >= 0) {
        wr_os_close(store->bell);
        wr_os_file_remove(store->dir, name);
    }
    wr_os_poller_close(&store->poller);
    return false;
}

void wr_host_watch_end(struct wr_host_store *store)
{
    char name[WR_BELL_NAME];

    if (!store->started)
        return;
    wr_store(&store->over, true, release);
    wr_os_poller_ring(&store->poller);
    wr_os_thread_join(&store->thread);
    while (store->watched_count)
        forget_watched(store, store->watched[0].fd);
    wr_os_close(store->bell);
    wr_host_bell_name(name, store->self);
    wr_os_file_remove(store->dir, name);
    wr_os_poller_close(&store->poller);
}

/* ---- processes to watch ------------------------------------------------------------------------- */

static bool is_watched(const struct wr_host_store *store, uint64_t process)
{
    for (size_t i = 0; i < store->watched_count; i++)
        if (store->watched[i].process == process)
            return true;
    return false;
}

/* Under `watching`. 0: it is watched; -ESRCH: it has ended; else it cannot be watched. */
static int watch(struct wr_host_store *store, uint64_t process)
{
    int fd;

    if (is_watched(store, process))
        return 0;
    if (store->watched_count == sizeof(store->watched) / sizeof(store->watched[0]))
        return -EMFILE;
    fd = wr_os_process_open(process);
    if (fd < 0)
        return fd;
    if (wr_os_poller_watch(&store->poller, fd, WEIR_READ, 0)) {
        wr_os_close(fd);
        return -EMFILE;
    }
    store->watched[store->watched_count].process = process;
    store->watched[store->watched_count++].fd = fd;
    return 0;
}

bool wr_host_watch(struct wr_host_cell *cell)
{
    struct wr_host_store *store = cell->store;
    bool all, dead = false;

    wr_lock(&store->watching);
    all = start(store);
    if (all && wr_swap(&store->dozing, false, acq_rel))
        wr_os_poller_ring(&store->poller);
    for (int i = 0; i < WR_SEATS && all; i++) {
        uint64_t process = wr_load(&cell->file->seat[i].process, acquire);
        int rc = process && process != store->self ? watch(store, process) : 0;
        dead = dead || rc == -ESRCH;
        all = rc == 0 || rc == -ESRCH;
    }
    wr_unlock(&store->watching);
    if (dead)
        wr_host_sweep(&cell->base);
    return all;
}
