/* Groups that wait for a thread, and tasks that must not wait for them.
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

static void check_all_and_free(weir_executor *ex)
{
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_books(ex);
    weir_executor_free(ex);
}

/* A group that comes to wait for a thread claims no permits any more: a caller that waits for room has it. */
SIM_TEST(test_a_group_that_waits_for_a_thread_makes_room, 300)
{
    weir_group_policy groups[] = { { .key = "t1", .run_on = WEIR_THREADS },
                                   { .key = "t2", .run_on = WEIR_THREADS } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .threads_max = 1, .inflight_max = 2, .queue_max = WEIR_NO_QUEUE,
                    .rejection = WEIR_BLOCK, .groups = groups, .group_count = 2));
    struct body slow = { .ms = 50 }, quick = { .ms = 1 };
    weir_task *t1 = submit(ex, "t1", &slow), *t2 = submit(ex, "t2", &quick), *w;

    w = submit(ex, "w", &quick);
    CHECK_EQ(weir_now(), at(0));
    check_done_at(w, 0, 1);
    check_done_at(t1, 0, 50);
    check_done_at(t2, 50, 51);
    check_all_and_free(ex);
}

/* A group that is called goes before a costly one that its workers were refused permits for, and may need less. */
SIM_TEST(test_a_called_group_does_not_wait_for_permits_another_needs, 2000)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "h", .run_on = WEIR_THREADS },
                                   { .key = "t", .run_on = WEIR_THREADS },
                                   { .key = "c", .limit = 2 } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, .inflight_max = 2,
                                                 .slots = 9, .domains = domains, .domain_count = 1,
                                                 .groups = groups, .group_count = 3));
    struct body hog = { .ms = 10 }, slow = { .until_ms = 50 }, one = { .ms = 1 };
    weir_task *h = submit(ex, "h", &hog), *t, *c, *b;

    sleep_until(1);
    t = submit(ex, "t", &one);
    sleep_until(2);
    CHECK_EQ(why_of(t), WEIR_REASON_NO_THREAD);
    b = submit(ex, "b", &slow);
    sleep_until(3);
    c = submit_with(ex, "c", &one, WEIR_TASK(.cost = 2));
    check_done_at(h, 0, 10);
    check_done_at(t, 10, 11);
    check_done_at(b, 2, 50);
    check_done_at(c, 50, 51);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* ---- slot and thread both scarce ---------------------------------------------------------------- */

struct waits {
    weir_executor *ex;
    struct body *body;
    int64_t from_ms;
    int rc;
};

/* Submits a task that needs a thread, and waits for it with its slot in hand. */
static int waits_for_thread(void **value, void *waits_arg)
{
    struct waits *waits = waits_arg;
    weir_task *task = NULL;

    *value = NULL;
    CHECK(weir_sleep(at(waits->from_ms)) == 0);
    task = submit(waits->ex, "x", waits->body);
    waits->rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_unref(task);
    return 0;
}

static void fills_a_domain_and_waits(int64_t from_ms)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "g", .domain = "D", .run_on = WEIR_THREADS },
                                   { .key = "w", .domain = "D" },
                                   { .key = "h1", .run_on = WEIR_THREADS },
                                   { .key = "h2", .run_on = WEIR_THREADS },
                                   { .key = "x", .run_on = WEIR_THREADS } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, .slots = 6, .domains = domains,
                                 .domain_count = 1, .groups = groups, .group_count = 5));
    struct body hog1 = { .ms = 10 }, hog2 = { .ms = 20 }, w1 = { .until_ms = 20 },
                one = { .ms = 1 };
    struct waits waits = { .ex = ex, .body = &one, .from_ms = from_ms };
    weir_task *h1, *h2, *g, *w, *v;

    h1 = submit(ex, "h1", &hog1);
    sleep_until(1);
    g = submit(ex, "g", &one);
    sleep_until(2);
    w = submit(ex, "w", &w1); /* its domain is full when g is called at 10: h2 goes first */
    sleep_until(3);
    h2 = submit(ex, "h2", &hog2);
    sleep_until(21); /* g has come in line once more, and insists */
    CHECK_EQ(why_of(g), WEIR_REASON_NO_THREAD);
    CHECK(weir_submit_key(&v, ex, "w", waits_for_thread, &waits, NULL) == 0);
    check_done_at(h1, 0, 10);
    check_done_at(w, 2, 20);
    check_done_at(h2, 10, 30);
    check_done(v);
    CHECK_EQ(waits.rc, 0);
    check_done(g);
    CHECK(weir_now() <= at(from_ms > 30 ? from_ms + 2 : 32));
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_no_thread_is_kept_for_a_full_domain_if_its_tasks_may_wait_for_it, 100)
{
    fills_a_domain_and_waits(25); /* before g is called at 30 */
}

