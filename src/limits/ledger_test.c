/* The ledger of domains, one rule at a time.
 * SPDX-License-Identifier: MIT */
#include "support/ledger_books.h"

/* SEMANTICS 2.7: default, A, B. */
static const struct given example[] = { { 0 },
                                        { 16, 32, false, false, 8, 16 },
                                        { 32, 64, true, false, 16, 32 } };

static int admit(struct books *b, uint32_t d, int tasks)
{
    int refused = 0;

    for (int i = 0; i < tasks; i++)
        refused += wr_ledger_admit(&b->l, d, true) != WEIR_REASON_NONE;
    return refused;
}

/* So many of d's waiting tasks are cancelled. */
static void cancel(struct books *b, uint32_t d, uint32_t tasks)
{
    for (uint32_t i = 0; i < tasks; i++) {
        wr_ledger_queued(&b->l, d, -1);
        wr_ledger_want(&b->l, d, -1);
    }
}

static void start_all(struct books *b)
{
    for (uint32_t d = 0; d < b->l.count; d++)
        while (b->share[d].promised)
            wr_ledger_take(&b->l, d);
}

#define assert_share(b, d, used_, borrowed_, waiting_)                 \
    do {                                                               \
        assert_int_equal(used(b, d), used_);                           \
        assert_int_equal((b)->share[d].borrowed, borrowed_);           \
        assert_int_equal(wr_ledger_waiting(&(b)->share[d]), waiting_); \
        assert_true(wr_ledger_is_valid(&(b)->l));                      \
    } while (0)

/* ---- one rule at a time ------------------------------------------------------------------------ */

static void test_the_rest_is_the_default_domains(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    assert_int_equal(b.share[0].slots.limit, 16);
    assert_int_equal(b.share[0].places.limit, 32);
}

static void test_the_worked_example_adds_up(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    assert_int_equal(admit(&b, 1, 60), 12); /* X1 */
    assert_share(&b, 1, 16, 0, 32);
    books_init(&b, 64, 128, 3, example);
    assert_int_equal(admit(&b, 2, 60), 0); /* X2 */
    assert_share(&b, 2, 48, 16, 12);
    assert_int_equal(admit(&b, 0, 40), 8); /* X3 */
    assert_share(&b, 0, 0, 0, 32);
    assert_int_equal(admit(&b, 2, 60), 8); /* X4 */
    assert_share(&b, 2, 48, 16, 64);
    books_init(&b, 64, 128, 3, example);
    admit(&b, 0, 10);
    assert_int_equal(admit(&b, 2, 60), 0); /* X5 */
    assert_share(&b, 2, 38, 6, 22);
    books_init(&b, 64, 128, 3, example);
    admit(&b, 0, 16);
    assert_int_equal(admit(&b, 2, 100), 4); /* X6 */
    assert_share(&b, 2, 32, 0, 64);
}

static void test_a_lenders_waiter_goes_before_a_borrowers(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    admit(&b, 2, 53);
    admit(&b, 0, 5);
    start_all(&b);
    wr_ledger_give(&b.l, 2); /* X7 */
    assert_share(&b, 2, 47, 15, 5);
    assert_share(&b, 0, 1, 0, 4);
    books_init(&b, 64, 128, 3, example);
    admit(&b, 2, 53);
    start_all(&b);
    wr_ledger_give(&b.l, 2); /* X8 */
    assert_share(&b, 2, 48, 16, 4);
}

/* 2.8, the example step by step. */
static void test_lending_as_in_the_example(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    admit(&b, 1, 46);
    admit(&b, 2, 4);
    start_all(&b);
    assert_share(&b, 1, 16, 0, 30);
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[1].slots.limit,
                     32); /* 28 idle, 8 for headroom, 20 to lend, half is 16 */
    assert_int_equal(b.share[2].slots.limit, 16);
    assert_int_equal(b.share[2].slots.lent, 16);
    assert_int_equal(b.share[2].places.lent, 0); /* A's queue is not half full any more */
    start_all(&b);
    assert_share(&b, 1, 32, 0, 14);
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[1].slots.limit,
                     32); /* the default domain lends nothing unless told to */
    admit(&b, 2, 36);
    assert_share(&b, 2, 32, 16, 8); /* 16 own, 16 borrowed */
    assert_int_equal(b.share[1].slots.due, 16);
    start_all(&b);
    for (int i = 1; i <= 16; i++) {
        wr_ledger_give(&b.l, 1);
        assert_int_equal(b.share[2].slots.limit, 16 + i);
        assert_share(&b, 2, i < 8 ? 32 + i : 40, i < 8 ? 16 : 16 - (i - 8), i < 8 ? 8 - i : 0);
        assert_share(&b, 1, 32 - i, 0, 14); /* its own waiters come after that */
        start_all(&b);
    }
    assert_int_equal(b.share[1].slots.limit, 16);
    assert_int_equal(b.share[2].slots.lent, 0);
    wr_ledger_give(&b.l, 1);
    assert_share(&b, 1, 16, 0, 13);
}

