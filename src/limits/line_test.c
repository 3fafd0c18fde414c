/* Lines: each rule by itself, then random steps beside an array that does the same, then several threads.
 * SPDX-License-Identifier: MIT */
#include "limits/line.h"

#include "support/sanitized.h"
#include "support/seed.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PLACE = 3, STANDS = 9, STEPS = 100000, THREADS = 4, TIMES = SANITIZED ? 5000 : 20000 };

struct world {
    struct wr_line line;
    struct wr_root root;
    struct wr_stand stand[STANDS]; /* each in the part after that of the one before */
    uint32_t reserved;
    _Atomic uint64_t set;
};

static void world_init(struct world *w, uint8_t parts, bool has_set)
{
    *w = (struct world){ .root = { .inflight_max = WR_INF, .queue_max = WR_INF } };
    wr_line_init(&w->line, PLACE, parts, has_set ? &w->set : NULL, 4);
    for (uint32_t i = 0; i < STANDS; i++) {
        wr_stand_init(&w->stand[i], i);
        atomic_store(&w->stand[i].needs, 1);
    }
}

static bool enter(struct world *w, int i)
{
    return wr_line_enter(&w->line, &w->stand[i], false);
}

static int number_of(const struct world *w, const struct wr_stand *stand)
{
    return stand ? (int)(stand - w->stand) : -1;
}

/* -1: no stand can be taken. */
static int pull(struct world *w)
{
    return number_of(w, wr_line_pull(&w->line, &w->root, &w->reserved, NULL, NULL));
}

static void decided(struct world *w, int i)
{
    wr_line_decided(&w->line, &w->stand[i]);
}

/* The stand leaves for good. */
static void expect(struct world *w, int i)
{
    assert_int_equal(pull(w), i);
    decided(w, i);
}

static void expect_nothing_left(struct world *w)
{
    assert_int_equal(pull(w), -1);
    assert_int_equal(wr_line_count(&w->line), 0);
    assert_false(wr_line_has_stands(&w->line));
    assert_true(wr_line_is_valid(&w->line));
}

static void set_weight(struct world *w, int i, uint16_t weight, uint16_t left)
{
    atomic_store(&w->stand[i].weight, weight);
    w->stand[i].turn_left = left;
}

/* ---- order -------------------------------------------------------------------------------------- */

static void test_all_parts_are_one_line(void **state)
{
    static const int order[STANDS] = { 5, 1, 8, 0, 4, 2, 7, 3, 6 };
    struct world w;

    (void)state;
    for (uint8_t parts = 1; parts <= WR_PARTS; parts += WR_PARTS - 1) {
        world_init(&w, parts, false);
        for (int i = 0; i < STANDS; i++)
            assert_false(enter(&w, order[i]));
        assert_true(wr_line_is_valid(&w.line));
        for (int i = 0; i < STANDS; i++)
            expect(&w, order[i]);
        expect_nothing_left(&w);
    }
}

static void test_interrupted_turn_goes_first(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    enter(&w, 0);
    enter(&w, 1);
    set_weight(&w, 2, 3, 2);
    assert_true(enter(&w, 2)); /* of another part than the first */
    assert_int_equal(w.stand[2].turn_left, 2);
    set_weight(&w, 3, 3, 3); /* it has not begun */
    assert_false(enter(&w, 3));
    expect(&w, 2);
    expect(&w, 0);
    expect(&w, 1);
    expect(&w, 3);
    expect_nothing_left(&w);
}

static void test_a_stand_that_goes_ahead_goes_before_all(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    for (int i = 0; i < 6; i++) /* also into a line without any, and over all parts */
        assert_true(wr_line_enter(&w.line, &w.stand[i], true));
    enter(&w, 6);
    for (int i = 5; i >= 0; i--)
        expect(&w, i);
    expect(&w, 6);
    expect_nothing_left(&w);
}

