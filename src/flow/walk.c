/* Running nodes, one after the other: what a turn does while it lasts.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "flow/run.h"

#include <weir/error.h>

/* The next node is not to see what this one has set. */
static void reset_locals(struct wr_turn *turn)
{
    struct wr_run *run = turn->run;

    if (*turn->locals != run->locals)
        wr_locals_release(wr_locals_install(wr_locals_ref(run->locals)));
}

/* Everything else that may follow from the end of a node. */
static __attribute__((noinline)) uint32_t settle(struct wr_turn *turn, uint32_t ended,
                                                 const struct wr_row *ready, uint32_t next)
{
    struct wr_run *run = turn->run;
    struct wr_work work = { .run = run, .turn = turn, .moves = WR_NO_MOVES, .next = next };

    if (ready)
        work.moves.ready = *ready;
    if (*turn->locals != run->locals)
        work.locals = *turn->locals;
    if (ended != WR_NODE_NONE)
        wr_work_ended(&work, ended);
    wr_work_settle(&work);
    wr_turn_has_told(turn, work.told);
    reset_locals(turn);
    if (wr_turn_has_waiting(run, turn))
        wr_turn_ask(run);
    return work.next;
}

/* The same as below where ready nodes cannot simply stay in the turn's hands: some may have to be skipped there, or there is
 * no room. */
static __attribute__((noinline)) uint32_t tell_one_by_one(struct wr_turn *turn, uint32_t n)
{
    struct wr_run *run = turn->run;
    const struct weir_flow *flow = run->flow;
    struct wr_row rest = { WR_NODE_NONE, WR_NODE_NONE };
    uint32_t next = WR_NODE_NONE;

    for (uint32_t i = flow->hot[n].out_at; i < flow->hot[n + 1].out_at; i++) {
        uint32_t target = flow->out[i];
        if (!wr_plan_is_last(&run->plan, target))
            continue;
        if (next == WR_NODE_NONE && !wr_load(&run->plan.losses, relaxed))
            next = target;
        else
            wr_plan_add_ready(&run->plan, &rest, target);
    }
    return rest.first == WR_NODE_NONE ? next : settle(turn, WR_NODE_NONE, &rest, next);
}

/* A plain node is WEIR_DONE: the nodes after it, which only need WEIR_MUST and are no tasks of their own, hear of it. Those
 * that are ready stay RUNNING in the turn's hands (see wr_turn_begin); answers the last of them. Whether a target is ready is
 * hard to guess for a CPU, so that is added up, not asked. */
static inline uint32_t tell_plainly(struct wr_turn *turn, uint32_t n)
{
    struct wr_run *run = turn->run;
    const struct weir_flow *flow = run->flow;
    struct wr_deque *deque = &turn->deque;
    const uint32_t *out = flow->out + flow->hot[n].out_at;
    const uint32_t *end = flow->out + flow->hot[n + 1].out_at;
    uint32_t bottom = wr_load(&deque->bottom, relaxed), ready = bottom;

    if (WR_UNLIKELY(flow->has_early || end - out > wr_deque_room(deque)) ||
        WR_UNLIKELY(wr_load(&run->plan.losses, relaxed)))
        return tell_one_by_one(turn, n);
    for (; out < end; out++) { /* no flags in them: else it TELLS_SLOWLY */
        wr_store(&deque->place[ready % WR_DEQUE], *out, relaxed);
        ready += wr_plan_is_last(&run->plan, *out);
        __builtin_prefetch(&flow->body[*out]); /* it will soon run */
        __builtin_prefetch(&flow->hot[*out]);
    }
    if (ready == bottom)
        return WR_NODE_NONE;
    ready--; /* all but the last can be stolen from here on */
    n = wr_load(&deque->place[ready % WR_DEQUE], relaxed);
    if (flow->is_large || ready == bottom)
        wr_store(&deque->bottom, ready, release); /* pairs with steal */
    else
        wr_store(&deque->bottom, ready, seq_cst); /* and before `coming` is read */
    if (ready != bottom && WR_UNLIKELY(!wr_load(&run->coming, seq_cst)))
        wr_turn_ask(run);
    return n;
}

/* The same in a run that is the turn's alone, and takes the next node: maybe one that it had before. Only while the turn is
 * publishing; false, and nothing is done, if there is no room. The oldest node comes next, not the latest: then a CPU can
 * begin with it before it knows what this one has made ready. But if there are many, the latest one does, so that they do
 * not become more. */
