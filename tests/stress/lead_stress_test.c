/* Workers that leave the work to the lead of their set (limits/lead.h), on real threads: chains of tiny tasks that one worker
 * does best alone, and now and then a long body that ends only when another task has run. No replacement worker is started.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"

/* Before the next long body comes, each group has had more than a turn. */
enum { GROUPS = 64, TASKS = SANITIZED ? 200000 : 2000000, LONG_EVERY = 20000 };

static weir_executor *ex;
static weir_group *group[GROUPS];
static atomic_int left, ran, long_bodies, helped;

static int help(void **value, void *arg)
{
    (void)value, (void)arg;
    atomic_fetch_add(&helped, 1);
    return 0;
}

static void be_long(intptr_t at)
{
    int before = atomic_load(&helped);
    weir_time until = patience();

    atomic_fetch_add(&long_bodies, 1);
    CHECK_EQUAL(weir_submit(NULL, group[(at + GROUPS / 2) % GROUPS], help, NULL, NULL), 0);
    while (atomic_load(&helped) == before && CHECK(weir_now() < until))
        ;
}

static int feed(void **value, void *at_arg)
{
    intptr_t at = (intptr_t)at_arg, next = (at + 1) % GROUPS;
    int rest = atomic_fetch_sub(&left, 1);

    (void)value;
    atomic_fetch_add(&ran, 1);
    if (rest > 0 && rest % LONG_EVERY == 0)
        be_long(at);
    if (rest > 0)
        CHECK_EQUAL(weir_submit(NULL, group[next], feed, (void *)next, NULL), 0);
    return 0;
}

static void test_a_long_body_of_the_lead_keeps_no_task_waiting(void)
{
    weir_executor_stats stats = { .size = sizeof(stats) };
    char key[8];

    assert_int_equal(weir_executor_new(&ex,
                                       WEIR_POLICY(.workers = 2, .group_limit = 4,
                                                   .stall_after_ms = PATIENCE_S * 2000),
                                       NULL),
                     0);
    for (int g = 0; g < GROUPS; g++) {
        snprintf(key, sizeof(key), "g%d", g);
        assert_int_equal(weir_group_get(&group[g], ex, key), 0);
    }
    atomic_store(&left, TASKS);
    for (intptr_t g = 0; g < GROUPS; g++)
        assert_int_equal(weir_submit(NULL, group[g], feed, (void *)g, NULL), 0);
    assert_int_equal(weir_executor_drain(ex, patience()), 0);
    assert_int_equal(atomic_load(&ran), TASKS + GROUPS);
    assert_int_equal(atomic_load(&long_bodies), TASKS / LONG_EVERY);
    assert_int_equal(weir_executor_stats_get(&stats, ex), 0);
    assert_int_equal(stats.succeeded, TASKS + GROUPS + TASKS / LONG_EVERY);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(test_a_long_body_of_the_lead_keeps_no_task_waiting) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
