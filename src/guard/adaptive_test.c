/* Adaptive limits on a model of a server, backoff and budgets.
 * SPDX-License-Identifier: MIT */
#include "guard/adaptive.h"
#include "guard/backoff.h"
#include "support/luck.h"

/* A server that runs `capacity` calls at a time, each 10 ms: beyond that, calls queue there and latency grows. The guard is
 * always full; all calls of a round end with the latency of that round. */
static double settle(weir_guard_mode mode, int64_t capacity, int64_t from)
{
    struct wr_adaptive a;
    double sum = 0;

    wr_adaptive_init(&a, mode, from, 1, 1000, 15000000);
    for (int i = 0; i < 4000; i++) {
        int64_t used = wr_adaptive_limit(&a);
        int64_t ns = used <= capacity ? 10000000 : 10000000 * used / capacity;
        for (int64_t k = 0; k < used; k++)
            wr_adaptive_end(&a, false, ns, used - k);
        sum += i >= 2000 ? (double)used : 0;
    }
    return sum / 2000;
}

/* Whatever their first value, limits come to stand between the server's capacity and twice that: below, it idles; above,
 * calls only wait in another place. */
static void test_limits_find_the_capacity_of_the_server(void **state)
{
    (void)state;
    for (int mode = WEIR_GRADIENT; mode <= WEIR_AIMD; mode++)
        for (int64_t capacity = 8; capacity <= 128; capacity *= 4)
            for (int64_t from = 1; from <= 1000; from += 333) {
                double limit = settle((weir_guard_mode)mode, capacity, from);
                if (limit < (double)capacity || limit > 2 * (double)capacity)
                    fail_msg("mode %d from %d: %f for %d", mode, (int)from, limit, (int)capacity);
            }
}

/* ---- calls that differ --------------------------------------------------------------------------- */

enum { SERVED_MAX = 1024 };

/* A server with `capacity` places and a queue behind a guard that is always full. Calls end one by one. */
struct server {
    int64_t capacity, busy, used, now,
        spread; /* a call takes 10 ms, give or take `spread` percent */
    int64_t entered[SERVED_MAX],
        end[SERVED_MAX];       /* of those that are served                      */
    int64_t queue[SERVED_MAX]; /* when those that wait entered: a ring          */
    uint64_t first, last;
    bool memoryless; /* durations as if each moment were as good to end as any other              */
};

static int64_t duration(const struct server *s)
{
    int64_t ns = 0;

    if (!s->memoryless)
        return 10000000 + between(-s->spread, s->spread) * 100000;
    while (between(1, 100) > 1) /* a hundred tries on average */
        ns += 100000;
    return ns + 1;
}

static void serve(struct server *s, int64_t entered)
{
    s->entered[s->busy] = entered;
    s->end[s->busy++] = s->now + duration(s);
}

static void fill(struct server *s, int64_t limit)
{
    for (; s->used < limit; s->used++)
        if (s->busy < s->capacity)
            serve(s, s->now);
        else
            s->queue[s->last++ % SERVED_MAX] = s->now;
}

/* The next call ends: how long it took. */
static int64_t end_one(struct server *s)
{
    int64_t first = 0, ns;

    for (int64_t i = 1; i < s->busy; i++)
        first = s->end[i] < s->end[first] ? i : first;
    s->now = s->end[first];
    ns = s->now - s->entered[first];
    s->busy--;
    s->entered[first] = s->entered[s->busy];
    s->end[first] = s->end[s->busy];
    if (s->first < s->last)
        serve(s, s->queue[s->first++ % SERVED_MAX]);
    return ns;
}

static double settle_amid_noise(struct server *s)
{
    struct wr_adaptive a;
    double sum = 0;

    wr_adaptive_init(&a, WEIR_GRADIENT, 20, 1, 1000, 0);
    for (int i = 0; i < 60000; i++) {
        int64_t ns;
        fill(s, wr_adaptive_limit(&a));
        ns = end_one(s);
        wr_adaptive_end(&a, false, ns, s->used--);
        sum += i >= 20000 ? a.exact : 0;
    }
    return sum / 40000;
}

/* Calls that differ in length although none of them waits must not be taken for a queue: the limit would fall to a few. */
static void test_the_gradient_finds_it_also_if_calls_differ(void **state)
{
    static struct server s;

    (void)state;
    for (int64_t capacity = 8; capacity <= 128; capacity *= 4)
        for (int64_t spread = 0; spread <= 125; spread += 25) {
            double limit;
            s = (struct server){ .capacity = capacity,
                                 .spread = spread,
                                 .memoryless = spread > 100 };
            limit = settle_amid_noise(&s);
            if (limit < (double)capacity || limit > 2 * (double)capacity)
                fail_msg("spread %d: %f for %d", (int)spread, limit, (int)capacity);
        }
}

