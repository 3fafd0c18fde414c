/* Lives of runs: what ends them from outside, what happens when memory is short, and what comes by chance.
 * SPDX-License-Identifier: MIT */
#include "support/flow_support.h"

/* ---- ends from outside ----------------------------------------------------------------------------------- */

static int waits_for_its_run(void **value, void *arg, weir_step *step)
{
    weir_message why;

    (void)value;
    (void)arg;
    CHECK_EQ(weir_task_wait_or_say(&why, NULL, weir_step_run(step), WEIR_FOREVER), WEIR_EDEADLK);
    CHECK(strstr(why.text, "run"));
    return 0;
}

SIM_TEST(test_a_body_cannot_wait_for_its_own_run, 20)
{
    weir_flow *inner = new_flow("inner"), *flow = new_flow("self");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));

    CHECK_EQ(weir_flow_node(NULL, inner, "x", waits_for_its_run, NULL, NULL), 0);
    CHECK_EQ(weir_flow_node(NULL, flow, "a", waits_for_its_run, NULL, NULL), 0);
    CHECK_EQ(weir_flow_node(NULL, flow, "b", waits_for_its_run, NULL, WEIR_NODE(.task = true)), 0);
    CHECK_EQ(weir_flow_node(NULL, flow, "sub", NULL, NULL, WEIR_NODE(.flow = inner)), 0);
    check_done(start(flow, group_of(ex, "g"), NULL));
    weir_flow_free(inner);
    weir_flow_free(flow);
    weir_executor_free(ex);
}

static void result_waits_for_its_run(const weir_node_result *node, void *arg)
{
    ++*(int *)arg;
    CHECK_EQ(weir_task_wait(NULL, node->run, WEIR_FOREVER), WEIR_EDEADLK);
}

static int adds_a_node(void **value, void *arg, weir_step *step)
{
    weir_flow *flow = new_flow("added");

    CHECK_EQ(weir_flow_node(NULL, flow, "y", does_nothing, NULL, NULL), 0);
    CHECK_EQ(weir_step_expand(step, flow, NULL, NULL), 0);
    return does_nothing(value, arg, step);
}

/* Whether the node runs in a turn, is a task of its own, has a sub-flow, has added nodes, or fails after one of these. */
SIM_TEST(test_a_result_callback_cannot_wait_for_its_own_run, 50)
{
    weir_flow *flow = new_flow("self"), *inner = new_flow("inner");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    int called = 0;
    const weir_node_options kinds[] = {
        { .task = false },      { .task = true },       { .group = "other", .retries = 1 },
        { .flow = inner },      { .never_skip = true }, /* adds nodes */
        { .task = true },                               /* adds nodes */
        { .never_skip = true },                         /* fails after the sub-flow */
    };
    weir_node *node[sizeof(kinds) / sizeof(kinds[0])];

    forget_nodes();
    CHECK_EQ(weir_flow_node(NULL, inner, "x", node_body, new_seen("x", 1), NULL), 0);
    seen[0].error = -EIO;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        weir_node_options o = kinds[i];
        o.size = sizeof(o);
        o.result = result_waits_for_its_run;
        o.callback_arg = &called;
        CHECK_EQ(weir_flow_node(&node[i], flow, (char[]){ (char)('a' + i), '\0' },
                                o.flow             ? NULL
                                : i == 4 || i == 5 ? adds_a_node
                                                   : does_nothing,
                                NULL, &o),
                 0);
    }
    must(node[1], node[0]);
    must(node[6], node[3]);
    CHECK_EQ(result_of(start(flow, group_of(ex, "g"), NULL)).outcome, WEIR_FAILED);
    CHECK_EQ(called, 7);
    weir_flow_free(flow);
    weir_flow_free(inner);
    weir_executor_free(ex);
}

