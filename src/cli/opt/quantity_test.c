/* SPDX-License-Identifier: MIT */
#include "cli/opt/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const int64_t ms = 1000000, s = INT64_C(1000000000);

static void test_durations_have_units_and_fractions(void **state)
{
    const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        { "0", 0 },
        { "30", 30 * s },
        { "30s", 30 * s },
        { "1.5m", 90 * s },
        { "250ms", 250 * ms },
        { ".5s", 500 * ms },
        { "0.1", 100 * ms },
        { "7us", 7000 },
        { "9ns", 9 },
        { "2h", 7200 * s },
        { "1d", 86400 * s },
        { "1.000000001s", s + 1 },
        { "0.3333333333333333333333333s", 333333333 },
        { "36525d", 36525 * (86400 * s) },
        { "1h30m", 5400 * s },
        { "3m05s", 185 * s },
        { "4d3h", 99 * (3600 * s) },
        { "1s500ms", 1500 * ms },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ns = -1;
        assert_true(quantity_duration(&ns, cases[i].text));
        assert_int_equal(ns, cases[i].ns);
    }
}

static void test_text_that_is_no_duration_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",     " ",     "s",      "-1s",    "+1s",
        "1 s",  "1s ",   "1x",     "1S",     "1.",
        ".",    "1..5s", "1e3s",   "1.5.5s", "inf",
        "nan",  "0x10s", "1m1m",   "1s1m",   "1h30",
        "1,5s", "1sec",  "36526d", "101d5d", "99999999999999999999s",
    };
    int64_t ns = 42;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(quantity_duration(&ns, wrong[i]));
    assert_int_equal(ns, 42);
}

static void test_rates_are_counts_per_period(void **state)
{
    const struct {
        const char *text;
        struct quantity_rate rate;
    } cases[] = {
        { "10/s", { 10, s, 1 } },
        { "5/250ms", { 5, 250 * ms, 1 } },
        { "100/m:20", { 100, 60 * s, 20 } },
        { "1/2h", { 1, 7200 * s, 1 } },
        { "1/1.5s:3", { 1, 1500 * ms, 3 } },
        { "1/10", { 1, 10 * s, 1 } },
    };
    static const char *const wrong[] = {
        "",       "10",       "10/",   "/s",    "0/s",
        "-1/s",   "1.5/s",    "10/0s", "10/s:", "10/s:0",
        "10/s:x", "10/s:1:1", "10/ s", "10/x",  "99999999999999999999/s",
    };
    struct quantity_rate rate;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(quantity_rate(&rate, cases[i].text));
        assert_int_equal(rate.count, cases[i].rate.count);
        assert_int_equal(rate.period_ns, cases[i].rate.period_ns);
        assert_int_equal(rate.burst, cases[i].rate.burst);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(quantity_rate(&rate, wrong[i]));
}

static void test_counts_stay_in_their_range(void **state)
{
    int64_t count;
    (void)state;
    assert_true(quantity_count(&count, "7", 1, 10));
    assert_int_equal(count, 7);
    assert_true(quantity_count(&count, "-7", -10, 10));
    assert_int_equal(count, -7);
    assert_true(quantity_count(&count, "9223372036854775807", 1, INT64_MAX));
    assert_int_equal(count, INT64_MAX);
    assert_true(quantity_count(&count, "1", 1, 1));
    assert_false(quantity_count(&count, "0", 1, 10));
    assert_false(quantity_count(&count, "11", 1, 10));
    assert_false(quantity_count(&count, "9223372036854775808", 1, INT64_MAX));
    assert_false(quantity_count(&count, "", 0, 10));
    assert_false(quantity_count(&count, "-", -1, 10));
    assert_false(quantity_count(&count, "1x", 0, 10));
    assert_false(quantity_count(&count, " 1", 0, 10));
    assert_false(quantity_count(&count, "+1", 0, 10));
}

static void test_durations_are_shown_short(void **state)
{
    const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        { 0, "0ns" },
        { 999, "999ns" },
        { 1000, "1us" },
        { 850 * ms, "850ms" },
        { s - 1, "999ms" },
        { s, "1s" },
        { 1500 * ms, "1.5s" },
        { 9999 * ms, "9.9s" },
        { 12 * s + 600 * ms, "12s" },
        { 60 * s, "1m00s" },
        { 185 * s, "3m05s" },
        { 7800 * s, "2h10m" },
        { 99 * (3600 * s), "4d3h" },
        { -185 * s, "-3m05s" },
        { INT64_MAX, "106751d23h" },
        { INT64_MIN, "-106751d23h" },
    };
    char out[16];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        quantity_show_duration(out, cases[i].ns);
        assert_string_equal(out, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations_have_units_and_fractions),
        cmocka_unit_test(test_text_that_is_no_duration_is_refused),
        cmocka_unit_test(test_rates_are_counts_per_period),
        cmocka_unit_test(test_counts_stay_in_their_range),
        cmocka_unit_test(test_durations_are_shown_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
