/* Replacement workers and the bench: no wake-up goes to one who takes no work, nobody is forgotten when
 * the runtime closes, and what is told of a stall is true.
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
        cmocka_unit_test(test_a_worker_added_during_the_shutdown_hears_of_it),
        cmocka_unit_test(test_the_bench_stays_until_no_work_is_left),
        cmocka_unit_test(test_a_stall_is_never_told_under_another_bodys_name),
        cmocka_unit_test(test_a_body_that_yields_is_no_stall),
        cmocka_unit_test(test_never_more_have_ended_than_were_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
