/* Large flows, and many runs at once, on real threads: a chain of a million nodes and a million nodes in layers, under limits
 * and without, on one worker and on two; ten thousand runs of one flow; cancels, deadlines and resizes in between.
 * SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/seed.h"

#include <pthread.h>
#include <string.h>

enum {
    CHAIN = SANITIZED ? 100000 : 1000000,
    SIDE = SANITIZED ? 200 : 1000, /* layers, and nodes of a layer */
    RUNS = SANITIZED ? 2000 : 10000,
    ROUNDS = SANITIZED ? 10000 : 100000,
    SMALL = 12, /* nodes of the flow that runs many times */
};

static weir_executor *new_executor(uint32_t workers, int64_t limit)
{
    weir_executor *ex = NULL;

    assert_int_equal(
        weir_executor_new(&ex, WEIR_POLICY(.workers = workers, .group_limit = limit), NULL), 0);
    return ex;
}

static weir_group *group_of(weir_executor *ex)
{
    weir_group *group = NULL;

    assert_int_equal(weir_group_get(&group, ex, "g"), 0);
    return group;
}

/* ---- large --------------------------------------------------------------------------------------------- */

static _Atomic uint64_t ran;

static int count(void **value, void *arg, weir_step *step)
{
    (void)arg;
    (void)step;
    *value = NULL;
    atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
    return 0;
}

static weir_flow *layers_of(int layers, int width)
{
    struct luck luck = luck_of(7);
    weir_node **node = malloc((size_t)layers * (size_t)width * sizeof(*node));
    weir_flow *flow = NULL;
    char id[16];

    assert_int_equal(weir_flow_new(&flow, "layers"), 0);
    for (int i = 0; i < layers * width; i++) {
        snprintf(id, sizeof(id), "%d", i);
        assert_int_equal(weir_flow_node(&node[i], flow, id, count, NULL, NULL), 0);
        for (int k = 0; i >= width && k < (width > 1 ? 2 : 1); k++) {
            int up = (i / width - 1) * width + (int)luck_below(&luck, (uint64_t)width);
            assert_int_equal(weir_node_needs(node[i], node[up], WEIR_MUST), 0);
        }
    }
    free(node);
    return flow;
}

static void run_whole(weir_flow *flow, uint64_t nodes, uint32_t workers, int64_t limit)
{
    weir_executor *ex = new_executor(workers, limit);
    weir_run_stats stats = { .size = sizeof(stats) };
    weir_result result = WEIR_RESULT;
    weir_task *run;

    atomic_store(&ran, 0);
    assert_int_equal(weir_flow_start(&run, flow, group_of(ex), NULL, NULL), 0);
    CHECK_EQUAL(weir_task_wait(&result, run, patience()), 0);
    CHECK_EQUAL(result.outcome, WEIR_DONE);
    CHECK_EQUAL(atomic_load(&ran), nodes);
    CHECK_EQUAL(weir_run_stats_get(&stats, run), 0);
    CHECK_EQUAL(stats.succeeded, nodes);
    CHECK(stats.bytes <= 64 * nodes + 4096);
    weir_task_unref(run);
    weir_executor_free(ex);
}

static void run_in_all_ways(weir_flow *flow, uint64_t nodes)
{
    run_whole(flow, nodes, 1, 1);
    run_whole(flow, nodes, 1, WEIR_NO_LIMIT);
    run_whole(flow, nodes, 2, 1);
    run_whole(flow, nodes, 2, WEIR_NO_LIMIT);
    weir_flow_free(flow);
}

static void test_a_chain_of_a_million(void)
{
    run_in_all_ways(layers_of(CHAIN, 1), CHAIN);
}

static void test_a_thousand_layers_of_a_thousand(void)
{
    run_in_all_ways(layers_of(SIDE, SIDE), (uint64_t)SIDE * SIDE);
}

/* A chain that is cancelled at any moment: the nodes that succeeded come first, at most one body more has run, and what was
 * seen at the end stays so. */
