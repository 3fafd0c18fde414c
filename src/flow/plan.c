/* Which nodes are ready, failed, or not needed; see plan.h.
 * SPDX-License-Identifier: MIT */
#include "flow/plan.h"

#include "base/assert.h"

#include <string.h>
#include <weir/error.h>

/* ---- lists --------------------------------------------------------------------------------------- */

uint32_t wr_plan_next_ready(struct wr_plan *plan, struct wr_row *line)
{
    uint32_t n = line->first;

    if (n != WR_NODE_NONE)
        line->first = plan->links[n].next;
    return n;
}

uint32_t wr_plan_next_ended(struct wr_plan *plan, struct wr_row *line)
{
    uint32_t n = line->first;

    if (n != WR_NODE_NONE)
        line->first = plan->links[n].todo;
    return n;
}

void wr_plan_add_ready(struct wr_plan *plan, struct wr_row *line, uint32_t n)
{
    plan->links[n].next = WR_NODE_NONE;
    if (line->first == WR_NODE_NONE)
        line->first = n;
    else
        plan->links[line->last].next = n;
    line->last = n;
}

void wr_plan_add_ended(struct wr_plan *plan, struct wr_row *line, uint32_t n)
{
    plan->links[n].todo = WR_NODE_NONE;
    if (line->first == WR_NODE_NONE)
        line->first = n;
    else
        plan->links[line->last].todo = n;
    line->last = n;
}

/* ---- one node ------------------------------------------------------------------------------------ */

void wr_plan_init(struct wr_plan *plan)
{
    const struct weir_flow *flow = plan->flow;

    memcpy((void *)plan->word, flow->word, flow->count * sizeof(plan->word[0]));
    for (uint32_t i = 0; i < flow->roots; i++)
        plan->links[flow->root[i]].by = WR_NODE_NONE;
    if (flow->joins)
        memcpy(plan->join, flow->join, flow->joins * sizeof(plan->join[0]));
}

bool wr_plan_begin(struct wr_plan *plan, uint32_t n, void **locals)
{
    uint64_t word = wr_load(&plan->word[n], relaxed);

    do {
        if (!(word & WR_READY))
            return false;
        *locals = word & WR_HAS_LOCALS ? plan->slot[n].locals : NULL;
    } while (!wr_cas(&plan->word[n], &word, word & ~(WR_READY | WR_HAS_LOCALS), acq_rel));
    return true;
}

bool wr_plan_begins(struct wr_plan *plan, uint32_t n)
{
    uint64_t word = 0;

    return wr_cas(&plan->word[n], &word, WR_BEGINS, acquire);
}

bool wr_plan_begun(struct wr_plan *plan, uint32_t n)
{
    uint64_t word = WR_BEGINS;

    return wr_cas(&plan->word[n], &word, WR_BEGUN, acq_rel);
}

static weir_outcome outcome_of(int error)
{
    return error == 0 ? WEIR_DONE : error == WEIR_ECANCELED ? WEIR_CANCELLED : WEIR_FAILED;
}

/* The slot belongs to the thread that runs the node until the word is changed: end_running does not use it. */
bool wr_plan_finish(struct wr_plan *plan, uint32_t n, int error, void *value)
{
    uint64_t word = wr_load(&plan->word[n], relaxed) & WR_BEGUN, end;
    weir_outcome outcome = outcome_of(error);

    if (outcome == WEIR_DONE) {
        end = wr_plan_done(plan, n, value);
    } else {
        plan->slot[n].error = error;
        plan->slot[n].cause = WR_NODE_NONE;
        end = WR_HAS_SLOT | wr_word_of(outcome, outcome == WEIR_CANCELLED ? WEIR_REASON_GAVE_UP
                                                                          : WEIR_REASON_NONE);
    }
    return wr_cas(&plan->word[n], &word, word | end, acq_rel);
}

/* Takes the right to decide a node that is WAITING. */
static bool claim_waiting(struct wr_plan *plan, uint32_t n)
{
    uint64_t word = wr_load(&plan->word[n], seq_cst); /* Note: lost nodes */

    do {
        if (!wr_word_waits(word))
            return false;
    } while (!wr_cas(&plan->word[n], &word, word | WR_DECIDING | WR_NEVER, acquire));
    return true;
}

