/* Circles of waits; see circle.h.
 *
 * A walk starts from one wait, or from all of a node. It collects what these depend on: the wait of an awaited task; all
 * holders of a node that could not serve a need if they all were stuck. That is the component. Waits are then freed for
 * as long as one can be: whatever is left is stuck. Most walks end with the first wait they look at.
 *
 * Waits and limits change meanwhile, so a walk may have seen one part of them before a change and another after it. A wait
 * that it finds stuck is therefore decided by a second walk. As long as all changes make things easier, a wait that both
 * find stuck was stuck when the second one began.
 * SPDX-License-Identifier: MIT */
#include "limits/circle.h"

#include "base/assert.h"

static void hold_node(struct wr_hold *hold)
{
    struct wr_node *node = *hold->node ? *hold->node : &hold->storage;

    *hold->node = node;
    hold->next = node->holders;
    hold->at = &node->holders;
    if (hold->next)
        hold->next->at = &hold->next;
    node->holders = hold;
    node->stuck += hold->permits;
}

/* If the node lies in this hold, it is put into another, or there is none any more. */
static void let_go_of_node(struct wr_hold *hold)
{
    struct wr_node *node = *hold->node;

    *hold->at = hold->next;
    if (hold->next)
        hold->next->at = hold->at;
    node->stuck -= hold->permits;
    if (node != &hold->storage)
        return;
    *hold->node = node->holders ? &node->holders->storage : NULL;
    if (node->holders) {
        **hold->node = *node;
        node->holders->at = &(*hold->node)->holders;
    }
    *node = (struct wr_node){ 0 };
}

/* Either `at` or `fixed`. */
static void hold_new(struct wr_wait *wait, struct wr_node **at, struct wr_node *fixed,
                     uint32_t permits)
{
    struct wr_hold *hold = &wait->hold[wait->holds++];

    WR_ASSERT(wait->holds <= WR_HOLDS_MAX);
    *hold = (struct wr_hold){ .wait = wait, .fixed = fixed, .permits = permits };
    hold->node = at ? at : &hold->fixed;
    hold_node(hold);
}

void wr_wait_hold(struct wr_wait *wait, struct wr_node *node, uint32_t permits)
{
    hold_new(wait, NULL, node, permits);
}

void wr_wait_hold_at(struct wr_wait *wait, struct wr_node **node, uint32_t permits)
{
    hold_new(wait, node, NULL, permits);
}

void wr_wait_let_go(struct wr_wait *wait)
{
    for (uint32_t i = 0; i < wait->holds; i++)
        let_go_of_node(&wait->hold[i]);
    wait->holds = 0;
}

void wr_node_move(struct wr_node **from, struct wr_node **to)
{
    while (*from) {
        struct wr_hold *hold = (*from)->holders;
        let_go_of_node(hold);
        hold->node = to;
        hold_node(hold);
    }
}

/* ---- the component --------------------------------------------------------------------------- */

static struct wr_wait *wait_at(struct wr_list *node)
{
    return WR_CONTAINER(node, struct wr_wait, link);
}

static bool is_served(const struct wr_need *need)
{
    return need->served ? need->served(need) : need->node->stuck + need->permits <= need->limit;
}

const struct wr_need *wr_outlook_unserved(const struct wr_outlook *outlook)
{
    for (uint32_t i = 0; i < outlook->count; i++)
        if (!is_served(&outlook->need[i]))
            return &outlook->need[i];
    return NULL;
}

struct wr_wait *wr_node_stuck_holder(const struct wr_node *node, const struct wr_wait *rather)
{
    struct wr_wait *found = NULL;

    for (struct wr_hold *hold = node->holders; hold && found != rather; hold = hold->next)
        if (!hold->wait->ends && hold->permits && (!found || hold->wait == rather))
            found = hold->wait;
    return found;
}

static bool can_end(const struct wr_wait *wait)
{
    for (size_t i = 0; i < wait->outlooks; i++) {
        const struct wr_outlook *outlook = &wait->outlook[i];
        if (outlook->other ? outlook->other->ends : !wr_outlook_unserved(outlook))
            return true;
    }
    return false;
}

/* Its permits come back some time. */
static void set_ends(struct wr_wait *wait)
{
    wait->ends = true;
    for (uint32_t i = 0; i < wait->holds; i++)
        (*wait->hold[i].node)->stuck -= wait->hold[i].permits;
}

static void collect(struct wr_list *walk, struct wr_wait *wait)
{
    if (wait->collected)
        return;
    wait->collected = true;
    for (size_t i = 0; i < wait->outlooks; i++) { /* what it was in another walk */
        wait->outlook[i].other = NULL;
        wait->outlook[i].count = 0;
    }
    wr_list_append(walk, &wait->link);
}

static void collect_holders(struct wr_list *walk, struct wr_node *node)
{
    if (node->collected)
        return;
    node->collected = 1;
    for (struct wr_hold *hold = node->holders; hold; hold = hold->next)
        collect(walk, hold->wait);
}

/* The waits that this one depends on join the walk. */
static void collect_needs(struct wr_list *walk, struct wr_wait *wait)
{
    for (size_t i = 0; i < wait->outlooks; i++) {
        struct wr_outlook *outlook = &wait->outlook[i];
        if (outlook->other)
            collect(walk, outlook->other);
        for (uint32_t n = 0; n < outlook->count; n++)
            if (!is_served(&outlook->need[n]))
                collect_holders(walk, outlook->need[n].node);
    }
}

