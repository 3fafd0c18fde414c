/* Changing a flow while it is built: looking nodes and edges up, and taking them out again.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "flow/graph.h"

#include <string.h>
#include <weir/error.h>

/* ---- edges --------------------------------------------------------------------------------------- */

/* Which edges are meant: those between two ids, or all of a node. */
struct meant {
    const char *up, *down;
    const weir_node *node; /* NULL: those between the ids */
    bool by_id;            /* and edges with its id are its own */
};

static bool is_end(const struct meant *meant, const weir_node *node, const char *id)
{
    return node ? node == meant->node : meant->by_id && strcmp(id, meant->node->id) == 0;
}

static bool is_meant(const struct wr_declared *edge, const struct meant *meant)
{
    if (meant->node)
        return is_end(meant, edge->up, edge->up_id) || is_end(meant, edge->down, edge->down_id);
    return strcmp(edge->up ? edge->up->id : edge->up_id, meant->up) == 0 &&
           strcmp(edge->down ? edge->down->id : edge->down_id, meant->down) == 0;
}

/* Answers how many edges it has removed. Under the lock. */
static size_t remove_edges(struct weir_flow *flow, const struct meant *meant)
{
    size_t kept = 0, count = flow->declared_count;

    for (size_t i = 0; i < count; i++) {
        struct wr_declared *edge = &flow->declared[i];
        if (is_meant(edge, meant))
            wr_edge_fini(edge);
        else
            flow->declared[kept++] = *edge;
    }
    flow->declared_count = kept;
    return count - kept;
}

int weir_flow_edge_remove(weir_flow *flow, const char *upstream, const char *downstream)
{
    int rc = WEIR_EALREADY;

    if (!flow || !upstream || !downstream)
        return WEIR_EINVAL;
    wr_lock(&flow->lock);
    if (!flow->frozen)
        rc = remove_edges(flow, &(struct meant){ upstream, downstream, NULL, false }) ? 0
                                                                                      : WEIR_EINVAL;
    wr_unlock(&flow->lock);
    return rc;
}

/* Of several edges between the same nodes, as the freeze merges them: the first, but WEIR_MUST wins. */
bool weir_flow_edge_get(weir_need *need, weir_flow *flow, const char *upstream,
                        const char *downstream)
{
    const struct meant meant = { upstream, downstream, NULL, false };
    weir_need kind = WEIR_MUST;
    bool found = false;

    if (!flow || !upstream || !downstream)
        return false;
    wr_lock(&flow->lock);
    for (size_t i = 0; i < flow->declared_count; i++) {
        const struct wr_declared *edge = &flow->declared[i];
        if (!is_meant(edge, &meant))
            continue;
        kind = !found || edge->need == WEIR_MUST ? edge->need : kind;
        found = true;
    }
    wr_unlock(&flow->lock);
    if (found && need)
        *need = kind;
    return found;
}

/* ---- nodes --------------------------------------------------------------------------------------- */

/* While it is built there is no table of ids that is up to date. Under the lock. */
static weir_node *search(const struct weir_flow *flow, const char *id, const weir_node *except)
{
    for (uint32_t n = 0; n < flow->count; n++) {
        weir_node *node = wr_flow_node(flow, n);
        if (node != except && strcmp(node->id, id) == 0)
            return node;
    }
    return NULL;
}

weir_node *weir_flow_find(weir_flow *flow, const char *id)
{
    weir_node *node;

    if (!flow || !id)
        return NULL;
    if (wr_load(&flow->frozen, acquire))
        return wr_flow_find(flow, id, strlen(id));
    wr_lock(&flow->lock);
    node = search(flow, id, NULL);
    wr_unlock(&flow->lock);
    return node;
}

/* From the first removal on nodes stand in a list, since places stay what they are. Under the lock. */
static int list_nodes(struct weir_flow *flow)
{
    size_t room = 16;

    if (flow->order)
        return 0;
    while (room < flow->count)
        room *= 2;
    flow->order = wr_os_alloc(room * sizeof(weir_node *));
    if (!flow->order)
        return WEIR_ENOMEM;
    flow->order_room = room;
    for (uint32_t n = 0; n < flow->count; n++)
        flow->order[n] = wr_flow_place(flow, n);
    return 0;
}

static int remove_node(struct weir_flow *flow, weir_node *node)
{
    const struct meant its = { .node = node, .by_id = !search(flow, node->id, node) };
    int rc = list_nodes(flow);

    if (rc)
        return rc;
    remove_edges(flow, &its);
    flow->count--;
    for (uint32_t n = node->index; n < flow->count; n++) {
        flow->order[n] = flow->order[n + 1];
        flow->order[n]->index = n;
    }
    node->index = WR_NODE_NONE;
    return 0;
}

int weir_node_remove(weir_node *node)
{
    struct weir_flow *flow;
    int rc;

    if (!node)
        return WEIR_EINVAL;
    flow = node->flow;
    wr_lock(&flow->lock);
    if (node->index == WR_NODE_NONE)
        rc = WEIR_EINVAL;
    else
        rc = flow->frozen ? WEIR_EALREADY : remove_node(flow, node);
    wr_unlock(&flow->lock);
    return rc;
}