static void test_line_begins_the_turn_of_a_stand_that_has_none(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    set_weight(&w, 0, 5, 0);
    assert_false(enter(&w, 0));
    assert_int_equal(w.stand[0].turn_left, 5);
}

static void test_turn_that_is_over_goes_to_the_end(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    for (int i = 0; i < 3; i++)
        enter(&w, i);
    set_weight(&w, 0, 4, 1);
    wr_line_to_end(&w.line, &w.stand[0]);
    assert_int_equal(w.stand[0].turn_left, 4);
    assert_int_equal(wr_line_count(&w.line), 3);
    assert_int_equal(pull(&w), 1);
    w.stand[1].turn_left = 0;
    wr_line_to_end(&w.line, &w.stand[1]); /* the thread that has it in hands decides */
    assert_int_equal(w.stand[1].turn_left, 0);
    decided(&w, 1);
    expect(&w, 2);
    expect(&w, 0);
    expect_nothing_left(&w);
}

static void test_tickets_wrap_around(void **state)
{
    struct world w;

    (void)state;
    for (uint32_t before = 0; before < 8; before++) {
        world_init(&w, WR_PARTS, false);
        atomic_store(&w.line.tickets, (uint32_t)0 - before);
        for (int i = 0; i < 7; i++)
            enter(&w, i);
        assert_true(wr_line_enter(&w.line, &w.stand[7], true)); /* before 0 comes the highest */
        assert_true(wr_line_enter(&w.line, &w.stand[8], true));
        expect(&w, 8);
        expect(&w, 7);
        for (int i = 0; i < 7; i++)
            expect(&w, i);
        expect_nothing_left(&w);
    }
}

/* ---- in hands ------------------------------------------------------------------------------------ */

static void test_a_stand_in_hands_is_not_in_line(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    enter(&w, 0);
    enter(&w, 1);
    assert_int_equal(pull(&w), 0);
    assert_int_equal(atomic_load(&w.stand[0].place), PLACE | WR_IN_HANDS);
    assert_int_equal(wr_line_count(&w.line), 1);
    assert_int_equal(pull(&w), 1);
    assert_false(wr_line_has_stands(&w.line));
    assert_int_equal(wr_line_count(&w.line), 0);
    w.stand[0].part = 3; /* it may come back by another part than it left by */
    enter(&w, 0);
    decided(&w, 0);
    assert_int_equal(wr_line_count(&w.line), 1);
    assert_int_equal(pull(&w), 0);
    decided(&w, 0);
    wr_line_return(&w.line, &w.stand[1], 0);
    assert_int_equal(wr_line_count(&w.line), 1);
    assert_int_equal(atomic_load(&w.stand[1].place), PLACE);
    expect(&w, 1);
    expect_nothing_left(&w);
}

static void test_only_a_stand_in_line_can_be_removed(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    for (int i = 0; i < 3; i++)
        enter(&w, i);
    assert_true(wr_line_remove(&w.line, &w.stand[1]));
    assert_int_equal(atomic_load(&w.stand[1].place), 0);
    assert_int_equal(wr_line_count(&w.line), 2);
    assert_int_equal(pull(&w), 0);
    assert_false(wr_line_remove(&w.line, &w.stand[0]));
    decided(&w, 0);
    expect(&w, 2);
    expect_nothing_left(&w);
}

static void test_weight_above_1_in_hands_goes_before_others(void **state)
{
    struct world w;

    (void)state;
    for (uint8_t parts = 1; parts <= WR_PARTS; parts += WR_PARTS - 1) {
        world_init(&w, parts, false);
        set_weight(&w, 1, 3, 0);
        for (int i = 1; i < 4; i++)
            enter(&w, i);
        for (int left = 2; left >= 0; left--) {
            assert_int_equal(pull(&w), 1);
            assert_int_equal(pull(&w), -1); /* its turn may go on */
            w.stand[1].turn_left = (uint16_t)left;
            assert_int_equal(enter(&w, 1), left > 0);
            assert_int_equal(pull(&w), -1);
            decided(&w, 1);
        }
        expect(&w, 2);
        expect(&w, 3);
        expect(&w, 1);
        expect_nothing_left(&w);
    }
}

