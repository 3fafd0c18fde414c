/* Looking at runs: why a node has not ended, which nodes decided how long it took, and pictures.
 * SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "support/flow_support.h"

static char *why_text(weir_task *run, const char *id)
{
    char *text = NULL;

    CHECK_EQ(weir_run_why(&text, run, id), 0);
    return text;
}

static void check_why(weir_task *run, const char *id, const char *wanted)
{
    char *text = why_text(run, id);

    if (strcmp(text, wanted) != 0)
        weir_sim_fail("%s is said, not %s", text, wanted);
    free(text);
}

/* fetch -> parse -> {index, store} -> report; the group runs one at a time */
static weir_flow *pipeline(void)
{
    weir_flow *flow = new_flow("pipeline");
    weir_node *fetch, *parse, *store, *mail, *report;

    forget_nodes();
    fetch = add(flow, "fetch", 10);
    parse = add(flow, "parse", 20);
    store = add_with(flow, "store", 30, WEIR_NODE(.group = "disk"));
    mail = add(flow, "mail", 5);
    report = add(flow, "report", 5);
    must(parse, fetch);
    must(store, parse);
    must(report, store);
    needs(report, mail, WEIR_AFTER);
    return flow;
}

SIM_TEST(test_why_goes_down_to_the_limit_that_holds_the_chain, 30)
{
    weir_flow *flow = pipeline();
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .until_ms = 100 };
    weir_task *holds_g = submit(ex, "g", &body), *holds_disk = submit(ex, "disk", &body), *run;

    sleep_until(1);
    run = start(flow, group_of(ex, "g"), NULL);
    check_why(run, "report",
              "node \"report\" waits for must \"store\" (waiting), after \"mail\" (ready)\n"
              "node \"mail\" is ready: the group is at its limit (group \"g\": 1 of 1 in use)\n");
    check_why(run, "store",
              "node \"store\" waits for must \"parse\" (waiting)\n"
              "node \"parse\" waits for must \"fetch\" (ready)\n"
              "node \"fetch\" is ready: the group is at its limit (group \"g\": 1 of 1 in use)\n");
    CHECK_EQ(why_of(run), WEIR_REASON_FLOW);
    sleep_until(105);
    check_why(run, "fetch", "node \"fetch\" is running\n");
    check_why(run, "mail",
              "node \"mail\" is ready: the group is at its limit (group \"g\": 1 of 1 in use)\n");
    check_done(weir_task_ref(run));
    check_why(run, NULL, "every node of the run has ended\n");
    check_why(run, "store", "node \"store\" is done\n");
    weir_task_unref(run);
    check_done(holds_g);
    check_done(holds_disk);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_why_says_how_a_node_ended, 20)
{
    weir_flow *flow = pipeline();
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_task *run;

    node_seen("parse")->error = -EIO;
    run = start(flow, group_of(ex, "g"), NULL);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    check_why(run, "parse", "node \"parse\" is failed: Input/output error\n");
    check_why(run, "report",
              "node \"report\" is failed: a node that it depends on did not succeed (\"parse\")\n");
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

/* "page" must have "user"; nothing else holds it back, though "disk" is held for 100 ms. */
static weir_flow *page(weir_need other)
{
    weir_flow *flow = new_flow("page");
    weir_node *page, *avatar;

    forget_nodes();
    page = add_with(flow, "page", 5, WEIR_NODE(.at_least = other == WEIR_AT_LEAST ? 1 : 0));
    avatar = add_with(flow, "avatar", 5, WEIR_NODE(.group = "disk"));
    must(page, add(flow, "user", 20));
    needs(page, avatar, other);
    if (other == WEIR_ANY || other == WEIR_AT_LEAST)
        needs(page, add(flow, "cache", 1), other); /* which is enough */
    return flow;
}

SIM_TEST(test_why_names_only_nodes_that_hold_the_node_back, 20)
{
    static const weir_need kinds[] = { WEIR_OPTIONAL, WEIR_ANY, WEIR_AT_LEAST, WEIR_NONE_FAILED };
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 4));

    CHECK_EQ(weir_group_resize(group_of(ex, "disk"), 1, 0, 0), 0);
    for (int i = 0; i < 4; i++) {
        weir_flow *flow = page(kinds[i]);
        struct body body = { .until_ms = 100 * (i + 1) };
        weir_task *holds = submit(ex, "disk", &body), *run = start(flow, group_of(ex, "g"), NULL);
        sleep_until(100 * i + 10);
        check_why(run, "page",
                  "node \"page\" waits for must \"user\" (running)\n"
                  "node \"user\" is running\n");
        check_done(run);
        check_done(holds);
        weir_flow_free(flow);
    }
    weir_executor_free(ex);
}

