/* Freezing a flow: everything that can be wrong with it, and the flat arrays that runs read.
 * Linear in nodes and edges, but for parameters of nodes that are not right before: then the nodes after each of those are
 * walked once more.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "flow/graph.h"
#include "flow/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

/* The flow while it freezes: edges by number, sorted by their target, without doubles. */
struct draft {
    struct weir_flow *flow;
    struct wr_text *text;
    bool wrong;
    uint32_t nodes;
    size_t edges;
    void *memory;
    uint32_t *in_at, *in; /* by target; nodes + 1 */
    uint8_t *in_kind;
    uint32_t *up, *down; /* as declared */
    uint8_t *kind;
    uint32_t *seen;  /* by node: marks */
    uint32_t *order; /* of nodes, each after all before it; at first: how many edges are left */
    uint32_t *rank;  /* by node: its place in that */
    uint32_t *out_at,
        *out; /* edges by source, once they are sorted; `out` takes the place of `up` */
    bool has_params;
    uint32_t *bound;      /* by node: whose value is its parameter; WR_NODE_NONE; see below */
    uint32_t *same_bound; /* the next one that is bound to the same; WR_NODE_NONE: none */
};

#define WRONG(draft, ...)                            \
    do {                                             \
        (draft)->wrong = true;                       \
        if ((draft)->text)                           \
            wr_text_add((draft)->text, __VA_ARGS__); \
    } while (0)

static const char *id_of(const struct draft *draft, uint32_t n)
{
    return wr_flow_node(draft->flow, n)->id;
}

/* ---- edges as declared ----------------------------------------------------------------------------- */

static weir_node *end_of(struct draft *draft, weir_node *node, const char *id, const char *other)
{
    if (node && node->flow != draft->flow)
        WRONG(draft, "node \"%s\" is of another flow, so it cannot have an edge with \"%s\"\n",
              node->id, other);
    if (node)
        return node->flow == draft->flow ? node : NULL;
    node = wr_flow_find(draft->flow, id, strlen(id));
    if (!node)
        WRONG(draft, "there is no node \"%s\" for an edge with \"%s\"\n", id, other);
    return node;
}

static void resolve_edges(struct draft *draft)
{
    for (size_t i = 0; i < draft->flow->declared_count; i++) {
        const struct wr_declared *edge = &draft->flow->declared[i];
        const char *up_id = edge->up ? edge->up->id : edge->up_id;
        const char *down_id = edge->down ? edge->down->id : edge->down_id;
        weir_node *up = end_of(draft, edge->up, up_id, down_id);
        weir_node *down = end_of(draft, edge->down, down_id, up_id);
        if (up && up == down)
            WRONG(draft, "node \"%s\" needs itself\n", up->id);
        if (!up || !down || up == down)
            continue;
        draft->up[draft->edges] = up->index;
        draft->down[draft->edges] = down->index;
        draft->kind[draft->edges++] = (uint8_t)edge->need;
    }
}

/* Sorts by target, in the order of declaration. */
static void sort_edges(struct draft *draft)
{
    uint32_t *at = draft->in_at;

    for (size_t i = 0; i < draft->edges; i++)
        at[draft->down[i] + 1]++;
    for (uint32_t n = 0; n < draft->nodes; n++)
        at[n + 1] += at[n];
    for (uint32_t n = 0; n < draft->nodes; n++)
        draft->seen[n] = at[n];
    for (size_t i = 0; i < draft->edges; i++) {
        uint32_t place = draft->seen[draft->down[i]]++;
        draft->in[place] = draft->up[i];
        draft->in_kind[place] = draft->kind[i];
    }
}

/* Of doubles the first stays, but WEIR_MUST wins. */
static void merge_doubles(struct draft *draft)
{
    uint32_t kept = 0, from = 0;

    memset(draft->seen, 0xff, draft->nodes * sizeof(draft->seen[0]));
    for (uint32_t n = 0; n < draft->nodes; n++) {
        uint32_t end = draft->in_at[n + 1], first = kept;
        for (; from < end; from++) {
            uint32_t up = draft->in[from], twin = draft->seen[up];
            if (twin != UINT32_MAX && twin >= first) {
                if (draft->in_kind[from] == WEIR_MUST)
                    draft->in_kind[twin] = WEIR_MUST;
                continue;
            }
            draft->seen[up] = kept;
            draft->in[kept] = up;
            draft->in_kind[kept++] = draft->in_kind[from];
        }
        draft->in_at[n] = first;
    }
    draft->in_at[draft->nodes] = kept;
    draft->edges = kept;
}

