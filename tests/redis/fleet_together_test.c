/* Several guards, of this process and of servers: all or none.
 * SPDX-License-Identifier: MIT */
#include "redis/fleet_support.h"

#include <pthread.h>

enum { LOCAL, PERMITS, MUTEX, WINDOW, RATE, GUARDS };

struct set {
    weir_store *local, *fleet, *other;
    weir_guard *guard[GUARDS];
};

static struct set set_of(const char *name, int64_t calls)
{
    struct set s;
    char text[64];

    assert_int_equal(weir_store_local(&s.local), 0);
    s.fleet = store_of(NULL);
    s.other = store_of(WEIR_FLEET(.application = "other"));
    s.guard[LOCAL] = guard_of(s.local, name, WEIR_CONCURRENCY(.limit = 2));
    snprintf(text, sizeof(text), "%s permits", name);
    s.guard[PERMITS] = guard_of(s.fleet, text, WEIR_CONCURRENCY(.limit = 2));
    snprintf(text, sizeof(text), "%s mutex", name);
    s.guard[MUTEX] = guard_of(s.other, text, WEIR_MUTEX());
    snprintf(text, sizeof(text), "%s window", name);
    s.guard[WINDOW] =
        guard_of(s.fleet, text,
                 WEIR_FREQUENCY(.mode = WEIR_EXACT, .limit = calls, .period_ns = MS(3600000)));
    snprintf(text, sizeof(text), "%s rate", name);
    s.guard[RATE] = guard_of(s.fleet, text, WEIR_RATE(.limit = calls, .period_ns = MS(3600000)));
    return s;
}

static void set_free(struct set *s)
{
    for (int i = 0; i < GUARDS; i++)
        weir_guard_unref(s->guard[i]);
    weir_store_free(s->local);
    weir_store_free(s->fleet);
    weir_store_free(s->other);
}

static void empty(weir_permit *p)
{
    for (int i = 0; i < GUARDS; i++)
        p[i] = WEIR_PERMIT;
}

/* Releases are sent without waiting for their answers. */
static void await_available(weir_guard *guard, int64_t count)
{
    weir_time end = patience();

    while (guard_stats(guard).available != count && weir_now() < end)
        weir_sleep(weir_in_ms(1));
    assert_int_equal(guard_stats(guard).available, count);
}

static void test_all_are_entered_and_left(void)
{
    struct set s = set_of("all", 10);
    weir_permit p[GUARDS];

    empty(p);
    assert_int_equal(weir_guards_enter(p, s.guard, GUARDS, patience()), 0);
    for (int i = 0; i < GUARDS; i++)
        assert_ptr_equal(p[i].guard, s.guard[i]);
    assert_int_equal(guard_stats(s.guard[PERMITS]).used, 1);
    assert_int_equal(guard_stats(s.guard[WINDOW]).available, 9);
    weir_guards_leave(p, GUARDS, 0);
    await_available(s.guard[PERMITS], 2);
    await_available(s.guard[MUTEX], 1);
    set_free(&s);
}

/* Whichever refuses, all others are as they were, and every permit says when to come again. */
static void test_one_that_refuses_leaves_all_others_as_they_were(void)
{
    static const int error[GUARDS] = { WEIR_EFULL, WEIR_EFULL, WEIR_ELOCKED, WEIR_ETOOFAST,
                                       WEIR_ETOOFAST };

    for (int refusing = 0; refusing < GUARDS; refusing++) {
        char name[32];
        struct set s;
        weir_permit p[GUARDS], q[2] = { WEIR_PERMIT, WEIR_PERMIT };

        snprintf(name, sizeof(name), "none %d", refusing);
        s = set_of(name, 2);
        for (int i = 0; i < (refusing == MUTEX ? 1 : 2); i++)
            assert_int_equal(weir_guard_enter(&q[i], s.guard[refusing], patience()), 0);
        empty(p);
        assert_int_equal(weir_guards_enter(p, s.guard, GUARDS, WEIR_NOW_OR_NEVER), error[refusing]);
        for (int i = 0; i < GUARDS; i++) {
            assert_null(p[i].guard);
            assert_int_equal(p[i].retry_at, p[0].retry_at);
            if (i != refusing)
                await_available(s.guard[i], i == MUTEX ? 1 : 2);
        }
        if (refusing >= WINDOW) /* in an hour */
            assert_true(p[0].retry_at > weir_now() && p[0].retry_at <= weir_in_s(3600));
        for (int i = 0; i < 2; i++)
            if (q[i].guard)
                weir_guard_leave(&q[i], 0);
        set_free(&s);
    }
}

