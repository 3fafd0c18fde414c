/* Groups with a limit of a fleet under random schedules, delays and faults: a few processes share a server's permits.
 *
 * Each life has faults of its own: connections that break, messages that get lost, a server that goes away or forgets, operators that take permits
 * away, clients that stand still. Meanwhile tasks are submitted and cancelled, gates removed and put back. What must always hold is looked at
 * between steps, at moments when nothing moves. In the end all is calm: then every task that waits must start, and an
 * idle fleet must give all back and fall silent.
 *
 * WEIR_SEED repeats one life, WEIR_TELL=1 tells its story.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "redis/leased.h"
#include "redis/sim/model.h"
#include "sim/sim.h"
#include "support/sim_support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/redis.h>

enum { PROCESSES = 3, GROUPS = 2, TASKS = 48, US = 1000 };

struct process {
    weir_store *store;
    weir_guard *guard;
    weir_group *group[GROUPS];
    weir_gate *gate[GROUPS];
    weir_group *callers; /* without a gate: its tasks enter the guard themselves */
    weir_guard *rate;
    weir_gate *rate_gate[GROUPS];
    int groups, calls;
    weir_when_away when_away;
};

/* Faults that may happen in a life: few kinds of faults at a time find more than all of them together. */
enum fault {
    LINK_BREAKS,
    EAR_BREAKS,
    SERVER_DOWN,
    SERVER_FORGETS,
    SERVER_GOES_BACK,
    EVICTIONS,
    LIMIT_CHANGES,
    PAUSES,
    STRANGERS,
    GATES_CHANGE,
    CANCELS,
    PROCESSES_END,
    NO_MEMORY,
    FAULTS,
};

static struct {
    weir_executor *ex;
    struct process process[PROCESSES];
    int processes;
    int64_t lease_us;
    int64_t limit;
    bool may[FAULTS];
    weir_task *task[TASKS];
    int submitted, started, ended;
    int inside; /* callers that have a permit */
    int64_t waiters_max;
    bool callers;
    bool rates,
        rate_first; /* groups have a rate, too, that is asked before the permits or after them */
    bool cut;       /* some commands may not have reached the server */
    bool tells;
    bool slips;      /* threads are slow: no moment is known to be one at which nothing moves */
    weir_time moved; /* a task started or ended last then */
} w;

static int64_t up_to(int64_t most)
{
    return (int64_t)(weir_sim_random() % (uint64_t)(most + 1));
}

static bool chance(int percent)
{
    return up_to(99) < percent;
}

#define TELL(...)                                                                        \
    do {                                                                                 \
        if (w.tells) {                                                                   \
            fprintf(stderr, "%10.3f ms  ", (double)(wr_sim.now - WEIR_SIM_START) / 1e6); \
            fprintf(stderr, __VA_ARGS__);                                                \
            fputc('\n', stderr);                                                         \
        }                                                                                \
    } while (0)

/* ---- looking ----------------------------------------------------------------------------------- */

static struct wr_leased *pool_of(const struct process *process)
{
    struct wr_fleet *fleet = process->store ? wr_fleet_of(process->store) : NULL;

    if (!fleet || wr_list_empty(&fleet->cells))
        return NULL;
    return WR_CONTAINER(fleet->cells.next, struct wr_fleet_cell, link)->pool;
}

static void tell_pool(int at)
{
    const struct wr_leased *pool = pool_of(&w.process[at]);

    if (!pool) {
        fprintf(stderr, "process %d: gone\n", at);
        return;
    }
    fprintf(stderr,
            "process %d: units %" PRId64 " in use %" PRId64 " fresh %" PRId64 " asked %" PRId64
            " told %" PRId64 " target %" PRId64
            " known %d asking %d waiting %d renewing %d again %d"
            " until %" PRId64 " us renew %" PRId64 " us timer %" PRId64 " us\n",
            at, pool->units, pool->in_use, pool->fresh, pool->asked, pool->told, pool->target,
            pool->known, pool->asking, pool->waiting, pool->renewing, pool->again,
            (pool->until - weir_now()) / US, (pool->renew_at - weir_now()) / US,
            pool->timer_at == WEIR_FOREVER ? -1 : (pool->timer_at - weir_now()) / US);
}

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr,                                                                        \
                    "limit %" PRId64 " held %" PRId64 " line %" PRId64 " wants %" PRId64           \
                    " submitted %d started %d ended %d\n",                                         \
                    model_limit(), model_held(), model_line(true), model_wants(true), w.submitted, \
                    w.started, w.ended);                                                           \
            for (int at_ = 0; at_ < w.processes; at_++)                                            \
                tell_pool(at_);                                                                    \
            weir_sim_fail("%s:%d: not so: %s", __FILE__, __LINE__, #condition);                    \
        }                                                                                          \
    } while (0)