/* The same of one that is READY. */
static bool claim_ready(struct wr_plan *plan, uint32_t n)
{
    uint64_t word = wr_load(&plan->word[n], seq_cst); /* Note: lost nodes */
    void *locals;

    do {
        if (!(word & WR_READY))
            return false;
        locals = word & WR_HAS_LOCALS ? plan->slot[n].locals : NULL;
    } while (!wr_cas(&plan->word[n], &word, WR_DECIDING, acquire));
    if (locals)
        plan->release(locals);
    return true;
}

static bool claim(struct wr_plan *plan, uint32_t n)
{
    return claim_waiting(plan, n) || claim_ready(plan, n);
}

/* DECIDING gets its outcome. The counter may be falling meanwhile. */
static void publish(struct wr_plan *plan, uint32_t n, weir_outcome outcome, weir_reason reason,
                    int error, uint32_t cause)
{
    plan->slot[n].error = error;
    plan->slot[n].cause = cause;
    wr_add(&plan->word[n], (wr_word_of(outcome, reason) | WR_HAS_SLOT) - WR_DECIDING, release);
}

bool wr_plan_decide(struct wr_plan *plan, uint32_t n, weir_outcome outcome, weir_reason reason,
                    int error, uint32_t cause)
{
    uint64_t word = wr_load(&plan->word[n], relaxed);

    if (claim(plan, n)) {
        publish(plan, n, outcome, reason, error, cause);
        return true;
    }
    do {
        if (word & (WR_OUTCOME | WR_DECIDING))
            return false;
    } while (!wr_cas(&plan->word[n], &word, word | WR_DECIDING, acquire));
    publish(plan, n, outcome, reason, error, cause);
    return !(word & WR_BEGINS);
}

/* Without the slot: a body that runs may be writing to it. True: the caller tells of it. */
static bool end_running(struct wr_plan *plan, uint32_t n, weir_outcome outcome, weir_reason reason)
{
    uint64_t word = wr_load(&plan->word[n], relaxed);

    do {
        if (word & (WR_OUTCOME | WR_DECIDING | WR_READY) || word & WR_COUNTER)
            return false;
    } while (!wr_cas(&plan->word[n], &word, word | wr_word_of(outcome, reason), acq_rel));
    return !(word & WR_BEGINS);
}

bool wr_plan_close(struct wr_plan *plan, uint32_t n, weir_outcome outcome, weir_reason reason)
{
    int error = outcome == WEIR_TIMED_OUT ? WEIR_ETIMEDOUT : WEIR_ECANCELED;

    for (;;) { /* a node that is put off, or begins, in between is found at the next look */
        uint64_t word = wr_load(&plan->word[n], acquire);
        if (word & (WR_OUTCOME | WR_DECIDING))
            return false;
        if (claim(plan, n)) {
            publish(plan, n, outcome, reason, error, WR_NODE_NONE);
            return true;
        }
        if (end_running(plan, n, outcome, reason))
            return true;
    }
}

/* ---- needless nodes -------------------------------------------------------------------------------- */

static bool may_interrupt(const struct wr_plan *plan, uint32_t n)
{
    return plan->interrupt || plan->flow->hot[n].flags & WR_F_INTERRUPT;
}

/* No node needs p: it is skipped, or cancelled if that is allowed; else it goes on. */
static void drop_needless(struct wr_plan *plan, uint32_t p, uint32_t cause, struct wr_moves *moves)
{
    if (plan->flow->hot[p].flags & WR_F_KEEP)
        return;
    if (claim(plan, p)) {
        publish(plan, p, WEIR_SKIPPED, WEIR_REASON_NOT_NEEDED, WEIR_ECANCELED, cause);
        wr_plan_add_ended(plan, &moves->ended, p);
    } else if (may_interrupt(plan, p) &&
               end_running(plan, p, WEIR_CANCELLED, WEIR_REASON_NOT_NEEDED)) {
        wr_plan_add_ended(plan, &moves->ended, p);
    }
}

static bool is_needless(const struct wr_plan *plan, uint32_t p, uint32_t lost)
{
    uint32_t degree = wr_out_degree(plan->flow, p);

    return plan->skip == WEIR_SKIP_CHAIN ? lost && degree == 1 : lost && lost == degree;
}

/* Whether p is needless by what it has lost so far. */
static bool has_lost_all(struct wr_plan *plan, uint32_t p)
{
    return WR_UNLIKELY(wr_load(&plan->losses, seq_cst)) &&
           is_needless(plan, p, wr_load(&plan->lost[p], seq_cst)); /* Note: lost nodes */
}