/* Nor if the thread that cancels the run calls it. */
SIM_TEST(test_a_result_callback_of_a_cancelled_node_cannot_wait_for_its_run, 50)
{
    weir_flow *flow = new_flow("self");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_task *run;
    int called = 0;

    forget_nodes();
    must(add(flow, "after", 0), add(flow, "long", 1000));
    CHECK_EQ(weir_flow_node(NULL, flow, "last", does_nothing, NULL,
                            WEIR_NODE(.result = result_waits_for_its_run, .callback_arg = &called)),
             0);
    CHECK_EQ(weir_flow_edge(flow, "after", "last", WEIR_MUST), 0);
    run = start(flow, group_of(ex, "g"), NULL);
    CHECK(weir_task_cancel(run));
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK_EQ(called, 1);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

static weir_flow *one_node;

/* In a group with a single permit, which it has itself. */
static int starts_and_waits(void **value, void *group)
{
    weir_task *run = NULL;
    weir_message why;

    *value = NULL;
    CHECK_EQ(weir_flow_start(&run, one_node, group, NULL, NULL), 0);
    CHECK_EQ(weir_task_wait_or_say(&why, NULL, run, WEIR_FOREVER), WEIR_EDEADLK);
    CHECK(why.text[0]);
    weir_task_unref(run); /* it goes on when this body has returned */
    return 0;
}

static int waits_for(void **value, void *run)
{
    int rc = weir_task_wait(NULL, run, WEIR_FOREVER);

    *value = NULL;
    CHECK(rc == 0 || rc == WEIR_EDEADLK);
    weir_task_unref(run);
    return rc;
}

/* A task of another group waits for the run, and this body for that task. */
static int waits_in_a_circle(void **value, void *ex, weir_step *step)
{
    weir_task *task = NULL;
    int rc;

    *value = NULL;
    CHECK_EQ(
        weir_submit_key(&task, ex, "other", waits_for, weir_task_ref(weir_step_run(step)), NULL),
        0);
    rc = weir_task_wait(NULL, task, WEIR_FOREVER);
    CHECK(rc == WEIR_EDEADLK || rc == 0); /* or the other wait was refused */
    weir_task_unref(task);
    return 0;
}

SIM_TEST(test_a_wait_for_a_run_that_could_never_end, 100)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_flow *flow = new_flow("circle");
    weir_task *task;

    one_node = pair_of(WEIR_NODE(), WEIR_NODE());
    CHECK_EQ(weir_submit_key(&task, ex, "g", starts_and_waits, group_of(ex, "g"), NULL), 0);
    check_done(task);
    CHECK_EQ(weir_flow_node(NULL, flow, "a", waits_in_a_circle, ex, NULL), 0);
    check_done(start(flow, group_of(ex, "g"), NULL));
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    weir_flow_free(flow);
    weir_flow_free(one_node);
    weir_executor_free(ex);
}

static void cancels(void *run)
{
    weir_task_cancel(run);
}

static void note_run(weir_task *task, void *place)
{
    if (!*(weir_task **)place)
        *(weir_task **)place = weir_task_ref(task);
}

/* The listener hears of the run before any node has begun, and has another thread cancel it. */
SIM_TEST(test_a_cancel_during_the_start, 300)
{
    weir_flow *flow = pair_of(WEIR_NODE(), WEIR_NODE(.task = true));
    weir_task *heard = NULL, *run;
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4,
                                 .listener = { .submitted = note_run, .arg = &heard }));

    add(flow, "c", 5);
    run = start(flow, group_of(ex, "g"), NULL);
    int64_t thread = weir_sim_thread(cancels, heard, "cancels");
    weir_result result = WEIR_RESULT;
    CHECK_EQ(weir_task_wait(&result, run, WEIR_FOREVER), 0);
    CHECK_EQ(result.outcome, WEIR_CANCELLED);
    check_results(run);
    weir_sim_join(thread);
    weir_task_unref(run);
    weir_task_unref(heard);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

static void is_busy(weir_task *task, const weir_result *result, void *arg)
{
    (void)task;
    (void)result;
    (void)arg;
    weir_sim_busy(20 * MS);
}

static int leaves_a_busy_callback(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    CHECK_EQ(weir_task_on_done(weir_task_self(), is_busy, NULL), 0);
    return 0;
}

/* The worker that ends a node is about to run the next one, if that is a task of its own; but not if it has to call back
 * before. */