static void test_the_same_guard_twice_is_refused(void)
{
    struct set s = set_of("twice", 2);
    weir_guard *twice[2] = { s.guard[MUTEX], s.guard[MUTEX] };
    weir_permit p[2] = { WEIR_PERMIT, WEIR_PERMIT };

    assert_int_equal(weir_guards_enter(p, twice, 2, WEIR_NOW_OR_NEVER), WEIR_EINVAL);
    assert_int_equal(guard_stats(s.guard[MUTEX]).available, 1);
    set_free(&s);
}

static _Atomic int waits, inside, most;

static void *enter_both(void *arg)
{
    weir_guard *const *guards = arg;

    for (int i = 0; i < 20; i++) {
        weir_permit p[2] = { WEIR_PERMIT, WEIR_PERMIT };
        int now, seen;

        if (!CHECK(weir_guards_enter(p, guards, 2, patience()) == 0))
            return NULL;
        now = atomic_fetch_add(&inside, 1) + 1;
        for (seen = most; now > seen && !atomic_compare_exchange_weak(&most, &seen, now);)
            ;
        atomic_fetch_sub(&inside, 1);
        weir_guards_leave(p, 2, 0);
    }
    atomic_fetch_add(&waits, 1);
    return NULL;
}

/* Two mutexes in both orders, one of this process and one of a fleet: no caller waits for another for ever. */
static void test_callers_that_want_the_same_guards_in_any_order_all_enter(void)
{
    struct set s = set_of("forks", 2);
    weir_guard *local = guard_of(s.local, "fork", WEIR_MUTEX());
    weir_guard *one[2] = { local, s.guard[MUTEX] }, *other[2] = { s.guard[MUTEX], local };
    pthread_t thread[4];

    waits = inside = most = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, enter_both, (void *)(i % 2 ? one : other));
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(waits, 4);
    assert_int_equal(most, 1);
    weir_guard_unref(local);
    set_free(&s);
}

static void *wait_for_all(void *arg)
{
    struct set *s = arg;
    weir_permit p[GUARDS];

    empty(p);
    if (CHECK(weir_guards_enter(p, s->guard, GUARDS, patience()) == 0))
        weir_guards_leave(p, GUARDS, 0);
    return NULL;
}

static void test_a_caller_that_waits_for_one_holds_none_of_the_others(void)
{
    struct set s = set_of("wait", 10);
    weir_permit q = WEIR_PERMIT;
    pthread_t thread;

    assert_int_equal(weir_guard_enter(&q, s.guard[MUTEX], WEIR_NOW_OR_NEVER), 0);
    pthread_create(&thread, NULL, wait_for_all, &s);
    AWAIT(guard_stats(s.guard[MUTEX]).waiting == 1);
    await_available(s.guard[PERMITS], 2);
    await_available(s.guard[LOCAL], 2);
    await_available(s.guard[RATE], 10);
    await_available(s.guard[WINDOW], 10);
    weir_guard_leave(&q, 0);
    pthread_join(thread, NULL);
    set_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_are_entered_and_left),
        TEST(test_one_that_refuses_leaves_all_others_as_they_were),
        TEST(test_the_same_guard_twice_is_refused),
        TEST(test_callers_that_want_the_same_guards_in_any_order_all_enter),
        TEST(test_a_caller_that_waits_for_one_holds_none_of_the_others),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
