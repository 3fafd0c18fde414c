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
    struct wr_carrier carrier; /* first: the thread-local slot points here         */
    struct wr_thread_parker parker;
    struct wr_pool *pool;
    struct wr_job *job; /* handed over, under the pool's lock               */
    bool rests; /* idle already, or has its next job, though its last one has not returned */
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

/* Joins threads that have ended. They touch nothing of the pool's after they enter `gone`. */
static void bury(struct wr_pool *pool)
{
    struct wr_list gone;

    wr_list_init(&gone);
    wr_lock(&pool->lock);
    wr_list_splice(&gone, &pool->gone);
    wr_unlock(&pool->lock);
    wr_list_each_safe(node, &gone) {
        struct wr_pool_thread *thread = WR_CONTAINER(node, struct wr_pool_thread, link);
        wr_os_thread_join(&thread->os);
        wr_os_free(thread);
    }
}

/* It has nothing to do any more: takes the first job that waits, or is idle. Under the lock. */
static void rest(struct wr_pool *pool, struct wr_pool_thread *self)
{
    /* One too many does not stay. */
    self->job = pool->threads > pool->threads_max ? NULL : first_job(pool);
    if (!self->job)
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

/* The next job for this thread, or NULL when it is time to end; then the thread is in `gone`. */
static struct wr_job *next_job(struct wr_pool *pool, struct wr_pool_thread *self)
{
    weir_time deadline = weir_in_ns(pool->idle_ns);
    struct wr_job *job;
    int rc = 0;

    wr_lock(&pool->lock);
    if (!self->rests)
        rest(pool, self);
    self->rests = false;
    job = self->job;
    while (!job) {
        if (rc == WEIR_ETIMEDOUT || pool->threads > pool->threads_max ||
            wr_load(&pool->runtime->closing, acquire)) {
            wr_list_remove(&self->link);
            wr_list_remove(&self->everyone_link);
            wr_list_append(&pool->gone, &self->link);
            pool->threads--;
            break;
        }
        wr_unlock(&pool->lock);
        rc = wr_park(&self->parker.parker, deadline);
        wr_lock(&pool->lock);
        job = self->job; /* if one was handed over, we are not in `idle` any more */
    }
    wr_unlock(&pool->lock);
    return job;
}

static void thread_main(void *thread_arg)
{
    struct wr_pool_thread *self = thread_arg;
    struct wr_job *job = self->job;

    *wr_os_local() = &self->carrier;
    for (; job; job = next_job(self->pool, self))
        job->run(job);
    if (self->parker
            .polls) /* no thread rings it any more: no body waits, and it is not in `everyone` */
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
    thread->carrier.runtime = pool->runtime;
    thread->carrier.parker = &thread->parker.parker;
    thread->pool = pool;
    thread->job = job;
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
    idle->job = job;
    wr_unpark(&idle->parker.parker); /* under the lock: it cannot end before it has it */
}

int wr_pool_submit(struct wr_pool *pool, struct wr_job *job, enum wr_job_turn turn)
{
    int rc = WEIR_EAGAIN;

    bury(pool);
    wr_list_init(&job->link);
    wr_lock(&pool->lock);
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

/* The first wait for a descriptor opens it; the thread keeps it to its end. */
static int open_poller(struct wr_thread_parker *parker)
{
    int rc = parker->polls ? 0 : wr_os_poller_open(&parker->poller);

    parker->polls |= !rc;
    return rc;
}

int wr_pool_fd_wait(struct wr_carrier *carrier, int fd, int events, weir_time deadline)
{
    struct wr_pool_thread *self = (struct wr_pool_thread *)carrier;
    struct wr_os_ready ready;
    struct wr_os_poller *poller = &self->parker.poller;
    int rc = open_poller(&self->parker);

    if (!rc)
        rc = wr_os_poller_watch(poller, fd, events, ++self->requests);
    if (rc)
        return rc == -EPERM ? events : rc; /* EPERM: a kind of file that is always ready */
    while (!rc) {
        /* The look comes before the sleep; an unpark in between ends the sleep. */
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
    struct wr_pool_thread *last;

    for (;;) {
        bury(pool);
        wr_lock(&pool->lock);
        if (wr_list_empty(&pool->everyone)) {
            wr_unlock(&pool->lock);
            bury(pool);
            WR_ASSERT(wr_list_empty(&pool->jobs));
            return;
        }
        last = WR_CONTAINER(pool->everyone.prev, struct wr_pool_thread, everyone_link);
        wr_list_remove(&last->everyone_link);
        wr_unlock(&pool->lock);
        /* It ends by itself, being told to close; it must not be buried twice. */
        wr_os_thread_join(&last->os);
        wr_lock(&pool->lock);
        wr_list_remove(&last->link);
        wr_unlock(&pool->lock);
        wr_os_free(last);
    }
}
