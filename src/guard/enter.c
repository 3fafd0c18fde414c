/* Entering a guard: at once, by a reservation, or in its line.
 * SPDX-License-Identifier: MIT */
#include "base/assert.h"
#include "base/os.h"
#include "guard/fast.h"
#include "guard/guard.h"
#include "guard/math.h"
#include "guard/quick.h"
#include "guard/remote.h"

#include <weir/runtime.h>
#include <weir/wait.h>

void wr_fast_fold(struct weir_guard *guard)
{
    if (guard->fast && wr_load(guard->fast, relaxed) & WR_WORD_MANY) {
        wr_sub(guard->fast, WR_WORD_MANY, relaxed);
        wr_add(&guard->counts.entered, WR_WORD_MANY / WEIR_WORD_ENTERED, relaxed);
    }
}

bool wr_guard_unlock(struct weir_guard *guard)
{
    if (guard->kind == &wr_kind_breaker) {
        const struct wr_breaker *b = wr_state_breaker(wr_guard_read(guard));
        uint64_t phase = b->epoch << 3 | (uint64_t)b->state;
        if (wr_load(guard->hint, relaxed) != phase)
            wr_store(guard->hint, phase, release);
    }
    if (guard->quick)
        wr_quick_arm(guard);
    return guard->ops->unlock(guard->cell) == 0;
}

bool wr_guard_unlock_counted(struct weir_guard *guard, _Atomic uint64_t *count)
{
    wr_guard_count(count);
    if (wr_guard_unlock(guard))
        return true;
    wr_sub(count, 1, relaxed);
    return false;
}

int wr_permit_check(const weir_permit *permit, const struct weir_guard *guard, int64_t n)
{
    if (!permit || !guard || n < 1 || n > WEIR_PERMITS_MAX)
        return WEIR_EINVAL;
    if (weir_permit_is_held(permit))
        return WEIR_EINVAL; /* it still holds something */
    if (n > 1 && (guard->kind == &wr_kind_breaker || guard->kind == &wr_kind_mutex ||
                  guard->kind == &wr_kind_budget))
        return WEIR_EINVAL;
    return 0;
}

weir_time wr_guard_deadline(struct weir_guard *guard, weir_time deadline, weir_time now)
{
    return deadline == WEIR_GUARD_WAIT ? wr_sum(now, wr_guard_read(guard)->set.wait_ns) : deadline;
}

uint64_t wr_guard_stamp(void)
{
    static _Atomic uint64_t latest;
    uint64_t last = wr_load(&latest, relaxed), next, now = (uint64_t)wr_os_now();

    do
        next = now > last ? now : last + 1;
    while (!wr_cas(&latest, &last, next, acquire));
    return next;
}

/* ---- what became of it --------------------------------------------------------------------------- */

void wr_guard_count(_Atomic uint64_t *count)
{
    wr_bump(count);
}

void wr_guard_tell(struct weir_guard *guard, const weir_guard_event *event)
{
    weir_guard_event full = *event;

    if (!guard->on_event)
        return;
    full.guard = guard;
    full.name = guard->name;
    guard->on_event(&full, guard->event_arg);
}

static int entered(struct wr_call *call)
{
    wr_guard_tell_news(call->guard, &call->news, call->now);
    if (call->guard->kind != &wr_kind_breaker)
        wr_guard_tell(
            call->guard,
            &(weir_guard_event){ .type = WEIR_EVENT_ENTERED, .at = call->now, .permits = call->n });
    return 0;
}

/* Called with the lock, which it gives back. */
static int refused(struct wr_call *call, weir_time when)
{
    struct weir_guard *guard = call->guard;
    bool silent = false;

    wr_guard_count(&guard->counts.refused);
    if (guard->kind == &wr_kind_breaker) {
        struct wr_breaker *b = wr_state_breaker(wr_guard_write(guard));
        b->not_permitted++;
        silent = b->state == WEIR_FORCED_OPEN;
    }
    wr_guard_unlock(guard);
    call->permit->guard = NULL;
    call->permit->retry_at = when;
    wr_guard_tell_news(guard, &call->news, call->now);
    if (!silent)
        wr_guard_tell(guard, &(weir_guard_event){ .type = WEIR_EVENT_REFUSED,
                                                  .at = call->now,
                                                  .permits = call->n,
                                                  .error = guard->kind->error,
                                                  .retry_at = when });
    return guard->kind->error;
}