uint32_t wr_plan_lost_to(const struct wr_plan *plan, uint32_t n)
{
    return wr_out_degree(plan->flow, n)
               ? wr_target(plan->flow->out[plan->flow->hot[n + 1].out_at - 1])
               : WR_NODE_NONE;
}

bool wr_plan_is_needed(struct wr_plan *plan, uint32_t n, struct wr_moves *moves)
{
    uint64_t word = 0;

    if (!has_lost_all(plan, n) || plan->flow->hot[n].flags & WR_F_KEEP)
        return true;
    if (wr_cas(&plan->word[n], &word, WR_DECIDING, acquire)) {
        publish(plan, n, WEIR_SKIPPED, WEIR_REASON_NOT_NEEDED, WEIR_ECANCELED,
                wr_plan_lost_to(plan, n));
        wr_plan_add_ended(plan, &moves->ended, n);
    }
    return false;
}

void wr_plan_put_off(struct wr_plan *plan, uint32_t n, void *locals, struct wr_moves *moves)
{
    uint64_t word = wr_load(&plan->word[n], relaxed);
    bool off =
        !(word & ~WR_BEGUN); /* else it is READY, or the run was closed: the slot is not ours */

    if (off && locals)
        plan->slot[n].locals = locals;
    off = off &&
          wr_cas(&plan->word[n], &word, word | WR_READY | (locals ? WR_HAS_LOCALS : 0), seq_cst);
    if (!off && locals)
        plan->release(locals);
    else if (off && has_lost_all(plan, n))
        drop_needless(plan, n, wr_plan_lost_to(plan, n),
                      moves); /* the thread that lost it found it RUNNING */
}

/* The first loss of a run: most have none, so that what nodes have lost is not filled in before. */
static void begin_losses(struct wr_plan *plan)
{
    wr_lock(&plan->lock);
    if (!wr_load(&plan->losses, relaxed)) {
        memset((void *)plan->lost, 0, plan->flow->count * sizeof(plan->lost[0]));
        wr_store(&plan->losses, true, seq_cst);
    }
    wr_unlock(&plan->lock);
}

/* Node n does not need the nodes before it any more, of which some may not have ended. */
static void lose(struct wr_plan *plan, uint32_t n, struct wr_moves *moves)
{
    const struct weir_flow *flow = plan->flow;

    if (wr_load(&plan->calm, acquire) != WR_STIRRED)
        plan->stir(plan);
    if (!wr_load(&plan->losses, acquire))
        begin_losses(plan);
    for (uint32_t i = flow->in_at[n]; i < flow->in_at[n + 1]; i++) {
        uint32_t p = flow->in[i];
        if (is_needless(plan, p, wr_add(&plan->lost[p], 1, seq_cst) + 1))
            drop_needless(plan, p, n, moves);
    }
}

/* Node n has left WAITING before all nodes before it have ended. */
static void left_early(struct wr_plan *plan, uint32_t n, struct wr_moves *moves)
{
    if (plan->skip == WEIR_SKIP_DEMAND || plan->skip == WEIR_SKIP_CHAIN)
        lose(plan, n, moves); /* else `lost` stays 0, or counts nodes that have ended */
}

/* ---- edges ----------------------------------------------------------------------------------------- */

static bool has_failed(weir_outcome outcome)
{
    return outcome != WEIR_DONE && outcome != WEIR_SKIPPED;
}

/* All that a join knows of an edge that has ended. */
static void count_end(struct wr_join *join, uint8_t kind, weir_outcome outcome)
{
    join->left[kind]--;
    join->done[kind] += outcome == WEIR_DONE;
    join->failed += has_failed(outcome);
    join->skipped += outcome == WEIR_SKIPPED;
    if (kind == WEIR_NONE_FAILED) {
        join->none_failed += has_failed(outcome);
        join->none_ended++;
    }
}

static bool has_kind(const struct wr_join *first, weir_need kind)
{
    return first->left[kind] > 0;
}

