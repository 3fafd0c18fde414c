/* A guard before the tasks of a group: how it answers as a gate (weir/sys/gate.h).
 *
 * All calls come under the group's lock, which comes before a cell's. A group that is refused stands in the guard's line
 * with a place that has the gate opened when it is told. It keeps no turn there: the executor looks at the gate then, and that
 * look leaves the line and tells the next, so that a group that has no task any more keeps nobody waiting.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "guard/guard.h"
#include "guard/math.h"
#include "guard/remote.h"

#include <weir/sys/gate.h>

/* Under the group's lock; `place` also under the cell's.
 *     granted permits of the latest ask are not started yet; they were taken as permit, since, `granted + started`  */
struct wr_group_guard {
    weir_place place; /* first */
    weir_gate *gate;
    struct weir_guard *guard;
    weir_gate_calls calls;
    bool in_line, watches;
    int flags;
    weir_permit permit; /* what the latest ask took, as a permit remembers it                     */
    int64_t taken;      /* so many with it                                                        */
};

static void told(weir_place *place)
{
    weir_gate_open(((struct wr_group_guard *)place)->gate);
}

/* ---- asking -------------------------------------------------------------------------------------- */

/* The most of `count` that can be had at once, at least 1 of which `when` said so. Under the lock. */
static int64_t most_of(struct wr_group_guard *g, const struct wr_state *state, struct wr_call *call,
                       int64_t count)
{
    struct weir_guard *guard = g->guard;
    const struct wr_kind *kind = guard->kind;
    weir_guard_stats s = { .size = sizeof(s) };

    if (kind == &wr_kind_breaker || kind == &wr_kind_mutex || state->set.mode == WEIR_SMOOTH)
        return 1;
    s.used = kind->holds ? guard->ops->used(guard->cell) : 0;
    kind->stats(&s, wr_guard_write(guard), call->now);
    call->n = wr_min(count, wr_max(s.available, 1));
    if (kind->when(state, call) > call->now)
        call->n = 1; /* not all of them in one piece */
    return call->n;
}

/* A closed breaker lets all through, a half open one so many. */
static int64_t take_breaker(struct wr_group_guard *g, struct wr_call *call, int64_t count)
{
    struct wr_state *state = wr_guard_write(g->guard);
    weir_breaker_state before = wr_state_breaker(state)->state;
    int64_t taken = 0;

    if (before != WEIR_OPEN && before != WEIR_HALF_OPEN)
        taken = count - 1; /* nothing is kept of these */
    for (; taken < count && g->guard->kind->when(state, call) <= call->now; taken++)
        g->guard->kind->take(state, call);
    return taken;
}

/* Under the lock: takes up to `count`, of which at least one can be had. */
static uint32_t take_some(struct wr_group_guard *g, struct wr_call *call, int64_t count)
{
    struct weir_guard *guard = g->guard;

    wr_fast_fold(guard);
    g->permit.guard = NULL;
    if (guard->kind == &wr_kind_breaker) {
        g->taken = take_breaker(g, call, count);
    } else {
        g->taken = call->n = most_of(g, wr_guard_read(guard), call, count);
        guard->kind->take(wr_guard_write(guard), call);
        for (int64_t i = 0; i < g->taken && !guard->fast; i++)
            wr_guard_count(&guard->counts.entered);
    }
    return (uint32_t)g->taken;
}

static void join(struct wr_group_guard *g)
{
    if (g->in_line || g->guard->kind == &wr_kind_rate)
        return;
    g->place.stamp = wr_guard_stamp();
    g->in_line = g->guard->ops->join(g->guard->cell, &g->place) == 0;
}

static void part(struct wr_group_guard *g)
{
    if (g->in_line)
        g->guard->ops->part(g->guard->cell, &g->place);
    g->in_line = false;
}

/* Under the lock. */
static uint32_t ask_locked(struct wr_group_guard *g, uint32_t count, weir_time now,
                           weir_time *again)
{
    struct weir_guard *guard = g->guard;
    struct wr_call call = { .guard = guard, .permit = &g->permit, .n = 1, .now = now };
    uint32_t some;

    if (guard->kind == &wr_kind_breaker)
        wr_guard_refresh(&call);
    *again = WEIR_FOREVER;
    if (guard->kind == &wr_kind_rate ||
        guard->ops->is_first(guard->cell, g->in_line ? &g->place : NULL))
        *again = guard->kind->when(wr_guard_read(guard), &call);
    if (*again > now) {
        join(g);
        return 0;
    }
    part(g);
    some = count ? take_some(g, &call, count) : 1;
    guard->ops->tell(guard->cell); /* the next may find something, too */
    return some;
}

