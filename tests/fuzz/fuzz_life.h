/* The course of one life: an executor is made, threads make calls, all is brought to an end, and judged.
 * SPDX-License-Identifier: MIT */
#ifndef WR_FUZZ_LIFE_H
#define WR_FUZZ_LIFE_H

#include "fuzz/fuzz_call.h"

enum { TROUBLE_MS = 400, RAISE_MS = 1500 };

/* ---- the nurse: from some time on sees to it that nothing waits for the fuzzer ------------------------ */

static inline void settle_one(struct item *item)
{
    weir_task *self = item->self;

    if (!self)
        return;
    item->self = NULL;
    world.changes++;
    settle(item, self, 0);
    weir_task_unref(self);
}

static inline void settle_all(void)
{
    world.settling++;
    for (int i = 0; i < world.items; i++)
        settle_one(&world.item[i]);
    world.settling--;
}

static inline void open_all_gates(void)
{
    world.changes++;
    for (int k = 0; k < KEYS; k++)
        if (world.handle[k])
            open_gates(world.handle[k]);
}

static inline void restore_domains(void)
{
    for (int d = 1; d < DOMAINS; d++)
        weir_domain_restore(world.ex, domain_name[d], NULL);
}

/* A task may cost more than a lowered limit has, a domain may be left without slots: that is as promised. */
static inline void raise_limits(void)
{
    world.changes++;
    world.inflight_ceiling = WEIR_NO_LIMIT;
    weir_executor_resize(world.ex, WEIR_NO_LIMIT, WEIR_NO_LIMIT);
    for (int k = 0; k < KEYS; k++) {
        world.group_ceiling[k] = WEIR_NO_LIMIT / ITEMS / 256;
        if (world.handle[k])
            weir_group_resize(world.handle[k], ITEMS * 3, WEIR_NO_LIMIT, 0);
    }
    restore_domains();
    for (int d = 1; d < DOMAINS; d++)
        weir_domain_resize(world.ex, domain_name[d], 1, 0, NULL);
}

static inline void nurse(void *arg)
{
    weir_time began = weir_now(), helps_since = 0;
    int looks = 0; /* a clock that jumps (slip_per_65536) wears out no patience */

    (void)arg;
    while (!world.over) {
        weir_sim_busy(MS);
        world.winding_down |= weir_now() > began + TROUBLE_MS * MS;
        if (!world.winding_down)
            continue;
        world.nursing = !world.freeing;
        if (world.nursing) /* what is pending when it is freed is cancelled */
            settle_all();
        if (world.nursing && !helps_since)
            open_all_gates();
        helps_since = helps_since ? helps_since : weir_now();
        if (world.nursing && weir_now() > helps_since + RAISE_MS * MS &&
            (world.limits_lowered || world.slots_moved) && weir_now() / MS % 100 == 0)
            raise_limits();
        world.nursing = false;
        if (++looks > PATIENCE_S * 1000)
            complain(world.freeing ? "the executor is not freed" : "tasks or threads do not end");
    }
}

/* ---- threads ----------------------------------------------------------------------------------------- */

static inline void thread_acts(void *arg)
{
    struct actor *actor = arg;

    act(actor, FUEL);
    weir_local_clear();
    world.threads_left--;
}

/* Ends it, with what was called from other threads behind it. */
static inline void free_executor(void)
{
    world.freeing = world.closing = true;
    while (world.nursing)
        weir_sim_busy(MS);
    land_all();
    weir_executor_free(world.ex);
    world.freed = true;
}

/* The executor is gone, the handle is good all the same. */
static inline void use_after_free(struct item *item)
{
    weir_why why = { .size = sizeof(why) };
    int fd;

    if (!item->task)
        return;
    CHECK_ITEM(item, weir_task_done(item->task) && !weir_task_cancel(item->task));
    CHECK_ITEM(item, weir_task_settle(item->task, 0, NULL) == WEIR_EALREADY);
    CHECK_ITEM(item, weir_task_why(&why, item->task) == 0);
    CHECK_ITEM(item, strcmp(weir_task_key(item->task), group_name[item->key]) == 0);
    CHECK_ITEM(item, strcmp(weir_task_id(item->task), item->id) == 0);
    CHECK_ITEM(item, weir_task_domain(item->task) != NULL);
    CHECK_ITEM(item, weir_task_cool_down(item->task, 0) == WEIR_ECLOSED);
    fd = weir_task_fd(item->task);
    CHECK_ITEM(item, fd >= 0 || world.faults);
    if (fd >= 0) {
        CHECK_ITEM(item, weir_fd_wait(fd, WEIR_READ, WEIR_NOW_OR_NEVER) > 0 || world.faults);
        weir_sim_close(fd);
    }
}