static int quick(void **value, void *arg, weir_step *step)
{
    (void)arg;
    (void)step;
    *value = NULL;
    return 0;
}

SIM_TEST(test_why_of_a_long_chain_leaves_out_its_middle, 2)
{
    weir_flow *flow = new_flow("long");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 1));
    struct body body = { .until_ms = 10 };
    weir_task *holds = submit(ex, "g", &body), *run;
    weir_node *node, *before = NULL;
    char id[16], *text;

    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof(id), "%d", i);
        CHECK_EQ(weir_flow_node(&node, flow, id, quick, NULL, NULL), 0);
        if (before)
            must(node, before);
        before = node;
    }
    run = start(flow, group_of(ex, "g"), NULL);
    text = why_text(run, NULL);
    CHECK(strstr(text, "... and 988 nodes in between\n"));
    CHECK(strstr(text, "node \"0\" is ready"));
    free(text);
    check_done(run);
    check_done(holds);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_the_critical_path_tells_its_nodes_and_its_waits, 30)
{
    weir_flow *flow = pipeline();
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_critical_path path = { .size = sizeof(path) };
    struct body body = { .until_ms = 50 };
    weir_task *holds = submit(ex, "disk", &body), *run;
    static const char *const wanted[] = { "fetch", "parse", "store", "report" };

    run = start(flow, group_of(ex, "g"), WEIR_RUN(.times = true));
    check_done(weir_task_ref(run));
    CHECK_EQ(weir_run_critical_path(&path, run), 0);
    CHECK_EQ(path.count, 4);
    for (int i = 0; i < 4; i++)
        CHECK(strcmp(path.id[i], wanted[i]) == 0);
    CHECK_EQ(path.ran_ns, (10 + 20 + 30 + 5) * MS);
    CHECK(path.waited_ns >= 15 * MS &&
          path.waited_ns <= 25 * MS); /* "disk" was held; mail may go first */
    free(path.memory);
    weir_task_unref(run);
    forget_run();
    run = start(flow, group_of(ex, "g"), NULL);
    CHECK_EQ(weir_run_critical_path(&path, run), WEIR_EINVAL); /* it has no times */
    check_done(run);
    CHECK_EQ(weir_run_critical_path(&path, holds), WEIR_EINVAL); /* it is no run */
    check_done(holds);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

static void check_path(weir_task *run, const char *wanted, int64_t ran_ms, int64_t waited_ms)
{
    weir_critical_path path = { .size = sizeof(path) };
    char ids[64] = "";

    CHECK_EQ(weir_run_critical_path(&path, run), 0);
    for (size_t i = 0; i < path.count; i++) {
        strcat(ids, i ? " " : "");
        strcat(ids, path.id[i]);
    }
    if (strcmp(ids, wanted) != 0)
        weir_sim_fail("the path is %s, not %s", ids, wanted);
    CHECK_EQ(path.ran_ns, ran_ms * MS);
    CHECK_EQ(path.waited_ns, waited_ms * MS);
    free(path.memory);
}

/* a -> b -> c, of which b never runs: a fails, and c comes after it all the same. */
SIM_TEST(test_the_critical_path_goes_through_nodes_that_never_ran, 20)
{
    weir_flow *flow = new_flow("after");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_node *a, *b, *c;
    weir_task *run;

    forget_nodes();
    a = add(flow, "a", 10);
    b = add(flow, "b", 10);
    c = add(flow, "c", 5);
    node_seen("a")->error = -EIO;
    must(b, a);
    needs(c, b, WEIR_AFTER);
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.times = true));
    check_done(weir_task_ref(run));
    check_path(run, "a b c", 15, 0);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

