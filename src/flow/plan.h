/* The plan of a run: how each node stands, which nodes an end makes ready, which it decides. No threads, no clock, no code
 * of the user's: run.c drives it, from several threads at a time.
 *
 * A node's word says how it stands:
 *
 *     bits 0-31   counter: what it waits for. A node that only has WEIR_MUST edges: how many of them have not ended well.
 *                 One whose edges are counted in a join: 1 until the join says START
 *     bits 32-34  outcome, WEIR_UNSETTLED until it is decided
 *     bits 35-41  reason
 *     bit  42     DECIDING: the thread that set it is about to decide it; nothing else changes it any more
 *     bit  43     READY: it may start, but has not: it waits for a permit
 *     bit  44     LOCALS: READY, and slot.locals is what its body sees
 *     bit  45     BEGUN: `begin` was called, and has returned
 *     bit  46     SLOT: decided, and the slot is in use: its value if it is WEIR_DONE, else its error and cause. A node
 *                 that has no value to give leaves its slot alone
 *     bit  47     NEVER: it was WAITING when it was decided, so it never came to be READY
 *     bit  48     BEGINS: `begin` is called, or about to be. The thread that calls it tells of the node's end, if that
 *                 is decided meanwhile: `result` comes after `begin`
 *
 *     WAITING     counter > 0,  no outcome, not DECIDING
 *     READY       counter == 0, READY
 *     RUNNING     counter == 0, no outcome, neither READY nor DECIDING: a thread is about to call its body, or has
 *     ENDED       an outcome
 *
 * A word changes from WAITING to RUNNING or READY once, by the thread that brings the counter to zero; and gets an outcome
 * once, by compare-and-swap: that thread tells of it. The counter may go on falling after that; no matter.
 *
 * A waiting node that no node needs any more is skipped at once. `lost` counts the nodes after it that have left WAITING
 * before it ended, and so do not need it. For each node p, in mode DEMAND, at rest:
 *
 *     lost(p) == number of nodes s after p, s not WAITING, and s was not started by the end of all nodes before it
 *     WAITING or READY p, not never_skip  implies  lost(p) < out-degree(p), or out-degree(p) == 0
 *
 * Note: lost nodes. Two threads may come to a node p at once: one counts what it has lost and looks at its word, the other
 * puts it off and looks at what it has lost. If p is needless by that, at least one of them must see it:
 *
 *     lose:     lost(p)++;       word(p)?   WAITING or READY: skip it     else it is left to the other
 *     put off:  word(p) = READY; lost(p)?   all of them:      skip it
 *
 * A store and a later load of something else: acquire and release do not keep their order, and some CPUs change it. So all
 * four are seq_cst (on x86 that costs nothing, the two writes being locked instructions anyway): in the one order of all of
 * these, the later of the two writes comes before a look that sees the other. Likewise `losses`, which is set before the first
 * of all losses and looked at before `lost`. Claims by compare-and-swap let only one of them skip it. A node that stays
 * RUNNING in the hands of a turn is not put off; its turn looks at `losses` before it begins, and if that comes too late,
 * the node had begun.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FLOW_PLAN_H
#define WR_FLOW_PLAN_H

#include "flow/graph.h"

#define WR_OUTCOME_AT 32
#define WR_REASON_AT  35
#define WR_DECIDING   (UINT64_C(1) << 42)
#define WR_READY      (UINT64_C(1) << 43)
#define WR_HAS_LOCALS (UINT64_C(1) << 44)
#define WR_BEGUN      (UINT64_C(1) << 45)
#define WR_HAS_SLOT   (UINT64_C(1) << 46)
#define WR_NEVER      (UINT64_C(1) << 47)
#define WR_BEGINS     (UINT64_C(1) << 48)
#define WR_COUNTER    (UINT64_C(0xffffffff))
#define WR_OUTCOME    (UINT64_C(7) << WR_OUTCOME_AT)
#define WR_IS_DONE    ((uint64_t)WEIR_DONE << WR_OUTCOME_AT)

/* What a run has of a node, beside its word: the slot holds what the node has or leaves, the links are for waiting, ended and
 * needless nodes. Apart, because only words have to be filled in before a run can begin. */