/* Whether edges of a kind still hold the node back; `first` is what its join was before any had ended. */
static bool is_open(const struct wr_join *now, const struct wr_join *first, uint8_t kind)
{
    switch (kind) {
    case WEIR_MUST:
    case WEIR_AFTER:
        return now->left[kind];
    case WEIR_ANY:
        return has_kind(first, WEIR_ANY) && !now->done[WEIR_ANY];
    case WEIR_AT_LEAST:
        return has_kind(first, WEIR_AT_LEAST) && now->done[WEIR_AT_LEAST] < now->at_least;
    case WEIR_NONE_FAILED: /* only if there is nothing else to wait for */
        return has_kind(first, WEIR_NONE_FAILED) && !has_kind(first, WEIR_MUST) &&
               !has_kind(first, WEIR_AFTER) && !has_kind(first, WEIR_ANY) &&
               !has_kind(first, WEIR_AT_LEAST) && !now->none_ended;
    default:
        return false;
    }
}

/* How a node with several kinds of edges stands. */
static weir_judgement judge_kinds(const struct wr_join *now, const struct wr_join *first)
{
    bool any = has_kind(first, WEIR_ANY), least = has_kind(first, WEIR_AT_LEAST);
    uint32_t musts_ended = first->left[WEIR_MUST] - now->left[WEIR_MUST];

    if (now->done[WEIR_MUST] < musts_ended || now->none_failed ||
        (any && !now->done[WEIR_ANY] && !now->left[WEIR_ANY]) ||
        (least && now->done[WEIR_AT_LEAST] + now->left[WEIR_AT_LEAST] < now->at_least))
        return WEIR_JUDGE_FAIL;
    for (weir_need kind = WEIR_MUST; kind <= WEIR_NONE_FAILED; kind++)
        if (is_open(now, first, (uint8_t)kind))
            return WEIR_JUDGE_WAIT;
    return WEIR_JUDGE_START;
}

bool wr_plan_waits_for(struct wr_plan *plan, uint32_t n, uint8_t kind)
{
    const struct wr_hot *hot = &plan->flow->hot[n];
    bool waits;

    if (!(hot->flags & WR_F_SLOW))
        return kind == WEIR_MUST;
    if (hot->flags & WR_F_JUDGE)
        return true;
    wr_lock(&plan->lock);
    waits = is_open(&plan->join[hot->join], &plan->flow->join[hot->join], kind);
    wr_unlock(&plan->lock);
    return waits;
}

/* The cause for which a node before n has failed, which may be that node itself; WR_NODE_NONE: none has failed. */
static uint32_t failed_before(struct wr_plan *plan, uint32_t n)
{
    const struct weir_flow *flow = plan->flow;

    for (uint32_t i = flow->in_at[n]; i < flow->in_at[n + 1]; i++) {
        uint32_t p = flow->in[i];
        uint64_t word = wr_load(&plan->word[p], acquire);
        if (wr_word_outcome(word) && has_failed(wr_word_outcome(word)))
            return word & WR_HAS_SLOT && plan->slot[p].cause != WR_NODE_NONE ? plan->slot[p].cause
                                                                             : p;
    }
    return WR_NODE_NONE;
}

/* Node n failed because of `by`: it ends as `by` did, with the same cause. If `by` succeeded, a judge has failed n, for a
 * failure of another node or for reasons of its own. */
static void fail(struct wr_plan *plan, uint32_t n, uint32_t by, struct wr_moves *moves)
{
    const union wr_slot *before = &plan->slot[by];
    uint64_t word = wr_load(&plan->word[by], relaxed); /* acquired by the thread that tells of it */
    weir_outcome outcome = wr_word_outcome(word);
    bool has_slot = outcome != WEIR_DONE && word & WR_HAS_SLOT;
    uint32_t cause = has_slot && before->cause != WR_NODE_NONE ? before->cause : by;
    weir_reason reason = WEIR_REASON_DEPENDENCY;
    int error = has_slot                    ? before->error
                : outcome == WEIR_TIMED_OUT ? WEIR_ETIMEDOUT
                                            : WEIR_ECANCELED;

    if (outcome == WEIR_DONE) {
        outcome = WEIR_FAILED;
        error = WEIR_EJUDGED;
        cause = failed_before(plan, n);
        reason = cause == WR_NODE_NONE ? WEIR_REASON_NONE : WEIR_REASON_DEPENDENCY;
    }
    if (!claim_waiting(plan, n))
        return;
    plan->links[n].by = by; /* a node that comes after this one may be on a critical path */
    publish(plan, n, outcome, reason, error, cause);
    wr_plan_add_ended(plan, &moves->ended, n);
}