/* ---- what may be wrong ------------------------------------------------------------------------------ */

static void check_ids(struct draft *draft)
{
    for (uint32_t n = 0; n < draft->nodes; n++) {
        weir_node *node = wr_flow_node(draft->flow, n);
        if (wr_flow_find(draft->flow, node->id, strlen(node->id)) != node)
            WRONG(draft, "there are two nodes \"%s\"\n", node->id);
    }
}

static uint32_t count_kind(const struct draft *draft, uint32_t n, weir_need need)
{
    uint32_t count = 0;

    for (uint32_t i = draft->in_at[n]; i < draft->in_at[n + 1]; i++)
        count += draft->in_kind[i] == need;
    return count;
}

static void check_at_least(struct draft *draft, uint32_t n)
{
    const struct wr_extra *extra = wr_flow_node(draft->flow, n)->extra;
    uint32_t wanted = extra ? extra->options.at_least : 0;
    uint32_t count = count_kind(draft, n, WEIR_AT_LEAST);

    if (wanted > count)
        WRONG(draft, "node \"%s\" needs at least %u, but has only %u edge%s of that kind\n",
              id_of(draft, n), wanted, count, count == 1 ? "" : "s");
    else if (count && !wanted)
        WRONG(draft, "node \"%s\" has edges of the kind at_least: set at_least to 1 or more\n",
              id_of(draft, n));
}

/* Nodes in an order in which each comes after all before it. Answers how many were left over: they are on cycles, or after
 * one. */
static uint32_t sort_nodes(struct draft *draft)
{
    const uint32_t *out_at = draft->out_at, *out = draft->out;
    uint32_t first = 0, last = 0, *left = draft->seen;

    for (uint32_t n = 0; n < draft->nodes; n++) {
        left[n] = draft->in_at[n + 1] - draft->in_at[n];
        if (!left[n])
            draft->order[last++] = n;
    }
    while (first < last) {
        uint32_t n = draft->order[first];
        draft->rank[n] = first++;
        for (uint32_t i = out_at[n]; i < out_at[n + 1]; i++)
            if (--left[out[i]] == 0)
                draft->order[last++] = out[i];
    }
    return draft->nodes - last;
}

/* Some node before this one that is left over, too; there is one. */
static uint32_t left_before(const struct draft *draft, uint32_t n)
{
    uint32_t i = draft->in_at[n];

    while (!draft->seen[draft->in[i]])
        i++;
    return draft->in[i];
}

/* From here on backwards draft->rank has the walk's mark; `end` is where it met itself. */
static void print_cycle(struct draft *draft, uint32_t end)
{
    uint32_t length = 1, n = end;

    while ((n = left_before(draft, n)) != end)
        draft->order[length++] = n;
    draft->order[0] = end;
    WRONG(draft, "a cycle: %s", id_of(draft, end));
    while (length-- > 0)
        WRONG(draft, " -> %s", id_of(draft, draft->order[length]));
    WRONG(draft, "\n");
}

/* Every walk backwards from what is left over ends in a cycle, or where an earlier walk was. */
static void check_cycles(struct draft *draft)
{
    memset(draft->rank, 0, draft->nodes * sizeof(draft->rank[0]));
    for (uint32_t start = 0; start < draft->nodes; start++) {
        uint32_t n = start;
        if (!draft->seen[start])
            continue;
        while (!draft->rank[n]) {
            draft->rank[n] = start + 1;
            n = left_before(draft, n);
        }
        if (draft->rank[n] == start + 1)
            print_cycle(draft, n);
    }
    memset(draft->rank, 0, draft->nodes * sizeof(draft->rank[0])); /* there is no order */
}

/* ---- parameters ------------------------------------------------------------------------------------- */

/* draft->bound, beside nodes and WR_NODE_NONE: the parameter is of a node that does not exist, or is not before it. */
enum { UNKNOWN = WR_NODE_NONE + 1, NOT_BEFORE };

static const char *param_of(const weir_node *node)
{
    return node->extra ? node->extra->options.param_of : NULL;
}

static bool is_right_before(const struct draft *draft, uint32_t up, uint32_t n)
{
    for (uint32_t i = draft->in_at[n]; i < draft->in_at[n + 1]; i++)
        if (draft->in[i] == up)
            return true;
    return false;
}