SIM_TEST(test_a_long_callback_does_not_keep_the_next_node_from_another_worker, 100)
{
    weir_flow *flow = new_flow("f");
    weir_node *first = NULL, *second;

    forget_nodes();
    CHECK_EQ(weir_flow_node(&first, flow, "first", leaves_a_busy_callback, NULL,
                            WEIR_NODE(.task = true)),
             0);
    second = add_with(flow, "second", 5, WEIR_NODE(.task = true));
    must(second, first);
    run_flow(flow, 2, 2, NULL);
    check_ran("second", 0, 5);
    weir_flow_free(flow);
}

SIM_TEST(test_freeing_the_flow_and_the_executor_under_a_run, 100)
{
    weir_flow *flow = pair_of(WEIR_NODE(), WEIR_NODE(.task = true));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));
    weir_task *run = start(flow, group_of(ex, "g"), NULL);
    weir_result result = WEIR_RESULT;

    weir_flow_free(flow);
    sleep_until(weir_sim_random() % 2 ? 5 : 15);
    weir_executor_free(ex);
    CHECK_EQ(weir_task_wait(&result, run, WEIR_NOW_OR_NEVER), 0);
    CHECK_EQ(result.outcome, WEIR_CANCELLED);
    CHECK_EQ(result.reason, WEIR_REASON_SHUT_DOWN);
    check_results(run);
    weir_task_unref(run);
}

SIM_TEST(test_a_group_without_room_rejects_ready_nodes, 50)
{
    weir_flow *flow = pair_of(WEIR_NODE(), WEIR_NODE());
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1, .group_queue_max = WEIR_NO_QUEUE));
    struct body body = { .ms = 50 };
    weir_task *task = submit(ex, "g", &body), *run;
    weir_result result = WEIR_RESULT;

    run = start(flow, group_of(ex, "g"), NULL);
    CHECK_EQ(weir_task_wait(&result, run, WEIR_FOREVER), 0);
    CHECK_EQ(result.outcome, WEIR_FAILED);
    CHECK_EQ(result.error, WEIR_EREJECTED);
    check_node("a", WEIR_REJECTED);
    CHECK_EQ(seen[0].reason, WEIR_REASON_GROUP_QUEUE_FULL);
    check_node("b", WEIR_REJECTED);
    check_results(run);
    weir_task_unref(run);
    check_done(task);
    forget_run();
    run = start(flow, group_of(ex, "g"), NULL); /* a turn that ends finds no place for the next */
    check_done(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_an_evicted_group_rejects_waiting_nodes, 50)
{
    weir_flow *flow = pair_of(WEIR_NODE(), WEIR_NODE());
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    struct body body = { .ms = 50 };
    weir_task *task = submit(ex, "g", &body), *run;

    sleep_until(1);
    run = start(flow, group_of(ex, "g"), NULL);
    CHECK_EQ(weir_group_evict(ex, "g", 0), 0);
    CHECK_EQ(result_of(run).outcome, WEIR_FAILED);
    check_node("a", WEIR_REJECTED);
    CHECK_EQ(seen[0].reason, WEIR_REASON_EVICTED);
    check_done(task);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_drain_waits_for_runs, 30)
{
    weir_flow *flow = pair_of(WEIR_NODE(), WEIR_NODE());
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));

    CHECK_EQ(weir_flow_start(NULL, flow, group_of(ex, "g"), NULL, NULL), 0); /* detached */
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK_EQ(weir_now(), at(20));
    CHECK_EQ(seen[1].results, 1);
    check_books(ex);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

static int drops;

static void count_drop(void *value)
{
    CHECK(value != NULL);
    drops++;
}

SIM_TEST(test_values_and_the_input_live_to_the_last_unref, 30)
{
    weir_flow *flow =
        pair_of(WEIR_NODE(.drop = count_drop), WEIR_NODE(.drop = count_drop, .task = true));
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 1));
    weir_task *run;

    drops = 0;
    seen[0].value = seen[1].value = &drops;
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.input = flow, .drop_input = count_drop));
    weir_flow_free(flow);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    CHECK_EQ(drops, 0);
    CHECK(result_in(run, "b").value == &drops);
    weir_task_unref(run);
    CHECK_EQ(drops, 3);
    weir_executor_free(ex);
}

