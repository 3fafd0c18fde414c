/* The executor, feature by feature, as docs/executor.md tells it. Each function checks what it claims, so
 * the test suite runs this program too.
 * SPDX-License-Identifier: MIT */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir.h>

#define MUST(condition)    \
    ((condition) ? (void)0 \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

/* ---- a first group ----------------------------------------------------------------------------- */

static int fetch(void **value, void *arg)
{
    weir_sleep(weir_in_ms(20)); /* a call to a slow service; the task parks */
    *value = strdup(arg);
    return 0;
}

static void first_group(void)
{
    weir_executor *ex;
    weir_group *tenant;
    weir_task *task;
    weir_result result = WEIR_RESULT;

    MUST(weir_executor_new(&ex, WEIR_POLICY(.group_limit = 2), NULL) == 0);
    MUST(weir_group_get(&tenant, ex, "tenant:7") == 0);
    MUST(weir_submit(&task, tenant, fetch, (void *)"page", WEIR_TASK(.drop = free)) == 0);
    MUST(weir_task_wait(&result, task, weir_in_s(5)) == 0);
    MUST(result.outcome == WEIR_DONE && strcmp(result.value, "page") == 0);
    printf("fetched in %.0f ms\n", (double)(result.ended_at - result.started_at) / 1e6);
    weir_task_unref(task); /* nobody took the value: free(3) is called for it */
    weir_executor_free(ex);
}

/* ---- limits by group --------------------------------------------------------------------------- */

struct gauge {
    _Atomic int now, peak;
};

static int measure(void **value, void *arg)
{
    struct gauge *gauge = arg;
    int now = atomic_fetch_add(&gauge->now, 1) + 1, peak = gauge->peak;

    (void)value;
    while (now > peak && !atomic_compare_exchange_weak(&gauge->peak, &peak, now))
        ;
    weir_sleep(weir_in_ms(5));
    atomic_fetch_sub(&gauge->now, 1);
    return 0;
}

static int vips_get_more(int64_t *limit, const char *key, void *arg)
{
    (void)arg;
    *limit = strncmp(key, "vip:", 4) == 0 ? 4 : 1;
    return 0;
}

static void limits_by_group(void)
{
    const weir_group_policy named[] = { { .key = "reports", .limit = 3, .queue_max = 100 } };
    struct gauge reports = { 0 }, vip = { 0 }, plain = { 0 };
    weir_executor *ex;

    MUST(weir_executor_new(&ex,
                           WEIR_POLICY(.groups = named, .group_count = 1, .inflight_max = 6,
                                       .limit_for = vips_get_more),
                           NULL) == 0);
    for (int i = 0; i < 20; i++) {
        MUST(weir_submit_key(NULL, ex, "reports", measure, &reports, NULL) == 0);
        MUST(weir_submit_key(NULL, ex, "vip:1", measure, &vip, NULL) == 0);
        MUST(weir_submit_key(NULL, ex, "someone", measure, &plain, NULL) == 0);
    }
    MUST(weir_executor_drain(ex, weir_in_s(10)) == 0);
    printf("at once: reports %d, vip %d, someone %d\n", reports.peak, vip.peak, plain.peak);
    MUST(reports.peak <= 3 && vip.peak <= 4 && plain.peak == 1);
    weir_executor_free(ex);
}

/* ---- a policy that makes no sense --------------------------------------------------------------- */

static void bad_policy(void)
{
    weir_executor *ex;
    weir_message why;

    MUST(weir_executor_new(&ex, WEIR_POLICY(.group_limit = -1), &why) == WEIR_EINVAL);
    printf("refused: %s\n", why.text);
}

/* ---- full queues --------------------------------------------------------------------------------- */

static void full_queue(void)
{
    weir_executor *ex;
    weir_group *group;
    weir_task *task[3];
    weir_result result = WEIR_RESULT;

    MUST(weir_executor_new(&ex, WEIR_POLICY(.group_queue_max = 1, .rejection = WEIR_DISCARD),
                           NULL) == 0);
    MUST(weir_group_get(&group, ex, "g") == 0);
    for (int i = 0; i < 3; i++) /* one runs, one waits, one is too many */
        MUST(weir_submit(&task[i], group, fetch, (void *)"x", WEIR_TASK(.drop = free)) == 0);
    MUST(weir_task_wait(&result, task[2], weir_in_s(5)) == 0);
    MUST(result.outcome == WEIR_REJECTED && result.reason == WEIR_REASON_GROUP_QUEUE_FULL);
    printf("the third: %s\n", weir_reason_text(result.reason));
    for (int i = 0; i < 3; i++)
        weir_task_unref(task[i]);
    weir_executor_free(ex);
}

/* ---- why does it wait? --------------------------------------------------------------------------- */

static void ask_why(void)
{
    weir_executor *ex;
    weir_group *group;
    weir_task *first, *second;
    weir_why why = { .size = sizeof(why) };
    char text[160];

    MUST(weir_executor_new(&ex, WEIR_POLICY(.group_limit = 1), NULL) == 0);
    MUST(weir_group_get(&group, ex, "g") == 0);
    weir_group_pause(group);
    MUST(weir_submit(&first, group, fetch, (void *)"x", WEIR_TASK(.drop = free)) == 0);
    MUST(weir_submit(&second, group, fetch, (void *)"y", WEIR_TASK(.drop = free)) == 0);
    MUST(weir_task_why(&why, second) == 0 && why.reason == WEIR_REASON_PAUSED && why.ahead == 1);
    weir_why_text(text, sizeof(text), &why);
    printf("the second waits: %s\n", text);
    weir_group_resume(group);
    MUST(weir_task_wait(NULL, second, weir_in_s(5)) == 0);
    weir_task_unref(first);
    weir_task_unref(second);
    weir_executor_free(ex);
}

/* ---- settled later, from outside ------------------------------------------------------------------ */

static weir_task *_Atomic asked;

static int ask_remote(void **value, void *arg)
{
    (void)value;
    (void)arg;
    asked = weir_task_ref(weir_task_self()); /* the request is on its way; somebody will answer */
    return WEIR_PENDING;                     /* no stack, no worker is held meanwhile           */
}

static void *remote(void *arg)
{
    (void)arg;
    while (!asked)
        usleep(100);
    weir_task_settle(asked, 0, (void *)"answer");
    weir_task_unref(asked);
    return NULL;
}

static void settled_later(void)
{
    weir_executor *ex;
    weir_task *task;
    weir_result result = WEIR_RESULT;
    pthread_t thread;

    MUST(weir_executor_new(&ex, NULL, NULL) == 0);
    MUST(pthread_create(&thread, NULL, remote, NULL) == 0);
    MUST(weir_submit_key(&task, ex, "rpc", ask_remote, NULL, NULL) == 0);
    MUST(weir_task_wait(&result, task, weir_in_s(5)) == 0 && strcmp(result.value, "answer") == 0);
    pthread_join(thread, NULL);
    weir_task_unref(task);
    weir_executor_free(ex);
    printf("a pending task was answered from outside\n");
}

/* ---- pace ------------------------------------------------------------------------------------------ */

static void paced(void)
{
    weir_executor *ex;
    weir_group *group;
    weir_time start = weir_now();
    struct gauge gauge = { 0 };

    MUST(weir_executor_new(&ex, WEIR_POLICY(.group_limit = 10), NULL) == 0);
    MUST(weir_group_get(&group, ex, "api") == 0);
    MUST(weir_group_pace(group, 100, 1000000000, 1) == 0); /* one every 10 ms */
    for (int i = 0; i < 11; i++)
        MUST(weir_submit(NULL, group, measure, &gauge, NULL) == 0);
    MUST(weir_executor_drain(ex, weir_in_s(5)) == 0);
    MUST(weir_now() - start >= 100000000); /* ten intervals */
    printf("eleven paced starts took %.0f ms\n", (double)(weir_now() - start) / 1e6);
    weir_executor_free(ex);
}

/* ---- an event loop ---------------------------------------------------------------------------------- */

static void event_loop(void)
{
    weir_executor *ex;
    weir_task *task;
    struct pollfd ready = { .events = POLLIN };

    MUST(weir_executor_new(&ex, NULL, NULL) == 0);
    MUST(weir_submit_key(&task, ex, "g", fetch, (void *)"x", WEIR_TASK(.drop = free)) == 0);
    ready.fd = weir_task_fd(task);
    MUST(poll(&ready, 1, 5000) == 1 && weir_task_done(task));
    close(ready.fd);
    weir_task_unref(task);
    weir_executor_free(ex);
    printf("poll(2) told of a settled task\n");
}

int main(void)
{
    first_group();
    limits_by_group();
    bad_policy();
    full_queue();
    ask_why();
    settled_later();
    paced();
    event_loop();
    return 0;
}
