/* The life of a run: from its start, through the one end it has, to its last reference.
 * SPDX-License-Identifier: MIT */
#include "flow/run.h"

#include "base/assert.h"
#include "base/options.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/error.h>

/* ---- references -------------------------------------------------------------------------------------- */

/* Parts keep the run's task, not only its memory: a body that runs on after the end may still ask for it. One reference is
 * enough for all parts, since a task has few to give. When the first part is added the task is still there, since its end was
 * not told of. Nor is the run around a sub-run gone then, since it waits to hear of that end; it is kept as long as the
 * sub-run has parts, since bodies of the sub-run use its input and its values. */
void wr_run_ref(struct wr_run *run)
{
    if (wr_add(&run->parts, 1, acq_rel) != 0)
        return;
    weir_task_ref(wr_load(&run->task, acquire));
    if (run->outer)
        wr_run_ref(run->outer); /* not its first part: see start_sub */
}

void wr_run_unref(struct wr_run *run)
{
    while (run) {
        weir_task *task = wr_load(&run->task, acquire);
        struct wr_run *outer = run->outer;
        if (wr_sub(&run->parts, 1, acq_rel) != 1)
            return;
        weir_task_unref(task);
        run = outer;
    }
}

static void drop_values(struct wr_run *run)
{
    for (uint32_t n = 0; n < run->flow->count; n++) {
        uint64_t word = wr_load(&run->plan.word[n], relaxed);
        if (run->flow->hot[n].flags & WR_F_DROP)
            wr_node_drop_value(run, n, wr_plan_value(&run->plan, n, word));
    }
}

/* Nodes that were added go after the values, which they may have made. */
static void fini_owns(struct wr_run *run)
{
    struct wr_own *own, *more;

    for (uint32_t i = 0; i < run->flow->owns; i++)
        wr_own_fini(&run->own[i]);
    for (own = run->added; own; own = more) {
        more = own->more;
        wr_own_fini(own);
        wr_os_free(own);
    }
    wr_os_free(run->added_by);
}

static void run_free(struct wr_run *run)
{
    if (run->flow->has_drops)
        drop_values(run);
    fini_owns(run);
    if (run->drop_input)
        run->drop_input(run->input);
    weir_task_unref(run->latest);
    wr_locals_release(run->locals);
    wr_flow_unref(run->flow);
    wr_os_free(run);
}

/* ---- the end ----------------------------------------------------------------------------------------- */

/* The first of the last nodes (no node comes after them) that is neither done nor skipped; WR_NODE_NONE: there is none. */
static uint32_t first_failed(const struct wr_run *run)
{
    for (uint32_t i = 0; i < run->flow->sinks; i++) {
        uint32_t n = run->flow->sink[i];
        weir_outcome outcome = wr_word_outcome(wr_load(&run->plan.word[n], acquire));
        if (outcome != WEIR_DONE && outcome != WEIR_SKIPPED)
            return n;
    }
    return WR_NODE_NONE;
}

/* All nodes were told of: the run ends as the first failed node of these did. */
static void settle(struct wr_run *run)
{
    weir_node_result result = { .error = 0 };
    uint32_t n = first_failed(run);

    wr_store(&run->settling, true, relaxed);
    if (n != WR_NODE_NONE)
        wr_node_result(&result, run, n);
    wr_whole_settle(wr_load(&run->task, acquire), result.error, result.reason);
}

/* Once nothing is left, the task may be gone at any time. */
static void count_down(struct wr_run *run, uint64_t count)
{
    weir_task *task = wr_load(&run->task, acquire);

    if (wr_sub(&run->left, count, acq_rel) == count)
        wr_whole_over(task);
}

/* The last nodes settle the run before they are counted, so that its task is still there. If it was ended from outside
 * before, that changes nothing. */
void wr_run_told(struct wr_run *run, uint64_t count)
{
    uint64_t left = wr_load(&run->left, relaxed);

    if (!count)
        return;
    while (left - count != 1)
        if (wr_cas(&run->left, &left, left - count, acq_rel)) {
            if (left == count)
                wr_whole_over(wr_load(&run->task, acquire));
            return;
        }
    settle(run);
    count_down(run, count);
}

bool wr_run_hold(struct wr_run *run)
{
    uint64_t left = wr_load(&run->left, relaxed);

    do {
        if (!left)
            return false;
    } while (!wr_cas(&run->left, &left, left + 1, acq_rel));
    return true;
}

