/* The table of groups on real threads: keys are made, evicted and forgotten while the executor's limit comes and goes and
 * its figures are read.
 * SPDX-License-Identifier: MIT */
#include "executor/state.h"
#include "support/check.h"

#include <pthread.h>
#include <stdio.h>

enum { SUBMITTERS = 3, TASKS = SANITIZED ? 3000 : 20000, KEYS = 200, LIMIT = 3 };

static weir_executor *ex;
static atomic_int submitters;
static atomic_uint succeeded;

static int run(void **value, void *arg)
{
    (void)value;
    (void)arg;
    atomic_fetch_add(&succeeded, 1);
    return 0;
}

static void *submit_and_evict(void *arg)
{
    unsigned luck = (unsigned)(uintptr_t)arg;
    char key[16];

    for (int i = 0; i < TASKS; i++) {
        snprintf(key, sizeof(key), "k%d", rand_r(&luck) % KEYS);
        CHECK_EQUAL(weir_submit_key(NULL, ex, key, run, NULL, NULL), 0);
        if (i % 16 == 0)
            CHECK_EQUAL(weir_group_evict(ex, key, i % 32 ? WEIR_CARRY_OVER : 0), 0);
    }
    atomic_fetch_sub(&submitters, 1);
    return NULL;
}

static weir_executor_stats stats_now(void)
{
    weir_executor_stats stats = { .size = sizeof(stats) };

    CHECK_EQUAL(weir_executor_stats_get(&stats, ex), 0);
    return stats;
}

static void start(pthread_t thread[SUBMITTERS])
{
    atomic_store(&submitters, SUBMITTERS);
    for (uintptr_t i = 0; i < SUBMITTERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, submit_and_evict, (void *)(i + 1)), 0);
}

static void join(pthread_t thread[SUBMITTERS])
{
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQUAL(weir_executor_drain(ex, patience()), 0);
}

/* A group is counted in one place at any moment, so sums never shrink; and in the end nothing is missing. */
static void test_no_count_is_lost_or_doubled_while_groups_move(void)
{
    pthread_t thread[SUBMITTERS];
    weir_executor_stats before = { 0 }, now;

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .idle_evict_ms = 1), NULL),
                     0);
    atomic_store(&succeeded, 0);
    start(thread);
    while (atomic_load(&submitters)) {
        now = stats_now();
        CHECK(now.submitted >= before.submitted && now.started >= before.started &&
              now.succeeded >= before.succeeded && now.rejected >= before.rejected);
        CHECK(now.submitted <= (uint64_t)SUBMITTERS * TASKS);
        before = now;
    }
    join(thread);
    now = stats_now();
    CHECK_EQUAL(now.submitted, (uint64_t)SUBMITTERS * TASKS);
    CHECK_EQUAL(now.succeeded, atomic_load(&succeeded));
    CHECK_EQUAL(now.succeeded + now.rejected, now.submitted);
    weir_executor_free(ex);
}

/* Whether every group takes part in the executor's sums, or none does. */
static void check_counted(bool counted)
{
    struct weir_group *group = NULL;

    while ((group = wr_table_walk(&ex->table, group))) {
        wr_lock(&group->lock);
        CHECK_EQUAL(group->sums.counted, counted);
        wr_unlock(&group->lock);
    }
}

/* Groups that are made while the limit comes into force are held to it like all others. */
static void test_a_limit_that_comes_and_goes_counts_groups_made_meanwhile(void)
{
    pthread_t thread[SUBMITTERS];

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 2), NULL), 0);
    start(thread);
    while (atomic_load(&submitters)) {
        CHECK_EQUAL(weir_executor_resize(ex, LIMIT, 0), 0);
        check_counted(true);
        CHECK_EQUAL(weir_executor_resize(ex, WEIR_NO_LIMIT, 0), 0);
        check_counted(false);
    }
    join(thread);
    CHECK_EQUAL(weir_executor_resize(ex, LIMIT, 0), 0);
    CHECK_EQUAL(atomic_load(&ex->root.held), 0);
    CHECK_EQUAL(atomic_load(&ex->root.claimed), 0);
    weir_executor_free(ex);
}

static void *make_groups(void *arg)
{
    char key[16];
    weir_group *group;
    int rc = 0;

    for (int i = 0; i < TASKS && !rc; i++) {
        snprintf(key, sizeof(key), "%d-%d", (int)(intptr_t)arg, i);
        rc = weir_group_get(&group, ex, key);
        CHECK(rc == 0 || rc == WEIR_ECLOSED);
    }
    return NULL;
}

/* Closing visits each shard once, and leaves nothing behind. */
static void test_no_group_outlives_a_close_that_it_was_made_during(void)
{
    pthread_t thread[SUBMITTERS];

    for (int round = 0; round < (SANITIZED ? 20 : 100); round++) {
        assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL), 0);
        for (intptr_t i = 0; i < SUBMITTERS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, make_groups, (void *)i), 0);
        while (stats_now().groups < (uint64_t)round)
            ;
        weir_executor_close(ex, 0);
        CHECK_EQUAL(stats_now().groups, 0);
        for (int i = 0; i < SUBMITTERS; i++)
            pthread_join(thread[i], NULL);
        CHECK_EQUAL(stats_now().groups, 0);
        weir_executor_free(ex);
    }
}

static int submit_some(void **value, void *arg)
{
    unsigned luck = (unsigned)(uintptr_t)arg;
    char key[16];

    (void)value;
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof(key), "k%d", rand_r(&luck) % 4);
        CHECK_EQUAL(weir_submit_key(NULL, ex, key, run, NULL, NULL), 0);
    }
    return 0;
}

/* The submitter has no handle of the group and no task in it once its task was let in: the group may be gone by the time
 * its wait is over. */
static void test_a_group_goes_while_tasks_wait_for_room_in_it(void)
{
    enum { DRIVERS = SANITIZED ? 200 : 2000 };
    weir_executor_stats stats;
    weir_group *drivers;
    char key[16];

    assert_int_equal(
        weir_executor_new(
            &ex, WEIR_POLICY(.workers = 2, .group_queue_max = 1, .rejection = WEIR_BLOCK), NULL),
        0);
    CHECK_EQUAL(weir_group_get(&drivers, ex, "drivers"), 0);
    CHECK_EQUAL(weir_group_resize(drivers, 8, 0, DRIVERS), 0);
    for (uintptr_t i = 0; i < DRIVERS; i++)
        CHECK_EQUAL(weir_submit(NULL, drivers, submit_some, (void *)i, NULL), 0);
    for (int i = 0; weir_executor_drain(ex, weir_now()); i++) {
        snprintf(key, sizeof(key), "k%d", i % 4);
        CHECK_EQUAL(weir_group_evict(ex, key, 0), 0);
    }
    stats = stats_now();
    CHECK_EQUAL(stats.submitted, (uint64_t)DRIVERS * 21);
    CHECK_EQUAL(stats.succeeded + stats.rejected, stats.submitted);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_no_count_is_lost_or_doubled_while_groups_move),
        TEST(test_a_limit_that_comes_and_goes_counts_groups_made_meanwhile),
        TEST(test_no_group_outlives_a_close_that_it_was_made_during),
        TEST(test_a_group_goes_while_tasks_wait_for_room_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
