/* Tests of the shares of the domains of a policy.
 * SPDX-License-Identifier: MIT */
#include "policy/policy.h"
#include "support/ledger_books.h"

static enum wr_counts fill(struct books *b, const weir_policy *given)
{
    struct wr_policy policy = { 0 };
    enum wr_counts counts;

    assert_int_equal(wr_policy_init(&policy, given, NULL), 0);
    memset(b, 0, sizeof(*b));
    b->l = (struct wr_ledger){ .count = policy.domain_count, .share = b->share, .loan = b->loan };
    counts = wr_policy_fill_ledger(&policy, &b->l);
    assert_true(wr_ledger_is_valid(&b->l));
    wr_policy_fini(&policy);
    return counts;
}

static weir_domain_policy two[] = {
    { .name = "A", .slots = 4, .queue = 10, .weight = 3, .lend_max = 1, .workers = 2 },
    { .name = "B", .slots = 2, .queue = 6, .slots_mode = WEIR_RESERVED },
};

static void test_each_domain_has_its_share_by_policy_and_the_default_one_the_rest(void **state)
{
    struct books b;
    enum wr_counts counts;

    (void)state;
    counts = fill(&b, WEIR_POLICY(.slots = 9, .queue_places = 20, .default_floor = 1,
                                  .domains = two, .domain_count = 2));
    assert_int_equal(counts, WR_COUNTS_QUEUED);
    assert_int_equal(b.l.total, 9);
    assert_int_equal(b.l.floor, 1);
    assert_int_equal(b.share[0].slots.limit, 3);
    assert_int_equal(b.share[0].places.limit, 4);
    assert_int_equal(b.share[1].slots.limit, 4);
    assert_int_equal(b.share[1].slots.lend_max, 1);
    assert_int_equal(b.share[1].places.lend_max, 5); /* half, since nothing is said */
    assert_int_equal(b.share[1].weight, 3);
    assert_int_equal(b.share[2].slots.limit, 2);
    assert_int_equal(b.share[2].places.limit, 6);
    assert_int_equal(b.l.slot_borrowers, wr_domain_bit(2));
    assert_int_equal(b.l.apart, wr_domain_bit(1));
    assert_false(b.l.lending.on);
}

static void test_the_ledger_is_told_of_more_if_more_than_slots_is_limited(void **state)
{
    weir_domain_policy plain[] = { { .name = "A", .slots = 4 } };
    weir_domain_policy threads[] = { { .name = "A", .slots = 4, .run_on = WEIR_THREADS } };
    weir_domain_policy places[] = { { .name = "A", .slots = 4, .queue = 3 } };
    struct books b;

    (void)state;
    assert_int_equal(fill(&b, WEIR_POLICY(.slots = 9, .domains = plain, .domain_count = 1)),
                     WR_COUNTS_SLOTS);
    assert_int_equal(b.l.places_total, WR_INF);
    assert_int_equal(fill(&b, WEIR_POLICY(.slots = 9, .domains = threads, .domain_count = 1)),
                     WR_COUNTS_READY);
    assert_int_equal(
        fill(&b, WEIR_POLICY(.slots = 9, .inflight_max = 3, .domains = plain, .domain_count = 1)),
        WR_COUNTS_READY);
    assert_int_equal(fill(&b, WEIR_POLICY(.slots = 9, .stall_policy = WEIR_STALL_TO_THREADS,
                                          .domains = plain, .domain_count = 1)),
                     WR_COUNTS_READY);
    assert_int_equal(fill(&b, WEIR_POLICY(.slots = 9, .domains = places, .domain_count = 1)),
                     WR_COUNTS_QUEUED);
    assert_int_equal(fill(&b, WEIR_POLICY(.slots = 9, .lending.period_ms = 5, .domains = plain,
                                          .domain_count = 1)),
                     WR_COUNTS_QUEUED);
    assert_true(b.l.lending.on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_domain_has_its_share_by_policy_and_the_default_one_the_rest),
        cmocka_unit_test(test_the_ledger_is_told_of_more_if_more_than_slots_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
