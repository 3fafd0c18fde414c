/* Turns: tasks of the run's group that run ready nodes, one after the other; see run.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "flow/run.h"

#include <weir/error.h>
#include <weir/wait.h>

enum {
    SLICE_NS = 100000,   /* how long a turn goes on before others of its worker's go first */
    LOOK_EVERY_MAX = 64, /* nodes that may begin between two looks at the clock */
    STEAL_MAX = 32,      /* nodes taken at once */
};

static bool is_closed(struct wr_run *run)
{
    return wr_load(&run->closed, relaxed);
}

/* ---- nodes that wait for a turn --------------------------------------------------------------------- */

void wr_turn_give(struct wr_run *run, struct wr_turn *turn, uint32_t n)
{
    if (turn && wr_deque_push(&turn->deque, n))
        return;
    wr_lock(&run->lock);
    wr_plan_add_ready(&run->plan, &run->ready, n);
    wr_add(&run->waiting, 1, seq_cst);
    wr_unlock(&run->lock);
}

/* Up to half of what waits in the run's own list, in order; few at first, since bodies may be long. Under the lock. */
static uint32_t take_waiting(struct wr_turn *turn)
{
    struct wr_run *run = turn->run;
    uint32_t most = (wr_load(&run->waiting, relaxed) + 1) / 2, count = 0, node[STEAL_MAX];

    while (count < most && count < turn->grab &&
           (node[count] = wr_plan_next_ready(&run->plan, &run->ready)) != WR_NODE_NONE)
        count++;
    wr_sub(&run->waiting, count, seq_cst);
    for (uint32_t i = count; i-- > 1;)
        wr_deque_push(&turn->deque, node[i]); /* which is empty, and has room */
    return count ? node[0] : WR_NODE_NONE;
}

/* Up to half of what another turn has in its hands. Under the lock. */
static uint32_t steal(struct wr_turn *turn, struct wr_turn *from)
{
    uint32_t count = (wr_deque_length(&from->deque) + 1) / 2, n;
    uint32_t first = count ? wr_deque_steal(&from->deque) : WR_NODE_NONE;

    for (uint32_t i = 1; i < count && i < turn->grab && first != WR_NODE_NONE; i++) {
        n = wr_deque_steal(&from->deque);
        if (n == WR_NODE_NONE)
            break;
        wr_deque_push(&turn->deque, n);
    }
    return first;
}

/* Under the lock. */
static uint32_t take_or_steal(struct wr_turn *turn, bool *others)
{
    struct wr_run *run = turn->run;
    uint32_t n = take_waiting(turn);

    *others = false;
    if (n == WR_NODE_NONE)
        wr_list_each(link, &run->turns) {
            struct wr_turn *other = WR_CONTAINER(link, struct wr_turn, link);
            if (other == turn || !other->began || other->stands_by)
                continue;
            *others = true;
            if ((n = steal(turn, other)) != WR_NODE_NONE)
                break;
        }
    return n;
}

/* A node for a turn that has none; if there is none, the turn is over: it has left when this returns. See Note: no node is
 * left alone, in run.h. */
static uint32_t find_node(struct wr_turn *turn)
{
    struct wr_run *run = turn->run;
    bool others;
    uint32_t n;

    wr_lock(&run->lock);
    n = take_or_steal(turn, &others);
    if (n == WR_NODE_NONE && others && run->flow->is_large) {
        wr_os_fence_heavy();
        n = take_or_steal(turn, &others);
    }
    if (n == WR_NODE_NONE)
        wr_brisk_leave(turn);
    wr_unlock(&run->lock);
    if (turn->grab < STEAL_MAX)
        turn->grab *= 2;
    return n;
}

static void flush_told(struct wr_turn *turn)
{
    wr_run_told(turn->run, wr_turn_to_count(turn));
}

/* ---- a turn -------------------------------------------------------------------------------------------- */

/* Whether a node that stayed RUNNING may begin: no node has ended it, and some node needs it. */
static bool begins_still(struct wr_turn *turn, uint32_t n)
{
    struct wr_run *run = turn->run;
    struct wr_work work = { .run = run, .turn = turn, .moves = WR_NO_MOVES, .next = WR_NODE_NONE };
    bool needed = true;

    if (wr_load(&run->plan.word[n], acquire))
        return false;
    if (wr_load(&run->plan.losses, relaxed))
        needed = wr_plan_is_needed(&run->plan, n, &work.moves);
    if (!needed) {
        wr_work_settle(&work);
        wr_turn_has_told(turn, work.told);
        if (work.next != WR_NODE_NONE) { /* this one goes on with another */
            wr_plan_put_off(&run->plan, work.next, NULL, &work.moves);
            wr_turn_give(run, NULL, work.next);
            wr_work_settle(&work);
        }
    }
    return needed;
}

