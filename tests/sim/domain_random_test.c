/* Whole executors with domains under random schedules: submits, cancels, deadlines, pauses, evictions, lending,
 * recall, forced release, restore and resize at any moment. The ledger checks itself after every step of it
 * (WR_ASSERT_SLOW: D1-D4, D6, D8, D9). Here bodies and tasks are counted against it from outside, at
 * quiet moments no task may wait beside a slot it could have, and at the end all books are zero (D7).
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

enum { DOMAINS = 4, GROUPS = 6, SUBMITTERS = 2, TASKS = 24, SLOTS = 7, CONTROLS = 25 };

struct world {
    weir_executor *ex;
    _Atomic int running, done;
    weir_overdue overdue;
    bool blocking; /* some bodies block their worker */
};

struct job {
    struct world *world;
    int group;
    uint32_t kind, ms;
    weir_task *task;
    _Atomic bool began;
};

struct submitter {
    struct world *world;
    int number;
    struct job job[TASKS];
};

static const char *const domain_name[DOMAINS] = { "default", "max", "reserved", "own" };
static const char *const group_name[GROUPS] = { "g0", "g1", "g2", "g3", "g4", "g5" };

static uint32_t pick(uint32_t below)
{
    return (uint32_t)(weir_sim_random() % below);
}

static int domain_for(const char **domain, const char *key, void *arg)
{
    (void)arg;
    *domain = domain_name[(key[1] - '0') % DOMAINS];
    return 0;
}

/* D-22: bodies never exceed the slots, unless the watchdog took the slots of some that run on. */
static int body(void **value, void *job_arg)
{
    struct job *job = job_arg;
    struct world *world = job->world;

    *value = NULL;
    job->began = true;
    CHECK(++world->running <= SLOTS || world->overdue != WEIR_HOLD);
    if (job->kind == 0)
        weir_yield();
    else if (job->kind == 1 || !world->blocking)
        weir_sleep(weir_now() + job->ms * MS);
    else
        weir_sim_busy(job->ms * MS);
    world->running--;
    return job->kind == 3 ? -EIO : 0;
}

static void submitter(void *submitter_arg)
{
    struct submitter *self = submitter_arg;

    for (int i = 0; i < TASKS; i++) {
        struct job *job = &self->job[i];
        weir_task_options *opt = WEIR_TASK(.deadlines = { .wait_ms = pick(3) ? 0 : 1 + pick(40),
                                                          .run_ms = pick(3) ? 0 : 1 + pick(20),
                                                          .total_ms = pick(3) ? 0 : 1 + pick(50) });
        *job = (struct job){ .world = self->world,
                             .group = (int)pick(GROUPS / SUBMITTERS) * SUBMITTERS + self->number,
                             .kind = pick(4),
                             .ms = pick(25) };
        if (job->group != 2) /* whose limit may be 1 */
            opt->cost = 1 + pick(2);
        CHECK(weir_submit_key(&job->task, self->world->ex, group_name[job->group], body, job,
                              pick(2) ? opt : NULL) == 0);
        if (pick(4) == 0)
            weir_sleep(weir_now() + pick(20) * MS);
        if (pick(6) == 0)
            weir_task_cancel(self->job[pick((uint32_t)i + 1)].task);
    }
    self->world->done++;
}

static void control(struct world *world)
{
    const char *domain = domain_name[1 + pick(DOMAINS - 1)];
    weir_group *group = NULL;
    int rc;

    switch (pick(8)) {
    case 0:
        rc = weir_domain_release(world->ex, domain, domain_name[pick(DOMAINS)],
                                 pick(3) ? 0 : WEIR_CANCEL_RUNNING, NULL);
        CHECK(rc == 0 || rc == WEIR_EALREADY || rc == WEIR_EINVAL);
        break;
    case 1:
    case 2:
        rc = weir_domain_restore(world->ex, domain, NULL);
        CHECK(rc == 0 || rc == WEIR_EALREADY);
        break;
    case 3:
    case 4: /* refused if there is not so much, or if it is part of a release */
        rc =
            weir_domain_resize(world->ex, domain, pick(5), pick(2) ? pick(9) : WEIR_NO_QUEUE, NULL);
        CHECK(rc == 0 || rc == WEIR_EINVAL);
        break;
    case 5:
        if (pick(2))
            CHECK(weir_group_evict(world->ex, group_name[pick(GROUPS)],
                                   pick(2) ? WEIR_CARRY_OVER : 0) == 0);
        break;
    default:
        CHECK(weir_group_get(&group, world->ex, group_name[pick(GROUPS)]) == 0);
        if (pick(2))
            weir_group_pause(group);
        weir_sleep(weir_now() + pick(10) * MS);
        weir_group_resume(group);
    }
}

