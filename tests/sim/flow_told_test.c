/* Facts that a run tells of its nodes: the node that decided another one, errors, how long tries take in all, and the task locals
 * that each body sees.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

static void check_cause(weir_task *run, const char *id, weir_outcome outcome, weir_reason reason,
                        const char *cause)
{
    weir_node_result result = result_in(run, id);

    if (result.outcome != outcome || result.reason != reason)
        weir_sim_fail("node %s: outcome %d, reason %s", id, result.outcome,
                      weir_reason_name(result.reason));
    if (!cause != !result.cause || (cause && strcmp(cause, result.cause) != 0))
        weir_sim_fail("node %s: cause %s", id, result.cause ? result.cause : "NULL");
}

/* Runs the flow to its end. The run is there until over(). */
static weir_task *run_to_end(weir_executor **ex, weir_flow *flow)
{
    weir_task *run;

    *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    run = start(flow, group_of(*ex, "g"), NULL);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    return run;
}

static void over(weir_executor *ex, weir_flow *flow, weir_task *run)
{
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    weir_task_unref(run);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

static weir_node *plain(weir_flow *flow, const char *id, weir_node_fn *fn, const void *arg,
                        const weir_node_options *options)
{
    weir_node *node = NULL;

    CHECK_EQ(weir_flow_node(&node, flow, id, fn, (void *)arg, options), 0);
    return node;
}

/* ---- causes ------------------------------------------------------------------------------------------ */

/* The end of `a` makes `b` ready, and at once starts `c`, which was all that needed it. */
SIM_TEST(test_a_node_that_is_skipped_as_it_becomes_ready_has_a_cause, 20)
{
    for (int tasks = 0; tasks < 2; tasks++) {
        weir_flow *flow = new_flow("skips");
        weir_node *a, *b, *c;
        weir_executor *ex;
        weir_task *run;

        forget_nodes();
        a = add(flow, "a", 0);
        b = add_with(flow, "b", 10, WEIR_NODE(.task = tasks));
        c = add(flow, "c", 0);
        must(b, a);
        must(c, a);
        needs(c, b, WEIR_NONE_FAILED);
        run = run_to_end(&ex, flow);
        check_results(run);
        check_cause(run, "b", WEIR_SKIPPED, WEIR_REASON_NOT_NEEDED, "c");
        over(ex, flow, run);
    }
}

static int fails_after_10_ms(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    weir_sim_busy(10 * MS);
    return -EIO;
}

/* Either the first of two nodes starts `c`; `b` takes longer than `a`. */
static weir_flow *loses(weir_node_fn *fn, const weir_node_options *options)
{
    weir_flow *flow = new_flow("loses");
    weir_node *b, *c;

    forget_nodes();
    b = plain(flow, "b", fn, NULL, options);
    c = add(flow, "c", 100);
    needs(c, add(flow, "a", 5), WEIR_ANY);
    needs(c, b, WEIR_ANY);
    return flow;
}

SIM_TEST(test_a_node_that_is_skipped_after_a_try_has_a_cause, 20)
{
    for (int64_t pause = 0; pause <= 20; pause += 20) {
        weir_flow *flow = loses(fails_after_10_ms, WEIR_NODE(.retries = 3, .backoff_ms = pause));
        weir_executor *ex;
        weir_task *run = run_to_end(&ex, flow);

        check_cause(run, "b", WEIR_SKIPPED, WEIR_REASON_NOT_NEEDED, "c");
        over(ex, flow, run);
    }
}

static int sleeps_10_ms(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    return weir_sleep(weir_in_ms(10));
}

SIM_TEST(test_a_node_that_is_interrupted_because_nothing_needs_it_has_a_cause, 20)
{
    for (int tasks = 0; tasks < 2; tasks++) {
        weir_flow *flow = loses(sleeps_10_ms, WEIR_NODE(.interrupt = true, .task = tasks));
        weir_executor *ex;
        weir_task *run = run_to_end(&ex, flow);

        check_cause(run, "b", WEIR_CANCELLED, WEIR_REASON_NOT_NEEDED, "c");
        over(ex, flow, run);
    }
}

static weir_judgement waits(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)edges;
    (void)step;
    (void)arg;
    return WEIR_JUDGE_WAIT;
}

static weir_judgement refuses(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)step;
    (void)arg;
    return edges->left ? WEIR_JUDGE_WAIT : WEIR_JUDGE_FAIL;
}

/* `c` is judged when `b` has succeeded, after `a` has ended like that. */
static weir_flow *judged(weir_judge_fn *judge, int error_of_a)
{
    weir_flow *flow = new_flow("judged");
    weir_node *c, *d;

    forget_nodes();
    c = add_with(flow, "c", 0, WEIR_NODE(.judge = judge));
    d = add(flow, "d", 0);
    must(c, add(flow, "a", 5));
    must(c, add(flow, "b", 10));
    must(d, c);
    node_seen("a")->error = error_of_a;
    return flow;
}

