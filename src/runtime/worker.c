/* The worker's loop: what runs next on this thread, and when it sleeps.
 *
 * There is no scheduler stack. The loop runs on a fiber's stack and calls new bodies directly; when a
 * body parks, its stack stays with it and another loop goes on, on the spare. A loop keeps nothing on
 * its stack that matters, so one that is not needed is simply forgotten and its stack reused.
 * SPDX-License-Identifier: MIT */
#include "runtime/worker.h"
#include "base/assert.h"
#include "base/os.h"
#include "runtime/overflow.h"

#include <stdio.h>
#include <weir/error.h>

enum {
#ifdef WEIR_SIM /* small, so that short runs reach what lies beyond */
    TURN = 3,
    TURNS = 2,
    STACKS_MAX = 4,
    STACKS_BATCH = 3,
#else
    TURN = 16,         /* switches or bodies before a body that waits to start comes first       */
    TURNS = 4,         /* turns before the loop looks at timers and descriptors, if no body waits */
    STACKS_MAX = 64,   /* free stacks a worker keeps at hand                                     */
    STACKS_BATCH = 64, /* how many it gets from the shared pool at a time                        */
#endif
    STACK_RETRY_NS = 10000000, /* a worker without a stack asks again after this                 */
};

static void loop(void *worker_arg);

/* ---- stacks at hand -------------------------------------------------------------------------- */

static void inbox_drain(struct wr_worker *worker);

/* Gives `count` stacks at hand back to the shared pool. */
static void stacks_return(struct wr_worker *worker, size_t count)
{
    struct wr_fiber *list = NULL;
    size_t moved = 0;

    inbox_drain(worker); /* see Note: posted stacks stay home */
    for (; worker->stacks && moved < count; moved++) {
        struct wr_fiber *fiber = worker->stacks;
        worker->stacks = fiber->next;
        fiber->parker.worker = NULL;
        fiber->next = list;
        list = fiber;
    }
    worker->stack_count -= moved;
    if (moved)
        wr_stack_give(&worker->member.runtime->stacks, list, moved);
}

/* Keeps a stack whose loop is no longer needed. It may be the stack we run on: no other thread touches it
 * before we are off it, because only this worker takes stacks from here. */
static void stack_put(struct wr_worker *worker, struct wr_fiber *fiber)
{
    if (fiber->bare) /* it may come into use after one that lies below it */
        wr_stack_guard(&worker->member.runtime->stacks, fiber);
    if (worker->stack_count >= STACKS_MAX)
        stacks_return(worker, STACKS_MAX / 2);
    fiber->next = worker->stacks;
    worker->stacks = fiber;
    worker->stack_count++;
}

/* A stack for a fresh loop, or NULL. Nothing is laid out on it yet; spare_enter does that. */
static struct wr_fiber *stack_get(struct wr_worker *worker)
{
    struct wr_fiber *fiber;

    if (!worker->stacks) {
        worker->stacks =
            wr_stack_take(&worker->member.runtime->stacks, STACKS_BATCH, &worker->stack_count);
        for (fiber = worker->stacks; fiber; fiber = fiber->next)
            fiber->parker.worker = worker;
    }
    fiber = worker->stacks;
    if (!fiber)
        return NULL;
    worker->stacks = fiber->next;
    worker->stack_count--;
    fiber->context.sp = NULL;
    return fiber;
}

/* The spare, ready to be switched to. A fresh one is first written to at this moment, since it may lie
 * right below the bare stack of a body that runs until now. */
static struct wr_fiber *spare_enter(struct wr_worker *worker)
{
    struct wr_fiber *fiber = worker->spare;

    WR_ASSERT(fiber && fiber->state == WR_FIBER_FREE);
    worker->spare = NULL;
    if (!fiber->context.sp)
        wr_context_prepare(&fiber->context, wr_stack_top(fiber), loop, worker);
    return fiber;
}

/* ---- switching ------------------------------------------------------------------------------- */

/* Whether ready fibers go on: not if it is time to look around, nor if a new body waits and they have had a turn since
 * a new body last came first. */
static bool turn_lasts(struct wr_worker *worker)
{
    struct wr_source *source = worker->member.runtime->source;

    if (worker->turn && worker->turns == TURNS - 1)
        return true;
    if (source->pending(source) || (worker->turn == 0 && worker->turns == 0))
        return false;
    if (worker->turn == 0) {
        worker->turns--;
        worker->turn = TURN;
    }
    return true;
}

