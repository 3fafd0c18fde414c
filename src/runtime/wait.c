/* Waiting for time: weir_sleep, weir_yield.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "runtime/worker.h"

#include <weir/error.h>
#include <weir/wait.h>

int weir_sleep(weir_time when)
{
    struct wr_parker storage, *self = wr_parker_self(&storage);

    for (;;) {
        if (weir_cancelled())
            return WEIR_ECANCELED;
        if (wr_os_now() >= when || wr_park(self, when) == WEIR_ETIMEDOUT)
            return 0;
    }
}

int weir_yield(void)
{
    struct wr_worker *worker = wr_worker_self();

    if (worker) {
        struct wr_fiber *self = wr_load(&worker->current, relaxed);
        wr_worker_ready(worker, self);
        wr_worker_suspend(worker, self);
    } else {
        wr_os_yield();
    }
    return weir_cancelled() ? WEIR_ECANCELED : 0;
}