static void test_the_gradient_grows_while_latency_is_flat_and_falls_when_it_is_not(void **state)
{
    struct wr_adaptive a;

    (void)state;
    wr_adaptive_init(&a, WEIR_GRADIENT, 10, 1, 100, 0);
    for (int i = 0; i < 9000; i++)
        wr_adaptive_end(&a, false, 1000000, wr_adaptive_limit(&a));
    assert_int_equal(wr_adaptive_limit(&a), 100);
    for (int i = 0; i < 900; i++)
        wr_adaptive_end(&a, false, 4000000, wr_adaptive_limit(&a));
    assert_true(wr_adaptive_limit(&a) < 60);
    for (int i = 0; i < 2000; i++)
        wr_adaptive_end(&a, true, 1000000, wr_adaptive_limit(&a));
    assert_int_equal(wr_adaptive_limit(&a), 1);
}

/* A server that has become slower for good is found out by measuring, not taken for a queue for ever. */
static void test_the_least_latency_is_measured_again(void **state)
{
    struct wr_adaptive a;

    (void)state;
    wr_adaptive_init(&a, WEIR_GRADIENT, 10, 1, 100, 0);
    for (int i = 0; i < 3000; i++)
        wr_adaptive_end(&a, false, 1000000, wr_adaptive_limit(&a));
    for (int i = 0; i < 9000; i++)
        wr_adaptive_end(&a, false, 5000000, wr_adaptive_limit(&a));
    assert_int_equal(a.least_ns + 0.5, 5000000);
    assert_int_equal(wr_adaptive_limit(&a), 100);
}

static void test_a_limit_that_is_not_used_does_not_grow(void **state)
{
    struct wr_adaptive a;

    (void)state;
    for (int mode = WEIR_GRADIENT; mode <= WEIR_AIMD; mode++) {
        wr_adaptive_init(&a, (weir_guard_mode)mode, 20, 1, 100, 1000000000);
        for (int i = 0; i < 1000; i++)
            wr_adaptive_end(&a, false, 1000000, 2);
        assert_int_equal(wr_adaptive_limit(&a), 20);
    }
}

static void life_of_bounds(void)
{
    struct wr_adaptive a;
    int64_t low = between(1, 20), high = low + between(0, 100);

    wr_adaptive_init(&a, chance(50) ? WEIR_GRADIENT : WEIR_AIMD, between(1, 200), low, high,
                     between(1, 1000000));
    for (int i = 0; i < 30; i++) {
        wr_adaptive_end(&a, chance(20), chance(90) ? between(0, 2000000) : INT64_MAX,
                        between(0, 200));
        MUST(wr_adaptive_limit(&a) >= low && wr_adaptive_limit(&a) <= high);
    }
}

static void test_limits_stay_between_their_bounds(void **state)
{
    (void)state;
    live(life_of_bounds);
}

static void test_pauses_grow_up_to_a_cap(void **state)
{
    struct wr_backoff b = { .first_ns = 100, .max_ns = 1000, .growth = 2 };

    (void)state;
    assert_int_equal(wr_backoff_ns(&b, 1, 5), 100);
    assert_int_equal(wr_backoff_ns(&b, 2, 5), 200);
    assert_int_equal(wr_backoff_ns(&b, 4, 5), 800);
    assert_int_equal(wr_backoff_ns(&b, 5, 5), 1000);
    assert_int_equal(wr_backoff_ns(&b, UINT32_MAX, 5), 1000);
    b.jitter = 1;
    assert_int_equal(wr_backoff_ns(&b, 1, 0), 100);
    assert_true(wr_backoff_ns(&b, 1, UINT64_MAX) < 2);
}

/* Retries never exceed the share of first calls, plus what the budget began with. */
static void life_of_a_budget(void)
{
    struct wr_budget budget = { 0 };
    int64_t limit = between(1, 20), percent = between(1, 100), first = 0, again = 0;

    wr_budget_init(&budget, limit, (double)percent);
    for (int i = 0; i < 60; i++) {
        if (chance(50)) {
            wr_budget_earn(&budget);
            first++;
        } else if (wr_budget_can(&budget)) {
            wr_budget_spend(&budget);
            again++;
        }
        MUST(again * 100 <= limit * 100 + first * percent);
        MUST(budget.tokens >= 0 && budget.tokens <= limit * WR_TOKEN);
    }
}

static void test_retries_stay_within_their_budget(void **state)
{
    (void)state;
    live(life_of_a_budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_find_the_capacity_of_the_server),
        cmocka_unit_test(test_the_gradient_finds_it_also_if_calls_differ),
        cmocka_unit_test(test_the_gradient_grows_while_latency_is_flat_and_falls_when_it_is_not),
        cmocka_unit_test(test_the_least_latency_is_measured_again),
        cmocka_unit_test(test_a_limit_that_is_not_used_does_not_grow),
        cmocka_unit_test(test_limits_stay_between_their_bounds),
        cmocka_unit_test(test_pauses_grow_up_to_a_cap),
        cmocka_unit_test(test_retries_stay_within_their_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