/* With a sentence that names what is wrong. */
static void check_refused(weir_flow *flow, weir_group *group, const weir_run_options *opt, int rc,
                          const char *wanted)
{
    weir_task *run = NULL;
    weir_message message;

    CHECK_EQ(weir_flow_start(&run, flow, group, opt, &message), rc);
    CHECK(run == NULL);
    if (strcmp(message.text, wanted) != 0)
        weir_sim_fail("said: %s; wanted: %s", message.text, wanted);
}

SIM_TEST(test_a_start_that_is_refused, 5)
{
    weir_flow *flow = pair_of(WEIR_NODE(), WEIR_NODE()), *wrong = new_flow("wrong");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    weir_group *group = group_of(ex, "g");
    weir_message message;
    weir_task *run = NULL;
    static char longest[WEIR_ID_MAX + 2];

    memset(longest, 'x', sizeof(longest) - 1);
    CHECK_EQ(weir_flow_edge(wrong, "a", "b", WEIR_MUST), 0);
    CHECK_EQ(weir_flow_start(&run, wrong, group, NULL, &message), WEIR_EINVAL);
    CHECK(strcmp(message.text, "there is no node \"a\" for an edge with \"b\"\n"
                               "there is no node \"b\" for an edge with \"a\"\n") == 0);
    CHECK_EQ(weir_flow_start(&run, flow, group,
                             WEIR_RUN(.params = (weir_param[]){ { "x", NULL } }, .param_count = 1,
                                      .input = flow, .drop_input = count_drop),
                             &message),
             WEIR_EINVAL);
    CHECK(strcmp(message.text, "there is no node \"x\" for a parameter\n") == 0);
    CHECK_EQ(weir_flow_start(&run, NULL, group, NULL, NULL), WEIR_EINVAL);
    check_refused(NULL, group, NULL, WEIR_EINVAL, "there is no flow\n");
    check_refused(flow, NULL, NULL, WEIR_EINVAL, "there is no group to run under\n");
    check_refused(flow, group, WEIR_RUN(.deadline_ms = -1), WEIR_EINVAL,
                  "deadline_ms is out of range: 1 to 31536000000, or 0 for none\n");
    check_refused(flow, group, WEIR_RUN(.skip = (weir_skip)9), WEIR_EINVAL,
                  "skip is none of the modes\n");
    check_refused(flow, group, WEIR_RUN(.param_count = 1), WEIR_EINVAL,
                  "param_count is set, but params is NULL\n");
    check_refused(flow, group, WEIR_RUN(.id = longest), WEIR_EINVAL,
                  "id is too long: at most 4096 bytes\n");
    CHECK(run == NULL);
    weir_executor_close(ex, 0);
    CHECK_EQ(weir_flow_start(&run, flow, group, NULL, NULL), WEIR_ECLOSED);
    check_refused(flow, group, NULL, WEIR_ECLOSED, "the runtime or executor is shutting down\n");
    weir_executor_free(ex);
    weir_flow_free(flow);
    weir_flow_free(wrong);
}

/* A body that runs on after its run is over, and after the last reference to it is gone. */
static int late_looks;

static int looks_late(void **value, void *arg, weir_step *step)
{
    weir_node_result result = WEIR_NODE_RESULT;

    (void)arg;
    *value = NULL;
    CHECK_EQ(weir_sleep(weir_now() + 20 * MS), 0);
    CHECK_EQ(weir_step_result(&result, step, "late"), 0);
    CHECK_EQ(result.outcome, WEIR_TIMED_OUT);
    weir_task_cancel(weir_step_run(step)); /* it is over, so nothing happens */
    late_looks++;
    return 0;
}

static void check_late_look(bool task)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 100));
    weir_flow *flow = new_flow("late");
    struct body body[20] = { { .until_ms = 0 } };
    weir_task *other[20];

    late_looks = 0;
    CHECK_EQ(weir_flow_node(NULL, flow, "late", looks_late, NULL, WEIR_NODE(.task = task)), 0);
    CHECK_EQ(weir_flow_start(NULL, flow, group_of(ex, "g"), WEIR_RUN(.deadline_ms = 10), NULL), 0);
    CHECK_EQ(weir_sleep(weir_now() + 12 * MS), 0);
    for (int i = 0; i < 20; i++) { /* others, in what was its record */
        body[i].until_ms = (weir_now() - at(0)) / MS + 20;
        other[i] = submit(ex, "g", &body[i]);
    }
    for (int i = 0; i < 20; i++)
        check_done(other[i]);
    CHECK_EQ(late_looks, 1);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_a_body_may_look_at_its_run_after_the_run_is_gone, 20)
{
    check_late_look(false);
    check_late_look(true);
}

