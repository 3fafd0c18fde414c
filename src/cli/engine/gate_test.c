/* The gate, before files that say what the kernel would.
 * SPDX-License-Identifier: MIT */
#include "cli/engine/gate.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char proc[] = "/tmp/weir-gate-XXXXXX";

static int make_proc(void **state)
{
    char path[64];

    (void)state;
    if (!mkdtemp(proc))
        return -1;
    snprintf(path, sizeof(path), "%s/pressure", proc);
    return mkdir(path, 0700);
}

static int remove_proc(void **state)
{
    char script[64];

    (void)state;
    snprintf(script, sizeof(script), "rm -r %s", proc);
    return system(script);
}

static void the_kernel_says(const char *name, const char *text)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", proc, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* A gate that looks again, as one does that has just been made. */
static void assert_closed(const struct gate_limits *limits, const char *why)
{
    struct gate gate = { .limits = limits };
    char text[120];

    assert_true(gate_is_closed(&gate));
    assert_true(gate_why(&gate, text, sizeof(text)));
    assert_string_equal(text, why);
}

static void assert_open(const struct gate_limits *limits)
{
    struct gate gate = { .limits = limits };
    char text[120];

    assert_false(gate_is_closed(&gate));
    assert_false(gate_why(&gate, text, sizeof(text)));
}

static void test_processes_that_run_hold_back(void)
{
    const struct gate_limits limits = { .load = 2, .proc = proc };

    the_kernel_says("loadavg", "9.50 9.00 8.00 4/200 1234\n"); /* three, and the thread that asks */
    assert_closed(&limits, "3 processes run (--load 2)");
    the_kernel_says("loadavg", "9.50 9.00 8.00 3/200 1234\n");
    assert_closed(&limits, "2 processes run (--load 2)");
    the_kernel_says("loadavg",
                    "9.50 9.00 8.00 2/200 1234\n"); /* averages of the past do not count */
    assert_open(&limits);
}

static void test_little_memory_holds_back(void)
{
    const struct gate_limits limits = { .memory = INT64_C(2) << 30, .proc = proc };

    the_kernel_says("meminfo",
                    "MemTotal: 8000000 kB\nMemFree: 9000 kB\nMemAvailable: 1048576 kB\n");
    assert_closed(&limits, "1.0G of memory free (--mem-free 2.0G)");
    the_kernel_says("meminfo", "MemFree: 9000 kB\nMemAvailable: 2097152 kB\n");
    assert_open(&limits);
}

static void test_pressure_holds_back(void)
{
    const struct gate_limits limits = { .pressure = 20, .pressure_of = "io", .proc = proc };

    the_kernel_says("pressure/io", "some avg10=33.40 avg60=1.00 avg300=0.00 total=1\n"
                                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    assert_closed(&limits, "io pressure is 33% (--pressure 20%)");
    the_kernel_says("pressure/io", "some avg10=19.99 avg60=90.00 avg300=0.00 total=1\n");
    assert_open(&limits);
}

static void test_each_limit_holds_back_for_itself(void)
{
    const struct gate_limits limits = { .load = 8, .memory = 1 << 20, .proc = proc };

    the_kernel_says("loadavg", "0 0 0 2/200 1\n");
    the_kernel_says("meminfo", "MemAvailable: 1000 kB\n");
    assert_closed(&limits, "1000k of memory free (--mem-free 1.0M)");
    the_kernel_says("meminfo", "MemAvailable: 5000 kB\n");
    the_kernel_says("loadavg", "0 0 0 20/200 1\n");
    assert_closed(&limits, "19 processes run (--load 8)");
}

/* Each start is judged by what the one before has made of the machine. */
static void test_an_open_gate_is_looked_at_for_each_start(void)
{
    const struct gate_limits limits = { .load = 2, .proc = proc };
    struct gate gate = { .limits = &limits };

    the_kernel_says("loadavg", "0 0 0 1/200 1\n");
    assert_false(gate_is_closed(&gate));
    the_kernel_says("loadavg", "0 0 0 9/200 1\n");
    assert_true(gate_is_closed(&gate));
}

static void test_no_limits_ask_nothing(void)
{
    assert_open(&(struct gate_limits){ .proc = "/nowhere" });
}

static void test_a_kernel_that_does_not_tell_is_refused(void)
{
    weir_message message;
    struct gate_limits limits = { .load = 2, .proc = "/nowhere" };

    assert_int_equal(gate_check(&limits, &message), WEIR_EINVAL);
    assert_string_equal(message.text, "--load: /proc/loadavg cannot be read on this machine");
    limits = (struct gate_limits){ .pressure = 1, .pressure_of = "cpu", .proc = "/nowhere" };
    assert_int_equal(gate_check(&limits, &message), WEIR_EINVAL);
    assert_non_null(strstr(message.text, "this kernel does not measure pressure (PSI)"));
    limits = (struct gate_limits){ .memory = 1, .proc = proc };
    the_kernel_says("meminfo", "MemAvailable: 5000 kB\n");
    assert_int_equal(gate_check(&limits, &message), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_processes_that_run_hold_back),
        TEST(test_little_memory_holds_back),
        TEST(test_pressure_holds_back),
        TEST(test_each_limit_holds_back_for_itself),
        TEST(test_an_open_gate_is_looked_at_for_each_start),
        TEST(test_no_limits_ask_nothing),
        TEST(test_a_kernel_that_does_not_tell_is_refused),
    };

    return cmocka_run_group_tests(tests, make_proc, remove_proc);
}