/* No permit goes that the server was not asked for, nor its limit. */
static bool is_faithful(void)
{
    return !w.may[SERVER_FORGETS] && !w.may[SERVER_GOES_BACK] && !w.may[EVICTIONS] &&
           !w.may[PAUSES] && !w.may[LIMIT_CHANGES];
}

/* A lease is never over at the server before it is here, but for the microsecond to which a server counts. */
static void look_at_leases(const struct wr_leased *pool)
{
    const char *process = pool->cell->fleet->process;

    for (int64_t i = 0; i < pool->units; i++) {
        int64_t end = model_end(process, pool->unit[i]);

        MUST(!end || pool->until <= end + US || w.may[SERVER_GOES_BACK]);
        MUST(end || !is_faithful() || weir_now() >= pool->until);
        for (int64_t k = 0; k < i; k++)
            MUST(pool->unit[i] != pool->unit[k]);
    }
}

/* How many tasks of this process may run. */
static int64_t capacity_of(const struct wr_leased *pool)
{
    const struct wr_fleet_cell *cell = pool->cell;
    int64_t leased = weir_now() < pool->until - cell->margin_ns ? pool->units : 0;

    if (!cell->fleet->away || cell->when_away == WEIR_AWAY_CLOSED)
        return leased;
    return cell->when_away == WEIR_AWAY_OPEN ? INT64_MAX
           : leased > cell->share            ? leased
                                             : cell->share;
}

static void look_at_pool(const struct wr_leased *pool)
{
    int64_t in_use = 0;
    bool hungry = false;

    wr_list_each(at, &pool->gates) {
        const struct wr_fleet_gate *gate = WR_CONTAINER(at, struct wr_fleet_gate, link);
        MUST(gate->in_use >= 0 && gate->pins == 0);
        in_use += gate->in_use;
        hungry = hungry || gate->hungry;
    }
    MUST(in_use == pool->in_use);
    MUST(pool->units >= 0 && pool->units <= pool->room && pool->fresh >= 0);
    MUST(!(pool->asking && pool->waiting));
    MUST(!(pool->asking && pool->renewing));
    MUST(pool->asked || !hungry);
    /* No group waits beside a free permit. */
    MUST(!hungry || capacity_of(pool) <= pool->in_use);
    /* Whatever is to come next, there is something that brings it. */
    if (!pool->asking && !pool->renewing && wr_leased_has_to_renew(pool))
        MUST(pool->timer_at != WEIR_FOREVER);
    if (!pool->asking && !pool->renewing && !pool->waiting && wr_leased_should_ask(pool))
        MUST(pool->timer_at != WEIR_FOREVER);
    MUST(pool->timer_at == WEIR_FOREVER || (pool->timer.set && pool->timer.when == pool->timer_at));
    look_at_leases(pool);
}

/* At a moment when nothing moves. */
static void look(void)
{
    int64_t in_use = 0, uncounted = 0;

    if (w.slips || !model_at_rest())
        return;
    for (int i = 0; i < w.processes; i++) {
        const struct wr_leased *pool = pool_of(&w.process[i]);

        if (!pool)
            continue;
        if (!model_is_paused(model_client(w.process[i].store)))
            look_at_pool(pool);
        in_use += pool->in_use;
        uncounted += w.process[i].when_away != WEIR_AWAY_CLOSED;
    }
    if (is_faithful() && !uncounted)
        MUST(in_use + w.inside <= w.limit);
    MUST(model_orphans() == 0);
    MUST(w.may[LIMIT_CHANGES] || w.may[SERVER_GOES_BACK] || model_held() <= w.limit);
}

/* Looks at a moment at which nothing is due: all else happens at other parts of a microsecond. */
static void wait_us(int64_t us)
{
    enum { LOOK_NS = 638, ACT_NS = 501 };
    weir_time until = (weir_now() / US + us) * US;

    weir_sleep(until + LOOK_NS);
    look();
    weir_sleep(until + US + ACT_NS);
}

static int64_t a_while(void)
{
    return chance(50) ? up_to(w.lease_us / 5) : up_to(2 * w.lease_us);
}

/* ---- what tasks do ----------------------------------------------------------------------------- */

static int body(void **value, void *arg)
{
    int rc;

    (void)value;
    w.started++;
    w.moved = weir_now();
    rc = arg ? weir_sleep(weir_in_us((int64_t)(intptr_t)arg)) : 0;
    w.ended++;
    w.moved = weir_now();
    return rc;
}

