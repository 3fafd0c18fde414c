/* Waiting for time to pass, and letting others go first.
 *
 * From a task these park, from a plain thread they block. In a cancelled task, on a worker or on a thread of
 * the pool, every wait of weir's answers WEIR_ECANCELED at once.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_WAIT_H
#define WEIR_WAIT_H

#include <weir/time.h>

WEIR_BEGIN_DECLS

/* Waits until `when`. 0: it is that time, or was already. WEIR_ECANCELED: woken early. */
int weir_sleep(weir_time when) WEIR_PARKS;

/* Lets everything that is ready on this thread run first. 0, or WEIR_ECANCELED. */
int weir_yield(void) WEIR_PARKS;

WEIR_END_DECLS

#endif