void wr_run_await_publishers(struct wr_run *run)
{
    wr_os_fence_heavy(); /* pairs with run_calmly */
    wr_list_each(link, &run->turns)
        while (wr_load(&WR_CONTAINER(link, struct wr_turn, link)->step.node, acquire) ==
               WR_PUBLISHING)
            wr_os_yield(); /* the turn is a few instructions away from the end of that */
}

void wr_turn_expect(struct wr_turn *turn)
{
    struct wr_run *run = turn->run;
    bool plainly = wr_load(&run->plan.calm, relaxed) >= WR_CALM && !turn->step.added &&
                   !wr_load(&turn->asked, relaxed);

    wr_store(&turn->step.expects, plainly ? run->locals : WR_NO_LOCALS, relaxed);
}

void wr_run_stir(struct wr_plan *plan)
{
    struct wr_run *run = WR_CONTAINER(plan, struct wr_run, plan);

    wr_lock(&run->lock);
    if (wr_load(&plan->calm, relaxed) != WR_STIRRED) {
        wr_store(&plan->calm, WR_STIRRING, relaxed);
        wr_list_each(link, &run->turns)
            wr_turn_expect(WR_CONTAINER(link, struct wr_turn, link));
        wr_run_await_publishers(run);
        wr_store(&plan->calm, WR_STIRRED, release); /* pairs with lose */
    }
    wr_unlock(&run->lock);
}

/* Decides whatever has not ended. Answers how many there were, told of. */
static uint64_t sweep(struct wr_run *run, weir_outcome outcome, weir_reason reason)
{
    struct wr_work work = { .run = run, .moves = WR_NO_MOVES, .next = WR_NODE_NONE };

    wr_run_stir(&run->plan);
    for (uint32_t n = 0; n < run->flow->count; n++)
        if (wr_plan_close(&run->plan, n, outcome, reason))
            wr_work_ended(&work, n);
    wr_work_settle(&work);
    return work.told;
}

/* Asks bodies to end: all of them on a cancel; on a deadline those that may be interrupted. What waits is taken back. */
static void end_parts(struct wr_run *run, bool all)
{
    wr_turn_interrupt(run, WR_NODE_NONE, all);
    for (uint32_t i = 0; i < run->flow->owns; i++) {
        uint32_t n = run->own[i].node;
        bool may = all || run->plan.interrupt || run->flow->hot[n].flags & WR_F_INTERRUPT;
        if (!run->flow->body[n].fn)
            wr_own_end_sub(&run->own[i]);
        else if (may || !wr_own_runs(&run->own[i]))
            wr_own_cancel(&run->own[i]);
    }
    for (struct wr_own *own = wr_run_added(run); own; own = own->more)
        wr_own_end_sub(own);
}

/* How many nodes turns have told of and have yet to count: the caller counts for them, since their bodies may take long.
 * Note: what turns have told. */
static uint64_t count_for_turns(struct wr_run *run)
{
    uint64_t told = 0;

    wr_lock(&run->lock);
    if (run->flow->is_large)
        wr_os_fence_heavy();
    wr_list_each(link, &run->turns)
        told += wr_turn_to_count(WR_CONTAINER(link, struct wr_turn, link));
    wr_unlock(&run->lock);
    return told;
}

static void run_ended(struct wr_whole *whole, weir_task *task, weir_outcome outcome,
                      weir_reason reason)
{
    struct wr_run *run = WR_CONTAINER(whole, struct wr_run, whole);
    bool timed_out = outcome == WEIR_TIMED_OUT;
    uint64_t told = 0;

    wr_store(&run->task, task, release); /* the start may not have come to it */
    wr_store(&run->closed, wr_word_of(outcome, reason), seq_cst);
    if (!wr_load(&run->settling, relaxed)) { /* else all have ended */
        told = sweep(run, timed_out ? WEIR_TIMED_OUT : WEIR_CANCELLED, reason);
        end_parts(run, !timed_out || run->asks);
        told += count_for_turns(run);
    }
    count_down(run, told + 1);
}

static void run_gone(struct wr_whole *whole)
{
    run_free(WR_CONTAINER(whole, struct wr_run, whole));
}

