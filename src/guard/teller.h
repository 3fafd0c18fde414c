/* The teller: a thread of its own for user code that gates must not call, since they are called with a group's lock.
 *
 * It runs jobs one after the other, in the order they came. There is one per process, while anything is registered.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_TELLER_H
#define WR_GUARD_TELLER_H

#include "base/list.h"

#include <stdbool.h>

struct wr_teller_job {
    struct wr_list link;
    bool waiting; /* in the teller's list                       */
    void (*run)(struct wr_teller_job *job);
};

/* Registers the job. WEIR_EAGAIN: the teller's thread could not be started. */
int wr_teller_join(struct wr_teller_job *job, void (*run)(struct wr_teller_job *job));

/* Has the job run soon. From any thread, with any lock held. */
void wr_teller_call(struct wr_teller_job *job);

/* Unregisters the job: it does not run when this returns, unless this is called from its own run. Without any lock. */
void wr_teller_part(struct wr_teller_job *job);

#endif
