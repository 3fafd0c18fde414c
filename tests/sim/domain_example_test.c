/* The worked example of domains, number by number. SEMANTICS 2.7 (X1-X9) and 6.4 (D-01 ... D-11, D-22).
 * SPDX-License-Identifier: MIT */
#include "support/domain_support.h"

/* D-01 */
SIM_TEST(test_the_default_domain_gets_the_units_the_others_leave, 5)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));

    CHECK_EQ(domain_of(ex, "default").slots, 16);
    CHECK_EQ(domain_of(ex, "default").queue, 32);
    CHECK_EQ(domain_of(ex, "A").slots, 16);
    CHECK_EQ(domain_of(ex, "B").limit, 32);
    CHECK_EQ(domain_of(ex, "B").queue_limit, 64);
    CHECK(strcmp(weir_domain_name(ex, 0), "default") == 0);
    CHECK(strcmp(weir_domain_name(ex, 2), "B") == 0);
    CHECK(weir_domain_name(ex, 3) == NULL);
    CHECK(strcmp(weir_group_domain(group_of(ex, "B")), "B") == 0);
    CHECK(strcmp(weir_group_domain(group_of(ex, "else")), "default") == 0);
    weir_executor_free(ex);
}

/* X1, D-02 */
SIM_TEST(test_a_max_domain_runs_queues_and_refuses, 60)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap a = { 0 };

    heap_add(&a, ex, "A", 60, &body);
    CHECK_EQ(heap_refused(&a, WEIR_REASON_DOMAIN_QUEUE_FULL), 12); /* decided at once */
    let_start();
    CHECK_DOMAIN(ex, "A", 16, 0, 32);
    CHECK_DOMAIN(ex, "default", 0, 0, 0);
    CHECK_EQ(stats_of(ex, "A").running, 16);
    CHECK_EQ(stats_of(ex, "A").rejected_by[WEIR_REASON_DOMAIN_QUEUE_FULL], 12);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static void x2(weir_executor *ex, struct heap *b, struct body *body)
{
    heap_add(b, ex, "B", 60, body);
    let_start();
    CHECK_DOMAIN(ex, "B", 48, 16, 12);
    CHECK_EQ(domain_of(ex, "default").charged, 16);
}

/* X2, D-03 */
SIM_TEST(test_a_reserved_domain_borrows_from_the_default_one, 60)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap b = { 0 };

    x2(ex, &b, &body);
    CHECK_EQ(stats_of(ex, "B").running, 48);
    CHECK_EQ(heap_refused(&b, WEIR_REASON_DOMAIN_QUEUE_FULL), 0);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* X3 */
SIM_TEST(test_the_default_domain_waits_while_its_slots_are_borrowed, 60)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap b = { 0 }, d = { 0 };

    x2(ex, &b, &body);
    heap_add(&d, ex, "D", 40, &body);
    let_start();
    CHECK_DOMAIN(ex, "default", 0, 0, 32);
    CHECK_EQ(heap_refused(&d, WEIR_REASON_DOMAIN_QUEUE_FULL), 8);
    heap_free(&b);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* 5.2 D04 */
SIM_TEST(test_a_floor_keeps_slots_of_the_default_domain_from_borrowers, 60)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.default_floor = 5));
    struct body body = { .until_ms = 100 };
    struct heap b = { 0 }, d = { 0 };

    heap_add(&b, ex, "B", 60, &body);
    let_start();
    CHECK_DOMAIN(ex, "B", 43, 11, 17);
    heap_add(&d, ex, "D", 6, &body);
    let_start();
    CHECK_DOMAIN(ex, "default", 5, 0, 1);
    heap_free(&b);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* X4, D-05 */