/* So far, and in the end: what decided it never began. */
SIM_TEST(test_the_critical_path_ends_with_the_node_a_limit_holds, 20)
{
    weir_flow *flow = new_flow("held");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    struct body body = { .until_ms = 500 };
    weir_task *holds = submit(ex, "disk", &body), *run;
    weir_node *a, *b;

    forget_nodes();
    a = add(flow, "a", 10);
    b = add_with(flow, "b", 10, WEIR_NODE(.group = "disk"));
    must(b, a);
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.times = true, .deadline_ms = 100));
    sleep_until(50);
    check_path(run, "a b", 10, 40);
    CHECK_EQ(weir_task_wait(NULL, run, WEIR_FOREVER), 0);
    sleep_until(200);
    check_path(run, "a b", 10, 90);
    weir_task_unref(run);
    check_done(holds);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

static int fails_once(void **value, void *tries, weir_step *step)
{
    (void)value;
    (void)step;
    weir_sleep(weir_now() + 10 * MS);
    return ++*(int *)tries == 1 ? -EIO : 0;
}

SIM_TEST(test_a_pause_between_tries_is_no_wait_for_a_limit, 20)
{
    weir_flow *flow = new_flow("tries");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2));
    weir_task *run;
    int tries = 0;

    CHECK_EQ(weir_flow_node(NULL, flow, "a", fails_once, &tries,
                            WEIR_NODE(.retries = 1, .backoff_ms = 30)),
             0);
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.times = true));
    check_done(weir_task_ref(run));
    check_path(run, "a", 10 + 30 + 10, 0);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

SIM_TEST(test_a_flow_and_a_run_are_drawn, 10)
{
    weir_flow *flow = new_flow("a \"flow\"");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 2));
    weir_node *a, *b;
    weir_task *run;
    char *text = NULL;

    forget_nodes();
    a = add(flow, "a\\b", 10);
    b = add(flow, "<c> & d", 5);
    needs(b, a, WEIR_ANY);
    CHECK_EQ(weir_flow_picture(&text, flow, WEIR_PICTURE_DOT), 0);
    CHECK(strcmp(text, "digraph \"a \\\"flow\\\"\" {\n"
                       "    rankdir=LR;\n"
                       "    node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\"];\n"
                       "    n0 [label=\"a\\\\b\"];\n"
                       "    n1 [label=\"<c> &amp; d\"];\n"
                       "    n0 -> n1 [style=dashed, label=\"any\"];\n"
                       "}\n") == 0);
    free(text);
    CHECK_EQ(weir_flow_picture(&text, flow, WEIR_PICTURE_TRACE), WEIR_EINVAL);
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.times = true));
    check_done(weir_task_ref(run));
    CHECK_EQ(weir_run_picture(&text, run, WEIR_PICTURE_MERMAID), 0);
    CHECK(strcmp(text, "flowchart LR\n"
                       "    n0(\"a\\b<br>done 10.0 ms\")\n"
                       "    style n0 fill:#d7f5dd,stroke:#2da44e\n"
                       "    n1(\"#60;c#62; #38; d<br>done 5.0 ms\")\n"
                       "    style n1 fill:#d7f5dd,stroke:#2da44e\n"
                       "    n0 -. \"any\" .-> n1\n") == 0);
    free(text);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
}

/* ---- timelines --------------------------------------------------------------------------------------- */

static double number(const struct wr_json *event, const char *name)
{
    struct wr_json value;

    CHECK(wr_json_member(&value, event, name, strlen(name)));
    return strtod(value.text, NULL);
}