static inline bool tell_alone(struct wr_turn *turn, uint32_t n, uint32_t *next)
{
    struct wr_deque *deque = &turn->deque;
    _Atomic uint64_t *word = turn->run->plan.word;
    const struct wr_hot *hot = turn->run->flow->hot;
    const uint32_t *out = turn->run->flow->out + hot[n].out_at;
    const uint32_t *end = turn->run->flow->out + hot[n + 1].out_at;
    uint32_t ready = wr_load(&deque->bottom, relaxed), top = wr_load(&deque->top, relaxed);

    if (WR_UNLIKELY(end - out > (int32_t)(WR_DEQUE - (ready - top))))
        return false;
    for (; out < end; out++) {
        uint64_t was = wr_load(&word[*out], relaxed);
        wr_store(&deque->place[ready % WR_DEQUE], *out, relaxed);
        wr_store(&word[*out], was - 1, relaxed);
        __builtin_prefetch(&turn->run->flow->body[*out]);
        __builtin_prefetch(&hot[*out]);
        ready += was == 1;
    }
    if (WR_UNLIKELY(ready == top)) {
        *next = WR_NODE_NONE;
    } else if (WR_LIKELY(ready - top <= WR_DEQUE / 2)) {
        *next = wr_load(&deque->place[top % WR_DEQUE], relaxed);
        wr_store(&deque->top, top + 1, relaxed);
        wr_store(&deque->bottom, ready, relaxed);
    } else {
        *next = wr_load(&deque->place[--ready % WR_DEQUE], relaxed);
        wr_store(&deque->bottom, ready, relaxed);
    }
    return true;
}

static bool is_plain(const struct wr_turn *turn, uint32_t n)
{
    const struct wr_run *run = turn->run;

    return !(run->flow->hot[n].flags & WR_F_AT_END) && !run->odd && *turn->locals == run->locals;
}

/* A body has returned. If with WEIR_ECANCELED, its reason is the one for which its turn was asked to end. */
static bool finish(struct wr_turn *turn, uint32_t n, int error, void *value)
{
    struct wr_plan *plan = &turn->run->plan;

    if (error != WEIR_ECANCELED)
        return wr_plan_finish(plan, n, error, value);
    return wr_plan_decide(plan, n, WEIR_CANCELLED, wr_task_asked_by(turn->task), error,
                          WR_NODE_NONE);
}

static __attribute__((noinline)) uint32_t end_oddly(struct wr_turn *turn, uint32_t n, int error,
                                                    void *value)
{
    struct wr_run *run = turn->run;

    if (error == WEIR_PENDING)
        error = WEIR_EINVAL; /* the node is no task of its own */
    if (!finish(turn, n, error, value)) {
        wr_node_drop_value(run, n, value); /* too late */
        reset_locals(turn);
        return WR_NODE_NONE;
    }
    if (error)
        wr_node_drop_value(run, n, value);
    return settle(turn, n, NULL, WR_NODE_NONE);
}

/* A body has added nodes: they start if it succeeded. Answers whether the node goes on with them. */
static __attribute__((noinline)) bool start_added(struct wr_turn *turn, int error, void *value)
{
    struct wr_run *run = turn->run;
    struct wr_own *added = turn->step.added;

    wr_lock(&run->lock);
    turn->step.added = NULL;
    wr_turn_expect(turn);
    wr_unlock(&run->lock);
    if (error)
        return false;
    wr_own_start_added(added, value);
    reset_locals(turn);
    return true;
}

/* A body has returned. Answers a node that is ready for this turn. */
static inline uint32_t end_node(struct wr_turn *turn, uint32_t n, int error, void *value)
{
    struct wr_run *run = turn->run;

    if (WR_UNLIKELY(turn->step.added != NULL) && start_added(turn, error, value))
        return WR_NODE_NONE;
    if (WR_UNLIKELY(error) || !is_plain(turn, n))
        return end_oddly(turn, n, error, value);
    if (WR_UNLIKELY(!wr_plan_finish_plain(&run->plan, n, value))) {
        wr_node_drop_value(run, n, value); /* too late */
        return WR_NODE_NONE;
    }
    wr_turn_has_told(turn, 1);
    return tell_plainly(turn, n);
}

/* Calls a node that has something special about its start, or whose run has. */
static __attribute__((noinline)) int call_oddly(struct wr_turn *turn, void **value, bool *asked)
{
    int error;

    wr_store(&turn->current, wr_load(&turn->step.node, relaxed), relaxed);
    turn->step.in_body = false; /* until it is */
    error = wr_node_call(&turn->step, value);
    turn->step.in_body = true;
    *asked = wr_swap(&turn->current, WR_NODE_NONE, acq_rel) == WR_ASKED;
    return error;
}

