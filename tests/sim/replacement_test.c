/* Replacement workers and the bench: there are enough of them, those without work end, no wake-up goes to a worker
 * that takes no work, no worker is forgotten when the runtime closes, and reports of stalls are true.
 * SPDX-License-Identifier: MIT */
#include "support/sim_support.h"

#include <stdatomic.h>
#include <string.h>

enum { SCHEDULES = 400 };

static const weir_sim_options *exact(void)
{
    static weir_sim_options opt = { .size = sizeof(opt), .seed = 1 };
    opt.spurious_per_256 = WEIR_SIM_NEVER; /* a wake-up for no reason would hide a lost one */
    return &opt;
}

static void hog(void *arg)
{
    weir_sim_busy(*(int64_t *)arg);
}

static void mark(void *arg)
{
    *(weir_time *)arg = weir_now();
}

static void sleep_until(void *arg)
{
    weir_sleep(*(weir_time *)arg);
}

static void sleep_forever(void *arg)
{
    (void)arg;
    CHECK(weir_sleep(WEIR_FOREVER) == WEIR_ECANCELED);
}

/* The replacement falls asleep ready for work, and is benched in its sleep. */
static void benched_asleep(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 10));
    weir_time start = weir_now(), wakes = start + 31 * MS + 600000, ran_at = 0;
    int64_t busy = 31 * MS;
    (void)arg;
    CHECK(weir_spawn(rt, hog, &busy, NULL) == 0);
    CHECK(weir_spawn(rt, sleep_until, &wakes, NULL) == 0); /* on the replacement */
    weir_sleep(start + 60 * MS);
    CHECK(weir_spawn(rt, mark, &ran_at, NULL) == 0);
    CHECK(weir_runtime_drain(rt, start + 5000 * MS) == 0);
    CHECK(ran_at == start + 60 * MS);
    weir_runtime_free(rt);
}

static void test_a_benched_worker_swallows_no_wake_up(void **state)
{
    (void)state;
    explore(SCHEDULES, exact(), benched_asleep);
}

/* The replacement is called back while it is on its way to sleep. */
static void tick_on_the_bench(void *arg)
{
    weir_time t = *(weir_time *)arg;
    for (int i = 0; i < 7; i++, t += 2500000)
        weir_sleep(t);
    weir_sleep(t + 300 * MS);
}

static weir_time found_at;

static void note_found(const weir_stall *stall, void *arg)
{
    int *replaced_itself = arg;
    if (stall->over)
        return;
    found_at = weir_now();
    if (stall->worker == 1 && stall->replaced)
        *replaced_itself += 1;
}

