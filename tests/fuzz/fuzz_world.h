/* The world the fuzzer has made, as it knows it: one executor, the tasks submitted to it, the calls under way.
 *
 * Variables are plain: all simulated threads share one OS thread, and another goes on only at a point inside the
 * library.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_WORLD_H
#define WR_FUZZ_WORLD_H

#include "fuzz/fuzz_input.h"
#include "sim/sim.h"
#include "support/life_support.h"

#include <weir/error.h>

enum {
    KEYS = 4, /* groups, one of each domain */
    ITEMS = 48,
    THREADS = 2,
    FUEL = 140, /* calls in one life */
    PATIENCE_S = 30,
};

/* One submission, and all that was seen of it. */
struct item {
    int number, key;
    uint32_t cost;
    uint8_t priority;
    char id[8];
    weir_deadlines deadlines;    /* its own              */
    weir_time entered_by;        /* when submit returned */
    struct input body, callback; /* what its body and its callbacks do                            */
    bool wants_handle, drops, timed, pends, calls_back;
    bool bounded; /* its submitter may not wait for ever                                     */
    bool hasty;   /* settled, perhaps, before its body began                                 */
    bool submitting, accepted;
    int rc;          /* what submit answered                                                    */
    weir_task *task; /* the submitter's reference                                               */
    weir_task *self; /* the body's own, if it stays pending                                     */
    struct item *awaits, *submitter; /* what its body waits for, and whose body submits it */
    int users;        /* calls under way that use the handle                                     */
    bool unwanted;    /* the handle goes with the last of them                                   */
    bool inside;      /* its body runs                                                           */
    bool ending;      /* something was done that may settle it                                   */
    bool by_caller;   /* its body runs, perhaps, in the submitting thread                        */
    int began, ended; /* times its body did                                                      */
    int told, asked;  /* callbacks: called, and registered beside the one of the options         */
    int told_by_option;
    int heard_submitted, heard_started, heard_completed, heard_rejected;
    bool drops_arg;
    int args_dropped;
    int made, dropped, taken; /* values */
    void *local;          /* what its submitter saw                                            */
    weir_outcome outcome; /* as first seen                                                     */
};

struct world {
    struct input in;
    weir_executor *ex;
    weir_group *handle[KEYS]; /* of groups that some call wanted one of */
    weir_policy policy;
    weir_domain_policy domain[DOMAINS];
    weir_group_policy group[KEYS];
    weir_group_policy answer[KEYS]; /* of group_for */
    uint64_t calls;                 /* which of them this life makes, a bit each */
    struct item item[ITEMS];
    int items, fuel, threads_left, settling;
    bool listens, callbacks_act, timed, faults, tracing;
    bool late; /* deadlines are not kept to the nanosecond */
    bool closing, winding_down, nursing, freeing, freed, over;
    bool limits_lowered, slots_moved;
    int64_t group_ceiling[KEYS]; /* the highest limit that was ever in force */
    int64_t inflight_ceiling;
    int plain_evictions[KEYS];
    int landing;      /* calls under way that end what pends, also what comes meanwhile */
    uint64_t changes; /* calls that may have set a waiting task free */
    int changing;     /* of those, under way                         */
    int locals_made, locals_dropped;
};
static struct world world;

enum place { ON_THREAD, IN_BODY, IN_CALLBACK };

/* Makes calls, as its input says. */
struct actor {
    const char *name;
    struct input in;
    enum place place;
    struct item *item; /* whose body it is, or of which it is told */
    bool bounded;      /* may not wait for ever                    */
};

/* To ask the library for the time would be a point, and the life that is traced another one. */
static inline __attribute__((format(printf, 2, 3))) void say(const struct actor *actor,
                                                             const char *format, ...)
{
    va_list arguments;

    if (!world.tracing)
        return;
    fprintf(stderr, "%10.6f %s", (double)(wr_sim.now - WEIR_SIM_START) / 1e9, actor->name);
    if (actor->item)
        fprintf(stderr, " %d", actor->item->number);
    fprintf(stderr, ": ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* The message of a failed promise names the task. */
#define CHECK_ITEM(item, condition)                                                      \
    ((condition) ? (void)0                                                               \
                 : weir_sim_fail("%s:%d: task %d: check failed: %s", __FILE__, __LINE__, \
                                 (item)->number, #condition))

/* ---- handles: used by one call, perhaps given away by another ----------------------------------- */

static inline void item_release(struct item *item)
{
    weir_task *task = item->task;

    if (--item->users || !item->unwanted)
        return;
    item->task = NULL;
    weir_task_unref(task);
}

/* One whose handle is there; it is the caller's to use until item_release. */
static inline struct item *take_item(struct input *in)
{
    struct item *item = world.items ? &world.item[take_byte(in) % world.items] : NULL;

    if (!item || !item->task || item->unwanted)
        return NULL;
    item->users++;
    return item;
}

#endif
