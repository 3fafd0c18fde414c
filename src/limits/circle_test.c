/* Circles of waits: the walk of a component against a model that looks at all waits, again and again.
 * SPDX-License-Identifier: MIT */
#include "limits/circle.h"

#include "base/assert.h"

#include "support/check.h"
#include "support/seed.h"

#include <string.h>

enum { NODES = 6, WAITS = 12, STEPS = 60, RUNS = 20000 };

/* The object a wait of the test waits for: another, permits of some nodes, or something that can move. */
struct subject {
    struct wr_wait wait;
    struct wr_outlook outlook;
    struct subject *other;
    int needs;
    int node[2];
    uint32_t permits[2];
    bool in, stuck;
};

static struct wr_node fixed[NODES], *node[NODES];
static uint64_t limit[NODES];
static struct subject subject[WAITS];
static uint64_t numbers;
static int refusals;
static struct wr_wait *last_refused;

static struct subject *subject_of(struct wr_wait *wait)
{
    return WR_CONTAINER(wait, struct subject, wait);
}

static void look(struct wr_wait *wait)
{
    struct subject *s = subject_of(wait);

    if (s->other && s->other->in)
        s->outlook.other = &s->other->wait;
    for (int i = 0; i < s->needs && !s->other; i++)
        /* else it waits for the limit, not for others, or nothing is held of the node */
        if (s->permits[i] <= limit[s->node[i]] && node[s->node[i]])
            wr_outlook_need(&s->outlook, node[s->node[i]], s->permits[i], limit[s->node[i]], "it");
}

static void refuse(struct wr_wait *wait)
{
    refusals++;
    wait->refused = true;
    last_refused = wait;
    subject_of(wait)->stuck = false;
}

/* ---- the model ---------------------------------------------------------------------------------- */

static uint64_t held_by_stuck(int n)
{
    uint64_t sum = 0;

    for (int i = 0; i < WAITS; i++)
        for (uint32_t h = 0; subject[i].in && subject[i].stuck && h < subject[i].wait.holds; h++)
            if (*subject[i].wait.hold[h].node == node[n])
                sum += subject[i].wait.hold[h].permits;
    return sum;
}

static bool model_can_end(const struct subject *s)
{
    if (s->wait.refused)
        return true;
    if (s->other)
        return !s->other->in || !s->other->stuck;
    for (int i = 0; i < s->needs; i++)
        if (s->permits[i] <= limit[s->node[i]] &&
            held_by_stuck(s->node[i]) + s->permits[i] > limit[s->node[i]])
            return false;
    return true;
}

static void model_find_stuck(void)
{
    bool changed = true;

    for (int i = 0; i < WAITS; i++)
        subject[i].stuck = subject[i].in;
    while (changed) {
        changed = false;
        for (int i = 0; i < WAITS; i++)
            if (subject[i].stuck && model_can_end(&subject[i])) {
                subject[i].stuck = false;
                changed = true;
            }
    }
}

/* At rest every node counts all that is held of it. */
static void check_rest(void)
{
    for (int i = 0; i < WAITS; i++)
        subject[i].stuck = subject[i].in;
    for (int n = 0; n < NODES; n++) {
        assert_int_equal(node[n] ? node[n]->stuck : 0, held_by_stuck(n));
        assert_false(node[n] && (node[n]->collected || node[n]->wanted));
    }
    for (int i = 0; i < WAITS; i++)
        assert_false(subject[i].wait.collected || subject[i].wait.ends || subject[i].wait.wanted);
}

/* ---- random lives ------------------------------------------------------------------------------- */

static uint32_t pick(struct luck *luck, uint32_t below)
{
    return (uint32_t)luck_below(luck, below);
}

static void enter(struct luck *luck, struct subject *s)
{
    bool stuck, found;

    memset(s, 0, sizeof(*s));
    s->wait.outlook = &s->outlook;
    s->wait.outlooks = 1;
    s->wait.number = ++numbers;
    s->in = true;
    s->other = pick(luck, 3) ? NULL : &subject[pick(luck, WAITS)];
    s->needs = (int)pick(luck, 3);
    for (int i = 0; i < s->needs; i++) {
        s->node[i] = (int)pick(luck, NODES);
        s->permits[i] = 1 + pick(luck, 2);
    }
    for (uint32_t n = pick(luck, 3); n > 0; n--)
        wr_wait_hold_at(&s->wait, &node[(pick(luck, NODES / 2) * 2 + n) % NODES],
                        1 + pick(luck, 2));
    model_find_stuck();
    stuck = s->stuck;
    found = wr_wait_is_stuck(&s->wait, look, refuse);
    assert_int_equal(found, stuck);
    s->wait.begun = true;
    if (found) {
        wr_wait_let_go(&s->wait);
        s->in = false;
    }
}

/* A limit falls: each node's waits are looked at, and afterwards none is stuck. */
static void lower(struct luck *luck)
{
    int n = (int)pick(luck, NODES);

    limit[n] = limit[n] > 1 ? limit[n] - 1 : 1;
    for (int i = 0; i < NODES; i++)
        if (node[i])
            wr_node_break_circles(node[i], look, refuse);
    model_find_stuck();
    for (int i = 0; i < WAITS; i++)
        if (subject[i].stuck && subject[i].wait.holds)
            fail_msg("a stuck wait was not found");
}