void wr_worker_suspend_apart(struct wr_worker *worker, struct wr_fiber *self)
{
    if (worker->ready.head && !wr_list_empty(&self->link) && turn_lasts(worker)) {
        wr_worker_go_to_ready(worker, self);
        return;
    }
    /* The body has left a bare stack, or stepped over a guard: the memory here is, or will be, another stack's. */
    if (WR_UNLIKELY((char *)__builtin_frame_address(0) < (char *)self->context.stack_low))
        wr_stack_die(&worker->member.runtime->stacks, self);
    if (self->bare && self->state == WR_FIBER_PARKED)
        self->state = WR_FIBER_PARKED_BARE;
    else if (self->bare) /* the body only yields, and soon goes on */
        wr_stack_guard(&worker->member.runtime->stacks, self);
    if (wr_list_empty(&self->link))
        wr_list_append(&worker->waiting, &self->link);
    wr_worker_go(worker, self, spare_enter(worker));
    WR_ASSERT_SLOW(self->state == WR_FIBER_RUNNING);
}

void wr_worker_ready_bare(struct wr_worker *worker, struct wr_fiber *fiber)
{
    if (fiber->bare) /* unless another stack of its run was guarded first */
        wr_stack_guard(&worker->member.runtime->stacks, fiber);
    wr_worker_ready(worker, fiber);
}

static void pass_search_on(struct wr_worker *worker);

/* Leaves `from` for good: its stack will serve a fresh loop. */
static void forget(struct wr_worker *worker, struct wr_fiber *from, struct wr_fiber *to)
{
    wr_bump(&worker->epoch);
    wr_store(&worker->current, to, release);
    wr_context_leave(&from->context, &to->context);
}

/* From the loop on `self` to a ready fiber. The loop's stack becomes the spare, if there is none. */
static void resume(struct wr_worker *worker, struct wr_fiber *self)
{
    struct wr_fiber *next;

    pass_search_on(worker);
    next = wr_worker_next(worker);
    if (!worker->spare) {
        worker->spare = self; /* suspended here; a park continues it */
        wr_worker_go(worker, self, next);
    } else {
        stack_put(worker, self);
        forget(worker, self, next);
    }
}

/* ---- what comes from outside ----------------------------------------------------------------- */

static void inbox_drain(struct wr_worker *worker)
{
    struct wr_fiber *fiber, *next, *first = NULL;

    if (!wr_load(&worker->inbox, relaxed))
        return;
    for (fiber = wr_swap(&worker->inbox, NULL, seq_cst); fiber;
         fiber = next) { /* pairs with post */
        next = fiber->inbox_next;
        fiber->inbox_next = first;
        first = fiber;
    }
    for (fiber = first; fiber; fiber = next) { /* the first to be posted is the first to go on */
        next = fiber->inbox_next;
        /* Not posted any more before it is unparked: a later unpark posts it again. */
        wr_swap(&fiber->parker.word, 0, acq_rel);
        wr_unpark_local(worker, fiber);
    }
}

static void timers_expire(struct wr_worker *worker, weir_time now)
{
    struct wr_timer *timer;

    while ((timer = wr_wheel_expire(&worker->wheel, now))) {
        struct wr_fiber *fiber = WR_CONTAINER(timer, struct wr_fiber, timer);
        if (fiber->state == WR_FIBER_READY)
            continue; /* unparked first */
        fiber->timed_out = true;
        wr_unpark_local(worker, fiber);
    }
}

/* On request, and on shutdown, every waiting body is woken, once, to look whether it is cancelled. Bodies
 * that come to wait later look before they park. */
static void sweep(struct wr_worker *worker)
{
    uint32_t sweeps = wr_load(&worker->member.runtime->sweeps, acquire);

    if (worker->swept == sweeps)
        return;
    worker->swept = sweeps;
    wr_list_each(node, &worker->waiting)
        wr_unpark_local(worker, WR_CONTAINER(node, struct wr_fiber, link));
}

static void look_around(struct wr_worker *worker)
{
    worker->turn = TURN;
    worker->turns = TURNS - 1;
    inbox_drain(worker);
    wr_reactor_poll(worker,
                    WEIR_NOW_OR_NEVER); /* before the timers: what is ready is not too late */
    if (wr_wheel_next(&worker->wheel) != WEIR_FOREVER)
        timers_expire(worker, wr_os_now());
    sweep(worker);
}

/* ---- new work -------------------------------------------------------------------------------- */

static void stop_searching(struct wr_worker *worker)
{
    if (!worker->searching)
        return;
    worker->searching = false;
    wr_sub(&worker->member.runtime->searching, 1, seq_cst);
}

