/* Policies of programs that know other versions of an entry: the size of an entry says which.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

/* Entries as a later version might have them. */
struct newer_group {
    weir_group_policy known;
    int64_t more[3];
};

struct newer_domain {
    weir_domain_policy known;
    int64_t more[3];
};

/* Says itself how large its entries are. */
#define NEWER_POLICY(...) (&(weir_policy){ .size = sizeof(weir_policy), __VA_ARGS__ })

static int limit_of(weir_executor *ex, const char *key)
{
    check_done(submit(ex, key, NULL));
    return (int)stats_of(ex, key).limit;
}

static void refused(const weir_policy *policy, int error, const char *text)
{
    weir_executor *ex = NULL;
    weir_message why;

    CHECK_EQ(weir_executor_new(&ex, policy, &why), error);
    CHECK(ex == NULL);
    if (strcmp(why.text, text) != 0)
        weir_sim_fail("\"%s\" is not \"%s\"", why.text, text);
}

SIM_TEST(test_without_a_size_entries_have_the_first_layout, 5)
{
    const weir_group_policy groups[] = { { .key = "a", .limit = 3 }, { .key = "b", .limit = 4 } };
    const weir_domain_policy domains[] = { { "D", .slots = 2 }, { "E", .slots = 3 } };
    weir_policy policy = { .size = offsetof(weir_policy, group_size),
                           .workers = 1,
                           .groups = groups,
                           .group_count = 2,
                           .domains = domains,
                           .domain_count = 2,
                           .slots = 9 };
    weir_executor *ex = new_executor(&policy);

    CHECK_EQ(limit_of(ex, "a"), 3);
    CHECK_EQ(limit_of(ex, "b"), 4);
    CHECK(strcmp(weir_domain_name(ex, 2), "E") == 0);
    weir_executor_free(ex);
}

SIM_TEST(test_entries_of_a_newer_program_are_found_by_their_size, 5)
{
    const struct newer_group groups[] = { { .known = { .key = "b", .limit = 4 } },
                                          { .known = { .key = "a", .limit = 3, .domain = "E" } } };
    const struct newer_domain domains[] = { { .known = { "D", .slots = 2 } },
                                            { .known = { WEIR_DEFAULT_DOMAIN, .weight = 2 } },
                                            { .known = { "E", .slots = 3 } } };
    weir_executor *ex = new_executor(NEWER_POLICY(.workers = 1, .groups = &groups[0].known,
                                                  .group_count = 2, .group_size = sizeof(groups[0]),
                                                  .domains = &domains[0].known, .domain_count = 3,
                                                  .domain_size = sizeof(domains[0]), .slots = 9));

    CHECK_EQ(limit_of(ex, "a"), 3);
    CHECK_EQ(limit_of(ex, "b"), 4);
    CHECK(strcmp(stats_of(ex, "a").domain, "E") == 0);
    CHECK(strcmp(weir_domain_name(ex, 1), "D") == 0);
    CHECK(strcmp(weir_domain_name(ex, 2), "E") == 0);
    CHECK(weir_domain_name(ex, 3) == NULL);
    weir_executor_free(ex);
}

SIM_TEST(test_a_field_of_an_entry_that_is_not_known_is_refused_if_set, 1)
{
    struct newer_group groups[] = { { .known = { .key = "a", .limit = 3 } },
                                    { .known = { .key = "b", .limit = 4 }, .more = { 0, 0, 1 } } };
    struct newer_domain domains[] = { { .known = { "D", .slots = 2 }, .more = { 1 } },
                                      { .known = { "E", .slots = 3 } } };

    refused(
        NEWER_POLICY(.groups = &groups[0].known, .group_count = 2, .group_size = sizeof(groups[0])),
        WEIR_EVERSION, weir_strerror(WEIR_EVERSION));
    refused(NEWER_POLICY(.domains = &domains[0].known, .domain_count = 2,
                         .domain_size = sizeof(domains[0]), .slots = 9),
            WEIR_EVERSION, weir_strerror(WEIR_EVERSION));
}

SIM_TEST(test_a_size_that_no_entry_has_is_refused_by_name_and_value, 1)
{
    refused(NEWER_POLICY(.group_size = 8), WEIR_EINVAL,
            "group_size is 8: use sizeof(weir_group_policy)");
    refused(NEWER_POLICY(.group_size = 201), WEIR_EINVAL,
            "group_size is 201: use sizeof(weir_group_policy)");
    refused(NEWER_POLICY(.domain_size = 2048), WEIR_EINVAL,
            "domain_size is 2048: use sizeof(weir_domain_policy)");
}

/* A newer program fills in what it knows. */
static int answers_more(weir_group_policy *out, const char *key, void *arg)
{
    struct newer_group *newer = (struct newer_group *)(void *)out;

    (void)arg;
    CHECK(strcmp(out->key, key) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(newer->more[i], 0);
        newer->more[i] = -1;
    }
    newer->known.limit = 5;
    return 0;
}

SIM_TEST(test_group_for_of_a_newer_program_has_room_for_all_it_knows, 5)
{
    weir_executor *ex = new_executor(NEWER_POLICY(.workers = 1, .group_for = answers_more,
                                                  .group_size = sizeof(struct newer_group)));

    CHECK_EQ(limit_of(ex, "a"), 5);
    CHECK_EQ(limit_of(ex, "b"), 5);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_size_entries_have_the_first_layout),
        cmocka_unit_test(test_entries_of_a_newer_program_are_found_by_their_size),
        cmocka_unit_test(test_a_field_of_an_entry_that_is_not_known_is_refused_if_set),
        cmocka_unit_test(test_a_size_that_no_entry_has_is_refused_by_name_and_value),
        cmocka_unit_test(test_group_for_of_a_newer_program_has_room_for_all_it_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
