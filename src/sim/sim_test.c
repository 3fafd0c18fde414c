/* Tests of the simulator itself: schedules, clock, accounting, faults, replay.
 * SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "base/os.h"
#include "runtime/context.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weir/error.h>
#include <weir/sim.h>

#include <cmocka.h>

#define MS         INT64_C(1000000)
#define EXACT(...) WEIR_SIM_OPTIONS(.spurious_per_256 = WEIR_SIM_NEVER, __VA_ARGS__)

/* ---- determinism ----------------------------------------------------------------------------- */

struct race {
    _Atomic uint32_t word;
    char order[64];
    unsigned count;
};

static void racer(void *arg)
{
    struct race *race = *(struct race **)arg;
    char name = ((char *)arg)[sizeof(race)];

    for (int i = 0; i < 8; i++) {
        wr_add(&race->word, 1, seq_cst);
        race->order[race->count++] = name;
    }
}

/* Four threads leave their letters in one string. */
static void race_scenario(void *arg)
{
    struct race *race = arg;
    struct {
        struct race *race;
        char name;
    } racers[4];
    int64_t handles[4];

    memset(race, 0, sizeof(*race));
    for (int i = 0; i < 4; i++) {
        racers[i].race = race;
        racers[i].name = (char)('a' + i);
        handles[i] = weir_sim_thread(racer, &racers[i], "racer");
        WEIR_SIM_CHECK(handles[i] > 0);
    }
    for (int i = 0; i < 4; i++)
        weir_sim_join(handles[i]);
    WEIR_SIM_CHECK(race->count == 32);
}

static void test_equal_seeds_give_equal_runs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        weir_sim_report first = WEIR_SIM_REPORT, second = WEIR_SIM_REPORT;
        struct race a, b;

        assert_int_equal(weir_sim_run(&first, WEIR_SIM_OPTIONS(.seed = seed), race_scenario, &a),
                         0);
        assert_int_equal(weir_sim_run(&second, WEIR_SIM_OPTIONS(.seed = seed), race_scenario, &b),
                         0);
        assert_true(first.ok);
        assert_string_equal(first.message, "");
        assert_memory_equal(&first, &second, sizeof(first));
        assert_memory_equal(a.order, b.order, sizeof(a.order));
    }
}

static void test_other_seeds_give_other_orders(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;
    uint64_t traces[50];
    unsigned different = 0;

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        struct race race;

        weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = i + 1), race_scenario, &race);
        traces[i] = report.trace;
        different += i > 0 && traces[i] != traces[i - 1];
    }
    assert_true(different > 45);
}

static void test_grain_decides_how_often_threads_switch(void **state)
{
    weir_sim_report fine = WEIR_SIM_REPORT, coarse = WEIR_SIM_REPORT;
    struct race race;

    (void)state;
    weir_sim_run(&fine, WEIR_SIM_OPTIONS(.switch_every = 2), race_scenario, &race);
    weir_sim_run(&coarse, WEIR_SIM_OPTIONS(.switch_every = 1000), race_scenario, &race);
    assert_true(fine.switches > 2 * coarse.switches);
}

static void draw_scenario(void *arg)
{
    uint64_t *out = arg;

    out[0] = weir_sim_random();
    out[1] = wr_os_random();
    out[2] = weir_sim_seed();
}

static void test_random_numbers_come_from_the_seed(void **state)
{
    uint64_t a[3], b[3];

    (void)state;
    weir_sim_run(NULL, WEIR_SIM_OPTIONS(.seed = 9), draw_scenario, a);
    weir_sim_run(NULL, WEIR_SIM_OPTIONS(.seed = 9), draw_scenario, b);
    assert_memory_equal(a, b, sizeof(a));
    assert_true(a[0] != a[1] && a[2] == 9);
}

/* ---- stacks inside a thread -------------------------------------------------------------------
 */

struct pair { /* a thread and a fiber of its own that take turns */
    struct wr_context thread, fiber;
    uint64_t sum;
};

static void fiber_entry(void *arg)
{
    struct pair *pair = arg;
    _Atomic uint32_t on_fiber = 0;

    for (;;) {
        for (int i = 0; i < 5; i++)
            pair->sum += wr_add(&on_fiber, 1, relaxed);
        wr_context_switch(&pair->fiber, &pair->thread);
    }
}

