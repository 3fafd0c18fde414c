/* Why a task waits, under its group's lock.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_WHY_H
#define WR_EXECUTOR_WHY_H

#include <stdbool.h>
#include <weir/task.h>

/* As weir_task_why. `ahead` is counted only if asked for, else 0: that takes as long as the queue is. Under the
 * group's lock. */
void wr_task_explain(weir_why *why, struct weir_task *task, bool count_ahead);

#endif
