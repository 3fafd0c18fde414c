/* A guard of a fleet before the tasks of a group: how it answers as a gate (weir/sys/gate.h).
 *
 * All calls come under the group's lock: they take and give units of the pool, and have the client's body do the rest.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "redis/leased.h"

#include <weir/wait.h>

/* ---- permits -------------------------------------------------------------------------------------- */

/* Whether a group of the pool's is short of permits. Under the pool's lock. */
static bool is_any_hungry(const struct wr_leased *pool)
{
    wr_list_each(at, &pool->gates) {
        if (WR_CONTAINER(at, struct wr_fleet_gate, link)->hungry)
            return true;
    }
    return false;
}

static uint32_t lease_ask(void *arg, uint32_t count, weir_time now, weir_time *again)
{
    struct wr_fleet_gate *gate = arg;
    struct wr_leased *pool = gate->pool;
    int64_t some;

    wr_lock(&pool->lock);
    some = wr_leased_capacity(pool, now) - pool->in_use;
    if (some < 0)
        some = 0;
    if (some > count)
        some = count;
    if (count == 0)
        some = wr_leased_capacity(pool, now) > pool->in_use;
    if (count)
        pool->fresh = 0; /* they have been offered */
    pool->in_use += count ? some : 0;
    gate->in_use += count ? some : 0;
    if (pool->in_use > pool->peak)
        pool->peak = pool->in_use;
    gate->hungry = count ? some < count : !some;
    if (gate->hungry) {
        pool->asked = count ? count - some : 1;
        *again = WEIR_FOREVER;
        if (!pool->asking && !pool->waiting) /* the timer decides whether to ask the server */
            wr_leased_kick(pool, now);
    } else if (pool->asked && !is_any_hungry(pool)) {
        pool->asked = 0; /* else idle units would be kept for it */
    }
    wr_unlock(&pool->lock);
    return (uint32_t)some;
}

/* Whether another task of this process may start: units above the share go back first. Under the pool's lock. */
static bool is_any_free(const struct wr_leased *pool, weir_time now)
{
    int64_t capacity = wr_leased_capacity(pool, now);

    if (capacity <= pool->in_use)
        return false;
    return pool->target < 0 || pool->in_use < pool->target ||
           capacity > pool->units; /* without the server: uncounted */
}

/* Under the pool's lock: `count` units are free again. Other tasks may use them, here or in another process. */
static void put_back(struct wr_leased *pool, struct wr_fleet_gate *gate, int64_t count,
                     weir_time now)
{
    pool->in_use -= count;
    gate->in_use -= count;
    if (pool->target >= 0 && pool->units > pool->target)
        wr_leased_kick(pool, now);
    wr_list_each(at, &pool->gates) {
        struct wr_fleet_gate *other = WR_CONTAINER(at, struct wr_fleet_gate, link);
        if (other->hungry && other->gate && is_any_free(pool, now)) {
            other->hungry = false;
            weir_gate_open(other->gate);
        }
    }
}

static void lease_take_back(void *arg, uint32_t count, weir_time now)
{
    struct wr_fleet_gate *gate = arg;

    wr_lock(&gate->pool->lock);
    put_back(gate->pool, gate, count, now);
    wr_unlock(&gate->pool->lock);
}

static uint64_t lease_started(void *arg, weir_task *task, weir_time now)
{
    struct wr_fleet_gate *gate = arg;
    uint64_t epoch;

    (void)task, (void)now;
    wr_lock(&gate->pool->lock);
    epoch = gate->pool->epoch;
    wr_unlock(&gate->pool->lock);
    return epoch;
}

static void lease_ended(void *arg, uint64_t word, int error, int64_t ran_ns, weir_time now)
{
    (void)word, (void)error, (void)ran_ns;
    lease_take_back(arg, 1, now);
}

/* The next tasks of the turn use the same permit: a lease outlasts any turn by far, and there is nothing to count. */
static void lease_went_on(void *arg, uint64_t word, uint32_t count, weir_time now)
{
    (void)arg, (void)word, (void)count, (void)now;
}

