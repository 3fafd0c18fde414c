/* Waits for descriptors and children in bodies on threads: whatever asks such a body to end wakes it at
 * once, as it would on a worker.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

#include <netinet/in.h>
#include <sys/wait.h>

enum { PORT = 80, CHILD_MS = 1000 };

/* The wait of a body, and its outcome. */
struct wait {
    int64_t (*call)(struct wait *wait);
    int fds[2];
    pid_t child;
    weir_time deadline;
    int64_t answer;
    weir_time over_at;
    bool later; /* waits again after the first answer, which must be refused at once */
};

static int64_t waits_to_read(struct wait *wait)
{
    char byte;

    return weir_read(wait->fds[0], &byte, 1, wait->deadline);
}

static int64_t waits_to_write(struct wait *wait)
{
    static const char more_than_fits[8192];
    int64_t n = weir_write(wait->fds[1], more_than_fits, sizeof(more_than_fits), wait->deadline);

    /* Bytes that went out before the wait are told; the next call finds out why it ended. */
    return n > 0 ? weir_write(wait->fds[1], "", 1, wait->deadline) : n;
}

static int64_t waits_for_fd(struct wait *wait)
{
    return weir_fd_wait(wait->fds[0], WEIR_READ, wait->deadline);
}

static int64_t waits_to_accept(struct wait *wait)
{
    int listener = weir_sim_listener(PORT);
    int answer = weir_accept(listener, NULL, NULL, wait->deadline);

    weir_sim_close(listener);
    return answer;
}

static int64_t waits_for_child(struct wait *wait)
{
    return weir_child_wait(NULL, wait->child, wait->deadline);
}

static int waits(void **value, void *wait_arg)
{
    struct wait *wait = wait_arg;

    *value = NULL;
    wait->answer = wait->call(wait);
    wait->over_at = weir_now();
    if (wait->later)
        CHECK_EQ(wait->call(wait), WEIR_ECANCELED);
    CHECK_EQ(weir_now(), wait->over_at);
    return (int)wait->answer;
}