/* A node that stayed RUNNING in the hands of a turn is as one that has begun, but for how it is counted: see
 * wr_turn_holds. */
uint32_t wr_turn_begin(struct wr_turn *turn, uint32_t n)
{
    struct wr_plan *plan = &turn->run->plan;
    void *locals;

    for (; n != WR_NODE_NONE; n = wr_deque_take(&turn->deque)) {
        if (!(wr_load(&plan->word[n], relaxed) & WR_READY)) {
            if (begins_still(turn, n))
                return n;
            continue;
        }
        if (!wr_plan_begin(plan, n, &locals))
            continue;
        if (locals)
            wr_locals_release(wr_locals_install(locals));
        return n;
    }
    return WR_NODE_NONE;
}

uint32_t wr_turn_take(struct wr_turn *turn)
{
    return wr_turn_begin(turn, wr_deque_take(&turn->deque));
}

uint32_t wr_turn_holds(struct wr_run *run, uint32_t n)
{
    uint32_t count = 0;

    wr_lock(&run->lock);
    wr_list_each(link, &run->turns) {
        struct wr_deque *deque = &WR_CONTAINER(link, struct wr_turn, link)->deque;
        for (uint32_t i = wr_load(&deque->top, acquire), end = wr_load(&deque->bottom, acquire);
             (int32_t)(end - i) > 0; i++) {
            uint32_t held = wr_load(&deque->place[i % WR_DEQUE], relaxed);
            uint64_t word = wr_load(&run->plan.word[held], relaxed);
            count += !word && (n == WR_NODE_NONE || n == held);
        }
    }
    wr_unlock(&run->lock);
    return count;
}

static uint32_t next_node(struct wr_turn *turn)
{
    uint32_t n = wr_turn_take(turn);

    while (n == WR_NODE_NONE) {
        flush_told(turn);
        n = find_node(turn);
        if (n == WR_NODE_NONE)
            return WR_NODE_NONE;
        wr_turn_ask(turn->run); /* there may be more */
        n = wr_turn_begin(turn, n);
    }
    return n;
}

static void begin_slice(struct wr_turn *turn)
{
    turn->until_look = turn->look_every = turn->grab = 1;
    turn->began_at = turn->looked_at = wr_os_now();
}

/* What a turn does after a look at the clock. */
enum look { GO_ON, STAND_BY, OVER };

/* Whether the turn has lasted long enough for others to go first, or is to leave the work to another. It looks at the clock
 * the more rarely the shorter bodies are, and after each one again as soon as some were long. */
static enum look look(struct wr_turn *turn)
{
    uint32_t nodes = turn->look_every;
    weir_time now = wr_os_now();
    int64_t took = now - turn->looked_at;

    if (took > SLICE_NS / 16)
        turn->look_every = 1;
    else if (turn->look_every < LOOK_EVERY_MAX)
        turn->look_every *= 2;
    turn->until_look = turn->look_every;
    turn->looked_at = now;
    if (wr_brisk_look(turn, nodes, took))
        return STAND_BY;
    return now - turn->began_at >= SLICE_NS ? OVER : GO_ON;
}

static void leave_list(struct wr_turn *turn)
{
    wr_lock(&turn->run->lock);
    wr_brisk_leave(turn);
    wr_unlock(&turn->run->lock);
}

/* The nodes in the turn's hands go to the run's list, for the next turn. */
static void lay_down(struct wr_turn *turn, uint32_t n)
{
    struct wr_run *run = turn->run;
    struct wr_work work = { .run = run, .moves = WR_NO_MOVES, .next = WR_NODE_NONE };

    if (n != WR_NODE_NONE) {
        wr_plan_put_off(&run->plan, n, NULL, &work.moves);
        wr_turn_give(run, NULL, n);
    }
    while ((n = wr_deque_take(&turn->deque)) != WR_NODE_NONE) {
        wr_plan_put_off(&run->plan, n, NULL, &work.moves); /* changes nothing if it is READY */
        wr_turn_give(run, NULL, n);
    }
    wr_work_settle(&work);
    wr_turn_has_told(turn, work.told);
}

