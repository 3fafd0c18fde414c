/* The limits that the headers state: what is just within goes, what is just beyond is refused.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

static const char *text_of(size_t length)
{
    static char text[2 * WEIR_KEY_MAX];

    memset(text, 'k', length);
    text[length] = '\0';
    return text;
}

static int try_submit(weir_executor *ex, const char *key, const weir_task_options *opt)
{
    return weir_submit_key(NULL, ex, key, work, NULL, opt);
}

static int try_policy(const weir_policy *policy)
{
    weir_executor *ex = NULL;
    int rc = weir_executor_new(&ex, policy, NULL);

    weir_executor_free(ex);
    return rc;
}

SIM_TEST(test_keys_and_ids_have_a_longest, 1)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_group *group;

    CHECK(try_submit(ex, text_of(WEIR_KEY_MAX), NULL) == 0);
    CHECK(try_submit(ex, text_of(WEIR_KEY_MAX + 1), NULL) == WEIR_EINVAL);
    CHECK(weir_group_get(&group, ex, text_of(WEIR_KEY_MAX)) == 0);
    CHECK(weir_group_get(&group, ex, text_of(WEIR_KEY_MAX + 1)) == WEIR_EINVAL);
    CHECK(try_submit(ex, "g", WEIR_TASK(.id = text_of(WEIR_ID_MAX))) == 0);
    CHECK(try_submit(ex, "g", WEIR_TASK(.id = text_of(WEIR_ID_MAX + 1))) == WEIR_EINVAL);
    weir_executor_free(ex);
}

SIM_TEST(test_weights_have_a_highest, 1)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_group *group = group_of(ex, "g");
    weir_group_policy entry = { .key = "g", .weight = WEIR_WEIGHT_MAX };

    CHECK(weir_group_set_weight(group, WEIR_WEIGHT_MAX) == 0);
    CHECK(weir_group_set_weight(group, WEIR_WEIGHT_MAX + 1) == WEIR_EINVAL);
    CHECK(weir_group_set_weight(group, 0) == WEIR_EINVAL);
    weir_executor_free(ex);
    CHECK(try_policy(WEIR_POLICY(.workers = 1, .groups = &entry, .group_count = 1)) == 0);
    entry.weight++;
    CHECK(try_policy(WEIR_POLICY(.workers = 1, .groups = &entry, .group_count = 1)) == WEIR_EINVAL);
}

SIM_TEST(test_spans_have_a_longest, 1)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    const int64_t beyond = WEIR_SPAN_MAX_MS + 1;

    CHECK(try_submit(ex, "g",
                     WEIR_TASK(.deadlines = { WEIR_SPAN_MAX_MS, WEIR_SPAN_MAX_MS,
                                              WEIR_SPAN_MAX_MS })) == 0);
    CHECK(try_submit(ex, "g", WEIR_TASK(.deadlines = { .wait_ms = WEIR_NO_LIMIT })) == 0);
    CHECK(try_submit(ex, "g", WEIR_TASK(.deadlines = { .wait_ms = beyond })) == WEIR_EINVAL);
    CHECK(try_submit(ex, "g", WEIR_TASK(.deadlines = { .run_ms = beyond })) == WEIR_EINVAL);
    CHECK(try_submit(ex, "g", WEIR_TASK(.deadlines = { .total_ms = beyond })) == WEIR_EINVAL);
    CHECK(try_submit(ex, "g", WEIR_TASK(.deadlines = { .total_ms = -1 })) == WEIR_EINVAL);
    weir_executor_free(ex);
    CHECK(try_policy(WEIR_POLICY(.workers = 1, .idle_evict_ms = WEIR_SPAN_MAX_MS)) == 0);
    CHECK(try_policy(WEIR_POLICY(.workers = 1, .idle_evict_ms = beyond)) == WEIR_EINVAL);
}

SIM_TEST(test_limits_have_a_highest, 1)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_limit = WEIR_LIMIT_MAX));
    weir_group *group = group_of(ex, "g");

    CHECK(weir_group_resize(group, WEIR_LIMIT_MAX, WEIR_LIMIT_MAX, WEIR_LIMIT_MAX) == 0);
    CHECK(weir_group_resize(group, WEIR_LIMIT_MAX + 1, 0, 0) == WEIR_EINVAL);
    CHECK(weir_group_resize(group, 0, WEIR_LIMIT_MAX + 1, 0) == WEIR_EINVAL);
    CHECK(weir_group_resize(group, 0, 0, WEIR_LIMIT_MAX + 1) == WEIR_EINVAL);
    CHECK(weir_executor_resize(ex, WEIR_LIMIT_MAX, WEIR_LIMIT_MAX) == 0);
    CHECK(weir_executor_resize(ex, WEIR_LIMIT_MAX + 1, 0) == WEIR_EINVAL);
    weir_executor_free(ex);
}

SIM_TEST(test_a_cost_is_at_most_the_limits, 1)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .inflight_max = 8, .group_limit = 5, .group_inflight_max = 6));

    CHECK(try_submit(ex, "g", WEIR_TASK(.cost = 5)) == 0);
    CHECK(try_submit(ex, "g", WEIR_TASK(.cost = 6)) == WEIR_EINVAL);
    CHECK(weir_group_resize(group_of(ex, "g"), 9, 9, 0) == 0);
    CHECK(try_submit(ex, "g", WEIR_TASK(.cost = 8)) == 0);
    CHECK(try_submit(ex, "g", WEIR_TASK(.cost = 9)) == WEIR_EINVAL); /* the executor's */
    CHECK(try_submit(ex, "g", WEIR_TASK(.priority = WEIR_IDLE)) == 0);
    CHECK(try_submit(ex, "g", WEIR_TASK(.priority = WEIR_IDLE + 1)) == WEIR_EINVAL);
    weir_executor_free(ex);
}

SIM_TEST(test_there_is_a_largest_number_of_domains, 1)
{
    weir_domain_policy domain[WEIR_DOMAINS_MAX + 1];
    char name[WEIR_DOMAINS_MAX + 1][16];

    for (int i = 0; i <= WEIR_DOMAINS_MAX; i++) {
        snprintf(name[i], sizeof(name[i]), "d%d", i);
        domain[i] = (weir_domain_policy){ .name = name[i], .slots = 1 };
    }
    CHECK(try_policy(WEIR_POLICY(.workers = 1, .slots = 100, .domains = domain,
                                 .domain_count = WEIR_DOMAINS_MAX)) == 0);
    CHECK(try_policy(WEIR_POLICY(.workers = 1, .slots = 100, .domains = domain,
                                 .domain_count = WEIR_DOMAINS_MAX + 1)) == WEIR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_and_ids_have_a_longest),
        cmocka_unit_test(test_weights_have_a_highest),
        cmocka_unit_test(test_spans_have_a_longest),
        cmocka_unit_test(test_limits_have_a_highest),
        cmocka_unit_test(test_a_cost_is_at_most_the_limits),
        cmocka_unit_test(test_there_is_a_largest_number_of_domains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