/* Enters the guard itself. */
static int call(void **value, void *arg)
{
    struct process *process = arg;
    int64_t us = up_to(w.lease_us);
    weir_permit permit = WEIR_PERMIT;
    weir_guard *guard = process->guard;
    int rc;

    (void)value;
    if (!guard)
        return 0;
    process->calls++; /* it is not replaced meanwhile */
    w.started++;
    rc = weir_guard_enter(&permit, guard, chance(50) ? WEIR_FOREVER : weir_in_us(a_while()));
    w.moved = weir_now();
    if (!rc) {
        w.inside++;
        rc = weir_sleep(weir_in_us(us));
        w.inside--;
        weir_guard_leave(&permit, rc);
    }
    w.ended++;
    w.moved = weir_now();
    process->calls--;
    return rc;
}

static void submit_call(void)
{
    struct process *process = &w.process[up_to(w.processes - 1)];

    if (w.submitted >= TASKS)
        return;
    TELL("process %d: a caller", (int)(process - w.process));
    w.submitted += !weir_submit(&w.task[w.submitted], process->callers, call, process, NULL);
}

static void submit(void)
{
    int at = (int)up_to(w.processes - 1), group = (int)up_to(w.process[at].groups - 1);
    int64_t us = chance(30) ? 0 : up_to(w.lease_us);
    int count = 1 + (int)up_to(4);

    for (int i = 0; i < count && w.submitted < TASKS; i++) {
        TELL("submits to process %d group %d, for %" PRId64 " us", at, group, us);
        if (weir_submit(&w.task[w.submitted], w.process[at].group[group], body,
                        (void *)(intptr_t)us, NULL))
            CHECK(w.may[NO_MEMORY]);
        else
            w.submitted++;
    }
}

/* ---- what befalls them ------------------------------------------------------------------------- */

static void add_gate(weir_gate **out, weir_group *group, weir_guard *guard)
{
    if (!weir_group_guard_add(out, group, guard, 0))
        return;
    CHECK(w.may[NO_MEMORY]);
    *out = NULL;
}

/* Its gate comes, or goes. */
static void change_gate(struct process *process, int group)
{
    if (process->gate[group]) {
        weir_gate_remove(process->gate[group]);
        process->gate[group] = NULL;
    } else {
        add_gate(&process->gate[group], process->group[group], process->guard);
    }
}

/* Not while the server is away: then a process cannot learn its settings. */
static bool open_guards(struct process *process)
{
    const weir_guard_options *permits =
        WEIR_CONCURRENCY(.limit = w.limit, .lease_ns = w.lease_us * US,
                         .waiters_max = w.waiters_max, .when_away = process->when_away);
    const weir_guard_options *rate =
        WEIR_RATE(.mode = WEIR_SMOOTH, .limit = 1 + w.limit, .burst = w.limit,
                  .period_ns = w.lease_us / 2 * US, .when_away = process->when_away);

    if (weir_guard_new(&process->guard, process->store, "permits", permits, NULL))
        return false;
    return !w.rates || !weir_guard_new(&process->rate, process->store, "rate", rate, NULL);
}

static void end_process(struct process *process)
{
    weir_guard *guard = process->guard;

    process->guard =
        NULL; /* first: tasks that begin while the gates are removed enter it no more */
    for (int i = 0; i < process->groups; i++)
        if (process->gate[i])
            change_gate(process, i);
    for (int i = 0; i < process->groups; i++) {
        weir_gate_remove(process->rate_gate[i]);
        process->rate_gate[i] = NULL;
    }
    weir_guard_unref(guard);
    weir_guard_unref(process->rate);
    process->rate = NULL;
    weir_store_free(process->store);
    process->store = NULL;
}

static void begin_process(struct process *process)
{
    char key[16];

    if (weir_store_redis(&process->store, WEIR_REDIS(.url = "redis://model"),
                         WEIR_FLEET(.host = "here"), NULL))
        return;
    if (!open_guards(process)) {
        end_process(process);
        return;
    }
    snprintf(key, sizeof(key), "%d", (int)(process - w.process));
    CHECK(!weir_group_get(&process->callers, w.ex, key));
    for (int i = 0; i < process->groups; i++) {
        snprintf(key, sizeof(key), "%d.%d", (int)(process - w.process), i);
        CHECK(!weir_group_get(&process->group[i], w.ex, key));
        if (process->rate && w.rate_first)
            CHECK(
                !weir_group_guard_add(&process->rate_gate[i], process->group[i], process->rate, 0));
        change_gate(process, i);
        if (process->rate && !w.rate_first)
            CHECK(
                !weir_group_guard_add(&process->rate_gate[i], process->group[i], process->rate, 0));
    }
}

