/* Waiting for descriptors: which fiber waits for what, and which ones a report wakes.
 * SPDX-License-Identifier: MIT */
#include "runtime/reactor.h"

#include "base/assert.h"
#include "base/os.h"
#include "runtime/worker.h"

#include <string.h>
#include <weir/error.h>
#include <weir/io.h>

enum { FIRST_SIZE = 64, REPORTS = 32 };

void wr_reactor_fini(struct wr_reactor *reactor)
{
    WR_ASSERT(reactor->waits == 0);
    wr_os_free(reactor->watched);
}

static int reserve(struct wr_reactor *reactor, int fd)
{
    int size = reactor->size ? reactor->size : FIRST_SIZE;
    struct wr_fd_watch *larger;

    if (fd < reactor->size)
        return 0;
    /* The caller may pass any number; that of an open descriptor is below 2^30. */
    if (wr_os_fd_poll(fd, WEIR_READ, WEIR_NOW_OR_NEVER) == -EBADF)
        return WEIR_EBADF;
    while (size <= fd)
        size *= 2;
    larger = wr_os_alloc((size_t)size * sizeof(*larger));
    if (!larger)
        return WEIR_ENOMEM;
    if (reactor->watched)
        memcpy(larger, reactor->watched, (size_t)reactor->size * sizeof(*larger));
    wr_os_free(reactor->watched);
    reactor->watched = larger;
    reactor->size = size;
    return 0;
}

/* Asks the poller for all events that fibers want of `fd`. */
static int ask(struct wr_worker *worker, int fd)
{
    int events = 0;

    for (struct wr_fd_wait *wait = worker->reactor.watched[fd].first; wait; wait = wait->next)
        events |= wait->events;
    return wr_os_poller_watch(&worker->poller, fd, events, ++worker->reactor.watched[fd].tag);
}

static void unlink_wait(struct wr_reactor *reactor, int fd, struct wr_fd_wait *wait)
{
    struct wr_fd_wait **at = &reactor->watched[fd].first;

    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    reactor->waits--;
}

/* Wakes the fibers that wait for one of `events`. */
static void wake(struct wr_worker *worker, int fd, int events)
{
    struct wr_reactor *reactor = &worker->reactor;
    struct wr_fd_wait *wait, *next;

    for (wait = reactor->watched[fd].first; wait; wait = next) {
        next = wait->next;
        wait->found = wr_fd_found(events, wait->events);
        if (!wait->found)
            continue;
        unlink_wait(reactor, fd, wait);
        wr_unpark_local(worker, wait->fiber);
    }
}

static void report(struct wr_worker *worker, const struct wr_os_ready *ready)
{
    struct wr_reactor *reactor = &worker->reactor;

    if (ready->fd >= reactor->size || ready->tag != reactor->watched[ready->fd].tag)
        return; /* an answer to an earlier request */
    wake(worker, ready->fd, ready->events);
    /* A report disarms the watch: ask again for the other fibers. If that fails, let them find out by trying. */
    if (reactor->watched[ready->fd].first && ask(worker, ready->fd))
        wake(worker, ready->fd, WEIR_HANGUP);
}

void wr_reactor_poll(struct wr_worker *worker, weir_time deadline)
{
    struct wr_os_ready ready[REPORTS];
    int n;

    if (deadline == WEIR_NOW_OR_NEVER && !worker->reactor.waits)
        return;
    do {
        n = wr_os_poller_wait(&worker->poller, ready, REPORTS, deadline);
        for (int i = 0; i < n; i++)
            report(worker, &ready[i]);
        deadline = WEIR_NOW_OR_NEVER; /* and the other reports, before any timer is looked at */
    } while (n == REPORTS);
}

int wr_reactor_wait(struct wr_worker *worker, struct wr_fiber *self, int fd, int events,
                    weir_time deadline)
{
    struct wr_reactor *reactor = &worker->reactor;
    struct wr_fd_wait wait = { .fiber = self, .events = events };
    int rc = reserve(reactor, fd);

    if (rc)
        return rc;
    wait.next = reactor->watched[fd].first;
    reactor->watched[fd].first = &wait;
    reactor->waits++;
    rc = ask(worker, fd);
    while (!rc && !wait.found) {
        if (weir_cancelled())
            rc = WEIR_ECANCELED;
        else
            rc = wr_park(&self->parker, deadline);
    }
    if (wait.found) /* a report beats a deadline that came with it */
        return wait.found;
    unlink_wait(reactor, fd, &wait);
    if (rc == WEIR_ETIMEDOUT || rc == WEIR_ECANCELED || reactor->watched[fd].first)
        ask(worker, fd);
    return rc == -EPERM ? events : rc; /* EPERM: a kind of file that is always ready */
}
