/* A flow: what was built, and what is made of it when it freezes.
 *
 * While it is built, nodes stand in chunks, so that handles stay valid, and edges in one array, by handle or by id. Frozen,
 * it is flat: a node is a number, its edges are ranges of arrays, sorted by node. Nothing of that ever changes again, so
 * runs read it without a lock.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FLOW_GRAPH_H
#define WR_FLOW_GRAPH_H

#include "base/atomic.h"
#include "base/lock.h"

#include <assert.h>
#include <weir/flow.h>

enum {
    WR_CHUNK = 256, /* nodes of a chunk */
#ifdef WEIR_SIM
    WR_LARGE = 2, /* so that small graphs go that way, too */
#else
    WR_LARGE = 1024, /* runs of this many nodes or more are calm at first; see run.h */
#endif
    WR_NODES_MAX = (1 << 30) - 1, /* so that a target has two bits left */
    WR_NODE_NONE = WR_NODES_MAX,  /* no node */
};

/* The options of a node, unless all of them have their defaults. */
struct wr_extra {
    weir_node_options options; /* strings in it are copies, in the same allocation */
};

struct weir_node {
    struct weir_flow *flow;
    uint32_t index; /* WR_NODE_NONE: it was removed */
    weir_node_fn *fn;
    void *arg;
    char *id;
    struct wr_extra *extra; /* NULL: all options have their defaults */
    weir_node *same_hash;   /* while errors are looked for, and after: nodes by id */
};

/* An edge as it was declared: either end by handle, or by id. */
struct wr_declared {
    weir_node *up, *down; /* NULL: by id */
    char *up_id, *down_id;
    weir_need need;
};

/* The function of a node. Apart from the rest, as heirs are: a chain of plain nodes needs nothing else, and what it costs
 * is mostly the memory that it has to read. */
struct wr_body {
    weir_node_fn *fn; /* NULL: it has a sub-flow */
    void *arg;
};

/* What else a run needs to know of a node that it runs. `out_at` is the first of its edges; those of node n end where those
 * of n + 1 begin. */
struct wr_hot {
    uint32_t flags;
    uint32_t out_at;
    uint32_t join; /* WR_F_SLOW: its place among the joins */
    uint32_t own;  /* WR_F_OWN: its place among the nodes that are tasks of their own */
};

enum wr_node_flags {
    WR_F_OWN = 1 << 0,    /* a task of its own, or a sub-flow */
    WR_F_BEGIN = 1 << 1,  /* `begin` is called */
    WR_F_RESULT = 1 << 2, /* `result` is called */
    WR_F_BOUND = 1 << 3,  /* param_of */
    WR_F_SLOW = 1 << 4,   /* not only WR_MUST: its edges are counted by kind, in a join */
    WR_F_EARLY = 1 << 5,  /* may start before all nodes before it have ended */
    WR_F_JUDGE = 1 << 6,
    WR_F_KEEP = 1 << 7, /* never_skip */
    WR_F_INTERRUPT = 1 << 8,
    WR_F_DROP = 1 << 9,
    WR_F_TELLS_SLOWLY =
        1 << 10,          /* some node after it is SLOW, EARLY or OWN, or does not count it */
    WR_F_PLAIN = 1 << 11, /* none of AT_START and AT_END */
    WR_F_FATAL = 1 << 12,
    /* Flags that its start, or its end, has to look at; a node without any of them is plain. */
    WR_F_AT_START = WR_F_OWN | WR_F_BEGIN | WR_F_BOUND | WR_F_INTERRUPT,
    WR_F_AT_END = WR_F_BEGIN | WR_F_RESULT | WR_F_INTERRUPT | WR_F_TELLS_SLOWLY | WR_F_FATAL,
};

/* A target of an edge: the node's number, and how it is told. */
enum { WR_TO_SLOW = 1u << 30, WR_TO_NONE = 1u << 31 /* the edge does not count */ };