static void fiber_user(void *arg)
{
    enum { SIZE = 65536 };
    struct pair pair = { .sum = 0 };
    char *stack = wr_os_map(SIZE);
    _Atomic uint32_t on_thread = 0;

    (void)arg;
    wr_context_init_thread(&pair.thread);
    wr_context_init_stack(&pair.fiber, stack, SIZE);
    wr_context_prepare(&pair.fiber, stack + SIZE, fiber_entry, &pair);
    for (int turn = 0; turn < 10; turn++) {
        wr_add(&on_thread, 1, relaxed);
        wr_context_switch(&pair.thread, &pair.fiber);
        wr_add(&on_thread, 1, relaxed);
    }
    WEIR_SIM_CHECK(pair.sum == 49 * 50 / 2);
    wr_context_fini(&pair.fiber);
    wr_os_unmap(stack, SIZE);
}

static void fibers_scenario(void *arg)
{
    int64_t handles[4];

    (void)arg;
    for (int i = 0; i < 4; i++)
        handles[i] = weir_sim_thread(fiber_user, NULL, "user");
    for (int i = 0; i < 4; i++)
        weir_sim_join(handles[i]);
}

static void failing_fiber(void *arg)
{
    (void)arg;
    weir_sim_fail("from a fiber, number %d", 7);
}

static void fiber_fails_scenario(void *arg)
{
    enum { SIZE = 65536 };
    struct wr_context thread, fiber;
    char *stack = wr_os_map(SIZE);

    (void)arg;
    wr_context_init_thread(&thread);
    wr_context_init_stack(&fiber, stack, SIZE);
    wr_context_prepare(&fiber, stack + SIZE, failing_fiber, NULL);
    wr_context_switch(&thread, &fiber);
}

static void test_threads_are_preempted_on_whatever_stack_they_are(void **state)
{
    (void)state;
    assert_int_equal(weir_sim_explore(NULL, 300, fibers_scenario, NULL, NULL), 0);
}