static int cancelled(struct wr_call *call)
{
    call->permit->guard = NULL;
    call->permit->retry_at = call->now;
    wr_guard_tell(call->guard, &(weir_guard_event){ .type = WEIR_EVENT_CANCELLED,
                                                    .at = call->now,
                                                    .permits = call->n,
                                                    .error = WEIR_ECANCELED });
    return WEIR_ECANCELED;
}

/* ---- trying -------------------------------------------------------------------------------------- */

static weir_time when(struct wr_call *call)
{
    struct weir_guard *guard = call->guard;

    if (guard->kind == &wr_kind_breaker)
        wr_guard_refresh(call);
    return guard->kind->when(wr_guard_read(guard), call);
}

void wr_guard_take(struct wr_call *call)
{
    struct weir_guard *guard = call->guard;

    wr_fast_fold(guard);
    /* If the permits are all there is to change, the state is not written. */
    guard->kind->take(guard->kind->fast ? NULL : wr_guard_write(guard), call);
    wr_permit_fill(call->permit, guard, call->n);
    if (guard->fast)
        wr_permit_prepare(call->permit, guard->fast, call->n);
    else if (guard->kind->timed)
        call->permit->since = call->now;
    if (!guard->fast && guard->kind != &wr_kind_breaker)
        wr_guard_count(&guard->counts.entered);
}

/* What enter and its parts answer if their step does not count: begin again. */
enum { AGAIN = 1 };

/* The step does not count: takes back what it has written elsewhere. */
static int not_entered(struct wr_call *call)
{
    if (call->guard->kind != &wr_kind_breaker)
        wr_sub(&call->guard->counts.entered, 1, relaxed);
    call->permit->guard = NULL;
    call->news = (struct wr_news){ 0 };
    return AGAIN;
}

/* ---- rates: a place ahead ------------------------------------------------------------------------ */

static int sleep_until_its_turn(struct wr_call *call, weir_time turn)
{
    struct weir_guard *guard = call->guard;
    int rc;

    wr_guard_pin(guard);
    wr_add(&guard->sleeping, 1, relaxed);
    rc = weir_sleep(turn);
    wr_sub(&guard->sleeping, 1, relaxed);
    if (rc)
        wr_guard_undo(call, &guard->counts.cancelled);
    rc = rc ? cancelled(call) : entered(call);
    wr_guard_waited(guard, call->permit, rc == 0);
    return rc;
}

/* Under the lock, which it gives back. 0: reserved; the wait is in call->wait. */
static int reserve(struct wr_call *call)
{
    struct weir_guard *guard = call->guard;
    struct wr_state *state = wr_guard_write(guard);
    bool crowded = wr_load(&guard->sleeping, relaxed) >= state->set.waiters_max;

    if (crowded)
        call->patience = 0;
    call->permit->guard = NULL;
    guard->kind->take(state, call);
    if (!call->permit->guard)
        return refused(call, wr_sum(call->now, call->wait));
    wr_guard_count(&guard->counts.entered);
    return wr_guard_unlock(guard) ? 0 : not_entered(call);
}

static int enter_rate(struct wr_call *call, weir_time deadline)
{
    int rc;

    deadline = wr_guard_deadline(call->guard, deadline, call->now);
    call->patience = deadline == WEIR_FOREVER ? INT64_MAX : wr_max(deadline - call->now, 0);
    rc = reserve(call);
    if (rc)
        return rc;
    if (call->wait == 0)
        return entered(call);
    return sleep_until_its_turn(call, wr_sum(call->now, call->wait));
}

/* ---- the line ------------------------------------------------------------------------------------ */

/* Tells the first in line, but not if all permits are out: the call that leaves does so. */
void wr_guard_tell_next(struct weir_guard *guard, weir_time now)
{
    const struct wr_call one = { .guard = guard, .n = 1, .now = now };

    if (!guard->kind->holds || guard->kind->when(wr_guard_read(guard), &one) <= now)
        guard->ops->tell(guard->cell);
}

/* Under the lock: leaves the line; if the place was the first, the next one is told. */
static void part(struct wr_call *call, weir_place *place)
{
    struct weir_guard *guard = call->guard;
    bool first = guard->ops->is_first(guard->cell, place);

    guard->ops->part(guard->cell, place);
    if (first)
        wr_guard_tell_next(guard, call->now);
}

