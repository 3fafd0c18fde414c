/* weir_execute_all: a batch in, its results out, in the same order.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "executor/executor.h"
#include "executor/settle.h"

#include <weir/error.h>

/* The result of a task that never got a record. */
static weir_result refused(int error)
{
    weir_time now = wr_os_now();

    return (weir_result){ .size = sizeof(weir_result),
                          .outcome = WEIR_REJECTED,
                          .error = error,
                          .reason =
                              error == WEIR_ECLOSED ? WEIR_REASON_SHUT_DOWN : WEIR_REASON_NONE,
                          .queued_at = now,
                          .started_at = now,
                          .ended_at = now };
}

/* Waits for one. If the caller cannot wait, ends all that are left, the last first, so that none starts when
 * one before it gives way; those that have finished keep their results. */
static int collect(weir_result *result, weir_task **task, size_t count)
{
    weir_result found = WEIR_RESULT;
    int rc = weir_task_wait(&found, task[0], WEIR_FOREVER);

    if (rc == WEIR_ECANCELED || rc == WEIR_EDEADLK) {
        for (size_t i = count; i-- > 0;)
            if (task[i])
                weir_task_cancel(task[i]);
        wr_task_wait_told(task[0]); /* it is decided */
        wr_task_result(&found, task[0]);
    } else {
        rc = 0; /* rejected ones are entries like others */
    }
    found.value = weir_task_take(task[0]);
    *result = found;
    return rc;
}

int weir_execute_all(weir_result *result, weir_executor *ex, const weir_work *work, size_t count)
{
    weir_task **task;
    int rc = 0;

    if (!ex)
        return WEIR_EINVAL;
    if (wr_load(&ex->closed, acquire))
        return WEIR_ECLOSED;
    if (!count)
        return 0;
    if (!result || !work)
        return WEIR_EINVAL;
    for (size_t i = 0; i < count; i++)
        if (!work[i].key || !work[i].fn)
            return WEIR_EINVAL;
    task = wr_os_alloc(count * sizeof(task[0]));
    if (!task)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        int failure = weir_submit_key(&task[i], ex, work[i].key, work[i].fn, work[i].arg,
                                      work[i].id ? WEIR_TASK(.id = work[i].id) : NULL);
        if (failure)
            result[i] = refused(failure);
    }
    for (size_t i = 0; i < count; i++) {
        if (task[i]) {
            int collected = collect(&result[i], &task[i], count - i);
            rc = rc ? rc : collected;
        }
        result[i].key = work[i].key; /* the task's own go with it */
        result[i].id = work[i].id ? work[i].id : "";
        weir_task_unref(task[i]);
    }
    wr_os_free(task);
    return rc;
}