static void test_a_run_can_fail_on_any_stack(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    for (int i = 0; i < 20; i++) {
        weir_sim_run(&report, NULL, fiber_fails_scenario, NULL);
        assert_non_null(strstr(report.message, "from a fiber, number 7\nin thread main"));
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

static void timeout_scenario(void *arg)
{
    _Atomic uint32_t word = 7;
    weir_time start = wr_os_now();

    (void)arg;
    WEIR_SIM_CHECK(start == WEIR_SIM_START);
    WEIR_SIM_CHECK(wr_os_futex_wait(&word, 8, WEIR_FOREVER) == 0);
    WEIR_SIM_CHECK(wr_os_futex_wait(&word, 7, 0) == -ETIMEDOUT);
    WEIR_SIM_CHECK(wr_os_now() == start);
    WEIR_SIM_CHECK(wr_os_futex_wait(&word, 7, start + 5 * MS) == -ETIMEDOUT);
    WEIR_SIM_CHECK(wr_os_now() == start + 5 * MS);
    weir_sim_busy(2 * MS);
    WEIR_SIM_CHECK(wr_os_now() == start + 7 * MS);
}

static void test_futex_timeouts_are_exact(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(weir_sim_run(&report, EXACT(.seed = 3), timeout_scenario, NULL), 0);
    assert_int_equal(report.ended_at, WEIR_SIM_START + 7 * MS);
    assert_int_equal(report.futex_waits, 3);
}

static void sleeper(void *arg)
{
    struct race *race = *(struct race **)arg;
    char name = ((char *)arg)[sizeof(race)];

    weir_sim_busy((name - 'a' + 1) * MS);
    race->order[race->count++] = name;
}

static void sleepers_scenario(void *arg)
{
    struct race *race = arg;
    struct {
        struct race *race;
        char name;
    } sleepers[3] = { { race, 'c' }, { race, 'a' }, { race, 'b' } };
    int64_t handles[3];

    memset(race, 0, sizeof(*race));
    for (int i = 0; i < 3; i++)
        handles[i] = weir_sim_thread(sleeper, &sleepers[i], "sleeper");
    for (int i = 0; i < 3; i++)
        weir_sim_join(handles[i]);
    WEIR_SIM_CHECK(strcmp(race->order, "abc") == 0);
    WEIR_SIM_CHECK(wr_os_now() == WEIR_SIM_START + 3 * MS);
}

static void test_deadlines_come_in_order(void **state)
{
    struct race race;

    (void)state;
    assert_int_equal(weir_sim_explore(NULL, 200, sleepers_scenario, &race, NULL), 0);
}

static void setter(void *arg)
{
    weir_sim_busy(MS);
    wr_store((_Atomic uint32_t *)arg, 1, seq_cst);
    wr_os_futex_wake(arg, 1);
}

static void slip_scenario(void *arg)
{
    _Atomic uint32_t word = 0;
    int64_t handle = weir_sim_thread(setter, &word, "setter");
    int rc = wr_os_futex_wait(&word, 0, WEIR_SIM_START + 2 * MS);

    *(unsigned *)arg += rc == -ETIMEDOUT;
    weir_sim_join(handle);
}

static void test_a_slipping_clock_lets_deadlines_win(void **state)
{
    unsigned exact = 0, slipping = 0;

    (void)state;
    weir_sim_explore(EXACT(.seed = 1), 300, slip_scenario, &exact, NULL);
    weir_sim_explore(EXACT(.slip_per_65536 = 8192), 300, slip_scenario, &slipping, NULL);
    assert_int_equal(exact, 0);
    assert_true(slipping > 0);
}

static void relax_scenario(void *arg)
{
    _Atomic uint32_t word = 0;
    int64_t handle = weir_sim_thread(setter, &word, "setter");

    (void)arg;
    weir_sim_busy(MS);
    while (!wr_load(&word, acquire))
        wr_os_relax();
    weir_sim_join(handle);
}

static void test_a_spinning_thread_lets_others_run(void **state)
{
    (void)state;
    assert_int_equal(
        weir_sim_explore(WEIR_SIM_OPTIONS(.points_max = 10000), 200, relax_scenario, NULL, NULL),
        0);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void waits_for_ever(void *arg)
{
    while (wr_os_futex_wait(arg, 0, WEIR_FOREVER) == 0)
        ;
}

static void deadlock_scenario(void *arg)
{
    _Atomic uint32_t word = 0;

    (void)arg;
    weir_sim_join(weir_sim_thread(waits_for_ever, &word, "stuck"));
}

static void test_a_deadlock_names_each_thread_and_what_it_waits_for(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 42), deadlock_scenario, NULL),
                     WEIR_EDEADLK);
    assert_false(report.ok);
    assert_non_null(strstr(report.message, "deadlock"));
    assert_non_null(strstr(report.message, "main waits for the end of thread stuck"));
    assert_non_null(strstr(report.message, "stuck waits on futex 0x"));
    assert_non_null(strstr(report.message, "while it is 0"));
    assert_non_null(strstr(report.message, "\nreplay with WEIR_SEED=42"));
}

static void spin_scenario(void *arg)
{
    _Atomic uint32_t word = 0;

    (void)arg;
    while (!wr_load(&word, relaxed))
        ;
}

static void tick_scenario(void *arg)
{
    (void)arg;
    for (;;)
        weir_sim_busy(MS);
}

static void test_a_run_without_end_is_a_livelock(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    weir_sim_run(&report, WEIR_SIM_OPTIONS(.points_max = 1000), spin_scenario, NULL);
    assert_non_null(strstr(report.message, "livelock: no end after points: 1000"));
    weir_sim_run(&report, WEIR_SIM_OPTIONS(.jumps_max = 100), tick_scenario, NULL);
    assert_non_null(strstr(report.message, "livelock: no end after moves of the clock: 100"));
}

static void failing_scenario(void *arg)
{
    int *freed_by_the_run = wr_os_alloc(100);

    (void)arg;
    (void)freed_by_the_run;
    WEIR_SIM_CHECK(2 + 2 == 5);
}

static void test_a_failed_check_ends_the_run_and_says_where(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(weir_sim_run(&report, NULL, failing_scenario, NULL), WEIR_EDEADLK);
    assert_non_null(strstr(report.message, "sim_test.c"));
    assert_non_null(strstr(report.message, "check failed: 2 + 2 == 5"));
    assert_non_null(strstr(report.message, "in thread main at 1000000000"));
}

