/* Mistakes in a flow: each has its sentence, all of them are found at once, and nothing is half-built.
 * SPDX-License-Identifier: MIT */
#include "flow/graph.h"

#include "support/graph_support.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static void edge(weir_flow *flow, const char *from, const char *to)
{
    assert_int_equal(weir_flow_edge(flow, from, to, WEIR_MUST), 0);
}

static void check_errors(weir_flow *flow, const char *wanted)
{
    char *errors = NULL;

    assert_int_equal(weir_flow_check(&errors, flow), *wanted ? WEIR_EINVAL : 0);
    assert_string_equal(errors ? errors : "", wanted);
    assert_int_equal(weir_flow_check(NULL, flow), *wanted ? WEIR_EINVAL : 0);
    free(errors);
    weir_flow_free(flow);
}

static void test_arguments_that_are_refused_at_once(void)
{
    weir_flow *flow = new_flow(), *none;
    weir_node *a = add(flow, "a");
    static char longest[WEIR_ID_MAX + 2];

    memset(longest, 'x', sizeof(longest) - 1);
    assert_int_equal(weir_flow_new(NULL, "x"), WEIR_EINVAL);
    assert_int_equal(weir_flow_new(&none, NULL), WEIR_EINVAL);
    assert_int_equal(weir_flow_new(&none, longest), WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, NULL, "b", body, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, NULL, body, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, "", body, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, longest, body, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, "b", NULL, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, "b", body, NULL, WEIR_NODE(.priority = 9)),
                     WEIR_EINVAL);
    assert_int_equal(
        weir_flow_node(NULL, flow, "b", body, NULL, WEIR_NODE(.deadlines = { .run_ms = -1 })),
        WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, "b", body, NULL, WEIR_NODE(.backoff_ms = -1)),
                     WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, "b", body, NULL, WEIR_NODE(.group = longest)),
                     WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, "b", NULL, NULL, WEIR_NODE(.flow = flow)),
                     WEIR_EINVAL);
    assert_int_equal(weir_flow_node(NULL, flow, "b", body, NULL, &(weir_node_options){ .size = 1 }),
                     WEIR_EINVAL);
    assert_int_equal(weir_node_needs(a, NULL, WEIR_MUST), WEIR_EINVAL);
    assert_int_equal(weir_node_needs(NULL, a, WEIR_MUST), WEIR_EINVAL);
    assert_int_equal(weir_node_feeds(a, a, (weir_need)17), WEIR_EINVAL);
    assert_int_equal(weir_flow_edge(flow, "a", NULL, WEIR_MUST), WEIR_EINVAL);
    assert_int_equal(weir_flow_edge(NULL, "a", "b", WEIR_MUST), WEIR_EINVAL);
    assert_int_equal(weir_flow_check(NULL, NULL), WEIR_EINVAL);
    weir_flow_free(NULL);
    check_errors(flow, "");
}

static void test_empty_and_single(void)
{
    weir_flow *flow = new_flow();

    check_errors(new_flow(), "");
    add(flow, "only");
    check_errors(flow, "");
}

static void test_duplicate_and_unknown_ids(void)
{
    weir_flow *flow = new_flow();

    add(flow, "a");
    add(flow, "a");
    edge(flow, "a", "nobody");
    check_errors(flow, "there are two nodes \"a\"\n"
                       "there is no node \"nobody\" for an edge with \"a\"\n");
}

static void test_a_node_of_another_flow(void)
{
    weir_flow *flow = new_flow(), *other = new_flow();
    weir_node *a = add(flow, "a"), *b = add(other, "b");

    assert_int_equal(weir_node_needs(a, b, WEIR_MUST), 0);
    check_errors(flow, "node \"b\" is of another flow, so it cannot have an edge with \"a\"\n");
    weir_flow_free(other);
}

static void test_a_cycle_is_printed_as_a_path(void)
{
    weir_flow *flow = new_flow();

    for (const char *id = "abcdefgh"; *id; id++)
        add(flow, (char[]){ *id, '\0' });
    edge(flow, "a", "b");
    edge(flow, "b", "c");
    edge(flow, "c", "d");
    edge(flow, "d", "b");
    edge(flow, "d", "e"); /* is after it, not on it */
    edge(flow, "f", "f");
    edge(flow, "g", "h");
    edge(flow, "h", "g");
    check_errors(flow, "node \"f\" needs itself\n"
                       "a cycle: b -> c -> d -> b\n"
                       "a cycle: g -> h -> g\n");
}