/* WAITING becomes RUNNING: the join holds. */
static void start(struct wr_plan *plan, uint32_t n, uint32_t by, struct wr_moves *moves)
{
    uint64_t word = 1;

    if (!wr_cas(&plan->word[n], &word, 0, acq_rel))
        return;
    plan->links[n].by = by;
    wr_plan_add_ready(plan, &moves->ready, n);
    left_early(plan, n, moves);
}

/* A node whose edges are counted in a join. */
static void tell_slowly(struct wr_plan *plan, uint32_t n, uint8_t kind, uint32_t by,
                        weir_outcome outcome, struct wr_moves *moves)
{
    uint32_t place = plan->flow->hot[n].join;
    struct wr_join *join = &plan->join[place];
    bool has_judge = plan->flow->hot[n].flags & WR_F_JUDGE;
    weir_judgement verdict = WEIR_JUDGE_WAIT;
    bool asks = false;

    wr_lock(&plan->lock);
    count_end(join, kind, outcome);
    if (has_judge)
        asks = join->triggers++ == 0;
    else
        verdict = judge_kinds(join, &plan->flow->join[place]);
    wr_unlock(&plan->lock);
    if (asks) {
        plan->links[n].by = by;
        wr_plan_add_ready(plan, &moves->to_judge, n);
    }
    if (verdict == WEIR_JUDGE_START)
        start(plan, n, by, moves);
    else if (verdict == WEIR_JUDGE_FAIL)
        fail(plan, n, by, moves);
}

/* A node that only needs WEIR_MUST. */
static void tell_must(struct wr_plan *plan, uint32_t n, uint32_t by, weir_outcome outcome,
                      struct wr_moves *moves)
{
    if (outcome != WEIR_DONE) {
        fail(plan, n, by, moves);
        return;
    }
    if (!wr_plan_is_last(plan, n))
        return;
    plan->links[n].by = by;
    wr_plan_add_ready(plan, &moves->ready, n);
    if (plan->flow->hot[n].flags & WR_F_EARLY)
        left_early(plan, n, moves);
}

void wr_plan_tell(struct wr_plan *plan, uint32_t n, struct wr_moves *moves)
{
    const struct weir_flow *flow = plan->flow;
    uint64_t word = wr_load(&plan->word[n], acquire);
    weir_outcome outcome = wr_word_outcome(word);

    if (word & WR_NEVER)
        left_early(plan, n, moves);
    if (plan->skip == WEIR_SKIP_ONE_LEVEL)
        lose(plan, n, moves);
    for (uint32_t i = flow->hot[n].out_at; i < flow->hot[n + 1].out_at; i++) {
        uint32_t out = flow->out[i], target = wr_target(out);
        if (out & WR_TO_SLOW)
            tell_slowly(plan, target, flow->out_kind[i], n, outcome, moves);
        else if (!(out & WR_TO_NONE))
            tell_must(plan, target, n, outcome, moves);
    }
}

/* ---- judges ---------------------------------------------------------------------------------------- */

static uint32_t sum(const uint32_t count[6])
{
    uint32_t all = 0;

    for (int kind = 0; kind < 6; kind++)
        all += count[kind];
    return all;
}

void wr_plan_edges(struct wr_plan *plan, uint32_t n, weir_edges *edges)
{
    struct wr_join *join = &plan->join[plan->flow->hot[n].join];

    wr_lock(&plan->lock);
    join->triggers = 1; /* what has ended until now is seen */
    *edges = (weir_edges){ .total = plan->flow->in_at[n + 1] - plan->flow->in_at[n],
                           .succeeded = sum(join->done),
                           .failed = join->failed,
                           .skipped = join->skipped,
                           .left = sum(join->left) };
    wr_unlock(&plan->lock);
}

bool wr_plan_judged(struct wr_plan *plan, uint32_t n, weir_judgement verdict,
                    const weir_edges *seen, struct wr_moves *moves)
{
    struct wr_join *join = &plan->join[plan->flow->hot[n].join];
    bool again;

    if (verdict == WEIR_JUDGE_START) {
        start(plan, n, plan->links[n].by, moves);
        return false; /* later ends find that it has triggers, and ask no more */
    }
    if (verdict == WEIR_JUDGE_FAIL || !seen->left) {
        fail(plan, n, plan->links[n].by, moves);
        return false;
    }
    wr_lock(&plan->lock);
    again = join->triggers > 1;
    if (!again)
        join->triggers = 0;
    wr_unlock(&plan->lock);
    return again;
}