static void called_back(void *arg)
{
    int ignored = 0;
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 10,
                                                .on_stall = note_found, .on_stall_arg = &ignored));
    weir_time start = weir_now(), tick = start + 40 * MS, ran_at = 0;
    int64_t first = 30 * MS, second = 160 * MS;
    (void)arg;
    CHECK(weir_spawn(rt, hog, &first, NULL) == 0);
    CHECK(weir_spawn(rt, tick_on_the_bench, &tick, NULL) == 0);
    weir_sleep(start + 40 * MS + 100);
    CHECK(weir_spawn(rt, hog, &second, NULL) == 0);
    weir_sleep(start + 41 * MS);
    CHECK(weir_spawn(rt, mark, &ran_at, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(ran_at == found_at);
    weir_runtime_free(rt);
}

static void test_a_replacement_that_is_called_back_comes_at_once(void **state)
{
    (void)state;
    explore(SCHEDULES, exact(), called_back);
}

static void only_one_replacement(void *arg)
{
    int replaced_itself = 0;
    weir_runtime *rt =
        new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 10, .replacements_max = 1,
                                 .on_stall = note_found, .on_stall_arg = &replaced_itself));
    weir_time start = weir_now();
    int64_t first = 25 * MS, second = 200 * MS;
    (void)arg;
    CHECK(weir_spawn(rt, hog, &first, NULL) == 0);
    weir_sleep(start + 22 * MS);
    CHECK(weir_spawn(rt, hog, &second, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
    CHECK(replaced_itself == 0);
}

static void test_a_stuck_replacement_does_not_replace_itself(void **state)
{
    (void)state;
    explore(50, exact(), only_one_replacement);
}

/* A worker that searches and finds only a ready fiber of its own must let another search. */
struct sleep_then_hog {
    weir_time when;
    int64_t busy;
};

static void sleeps_then_hogs(void *arg)
{
    struct sleep_then_hog *s = arg;
    weir_sleep(s->when);
    weir_sim_busy(s->busy);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void searcher_gets_busy(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2, .stall_after_ms = 1000));
    weir_time start = weir_now(), ran_at = 0;
    struct sleep_then_hog late = { start + 20 * MS, 100 * MS };
    int64_t busy = 19 * MS;
    (void)arg;
    CHECK(weir_spawn(rt, sleeps_then_hogs, &late, NULL) == 0);
    weir_sleep(start + 1 * MS);
    CHECK(weir_spawn(rt, hog, &busy, NULL) == 0);
    weir_sleep(start + 20 * MS);
    CHECK(weir_spawn(rt, nothing, NULL, NULL) == 0);
    weir_sleep(start + 30 * MS);
    CHECK(weir_spawn(rt, mark, &ran_at, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(ran_at == start + 30 * MS);
    weir_runtime_free(rt);
}

static void test_a_searching_worker_that_gets_busy_passes_the_search_on(void **state)
{
    (void)state;
    explore(SCHEDULES, exact(), searcher_gets_busy);
}

/* ---- how many ---------------------------------------------------------------------------------- */

static uint32_t live(weir_runtime *rt)
{
    weir_runtime_stats stats = { .size = sizeof(stats) };
    CHECK(weir_runtime_stats_get(&stats, rt) == 0);
    return stats.workers_live;
}

enum { HOGS = 40 };

static int blocks(void **value, void *ns_arg)
{
    *value = NULL;
    weir_sim_busy(*(int64_t *)ns_arg);
    return 0;
}

static int light(void **value, void *arg)
{
    (void)arg;
    *value = NULL;
    return 0;
}

/* A stall is found within stall_after and a quarter of it. */
static int64_t waited(weir_executor *ex)
{
    weir_result result = WEIR_RESULT;
    weir_task *task;
    CHECK(weir_submit_key(&task, ex, "light", light, NULL, NULL) == 0);
    CHECK(weir_task_wait(&result, task, WEIR_FOREVER) == 0);
    weir_task_unref(task);
    return result.started_at - result.queued_at;
}

static void many_blocking_bodies(void *arg)
{
    weir_executor *ex = NULL;
    int64_t second = 1000 * MS;
    (void)arg;
    CHECK(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .group_limit = HOGS), NULL) == 0);
    for (int i = 0; i < HOGS; i++)
        CHECK(weir_submit_key(NULL, ex, "blocks", blocks, &second, NULL) == 0);
    for (int i = 0; i < 30; i++) {
        CHECK(waited(ex) <= 13 * MS);
        weir_sleep(weir_now() + 7 * MS);
    }
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    weir_executor_free(ex);
}

static void test_many_more_blocking_bodies_than_workers_hold_up_no_other(void **state)
{
    (void)state;
    explore(20, exact(), many_blocking_bodies);
}

/* All three block, and each is replaced; when that is long over, the replacements are gone. */
static void replacements_end(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .thread_idle_ms = 100));
    weir_time start = weir_now(), ran_at = 0;
    int64_t busy = 60 * MS;
    (void)arg;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            CHECK(weir_spawn(rt, hog, &busy, NULL) == 0);
        CHECK(weir_spawn(rt, mark, &ran_at, NULL) == 0);
        CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
        CHECK(ran_at >= start + 30 * MS && ran_at <= start + 39 * MS);
        CHECK(live(rt) == 4);
        weir_sleep(weir_now() + 70 * MS);
        CHECK(live(rt) == 4);
        weir_sleep(weir_now() + 40 * MS);
        CHECK(live(rt) == 1);
        start = weir_now();
    }
    weir_runtime_free(rt);
}

static void test_replacements_that_have_nothing_to_do_end_and_come_back(void **state)
{
    (void)state;
    explore(SCHEDULES, exact(), replacements_end);
}

/* Bodies that wait on a replacement keep it; with the last one of them it goes. */
static void carries_on(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .thread_idle_ms = 50));
    weir_time start = weir_now(), wakes = start + 500 * MS;
    int64_t busy = 30 * MS;
    (void)arg;
    CHECK(weir_spawn(rt, hog, &busy, NULL) == 0);
    CHECK(weir_spawn(rt, sleep_until, &wakes, NULL) == 0); /* on the replacement */
    weir_sleep(start + 400 * MS);
    CHECK(live(rt) == 2);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(weir_now() == wakes);
    weir_sleep(wakes + 60 * MS);
    CHECK(live(rt) == 1);
    weir_runtime_free(rt);
}

