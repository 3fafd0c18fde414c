/* Tests of the table of reasons.
 * SPDX-License-Identifier: MIT */
#include "base/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <weir/task.h>

#include <cmocka.h>

static void test_numbers_of_reasons_stay(void **state)
{
    (void)state;
    assert_int_equal(WEIR_REASON_NONE, 0);
    assert_int_equal(WEIR_REASON_NO_WORKER, 1);
    assert_int_equal(WEIR_REASON_BEHIND_OTHERS, 2);
    assert_int_equal(WEIR_REASON_GROUP_LIMIT, 3);
    assert_int_equal(WEIR_REASON_GROUP_INFLIGHT, 4);
    assert_int_equal(WEIR_REASON_GLOBAL_INFLIGHT, 5);
    assert_int_equal(WEIR_REASON_DOMAIN_SLOTS, 6);
    assert_int_equal(WEIR_REASON_NO_THREAD, 7);
    assert_int_equal(WEIR_REASON_PAUSED, 8);
    assert_int_equal(WEIR_REASON_COOLING_DOWN, 9);
    assert_int_equal(WEIR_REASON_PACED, 10);
    assert_int_equal(WEIR_REASON_RUNNING, 11);
    assert_int_equal(WEIR_REASON_PENDING, 12);
    assert_int_equal(WEIR_REASON_SETTLED, 13);
    assert_int_equal(WEIR_REASON_GLOBAL_QUEUE_FULL, 14);
    assert_int_equal(WEIR_REASON_GROUP_INFLIGHT_QUEUE_FULL, 15);
    assert_int_equal(WEIR_REASON_GROUP_QUEUE_FULL, 16);
    assert_int_equal(WEIR_REASON_DOMAIN_QUEUE_FULL, 17);
    assert_int_equal(WEIR_REASON_DOMAIN_RELEASED, 18);
    assert_int_equal(WEIR_REASON_SHUT_DOWN, 19);
    assert_int_equal(WEIR_REASON_EVICTED, 20);
    assert_int_equal(WEIR_REASON_WAIT_DEADLINE, 21);
    assert_int_equal(WEIR_REASON_RUN_DEADLINE, 22);
    assert_int_equal(WEIR_REASON_TOTAL_DEADLINE, 23);
    assert_int_equal(WEIR_REASON_CANCELLED, 24);
    assert_int_equal(WEIR_REASON_GAVE_UP, 25);
}

static void test_every_reason_has_its_name_and_sentence(void **state)
{
    (void)state;
#define CHECK_ROW(name, number, label, text)                          \
    assert_string_equal(weir_reason_name(WEIR_REASON_##name), label); \
    assert_string_equal(weir_reason_text(WEIR_REASON_##name), text);  \
    assert_true(wr_reason_is_known(WEIR_REASON_##name));
    WEIR_REASONS(CHECK_ROW)
#undef CHECK_ROW
}

static void test_an_unknown_number_has_a_question_mark(void **state)
{
    static const int unknown[] = { -1, 127, 128, INT32_MAX };

    (void)state;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_string_equal(weir_reason_name((weir_reason)unknown[i]), "?");
        assert_string_equal(weir_reason_text((weir_reason)unknown[i]), "?");
        assert_false(wr_reason_is_known((weir_reason)unknown[i]));
    }
}

static void test_a_reason_is_told_with_its_figures(void **state)
{
    weir_why why = { .size = sizeof(why), .reason = WEIR_REASON_GROUP_LIMIT, .node = "group" };
    char text[256];

    (void)state;
    why.key = "a";
    why.limit = why.held = 2;
    why.ahead = 3;
    strcpy(why.holders, "callers (2)");
    weir_why_text(text, sizeof(text), &why);
    assert_non_null(
        strstr(text, " (group \"a\": 2 of 2 in use), held by callers (2), 3 before it"));
    why.node = "executor";
    weir_why_text(text, sizeof(text), &why);
    assert_non_null(strstr(text, " (executor: 2 of 2 in use)"));
}

/* As with snprintf, the answer says how much room the text takes. */
static void test_a_text_that_does_not_fit_is_cut(void **state)
{
    weir_why why = { .size = sizeof(why), .reason = WEIR_REASON_GROUP_LIMIT, .node = "group" };
    char whole[256], cut[256];
    int length;

    (void)state;
    why.key = "a";
    why.limit = 2;
    why.ahead = 3;
    length = weir_why_text(whole, sizeof(whole), &why);
    assert_int_equal(length, strlen(whole));
    assert_int_equal(weir_why_text(NULL, 0, &why), length);
    for (size_t size = 1; size < (size_t)length; size++) {
        assert_int_equal(weir_why_text(cut, size, &why), length);
        assert_int_equal(strlen(cut), size - 1);
        assert_memory_equal(cut, whole, size - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_reasons_stay),
        cmocka_unit_test(test_every_reason_has_its_name_and_sentence),
        cmocka_unit_test(test_an_unknown_number_has_a_question_mark),
        cmocka_unit_test(test_a_reason_is_told_with_its_figures),
        cmocka_unit_test(test_a_text_that_does_not_fit_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