SIM_TEST(test_a_thread_kept_for_a_full_domain_goes_to_whom_its_body_waits_for, 100)
{
    fills_a_domain_and_waits(35);
}

/* At 30 g gets the thread and waits for the slot that u has. At 40 that slot is to go elsewhere; the other one is kept by a
 * body that waits for the thread. */
SIM_TEST(test_a_thread_kept_for_a_slot_that_is_taken_away_goes_to_others, 100)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 2 } };
    weir_group_policy groups[] = {
        { .key = "g", .domain = "D", .run_on = WEIR_THREADS },
        { .key = "u", .domain = "D" },
        { .key = "w", .domain = "D" },
        { .key = "h1", .run_on = WEIR_THREADS },
        { .key = "h2", .run_on = WEIR_THREADS },
        { .key = "x", .run_on = WEIR_THREADS },
    };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, .slots = 6, .domains = domains,
                                 .domain_count = 1, .groups = groups, .group_count = 6));
    struct body hog1 = { .ms = 10 }, hog2 = { .ms = 20 }, w1 = { .until_ms = 20 },
                u1 = { .until_ms = 60 }, one = { .ms = 1 };
    struct waits waits = { .ex = ex, .body = &one, .from_ms = 35, .rc = 1 };
    weir_task *h1, *h2, *g, *u, *w, *v;

    h1 = submit(ex, "h1", &hog1);
    sleep_until(1);
    g = submit(ex, "g", &one);
    sleep_until(2);
    w = submit(ex, "w", &w1);
    u = submit(ex, "u", &u1);
    sleep_until(3);
    h2 = submit(ex, "h2", &hog2);
    sleep_until(21); /* g has come in line once more, and insists */
    CHECK(weir_submit_key(&v, ex, "w", waits_for_thread, &waits, NULL) == 0);
    sleep_until(40);
    CHECK_EQ(waits.rc, 1);
    CHECK(weir_domain_resize(ex, "D", 1, 0, NULL) == 0);
    check_done_at(h1, 0, 10);
    check_done_at(w, 2, 20);
    check_done_at(h2, 10, 30);
    check_done_at(v, 21, 41);
    CHECK_EQ(waits.rc, 0);
    check_done_at(u, 2, 60);
    check_done_at(g, 60, 61);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static int waits_for_quick(void **value, void *waits_arg)
{
    struct waits *waits = waits_arg;
    weir_task *task = submit(waits->ex, "y", waits->body);

    *value = NULL;
    waits->rc |= weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_unref(task);
    return 0;
}

