/* A run: one allocation with the state of every node; and the turns that work on it.
 *
 * Ready plain nodes are run by turns: tasks of the run's group, each of which runs one node after the other. A node that
 * becomes ready goes to the turn that made it so, if it is the first one; others go into that turn's deque, where other
 * turns steal, or, made ready elsewhere, into the run's own list. Whenever a node is left there, and no turn is on its way,
 * one is submitted: the group's limit decides how many of them run. docs/internals/flow.md.
 *
 *     left == nodes that were not told of + sub-runs that have not settled + 1 until the run has heard of its end
 *                                                                                    told: `result` has returned
 *     left == 0: the end is published
 *     parts == turns + tasks of nodes + naps + sub-runs;  parts > 0 implies that the run has a reference to its task,
 *                                                        and, of a sub-run, that it is a part of the run around it
 *     coming == turns that were submitted and have not begun (<= 1), plus WR_COVERED, if it is
 *
 * Note: calm runs. Two locked instructions, one for the end of a node and one for the counter of the next, are most of what a
 * plain node costs. They are needed because a node may be decided by another thread than the turn that runs it: by a close
 * (cancel, deadline), or when it is skipped. A large run is *calm* until the first of that happens, and in a calm run
 * a turn changes two kinds of words by plain stores: that of the node whose body has returned, and that of its *heir*,
 * which has no other node before it, as it has no other after it. The turn says so (`publishing`) before it looks whether
 * the run is calm, and no more when it is done: the word that says which node's body runs says that, too. A thread that
 * wants to decide nodes stirs the run first (wr_run_stir), once:
 *
 *     turn:  publishing = true;  light fence;  calm?  then store the words;  publishing = false
 *     stir:  calm = STIRRING;    heavy fence;  wait until no turn is publishing;  calm = STIRRED
 *
 * One of the two sees what the other has written: the heavy fence (wr_os_fence_heavy) makes every CPU pass a full one, so that
 * turns need none. Each turn has its own word to look at (`step.expects`, written under the run's lock): the context that a body
 * must leave behind for its end to be published like that. It is the run's while the run is calm and the body has added no
 * nodes, and else one that no body leaves, so that a turn looks at all three at once. A run stays stirred. Runs of few nodes
 * are never calm, since for them the fence costs more than it saves.
 *
 * Note: brisk turns. If bodies take less time than a cache line takes from one CPU to the next, a second turn makes a run
 * slower, not faster. A turn whose latest nodes took BRISK_NS each or less is *brisk*. While a calm run has a brisk turn,
 * others lay down what they hold and *stand by*: they sleep, and look again. If the brisk turn is gone by then, or has come
 * no further, they work. The longer they have stood by the longer they sleep, but never longer than the brisk turn has gone
 * on before, so a run takes at most about twice as long as it would if all of them worked at once.
 *
 *     covered:  some turn stands by, and another is brisk: no turn is asked for, whatever waits
 *     active == turns that have begun and do not stand by
 *     SOLO  <=>  active == 1, and that one is brisk     (at rest, under the lock; of flows all of whose nodes turns run)
 *
 * In a SOLO run the turn changes counters and its own deque by plain loads and stores, too, between the same two stores to
 * `publishing`. Before another thread may touch them it takes the run from SOLO over PARTING to CALM, with the same heavy
 * fence (wr_run_part); the turn itself, which is not publishing then, needs none.
 *
 * Note: no node is left alone. A turn that pushes a node to its deque looks whether another is coming, and one that comes
 * looks into deques after it has said that it is not coming any more:
 *
 *     pushes:  bottom = ...;      coming?   no: ask for one
 *     comes:   coming -= COMING;  bottom?   nothing to steal: leave
 *
 * Not both may miss what the other has written. In runs that are not large all four are seq_cst; elsewhere than in
 * tell_plainly the first look at `coming` is a change, so that the other one, if it comes after, acquires what was pushed.
 * In large runs tell_plainly has a plain store, and a turn that finds nothing beside others that work passes the heavy fence,
 * and looks again before it leaves.
 *
 * Note: what turns have told. A turn counts the nodes that it has told of all at once, when it has nothing else to do. But a
 * close does not wait for its body: it counts for the turn.
 *
 *     turn:   told = ...;    light fence;  closed?  then leave, and count;  else the next body
 *     close:  closed = ...;  heavy fence;  told
 *
 * In a calm run no turn looks at `closed` between two bodies; there `told` is stored before step.node, which the close has
 * waited for (wr_run_await_publishers). In a run that is not large there is no fence: what a CPU has stored and keeps to itself
 * for the whole length of a close is counted when the turn's body has returned.
 *
 * Lock order: the lock of all waits (executor/deadlock.h), a run's, that of its sub-runs, a group's; the plan's comes last.
 * None of ours is held while code of the user's runs, nor while a task is submitted, cancelled or settled.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FLOW_RUN_H
#define WR_FLOW_RUN_H

#include "base/list.h"
#include "executor/executor.h"
#include "flow/deque.h"
#include "flow/plan.h"

struct wr_run;

/* The times of one node, if the run keeps them; each is 0 until its event happens. When the end of the node is told of, an
 * event that has not happened never does, and its time is WEIR_FOREVER: after that no time changes, though a body that was
 * late may just begin. */
