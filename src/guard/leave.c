/* Leaving a guard: verdicts, counts, and the next in line.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "guard/fast.h"
#include "guard/guard.h"
#include "guard/math.h"
#include "guard/quick.h"
#include "guard/remote.h"

/* ---- events -------------------------------------------------------------------------------------- */

/* Asks the user's function how long this opening lasts. Until then it has the usual length. */
static void ask_open_for(struct weir_guard *guard, const struct wr_news *news, weir_time now)
{
    int64_t ns = guard->open_for(news->attempt, guard->open_arg);
    struct wr_breaker *b;

    do {
        if (wr_guard_lock(guard))
            return;
        b = wr_state_breaker(wr_guard_write(guard));
        if (b->epoch == news->epoch && b->state == WEIR_OPEN)
            b->until = wr_sum(now, ns > 0 ? ns : 1);
    } while (!wr_guard_unlock(guard));
}

void wr_guard_tell_news(struct weir_guard *guard, const struct wr_news *news, weir_time now)
{
    if (news->breaker.too_many_failed)
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_TOO_MANY_FAILED, .at = now });
    if (news->breaker.too_many_slow)
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_TOO_MANY_SLOW, .at = now });
    for (int i = 0; i < news->breaker.count; i++)
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_TRANSITION,
                                                  .at = now,
                                                  .from = news->breaker.change[i].from,
                                                  .to = news->breaker.change[i].to });
    if (news->attempt)
        ask_open_for(guard, news, now);
}

const char *weir_guard_event_name(weir_guard_event_type type)
{
    switch (type) {
#define LABEL(name, number, label) \
    case WEIR_EVENT_##name:        \
        return label;
        WEIR_GUARD_EVENTS(LABEL)
#undef LABEL
    }
    return "?";
}

/* ---- verdicts ------------------------------------------------------------------------------------ */

static bool is_listed(const int *list, int count, int error)
{
    for (int i = 0; i < count; i++)
        if (list[i] == error)
            return true;
    return false;
}

weir_call_result wr_guard_judge(struct weir_guard *guard, int error, const void *result)
{
    weir_call_result verdict = guard->judge ? guard->judge(error, result, guard->judge_arg) : 0;

    return verdict >= WEIR_SUCCESS && verdict <= WEIR_IGNORE ? verdict
                                                             : wr_guard_verdict(guard, error);
}

weir_call_result wr_guard_verdict(const struct weir_guard *guard, int error)
{
    if (error >= 0)
        return WEIR_SUCCESS;
    if (is_listed(guard->ignored, guard->ignored_count, error))
        return WEIR_IGNORE;
    if (!guard->failure_count || is_listed(guard->failures, guard->failure_count, error))
        return WEIR_FAILURE;
    return guard->other_errors;
}

/* ---- leaving ------------------------------------------------------------------------------------- */

static void count_by(_Atomic uint64_t *count, int by)
{
    if (by > 0)
        wr_guard_count(count);
    else
        wr_sub(count, 1, relaxed);
}

/* Under the lock; `by` is -1 to take it back. */
static void count_end(struct weir_guard *guard, const struct wr_call *call,
                      weir_call_result verdict, int by)
{
    struct wr_counts *c = &guard->counts;

    count_by(&c->left, by);
    if (!guard->kind->timed)
        return;
    if (guard->kind == &wr_kind_breaker) {
        count_by(&c->entered, by);
        if (call->slow)
            count_by(&c->slow, by);
    }
    count_by(verdict == WEIR_SUCCESS   ? &c->succeeded
             : verdict == WEIR_FAILURE ? &c->failed
                                       : &c->ignored,
             by);
}

void wr_guard_tell_end(struct wr_call *call, weir_call_result verdict, int error, bool silent)
{
    struct weir_guard *guard = call->guard;
    weir_guard_event event = { .type = WEIR_EVENT_LEFT, .at = call->now, .permits = call->n };

    if (!guard->on_event || silent)
        return;
    if (guard->kind->timed) {
        event.type = verdict == WEIR_SUCCESS   ? WEIR_EVENT_SUCCEEDED
                     : verdict == WEIR_FAILURE ? WEIR_EVENT_FAILED
                                               : WEIR_EVENT_IGNORED;
        event.duration_ns = call->ns;
        event.error = error;
    }
    wr_guard_tell(guard, &event);
}

/* Notes an opening whose length the user decides. Under the lock. */
static void note_opening(struct wr_call *call)
{
    const struct wr_breaker *b = wr_state_breaker(wr_guard_read(call->guard));

    if (!call->guard->open_for || !call->news.breaker.count || b->state != WEIR_OPEN)
        return;
    call->news.attempt = b->attempt;
    call->news.epoch = b->epoch;
}