static void expand(struct wr_list *walk, struct wr_wait *wait, wr_look_fn *look)
{
    look(wait);
    if (wait->refused || can_end(wait))
        set_ends(wait);
    else
        collect_needs(walk, wait);
}

/* Frees all waits that can be freed. Those that were collected last are most often what others wait for, so from the end. */
static void free_all(struct wr_list *walk)
{
    bool changed;

    do {
        changed = false;
        for (struct wr_list *node = walk->prev; node != walk; node = node->prev) {
            struct wr_wait *wait = wait_at(node);
            if (!wait->ends && can_end(wait)) {
                set_ends(wait);
                changed = true;
            }
        }
    } while (changed);
}

/* Expands all waits that came after `last`, frees those that can be freed, and so on until the waits that are left depend on
 * collected ones only: limits change meanwhile, and a need that was served when its wait was expanded may not be any more.
 * Answers the last wait. `wait`, unless it is NULL, is the only one that the caller asks for: once it is known to end, the walk
 * ends. */
static struct wr_list *complete(struct wr_list *walk, struct wr_list *last,
                                const struct wr_wait *wait, wr_look_fn *look)
{
    do {
        for (; last->next != walk; last = last->next) {
            expand(walk, wait_at(last->next), look);
            if (wait && wait->ends)
                return last;
        }
        free_all(walk);
        for (struct wr_list *node = walk->next; node != last->next; node = node->next)
            if (!wait_at(node)->ends)
                collect_needs(walk, wait_at(node));
    } while (last->next != walk);
    return last;
}

/* Every wait counts as stuck again, as at rest. */
static void end_walk(struct wr_list *walk)
{
    wr_list_each(node, walk) {
        struct wr_wait *wait = wait_at(node);
        for (uint32_t i = 0; i < wait->holds; i++) {
            (*wait->hold[i].node)->stuck += wait->ends ? wait->hold[i].permits : 0;
            (*wait->hold[i].node)->collected = 0;
        }
        for (size_t i = 0; i < wait->outlooks; i++)
            for (uint32_t n = 0; n < wait->outlook[i].count; n++)
                wait->outlook[i].need[n].node->collected = 0;
        wait->collected = wait->ends = wait->on_circle = false;
    }
}

/* `refuse` NULL: only asks. */
static bool is_stuck(struct wr_wait *wait, wr_look_fn *look, wr_refuse_fn *refuse)
{
    struct wr_list walk;
    bool stuck;

    wr_list_init(&walk);
    collect(&walk, wait);
    complete(&walk, &walk, wait, look);
    stuck = !wait->ends;
    if (stuck && refuse)
        refuse(wait);
    end_walk(&walk);
    return stuck;
}

bool wr_wait_is_stuck(struct wr_wait *wait, wr_look_fn *look, wr_refuse_fn *refuse)
{
    return is_stuck(wait, look, NULL) && is_stuck(wait, look, refuse);
}

/* Marks the waits and nodes that a stuck wait depends on as wanted, or (false) as not. */
static void mark(struct wr_wait *wait, bool wanted)
{
    for (size_t i = 0; i < wait->outlooks; i++) {
        struct wr_outlook *outlook = &wait->outlook[i];
        if (outlook->other)
            outlook->other->wanted = wanted;
        for (uint32_t n = 0; n < outlook->count; n++)
            if (!wanted || !is_served(&outlook->need[n]))
                outlook->need[n].node->wanted = wanted;
    }
}

static bool is_wanted(const struct wr_wait *wait)
{
    for (uint32_t i = 0; i < wait->holds; i++)
        if ((*wait->hold[i].node)->wanted && wait->hold[i].permits)
            return true;
    return wait->wanted;
}

/* A wait that no other on a circle depends on is on none. True: there was one. */
static bool prune(struct wr_list *walk)
{
    bool pruned = false;

    wr_list_each(node, walk)
        if (wait_at(node)->on_circle)
            mark(wait_at(node), true);
    wr_list_each(node, walk) {
        struct wr_wait *wait = wait_at(node);
        if (wait->on_circle && !is_wanted(wait))
            pruned = true, wait->on_circle = false;
    }
    wr_list_each(node, walk)
        mark(wait_at(node), false);
    return pruned;
}

/* The youngest of the stuck waits that are on a circle; NULL: there is none. */
static struct wr_wait *youngest_stuck(struct wr_list *walk)
{
    struct wr_wait *youngest = NULL;

    wr_list_each(node, walk)
        wait_at(node)->on_circle = !wait_at(node)->ends;
    while (prune(walk))
        ;
    wr_list_each(node, walk) {
        struct wr_wait *wait = wait_at(node);
        if (wait->on_circle && (!youngest || wait->number > youngest->number))
            youngest = wait;
    }
    return youngest;
}

/* Answers whether there was a circle; `refuse` NULL: only asks. */
static bool break_circles(struct wr_node *node, wr_look_fn *look, wr_refuse_fn *refuse)
{
    struct wr_list walk, *last = &walk;
    struct wr_wait *youngest;
    bool found = false;

    wr_list_init(&walk);
    collect_holders(&walk, node);
    last = complete(&walk, last, NULL, look);
    while ((youngest = youngest_stuck(&walk))) {
        found = true;
        if (refuse && !can_end(youngest)) /* else something has changed just now */
            refuse(youngest);
        set_ends(youngest);
        last = complete(&walk, last, NULL, look);
    }
    end_walk(&walk);
    node->collected = 0;
    return found;
}

void wr_node_break_circles(struct wr_node *node, wr_look_fn *look, wr_refuse_fn *refuse)
{
    if (break_circles(node, look, NULL))
        break_circles(node, look, refuse);
}
