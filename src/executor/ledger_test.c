/* The ledger of domains: single rules first, then random schedules against a model that moves one unit at a
 * time and writes down who stands where.
 * SPDX-License-Identifier: MIT */
#include "executor/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { D = 5 }; /* most domains in a test */

struct books {
    struct wr_ledger l;
    struct wr_share share[D];
    struct wr_loan loan[WR_RESOURCES * D * D];
};

/* A domain as the tests write it. */
struct given {
    uint32_t slots, places;
    bool slots_reserved, places_reserved;
    uint32_t lend_max;
};

static void books_init(struct books *b, uint32_t total, uint32_t places, uint32_t count,
                       const struct given *given)
{
    memset(b, 0, sizeof(*b));
    b->l = (struct wr_ledger){
        .count = count, .total = total, .places_total = places, .share = b->share, .loan = b->loan
    };
    b->l.lending = (struct wr_lending){
        .on = true, .low = 30, .high = 90, .hold = 1, .headroom = 25, .step = WR_INF
    };
    for (uint32_t d = 0; d < count; d++)
        b->share[d] = (struct wr_share){ .slots = { .amount = d ? given[d].slots : 0,
                                                    .lend_max = given[d].lend_max },
                                         .places = { .amount = d ? given[d].places : 0 },
                                         .slots_reserved = d && given[d].slots_reserved,
                                         .places_reserved = d && given[d].places_reserved,
                                         .weight = 1 };
    wr_ledger_init(&b->l);
}

/* SEMANTICS 2.7: default, A, B. */
static const struct given example[] = { { 0 },
                                        { 16, 32, false, false, 8 },
                                        { 32, 64, true, false, 16 } };

static int admit(struct books *b, uint32_t d, int tasks)
{
    int refused = 0;

    for (int i = 0; i < tasks; i++)
        refused += wr_ledger_admit(&b->l, d, true) != WEIR_REASON_NONE;
    return refused;
}

static void start_all(struct books *b)
{
    for (uint32_t d = 0; d < b->l.count; d++)
        while (b->share[d].promised)
            wr_ledger_take(&b->l, d);
}

static uint32_t used(const struct books *b, uint32_t d)
{
    return b->share[d].own + b->share[d].borrowed + b->share[d].strays;
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

static void test_what_cannot_be_released(void **state)
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

static void test_promises_that_nobody_needs_go_to_others(void **state)
{
    static const struct given two[] = { { 0 }, { 1, 9, true, false, 0 }, { 1, 9, true, false, 0 } };
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

/* ---- a model ----------------------------------------------------------------------------------- */

/* on[d][c]: tasks of d on units of c, c == d for its own. Units of `c`: at[c]. Every rule moves one. */
struct model {
    uint32_t count, floor, at[D], on[D][D], loan[D][D], due[D][D], forced[D];
    uint32_t places_at[D], places_forced[D];
    uint32_t want[D], promised[D], low[D], rest[D][D];
    int64_t queued[D];
    int receiver[D];
    bool released[D];
    uint32_t turn, turn_left;
    const struct wr_ledger *l; /* for what is configured, nothing else */
};

static uint32_t idle(const struct model *m, uint32_t c)
{
    uint32_t busy = 0;

    for (uint32_t d = 0; d < m->count; d++)
        busy += m->on[d][c];
    assert_true(busy <= m->at[c]); /* D1, D2 */
    return m->at[c] - busy;
}

static uint32_t lent_by(const struct model *m, uint32_t d)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < m->count; i++)
        sum += m->loan[d][i];
    return sum;
}

static uint32_t taken_by(const struct model *m, uint32_t d)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < m->count; i++)
        sum += m->loan[i][d];
    return sum;
}

static uint32_t due_by(const struct model *m, uint32_t d)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < m->count; i++)
        sum += m->due[i][d];
    return sum;
}

static bool waits(const struct model *m, uint32_t d)
{
    return !m->released[d] && m->want[d] > m->promised[d];
}

static uint32_t on_default(const struct model *m)
{
    uint32_t sum = 0;

    for (uint32_t d = 1; d < m->count; d++)
        sum += m->on[d][0];
    return sum;
}

/* Strays of d are on its receiver's units; if that is the default domain, they are told apart here. */
static uint32_t strays[D];

