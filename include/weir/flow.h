/* Flows: graphs of tasks.
 *
 * A flow is built once: nodes, and edges that say what each node needs of the nodes before it. Its first start checks and
 * freezes it; from then on it can be started any number of times, also at the same time. Each start makes a run, and a
 * run is a task: weir_task_wait, _cancel, _on_done, _fd, _why and _unref are the same calls as for any task.
 *
 *     weir_flow_node(&a, flow, "a", fetch, NULL, NULL);
 *     weir_flow_node(&b, flow, "b", parse, NULL, WEIR_NODE(.param_of = "a"));
 *     weir_node_needs(b, a, WEIR_MUST);
 *     weir_flow_start(&run, flow, group, WEIR_RUN(.deadline_ms = 200), NULL);
 *     weir_task_wait(&result, run, WEIR_FOREVER);
 *
 * A plain node is no task of its own. Its body runs inside of a turn: a task of the run's group that runs ready nodes one
 * after the other. So the group's limit bounds how many nodes of the run execute at a time, and the permit of a node
 * is that of the turn it runs in. A node whose options name a group, a deadline, a priority, a cost or retries, or ask for
 * it (`task`), is a task of its own. What a policy's rejection_fn makes of such a task is the node's result; nodes that get
 * no turn are WEIR_REJECTED, whatever that function answers.
 *
 * Of a run that has settled, no node changes its state any more and no callback is still to come. A body that still runs
 * then (the run was cancelled, or its deadline passed) makes no callback, and what it returns is dropped.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_FLOW_H
#define WEIR_FLOW_H

#include <weir/group.h>
#include <weir/task.h>

WEIR_BEGIN_DECLS

typedef struct weir_flow weir_flow; /* owned: _new / _free */
typedef struct weir_node weir_node; /* borrowed: lives as long as its flow */
typedef struct weir_step weir_step; /* borrowed: a node of a run, during the call that gets it */

/* The body of a node. `arg` is the node's parameter. It may store a value, which then belongs to the run. Returns 0, or an
 * error as a task's body does; WEIR_PENDING only if the node is a task of its own. */
typedef int weir_node_fn(void **value, void *arg, weir_step *step);

/* What a node needs of a node before it. Edges are judged by kind: a node starts when every kind that it has holds, and
 * fails as soon as one of them can no longer hold. */
typedef enum weir_need {
    WEIR_MUST = 0, /* all of these succeed */
    WEIR_OPTIONAL, /* does not count; but if a node has only such edges, they count as WEIR_ANY */
    WEIR_ANY,      /* one of these succeeds */
    WEIR_AT_LEAST, /* as many of these succeed as the node's `at_least` says */
    WEIR_AFTER,    /* all of these end, whatever the outcome */
    WEIR_NONE_FAILED, /* none of these has failed; a skipped node has not failed. Does not wait for
                         all: a node that has only such edges starts when the first one ends */
} weir_need;

/* How the edges of a node stand: for its `judge`. Skipped nodes count as `skipped`, not as `failed`. */
typedef struct weir_edges {
    uint32_t total, succeeded, failed, skipped, left;
} weir_edges;

/* What a judge decides. */
typedef enum weir_judgement {
    WEIR_JUDGE_WAIT = 0, /* until more nodes have ended */
    WEIR_JUDGE_START,
    WEIR_JUDGE_FAIL,
} weir_judgement;

/* Decides in place of the kinds of edges. Called each time nodes before this one have ended, with no lock held, one call
 * at a time for each node; weir_step_result tells about single nodes. A node that still waits when all nodes before it
 * have ended fails. A node that fails when one before it has succeeded is WEIR_FAILED with error WEIR_EJUDGED; its `cause`
 * is NULL if no node before it has failed. */
typedef weir_judgement weir_judge_fn(const weir_edges *edges, weir_step *step, void *arg);