/* It ends, and another one begins in its place. */
static void replace(struct process *process)
{
    if (process->calls) /* its callers still use the guard */
        return;
    if (process->store)
        end_process(process);
    begin_process(process);
}

static void befall(enum fault fault)
{
    static const char *const names[FAULTS] = {
        "link breaks", "ear breaks",  "server down", "server forgets", "server goes back",
        "eviction",    "limit",       "pause",       "stranger",       "gate changes",
        "cancel",      "is replaced", "no memory",
    };
    int at = (int)up_to(w.processes - 1);
    struct wr_redis *redis = w.process[at].store ? model_client(w.process[at].store) : NULL;

    if (!redis && fault != PROCESSES_END)
        return;
    TELL("process %d: %s", at, names[fault]);
    switch (fault) {
    case LINK_BREAKS:
        model_break_link(redis, chance(50) ? 0 : a_while());
        break;
    case EAR_BREAKS:
        model_break_ear(redis, chance(50) ? 0 : a_while());
        break;
    case SERVER_DOWN:
        model_order(MODEL_DOWN, a_while());
        break;
    case SERVER_FORGETS:
        model_order(MODEL_FORGET, 0);
        break;
    case SERVER_GOES_BACK:
        model_order(chance(50) ? MODEL_SAVE : MODEL_RESTORE, 0);
        break;
    case EVICTIONS:
        model_order(MODEL_EVICT, up_to(99));
        break;
    case LIMIT_CHANGES:
        model_order(MODEL_LIMIT, 1 + up_to(7));
        break;
    case PAUSES:
        model_pause(redis, a_while());
        break;
    case STRANGERS:
        model_order(MODEL_STRANGER, 1 + up_to(2));
        break;
    case GATES_CHANGE:
        change_gate(&w.process[at], (int)up_to(w.process[at].groups - 1));
        break;
    case CANCELS:
        if (w.submitted)
            weir_task_cancel(w.task[up_to(w.submitted - 1)]);
        break;
    case PROCESSES_END:
        replace(&w.process[at]);
        break;
    case NO_MEMORY:
        wr_sim.opt.fail_alloc = wr_sim.report.allocs + 1 + (uint64_t)up_to(50);
        break;
    case FAULTS:
        break;
    }
}

/* ---- a life ------------------------------------------------------------------------------------ */

static struct model_weather fair(void)
{
    return (struct model_weather){ .delay_us = 200, .connect_us = 1000 };
}

static struct model_weather some_weather(void)
{
    int64_t delay[] = { 0, 300, 3000, w.lease_us / 6, w.lease_us / 2, w.lease_us };
    bool breaks = w.may[LINK_BREAKS], deaf = w.may[EAR_BREAKS];

    return (struct model_weather){ .delay_us = delay[up_to(5)],
                                   .connect_us = up_to(w.lease_us / 4),
                                   .errors = chance(80) ? 0 : (uint32_t)up_to(200),
                                   .link_loss = breaks && chance(50) ? (uint32_t)up_to(200) : 0,
                                   .ear_loss = deaf && chance(50) ? (uint32_t)up_to(300) : 0 };
}

static void draw_life(void)
{
    static const int64_t lease_us[] = { 20000, 60000, 300000, 1000000 };

    memset(&w, 0, sizeof(w));
    w.tells = getenv("WEIR_TELL") != NULL;
    w.processes = 1 + (int)up_to(PROCESSES - 1);
    w.lease_us = lease_us[up_to(3)];
    w.limit = chance(40) ? 1 : 1 + up_to(6);
    w.waiters_max = chance(80) ? 0 : chance(50) ? WEIR_NO_WAITERS : 1;
    w.callers = chance(30);
    w.rates = chance(20);
    w.rate_first = chance(50);
    for (int i = 0; i < FAULTS; i++)
        w.may[i] = chance(30);
}

static void begin(bool slips)
{
    static const weir_when_away ways[] = { WEIR_AWAY_CLOSED, WEIR_AWAY_OPEN, WEIR_AWAY_SHARE };
    struct model_weather weather = fair();

    draw_life();
    w.slips = slips;
    model_start(&weather);
    CHECK(!weir_executor_new(
        &w.ex,
        WEIR_POLICY(.workers = 1 + (uint32_t)up_to(1), .group_limit = 1 + (uint32_t)up_to(4)),
        NULL));
    for (int i = 0; i < w.processes; i++) {
        w.process[i].when_away = chance(70) ? WEIR_AWAY_CLOSED : ways[up_to(2)];
        w.process[i].groups = 1 + (int)up_to(GROUPS - 1);
        do /* the first answer may be late if time slips */
            begin_process(&w.process[i]);
        while (w.slips && !w.process[i].store);
        CHECK(w.process[i].store != NULL);
    }
    TELL("%d processes, limit %" PRId64 ", lease %" PRId64 " us", w.processes, w.limit, w.lease_us);
}

