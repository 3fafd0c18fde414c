/* Flows that change while they are built: a node or edge that was removed leaves no trace, even if other calls look meanwhile.
 * SPDX-License-Identifier: MIT */
#include "flow/graph.h"

#include "support/graph_support.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void test_a_node_goes_with_all_its_edges(void)
{
    weir_flow *flow = new_flow();
    weir_node *a = add(flow, "a"), *b = add(flow, "b"), *c = add(flow, "c");
    weir_need need = WEIR_MUST;

    assert_int_equal(weir_node_needs(b, a, WEIR_ANY), 0);
    assert_int_equal(weir_node_feeds(b, c, WEIR_MUST), 0);
    assert_int_equal(weir_flow_edge(flow, "a", "c", WEIR_AFTER), 0);
    assert_int_equal(weir_flow_edge(flow, "b", "d", WEIR_MUST), 0); /* there is no d yet */
    assert_true(weir_flow_edge_get(&need, flow, "a", "b"));
    assert_int_equal(need, WEIR_ANY);
    assert_true(weir_flow_edge_get(NULL, flow, "b", "d"));
    assert_false(weir_flow_edge_get(NULL, flow, "b", "a"));
    assert_ptr_equal(weir_flow_find(flow, "b"), b);

    assert_int_equal(weir_node_remove(b), 0);
    assert_null(weir_flow_find(flow, "b"));
    assert_ptr_equal(weir_flow_find(flow, "c"), c);
    assert_false(weir_flow_edge_get(NULL, flow, "a", "b"));
    assert_false(weir_flow_edge_get(NULL, flow, "b", "c"));
    assert_false(weir_flow_edge_get(NULL, flow, "b", "d"));
    assert_true(weir_flow_edge_get(&need, flow, "a", "c"));
    assert_int_equal(need, WEIR_AFTER);
    assert_int_equal(weir_flow_check(NULL, flow), 0);
    assert_string_equal(weir_node_id(b), "b"); /* as long as the flow */

    assert_int_equal(weir_node_remove(b), WEIR_EINVAL);
    assert_int_equal(weir_node_needs(b, a, WEIR_MUST), WEIR_EINVAL);
    assert_int_equal(weir_node_needs(a, b, WEIR_MUST), WEIR_EINVAL);
    assert_int_equal(weir_node_feeds(b, a, WEIR_MUST), WEIR_EINVAL);
    b = add(flow, "b");
    assert_ptr_equal(weir_flow_find(flow, "b"), b);
    assert_int_equal(weir_flow_check(NULL, flow), 0);
    weir_flow_free(flow);
}

static void test_a_cycle_can_be_cut_again(void)
{
    weir_flow *flow = new_flow();
    weir_node *a = add(flow, "a"), *b = add(flow, "b");

    assert_int_equal(weir_node_needs(b, a, WEIR_MUST), 0);
    assert_int_equal(weir_flow_edge(flow, "b", "a", WEIR_MUST), 0);
    assert_int_equal(weir_node_needs(a, b, WEIR_ANY), 0); /* the same edge, by handle */
    assert_int_equal(weir_flow_check(NULL, flow), WEIR_EINVAL);
    assert_int_equal(weir_flow_edge_remove(flow, "b", "a"), 0);
    assert_int_equal(weir_flow_edge_remove(flow, "b", "a"), WEIR_EINVAL);
    assert_int_equal(weir_flow_check(NULL, flow), 0);
    assert_true(weir_flow_edge_get(NULL, flow, "a", "b"));
    weir_flow_free(flow);
}

