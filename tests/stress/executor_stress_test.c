/* The executor on real threads: limits hold, nothing is lost, whatever happens at the same time.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

#if SANITIZED
enum { TASKS = 4000, ROUNDS = 20 };
#else
enum { TASKS = 40000, ROUNDS = 100 };
#endif
enum { GROUPS = 8, SUBMITTERS = 3, LIMIT = 3, GLOBAL = 10 };

struct gauge {
    _Atomic int now;
    _Atomic int ran;
};

struct load {
    weir_executor *ex;
    struct gauge gauge[GROUPS], all;
    _Atomic uint64_t settled, submitted;
    unsigned seed;
};

struct one {
    struct load *load;
    int group;
    unsigned luck;
};

static int body(void **value, void *arg)
{
    struct one *one = arg;
    struct gauge *gauge = &one->load->gauge[one->group];

    (void)value;
    CHECK(atomic_fetch_add(&gauge->now, 1) < LIMIT);
    CHECK(atomic_fetch_add(&one->load->all.now, 1) < GLOBAL);
    if (one->luck % 4 == 0)
        weir_sleep(weir_in_us(one->luck % 300));
    else if (one->luck % 4 == 1)
        weir_yield();
    atomic_fetch_sub(&one->load->all.now, 1);
    atomic_fetch_sub(&gauge->now, 1);
    atomic_fetch_add(&gauge->ran, 1);
    return one->luck % 7 == 0 ? -1 : 0;
}

static void settled(weir_task *task, const weir_result *result, void *arg)
{
    struct one *one = arg;

    (void)task;
    CHECK(result->outcome != WEIR_UNSETTLED);
    CHECK(result->queued_at <= result->started_at && result->started_at <= result->ended_at);
    atomic_fetch_add(&one->load->settled, 1);
    /* A cancelled body may still run, so `one` is freed with the load. */
}

static struct one *ones;
static _Atomic int next_one;

static _Atomic unsigned submitters;

static void *submitter(void *arg)
{
    struct load *load = arg;
    unsigned luck = load->seed + 7919 * atomic_fetch_add(&submitters, 1);
    weir_task *handle = NULL;
    char key[8];

    for (int i = 0; i < TASKS / SUBMITTERS; i++) {
        struct one *one = &ones[atomic_fetch_add(&next_one, 1)];
        *one = (struct one){ load, (int)(rand_r(&luck) % GROUPS), (unsigned)rand_r(&luck) };
        snprintf(key, sizeof(key), "g%d", one->group);
        CHECK(weir_submit_key(&handle, load->ex, key, body, one,
                              WEIR_TASK(.on_done = settled, .on_done_arg = one)) == 0);
        atomic_fetch_add(&load->submitted, 1);
        if (one->luck % 16 == 0)
            weir_task_cancel(handle);
        else if (one->luck % 64 == 1)
            CHECK(weir_task_wait(NULL, handle, WEIR_FOREVER) == 0);
        weir_task_unref(handle);
    }
    return NULL;
}

static void *meddler(void *arg)
{
    struct load *load = arg;
    unsigned luck = load->seed * 31;

    while (atomic_load(&load->submitted) < TASKS / SUBMITTERS * SUBMITTERS) {
        weir_executor_stats stats = { .size = sizeof(stats) };
        weir_group *group;
        char key[8];
        snprintf(key, sizeof(key), "g%d", (int)(rand_r(&luck) % GROUPS));
        CHECK(weir_group_get(&group, load->ex, key) == 0);
        switch (rand_r(&luck) % 5) {
        case 0:
            weir_group_pause(group);
            weir_group_resume(group);
            break;
        case 1:
            CHECK(weir_group_resize(group, 1 + rand_r(&luck) % LIMIT, 0, 0) == 0);
            break;
        case 2:
            CHECK(weir_group_evict(load->ex, key, WEIR_CARRY_OVER) == 0);
            break;
        case 3:
            CHECK(weir_group_cool_down(group, weir_in_us(rand_r(&luck) % 200)) == 0);
            break;
        default:
            CHECK(weir_executor_stats_get(&stats, load->ex) == 0);
            break;
        }
        weir_sleep(weir_in_us(200));
    }
    return NULL;
}

