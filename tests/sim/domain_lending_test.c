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
    CHECK_EQ(domain_of(ex, "A").queue_taken, 0); /* not half of its places are taken now */

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

/* ---- places ------------------------------------------------------------------------------------- */

/* A: one slot, two places. B: one slot, sixteen places. Slots are not lent. */
static weir_domain_policy narrow_domains[] = {
    { .name = "A", .slots = 1, .queue = 2, .lend_max = WEIR_NONE },
    { .name = "B", .slots = 1, .queue = 16, .lend_max = WEIR_NONE, .queue_lend_max = 16 },
};
#define NARROW_POLICY(...) AB_POLICY(narrow_domains, 3, 20, __VA_ARGS__)

static void check_places(weir_executor *ex, int64_t a_limit, int64_t b_limit, int64_t recalled)
{
    weir_domain_stats a = domain_of(ex, "A"), b = domain_of(ex, "B");

    CHECK_EQ(a.queue_limit, a_limit);
    CHECK_EQ(b.queue_limit, b_limit);
    CHECK_EQ(a.queue_recalled, recalled);
    CHECK_EQ(a.queue_taken, b.queue_lent);
    CHECK_EQ(domain_of(ex, "default").queue_limit, 2);
}

static int full(struct heap *heap)
{
    return heap_refused(heap, WEIR_REASON_DOMAIN_QUEUE_FULL);
}

