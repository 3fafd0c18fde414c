/* Domains that have their own slots to themselves: ceded units, and what happens when others come to have a claim.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

static weir_domain_policy max_and_reserved[] = {
    { .name = "A", .slots = 2 }, { .name = "B", .slots = 2, .slots_mode = WEIR_RESERVED }
};

/* Nothing but slots is limited. */
static weir_executor *new_plain(void)
{
    return new_executor(AB_POLICY(max_and_reserved, 6, 0, .inflight_max = 0));
}

SIM_TEST(test_a_domain_uses_all_its_slots_and_no_more, 100)
{
    weir_executor *ex = new_plain();
    struct body body = { .until_ms = 100 }, later = { .until_ms = 200 };
    struct heap a = { 0 };

    heap_add(&a, ex, "A", 2, &body);
    heap_add(&a, ex, "A", 3, &later);
    let_start();
    CHECK_DOMAIN(ex, "A", 2, 0, 3);
    sleep_until(150);
    CHECK_DOMAIN(ex, "A", 2, 0, 1);
    sleep_until(250);
    CHECK_EQ(domain_of(ex, "A").peak, 2);
    heap_free(&a);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* B and the default domain have had their slots to themselves when B needs more. */
SIM_TEST(test_a_borrower_gets_the_slots_the_default_domain_leaves, 100)
{
    weir_executor *ex = new_plain();
    struct body body = { .until_ms = 100 };
    struct heap rest = { 0 }, b = { 0 };

    heap_add(&rest, ex, "x", 1, &body);
    heap_add(&b, ex, "B", 1, &body);
    let_start();
    heap_add(&b, ex, "B", 3, &body);
    let_start();
    CHECK_DOMAIN(ex, "default", 1, 0, 0);
    CHECK_DOMAIN(ex, "B", 3, 1, 1);
    sleep_until(200);
    heap_free(&rest);
    heap_free(&b);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* A task that waits when another limit is set is held to it, whatever workers have in their hands at that moment. */
static void limit_later(void (*limit)(weir_executor *ex), int64_t most)
{
    weir_executor *ex = new_plain();
    struct body body = { .until_ms = 10 };
    struct heap a = { 0 }, b = { 0 };
    weir_executor_stats stats = { .size = sizeof(stats) };
    int64_t used;

    heap_add(&a, ex, "A", 6, &body);
    heap_add(&b, ex, "B", 6, &body);
    limit(ex);
    let_start();
    CHECK(weir_executor_stats_get(&stats, ex) == 0);
    CHECK((int64_t)stats.running <= most);
    used = domain_of(ex, "A").used +
           domain_of(ex, "B").used; /* some may have a slot, and wait for a permit */
    CHECK(used >= (int64_t)stats.running && used <= 6);
    CHECK_EQ(domain_of(ex, "A").waiting + domain_of(ex, "B").waiting, 12 - used);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static void limit_all(weir_executor *ex)
{
    CHECK(weir_executor_resize(ex, 3, 0) == 0);
}

static void limit_places(weir_executor *ex)
{
    CHECK(weir_domain_resize(ex, "A", 0, 20, NULL) == 0);
}

static void use_threads(weir_executor *ex)
{
    weir_group *group;

    CHECK(weir_group_get(&group, ex, "A") == 0);
    CHECK(weir_group_run_on(group, WEIR_THREADS) == 0);
}

SIM_TEST(test_a_limit_of_the_executor_that_comes_later_holds_for_waiting_tasks, 300)
{
    limit_later(limit_all, 6); /* so many may have begun before it came */
}

SIM_TEST(test_a_limit_of_places_that_comes_later_counts_waiting_tasks, 300)
{
    limit_later(limit_places, 6);
}

SIM_TEST(test_a_group_that_moves_to_threads_keeps_to_its_domains_slots, 300)
{
    limit_later(use_threads, 6);
}

/* Tasks follow each other without the group's lock, and the last of them takes long: the queue is empty, and the group still
 * stands in its ring. Just then the ledger comes to be told of all that waits, and another group of the domain has a task. */
static int is_brief(void **value, void *arg)
{
    *value = NULL;
    if (arg)
        weir_sim_busy(MS);
    return 0;
}

SIM_TEST(test_a_group_whose_last_task_runs_is_not_in_line_when_the_ledger_begins_to_count, 2000)
{
    weir_executor *ex = new_plain();

    for (int i = 0; i < 4; i++)
        CHECK(weir_submit_key(NULL, ex, "x", is_brief, i == 3 ? ex : NULL, NULL) == 0);
    sleep_until(0);
    CHECK(weir_group_run_on(group_of(ex, "A"), WEIR_THREADS) == 0);
    CHECK(weir_submit_key(NULL, ex, "y", is_brief, NULL, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_domain_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_domain_uses_all_its_slots_and_no_more),
        cmocka_unit_test(test_a_borrower_gets_the_slots_the_default_domain_leaves),
        cmocka_unit_test(test_a_limit_of_the_executor_that_comes_later_holds_for_waiting_tasks),
        cmocka_unit_test(test_a_limit_of_places_that_comes_later_counts_waiting_tasks),
        cmocka_unit_test(test_a_group_that_moves_to_threads_keeps_to_its_domains_slots),
        cmocka_unit_test(
            test_a_group_whose_last_task_runs_is_not_in_line_when_the_ledger_begins_to_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
