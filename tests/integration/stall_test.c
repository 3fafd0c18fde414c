/* The stall monitor: a body that blocks its worker is named, and the others go on meanwhile.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { REPORTS_MAX = 64 };

/* Reports of the monitor. Written on its thread; an entry is complete when `count` has passed it. */
static struct report {
    weir_stall stall;
    char name[64];
} reports[REPORTS_MAX];
static _Atomic int report_count;

static void on_stall(const weir_stall *stall, void *arg)
{
    int n = atomic_load(&report_count);

    CHECK(arg == &report_count);
    if (!CHECK(n < REPORTS_MAX))
        return;
    reports[n].stall = *stall;
    snprintf(reports[n].name, sizeof(reports[n].name), "%s", stall->name);
    atomic_store(&report_count, n + 1);
}

#define WATCHED(...) WEIR_RUNTIME(.on_stall = on_stall, .on_stall_arg = &report_count, __VA_ARGS__)

/* So long that a short body on a busy machine is no stall while it waits for a CPU. */
enum { LONG_MS = 100 };

/* A body that blocks its thread in read(2) until it is let go. */
struct blocker {
    int fd[2];
    _Atomic int begun, ended;
};

static void block(void *arg)
{
    struct blocker *b = arg;
    char byte;

    atomic_fetch_add(&b->begun, 1);
    CHECK_EQUAL(read(b->fd[0], &byte, 1), 1);
    atomic_fetch_add(&b->ended, 1);
}

static void blocker_init(struct blocker *b)
{
    assert_int_equal(pipe(b->fd), 0);
    atomic_store(&b->begun, 0);
    atomic_store(&b->ended, 0);
}

static void let_go(struct blocker *b)
{
    CHECK_EQUAL(write(b->fd[1], "", 1), 1);
}

static void blocker_fini(struct blocker *b)
{
    close(b->fd[0]);
    close(b->fd[1]);
}

static void set_flag(void *arg)
{
    atomic_store((_Atomic int *)arg, 1);
}

static int forget_reports(void **state)
{
    (void)state;
    atomic_store(&report_count, 0);
    return 0;
}

/* ---- one stall ------------------------------------------------------------------------------- */

static void test_a_stall_is_reported_replaced_and_reported_over(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 1, .stall_after_ms = LONG_MS));
    struct blocker b;
    _Atomic int flag = 0;

    blocker_init(&b);
    CHECK_EQUAL(weir_spawn(rt, block, &b, WEIR_SPAWN(.name = "blocker", .tag = 0xabcdef0123456789)),
                0);
    AWAIT(atomic_load(&report_count) == 1);
    CHECK_EQUAL(reports[0].stall.worker, 0);
    CHECK(!reports[0].stall.over);
    CHECK(strcmp(reports[0].name, "blocker") == 0);
    CHECK_EQUAL(reports[0].stall.tag, 0xabcdef0123456789);
    CHECK(reports[0].stall.stuck_ns >= 10000000);
    CHECK(reports[0].stall.replaced);
    CHECK_EQUAL(stats_of(rt).stalls, 1);
    CHECK_EQUAL(stats_of(rt).workers, 1);
    CHECK_EQUAL(stats_of(rt).workers_live, 2);

    CHECK_EQUAL(weir_spawn(rt, set_flag, &flag, NULL), 0); /* others go on */
    AWAIT(atomic_load(&flag));
    CHECK(!atomic_load(&b.ended));

    let_go(&b);
    AWAIT(atomic_load(&report_count) == 2);
    CHECK_EQUAL(reports[1].stall.worker, 0);
    CHECK(reports[1].stall.over);
    CHECK(strcmp(reports[1].name, "blocker") == 0);
    CHECK_EQUAL(reports[1].stall.tag, 0xabcdef0123456789);
    CHECK(reports[1].stall.stuck_ns >= reports[0].stall.stuck_ns);
    drain(rt);
    CHECK_EQUAL(stats_of(rt).stalls, 1);
    weir_runtime_free(rt);
    blocker_fini(&b);
}