/* Its domain is always full, all threads are always taken, and elsewhere there is always a body that waits for a task. */
SIM_TEST(test_a_task_that_needs_slot_and_thread_gets_both_some_time, 60)
{
    enum { COUNT = 400 };
    weir_domain_policy domains[] = { { .name = "D", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "g", .domain = "D", .run_on = WEIR_THREADS },
                                   { .key = "w", .domain = "D", .limit = 2 },
                                   { .key = "x", .limit = 2, .run_on = WEIR_THREADS },
                                   { .key = "n", .limit = 2 } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, .slots = 8, .domains = domains,
                                 .domain_count = 1, .groups = groups, .group_count = 4));
    struct body w = { .ms = 1 + (int64_t)(weir_sim_random() % 5) };
    struct body x = { .ms = 1 + (int64_t)(weir_sim_random() % 5) };
    struct body one = { .ms = 1 }, y = { .ms = 3 };
    struct waits waits = { .ex = ex, .body = &y };
    weir_task *g[5];

    for (int i = 0; i < COUNT; i++) {
        CHECK(weir_submit_key(NULL, ex, "w", work, &w, NULL) == 0);
        CHECK(weir_submit_key(NULL, ex, "x", work, &x, NULL) == 0);
        CHECK(weir_submit_key(NULL, ex, "n", waits_for_quick, &waits, NULL) == 0);
    }
    for (int i = 0; i < 5; i++)
        g[i] = submit(ex, "g", &one);
    for (int i = 0; i < 5; i++)
        check_done(g[i]);
    CHECK(stats_of(ex, "w").waiting > COUNT / 4 && stats_of(ex, "x").waiting > COUNT / 4);
    check_domain_books(ex);
    CHECK_EQ(waits.rc, 0);
    weir_executor_free(ex);
}

/* ---- several things in the way ------------------------------------------------------------------ */

struct awaits {
    weir_executor *ex;
    weir_task *task; /* NULL: submits one to its own group */
    int rc;
};

static int awaits_it(void **value, void *awaits_arg)
{
    struct awaits *awaits = awaits_arg;
    weir_task *task = awaits->task;

    *value = NULL;
    CHECK(weir_sleep(weir_now() + MS) == 0);
    if (!task)
        task = submit(awaits->ex, "w", NULL);
    awaits->rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_unref(task);
    return 0;
}

/* Permits of the executor's that come back help no task whose slot does not. */
SIM_TEST(test_a_task_that_waits_for_permits_and_for_its_own_slot_is_stuck, 60)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "w", .limit = 2, .domain = "D" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .inflight_max = 2, .slots = 6, .domains = domains,
                                 .domain_count = 1, .groups = groups, .group_count = 1));
    struct awaits awaits = { .ex = ex };
    struct body slow = { .ms = 10 };
    weir_task *other = submit(ex, "other", &slow), *w;

    CHECK(weir_submit_key(&w, ex, "w", awaits_it, &awaits, NULL) == 0);
    check_done_at(w, 0, 1);
    CHECK_EQ(awaits.rc, WEIR_EDEADLK);
    check_done_at(other, 0, 10);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static int awaits_default(void **value, void *awaits_arg)
{
    struct awaits *awaits = awaits_arg;

    CHECK(weir_sleep(weir_now() + MS) == 0); /* until all that are to have a slot have it */
    awaits->task = submit(awaits->ex, "x", NULL);
    return awaits_it(value, awaits);
}

/* But if slots are lent, the next look at the use of each domain may bring one. */
SIM_TEST(test_a_task_that_waits_for_a_slot_that_may_be_lent_is_not_stuck, 60)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 1 }, { .name = "L", .slots = 4 } };
    weir_group_policy groups[] = { { .key = "w", .limit = 2, .domain = "D" } };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .slots = 6, .domains = domains,
                                                 .domain_count = 2, .groups = groups,
                                                 .group_count = 1, .lending = { .period_ms = 10 }));
    struct awaits awaits = { .ex = ex, .rc = 1 };
    weir_task *w;

    CHECK(weir_submit_key(&w, ex, "w", awaits_it, &awaits, NULL) == 0);
    check_done(w);
    CHECK_EQ(awaits.rc, 0);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static int asks_others_to_end(void **value, void *awaits_arg)
{
    struct awaits *awaits = awaits_arg;
    weir_task *task;

    *value = NULL;
    CHECK(weir_sleep(weir_now() + 2 * MS) == 0);
    CHECK(weir_domain_release(awaits->ex, "D", NULL, WEIR_CANCEL_RUNNING, NULL) == 0);
    task = submit(awaits->ex, "x", NULL);
    awaits->rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_unref(task);
    return 0;
}