SIM_TEST(test_a_node_that_its_judge_alone_fails_says_so, 20)
{
    static weir_judge_fn *const judge[] = { waits, refuses };

    for (int i = 0; i < 2; i++) {
        weir_flow *flow = judged(judge[i], 0);
        weir_executor *ex;
        weir_task *run = run_to_end(&ex, flow);

        check_results(run);
        check_cause(run, "c", WEIR_FAILED, WEIR_REASON_NONE, NULL);
        CHECK_EQ(result_in(run, "c").error, WEIR_EJUDGED);
        check_cause(run, "d", WEIR_FAILED, WEIR_REASON_DEPENDENCY, "c");
        CHECK_EQ(result_in(run, "d").error, WEIR_EJUDGED);
        over(ex, flow, run);
    }
}

SIM_TEST(test_a_node_that_its_judge_fails_after_a_failure_names_that, 20)
{
    static weir_judge_fn *const judge[] = { waits, refuses };

    for (int i = 0; i < 2; i++) {
        weir_flow *flow = judged(judge[i], -EIO);
        weir_executor *ex;
        weir_task *run = run_to_end(&ex, flow);

        check_results(run);
        check_cause(run, "c", WEIR_FAILED, WEIR_REASON_DEPENDENCY, "a");
        CHECK_EQ(result_in(run, "c").error, WEIR_EJUDGED);
        check_cause(run, "d", WEIR_FAILED, WEIR_REASON_DEPENDENCY, "a");
        over(ex, flow, run);
    }
}

/* ---- a deadline for all tries ------------------------------------------------------------------------ */

static int fails_after(void **value, void *ms, weir_step *step)
{
    int rc = weir_sleep(weir_in_ms((int64_t)(intptr_t)ms));

    (void)value;
    (void)step;
    return rc ? rc : -EIO;
}

static int adds_a_long_node(void **value, void *arg, weir_step *step)
{
    weir_flow *flow = new_flow("long");

    (void)value;
    (void)arg;
    CHECK_EQ(weir_sleep(weir_in_ms(4)), 0);
    plain(flow, "n", fails_after, (void *)300, NULL);
    return weir_step_expand(step, flow, NULL, NULL);
}

static void check_time_out(weir_node_fn *fn, intptr_t arg, const weir_node_options *options)
{
    weir_flow *flow = new_flow("late");
    weir_time began = weir_now();
    weir_executor *ex;
    weir_task *run;

    forget_nodes();
    plain(flow, "a", fn, (void *)arg, options);
    run = run_to_end(&ex, flow);
    CHECK_EQ(weir_now() - began, 10 * MS);
    check_cause(run, "a", WEIR_TIMED_OUT, WEIR_REASON_TOTAL_DEADLINE, NULL);
    CHECK_EQ(result_in(run, "a").error, WEIR_ETIMEDOUT);
    over(ex, flow, run);
}

SIM_TEST(test_the_total_deadline_of_a_node_is_for_all_its_tries, 20)
{
    check_time_out(fails_after, 4, WEIR_NODE(.retries = 9, .deadlines = { .total_ms = 10 }));
}

SIM_TEST(test_a_pause_between_tries_ends_at_the_total_deadline, 20)
{
    check_time_out(fails_after, 1,
                   WEIR_NODE(.retries = 5, .backoff_ms = 20, .deadlines = { .total_ms = 10 }));
    check_time_out(fails_after, 1,
                   WEIR_NODE(.retries = 5, .backoff_ms = 9, .deadlines = { .total_ms = 10 }));
}

SIM_TEST(test_nodes_that_a_body_adds_end_at_its_total_deadline, 20)
{
    check_time_out(adds_a_long_node, 0, WEIR_NODE(.deadlines = { .total_ms = 10 }));
}

/* ---- task locals ------------------------------------------------------------------------------------- */

static const weir_local local = WEIR_LOCAL(NULL);

static int sets_two(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    CHECK_EQ(weir_local_set(&local, (void *)2), 0);
    return 0;
}

/* Its value is what it saw. */
static int sees(void **value, void *arg, weir_step *step)
{
    (void)arg;
    (void)step;
    *value = weir_local_get(&local);
    return 0;
}

static int sees_in_the_third_try(void **value, void *tries, weir_step *step)
{
    if (++*(int *)tries < 3) {
        CHECK_EQ(weir_local_set(&local, (void *)7), 0);
        return -EIO;
    }
    return sees(value, NULL, step);
}

static int sets_two_and_adds(void **value, void *arg, weir_step *step)
{
    weir_flow *flow = new_flow("added");

    plain(flow, "n", sees, NULL, NULL);
    CHECK_EQ(sets_two(value, arg, step), 0);
    return weir_step_expand(step, flow, NULL, NULL);
}

static void check_saw(weir_task *run, const char *id, intptr_t what)
{
    intptr_t saw = (intptr_t)result_in(run, id).value;

    if (saw != what)
        weir_sim_fail("node %s saw %ld, not %ld", id, (long)saw, (long)what);
}

