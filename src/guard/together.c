/* Several guards as one step: all their cells are locked, all are looked at, and all are taken or none.
 * SPDX-License-Identifier: MIT */
#include "base/os.h"
#include "guard/guard.h"
#include "guard/math.h"
#include "guard/remote.h"

#include <string.h>
#include <weir/runtime.h>
#include <weir/wait.h>

/* The guards in the order of their locks. `line` is the one in whose line the caller stands, -1: none. */
struct together {
    size_t count;
    struct wr_call call[WEIR_TOGETHER_MAX];
    int line;
    weir_place place;
    weir_time now;
    bool done[WEIR_TOGETHER_MAX];
    bool pins; /* see pin_all */
};

/* By rank, then by store, then by name: the same order in every process. */
static int compare(const struct weir_guard *a, const struct weir_guard *b)
{
    bool a_local = a->ops->word(a->cell) != NULL, b_local = b->ops->word(b->cell) != NULL;

    if (a->kind->rank != b->kind->rank)
        return a->kind->rank < b->kind->rank ? -1 : 1;
    if (a_local != b_local)
        return a_local ? -1 : 1;
    if (a->store != b->store && a_local)
        return a->store < b->store ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int together_init(struct together *t, weir_permit *permits, weir_guard *const *guards,
                         size_t count)
{
    t->count = count;
    t->line = -1;
    t->pins = false;
    t->place.told = NULL;
    t->place.stamp = wr_guard_stamp();
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        int order = 1;
        if (wr_permit_check(&permits[i], guards[i], 1))
            return WEIR_EINVAL;
        while (at > 0 && (order = compare(t->call[at - 1].guard, guards[i])) > 0) {
            t->call[at] = t->call[at - 1];
            at--;
        }
        if (at > 0 && order == 0)
            return WEIR_EINVAL; /* the same guard twice */
        t->call[at] = (struct wr_call){ .guard = guards[i], .permit = &permits[i], .n = 1 };
    }
    return 0;
}

/* Unlocks the first `count` guards. True: the step counts for all of them; `done` says for which it does. */
static bool unlock_first(struct together *t, size_t count)
{
    bool all = true;

    while (count-- > 0) {
        t->done[count] = wr_guard_unlock(t->call[count].guard);
        all = all && t->done[count];
    }
    return all;
}

static int lock_all(struct together *t)
{
    for (size_t i = 0; i < t->count; i++) {
        int rc = wr_guard_lock(t->call[i].guard);
        if (rc) {
            unlock_first(t, i);
            return rc;
        }
    }
    t->now = wr_os_now();
    for (size_t i = 0; i < t->count; i++)
        t->call[i].now = t->now;
    return 0;
}

/* From when on that guard could admit the caller; callers that wait and came before it go first. (Not all that wait: two
 * callers that each stand in a line the other one needs would let each other go first for ever.) */
static weir_time when(struct together *t, size_t i)
{
    struct wr_call *call = &t->call[i];
    struct weir_guard *guard = call->guard;
    weir_time moment;
    bool turn;

    if (guard->kind == &wr_kind_breaker)
        wr_guard_refresh(call);
    moment = guard->kind->when(wr_guard_read(guard), call);
    turn = (t->line == (int)i && guard->ops->is_first(guard->cell, &t->place)) ||
           guard->ops->is_before(guard->cell, t->place.stamp);
    return moment <= t->now && !turn ? WEIR_FOREVER : moment;
}

/* Under all locks: the first guard that refuses, -1 if none does. `all` is when all guards could admit the caller. */
static int look(struct together *t, weir_time *all)
{
    int refusing = -1;

    *all = t->now;
    for (size_t i = 0; i < t->count; i++) {
        weir_time moment = when(t, i);
        if (moment > t->now && refusing < 0)
            refusing = (int)i;
        if (moment > *all)
            *all = moment;
    }
    return refusing;
}

static void take_all(struct together *t)
{
    for (size_t i = 0; i < t->count; i++)
        wr_guard_take(&t->call[i]);
}

/* Under all locks: leaves the line that the caller stands in. */
static void part(struct together *t)
{
    struct weir_guard *guard;
    bool first;

    if (t->line < 0)
        return;
    guard = t->call[t->line].guard;
    first = guard->ops->is_first(guard->cell, &t->place);
    guard->ops->part(guard->cell, &t->place);
    if (first)
        wr_guard_tell_next(guard, t->now);
    t->line = -1;
}

/* Under all locks: stands in the line of that guard, if it has one. A rate has not. */
static int join(struct together *t, int at)
{
    struct weir_guard *guard = t->call[at].guard;

    if (t->line == at)
        return 0;
    part(t);
    if (guard->kind == &wr_kind_rate)
        return 0;
    if (guard->ops->waiting(guard->cell) >= wr_guard_read(guard)->set.waiters_max ||
        guard->ops->join(guard->cell, &t->place))
        return WEIR_EFULL;
    t->line = at;
    return 0;
}

/* The step counts for some of the guards, but not for all: none is to be taken. */
static void release_all(struct together *t)
{
    for (size_t i = 0; i < t->count; i++) {
        struct wr_call *call = &t->call[i];

        if (t->done[i])
            weir_guard_release(call->permit);
        else if (!call->guard->fast && call->guard->kind != &wr_kind_breaker)
            wr_sub(&call->guard->counts.entered, 1, relaxed);
        call->permit->guard = NULL;
        call->news = (struct wr_news){ 0 };
    }
}