static void test_weight_above_1_holds_no_stand_up_once_it_is_back(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    set_weight(&w, 0, 2, 0);
    enter(&w, 0);
    enter(&w, 1);
    assert_int_equal(pull(&w), 0);
    assert_true(wr_line_enter(&w.line, &w.stand[2], true));
    assert_int_equal(pull(&w), -1); /* nor the one that came before it meanwhile */
    wr_line_return(&w.line, &w.stand[0], 0);
    expect(&w, 0);
    expect(&w, 2);
    expect(&w, 1);
    expect_nothing_left(&w);
}

static void test_no_stand_waits_for_ever_for_one_in_hands(void **state)
{
    struct world w;
    int looks = 0, next;

    (void)state;
    world_init(&w, WR_PARTS, false);
    set_weight(&w, 0, 2, 0);
    enter(&w, 0);
    enter(&w, 1);
    assert_int_equal(pull(&w), 0);
    while ((next = pull(&w)) < 0)
        looks++;
    assert_int_equal(next, 1);
    assert_in_range(looks, 1000, 100000);
    decided(&w, 1);
    decided(&w, 0);
    expect_nothing_left(&w);
}

static void test_line_in_one_part_is_served_under_its_lock(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 1, false);
    wr_lock(&w.line.part->lock);
    assert_null(wr_line_take(&w.line));
    set_weight(&w, 7, 2, 0);
    wr_line_add(&w.line, &w.stand[7], false);
    wr_line_add(&w.line, &w.stand[2], false);
    wr_line_add(&w.line, &w.stand[3], false);
    assert_true(wr_line_drop(&w.line, &w.stand[3]));
    assert_int_equal(number_of(&w, wr_line_take(&w.line)), 7);
    assert_null(wr_line_take(&w.line));
    decided(&w, 7);
    assert_int_equal(number_of(&w, wr_line_take(&w.line)), 2);
    decided(&w, 2);
    wr_unlock(&w.line.part->lock);
    expect_nothing_left(&w);
}

/* ---- permits ------------------------------------------------------------------------------------ */

static uint32_t needed(struct world *w)
{
    return atomic_load(&w->line.needed);
}

/* 0 is first, and is refused 3 permits of 2; 1 stands behind it and needs one. */
static void refuse_first(struct world *w)
{
    world_init(w, WR_PARTS, false);
    atomic_store(&w->root.inflight_max, 2);
    atomic_store(&w->stand[0].needs, 3);
    enter(w, 0);
    enter(w, 1);
    assert_int_equal(pull(w), -1);
    assert_int_equal(needed(w), 3);
}

static void test_a_stand_refused_permits_is_not_overtaken(void **state)
{
    struct world w;

    (void)state;
    refuse_first(&w);
    assert_int_equal(wr_line_first_cost(&w.line, false), 3);
    assert_int_equal(atomic_load(&w.root.held), 0);
    enter(&w, 2);
    assert_int_equal(pull(&w), -1);
    assert_int_equal(needed(&w), 3); /* a stand that comes last changes nothing */
    atomic_store(&w.root.inflight_max, 3);
    assert_int_equal(pull(&w), 0);
    assert_int_equal(w.reserved, 3);
    assert_int_equal(atomic_load(&w.root.held), 3);
    assert_int_equal(needed(&w), 0);
    decided(&w, 0);
    expect(&w, 1); /* what is reserved is used */
    assert_int_equal(w.reserved, 3);
}