struct slice_seen {
    double track, from, to;
};

static bool is_inside(const struct slice_seen *slice, const struct wr_json *arrow)
{
    double when = number(arrow, "ts");

    return number(arrow, "tid") == slice->track && when >= slice->from && when < slice->to;
}

/* Slices of one track must not overlap, and an arrow begins inside of one: viewers bind it to that. Answers how many slices
 * and arrows there are. */
static void check_trace(const char *text, int *slices, int *arrows)
{
    struct wr_json all, events, event, ph;
    struct slice_seen slice[64];
    double end[64] = { 0 };
    int bound = 0;

    CHECK_EQ(wr_json_parse(&all, NULL, text, strlen(text)), 0);
    CHECK(wr_json_member(&events, &all, "traceEvents", 11));
    *slices = *arrows = 0;
    for (size_t i = 0; wr_json_element(&event, &events, i); i++) {
        CHECK(wr_json_member(&ph, &event, "ph", 2));
        *arrows += ph.text[1] == 's';
        for (int k = 0; ph.text[1] == 's' && k < *slices; k++)
            bound += is_inside(&slice[k], &event);
        if (ph.text[1] != 'X')
            continue;
        int track = (int)number(&event, "tid");
        CHECK(track < 64 && number(&event, "ts") >= end[track] - 0.0005);
        end[track] = number(&event, "ts") + number(&event, "dur");
        slice[(*slices)++] = (struct slice_seen){ track, number(&event, "ts"), end[track] };
    }
    CHECK_EQ(bound, *arrows);
}

SIM_TEST(test_the_timeline_of_a_run, 30)
{
    weir_flow *inner = pipeline(), *flow = new_flow("outer");
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = 2, .group_limit = 3));
    weir_node *sub, *last;
    weir_task *run;
    int slices, arrows;
    char *text = NULL;

    CHECK_EQ(weir_flow_node(&sub, flow, "sub", NULL, NULL, WEIR_NODE(.flow = inner)), 0);
    last = add(flow, "last", 5);
    must(last, sub);
    run = start(inner, group_of(ex, "g"), WEIR_RUN(.times = true));
    check_done(weir_task_ref(run));
    CHECK_EQ(weir_run_picture(&text, run, WEIR_PICTURE_TRACE), 0);
    check_trace(text, &slices, &arrows);
    CHECK(slices == 5 && arrows == 4);
    free(text);
    weir_task_unref(run);
    forget_run();
    run = start(flow, group_of(ex, "g"), WEIR_RUN(.times = true));
    check_done(weir_task_ref(run));
    CHECK_EQ(weir_run_picture(&text, run, WEIR_PICTURE_TRACE), 0);
    check_trace(text, &slices, &arrows);
    CHECK(slices == 6 && arrows == 4); /* those inside of the sub-flow, which has no slice itself */
    CHECK(strstr(text, "\"sub/fetch\""));
    free(text);
    weir_task_unref(run);
    weir_executor_free(ex);
    weir_flow_free(flow);
    weir_flow_free(inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_why_goes_down_to_the_limit_that_holds_the_chain),
        cmocka_unit_test(test_why_says_how_a_node_ended),
        cmocka_unit_test(test_why_names_only_nodes_that_hold_the_node_back),
        cmocka_unit_test(test_why_of_a_long_chain_leaves_out_its_middle),
        cmocka_unit_test(test_the_critical_path_tells_its_nodes_and_its_waits),
        cmocka_unit_test(test_the_critical_path_goes_through_nodes_that_never_ran),
        cmocka_unit_test(test_the_critical_path_ends_with_the_node_a_limit_holds),
        cmocka_unit_test(test_a_pause_between_tries_is_no_wait_for_a_limit),
        cmocka_unit_test(test_a_flow_and_a_run_are_drawn),
        cmocka_unit_test(test_the_timeline_of_a_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