static weir_executor *random_executor(struct world *world)
{
    weir_domain_policy domains[] = {
        { .name = "max", .slots = 1 + pick(2), .queue = 1 + pick(6) },
        { .name = "reserved",
          .slots = 1 + pick(2),
          .slots_mode = WEIR_RESERVED,
          .queue = 1 + pick(3),
          .queue_mode = WEIR_RESERVED,
          .weight = 1 + pick(3) },
        { .name = "own",
          .slots = 1 + pick(2),
          .slots_mode = WEIR_RESERVED,
          .queue = 1 + pick(6),
          .workers = pick(2) },
        { .name = "default", .lend_max = pick(2) ? 1 : 0, .queue_lend_max = pick(2) ? 3 : 0 },
    };
    weir_group_policy groups[] = { { .key = "g1", .run_on = WEIR_THREADS, .domain = "max" },
                                   { .key = "g2", .limit = 1 + pick(2), .queue_max = 4 } };

    world->overdue = (weir_overdue)pick(3);
    return new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = SLOTS, .queue_places = 20,
                    .inflight_max = pick(2) ? 0 : 3 + pick(6), .domains = domains,
                    .domain_count = DOMAINS, .groups = groups, .group_count = 2,
                    .domain_for = domain_for, .rejection = WEIR_DISCARD, .overdue = world->overdue,
                    .default_floor = pick(2), .stall_policy = (weir_stall_policy)pick(2),
                    .lending = { .period_ms = pick(3) ? 3 : 0,
                                 .hold = 1 + pick(2),
                                 .headroom_percent = pick(2) ? WEIR_NONE : 25 }));
}

/* Restores all, and sees to it that the default domain has slots: it may have been left without. A domain whose restore
 * is not over may have to wait for the default one's tasks, and these for slots of another domain. */
static void leave_slots_to_all(weir_executor *ex)
{
    bool again = true;

    for (int d = 1; d < DOMAINS; d++)
        weir_domain_restore(ex, domain_name[d], NULL);
    while (again) {
        again = false;
        for (int d = 1; d < DOMAINS; d++)
            again |= weir_domain_resize(ex, domain_name[d], 1, 0, NULL) != 0;
        if (again)
            weir_sleep(weir_now() + MS);
    }
}

/* D5: those of a group that started did so in the order in which they came. */
static void check_order(const struct submitter *s)
{
    weir_time last[GROUPS] = { 0 };

    for (int i = 0; i < TASKS; i++) {
        const struct job *job = &s->job[i];
        weir_result result = WEIR_RESULT;
        int rc = weir_task_wait(&result, job->task, WEIR_FOREVER);
        CHECK(rc == 0);
        if (!job->began)
            continue;
        CHECK(result.started_at >= last[job->group]);
        last[job->group] = result.started_at;
    }
}

