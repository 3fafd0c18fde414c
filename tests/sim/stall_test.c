/* The stall monitor in virtual time: what it finds, when, and what it does about it.
 * SPDX-License-Identifier: MIT */
#include "support/sim_support.h"

#include <string.h>

enum { SCHEDULES = 500 };

struct seen {
    int found, over;
    weir_time found_at;
    int64_t stuck_ns;
    char name[32];
    uint64_t tag;
    bool replaced;
};

static void note(const weir_stall *stall, void *arg)
{
    struct seen *seen = arg;
    seen->found += !stall->over;
    seen->over += stall->over;
    if (!stall->over)
        seen->found_at = weir_now();
    seen->stuck_ns = stall->stuck_ns;
    seen->tag = stall->tag;
    seen->replaced = stall->replaced;
    strcpy(seen->name, stall->name);
}

static void hog(void *arg)
{
    weir_sim_busy(*(int64_t *)arg);
}

static void light(void *arg)
{
    *(weir_time *)arg = weir_now();
}

static void one_worker_stalls(void *arg)
{
    struct seen seen = { 0 };
    int64_t busy = 100 * MS;
    weir_time start, light_at = 0;
    weir_runtime *rt = new_runtime(
        WEIR_RUNTIME(.workers = 1, .stall_after_ms = 10, .on_stall = note, .on_stall_arg = &seen));
    (void)arg;
    start = weir_now();
    CHECK(weir_spawn(rt, hog, &busy, WEIR_SPAWN(.name = "hog", .tag = 7)) == 0);
    CHECK(weir_spawn(rt, light, &light_at, WEIR_SPAWN(.name = "light")) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(weir_now() == start + 100 * MS);
    CHECK(seen.found == 1 && strcmp(seen.name, "hog") == 0 && seen.tag == 7 && seen.replaced);
    CHECK(seen.found_at >= start + 10 * MS && seen.found_at <= start + 15 * MS);
    CHECK(light_at == seen.found_at); /* the replacement took it at once */
    weir_sim_busy(20 * MS);
    CHECK(seen.over == 1 && seen.stuck_ns >= 97 * MS && seen.stuck_ns <= 105 * MS);
    weir_runtime_free(rt);
}

static void test_a_stuck_worker_is_named_and_replaced(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), one_worker_stalls);
}

/* Ten bodies block one after the other; the runtime never has more than its two replacements. */
static void replacements_are_capped_and_reused(void *arg)
{
    struct seen seen = { 0 };
    int64_t busy = 30 * MS;
    weir_runtime_stats stats = { .size = sizeof(stats) };
    weir_runtime *rt = new_runtime(
        WEIR_RUNTIME(.workers = 1, .replacements_max = 2, .on_stall = note, .on_stall_arg = &seen));
    (void)arg;
    for (int i = 0; i < 10; i++)
        CHECK(weir_spawn(rt, hog, &busy, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(weir_runtime_stats_get(&stats, rt) == 0);
    CHECK(stats.workers_live <= 3);
    CHECK(stats.stalls >= 5 && stats.stalls <= 10);
    weir_runtime_free(rt);
}

static void test_replacements_are_capped_and_reused(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), replacements_are_capped_and_reused);
}

static void wait_and_work(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        weir_sim_busy(4 * MS); /* below the threshold each time */
        CHECK(weir_sleep(weir_now() + MS) == 0);
    }
}

static void no_false_alarm(void *arg)
{
    struct seen seen = { 0 };
    weir_runtime *rt =
        new_runtime(WEIR_RUNTIME(.workers = 1, .on_stall = note, .on_stall_arg = &seen));
    (void)arg;
    CHECK(weir_spawn(rt, wait_and_work, NULL, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_sim_busy(2000 * MS); /* idle for long */
    CHECK(seen.found == 0);
    weir_runtime_free(rt);
}

static void test_bodies_that_wait_now_and_then_are_no_stall(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), no_false_alarm);
}

/* After a quiet time the monitor wakes with the worker: what it last saw is old, but no stall. */
static void begins_after_a_quiet_time(void *arg)
{
    struct seen seen = { 0 };
    weir_runtime *rt =
        new_runtime(WEIR_RUNTIME(.workers = 1, .on_stall = note, .on_stall_arg = &seen));
    weir_time t = 0;
    (void)arg;
    for (int i = 0; i < 4; i++) {
        CHECK(weir_spawn(rt, light, &t, NULL) == 0);
        CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
        weir_sim_busy(50 * MS);
    }
    CHECK(seen.found == 0);
    weir_runtime_free(rt);
}

static void test_a_body_that_begins_after_a_quiet_time_is_no_stall(void **state)
{
    (void)state;
    explore(SCHEDULES, WEIR_SIM_OPTIONS(.seed = 1), begins_after_a_quiet_time);
}

/* Nothing moves while all sleep: the simulator counts how often a thread woke. */
static void long_idle(void *arg)
{
    weir_runtime *rt = new_runtime(NULL);
    weir_time t = 0;
    CHECK(weir_spawn(rt, light, &t, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_sim_busy(*(int64_t *)arg);
    weir_runtime_free(rt);
}

static void test_an_idle_runtime_never_wakes(void **state)
{
    weir_sim_report minute = WEIR_SIM_REPORT, day = WEIR_SIM_REPORT;
    int64_t span = 60 * 1000 * MS;
    (void)state;
    weir_sim_options *opt = WEIR_SIM_OPTIONS(.seed = 5, .spurious_per_256 = WEIR_SIM_NEVER);
    assert_int_equal(weir_sim_run(&minute, opt, long_idle, &span), 0);
    span *= 60 * 24;
    assert_int_equal(weir_sim_run(&day, opt, long_idle, &span), 0);
    assert_int_equal(minute.futex_waits, day.futex_waits);
    assert_int_equal(minute.poller_waits, day.poller_waits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stuck_worker_is_named_and_replaced),
        cmocka_unit_test(test_replacements_are_capped_and_reused),
        cmocka_unit_test(test_bodies_that_wait_now_and_then_are_no_stall),
        cmocka_unit_test(test_a_body_that_begins_after_a_quiet_time_is_no_stall),
        cmocka_unit_test(test_an_idle_runtime_never_wakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
