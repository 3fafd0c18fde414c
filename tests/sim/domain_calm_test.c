/* Random lives of executors whose groups compete for threads, slots and permits, and in which no call comes to their help:
 * a wake-up that is lost stays lost. At quiet moments no task may wait beside units it could have.
 * SPDX-License-Identifier: MIT */
#include "support/life_support.h"

enum { TASKS = 40, CALLBACKS = 20 };

struct calm {
    weir_executor *ex;
    bool domains, places; /* and places are divided */
    bool nested;          /* bodies wait for tasks */
    uint32_t cost_max;
    weir_task *task[TASKS];
    uint32_t priority[TASKS];
    int count;
    _Atomic int called_back;
    _Atomic bool over;
};
static struct calm calm;

static int nests(void **value, void *ms_arg)
{
    weir_task *task = NULL;
    int rc;

    *value = NULL;
    if (weir_submit_key(&task, calm.ex, group_name[pick(GROUPS)], sleeps, ms_arg, NULL))
        return 0;
    rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    CHECK(rc == 0 || rc == WEIR_EDEADLK || rc == WEIR_ECANCELED || rc == WEIR_EREJECTED);
    weir_task_unref(task);
    return 0;
}

/* Makes a call of its own. Its tasks have no handles: they stand in no order with those of other threads. */
static void calls_back(weir_task *task, const weir_result *result, void *arg)
{
    (void)arg;
    CHECK(result->outcome != WEIR_UNSETTLED);
    if (calm.called_back++ > CALLBACKS)
        return;
    switch (pick(3)) {
    case 0:
        weir_submit_key(NULL, calm.ex, group_name[pick(GROUPS)], sleeps, (void *)(intptr_t)pick(4),
                        WEIR_TASK(.on_done = calls_back, .deadline = weir_now()));
        break;
    case 1:
        settle_some(2);
        break;
    default:
        CHECK(!weir_task_cancel(task));
        break;
    }
}

static weir_fn *some_body(void)
{
    if (calm.nested && pick(4) == 0)
        return nests;
    return pick(6) ? sleeps : pends;
}

static void submit_some(int count)
{
    for (int i = 0; i < count && calm.count < TASKS; i++) {
        weir_task_options *opt =
            WEIR_TASK(.cost = 1 + pick(calm.cost_max), .priority = pick(8) ? 0 : 1 + pick(3),
                      .on_done = pick(3) ? NULL : calls_back);
        weir_task *task = NULL;
        if (pick(3))
            opt = NULL;
        if (weir_submit_key(&task, calm.ex, group_name[pick(GROUPS)], some_body(),
                            (void *)(intptr_t)pick(12), opt))
            continue;
        calm.priority[calm.count] = opt && opt->priority ? opt->priority : WEIR_NORMAL;
        calm.task[calm.count++] = task;
    }
}

static void control(void)
{
    weir_group *group = NULL;

    CHECK(weir_group_get(&group, calm.ex, group_name[pick(GROUPS)]) == 0);
    switch (pick(11)) {
    case 8:
        if (calm.domains)
            weir_domain_resize(calm.ex, domain_name[1 + pick(DOMAINS - 1)], 1 + pick(2),
                               calm.places ? 1 + pick(3) : 0, NULL);
        break;
    case 9:
        if (calm.domains) {
            const char *name = domain_name[1 + pick(DOMAINS - 1)];
            weir_domain_release(calm.ex, name, domain_name[pick(DOMAINS)], 0, NULL);
            weir_sleep(weir_now() + pick(10) * MS);
            weir_domain_restore(calm.ex, name, NULL);
        }
        break;
    case 0:
        weir_group_pause(group);
        weir_sleep(weir_now() + pick(10) * MS);
        weir_group_resume(group);
        break;
    case 1:
        weir_group_run_on(group, pick(3) ? WEIR_THREADS : WEIR_WORKERS);
        break;
    case 2:
        weir_group_set_weight(group, 1 + pick(3));
        break;
    case 3:
        if (pick(3) == 0)
            weir_group_evict(calm.ex, group_name[pick(GROUPS)], pick(2) ? WEIR_CARRY_OVER : 0);
        break;
    case 4:
        if (calm.count)
            weir_task_cancel(calm.task[pick((uint32_t)calm.count)]);
        break;
    case 5:
        weir_group_resize(group, 3 + pick(3), 0, 0);
        break;
    case 6:
        weir_executor_resize(calm.ex, 3 + pick(4), 0);
        break;
    default:
        break;
    }
}

/* The task waits for units that are there. */
static bool waits_in_vain(weir_task *task)
{
    weir_why why = { .size = sizeof(why) };

    CHECK(weir_task_why(&why, task) == 0);
    switch (why.reason) {
    case WEIR_REASON_NO_WORKER:
        return true;
    case WEIR_REASON_NO_THREAD:
        return why.held < why.limit;
    case WEIR_REASON_DOMAIN_SLOTS:
        return why.held < why.limit;
    case WEIR_REASON_GLOBAL_INFLIGHT:
        return calm.cost_max == 1 && why.held < why.limit;
    default:
        return false;
    }
}

