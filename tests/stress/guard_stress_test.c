/* Guards under real threads and tasks: never too many inside, no permit lost, no waiter forgotten.
 * SPDX-License-Identifier: MIT */
#include "support/crew.h"
#include "support/seed.h"

#include <unistd.h>

enum { ACTORS = 6, ROUNDS = SANITIZED ? 2000 : 20000 };

struct scene {
    weir_store *store;
    weir_guard *mutex, *three, *rate, *breaker, *frequency;
    _Atomic int inside_mutex, inside_three;
    _Atomic uint64_t entered;
    int64_t plain; /* under the mutex only: TSan would see a race */
    _Atomic uint32_t numbers;
};

static weir_guard *make(weir_store *store, const char *name, const weir_guard_options *opt)
{
    weir_guard *guard = NULL;

    CHECK_EQUAL(weir_guard_new(&guard, store, name, opt, NULL), 0);
    return guard;
}

static weir_time some_deadline(struct luck *luck)
{
    switch (luck_below(luck, 3)) {
    case 0:
        return WEIR_NOW_OR_NEVER;
    case 1:
        return patience();
    default:
        return weir_in_us((int64_t)luck_below(luck, 50));
    }
}

static void one(struct scene *s, struct luck *luck)
{
    bool alone = luck_below(luck, 2);
    weir_guard *guard = alone ? s->mutex : s->three;
    _Atomic int *inside = alone ? &s->inside_mutex : &s->inside_three;
    weir_permit p = WEIR_PERMIT;

    if (weir_guard_enter(&p, guard, some_deadline(luck)))
        return;
    CHECK(atomic_fetch_add(inside, 1) < (alone ? 1 : 3));
    if (alone)
        s->plain++;
    if (luck_below(luck, 50) == 0)
        weir_yield();
    atomic_fetch_sub(inside, 1);
    CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    atomic_fetch_add(&s->entered, 1);
}

static void several(struct scene *s, struct luck *luck)
{
    weir_guard *guards[] = { s->mutex, s->breaker, s->three, s->rate };
    weir_permit p[4] = { WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT, WEIR_PERMIT };

    if (weir_guards_enter(p, guards, 4, some_deadline(luck)))
        return;
    CHECK_EQUAL(atomic_fetch_add(&s->inside_mutex, 1), 0);
    CHECK(atomic_fetch_add(&s->inside_three, 1) < 3);
    s->plain++;
    atomic_fetch_sub(&s->inside_three, 1);
    atomic_fetch_sub(&s->inside_mutex, 1);
    weir_guards_leave(p, 4, luck_below(luck, 10) ? 0 : -EIO);
}

static void other(struct scene *s, struct luck *luck)
{
    weir_guard *guard = luck_below(luck, 2)   ? s->breaker
                        : luck_below(luck, 2) ? s->rate
                                              : s->frequency;
    weir_permit p = WEIR_PERMIT;
    weir_guard_stats stats = { .size = sizeof(stats) };

    if (weir_guard_enter(&p, guard, WEIR_NOW_OR_NEVER) == 0)
        CHECK_EQUAL(luck_below(luck, 5) ? weir_guard_leave(&p, luck_below(luck, 4) ? 0 : -EIO)
                                        : weir_guard_release(&p),
                    0);
    if (luck_below(luck, 20) == 0)
        CHECK_EQUAL(weir_guard_stats_get(&stats, s->three), 0);
    if (luck_below(luck, 200) == 0)
        CHECK_EQUAL(weir_guard_change(s->three,
                                      WEIR_BULKHEAD(.limit = 1 + (int64_t)luck_below(luck, 3)),
                                      NULL, NULL),
                    0);
}

static void acts(void *arg)
{
    struct scene *s = arg;
    struct luck luck = luck_of(atomic_fetch_add(&s->numbers, 1));

    for (int i = 0; i < ROUNDS; i++)
        switch (luck_below(&luck, 5)) {
        case 0:
            several(s, &luck);
            break;
        case 1:
            other(s, &luck);
            break;
        default:
            one(s, &luck);
        }
}