/* A task that was asked to end gives back what it holds, though it has not had the time yet. */
SIM_TEST(test_a_task_that_waits_for_one_that_is_asked_to_end_is_not_stuck, 60)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "d", .domain = "D" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .slots = 6, .inflight_max = 2, .domains = domains,
                                 .domain_count = 1, .groups = groups, .group_count = 1));
    struct awaits awaits[2] = { { .ex = ex }, { .ex = ex, .rc = 1 } };
    weir_task *d, *other;

    CHECK(weir_submit_key(&d, ex, "d", awaits_it, &awaits[0], NULL) == 0);
    CHECK(weir_submit_key(&other, ex, "other", asks_others_to_end, &awaits[1], NULL) == 0);
    weir_task_wait(NULL, d, WEIR_FOREVER);
    weir_task_unref(d);
    check_done(other);
    CHECK_EQ(awaits[0].rc, WEIR_ECANCELED);
    CHECK_EQ(awaits[1].rc, 0);
    weir_executor_free(ex);
}

static int awaits_released(void **value, void *awaits_arg)
{
    struct awaits *awaits = awaits_arg;
    weir_task *task = submit(awaits->ex, "d", NULL);

    *value = NULL;
    awaits->rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_unref(task);
    return 0;
}

/* A task that waits in a domain that is released is refused, and so keeps no other waiting. */
SIM_TEST(test_a_task_that_waits_for_one_that_is_being_refused_is_not_stuck, 3000)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "d", .domain = "D" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .slots = 2, .domains = domains, .domain_count = 1,
                                 .groups = groups, .group_count = 1));
    struct awaits awaits = { .ex = ex, .rc = 1 };
    weir_task *task;

    CHECK(weir_submit_key(&task, ex, "w", awaits_released, &awaits, NULL) == 0);
    CHECK(weir_domain_release(ex, "D", NULL, 0, NULL) == 0);
    check_done(task);
    CHECK(awaits.rc != WEIR_EDEADLK);
    weir_executor_free(ex);
}

static int is_busy_and_awaits(void **value, void *awaits_arg)
{
    struct awaits *awaits = awaits_arg;
    weir_task *task;

    *value = NULL;
    CHECK(weir_sleep(weir_now() + 2 * MS) == 0);
    weir_sim_busy(6 * MS);
    task = submit(awaits->ex, "o", NULL);
    awaits->rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    weir_task_unref(task);
    return 0;
}

/* Permits that are owed to others first, which can start with them, come back. */
SIM_TEST(test_a_task_that_waits_behind_others_that_can_start_is_not_stuck, 60)
{
    weir_domain_policy domains[] = { { .name = "O", .slots = 2, .workers = 1 } };
    weir_group_policy groups[] = { { .key = "o", .limit = 2, .domain = "O" } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 1, .group_limit = 3, .slots = 6, .inflight_max = 3,
                    .domains = domains, .domain_count = 1, .groups = groups, .group_count = 1));
    struct awaits awaits = { .ex = ex, .rc = 1 };
    struct body short_one = { .ms = 5 };
    weir_task *o = submit(ex, "o", &short_one), *w, *costly;

    CHECK(weir_submit_key(&w, ex, "w", is_busy_and_awaits, &awaits, NULL) == 0);
    CHECK(weir_sleep(weir_now() + MS) == 0);
    costly = submit_with(ex, "costly", NULL, WEIR_TASK(.cost = 2)); /* refused: 2 of 3 are held */
    check_done(w);
    CHECK_EQ(awaits.rc, 0);
    check_done(o);
    check_done(costly);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Nor do slots that it can never have. */