static void test_an_idle_lent_unit_comes_back_at_once(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    admit(&b, 1, 20);
    start_all(&b);
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[1].slots.limit, 20); /* no more than it can use */
    start_all(&b);
    for (int i = 0; i < 20; i++)
        wr_ledger_give(&b.l, 1);
    assert_int_equal(b.share[2].slots.lent, 4);
    admit(&b, 2, 32);
    assert_int_equal(b.share[2].slots.lent, 0);
    assert_share(&b, 2, 32, 0, 0);
}

static void test_a_pair_rests_after_a_recall(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    b.l.lending.hold = 3;
    admit(&b, 1, 48);
    start_all(&b);
    for (int i = 0; i < 2; i++)
        wr_ledger_sample(&b.l);
    assert_int_equal(b.share[2].slots.lent, 0); /* little used for two samples only */
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[2].slots.lent, 16);
    start_all(&b);
    admit(&b, 2, 30); /* recalls */
    start_all(&b);
    for (int i = 0; i < 30; i++)
        wr_ledger_give(&b.l, 2);
    for (int i = 0; i < 16; i++)
        wr_ledger_give(&b.l, 1);
    assert_int_equal(b.share[2].slots.lent, 0);
    start_all(&b);
    for (int i = 0; i < 3; i++) {
        wr_ledger_sample(&b.l);
        assert_int_equal(b.share[2].slots.lent, 0);
    }
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[2].slots.lent, 16);
}

/* 2.9, D-20, D-21 */
static void test_release_moves_everything_and_restore_brings_it_back(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    admit(&b, 2, 10);
    start_all(&b);
    wr_ledger_release(&b.l, 2, 0);
    assert_int_equal(b.share[0].slots.limit, 48);
    assert_int_equal(b.share[0].places.limit, 96);
    assert_int_equal(b.share[2].slots.limit, 0);
    assert_int_equal(wr_ledger_admit(&b.l, 2, true), WEIR_REASON_DOMAIN_RELEASED);
    assert_int_equal(admit(&b, 0, 48), 0);
    assert_share(&b, 0, 38, 0, 10); /* ten of its 48 are still busy */
    start_all(&b);
    wr_ledger_give(&b.l, 2);
    assert_share(&b, 0, 39, 0, 9);
    assert_share(&b, 2, 9, 0, 0);
    start_all(&b);
    wr_ledger_restore(&b.l, 2);
    assert_int_equal(b.share[2].slots.limit,
                     9); /* what its own bodies stand on; the rest is busy */
    assert_int_equal(b.share[0].slots.limit, 39);
    for (int i = 1; i <= 23; i++) {
        wr_ledger_give(&b.l, 0);
        assert_int_equal(b.share[2].slots.limit, 9 + i);
    }
    assert_int_equal(b.share[2].slots.limit, 32);
    assert_int_equal(b.share[2].places.limit, 64);
    assert_int_equal(b.share[0].slots.limit, 16);
    assert_false(b.share[2].slots.forced);
}

static void test_release_settles_loans(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    admit(&b, 1, 46);
    start_all(&b);
    wr_ledger_sample(&b.l);
    start_all(&b);
    assert_int_equal(b.share[2].slots.lent, 16);
    wr_ledger_release(&b.l, 2, 0);
    assert_int_equal(b.share[0].slots.limit,
                     32); /* sixteen more are with A, and recalled on its behalf */
    assert_int_equal(b.share[0].slots.lent, 16);
    assert_int_equal(b.share[1].slots.due, 16);
    for (int i = 0; i < 32; i++)
        wr_ledger_give(&b.l, 1), start_all(&b);
    assert_int_equal(b.share[0].slots.limit, 48);
    wr_ledger_restore(&b.l, 2);
    assert_int_equal(b.share[2].slots.limit, 32);
    assert_true(wr_ledger_is_valid(&b.l));
}