/* Marks the nodes after `up`, however far, but none that comes after `last` in the order. draft->down is the list of nodes
 * still to be looked at. */
static void mark_after(struct draft *draft, uint32_t up, uint32_t last)
{
    uint32_t count = 0, *list = draft->down;

    list[count++] = up;
    while (count) {
        uint32_t n = list[--count];
        for (uint32_t i = draft->out_at[n]; i < draft->out_at[n + 1]; i++) {
            uint32_t after = draft->out[i];
            if (draft->seen[after] == up + 1 || draft->rank[after] > last)
                continue;
            draft->seen[after] = up + 1;
            list[count++] = after;
        }
    }
}

/* The nodes that are bound to `up`, from `first` on, are looked at together: else a long chain of nodes that all have the
 * value of the first would take time in proportion to its square. */
static void check_bound(struct draft *draft, uint32_t up, uint32_t first)
{
    uint32_t last = 0;

    for (uint32_t n = first; n != WR_NODE_NONE; n = draft->same_bound[n])
        last = draft->rank[n] > last ? draft->rank[n] : last;
    mark_after(draft, up, last);
    for (uint32_t n = first; n != WR_NODE_NONE; n = draft->same_bound[n])
        if (draft->seen[n] != up + 1)
            draft->bound[n] = NOT_BEFORE;
}

/* Finds the node that each parameter is of. Nodes whose parameter is not of a node right before them are put into lists, by
 * `first_bound`. */
static void resolve_params(struct draft *draft, uint32_t *first_bound)
{
    for (uint32_t n = 0; n < draft->nodes; n++)
        first_bound[n] = draft->bound[n] = WR_NODE_NONE;
    for (uint32_t n = 0; n < draft->nodes; n++) {
        const char *id = param_of(wr_flow_node(draft->flow, n));
        weir_node *up = id ? wr_flow_find(draft->flow, id, strlen(id)) : NULL;
        draft->has_params = draft->has_params || id;
        if (!up) {
            draft->bound[n] = id ? UNKNOWN : WR_NODE_NONE;
            continue;
        }
        draft->bound[n] = up->index;
        if (is_right_before(draft, up->index, n))
            continue;
        draft->same_bound[n] = first_bound[up->index];
        first_bound[up->index] = n;
    }
}

static void check_params(struct draft *draft)
{
    uint32_t *first_bound = draft->order; /* which is not needed any more */

    resolve_params(draft, first_bound);
    memset(draft->seen, 0, draft->nodes * sizeof(draft->seen[0]));
    for (uint32_t up = 0; up < draft->nodes; up++)
        if (first_bound[up] != WR_NODE_NONE)
            check_bound(draft, up, first_bound[up]);
    for (uint32_t n = 0; n < draft->nodes; n++) {
        const weir_node *node = wr_flow_node(draft->flow, n);
        if (draft->bound[n] == UNKNOWN)
            WRONG(draft, "the parameter of node \"%s\" is of node \"%s\", which does not exist\n",
                  node->id, param_of(node));
        else if (draft->bound[n] == NOT_BEFORE)
            WRONG(draft, "the parameter of node \"%s\" is of node \"%s\", which is not before it\n",
                  node->id, param_of(node));
    }
}

/* ---- the arrays ------------------------------------------------------------------------------------- */

/* The only kind of a node's edges is WEIR_OPTIONAL: then they count as WEIR_ANY. */
static void settle_kinds(struct draft *draft, uint32_t n)
{
    uint32_t first = draft->in_at[n], end = draft->in_at[n + 1];

    if (end > first && count_kind(draft, n, WEIR_OPTIONAL) == end - first)
        for (uint32_t i = first; i < end; i++)
            draft->in_kind[i] = WEIR_ANY;
}

static bool is_own(const weir_node_options *o)
{
    return o->flow || o->task || o->group || o->priority || o->cost || o->deadlines.wait_ms ||
           o->deadlines.run_ms || o->deadlines.total_ms || o->retries;
}