static void lease_describe(void *arg, weir_gate_state *out, weir_time now)
{
    struct wr_fleet_cell *cell = ((struct wr_fleet_gate *)arg)->pool->cell;

    (void)now;
    out->reason = WEIR_REASON_FLEET;
    wr_lock(&cell->lock);
    out->limit = cell->seen_limit;
    out->held = cell->seen_held;
    wr_unlock(&cell->lock);
}

static bool lease_at_rest(void *arg, weir_time now)
{
    (void)arg, (void)now;
    return false; /* a group that is made anew would have no gate */
}

static void lease_drop(void *arg)
{
    struct wr_fleet_gate *gate = arg;
    struct wr_leased *pool = gate->pool;

    wr_lock(&pool->lock);
    while (gate->pins) {
        wr_unlock(&pool->lock);
        weir_yield();
        wr_lock(&pool->lock);
    }
    wr_list_remove(&gate->link);
    pool->in_use -= gate->in_use; /* the gate will not hear of the ends of tasks that still run */
    if (wr_list_empty(&pool->gates))
        pool->asked = pool->peak = 0;
    pool->renew_at = 0; /* gives back what is idle */
    wr_leased_kick(pool, wr_os_now());
    wr_unlock(&pool->lock);
    weir_guard_unref(gate->guard);
    wr_os_free(gate);
}

static const weir_gate_calls lease_calls = {
    .size = sizeof(lease_calls),
    .ask = lease_ask,
    .take_back = lease_take_back,
    .started = lease_started,
    .ended = lease_ended,
    .describe = lease_describe,
    .at_rest = lease_at_rest,
    .drop = lease_drop,
    .went_on = lease_went_on,
};

static struct wr_leased *pool_of(struct wr_fleet_cell *cell)
{
    struct wr_leased *pool = wr_os_alloc(sizeof(*pool)), *mine = pool;

    wr_lock(&cell->lock);
    if (!cell->pool && pool) {
        wr_leased_init(pool, cell);
        cell->pool = pool;
        mine = NULL;
    }
    pool = cell->pool;
    wr_unlock(&cell->lock);
    wr_os_free(mine);
    return pool;
}

static int add_lease(weir_gate **out, struct wr_fleet_cell *cell, weir_group *group,
                     weir_guard *guard)
{
    struct wr_fleet_gate *gate = wr_os_alloc(sizeof(*gate));
    weir_gate *made;
    int rc;

    if (!gate)
        return WEIR_ENOMEM;
    gate->pool = pool_of(cell);
    if (!gate->pool) {
        wr_os_free(gate);
        return WEIR_ENOMEM;
    }
    wr_fleet_listen(cell->fleet);
    gate->calls = lease_calls;
    gate->calls.name = weir_guard_name(guard);
    gate->guard = weir_guard_ref(guard);
    wr_list_init(&gate->link);
    rc = weir_group_gate_add(&made, group, &gate->calls, gate);
    if (rc) {
        weir_guard_unref(guard);
        wr_os_free(gate);
        return rc;
    }
    wr_lock(&gate->pool->lock);
    gate->gate = made;
    wr_list_append(&gate->pool->gates, &gate->link);
    weir_gate_open(made); /* it may have been asked before gate->gate was set */
    wr_unlock(&gate->pool->lock);
    if (out)
        *out = made;
    return 0;
}

int wr_gate_group(weir_gate **out, weir_cell *base, weir_group *group, weir_guard *guard)
{
    struct wr_fleet_cell *cell = wr_cell_of(base);

    if (wr_compat_serves(cell))
        return WEIR_EINVAL; /* no line, so no message says when it is free */
    if (cell->kind == WEIR_GUARD_RATE || cell->kind == WEIR_GUARD_FREQUENCY)
        return wr_gate_timed(out, cell, group, guard);
    return add_lease(out, cell, group, guard);
}