/* A domain that was released and one that has lent wait for the same units. */
static void test_released_units_come_back_before_loans(void **state)
{
    static const struct given three[] = { { 0 },
                                          { 4, 9, false, false, 2, 0 },
                                          { 2, 9, false, false, 0, 0 } };
    struct books b;
    (void)state;
    books_init(&b, 8, 36, 3, three);
    admit(&b, 0, 6);
    start_all(&b);
    wr_ledger_sample(&b.l); /* lends two to the default domain */
    wr_ledger_release(&b.l, 2, 0);
    start_all(&b);
    assert_share(&b, 0, 6, 0, 0);
    wr_ledger_restore(&b.l, 2);
    admit(&b, 1, 4); /* recalls them */
    for (uint32_t i = 1; i <= 4; i++) {
        wr_ledger_give(&b.l, 0);
        assert_int_equal(b.share[2].slots.limit, i < 2 ? i : 2);
        assert_int_equal(b.share[1].slots.limit, i < 3 ? 2 : i);
    }
    assert_true(wr_ledger_is_valid(&b.l));
}

/* A receiver has lent the units it was given, and borrowed others: the borrowed ones are not for the domain that is restored. */
static void test_units_a_receiver_borrowed_go_back_to_their_lender(void **state)
{
    enum { R = 1, RELEASED, LENDER, SWAMPED };
    static const struct given five[] = { { 0 },
                                         [R] = { 1, 9, false, false, 0, 0 },
                                         [RELEASED] = { 4, 9, false, false, 4, 0 },
                                         [LENDER] = { 8, 9, false, false, 5, 0 },
                                         [SWAMPED] = { 1, 9, false, false, 0, 0 } };
    struct books b;
    (void)state;
    books_init(&b, 14, 36, 5, five);
    b.l.lending.headroom = 0;
    admit(&b, R, 4);
    admit(&b, SWAMPED, 5);
    start_all(&b);
    wr_ledger_sample(&b.l);
    start_all(&b);
    assert_int_equal(b.share[LENDER].slots.lent, 3);
    assert_int_equal(b.share[RELEASED].slots.lent, 4);
    wr_ledger_release(&b.l, RELEASED, R);
    for (int i = 0; i < 4; i++)
        wr_ledger_give(&b.l, R);
    wr_ledger_restore(&b.l, RELEASED);
    assert_int_equal(b.share[RELEASED].slots.limit, 1); /* the other three are with the swamped */
    assert_int_equal(b.share[R].slots.limit, 3);
    assert_int_equal(admit(&b, LENDER, 8), 0);
    assert_share(&b, LENDER, 8, 0, 0);
    assert_int_equal(b.share[R].slots.limit, 0);
    for (int i = 0; i < 4; i++)
        wr_ledger_give(&b.l, SWAMPED);
    assert_int_equal(b.share[RELEASED].slots.limit, 4);
    assert_int_equal(b.share[R].slots.limit, 1);
    wr_ledger_release(&b.l, R, 0);
    assert_int_equal(b.share[0].slots.limit, 1);
}

static void test_some_domains_cannot_be_released(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    assert_false(wr_ledger_can_release(&b.l, 0, 1));
    assert_false(wr_ledger_can_release(&b.l, 1, 1));
    wr_ledger_release(&b.l, 1, 2);
    assert_false(wr_ledger_can_release(&b.l, 1, 0)); /* it is */
    assert_false(wr_ledger_can_release(&b.l, 2, 0)); /* it holds what A gets back */
    wr_ledger_restore(&b.l, 1);
    assert_true(wr_ledger_can_release(&b.l, 2, 0));
}

static void test_promises_that_are_not_needed_go_to_others(void **state)
{
    static const struct given two[] = { { 0 },
                                        { 1, 9, true, false, 0, 0 },
                                        { 1, 9, true, false, 0, 0 } };
    struct books b;
    (void)state;
    books_init(&b, 3, 30, 3, two);
    admit(&b, 1, 2);
    admit(&b, 2, 2);
    assert_share(&b, 1, 2, 1, 0);
    assert_share(&b, 2, 1, 0, 1);
    wr_ledger_want(&b.l, 1, -2); /* its group was paused */
    assert_share(&b, 1, 0, 0, 2);
    assert_share(&b, 2, 2, 1, 0);
}

/* ---- ceding ------------------------------------------------------------------------------------- */

static void test_used_ceded_units_count_as_if_they_had_been_asked_for(void **state)
{
    struct books asked, ceded;
    uint32_t idle;
    (void)state;
    books_init(&asked, 64, WR_INF, 3, example);
    books_init(&ceded, 64, WR_INF, 3, example);
    idle = wr_ledger_cede(&ceded.l, 1);
    assert_int_equal(idle, 16);
    assert_true(wr_ledger_is_valid(&ceded.l));
    wr_ledger_uncede(&ceded.l, 1, idle - 5); /* five tasks have begun */
    wr_ledger_want(&asked.l, 1, 5);
    start_all(&asked);
    for (uint32_t d = 0; d < 3; d++)
        assert_int_equal(used(&ceded, d), used(&asked, d));
    assert_true(wr_ledger_is_valid(&ceded.l));
}