static void test_a_replacement_stays_for_the_bodies_that_wait_on_it(void **state)
{
    (void)state;
    explore(100, exact(), carries_on);
}

/* The next stall is found when the replacement is about to end, or has just ended. */
static void called_back_at_the_end(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .thread_idle_ms = 1));
    int64_t busy = 12 * MS;
    weir_time ran_at;
    (void)arg;
    for (int i = 0; i < 8; i++) {
        CHECK(weir_spawn(rt, hog, &busy, NULL) == 0);
        CHECK(weir_spawn(rt, mark, &ran_at, NULL) == 0);
        weir_sleep(weir_now() + 12 * MS + (int64_t)(weir_sim_random() % 4) * MS / 2);
    }
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
}

static void test_a_replacement_can_be_called_back_as_it_ends(void **state)
{
    (void)state;
    explore(2000, WEIR_SIM_OPTIONS(.seed = 1), called_back_at_the_end);
    explore(2000, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 300), called_back_at_the_end);
}

/* The first threads are the worker's and the monitor's; any later one may fail to start, all the more all of them. */
static void test_without_a_thread_for_the_replacement_nothing_breaks(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;
    (void)state;
    assert_int_equal(weir_sim_run(&report, NULL, called_back_at_the_end, NULL), 0);
    assert_true(report.threads > 4);
    for (uint64_t n = 3; n <= report.threads; n++)
        for (int sticky = 0; sticky < 2; sticky++)
            assert_int_equal(weir_sim_run(NULL,
                                          WEIR_SIM_OPTIONS(.fail_thread = n, .sticky = sticky == 1),
                                          called_back_at_the_end, NULL),
                             0);
}

/* Those that compute are replaced once per worker, because more threads would only share the same CPUs; those
 * that block, every time. */
static _Atomic int now_busy, peak_busy;

static void counted_hog(void *arg)
{
    int now = atomic_fetch_add(&now_busy, 1) + 1;
    if (now > atomic_load(&peak_busy))
        atomic_store(&peak_busy, now);
    hog(arg);
    atomic_fetch_sub(&now_busy, 1);
}

static void twenty_hogs(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 2));
    int64_t busy = 301 * MS + 200000; /* none ends as the monitor looks */
    (void)arg;
    peak_busy = 0;
    for (int i = 0; i < 20; i++)
        CHECK(weir_spawn(rt, counted_hog, &busy, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
}

static void computing_bodies(void *arg)
{
    twenty_hogs(arg);
    CHECK(peak_busy == 4);
}

static void blocking_bodies(void *arg)
{
    twenty_hogs(arg);
    CHECK(peak_busy == 20);
}

static void test_computing_bodies_are_replaced_once_per_worker(void **state)
{
    (void)state;
    explore(100, WEIR_SIM_OPTIONS(.seed = 1, .busy_computes = true), computing_bodies);
    explore(100, WEIR_SIM_OPTIONS(.seed = 1), blocking_bodies);
}

/* ---- closing ----------------------------------------------------------------------------------- */

static void closed_while_replaced(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 10));
    int64_t busy = 30 * MS;
    (void)arg;
    CHECK(weir_spawn(rt, hog, &busy, NULL) == 0);
    CHECK(weir_spawn(rt, sleep_forever, NULL, NULL) == 0);
    weir_sleep(weir_now() + 10 * MS); /* just when the monitor adds a worker */
    weir_runtime_free(rt);
}

static void test_a_worker_added_during_the_shutdown_hears_of_it(void **state)
{
    (void)state;
    explore(2000, exact(), closed_while_replaced);
}

/* A body blocks until another has run; during the shutdown a replacement must still run that one. */
struct needs {
    _Atomic bool other_ran;
};

static void needs_other(void *arg)
{
    struct needs *needs = arg;
    while (!atomic_load(&needs->other_ran))
        weir_sim_busy(1 * MS);
}

static void is_needed(void *arg)
{
    struct needs *needs = arg;
    atomic_store(&needs->other_ran, true);
}

