/* Code that the library calls: bodies, callbacks, the listener, drops. Each may make calls of its own.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_BODY_H
#define WR_FUZZ_BODY_H

#include "fuzz/fuzz_check.h"

static inline void act(struct actor *actor, uint32_t calls);

/* ---- values and locals ---------------------------------------------------------------------------- */

static inline void drop_value(void *value)
{
    struct item *item = value;

    item->dropped++;
    CHECK_ITEM(item, item->dropped + item->taken <= item->made);
}

static inline void drop_arg(void *arg)
{
    struct item *item = arg;

    item->args_dropped++;
    CHECK_ITEM(item, item->args_dropped == 1 && !item->inside);
    CHECK_ITEM(item, item->told_by_option == item->calls_back);
}

static inline void drop_local(void *value)
{
    (void)value;
    world.locals_dropped++;
}

static const weir_local fuzz_local = WEIR_LOCAL(drop_local);

/* ---- bodies --------------------------------------------------------------------------------------- */

static inline void body_begins(struct item *item)
{
    weir_task *self = weir_task_self();

    item->began++;
    CHECK_ITEM(item, item->began == 1 && !world.freed);
    CHECK_ITEM(item, item->outcome != WEIR_REJECTED);
    item->by_caller = item->submitting && world.policy.rejection == WEIR_CALLER_RUNS;
    CHECK_ITEM(item, self && strcmp(weir_task_id(self), item->id) == 0);
    CHECK_ITEM(item, weir_local_get(&fuzz_local) == item->local);
    item->inside = true;
    check_limits(item->key);
}

static inline int stays_pending(struct item *item)
{
    weir_task *self = weir_task_self();

    item->self = weir_task_ref(self);
    item->pends = true;
    return WEIR_PENDING;
}

static inline int body_ends(struct item *item, struct input *in, void **value)
{
    int error = 0;

    switch (take_below(in, 8)) {
    case 0:
        error = weir_sleep(weir_now() + take_below(in, 12) * MS);
        break;
    case 1:
        weir_sim_busy(take_below(in, 15) * MS);
        break;
    case 2:
        error = -EIO;
        break;
    case 3:
        weir_yield();
        break;
    case 4:
        return stays_pending(item);
    default:
        break;
    }
    if (item->drops) {
        item->made++;
        *value = item;
    }
    return error;
}

static inline int fuzz_body(void **value, void *arg)
{
    struct item *item = arg;
    struct actor actor = { .name = "body", .in = item->body, .place = IN_BODY, .item = item };
    int error;

    body_begins(item);
    actor.bounded = item->by_caller && item->bounded;
    say(&actor, "begins%s", item->by_caller ? ", by the caller" : "");
    act(&actor, take_below(&actor.in, 4));
    error = body_ends(item, &actor.in, value);
    say(&actor, "ends with %d", error);
    item->inside = false;
    item->ended++;
    return error;
}

/* ---- callbacks ------------------------------------------------------------------------------------ */

static inline void callback_acts(struct item *item, const char *name)
{
    struct actor actor = {
        .name = name, .in = item->callback, .place = IN_CALLBACK, .item = item, .bounded = true
    };

    if (world.callbacks_act)
        act(&actor, take_below(&actor.in, 3));
}

static inline void told(struct item *item, weir_task *task, const weir_result *result)
{
    CHECK_ITEM(item, weir_task_done(task));
    check_result(item, result);
    callback_acts(item, "on_done");
}

/* The one of the options. */
static inline void option_on_done(weir_task *task, const weir_result *result, void *arg)
{
    struct item *item = arg;

    item->told_by_option++;
    CHECK_ITEM(item, item->told_by_option == 1);
    told(item, task, result);
}

/* One of those that weir_task_on_done brought. */
static inline void later_on_done(weir_task *task, const weir_result *result, void *arg)
{
    struct item *item = arg;

    item->told++;
    CHECK_ITEM(item, item->told <= item->asked);
    told(item, task, result);
}

/* ---- the listener --------------------------------------------------------------------------------- */

static inline struct item *item_of(const weir_task *task)
{
    int number = atoi(weir_task_id(task));

    CHECK(*weir_task_id(task) && number >= 0 && number < world.items);
    return &world.item[number];
}

static inline void hears_submitted(weir_task *task, void *arg)
{
    struct item *item = item_of(task);

    (void)arg;
    item->heard_submitted++;
    CHECK_ITEM(item, item->heard_submitted == 1 && !item->began);
    callback_acts(item, "submitted");
}

static inline void hears_started(weir_task *task, void *arg)
{
    struct item *item = item_of(task);

    (void)arg;
    item->heard_started++;
    CHECK_ITEM(item, item->heard_started == 1 && !item->began && !world.freed);
    callback_acts(item, "started");
}

static inline void hears_completed(weir_task *task, const weir_result *result, void *arg)
{
    struct item *item = item_of(task);

    (void)arg;
    item->heard_completed++;
    CHECK_ITEM(item, item->heard_completed == 1);
    CHECK_ITEM(item, !item->told && !item->told_by_option); /* it is told before */
    check_result(item, result);
    callback_acts(item, "completed");
}

static inline void hears_rejected(weir_task *task, weir_reason reason, void *arg)
{
    struct item *item = item_of(task);

    (void)arg;
    item->heard_rejected++;
    CHECK_ITEM(item, item->heard_rejected == 1 && !item->heard_completed && !item->began);
    CHECK_ITEM(item, reason >= WEIR_REASON_GLOBAL_QUEUE_FULL && reason <= WEIR_REASON_EVICTED);
    callback_acts(item, "rejected");
}

static inline void hears_stalled(const weir_stall *stall, void *arg)
{
    (void)arg;
    CHECK(stall->name && stall->stuck_ns >= 0);
}

static const weir_listener fuzz_listener = { .submitted = hears_submitted,
                                             .started = hears_started,
                                             .completed = hears_completed,
                                             .rejected = hears_rejected,
                                             .stalled = hears_stalled };

#endif
