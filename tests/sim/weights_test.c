/* Weights hold whatever it is that groups wait for: a worker, a permit of the executor's, a slot of their domain, a thread.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

enum {
    PLACES = 4, /* as many bodies run at a time */
    TASK_MS = 10,
    ROUNDS = 400, /* of that many tasks each */
    WEIGHT = 3,
};

/* Of PLACES * (ROUNDS + 1) starts a group of weight 3 has three times as many as one of weight 1, give or take so many of
 * its turns. */
enum {
    UNDER_WAY = 2 * PLACES, /* those that have begun */
    ON_WAY = ROUNDS / 10,   /* a group on its way to the line of threads may miss a call */
};

static void check_starts(weir_executor *ex, weir_fn *fn, int off)
{
    struct body body = { .ms = TASK_MS };
    int64_t heavy, light;

    for (int i = 0; i < PLACES * ROUNDS; i++) {
        CHECK(weir_submit_key(NULL, ex, "heavy", fn, &body, NULL) == 0);
        CHECK(weir_submit_key(NULL, ex, "light", fn, &body, NULL) == 0);
    }
    sleep_until(ROUNDS * TASK_MS + TASK_MS / 2);
    heavy = (int64_t)stats_of(ex, "heavy").started;
    light = (int64_t)stats_of(ex, "light").started;
    CHECK_EQ(heavy + light, PLACES * (ROUNDS + 1));
    if (heavy > WEIGHT * (light + off) || heavy < WEIGHT * (light - off))
        fail_msg("%lld starts of weight %d, %lld of weight 1", (long long)heavy, WEIGHT,
                 (long long)light);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

static weir_executor *executor_of(weir_carrier run_on, const weir_policy *rest)
{
    static weir_group_policy groups[] = { { .key = "heavy", .weight = WEIGHT, .limit = 100 },
                                          { .key = "light", .weight = 1, .limit = 100 } };
    weir_policy policy = *rest;

    groups[0].run_on = groups[1].run_on = run_on;
    policy.groups = groups;
    policy.group_count = 2;
    return new_executor(&policy);
}

/* Bodies that sleep hold what they have, and no worker. */
SIM_TEST(test_groups_get_permits_of_the_executor_by_weight, 10)
{
    check_starts(executor_of(WEIR_WORKERS, WEIR_POLICY(.workers = 2, .inflight_max = PLACES)), work,
                 UNDER_WAY);
}

SIM_TEST(test_groups_get_slots_of_their_domain_by_weight, 10)
{
    weir_domain_policy domains[] = { { .name = "other", .slots = 8, .slots_mode = WEIR_RESERVED } };

    check_starts(executor_of(WEIR_WORKERS, WEIR_POLICY(.workers = 2, .slots = 8 + PLACES,
                                                       .domains = domains, .domain_count = 1)),
                 work, UNDER_WAY);
}

SIM_TEST(test_groups_get_workers_by_weight, 10)
{
    check_starts(executor_of(WEIR_WORKERS, WEIR_POLICY(.workers = PLACES, .stall_after_ms = 1000)),
                 blocking, UNDER_WAY);
}

SIM_TEST(test_groups_get_threads_by_weight, 10)
{
    check_starts(executor_of(WEIR_THREADS, WEIR_POLICY(.workers = 1, .threads_max = PLACES)),
                 blocking, ON_WAY);
}

SIM_TEST(test_groups_of_a_domain_get_threads_by_weight, 10)
{
    weir_domain_policy domains[] = { { .name = "other", .slots = 8 } };

    check_starts(
        executor_of(WEIR_THREADS, WEIR_POLICY(.workers = 1, .threads_max = PLACES, .slots = 100,
                                              .domains = domains, .domain_count = 1)),
        blocking, ON_WAY);
}

SIM_TEST(test_groups_of_a_domain_get_its_slots_and_threads_by_weight, 10)
{
    weir_domain_policy domains[] = { { .name = "other", .slots = 8, .slots_mode = WEIR_RESERVED } };

    check_starts(
        executor_of(WEIR_THREADS, WEIR_POLICY(.workers = 1, .threads_max = 100, .slots = 8 + PLACES,
                                              .domains = domains, .domain_count = 1)),
        blocking, UNDER_WAY);
}

static int pause_group(UNUSED void **value, void *group)
{
    weir_group_pause(group);
    return 0;
}

/* A worker finds a costly task first, and too few permits for it, at the moment at which a group that goes before it is back:
 * no worker sleeps until there are enough for the costly one. */
SIM_TEST(test_a_turn_that_goes_on_needs_no_more_permits_than_its_own_task, 3000)
{
    weir_group_policy groups[] = { { .key = "in turn", .weight = WEIGHT, .limit = 1 } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .inflight_max = 2, .group_limit = 2,
                                                 .groups = groups, .group_count = 1));
    weir_group *in_turn = group_of(ex, "in turn");
    struct body longer = { .until_ms = 10 }, none = { 0 };
    weir_task *costly, *next;

    weir_group_pause(in_turn);
    CHECK(weir_submit(NULL, in_turn, pause_group, in_turn, NULL) == 0);
    next = submit(ex, "in turn", &none);
    weir_group_resume(in_turn);
    CHECK(weir_submit_key(NULL, ex, "long", work, &longer, NULL) == 0);
    sleep_until(1);
    costly = submit_with(ex, "costly", &none, WEIR_TASK(.cost = 2));
    weir_group_resume(in_turn);
    check_done_at(next, 1, 1);
    check_done_at(costly, 10, 10);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_get_permits_of_the_executor_by_weight),
        cmocka_unit_test(test_groups_get_slots_of_their_domain_by_weight),
        cmocka_unit_test(test_groups_get_workers_by_weight),
        cmocka_unit_test(test_groups_get_threads_by_weight),
        cmocka_unit_test(test_groups_of_a_domain_get_threads_by_weight),
        cmocka_unit_test(test_groups_of_a_domain_get_its_slots_and_threads_by_weight),
        cmocka_unit_test(test_a_turn_that_goes_on_needs_no_more_permits_than_its_own_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
