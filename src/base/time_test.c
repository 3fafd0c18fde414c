/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/time.h>

#include <cmocka.h>

static const struct {
    weir_time (*in)(int64_t span);
    int64_t ns;
} unit[] = {
    { weir_in_ns, 1 },
    { weir_in_us, 1000 },
    { weir_in_ms, 1000000 },
    { weir_in_s, 1000000000 },
};

enum { UNITS = sizeof(unit) / sizeof(unit[0]) };

static void test_the_clock_never_goes_back(void **state)
{
    weir_time last = weir_now();
    (void)state;
    assert_true(last >= 1);
    for (int i = 0; i < 10000; i++) {
        weir_time now = weir_now();
        assert_true(now >= last);
        last = now;
    }
}

static void test_a_span_is_counted_in_its_unit(void **state)
{
    const int64_t spans[] = { 0, 1, 2, 999, 1000, 1000000 };
    (void)state;
    for (int u = 0; u < UNITS; u++)
        for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
            weir_time before = weir_now();
            weir_time when = unit[u].in(spans[i]);
            weir_time after = weir_now();
            assert_true(when >= before + spans[i] * unit[u].ns);
            assert_true(when <= after + spans[i] * unit[u].ns);
        }
}

static void test_negative_spans_give_the_present(void **state)
{
    const int64_t spans[] = { -1, -1000000000, INT64_MIN + 1, INT64_MIN };
    (void)state;
    for (int u = 0; u < UNITS; u++)
        for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
            weir_time before = weir_now();
            weir_time when = unit[u].in(spans[i]);
            assert_true(when >= before);
            assert_true(when <= weir_now());
        }
}

static void test_sums_that_are_too_large_are_for_ever(void **state)
{
    (void)state;
    for (int u = 0; u < UNITS; u++) {
        assert_int_equal(unit[u].in(INT64_MAX), WEIR_FOREVER);
        assert_int_equal(unit[u].in(INT64_MAX / unit[u].ns), WEIR_FOREVER); /* the sum overflows */
        if (unit[u].ns > 1)
            assert_int_equal(unit[u].in(INT64_MAX / unit[u].ns + 1),
                             WEIR_FOREVER); /* the product */
    }
}

static void test_the_largest_sum_that_fits_is_not_for_ever(void **state)
{
    int64_t century = (int64_t)100 * 365 * 86400;
    (void)state;
    assert_true(weir_in_s(century) < WEIR_FOREVER);
    weir_time before = weir_now();
    assert_true(weir_in_s(century) >= before + century * 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_clock_never_goes_back),
        cmocka_unit_test(test_a_span_is_counted_in_its_unit),
        cmocka_unit_test(test_negative_spans_give_the_present),
        cmocka_unit_test(test_sums_that_are_too_large_are_for_ever),
        cmocka_unit_test(test_the_largest_sum_that_fits_is_not_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
