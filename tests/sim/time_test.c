/* Sleeping and deadlines in virtual time: exact, ordered, alone and in crowds.
 * SPDX-License-Identifier: MIT */
#include "support/sim_support.h"

enum { SCHEDULES = 1500 };

struct sleeper {
    weir_time when, woke;
    int rc;
};

static void sleep_until(void *arg)
{
    struct sleeper *s = arg;
    s->rc = weir_sleep(s->when);
    s->woke = weir_now();
}

static void crowd_of_sleepers(void *arg)
{
    enum { N = 12 };
    struct sleeper s[N];
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    (void)arg;
    for (int i = 0; i < N; i++) {
        s[i].when = weir_now() + (int64_t)(weir_sim_random() % 1000) * MS / 7;
        CHECK(weir_spawn(rt, sleep_until, &s[i], NULL) == 0);
    }
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    for (int i = 0; i < N; i++) {
        CHECK(s[i].rc == 0);
        CHECK(s[i].woke == s[i].when);
    }
    weir_runtime_free(rt);
}

static void test_every_sleeper_wakes_at_its_nanosecond(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), crowd_of_sleepers);
}

static void sleep_in_threads(void *arg)
{
    weir_time start = weir_now();
    (void)arg;
    CHECK(weir_sleep(start + 3 * MS) == 0);
    CHECK(weir_now() == start + 3 * MS);
    CHECK(weir_sleep(start) == 0); /* the past */
    CHECK(weir_sleep(WEIR_NOW_OR_NEVER) == 0);
    CHECK(weir_sleep(-5) == 0);
    CHECK(weir_now() == start + 3 * MS);
}

static void test_a_plain_thread_sleeps_just_as_exactly(void **state)
{
    (void)state;
    explore(200, WEIR_SIM_OPTIONS(.seed = 1), sleep_in_threads);
}

static void past_sleeps(void *arg)
{
    struct sleeper *s = arg;
    s->rc = weir_sleep(weir_now() - 1) | weir_sleep(WEIR_NOW_OR_NEVER) | weir_sleep(INT64_MIN);
    s->woke = weir_now();
}

static void past_in_task(void *arg)
{
    struct sleeper s = { .rc = -1 };
    weir_runtime *rt = new_runtime(NULL);
    weir_time start = weir_now();
    (void)arg;
    CHECK(weir_spawn(rt, past_sleeps, &s, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(s.rc == 0 && s.woke == start);
    weir_runtime_free(rt);
}

static void test_a_deadline_in_the_past_does_not_wait(void **state)
{
    (void)state;
    explore(200, WEIR_SIM_OPTIONS(.seed = 1), past_in_task);
}

/* One that never parks must not keep timers of the same worker from firing for long: yields count.
 */
static void yielder(void *arg)
{
    struct sleeper *s = arg;
    while (weir_now() < s->when) {
        CHECK(weir_yield() == 0);
        weir_sim_busy(1000);
    }
}

static void yields_and_timers(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    struct sleeper until = { .when = weir_now() + 10 * MS };
    struct sleeper s = { .when = weir_now() + 5 * MS };
    (void)arg;
    CHECK(weir_spawn(rt, sleep_until, &s, NULL) == 0);
    CHECK(weir_spawn(rt, yielder, &until, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(s.woke >= s.when && s.woke <= s.when + 200 * 1000);
    weir_runtime_free(rt);
}

static void test_a_yielding_body_does_not_starve_timers(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), yields_and_timers);
}

static void drain_times_out(void *arg)
{
    weir_runtime *rt = new_runtime(NULL);
    weir_time start = weir_now();
    struct sleeper s = { .when = start + 50 * MS };
    (void)arg;
    CHECK(weir_spawn(rt, sleep_until, &s, NULL) == 0);
    CHECK(weir_runtime_drain(rt, start + 20 * MS) == WEIR_ETIMEDOUT);
    CHECK(weir_now() == start + 20 * MS);
    CHECK(weir_runtime_drain(rt, WEIR_NOW_OR_NEVER) == WEIR_ETIMEDOUT);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(weir_now() == start + 50 * MS);
    CHECK(weir_runtime_drain(rt, WEIR_NOW_OR_NEVER) == 0);
    weir_runtime_free(rt);
}

static void test_drain_gives_up_exactly_at_its_deadline(void **state)
{
    (void)state;
    explore(500, WEIR_SIM_OPTIONS(.seed = 1), drain_times_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sleeper_wakes_at_its_nanosecond),
        cmocka_unit_test(test_a_plain_thread_sleeps_just_as_exactly),
        cmocka_unit_test(test_a_deadline_in_the_past_does_not_wait),
        cmocka_unit_test(test_a_yielding_body_does_not_starve_timers),
        cmocka_unit_test(test_drain_gives_up_exactly_at_its_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