/* The mutex and the bulkhead are in `store`, the others in one of this process. */
static void play(struct crew *crew, weir_store *store)
{
    struct scene s = { .plain = 0 };
    weir_guard_stats stats = { .size = sizeof(stats) };

    CHECK_EQUAL(weir_store_local(&s.store), 0);
    s.mutex = make(store, "mutex", WEIR_MUTEX());
    s.three = make(store, "three", WEIR_BULKHEAD(.limit = 3));
    s.rate = make(s.store, "rate", WEIR_RATE(.limit = 1000, .period_ns = 1000000));
    s.breaker =
        make(s.store, "breaker",
             WEIR_BREAKER(.window = 20, .failure_percent = 50, .probes = 3, .open_ns = 1000000));
    s.frequency =
        make(s.store, "f", WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = 100, .period_ns = 1000000));
    for (int i = 0; i < ACTORS; i++)
        crew_go(crew, acts, &s);
    crew_join(crew);
    CHECK(s.entered > 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(weir_guard_stats_get(&stats, i ? s.three : s.mutex), 0);
        CHECK_EQUAL(stats.used, 0);
        CHECK_EQUAL(stats.waiting, 0);
        CHECK_EQUAL(stats.entered, stats.left + stats.released);
    }
    /* As it was made, so that nothing of it stays. */
    CHECK_EQUAL(weir_guard_change(s.three, WEIR_BULKHEAD(.limit = 3), NULL, NULL), 0);
    weir_guard_unref(s.mutex);
    weir_guard_unref(s.three);
    weir_guard_unref(s.rate);
    weir_guard_unref(s.breaker);
    weir_guard_unref(s.frequency);
    weir_store_free(s.store);
}

static void test_never_too_many_inside(struct crew *crew)
{
    weir_store *store;

    CHECK_EQUAL(weir_store_local(&store), 0);
    play(crew, store);
    weir_store_free(store);
}

static void test_never_too_many_inside_on_the_host(struct crew *crew)
{
    char directory[64];
    weir_store *store = NULL;

    snprintf(directory, sizeof(directory), "/dev/shm/weir-stress-%d", getpid());
    assert_int_equal(weir_store_host(&store, WEIR_HOST(.directory = directory), NULL), 0);
    play(crew, store);
    weir_store_free(store);
    CHECK_EQUAL(rmdir(directory), 0);
}

static void makes_and_drops(void *arg)
{
    struct scene *s = arg;
    struct luck luck = luck_of(atomic_fetch_add(&s->numbers, 1));
    char name[16];

    for (int i = 0; i < ROUNDS / 10; i++) {
        weir_guard *g = NULL;
        weir_permit p = WEIR_PERMIT;

        snprintf(name, sizeof(name), "%d", (int)luck_below(&luck, 40));
        CHECK_EQUAL(weir_guard_new(&g, s->store, name, WEIR_BULKHEAD(.limit = 1000), NULL), 0);
        CHECK_EQUAL(weir_guard_enter(&p, g, WEIR_NOW_OR_NEVER), 0);
        CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
        weir_guard_unref(g);
    }
}

static void test_guards_come_and_go_by_name(struct crew *crew)
{
    struct scene s = { .plain = 0 };

    CHECK_EQUAL(weir_store_local(&s.store), 0);
    for (int i = 0; i < ACTORS; i++)
        crew_go(crew, makes_and_drops, &s);
    crew_join(crew);
    weir_store_free(s.store);
}

static void calls_well(void *arg)
{
    struct scene *s = arg;

    for (int i = 0; i < 10 * ROUNDS; i++) {
        weir_permit p = WEIR_PERMIT;
        CHECK_EQUAL(weir_guard_enter(&p, s->breaker, WEIR_NOW_OR_NEVER), 0);
        CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
    }
}