/* In line, under the lock, which it gives back. */
static int stand_in_line(struct wr_call *call, weir_place *place, weir_time deadline,
                         weir_time moment)
{
    struct weir_guard *guard = call->guard;

    for (bool joined = false;; joined = true) {
        weir_time until = moment < deadline ? moment : deadline;

        if (!wr_guard_unlock(guard) && !joined)
            return AGAIN; /* it stands in no line */
        wr_guard_tell_news(guard, &call->news, call->now);
        call->news = (struct wr_news){ 0 };
        if (!weir_cancelled())
            guard->ops->wait(guard->cell, place, until);
        if (wr_guard_lock(guard))
            return WEIR_ECLOSED;
        call->now = wr_os_now();
        moment = WEIR_FOREVER;
        if (weir_cancelled()) {
            part(call, place);
            wr_guard_count(&guard->counts.cancelled);
            wr_guard_unlock(guard);
            return cancelled(call);
        }
        if (guard->ops->is_first(guard->cell, place)) {
            moment = when(call);
            if (moment <= call->now) {
                wr_guard_take(call);
                part(call, place);
                return wr_guard_unlock(guard) ? entered(call) : not_entered(call);
            }
        }
        if (call->now >= deadline || (moment > deadline && moment != WEIR_FOREVER)) {
            part(call, place);
            return refused(call, moment);
        }
    }
}

/* Under the lock, which it gives back. */
static int enter_line(struct wr_call *call, weir_time deadline, weir_time moment)
{
    struct weir_guard *guard = call->guard;
    const struct wr_settings *set = &wr_guard_read(guard)->set;
    weir_place place = { .told = NULL, .stamp = wr_guard_stamp() };
    int rc;

    if (call->now >= deadline || (moment > deadline && moment != WEIR_FOREVER) ||
        guard->ops->waiting(guard->cell) >= set->waiters_max ||
        guard->ops->join(guard->cell, &place))
        return refused(call, moment);
    wr_guard_pin(guard);
    rc = stand_in_line(call, &place, deadline, moment);
    wr_guard_waited(guard, call->permit, rc == 0);
    return rc;
}

static int try_to_enter(struct wr_call *call, weir_time deadline)
{
    struct weir_guard *guard = call->guard;
    bool swept = false;
    weir_time moment;
    int rc;

    for (;;) {
        rc = wr_guard_lock(guard);
        if (rc)
            return rc;
        call->now = wr_os_now();
        if (wr_settings_exclude(&wr_guard_read(guard)->set, call->n)) {
            wr_guard_unlock(guard);
            return WEIR_EINVAL;
        }
        if (guard->kind == &wr_kind_rate)
            return enter_rate(call, deadline);
        moment = when(call);
        if (moment <= call->now && guard->ops->is_first(guard->cell, NULL)) {
            wr_guard_take(call);
            return wr_guard_unlock(guard) ? entered(call) : not_entered(call);
        }
        if (swept || !guard->kind->holds || guard->ops->word(guard->cell))
            break;
        wr_guard_unlock(guard); /* permits of processes that ended come back first */
        swept = true;
        guard->ops->sweep(guard->cell);
    }
    if (moment <= call->now)
        moment = WEIR_FOREVER; /* it is only that other callers came first */
    return enter_line(call, wr_guard_deadline(guard, deadline, call->now), moment);
}

static int enter(struct wr_call *call, weir_time deadline)
{
    int rc;

    do
        rc = try_to_enter(call, deadline);
    while (rc == AGAIN);
    return rc;
}

/* ---- the calls ----------------------------------------------------------------------------------- */

enum { SPINS = 20 };

bool wr_direct_contended(const weir_direct *direct)
{
    _Atomic uint64_t *lock = (_Atomic uint64_t *)direct->lock;

    if (wr_load(&wr_os_fork_count, relaxed) != direct->forks)
        return false;
    for (int i = 0; i < SPINS; i++) {
        uint64_t free = 0;
        for (int k = 0; k <= i; k++)
            wr_os_relax();
        if (wr_load(lock, relaxed) == 0 && wr_cas(lock, &free, direct->owner, acquire))
            return true;
    }
    return false;
}

/* A closed breaker is entered by reading one word. */
static bool enter_closed(weir_permit *permit, struct weir_guard *guard)
{
    uint64_t phase = wr_load(guard->hint, acquire);

    if ((phase & 7) != WEIR_CLOSED)
        return false;
    wr_permit_fill(permit, guard, 1);
    permit->token = phase >> 3;
    permit->since = wr_os_now();
    return true;
}

static __attribute__((noinline)) int enter_slow(weir_permit *out, struct weir_guard *guard,
                                                int64_t n, weir_time deadline)
{
    struct wr_call call = { .guard = guard, .permit = out, .n = n };
    int rc = wr_permit_check(out, guard, n);

    if (rc)
        return rc;
    out->guard = NULL;
    if (guard->remote) {
        wr_guard_pin(guard);
        rc = wr_remote_enter(out, guard, n, deadline);
        wr_guard_waited(guard, out, rc == 0);
        return rc;
    }
    if (guard->fast && wr_fast_enter(out, guard, guard->fast, n))
        return 0;
    return enter(&call, deadline);
}