static void test_of_two_nodes_of_one_id_either_can_go(void)
{
    weir_flow *flow = new_flow();
    weir_node *last = add(flow, "last"), *first = add(flow, "x"), *second = add(flow, "x");

    assert_int_equal(weir_flow_edge(flow, "x", "last", WEIR_MUST), 0);
    assert_int_equal(weir_node_needs(last, first, WEIR_MUST), 0);
    assert_int_equal(weir_flow_check(NULL, flow), WEIR_EINVAL);
    assert_int_equal(weir_node_remove(first), 0);
    assert_int_equal(weir_flow_check(NULL, flow), 0);
    assert_ptr_equal(weir_flow_find(flow, "x"), second);
    assert_true(weir_flow_edge_get(NULL, flow, "x", "last")); /* the one by id is the other's */
    weir_flow_free(flow);
}

static void test_nothing_is_removed_from_a_frozen_flow(void)
{
    weir_flow *flow = new_flow();
    weir_node *a = add(flow, "a"), *b = add(flow, "b"), *gone = add(flow, "gone");

    assert_int_equal(weir_node_needs(b, a, WEIR_MUST), 0);
    assert_int_equal(weir_node_remove(gone), 0);
    assert_int_equal(wr_flow_freeze(flow, NULL), 0);
    assert_int_equal(weir_node_remove(a), WEIR_EALREADY);
    assert_int_equal(weir_node_remove(gone), WEIR_EINVAL);
    assert_int_equal(weir_flow_edge_remove(flow, "a", "b"), WEIR_EALREADY);
    assert_ptr_equal(weir_flow_find(flow, "b"), b);
    assert_null(weir_flow_find(flow, "gone"));
    assert_true(weir_flow_edge_get(NULL, flow, "a", "b"));
    weir_flow_free(flow);
}

static void test_arguments_that_are_refused(void)
{
    weir_flow *flow = new_flow();

    assert_int_equal(weir_node_remove(NULL), WEIR_EINVAL);
    assert_int_equal(weir_flow_edge_remove(NULL, "a", "b"), WEIR_EINVAL);
    assert_int_equal(weir_flow_edge_remove(flow, NULL, "b"), WEIR_EINVAL);
    assert_int_equal(weir_flow_edge_remove(flow, "a", NULL), WEIR_EINVAL);
    assert_false(weir_flow_edge_get(NULL, NULL, "a", "b"));
    assert_false(weir_flow_edge_get(NULL, flow, NULL, "b"));
    assert_false(weir_flow_edge_get(NULL, flow, "a", NULL));
    assert_null(weir_flow_find(NULL, "a"));
    assert_null(weir_flow_find(flow, NULL));
    weir_flow_free(flow);
}

/* ---- by chance, beside a table ------------------------------------------------------------------------ */

enum { IDS = 40, STEPS = 4000 };

struct model {
    weir_node *node[IDS];
    bool edge[IDS][IDS];
};

static const char *id_of(uint32_t n)
{
    static _Thread_local char id[4][16];
    static _Thread_local int next;

    next = (next + 1) % 4;
    snprintf(id[next], sizeof(id[next]), "%u", n);
    return id[next];
}

static void step(weir_flow *flow, struct model *m, uint32_t what, uint32_t x, uint32_t y)
{
    if (what < 3 && !m->node[x]) {
        m->node[x] = add(flow, id_of(x));
    } else if (what < 6 && m->node[x] && m->node[y] && x < y) {
        assert_int_equal(what == 3 ? weir_flow_edge(flow, id_of(x), id_of(y), WEIR_MUST)
                                   : weir_node_needs(m->node[y], m->node[x], WEIR_MUST),
                         0);
        m->edge[x][y] = true;
    } else if (what == 6 && m->node[x]) {
        assert_int_equal(weir_node_remove(m->node[x]), 0);
        m->node[x] = NULL;
        for (uint32_t n = 0; n < IDS; n++)
            m->edge[x][n] = m->edge[n][x] = false;
    } else if (what == 7) {
        assert_int_equal(weir_flow_edge_remove(flow, id_of(x), id_of(y)),
                         m->edge[x][y] ? 0 : WEIR_EINVAL);
        m->edge[x][y] = false;
    }
    assert_ptr_equal(weir_flow_find(flow, id_of(x)), m->node[x]);
    assert_int_equal(weir_flow_edge_get(NULL, flow, id_of(x), id_of(y)), m->edge[x][y]);
}