static void tell_all(struct together *t, weir_guard_event_type type)
{
    for (size_t i = 0; i < t->count; i++) {
        struct wr_call *call = &t->call[i];
        wr_guard_tell_news(call->guard, &call->news, t->now);
        call->news = (struct wr_news){ 0 };
        if (type && call->guard->kind != &wr_kind_breaker)
            wr_guard_tell(call->guard,
                          &(weir_guard_event){ .type = type, .at = t->now, .permits = 1 });
    }
}

/* Under all locks, which it gives back. */
static int refuse(struct together *t, int at, weir_time all, int error)
{
    struct weir_guard *guard = t->call[at].guard;

    part(t);
    wr_guard_count(error == WEIR_ECANCELED ? &guard->counts.cancelled : &guard->counts.refused);
    if (guard->kind == &wr_kind_breaker && error != WEIR_ECANCELED)
        wr_state_breaker(wr_guard_write(guard))->not_permitted++;
    for (size_t i = 0; i < t->count; i++) {
        t->call[i].permit->guard = NULL;
        t->call[i].permit->retry_at = all;
    }
    unlock_first(t, t->count);
    tell_all(t, (weir_guard_event_type)0);
    wr_guard_tell(guard, &(weir_guard_event){ .type = error == WEIR_ECANCELED ? WEIR_EVENT_CANCELLED
                                                                              : WEIR_EVENT_REFUSED,
                                              .at = t->now,
                                              .permits = 1,
                                              .error = error,
                                              .retry_at = all });
    return error;
}

static void wait(struct together *t, weir_time until)
{
    if (weir_cancelled())
        return;
    if (t->line >= 0)
        t->call[t->line].guard->ops->wait(t->call[t->line].guard->cell, &t->place, until);
    else
        weir_sleep(until);
}

/* Permits of processes that ended come back before a refusal. */
static void sweep(struct together *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->call[i].guard->kind->holds)
            t->call[i].guard->ops->sweep(t->call[i].guard->cell);
}

/* From the first wait on, until it returns, the caller keeps all guards. */
static void pin_all(struct together *t)
{
    for (size_t i = 0; i < t->count && !t->pins; i++)
        wr_guard_pin(t->call[i].guard);
    t->pins = true;
}

static void all_waited(struct together *t, bool entered)
{
    for (size_t i = 0; i < t->count && t->pins; i++)
        wr_guard_waited(t->call[i].guard, t->call[i].permit, entered);
}

static int enter_all(struct together *t, weir_time deadline)
{
    bool swept = false;

    for (;;) {
        weir_time all, until;
        int at, line = t->line, rc;

        rc = lock_all(t);
        if (rc)
            return rc;
        if (deadline == WEIR_GUARD_WAIT)
            deadline = wr_guard_deadline(t->call[0].guard, deadline, t->now);
        at = look(t, &all);
        if (at < 0) {
            take_all(t);
            part(t);
            if (unlock_first(t, t->count)) {
                tell_all(t, WEIR_EVENT_ENTERED);
                return 0;
            }
            release_all(t);
            continue;
        }
        if (!swept) {
            unlock_first(t, t->count);
            sweep(t);
            swept = true;
            continue;
        }
        if (weir_cancelled() && deadline > t->now)
            return refuse(t, at, t->now, WEIR_ECANCELED);
        if (t->now >= deadline || (all > deadline && all != WEIR_FOREVER) || join(t, at))
            return refuse(t, at, all, t->call[at].guard->kind->error);
        until = when(t, (size_t)at);
        pin_all(t);
        unlock_first(t, t->count);
        if (t->line >= 0 && t->line != line && !t->done[t->line])
            t->line = -1; /* it stands nowhere: look again */
        if (t->line < 0 && t->call[at].guard->kind != &wr_kind_rate)
            continue;
        tell_all(t, (weir_guard_event_type)0);
        wait(t, until < deadline ? until : deadline);
    }
}

int wr_together_local(weir_permit *permits, weir_guard *const *guards, size_t count,
                      weir_time deadline)
{
    struct together t;
    int rc = together_init(&t, permits, guards, count);

    if (rc)
        return rc;
    rc = enter_all(&t, deadline);
    all_waited(&t, rc == 0);
    return rc;
}

int weir_guards_enter(weir_permit *permits, weir_guard *const *guards, size_t count,
                      weir_time deadline)
{
    bool remote = false;

    if (!permits || !guards || count < 1 || count > WEIR_TOGETHER_MAX)
        return WEIR_EINVAL;
    for (size_t i = 0; i < count; i++) {
        if (!guards[i])
            return WEIR_EINVAL;
        remote = remote || guards[i]->remote;
    }
    return remote ? wr_together_remote(permits, guards, count, deadline)
                  : wr_together_local(permits, guards, count, deadline);
}

void weir_guards_leave(weir_permit *permits, size_t count, int error)
{
    while (permits && count-- > 0)
        if (permits[count].guard)
            weir_guard_leave(&permits[count], error);
}
