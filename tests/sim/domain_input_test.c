/* Policies and calls that make no sense: each is refused with a sentence that names the field.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

static void refused(const weir_policy *policy, const char *sentence)
{
    weir_executor *ex = NULL;
    weir_message why;

    CHECK(weir_executor_new(&ex, policy, &why) == WEIR_EINVAL);
    CHECK(!ex);
    if (strcmp(why.text, sentence) != 0)
        weir_sim_fail("it says: %s\nnot: %s", why.text, sentence);
}

#define DOMAINS(...)                  \
    .domains = (weir_domain_policy[]) \
    {                                 \
        __VA_ARGS__                   \
    }
#define COUNT(n) .domain_count = (n)

/* D-06, 2.2 */
SIM_TEST(test_a_division_that_does_not_fit_is_refused, 1)
{
    refused(WEIR_POLICY(.slots = 10, COUNT(2), DOMAINS({ "A", .slots = 6 }, { "B", .slots = 5 })),
            "domains[\"B\"].slots is 5: the domains together have more than the policy's slots");
    refused(WEIR_POLICY(.slots = 10, .queue_places = 4, COUNT(1),
                        DOMAINS({ "A", .slots = 6, .queue = 5 })),
            "domains[\"A\"].queue is 5: the domains together have more than the policy's "
            "queue_places");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "A", .slots = -1 })),
            "domains[\"A\"].slots is -1: use 1 to 4294967294");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ .name = "A" })),
            "domains[\"A\"].slots is 0: use 1 to 4294967294");
    refused(WEIR_POLICY(COUNT(1), DOMAINS({ "A", .slots = 1 })),
            "slots is 0: with domains, use 1 to 4294967294");
    refused(WEIR_POLICY(.slots = 10, COUNT(2), DOMAINS({ "A", .slots = 1 }, { "A", .slots = 1 })),
            "domains[\"A\"].name is 2: duplicate name");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ .slots = 1 })),
            "domains is 0: an entry needs a name");
    refused(WEIR_POLICY(.slots = 10, COUNT(1)), "domain_count is 1: domains is NULL");
    refused(WEIR_POLICY(.slots = 10),
            "domain_count is 0: slots, queue_places, default_floor, lending and domain_for need "
            "domains");
    refused(WEIR_POLICY(.queue_places = 4),
            "domain_count is 0: slots, queue_places, default_floor, lending and domain_for need "
            "domains");
    refused(
        WEIR_POLICY(.slots = 10, .queue_places = 4, COUNT(1), DOMAINS({ "A", .slots = 6 })),
        "domains[\"A\"].queue is 0: use 1 to 4294967294, or WEIR_NO_QUEUE; WEIR_NO_LIMIT only if "
        "queue_places has none");
}

/* They have no sum. */
SIM_TEST(test_figures_out_of_range_are_refused_before_they_are_added, 1)
{
    refused(WEIR_POLICY(.slots = INT64_MIN, COUNT(1), DOMAINS({ "A", .slots = 3 })),
            "slots is -9223372036854775808: with domains, use 1 to 4294967294");
    refused(WEIR_POLICY(.slots = 10, COUNT(2),
                        DOMAINS({ "A", .slots = INT64_MAX }, { "B", .slots = 3 })),
            "domains[\"A\"].slots is 9223372036854775807: use 1 to 4294967294");
}

SIM_TEST(test_the_default_domain_takes_the_rest_and_borrows_from_no_domain, 1)
{
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "default", .slots_mode = WEIR_RESERVED })),
            "domains[\"default\"].slots_mode is 1: use WEIR_MAX: the default domain has no "
            "domain to borrow from");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "default", .slots = 3 })),
            "domains[\"default\"].slots is 3: use 0: the default domain has what the other "
            "domains leave");
    refused(WEIR_POLICY(.slots = 10, .default_floor = 5, COUNT(1), DOMAINS({ "A", .slots = 6 })),
            "default_floor is 5: use 0 up to the slots that the other domains leave");
}