static void random_life(void *arg)
{
    static struct world world;
    static struct submitter s[SUBMITTERS];
    int64_t thread[SUBMITTERS];

    (void)arg;
    world = (struct world){ .blocking = pick(2) };
    world.ex = random_executor(&world);
    for (int i = 0; i < SUBMITTERS; i++) {
        s[i] = (struct submitter){ .world = &world, .number = i };
        thread[i] = weir_sim_thread(submitter, &s[i], i ? "second" : "first");
    }
    for (int i = 0; i < CONTROLS && world.done < SUBMITTERS; i++) {
        weir_sleep(weir_now() + pick(8) * MS);
        control(&world);
    }
    for (int i = 0; i < SUBMITTERS; i++)
        weir_sim_join(thread[i]);
    leave_slots_to_all(world.ex);
    for (int i = 0; i < SUBMITTERS; i++)
        check_order(&s[i]);
    CHECK(weir_executor_drain(world.ex, WEIR_FOREVER) == 0);
    weir_sleep(weir_now() + 100 * MS); /* bodies that run on without their slots return */
    check_domain_books(world.ex);
    CHECK_EQ(world.running, 0);
    CHECK_EQ(stats_all(world.ex).overdue, 0);
    for (int i = 0; i < SUBMITTERS; i++)
        for (int j = 0; j < TASKS; j++)
            weir_task_unref(s[i].job[j].task);
    weir_executor_free(world.ex);
}

static void test_random_lives_keep_the_books(void **state)
{
    (void)state;
    explore(1500, WEIR_SIM_OPTIONS(.seed = 1), random_life);
}

/* The same while the clock jumps: deadlines overtake what they bound. */
static void test_random_lives_keep_the_books_while_the_clock_slips(void **state)
{
    (void)state;
    explore(500, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 200), random_life);
}

/* ---- work conservation -------------------------------------------------------------------------- */

/* At a quiet moment, all workers asleep: every slot that was granted carries a body, and no task waits in a
 * domain that could be given one. */
static void check_conserving(weir_executor *ex, int64_t floor)
{
    weir_domain_stats pool = domain_of(ex, "default");
    int64_t idle_default = pool.limit - (pool.used - pool.borrowed) - pool.charged;
    int64_t used = 0, running = (int64_t)stats_all(ex).running;

    for (int d = 0; d < DOMAINS; d++) {
        weir_domain_stats s = domain_of(ex, domain_name[d]);
        int64_t idle = s.limit - (s.used - s.borrowed - s.overhang) - s.charged;
        used += s.used;
        if (!s.waiting || s.released)
            continue;
        CHECK_EQ(idle, 0);
        if (s.slots_mode == WEIR_RESERVED)
            CHECK(idle_default == 0 || pool.charged >= pool.limit - floor);
    }
    for (int d = 0; d < DOMAINS; d++) {
        weir_domain_stats s = domain_of(ex, domain_name[d]);
        if (s.recalled)
            CHECK_EQ(s.limit - (s.used - s.borrowed - s.overhang) - s.charged, 0);
    }
    CHECK_EQ(used, running);
}

static void busy_life(void *arg)
{
    static struct job job[TASKS * 2];
    static struct world world;
    int64_t floor = pick(2);
    weir_domain_policy domains[] = {
        { .name = "max", .slots = 2 },
        { .name = "reserved", .slots = 1, .slots_mode = WEIR_RESERVED },
        { .name = "own", .slots = 2, .slots_mode = WEIR_RESERVED, .workers = 1 },
    };

    (void)arg;
    world = (struct world){ .overdue = WEIR_HOLD };
    world.ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = SLOTS, .domains = domains,
                    .domain_count = 3, .domain_for = domain_for, .rejection = WEIR_DISCARD,
                    .default_floor = floor, .lending = { .period_ms = 5, .hold = 1 }));
    for (int i = 0; i < TASKS * 2; i++) {
        job[i] = (struct job){ .world = &world, .kind = 1, .ms = pick(40) };
        CHECK(weir_submit_key(&job[i].task, world.ex, group_name[pick(GROUPS)], body, &job[i],
                              NULL) == 0);
        if (pick(5) == 0) {
            weir_sleep(weir_now() + pick(30) * MS + 1000); /* a moment of its own: no event then */
            check_conserving(world.ex, floor);
        }
        if (pick(8) == 0)
            weir_domain_release(world.ex, domain_name[1 + pick(3)], NULL, 0, NULL);
        if (pick(4) == 0)
            weir_domain_restore(world.ex, domain_name[1 + pick(3)], NULL);
        if (pick(8) == 0)
            weir_domain_resize(world.ex, domain_name[1 + pick(3)], 1 + pick(4), 0, NULL);
    }
    leave_slots_to_all(world.ex);
    CHECK(weir_executor_drain(world.ex, WEIR_FOREVER) == 0);
    for (int i = 0; i < TASKS * 2; i++)
        weir_task_unref(job[i].task);
    check_domain_books(world.ex);
    weir_executor_free(world.ex);
}