static void looks(void *arg)
{
    struct scene *s = arg;

    for (int i = 0; i < ROUNDS / 10; i++) {
        weir_guard_stats stats = { .size = sizeof(stats) };
        CHECK_EQUAL(weir_guard_stats_get(&stats, s->breaker), 0);
        CHECK_EQUAL(stats.stored_failed, 0);
        CHECK(stats.succeeded == stats.left && stats.left == stats.entered);
    }
}

/* Every call is counted once, however many threads get in each other's way, and whichever looks meanwhile. Failures that
 * come after them find all of them in the window. */
static void test_a_breaker_counts_the_calls_of_all_threads(struct crew *crew)
{
    weir_guard_stats stats = { .size = sizeof(stats) };
    struct scene s = { .plain = 0 };

    CHECK_EQUAL(weir_store_local(&s.store), 0);
    s.breaker = make(s.store, "b", WEIR_BREAKER(.window = 50, .minimum = 10, .failure_percent = 6));
    for (int i = 0; i < ACTORS; i++)
        crew_go(crew, i ? calls_well : looks, &s);
    crew_join(crew);
    for (int i = 0; i < 3; i++) {
        weir_permit p = WEIR_PERMIT;
        CHECK_EQUAL(weir_guard_stats_get(&stats, s.breaker), 0);
        CHECK_EQUAL(stats.stored, 50);
        CHECK_EQUAL(stats.stored_failed, i);
        CHECK_EQUAL(stats.succeeded, (ACTORS - 1) * 10 * ROUNDS);
        CHECK_EQUAL(stats.state, WEIR_CLOSED);
        CHECK_EQUAL(weir_guard_enter(&p, s.breaker, WEIR_NOW_OR_NEVER), 0);
        CHECK_EQUAL(weir_guard_leave(&p, -1), 0);
    }
    CHECK_EQUAL(weir_guard_stats_get(&stats, s.breaker), 0);
    CHECK_EQUAL(stats.state, WEIR_OPEN); /* 3 of 50 are 6 % */
    weir_guard_unref(s.breaker);
    weir_store_free(s.store);
}

static void calls_very_fast(void *arg)
{
    struct scene *s = arg;
    weir_time end = weir_now() + 20000000; /* some pulses; right however long it takes */

    do
        for (int i = 0; i < 1000; i++) {
            weir_permit p = WEIR_PERMIT;
            CHECK_EQUAL(weir_guard_enter(&p, s->breaker, WEIR_NOW_OR_NEVER), 0);
            CHECK_EQUAL(weir_guard_leave(&p, 0), 0);
            s->entered++;
        }
    while (weir_now() < end);
}

/* Timed by the pulse, if they are fast enough: each thread has one call under way when time goes on, so all that they are
 * said to have taken is no more than the time that passed. */
static void test_fast_calls_take_no_more_than_the_time_that_passes(struct crew *crew)
{
    weir_guard_stats stats = { .size = sizeof(stats) };
    struct scene s = { .plain = 0 };
    weir_time begin = weir_now();

    CHECK_EQUAL(weir_store_local(&s.store), 0);
    s.breaker = make(s.store, "b", WEIR_BREAKER(.mode = WEIR_BY_TIME, .window = 86400));
    for (int i = 0; i < ACTORS; i++)
        crew_go(crew, i ? calls_very_fast : looks, &s);
    crew_join(crew);
    CHECK_EQUAL(weir_guard_stats_get(&stats, s.breaker), 0);
    CHECK_EQUAL(stats.stored, s.entered);
    CHECK_EQUAL(stats.succeeded, s.entered);
    CHECK_EQUAL(stats.slow, 0);
    CHECK(stats.stored_ns <= 2 * ACTORS * (weir_now() - begin));
    weir_guard_unref(s.breaker);
    weir_store_free(s.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(test_never_too_many_inside),
        PLAY(test_never_too_many_inside_on_the_host),
        PLAY(test_guards_come_and_go_by_name),
        PLAY(test_a_breaker_counts_the_calls_of_all_threads),
        PLAY(test_fast_calls_take_no_more_than_the_time_that_passes),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