static weir_task *run_with_one(weir_executor **ex, weir_flow *flow)
{
    weir_task *run;

    CHECK_EQ(weir_local_set(&local, (void *)1), 0);
    run = run_to_end(ex, flow);
    weir_local_clear();
    return run;
}

SIM_TEST(test_each_try_sees_the_locals_the_first_one_saw, 30)
{
    for (int64_t pause = 0; pause <= 5; pause += 5) {
        const weir_node_options *options = WEIR_NODE(.retries = 2, .backoff_ms = pause);
        weir_flow *flow = new_flow("tries");
        int root = 0, after = 0;
        weir_executor *ex;
        weir_task *run;

        plain(flow, "root", sees_in_the_third_try, &root, options);
        must(plain(flow, "after", sees_in_the_third_try, &after, options),
             plain(flow, "sets", sets_two, NULL, NULL));
        run = run_with_one(&ex, flow);
        check_saw(run, "root", 1);
        check_saw(run, "after", 2);
        over(ex, flow, run);
    }
}

SIM_TEST(test_nodes_after_a_task_see_the_locals_it_has_set, 100)
{
    const weir_node_options *task = WEIR_NODE(.task = true);
    weir_flow *flow = new_flow("travels");
    weir_node *sets, *passes;
    weir_executor *ex;
    weir_task *run;

    sets = plain(flow, "sets", sets_two, NULL, task);
    passes = plain(flow, "passes", sees, NULL, task);
    must(plain(flow, "plain", sees, NULL, NULL), sets);
    must(plain(flow, "plain too", sees, NULL, NULL), sets);
    must(passes, sets);
    must(plain(flow, "last", sees, NULL, NULL), passes);
    plain(flow, "other", sees, NULL, NULL);
    run = run_with_one(&ex, flow);
    check_saw(run, "plain", 2);
    check_saw(run, "plain too", 2);
    check_saw(run, "passes", 2);
    check_saw(run, "last", 2);
    check_saw(run, "other", 1);
    over(ex, flow, run);
}

SIM_TEST(test_locals_of_a_body_that_adds_nodes_are_seen_by_them_and_by_nodes_after_it, 100)
{
    for (int tasks = 0; tasks < 2; tasks++) {
        weir_flow *flow = new_flow("adds");
        weir_executor *ex;
        weir_task *run;

        must(plain(flow, "after", sees, NULL, NULL),
             plain(flow, "adds", sets_two_and_adds, NULL, WEIR_NODE(.task = tasks)));
        plain(flow, "other", sees, NULL, NULL);
        plain(flow, "another", sees, NULL, NULL);
        run = run_with_one(&ex, flow);
        check_saw(run, "adds/n", 2);
        check_saw(run, "after", 2);
        check_saw(run, "other", 1);
        check_saw(run, "another", 1);
        over(ex, flow, run);
    }
}

SIM_TEST(test_nodes_after_a_sub_flow_see_the_locals_it_began_with, 100)
{
    weir_flow *flow = new_flow("outer"), *inner = new_flow("inner");
    weir_node *sub, *root;
    weir_executor *ex;
    weir_task *run;

    must(plain(inner, "sets", sets_two, NULL, NULL), plain(inner, "sees", sees, NULL, NULL));
    root = plain(flow, "root", NULL, NULL, WEIR_NODE(.flow = inner));
    must(plain(flow, "after root", sees, NULL, NULL), root);
    sub = plain(flow, "sub", NULL, NULL, WEIR_NODE(.flow = inner));
    must(sub, plain(flow, "sets", sets_two, NULL, NULL));
    must(plain(flow, "after sub", sees, NULL, NULL), sub);
    run = run_with_one(&ex, flow);
    check_saw(run, "root/sees", 1);
    check_saw(run, "after root", 1);
    check_saw(run, "sub/sees", 2);
    check_saw(run, "after sub", 2);
    over(ex, flow, run);
    weir_flow_free(inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_that_is_skipped_as_it_becomes_ready_has_a_cause),
        cmocka_unit_test(test_a_node_that_is_skipped_after_a_try_has_a_cause),
        cmocka_unit_test(test_a_node_that_is_interrupted_because_nothing_needs_it_has_a_cause),
        cmocka_unit_test(test_a_node_that_its_judge_alone_fails_says_so),
        cmocka_unit_test(test_a_node_that_its_judge_fails_after_a_failure_names_that),
        cmocka_unit_test(test_the_total_deadline_of_a_node_is_for_all_its_tries),
        cmocka_unit_test(test_a_pause_between_tries_ends_at_the_total_deadline),
        cmocka_unit_test(test_nodes_that_a_body_adds_end_at_its_total_deadline),
        cmocka_unit_test(test_each_try_sees_the_locals_the_first_one_saw),
        cmocka_unit_test(test_nodes_after_a_task_see_the_locals_it_has_set),
        cmocka_unit_test(
            test_locals_of_a_body_that_adds_nodes_are_seen_by_them_and_by_nodes_after_it),
        cmocka_unit_test(test_nodes_after_a_sub_flow_see_the_locals_it_began_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
