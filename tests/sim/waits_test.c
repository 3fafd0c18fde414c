/* Circles of waits that an event closes, that go through costs, loans, a blocked submit or two executors; and waits for
 * several tasks.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

/* A body that submits a task, perhaps later than it starts, and waits for it. */
struct waiter {
    weir_executor *ex;
    const char *key; /* of the task it waits for */
    uint32_t cost;
    int64_t at_ms; /* when it submits */
    int64_t child_ms;
    int rc;
    weir_time ended_at;
    weir_message why;
};

static int sleeps(void **value, void *ms_arg)
{
    *value = NULL;
    return weir_sleep(weir_now() + (int64_t)(intptr_t)ms_arg * MS);
}

static int waits(void **value, void *waiter_arg)
{
    struct waiter *waiter = waiter_arg;
    weir_task *task;

    *value = NULL;
    if (waiter->at_ms)
        sleep_until(waiter->at_ms);
    CHECK(weir_submit_key(&task, waiter->ex, waiter->key, sleeps,
                          (void *)(intptr_t)waiter->child_ms,
                          WEIR_TASK(.cost = waiter->cost)) == 0);
    waiter->rc = weir_task_wait_or_say(&waiter->why, NULL, task, WEIR_FOREVER);
    waiter->ended_at = weir_now();
    if (waiter->rc)
        weir_task_cancel(task);
    weir_task_unref(task);
    return 0;
}

static void start_waiter(struct waiter *waiter, const char *key)
{
    CHECK(weir_submit_key(NULL, waiter->ex, key, waits, waiter, NULL) == 0);
}

/* ---- costs --------------------------------------------------------------------------------------- */

SIM_TEST(test_a_task_that_waits_for_a_costly_one_that_needs_its_permit_is_refused, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct body z = { .until_ms = 5 };
    struct waiter x = { .ex = ex, .key = "g", .cost = 2, .rc = 1 };
    weir_task *other = submit(ex, "g", &z);

    start_waiter(&x, "g");
    check_done(other);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(x.rc, WEIR_EDEADLK); /* at once: when Z ends there is still one permit too few */
    CHECK_EQ(x.ended_at, at(0));
    weir_executor_free(ex);
}

/* X waits behind a cost of 1; then a costlier task of higher priority goes first, and can never start. */
SIM_TEST(test_a_costly_task_that_goes_first_closes_a_circle, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    struct body z = { .until_ms = 20 };
    struct waiter x = { .ex = ex, .key = "g", .at_ms = 1, .rc = 1 };
    weir_task *other = submit(ex, "g", &z), *urgent = NULL;

    start_waiter(&x, "g");
    sleep_until(5);
    CHECK(weir_submit_key(&urgent, ex, "g", sleeps, NULL,
                          WEIR_TASK(.cost = 2, .priority = WEIR_URGENT)) == 0);
    check_done(other);
    check_done(urgent);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(x.rc, WEIR_EDEADLK);
    CHECK_EQ(x.ended_at, at(5));
    weir_executor_free(ex);
}

SIM_TEST(test_a_limit_that_is_lowered_closes_a_circle_and_the_youngest_wait_gives_way, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));
    struct body z = { .until_ms = 20 };
    struct waiter first = { .ex = ex, .key = "g", .at_ms = 1, .rc = 1 };
    struct waiter second = { .ex = ex, .key = "g", .at_ms = 2, .rc = 1 };
    weir_task *other = submit(ex, "g", &z);

    start_waiter(&first, "g");
    start_waiter(&second, "g"); /* three permits are in use, and two tasks wait for one */
    sleep_until(5);
    CHECK_EQ(first.rc, 1);
    CHECK(weir_group_resize(group_of(ex, "g"), 2, 0, 0) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_done(other);
    CHECK_EQ(second.rc, WEIR_EDEADLK);
    CHECK_EQ(second.ended_at, at(5));
    CHECK_EQ(first.rc, 0); /* the one that gave way is enough */
    weir_executor_free(ex);
}

/* The group's turn was interrupted at 5, since it cools down until 60. Then it goes on, before the costly task that cannot
 * start while X waits, until so many of its tasks have started as its weight is. X waits for the third. */