/* Whether the task is one of the run's turns. */
static bool is_turn(struct wr_run *run, const weir_task *task)
{
    bool is = false;

    wr_lock(&run->lock);
    wr_list_each(link, &run->turns)
        is = is || WR_CONTAINER(link, struct wr_turn, link)->task == task;
    wr_unlock(&run->lock);
    return is;
}

static bool run_inside(struct wr_whole *whole, const weir_task *task);

/* Whether the task is the sub-run that a node has started, whose end calls back, or a body of it. */
static bool sub_inside(struct wr_own *own, const weir_task *task)
{
    struct wr_run *sub;
    bool is;

    wr_lock(&own->run->lock);
    is = own->task == task;
    sub = own->task ? wr_run_of(own->task) : NULL; /* which is there as long as the run is */
    wr_unlock(&own->run->lock);
    return is || (sub && run_inside(&sub->whole, task));
}

/* Whether a task's body is one of the run's, or of a sub-run's. The lock is not kept while many nodes are looked at: the
 * task itself asks, so what is true of it stays true meanwhile. */
static bool run_inside(struct wr_whole *whole, const weir_task *task)
{
    struct wr_run *run = WR_CONTAINER(whole, struct wr_run, whole);
    bool inside = is_turn(run, task);

    for (uint32_t i = 0; i < run->flow->owns && !inside; i++) {
        struct wr_own *own = &run->own[i];
        inside = wr_load(&own->runner, relaxed) == task ||
                 (!run->flow->body[own->node].fn && sub_inside(own, task));
    }
    for (struct wr_own *own = wr_run_added(run); own && !inside; own = own->more)
        inside = wr_load(&own->runner, relaxed) == task || sub_inside(own, task);
    return inside;
}

/* A run waits for one thing only if there is one turn, or one task of a node, and nothing else. */
static void look_at_sole_part(struct wr_whole *whole,
                              void (*look)(struct weir_task *part, void *arg), void *arg)
{
    struct wr_run *run = WR_CONTAINER(whole, struct wr_run, whole);
    weir_task *part = NULL;
    uint32_t parts = 0;

    wr_lock(&run->lock);
    wr_list_each(link, &run->under_way) {
        part = WR_CONTAINER(link, struct wr_own, link)->task;
        if (++parts > 1)
            break;
    }
    wr_list_each(link, &run->turns) {
        struct wr_turn *turn = WR_CONTAINER(link, struct wr_turn, link);
        part = turn->began ? turn->task : run->latest;
        if (++parts > 1)
            break;
    }
    if (parts == 1 && part && !wr_load(&run->closed, relaxed))
        look(part, arg);
    wr_unlock(&run->lock);
}

struct wr_own *wr_run_added(struct wr_run *run)
{
    struct wr_own *added;

    wr_lock(&run->lock);
    added = run->added;
    wr_unlock(&run->lock);
    return added; /* none is ever removed, and new ones are put first */
}

struct wr_own *wr_run_added_by(struct wr_run *run, uint32_t n)
{
    struct wr_own *added;

    wr_lock(&run->lock);
    added = run->added_by ? run->added_by[n] : NULL;
    wr_unlock(&run->lock);
    return added;
}

/* An array finds them by node. It is made on the first call, and hardly touched in runs that hardly need it. */
int wr_run_add(struct wr_run *run, struct wr_own *own)
{
    struct wr_own **by;

    wr_lock(&run->lock);
    by = run->added_by;
    if (!by)
        by = run->added_by = wr_os_alloc(run->flow->count * sizeof(by[0]));
    if (by) {
        own->more = run->added;
        run->added = by[own->node] = own;
    }
    wr_unlock(&run->lock);
    return by ? 0 : WEIR_ENOMEM;
}

struct wr_run *wr_run_of(const weir_task *task)
{
    struct wr_whole *whole = task ? wr_task_whole(task) : NULL;

    return whole && whole->ended == run_ended ? WR_CONTAINER(whole, struct wr_run, whole) : NULL;
}

/* ---- the start --------------------------------------------------------------------------------------- */

/* The next part of the memory, or NULL if there is none yet. */
static void *cut(char *memory, size_t *used, size_t count, size_t size)
{
    void *part = memory ? memory + *used : NULL;

    *used += (count * size + 15) / 16 * 16;
    return part;
}