/* One node of a run, as it stands or as it ended. What it points to is valid until the run's last unref. */
typedef struct weir_node_result {
    size_t size;
    const char *id;
    weir_outcome outcome; /* WEIR_UNSETTLED: it has not ended */
    int error;
    weir_reason reason; /* WEIR_REASON_DEPENDENCY, WEIR_REASON_NOT_NEEDED, or as of a task */
    void *value;        /* of its body; if it did not succeed, the node's `fallback` */
    const char *cause;  /* the id of the node that the chain of failures or skips began with which
                           decided this one; NULL: no other node decided it */
    /* Only with weir_run_options.times; 0: not yet, or never. Of several tries it is the first that starts. */
    weir_time ready_at, started_at, ended_at;
    weir_task *run; /* the run; no reference is taken */
} weir_node_result;
#define WEIR_NODE_RESULT                 \
    {                                    \
        .size = sizeof(weir_node_result) \
    }

typedef struct weir_node_options { /* zero in any field asks for its default; all of it is copied */
    size_t size;
    void *fallback; /* the value others read if the node does not succeed; belongs to the flow */
    void (*drop)(void *value); /* called for each value of its body, after the run's last unref */
    const char *param_of;      /* its parameter is the value of the node with this id, which must
                                   be before it on some path */
    uint32_t at_least;         /* how many of its WEIR_AT_LEAST edges */
    weir_judge_fn *judge;      /* decides in place of the kinds of edges */
    void *judge_arg;
    /* `begin` is called right before the body, in the same thread; if it answers an error, the node fails with that and
     * the body does not run. `result` is called exactly once for each run, when the node has ended, whatever the
     * outcome, after `begin`, and before any node after it starts. Both are called with no lock held. A wait for the run
     * in one of them, which ends after it, answers WEIR_EDEADLK. */
    int (*begin)(weir_step *step, void *arg);
    void (*result)(const weir_node_result *result, void *arg);
    void *callback_arg;
    bool never_skip; /* the node runs even if no other node needs it */
    bool interrupt;  /* the node may be cancelled while its body runs, or is about to: when no other
                        node needs it any more, or when the run's deadline passes. The body is asked
                        to end */
    bool fatal;      /* unless the node succeeds, or is not needed, the run is cancelled at once,
                        for WEIR_REASON_DEPENDENCY */
    /* A sub-flow in place of the body, frozen by this call. Its input is the node's parameter or, if that is NULL, the
     * run's input. The node ends as that run does; its value is that of the sub-flow's last node, if there is only one.
     * Of the options below only `group` and deadlines.total_ms are for sub-flows, and there is no `drop`. */
    weir_flow *flow;

    /* Any of these makes the node a task of its own. */
    bool task;
    const char *group; /* the key of its group; default: the run's group */
    uint8_t priority;
    uint32_t cost;
    weir_deadlines deadlines; /* counted from when the node is ready. total_ms is for all tries, the
                                 pauses between them, and nodes that the body adds; wait_ms and
                                 run_ms are for each try */
    uint32_t retries;         /* how often a body that failed is tried again */
    int64_t backoff_ms;       /* how long before the first retry; each next time twice as long */
    int64_t backoff_max_ms;   /* but at most this; default: 64 times backoff_ms */
} weir_node_options;
#define WEIR_NODE(...) WEIR_SIZED(weir_node_options, __VA_ARGS__)

/* ---- building ----------------------------------------------------------------------------------- */

/* Several threads may build one flow at the same time, and look at it meanwhile. */

/* Makes an empty flow. The name is copied; it stands in messages and pictures. WEIR_EINVAL: NULL, or longer than
 * WEIR_ID_MAX. WEIR_ENOMEM. */
int weir_flow_new(weir_flow **out, const char *name);

/* Frees a flow. Runs that are under way go on: they keep what they need of it. NULL is fine. */
void weir_flow_free(weir_flow *flow);

/* Adds a node. `out` may be NULL. The id is copied; it must not be empty, nor longer than WEIR_ID_MAX. Whether it is the
 * only one of its name, and whether ids that options name exist, is checked later: see weir_flow_check. WEIR_EINVAL: a
 * NULL, no body and no sub-flow, or both, a bad id, an option out of range. WEIR_EALREADY: the flow is frozen.
 * WEIR_EVERSION, WEIR_ENOMEM. */
int weir_flow_node(weir_node **out, weir_flow *flow, const char *id, weir_node_fn *fn, void *arg,
                   const weir_node_options *opt);

/* Adds an edge: `node` needs `upstream`. An edge that is added twice is one edge; if the kinds differ, WEIR_MUST wins, else
 * the first. WEIR_EINVAL: NULL, or an unknown kind. WEIR_EALREADY: the flow is frozen. WEIR_ENOMEM. */
