/* Flows by chance, and a naive evaluator of them, which knows the rules as sentences, counts everything anew each time, and
 * shares no code with src/flow.
 * SPDX-License-Identifier: MIT */
#ifndef WR_TESTS_FLOW_MODEL_H
#define WR_TESTS_FLOW_MODEL_H

#include "support/seed.h"

#include <stdbool.h>
#include <string.h>
#include <weir/flow.h>

enum { NODES_MAX = 12 };

/* ---- the graph, as a matrix ---------------------------------------------------------------------- */

struct matrix {
    uint32_t nodes;
    bool edge[NODES_MAX][NODES_MAX]; /* from, to */
    weir_need need[NODES_MAX][NODES_MAX];
    uint32_t at_least[NODES_MAX];
    bool keep[NODES_MAX], interrupt[NODES_MAX];
    /* Of a judge, which starts it at that many successes; 0: it has none */
    uint32_t quota[NODES_MAX];
    weir_skip skip;
};

static inline weir_judgement by_quota(const weir_edges *edges, weir_step *step, void *arg)
{
    uint32_t quota = (uint32_t)(uintptr_t)arg;

    (void)step;
    if (edges->succeeded >= quota)
        return WEIR_JUDGE_START;
    return edges->failed > 1 ? WEIR_JUDGE_FAIL : WEIR_JUDGE_WAIT;
}

static inline void draw(struct matrix *m, struct luck *luck)
{
    uint64_t density = 1 + luck_below(luck, 7);
    bool plain = luck_below(luck, 3) == 0; /* only musts */

    memset(m, 0, sizeof(*m));
    m->nodes = 1 + (uint32_t)luck_below(luck, NODES_MAX);
    m->skip = (weir_skip)luck_below(luck, 4);
    for (uint32_t to = 0; to < m->nodes; to++) {
        uint32_t least = 0;
        for (uint32_t from = 0; from < to; from++) {
            m->edge[from][to] = luck_below(luck, 8) < density;
            m->need[from][to] = plain ? WEIR_MUST : (weir_need)luck_below(luck, 6);
            least += m->edge[from][to] && m->need[from][to] == WEIR_AT_LEAST;
        }
        m->at_least[to] = least ? 1 + (uint32_t)luck_below(luck, least) : 0;
        m->keep[to] = luck_below(luck, 8) == 0;
        m->interrupt[to] = luck_below(luck, 4) == 0;
        m->quota[to] = plain || luck_below(luck, 6) ? 0 : 1 + (uint32_t)luck_below(luck, 3);
    }
}

/* ---- the naive evaluator --------------------------------------------------------------------------- */

enum stand { WAITS, IS_READY, RUNS, ENDED };

struct model {
    const struct matrix *m;
    enum stand stand[NODES_MAX];
    bool left[NODES_MAX];  /* WAITS no more: since its start, or since its end was told */
    bool fresh[NODES_MAX]; /* started by the end that is being told of */
    weir_outcome outcome[NODES_MAX];
    bool told[NODES_MAX]; /* the nodes after it have heard of it */
};

static inline weir_need need_of(const struct model *x, uint32_t from, uint32_t to)
{
    bool only_optional = true;

    for (uint32_t n = 0; n < x->m->nodes; n++)
        if (x->m->edge[n][to] && x->m->need[n][to] != WEIR_OPTIONAL)
            only_optional = false;
    return only_optional ? WEIR_ANY : x->m->need[from][to];
}

static inline uint32_t count(const struct model *x, uint32_t to, int need,
                             bool (*is)(weir_outcome, bool))
{
    uint32_t number = 0;

    for (uint32_t n = 0; n < x->m->nodes; n++)
        if (x->m->edge[n][to] && (need < 0 || (int)need_of(x, n, to) == need))
            number += is(x->outcome[n], x->told[n]);
    return number;
}

static inline bool is_any(weir_outcome outcome, bool told)
{
    (void)outcome;
    (void)told;
    return true;
}
static inline bool is_told(weir_outcome outcome, bool told)
{
    (void)outcome;
    return told;
}
static inline bool is_done(weir_outcome outcome, bool told)
{
    return told && outcome == WEIR_DONE;
}
static inline bool is_not_done(weir_outcome outcome, bool told)
{
    return told && outcome != WEIR_DONE;
}
static inline bool is_failed(weir_outcome outcome, bool told)
{
    return told && outcome != WEIR_DONE && outcome != WEIR_SKIPPED;
}

/* Every rule of the header as it is written there. */
static inline weir_judgement rule(const struct model *x, uint32_t n)
{
    uint32_t all = count(x, n, -1, is_any), ended = count(x, n, -1, is_told);
    bool holds = true;

    if (x->m->quota[n]) {
        if (count(x, n, -1, is_done) >= x->m->quota[n])
            return WEIR_JUDGE_START;
        return count(x, n, -1, is_failed) > 1 || ended == all ? WEIR_JUDGE_FAIL : WEIR_JUDGE_WAIT;
    }
    if (count(x, n, WEIR_MUST, is_not_done) || count(x, n, WEIR_NONE_FAILED, is_failed))
        return WEIR_JUDGE_FAIL;
    if (count(x, n, WEIR_ANY, is_any)) {
        if (count(x, n, WEIR_ANY, is_not_done) == count(x, n, WEIR_ANY, is_any))
            return WEIR_JUDGE_FAIL;
        holds = holds && count(x, n, WEIR_ANY, is_done);
    }
    if (count(x, n, WEIR_AT_LEAST, is_any)) {
        if (count(x, n, WEIR_AT_LEAST, is_any) - count(x, n, WEIR_AT_LEAST, is_not_done) <
            x->m->at_least[n])
            return WEIR_JUDGE_FAIL;
        holds = holds && count(x, n, WEIR_AT_LEAST, is_done) >= x->m->at_least[n];
    }
    holds = holds && count(x, n, WEIR_MUST, is_done) == count(x, n, WEIR_MUST, is_any);
    holds = holds && count(x, n, WEIR_AFTER, is_told) == count(x, n, WEIR_AFTER, is_any);
    if (count(x, n, WEIR_NONE_FAILED, is_any) + count(x, n, WEIR_OPTIONAL, is_any) == all)
        holds = holds && count(x, n, WEIR_NONE_FAILED, is_told) > 0;
    return holds ? WEIR_JUDGE_START : WEIR_JUDGE_WAIT;
}

static inline uint32_t out_degree(const struct model *x, uint32_t n)
{
    uint32_t degree = 0;

    for (uint32_t to = 0; to < x->m->nodes; to++)
        degree += x->m->edge[n][to];
    return degree;
}

/* Whether the mode says that n, which has not started, is not needed. */
static inline bool needless(const struct model *x, uint32_t n)
{
    uint32_t degree = out_degree(x, n), left = 0, ended = 0;

    for (uint32_t to = 0; to < x->m->nodes; to++)
        if (x->m->edge[n][to]) {
            left += x->left[to];
            ended += x->stand[to] == ENDED && x->told[to];
        }
    switch (x->m->skip) {
    case WEIR_SKIP_DEMAND: /* what is not demanded is skipped at once, so one level is enough */
        return degree && left == degree;
    case WEIR_SKIP_CHAIN:
        return degree == 1 && left == 1;
    case WEIR_SKIP_ONE_LEVEL:
        return degree && ended == degree;
    default:
        return false;
    }
}

#endif