static void live_wildly(void)
{
    int steps = 5 + (int)up_to(30);
    struct model_weather weather = some_weather();

    TELL("delay %" PRId64 " us, connect %" PRId64 " us, errors %u, link loss %u, ear loss %u",
         weather.delay_us, weather.connect_us, weather.errors, weather.link_loss, weather.ear_loss);
    model_weather(&weather);
    w.cut = weather.errors || w.may[LINK_BREAKS] || w.may[SERVER_DOWN] || w.may[SERVER_FORGETS] ||
            w.may[SERVER_GOES_BACK];
    for (int i = 0; i < steps; i++) {
        enum fault fault = (enum fault)up_to(FAULTS - 1);

        if (chance(40))
            submit();
        else if (w.callers && chance(30))
            submit_call();
        else if (w.may[fault])
            befall(fault);
        wait_us(chance(30) ? 0 : chance(50) ? up_to(w.lease_us / 8) : up_to(w.lease_us));
    }
}

/* Where time slips it slips by seconds, for there are timers of that length. */
static int64_t patience_us(int64_t leases)
{
    return leases * w.lease_us + (w.slips ? 100000000 : 0);
}

/* Every task that waits must start, as long as those before it end. */
static void await_all(void)
{
    struct model_weather weather = fair();

    TELL("calm");
    model_weather(&weather);
    wr_sim.opt.fail_alloc = 0;
    for (int i = 0; i < w.processes; i++)
        for (int k = 0; k < w.process[i].groups && w.process[i].store; k++)
            if (!w.process[i].gate[k])
                change_gate(&w.process[i], k);
    w.moved = weir_now();
    while (weir_executor_drain(w.ex, weir_in_us(w.lease_us / 7))) {
        wait_us(1);
        MUST(weir_now() < w.moved + patience_us(8) * US);
    }
    MUST(w.started == w.ended);
}

static bool is_silent(void)
{
    for (int i = 0; i < w.processes; i++) {
        const struct wr_leased *pool = pool_of(&w.process[i]);
        if (!pool)
            continue;
        if (pool->asking || pool->asked || pool->renewing || wr_leased_has_to_renew(pool))
            return false;
    }
    return true;
}

/* It may take a while: a client may have been told to stand still some times, a server that forgot lets no caller in for a lease,
 * and a rate says when to come again. */
static void await_silence(void)
{
    weir_time end = weir_in_us(patience_us(40));
    uint64_t before;

    TELL("idle");
    do {
        before = model_commands();
        wait_us(3 * w.lease_us);
    } while ((model_commands() != before || !is_silent()) && weir_now() < end);
    MUST(model_commands() == before && is_silent());
    MUST(model_held() == 0);
    /* One that gives up, or ends, while the server is away is known there for a lease. */
    MUST(model_line(!w.cut) == 0);
    MUST(model_wants(!w.may[SERVER_GOES_BACK] && !(w.cut && w.may[PROCESSES_END])) == 0);
}

static void finish(void)
{
    for (int i = 0; i < w.submitted; i++)
        weir_task_unref(w.task[i]);
    weir_executor_free(w.ex);
    for (int i = 0; i < w.processes; i++) {
        memset(w.process[i].gate, 0, sizeof(w.process[i].gate)); /* gone with the executor */
        memset(w.process[i].rate_gate, 0, sizeof(w.process[i].rate_gate));
        if (w.process[i].store)
            end_process(&w.process[i]);
    }
    model_stop();
}

static void live(bool slips)
{
    begin(slips);
    live_wildly();
    await_all();
    await_silence();
    finish();
}

static void life(void *unused)
{
    (void)unused;
    live(false);
}

static void life_with_slips(void *unused)
{
    (void)unused;
    live(true);
}

enum { LIVES = 3000, SLIPPED = 500 };

static void test_random_lives_of_a_fleet_s_groups(void **state)
{
    (void)state;
    explore(LIVES, WEIR_SIM_OPTIONS(.seed = 1), life);
}

static void test_random_lives_when_time_slips(void **state)
{
    (void)state;
    explore(SLIPPED, WEIR_SIM_OPTIONS(.seed = 1, .slip_per_65536 = 200), life_with_slips);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lives_of_a_fleet_s_groups),
        cmocka_unit_test(test_random_lives_when_time_slips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
