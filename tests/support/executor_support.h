/* Shared by tests of the executor: bodies that do as they are told, and short ways to submit and ask.
 *
 * Virtual time stands still while a test sets the scene, so a body that waits until a moment is a gate,
 * and the moments at which tasks start and end are exact.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_EXECUTOR_SUPPORT_H
#define WR_TESTS_EXECUTOR_SUPPORT_H

#include "support/sim_support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED __attribute__((unused))

/* SIM_TEST(name, seeds) { ... }: a test whose body runs under that many schedules. */
#define SIM_TEST(name, seeds) SIM_TEST_WITH(name, seeds, .seed = 1)

/* The same with options of the simulator's. */
#define SIM_TEST_WITH(name, seeds, ...)                                 \
    static void name##_scenario(void *arg);                             \
    static void name(void **state)                                      \
    {                                                                   \
        (void)state;                                                    \
        explore(seeds, WEIR_SIM_OPTIONS(__VA_ARGS__), name##_scenario); \
    }                                                                   \
    static void name##_scenario(UNUSED void *arg)

/* Like CHECK, but says which figures they were. */
#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        if (a_ != b_)                                                                              \
            weir_sim_fail("%s:%d: %s is %lld, not %s = %lld", __FILE__, __LINE__, #a, a_, #b, b_); \
    } while (0)

/* The moment that many milliseconds after the run began. */
static inline weir_time at(int64_t ms)
{
    return WEIR_SIM_START + ms * MS;
}

static inline void sleep_until(int64_t ms)
{
    CHECK(weir_sleep(at(ms)) == 0);
}

/* Whether the caller runs on the stack that has this frame, not far from it: simulated threads share one OS thread, but
 * each has a stack of its own. */
static inline bool on_stack_of(const char *frame)
{
    ptrdiff_t distance = frame - (const char *)__builtin_frame_address(0);

    return distance > -(16 << 10) && distance < 16 << 10;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

struct gauge {
    _Atomic int now, peak, ran;
};

/* The orders of a body, done in this order. */
struct body {
    struct gauge *gauge;   /* is counted here while it runs                      */
    struct gauge *overall; /* and here                                           */
    int64_t until_ms;      /* waits until then ...                               */
    int64_t ms;            /* ... and for that long                              */
    int error;             /* returns that                                       */
    void *value;           /* and leaves this                                    */
    int order;             /* stands here as the n-th to begin, from 1           */
    _Atomic int *began;    /* counting those                                     */
};

static inline void gauge_enter(struct gauge *gauge)
{
    int now = gauge ? atomic_fetch_add(&gauge->now, 1) + 1 : 0;

    if (gauge && now > gauge->peak)
        gauge->peak = now;
}

static inline void gauge_leave(struct gauge *gauge)
{
    if (gauge) {
        gauge->now--;
        gauge->ran++;
    }
}

static inline int work(void **value, void *arg)
{
    struct body *body = arg;
    int rc = 0;

    if (!body)
        return 0;
    if (body->began)
        body->order = ++*body->began;
    gauge_enter(body->gauge);
    gauge_enter(body->overall);
    if (body->until_ms)
        rc = weir_sleep(at(body->until_ms));
    if (!rc && body->ms)
        rc = weir_sleep(weir_now() + body->ms * MS);
    gauge_leave(body->overall);
    gauge_leave(body->gauge);
    *value = body->value;
    return rc ? rc : body->error;
}

/* ---- executors ------------------------------------------------------------------------------- */

static inline weir_executor *new_executor(const weir_policy *policy)
{
    weir_executor *ex = NULL;
    weir_message why;

    if (weir_executor_new(&ex, policy, &why))
        weir_sim_fail("executor: %s", why.text);
    return ex;
}

static inline weir_group *group_of(weir_executor *ex, const char *key)
{
    weir_group *group = NULL;

    CHECK(weir_group_get(&group, ex, key) == 0);
    return group;
}

static inline weir_group_stats stats_of(weir_executor *ex, const char *key)
{
    weir_group_stats stats = { .size = sizeof(stats) };

    CHECK(weir_group_stats_get(&stats, ex, key) == 0);
    return stats;
}

static inline weir_executor_stats stats_all(weir_executor *ex)
{
    weir_executor_stats stats = { .size = sizeof(stats) };

    CHECK(weir_executor_stats_get(&stats, ex) == 0);
    return stats;
}

/* Nothing is left, and every submission was counted under exactly one outcome. */
static inline void check_books(weir_executor *ex)
{
    weir_executor_stats s = stats_all(ex);

    CHECK_EQ(s.running, 0);
    CHECK_EQ(s.inflight, 0);
    CHECK_EQ(s.waiting, 0);
    CHECK_EQ(s.submitted, s.succeeded + s.failed + s.cancelled + s.rejected + s.timed_out);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static inline weir_task *submit_with(weir_executor *ex, const char *key, struct body *body,
                                     const weir_task_options *opt)
{
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, key, work, body, opt) == 0);
    CHECK(task != NULL);
    return task;
}

static inline weir_task *submit(weir_executor *ex, const char *key, struct body *body)
{
    return submit_with(ex, key, body, NULL);
}

/* Blocks whatever carries it for body->ms, and is counted in its gauge. */
static inline int blocking(void **value, void *body_arg)
{
    struct body *body = body_arg;

    *value = NULL;
    gauge_enter(body->gauge);
    weir_sim_busy(body->ms * MS);
    gauge_leave(body->gauge);
    return 0;
}

static inline weir_task *submit_blocking(weir_executor *ex, const char *key, struct body *body)
{
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, key, blocking, body, NULL) == 0);
    return task;
}

/* The result of the task; the handle is given back. Under WEIR_ABORT a rejection is the wait's answer, too. */
static inline weir_result result_of(weir_task *task)
{
    weir_result result = WEIR_RESULT;
    int rc = weir_task_wait(&result, task, WEIR_FOREVER);

    CHECK(rc == 0 || (rc == WEIR_EREJECTED && result.outcome == WEIR_REJECTED));
    CHECK(weir_task_done(task));
    CHECK(result.started_at >= result.queued_at && result.ended_at >= result.started_at);
    weir_task_unref(task);
    return result;
}

static inline void check_done(weir_task *task)
{
    weir_result result = result_of(task);

    CHECK_EQ(result.outcome, WEIR_DONE);
    CHECK_EQ(result.error, 0);
    CHECK_EQ(result.reason, WEIR_REASON_NONE);
}

static inline void check_done_at(weir_task *task, int64_t start_ms, int64_t end_ms)
{
    weir_result result = result_of(task);

    CHECK_EQ(result.outcome, WEIR_DONE);
    CHECK_EQ(result.started_at, at(start_ms));
    CHECK_EQ(result.ended_at, at(end_ms));
}

/* Rejected: no value, no time spent. */
static inline void check_rejected(weir_task *task, weir_reason reason)
{
    weir_result result = result_of(task);

    CHECK_EQ(result.outcome, WEIR_REJECTED);
    CHECK_EQ(result.reason, reason);
    CHECK(result.value == NULL);
    CHECK_EQ(result.started_at, result.ended_at);
}

static inline void check_cancelled(weir_task *task)
{
    weir_result result = result_of(task);

    CHECK_EQ(result.outcome, WEIR_CANCELLED);
    CHECK_EQ(result.error, WEIR_ECANCELED);
    CHECK(result.value == NULL);
}

static inline weir_reason why_of(weir_task *task)
{
    weir_why why = { .size = sizeof(why) };

    CHECK(weir_task_why(&why, task) == 0);
    return why.reason;
}

#endif
