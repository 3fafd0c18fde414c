/* What keeps a wait of a task from ending: the task it is for needs permits, a thread or a slot, or waits itself.
 * SPDX-License-Identifier: MIT */
#ifndef WR_EXECUTOR_OUTLOOK_H
#define WR_EXECUTOR_OUTLOOK_H

#include "limits/circle.h"

/* Fills in the outlooks of a struct wr_nested_wait's wait. Under the lock of all waits; takes the locks of tables and
 * groups. */
wr_look_fn wr_outlook_fill;

#endif
