/* The elastic pool of OS threads: a thread per blocking job while there are few, a queue beyond the
 * cap, and an end for threads that had nothing to do for a while.
 * SPDX-License-Identifier: MIT */
#include "runtime/pool.h"

#include "base/assert.h"
#include "base/os.h"
#include "runtime/worker.h"

#include <stdio.h>
#include <weir/error.h>

struct wr_pool_thread {
    struct wr_member member; /* first: the thread-local slot points here         */
    struct wr_thread_parker parker;
    struct wr_pool *pool;
    /* Handed over under the pool's lock: from then on the thread is not in `idle` any more */
    _Atomic(struct wr_job *) job;
    bool rests; /* idle already, or has its next job, though its last one has not returned */
    bool stays; /* false: it ends if it has no job now. Decided when it came to rest */
    struct wr_list link; /* in pool->idle or pool->gone                      */
    struct wr_list everyone_link;
    struct wr_os_thread os;
    uint32_t requests; /* made to the poller */
};

void wr_pool_init(struct wr_pool *pool, weir_runtime *rt)
{
    pool->runtime = rt;
    pool->threads_max = rt->options.threads_max;
    pool->idle_ns = (int64_t)rt->options.thread_idle_ms * 1000000;
    wr_list_init(&pool->jobs);
    wr_list_init(&pool->idle);
    wr_list_init(&pool->everyone);
    wr_list_init(&pool->gone);
}

static struct wr_job *first_job(struct wr_pool *pool)
{
    struct wr_list *first = pool->jobs.next;

    if (wr_list_empty(&pool->jobs))
        return NULL;
    wr_list_remove(first);
    return WR_CONTAINER(first, struct wr_job, link);
}

/* Joins threads that have ended, which the caller has taken out of pool->gone. A thread touches nothing of the pool's after
 * it has entered that list. */
static void bury(struct wr_list *gone)
{
    wr_list_each_safe(node, gone) {
        struct wr_pool_thread *thread = WR_CONTAINER(node, struct wr_pool_thread, link);
        wr_os_thread_join(&thread->os);
        wr_os_free(thread);
    }
}

/* The thread has nothing to do any more: it takes the first job that waits, or is idle. Under the lock. */
static void rest(struct wr_pool *pool, struct wr_pool_thread *self)
{
    struct wr_job *job;

    self->stays = pool->threads <= pool->threads_max; /* a thread too many does not */
    job = self->stays ? first_job(pool) : NULL;
    wr_store(&self->job, job, relaxed);
    if (!job)
        wr_list_append(&pool->idle, &self->link);
}

void wr_thread_rests(void)
{
    struct wr_pool_thread *self = *wr_os_local();

    wr_lock(&self->pool->lock);
    self->rests = true;
    rest(self->pool, self);
    wr_unlock(&self->pool->lock);
}

/* True: the thread has no job and it is time to end; it is in `gone` now. */
static bool leave(struct wr_pool *pool, struct wr_pool_thread *self, bool waited)
{
    bool ends;

    wr_lock(&pool->lock);
    ends = !wr_load(&self->job, relaxed) && (waited || pool->threads > pool->threads_max ||
                                             wr_load(&pool->runtime->closing, acquire));
    if (ends) {
        wr_list_remove(&self->link);
        wr_list_remove(&self->everyone_link);
        wr_list_append(&pool->gone, &self->link);
        pool->threads--;
    }
    wr_unlock(&pool->lock);
    return ends;
}

/* The next job for this thread, or NULL when it has ended. */
static struct wr_job *next_job(struct wr_pool *pool, struct wr_pool_thread *self)
{
    weir_time deadline = weir_in_ns(pool->idle_ns);
    struct wr_job *job;

    if (!self->rests) {
        wr_lock(&pool->lock);
        rest(pool, self);
        wr_unlock(&pool->lock);
    }
    self->rests = false;
    if (!self->stays && leave(pool, self, false))
        return NULL;
    while (!(job = wr_load(&self->job, acquire))) { /* pairs with hand_over */
        bool waited = !wr_load(&pool->runtime->closing, acquire) &&
                      wr_park(&self->parker.parker, deadline) == WEIR_ETIMEDOUT;
        if (!wr_load(&self->job, acquire) && leave(pool, self, waited))
            return NULL;
    }
    return job;
}

static void thread_main(void *thread_arg)
{
    struct wr_pool_thread *self = thread_arg;
    struct wr_job *job = wr_load(&self->job, relaxed);

    *wr_os_local() = &self->member;
    for (; job; job = next_job(self->pool, self))
        job->run(job);
    /* No thread rings the poller any more: no body waits, and this thread is not in `everyone`. */
    if (self->parker.polls)
        wr_os_poller_close(&self->parker.poller);
    *wr_os_local() = NULL;
}

/* Starts a thread with `job`. Under the lock, so that `everyone` holds threads that really run, and so
 * that a thread that ends at once finds its handle stored. */