/* All of it is over: every task is settled, told, and has left nothing. */
static inline void judge(void)
{
    struct item *item;

    settle_all();
    while (world.settling) /* the nurse has a reference yet */
        weir_sim_busy(MS);
    for (int i = 0; i < world.items; i++)
        check_item(&world.item[i]);
    for (int i = 0; i < world.items; i++) {
        item = &world.item[i];
        CHECK_ITEM(item, item->users == 0);
        use_after_free(item);
        weir_task_unref(item->task);
        item->task = NULL;
        CHECK_ITEM(item, item->made == item->dropped + item->taken);
        CHECK_ITEM(item, item->args_dropped == (item->accepted && item->drops_arg));
    }
    weir_local_clear();
    CHECK_EQ(world.locals_made, world.locals_dropped);
}

static inline bool is_quiet(void)
{
    weir_executor_stats s = { .size = sizeof(s) };

    CHECK(weir_executor_stats_get(&s, world.ex) == 0);
    for (int i = 0; i < world.items; i++)
        if (world.item[i].inside)
            return false;
    return s.running + s.inflight + s.waiting + s.overdue == 0;
}

/* Bodies that run beyond their deadline are not waited for, and may submit more. */
static inline void rest_and_check(void)
{
    do {
        CHECK_EQ(weir_executor_drain(world.ex, WEIR_FOREVER), 0);
        restore_domains();
        weir_sim_busy(10 * MS); /* a worker gives back what it had in hand */
    } while (!is_quiet());
    check_rest();
}

static inline void live(bool rests)
{
    struct actor main_actor = { .name = "main", .in = world.in };
    struct actor actor[THREADS] = { { .name = "first" }, { .name = "second" } };
    int64_t thread[THREADS], nurse_thread = weir_sim_thread(nurse, NULL, "nurse");

    world.threads_left = (int)take_below(&main_actor.in, THREADS + 1);
    int threads = world.threads_left;
    for (int i = 0; i < threads; i++) {
        actor[i].in = take_branch(&main_actor.in);
        thread[i] = weir_sim_thread(thread_acts, &actor[i], actor[i].name);
    }
    act(&main_actor, FUEL);
    say(&main_actor, "winds down");
    world.winding_down = true;
    for (int i = 0; i < threads; i++)
        weir_sim_join(thread[i]);
    if (rests)
        rest_and_check();
    say(&main_actor, "frees");
    free_executor();
    judge();
    world.over = true;
    weir_sim_join(nurse_thread);
}

/* The simulator's seed and faults, added to `opt`. Answers whether calls of the library may fail for them. */
static inline bool take_faults(struct input *in, weir_sim_options *opt)
{
    uint32_t nth;

    opt->seed = take_number(in, 8);
    nth = 1 + (uint32_t)take_number(in, 2) % 200;
    opt->spurious_per_256 = take_chance(in, 4) ? 40 : 0;
    opt->eintr_per_256 = take_chance(in, 4) ? 40 : 0;
    opt->slip_per_65536 = take_chance(in, 6) ? 100 : 0;
    opt->fail_alloc = opt->fail_map = opt->fail_guard = opt->fail_thread = opt->fail_watch = 0;
    switch (take_below(in, 16)) {
    case 11:
        opt->fail_watch = nth % 12;
        opt->fail_guard = nth / 12;
        return true;
    case 12:
        opt->fail_map = nth % 12;
        return true;
    case 13:
        opt->fail_thread = nth % 12;
        return true;
    case 14:
    case 15:
        opt->fail_alloc = nth;
        opt->sticky = nth % 8 == 0;
        return true;
    default:
        return false;
    }
}

static inline void fuzz_life(void *arg)
{
    struct input in = *(struct input *)arg;
    weir_sim_options opt = { 0 };
    weir_message why;
    int rc;

    memset(&world, 0, sizeof(world));
    world.tracing = getenv("WEIR_FUZZ_TRACE") != NULL;
    world.fuel = FUEL;
    world.faults = take_faults(&in, &opt);
    world.late = world.faults || opt.slip_per_65536;
    take_policy(&in);
    world.calls = take_chance(&in, 3) ? UINT64_MAX : take_number(&in, 7) << 8 | 0xff;
    bool rests = take_chance(&in, 2);
    if (world.listens)
        world.policy.listener = fuzz_listener;
    if (take_chance(&in, 32)) {
        take_odd_policy(&in);
        return;
    }
    world.in = in;
    rc = weir_executor_new(&world.ex, &world.policy, &why);
    if (rc && !world.faults)
        weir_sim_fail("%s: %s", weir_errname(rc), why.text);
    if (!rc)
        live(rests);
}

#endif
