/* Which callback is told of an end in which order, and when the argument is let go.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

static char told
    [256]; /* c: completed, r: rejected, d: on_done, b: the body is over, a: drop_arg, v: drop */

static void note(char what)
{
    size_t length = strlen(told);

    CHECK(length < sizeof(told) - 1);
    told[length] = what;
    told[length + 1] = '\0';
}

static void expect(const char *wanted)
{
    if (strcmp(told, wanted) != 0)
        weir_sim_fail("told \"%s\", not \"%s\"", told, wanted);
    told[0] = '\0';
}

static void note_completed(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result, (void)arg;
    note('c');
}

static void note_rejected(weir_task *task, weir_reason reason, void *arg)
{
    (void)task, (void)reason, (void)arg;
    note('r');
}

static void note_done(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result, (void)arg;
    note('d');
}

static void note_arg(void *arg)
{
    CHECK(arg == told);
    note('a');
}

static void note_value(void *value)
{
    CHECK(value == told);
    note('v');
}

/* Until 50 ms, come what may. */
static int stubborn(void **value, void *arg)
{
    while (weir_now() < at(50))
        weir_sim_busy(at(50) - weir_now());
    note('b');
    *value = arg;
    return 0;
}

static int quick(void **value, void *arg)
{
    note('b');
    *value = arg;
    return 0;
}

static int pends(void **value, void *arg)
{
    (void)value, (void)arg;
    note('b');
    return WEIR_PENDING;
}

#define NOTED(...) \
    WEIR_TASK(.on_done = note_done, .drop_arg = note_arg, .drop = note_value, __VA_ARGS__)

static weir_executor *noting_executor(weir_rejection rejection)
{
    told[0] = '\0';
    return new_executor(
        WEIR_POLICY(.workers = 1, .group_limit = 1, .group_queue_max = 1, .rejection = rejection,
                    .listener = { .completed = note_completed, .rejected = note_rejected }));
}

static weir_task *submit_noted(weir_executor *ex, weir_fn *fn, const weir_task_options *opt)
{
    weir_task *task = NULL;

    CHECK(weir_submit_key(&task, ex, "g", fn, told, opt) == 0 && task);
    return task;
}

SIM_TEST(test_the_argument_goes_last, 100)
{
    weir_executor *ex = noting_executor(WEIR_ABORT);
    weir_task *task = submit_noted(ex, quick, NOTED());

    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    expect("bcda");
    weir_task_unref(task);
    expect("v");
    weir_executor_free(ex);
}

SIM_TEST(test_the_argument_of_a_cancelled_task_stays_until_its_body_has_returned, 100)
{
    weir_executor *ex = noting_executor(WEIR_ABORT);
    weir_task *running = submit_noted(ex, stubborn, NOTED()), *waiting;

    sleep_until(10);
    waiting = submit_noted(ex, quick, NOTED());
    CHECK(weir_task_cancel(waiting));
    expect("cda");
    CHECK(weir_task_cancel(running));
    expect("cd");
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(50));
    expect("bva"); /* its late value has no taker */
    weir_task_unref(running);
    weir_task_unref(waiting);
    expect("");
    weir_executor_free(ex);
}

SIM_TEST(test_the_argument_of_an_overdue_task_stays_until_its_body_has_returned, 60)
{
    weir_executor *ex = noting_executor(WEIR_ABORT);
    weir_task *running = submit_noted(ex, stubborn, NOTED(.deadlines.run_ms = 20)), *waiting;

    sleep_until(10);
    waiting = submit_noted(ex, quick, NOTED(.deadlines.wait_ms = 20));
    sleep_until(25);
    expect("cd");
    sleep_until(35);
    expect("cda");
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    expect("bva");
    weir_task_unref(running);
    weir_task_unref(waiting);
    weir_executor_free(ex);
}

SIM_TEST(test_the_argument_of_a_refused_task_goes_too, 100)
{
    weir_executor *ex = noting_executor(WEIR_DISCARD);
    weir_task *task[3];

    task[0] = submit_noted(ex, stubborn, NULL);
    sleep_until(10);
    task[1] = submit_noted(ex, quick, NOTED());
    task[2] = submit_noted(ex, quick, NOTED());
    expect("rda"); /* the queue is full */
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    expect("rda");
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    expect("bc");
    for (int i = 0; i < 3; i++)
        weir_task_unref(task[i]);
    weir_executor_free(ex);
}

SIM_TEST(test_the_argument_of_a_guest_goes_when_it_ends, 100)
{
    weir_executor *ex = noting_executor(WEIR_CALLER_RUNS);
    weir_task *task[3];

    task[0] = submit_noted(ex, stubborn, NULL);
    sleep_until(10);
    task[1] = submit_noted(ex, quick, NULL);
    task[2] = submit_noted(ex, quick, NOTED());
    expect("rbcda");
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    for (int i = 0; i < 3; i++)
        weir_task_unref(task[i]);
    weir_executor_free(ex);
}

/* The thread that settles it may use the argument, and holds a reference. */
SIM_TEST(test_the_argument_of_a_pending_task_goes_with_its_last_reference, 100)
{
    weir_executor *ex = noting_executor(WEIR_ABORT);
    weir_task *task = submit_noted(ex, pends, NOTED());

    sleep_until(10);
    expect("b");
    weir_executor_free(ex);
    expect("cd");
    CHECK(weir_task_settle(task, 0, NULL) == WEIR_EALREADY);
    weir_task_unref(task);
    expect("a");
}

/* A submit that is refused with an error leaves the argument to its caller. */
SIM_TEST(test_the_argument_of_a_submit_that_fails_stays_the_callers, 50)
{
    weir_executor *ex = noting_executor(WEIR_ABORT);

    CHECK(weir_submit_key(NULL, ex, "g", quick, told, NOTED(.cost = 2)) == WEIR_EINVAL);
    weir_executor_close(ex, 0);
    CHECK(weir_submit_key(NULL, ex, "g", quick, told, NOTED()) == WEIR_ECLOSED);
    expect("");
    weir_executor_free(ex);
}

/* A wait may end before callbacks were called; drain does not. */
static void slow_done(weir_task *task, const weir_result *result, void *arg)
{
    (void)task, (void)result, (void)arg;
    CHECK(weir_sleep(at(30)) == 0);
    note('d');
}

SIM_TEST(test_a_wait_may_end_before_callbacks_are_through, 100)
{
    weir_executor *ex = noting_executor(WEIR_ABORT);
    weir_task *task =
        submit_noted(ex, quick, WEIR_TASK(.on_done = slow_done, .drop_arg = note_arg));

    CHECK(weir_task_wait(NULL, task, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(0));
    expect("bc");
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(30));
    expect("da");
    weir_task_unref(task);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_argument_goes_last),
        cmocka_unit_test(test_the_argument_of_a_cancelled_task_stays_until_its_body_has_returned),
        cmocka_unit_test(test_the_argument_of_an_overdue_task_stays_until_its_body_has_returned),
        cmocka_unit_test(test_the_argument_of_a_refused_task_goes_too),
        cmocka_unit_test(test_the_argument_of_a_guest_goes_when_it_ends),
        cmocka_unit_test(test_the_argument_of_a_pending_task_goes_with_its_last_reference),
        cmocka_unit_test(test_the_argument_of_a_submit_that_fails_stays_the_callers),
        cmocka_unit_test(test_a_wait_may_end_before_callbacks_are_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
