/* Threads that are cancelled (pthread_cancel) in the midst of calls: the executor goes on as if they had not been.
 * No call of the library's is a cancellation point, nor is what it calls on a plain thread.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#if SANITIZED
enum { ROUNDS = 60 };
#else
enum { ROUNDS = 400 };
#endif

enum { THREADS = 3 };

static int null_fd;
static _Atomic uint64_t submitted, done, bodies;

/* A cancellation point of the user's own, in code that the library calls. */
static void touch(void)
{
    CHECK(write(null_fd, "", 1) == 1);
}

static int body(void **value, void *arg)
{
    (void)value, (void)arg;
    touch();
    atomic_fetch_add(&bodies, 1);
    return 0;
}

static void on_done(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)arg;
    touch();
    CHECK(result->outcome != WEIR_UNSETTLED);
    atomic_fetch_add(&done, 1);
}

static void on_submitted(weir_task *task, void *arg)
{
    (void)task, (void)arg;
    touch();
    atomic_fetch_add(&submitted, 1);
}

static int limit_for(int64_t *limit, const char *key, void *arg)
{
    (void)key, (void)arg;
    touch();
    *limit = 1;
    return 0;
}

/* Submits, cancels, waits, evicts, until it is cancelled; not a moment before, and between calls only. */
static void *submitter(void *ex)
{
    char key[] = "0";
    int state;

    for (int i = 0;; i++) {
        weir_task *task = NULL;
        key[0] = (char)('0' + i % 10);
        pthread_testcancel();
        CHECK(weir_submit_key(i % 3 ? NULL : &task, ex, key, body, NULL,
                              WEIR_TASK(.on_done = on_done)) == 0);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        CHECK(state == PTHREAD_CANCEL_ENABLE);
        pthread_setcancelstate(state, NULL); /* not a cancellation point: the handle is not lost */
        if (i % 2 && task)
            weir_task_cancel(task);
        else if (task)
            weir_task_wait(NULL, task, WEIR_FOREVER);
        weir_task_unref(task);
        if (i % 50 == 0)
            CHECK(weir_group_evict(ex, key, i % 100 ? WEIR_CARRY_OVER : 0) == 0);
    }
    return NULL;
}

static void cancel_submitters(weir_executor *ex, int round)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, submitter, ex), 0);
    weir_sleep(weir_in_us(100 + round * 37 % 900));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_cancel(thread[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *answer = NULL;
        assert_int_equal(pthread_join(thread[i], &answer), 0);
        CHECK(answer == PTHREAD_CANCELED);
    }
}

static void run(weir_rejection rejection, int64_t queue_max)
{
    weir_executor_stats stats = { .size = sizeof(stats) };
    weir_executor *ex = NULL;

    submitted = done = bodies = 0;
    assert_int_equal(
        weir_executor_new(&ex,
                          WEIR_POLICY(.workers = 2, .rejection = rejection,
                                      .group_queue_max = queue_max, .limit_for = limit_for,
                                      .listener = { .submitted = on_submitted }),
                          NULL),
        0);
    for (int round = 0; round < ROUNDS; round++)
        cancel_submitters(ex, round);
    CHECK_EQUAL(weir_executor_drain(ex, patience()), 0);
    CHECK_EQUAL(weir_executor_stats_get(&stats, ex), 0);
    CHECK_EQUAL(done, submitted);
    CHECK_EQUAL(stats.submitted, submitted);
    CHECK_EQUAL(stats.running + stats.inflight + stats.waiting, 0);
    weir_executor_free(ex);
}

static void test_a_cancelled_thread_leaves_the_executor_whole(void)
{
    run(WEIR_DISCARD, 4);
}

static void test_a_thread_is_not_cancelled_in_a_body_that_it_runs(void)
{
    run(WEIR_CALLER_RUNS, WEIR_NO_QUEUE);
}

static void test_a_thread_is_not_cancelled_while_it_waits_for_room(void)
{
    run(WEIR_BLOCK, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_cancelled_thread_leaves_the_executor_whole),
        TEST(test_a_thread_is_not_cancelled_in_a_body_that_it_runs),
        TEST(test_a_thread_is_not_cancelled_while_it_waits_for_room),
    };

    null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