static void leak_scenario(void *arg)
{
    struct wr_os_thread thread;
    struct wr_os_poller poller;
    int fds[2];

    (void)arg;
    wr_os_free(wr_os_alloc(8));
    wr_os_alloc(64);
    wr_os_alloc(32);
    wr_os_map(65536);
    wr_os_poller_open(&poller);
    wr_os_thread_start(&thread, racer, NULL, "lost");
    weir_sim_pipe(fds);
}

static void test_resources_left_over_are_a_leak(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    weir_sim_run(&report, WEIR_SIM_OPTIONS(.switch_every = 1000000), leak_scenario, NULL);
    assert_non_null(strstr(
        report.message, "leak: 2 allocations (first: #2 of 64 bytes), 1 map (first: 65536 "
                        "bytes), 1 thread (first: lost), 2 descriptors (first: 101), 1 poller\n"));
    assert_int_equal(report.allocs, 3);
    assert_int_equal(report.maps, 1);
    assert_int_equal(report.threads, 1);
    assert_int_equal(report.pollers, 1);
}

#ifndef WR_ASAN
static void late_write_scenario(void *arg)
{
    char *volatile memory = wr_os_alloc(16);

    (void)arg;
    wr_os_free(memory);
    memory[3] = 1;
}

static void test_a_write_after_free_is_found(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    weir_sim_run(&report, NULL, late_write_scenario, NULL);
    assert_non_null(strstr(report.message, "allocation #1 was written to after it was freed"));
}
#endif

static void trim_scenario(void *arg)
{
    size_t page = wr_os_page_size();
    char *memory = wr_os_map(8 * page);

    (void)arg;
    WEIR_SIM_CHECK(wr_os_guard(memory + 2 * page, page, 2 * page, 2) == 0);
    memory[page] = 1;
    wr_os_discard(memory + page, page);
    WEIR_SIM_CHECK(memory[page] == 0);
    wr_os_unmap(memory + 2 * page, page); /* from the middle */
    wr_os_unmap(memory, 2 * page);
    wr_os_unmap(memory + 3 * page, 5 * page);
}

static void unmapped_scenario(void *arg)
{
    wr_os_unmap(arg, 4096);
}

static void test_parts_of_a_map_may_be_unmapped_but_nothing_else(void **state)
{
    static _Alignas(4096) char memory[4096];
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(weir_sim_run(NULL, NULL, trim_scenario, NULL), 0);
    weir_sim_run(&report, NULL, unmapped_scenario, memory);
    assert_non_null(strstr(report.message, "which are not mapped"));
}

static void double_join_scenario(void *arg)
{
    _Atomic uint32_t word = 0;
    int64_t handle = weir_sim_thread(setter, &word, "setter");

    (void)arg;
    weir_sim_join(handle);
    weir_sim_join(handle);
}

static void test_a_thread_is_joined_once(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    weir_sim_run(&report, NULL, double_join_scenario, NULL);
    assert_non_null(strstr(report.message, "join of thread #2"));
}

static void nested_scenario(void *arg)
{
    *(int *)arg = weir_sim_run(NULL, NULL, spin_scenario, NULL);
}

static void test_runs_do_not_nest_and_bad_options_are_refused(void **state)
{
    weir_sim_options empty = { 0 };
    int rc = 0;

    (void)state;
    assert_int_equal(weir_sim_run(NULL, NULL, nested_scenario, &rc), 0);
    assert_int_equal(rc, WEIR_EINVAL);
    assert_int_equal(weir_sim_run(NULL, &empty, nested_scenario, &rc), WEIR_EINVAL);
    assert_int_equal(weir_sim_run(NULL, NULL, NULL, NULL), WEIR_EINVAL);
}

static jmp_buf way_out;

static void longjmp_scenario(void *arg)
{
    (void)arg;
    wr_os_alloc(10);
    longjmp(way_out, 1);
}

static void test_a_run_left_by_longjmp_does_not_spoil_the_next(void **state)
{
    (void)state;
#ifdef WR_ASAN
    skip(); /* ASan cannot follow */
#endif
    if (setjmp(way_out) == 0)
        weir_sim_run(NULL, NULL, longjmp_scenario, NULL);
    assert_int_equal(weir_sim_run(NULL, NULL, timeout_scenario, NULL), 0);
}

static void crash_scenario(void *arg)
{
    (void)arg;
    abort();
}

