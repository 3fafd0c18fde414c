/* Bodies on threads, domains with workers of their own, and groups that are found to block workers.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

static void check_all_and_free(weir_executor *ex)
{
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_bodies_on_threads_keep_to_the_same_limits, 60)
{
    weir_group_policy groups[] = { { .key = "disk", .limit = 3, .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .groups = groups, .group_count = 1));
    struct gauge gauge = { 0 };
    struct body body = { .ms = 50, .gauge = &gauge }, quick = { .ms = 1 };
    weir_task *disk[9], *other;

    for (int i = 0; i < 9; i++)
        disk[i] = submit_blocking(ex, "disk", &body);
    other = submit(ex, "net", &quick); /* the one worker is free */
    check_done_at(other, 0, 1);
    for (int i = 0; i < 9; i++)
        check_done_at(disk[i], i / 3 * 50, i / 3 * 50 + 50);
    CHECK_EQ(gauge.peak, 3);
    CHECK_EQ(stats_of(ex, "disk").stalls, 0);
    CHECK_EQ(stats_of(ex, "disk").run_on, WEIR_THREADS);
    check_all_and_free(ex);
}

static int looks_around(void **value, void *task_arg)
{
    *value = weir_task_self();
    CHECK(weir_task_self() != NULL);
    CHECK(strcmp(weir_task_key(weir_task_self()), "t") == 0);
    *(weir_task **)task_arg = weir_task_self();
    return weir_sleep(at(1000)); /* a wait, on a thread: cancelled below */
}

SIM_TEST(test_a_body_on_a_thread_knows_its_task_and_can_be_cancelled, 60)
{
    weir_group_policy groups[] = { { .key = "t", .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .groups = groups, .group_count = 1));
    weir_task *self = NULL, *task;

    CHECK(weir_submit_key(&task, ex, "t", looks_around, &self, NULL) == 0);
    sleep_until(10);
    CHECK(self == task);
    CHECK_EQ(why_of(task), WEIR_REASON_RUNNING);
    CHECK(weir_task_cancel(task));
    check_cancelled(task);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(10));
    check_all_and_free(ex);
}

SIM_TEST(test_a_thread_task_that_is_cancelled_before_its_thread_is_free_never_runs, 60)
{
    weir_group_policy groups[] = { { .key = "t", .limit = 2, .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .threads_max = 1, .groups = groups, .group_count = 1));
    struct gauge gauge = { 0 };
    struct body body = { .ms = 50, .gauge = &gauge };
    weir_task *first = submit_blocking(ex, "t", &body), *second = submit_blocking(ex, "t", &body);

    sleep_until(10);
    CHECK(weir_task_cancel(second));
    check_cancelled(second);
    check_done_at(first, 0, 50);
    check_all_and_free(ex);
    CHECK_EQ(gauge.ran, 1);
}

/* The thread that runs its present task does not go on with the next, and is there for another group. */
SIM_TEST(test_a_group_that_is_to_run_on_workers_leaves_its_thread, 60)
{
    weir_group_policy groups[] = { { .key = "t", .run_on = WEIR_THREADS },
                                   { .key = "u", .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .threads_max = 1, .groups = groups, .group_count = 2));
    weir_group *group = group_of(ex, "t");
    struct body body = { .ms = 10 }, quick = { 0 };
    weir_task *other;

    for (int i = 0; i < 3; i++)
        CHECK(weir_submit(NULL, group, work, &body, NULL) == 0);
    sleep_until(5);
    CHECK(weir_group_run_on(group, WEIR_WORKERS) == 0);
    sleep_until(12);
    other = submit(ex, "u", &quick);
    check_done_at(other, 12, 12);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(weir_now(), at(30));
    check_all_and_free(ex);
}

/* Without memory or threads for it, a body runs on the worker after all. */
static void on_threads_without(void *arg)
{
    weir_group_policy groups[] = { { .key = "t", .limit = 2, .run_on = WEIR_THREADS } };
    weir_executor *ex = NULL;
    struct body body = { .ms = 5 };

    (void)arg;
    if (weir_executor_new(&ex, WEIR_POLICY(.workers = 1, .groups = groups, .group_count = 1), NULL))
        return;
    for (int i = 0; i < 3; i++)
        weir_submit_key(NULL, ex, "t", work, &body, NULL);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

static void test_bodies_run_somewhere_when_there_are_no_threads(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 12; n++) {
        explore(1, WEIR_SIM_OPTIONS(.seed = n, .fail_thread = n, .sticky = true),
                on_threads_without);
        explore(1, WEIR_SIM_OPTIONS(.seed = n, .fail_alloc = 8 + n), on_threads_without);
    }
}