SIM_TEST(test_a_task_that_waits_for_a_borrowed_slot_is_stuck_whatever_ends_elsewhere, 60)
{
    weir_domain_policy domains[] = { { .name = "M", .slots = 1 },
                                     { .name = "R", .slots = 1, .slots_mode = WEIR_RESERVED } };
    weir_group_policy groups[] = { { .key = "m", .domain = "M" },
                                   { .key = "r", .limit = 2, .domain = "R" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .slots = 3, .domains = domains, .domain_count = 2,
                                 .groups = groups, .group_count = 2));
    struct awaits awaits[2] = { { .ex = ex }, { .ex = ex } };
    struct body slow = { .ms = 10 };
    weir_task *m = submit(ex, "m", &slow), *r[2];

    for (int i = 0; i < 2; i++)
        CHECK(weir_submit_key(&r[i], ex, "r", awaits_default, &awaits[i], NULL) == 0);
    check_done_at(r[0], 0, 2);
    check_done_at(r[1], 0, 2);
    CHECK((awaits[0].rc == WEIR_EDEADLK) != (awaits[1].rc == WEIR_EDEADLK));
    check_done_at(m, 0, 10);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* A domain that could borrow, but did not, has nothing to give back. */
SIM_TEST(test_a_task_that_waits_for_its_own_slot_is_stuck_though_one_could_borrow, 60)
{
    weir_domain_policy domains[] = { { .name = "R", .slots = 1, .slots_mode = WEIR_RESERVED } };
    weir_group_policy groups[] = { { .key = "r", .domain = "R" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .slots = 2, .domains = domains, .domain_count = 1,
                                 .groups = groups, .group_count = 1));
    struct awaits awaits = { .ex = ex };
    struct body slow = { .ms = 10 };
    weir_task *r = submit(ex, "r", &slow), *d;

    CHECK(weir_submit_key(&d, ex, "d", awaits_default, &awaits, NULL) == 0);
    check_done_at(d, 0, 2);
    CHECK_EQ(awaits.rc, WEIR_EDEADLK);
    check_done_at(r, 0, 10);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Nor does a thread. */
SIM_TEST(test_a_task_that_waits_for_a_thread_and_for_its_own_slot_is_stuck, 60)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 1 } };
    weir_group_policy groups[] = { { .key = "g", .domain = "D", .run_on = WEIR_THREADS },
                                   { .key = "w", .domain = "D" },
                                   { .key = "h", .run_on = WEIR_THREADS } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, .slots = 6, .domains = domains,
                                 .domain_count = 1, .groups = groups, .group_count = 3));
    struct body hog = { .ms = 10 }, one = { .ms = 1 };
    struct awaits awaits = { .ex = ex };
    weir_task *h = submit(ex, "h", &hog), *g, *w;

    sleep_until(1);
    g = submit(ex, "g", &one);
    awaits.task = weir_task_ref(g);
    sleep_until(2);
    CHECK_EQ(why_of(g), WEIR_REASON_NO_THREAD);
    CHECK(weir_submit_key(&w, ex, "w", awaits_it, &awaits, NULL) == 0);
    check_done_at(w, 2, 3);
    CHECK_EQ(awaits.rc, WEIR_EDEADLK);
    check_done_at(h, 0, 10);
    check_done_at(g, 10, 11);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* But a task that waits only for a thread is not, though its domain has promised it nothing. */