/* Under the lock. True: no event tells of it. */
static bool end_locked(struct wr_call *call, weir_call_result verdict)
{
    struct weir_guard *guard = call->guard;
    bool silent = false;

    call->failed = verdict == WEIR_FAILURE;
    call->counted = verdict != WEIR_IGNORE;
    if (guard->kind->end)
        guard->kind->end(guard->kind->fast ? NULL : wr_guard_write(guard), call);
    if (guard->kind == &wr_kind_breaker) {
        weir_breaker_state state = wr_state_breaker(wr_guard_read(guard))->state;
        silent = state == WEIR_DISABLED || state == WEIR_FORCED_OPEN;
        call->slow = call->ns > wr_guard_read(guard)->set.slow_ns;
        note_opening(call);
    }
    if (guard->ops->waiting(guard->cell))
        guard->ops->tell(guard->cell);
    return silent;
}

int wr_guard_end(struct wr_call *call, weir_call_result verdict, bool *silent)
{
    struct weir_guard *guard = call->guard;
    struct wr_news news = call->news;
    bool done = false;
    int rc;

    while (!done) {
        rc = wr_guard_lock(guard);
        if (rc)
            return rc;
        call->news = news;
        *silent = end_locked(call, verdict);
        count_end(guard, call, verdict, 1);
        done = wr_guard_unlock(guard);
        if (!done)
            count_end(guard, call, verdict, -1);
    }
    return 0;
}

static int leave_locked(struct wr_call *call, weir_call_result verdict, int error)
{
    struct weir_guard *guard = call->guard;
    bool silent;
    int rc = wr_guard_end(call, verdict, &silent);

    if (rc)
        return rc;
    wr_guard_tell_end(call, verdict, error, silent);
    wr_guard_tell_news(guard, &call->news, call->now);
    return 0;
}

__attribute__((noinline)) int wr_guard_tell_first(struct weir_guard *guard)
{
    if (!wr_guard_lock(guard)) {
        guard->ops->tell(guard->cell);
        wr_guard_unlock(guard);
    }
    return 0;
}

static inline int leave_fast(weir_permit *permit, struct weir_guard *guard)
{
    uint64_t n = (uint64_t)permit->permits, word;

    /* In release only the sign of what is left is looked at, so that this is a locked subtraction and a jump by its flags; one
     * that answers the old word (xadd) makes the whole call slower by a tenth. */
    word = wr_sub((_Atomic uint64_t *)(uintptr_t)permit->since, n, release);
    WR_ASSERT_SLOW((word & WEIR_WORD_USED) >= n);
    permit->guard = NULL;
    return WR_UNLIKELY((int64_t)(word - n) < 0) ? wr_guard_tell_first(guard) : 0;
}

static int permit_is_held(const weir_permit *permit)
{
    if (!permit)
        return WEIR_EINVAL;
    if (!permit->guard)
        return WEIR_EALREADY;
    return weir_permit_is_held(permit) ? 0 : WEIR_EINVAL;
}

/* The call that a permit, which is held, was given for. */
static struct wr_call call_of(weir_permit *permit)
{
    wr_permit_settle(permit);
    return (struct wr_call){ .permit = permit, .guard = permit->guard, .n = permit->permits };
}

static __attribute__((noinline)) int leave_slow(weir_permit *permit, int error, const void *result)
{
    weir_call_result verdict = WEIR_SUCCESS;
    struct wr_call call = call_of(permit);
    struct weir_guard *guard = call.guard;

    if (guard->drain_on && guard->kind == &wr_kind_rate &&
        guard->drain_on(error, result, guard->drain_arg))
        weir_guard_drain(guard);
    if (guard->remote)
        return wr_remote_leave(permit, error);
    permit->guard = NULL;
    if (!guard->kind->end && !guard->on_event)
        return 0; /* rates, frequencies, budgets: spent permits do not come back */
    if (guard->kind->timed || guard->on_event)
        call.now = wr_os_now();
    if (guard->kind->timed) {
        call.ns = call.now - permit->since;
        verdict = wr_guard_judge(guard, error, result);
    }
    return leave_locked(&call, verdict, error);
}

/* Ends a step in shared memory whose lock was not free at once, that was not a usual one, or whose lock was taken over. */
static __attribute__((noinline)) int leave_host_later(weir_permit *permit, int error,
                                                      enum wr_step step)
{
    struct weir_guard *guard = permit->guard;

    if (step <= WR_DISPLACED)
        guard->ops->unlock(guard->cell); /* permits that were given back count */
    if (step != WR_DISPLACED_USUAL && step != WR_USUAL)
        return leave_slow(permit, error, NULL);
    permit->guard = NULL;
    return 0;
}

static __attribute__((noinline)) int leave_host_contended(weir_permit *permit, int error)
{
    struct weir_guard *guard = permit->guard;
    enum wr_step step = WR_UNUSUAL;

    if (wr_direct_contended(&guard->direct))
        step = wr_host_leave(guard, permit->permits);
    return leave_host_later(permit, error, step);
}

