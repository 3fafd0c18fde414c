/* Waiting for descriptors: one reactor per worker.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_REACTOR_H
#define WR_RUNTIME_REACTOR_H

#include <stddef.h>
#include <stdint.h>
#include <weir/io.h>

struct wr_worker;
struct wr_fiber;

/* One fiber's wait for one descriptor; lives on the fiber's stack. */
struct wr_fd_wait {
    struct wr_fd_wait *next;
    struct wr_fiber *fiber;
    int events; /* wanted                  */
    int found;  /* reported; 0: not yet    */
};

struct wr_fd_watch {
    struct wr_fd_wait *first;
    uint32_t tag; /* of the latest request */
};

/* Owned by its worker's thread.
 *     watched[fd].first != NULL  <=>  the poller was asked for the union of their events
 *     waits == number of wr_fd_wait linked                                                   */
struct wr_reactor {
    struct wr_fd_watch *watched; /* by descriptor */
    int size;
    size_t waits;
};

/* The part of a report that a wait for `wanted` gets; 0: it goes on waiting. A hang-up ends every wait, since neither reading
 * nor writing blocks after it. */
static inline int wr_fd_found(int events, int wanted)
{
    return events & WEIR_HANGUP ? wanted | WEIR_HANGUP : events & wanted;
}

void wr_reactor_fini(struct wr_reactor *reactor);

/* Sleeps in the worker's poller until `deadline` at most, and makes the fibers ready that got a report. */
void wr_reactor_poll(struct wr_worker *worker, weir_time deadline);

/* Parks `self`, the running fiber of `worker`, until `fd` is ready. As weir_fd_wait. */
int wr_reactor_wait(struct wr_worker *worker, struct wr_fiber *self, int fd, int events,
                    weir_time deadline);

#endif