union wr_slot {
    void *value; /* WEIR_DONE */
    struct {
        int32_t error;
        uint32_t cause; /* the node whose end decided this one; WR_NODE_NONE: none */
    };
    void *locals; /* READY, with LOCALS */
};

struct wr_links {
    uint32_t next; /* in a list of ready nodes, or of those to be judged */
    uint32_t todo; /* in a list of nodes that have ended, of the thread that decided them */
    uint32_t by;   /* the node that made it ready or fail, or a judge be asked; or WR_NODE_NONE */
};

static_assert(sizeof(uint64_t) + sizeof(union wr_slot) + sizeof(struct wr_links) +
                      sizeof(uint32_t) <=
                  64,
              "a plain node of a run is at most 64 bytes");

/* Whether nothing but turns changes words, and whether it is one turn alone; see run.h. */
enum wr_calm { WR_STIRRED, WR_STIRRING, WR_CALM, WR_PARTING, WR_SOLO };

struct wr_plan {
    const struct weir_flow *flow;
    _Atomic uint64_t *word; /* by node, as all of these */
    union wr_slot *slot;    /* as needed: not filled in at first */
    struct wr_links *links; /* likewise */
    _Atomic uint32_t *lost; /* once there are any losses */
    _Atomic bool losses;    /* some node has lost another */
    _Atomic uint32_t calm;
    void (*stir)(struct wr_plan *plan); /* called before the run stops being calm */
    struct wr_join *join;               /* under the lock */
    struct wr_lock lock;                /* nothing is called under it, and no other lock taken */
    weir_skip skip;
    bool interrupt; /* of all nodes */
    void (*release)(void *locals);
};

/* A list of nodes, in order. */
struct wr_row {
    uint32_t first, last; /* WR_NODE_NONE: empty */
};

/* What follows from an end, as lists for the caller to deal with: ended nodes are told of, and then passed to
 * wr_plan_tell. */
struct wr_moves {
    struct wr_row ready;    /* RUNNING: to be begun, or put off by wr_plan_put_off; by `next` */
    struct wr_row ended;    /* by `todo` */
    struct wr_row to_judge; /* by `next` */
};

static const struct wr_moves WR_NO_MOVES = { .ready = { WR_NODE_NONE, WR_NODE_NONE },
                                             .ended = { WR_NODE_NONE, WR_NODE_NONE },
                                             .to_judge = { WR_NODE_NONE, WR_NODE_NONE } };

/* Takes the first of a list of ready nodes, or of ended ones; WR_NODE_NONE: there is none. */
uint32_t wr_plan_next_ready(struct wr_plan *plan, struct wr_row *line);
uint32_t wr_plan_next_ended(struct wr_plan *plan, struct wr_row *line);
void wr_plan_add_ready(struct wr_plan *plan, struct wr_row *line, uint32_t n);
void wr_plan_add_ended(struct wr_plan *plan, struct wr_row *line, uint32_t n);

/* Fills in all words and joins; roots are READY. */
void wr_plan_init(struct wr_plan *plan);

/* A node of moves->ready, before it begins: false if no node needs it any more, so that it is skipped. */
bool wr_plan_is_needed(struct wr_plan *plan, uint32_t n, struct wr_moves *moves);

/* The cause of a node that was not needed any more: one of the nodes after it. All of those have left WAITING. */
uint32_t wr_plan_lost_to(const struct wr_plan *plan, uint32_t n);

/* RUNNING becomes READY, unless the node is decided. `locals` may be NULL. */
void wr_plan_put_off(struct wr_plan *plan, uint32_t n, void *locals, struct wr_moves *moves);

/* READY becomes RUNNING. False: the node was decided meanwhile. */
bool wr_plan_begin(struct wr_plan *plan, uint32_t n, void **locals);