int weir_node_needs(weir_node *node, weir_node *upstream, weir_need need);

/* Adds the same edge from its other end: `downstream` needs `node`. */
int weir_node_feeds(weir_node *node, weir_node *downstream, weir_need need);

/* Adds an edge between nodes by their ids; the nodes may be added later. */
int weir_flow_edge(weir_flow *flow, const char *upstream, const char *downstream, weir_need need);

/* Takes a node out again, with all edges to and from it, also those that were declared by its id. Its handle is of no use
 * any more: calls that get it answer WEIR_EINVAL, as this one does for NULL. WEIR_EALREADY: the flow is frozen. WEIR_ENOMEM.
 * This and the next two take time in proportion to the size of the flow. */
int weir_node_remove(weir_node *node);

/* Takes the edge between two nodes out again, however it was declared. 0: there was one. WEIR_EINVAL: there was none, or
 * NULL. WEIR_EALREADY. */
int weir_flow_edge_remove(weir_flow *flow, const char *upstream, const char *downstream);

/* Whether there is an edge; *need (may be NULL) gets its kind. Both nodes need not be there yet. */
bool weir_flow_edge_get(weir_need *need, weir_flow *flow, const char *upstream,
                        const char *downstream);

/* The node of that id; NULL: there is none. */
weir_node *weir_flow_find(weir_flow *flow, const char *id);

/* Checks the flow without freezing it. On WEIR_EINVAL *errors (may be NULL) gets all that is wrong, one sentence on each
 * line: unknown and duplicate ids, cycles (as a path of ids), nodes that need themselves, nodes of another flow, an at_least
 * that is impossible, a parameter of a node that is not before it. To be freed with free(3). WEIR_ENOMEM. */
int weir_flow_check(char **errors, weir_flow *flow);

/* The id of a node; valid as long as its flow. */
const char *weir_node_id(const weir_node *node);

/* ---- running ------------------------------------------------------------------------------------ */

/* What becomes of a node that has not started when other nodes make it needless, say the losers of WEIR_ANY. */
typedef enum weir_skip {
    WEIR_SKIP_DEMAND = 0, /* skipped if no path leads from it to a node that could still start */
    WEIR_SKIP_NEVER,
    WEIR_SKIP_CHAIN,     /* skipped only along nodes that are needed by one node alone */
    WEIR_SKIP_ONE_LEVEL, /* skipped if all nodes right after it have ended */
} weir_skip;

/* The parameter of a node in one run, in place of its `arg`. */
typedef struct weir_param {
    const char *id;
    void *arg;
} weir_param;

typedef struct weir_run_options { /* zero in any field asks for its default */
    size_t size;
    const char *id;                  /* as of a task */
    void *input;                     /* weir_step_input answers it */
    void (*drop_input)(void *input); /* called when no reference and no body is left */
    const weir_param *params;        /* copied */
    size_t param_count;
    /* Of the whole run, from its start; default: none. When it passes, nodes that have not ended become WEIR_TIMED_OUT,
     * and so does the run. */
    int64_t deadline_ms;
    bool interrupt; /* as if every node had it */
    bool times;     /* keep the times of every node */
    weir_skip skip;
    /* As weir_task_on_done. */
    void (*on_done)(weir_task *run, const weir_result *result, void *arg);
    void *on_done_arg;
} weir_run_options;
#define WEIR_RUN(...) WEIR_SIZED(weir_run_options, __VA_ARGS__)

/* Starts a run under the limits of `group`. *out gets a handle; if `out` is NULL, the run is detached. `opt` and `message`
 * may be NULL. The run becomes WEIR_DONE when every node without nodes after it is WEIR_DONE or WEIR_SKIPPED; else
 * WEIR_FAILED (or, if it was cancelled, WEIR_CANCELLED), with the error of the first of them that is not. Failures that
 * other nodes make up for do not count.
 *
 * weir_task_cancel cancels every node that has not ended, and asks running bodies to end. The callbacks of nodes are called
 * by the thread that cancels; on a deadline, by a thread of the executor's. The run settles after them.
 *
 * WEIR_EINVAL: a NULL, an option out of range, a parameter of an unknown node, or the flow has errors. After any error
 * `message` says what is wrong (weir_flow_check gives all errors of the flow in full). WEIR_ECLOSED, WEIR_ENOMEM, WEIR_EAGAIN, WEIR_EVERSION: as weir_submit. */
