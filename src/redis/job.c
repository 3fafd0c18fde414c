/* Jobs, and requests that have to be sent again: elsewhere, later, or with the whole script.
 * SPDX-License-Identifier: MIT */
#include "redis/job.h"

#include "base/assert.h"
#include "base/os.h"
#include "redis/redis.h"

#include <string.h>
#include <weir/error.h>
#include <weir/wait.h>

enum { TRIES_MAX = 1000 }; /* of one request; far beyond what any sane server needs */
enum { REDIRECTS = 4 };    /* that follow each other at once */

/* ---- what a result means ------------------------------------------------------------------------ */

static void pause_for(struct wr_attempt *attempt)
{
    enum { FIRST_MS = 2, DOUBLINGS = 6 };
    uint32_t doublings = attempt->tries < DOUBLINGS ? attempt->tries : DOUBLINGS;

    attempt->not_before = weir_in_ms((int64_t)FIRST_MS << doublings);
}

/* Whether the server cannot answer just now, or is not the right one any more. */
static bool is_passing(struct wr_redis *redis, struct wr_attempt *attempt,
                       const struct wr_reply *reply)
{
    static const char *const passing[] = { "LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN" };

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        if (wr_reply_is_error(reply, passing[i]))
            return true;
    }
    /* With sentinels or a cluster, another server is looked for; without, the URL's server is the only one. */
    if (!wr_reply_is_error(reply, "READONLY") || redis->config.kind == WR_REDIS_DIRECT)
        return false;
    if (redis->config.kind == WR_REDIS_SENTINEL)
        wr_link_break(attempt->on, WEIR_ELOST, "the server is no master any more");
    wr_cluster_refresh(redis);
    return true;
}

/* Whether the slot is at another node: for good, or for this one request. */
static bool is_elsewhere(struct wr_redis *redis, struct wr_attempt *attempt,
                         const struct wr_command *command, const struct wr_reply *reply)
{
    bool asking = wr_reply_is_error(reply, "ASK");
    struct wr_node *node;
    const char *key;
    size_t size;

    if (!redis->cluster.slots || (!asking && !wr_reply_is_error(reply, "MOVED")))
        return false;
    node = wr_cluster_redirect(redis, reply->text, attempt->on->node);
    if (!node)
        return false;
    key = wr_command_key(command, &size);
    attempt->link = wr_redis_link(redis, node, key, size);
    attempt->asking = asking;
    if (attempt->tries % REDIRECTS == 0) /* round in circles: let the cluster agree first */
        pause_for(attempt);
    return true;
}

static bool judge_reply(struct wr_redis *redis, struct wr_attempt *attempt,
                        const struct wr_command *command, const struct wr_reply *reply)
{
    if (reply->type != WR_REPLY_ERROR)
        return false;
    if (wr_reply_is_error(reply, "NOSCRIPT") && command->script && !attempt->full) {
        attempt->full = true;
        return true;
    }
    if (is_elsewhere(redis, attempt, command, reply))
        return true;
    if (!is_passing(redis, attempt, reply))
        return false;
    pause_for(attempt);
    return true;
}

enum wr_verdict wr_attempt_judge(struct wr_redis *redis, struct wr_attempt *attempt,
                                 const struct wr_command *command, int error, bool unsent,
                                 const struct wr_reply *reply)
{
    bool again;

    attempt->not_before = 0;
    attempt->link = NULL;
    attempt->asking = false;
    if (++attempt->tries > TRIES_MAX)
        return WR_FINAL;
    if (error)
        again = unsent && error == WEIR_EAWAY; /* its connection broke before it went out */
    else
        again = judge_reply(redis, attempt, command, reply);
    return again ? WR_AGAIN : WR_FINAL;
}

/* ---- calls --------------------------------------------------------------------------------------- */

static int call_once(struct wr_request *request, struct wr_redis *redis,
                     const struct wr_command *command, struct wr_attempt *attempt,
                     struct wr_bytes *bytes, weir_time deadline, weir_message *message)
{
    weir_time patience = command->patience;
    int rc = wr_cluster_wait(&redis->cluster, patience && patience < deadline ? patience : deadline,
                             message);

    *request = (struct wr_request){ .unsent = true };
    wr_bytes_clear(bytes);
    if (!rc)
        rc = wr_command_format(bytes, command, attempt->full, attempt->asking);
    if (rc)
        return rc;
    attempt->on = attempt->link ? attempt->link : wr_redis_route(redis, command);
    return wr_link_call(attempt->on, request, bytes, attempt->asking, patience, deadline, message);
}

static int pause_until(weir_time when, weir_time deadline)
{
    return when <= deadline ? weir_sleep(when) : WEIR_ETIMEDOUT;
}

static int give_up(struct wr_reply **reply, weir_message *message)
{
    wr_reply_free(*reply);
    *reply = NULL;
    return wr_redis_fail(WEIR_ECANCELED, message, "%s", weir_strerror(WEIR_ECANCELED));
}