static int start_thread(struct wr_pool *pool, struct wr_job *job)
{
    struct wr_pool_thread *thread = wr_os_alloc(sizeof(*thread));
    char name[32];
    int rc;

    if (!thread)
        return WEIR_ENOMEM;
    thread->member.runtime = pool->runtime;
    thread->member.parker = &thread->parker.parker;
    thread->pool = pool;
    wr_store(&thread->job, job, relaxed);
    wr_list_init(&thread->link);
    wr_list_init(&thread->everyone_link);
    snprintf(name, sizeof(name), "weir-t%u", pool->number);
    rc = wr_os_thread_start(&thread->os, thread_main, thread, name);
    if (rc) {
        wr_os_free(thread);
        return rc;
    }
    wr_list_append(&pool->everyone, &thread->everyone_link);
    pool->threads++;
    pool->number++;
    return 0;
}

static void hand_over(struct wr_pool *pool, struct wr_job *job)
{
    struct wr_pool_thread *idle = WR_CONTAINER(pool->idle.prev, struct wr_pool_thread, link);

    wr_list_remove(&idle->link);
    wr_store(&idle->job, job, release);
    wr_unpark(&idle->parker.parker); /* under the lock: it cannot end before it has the job */
}

int wr_pool_submit(struct wr_pool *pool, struct wr_job *job, enum wr_job_turn turn)
{
    struct wr_list gone;
    int rc = WEIR_EAGAIN;

    wr_list_init(&gone);
    wr_list_init(&job->link);
    wr_lock(&pool->lock);
    wr_list_splice(&gone, &pool->gone);
    if (!wr_list_empty(&pool->idle)) {
        hand_over(pool, job);
        rc = 0;
    } else if (pool->threads < pool->threads_max || turn != WR_JOB_IN_TURN) {
        rc = start_thread(pool, job);
    }
    if (rc && pool->threads > 0 &&
        turn != WR_JOB_AT_ONCE) { /* there are threads, all busy: the first to be free takes it */
        wr_list_append(&pool->jobs, &job->link);
        rc = 0;
    }
    wr_unlock(&pool->lock);
    bury(&gone);
    return rc;
}

void wr_pool_lost(struct wr_pool *pool, bool lost)
{
    struct wr_job *job = NULL;

    wr_lock(&pool->lock);
    pool->threads_max += lost ? 1 : (uint32_t)-1;
    if (lost && pool->threads < pool->threads_max)
        job = first_job(pool);
    if (job && start_thread(pool, job))
        wr_list_append(pool->jobs.next, &job->link); /* where it was: before the first */
    wr_unlock(&pool->lock);
}

bool wr_pool_withdraw(struct wr_pool *pool, struct wr_job *job)
{
    bool waiting;

    wr_lock(&pool->lock);
    waiting = !wr_list_empty(&job->link);
    wr_list_remove(&job->link);
    wr_unlock(&pool->lock);
    return waiting;
}

/* The first wait for a descriptor opens the thread's poller; the thread keeps it to its end. */
static int open_poller(struct wr_thread_parker *parker)
{
    int rc = parker->polls ? 0 : wr_os_poller_open(&parker->poller);

    parker->polls |= !rc;
    return rc;
}

int wr_pool_fd_wait(struct wr_member *member, int fd, int events, weir_time deadline)
{
    struct wr_pool_thread *self = (struct wr_pool_thread *)member;
    struct wr_os_ready ready;
    struct wr_os_poller *poller = &self->parker.poller;
    int rc = open_poller(&self->parker);

    if (!rc)
        rc = wr_os_poller_watch(poller, fd, events, ++self->requests);
    if (rc)
        return rc == -EPERM ? events : rc; /* EPERM: a kind of file that is always ready */
    while (!rc) {
        /* The look at weir_cancelled comes before the sleep; an unpark in between ends the sleep. */
        if (weir_cancelled()) {
            rc = WEIR_ECANCELED;
        } else if (wr_park_polling(&self->parker, &ready, deadline) == 1) {
            if (ready.tag == self->requests)
                return wr_fd_found(ready.events, events);
        } else if (wr_os_now() >= deadline) {
            rc = WEIR_ETIMEDOUT;
        }
    }
    wr_os_poller_watch(poller, fd, 0, ++self->requests);
    return rc;
}

uint32_t wr_pool_threads(struct wr_pool *pool)
{
    uint32_t threads;

    wr_lock(&pool->lock);
    threads = pool->threads;
    wr_unlock(&pool->lock);
    return threads;
}

void wr_pool_wake_all(struct wr_pool *pool)
{
    wr_lock(&pool->lock);
    wr_list_each(node, &pool->everyone) {
        struct wr_pool_thread *thread = WR_CONTAINER(node, struct wr_pool_thread, everyone_link);
        wr_unpark(&thread->parker.parker);
    }
    wr_unlock(&pool->lock);
}

void wr_pool_fini(struct wr_pool *pool)
{
    struct wr_pool_thread *last = NULL;
    struct wr_list gone;

    do {
        wr_list_init(&gone);
        wr_lock(&pool->lock);
        if (last)
            wr_list_remove(&last->link);
        wr_os_free(last);
        wr_list_splice(&gone, &pool->gone);
        last = wr_list_empty(&pool->everyone)
                   ? NULL
                   : WR_CONTAINER(pool->everyone.prev, struct wr_pool_thread, everyone_link);
        if (last)
            wr_list_remove(&last->everyone_link);
        wr_unlock(&pool->lock);
        bury(&gone);
        /* The thread ends by itself, since the runtime is closing; it must not be joined twice. */
        if (last)
            wr_os_thread_join(&last->os);
    } while (last);
    WR_ASSERT(wr_list_empty(&pool->jobs));
}
