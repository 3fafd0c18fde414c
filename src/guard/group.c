/* A guard before the tasks of a group: how it answers as a gate (weir/sys/gate.h).
 *
 * All calls come under the group's lock, which is taken before a cell's. A group that is refused stands in the guard's line
 * with a place that opens the gate when it is told. The place keeps no permit: the executor asks the gate then, and that ask
 * leaves the line and tells the next place, so that a group that has no task any more does not hold the line up. The place's
 * stamp stays until the group has got a permit, so it goes before callers that came after it.
 * SPDX-License-Identifier: MIT */
#include "guard/group.h"
#include "base/lock.h"
#include "base/os.h"
#include "guard/math.h"
#include "guard/quick.h"
#include "guard/remote.h"

#include <stdio.h>
#include <weir/group.h>

static void told(weir_place *place)
{
    weir_gate_open(((struct wr_group_guard *)place)->gate);
}

/* ---- asking -------------------------------------------------------------------------------------- */

/* How many of `count` permits can be had at once; `when` has said that 1 can. Under the lock. */
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

/* A closed breaker lets all tasks through, a half open one as many as it has probes left. */
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

/* A group that was called, and comes again since others were faster, has the stamp of the time at which it came first. */
static void join(struct wr_group_guard *g)
{
    if (g->in_line || g->guard->kind == &wr_kind_rate)
        return;
    if (!g->place.stamp)
        g->place.stamp = wr_guard_stamp();
    g->in_line = g->guard->ops->join(g->guard->cell, &g->place) == 0;
}

static void part(struct wr_group_guard *g)
{
    if (g->in_line)
        g->guard->ops->part(g->guard->cell, &g->place);
    g->in_line = g->watches = false; /* others may depend on other processes next time */
}

/* Whether no caller that came before it stands in line. */
static bool has_its_turn(const struct wr_group_guard *g)
{
    struct weir_guard *guard = g->guard;

    return guard->kind == &wr_kind_rate ||
           guard->ops->is_first(guard->cell, g->in_line ? &g->place : NULL) ||
           (g->place.stamp && guard->ops->is_before(guard->cell, g->place.stamp));
}

/* Under the lock. */
static uint32_t ask_locked(struct wr_group_guard *g, struct wr_call *call, uint32_t count,
                           weir_time *again)
{
    struct weir_guard *guard = g->guard;
    uint32_t some;

    if (guard->kind == &wr_kind_breaker)
        wr_guard_refresh(call);
    *again = WEIR_FOREVER;
    if (has_its_turn(g))
        *again = guard->kind->when(wr_guard_read(guard), call);
    wr_store(&g->refused, *again > call->now, relaxed);
    if (*again > call->now) {
        join(g);
        return 0;
    }
    part(g);
    some = count ? take_some(g, call, count) : 1;
    wr_guard_tell_next(guard, call->now);
    return some;
}

/* False: the guard cannot be asked. */
static bool ask(struct wr_group_guard *g, struct wr_call *call, uint32_t count, weir_time *again,
                uint32_t *some)
{
    struct weir_guard *guard = g->guard;
    struct wr_news news = call->news;
    bool in_line = g->in_line;
    int64_t n = call->n;

    for (;;) {
        if (wr_guard_lock(guard))
            return false;
        *some = ask_locked(g, call, count, again);
        if (wr_guard_unlock(guard))
            break;
        /* The step does not count: nothing was taken or joined; but a line that was left is left. */
        for (uint32_t i = 0; i < *some && count && !guard->fast && guard->kind != &wr_kind_breaker;
             i++)
            wr_sub(&guard->counts.entered, 1, relaxed);
        g->in_line = g->in_line && in_line;
        in_line = g->in_line;
        call->news = news;
        call->n = n;
    }
    if (*some && count)
        g->place.stamp = 0; /* its turn is over */
    return true;
}