static void spin(void *arg)
{
    while (!atomic_load((_Atomic int *)arg))
        ;
}

static void test_a_body_that_computes_too_long_is_a_stall_as_well(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 1, .stall_after_ms = LONG_MS));
    _Atomic int stop = 0, flag = 0;

    CHECK_EQUAL(weir_spawn(rt, spin, &stop, WEIR_SPAWN(.name = "spinner")), 0);
    AWAIT(atomic_load(&report_count) >= 1);
    CHECK(strcmp(reports[0].name, "spinner") == 0);
    CHECK_EQUAL(weir_spawn(rt, set_flag, &flag, NULL), 0);
    AWAIT(atomic_load(&flag));
    atomic_store(&stop, 1);
    drain(rt);
    weir_runtime_free(rt);
}

static void test_names_are_cut_and_may_be_missing(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 1, .stall_after_ms = LONG_MS));
    struct blocker b;

    for (int i = 0; i < 2; i++) {
        const char *name = i ? "a name of forty bytes, which are too many" : NULL;
        blocker_init(&b);
        CHECK_EQUAL(weir_spawn(rt, block, &b, WEIR_SPAWN(.name = name)), 0);
        AWAIT(atomic_load(&report_count) == 2 * i + 1);
        CHECK(strcmp(reports[2 * i].name, i ? "a name of forty bytes, which ar" : "") == 0);
        CHECK_EQUAL(reports[2 * i].stall.tag, 0);
        let_go(&b);
        AWAIT(atomic_load(&report_count) == 2 * i + 2);
        blocker_fini(&b);
    }
    weir_runtime_free(rt);
}

static void test_a_stall_needs_no_callback_to_be_replaced(void)
{
    weir_runtime *rt = new_runtime(WEIR_RUNTIME(.workers = 1));
    struct blocker b;
    _Atomic int flag = 0;

    blocker_init(&b);
    CHECK_EQUAL(weir_spawn(rt, block, &b, NULL), 0);
    AWAIT(atomic_load(&b.begun));
    CHECK_EQUAL(weir_spawn(rt, set_flag, &flag, NULL), 0);
    AWAIT(atomic_load(&flag));
    CHECK(!atomic_load(&b.ended));
    CHECK_EQUAL(stats_of(rt).stalls, 1);
    let_go(&b);
    drain(rt);
    weir_runtime_free(rt);
    blocker_fini(&b);
}

/* ---- several --------------------------------------------------------------------------------- */

static void test_one_replacement_serves_one_stall_after_another(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 1, .stall_after_ms = LONG_MS));
    struct blocker b;

    blocker_init(&b);
    for (int i = 0; i < 5 && !atomic_load(&checks_failed); i++) {
        CHECK_EQUAL(weir_spawn(rt, block, &b, NULL), 0);
        AWAIT(atomic_load(&report_count) == 2 * i + 1);
        CHECK(reports[2 * i].stall.replaced);
        let_go(&b);
        AWAIT(atomic_load(&report_count) == 2 * i + 2);
        AWAIT(atomic_load(&b.ended) == i + 1);
        CHECK_EQUAL(stats_of(rt).stalls, i + 1);
        CHECK_EQUAL(stats_of(rt).workers_live, 2);
    }
    weir_runtime_free(rt);
    blocker_fini(&b);
}

static void test_stalls_beyond_the_limit_are_reported_but_not_replaced(void)
{
    weir_runtime *rt =
        new_runtime(WATCHED(.workers = 2, .replacements_max = 1, .stall_after_ms = LONG_MS));
    struct blocker b;
    int replaced = 0;

    blocker_init(&b);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(weir_spawn(rt, block, &b, NULL), 0);
    AWAIT(atomic_load(&report_count) == 3); /* two workers, and the one replacement */
    for (int i = 0; i < 3; i++)
        replaced += reports[i].stall.replaced;
    CHECK_EQUAL(replaced, 1);
    CHECK_EQUAL(stats_of(rt).workers_live, 3);
    for (int i = 0; i < 3; i++)
        let_go(&b);
    drain(rt);
    AWAIT(atomic_load(&report_count) == 6);
    CHECK_EQUAL(stats_of(rt).stalls, 3);
    weir_runtime_free(rt);
    blocker_fini(&b);
}

