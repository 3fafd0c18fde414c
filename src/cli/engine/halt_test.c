/* SPDX-License-Identifier: MIT */
#include "cli/engine/halt.h"

#include "support/check.h"

#include <string.h>

static struct halt_rule parsed(const char *text)
{
    weir_message message = { "" };
    struct halt_rule rule;

    assert_int_equal(halt_parse(&rule, text, &message), 0);
    return rule;
}

static void test_never_means_never(void)
{
    struct halt_rule rule = parsed("never");

    assert_int_equal(halt_judge(&rule, 1000, 0, 1000), HALT_NEVER);
}

static void test_a_word_alone_means_the_first_failure(void)
{
    struct halt_rule soon = parsed("soon"), now = parsed("now");

    assert_int_equal(halt_judge(&soon, 0, 10, 10), HALT_NEVER);
    assert_int_equal(halt_judge(&soon, 1, 9, 10), HALT_SOON);
    assert_int_equal(halt_judge(&now, 1, 9, 10), HALT_NOW);
}

static void test_a_number_of_failures(void)
{
    struct halt_rule rule = parsed("now,fail=3");

    assert_int_equal(halt_judge(&rule, 2, 0, 2), HALT_NEVER);
    assert_int_equal(halt_judge(&rule, 3, 897, 900), HALT_NOW);
}

static void test_a_share_of_the_ended_tasks_counts_once_three_have_failed(void)
{
    struct halt_rule rule = parsed("soon,fail=10%");

    assert_int_equal(halt_judge(&rule, 2, 0, 2), HALT_NEVER); /* too early to tell */
    assert_int_equal(halt_judge(&rule, 3, 0, 3), HALT_SOON);
    assert_int_equal(halt_judge(&rule, 3, 27, 30), HALT_SOON);
    assert_int_equal(halt_judge(&rule, 3, 28, 31), HALT_NEVER);
    assert_int_equal(halt_judge(&rule, 100, 900, 1000), HALT_SOON);
}

static void test_a_rule_that_makes_no_sense_is_refused_with_an_example(void)
{
    static const char *const wrong[] = {
        "",           "later",       "soon,",       "soon,fail",
        "now,fail=0", "now,fail=-1", "now,fail=0%", "now,fail=101%",
        "now,done=1", "soonish",     "now,fail=3x", "never,fail=1"
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        weir_message message = { "" };
        struct halt_rule rule;
        assert_int_equal(halt_parse(&rule, wrong[i], &message), WEIR_EINVAL);
        assert_non_null(strstr(message.text, "soon,fail=10%"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_never_means_never),
        TEST(test_a_word_alone_means_the_first_failure),
        TEST(test_a_number_of_failures),
        TEST(test_a_share_of_the_ended_tasks_counts_once_three_have_failed),
        TEST(test_a_rule_that_makes_no_sense_is_refused_with_an_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
