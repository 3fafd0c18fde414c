/* Ready nodes in the hands of one turn: its thread pushes and takes at one end, other turns steal at the other, one at a
 * time. The owner pays for an atomic exchange only if there is something to take.
 *
 *     0 <= bottom - top <= WR_DEQUE        but for the moment in which the owner takes the last one
 * SPDX-License-Identifier: MIT */
#ifndef WR_FLOW_DEQUE_H
#define WR_FLOW_DEQUE_H

#include "base/atomic.h"
#include "flow/graph.h"

enum { WR_DEQUE = 256 }; /* places; what does not fit goes to the run's own list */

struct wr_deque {
    _Atomic uint32_t top; /* thieves' end, and the owner's if one is left; only grows */
    _Atomic uint32_t bottom;
    _Atomic uint32_t place[WR_DEQUE];
};

/* The owner only. False: it is full. */
static inline bool wr_deque_push(struct wr_deque *deque, uint32_t n)
{
    uint32_t bottom = wr_load(&deque->bottom, relaxed);

    if (bottom - wr_load(&deque->top, acquire) >= WR_DEQUE)
        return false;
    wr_store(&deque->place[bottom % WR_DEQUE], n, relaxed);
    wr_store(&deque->bottom, bottom + 1, release); /* pairs with steal */
    return true;
}

/* How many more it takes. The owner only. */
static inline uint32_t wr_deque_room(struct wr_deque *deque)
{
    return WR_DEQUE - (wr_load(&deque->bottom, relaxed) - wr_load(&deque->top, acquire));
}

/* The latest one. The owner only. */
static inline uint32_t wr_deque_take(struct wr_deque *deque)
{
    uint32_t bottom = wr_load(&deque->bottom, relaxed), top = wr_load(&deque->top, relaxed), n;

    if (top == bottom)
        return WR_NODE_NONE;
    bottom--;
    wr_swap(&deque->bottom, bottom, seq_cst); /* before top is read; a thief does the reverse */
    top = wr_load(&deque->top, seq_cst);
    n = wr_load(&deque->place[bottom % WR_DEQUE], relaxed);
    if ((int32_t)(bottom - top) > 0)
        return n;
    if (top != bottom || !wr_cas(&deque->top, &top, top + 1, seq_cst))
        n = WR_NODE_NONE; /* a thief has it */
    wr_store(&deque->bottom, bottom + 1, relaxed);
    return n;
}

static inline uint32_t wr_deque_length(struct wr_deque *deque)
{
    int32_t length = (int32_t)(wr_load(&deque->bottom, seq_cst) - wr_load(&deque->top, seq_cst));

    return length > 0 ? (uint32_t)length : 0;
}

/* The oldest one. One thief at a time: under the run's lock. */
static inline uint32_t wr_deque_steal(struct wr_deque *deque)
{
    uint32_t top = wr_load(&deque->top, seq_cst), bottom = wr_load(&deque->bottom, seq_cst), n;

    if ((int32_t)(bottom - top) <= 0)
        return WR_NODE_NONE;
    n = wr_load(&deque->place[top % WR_DEQUE], relaxed);
    return wr_cas(&deque->top, &top, top + 1, seq_cst) ? n : WR_NODE_NONE;
}

#endif