SIM_TEST(test_a_domain_can_run_all_its_groups_on_threads, 40)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 2, .run_on = WEIR_THREADS },
                                     { .name = "B", .slots = 2 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 5, WEIR_NO_LIMIT, .inflight_max = 0));
    struct body body = { .ms = 50 }, quick = { .ms = 1 };
    weir_task *a[4], *b;

    for (int i = 0; i < 4; i++)
        a[i] = submit_blocking(ex, "A", &body);
    b = submit(ex, "B", &quick);
    check_done_at(b, 0, 1);
    for (int i = 0; i < 4; i++)
        check_done_at(a[i], i / 2 * 50, i / 2 * 50 + 50);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Physical isolation: the domain's workers are its own; not even a stalled neighbour delays it. */
SIM_TEST(test_a_domain_with_its_own_workers_does_not_notice_others_that_block, 60)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 4 },
                                     { .name = "B", .slots = 4, .workers = 1 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 8, WEIR_NO_LIMIT, .inflight_max = 0));
    struct body block = { .ms = 100 }, quick = { .ms = 1 };
    weir_task *a[4], *b[3];

    for (int i = 0; i < 4; i++)
        a[i] = submit_blocking(ex, "A", &block); /* both shared workers are stuck */
    for (int i = 0; i < 3; i++)
        b[i] = submit(ex, "B", &quick);
    for (int i = 0; i < 3; i++)
        check_done_at(b[i], 0, 1);
    for (int i = 0; i < 4; i++)
        check_done(a[i]);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_a_domains_own_workers_take_nothing_of_others, 60)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 4 },
                                     { .name = "B", .slots = 4, .workers = 2 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 8, WEIR_NO_LIMIT, .stall_after_ms = 10000));
    struct body block = { .ms = 100 }, quick = { .ms = 1 };
    weir_task *b[3], *a;

    for (int i = 0; i < 3; i++)
        b[i] = submit_blocking(ex, "B", &block);
    a = submit(ex, "A", &quick);
    check_done_at(a, 0, 1);
    check_done_at(b[0], 0, 100);
    check_done_at(b[1], 0, 100);
    check_done_at(b[2], 100,
                  200); /* two workers: the third waits, with its slot, for one of them */
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* ---- stalls ------------------------------------------------------------------------------------ */

struct seen {
    _Atomic int found, over;
    char name[64];
};

static void stalled(const weir_stall *stall, void *seen_arg)
{
    struct seen *seen = seen_arg;

    if (stall->over) {
        seen->over++;
        return;
    }
    seen->found++;
    snprintf(seen->name, sizeof(seen->name), "%s", stall->name);
}

SIM_TEST(test_a_group_that_blocks_is_counted_and_named, 60)
{
    struct seen seen = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .listener = { .stalled = stalled, .arg = &seen }));
    struct body block = { .ms = 100 }, quick = { .ms = 1 };
    weir_task *a = submit_blocking(ex, "slow disk", &block), *b;
    weir_result result;

    sleep_until(1);
    b = submit(ex, "quick", &quick);
    result = result_of(b); /* a replacement takes over */
    CHECK_EQ(result.outcome, WEIR_DONE);
    CHECK(result.started_at >= at(10) && result.started_at <= at(15));
    check_done_at(a, 0, 100);
    sleep_until(200);
    CHECK_EQ(stats_of(ex, "slow disk").stalls, 1);
    CHECK_EQ(stats_of(ex, "quick").stalls, 0);
    CHECK_EQ(stats_all(ex).stalls, 1);
    CHECK_EQ(stats_of(ex, "slow disk").run_on,
             WEIR_WORKERS); /* counted only: that is the default */
    CHECK_EQ(seen.found, 1);
    CHECK_EQ(seen.over, 1);
    CHECK(strcmp(seen.name, "slow disk") == 0);
    check_all_and_free(ex);
}

