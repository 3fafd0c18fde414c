/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <weir/error.h>

#include <cmocka.h>

static const struct {
    int code;
    const char *name, *text;
} table[] = {
#define ROW(name, number, text) { WEIR_E##name, "WEIR_E" #name, text },
    WEIR_ERRORS(ROW)
#undef ROW
};

enum { ROWS = sizeof(table) / sizeof(table[0]) };

static void test_every_code_has_a_name_and_a_text(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        assert_string_equal(weir_errname(table[i].code), table[i].name);
        assert_string_equal(weir_strerror(table[i].code), table[i].text);
        assert_true(strlen(table[i].text) > 0);
    }
}

static void test_codes_are_negative_and_differ(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        assert_true(table[i].code < 0);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(table[i].code, table[j].code);
    }
}

/* Numbers are ABI: this list may grow, but no line of it may change. */
static void test_error_numbers_never_change(void **state)
{
    (void)state;
    assert_int_equal(WEIR_ENOMEM, -ENOMEM);
    assert_int_equal(WEIR_EINVAL, -EINVAL);
    assert_int_equal(WEIR_EAGAIN, -EAGAIN);
    assert_int_equal(WEIR_EBADF, -EBADF);
    assert_int_equal(WEIR_ECHILD, -ECHILD);
    assert_int_equal(WEIR_EPIPE, -EPIPE);
    assert_int_equal(WEIR_ETIMEDOUT, -ETIMEDOUT);
    assert_int_equal(WEIR_ECANCELED, -ECANCELED);
    assert_int_equal(WEIR_EDEADLK, -EDEADLK);
    assert_int_equal(WEIR_ECLOSED, -4101);
    assert_int_equal(WEIR_EVERSION, -4102);
    assert_int_equal(WEIR_EREJECTED, -4103);
    assert_int_equal(WEIR_ENOGROUP, -4104);
}

static void test_other_errors_of_the_system_are_described_as_it_does(void **state)
{
    (void)state;
    assert_string_equal(weir_strerror(-ENOENT), strerror(ENOENT));
    assert_string_equal(weir_strerror(-ECONNREFUSED), strerror(ECONNREFUSED));
    assert_string_equal(weir_errname(-ENOENT), "WEIR_E?");
}

static void test_numbers_that_mean_nothing_are_unknown(void **state)
{
    const int nothing[] = { -4095, -4096, -4100, -5000, INT_MIN, INT_MIN + 1 };
    (void)state;
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        assert_string_equal(weir_strerror(nothing[i]), "unknown error");
        assert_string_equal(weir_errname(nothing[i]), "WEIR_E?");
    }
}

static void test_a_value_that_is_not_negative_is_success(void **state)
{
    (void)state;
    assert_string_equal(weir_strerror(0), "success");
    assert_string_equal(weir_strerror(1), "success");
    assert_string_equal(weir_strerror(ENOMEM), "success"); /* errno's sign is not ours */
    assert_string_equal(weir_strerror(INT_MAX), "success");
    assert_string_equal(weir_errname(0), "WEIR_E?");
    assert_string_equal(weir_errname(ENOMEM), "WEIR_E?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_has_a_name_and_a_text),
        cmocka_unit_test(test_codes_are_negative_and_differ),
        cmocka_unit_test(test_error_numbers_never_change),
        cmocka_unit_test(test_other_errors_of_the_system_are_described_as_it_does),
        cmocka_unit_test(test_numbers_that_mean_nothing_are_unknown),
        cmocka_unit_test(test_a_value_that_is_not_negative_is_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
