/* Building a flow: nodes, edges, and the table of ids.
 * SPDX-License-Identifier: MIT */
#include "flow/graph.h"

#include "base/array.h"
#include "base/options.h"
#include "base/os.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

/* ---- text -------------------------------------------------------------------------------------- */

/* With realloc(3), because it becomes the caller's. */
static bool text_reserve(struct wr_text *text, size_t more)
{
    size_t room = text->room ? text->room : 256;
    char *larger;

    while (room < text->length + more)
        room *= 2;
    larger = room == text->room ? text->text : realloc(text->text, room);
    if (!larger)
        return false;
    text->text = larger;
    text->room = room;
    return true;
}

void wr_text_add(struct wr_text *text, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (text->failed || length < 0 || !text_reserve(text, (size_t)length + 1)) {
        text->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text->text + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
}

/* ---- lives --------------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    return name && strnlen(name, WEIR_ID_MAX + 1) <= WEIR_ID_MAX;
}

static char *copy_of(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = wr_os_alloc(size);

    return copy ? memcpy(copy, text, size) : NULL;
}

int weir_flow_new(weir_flow **out, const char *name)
{
    struct weir_flow *flow;

    if (!out || !is_name(name))
        return WEIR_EINVAL;
    *out = NULL;
    flow = wr_os_alloc(sizeof(*flow));
    if (!flow)
        return WEIR_ENOMEM;
    flow->name = copy_of(name);
    if (!flow->name) {
        wr_os_free(flow);
        return WEIR_ENOMEM;
    }
    wr_store(&flow->references, 1, relaxed);
    flow->seed = wr_os_random();
    *out = flow;
    return 0;
}

static void node_fini(weir_node *node)
{
    if (node->extra) {
        wr_flow_unref(node->extra->options.flow);
        wr_os_free(node->extra);
    }
    wr_os_free(node->id);
}

void wr_edge_fini(struct wr_declared *edge)
{
    wr_os_free(edge->up_id);
    wr_os_free(edge->down_id);
}

struct weir_flow *wr_flow_ref(struct weir_flow *flow)
{
    if (flow)
        wr_add(&flow->references, 1, relaxed);
    return flow;
}

void wr_flow_unref(struct weir_flow *flow)
{
    if (!flow || wr_sub(&flow->references, 1, acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < flow->places; i++)
        node_fini(wr_flow_place(flow, i));
    for (uint32_t i = 0; i < flow->chunks; i++)
        wr_os_free(flow->chunk[i]);
    for (size_t i = 0; i < flow->declared_count; i++)
        wr_edge_fini(&flow->declared[i]);
    wr_os_free(flow->chunk);
    wr_os_free(flow->order);
    wr_os_free(flow->declared);
    wr_os_free(flow->by_id);
    wr_os_free(flow->memory);
    wr_os_free(flow->name);
    wr_os_free(flow);
}

void weir_flow_free(weir_flow *flow)
{
    wr_flow_unref(flow);
}

/* ---- nodes --------------------------------------------------------------------------------------- */

/* A place for the next node. Chunks stay where they are; their list has a power of two of places. */
static weir_node *next_node(struct weir_flow *flow)
{
    size_t room = flow->chunks ? WR_ARRAY_FIRST : 0;
    weir_node *chunk;

    if (flow->places < flow->chunks * (uint32_t)WR_CHUNK)
        return wr_flow_place(flow, flow->places);
    while (room && room < flow->chunks)
        room *= 2;
    if (flow->places >= WR_NODES_MAX - WR_CHUNK ||
        wr_array_grow(&flow->chunk, room, flow->chunks, sizeof(weir_node *)) == flow->chunks)
        return NULL;
    chunk = wr_os_alloc(WR_CHUNK * sizeof(*chunk));
    if (!chunk)
        return NULL;
    flow->chunk[flow->chunks++] = chunk;
    return chunk;
}

static bool options_are_good(const weir_node_options *o)
{
    const weir_deadlines *d = &o->deadlines;

    return o->priority <= WEIR_IDLE && wr_is_span(d->wait_ms) && wr_is_span(d->run_ms) &&
           wr_is_span(d->total_ms) && o->backoff_ms >= 0 && o->backoff_ms <= WEIR_SPAN_MAX_MS &&
           o->backoff_max_ms >= 0 && o->backoff_max_ms <= WEIR_SPAN_MAX_MS &&
           (!o->flow || (!o->retries && !o->priority && !o->cost && !o->deadlines.wait_ms &&
                         !o->deadlines.run_ms && !o->drop)) &&
           (!o->group || strnlen(o->group, WEIR_KEY_MAX + 1) <= WEIR_KEY_MAX) &&
           (!o->param_of || is_name(o->param_of));
}

/* With copies of the strings behind it. */
static struct wr_extra *extra_new(const weir_node_options *o)
{
    size_t param = o->param_of ? strlen(o->param_of) + 1 : 0;
    size_t group = o->group ? strlen(o->group) + 1 : 0;
    struct wr_extra *extra = wr_os_alloc(sizeof(*extra) + param + group);
    char *rest;

    if (!extra)
        return NULL;
    rest = (char *)(extra + 1);
    extra->options = *o;
    if (param)
        extra->options.param_of = memcpy(rest, o->param_of, param);
    if (group)
        extra->options.group = memcpy(rest + param, o->group, group);
    wr_flow_ref(o->flow);
    return extra;
}

/* Room for one more in the list of nodes, if there is one. */
static bool order_reserve(struct weir_flow *flow)
{
    if (flow->order)
        flow->order_room =
            wr_array_grow(&flow->order, flow->order_room, flow->count, sizeof(weir_node *));
    return !flow->order || flow->count < flow->order_room;
}

/* Under the lock. */
static int add_node(weir_node **out, struct weir_flow *flow, const char *id, weir_node_fn *fn,
                    void *arg, const weir_node_options *o)
{
    weir_node *node = next_node(flow);
    struct wr_extra *extra = o->size ? extra_new(o) : NULL;
    char *copy = copy_of(id);

    if (!node || !copy || (o->size && !extra) || !order_reserve(flow)) {
        if (extra)
            wr_flow_unref(extra->options.flow);
        wr_os_free(extra);
        wr_os_free(copy);
        return WEIR_ENOMEM;
    }
    *node = (weir_node){
        .flow = flow, .index = flow->count, .fn = fn, .arg = arg, .id = copy, .extra = extra
    };
    if (flow->order)
        flow->order[flow->count] = node;
    flow->places++;
    flow->count++;
    if (out)
        *out = node;
    return 0;
}

int weir_flow_node(weir_node **out, weir_flow *flow, const char *id, weir_node_fn *fn, void *arg,
                   const weir_node_options *opt)
{
    weir_node_options options = { .size = 0 }; /* none */
    int rc = opt ? wr_options_load(&options, sizeof(options), opt) : 0;

    if (out)
        *out = NULL;
    if (rc)
        return rc;
    if (!flow || !is_name(id) || !*id || !fn == !options.flow || options.flow == flow ||
        !options_are_good(&options))
        return WEIR_EINVAL;
    if (options.flow) /* so it cannot come to contain itself */
        rc = wr_flow_freeze(options.flow, NULL);
    if (rc)
        return rc;
    wr_lock(&flow->lock);
    rc = flow->frozen ? WEIR_EALREADY : add_node(out, flow, id, fn, arg, &options);
    wr_unlock(&flow->lock);
    return rc;
}

const char *weir_node_id(const weir_node *node)
{
    return node->id;
}

/* ---- edges --------------------------------------------------------------------------------------- */

static bool is_need(weir_need need)
{
    return (unsigned)need <= WEIR_NONE_FAILED;
}

/* A handle of another flow is told of by the check. Under the lock. */
static bool is_removed(const struct weir_flow *flow, const weir_node *node)
{
    return node && node->flow == flow && node->index == WR_NODE_NONE;
}

static int declare(struct weir_flow *flow, const struct wr_declared *edge)
{
    int rc = WEIR_EALREADY;

    wr_lock(&flow->lock);
    if (is_removed(flow, edge->up) || is_removed(flow, edge->down)) {
        rc = WEIR_EINVAL;
    } else if (!flow->frozen) {
        flow->declared_room = wr_array_grow(&flow->declared, flow->declared_room,
                                            flow->declared_count, sizeof(*edge));
        rc = flow->declared_count < flow->declared_room ? 0 : WEIR_ENOMEM;
    }
    if (!rc)
        flow->declared[flow->declared_count++] = *edge;
    wr_unlock(&flow->lock);
    return rc;
}

/* An edge of two handles, as far as both are of use. */
static int declare_nodes(struct weir_flow *flow, weir_node *up, weir_node *down, weir_need need)
{
    if (!up || !down || !is_need(need))
        return WEIR_EINVAL;
    return declare(flow, &(struct wr_declared){ .up = up, .down = down, .need = need });
}

int weir_node_needs(weir_node *node, weir_node *upstream, weir_need need)
{
    return node ? declare_nodes(node->flow, upstream, node, need) : WEIR_EINVAL;
}

int weir_node_feeds(weir_node *node, weir_node *downstream, weir_need need)
{
    return node ? declare_nodes(node->flow, node, downstream, need) : WEIR_EINVAL;
}

int weir_flow_edge(weir_flow *flow, const char *upstream, const char *downstream, weir_need need)
{
    struct wr_declared edge = { .need = need };
    int rc = WEIR_ENOMEM;

    if (!flow || !is_name(upstream) || !is_name(downstream) || !is_need(need))
        return WEIR_EINVAL;
    edge.up_id = copy_of(upstream);
    edge.down_id = copy_of(downstream);
    if (edge.up_id && edge.down_id)
        rc = declare(flow, &edge);
    if (rc) {
        wr_os_free(edge.up_id);
        wr_os_free(edge.down_id);
    }
    return rc;
}

/* ---- by id --------------------------------------------------------------------------------------- */

/* Seeded, so that ids from outside cannot be chosen to share a place. */
static uint32_t place_of(const struct weir_flow *flow, const char *id, size_t length)
{
    uint64_t hash = flow->seed;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)id[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 29) & (flow->by_id_size - 1);
}

weir_node *wr_flow_find(const struct weir_flow *flow, const char *id, size_t length)
{
    weir_node *node = flow->by_id[place_of(flow, id, length)];

    while (node && (strncmp(node->id, id, length) != 0 || node->id[length]))
        node = node->same_hash;
    return node;
}

int wr_flow_index(struct weir_flow *flow)
{
    uint32_t size = 16;

    while (size < flow->count)
        size *= 2;
    if (flow->by_id_size < size) {
        weir_node **table = wr_os_alloc(size * sizeof(weir_node *));
        if (!table)
            return WEIR_ENOMEM;
        wr_os_free(flow->by_id);
        flow->by_id = table;
        flow->by_id_size = size;
    }
    memset(flow->by_id, 0, flow->by_id_size * sizeof(weir_node *));
    for (uint32_t i = flow->count; i-- > 0;) { /* so that the first of equal ids is found first */
        weir_node *node = wr_flow_node(flow, i);
        weir_node **place = &flow->by_id[place_of(flow, node->id, strlen(node->id))];
        node->same_hash = *place;
        *place = node;
    }
    return 0;
}