struct wr_times {
    _Atomic weir_time ready_at, started_at, ended_at;
};

/* The first thread that notes a time decides it. */
static inline void wr_times_note(_Atomic weir_time *when, weir_time now)
{
    weir_time none = 0;

    wr_cas(when, &none, now, acq_rel);
}

/* When the event happened; 0: it had not by `then`. */
static inline weir_time wr_times_get(const _Atomic weir_time *when, weir_time then)
{
    weir_time time =
        wr_load(when, acquire); /* and what made a node ready; pairs with wr_times_note */

    return time <= then && time != WEIR_FOREVER ? time : 0;
}

/* A node that is a task of its own or has a sub-flow. */
struct wr_own {
    struct wr_run *run;
    uint32_t node;
    weir_task *task; /* the task or sub-run, or the nap before the next try; under the run's lock */
    struct wr_list link;                /* in run->under_way, while that has not ended; likewise */
    bool ended;                         /* the sub-run has; likewise */
    _Atomic uint32_t stage;             /* counts what was submitted, and what of it has ended */
    _Atomic(weir_task *) runner;        /* the task whose body or end calls code of the user's: only
                                    compared, by that code */
    uint32_t tries;                     /* so far */
    weir_time until;                    /* its total deadline, for all tries; 0: it has none */
    _Atomic bool began;                 /* the body of this try */
    struct wr_own *adds;                /* what its body has added */
    struct wr_locals *sees;             /* the context of each try, if there may be several */
    _Atomic(struct wr_locals *) leaves; /* the context for the nodes after it; NULL: the run's */
    int error;                          /* of the latest try */
    struct wr_whole nap;
    weir_flow *flow;     /* of a node that has added nodes; NULL: that of its options */
    void *input, *value; /* the value goes with the run, unless it became the node's */
    struct wr_own *more; /* one that was added before it: run->added */
};

/* The step that a body or callback gets. */
struct weir_step {
    struct wr_run *run;
    _Atomic uint32_t node; /* of a turn also WR_PUBLISHING; see Note: calm runs */
    bool in_body;
    struct wr_own *added;                /* nodes that the body has added */
    _Atomic(struct wr_locals *) expects; /* of a turn; see below */
};

/* step.expects: no end is published by plain stores. With any other value an end is, if its body leaves that context
 * behind. */
#define WR_NO_LOCALS ((struct wr_locals *)UINTPTR_MAX)

/* run->coming */
enum { WR_COMING = 1, WR_COVERED = 2 };