SIM_TEST(test_other_fields_are_checked_as_well, 1)
{
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "A", .slots = 1, .weight = 2000 })),
            "domains[\"A\"].weight is 2000: use 1 to 1000");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "A", .slots = 1, .slots_mode = 9 })),
            "domains[\"A\"].slots_mode is 9: use WEIR_MAX or WEIR_RESERVED");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "A", .slots = 1, .run_on = 9 })),
            "domains[\"A\"].run_on is 9: use WEIR_WORKERS or WEIR_THREADS");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "A", .slots = 1, .lend_max = -3 })),
            "domains[\"A\"].lend_max is -3: use 1 to 4294967294, or WEIR_NONE");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "A", .slots = 1, .queue_lend_max = -3 })),
            "domains[\"A\"].queue_lend_max is -3: use 1 to 4294967294, or WEIR_NONE");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "A", .slots = 1 }),
                        .lending = { .period_ms = 10, .low_percent = 95 }),
            "lending.low_percent is 95: use less than lending.high_percent");
    refused(WEIR_POLICY(.deadlines = { .run_ms = -1 }),
            "deadlines.run_ms is -1: use 1 to 31536000000 (a year), WEIR_NO_LIMIT, or 0 for the "
            "default");
    refused(WEIR_POLICY(.overdue = 7), "overdue is 7: use one of enum weir_overdue");
    refused(WEIR_POLICY(.threads_max = 70000),
            "threads_max is 70000: use 1 to 65536, or 0 for 256");
    refused(WEIR_POLICY(.stall_after_ms = 86400001),
            "stall_after_ms is 86400001: use 1 to 86400000 (a day), or 0 for 10");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "A", .slots = 1, .workers = 5000 })),
            "domains[\"A\"].workers is 5000: use 1 to 4096, or 0 for the workers of the executor");
    refused(WEIR_POLICY(.slots = 10, COUNT(1), DOMAINS({ "", .slots = 1 })),
            "domains is 0: an entry needs a name");
    refused(WEIR_POLICY(.groups = (weir_group_policy[]){ { .key = "g", .domain = "X" } },
                        .group_count = 1),
            "groups[\"g\"].domain is \"X\": unknown domain");
}

/* ---- which domain ------------------------------------------------------------------------------ */

static int domain_by_prefix(const char **domain, const char *key, void *asked_arg)
{
    ++*(_Atomic int *)asked_arg;
    if (key[0] == '!')
        return WEIR_EINVAL; /* no opinion */
    *domain = key[0] == 'a' ? "A" : key[0] == 'z' ? "Z" : NULL;
    return 0;
}

/* 2.4: unknown domains are an error, or the default one. */
SIM_TEST(test_a_group_is_asked_for_its_domain_once, 20)
{
    _Atomic int asked = 0;
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "named", .domain = "A" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .slots = 2, .domains = domains, .domain_count = 1,
                                 .groups = groups, .group_count = 1, .domain_for = domain_by_prefix,
                                 .domain_arg = (void *)&asked));
    weir_group *group;
    weir_task *task;

    CHECK(strcmp(weir_group_domain(group_of(ex, "apple")), "A") == 0);
    CHECK(strcmp(weir_group_domain(group_of(ex, "apple")), "A") == 0);
    CHECK(strcmp(weir_group_domain(group_of(ex, "pear")), "default") == 0);
    CHECK(strcmp(weir_group_domain(group_of(ex, "!")), "default") == 0);
    CHECK(strcmp(weir_group_domain(group_of(ex, "named")), "A") == 0);
    CHECK_EQ(asked, 3);
    CHECK(weir_group_get(&group, ex, "zebra") == WEIR_ENODOMAIN);
    CHECK(weir_submit_key(&task, ex, "zebra", work, NULL, NULL) == WEIR_ENODOMAIN);
    CHECK(!task);
    CHECK_EQ(asked, 5); /* not remembered: it may have a better answer next time */
    CHECK_EQ(stats_all(ex).groups, 4);
    task = submit(ex, "apple", NULL);
    CHECK(strcmp(weir_task_domain(task), "A") == 0);
    check_done(task);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_an_unknown_domain_can_mean_the_default_one, 20)
{
    _Atomic int asked = 0;
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .slots = 2, .domains = domains, .domain_count = 1,
                                 .domain_for = domain_by_prefix, .domain_arg = (void *)&asked,
                                 .unknown_domain_is_default = true));

    CHECK(strcmp(weir_group_domain(group_of(ex, "zebra")), "default") == 0);
    check_done(submit(ex, "zebra", NULL));
    check_domain_books(ex);
    weir_executor_free(ex);
}

static void find_lost(void *ex)
{
    weir_group *group;

    CHECK(weir_group_get(&group, ex, "zebra") == WEIR_ENODOMAIN);
}

SIM_TEST(test_two_callers_that_look_for_a_lost_group_are_both_told, 200)
{
    _Atomic int asked = 0;
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .slots = 2, .domains = domains, .domain_count = 1,
                                 .domain_for = domain_by_prefix, .domain_arg = (void *)&asked));
    int64_t thread = weir_sim_thread(find_lost, ex, "other");

    find_lost(ex);
    weir_sim_join(thread);
    CHECK_EQ(stats_all(ex).groups, 0);
    weir_executor_free(ex);
}

/* ---- calls ------------------------------------------------------------------------------------- */

static void says(int rc, int expected, const weir_message *message, const char *sentence)
{
    CHECK_EQ(rc, expected);
    if (strcmp(message->text, sentence) != 0)
        weir_sim_fail("it says: %s\nnot: %s", message->text, sentence);
}