static inline uint32_t wr_target(uint32_t out)
{
    return out & WR_NODES_MAX;
}

/* How the edges of a node with several kinds stand; see plan.h. In the graph: before any has ended. */
struct wr_join {
    uint32_t left[6], done[6];        /* by kind: nodes that have not ended; that succeeded */
    uint32_t failed, skipped;         /* of all kinds */
    uint32_t none_failed, none_ended; /* of WEIR_NONE_FAILED: failed; ended otherwise */
    uint32_t at_least;
    uint32_t triggers; /* of a judge: ends that it has not seen */
};

struct weir_flow {
    _Atomic uint32_t references; /* the owner's, and one per run or node that has it as sub-flow */
    struct wr_lock lock;         /* for the freeze: everything above the line below */
    _Atomic bool frozen;
    char *name;
    weir_node **chunk;
    uint32_t chunks, places; /* places that are in use, also by nodes that were removed */
    uint32_t count;
    weir_node **order; /* nodes by index, once some were removed; NULL: that is by place */
    size_t order_room;
    struct wr_declared *declared;
    size_t declared_count, declared_room;
    weir_node **by_id; /* a table by hash, of by_id_size, a power of two */
    uint32_t by_id_size;
    uint64_t seed; /* of the hash */

    /* Made by the freeze, in one allocation; from then on constant. */
    void *memory;
    uint32_t edges, joins, owns, roots, sinks;
    bool is_large;        /* its runs are calm at first; see run.h */
    bool has_early;       /* some node may start before all nodes before it have ended */
    bool has_drops;       /* some node has a `drop` */
    struct wr_body *body; /* by node */
    struct wr_hot *hot;   /* count + 1 */
    uint32_t *heir; /* of a plain node: the only one after it, if that is plain, must have it, and
                       has no other before it; else WR_NODE_NONE */
    uint32_t *out;  /* targets, by node */
    uint8_t *out_kind;    /* weir_need; beside WEIR_MUST only of nodes that are told slowly */
    uint32_t *in_at, *in; /* the same backwards */
    uint8_t *in_kind;
    uint64_t *word; /* what each node's word is at first; see plan.h */
    struct wr_join *join;
    uint32_t *own, *root, *sink; /* the nodes of these kinds */
    uint32_t *bound;             /* by node: whose value is its parameter; NULL: no node has one */
};

static inline weir_node *wr_flow_place(const struct weir_flow *flow, uint32_t place)
{
    return &flow->chunk[place / WR_CHUNK][place % WR_CHUNK];
}

static inline weir_node *wr_flow_node(const struct weir_flow *flow, uint32_t index)
{
    return flow->order ? flow->order[index] : wr_flow_place(flow, index);
}

static inline uint32_t wr_out_degree(const struct weir_flow *flow, uint32_t n)
{
    return flow->hot[n + 1].out_at - flow->hot[n].out_at;
}

struct weir_flow *wr_flow_ref(struct weir_flow *flow);
void wr_flow_unref(struct weir_flow *flow);
void wr_edge_fini(struct wr_declared *edge);

/* The node of that id; NULL: there is none. Of a frozen flow, or under its lock once wr_flow_index was called. */
weir_node *wr_flow_find(const struct weir_flow *flow, const char *id, size_t length);
int wr_flow_index(struct weir_flow *flow);

/* Errors as they are found: one sentence on each line. */
struct wr_text {
    char *text; /* NULL: nothing yet */
    size_t length, room;
    bool failed; /* for want of memory; what is there is to be thrown away */
};
void wr_text_add(struct wr_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Checks and freezes the flow, once. WEIR_EINVAL, with what is wrong in *text (may be NULL); WEIR_ENOMEM: try again. */
int wr_flow_freeze(struct weir_flow *flow, struct wr_text *text);

/* The same, with as much of what is wrong as the message (may be NULL) has room for. */
int wr_flow_freeze_or_say(struct weir_flow *flow, weir_message *message);

#endif