static uint32_t flags_of(const struct draft *draft, uint32_t n)
{
    const struct wr_extra *extra = wr_flow_node(draft->flow, n)->extra;
    uint32_t edges = draft->in_at[n + 1] - draft->in_at[n];
    uint32_t musts = count_kind(draft, n, WEIR_MUST);
    uint32_t optional = count_kind(draft, n, WEIR_OPTIONAL);
    uint32_t waits = musts + count_kind(draft, n, WEIR_AFTER);
    uint32_t flags = 0;

    if (musts + optional < edges)
        flags |= WR_F_SLOW;
    if (waits < edges)
        flags |= WR_F_EARLY;
    if (!extra)
        return flags;
    if (extra->options.judge && edges)
        flags |= WR_F_SLOW | WR_F_EARLY | WR_F_JUDGE;
    flags |= is_own(&extra->options) ? WR_F_OWN : 0;
    flags |= extra->options.begin ? WR_F_BEGIN : 0;
    flags |= extra->options.result ? WR_F_RESULT : 0;
    flags |= extra->options.param_of ? WR_F_BOUND : 0;
    flags |= extra->options.never_skip ? WR_F_KEEP : 0;
    flags |= extra->options.interrupt ? WR_F_INTERRUPT : 0;
    flags |= extra->options.fatal ? WR_F_FATAL : 0;
    flags |= extra->options.drop ? WR_F_DROP : 0;
    return flags;
}

/* How a target is told of the end of a node before it. */
static uint32_t way_of(uint32_t flags, uint8_t kind)
{
    if (flags & WR_F_SLOW)
        return WR_TO_SLOW;
    return kind == WEIR_OPTIONAL ? WR_TO_NONE : 0;
}

/* The next part of the memory, or NULL if there is none yet. */
static void *cut(char *memory, size_t *used, size_t count, size_t size)
{
    void *part = memory ? memory + *used : NULL;

    *used += (count * size + 7) / 8 * 8;
    return part;
}

static void count_parts(struct draft *draft)
{
    struct weir_flow *flow = draft->flow;
    uint32_t *out_degree = draft->order;

    memset(out_degree, 0, draft->nodes * sizeof(out_degree[0]));
    for (size_t i = 0; i < draft->edges; i++)
        out_degree[draft->in[i]]++;
    flow->edges = (uint32_t)draft->edges;
    flow->joins = flow->owns = flow->roots = flow->sinks = 0;
    for (uint32_t n = 0; n < draft->nodes; n++) {
        uint32_t flags = flags_of(draft, n);
        flow->joins += !!(flags & WR_F_SLOW);
        flow->has_early = flow->has_early || flags & WR_F_EARLY;
        flow->has_drops = flow->has_drops || flags & WR_F_DROP;
        flow->owns += !!(flags & WR_F_OWN);
        flow->roots += draft->in_at[n] == draft->in_at[n + 1];
        flow->sinks += out_degree[n] == 0;
    }
}

/* Called twice: the first time, without memory, for how much is needed; then to place each part. */
static size_t lay_out(struct draft *draft, char *memory)
{
    struct weir_flow *flow = draft->flow;
    size_t n = draft->nodes, e = draft->edges;
    size_t used = 0;

    flow->body = cut(memory, &used, n, sizeof(flow->body[0]));
    flow->hot = cut(memory, &used, n + 1, sizeof(flow->hot[0]));
    flow->heir = cut(memory, &used, n, sizeof(flow->heir[0]));
    flow->word = cut(memory, &used, n, sizeof(flow->word[0]));
    flow->join = cut(memory, &used, flow->joins, sizeof(flow->join[0]));
    flow->out = cut(memory, &used, e, sizeof(flow->out[0]));
    flow->in_at = cut(memory, &used, n + 1, sizeof(flow->in_at[0]));
    flow->in = cut(memory, &used, e, sizeof(flow->in[0]));
    flow->own = cut(memory, &used, flow->owns, sizeof(flow->own[0]));
    flow->root = cut(memory, &used, flow->roots, sizeof(flow->root[0]));
    flow->sink = cut(memory, &used, flow->sinks, sizeof(flow->sink[0]));
    flow->bound = cut(memory, &used, draft->has_params ? n : 0, sizeof(flow->bound[0]));
    flow->out_kind = cut(memory, &used, e, 1);
    flow->in_kind = cut(memory, &used, e, 1);
    if (!draft->has_params)
        flow->bound = NULL;
    return used;
}

static void fill_join(struct draft *draft, uint32_t n, struct wr_join *join)
{
    const struct wr_extra *extra = wr_flow_node(draft->flow, n)->extra;

    for (uint32_t i = draft->in_at[n]; i < draft->in_at[n + 1]; i++)
        join->left[draft->in_kind[i]]++;
    join->at_least = extra ? extra->options.at_least : 0;
}