static void test_an_at_least_that_is_impossible(void)
{
    weir_flow *flow = new_flow();

    add(flow, "a");
    assert_int_equal(weir_flow_node(NULL, flow, "b", body, NULL, WEIR_NODE(.at_least = 2)), 0);
    add(flow, "c");
    assert_int_equal(weir_flow_edge(flow, "a", "b", WEIR_AT_LEAST), 0);
    assert_int_equal(weir_flow_edge(flow, "a", "c", WEIR_AT_LEAST), 0);
    check_errors(flow, "node \"b\" needs at least 2, but has only 1 edge of that kind\n"
                       "node \"c\" has edges of the kind at_least: set at_least to 1 or more\n");
}

static void bound(weir_flow *flow, const char *id, const char *to)
{
    assert_int_equal(weir_flow_node(NULL, flow, id, body, NULL, WEIR_NODE(.param_of = to)), 0);
}

static void test_a_parameter_comes_from_before(void)
{
    weir_flow *flow = new_flow();

    add(flow, "first");
    add(flow, "second");
    bound(flow, "grandchild", "first"); /* not right before it, which is fine */
    bound(flow, "beside", "first");
    bound(flow, "lost", "nothing");
    bound(flow, "x", "y");
    bound(flow, "y", "x"); /* two nodes bound to each other */
    edge(flow, "first", "second");
    edge(flow, "second", "grandchild");
    edge(flow, "x", "y");
    check_errors(flow,
                 "the parameter of node \"beside\" is of node \"first\", which is not before it\n"
                 "the parameter of node \"lost\" is of node \"nothing\", which does not exist\n"
                 "the parameter of node \"x\" is of node \"y\", which is not before it\n");
}

static void test_edges_declared_twice_are_one(void)
{
    weir_flow *flow = new_flow();
    weir_node *a = add(flow, "a"), *b = add(flow, "b"), *c = add(flow, "c");

    assert_int_equal(weir_node_needs(b, a, WEIR_ANY), 0);
    assert_int_equal(weir_node_feeds(a, b, WEIR_MUST), 0);
    edge(flow, "a", "b");
    assert_int_equal(weir_node_needs(c, a, WEIR_AFTER), 0);
    assert_int_equal(weir_node_needs(c, a, WEIR_ANY), 0);
    assert_int_equal(wr_flow_freeze(flow, NULL), 0);
    assert_int_equal(flow->edges, 2);
    assert_int_equal(flow->in_kind[0], WEIR_MUST);
    assert_int_equal(flow->in_kind[1], WEIR_AFTER);
    weir_flow_free(flow);
}

static void test_a_frozen_flow_does_not_change(void)
{
    weir_flow *flow = new_flow();
    weir_node *a = add(flow, "a"), *b = add(flow, "b");

    assert_int_equal(wr_flow_freeze(flow, NULL), 0);
    assert_int_equal(weir_flow_node(NULL, flow, "c", body, NULL, NULL), WEIR_EALREADY);
    assert_int_equal(weir_node_needs(a, b, WEIR_MUST), WEIR_EALREADY);
    assert_int_equal(weir_flow_edge(flow, "a", "b", WEIR_MUST), WEIR_EALREADY);
    assert_int_equal(flow->edges, 0);
    check_errors(flow, "");
}

/* A flow with errors may be mended: what is missing is added. */
static void test_a_flow_with_errors_is_not_frozen(void)
{
    weir_flow *flow = new_flow();

    add(flow, "a");
    edge(flow, "a", "b");
    assert_int_equal(wr_flow_freeze(flow, NULL), WEIR_EINVAL);
    add(flow, "b");
    assert_int_equal(wr_flow_freeze(flow, NULL), 0);
    assert_int_equal(flow->edges, 1);
    weir_flow_free(flow);
}

static void test_a_sub_flow_with_errors_is_refused(void)
{
    weir_flow *flow = new_flow(), *inner = new_flow();

    edge(inner, "a", "b");
    assert_int_equal(weir_flow_node(NULL, flow, "sub", NULL, NULL, WEIR_NODE(.flow = inner)),
                     WEIR_EINVAL);
    assert_int_equal(flow->count, 0);
    weir_flow_free(inner);
    weir_flow_free(flow);
}

enum { BUILDERS = 4, LINKS = 500 };