static void test_a_chain_that_is_cancelled_has_no_gaps(void)
{
    enum { LINKS = 3000 };
    weir_flow *flow = layers_of(LINKS, 1);
    weir_executor *ex = new_executor(2, WEIR_NO_LIMIT);
    struct luck luck = luck_of(17);

    for (int i = 0; i < (SANITIZED ? 200 : 2000); i++) {
        weir_run_stats stats = { .size = sizeof(stats) }, later = { .size = sizeof(later) };
        weir_node_result result = WEIR_NODE_RESULT;
        weir_time until = weir_in_us((int64_t)luck_below(&luck, SANITIZED ? 1000 : 40));
        weir_task *run;
        char id[16];
        atomic_store(&ran, 0);
        assert_int_equal(weir_flow_start(&run, flow, group_of(ex), NULL, NULL), 0);
        while (weir_now() < until) /* sleeping would always end in the same place */
            ;
        weir_task_cancel(run);
        CHECK_EQUAL(weir_task_wait(NULL, run, patience()), 0);
        CHECK_EQUAL(weir_run_stats_get(&stats, run), 0);
        CHECK_EQUAL(stats.succeeded + stats.cancelled, LINKS);
        if (stats.succeeded && stats.cancelled) {
            snprintf(id, sizeof(id), "%d", (int)stats.succeeded - 1);
            CHECK_EQUAL(weir_run_result(&result, run, id), 0);
            CHECK_EQUAL(result.outcome, WEIR_DONE);
        }
        CHECK_EQUAL(weir_executor_drain(ex, patience()), 0);
        CHECK(atomic_load(&ran) - stats.succeeded <= 1);
        CHECK_EQUAL(weir_run_stats_get(&later, run), 0);
        CHECK_EQUAL(later.succeeded, stats.succeeded);
        weir_task_unref(run);
    }
    weir_executor_free(ex);
    weir_flow_free(flow);
}

/* Large runs that are cancelled, or pass their deadline, while another thread changes the limit. */
static void *disturb(void *group)
{
    struct luck luck = luck_of(11);

    for (int i = 0; i < 20; i++) {
        weir_sleep(weir_in_us((int64_t)luck_below(&luck, 500)));
        CHECK_EQUAL(weir_group_resize(group, 1 + (int64_t)luck_below(&luck, 4), 0, 0), 0);
    }
    return NULL;
}

static void end_in_the_middle(weir_flow *flow)
{
    weir_executor *ex = new_executor(2, 2);
    struct luck luck = luck_of(13);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, disturb, group_of(ex)), 0);
    for (int i = 0; i < 4; i++) {
        weir_run_stats stats = { .size = sizeof(stats) };
        weir_task *run;
        bool by_deadline = i % 2;
        assert_int_equal(weir_flow_start(&run, flow, group_of(ex),
                                         WEIR_RUN(.deadline_ms = by_deadline ? 3 : 0), NULL),
                         0);
        weir_sleep(weir_in_us((int64_t)luck_below(&luck, 4000)));
        if (!by_deadline)
            weir_task_cancel(run);
        CHECK_EQUAL(weir_task_wait(NULL, run, patience()), 0);
        CHECK_EQUAL(weir_run_stats_get(&stats, run), 0);
        CHECK_EQUAL(stats.waiting + stats.ready + stats.running, 0);
        weir_task_unref(run);
    }
    pthread_join(thread, NULL);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

static void test_a_large_run_is_cancelled_in_the_middle(void)
{
    end_in_the_middle(layers_of(SIDE, SIDE));
    end_in_the_middle(layers_of(CHAIN, 1));
}

/* ---- many ---------------------------------------------------------------------------------------------- */

struct small_run {
    _Atomic int began[SMALL], results[SMALL];
    weir_task *task;
};

static int small_begin(weir_step *step, void *n)
{
    struct small_run *run = weir_step_input(step);

    CHECK_EQUAL(atomic_fetch_add(&run->began[(intptr_t)n], 1), 0);
    CHECK_EQUAL(atomic_load(&run->results[(intptr_t)n]), 0);
    return 0;
}

static int small_body(void **value, void *n_arg, weir_step *step)
{
    intptr_t n = (intptr_t)n_arg;
    uint64_t luck = mix(seed ^ (uintptr_t)weir_step_input(step) ^ (uint64_t)n);
    weir_node_result before = WEIR_NODE_RESULT;

    *value = value;
    if (n >= 2 && n < 6) { /* they must have node n / 2 */
        char id[8];
        snprintf(id, sizeof(id), "%d", (int)(n / 2) & 7);
        CHECK_EQUAL(weir_step_result(&before, step, id), 0);
        CHECK_EQUAL(before.outcome, WEIR_DONE);
        CHECK(before.value != NULL);
    }
    if (luck % 16 == 0)
        weir_sleep(weir_in_us((int64_t)(luck >> 8) % 300));
    return luck % 32 == 1 ? -EIO : 0;
}

/* The runs are in one array, so that each is found without its input. */
static struct small_run *small_runs;

static void small_result(const weir_node_result *result, void *n)
{
    (void)n;
    CHECK(result->outcome != WEIR_UNSETTLED);
    atomic_fetch_add(&ran, 1);
}

