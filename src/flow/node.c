/* One node of a run: calling its body, and what follows from its end.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "flow/run.h"

#include <weir/error.h>

/* ---- results --------------------------------------------------------------------------------------- */

static int error_of(uint64_t word, const union wr_slot *slot)
{
    switch (wr_word_outcome(word)) {
    case WEIR_UNSETTLED:
    case WEIR_DONE:
        return 0;
    case WEIR_TIMED_OUT:
        return word & WR_HAS_SLOT ? slot->error : WEIR_ETIMEDOUT;
    default:
        return word & WR_HAS_SLOT ? slot->error : WEIR_ECANCELED;
    }
}

/* The value that other nodes read: the node's own, or what stands in for it. */
static void *value_of(const struct wr_run *run, uint32_t n, uint64_t word)
{
    const weir_node_options *options = wr_run_options(run, n);

    if (wr_word_outcome(word) == WEIR_DONE)
        return wr_plan_value(&run->plan, n, word);
    return options ? options->fallback : NULL;
}

/* The node whose end decided this one: a node before it, or one after it that does not need it, or a fatal one. */
static uint32_t cause_of(struct wr_run *run, uint32_t n, uint64_t word)
{
    uint32_t fatal = wr_load(&run->fatal, relaxed);

    if (wr_word_outcome(word) <= WEIR_DONE)
        return WR_NODE_NONE;
    if (word & WR_HAS_SLOT && run->plan.slot[n].cause != WR_NODE_NONE)
        return run->plan.slot[n].cause;
    if (wr_word_reason(word) == WEIR_REASON_NOT_NEEDED) /* interrupted: without the slot */
        return wr_plan_lost_to(&run->plan, n);
    return wr_word_reason(word) == WEIR_REASON_DEPENDENCY && n != fatal ? fatal : WR_NODE_NONE;
}

void wr_node_result(weir_node_result *out, struct wr_run *run, uint32_t n)
{
    uint64_t word = wr_load(&run->plan.word[n], acquire); /* pairs with the deciding thread */
    uint32_t cause = cause_of(run, n, word);

    *out = (weir_node_result){ .size = sizeof(*out),
                               .id = wr_flow_node(run->flow, n)->id,
                               .outcome = wr_word_outcome(word),
                               .error = error_of(word, &run->plan.slot[n]),
                               .reason =
                                   wr_word_outcome(word) ? wr_word_reason(word) : WEIR_REASON_NONE,
                               .value = value_of(run, n, word),
                               .run = wr_load(&run->task, acquire) };
    if (cause != WR_NODE_NONE)
        out->cause = wr_flow_node(run->flow, cause)->id;
    if (run->times) {
        out->ready_at = wr_times_get(&run->times[n].ready_at, WEIR_FOREVER);
        out->started_at = wr_times_get(&run->times[n].started_at, WEIR_FOREVER);
        out->ended_at = wr_times_get(&run->times[n].ended_at, WEIR_FOREVER);
    }
}

void wr_node_drop_value(const struct wr_run *run, uint32_t n, void *value)
{
    const weir_node_options *options = wr_run_options(run, n);

    if (value && options && options->drop)
        options->drop(value);
}

/* ---- the body -------------------------------------------------------------------------------------- */

void *wr_node_param(const struct wr_run *run, uint32_t n)
{
    uint32_t up;

    if (run->param && run->given[n / 64] >> n % 64 & 1)
        return run->param[n];
    if (!(run->flow->hot[n].flags & WR_F_BOUND))
        return run->flow->body[n].arg;
    up = run->flow->bound[n];
    return value_of(run, up, wr_load(&run->plan.word[up], acquire));
}

/* The node was decided while `begin` was called: `result` comes now, and not before. */
static void end_after_begin(struct wr_run *run, uint32_t n)
{
    while (!wr_word_outcome(wr_load(&run->plan.word[n], acquire)))
        wr_os_yield(); /* the thread that decides it is a few instructions away from that */
    wr_node_ended(run, n);
}