static uint32_t guard_ask(void *arg, uint32_t count, weir_time now, weir_time *again)
{
    struct wr_group_guard *g = arg;
    struct weir_guard *guard = g->guard;
    uint32_t some = 0;

    if (guard->fast && !g->in_line) {
        some = count ? (uint32_t)wr_fast_enter_some(guard, count) : wr_fast_has_some(guard);
        if (some)
            return some;
    }
    /* Twice if it has to depend on others from now on: who was told before they were watched looks once more. */
    for (int i = 0; i < 2 && !some; i++) {
        if (wr_guard_lock(guard))
            return 0;
        some = ask_locked(g, count, now, again);
        wr_guard_unlock(guard);
        if (some || g->watches || !guard->ops->watch || !g->in_line)
            break;
        guard->ops->watch(guard->cell);
        g->watches = true;
    }
    return some;
}

static void guard_take_back(void *arg, uint32_t count, weir_time now)
{
    struct wr_group_guard *g = arg;
    struct weir_guard *guard = g->guard;
    struct wr_call call = { .guard = guard, .permit = &g->permit, .n = count, .now = now };
    weir_permit last = g->permit;

    if (guard->fast) { /* they count as calls that left */
        if (wr_sub(guard->fast, count, release) & WEIR_WORD_SLOW)
            wr_guard_tell_first(guard);
        return;
    }
    if (wr_guard_lock(guard))
        return;
    if (guard->kind == &wr_kind_rate) /* the last of the positions that were taken */
        last.token = (uint64_t)((int64_t)last.token - (g->taken - count));
    call.permit = &last;
    if (guard->kind == &wr_kind_breaker)
        for (uint32_t i = 0; i < count; i++)
            guard->kind->undo(wr_guard_write(guard), &call);
    else if (guard->kind->undo)
        guard->kind->undo(wr_guard_write(guard), &call);
    for (uint32_t i = 0; i < count; i++)
        wr_guard_count(&guard->counts.released);
    g->taken -= count;
    guard->ops->tell(guard->cell);
    wr_guard_unlock(guard);
}

/* ---- starts and ends ----------------------------------------------------------------------------- */

static uint64_t guard_started(void *arg, weir_task *task, weir_time now)
{
    struct wr_group_guard *g = arg;

    (void)task, (void)now;
    return g->guard->kind == &wr_kind_breaker ? g->permit.token : 0;
}

/* They went in and out while the first one's permit was kept for them. Only for guards with a word of permits. */
static void guard_went_on(void *arg, uint64_t word, uint32_t count, weir_time now)
{
    struct wr_group_guard *g = arg;

    (void)word, (void)now;
    wr_add(g->guard->fast, count * WEIR_WORD_ENTERED, relaxed);
}

static bool is_failure(const struct weir_guard *guard, int error)
{
    for (int i = 0; i < guard->ignored_count; i++)
        if (guard->ignored[i] == error)
            return false;
    for (int i = 0; i < guard->failure_count; i++)
        if (guard->failures[i] == error)
            return true;
    return guard->failure_count == 0;
}

static void count_end(struct weir_guard *guard, const struct wr_call *call)
{
    struct wr_counts *c = &guard->counts;

    if (!guard->fast)
        wr_guard_count(&c->left);
    if (guard->kind == &wr_kind_breaker)
        wr_guard_count(&c->entered);
    if (guard->kind->timed)
        wr_guard_count(!call->counted ? &c->ignored : call->failed ? &c->failed : &c->succeeded);
}

static void guard_ended(void *arg, uint64_t word, int error, int64_t ran_ns, weir_time now)
{
    struct wr_group_guard *g = arg;
    struct weir_guard *guard = g->guard;
    weir_permit permit = { .token = word };
    struct wr_call call = { .guard = guard, .permit = &permit, .n = 1, .now = now, .ns = ran_ns };

    if (guard->fast) {
        if (wr_sub(guard->fast, 1, release) & WEIR_WORD_SLOW)
            wr_guard_tell_first(guard);
        return;
    }
    call.failed = error < 0 && is_failure(guard, error);
    call.counted = error != WEIR_ECANCELED &&
                   (call.failed || error >= 0 || guard->other_errors == WEIR_SUCCESS);
    if (wr_guard_lock(guard))
        return;
    if (guard->kind->end)
        guard->kind->end(guard->kind->fast ? NULL : wr_guard_write(guard), &call);
    count_end(guard, &call);
    guard->ops->tell(guard->cell);
    wr_guard_unlock(guard);
}

