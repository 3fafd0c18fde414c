/* The teller: a thread of its own for user code that gates must not call, since they are called with a group's lock.
 *
 * It runs errands one after the other, in the order they came. There is one per process, while anything is registered.
 * SPDX-License-Identifier: MIT */
#ifndef WR_GUARD_TELLER_H
#define WR_GUARD_TELLER_H

#include "base/list.h"

#include <stdbool.h>

struct wr_errand {
    struct wr_list link;
    bool waiting; /* in the teller's list                       */
    void (*run)(struct wr_errand *errand);
};

/* Has the errand served from here on. WEIR_EAGAIN: no thread. */
int wr_teller_join(struct wr_errand *errand, void (*run)(struct wr_errand *errand));

/* Has it run soon. From any thread, with any lock held. */
void wr_teller_call(struct wr_errand *errand);

/* Not any more: it does not run when this returns, unless this is called from its own run. Without any lock. */
void wr_teller_part(struct wr_errand *errand);

#endif