/* In shared memory, after a step whose lock was not free at once, that was not a usual one, or that did not count and is taken
 * back. */
static __attribute__((noinline)) int enter_host_later(weir_permit *out, struct weir_guard *guard,
                                                      weir_time deadline, enum wr_step step)
{
    if (step == WR_DISPLACED_USUAL) {
        wr_host_add(&guard->direct, -1);
        wr_sub(&guard->counts.entered, 1, relaxed);
    }
    if (step <= WR_DISPLACED)
        guard->ops->unlock(guard->cell);
    return enter_slow(out, guard, 1, deadline);
}

static __attribute__((noinline)) int enter_host_contended(weir_permit *out,
                                                          struct weir_guard *guard,
                                                          weir_time deadline)
{
    enum wr_step step = WR_UNUSUAL;

    if (wr_direct_contended(&guard->direct))
        step = wr_host_enter(guard);
    if (step != WR_USUAL)
        return enter_host_later(out, guard, deadline, step);
    wr_permit_fill(out, guard, 1);
    return 0;
}

static __attribute__((noinline)) int enter_host(weir_permit *out, struct weir_guard *guard,
                                                weir_time deadline)
{
    enum wr_step step;

    if (!wr_direct_lock(&guard->direct))
        return enter_host_contended(out, guard, deadline);
    step = wr_host_enter(guard);
    if (WR_UNLIKELY(step != WR_USUAL))
        return enter_host_later(out, guard, deadline, step);
    wr_permit_fill(out, guard, 1);
    return 0;
}

/* The short way of other kinds. This function and the next have the arguments of weir_guard_enter, which calls them last and
 * then has no argument to move. */
static __attribute__((noinline)) int enter_other(weir_permit *out, struct weir_guard *guard,
                                                 weir_time deadline)
{
    if (guard->kind == &wr_kind_breaker ? enter_closed(out, guard)
                                        : guard->quick && wr_quick_rate(out, guard))
        return 0;
    return enter_slow(out, guard, 1, deadline);
}

static __attribute__((noinline)) int enter_later(weir_permit *out, struct weir_guard *guard,
                                                 weir_time deadline)
{
    return enter_slow(out, guard, 1, deadline);
}

/* The usual way in one cache line or two. */
__attribute__((aligned(64))) int weir_guard_enter(weir_permit *out, weir_guard *guard,
                                                  weir_time deadline)
{
    _Atomic uint64_t *fast;
    uint64_t pass;

    if (WR_UNLIKELY(!out || !guard || out->guard))
        return enter_later(out, guard, deadline);
    fast = guard->fast;
    if (WR_LIKELY(fast != NULL)) {
        if (WR_LIKELY(wr_fast_enter(out, guard, fast, 1)))
            return 0;
        return enter_later(out, guard, deadline);
    }
    pass = wr_load(&guard->pass, acquire);
    if (pass) {
        wr_quick_pass(out, guard, pass);
        return 0;
    }
    return guard->direct.lock ? enter_host(out, guard, deadline)
                              : enter_other(out, guard, deadline);
}

int weir_guard_enter_n(weir_permit *out, weir_guard *guard, int64_t permits, weir_time deadline)
{
    return enter_slow(out, guard, permits, deadline);
}

int64_t weir_guard_reserve(weir_permit *out, weir_guard *guard, int64_t permits,
                           int64_t patience_ns)
{
    struct wr_call call = { .guard = guard, .permit = out, .n = permits, .patience = patience_ns };
    int rc = wr_permit_check(out, guard, permits);

    if (!rc && guard->remote && guard->kind == &wr_kind_rate)
        return wr_remote_reserve(out, guard, permits, patience_ns);
    if (!rc && guard->kind != &wr_kind_rate)
        return weir_guard_enter_n(out, guard, permits, WEIR_NOW_OR_NEVER);
    if (!rc)
        rc = wr_guard_lock(guard);
    if (rc)
        return rc;
    call.now = wr_os_now();
    if (wr_settings_exclude(&wr_guard_read(guard)->set, permits)) {
        wr_guard_unlock(guard);
        return WEIR_EINVAL;
    }
    rc = reserve(&call);
    if (rc == AGAIN)
        return weir_guard_reserve(out, guard, permits, patience_ns);
    if (rc)
        return rc;
    entered(&call);
    return call.wait;
}