int weir_flow_start(weir_task **out, weir_flow *flow, weir_group *group,
                    const weir_run_options *opt, weir_message *message) WEIR_PARKS;

/* ---- inside of a body or callback ---------------------------------------------------------------- */

/* The id of the node. */
const char *weir_step_id(const weir_step *step);

/* The input that the run was started with. */
void *weir_step_input(const weir_step *step);

/* The run; also after it has settled, as long as the step is valid. No reference is taken. */
weir_task *weir_step_run(const weir_step *step);

/* How another node of the same run stands. WEIR_EINVAL: NULL, no size, or no such node. */
int weir_step_result(weir_node_result *out, const weir_step *step, const char *id);

/* Adds nodes to the run, from a body: as a sub-flow that starts when the body has returned 0, and that the nodes after this
 * one wait for. If the sub-flow fails, so does the node. The flow is freed with the run. Only once for each body.
 * WEIR_EINVAL: NULL, errors in the flow (`message` may be NULL), or not in a body. WEIR_EALREADY. WEIR_ENOMEM. After an
 * error the caller still owns the flow. */
int weir_step_expand(weir_step *step, weir_flow *flow, void *input, weir_message *message);

/* ---- looking at a run ----------------------------------------------------------------------------- */

/* How a node stands, during the run and after it. Nodes of a sub-flow are named by the path "node/inner"; they are there
 * once it has started.
 * WEIR_EINVAL: NULL, no size, not a run, or no such node. */
int weir_run_result(weir_node_result *out, weir_task *run, const char *id);

typedef struct weir_run_stats { /* a snapshot; figures may be a moment apart */
    size_t size;
    uint64_t nodes, waiting, ready, running; /* `ready`: nothing but limits holds it back */
    uint64_t succeeded, failed, timed_out, cancelled, rejected, skipped;
    uint64_t bytes; /* of memory, sub-flows left out */
} weir_run_stats;

/* Counts the nodes of a run. WEIR_EINVAL: NULL, no size, or not a run. */
int weir_run_stats_get(weir_run_stats *out, weir_task *run);

/* Says why a node has not ended: the edges it waits for and what those wait for, down to the limit that holds the chain;
 * with `id` NULL, of the whole run. *text gets sentences, one on each line, to be freed with free(3).
 * WEIR_EINVAL: NULL, not a run, or no such node. WEIR_ENOMEM. */
int weir_run_why(char **text, weir_task *run, const char *id);

/* The chain of nodes that decided how long the run took, so far or in all: each was made ready, or failed, by the one
 * before it. The last one may be ready, and held by a limit. */
typedef struct weir_critical_path {
    size_t size;
    size_t count;
    const char **id;   /* of the nodes, in order; freed with the struct's `memory` by free(3) */
    int64_t waited_ns; /* for limits: ready, but not started */
    int64_t ran_ns;    /* with pauses between tries */
    void *memory;
} weir_critical_path;

/* Finds the critical path of a run. WEIR_EINVAL: NULL, no size, or not a run that was started with `times`. WEIR_ENOMEM. */
int weir_run_critical_path(weir_critical_path *out, weir_task *run);

typedef enum weir_picture {
    WEIR_PICTURE_DOT = 1, /* for Graphviz */
    WEIR_PICTURE_MERMAID, /* for Markdown */
    WEIR_PICTURE_TRACE, /* JSON for the viewers of Chrome and Perfetto; of runs with `times` only */
} weir_picture;

/* Draws a flow, and freezes it as a start does. *text is to be freed with free(3). WEIR_EINVAL: NULL, the flow has errors, or
 * WEIR_PICTURE_TRACE, which needs a run. WEIR_ENOMEM. */
int weir_flow_picture(char **text, weir_flow *flow, weir_picture format);

/* Draws a run with the states of its nodes and, if it was started with `times`, their times. *text is to be freed with free(3).
 * WEIR_EINVAL: NULL, not a run, or WEIR_PICTURE_TRACE of a run without `times`. WEIR_ENOMEM. */
int weir_run_picture(char **text, weir_task *run, weir_picture format);

WEIR_END_DECLS

#endif