SIM_TEST(test_a_reserved_domain_queues_and_then_refuses, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap b = { 0 };

    x2(ex, &b, &body);
    heap_add(&b, ex, "B", 60, &body);
    let_start();
    CHECK_DOMAIN(ex, "B", 48, 16, 64);
    CHECK_EQ(heap_refused(&b, WEIR_REASON_DOMAIN_QUEUE_FULL), 8);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* X5, X6, D-04 */
static void borrow_beside(int busy, int tasks, int borrowed, int queued, int refused)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap b = { 0 }, d = { 0 };

    heap_add(&d, ex, "D", busy, &body);
    heap_add(&b, ex, "B", tasks, &body);
    let_start();
    CHECK_DOMAIN(ex, "default", busy, 0, 0);
    CHECK_DOMAIN(ex, "B", 32 + borrowed, borrowed, queued);
    CHECK_EQ(heap_refused(&b, WEIR_REASON_DOMAIN_QUEUE_FULL), refused);
    heap_free(&b);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

SIM_TEST(test_only_free_slots_of_the_default_domain_are_borrowed, 40)
{
    borrow_beside(10, 60, 6, 22, 0);
}

SIM_TEST(test_nothing_is_borrowed_from_a_busy_default_domain, 40)
{
    borrow_beside(16, 100, 0, 64, 4);
}

/* X7, D-11: B's bodies: one ends at 50 ms, the others at 100. */
SIM_TEST(test_a_unit_pays_back_the_loan_and_goes_to_the_lenders_waiter, 60)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body first = { .until_ms = 50 }, body = { .until_ms = 100 };
    struct heap b = { 0 }, d = { 0 };

    heap_add(&b, ex, "B", 1, &first);
    heap_add(&b, ex, "B", 47 + 5, &body);
    let_start();
    heap_add(&d, ex, "D", 5, &body);
    let_start();
    CHECK_DOMAIN(ex, "B", 48, 16, 5);
    CHECK_DOMAIN(ex, "default", 0, 0, 5);
    sleep_until(60);
    CHECK_DOMAIN(ex, "B", 47, 15, 5);
    CHECK_DOMAIN(ex, "default", 1, 0, 4);
    weir_task *lent = weir_task_ref(d.task[0]);
    heap_free(&b);
    heap_free(&d);
    check_done_at(lent, 50, 100);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* X8, D-11, D-10 */
SIM_TEST(test_a_unit_no_domain_wants_back_is_borrowed_again, 60)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body first = { .until_ms = 50 }, body = { .until_ms = 100 };
    struct heap b = { 0 };

    heap_add(&b, ex, "B", 1, &first);
    heap_add(&b, ex, "B", 47 + 5, &body);
    sleep_until(60);
    CHECK_DOMAIN(ex, "B", 48, 16, 4);
    weir_task *waiter = weir_task_ref(b.task[48]);
    heap_free(&b);
    check_done_at(waiter, 50, 100);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* X9 */
SIM_TEST(test_a_max_domain_never_borrows, 60)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body first = { .until_ms = 50 }, body = { .until_ms = 100 };
    struct heap a = { 0 };

    heap_add(&a, ex, "A", 1, &first);
    heap_add(&a, ex, "A", 16, &body);
    let_start();
    CHECK_DOMAIN(ex, "A", 16, 0, 1);
    sleep_until(60);
    CHECK_DOMAIN(ex, "A", 16, 0, 0);
    weir_task *waiter = weir_task_ref(a.task[16]);
    heap_free(&a);
    check_done_at(waiter, 50, 100);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* D-07 */
SIM_TEST(test_reserved_slots_stay_reserved, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap a = { 0 }, b = { 0 }, d = { 0 };

    heap_add(&a, ex, "A", 100, &body);
    heap_add(&d, ex, "D", 100, &body);
    let_start();
    heap_add(&b, ex, "B", 32, &body);
    let_start();
    CHECK_DOMAIN(ex, "B", 32, 0, 0);
    CHECK_EQ(stats_of(ex, "B").running, 32);
    heap_free(&a);
    heap_free(&d);
    heap_free(&b);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* D-08 */
SIM_TEST(test_a_slot_comes_first_then_a_place_then_refusal, 60)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 2, .queue = 1 } };
    weir_group_policy groups[] = { { .key = "A", .domain = "A" } };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 2, .queue_places = 1,
                    .domains = domains, .domain_count = 1, .groups = groups, .group_count = 1));
    struct body body = { .until_ms = 10 };
    weir_task *task[4], *none;

    for (int i = 0; i < 4; i++)
        task[i] = submit(ex, "A", &body);
    none = submit(ex, "elsewhere",
                  &body); /* the default domain has nothing left: a share of 0 is legal */
    check_rejected(task[3], WEIR_REASON_DOMAIN_QUEUE_FULL);
    check_rejected(none, WEIR_REASON_DOMAIN_QUEUE_FULL);
    check_done_at(task[0], 0, 10);
    check_done_at(task[1], 0, 10);
    check_done_at(task[2], 10, 10);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* D-09, 5.2 D03 */