static void shutdown_needs_the_bench(void *arg)
{
    struct needs needs = { false };
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 10));
    int64_t busy = 30 * MS;
    weir_time start = weir_now();
    (void)arg;
    CHECK(weir_spawn(rt, hog, &busy, NULL) == 0); /* makes a replacement, benched at 32 ms */
    weir_sleep(start + 40 * MS);
    CHECK(weir_spawn(rt, needs_other, &needs, NULL) == 0);
    CHECK(weir_spawn(rt, is_needed, &needs, NULL) == 0);
    weir_sleep(start + 41 * MS);
    weir_runtime_free(rt);
    CHECK(atomic_load(&needs.other_ran));
}

static void test_the_bench_stays_until_no_work_is_left(void **state)
{
    (void)state;
    explore(SCHEDULES, exact(), shutdown_needs_the_bench);
}

/* ---- what is told ------------------------------------------------------------------------------ */

static char names[64];

static void note_name(const weir_stall *stall, void *arg)
{
    (void)arg;
    if (!stall->over)
        strncat(names, stall->name, 8);
}

static void ends_when_found(void *arg)
{
    weir_runtime *rt =
        new_runtime(WEIR_RUNTIME(.workers = 1, .stall_after_ms = 10, .on_stall = note_name));
    weir_time start = weir_now();
    int64_t busy = 10 * MS;
    (void)arg;
    names[0] = '\0';
    CHECK(weir_spawn(rt, hog, &busy, WEIR_SPAWN(.name = "A")) == 0);
    weir_sleep(start + 10 * MS);
    for (int i = 0; i < 4; i++)
        CHECK(weir_spawn(rt, nothing, NULL, WEIR_SPAWN(.name = "B")) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    weir_runtime_free(rt);
    CHECK(!strchr(names, 'B'));
}

static void test_a_stall_is_never_told_under_another_bodys_name(void **state)
{
    (void)state;
    explore(2000, exact(), ends_when_found);
}

static void yields_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 40; i++) {
        weir_sim_busy(3 * MS);
        CHECK(weir_yield() == 0);
    }
}

static void yielding_is_no_stall(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    weir_runtime_stats stats = { .size = sizeof(stats) };
    (void)arg;
    CHECK(weir_spawn(rt, yields_often, NULL, NULL) == 0);
    CHECK(weir_runtime_drain(rt, WEIR_FOREVER) == 0);
    CHECK(weir_runtime_stats_get(&stats, rt) == 0);
    CHECK(stats.stalls == 0);
    weir_runtime_free(rt);
}

static void test_a_body_that_yields_is_no_stall(void **state)
{
    (void)state;
    explore(100, exact(), yielding_is_no_stall);
}

static void spawns_many(void *arg)
{
    for (int i = 0; i < 20; i++)
        CHECK(weir_spawn(arg, nothing, NULL, NULL) == 0);
}

static void statistics_add_up(void *arg)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    int64_t thread = weir_sim_thread(spawns_many, rt, "spawner");
    (void)arg;
    for (int i = 0; i < 20; i++) {
        weir_runtime_stats stats = { .size = sizeof(stats) };
        CHECK(weir_runtime_stats_get(&stats, rt) == 0);
        CHECK(stats.ended <= stats.accepted);
    }
    weir_sim_join(thread);
    weir_runtime_free(rt);
}

static void test_never_more_have_ended_than_were_accepted(void **state)
{
    (void)state;
    explore(SCHEDULES, exact(), statistics_add_up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_benched_worker_swallows_no_wake_up),
        cmocka_unit_test(test_a_replacement_that_is_called_back_comes_at_once),
        cmocka_unit_test(test_a_stuck_replacement_does_not_replace_itself),
        cmocka_unit_test(test_a_searching_worker_that_gets_busy_passes_the_search_on),
        cmocka_unit_test(test_many_more_blocking_bodies_than_workers_hold_up_no_other),
        cmocka_unit_test(test_replacements_that_have_nothing_to_do_end_and_come_back),
        cmocka_unit_test(test_a_replacement_stays_for_the_bodies_that_wait_on_it),
        cmocka_unit_test(test_a_replacement_can_be_called_back_as_it_ends),
        cmocka_unit_test(test_without_a_thread_for_the_replacement_nothing_breaks),
        cmocka_unit_test(test_computing_bodies_are_replaced_once_per_worker),
        cmocka_unit_test(test_a_worker_added_during_the_shutdown_hears_of_it),
        cmocka_unit_test(test_the_bench_stays_until_no_work_is_left),
        cmocka_unit_test(test_a_stall_is_never_told_under_another_bodys_name),
        cmocka_unit_test(test_a_body_that_yields_is_no_stall),
        cmocka_unit_test(test_never_more_have_ended_than_were_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
