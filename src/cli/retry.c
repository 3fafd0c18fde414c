/* Jobs that failed and are tried again later: they hold nothing meanwhile.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/lock.h"
#include "cli/map.h"

#include <stdlib.h>

struct retries {
    struct wr_lock lock;
    struct wr_list jobs; /* the earliest first */
};

int retries_new(struct retries **out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return WEIR_ENOMEM;
    wr_list_init(&(*out)->jobs);
    return 0;
}

void retries_free(struct retries *retries)
{
    free(retries);
}

static struct job *job_of(struct wr_list *link)
{
    return WR_CONTAINER(link, struct job, link);
}

/* From the end: most have the same delay, so the newest is the last. */
void retries_add(struct retries *retries, struct job *job)
{
    struct wr_list *at;

    wr_lock(&retries->lock);
    at = retries->jobs.prev;
    while (at != &retries->jobs && job_of(at)->retry_at > job->retry_at)
        at = at->prev;
    wr_list_append(at->next, &job->link);
    wr_unlock(&retries->lock);
}

struct job *retries_due(struct retries *retries, weir_time now, weir_time *next)
{
    struct job *job = NULL;

    *next = WEIR_FOREVER;
    wr_lock(&retries->lock);
    if (!wr_list_empty(&retries->jobs)) {
        job = job_of(retries->jobs.next);
        *next = job->retry_at;
        if (job->retry_at <= now)
            wr_list_remove(&job->link);
        else
            job = NULL;
    }
    wr_unlock(&retries->lock);
    return job;
}

struct job *retries_any(struct retries *retries)
{
    weir_time next;

    return retries_due(retries, WEIR_FOREVER, &next);
}