static void ask_if_waiting(struct wr_run *run)
{
    if (wr_turn_has_waiting(run, NULL))
        wr_turn_ask(run);
}

/* No task wants to go first but those that are ready on this thread: the turn keeps its nodes. Answers a node that is left in
 * its hands. */
static uint32_t yield(struct wr_turn *turn, uint32_t n)
{
    if (n != WR_NODE_NONE && !wr_deque_push(&turn->deque, n))
        return n;
    if (wr_turn_has_waiting(turn->run, turn))
        wr_turn_ask(turn->run); /* what runs here meanwhile may take long */
    weir_yield();
    turn->began_at = turn->looked_at = wr_os_now();
    return WR_NODE_NONE;
}

/* Lets other tasks go first. False: no other turn could be had, and this one goes on. */
static bool make_way(struct wr_turn *turn, uint32_t n, bool asked)
{
    struct wr_run *run = turn->run;

    wr_brisk_stop(turn);
    lay_down(turn, n);
    wr_store(&run->refused, false, relaxed);
    ask_if_waiting(run);
    if (wr_load(&run->refused, relaxed) && !asked) {
        turn->began_at = wr_os_now();
        return false;
    }
    leave_list(turn);
    flush_told(turn);
    ask_if_waiting(run);
    return true;
}

/* Leaves the work to another turn. False: the turn has left. */
static bool stand_by(struct wr_turn *turn, uint32_t n)
{
    struct wr_run *run = turn->run;

    lay_down(turn, n);
    flush_told(turn);
    if (wr_brisk_stand_by(turn)) {
        begin_slice(turn);
        return true;
    }
    ask_if_waiting(run);
    return false;
}

/* Begins the turn. False: it has left. */
static bool begin(struct wr_turn *turn)
{
    struct wr_run *run = turn->run;
    enum wr_entrance entrance;

    begin_slice(turn);
    wr_store(&turn->current, WR_NODE_NONE, relaxed);
    turn->locals = wr_locals_place();
    turn->step.run = run;
    turn->step.in_body = true;
    wr_locals_release(wr_locals_install(wr_locals_ref(run->locals)));
    wr_lock(&run->lock);
    if (wr_load(&turn->asked, relaxed)) { /* and refused: the turn counts as one that never came */
        wr_unlock(&run->lock);
        return false;
    }
    turn->task = weir_task_self();
    wr_turn_expect(turn);
    entrance = wr_brisk_enter(turn);
    wr_unlock(&run->lock);
    wr_sub(&run->coming, WR_COMING, seq_cst);
    if (entrance == WR_LEAVES)
        ask_if_waiting(run); /* a turn that is gone by now may have counted on this one */
    return entrance == WR_WORKS || (entrance == WR_STANDS_BY && stand_by(turn, WR_NODE_NONE));
}

/* After a look at the clock, or asked to end. False: the turn has left. */
static bool go_on(struct wr_turn *turn, enum look look, uint32_t *n, bool asked)
{
    bool stays;

    if (look == GO_ON || is_closed(turn->run))
        return true;
    if (look == OVER && !asked && wr_load(&turn->brisk, relaxed) &&
        !wr_brisk_is_wanted(turn->run)) {
        *n = yield(turn, *n);
        return true;
    }
    stays = look == STAND_BY ? stand_by(turn, *n) : !make_way(turn, *n, asked);
    *n = WR_NODE_NONE;
    return stays;
}

int wr_turn_run(void **value, void *turn_arg)
{
    struct wr_turn *turn = turn_arg;
    struct wr_run *run = turn->run;
    bool asked = false;
    uint32_t n;

    (void)value;
    if (!begin(turn))
        return 0;
    n = next_node(turn);
    while (n != WR_NODE_NONE) {
        wr_fence_light(); /* Note: what turns have told */
        if (WR_UNLIKELY(is_closed(run))) {
            leave_list(turn); /* the close decides what is left */
            break;
        }
        n = wr_walk(turn, n, &asked);
        asked = asked || wr_load(&turn->asked, relaxed);
        if (WR_UNLIKELY(asked || !turn->until_look) &&
            !go_on(turn, asked ? OVER : look(turn), &n, asked))
            break;
        if (n == WR_NODE_NONE)
            n = next_node(turn);
    }
    flush_told(turn);
    return 0;
}