int wr_node_call(struct weir_step *step, void **value)
{
    struct wr_run *run = step->run;
    uint32_t n = wr_load(&step->node, relaxed);
    weir_node_fn *fn = run->flow->body[n].fn;
    const weir_node_options *options = wr_run_options(run, n);
    bool again = wr_load(&run->plan.word[n], relaxed) & WR_BEGUN;
    int error = 0;

    if (run->times)
        wr_times_note(&run->times[n].started_at, wr_os_now()); /* the first try */
    if (run->flow->hot[n].flags & WR_F_BEGIN && !again) {
        if (!wr_plan_begins(&run->plan, n))
            return WEIR_ECANCELED; /* decided in the meantime */
        error = options->begin(step, options->callback_arg);
        if (!wr_plan_begun(&run->plan, n)) {
            end_after_begin(run, n);
            return WEIR_ECANCELED;
        }
    }
    if (error || !fn)
        return error;
    step->in_body = true;
    error = fn(value, wr_node_param(run, n), step);
    step->in_body = false;
    return error;
}

/* ---- what follows ---------------------------------------------------------------------------------- */

/* `result` is called; from here on the nodes after it may start. */
static void tell_result(struct wr_work *work, uint32_t n)
{
    struct wr_run *run = work->run;
    const weir_node_options *options = wr_run_options(run, n);
    weir_node_result result;

    if (run->times) {
        wr_times_note(&run->times[n].ended_at, wr_os_now());
        wr_times_note(&run->times[n].ready_at, WEIR_FOREVER);
        wr_times_note(&run->times[n].started_at, WEIR_FOREVER);
    }
    if (run->flow->hot[n].flags & WR_F_RESULT) {
        wr_node_result(&result, run, n);
        options->result(&result, options->callback_arg);
    }
    work->told++;
}

/* A node that was decided from outside: what was submitted for it is not needed any more. */
static void end_parts(struct wr_run *run, uint32_t n)
{
    uint64_t word = wr_load(&run->plan.word[n], relaxed);
    struct wr_own *own = NULL;

    if (wr_word_outcome(word) == WEIR_CANCELLED && wr_word_reason(word) == WEIR_REASON_NOT_NEEDED)
        wr_turn_interrupt(run, n, false);
    else if (wr_word_outcome(word) != WEIR_SKIPPED)
        return;
    if (run->flow->hot[n].flags & WR_F_OWN)
        own = wr_own_of(run, n);
    if (own)
        wr_own_cancel(own);
    own = wr_run_added_by(run, n);
    if (own)
        wr_own_cancel(own);
}

/* A fatal node, without which the rest is of no use, has ended: the run is over, unless the node succeeded or no node needed
 * it. */
static void end_fatally(struct wr_run *run, uint32_t n)
{
    uint64_t word = wr_load(&run->plan.word[n], relaxed);
    weir_outcome outcome = wr_word_outcome(word);
    uint32_t none = WR_NODE_NONE;

    if (outcome == WEIR_DONE || outcome == WEIR_SKIPPED ||
        wr_word_reason(word) == WEIR_REASON_NOT_NEEDED || wr_load(&run->closed, relaxed))
        return;
    if (wr_cas(&run->fatal, &none, n, acq_rel))
        wr_whole_settle(wr_load(&run->task, acquire), WEIR_ECANCELED, WEIR_REASON_DEPENDENCY);
}

static void ask_judge(struct wr_work *work, uint32_t n)
{
    struct wr_run *run = work->run;
    const weir_node_options *options = wr_run_options(run, n);
    struct weir_step step = { .run = run, .node = n };
    weir_edges edges;
    weir_judgement verdict;

    do {
        wr_plan_edges(&run->plan, n, &edges);
        verdict = options->judge(&edges, &step, options->judge_arg);
    } while (wr_plan_judged(&run->plan, n, verdict, &edges, &work->moves));
}