static void fill_node(struct draft *draft, uint32_t n, uint32_t *join, uint32_t *own,
                      uint32_t *root)
{
    struct weir_flow *flow = draft->flow;
    const weir_node *node = wr_flow_node(flow, n);
    struct wr_hot *hot = &flow->hot[n];

    flow->body[n] = (struct wr_body){ .fn = node->fn, .arg = node->arg };
    hot->flags = flags_of(draft, n);
    if (hot->flags & WR_F_SLOW) {
        hot->join = *join;
        fill_join(draft, n, &flow->join[(*join)++]);
    }
    if (hot->flags & WR_F_OWN) {
        hot->own = *own;
        flow->own[(*own)++] = n;
    }
    flow->word[n] = hot->flags & WR_F_SLOW ? 1 : count_kind(draft, n, WEIR_MUST);
    if (draft->in_at[n] == draft->in_at[n + 1]) {
        flow->word[n] = WR_READY;
        flow->root[(*root)++] = n;
    }
}

/* Edges by their source: those of a node in the order of its targets. */
static void fill_out(struct draft *draft)
{
    struct weir_flow *flow = draft->flow;
    uint32_t *at = draft->seen, sink = 0;

    memset(at, 0, draft->nodes * sizeof(at[0]));
    for (size_t i = 0; i < draft->edges; i++)
        at[draft->in[i]]++;
    for (uint32_t n = 0; n < draft->nodes; n++) {
        uint32_t degree = at[n];
        flow->hot[n + 1].out_at = flow->hot[n].out_at + degree;
        at[n] = flow->hot[n].out_at;
        if (!degree)
            flow->sink[sink++] = n;
    }
    for (uint32_t n = 0; n < draft->nodes; n++)
        for (uint32_t i = draft->in_at[n]; i < draft->in_at[n + 1]; i++) {
            uint32_t place = at[draft->in[i]]++;
            flow->out[place] = n | way_of(flow->hot[n].flags, draft->in_kind[i]);
            flow->out_kind[place] = draft->in_kind[i];
            if (flow->hot[n].flags & (WR_F_SLOW | WR_F_EARLY | WR_F_OWN))
                flow->hot[draft->in[i]].flags |= WR_F_TELLS_SLOWLY;
        }
}

static uint32_t heir_of(const struct draft *draft, uint32_t n)
{
    const struct weir_flow *flow = draft->flow;
    uint32_t only = wr_out_degree(flow, n) == 1 ? flow->out[flow->hot[n].out_at] : WR_NODE_NONE;

    if (only >= WR_NODE_NONE || draft->in_at[only + 1] - draft->in_at[only] != 1)
        return WR_NODE_NONE;
    return flow->hot[n].flags & flow->hot[only].flags & WR_F_PLAIN ? only : WR_NODE_NONE;
}

/* Finds what depends on all edges: which nodes are plain, and their heirs. */
static void fill_ways(struct draft *draft)
{
    struct weir_flow *flow = draft->flow;

    for (uint32_t n = 0; n < draft->nodes; n++)
        if (!(flow->hot[n].flags & (WR_F_AT_START | WR_F_AT_END)))
            flow->hot[n].flags |= WR_F_PLAIN;
    for (uint32_t n = 0; n < draft->nodes; n++)
        flow->heir[n] = heir_of(draft, n);
}

static int build(struct draft *draft)
{
    struct weir_flow *flow = draft->flow;
    uint32_t join = 0, own = 0, root = 0;

    count_parts(draft);
    flow->memory = wr_os_alloc(lay_out(draft, NULL));
    if (!flow->memory)
        return WEIR_ENOMEM;
    lay_out(draft, flow->memory);
    for (uint32_t n = 0; n < draft->nodes; n++)
        fill_node(draft, n, &join, &own, &root);
    fill_out(draft);
    fill_ways(draft);
    flow->is_large = draft->nodes >= WR_LARGE && !flow->has_early && wr_os_fence_heavy_ready();
    memcpy(flow->in_at, draft->in_at, (draft->nodes + 1) * sizeof(flow->in_at[0]));
    memcpy(flow->in, draft->in, draft->edges * sizeof(flow->in[0]));
    memcpy(flow->in_kind, draft->in_kind, draft->edges);
    if (flow->bound)
        memcpy(flow->bound, draft->bound, draft->nodes * sizeof(flow->bound[0]));
    return 0;
}

