/* Shared by tests of flows: nodes that do as they are told, and a record of what became of each.
 *
 * A node sleeps for `ms` of virtual time and ends as it is told; its begin and result callbacks are counted, and the order
 * of F8 is checked on the way: begin, body, result, each node after those that it needs.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_FLOW_SUPPORT_H
#define WR_TESTS_FLOW_SUPPORT_H

#include "support/executor_support.h"

enum { SEEN_MAX = 64 };

/* The orders of a node, and its record in the latest run. */
struct seen {
    const char *id;
    int64_t ms;
    int error;
    void *value;
    bool busy; /* blocks its worker instead of sleeping */
    int began, ran, results;
    int order; /* ended as the n-th, from 1 */
    weir_outcome outcome;
    int result_error;
    weir_reason reason;
    void *result_value;
    const char *cause;
    weir_time started, ended, told;
    bool saw_cancel;
    void *param;
    uintptr_t stack; /* where its body ran */
};

static struct seen seen[SEEN_MAX];
static int seen_count, ended_count;

static inline void forget_nodes(void)
{
    memset(seen, 0, sizeof(seen));
    seen_count = ended_count = 0;
}

/* The run has ended, and the next one is to be seen. */
static inline void forget_run(void)
{
    for (int i = 0; i < seen_count; i++)
        seen[i] = (struct seen){ .id = seen[i].id,
                                 .ms = seen[i].ms,
                                 .error = seen[i].error,
                                 .value = seen[i].value,
                                 .busy = seen[i].busy };
    ended_count = 0;
}

static inline struct seen *node_seen(const char *id)
{
    for (int i = 0; i < seen_count; i++)
        if (strcmp(seen[i].id, id) == 0)
            return &seen[i];
    weir_sim_fail("no node %s", id);
}

static inline int node_begin(weir_step *step, void *arg)
{
    struct seen *s = arg;

    CHECK(strcmp(weir_step_id(step), s->id) == 0);
    CHECK_EQ(s->began, 0);
    CHECK_EQ(s->results, 0);
    s->began++;
    return 0;
}

static inline int node_body_of(struct seen *s, void **value)
{
    int rc = 0;

    CHECK_EQ(s->ran, 0);
    s->ran++;
    s->started = weir_now();
    s->stack = (uintptr_t)__builtin_frame_address(0);
    if (s->ms && s->busy)
        weir_sim_busy(s->ms * MS);
    else if (s->ms)
        rc = weir_sleep(weir_now() + s->ms * MS);
    s->saw_cancel = weir_cancelled();
    s->ended = weir_now();
    *value = s->value;
    return rc ? rc : s->error;
}

static inline int node_body(void **value, void *arg, weir_step *step)
{
    (void)step;
    return node_body_of(arg, value);
}

static inline void node_result(const weir_node_result *result, void *arg)
{
    struct seen *s = arg;

    CHECK(strcmp(result->id, s->id) == 0);
    CHECK_EQ(s->results, 0);
    CHECK(result->outcome != WEIR_UNSETTLED);
    s->results++;
    s->order = ++ended_count;
    s->outcome = result->outcome;
    s->result_error = result->error;
    s->reason = result->reason;
    s->result_value = result->value;
    s->cause = result->cause;
    s->told = weir_now();
}

static inline struct seen *new_seen(const char *id, int64_t ms)
{
    struct seen *s = &seen[seen_count++];

    CHECK(seen_count <= SEEN_MAX);
    s->id = id;
    s->ms = ms;
    return s;
}

/* A node with callbacks; `options` may name anything but those. */
static inline weir_node *add_with(weir_flow *flow, const char *id, int64_t ms,
                                  const weir_node_options *options)
{
    struct seen *s = new_seen(id, ms);
    weir_node_options o = *options;
    weir_node *node = NULL;

    o.begin = node_begin;
    o.result = node_result;
    o.callback_arg = s;
    CHECK_EQ(weir_flow_node(&node, flow, id, node_body, s, &o), 0);
    return node;
}

static inline weir_node *add(weir_flow *flow, const char *id, int64_t ms)
{
    return add_with(flow, id, ms, WEIR_NODE());
}

static inline void must(weir_node *node, weir_node *upstream)
{
    CHECK_EQ(weir_node_needs(node, upstream, WEIR_MUST), 0);
}

static inline void needs(weir_node *node, weir_node *upstream, weir_need need)
{
    CHECK_EQ(weir_node_needs(node, upstream, need), 0);
}

static inline weir_flow *new_flow(const char *name)
{
    weir_flow *flow = NULL;

    CHECK_EQ(weir_flow_new(&flow, name), 0);
    return flow;
}