/* Stops searching for a reason other than having found nothing. A thread that made work available meanwhile
 * relied on this search, so if there is work, another worker must search. */
static void pass_search_on(struct wr_worker *worker)
{
    weir_runtime *rt = worker->member.runtime;

    if (!worker->searching)
        return;
    stop_searching(worker);
    if (rt->source->pending(rt->source))
        wr_runtime_wake(rt);
}

static void run(struct wr_worker *worker, struct wr_fiber *self, void *item)
{
    struct wr_source *source = worker->member.runtime->source;

    WR_ASSERT_SLOW(wr_stack_is_safe(self));
    self->state = WR_FIBER_RUNNING;
    self->token = false;
    wr_bump(&worker->epoch); /* first: a monitor that sees the item sees the new epoch */
    wr_store(&self->item, item, release); /* pairs with the monitor's acquire */
    source->run(source, item);
    WR_ASSERT(self->state == WR_FIBER_RUNNING && !wr_load(&self->item, relaxed));
    self->state = WR_FIBER_FREE;
    if (!wr_list_empty(&self->link))
        wr_list_remove(&self->link);
}

/* Starts one new body on this stack, if there is one and it may start. */
static bool start_one(struct wr_worker *worker, struct wr_fiber *self)
{
    weir_runtime *rt = worker->member.runtime;
    void *item;

    if (!worker->spare && !(worker->spare = stack_get(worker))) {
        wr_add(&rt->stack_waits, 1, relaxed);
        return false;
    }
    if (wr_worker_is_benched(worker))
        return false;
    item = rt->source->pull(rt->source);
    if (!item)
        return false;
    pass_search_on(worker);
    run(worker, self, item);
    return true;
}

/* ---- sleeping -------------------------------------------------------------------------------- */

void wr_worker_wake(struct wr_worker *worker)
{
    if (wr_load(&worker->asleep, seq_cst) && wr_swap(&worker->asleep, false, seq_cst))
        wr_os_poller_ring(&worker->poller);
}

/* The set of idle workers. A worker enters and leaves it itself, or the thread that wakes it takes it out. */
static _Atomic uint64_t *idle_word(struct wr_worker *worker)
{
    return &worker->member.runtime->idle[worker->number / 64];
}

static uint64_t idle_bit(const struct wr_worker *worker)
{
    return UINT64_C(1) << worker->number % 64;
}

uint32_t wr_idle_count(const weir_runtime *rt)
{
    uint32_t count = 0;

    for (size_t i = 0; i < WR_IDLE_WORDS(rt->worker_slots); i++)
        count += (uint32_t)__builtin_popcountll(wr_load(&rt->idle[i], seq_cst));
    return count;
}

static bool anyone_idle(const weir_runtime *rt)
{
    for (size_t i = 0; i < WR_IDLE_WORDS(rt->worker_slots); i++)
        if (wr_load(&rt->idle[i], seq_cst))
            return true;
    return false;
}

/* Takes a worker out of the idle set, which makes it search; NULL if there is none. */
static struct wr_worker *idle_pop(weir_runtime *rt)
{
    for (size_t i = 0; i < WR_IDLE_WORDS(rt->worker_slots); i++) {
        uint64_t idle;
        while ((idle = wr_load(&rt->idle[i], seq_cst))) {
            uint64_t first = idle & -idle;
            if (wr_and(&rt->idle[i], ~first, seq_cst) & first)
                return rt->worker[i * 64 + (size_t)__builtin_ctzll(first)];
        }
    }
    return NULL;
}

void wr_worker_note_feeding(void)
{
    enum { QUESTIONS = 64 }; /* calls of wr_worker_feeds before it is forgotten */
    struct wr_worker *self = wr_worker_self();

    if (self)
        self->feeds = QUESTIONS;
}

bool wr_worker_feeds(void)
{
    struct wr_worker *self = wr_worker_self();

    return self->feeds > 0 && --self->feeds > 0;
}

void wr_runtime_wake(weir_runtime *rt)
{
    struct wr_worker *worker;
    uint32_t none;

    do {
        none = 0;
        if (!anyone_idle(rt) || wr_load(&rt->searching, seq_cst) != 0)
            return;
        if (!wr_cas(&rt->searching, &none, 1, seq_cst))
            return;
        worker = idle_pop(rt);
        if (worker) {
            wr_worker_wake(worker);
            return;
        }
        /* The idle workers woke by themselves. Other threads may have relied on our search meanwhile: look again. */
        wr_sub(&rt->searching, 1, seq_cst);
    } while (rt->source->pending(rt->source));
}