/* ---- when memory is short -------------------------------------------------------------------------------- */

static int results_counted;

static void count_result(const weir_node_result *result, void *arg)
{
    (void)arg;
    CHECK(result->outcome != WEIR_UNSETTLED);
    results_counted++;
}

static int quick(void **value, void *arg, weir_step *step)
{
    (void)arg;
    (void)step;
    *value = NULL;
    return 0;
}

static bool worked(int rc)
{
    CHECK(rc == 0 || rc == WEIR_ENOMEM || rc == WEIR_EAGAIN);
    return rc == 0;
}

static int expands_if_it_can(void **value, void *arg, weir_step *step)
{
    weir_flow *flow = NULL;
    bool good = worked(weir_flow_new(&flow, "added")) &&
                worked(weir_flow_node(NULL, flow, "y", quick, NULL, NULL)) &&
                worked(weir_step_expand(step, flow, NULL, NULL));

    (void)arg;
    *value = NULL;
    if (!good)
        weir_flow_free(flow);
    return good ? 0 : WEIR_ENOMEM;
}

static void short_of_memory(void *arg)
{
    weir_executor *ex = NULL;
    weir_group *group = NULL;
    weir_flow *flow = NULL, *inner = NULL;
    weir_node *extra = NULL;
    weir_task *run = NULL;
    bool good = worked(weir_flow_new(&inner, "inner")) && worked(weir_flow_new(&flow, "outer")) &&
                worked(weir_flow_node(&extra, flow, "extra", quick, NULL, NULL)) &&
                worked(weir_node_remove(extra));

    (void)arg;
    results_counted = 0;
    good =
        good && worked(weir_flow_node(NULL, inner, "x", quick, NULL, NULL)) &&
        worked(weir_flow_node(NULL, flow, "a", quick, NULL, WEIR_NODE(.result = count_result))) &&
        worked(weir_flow_node(NULL, flow, "b", quick, NULL,
                              WEIR_NODE(.task = true, .result = count_result))) &&
        worked(weir_flow_node(NULL, flow, "c", NULL, NULL,
                              WEIR_NODE(.flow = inner, .result = count_result))) &&
        worked(weir_flow_node(NULL, flow, "d", quick, NULL,
                              WEIR_NODE(.param_of = "a", .result = count_result))) &&
        worked(weir_flow_edge(flow, "a", "d", WEIR_AFTER)) &&
        worked(weir_flow_edge(flow, "b", "d", WEIR_AFTER)) &&
        worked(weir_flow_node(NULL, flow, "e", expands_if_it_can, NULL,
                              WEIR_NODE(.result = count_result))) &&
        worked(weir_flow_edge(flow, "c", "d", WEIR_AFTER)) && worked(weir_flow_check(NULL, flow));
    if (good && worked(weir_executor_new(&ex, WEIR_POLICY(.workers = 1), NULL)) &&
        worked(weir_group_get(&group, ex, "g")) &&
        worked(weir_flow_start(&run, flow, group, WEIR_RUN(.deadline_ms = 100), NULL))) {
        weir_result result = WEIR_RESULT;
        CHECK_EQ(weir_task_wait(&result, run, WEIR_FOREVER), 0);
        CHECK(result.outcome == WEIR_DONE || result.error == WEIR_ENOMEM ||
              result.error == WEIR_EAGAIN);
        CHECK_EQ(results_counted, 5);
    }
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
    weir_flow_free(inner);
}