/* A moment later, unless something happens just then. */
static void check_no_task_waits_in_vain(void)
{
    bool in_vain = true;

    for (int tries = 0; in_vain && tries < 4; tries++) {
        CHECK(weir_sleep(weir_now() + 101 + tries) == 0);
        in_vain = false;
        for (int i = 0; i < calm.count; i++)
            in_vain |= waits_in_vain(calm.task[i]);
    }
    CHECK(!in_vain);
}

static void new_calm(void)
{
    memset(&calm, 0, sizeof(calm));
    memset(&pending, 0, sizeof(pending));
    calm.domains = pick(3);
    calm.places = calm.domains && pick(2);
    weir_domain_policy domains[] = {
        { .name = "max", .slots = 1 + pick(2), .queue = calm.places ? 1 + pick(3) : 0 },
        { .name = "reserved",
          .slots = 1 + pick(2),
          .slots_mode = WEIR_RESERVED,
          .queue = calm.places ? 1 + pick(3) : 0,
          .queue_mode = pick(2) ? WEIR_RESERVED : WEIR_MAX,
          .weight = 1 + pick(3) },
        { .name = "own",
          .slots = 1 + pick(2),
          .queue = calm.places ? 1 + pick(3) : 0,
          .workers = 1 },
    };
    weir_group_policy groups[GROUPS];
    size_t count = 0;

    calm.nested = pick(3) == 0;
    calm.cost_max = pick(2) ? 1 : 3;
    memset(groups, 0, sizeof(groups));
    for (int i = 0; i < GROUPS; i++) {
        if (pick(4) == 0)
            continue;
        groups[count].key = group_name[i];
        groups[count].limit = 3 + pick(3);
        groups[count].run_on = pick(4) ? WEIR_THREADS : WEIR_WORKERS;
        groups[count++].weight = 1 + pick(3);
    }
    calm.ex = new_executor(
        WEIR_POLICY(.workers = 1 + pick(2), .group_limit = 3, .slots = calm.domains ? 7 : 0,
                    .inflight_max = pick(2) ? 0 : 3 + pick(4),
                    .domains = calm.domains ? domains : NULL, .domain_count = calm.domains ? 3 : 0,
                    .groups = groups, .group_count = count,
                    .domain_for = calm.domains ? domain_for : NULL, .threads_max = 1 + pick(3),
                    .queue_max = pick(2) ? 0 : 3, .queue_places = calm.places ? 12 : 0,
                    .lending = { .period_ms = calm.domains && pick(3) == 0 ? 5 : 0, .hold = 1 },
                    .rejection = pick(2) ? WEIR_BLOCK : WEIR_DISCARD));
}

/* Of one group and priority, the task that came first started first. */
static void check_order(void)
{
    for (int i = 0; i < calm.count; i++) {
        weir_result first = WEIR_RESULT, next = WEIR_RESULT;
        weir_task_wait(&first, calm.task[i], WEIR_FOREVER);
        for (int j = i + 1; j < calm.count && first.outcome == WEIR_DONE; j++) {
            weir_task_wait(&next, calm.task[j], WEIR_FOREVER);
            if (next.outcome == WEIR_DONE && calm.priority[i] == calm.priority[j] &&
                strcmp(weir_task_key(calm.task[i]), weir_task_key(calm.task[j])) == 0)
                CHECK(first.started_at <= next.started_at);
        }
    }
}

/* Settles what is pending, and helps with nothing else. */
static void settler(void *arg)
{
    (void)arg;
    while (!calm.over) {
        weir_sim_busy((1 + pick(4)) * MS);
        settle_some(2);
    }
}

static void live(void)
{
    while (calm.count < TASKS) {
        submit_some(1 + (int)pick(8));
        if (pick(2))
            weir_sleep(weir_now() + pick(12) * MS);
        if (pick(2))
            control();
        if (pick(2))
            check_no_task_waits_in_vain();
    }
    CHECK(weir_executor_drain(calm.ex, WEIR_FOREVER) == 0);
}

static void calm_life(void *arg)
{
    int64_t thread = weir_sim_thread(settler, NULL, "settler");

    (void)arg;
    new_calm();
    live();
    calm.over = true;
    weir_sim_join(thread);
    settle_some(1); /* what was cancelled, and has a handle yet */
    check_order();
    for (int i = 0; i < calm.count; i++)
        weir_task_unref(calm.task[i]);
    if (calm.domains)
        check_domain_books(calm.ex);
    else
        check_books(calm.ex);
    weir_executor_free(calm.ex);
}

static void no_task_needs_help(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), calm_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_task_needs_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
