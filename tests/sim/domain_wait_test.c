/* Random lives of executors whose bodies wait for tasks, while costs, limits, slots, threads and permits stand in each
 * other's way. A refused wait must be one that would never have ended. So a body whose wait was refused keeps all that it
 * has; if the awaited task ends all the same, though no call was made since and no other body gave up, the refusal was
 * wrong.
 *
 * "Since" is exact. Refusals are decided under the lock of all waits, so each comes before or after the moment at which a
 * call holds that lock. In half of the lives calls keep it all the time: then no call overlaps a decision. In the others a
 * call takes it once it has ended: a refusal that comes later has to know of the call, one that came before may have been
 * decided beside it.
 * SPDX-License-Identifier: MIT */
#include "executor/deadlock.h"
#include "support/life_support.h"

enum { TASKS = 24, HOLD_MS = 400, NESTED_MAX = 64, WAITS_MAX = 2 * NESTED_MAX };

/* A body's wait. The circle is put in words when the wait is refused, perhaps a while before the body hears of it. */
struct wait {
    weir_message why;
    bool
        changed; /* since it was refused a call was made, or a body gave up: that may have set it free */
};

struct life {
    weir_executor *ex;
    uint32_t cost_max;
    bool deadlines, domains, ends;
    bool apart;          /* no call overlaps a decision */
    _Atomic int changes; /* under way */
    _Atomic int refused, nested;
    struct wait *wait[WAITS_MAX]; /* of each body that may wait; NULL: none, or it is over */
};
static struct life life;

static void begin_change(void)
{
    life.changes++;
    if (life.apart)
        wr_lock(&wr_waits_lock);
}

static void end_change(void)
{
    if (!life.apart)
        wr_lock(&wr_waits_lock);
    for (int i = 0; i < WAITS_MAX; i++)
        if (life.wait[i] && life.wait[i]->why.text[0])
            life.wait[i]->changed = true;
    wr_unlock(&wr_waits_lock);
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
    begin_change();
    switch (pick(8)) {
    case 0:
        weir_group_pause(group); /* then it keeps no other waiting, either */
        end_change();
        weir_sleep(weir_now() + pick(10) * MS);
        begin_change();
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
    life.apart = pick(2);
    life.ends = pick(3);
    for (int i = 0; i < GROUPS; i++) {
        groups[i].key = group_name[i];
        groups[i].limit = 3 + pick(2);
        groups[i].run_on = pick(2) ? WEIR_THREADS : WEIR_WORKERS;
        groups[i].weight = 1 + pick(3);
    }
    life.ex = new_executor(
        WEIR_POLICY(.workers = 1 + pick(2), .group_limit = 3, .slots = life.domains ? 7 : 0,
                    .inflight_max = pick(2) ? 0 : 3 + pick(4),
                    .default_floor = life.domains && life.ends ? 1 : 0,
                    .domains = life.domains ? domains : NULL, .domain_count = life.domains ? 3 : 0,
                    .groups = groups, .group_count = GROUPS,
                    .domain_for = life.domains ? domain_for : NULL, .threads_max = 1 + pick(4),
                    .lending = { .period_ms = life.domains && pick(3) == 0 ? 10 : 0 },
                    .rejection = WEIR_DISCARD));
    for (int i = 0; life.apart && i < GROUPS; i++) { /* no call waits for a group to be made */
        weir_group *group;
        CHECK(weir_group_get(&group, life.ex, group_name[i]) == 0);
    }
}

static void restore_all(void)
{
    for (int i = 1; life.domains && i < DOMAINS; i++) {
        begin_change();
        weir_domain_restore(life.ex, domain_name[i], NULL);
        end_change();
    }
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
    if (life.ends) { /* whatever closed a circle, it was found: all ends by itself */
        restore_all();
        CHECK(weir_executor_drain(life.ex, WEIR_FOREVER) == 0);
    } else { /* the end may come at any moment */
        weir_executor_drain(life.ex, weir_now() + pick(40) * MS);
    }
    life.changes++; /* until all has ended */
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
