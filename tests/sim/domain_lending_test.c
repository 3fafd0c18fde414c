/* Lending by utilisation, recall, forced release and restore. SEMANTICS 2.8, 2.9 and 6.4 (D-18 ... D-21).
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

#define LENDING .lending = { .period_ms = 10 }

/* D-18, D-19: the example of 2.8, step by step. */
SIM_TEST(test_idle_slots_are_lent_and_recalled_as_in_the_example, 25)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(LENDING));
    struct body a_body[46], b_body = { .until_ms = 500 };
    struct heap a = { 0 }, b = { 0 };

    for (int i = 0; i < 46; i++) {
        a_body[i] = (struct body){ .until_ms = i < 32 ? 100 + i : 500 };
        heap_add(&a, ex, "A", 1, &a_body[i]);
    }
    heap_add(&b, ex, "B", 4, &b_body);
    sleep_until(25);
    CHECK_DOMAIN(ex, "A", 16, 0, 30); /* little was used for two samples, but three are asked for */
    CHECK_DOMAIN(ex, "B", 4, 0, 0);
    CHECK_EQ(domain_of(ex, "B").lent, 0);

    sleep_until(35); /* 28 idle, 8 for headroom, 20 to lend, of which half of 32 are allowed */
    CHECK_EQ(domain_of(ex, "B").lent, 16);
    CHECK_EQ(domain_of(ex, "B").limit, 16);
    CHECK_EQ(domain_of(ex, "A").taken, 16);
    CHECK_EQ(domain_of(ex, "A").limit, 32);
    CHECK_EQ(domain_of(ex, "default").limit, 16);
    CHECK_DOMAIN(ex, "A", 32, 0, 14);

    sleep_until(40);
    heap_add(&b, ex, "B", 36, &b_body);
    let_start();
    CHECK_DOMAIN(ex, "B", 32, 16, 8); /* 16 own, 16 borrowed */
    CHECK_EQ(domain_of(ex, "A").recalled, 16);
    CHECK_EQ(domain_of(ex, "B").slots_recalled, 16);
    for (int i = 0; i < 16; i++) { /* each body of A that ends gives its slot to B */
        CHECK(weir_sleep(at(100 + i) + 1000) == 0);
        CHECK_EQ(domain_of(ex, "B").limit, 17 + i);
        CHECK_DOMAIN(ex, "A", 31 - i, 0, 14);
        CHECK_EQ(domain_of(ex, "B").waiting, i < 8 ? 7 - i : 0);
    }
    CHECK_EQ(domain_of(ex, "A").limit, 16);
    CHECK_DOMAIN(ex, "B", 40, 8, 0);
    for (int i = 0; i < 8;
         i++) /* the lender's waiters first, each at the end of one of A's bodies */
        check_done_at(weir_task_ref(b.task[32 + i]), 100 + i, 500);
    for (int i = 0; i < 14; i++)
        check_done_at(weir_task_ref(a.task[32 + i]), 116 + i, 500);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* 2.8: with loans forbidden the guarantee is absolute. */