/* ---- running it ------------------------------------------------------------------------------------ */

static inline weir_task *start(weir_flow *flow, weir_group *group, const weir_run_options *options)
{
    weir_task *run = NULL;
    weir_message message;
    int rc = weir_flow_start(&run, flow, group, options, &message);

    if (rc)
        weir_sim_fail("start: %s %s", weir_strerror(rc), message.text);
    return run;
}

static inline weir_node_result result_in(weir_task *run, const char *id)
{
    weir_node_result result = WEIR_NODE_RESULT;

    CHECK_EQ(weir_run_result(&result, run, id), 0);
    return result;
}

/* Of each node with callbacks: one result, and the same that can be read. */
static inline void check_results(weir_task *run)
{
    for (int i = 0; i < seen_count; i++) {
        weir_node_result result = result_in(run, seen[i].id);
        CHECK_EQ(seen[i].results, 1);
        CHECK_EQ(result.outcome, seen[i].outcome);
        CHECK_EQ(result.error, seen[i].result_error);
        CHECK(result.value == seen[i].result_value);
        if (result.outcome == WEIR_DONE)
            CHECK_EQ(seen[i].began, 1);
        if (result.outcome == WEIR_SKIPPED)
            CHECK_EQ(seen[i].began + seen[i].ran, 0);
    }
}

/* Runs the flow in an executor of its own, with time from 0. */
static inline weir_result run_flow(weir_flow *flow, uint32_t workers, int64_t limit,
                                   const weir_run_options *options)
{
    weir_executor *ex = new_executor(WEIR_POLICY(.workers = workers, .group_limit = limit));
    weir_task *run = start(flow, group_of(ex, "g"), options);
    weir_result result = WEIR_RESULT;

    CHECK_EQ(weir_task_wait(&result, run, WEIR_FOREVER), 0);
    check_results(run);
    CHECK_EQ(weir_executor_drain(ex, WEIR_FOREVER), 0);
    check_results(run); /* nothing has changed */
    weir_task_unref(run);
    check_books(ex);
    weir_executor_free(ex);
    return result;
}

/* The same with enough of both, and a deadline. */
static inline weir_result run_for(weir_flow *flow, int64_t deadline_ms)
{
    return run_flow(flow, 2, 100, WEIR_RUN(.deadline_ms = deadline_ms));
}

static inline void check_settled(const weir_result *result, weir_outcome outcome, int64_t ms)
{
    CHECK_EQ(result->outcome, outcome);
    CHECK_EQ(result->ended_at, at(ms));
}

static inline void check_node(const char *id, weir_outcome outcome)
{
    struct seen *s = node_seen(id);

    if (s->outcome != outcome)
        weir_sim_fail("node %s: outcome %d, not %d", id, s->outcome, outcome);
}

/* DONE, and its body ran from then to then. */
static inline void check_ran(const char *id, int64_t from_ms, int64_t to_ms)
{
    struct seen *s = node_seen(id);

    check_node(id, WEIR_DONE);
    CHECK_EQ(s->ran, 1);
    if (s->started != at(from_ms) || s->ended != at(to_ms))
        weir_sim_fail("node %s ran from %lld to %lld us", id,
                      (long long)(s->started - at(0)) / 1000, (long long)(s->ended - at(0)) / 1000);
}

/* It was told of then. */
static inline void check_told(const char *id, weir_outcome outcome, int64_t ms)
{
    check_node(id, outcome);
    CHECK_EQ(node_seen(id)->told, at(ms));
}

/* ---- flows that several tests use ------------------------------------------------------------------ */

/* 0 -> 1 -> 2 */
static inline weir_flow *sequence(int64_t ms)
{
    weir_flow *flow = new_flow("sequence");
    weir_node *node[3];

    forget_nodes();
    node[0] = add(flow, "0", ms);
    node[1] = add(flow, "1", ms);
    node[2] = add(flow, "2", ms);
    must(node[1], node[0]);
    must(node[2], node[1]);
    return flow;
}

/* A body: its value is its parameter. */
static inline int gives(void **value, void *param, weir_step *step)
{
    (void)step;
    *value = param;
    return 0;
}

/* Two nodes, the second after the first. */
static inline weir_flow *pair_of(const weir_node_options *first, const weir_node_options *second)
{
    weir_flow *flow = new_flow("pair");
    weir_node *a, *b;

    forget_nodes();
    a = add_with(flow, "a", 10, first);
    b = add_with(flow, "b", 10, second);
    must(b, a);
    return flow;
}

static inline int does_nothing(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    return 0;
}

#endif