struct waiter {
    pthread_t thread;
    _Atomic int begun, stop, woke;
};

static void wait_and_compare(void *arg)
{
    struct waiter *w = arg;

    w->thread = pthread_self();
    atomic_store(&w->begun, 1);
    while (!atomic_load(&w->stop))
        CHECK_EQUAL(weir_sleep(weir_in_us(200)), 0);
    CHECK(pthread_equal(w->thread, pthread_self()));
    atomic_store(&w->woke, 1);
}

/* Bodies cannot move: those that began on the stuck worker wait for it, and those that began on the
 * replacement are carried by it to their end, also after the stall. */
static void test_bodies_that_wait_stay_with_the_worker_they_began_on(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 1, .stall_after_ms = LONG_MS));
    struct waiter stuck = { .begun = 0 }, moved = { .begun = 0 };
    struct blocker b;

    blocker_init(&b);
    CHECK_EQUAL(weir_spawn(rt, wait_and_compare, &stuck, NULL), 0);
    AWAIT(atomic_load(&stuck.begun));
    CHECK_EQUAL(weir_spawn(rt, block, &b, NULL), 0);
    AWAIT(atomic_load(&report_count) == 1);
    atomic_store(&stuck.stop, 1);
    CHECK_EQUAL(weir_spawn(rt, wait_and_compare, &moved, NULL), 0);
    AWAIT(atomic_load(&moved.begun));
    CHECK(!pthread_equal(stuck.thread, moved.thread));
    CHECK(!atomic_load(&stuck.woke));
    let_go(&b);
    AWAIT(atomic_load(&stuck.woke));
    AWAIT(atomic_load(&report_count) == 2);
    atomic_store(&moved.stop, 1);
    AWAIT(atomic_load(&moved.woke));
    drain(rt);
    weir_runtime_free(rt);
    blocker_fini(&b);
}

/* ---- after a stall --------------------------------------------------------------------------- */

struct turn {
    _Atomic int begun, stop;
};

static void take_turn(void *arg)
{
    struct turn *turn = arg;

    atomic_store(&turn->begun, 1);
    for (weir_time limit = patience(); !atomic_load(&turn->stop) && weir_now() < limit;)
        ;
}

/* When the stall is over the replacement takes no new work any more. It may be the one that fell
 * asleep last, and so the first to be woken for new work; another worker must get it then. */
static void test_work_that_comes_after_a_stall_is_not_left_lying(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 1, .stall_after_ms = 1500));
    struct turn first = { .begun = 0 }, second = { .begun = 0 };
    struct blocker b;

    blocker_init(&b);
    CHECK_EQUAL(weir_spawn(rt, block, &b, NULL), 0);
    AWAIT(atomic_load(&report_count) == 1);
    AWAIT(stats_of(rt).workers_idle == 1); /* the replacement */
    let_go(&b);
    AWAIT(stats_of(rt).workers_idle == 2);
    /* Before the monitor looks again: one body on each, and the worker's ends first. */
    CHECK_EQUAL(weir_spawn(rt, take_turn, &first, NULL), 0);
    AWAIT(atomic_load(&first.begun));
    CHECK_EQUAL(weir_spawn(rt, take_turn, &second, NULL), 0);
    AWAIT(atomic_load(&second.begun));
    atomic_store(&first.stop, 1);
    AWAIT(stats_of(rt).workers_idle == 1);
    atomic_store(&second.stop, 1);
    AWAIT(atomic_load(&report_count) >= 2);
    for (int i = 0; i < 20 && !atomic_load(&checks_failed); i++) {
        _Atomic int flag = 0;
        CHECK_EQUAL(weir_spawn(rt, set_flag, &flag, NULL), 0);
        AWAIT(atomic_load(&flag));
        if (!atomic_load(&flag)) { /* the flag must outlive its body */
            CHECK_EQUAL(weir_spawn(rt, free, NULL, NULL), 0);
            drain(rt);
        }
    }
    weir_runtime_free(rt);
    blocker_fini(&b);
}