/* turn->current: its body was asked to end, and the turn ends after it. */
enum { WR_ASKED = WR_NODES_MAX + 1 };

/* turn->step.node: the turn changes words, and is in no body. */
#define WR_PUBLISHING UINT32_MAX

/* A task that runs ready nodes. */
struct wr_turn {
    struct wr_run *run;
    struct wr_list link;      /* in run->turns from its submit on, under the run's lock */
    weir_task *task;          /* once it has begun; likewise */
    bool began, stands_by;    /* likewise */
    _Atomic bool asked;       /* its task has settled: if by a cancel, the turn ends after the body
                                 that runs, since other nodes are not meant; as brisk */
    _Atomic bool brisk;       /* likewise; the turn itself reads it without the lock */
    _Atomic uint32_t looks;   /* at the clock, so far */
    _Atomic uint32_t current; /* the node whose body runs, if it may be interrupted; WR_NODE_NONE;
                                 WR_ASKED */
    struct weir_step step;    /* of the node that it runs */
    struct wr_locals *const *locals; /* where its context stands */
    _Atomic uint32_t told;           /* nodes it has told of, ever; written by the turn alone */
    _Atomic uint32_t counted;        /* of these, those that are not in run->left any more */
    uint32_t until_look;             /* nodes until it looks at the clock ... */
    uint32_t look_every;
    uint32_t grab; /* most nodes it takes from others at once */
    weir_time began_at, looked_at;
    struct wr_deque deque;
};

struct wr_run {
    struct wr_whole whole;
    struct wr_plan plan;
    struct weir_flow *flow;
    struct weir_group *group;
    struct wr_run *outer; /* the run whose node has started this one; NULL: none has */
    _Atomic(weir_task *) task;
    _Atomic uint32_t parts;
    _Atomic uint64_t left;
    _Atomic uint64_t closed; /* 0; else a word with outcome and reason: no node begins any more */
    _Atomic uint32_t fatal;  /* the node that has ended it; WR_NODE_NONE: none has */
    _Atomic bool settling;   /* all nodes were told of: it is settled from inside */
    bool asks;               /* bodies to end also on a deadline: it is the sub-run of a node that
                                may be interrupted */
    bool odd;                /* its nodes have times, parameters or locals, or can be interrupted */
    struct wr_locals *locals;
    void *input;
    void (*drop_input)(void *input);
    void **param;           /* by node; NULL: none was given */
    uint64_t *given;        /* a set: nodes that have one */
    struct wr_times *times; /* by node; NULL: not kept */
    struct wr_own *own;
    size_t bytes;

    char apart[64]; /* turns write what follows */
    struct wr_lock lock;
    _Atomic uint32_t coming;  /* whether some turn will look for nodes; see above */
    _Atomic bool asking;      /* a thread is submitting a turn */
    _Atomic bool refused;     /* the group took no more turns; those there are do the rest */
    _Atomic uint32_t waiting; /* nodes in the list below */
    struct wr_row ready;      /* by `next` */
    struct wr_list turns;
    weir_task *latest;        /* the turn that was submitted last; under the lock */
    struct wr_list under_way; /* tasks of nodes, naps and sub-runs; under the lock */
    struct wr_own *added;     /* what bodies have added, the latest first; likewise */
    struct wr_own **added_by; /* the same by node: the latest of each; NULL: none; likewise */
};

/* What follows from the ends of nodes, while a thread deals with it. */
struct wr_work {
    struct wr_run *run;
    struct wr_turn *turn; /* the caller's; NULL: it has none */
    struct wr_moves moves;
    uint32_t next;  /* ready, for the turn itself */
    bool keeps_own; /* the caller submits one node's task itself, when all else is done: */
    uint32_t own;   /* this one; WR_NODE_NONE: none yet */
    uint32_t told;
    struct wr_locals *locals; /* of the body that has ended, if they are not the run's */
};

