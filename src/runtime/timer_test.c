/* SPDX-License-Identifier: MIT */
#include "runtime/timer.h"

#include "base/assert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wr_wheel wheel;

static int setup(void **state)
{
    (void)state;
    wr_wheel_init(&wheel, 1000);
    return 0;
}

static size_t armed(void)
{
    size_t n = 0;
    for (int l = 0; l < WR_WHEEL_LEVELS; l++)
        for (int s = 0; s < WR_WHEEL_SLOTS; s++) {
            wr_list_each(node, &wheel.slot[l][s])
                n++;
            assert_int_equal(!wr_list_empty(&wheel.slot[l][s]), wheel.occupied[l] >> s & 1);
        }
    return n;
}

static void test_an_empty_wheel_never_expires(void **state)
{
    (void)state;
    assert_null(wr_wheel_expire(&wheel, 1 << 30));
    assert_int_equal(wr_wheel_next(&wheel), WEIR_FOREVER);
}

static void test_a_timer_expires_at_its_nanosecond_and_not_before(void **state)
{
    struct wr_timer t;
    (void)state;
    wr_timer_init(&t);
    wr_timer_arm(&wheel, &t, 1000000007);
    assert_int_equal(wr_wheel_next(&wheel), 1000000007);
    assert_null(wr_wheel_expire(&wheel, 1000000006));
    assert_ptr_equal(wr_wheel_expire(&wheel, 1000000007), &t);
    assert_null(wr_wheel_expire(&wheel, WEIR_FOREVER - 1));
    assert_int_equal(armed(), 0);
}

static void test_a_deadline_in_the_past_is_due_at_once(void **state)
{
    struct wr_timer t;
    (void)state;
    wr_timer_init(&t);
    wr_timer_arm(&wheel, &t, 3);
    assert_int_equal(wr_wheel_next(&wheel), 1000);
    assert_ptr_equal(wr_wheel_expire(&wheel, 1000), &t);
}

static void test_the_farthest_deadline_fits(void **state)
{
    struct wr_timer t;
    (void)state;
    wr_timer_init(&t);
    wr_timer_arm(&wheel, &t, WEIR_FOREVER - 1);
    assert_null(wr_wheel_expire(&wheel, WEIR_FOREVER - 2));
    assert_ptr_equal(wr_wheel_expire(&wheel, WEIR_FOREVER - 1), &t);
}

static void test_equal_deadlines_expire_in_the_order_armed(void **state)
{
    struct wr_timer t[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        wr_timer_init(&t[i]);
    wr_timer_arm(&wheel, &t[0], 5000000);
    assert_null(wr_wheel_expire(&wheel, 4999000)); /* now the next two start on a lower level */
    wr_timer_arm(&wheel, &t[1], 5000000);
    wr_timer_arm(&wheel, &t[2], 5000000);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(wr_wheel_expire(&wheel, 5000000), &t[i]);
}

static void test_cancelling_leaves_nothing_behind(void **state)
{
    static struct wr_timer t[1000];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        wr_timer_init(&t[i]);
        wr_timer_arm(&wheel, &t[i], 1000 + (weir_time)i * i * 977);
    }
    assert_int_equal(armed(), 1000);
    for (int i = 0; i < 1000; i++)
        wr_timer_cancel(&wheel, &t[i * 7 % 1000]);
    assert_int_equal(armed(), 0);
    wr_timer_cancel(&wheel, &t[0]); /* a second time is harmless */
    assert_int_equal(wr_wheel_next(&wheel), WEIR_FOREVER);
}

/* Random arming, cancelling and turning, beside a model that searches an array. */
struct model {
    struct wr_timer timer;
    weir_time deadline; /* 0: not armed */
    uint64_t order;
};

static struct model *model_first(struct model *m, int n)
{
    struct model *first = NULL;
    for (int i = 0; i < n; i++)
        if (m[i].deadline && (!first || m[i].deadline < first->deadline ||
                              (m[i].deadline == first->deadline && m[i].order < first->order)))
            first = &m[i];
    return first;
}

static void test_it_agrees_with_a_naive_model(void **state)
{
    enum { N = 40, STEPS = 20000 };
    static struct model m[N];
    uint64_t order = 0;
    weir_time now = 1000;
    unsigned seed = 12345;
    (void)state;

    for (int i = 0; i < N; i++)
        wr_timer_init(&m[i].timer);
    for (int step = 0; step < STEPS; step++) {
        struct model *one = &m[rand_r(&seed) % N];
        int scale = rand_r(&seed) % 34;
        weir_time span = (weir_time)(rand_r(&seed) & ((1u << scale % 31) - 1))
                         << (scale > 30 ? 8 : 0);
        if (one->deadline) {
            wr_timer_cancel(&wheel, &one->timer);
            one->deadline = 0;
        } else {
            wr_timer_arm(&wheel, &one->timer, now + span);
            one->deadline = now + span;
            one->order = order++;
        }
        struct model *first = model_first(m, N);
        assert_true(wr_wheel_next(&wheel) <= (first ? first->deadline : WEIR_FOREVER));
        if (step % 3)
            continue;
        now += rand_r(&seed) % 4 ? span : 0;
        for (struct wr_timer *t; (t = wr_wheel_expire(&wheel, now));) {
            first = model_first(m, N);
            assert_non_null(first);
            assert_ptr_equal(t, &first->timer);
            assert_true(first->deadline <= now);
            first->deadline = 0;
        }
        first = model_first(m, N);
        assert_true(!first || first->deadline > now);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_an_empty_wheel_never_expires, setup),
        cmocka_unit_test_setup(test_a_timer_expires_at_its_nanosecond_and_not_before, setup),
        cmocka_unit_test_setup(test_a_deadline_in_the_past_is_due_at_once, setup),
        cmocka_unit_test_setup(test_the_farthest_deadline_fits, setup),
        cmocka_unit_test_setup(test_equal_deadlines_expire_in_the_order_armed, setup),
        cmocka_unit_test_setup(test_cancelling_leaves_nothing_behind, setup),
        cmocka_unit_test_setup(test_it_agrees_with_a_naive_model, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
