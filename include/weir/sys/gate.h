/* Gates: what may keep the tasks of a group from starting, besides limits. For those who build guards.
 *
 * A gate stands between a group's queue and its workers. Before tasks start it is asked how many may; it may answer with
 * a time, or that it will call weir_gate_open. It may refuse tasks as they are submitted, is told of starts and of ends,
 * can have tasks cancelled that it let through, and says what it is and why it is closed, so that weir_task_why can. The
 * executor knows nothing else of it. Cool-downs and paces are gates, too.
 *
 * All calls of a gate come under the lock of its group: they are short, do not wait, and call nothing of weir's but
 * weir_gate_open. A gate may be shared by several groups (one weir_group_gate_add each, with the same `arg`): then its
 * calls come from several groups at once, and it keeps its own books under its own lock.
 * SPDX-License-Identifier: MIT */
#ifndef WEIR_SYS_GATE_H
#define WEIR_SYS_GATE_H

#include <stdbool.h>
#include <weir/reason.h>
#include <weir/task.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_gate weir_gate; /* one gate of one group */

/* What a closed gate says of itself. `size` is set by the caller. */
typedef struct weir_gate_state {
    size_t size;
    weir_reason reason;  /* why it is closed; WEIR_REASON_GATED if nothing else fits       */
    int64_t limit, held; /* as in weir_why; limit 0: there are no figures                  */
    weir_time earliest;  /* when it opens by itself; 0: not known                          */
    char holders[WEIR_HOLDERS_MAX]; /* as in weir_why                                      */
} weir_gate_state;

/* `arg` is the gate's own. All but `ask` may be NULL. */
typedef struct weir_gate_calls {
    size_t size;
    const char *name; /* for weir_why.key; lives as long as the gate */

    /* A task of that cost is submitted. WEIR_REASON_NONE: it is accepted, as far as the gate is concerned. */
    weir_reason (*accept)(void *arg, uint32_t cost, weir_time now);

    /* Up to `count` tasks are to start: answers how many may, which then count as let through. If fewer than `count`,
     * *again is when to ask again; WEIR_FOREVER: when weir_gate_open was called. With count 0 the gate is only looked at:
     * it answers 1 if a task could start now, else 0 and *again. */
    uint32_t (*ask)(void *arg, uint32_t count, weir_time now, weir_time *again);

    /* So many of those will not start after all: another limit was in the way, or the group's turn is over. */
    void (*take_back)(void *arg, uint32_t count, weir_time now);

    /* One of them starts. The answer is kept for the task: an epoch, a lease; 0 if there is nothing to keep. */
    uint64_t (*started)(void *arg, weir_task *task, weir_time now);

    /* It is over: its error as in weir_result, and for how long it ran. Called once for each call of `started`. */
    void (*ended)(void *arg, uint64_t word, int error, int64_t ran_ns, weir_time now);

    /* Why it is closed. */
    void (*describe)(void *arg, weir_gate_state *out, weir_time now);

    /* Whether all would be the same if the group were forgotten and made anew: then it may be, once it is idle. */
    bool (*at_rest)(void *arg, weir_time now);

    /* The group is gone, or the gate was removed. No call comes any more. Without any lock. */
    void (*drop)(void *arg);

    /* So many tasks more have started and ended in the same turn, one after the other and without an error, with what this
     * one holds: none of them was asked for, none was told of. A gate that has this call is asked for one start at a time;
     * a turn is short (a few microseconds per weight). NULL: each task asks for itself. */
    void (*went_on)(void *arg, uint64_t word, uint32_t count, weir_time now);
} weir_gate_calls;

/* Puts a gate before the group's tasks, behind those it has. *out gets it, for the calls below; it belongs to the group.
 * `calls` is copied, but for what `name` points to. A group that is evicted takes its gates along: the next generation
 * has none. WEIR_EINVAL: NULL, no size, no `ask`. WEIR_EVERSION: a newer program has set a call that this library does
 * not know. WEIR_ENOMEM. WEIR_EAGAIN: no thread for the clock. WEIR_ECLOSED. */
int weir_group_gate_add(weir_gate **out, weir_group *group, const weir_gate_calls *calls,
                        void *arg);

/* Takes it away. Tasks that it let through run on; their ends are not told any more. Not from the gate's own calls. */
void weir_gate_remove(weir_gate *gate);

/* The gate is to be asked again, soon. From any thread, and from the calls of any gate. */
void weir_gate_open(weir_gate *gate);

/* Cancels the tasks of the group that run, or are pending, with this word, as weir_task_cancel does. Answers how many. Not
 * from a gate's calls. */
size_t weir_gate_cancel(weir_gate *gate, uint64_t word);

WEIR_END_DECLS

#endif
