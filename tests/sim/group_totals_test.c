/* Totals of a key over all generations of its group.
 * SPDX-License-Identifier: MIT */
#include "support/executor_support.h"

static weir_group_totals totals_of(weir_executor *ex, const char *key)
{
    weir_group_totals totals = { .size = sizeof(totals) };

    CHECK(weir_group_totals_get(&totals, ex, key) == 0);
    return totals;
}

static bool is_known(weir_executor *ex, const char *key)
{
    weir_group_totals totals = { .size = sizeof(totals) };
    int rc = weir_group_totals_get(&totals, ex, key);

    CHECK(rc == 0 || rc == WEIR_ENOGROUP);
    return rc == 0;
}

SIM_TEST(test_totals_outlive_eviction_if_asked, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_queue_max = 1,
                                                 .keep_totals = true, .rejection = WEIR_DISCARD));
    struct body body = { .ms = 10 }, fails = { .error = -7 };
    weir_group_totals t;

    CHECK(!is_known(ex, "g"));
    for (int i = 0; i < 3; i++) {
        check_done(submit(ex, "g", &body));
        CHECK_EQ(result_of(submit(ex, "g", &fails)).outcome, WEIR_FAILED);
        CHECK(weir_group_evict(ex, "g", 0) == 0);
    }
    t = totals_of(ex, "g");
    CHECK_EQ(t.generations, 3);
    CHECK_EQ(t.submitted, 6);
    CHECK_EQ(t.started, 6);
    CHECK_EQ(t.succeeded, 3);
    CHECK_EQ(t.failed, 3);
    CHECK_EQ(t.ran_ns, 30 * MS);
    CHECK(!is_known(ex, "other"));
    check_done(submit(ex, "g", &body)); /* the present generation counts, too */
    CHECK_EQ(totals_of(ex, "g").generations, 4);
    CHECK_EQ(totals_of(ex, "g").succeeded, 4);
    weir_executor_close(ex, 0);
    CHECK_EQ(totals_of(ex, "g").succeeded, 4);
    weir_executor_free(ex);
}

SIM_TEST(test_a_generation_that_still_runs_is_part_of_the_sum, 50)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .keep_totals = true));
    struct body slow = { .ms = 50 };
    weir_task *old = submit(ex, "g", &slow), *waits = submit(ex, "g", &slow), *new;

    sleep_until(10);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    new = submit(ex, "g", &slow);
    sleep_until(20);
    CHECK_EQ(totals_of(ex, "g").generations, 2);
    CHECK_EQ(totals_of(ex, "g").submitted, 3);
    CHECK_EQ(totals_of(ex, "g").started, 2);
    CHECK_EQ(totals_of(ex, "g").rejected, 1);
    check_rejected(waits, WEIR_REASON_EVICTED);
    check_done(old);
    check_done(new);
    CHECK_EQ(totals_of(ex, "g").succeeded, 2);
    CHECK_EQ(totals_of(ex, "g").generations, 2);
    weir_executor_free(ex);
}

SIM_TEST(test_without_being_asked_only_groups_that_are_there_count, 20)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));

    check_done(submit(ex, "g", NULL));
    CHECK_EQ(totals_of(ex, "g").succeeded, 1);
    CHECK(weir_group_evict(ex, "g", 0) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(!is_known(ex, "g"));
    CHECK_EQ(totals_of(ex, NULL).generations, 0);
    weir_executor_free(ex);
}

SIM_TEST(test_keys_beyond_the_most_are_added_up_under_no_key, 20)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .keep_totals = true, .totals_max = 4));
    char key[2] = "a";

    for (int i = 0; i < 10; i++, key[0]++) {
        check_done(submit(ex, key, NULL));
        CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
        CHECK(weir_group_evict(ex, key, 0) == 0);
        sleep_until(i + 1); /* its worker has let go of the group: this one went first */
    }
    for (key[0] = 'a'; key[0] < 'a' + 10; key[0]++)
        CHECK_EQ(is_known(ex, key), key[0] >= 'g');
    CHECK_EQ(totals_of(ex, NULL).generations, 6);
    CHECK_EQ(totals_of(ex, NULL).succeeded, 6);
    CHECK_EQ(stats_all(ex).succeeded, 10);
    weir_executor_free(ex);
}

SIM_TEST(test_idle_groups_leave_their_totals, 20)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .keep_totals = true, .idle_evict_ms = 10));
    weir_group_stats stats = { .size = sizeof(stats) };

    check_done(submit(ex, "g", NULL));
    sleep_until(100);
    CHECK(weir_group_stats_get(&stats, ex, "g") == WEIR_ENOGROUP);
    CHECK_EQ(totals_of(ex, "g").succeeded, 1);
    weir_executor_free(ex);
}

SIM_TEST(test_totals_that_make_no_sense_are_refused, 1)
{
    weir_executor *ex = NULL;
    weir_group_totals totals = { .size = sizeof(totals) };
    weir_message why;

    CHECK(weir_executor_new(&ex, WEIR_POLICY(.totals_max = -1), &why) == WEIR_EINVAL);
    CHECK(strncmp(why.text, "totals_max is -1", 16) == 0);
    CHECK(weir_executor_new(&ex, WEIR_POLICY(.totals_max = 10000001), &why) == WEIR_EINVAL);
    ex = new_executor(WEIR_POLICY(.workers = 1));
    CHECK(weir_group_totals_get(NULL, ex, "g") == WEIR_EINVAL);
    CHECK(weir_group_totals_get(&totals, NULL, "g") == WEIR_EINVAL);
    weir_executor_free(ex);
}

/* The n-th allocation fails: what cannot be kept by key is in the sum of the others. */
static void without_memory(void *arg)
{
    weir_executor *ex = NULL;
    char key[2] = "a";
    uint64_t kept;

    (void)arg;
    if (weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .keep_totals = true), NULL))
        return;
    for (int i = 0; i < 4; i++, key[0]++) {
        weir_submit_key(NULL, ex, key, work, NULL, NULL);
        CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
        CHECK(weir_group_evict(ex, key, 0) == 0);
    }
    kept = totals_of(ex, NULL).succeeded;
    for (key[0] = 'a'; key[0] < 'a' + 4; key[0]++)
        kept += is_known(ex, key) ? totals_of(ex, key).succeeded : 0;
    CHECK_EQ(kept, stats_all(ex).succeeded);
    weir_executor_free(ex);
}

static void test_without_memory_totals_are_not_lost(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 60; n++)
        explore(1, WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n), without_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals_outlive_eviction_if_asked),
        cmocka_unit_test(test_a_generation_that_still_runs_is_part_of_the_sum),
        cmocka_unit_test(test_without_being_asked_only_groups_that_are_there_count),
        cmocka_unit_test(test_keys_beyond_the_most_are_added_up_under_no_key),
        cmocka_unit_test(test_idle_groups_leave_their_totals),
        cmocka_unit_test(test_totals_that_make_no_sense_are_refused),
        cmocka_unit_test(test_without_memory_totals_are_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
