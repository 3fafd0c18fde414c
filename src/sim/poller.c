/* Simulated pollers: watches that report once, and a bell that is remembered.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <weir/io.h>

static struct wr_sim_fd *poller_get(const struct wr_os_poller *poller, const char *what)
{
    struct wr_sim_fd *fd = wr_sim_fd_get(poller->poll_fd);

    if (!fd || fd->kind != WR_SIM_POLL)
        weir_sim_fail("%s of poller %d, which is not open", what, poller->poll_fd);
    return fd;
}

static bool poller_has_sleeper(const struct wr_sim_thread *thread, int number)
{
    return thread->state == WR_SIM_POLLER && thread->number == (uint64_t)number;
}

static void poller_wake(const struct wr_sim_fd *poller)
{
    int number = wr_sim_fd_number(poller);

    for (unsigned i = 0; i < wr_sim_thread_count; i++)
        if (poller_has_sleeper(wr_sim_threads[i], number))
            wr_sim_wake(wr_sim_threads[i], 0);
}

/* ---- watches --------------------------------------------------------------------------------- */

static struct wr_sim_watch *watch_find(const struct wr_sim_fd *poller, int number)
{
    for (unsigned i = 0; i < poller->watch_count; i++)
        if (poller->watches[i].number == number)
            return &poller->watches[i];
    return NULL;
}

static struct wr_sim_watch *watch_add(struct wr_sim_fd *poller, int number)
{
    if (poller->watch_count == poller->watch_room) {
        poller->watch_room = poller->watch_room ? 2 * poller->watch_room : 8;
        poller->watches = realloc(poller->watches, poller->watch_room * sizeof(*poller->watches));
        WR_ASSERT(poller->watches != NULL);
    }
    poller->watches[poller->watch_count] = (struct wr_sim_watch){ .number = number };
    return &poller->watches[poller->watch_count++];
}

static void watch_remove(struct wr_sim_fd *poller, struct wr_sim_watch *watch)
{
    *watch = poller->watches[--poller->watch_count];
}

/* What a watch has to report: an end of the other side even if that was not asked for. */
static int watch_found(const struct wr_sim_watch *watch)
{
    const struct wr_sim_fd *fd = wr_sim_fd_get(watch->number);

    return fd && watch->events ? wr_sim_fd_ready(fd) & (watch->events | WEIR_HANGUP) : 0;
}

void wr_sim_pollers_changed(const struct wr_sim_fd *fd)
{
    int number = wr_sim_fd_number(fd);
    struct wr_sim_fd *poller;
    unsigned place = 0;

    while ((poller = wr_sim_fd_next(WR_SIM_POLL, &place))) {
        struct wr_sim_watch *watch = watch_find(poller, number);

        if (watch && watch_found(watch))
            poller_wake(poller);
    }
}

void wr_sim_pollers_forget(int number)
{
    struct wr_sim_fd *poller;
    unsigned place = 0;

    while ((poller = wr_sim_fd_next(WR_SIM_POLL, &place))) {
        struct wr_sim_watch *watch = watch_find(poller, number);

        if (watch)
            watch_remove(poller, watch);
    }
}

/* ---- the door -------------------------------------------------------------------------------- */

int wr_os_poller_open(struct wr_os_poller *poller)
{
    struct wr_sim_fd *fd;

    wr_sim_call("poller_open");
    if (wr_sim_fault(&wr_sim.report.pollers, wr_sim.opt.fail_poller))
        return -EMFILE;
    fd = wr_sim_fd_new(WR_SIM_POLL);
    if (!fd)
        return -EMFILE;
    poller->poll_fd = poller->bell_fd = wr_sim_fd_number(fd);
    return 0;
}

void wr_os_poller_close(struct wr_os_poller *poller)
{
    wr_sim_call("poller_close");
    poller_get(poller, "close");
    for (unsigned i = 0; i < wr_sim_thread_count; i++)
        if (poller_has_sleeper(wr_sim_threads[i], poller->poll_fd))
            weir_sim_fail("close of poller %d while %s sleeps in it", poller->poll_fd,
                          wr_sim_threads[i]->name);
    wr_os_close(poller->poll_fd);
}

int wr_os_poller_watch(struct wr_os_poller *poller, int number, int events, uint32_t tag)
{
    struct wr_sim_fd *self, *fd;
    struct wr_sim_watch *watch;

    wr_sim_call("poller_watch");
    self = poller_get(poller, "watch");
    fd = wr_sim_fd_get(number);
    if (!fd)
        return -EBADF;
    watch = watch_find(self, number);
    if (!events) {
        if (watch)
            watch_remove(self, watch);
        return watch ? 0 : -ENOENT;
    }
    if (wr_sim_fault(&wr_sim.report.watches, wr_sim.opt.fail_watch))
        return -ENOMEM;
    if (fd->kind == WR_SIM_FILE || fd == self)
        return fd == self ? -EINVAL : -EPERM;
    WR_SIM_LOG("watches descriptor %d for %d in poller %d", number, events, poller->poll_fd);
    if (!watch)
        watch = watch_add(self, number);
    watch->events = events;
    watch->tag = tag;
    if (watch_found(watch))
        poller_wake(self);
    return 0;
}

/* Reports from a place that luck chooses, since there may be more than fit. */
static int poller_collect(struct wr_sim_fd *self, struct wr_os_ready *ready, int max)
{
    unsigned first = 0;
    int reports = 0;

    if (self->watch_count > 1)
        first = wr_sim_below(&wr_sim.schedule_luck, self->watch_count);
    for (unsigned i = 0; i < self->watch_count && reports < max; i++) {
        struct wr_sim_watch *watch = &self->watches[(first + i) % self->watch_count];
        int events = watch_found(watch);

        if (!events)
            continue;
        watch->events = 0;
        ready[reports++] =
            (struct wr_os_ready){ .fd = watch->number, .tag = watch->tag, .events = events };
    }
    return reports;
}

int wr_os_poller_wait(struct wr_os_poller *poller, struct wr_os_ready *ready, int max,
                      weir_time deadline)
{
    struct wr_os_poller open = *poller; /* it may be gone when we wake, which would be a mistake */
    struct wr_sim_fd *self;
    int reports, rc = 0;

    wr_sim_call("poller_wait");
    WR_ASSERT(max > 0);
    wr_sim.report.poller_waits++;
    for (;;) {
        self = poller_get(&open, "wait");
        reports = poller_collect(self, ready, max);
        if (reports > 0 || self->rung || rc == -ETIMEDOUT)
            break;
        if (wr_sim_chance(wr_sim.opt.spurious_per_256) || wr_sim_interrupted())
            break;
        WR_SIM_LOG("waits in poller %d", open.poll_fd);
        rc = wr_sim_block(WR_SIM_POLLER, NULL, (uint64_t)open.poll_fd, deadline);
    }
    self->rung = false;
    return reports;
}

void wr_os_poller_ring(struct wr_os_poller *poller)
{
    struct wr_sim_fd *self;

    wr_sim_call("poller_ring");
    self = poller_get(poller, "ring");
    WR_SIM_LOG("rings poller %d", poller->poll_fd);
    self->rung = true;
    poller_wake(self);
}