static void wait_for_third_of_turn(int64_t weight, int rc)
{
    weir_group_policy groups[] = { { .key = "cools", .limit = 1, .weight = weight } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3, .inflight_max = 3,
                                                 .groups = groups, .group_count = 1));
    struct waiter x = { .ex = ex, .key = "cools", .at_ms = 10, .rc = 1 };
    struct body until_5 = { .until_ms = 5 };
    weir_task *first, *second, *costly;

    weir_group_pause(group_of(ex, "cools"));
    first = submit(ex, "cools", &until_5);
    second = submit(ex, "cools", NULL);
    weir_group_resume(group_of(ex, "cools")); /* its turn begins with both of them */
    start_waiter(&x, "x");
    sleep_until(1);
    CHECK(weir_group_cool_down(group_of(ex, "cools"), at(60)) == 0);
    sleep_until(8);
    CHECK(weir_submit_key(&costly, ex, "c", sleeps, NULL, WEIR_TASK(.cost = 3)) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(x.rc, rc);
    CHECK_EQ(x.ended_at, at(60));
    check_done_at(first, 0, 5);
    check_done_at(second, 60, 60);
    check_done_at(costly, 60, 60);
    weir_executor_free(ex);
}

SIM_TEST(test_a_wait_for_a_group_whose_turn_goes_on_when_its_gate_opens_is_not_stuck, 100)
{
    wait_for_third_of_turn(3, 0);
}

SIM_TEST(test_a_wait_for_a_group_whose_turn_is_over_when_its_gate_opens_is_refused_then, 100)
{
    wait_for_third_of_turn(2, WEIR_EDEADLK);
}

/* ---- loans --------------------------------------------------------------------------------------- */

/* Groups are in the domain that their name begins with, if there is one. */
static int domain_of_key(const char **domain, const char *key, void *arg)
{
    static const char *const name[] = { "A", "B", "C" };

    (void)arg;
    *domain = key[0] <= 'C' ? name[key[0] - 'A'] : NULL;
    return 0;
}

static int waits_for_handle(void **value, void *task_arg)
{
    *value = NULL;
    return weir_task_wait(NULL, task_arg, WEIR_FOREVER);
}

/* A has one slot and is lent one of B's two, which a task of A's is on until 100. X, on A's own, waits for the next task
 * of A's. Then B needs its slot back; and it will not lend it again, since half of its slots are in use by a task that
 * waits for X. */
SIM_TEST(test_a_recalled_loan_closes_a_circle, 100)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 },
                                     { .name = "B", .slots = 2, .lend_max = 1 } };
    weir_executor *ex = new_executor(AB_POLICY(
        domains, 3, 0, .lending = { .period_ms = 10, .hold = 1, .headroom_percent = WEIR_NONE }));
    struct waiter x = { .ex = ex, .key = "A", .at_ms = 52, .rc = 1 };
    struct body until_100 = { .until_ms = 100 };
    weir_task *x_task, *lent, *need[2];

    CHECK(weir_submit_key(&x_task, ex, "A", waits, &x, NULL) == 0);
    lent = submit(ex, "A", &until_100); /* waits, until a slot is lent */
    sleep_until(51);
    CHECK_EQ(domain_of(ex, "A").limit, 2);
    CHECK(weir_submit_key(&need[0], ex, "B", waits_for_handle, x_task, NULL) == 0);
    sleep_until(55);
    CHECK_EQ(x.rc, 1); /* the task it waits for gets the lent slot, some time */
    CHECK(weir_submit_key(&need[1], ex, "B", waits_for_handle, x_task, NULL) == 0);
    sleep_until(56);
    CHECK_EQ(x.rc, WEIR_EDEADLK);
    CHECK_EQ(x.ended_at, at(55));
    check_done(x_task);
    check_done(lent);
    check_done(need[0]);
    check_done(need[1]);
    weir_executor_free(ex);
}

/* B lends one of its two slots to C, which keeps it though it has nothing to run any more. X, on A's only slot, waits for
 * the next task of A's. In B two tasks wait until 60: then B needs both slots, and gets its own back; and when these tasks
 * have ended it can lend one to A. */
