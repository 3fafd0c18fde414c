/* Tasks that failed and are tried again later: they hold nothing meanwhile.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/lock.h"
#include "cli/engine/run.h"

#include <stdlib.h>

struct retries {
    struct wr_lock lock;
    struct wr_list tasks; /* the earliest first */
};

int retries_new(struct retries **out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return WEIR_ENOMEM;
    wr_list_init(&(*out)->tasks);
    return 0;
}

void retries_free(struct retries *retries)
{
    free(retries);
}

static struct task *task_of(struct wr_list *link)
{
    return WR_CONTAINER(link, struct task, link);
}

/* From the end: most have the same delay, so the newest is the last. */
void retries_add(struct retries *retries, struct task *task)
{
    struct wr_list *at;

    wr_lock(&retries->lock);
    at = retries->tasks.prev;
    while (at != &retries->tasks && task_of(at)->retry_at > task->retry_at)
        at = at->prev;
    wr_list_append(at->next, &task->link);
    wr_unlock(&retries->lock);
}

struct task *retries_due(struct retries *retries, weir_time now, weir_time *next)
{
    struct task *task = NULL;

    *next = WEIR_FOREVER;
    wr_lock(&retries->lock);
    if (!wr_list_empty(&retries->tasks)) {
        task = task_of(retries->tasks.next);
        *next = task->retry_at;
        if (task->retry_at <= now)
            wr_list_remove(&task->link);
        else
            task = NULL;
    }
    wr_unlock(&retries->lock);
    return task;
}

struct task *retries_any(struct retries *retries)
{
    weir_time next;

    return retries_due(retries, WEIR_FOREVER, &next);
}