/* A node without a place of its own lies in one of its holds. */
static void check_nodes(void)
{
    for (int n = 0; n < NODES; n++) {
        struct wr_hold *hold = node[n] ? node[n]->holders : NULL;
        while (hold && node[n] != &hold->storage)
            hold = hold->next;
        assert_true(hold || !node[n]);
    }
}

static void nodes_init(void)
{
    memset(fixed, 0, sizeof(fixed));
    for (int n = 0; n < NODES; n++)
        node[n] = &fixed[n];
}

static void one_life(struct luck *luck)
{
    memset(node, 0, sizeof(node));
    memset(subject, 0, sizeof(subject));
    for (int n = 0; n < NODES; n++)
        limit[n] = 1 + pick(luck, 4);
    for (int step = 0; step < STEPS; step++) {
        struct subject *s = &subject[pick(luck, WAITS)];
        if (!s->in) {
            enter(luck, s);
        } else if (pick(luck, 4) == 0) {
            lower(luck);
        } else {
            wr_wait_let_go(&s->wait);
            s->in = false;
        }
        if (pick(luck, 8) == 0) {
            wr_node_move(&node[0], &node[1 + pick(luck, NODES - 1)]);
            assert_null(node[0]);
        }
        check_nodes();
        check_rest();
    }
}

static void test_the_walk_of_a_component_agrees_with_a_look_at_all_waits(void **state)
{
    (void)state;
    for (int run = 0; run < RUNS; run++) {
        struct luck luck = luck_of((uint64_t)run);
        one_life(&luck);
    }
}

/* A wait that holds one permit of its own node and needs one of another's. */
static void make_wait(int i, int holds, int needs)
{
    struct subject *s = &subject[i];

    s->wait.outlook = &s->outlook;
    s->wait.outlooks = 1;
    s->wait.number = ++numbers;
    s->in = s->wait.begun = true;
    s->needs = 1;
    s->node[0] = needs;
    s->permits[0] = 1;
    wr_wait_hold(&s->wait, node[holds], 1);
}

static void test_an_event_refuses_the_youngest_of_the_circle_and_no_bystander(void **state)
{
    (void)state;
    nodes_init();
    memset(subject, 0, sizeof(subject));
    for (int n = 0; n < NODES; n++)
        limit[n] = 1;
    make_wait(0, 0, 1); /* 0 and 1 keep what the other needs */
    make_wait(1, 1, 0);
    make_wait(2, 2, 1); /* and two younger ones wait for them */
    make_wait(3, 3, 2);
    wr_wait_hold(&subject[3].wait, node[4], 0);
    refusals = 0;
    wr_node_break_circles(node[3], look, refuse);
    assert_int_equal(refusals, 1);
    assert_ptr_equal(last_refused, &subject[1].wait);
    check_rest();
}

/* ---- needs that change during a walk ------------------------------------------------------------- */

static int asked;

/* Served only the second time it is asked, unless permits come free. */
static bool served_for_a_moment(const struct wr_need *need)
{
    return need->node->stuck + need->permits <= need->limit || ++asked == 2;
}

static void look_at_moments(struct wr_wait *wait)
{
    if (subject_of(wait)->needs)
        wr_outlook_ask(&subject_of(wait)->outlook, node[0], 1, 1, "it", served_for_a_moment, NULL);
}

/* 0 can end, and has what 1 needs. */
static void test_the_grounds_of_a_need_are_known_before_a_wait_counts_as_stuck(void **state)
{
    (void)state;
    nodes_init();
    memset(subject, 0, sizeof(subject));
    make_wait(0, 0, 1);
    make_wait(1, 1, 0);
    subject[0].needs = 0;
    asked = refusals = 0;
    assert_false(wr_wait_is_stuck(&subject[1].wait, look_at_moments, refuse));
    assert_true(asked > 2);
    assert_int_equal(refusals, 0);
    check_rest();
}

static int looks;

/* 0 and 1 keep what the other needs, until one of them is looked at for the third time. */
static void look_until_it_can_move(struct wr_wait *wait)
{
    if (looks++ < 2)
        look(wait);
}

static void test_a_wait_is_refused_only_if_a_second_walk_finds_it_stuck(void **state)
{
    (void)state;
    for (int event = 0; event < 2; event++) {
        nodes_init();
        memset(subject, 0, sizeof(subject));
        limit[0] = limit[1] = 1;
        make_wait(0, 0, 1);
        make_wait(1, 1, 0);
        looks = refusals = 0;
        if (event)
            wr_node_break_circles(node[0], look_until_it_can_move, refuse);
        else
            assert_false(wr_wait_is_stuck(&subject[1].wait, look_until_it_can_move, refuse));
        assert_true(looks > 2);
        assert_int_equal(refusals, 0);
        check_rest();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wait_is_refused_only_if_a_second_walk_finds_it_stuck),
        cmocka_unit_test(test_the_grounds_of_a_need_are_known_before_a_wait_counts_as_stuck),
        cmocka_unit_test(test_an_event_refuses_the_youngest_of_the_circle_and_no_bystander),
        cmocka_unit_test(test_the_walk_of_a_component_agrees_with_a_look_at_all_waits),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