static void idle_enter(struct wr_worker *worker)
{
    stop_searching(worker); /* the worker looks once more itself, after this */
    wr_or(idle_word(worker), idle_bit(worker), seq_cst);
}

static void idle_leave(struct wr_worker *worker)
{
    if (!(wr_and(idle_word(worker), ~idle_bit(worker), seq_cst) & idle_bit(worker)))
        worker->searching = true; /* another thread has taken us out */
}

void wr_worker_bench(struct wr_worker *worker)
{
    wr_store(&worker->bench, WR_BENCHED, seq_cst);
    wr_worker_wake(worker); /* if it sleeps it stands in the idle set, where it is of no use */
}

/* There is work. A thread that made it available while we searched before has relied on us, so we search again. */
static void search(struct wr_worker *worker)
{
    uint32_t none = 0;

    if (!worker->searching)
        worker->searching = wr_cas(&worker->member.runtime->searching, &none, 1, seq_cst);
}

void wr_runtime_search(weir_runtime *rt)
{
    struct wr_worker *worker = wr_worker_self();
    struct wr_source *source;

    if (!worker || worker->member.runtime != rt || wr_worker_is_benched(worker) ||
        wr_current_item(&source))
        wr_runtime_wake(rt);
    else if (anyone_idle(rt))
        search(worker);
}

void wr_search_pass_on(void)
{
    struct wr_worker *worker = wr_worker_self();

    if (worker)
        pass_search_on(worker);
}

bool wr_worker_give_way(int64_t nap_ns)
{
    struct wr_worker *worker = wr_worker_self();
    _Atomic uint32_t never = 0;

    if (worker->searching || !wr_list_empty(&worker->waiting))
        return false;
    if (nap_ns)
        wr_os_futex_wait(&never, 0, wr_os_now() + nap_ns);
    else
        wr_os_yield();
    return true;
}

/* Whether this worker's thread is done for good. A benched worker stays while there is work, since it may
 * be called back to do it. */
static bool finished(struct wr_worker *worker)
{
    weir_runtime *rt = worker->member.runtime;

    return wr_load(&rt->closing, acquire) && wr_list_empty(&worker->waiting) &&
           !rt->source->pending(rt->source);
}

/* Whether this worker is a replacement that has had nothing to do for a while, and so ends. It does not if it is called
 * back before it stores WR_GONE. */
static bool retire(struct wr_worker *worker)
{
    weir_runtime *rt = worker->member.runtime;
    uint64_t epoch = wr_load(&worker->epoch, relaxed);
    uint32_t benched = WR_BENCHED;

    worker->retire_at = WEIR_FOREVER;
    if (!wr_worker_is_benched(worker) || !wr_list_empty(&worker->waiting))
        return false;
    if (worker->idle_epoch != epoch) {
        worker->idle_epoch = epoch;
        worker->idle_since = wr_os_now();
    }
    worker->retire_at = worker->idle_since + (int64_t)rt->options.thread_idle_ms * 1000000;
    if (wr_os_now() < worker->retire_at)
        return false;
    return wr_cas(&worker->bench, &benched, WR_GONE, acq_rel); /* pairs with wr_worker_call_back */
}

/* Sleeps until something happens. Every test below comes after the store it pairs with: asleep
 * against the inbox and the bench, the idle set against the source, both against closing. */