SIM_TEST(test_a_task_that_waits_for_a_thread_alone_is_not_stuck, 60)
{
    weir_domain_policy domains[] = { { .name = "D", .slots = 2 } };
    weir_group_policy groups[] = { { .key = "g", .domain = "D", .run_on = WEIR_THREADS },
                                   { .key = "w", .domain = "D" },
                                   { .key = "h", .run_on = WEIR_THREADS } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .threads_max = 1, .slots = 6, .domains = domains,
                                 .domain_count = 1, .groups = groups, .group_count = 3));
    struct body hog = { .ms = 10 }, one = { .ms = 1 };
    struct awaits awaits = { .ex = ex };
    weir_task *h = submit(ex, "h", &hog), *g, *w;

    sleep_until(1);
    g = submit(ex, "g", &one);
    awaits.task = weir_task_ref(g);
    sleep_until(2);
    CHECK(weir_submit_key(&w, ex, "w", awaits_it, &awaits, NULL) == 0);
    check_done_at(w, 2, 11);
    CHECK_EQ(awaits.rc, 0);
    check_done_at(h, 0, 10);
    check_done_at(g, 10, 11);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* ---- without threads ---------------------------------------------------------------------------- */

static int busy(void **value, void *arg)
{
    (void)arg;
    *value = NULL;
    weir_sim_busy(1000 * MS);
    return 0;
}

static void told(weir_task *task, const weir_result *result, void *at_arg)
{
    (void)task;
    CHECK_EQ(result->outcome, WEIR_TIMED_OUT);
    *(weir_time *)at_arg = weir_now();
}

/* No thread can be started but the one that the body keeps: a worker tells of its end. */
static void late_without_threads(void *arg)
{
    weir_group_policy groups[] = { { .key = "t", .run_on = WEIR_THREADS } };
    weir_executor *ex = NULL;
    weir_task *task;
    weir_time when = 0;

    (void)arg;
    if (weir_executor_new(
            &ex,
            WEIR_POLICY(.workers = 2, .groups = groups, .group_count = 1, .deadlines.run_ms = 10),
            NULL))
        return;
    CHECK(weir_submit_key(&task, ex, "t", busy, NULL,
                          WEIR_TASK(.on_done = told, .on_done_arg = &when)) == 0);
    CHECK(weir_task_wait(NULL, task, at(500)) == 0);
    CHECK_EQ(weir_now(), at(10));
    weir_task_unref(task);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(when, at(10));
    check_books(ex);
    weir_executor_free(ex);
}

static void test_a_late_task_is_told_of_without_a_thread_to_spare(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 10; n++)
        explore(10, WEIR_SIM_OPTIONS(.seed = n, .fail_thread = n, .sticky = true),
                late_without_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_that_waits_for_a_thread_makes_room),
        cmocka_unit_test(test_a_called_group_does_not_wait_for_permits_another_needs),
        cmocka_unit_test(test_no_thread_is_kept_for_a_full_domain_if_its_tasks_may_wait_for_it),
        cmocka_unit_test(test_a_thread_kept_for_a_full_domain_goes_to_whom_its_body_waits_for),
        cmocka_unit_test(test_a_thread_kept_for_a_slot_that_is_taken_away_goes_to_others),
        cmocka_unit_test(test_a_task_that_needs_slot_and_thread_gets_both_some_time),
        cmocka_unit_test(test_a_task_that_waits_for_permits_and_for_its_own_slot_is_stuck),
        cmocka_unit_test(test_a_task_that_waits_for_a_slot_that_may_be_lent_is_not_stuck),
        cmocka_unit_test(test_a_task_that_waits_behind_others_that_can_start_is_not_stuck),
        cmocka_unit_test(test_a_task_that_waits_for_one_that_is_asked_to_end_is_not_stuck),
        cmocka_unit_test(test_a_task_that_waits_for_one_that_is_being_refused_is_not_stuck),
        cmocka_unit_test(
            test_a_task_that_waits_for_a_borrowed_slot_is_stuck_whatever_ends_elsewhere),
        cmocka_unit_test(test_a_task_that_waits_for_its_own_slot_is_stuck_though_one_could_borrow),
        cmocka_unit_test(test_a_task_that_waits_for_a_thread_and_for_its_own_slot_is_stuck),
        cmocka_unit_test(test_a_task_that_waits_for_a_thread_alone_is_not_stuck),
        cmocka_unit_test(test_a_late_task_is_told_of_without_a_thread_to_spare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
