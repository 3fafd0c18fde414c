/* SPDX-License-Identifier: MIT */
#include "cli/engine/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct rules rules;

static int teardown(void **state)
{
    (void)state;
    rules_fini(&rules);
    return 0;
}

static void add(enum rule_kind kind, const char *text)
{
    weir_message message = { "" };

    assert_int_equal(rules_add(&rules, kind, text, &message), 0);
}

static void assert_refused(enum rule_kind kind, const char *text)
{
    weir_message message = { "" };

    assert_int_equal(rules_add(&rules, kind, text, &message), WEIR_EINVAL);
    assert_true(strlen(message.text) > 0);
    assert_int_equal(rules_add(&rules, kind, text, NULL), WEIR_EINVAL);
}

static int64_t limit_of(const char *key)
{
    const struct rule *rule = rules_find(&rules, RULE_LIMIT, key);

    return rule ? rule->count : 0;
}

static void test_the_last_rule_that_matches_counts(void **state)
{
    (void)state;
    assert_int_equal(limit_of("api-1"), 0);
    add(RULE_LIMIT, "4");
    add(RULE_LIMIT, "api-*=8");
    add(RULE_LIMIT, "api-slow=1");
    assert_int_equal(limit_of("other"), 4);
    assert_int_equal(limit_of(""), 4);
    assert_int_equal(limit_of("api-1"), 8);
    assert_int_equal(limit_of("api-slow"), 1);
    add(RULE_LIMIT, "2");
    assert_int_equal(limit_of("api-slow"), 2);
}

static void test_a_star_matches_slashes_and_dots(void **state)
{
    (void)state;
    add(RULE_LIMIT, "*.example.com=3");
    add(RULE_LIMIT, "/home/*=5");
    assert_int_equal(limit_of("a.b.example.com"), 3);
    assert_int_equal(limit_of(".example.com"), 3);
    assert_int_equal(limit_of("example.com"), 0);
    assert_int_equal(limit_of("/home/a/.b"), 5);
}

static void test_the_last_equals_sign_separates(void **state)
{
    (void)state;
    add(RULE_LIMIT, "user=bob=7");
    assert_int_equal(limit_of("user=bob"), 7);
    assert_int_equal(limit_of("user"), 0);
}

static void test_kinds_do_not_mix(void **state)
{
    const struct rule *rule;
    (void)state;
    add(RULE_LIMIT, "a=2");
    add(RULE_WEIGHT, "a=3");
    add(RULE_RATE, "a=10/m:4");
    assert_int_equal(limit_of("a"), 2);
    assert_int_equal(rules_find(&rules, RULE_WEIGHT, "a")->count, 3);
    rule = rules_find(&rules, RULE_RATE, "a");
    assert_int_equal(rule->rate.count, 10);
    assert_int_equal(rule->rate.period_ns, INT64_C(60000000000));
    assert_int_equal(rule->rate.burst, 4);
    assert_null(rules_find(&rules, RULE_RATE, "b"));
}

static void test_nonsense_is_refused_with_a_sentence(void **state)
{
    static const char *const counts[] = { "", "0", "-1", "x", "a=", "a=0", "=4", "a=1.5", "4=a" };
    static const char *const rates[] = { "", "10", "a=10", "=1/s", "1/s=a", "0/s" };
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        assert_refused(RULE_LIMIT, counts[i]);
        assert_refused(RULE_WEIGHT, counts[i]);
    }
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        assert_refused(RULE_RATE, rates[i]);
    assert_refused(RULE_WEIGHT, "1001");
    assert_int_equal(rules.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_the_last_rule_that_matches_counts, teardown),
        cmocka_unit_test_teardown(test_a_star_matches_slashes_and_dots, teardown),
        cmocka_unit_test_teardown(test_the_last_equals_sign_separates, teardown),
        cmocka_unit_test_teardown(test_kinds_do_not_mix, teardown),
        cmocka_unit_test_teardown(test_nonsense_is_refused_with_a_sentence, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