static void test_nothing_is_ceded_that_another_domain_may_claim(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, WR_INF, 3, example);
    for (uint32_t d = 0; d < 3; d++)
        assert_true(wr_ledger_may_cede(&b.l, d));
    wr_ledger_want(&b.l, 2, 40); /* eight of them on the default domain's units */
    start_all(&b);
    assert_false(wr_ledger_may_cede(&b.l, 0));
    assert_true(wr_ledger_may_cede(&b.l, 1));
    assert_false(wr_ledger_may_cede(&b.l, 2));
    wr_ledger_want(&b.l, 1, 17);
    assert_false(wr_ledger_may_cede(&b.l, 1)); /* one of its own waits */
    wr_ledger_want(&b.l, 1, -17);
    wr_ledger_release(&b.l, 1, 2);
    for (uint32_t d = 0; d < 3; d++)
        assert_false(wr_ledger_may_cede(&b.l, d));
}

/* ---- places ------------------------------------------------------------------------------------- */

/* A: one slot, two places. B: one slot, sixteen places, of which it may lend all but its headroom of four. */
static const struct given places_only[] = { { 0 },
                                            { 1, 2, false, false, 0, 1 },
                                            { 1, 16, false, false, 0, 16 } };

static void assert_places(const struct books *b, uint32_t a_limit, uint32_t b_limit, uint32_t due)
{
    assert_int_equal(b->share[1].places.limit, a_limit);
    assert_int_equal(b->share[2].places.limit, b_limit);
    assert_int_equal(b->share[1].places.due, due);
    assert_true(wr_ledger_is_valid(&b->l));
}

/* A runs one and has all places it can get taken; B is idle. */
static void books_with_places_lent(struct books *b, uint32_t headroom)
{
    books_init(b, 3, 20, 3, places_only);
    b->l.lending.headroom = headroom;
    for (int i = 0; i < 5; i++) {
        admit(b, 1, 16);
        start_all(b);
        wr_ledger_sample(&b->l);
    }
}

static void test_a_full_queue_is_lent_places(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 3, 20, 3, places_only);
    assert_int_equal(admit(&b, 1, 9), 6); /* one runs, two wait */
    start_all(&b);
    wr_ledger_sample(&b.l);
    assert_places(&b, 4, 14, 0); /* no more than are taken */
    wr_ledger_sample(&b.l);
    assert_places(&b, 4, 14, 0); /* half of them are free: that will do */
    assert_int_equal(admit(&b, 1, 9), 7);
    wr_ledger_sample(&b.l);
    assert_places(&b, 8, 10, 0);
    assert_int_equal(admit(&b, 1, 9), 5);
    wr_ledger_sample(&b.l);
    assert_places(&b, 14, 4, 0); /* four of sixteen must stay free */
    admit(&b, 1, 9);
    wr_ledger_sample(&b.l);
    assert_places(&b, 14, 4, 0);
    assert_int_equal(b.share[2].places.loans, 12);
    assert_share(&b, 1, 1, 0, 14);
    assert_int_equal(b.share[0].places.lent, 0); /* nor does the default domain, unless told to */
}

static void test_places_are_lent_by_steps_and_only_so_many(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 3, 20, 3, places_only);
    b.l.lending.step = 1;
    b.share[2].places.lend_max = 2;
    for (uint32_t i = 1; i <= 4; i++) {
        admit(&b, 1, 9);
        start_all(&b);
        wr_ledger_sample(&b.l);
        assert_places(&b, i < 2 ? 3 : 4, i < 2 ? 15 : 14, 0);
    }
}

static void test_a_domain_that_has_been_busy_lends_no_places_yet(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 3, 20, 3, places_only);
    b.l.lending.hold = 2;
    admit(&b, 1, 3);
    admit(&b, 2, 6); /* five of sixteen places: 31 % */
    start_all(&b);
    for (int i = 0; i < 3; i++)
        wr_ledger_sample(&b.l);
    assert_places(&b, 2, 16, 0);
    cancel(&b, 2, 1); /* four: 25 %, and those may wait on */
    wr_ledger_sample(&b.l);
    assert_places(&b, 2, 16, 0);
    wr_ledger_sample(&b.l);
    assert_places(&b, 4, 14, 0);
}