/* ---- what it says -------------------------------------------------------------------------------- */

static weir_reason guard_accept(void *arg, uint32_t cost, weir_time now)
{
    struct wr_group_guard *g = arg;
    struct wr_call call = { .guard = g->guard, .n = 1, .now = now };
    const struct wr_breaker *b;
    bool open;

    (void)cost;
    if (!(g->flags & WEIR_REJECT_WHEN_OPEN) || g->guard->kind != &wr_kind_breaker ||
        wr_guard_lock(g->guard))
        return WEIR_REASON_NONE;
    wr_guard_refresh(&call);
    b = wr_state_breaker(wr_guard_read(g->guard));
    open = b->state == WEIR_FORCED_OPEN || (b->state == WEIR_OPEN && now <= b->until);
    wr_guard_unlock(g->guard);
    return open ? WEIR_REASON_BREAKER_OPEN : WEIR_REASON_NONE;
}

static void guard_describe(void *arg, weir_gate_state *out, weir_time now)
{
    struct wr_group_guard *g = arg;
    struct wr_call call = { .guard = g->guard, .n = 1, .now = now };
    weir_guard_stats s = { .size = sizeof(s) };
    const struct wr_kind *kind = g->guard->kind;
    weir_time when;

    out->reason = kind == &wr_kind_breaker ? WEIR_REASON_BREAKER_OPEN : WEIR_REASON_GUARDED;
    if (wr_guard_lock(g->guard))
        return;
    s.used = kind->holds ? g->guard->ops->used(g->guard->cell) : 0;
    s.limit = wr_guard_read(g->guard)->set.limit;
    kind->stats(&s, wr_guard_write(g->guard), now);
    when = kind->when(wr_guard_read(g->guard), &call);
    wr_guard_unlock(g->guard);
    out->limit = kind == &wr_kind_breaker ? 0 : s.limit;
    out->held = kind->holds ? s.used : s.limit - s.available;
    out->earliest = when == WEIR_FOREVER ? 0 : when;
}

static bool guard_at_rest(void *arg, weir_time now)
{
    (void)arg, (void)now;
    return false; /* a group that is made anew would have no guard */
}

static void guard_drop(void *arg)
{
    struct wr_group_guard *g = arg;

    if (!wr_guard_lock(g->guard)) {
        part(g);
        g->guard->ops->tell(g->guard->cell);
        wr_guard_unlock(g->guard);
    }
    weir_guard_unref(g->guard);
    wr_os_free(g);
}

int weir_group_guard_add(weir_gate **out, weir_group *group, weir_guard *guard, int flags)
{
    struct wr_group_guard *g;
    int rc;

    if (!group || !guard || (flags & ~WEIR_REJECT_WHEN_OPEN) || guard->kind == &wr_kind_budget)
        return WEIR_EINVAL;
    if (guard->remote)
        return guard->remote->ops->group(out, guard->cell, group, guard);
    g = wr_os_alloc(sizeof(*g));
    if (!g)
        return WEIR_ENOMEM;
    g->place.told = told;
    g->guard = weir_guard_ref(guard);
    g->flags = flags;
    g->calls = (weir_gate_calls){ .size = sizeof(g->calls),
                                  .name = guard->name,
                                  .accept = flags & WEIR_REJECT_WHEN_OPEN ? guard_accept : NULL,
                                  .ask = guard_ask,
                                  .take_back = guard_take_back,
                                  .started = guard_started,
                                  .ended = guard_ended,
                                  .describe = guard_describe,
                                  .at_rest = guard_at_rest,
                                  .drop = guard_drop,
                                  .went_on = guard->fast ? guard_went_on : NULL };
    rc = weir_group_gate_add(&g->gate, group, &g->calls, g);
    if (rc) {
        weir_guard_unref(guard);
        wr_os_free(g);
    } else if (out) {
        *out = g->gate;
    }
    return rc;
}