/* Notes what time has made of a breaker, found when this gate was asked. */
static void note_news(struct wr_group_guard *g, const struct wr_call *call)
{
    if (g->tells && call->news.breaker.count)
        wr_group_note(
            g, &(struct wr_note){ .type = WR_NOTE_NEWS, .now = call->now, .news = call->news });
}

/* The group's lock keeps other writers away. */
static void hold(struct wr_group_guard *g, int64_t more)
{
    if (g->guard->kind->holds)
        wr_store(&g->held, wr_load(&g->held, relaxed) + more, relaxed);
}

static __attribute__((noinline)) uint32_t ask_slow(struct wr_group_guard *g, uint32_t count,
                                                   weir_time now, weir_time *again)
{
    struct weir_guard *guard = g->guard;
    struct wr_call call = { .guard = guard, .permit = &g->permit, .n = 1, .now = now };
    uint32_t some = 0;

    if (wr_load(&g->unjudged, acquire))
        return 0; /* the gate is opened once they are judged */
    /* Twice if it depends on other processes from now on: the place may have been told before they were watched. */
    for (int i = 0; i < 2 && !some; i++) {
        if (!ask(g, &call, count, again, &some))
            return 0;
        if (some || g->watches || !guard->ops->watch || !g->in_line)
            break;
        guard->ops->watch(guard->cell);
        g->watches = true;
    }
    note_news(g, &call);
    hold(g, count ? some : 0);
    return some;
}

static uint32_t guard_ask(void *arg, uint32_t count, weir_time now, weir_time *again)
{
    struct wr_group_guard *g = arg;
    struct weir_guard *guard = g->guard;
    uint32_t some = 0;

    *again = WEIR_FOREVER;
    if (guard->fast && !g->in_line)
        some = count ? (uint32_t)wr_fast_enter_some(guard, count) : wr_fast_has_some(guard);
    if (!some)
        return ask_slow(g, count, now, again);
    if (count)
        g->place.stamp = 0;
    hold(g, count ? some : 0);
    return some;
}

static void guard_leave_line(void *arg, weir_time now)
{
    struct wr_group_guard *g = arg;

    if (!g->in_line || wr_guard_lock(g->guard))
        return;
    part(g);
    wr_guard_tell_next(g->guard, now);
    wr_guard_unlock(g->guard);
}

static void guard_take_back(void *arg, uint32_t count, weir_time now)
{
    struct wr_group_guard *g = arg;
    struct weir_guard *guard = g->guard;
    struct wr_call call = { .guard = guard, .permit = &g->permit, .n = count, .now = now };
    weir_permit last = g->permit;

    hold(g, -(int64_t)count);
    if (guard->fast) {
        wr_add(&guard->counts.released, count, relaxed);
        if (wr_sub(guard->fast, count, release) & WEIR_WORD_SLOW)
            wr_guard_tell_first(guard);
        return;
    }
    if (guard->kind == &wr_kind_rate) /* the last of the positions that were taken */
        last.token = (uint64_t)((int64_t)last.token - (g->taken - count));
    call.permit = &last;
    do {
        if (wr_guard_lock(guard))
            return;
        if (guard->kind == &wr_kind_breaker)
            for (uint32_t i = 0; i < count; i++)
                guard->kind->undo(wr_guard_write(guard), &call);
        else if (guard->kind->undo)
            guard->kind->undo(wr_guard_write(guard), &call);
        guard->ops->tell(guard->cell);
    } while (!wr_guard_unlock(guard));
    wr_add(&guard->counts.released, count, relaxed);
    g->taken -= count;
}

/* ---- starts and ends ----------------------------------------------------------------------------- */

static uint64_t guard_started(void *arg, weir_task *task, weir_time now)
{
    struct wr_group_guard *g = arg;
    bool breaker = g->guard->kind == &wr_kind_breaker;

    (void)task;
    if (g->tells && g->guard->on_event && !breaker)
        wr_group_note(g, &(struct wr_note){ .type = WR_NOTE_STARTED, .now = now });
    return breaker ? g->permit.token : 0;
}