static void test_no_task_waits_beside_a_slot_it_could_have(void **state)
{
    (void)state;
    explore(2000, WEIR_SIM_OPTIONS(.seed = 1), busy_life);
}

/* ---- hand-over ------------------------------------------------------------------------------------ */

static int counts(void **value, void *ran_arg)
{
    *value = NULL;
    ++*(_Atomic int *)ran_arg;
    if (pick(4) == 0)
        weir_sim_busy(pick(3) * 1000);
    return 0;
}

/* Tasks without handles hand their slots on within their group, while others submit, pause, and workers
 * take the same groups. */
static void detached_life(void *arg)
{
    static _Atomic int ran;
    weir_domain_policy domains[] = {
        { .name = "max", .slots = 1 + pick(3) },
        { .name = "reserved", .slots = 1 + pick(2), .slots_mode = WEIR_RESERVED },
    };
    int submitted = 0;
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2 + pick(2), .group_limit = 1 + pick(4), .slots = SLOTS,
                                 .domains = domains, .domain_count = 2, .domain_for = domain_for,
                                 .unknown_domain_is_default = true,
                                 .lending = { .period_ms = pick(2) ? 1 : 0, .hold = 1 }));

    (void)arg;
    ran = 0;
    for (int i = 0; i < 60; i++) {
        const char *key = group_name[pick(GROUPS)];
        CHECK(weir_submit_key(NULL, ex, key, counts, (void *)&ran, NULL) == 0);
        submitted++;
        if (pick(12) == 0)
            weir_sleep(weir_now() + pick(2000));
        if (pick(16) == 0) {
            weir_group_pause(group_of(ex, key));
            weir_group_resume(group_of(ex, key));
        }
    }
    check_domain_books(ex);
    CHECK_EQ(ran, submitted);
    weir_executor_free(ex);
}

static void test_slots_are_handed_on_within_a_group(void **state)
{
    (void)state;
    explore(1500, WEIR_SIM_OPTIONS(.seed = 1), detached_life);
}

/* ---- without memory ------------------------------------------------------------------------------ */

static void short_life(void *arg)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1, .queue = 4 },
                                     { .name = "B", .slots = 2, .queue = 4, .workers = 1 } };
    weir_executor *ex = NULL;
    weir_task *task = NULL;

    (void)arg;
    if (weir_executor_new(
            &ex,
            AB_POLICY(domains, 4, 12, .lending = { .period_ms = 5 }, .deadlines = { .run_ms = 20 }),
            NULL))
        return;
    for (int i = 0; i < 4; i++) {
        if (weir_submit_key(&task, ex, i % 2 ? "A" : "B", work, NULL, NULL) == 0) {
            weir_task_wait(NULL, task, WEIR_FOREVER);
            weir_task_unref(task);
        }
    }
    weir_domain_release(ex, "A", "B", 0, NULL);
    weir_domain_restore(ex, "A", NULL);
    CHECK(weir_domain_resize(ex, "A", 2, 5, NULL) == 0);
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static void test_every_failure_to_get_memory_or_threads_is_survived(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(weir_sim_run(&report, NULL, short_life, NULL), 0);
    for (uint64_t n = 1, count = report.allocs; n <= count; n++)
        explore(1, WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n), short_life);
    for (uint64_t n = 1, count = report.threads; n <= count; n++)
        explore(1, WEIR_SIM_OPTIONS(.seed = 1, .fail_thread = n), short_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lives_keep_the_books),
        cmocka_unit_test(test_random_lives_keep_the_books_while_the_clock_slips),
        cmocka_unit_test(test_no_task_waits_beside_a_slot_it_could_have),
        cmocka_unit_test(test_slots_are_handed_on_within_a_group),
        cmocka_unit_test(test_every_failure_to_get_memory_or_threads_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