/* Runs a node that is RUNNING, whatever it is. */
static inline uint32_t run_node(struct wr_turn *turn, uint32_t n, bool *asked)
{
    struct wr_run *run = turn->run;
    const struct wr_body *body = &run->flow->body[n];
    void *value = NULL;
    int error;

    turn->until_look--;
    wr_store(&turn->step.node, n, relaxed);
    if (WR_UNLIKELY(run->flow->hot[n].flags & WR_F_AT_START) || WR_UNLIKELY(run->odd))
        error = call_oddly(turn, &value, asked);
    else
        error = body->fn(&value, body->arg, &turn->step);
    return end_node(turn, n, error, value);
}

/* The end of a plain node of a calm run is published, and the turn is still publishing: the nodes after it, which are more
 * than an heir, hear of it. Answers the next node; WR_NODE_NONE: there is none. Not inline, so that the loop below has its
 * registers for itself. */
static __attribute__((noinline)) uint32_t tell_calmly(struct wr_turn *turn, size_t ended)
{
    struct wr_run *run = turn->run;
    uint32_t n = (uint32_t)ended, next = WR_NODE_NONE;
    bool told = wr_load(&run->plan.calm, acquire) == WR_SOLO && tell_alone(turn, n, &next);

    wr_store(&turn->step.node, n, release); /* pairs with wr_run_await_publishers */
    if (!told)
        next = tell_plainly(turn, n);
    else if (WR_UNLIKELY(!wr_load(&run->coming, relaxed)) && wr_deque_length(&turn->deque))
        wr_turn_ask(run);
    if (next == WR_NODE_NONE)
        return wr_turn_take(turn);
    return WR_LIKELY(!wr_load(&run->plan.word[next], relaxed)) ? next : wr_turn_begin(turn, next);
}

/* As end_node, apart: the loop below is to have its registers for itself. */
static __attribute__((noinline)) uint32_t end_apart(struct wr_turn *turn, size_t n, int error,
                                                    void *value)
{
    wr_store(&turn->step.node, (uint32_t)n, release); /* pairs with wr_run_await_publishers */
    turn->until_look--;
    return end_node(turn, (uint32_t)n, error, value);
}

/* The end of a plain node that has a value. */
static inline void publish_value(struct wr_turn *turn, size_t n, void **value)
{
    struct wr_plan *plan = &turn->run->plan;

    wr_store(&plan->word[n], wr_plan_done(plan, (uint32_t)n, *value), release);
    *value = NULL;
}

/* Runs plain nodes of a calm run, one after the other, until it is time to look at the clock. Notes: calm runs, and brisk
 * turns, in run.h. What a chain of empty bodies costs is the instructions of this loop, and the memory that it touches: so
 * one comparison says whether an end is as plain as can be, and what is rarely needed is found again rather than kept. */
static __attribute__((noinline)) uint32_t run_calmly(struct wr_turn *turn, size_t n)
{
    const struct wr_body *const body = turn->run->flow->body;
    const uint32_t *const heir = turn->run->flow->heir;
    _Atomic uint64_t *const word = turn->run->plan.word;
    const struct wr_locals *expects;
    void *value = NULL;
    size_t next;
    int error;

    WR_ASSERT(turn->until_look);
    do {
        wr_store(&turn->step.node, (uint32_t)n, release); /* pairs with wr_run_await_publishers */
        error = body[n].fn(&value, body[n].arg, &turn->step);
        if (WR_UNLIKELY(error))
            return end_apart(turn, n, error, value);
        wr_store(&turn->step.node, WR_PUBLISHING, relaxed);
        wr_fence_light(); /* pairs with wr_run_await_publishers */
        expects = wr_load(&turn->step.expects, acquire);
        if (WR_UNLIKELY(*turn->locals != expects))
            return end_apart(turn, n, 0, value);
        if (WR_LIKELY(!value))
            wr_store(&word[n], WR_IS_DONE, release);
        else
            publish_value(turn, n, &value);
        wr_turn_has_told(turn, 1);
        next = heir[n];
        if (WR_LIKELY(next != WR_NODE_NONE)) {
            wr_store(&word[next], 0, relaxed);
            n = next;
        } else {
            n = tell_calmly(turn, n);
            if (n == WR_NODE_NONE || !(turn->run->flow->hot[n].flags & WR_F_PLAIN)) {
                turn->until_look--;
                break;
            }
        }
    } while (--turn->until_look);
    wr_store(&turn->step.node, (uint32_t)n, release);
    return (uint32_t)n;
}

uint32_t wr_walk(struct wr_turn *turn, uint32_t n, bool *asked)
{
    const struct wr_run *run = turn->run;

    if (run->flow->hot[n].flags & WR_F_PLAIN && wr_load(&run->plan.calm, relaxed) >= WR_CALM)
        return run_calmly(turn, n);
    return run_node(turn, n, asked);
}