static weir_flow *small_flow(void)
{
    weir_node *node[SMALL];
    weir_flow *flow = NULL;
    char id[8];

    assert_int_equal(weir_flow_new(&flow, "small"), 0);
    for (intptr_t n = 0; n < SMALL; n++) {
        snprintf(id, sizeof(id), "%d", (int)n);
        assert_int_equal(
            weir_flow_node(&node[n], flow, id, small_body, (void *)n,
                           WEIR_NODE(.begin = small_begin, .result = small_result,
                                     .callback_arg = (void *)n, .interrupt = n % 3 == 0,
                                     .at_least = n == 10 ? 2 : 0, .group = n == 7 ? "h" : NULL,
                                     .retries = n == 8 ? 1 : 0)),
            0);
        if (n >= 2 && n < 6)
            assert_int_equal(weir_node_needs(node[n], node[n / 2], WEIR_MUST), 0);
        for (intptr_t up = 2; n >= 6 && up < 6; up++)
            assert_int_equal(weir_node_needs(node[n], node[up],
                                             n == 10   ? WEIR_AT_LEAST
                                             : n == 11 ? WEIR_AFTER
                                             : n % 2   ? WEIR_ANY
                                                       : WEIR_MUST),
                             0);
    }
    return flow;
}

static void test_ten_thousand_runs_of_one_flow(void)
{
    weir_flow *flow = small_flow();
    weir_executor *ex = new_executor(2, 4);
    struct luck luck = luck_of(17);

    small_runs = calloc(RUNS, sizeof(*small_runs));
    atomic_store(&ran, 0);
    for (int i = 0; i < RUNS; i++) {
        struct small_run *run = &small_runs[i];
        assert_int_equal(
            weir_flow_start(&run->task, flow, group_of(ex),
                            WEIR_RUN(.input = run,
                                     .deadline_ms = luck_below(&luck, 8)
                                                        ? 0
                                                        : 1 + (int64_t)luck_below(&luck, 50),
                                     .skip = (weir_skip)luck_below(&luck, 4),
                                     .times = luck_below(&luck, 4) == 0),
                            NULL),
            0);
        if (luck_below(&luck, 10) == 0)
            weir_task_cancel(small_runs[luck_below(&luck, (uint64_t)i + 1)].task);
        if (luck_below(&luck, 200) == 0)
            weir_group_resize(group_of(ex), 1 + (int64_t)luck_below(&luck, 6), 0, 0);
    }
    weir_flow_free(flow);
    for (int i = 0; i < RUNS; i++) {
        weir_run_stats stats = { .size = sizeof(stats) };
        CHECK_EQUAL(weir_task_wait(NULL, small_runs[i].task, patience()), 0);
        CHECK_EQUAL(weir_run_stats_get(&stats, small_runs[i].task), 0);
        CHECK_EQUAL(stats.waiting + stats.ready + stats.running, 0);
        weir_task_unref(small_runs[i].task);
    }
    CHECK_EQUAL(atomic_load(&ran), (uint64_t)RUNS * SMALL); /* one result for each node */
    CHECK_EQUAL(weir_executor_drain(ex, patience()), 0);
    weir_executor_free(ex);
    free(small_runs);
}

/* ---- a join ------------------------------------------------------------------------------------------------ */

static int gives(void **value, void *arg, weir_step *step)
{
    (void)step;
    *value = arg;
    return 0;
}

static int reads_both(void **value, void *arg, weir_step *step)
{
    weir_node_result a = WEIR_NODE_RESULT, b = WEIR_NODE_RESULT;

    (void)arg;
    *value = NULL;
    CHECK_EQUAL(weir_step_result(&a, step, "a"), 0);
    CHECK_EQUAL(weir_step_result(&b, step, "b"), 0);
    CHECK(a.value == &ran && b.value == &ran);
    return 0;
}

static void test_a_join_always_reads_both_values(void)
{
    weir_executor *ex = new_executor(2, 4);
    weir_flow *flow = NULL;
    weir_node *a, *b, *c;

    assert_int_equal(weir_flow_new(&flow, "join"), 0);
    assert_int_equal(weir_flow_node(&a, flow, "a", gives, &ran, NULL), 0);
    assert_int_equal(weir_flow_node(&b, flow, "b", gives, &ran, NULL), 0);
    assert_int_equal(weir_flow_node(&c, flow, "c", reads_both, NULL, NULL), 0);
    assert_int_equal(weir_node_needs(c, a, WEIR_MUST), 0);
    assert_int_equal(weir_node_needs(c, b, WEIR_MUST), 0);
    for (int i = 0; i < ROUNDS; i++) {
        weir_task *run;
        CHECK_EQUAL(weir_flow_start(&run, flow, group_of(ex), NULL, NULL), 0);
        if (i % 100 == 99)
            CHECK_EQUAL(weir_task_wait(NULL, run, patience()), 0);
        weir_task_unref(run);
    }
    CHECK_EQUAL(weir_executor_drain(ex, patience()), 0);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_chain_of_a_million),
        TEST(test_a_thousand_layers_of_a_thousand),
        TEST(test_a_chain_that_is_cancelled_has_no_gaps),
        TEST(test_a_large_run_is_cancelled_in_the_middle),
        TEST(test_ten_thousand_runs_of_one_flow),
        TEST(test_a_join_always_reads_both_values),
    };

    seed_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