SIM_TEST(test_a_new_task_does_not_overtake_the_queue, 100)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 1 } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 1,
                                 .domains = domains, .domain_count = 1,
                                 .groups = (weir_group_policy[]){ { .key = "A", .domain = "A" } },
                                 .group_count = 1));
    _Atomic int began = 0;
    struct body body[6];
    weir_task *task[6];

    for (int i = 0; i < 6; i++) {
        body[i] = (struct body){ .ms = 10, .began = &began };
        task[i] = submit(ex, "A", &body[i]);
        if (i == 3)
            sleep_until(10); /* the first ends as the fifth comes */
    }
    for (int i = 0; i < 6; i++) {
        check_done_at(task[i], i * 10, i * 10 + 10);
        CHECK_EQ(body[i].order, i + 1);
    }
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* Queue places have modes of their own. 2.3 */
SIM_TEST(test_reserved_places_are_borrowed_from_the_default_domain, 60)
{
    weir_domain_policy domains[] = {
        { .name = "R", .slots = 1, .queue = 2, .queue_mode = WEIR_RESERVED }
    };
    weir_executor *ex = new_executor(
        WEIR_POLICY(.workers = 2, .group_limit = WEIR_NO_LIMIT, .slots = 2, .queue_places = 5,
                    .domains = domains, .domain_count = 1, .rejection = WEIR_DISCARD,
                    .groups = (weir_group_policy[]){ { .key = "R", .domain = "R" } },
                    .group_count = 1));
    struct body body = { .until_ms = 10 };
    struct heap r = { 0 }, d = { 0 };

    heap_add(&d, ex, "D", 2, &body);
    heap_add(&r, ex, "R", 6, &body);
    CHECK_EQ(heap_refused(&r, WEIR_REASON_DOMAIN_QUEUE_FULL), 1);
    CHECK_EQ(domain_of(ex, "R").queue_borrowed, 2);
    heap_add(&d, ex, "D", 1, &body); /* two of its three places are borrowed, one is taken */
    CHECK_EQ(heap_refused(&d, WEIR_REASON_DOMAIN_QUEUE_FULL), 1);
    heap_free(&r);
    heap_free(&d);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* D-22 */
SIM_TEST(test_no_more_run_than_there_are_slots, 30)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct gauge gauge = { 0 };
    struct body body = { .gauge = &gauge, .ms = 10 };
    struct heap heap = { 0 };

    for (int i = 0; i < 50; i++) {
        heap_add(&heap, ex, "A", 1, &body);
        heap_add(&heap, ex, "B", 1, &body);
        heap_add(&heap, ex, "D", 1, &body);
    }
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    CHECK_EQ(gauge.peak, 64);
    heap_free(&heap);
    check_domain_books(ex);
    weir_executor_free(ex);
}

static int computes(void **value, void *body_arg)
{
    struct body *body = body_arg;

    *value = NULL;
    body->order = ++*body->began;
    weir_sim_busy(body->ms * MS);
    return 0;
}