static void test_another_first_is_asked_about_anew(void **state)
{
    struct world w;

    (void)state;
    refuse_first(&w);
    assert_true(wr_line_enter(&w.line, &w.stand[2], true));
    assert_int_equal(needed(&w), 0);
    expect(&w, 2);
    refuse_first(&w);
    assert_true(wr_line_remove(&w.line, &w.stand[0]));
    assert_int_equal(needed(&w), 0);
    expect(&w, 1);
    refuse_first(&w);
    wr_line_to_end(&w.line, &w.stand[0]);
    assert_int_equal(needed(&w), 0);
    expect(&w, 1);
    refuse_first(&w);
    atomic_store(&w.stand[0].needs, 2);
    wr_line_ask_again(&w.line, &w.stand[0]);
    assert_int_equal(needed(&w), 0);
    expect(&w, 0);
}

static void test_a_stand_that_returns_says_what_it_needs(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    enter(&w, 0);
    enter(&w, 1);
    assert_int_equal(pull(&w), 0);
    wr_line_return(&w.line, &w.stand[0], 7);
    assert_int_equal(needed(&w), 7);
    expect(&w, 0);
    expect(&w, 1);
    expect_nothing_left(&w);
}

static void test_first_cost_is_shown_without_the_notes_beside_it(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    assert_int_equal(wr_line_first_cost(&w.line, false), 0);
    atomic_store(&w.stand[2].needs, 5 | WR_OWNERS);
    enter(&w, 2);
    assert_int_equal(wr_line_first_cost(&w.line, true), 5);
    atomic_store(&w.stand[2].needs, WR_COST_MAX | WR_TIMED);
    assert_int_equal(wr_line_first_cost(&w.line, false), WR_COST_MAX);
    assert_int_equal(wr_line_first_cost(&w.line, true), 0); /* it will not wait for ever */
}

/* ---- grants ------------------------------------------------------------------------------------- */

static bool refuse(struct wr_stand *stand, void *arg)
{
    (void)stand;
    (void)arg;
    return false;
}

static bool drop(struct wr_stand *stand, void *line)
{
    assert_true(wr_line_drop(line, stand));
    atomic_store(&stand->place, PLACE + 1);
    return true;
}

static void test_first_stays_if_it_is_not_granted(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    atomic_store(&w.root.inflight_max, 5);
    enter(&w, 3);
    assert_null(wr_line_pull(&w.line, &w.root, &w.reserved, refuse, NULL));
    assert_int_equal(w.reserved, 1); /* the caller's */
    assert_int_equal(needed(&w), 0);
    expect(&w, 3);
    expect_nothing_left(&w);
}

static void test_a_stand_the_grant_drops_is_in_no_hands(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, WR_PARTS, false);
    enter(&w, 3);
    enter(&w, 1);
    assert_ptr_equal(wr_line_pull(&w.line, &w.root, &w.reserved, drop, &w.line), &w.stand[3]);
    assert_int_equal(atomic_load(&w.stand[3].place), PLACE + 1);
    assert_int_equal(wr_line_count(&w.line), 1);
    expect(&w, 1);
    expect_nothing_left(&w);
}

/* ---- the set ------------------------------------------------------------------------------------ */

static void test_set_has_the_bit_while_there_are_stands(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, 1, true);
    atomic_store(&w.set, 3); /* bits of others */
    enter(&w, 0);
    assert_int_equal(atomic_load(&w.set), 7);
    enter(&w, 1);
    wr_line_to_end(&w.line, &w.stand[0]);
    assert_int_equal(atomic_load(&w.set), 7);
    assert_int_equal(pull(&w), 1);
    assert_int_equal(atomic_load(&w.set), 7);
    wr_line_to_end(&w.line, &w.stand[0]); /* the only one */
    assert_int_equal(atomic_load(&w.set), 7);
    assert_true(wr_line_remove(&w.line, &w.stand[0]));
    assert_int_equal(atomic_load(&w.set), 3); /* also while one is in hands */
    wr_line_return(&w.line, &w.stand[1], 0);
    assert_int_equal(atomic_load(&w.set), 7);
    expect(&w, 1);
    assert_int_equal(atomic_load(&w.set), 3);
    expect_nothing_left(&w);
}