/* Called twice: the first time, without memory, for how much is needed; then to place each part. */
static size_t lay_out(struct wr_run *run, char *memory, const struct weir_flow *flow,
                      const weir_run_options *o)
{
    size_t n = flow->count, used = (sizeof(*run) + 63) / 64 * 64;
    _Atomic uint64_t *word = cut(memory, &used, n, sizeof(*word));
    union wr_slot *slot = cut(memory, &used, n, sizeof(*slot));
    struct wr_links *links = cut(memory, &used, n, sizeof(*links));
    _Atomic uint32_t *lost = cut(memory, &used, n, sizeof(*lost));
    struct wr_join *join = cut(memory, &used, flow->joins, sizeof(*join));
    struct wr_own *own = cut(memory, &used, flow->owns, sizeof(*own));
    struct wr_times *times = o->times ? cut(memory, &used, n, sizeof(*times)) : NULL;
    void **param = o->param_count ? cut(memory, &used, n, sizeof(*param)) : NULL;
    uint64_t *given = o->param_count ? cut(memory, &used, (n + 63) / 64, sizeof(*given)) : NULL;

    if (run) {
        run->plan.word = word;
        run->plan.slot = slot;
        run->plan.links = links;
        run->plan.lost = lost;
        run->plan.join = join;
        run->own = own;
        run->times = times;
        run->param = param;
        run->given = given;
    }
    return used;
}

/* The parameters were checked. */
static void set_params(struct wr_run *run, const weir_run_options *o)
{
    for (size_t i = 0; i < o->param_count; i++) {
        uint32_t n = wr_flow_find(run->flow, o->params[i].id, strlen(o->params[i].id))->index;
        run->param[n] = o->params[i].arg;
        run->given[n / 64] |= UINT64_C(1) << n % 64;
    }
}

static void release_locals(void *locals)
{
    wr_locals_release(locals);
}

static struct wr_run *run_new(struct weir_flow *flow, weir_group *group, const weir_run_options *o,
                              const struct wr_own *node)
{
    size_t bytes = lay_out(NULL, NULL, flow, o);
    struct wr_run *run = wr_os_alloc_raw(bytes);

    if (!run)
        return NULL;
    memset(run, 0, sizeof(*run));
    lay_out(run, (char *)run, flow, o);
    if (run->times)
        memset(run->times, 0, flow->count * sizeof(run->times[0]));
    if (run->given)
        memset(run->given, 0, (flow->count + 63) / 64 * sizeof(run->given[0]));
    run->bytes = bytes;
    run->whole = (struct wr_whole){ .ended = run_ended,
                                    .inside = run_inside,
                                    .look_at_sole_part = look_at_sole_part,
                                    .gone = run_gone };
    run->plan.flow = run->flow = wr_flow_ref(flow);
    run->plan.skip = o->skip;
    run->plan.interrupt = o->interrupt;
    run->plan.release = release_locals;
    run->group = group;
    run->outer = node ? node->run : NULL;
    run->asks =
        node && (node->run->asks || node->run->flow->hot[node->node].flags & WR_F_INTERRUPT);
    run->locals = wr_locals_capture();
    run->odd = o->times || o->param_count || o->interrupt || o->skip == WEIR_SKIP_ONE_LEVEL;
    wr_store(&run->plan.calm, flow->is_large && !run->odd ? WR_CALM : WR_STIRRED, relaxed);
    run->plan.stir = wr_run_stir;
    run->input = o->input;
    wr_store(&run->fatal, WR_NODE_NONE, relaxed);
    wr_store(&run->left, (uint64_t)flow->count + 1, relaxed);
    wr_list_init(&run->turns);
    wr_list_init(&run->under_way);
    run->ready = (struct wr_row){ WR_NODE_NONE, WR_NODE_NONE };
    wr_plan_init(&run->plan);
    for (uint32_t i = 0; i < flow->owns; i++)
        wr_own_init(&run->own[i], run, flow->own[i]);
    return run;
}