static bool can_borrow(const struct model *m, uint32_t d)
{
    uint32_t borrowed = on_default(m);

    for (uint32_t i = 1; i < m->count; i++)
        if (m->receiver[i] == 0)
            borrowed -= strays[i];
    return d && m->l->share[d].slots_reserved && idle(m, 0) && !waits(m, 0) &&
           borrowed + m->floor < m->at[0];
}

static void leave(struct model *m, uint32_t d)
{
    uint32_t r = m->receiver[d] < 0 ? 0 : (uint32_t)m->receiver[d];
    uint32_t borrowed = m->on[d][0] - (d && m->receiver[d] == 0 ? strays[d] : 0);

    if (d == 0)
        m->on[0][0]--;
    else if (due_by(m, d) && m->on[d][d])
        m->on[d][d]--;
    else if (borrowed)
        m->on[d][0]--;
    else if (strays[d])
        strays[d]--, m->on[d][r]--;
    else
        m->on[d][d]--;
}

static void recall_all(struct model *m, uint32_t lender)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->loan[lender][i] > m->due[lender][i])
            m->rest[lender][i] = m->l->lending.hold;
        m->due[lender][i] = m->loan[lender][i];
    }
}

static uint32_t waiting_in(const struct model *m, uint32_t d)
{
    int64_t n = m->queued[d] - m->promised[d];

    return n > 0 ? (uint32_t)n : 0;
}

static uint64_t places_used(const struct model *m, uint32_t d)
{
    uint64_t n = waiting_in(m, d);

    for (uint32_t i = 1; d == 0 && i < m->count; i++)
        if (m->l->share[i].places_reserved && waiting_in(m, i) > m->places_at[i])
            n += waiting_in(m, i) - m->places_at[i];
    return n;
}

static uint32_t keep_free(const struct model *m, uint32_t d)
{
    return (m->l->share[d].slots.amount * m->l->lending.headroom + 99) / 100;
}

/* One unit back home for a domain that is being restored. */
static bool restore_one(struct model *m, uint32_t d)
{
    uint32_t r;

    if (m->released[d] || m->receiver[d] < 0)
        return false;
    r = (uint32_t)m->receiver[d];
    if (m->forced[d] && (strays[d] || idle(m, r))) {
        if (strays[d])
            strays[d]--, m->on[d][r]--, m->on[d][d]++;
        m->at[r]--;
        m->at[d]++;
        m->forced[d]--;
        return true;
    }
    if (m->places_forced[d] && m->places_at[r] > places_used(m, r)) {
        m->places_at[r]--;
        m->places_at[d]++;
        m->places_forced[d]--;
        return true;
    }
    if (m->forced[d] && lent_by(m, r)) {
        uint32_t before = 0, after = 0;
        for (uint32_t i = 0; i < m->count; i++)
            before += m->due[r][i];
        recall_all(m, r);
        for (uint32_t i = 0; i < m->count; i++)
            after += m->due[r][i];
        return after != before;
    }
    if (!m->forced[d] && !m->places_forced[d])
        m->receiver[d] = -1;
    return false;
}

static bool step_recalls(struct model *m)
{
    for (uint32_t d = 0; d < m->count; d++)
        if (restore_one(m, d))
            return true;
    for (uint32_t d = 0; d < m->count; d++)
        for (uint32_t i = 0; i < m->count; i++)
            if (m->due[d][i] && idle(m, i)) {
                m->due[d][i]--;
                m->loan[d][i]--;
                m->at[i]--;
                m->at[d]++;
                return true;
            }
    return false;
}

/* The first rule that applies; false: none does. Recalled units leave before anybody is given any. */
static bool model_step(struct model *m)
{
    for (uint32_t d = 0; d < m->count; d++)
        if (m->promised[d] > (m->released[d] ? 0 : m->want[d])) {
            m->promised[d]--;
            leave(m, d);
            return true;
        }
    if (step_recalls(m))
        return true;
    for (uint32_t d = 1; d < m->count; d++) { /* home */
        uint32_t r = m->receiver[d] < 0 ? 0 : (uint32_t)m->receiver[d];
        if ((strays[d] || m->on[d][0]) && idle(m, d)) {
            if (strays[d])
                strays[d]--, m->on[d][r]--;
            else
                m->on[d][0]--;
            m->on[d][d]++;
            return true;
        }
    }
    for (uint32_t d = 0; d < m->count; d++)
        if (waits(m, d) && idle(m, d)) {
            m->on[d][d]++;
            m->promised[d]++;
            return true;
        }
    for (uint32_t i = m->turn_left ? 0 : 1; i <= m->count; i++) {
        uint32_t d = (m->turn + i) % m->count;
        if (waits(m, d) && can_borrow(m, d)) {
            m->turn = d;
            m->turn_left = 0; /* all weights are 1 */
            m->on[d][0]++;
            m->promised[d]++;
            return true;
        }
    }
    for (uint32_t d = 0; d < m->count; d++) {
        uint32_t due = 0;
        for (uint32_t i = 0; i < m->count; i++)
            due += m->due[d][i];
        if (lent_by(m, d) > due && (waits(m, d) || idle(m, d) < keep_free(m, d))) {
            recall_all(m, d);
            return true;
        }
    }
    return false;
}

