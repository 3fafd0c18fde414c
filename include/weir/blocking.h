/* One blocking call, sent out of the way.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_BLOCKING_H
#define WEIR_BLOCKING_H

#include <weir/time.h>

WEIR_BEGIN_DECLS

/* Runs call(arg) where it may block: from a task on a worker, on a thread of the runtime's pool while the task
 * parks; from a plain thread or a task on WEIR_THREADS, right here. What it returned is stored in *result
 * (may be NULL).
 *
 * The deadline bounds the wait for a free thread. A call that has begun is always waited for, also
 * by a cancelled task, because it may still use what `arg` points to; it does not hear of the cancel.
 *
 * 0: it ran. WEIR_ETIMEDOUT, WEIR_ECANCELED: it did not run. WEIR_ENOMEM, WEIR_EAGAIN: the pool has
 * no thread and could not start one. WEIR_EINVAL: call is NULL. */
int weir_blocking(int *result, int (*call)(void *arg), void *arg, weir_time deadline) WEIR_PARKS;

WEIR_END_DECLS

#endif
