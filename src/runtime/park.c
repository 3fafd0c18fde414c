/* Parking and unparking, of fibers and of threads. The protocol: docs/internals/parking.md.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "runtime/worker.h"

#include <weir/error.h>

/* A thread's word: the thread does not wait; an unpark came first; it sleeps on the futex; it sleeps in its poller. */
enum { AWAKE, TOKEN, ASLEEP, POLLING };

struct wr_parker *wr_parker_self(struct wr_parker *storage)
{
    struct wr_member *member = *wr_os_local();

    if (member && member->parker)
        return member->parker;
    if (member)
        return &wr_load(&((struct wr_worker *)member)->current, relaxed)->parker;
    if (wr_frame_innermost() && wr_frame_innermost()->parker)
        return wr_frame_innermost()->parker; /* a cancel of the guest unparks this one */
    storage->worker = NULL;
    storage->wait = NULL;
    wr_store(&storage->word, 0, relaxed);
    return storage;
}

static __attribute__((noinline)) int park_thread(struct wr_parker *self, weir_time deadline)
{
    uint32_t word = AWAKE;
    int rc = 0;

    if (wr_cas(&self->word, &word, ASLEEP, acquire)) /* pairs with the release in wr_unpark */
        rc = wr_os_futex_wait(&self->word, ASLEEP, deadline) ? WEIR_ETIMEDOUT : 0;
    return wr_swap(&self->word, AWAKE, acquire) == TOKEN ? 0 : rc;
}

int wr_park_polling(struct wr_thread_parker *self, struct wr_os_ready *ready, weir_time deadline)
{
    uint32_t word = AWAKE;
    int reports = 0;

    WR_ASSERT(self->polls);
    /* Release, too: an unpark that finds the thread polling rings the poller that was opened before. */
    if (wr_cas(&self->parker.word, &word, POLLING, acq_rel))
        reports = wr_os_poller_wait(&self->poller, ready, 1, deadline);
    wr_swap(&self->parker.word, AWAKE, acquire);
    return reports;
}

/* Apart, so that a park without a deadline saves few registers. */
static __attribute__((noinline)) int park_until(struct wr_worker *worker, struct wr_fiber *self,
                                                weir_time deadline)
{
    self->timed_out = false;
    wr_timer_arm(&worker->wheel, &self->timer, deadline);
    wr_worker_suspend(worker, self);
    wr_timer_cancel(&worker->wheel, &self->timer);
    return self->timed_out ? WEIR_ETIMEDOUT : 0;
}

int wr_park(struct wr_parker *parker, weir_time deadline)
{
    struct wr_worker *worker = parker->worker;
    struct wr_fiber *self = (struct wr_fiber *)parker;

    if (!worker)
        return park_thread(parker, deadline);
    WR_ASSERT(self->state == WR_FIBER_RUNNING);
    if (self->token) {
        self->token = false;
        wr_bump(&worker->epoch);
        return 0;
    }
    self->state = WR_FIBER_PARKED;
    if (deadline != WEIR_FOREVER)
        return park_until(worker, self, deadline);
    wr_worker_suspend(worker, self);
    return 0;
}

static void post(struct wr_worker *worker, struct wr_fiber *fiber)
{
    struct wr_fiber *head;

    /* If the fiber was posted already, the worker's own swap comes after ours and sees all we did before:
     * the fiber will look after this moment. A plain load here would not promise that. */
    if (wr_swap(&fiber->parker.word, 1, acq_rel))
        return;
    head = wr_load(&worker->inbox, relaxed);
    do {
        fiber->inbox_next = head;
    } while (!wr_cas(&worker->inbox, &head, fiber, seq_cst)); /* pairs with inbox_drain */
    wr_worker_wake(worker);
}

static void unpark_thread(struct wr_parker *parker)
{
    uint32_t word = wr_swap(&parker->word, TOKEN, acq_rel);

    if (word == ASLEEP)
        wr_os_futex_wake(&parker->word, 1);
    else if (word == POLLING)
        wr_os_poller_ring(&((struct wr_thread_parker *)parker)->poller);
}

void wr_unpark(struct wr_parker *parker)
{
    struct wr_worker *worker = parker->worker;

    if (!worker) {
        unpark_thread(parker);
    } else if ((void *)worker == *wr_os_local()) {
        wr_unpark_local(worker, (struct wr_fiber *)parker);
    } else {
        post(worker, (struct wr_fiber *)parker);
    }
}

/* ---- wait queues ----------------------------------------------------------------------------- */

void wr_waitq_init(struct wr_waitq *queue)
{
    queue->lock = (struct wr_lock){ 0 };
    wr_list_init(&queue->waiters);
}

void wr_waitq_enter(struct wr_waitq *queue, struct wr_waiter *waiter, struct wr_parker *parker)
{
    waiter->parker = parker;
    wr_lock(&queue->lock);
    wr_list_append(&queue->waiters, &waiter->link);
    wr_add(&queue->count, 1, seq_cst); /* pairs with wr_waitq_wake_all */
    wr_unlock(&queue->lock);
}

void wr_waitq_leave(struct wr_waitq *queue, struct wr_waiter *waiter)
{
    wr_lock(&queue->lock);
    wr_list_remove(&waiter->link);
    wr_sub(&queue->count, 1, relaxed);
    wr_unlock(&queue->lock);
}

void wr_waitq_wake_all(struct wr_waitq *queue)
{
    if (wr_load(&queue->count, seq_cst) == 0)
        return;
    wr_lock(&queue->lock);
    wr_list_each(node, &queue->waiters)
        wr_unpark(WR_CONTAINER(node, struct wr_waiter, link)->parker);
    wr_unlock(&queue->lock);
}

int wr_waitq_wait(struct wr_waitq *queue, bool (*over)(void *arg), void *arg, weir_time deadline,
                  bool may_cancel)
{
    struct wr_parker storage, *self;
    struct wr_waiter waiter;
    int rc = 0;

    if (over(arg))
        return 0;
    self = wr_parker_self(&storage);
    wr_waitq_enter(queue, &waiter, self);
    while (!over(arg) && !rc)
        rc = may_cancel && weir_cancelled() ? WEIR_ECANCELED : wr_park(self, deadline);
    if (over(arg))
        rc = 0;
    wr_waitq_leave(queue, &waiter);
    return rc;
}