SIM_TEST(test_a_loan_may_come_from_a_lender_that_has_yet_to_recall_another, 100)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 },
                                     { .name = "B", .slots = 2, .lend_max = 1 },
                                     { .name = "C", .slots = 1 } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 5, .domains = domains,
                    .domain_count = 3, .domain_for = domain_of_key,
                    .lending = { .period_ms = 10, .hold = 1, .headroom_percent = WEIR_NONE }));
    struct waiter x = { .ex = ex, .key = "A", .at_ms = 45, .rc = 1 };
    struct body until_30 = { .until_ms = 30 }, until_72 = { .until_ms = 72 };
    weir_task *in_c[2] = { submit(ex, "C", &until_30), submit(ex, "C", &until_30) }, *in_b[2];

    CHECK(weir_group_cool_down(group_of(ex, "B"), at(60)) == 0);
    sleep_until(40);
    CHECK_EQ(domain_of(ex, "C").limit, 2);
    start_waiter(&x, "A");
    for (int i = 0; i < 2; i++)
        in_b[i] = submit(ex, "B", &until_72);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(x.rc, 0);
    CHECK_EQ(x.ended_at, at(80));
    for (int i = 0; i < 2; i++) {
        check_done(in_c[i]);
        check_done_at(in_b[i], 60, 72);
    }
    weir_executor_free(ex);
}

/* X, on A's only slot, waits for the next task of A's, which is promised a slot that B lends it at 20, and waits for a permit
 * of the executor's until 50. At 25 B needs its slot back; and does not lend it again, since a task of B's waits for one
 * that waits for X. But what was promised stays promised. */
SIM_TEST(test_a_promised_slot_will_come_though_its_lender_recalls_it, 100)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 }, { .name = "B", .slots = 2 } };
    weir_group_policy groups[] = { { .key = "B", .limit = 1 } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .inflight_max = 3,
                                 .slots = 4, .domains = domains, .domain_count = 2,
                                 .groups = groups, .group_count = 1, .domain_for = domain_of_key,
                                 .lending = { .period_ms = 10,
                                              .hold = 1,
                                              .low_percent = 60,
                                              .headroom_percent = WEIR_NONE }));
    struct waiter x = { .ex = ex, .key = "A", .at_ms = 15, .child_ms = 1, .rc = 1 };
    struct body until_50 = { .until_ms = 50 };
    weir_task *x_task, *holds = submit(ex, "other", &until_50), *in_b[3];

    CHECK(weir_submit_key(&x_task, ex, "A", waits, &x, NULL) == 0);
    CHECK(weir_submit_key(&in_b[0], ex, "B", waits_for_handle, x_task, NULL) == 0);
    sleep_until(25);
    CHECK_EQ(domain_of(ex, "A").limit, 2);
    in_b[1] = submit(ex, "B", NULL);
    in_b[2] = submit(ex, "B and recalls", NULL);
    check_done_at(holds, 0, 50);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(x.rc, 0);
    CHECK_EQ(x.ended_at, at(51));
    check_done(x_task);
    for (int i = 0; i < 3; i++)
        check_done(in_b[i]);
    weir_executor_free(ex);
}

struct late_waiter {
    weir_task *task;
    int64_t at_ms;
    int rc;
};

static int waits_late(void **value, void *late_arg)
{
    struct late_waiter *late = late_arg;

    *value = NULL;
    sleep_until(late->at_ms);
    late->rc = weir_task_wait(NULL, late->task, WEIR_FOREVER);
    return 0;
}

/* A was released to C and is restored, but both of C's slots are kept by tasks that wait for one of A's. At 10 C
 * is lent a slot for its next task: so it has one to give back. */
