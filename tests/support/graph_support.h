/* Shared by tests of building a flow: an empty one, and nodes that do nothing.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_GRAPH_SUPPORT_H
#define WR_TESTS_GRAPH_SUPPORT_H

#include "support/check.h"

#include <string.h>

static inline int body(void **value, void *arg, weir_step *step)
{
    (void)value;
    (void)arg;
    (void)step;
    return 0;
}

static inline weir_flow *new_flow(void)
{
    weir_flow *flow = NULL;

    CHECK_EQUAL(weir_flow_new(&flow, "test"), 0);
    return flow;
}

/* From any thread. */
static inline weir_node *add(weir_flow *flow, const char *id)
{
    weir_node *node = NULL;

    CHECK_EQUAL(weir_flow_node(&node, flow, id, body, NULL, NULL), 0);
    CHECK(strcmp(weir_node_id(node), id) == 0);
    return node;
}

#endif