SIM_TEST(test_calls_that_make_no_sense_are_refused, 5)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0)), *plain;
    weir_domain_stats stats = { .size = sizeof(stats) };
    weir_message m;

    says(weir_domain_release(ex, "X", NULL, 0, &m), WEIR_ENODOMAIN, &m,
         "domain \"X\": unknown domain");
    says(weir_domain_release(ex, "A", "X", 0, &m), WEIR_ENODOMAIN, &m,
         "domain \"X\": unknown domain");
    says(weir_domain_release(ex, "default", "A", 0, &m), WEIR_EINVAL, &m,
         "domain \"default\": the default domain cannot be released");
    says(weir_domain_release(ex, "A", "A", 0, &m), WEIR_EINVAL, &m,
         "domain \"A\": a domain cannot receive its own slots");
    says(weir_domain_restore(ex, "A", &m), WEIR_EALREADY, &m, "domain \"A\": not released");
    says(weir_domain_restore(ex, "default", &m), WEIR_EINVAL, &m,
         "domain \"default\": the default domain is never released");
    CHECK(weir_domain_release(ex, "A", "B", 0, &m) == 0);
    says(weir_domain_release(ex, "A", "B", 0, &m), WEIR_EALREADY, &m,
         "domain \"A\": already released");
    says(weir_domain_release(ex, "B", NULL, 0, &m), WEIR_EINVAL, &m,
         "domain \"B\": the domain or its receiver is part of a release that is not over: "
         "restore first");
    CHECK_EQ(domain_of(ex, "B").limit, 48); /* the second call changed nothing */
    CHECK(weir_domain_restore(ex, "A", NULL) == 0);
    says(weir_domain_restore(ex, "A", &m), WEIR_EALREADY, &m, "domain \"A\": not released");
    CHECK_EQ(domain_of(ex, "A").limit, 16);
    CHECK(weir_domain_release(NULL, "A", NULL, 0, NULL) == WEIR_EINVAL);
    CHECK(weir_domain_release(ex, NULL, NULL, 0, NULL) == WEIR_EINVAL);
    CHECK(weir_domain_restore(ex, NULL, NULL) == WEIR_EINVAL);
    CHECK(weir_domain_stats_get(&stats, ex, "X") == WEIR_ENODOMAIN);
    CHECK(weir_domain_stats_get(NULL, ex, "A") == WEIR_EINVAL);
    weir_executor_free(ex);
    plain = new_executor(NULL); /* no domains at all */
    CHECK(weir_domain_stats_get(&stats, plain, "default") == WEIR_ENODOMAIN);
    CHECK(weir_domain_name(plain, 0) == NULL);
    CHECK(strcmp(weir_group_domain(group_of(plain, "g")), "default") == 0);
    weir_executor_free(plain);
}

SIM_TEST(test_a_resize_that_makes_no_sense_is_refused, 5)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.default_floor = 4)), *plain;
    weir_message m;

    says(weir_domain_resize(ex, "X", 1, 0, &m), WEIR_ENODOMAIN, &m, "domain \"X\": unknown domain");
    says(weir_domain_resize(ex, "default", 1, 0, &m), WEIR_EINVAL, &m,
         "domain \"default\": the default domain has what the other domains leave: "
         "resize those");
    says(weir_domain_resize(ex, "A", -1, 0, &m), WEIR_EINVAL, &m,
         "domain \"A\": slots is -1: use 1 or more, or 0 to leave it as it is");
    says(weir_domain_resize(ex, "A", WEIR_NONE, 0, &m), WEIR_EINVAL, &m,
         "domain \"A\": slots is -9223372036854775808: use 1 or more, or 0 to leave it as it is");
    says(weir_domain_resize(ex, "A", 29, 0, &m), WEIR_EINVAL, &m,
         "domain \"A\": slots is 29: use at most 28: its own and all that "
         "the default domain can give");
    says(weir_domain_resize(ex, "A", WEIR_NO_LIMIT, 0, &m), WEIR_EINVAL, &m,
         "domain \"A\": slots is 9223372036854775807: use at most 28: its own and all that "
         "the default domain can give");
    says(weir_domain_resize(ex, "A", 20, -2, &m), WEIR_EINVAL, &m,
         "domain \"A\": queue is -2: use 1 or more or WEIR_NO_QUEUE, or 0 to leave it as it is");
    says(weir_domain_resize(ex, "A", 20, 65, &m), WEIR_EINVAL, &m,
         "domain \"A\": queue is 65: use at most 64: its own and all that "
         "the default domain can give");
    says(weir_domain_resize(ex, "A", 20, WEIR_NO_LIMIT, &m), WEIR_EINVAL, &m,
         "domain \"A\": queue is 9223372036854775807: use at most 64: its own and all that "
         "the default domain can give");
    CHECK_EQ(domain_of(ex, "A").slots, 16); /* one of two that is wrong, and nothing changes */
    CHECK(weir_domain_resize(NULL, "A", 1, 1, NULL) == WEIR_EINVAL);
    CHECK(weir_domain_resize(ex, NULL, 1, 1, NULL) == WEIR_EINVAL);
    CHECK(weir_domain_resize(ex, "A", 29, 65, NULL) == WEIR_EINVAL);
    CHECK(weir_domain_resize(ex, "A", 28, 64, NULL) == 0); /* all but the floor */
    CHECK_EQ(domain_of(ex, "default").limit, 4);
    CHECK_EQ(domain_of(ex, "default").queue_limit, 0);
    CHECK(weir_domain_release(ex, "A", "B", 0, NULL) == 0);
    says(weir_domain_resize(ex, "A", 5, 0, &m), WEIR_EINVAL, &m,
         "domain \"A\": the domain is part of a release that is not over: restore first");
    says(weir_domain_resize(ex, "B", 5, 0, &m), WEIR_EINVAL, &m,
         "domain \"B\": the domain is part of a release that is not over: restore first");
    CHECK(weir_domain_restore(ex, "A", NULL) == 0);
    CHECK(weir_domain_resize(ex, "A", 5, 0, NULL) == 0);
    CHECK_EQ(domain_of(ex, "default").limit, 27);
    weir_executor_free(ex);
    plain = new_executor(NULL);
    says(weir_domain_resize(plain, "A", 1, 0, &m), WEIR_ENODOMAIN, &m,
         "domain \"A\": unknown domain");
    weir_executor_free(plain);
}