static void check_frozen(weir_flow *flow, const struct model *m)
{
    uint32_t nodes = 0, edges = 0;

    assert_int_equal(wr_flow_freeze(flow, NULL), 0);
    for (uint32_t x = 0; x < IDS; x++) {
        nodes += m->node[x] != NULL;
        for (uint32_t y = 0; y < IDS; y++)
            edges += m->edge[x][y];
    }
    assert_int_equal(flow->count, nodes);
    assert_int_equal(flow->edges, edges);
    for (uint32_t n = 0; n < flow->count; n++)
        for (uint32_t i = flow->in_at[n]; i < flow->in_at[n + 1]; i++)
            assert_true(m->edge[atoi(wr_flow_node(flow, flow->in[i])->id)]
                               [atoi(wr_flow_node(flow, n)->id)]);
}

static void test_random_changes_are_those_of_a_table(void)
{
    uint64_t luck = 20;

    for (int round = 0; round < 20; round++) {
        weir_flow *flow = new_flow();
        struct model m = { .node = { NULL } };
        for (int i = 0; i < STEPS / 20 * (1 + round % 4); i++) {
            luck = luck * 6364136223846793005u + 1442695040888963407u;
            step(flow, &m, luck >> 61, (uint32_t)(luck >> 33) % IDS, (uint32_t)(luck >> 45) % IDS);
        }
        check_frozen(flow, &m);
        weir_flow_free(flow);
    }
}

/* ---- from several threads ------------------------------------------------------------------------------ */

enum { BUILDERS = 4, ROUNDS = 300 };

struct builder {
    weir_flow *flow;
    uint32_t number;
};

/* Each thread has nodes of its own, which it adds, joins, looks up and removes; one of each round stays. */
static void *build(void *arg)
{
    struct builder *b = arg;
    char kept[24], gone[24];

    for (uint32_t i = 0; i < ROUNDS; i++) {
        weir_node *node;
        snprintf(kept, sizeof(kept), "%u.%u", b->number, i);
        snprintf(gone, sizeof(gone), "%u.%u.gone", b->number, i);
        add(b->flow, kept);
        node = add(b->flow, gone);
        CHECK_EQUAL(weir_flow_edge(b->flow, gone, kept, WEIR_MUST), 0);
        CHECK(weir_flow_edge_get(NULL, b->flow, gone, kept));
        CHECK(weir_flow_find(b->flow, gone) == node);
        CHECK_EQUAL(weir_flow_check(NULL, b->flow), 0);
        CHECK_EQUAL(weir_node_remove(node), 0);
        CHECK(!weir_flow_edge_get(NULL, b->flow, gone, kept));
        CHECK(!weir_flow_find(b->flow, gone) && weir_flow_find(b->flow, kept));
    }
    return NULL;
}

static void test_threads_that_change_one_flow_see_what_they_did(void)
{
    weir_flow *flow = new_flow();
    struct builder builder[BUILDERS];
    pthread_t thread[BUILDERS];

    for (uint32_t i = 0; i < BUILDERS; i++) {
        builder[i] = (struct builder){ flow, i };
        assert_int_equal(pthread_create(&thread[i], NULL, build, &builder[i]), 0);
    }
    for (int i = 0; i < BUILDERS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(wr_flow_freeze(flow, NULL), 0);
    assert_int_equal(flow->count, BUILDERS * ROUNDS);
    assert_int_equal(flow->edges, 0);
    weir_flow_free(flow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_node_goes_with_all_its_edges),
        TEST(test_a_cycle_can_be_cut_again),
        TEST(test_of_two_nodes_of_one_id_either_can_go),
        TEST(test_nothing_is_removed_from_a_frozen_flow),
        TEST(test_arguments_that_are_refused),
        TEST(test_random_changes_are_those_of_a_table),
        TEST(test_threads_that_change_one_flow_see_what_they_did),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