static void model_settle(struct model *m)
{
    while (model_step(m))
        ;
}

/* ---- both side by side -------------------------------------------------------------------------- */

static uint64_t luck;

static uint32_t pick(uint32_t below)
{
    luck ^= luck << 13;
    luck ^= luck >> 7;
    luck ^= luck << 17;
    return (uint32_t)((luck >> 11) % below);
}

struct run {
    struct books b;
    struct model m;
    uint32_t running[D]; /* tasks that were taken and not given back */
    uint32_t unready[D]; /* queued tasks whose group keeps them      */
};

#define AGREE(a, b)                                                                         \
    do {                                                                                    \
        if ((uint64_t)(a) != (uint64_t)(b))                                                 \
            fail_msg("seed %llu: %s is %llu, but %s is %llu", (unsigned long long)seed, #a, \
                     (unsigned long long)(a), #b, (unsigned long long)(b));                 \
    } while (0)

static void compare(const struct run *r, uint64_t seed)
{
    uint64_t limits = 0, granted = 0;

    for (uint32_t d = 0; d < r->m.count; d++) {
        const struct wr_share *s = &r->b.share[d];
        AGREE(s->slots.limit, r->m.at[d]);
        AGREE(s->own, r->m.on[d][d]);
        AGREE(s->strays, strays[d]);
        AGREE(s->promised, r->m.promised[d]);
        AGREE(s->slots.lent, lent_by(&r->m, d));
        AGREE(s->slots.taken, taken_by(&r->m, d));
        AGREE(s->slots.due, due_by(&r->m, d));
        AGREE(s->slots.forced, r->m.forced[d]);
        AGREE(s->places.limit, r->m.places_at[d]);
        AGREE(used(&r->b, d), r->running[d] + s->promised); /* D9: one return per grant */
        limits += s->slots.limit;
        granted += used(&r->b, d);
    }
    AGREE(limits, r->b.l.total); /* D3 */
    if (granted > r->b.l.total || !wr_ledger_is_valid(&r->b.l))
        fail_msg("seed %llu: the ledger is not valid", (unsigned long long)seed);
}

static void run_init(struct run *r)
{
    uint32_t count = 2 + pick(D - 1), total = 1 + pick(12), places = pick(14), left = total,
             places_left = places;
    struct given given[D] = { { 0 } };

    memset(r, 0, sizeof(*r));
    memset(strays, 0, sizeof(strays));
    for (uint32_t d = 1; d < count; d++) {
        given[d].slots = pick(left + 1);
        given[d].places = pick(places_left + 1);
        left -= given[d].slots;
        places_left -= given[d].places;
        given[d].slots_reserved = pick(2);
        given[d].places_reserved = pick(2);
        given[d].lend_max = pick(given[d].slots + 1);
    }
    given[0].lend_max = pick(3) ? 0 : pick(left + 1);
    books_init(&r->b, total, places, count, given);
    r->b.l.floor = pick(3) ? 0 : pick(left + 1);
    r->b.l.lending.hold = 1 + pick(3);
    r->b.l.lending.headroom = pick(2) ? 0 : 25;
    r->b.l.lending.step = pick(2) ? WR_INF : 1 + pick(3);
    r->m = (struct model){ .count = count, .floor = r->b.l.floor, .l = &r->b.l, .turn_left = 1 };
    for (uint32_t d = 0; d < count; d++) {
        r->m.at[d] = r->b.share[d].slots.limit;
        r->m.places_at[d] = r->b.share[d].places.limit;
        r->m.receiver[d] = -1;
    }
}

static void do_admit(struct run *r, uint32_t d, uint64_t seed)
{
    struct model *m = &r->m;
    bool ready = pick(4) > 0;
    uint32_t before = waiting_in(m, d);
    weir_reason reason = WEIR_REASON_NONE, got = wr_ledger_admit(&r->b.l, d, ready);
    bool borrows;

    if (m->released[d]) {
        AGREE(got, WEIR_REASON_DOMAIN_RELEASED);
        return;
    }
    m->queued[d]++;
    m->want[d] += ready;
    model_settle(m);
    borrows = m->l->share[d].places_reserved && waiting_in(m, d) > m->places_at[d];
    if (waiting_in(m, d) > before &&
        places_used(m, borrows ? 0 : d) > m->places_at[borrows ? 0 : d]) {
        reason = WEIR_REASON_DOMAIN_QUEUE_FULL;
        m->queued[d]--;
        m->want[d] -= ready;
        model_settle(m);
    } else {
        r->unready[d] += !ready;
    }
    AGREE(got, reason); /* D6 */
}

static void model_sample(struct model *m)
{
    for (uint32_t d = 0; d < m->count; d++) {
        uint32_t busy = m->at[d] - idle(m, d);
        bool low = m->at[d] && busy * 100 / m->at[d] < m->l->lending.low && !waits(m, d) &&
                   !waiting_in(m, d);
        m->low[d] = low ? m->low[d] + 1 : 0;
    }
    for (uint32_t b = 0; b < m->count; b++) {
        uint32_t best = 0, from = 0, busy = m->at[b] - idle(m, b),
                 units = m->want[b] - m->promised[b];
        if (!waits(m, b) || (m->at[b] && busy * 100 / m->at[b] < m->l->lending.high) ||
            lent_by(m, b) || m->forced[b])
            continue;
        for (uint32_t d = 0; d < m->count; d++) {
            uint32_t keep = keep_free(m, d) + (d ? 0 : m->floor), can = idle(m, d);
            uint32_t may = m->l->share[d].slots.lend_max;
            can = can > keep ? can - keep : 0;
            may = may > lent_by(m, d) ? may - lent_by(m, d) : 0;
            can = can < may ? can : may;
            if (d == b || m->released[d] || m->forced[d] || taken_by(m, d) ||
                m->low[d] < m->l->lending.hold || m->rest[d][b])
                can = 0;
            if (can > best)
                best = can, from = d;
        }
        units = units < best ? units : best;
        units = units < m->l->lending.step ? units : m->l->lending.step;
        m->loan[from][b] += units;
        m->at[from] -= units;
        m->at[b] += units;
    }
    for (uint32_t i = 0; i < m->count; i++)
        for (uint32_t j = 0; j < m->count; j++)
            m->rest[i][j] -= m->rest[i][j] > 0;
    model_settle(m);
}

static void model_release(struct model *m, uint32_t d, uint32_t r)
{
    uint32_t gone;

    m->released[d] = true;
    m->receiver[d] = (int)r;
    while (m->promised[d])
        m->promised[d]--, leave(m, d);
    for (uint32_t i = 0; i < m->count;
         i++) { /* loans out are the receiver's now; all are recalled */
        uint32_t out = m->loan[d][i];
        if (i != d && m->loan[i][d] > m->due[i][d])
            m->rest[i][d] = m->l->lending.hold, m->due[i][d] = m->loan[i][d];
        m->forced[d] += out;
        if (i != r && out) {
            if (m->loan[r][i] + out > m->due[r][i] + m->due[d][i])
                m->rest[r][i] = m->l->lending.hold;
            m->loan[r][i] += out;
            m->due[r][i] = m->loan[r][i];
        }
        m->loan[d][i] = m->due[d][i] = 0;
    }
    gone = m->at[d] - taken_by(m, d);
    m->at[d] -= gone;
    m->at[r] += gone;
    m->forced[d] += gone;
    while (m->on[d][d] > m->at[d])
        m->on[d][d]--, m->on[d][r]++, strays[d]++;
    m->places_forced[d] = m->places_at[d];
    m->places_at[r] += m->places_at[d];
    m->places_at[d] = 0;
    model_settle(m);
}

static void do_release(struct run *r, uint32_t d)
{
    uint32_t to = pick(r->m.count);

    if (r->m.released[d]) {
        wr_ledger_restore(&r->b.l, d);
        r->m.released[d] = false;
        model_settle(&r->m);
    } else if (wr_ledger_can_release(&r->b.l, d, to)) {
        wr_ledger_release(&r->b.l, d, to);
        model_release(&r->m, d, to);
        while (r->m.queued[d]) { /* the executor refuses what waits there */
            bool ready = r->m.queued[d] > r->unready[d];
            wr_ledger_withdraw(&r->b.l, d);
            r->m.queued[d]--;
            r->unready[d] -= !ready;
            if (ready) {
                wr_ledger_want(&r->b.l, d, -1);
                r->m.want[d]--;
            }
            model_settle(&r->m);
        }
    }
}

static void do_step(struct run *r, uint64_t seed)
{
    uint32_t d = pick(r->m.count);
    struct model *m = &r->m;

    switch (pick(12)) {
    case 0:
    case 1:
    case 2:
        do_admit(r, d, seed);
        return;
    case 3:
    case 4:
    case 5:
        if (m->promised[d]) {
            wr_ledger_take(&r->b.l, d);
            m->promised[d]--;
            m->want[d]--;
            m->queued[d]--;
            r->running[d]++;
        }
        return;
    case 6:
    case 7:
        if (r->running[d]) {
            wr_ledger_give(&r->b.l, d);
            r->running[d]--;
            leave(m, d);
        }
        break;
    case 8: /* a group is paused, or resumed */
        if (m->want[d] && pick(2)) {
            wr_ledger_want(&r->b.l, d, -1);
            m->want[d]--;
            r->unready[d]++;
        } else if (r->unready[d]) {
            wr_ledger_want(&r->b.l, d, 1);
            m->want[d]++;
            r->unready[d]--;
        }
        break;
    case 9: /* one that its group keeps is cancelled; or a started one is put back, or hands over */
        if (r->unready[d] && pick(2)) {
            wr_ledger_withdraw(&r->b.l, d);
            m->queued[d]--;
            r->unready[d]--;
        } else if (r->running[d] && pick(2)) {
            wr_ledger_untake(&r->b.l, d);
            m->queued[d]++;
            r->running[d]--;
            r->unready[d]++;
            leave(m, d);
        } else if (r->running[d] && r->unready[d] && wr_ledger_hand_over(&r->b.l, d)) {
            m->queued[d]--;
            r->unready[d]--;
        }
        break;
    case 10:
        wr_ledger_sample(&r->b.l);
        model_sample(m);
        return;
    default:
        if (d && pick(2))
            do_release(r, d);
        return;
    }
    model_settle(m);
}

/* D7: everything ends, is restored, and the books are as in the beginning. */
static void wind_up(struct run *r, uint64_t seed)
{
    struct wr_ledger *l = &r->b.l;

    for (uint32_t d = 1; d < l->count; d++)
        if (r->b.share[d].released)
            wr_ledger_restore(l, d);
    for (uint32_t d = 0; d < l->count; d++) {
        while (r->running[d]--)
            wr_ledger_give(l, d);
        while (r->b.share[d].queued > 0) {
            wr_ledger_withdraw(l, d);
            if (r->b.share[d].want)
                wr_ledger_want(l, d, -1);
        }
    }
    for (uint32_t d = 0; d < l->count; d++) {
        AGREE(used(&r->b, d), 0);
        AGREE(r->b.share[d].charged, 0);
        AGREE(r->b.share[d].slots.forced, 0);
        AGREE(r->b.share[d].slots.due, 0);
        AGREE(r->b.share[d].places.limit, r->b.share[d].places.amount);
        AGREE(r->b.share[d].slots.limit + r->b.share[d].slots.lent,
              r->b.share[d].slots.amount + r->b.share[d].slots.taken);
    }
}

static void test_random_schedules_agree_with_the_model(void **state)
{
    enum { SCHEDULES = 100000, STEPS = 40 };
    static struct run r;
    const char *only = getenv("WEIR_SEED");
    uint64_t from = only ? strtoull(only, NULL, 10) : 1, to = only ? from : SCHEDULES;
    (void)state;

    for (uint64_t seed = from; seed <= to; seed++) {
        luck = seed * 0x9E3779B97F4A7C15u;
        run_init(&r);
        for (int i = 0; i < STEPS; i++) {
            do_step(&r, seed);
            compare(&r, seed);
        }
        wind_up(&r, seed);
    }
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
        cmocka_unit_test(test_what_cannot_be_released),
        cmocka_unit_test(test_promises_that_nobody_needs_go_to_others),
        cmocka_unit_test(test_random_schedules_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