static void test_every_allocation_failing_once(void **state)
{
    weir_sim_report report = WEIR_SIM_REPORT;

    (void)state;
    assert_int_equal(weir_sim_run(&report, WEIR_SIM_OPTIONS(.seed = 1), short_of_memory, NULL), 0);
    for (uint64_t n = 1, count = report.allocs; n <= count; n++)
        for (int sticky = 0; sticky < 2; sticky++) {
            weir_sim_report failure = WEIR_SIM_REPORT;
            if (weir_sim_run(&failure,
                             WEIR_SIM_OPTIONS(.seed = 1, .fail_alloc = n, .sticky = sticky),
                             short_of_memory, NULL))
                fail_msg("allocation %d: %s", (int)n, failure.message);
        }
}

/* ---- by chance ---------------------------------------------------------------------------------------------- */

enum { LIFE_NODES = 10, LIFE_RUNS = 4 };

/* A flow by chance, and what its nodes do in each run. */
struct life {
    weir_flow *flow;
    uint32_t nodes;
    bool edge[LIFE_NODES][LIFE_NODES];
    bool must_only[LIFE_NODES];
    struct life_run {
        struct life *life;
        weir_task *task;
        struct {
            _Atomic int began, ran, results;
        } node[LIFE_NODES];
        bool settled;
    } run[LIFE_RUNS];
};

static struct life *lives;
static char life_id[LIFE_NODES][4];

static uint32_t chance(uint32_t below)
{
    return (uint32_t)(weir_sim_random() % below);
}

static int life_begin(weir_step *step, void *n_arg)
{
    struct life_run *run = weir_step_input(step);
    int n = (int)(intptr_t)n_arg;

    CHECK(run->node[n].began++ == 0 && run->node[n].results == 0);
    CHECK(!run->settled);
    return chance(20) ? 0 : -EPERM;
}

/* No body runs before those that it must have are done. */
static int life_body(void **value, void *n_arg, weir_step *step)
{
    struct life_run *run = weir_step_input(step);
    int n = (int)(intptr_t)n_arg;
    weir_node_result up = WEIR_NODE_RESULT;

    CHECK(run->node[n].ran++ < 3);
    *value = NULL;
    for (int i = 0; i < n && run->life->must_only[n]; i++)
        if (run->life->edge[i][n]) {
            CHECK_EQ(weir_step_result(&up, step, life_id[i]), 0);
            CHECK_EQ(up.outcome, WEIR_DONE);
            CHECK_EQ(run->node[i].results, 1);
        }
    if (chance(2))
        weir_sleep(weir_now() + chance(4) * MS);
    return chance(6) ? 0 : chance(2) ? -EIO : WEIR_ECANCELED;
}

static void life_result(const weir_node_result *result, void *n_arg)
{
    weir_run_stats stats = { .size = sizeof(stats) };
    int n = (int)(intptr_t)n_arg;

    for (int i = 0; i < LIFE_RUNS; i++) {
        struct life_run *run = &lives->run[i];
        if (run->task != result->run)
            continue;
        CHECK(run->node[n].results++ == 0);
        CHECK(!run->settled);
        CHECK_EQ(weir_run_stats_get(&stats, result->run), 0);
        return;
    }
}

static weir_judgement life_judge(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)step;
    (void)arg;
    return edges->succeeded >= 2 ? WEIR_JUDGE_START : WEIR_JUDGE_WAIT;
}

static void life_build(struct life *life)
{
    weir_node *node[LIFE_NODES];

    life->flow = new_flow("life");
    life->nodes = 2 + chance(LIFE_NODES - 1);
    for (uint32_t n = 0; n < life->nodes; n++) {
        bool own = chance(4) == 0;
        snprintf(life_id[n], sizeof(life_id[n]), "n%d", (int)n);
        life->must_only[n] = chance(2);
        CHECK_EQ(
            weir_flow_node(&node[n], life->flow, life_id[n], life_body, (void *)(intptr_t)n,
                           WEIR_NODE(.begin = chance(2) ? life_begin : NULL, .result = life_result,
                                     .callback_arg = (void *)(intptr_t)n,
                                     .interrupt = chance(3) == 0, .never_skip = chance(6) == 0,
                                     .judge = life->must_only[n] || chance(6) ? NULL : life_judge,
                                     .task = own, .group = own && chance(2) ? "other" : NULL,
                                     .retries = own ? chance(3) : 0, .backoff_ms = chance(3),
                                     .deadlines = { .run_ms = own && chance(3) == 0 ? 2 : 0 })),
            0);
        for (uint32_t i = 0; i < n; i++) {
            static const weir_need kind[] = { WEIR_MUST, WEIR_ANY, WEIR_OPTIONAL, WEIR_AFTER,
                                              WEIR_NONE_FAILED };
            life->edge[i][n] = chance(3) == 0;
            if (life->edge[i][n])
                needs(node[n], node[i], life->must_only[n] ? WEIR_MUST : kind[chance(5)]);
        }
    }
}