SIM_TEST(test_a_slot_may_come_back_from_a_receiver_that_is_lent_another, 100)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 },
                                     { .name = "B", .slots = 2, .lend_max = 1 },
                                     { .name = "C", .slots = 1 } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 5, .domains = domains,
                    .domain_count = 3, .domain_for = domain_of_key,
                    .lending = { .period_ms = 10, .hold = 1, .headroom_percent = WEIR_NONE }));
    struct late_waiter late[2] = { { .at_ms = 3 }, { .at_ms = 4 } };
    struct body until_25 = { .until_ms = 25 };
    weir_task *next;

    CHECK(weir_domain_release(ex, "A", "C", 0, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(weir_submit_key(NULL, ex, "C", waits_late, &late[i], NULL) == 0);
    let_start();
    CHECK(weir_domain_restore(ex, "A", NULL) == 0);
    next = submit(ex, "C", &until_25);
    late[0].task = late[1].task = submit(ex, "A", NULL);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK(late[0].rc == 0 && late[1].rc == 0);
    check_done_at(next, 10, 25);
    check_done_at(late[0].task, 10, 10);
    weir_executor_free(ex);
}

/* ---- a blocked submit ---------------------------------------------------------------------------- */

struct submitter {
    weir_executor *ex;
    const char *key;
    int rc;
    weir_time ended_at;
};

static int submits_until_it_blocks(void **value, void *submitter_arg)
{
    struct submitter *s = submitter_arg;

    *value = NULL;
    for (int i = 0; i < 3 && !s->rc; i++)
        s->rc = weir_submit_key(NULL, s->ex, s->key, sleeps, (void *)(intptr_t)1, NULL);
    return 0;
}

SIM_TEST(test_a_submit_that_blocks_on_a_group_whose_permit_its_caller_holds_is_refused, 100)
{
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = 1, .rejection = WEIR_BLOCK));
    struct submitter own = { .ex = ex, .key = "g" }, other = { .ex = ex, .key = "h" };

    CHECK(weir_submit_key(NULL, ex, "g", submits_until_it_blocks, &own, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "k", submits_until_it_blocks, &other, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(own.rc, WEIR_EDEADLK);
    CHECK_EQ(other.rc, 0); /* of another group it may wait for room */
    weir_executor_free(ex);
}

/* A task of cost 2 waits, and counts for one permit that is free, but its caller holds the other. So no place of the
 * executor's comes free for a task of another group. */
static int submits_to_a_full_executor(void **value, void *submitter_arg)
{
    struct submitter *s = submitter_arg;

    *value = NULL;
    CHECK(weir_submit_key(NULL, s->ex, "g", sleeps, NULL, WEIR_TASK(.cost = 2)) == 0);
    s->rc = weir_submit_key(NULL, s->ex, "h", sleeps, NULL, NULL);
    return 0;
}

SIM_TEST(test_a_submit_that_waits_for_the_executors_queue_behind_its_own_permit_is_refused, 100)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .inflight_max = 2, .queue_max = WEIR_NO_QUEUE,
                                 .group_limit = 2, .rejection = WEIR_BLOCK));
    struct submitter s = { .ex = ex };

    CHECK(weir_submit_key(NULL, ex, "g", submits_to_a_full_executor, &s, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(s.rc, WEIR_EDEADLK);
    weir_executor_free(ex);
}

static int submits_later(void **value, void *submitter_arg)
{
    struct submitter *s = submitter_arg;

    *value = NULL;
    sleep_until(10);
    s->rc = weir_submit_key(NULL, s->ex, s->key, sleeps, NULL, NULL);
    s->ended_at = weir_now();
    return 0;
}

/* The only place of A is taken by a task that waits for the thread, which the submitter is on; the only slot of A by a body
 * that waits for that thread. B has slots to lend, but a caller that waits for room wants none yet. */
SIM_TEST(test_a_submit_that_blocks_on_a_domain_whose_tasks_wait_for_its_own_thread_is_refused, 100)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1, .queue = 1 },
                                     { .name = "B", .slots = 2, .queue = 1 } };
    weir_group_policy groups[] = { { .key = "A on thread", .run_on = WEIR_THREADS },
                                   { .key = "on thread", .run_on = WEIR_THREADS },
                                   { .key = "submits", .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .threads_max = 1, .slots = 6, .queue_places = 8,
                    .domains = domains, .domain_count = 2, .groups = groups, .group_count = 3,
                    .domain_for = domain_of_key, .lending = { .period_ms = 10, .hold = 1 },
                    .rejection = WEIR_BLOCK));
    struct submitter s = { .ex = ex, .key = "A", .rc = 1 };
    struct waiter x = { .ex = ex, .key = "on thread", .at_ms = 5, .rc = 1 };

    CHECK(weir_submit_key(NULL, ex, "submits", submits_later, &s, NULL) == 0);
    sleep_until(1);
    CHECK(weir_submit_key(NULL, ex, "A on thread", sleeps, NULL, NULL) == 0);
    sleep_until(2);
    start_waiter(&x, "A waits");
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(s.rc, WEIR_EDEADLK);
    CHECK_EQ(s.ended_at, at(10));
    CHECK_EQ(x.rc, 0);
    weir_executor_free(ex);
}