/* Counts the nodes told of so far: before the task of a node starts, since its submitter may have to run it
 * (WEIR_CALLER_RUNS). */
static void count_told(struct wr_work *work)
{
    uint32_t told = work->told;

    work->told = 0;
    if (work->turn)
        wr_turn_has_told(work->turn, told);
    else
        wr_run_told(work->run, told);
}

static void take_ready(struct wr_work *work, uint32_t n)
{
    struct wr_run *run = work->run;

    if (run->times)
        wr_times_note(&run->times[n].ready_at, wr_os_now());
    if (!wr_plan_is_needed(&run->plan, n, &work->moves))
        return;
    if (run->flow->hot[n].flags & WR_F_OWN) {
        if (work->keeps_own && work->own == WR_NODE_NONE) {
            work->own = n;
        } else {
            count_told(work);
            wr_own_start(work, n, false);
        }
    } else if (work->turn && work->next == WR_NODE_NONE && !work->locals) {
        work->next = n;
    } else {
        wr_locals_ref(work->locals);
        wr_plan_put_off(&run->plan, n, work->locals, &work->moves);
        wr_turn_give(run, work->turn, n);
    }
}

void wr_work_ended(struct wr_work *work, uint32_t n)
{
    wr_plan_add_ended(&work->run->plan, &work->moves.ended, n);
}

/* The node that became ready first may have lost all nodes that needed it to what followed. True: it has, so more follows. */
static bool drops(struct wr_work *work, uint32_t *kept)
{
    if (*kept == WR_NODE_NONE || wr_plan_is_needed(&work->run->plan, *kept, &work->moves))
        return false;
    *kept = WR_NODE_NONE;
    return true;
}

void wr_work_settle(struct wr_work *work)
{
    struct wr_run *run = work->run;
    struct wr_moves *moves = &work->moves;
    uint32_t n;

    if (!work->turn)
        wr_run_part(run);
    for (;;) {
        if ((n = wr_plan_next_ready(&run->plan, &moves->ready)) != WR_NODE_NONE) {
            take_ready(work, n);
        } else if ((n = wr_plan_next_ready(&run->plan, &moves->to_judge)) != WR_NODE_NONE) {
            ask_judge(work, n);
        } else if ((n = wr_plan_next_ended(&run->plan, &moves->ended)) != WR_NODE_NONE) {
            tell_result(work, n);
            end_parts(run, n);
            if (WR_UNLIKELY(run->flow->hot[n].flags & WR_F_FATAL))
                end_fatally(run, n);
            if (!wr_load(&run->closed, relaxed)) /* else each is decided by the close */
                wr_plan_tell(&run->plan, n, moves);
        } else if (!drops(work, &work->next) && !(work->keeps_own && drops(work, &work->own))) {
            return;
        }
    }
}

/* Deals with what follows; asks for a turn if one is needed. */
static void settle_and_ask(struct wr_work *work)
{
    work->told = 0;
    wr_work_settle(work);
    if (wr_turn_has_waiting(work->run, NULL))
        wr_turn_ask(work->run);
    wr_run_told(work->run, work->told);
}

/* One node that is a task of its own comes last: if this worker has nothing else to do, it runs there. The run lasts until
 * it is told of that node. */
void wr_node_ended_with(struct wr_run *run, uint32_t n, struct wr_locals *locals)
{
    struct wr_work work = { .run = run,
                            .locals = locals,
                            .moves = WR_NO_MOVES,
                            .next = WR_NODE_NONE,
                            .keeps_own = true,
                            .own = WR_NODE_NONE };

    wr_work_ended(&work, n);
    settle_and_ask(&work);
    if (work.own == WR_NODE_NONE)
        return;
    wr_own_start(&work, work.own, true);
    if (work.moves.ended.first != WR_NODE_NONE)
        settle_and_ask(&work);
}

void wr_node_ended(struct wr_run *run, uint32_t n)
{
    wr_node_ended_with(run, n, NULL);
}