static void test_lent_places_come_back_idle_ones_at_once(void **state)
{
    struct books b;
    (void)state;
    books_with_places_lent(&b, 25);
    cancel(&b, 1, 3); /* three of A's fourteen are free again */
    assert_places(&b, 14, 4, 0);
    assert_int_equal(admit(&b, 2, 1), 0); /* has a slot: no place is needed */
    assert_places(&b, 14, 4, 0);
    assert_int_equal(admit(&b, 2, 1), 0); /* waits: fewer than four are free */
    assert_places(&b, 11, 7, 9);
    assert_int_equal(b.share[2].places.recalls, 12);
    assert_int_equal(admit(&b, 1, 1), 1); /* A has all that is left to it taken */
    assert_places(&b, 11, 7, 9);
    start_all(&b);
    for (uint32_t i = 1; i <= 9; i++) {
        wr_ledger_give(&b.l, 1); /* the next one starts, and leaves its place */
        start_all(&b);
        assert_places(&b, 11 - i, 7 + i, 9 - i);
        assert_share(&b, 1, 1, 0, 11 - i);
    }
    assert_int_equal(admit(&b, 1, 1), 1); /* two wait, two may */
    wr_ledger_give(&b.l, 1);
    assert_int_equal(admit(&b, 1, 1), 0);
}

static void test_without_headroom_a_task_gets_lent_places_back_before_it_is_refused(void **state)
{
    struct books b;
    (void)state;
    books_with_places_lent(&b, 0);
    assert_places(&b, 18, 0, 0); /* B has none left */
    cancel(&b, 1, 2);
    assert_share(&b, 1, 1, 0, 16);
    assert_int_equal(admit(&b, 2, 1), 0);
    start_all(&b);
    assert_places(&b, 18, 0, 0);
    assert_int_equal(admit(&b, 2, 1), 0); /* two of A's were free */
    assert_places(&b, 16, 2, 14);
    assert_int_equal(admit(&b, 2, 1), 0);
    assert_int_equal(admit(&b, 2, 1), 1); /* and now none is */
    wr_ledger_give(&b.l, 1);
    assert_int_equal(admit(&b, 2, 1), 0);
}

static void test_places_rest_after_a_recall(void **state)
{
    struct books b;
    (void)state;
    books_with_places_lent(&b, 25);
    b.l.lending.hold = 2;
    admit(&b, 2, 2); /* recalls: none of A's is free */
    start_all(&b);
    assert_places(&b, 14, 4, 12);
    wr_ledger_give(&b.l, 2);
    cancel(&b, 1, 12);
    assert_places(&b, 2, 16, 0);
    wr_ledger_sample(&b.l);
    wr_ledger_sample(&b.l);
    assert_places(&b, 2, 16, 0);
    wr_ledger_sample(&b.l);
    assert_places(&b, 4, 14, 0);
}

static void test_release_settles_loans_of_places(void **state)
{
    struct books b;
    (void)state;
    books_with_places_lent(&b, 25);
    wr_ledger_release(&b.l, 2, 0); /* the lender: its loan is the default domain's, and recalled */
    assert_places(&b, 14, 0, 12);
    assert_int_equal(b.share[0].places.limit, 6);
    assert_int_equal(b.share[0].places.lent, 12);
    wr_ledger_restore(&b.l, 2);
    assert_places(&b, 14, 6, 12); /* six were there */
    cancel(&b, 1, 12);
    assert_places(&b, 2, 16, 0);
    assert_int_equal(b.share[0].places.limit, 2);

    books_with_places_lent(&b, 25);
    wr_ledger_release(&b.l, 1, 0); /* the borrower: what is not its own goes back as its tasks go */
    assert_places(&b, 12, 4, 12);
    assert_int_equal(b.share[0].places.limit, 4);
    cancel(&b, 1, 14);
    assert_places(&b, 0, 16, 0);
    wr_ledger_restore(&b.l, 1);
    assert_places(&b, 2, 16, 0);
}

/* Places that reserved domains borrow are taken places of the default one, also when it lends. */
static void test_borrowed_places_are_recalled_for(void **state)
{
    static const struct given reserved[] = { { .places_lend_max = 4 },
                                             { 1, 2, false, false, 0, 0 },
                                             { 1, 2, false, true, 0, 0 } };
    struct books b;
    (void)state;
    books_init(&b, 2, 8, 3, reserved);
    b.l.lending.headroom = 0;
    admit(&b, 1, 3);
    start_all(&b);
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[0].places.lent, 2);
    assert_int_equal(admit(&b, 2, 5), 0); /* two on its own, two on the default domain's */
    assert_int_equal(wr_ledger_places_borrowed(&b.share[2]), 2);
    assert_int_equal(b.share[1].places.due, 0);
    assert_int_equal(admit(&b, 2, 1), 0); /* the loan to A was not used */
    assert_int_equal(b.share[0].places.lent, 0);
    assert_int_equal(admit(&b, 2, 2), 1);
    assert_true(wr_ledger_is_valid(&b.l));
}