/* Its own group's next task waits for the submitter to end; but another group's starts at 20, and leaves a place. */
SIM_TEST(test_a_submit_that_blocks_on_a_domain_goes_on_when_any_task_of_the_domain_starts, 100)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 2, .queue = 2 } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .slots = 4, .queue_places = 8,
                                 .domains = domains, .domain_count = 1, .domain_for = domain_of_key,
                                 .rejection = WEIR_BLOCK));
    struct submitter s = { .ex = ex, .key = "A", .rc = 1 };
    struct body until_20 = { .until_ms = 20 };
    weir_task *other[2], *own;

    CHECK(weir_submit_key(NULL, ex, "A", submits_later, &s, NULL) == 0);
    for (int i = 0; i < 2; i++)
        other[i] = submit(ex, "A other", &until_20);
    own = submit(ex, "A", NULL);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(s.rc, 0);
    CHECK_EQ(s.ended_at, at(20));
    check_done(own);
    check_done_at(other[0], 0, 20);
    check_done_at(other[1], 20, 20);
    weir_executor_free(ex);
}

/* ---- two executors ------------------------------------------------------------------------------- */

SIM_TEST(test_a_circle_over_two_executors_is_refused, 200)
{
    weir_executor *one = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 1));
    weir_executor *two = new_executor(WEIR_POLICY(.workers = 1, .group_limit = 1));
    struct waiter a = { .ex = two, .key = "b", .at_ms = 1, .rc = 1 };
    struct waiter b = { .ex = one, .key = "a", .at_ms = 2, .rc = 1 };

    CHECK(weir_submit_key(NULL, one, "a", waits, &a, NULL) == 0);
    CHECK(weir_submit_key(NULL, two, "b", waits, &b, NULL) == 0);
    CHECK(weir_executor_drain(one, WEIR_FOREVER) == 0);
    CHECK(weir_executor_drain(two, WEIR_FOREVER) == 0);
    CHECK_EQ(a.rc, 0);
    CHECK_EQ(b.rc, WEIR_EDEADLK);
    CHECK(
        strcmp(
            b.why.text,
            "a task of group \"b\" waits for a task of group \"a\", which needs a permit held by a "
            "task "
            "of group \"a\", which waits for a task of group \"b\", which needs a permit held by a "
            "task of group \"b\"") == 0);
    weir_executor_free(one);
    weir_executor_free(two);
}

/* ---- what can move ------------------------------------------------------------------------------- */

static weir_task *pending_task;

static int pends(void **value, void *arg)
{
    (void)arg;
    *value = NULL;
    pending_task = weir_task_ref(weir_task_self());
    return WEIR_PENDING;
}

/* A pending task holds the permit that is needed: it may be settled at any time. */
SIM_TEST(test_a_task_that_waits_behind_a_pending_one_is_not_stuck, 100)
{
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2, .group_inflight_max = 2));
    struct waiter x = { .ex = ex, .key = "g", .at_ms = 1, .rc = 1 };

    CHECK(weir_submit_key(NULL, ex, "g", pends, NULL, NULL) == 0);
    start_waiter(&x, "g");
    sleep_until(5);
    CHECK_EQ(x.rc, 1);
    CHECK(weir_task_settle(pending_task, 0, NULL) == 0);
    weir_task_unref(pending_task);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(x.rc, 0);
    weir_executor_free(ex);
}

/* ---- several tasks ------------------------------------------------------------------------------- */

