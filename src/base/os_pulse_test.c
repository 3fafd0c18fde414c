/* The pulse: there while it is wanted, never ahead of the clock, and gone with the callers that wanted it.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "support/child.h"

#include <dirent.h>
#include <string.h>

static int pulsing_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    int count = 0;

    while (tasks && (task = readdir(tasks))) {
        char path[300], name[32] = "";
        FILE *file;
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if (!file)
            continue;
        count += fgets(name, sizeof(name), file) && strcmp(name, "weir-pulse\n") == 0;
        fclose(file);
    }
    closedir(tasks);
    return count;
}

/* Wants it until it is there, and answers what it saw: a moment later it may have been found late, and be gone again. */
static weir_time await_pulse(void)
{
    weir_time pulse;

    AWAIT((wr_os_pulse_want(wr_os_now()), pulse = wr_os_pulse()));
    return pulse;
}

static void test_it_pulses_while_it_is_wanted_and_rests_afterwards(void)
{
    weir_time first, last;

    CHECK_EQUAL(wr_os_pulse(), 0);
    wr_os_pulse_join();
    CHECK_EQUAL(pulsing_threads(), 0);
    first = last = await_pulse();
    for (int changes = 0; changes < 5;) {
        weir_time pulse = await_pulse();
        CHECK(pulse <= weir_now() + 100000); /* clocks of two threads differ by little */
        CHECK(pulse >= last);
        changes += pulse != last;
        last = pulse;
    }
    CHECK(last - first >= 4 * WR_OS_PULSE_NS);
    AWAIT(wr_os_pulse() == 0);
    CHECK_EQUAL(pulsing_threads(), 1);
    CHECK(await_pulse() >= last);
    wr_os_pulse_part();
    CHECK_EQUAL(wr_os_pulse(), 0);
    CHECK_EQUAL(pulsing_threads(), 0);
}

static void test_the_last_caller_to_part_ends_the_pulse(void)
{
    wr_os_pulse_want(wr_os_now()); /* no caller has joined: no thread is started */
    CHECK_EQUAL(pulsing_threads(), 0);
    wr_os_pulse_join();
    wr_os_pulse_join();
    await_pulse();
    wr_os_pulse_part();
    CHECK_EQUAL(pulsing_threads(), 1);
    wr_os_pulse_part();
    CHECK_EQUAL(pulsing_threads(), 0);
    wr_os_pulse_join(); /* and again */
    await_pulse();
    wr_os_pulse_part();
    CHECK_EQUAL(pulsing_threads(), 0);
}

/* As if the thread had got no CPU for a second. */
static void test_a_pulse_that_is_late_is_not_relied_on(void)
{
    weir_time pulse, late;

    wr_os_pulse_join();
    do {
        pulse = await_pulse();
        late = pulse + 1000000000;
        wr_os_pulse_want(late);
    } while (wr_os_pulse_end(pulse) == pulse); /* it went on in between */
    CHECK(wr_os_pulse_end(pulse) >= pulse + WR_OS_PULSE_LATE_NS);
    CHECK(wr_os_pulse_end(pulse) <= late);
    CHECK_EQUAL(wr_os_pulse_end(pulse - 1), pulse - 1);
    CHECK(await_pulse() > pulse);
    wr_os_pulse_part();
}

static void has_no_pulse(void)
{
    CHECK_EQUAL(wr_os_pulse(), 0);
    CHECK_EQUAL(pulsing_threads(), 0);
    wr_os_pulse_join();
    wr_os_pulse_part();
    wr_os_pulse_part();
}

/* A child with a pulse of its own: guard_fork_test, since TSan does not know threads of such a child. */
static void test_a_child_of_fork_has_no_pulse(void)
{
    wr_os_pulse_join();
    await_pulse();
    CHECK_EQUAL(in_child(has_no_pulse), 0);
    await_pulse();
    wr_os_pulse_part();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_it_pulses_while_it_is_wanted_and_rests_afterwards),
        TEST(test_the_last_caller_to_part_ends_the_pulse),
        TEST(test_a_pulse_that_is_late_is_not_relied_on),
        TEST(test_a_child_of_fork_has_no_pulse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