/* When workers are scarcer than slots, domains take turns by weight. */
SIM_TEST(test_workers_go_to_domains_by_weight, 60)
{
    weir_domain_policy domains[] = { { .name = "A", .slots = 20, .weight = 3 },
                                     { .name = "B", .slots = 20, .slots_mode = WEIR_RESERVED } };
    weir_group_policy groups[] = { { .key = "A", .domain = "A" }, { .key = "B", .domain = "B" } };
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1, .group_limit = WEIR_NO_LIMIT, .slots = 41,
                                 .domains = domains, .domain_count = 2, .groups = groups,
                                 .group_count = 2, .stall_after_ms = 10000));
    _Atomic int began = 0;
    struct body gate = { .ms = 5, .began = &began }, body[24];
    int heavy = 0;

    CHECK(weir_submit_key(NULL, ex, "gate", computes, &gate, NULL) == 0);
    sleep_until(1);
    for (int i = 0; i < 24; i++) {
        body[i] = (struct body){ .ms = 2, .began = &began };
        CHECK(weir_submit_key(NULL, ex, i % 2 ? "A" : "B", computes, &body[i], NULL) == 0);
    }
    CHECK(weir_executor_drain(ex, WEIR_FOREVER) == 0);
    for (int i = 0; i < 24; i++)
        heavy += i % 2 && body[i].order <= 13; /* of the first twelve after the gate */
    CHECK(heavy >= 8 && heavy <= 10);
    check_domain_books(ex);
    weir_executor_free(ex);
}

/* why */
SIM_TEST(test_a_task_that_waits_for_a_slot_says_so, 40)
{
    weir_executor *ex = new_executor(EXAMPLE_POLICY(.inflight_max = 0));
    struct body body = { .until_ms = 100 };
    struct heap a = { 0 };
    weir_why why = { .size = sizeof(why) };
    char text[200];

    heap_add(&a, ex, "A", 18, &body);
    let_start();
    CHECK(weir_task_why(&why, a.task[17]) == 0);
    CHECK_EQ(why.reason, WEIR_REASON_DOMAIN_SLOTS);
    CHECK(strcmp(why.node, "domain") == 0 && strcmp(why.key, "A") == 0);
    CHECK_EQ(why.limit, 16);
    CHECK_EQ(why.held, 16);
    CHECK_EQ(why.ahead, 1);
    weir_why_text(text, sizeof(text), &why);
    CHECK(strcmp(text, "the domain has no free slot (domain \"A\": 16 of 16 in use), "
                       "1 before it") == 0);
    heap_free(&a);
    check_domain_books(ex);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_default_domain_gets_the_units_the_others_leave),
        cmocka_unit_test(test_a_max_domain_runs_queues_and_refuses),
        cmocka_unit_test(test_a_reserved_domain_borrows_from_the_default_one),
        cmocka_unit_test(test_the_default_domain_waits_while_its_slots_are_borrowed),
        cmocka_unit_test(test_a_floor_keeps_slots_of_the_default_domain_from_borrowers),
        cmocka_unit_test(test_a_reserved_domain_queues_and_then_refuses),
        cmocka_unit_test(test_only_free_slots_of_the_default_domain_are_borrowed),
        cmocka_unit_test(test_nothing_is_borrowed_from_a_busy_default_domain),
        cmocka_unit_test(test_a_unit_pays_back_the_loan_and_goes_to_the_lenders_waiter),
        cmocka_unit_test(test_a_unit_no_domain_wants_back_is_borrowed_again),
        cmocka_unit_test(test_a_max_domain_never_borrows),
        cmocka_unit_test(test_reserved_slots_stay_reserved),
        cmocka_unit_test(test_a_slot_comes_first_then_a_place_then_refusal),
        cmocka_unit_test(test_a_new_task_does_not_overtake_the_queue),
        cmocka_unit_test(test_reserved_places_are_borrowed_from_the_default_domain),
        cmocka_unit_test(test_no_more_run_than_there_are_slots),
        cmocka_unit_test(test_workers_go_to_domains_by_weight),
        cmocka_unit_test(test_a_task_that_waits_for_a_slot_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