static inline int leave_host(weir_permit *permit, struct weir_guard *guard, int error)
{
    enum wr_step step;

    if (!wr_direct_lock(&guard->direct))
        return leave_host_contended(permit, error);
    step = wr_host_leave(guard, permit->permits);
    if (WR_UNLIKELY(step != WR_USUAL))
        return leave_host_later(permit, error, step);
    permit->guard = NULL;
    return 0;
}

/* A call of a breaker that does not go into the book at once: another thread has it, it is full, or the call is not a
 * usual one or took more than a pulse. */
static __attribute__((noinline)) int leave_later(weir_permit *permit, int error)
{
    struct weir_guard *guard = permit->guard;
    weir_time now;

    if (error < 0)
        return leave_slow(permit, error, NULL);
    if (wr_quick_is_full(wr_quick_mine(guard)))
        wr_quick_empty(guard);
    wr_permit_settle(permit);
    now = wr_os_now();
    if (!wr_quick_ended(guard, permit->token, now - permit->since, now))
        return leave_slow(permit, error, NULL);
    permit->guard = NULL;
    return 0;
}

/* A call of a rate, which is over then; or of a breaker that is most likely closed, and most likely went well. No function is
 * called on the way, so that no registers are to be saved. */
static __attribute__((noinline)) int leave_quick(weir_permit *permit, int error)
{
    struct weir_guard *guard = permit->guard;
    struct wr_quick *quick = wr_quick_mine(guard);
    uint64_t token = permit->token;

    if (WR_LIKELY(guard->kind == &wr_kind_breaker) &&
        WR_UNLIKELY(error < 0 || !(WR_LIKELY(token & WR_SINCE_PULSE)
                                       ? wr_quick_end_pulse(permit, quick, token)
                                       : wr_quick_end_ticks(permit, quick, token))))
        return leave_later(permit, error);
    permit->guard = NULL;
    return 0;
}

/* Leaves a permit that keeps the guard as any other, then lets the guard go. Also if there is no permit. */
static __attribute__((noinline)) int leave_pinned(weir_permit *permit, int error,
                                                  const void *result)
{
    struct weir_guard *guard = permit ? permit->guard : NULL;
    int rc = permit_is_held(permit);

    if (rc)
        return rc;
    permit->place = permit;
    rc = weir_guard_leave_with(permit, error, result);
    if (permit->guard)
        permit->place = (const char *)permit + 1;
    else
        wr_guard_unpin(guard);
    return rc;
}

/* As weir_guard_enter. */
__attribute__((aligned(64))) int weir_guard_leave(weir_permit *permit, int error)
{
    struct weir_guard *guard = permit ? permit->guard : NULL;

    if (WR_UNLIKELY(!guard || permit->place != permit))
        return leave_pinned(permit, error, NULL);
    if (WR_LIKELY(guard->fast))
        return leave_fast(permit, guard);
    if (guard->quick)
        return leave_quick(permit, error);
    return guard->direct.lock ? leave_host(permit, guard, error) : leave_slow(permit, error, NULL);
}

int weir_guard_leave_with(weir_permit *permit, int error, const void *result)
{
    struct weir_guard *guard = permit ? permit->guard : NULL;

    if (!guard || permit->place != permit)
        return leave_pinned(permit, error, result);
    return guard->fast ? leave_fast(permit, guard) : leave_slow(permit, error, result);
}

int wr_guard_undo(struct wr_call *call, _Atomic uint64_t *count)
{
    struct weir_guard *guard = call->guard;
    int rc;

    do {
        rc = wr_guard_lock(guard);
        if (rc)
            return rc;
        call->now = wr_os_now();
        if (guard->kind->undo)
            guard->kind->undo(guard->kind->fast ? NULL : wr_guard_write(guard), call);
        if (guard->ops->waiting(guard->cell))
            guard->ops->tell(guard->cell);
    } while (!wr_guard_unlock_counted(guard, count));
    if (guard->kind == &wr_kind_rate)
        wr_groups_ask_again(guard);
    return 0;
}

static int release(weir_permit *permit)
{
    struct wr_call call = call_of(permit);
    int rc;

    if (call.guard->remote)
        return wr_remote_release(permit);
    rc = wr_guard_undo(&call, &call.guard->counts.released);
    if (!rc)
        permit->guard = NULL;
    return rc;
}

int weir_guard_release(weir_permit *permit)
{
    struct weir_guard *guard = permit ? permit->guard : NULL;
    int rc = permit_is_held(permit);
    bool pins = !rc && wr_permit_pins(permit);

    rc = rc ? rc : release(permit);
    if (pins && !permit->guard)
        wr_guard_unpin(guard);
    return rc;
}

int weir_permit_move(weir_permit *to, weir_permit *from)
{
    int rc = permit_is_held(from);

    if (rc || !to || weir_permit_is_held(to))
        return rc ? rc : WEIR_EINVAL;
    *to = *from;
    to->place = (const char *)to + wr_permit_pins(from);
    from->guard = NULL;
    return 0;
}

void weir_permit_end(weir_permit *permit)
{
    if (permit && permit->guard)
        weir_guard_release(permit);
}