/* Further tasks started and ended on the first one's permit. Only for guards with a word of permits. They are counted here, since
 * groups that share the guard would send its word to and fro. */
static void guard_went_on(void *arg, uint64_t word, uint32_t count, weir_time now)
{
    struct wr_group_guard *g = arg;

    (void)word, (void)now;
    wr_store(&g->followed, wr_load(&g->followed, relaxed) + count, relaxed);
}

/* Has the teller ask the user what the end means. False: there is no `judge` for this end, or no memory. */
static bool ask_user(struct wr_group_guard *g, const struct wr_note *end)
{
    if (!g->tells || !g->guard->judge || !g->guard->kind->timed || end->error == WEIR_ECANCELED)
        return false;
    wr_add(&g->unjudged, 1, relaxed);
    if (wr_group_note(g, end))
        return true;
    wr_sub(&g->unjudged, 1, relaxed);
    return false;
}

static __attribute__((noinline)) void ended_slow(struct wr_group_guard *g, uint64_t word, int error,
                                                 int64_t ran_ns, weir_time now)
{
    struct weir_guard *guard = g->guard;
    weir_permit permit = { .token = word };
    struct wr_call call = { .guard = guard, .permit = &permit, .n = 1, .now = now, .ns = ran_ns };
    struct wr_note end = {
        .type = WR_NOTE_ENDED, .error = error, .word = word, .ns = ran_ns, .now = now
    };

    if (ask_user(g, &end))
        return;
    end.judged = true;
    end.verdict = error == WEIR_ECANCELED ? WEIR_IGNORE : wr_guard_verdict(guard, error);
    if (wr_guard_end(&call, end.verdict, &end.silent))
        return;
    end.news = call.news;
    if (g->tells)
        wr_group_note(g, &end);
}

static void guard_ended(void *arg, uint64_t word, int error, int64_t ran_ns, weir_time now)
{
    struct wr_group_guard *g = arg;
    struct weir_guard *guard = g->guard;

    hold(g, -1);
    if (guard->fast) {
        if (wr_sub(guard->fast, 1, release) & WEIR_WORD_SLOW)
            wr_guard_tell_first(guard);
    } else if (error != 0 || guard->kind != &wr_kind_breaker || !guard->quick ||
               !wr_quick_ended(guard, word, ran_ns, now)) {
        ended_slow(g, word, error, ran_ns, now);
    }
}

/* ---- what it says -------------------------------------------------------------------------------- */

static weir_reason guard_accept(void *arg, uint32_t cost, weir_time now)
{
    struct wr_group_guard *g = arg;
    struct wr_call call = { .guard = g->guard, .n = 1, .now = now };
    struct wr_note refused = { .type = WR_NOTE_REFUSED, .error = WEIR_EBROKEN, .now = now };
    struct wr_breaker *b;
    bool open, silent;

    (void)cost;
    if (g->guard->kind != &wr_kind_breaker || wr_guard_lock(g->guard))
        return WEIR_REASON_NONE;
    wr_guard_refresh(&call);
    b = wr_state_breaker(wr_guard_write(g->guard));
    silent = b->state == WEIR_FORCED_OPEN;
    open = silent || (b->state == WEIR_OPEN && now <= b->until);
    refused.ns = silent ? 0 : b->until - now + 1;
    if (open) {
        b->not_permitted++;
        wr_guard_count(&g->guard->counts.refused);
    }
    wr_guard_unlock(g->guard);
    note_news(g, &call);
    if (open && !silent && g->tells)
        wr_group_note(g, &refused);
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
    wr_guard_holders(out->holders, sizeof(out->holders), g->guard);
    out->limit = kind == &wr_kind_breaker ? 0 : s.limit;
    out->held = kind->holds ? s.used : s.limit - s.available;
    out->earliest = when == WEIR_FOREVER ? 0 : when;
}

static bool guard_at_rest(void *arg, weir_time now)
{
    (void)arg, (void)now;
    return false; /* a group that is made anew would have no guard */
}