static void test_places_without_number_are_not_lent(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 3, WR_INF, 3, places_only);
    assert_int_equal(admit(&b, 1, 9), 6);
    start_all(&b);
    for (int i = 0; i < 3; i++)
        wr_ledger_sample(&b.l);
    assert_int_equal(b.share[2].places.lent, 0);
    wr_ledger_release(&b.l, 2, 1);
    assert_int_equal(b.share[1].places.limit, 2); /* no domain has less, so none gets more */
    wr_ledger_restore(&b.l, 2);
    assert_int_equal(b.share[2].places.limit, 16);
    assert_true(wr_ledger_is_valid(&b.l));
}

/* ---- resizing ----------------------------------------------------------------------------------- */

static void test_resizing_moves_idle_units(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    assert_int_equal(wr_ledger_most(&b.l, WR_SLOTS, 1), 32);
    assert_int_equal(wr_ledger_most(&b.l, WR_PLACES, 1), 64);
    wr_ledger_resize(&b.l, WR_SLOTS, 1, 32);
    wr_ledger_resize(&b.l, WR_PLACES, 1, 64);
    assert_int_equal(b.share[1].slots.limit, 32);
    assert_int_equal(b.share[1].places.limit, 64);
    assert_int_equal(b.share[0].slots.limit, 0);
    assert_int_equal(b.share[0].places.limit, 0);
    assert_int_equal(admit(&b, 0, 1), 1); /* nothing is left there */
    wr_ledger_resize(&b.l, WR_SLOTS, 1, 0);
    wr_ledger_resize(&b.l, WR_PLACES, 1, 0);
    assert_int_equal(b.share[0].slots.limit, 32);
    assert_int_equal(b.share[0].places.limit, 64);
    assert_int_equal(admit(&b, 1, 1), 1);
    assert_int_equal(b.share[1].slots.loans + b.share[0].slots.loans, 0);
}

static void test_a_floor_stays_with_the_default_domain(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    b.l.floor = 6;
    assert_int_equal(wr_ledger_most(&b.l, WR_SLOTS, 1), 26);
    wr_ledger_resize(&b.l, WR_SLOTS, 1, 26);
    assert_int_equal(wr_ledger_most(&b.l, WR_SLOTS, 2), 32); /* what it has */
    admit(&b, 2, 33);
    assert_share(&b, 2, 32, 0, 1); /* nothing to borrow: all that is left is the floor */
}

/* Two domains grow by the units that one loses: each unit that the shrinking one owes goes to the domain it is for. */
static void test_units_one_domain_gives_another_gets(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    admit(&b, 0, 16);
    admit(&b, 1, 16);
    start_all(&b);
    wr_ledger_resize(&b.l, WR_SLOTS, 1, 6);
    assert_int_equal(b.share[1].slots.due, 10);
    assert_int_equal(b.share[0].slots.amount, 26);
    wr_ledger_resize(&b.l, WR_SLOTS, 2, 58); /* all of it: ten are with A, sixteen are busy */
    assert_int_equal(b.share[0].slots.amount, 0);
    assert_int_equal(b.share[0].slots.due, 16);
    assert_int_equal(b.share[1].slots.due, 10);
    assert_int_equal(b.share[2].slots.owed, 26);
    for (uint32_t i = 1; i <= 16; i++) {
        wr_ledger_give(&b.l, 1);
        assert_int_equal(b.share[2].slots.limit, i < 10 ? 32 + i : 42);
        assert_int_equal(b.share[1].slots.limit, i < 10 ? 16 - i : 6);
    }
    for (uint32_t i = 1; i <= 16; i++) {
        wr_ledger_give(&b.l, 0);
        assert_int_equal(b.share[2].slots.limit, 42 + i);
    }
    assert_true(wr_ledger_is_valid(&b.l));
}

static void test_a_default_cap_on_loans_follows_the_size(void **state)
{
    struct books b;
    (void)state;
    books_init(&b, 64, 128, 3, example);
    b.share[2].slots.lends_half = true;
    wr_ledger_resize(&b.l, WR_SLOTS, 2, 40);
    admit(&b, 1, 48);
    start_all(&b);
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[2].slots.lent, 20);
    start_all(&b);
    wr_ledger_resize(&b.l, WR_SLOTS, 2,
                     36); /* four were idle, but eighteen are all it may lend now */
    assert_int_equal(b.share[2].slots.limit, 16);
    assert_int_equal(b.share[1].slots.due, 20);
    b.share[1].slots.lends_half = false; /* a cap that was set stays */
    wr_ledger_resize(&b.l, WR_SLOTS, 1, 20);
    assert_int_equal(b.share[1].slots.lend_max, 8);
    assert_true(wr_ledger_is_valid(&b.l));
}