static void sleep_until_something(struct wr_worker *worker)
{
    weir_runtime *rt = worker->member.runtime;
    weir_time deadline = wr_wheel_next(&worker->wheel);
    bool takes_work, found;

    /* Work has come since we looked: no need to enter the idle set. */
    if (worker->spare && !wr_worker_is_benched(worker) && rt->source->pending(rt->source)) {
        search(worker);
        wr_monitor_notice(&rt->monitor);
        return;
    }
    deadline = worker->retire_at < deadline ? worker->retire_at : deadline;
    if (!worker->spare) { /* no stack to start anything with: ask again soon, or after a wake-up */
        weir_time retry = wr_os_now() + STACK_RETRY_NS;
        deadline = retry < deadline ? retry : deadline;
    }
    wr_store(&worker->asleep, true, seq_cst);
    takes_work = worker->spare && !wr_worker_is_benched(worker);
    if (takes_work)
        idle_enter(worker);
    else
        pass_search_on(worker);
    found = takes_work && rt->source->pending(rt->source);
    if (!found && !wr_load(&worker->inbox, seq_cst) &&
        worker->swept == wr_load(&rt->sweeps, seq_cst) && !finished(worker))
        wr_reactor_poll(worker, deadline);
    wr_store(&worker->asleep, false, seq_cst);
    if (takes_work)
        idle_leave(worker);
    if (found)
        search(worker);
    wr_monitor_notice(&rt->monitor);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void loop(void *worker_arg)
{
    struct wr_worker *worker = worker_arg;
    struct wr_fiber *self = wr_load(&worker->current, relaxed);

    for (;;) {
        if (!turn_lasts(worker)) {
            look_around(worker);
            worker->new_first = true;
        } else {
            inbox_drain(worker);
        }
        worker->turn--;
        if (worker->ready.head && !worker->new_first) {
            resume(worker, self);
            continue;
        }
        worker->new_first = false;
        if (start_one(worker, self))
            continue;
        if (!worker->ready.head)
            look_around(worker);
        if (worker->ready.head) {
            resume(worker, self);
            continue;
        }
        if (finished(worker) || retire(worker))
            break;
        sleep_until_something(worker);
        worker->turn = worker->turns = 0;
    }
    pass_search_on(worker);
    stack_put(worker, self);
    forget(worker, self, &worker->home);
    WR_ASSERT(!"a finished loop was resumed");
}

static void worker_main(void *worker_arg)
{
    struct wr_worker *worker = worker_arg;

    *wr_os_local() = &worker->member;
    wr_store(&worker->os_number, wr_os_thread_number(), relaxed);
    wr_context_init_thread(&worker->home.context);
    wr_overflow_thread_begin(worker->member.runtime);
    wr_worker_go(worker, &worker->home, spare_enter(worker));

    if (worker->spare)
        stack_put(worker, worker->spare);
    worker->spare = NULL;
    stacks_return(worker, SIZE_MAX);
    wr_overflow_thread_end(worker->member.runtime);
    *wr_os_local() = NULL;
}

static void worker_free(struct wr_worker *worker)
{
    wr_reactor_fini(&worker->reactor);
    wr_os_poller_close(&worker->poller);
    wr_os_free(worker);
}

/* Starts a thread for a worker that has none. */
static int start_thread(struct wr_worker *worker)
{
    char name[32];
    int rc;

    worker->spare = stack_get(worker);
    if (!worker->spare)
        return WEIR_ENOMEM;
    worker->turn = worker->turns = 0;
    wr_wheel_init(&worker->wheel, wr_os_now());
    snprintf(name, sizeof(name), "weir-w%u", worker->number);
    rc = wr_os_thread_start(&worker->thread, worker_main, worker, name);
    if (rc) {
        stack_put(worker, worker->spare);
        worker->spare = NULL;
        stacks_return(worker, SIZE_MAX);
    }
    return rc;
}

int wr_worker_start(weir_runtime *rt)
{
    uint32_t number = wr_load(&rt->worker_count, relaxed);
    struct wr_worker *worker = wr_os_alloc(sizeof(*worker));
    int rc;

    if (!worker)
        return WEIR_ENOMEM;
    worker->member.runtime = rt;
    worker->number = number;
    wr_list_init(&worker->waiting);
    rc = wr_os_poller_open(&worker->poller);
    if (rc) {
        wr_os_free(worker);
        return rc;
    }
    rt->worker[number] = worker;
    rc = start_thread(worker);
    if (rc) {
        worker_free(worker);
        return rc;
    }
    wr_store(&rt->worker_count, number + 1, seq_cst); /* pairs with readers of rt->worker */
    if (wr_load(&rt->sweeps, seq_cst)) /* wr_runtime_sweep may not have seen this worker */
        wr_worker_wake(worker);
    return 0;
}

int wr_worker_call_back(struct wr_worker *worker)
{
    uint32_t benched = WR_BENCHED;
    int rc;

    if (wr_cas(&worker->bench, &benched, WR_TAKES_WORK, seq_cst)) {
        wr_worker_wake(worker);
        return 0;
    }
    wr_worker_bury(worker);
    wr_store(&worker->bench, WR_TAKES_WORK, seq_cst);
    rc = start_thread(worker);
    if (rc)
        wr_store(&worker->bench, WR_GONE, relaxed);
    return rc;
}

void wr_worker_bury(struct wr_worker *worker)
{
    if (worker->thread.handle)
        wr_os_thread_join(&worker->thread);
}

void wr_worker_join(struct wr_worker *worker)
{
    wr_worker_wake(worker);
    wr_worker_bury(worker);
}

void wr_worker_delete(struct wr_worker *worker)
{
    worker_free(worker);
}
