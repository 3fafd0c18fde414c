/* Circles of waits: which waits can never end. Pure: no threads, no clock, no memory of its own; the caller
 * serialises. docs/internals/waits.md.
 *
 * A node is a limit: a group's, the executor's, a domain's slots, the threads. A wait keeps permits of some nodes until it
 * ends. What it waits for can move; or waits itself; or needs permits of some nodes. A wait is stuck if it could not end
 * even if everything that can move ended and gave back its permits. So what counts of a node is how many of its permits
 * are kept by stuck waits, not how many are in use.
 *
 * Being stuck is for good, short of a change from outside (a limit is raised, a task is cancelled). And a wait that is not
 * stuck when it begins makes no other wait stuck: it ends, and gives its permits back. So only a wait that begins needs a
 * look, and every wait of a node after an event that takes permits away or puts a needier task first.
 * SPDX-License-Identifier: MIT */
#ifndef WR_LIMITS_CIRCLE_H
#define WR_LIMITS_CIRCLE_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_wait;

/* At rest:   stuck == sum of permits over holders, collected == wanted == 0
 * In a walk: stuck == the same over those holders that are not known to end                        */
struct wr_node {
    struct wr_hold *holders;
    uint64_t stuck : 62, collected : 1, wanted : 1;
};

/* One wait's permits of one node. `node` is where to find it: it may move while it is held. */
struct wr_hold {
    struct wr_hold *next, **at; /* among the node's holders */
    struct wr_wait *wait;
    struct wr_node **node, *fixed; /* `node` points to `fixed` if it stays where it is */
    struct wr_node storage; /* the node, if it has no place of its own and lies in this hold */
    uint32_t permits;
};

/* Permits of a node that must come free. `served` decides if the node is no plain limit; NULL: stuck + permits <= limit. */
struct wr_need {
    struct wr_node *node;
    uint64_t permits, limit;
    bool (*served)(const struct wr_need *need);
    void *arg;
    const char *what; /* "a permit": for the sentence */
};

enum { WR_NEEDS_MAX = 5, WR_HOLDS_MAX = 5 };

/* What keeps a wait from ending: nothing (it can move), another wait, or needs, all of which must be served. */
struct wr_outlook {
    struct wr_wait *other;
    uint32_t count; /* of needs */
    struct wr_need need[WR_NEEDS_MAX];
};

/* One wait. It ends when any one of its outlooks has ended; most waits have one. */
struct wr_wait {
    struct wr_outlook *outlook;
    size_t outlooks;
    uint64_t number;                         /* in the order in which they began */
    bool begun;                              /* false: its entry is being decided */
    _Atomic bool refused;                    /* set by `refuse`: it was told to give up, and will */
    bool collected, ends, on_circle, wanted; /* in a walk; else false */
    uint32_t holds;
    struct wr_hold hold[WR_HOLDS_MAX];
    struct wr_list link; /* in a walk */
};

static inline struct wr_need *wr_outlook_need(struct wr_outlook *outlook, struct wr_node *node,
                                              uint64_t permits, uint64_t limit, const char *what)
{
    struct wr_need *need = &outlook->need[outlook->count++];

    *need = (struct wr_need){ .node = node, .permits = permits, .limit = limit, .what = what };
    return need;
}

/* The same for a need that is decided by `served`. */
static inline void wr_outlook_ask(struct wr_outlook *outlook, struct wr_node *node,
                                  uint64_t permits, uint64_t limit, const char *what,
                                  bool (*served)(const struct wr_need *need), void *arg)
{
    struct wr_need *need = wr_outlook_need(outlook, node, permits, limit, what);

    need->served = served;
    need->arg = arg;
}

/* Keeps permits of a node until wr_wait_let_go, which gives back all. */
void wr_wait_hold(struct wr_wait *wait, struct wr_node *node, uint32_t permits);
void wr_wait_let_go(struct wr_wait *wait);

/* The same of a node that has no place of its own: it lies in one of its holds, and *node says where; NULL: nothing is
 * held of it. So a node without waits costs nothing, and no node needs memory. */
void wr_wait_hold_at(struct wr_wait *wait, struct wr_node **node, uint32_t permits);

/* All holds of one such node become holds of another. */
void wr_node_move(struct wr_node **from, struct wr_node **to);

/* Fills in all outlooks of a wait. Called once per wait in a walk. */
typedef void wr_look_fn(struct wr_wait *wait);

/* Called for a wait that is refused, while the walk lasts: marks it as refused. */
typedef void wr_refuse_fn(struct wr_wait *wait);

/* Whether this wait, which is about to begin, could never end: then it is refused. */
bool wr_wait_is_stuck(struct wr_wait *wait, wr_look_fn *look, wr_refuse_fn *refuse);

/* After an event: looks at all waits that hold something of this node. Of the waits that are stuck in a circle the youngest is
 * refused, one at a time, until none is left. A wait that only waits for a circle to be broken is not refused. */
void wr_node_break_circles(struct wr_node *node, wr_look_fn *look, wr_refuse_fn *refuse);

/* During a walk: the first need of the outlook that stuck waits keep from being served; NULL: none. */
const struct wr_need *wr_outlook_unserved(const struct wr_outlook *outlook);

/* During a walk: a stuck holder of the node, `rather` if it is one; NULL: none. */
struct wr_wait *wr_node_stuck_holder(const struct wr_node *node, const struct wr_wait *rather);

#endif
