/* Fibers, and parkers: fibers and threads that can wait.
 *
 * A parker is what waits: a fiber, or an OS thread. Wait queues hold parkers and need not know
 * which kind they are. The protocol is in docs/internals/parking.md.
 * SPDX-License-Identifier: MIT */
#ifndef WR_RUNTIME_FIBER_H
#define WR_RUNTIME_FIBER_H

#include "base/atomic.h"
#include "base/list.h"
#include "base/os.h"
#include "runtime/context.h"
#include "runtime/timer.h"

#include <stdbool.h>
#include <stdint.h>

struct wr_worker;
struct wr_frame;

struct wr_parker {
    struct wr_worker *worker; /* the fiber's; NULL: a thread. Fixed while the parker can wait */
    _Atomic uint32_t word; /* a thread's futex, see park.c; a fiber: posted, 1 while in the inbox */
    void *wait;            /* the source's: what the body waits in, if the source wants to know */
};

/* A thread of the pool as a parker: it can wait for a descriptor and for an unpark at once. */
struct wr_thread_parker {
    struct wr_parker parker;    /* first                                                        */
    struct wr_os_poller poller; /* open if `polls`; rung by an unpark while the thread is in it */
    bool polls;                 /* its own thread only                                          */
};

enum wr_fiber_state {
    WR_FIBER_FREE,    /* no body: carries the worker's loop, or waits for use                     */
    WR_FIBER_RUNNING, /* its body is on the CPU                                                   */
    WR_FIBER_PARKED,  /* its body waits                                                           */
    WR_FIBER_PARKED_BARE, /* the same, and its stack may need a guard before it goes on           */
    WR_FIBER_READY, /* its body may go on and stands in the worker's ready queue                */
};

/* A stack and the body on it. The record lies apart from the stack and is never given back before the
 * runtime goes, so the monitor may look at one at any time.
 *
 * Owned by its worker's thread, except what is marked shared:
 *     state == READY   <=>  in worker->ready
 *     timer armed       =>  state is PARKED, PARKED_BARE or READY
 *     link in use      <=>  body started and has parked at least once: in worker->waiting
 *     token             =>  state == RUNNING
 *     bare              =>  state is FREE, RUNNING up to its first park, or PARKED_BARE; see
 *                           Note: bare stacks in docs/internals/stacks.md                        */
struct wr_fiber {
    struct wr_parker parker; /* first: a fiber is a parker. parker.word is shared (inbox)     */
    struct wr_context context;
    struct wr_fiber *next;       /* in the ready queue, or in a list of free stacks              */
    struct wr_fiber *inbox_next; /* shared: in the inbox                                         */
    void *luggage;               /* what travels with the body; see wr_context_slot */
    struct wr_frame *frame;      /* the innermost one on the stack; see runtime.h        */
    _Atomic(void *) item;        /* shared with the monitor: what the source gave, NULL: no body */
    struct wr_timer timer;
    struct wr_list link;
    uint8_t state;
    bool token; /* unparked while running: the next park returns at once        */
    bool timed_out;
    bool bare;            /* the stack has no guard of its own yet                       */
    uint8_t below, above; /* while bare: how many stacks of its run lie on either side    */
};

#endif
