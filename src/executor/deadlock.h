/* Waits of tasks for tasks, and whether one of them can never end.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_DEADLOCK_H
#define WR_EXECUTOR_DEADLOCK_H

#include "base/list.h"
#include "base/lock.h"
#include "executor/task.h"

#include <weir/executor.h>

/* One task waits for another; lives on the waiter's stack. */
struct wr_nested_wait {
    struct wr_list link;
    struct weir_task *waiter, *awaited;
    bool stuck; /* so far as is known: see deadlock.c */
    bool visited;
    bool begun;     /* it was not refused */
    bool bounded;   /* it has a deadline */
    bool on_thread; /* and so has a berth */
};

struct wr_nested_waits {
    struct wr_lock lock;
    struct wr_list waits;
    _Atomic uint32_t count; /* of these; also read without the lock */
    _Atomic bool timed;     /* some task has had a deadline         */
};

/* Enters the wait, or answers WEIR_EDEADLK, with the cycle in words in *message (may be NULL). */
int wr_nested_wait_enter(struct wr_nested_wait *wait, struct weir_task *waiter,
                         struct weir_task *awaited, weir_time deadline, weir_message *message);
void wr_nested_wait_leave(struct wr_nested_wait *wait);

#endif