static inline void wr_turn_has_told(struct wr_turn *turn, uint32_t nodes)
{
    wr_store(&turn->told, wr_load(&turn->told, relaxed) + nodes, release);
}

/* How many nodes that the turn has told of are not counted yet; the caller is to count them down. */
static inline uint32_t wr_turn_to_count(struct wr_turn *turn)
{
    uint32_t told = wr_load(&turn->told, acquire), counted = wr_load(&turn->counted, relaxed);

    while ((int32_t)(told - counted) > 0)
        if (wr_cas(&turn->counted, &counted, told, acq_rel))
            return told - counted;
    return 0;
}

static inline const weir_node_options *wr_run_options(const struct wr_run *run, uint32_t n)
{
    const struct wr_extra *extra = wr_flow_node(run->flow, n)->extra;

    return extra ? &extra->options : NULL;
}

/* ---- run.c ---------------------------------------------------------------------------------------- */

/* Adds a part to the run. */
void wr_run_ref(struct wr_run *run);

/* Takes a part away. */
void wr_run_unref(struct wr_run *run);

/* The run of a task; NULL: it is none. */
struct wr_run *wr_run_of(const weir_task *task);

/* The nodes that bodies have added so far, by `more`. */
struct wr_own *wr_run_added(struct wr_run *run);

/* The latest that a body of the node has added; NULL: there is none. */
struct wr_own *wr_run_added_by(struct wr_run *run, uint32_t n);

/* Adds one more, which is the run's from then on. WEIR_ENOMEM. */
int wr_run_add(struct wr_run *run, struct wr_own *own);

/* The run settles no sooner than a sub-run that is about to start. False: it has settled. */
bool wr_run_hold(struct wr_run *run);

/* `count` more nodes were told of, or sub-runs have settled. */
void wr_run_told(struct wr_run *run, uint64_t count);

/* As weir_flow_start, of a frozen flow. `node`: NULL, or the node that starts the run as its sub-run; it gets another handle
 * before any node of the sub-run starts. */
int wr_run_start(weir_task **out, struct weir_flow *flow, weir_group *group,
                 const weir_run_options *opt, struct wr_own *node);

/* ---- node.c --------------------------------------------------------------------------------------- */

/* Calls the body, with `begin` before it. WEIR_PENDING with step->added: the node goes on. */
int wr_node_call(struct weir_step *step, void **value);

/* Deals with everything that follows until nothing is left but work->next. */
void wr_work_settle(struct wr_work *work);

/* A node has ended: adds it to what wr_work_settle deals with. */
void wr_work_ended(struct wr_work *work, uint32_t n);

/* The same for a thread that has no turn; it deals with everything that follows, too. */
void wr_node_ended(struct wr_run *run, uint32_t n);

/* As wr_node_ended, of a node whose body has left that context behind; NULL: the run's. */
void wr_node_ended_with(struct wr_run *run, uint32_t n, struct wr_locals *locals);

/* The parameter that the node's body gets. */
void *wr_node_param(const struct wr_run *run, uint32_t n);
void wr_node_drop_value(const struct wr_run *run, uint32_t n, void *value);
void wr_node_result(weir_node_result *out, struct wr_run *run, uint32_t n);

/* Other threads than turns are about to decide nodes: from here on every word is changed by compare-and-swap. */
void wr_run_stir(struct wr_plan *plan);

/* Has every CPU pass a fence, and waits until no turn is publishing. Under the lock. */
void wr_run_await_publishers(struct wr_run *run);

/* Sets step.expects, after the run was stirred or the body has added nodes. Under the lock. */
void wr_turn_expect(struct wr_turn *turn);

/* Other threads than the turn that works alone are about to change counters. */
void wr_run_part(struct wr_run *run);

/* ---- brisk.c --------------------------------------------------------------------------------------- */