struct builder {
    weir_flow *flow;
    int number;
};

/* Adds a chain of its own, which ends in a node that all of them share. */
static void *build_a_chain(void *arg)
{
    const struct builder *builder = arg;
    char id[32], next[32];

    for (int i = 0; i < LINKS; i++) {
        snprintf(id, sizeof(id), "%d.%d", builder->number, i);
        snprintf(next, sizeof(next), "%d.%d", builder->number, i + 1);
        CHECK_EQUAL(weir_flow_node(NULL, builder->flow, id, body, NULL, NULL), 0);
        CHECK_EQUAL(weir_flow_edge(builder->flow, id, i + 1 < LINKS ? next : "end", WEIR_MUST), 0);
        if (i % 100 == 0)
            CHECK_EQUAL(weir_flow_check(NULL, builder->flow), WEIR_EINVAL); /* no next one yet */
    }
    return NULL;
}

static void test_several_threads_build_one_flow(void)
{
    weir_flow *flow = new_flow();
    struct builder builder[BUILDERS];
    pthread_t thread[BUILDERS];
    int arrows = 0;
    char *text;

    for (int i = 0; i < BUILDERS; i++) {
        builder[i] = (struct builder){ flow, i };
        assert_int_equal(pthread_create(&thread[i], NULL, build_a_chain, &builder[i]), 0);
    }
    for (int i = 0; i < BUILDERS; i++)
        pthread_join(thread[i], NULL);
    add(flow, "end");
    assert_int_equal(weir_flow_picture(&text, flow, WEIR_PICTURE_DOT), 0);
    for (const char *at = text; (at = strstr(at, " -> ")); at++)
        arrows++;
    assert_int_equal(arrows, BUILDERS * LINKS);
    free(text);
    check_errors(flow, "");
}

/* ---- how long it takes ------------------------------------------------------------------------------- */

enum shape { CHAIN, PAIRS, STAR, SHAPES };

/* A chain all of whose nodes have the value of the first as their parameter; layers of two, each of which needs both of the
 * layer before; one node that needs all others. */
static weir_flow *shape_of(enum shape shape, int nodes)
{
    weir_flow *flow = new_flow();
    char id[16], up[16];

    for (int i = 0; i < nodes; i++) {
        snprintf(id, sizeof(id), "%d", i);
        assert_int_equal(weir_flow_node(NULL, flow, id, body, NULL,
                                        shape == CHAIN && i ? WEIR_NODE(.param_of = "0") : NULL),
                         0);
        for (int k = 1; shape == PAIRS && i > 1 && k <= 2; k++) {
            snprintf(up, sizeof(up), "%d", i - i % 2 - k);
            edge(flow, up, id);
        }
        snprintf(up, sizeof(up), "%d", shape == CHAIN ? i - 1 : i);
        if (shape != PAIRS && i)
            edge(flow, up, shape == CHAIN ? id : "0");
    }
    return flow;
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The quickest of a few times. */
static double build_ms(enum shape shape, int nodes)
{
    double best = 1e9;

    for (int i = 0; i < 3; i++) {
        double began = cpu_ms(), took;
        weir_flow *flow = shape_of(shape, nodes);
        assert_int_equal(wr_flow_freeze(flow, NULL), 0);
        took = cpu_ms() - began;
        best = took < best ? took : best;
        weir_flow_free(flow);
    }
    return best;
}

/* Ten times as many nodes take about ten times as long; if time grew with their square, it would be a hundred times. */
static void test_building_takes_time_in_proportion_to_nodes_and_edges(void)
{
    for (enum shape shape = CHAIN; shape < SHAPES; shape++)
        CHECK(build_ms(shape, 40000) < 40 * build_ms(shape, 4000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_arguments_that_are_refused_at_once),
        TEST(test_empty_and_single),
        TEST(test_duplicate_and_unknown_ids),
        TEST(test_a_node_of_another_flow),
        TEST(test_a_cycle_is_printed_as_a_path),
        TEST(test_an_at_least_that_is_impossible),
        TEST(test_a_parameter_comes_from_before),
        TEST(test_edges_declared_twice_are_one),
        TEST(test_a_frozen_flow_does_not_change),
        TEST(test_a_flow_with_errors_is_not_frozen),
        TEST(test_a_sub_flow_with_errors_is_refused),
        TEST(test_several_threads_build_one_flow),
        TEST(test_building_takes_time_in_proportion_to_nodes_and_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