int wr_redis_call(struct wr_reply **out, struct wr_redis *redis, const struct wr_command *command,
                  weir_time deadline, weir_message *message)
{
    struct wr_attempt attempt = { 0 };
    struct wr_bytes bytes = { 0 };
    struct wr_request request;
    int rc, slept = 0;

    for (;;) {
        rc = call_once(&request, redis, command, &attempt, &bytes, deadline, message);
        *out = rc ? NULL : request.reply;
        if (wr_attempt_judge(redis, &attempt, command, rc, request.done && request.unsent, *out) ==
            WR_FINAL)
            break;
        if (attempt.not_before)
            slept = pause_until(attempt.not_before, deadline);
        if (slept) /* in vain: the caller gets what the server last said */
            break;
        wr_reply_free(*out);
    }
    wr_bytes_free(&bytes);
    if (!rc)
        rc = wr_reply_code(*out, message);
    return slept == WEIR_ECANCELED ? give_up(out, message) : rc;
}

/* ---- jobs ---------------------------------------------------------------------------------------- */

static void job_free(struct wr_job *job)
{
    wr_os_free(job->command);
    wr_os_free(job);
}

void wr_job_done(struct wr_job *job)
{
    struct wr_reply *reply = job->request.reply;

    if (job->request.kind == WR_SEND && reply && reply->type != WR_REPLY_ERROR) {
        wr_reply_free(reply);
        job_free(job);
        return;
    }
    wr_teller_post(&job->redis->teller, &job->told);
}

/* The job is over. In the teller, or before any other thread knows the job. */
static void job_end(struct wr_job *job, int error, struct wr_reply *reply)
{
    wr_teller_timer_clear(&job->redis->teller, &job->timer);
    if (!error)
        error = wr_reply_code(reply, NULL);
    if (job->done) {
        job->done(error, reply, job->arg);
    } else {
        if (error)
            wr_add(&job->redis->dropped, 1, relaxed);
        wr_reply_free(reply);
    }
    job_free(job);
}

/* Sends the job to the link where it belongs by now. */
static int job_send(struct wr_job *job)
{
    struct wr_attempt *attempt = &job->attempt;
    struct wr_bytes bytes = { 0 };
    int rc = wr_command_format(&bytes, job->command, attempt->full, attempt->asking);

    attempt->on = attempt->link ? attempt->link : wr_redis_route(job->redis, job->command);
    if (!rc)
        rc = wr_link_submit(attempt->on, job, &bytes, attempt->asking);
    wr_bytes_free(&bytes);
    return rc;
}

/* Two kinds of times in one timer: the next attempt, or the deadline. */
static void job_set_timer(struct wr_job *job)
{
    weir_time when = job->deadline;

    if (job->attempt.not_before && job->attempt.not_before < when)
        when = job->attempt.not_before;
    if (when != WEIR_FOREVER)
        wr_teller_timer_set(&job->redis->teller, &job->timer, when);
}

void wr_job_sent(struct wr_job *job)
{
    job_set_timer(job);
}

/* In the teller: sends it again, or ends it. */
static void job_again(struct wr_job *job)
{
    int rc;

    job->attempt.not_before = 0;
    rc = weir_now() >= job->deadline ? WEIR_ETIMEDOUT : job_send(job);
    if (rc)
        job_end(job, rc, NULL);
}

/* In the teller: the link is done with it. */
static void job_tell(struct wr_told *told)
{
    struct wr_job *job = WR_CONTAINER(told, struct wr_job, told);
    struct wr_request *request = &job->request;
    struct wr_reply *reply = request->reply;
    int error = request->error;
    bool unsent = request->unsent;

    request->unsent = false;
    request->reply = NULL;
    if (wr_attempt_judge(job->redis, &job->attempt, job->command, error, unsent, reply) ==
        WR_FINAL) {
        job_end(job, error, reply);
        return;
    }
    wr_reply_free(reply);
    if (job->attempt.not_before)
        job_set_timer(job);
    else
        job_again(job);
}

/* In the teller. */
static void job_timer(struct wr_redis_timer *timer, void *arg)
{
    struct wr_job *job = arg;

    (void)timer;
    if (job->attempt.not_before)
        job_again(job);
    else if (wr_link_abandon(job->attempt.on, job))
        job_end(job, job->redis->teller.closing ? WEIR_ECLOSED : WEIR_ETIMEDOUT, NULL);
}

static int job_new(struct wr_job **out, struct wr_redis *redis, const struct wr_command *command,
                   weir_time deadline)
{
    struct wr_job *job = wr_os_alloc(sizeof(*job));

    if (!job)
        return WEIR_ENOMEM;
    job->command = wr_command_copy(command);
    if (!job->command) {
        wr_os_free(job);
        return WEIR_ENOMEM;
    }
    job->redis = redis;
    job->told.tell = job_tell;
    job->timer.fire = job_timer;
    job->timer.arg = job;
    job->timer.at_close = true;
    job->deadline = deadline;
    *out = job;
    return 0;
}

int wr_redis_send(struct wr_redis *redis, const struct wr_command *command)
{
    struct wr_job *job;
    int rc = job_new(&job, redis, command, WEIR_FOREVER);

    if (rc)
        return rc;
    job->request.kind = WR_SEND;
    rc = job_send(job);
    if (rc)
        job_free(job);
    return rc;
}

int wr_redis_ask(struct wr_redis *redis, const struct wr_command *command, weir_time deadline,
                 wr_redis_done *done, void *arg)
{
    struct wr_job *job;
    int rc = job_new(&job, redis, command, deadline);

    if (rc)
        return rc;
    job->request.kind = WR_ASK;
    job->done = done;
    job->arg = arg;
    rc = job_send(job);
    if (rc)
        job_free(job);
    return rc;
}