/* A lends places to B, which lends slots to A: neither is in the way of the other. */
static void test_a_borrower_of_slots_may_lend_places(void **state)
{
    static const struct given two[] = { { 0 },
                                        { 1, 16, false, false, 0, 8 },
                                        { 8, 2, false, false, 4, 0 } };
    struct books b;
    (void)state;
    books_init(&b, 9, 18, 3, two);
    admit(&b, 1, 3);
    for (int i = 0; i < 2; i++)
        assert_int_equal(wr_ledger_admit(&b.l, 2, false),
                         WEIR_REASON_NONE); /* wait for their group */
    start_all(&b);
    b.l.lending.low = 50;
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[1].slots.received, 0); /* tasks wait in B, for whatever */
    assert_int_equal(b.share[2].places.received, 2);
    wr_ledger_queued(&b.l, 2, -1);
    wr_ledger_queued(&b.l, 2, -1);
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[1].slots.received, 2);
    assert_int_equal(b.share[1].places.lent, 2);
    assert_int_equal(admit(&b, 2, 11), 1); /* six run, four wait, two of them on lent places */
    assert_int_equal(b.share[1].slots.due, 2);
    assert_true(wr_ledger_is_valid(&b.l));
}

/* ---- whether a slot may come --------------------------------------------------------------------- */

/* Whether d gets a slot if so many tasks never end. */
static bool may_get(const struct books *b, uint32_t d, const uint64_t *stuck,
                    struct wr_hopes *hopes)
{
    struct books copy = { .l = { .share = copy.share, .loan = copy.loan } };

    return wr_ledger_may_get_slot(&b->l, &copy.l, d, stuck, hopes);
}

static void test_a_slot_comes_unless_all_that_could_be_had_are_kept_for_ever(void **state)
{
    static const struct given given[] = { { 0 },
                                          { .slots = 2 },
                                          { .slots = 1, .slots_reserved = true } };
    struct wr_hopes hopes;
    struct books b;

    (void)state;
    books_init(&b, 5, 0, 3, given);
    b.l.lending.on = false;
    for (uint32_t d = 0; d < 3; d++) {
        wr_ledger_want(&b.l, d, 5);
        start_all(&b);
    }
    assert_true(may_get(&b, 1, (uint64_t[]){ 2, 1, 1 }, &hopes));
    assert_false(may_get(&b, 1, (uint64_t[]){ 0, 2, 0 }, &hopes));
    assert_true(may_get(&b, 2, (uint64_t[]){ 1, 2, 1 }, &hopes)); /* of the default domain's */
    assert_false(may_get(&b, 2, (uint64_t[]){ 2, 0, 1 }, &hopes));
    b.l.floor = 1;
    assert_true(may_get(&b, 2, (uint64_t[]){ 0, 2, 1 }, &hopes));
    b.l.floor = 2;
    assert_false(may_get(&b, 2, (uint64_t[]){ 0, 2, 1 }, &hopes));
    assert_int_equal(hopes.lenders | hopes.movers, 0);
}

static void test_a_slot_may_be_lent_by_a_domain_that_can_spare_one_or_has_lent_one(void **state)
{
    static const struct given given[] = { { 0 },
                                          { .slots = 4, .places = 9, .lend_max = 2 },
                                          { .slots = 1, .places = 9 } };
    struct wr_hopes hopes;
    struct books b;

    (void)state;
    books_init(&b, 5, 20, 3, given);
    admit(&b, 2, 2);
    start_all(&b);
    assert_false(may_get(&b, 2, (uint64_t[]){ 0, 0, 1 }, &hopes));
    assert_int_equal(hopes.lenders, wr_domain_bit(1));
    assert_int_equal(hopes.movers, 0);
    wr_ledger_sample(&b.l);
    assert_int_equal(b.share[1].slots.lent, 1);
    assert_true(may_get(&b, 2, (uint64_t[]){ 0, 0, 1 }, &hopes)); /* it is promised */
    start_all(&b);
    assert_false(may_get(&b, 2, (uint64_t[]){ 0, 0, 2 }, &hopes));
    assert_int_equal(hopes.movers, wr_domain_bit(1));
    assert_int_equal(b.share[1].slots.lent, 1); /* the question changes nothing */
}