/* 2.8 for places, step by step: no more than are taken, so at most twice as many with each sample. */
SIM_TEST(test_a_full_queue_is_lent_places_sample_by_sample, 25)
{
    weir_executor *ex = new_executor(NARROW_POLICY(LENDING));
    struct body body = { .until_ms = 200 };
    struct heap a = { 0 };

    heap_add(&a, ex, "A", 9, &body);
    CHECK_EQ(full(&a), 6); /* one runs, two wait */
    sleep_until(29);
    check_places(ex, 2, 16, 0); /* little was used for two samples, but three are asked for */
    sleep_until(31);
    check_places(ex, 4, 14, 0);
    sleep_until(41);
    check_places(ex, 4, 14, 0); /* half of A's are free: that will do */
    heap_add(&a, ex, "A", 9, &body);
    CHECK_EQ(full(&a), 6 + 7);
    sleep_until(51);
    check_places(ex, 8, 10, 0);
    heap_add(&a, ex, "A", 9, &body);
    CHECK_EQ(full(&a), 6 + 7 + 5);
    sleep_until(61);
    check_places(ex, 14, 4, 0); /* four of B's sixteen stay free */
    heap_add(&a, ex, "A", 9, &body);
    CHECK_EQ(full(&a), 6 + 7 + 5 + 3);
    sleep_until(95);
    check_places(ex, 14, 4, 0);
    CHECK_EQ(domain_of(ex, "B").places_lent, 12);
    CHECK_EQ(domain_of(ex, "B").slots_lent, 0);
    CHECK_DOMAIN(ex, "A", 1, 0, 14);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Fills A until B has lent all it may. A's first body ends at 100 ms, the others take ten each. */
static void fill_lent_places(weir_executor *ex, struct heap *a, struct body *first,
                             struct body *others)
{
    *first = (struct body){ .until_ms = 100 };
    *others = (struct body){ .ms = 10 };
    heap_add(a, ex, "A", 1, first);
    for (int ms = 5; ms <= 85; ms += 10) {
        heap_add(a, ex, "A", 16, others);
        sleep_until(ms);
    }
}

/* The tasks among them that wait, or run, first come first. */
static weir_task *accepted(struct heap *heap, int index)
{
    for (int i = 0; i < heap->count; i++)
        if (!weir_task_done(heap->task[i]) && index-- == 0)
            return heap->task[i];
    return NULL;
}

SIM_TEST(test_recalled_places_come_back_free_ones_first_others_as_tasks_start, 25)
{
    weir_executor *ex = new_executor(NARROW_POLICY(LENDING));
    struct body first, others, b_body = { .until_ms = 500 };
    struct heap a = { 0 }, b = { 0 }, more = { 0 };

    fill_lent_places(ex, &a, &first, &others);
    check_places(ex, 14, 4, 0);
    CHECK_DOMAIN(ex, "A", 1, 0, 14);
    for (int i = 0; i < 3; i++)
        CHECK(weir_task_cancel(accepted(&a, 14 - i)));
    heap_add(&b, ex, "B", 1, &b_body);
    check_places(ex, 14, 4, 0); /* it has a slot, and needs no place */
    heap_add(&b, ex, "B", 1, &b_body);
    check_places(ex, 11, 7, 9); /* fewer than four were free: A's three free ones are back */
    CHECK_EQ(domain_of(ex, "B").places_recalled, 12);
    heap_add(&b, ex, "B", 4, &b_body); /* a third of its places: it lends nothing for now */
    heap_add(&more, ex, "A", 1, &others);
    CHECK_EQ(full(&more), 1);     /* what is due is not for A */
    for (int i = 0; i < 9; i++) { /* each task of A's that starts leaves its place to B */
        CHECK(weir_sleep(at(100 + 10 * i) - 1000) == 0);
        check_places(ex, 11 - i, 7 + i, 9 - i);
        CHECK(weir_sleep(at(100 + 10 * i) + 1000) == 0);
        check_places(ex, 10 - i, 8 + i, 8 - i);
    }
    heap_add(&more, ex, "A", 1, &others);
    CHECK_EQ(full(&more), 2); /* two wait, and A has two places again */
    heap_free(&a);
    heap_free(&b);
    heap_free(&more);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Without headroom a lender can be left with nothing: then the task that needs a place recalls. */
SIM_TEST(test_a_task_gets_a_lent_place_back_before_it_is_refused, 25)
{
    weir_executor *ex =
        new_executor(NARROW_POLICY(.lending = { .period_ms = 10, .headroom_percent = WEIR_NONE }));
    struct body first, others, b_body = { .until_ms = 500 };
    struct heap a = { 0 }, b = { 0 };

    fill_lent_places(ex, &a, &first, &others);
    check_places(ex, 18, 0, 0);
    CHECK_DOMAIN(ex, "A", 1, 0, 18);
    heap_add(&b, ex, "B", 1, &b_body);
    check_places(ex, 18, 0, 0);
    heap_add(&b, ex, "B", 1, &b_body);
    CHECK_EQ(full(&b), 1);
    check_places(ex, 18, 0, 16); /* all are taken, but recalled now */
    CHECK(weir_task_cancel(accepted(&a, 18)));
    check_places(ex, 17, 1, 15);
    heap_add(&b, ex, "B", 2, &b_body);
    CHECK_EQ(full(&b), 2);
    CHECK_DOMAIN(ex, "B", 1, 0, 1);
    sleep_until(101);
    heap_add(&b, ex, "B", 1, &b_body);
    CHECK_EQ(full(&b), 2);
    CHECK_DOMAIN(ex, "B", 1, 0, 2);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* The same while free ones are out: they are back before the decision. */
SIM_TEST(test_free_lent_places_are_as_good_as_ones_own, 25)
{
    weir_executor *ex =
        new_executor(NARROW_POLICY(.lending = { .period_ms = 10, .headroom_percent = WEIR_NONE }));
    struct body first, others, b_body = { .until_ms = 500 };
    struct heap a = { 0 }, b = { 0 };

    fill_lent_places(ex, &a, &first, &others);
    check_places(ex, 18, 0, 0);
    for (int i = 0; i < 18; i++)
        CHECK(weir_task_cancel(accepted(&a, 1)));
    check_places(ex, 18, 0, 0); /* no domain needs them: no hurry */
    heap_add(&b, ex, "B", 18, &b_body);
    CHECK_EQ(full(&b), 1);
    check_places(ex, 2, 16, 0);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* A lender that needs little again lends again, though its last loan is not back yet: the recall is off. */
SIM_TEST(test_a_recall_is_off_when_its_reason_is_gone_for_long_enough, 25)
{
    weir_executor *ex = new_executor(NARROW_POLICY(LENDING));
    struct body a_body = { .until_ms = 300 }, b_body = { .until_ms = 36 };
    struct heap a = { 0 }, b = { 0 };

    heap_add(&a, ex, "A", 3, &a_body);
    sleep_until(31);
    heap_add(&a, ex, "A", 2, &a_body);
    heap_add(&b, ex, "B", 12, &b_body); /* eleven wait: three are free, four should be */
    check_places(ex, 4, 14, 2);
    sleep_until(69); /* all of B's ended by 36 */
    CHECK_DOMAIN(ex, "B", 0, 0, 0);
    check_places(ex, 4, 14, 2);
    sleep_until(71); /* it has been idle for three samples: it lends two, which A owed */
    check_places(ex, 6, 12, 0);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_places_rest_after_a_recall, 25)
{
    weir_executor *ex = new_executor(NARROW_POLICY(LENDING));
    struct body a_body = { .until_ms = 500 }, brief = { .until_ms = 41 };
    struct heap a = { 0 }, b = { 0 };

    heap_add(&a, ex, "A", 3, &a_body);
    sleep_until(31);
    check_places(ex, 4, 14, 0);
    heap_add(&b, ex, "B", 12, &brief); /* eleven wait: three are free, four should be */
    check_places(ex, 2, 16, 0);
    sleep_until(45);
    for (int i = 0; i < 12; i++)
        CHECK(weir_task_done(b.task[i]));
    sleep_until(69); /* B is idle at 50 and 60, and has to be for three samples */
    check_places(ex, 2, 16, 0);
    sleep_until(71);
    check_places(ex, 4, 14, 0);
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* WEIR_BLOCK: a caller that waits for room is woken by a loan, and by a place that comes back. */
SIM_TEST(test_a_caller_that_waits_for_room_is_woken_by_loans_and_returns, 100)
{
    weir_domain_policy domains[] = {
        { .name = "A", .slots = 1, .queue = 2, .lend_max = WEIR_NONE },
        { .name = "B", .slots = 1, .queue = 2, .lend_max = WEIR_NONE, .queue_lend_max = 2 },
    };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 2, .queue_places = 4,
                    .domains = domains, .domain_count = 2, .groups = example_groups,
                    .group_count = 2, .rejection = WEIR_BLOCK,
                    .lending = { .period_ms = 10, .headroom_percent = WEIR_NONE }));
    struct body a_body = { .until_ms = 100 }, b_body = { .until_ms = 200 };
    struct heap a = { 0 }, b = { 0 };

    heap_add(&a, ex, "A", 3, &a_body);
    CHECK_EQ(weir_now(), at(0));
    heap_add(&a, ex, "A", 1, &a_body);
    CHECK_EQ(weir_now(), at(30)); /* B lent two */
    heap_add(&a, ex, "A", 1, &a_body);
    heap_add(&b, ex, "B", 1, &b_body);
    CHECK_EQ(weir_now(), at(30));
    heap_add(&b, ex, "B", 1, &b_body);
    CHECK_EQ(weir_now(), at(100)); /* the second of A's has started, and its place is B's again */
    heap_free(&a);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_release_settles_loans_of_places, 25)
{
    weir_executor *ex = new_executor(NARROW_POLICY(LENDING));
    struct body first, others;
    struct heap a = { 0 };

    fill_lent_places(ex, &a, &first, &others);
    CHECK(weir_domain_release(ex, "B", NULL, 0, NULL) == 0); /* the lender */
    CHECK_EQ(domain_of(ex, "default").queue_limit, 6);
    CHECK_EQ(domain_of(ex, "default").queue_lent, 12);
    CHECK_EQ(domain_of(ex, "A").queue_recalled, 12);
    sleep_until(101);
    CHECK_EQ(domain_of(ex, "default").queue_limit, 7);
    CHECK(weir_domain_release(ex, "A", NULL, 0, NULL) ==
          0); /* the borrower: no task waits there now */
    CHECK_EQ(domain_of(ex, "default").queue_limit, 20);
    CHECK_EQ(domain_of(ex, "default").queue_lent, 0);
    CHECK(weir_domain_restore(ex, "A", NULL) == 0);
    CHECK(weir_domain_restore(ex, "B", NULL) == 0);
    check_places(ex, 2, 16, 0);
    heap_free(&a);
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
        cmocka_unit_test(test_a_full_queue_is_lent_places_sample_by_sample),
        cmocka_unit_test(test_recalled_places_come_back_free_ones_first_others_as_tasks_start),
        cmocka_unit_test(test_a_task_gets_a_lent_place_back_before_it_is_refused),
        cmocka_unit_test(test_free_lent_places_are_as_good_as_ones_own),
        cmocka_unit_test(test_a_recall_is_off_when_its_reason_is_gone_for_long_enough),
        cmocka_unit_test(test_places_rest_after_a_recall),
        cmocka_unit_test(test_a_caller_that_waits_for_room_is_woken_by_loans_and_returns),
        cmocka_unit_test(test_release_settles_loans_of_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
