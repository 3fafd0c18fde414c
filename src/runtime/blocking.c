/* weir_blocking: one call on a thread of the pool, while the task parks.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/lock.h"
#include "runtime/worker.h"

#include <weir/blocking.h>
#include <weir/error.h>

/* Lives on the stack of the caller, which does not return before `done`, unless it has withdrawn the job. */
struct blocking_call {
    struct wr_job job;
    int (*call)(void *arg);
    void *arg;
    int result;
    struct wr_parker *caller;
    struct wr_lock lock;
    bool done; /* under the lock */
};

static void run_call(struct wr_job *job)
{
    struct blocking_call *call = WR_CONTAINER(job, struct blocking_call, job);

    call->result = call->call(call->arg);
    wr_lock(&call->lock);
    call->done = true;
    wr_unpark(call->caller); /* under the lock: the caller cannot be gone before we unlock */
    wr_unlock(&call->lock);
}

static bool is_done(struct blocking_call *call)
{
    bool done;

    wr_lock(&call->lock);
    done = call->done;
    wr_unlock(&call->lock);
    return done;
}

static int call_from_fiber(int *result, struct wr_pool *pool, struct blocking_call *call,
                           weir_time deadline)
{
    int rc = wr_pool_submit(pool, &call->job, WR_JOB_IN_TURN);

    if (rc)
        return rc;
    while (!is_done(call)) {
        if (weir_cancelled())
            rc = WEIR_ECANCELED;
        if (rc && wr_pool_withdraw(pool, &call->job))
            return rc;
        if (rc) /* the call has begun: it cannot be given up any more */
            wr_park(call->caller, WEIR_FOREVER);
        else
            rc = wr_park(call->caller, deadline);
    }
    if (result)
        *result = call->result;
    return 0;
}

int weir_blocking(int *result, int (*fn)(void *arg), void *arg, weir_time deadline)
{
    struct wr_worker *worker = wr_worker_self();
    struct wr_parker storage;
    int answer;

    if (!fn)
        return WEIR_EINVAL;
    if (weir_cancelled())
        return WEIR_ECANCELED;
    if (worker) {
        struct blocking_call call = { .job.run = run_call, .call = fn, .arg = arg };
        call.caller = wr_parker_self(&storage);
        return call_from_fiber(result, &worker->member.runtime->pool, &call, deadline);
    }
    answer = fn(arg);
    if (result)
        *result = answer;
    return 0;
}