/* A turn begins: whether it works, is to stand by, or has left the list of turns. Under the lock. */
enum wr_entrance { WR_WORKS, WR_STANDS_BY, WR_LEAVES };
enum wr_entrance wr_brisk_enter(struct wr_turn *turn);

/* The turn has looked at the clock: so many nodes took so long. True: it is to lay down what it holds, and to stand by. */
bool wr_brisk_look(struct wr_turn *turn, uint32_t nodes, int64_t ns);

/* The turn, which holds nothing, stands by. True: it works (again); false: it has left the list of turns. */
bool wr_brisk_stand_by(struct wr_turn *turn);

/* The turn is about to lay down what it holds, and does not count on others to stand by. */
void wr_brisk_stop(struct wr_turn *turn);

/* The turn leaves the list of turns. Under the lock. */
void wr_brisk_leave(struct wr_turn *turn);

/* Whether other tasks want what the turn has: a worker, or a permit. */
bool wr_brisk_is_wanted(struct wr_run *run);

/* ---- walk.c ---------------------------------------------------------------------------------------- */

/* Runs a node that is RUNNING, and maybe others that follow. Answers one that is ready for this turn. *asked: the turn is
 * to end. */
uint32_t wr_walk(struct wr_turn *turn, uint32_t n, bool *asked);

/* ---- turn.c, ask.c --------------------------------------------------------------------------------------- */

/* The body of a turn. */
int wr_turn_run(void **value, void *turn);

/* A node from the turn's hands: READY becomes RUNNING, with its locals. If it was decided meanwhile, the next one, until
 * there is none. */
uint32_t wr_turn_begin(struct wr_turn *turn, uint32_t n);

/* The next of the nodes in the turn's hands, RUNNING; WR_NODE_NONE: there is none. */
uint32_t wr_turn_take(struct wr_turn *turn);

/* A node is ready and waits for a turn. */
void wr_turn_give(struct wr_run *run, struct wr_turn *turn, uint32_t n);

/* Whether some node waits for a turn; those in the caller's hands do, if it has `turn`. */
static inline bool wr_turn_has_waiting(struct wr_run *run, struct wr_turn *turn)
{
    return wr_load(&run->waiting, seq_cst) || (turn && wr_deque_length(&turn->deque));
}

/* How many RUNNING nodes are in the hands of turns and have not begun; `n` not WR_NODE_NONE: whether that one is. */
uint32_t wr_turn_holds(struct wr_run *run, uint32_t n);

/* Sees to it that a turn comes for the nodes that wait. */
void wr_turn_ask(struct wr_run *run);

/* Asks bodies to end: that of one node, or (WR_NODE_NONE) all, or all that may be interrupted. */
void wr_turn_interrupt(struct wr_run *run, uint32_t n, bool all);

/* ---- own.c ---------------------------------------------------------------------------------------- */

/* A node that is a task of its own, or a sub-flow, is ready: RUNNING. `last`: the caller does nothing more. */
void wr_own_start(struct wr_work *work, uint32_t n, bool last);

/* The body of a node has returned, and has added nodes. */
void wr_own_start_added(struct wr_own *own, void *value);

/* Cancels what was submitted for a node that was decided. */
void wr_own_cancel(struct wr_own *own);

/* Cancels the sub-run of a node; if the deadline of the run has passed, the sub-run ends as if its own had. */
void wr_own_end_sub(struct wr_own *own);
struct wr_own *wr_own_of(struct wr_run *run, uint32_t n);

/* Whether the node's body has begun; it may be over. */
bool wr_own_runs(struct wr_own *own);

/* Sets the node up, at first. */
void wr_own_init(struct wr_own *own, struct wr_run *run, uint32_t n);

/* Gives back what the node has, when its run is gone. */
void wr_own_fini(struct wr_own *own);

/* A handle of what was submitted for it. Under the run's lock. */
void wr_own_keep(struct wr_own *own, weir_task *task);

#endif