static void life_over(struct life *life, struct life_run *run)
{
    CHECK_EQ(weir_task_wait(NULL, run->task, WEIR_FOREVER), 0);
    run->settled = true;
    for (uint32_t n = 0; n < life->nodes; n++) {
        CHECK_EQ(run->node[n].results, 1);
        CHECK(result_in(run->task, life_id[n]).outcome != WEIR_UNSETTLED);
    }
}

SIM_TEST(test_lives_by_chance, 1500)
{
    static struct life life;
    weir_executor *ex =
        new_executor(WEIR_POLICY(.workers = 1 + chance(3), .group_limit = 1 + chance(3),
                                 .group_queue_max = chance(4)   ? 0
                                                    : chance(2) ? WEIR_NO_QUEUE
                                                                : 2,
                                 .rejection = chance(2) ? WEIR_ABORT : WEIR_CALLER_RUNS));

    life = (struct life){ .nodes = 0 };
    lives = &life;
    life_build(&life);
    for (int i = 0; i < LIFE_RUNS; i++) {
        struct life_run *run = &life.run[i];
        run->life = &life;
        int rc = weir_flow_start(
            &run->task, life.flow, group_of(ex, "g"),
            WEIR_RUN(.input = run, .deadline_ms = chance(3) ? 0 : 1 + chance(6),
                     .interrupt = chance(3) == 0, .times = chance(2), .skip = (weir_skip)chance(4)),
            NULL);
        CHECK_EQ(rc, 0);
    }
    for (int i = 0; i < 6; i++) {
        weir_sleep(weir_now() + chance(3) * MS);
        if (chance(3) == 0)
            weir_task_cancel(life.run[chance(LIFE_RUNS)].task);
        if (chance(4) == 0)
            weir_group_resize(group_of(ex, "g"), 1 + chance(4), 0, 0);
        if (chance(12) == 0)
            weir_group_evict(ex, "g", chance(4));
    }
    if (chance(8) == 0)
        weir_executor_close(ex, (int)chance(4));
    for (int i = 0; i < LIFE_RUNS; i++)
        life_over(&life, &life.run[i]);
    if (chance(2)) {
        CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
        check_books(ex);
    }
    for (int i = 0; i < LIFE_RUNS; i++)
        weir_task_unref(life.run[i].task);
    weir_flow_free(life.flow);
    weir_executor_free(ex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_body_cannot_wait_for_its_own_run),
        cmocka_unit_test(test_a_result_callback_cannot_wait_for_its_own_run),
        cmocka_unit_test(test_a_result_callback_of_a_cancelled_node_cannot_wait_for_its_run),
        cmocka_unit_test(test_a_wait_for_a_run_that_could_never_end),
        cmocka_unit_test(test_a_cancel_during_the_start),
        cmocka_unit_test(test_a_long_callback_does_not_keep_the_next_node_from_another_worker),
        cmocka_unit_test(test_freeing_the_flow_and_the_executor_under_a_run),
        cmocka_unit_test(test_a_group_without_room_rejects_ready_nodes),
        cmocka_unit_test(test_an_evicted_group_rejects_waiting_nodes),
        cmocka_unit_test(test_drain_waits_for_runs),
        cmocka_unit_test(test_values_and_the_input_live_to_the_last_unref),
        cmocka_unit_test(test_a_start_that_is_refused),
        cmocka_unit_test(test_a_body_may_look_at_its_run_after_the_run_is_gone),
        cmocka_unit_test(test_every_allocation_failing_once),
        cmocka_unit_test(test_lives_by_chance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
