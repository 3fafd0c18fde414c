/* Jobs: requests for which no caller waits. Also decides what becomes of a request whose reply says "elsewhere" or "later".
 * SPDX-License-Identifier: MIT */
#ifndef WR_REDIS_JOB_H
#define WR_REDIS_JOB_H

#include "redis/link.h"

/* One request, however often it is sent. */
struct wr_attempt {
    struct wr_link *link; /* where to send it; NULL: where the key says                      */
    struct wr_link *on;   /* where it was sent last                                          */
    bool asking;          /* ASKING goes before it: another node sent us here (ASK)          */
    bool full;            /* the script goes in full                                         */
    uint32_t tries;       /* so far                                                          */
    weir_time not_before; /* of the next                                                     */
};

enum wr_verdict {
    WR_FINAL, /* the caller gets the result                  */
    WR_AGAIN, /* to be sent again, at attempt->not_before    */
};

/* What to do with a result: `error` of the link, or a reply. If it is to be sent again, `attempt` says how. */
enum wr_verdict wr_attempt_judge(struct wr_redis *redis, struct wr_attempt *attempt,
                                 const struct wr_command *command, int error, bool unsent,
                                 const struct wr_reply *reply);

struct wr_job {
    struct wr_request request; /* first: a job is a request */
    struct wr_told told;
    struct wr_list link; /* in the list of those held by a link */
    bool held;           /* it is in that list; under the link's lock */
    struct wr_redis *redis;
    struct wr_command *command;
    struct wr_attempt attempt;
    weir_time deadline;
    struct wr_redis_timer timer; /* the deadline, or the time to send it again */
    wr_redis_done *done;         /* NULL: sent without waiting */
    void *arg;
};

/* Called by the link, under its lock: job->request is on its way. */
void wr_job_sent(struct wr_job *job);

/* Called by the link, under its lock: job->request is done. */
void wr_job_done(struct wr_job *job);

#endif
