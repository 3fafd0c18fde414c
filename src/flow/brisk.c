/* Leaving the work to one turn while bodies are too short to be shared; see Note: brisk turns, in run.h.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "flow/run.h"

#include <weir/wait.h>

enum {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    BRISK_NS = 4096, /* so that slow builds go that way, too */
#else
    BRISK_NS = 128, /* a node, with its body: about what it costs to share one */
#endif
    BRISK_NODES = 16,   /* nodes that it takes to know */
    NAP_MIN_NS = 50000, /* in which a brisk turn looks at the clock several times */
    NAP_MAX_NS = 1000000,
};

/* ---- which turns work ------------------------------------------------------------------------------ */

struct turns {
    uint32_t active, standing_by;
    struct wr_turn *brisk; /* an active brisk one, not the one that asks; NULL: there is none */
};

static struct turns count_turns(struct wr_run *run, const struct wr_turn *asks)
{
    struct turns turns = { .active = 0 };

    wr_list_each(link, &run->turns) {
        struct wr_turn *turn = WR_CONTAINER(link, struct wr_turn, link);
        if (!turn->began)
            continue;
        turns.standing_by += turn->stands_by;
        turns.active += !turn->stands_by;
        if (!turn->stands_by && turn != asks && wr_load(&turn->brisk, relaxed))
            turns.brisk = turn;
    }
    return turns;
}

static void set_covered(struct wr_run *run, bool covered)
{
    bool is = wr_load(&run->coming, relaxed) & WR_COVERED;

    if (covered && !is)
        wr_add(&run->coming, WR_COVERED, seq_cst);
    else if (!covered && is)
        wr_sub(&run->coming, WR_COVERED, seq_cst);
}

/* Other threads may touch counters and deques once this returns. `lone`: the caller is the turn that works alone, if any
 * does, and is not publishing. Under the lock. */
static void part(struct wr_run *run, bool lone)
{
    if (wr_load(&run->plan.calm, relaxed) != WR_SOLO)
        return;
    if (!lone) {
        wr_store(&run->plan.calm, WR_PARTING, relaxed);
        wr_run_await_publishers(run);
    }
    wr_store(&run->plan.calm, WR_CALM, release); /* pairs with wr_run_part */
}

void wr_run_part(struct wr_run *run)
{
    if (WR_LIKELY(wr_load(&run->plan.calm, acquire) <= WR_CALM))
        return;
    wr_lock(&run->lock);
    part(run, false);
    wr_unlock(&run->lock);
}

/* Called after turns have changed. Under the lock. */
static void settle(struct wr_run *run, bool lone)
{
    struct turns turns = count_turns(run, NULL);
    bool solo = turns.brisk && turns.active == 1 && !run->flow->owns && !run->added;

    set_covered(run, turns.brisk && turns.standing_by);
    if (!solo)
        part(run, lone);
    else if (wr_load(&run->plan.calm, relaxed) == WR_CALM)
        wr_store(&run->plan.calm, WR_SOLO,
                 release); /* what others have counted; pairs with tell_calmly */
}

enum wr_entrance wr_brisk_enter(struct wr_turn *turn)
{
    struct turns turns = count_turns(turn->run, NULL);

    turn->began = true;
    if (turns.brisk && turns.standing_by) { /* two are enough */
        wr_list_remove(&turn->link);
        return WR_LEAVES;
    }
    turn->stands_by = turns.brisk != NULL;
    settle(turn->run, false);
    return turn->stands_by ? WR_STANDS_BY : WR_WORKS;
}

void wr_brisk_leave(struct wr_turn *turn)
{
    wr_list_remove(&turn->link);
    settle(turn->run, !turn->stands_by);
}

static void set_brisk(struct wr_turn *turn, bool brisk)
{
    if (wr_load(&turn->brisk, relaxed) == brisk)
        return;
    wr_lock(&turn->run->lock);
    wr_store(&turn->brisk, brisk, relaxed);
    settle(turn->run, true);
    wr_unlock(&turn->run->lock);
}

void wr_brisk_stop(struct wr_turn *turn)
{
    set_brisk(turn, false);
}

bool wr_brisk_look(struct wr_turn *turn, uint32_t nodes, int64_t ns)
{
    struct wr_run *run = turn->run;
    uint32_t calm = wr_load(&run->plan.calm, relaxed);
    bool brisk = calm >= WR_CALM && nodes >= BRISK_NODES && ns <= (int64_t)nodes * BRISK_NS;
    bool others = false;

    wr_bump(&turn->looks);
    set_brisk(turn, brisk);
    if (brisk && calm != WR_SOLO) {
        wr_lock(&run->lock);
        others = count_turns(run, turn).brisk != NULL;
        wr_unlock(&run->lock);
    }
    return others;
}

/* ---- standing by ----------------------------------------------------------------------------------- */

/* A turn of this run that is coming does not count: it wants the permit for the same run. */
bool wr_brisk_is_wanted(struct wr_run *run)
{
    return wr_group_has_rivals(run->group, wr_load(&run->coming, relaxed) & WR_COMING);
}

/* Whether the turn is to go on standing by, given what it saw of the brisk one before its nap. Under the lock. */
static bool goes_on(struct wr_turn *turn, struct wr_turn **brisk, uint32_t *looks)
{
    struct wr_turn *former = *brisk;
    uint32_t seen = *looks;

    *brisk = count_turns(turn->run, turn).brisk;
    if (!*brisk)
        return false;
    *looks = wr_load(&(*brisk)->looks, relaxed);
    if (*brisk != former || *looks != seen)
        return true;
    wr_store(&(*brisk)->brisk, false, relaxed); /* it runs a long body */
    return false;
}

bool wr_brisk_stand_by(struct wr_turn *turn)
{
    struct wr_run *run = turn->run;
    struct wr_turn *brisk = NULL;
    int64_t nap = NAP_MIN_NS;
    uint32_t looks = 0;
    bool leaves = false;

    wr_lock(&run->lock);
    while (!leaves && goes_on(turn, &brisk, &looks)) {
        turn->stands_by = true;
        settle(run, false);
        wr_unlock(&run->lock);
        leaves = wr_brisk_is_wanted(run) || weir_sleep(wr_os_now() + nap) ||
                 wr_load(&run->closed, relaxed);
        nap = nap < NAP_MAX_NS ? 2 * nap : nap;
        wr_lock(&run->lock);
    }
    if (leaves) {
        wr_brisk_leave(turn);
    } else {
        turn->stands_by = false;
        settle(run, false);
    }
    wr_unlock(&run->lock);
    return !leaves;
}