/* ---- the groups of a guard ------------------------------------------------------------------------ */

static struct wr_lock groups_lock; /* of guard->groups; only a clock's lock comes after it */

void wr_group_holders(char *text, size_t size, struct weir_guard *guard, int64_t used)
{
    size_t at = 0;

    wr_lock(&groups_lock);
    for (struct wr_group_guard *g = guard->groups; g && at < size; g = g->next) {
        int64_t held = wr_load(&g->held, relaxed);
        if (held <= 0)
            continue;
        at += (size_t)snprintf(text + at, size - at, "%sgroup \"%.60s\" (%lld)", at ? ", " : "",
                               g->key, (long long)held);
        used -= held;
    }
    wr_unlock(&groups_lock);
    if (used > 0 && at < size)
        snprintf(text + at, size - at, "%scallers (%lld)", at ? ", " : "", (long long)used);
}

uint64_t wr_groups_entered(struct weir_guard *guard)
{
    uint64_t entered;

    wr_lock(&groups_lock);
    entered = wr_load(&guard->counts.entered, relaxed);
    for (struct wr_group_guard *g = guard->groups; g; g = g->next)
        entered += wr_load(&g->followed, relaxed);
    wr_unlock(&groups_lock);
    return entered;
}

void wr_groups_ask_again(struct weir_guard *guard)
{
    wr_lock(&groups_lock);
    for (struct wr_group_guard *g = guard->groups; g; g = g->next)
        if (wr_load(&g->refused, relaxed))
            weir_gate_open(g->gate);
    wr_unlock(&groups_lock);
}

static void enlist(struct wr_group_guard *g)
{
    wr_lock(&groups_lock);
    g->next = g->guard->groups;
    g->guard->groups = g;
    wr_unlock(&groups_lock);
}

static void delist(struct wr_group_guard *g)
{
    struct wr_group_guard **at = &g->guard->groups;

    wr_lock(&groups_lock);
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    wr_add(&g->guard->counts.entered, wr_load(&g->followed, relaxed), relaxed);
    wr_unlock(&groups_lock);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void guard_drop(void *arg)
{
    struct wr_group_guard *g = arg;
    int64_t held = wr_load(&g->held, relaxed);

    if (held > 0) /* of tasks that run on: the gate will not hear of their ends */
        guard_take_back(g, (uint32_t)held, wr_os_now());
    if (!wr_guard_lock(g->guard)) {
        part(g);
        g->guard->ops->tell(g->guard->cell);
        wr_guard_unlock(g->guard);
    }
    delist(g);
    wr_group_tell_fini(g);
    weir_guard_unref(g->guard);
    wr_os_free(g);
}

/* Rates and frequencies need to hear of tasks only if their user does: spent permits do not come back. */
static bool needs_ends(const struct wr_group_guard *g)
{
    return g->tells || g->guard->kind->end;
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
    g->key = weir_group_key(group);
    g->flags = flags;
    rc = wr_group_tell_init(g);
    if (rc) {
        weir_guard_unref(guard);
        wr_os_free(g);
        return rc;
    }
    g->calls = (weir_gate_calls){ .size = sizeof(g->calls),
                                  .name = guard->name,
                                  .accept = flags & WEIR_REJECT_WHEN_OPEN ? guard_accept : NULL,
                                  .ask = guard_ask,
                                  .take_back = guard_take_back,
                                  .leave_line = guard_leave_line,
                                  .started = needs_ends(g) ? guard_started : NULL,
                                  .ended = needs_ends(g) ? guard_ended : NULL,
                                  .describe = guard_describe,
                                  .at_rest = guard_at_rest,
                                  .drop = guard_drop,
                                  .went_on = guard->fast ? guard_went_on : NULL };
    enlist(g);
    rc = weir_group_gate_add(&g->gate, group, &g->calls, g);
    if (rc)
        guard_drop(g);
    else if (out)
        *out = g->gate;
    return rc;
}