SIM_TEST(test_a_wait_for_all_ends_with_the_last_and_a_wait_for_any_with_the_first, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 9));
    struct body quick = { .until_ms = 3 }, slow = { .until_ms = 7 };
    weir_task *task[4] = { submit(ex, "a", &slow), NULL, submit(ex, "b", &quick),
                           submit(ex, "a", &slow) };
    size_t index = 99;

    CHECK_EQ(weir_task_wait_any(&index, task, 4, at(1)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now(), at(1));
    CHECK_EQ(weir_task_wait_any(&index, task, 4, WEIR_FOREVER), 0);
    CHECK_EQ(index, 2);
    CHECK_EQ(weir_now(), at(3));
    CHECK_EQ(weir_task_wait_all(task, 4, at(5)), WEIR_ETIMEDOUT);
    CHECK_EQ(weir_now(), at(5));
    CHECK_EQ(weir_task_wait_all(task, 4, WEIR_FOREVER), 0);
    CHECK_EQ(weir_now(), at(7));
    CHECK_EQ(weir_task_wait_any(&index, task, 4, WEIR_NOW_OR_NEVER), 0);
    CHECK_EQ(index, 0);
    CHECK_EQ(weir_task_wait_all(NULL, 0, WEIR_NOW_OR_NEVER), 0);
    CHECK_EQ(weir_task_wait_any(&index, NULL, 0, WEIR_NOW_OR_NEVER), WEIR_EINVAL);
    CHECK_EQ(weir_task_wait_any(&index, &task[1], 1, WEIR_NOW_OR_NEVER), WEIR_EINVAL);
    for (int i = 0; i < 4; i++)
        weir_task_unref(task[i]);
    weir_executor_free(ex);
}

struct any_waiter {
    weir_executor *ex;
    const char *key[2];
    int rc;
    size_t index;
};

static int waits_for_any(void **value, void *waiter_arg)
{
    struct any_waiter *waiter = waiter_arg;
    weir_task *task[2];

    *value = NULL;
    for (int i = 0; i < 2; i++)
        CHECK(weir_submit_key(&task[i], waiter->ex, waiter->key[i], sleeps, (void *)(intptr_t)1,
                              NULL) == 0);
    waiter->rc = weir_task_wait_any(&waiter->index, task, 2, WEIR_FOREVER);
    for (int i = 0; i < 2; i++)
        weir_task_unref(task[i]);
    return 0;
}

SIM_TEST(test_a_wait_for_any_is_refused_only_if_none_of_them_can_start, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct any_waiter one = { .ex = ex, .key = { "a", "free" }, .rc = 1 };
    struct any_waiter none = { .ex = ex, .key = { "b", "b" }, .rc = 1 };

    CHECK(weir_submit_key(NULL, ex, "a", waits_for_any, &one, NULL) == 0);
    CHECK(weir_submit_key(NULL, ex, "b", waits_for_any, &none, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(one.rc, 0);
    CHECK_EQ(one.index, 1);
    CHECK_EQ(none.rc, WEIR_EDEADLK);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_task_that_waits_for_a_costly_one_that_needs_its_permit_is_refused),
        cmocka_unit_test(test_a_costly_task_that_goes_first_closes_a_circle),
        cmocka_unit_test(
            test_a_limit_that_is_lowered_closes_a_circle_and_the_youngest_wait_gives_way),
        cmocka_unit_test(
            test_a_wait_for_a_group_whose_turn_goes_on_when_its_gate_opens_is_not_stuck),
        cmocka_unit_test(
            test_a_wait_for_a_group_whose_turn_is_over_when_its_gate_opens_is_refused_then),
        cmocka_unit_test(test_a_recalled_loan_closes_a_circle),
        cmocka_unit_test(test_a_loan_may_come_from_a_lender_that_has_yet_to_recall_another),
        cmocka_unit_test(test_a_slot_may_come_back_from_a_receiver_that_is_lent_another),
        cmocka_unit_test(test_a_promised_slot_will_come_though_its_lender_recalls_it),
        cmocka_unit_test(
            test_a_submit_that_blocks_on_a_group_whose_permit_its_caller_holds_is_refused),
        cmocka_unit_test(
            test_a_submit_that_waits_for_the_executors_queue_behind_its_own_permit_is_refused),
        cmocka_unit_test(
            test_a_submit_that_blocks_on_a_domain_whose_tasks_wait_for_its_own_thread_is_refused),
        cmocka_unit_test(
            test_a_submit_that_blocks_on_a_domain_goes_on_when_any_task_of_the_domain_starts),
        cmocka_unit_test(test_a_circle_over_two_executors_is_refused),
        cmocka_unit_test(test_a_task_that_waits_behind_a_pending_one_is_not_stuck),
        cmocka_unit_test(test_a_wait_for_all_ends_with_the_last_and_a_wait_for_any_with_the_first),
        cmocka_unit_test(test_a_wait_for_any_is_refused_only_if_none_of_them_can_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