static void test_limits_hold_and_nothing_is_lost_while_everything_changes(void)
{
    struct load load = { .seed = (unsigned)seed };
    weir_executor_stats stats = { .size = sizeof(stats) };
    pthread_t thread[SUBMITTERS + 1];
    int ran = 0;

    ones = calloc(TASKS, sizeof(*ones));
    next_one = 0;
    assert_int_equal(
        weir_executor_new(&load.ex,
                          WEIR_POLICY(.workers = 3, .group_limit = LIMIT, .inflight_max = GLOBAL,
                                      .rejection = WEIR_DISCARD),
                          NULL),
        0);
    for (int i = 0; i < SUBMITTERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, submitter, &load), 0);
    assert_int_equal(pthread_create(&thread[SUBMITTERS], NULL, meddler, &load), 0);
    for (int i = 0; i <= SUBMITTERS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(weir_executor_drain(load.ex, patience()), 0);
    assert_int_equal(load.settled, load.submitted);
    assert_int_equal(weir_executor_stats_get(&stats, load.ex), 0);
    assert_int_equal(stats.submitted, load.submitted);
    assert_int_equal(stats.submitted,
                     stats.succeeded + stats.failed + stats.cancelled + stats.rejected);
    for (int i = 0; i < GROUPS; i++)
        ran += load.gauge[i].ran;
    assert_true(ran > 0);
    weir_executor_free(load.ex);
    free(ones);
}

static int quick(void **value, void *arg)
{
    (void)value;
    atomic_fetch_add((_Atomic int *)arg, 1);
    return 0;
}

static void test_executors_come_and_go_under_load(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        weir_executor *ex;
        weir_task *kept[20];
        _Atomic int ran = 0;
        assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .group_limit = 2), NULL),
                         0);
        for (int i = 0; i < 20; i++)
            assert_int_equal(weir_submit_key(&kept[i], ex, i % 2 ? "a" : "b", quick, &ran, NULL),
                             0);
        weir_executor_free(ex);
        for (int i = 0; i < 20; i++) { /* handles outlive it */
            assert_true(weir_task_done(kept[i]));
            weir_task_unref(kept[i]);
        }
    }
}

static int until_cancelled(void **value, void *arg)
{
    (void)value;
    atomic_store((_Atomic int *)arg, 1);
    while (!weir_cancelled())
        weir_yield();
    return 0;
}

static void test_a_body_asks_whether_it_is_cancelled_while_it_is_being_cancelled(void)
{
    weir_executor *ex;

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 2), NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        weir_task *task;
        _Atomic int begun = 0;
        assert_int_equal(weir_submit_key(&task, ex, "a", until_cancelled, &begun, NULL), 0);
        while (!atomic_load(&begun))
            weir_yield();
        assert_true(weir_task_cancel(task));
        assert_int_equal(weir_executor_drain(ex, patience()), 0); /* `begun` is ours until then */
        weir_task_unref(task);
    }
    weir_executor_free(ex);
}

/* ---- an unbounded set of keys -------------------------------------------------------------------- */

enum { PASSERS = 2, PASSING = 5 * TASKS / 4 };

/* Every seventh is slow, every eleventh has a deadline, all have a pace. */
static int passing(weir_group_policy *out, const char *key, void *arg)
{
    int number = atoi(key);

    atomic_fetch_add((_Atomic int *)arg, 1);
    out->limit = 1 + number % 3;
    out->weight = 1 + number % 2;
    out->pace = (weir_pace){ .starts = number % 7 ? 1000000 : 2000, .burst = 1 + number % 3 };
    out->deadlines.total_ms = number % 11 ? 0 : 60000;
    return 0;
}

static int cools_sometimes(void **value, void *arg)
{
    _Atomic int *ran = arg;

    (void)value;
    if (atomic_fetch_add(ran, 1) % 16 == 0)
        CHECK_EQUAL(weir_task_cool_down(weir_task_self(), weir_in_us(200)), 0);
    return 0;
}

struct passer {
    weir_executor *ex;
    _Atomic int *ran;
    int first;
};

static void *pass(void *arg)
{
    struct passer *passer = arg;
    char key[16];

    for (int i = 0; i < PASSING; i++) {
        snprintf(key, sizeof(key), "%d", passer->first + i / 2);
        CHECK_EQUAL(weir_submit_key(NULL, passer->ex, key, cools_sometimes, passer->ran, NULL), 0);
    }
    return NULL;
}