/* ---- beside an array ----------------------------------------------------------------------------- */

struct model {
    struct world w;
    int order[STANDS], count; /* those in line                       */
    bool in[STANDS];          /* in line, or in hands                */
};

static void model_put(struct model *m, int i, bool first)
{
    int at = first ? 0 : m->count;

    memmove(&m->order[at + 1], &m->order[at], (size_t)(m->count - at) * sizeof(m->order[0]));
    m->order[at] = i;
    m->count++;
    m->in[i] = true;
}

static void model_take(struct model *m, int i)
{
    int at = 0;

    while (m->order[at] != i)
        at++;
    m->count--;
    memmove(&m->order[at], &m->order[at + 1], (size_t)(m->count - at) * sizeof(m->order[0]));
    m->in[i] = false;
}

/* The first is taken, and returns, or leaves. */
static void serve(struct model *m, struct luck *luck)
{
    int i = pull(&m->w);

    assert_int_equal(i, m->count ? m->order[0] : -1);
    if (i < 0)
        return;
    if (luck_below(luck, 3) == 0) {
        wr_line_return(&m->w.line, &m->w.stand[i], 0);
        return;
    }
    model_take(m, i);
    decided(&m->w, i);
    atomic_store(&m->w.stand[i].place, 0);
}

static void move(struct model *m, int i, struct luck *luck)
{
    bool ahead = luck_below(luck, 3) == 0;

    if (!m->in[i]) {
        m->w.stand[i].part = (uint8_t)luck_below(luck, WR_PARTS);
        assert_int_equal(wr_line_enter(&m->w.line, &m->w.stand[i], ahead), ahead);
        model_put(m, i, ahead);
    } else if (luck_below(luck, 2)) {
        wr_line_to_end(&m->w.line, &m->w.stand[i]);
        model_take(m, i);
        model_put(m, i, false);
    } else {
        assert_true(wr_line_remove(&m->w.line, &m->w.stand[i]));
        model_take(m, i);
    }
}

static void test_order_holds_whatever_comes_and_leaves(void **state)
{
    struct luck luck = luck_of(1);
    struct model m = { .count = 0 };

    (void)state;
    for (uint8_t parts = 1; parts <= WR_PARTS; parts += WR_PARTS - 1) {
        m.count = 0;
        memset(m.in, 0, sizeof(m.in));
        world_init(&m.w, parts, parts == 1);
        atomic_store(&m.w.line.tickets, (uint32_t)0 - STEPS / 4);
        for (int step = 0; step < STEPS; step++) {
            if (luck_below(&luck, 3) == 0)
                serve(&m, &luck);
            else
                move(&m, (int)luck_below(&luck, STANDS), &luck);
            assert_int_equal(wr_line_count(&m.w.line), m.count);
            assert_int_equal(wr_line_has_stands(&m.w.line), m.count > 0);
            assert_int_equal(atomic_load(&m.w.set), parts == 1 && m.count ? 4 : 0);
        }
        assert_true(wr_line_is_valid(&m.w.line));
    }
}

/* ---- several threads ----------------------------------------------------------------------------- */

struct crowd {
    struct world w;
    struct wr_lock lock[STANDS]; /* the owners' */
    uint32_t served[STANDS];     /* under these */
};

/* Under its owner's lock: it goes on, ends its turn, returns, or comes again as if it had left. */
static void decide(struct crowd *c, int i, struct luck *luck)
{
    struct wr_stand *stand = &c->w.stand[i];

    c->served[i]++;
    if (luck_below(luck, 4) == 0) {
        wr_line_return(&c->w.line, stand, 0);
        return;
    }
    stand->turn_left -= stand->turn_left > 0;
    atomic_store(&stand->place, 0);
    wr_line_enter(&c->w.line, stand, luck_below(luck, 8) == 0);
    wr_line_decided(&c->w.line, stand);
}

