/* Random lives of executors with domains in which everything happens at once: tasks with and without handles,
 * priorities, costs, pending bodies, nested waits, callbacks that call back, paces, cool-downs, changed limits, threads,
 * all ways of rejection.
 * At the end nothing may be left, and at quiet moments no task may wait beside units it could have.
 * SPDX-License-Identifier: MIT */
#include "support/life_support.h"

enum { SUBMITTERS = 2, TASKS = 30, SLOTS = 7, CONTROLS = 30, CALLBACKS = 40 };

struct world {
    weir_executor *ex;
    _Atomic int done, began, dropped, called_back;
    bool blocking;
};
static struct world world;

static void drop(void *value)
{
    (void)value;
    world.dropped++;
}

static int body(void **value, void *arg);

/* Makes a call of its own, now and then. */
static void calls_back(weir_task *task, const weir_result *result, void *arg)
{
    (void)arg;
    CHECK(result->outcome != WEIR_UNSETTLED);
    if (world.called_back++ > CALLBACKS)
        return;
    switch (pick(4)) {
    case 0:
        weir_submit_key(NULL, world.ex, group_name[pick(GROUPS)], body, (void *)(uintptr_t)pick(3),
                        WEIR_TASK(.on_done = calls_back, .deadline = weir_now() + MS));
        break;
    case 1:
        settle_some(3);
        break;
    case 2:
        CHECK(!weir_task_cancel(task));
        break;
    default:
        break;
    }
}

/* Waits for a task of any group. */
static int nests(void)
{
    weir_task *task = NULL;
    int rc;

    if (weir_submit_key(&task, world.ex, group_name[pick(GROUPS)], sleeps,
                        (void *)(intptr_t)pick(6), WEIR_TASK(.deadline = weir_now() + MS)))
        return 0;
    rc = weir_task_wait(NULL, task, pick(2) ? WEIR_FOREVER : weir_now() + pick(20) * MS);
    CHECK(rc == 0 || rc == WEIR_ETIMEDOUT || rc == WEIR_EDEADLK || rc == WEIR_ECANCELED ||
          rc == WEIR_EREJECTED);
    weir_task_unref(task);
    return 0;
}

static int body(void **value, void *arg)
{
    uint32_t kind = (uint32_t)(uintptr_t)arg, ms = pick(20);

    *value = kind % 2 ? &world : NULL;
    world.began++;
    switch (kind % 7) {
    case 0:
        return 0;
    case 1:
        weir_yield();
        break;
    case 2:
        return weir_sleep(weir_now() + ms * MS);
    case 3:
        if (world.blocking)
            weir_sim_busy(ms * MS);
        break;
    case 4:
        return stay_pending();
    case 5:
        return nests();
    default:
        return -EIO;
    }
    return 0;
}

static void submitter(void *number_arg)
{
    int number = (int)(intptr_t)number_arg;
    weir_task *last = NULL;

    for (int i = 0; i < TASKS; i++) {
        weir_task_options *opt =
            WEIR_TASK(.deadlines = { .wait_ms = pick(4) ? 0 : 1 + pick(40),
                                     .run_ms = pick(4) ? 0 : 1 + pick(20),
                                     .total_ms = pick(4) ? 0 : 1 + pick(50) },
                      .priority = pick(5), .cost = 1 + pick(3), .drop = pick(2) ? drop : NULL,
                      .on_done = pick(3) ? NULL : calls_back,
                      .deadline = weir_now() + pick(40) * MS);
        bool keeps = pick(2);
        weir_task *task = NULL;
        weir_submit_key(keeps ? &task : NULL, world.ex,
                        group_name[(int)pick(GROUPS / SUBMITTERS) * SUBMITTERS + number], body,
                        (void *)(uintptr_t)pick(7), pick(3) ? opt : NULL);
        if (pick(4) == 0)
            weir_sleep(weir_now() + pick(20) * MS);
        if (task && pick(3) == 0)
            weir_task_cancel(task);
        if (task) {
            weir_task_unref(last);
            last = task;
        }
        if (last && pick(6) == 0)
            weir_task_cancel(last);
        if (last && pick(5) == 0) {
            weir_why why = { .size = sizeof(why) };
            CHECK(weir_task_why(&why, last) == 0);
        }
    }
    weir_task_unref(last);
    world.done++;
}