/* Groups are made, paced, cooled down and forgotten, all at once; two submitters share half of them. */
static void test_paced_groups_come_and_go_and_nothing_is_lost(void)
{
    struct passer passer[PASSERS];
    pthread_t thread[PASSERS];
    _Atomic int asked = 0, ran = 0;
    weir_executor *ex;
    weir_executor_stats stats = { .size = sizeof(stats) };

    assert_int_equal(
        weir_executor_new(&ex,
                          WEIR_POLICY(.workers = 2, .idle_evict_ms = 1, .group_for = passing,
                                      .group_arg = (void *)&asked),
                          NULL),
        0);
    for (int i = 0; i < PASSERS; i++) {
        passer[i] = (struct passer){ ex, &ran, i * PASSING / 4 };
        assert_int_equal(pthread_create(&thread[i], NULL, pass, &passer[i]), 0);
    }
    for (int i = 0; i < PASSERS; i++)
        pthread_join(thread[i], NULL);
    CHECK_EQUAL(weir_executor_drain(ex, patience()), 0);
    CHECK_EQUAL(atomic_load(&ran), PASSERS * PASSING);
    AWAIT(weir_executor_stats_get(&stats, ex) == 0 && stats.groups == 0 &&
          stats.evicted == (uint64_t)atomic_load(&asked)); /* each was forgotten, in the end */
    CHECK_EQUAL(stats.succeeded, PASSERS * PASSING);
    weir_executor_free(ex);
}

enum { BANDS = 4, BEATS = 500000 }; /* starts per second of each */

/* Bodies without anything, that fail, wait or ask which task they are now and then. */
static int beat(void **value, void *arg)
{
    unsigned nth = (unsigned)atomic_fetch_add((_Atomic int *)arg, 1);

    (void)value;
    if (nth % 97 == 0)
        weir_sleep(weir_in_us(nth % 200));
    if (nth % 31 == 0)
        CHECK(weir_task_self() != NULL);
    return nth % 61 ? 0 : -1;
}

static void look_on(weir_executor *ex, weir_group **group, unsigned luck)
{
    weir_group_stats stats = { .size = sizeof(stats) };
    weir_group *one = group[luck % BANDS];

    if (luck % 5 == 0) {
        weir_group_pause(one);
        weir_group_resume(one);
    } else if (luck % 5 == 1) {
        CHECK_EQUAL(weir_group_pace(one, BEATS, 1000000000, 1 + luck % 3), 0);
    } else if (luck % 5 == 2) {
        CHECK_EQUAL(weir_group_cool_down(one, weir_in_us(luck % 100)), 0);
    } else {
        CHECK_EQUAL(weir_group_stats_get(&stats, ex, weir_group_key(one)), 0);
        CHECK(stats.started >= stats.succeeded + stats.failed && stats.running <= LIMIT);
    }
}

/* Tasks start by beats (src/executor/beat.h), which any call that looks on folds at any moment. */
static void test_a_pace_is_kept_while_other_calls_look_on(void)
{
    weir_group *group[BANDS];
    _Atomic int ran = 0;
    weir_executor *ex;
    weir_executor_stats stats = { .size = sizeof(stats) };
    unsigned luck = (unsigned)seed;

    assert_int_equal(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .group_limit = LIMIT), NULL),
                     0);
    for (int i = 0; i < BANDS; i++) {
        char key[2] = { (char)('a' + i), 0 };
        CHECK_EQUAL(weir_group_get(&group[i], ex, key), 0);
        CHECK_EQUAL(weir_group_pace(group[i], BEATS, 1000000000, 1), 0);
    }
    for (int i = 0; i < TASKS; i++) {
        CHECK_EQUAL(weir_submit(NULL, group[i % BANDS], beat, (void *)&ran, NULL), 0);
        if (i % 64 == 0)
            look_on(ex, group, (unsigned)rand_r(&luck));
    }
    for (int i = 0; i < ROUNDS; i++)
        look_on(ex, group, (unsigned)rand_r(&luck));
    CHECK_EQUAL(weir_executor_drain(ex, patience()), 0);
    CHECK_EQUAL(atomic_load(&ran), TASKS);
    CHECK_EQUAL(weir_executor_stats_get(&stats, ex), 0);
    CHECK_EQUAL(stats.succeeded + stats.failed, TASKS);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_limits_hold_and_nothing_is_lost_while_everything_changes),
        TEST(test_executors_come_and_go_under_load),
        TEST(test_a_body_asks_whether_it_is_cancelled_while_it_is_being_cancelled),
        TEST(test_paced_groups_come_and_go_and_nothing_is_lost),
        TEST(test_a_pace_is_kept_while_other_calls_look_on),
    };
    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
