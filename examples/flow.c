/* A flow in use: a list whose length is known only at run time, three replicas asked for each item, a quorum of two, a
 * deadline for the lookup, and a fallback when it is missed. docs/flow.md tells about it.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

#define MUST(condition)    \
    ((condition) ? (void)0 \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

enum { ITEMS = 3, REPLICAS = 3 };

/* What a run is about: its input. */
struct order {
    const char *customer;
    bool slow_day; /* two of the replicas do not answer in time */
    double price[ITEMS];
};

/* ---- the lookup of one item: a flow of its own ------------------------------------------------------- */

struct item {
    struct order *order;
    int number;
};

static int ask_replica(void **value, void *replica_arg, weir_step *step)
{
    const struct item *item = weir_step_input(step);
    int replica = (int)(intptr_t)replica_arg;
    int rc = weir_sleep(weir_in_ms(item->order->slow_day && replica ? 60000 : 2 + replica));

    (void)value;
    return rc ? rc : replica == 1 && item->number == 0 ? -EIO : 0; /* one of them has a bad day */
}

static int take_price(void **value, void *arg, weir_step *step)
{
    struct item *item = weir_step_input(step);

    (void)value;
    (void)arg;
    item->order->price[item->number] = 10.0 + item->number;
    return 0;
}

static weir_flow *new_lookup(void)
{
    static const char *const id[REPLICAS] = { "replica 0", "replica 1", "replica 2" };
    weir_flow *flow;
    weir_node *price, *replica;

    MUST(weir_flow_new(&flow, "lookup") == 0);
    MUST(weir_flow_node(&price, flow, "price", take_price, NULL, WEIR_NODE(.at_least = 2)) == 0);
    for (intptr_t i = 0; i < REPLICAS; i++) {
        MUST(weir_flow_node(&replica, flow, id[i], ask_replica, (void *)i,
                            WEIR_NODE(.group = "replicas", .interrupt = true)) == 0);
        MUST(weir_node_needs(price, replica, WEIR_AT_LEAST) == 0);
    }
    return flow;
}

/* ---- the order -------------------------------------------------------------------------------------------- */

static weir_flow *lookup; /* frozen once, used for every item of every order */
static struct item item[ITEMS];

/* Fans out: only now it is known how many items there are. */
static int list_items(void **value, void *arg, weir_step *step)
{
    struct order *order = weir_step_input(step);
    weir_flow *all;
    char id[24];

    (void)value;
    (void)arg;
    MUST(weir_flow_new(&all, "items") == 0);
    for (int i = 0; i < ITEMS; i++) {
        item[i] = (struct item){ order, i };
        snprintf(id, sizeof(id), "item %d", i);
        MUST(weir_flow_node(NULL, all, id, NULL, &item[i],
                            WEIR_NODE(.flow = lookup, .deadlines = { .total_ms = 1000 })) == 0);
    }
    return weir_step_expand(step, all, NULL, NULL);
}

static int add_up(void **value, void *arg, weir_step *step)
{
    struct order *order = weir_step_input(step);
    double *sum = malloc(sizeof(*sum));

    (void)arg;
    MUST(sum != NULL);
    *sum = 0;
    for (int i = 0; i < ITEMS; i++)
        *sum += order->price[i];
    *value = sum;
    return 0;
}

static int use_list_price(void **value, void *arg, weir_step *step)
{
    double *sum = malloc(sizeof(*sum));

    (void)arg;
    (void)step;
    MUST(sum != NULL);
    *sum = 99;
    *value = sum;
    return 0;
}

/* Runs after the lookup, whatever became of it; the fallback only runs if it failed. */
static weir_judgement if_failed(const weir_edges *edges, weir_step *step, void *arg)
{
    (void)step;
    (void)arg;
    return edges->failed ? WEIR_JUDGE_START : edges->left ? WEIR_JUDGE_WAIT : WEIR_JUDGE_FAIL;
}

static int send_offer(void **value, void *arg, weir_step *step)
{
    const struct order *order = weir_step_input(step);
    weir_node_result exact = WEIR_NODE_RESULT, list = WEIR_NODE_RESULT;
    double *sum;

    (void)value;
    (void)arg;
    MUST(weir_step_result(&exact, step, "add up") == 0);
    MUST(weir_step_result(&list, step, "list price") == 0);
    sum = exact.outcome == WEIR_DONE ? exact.value : list.value;
    printf("offer to %s: %.2f (%s)\n", order->customer, *sum,
           exact.outcome == WEIR_DONE ? "exact" : "list price");
    return 0;
}

static weir_flow *new_order(void)
{
    weir_flow *flow;
    weir_node *items, *sum, *list, *offer;

    MUST(weir_flow_new(&flow, "order") == 0);
    MUST(weir_flow_node(&items, flow, "items", list_items, NULL, NULL) == 0);
    MUST(weir_flow_node(&sum, flow, "add up", add_up, NULL, WEIR_NODE(.drop = free)) == 0);
    MUST(weir_flow_node(&list, flow, "list price", use_list_price, NULL,
                        WEIR_NODE(.drop = free, .judge = if_failed)) == 0);
    MUST(weir_flow_node(&offer, flow, "offer", send_offer, NULL, NULL) == 0);
    MUST(weir_node_needs(sum, items, WEIR_MUST) == 0);
    MUST(weir_node_needs(list, items, WEIR_MUST) == 0);
    MUST(weir_node_needs(offer, sum, WEIR_ANY) == 0);
    MUST(weir_node_needs(offer, list, WEIR_ANY) == 0);
    return flow;
}

static void run_order(weir_flow *flow, weir_group *group, struct order *order)
{
    weir_result result = WEIR_RESULT;
    weir_node_result price = WEIR_NODE_RESULT;
    weir_critical_path path = { .size = sizeof(path) };
    weir_message message;
    weir_task *run;
    char *picture;

    if (weir_flow_start(&run, flow, group, WEIR_RUN(.input = order, .times = true), &message)) {
        fprintf(stderr, "%s", message.text);
        exit(1);
    }
    MUST(weir_task_wait(&result, run, weir_in_s(30)) == 0);
    MUST(result.outcome == WEIR_DONE); /* also on a slow day: the fallback makes up for it */
    MUST(weir_run_result(&price, run, "items/item 1/price") == 0);
    MUST(price.outcome == (order->slow_day ? WEIR_TIMED_OUT : WEIR_DONE));

    MUST(weir_run_critical_path(&path, run) == 0);
    printf("decided by:");
    for (size_t i = 0; i < path.count; i++)
        printf(" %s", path.id[i]);
    printf("\n");
    free(path.memory);

    MUST(weir_run_picture(&picture, run, WEIR_PICTURE_MERMAID) == 0);
    printf("%s\n", picture);
    free(picture);
    weir_task_unref(run);
}

int main(void)
{
    struct order usual = { .customer = "Ada" }, slow = { .customer = "Bob", .slow_day = true };
    weir_executor *ex;
    weir_group *orders;
    weir_flow *flow;

    MUST(weir_executor_new(&ex, WEIR_POLICY(.workers = 2, .group_limit = 16), NULL) == 0);
    MUST(weir_group_get(&orders, ex, "orders") == 0);
    lookup = new_lookup();
    flow = new_order();
    run_order(flow, orders, &usual);
    run_order(flow, orders, &slow);
    weir_flow_free(flow);
    weir_flow_free(lookup);
    weir_executor_free(ex);
    return 0;
}