/* Nodes that need no other. */
static void start_roots(struct wr_run *run)
{
    struct wr_work work = { .run = run, .moves = WR_NO_MOVES, .next = WR_NODE_NONE };
    const struct weir_flow *flow = run->flow;
    void *locals;

    for (uint32_t i = 0; i < flow->roots; i++) {
        uint32_t n = flow->root[i];
        if (run->times)
            wr_times_note(&run->times[n].ready_at, wr_os_now());
        if (!(flow->hot[n].flags & WR_F_OWN))
            wr_turn_give(run, NULL, n);
        else if (wr_plan_begin(&run->plan, n, &locals))
            wr_own_start(&work, n, false);
    }
    wr_work_settle(&work);
    wr_turn_ask(run);
    wr_run_told(run, work.told);
    if (!flow->count)
        settle(run);
}

/* A sub-run is known to its node before it does anything; its handle is kept, since its values are the run's. */
static void keep_sub_run(struct wr_own *node, weir_task *task)
{
    wr_lock(&node->run->lock);
    wr_own_keep(node, weir_task_ref(task));
    wr_unlock(&node->run->lock);
}

int wr_run_start(weir_task **out, struct weir_flow *flow, weir_group *group,
                 const weir_run_options *o, struct wr_own *node)
{
    struct wr_run *run = run_new(flow, group, o, node);
    weir_task *task = NULL;
    int rc;

    if (!run)
        return WEIR_ENOMEM;
    set_params(run, o);
    rc =
        wr_submit_whole(&task, group, &run->whole,
                        WEIR_TASK(.id = o->id, .on_done = o->on_done, .on_done_arg = o->on_done_arg,
                                  .deadlines = wr_group_no_deadlines(group, o->deadline_ms)));
    if (rc) {
        run_free(run);
        return rc;
    }
    run->drop_input = o->drop_input; /* not before: after an error the input is the caller's */
    wr_store(&run->task, task, release);
    if (out)
        *out = weir_task_ref(task);
    if (node)
        keep_sub_run(node, task);
    start_roots(run);
    weir_task_unref(task);
    return 0;
}

static int say(weir_message *message, int rc, const char *sentence)
{
    if (message)
        snprintf(message->text, sizeof(message->text), "%s\n", sentence);
    return rc;
}

static int check_arguments(const struct weir_flow *flow, const weir_group *group,
                           const weir_run_options *o, weir_message *message)
{
    char range[100];

    if (!flow)
        return say(message, WEIR_EINVAL, "there is no flow");
    if (!group)
        return say(message, WEIR_EINVAL, "there is no group to run under");
    if ((unsigned)o->skip > WEIR_SKIP_ONE_LEVEL)
        return say(message, WEIR_EINVAL, "skip is none of the modes");
    if (o->param_count && !o->params)
        return say(message, WEIR_EINVAL, "param_count is set, but params is NULL");
    if (o->id && strlen(o->id) > WEIR_ID_MAX) {
        snprintf(range, sizeof(range), "id is too long: at most %d bytes", WEIR_ID_MAX);
        return say(message, WEIR_EINVAL, range);
    }
    if (o->deadline_ms >= 0 && o->deadline_ms <= WEIR_SPAN_MAX_MS)
        return 0;
    snprintf(range, sizeof(range), "deadline_ms is out of range: 1 to %lld, or 0 for none",
             (long long)WEIR_SPAN_MAX_MS);
    return say(message, WEIR_EINVAL, range);
}

static int check_params(const struct weir_flow *flow, const weir_run_options *o,
                        weir_message *message)
{
    for (size_t i = 0; i < o->param_count; i++) {
        const char *id = o->params[i].id;
        if (id && wr_flow_find(flow, id, strlen(id)))
            continue;
        if (message)
            snprintf(message->text, sizeof(message->text),
                     "there is no node \"%.400s\" for a parameter\n", id ? id : "");
        return WEIR_EINVAL;
    }
    return 0;
}

int weir_flow_start(weir_task **out, weir_flow *flow, weir_group *group,
                    const weir_run_options *opt, weir_message *message)
{
    weir_run_options options;
    int rc = wr_options_load(&options, sizeof(options), opt);

    if (out)
        *out = NULL;
    if (message)
        message->text[0] = '\0';
    if (!rc)
        rc = check_arguments(flow, group, &options, message);
    if (!rc)
        rc = wr_flow_freeze_or_say(flow, message);
    if (!rc)
        rc = check_params(flow, &options, message);
    if (!rc)
        rc = wr_run_start(out, flow, group, &options, NULL);
    return rc && message && !message->text[0] ? say(message, rc, weir_strerror(rc)) : rc;
}