SIM_TEST(test_a_group_that_blocks_moves_to_threads_and_the_others_run_on, 60)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 2, .stall_max = 2,
                                                 .stall_policy = WEIR_STALL_TO_THREADS));
    struct body block = { .ms = 50 }, quick = { .ms = 1 };
    weir_task *a[8];

    for (int i = 0; i < 8; i++)
        a[i] = submit_blocking(ex, "blocks", &block);
    sleep_until(60);
    CHECK_EQ(stats_of(ex, "blocks").run_on, WEIR_THREADS);
    for (int i = 0; i < 20; i++) /* known: no other task notices any more */
        check_done_at(submit(ex, "quick", &quick), 60 + i, 61 + i);
    for (int i = 0; i < 8; i++)
        check_done(a[i]);
    CHECK_EQ(stats_of(ex, "blocks").stalls, 2);
    CHECK(weir_group_run_on(group_of(ex, "blocks"), WEIR_WORKERS) == 0); /* and back, by a call */
    CHECK_EQ(stats_of(ex, "blocks").run_on, WEIR_WORKERS);
    CHECK(weir_group_run_on(group_of(ex, "blocks"), 7) == WEIR_EINVAL);
    check_all_and_free(ex);
}

/* The monitor asks whose body it is while that ends, and its group is evicted. */
SIM_TEST(test_a_stall_is_named_safely_while_its_group_goes, 300)
{
    struct seen seen = { 0 };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .listener = { .stalled = stalled, .arg = &seen },
                                 .stall_policy = WEIR_STALL_TO_THREADS));
    struct body block = { .ms = 10 }; /* ends just when it is found */

    for (int i = 0; i < 3; i++) {
        weir_task_unref(submit_blocking(ex, "comes and goes", &block));
        CHECK(weir_sleep(weir_now() + 10 * MS) == 0);
        CHECK(weir_group_evict(ex, "comes and goes", 0) == 0);
    }
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    weir_executor_free(ex);
    CHECK(seen.found == 0 || strcmp(seen.name, "comes and goes") == 0);
}

/* 5.2 D12: a body that waits for a task of its own full domain. */
struct nested {
    weir_executor *ex;
    int rc;
};

static int waits_for_another(void **value, void *nested_arg)
{
    struct nested *nested = nested_arg;
    weir_task *task = submit(nested->ex, "A", NULL);

    *value = NULL;
    nested->rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_cancel(task);
    weir_task_unref(task);
    return 0;
}

SIM_TEST(test_waiting_for_a_task_of_ones_own_full_domain_is_refused, 60)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 2 }, { .name = "B", .slots = 1 } };
    weir_executor *ex = new_executor(AB_POLICY(domains, 4, WEIR_NO_LIMIT, .inflight_max = 0));
    struct nested nested[2] = { { .ex = ex }, { .ex = ex } };
    weir_task *task[2];

    for (int i = 0; i < 2; i++)
        CHECK(weir_submit_key(&task[i], ex, "A", waits_for_another, &nested[i], NULL) == 0);
    check_done(task[0]);
    check_done(task[1]);
    CHECK(nested[0].rc == 0 || nested[0].rc == WEIR_EDEADLK);
    CHECK(nested[1].rc == 0 || nested[1].rc == WEIR_EDEADLK);
    check_domain_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies_on_threads_keep_to_the_same_limits),
        cmocka_unit_test(test_a_body_on_a_thread_knows_its_task_and_can_be_cancelled),
        cmocka_unit_test(test_a_thread_task_that_is_cancelled_before_its_thread_is_free_never_runs),
        cmocka_unit_test(test_a_group_that_is_to_run_on_workers_leaves_its_thread),
        cmocka_unit_test(test_bodies_run_somewhere_when_there_are_no_threads),
        cmocka_unit_test(test_a_domain_can_run_all_its_groups_on_threads),
        cmocka_unit_test(test_a_domain_with_its_own_workers_does_not_notice_others_that_block),
        cmocka_unit_test(test_a_domains_own_workers_take_nothing_of_others),
        cmocka_unit_test(test_a_group_that_blocks_is_counted_and_named),
        cmocka_unit_test(test_a_group_that_blocks_moves_to_threads_and_the_others_run_on),
        cmocka_unit_test(test_a_stall_is_named_safely_while_its_group_goes),
        cmocka_unit_test(test_waiting_for_a_task_of_ones_own_full_domain_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
