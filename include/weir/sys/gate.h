/* Gates: conditions, besides limits, under which the tasks of a group start. For programs that build guards of their own.
 *
 * A gate stands between a group's queue and its workers. Before tasks start, the executor asks the gate how many may
 * start; the gate may answer with a time at which to ask again, or call weir_gate_open later. It may refuse tasks when
 * they are submitted, hears of starts and ends, can cancel tasks that it let through, and describes itself for
 * weir_task_why. Cool-downs and paces are gates, too.
 *
 * All functions of a gate but `drop` are called under the lock of its group: they must be short, must not wait, and must
 * call no function of weir's but weir_gate_open. Several groups may share a gate (one weir_group_gate_add for each, with
 * the same `arg`): then its functions are called for several groups at once, and it needs a lock of its own.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_SYS_GATE_H
#define WEIR_SYS_GATE_H

#include <stdbool.h>
#include <weir/reason.h>
#include <weir/task.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_gate weir_gate; /* one gate of one group */

/* What a closed gate says of itself. The executor sets `size`. */
typedef struct weir_gate_state {
    size_t size;
    weir_reason reason;  /* why it is closed; WEIR_REASON_GATED if no other fits           */
    int64_t limit, held; /* as in weir_why; limit 0: the gate has no figures               */
    weir_time earliest;  /* when it opens by itself; 0: not known                          */
    char holders[WEIR_HOLDERS_MAX]; /* as in weir_why                                      */
} weir_gate_state;

/* The functions of a gate, which get the `arg` of weir_group_gate_add. All but `ask` may be NULL. */
typedef struct weir_gate_calls {
    size_t size;
    const char *name; /* for weir_why.key; must be valid as long as the gate */

    /* Decides about a task of that cost that is being submitted. WEIR_REASON_NONE: the gate accepts it. */
    weir_reason (*accept)(void *arg, uint32_t cost, weir_time now);

    /* Answers how many of `count` tasks may start; the gate counts these as let through. If fewer than `count`, *again gets
     * the time at which to ask again; WEIR_FOREVER: after weir_gate_open. With count 0 the gate lets nothing through, and
     * answers 1 if a task could start now, else 0 and *again. */
    uint32_t (*ask)(void *arg, uint32_t count, weir_time now, weir_time *again);

    /* `count` of the tasks let through will not start: another limit was in the way, or the group's turn is over. */
    void (*take_back)(void *arg, uint32_t count, weir_time now);

    /* One of the tasks let through starts. The answer is kept as the task's word, say an epoch or a lease; 0: no word. */
    uint64_t (*started)(void *arg, weir_task *task, weir_time now);

    /* A task has ended: its word, its error as in weir_result, and how long it ran. Called once for each call of
     * `started`. */
    void (*ended)(void *arg, uint64_t word, int error, int64_t ran_ns, weir_time now);

    /* Says why the gate is closed. */
    void (*describe)(void *arg, weir_gate_state *out, weir_time now);

    /* Whether the gate would behave the same if the group were forgotten and made anew: then an idle group may be
     * evicted. */
    bool (*at_rest)(void *arg, weir_time now);

    /* The group is gone, or the gate was removed. This is the last call, with no lock held. */
    void (*drop)(void *arg);

    /* `count` further tasks have started and ended one after the other in the same turn, without an error, on the permit of
     * the task with this word; `ask`, `started` and `ended` were not called for them. A gate with this function is asked for
     * one start at a time. A turn is short, a few microseconds per weight. NULL: the gate is asked for each task. */
    void (*went_on)(void *arg, uint64_t word, uint32_t count, weir_time now);

    /* A gate that is asked before this one refuses the group, so the group does not wait for this one now. A gate that keeps
     * groups in a line gives the group's place up. `ask` is called again before anything starts. weir_task_why does not ask a
     * gate with this function; it has the gate describe itself. */
    void (*leave_line)(void *arg, weir_time now);
} weir_gate_calls;

/* Puts a gate before the group's tasks; it is asked after the gates the group has. *out gets the gate, which belongs to the
 * group. `calls` is copied, but not what `name` points to. A group that is evicted takes its gates along: the next
 * generation has none. WEIR_EINVAL: NULL, no size, no `ask`. WEIR_EVERSION: a newer program has set a call that this library does
 * not know. WEIR_ENOMEM. WEIR_EAGAIN: no thread for the clock. WEIR_ECLOSED. */
int weir_group_gate_add(weir_gate **out, weir_group *group, const weir_gate_calls *calls,
                        void *arg);

/* Removes a gate. Tasks that it let through run on; `ended` is not called for them. Must not be called from the gate's own
 * functions. NULL is fine. */
void weir_gate_remove(weir_gate *gate);

/* Has the executor ask the gate again soon. May be called from any thread, and from the functions of any gate. */
void weir_gate_open(weir_gate *gate);

/* Cancels the group's running and pending tasks that have this word, as weir_task_cancel does. Answers how many. Must not be
 * called from the functions of a gate. */
size_t weir_gate_cancel(weir_gate *gate, uint64_t word);

WEIR_END_DECLS

#endif