/* ---- none ------------------------------------------------------------------------------------ */

static void sleep_for_ever(void *arg)
{
    (void)arg;
    weir_sleep(WEIR_FOREVER);
}

static void test_bodies_that_wait_are_no_stall(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 2, .stall_after_ms = LONG_MS));

    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(weir_spawn(rt, sleep_for_ever, NULL, NULL), 0);
    AWAIT(stats_of(rt).workers_idle == 2);
    CHECK_EQUAL(atomic_load(&report_count), 0);
    weir_sleep(weir_in_ms(3 * LONG_MS)); /* longer than a stall takes to be one */
    CHECK_EQUAL(atomic_load(&report_count), 0);
    CHECK_EQUAL(stats_of(rt).stalls, 0);
    CHECK_EQUAL(stats_of(rt).workers_live, 2);
    weir_runtime_free(rt);
}

static void test_an_idle_runtime_has_no_stalls(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 2, .stall_after_ms = 1));

    weir_sleep(weir_in_ms(50));
    CHECK_EQUAL(atomic_load(&report_count), 0);
    CHECK_EQUAL(stats_of(rt).stalls, 0);
    weir_runtime_free(rt);
}

static void test_a_blocking_call_elsewhere_is_no_stall(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 1, .stall_after_ms = LONG_MS));
    struct blocker b;

    blocker_init(&b);
    CHECK_EQUAL(weir_spawn(rt, block, &b, WEIR_SPAWN(.run_on = WEIR_THREADS)), 0);
    AWAIT(atomic_load(&b.begun));
    weir_sleep(weir_in_ms(3 * LONG_MS));
    CHECK_EQUAL(atomic_load(&report_count), 0);
    let_go(&b);
    drain(rt);
    weir_runtime_free(rt);
    blocker_fini(&b);
}

static void *let_go_later(void *arg)
{
    poll(NULL, 0, 30);
    let_go(arg);
    return NULL;
}

static void test_free_during_a_stall_waits_for_its_end(void)
{
    weir_runtime *rt = new_runtime(WATCHED(.workers = 1, .stall_after_ms = LONG_MS));
    struct blocker b;
    pthread_t helper;

    blocker_init(&b);
    CHECK_EQUAL(weir_spawn(rt, block, &b, NULL), 0);
    CHECK_EQUAL(weir_spawn(rt, sleep_for_ever, NULL, NULL), 0);
    AWAIT(atomic_load(&report_count) >= 1);
    assert_int_equal(pthread_create(&helper, NULL, let_go_later, &b), 0);
    weir_runtime_free(rt);
    CHECK_EQUAL(atomic_load(&b.ended), 1);
    pthread_join(helper, NULL);
    blocker_fini(&b);
}

int main(void)
{
#define STALL_TEST(test)                                                 \
    {                                                                    \
#test, test_run, forget_reports, NULL, (void *)(uintptr_t)(test) \
    }
    const struct CMUnitTest tests[] = {
        STALL_TEST(test_a_stall_is_reported_replaced_and_reported_over),
        STALL_TEST(test_a_body_that_computes_too_long_is_a_stall_as_well),
        STALL_TEST(test_names_are_cut_and_may_be_missing),
        STALL_TEST(test_a_stall_needs_no_callback_to_be_replaced),
        STALL_TEST(test_one_replacement_serves_one_stall_after_another),
        STALL_TEST(test_stalls_beyond_the_limit_are_reported_but_not_replaced),
        STALL_TEST(test_bodies_that_wait_stay_with_the_worker_they_began_on),
        STALL_TEST(test_work_that_comes_after_a_stall_is_not_left_lying),
        STALL_TEST(test_bodies_that_wait_are_no_stall),
        STALL_TEST(test_an_idle_runtime_has_no_stalls),
        STALL_TEST(test_a_blocking_call_elsewhere_is_no_stall),
        STALL_TEST(test_free_during_a_stall_waits_for_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
