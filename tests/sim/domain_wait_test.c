/* Random lives of executors whose bodies wait for tasks, while costs, limits, slots, threads and permits stand in each
 * other's way. A wait that is refused must be one that would never have ended: who is refused holds on to all it has,
 * and if what it wanted to wait for ends all the same, though nobody gave up or changed anything, the refusal was
 * wrong.
 * SPDX-License-Identifier: MIT */
#include "support/life_support.h"

enum { TASKS = 24, HOLD_MS = 400, NESTED_MAX = 64, WAITS_MAX = 2 * NESTED_MAX };

/* A body's wait. It is refused when the circle is put in words, perhaps a while before the body hears of it; or, if it has
 * only just begun, by what was seen before that. */
struct wait {
    weir_message why;
    weir_time began;
    bool changed; /* since then a call was made, or a body gave up: that may have set it free */
};

struct life {
    weir_executor *ex;
    uint32_t cost_max;
    bool deadlines, domains;
    _Atomic int changes; /* under way */
    _Atomic int refused, nested;
    struct wait *wait[WAITS_MAX]; /* of each body that may wait; NULL: none, or it is over */
};
static struct life life;

static void begin_change(void)
{
    life.changes++;
}

static void end_change(void)
{
    weir_time now = weir_now();

    for (int i = 0; i < WAITS_MAX; i++)
        if (life.wait[i] && (life.wait[i]->why.text[0] || life.wait[i]->began == now))
            life.wait[i]->changed = true;
    life.changes--;
}

static int waits(void **value, void *ms_arg);

static int submit_one(weir_task **task, uint32_t nests)
{
    weir_task_options *opt =
        WEIR_TASK(.cost = 1 + pick(life.cost_max), .priority = pick(6) ? 0 : 1 + pick(3),
                  .deadlines = { .wait_ms = life.deadlines && pick(3) == 0 ? 1 + pick(60) : 0,
                                 .run_ms = life.deadlines && pick(3) == 0 ? 1 + pick(60) : 0 });
    weir_fn *fn = pick(3) < nests && life.nested < NESTED_MAX ? waits : sleeps;
    int rc;

    begin_change(); /* it may go ahead of others */
    rc = weir_submit_key(task, life.ex, group_name[pick(GROUPS)], fn, (void *)(intptr_t)pick(12),
                         pick(2) ? opt : NULL);
    end_change();
    return rc;
}

static bool timed_out(weir_task *task)
{
    weir_result result = WEIR_RESULT;

    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0);
    return result.outcome == WEIR_TIMED_OUT;
}

/* Holds on to what it has. */
static void check_never_ends(weir_task *task, const struct wait *wait)
{
    weir_time until = weir_now() + HOLD_MS * MS;

    life.refused++;
    while (weir_now() < until && !wait->changed && !weir_cancelled()) {
        bool done = weir_task_done(task);
        if (done && !life.changes && !wait->changed && !timed_out(task))
            weir_sim_fail("refused at %lld ms, but it ended: %s",
                          (long long)((until - HOLD_MS * MS) / MS), wait->why.text);
        weir_sleep(weir_now() + MS);
    }
    begin_change();
    end_change();
}

static int waits(void **value, void *ms_arg)
{
    int number = life.nested++;
    struct wait wait = { 0 };
    weir_task *task = NULL;
    int rc;

    *value = NULL;
    CHECK(number < WAITS_MAX);
    if (submit_one(&task, 1))
        return 0;
    if (pick(2))
        weir_sleep(weir_now() + (int64_t)(intptr_t)ms_arg * MS);
    wait.began = weir_now();
    life.wait[number] = &wait;
    rc = weir_task_wait_or_say(&wait.why, NULL, task, WEIR_FOREVER);
    if (rc == WEIR_EDEADLK)
        check_never_ends(task, &wait);
    life.wait[number] = NULL;
    weir_task_unref(task);
    return 0;
}

static void control(void)
{
    weir_group *group = NULL;

    CHECK(weir_group_get(&group, life.ex, group_name[pick(GROUPS)]) == 0);
    begin_change(); /* a group that is paused keeps no other waiting, either */
    switch (pick(8)) {
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
        weir_group_resize(group, 3 + pick(3), 0, 0);
        break;
    case 4:
        weir_executor_resize(life.ex, 3 + pick(4), 0);
        break;
    case 5:
        if (life.domains)
            weir_domain_resize(life.ex, domain_name[1 + pick(DOMAINS - 1)], 1 + pick(3), 0, NULL);
        break;
    case 6:
        if (life.domains && pick(2))
            weir_domain_release(life.ex, domain_name[1 + pick(DOMAINS - 1)],
                                domain_name[pick(DOMAINS)], 0, NULL);
        break;
    default:
        if (life.domains)
            weir_domain_restore(life.ex, domain_name[1 + pick(DOMAINS - 1)], NULL);
        break;
    }
    end_change();
}

static void new_life(void)
{
    weir_domain_policy domains[] = {
        { .name = "max", .slots = 1 + pick(2) },
        { .name = "reserved", .slots = 1 + pick(2), .slots_mode = WEIR_RESERVED },
        { .name = "own", .slots = 1 + pick(2), .workers = 1 + pick(2) },
    };
    weir_group_policy groups[GROUPS];

    memset(&life, 0, sizeof(life));
    memset(groups, 0, sizeof(groups));
    life.domains = pick(4);
    life.cost_max = pick(2) ? 1 : 3;
    life.deadlines = pick(3) == 0;
    for (int i = 0; i < GROUPS; i++) {
        groups[i].key = group_name[i];
        groups[i].limit = 3 + pick(2);
        groups[i].run_on = pick(2) ? WEIR_THREADS : WEIR_WORKERS;
        groups[i].weight = 1 + pick(3);
    }
    life.ex = new_executor(
        WEIR_POLICY(.workers = 1 + pick(2), .group_limit = 3, .slots = life.domains ? 7 : 0,
                    .inflight_max = pick(2) ? 0 : 3 + pick(4),
                    .default_floor = life.domains ? 1 : 0, .domains = life.domains ? domains : NULL,
                    .domain_count = life.domains ? 3 : 0, .groups = groups, .group_count = GROUPS,
                    .domain_for = life.domains ? domain_for : NULL, .threads_max = 1 + pick(4),
                    .lending = { .period_ms = life.domains && pick(3) == 0 ? 10 : 0 },
                    .rejection = WEIR_DISCARD));
}

static void restore_all(void)
{
    begin_change();
    for (int i = 1; life.domains && i < DOMAINS; i++)
        weir_domain_restore(life.ex, domain_name[i], NULL);
    end_change();
}

static void wait_life(void *arg)
{
    bool controls;

    (void)arg;
    new_life();
    controls = pick(2);
    for (int i = 0; i < TASKS; i++) {
        submit_one(NULL, 2);
        if (pick(3) == 0)
            weir_sleep(weir_now() + pick(12) * MS);
        if (controls && pick(4) == 0)
            control();
    }
    if (pick(3)) { /* whatever closed a circle, it was found: all ends by itself */
        restore_all();
        CHECK(weir_executor_drain(life.ex, WEIR_FOREVER) == 0);
    } else { /* the end may come at any moment */
        weir_executor_drain(life.ex, weir_now() + pick(40) * MS);
    }
    begin_change();
    weir_executor_free(life.ex);
}

static void no_wait_is_refused_that_would_end(void **state)
{
    (void)state;
    explore(300, WEIR_SIM_OPTIONS(.seed = 1), wait_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_wait_is_refused_that_would_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