/* ---- all of it --------------------------------------------------------------------------------------- */

static int draft_init(struct draft *draft, struct weir_flow *flow, struct wr_text *text)
{
    size_t n = flow->count, e = flow->declared_count;
    size_t used = 0;
    char *memory;

    *draft = (struct draft){ .flow = flow, .text = text, .nodes = flow->count };
    if (e >= UINT32_MAX)
        return WEIR_ENOMEM;
    draft->memory = memory = wr_os_alloc((8 * n + 3 + 3 * e) * 4 + 2 * e + 128);
    if (!memory)
        return WEIR_ENOMEM;
    draft->in_at = cut(memory, &used, n + 1, 4);
    draft->seen = cut(memory, &used, n, 4);
    draft->order = cut(memory, &used, n, 4);
    draft->rank = cut(memory, &used, n, 4);
    draft->out_at = cut(memory, &used, n + 2, 4);
    draft->bound = cut(memory, &used, n, 4);
    draft->same_bound = cut(memory, &used, n, 4);
    draft->in = cut(memory, &used, e, 4);
    draft->up = draft->out = cut(memory, &used, e, 4);
    draft->down = cut(memory, &used, e + n, 4);
    draft->in_kind = cut(memory, &used, e, 1);
    draft->kind = cut(memory, &used, e, 1);
    return wr_flow_index(flow);
}

/* Edges by their source. What was declared is not needed any more. */
static void sort_by_source(struct draft *draft)
{
    uint32_t *out_at = draft->out_at;

    for (size_t i = 0; i < draft->edges; i++)
        out_at[draft->in[i] + 2]++;
    for (uint32_t n = 1; n <= draft->nodes; n++)
        out_at[n + 1] += out_at[n];
    for (uint32_t n = 0; n < draft->nodes; n++)
        for (uint32_t i = draft->in_at[n]; i < draft->in_at[n + 1]; i++)
            draft->out[out_at[draft->in[i] + 1]++] = n; /* which moves it to where the next begin */
}

/* Under the lock. */
static void check(struct draft *draft)
{
    check_ids(draft);
    resolve_edges(draft);
    sort_edges(draft);
    merge_doubles(draft);
    for (uint32_t n = 0; n < draft->nodes; n++)
        check_at_least(draft, n);
    sort_by_source(draft);
    if (sort_nodes(draft))
        check_cycles(draft);
    check_params(draft);
}

static int freeze(struct draft *draft, bool for_good)
{
    check(draft);
    if (draft->wrong)
        return draft->text && draft->text->failed ? WEIR_ENOMEM : WEIR_EINVAL;
    if (!for_good)
        return 0;
    for (uint32_t n = 0; n < draft->nodes; n++)
        settle_kinds(draft, n);
    return build(draft);
}

static int look(struct weir_flow *flow, struct wr_text *text, bool for_good)
{
    struct draft draft;
    int rc = 0;

    if (wr_load(&flow->frozen, acquire)) /* release below */
        return 0;
    wr_lock(&flow->lock);
    if (!wr_load(&flow->frozen, relaxed)) {
        rc = draft_init(&draft, flow, text);
        if (!rc)
            rc = freeze(&draft, for_good);
        wr_os_free(draft.memory);
        if (!rc && for_good)
            wr_store(&flow->frozen, true, release);
    }
    wr_unlock(&flow->lock);
    return rc;
}

int wr_flow_freeze(struct weir_flow *flow, struct wr_text *text)
{
    return look(flow, text, true);
}

int weir_flow_check(char **errors, weir_flow *flow)
{
    struct wr_text text = { .text = NULL };
    int rc;

    if (errors)
        *errors = NULL;
    if (!flow)
        return WEIR_EINVAL;
    rc = look(flow, errors ? &text : NULL, false);
    if (rc == WEIR_EINVAL && errors)
        *errors = text.text;
    else
        free(text.text);
    return rc;
}

int wr_flow_freeze_or_say(struct weir_flow *flow, weir_message *message)
{
    struct wr_text text = { .text = NULL };
    int rc = wr_flow_freeze(flow, message ? &text : NULL);

    if (rc == WEIR_EINVAL && text.text)
        snprintf(message->text, sizeof(message->text), "%s", text.text);
    free(text.text);
    return rc;
}