/* RUNNING: `begin` is called next. False: it was decided meanwhile. */
bool wr_plan_begins(struct wr_plan *plan, uint32_t n);

/* `begin` has returned. False: the node was decided meanwhile, or is about to be, and the caller tells of it. */
bool wr_plan_begun(struct wr_plan *plan, uint32_t n);

/* A body has returned: RUNNING is decided. False: it was decided before, and the value is dropped. */
bool wr_plan_finish(struct wr_plan *plan, uint32_t n, int error, void *value);

/* The word of a node that is WEIR_DONE with that value, which is in its slot from here on. */
static inline uint64_t wr_plan_done(struct wr_plan *plan, uint32_t n, void *value)
{
    if (!value)
        return WR_IS_DONE;
    plan->slot[n].value = value;
    return WR_IS_DONE | WR_HAS_SLOT;
}

/* The value of a node whose word was read with acquire, if it is WEIR_DONE; else NULL. */
static inline void *wr_plan_value(const struct wr_plan *plan, uint32_t n, uint64_t word)
{
    return (word & (WR_OUTCOME | WR_HAS_SLOT)) == (WR_IS_DONE | WR_HAS_SLOT) ? plan->slot[n].value
                                                                             : NULL;
}

/* As wr_plan_finish, for a plain node that is WEIR_DONE, without `begin`. */
static inline bool wr_plan_finish_plain(struct wr_plan *plan, uint32_t n, void *value)
{
    uint64_t word = 0;

    return wr_cas(&plan->word[n], &word, wr_plan_done(plan, n, value), acq_rel);
}

/* A node that is a task of its own, or a sub-flow, has ended: as wr_plan_finish, also if it never began. False also if the
 * thread that calls `begin` tells of it. */
bool wr_plan_decide(struct wr_plan *plan, uint32_t n, weir_outcome outcome, weir_reason reason,
                    int error, uint32_t cause);

/* The run is over: whatever has not ended is decided. False: it has ended, or is about to, or another thread tells of it. */
bool wr_plan_close(struct wr_plan *plan, uint32_t n, weir_outcome outcome, weir_reason reason);

/* The node has ended and was told of: the nodes after it hear of it. */
void wr_plan_tell(struct wr_plan *plan, uint32_t n, struct wr_moves *moves);

/* Tells node n, which only has WEIR_MUST edges, of the end of a plain node that is WEIR_DONE. True: n is ready. */
static inline bool wr_plan_is_last(struct wr_plan *plan, uint32_t n)
{
    return wr_sub(&plan->word[n], 1, acq_rel) == 1; /* acquires what all the others have released */
}

/* Whether edges of a kind can still hold a WAITING node back. */
bool wr_plan_waits_for(struct wr_plan *plan, uint32_t n, uint8_t kind);

/* How the node's edges stand, for its judge. */
void wr_plan_edges(struct wr_plan *plan, uint32_t n, weir_edges *edges);

/* What the judge said of the edges that it has seen. True: it is to be asked again, since more nodes have ended. */
bool wr_plan_judged(struct wr_plan *plan, uint32_t n, weir_judgement verdict,
                    const weir_edges *seen, struct wr_moves *moves);

/* ---- words --------------------------------------------------------------------------------------- */

static inline weir_outcome wr_word_outcome(uint64_t word)
{
    return (weir_outcome)(word >> WR_OUTCOME_AT & 7);
}

static inline weir_reason wr_word_reason(uint64_t word)
{
    return (weir_reason)(word >> WR_REASON_AT & 127);
}

static inline uint64_t wr_word_of(weir_outcome outcome, weir_reason reason)
{
    return (uint64_t)outcome << WR_OUTCOME_AT | (uint64_t)reason << WR_REASON_AT;
}

static inline bool wr_word_waits(uint64_t word)
{
    return (word & WR_COUNTER) && !(word & (WR_OUTCOME | WR_DECIDING));
}

#endif