SIM_TEST(test_a_tasks_deadlines_are_checked, 1)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task *task;

    CHECK(weir_submit_key(&task, ex, "g", work, NULL, WEIR_TASK(.deadlines.wait_ms = -5)) ==
          WEIR_EINVAL);
    CHECK(weir_submit_key(&task, ex, "g", work, NULL,
                          WEIR_TASK(.deadlines.run_ms = INT64_MAX - 1)) == WEIR_EINVAL);
    weir_executor_free(ex);
}

static int runs_here(void **value, void *submitter)
{
    *value = NULL;
    return on_stack_of(submitter) ? 0 : -EIO;
}

SIM_TEST(test_a_full_domain_lets_the_caller_run, 40)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1, .queue = WEIR_NO_QUEUE } };
    weir_group_policy groups[] = { { .key = "A", .domain = "A" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 1,
                                 .domains = domains, .domain_count = 1, .groups = groups,
                                 .group_count = 1, .rejection = WEIR_CALLER_RUNS));
    struct body body = { .ms = 10 };
    weir_task *first = submit(ex, "A", &body), *second;

    CHECK(weir_submit_key(&second, ex, "A", runs_here, __builtin_frame_address(0), NULL) == 0);
    CHECK(weir_task_done(second));
    check_done(second);
    check_done_at(first, 0, 10);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* WEIR_BLOCK works for a domain's places as for a group's. */
SIM_TEST(test_a_full_domain_follows_the_rejection_policy, 60)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1, .queue = WEIR_NO_QUEUE } };
    weir_group_policy groups[] = { { .key = "A", .domain = "A" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 1,
                                 .domains = domains, .domain_count = 1, .groups = groups,
                                 .group_count = 1, .rejection = WEIR_BLOCK));
    struct body body = { .ms = 10 };
    weir_task *task[3];

    for (int i = 0; i < 3; i++)
        task[i] = submit(ex, "A", &body);
    CHECK_EQ(weir_now(), at(20)); /* the third had to wait twice */
    for (int i = 0; i < 3; i++)
        check_done_at(task[i], i * 10, i * 10 + 10);
    check_domain_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_division_that_does_not_fit_is_refused),
        cmocka_unit_test(test_figures_out_of_range_are_refused_before_they_are_added),
        cmocka_unit_test(test_the_default_domain_takes_the_rest_and_borrows_from_no_domain),
        cmocka_unit_test(test_other_fields_are_checked_as_well),
        cmocka_unit_test(test_a_group_is_asked_for_its_domain_once),
        cmocka_unit_test(test_an_unknown_domain_can_mean_the_default_one),
        cmocka_unit_test(test_two_callers_that_look_for_a_lost_group_are_both_told),
        cmocka_unit_test(test_calls_that_make_no_sense_are_refused),
        cmocka_unit_test(test_a_resize_that_makes_no_sense_is_refused),
        cmocka_unit_test(test_a_tasks_deadlines_are_checked),
        cmocka_unit_test(test_a_full_domain_lets_the_caller_run),
        cmocka_unit_test(test_a_full_domain_follows_the_rejection_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