/* One that is stuck stands on what is left when others have ended: what is recalled goes first, then what is borrowed. */
static void test_a_stuck_task_keeps_a_borrowed_slot_rather_than_a_recalled_one(void **state)
{
    static const struct given given[] = { { 0 },
                                          { .slots_reserved = true },
                                          { .slots = 1, .lend_max = 1 } };
    struct wr_hopes hopes;
    struct books b;

    (void)state;
    books_init(&b, 2, 0, 3, given);
    b.l.lending.headroom = 0;
    wr_ledger_want(&b.l, 1, 2);
    start_all(&b);
    wr_ledger_sample(&b.l);
    start_all(&b);
    wr_ledger_want(&b.l, 2, 1);
    assert_int_equal(b.share[1].borrowed, 1);
    assert_int_equal(b.share[1].slots.due, 1);
    assert_true(may_get(&b, 2, (uint64_t[]){ 0, 1, 0 }, &hopes));
    assert_false(may_get(&b, 2, (uint64_t[]){ 0, 2, 0 }, &hopes));
    assert_false(may_get(&b, 0, (uint64_t[]){ 0, 1, 0 }, &hopes));
    assert_true(may_get(&b, 0, (uint64_t[]){ 0, 0, 0 }, &hopes));
}

static void test_a_domain_without_slots_or_released_is_not_kept_from_one_by_others(void **state)
{
    static const struct given given[] = { { 0 }, { .places = 9 }, { .slots = 2 } };
    struct wr_hopes hopes;
    struct books b;

    (void)state;
    books_init(&b, 2, 20, 3, given);
    assert_false(wr_ledger_has_slots(&b.l, 1));
    assert_true(may_get(&b, 1, (uint64_t[]){ 0, 0, 2 }, &hopes));
    wr_ledger_release(&b.l, 2, 1);
    assert_true(may_get(&b, 2, (uint64_t[]){ 0, 0, 2 }, &hopes));
    assert_int_equal(hopes.movers, wr_domain_bit(1)); /* its receiver */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rest_is_the_default_domains),
        cmocka_unit_test(test_the_worked_example_adds_up),
        cmocka_unit_test(test_a_lenders_waiter_goes_before_a_borrowers),
        cmocka_unit_test(test_lending_as_in_the_example),
        cmocka_unit_test(test_an_idle_lent_unit_comes_back_at_once),
        cmocka_unit_test(test_a_pair_rests_after_a_recall),
        cmocka_unit_test(test_release_moves_everything_and_restore_brings_it_back),
        cmocka_unit_test(test_release_settles_loans),
        cmocka_unit_test(test_released_units_come_back_before_loans),
        cmocka_unit_test(test_units_a_receiver_borrowed_go_back_to_their_lender),
        cmocka_unit_test(test_some_domains_cannot_be_released),
        cmocka_unit_test(test_promises_that_are_not_needed_go_to_others),
        cmocka_unit_test(test_used_ceded_units_count_as_if_they_had_been_asked_for),
        cmocka_unit_test(test_nothing_is_ceded_that_another_domain_may_claim),
        cmocka_unit_test(test_a_full_queue_is_lent_places),
        cmocka_unit_test(test_places_are_lent_by_steps_and_only_so_many),
        cmocka_unit_test(test_a_domain_that_has_been_busy_lends_no_places_yet),
        cmocka_unit_test(test_lent_places_come_back_idle_ones_at_once),
        cmocka_unit_test(test_without_headroom_a_task_gets_lent_places_back_before_it_is_refused),
        cmocka_unit_test(test_places_rest_after_a_recall),
        cmocka_unit_test(test_release_settles_loans_of_places),
        cmocka_unit_test(test_borrowed_places_are_recalled_for),
        cmocka_unit_test(test_places_without_number_are_not_lent),
        cmocka_unit_test(test_resizing_moves_idle_units),
        cmocka_unit_test(test_a_floor_stays_with_the_default_domain),
        cmocka_unit_test(test_units_one_domain_gives_another_gets),
        cmocka_unit_test(test_a_default_cap_on_loans_follows_the_size),
        cmocka_unit_test(test_a_borrower_of_slots_may_lend_places),
        cmocka_unit_test(test_a_slot_comes_unless_all_that_could_be_had_are_kept_for_ever),
        cmocka_unit_test(test_a_slot_may_be_lent_by_a_domain_that_can_spare_one_or_has_lent_one),
        cmocka_unit_test(test_a_stuck_task_keeps_a_borrowed_slot_rather_than_a_recalled_one),
        cmocka_unit_test(test_a_domain_without_slots_or_released_is_not_kept_from_one_by_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