static void test_a_crash_tells_the_seed(void **state)
{
    char text[4096] = "";
    size_t used = 0;
    ssize_t n;
    int fds[2];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        weir_sim_run(NULL, WEIR_SIM_OPTIONS(.seed = 123), crash_scenario, NULL);
        _exit(0);
    }
    close(fds[1]);
    while (used < sizeof(text) - 1 && (n = read(fds[0], text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)n;
    close(fds[0]);
    waitpid(pid, NULL, 0);
    assert_non_null(strstr(text, "weir sim: in thread main, seed 123; replay with WEIR_SEED=123"));
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void fault_scenario(void *arg)
{
    unsigned *failures = arg;

    for (int i = 0; i < 4; i++) {
        void *memory = wr_os_alloc(10);
        void *map = wr_os_map(4096);

        *failures += !memory;
        *failures += !map;
        if (map) {
            *failures += wr_os_guard(map, 4096, 4096, 1) < 0;
            wr_os_unmap(map, 4096);
        }
        wr_os_free(memory);
    }
}

static unsigned failures_with(weir_sim_report *report, const weir_sim_options *opt)
{
    unsigned failures = 0;

    assert_int_equal(weir_sim_run(report, opt, fault_scenario, &failures), 0);
    return failures;
}

static void test_faults_are_counted_down(void **state)
{
    weir_sim_report clean = WEIR_SIM_REPORT, report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(failures_with(&clean, NULL), 0);
    assert_int_equal(clean.allocs, 4);
    assert_int_equal(clean.maps, 4);
    assert_int_equal(clean.guards, 4);
    for (uint64_t n = 1; n <= clean.allocs; n++) {
        assert_int_equal(failures_with(&report, WEIR_SIM_OPTIONS(.fail_alloc = n)), 1);
        assert_int_equal(report.faults, 1);
        assert_int_equal(failures_with(&report, WEIR_SIM_OPTIONS(.fail_alloc = n, .sticky = true)),
                         5 - n);
    }
    assert_int_equal(failures_with(&report, WEIR_SIM_OPTIONS(.fail_map = 2)), 1);
    assert_int_equal(report.guards, 3);
    assert_int_equal(failures_with(&report, WEIR_SIM_OPTIONS(.fail_guard = 3)), 1);
    assert_int_equal(failures_with(&report, WEIR_SIM_OPTIONS(.fail_alloc = 5)), 0);
}

static void start_scenario(void *arg)
{
    struct wr_os_thread thread;
    struct wr_os_poller poller;
    _Atomic uint32_t word = 0;
    int *rc = arg;
    int fds[2];

    rc[0] = wr_os_thread_start(&thread, setter, &word, "t");
    if (rc[0] == 0)
        wr_os_thread_join(&thread);
    weir_sim_pipe(fds);
    rc[1] = wr_os_poller_open(&poller);
    if (rc[1] == 0) {
        rc[2] = wr_os_poller_watch(&poller, fds[0], 1, 0);
        wr_os_poller_close(&poller);
    }
    weir_sim_close(fds[0]);
    weir_sim_close(fds[1]);
}

static void test_threads_pollers_and_watches_can_fail(void **state)
{
    int rc[3];

    (void)state;
    weir_sim_run(NULL, WEIR_SIM_OPTIONS(.fail_thread = 1), start_scenario, rc);
    assert_int_equal(rc[0], -EAGAIN);
    weir_sim_run(NULL, WEIR_SIM_OPTIONS(.fail_poller = 1), start_scenario, rc);
    assert_int_equal(rc[1], -EMFILE);
    weir_sim_run(NULL, WEIR_SIM_OPTIONS(.fail_watch = 1), start_scenario, rc);
    assert_int_equal(rc[0], 0);
    assert_int_equal(rc[1], 0);
    assert_int_equal(rc[2], -ENOMEM);
}

/* ---- finding bugs ---------------------------------------------------------------------------- */

/* A flag and a futex, with the classic mistake: the waiter reads the futex word after it looked at
 * the flag, so a wake in between is lost. Done right, the word is read first. */
struct signal {
    _Atomic uint32_t flag, word;
    bool right;
};

static void signal_give(void *arg)
{
    struct signal *signal = arg;

    wr_store(&signal->flag, 1, seq_cst);
    wr_add(&signal->word, 1, seq_cst);
    wr_os_futex_wake(&signal->word, 1);
}

static void signal_take(void *arg)
{
    struct signal *signal = arg;

    for (;;) {
        uint32_t before = wr_load(&signal->word, seq_cst);

        if (wr_load(&signal->flag, seq_cst))
            return;
        wr_os_futex_wait(&signal->word, signal->right ? before : wr_load(&signal->word, seq_cst),
                         WEIR_FOREVER);
    }
}

static void signal_scenario(void *arg)
{
    struct signal signal = { .right = *(bool *)arg };
    int64_t taker = weir_sim_thread(signal_take, &signal, "taker");
    int64_t giver = weir_sim_thread(signal_give, &signal, "giver");

    weir_sim_join(taker);
    weir_sim_join(giver);
}

static void test_a_lost_wakeup_is_found_and_replayed(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT, again = WEIR_SIM_REPORT;
    bool right = true, wrong = false;
    char seed[32];

    (void)state;
    assert_int_equal(weir_sim_explore(NULL, 2000, signal_scenario, &right, NULL), 0);
    assert_int_equal(weir_sim_explore(NULL, 2000, signal_scenario, &wrong, &report), WEIR_EDEADLK);
    assert_non_null(strstr(report.message, "taker waits on futex"));
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)report.seed);
    setenv("WEIR_SEED", seed, 1);
    assert_int_equal(weir_sim_explore(NULL, 2000, signal_scenario, &wrong, &again), WEIR_EDEADLK);
    assert_int_equal(again.seed, report.seed);
    assert_int_equal(again.points, report.points);
    assert_int_equal(again.trace, report.trace);
    setenv("WEIR_SEED", "77", 1);
    weir_sim_explore(NULL, 2000, signal_scenario, &right, &again);
    assert_true(again.ok);
    assert_int_equal(again.seed, 77);
    unsetenv("WEIR_SEED");
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void test_ten_thousand_schedules_take_seconds(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;
    double start = seconds(), runs, points;
    struct race race;

    (void)state;
    assert_int_equal(weir_sim_explore(NULL, 10000, race_scenario, &race, NULL), 0);
    runs = seconds() - start;
    start = seconds();
    weir_sim_run(&report, WEIR_SIM_OPTIONS(.points_max = 5000000), spin_scenario, NULL);
    points = seconds() - start;
    print_message("10000 runs: %.2f s; 5 million points: %.2f s\n", runs, points);
    assert_true(runs < 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_seeds_give_equal_runs),
        cmocka_unit_test(test_other_seeds_give_other_orders),
        cmocka_unit_test(test_grain_decides_how_often_threads_switch),
        cmocka_unit_test(test_random_numbers_come_from_the_seed),
        cmocka_unit_test(test_threads_are_preempted_on_whatever_stack_they_are),
        cmocka_unit_test(test_a_run_can_fail_on_any_stack),
        cmocka_unit_test(test_futex_timeouts_are_exact),
        cmocka_unit_test(test_deadlines_come_in_order),
        cmocka_unit_test(test_a_slipping_clock_lets_deadlines_win),
        cmocka_unit_test(test_a_spinning_thread_lets_others_run),
        cmocka_unit_test(test_a_deadlock_names_each_thread_and_what_it_waits_for),
        cmocka_unit_test(test_a_run_without_end_is_a_livelock),
        cmocka_unit_test(test_a_failed_check_ends_the_run_and_says_where),
        cmocka_unit_test(test_resources_left_over_are_a_leak),
#ifndef WR_ASAN
        cmocka_unit_test(test_a_write_after_free_is_found),
#endif
        cmocka_unit_test(test_parts_of_a_map_may_be_unmapped_but_nothing_else),
        cmocka_unit_test(test_a_thread_is_joined_once),
        cmocka_unit_test(test_runs_do_not_nest_and_bad_options_are_refused),
        cmocka_unit_test(test_a_run_left_by_longjmp_does_not_spoil_the_next),
        cmocka_unit_test(test_a_crash_tells_the_seed),
        cmocka_unit_test(test_faults_are_counted_down),
        cmocka_unit_test(test_threads_pollers_and_watches_can_fail),
        cmocka_unit_test(test_a_lost_wakeup_is_found_and_replayed),
        cmocka_unit_test(test_ten_thousand_schedules_take_seconds),
    };

    unsetenv("WEIR_SEED"); /* the simulator's own tests choose their seeds */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