static void disturb(struct crowd *c, int i)
{
    struct wr_stand *stand = &c->w.stand[i];

    wr_lock(&c->lock[i]);
    wr_line_to_end(&c->w.line, stand);
    if (wr_line_remove(&c->w.line, stand))
        wr_line_enter(&c->w.line, stand, false);
    wr_unlock(&c->lock[i]);
}

static void *serve_crowd(void *arg)
{
    static _Atomic uint64_t threads;
    struct luck luck = luck_of(10 + atomic_fetch_add(&threads, 1));
    struct crowd *c = arg;
    uint32_t reserved = 0;

    for (int n = 0; n < TIMES; n++) {
        struct wr_stand *stand = wr_line_pull(&c->w.line, &c->w.root, &reserved, NULL, NULL);
        int i = number_of(&c->w, stand);
        if (stand) {
            wr_lock(&c->lock[i]);
            decide(c, i, &luck);
            wr_unlock(&c->lock[i]);
        }
        if (luck_below(&luck, 16) == 0)
            disturb(c, (int)luck_below(&luck, STANDS));
    }
    wr_unreserve(&c->w.root, &reserved);
    return NULL;
}

static void test_threads_lose_no_stand(void **state)
{
    struct crowd c;
    pthread_t thread[THREADS];

    (void)state;
    memset(&c, 0, sizeof(c));
    world_init(&c.w, WR_PARTS, false);
    for (int i = 0; i < STANDS; i++) {
        atomic_store(&c.w.stand[i].weight, i % 3 ? 1 : 3);
        enter(&c.w, i);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, serve_crowd, &c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_true(wr_line_is_valid(&c.w.line));
    assert_int_equal(wr_line_count(&c.w.line), STANDS);
    assert_null(atomic_load(&c.w.line.deciding));
    for (int i = 0; i < STANDS; i++) {
        int next = pull(&c.w);
        assert_true(next >= 0);
        assert_true(c.served[next] > 0);
        decided(&c.w, next);
    }
    expect_nothing_left(&c.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_parts_are_one_line),
        cmocka_unit_test(test_interrupted_turn_goes_first),
        cmocka_unit_test(test_a_stand_that_goes_ahead_goes_before_all),
        cmocka_unit_test(test_line_begins_the_turn_of_a_stand_that_has_none),
        cmocka_unit_test(test_turn_that_is_over_goes_to_the_end),
        cmocka_unit_test(test_tickets_wrap_around),
        cmocka_unit_test(test_a_stand_in_hands_is_not_in_line),
        cmocka_unit_test(test_only_a_stand_in_line_can_be_removed),
        cmocka_unit_test(test_weight_above_1_in_hands_goes_before_others),
        cmocka_unit_test(test_weight_above_1_holds_no_stand_up_once_it_is_back),
        cmocka_unit_test(test_no_stand_waits_for_ever_for_one_in_hands),
        cmocka_unit_test(test_line_in_one_part_is_served_under_its_lock),
        cmocka_unit_test(test_a_stand_refused_permits_is_not_overtaken),
        cmocka_unit_test(test_another_first_is_asked_about_anew),
        cmocka_unit_test(test_a_stand_that_returns_says_what_it_needs),
        cmocka_unit_test(test_first_cost_is_shown_without_the_notes_beside_it),
        cmocka_unit_test(test_first_stays_if_it_is_not_granted),
        cmocka_unit_test(test_a_stand_the_grant_drops_is_in_no_hands),
        cmocka_unit_test(test_set_has_the_bit_while_there_are_stands),
        cmocka_unit_test(test_order_holds_whatever_comes_and_leaves),
        cmocka_unit_test(test_threads_lose_no_stand),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