static int64_t (*const calls[])(struct wait *wait) = {
    waits_to_read, waits_to_write, waits_for_fd, waits_to_accept, waits_for_child,
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* One wait of each kind, each in a body on a thread of its own. */
struct waits {
    weir_executor *ex;
    struct wait wait[CALLS];
    weir_task *task[CALLS];
};

static void begin(struct waits *all, weir_policy *policy, const weir_task_options *opt)
{
    weir_group_policy groups[] = { { .key = "io", .limit = CALLS, .run_on = WEIR_THREADS } };

    policy->workers = 1;
    policy->groups = groups;
    policy->group_count = 1;
    all->ex = new_executor(policy);
    for (int i = 0; i < CALLS; i++) {
        struct wait *wait = &all->wait[i];
        *wait = (struct wait){ .call = calls[i], .deadline = WEIR_FOREVER };
        CHECK(weir_sim_pipe(wait->fds) == 0);
        wait->child = calls[i] == waits_for_child ? weir_sim_child(CHILD_MS * MS, 0) : 0;
        CHECK(weir_submit_key(&all->task[i], all->ex, "io", waits, wait, opt) == 0);
    }
}

static void end(struct waits *all)
{
    weir_executor_free(all->ex);
    for (int i = 0; i < CALLS; i++) {
        weir_sim_close(all->wait[i].fds[0]);
        weir_sim_close(all->wait[i].fds[1]);
        weir_task_unref(all->task[i]);
    }
    if (weir_now() < at(CHILD_MS))
        CHECK(weir_child_wait(NULL, all->wait[CALLS - 1].child, WEIR_FOREVER) == 0);
}

static void check_woken_at(const struct waits *all, int64_t ms)
{
    for (int i = 0; i < CALLS; i++) {
        CHECK_EQ(all->wait[i].answer, WEIR_ECANCELED);
        CHECK_EQ(all->wait[i].over_at, at(ms));
    }
}

SIM_TEST(test_a_cancel_wakes_whatever_wait_a_body_on_a_thread_is_in, 200)
{
    struct waits all;

    begin(&all, WEIR_POLICY(.group_limit = 1), NULL);
    sleep_until(10);
    for (int i = 0; i < CALLS; i++)
        CHECK(weir_task_cancel(all.task[i]));
    CHECK(weir_executor_drain(all.ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(10));
    check_woken_at(&all, 10);
    check_books(all.ex);
    end(&all);
}

SIM_TEST(test_a_cancelled_body_on_a_thread_cannot_wait_again, 50)
{
    struct waits all;

    begin(&all, WEIR_POLICY(.group_limit = 1), NULL);
    for (int i = 0; i < CALLS; i++)
        all.wait[i].later = true;
    sleep_until(10);
    for (int i = 0; i < CALLS; i++)
        CHECK(weir_task_cancel(all.task[i]));
    CHECK(weir_executor_drain(all.ex, WEIR_FOREVER) == 0);
    check_woken_at(&all, 10);
    end(&all);
}

SIM_TEST(test_a_run_deadline_wakes_whatever_wait_a_body_on_a_thread_is_in, 100)
{
    struct waits all;

    begin(&all, WEIR_POLICY(.deadlines.run_ms = 20), NULL);
    CHECK(weir_executor_drain(all.ex, WEIR_FOREVER) == 0);
    check_woken_at(&all, 20);
    for (int i = 0; i < CALLS; i++) {
        weir_result result = WEIR_RESULT;
        CHECK(weir_task_wait(&result, all.task[i], WEIR_FOREVER) == 0);
        CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
        CHECK_EQ(result.ended_at, at(20));
    }
    end(&all);
}

SIM_TEST(test_a_total_deadline_wakes_whatever_wait_a_body_on_a_thread_is_in, 100)
{
    struct waits all;

    begin(&all, WEIR_POLICY(.group_limit = 1), WEIR_TASK(.deadlines.total_ms = 30));
    CHECK(weir_executor_drain(all.ex, WEIR_FOREVER) == 0);
    check_woken_at(&all, 30);
    end(&all);
}

SIM_TEST(test_closing_wakes_whatever_wait_a_body_on_a_thread_is_in, 100)
{
    struct waits all;

    begin(&all, WEIR_POLICY(.group_limit = 1), NULL);
    sleep_until(10);
    weir_executor_close(all.ex, 0);
    CHECK(weir_executor_drain(all.ex, WEIR_FOREVER) == 0);
    check_woken_at(&all, 10);
    end(&all);
}

SIM_TEST(test_freeing_wakes_whatever_wait_a_body_on_a_thread_is_in, 100)
{
    struct waits all;

    begin(&all, WEIR_POLICY(.group_limit = 1), NULL);
    sleep_until(10);
    end(&all);
    check_woken_at(&all, 10);
}

/* The wait's own deadline, and what it waits for, still end it; at the moment of the cancel either may win. */
SIM_TEST(test_a_descriptor_and_a_cancel_at_once_end_the_wait_once, 400)
{
    weir_group_policy groups[] = { { .key = "io", .limit = 2, .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .groups = groups, .group_count = 1));
    struct wait ready = { .call = waits_to_read, .deadline = at(10) },
                late = { .call = waits_for_fd, .deadline = at(10) };
    weir_task *task[2];

    CHECK(weir_sim_pipe(ready.fds) == 0 && weir_sim_pipe(late.fds) == 0);
    CHECK(weir_submit_key(&task[0], ex, "io", waits, &ready, NULL) == 0);
    CHECK(weir_submit_key(&task[1], ex, "io", waits, &late, NULL) == 0);
    sleep_until(10);
    CHECK(weir_write(ready.fds[1], "x", 1, WEIR_FOREVER) == 1);
    weir_task_cancel(task[0]);
    weir_task_cancel(task[1]);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(ready.answer == 1 || ready.answer == WEIR_ECANCELED || ready.answer == WEIR_ETIMEDOUT);
    CHECK(late.answer == WEIR_ECANCELED || late.answer == WEIR_ETIMEDOUT);
    CHECK_EQ(ready.over_at, at(10));
    CHECK_EQ(late.over_at, at(10));
    for (int i = 0; i < 2; i++) {
        weir_task_unref(task[i]);
        weir_sim_close((i ? &late : &ready)->fds[0]);
        weir_sim_close((i ? &late : &ready)->fds[1]);
    }
    weir_executor_free(ex);
}

/* The thread of a cancelled body is used again: an old wake-up ends no later wait. */
SIM_TEST(test_a_cancel_leaves_nothing_behind_on_its_thread, 200)
{
    weir_group_policy groups[] = { { .key = "io", .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .groups = groups, .group_count = 1, .threads_max = 1));
    struct wait first = { .call = waits_to_read, .deadline = WEIR_FOREVER },
                second = { .call = waits_to_read, .deadline = at(30) };
    weir_task *task;

    CHECK(weir_sim_pipe(first.fds) == 0);
    second.fds[0] = first.fds[0];
    CHECK(weir_submit_key(&task, ex, "io", waits, &first, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "io", waits, &second, NULL) == 0);
    sleep_until(10);
    CHECK(weir_task_cancel(task));
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(first.over_at, at(10));
    CHECK_EQ(second.answer, WEIR_ETIMEDOUT);
    CHECK_EQ(second.over_at, at(30));
    weir_task_unref(task);
    weir_executor_free(ex);
    weir_sim_close(first.fds[0]);
    weir_sim_close(first.fds[1]);
}

/* A connection takes no time or 50 us. */
static int64_t waits_to_connect(struct wait *wait)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    int fd = weir_sim_socket();
    int answer = weir_connect(fd, (struct sockaddr *)&to, sizeof(to), wait->deadline);

    weir_sim_close(fd);
    return answer;
}

SIM_TEST(test_a_cancel_wakes_a_connecting_body_on_a_thread, 100)
{
    weir_group_policy groups[] = { { .key = "io", .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .groups = groups, .group_count = 1));
    struct wait wait = { .call = waits_to_connect, .deadline = WEIR_FOREVER };
    int listener = weir_sim_listener(PORT);
    weir_task *task;

    CHECK(weir_submit_key(&task, ex, "io", waits, &wait, NULL) == 0);
    CHECK(weir_sleep(at(0) + 20000) == 0);
    if (weir_task_cancel(task)) {
        CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
        CHECK_EQ(wait.answer, WEIR_ECANCELED);
        CHECK_EQ(wait.over_at, at(0) + 20000);
    }
    weir_task_unref(task);
    weir_executor_free(ex);
    weir_sim_close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cancel_wakes_whatever_wait_a_body_on_a_thread_is_in),
        cmocka_unit_test(test_a_cancelled_body_on_a_thread_cannot_wait_again),
        cmocka_unit_test(test_a_run_deadline_wakes_whatever_wait_a_body_on_a_thread_is_in),
        cmocka_unit_test(test_a_total_deadline_wakes_whatever_wait_a_body_on_a_thread_is_in),
        cmocka_unit_test(test_closing_wakes_whatever_wait_a_body_on_a_thread_is_in),
        cmocka_unit_test(test_freeing_wakes_whatever_wait_a_body_on_a_thread_is_in),
        cmocka_unit_test(test_a_descriptor_and_a_cancel_at_once_end_the_wait_once),
        cmocka_unit_test(test_a_cancel_leaves_nothing_behind_on_its_thread),
        cmocka_unit_test(test_a_cancel_wakes_a_connecting_body_on_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