SIM_TEST(test_a_domain_that_lends_nothing_keeps_its_slots, 25)
{
    weir_domain_policy domains[] = {
        { .name = "A", .slots = 2, .queue = 32 },
        { .name = "B", .slots = 8, .slots_mode = WEIR_RESERVED, .queue = 8, .lend_max = WEIR_NONE },
    };
    weir_executor *ex = new_executor(AB_POLICY(domains, 10, 128, LENDING));
    struct body body = { .until_ms = 100 };
    struct heap a = { 0 };

    heap_add(&a, ex, "A", 12, &body);
    sleep_until(95);
    CHECK_DOMAIN(ex, "A", 2, 0, 10);
    CHECK_EQ(domain_of(ex, "B").lent, 0);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* 2.8: the step bounds each loan, the hold what follows a recall. */
SIM_TEST(test_loans_grow_by_steps_and_rest_after_a_recall, 25)
{
    weir_domain_policy domains[] = {
        { .name = "A", .slots = 2, .queue = 64 },
        { .name = "B", .slots = 8, .slots_mode = WEIR_RESERVED, .queue = 8 },
    };
    weir_executor *ex = new_executor(
        AB_POLICY(domains, 10, 128,
                  .lending = { .period_ms = 10, .hold = 2, .step = 1, .headroom_percent = 50 }));
    struct body body = { .until_ms = 295 }, brief = { .ms = 5 };
    struct heap a = { 0 }, b = { 0 };

    heap_add(&a, ex, "A", 20, &body);
    sleep_until(25);
    CHECK_EQ(domain_of(ex, "A").limit, 3);
    sleep_until(35);
    CHECK_EQ(domain_of(ex, "A").limit, 4);
    sleep_until(85); /* 4 of 8 must stay free */
    CHECK_EQ(domain_of(ex, "A").limit, 6);
    CHECK_EQ(domain_of(ex, "B").limit, 4);
    heap_add(&b, ex, "B", 1, &brief); /* three free: fewer than the headroom */
    CHECK_EQ(domain_of(ex, "A").recalled, 4);
    sleep_until(290); /* all of A's are busy: nothing came back, and nothing was lent again */
    CHECK_EQ(domain_of(ex, "B").limit, 4);
    CHECK_EQ(domain_of(ex, "B").slots_lent, 4);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    CHECK_EQ(domain_of(ex, "B").limit, 8);
    weir_executor_free(ex);
}

/* D-20, D-21 */
SIM_TEST(test_a_released_domain_refuses_and_its_slots_go_to_the_receiver, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body b_body = { .until_ms = 50 }, d_body = { .until_ms = 200 };
    struct heap b = { 0 }, d = { 0 }, more = { 0 };

    heap_add(&b, ex, "B", 60, &b_body);
    let_start();
    CHECK_DOMAIN(ex, "B", 48, 16, 12);
    CHECK(weir_domain_release(ex, "B", NULL, 0, NULL) == 0);
    CHECK_EQ(heap_refused(&b, WEIR_REASON_DOMAIN_RELEASED), 12); /* what waited */
    CHECK_EQ(domain_of(ex, "default").limit, 48);
    CHECK_EQ(domain_of(ex, "default").queue_limit, 96);
    CHECK_EQ(domain_of(ex, "B").limit, 0);
    CHECK_EQ(domain_of(ex, "B").overhang, 32);
    CHECK(domain_of(ex, "B").released);
    CHECK(strcmp(domain_of(ex, "B").receiver, "default") == 0);
    heap_add(&more, ex, "B", 1, &b_body);
    CHECK_EQ(heap_refused(&more, WEIR_REASON_DOMAIN_RELEASED), 1);
    heap_add(&d, ex, "D", 48, &d_body);
    let_start();
    CHECK_DOMAIN(ex, "default", 0, 0, 48); /* all 48 are still busy with B's */
    sleep_until(60);
    CHECK_DOMAIN(ex, "default", 48, 0, 0);
    CHECK_DOMAIN(ex, "B", 0, 0, 0);
    CHECK(weir_domain_restore(ex, "B", NULL) == 0);
    CHECK_EQ(domain_of(ex, "B").limit, 0); /* nothing is idle */
    CHECK_EQ(domain_of(ex, "B").queue_limit, 64);
    sleep_until(210);
    CHECK_EQ(domain_of(ex, "B").limit, 32);
    CHECK_EQ(domain_of(ex, "default").limit, 16);
    CHECK(!domain_of(ex, "B").receiver);
    heap_free(&b);
    heap_free(&d);
    heap_free(&more);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_release_can_ask_the_running_to_end, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 5000 };
    weir_task *b = submit(ex, "B", &body), *a = submit(ex, "A", &body), *later;
    weir_result result;

    sleep_until(10);
    CHECK(weir_domain_release(ex, "B", "A", WEIR_CANCEL_RUNNING, NULL) == 0);
    result = result_of(b);
    CHECK_EQ(result.outcome, WEIR_CANCELLED);
    CHECK_EQ(result.ended_at, at(10));
    CHECK_EQ(domain_of(ex, "A").limit, 48);
    CHECK(weir_domain_restore(ex, "B", NULL) == 0);
    CHECK_EQ(domain_of(ex, "A").limit, 16);
    body.until_ms = 20;
    later = submit(ex, "B", &body); /* not cancelled: it came after */
    check_done_at(later, 10, 20);
    CHECK(weir_task_cancel(a));
    weir_task_unref(a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* 2.9: loans in and out are settled. */
SIM_TEST(test_release_settles_loans, 25)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(LENDING));
    struct body a_body = { .until_ms = 100 }, d_body = { .until_ms = 300 };
    struct heap a = { 0 }, d = { 0 };

    heap_add(&a, ex, "A", 32, &a_body);
    sleep_until(35);
    CHECK_EQ(domain_of(ex, "B").lent, 16);
    CHECK(weir_domain_release(ex, "B", NULL, 0, NULL) == 0);
    CHECK_EQ(domain_of(ex, "B").lent, 0);
    CHECK_EQ(domain_of(ex, "default").limit, 32);
    CHECK_EQ(domain_of(ex, "default").lent, 16);
    heap_add(&d, ex, "D", 48, &d_body);
    let_start();
    CHECK_DOMAIN(ex, "default", 32, 0, 16);
    sleep_until(110);
    CHECK_DOMAIN(ex, "default", 48, 0, 0);
    CHECK(weir_domain_restore(ex, "B", NULL) == 0);
    sleep_until(310);
    CHECK_EQ(domain_of(ex, "B").limit, 32);
    heap_free(&a);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_slots_are_lent_and_recalled_as_in_the_example),
        cmocka_unit_test(test_a_domain_that_lends_nothing_keeps_its_slots),
        cmocka_unit_test(test_loans_grow_by_steps_and_rest_after_a_recall),
        cmocka_unit_test(test_a_released_domain_refuses_and_its_slots_go_to_the_receiver),
        cmocka_unit_test(test_release_can_ask_the_running_to_end),
        cmocka_unit_test(test_release_settles_loans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
