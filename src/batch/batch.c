/* Many tasks at once. weir_execute: a batch in, its results out, in the same order.
 * SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "base/os.h"
#include "executor/executor.h"

#include <weir/error.h>

struct batch {
    weir_executor *executor;
    const weir_work *work;
    weir_result *result;
    size_t count;
    weir_time deadline;
    weir_task_options options; /* of each task */
    weir_task **task;          /* NULL: its submit failed, and result has it */
};

/* The result of a task that never got a record. */
static weir_result refused(int error)
{
    weir_result result = { .size = sizeof(result), .outcome = WEIR_REJECTED, .error = error };

    if (error == WEIR_ECLOSED)
        result.reason = WEIR_REASON_SHUT_DOWN;
    result.queued_at = result.started_at = result.ended_at = wr_os_now();
    return result;
}

static void submit_all(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const weir_work *work = &b->work[i];
        weir_task_options options = b->options;
        int rc;

        if (work->id)
            options.id = work->id;
        rc = weir_submit_key(&b->task[i], b->executor, work->key, work->fn, work->arg, &options);
        if (rc)
            b->result[i] = refused(rc);
    }
}

int weir_task_wait_all(weir_task *const *task, size_t count, weir_time deadline)
{
    int rc = 0;

    if (count && !task)
        return WEIR_EINVAL;
    for (size_t i = 0; i < count && !rc; i++) {
        if (task[i])
            rc = weir_task_wait(NULL, task[i], deadline);
        rc = rc == WEIR_EREJECTED ? 0 : rc; /* it has ended, like others */
    }
    return rc;
}

/* If the caller cannot wait for a task, or not any longer, the tasks that are left are cancelled, the last first, so that none
 * starts when one before it gives way; those that have finished keep their results. */
static int wait_all(const struct batch *b)
{
    int rc = weir_task_wait_all(b->task, b->count, b->deadline);

    for (size_t i = b->count; rc && i-- > 0;)
        weir_task_cancel(b->task[i]);
    return rc;
}

/* All tasks are decided. An argument without a drop function is the caller's again: no body uses it any more. A value without one
 * is the caller's, whatever became of its task. */
static void collect(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        weir_task *task = b->task[i];
        weir_result *result = &b->result[i];
        const char *id = b->work[i].id ? b->work[i].id : b->options.id;

        if (task) {
            wr_task_wait_over(task, !b->options.drop_arg);
            result->size = sizeof(*result);
            weir_task_wait(result, task, WEIR_FOREVER);
            result->value = b->options.drop ? weir_task_take(task) : wr_task_take_value(task);
        }
        result->key = b->work[i].key; /* the task's own key and id go with it */
        result->id = id ? id : "";
        weir_task_unref(task);
    }
}

/* Whether results and work are given, and each entry has a key and a function. */
static bool is_complete(const struct batch *b)
{
    bool complete = b->result && b->work;

    for (size_t i = 0; complete && i < b->count; i++)
        complete = b->work[i].key && b->work[i].fn;
    return complete;
}

int weir_execute(weir_result *result, weir_executor *ex, const weir_work *work, size_t count,
                 const weir_execute_options *opt)
{
    struct batch b = { .executor = ex, .work = work, .result = result, .count = count };
    weir_execute_options options;
    int rc;

    if (!ex)
        return WEIR_EINVAL;
    if (wr_executor_is_closed(ex))
        return WEIR_ECLOSED;
    rc = wr_options_load(&options, sizeof(options), opt);
    if (!rc)
        rc = wr_options_load(&b.options, sizeof(b.options), options.task);
    if (rc || !count)
        return rc;
    if (!is_complete(&b))
        return WEIR_EINVAL;
    b.deadline = options.deadline ? options.deadline : WEIR_FOREVER;
    b.task = wr_os_alloc(count * sizeof(b.task[0]));
    if (!b.task)
        return WEIR_ENOMEM;
    submit_all(&b);
    rc = wait_all(&b);
    collect(&b);
    wr_os_free(b.task);
    return rc;
}

int weir_execute_all(weir_result *result, weir_executor *ex, const weir_work *work, size_t count)
{
    return weir_execute(result, ex, work, count, NULL);
}