static void control(void)
{
    const char *domain = domain_name[1 + pick(DOMAINS - 1)];
    weir_group *group = NULL;

    CHECK(weir_group_get(&group, world.ex, group_name[pick(GROUPS)]) == 0);
    switch (pick(13)) {
    case 0:
        weir_domain_release(world.ex, domain, domain_name[pick(DOMAINS)],
                            pick(3) ? 0 : WEIR_CANCEL_RUNNING, NULL);
        break;
    case 1:
        weir_domain_restore(world.ex, domain, NULL);
        break;
    case 2:
        CHECK(weir_group_evict(world.ex, group_name[pick(GROUPS)],
                               (pick(2) ? WEIR_CARRY_OVER : 0) |
                                   (pick(3) ? 0 : WEIR_CANCEL_RUNNING)) == 0);
        break;
    case 3:
        weir_group_pause(group);
        weir_sleep(weir_now() + pick(10) * MS);
        weir_group_resume(group);
        break;
    case 4:
        weir_group_cool_down(group, weir_now() + pick(10) * MS);
        break;
    case 5:
        weir_group_pace(group, pick(3), 1 + pick(5) * MS, 1 + pick(3));
        break;
    case 6:
        weir_group_resize(group, 3 + pick(3), pick(2) ? 3 + pick(4) : 0, 0);
        break;
    case 7:
        weir_executor_resize(world.ex, pick(3) ? 3 + pick(6) : WEIR_NO_LIMIT, 0);
        break;
    case 8:
        weir_group_run_on(group, pick(2) ? WEIR_THREADS : WEIR_WORKERS);
        break;
    case 9:
        weir_group_set_weight(group, 1 + pick(3));
        break;
    case 10:
    case 11:
        weir_domain_resize(world.ex, domain, pick(5), pick(2) ? pick(9) : 0, NULL);
        break;
    default:
        settle_some(3);
    }
}

static weir_executor *random_executor(void)
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
                                   { .key = "g2", .limit = 3 + pick(2), .queue_max = 4 } };

    return new_executor(
        WEIR_POLICY(.workers = 1 + pick(2), .group_limit = WEIR_NO_LIMIT, .slots = SLOTS,
                    .queue_places = 20, .inflight_max = pick(2) ? 0 : 3 + pick(6),
                    .domains = domains, .domain_count = DOMAINS, .groups = groups, .group_count = 2,
                    .domain_for = domain_for, .threads_max = 1 + pick(3),
                    .rejection = (weir_rejection)pick(4), .overdue = (weir_overdue)pick(3),
                    .overdue_max = 1 + pick(3), .default_floor = pick(2),
                    .stall_policy = (weir_stall_policy)pick(2), .idle_evict_ms = pick(2) ? 5 : 0,
                    .lending = { .period_ms = pick(3) ? 3 : 0,
                                 .hold = 1 + pick(2),
                                 .headroom_percent = pick(2) ? WEIR_NONE : 25 }));
}

/* Restores all, and sees to it that the default domain has slots: it may have been left without. */
static void leave_slots_to_all(void)
{
    for (int d = 1; d < DOMAINS; d++) {
        weir_domain_restore(world.ex, domain_name[d], NULL);
        weir_domain_resize(world.ex, domain_name[d], 1, 0,
                           NULL); /* unless its restore is not over */
    }
}

static void wild_life(void *arg)
{
    int64_t thread[SUBMITTERS];

    (void)arg;
    memset(&world, 0, sizeof(world));
    memset(&pending, 0, sizeof(pending));
    world.blocking = pick(2);
    world.ex = random_executor();
    for (int i = 0; i < SUBMITTERS; i++)
        thread[i] = weir_sim_thread(submitter, (void *)(intptr_t)i, i ? "second" : "first");
    for (int i = 0; i < CONTROLS && world.done < SUBMITTERS; i++) {
        weir_sleep(weir_now() + pick(8) * MS);
        control();
    }
    while (world.done < SUBMITTERS) {
        leave_slots_to_all();
        settle_some(1);
        weir_sleep(weir_now() + MS);
    }
    for (int i = 0; i < SUBMITTERS; i++)
        weir_sim_join(thread[i]);
    weir_time end = weir_now() + 3000 * MS;
    int rc;
    do {
        leave_slots_to_all();
        settle_some(1);
        rc = weir_executor_drain(world.ex, weir_now() + MS);
    } while (rc && weir_now() < end);
    if (rc)
        for (int i = 0; i < GROUPS; i++) {
            weir_group_stats s = { .size = sizeof(s) };
            if (weir_group_stats_get(&s, world.ex, group_name[i]) == 0)
                printf("%s: waiting %lld running %lld\n", group_name[i], (long long)s.waiting,
                       (long long)s.running);
        }
    CHECK_EQ(rc, 0);
    weir_sleep(weir_now() + 100 * MS); /* bodies that run on without their slots return */
    settle_some(1);
    check_domain_books(world.ex);
    CHECK_EQ(stats_all(world.ex).overdue, 0);
    weir_executor_free(world.ex);
}

static void everything_at_once(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), wild_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
